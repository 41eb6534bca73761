"""Writing through real jobs, with and without faults."""

import contextlib
import errno
import json
import mmap
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import mpitest
import test_ranks
import test_write
import writelib
from test_ranks import pids_of, serving, stats
from writelib import A, MIB, put, pwrite_all, read, some, until

SMALL = ("extent=4M", "window=64M", "forward_from=1M", "job_timeout=2")


def write_record(path, data, block=MIB, flags=os.O_CREAT, each=None):
    """Writes and syncs as dd conv=fsync does; calls each(at) after each block."""
    with limetest.descriptor(path, os.O_WRONLY | flags) as fd:
        for at in range(0, len(data), block):
            writelib.write_all(fd, data[at:at + block])
            if each:
                each(at)
        os.fsync(fd)


@limetest.needs_fuse
class TestCase(writelib.TestCase):
    OPTS = SMALL

    def setUp(self):
        mpitest.need_job(self)
        super().setUp()

    def through(self, source, *opts):
        """A mount with a serving job."""
        return serving(self.rw(source, *opts, env=mpitest.environment(), timeout=60))


class Good(TestCase):
    OPTS = (*SMALL, "job_timeout=30")  # a busy disk may take seconds without a fault

    def test_records(self):
        """1 to 4 ranks append records and write in place, once with direct_io."""
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                first, second = some(37 * MIB + 13, ranks), some(16 * MIB, ranks + 10)
                new = some(len(first), ranks + 20)
                path = self.write("c.lime", limetest.container([("info", b"x" * 77)]))
                with self.through(path, f"ranks={ranks}", *["direct_io"] * (ranks == 3)) as mount:
                    write_record(mount.join("first"), first)
                    self.assertHolds(path, [("info", b"x" * 77), ("first", first)])
                    write_record(mount.join("second"), second, block=64 * 1024)
                    write_record(mount.join("first"), new, flags=0)
                    found = stats(mount)
                self.assertHolds(path, [("info", b"x" * 77), ("first", new), ("second", second)])
                total = 2 * len(first) + len(second)
                through, locally = (found[f"{how}_written_bytes"] for how in ("forwarded", "local"))
                self.assertEqual(through + locally, total)
                self.assertGreater(through, total / 2)

    def test_two_mounts_on_one_job(self):
        """The job's own counter confirms that the job wrote the data."""
        socket = test_ranks.TestCase.foreign_job(self, 2)
        data = [some(24 * MIB + i, i) for i in range(2)]
        paths = [self.write(f"{i}.lime", b"") for i in range(2)]
        mounts = [self.through(path, f"job={socket}") for path in paths]
        limetest.at_once(*((write_record, mounts[i].join("data"), data[i]) for i in range(2)))
        through = sum(stats(mount)["forwarded_written_bytes"] for mount in mounts)
        for path, mount, one in zip(paths, mounts, data):
            mount.stop()
            self.assertHolds(path, [("data", one)])
        status = json.loads(self.run_ok(["limefs-io", "--status", socket, "--json"],
                                        env=mpitest.environment()))
        self.assertEqual(status["bytes_written"], through)
        self.assertGreater(through, 24 * MIB)

    def test_requests_overtake_each_other(self):
        """A stream is forwarded even if its requests arrive in another order."""
        data = some(48 * MIB, 1)
        path = self.write("c.lime", limetest.container([("data", bytes(len(data)))]))
        order = [*range(8), *(at for near in range(8, 28) for at in (near, near + 20))]
        block = mmap.mmap(-1, MIB)  # page-aligned: the kernel makes one request of it
        with self.through(path, "ranks=2") as mount:
            with limetest.descriptor(mount.join("data"), os.O_WRONLY | os.O_DIRECT) as fd:
                for at in order:
                    block[:] = data[at * MIB:(at + 1) * MIB]
                    pwrite_all(fd, block, at * MIB)
                os.fsync(fd)
            self.assertGreater(stats(mount)["forwarded_written_bytes"], 40 * MIB)
        self.assertHolds(path, [("data", data)])

    def test_written_again(self):
        """Writes begin in the middle of an extent, then at its start, then overwrite all of it: the
        older data does not replace the newer."""
        extent, piece = 4 * MIB, 256 * 1024
        path = self.write("c.lime", limetest.container([("data", bytes(16 * MIB))]))
        want = bytearray(16 * MIB)
        with self.through(path, "ranks=2") as mount:
            first = extent - int(os.getxattr(mount.join("data"), "user.lime.offset"))
            second, middle = first + extent, first + extent + extent // 2

            def write(at, end, seed):
                want[at:end] = some(end - at, seed)
                for begin in range(at, end, piece):
                    pwrite_all(fd, want[begin:min(begin + piece, end)], begin)

            with limetest.descriptor(mount.join("data"), os.O_RDWR | os.O_DIRECT) as fd:
                for i in range(5):  # the job gets data from the next piece on
                    write(first, first + piece, i)
                write(first + piece, first + extent, 10)  # full: its slot is freed
                until(lambda: stats(mount)["forwarded_written_bytes"] >= extent - piece)
                for i in range(5):
                    write(middle, middle + piece, 20 + i)
                write(second, middle, 40)
                write(middle, second + extent, 50)
                os.fsync(fd)
        self.assertHolds(path, [("data", bytes(want))])

    def test_random_steps(self):
        path = self.write("c.lime", limetest.container([("inner", bytes(3 * MIB)), ("last", b"")]))
        steps = "100000" if limetest.STRESS else "600"
        with self.through(path, "ranks=2", "extent=1M", "window=8M") as mount:
            for seed, args in ((1, ["--max", "20000000", mount.join("last")]),
                               (2, ["--no-resize", mount.join("inner")]),
                               (3, ["--no-append", "--max", "6000000", mount.join("inner")])):
                done = limetest.run(["fsx", "--steps", steps, "--seed", str(seed), *args],
                                    timeout=3000)
                self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
            through = stats(mount)["forwarded_written_bytes"]
            self.assertGreater(through, 0)
        self.assertClean(path)
        print(f"# {self.id()}: three times {steps} steps, {through} bytes through the job")


