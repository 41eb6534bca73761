#!/usr/bin/env python3
"""A mount with a job on three hosts that run the servers of a file system and are its clients."""

import errno
import hashlib
import os
import random
import signal
import sys
import threading
import time
import unittest

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, name) for name in ("lib", "fuse", "job")]
import hosts
import jobtest
import limetest
import storage
import test_hosts
import test_ranks
from jobtest import MIB
from limetest import put

NAMES = ("alpha", "beta", "gamma")
WHERE = "alpha:1,beta:1,gamma:1"
BIG = 256 * MIB
TIMEOUT = 5.0  # job_timeout


def some(n, seed):
    """Pseudo-random bytes, fast: no two blocks of 1 MiB are equal."""
    block = random.Random(seed).randbytes(MIB)
    return b"".join(i.to_bytes(8, "big") + block[8:] for i in range(-(-n // MIB)))[:n]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class StorageTestCase(test_hosts.HarmedHostsTestCase):
    """Tests of one product: `kind`. A subclass sets it."""

    kind = None
    copies = 1
    options = ()  # of its client

    def setUp(self):
        super().setUp()
        if not limetest.can_mount():
            self.skipTest(limetest.NO_FUSE)
        if self.kind.why_not():
            self.skipTest(self.kind.why_not())
        self.gone = set()
        self.store = self.kind(self.hosts, *self.options, copies=self.copies)
        self.container = os.path.join(self.store.path, "c.lime")

    def put(self, *records):
        """Writes the container with its records "data-0" and so on, and waits until it is on the
        servers and the time of its last change has passed."""
        put(self.container, limetest.container([(f"data-{i}", data)
                                                for i, data in enumerate(records)]))
        limetest.drop_cache(self.container)
        self.assertTrue(jobtest.wait_until(self.agrees), self.identities())

    def identities(self):
        """What each host's client says of the container."""
        return {name: self.hosts.run(name, [
            "stat", "-c", "inode %i, size %s, uid %u, mode %a, mtime %.Y, ctime %.Z",
            self.container]).stdout.decode().strip() for name in self.others()} | {
            NAMES[0]: limetest.run(["stat", "-c", "inode %i, size %s, uid %u, mode %a, "
                                    "mtime %.Y, ctime %.Z", self.container],
                                   check=True).stdout.decode().strip()}

    def others(self):
        return [name for name in NAMES[1:] if name not in self.gone]

    def agrees(self):
        return len(set(self.identities().values())) == 1

    def through(self, *options, where=WHERE, timeout=TIMEOUT, jobs=()):
        """A mount on alpha with a separate job on the hosts, serving."""
        self.server = self.job(where, *jobs)
        mount = test_hosts.Mount(self.hosts, self.container, [
            f"job={self.server.path}", f"job_timeout={timeout}", *options])
        return test_ranks.serving(mount)

    def read(self, mount, data, i=0):
        """Reads a record past the kernel's cache; its bytes must be `data`."""
        digest = hashlib.sha256()
        with limetest.descriptor(mount.join(f"data-{i}")) as fd:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            while part := os.read(fd, MIB):
                digest.update(part)
        self.assertEqual(digest.hexdigest(), sha256(data))

    def holds_everywhere(self, *records):
        """All hosts' clients see these records in the container."""
        want = sha256(limetest.container([(f"data-{i}", data)
                                          for i, data in enumerate(records)]))
        for name in self.others():
            self.assertEqual(self.store.read_on(name, self.container), want, name)

    def forwarded(self, mount, key="forwarded_bytes"):
        return test_ranks.stats(mount)[key]


class Agreement:
    def test_read_and_write(self):
        """The hosts agree on the identity of a container, so the job reads it; what it writes is on
        the other hosts after fsync."""
        old, new = some(BIG, 1), some(BIG, 2)
        self.put(old, b"small")
        with self.through("rw", "extent=12M") as mount:
            self.read(mount, old)
            self.assertGreater(self.forwarded(mount), BIG // 2)
            with limetest.descriptor(mount.join("data-0"), os.O_WRONLY) as fd:
                for at in range(0, BIG, MIB):
                    os.write(fd, new[at:at + MIB])
                os.fsync(fd)
                self.holds_everywhere(new, b"small")
            self.assertGreater(self.forwarded(mount, "forwarded_written_bytes"), BIG // 2)
            self.assertEqual(test_ranks.stats(mount)["job"]["state"], "serving")
            self.read(mount, new)
            self.assertNotIn("locally", mount.messages())
        self.assertEqual(self.server.stop(), 0)


class Writer:
    """Overwrites a record of a mount in steps and syncs after each; calls harm() in the middle of a
    step. acknowledged: the bytes that fsync has reported as written; longest: the longest call."""

    STEP = 8 * MIB

    def __init__(self, data):
        self.data, self.acknowledged, self.longest, self.errors = data, 0, 0.0, []

    def _timed(self, function, *args):
        begin = time.monotonic()
        try:
            return function(*args)
        finally:
            self.longest = max(self.longest, time.monotonic() - begin)

    def _step(self, fd, begin, harm):
        end = min(begin + self.STEP, len(self.data))
        for at in range(begin, end, MIB):
            if harm and at >= (begin + end) // 2:
                harm()
                harm = None
            self._timed(os.pwrite, fd, self.data[at:min(at + MIB, end)], at)
        self._timed(os.fsync, fd)
        self.acknowledged = end

    def run(self, path, harm, at):
        """Writes all; a step that fails is written again, up to three times."""
        with limetest.descriptor(path, os.O_WRONLY) as fd:
            while self.acknowledged < len(self.data):
                now = harm if at is not None and self.acknowledged >= at else None
                at = None if now else at
                try:
                    self._step(fd, self.acknowledged, now)
                except OSError as error:
                    self.errors.append(error.errno)
                    if len(self.errors) > 3:
                        raise
        return self


class Kills:
    """Each test breaks something while a record is written or read."""

    size = 96 * MIB

    def harmed(self, harm):
        """Writes with harm() in between; all that fsync has acknowledged is on all other hosts."""
        old, new = some(self.size, 1), some(self.size, 2)
        self.put(old, b"small")
        def harm_while_forwarding():
            self.assertGreater(self.forwarded(mount, "forwarded_written_bytes"), Writer.STEP)
            harm(mount)

        with self.through("rw", "extent=4M") as mount:
            writer = Writer(new).run(mount.join("data-0"), harm_while_forwarding, self.size // 3)
            limetest._comment(sys.stderr, f"{self.id()}: the longest call took "
                              f"{writer.longest:.1f} s; errors: {writer.errors}")
            self.read(mount, new)
            self.assertLessEqual(set(writer.errors), {errno.EIO})
            self.holds_everywhere(new, b"small")
        self.lime("check", self.container)

    def test_server(self):
        """A storage server dies: the others have a copy."""
        self.harmed(lambda _: self.store.kill_server("beta"))

    def test_rank(self):
        """A rank on another host dies: the daemon writes."""
        self.harmed(lambda _: os.kill(self.server.pids_on("beta")[0], signal.SIGKILL))

    def test_host(self):
        """A host with a rank, a server and a client fails."""
        def harm(_):
            self.hosts.power_off("beta")
            self.gone.add("beta")
        self.harmed(harm)

    def test_link(self):
        """The link of such a host goes down without a sign."""
        def harm(_):
            self.hosts.link("beta", "down")
            self.gone.add("beta")
        self.harmed(harm)

    def test_daemon(self):
        """The daemon is killed: what fsync has acknowledged stays, and a new mount shows it."""
        old, new = some(self.size, 1), some(self.size, 2)
        self.put(old, b"small")
        mount = self.through("rw")
        writer = Writer(new)
        with self.assertRaises(OSError):
            writer.run(mount.join("data-0"),
                       lambda: os.kill(mount.process.pid, signal.SIGKILL), self.size // 3)
        self.assertGreaterEqual(writer.acknowledged, self.size // 3)
        self.assertLess(writer.acknowledged, self.size)
        mount._give_up()
        self.lime("check", self.container)
        head = limetest.HEADER_BYTES
        for name in self.others():
            done = self.hosts.run(name, ["sh", "-c", f"tail -c +{head + 1} {self.container} | "
                                         f"head -c {writer.acknowledged} | sha256sum"])
            self.assertEqual(done.stdout.split()[0].decode(),
                             sha256(new[:writer.acknowledged]), name)
        with self.through("rw") as again:
            Writer(new).run(again.join("data-0"), None, None)
            self.holds_everywhere(new, b"small")

    def test_server_while_reading(self):
        data = some(self.size, 1)
        self.put(data, b"small")
        with self.through() as mount:
            self.read(mount, data)
            timer = threading.Timer(0.2, self.store.kill_server, ["beta"])
            timer.start()
            begin = time.monotonic()
            self.read(mount, data)
            timer.join()
            self.read(mount, data)
            limetest._comment(sys.stderr, f"{self.id()}: {time.monotonic() - begin:.1f} s")


class NFS(Agreement, StorageTestCase):
    """Alpha is an NFS client, the other hosts see the directory itself."""
    kind = storage.NFS

    def test_alone(self):
        """Without a job, a tree on NFS."""
        directory = os.path.join(self.store.path, "runs")
        data, more = some(20 * MIB, 1), some(10 * MIB, 2)
        os.mkdir(directory)
        path = put(os.path.join(directory, "c.lime"), limetest.container([("first", data)]))
        with test_hosts.Mount(self.hosts, directory, ["rw"]) as mount:
            self.assertTrue(limetest.read(mount.join("c.lime", "first")) == data)
            put(mount.join("c.lime", "second"), more)
            with limetest.descriptor(mount.join("c.lime", "first"), os.O_WRONLY) as fd:
                os.pwrite(fd, more, MIB)
                os.fsync(fd)
            self.assertEqual([(record.name, record.data) for record in limetest.records_of(path)],
                             [("first", data[:MIB] + more + data[11 * MIB:]), ("second", more)])
            for name in self.others():
                self.assertEqual(self.store.read_on(name, path), sha256(limetest.read(path)), name)


class MooseFSTestCase(StorageTestCase):
    kind = storage.MooseFS


class MooseFS(Agreement, MooseFSTestCase):
    pass


class MooseFSLost(MooseFSTestCase):
    options = ("mfstimeout=10",)  # by default its client tries again for minutes

    def test_no_copy(self):
        """No server is there: readers get an error, and the data when the servers are back."""
        data = some(96 * MIB, 1)
        self.put(data)
        with self.through() as mount:
            self.read(mount, data)
            limetest.drop_cache(self.container)
            for name in NAMES:
                self.store.kill_server(name)
            begin = time.monotonic()
            self.assertErrno(errno.EIO, self.read, mount, data)
            limetest._comment(sys.stderr, f"EIO after {time.monotonic() - begin:.1f} s")
            for name in NAMES:
                self.store.start_server(name)
            self.assertTrue(jobtest.wait_until(self.can_be_read, 60))
            self.read(mount, data)

    def can_be_read(self):
        """MooseFS's client repeats an error for open files until a program opens and reads it."""
        try:
            return limetest.read(self.container)
        except OSError:
            return None


class MooseFSKills(Kills, MooseFSTestCase):
    copies = 2


class GlusterFS(Agreement, StorageTestCase):
    kind = storage.GlusterFS


class GlusterFSKills(Kills, StorageTestCase):
    kind = storage.GlusterFS


@unittest.skipUnless(limetest.STRESS, "takes minutes")
class Throughput(jobtest.TestCase):
    """Three servers, and clients whose links to them carry 100 Mbit/s each. The job uses another
    network, as MPI does on a cluster."""

    clients, servers = ("alpha", "beta", "gamma", "delta"), ("one", "two", "three")
    rate = "100mbit"
    size = 192 * MIB

    def setUp(self):
        super().setUp()
        reason = hosts.why_not() or storage.MooseFS.why_not() or \
            (None if limetest.can_mount() else limetest.NO_FUSE)
        if reason:
            self.skipTest(reason)
        self.hosts = hosts.Hosts(*self.clients, *self.servers)
        self.hosts.add_network(self.rate, self.clients)
        self.store = storage.MooseFS(self.hosts, servers=self.servers, clients=self.clients,
                                     address=self.hosts.second_address)
        self.container = os.path.join(self.store.path, "c.lime")
        self.data = some(self.size, 1)
        put(self.container, limetest.container([("data", self.data)]))

    def measured(self, function, path):
        limetest.drop_cache(self.container)
        limetest.drop_cache(path)
        begin = time.monotonic()
        function(path)
        return self.size / 1e6 / (time.monotonic() - begin)

    def read(self, path):
        with limetest.descriptor(path) as fd:
            while os.read(fd, 4 * MIB):
                pass

    def write(self, path):
        with limetest.descriptor(path, os.O_WRONLY) as fd:
            for at in range(0, self.size, MIB):
                os.pwrite(fd, self.data[at:at + MIB], at)
            os.fsync(fd)

    def report(self, *columns):
        limetest._comment(sys.stderr, "".join(f"{column:>14}" for column in columns))

    def test_more_hosts(self):
        """Reads at the mount are faster the more hosts there are."""
        networks = ["--mca", "btl_tcp_if_include", f"{hosts.PREFIX}.0/24",
                    "--mca", "oob_tcp_if_include", f"{hosts.PREFIX}.0/24"]
        native = self.measured(self.read, self.container)
        self.report("hosts", "read MB/s", "write MB/s")
        read = {}
        for k in range(1, len(self.clients) + 1):
            job = hosts.Job(self.hosts, ",".join(f"{name}:1" for name in self.clients[:k]),
                            mpirun=networks).start()
            mount = test_hosts.Mount(self.hosts, self.container, [f"job={job.path}", "rw"])
            with test_ranks.serving(mount):
                read[k] = self.measured(self.read, mount.join("data"))
                seen = test_ranks.stats(mount)
                self.assertGreater(seen["forwarded_bytes"], 0.9 * self.size)
                write = self.measured(self.write, mount.join("data"))
            self.report(k, f"{read[k]:.1f}", f"{write:.1f}")
            self.assertEqual(job.stop(), 0)
        self.report("native", f"{native:.1f}", f"{self.measured(self.write, self.container):.1f}")
        for k, rate in read.items():  # all hosts share a few busy processors
            self.assertGreater(rate, 0.6 * k * native, f"{k} hosts")


if __name__ == "__main__":
    limetest.main()
