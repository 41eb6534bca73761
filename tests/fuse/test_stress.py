"""Names and containers change while many threads read; limits of descriptors and of the log."""

import errno
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import writelib
from writelib import read

CONTAINER = limetest.container([("info", b"hello"), ("data", b"d" * 100000)])


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    limetest.put(path, data)
    return path


def replace(path, data):
    put(path + ".new", data)
    os.rename(path + ".new", path)


@limetest.needs_fuse
class Replaced(limetest.TestCase):
    def setUp(self):
        self.source = self.tempdir()

    def test_a_directory_in_the_place_of_another(self):
        put(self.source + "/d/one", b"1")
        mount = self.mount(self.source, opts="entry_timeout=30,attr_timeout=30")
        self.assertEqual(os.listdir(mount.join("d")), ["one"])
        os.rename(self.source + "/d", self.source + "/away")
        put(self.source + "/d/two", b"2")
        self.assertEqual(os.listdir(mount.join("d")), ["two"])

    def test_a_deleted_container_is_closed(self):
        """The daemon closes a deleted container, so that its blocks become free."""
        path = put(self.source + "/c.lime", CONTAINER)
        mount = self.mount(self.source)
        for end in (lambda: os.unlink(path), lambda: replace(path, CONTAINER)):
            put(path, CONTAINER)
            self.assertEqual(read(mount.join("c.lime/info")), b"hello")
            end()
            os.path.exists(mount.join("c.lime/info"))
            time.sleep(1.1)  # until the name expires in the kernel's cache
            os.path.exists(mount.join("c.lime/info"))
            self.assertNotIn(path + " (deleted)", mount.usage()[0])

    def test_rewinddir_shows_what_is_there_now(self):
        path = put(self.source + "/c.lime", CONTAINER)
        mount = self.mount(path, opts="attr_timeout=0,entry_timeout=0")
        with limetest.descriptor(mount, os.O_RDONLY) as fd:
            replace(path, limetest.container([("other", b"")]))
            self.assertEqual(os.listdir(fd), ["001-other"])
            self.assertEqual(os.listdir(mount), ["001-other"])

    def test_all_at_once(self):
        """Each record contains its name and number: a read never mixes two records."""
        names = [f"d{i % 5}/c{i}" for i in range(60)]
        number = 0

        def new_container(name):
            nonlocal number
            number += 1
            return limetest.container([(f"t{i}", f"{name} {number} {i}".encode().ljust(32) * n)
                                       for i, n in enumerate((1, 200, 9000))])
        for name in names:
            put(os.path.join(self.source, name), new_container(name))
        mount = self.mount(self.source, opts="max_open=2")
        seeds = random.Random(1)

        def use():
            dice = random.Random(seeds.random())
            name, number = dice.choice(names), dice.randrange(3)
            path = mount.join(name, dice.choice([f"t{number}", f"00{number + 1}-t{number}"]))
            try:
                data = read(path)
                os.stat(path)
                os.getxattr(path, "user.lime.type")
                for entry in os.scandir(os.path.dirname(path)):
                    entry.stat()
            except OSError:
                return
            parts = {data[i:i + 32] for i in range(0, len(data), 32)}
            self.assertEqual([part.split()[2] for part in parts], [b"%d" % number], path)

        with limetest.in_background(use, threads=8):
            self.replace_and_rename(names, new_container)
        mount.stop()

    def replace_and_rename(self, names, new_container):
        dice = random.Random(0)
        end = time.monotonic() + (60 if limetest.STRESS else 3)
        while time.monotonic() < end:
            path = os.path.join(self.source, dice.choice(names))
            directory = os.path.dirname(path)
            dice.choice([lambda: replace(path, new_container(os.path.relpath(path, self.source))),
                         lambda: os.path.exists(path) and os.unlink(path),
                         lambda: (os.rename(directory, directory + ".x"),
                                  os.rename(directory + ".x", directory))])()
            if os.geteuid() == 0 and dice.random() < 0.02:
                put("/proc/sys/vm/drop_caches", b"2")  # the kernel drops its names and inodes


