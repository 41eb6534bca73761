"""fsync() and close() on a mount with a job: success means that the data is on the disk; data that
may be lost is reported."""

import concurrent.futures
import errno
import os
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import users
import writelib
from fakejob import CLOSE, HEADER, MAGIC, SYNC, WRITE, FakeJob, error
from faults import DAEMON, Faults
from test_ranks import serving, stats
from writelib import MIB, put, read, until, write_direct

WAIT = 60 * limetest.SLOWNESS  # seconds, for events that are due at once
FIRST = 144  # offset of the first record's data
SECOND = FIRST + 8 * MIB + 144


@limetest.needs_fuse
class TestCase(writelib.TestCase):
    """A job made of one thread, and containers of two records: while one record is synced, the
    kernel can write to the other."""

    TIMEOUT = 5
    OPTS = ("extent=1M", "window=16M", "forward_from=1M")

    def setUp(self):
        self.directory, self.socket = self.tempdir(), os.path.join(self.tempdir(), "socket")
        self.data = os.urandom(4 * MIB)
        for name in "abc":
            put(os.path.join(self.directory, name),
                limetest.container([("data", bytes(8 * MIB)), ("other", bytes(8 * MIB))]))
        self.job = FakeJob(self.socket)
        self.addCleanup(self.job.close)

    def mounted(self, **kw):
        return serving(self.rw(self.directory, f"job={self.socket}", f"job_timeout={self.TIMEOUT}",
                               **kw))

    def open_uncached(self, mount, name):
        """Opens with O_DIRECT: when a write returns, the daemon has the data."""
        fd = os.open(mount.join(name), os.O_RDWR | os.O_DIRECT)
        self.addCleanup(os.close, fd)
        return fd


class Held(TestCase):
    """A job that delays its answers to HELD requests until go_on is set."""

    HELD = SYNC

    def setUp(self):
        super().setUp()
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.addCleanup(self.go_on.set)

    def held(self, job, connection, opcode, tag, payload):
        if opcode == self.HELD:
            self.asked.set()
            self.go_on.wait(WAIT)
        return job.answer(connection, opcode, tag, payload)


