"""Mounts with a real MPI job (ranks=N, job=SOCKET), in normal operation and after faults."""

import errno
import hashlib
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import mpitest
from jobtest import cpu_seconds
from mpitest import MPIRUN, environment
from writelib import put, read, until

MIB = 1 << 20
TIMEOUT = 2.0  # job_timeout in tests whose jobs fail
PATIENCE = 30.0  # job_timeout in other tests: a busy disk can take seconds
RECORD = 24 * MIB


def stats(mount):
    return json.loads(os.getxattr(mount.path, "user.limefs.stats"))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def serving(mount):
    """Start the mount, wait until its job serves, and return the mount."""
    mount.start()
    until(lambda: stats(mount)["job"]["state"] == "serving", 60)
    return mount


def commands(mount):
    """Return the mount's processes as {pid: (name, command line)}."""
    found = {}
    for pid in mount.pids():
        try:
            args = read(f"/proc/{pid}/cmdline").split(b"\0")
            found[pid] = os.path.basename(args[0].decode()), b" ".join(args).decode()
        except (OSError, UnicodeError):
            pass
    return found


def pids_of(mount, name):
    """Return the pids of `name`: limefs (the daemon), supervisor, mpirun or limefs-io."""
    def kind(found):
        if found[0] == "prterun":  # what mpirun becomes, from Open MPI 5 on
            return "mpirun"
        return "supervisor" if "--supervisor" in found[1] else found[0]
    return sorted(pid for pid, found in commands(mount).items() if kind(found) == name)


def directories(pid):
    """Return the names of the shared-memory directories of one daemon's jobs."""
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"limefs-{pid}-")]


def signals(mount, name, number, pick=-1):
    """Return a function that sends a signal to one of these processes, if there is one."""
    def send():
        pids = pids_of(mount, name)
        if pids:
            os.kill(pids[pick % len(pids)], number)
    return send


def sum_while(path, harm, delay, skip=0):
    """Return the SHA-256 of a file that is read slowly, from `skip` on, without the kernel's cache;
    harm() runs after `delay` seconds."""
    timer, digest = threading.Timer(delay, harm), hashlib.sha256()
    timer.start()
    with limetest.descriptor(path) as fd:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.lseek(fd, skip, os.SEEK_SET)
        while part := os.read(fd, 256 * 1024):
            digest.update(part)
            time.sleep(0.001)
    timer.join()
    return digest.hexdigest()


@limetest.needs_fuse
class TestCase(limetest.TestCase):
    records = 8
    timeout = TIMEOUT

    def setUp(self):
        mpitest.need_job(self)
        self.directory = self.tempdir()
        self.container = os.path.join(self.directory, "many.lime")
        self.data = [random.Random(i).randbytes(RECORD + 1000 * i + i)
                     for i in range(self.records)]
        put(self.container,
            limetest.container([(f"data-{i}", data) for i, data in enumerate(self.data)]))

    def mount(self, *options, source=None, **how):
        return limetest.Mount(source or self.container, timeout=60, env=environment(), opts=[
            f"job_timeout={self.timeout}", "extent=4M", "window=64M", "forward_from=1M",
            *options],
            **how)

    def foreign_job(self, ranks, env=None):
        """Start a job that ends with the test; return the path of its socket."""
        path = os.path.join(self.tempdir(), "socket")
        job = subprocess.Popen([MPIRUN, "--oversubscribe", "-n", str(ranks),
                                limetest.program("limefs-io"), "--socket", path, "--ready", "1"],
                               env=env or environment(), stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL)
        self.addCleanup(job.wait, 30)
        self.addCleanup(job.terminate)
        self.assertEqual(job.stdout.readline(), b"ready\n")
        job.stdout.close()
        return path

    def reads_everything_right(self, mount):
        """Concurrent readers of all records, in four different ways, get the right data."""
        def cat(path):
            return self.run_ok(["cat", path])

        def mapped(path):
            with open(path, "rb") as file, \
                    mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as data:
                return bytes(data)

        def blocks(path):
            with open(path, "rb", buffering=0) as file:
                return b"".join(iter(lambda: file.read(300001), b""))

        def direct(path):
            return self.run_ok(["dd", f"if={path}", "bs=1M", "iflag=direct", "status=none"])

        ways = [cat, mapped, blocks, direct]
        got = limetest.at_once(*((ways[i % 4], mount.join(f"data-{i}"))
                                 for i in range(self.records)))
        for i, data in enumerate(got):
            self.assertEqual(sha256(data), sha256(self.data[i]), f"record {i}")
        dice = random.Random(9)
        for _ in range(300):
            i, n = dice.randrange(self.records), dice.choice([1, 4096, 200000])
            at = dice.randrange(len(self.data[i]))
            with limetest.descriptor(mount.join(f"data-{i}")) as fd:
                self.assertEqual(os.pread(fd, n, at), self.data[i][at:at + n])


