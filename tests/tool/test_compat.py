"""The C-LIME and Lemon names: the same output byte for byte, without the faults."""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from limetest import container, header, program, record, run

FILE = container([[("xlf-info", b"plaquette = 0.5\n")],
                  [("ildg-format", b"<x/>"), ("empty", b""), ("nul", b"before\0after"),
                   ("binary", b"a\x80"), ("text4095", b"t" * 4095), ("text4096", b"u" * 4096),
                   ("text63999", b"v" * 63999), ("text64000", b"w" * 64000)]])


def head(message, rec, type, length, padding, mb, me):
    return (f"\n\nMessage:        {message}\nRecord:         {rec}\nType:           {type}\n"
            f"Data Length:    {length}\nPadding Length: {padding}\nMB flag:        {mb}\n"
            f"ME flag:        {me}\n")


def contents(binary, longest):
    """Returns what the original programs print for FILE."""
    def text(data):
        shown = f'"{data}" ' if len(data) < longest else "[Long record skipped]"
        return f"Data:           {shown}\n"
    return (head(1, 1, "xlf-info", 16, 0, 1, 1) + text("plaquette = 0.5\n") +
            head(2, 1, "ildg-format", 4, 4, 1, 0) + text("<x/>") +
            head(2, 2, "empty", 0, 0, 0, 0) + text("") +
            head(2, 3, "nul", 12, 4, 0, 0) + text("before") +
            head(2, 4, "binary", 2, 6, 0, 0) + f"Data:           {binary}\n" +
            head(2, 5, "text4095", 4095, 1, 0, 0) + text("t" * 4095) +
            head(2, 6, "text4096", 4096, 0, 0, 0) + text("u" * 4096) +
            head(2, 7, "text63999", 63999, 1, 0, 0) + text("v" * 63999) +
            head(2, 8, "text64000", 64000, 0, 0, 1) + text("w" * 64000))


class Contents(limetest.TestCase):
    def test_lime(self):
        self.assertEqual(self.run_ok(["lime_contents", self.write("f", FILE)]).decode(),
                         contents("[Binary data]", 64000))

    def test_lemon(self):
        self.assertEqual(self.run_ok(["lemon_contents", self.write("f", FILE)]).decode(),
                         contents("[Binary data].", 4096))

    def test_empty(self):
        self.assertEqual(self.run_ok(["lime_contents", self.write("f", b"")]), b"")

    def test_corpus(self):
        rows = limetest.manifest()
        for path in {row["path"] for row in rows}:
            out = self.run_ok(["lime_contents", path])
            for row in (row for row in rows if row["path"] == path):
                self.assertIn(head(row["message"], row["record"], row["type"], row["bytes"],
                                   -row["bytes"] % 8, row["MB"], row["ME"]).encode(), out)

    def test_first_record_without_mb_is_of_message_1(self):
        out = self.run_ok(["lime_contents", self.write("f", record("t", b"", 0, 1))])
        self.assertIn(b"Message:        1\nRecord:         1\n", out)

    def test_truncated_data_are_not_invented(self):
        good = container([("good", b"data")])
        for tail in (header("t", 100, 1, 1) + b"only", header("t", 2**64 - 144, 1, 1),
                     header("t", 0, 1, 1)[:100], b"junk"):
            path = self.write("f", good + tail)
            for name in ("lime_contents", "lemon_contents"):
                done = run([name, path])
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout.decode(), head(1, 1, "good", 4, 4, 1, 1) +
                                 'Data:           "data" \n')
                self.assertTrue(done.stderr.startswith(f"{name}: {path}: offset ".encode()))


class Extract(limetest.TestCase):
    def setUp(self):
        self.path = self.write("f", FILE + record("empty", b"second of its type", 1, 1))

    def test_record(self):
        self.assertEqual(self.run_ok(["lime_extract_record", self.path, "2", "3"]),
                         b"before\0after")
        self.assertEqual(self.run_ok(["lime_extract_record", self.path, "2", "8", "ignored"]),
                         b"w" * 64000)

    def test_first_record_of_a_type(self):
        self.assertEqual(self.run_ok(["lime_extract_type", self.path, "empty"]), b"")
        self.assertEqual(self.run_ok(["lime_extract_type", self.path, "xlf-info"]),
                         b"plaquette = 0.5\n")

    def test_corpus(self):
        rows = limetest.manifest()
        self.assertTrue(rows)
        seen = set()
        for row in rows:
            out = self.run_ok(["lime_extract_record", row["path"], str(row["message"]),
                               str(row["record"])])
            self.assertEqual(hashlib.sha256(out).hexdigest(), row["sha256"])
            if (row["path"], row["type"]) not in seen:
                seen.add((row["path"], row["type"]))
                self.assertEqual(self.run_ok(["lime_extract_type", row["path"], row["type"]]),
                                 out)

    def test_missing_records(self):
        for args in (["lime_extract_record", self.path, "1", "2"],
                     ["lime_extract_record", self.path, "9", "1"],
                     ["lime_extract_type", self.path, "none"]):
            self.fails(args, "no such record", out=b"")

    def test_numbers(self):
        for args in (("0", "1"), ("1", "0"), ("-1", "1"), ("x", "1"), ("1", "99999999999")):
            self.fails(["lime_extract_record", self.path, *args], "Invalid ", out=b"")


