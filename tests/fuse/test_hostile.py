"""Broken and hostile containers in a mount: good records are readable, the rest gives an errno."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from limetest import header, record
from writelib import read

GOOD = record("first", b"the first record", 1, 0) + record("second", b"and the second", 0, 0)


@limetest.needs_fuse
class Faults(limetest.TestCase):
    """The mount shows two good records before a fault, and reports the fault."""

    TAILS = [
        *(header("third", 10, 0, 1)[:n] for n in (1, 3, 4, 7, 15, 16, 80, 143)),
        *(header("third", 100, 0, 1) + b"x" * n for n in (0, 1, 99)),
        *(header("third", n, 0, 1) + b"x" * 1000 for n in (
            2**31, 2**32 + 5, 2**62, 2**63 - 1, 2**63, 2**64 - 144, 2**64 - 8, 2**64 - 1)),
        header("third", 0, 0, 1, magic=0x12345678), header("third", 0, 0, 1, version=0),
        header("third", 0, 0, 1, version=2), *(b"\0" * n for n in (1, 8, 143, 144, 145, 5000))]

    def test_tails(self):
        for tail in self.TAILS:
            path = self.write("c.lime", GOOD + tail)
            with self.subTest(tail[:150], n=len(tail)), limetest.Mount(path) as mount:
                self.assertEqual(sorted(os.listdir(mount)), ["001-first", "002-second"])
                self.assertEqual(read(mount.join("001-first")), b"the first record")
                self.assertEqual(read(mount.join("second")), b"and the second")
                self.assertIn(f"offset {len(GOOD)}".encode()[:-1],
                              os.getxattr(mount, "user.lime.fault"))
                self.assertIn("c.lime: index: offset ", mount.words)


@limetest.needs_fuse
class Deviations(limetest.TestCase):
    """Deviations that a reader reports and accepts."""

    TYPES = {b"": "", b"x" * 127: "x" * 127, b"y" * 128: "y" * 128, b"a/b": "a%2Fb", b"..": "..",
             b".": ".", b"a b": "a b", b"a;rm -rf $HOME": "a;rm -rf $HOME",
             b"\x01\x1b[2J\n\t": "%01%1B[2J%0A%09", b"\xff\xc3\xa4": "%FF%C3%A4", b"100%": "100%25",
             b"%2F": "%252F", b"-rf": "-rf", b"~": "~", b"*": "*"}

    # (bytes of the file, records in the mount)
    ROWS = [
        *((b"".join(record("t", b"x", mb, not mb) for mb in flags),
           {"001-t": b"x", "002-t": b"x", "003-t": b"x"})
          for flags in [(0, 0, 0), (1, 1, 1), (1, 0, 1), (0, 1, 0)]),
        (record("t", b"x", 1, 1, flags=0xFF, reserved=7), {"001-t": b"x"}),
        (record("t", b"x", 1, 1, padding=b""), {"001-t": b"x"}),
        (record("t", b"x", 1, 0, padding=b"garbage") + record("u", b"", 0, 1),
         {"001-t": b"x", "002-u": b""}),
        (record("t", b"", 1, 1), {"001-t": b""}), (b"", {}),
        (record("", b"1", 1, 1, raw_type=b"t\0" + b"garbage/" * 15 + b"123456"), {"001-t": b"1"}),
        # limefs cuts the name of a long type of non-ASCII bytes.
        (record(b"\xff" * 128, b"1", 1, 0) + record(b"\xff" * 128, b"2", 0, 1),
         {"001-" + "%FF" * 83: b"1", "002-" + "%FF" * 83: b"2"}),
        (b"".join(record(t, b"%d" % i, i == 1, i == 15) for i, t in enumerate(TYPES, 1)),
         {f"{i:03d}-{name}": b"%d" % i for i, name in enumerate(TYPES.values(), 1)})]

    def test_rows(self):
        for data, want in self.ROWS:
            with self.subTest(data[:500]), limetest.Mount(self.write("c.lime", data)) as mount:
                self.assertEqual({name: read(mount.join(name)) for name in os.listdir(mount)}, want)
                for record in limetest.whole_records(data)[0][:2]:
                    if record.type == b"\xff" * 128:
                        name = mount.join("001-" + "%FF" * 83)
                        self.assertEqual(os.getxattr(name, "user.lime.type"), record.type)

    def test_names_that_do_not_exist(self):
        data = limetest.container([("a/b", b"1"), ("t", b"2"), ("t", b"3"), ("003-t", b"4")])
        with limetest.Mount(self.write("c.lime", data)) as mount:
            for name in ("1-a%2Fb", "0001-a%2Fb", "001-a", "001-", "t", "000-t", "005-t",
                         "001-a%2fb", "-1-t", "99999999999999999999999-t", "x" * 255):
                self.assertFalse(os.path.exists(mount.join(name)), name)
            self.assertEqual(read(mount.join("003-t")), b"3")  # a name takes precedence over a type
            self.assertEqual(read(mount.join("a%2Fb")), b"1")
            self.assertRaises(OSError, os.stat, mount.join("x" * 256))


@limetest.needs_fuse
class NotAContainer(limetest.TestCase):
    def check_refused(self, source, *texts):
        point = self.tempdir()
        done = limetest.run(["limefs", source, point], timeout=10)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(limetest.mounts_under(point), [])
        for text in texts:
            self.assertIn(text, done.stderr.decode())

    def test_other_files(self):
        """limefs refuses other kinds of files, and does not block on a fifo."""
        fifo = os.path.join(self.tempdir(), "fifo")
        os.mkfifo(fifo)
        for source, *texts in (
                (self.write("c", b"just text" * 100), "c: index: offset 0", "not a LIME"),
                (self.write("c", header("t", 0, 1, 1, version=2)), "version"),
                ("/dev/null", "not a regular file"), (fifo, "fifo: open: not a regular file"),
                ("/nowhere/c.lime", "/nowhere/c.lime: open: No such file")):
            with self.subTest(source):
                self.check_refused(source, *texts)

    def test_unreadable(self):
        if os.geteuid() == 0:
            self.skipTest("root can read everything")
        path = self.write("c.lime", GOOD)
        os.chmod(path, 0)
        self.check_refused(path, "Permission denied")


if __name__ == "__main__":
    limetest.main()
