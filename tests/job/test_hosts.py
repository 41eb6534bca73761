#!/usr/bin/env python3
"""limefs-io on two and three hosts (tests/lib/hosts.py): reads and writes, mounts with such a job,
and the loss of a host or of the network."""

import contextlib
import errno
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "lib"), os.path.join(TESTS, "fuse")]
import hosts
import jobclient
import jobtest
import limetest
import mpitest
import test_ranks
from jobtest import MIB, ODD, ODD_RANGES

TIMEOUT = test_ranks.TIMEOUT  # job_timeout


class HostsTestCase(jobtest.TestCase):
    """All tests of a class share the same hosts and restore their state."""

    names = ("alpha", "beta", "gamma")

    @classmethod
    def setUpClass(cls):
        if hosts.why_not():
            raise unittest.SkipTest(hosts.why_not())
        cls.hosts = hosts.Hosts(*cls.names)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.hosts.stop()

    def job(self, where, *options, **kw):
        return hosts.Job(self.hosts, where, *options, **kw).start()

    def assertNothingLeft(self, timeout=jobtest.END_S, but=()):
        """The remaining hosts have no processes or files of the job."""
        for name in self.names[1:]:
            self.assertTrue(jobtest.wait_until(lambda name=name: not self.hosts.pids(name),
                                               timeout), name)
            self.assertEqual(set(self.hosts.temporary_files(name)) - set(but), set(), name)


class HarmedHostsTestCase(HostsTestCase):
    """Each test has its own hosts, and may break them."""

    setUpClass = jobtest.TestCase.setUpClass
    tearDownClass = jobtest.TestCase.tearDownClass

    def setUp(self):
        super().setUp()
        if hosts.why_not():
            self.skipTest(hosts.why_not())
        self.hosts = hosts.Hosts(*self.names)


