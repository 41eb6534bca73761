"""Jobs that are given up in the middle of a write, and come back: what they had been asked to write
never comes after what was written since."""

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
LEASE = 4 * (TIMEOUT + MIB / 50e6)  # seconds in which ranks may write what they were asked to


def ranks_of(job):
    """{rank: pid} of a foreign job, by its socket."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, KeyError):
            words = read(f"/proc/{pid}/cmdline").split(b"\0")
            if os.path.basename(words[0]) != b"limefs-io" or os.fsencode(job) not in words:
                continue
            with open(f"/proc/{pid}/environ", "rb") as file:
                values = dict(item.partition(b"=")[::2] for item in file.read().split(b"\0"))
            found[int(values[b"OMPI_COMM_WORLD_RANK"])] = int(pid)
    return found


@limetest.needs_fuse
class TestCase(writelib.TestCase):
    OPTS = ("extent=1M", "window=16M", "forward_from=1M", f"job_timeout={TIMEOUT}")

    def write_around(self, path, data, at=0):
        """Around the kernel's cache: when it returns, it is the daemon's."""
        with limetest.descriptor(path, os.O_WRONLY | os.O_DIRECT) as fd:
            write_direct(fd, data, at)


class WithMpi(TestCase):
    def setUp(self):
        mpitest.need_job(self)


class Stopped(WithMpi):
    def test_ranks_that_wake_up_late(self):
        """Some of them, or all, at the beginning or in the middle; what they have in hand then is
        written by the daemon, and other bytes after it."""
        rounds = 30 if limetest.STRESS else 1
        dice = random.Random(5)
        socket = test_ranks.TestCase.foreign_job(self, 3)
        ranks = ranks_of(socket)
        self.assertEqual(sorted(ranks), [0, 1, 2])
        path = self.write("c.lime", limetest.container([("data", bytes(24 * MIB))]))
        mount = self.rw(path, f"job={socket}", env=mpitest.environment(), timeout=60)
        for i, victims in enumerate([[1], [0], [0, 1, 2], [1, 2], *([[1], [2], [0, 1, 2]] * rounds)]):
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
                self.write_around(mount.join("data"), old)
                stop.join()
                self.write_around(mount.join("data"), new)
                if not moment:
                    self.assertNotEqual(stats(mount)["job"]["state"], "serving")
            finally:
                stop.join()
                for rank in victims:
                    os.kill(ranks[rank], signal.SIGCONT)
            if not moment:
                until(lambda b=before: stats(mount)["job"]["connections"] > b, 60)
            serving(mount)  # all of them have answered
            with open(mount.join("data"), "rb+", buffering=0) as file:
                os.fsync(file.fileno())
            self.assertHolds(path, [("data", new)])
        before = stats(mount)["forwarded_written_bytes"]
        put(mount.join("data"), old)
        self.assertGreater(stats(mount)["forwarded_written_bytes"], before)
        mount.stop()
        self.assertHolds(path, [("data", old)])


class Killed(WithMpi):
    """A daemon, while a rank waits for its disk: what else it was to write is not written later,
    when it may be another mount's."""

    def test_what_was_asked_for_is_taken_back(self):
        directory = self.tempdir()
        faults = Faults(directory)
        self.addCleanup(faults.disarm)
        socket = test_ranks.TestCase.foreign_job(self, 2, faults.environment(mpitest.environment()))
        old, new = b"A" * (8 * MIB), b"B" * (8 * MIB)
        path = put(os.path.join(directory, "c.lime"), limetest.container([("data", bytes(8 * MIB))]))
        mount = serving(self.rw(path, f"job={socket}", "job_timeout=10"))
        faults.arm(1, "pwrite", 1, 0, HANG)

        written = []

        def write():
            with contextlib.suppress(OSError):
                for i in range(0, len(old), MIB):
                    self.write_around(mount.join("data"), old[i:i + MIB], i)
                    written.append(i)

        writer = threading.Thread(target=write)
        writer.start()
        until(lambda: faults.struck and len(written) > 4)  # (the last waits for the first)
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
            self.assertLessEqual(writelib.read(path).count(b"A"), MIB)  # what hung, as in a kernel


