"""lime cat: selectors, ranges, every kind of output, faults."""
import fcntl
import os
import pty
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from limetest import container, header, program, record, run

BIG = bytes(range(256)) * 4096 * 3 + b"end"  # larger than a pipe and than any buffer, of odd length
FILE = container([[("xlf-info", b"plaquette"), ("2", b"typed two"), ("1.1", b"typed one.one")],
                  [("ildg-binary-data", BIG), ("twice", b"a"), ("twice", b"b"),
                   ("a/b %", b"odd")]])


class Selectors(limetest.TestCase):
    def cat(self, *args):
        return self.run_ok(["lime", "cat", self.write("f.lime", FILE), *args])

    def refused(self, *args):
        done = run(["lime", "cat", self.write("f.lime", FILE), *args])
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        return done.stderr.decode()

    def test_ordinal(self):
        self.assertEqual(self.cat("1"), b"plaquette")
        self.assertEqual(self.cat("6"), b"b")

    def test_message_and_record(self):
        self.assertEqual(self.cat("2.1"), BIG)
        self.assertEqual(self.cat("1.3"), b"typed one.one")

    def test_type(self):
        self.assertEqual(self.cat("xlf-info"), b"plaquette")
        self.assertEqual(self.cat("-t", "2"), b"typed two")
        self.assertEqual(self.cat("--type=1.1"), b"typed one.one")

    def test_type_as_listed_and_mount_name(self):
        self.assertEqual(self.cat("a/b %"), b"odd")
        self.assertEqual(self.cat("a%2Fb %25"), b"odd")
        self.assertEqual(self.cat("007-a%2Fb %25"), b"odd")
        self.assertEqual(self.cat("005-twice"), b"a")

    def test_several_in_the_order_given(self):
        self.assertEqual(self.cat("6", "-t", "2", "--", "5"), b"btyped twoa")

    def test_ambiguous_type_names_the_ordinals(self):
        self.assertIn("5, 6", self.refused("twice"))
        many = self.write("many", record("t", b"", 1, 1) * 10000)
        done = self.fails(["lime", "cat", many, "t"], "10000 records")
        self.assertLess(len(done.stderr), 500)

    def test_missing(self):
        for word in ("0", "8", "3.1", "1.4", "none", "99999999999999999999", "1.99999999999"):
            self.assertIn("no such record", self.refused(word))

    def test_a_second_file(self):
        """A command that takes one file treats a second argument as a record."""
        one, two = self.write("a", container([("t", b"x")])), self.write("b", b"")
        for args in (["cat", one, two], ["rm", one, two], ["replace", one, two, two],
                     ["lfn", "--set", "n", one, two]):
            self.fails(["lime", *args],
                       f"a: record '{two}': no such record; name only one FILE\n")


