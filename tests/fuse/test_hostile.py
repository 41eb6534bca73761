"""Broken and hostile containers, mounted: what is good stays readable, the rest is an errno."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from limetest import header, record
from writelib import read

GOOD = record("first", b"the first record", 1, 0) + record("second", b"and the second", 0, 0)


@limetest.needs_fuse
class Faults(limetest.TestCase):
    """Two good records, and then something that cannot be followed."""

    def shows_two(self, tail):
        path = self.write("c.lime", GOOD + tail)
        with limetest.Mount(path, args=[]) as mount:
            self.assertEqual(sorted(os.listdir(mount)), ["001-first", "002-second"])
            self.assertEqual(read(mount.join("001-first")), b"the first record")
            self.assertEqual(read(mount.join("second")), b"and the second")
            self.assertIn(f"offset {len(GOOD)}".encode()[:-1],
                          os.getxattr(mount, "user.lime.fault"))
        self.assertIn("c.lime: index: offset ", mount.words)

    def test_header_cut(self):
        for n in (1, 3, 4, 7, 15, 16, 80, 143):
            with self.subTest(n):
                self.shows_two(header("third", 10, 0, 1)[:n])

    def test_data_cut(self):
        for n in (0, 1, 99):
            with self.subTest(n):
                self.shows_two(header("third", 100, 0, 1) + b"x" * n)

    def test_lengths(self):
        for n in (2**31, 2**32 + 5, 2**62, 2**63 - 1, 2**63, 2**64 - 144, 2**64 - 8, 2**64 - 1):
            with self.subTest(n):
                self.shows_two(header("third", n, 0, 1) + b"x" * 1000)

    def test_magic_version_and_trailing_bytes(self):
        self.shows_two(header("third", 0, 0, 1, magic=0x12345678))
        self.shows_two(header("third", 0, 0, 1, version=0))
        self.shows_two(header("third", 0, 0, 1, version=2))
        for n in (1, 8, 143, 144, 145, 5000):
            with self.subTest(n):
                self.shows_two(b"\0" * n)


@limetest.needs_fuse
class Deviations(limetest.TestCase):
    """What a reader reports and goes on with."""

    def shows(self, data, names):
        with limetest.Mount(self.write("c.lime", data)) as mount:
            self.assertEqual(sorted(os.listdir(mount)), sorted(names))
            return {name: read(mount.join(name)) for name in names}

    def test_flags(self):
        for flags in [(0, 0, 0), (1, 1, 1), (1, 0, 1), (0, 1, 0)]:
            self.shows(b"".join(record("t", b"x", mb, not mb) for mb in flags),
                       ["001-t", "002-t", "003-t"])
        self.shows(record("t", b"x", 1, 1, flags=0xFF, reserved=7), ["001-t"])

    def test_padding(self):
        self.assertEqual(self.shows(record("t", b"x", 1, 1, padding=b""), ["001-t"]),
                         {"001-t": b"x"})
        self.shows(record("t", b"x", 1, 0, padding=b"garbage") + record("u", b"", 0, 1),
                   ["001-t", "002-u"])

    def test_zero_length_and_empty_container(self):
        self.assertEqual(self.shows(record("t", b"", 1, 1), ["001-t"]), {"001-t": b""})
        self.assertEqual(self.shows(b"", []), {})

    def test_types(self):
        types = [b"", b"x" * 127, b"y" * 128, b"a/b", b"..", b".", b"a b", b"a;rm -rf $HOME",
                 b"\x01\x1b[2J\n\t", b"\xff\xc3\xa4", b"100%", b"%2F", b"-rf", b"~", b"*"]
        names = ["001-", "002-" + "x" * 127, "003-" + "y" * 128, "004-a%2Fb", "005-..", "006-.",
                 "007-a b", "008-a;rm -rf $HOME", "009-%01%1B[2J%0A%09", "010-%FF%C3%A4",
                 "011-100%25", "012-%252F", "013--rf", "014-~", "015-*"]
        data = b"".join(record(t, b"%d" % i, i == 0, i == len(types) - 1)
                        for i, t in enumerate(types))
        got = self.shows(data, names)
        self.assertEqual([got[name] for name in names],
                         [b"%d" % i for i in range(len(types))])

    def test_a_long_type_of_high_bytes_is_cut(self):
        data = record(b"\xff" * 128, b"1", 1, 0) + record(b"\xff" * 128, b"2", 0, 1)
        names = ["001-" + "%FF" * 83, "002-" + "%FF" * 83]
        self.assertEqual(list(self.shows(data, names).values()), [b"1", b"2"])
        with limetest.Mount(self.write("c.lime", data)) as mount:
            self.assertEqual(os.getxattr(mount.join(names[0]), "user.lime.type"), b"\xff" * 128)

    def test_garbage_after_the_nul_of_a_type(self):
        self.shows(record("", b"1", 1, 1, raw_type=b"t\0" + b"garbage/" * 15 + b"123456"),
                   ["001-t"])

    def test_names_that_are_not_there(self):
        data = limetest.container([("a/b", b"1"), ("t", b"2"), ("t", b"3"), ("003-t", b"4")])
        with limetest.Mount(self.write("c.lime", data)) as mount:
            for name in ("1-a%2Fb", "0001-a%2Fb", "001-a", "001-", "t", "000-t", "005-t",
                         "001-a%2fb", "-1-t", "99999999999999999999999-t", "x" * 255):
                self.assertFalse(os.path.exists(mount.join(name)), name)
            self.assertEqual(read(mount.join("003-t")), b"3")  # the name before the type
            self.assertEqual(read(mount.join("a%2Fb")), b"1")
            self.assertRaises(OSError, os.stat, mount.join("x" * 256))

    def test_the_same_type_10000_times(self):
        data = limetest.container([("t", b"%d" % i) for i in range(10000)])
        with limetest.Mount(self.write("c.lime", data)) as mount:
            self.assertEqual(len(os.listdir(mount)), 10000)
            self.assertEqual(read(mount.join("9999-t")), b"9998")
            self.assertEqual(read(mount.join("042-t")), b"41")


@limetest.needs_fuse
class NoContainer(limetest.TestCase):
    def refused(self, source, *words):
        where = self.tempdir()
        done = limetest.run(["limefs", source, where], timeout=10)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(limetest.mounts_under(where), [])
        for word in words:
            self.assertIn(word, done.stderr.decode())

    def test_other_files(self):
        self.refused(self.write("c", b"just text" * 100), "c: index: offset 0", "no LIME")
        self.refused(self.write("c", header("t", 0, 1, 1, version=2)), "version")
        self.refused("/dev/null", "not a regular file")

    def test_a_fifo_does_not_block(self):
        path = os.path.join(self.tempdir(), "fifo")
        os.mkfifo(path)
        self.refused(path, "fifo: open: not a regular file")

    def test_nothing_there(self):
        self.refused("/nowhere/c.lime", "/nowhere/c.lime: open: No such file")

    def test_unreadable(self):
        if os.geteuid() == 0:
            self.skipTest("root may read everything")
        path = self.write("c.lime", GOOD)
        os.chmod(path, 0)
        self.refused(path, "Permission denied")


if __name__ == "__main__":
    limetest.main()
