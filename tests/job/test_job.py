#!/usr/bin/env python3
"""limefs-io: what it reads, what it says, how it ends."""

import errno
import json
import os
import random
import signal
import socket
import stat
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jobclient
import jobtest
import limetest
import mpitest

MIB = 1 << 20


class Reading(jobtest.TestCase):
    def test_odd_ranges(self):
        path, data = self.data_file(20_000_003)
        ranges = [(0, len(data), 0), (1, 19_000_001, 1), (4097, 5_000_000, 1), (12345, 7, 99),
                  (len(data) - 1, 1, 4095), (MIB - 1, MIB + 2, 8191), (3 * MIB, 8 * MIB, 0)]
        for ranks in mpitest.RANKS:
            with self.subTest(ranks=ranks), jobtest.Job(ranks) as job:
                client = job.client(32 * MIB)
                self.assertEqual((client.ranks, client.hosts, client.stripe), (ranks, 1, MIB))
                file = client.open(path)
                for one in ranges:
                    self.assertReads(client, file, data, *one)
                client.close()

    def test_not_in_memory(self):
        """Direct reads, and what they leave to others at both ends."""
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
        client = self.job(3).client(64 * MIB)
        file = client.open(path)
        random.seed(4)
        for _ in range(5):
            reads = []
            for slot in range(64):
                n = random.randrange(1, MIB)
                offset = random.randrange(len(data) - n)
                at = slot * MIB + random.randrange(MIB - n)
                reads.append((client.start_read(file, offset, n, at), offset, n, at))
            random.shuffle(reads)
            for tag, offset, n, at in reads:
                self.assertEqual(client.read_done(tag), n)
                self.assertTrue(client.window[at:at + n] == data[offset:offset + n])

    def test_two_clients(self):
        """Each its window; the file they share is open once."""
        one, one_data = self.data_file(9_000_000, "one")
        two, two_data = self.data_file(8_000_000, "two")
        job = self.job(2)
        a, b = job.client(16 * MIB), job.client(16 * MIB)
        files = {a: (a.open(one), a.open(two)), b: (b.open(one), b.open(two))}
        self.assertEqual(files[a], files[b])
        status = a.status()
        self.assertEqual(sorted(status["open_files"]), sorted([one, two]))
        self.assertEqual(status["clients"], 2)
        failed = []

        def use(client):
            try:
                for i in range(20):
                    data = (one_data, two_data)[i % 2]
                    self.assertReads(client, files[client][i % 2], data, i, len(data) - 99, i)
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=use, args=[c]) for c in (a, b)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        a.close()
        self.assertTrue(jobtest.wait_until(lambda: b.status()["clients"] == 1))
        self.assertReads(b, files[b][0], one_data, 3, 100, 0)
        for file in files[b]:
            b.close_file(file)
        self.assertTrue(jobtest.wait_until(lambda: b.status()["open_file_count"] == 0))
        self.assertRefused(errno.EBADF, b.read, files[b][0], 0, 1, 0)

    def test_opened_twice(self):
        path, data = self.data_file()
        client = self.job(2).client(16 * MIB)
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
        """A file that became shorter: an error with words, never fewer bytes."""
        path, data = self.data_file()
        client = self.job(2).client(16 * MIB)
        file = client.open(path)
        os.truncate(path, 5_000_000)
        text = self.assertRefused(errno.EIO, client.read, file, 0, len(data), 0)
        self.assertIn(path, text)
        self.assertReads(client, file, data, 0, 5_000_000, 0)
        self.assertEqual(client.status()["errors"], 1)

    def test_grown(self):
        path, data = self.data_file()
        client = self.job(2).client(16 * MIB)
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

    def test_nothing_beside_the_container(self):
        path, data = self.data_file()
        client = self.job(2).client(16 * MIB)
        self.assertReads(client, client.open(path), data, 0, 1000, 0)
        self.assertEqual(os.listdir(os.path.dirname(path)), ["data"])


class Opening(jobtest.TestCase):
    def test_refusals(self):
        path, data = self.data_file(100_000)
        folder = os.path.dirname(path)
        client = self.job(3).client(MIB)
        host = client.status()["hosts"][0]["name"]
        for code, name, identity in [
                (errno.ESTALE, path, {"size": 5}), (errno.ESTALE, path, {"inode": 5}),
                (errno.ESTALE, path, {"mtime_ns": 5}), (errno.ENOENT, folder + "/no", {}),
                (errno.ENOTDIR, path + "/no", {}), (errno.ESTALE, folder, {})]:
            text = self.assertRefused(code, lambda: client.open(name, **identity))
            self.assertTrue(text.startswith(f"{host}: {name}: "), text)
        self.assertRefused(errno.EINVAL, client.open, "data")
        self.assertEqual(client.status()["open_file_count"], 0)
        self.assertReads(client, client.open(path), data, 0, 1000, 0)

    def test_replaced(self):
        """What is open stays what it was; a new open sees the new file."""
        path, data = self.data_file(100_000)
        client = self.job(2).client(MIB)
        old, before = client.open(path), os.stat(path)
        other, other_data = self.data_file(100_000)
        os.rename(other, path)
        self.assertRefused(errno.ESTALE, lambda: client.open(path, inode=before.st_ino))
        new = client.open(path)
        self.assertReads(client, new, other_data, 0, 50_000, 0)
        self.assertReads(client, old, data, 0, 50_000, 0)

    def test_pipe(self):
        path = os.path.join(self.tempdir(), "pipe")
        os.mkfifo(path)
        self.assertRefused(errno.ESTALE, self.job(2).client(MIB).open, path)


