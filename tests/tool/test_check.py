"""lime check: each finding by name and offset, exit statuses, JSON."""
import json
import os
import random
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from limetest import container, header, program, record, run
import scidac
import users

GOOD = container([[("first", b"12345"), ("second", b"x" * 16)], [("third", b"")]])
ONE = record("one", b"1", 1, 1)  # 152 bytes

# name: (bytes, code, offset, record), for some followed by the actual and the expected value
BROKEN = {
    "mb missing": (ONE + record("t", b"", 0, 1), "mb-missing", 158, 2),
    "mb missing at once": (record("t", b"", 0, 1), "mb-missing", 6, 1),
    "mb doubled": (record("t", b"", 1, 0) + record("t", b"", 1, 1), "mb-inside", 150, 2),
    "me missing": (ONE + record("t", b"", 1, 0), "me-missing", 158, 2),
    "reserved bits": (ONE + record("t", b"", 1, 1, flags=0xc1), "reserved-flags", 158, 2),
    "reserved byte": (ONE + record("t", b"", 1, 1, reserved=7), "reserved-byte", 159, 2),
    "no type": (ONE + record("", b"", 1, 1), "type-empty", 168, 2),
    "long type": (ONE + record("t" * 128, b"", 1, 1), "type-long", 168, 2),
    **{f"type {type}": (ONE + record(type, b"", 1, 1), "type-ascii", 168, 2) for type in (
        b"a\x1b", b"a\xff", b"\x01", b"tab\t", b"\x7f", b"\x80", b"new\nline")},
    "after the NUL": (ONE + record("t", b"", 1, 1, raw_type=b"t\0x".ljust(128, b"\0")),
                      "type-tail", 169, 2),
    "padding": (record("t", b"1", 1, 1, padding=b"\0\0\1\0\0\0\0") + ONE, "padding-nonzero",
                147, 1),
    "padding cut": (record("t", b"1", 1, 1, padding=b"\0\0"), "padding-cut", 147, 1),
    "header cut": (ONE + header("t", 0, 1, 1)[:-1], "header-cut", 152, 2),
    "first header cut": (header("t", 0, 1, 1)[:3], "header-cut", 0, 1),
    "data cut": (ONE + header("t", 9, 1, 1) + b"12345678", "data-cut", 152, 2, 8, 9),
    **{f"{n} bytes": (ONE + header("t", n, 1, 1) + b"d" * 40, "data-cut", 152, 2, 40, n)
       for n in (2**31, 2**32 + 5, 2**62)},
    **{f"{n} bytes": (ONE + header("t", n, 1, 1) + b"d" * 40, "length", 160, 2, n, 0)
       for n in (2**63 - 1, 2**63, *(2**64 - less for less in (1, 8, 144, 152, 296)))},
    "one byte": (ONE + b"x", "trailing", 152, 2),
    "zeros": (ONE + bytes(500), "trailing", 152, 2),
    **{f"version {n}": (ONE + header("t", 0, 1, 1, version=n), "version", 156, 2, n, 1)
       for n in (0, 2, 0x0100, 0xffff)},
    "first version": (header("t", 0, 1, 1, version=0), "version", 4, 1, 0, 1),
}
FAULTS = {"header-cut", "data-cut", "length", "trailing", "version"}
WARNINGS = {"reserved-flags", "type-tail", "padding-nonzero", "padding-cut"}


def as_json(number):
    """Returns an integer as jansson writes it: above 2^63 - 1 as a real number."""
    return number if number < 2**63 else float(number)


