"""With a job behind a mount that writes: programs, records cut, removed and replaced while what
was written to them is on its way, trees. (test_write_ranks.py has the job and its faults.)"""

import contextlib
import errno
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import test_write
import test_write_ranks
import writelib
from test_ranks import folders, pids_of, stats
from writelib import MIB, put, pwrite_all, read, until, write_all

A = ("first", b"a" * 1000)
SMALL = 6 * MIB


def some(n, seed=1):
    """Quickly, and not the same in any two blocks."""
    block = random.Random(seed).randbytes(65536 + 8)
    return (block * (n // len(block) + 1))[:n]


class Job(test_write_ranks.TestCase):
    OPTS = ("extent=1M", "window=16M", "forward_from=1M", "job_timeout=30", "stripe=64K")

    def setUp(self):
        super().setUp()
        self.data = some(SMALL + 12345)
        self.items = [A, ("data", bytes(len(self.data))), ("last", b"l" * 1000)]
        self.path = self.write("c.lime", limetest.container(self.items))

    def with_job(self, *opts, ranks=2, source=None):
        return self.through(source or self.path, f"ranks={ranks}", *opts)

    def assertForwarded(self, mount, nbytes):
        self.assertGreater(stats(mount)["forwarded_written_bytes"], nbytes, stats(mount))

    def programs(self, ranks, *opts):
        given = self.write("given", self.data)
        items = list(self.items)
        with self.with_job(*opts, ranks=ranks) as mount:
            for i, how in enumerate([["bs=1M"], ["bs=1M", "conv=fsync"], ["bs=4k"],
                                     ["bs=64M", "iflag=fullblock"], ["bs=300001"],
                                     ["bs=1M", "oflag=direct", "conv=fsync"]], 4):
                self.run_ok(["dd", f"if={given}", f"of={mount.join(f'new {i}')}", "status=none",
                             *how])
                items.append((f"new {i}", self.data))
                self.assertHolds(self.path, items)  # at once
                self.assertBytes(read(mount.join(f"new {i}")), self.data)
            self.run_ok(["cp", given, mount.join("data")])  # of the same length
            items[1] = ("data", self.data)
            self.assertHolds(self.path, items)
            self.assertForwarded(mount, 2 * SMALL)
        self.assertHolds(self.path, items)

    def test_programs(self):
        self.programs(2)

    def test_programs_around_the_page_cache(self):
        self.programs(3, "direct_io")

    def test_in_place_anywhere(self):
        with self.with_job() as mount:
            given = self.write("given", self.data)
            self.run_ok(["dd", f"if={given}", f"of={mount.join('data')}", "bs=1M",
                         "conv=notrunc,fsync", "status=none"])
            self.items[1] = ("data", self.data)
            self.assertHolds(self.path, self.items)
            self.assertForwarded(mount, SMALL // 2)
            want, dice = bytearray(self.data), random.Random(3)
            with open(mount.join("data"), "r+b", buffering=0) as file:
                for i in range(200):
                    n = dice.choice([1, 100, 4096, 70000, MIB, 2 * MIB + 1])
                    at = dice.randrange(len(want) - n)
                    part = some(n, i)
                    want[at:at + n] = part
                    pwrite_all(file.fileno(), part, at)
                    if i % 20 == 0:
                        at = dice.randrange(len(want) - 100000)
                        self.assertBytes(os.pread(file.fileno(), 100000, at),
                                         want[at:at + 100000])
                    if i % 37 == 0:
                        os.fsync(file.fileno())
                self.assertBytes(os.pread(file.fileno(), len(want), 0), bytes(want))
            self.items[1] = ("data", bytes(want))
        self.assertHolds(self.path, self.items)

    def test_streams_that_stop(self):
        """Each in the middle of an extent: they do not keep the job from who comes next."""
        want, streams = bytearray(48 * MIB), 16
        path = self.write("big.lime", limetest.container([("data", bytes(want))]))
        some_bytes = some(MIB + 300000)
        with self.with_job(source=path) as mount, contextlib.ExitStack() as stack:
            def opened():
                fd = os.open(mount.join("data"), os.O_WRONLY | os.O_DIRECT)
                stack.callback(os.close, fd)
                return fd
            for i in range(streams):
                pwrite_all(opened(), some_bytes, 2 * i * MIB)
                want[2 * i * MIB:2 * i * MIB + len(some_bytes)] = some_bytes
            last, at = opened(), 2 * streams * MIB
            before = stats(mount)["forwarded_written_bytes"]

            def forwarded():
                pwrite_all(last, self.data[:4 * MIB], at)
                return stats(mount)["forwarded_written_bytes"] > before
            until(forwarded)
            want[at:at + 4 * MIB] = self.data[:4 * MIB]
        self.assertHolds(path, [("data", bytes(want))])

    def test_cut_and_removed_while_it_is_on_its_way(self):
        """What is gathered must not come back, or come to where something else is."""
        with self.with_job() as mount:
            for i in range(10 if limetest.STRESS else 3):
                n = 1000 + i
                longer = self.data[:n].ljust(2 * MIB, b"\0")
                fd = os.open(mount.join("new"), os.O_RDWR | os.O_CREAT | os.O_DIRECT)
                pwrite_all(fd, self.data, 0)
                os.ftruncate(fd, n)
                self.assertEqual(os.fstat(fd).st_size, n)
                self.assertBytes(os.pread(fd, 5000, 0), self.data[:n])
                os.ftruncate(fd, 2 * MIB)
                self.assertBytes(os.pread(fd, 2 * MIB, 0), longer)
                os.close(fd)
                self.assertHolds(self.path, [*self.items, ("new", longer)])
                fd = os.open(mount.join("new"), os.O_WRONLY | os.O_DIRECT)
                pwrite_all(fd, self.data, 0)
                os.close(fd)
                os.unlink(mount.join("new"))
                put(mount.join("other"), b"other" * 100000)
                self.assertHolds(self.path, [*self.items, ("other", b"other" * 100000)])
                os.unlink(mount.join("other"))
        self.assertHolds(self.path, self.items)

    def test_an_inner_record_of_another_length(self):
        """The container that the job has open is then another one; it opens the new one."""
        with self.with_job() as mount:
            for i in range(3):
                new, last = some(2 * MIB + i, i), some(5 * MIB + i, 10 + i)
                put(mount.join("data"), new)
                before = stats(mount)["forwarded_written_bytes"]
                put(mount.join("last"), last)
                self.assertForwarded(mount, before + 3 * MIB)
                self.assertHolds(self.path, [A, ("data", new), ("last", last)])
                with open(mount.join("data"), "r+b", buffering=0) as file:
                    write_all(file.fileno(), new[::-1])
                self.assertHolds(self.path, [A, ("data", new[::-1]), ("last", last)])

    def test_the_last_record_while_an_inner_one_is_replaced(self):
        """Its bytes are on their way into a file that is no longer the container; or that is
        refused."""
        first, want = self.items[0][1], self.items[2][1]
        with self.with_job() as mount:
            fd = os.open(mount.join("last"), os.O_RDWR | os.O_DIRECT)
            for i in range(4):
                pwrite_all(fd, self.data[:2 * MIB], len(want))
                want += self.data[:2 * MIB]
                new = b"%d" % i * (i + 1)
                if self.succeeds([errno.EBUSY], put, mount.join("first"), new):
                    first = new
                if i % 2:
                    os.fsync(fd)
                self.assertBytes(os.pread(fd, len(want), 0), want, i)
            os.close(fd)
            self.assertBytes(read(mount.join("first")), first)
        self.assertHolds(self.path, [("first", first), self.items[1], ("last", want)])

    def test_a_tree(self):
        folder = os.path.dirname(self.path)
        with self.with_job(source=folder) as mount:
            os.mkdir(mount.join("new.lime"))
            for name in ("one", "two"):
                put(mount.join("new.lime", name), self.data)
            put(mount.join("c.lime/data"), self.data)
            put(mount.join("plain"), self.data)
            os.rename(mount.join("new.lime"), mount.join("moved.lime"))
            put(mount.join("moved.lime/three"), self.data)
            self.assertForwarded(mount, SMALL)
        self.items[1] = ("data", self.data)
        self.assertHolds(self.path, self.items)
        self.assertHolds(os.path.join(folder, "moved.lime"),
                         [(name, self.data) for name in ("one", "two", "three")])
        self.assertBytes(read(os.path.join(folder, "plain")), self.data)

    def test_a_disk_that_is_full_by_and_by(self):
        """Each time a little more room: wherever the end comes, the writer hears of it."""
        fs = writelib.SmallFs(self, "tmpfs", 24)
        path = put(fs.join("c.lime"), limetest.container([A]))
        with self.with_job(source=path) as mount:
            for i in range(12 if limetest.STRESS else 4):
                filler = fs.fill(MIB // 2 * (i % 8 + 2) + 4096 * i)
                fd = os.open(mount.join("new"), os.O_WRONLY | os.O_CREAT | (i % 2 and os.O_DIRECT))
                told = [self.succeeds((errno.ENOSPC, errno.EIO), *step)
                        for step in ((pwrite_all, fd, self.data, 0),
                                     *[(os.fsync, fd)][:i % 3], (os.close, fd))]
                self.assertIn(False, told)
                os.unlink(filler)
                for name in sorted(os.listdir(mount))[1:]:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(mount.join(name))
                put(mount.join("after"), self.data)
                self.assertHolds(path, [A, ("after", self.data)])
                os.unlink(mount.join("after"))
        self.assertHolds(path, [A])

    def test_everything_at_once(self):
        for tree in (False, True):
            test_write.Concurrent.everything_at_once(self, tree=tree,
                                                     start=lambda s: self.with_job(source=s))

    def test_nothing_is_left(self):
        with self.with_job() as mount:
            put(mount.join("new"), self.data)
            daemon = pids_of(mount, "limefs")[0]
        self.assertEqual(folders(daemon), [])
        self.run_ok(["lime", "repair", self.path])


if __name__ == "__main__":
    limetest.main()
