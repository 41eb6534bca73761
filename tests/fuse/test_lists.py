"""Long directories: attributes that come with the names, and lookups ahead of requests."""

import contextlib
import os
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import users
from limetest import descriptor, put, read
from writelib import until

CONTAINER = limetest.container([("info", b"hello"), ("data", b"d" * 1000)])
OTHER = limetest.container([("other", b"hello")])
COUNT = 600  # containers of a directory: more than fit into one reply
LONG = "entry_timeout=3600,attr_timeout=3600"  # the kernel does not query a name again


@limetest.needs_fuse
class Directories(limetest.TestCase):
    """The daemon looks up a listed directory's names ahead once programs have looked up names."""

    def setUp(self):
        self.top = self.tempdir()
        for directory in ("one", "two"):
            os.mkdir(os.path.join(self.top, directory))
            for i in range(COUNT):
                self.put(directory, f"conf.{i:04d}", CONTAINER)
            self.put(directory, "notes", b"text" * 100)
            os.mkdir(os.path.join(self.top, directory, "directory"))
            os.symlink("notes", os.path.join(self.top, directory, "link"))

    def put(self, directory, name, data):
        path = os.path.join(self.top, directory, name)
        put(path + ".new", data)
        os.rename(path + ".new", path)
        return path

    def names(self, directory="one"):
        return sorted(os.listdir(os.path.join(self.top, directory)))

    def stat_names(self, path, most=None):
        """Calls lstat() for each name, as `ls -l` does."""
        for name in os.listdir(path)[:most]:
            os.lstat(os.path.join(path, name))

    def count_cached(self, mount, directory):
        """Lists the directory, removes its containers, returns how many the kernel has cached."""
        self.assertEqual(sorted(os.listdir(mount.join(directory))), self.names(directory))
        for i in range(COUNT):
            os.unlink(os.path.join(self.top, directory, f"conf.{i:04d}"))
        found = 0
        for i in range(COUNT):
            with contextlib.suppress(FileNotFoundError):
                found += stat.S_ISDIR(os.stat(mount.join(directory, f"conf.{i:04d}")).st_mode)
        return found

    def test_no_lookups_ahead_of_plain_listings(self):
        with limetest.Mount(self.top, opts=LONG) as mount:
            for _ in range(3):
                os.listdir(mount.join("two"))
            self.assertEqual(self.count_cached(mount, "one"), 0)

    def test_after_lookups(self):
        """In each directory that is listed soon after lookups, and after containers are entered."""
        with limetest.Mount(self.top, opts=LONG) as mount:
            self.stat_names(mount.join("one"))
            self.assertEqual(self.count_cached(mount, "two"), COUNT)
        with limetest.Mount(self.top, opts=LONG) as mount:
            self.stat_names(mount.join("one"), 20)
            for name in os.listdir(mount.join("one"))[:20]:
                if name.startswith("conf"):
                    self.assertEqual(len(os.listdir(mount.join("one", name))), 2)
            self.assertEqual(self.count_cached(mount, "one"), COUNT)

    def test_no_lookups_ahead_without_caching(self):
        with limetest.Mount(self.top, opts="entry_timeout=0,attr_timeout=0") as mount:
            self.stat_names(mount.join("one"))
            self.assertEqual(self.count_cached(mount, "one"), 0)

    def kinds(self, path):
        """Returns types and inode numbers, from the listing alone and from lstat()."""
        with os.scandir(path) as entries:
            listed = {entry.name: (entry.is_dir(follow_symlinks=False),
                                   entry.is_file(follow_symlinks=False), entry.is_symlink(),
                                   entry.inode()) for entry in entries}
        seen = {}
        for name in listed:
            st = os.lstat(os.path.join(path, name))
            seen[name] = (stat.S_ISDIR(st.st_mode), stat.S_ISREG(st.st_mode),
                          stat.S_ISLNK(st.st_mode), st.st_ino)
        return listed, seen

    def test_types_and_numbers(self):
        with limetest.Mount(self.top) as mount:
            self.stat_names(mount.join("one"), 20)
            for directory in ("one", "two"):
                listed, seen = self.kinds(mount.join(directory))
                self.assertEqual(listed, seen)
                self.assertEqual(sorted(listed), self.names(directory))

    def directories(self, mount, *names):
        """Returns which of the names are listed as directories. The kernel caches a name for one
        second, unless the daemon looks it up for the listing."""
        with os.scandir(mount.join("two")) as entries:
            return {entry.name for entry in entries if entry.name in names and entry.is_dir()}

    def test_changes_are_seen(self):
        """opendir() shows a container's new records, and a listing the new types of names."""
        with limetest.Mount(self.top) as mount:
            self.stat_names(mount.join("one"), 20)
            for i in range(50):
                os.listdir(mount.join("two"))
                self.put("two", f"conf.{i:04d}", OTHER)
                self.assertEqual(os.listdir(mount.join("two", f"conf.{i:04d}")), ["001-other"])
            self.put("two", "conf.0300", b"not a container " * 100)
            self.put("two", "notes", CONTAINER)
            until(lambda: self.directories(mount, "conf.0300", "notes") == {"notes"})
            self.assertEqual(read(mount.join("two/conf.0300")), b"not a container " * 100)

    def test_names_that_stay_are_listed_once(self):
        """Other programs create and remove other names during the listing."""
        with limetest.Mount(self.top) as mount:
            self.stat_names(mount.join("one"), 20)
            for turn in range(5):
                found, i = [], 0
                with os.scandir(mount.join("two")) as entries:
                    for entry in entries:
                        found.append(entry.name)
                        i += 1
                        if i % 7 == 0:
                            self.put("two", f"new.{turn}.{i}", CONTAINER)
                        if i % 11 == 0 and turn:
                            gone = os.path.join(self.top, "two", f"new.{turn - 1}.{i // 11 * 7}")
                            if os.path.exists(gone):
                                os.unlink(gone)
                stay = [name for name in found if not name.startswith("new")]
                self.assertEqual(sorted(stay),
                                 [name for name in self.names("two") if not name.startswith("new")])
                self.assertEqual(len(set(found)), len(found))

    def test_list_again_from_the_start(self):
        with limetest.Mount(self.top) as mount:
            self.stat_names(mount.join("one"), 20)
            with descriptor(mount.join("two"), os.O_RDONLY | os.O_DIRECTORY) as fd:
                first = os.listdir(fd)
                os.lseek(fd, 0, os.SEEK_SET)
                self.assertEqual(os.listdir(fd), first)
                self.assertEqual(sorted(first), self.names("two"))

    def test_no_leak(self):
        """Listings with lookups ahead leak no memory."""
        if limetest.SANITIZED:
            self.skipTest("sanitizers keep freed memory")
        with limetest.Mount(self.top) as mount:
            for _ in range(20):
                self.stat_names(mount.join("one"))
            before = mount.usage()[1]
            for _ in range(100):
                os.listdir(mount.join("one"))
            self.assertLess(mount.usage()[1] - before, 4 << 20)

    def test_memory_of_open_directories(self):
        """A program lists a directory many times and closes none of its descriptors."""
        if limetest.SANITIZED:
            self.skipTest("sanitizers need memory, too")
        with limetest.Mount(self.top) as mount, contextlib.ExitStack() as open_directories:
            self.stat_names(mount.join("one"))
            before = mount.usage()[1]
            for _ in range(300):
                fd = os.open(mount.join("one"), os.O_RDONLY | os.O_DIRECTORY)
                open_directories.callback(os.close, fd)
                os.listdir(fd)
            self.assertLess(mount.usage()[1] - before, 300 * (64 << 10))


