"""Slices read one after another: the daemon reads ahead from one file to the next."""

import errno
import json
import mmap
import os
import random
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import aheadlib
import limetest
import scidac
import writelib
from aheadlib import FIELD, PAGE, drop, pages_there

SMALL, MIDDLE, LARGE = (4, 4, 4, 30), (8, 8, 8, 24), (16, 16, 24, 8)  # 36 KiB, 288 KiB, 3.4 MiB


def container(dims, seed):
    """(container, slices)"""
    nbytes = dims[0] * dims[1] * dims[2] * 576
    data = random.Random(seed).randbytes(nbytes * dims[3])
    form = scidac.ildg_format(dims, 64)
    return limetest.container([("ildg-format", form), (FIELD, data)]), \
        [data[i:i + nbytes] for i in range(0, len(data), nbytes)]


def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.readall()


@limetest.needs_fuse
class Ahead(limetest.TestCase):
    def stats(self, mount):
        return json.loads(os.getxattr(mount.path, "user.limefs.stats"))

    def slice_of(self, mount, t):
        return mount.join(f"{FIELD}.t", f"{t:03}")

    def chunk_of(self, mount, t):
        return mount.join(f"{FIELD}.zarr", "field", f"{t}.0.0.0.0.0.0")

    def test_in_turn(self):
        """With names that the kernel was told before, and with those that it was not."""
        for dims in (SMALL, MIDDLE, LARGE):
            raw, slices = container(dims, dims[0])
            path = self.write(f"conf{dims[0]}", raw)
            for listed in (True, False):
                for name in (self.slice_of, self.chunk_of):
                    drop(path)
                    with limetest.Mount(path) as mount:
                        if listed:
                            for _ in os.walk(mount.join(FIELD + ".t")):
                                pass
                            for _ in os.walk(mount.join(FIELD + ".zarr")):
                                pass
                        for again in range(2):
                            for t, wanted in enumerate(slices):
                                self.assertTrue(read(name(mount, t)) == wanted,
                                                (dims, listed, name.__name__, again, t))

    def test_any_order(self):
        """Backwards, leaping, by several readers at once, in pieces, mapped."""
        raw, slices = container(LARGE, 5)
        path = self.write("conf", raw)
        count, wrong = len(slices), []

        def walk(mount, seed):
            dice = random.Random(seed)
            order = list(range(count))
            for _ in range(3):
                for t in dice.choice([order, order[::-1], order[::2] + order[1::2],
                                      dice.sample(order, count)]):
                    name = dice.choice([self.slice_of, self.chunk_of])(mount, t)
                    size = dice.choice([5000, 131072, 1 << 20, 1 << 24])
                    with open(name, "rb", buffering=0) as file:
                        at = 0
                        while got := file.read(size):
                            if got != slices[t][at:at + len(got)]:
                                wrong.append((seed, t, at))
                            at += len(got)
                        with mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
                            if mapped[:] != slices[t] or at != len(slices[t]):
                                wrong.append((seed, t, "map"))
        for opts in (None, "readahead=128K", "max_read=131072"):
            drop(path)
            with limetest.Mount(path, opts=opts) as mount:
                readers = [threading.Thread(target=walk, args=(mount, seed)) for seed in range(4)]
                for reader in readers:
                    reader.start()
                for reader in readers:
                    reader.join()
        self.assertEqual(wrong, [])

    def test_the_next_is_there(self):
        """The kernel has pages of slices that nobody has asked for; of none after leaps."""
        raw, slices = container(LARGE, 2)
        path = self.write("conf", raw)
        aheadlib.need_pages(self, path)
        nbytes = len(slices[0])

        def reads_on():
            with limetest.Mount(path) as mount:
                names = sorted(os.path.join(mount.join(FIELD + ".t"), name)
                               for name in os.listdir(mount.join(FIELD + ".t")))
                for t in (6, 3):
                    read(names[t])
                # In this order: opening 4, which follows 3, has limefs read 5 to 7 ahead.
                self.assertEqual(pages_there(names[7]) + pages_there(names[4]), 0)
                drop(path)
                before = self.stats(mount)["local_bytes"]
                for t in (0, 1):
                    read(names[t])
                writelib.until(lambda: self.stats(mount)["local_bytes"] - before >= 5 * nbytes)
                return [name for name in (names[2], *names[4:6]) if pages_there(name) == nbytes // PAGE]
        # While the container is so young that a change might not show, its files are new ones.
        writelib.until(reads_on)

    def test_what_is_there_is_not_read(self):
        """Slices that the kernel has got wholly are left alone."""
        raw, slices = container(MIDDLE, 3)
        path = self.write("conf", raw)
        drop(path)
        with limetest.Mount(path) as mount:
            names = [self.slice_of(mount, t) for t in range(len(slices))]

            def again():
                before = self.stats(mount)
                for name in names:
                    read(name)
                after = self.stats(mount)
                return [after[what] - before[what] for what in ("requests", "local_bytes")]
            self.assertNotEqual(again(), [0, 0])
            # While the container is so young that a change might not show, its files are new ones.
            writelib.until(lambda: again() == [0, 0])

    def test_around_the_page_cache(self):
        """Slices in memory, taken in large pieces and in turn: the kernel keeps those that are
        opened once more; they can be mapped and sent the first time, too."""
        raw, slices = container(LARGE, 8)
        path = self.write("conf", raw)
        aheadlib.need_pages(self, path)
        aheadlib.need_linux(self, 6, 6)
        copy = self.write("copy", b"")
        pages, middle = len(slices[0]) // PAGE, 5

        def take(name, t, size):
            with open(name, "rb", buffering=0) as file, open(copy, "w+b") as out:
                self.assertTrue(b"".join(iter(lambda: file.read(size), b"")) == slices[t], t)
                if t == middle:
                    for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
                        with mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ) as mapped:
                            self.assertTrue(mapped[:] == slices[t])
                    sent = 0
                    while got := os.sendfile(out.fileno(), file.fileno(), sent, len(slices[t])):
                        sent += got
                    self.assertTrue(read(copy) == slices[t])

        def kept(mount, names, size):
            for t, name in enumerate(names):
                take(name, t, size)
            return [pages_there(name) == pages for t, name in enumerate(names) if t != middle]

        def passes(sizes):
            """For each pass over all slices, of which the kernel has the pages afterwards."""
            with limetest.Mount(path) as mount:
                names = [self.slice_of(mount, t) for t in range(len(slices))]
                read(path)
                return [kept(mount, names, size) for size in sizes]
        some, every = [True] * 2 + [False] * 5, [True] * 7
        # While the container is so young that a change might not show, its files are new ones.
        # Under memory pressure the kernel may also drop pages in the middle of a pass.
        for sizes, want in (([1 << 20] * 2, [some, every]),
                            ([4 << 20, 1 << 20, 1 << 12], [some, every, every]),
                            ([128 << 10], [every])):
            writelib.until(lambda s=sizes, w=want: passes(s) == w)

    def test_mapped_with_direct_io(self):
        aheadlib.need_linux(self, 6, 6)
        data = random.Random(11).randbytes(3 * PAGE + 5)
        path = self.write("conf", limetest.container([(FIELD, data)]))
        with limetest.Mount(path, opts="direct_io,forward_from=4K") as mount, \
                open(mount.join(FIELD), "rb") as file:
            with mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
                self.assertEqual(mapped[:], data)
            self.assertEqual(file.read(), data)

    def test_reader_who_takes_less_later(self):
        """One file is read around the page cache in vain, and no more."""
        raw, slices = container(LARGE, 9)
        path = self.write("conf", raw)
        aheadlib.need_pages(self, path)

        def requests():
            with limetest.Mount(path) as mount:
                read(path)
                taken = []
                for t, wanted in enumerate(slices):
                    before = self.stats(mount)["requests"]
                    with open(self.slice_of(mount, t), "rb", buffering=0) as file:
                        pieces = iter(lambda: file.read(1 << 20 if t < 3 else 192 << 10), b"")
                        self.assertTrue(b"".join(pieces) == wanted)
                    taken.append(self.stats(mount)["requests"] - before)
                return taken
        few = len(slices[0]) // (192 << 10) // 2
        writelib.until(lambda: [n > few for n in requests()].count(True) <= 1)

    def test_changed_by_others(self):
        """In place, between one slice and the next: new bytes, or an error."""
        raw, slices = container(LARGE, 6)
        path = self.write("conf", raw)
        begin = raw.index(slices[0])
        for listed in (True, False):
            with limetest.Mount(path, opts="attr_timeout=0,entry_timeout=0") as mount:
                for round in range(6):
                    drop(path)
                    if listed:
                        os.listdir(mount.join(FIELD + ".t"))
                    for t in range(4):
                        self.assertEqual(read(self.slice_of(mount, t)), slices[t])
                    nbytes = len(slices[4])
                    new = random.Random(10 * round + listed).randbytes(nbytes)
                    with open(path, "r+b") as file:
                        os.pwrite(file.fileno(), new, begin + 4 * nbytes)
                    slices[4] = new
                    try:
                        self.assertTrue(read(self.slice_of(mount, 4)) == new, (listed, round))
                    except OSError as error:
                        self.assertEqual(error.errno, errno.ESTALE)

    def test_ended(self):
        """A daemon that is told to end, or is killed, does so, and no reader waits for ever."""
        raw, slices = container(LARGE, 7)
        path = self.write("conf", raw)
        dice = random.Random(1)
        for how in (signal.SIGTERM,) * 3 + (signal.SIGKILL,) * 6:
            drop(path)
            mount, limit = limetest.Mount(path), dice.randrange(2, len(slices))

            def walk(begun, mount=mount, limit=limit):
                for t, name in enumerate(sorted(os.listdir(mount.join(FIELD + ".t")))):
                    if t == limit:
                        begun.set()
                    read(mount.join(FIELD + ".t", name))
            aheadlib.check_end(self, mount, how, walk)


if __name__ == "__main__":
    limetest.main()
