#!/usr/bin/env python3
"""limefs-io refuses or disconnects clients that break the protocol, by malice or mistake, and other
clients do not notice."""

import errno
import fcntl
import mmap
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jobclient
import jobtest
import limetest
from jobclient import CLOSE, HELLO, OPEN, OPEN_WRITE, READ, REPLY, STATUS, STOP, SYNC, WRITE

MIB = 1 << 20
HELLO_ALONE = struct.pack("<Q", 0)


class FewDescriptors(jobtest.Job):
    """Its processes may have at most 300 descriptors."""

    def command(self):
        return ["prlimit", "--nofile=300:300", *super().command()]


class Hostile(jobtest.SharedJob):
    """After each test, a well-behaved client must still read correctly."""

    ranks, window, files = 2, 8 * MIB, 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = os.urandom(6_000_000)
        cls.path = limetest.put(os.path.join(limetest.tempdir(), "data"), cls.data)
        cls.good, cls.file = cls.observer, cls.observer.open(cls.path)

    def check(self):
        n = random.randrange(1, 5_000_000)
        self.assertReads(self.good, self.file, self.data, random.randrange(1_000_000), n, 1)

    def tearDown(self):
        self.check()
        super().tearDown()

    def greeted(self):
        connection = self.server.connection()
        connection.send(HELLO, HELLO_ALONE)
        self.assertEqual(jobclient.code_of(connection.receive())[0], 0)
        return connection

    def test_wrong_headers(self):
        for header in [{"magic": 0}, {"flags": 2}, {"flags": REPLY}, {"length": 65537},
                       {"length": 0xffffffff}]:
            for make in self.server.connection, self.greeted:
                connection = make()
                connection.send(HELLO, HELLO_ALONE, **header)
                self.assertTrue(connection.is_dropped(), header)
        self.check()

    def test_other_version(self):
        for version in 0, 1, 2, 4, 0xffff:
            connection = self.server.connection()
            connection.send(HELLO, HELLO_ALONE, version=version, tag=77)
            reply = connection.receive()
            self.assertEqual((reply.opcode, reply.flags, reply.tag), (HELLO, REPLY, 77))
            self.assertEqual(jobclient.code_of(reply), (
                errno.EPROTONOSUPPORT,
                f"limefs-io has protocol version 3, the client {version}"))
            self.assertTrue(connection.is_dropped())

    def test_wrong_lengths(self):
        lengths = {HELLO: (0, 7, 9, 65536), OPEN: (0, 28, 61, 60 + 4096), CLOSE: (0, 3, 5),
                   READ: (0, 27, 29), STATUS: (1,), STOP: (1, 4), OPEN_WRITE: (0, 61, 60 + 4096),
                   WRITE: (0, 27, 28, 44, 47, 49), SYNC: (0, 3, 5)}
        for opcode, wrong in lengths.items():
            for n in wrong:
                connection = self.server.connection() if opcode == HELLO else self.greeted()
                connection.send(opcode, b"/" * n)
                self.assertTrue(connection.is_dropped(), (opcode, n))

    def test_before_hello(self):
        for opcode, payload in [(READ, bytes(28)), (STATUS, b""), (STOP, b""), (OPEN, b"/" * 70),
                                (OPEN_WRITE, b"/" * 70), (WRITE, bytes(48)), (SYNC, bytes(4)),
                                (0x100, bytes(36)), (0x106, b"")]:
            connection = self.server.connection()
            connection.send(opcode, payload)
            self.assertTrue(connection.is_dropped())

    def test_second_hello(self):
        connection = self.greeted()
        connection.send(HELLO, HELLO_ALONE)
        self.assertTrue(connection.is_dropped())

    def test_unknown_messages(self):
        """A client may not send the messages between the job's own processes either."""
        connection = self.greeted()
        for opcode in [0, jobclient.SYNC + 1, 99, *range(0x100, 0x10b), 0xffff]:
            connection.send(opcode, b"x" * 36, tag=opcode)
            reply = connection.receive()
            self.assertEqual((reply.opcode, reply.tag), (opcode, opcode))
            self.assertEqual(jobclient.code_of(reply)[0], errno.ENOSYS)

    def test_noise(self):
        random.seed(3)
        for _ in range(200):
            connection = self.server.connection()
            try:
                connection.socket.sendall(random.randbytes(random.randrange(1, 3000)))
                connection.close()
            except OSError:
                pass

    def test_mutations(self):
        """Valid packets with some bytes changed: whatever happens, other clients do not notice."""
        random.seed(5)
        fd = os.open(self.path, os.O_RDWR)
        self.addCleanup(os.close, fd)
        opening = jobclient.opening(self.path, **jobclient.identity(fd))
        right = [(OPEN, opening), (READ, struct.pack("<IQQQ", self.file, 0, 100, 0)),
                 (OPEN_WRITE, opening), (WRITE, jobclient.writing(self.file + 1, 0, 100, 0)),
                 (SYNC, struct.pack("<I", self.file + 1)),
                 (CLOSE, struct.pack("<I", self.file)), (STATUS, b"")]
        for _ in range(300):
            connection = self.greeted()
            raw = bytearray(b"".join(jobclient.packet(*random.choice(right)) for _ in range(4)))
            for _ in range(random.randrange(1, 8)):
                raw[random.randrange(len(raw))] = random.randrange(256)
            raw[6:8] = right[0][0].to_bytes(2, "little") if raw[6] == STOP else raw[6:8]
            if bytes([STOP, 0]) in (raw[i + 6:i + 8] for i in range(0, len(raw) - 8)
                                    if raw[i:i + 4] == b"LIMJ"):
                continue  # a valid STOP ends the job
            try:
                socket.send_fds(connection.socket, [raw], [fd])
            except OSError:
                pass
            connection.close()
        self.check()

    def test_windows(self):
        """A window is refused if it could shrink, is too short, or is not a memfd."""
        directory = self.tempdir()
        ordinary = os.open(os.path.join(directory, "file"), os.O_RDWR | os.O_CREAT)
        os.ftruncate(ordinary, MIB)
        fds = [(jobclient.memfd(MIB, 0), MIB, errno.EPERM),
               (jobclient.memfd(MIB, jobclient.GROW), MIB, errno.EPERM),
               (ordinary, MIB, errno.EPERM), (os.open("/dev/zero", os.O_RDWR), MIB, errno.EPERM),
               *((jobclient.memfd(MIB), n, errno.EINVAL) for n in (MIB + 1, 0, 1 << 63)),
               (jobclient.memfd(MIB, 2 | 8), MIB, errno.EPERM),  # F_SEAL_WRITE: cannot be mapped
               (None, MIB, errno.EINVAL)]
        try:  # its pages would be mapped beyond the window's end
            huge = os.memfd_create("huge", os.MFD_ALLOW_SEALING | os.MFD_HUGETLB)
            os.ftruncate(huge, 2 * MIB)
            fcntl.fcntl(huge, jobclient.F_ADD_SEALS, jobclient.SHRINK)
            fds.append((huge, 4096, errno.EPERM))
        except OSError:
            pass  # this kernel does not support it
        for fd, n, code in fds:
            connection = self.server.connection()
            connection.send(HELLO, struct.pack("<Q", n), [fd] if fd is not None else ())
            self.assertEqual(jobclient.code_of(connection.receive())[0], code, (fd, n))
            self.assertTrue(connection.is_dropped())
            if fd is not None:
                os.close(fd)

    def outside(self, file):
        """Invalid reads and writes: no such file, no bytes, or outside the window of 1 MiB."""
        return [(errno.EBADF, (file + 9, 0, 1, 0)), (errno.EBADF, (0, 0, 1, 0)),
                (errno.EINVAL, (file, 0, 0, 0)), (errno.EINVAL, (file, 0, MIB + 1, 0)),
                (errno.EINVAL, (file, 0, 1, MIB)), (errno.EINVAL, (file, 0, 2, MIB - 1)),
                (errno.EINVAL, (file, 0, 1, (1 << 64) - 1)),
                (errno.EINVAL, (file, 0, (1 << 64) - 1, 1)),
                (errno.EINVAL, (file, 0, (1 << 30) + 1, 0))]

    def test_reads(self):
        client = self.server.client(MIB)
        file = client.open(self.path)
        size = len(self.data)
        for code, args in [
                *self.outside(file),
                (errno.ENXIO, (file, size, 1, 0)), (errno.ENXIO, (file, size - 1, 2, 0)),
                (errno.ENXIO, (file, (1 << 64) - 1, 2, 0)), (errno.ENXIO, (file, 1 << 63, 2, 0))]:
            self.assertRefused(code, client.read, *args)
        self.assertReads(client, file, self.data, size - 1, 1, MIB - 1)
        observer = self.server.client()
        self.assertRefused(errno.EINVAL, observer.read, observer.open(self.path), 0, 1, 0)

    def test_writes(self):
        """Invalid writes neither change the file nor extend it."""
        client = self.server.client(MIB)
        other, data = self.data_file(1000)
        file, reading = client.open_for_writing(other), client.open(self.path)
        far = (1 << 63) - 1
        self.assertRefused(errno.EINVAL, client.write, file, 0, 1, 0, uid=2 ** 32 - 1)
        for code, args in [
                *self.outside(file),
                (errno.EBADF, (reading, 0, 1, 0)), (errno.EBADF, (self.file, 0, 1, 0)),
                (errno.EFBIG, (file, far, 1, 0)), (errno.EFBIG, (file, far - 1, 2, 0)),
                (errno.EFBIG, (file, (1 << 64) - 1, 2, 0)), (errno.EFBIG, (file, 1 << 63, 2, 0)),
                (errno.EFBIG, (file, far - 1, 1, 0)), (errno.EFBIG, (file, far - MIB, MIB, 0))]:
            self.assertRefused(code, client.write, *args)
        for wrong in file + 9, reading, self.file:
            self.assertRefused(errno.EBADF, client.sync, wrong)
        observer = self.server.client()
        self.assertRefused(errno.EINVAL, observer.write, observer.open_for_writing(other), 0, 1, 0)
        client.sync(file)
        self.assertHolds(other, data)

    def test_file_of_another_client(self):
        client = self.server.client(MIB)
        other = self.good.open_for_writing(self.data_file(1000)[0])
        self.assertRefused(errno.EBADF, client.write, other, 0, 1, 0)
        self.assertRefused(errno.EBADF, client.sync, other)
        self.assertRefused(errno.EBADF, client.close_file, other)
        self.good.close_file(other)
        self.assertRefused(errno.EBADF, client.read, self.file, 0, 1, 0)
        self.assertRefused(errno.EBADF, client.close_file, self.file)

    def test_overlapping_reads(self):
        client = self.server.client(8 * MIB)
        file = client.open(self.path)
        with jobtest.stopped(max(self.server.rank_pids_by_rank().items())[1]):  # keeps them pending
            tags = [client.start_read(file, 0, 5_000_000, 0),
                    client.start_read(file, 0, 10, 4_999_999),
                    client.start_read(file, 0, 10, 5_000_000)]
            self.assertEqual(jobclient.code_of(client.reply(tags[1]))[0], errno.EBUSY)
            tags.remove(tags[1])
        codes = [jobclient.code_of(client.reply(tag))[0] for tag in tags]
        self.assertEqual(codes, [0, 0])

    def test_too_many_in_flight(self):
        client = self.server.client(8 * MIB)
        file = client.open(self.path)
        raw = b"".join(jobclient.packet(
            READ, struct.pack("<IQQQ", file, 0, 100_000, i * 100_000 % (4 * MIB)), tag=i)
                       for i in range(400))
        client.socket.sendall(raw)
        codes = {jobclient.code_of(client.receive())[0] for i in range(400)}
        self.assertLessEqual(codes, {0, errno.EAGAIN, errno.EBUSY})
        self.assertIn(0, codes)

    def test_too_many_writes_in_flight(self):
        """A refused write is not done; all others are."""
        client = self.server.client(8 * MIB)
        path = self.write("data", b"")
        file = client.open_for_writing(path)
        client.window[:8 * MIB] = os.urandom(MIB) * 8
        raw = b"".join(jobclient.packet(WRITE, jobclient.writing(file, i * 10_000, 10_000,
                                                                 i * 10_000), tag=i)
                       for i in range(400))
        client.socket.sendall(raw)
        codes = {reply.tag: jobclient.code_of(reply)[0]
                 for reply in (client.receive() for i in range(400))}
        self.assertLessEqual(set(codes.values()), {0, errno.EAGAIN})
        client.sync(file)
        data = limetest.read(path).ljust(4_000_000, b"\0")
        for i, code in codes.items():
            part = slice(i * 10_000, i * 10_000 + 10_000)
            self.assertTrue(data[part] == (bytes(10_000) if code else client.window[part]), i)

    def test_too_many_files(self):
        client = self.server.client()
        tags = [client.start_open(self.path) for _ in range(50)]
        self.assertEqual(len({client.finish(tag) for tag in tags}), 1)
        for _ in range(4096 - 50):
            client.open(self.path)
        self.assertRefused(errno.EMFILE, client.open, self.path)

    def test_too_many_containers(self):
        """Each container needs descriptors in the ranks: one too many is refused before."""
        with FewDescriptors(2) as job:
            clients = [job.client(MIB), job.client(MIB)]
            opened = [clients[0].open(self.path)]
            for i in range(1, 60):
                path, _ = self.data_file(100 + i)
                if i < 50:
                    opened.append(clients[i % 2].open(path))
                else:
                    self.assertRefused(errno.EMFILE, clients[i % 2].open, path)
            self.assertReads(clients[0], opened[0], self.data, 5, 1_000_000, 1)
            clients[0].close_file(opened[0])
            self.assertTrue(jobtest.wait_until(
                lambda: clients[0].status()["open_file_count"] < 50))
            clients[1].open(path)

    def test_never_reads_replies(self):
        connection = self.greeted()
        connection.socket.settimeout(0.5)
        dropped = False
        try:
            for _ in range(100_000):
                connection.socket.sendall(jobclient.packet(STATUS) * 100)
        except socket.timeout:
            pass
        except OSError:
            dropped = True
        self.assertTrue(dropped)
        self.check()

    def test_half_packets(self):
        """A slow client is served; one that stops within a packet does not block others."""
        silent = self.greeted()
        silent.socket.sendall(jobclient.packet(READ, bytes(28))[:30])
        slow = self.greeted()
        for byte in jobclient.packet(STATUS, tag=9):
            slow.socket.sendall(bytes([byte]))
        self.assertEqual(slow.receive().tag, 9)
        self.check()

    def test_never_says_hello(self):
        connection = self.server.connection()
        begin = time.monotonic()
        self.assertTrue(connection.is_dropped())
        self.assertLess(time.monotonic() - begin, 15 * limetest.SLOWNESS)

    def test_gone_with_reads_in_flight(self):
        for _ in range(30):
            client = jobclient.Client(self.server.path, 64 * MIB)
            file = client.open(self.path)
            for slot in range(8):
                client.start_read(file, 0, len(self.data), slot * 8 * MIB)
            client.window.close()
            client.close()
        self.check()
        self.assertTrue(jobtest.wait_until(self.is_idle))
        self.assertTrue(jobtest.wait_until(lambda: self.windows() == 1))

    def test_gone_with_writes_in_flight(self):
        """Pending writes of a closed client finish or not; nothing hangs or leaks."""
        path = self.write("data", b"")
        for _ in range(30 if limetest.STRESS else 6):
            client = jobclient.Client(self.server.path, 64 * MIB)
            client.window[:] = b"w" * (64 * MIB)
            file = client.open_for_writing(path)
            for slot in range(8):
                client.start_write(file, slot * 5_000_000, 5_000_000, slot * 8 * MIB)
            client.start_sync(file)
            client.window.close()
            client.close()
        self.check()
        self.assertTrue(jobtest.wait_until(self.is_idle))
        self.assertTrue(jobtest.wait_until(lambda: self.windows() == 1))
        self.assertEqual(limetest.read(path).strip(b"w").strip(b"\0"), b"")

    def windows(self):
        """The number of windows that rank 0 has mapped."""
        pid = self.good.status()["pid"]
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            return sum("memfd:jobclient" in line for line in maps)

    def test_gone_while_opening(self):
        other, _ = self.data_file(10_000)
        for path, opcode, wrong in ((self.path, OPEN, True), (self.path, OPEN_WRITE, True),
                                    (other, OPEN, False)):
            for _ in range(30 if wrong else 10):
                client = jobclient.Client(self.server.path, MIB)
                client.start_open(path, opcode=opcode)
                if wrong:
                    client.start_open(path, opcode=opcode, inode=5)
                client.close()
            self.check()
            self.assertTrue(jobtest.wait_until(self.is_idle))

    def test_descriptors(self):
        """Unexpected descriptors are closed."""
        pid = self.good.status()["pid"]
        count = len(os.listdir(f"/proc/{pid}/fd"))
        connection = self.greeted()
        fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
        for _ in range(20):
            connection.send(STATUS, b"", fds)
            connection.receive()
        self.assertLessEqual(len(os.listdir(f"/proc/{pid}/fd")), count + 2)
        for fd in fds:
            os.close(fd)

    def test_many_connections(self):
        """The job hangs up on connections beyond its limit and accepts later ones."""
        connections = []
        for _ in range(300):
            connection = self.server.connection()
            try:
                connection.send(HELLO, HELLO_ALONE)
            except OSError:
                pass
            connections.append(connection)
        self.check()
        refused = 0
        for connection in connections:
            try:
                connection.receive()
            except (OSError, EOFError):
                refused += 1
        for connection in connections:
            connection.close()
        self.assertEqual(refused, 300 - 255)

        def is_served():
            try:
                return self.server.client().ranks == 2
            except (OSError, EOFError):
                return False
        self.assertTrue(jobtest.wait_until(is_served))

    def test_big_sparse_window(self):
        """A read commits memory only for its part of the window."""
        with self.server.client(1 << 38) as client:
            file = client.open(self.path)
            at = (1 << 38) - MIB
            self.assertEqual(client.read(file, 0, MIB, at), MIB)
            self.assertTrue(client.window[at:at + MIB] == self.data[:MIB])
            self.assertEqual(mmap.PAGESIZE, 4096)

    def test_log_is_limited(self):
        """Broken clients cannot fill the log."""
        before = self.server.stderr().count("\n")
        for _ in range(300):
            connection = self.server.connection()
            connection.send(STATUS)
            self.assertTrue(connection.is_dropped())
        self.assertLessEqual(self.server.stderr().count("\n") - before, 101)


if __name__ == "__main__":
    limetest.main()
