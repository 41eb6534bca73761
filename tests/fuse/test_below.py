"""Plain files that other processes change below a writable mount without changing their length: the
kernel ignores the daemon's mtime of a file that it knows."""

import fcntl
import mmap
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import limetest
import users
import writelib
from writelib import put, read

SIZE = 10000
OLD, NEW, NEWER = b"o" * SIZE, b"n" * SIZE, b"r" * SIZE
LONG_AGO = 1_000_000_000 * 10**9 + 123_456_789


def rewrite(path, data, at=0):
    """Overwrites data in place."""
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, data, at)
    os.close(fd)


def mtime(path):
    return os.stat(path).st_mtime_ns


class Below(writelib.TestCase):
    OPTIONS = ["attr_timeout=0", "entry_timeout=0"]

    def setUp(self):
        self.top = self.tempdir()
        self.point = self.rw(self.top, *self.OPTIONS)

    def paths(self, name, data=OLD):
        """Creates a file with an old mtime that the kernel knows; returns its path on each side."""
        below, mount = os.path.join(self.top, name), self.point.join(name)
        put(below, data)
        os.utime(below, ns=(LONG_AGO, LONG_AGO))
        self.assertEqual(mtime(mount), LONG_AGO)
        self.assertEqual(read(mount), data)
        return below, mount

    def assertSame(self, below, mount):
        writelib.until(lambda: mtime(mount) == mtime(below))
        self.assertEqual(read(mount), read(below))

    def lock_inode(self, path):
        """Locks the file with flock(), which belongs to one inode of the kernel."""
        fd = os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        time.sleep(0.3)  # longer than GRACE_SECONDS of kernel_mtime.c

    def is_locked(self, path):
        fd = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False


class Changed(Below):
    """Another process changes the file below the mount."""

    def test_rewritten(self):
        below, mount = self.paths("file")
        for data in (NEW, NEWER, OLD):
            rewrite(below, data)
            self.assertSame(below, mount)

    def test_touched(self):
        below, mount = self.paths("file")
        os.utime(below)
        self.assertSame(below, mount)
        os.utime(below, ns=(LONG_AGO, LONG_AGO - 1))
        self.assertSame(below, mount)

    def test_rewritten_after_a_write_on_the_mount(self):
        below, mount = self.paths("file")
        rewrite(mount, NEW)
        os.utime(mount, ns=(LONG_AGO, LONG_AGO))
        rewrite(below, NEWER)
        self.assertSame(below, mount)

    def test_two_names(self):
        """Hard links stay one file."""
        below, mount = self.paths("file")
        os.link(below, below + "2")
        self.assertEqual(mtime(mount + "2"), LONG_AGO)
        for data, last in ((NEW, ""), (NEWER, "2")):
            rewrite(below + last, data)
            for name in ("", "2"):
                self.assertSame(below, mount + name)
            self.lock_inode(mount)
            self.assertTrue(self.is_locked(mount + "2"))

    def listed(self):
        with os.scandir(self.point.path) as entries:
            return [entry.stat().st_mtime_ns for entry in entries]

    def test_listed(self):
        below, mount = self.paths("file")
        rewrite(below, NEW)
        writelib.until(lambda: self.listed() == [mtime(below)])

    def test_cached_name(self):
        """The kernel does not look up the name again."""
        with self.rw(self.top, "attr_timeout=0", "entry_timeout=1000") as mount:
            put(os.path.join(self.top, "file"), OLD)
            os.stat(mount.join("file"))
            rewrite(os.path.join(self.top, "file"), NEW)
            below, known = os.path.join(self.top, "file"), mount.join("file")
            self.assertEqual(read(known), NEW)
            writelib.until(lambda: mtime(known) == mtime(below))

    def test_open_for_reading(self):
        """A process that has the file open reads the new data; stat() shows the new mtime."""
        below, mount = self.paths("file")
        with open(mount, "rb", buffering=0) as file:
            for data in (NEW, NEWER):
                rewrite(below, data)
                self.assertSame(below, mount)
                writelib.until(lambda: os.pread(file.fileno(), SIZE, 0) == data)

    def test_mapped(self):
        below, mount = self.paths("file")
        with open(mount, "rb") as file, \
                mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ) as pages:
            self.assertEqual(pages[:], OLD)
            rewrite(below, NEW)
            self.assertSame(below, mount)
            os.pread(file.fileno(), 1, 0)
            writelib.until(lambda: pages[:] == NEW)

    def test_open_for_writing(self):
        """After the writers have closed the file, stat() shows the mtime of the file below."""
        for wrote in (False, True):
            below, mount = self.paths(f"file{wrote}")
            with open(mount, "r+b", buffering=0) as file:
                if wrote:
                    file.write(b"m")
                    os.fsync(file.fileno())
                rewrite(below, NEW[1:], 1)
                with open(mount, "r+b", buffering=0) as other:
                    other.seek(SIZE - 1)
                    if wrote:
                        other.write(b"e")
                if wrote:
                    file.write(b"m")
            if wrote:
                writelib.until(lambda: mtime(mount) == mtime(below))
            else:
                self.assertSame(below, mount)

    def test_changed_continuously(self):
        """stat(), open() and chmod() never fail."""
        below, mount = self.paths("file")
        with limetest.in_background(rewrite, below, NEW[:10]):
            for i in range(2000):
                os.stat(mount)
                with open(mount, ("rb", "r+b", "ab")[i % 3]):
                    pass
                if i % 7 == 0:
                    os.chmod(mount, 0o644)
        writelib.until(lambda: mtime(mount) == mtime(below))

    def test_a_fifo(self):
        """The kernel connects the ends of a fifo, whatever its mtime below."""
        below, mount = os.path.join(self.top, "pipe"), self.point.join("pipe")
        os.mkfifo(below)
        reader = os.open(mount, os.O_RDWR)
        os.utime(below, ns=(LONG_AGO, LONG_AGO))
        put(mount, b"x")
        self.assertEqual(os.read(reader, 1), b"x")
        os.close(reader)


