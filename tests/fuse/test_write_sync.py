"""What fsync() and close() say of bytes that were written with a job behind the mount: which are on
the disk, and which may be lost."""

import mmap
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import writelib
from fakejob import SYNC, FakeJob
from faults import DAEMON, Faults
from test_ranks import serving
from writelib import MIB, put, pwrite_all, read

WAIT = 60 * limetest.SLOWNESS  # seconds, for what comes at once
HEADER = 144


@limetest.needs_fuse
class TestCase(writelib.TestCase):
    """A job made of one thread, and containers of two records each: to sync the one does not keep
    the kernel from writing to the other."""

    TIMEOUT = 5
    OPTS = ("extent=1M", "window=16M", "forward_from=1M")

    def setUp(self):
        self.folder, self.socket = self.tempdir(), os.path.join(self.tempdir(), "socket")
        self.data = os.urandom(4 * MIB)
        for name in "ab":
            put(os.path.join(self.folder, name),
                limetest.container([("data", bytes(8 * MIB)), ("other", bytes(8 * MIB))]))
        self.job = FakeJob(self.socket)
        self.addCleanup(self.job.close)

    def mounted(self, **kw):
        return serving(self.rw(self.folder, f"job={self.socket}", f"job_timeout={self.TIMEOUT}",
                               **kw))

    def opened(self, mount, name):
        """Around the kernel's cache: what is written is the daemon's then."""
        fd = os.open(mount.join(name), os.O_RDWR | os.O_DIRECT)
        self.addCleanup(os.close, fd)
        return fd

    def stream(self, fd, data, at=0):
        with mmap.mmap(-1, len(data)) as buffer:
            buffer[:] = data
            for i in range(0, len(data), MIB):
                pwrite_all(fd, memoryview(buffer)[i:i + MIB], at + i)


class Gathered(TestCase):
    def setUp(self):
        super().setUp()
        self.syncing, self.go_on = threading.Event(), threading.Event()
        self.addCleanup(self.go_on.set)

    def held(self, job, connection, opcode, tag, payload):
        if opcode == SYNC:
            self.syncing.set()
            self.go_on.wait(WAIT)
        return job.answer(connection, opcode, tag, payload)

    def test_while_somebody_else_syncs(self):
        """He takes the mark that something was written, and does not bring that to the disk."""
        faults, path = Faults(self.folder), os.path.join(self.folder, "a")
        self.job.handle = self.held
        mount = self.mounted(env=faults.environment())
        fd, other = (self.opened(mount, f"a/{name}") for name in ("data", "other"))
        self.stream(fd, self.data)
        syncer = threading.Thread(target=os.fsync, args=(other,))
        syncer.start()
        self.assertTrue(self.syncing.wait(WAIT))
        self.stream(fd, self.data[:MIB // 2], 4 * MIB)
        self.go_on.set()
        syncer.join()
        self.assertEqual(read(path)[HEADER + 4 * MIB:][:MIB // 2], bytes(MIB // 2))  # gathered
        faults.count(DAEMON)
        os.fsync(fd)
        self.assertEqual(faults.counts().get("fsync", 0), 1)
        self.assertEqual(read(path)[HEADER + 4 * MIB:][:MIB // 2], self.data[:MIB // 2])
        faults.count(DAEMON)
        os.fsync(fd)  # all is there
        self.assertEqual(faults.counts().get("fsync", 0), 0)


if __name__ == "__main__":
    limetest.main()
