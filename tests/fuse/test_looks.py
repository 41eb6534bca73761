"""How the daemon checks the files of a tree: without free descriptors, after another file has
replaced a container, within a tick of the clock, and in the middle of a change."""

import errno
import fcntl
import itertools
import os
import resource
import stat
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import users
import writelib
from writelib import put, read

COARSE = 5  # CLOCK_REALTIME_COARSE, the clock that advances by ticks
CONTAINER = limetest.container([("info", b"hello"), ("data", b"d" * 1000)])


@limetest.needs_fuse
class Checks(limetest.TestCase):
    def setUp(self):
        self.top = self.tempdir()

    def put(self, name, data=CONTAINER):
        return put(os.path.join(self.top, name), data)

    def test_no_descriptors_left(self):
        """A container must not appear as a plain file, to which programs could append."""
        indices = range(12)
        for i in indices:
            self.put(f"c{i}")
        refused = 0
        with limetest.Mount(self.top) as mount:
            os.stat(mount.path)
            highest = max(map(int, os.listdir(f"/proc/{mount.pid}/fd")))
            before = resource.prlimit(mount.pid, resource.RLIMIT_NOFILE)
            for i in indices:
                resource.prlimit(mount.pid, resource.RLIMIT_NOFILE, (highest + i, before[1]))
                try:
                    self.assertTrue(stat.S_ISDIR(os.lstat(mount.join(f"c{i}")).st_mode), i)
                except OSError as error:
                    self.assertEqual(error.errno, errno.EMFILE)
                    refused += 1
            resource.prlimit(mount.pid, resource.RLIMIT_NOFILE, before)
            self.assertIn(refused, indices[1:])
            for i in indices:
                self.assertEqual(read(mount.join(f"c{i}/info")), b"hello")

    def test_another_file_replaces_a_container(self):
        """The daemon looks the name up again at a listing or stat()."""
        os.symlink("nowhere", os.path.join(self.top, "link"))
        os.mkfifo(os.path.join(self.top, "fifo"))
        self.put("plain", b"p" * 500)
        for opts in ("", "rw,"):
            for other in ("plain", "link", "fifo"):
                name = f"{opts}c-{other}"
                path, replacement = self.put(name), os.path.join(self.top, other)
                with self.subTest(name), limetest.Mount(
                        self.top, opts=f"{opts}attr_timeout=0,entry_timeout=600") as mount:
                    self.assertEqual(os.listdir(mount.join(name)), ["001-info", "002-data"])
                    users.exchange(path, replacement)
                    if other == "plain":
                        with self.assertRaises(NotADirectoryError):
                            os.listdir(mount.join(name))
                        self.assertEqual(read(mount.join(name)), b"p" * 500)
                    shown, below = os.lstat(mount.join(name)), os.lstat(path)
                    self.assertEqual((shown.st_mode, shown.st_ino), (below.st_mode, below.st_ino))
                users.exchange(path, replacement)

    @unittest.skipUnless(os.geteuid() == 0, "allow_other")
    def test_access_control_lists(self):
        """cp -a reads a directory's default list, and fails if getxattr() gives EPERM."""
        self.put("c")
        os.setxattr(self.put("with-list"), users.ACL, users.acl(0o640, 54321, 4))
        with limetest.Mount(self.top, opts="allow_other") as mount:
            for name in ("c", "with-list"):
                out = os.path.join(self.tempdir(), "out")
                self.run_ok(["cp", "-a", mount.join(name), out])
                self.assertEqual(os.stat(out).st_mode, os.stat(mount.join(name)).st_mode)
            self.assertEqual(os.getxattr(out, users.ACL),
                             os.getxattr(mount.join("with-list"), users.ACL))
            for name in ("with-list", "with-list/001-info"):
                self.assertIn(users.ACL, os.listxattr(mount.join(name)))
            self.assertNotIn(users.ACL, os.listxattr(mount.join("c")))