class Files(HostsTestCase, jobtest.SharedJob):
    @classmethod
    def start_job(cls):
        return hosts.Job(cls.hosts, "alpha:2,beta:2,gamma:1").start()

    def tearDown(self):
        super().tearDown()
        self.assertNotIn("limefs-io", self.server.stderr())  # Open MPI may warn of setpgid

    def reads_right(self, client, path, data):
        file = client.open(path)
        for one in ODD_RANGES:
            self.assertReads(client, file, data, *one)
        self.reads_at_random(client, file, data, 16, 3)

    def writes_right(self, client, path, model):
        file = client.open_for_writing(path)
        for one in [*ODD_RANGES, (12345, 30_000_000, 12345)]:
            self.write_all(client, file, model, *one)
            self.assertHolds(path, model)
        dice = random.Random(5)
        for _ in range(3):
            slots = list(range(16))
            dice.shuffle(slots)
            tags = [self.start_write(client, file, model, slot * 3 * MIB + dice.randrange(3),
                                     3 * MIB - dice.randrange(3, 9), slot * 3 * MIB)
                    for slot in slots]
            client.sync(file)
            for tag in tags:
                client.write_done(tag)
            self.assertHolds(path, model)
        client.close_file(file)

    def test_whole_files(self):
        """Ranks spread in several ways read and write; the status lists each on its host."""
        for where, options, ranks in [("alpha:1,beta:2", (), [1, 2]), (None, (), [2, 2, 1]),
                                      ("alpha:1,beta:2", ("--io", "collective"), [1, 2])]:
            with self.subTest(where, options=options):
                path, data = self.data_file(ODD)
                model = bytearray(data)
                job = self.job(where, *options) if where else self.server
                client = job.client(48 * MIB)
                self.assertEqual((client.ranks, client.hosts), (sum(ranks), len(ranks)))
                self.reads_right(client, path, data)
                self.writes_right(client, path, model)
                self.assertReads(client, client.open(path), bytes(model), 5, 30_000_000, 1)
                status = client.status()
                seen = {host["name"]: len(host["ranks"]) for host in status["hosts"]}
                self.assertEqual(seen, dict(zip(self.names, ranks)))
                self.assertEqual(sorted(sum((host["ranks"] for host in status["hosts"]), [])),
                                 list(range(sum(ranks))))
                self.assertEqual(status["in_flight"], 0)
                self.assertEqual(os.listdir(os.path.dirname(path)), ["data"])
                if where:
                    for name, n in list(zip(self.names, ranks))[1:]:
                        self.assertEqual(len(job.pids_on(name)), n)
                    self.assertEqual(status["errors"], 0)
                    self.assertEqual(job.stop(), 0)
                    self.assertNotIn("limefs-io", job.stderr())

    def test_reads_between(self):
        """A client reads one file and writes another at the same time."""
        path, data = self.data_file(20_000_003)
        other, other_data = self.data_file(30_000_000)
        model = bytearray(data)
        client = self.server.client(128 * MIB)
        reading, file = client.open(other), client.open_for_writing(path)
        for _ in range(5):
            tags = []
            for i in range(3):
                tags.append(client.start_read(reading, i * 9_000_000, 9_000_000, i * 9_000_000))
                tags.append(self.start_write(client, file, model, i * 9_000_001, 9_000_001,
                                             64 * MIB + i * 10 * MIB))
            for tag in reversed(tags):
                client.finish(tag)
            self.assertTrue(client.window[:27_000_000] == other_data[:27_000_000])
            client.window[:27_000_000] = bytes(27_000_000)
            self.assertHolds(path, model)

    def test_another_file_there(self):
        """The job refuses the file; the message names the host that has a different one."""
        path, data = self.data_file(9_000_000)
        other, other_data = self.data_file(9_000_000)
        client = self.server.client(16 * MIB)
        reading, writing = client.open, client.open_for_writing
        for calls, host, mount, code, message in (
                ((reading, writing), "beta", ["--bind", other, path], errno.ESTALE,
                 "not the same file: inode "),
                ((reading,), "gamma", ["-t", "tmpfs", "none", os.path.dirname(path)], errno.ENOENT,
                 "open: No such file"),
                ((writing,), "gamma", ["--bind", "-o", "ro", path, path], errno.EROFS,
                 "open: Read-only file system")):
            self.hosts.run(host, ["mount", *mount])
            for call in calls:
                text = self.assertRefused(code, call, path)
                self.assertIn(f"{host}: {path}: {message}", text)
            self.hosts.run(host, ["umount", mount[-1]])
        self.assertReads(client, client.open(path), data, 1, 8_999_999, 0)
        self.assertHolds(path, data)
        self.assertHolds(other, other_data)

    def test_error_there(self):
        """A write error names its host; data that the failed rank got blocks no later write."""
        for where in "alpha:1,beta:1", "alpha:1,gamma:1,beta:1":
            path, model = self.write("data", b""), bytearray()
            job = self.job(where)
            jobtest.limit_files(job.pids_on("beta"), 9 * MIB)
            client = job.client(64 * MIB)
            file = client.open_for_writing(path)
            self.write_all(client, file, model, 0, 8 * MIB, 0)
            tags = [client.start_write(file, i * 24 * MIB, 24 * MIB, i * 24 * MIB)
                    for i in range(2)]
            for tag in tags:
                text = self.assertRefused(errno.EFBIG, client.write_done, tag)
                self.assertRegex(text, f"^beta: {path}: write at [0-9]+: File too large")
            os.truncate(path, 8 * MIB)
            self.write_all(client, file, model, 1, 9 * MIB - 1, 0)
            client.sync(file)
            self.assertHolds(path, model)
            self.assertEqual(job.stop(), 0, job.stderr())

    def test_woken_too_late(self):
        """A rank that wakes after the deadline does not write, though it has the command."""
        path, data = self.data_file(16 * MIB)
        job = self.job("alpha:1,beta:1")
        client = job.client(64 * MIB)
        file = client.open_for_writing(path)
        with jobtest.stopped(job.pids_on("beta")[0]):
            until = time.time() + 0.3
            tag = client.start_write(file, 0, 16 * MIB, 0, until=int(until * 1e9))
            self.assertTrue(jobtest.wait_until(lambda: time.time() > until, 5))
        text = self.assertRefused(errno.ETIMEDOUT, client.write_done, tag)
        self.assertIn("beta: ", text)
        self.assertLess(limetest.read(path).count(0), 9 * MIB)
        model = bytearray(data)
        self.write_all(client, file, model, 0, 16 * MIB, 0)
        self.assertHolds(path, model)


JOIN = 0x100
BACKLOG = "1024"


def closed(one):
    """Whether the other end hangs up without a reply."""
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