class ChangedByTheMount(Below):
    """No change through the mount makes the kernel forget the file: it stays one inode."""

    def changes(self):
        def writes(flags, *calls):
            def change(path):
                fd = os.open(path, flags)
                for call in calls:
                    call(fd)
                os.close(fd)
            return change

        def maps(path):
            with open(path, "r+b") as file, mmap.mmap(file.fileno(), SIZE) as pages:
                file.close()
                pages[0:1] = b"M"
                pages.flush()
                pages[1:2] = b"M"

        def put_data(fd):
            os.pwrite(fd, NEW, 0)

        def set_old(path):
            os.utime(path, ns=(LONG_AGO, LONG_AGO))

        return {
            "write": writes(os.O_WRONLY, put_data),
            "write and sync": writes(os.O_RDWR, put_data, os.fsync, put_data),
            "append": writes(os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b"more")),
            "write new": writes(os.O_WRONLY | os.O_TRUNC, put_data),
            "empty": writes(os.O_RDONLY | os.O_TRUNC),
            "cp -p": writes(os.O_WRONLY | os.O_TRUNC, put_data, set_old),
            "set and write": writes(os.O_WRONLY, set_old, put_data),
            "ftruncate": writes(os.O_RDWR, lambda fd: os.ftruncate(fd, SIZE // 2)),
            "truncate": lambda path: os.truncate(path, SIZE),
            "map": maps,
            "punch": writes(os.O_RDWR, lambda fd: users.fallocate(
                fd, writelib.FALLOC_PUNCH | writelib.FALLOC_KEEP_SIZE, 0, 5000)),
            "allocate": writes(os.O_RDWR, lambda fd: users.fallocate(fd, 0, 0, 2 * SIZE)),
            "set old": set_old,
            "set odd": lambda path: os.utime(path, ns=(LONG_AGO, -1)),
            "set now": os.utime,
            "chmod": lambda path: os.chmod(path, 0o600),
            "xattr": lambda path: os.setxattr(path, "user.x", b"1"),
            "rename": lambda path: (os.rename(path, path + "2"), os.rename(path + "2", path)),
            "link": lambda path: (os.link(path, path + "2"), os.unlink(path + "2")),
        }

    def test_each(self):
        for name, change in self.changes().items():
            with self.subTest(change=name):
                below, mount = self.paths(name)
                self.lock_inode(mount)
                for _ in range(3):
                    change(mount)
                    end = time.monotonic() + 0.03  # the release arrives in this time
                    while time.monotonic() < end:
                        os.stat(mount)
                        self.assertTrue(self.is_locked(mount))
                    self.assertEqual(read(mount), read(below))

    def test_utime_sets_the_exact_time(self):
        below, mount = self.paths("file")
        for ns in (LONG_AGO + 1, -1, 4 * 10**18):
            rewrite(mount, NEW)
            os.utime(mount, ns=(ns, ns))
            self.assertEqual((mtime(mount), mtime(below)), (ns, ns))
            rewrite(below, NEWER)
            self.assertSame(below, mount)
            os.utime(mount, ns=(ns, ns))
            self.assertEqual((mtime(mount), mtime(below)), (ns, ns))

    def test_written_twice_in_one_tick(self):
        """The kernel sends one mtime for both writes, and the file below gets it."""
        below, mount = self.paths("file")
        for _ in range(20):
            with open(mount, "r+b", buffering=0) as file:
                rewrite(mount, NEW[:1])
                file.write(b"m")
                time.sleep(0.03)  # longer than a tick
            self.assertEqual(mtime(mount), mtime(below))

    def test_many_at_once(self):
        below, mount = self.paths("file")
        self.lock_inode(mount)

        def work(seed):
            for i in range(100):
                if (seed + i) % 3 == 0:
                    os.utime(mount)
                elif (seed + i) % 3 == 1:
                    rewrite(mount, NEW[:100], seed * 100)
                else:
                    self.assertEqual(len(read(mount)), SIZE)
                    os.stat(mount)

        limetest.at_once(*((work, seed) for seed in range(6)))
        self.assertEqual(read(below), NEW[:600] + OLD[600:])
        self.assertEqual(read(mount), read(below))
        self.assertTrue(self.is_locked(mount))


class SetDuringClose(Below):
    def setUp(self):
        self.top = self.tempdir()
        self.store = faults.Faults(self.top)
        self.point = self.rw(self.top, *self.OPTIONS, env=self.store.environment())

    def test_utime_during_a_close(self):
        """The time of utime() stays, below and in the kernel, and the file stays one inode."""
        below, mount = self.paths("file")
        self.lock_inode(mount)
        self.store.arm(faults.DAEMON, "futimens", 1, 0, faults.HANG)
        end, later = threading.Event(), time.time_ns()

        def write_twice_in_a_tick():
            while not self.store.struck and not end.is_set():
                with open(mount, "r+b", buffering=0) as file:
                    rewrite(mount, NEW[:1])
                    if not self.store.struck:
                        file.write(b"m")

        closes = threading.Thread(target=write_twice_in_a_tick)
        sets = threading.Thread(target=os.utime, args=(mount,), kwargs={"ns": (later, later)})
        try:
            closes.start()
            writelib.until(lambda: self.store.struck, 300)
            sets.start()
            sets.join(1)  # utime() may wait for the close
        finally:
            end.set()
            self.store.disarm()
        closes.join()
        sets.join()
        time.sleep(0.3)  # the hung call may be in a release, which close() does not wait for
        self.assertEqual((mtime(mount), mtime(below)), (later, later))
        self.assertTrue(self.is_locked(mount))


if __name__ == "__main__":
    limetest.main()