class Job(TestCase):
    """Records are cut, removed and replaced while their data is on its way to the job."""

    OPTS = ("extent=1M", "window=16M", "forward_from=1M", "job_timeout=30", "stripe=64K")
    SIZE = 6 * MIB

    def setUp(self):
        super().setUp()
        self.data = some(self.SIZE + 12345)
        self.items = [A, ("data", bytes(len(self.data))), ("last", b"l" * 1000)]
        self.path = self.write("c.lime", limetest.container(self.items))

    def with_job(self, *opts, ranks=2, source=None):
        return self.through(source or self.path, f"ranks={ranks}", *opts)

    def assertForwarded(self, mount, nbytes):
        self.assertGreater(stats(mount)["forwarded_written_bytes"], nbytes, stats(mount))

    def test_streams_that_stop(self):
        """Streams that stop in the middle of an extent don't block the job for the next stream."""
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

    def test_cut_and_removed_during_a_write(self):
        """Buffered data of a cut record neither reappears nor overwrites another record."""
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

    def test_last_record_while_an_inner_one_is_replaced(self):
        """The last record keeps data on its way to the old file when an inner record is replaced,
        or the replacement fails with EBUSY."""
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
        directory = os.path.dirname(self.path)
        with self.with_job(source=directory) as mount:
            os.mkdir(mount.join("new.lime"))
            for name in ("one", "two"):
                put(mount.join("new.lime", name), self.data)
            put(mount.join("c.lime/data"), self.data)
            put(mount.join("plain"), self.data)
            os.rename(mount.join("new.lime"), mount.join("moved.lime"))
            put(mount.join("moved.lime/three"), self.data)
            self.assertForwarded(mount, self.SIZE)
        self.items[1] = ("data", self.data)
        self.assertHolds(self.path, self.items)
        self.assertHolds(os.path.join(directory, "moved.lime"),
                         [(name, self.data) for name in ("one", "two", "three")])
        self.assertBytes(read(os.path.join(directory, "plain")), self.data)

    def test_disk_full_at_various_places(self):
        """The writer gets an error wherever in the data the disk becomes full."""
        fs = writelib.SmallFs(self, "tmpfs", 24)
        path = put(fs.join("c.lime"), limetest.container([A]))
        with self.with_job(source=path) as mount:
            for i in range(12 if limetest.STRESS else 4):
                filler = fs.fill(MIB // 2 * (i % 8 + 2) + 4096 * i)
                fd = os.open(mount.join("new"), os.O_WRONLY | os.O_CREAT | (i % 2 and os.O_DIRECT))
                results = [self.succeeds((errno.ENOSPC, errno.EIO), *step)
                           for step in ((pwrite_all, fd, self.data, 0),
                                        *[(os.fsync, fd)][:i % 3], (os.close, fd))]
                self.assertIn(False, results)
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


class Faults(TestCase):
    def write_and_harm(self, harm, *opts, at=14 * MIB, nbytes=40 * MIB):
        """Writes a record and calls harm(mount) when it is half written; returns the container, the
        mount, which still works, and the data."""
        data = some(nbytes, 3)
        path = self.write("c.lime", limetest.container([("info", b"i")]))
        mount = self.through(path, *(opts or ["ranks=2"]))
        # With O_DIRECT the job is working at this moment.
        write_record(mount.join("data"), data, flags=os.O_CREAT | os.O_DIRECT,
                     each=lambda done: harm(mount) if done == at else None)
        self.assertHolds(path, [("info", b"i"), ("data", data)])
        return path, mount, data

    def test_rank_is_killed(self):
        def harm(mount):
            os.kill(random.Random(1).choice(pids_of(mount, "limefs-io")), signal.SIGKILL)

        path, mount, data = self.write_and_harm(harm)
        until(lambda: stats(mount)["job"]["connections"] >= 2, 60)
        serving(mount)
        before = stats(mount)["forwarded_written_bytes"]
        again = some(len(data), 4)
        write_record(mount.join("data"), again, flags=0)
        self.assertGreater(stats(mount)["forwarded_written_bytes"], before)
        mount.stop()
        self.assertHolds(path, [("info", b"i"), ("data", again)])

    def test_job_is_stopped(self):
        """After job_timeout of a job stopped by SIGSTOP the daemon writes the data itself."""
        stopped = []

        def harm(mount):
            stopped.extend(pids_of(mount, "limefs-io"))
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)

        _, mount, _ = self.write_and_harm(harm)
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        mount.stop()

    def test_unmounted_with_a_record_open(self):
        """SIGTERM during a write leaves the container clean and without the record."""
        path = self.write("c.lime", limetest.container([("info", b"i")]))
        mount = self.through(path, "ranks=2")
        fd = os.open(mount.join("data"), os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
        writelib.write_all(fd, some(10 * MIB, 1))
        os.kill(mount.pid, signal.SIGTERM)
        mount.wait_for_end()
        self.assertRaises(OSError, os.fsync, fd)
        with contextlib.suppress(OSError):
            os.close(fd)
        mount.stop()
        self.assertHolds(path, [("info", b"i")])

    def test_full_disk(self):
        fs = writelib.SmallFs(self, "tmpfs", 40)
        path = put(fs.join("c.lime"), limetest.container([("info", b"i" * 99)]))
        mount = self.through(path, "ranks=2")
        data = some(60 * MIB, 1)
        self.assertErrno((errno.ENOSPC, errno.EIO), write_record, mount.join("data"), data)
        until(lambda: not os.path.exists(mount.join("data")))
        self.assertHolds(path, [("info", b"i" * 99)])
        write_record(mount.join("data"), data[:20 * MIB])
        mount.stop()
        self.assertHolds(path, [("info", b"i" * 99), ("data", data[:20 * MIB])])

    def test_replaced_during_a_write(self):
        """The ranks go on with the old file, the writer gets an error, the new file is whole."""
        path = self.write("c.lime", limetest.container([("info", b"i")]))
        other = limetest.container([("other", b"o" * 1000)])
        mount = self.through(path, "ranks=2")

        def harm(at):
            if at == 10 * MIB:
                os.rename(self.write("new", other), path)

        self.assertErrno((errno.ESTALE, errno.EIO), write_record, mount.join("data"),
                         some(30 * MIB, 1), each=harm)
        mount.stop()
        self.assertEqual(read(path), other)


if __name__ == "__main__":
    limetest.main()
