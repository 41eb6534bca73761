"""Files of a tree that the kernel reads itself, where it can: root's mounts, Linux 6.9."""

import concurrent.futures
import functools
import json
import mmap
import os
import stat
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import users

CONTAINER = limetest.container([("info", b"hello"), ("data", b"d" * 10000)])
SIZE = 3 << 20
USER = 12345


def read(path):
    with open(path, "rb") as file:
        return file.read()


def bytes_of(seed):
    return bytes((seed + i * i // 7) & 255 for i in range(4096)) * (SIZE // 4096)


@functools.cache
def can_pass():
    """Whether the kernel offers FUSE_PASSTHROUGH in the first request to a file system."""
    if os.geteuid() != 0:
        return False
    top = limetest.tempdir()
    fd = os.open("/dev/fuse", os.O_RDWR)
    try:
        users.mount("limefs-test", top, "fuse", f"fd={fd},rootmode=40000,user_id=0,group_id=0")
        try:
            header, opcode, init, extended, passthrough = 40, 4, 26, 1 << 30, 1 << 5
            request = os.read(fd, 1 << 16)
            flags, flags2 = struct.unpack_from("=8x4x2I", request.ljust(1 << 10, b"\0"), header)
            if struct.unpack_from("=I", request, opcode) != (init,):
                raise AssertionError(request)
            return bool(flags & extended and flags2 & passthrough)
        finally:
            limetest.run(["umount", "-l", top], check=True)
    finally:
        os.close(fd)


def stats(mount):
    return json.loads(os.getxattr(mount.path, "user.limefs.stats"))


class Case(limetest.TestCase):
    def setUp(self):
        self.top = users.open_folder()

    def path(self, name):
        return os.path.join(self.top, name)

    def put(self, name="notes", data=bytes_of(1), **who):
        return users.put(self.path(name), data, **who)


@limetest.needs_fuse
class Passed(Case):
    def setUp(self):
        if not can_pass():
            self.skipTest("needs root and a kernel with FUSE_PASSTHROUGH (Linux 6.9)")
        super().setUp()

    def test_no_byte_comes_through_the_daemon(self):
        self.put()
        self.put("conf", CONTAINER)
        with limetest.Mount(self.top) as mount:
            self.assertEqual(read(mount.join("notes")), bytes_of(1))
            with open(mount.join("notes"), "rb") as file:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                    self.assertEqual(mapped[:], bytes_of(1))
                self.assertEqual(os.pread(file.fileno(), 5, SIZE - 3), bytes_of(1)[-3:])
            self.assertEqual(stats(mount)["requests"], 0)
            self.assertEqual(stats(mount)["passed_files"], 2)
            self.assertEqual(read(mount.join("conf/data")), b"d" * 10000)
            self.assertEqual(stats(mount)["passed_files"], 2)

    def test_changes_are_seen_at_once(self):
        path = self.put()
        with limetest.Mount(self.top) as mount, open(mount.join("notes"), "rb") as file:
            self.assertEqual(os.pread(file.fileno(), 5, 0), bytes_of(1)[:5])
            with open(path, "r+b") as out:
                out.write(b"other")
                out.seek(0, os.SEEK_END)
                out.write(b"end")
            self.assertEqual(os.pread(file.fileno(), 5, 0), b"other")
            self.assertEqual(os.pread(file.fileno(), 9, SIZE), b"end")
            os.truncate(path, 2)
            self.assertEqual(os.pread(file.fileno(), 9, 0), b"ot")
            self.assertEqual(read(mount.join("notes")), b"ot")

    def test_opened_several_times(self):
        """All close in another order, and it is opened once more in between."""
        self.put()
        with limetest.Mount(self.top) as mount:
            path = mount.join("notes")
            for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
                files = [os.open(path, os.O_RDONLY) for _ in order]
                for i in order:
                    self.assertEqual(os.pread(files[i], 7, 100), bytes_of(1)[100:107])
                    os.close(files[i])
                    self.assertEqual(read(path), bytes_of(1))
            self.assertEqual(stats(mount)["requests"], 0)

    def test_opened_and_closed_by_many_at_once(self):
        """The kernel refuses a file that is given to it in two ways."""
        self.put()
        with limetest.Mount(self.top) as mount, \
                concurrent.futures.ThreadPoolExecutor(8) as pool:
            got = list(pool.map(read, [mount.join("notes")] * 400))
            self.assertEqual(set(got), {bytes_of(1)})
            self.assertEqual(stats(mount)["requests"], 0)

    def test_replaced_while_it_is_open(self):
        path = self.put()
        with limetest.Mount(self.top, opts="attr_timeout=0,entry_timeout=0") as mount:
            old = [os.open(mount.join("notes"), os.O_RDONLY) for _ in range(2)]
            for seed in range(2, 6):
                os.rename(self.put("new", bytes_of(seed)), path)
                self.assertEqual(read(mount.join("notes")), bytes_of(seed))
            os.rename(self.put("new", CONTAINER), path)
            self.assertEqual(read(mount.join("notes/info")), b"hello")
            for fd in old:
                self.assertEqual(os.pread(fd, SIZE, 0), bytes_of(1))
                os.close(fd)

    def test_other_names_of_the_same_file(self):
        path = self.put()
        os.link(path, self.path("b"))
        with limetest.Mount(self.top) as mount:
            with open(mount.join("notes"), "rb"), open(mount.join("b"), "rb") as file:
                self.assertEqual(file.read(), bytes_of(1))
            os.unlink(path)
            self.assertEqual(read(mount.join("b")), bytes_of(1))

    def test_only_who_may_read_it(self):
        users.reach(self, self.top)
        self.put("mine", uid=USER, mode=0o600)
        self.put("root's", mode=0o600)
        with limetest.Mount(self.top, opts="allow_other") as mount:
            one, other = users.User(self, USER), users.User(self, USER + 1)
            with open(mount.join("mine"), "rb"), open(mount.join("root's"), "rb"):
                self.assertNotEqual(other.attempt(read, mount.join("mine")), 0)
                self.assertNotEqual(one.attempt(read, mount.join("root's")), 0)
                self.assertEqual(one.call(read, mount.join("mine")), bytes_of(1))
            before = stats(mount)["passed_files"]
            self.assertEqual(one.call(read, mount.join("mine")), bytes_of(1))
            self.assertEqual(stats(mount)["passed_files"], before + 1)
            self.assertEqual(stats(mount)["requests"], 0)

    def test_ended_with_files_open(self):
        self.put()
        mount = limetest.Mount(self.top)
        with mount:
            fd = os.open(mount.join("notes"), os.O_RDONLY)
            limetest.run(["umount", "-l", mount.path], check=True)
            self.assertEqual(os.pread(fd, 5, 0), bytes_of(1)[:5])
            os.close(fd)


@limetest.needs_fuse
class Served(Case):
    def test_a_writable_mount_serves_its_files(self):
        """The kernel caches there what is written."""
        self.put()
        with limetest.Mount(self.top, opts="rw") as mount:
            self.assertEqual(read(mount.join("notes")), bytes_of(1))
            self.assertEqual(stats(mount)["passed_files"], 0)

    def test_a_file_system_on_others(self):
        """What lies on an overlay is not given to the kernel: it refuses a pile of three."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.put()
        for name in ("upper", "work", "merged"):
            os.mkdir(self.path(name))
        there = limetest.run(["mount", "-t", "overlay", "limefs-test", "-o",
                              f"lowerdir={self.top},upperdir={self.path('upper')},"
                              f"workdir={self.path('work')}", self.path("merged")])
        if there.returncode:
            self.skipTest("no overlay can be mounted here")
        self.addCleanup(limetest.run, ["umount", self.path("merged")])
        with limetest.Mount(self.path("merged")) as mount:
            for _ in range(2):
                self.assertEqual(read(mount.join("notes")), bytes_of(1))
            self.assertEqual(stats(mount)["passed_files"], 0)
            self.assertTrue(stat.S_ISREG(os.stat(mount.join("notes")).st_mode))


if __name__ == "__main__":
    limetest.main()
