"""lime unpack and lime pack: round trips, lists, all or nothing."""
import hashlib
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import limetest
from limetest import container, header, program, record, run

BIG = os.urandom(1 << 20) + b"x"


class Directories(limetest.TestCase):
    def unpack(self, path, *args, status=0):
        directory = os.path.join(limetest.tempdir(), "parts")
        done = run(["lime", "unpack", *args, path, directory])
        self.assertEqual(done.returncode, status, done.stderr)
        return directory

    def pack(self, directory):
        target = os.path.join(limetest.tempdir(), "again.lime")
        done = run(["lime", "pack", directory, target])
        self.assertEqual(done.returncode, 0, done.stderr)
        return limetest.read(target), done.stderr.decode()


class RoundTrip(Directories):
    def round_trip(self, data):
        got, errors = self.pack(self.unpack(self.write("f.lime", data)))
        self.assertEqual(errors, "")
        self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(data).digest())

    def test_corpus(self):
        rows = limetest.manifest()
        self.assertTrue(rows)
        for path in {row["path"] for row in rows}:
            directory = self.unpack(path)
            for row in (row for row in rows if row["path"] == path):
                name = f"{row['ordinal']:03}-{row['type']}"
                data = limetest.read(os.path.join(directory, name))
                self.assertEqual(hashlib.sha256(data).hexdigest(),
                                 row["sha256"])
            original = limetest.read(path)
            self.assertEqual(self.pack(directory)[0], original + bytes(-len(original) % 8))

    def test_odd_types(self):
        self.round_trip(container([
            [(t, bytes(i)) for i, t in enumerate(
                [b"a/b", b"..", b".", b" lead", b"trail ", b"a;b$(c)`d`", b"\t\n\r\x01\x7f",
                 b"\xff\xfe" * 63, b"x" * 127, b"/" * 127, b"%2F", b"manifest.tsv", b"#", b""])]]))

    def test_sizes(self):
        self.round_trip(container([[("t", BIG[:n])] for n in
                                   (*range(17), 65535, 65536, 65537, 262144, len(BIG))]))

    def test_messages(self):
        self.round_trip(container([[("a", b"1"), ("b", b"2")], [("c", b"3")],
                                   [("d", b""), ("e", b""), ("f", b"")]]))

    def test_empty(self):
        self.round_trip(b"")

    def test_ten_thousand_of_a_type(self):
        data = container([[("same", str(i).encode())] for i in range(10000)])
        directory = self.unpack(self.write("f.lime", data))
        self.assertEqual(len(os.listdir(directory)), 10001)
        self.assertEqual(limetest.read(os.path.join(directory, "9999-same")), b"9998")
        self.assertEqual(self.pack(directory)[0], data)

    def test_malformed_comes_back_well_formed(self):
        bad = record("a", b"1", 0, 0) + record("b", b"2", 0, 0) + record("c", b"3", 1, 0)
        got, errors = self.pack(self.unpack(self.write("f.lime", bad)))
        self.assertEqual(got, container([[("a", b"1"), ("b", b"2")], [("c", b"3")]]))
        self.assertIn("warning", errors)
        self.assertIn("3 records", errors)