class Commands(jobtest.TestCase):
    def test_status(self):
        path, _data = self.data_file(1_000_000)
        job = self.job(3)
        client = job.client(MIB)
        file = client.open(path)
        client.read(file, 0, 1_000_000, 0)
        status = json.loads(self.run_ok([jobtest.IO, "--status", job.path, "--json"]))
        self.assertEqual(status["ranks"], 3)
        self.assertEqual(status["hosts"][0]["ranks"], [0, 1, 2])
        self.assertEqual((status["bytes_read"], status["bytes_written"]), (1_000_000, 0))
        self.assertEqual((status["requests"], status["in_flight"], status["errors"]), (1, 0, 0))
        self.assertEqual(status["open_files"], [path])
        self.assertIn(status["pid"], job.rank_pids())
        latency = status["latency_ms"]
        self.assertTrue(0 < latency["p50"] <= latency["p99"] <= latency["max"] < 10_000)
        text = self.run_ok([jobtest.IO, "--status", job.path]).decode()
        self.assertIn("1000000 bytes", text)
        self.assertIn(path, text)

    def test_stop(self):
        job = self.job(2)
        client = job.client()
        done = limetest.run([jobtest.IO, "--stop", job.path])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        self.assertTrue(client.is_dropped())
        self.assertGone(job)
        self.assertEqual((job.process.wait(), job.stderr()), (0, ""))

    def test_nobody_there(self):
        path = os.path.join(self.tempdir(), "job")
        for action in "--stop", "--status":
            done = limetest.run([jobtest.IO, action, path])
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(b"no job serves it", done.stderr)

    def test_what_listens_is_no_job(self):
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
        self.assertIn(b"no limefs-io", done.stderr)

    def test_called_wrongly(self):
        for args in ([], ["--socket"], ["--socket", ""], ["--socket", "x" * 108], ["-x"],
                     ["--socket", "a", "--stop", "b"], ["--socket", "a", "b"],
                     ["--socket", "a", "--stripe", "0"], ["--socket", "a", "--stripe", "1025M"],
                     ["--socket", "a", "--stripe", "9G"], ["--socket", "a", "--hint", "novalue"],
                     ["--socket", "a", "--ready", "x"], ["--socket", "a", "--lifeline", "-1"]):
            done = limetest.run([jobtest.IO, *args])
            self.assertEqual((done.returncode, done.stdout), (2, b""), args)
            self.assertIn(b"limefs-io: ", done.stderr)

    def test_help_and_version(self):
        self.assertIn(b"--lifeline", self.run_ok([jobtest.IO, "--help"]))
        self.assertRegex(self.run_ok([jobtest.IO, "--version"]), rb"^limefs-io \d+\.\d+\.\d+\n$")


class Socket(jobtest.TestCase):
    def test_mode(self):
        job = self.job(1)
        self.assertEqual(stat.S_IMODE(os.lstat(job.path).st_mode), 0o600)

    def test_stale(self):
        path = os.path.join(self.tempdir(), "job")
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(path)
        job = self.job(2, path=path)
        self.assertEqual(job.client().ranks, 2)
        self.assertEqual(job.stop(), 0)
        self.assertFalse(os.path.lexists(path))

    def test_second_job(self):
        job = self.job(1)
        second = jobtest.Job(2, path=job.path).launch()
        self.assertTrue(jobtest.wait_until(second.is_gone, jobtest.START_S))
        self.assertNotEqual(second.process.returncode, 0)
        self.assertIn(f"limefs-io: {job.path}: listen: a job serves it already",
                      second.stderr())
        self.assertEqual(job.client().ranks, 1)

    def test_not_a_socket(self):
        path = self.write("job", b"precious")
        job = jobtest.Job(2, path=path).launch()
        self.assertTrue(jobtest.wait_until(job.is_gone, jobtest.START_S))
        self.assertIn("something that is no socket", job.stderr())
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"precious")

    def test_somebody_elses_stays(self):
        """A socket that took the place of the job's own is not the job's to remove."""
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
        job = self.job(1)
        os.chmod(os.path.dirname(job.path), 0o755)
        os.chmod(job.path, 0o666)
        program = ("import os, socket, sys; os.setuid(65534); s = socket.socket(1); "
                   "s.settimeout(20); s.connect(sys.argv[1]); "
                   "sys.exit(s.recv(1) != b'')")
        self.run_ok([sys.executable, "-c", program, job.path])
        self.assertEqual(job.client().status()["clients"], 0)


