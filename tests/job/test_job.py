#!/usr/bin/env python3
"""limefs-io: reads and writes, its commands, its socket, and its end."""

import contextlib
import ctypes
import errno
import itertools
import json
import os
import random
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jobclient
import jobtest
import limetest
import mpitest
from jobtest import MIB, ODD, ODD_RANGES


def dirty_pages(path):
    """Dirty pages of the file in the page cache; 0 if the kernel cannot report them."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file:
        counts = (ctypes.c_uint64 * 5)()
        libc.syscall(451, file.fileno(), (ctypes.c_uint64 * 2)(0, 0), counts, 0)
        return counts[1] + counts[2]


class Reading(jobtest.SharedJob):
    def test_odd_ranges(self):
        path, data = self.data_file(ODD)
        for ranks in mpitest.RANKS:
            with self.subTest(ranks=ranks), \
                    contextlib.nullcontext(self.server) if ranks == self.ranks else \
                    jobtest.Job(ranks) as job:
                client = job.client(32 * MIB)
                self.assertEqual((client.ranks, client.hosts, client.stripe), (ranks, 1, MIB))
                file = client.open(path)
                for one in ODD_RANGES:
                    self.assertReads(client, file, data, *one)
                client.close()

    def test_not_in_memory(self):
        """Direct reads, and their unaligned ends, return the file's bytes."""
        path, data = self.data_file(30_000_001)
        job = self.job(2, "--stripe", "64K")
        client = job.client(32 * MIB)
        self.assertEqual(client.stripe, 65536)
        file = client.open(path)
        for offset, n, at in [(0, len(data), 0), (12345, 20_000_000, 12345),
                              (12345, 20_000_000, 0), (4096, 1 << 20, 8192),
                              (5, len(data) - 5, 4101)]:
            with open(path, "rb") as raw:
                os.fsync(raw.fileno())
                os.posix_fadvise(raw.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertReads(client, file, data, offset, n, at)

    def test_many_in_flight(self):
        path, data = self.data_file(40_000_000)
        client = self.server.client(64 * MIB)
        self.reads_at_random(client, client.open(path), data, 64, 5)

    def test_two_clients(self):
        """Each client has its own window; the shared file is open once."""
        one, one_data = self.data_file(9_000_000, "one")
        two, two_data = self.data_file(8_000_000, "two")
        a, b = self.server.client(16 * MIB), self.server.client(16 * MIB)
        files = {a: (a.open(one), a.open(two)), b: (b.open(one), b.open(two))}
        self.assertEqual(files[a], files[b])
        status = a.status()
        self.assertEqual(sorted(status["open_files"]), sorted([one, two]))
        self.assertEqual(status["clients"], 2)

        def use(client):
            for i in range(20):
                data = (one_data, two_data)[i % 2]
                self.assertReads(client, files[client][i % 2], data, i, len(data) - 99, i)
        limetest.at_once((use, a), (use, b))
        a.close()
        self.assertTrue(jobtest.wait_until(lambda: b.status()["clients"] == 1))
        self.assertReads(b, files[b][0], one_data, 3, 100, 0)
        for file in files[b]:
            b.close_file(file)
        self.assertTrue(jobtest.wait_until(lambda: b.status()["open_file_count"] == 0))
        self.assertRefused(errno.EBADF, b.read, files[b][0], 0, 1, 0)

    def test_opened_twice(self):
        path, data = self.data_file()
        client = self.server.client(16 * MIB)
        tags = [client.start_open(path) for _ in range(10)]
        files = {client.finish(tag) for tag in tags}
        self.assertEqual(len(files), 1)
        file = client.open(path)
        for _ in range(10):
            client.close_file(file)
        self.assertReads(client, file, data, 1, 1000, 0)
        client.close_file(file)
        self.assertRefused(errno.EBADF, client.close_file, file)

    def test_cut_short(self):
        """A read beyond a truncated file's end is an error with a message, never a short read."""
        path, data = self.data_file()
        client = self.server.client(16 * MIB)
        file = client.open(path)
        os.truncate(path, 5_000_000)
        errors = client.status()["errors"]
        text = self.assertRefused(errno.EIO, client.read, file, 0, len(data), 0)
        self.assertIn(path, text)
        self.assertReads(client, file, data, 0, 5_000_000, 0)
        self.assertEqual(client.status()["errors"], errors + 1)

    def test_grown(self):
        path, data = self.data_file()
        client = self.server.client(16 * MIB)
        old = client.open(path)
        with open(path, "ab") as out:
            out.write(b"more")
        new = client.open(path)
        self.assertNotEqual(old, new)
        self.assertReads(client, new, data + b"more", len(data) - 10, 14, 0)
        self.assertRefused(errno.ENXIO, client.read, old, len(data) - 10, 14, 0)

    def test_hints(self):
        path, data = self.data_file()
        job = self.job(2, "--hint", "cb_buffer_size=1048576", "--hint", "striping_unit=262144")
        client = job.client(16 * MIB)
        self.assertReads(client, client.open(path), data, 1, 9_000_000, 1)

    def test_no_other_files(self):
        """The job creates no file next to the container, and no named semaphore in memory."""
        path, data = self.data_file()
        client, model = self.server.client(16 * MIB), bytearray(data)
        self.assertReads(client, client.open(path), data, 0, 1000, 0)
        writing = client.open_for_writing(path)
        self.write_all(client, writing, model, 0, 1000, 0)
        client.sync(writing)
        self.assertEqual(os.listdir(os.path.dirname(path)), ["data"])
        for pid in self.server.rank_pids():
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
                self.assertNotIn("/sem.", maps.read())


class Writing(jobtest.SharedJob):
    def test_odd_ranges(self):
        for ranks in mpitest.RANKS:
            path, data = self.data_file(ODD)
            model = bytearray(data)
            with self.subTest(ranks=ranks), \
                    contextlib.nullcontext(self.server) if ranks == self.ranks else \
                    jobtest.Job(ranks) as job:
                client = job.client(32 * MIB)
                file = client.open_for_writing(path)
                for one in [*ODD_RANGES, (12345, 10_000_000, 12345),
                            (5 * MIB + 17, 4_000_000, 4096 + 17)]:
                    self.write_all(client, file, model, *one)
                    self.assertHolds(path, model)
                client.sync(file)
                self.assertHolds(path, model)
                client.close_file(file)
                client.close()

    def test_small_stripes(self):
        """No two ranks write into the same block."""
        path, model = self.write("data", b""), bytearray()
        client = self.job(3, "--stripe", "1000").client(32 * MIB)
        file = client.open_for_writing(path)
        for offset, n in [(0, 9_000_001), (500, 100_000), (3333, 7_654_321), (12 * MIB, 4097)]:
            self.write_all(client, file, model, offset, n, offset % 4096)
        self.assertHolds(path, model)

    def test_growing(self):
        """Writes in any order extend an empty file, with a hole."""
        path, model = self.write("data", b""), bytearray()
        client = self.server.client(32 * MIB)
        file = client.open_for_writing(path)
        for offset, n in [(0, 1), (1, 999), (4 * MIB, 6_000_001), (30 * MIB, 2 * MIB),
                          (32 * MIB, 5)]:
            self.write_all(client, file, model, offset, n, offset % 4096)
            self.assertHolds(path, model)

    def test_many_in_flight(self):
        """Adjacent writes, in any order, share blocks and pages at their ends."""
        path, data = self.data_file(40_000_000)
        model = bytearray(data)
        client = self.server.client(64 * MIB)
        file = client.open_for_writing(path)
        random.seed(4)
        for _ in range(5):
            ends = sorted(random.sample(range(41_000_000), 61))
            ranges = [(a, min(b - a, MIB)) for a, b in zip(ends, ends[1:])]
            slots = list(range(60))
            random.shuffle(slots)
            tags = [self.start_write(client, file, model, *ranges[i],
                                     i * MIB + i // 60 if i % 2 else i * MIB) for i in slots]
            random.shuffle(tags)
            for tag in tags:
                client.write_done(tag)
            self.assertHolds(path, model)

    def test_congruent_in_flight(self):
        """A record's stream of extents with odd ends: direct writes, and buffered ends."""
        path, model = self.write("data", b"x" * 777), bytearray(b"x" * 777)
        client = self.server.client(64 * MIB)
        file = client.open_for_writing(path)
        at, tags = 777, []
        for i, end in enumerate([4096 * 900, 4096 * 1800 + 1, 4096 * 3000, 4096 * 3001 + 4095,
                                 4096 * 5000 + 5, 4096 * 7000 + 5]):
            tags.append(self.start_write(client, file, model, at, end - at,
                                         i * 10 * MIB + at % 4096))
            at = end
        for tag in tags:
            client.write_done(tag)
        self.assertHolds(path, model)

    def test_two_clients(self):
        path, data = self.data_file(16 * MIB)
        model = bytearray(data)
        job = self.server
        clients = [job.client(32 * MIB) for _ in range(2)]
        files = [client.open_for_writing(path) for client in clients]
        self.assertEqual(files[0], files[1])
        for turn in range(6):
            tags = [self.start_write(clients[i % 2], files[0], model, i * 2 * MIB + turn,
                                     2 * MIB - 7, i * 2 * MIB) for i in range(8)]
            for i, tag in enumerate(tags):
                clients[i % 2].write_done(tag)
        clients[0].close()
        clients[1].sync(files[1])
        self.assertHolds(path, model)
        self.write_all(clients[1], files[1], model, 3, 5_000_000, 3)
        self.assertHolds(path, model)

    def test_read_and_write(self):
        """A file open for reading and for writing has two numbers; reads see the writes."""
        path, data = self.data_file()
        model = bytearray(data)
        client = self.server.client(32 * MIB)
        reading, writing = client.open(path), client.open_for_writing(path)
        self.assertNotEqual(reading, writing)
        self.assertRefused(errno.EBADF, client.write, reading, 0, 1, 0)
        self.assertRefused(errno.EBADF, client.sync, reading)
        self.assertRefused(errno.EBADF, client.read, writing, 0, 1, 0)
        self.write_all(client, writing, model, 1000, 8_000_000, 1000)
        self.assertReads(client, reading, bytes(model), 1, 9_000_000, 16 * MIB)
        self.assertEqual(client.status()["open_file_count"], 2)

    def test_sync(self):
        """SYNC writes dirty pages to the disk."""
        path, model = self.write("data", b""), bytearray()
        client = self.server.client(8 * MIB)
        file = client.open_for_writing(path)
        syncs = client.status()["syncs"]
        for turn in range(3):
            tags = [self.start_write(client, file, model, i * 100_001, 100_001, i * MIB)
                    for i in range(8)]
            client.sync(file)  # covers what is in flight
            for tag in tags:
                client.write_done(tag)
            self.assertEqual(dirty_pages(path), 0)
            self.assertEqual(client.status()["syncs"], syncs + turn + 1)
        self.assertHolds(path, model)

    def test_same_bytes_in_flight(self):
        path, _data = self.data_file()
        job = self.server
        one, two = job.client(16 * MIB), job.client(16 * MIB)
        file = one.open_for_writing(path)
        two.open_for_writing(path)
        with jobtest.stopped(job.rank_pids_by_rank()[1]):
            first = one.start_write(file, 1000, 5_000_000, 0)
            one.status()
            for client, offset, n, at in [(one, 1000, 1, 8 * MIB), (two, 0, 1001, 0),
                                          (two, 5_000_999, 1, 0)]:
                text = self.assertRefused(errno.EBUSY, client.write, file, offset, n, at)
                self.assertIn("being written", text)
            text = self.assertRefused(errno.EBUSY, one.write, file, 6_000_000, 1, 4_999_999)
            self.assertIn("window", text)
            others = [one.start_write(file, 0, 1000, 8 * MIB),
                      two.start_write(file, 5_001_000, 9, 0)]
        for client, tag in (one, first), (one, others[0]), (two, others[1]):
            client.write_done(tag)
        one.write(file, 1000, 5_000_000, 0)


class WritingFails(jobtest.SharedJob):
    def test_read_only(self):
        directory = self.tmpfs()
        path = os.path.join(directory, "data")
        with open(path, "wb") as file:
            file.write(b"precious")
        limetest.run(["mount", "-o", "remount,ro", directory], check=True)
        client = self.server.client(MIB)
        with self.assertRaises(OSError) as caught:
            client.open_for_writing(path)
        self.assertEqual(caught.exception.errno, errno.EROFS)
        self.assertReads(client, client.open(path), b"precious", 0, 8, 0)

    def test_replaced(self):
        """An open file stays the same after a rename over its name."""
        path, data = self.data_file(100_000)
        model = bytearray(data)
        client = self.server.client(MIB)
        old, before = client.open_for_writing(path), os.stat(path)
        with open(path, "rb") as first:
            other, other_data = self.data_file(100_000)
            os.rename(other, path)
            self.assertRefused(errno.ESTALE, client.open_for_writing, path, inode=before.st_ino)
            self.write_all(client, old, model, 5, 200_000, 0)
            client.sync(old)
            self.assertTrue(first.read() == model)
            client.close_file(old)
        self.assertHolds(path, other_data)
        new, model = client.open_for_writing(path), bytearray(other_data)
        self.write_all(client, new, model, 1, 50_000, 0)
        self.assertHolds(path, model)

    def test_disk_full(self):
        """The error has errno, rank and offset; writes that fit succeed, also later."""
        directory = self.tmpfs("-o", "size=8M")
        path = os.path.join(directory, "data")
        open(path, "wb").close()
        client = self.server.client(32 * MIB)
        host = client.status()["hosts"][0]["name"]
        file, model, before = client.open_for_writing(path), bytearray(), client.status()
        self.write_all(client, file, model, 0, 3 * MIB, 0)
        text = self.assertRefused(errno.ENOSPC, client.write, file, 3 * MIB, 16 * MIB, 4 * MIB)
        self.assertRegex(text, f"^{host}: {path}: write at [0-9]+: No space left on device$")
        status = client.status()
        self.assertEqual((status["errors"] - before["errors"],
                          status["bytes_written"] - before["bytes_written"]), (1, 3 * MIB))
        os.truncate(path, 3 * MIB)
        self.write_all(client, file, model, 3 * MIB, 4 * MIB, 4 * MIB)
        client.sync(file)
        self.assertHolds(path, model)

    def test_limit_of_one_rank(self):
        """The rank survives SIGXFSZ, and the other rank continues."""
        path, data = self.data_file(100)
        job = self.job(2)
        jobtest.limit_files([job.rank_pids_by_rank()[1]], 9 * MIB)
        client = job.client(32 * MIB)
        file, model = client.open_for_writing(path), bytearray(data)
        self.write_all(client, file, model, 1, 8 * MIB, 1)
        text = self.assertRefused(errno.EFBIG, client.write, file, 0, 16 * MIB + 5, 0)
        self.assertIn(f"{path}: write at {9 * MIB}: File too large", text)
        self.write_all(client, file, model, 0, 9 * MIB, 0)
        os.truncate(path, 9 * MIB)
        self.assertHolds(path, model)
        self.assertEqual(job.stop(), 0)

    def failing_disk(self):
        """Returns a directory on a loop device and a function that makes all its unwritten blocks
        fail with ENOSPC."""
        below, directory = self.tmpfs("-o", "size=16M"), self.tempdir()
        disk = os.path.join(below, "disk")
        with open(disk, "wb") as file:
            file.truncate(64 * MIB)
        limetest.run(["mkfs.ext4", "-q", "-O", "^has_journal", "-E", "nodiscard", disk], check=True)
        if limetest.run(["mount", "-o", "loop", disk, directory]).returncode != 0:
            self.skipTest("needs loop devices")
        self.addCleanup(limetest.run, ["umount", "-l", directory])

        def fail():
            os.sync()
            with contextlib.suppress(OSError), open(os.path.join(below, "filler"), "wb") as file:
                while True:
                    file.write(bytes(4096))
        return directory, fail

    def test_disk_fails(self):
        """A direct write fails at once; a buffered one fails at the next sync, once for each client
        that may have written."""
        directory, fail = self.failing_disk()
        path, model = os.path.join(directory, "data"), bytearray()
        open(path, "wb").close()
        job = self.job(2)
        clients = [job.client(8 * MIB) for _ in range(3)]
        file = [client.open_for_writing(path) for client in clients][0]
        self.write_all(clients[0], file, model, 0, 100_000, 0)
        clients[0].sync(file)
        fail()
        for i, client in enumerate(clients[:2]):
            client.write(file, 200_000 + i * 50_000, 50_000, 0)
        late = job.client(MIB)
        for client in clients[:2]:
            text = self.assertRefused(errno.ENOSPC, client.sync, file)
            self.assertRegex(text, f"^[^:]*: {path}: sync: No space left on device$")
        late.open_for_writing(path)
        for client in *clients[:2], late:
            client.sync(file)
        self.assertRefused(errno.ENOSPC, clients[2].sync, file)
        text = self.assertRefused(errno.ENOSPC, clients[0].write, file, 4 * MIB, 4 * MIB, 0)
        self.assertIn(f"{path}: write at ", text)
        with open(path, "rb") as file:
            self.assertTrue(file.read(100_000) == model)
        self.assertEqual(job.stop(), 0)

    def test_rank_killed(self):
        """A killed rank soon ends the connection and the job; nothing is left."""
        for victim in range(3):
            path, _data = self.data_file(100)
            job = self.job(3)
            client = job.client(64 * MIB)
            file = client.open_for_writing(path)
            pid = job.rank_pids_by_rank()[victim]
            with jobtest.stopped(job.rank_pids_by_rank()[(victim + 1) % 3]):
                for i in range(4):
                    client.start_write(file, i * 16 * MIB, 16 * MIB, i * 16 * MIB)
                client.start_sync(file)
                os.kill(pid, signal.SIGKILL)
            self.assertTrue(client.is_dropped())
            self.assertGone(job, 5 * limetest.SLOWNESS,
                            killed=victim != 1)  # rank 0 is killed, or stopped
            self.assertEqual(os.listdir(os.path.dirname(path)), ["data"])

    def test_stopped(self):
        """Requests wait while a rank is stopped; afterwards, all writes are done correctly."""
        path, model = self.write("data", b""), bytearray()
        job = self.server
        client, observer = job.client(32 * MIB), job.client()
        file = client.open_for_writing(path)
        with jobtest.stopped(job.rank_pids_by_rank()[2]):
            tags = [self.start_write(client, file, model, i * 8 * MIB, 8 * MIB, i * 8 * MIB)
                    for i in range(4)]
            tags.append(client.start_sync(file))
            self.assertEqual(observer.status()["writes_in_flight"], 4)
            client.socket.settimeout(0.3)
            with self.assertRaises(socket.timeout):
                client.receive()
        client.socket.settimeout(30 * limetest.SLOWNESS)
        for tag in tags:
            client.finish(tag)
        self.assertHolds(path, model)

    def test_closed_with_pending_packets(self):
        """Rank 0 ignores requests of a closed connection: a SYNC of the next client comes after
        all earlier requests."""
        path, data = self.data_file(20_000_000)
        job = self.server
        client = job.client(32 * MIB)
        file, tags = client.open_for_writing(path), []
        before = client.status()["bytes_written"]
        with jobtest.stopped(job.rank_pids_by_rank()[0]):
            for i in range(60):
                client.start_write(file, i * 300_000, 300_000, i * 300_000)
            client.close()
            other = job.client(MIB, hello=False)
            tags.append(other.start(jobclient.HELLO, struct.pack("<Q", MIB), [other._fd]))
        other.finish(tags[0])
        file = other.open_for_writing(path)
        other.sync(file)
        self.assertHolds(path, data)
        self.assertEqual(other.status()["bytes_written"], before)

    def test_canceled(self):
        """A rank that was stopped does not write what its client has canceled or what is past its
        deadline."""
        path, data = self.data_file(16 * MIB)
        job = self.server
        pids = job.rank_pids_by_rank()
        client, fence = job.client(32 * MIB), 32 * MIB - 4
        file = client.open_for_writing(path)
        for victims, most in (([0], 0), ([1, 2], 8 * MIB)):  # rank 0 reads packets and writes, too
            with contextlib.ExitStack() as stack:
                for rank in victims:
                    stack.enter_context(jobtest.stopped(pids[rank]))
                tags = [client.start_write(file, i * 4 * MIB, 4 * MIB, i * 4 * MIB, fence=fence)
                        for i in range(4)]
                client.window[fence] = 1
            for tag in tags:
                self.assertRefused(errno.ECANCELED, client.write_done, tag)
            self.assertLessEqual(limetest.read(path).count(0), most + data.count(0))
            client.window[fence] = 0
            with contextlib.ExitStack() as stack:
                for rank in victims:
                    stack.enter_context(jobtest.stopped(pids[rank]))
                until = time.time() + 0.2
                tag = client.start_write(file, 0, 16 * MIB, 0, fence=fence, until=int(until * 1e9))
                self.assertTrue(jobtest.wait_until(lambda end=until: time.time() > end, 5))
            self.assertRefused(errno.ETIMEDOUT, client.write_done, tag)
            self.assertLessEqual(limetest.read(path).count(0), most + data.count(0))
        model = bytearray(limetest.read(path))
        client.window[:1000] = model[:1000] = b"w" * 1000
        client.write(file, 0, 1000, 0, fence=fence, until=int((time.time() + 60) * 1e9))
        self.assertHolds(path, model)

    def test_wrong_fences(self):
        path, _ = self.data_file(1000)
        client = self.server.client(MIB)
        file = client.open_for_writing(path)
        for fence in (1, 4094, MIB - 2, MIB, 2**63, 2**64 - 4):
            self.assertRefused(errno.EINVAL, client.write, file, 0, 10, 0, fence=fence)
        client.write(file, 0, 10, 0, fence=MIB - 4)
        client.write(file, 0, 10, 0, until=2**64 - 1)

    def test_gone_while_stopped(self):
        """Writes of a closed client are done; another client's SYNC comes after them."""
        path, model = self.write("data", b""), bytearray()
        job = self.server
        client, other = job.client(32 * MIB), job.client(MIB)
        file, errors = client.open_for_writing(path), client.status()["errors"]
        with jobtest.stopped(job.rank_pids_by_rank()[1]):
            for i in range(4):
                self.start_write(client, file, model, i * 8 * MIB, 8 * MIB, i * 8 * MIB)
            client.status()
            client.close()
            tags = [other.start_open_for_writing(path), other.start_sync(file)]
        self.assertEqual(struct.unpack_from("<I", other.finish(tags[0]))[0], file)
        other.finish(tags[1])
        self.assertHolds(path, model)
        status = other.status()
        self.assertEqual((status["in_flight"], status["errors"]), (0, errors))


class Commands(jobtest.TestCase):
    def test_status(self):
        path, _data = self.data_file(1_000_000)
        job = self.job(3)
        client = job.client(8 * MIB)
        file, writing = client.open(path), client.open_for_writing(path)
        client.read(file, 0, 1_000_000, 0)
        with jobtest.stopped(job.rank_pids_by_rank()[1]):
            tag = client.start_write(writing, 0, 4_000_000, 0)
            status = client.status()
            self.assertEqual((status["in_flight"], status["writes_in_flight"]), (1, 1))
        client.write_done(tag)
        client.sync(writing)
        for args in itertools.permutations(["--status", "--json", job.path]):
            status = json.loads(self.run_ok([jobtest.IO, *args]))
        self.run_ok([jobtest.IO, "--status=" + job.path, "--json"])
        self.assertEqual(status["ranks"], 3)
        self.assertEqual(status["hosts"][0]["ranks"], [0, 1, 2])
        for name, value in (("bytes_read", 1_000_000), ("bytes_written", 4_000_000), ("syncs", 1),
                            ("requests", 3), ("in_flight", 0), ("writes_in_flight", 0),
                            ("errors", 0)):
            self.assertEqual(status[name], value, name)
        self.assertEqual(set(status["open_files"]), {path})
        self.assertIn(status["pid"], job.rank_pids())
        text = self.run_ok([jobtest.IO, "--status", job.path]).decode()
        self.assertIn("977K", text)
        text = self.run_ok([jobtest.IO, "--status", "--bytes", job.path]).decode()
        for part in ("1000000 bytes", "4000000 bytes, 0 writes in flight, 1 syncs", path):
            self.assertIn(part, text)
        for args in (["--status", job.path], ["--status", job.path, "--json"], ["--help"]):
            with open("/dev/full", "wb") as full:
                done = limetest.run([jobtest.IO, *args], stdout=full)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"standard output: write: No space left", done.stderr)

    def test_stop(self):
        job = self.job(2)
        client = job.client()
        done = limetest.run([jobtest.IO, "--stop", job.path])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        self.assertTrue(client.is_dropped())
        self.assertGone(job)
        self.assertEqual((job.process.wait(), job.stderr()), (0, ""))

    def test_no_job_at_the_path(self):
        path = os.path.join(self.tempdir(), "job")
        for action in "--stop", "--status":
            done = limetest.run([jobtest.IO, action, path])
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(b"no job is running there", done.stderr)

    def test_another_program_listens(self):
        path = os.path.join(self.tempdir(), "job")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            accepted = []

            def answer():
                accepted.append(listener.accept()[0])
                accepted[0].sendall(b"x" * 99)
            threading.Thread(target=answer).start()
            done = limetest.run([jobtest.IO, "--status", path])
            accepted[0].close()
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"not a limefs-io", done.stderr)

    def test_called_wrongly(self):
        """The message names the option, where it can; None: any message."""
        for args, message in (
                (["--unknown", "a"], "unknown option '--unknown'"), (["-x"], "unknown option '-x'"),
                (["--unknown=1"], "unknown option '--unknown'"),
                (["--socket"], "option '--socket' requires a value"),
                (["--json=1"], "option '--json' takes no value"),
                (["--st", "a"], "option '--st' is ambiguous (--stop, --status, --stripe)"),
                (["--status", "--json"], "missing socket path: give one"),
                (["--stop", "a", "b"], "b: unexpected argument"),
                (["--stop", "--status", "a"],
                 "--socket, --stop, --status: give only one of them"),
                (["a"], "a: unexpected argument"),
                ([], "no --socket, --stop or --status: give one of them"),
                (["--socket", ""], None), (["--socket", "x" * 108], None),
                (["--socket", "a", "--stop", "b"], None), (["--socket", "a", "b"], None),
                (["--socket", "a", "--stripe", "0"], None),
                (["--socket", "a", "--stripe", "1025M"], None),
                (["--socket", "a", "--stripe", "9G"], None),
                (["--socket", "a", "--hint", "novalue"], None),
                (["--socket", "a", "--ready", "x"], None),
                (["--socket", "a", "--lifeline", "-1"], None)):
            done = limetest.run([jobtest.IO, *args])
            self.assertEqual((done.returncode, done.stdout), (2, b""), args)
            self.assertIn(b"limefs-io: ", done.stderr)
            if message:
                self.assertEqual(done.stderr.decode(),
                                 f"limefs-io: {message}; try limefs-io --help\n")

    def test_help_and_version(self):
        self.assertIn(b"--lifeline", self.run_ok([jobtest.IO, "--help"]))
        self.assertRegex(self.run_ok([jobtest.IO, "--version"]), rb"^limefs-io \d+\.\d+\.\d+\n$")


class Socket(jobtest.SharedJob):
    ranks = 1

    def test_mode(self):
        self.assertEqual(stat.S_IMODE(os.lstat(self.server.path).st_mode), 0o600)

    def test_stale(self):
        path = os.path.join(self.tempdir(), "job")
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(path)
        job = self.job(2, path=path)
        self.assertEqual(job.client().ranks, 2)
        self.assertEqual(job.stop(), 0)
        self.assertFalse(os.path.lexists(path))

    def test_second_job(self):
        job = self.server
        second = jobtest.Job(2, path=job.path).launch()
        self.assertTrue(jobtest.wait_until(second.is_gone, jobtest.START_S))
        self.assertNotEqual(second.process.returncode, 0)
        self.assertIn(f"limefs-io: {job.path}: listen: already served by another job",
                      second.stderr())
        self.assertEqual(job.client().ranks, 1)

    def test_not_a_socket(self):
        path = self.write("job", b"precious")
        job = jobtest.Job(2, path=path).launch()
        self.assertTrue(jobtest.wait_until(job.is_gone, jobtest.START_S))
        self.assertIn("exists and is not a socket", job.stderr())
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"precious")

    def test_directory_locked_by_another_user(self):
        """Another user may lock /tmp for ever: the job continues without the lock."""
        directory = self.tempdir()
        os.chmod(directory, 0o755)
        program = ("import fcntl, os, sys; os.geteuid() or os.setuid(65534); "
                   "fd = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(fd, fcntl.LOCK_EX); "
                   "print('locked', flush=True); sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", program, directory], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as holder:
            self.assertEqual(holder.stdout.readline(), b"locked\n")
            job = self.job(1, path=os.path.join(directory, "job"))
            self.assertEqual(job.client().ranks, 1)
            self.assertEqual(job.stop(), 0)
            holder.stdin.close()

    def test_replaced_socket_stays(self):
        """The job does not remove another socket at its path."""
        job = self.job(1)
        os.rename(job.path, job.path + ".old")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(job.path)
        limetest.run([jobtest.IO, "--stop", job.path + ".old"], check=True)
        self.assertTrue(jobtest.wait_until(job.is_gone))
        self.assertTrue(os.path.lexists(job.path))

    def test_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        job = self.server
        os.chmod(os.path.dirname(job.path), 0o755)
        os.chmod(job.path, 0o666)
        self.addCleanup(os.chmod, job.path, 0o600)
        program = ("import os, socket, sys; os.setuid(65534); s = socket.socket(1); "
                   f"s.settimeout({20 * limetest.SLOWNESS}); s.connect(sys.argv[1]); "
                   "sys.exit(s.recv(1) != b'')")
        self.run_ok([sys.executable, "-c", program, job.path])
        self.assertEqual(job.client().status()["clients"], 0)