class Fake(TestCase):
    """A job made of one thread, that says it is on two hosts."""

    def setUp(self):
        directory = self.tempdir()
        self.directory, self.socket = directory, os.path.join(self.tempdir(), "socket")
        self.data = some(8 * MIB, 1)
        for name in "ab":
            put(os.path.join(directory, name), limetest.container([("data", bytes(8 * MIB))]))

    def mounted(self, job, hosts):
        job.hosts = hosts
        return serving(self.rw(self.directory, f"job={self.socket}"))

    def drop(self, job, mount):
        before = stats(mount)["job"]["connections"]
        job.drop()
        until(lambda: stats(mount)["job"]["connections"] > before)
        serving(mount)

    def test_what_is_said_with_each_write(self):
        with FakeJob(self.socket) as job:
            mount = self.mounted(job, 1)
            begin = time.time()
            self.write_around(mount.join("a/data"), self.data)
            self.assertGreater(len(job.writes), 3)
            for _, _, fence, end, uid in job.writes:
                self.assertEqual(uid, os.geteuid())
                self.assertEqual(struct.unpack_from("<I", job.window, fence)[0], 0)
                self.assertLessEqual(begin + LEASE, end / 1e9 + 0.01)
                self.assertLessEqual(end / 1e9, time.time() + LEASE)
            window, fence = job.window, job.writes[0][2]
            self.drop(job, mount)
            self.assertEqual(struct.unpack_from("<I", window, fence)[0], 1)
            until(lambda: job.window is not window)
            mount.stop()

    def test_the_lock_is_not_passed_on(self):
        """It ends with the mount, whatever the job still has open."""
        with FakeJob(self.socket) as job:
            for turn in range(2):
                mount = self.mounted(job, 1)
                self.write_around(mount.join("a/data"), self.data)
                self.assertGreater(len(job.writes), 3 * turn)
                mount.stop()
            self.assertGreaterEqual(len(job.files), 2)
        self.assertHolds(os.path.join(self.directory, "a"), [("data", self.data)])

    def test_every_view_that_has_lost_hears_of_it(self):
        """Once each; what is written again then is safe."""
        with FakeJob(self.socket) as job:
            mount = self.mounted(job, 2)
            fds = [os.open(mount.join(f"{name}/data"), os.O_RDWR) for name in "ab"]
            for name in "ab":
                self.write_around(mount.join(f"{name}/data"), self.data[:MIB], at=6 * MIB)
            for name, fd in zip("ab", fds):  # the synced are not lost
                os.fsync(fd)
            written = len(job.writes)
            with contextlib.ExitStack() as stack:
                for name in "ab":  # O_DIRECT: they are with the daemon now
                    fd = os.open(mount.join(f"{name}/data"), os.O_RDWR | os.O_DIRECT)
                    stack.callback(os.close, fd)
                    write_direct(fd, self.data)
                until(lambda: len(job.writes) >= written + 6)
                self.drop(job, mount)
                for fd in fds:
                    self.assertErrno(errno.EIO, os.fsync, fd)
                for fd in fds:
                    os.fsync(fd)
                with contextlib.suppress(OSError):
                    stack.close()
            for fd in fds:
                with contextlib.suppress(OSError):  # another descriptor's error, perhaps
                    os.close(fd)
            for name in "ab":
                put(mount.join(f"{name}/data"), self.data)
            mount.stop()
        for name in "ab":
            self.assertHolds(os.path.join(self.directory, name), [("data", self.data)])

    def test_ranks_elsewhere_are_outlasted(self):
        """They cannot be told; so who writes to the same bytes waits until they may not any more."""
        with FakeJob(self.socket) as job:
            mount = self.mounted(job, 2)
            job.silent.set()
            begin = time.monotonic()

            def write():
                with contextlib.suppress(OSError):  # at close: what has been lost
                    self.write_around(mount.join("a/data"), self.data[:4 * MIB])

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
            self.write_around(mount.join("a/data"), self.data[:PAGE], at=7 * MIB)
            self.write_around(mount.join("b/data"), self.data[:PAGE])
            self.assertLess(time.monotonic() - after, LEASE / 2 * limetest.SLOWNESS)
            self.write_around(mount.join("a/data"), self.data[:2 * MIB], at=MIB)
            self.assertGreater(time.monotonic() - begin, LEASE)
            mount.stop()
        whole = bytearray(8 * MIB)
        whole[:4 * MIB] = self.data[:4 * MIB]
        whole[MIB:3 * MIB] = self.data[:2 * MIB]
        whole[7 * MIB:7 * MIB + PAGE] = self.data[:PAGE]
        self.assertHolds(os.path.join(self.directory, "a"), [("data", bytes(whole))])

    def test_ranks_elsewhere_are_outlasted_by_who_waits_already(self):
        """For bytes that the job has in hand when it is given up."""
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
                with contextlib.suppress(OSError):  # what has been lost
                    os.close(fd)
            mount.stop()
        self.assertHolds(os.path.join(self.directory, "a"), [("data", bytes(want))])

    def writes_back_late(self, job):
        """Ranks elsewhere, as by NFS: what they have written is there once they have synced it."""
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

    def stream(self, path, held):
        """All of a record anew; a descriptor, not synced."""
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        write_direct(fd, self.data)
        until(lambda: held)
        return fd

    def test_what_is_written_back_late_is_collected_with_the_rest(self):
        for size in (8 * MIB - 100, 8 * MIB + PAGE):  # cut; grown by a write
            path = put(os.path.join(self.directory, "a"),
                       limetest.container([("data", bytes(8 * MIB)), ("log", b"log")]))
            with self.subTest(size), FakeJob(self.socket) as job:
                held = self.writes_back_late(job)
                mount = self.mounted(job, 2)
                fd = self.stream(mount.join("a/data"), held)
                if size < 8 * MIB:
                    os.ftruncate(fd, size)
                else:
                    write_direct(fd, self.data[:PAGE], 8 * MIB)
                os.close(fd)
                mount.stop()
            whole = (self.data + self.data[:PAGE])[:size]
            self.assertHolds(path, [("data", whole), ("log", b"log")])

    def test_what_is_written_back_late_is_not_where_other_records_are(self):
        """The last record is cut, and another one appended."""
        with FakeJob(self.socket) as job:
            held = self.writes_back_late(job)
            mount = self.mounted(job, 2)
            fd = self.stream(mount.join("a/data"), held)
            os.ftruncate(fd, MIB)
            put(mount.join("a/next"), b"next" * 1000)
            os.close(fd)
            mount.stop()
        self.assertHolds(os.path.join(self.directory, "a"),
                         [("data", self.data[:MIB]), ("next", b"next" * 1000)])
        self.assertEqual(sorted(os.listdir(self.directory)), ["a", "b"])



if __name__ == "__main__":
    limetest.main()