class DeafJob(hosts.Job):
    """All packets from the rank on beta to an address of rank 0 are lost silently."""

    def __init__(self, cluster, address, **kw):
        super().__init__(cluster, "alpha:1,beta:1", **kw)
        self.address = address

    def command(self):
        command = super().command()
        at = command.index(jobtest.IO)
        lost = f"ip route del unreachable {self.address}; ip route add {self.address} dev eth0"
        script = f'if [ "$(hostname)" = beta ]; then {lost}; fi; exec "$@"'
        return [*command[:at], "sh", "-ec", script, "sh", *command[at:]]


class Control(HarmedHostsTestCase):
    """Rank 0's TCP port is open until all ranks have connected."""

    names = ("alpha", "beta")
    nowhere = "10.99.78.1"

    def job_that_waits(self):
        """Its ranks on beta first try an unreachable address, for three seconds."""
        self.hosts.run("alpha", ["sh", "-ec", f"ip addr flush dev br0; ip addr add "
                                 f"{self.nowhere}/32 dev br0; ip link add name br1 type bridge; "
                                 f"ip link set br1 up; ip link set beta master br1; ip addr add "
                                 f"{self.hosts.address('alpha')}/24 dev br1"])
        # Open MPI 5's daemon tries all addresses despite this setting; the address then times out.
        self.hosts.run("beta", ["sh", "-ec", f"ip route add unreachable {self.nowhere}; ip neigh "
                                f"add {self.nowhere} lladdr 02:00:00:00:00:99 dev eth0"])
        net = hosts.PREFIX + ".0/24"
        return DeafJob(self.hosts, self.nowhere, env={
            "OMPI_MCA_oob_tcp_if_include": net, "OMPI_MCA_btl_tcp_if_include": net}).launch()

    def control_port(self, job):
        """Finds the port by its backlog, which differs from that of MPI's ports."""
        def found():
            self.assertIsNone(job.process.poll(), job.stderr())
            listed = self.hosts.run("alpha", ["ss", "-Hltn"]).stdout.decode().splitlines()
            return [line.split()[3].rpartition(":")[2] for line in listed
                    if line.split()[2] == BACKLOG]
        self.assertTrue(jobtest.wait_until(found, jobtest.START_S), job.stderr())
        return int(found()[0])

    def unauthenticated(self, port):
        """Connects to rank 0 from beta."""
        with open(self.hosts.enter("beta")[1].partition("=")[2], "rb") as there, \
                open("/proc/self/ns/net", "rb") as here:
            hosts._libc("setns", there.fileno(), 0)
            try:
                return socket.create_connection((self.hosts.address("alpha"), port),
                                                jobtest.START_S)
            finally:
                hosts._libc("setns", here.fileno(), 0)

    def test_unauthenticated(self):
        """Rank 0 drops unauthenticated connections, and the job starts and serves normally."""
        job = self.job_that_waits()
        port, dice = self.control_port(job), random.Random(3)
        with jobtest.stopped(job.pids_on("beta")[0]):
            for wrong in [jobclient.packet(JOIN, b"\1\0\0\0" + bytes(32)),  # not the token
                          jobclient.packet(JOIN, b"\1\0\0\0" + dice.randbytes(32)),
                          jobclient.packet(JOIN, b""), jobclient.packet(JOIN, bytes(60000)),
                          jobclient.packet(jobclient.HELLO, bytes(8)),
                          jobclient.packet(jobclient.STOP), jobclient.packet(JOIN, flags=1),
                          b"GET / HTTP/1.0\r\n\r\n" + bytes(30), dice.randbytes(5000)]:
                with self.unauthenticated(port) as one:
                    one.sendall(wrong)
                    self.assertTrue(closed(one), wrong[:40])
            silent = [self.unauthenticated(port) for _ in range(50)]
            with contextlib.suppress(OSError):
                silent[0].sendall(jobclient.packet(JOIN, bytes(36))[:30])
            self.assertFalse(select.select([job.process.stdout], [], [], 0)[0], "ready too early")
        self.assertTrue(select.select([job.process.stdout], [], [], jobtest.START_S)[0])
        path, data = self.data_file()
        client = job.client(16 * MIB)
        self.assertReads(client, client.open(path), data, 1, 9_000_000, 1)
        with self.assertRaises(ConnectionRefusedError):
            self.unauthenticated(port)
        for one in silent:
            self.assertTrue(closed(one), "an unauthenticated connection is open")
            one.close()
        self.assertReads(client, client.open(path), data, 5, 9_000_000, 1)
        self.assertEqual(job.stop(), 0)
        self.assertNotIn("limefs-io", job.stderr())  # Open MPI may warn of setpgid

    def rank_0(self, job):
        """The process of rank 0."""
        there = job.pids_on("beta")
        return next(pid for pid in job.rank_pids() if pid not in there)

    def test_many_unauthenticated(self):
        """Rank 0 keeps a limited number of unauthenticated connections, and the ranks get in."""
        job = self.job_that_waits()
        port = self.control_port(job)
        pid = self.rank_0(job)
        before = len(os.listdir(f"/proc/{pid}/fd"))
        with jobtest.stopped(job.pids_on("beta")[0]):
            connections = [self.unauthenticated(port) for _ in range(300)]
            self.assertTrue(closed(connections[230]))
            self.assertLess(len(os.listdir(f"/proc/{pid}/fd")), before + 64 + 10)
        self.assertTrue(select.select([job.process.stdout], [], [], jobtest.START_S)[0])
        self.assertEqual(job.process.stdout.readline(), b"ready\n")
        for one in connections:
            self.assertTrue(closed(one))
            one.close()
        self.assertEqual(job.stop(), 0)

    def test_no_descriptor_left(self):
        """Rank 0 waits for a free descriptor without spinning; then all ranks connect."""
        job = self.job_that_waits()
        port = self.control_port(job)
        pid = self.rank_0(job)
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        with self.unauthenticated(port):
            before = jobtest.cpu_seconds([pid])
            time.sleep(2)
            self.assertLess(jobtest.cpu_seconds([pid]) - before, 0.4)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
            self.assertTrue(select.select([job.process.stdout], [], [], jobtest.START_S)[0])
        self.assertEqual(job.stop(), 0)