class Ending(jobtest.TestCase):
    def use(self, job):
        """Reads and writes in a thread until the job ends."""
        path, _data = self.data_file(30_000_000)
        client = job.client(128 * MIB)
        file, out = client.open(path), client.open_for_writing(self.write("out", b""))

        def use():
            try:
                while True:
                    tags = [client.start_read(file, 0, 30_000_000, i * 32 * MIB)
                            for i in range(2)]
                    tags += [client.start_write(out, i * 30_000_000, 30_000_000, i * 32 * MIB)
                             for i in range(2, 4)]
                    tags.append(client.start_sync(out))
                    for tag in tags:
                        client.finish(tag)
            except (OSError, EOFError):
                pass
        thread = threading.Thread(target=use)
        thread.start()
        self.addCleanup(lambda: (job._give_up(), thread.join()))
        time.sleep(0.2)

    def segments(self, job):
        """MPI's shared memory, from /proc: /dev/shm also has that of other programs."""
        found = set()
        for pid in job.rank_pids():
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
                found |= {line.split()[5] for line in maps
                          if len(line.split()) > 5 and line.split()[5].startswith("/dev/shm/")}
        return found

    def close_lifeline(self, job):
        job.process.stdin.write(b"not the end of file")
        job.process.stdin.flush()
        self.assertEqual(job.client().ranks, 3)
        job.process.stdin.close()

    def test_ends(self):
        """The job ends soon, idle or busy, and leaves nothing; in order: status 0, no messages."""
        def rank(number, victim):
            return lambda job: os.kill(job.rank_pids_by_rank()[victim], number)

        def mpirun(number):
            return lambda job: job.process.send_signal(number)

        in_order = {}
        for name, end, busy, expected in (
                ("rank 0 killed", rank(signal.SIGKILL, 0), (0, 1), {"killed": True}),
                ("rank 2 killed", rank(signal.SIGKILL, 2), (0, 1), {}),
                ("mpirun killed", mpirun(signal.SIGKILL), (0, 1), {"mpirun_killed": True}),
                ("mpirun terminated", mpirun(signal.SIGTERM), (0, 1), {}),
                ("mpirun interrupted", mpirun(signal.SIGINT), (0, 1), {}),
                ("rank 0 terminated", rank(signal.SIGTERM, 0), (1,), in_order),
                ("rank 2 terminated", rank(signal.SIGTERM, 2), (1,), in_order),
                ("--stop", lambda job: job.stop(), (0, 1), in_order),
                ("--lifeline", self.close_lifeline, (0, 1), in_order)):
            for is_busy in busy:
                with self.subTest(name, busy=is_busy):
                    job = self.job(3, *(["--lifeline", "0"] if name == "--lifeline" else []))
                    if is_busy:
                        self.use(job)
                    segments = self.segments(job)
                    end(job)
                    self.assertGone(job, 5 * limetest.SLOWNESS, **expected)
                    self.assertEqual([path for path in segments if os.path.exists(path)], [])
                    if expected is in_order:
                        self.assertEqual((job.process.returncode, job.stderr()), (0, ""))
                    elif "killed" in name:
                        self.assertNotEqual(job.process.returncode, 0)

    def test_killed_at_any_moment(self):
        """Also while ranks start and open files."""
        for i in range(100 if limetest.STRESS else 4):
            job = jobtest.Job(3).launch()
            time.sleep(random.random() * 1.0)
            ranks = job.rank_pids()
            if ranks:
                os.kill(random.choice(ranks), signal.SIGKILL)
            else:
                job.process.kill()
            self.assertGone(job, 15 * limetest.SLOWNESS, killed=True, starting=True)


if __name__ == "__main__":
    limetest.main()
