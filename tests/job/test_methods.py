#!/usr/bin/env python3
"""limefs-io --io: the same bytes by every method, errors of one rank, and ranks that die or wait
in the middle of a collective call."""

import errno
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import jobtest
import limetest
import mpitest
from jobtest import MIB, ODD, ODD_RANGES

OMPIO, ROMIO = {"OMPI_MCA_io": "ompio"}, {"OMPI_MCA_io": "^ompio"}
COLLECTIVE = ("--io", "collective")  # by ROMIO
METHODS = [("independent", 3, OMPIO), ("independent", 2, ROMIO), ("collective", 1, {}),
           ("collective", 2, {}), ("collective", 3, {}), ("collective", 4, {}),
           ("collective", 2, OMPIO), ("collective", 3, OMPIO)]
KILLS = 20 if limetest.STRESS else 4
LUSTRE = "0x0bd00bd0"


class Bytes(jobtest.TestCase):
    def reads_and_writes(self, job, path, data, ranges):
        model = bytearray(data)
        client = job.client(48 * MIB)
        file, writing = client.open(path), client.open_for_writing(path)
        for one in ranges:
            self.assertReads(client, file, data, *one)
        for one in ranges:
            self.write_all(client, writing, model, *one)
            self.assertHolds(path, model)
        self.write_all(client, writing, model, len(data) - 5, 3 * MIB, 3)  # beyond the end
        client.sync(writing)
        self.assertHolds(path, model)
        return client.status()

    def test_all_methods(self):
        for method, ranks, env in METHODS:
            with self.subTest(method=method, ranks=ranks, env=env):
                path, data = self.data_file(ODD)
                with jobtest.Job(ranks, "--io", method, env=env) as job:
                    status = self.reads_and_writes(job, path, data, [
                        *ODD_RANGES, (4096, 8 * MIB, 0)])
                    self.assertEqual((status["io"], status["errors"]), (method, 0))
                    self.assertEqual(status["open_files_by_io"], {
                        "posix": 0, "independent": 0, "collective": 0, method: 2})

    @limetest.check_all
    def test_large(self):
        path, data = self.data_file(512 * MIB + 5)
        for method in ("independent", "collective"):
            for ranks in 1, 2, 3, 4:
                with self.subTest(method=method, ranks=ranks), \
                        jobtest.Job(ranks, "--io", method) as job:
                    client = job.client(1024 * MIB)
                    self.assertReads(client, client.open(path), data, 0, len(data), 0)
                    copy = self.write("copy", b"")
                    file = client.open_for_writing(copy)
                    self.assertEqual(client.write(file, 1, len(data), 0), len(data))
                    client.sync(file)
                    self.assertHolds(copy, b"\0" + data)
                    os.unlink(copy)

    def test_without_fallocate(self):
        """Containers are then written by system calls, but read as asked."""
        path, data = self.data_file(3_000_000)
        store = faults.Faults(os.path.dirname(path))
        job = self.job(2, *COLLECTIVE, env=store.environment())
        store.arm(faults.ANY_PROCESS, "fallocate", 1, errno.EOPNOTSUPP, lasts=True)
        status = self.reads_and_writes(job, path, data, [(5, 2_000_000, 7)])
        self.assertEqual(status["open_files_by_io"],
                         {"posix": 1, "independent": 0, "collective": 1})