@limetest.needs_fuse
class Many(limetest.TestCase):
    """A listing of a container with so many records has attributes only if programs use them."""
    COUNT = 60000

    def setUp(self):
        self.path = self.write("many", limetest.container(
            [(f"r{i % 10}", b"x" * (i % 7)) for i in range(self.COUNT)]))

    def test_all_names(self):
        with limetest.Mount(self.path) as mount:
            with os.scandir(mount) as entries:
                listed = [(entry.name, entry.inode(), entry.is_file()) for entry in entries]
            self.assertEqual(len(listed), self.COUNT)
            self.assertEqual([number for _, number, _ in listed],
                             list(range(2, self.COUNT + 2)))
            self.assertTrue(all(is_file for *_, is_file in listed))
            for i in list(range(0, self.COUNT, 997)) + [self.COUNT - 1]:
                name, number, _ = listed[i]
                st = os.stat(mount.join(name))
                self.assertEqual((st.st_ino, st.st_size), (number, i % 7), name)

    def test_with_attributes(self):
        """A program calls stat() for each name, as `ls -l` does."""
        with limetest.Mount(self.path) as mount:
            for _ in range(2):
                with os.scandir(mount) as entries:
                    sizes = [os.stat(entry.path).st_size for entry in entries]
                self.assertEqual(sizes, [i % 7 for i in range(self.COUNT)])


@limetest.needs_fuse
class Long(limetest.TestCase):
    """Names of 1000 bytes, which some file systems allow."""

    def setUp(self):
        self.top = self.tempdir()
        self.below = os.path.join(self.top, "below")
        os.mkdir(self.below)
        done = limetest.run([limetest.program("long-names"), self.below])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.addCleanup(limetest.run, ["fusermount3", "-u", "-z", self.below])

    def test_listed(self):
        """A listing has the long names, also if the daemon looks up the short ones ahead."""
        names = sorted(os.listdir(self.below))
        self.assertEqual([len(names), max(map(len, names))], [40, 1000])
        with limetest.Mount(self.top, opts=LONG) as mount:
            for _ in range(3):
                self.assertEqual(sorted(os.listdir(mount.join("below"))), names)
                for name in names:
                    if len(name) < 100:
                        os.stat(mount.join("below", name))


@limetest.needs_fuse
class Others(limetest.TestCase):
    """Lookups ahead don't help users without search permission for the directory."""

    def test_a_directory_without_search_permission(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        top = users.open_directory()
        users.reach(self, top)
        for directory in ("one", "two"):
            users.directory(os.path.join(top, directory), 0, 0o755 if directory == "one" else 0o744)
            for i in range(50):
                users.put(os.path.join(top, directory, f"conf.{i:02d}"), CONTAINER, 0, 0o644)
        ann = users.User(self, 54321)
        with limetest.Mount(top, opts="allow_other") as mount:
            for name in ann.call(os.listdir, mount.join("one")):
                ann.call(os.stat, mount.join("one", name))
            names = ann.call(os.listdir, mount.join("two"))
            self.assertEqual(len(names), 50)
            for name in names:
                self.assertEqual(ann.attempt(os.stat, mount.join("two", name)), 13)
                self.assertTrue(stat.S_ISDIR(os.stat(mount.join("two", name)).st_mode))


if __name__ == "__main__":
    limetest.main()
