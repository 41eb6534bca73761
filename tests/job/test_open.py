#!/usr/bin/env python3
"""limefs-io opens the file of the client's descriptor, whatever its name leads to."""

import ctypes
import errno
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import jobclient
import jobtest
import limetest
import mpitest
from jobclient import OPEN, OPEN_WRITE

MIB = 1 << 20
EXCHANGE, AT_FDCWD = 2, -100


def exchange(one, two):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(two), EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class TestCase(jobtest.SharedJob):
    ranks = 2

    def setUp(self):
        super().setUp()
        self.path, self.data = self.data_file(100_000)
        self.client = self.server.client(MIB)

    def descriptor(self, path, flags):
        fd = os.open(path, flags)
        self.addCleanup(os.close, fd)
        return fd

    def works(self):
        """The job still serves the file, and has nothing open."""
        self.assertEqual(self.client.status()["open_file_count"], 0)
        file = self.client.open(self.path)
        self.assertReads(self.client, file, self.data, 0, 50_000, 0)
        self.client.close_file(file)

    def idle_fds(self):
        """Open descriptors of the ranks, when all closes of earlier clients are done."""
        count = -1
        while count != (count := self.fds_of_ranks()):
            time.sleep(0.1)
        return count

    def fds_of_ranks(self):
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.server.rank_pids())

    def assertFds(self, count):
        """Waits for the count: a reply to CLOSE comes before the ranks have closed the file."""
        self.assertTrue(jobtest.wait_until(lambda: self.fds_of_ranks() == count),
                        (self.fds_of_ranks(), count))


class Descriptors(TestCase):
    def test_descriptor_determines_the_file(self):
        """The job uses a name only in messages, also that of another file or of none."""
        other, other_data = self.data_file(100_000)
        for name in other, self.path + "-not":
            fd, model = self.descriptor(self.path, os.O_RDWR), bytearray(self.data)
            reading, writing = self.client.open(name, fd), self.client.open_for_writing(name, fd)
            self.assertReads(self.client, reading, self.data, 0, 100_000, 0)
            self.write_all(self.client, writing, model, 10, 50_000, 0)
            self.client.sync(writing)
            for file in reading, writing:
                self.client.close_file(file)
            self.data = bytes(model)
            self.assertHolds(self.path, model)
            self.assertHolds(other, other_data)
            self.assertFalse(os.path.exists(self.path + "-not"))

    def test_without_a_name(self):
        fd, model = self.descriptor(self.path, os.O_RDWR), bytearray(self.data)
        os.unlink(self.path)
        file = self.client.open_for_writing(self.path, fd)
        self.write_all(self.client, file, model, 0, 100_001, 0)
        self.assertTrue(os.pread(fd, 200_000, 0) == model)
        self.assertReads(self.client, self.client.open(self.path, fd), bytes(model), 1, 100_000, 0)

    def test_replaced(self):
        """A rename over the name does not change an open file; a new open sees the new file."""
        old, before = self.client.open(self.path), os.stat(self.path)
        other, other_data = self.data_file(100_000)
        os.rename(other, self.path)
        self.assertRefused(errno.ESTALE, self.client.open, self.path, inode=before.st_ino)
        new = self.client.open(self.path)
        self.assertReads(self.client, new, other_data, 0, 50_000, 0)
        self.assertReads(self.client, old, self.data, 0, 50_000, 0)

    def test_any_field_that_disagrees(self):
        """Each difference is ESTALE; size and times may differ in a file open for writing."""
        for field, value in jobclient.identity(self.descriptor(self.path, os.O_RDONLY)).items():
            for call in self.client.open, self.client.open_for_writing:
                wrong = {field: value ^ 1}
                if call == self.client.open or field in ("device", "inode", "uid", "mode"):
                    text = self.assertRefused(errno.ESTALE, call, self.path, **wrong)
                    self.assertIn(f"{self.path}: not the same file: {field.split('_')[0]} ", text)
                else:
                    self.client.close_file(call(self.path, **wrong))
        self.works()

    def test_identities_are_apart(self):
        """Two opens share a file if their identities agree."""
        one = self.client.open(self.path)
        self.assertEqual(self.client.open(self.path), one)
        self.assertNotEqual(self.client.open(self.path, root=1), one)
        os.chmod(self.path, 0o600)
        two = self.client.open(self.path)
        self.assertNotEqual(two, one)
        for file in one, two:
            self.assertReads(self.client, file, self.data, 0, 1000, 0)

    def test_same_bytes_by_two_names(self):
        """Writes by two names of one file conflict."""
        path, model = self.write("data", b""), bytearray()
        os.link(path, path + "-2")
        one, two = (self.client.open_for_writing(name) for name in (path, path + "-2"))
        self.assertNotEqual(one, two)
        with jobtest.stopped(self.server.rank_pids_by_rank()[1]):
            tag = self.start_write(self.client, one, model, 0, 500_000, 0)
            self.assertRefused(errno.EBUSY, self.client.write, two, 499_999, 1, 600_000)
        self.client.write_done(tag)
        self.assertHolds(path, model)

    def test_refused(self):
        directory = os.path.dirname(self.path)
        os.mkfifo(directory + "/pipe")
        pair = socket.socketpair()
        for one in pair:
            self.addCleanup(one.close)
        before = self.idle_fds()
        for opcode, code, fd in [
                (OPEN, errno.EINVAL, self.descriptor(directory, os.O_RDONLY)),
                (OPEN, errno.EINVAL, self.descriptor(directory + "/pipe", os.O_RDWR)),
                (OPEN_WRITE, errno.EINVAL, self.descriptor(directory + "/pipe", os.O_RDWR)),
                (OPEN, errno.EINVAL, self.descriptor("/dev/null", os.O_RDWR)),
                (OPEN, errno.EINVAL, pair[0].fileno()),
                (OPEN, errno.EBADF, self.descriptor(self.path, os.O_PATH)),
                (OPEN_WRITE, errno.EBADF, self.descriptor(self.path, os.O_PATH)),
                (OPEN, errno.EBADF, self.descriptor(self.path, os.O_WRONLY)),
                (OPEN_WRITE, errno.EBADF, self.descriptor(self.path, os.O_RDONLY))]:
            text = self.assertRefused(code, self.client.open, self.path, fd, opcode=opcode)
            self.assertIn(f"{self.path}: the descriptor is not ", text)
        identity = jobclient.identity(self.descriptor(self.path, os.O_RDWR))
        for opcode in OPEN, OPEN_WRITE:
            text = self.assertRefused(errno.EBADF, self.client.ask, opcode,
                                      jobclient.opening(self.path, **identity))
            self.assertIn("no descriptor in", text)
        self.assertFds(before)
        self.works()

    def test_wrong_roots(self):
        n = len(os.path.dirname(self.path))
        for root in 0, n - 1, len(self.path), len(self.path) + 1, 2 ** 32 - 1:
            text = self.assertRefused(errno.EINVAL, self.client.open, self.path, root=root)
            self.assertIn("root", text)
        fd = self.descriptor(self.path, os.O_RDONLY)
        for name in "data", "x/data", "//", self.path + "\0":
            self.assertRefused(errno.EINVAL, self.client.open, name, fd)
        for root in 1, n, n + 1:
            self.client.close_file(self.client.open(self.path, root=root))
        self.works()

    def test_nothing_is_left_open(self):
        before = self.idle_fds()
        for _ in range(20):
            for call in self.client.open, self.client.open_for_writing:
                self.client.close_file(call(self.path))
                self.assertRefused(errno.ESTALE, call, self.path, inode=5)
        self.assertFds(before)