class Unpack(Directories):
    def test_manifest(self):
        directory = self.unpack(self.write("f.lime", container(
            [[("one", b"12345"), (b"a/\t\xff", b"")], [("three", b"x")]])))
        self.assertEqual(limetest.read(os.path.join(directory, "manifest.tsv")).decode(),
                         "#ordinal\tmessage\trecord\tmb\tme\tbytes\ttype\tfile\n"
                         "1\t1\t1\t1\t0\t5\tone\t001-one\n"
                         "2\t1\t2\t0\t1\t0\ta%2F%09%FF\t002-a%2F%09%FF\n"
                         "3\t2\t1\t1\t1\t1\tthree\t003-three\n")

    def test_fault_keeps_the_records_before_it(self):
        data = container([("good", b"data")]) + header("cut", 100, 1, 1) + b"x"
        path = self.write("f.lime", data)
        directory = os.path.join(limetest.tempdir(), "parts")
        self.fails(["lime", "unpack", path, directory],
                   "offset 152: record 2: the file ends inside the data")
        self.assertEqual(sorted(os.listdir(directory)), ["001-good", "manifest.tsv"])
        self.assertEqual(limetest.read(os.path.join(directory, "001-good")), b"data")

    def test_directory_must_be_empty(self):
        path = self.write("f.lime", container([("t", b"new")]))
        directory = limetest.tempdir()
        limetest.put(os.path.join(directory, "001-t"), b"old")
        self.fails(["lime", "unpack", path, directory], "-f")
        self.assertEqual(os.listdir(directory), ["001-t"])
        self.run_ok(["lime", "unpack", "-f", path, directory])
        self.assertEqual(limetest.read(os.path.join(directory, "001-t")), b"new")

    def test_never_through_a_link(self):
        path = self.write("f.lime", container([("t", b"new")]))
        victim, directory = self.write("victim", b"precious"), limetest.tempdir()
        os.symlink(victim, os.path.join(directory, "001-t"))
        os.symlink(victim, os.path.join(directory, "manifest.tsv"))
        self.run_ok(["lime", "unpack", "--force", path, directory])
        self.assertEqual(limetest.read(victim), b"precious")
        self.assertEqual(limetest.read(os.path.join(directory, "001-t")), b"new")

    def test_no_manifest_while_files_are_replaced(self):
        directory = self.unpack(self.write("f.lime", container([("t", b"1"), ("u", b"2")])))
        os.unlink(os.path.join(directory, "002-u"))
        os.mkdir(os.path.join(directory, "002-u"))
        path = self.write("g.lime", container([("t", b"3"), ("u", b"4")]))
        done = run(["lime", "unpack", "-f", path, directory])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(sorted(os.listdir(directory)), ["001-t", "002-u"])

    def test_full_disk_leaves_no_manifest(self):
        data = container([[("t", b"")] * 20])
        directory = os.path.join(limetest.tempdir(), "parts")
        self.fails(["bash", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "-", program("lime"),
                    "unpack", self.write("f.lime", data), directory],
                   f"{directory}: manifest.tsv: write: File too large")
        self.assertEqual(len(os.listdir(directory)), 20)
        self.assertNotIn("manifest.tsv", os.listdir(directory))

    @limetest.not_with_thread_sanitizer
    def test_signals(self):
        path = os.path.join(limetest.tempdir(), "big.lime")
        with open(path, "wb") as file:
            file.write(record("first", b"whole", 1, 0) + header("hole", 40 << 30, 0, 1))
            file.truncate(152 + 144 + (40 << 30))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            directory = limetest.tempdir()
            with subprocess.Popen([program("lime"), "unpack", path, directory],
                                  stderr=subprocess.DEVNULL) as child:
                self.assertTrue(limetest._wait(
                    lambda: any(name.startswith(".002-hole")
                                for name in os.listdir(directory)), 30))
                child.send_signal(number)
                self.assertEqual(child.wait(60), -number)
            self.assertEqual(os.listdir(directory), ["001-first"])

    def test_not_a_container(self):
        directory = os.path.join(limetest.tempdir(), "parts")
        self.assertEqual(run(["lime", "unpack", self.write("f", b"text"), directory]).returncode, 2)
        self.assertFalse(os.path.exists(directory))

    def test_directory_that_is_a_file(self):
        path = self.write("f.lime", container([("t", b"x")]))
        self.assertEqual(run(["lime", "unpack", path, path]).returncode, 1)


class PackDirectory(Directories):
    def manifest(self, *lines):
        directory = limetest.tempdir()
        limetest.put(os.path.join(directory, "file"), b"data")
        limetest.put(os.path.join(directory, "manifest.tsv"),
                     b"".join(line + b"\n" for line in lines))
        return directory

    def refused(self, directory, *errors):
        target = os.path.join(limetest.tempdir(), "target")
        done = run(["lime", "pack", directory, target])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(os.listdir(os.path.dirname(target)), [])
        for word in errors:
            self.assertIn(word, done.stderr.decode())

    def test_edited_file_counts(self):
        directory = self.unpack(self.write("f.lime", container([("a", b"short"), ("b", b"x")])))
        limetest.put(os.path.join(directory, "001-a"), b"much longer now")
        self.assertEqual(self.pack(directory)[0],
                         container([("a", b"much longer now"), ("b", b"x")]))

    def test_order_is_the_manifest_s(self):
        directory = self.manifest(b"9\t1\t1\t1\t0\t0\tb\tfile", b"", b"# remark",
                               b"1\t1\t2\t0\t1\t0\ta\tfile")
        self.assertEqual(self.pack(directory)[0], container([("b", b"data"), ("a", b"data")]))

    def test_names_stay_inside(self):
        for name in (b"../file", b"/etc/passwd", b"..", b".", b"", b"a/b"):
            self.refused(self.manifest(b"1\t1\t1\t1\t1\t4\tt\t" + name), "line 1",
                         "not a file name")

    def test_link_is_refused(self):
        directory = self.manifest(b"1\t1\t1\t1\t1\t4\tt\tlink")
        os.symlink("/etc/passwd", os.path.join(directory, "link"))
        self.refused(directory, "link", "symbolic link")

    def test_nonsense(self):
        for line in (b"nonsense", b"1\t1\t1\t1\t1\t4\tt", b"1\t1\t1\t1\t1\t4\tt\tfile\tmore",
                     b"1\t1\t1\t2\t1\t4\tt\tfile", b"1\t1\t1\t1\t\t4\tt\tfile",
                     b"1\t1\t1\t1\t1\t4\t" + b"t" * 128 + b"\tfile",
                     b"1\t1\t1\t1\t1\t4\ta%00b\tfile", b"1\t1\t1\t1\t1\t4\tt\tfi\0le"):
            self.refused(self.manifest(line), "line 1")

    def test_empty_manifest(self):
        self.refused(self.manifest(), "manifest.tsv", "empty")

    def test_endless_line(self):
        self.refused(self.manifest(b"# one", b"x" * 10000), "line 2", "too long")

    def test_manifest_must_be_a_file(self):
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
            directory = limetest.tempdir()
            make(os.path.join(directory, "manifest.tsv"))
            self.refused(directory, "manifest.tsv: open: ")

    def test_missing_file_or_manifest(self):
        self.refused(self.manifest(b"1\t1\t1\t1\t1\t4\tt\tnone"), "none", "No such file")
        self.refused(limetest.tempdir(), "manifest.tsv", "No such file")
        self.refused("/nonexistent", "No such file")


