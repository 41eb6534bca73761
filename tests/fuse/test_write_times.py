"""When a container was changed: what the kernel, which keeps that time of what it caches, tells
between writes, and what a program sets."""

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

    def written(self, name, data, flags=0):
        """A descriptor of a record that was written to, of which the kernel has told the time."""
        fd = os.open(self.mount.join(name), os.O_RDWR | flags)
        os.pwrite(fd, data, 0)
        users.syncfs(fd)
        return fd

    def shown(self, name):
        return os.stat(self.mount.join(name)).st_mtime_ns

    def of_container(self):
        return os.stat(self.path).st_mtime_ns

    def test_the_container_has_it_after_the_close(self):
        """Also of a record that grows, whose length the close makes known afterwards, and of one
        that is replaced."""
        for name, data, flags in (("xlf-info", b"y", 0), ("data", b"z" * 300000, 0),
                                  ("xlf-info", b"new", os.O_TRUNC)):
            with self.subTest(name, flags=flags):
                os.close(self.written(name, data, flags))
                self.assertEqual(self.of_container(), self.shown(name))
                self.assertNotEqual(self.shown(name), THEN)

    def test_set_while_it_is_written(self):
        """By the name and by the descriptor: at once, and what was told before does not replace
        it."""
        for then in (THEN, THEN + 1):
            fd = self.written("xlf-info", b"y")
            try:
                os.utime(self.mount.join("xlf-info") if then == THEN else fd, ns=(then, then))
                self.assertEqual(self.of_container(), then)
            finally:
                os.close(fd)
            self.assertEqual(self.of_container(), then)
            self.assertEqual(self.shown("xlf-info"), then)

    def test_what_the_kernel_knew_before(self):
        """It tells it when an attribute of one record is set, or that is removed: what has changed
        another one since does not look as if it had not."""
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

    def test_set_while_it_grows(self):
        """The close makes its length known, and the time stays."""
        for flags in (os.O_CREAT, os.O_TRUNC, os.O_APPEND):
            with self.subTest(flags=flags):
                fd = os.open(self.mount.join("new"), flags | os.O_WRONLY)
                os.write(fd, bytes(300000))
                os.utime(fd, ns=(THEN, THEN))
                os.close(fd)
                self.assertEqual(self.shown("new"), THEN)
                self.assertEqual(self.of_container(), THEN)

    def test_set_before_the_last_write(self):
        for opts in ((), ("direct_io",)):
            path = put(os.path.join(self.tempdir(), "c.lime"),
                       limetest.container([("data", bytes(8 << 20))]))  # a large one
            with self.subTest(opts), self.rw(path, *opts) as mount:
                fd = os.open(mount.join("data"), os.O_APPEND | os.O_WRONLY)
                os.write(fd, bytes(1 << 20))
                os.utime(fd, ns=(THEN, THEN))
                os.write(fd, bytes(1 << 20))
                os.close(fd)
                self.assertNotEqual(os.stat(path).st_mtime_ns, THEN)


@limetest.needs_fuse
class PlainTimes(writelib.TestCase):
    def test_what_the_kernel_knew_before(self):
        """A file of a tree that others changed since it was looked up keeps the time of that when
        the mount changes its attributes or names."""
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
                    kept = os.open(path, os.O_RDWR)
                    self.addCleanup(os.close, kept)
                    self.assertEqual(os.stat(mount.join(what)).st_mtime_ns, THEN)
                    os.pwrite(kept, b"new", 0)
                    changed = os.fstat(kept).st_mtime_ns
                    self.assertNotEqual(changed, THEN)
                    change(mount.join(what))
                    directory = os.open(mount.path, os.O_RDONLY | os.O_DIRECTORY)
                    users.syncfs(directory)
                    os.close(directory)
                    self.assertEqual(os.fstat(kept).st_mtime_ns, changed)


if __name__ == "__main__":
    limetest.main()