@contextlib.contextmanager
def tmpfs(case, directory, host=None):
    """Mounts a tmpfs on a host (default: the first); each tmpfs has inodes 1, 2, 3 ..."""
    run = limetest.run if host is None else lambda command, check: case.hosts.run(host, command)
    run(["mount", "-t", "tmpfs", "none", directory], check=True)
    try:
        yield
    finally:
        run(["umount", "-l", directory], check=True)


class Names(HostsTestCase, jobtest.SharedJob):
    """Ranks on other hosts open the client's file by its name and must verify it."""

    names = ("alpha", "beta")

    @classmethod
    def start_job(cls):
        return hosts.Job(cls.hosts, "alpha:1,beta:1").start()

    def setUp(self):
        super().setUp()
        self.root = self.tempdir()
        self.directory = os.path.join(self.root, "a", "b")
        os.makedirs(self.directory)
        self.path = os.path.join(self.directory, "data")
        self.data = random.randbytes(5 * MIB)
        limetest.put(self.path, self.data)
        self.client = self.server.client(16 * MIB)

    def works(self, path, **kw):
        model = bytearray(self.data)
        writing = self.client.open_for_writing(path, **kw)
        self.write_all(self.client, writing, model, 0, 5 * MIB - 1, 0)
        self.client.sync(writing)
        self.data = bytes(model)
        self.client.close_file(writing)
        reading = self.client.open(path, **kw)
        self.assertReads(self.client, reading, self.data, 0, 5 * MIB, 0)
        self.client.close_file(reading)

    def refused(self, code, message, path, **kw):
        for call in self.client.open, self.client.open_for_writing:
            text = self.assertRefused(code, call, path, **kw)
            self.assertIn(f"beta: {path}: {message}", text)

    def test_links(self):
        """No rank follows a link below the root, though it leads to the same file; links in the
        root belong to the administrator."""
        root = len(self.root)
        os.link(self.path, os.path.join(self.root, "same"))
        link = os.path.join(self.tempdir(), "link")
        os.symlink(self.root, link)
        self.works(self.path, root=root)
        self.works(os.path.join(link, "a", "b", "data"), root=len(link))
        self.hosts.run("beta", ["mount", "-t", "tmpfs", "none", self.directory])
        self.hosts.run("beta", ["ln", "-s", "../../same", self.path])
        self.refused(errno.ESTALE, "not the same file: inode ", self.path, root=root)
        self.hosts.run("beta", ["umount", self.directory])
        self.hosts.run("beta", ["mount", "-t", "tmpfs", "none", os.path.dirname(self.directory)])
        self.hosts.run("beta", ["ln", "-s", "..", self.directory])
        os.link(self.path, os.path.join(self.root, "data"))
        self.refused(errno.ELOOP, "open: Too many levels", self.path, root=root)
        self.hosts.run("beta", ["umount", os.path.dirname(self.directory)])
        self.works(self.path, root=root)

    def test_out_of_the_root(self):
        path = os.path.join(self.directory, "..", "b", "..", "..", "..",
                            os.path.basename(self.root), "a", "b", "data")
        self.refused(errno.EXDEV, "open: ", path, root=len(self.directory))

    def test_fifo(self):
        """A rank does not open a FIFO, so it waits for no writer."""
        self.hosts.run("beta", ["mount", "-t", "tmpfs", "none", self.directory])
        self.hosts.run("beta", ["mkfifo", self.path])
        self.refused(errno.ESTALE, "not the same file: ", self.path, root=len(self.root))
        self.hosts.run("beta", ["umount", self.directory])

    def make_there(self, uid, mode):
        """Creates the file on beta, with the same inode number, size and mtime as here."""
        script = 'truncate -s 1000 "$3"; chown $1 "$3"; chmod $2 "$3"; touch -d @1000000000 "$3"'
        self.hosts.run("beta", ["sh", "-ec", script, "sh", str(uid), f"{mode:o}", self.path])

    def test_forged(self):
        """The job refuses another user's file with the same inode number, size and time, and one
        that differs only in ctime."""
        with tmpfs(self, self.directory), tmpfs(self, self.directory, "beta"):
            limetest.put(self.path, bytes(1000))
            os.chmod(self.path, 0o600)
            os.utime(self.path, (1e9, 1e9))
            for uid, mode, message in [(65534, 0o600, "uid 65534, not 0"),
                                       (0, 0o644, "mode 0100644, not 0100600")]:
                self.make_there(uid, mode)
                self.refused(errno.ESTALE, f"not the same file: {message}", self.path)
            self.make_there(0, 0o600)
            text = self.assertRefused(errno.ESTALE, self.client.open, self.path)
            self.assertIn(f"beta: {self.path}: not the same file: ctime ", text)
        self.works(self.path)


