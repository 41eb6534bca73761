"""What fsync() and close() say of bytes that were written with a job behind the mount: which are on
the disk, and which may be lost."""

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

WAIT = 60 * limetest.SLOWNESS  # seconds, for what comes at once
FIRST = 144  # where a container's first record is
SECOND = FIRST + 8 * MIB + 144


@limetest.needs_fuse
class TestCase(writelib.TestCase):
    """A job made of one thread, and containers of two records each: to sync the one does not keep
    the kernel from writing to the other."""

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

    def opened(self, mount, name):
        """Around the kernel's cache: what is written is the daemon's then."""
        fd = os.open(mount.join(name), os.O_RDWR | os.O_DIRECT)
        self.addCleanup(os.close, fd)
        return fd


class Held(TestCase):
    """A job that does not answer until it may."""

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
    def test_while_somebody_else_syncs(self):
        """He takes the mark that something was written, and does not bring that to the disk."""
        faults, path = Faults(self.directory), os.path.join(self.directory, "a")
        self.job.handle = self.held
        mount = self.mounted(env=faults.environment())
        fd, other = (self.opened(mount, f"a/{name}") for name in ("data", "other"))
        write_direct(fd, self.data)
        syncer = threading.Thread(target=os.fsync, args=(other,))
        syncer.start()
        self.assertTrue(self.asked.wait(WAIT))
        write_direct(fd, self.data[:MIB // 2], 4 * MIB)
        self.go_on.set()
        syncer.join()
        self.assertEqual(read(path)[FIRST + 4 * MIB:][:MIB // 2], bytes(MIB // 2))  # gathered
        faults.count(DAEMON)
        os.fsync(fd)
        self.assertEqual(faults.counts().get("fsync", 0), 1)
        self.assertEqual(read(path)[FIRST + 4 * MIB:][:MIB // 2], self.data[:MIB // 2])
        faults.count(DAEMON)
        os.fsync(fd)  # all is there
        self.assertEqual(faults.counts().get("fsync", 0), 0)


class Ending(TestCase):
    """A job that takes no more work, and is not gone yet."""

    def ending(self, job, connection, opcode, tag, payload):
        if opcode == SYNC:
            return error(errno.ESHUTDOWN, "the job is ending")
        return job.answer(connection, opcode, tag, payload)

    def test_the_daemon_syncs(self):
        faults, path = Faults(self.directory), os.path.join(self.directory, "a")
        self.job.handle = self.ending
        mount = self.mounted(env=faults.environment())
        fd = self.opened(mount, "a/data")
        write_direct(fd, self.data)
        faults.count(DAEMON)
        os.fsync(fd)
        self.assertEqual(faults.counts().get("fsync", 0), 1)
        self.assertEqual(read(path)[FIRST:][:len(self.data)], self.data)

    def test_on_other_hosts_it_is_lost(self):
        self.job.hosts, self.job.handle = 2, self.ending
        mount = self.mounted()
        fd = self.opened(mount, "a/data")
        write_direct(fd, self.data)
        self.assertErrno(errno.EIO, os.fsync, fd)
        os.fsync(fd)


class TimesOfChange(Held):
    HELD = WRITE
    TIMEOUT = 60  # seconds, until the job is given up
    OPTS = ("extent=1M", "window=4M", "forward_from=1M")  # two extents to be written

    def test_who_writes_is_not_waited_for(self):
        """The kernel tells when a record was changed between writes, and sends no more of them
        until it is answered."""
        self.job.handle = self.held
        mount = self.mounted()
        fd, other = self.opened(mount, "a/data"), os.open(mount.join("a/other"), os.O_RDWR)
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


class Patience(TestCase):
    """A disk may take its time for what it is to bring to its platters."""

    TIMEOUT = 0.5
    LIMIT = TIMEOUT + MIB / 50e6

    def assertNeverGivenUp(self, mount):
        job = stats(mount)["job"]
        self.assertEqual((job["state"], job["connections"]), ("serving", 1))

    def synced(self):
        return self.job.requests.count(SYNC)

    def test_after_a_quiet_minute(self):
        """Nothing was heard of the job for long, as it was asked for nothing."""
        mount = self.mounted()
        fd = self.opened(mount, "a/data")
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

    def test_others_wait_for_it(self):
        """For longer than any of them might take alone: to read, to write, and to open."""
        syncing = threading.Event()

        def handle(job, connection, opcode, tag, payload):
            if opcode == SYNC:
                syncing.set()
                time.sleep(6 * self.LIMIT)
            return job.answer(connection, opcode, tag, payload)

        self.job.handle = handle
        put(os.path.join(self.directory, "b"),  # more than is read ahead of who reads 4 MiB again
            limetest.container([("data", bytes(32 * MIB)), ("other", bytes(8 * MIB))]))
        mount = self.mounted()
        fd, reader, writer = (self.opened(mount, name) for name in ("a/data", "b/data", "b/other"))
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


class Crowd(TestCase):
    """A job has 64 requests in flight, and not one more: EAGAIN."""

    RECORDS = 76  # there are 80 threads

    def setUp(self):
        super().setUp()
        self.held, self.refused = [], 0
        self.job.handle = self.handle

    def handle(self, job, connection, opcode, tag, payload):
        """Holds each SYNC."""
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
        """While there is something else in flight; what of this kind has come then, in a list."""
        came = []

        def handle(job, connection, code, tag, payload):
            if code != opcode or not self.held:
                return self.handle(job, connection, code, tag, payload)
            if came:
                return job.answer(connection, code, tag, payload)
            self.reply(connection, code, tag, error(errno.EAGAIN))
            came.append(payload)  # the test goes on, and what it sends then comes later
            return None

        self.job.handle = handle
        return came

    def test_many_at_once(self):
        """More than a job takes: they wait for each other."""
        names = [f"{i:02d}" for i in range(self.RECORDS)]
        put(os.path.join(self.directory, "many"),
            limetest.container([("data", bytes(8 * MIB)), *((name, b"small") for name in names)]))
        mount = self.mounted()
        fds = [self.opened(mount, f"many/{name}") for name in ("data", *names)]
        write_direct(fds[0], self.data)
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            syncs = [pool.submit(os.fsync, fd) for fd in fds[1:]]
            seen, rounds = 0, 0
            until(lambda: self.held)
            while rounds < 5000:  # of the daemon's: who could come has come
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

    def test_a_sync_that_is_refused(self):
        mount = self.mounted()
        fds = [self.opened(mount, f"{name}/data") for name in "ab"]
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

    def test_a_close_that_is_refused(self):
        """The job has the container open still; so it is asked once more."""
        mount = self.mounted()
        fd = self.opened(mount, "a/data")
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
            os.ftruncate(longer, 8 * MIB - 100)  # the container is another file then
            os.close(longer)
            until(lambda: came)
            self.release()
            first.result()
        until(lambda: struct.unpack("<I", came[0])[0] not in self.job.files)


# In the place of mpirun: it says that its ranks are on two hosts, hangs up when there is a file,
# and is slow to end.
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
    def test_while_the_job_is_being_ended(self):
        """What it had not synced on other hosts may be lost, and who asks then hears of it."""
        end, program = (os.path.join(self.tempdir(), name) for name in ("end", "mpirun"))
        put(program, MPIRUN.format(python=sys.executable, end=end,
                                   lib=os.path.dirname(limetest.__file__)).encode())
        os.chmod(program, 0o755)
        mount = serving(self.rw(self.directory, "ranks=2", f"mpirun={program}", timeout=60))
        synced, lost, never = (self.opened(mount, f"{name}/data") for name in "abc")
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
