"""jobtest - run limefs-io under mpirun."""

import contextlib
import os
import random
import resource
import select
import signal
import subprocess
import unittest
import uuid

import jobclient
import limetest
import mpitest
from limetest import is_alive

IO = os.path.join(limetest.BIN, "limefs-io")
START_S = 60 * limetest.SLOWNESS
END_S = 10 * limetest.SLOWNESS
MIB = 1 << 20
# (offset, bytes, place in the window) in a file of ODD bytes.
ODD = 20_000_003
ODD_RANGES = [(0, ODD, 0), (1, 19_000_001, 1), (4097, 5_000_000, 1), (12345, 7, 99),
              (ODD - 1, 1, 4095), (MIB - 1, MIB + 2, 8191), (3 * MIB, 8 * MIB, 0)]


def children_of(pid):
    """All descendants, of all threads: a thread of Open MPI 5's mpirun starts the ranks."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += [int(child), *children_of(int(child))]
    return found


def limit_files(pids, size):
    """Limits the processes' file size. A limit at their start would break MPI's own files."""
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, size))


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until(condition, timeout=END_S):
    return limetest._wait(condition, timeout)


def has_stopped(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii", errors="replace") as file:
            if file.read().rsplit(")", 1)[1].split()[0] != "T":
                return False
    return True


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        assert wait_until(lambda: has_stopped(pid))
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


class Job:
    """`mpirun -n ranks limefs-io --socket path ...`, ready after start()."""

    def __init__(self, ranks=2, *options, path=None, env=None):
        self.ranks = ranks
        self.path = path or os.path.join(limetest.tempdir(), "job")
        self.options = list(options)
        self.env = mpitest.environment(env)
        self._token = "LIMETEST_JOB=" + uuid.uuid4().hex
        self.clients = []  # all that client() and connection() made

    def command(self):
        oversubscribe = [] if mpitest.MPICH else ["--oversubscribe"]
        return [mpitest.MPIRUN, *oversubscribe, "-n", str(self.ranks), IO, "--socket",
                self.path, "--ready", "1", *self.options]

    def launch(self):
        """Starts the job without waiting for it."""
        name, value = self._token.split("=")
        self._log = os.path.join(limetest.tempdir(), "stderr")
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                self.command(), env={**self.env, name: value}, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log)
        limetest._cleanup(self._give_up)
        return self

    def start(self):
        self.launch()
        if not select.select([self.process.stdout], [], [], START_S)[0] or \
                self.process.stdout.readline() != b"ready\n":
            raise AssertionError(f"limefs-io is not ready: {self.stderr()}")
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def client(self, window=0, **kw):
        return self._keep(jobclient.Client(self.path, window, **kw))

    def connection(self):
        return self._keep(jobclient.Connection(self.path))

    def _keep(self, client):
        limetest._cleanup(client.close)
        self.clients.append(client)
        return client

    def stderr(self):
        with open(self._log, encoding="utf-8", errors="replace") as file:
            text = mpitest.without_noise(file.read()).lstrip("\n")
            return text if text.strip() else ""

    def pids(self):
        """mpirun, its descendants, and those that have outlived it."""
        return [pid for pid in limetest._processes_with(self._token) if is_alive(pid)]

    def rank_pids(self):
        found = []
        for pid in self.pids():
            with contextlib.suppress(OSError):
                if os.path.samefile(f"/proc/{pid}/exe", IO):
                    found.append(pid)
        return found

    def rank_pids_by_rank(self):
        """{rank: pid} on this host, with Open MPI or MPICH."""
        found = {}
        for pid in self.rank_pids():
            with open(f"/proc/{pid}/environ", "rb") as file:
                for setting in file.read().split(b"\0"):
                    name, _, value = setting.partition(b"=")
                    if name in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK"):
                        found[int(value)] = pid
        return found

    def is_gone(self):
        return not self.pids() and self.process.poll() is not None

    def is_stuck(self):
        """If a rank is killed while it connects to mpirun, Open MPI 4's mpirun ends the others and
        reports that, and may then wait for ever for a lock that it holds (PMIx 4.2)."""
        return self.pids() == [self.process.pid] and "PMIX ERROR: UNREACHABLE" in self.stderr()

    def stop(self):
        """Stops the job in an orderly way; returns mpirun's exit status."""
        if self.process.poll() is None:
            limetest.run([IO, "--stop", self.path], check=True)
        if not wait_until(self.is_gone):
            raise AssertionError("the job has not ended")
        return self.process.returncode

    def _give_up(self):
        with contextlib.suppress(AssertionError, OSError, subprocess.SubprocessError):
            self.stop()  # if all were killed, MPI's shared memory would stay
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()