class Lost(HarmedHostsTestCase):
    def test_lost(self):
        """A host fails during writes: the job hangs up on the client and ends."""
        path = self.write("data", b"")
        job = self.job("alpha:1,beta:1,gamma:1")
        client = job.client(64 * MIB)
        file = client.open_for_writing(path)
        ranks, pid = job.rank_pids(), job.pids_on("beta")[0]
        os.kill(pid, signal.SIGSTOP)
        for i in range(4):
            client.start_write(file, i * 16 * MIB, 16 * MIB, i * 16 * MIB)
        self.assertEqual(job.client().status()["writes_in_flight"], 4)
        self.hosts.power_off("beta")
        self.assertTrue(client.is_dropped())
        self.assertTrue(jobtest.wait_until(
            lambda: not any(jobtest.is_alive(rank) for rank in ranks)), job.stderr())
        self.assertFalse(os.path.lexists(job.path))

    def test_host_off(self):
        """The job ends everywhere and reports the lost rank, or MPI reports it first. (mpirun
        itself sometimes stays, having lost its daemon.)"""
        job = self.job("alpha:1,beta:1,gamma:1")
        ranks = job.rank_pids()
        self.hosts.power_off("gamma")
        self.assertTrue(jobtest.wait_until(
            lambda: not any(jobtest.is_alive(pid) for pid in ranks)), job.stderr())
        lost = re.compile(r"rank 2 on gamma has ended|on node gamma")
        self.assertTrue(jobtest.wait_until(lambda: lost.search(job.stderr())), job.stderr())
        self.assertFalse(os.path.lexists(job.path))

    @unittest.skipUnless(limetest.STRESS, "takes half a minute")
    def test_link_down_while_idle(self):
        """Without traffic, both sides detect the lost link."""
        job = self.job("alpha:1,beta:1,gamma:1")
        there = job.pids_on("gamma")
        self.hosts.link("gamma", "down")
        self.assertTrue(jobtest.wait_until(
            lambda: not any(jobtest.is_alive(pid) for pid in there + job.rank_pids()), 40))
        self.assertIn("rank 2 on gamma has ended", job.stderr())


