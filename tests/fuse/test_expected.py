"""Properties that programs expect of files and directories, whatever a mount shows as such."""

import errno
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from limetest import container, put, read


@limetest.needs_fuse
class TestCase(limetest.TestCase):
    def setUp(self):
        self.directory = self.tempdir()

    def put(self, name, data):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put(path, data)
        return path

    def mount(self, *opts, source=None, **kw):
        return limetest.Mount(source or self.directory, opts=list(opts), **kw)


class InodeNumbers(TestCase):
    def test_several_file_systems(self):
        """Programs skip a file that has the device and inode number of one they have read."""
        one = self.put("one.lime", container([("t", b"first")]))
        two = self.put("two.lime", container([("t", b"other")]))
        for path in one, two:
            os.utime(path, (1e9, 1e9))  # a mount rechecks recent files
        tree = self.tempdir()
        points = [os.path.join(tree, name) for name in ("a", "b")]
        for point in points:
            os.mkdir(point)
        with self.mount(source=one, mountpoint=points[0]) as a, \
                self.mount(source=two, mountpoint=points[1]) as b:
            self.assertEqual(os.stat(a.join("t")).st_ino, os.stat(b.join("t")).st_ino)
            for opts in (), ("ino32",):
                with self.mount(*opts, source=tree) as mnt:
                    files = [mnt.join(name, "t") for name in ("a", "b")]
                    self.assertEqual(subprocess.run(["cmp", "-s", *files], check=False).returncode,
                                     1)
                    self.assertEqual(len({os.stat(file).st_ino for file in files}), 2)
                    for file in files:
                        with os.scandir(os.path.dirname(file)) as entries:
                            listed = [entry.inode() for entry in entries]
                        self.assertEqual(listed, [os.stat(file).st_ino])

    def test_of_an_open_file(self):
        """An open file keeps its number, which has 32 bits with ino32. The plain file here has a
        longer one below, as records in trees do."""
        os.utime(self.put("c.lime", container([("t", b"data")])), (1e9, 1e9))
        with self.mount() as below:
            self.assertGreater(os.stat(below.join("c.lime", "t")).st_ino, 1 << 32)
            for opts in (), ("ino32",):
                with self.mount("attr_timeout=0.1", *opts, source=below.path) as mnt, \
                        open(mnt.join("c.lime", "t"), "rb", buffering=0) as file:
                    before = os.stat(mnt.join("c.lime", "t")).st_ino
                    for _ in range(4):
                        time.sleep(0.11)  # the read queries the open file's attributes
                        file.read(1)
                        self.assertEqual(os.fstat(file.fileno()).st_ino, before)
                    self.assertEqual(before < 1 << 32, bool(opts))


class OpenFiles(TestCase):
    def test_attributes_of_a_replaced_file(self):
        path = self.put("plain", b"old data")
        for change in (lambda: os.rename(self.put("new", b"new"), path), lambda: os.unlink(path)):
            self.put("plain", b"old data")
            with self.mount("attr_timeout=0", "entry_timeout=30") as mnt, \
                    open(mnt.join("plain"), "rb", buffering=0) as file:
                self.assertEqual(file.read(3), b"old")
                change()
                for _ in range(3):
                    self.assertEqual(os.fstat(file.fileno()).st_size, 8)
                if os.path.exists(path):  # the two do not share pages
                    self.assertEqual(read(mnt.join("plain")), b"new")
                    self.assertEqual(os.stat(mnt.join("plain")).st_size, 3)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                self.assertEqual(file.read(), b" data")


class Emptied(TestCase):
    def test_open_for_reading(self):
        """O_TRUNC works with O_RDONLY, too."""
        path = self.put("c.lime", container([("a", b"first"), ("b", b"x" * 146)]))
        with self.mount("rw", source=path) as mnt:
            os.close(os.open(mnt.join("b"), os.O_RDONLY | os.O_TRUNC))
            self.assertEqual(os.stat(mnt.join("b")).st_size, 0)
            put(mnt.join("b"), b"after", "ab")
            self.assertEqual(read(mnt.join("b")), b"after")
        self.assertEqual(read(path), container([("a", b"first"), ("b", b"after")]))


class Renamed(TestCase):
    def test_over_a_container(self):
        """A container is a directory: rename() replaces only an empty one."""
        data = {name: container([("t", name.encode())]) for name in ("a", "b")}
        for name, bytes_ in data.items():
            self.put(name, bytes_)
        os.link(os.path.join(self.directory, "a"), os.path.join(self.directory, "same"))
        with self.mount("rw") as mnt:
            for name in data:
                os.listdir(mnt.join(name))
            self.assertErrno(errno.ENOTEMPTY, os.rename, mnt.join("a"), mnt.join("b"))
            os.rename(mnt.join("a"), mnt.join("same"))  # no effect: both names are one file
            os.mkdir(mnt.join("empty.lime"))
            os.rename(mnt.join("a"), mnt.join("empty.lime"))
            self.assertEqual(read(mnt.join("empty.lime", "t")), b"a")
            os.mkdir(mnt.join("d"))
            os.rename(mnt.join("empty.lime"), mnt.join("d", "moved.lime"))
            put(mnt.join("d", "moved.lime", "new"), b"x")
            self.assertEqual(read(mnt.join("b", "t")), b"b")
        self.assertEqual(read(os.path.join(self.directory, "d", "moved.lime")),
                         container([("t", b"a"), ("new", b"x")]))


if __name__ == "__main__":
    limetest.main()
