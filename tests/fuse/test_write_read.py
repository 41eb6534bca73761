"""Large reads through the job on writable mounts: a read returns the last written data, and reads
are forwarded again when no process writes to the record."""

import contextlib
import itertools
import mmap
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import test_write_ranks
import writelib
from test_ranks import stats
from writelib import MIB, put, pwrite_all, some, until

BLOCK = 256 * 1024
PAGE = 4096


def read_uncached(path, block=MIB):
    """Reads a whole file with O_DIRECT."""
    with limetest.descriptor(path, os.O_RDONLY | os.O_DIRECT) as fd:
        with mmap.mmap(-1, block) as buffer:
            data = b""
            while got := os.readv(fd, [buffer]):
                data += buffer[:got]
            return data


class TestCase(test_write_ranks.TestCase):
    OPTS = ("extent=1M", "window=16M", "forward_from=1M", "job_timeout=30", "stripe=64K")

    def with_job(self, source, *opts, ranks=2):
        return self.through(source, f"ranks={ranks}", *opts)

    def read_until_forwarded(self, mount, name, data):
        """Reads the record until most of it comes through the job; the data is right each time."""
        def most():
            before = stats(mount)["forwarded_bytes"]
            self.assertBytes(read_uncached(mount.join(name)), data, name)
            return stats(mount)["forwarded_bytes"] - before > len(data) // 2
        until(most, 30)


class Content(TestCase):
    def test_after_each_kind_of_change(self):
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                self.each_kind_of_change(ranks)

    def each_kind_of_change(self, ranks):
        inner, last = some(5 * MIB + 77, 1), some(6 * MIB + 5, 2)
        path = self.write(f"{ranks}.lime", limetest.container([("inner", inner), ("last", last)]))
        with self.with_job(path, ranks=ranks) as mount:
            self.read_until_forwarded(mount, "inner", inner)
            self.read_until_forwarded(mount, "last", last)

            part = some(3 * MIB, 3)  # in place
            with open(mount.join("inner"), "r+b", buffering=0) as file:
                pwrite_all(file.fileno(), part, MIB + 1)
            inner = inner[:MIB + 1] + part + inner[MIB + 1 + len(part):]
            self.read_until_forwarded(mount, "inner", inner)
            self.read_until_forwarded(mount, "last", last)

            new = some(7 * MIB + 3, 4)  # appended
            put(mount.join("new"), new)
            self.read_until_forwarded(mount, "new", new)
            self.read_until_forwarded(mount, "inner", inner)

            os.truncate(mount.join("new"), 4 * MIB + 1)  # cut
            new = new[:4 * MIB + 1]
            self.read_until_forwarded(mount, "new", new)
            os.truncate(mount.join("new"), 6 * MIB)  # longer again, with zeros
            new = new.ljust(6 * MIB, b"\0")
            self.read_until_forwarded(mount, "new", new)
            with open(mount.join("new"), "ab", buffering=0) as file:
                writelib.write_all(file.fileno(), part)
            new += part
            self.read_until_forwarded(mount, "new", new)

            inner = some(len(inner), 5)  # rewritten with the same length
            put(mount.join("inner"), inner)
            self.read_until_forwarded(mount, "inner", inner)
            inner = some(8 * MIB + 11, 6)  # with another length: the container is a new file
            put(mount.join("inner"), inner)
            self.read_until_forwarded(mount, "inner", inner)
            self.read_until_forwarded(mount, "last", last)
            self.read_until_forwarded(mount, "new", new)

            for flag in (b"1", b"0"):  # changes headers only
                os.setxattr(mount.join("last"), "user.lime.mb", flag)
                self.read_until_forwarded(mount, "last", last)
            os.unlink(mount.join("new"))
            other = some(5 * MIB, 7)  # at the place of the removed record
            put(mount.join("other"), other)
            self.read_until_forwarded(mount, "other", other)
        self.assertHolds(path, [("inner", inner), ("last", last), ("other", other)])

    def test_through_the_page_cache(self):
        data = some(9 * MIB, 1)
        path = self.write("c.lime", limetest.container([("data", bytes(9 * MIB))]))
        with self.with_job(path) as mount:
            before = stats(mount)["forwarded_bytes"]
            put(mount.join("data"), data)

            def again():
                with open(mount.join("data"), "rb", buffering=0) as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    self.assertBytes(file.read(), data)
                return stats(mount)["forwarded_bytes"] - before > 5 * MIB
            until(again, 30)

    def test_a_record_is_read_while_another_one_grows(self):
        """Reads of an unchanged record stay forwarded while another record grows."""
        data = some(12 * MIB, 1)
        path = self.write("c.lime", limetest.container([("data", data)]))
        with self.with_job(path) as mount:
            self.read_until_forwarded(mount, "data", data)
            written = b""

            def append():
                nonlocal written
                if len(written) < 400 * MIB:
                    pwrite_all(fd, data[:MIB], len(written))
                    written += data[:MIB]

            with limetest.descriptor(mount.join("new"),
                                     os.O_WRONLY | os.O_CREAT | os.O_DIRECT) as fd:
                with limetest.in_background(append):
                    until(lambda: len(written) >= 2 * MIB, 30)
                    for _ in range(3):
                        self.read_until_forwarded(mount, "data", data)
            self.read_until_forwarded(mount, "new", written)
        self.assertHolds(path, [("data", data), ("new", written)])