class Check(limetest.TestCase):
    def test_good(self):
        path = self.write("good.lime", GOOD)
        done = run(["lime", "check", path])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.decode(), f"{path}: good: 3 records in 2 messages, "
                                               f"{len(GOOD)} bytes\n")

    def test_each_finding(self):
        for name, (data, code, offset, ordinal, *_) in BROKEN.items():
            with self.subTest(name):
                path = self.write("broken", data)
                done = run(["lime", "check", path])
                warning = "warning: " * (code in WARNINGS)
                self.assertEqual(done.returncode, 0 if warning else 1)
                self.assertTrue(done.stderr.decode().startswith(
                    f"lime: {path}: {warning}offset {offset}: record {ordinal}: "), done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1)
                if warning:
                    self.assertIn(f"{path}: good: ".encode(), done.stdout)
                    self.assertTrue(done.stdout.endswith(b" bytes; 1 warning\n"), done.stdout)
                else:
                    self.assertIn(f"{path}: bad: 1 deviation".encode(), done.stdout)
                self.assertEqual(b"ends the container" in done.stdout, code in FAULTS)
                done = run(["lime", "check", "--strict", path])
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"{path}: bad: 1 deviation".encode(), done.stdout)
                self.assertNotIn(b"warning", done.stdout + done.stderr)

    def test_each_finding_in_json(self):
        paths = [self.write("broken", data) for data, *_ in BROKEN.values()]
        done = run(["lime", "check", "--json", *paths])
        self.assertEqual((done.returncode, done.stderr), (1, b""))
        results = limetest.json_lines(done.stdout)
        for result, path, (data, code, offset, ordinal, *sizes) in zip(
                results, paths, BROKEN.values(), strict=True):
            harmless = code in WARNINGS
            self.assertEqual((result["file"], result["size"]), (path, len(data)))
            self.assertEqual((result["status"], result["warnings"], result["faults"]),
                             ("good" if harmless else "bad", harmless, code in FAULTS))
            self.assertEqual([(f["code"], f["offset"], f["ordinal"], f["harmless"])
                              for f in result["findings"]], [(code, offset, ordinal, harmless)])
            self.assertTrue(result["findings"][0]["message"])
            if sizes:
                self.assertEqual([result["findings"][0][key] for key in ("have", "want")],
                                 [as_json(size) for size in sizes])

    def test_all_at_once(self):
        data = record("a", b"", 1, 0) + record(b"a\x1b", b"1", 1, 0, flags=0xbf, reserved=9,
                                               raw_type=b"a\x1b\0x".ljust(128, b"\0"),
                                               padding=b"x\0")
        result = json.loads(run(["lime", "check", "--json", self.write("f", data)]).stdout)
        self.assertEqual([(f["code"], f["offset"], f["ordinal"]) for f in result["findings"]], [
            ("mb-inside", 150, 2), ("reserved-flags", 150, 2), ("reserved-byte", 151, 2),
            ("type-ascii", 160, 2), ("type-tail", 162, 2), ("padding-nonzero", 289, 2),
            ("padding-cut", 291, 2), ("me-missing", 150, 2)])

    def test_odd_types(self):
        odd = ("a/b", "..", ".", "a b", "; rm -rf /", "%2F", "~", "$(id)")
        path = self.write("f", container([[(type, b"x") for type in odd]]))
        self.assertEqual(json.loads(self.run_ok(["lime", "check", "--json", path]))["findings"], [])

    def test_json_of_a_good_file(self):
        path = self.write("good.lime", GOOD)
        self.assertEqual(json.loads(self.run_ok(["lime", "check", "--json", path])),
                         {"file": path, "findings": [], "deviations": 0, "faults": 0, "warnings": 0,
                          "records": 3, "messages": 2, "size": len(GOOD), "status": "good",
                          "error": None})

    def test_ten_thousand_are_all_named(self):
        path = self.write("many", record("t", b"", 1, 1, reserved=1) * 10000)
        done = run(["lime", "check", path])
        self.assertEqual(done.stderr.count(b"reserved byte"), 10000)
        self.assertIn(b": bad: 10000 deviations: 10000 records in 10000 messages", done.stdout)
        findings = json.loads(run(["lime", "check", "--json", path]).stdout)["findings"]
        self.assertEqual(findings[-1]["offset"], 9999 * 144 + 7)

    def test_unusable(self):
        fifo = os.path.join(limetest.tempdir(), "fifo")
        os.mkfifo(fifo)
        for path, why in ((self.write("f", b"text" * 99),
                           "not a LIME container (no record header at offset 0)"),
                          (fifo, ""), (limetest.tempdir(), "open: Is a directory; use -r for the files in it"),
                          ("/dev/zero", ""), ("/nonexistent", "open: No such file or directory")):
            for quiet in [], ["-q"]:
                self.fails(["lime", "check", *quiet, path], f"lime: {path}: {why}", status=2,
                           out=b"")
            done = run(["lime", "check", "--json", "--data", "--physics", path])
            self.assertEqual(done.returncode, 2)
            result = json.loads(done.stdout)
            self.assertEqual((set(result), result["status"]),
                             ({"file", "status", "error"}, "unreadable"))
            self.assertTrue(result["error"])

    def test_directory(self):
        self.fails(["lime", "check", os.curdir], "open: Is a directory; use -r for the files in it", status=2)


