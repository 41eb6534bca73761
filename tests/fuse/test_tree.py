"""A directory mounted as a tree: containers appear as directories, other files unchanged."""

import concurrent.futures
import os
import random
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from writelib import put, read

CONTAINER = limetest.container([("info", b"hello"), ("data", b"d" * 10000)])


@limetest.needs_fuse
class Tree(limetest.TestCase):
    def setUp(self):
        self.top = self.tempdir()

    def put(self, name, data=CONTAINER):
        path = os.path.join(self.top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put(path, data)
        return path

    def test_a_mixed_tree(self):
        self.put("a/b/c/conf.0100")
        self.put("a/b/c/conf.0101")
        self.put("a/notes.txt", b"text")
        self.put("a/empty", b"")
        self.put("a/short", CONTAINER[:100])
        self.put("a/other version", limetest.header("t", 0, 1, 1, version=2))
        os.symlink("b/c/conf.0100", os.path.join(self.top, "a/link"))
        os.symlink("/nowhere", os.path.join(self.top, "a/dangling"))
        os.mkfifo(os.path.join(self.top, "a/fifo"))
        with limetest.Mount(self.top) as mount:
            kinds = {name: stat.S_IFMT(os.lstat(mount.join("a", name)).st_mode)
                     for name in os.listdir(mount.join("a"))}
            self.assertEqual(kinds, {
                "b": stat.S_IFDIR, "notes.txt": stat.S_IFREG, "empty": stat.S_IFREG,
                "short": stat.S_IFREG, "other version": stat.S_IFREG, "link": stat.S_IFLNK,
                "dangling": stat.S_IFLNK, "fifo": stat.S_IFIFO})
            self.assertEqual(sorted(os.listdir(mount.join("a/b/c/conf.0100"))),
                             ["001-info", "002-data"])
            self.assertEqual(read(mount.join("a/b/c/conf.0101/data")), b"d" * 10000)
            self.assertEqual(read(mount.join("a/link/info")), b"hello")
            self.assertEqual(os.readlink(mount.join("a/dangling")), "/nowhere")
            self.assertEqual(read(mount.join("a/notes.txt")), b"text")
            self.assertEqual(read(mount.join("a/short")), CONTAINER[:100])
            self.assertEqual(os.getxattr(mount.join("a/b/c/conf.0100"), "user.lime.records"),
                             b"2")
            for name in ("a/none", "a/notes.txt/x", "a/b/c/conf.0100/none", "a/b/c/conf.9"):
                self.assertRaises(OSError, os.stat, mount.join(name))
            walked = sum(len(files) for _, _, files in os.walk(mount))
            self.assertEqual(walked, 2 * 2 + 4 + 1 + 1)  # records, files, a link, the fifo

    def test_a_directory_replaced_by_a_link(self):
        """A user cannot reach files outside of the tree through a directory that became a link."""
        self.put("d/secret", b"the right one")
        outside = self.tempdir()
        put(os.path.join(outside, "secret"), b"outside of the tree")
        with limetest.Mount(self.top, opts="entry_timeout=0") as mount:
            directory = os.open(mount.join("d"), os.O_PATH | os.O_DIRECTORY)
            os.rename(os.path.join(self.top, "d"), os.path.join(self.top, "e"))
            os.symlink(outside, os.path.join(self.top, "d"))
            try:
                self.assertRaises(OSError, os.open, "secret", os.O_RDONLY, dir_fd=directory)
            finally:
                os.close(directory)
            self.assertEqual(os.readlink(mount.join("d")), outside)  # the mount shows a link

    def test_containers_replaced_at_once_are_seen(self):
        """The mount shows changes within one tick of the ctime clock, and with old mtimes."""
        kinds = [limetest.container([(name, b"12345678")]) for name in ("even", "odd")]
        path = self.put("x", kinds[1])
        with limetest.Mount(self.top) as mount:
            for i in range(500):
                self.put("x.new", kinds[i % 2])
                if i % 3 == 1:
                    os.utime(path + ".new", (1e9, 1e9))
                if i % 5 == 0:
                    os.listdir(mount.join("x"))
                os.rename(path + ".new", path)
                self.assertEqual(os.listdir(mount.join("x")), ["001-odd" if i % 2 else "001-even"])

    def test_a_plain_file_that_changes_is_read_again(self):
        self.put("notes", b"a" * 100000)
        with limetest.Mount(self.top) as mount:
            self.assertEqual(read(mount.join("notes")), b"a" * 100000)
            self.put("notes", b"b" * 100000)
            self.assertEqual(read(mount.join("notes")), b"b" * 100000)

    def is_dir(self, mount, name):
        return stat.S_ISDIR(os.stat(mount.join(name)).st_mode)

    def test_a_plain_file_becomes_a_container(self):
        """The ctime shows a change in place that keeps the size and the mtime."""
        path = self.put("x", b"p" * len(CONTAINER))
        times = os.stat(path)
        with limetest.Mount(self.top, opts="attr_timeout=0,entry_timeout=0") as mount:
            self.assertFalse(self.is_dir(mount, "x"))
            self.put("x")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            self.assertTrue(self.is_dir(mount, "x"))

    def test_changed_in_the_tick_of_its_last_change(self):
        """The daemon caches no result of a check in that tick. (Linux 6.13 has finer ticks.)"""
        with limetest.Mount(self.top, opts="attr_timeout=0,entry_timeout=0") as mount:
            for i in range(50):
                name = f"x{i}"
                with open(self.put(name, b"p" * len(CONTAINER)), "r+b", buffering=0) as file:
                    self.assertFalse(self.is_dir(mount, name))
                    file.write(CONTAINER)
                    self.assertTrue(self.is_dir(mount, name))

    def test_a_container_becomes_a_plain_file_while_it_is_open(self):
        self.put("x")
        with limetest.Mount(self.top, opts="attr_timeout=0,entry_timeout=0") as mount:
            fd = os.open(mount.join("x"), os.O_RDONLY)
            self.put("y", b"p" * 1000)
            os.rename(os.path.join(self.top, "y"), os.path.join(self.top, "x"))
            os.fstat(fd)  # gets attributes without reading the file
            is_dir = self.is_dir(mount, "x")
            os.close(fd)
        self.assertFalse(is_dir)

    def test_many_containers_few_open(self):
        """max_open bounds open containers and cached indices; all records stay readable."""
        count = 300
        for i in range(count):
            self.put(f"conf.{i:04d}", limetest.container([("n", b"%d" % i), ("d", b"x" * 100)]))
        with limetest.Mount(self.top, opts="max_open=8") as mount:
            pid = mount.pid
            before = len(os.listdir(f"/proc/{pid}/fd"))
            for i in range(count):
                self.assertEqual(read(mount.join(f"conf.{i:04d}/n")), b"%d" % i)
            self.assertLessEqual(len(os.listdir(f"/proc/{pid}/fd")), before + 8 + 20)
            # The kernel has the names cached; the daemon opens their containers again.
            fds = [os.open(mount.join(f"conf.{i:04d}/n"), os.O_RDONLY) for i in range(count)]
            for i, fd in enumerate(fds):
                self.assertEqual(os.read(fd, 10), b"%d" % i)
                os.close(fd)
            order = list(range(count)) * 2
            random.Random(5).shuffle(order)

            def check(i):
                return read(mount.join(f"conf.{i:04d}/001-n")) == b"%d" % i

            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                self.assertTrue(all(pool.map(check, order)))

    def test_mounting_reads_no_container(self):
        """limefs mounts and lists a tree without reading its containers."""
        for i in range(50):
            self.put(f"conf.{i}")
        with limetest.Mount(self.top) as mount:
            with open(f"/proc/{mount.pid}/io") as file:
                io = dict(line.split(": ") for line in file)
            self.assertLess(int(io["rchar"]), 200000)  # libraries, not containers
            self.assertEqual(len(os.listdir(mount)), 50)

    def test_deep_paths(self):
        path = self.top
        for _ in range(30):
            path = os.path.join(path, "d" * 60)
        os.makedirs(path)
        self.put(os.path.join(path, "conf"))
        with limetest.Mount(self.top) as mount:
            inside = os.path.join(mount, os.path.relpath(path, self.top))
            self.assertEqual(read(os.path.join(inside, "conf/info")), b"hello")

    def test_a_mount_point_inside_the_tree_is_refused(self):
        os.makedirs(os.path.join(self.top, "in/side"))
        self.fails(["limefs", self.top, os.path.join(self.top, "in/side")],
                   "choose another mount point", timeout=10)


if __name__ == "__main__":
    limetest.main()