class Oracle(TestCase):
    """Each page contains the number of its write. A read returns data no older than the last write
    that ended before the read, and no newer than the last one that began before the read's end."""
    BLOCKS = 32

    def block(self, number, version):
        return b"".join(struct.pack("<QQ", number * (BLOCK // PAGE) + i, version).ljust(PAGE, b"x")
                        for i in range(BLOCK // PAGE))

    def run_oracle(self, rounds, ranks, writers=1, *opts, forwarded=0):
        """Runs at least `rounds` rounds, and until `forwarded` bytes were forwarded."""
        first = b"".join(self.block(i, 0) for i in range(self.BLOCKS))
        path = self.write("c.lime", limetest.container([("info", b"i" * 100), ("data", first)]))
        ended, begun = [0] * self.BLOCKS, [0] * self.BLOCKS

        def write(fd, mine, dice):
            at = dice.randrange(self.BLOCKS // writers) * writers + mine
            for i in range(at, min(at + dice.choice([1, 1, 5]) * writers, self.BLOCKS), writers):
                begun[i] += 1
                pwrite_all(fd, self.block(i, begun[i]), i * BLOCK)
                if not mine % 2:
                    os.fsync(fd)
                ended[i] = begun[i]
            time.sleep(dice.choice([0, 0, 0.002, 0.1, 0.3]))

        def read(mount, seed):
            count = random.Random(seed).choice([1, 4])
            with limetest.descriptor(mount.join("data"), os.O_RDONLY | os.O_DIRECT) as fd, \
                    mmap.mmap(-1, count * BLOCK) as buffer:
                for at in range(0, self.BLOCKS, count):
                    least = list(ended)
                    got = os.preadv(fd, [buffer], at * BLOCK)
                    most = list(begun)
                    self.assertEqual(got, min(count, self.BLOCKS - at) * BLOCK, at)
                    for page in range(got // PAGE):
                        place, version = struct.unpack_from("<QQ", buffer, page * PAGE)
                        i = at + page * PAGE // BLOCK
                        self.assertEqual(place, at * (BLOCK // PAGE) + page)
                        self.assertTrue(least[i] <= version <= most[i],
                                        (at, page, version, least[i], most[i]))

        with self.with_job(path, *opts, ranks=ranks) as mount:
            with contextlib.ExitStack() as stack:
                for i in range(writers):
                    fd = stack.enter_context(limetest.descriptor(
                        mount.join("data"), os.O_WRONLY | (os.O_DIRECT if i % 2 else 0)))
                    stack.enter_context(limetest.in_background(write, fd, i, random.Random(i)))
                end = time.monotonic() + 60 * limetest.SLOWNESS
                for i in itertools.count():
                    if i >= rounds and stats(mount)["forwarded_bytes"] >= forwarded:
                        break
                    self.assertLess(time.monotonic(), end, stats(mount))
                    limetest.at_once((read, mount, 2 * i), (read, mount, 2 * i + 1))
            self.assertEqual(begun, ended)
            self.assertGreater(sum(ended), 0)
            data = b"".join(self.block(i, ended[i]) for i in range(self.BLOCKS))
            self.read_until_forwarded(mount, "data", data)

    def test_a_writer_and_readers(self):
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                self.run_oracle(300 if limetest.STRESS else 20, ranks)

    def test_writers_and_readers(self):
        self.run_oracle(300 if limetest.STRESS else 20, 2, 3)

    def test_writers_that_pause(self):
        """Reads are forwarded in the writers' pauses."""
        self.run_oracle(600 if limetest.STRESS else 60, 2, 1, "forward_from=256K",
                        forwarded=2 * self.BLOCKS * BLOCK)


if __name__ == "__main__":
    limetest.main()