SMALL = scidac.field((2, 2, 2, 4), 576, seed=1)


class Meaning(limetest.TestCase):
    """Findings about ILDG and SciDAC records; tests/unit tests each finding."""

    def check(self, data, *args, status=0):
        return self.lime("check", *args, self.write("f.lime", data), status=status), self.err

    def codes(self, data, *args):
        done = run(["lime", "check", "--json", *args, self.write("f.lime", data)])
        result = json.loads(done.stdout)
        self.assertEqual((done.returncode, result["status"]),
                         (1, "bad") if result["deviations"] + result["faults"] else
                         (3, "unverified") if "unverified" in done.stdout.decode() else
                         (0, "good"))
        self.assertEqual(result["deviations"] + result["faults"] + result["warnings"],
                         len(result["findings"]))
        return [(f["code"], f["ordinal"]) for f in result["findings"]]

    def test_plain_containers_are_good(self):
        plain = container([[("ildg-binary-data", b"12345"), ("text", b"x")]])
        for args in ([], ["--data"]):
            self.assertEqual(self.codes(plain, *args), [])

    def test_format_is_missing_or_late(self):
        good = scidac.records((2, 2, 2, 4), SMALL)
        self.assertEqual(self.codes(container([good])), [])
        self.assertEqual(self.codes(container([good[1:]])), [("format-missing", 1)])
        self.assertEqual(self.codes(container([[good[1], good[0], good[2]]])), [("format-late", 2)])

    def test_in_the_order_of_the_file(self):
        good = scidac.records((2, 2, 2, 4), SMALL)
        data = record("a", b"1", 1, 1, padding=b"\0\0\1\0\0\0\0") + \
            record("ildg-format", b"<none", 1, 0, reserved=3) + \
            record(*good[1], 0, 0, reserved=4) + record(*good[2], 0, 0) + header("x", 9, 0, 1)
        want = [("padding-nonzero", 1), ("reserved-byte", 2), ("metadata", 2),
                ("reserved-byte", 3), ("data-cut", 5)]
        self.assertEqual(self.codes(data), want)
        # lime check verifies the data anyway if their length makes sense.
        self.assertEqual(self.codes(data, "--data"), want)

    def test_strict(self):
        good = scidac.gauge((2, 2, 2, 4), SMALL)
        self.assertEqual(self.codes(good, "--strict", "--data"), [])
        bare = scidac.gauge((2, 2, 2, 4), SMALL, checksum=False)
        self.assertEqual(self.codes(bare), [])
        self.assertEqual(self.codes(bare, "--strict"), [("checksum-missing", 2)])
        unknown = container([[("text", b"x"), ("scidac-binary-data", b"data")]])
        self.assertEqual(self.codes(unknown, "--strict"),
                         [("checksum-missing", 2), ("undescribed", 2)])
        plain = container([[("text", b"x"), ("ildg-binary-data", b"data")]])
        self.assertEqual(self.codes(plain, "--strict"),
                         [("format-missing", 2), ("checksum-missing", 2)])
        without = container([scidac.records((2, 2, 2, 4), SMALL)[1:]])
        self.assertEqual(self.codes(without, "--strict"), [("format-missing", 1)])


