"""Jobs that the daemon gives up during a write and that return: old writes don't replace new."""

import contextlib
import errno
import os
import random
import signal
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import mpitest
import test_ranks
import writelib
from faults import HANG, Faults
from fakejob import SYNC, WRITE, WRITING, FakeJob, ok
from test_ranks import serving, stats
from writelib import MIB, put, pwrite_all, read, some, until, write_direct

PAGE = 4096
TIMEOUT = 0.5  # job_timeout
LEASE = 4 * (TIMEOUT + MIB / 50e6)  # seconds in which ranks may carry out a write


def find_ranks(job):
    """{rank: pid} of the foreign job that serves this socket."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, KeyError):
            args = read(f"/proc/{pid}/cmdline").split(b"\0")
            if os.path.basename(args[0]) != b"limefs-io" or os.fsencode(job) not in args:
                continue
            with open(f"/proc/{pid}/environ", "rb") as file:
                values = dict(item.partition(b"=")[::2] for item in file.read().split(b"\0"))
            found[int(values[b"OMPI_COMM_WORLD_RANK"])] = int(pid)
    return found


@limetest.needs_fuse
class TestCase(writelib.TestCase):
    OPTS = ("extent=1M", "window=16M", "forward_from=1M", f"job_timeout={TIMEOUT}")

    def write_uncached(self, path, data, at=0):
        """Writes with O_DIRECT: when it returns, the daemon has the data."""
        with limetest.descriptor(path, os.O_WRONLY | os.O_DIRECT) as fd:
            write_direct(fd, data, at)


class WithMpi(TestCase):
    def setUp(self):
        mpitest.need_job(self)


class Stopped(WithMpi):
    def test_ranks_that_wake_up_late(self):
        """Ranks that stop at a write and wake up later don't overwrite newer data of the daemon."""
        rounds = 30 if limetest.STRESS else 1
        dice = random.Random(5)
        socket = test_ranks.TestCase.foreign_job(self, 3)
        ranks = find_ranks(socket)
        self.assertEqual(sorted(ranks), [0, 1, 2])
        path = self.write("c.lime", limetest.container([("data", bytes(24 * MIB))]))
        mount = self.rw(path, f"job={socket}", env=mpitest.environment(), timeout=60)
        choices = [[1], [0], [0, 1, 2], [1, 2], *([[1], [2], [0, 1, 2]] * rounds)]
        for i, victims in enumerate(choices):
            serving(mount)
            old, new = some(24 * MIB, 2 * i), some(24 * MIB, 2 * i + 1)
            moment = 0 if i < 4 else dice.random() * 0.02
            before = stats(mount)["job"]["connections"]
            stop = threading.Timer(moment, lambda v=victims: [os.kill(ranks[r], signal.SIGSTOP)
                                                              for r in v])
            try:
                stop.start()
                if not moment:
                    stop.join()
                self.write_uncached(mount.join("data"), old)
                stop.join()
                self.write_uncached(mount.join("data"), new)
                if not moment:
                    self.assertNotEqual(stats(mount)["job"]["state"], "serving")
            finally:
                stop.join()
                for rank in victims:
                    os.kill(ranks[rank], signal.SIGCONT)
            if not moment:
                until(lambda b=before: stats(mount)["job"]["connections"] > b, 60)
            serving(mount)  # all ranks have answered
            with open(mount.join("data"), "rb+", buffering=0) as file:
                os.fsync(file.fileno())
            self.assertHolds(path, [("data", new)])
        before = stats(mount)["forwarded_written_bytes"]

        def forwards():  # a slow rank can make the mount write locally again
            serving(mount)
            put(mount.join("data"), old)
            return stats(mount)["forwarded_written_bytes"] > before

        until(forwards, 60)
        mount.stop()
        self.assertHolds(path, [("data", old)])


class Killed(WithMpi):
    """A daemon is killed while a rank waits for its disk: the rank carries out no other write of
    that daemon later, when another mount may write to the file."""

    def test_pending_writes_are_revoked(self):
        directory = self.tempdir()
        faults = Faults(directory)
        self.addCleanup(faults.disarm)
        env = faults.environment(mpitest.environment())
        socket = test_ranks.TestCase.foreign_job(self, 2, env)
        path, size = os.path.join(directory, "c.lime"), 8 * MIB
        old, new = b"A" * size, b"B" * size
        put(path, limetest.container([("data", bytes(size))]))
        mount = serving(self.rw(path, f"job={socket}", "job_timeout=10"))
        faults.arm(1, "pwrite", 1, 0, HANG)

        written = []

        def write():
            with contextlib.suppress(OSError):
                for i in range(0, len(old), MIB):
                    self.write_uncached(mount.join("data"), old[i:i + MIB], i)
                    written.append(i)

        writer = threading.Thread(target=write)
        writer.start()
        until(lambda: faults.struck and len(written) > 4)  # the last write waits for the first
        os.kill(mount.pid, signal.SIGKILL)
        limetest.run(["fusermount3", "-u", "-z", mount.path])
        writer.join(60)
        self.assertFalse(writer.is_alive())
        until(lambda: not mount.pids())
        with self.rw(path) as other, open(other.join("data"), "rb+", buffering=0) as file:
            pwrite_all(file.fileno(), new, 0)
            os.fsync(file.fileno())
        self.assertHolds(path, [("data", new)])
        faults.disarm()
        with serving(self.rw(path, f"job={socket}")):  # all ranks have answered
            self.assertLessEqual(writelib.read(path).count(b"A"), MIB)  # only the call that hung


