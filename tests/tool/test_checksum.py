"""lime checksum: sums against an oracle; --add in containers of all shapes."""
import itertools
import json
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
import volumelib
from limetest import container, program, record, run

DIMS = (2, 2, 2, 4)
SMALL = scidac.field(DIMS, 576, seed=3)
FORMAT, DATA, SUM = scidac.records(DIMS, SMALL)
SUMS = "%08x %08x" % scidac.checksum(SMALL, 576)


def parse(data):
    """Returns [(type, data, mb, me)] for a container."""
    return [(r.name, r.data, r.mb, r.me) for r in limetest.records(data, strict=False)]


GOOD = {"status": "good", "error": None}


class SumCase(limetest.TestCase):
    def lime(self, *args, status=0, **kw):
        return super().lime("checksum", *args, status=status, **kw).splitlines()

    def check(self, path, *args, status=0):
        done = run(["lime", "check", "--data", "--json", *args, path])
        self.assertEqual(done.returncode, status, done.stdout)
        return json.loads(done.stdout)


class Cksum(SumCase):
    """lime cksum prints what coreutils' cksum prints for the same bytes."""

    def test_known(self):
        path = self.write("f", container([[("ildg-binary-data", b"123456789"), ("x", b"")]]))
        self.assertEqual(self.lime("--cksum", path), ["930766865 9 1 ildg-binary-data"])
        self.assertEqual(self.lime("--cksum", path, "x", "1"),
                         ["4294967295 0 2 x", "930766865 9 1 ildg-binary-data"])
        self.lime("--cksum", "--json", path, "1", "x")
        self.assertEqual(json.loads(self.out), {"file": path, **GOOD, "records": [
            {"ordinal": 1, "type": "ildg-binary-data", "bytes": 9, "cksum": 930766865},
            {"ordinal": 2, "type": "x", "bytes": 0, "cksum": 4294967295}]})

    def test_program(self):
        """Data without a description: any size, any number of threads."""
        sizes = [1, 8, 4095, 262144, 1048577, 3500003]
        datas = [random.Random(n).randbytes(n) for n in sizes]
        path = self.write("f", container([[("ildg-binary-data", d) for d in datas]]))
        want = [f"{scidac.cksum(d)} {len(d)} {i + 1} ildg-binary-data"
                for i, d in enumerate(datas)]
        for threads in ("1", "2", "7"):
            self.assertEqual(self.lime("--cksum", "-j", threads, path), want)
        for row in limetest.manifest():
            if row["type"] == "ildg-binary-data":
                data = self.run_ok(["lime", "cat", row["path"], str(row["ordinal"])])
                self.assertIn(f"{scidac.cksum(data)} {len(data)} {row['ordinal']} ildg-binary-data",
                              self.lime("--cksum", row["path"]))

    def test_usage(self):
        path = self.write("f", container([[("x", b"123456789")]]))
        for options in (["--add"], ["--site-bytes", "9"], ["--lattice", "1x1x1x9"]):
            self.lime("--cksum", *options, path, "x", status=2)
            self.assertIn("--cksum cannot be combined", self.err)
        self.lime("--cksum", path, status=1)
        self.assertIn("choose one", self.err)
        self.lime("--cksum", path, "y", status=1)