class Ending(jobtest.TestCase):
    def busy_job(self, ranks=3, *options):
        """A job that reads all the time, until it ends."""
        path, _data = self.data_file(30_000_000)
        job = self.job(ranks, *options)
        client = job.client(128 * MIB)
        file = client.open(path)

        def use():
            try:
                while True:
                    for tag in [client.start_read(file, 0, 30_000_000, i * 32 * MIB)
                                for i in range(4)]:
                        client.read_done(tag)
            except (OSError, EOFError):
                pass
        thread = threading.Thread(target=use)
        thread.start()
        self.addCleanup(lambda: (job._give_up(), thread.join()))
        time.sleep(0.2)
        return job

    def test_rank_killed(self):
        for victim in range(3):
            job = self.busy_job()
            os.kill(sorted(job.rank_pids())[victim], signal.SIGKILL)
            self.assertGone(job, 5 * limetest.SLOWNESS)
            self.assertNotEqual(job.process.returncode, 0)

    def test_rank_killed_when_idle(self):
        for victim in range(2):
            job = self.job(2)
            os.kill(sorted(job.rank_pids())[victim], signal.SIGKILL)
            self.assertGone(job, 5 * limetest.SLOWNESS)

    def test_mpirun_killed(self):
        for job in self.job(3), self.busy_job():
            job.process.kill()
            self.assertGone(job, 5 * limetest.SLOWNESS, mpirun_killed=True)

    def test_terminated(self):
        for number in signal.SIGTERM, signal.SIGINT:
            for job in self.job(3), self.busy_job():
                job.process.send_signal(number)
                self.assertGone(job, 5 * limetest.SLOWNESS)

    def test_rank_terminated(self):
        """The whole job ends, in order."""
        for victim in range(3):
            job = self.busy_job()
            os.kill(sorted(job.rank_pids())[victim], signal.SIGTERM)
            self.assertGone(job, 5 * limetest.SLOWNESS)
            self.assertEqual((job.process.returncode, job.stderr()), (0, ""))

    def test_lifeline(self):
        for job in self.job(2, "--lifeline", "0"), self.busy_job(2, "--lifeline", "0"):
            job.process.stdin.write(b"this is no end")
            job.process.stdin.flush()
            self.assertEqual(job.client().ranks, 2)
            job.process.stdin.close()
            self.assertGone(job, 5 * limetest.SLOWNESS)
            self.assertEqual((job.process.returncode, job.stderr()), (0, ""))

    def test_stopped_while_busy(self):
        job = self.busy_job()
        self.assertEqual(job.stop(), 0)
        self.assertGone(job)
        self.assertEqual(job.stderr(), "")

    def test_nothing_left(self):
        """MPI's shared memory goes, too: from /proc, because others have theirs there."""
        def segments(job):
            found = set()
            for pid in job.rank_pids():
                with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
                    found |= {line.split()[5] for line in maps
                              if len(line.split()) > 5 and line.split()[5].startswith("/dev/shm/")}
            return found
        for end in (lambda job: os.kill(job.rank_pids()[0], signal.SIGKILL),
                    lambda job: job.process.kill(), lambda job: job.stop()):
            for job in self.job(3), self.busy_job():
                left = segments(job)
                end(job)
                self.assertGone(job, mpirun_killed=True)
                self.assertEqual([name for name in left if os.path.exists(name)], [])

    def test_killed_at_any_moment(self):
        """Also while ranks start and open."""
        for i in range(100 if limetest.STRESS else 6):
            job = jobtest.Job(3).launch()
            time.sleep(random.random() * 1.0)
            ranks = job.rank_pids()
            if ranks:
                os.kill(random.choice(ranks), signal.SIGKILL)
            else:
                job.process.kill()
            self.assertGone(job, 15 * limetest.SLOWNESS, mpirun_killed=True)


class Idle(jobtest.TestCase):
    def test_no_processor(self):
        path, data = self.data_file(20_000_000)
        job = self.job(4)
        client = job.client(32 * MIB)
        file = client.open(path)
        for _ in range(3):
            client.read(file, 0, 16 * MIB, 0)
        time.sleep(0.2)
        pids = job.pids()
        self.assertGreaterEqual(len(pids), 5)
        before = jobtest.cpu_seconds(pids)
        seconds = 30 if limetest.STRESS else 3
        time.sleep(seconds)
        self.assertLess(jobtest.cpu_seconds(pids) - before, 0.01 * seconds)
        begin = time.monotonic()
        self.assertReads(client, file, data, 0, 16 * MIB, 0)
        self.assertLess(time.monotonic() - begin, 0.2 * limetest.SLOWNESS)


if __name__ == "__main__":
    limetest.main()