class Exchanged(TestCase):
    """The owner of a directory exchanges the container's name for a link to another user's file,
    which the job's user may access: before each call that a rank makes on the file, while the rank
    waits (tests/lib/faults.py)."""

    @classmethod
    def start_job(cls):
        cls.directory = limetest.tempdir()
        cls.faults = faults.Faults(cls.directory)
        return jobtest.Job(2, env=cls.faults.environment(mpitest.environment())).start()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.faults.disarm)
        self.path = limetest.put(os.path.join(self.directory, self.id()), self.data)
        self.secret, self.secret_data = self.data_file(100_000, "secret")
        self.link = self.path + "-link"
        os.symlink(self.secret, self.link)

    def calls(self, start, *args):
        """Returns (rank, call, nth) of each call that a rank makes while it opens the file."""
        found = []
        for rank in 0, 1:
            before = self.idle_fds()
            self.faults.count(1 + rank)
            file = int.from_bytes(self.client.finish(start(*args)), "little")
            found += [(rank, call, nth) for call, count in self.faults.counts().items()
                      for nth in range(1, count + 1)]
            self.client.close_file(file)
            self.assertFds(before)
        self.assertEqual({rank for rank, call, _ in found if call == "fstat"}, {0, 1})
        return found

    def opened(self, start, *args):
        """Yields the replies to start() with a rank stopped before one of its calls, while the
        name is exchanged, once, or once and back."""
        before = self.idle_fds()
        for rank, call, nth in self.calls(start, *args):
            for exchanges in 1, 2:
                with self.subTest(rank=rank, call=call, nth=nth, exchanges=exchanges):
                    self.faults.arm(1 + rank, call, nth, 0, faults.HANG)
                    tag = start(*args)
                    self.assertTrue(jobtest.wait_until(lambda: self.faults.struck))
                    for _ in range(exchanges):
                        exchange(self.path, self.link)
                    self.faults.disarm()
                    yield self.client.reply(tag)
                    for _ in range(exchanges % 2):
                        exchange(self.path, self.link)
                    self.assertFds(before)

    def test_reading(self):
        """An exchange sets ctime, so the job refuses the file, or reads the client's file."""
        fd, codes = self.descriptor(self.path, os.O_RDONLY), set()
        for reply in self.opened(self.client.start_open, self.path, fd):
            code, _ = jobclient.code_of(reply)
            self.assertIn(code, (0, errno.ESTALE))
            codes.add(code)
            if not code:
                file = int.from_bytes(reply.payload[4:], "little")
                self.assertReads(self.client, file, self.data, 0, 4096, 0)
                self.client.close_file(file)
        self.assertEqual(codes, {0, errno.ESTALE})

    def test_writing(self):
        fd, model = self.descriptor(self.path, os.O_WRONLY), bytearray(self.data)
        for i, reply in enumerate(self.opened(self.client.start_open_for_writing, self.path, fd)):
            file = int.from_bytes(reply.payload[4:], "little")
            self.assertEqual(jobclient.code_of(reply)[0], 0)
            self.write_all(self.client, file, model, i * 1000, 1000, 0)
            self.client.close_file(file)
        self.assertFalse(os.path.islink(self.path))
        self.assertHolds(self.path, model)
        self.assertHolds(self.secret, self.secret_data)


if __name__ == "__main__":
    limetest.main()