class Gathered(Held):
    def test_during_another_sync(self):
        """fsync syncs data buffered during another fsync, which cleared the dirty flag before."""
        faults, path = Faults(self.directory), os.path.join(self.directory, "a")
        self.job.handle = self.held
        mount = self.mounted(env=faults.environment())
        fd, other = (self.open_uncached(mount, f"a/{name}") for name in ("data", "other"))
        write_direct(fd, self.data)
        syncer = threading.Thread(target=os.fsync, args=(other,))
        syncer.start()
        self.assertTrue(self.asked.wait(WAIT))
        write_direct(fd, self.data[:MIB // 2], 4 * MIB)
        self.go_on.set()
        syncer.join()
        self.assertEqual(read(path)[FIRST + 4 * MIB:][:MIB // 2], bytes(MIB // 2))  # still buffered
        faults.count(DAEMON)
        os.fsync(fd)
        self.assertEqual(faults.counts().get("fsync", 0), 1)
        self.assertEqual(read(path)[FIRST + 4 * MIB:][:MIB // 2], self.data[:MIB // 2])
        faults.count(DAEMON)
        os.fsync(fd)  # nothing is left to sync
        self.assertEqual(faults.counts().get("fsync", 0), 0)


class Ending(TestCase):
    """A job that is ending and accepts no more work."""

    def ending(self, job, connection, opcode, tag, payload):
        if opcode == SYNC:
            return error(errno.ESHUTDOWN, "the job is ending")
        return job.answer(connection, opcode, tag, payload)

    def test_the_daemon_syncs(self):
        faults, path = Faults(self.directory), os.path.join(self.directory, "a")
        self.job.handle = self.ending
        mount = self.mounted(env=faults.environment())
        fd = self.open_uncached(mount, "a/data")
        write_direct(fd, self.data)
        faults.count(DAEMON)
        os.fsync(fd)
        self.assertEqual(faults.counts().get("fsync", 0), 1)
        self.assertEqual(read(path)[FIRST:][:len(self.data)], self.data)

    def test_data_on_other_hosts_is_lost(self):
        self.job.hosts, self.job.handle = 2, self.ending
        mount = self.mounted()
        fd = self.open_uncached(mount, "a/data")
        write_direct(fd, self.data)
        self.assertErrno(errno.EIO, os.fsync, fd)
        os.fsync(fd)


class TimesOfChange(Held):
    HELD = WRITE
    TIMEOUT = 60  # seconds until the daemon gives up the job
    OPTS = ("extent=1M", "window=4M", "forward_from=1M")  # two extents can be in flight

    def test_mtime_updates_do_not_wait_for_a_write(self):
        """The daemon answers the kernel's mtime updates while a write waits for the job."""
        self.job.handle = self.held
        mount = self.mounted()
        fd, other = self.open_uncached(mount, "a/data"), os.open(mount.join("a/other"), os.O_RDWR)
        self.addCleanup(os.close, other)
        writer = threading.Thread(target=write_direct, args=(fd, self.data + self.data))
        writer.start()
        self.assertTrue(self.asked.wait(WAIT))
        for i in range(1, 4):
            os.pwrite(other, b"x" * i, 0)
            users.syncfs(other)
            until(lambda: read(os.path.join(self.directory, "a"))[SECOND:][:i] == b"x" * i)
        self.assertEqual(stats(mount)["job"]["state"], "serving")
        self.assertTrue(writer.is_alive())
        self.go_on.set()
        writer.join()


class SlowSync(TestCase):
    """The daemon does not give up a job that is slow because its disk syncs data."""

    TIMEOUT = 0.5
    LIMIT = TIMEOUT + MIB / 50e6

    def assertNeverGivenUp(self, mount):
        job = stats(mount)["job"]
        self.assertEqual((job["state"], job["connections"]), ("serving", 1))

    def synced(self):
        return self.job.requests.count(SYNC)

    def test_idle_job(self):
        """A job without requests sends nothing for a long time and is not given up."""
        mount = self.mounted()
        fd = self.open_uncached(mount, "a/data")
        write_direct(fd, self.data)
        until(lambda: self.job.writes)
        time.sleep(12 * self.LIMIT + 0.2)
        self.assertEqual(self.synced(), 0)
        os.fsync(fd)
        self.assertEqual(self.synced(), 1)
        written = len(self.job.writes)
        write_direct(fd, self.data)
        os.fsync(fd)
        self.assertGreater(len(self.job.writes), written)
        self.assertNeverGivenUp(mount)

    def test_requests_during_a_long_sync(self):
        """Reads, writes and opens wait for a sync longer than the limit of a single request."""
        syncing = threading.Event()

        def handle(job, connection, opcode, tag, payload):
            if opcode == SYNC:
                syncing.set()
                time.sleep(6 * self.LIMIT)
            return job.answer(connection, opcode, tag, payload)

        self.job.handle = handle
        put(os.path.join(self.directory, "b"),  # more than the readahead after a read of 4 MiB
            limetest.container([("data", bytes(32 * MIB)), ("other", bytes(8 * MIB))]))
        mount = self.mounted()
        names = "a/data", "b/data", "b/other"
        fd, reader, writer = (self.open_uncached(mount, name) for name in names)
        write_direct(fd, self.data)
        until(lambda: os.pread(reader, 4 * MIB, 0) == bytes(4 * MIB) and self.job.reads)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            sync = pool.submit(os.fsync, fd)
            self.assertTrue(syncing.wait(WAIT))
            reads, writes = len(self.job.reads), len(self.job.writes)
            write = pool.submit(write_direct, writer, self.data)
            for at in range(4 * MIB, 32 * MIB, 4 * MIB):
                self.assertBytes(os.pread(reader, 4 * MIB, at), bytes(4 * MIB))
            for each in (sync, write):
                each.result()
        self.assertGreater(len(self.job.reads), reads)
        until(lambda: len(self.job.writes) > writes)
        self.assertNeverGivenUp(mount)


class RequestLimit(TestCase):
    """A job that accepts 64 requests in flight and answers EAGAIN to any more."""

    RECORDS = 76  # there are 80 threads

    def setUp(self):
        super().setUp()
        self.held, self.refused = [], 0
        self.job.handle = self.handle

    def handle(self, job, connection, opcode, tag, payload):
        """Delays the answer to each SYNC."""
        if len(self.held) >= 64:
            self.refused += 1
            return error(errno.EAGAIN, "too many requests in flight")
        if opcode == SYNC:
            self.held.append((connection, opcode, tag, payload))
            return None
        return job.answer(connection, opcode, tag, payload)

    def release(self):
        connection, opcode, tag, payload = self.held.pop(0)
        self.reply(connection, opcode, tag, self.job.answer(connection, opcode, tag, payload))

    def reply(self, connection, opcode, tag, reply):
        connection.sendall(HEADER.pack(MAGIC, self.job.version, opcode, 1, len(reply), tag) + reply)

    def refuse_once(self, opcode):
        """Refuses one request while others are in flight; returns a list that gets its payload."""
        came = []

        def handle(job, connection, code, tag, payload):
            if code != opcode or not self.held:
                return self.handle(job, connection, code, tag, payload)
            if came:
                return job.answer(connection, code, tag, payload)
            self.reply(connection, code, tag, error(errno.EAGAIN))
            came.append(payload)  # last, as the test goes on when it sees this
            return None

        self.job.handle = handle
        return came

    def test_many_concurrent_syncs(self):
        """More syncs than the job accepts wait for each other."""
        names = [f"{i:02d}" for i in range(self.RECORDS)]
        put(os.path.join(self.directory, "many"),
            limetest.container([("data", bytes(8 * MIB)), *((name, b"small") for name in names)]))
        mount = self.mounted()
        fds = [self.open_uncached(mount, f"many/{name}") for name in ("data", *names)]
        write_direct(fds[0], self.data)
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            syncs = [pool.submit(os.fsync, fd) for fd in fds[1:]]
            seen, rounds = 0, 0
            until(lambda: self.held)
            while rounds < 5000:  # of stats: all requests that can arrive have arrived
                rounds = rounds + 1 if len(self.held) == seen else 0
                seen = len(self.held)
                stats(mount)
            while not all(sync.done() for sync in syncs):
                if self.held:
                    self.release()
            for sync in syncs:
                sync.result()
        self.assertEqual(self.refused, 0)
        self.assertEqual(stats(mount)["job"]["connections"], 1)

    def test_refused_sync(self):
        mount = self.mounted()
        fds = [self.open_uncached(mount, f"{name}/data") for name in "ab"]
        for fd in fds:
            write_direct(fd, self.data)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            first = pool.submit(os.fsync, fds[0])
            until(lambda: self.held)
            came = self.refuse_once(SYNC)
            second = pool.submit(os.fsync, fds[1])
            until(lambda: came)
            self.assertFalse(first.done())
            self.job.handle = FakeJob.answer
            self.release()
            for each in (first, second):
                each.result()
        self.assertEqual(stats(mount)["job"]["connections"], 1)

    def test_refused_close(self):
        """The daemon repeats a refused CLOSE, as the job still has the container open."""
        mount = self.mounted()
        fd = self.open_uncached(mount, "a/data")
        longer = os.open(mount.join("b/data"), os.O_RDWR | os.O_DIRECT)
        self.job.handle = FakeJob.answer
        for each in (fd, longer):
            write_direct(each, self.data)
        os.fsync(longer)
        self.job.handle = self.handle
        with concurrent.futures.ThreadPoolExecutor() as pool:
            first = pool.submit(os.fsync, fd)
            until(lambda: self.held)
            came = self.refuse_once(CLOSE)
            os.ftruncate(longer, 8 * MIB - 100)  # this makes the container a new file
            os.close(longer)
            until(lambda: came)
            self.release()
            first.result()
        until(lambda: struct.unpack("<I", came[0])[0] not in self.job.files)


# Replaces mpirun: reports ranks on two hosts, closes the connection when the file {end} exists, and
# ignores SIGTERM.
MPIRUN = """#!{python}
import os, signal, sys, time
sys.path.insert(0, {lib!r})
from fakejob import FakeJob
signal.signal(signal.SIGTERM, signal.SIG_IGN)
job = FakeJob(sys.argv[sys.argv.index("--socket") + 1])
job.hosts = 2
print("ready", flush=True)
while not os.path.exists({end!r}):
    time.sleep(0.01)
os.unlink({end!r})
job.drop()
signal.pause()
"""


class Lost(TestCase):
    def test_job_is_ending(self):
        """Data not synced on other hosts may be lost: fsync reports EIO once for each container."""
        end, program = (os.path.join(self.tempdir(), name) for name in ("end", "mpirun"))
        put(program, MPIRUN.format(python=sys.executable, end=end,
                                   lib=os.path.dirname(limetest.__file__)).encode())
        os.chmod(program, 0o755)
        mount = serving(self.rw(self.directory, "ranks=2", f"mpirun={program}", timeout=60))
        synced, lost, never = (self.open_uncached(mount, f"{name}/data") for name in "abc")
        for fd in (synced, lost):
            write_direct(fd, self.data)
        os.fsync(synced)
        until(lambda: stats(mount)["forwarded_written_bytes"] > 4 * MIB)
        put(end, b"")
        until(lambda: stats(mount)["job"]["state"] != "serving")
        begin = stats(mount)["job"]
        self.assertErrno(errno.EIO, os.fsync, lost)
        self.assertEqual((begin["state"], begin["connections"]), ("absent", 1))
        for fd in (lost, synced, never):
            os.fsync(fd)


if __name__ == "__main__":
    limetest.main()