class Pack(limetest.TestCase):
    def setUp(self):
        self.directory = limetest.tempdir()
        for name, data in (("a", b"aaa"), ("b", b"x" * 123456789 if limetest.STRESS else b"bb")):
            limetest.put(os.path.join(self.directory, name), data)

    def pack(self, text):
        with open(os.path.join(self.directory, "list"), "w", encoding="ascii") as file:
            file.write(text)
        return run(["lime_pack", "list", "out.lime"], cwd=self.directory)

    def result(self):
        return limetest.read(os.path.join(self.directory, "out.lime"))

    def test_output_and_container(self):
        done = self.pack("a type-one\na\ttype-two more words\n\n\n  a  type-three  \n\n")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.decode(),
                         "msg rec   bytes type\n"
                         " 1   1        3 type-one\n\t\ta\n"
                         " 1   2        3 type-two\n\t\ta\n"
                         " 2   1        3 type-three\n\t\ta\n")
        self.assertEqual(self.result(), container([[("type-one", b"aaa"), ("type-two", b"aaa")],
                                                   [("type-three", b"aaa")]]))

    def test_corpus_file_made_by_c_lime(self):
        original = os.path.join(limetest.CORPUS, "clime_pack_multi.lime")
        self.run_ok(["lime", "unpack", original, os.path.join(self.directory, "p")])
        done = self.pack("p/001-scidac-file-xml scidac-file-xml\n"
                         "p/002-scidac-binary-data scidac-binary-data\n\n"
                         "p/003-one-byte one-byte\np/004-ildg-binary-data ildg-binary-data\n"
                         "p/005-text text\n\np/006-last-message last-message\n")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.result(), limetest.read(original))

    def test_failure_is_reported_and_leaves_nothing(self):
        for text in ("a t\nnone t\n", "a t\nword\n", f"a {'t' * 128}\n"):
            done = self.pack(text)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stderr.startswith(b"lime_pack: "))
            self.assertEqual(sorted(os.listdir(self.directory)), ["a", "b", "list"])


class Unpack(limetest.TestCase):
    def test_output_and_files(self):
        directory = limetest.tempdir()
        with open(os.path.join(directory, "f.lime"), "wb") as file:
            file.write(container([[("one", b"1"), ("two", b"22")], [("three", b"x" * 123456)]]))
        for _ in range(2):  # the second time over existing files
            out = run(["lime_unpack", "f.lime"], cwd=directory, check=True).stdout
            self.assertEqual(out.decode(), "   bytes file\n"
                                           "\n       1 f.lime.contents/msg01.rec01.one\n"
                                           "       2 f.lime.contents/msg01.rec02.two\n"
                                           "\n  123456 f.lime.contents/msg02.rec01.three\n")
        parts = os.path.join(directory, "f.lime.contents")
        self.assertEqual(sorted(os.listdir(parts)),
                         ["msg01.rec01.one", "msg01.rec02.two", "msg02.rec01.three"])
        self.assertEqual(limetest.read(os.path.join(parts, "msg02.rec01.three")), b"x" * 123456)

    def test_hostile_names_and_types(self):
        directory = limetest.tempdir()
        name = "f; touch harm $(touch harm) `touch harm`"
        with open(os.path.join(directory, name), "wb") as file:
            file.write(container([(b"../../x", b""), (b"a;\x01\xff", b"y"), (b"/" * 127, b"")]))
        run(["lime_unpack", name], cwd=directory, check=True)
        self.assertEqual(sorted(os.listdir(directory)), [name, name + ".contents"])
        self.assertEqual(sorted(os.listdir(os.path.join(directory, name + ".contents")))[:2],
                         ["msg01.rec01...%2F..%2Fx", "msg01.rec02.a;%01%FF"])

    def test_fault(self):
        path = self.write("f", container([("t", b"x")]) + header("u", 99, 1, 1))
        done = run(["lime_unpack", path])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(os.listdir(path + ".contents"), ["msg01.rec01.t"])

    def test_directory_cannot_be_made(self):
        path = self.write("f", container([("t", b"x")]))
        with open(path + ".contents", "wb"):
            pass
        self.assertEqual(run(["lime_unpack", path]).returncode, 1)


class Usage(limetest.TestCase):
    def test_usage(self):
        for name, arguments in (("lime_contents", "<lime_file>"),
                                ("lemon_contents", "<lemon_file>"),
                                ("lime_extract_record", "<lime_file> <msgno> <recno>"),
                                ("lime_extract_type", "<lime_file> <lime_type>"),
                                ("lime_pack", "<filelist_file> <lime_file>"),
                                ("lime_unpack", "<lime_file>")):
            done = run([name])
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertEqual(done.stderr.decode(), f"Usage: {program(name)} {arguments}\n")
            text = self.run_ok([name, "--help"]).decode()
            self.assertTrue(text.startswith(f"Usage: {name} {arguments}\n"))
            self.assertLess(max(map(len, text.splitlines())), 80, name)

    def test_failures_are_all_1(self):
        for path in ("/nonexistent", "/", self.write("f", b"text" * 99)):
            for args in (["lime_contents", path], ["lemon_contents", path],
                         ["lime_extract_record", path, "1", "1"],
                         ["lime_extract_type", path, "t"], ["lime_unpack", path],
                         ["lime_pack", path, path + ".out"]):
                self.assertEqual(run(args).returncode, 1, args)


if __name__ == "__main__":
    limetest.main()