class Print(SumCase):
    def test_corpus(self):
        count = 0
        for path in sorted({row["path"] for row in limetest.manifest()}):
            rows = [row for row in limetest.manifest() if row["path"] == path]
            stored = [row for row in rows if row["type"] == "scidac-checksum"]
            if not stored:
                continue
            lines = self.lime(path)
            self.assertEqual([line.split()[2] for line in lines], ["good"] * len(stored))
            for line in lines:  # equal to the checksum record that follows, of any writer
                ordinal = int(line.split()[3])
                later = min(r["ordinal"] for r in stored if r["ordinal"] > ordinal)
                xml = self.run_ok(["lime", "cat", path, str(later)]).decode()
                for tag, word in zip(("suma", "sumb"), line.split()):
                    self.assertEqual(int(xml.split(f"<{tag}>")[1].split("<")[0], 16),
                                     int(word, 16))
                count += 1
        self.assertEqual(count, 9)

    def test_other_format(self):
        """The checksum in a header is of another kind, which lime check compares."""
        gauge = os.path.join(limetest.CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
        path = os.path.join(self.tempdir(), "conf.nersc")
        self.run_ok(["lime", "convert", gauge, path])
        sums, = self.lime(gauge)
        self.assertEqual(self.lime(path, status=3), [
            sums.replace("good      ", "unverified") +
            "  (not of the kind in the header; see 'lime check --data')"])

    def test_states(self):
        path = self.write("f.lime", container([[FORMAT, DATA, SUM]]))
        self.assertEqual(self.lime(path), [f"{SUMS} good       2 ildg-binary-data"])
        path = self.write("f.lime", container([[FORMAT, DATA]]))
        self.assertEqual(self.lime(path, status=3),
                         [f"{SUMS} unverified 2 ildg-binary-data  (no checksum)"])
        wrong = ("scidac-checksum", scidac.checksum_xml((1, 0xabc)))
        path = self.write("f.lime", container([[FORMAT, DATA, wrong]]))
        self.assertEqual(self.lime(path, status=1), [f"{SUMS} bad        2 ildg-binary-data  "
                         "(record 3 says 00000001 00000abc)"])
        path = self.write("f.lime", container([[FORMAT, DATA, ("scidac-checksum", b"?")]]))
        self.assertEqual(self.lime(path, status=1),
                         [f"{SUMS} bad        2 ildg-binary-data  (record 3 cannot be understood)"])

    def test_json(self):
        path = self.write("f.lime", container([[FORMAT, DATA, SUM]]))
        a, b = SUMS.split()
        self.assertEqual(json.loads("\n".join(self.lime("--json", path))), {
            "file": path, **GOOD, "records": [{
                "ordinal": 2, "type": "ildg-binary-data", "bytes": len(SMALL), "sites": 32,
                "site_bytes": 576, "state": "good", "suma": a, "sumb": b,
                "stored": {"ordinal": 3, "suma": a, "sumb": b}}]})
        path = self.write("f.lime", container([("scidac-binary-data", b"x" * 80)]))
        result, = json.loads("\n".join(self.lime("--json", path, status=1)))["records"]
        self.assertEqual((result["state"], "suma" in result), ("unverified", False))

    def test_json_of_nothing(self):
        for path in (self.write("f", container([[("text", b"x")]])), "nowhere", os.devnull):
            done = run(["lime", "checksum", "--json", path])
            got = json.loads(done.stdout)
            self.assertEqual((got["file"], "records" in got), (path, False))
            self.assertTrue(got["error"])

    def test_several_files(self):
        """Operands are files if all of them exist and none is a number, else records."""
        one, two = (self.write("f.lime", container([[FORMAT, DATA, sums]]))
                    for sums in (SUM, ("scidac-checksum", scidac.checksum_xml((1, 2)))))
        alone = [f"{path}: {SUMS} {state} 2 ildg-binary-data"
                 for path, state in ((one, "good      "), (two, "bad       "))]
        total = "2 files: 1 good, 1 bad, 0 unverified, 0 unreadable, 0 skipped"
        stated = "  (record 3 says 00000001 00000002)"
        for args in ([one, two], ["-r", one, two], ["-j", "2", one, "--files-from",
                                                    self.write("list", two.encode())]):
            self.assertEqual(self.lime(*args, status=1), [alone[0], alone[1] + stated, total])
        self.assertEqual(self.lime("-q", one, two, status=1), [alone[1] + stated])
        self.lime(one, two + "-none", status=1)
        self.assertIn("no such record", self.err)
        self.lime("--add", "--replace", one, two)
        self.assertEqual(self.lime("--cksum", two), self.lime("--cksum", one))
        self.lime(one, two)

    def test_site_options(self):
        data = random.Random(4).randbytes(30 * 7 * 4)
        path = self.write("f.lime", container([[("a", b"x"), ("text", data), ("e", b"")]]))
        for size in (1, 4, 7, 8, 28, 30 * 7, len(data)):
            want = "%08x %08x" % scidac.checksum(data, size)
            self.assertEqual(self.lime("--site-bytes", str(size), path, "text", status=3),
                             [f"{want} unverified 2 text  (no checksum)"])
            self.assertEqual(self.lime("--lattice", f"{len(data) // size}", path, "text",
                                       status=3),
                             [f"{want} unverified 2 text  (no checksum)"])
        want = "%08x %08x" % scidac.checksum(data, 28)
        self.assertEqual(self.lime("--lattice", "5x1x3x2", path, "2", status=3),
                         [f"{want} unverified 2 text  (no checksum)"])
        self.lime("--site-bytes", "9", path, "text", status=1)
        self.assertIn("record 2: its 840 bytes are not a multiple of 9", self.err)
        self.lime("--site-bytes", "8", path, "e", status=1)
        self.lime(path, "text", status=1)
        self.assertIn("give it with --site-bytes", self.err)
        self.lime(path, status=1)
        self.assertIn("no record is ildg-binary-data", self.err)
        self.lime(path, "none", status=1)
        path = self.write("cut", container([[("text", b"x"), ("ildg-binary-data", data)]])[:-50])
        for option in ([], ["--add"]):
            self.lime(*option, path, status=1)
            self.assertIn("no record is ildg-binary-data", self.err)
            self.assertIn("record 2: the file ends inside the data", self.err)

    def test_wrong_length(self):
        path = self.write("f.lime", container([[FORMAT, ("ildg-binary-data", SMALL[:-576]), SUM]]))
        self.lime(path, status=1)
        self.assertIn("17856 bytes, should be 18432", self.err)
        want = "%08x %08x" % scidac.checksum(SMALL[:-576], 576)
        self.assertEqual(self.lime("--site-bytes", "576", path, status=1)[0][:17], want)

    def test_other_sites_than_described(self):
        """If two descriptions contradict each other, the checksum in the file decides."""
        for dims, precision in (((2, 2, 2, 2), 64), ((2, 2, 4, 4), 64), (DIMS, 32)):
            form = ("ildg-format", scidac.ildg_format(dims, precision))
            path = self.write("f.lime", container([[form, DATA, SUM]]))
            self.assertEqual(self.lime(path), [f"{SUMS} good       2 ildg-binary-data"])
            self.assertEqual(self.lime("--add", path), [f"{SUMS} good       2 ildg-binary-data"])
            wrong = ("scidac-checksum", scidac.checksum_xml((1, 2)))
            for last in wrong, ("scidac-checksum", b"?"):
                path = self.write("f.lime", container([[form, DATA, last]]))
                self.assertEqual(self.lime(path, status=1), [])
                self.assertIn("should be", self.err)
            self.lime("--add", "--replace", path, status=1)

    def test_part(self):
        """QIO stores in each volume the checksum of all volumes together."""
        type, xml = scidac.private_file((4, 4, 4, 8))
        message = [(type, xml.replace(b"<volfmt>0", b"<volfmt>2")), scidac.private_record(576),
                   ("scidac-binary-data", SMALL), SUM]
        self.lime(self.write("f.lime", container([message])), status=1)
        self.assertIn("record 3: its part of the lattice is unknown", self.err)
        message[2] = ("scidac-binary-data", SMALL + b"x")
        self.lime(self.write("f.lime", container([message])), status=1)
        self.assertIn("record 3: its 18433 bytes are not a multiple of 576", self.err)

    def test_hypercube(self):
        dims, lower, upper = (4, 3, 5, 6), (1, 0, 2, 3), (3, 2, 2, 5)
        ranks = scidac.box_ranks(dims, lower, upper)
        data = random.Random(5).randbytes(len(ranks) * 16)
        private = volumelib.private_record(16, recordtype=2, datatype="QDP_D_Complex",
                                           box=(lower, upper))
        path = self.write("f.lime", container([
            [scidac.private_file(dims)],
            [("scidac-private-record-xml", private), ("scidac-binary-data", data)]]))
        want = "%08x %08x" % scidac.checksum(data, 16, ranks)
        self.assertEqual(self.lime(path, status=3),
                         [f"{want} unverified 3 scidac-binary-data  (no checksum)"])

    def test_threads(self):
        data = scidac.field((8, 8, 8, 16), 576, seed=6)
        path = self.write("f.lime", scidac.gauge((8, 8, 8, 16), data))
        lines = {self.lime("-j", str(n), path)[0] for n in range(1, 17)}
        self.assertEqual(lines, {"%08x %08x good       2 ildg-binary-data"
                                 % scidac.checksum(data, 576)})

    def test_behind_a_fault(self):
        path = self.write("f.lime", container([[FORMAT, DATA, SUM]]) + b"trailing")
        self.assertEqual(self.lime(path, status=1), [f"{SUMS} good       2 ildg-binary-data"])

    def test_usage(self):
        path = self.write("f.lime", container([[FORMAT, DATA, SUM]]))
        for args in ([], ["--site-bytes", "0", path], ["--site-bytes", "x", path],
                     ["--lattice", "4x", path], ["--lattice", "4x0", path], ["-z", path],
                     ["--lattice", "4294967296x4294967296", path], ["--replace", path],
                     ["--lattice", "4", "--site-bytes", "4", path], ["-j", "0", path],
                     ["/nonexistent"], [limetest.tempdir()], [self.write("t", b"text" * 99)],
                     ["--add", "/nonexistent"], ["--add", self.write("t", b"text" * 99)]):
            self.lime(*args, status=2)
        self.assertIn("Usage: lime checksum", self.lime("--help")[0])


class Add(SumCase):
    def add(self, records, *args, status=0):
        """Runs lime checksum --add on a container of these records; returns the records."""
        self.path = self.write("f.lime", container(records))
        self.inode = os.stat(self.path).st_ino
        self.lime("--add", self.path, *args, status=status)
        return parse(limetest.read(self.path))

    def compact(self, sums):
        """Returns the text of a checksum record as lime writes it."""
        return ('<?xml version="1.0" encoding="UTF-8"?><scidacChecksum><version>1.0</version>'
                f"<suma>{sums[0]:x}</suma><sumb>{sums[1]:x}</sumb></scidacChecksum>").encode()

    def test_at_the_end(self):
        new = ("scidac-checksum", self.compact(scidac.checksum(SMALL, 576)))
        for others, behind in itertools.product(([], [[("a", b"1")]]),
                                                ([], [("ildg-data-lfn", b"lfn://x")])):
            message = [FORMAT, DATA, *behind]
            got = self.add([*others, message])
            self.assertEqual(got, parse(container([*others, [*message, new]])))
            self.assertEqual(self.out.splitlines(),
                             [f"{SUMS} good       {len(others) + 2} ildg-binary-data  (added)"])
            before = limetest.read(self.path)
            self.assertEqual(self.lime("--add", self.path),
                             [f"{SUMS} good       {len(others) + 2} ildg-binary-data"])
            self.assertEqual((limetest.read(self.path), os.stat(self.path).st_ino),
                             (before, self.inode))
            self.check(self.path, "--strict")

    def test_in_the_middle(self):
        new = ("scidac-checksum", self.compact(scidac.checksum(SMALL, 576)))
        for behind, after in itertools.product(([], [("ildg-data-lfn", b"lfn://x")]),
                                               ([("z", b"12345")], [("y", b""), ("z", b"1")])):
            got = self.add([[FORMAT, DATA, *behind], after])
            self.assertEqual(got, parse(container([[FORMAT, DATA, new, *behind], after])))
            self.check(self.path, "--strict")
            self.assertEqual(os.listdir(os.path.dirname(self.path)), ["f.lime"])

    def test_several(self):
        other = scidac.field(DIMS, 576, seed=9)
        data = ("ildg-binary-data", other)
        sums = [("scidac-checksum", self.compact(scidac.checksum(d, 576))) for d in (SMALL, other)]
        got = self.add([[FORMAT, DATA], [FORMAT, data]])
        self.assertEqual(got, parse(container([[FORMAT, DATA, sums[0]], [FORMAT, data, sums[1]]])))
        self.assertEqual([line.split()[3] for line in self.out.splitlines()], ["2", "4"])
        # With both in one message, the first one's checksum can't come last.
        got = self.add([[FORMAT, DATA, FORMAT, data]])
        self.assertEqual(got, parse(container([[FORMAT, DATA, sums[0], FORMAT, data, sums[1]]])))
        self.check(self.path, "--strict")
        # Only one of them.
        got = self.add([[FORMAT, DATA], [FORMAT, data]], "1.2")
        self.assertEqual(got, parse(container([[FORMAT, DATA, sums[0]], [FORMAT, data]])))
        got = self.add([[FORMAT, DATA], [FORMAT, data]], "4")
        self.assertEqual(got, parse(container([[FORMAT, DATA], [FORMAT, data, sums[1]]])))
        got = self.add([[FORMAT, DATA], [FORMAT, data]], "4", "2", "4")
        self.assertEqual(got, parse(container([[FORMAT, DATA, sums[0]], [FORMAT, data, sums[1]]])))

    def test_missing_padding(self):
        message = [FORMAT, DATA, ("text", b"12345")]
        new = ("scidac-checksum", self.compact(scidac.checksum(SMALL, 576)))
        self.path = self.write("f.lime", container([message])[:-3])
        self.lime("--add", self.path)
        self.assertEqual(parse(limetest.read(self.path)), parse(container([[*message, new]])))
        self.path = self.write("f.lime", container([[FORMAT, DATA], [("t", b"12345")]])[:-3])
        self.lime("--add", self.path)
        self.assertEqual(parse(limetest.read(self.path)),
                         parse(container([[FORMAT, DATA, new], [("t", b"12345")]])))

    def test_corpus(self):
        for path in sorted({row["path"] for row in limetest.manifest()}):
            rows = [row for row in limetest.manifest() if row["path"] == path]
            stored = [row["ordinal"] for row in rows if row["type"] == "scidac-checksum"]
            if not stored:
                continue
            want = [line.split()[:2] for line in self.lime(path)]
            copy = self.write("f.lime", limetest.read(path))
            for ordinal in reversed(stored):
                self.run_ok(["lime", "rm", copy, str(ordinal)])
            self.assertEqual([line.split()[:3] for line in self.lime(copy, status=3)],
                             [w + ["unverified"] for w in want])
            self.lime("--add", copy)
            self.assertEqual([line.split()[:3] for line in self.lime(copy)],
                             [w + ["good"] for w in want])
            self.check(copy, "--strict")
            padding = bytes(-os.path.getsize(path) % 8)
            expected = [r[:2] for r in parse(limetest.read(path) + padding)
                        if r[0] != "scidac-checksum"]
            self.assertEqual([r[:2] for r in parse(limetest.read(copy))
                              if r[0] != "scidac-checksum"], expected)

    def test_wrong(self):
        right = self.compact(scidac.checksum(SMALL, 576))
        for stored in (scidac.checksum_xml((1, 2)), b"<x/>", b"", b"x" * 200,
                       self.compact((1, 2)) + b"\0"):
            for rest in ([], [("text", b"12345")], [[("text", b"12345")]]):
                records = [FORMAT, DATA, ("scidac-checksum", stored)]
                whole = [records + rest] if not rest or isinstance(rest[0], tuple) \
                    else [records, *rest]
                before = parse(container(whole))
                self.assertEqual(self.add(whole, status=1), before)
                self.assertIn("--replace", self.err)
                got = self.add(whole, "--replace")
                self.assertIn("(replaced)", self.out)
                self.assertEqual([r for i, r in enumerate(got) if i != 2],
                                 [r for i, r in enumerate(before) if i != 2])
                self.assertEqual(got[2][1].rstrip(b" "), right)
                self.assertIn(len(got[2][1]), (len(stored), len(right)))
                self.check(self.path, "--strict")

    def test_other_sites_than_the_file_states(self):
        """lime checksum --add refuses a checksum that readers of the file would report as wrong."""
        for records in ([FORMAT, DATA], [FORMAT, DATA, SUM]):
            good = container([records])
            path = self.write("f.lime", good)
            for options in (("--site-bytes", "64"), ("--lattice", "2x2x2x2")):
                self.lime("--add", "--replace", *options, path, status=1)
                self.assertIn("the file states", self.err)
                self.assertEqual(limetest.read(path), good)
            self.lime("--add", "--site-bytes", "576", path)
            self.check(path, "--strict")

    def test_refused(self):
        good = container([[("a", b"x" * 80), ("text", b"y" * 80)]])
        path = self.write("f.lime", good)
        self.lime("--add", "--site-bytes", "8", path, "text", status=1)
        self.assertIn("not ildg-binary-data or scidac-binary-data", self.err)
        self.assertEqual(limetest.read(path), good)
        unknown = container([[("a", b"x" * 80), ("scidac-binary-data", b"y" * 80)]])
        path = self.write("f.lime", unknown)
        self.lime("--add", path, status=1)
        self.assertEqual(limetest.read(path), unknown)
        self.lime("--add", "--site-bytes", "8", path)
        self.assertEqual(self.lime("--site-bytes", "8", path)[0].split()[2], "good")
        for data in (container([[FORMAT, DATA]]) + b"x",
                     record(*FORMAT, 1, 1) + record(*DATA, 0, 1)):
            path = self.write("f.lime", data)
            self.lime("--add", path, status=1)
            self.assertIn("'lime repair", self.err)
            self.assertEqual(limetest.read(path), data)

    def test_locked(self):
        path = self.write("f.lime", container([[FORMAT, DATA]]))
        child = subprocess.Popen([program("lime"), "append", path, "-t", "t", "-"],
                                 stdin=subprocess.PIPE)
        while os.path.getsize(path) == len(container([[FORMAT, DATA]])):
            time.sleep(0.01)
        self.lime("--add", path, status=1)
        child.stdin.close()
        child.wait()
        self.lime("--add", path)
        self.check(path, "--strict")

    def test_json(self):
        path = self.write("f.lime", container([[FORMAT, DATA]]))
        result, = json.loads("\n".join(self.lime("--json", "--add", path)))["records"]
        self.assertEqual((result["state"], result["action"]), ("good", "added"))
        result, = json.loads("\n".join(self.lime("--json", "--add", path)))["records"]
        self.assertEqual((result["state"], "action" in result), ("good", False))

    def test_no_room(self):
        big = container([[FORMAT, DATA], [("t", bytes(200000))]])
        for data in (container([[FORMAT, DATA]]), big):
            path = self.write("f.lime", data)
            limit = (len(data) - 100) // 1024 if data is big else len(data) // 1024
            self.fails(["bash", "-c", f'trap "" XFSZ; ulimit -f {limit}; exec "$@"', "-",
                        program("lime"), "checksum", "--add", path], "File too large")
            self.assertEqual(limetest.read(path), data)
            self.assertEqual(os.listdir(os.path.dirname(path)), ["f.lime"])


if __name__ == "__main__":
    limetest.main()