@limetest.needs_fuse
class Ticks(limetest.TestCase):
    """A file system whose times advance by ticks of the clock."""

    def setUp(self):
        self.top = writelib.SmallFs(self, "ext3", 16, features=["-I", "256"]).path

    def change_within_a_tick(self, make, change, check):
        """Returns names of files that were made, checked and changed within one tick, without a
        change of their inode number."""
        names = []

        def try_once():
            path = os.path.join(self.top, f"{make.__name__}{next(numbers)}")
            begin = time.clock_gettime_ns(COARSE)
            while time.clock_gettime_ns(COARSE) == begin:
                pass  # wait for the next tick
            make(path)
            before = os.lstat(path)
            check(os.path.basename(path))
            change(path)
            after = os.lstat(path)
            if (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns):
                names.append(os.path.basename(path))
            return len(names) > 9

        numbers = itertools.count()
        writelib.until(try_once)
        return names

    def test_plain_files(self):
        def make(path):
            put(path, b"old")

        def change(path):
            with open(path, "r+b") as file:
                file.write(b"new")

        for opts in ("", "rw,"):
            with self.subTest(opts), limetest.Mount(
                    self.top, opts=f"{opts}attr_timeout=0,entry_timeout=0") as mount:
                names = self.change_within_a_tick(
                    make, change,
                    lambda name, at=mount: self.assertEqual(read(at.join(name)), b"old"))
                writelib.until(lambda found=names, at=mount: all(
                    read(at.join(name)) == b"new" for name in found))
                for name in names:
                    os.unlink(os.path.join(self.top, name))

    def test_links(self):
        def make(path):
            os.symlink("old", path)

        def change(path):
            os.unlink(path)
            os.symlink("new", path)

        with limetest.Mount(self.top, opts="attr_timeout=0,entry_timeout=0") as mount:
            names = self.change_within_a_tick(make, change,
                                              lambda name: os.readlink(mount.join(name)))
            writelib.until(lambda: all(os.readlink(mount.join(name)) == "new" for name in names))


@limetest.needs_fuse
class DuringAWrite(limetest.TestCase):
    """The kernel sets a file's times when a write(2) begins, or at the first of several stores
    through a mapping, and not again at the end: the daemon must not cache the state in between."""

    def setUp(self):
        with open(self.write("probe", b""), "rb") as file:
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except OSError as error:
                self.skipTest(f"no leases: {error}")

    def mount_file(self, name, data, opts=""):
        top = self.tempdir()
        os.chmod(top, 0o755)
        self.path = put(os.path.join(top, name), data)
        writelib.let_time_pass(self.path)
        mount = limetest.Mount(top, opts=opts).start()
        self.addCleanup(mount.stop)
        return mount.join(name)

    def change(self, at, check, values=b"12"):
        writelib.change_in_two(self.path, at, values, check)

    def test_bytes_of_a_record(self):
        path = os.path.join(self.mount_file("c", CONTAINER), "data")
        self.assertEqual(read(path), b"d" * 1000)
        self.change(CONTAINER.index(b"d" * 1000), lambda: self.assertEqual(read(path)[:2], b"1d"))
        writelib.until(lambda: read(path)[:2] == b"2d")

    def test_another_user_s_container(self):
        """Root's mount notices the change for any user."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        path = os.path.join(self.mount_file("c", CONTAINER, "allow_other"), "data")
        os.chown(self.path, 1234, 1234)
        ann = users.User(self, 2345)
        self.assertEqual(ann.call(read, path), b"d" * 1000)
        self.change(CONTAINER.index(b"d" * 1000),
                    lambda: self.assertEqual(ann.call(read, path)[:2], b"1d"))
        writelib.until(lambda: ann.call(read, path)[:2] == b"2d")

    def test_magic_number(self):
        """A file is not a container while its magic number is wrong."""
        wrong = bytes([CONTAINER[0] ^ 1]) + CONTAINER[1:]
        path = self.mount_file("c", wrong, "attr_timeout=0,entry_timeout=0")
        self.change(0, lambda: self.assertTrue(stat.S_ISREG(os.lstat(path).st_mode)),
                    bytes([0, CONTAINER[0]]))
        writelib.until(lambda: stat.S_ISDIR(os.lstat(path).st_mode))

    def test_names_of_records(self):
        path = self.mount_file("c", CONTAINER)
        self.assertEqual(os.listdir(path), ["001-info", "002-data"])
        self.change(CONTAINER.index(b"data\0"),
                    lambda: self.assertEqual(os.listdir(path), ["001-info", "002-1ata"]))
        writelib.until(lambda: os.listdir(path) == ["001-info", "002-2ata"])
        self.assertEqual(read(os.path.join(path, "2ata")), b"d" * 1000)

    def test_bytes_of_a_plain_file(self):
        def check():
            """Reads before and after the kernel receives the new mtime."""
            self.assertEqual(read(path)[:2], b"1p")
            writelib.until(lambda: os.stat(path).st_mtime_ns == os.stat(self.path).st_mtime_ns)
            self.assertEqual(read(path)[:2], b"1p")

        for opts in ("", "rw,"):
            with self.subTest(opts):
                path = self.mount_file("p", b"p" * 5000, f"{opts}attr_timeout=0,entry_timeout=0")
                self.assertEqual(read(path), b"p" * 5000)
                self.change(0, check)
                writelib.until(lambda: read(path)[:2] == b"2p")


if __name__ == "__main__":
    limetest.main()