class PackFiles(limetest.TestCase):
    def setUp(self):
        self.directory = limetest.tempdir()
        for name, data in (("a", b"aaa"), ("b c", b"bbbb"), ("d", BIG)):
            limetest.put(os.path.join(self.directory, name), data)

    def pack(self, *args, status=0):
        done = run(["lime", "pack", "-o", "out", *args], cwd=self.directory)
        self.assertEqual(done.returncode, status, done.stderr)
        self.errors = done.stderr.decode()
        return limetest.read(os.path.join(self.directory, "out")) if status == 0 else None

    def list(self, text):
        with open(os.path.join(self.directory, "list"), "w", encoding="utf-8") as file:
            file.write(text)
        return "--list", "list"

    def test_command_line(self):
        got = self.pack("-t", "one", "a", "--type", "two", "b c", "-m", "-t", "three", "d",
                        "--new-message", "-t", "four", "a")
        self.assertEqual(got, container([[("one", b"aaa"), ("two", b"bbbb")], [("three", BIG)],
                                         [("four", b"aaa")]]))

    def test_list(self):
        got = self.pack(*self.list("\n\na  one\nb c\ttwo words \n\n \n\nd\t three\n\na four"))
        self.assertEqual(got, container([[("one", b"aaa"), ("two words", b"bbbb")],
                                         [("three", BIG)], [("four", b"aaa")]]))

    def test_list_nonsense(self):
        for text, number in (("a one\nword\n", 2), ("a b c\n", 1), ("a one\n" + "y" * 9999, 2),
                             ("\n\na " + "x" * 128, 3)):
            self.pack(*self.list(text), status=1)
            if "x" not in text:
                self.assertIn(f"list: line {number}: ", self.errors)
            self.assertFalse(os.path.exists(os.path.join(self.directory, "out")))

    def test_type_that_readers_may_refuse(self):
        self.assertEqual(self.pack("-t", "é", "a"), container([("é", b"aaa")]))
        self.assertIn("warning", self.errors)

    def test_length_must_be_known(self):
        os.mkfifo(os.path.join(self.directory, "fifo"))
        for path in ("fifo", "/dev/zero"):
            self.pack("-t", "t", path, status=1)
            self.assertIn("not a regular file", self.errors)
        self.pack("-t", "t", ".", status=1)
        self.assertIn("Is a directory", self.errors)

    def test_names_that_look_like_options(self):
        os.rename(os.path.join(self.directory, "a"), os.path.join(self.directory, "-a"))
        self.assertEqual(self.pack("-t", "t", "--", "-a"), container([("t", b"aaa")]))


class AllOrNothing(limetest.TestCase):
    def setUp(self):
        self.directory = limetest.tempdir()
        self.target = os.path.join(self.directory, "target")
        self.data = self.write("data", BIG)

    def existing(self, mode=0o640):
        limetest.put(self.target, b"precious")
        os.chmod(self.target, mode)

    def test_failure_leaves_the_old_file(self):
        self.existing()
        done = run(["lime", "pack", "-fo", self.target, "-t", "t", self.data, "-t", "t", "/none"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(limetest.read(self.target), b"precious")
        self.assertEqual(os.listdir(self.directory), ["target"])

    def test_data_that_change(self):
        """lime pack fails if a program writes to an input while it is copied."""
        directory = self.tempdir()
        path = os.path.join(directory, "c")
        limetest.put(path, container([("t", b"old")]))
        before = limetest.read(path)
        for command in (["pack", "-fo", path, "-t", "t", self.data],
                        ["append", path, "-t", "t", self.data]):
            os.utime(self.data, (1e9, 1e9))
            fault = faults.Faults(directory)
            fault.arm(faults.LIME, "copy_file_range", 1, 0, faults.HANG)
            with subprocess.Popen([program("lime"), *command], env=fault.environment(),
                                  stderr=subprocess.PIPE) as child:
                self.assertTrue(limetest._wait(lambda: fault.struck, 60))
                with open(self.data, "r+b") as file:
                    file.write(b"changed")
                fault.disarm()
                errors = child.communicate(timeout=60)[1]
            self.assertEqual(child.returncode, 1)
            self.assertIn(b"read: the file changed while it was read", errors)
            self.assertEqual(limetest.read(path), before)

    def test_limit_on_size(self):
        self.existing()
        done = run(["bash", "-c", 'trap "" XFSZ; ulimit -f 100; exec "$@"', "-", program("lime"),
                    "pack", "-fo", self.target, "-t", "t", self.data])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.decode(), f"lime: {self.target}: write: File too large\n")
        self.assertEqual(os.listdir(self.directory), ["target"])
        self.assertEqual(limetest.read(self.target), b"precious")


if __name__ == "__main__":
    limetest.main()
