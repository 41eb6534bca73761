"""limefs notices a container that changes below the mount; no reader gets wrong data."""

import concurrent.futures
import contextlib
import errno
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import faults
import limetest
from writelib import put, read, until

MIB = 1 << 20
OLD = [("a", b"o")]
OTHER = [("a", b"other"), ("b", b"other")]
NEW = [("b", b"new"), ("a", b"new"), ("c", b"new")]
NAMES = ["001-b", "002-a", "003-c"]
# System calls with which the daemon checks a container, and a limit for the number of each.
CALLS = ("openat2", "fstat", "pread")
MAX_CALLS = 40


@limetest.needs_fuse
class Change(limetest.TestCase):
    OPTS = None
    ARGS = ()

    def setUp(self):
        self.old = limetest.container([("info", b"old"), ("data", b"o" * 3 * MIB)])
        self.path = self.write("c.lime", self.old)
        self.mounted = self.mount(self.path, opts=self.OPTS, args=self.ARGS)
        self.addCleanup(self.mounted.stop)

    def at(self, *names):
        return self.mounted.join(*names)

    def replace(self, data):
        """Atomically replaces the container."""
        os.rename(put(self.path + ".new", data), self.path)

    def append(self, *items):
        put(self.path, limetest.container(items), "ab")

    def test_replaced_by_another_container(self):
        self.assertEqual(read(self.at("001-info")), b"old")
        new = [("info", b"newer"), ("more", b"!"), ("data", b"n" * 2 * MIB)]
        self.replace(limetest.container(new))
        self.assertEqual(sorted(os.listdir(self.mounted)), ["001-info", "002-more", "003-data"])
        self.assertEqual(read(self.at("001-info")), b"newer")
        self.assertEqual(read(self.at("data")), b"n" * 2 * MIB)
        self.assertFalse(os.path.exists(self.at("002-data")))

    def test_opened_at_any_time_after_it_was_replaced(self):
        """limefs does not trust a recent mtime, and later checks the file again. A program that
        opens a record at this moment must not get an error, nor cached pages of the old file."""
        for age in range(18_500_000, 20_300_000, 10_000):
            data = b"%8d" % age * 512
            self.replace(limetest.container([("data", data)]))
            replaced = os.stat(self.path).st_mtime_ns
            while time.time_ns() < replaced + age:
                pass
            self.assertEqual(read(self.at("data")), data)

    def test_an_open_reader_of_a_replaced_container(self):
        with open(self.at("data"), "rb", buffering=0) as file:
            self.assertEqual(file.read(4096), b"o" * 4096)
            self.replace(limetest.container([("data", b"n" * 3 * MIB)]))
            self.assertEqual(read(self.at("data")), b"n" * 3 * MIB)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertEqual(file.read(), b"o" * (3 * MIB - 4096))  # of the file that it has open

    def test_an_open_reader_gets_ESTALE_after_a_change_in_place(self):
        with open(self.at("data"), "rb", buffering=0) as file:
            self.assertEqual(os.pread(file.fileno(), 4096, 0), b"o" * 4096)
            # The layout stays the same; a reader must not get old and new bytes.
            with open(self.path, "r+b") as container:
                container.write(self.old.replace(b"o" * MIB, b"n" * MIB))
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertErrno((errno.ESTALE, errno.EIO), os.pread, file.fileno(), MIB, 2 * MIB)
        self.assertEqual(read(self.at("data")), b"n" * 3 * MIB)

    def test_an_open_reader_of_a_removed_record(self):
        with open(self.at("data"), "rb", buffering=0) as file:
            with open(self.path, "r+b") as container:
                container.truncate(144 + 8)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertErrno((errno.ESTALE, errno.EIO), os.pread, file.fileno(), MIB, 2 * MIB)
        self.assertEqual(os.listdir(self.mounted), ["001-info"])

    def test_a_mapping_of_a_removed_record(self):
        """A mapping never shows new bytes. A child reads it, as the kernel may send SIGBUS."""
        code = ("import mmap, os, sys\n"
                "f = open(sys.argv[1], 'rb')\n"
                "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
                "assert m[0] == ord('o')\n"
                "open(sys.argv[2], 'wb').write(b'x' * 5000000)\n"
                "os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)\n"
                "b = set(m[:])\n"
                "sys.exit(0 if b == {ord('o')} else 3)\n")
        done = limetest.run([sys.executable, "-c", code, self.at("data"), self.path])
        self.assertIn(done.returncode, (0, -7))

    def test_grows_during_a_read(self):
        with open(self.at("data"), "rb", buffering=0) as file:
            self.assertEqual(file.read(4096), b"o" * 4096)
            self.append(("third", b"3" * 100))
            self.assertEqual(read(self.at("003-third")), b"3" * 100)
            self.append(("fourth", b""))
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertEqual(file.read(), b"o" * (3 * MIB - 4096))
        self.assertEqual(len(os.listdir(self.mounted)), 4)

    def test_an_incomplete_record_is_not_shown(self):
        record = limetest.record("third", b"3" * 1000, 1, 1)
        with open(self.path, "ab", buffering=0) as file:
            for begin in range(0, len(record) - 1, 100):
                file.write(record[begin:begin + 100])
                shown = os.listdir(self.mounted)
                self.assertEqual("003-third" in shown, begin + 100 >= len(record))
        self.assertEqual(read(self.at("third")), b"3" * 1000)

    def test_touched_only(self):
        """A record of a touched container stays readable and shows the new mtime."""
        self.assertEqual(read(self.at("info")), b"old")
        os.utime(self.path, (1, 1))
        self.assertEqual(os.stat(self.at("info")).st_size, 3)
        self.assertEqual(read(self.at("info")), b"old")
        self.assertEqual(os.stat(self.at("info")).st_mtime, 1)

    def test_rewritten_and_longer(self):
        """The change looks like an append; an open reader must not get the new file's bytes."""
        new = limetest.container([("info", b"old"), ("data", b"n" * 3 * MIB), ("more", b"m")])
        with open(self.at("data"), "rb", buffering=0) as file:
            self.assertEqual(file.read(4096), b"o" * 4096)
            put(self.path, new)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            for _ in range(2):
                self.assertRaises(OSError, os.pread, file.fileno(), MIB, 2 * MIB)
        self.assertEqual(read(self.at("data")), b"n" * 3 * MIB)

    def test_removed_and_put_back(self):
        read(self.at("info"))
        os.rename(self.path, self.path + ".away")
        self.assertRaises(OSError, read, self.at("001-info"))
        os.rename(self.path + ".away", self.path)
        self.assertEqual(read(self.at("001-info")), b"old")

    def test_becomes_another_kind_of_file(self):
        self.replace(b"this is not a container at all" * 10)
        self.assertEqual(os.listdir(self.mounted), [])
        self.assertRaises(OSError, read, self.at("001-info"))
        self.replace(self.old)
        self.assertEqual(read(self.at("001-info")), b"old")

    def test_a_writer_and_readers_at_once(self):
        """Readers get the whole old or new data or an error, never a mixture."""
        def read_data():
            with contextlib.suppress(OSError):
                self.assertEqual(len(set(read(self.at("data")))), 1)

        end, letters = time.monotonic() + (2 if not limetest.STRESS else 60), 0
        with limetest.in_background(read_data, threads=4):
            while time.monotonic() < end:
                letters = (letters + 1) % 26
                fill = bytes([65 + letters]) * (3 * MIB)
                self.replace(limetest.container([("info", b"x"), ("data", fill)]))


