"""lime ls: text, -l, -h, --json, faults, several files; and lime itself."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from limetest import container, header, record, run

TWO = container([("first", b"12345"), ("second", b"x" * 2000)])


class Text(limetest.TestCase):
    def test_plain(self):
        path = self.write("two.lime", TWO)
        self.assertEqual(self.run_ok(["lime", "ls", "--bytes", path]).decode(),
                         "   #  msg.rec   size  type\n"
                         "   1  1.1          5  first\n"
                         "   2  1.2       2000  second\n")

    def test_long(self):
        path = self.write("two.lime", TWO)
        self.assertEqual(self.run_ok(["lime", "ls", "-l", "--bytes", path]).decode(),
                         "   #  msg.rec   size  header    data  pad  flags  type\n"
                         "   1  1.1          5       0     144    3  MB --  first\n"
                         "   2  1.2       2000     152     296    0  -- ME  second\n")

    def test_sizes(self):
        """Sizes are printed as by ls -h: one digit after the point below 10."""
        sizes = {0: "0", 1023: "1023", 1024: "1.0K", 10188: "9.9K", 10189: "10K", 148824: "145K",
                 1022976: "999K", 1023488: "1.0M"}
        path = self.write("f", container([("t", bytes(n)) for n in sizes]))
        rows = self.run_ok(["lime", "ls", path]).decode().splitlines()[1:]
        self.assertEqual([row.split()[2] for row in rows], list(sizes.values()))

    def test_columns_stay_aligned(self):
        path = self.write("many.lime", container([[("t", b"x" * n)] for n in range(12)] * 1000))
        lines = self.run_ok(["lime", "ls", "-l", path]).decode().splitlines()
        self.assertEqual(len(lines), 12001)
        self.assertEqual(len({line.index("MB ME") for line in lines[1:]}), 1)

    def test_several_files_have_heads(self):
        one, two = self.write("a.lime", TWO), self.write("b.lime", TWO)
        out = self.run_ok(["lime", "ls", one, two]).decode()
        self.assertIn(f"{one}:\n", out)
        self.assertIn(f"\n\n{two}:\n", out)

    def test_a_missing_file_prints_nothing(self):
        """Above the summary, lime prints nothing on standard output, not even an empty line."""
        one, two = self.write("a.lime", TWO), self.write("b.lime", TWO)
        no = one + ".no"
        for command in (["ls"], ["ls", "-l"], ["info"], ["lfn"]):
            for files in ([one, two], [one, one]):
                expected = run(["lime", *command, *files]).stdout.split(b"2 files: ")[0]
                for named in ([no, *files], [files[0], no, no, files[1]], [*files, no]):
                    shown = run(["lime", *command, *named]).stdout
                    self.assertEqual(shown.split(f"{len(named)} files: ".encode())[0], expected)
            self.assertTrue(run(["lime", *command, no, no]).stdout.startswith(b"2 files: "))

    def test_empty_file_has_no_records(self):
        path = self.write("empty", b"")
        self.fails(["lime", "ls", path], f"lime: {path}: the file is empty", status=1,
                   out=b"   #  msg.rec   size  type\n")


class Json(limetest.TestCase):
    def test_members(self):
        path = self.write("two.lime", TWO)
        self.assertEqual(json.loads(self.run_ok(["lime", "ls", "--json", path])), {
            "file": path, "size": len(TWO), "messages": 1, "deviations": 0, "fault": None,
            "status": "good", "error": None, "records": [
                {"ordinal": 1, "message": 1, "record": 1, "type": "first",
                 "name": "001-first", "header_offset": 0, "data_offset": 144, "bytes": 5,
                 "padding": 3, "mb": True, "me": False},
                {"ordinal": 2, "message": 1, "record": 2, "type": "second",
                 "name": "002-second", "header_offset": 152, "data_offset": 296,
                 "bytes": 2000, "padding": 0, "mb": False, "me": True}]})

    def test_corpus(self):
        files = {}
        for row in limetest.manifest():
            files.setdefault(row["path"], []).append(row)
        self.assertTrue(files)
        listings = limetest.json_lines(self.run_ok(["lime", "ls", "--json", *files]))
        for listing, (path, rows) in zip(listings, files.items(), strict=True):
            self.assertEqual(listing["file"], path)
            self.assertEqual(listing["size"], os.path.getsize(path))
            for got, row in zip(listing["records"], rows, strict=True):
                self.assertEqual(
                    (got["message"], got["record"], got["type"], got["mb"], got["me"],
                     got["bytes"], got["ordinal"]),
                    (row["message"], row["record"], row["type"], row["MB"], row["ME"],
                     row["bytes"], row["ordinal"]))

    def test_type_that_is_not_utf8(self):
        types = [b"caf\xc3\xa9", b"\xc3", b"a\xff\xed\xa0\x80b", b"\xf4\x90\x80\x80", b"\x01\"\\"]
        path = self.write("odd.lime", container([(t, b"") for t in types]))
        out = self.run_ok(["lime", "ls", "--json", path])
        self.assertTrue(out.isascii())
        got = json.loads(out)["records"]
        self.assertEqual([r["type"] for r in got],
                         ["café", "%C3", "a%FF%ED%A0%80b", "%F4%90%80%80", "\x01\"\\"])
        self.assertEqual([r.get("type_hex") for r in got],
                         [None, "c3", "61ffeda08062", "f4908080", None])

    def test_fault_and_deviations(self):
        data = record("x", b"", 0, 1) + header("cut", 100, 1, 1) + b"only"
        done = run(["lime", "ls", "--json", self.write("cut.lime", data)])
        self.assertEqual(done.returncode, 1)
        listing = json.loads(done.stdout)
        self.assertEqual(len(listing["records"]), 1)
        self.assertEqual(listing["deviations"], 1)
        fault = listing["fault"]
        self.assertEqual((fault["code"], fault["offset"], fault["ordinal"]), ("data-cut", 144, 2))
        self.assertIn("4 of 100 bytes", fault["message"])


class Failures(limetest.TestCase):
    def check(self, path, status, *messages):
        done = run(["lime", "ls", path])
        self.assertEqual(done.returncode, status, done.stderr)
        for word in ("lime: ", path, *messages):
            self.assertIn(word, done.stderr.decode())
        return done.stdout

    def test_fault_lists_the_records_before_it(self):
        for n in range(1, 144):
            path = self.write("cut", TWO + header("cut", 8, 1, 1)[:n])
            self.assertIn(b"second", self.check(path, 1, f"offset {len(TWO)}: record 3: "))

    def test_not_a_container(self):
        self.check(self.write("text", b"hello, world\n" * 20), 2, "not a LIME container")
        self.check(self.write("v2", header("x", 0, 1, 1, version=2)), 1, "version 2")
        self.check(self.write("zeros", bytes(1000)), 1, "zeros instead of a record header")
        self.check(self.write("bit", b"\x44" + TWO[1:]), 1, "first record header is damaged")
        self.check(limetest.tempdir(), 2, "directory")
        self.check("/nonexistent", 2, "No such file")

    def test_fifo_never_blocks(self):
        path = os.path.join(limetest.tempdir(), "fifo")
        os.mkfifo(path)
        self.check(path, 2, "not a regular file")


class Command(limetest.TestCase):
    COMMANDS = ["ls", "info", "cat", "unpack", "pack", "append", "replace", "rm", "set", "lfn",
                "check", "checksum", "verify", "repair", "stage", "refs", "qcdml", "convert",
                "join"]

    def test_help(self):
        overview = self.run_ok(["lime", "--help"]).decode()
        self.assertEqual(self.run_ok(["lime", "help"]).decode(), overview)
        self.assertEqual(self.run_ok(["lime", "help", "--help"]).decode(), overview)
        for name in self.COMMANDS:
            self.assertIn(f"lime {name} ", overview)
            text = self.run_ok(["lime", name, "--help"]).decode()
            self.assertTrue(text.startswith(f"Usage: lime {name} "))
            self.assertIn("Exit status", text)
            self.assertIn("Example", text)
            self.assertLess(max(map(len, text.splitlines())), 80, name)
            self.assertEqual(self.run_ok(["lime", "help", name]).decode(), text)

    def test_version(self):
        self.assertRegex(self.run_ok(["lime", "--version"]).decode(), r"^lime .*\d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        for args in ([], ["nonsense"], ["help", "nonsense"], ["ls"], ["ls", "--nonsense", "x"],
                     ["ls", "-x", "x"], ["cat", "f"], ["cat"], ["cat", "f", "1", "--range", "x"],
                     ["unpack", "f"], ["pack", "d"], ["pack", "-o", "f"],
                     ["pack", "-o", "f", "path"], ["pack", "-o", "f", "-t", "type"],
                     ["pack", "-o", "f", "-m"], ["pack", "-o", "f", "-t", "a", "-t", "b", "p"],
                     ["pack", "-o", "f", "-t", "", "p"], ["pack", "-o", "f", "-t", "x" * 128, "p"],
                     ["check"], ["check", "-z", "f"], ["info"], ["info", "-x", "f"],
                     ["info", "--nonsense", "f"], ["repair"]):
            done = run(["lime", *args], cwd=limetest.tempdir())
            self.assertEqual(done.returncode, 2, args)
            self.assertTrue(done.stderr, args)
            self.assertEqual(done.stdout, b"", args)


@limetest.needs_fuse
class Mounted(limetest.TestCase):
    def test_same_as_the_container(self):
        for name in ("tm_lemon_prop_4444_p64_n1.lime", "clime_pack_multi.lime"):
            path = os.path.join(limetest.CORPUS, name)
            with limetest.Mount(path) as mount:
                shown = json.loads(self.run_ok(["lime", "ls", "--json", mount.path]))
                table = self.run_ok(["lime", "ls", "-l", mount.path])
            below = json.loads(self.run_ok(["lime", "ls", "--json", path]))
            self.assertEqual(shown["records"], below["records"])
            self.assertEqual(table, self.run_ok(["lime", "ls", "-l", path]))

    def test_fault(self):
        path = self.write("cut.lime", TWO[:-1000])
        with limetest.Mount(path) as mount:
            done = self.fails(["lime", "ls", "--json", mount.path], "record 2")
            shown = json.loads(done.stdout)
            self.assertIn("record 2", shown["fault"]["message"])
            self.assertEqual([r["type"] for r in shown["records"]], ["first"])


class Errors(limetest.TestCase):
    def test_which(self):
        """The exit status distinguishes a file that is not a container from an unreadable one."""
        junk = self.write("junk", b"junk" * 100)
        for command in ("ls", "info"):
            done = run(["lime", command, "--json", junk, junk + "-none"])
            self.assertEqual(done.returncode, 2)
            self.assertEqual([one["error"] for one in limetest.json_lines(done.stdout)],
                             ["not a LIME container (no record header at offset 0)",
                              "open: No such file or directory"])


if __name__ == "__main__":
    limetest.main()