class Ranks(TestCase):
    timeout = PATIENCE

    def test_own_jobs(self):
        for ranks, io in (1, "collective"), (2, "auto"), (3, "collective"), (4, "independent"):
            options = f"ranks={ranks}", f"io={io}", f"stripe={64 * ranks}K"
            with self.subTest(ranks=ranks, io=io), serving(self.mount(*options)) as mount:
                self.reads_everything_right(mount)
                seen = stats(mount)
                self.assertEqual(seen["job"]["ranks"], ranks)
                self.assertGreater(seen["forwarded_bytes"], self.records * RECORD // 2)

    def test_a_foreign_job_for_two_mounts(self):
        job = self.foreign_job(3)
        with self.mount(f"job={job}") as one, self.mount(f"job={job}", "direct_io") as two:
            serving(one), serving(two)
            limetest.at_once(*((self.reads_everything_right, mount) for mount in (one, two)))
            status = json.loads(self.run_ok(["limefs-io", "--status", job, "--json"]))
            self.assertEqual(status["ranks"], 3)
            self.assertEqual(status["clients"], 2)
            self.assertGreater(stats(two)["forwarded_bytes"], self.records * RECORD // 2)
            self.assertGreaterEqual(status["bytes_read"], stats(one)["forwarded_bytes"])


class Faults(TestCase):
    records = 2
    dice = random.Random(11)

    def reads_right_during(self, mount, harm, seconds=6.0):
        """A read gets the right data in time although harm() runs at a random moment."""
        begin = time.monotonic()
        self.assertEqual(sum_while(mount.join("data-1"), harm, self.dice.random() * 0.15),
                         sha256(self.data[1]))
        self.assertLess(time.monotonic() - begin, (TIMEOUT + seconds) * limetest.SLOWNESS)

    def reads(self, mount, i):
        """Read without the kernel's cache: only a request makes the daemon detect a stopped job."""
        with open(mount.join(f"data-{i}"), "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertEqual(sha256(file.read()), sha256(self.data[i]))
        return True

    def forwards_again(self, mount):
        before = stats(mount)["forwarded_bytes"]

        def forwards():
            serving(mount)  # the job may have been about to end
            self.reads(mount, 0)
            return stats(mount)["forwarded_bytes"] > before
        until(forwards, 60)

    def test_killed_and_stopped(self):
        for name, number, pick in (("limefs-io", signal.SIGKILL, 0),
                                   ("limefs-io", signal.SIGKILL, -1),
                                   ("mpirun", signal.SIGKILL, 0),
                                   ("supervisor", signal.SIGKILL, 0),
                                   ("limefs-io", signal.SIGSTOP, -1),
                                   ("limefs-io", signal.SIGSTOP, 0)):
            with self.subTest(name, signal=number, rank=pick), \
                    serving(self.mount("ranks=3")) as mount:
                daemon = pids_of(mount, "limefs")[0]
                self.reads_right_during(mount, signals(mount, name, number, pick))
                until(lambda mount=mount: self.reads(mount, 1) and
                      stats(mount)["job"]["connections"] > 1, 60)
                self.forwards_again(mount)
            self.assertEqual(directories(daemon), [])

    def test_many_kills(self):
        dice = random.Random(12)

        def harm():
            signals(mount, "limefs-io", signal.SIGKILL, dice.randrange(3))()

        with serving(self.mount("ranks=3")) as mount:
            daemon = pids_of(mount, "limefs")[0]
            for _ in range(100 if limetest.STRESS else 3):
                self.reads_right_during(mount, harm)
                serving(mount)
            self.forwards_again(mount)
        self.assertEqual(directories(daemon), [])

    def test_the_daemon_killed(self):
        with serving(self.mount("ranks=2")) as mount:
            with open(mount.join("data-0"), "rb") as file:
                file.read(8 * MIB)
            daemon = pids_of(mount, "limefs")[0]
            self.assertEqual(len(directories(daemon)), 1)
            os.kill(daemon, signal.SIGKILL)
            until(lambda: not mount.pids())
            until(lambda: not directories(daemon))

    def test_daemon_and_supervisor_killed(self):
        """The next daemon removes the directories that the killed daemon and supervisor left."""
        with serving(self.mount("ranks=2")) as mount:
            daemon = pids_of(mount, "limefs")[0]
            for pid in [*pids_of(mount, "supervisor"), daemon]:
                os.kill(pid, signal.SIGKILL)
            until(lambda: not mount.pids())
        with serving(self.mount("ranks=1")):
            pass
        self.assertEqual(directories(daemon), [])

    def test_a_foreign_job_that_restarts(self):
        path = os.path.join(self.tempdir(), "socket")
        command = [MPIRUN, "--oversubscribe", "-n", "2", limetest.program("limefs-io"),
                   "--socket", path]
        with self.mount(f"job={path}") as mount:
            self.assertIn(stats(mount)["job"]["state"], ("starting", "absent"))
            for _ in range(2):
                job = subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    self.forwards_again(mount)
                    self.run_ok(["limefs-io", "--stop", path])
                finally:
                    job.wait(30)
                until(lambda: stats(mount)["job"]["state"] != "serving")
                self.assertEqual(sha256(read(mount.join("data-1"))), sha256(self.data[1]))
            self.assertFalse(os.path.exists(path))

    def test_unmounting_while_it_reads(self):
        mount = serving(self.mount("ranks=2"))
        daemon = pids_of(mount, "limefs")[0]
        errors = []

        def reader():
            try:
                with open(mount.join("data-0"), "rb", buffering=0) as file:
                    while file.read(MIB):
                        time.sleep(0.01)
            except OSError as error:
                errors.append(error.errno)

        thread = threading.Thread(target=reader)
        thread.start()
        time.sleep(0.1)
        self.run_ok(["fusermount3", "-u", "-z", mount.path])
        thread.join()
        self.assertTrue(set(errors) <= {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO}, errors)
        until(lambda: not mount.pids())
        self.assertEqual(directories(daemon), [])


class Idle(TestCase):
    records = 1

    def test_idle_job_uses_no_cpu(self):
        seconds = 30 if limetest.STRESS else 4
        with serving(self.mount("ranks=4")) as mount:
            read(mount.join("data-0"))
            time.sleep(0.5)
            pids = [pid for name in ("limefs-io", "mpirun", "supervisor", "limefs")
                    for pid in pids_of(mount, name)]
            self.assertEqual(len(pids), 7)
            before = cpu_seconds(pids)
            time.sleep(seconds)  # in this time an idle job must use no CPU time
            self.assertLess(cpu_seconds(pids) - before, 0.3 * seconds / 30 + 0.03)


if __name__ == "__main__":
    limetest.main()
