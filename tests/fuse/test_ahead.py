"""The daemon's own read-ahead: records read with O_DIRECT, through the page cache, and by small
sequential requests."""

import contextlib
import ctypes
import errno
import itertools
import mmap
import os
import random
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import scidac
import writelib
from writelib import MIB

SMALL = "readahead=128K"  # the kernel's limit for a mount by an ordinary user
SIZE = 24 * MIB + 12345
PAGE = 4096
FIELD = "ildg-binary-data"


def cached_pages(path):
    """Returns how many of a file's pages are in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    with open(path, "rb") as file, \
            mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE) as mapped:
        flags = ctypes.create_string_buffer((len(mapped) + PAGE - 1) // PAGE)
        begin = ctypes.c_char.from_buffer(mapped)
        result = libc.mincore(ctypes.addressof(begin), len(mapped), flags)
        del begin
        assert result == 0, ctypes.get_errno()
        return sum(byte & 1 for byte in flags.raw)


def need_page_cache(test, path):
    """Skips the test unless cachestat() exists and the page cache of the file can be emptied."""
    limetest.need_linux(test, 6, 5)
    limetest.drop_cache(path)
    if cached_pages(path):
        test.skipTest("needs a file system whose pages can be dropped")


def read_by(name, size, at=0, most=None):
    """Returns at most `most` bytes of the file from `at` on, read `size` bytes at a time."""
    parts, left = [], most
    with limetest.descriptor(name, os.O_RDONLY) as fd:
        while part := os.pread(fd, size if left is None else min(size, left), at):
            parts.append(part)
            at += len(part)
            left = left if left is None else left - len(part)
            if left == 0:
                break
    return b"".join(parts)


@limetest.needs_fuse
class Ahead(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.data = random.Random(1).randbytes(SIZE)
        raw = limetest.container([("first", b"x" * 1000), ("data", self.data),
                                  ("last", b"y" * 999)])
        self.path = self.write("stream.lime", raw)
        self.begin = raw.index(self.data)
        limetest.drop_cache(self.path)

    def test_whole(self):
        for opts, sizes in ((SMALL, (1000, 32768, 100000, 131072, MIB, 1 << 30)),
                            (None, (131072,)), ("readahead=0", (131072,))):
            for size, at in itertools.product(sizes, (0, 5, 3 * MIB + 7, SIZE - 200000)):
                limetest.drop_cache(self.path)
                with limetest.Mount(self.path, opts=opts) as mount:
                    for _ in range(2):
                        self.assertTrue(read_by(mount.join("data"), size, at) == self.data[at:],
                                        (size, at))

    def test_direct_reads(self):
        with limetest.Mount(self.path) as mount, limetest.descriptor(
                mount.join("data"), os.O_RDONLY | os.O_DIRECT) as fd:
            buffer = mmap.mmap(-1, 3 << 20)
            for at in (0, 4096, SIZE // 4096 * 4096, SIZE - 1, SIZE):
                got = os.preadv(fd, [buffer], at)
                self.assertTrue(buffer[:got] == self.data[at:at + (3 << 20)], at)

    def test_pages_stay_cached_between_opens(self):
        os.utime(self.path, (1, 1))  # limefs indexes a just modified container twice
        with limetest.Mount(self.path) as mount:
            path = mount.join("data")
            limetest.read(path)
            before = self.bytes_read(mount.pid)
            self.assertTrue(limetest.read(path) == self.data)
            self.assertLess(self.bytes_read(mount.pid) - before, SIZE // 4)

    @staticmethod
    def bytes_read(pid):
        """Returns how many bytes the daemon has read so far."""
        with open(f"/proc/{pid}/io") as file:
            return int(dict(line.split(": ") for line in file)["rchar"])

    def test_read_ahead_bypasses_the_page_cache(self):
        """The daemon reads ahead without filling the page cache with the container."""
        need_page_cache(self, self.path)

        def bypasses_cache():
            limetest.drop_cache(self.path)
            with limetest.Mount(self.path, opts=SMALL) as mount:
                self.assertTrue(read_by(mount.join("data"), MIB) == self.data)
            return cached_pages(self.path) < SIZE // PAGE // 4
        # The daemon caches nothing while the mtime is too recent to reveal a change.
        writelib.until(bypasses_cache)

    def test_cached_container(self):
        """The page cache holds all of the container, or every other MiB."""
        for step in (1, 2):
            limetest.drop_cache(self.path)
            for at in range(0, SIZE, step * MIB):
                read_by(self.path, MIB, self.begin + at, MIB)
            with limetest.Mount(self.path, opts=SMALL) as mount:
                self.assertTrue(read_by(mount.join("data"), MIB) == self.data, step)

    def test_any_order(self):
        """Threads read sequentially and at random, by one shared descriptor or their own."""
        wrong = []

        def walk(name, shared, seed):
            dice = random.Random(seed)
            for _ in range(12):
                at, size = dice.randrange(SIZE), dice.choice([4096, 65536, 131072, MIB])
                most = dice.choice([size, 3 * MIB, 10 * MIB])
                if dice.randrange(2):
                    part = b"".join(os.pread(shared, min(size, at + most - place), place)
                                    for place in range(at, at + most, size))
                else:
                    part = read_by(name, size, at, most)
                if part != self.data[at:at + most]:
                    wrong.append((seed, at, size, most))
                os.posix_fadvise(shared, 0, 0, os.POSIX_FADV_DONTNEED)
        for opts in (None, SMALL, SMALL + ",max_read=65536", SMALL + ",max_threads=2"):
            limetest.drop_cache(self.path)
            with limetest.Mount(self.path, opts=opts) as mount:
                shared = os.open(mount.join("data"), os.O_RDONLY)
                limetest.at_once(*((walk, mount.join("data"), shared, seed) for seed in range(5)))
                os.close(shared)
        self.assertEqual(wrong, [])

    def test_exports(self):
        """An export has its own header, so requests begin at odd offsets of the record."""
        dims = (16, 16, 16, 10)
        field = random.Random(2).randbytes(16 ** 3 * 10 * 576)
        path = self.write("conf", limetest.container([("ildg-format", scidac.ildg_format(dims, 64)),
                                                      (FIELD, field)]))
        limetest.drop_cache(path)
        with limetest.Mount(path, opts=SMALL) as mount:
            whole = read_by(mount.join(FIELD + ".npy"), MIB)
            self.assertTrue(whole.endswith(field) and len(whole) - len(field) == 128)
            limetest.drop_cache(path)
            native = read_by(mount.join(FIELD + ".le.npy"), MIB)
            self.assertTrue(native[128:] == field[::-1] or
                            memoryview(native[128:136])[::-1] == field[:8])
            for t in range(dims[3]):
                nbytes = len(field) // dims[3]
                part = read_by(mount.join(FIELD + ".t", f"{t:03}"), MIB)
                self.assertTrue(part == field[t * nbytes:(t + 1) * nbytes], t)

    def test_slices(self):
        """Threads read time slices, which follow each other in the record, in sequence and in any
        order, also while another process changes the container."""
        dims, nbytes = (16, 16, 24, 8), 16 * 16 * 24 * 576
        field = bytearray(random.Random(3).randbytes(8 * nbytes))
        raw = limetest.container([("ildg-format", scidac.ildg_format(dims, 64)), (FIELD, field)])
        path, wrong = self.write("conf", raw), []
        begin = raw.index(field)

        def name_of(mount, t, zarr):
            return mount.join(f"{FIELD}.zarr", "field", f"{t}.0.0.0.0.0.0") if zarr else \
                mount.join(f"{FIELD}.t", f"{t:03}")

        def walk(mount, seed):
            dice, order = random.Random(seed), list(range(8))
            for _ in range(3):
                for t in dice.choice([order, order, order[::-1], dice.sample(order, 8)]):
                    size = dice.choice([5000, 131072, MIB, 1 << 24])
                    if read_by(name_of(mount, t, seed % 2), size) != field[t * nbytes:][:nbytes]:
                        wrong.append((seed, t))
        for opts in (None, SMALL, "max_read=131072"):
            limetest.drop_cache(path)
            with limetest.Mount(path, opts=opts) as mount:
                limetest.at_once(*((walk, mount, seed) for seed in range(4)))
        self.assertEqual(wrong, [])
        with limetest.Mount(path, opts="attr_timeout=0,entry_timeout=0") as mount:
            for turn in range(6):
                limetest.drop_cache(path)
                for t in range(4):
                    self.assertTrue(read_by(name_of(mount, t, False), MIB) ==
                                    field[t * nbytes:][:nbytes])
                new = random.Random(10 + turn).randbytes(nbytes)
                with open(path, "r+b") as file:
                    os.pwrite(file.fileno(), new, begin + 4 * nbytes)
                field[4 * nbytes:5 * nbytes] = new
                try:
                    self.assertTrue(read_by(name_of(mount, 4, False), MIB) == new, turn)
                except OSError as error:
                    self.assertEqual(error.errno, errno.ESTALE)

    def test_changed_by_others(self):
        """After a change in place ahead of a reader, reads give new bytes or ESTALE."""
        fd = os.open(self.path, os.O_RDWR)
        data = bytearray(self.data)
        for round in range(12):
            limetest.drop_cache(self.path)
            with limetest.Mount(self.path, opts=SMALL + ",attr_timeout=0") as mount:
                name = mount.join("data")
                place = (round + 4) * MIB  # beyond what the reader has read
                file = os.open(name, os.O_RDONLY)
                head = b"".join(os.pread(file, 131072, at) for at in range(0, 3 * MIB, 131072))
                self.assertTrue(head == data[:len(head)], round)
                new = random.Random(10 + round).randbytes(MIB)
                os.pwrite(fd, new, self.begin + place)
                data[place:place + MIB] = new
                try:
                    self.assertTrue(os.pread(file, MIB, place) == new, round)
                    self.assertTrue(read_by(name, MIB, place) == data[place:], round)
                except OSError as error:
                    self.assertEqual(error.errno, errno.ESTALE)
                os.close(file)
        os.close(fd)

    def test_ended(self):
        """A daemon ends on SIGTERM and SIGKILL, and no reader waits forever."""
        def walk(name, started):
            with contextlib.suppress(OSError), open(name, "rb", buffering=0) as file:
                for at in range(0, SIZE, MIB):
                    os.pread(file.fileno(), MIB, at)
                    started.set()
            started.set()
        for number in (signal.SIGTERM,) * 2 + (signal.SIGKILL,) * 4:
            limetest.drop_cache(self.path)
            mount, started = limetest.Mount(self.path, opts=SMALL), threading.Event()
            mount.start()
            pid = mount.pid
            reader = threading.Thread(target=walk, args=(mount.join("data"), started))
            reader.start()
            self.assertTrue(started.wait(60))
            os.kill(pid, number)
            reader.join(60)
            self.assertFalse(reader.is_alive())
            writelib.until(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), 60)
            mount.stop()


if __name__ == "__main__":
    limetest.main()