class Terminal(limetest.TestCase):
    def test_binary_data(self):
        """Data go to a terminal only if they begin with text, or by -f."""
        cases = [(b"<a>\xc3\xa9\t\n</a>\0\0", True), (b"a" * 4095 + "\u00e9".encode(), True),
                 (b"", True), (b"a\x1b[2J", False), (b"a\xff", False), (b"a\0b", False),
                 (b"\x01" * 9000, False)]
        path = self.write("f", container([[("t", data) for data, _ in cases]]))
        for i, (data, is_text) in enumerate(cases, 1):
            for force in ([], ["-f"]):
                done, shown = limetest.run_on_terminal(["lime", "cat", *force, path, str(i)])
                good = is_text or bool(force)
                self.assertEqual(done.returncode, 0 if good else 1)
                self.assertEqual(shown.replace(b"\r\n", b"\n"), data if good else b"")
                self.assertEqual(done.stderr.decode(), "" if good else f"lime: {path}: record {i} "
                                 "holds binary data; redirect it, or use -f\n")

    def test_exports(self):
        path = os.path.join(limetest.CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
        for name, status in ((".npy", 1), (".zarr/.zgroup", 0), (".zarr/field/.zarray", 0)):
            done, shown = limetest.run_on_terminal(["lime", "cat", path, "ildg-binary-data" + name])
            self.assertEqual((done.returncode, bool(shown)), (status, status == 0), name)


class Ranges(limetest.TestCase):
    def cat(self, text, status=0):
        done = run(["lime", "cat", self.write("f.lime", FILE), "2.1", "--range", text])
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def test_inside(self):
        self.assertEqual(self.cat("0:5"), BIG[:5])
        self.assertEqual(self.cat("1k:3"), BIG[1024:1027])
        self.assertEqual(self.cat("1M:1M"), BIG[1 << 20:2 << 20])
        self.assertEqual(self.cat("7:"), BIG[7:])
        self.assertEqual(self.cat(f"{len(BIG)}:"), b"")
        self.assertEqual(self.cat(f"{len(BIG) - 1}:1"), BIG[-1:])

    def test_beyond(self):
        for text in (f"0:{len(BIG) + 1}", f"{len(BIG) + 1}:", f"{len(BIG)}:1", "1:16777215T",
                     "4G:1", "18446744073709551615:18446744073709551615"):
            self.assertEqual(self.cat(text, 1), b"")

    def test_nonsense(self):
        for text in ("", "5", ":", "a:b", "-1:2", "1:2:3", "1:99999999999T", "0x10:1"):
            self.assertEqual(self.cat(text, 2), b"")


class Outputs(limetest.TestCase):
    def setUp(self):
        self.path = self.write("f.lime", FILE)
        self.out = os.path.join(limetest.tempdir(), "out")

    def read(self):
        return limetest.read(self.out)

    def test_file(self):
        with open(self.out, "wb") as out:
            run(["lime", "cat", self.path, "4"], stdout=out, check=True)
        self.assertEqual(self.read(), BIG)

    def test_file_in_its_middle(self):
        with open(self.out, "wb") as out:
            out.write(b"before")
            out.flush()
            run(["lime", "cat", self.path, "4", "5"], stdout=out, check=True)
        self.assertEqual(self.read(), b"before" + BIG + b"a")

    def test_file_for_appending(self):
        for _ in range(2):
            with open(self.out, "ab") as out:
                run(["lime", "cat", self.path, "4"], stdout=out, check=True)
        self.assertEqual(self.read(), BIG * 2)

    def test_other_file_system(self):
        directory = "/dev/shm"
        if not os.access(directory, os.W_OK):
            self.skipTest("no /dev/shm")
        self.out = os.path.join(directory, f"limetest-{os.getpid()}")
        self.addCleanup(os.unlink, self.out)
        self.test_file()

    def test_pipe_that_does_not_block(self):
        read, write = os.pipe()
        os.set_blocking(write, False)
        with subprocess.Popen([program("lime"), "cat", self.path, "4"], stdout=write) as child:
            os.close(write)
            with os.fdopen(read, "rb") as pipe:
                self.assertEqual(pipe.read(), BIG)
        self.assertEqual(child.returncode, 0)

    def test_pipe_of_one_page(self):
        read, write = os.pipe()
        fcntl.fcntl(write, 1031, 4096)  # F_SETPIPE_SZ
        with subprocess.Popen([program("lime"), "cat", self.path, "4"], stdout=write) as child:
            os.close(write)
            with os.fdopen(read, "rb") as pipe:
                self.assertEqual(pipe.read(), BIG)
        self.assertEqual(child.returncode, 0)

    def test_closed_pipe_ends_without_a_message(self):
        read, write = os.pipe()
        os.close(read)
        done = run(["lime", "cat", self.path, "4"], stdout=write)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (-13, b""))

    def test_no_stdout(self):
        done = run(["bash", "-c", 'exec "$0" cat "$1" 1 >&-', program("lime"), self.path])
        self.assertEqual(done.returncode, 1)

    def test_no_stderr(self):
        """lime writes no message to a file that was opened as descriptor 2."""
        target = os.path.join(limetest.tempdir(), "target")
        done = run(["bash", "-c", 'exec "$0" pack -o "$2" -t t "$1" -t t /none 2>&- >&- <&-',
                    program("lime"), self.path, target])
        self.assertEqual(done.returncode, 1)
        self.assertFalse(os.path.exists(target))


class Progress(limetest.TestCase):
    def bar(self, wait):
        path = self.write("f.lime", FILE)
        master, slave = pty.openpty()
        with subprocess.Popen([program("lime"), "cat", path, "4"], stdout=subprocess.PIPE,
                              stderr=slave) as child:
            os.close(slave)
            child.stdout.read(1)
            time.sleep(wait)
            self.assertEqual(1 + len(child.stdout.read()), len(BIG))
        self.assertEqual(child.returncode, 0)
        return limetest.read_terminal(master)

    def test_long_work(self):
        shown = self.bar(1.2)
        self.assertRegex(shown, rb"^\rcat .*%.*/s .* left ")
        self.assertRegex(shown, rb"\r +\r$")  # lime clears the bar at the end

    def test_short_work(self):
        self.assertEqual(self.bar(0), b"")


class Faults(limetest.TestCase):
    def test_record_before_a_fault(self):
        path = self.write("f", FILE + header("cut", 1 << 62, 1, 1) + b"x")
        self.assertEqual(self.run_ok(["lime", "cat", path, "4"]), BIG)
        self.fails(["lime", "cat", path, "8"], f"offset {len(FILE)}: record 8: ", out=b"")

    def test_lengths_that_no_file_has(self):
        for nbytes in (2**31, 2**32 + 5, 2**62, 2**63 - 1, 2**63, 2**64 - 144, 2**64 - 8,
                       2**64 - 1):
            path = self.write("f", record("x", b"data", 1, 1) + header("y", nbytes, 1, 1))
            self.assertEqual(self.run_ok(["lime", "cat", path, "1"]), b"data")
            self.assertEqual(run(["lime", "cat", path, "2"]).returncode, 1)

    def test_not_a_container(self):
        self.assertEqual(run(["lime", "cat", self.write("f", b"text"), "1"]).returncode, 2)
        self.assertEqual(run(["lime", "cat", "/", "1"]).returncode, 2)

    def test_file_that_shrinks(self):
        path = self.write("f", container([("big", bytes(64 << 20))]))
        read, write = os.pipe()
        with subprocess.Popen([program("lime"), "cat", path, "1"], stdout=write,
                              stderr=subprocess.PIPE) as child:
            os.close(write)
            with os.fdopen(read, "rb") as pipe:
                pipe.read(1)
                os.truncate(path, 1000)
                got = 1 + len(pipe.read())
            errors = child.stderr.read()
        self.assertEqual(child.returncode, 1)
        self.assertLess(got, 64 << 20)
        self.assertIn(f"{path}: read: the file has become shorter".encode(), errors)


if __name__ == "__main__":
    limetest.main()