class Idle(HostsTestCase):
    def test_no_processor(self):
        path, data = self.data_file(20_000_000)
        job = self.job("alpha:2,beta:1,gamma:2")
        client = job.client(32 * MIB)
        file = client.open(path)
        for _ in range(3):
            client.read(file, 0, 16 * MIB, 0)
        time.sleep(0.3)
        pids = job.pids()
        ranks = job.rank_pids()
        self.assertEqual(len(ranks), 5)
        self.assertGreaterEqual(len(pids), 8)  # and mpirun, and its two daemons
        before = jobtest.cpu_seconds(pids)
        seconds = 30 if limetest.STRESS else 3
        time.sleep(seconds)
        self.assertLess(jobtest.cpu_seconds(pids) - before, 0.01 * seconds + 0.02)
        begin = time.monotonic()
        self.assertReads(client, file, data, 0, 16 * MIB, 0)
        self.assertLess(time.monotonic() - begin, 0.2 * limetest.SLOWNESS)


class Mount(limetest.Mount):
    """A mount in the first host, in the foreground; messages() returns its stderr."""

    def __init__(self, cluster, source, opts, **kw):
        super().__init__(source, opts=opts, args=["-f"], env=mpitest.environment(),
                         prefix=cluster.enter(), timeout=60, **kw)
        self._log = os.path.join(limetest.tempdir(), "stderr")

    def start(self):
        if self.process:
            return self
        limetest._cleanup(self._give_up)
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(self.command(), env=self.environ(), stderr=log,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        test_ranks.until(self.mounted)
        return self

    def stop(self):
        super().stop()
        self.process.wait(10)
        if self.directories():
            raise AssertionError(f"{self.directories()} were left")

    def directories(self):
        """The mount's job directories in the first host's shared memory."""
        return [name for name in os.listdir("/dev/shm")
                if name.startswith(f"limefs-{self.process.pid}-")]

    def _give_up(self):
        super()._give_up()
        self.process.wait(10)

    def messages(self):
        with open(self._log, encoding="utf-8", errors="replace") as file:
            return file.read()


@limetest.needs_fuse
class MountTestCase(HostsTestCase, test_ranks.TestCase):
    names = ("alpha", "beta")
    records = 2

    def setUp(self):
        super().setUp()
        test_ranks.TestCase.setUp(self)

    def mount(self, where, *options):
        """Mounts with a job on those hosts, with as many ranks as slots."""
        ranks = sum(int(host.partition(":")[2]) for host in where.split(","))
        command = " ".join(self.hosts.mpirun(where)).replace(",", "\\,")
        return self.mount_with(f"ranks={ranks}", f"mpirun={command}", *options)

    def mount_with(self, *options):
        return Mount(self.hosts, self.container, [
            f"job_timeout={self.timeout}", "extent=4M", "window=32M", "forward_from=1M", *options])

    def read(self, mount, i, pause=0.0):
        """Reads the record past the kernel's cache."""
        with open(mount.join(f"data-{i}"), "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            got = bytearray()
            while part := file.read(256 * 1024):
                got += part
                time.sleep(pause)
        self.assertTrue(got == self.data[i], f"record {i}")
        return len(got)

    def two_read(self, mount):
        return sum(limetest.at_once(*((self.read, mount, i) for i in range(2))))

    def comes_back(self, mount):
        def forwarded():
            self.read(mount, 0)
            return test_ranks.stats(mount)["forwarded_bytes"] > before
        before = test_ranks.stats(mount)["forwarded_bytes"]
        test_ranks.serving(mount)
        test_ranks.until(forwarded)


class Mounts(MountTestCase):
    timeout = test_ranks.PATIENCE
    names = ("alpha", "beta", "gamma")

    def test_own_job(self):
        for where, ranks in ("alpha:1,beta:2", 3), ("alpha:1,beta:1,gamma:1", 3):
            with self.subTest(where), self.mount(where) as mount:
                test_ranks.serving(mount)
                n = self.two_read(mount)
                seen = test_ranks.stats(mount)
                self.assertEqual((seen["job"]["ranks"], seen["job"]["hosts"]),
                                 (ranks, where.count(",") + 1))
                self.assertGreater(seen["forwarded_bytes"], n // 2)
            self.assertNothingLeft()

    def test_what_the_mount_has_written(self):
        """Data written by the mount is forwarded to all hosts after a sync, and correct before."""
        with self.mount("alpha:1,beta:1,gamma:1", "rw") as mount:
            for turn in range(3):
                self.comes_back(mount)
                self.data[0] = random.Random(turn).randbytes(len(self.data[0]))
                with open(mount.join("data-0"), "rb+", buffering=0) as file:
                    for at in range(0, len(self.data[0]), 1 << 20):
                        file.write(self.data[0][at:at + (1 << 20)])
                    self.two_read(mount)
            self.comes_back(mount)
            self.assertGreater(test_ranks.stats(mount)["forwarded_written_bytes"], 0)
        self.assertNothingLeft()

    def test_another_container_there(self):
        """The job refuses the file, the mount reads locally and reports the host once."""
        other = self.write("other", b"x" * os.path.getsize(self.container))
        for harm, message in [(["mount", "--bind", other, self.container],
                               "not the same file: inode "),
                              (["mount", "-t", "tmpfs", "none", self.directory],
                               "open: No such file")]:
            with self.mount("alpha:1,beta:1,gamma:1") as mount:
                test_ranks.serving(mount)
                self.hosts.run("beta", harm)
                n = self.two_read(mount) + self.two_read(mount)
                seen = test_ranks.stats(mount)
                self.assertEqual(seen["forwarded_bytes"], 0)
                self.assertGreaterEqual(seen["local_bytes"], n // 2)
                found = [line for line in mount.messages().splitlines() if "beta" in line]
                self.assertEqual(len(found), 1, mount.messages())
                self.assertIn(f"job: open: beta: {self.container}: {message}", found[0])
                self.assertIn("read locally", found[0])
            self.hosts.run("beta", ["umount", harm[-1]])
        self.assertNothingLeft()


class Faults(MountTestCase, HarmedHostsTestCase):
    def harmed(self, mount, harm):
        """Calls `harm` while a record is read; the read must end in time."""
        test_ranks.serving(mount)
        timer = threading.Timer(random.Random().random() * 0.2, harm)
        timer.start()
        begin = time.monotonic()
        self.read(mount, 1, pause=0.003)
        took = time.monotonic() - begin
        timer.join()
        self.read(mount, 1)
        self.assertLess(took, (TIMEOUT + 5) * limetest.SLOWNESS)

    def there(self, program):
        """The program's processes on the other host."""
        found = []
        for pid in self.hosts.pids("beta"):
            with contextlib.suppress(OSError):
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == program:
                    found.append(pid)
        return found

    def kill(self, program):
        return lambda: os.kill(self.there(program)[0], signal.SIGKILL)

    def test_killed(self):
        """A rank on the other host is killed, or mpirun's daemon there."""
        daemon = "prted" if shutil.which("prted") else "orted"  # Open MPI 5 has prted
        for program in "limefs-io", daemon:
            for _ in range(10 if limetest.STRESS else 1):
                with self.subTest(program), self.mount("alpha:1,beta:2") as mount:
                    self.harmed(mount, self.kill(program))
                    self.comes_back(mount)
                    self.assertGreater(test_ranks.stats(mount)["job"]["connections"], 1)
                # A killed daemon leaves Open MPI's directory.
                self.assertNothingLeft(but=["ompi.beta.0"] if program == daemon else [])

    def test_link_down(self):
        """The link fails silently: the mount notices by job_timeout, the ranks there later."""
        with self.mount("alpha:1,beta:2") as mount:
            test_ranks.serving(mount)
            ranks = self.there("limefs-io")
            self.assertEqual(len(ranks), 2)
            self.harmed(mount, lambda: self.hosts.link("beta", "down"))
            test_ranks.until(lambda: self.read(mount, 0) and
                             test_ranks.stats(mount)["job"]["state"] != "serving")
            begin = time.monotonic()
            self.two_read(mount)
            self.assertLess(time.monotonic() - begin, 2 * limetest.SLOWNESS)
            if limetest.STRESS:
                self.assertTrue(jobtest.wait_until(
                    lambda: not any(jobtest.is_alive(pid) for pid in ranks), 40))
            self.hosts.link("beta", "up")
        self.assertNothingLeft(40)

    def test_power_off(self):
        with self.mount("alpha:1,beta:2") as mount:
            self.harmed(mount, lambda: self.hosts.power_off("beta"))


if __name__ == "__main__":
    limetest.main()