@limetest.needs_fuse
class Bounds(limetest.TestCase):
    def test_few_descriptors(self):
        source = self.tempdir()
        for i in range(200):
            put(f"{source}/c{i}", CONTAINER)
        mount = self.mount(source, prefix=["prlimit", "--nofile=64"])
        for _ in range(2):
            for i in range(200):
                self.assertEqual(read(mount.join(f"c{i}", "info")), b"hello")

    def test_the_log_is_not_flooded(self):
        path = self.write("c.lime", CONTAINER)
        daemon = limetest.Foreground(path)
        with open(daemon.join("data"), "rb", buffering=0) as file:
            os.truncate(path, 1000)
            for i in range(1000):
                self.assertRaises(OSError, os.pread, file.fileno(), 10, i)
        self.assertEqual(daemon.end(), 0)
        self.assertLess(daemon.words().count("\n"), 250)

    def test_times_far_away(self):
        path = self.write("c.lime", CONTAINER)
        for when in (-(1 << 31), 13000000000):  # what ext4 can hold
            os.utime(path, (when, when))
            with limetest.Mount(path) as mount:
                self.assertEqual(read(mount.join("info")), b"hello")
                self.assertEqual(os.stat(mount.join("info")).st_mtime, os.stat(path).st_mtime)


@limetest.needs_fuse
class Starting(limetest.TestCase):
    def setUp(self):
        self.path = self.write("c.lime", CONTAINER)

    def test_over_its_own_container(self):
        """Mounted over its container or the tree around it, the daemon must not open the container
        through its own mount and deadlock."""
        directory = os.path.dirname(self.path)
        for source in (self.path, directory):
            for opts in ("ro", "rw"):
                put(self.path, CONTAINER)
                with writelib.Mount(source, mountpoint=directory, opts=opts) as mount:
                    inside = mount.path if source == self.path else mount.join("c.lime")
                    self.assertEqual(os.listdir(inside), ["001-info", "002-data"])
                    self.assertEqual(read(os.path.join(inside, "info")), b"hello")
                    if opts == "rw":
                        put(os.path.join(inside, "new"), b"x")
                        put(os.path.join(inside, "info"), b"another length")
                found = [record.data[:20] for record in limetest.records_of(self.path)]
                self.assertEqual(found, [b"another length", b"d" * 20, b"x"] if opts == "rw" else
                                 [b"hello", b"d" * 20])

    def test_a_mount_point_that_is_not_a_directory(self):
        done = limetest.run(["limefs", self.path, self.write("file", b"")])
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rb"limefs: .*/file: mount: .*[Nn]ot a directory")

    def test_max_read(self):
        with limetest.Mount(self.path, opts="max_read=131072") as mount:
            self.assertEqual(read(mount.join("data")), b"d" * 100000)
            with open("/proc/self/mounts") as table:
                self.assertTrue([line for line in table
                                 if mount.path in line and "max_read=131072" in line])

    def test_inherited_descriptors_are_closed(self):
        reading, writing = os.pipe()
        process = subprocess.Popen([limetest.program("limefs"), self.path, self.tempdir()],
                                   pass_fds=[writing], stdout=writing, stderr=writing,
                                   stdin=subprocess.DEVNULL)
        mountpoint = process.args[2]
        os.close(writing)
        try:
            self.assertEqual(process.wait(20), 0)
            with open(reading, "rb") as output:
                self.assertEqual(output.read(), b"")  # the end: no other process has it open
        finally:
            subprocess.run(["umount", mountpoint], check=False)


@limetest.needs_fuse
class Programs(limetest.TestCase):
    def test_inodes_and_links(self):
        source = self.tempdir()
        put(source + "/d/c.lime", CONTAINER)
        with limetest.Mount(source) as mount:
            inside = mount.join("d/c.lime")
            listed = limetest.run(["ls", "-aif", inside], check=True).stdout.split()
            numbers = dict(zip(listed[1::2], map(int, listed[::2])))
            self.assertEqual(numbers[b"."], os.stat(inside).st_ino)
            self.assertEqual(numbers[b".."], os.stat(mount.join("d")).st_ino)
            self.assertEqual(numbers[b"001-info"], os.stat(inside + "/info").st_ino)
            # find(1) may count links to learn whether there are more directories.
            self.assertEqual(os.stat(mount.join("d")).st_nlink, 1)
            found = limetest.run(["find", mount.path, "-type", "f"], check=True).stdout
            self.assertEqual(len(found.split()), 2)

    def test_unsupported_attributes(self):
        """After EOPNOTSUPP ls does not query the attribute of each other record again."""
        with limetest.Mount(self.write("c.lime", CONTAINER)) as mount:
            for name in ("security.selinux", "system.posix_acl_access"):
                self.assertErrno(errno.EOPNOTSUPP, os.getxattr, mount.join("info"), name)


if __name__ == "__main__":
    limetest.main()