class TestCase(mpitest.TestCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists(IO):
            self.skipTest("needs MPI")

    def job(self, *args, **kw):
        return Job(*args, **kw).start()

    def data_file(self, n=10_000_019, name="data"):
        """Writes a file of random bytes; returns its path and its bytes."""
        data = os.urandom(1 << 16) * (n >> 16)
        data = bytearray(data + os.urandom(n - len(data)))
        for i in range(0, n - 8, 65536):
            data[i:i + 8] = i.to_bytes(8, "big")
        return self.write(name, bytes(data)), bytes(data)

    def assertReads(self, client, file, data, offset, n, at):
        self.assertEqual(client.read(file, offset, n, at), n)
        self.assertTrue(client.window[at:at + n] == data[offset:offset + n], (offset, n, at))

    def start_write(self, client, file, model, offset, n, at):
        """Writes random bytes into the window and into `model`, the expected file; the tag."""
        data = random.randbytes(n)
        client.window[at:at + n] = data
        model.extend(bytes(max(0, offset + n - len(model))))
        model[offset:offset + n] = data
        return client.start_write(file, offset, n, at)

    def write_all(self, client, file, model, offset, n, at):
        tag = self.start_write(client, file, model, offset, n, at)
        self.assertEqual(client.write_done(tag), n, (offset, n, at))

    def reads_at_random(self, client, file, data, slots, rounds):
        """Starts a read in each slot, `rounds` times, and waits for them in random order."""
        for _ in range(rounds):
            reads = []
            for slot in range(slots):
                n = random.randrange(1, MIB)
                offset, at = random.randrange(len(data) - n), slot * MIB + random.randrange(MIB - n)
                reads.append((client.start_read(file, offset, n, at), offset, n, at))
            random.shuffle(reads)
            for tag, offset, n, at in reads:
                self.assertEqual(client.read_done(tag), n)
                self.assertTrue(client.window[at:at + n] == data[offset:offset + n])

    def assertHolds(self, path, model):
        with open(path, "rb") as file:
            self.assertTrue(file.read() == model, path)

    def assertRefused(self, code, call, *args, **kw):
        with self.assertRaises(jobclient.JobError) as caught:
            call(*args, **kw)
        self.assertEqual(caught.exception.errno, code, caught.exception)
        return caught.exception.strerror

    def assertGone(self, job, timeout=END_S, mpirun_killed=False, starting=False, killed=False):
        """The job has ended and rank 0 has removed the socket, unless rank 0 was killed. MPICH's
        proxies kill all ranks of a dead mpirun."""
        self.assertTrue(wait_until(lambda: job.is_gone() or (starting and job.is_stuck()), timeout),
                        job.stderr())
        if not (killed or mpirun_killed and mpitest.MPICH):
            self.assertFalse(os.path.lexists(job.path), "the socket was left")


class SharedJob(TestCase):
    """The tests of a class share one job, `server`, which has no clients and open files when a test
    starts except those of `observer`."""

    ranks, window, files = 3, 0, 0

    @classmethod
    def start_job(cls):
        return Job(cls.ranks).start()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not mpitest.has_mpi() or not os.path.exists(IO):
            raise unittest.SkipTest("needs MPI")
        cls.server = cls.start_job()
        cls.observer = cls.server.client(cls.window)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        assert status == 0, (status, cls.server.stderr())
        super().tearDownClass()

    def is_idle(self):
        status = self.observer.status()
        return (status["clients"], status["open_file_count"], status["in_flight"]) == (
            self.window > 0, self.files, 0)

    def tearDown(self):
        for client in self.server.clients[1:]:
            client.close()
        del self.server.clients[1:]
        self.assertTrue(wait_until(self.is_idle), self.observer.status())
        super().tearDown()