class Errors(jobtest.TestCase):
    """One rank of three fails, or waits; the others are in the same collective call."""

    def setUp(self):
        super().setUp()
        self.path, self.data = self.data_file(9 * MIB)
        self.store = faults.Faults(os.path.dirname(self.path))

    def start(self, **env):
        job = self.job(3, *COLLECTIVE, env=self.store.environment(env))
        client = job.client(32 * MIB)
        return job, client, client.open(self.path), client.open_for_writing(self.path)

    def test_read_fails(self):
        job, client, file, _writing = self.start()
        for rank in range(3):
            self.store.arm(1 + rank, "pread", 1, errno.EIO, lasts=True)
            text = self.assertRefused(errno.EIO, client.read, file, 0, 9 * MIB, 0)
            self.assertIn(f"{self.path}: read at {rank * 3 * MIB}", text)
            self.store.disarm()
            self.assertReads(client, file, self.data, 0, 9 * MIB, 0)
        self.store.arm(1, "pread", 1, errno.EIO)  # the second attempt succeeds
        self.assertReads(client, file, self.data, 0, 9 * MIB, 0)
        self.assertEqual(job.stop(), 0)

    def test_cut(self):
        """A file that was cut is an error, also with OMPIO, which reads what is not there."""
        for env in ROMIO, OMPIO:
            with self.subTest(env=env):
                job, client, file, _writing = self.start(**env)
                os.truncate(self.path, 5 * MIB)
                self.assertRefused(errno.EIO, client.read, file, 0, 9 * MIB, 0)
                self.assertReads(client, file, self.data, 0, 5 * MIB, 0)
                self.assertEqual(job.stop(), 0)
                with open(self.path, "wb") as file:
                    file.write(self.data)

    def test_disk_full(self):
        """MPI may report success; the ranks allocate the space before they write."""
        directory = self.tmpfs("-o", "size=8M")
        for env in ROMIO, OMPIO:
            with self.subTest(env=env), jobtest.Job(3, *COLLECTIVE, env=env) as job:
                path, model = os.path.join(directory, "data"), bytearray()
                open(path, "wb").close()
                client = job.client(32 * MIB)
                file = client.open_for_writing(path)
                self.write_all(client, file, model, 0, 3 * MIB, 0)
                self.assertRefused(errno.ENOSPC, client.write, file, 3 * MIB, 16 * MIB, 4 * MIB)
                os.truncate(path, 3 * MIB)
                self.write_all(client, file, model, 3 * MIB, 4 * MIB, 4 * MIB)
                client.sync(file)
                self.assertHolds(path, model)

    def in_the_middle(self, call, start):
        """Starts a request; returns when the call of rank 1 waits and the others wait for it."""
        self.store.arm(2, call, 1, 0, faults.HANG)
        start()
        self.assertTrue(jobtest.wait_until(lambda: self.store.struck), "no call")

    def test_rank_killed(self):
        for i in range(KILLS):
            victim, writes = i % 3, i % 2
            job, client, file, writing = self.start()
            self.in_the_middle("pwrite" if writes else "pread", lambda: (
                client.start_write(writing, 0, 9 * MIB, 0) if writes else
                client.start_read(file, 0, 9 * MIB, 0)))
            os.kill(job.rank_pids_by_rank()[victim], signal.SIGKILL)
            self.assertTrue(client.is_dropped())
            self.store.disarm()
            self.assertGone(job, killed=victim == 0)

    def test_write_exceeds_its_time(self):
        """The job ends itself, so that a rank that continues cannot write old bytes."""
        job, client, _file, writing = self.start()
        client.window[:9 * MIB] = b"x" * (9 * MIB)
        until = time.time_ns() + int(5e9 * limetest.SLOWNESS)
        self.in_the_middle("fallocate", lambda: client.start_write(writing, 0, 9 * MIB, 0,
                                                                   until=until))
        self.assertTrue(client.is_dropped())
        self.assertGreater(time.time_ns(), until)
        self.store.disarm()
        self.assertGone(job)
        self.assertIn("has not ended in time; ending the job", job.stderr())
        self.assertHolds(self.path, self.data)


class Auto(jobtest.TestCase):
    def choose(self, size=66 * MIB, **env):
        """Returns how the job reads a file that seems to be on Lustre."""
        path, data = self.data_file(size)
        store = faults.Faults(os.path.dirname(path))
        with jobtest.Job(1, env=store.environment({**env, "FAULT_FILE_SYSTEM": LUSTRE})) as job:
            with open(path, "rb") as raw:
                os.fsync(raw.fileno())
                os.posix_fadvise(raw.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            client = job.client(16 * MIB)
            self.assertReads(client, client.open(path), data, 5, 10 * MIB, 0)
            status = client.status()
            self.assertEqual(status["io"], "auto")
            shown = self.run_ok([jobtest.IO, "--status", job.path]).decode()
            counts = status["open_files_by_io"]
            method = next(name for name in counts if counts[name] == 1)
            self.assertRegex(shown, f"\nI/O +auto: 1 file {method}\n")
            return method

    def test_trial(self):
        """The faster method is taken; direct reads are delayed."""
        self.assertEqual(self.choose(FAULT_DIRECT_SECONDS="2", **ROMIO), "collective")

    def test_no_trial(self):
        """OMPIO, whose errors can't be trusted; a file that is too small."""
        if not mpitest.MPICH:
            self.assertEqual(self.choose(FAULT_DIRECT_SECONDS="2", **OMPIO), "posix")
        self.assertEqual(self.choose(20 * MIB, FAULT_DIRECT_SECONDS="2", **ROMIO), "posix")

    def test_local_file_system(self):
        path, data = self.data_file(66 * MIB)
        with jobtest.Job(1, env=ROMIO) as job:
            client = job.client(16 * MIB)
            self.assertReads(client, client.open(path), data, 5, 10 * MIB, 0)
            self.assertEqual(client.status()["open_files_by_io"],
                             {"posix": 1, "independent": 0, "collective": 0})


if __name__ == "__main__":
    limetest.main()
