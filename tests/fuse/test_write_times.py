"""Modification times of containers: those that the kernel caches and sends to the daemon between
writes, and those that programs set."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import users
import writelib
from writelib import put

THEN = 10 ** 18  # ns
ITEMS = [("xlf-info", b"x" * 77), ("data", bytes(200000))]


@limetest.needs_fuse
class Times(writelib.TestCase):
    def setUp(self):
        self.path = put(os.path.join(self.tempdir(), "c.lime"), limetest.container(ITEMS))
        self.mount = self.rw(self.path)

    def write_and_sync(self, name, data, flags=0):
        """Writes to a record and makes the kernel send its cached mtime; returns the descriptor."""
        fd = os.open(self.mount.join(name), os.O_RDWR | flags)
        os.pwrite(fd, data, 0)
        users.syncfs(fd)
        return fd

    def record_mtime(self, name):
        return os.stat(self.mount.join(name)).st_mtime_ns

    def container_mtime(self):
        return os.stat(self.path).st_mtime_ns

    def test_container_has_the_time_after_close(self):
        """This also holds for a record that grows, whose length is written at close, and for one
        that is replaced."""
        for name, data, flags in (("xlf-info", b"y", 0), ("data", b"z" * 300000, 0),
                                  ("xlf-info", b"new", os.O_TRUNC)):
            with self.subTest(name, flags=flags):
                os.close(self.write_and_sync(name, data, flags))
                self.assertEqual(self.container_mtime(), self.record_mtime(name))
                self.assertNotEqual(self.record_mtime(name), THEN)

    def test_set_while_written(self):
        """A time set by name or by descriptor takes effect at once, and an mtime that the kernel
        sent before does not replace it."""
        for then in (THEN, THEN + 1):
            fd = self.write_and_sync("xlf-info", b"y")
            try:
                os.utime(self.mount.join("xlf-info") if then == THEN else fd, ns=(then, then))
                self.assertEqual(self.container_mtime(), then)
            finally:
                os.close(fd)
            self.assertEqual(self.container_mtime(), then)
            self.assertEqual(self.record_mtime("xlf-info"), then)

    def test_mtime_cached_before_a_change(self):
        """The kernel sends an old cached mtime when a record's attribute is set or the record is
        removed; the container keeps the newer time of a write to another record."""
        for what, function, name, *args in (
                ("type", os.setxattr, "xlf-info", "user.lime.type", b"xlf-more"),
                ("flag", os.setxattr, "xlf-info", "user.lime.me", b"1"),
                ("remove", os.remove, "last")):
            path = put(os.path.join(self.tempdir(), "c.lime"),
                       limetest.container([*ITEMS, ("last", b"text")]))
            os.utime(path, ns=(THEN, THEN))
            with self.subTest(what), self.rw(path) as mount:
                for name in os.listdir(mount.path):
                    self.assertEqual(os.stat(mount.join(name)).st_mtime_ns, THEN)
                with open(mount.join("data"), "r+b") as file:
                    file.write(b"new")
                changed = os.stat(path).st_mtime_ns
                self.assertNotEqual(changed, THEN)
                function(mount.join(name), *args)
                with open(mount.join("data"), "rb") as file:
                    users.syncfs(file.fileno())
                self.assertGreaterEqual(os.stat(path).st_mtime_ns, changed)

    def test_set_while_growing(self):
        """close() writes the length of the record and keeps the time that was set."""
        for flags in (os.O_CREAT, os.O_TRUNC, os.O_APPEND):
            with self.subTest(flags=flags):
                fd = os.open(self.mount.join("new"), flags | os.O_WRONLY)
                os.write(fd, bytes(300000))
                os.utime(fd, ns=(THEN, THEN))
                os.close(fd)
                self.assertEqual(self.record_mtime("new"), THEN)
                self.assertEqual(self.container_mtime(), THEN)

    def test_set_before_the_last_write(self):
        for opts in ((), ("direct_io",)):
            path = put(os.path.join(self.tempdir(), "c.lime"),
                       limetest.container([("data", bytes(8 << 20))]))  # a large record
            with self.subTest(opts), self.rw(path, *opts) as mount:
                fd = os.open(mount.join("data"), os.O_APPEND | os.O_WRONLY)
                os.write(fd, bytes(1 << 20))
                os.utime(fd, ns=(THEN, THEN))
                os.write(fd, bytes(1 << 20))
                os.close(fd)
                self.assertNotEqual(os.stat(path).st_mtime_ns, THEN)


@limetest.needs_fuse
class PlainTimes(writelib.TestCase):
    def test_mtime_cached_before_a_change(self):
        """A plain file that another process changed after the lookup keeps the time of that change
        when the mount changes its attributes or names."""
        top = self.tempdir()
        with self.rw(top, "attr_timeout=600", "entry_timeout=600") as mount:
            for what, change in {
                    "mode": lambda path: os.chmod(path, 0o640),
                    "attribute": lambda path: os.setxattr(path, "user.note", b"1"),
                    "rename": lambda path: os.rename(path, path + "-2"),
                    "link": lambda path: os.link(path, path + "-2")}.items():
                with self.subTest(what):
                    path = put(os.path.join(top, what), b"old")
                    os.utime(path, ns=(THEN, THEN))
                    other = os.open(path, os.O_RDWR)
                    self.addCleanup(os.close, other)
                    self.assertEqual(os.stat(mount.join(what)).st_mtime_ns, THEN)
                    os.pwrite(other, b"new", 0)
                    changed = os.fstat(other).st_mtime_ns
                    self.assertNotEqual(changed, THEN)
                    change(mount.join(what))
                    directory = os.open(mount.path, os.O_RDONLY | os.O_DIRECTORY)
                    users.syncfs(directory)
                    os.close(directory)
                    self.assertEqual(os.fstat(other).st_mtime_ns, changed)


if __name__ == "__main__":
    limetest.main()