class Fake(TestCase):
    """A job made of one thread that can report several hosts."""

    def setUp(self):
        directory = self.tempdir()
        self.directory, self.socket = directory, os.path.join(self.tempdir(), "socket")
        self.data = some(8 * MIB, 1)
        for name in "ab":
            put(os.path.join(directory, name), limetest.container([("data", bytes(8 * MIB))]))

    def mounted(self, job, hosts):
        job.hosts = hosts
        return serving(self.rw(self.directory, f"job={self.socket}"))

    def drop_connection(self, job, mount):
        before = stats(mount)["job"]["connections"]
        job.drop()
        until(lambda: stats(mount)["job"]["connections"] > before)
        serving(mount)

    def test_fence_lease_and_user_of_each_write(self):
        with FakeJob(self.socket) as job:
            mount = self.mounted(job, 1)
            begin = time.time()
            self.write_uncached(mount.join("a/data"), self.data)
            self.assertGreater(len(job.writes), 3)
            for _, _, fence, end, uid in job.writes:
                self.assertEqual(uid, os.geteuid())
                self.assertEqual(struct.unpack_from("<I", job.window, fence)[0], 0)
                self.assertLessEqual(begin + LEASE, end / 1e9 + 0.01)
                self.assertLessEqual(end / 1e9, time.time() + LEASE)
            window, fence = job.window, job.writes[0][2]
            self.drop_connection(job, mount)
            self.assertEqual(struct.unpack_from("<I", window, fence)[0], 1)
            until(lambda: job.window is not window)
            mount.stop()

    def test_job_does_not_hold_the_lock(self):
        """The container's lock ends with the mount, even while the job has the file open."""
        with FakeJob(self.socket) as job:
            for turn in range(2):
                mount = self.mounted(job, 1)
                self.write_uncached(mount.join("a/data"), self.data)
                self.assertGreater(len(job.writes), 3 * turn)
                mount.stop()
            self.assertGreaterEqual(len(job.files), 2)
        self.assertHolds(os.path.join(self.directory, "a"), [("data", self.data)])

    def test_every_container_with_lost_data_reports_it(self):
        """fsync of each container with lost data returns EIO once; data written again is safe."""
        with FakeJob(self.socket) as job:
            mount = self.mounted(job, 2)
            fds = [os.open(mount.join(f"{name}/data"), os.O_RDWR) for name in "ab"]
            for name in "ab":
                self.write_uncached(mount.join(f"{name}/data"), self.data[:MIB], at=6 * MIB)
            for name, fd in zip("ab", fds):  # synced data is not lost
                os.fsync(fd)
            written = len(job.writes)
            with contextlib.ExitStack() as stack:
                for name in "ab":  # O_DIRECT: the daemon has the data now
                    fd = os.open(mount.join(f"{name}/data"), os.O_RDWR | os.O_DIRECT)
                    stack.callback(os.close, fd)
                    write_direct(fd, self.data)
                until(lambda: len(job.writes) >= written + 6)
                self.drop_connection(job, mount)
                for fd in fds:
                    self.assertErrno(errno.EIO, os.fsync, fd)
                for fd in fds:
                    os.fsync(fd)
                with contextlib.suppress(OSError):
                    stack.close()
            for fd in fds:
                with contextlib.suppress(OSError):  # may report another descriptor's error
                    os.close(fd)
            for name in "ab":
                put(mount.join(f"{name}/data"), self.data)
            mount.stop()
        for name in "ab":
            self.assertHolds(os.path.join(self.directory, name), [("data", self.data)])

    def test_new_write_waits_for_the_lease(self):
        """Ranks on other hosts can't be fenced: a write to the same bytes waits for their lease."""
        with FakeJob(self.socket) as job:
            mount = self.mounted(job, 2)
            job.silent.set()
            begin = time.monotonic()

            def write():
                with contextlib.suppress(OSError):  # close reports the lost data
                    self.write_uncached(mount.join("a/data"), self.data[:4 * MIB])

            writer = threading.Thread(target=write)
            writer.start()
            until(lambda: len(job.writes) >= 2)
            job.drop()
            writer.join()
            job.silent.clear()
            with contextlib.suppress(OSError):
                with open(mount.join("a/data"), "rb+") as file:
                    os.fsync(file.fileno())
            after = time.monotonic()
            self.write_uncached(mount.join("a/data"), self.data[:PAGE], at=7 * MIB)
            self.write_uncached(mount.join("b/data"), self.data[:PAGE])
            self.assertLess(time.monotonic() - after, LEASE / 2 * limetest.SLOWNESS)
            self.write_uncached(mount.join("a/data"), self.data[:2 * MIB], at=MIB)
            self.assertGreater(time.monotonic() - begin, LEASE)
            mount.stop()
        whole = bytearray(8 * MIB)
        whole[:4 * MIB] = self.data[:4 * MIB]
        whole[MIB:3 * MIB] = self.data[:2 * MIB]
        whole[7 * MIB:7 * MIB + PAGE] = self.data[:PAGE]
        self.assertHolds(os.path.join(self.directory, "a"), [("data", bytes(whole))])

    def test_pending_write_waits_for_the_lease(self):
        """A write that already waits for the job when it is given up waits for the lease, too."""
        want = bytearray(self.data[:4 * MIB].ljust(8 * MIB, b"\0"))
        with FakeJob(self.socket) as job:
            mount = self.mounted(job, 2)
            job.silent.set()
            fd = os.open(mount.join("a/data"), os.O_WRONLY | os.O_DIRECT)
            try:
                write_direct(fd, self.data[:4 * MIB])
                offset, n, _, lease, _ = until(lambda: job.writes)[0]
                at = offset // PAGE * PAGE + PAGE
                self.assertLess(at + 2 * PAGE, offset + n)
                want[at:at + PAGE] = self.data[-PAGE:]
                write_direct(fd, self.data[-PAGE:], at)
                self.assertGreater(time.time(), lease / 1e9)
            finally:
                job.silent.clear()
                with contextlib.suppress(OSError):  # reports the lost data
                    os.close(fd)
            mount.stop()
        self.assertHolds(os.path.join(self.directory, "a"), [("data", bytes(want))])

    def delay_writes_until_sync(self, job):
        """Ranks on other hosts, as with NFS: their data reaches the file only when they sync it."""
        held = []

        def handle(job, connection, opcode, tag, payload):
            if opcode == WRITE:
                number, offset, n, at, *_ = WRITING.unpack(payload)
                held.append((number, job.window[at:at + n], offset))
                return ok("Q", n)
            while opcode == SYNC and held:
                number, data, offset = held.pop(0)
                os.pwrite(job.files[number], data, offset)
            return job.answer(connection, opcode, tag, payload)

        job.handle = handle
        return held

    def write_record(self, path, held):
        """Overwrites the whole record; returns the descriptor, not synced."""
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        write_direct(fd, self.data)
        until(lambda: held)
        return fd

    def test_late_data_is_copied_with_the_rest(self):
        for size in (8 * MIB - 100, 8 * MIB + PAGE):  # cut; grown by a write
            path = put(os.path.join(self.directory, "a"),
                       limetest.container([("data", bytes(8 * MIB)), ("log", b"log")]))
            with self.subTest(size), FakeJob(self.socket) as job:
                held = self.delay_writes_until_sync(job)
                mount = self.mounted(job, 2)
                fd = self.write_record(mount.join("a/data"), held)
                if size < 8 * MIB:
                    os.ftruncate(fd, size)
                else:
                    write_direct(fd, self.data[:PAGE], 8 * MIB)
                os.close(fd)
                mount.stop()
            whole = (self.data + self.data[:PAGE])[:size]
            self.assertHolds(path, [("data", whole), ("log", b"log")])

    def test_late_data_does_not_overwrite_other_records(self):
        """The last record is cut and another one is appended: late data does not overwrite it."""
        with FakeJob(self.socket) as job:
            held = self.delay_writes_until_sync(job)
            mount = self.mounted(job, 2)
            fd = self.write_record(mount.join("a/data"), held)
            os.ftruncate(fd, MIB)
            put(mount.join("a/next"), b"next" * 1000)
            os.close(fd)
            mount.stop()
        self.assertHolds(os.path.join(self.directory, "a"),
                         [("data", self.data[:MIB]), ("next", b"next" * 1000)])
        self.assertEqual(sorted(os.listdir(self.directory)), ["a", "b"])


if __name__ == "__main__":
    limetest.main()