class Data(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.good = scidac.gauge((4, 4, 4, 8), scidac.field((4, 4, 4, 8), 576, seed=2))
        self.at = self.good.index(b"ildg-binary-data") + 128

    def check(self, data, *args):
        done = run(["lime", "check", "--data", *args, self.write("f.lime", data)])
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_corpus(self):
        paths = sorted({row["path"] for row in limetest.manifest()})
        done = run(["lime", "check", "--data", "--json", *paths])
        self.assertEqual(done.returncode, 3)
        states = [c["state"] for file in limetest.json_lines(done.stdout) for c in file["checksums"]]
        self.assertEqual((states.count("good"), states.count("unverified")), (9, 2))
        self.assertEqual(len(states), 11)
        for file in limetest.json_lines(done.stdout):
            self.assertNotIn("checksum", {f["code"] for f in file["findings"]})

    def test_flips(self):
        dice = random.Random(6)
        for _ in range(400 if limetest.STRESS else 40):
            bit = dice.randrange(8 * 4 * 4 * 4 * 8 * 576)
            data = bytearray(self.good)
            data[self.at + bit // 8] ^= 1 << bit % 8
            status, out, err = self.check(bytes(data), "--threads",
                                          str(dice.randrange(1, 9)))
            self.assertEqual(status, 1)
            self.assertIn("; checksums: 1 wrong", out)
            self.assertIn("record 2: the data do not match the checksum in the file (", err)

    def test_have_and_want(self):
        data = bytearray(self.good)
        data[self.at] ^= 1
        right = scidac.checksum(self.good[self.at:self.at + 512 * 576], 576)
        wrong = scidac.checksum(bytes(data[self.at:self.at + 512 * 576]), 576)
        result = json.loads(self.check(bytes(data), "--json")[1])
        finding, = result["findings"]
        self.assertEqual((finding["code"], finding["ordinal"], finding["offset"]),
                         ("checksum", 2, self.at))
        self.assertEqual(finding["want"], f"{right[0]:08x} {right[1]:08x}")
        self.assertEqual(finding["have"], f"{wrong[0]:08x} {wrong[1]:08x}")
        self.assertEqual(result["status"], "bad")
        self.assertEqual(result["checksums"], [{"ordinal": 2, "state": "bad", "suma":
                         f"{wrong[0]:08x}", "sumb": f"{wrong[1]:08x}"}])
        text = self.check(bytes(data))[2]
        self.assertIn(f"({wrong[0]:08x} {wrong[1]:08x}, not {right[0]:08x} {right[1]:08x})", text)

    def test_unverified(self):
        records = scidac.records((4, 4, 4, 8), self.good[self.at:self.at + 512 * 576])
        for message, why in (
                (records[:2], "no checksum"),
                ([records[0], records[1], ("scidac-checksum", b"<x/>")], "cannot be understood"),
                ([("a", b""), ("scidac-binary-data", b"x" * 80), records[2]],
                 "the size of a site is unknown"),
                ([scidac.private_record(288), records[0], ("ildg-binary-data", records[1][1] * 2),
                  records[2]], "its descriptions disagree on the size of a site")):
            status, out, _ = self.check(container([message]))
            self.assertIn(f"record {len(message) - 1 if len(message) > 2 else 2}: unverified: ",
                          out)
            self.assertIn(why, out)
            self.assertIn("; checksums: 1 unverified\n", out)
            self.assertEqual(status, 3 if why in ("no checksum",) or "is unknown" in why else 1)
            self.assertIn(": unverified: " if status == 3 else ": bad: ", out.splitlines()[-1])
            self.assertEqual(self.check(container([message]), "--strict")[0], 1)
            result = json.loads(self.check(container([message]), "--json")[1])
            self.assertEqual(result["checksums"][0]["state"], "unverified")
            self.assertIn(why, result["checksums"][0]["reason"])

    def test_bad_without_a_sum(self):
        """Data whose length fits no number of sites are bad without a checksum comparison."""
        form, data, sums = scidac.records((4, 4, 4, 8), self.good[self.at:self.at + 512 * 576])
        no_lattice = [scidac.private_record(576), ("scidac-binary-data", data[1][:-8]), sums]
        length = "its length is not a whole number of sites"
        for message, why in (
                ([form, (data[0], data[1][:-1]), sums], length),
                ([form, (data[0], data[1] + b"x"), sums], length),
                (no_lattice, length),
                ([form, (data[0], b""), sums], "there are no data")):
            status, out, err = self.check(container([message]))
            self.assertEqual(status, 1)
            self.assertIn(f"record 2: bad: {why}\n", out)
            self.assertIn("; checksums: 1 wrong\n", out)
            self.assertEqual(err.count("the data length does not match the lattice"), 1)
            if message is no_lattice:
                self.assertIn("(294904 bytes: not a whole number of sites)", err)
            result = json.loads(self.check(container([message]), "--json")[1])
            self.assertEqual([f["code"] for f in result["findings"]], ["field-length"])
            self.assertEqual(result["checksums"], [{"ordinal": 2, "state": "bad", "reason": why}])

    def test_other_sites_than_described(self):
        """If the length contradicts lattice or precision, the checksum decides about the data."""
        _, data, sums = scidac.records((4, 4, 4, 8), self.good[self.at:self.at + 512 * 576])
        other = [scidac.private_file((4, 4, 4, 8)), scidac.private_record(16),
                 ("scidac-binary-data", data[1]), sums]
        for message, state in (
                ([("ildg-format", scidac.ildg_format((4, 4, 4, 4))), data, sums], "good"),
                ([("ildg-format", scidac.ildg_format((4, 4, 8, 8))), data, sums], "good"),
                ([("ildg-format", scidac.ildg_format((4, 4, 4, 7))), data, sums], "good"),
                ([("ildg-format", scidac.ildg_format((4, 4, 4, 8), 32)), data, sums], "good"),
                (other, "good"),
                ([("ildg-format", scidac.ildg_format((4, 4, 4, 8))),
                  (data[0], data[1] + bytes(576)), sums], "bad"),
                ([("ildg-format", scidac.ildg_format((4, 4, 4, 8))),
                  (data[0], data[1][576:]), sums], "bad")):
            whole = container([message])
            at = whole.index(b"-binary-data" + bytes(100)) + 10000
            damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
            for content, want in (whole, state), (damaged, "bad"):
                status, out, _ = self.check(content, "--json")
                result = json.loads(out)
                self.assertEqual((status, [c["state"] for c in result["checksums"]]), (1, [want]))
                self.assertEqual([f["code"] for f in result["findings"]],
                                 ["field-length"] + ["checksum"] * (want == "bad"))

    def test_grid(self):
        """Grid states the whole lattice for each field, and one number if it can't name the tensor;
        a checkerboard's sites are ranked in the lattice as if x were half as long."""
        for dims, stored, stated_bytes, site in (
                ((4, 4, 4, 8), (4, 4, 4, 8), 192, 192), ((4, 4, 4, 8), (2, 4, 4, 8), 192, 192),
                ((6, 4, 4, 4, 8), (6, 2, 4, 4, 8), 24, 24), ((2, 2, 2, 2, 4),) * 2 + (8, 120)):
            data = scidac.field(stored, site)
            ranks = scidac.box_ranks(dims, [0] * len(dims), [extent - 1 for extent in stored])
            sums = scidac.checksum_xml(scidac.checksum(data, site, ranks))
            message = [scidac.grid_format(dims), scidac.private_record(stated_bytes, "GRID_F_X"),
                       ("ildg-binary-data", data), ("FieldNormMetaData", b"<a/>"),
                       ("scidac-checksum", sums)]
            for first in [], [[scidac.private_file(dims)]]:
                whole = container(first + [message, message])
                self.assertEqual(self.check(whole)[0], 0)
                at = whole.rindex(b"-binary-data" + bytes(100)) + 1000
                status, out, _ = self.check(whole[:at] + b"harmed" + whole[at + 6:])
                self.assertEqual(status, 1)
                self.assertIn("checksums: 1 right, 1 wrong", out)

    def test_data_are_not_read_by_default(self):
        data = bytearray(self.good)
        data[self.at] ^= 1
        path = self.write("f.lime", bytes(data))
        done = run(["lime", "check", path])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(done.stdout.endswith(b", 289K; data not read\n"), done.stdout)
        done = run(["lime", "check", "--physics", path])
        self.assertIn(b", 289K; checksums not compared; configurations: ", done.stdout)


class Many(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.top = limetest.tempdir()
        for directory in ("a/b", "c", "empty"):
            os.makedirs(os.path.join(self.top, directory))
        self.good = scidac.gauge((2, 2, 2, 4), SMALL)
        bad = bytearray(self.good)
        bad[2000] ^= 1
        for name, data in (("a/1.lime", self.good), ("a/b/2.lime", self.good),
                           ("c/wrong.lime", bytes(bad)), ("c/notes.txt", b"text"),
                           ("a/other", b"PK\3\4"), ("plain.lime", GOOD),
                           ("c/bare", scidac.gauge((2, 2, 2, 4), SMALL, checksum=False))):
            limetest.put(os.path.join(self.top, name), data)

    def put(self, name):
        return os.path.join(self.top, name)

    def lime(self, *args, status, **kw):
        return super().lime("check", *args, status=status, **kw).splitlines(), self.err

    def test_recursive(self):
        out, err = self.lime("-r", "--bytes", self.top, status=0)
        names = [line.split(": ")[0] for line in out[:-1]]
        self.assertEqual(names, [self.put(n) for n in ("a/1.lime", "a/b/2.lime", "c/bare",
                                                       "c/wrong.lime", "plain.lime")])
        size = 4 * len(self.good) - len(record(*scidac.records((2, 2, 2, 4), SMALL)[2], 0, 1)) \
            + len(GOOD)
        self.assertEqual(out[-1], "7 files: 5 good, 0 bad, 0 unverified, 0 unreadable, 2 skipped; "
                                  f"{size} bytes")
        self.assertEqual(err, "")
        out, err = self.lime("-r", "--data", self.top, status=1)
        self.assertIn("7 files: 3 good, 1 bad, 1 unverified, 0 unreadable, 2 skipped; ", out[-1])
        self.assertIn("c/wrong.lime: offset", err)
        out, quiet = self.lime("-q", "-r", "--data", self.top, status=1)
        self.assertEqual([line for line in out if "record" not in line], [])
        self.assertEqual(quiet, err)

    @limetest.needs_fuse
    def test_recursive_in_a_mount(self):
        """Containers appear as directories in a mount; lime check -r does not descend into them."""
        with limetest.Mount(self.top) as mount:
            names = [os.path.join(mount.path, n) for n in ("a/1.lime", "a/b/2.lime", "c/bare",
                                                           "c/wrong.lime", "plain.lime")]
            out, _ = self.lime("-r", mount.path, status=0)
            self.assertEqual([line.split(": ")[0] for line in out[:-1]], names)
            out, err = self.lime("-r", "--data", mount.path, status=1)
            self.assertIn("7 files: 3 good, 1 bad, 1 unverified, 0 unreadable, 2 skipped", out[-1])
            self.assertIn("c/wrong.lime: offset", err)
            info = limetest.json_lines(self.run_ok(["lime", "info", "-r", "--json", mount.path]))
            self.assertEqual([one["file"] for one in info[:-1]], names)
            out, _ = self.lime("-r", names[0], names[1], status=0)
            self.assertIn("2 files: 2 good", out[-1])

    def test_skipped_files(self):
        """A skipped file is counted; --list-skipped adds name and reason; --all makes it bad."""
        os.symlink(self.put("c/wrong.lime"), self.put("a/link"))
        os.mkfifo(self.put("a/fifo"))
        working = sorted([".1.lime.limefs-stage", ".1.lime.limefs-new",
                          ".1.lime.lime-tmp-0123abcd-17-5a-0",
                          ".1.000000000040.0123456789abcdef.part", ".1.lock"])
        for name in working:
            limetest.put(self.put(f"a/{name}"), b"" if name.endswith("lock") else self.good[:1000])
        want = [*((f"a/{name}", "temporary file of a command") for name in working),
                ("a/fifo", "not a regular file"), ("a/link", "symbolic link"),
                ("a/other", "not a LIME container"), ("c/notes.txt", "not a LIME container")]
        out, err = self.lime("-r", self.top, status=0)
        self.assertIn("14 files: 5 good, 0 bad, 0 unverified, 0 unreadable, 9 skipped", out[-1])
        self.assertEqual((err, [line for line in out if "skipped: " in line]), ("", []))
        out, err = self.lime("-r", "--list-skipped", self.top, status=0)
        self.assertEqual([line for line in out if "skipped: " in line],
                         [f"{self.put(name)}: skipped: {why}" for name, why in want])
        self.assertEqual(self.lime("-r", "-q", "--list-skipped", self.top, status=0), ([], ""))
        out, err = self.lime("-r", "--all", self.top, status=1)
        self.assertIn("14 files: 5 good, 2 bad, 0 unverified, 0 unreadable, 7 skipped", out[-1])
        self.assertEqual(err, "".join(f"lime: {self.put(name)}: {why}\n"
                                      for name, why in want[-2:]))
        out, _ = self.lime("-r", "--json", "--list-skipped", self.top, status=0)
        lines = [json.loads(line) for line in out]
        self.assertEqual([(line["file"], line["error"]) for line in lines[:-1]
                          if line["status"] == "skipped"],
                         [(self.put(name), why) for name, why in want])
        self.assertEqual(lines[-1]["summary"]["skipped"], 9)
        self.lime(self.put("a/.1.lime.limefs-stage"), status=1)

    def test_json_lines(self):
        out, _ = self.lime("--json", "--data", "-r", self.top, status=1)
        lines = [json.loads(line) for line in out]
        self.assertEqual([line["status"] for line in lines[:-1]],
                         ["good", "good", "unverified", "bad", "good"])
        summary = lines[-1]["summary"]
        self.assertEqual({k: summary[k] for k in ("files", "good", "bad", "unverified",
                                                  "unreadable", "skipped", "warnings", "summed")},
                         {"files": 7, "good": 3, "bad": 1, "unverified": 1, "unreadable": 0,
                          "skipped": 2, "warnings": 0, "summed": 3 * len(SMALL)})

    def test_links_and_circles(self):
        os.symlink(self.top, self.put("a/circle"))
        os.symlink(self.put("c/wrong.lime"), self.put("a/link"))
        os.symlink("/nonexistent", self.put("a/nowhere"))
        os.mkfifo(self.put("a/fifo"))
        out, _ = self.lime("-r", self.top, status=0)
        self.assertIn("11 files: 5 good, 0 bad, 0 unverified, 0 unreadable, 6 skipped", out[-1])
        # lime follows a link that is named on the command line.
        out, _ = self.lime("-r", "--data", self.put("a/circle"), self.put("a/link"), status=1)
        self.assertIn("12 files: 3 good, 2 bad, 1 unverified, 0 unreadable, 6 skipped", out[-1])

    def test_a_link_in_the_place_of_a_directory(self):
        """lime check -r never follows a link that replaces a directory during the search."""
        outside = self.tempdir()
        limetest.put(os.path.join(outside, "secret"), self.good)
        os.symlink(outside, self.put("a/link"))
        ended = threading.Event()

        def exchange():
            while not ended.is_set():
                users.exchange(self.put("a/b"), self.put("a/link"))

        other = threading.Thread(target=exchange)
        other.start()
        try:
            for _ in range(100):
                done = run(["lime", "check", "-r", self.put("a")])
                self.assertNotIn(b"secret", done.stdout + done.stderr)
        finally:
            ended.set()
            other.join()

    def test_named_files_are_never_skipped(self):
        _, err = self.lime("-r", self.put("c/notes.txt"), status=2)
        self.assertIn("not a LIME container (no record header at offset 0)", err)
        self.lime("-r", self.put("none"), status=2)
        self.lime("-r", self.put("a/1.lime"), self.put("none"), status=2)
        self.lime(self.put("a"), status=2)

    @limetest.unittest.skipIf(os.geteuid() == 0 and not os.path.exists("/usr/bin/setpriv"),
                              "root may read everything")
    def test_directories_that_cannot_be_read(self):
        os.chmod(self.put("a/b"), 0)
        os.chmod(self.top, 0o755)
        command = [program("lime"), "check", "-r", self.top]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=65534", "--clear-groups", *command]
        done = self.fails(command, "a/b: read: Permission denied", status=2)
        self.assertIn(b"7 files: 4 good, 0 bad, 0 unverified, 1 unreadable, 2 skipped",
                      done.stdout)
        done = run([*command, "--json"])
        self.assertIn((self.put("a/b"), "unreadable"),
                      [(one["file"], one["status"])
                       for one in map(json.loads, done.stdout.splitlines()[:-1])])

    def test_files_from(self):
        names = [self.put("a/1.lime"), self.put("c/wrong.lime"), self.put("plain.lime")]
        for end, args in (("\n", []), ("\0", ["-0"])):
            for last in ("", end):
                text = (end.join(names) + last).encode()
                out, _ = self.lime("--data", *args, "--files-from", "-", status=1, input=text)
                self.assertIn("3 files: 2 good, 1 bad, 0 unverified, 0", out[-1])
                out, _ = self.lime("--data", *args, "--files-from", self.write("list", text),
                                   self.put("c/bare"), status=1)
                self.assertIn("4 files: 2 good, 1 bad, 1 unverified, 0", out[-1])
        odd = self.put("a\nb")
        os.rename(self.put("plain.lime"), odd)
        out, _ = self.lime("-0", "--files-from", "-", status=0, input=odd.encode() + b"\0")
        self.assertEqual(len(out), 2)
        self.lime("--files-from", "-", status=2, input=odd.encode())
        out, _ = self.lime("--files-from", "-", "-r", status=0, input=self.top.encode())
        self.assertIn("7 files: 5 good", out[-1])
        out, _ = self.lime("--files-from", "-", status=0, input=b"\n\n")
        self.assertIn("0 files", out[-1])
        for args in (["--files-from", "/nonexistent"], ["--files-from", self.top], ["-0", "x"],
                     ["--files-from"]):
            self.lime(*args, status=2)

    def test_head(self):
        names = b"\n".join([self.put("plain.lime").encode()] * 20000)
        child = subprocess.Popen([program("lime"), "check", "--files-from", "-"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        child.stdin.write(names)
        child.stdin.close()
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual((child.wait(), child.stderr.read()), (-13, b""))
        child.stderr.close()


if __name__ == "__main__":
    limetest.main()