@limetest.needs_fuse
class TimeSetBack(limetest.TestCase):
    """A program changes the container in place and sets its mtime back; its size stays the same."""

    OPTS = None
    TREE = False
    LETTERS = (b"a", b"b")

    def setUp(self):
        self.data = [letter * MIB for letter in self.LETTERS]
        self.old = self.container(self.LETTERS)
        self.new = self.container(self.LETTERS[::-1])
        self.path = self.write("c.lime", self.old)
        source = os.path.dirname(self.path) if self.TREE else self.path
        self.mounted = self.mount(source, opts=self.OPTS)
        self.top = self.mounted.join("c.lime") if self.TREE else self.mounted.path
        self.addCleanup(self.mounted.stop)

    def container(self, letters):
        return limetest.container([("r" + letter.decode(), letter * MIB) for letter in letters])

    def change(self, data):
        st = os.stat(self.path)
        with open(self.path, "r+b") as file:
            file.write(data)
        os.utime(self.path, ns=(st.st_atime_ns, st.st_mtime_ns))

    def at(self, name):
        return os.path.join(self.top, name)

    def open_record(self, name):
        file = open(self.at(name), "rb", buffering=0)
        self.addCleanup(file.close)
        return file.fileno()

    def read_uncached(self, fd, n, at):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(fd, n, at)

    def assertStale(self, fd):
        for _ in range(2):
            self.assertErrno((errno.ESTALE, errno.EIO), self.read_uncached, fd, 4096, MIB // 2)

    def test_records_exchanged(self):
        """Readers get ESTALE, whatever the container's age, whether or not they have read."""
        for age in (0, 0.05):
            for reads in (False, True):
                with self.subTest(age=age, reads=reads):
                    self.change(self.old)
                    time.sleep(age)
                    fd = self.open_record("ra")
                    if reads:
                        self.assertEqual(os.pread(fd, 10, 0), b"a" * 10)
                    self.change(self.new)
                    self.assertStale(fd)
                    self.assertEqual(read(self.at("ra")), self.data[0])
                    self.assertEqual(read(self.at("001-rb")), self.data[1])

    def test_changed_and_restored(self):
        """No process reads in between: the open record stays valid."""
        fd = self.open_record("ra")
        self.assertEqual(os.pread(fd, 10, 0), b"a" * 10)
        self.change(self.new)
        self.change(self.old)
        self.assertEqual(self.read_uncached(fd, MIB, 0), self.data[0])

    def test_other_bytes(self):
        """The headers stay the same: a new open reads the new bytes."""
        self.assertEqual(read(self.at("ra")), self.data[0])
        self.change(self.old.replace(b"a" * MIB, b"A" * MIB))
        self.assertEqual(read(self.at("ra")), b"A" * MIB)

    def test_listed(self):
        """A listing is right at once, and after the change is no longer recent."""
        for data, names in ((self.new, ["001-rb", "002-ra"]), (self.old, ["001-ra", "002-rb"])):
            self.change(data)
            self.assertEqual(sorted(os.listdir(self.top)), names)
            time.sleep(0.05)
            self.assertEqual(sorted(os.listdir(self.top)), names)

    def test_attributes(self):
        """A change of the container's mode and names does not invalidate an open record."""
        fd = self.open_record("ra")
        self.assertEqual(os.pread(fd, 10, 0), b"a" * 10)
        os.chmod(self.path, 0o640)
        os.link(self.path, self.path + "2")
        os.rename(self.path + "2", self.path + "3")
        os.unlink(self.path + "3")
        self.assertEqual(self.read_uncached(fd, MIB, 0), self.data[0])


class TimeSetBackBelowAWriter(TimeSetBack):
    """In a tree, because a writable mount of one container locks it permanently."""

    OPTS = "rw"
    TREE = True

    def test_changed_by_the_mount(self):
        """The mount's own changes make no record stale, whatever ctime they leave."""
        for change in (lambda: os.chmod(self.top, 0o750),
                       lambda: os.utime(self.at("rb"), (1, 1)),
                       lambda: os.rename(self.top, self.top + "2"),
                       lambda: os.rename(self.top + "2", self.top)):
            fd = self.open_record("ra") if os.path.exists(self.top) else fd
            self.assertEqual(os.pread(fd, 10, 0), b"a" * 10)
            if os.path.exists(self.top):
                put(self.at("rc"), b"c" * 100)
            change()
            self.assertEqual(self.read_uncached(fd, MIB, 0), self.data[0])


class TimeSetBackUncached(TimeSetBack):
    OPTS = "attr_timeout=0,entry_timeout=0"


@limetest.needs_fuse
class ChangeOneThread(Change):
    """The same with one thread in the daemon and no caching in the kernel."""

    OPTS = "attr_timeout=0,entry_timeout=0"
    ARGS = ("-s",)


@limetest.needs_fuse
class Replaced(limetest.TestCase):
    """A container is replaced at any system call with which the daemon checks it: afterwards the
    mount shows the new one."""

    OPTIONS = ["attr_timeout=0", "entry_timeout=0"]

    def setUp(self):
        self.top = self.tempdir()
        self.path = os.path.join(self.top, "c")
        put(self.path, limetest.container(OLD))
        self.store = faults.Faults(self.top)
        self.source = self.path
        self.inside = ()

    def start(self):
        self.point = self.mount(self.source, opts=self.OPTIONS, env=self.store.environment())

    def replace(self, items):
        put(self.path + ".new", limetest.container(items))
        os.rename(self.path + ".new", self.path)

    def listed(self):
        return sorted(os.listdir(self.point.join(*self.inside)))

    def replace_at(self, call, nth):
        """Replaces it while the nth call of a listing hangs; returns whether it has so many."""
        self.replace(OTHER)
        self.store.arm(faults.DAEMON, call, nth, 0, faults.HANG)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            try:
                listing = pool.submit(self.listed)
                until(lambda: self.store.struck or listing.done())
                struck = self.store.struck > 0
                self.replace(NEW)
                time.sleep(0.05)  # the old file's times are no longer recent
            finally:
                self.store.disarm()
        listing.result()
        return struck

    def test_at_each_call(self):
        self.start()
        for call in CALLS:
            for nth in range(1, MAX_CALLS):
                with self.subTest(call=call, nth=nth):
                    struck = self.replace_at(call, nth)
                    self.assertEqual(self.listed(), NAMES)
                    self.assertEqual(read(self.point.join(*self.inside, "001-b")),
                                     b"new")
                if not struck:
                    break
            self.assertFalse(struck, call)
            self.assertGreater(nth, 1, call)

    def test_an_open_reader_continues(self):
        """An open reader reads on, also in a deleted file."""
        self.start()
        with open(self.point.join(*self.inside, "001-a"), "rb", buffering=0) as file:
            self.replace_at("fstat", 2)
            self.assertEqual(file.read(), b"o")
            os.unlink(self.path)
            self.assertRaises(OSError, os.stat, self.point.join(*self.inside, "001-b"))
            self.assertEqual(os.pread(file.fileno(), 1, 0), b"o")

    def test_the_old_file_has_another_name(self):
        """The replaced file keeps a hard link, so it is not deleted."""
        self.start()
        for call in CALLS:
            os.link(self.path, os.path.join(self.top, call))
            with self.subTest(call=call):
                self.replace_at(call, 2)
                os.link(self.path, os.path.join(self.top, call + "2"))
                self.assertEqual(self.listed(), NAMES)


class ReplacedInATree(Replaced):
    def setUp(self):
        super().setUp()
        self.source = self.top
        self.inside = ("c",)


class ReplacedBelowAWriter(Replaced):
    OPTIONS = Replaced.OPTIONS + ["rw"]


class ReplacedInATreeBelowAWriter(ReplacedInATree):
    OPTIONS = Replaced.OPTIONS + ["rw"]


if __name__ == "__main__":
    limetest.main()
