"""limefs-run in a mount with a job: its ranks read for the program, with no byte but the right
ones, whatever they or the program do."""

import functools
import hashlib
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakejob
import jobtest
import limetest
import test_run
from fakejob import FakeJob
from mpitest import environment
from test_run import PYTHON, REPORT, settled, words

MIB = 1 << 20
RECORD = 20 * MIB + 4321
EXTENT = 2 * MIB
OPTIONS = [f"extent={EXTENT}", "window=32M", "forward_from=512K"]
WINDOW = 8 * EXTENT  # the library's (plan.c): not the daemon's, and less than a record
LEAST = 2 * MIB  # by the job: the kernel reads ahead for ranks, too, and so into memory
BLOCK = 200_000
PATIENT = "job_timeout=60"  # where the job does nothing wrong
ALWAYS = {"LIMEFS_RUN_JOB": "always"}

needs_mpi = unittest.skipUnless(os.path.exists(limetest.program("limefs-io")), "needs MPI")


def cold(*paths):
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def serving(mount):
    def serves():
        return json.loads(os.getxattr(mount.path, "user.limefs.stats"))["job"]["state"] == "serving"
    if not jobtest.wait_until(serves, 60 * limetest.SLOWNESS):
        raise AssertionError("no job")
    return mount


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def mounting(source, *options, **how):
    return limetest.Mount(source, timeout=60, env=environment(), opts=[*OPTIONS, *options], **how)


@limetest.needs_fuse
class TestCase(limetest.TestCase):
    data, other = words(1, RECORD), words(2, RECORD)

    @staticmethod
    @functools.cache
    def container(turn):
        pair = [("one", TestCase.data), ("two", TestCase.other)]
        return limetest.container(pair[::-1] if turn else pair)

    @classmethod
    def write_container(cls, path, turn=0):
        with open(path, "wb") as file:
            file.write(cls.container(turn % 2))
        settled(path)

    def setUp(self):
        self.new_socket()

    def new_socket(self):
        self.socket = os.path.join(self.tempdir(), "a socket")

    def assertBytes(self, got, want, why=None):
        """Without megabytes in the message."""
        self.assertEqual(len(got), len(want), why)
        self.assertTrue(got == want, why)

    def assertAsked(self, job, opcode):
        """By the library, whose own connections are told from the daemon's by their windows."""
        self.assertTrue(jobtest.wait_until(lambda: job.asked(opcode, WINDOW) > 0,
                                           limetest.SLOWNESS), (opcode, job.requests))

    def run_right(self, *command, data=None, env=None, **kw):
        """Its standard output is the record."""
        done = test_run.run(list(command), env=env, timeout=300, **kw)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertBytes(done.stdout, self.data if data is None else data, done.stderr)
        self.assertEqual(done.round + done.through, len(done.stdout))
        return done

    def reader(self, record, **env):
        """A process that reads a block for each line of its input, and prints its length and its
        bytes."""
        code = ("import os, sys\n"
                "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
                "for line in sys.stdin:\n"
                f"    data = os.read(fd, {BLOCK})\n"
                "    sys.stdout.buffer.write(b'%d\\n' % len(data) + data)\n"
                "    sys.stdout.flush()\n")
        process = subprocess.Popen([limetest.program("limefs-run"), PYTHON, "-c", code, record],
                                   env=test_run.environ(**env), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        return process

    @staticmethod
    def ask(process, blocks):
        """So many, or fewer if it ends."""
        got = []
        for _ in range(blocks):
            process.stdin.write(b"\n")
            process.stdin.flush()
            length = process.stdout.readline()
            if not length:
                break
            got.append(process.stdout.read(int(length)))
        return b"".join(got)

    def report(self, process):
        """Its end: (round, by the job, through)."""
        err = process.communicate(timeout=300)[1]
        self.assertEqual(process.returncode, 0, err)
        found = REPORT.search(err)
        self.assertTrue(found, err)
        return tuple(int(number or 0) for number in found.groups()[1:])


class OneContainer(TestCase):
    """Which no test changes."""

    @classmethod
    def setUpClass(cls):
        cls.folder = limetest.tempdir()
        cls.path = os.path.join(cls.folder, "c.lime")
        cls.write_container(cls.path)

    def mount(self, *options, source=None, **how):
        return mounting(source or self.path, *options, **how)


@needs_mpi
class Ranks(OneContainer):
    """Real jobs."""

    def test_own_jobs(self):
        commands = (["cat"], ["dd", "bs=1M"], ["dd", "bs=30000"], ["head", "-c-0"])
        for ranks in (1, 3):
            with self.subTest(ranks=ranks), self.mount(f"ranks={ranks}", PATIENT) as mount:
                serving(mount)
                for command in commands[:1] if ranks == 1 else commands:
                    cold(self.path)
                    name = mount.join("one")
                    name = f"if={name}" if command[0] == "dd" else name
                    done = self.run_right(*command, name)
                    self.assertGreater(done.by_job, LEAST, done.stderr)
                    self.assertEqual(done.through, 0)

    def test_a_foreign_job_and_a_tree(self):
        folder = self.tempdir()
        path, other = os.path.join(folder, "c.lime"), os.path.join(folder, "deep er", "x", "c 2")
        os.makedirs(os.path.dirname(other))
        self.write_container(path)
        os.link(path, other)
        settled(path)
        with jobtest.Job(2, path=self.socket), \
                self.mount(f"job={self.socket}", PATIENT, source=folder) as mount:
            serving(mount)
            for name in (mount.join("deep er", "x", "c 2", "one"), mount.join("c.lime", "one")):
                cold(path)
                done = self.run_right("cat", name)
                self.assertGreater(done.by_job, LEAST, done.stderr)
            status = json.loads(self.run_ok(["limefs-io", "--status", self.socket, "--json"]))
            self.assertEqual(status["clients"], 1)  # the daemon alone

    def test_a_face_with_a_head(self):
        path = os.path.join(self.tempdir(), "cfg")
        self.run_ok(["make-config", "--lattice", "16,16,16,32", path])
        settled(path)
        with self.mount("ranks=2", PATIENT, source=path) as mount:
            serving(mount)
            name = mount.join("ildg-binary-data.npy")
            with open(name, "rb") as file:
                data = file.read()
            cold(path)
            done = self.run_right("cat", name, data=data)
            self.assertGreater(done.by_job, LEAST, done.stderr)

    def harmed(self, harm, ranks=3, mount_options=()):
        """`harm` is done when a reader is by a job's ranks in the middle of a record."""
        with self.mount(f"ranks={ranks}", *mount_options) as mount:
            serving(mount)
            cold(self.path)
            process = self.reader(mount.join("one"))
            got = self.ask(process, 20)
            harm([pid for pid in mount.pids() if self.is_rank(pid)])
            got += self.ask(process, RECORD // BLOCK + 1 - 20)
            self.assertBytes(got, self.data)
            _, by_job, through = self.report(process)
            self.assertGreater(by_job, LEAST)
            self.assertGreater(through, 0)

    @staticmethod
    def is_rank(pid):
        try:
            return os.path.samefile(f"/proc/{pid}/exe", limetest.program("limefs-io"))
        except OSError:
            return False

    def test_killed(self):
        self.harmed(lambda ranks: os.kill(ranks[-1], signal.SIGKILL), 3, [PATIENT])
        self.harmed(lambda ranks: [os.kill(rank, signal.SIGKILL) for rank in ranks], 2, [PATIENT])

    def test_stopped(self):
        """The reader goes on when job_timeout is past."""
        self.harmed(lambda ranks: [os.kill(rank, signal.SIGSTOP) for rank in ranks], 2,
                    ["job_timeout=2"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_users_job(self):
        """A mount of root's for all: its job is root's, so others read by the mount."""
        for path in (self.path, self.folder):
            os.chmod(path, 0o755)
        settled(self.path)
        point = self.tempdir()
        os.chmod(point, 0o755)
        with self.mount("ranks=2", PATIENT, "allow_other", mountpoint=point) as mount:
            serving(mount)
            cold(self.path)
            done = self.run_right("cat", mount.join("one"), user=12345, group=12345,
                                  extra_groups=[])
            self.assertEqual(done.by_job, 0)
            self.assertGreater(done.through, RECORD // 2)


@needs_mpi
class Programs(OneContainer):
    """In one mount, of two containers, with one real job."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.second = os.path.join(cls.folder, "d.lime")
        cls.write_container(cls.second, 1)
        cls.mounted = mounting(cls.folder, "ranks=2", PATIENT).start()

    @classmethod
    def tearDownClass(cls):
        cls.mounted.stop()

    def setUp(self):
        serving(self.mounted)
        cold(self.path, self.second)

    def name(self, record, container="c.lime"):
        return self.mounted.join(container, record)

    def assertByJob(self):
        """What is cold, is read so."""
        cold(self.path)
        done = self.run_right("cat", self.name("one"))
        self.assertGreater(done.by_job, LEAST, done.stderr)

    def test_in_memory(self):
        self.assertByJob()
        for _ in range(10):  # the kernel may take memory back at any time
            with open(self.path, "rb") as file:
                while file.read(MIB):
                    pass
            done = self.run_right("cat", self.name("one"))
            if done.by_job == 0:
                break
        self.assertEqual((done.by_job, done.through), (0, 0))

    def read_by(self, how):
        code = ("import mmap, os, sys\n"
                "path, how = sys.argv[1:]\n"
                "fd = os.open(path, os.O_RDONLY)\n"
                "size = os.fstat(fd).st_size\n"
                "if how == 'pread':\n"
                "    data = b''.join(os.pread(fd, 99999, at) for at in range(0, size, 99999))\n"
                "elif how in ('readv', 'a long vector'):\n"
                "    few, many = (1, 0, 4095, 3 << 20, 5), range(100, 10100, 100)\n"
                "    parts = [bytearray(n) for n in (few if how == 'readv' else many)]\n"
                "    data = b''\n"
                "    while got := os.readv(fd, parts):\n"
                "        data += b''.join(parts)[:got]\n"
                "elif how == 'at once':\n"
                "    data = os.read(fd, size + 1)\n"
                "elif how == 'lseek':\n"
                "    data = b''\n"
                "    for at in range(0, size, 70001):\n"
                "        os.lseek(fd, at, os.SEEK_SET)\n"
                "        data += os.read(fd, 70001)\n"
                "elif how == 'from the middle':\n"
                "    os.lseek(fd, size // 2, os.SEEK_SET)\n"
                "    tail = os.read(fd, size)\n"
                "    data = os.pread(fd, size // 2, 0) + tail\n"
                "os.write(2, b'%d\\n' % len(data))\n"
                "while data:\n"
                "    data = data[os.write(1, data):]\n")
        done = self.run_right(PYTHON, "-c", code, self.name("two"), how, data=self.other)
        self.assertGreater(done.by_job, LEAST, done.stderr)

    def test_ways_to_read(self):
        for how in ("pread", "readv", "at once", "lseek", "from the middle"):
            with self.subTest(how):
                cold(self.path)
                self.read_by(how)

    def test_a_long_vector(self):
        """Of more parts than the library cuts at once."""
        self.read_by("a long vector")

    def test_random_and_small_reads(self):
        code = ("import os, random, sys\n"
                "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
                "dice, size = random.Random(1), os.fstat(fd).st_size // 8\n"
                "for _ in range(500):\n"
                "    at = dice.randrange(size - 512)\n"
                "    data = os.pread(fd, 4096, at * 8)\n"
                "    assert int.from_bytes(data[:8], 'little') & (1 << 48) - 1 == at * 8\n")
        done = test_run.run([PYTHON, "-c", code, self.name("one")])
        self.assertEqual((done.returncode, done.by_job, done.through), (0, 0, 0), done.stderr)
        self.assertByJob()

    def test_threads(self):
        """Two streams at once."""
        code = ("import hashlib, sys, threading\n"
                "sums = {}\n"
                "def go_on(path):\n"
                "    with open(path, 'rb', buffering=0) as file:\n"
                "        sums[path] = hashlib.sha256()\n"
                "        while data := file.read(500_000): sums[path].update(data)\n"
                "threads = [threading.Thread(target=go_on, args=[path]) for path in sys.argv[1:]]\n"
                "for thread in threads: thread.start()\n"
                "for thread in threads: thread.join()\n"
                "for path in sys.argv[1:]: print(sums[path].hexdigest())\n")
        names = [self.name(record, container) for container in ("c.lime", "d.lime")
                 for record in ("one", "two")]
        for some in (names[:2], names[::3], names):
            cold(self.path, self.second)
            done = test_run.run([PYTHON, "-c", code, *some], timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.decode().split(), [
                sha256(self.data if name.endswith("one") else self.other) for name in some])
            self.assertGreater(done.by_job, LEAST, done.stderr)

    def test_signals(self):
        """A handler that reads the same record, by a stream of its own."""
        code = ("import os, signal, sys\n"
                "fd, other = (os.open(sys.argv[1], os.O_RDONLY) for _ in range(2))\n"
                "def on_alarm(*_):\n"
                "    data = os.read(other, 1 << 20) or os.pread(other, 1 << 20, 0)\n"
                "    at = int.from_bytes(data[:8], 'little')\n"
                "    if at >> 48 != 1: os._exit(3)\n"
                "signal.signal(signal.SIGALRM, on_alarm)\n"
                "signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)\n"
                "while data := os.read(fd, 300_000):\n"
                "    while data:\n"
                "        data = data[os.write(1, data):]\n"
                "signal.setitimer(signal.ITIMER_REAL, 0)\n")
        done = test_run.run([PYTHON, "-c", code, self.name("one")], timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertBytes(done.stdout, self.data, done.stderr)
        self.assertGreater(done.by_job, LEAST, done.stderr)

    def test_children(self):
        """One that was forked in the middle goes on with a connection of its own; others are
        executed, also by vfork()."""
        code = ("import hashlib, os, subprocess, sys\n"
                "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
                "data = os.read(fd, 4 << 20)\n"
                "child = os.fork()\n"
                "if child == 0:\n"
                "    own = os.open(sys.argv[1], os.O_RDONLY)\n"
                "    again = b''.join(iter(lambda: os.read(own, 250_000), b''))\n"
                "    right = again[:len(data)] == data and \\\n"
                "        hashlib.sha256(again).hexdigest() == sys.argv[2]\n"
                "    sys.exit(0 if right else 1)\n"
                "data += os.read(fd, 4 << 20)\n"
                "digest = subprocess.run(['sha256sum', sys.argv[1]], stdout=subprocess.PIPE,\n"
                "                        close_fds=False).stdout.split()[0].decode()\n"
                "assert digest == sys.argv[2]\n"
                "data += os.read(fd, 1 << 30)\n"
                "assert hashlib.sha256(data).hexdigest() == sys.argv[2]\n"
                "assert os.waitpid(child, 0)[1] == 0\n")
        done = test_run.run([PYTHON, "-c", code, self.name("one"), sha256(self.data)],
                            env=ALWAYS, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = REPORT.findall(done.stderr)
        self.assertEqual(len(told), 3, told)
        for found in told:
            self.assertGreater(int(found[2] or 0), LEAST, told)


class Changes(TestCase):
    """The container changes while a job reads it: old bytes, new ones or an error."""

    def setUp(self):
        super().setUp()
        self.folder = self.tempdir()
        self.path = os.path.join(self.folder, "c.lime")
        self.write_container(self.path)

    def changed(self, change, want):
        with FakeJob(self.socket) as job, \
                mounting(self.folder, f"job={self.socket}", PATIENT) as mount:
            serving(mount)
            cold(self.path)
            process = self.reader(mount.join("c.lime", "one"), **ALWAYS)
            self.assertBytes(self.ask(process, 20), self.data[:4_000_000])
            self.assertAsked(job, fakejob.READ)
            change()
            got = self.ask(process, RECORD // BLOCK + 1 - 20)
            err = process.communicate(timeout=300)[1]
            self.assertBytes(got, self.data[4_000_000:][:len(got)], err)
            if want is None:
                self.assertEqual(got, b"")
                self.assertIn(b"Stale file handle", err)
            else:
                self.assertEqual(len(got), want, err)

    def test_replaced(self):
        self.write_container(self.path + ".new", 1)
        self.changed(lambda: os.rename(self.path + ".new", self.path), RECORD - 4_000_000)

    def test_unlinked(self):
        self.changed(lambda: os.unlink(self.path), RECORD - 4_000_000)

    def test_rewritten_in_place(self):
        def rewrite():
            with open(self.path, "r+b") as file:
                file.write(limetest.container([("two", self.other), ("one", self.data)]))
        self.changed(rewrite, None)

    def test_cut(self):
        self.changed(lambda: os.truncate(self.path, 10 * MIB), None)

    @needs_mpi
    def test_all_the_time(self):
        """The records change places while readers by a real job are at it."""
        over = threading.Event()

        def go_on():
            turn = 0
            while not over.wait(0.1):
                turn += 1
                self.write_container(self.path + ".new", turn)
                cold(self.path + ".new")
                os.rename(self.path + ".new", self.path)

        with mounting(self.folder, "ranks=2", PATIENT) as mount:
            serving(mount)
            thread = threading.Thread(target=go_on)
            thread.start()
            whole = by_job = 0
            try:
                for turn in range(200):
                    name, data = (("one", self.data), ("two", self.other))[turn % 2]
                    done = test_run.run(["cat", mount.join("c.lime", name)])
                    self.assertBytes(done.stdout, data[:len(done.stdout)], done.stderr)
                    if done.returncode == 0:
                        self.assertEqual(len(done.stdout), RECORD)
                        whole += 1
                    by_job += done.by_job
                    if turn >= 7 and whole and by_job:
                        break
            finally:
                over.set()
                thread.join()
            self.assertGreater(whole, 0)
            self.assertGreater(by_job, 0)


class Hostile(OneContainer):
    """A job that answers nonsense, or nothing, to everybody: the bytes are right."""

    def harmless(self, handle, opcode, by_job=None, timeout=5):
        """And the library has sent such a request, by its own connection."""
        self.new_socket()
        with FakeJob(self.socket) as job, \
                self.mount(f"job={self.socket}", f"job_timeout={timeout}") as mount:
            serving(mount)
            job.handle = handle
            done = self.run_right("dd", f"if={mount.join('one')}", "bs=300K", env=ALWAYS)
            if by_job is not None:
                self.assertEqual(done.by_job > 0, by_job, done.stderr)
            self.assertAsked(job, opcode)
            return job, done

    def wrong(self, opcode, reply, by_job=None, **kw):
        """Answers as it should, but for one kind of request, and that not before the library is
        connected: the daemon would give the job up, and name none to the library."""
        def handle(job, connection, asked, tag, payload):
            if asked != opcode or not job.clients(WINDOW):
                return job.answer(connection, asked, tag, payload)
            return reply(job, connection, tag, payload)
        return self.harmless(handle, opcode, by_job, **kw)

    def test_a_good_one(self):
        self.harmless(FakeJob.answer, fakejob.READ, True, 60)

    def test_wrong_lengths(self):
        for n in (0, 1, 1 << 40):
            with self.subTest(n):
                self.wrong(fakejob.READ, lambda *_, n=n: fakejob.ok("Q", n), False)

    def test_short_and_long_replies(self):
        for opcode in (fakejob.HELLO, fakejob.OPEN, fakejob.READ):
            for reply in (b"", b"\0", b"\0" * 4, b"\xff" * 60, bytes(65536)):
                with self.subTest(opcode, reply=reply[:8]):
                    self.wrong(opcode, lambda *_, r=reply: r)

    def test_errors(self):
        for opcode in (fakejob.HELLO, fakejob.OPEN, fakejob.READ):
            with self.subTest(opcode):
                _, done = self.wrong(opcode, lambda *_: fakejob.error(5, "no"), False)
                self.assertEqual(done.through > RECORD // 2, opcode == fakejob.HELLO)

    def test_hanging_up(self):
        def hang_up(*_):
            raise fakejob.Hangup
        for opcode in (fakejob.HELLO, fakejob.OPEN, fakejob.READ):
            with self.subTest(opcode):
                self.wrong(opcode, hang_up, False)

    def test_silence(self):
        for opcode in (fakejob.HELLO, fakejob.OPEN, fakejob.READ):
            with self.subTest(opcode):
                self.wrong(opcode, lambda *_: None, False, timeout=0.5)

    def test_garbage(self):
        """Another magic, opcode or tag; more replies than requests; a descriptor. The length is
        right, where that is not what is wrong."""
        def head(tag, opcode=fakejob.READ, flags=1, n=12, magic=fakejob.MAGIC, version=2):
            return fakejob.HEADER.pack(magic, version, opcode, flags, n, tag)

        def garbage(data):
            def reply(_job, connection, tag, payload):
                n = fakejob.ok("Q", struct.unpack("<IQQQ", payload)[2])
                connection.sendall(data(tag, n))
            return reply

        def too_many(job, connection, tag, payload):
            connection.sendall((head(tag) + job.answer(connection, fakejob.READ, tag, payload)) *
                               200)

        def descriptor(job, connection, tag, payload):
            answer = job.answer(connection, fakejob.READ, tag, payload)
            socket.send_fds(connection, [head(tag) + answer], [connection.fileno()])

        for what, reply in {
                "text": garbage(lambda *_: b"garbage" * 100),
                "magic": garbage(lambda tag, n: head(tag, magic=1) + n),
                "opcode": garbage(lambda tag, _: head(tag, fakejob.OPEN, n=4) + bytes(4)),
                "another tag": garbage(lambda tag, n: head(tag + 4) + n),
                "no tag": garbage(lambda _, n: head(99 << 32) + n),
                "a request": garbage(lambda tag, n: head(tag, flags=0) + n),
                "too long": garbage(lambda tag, _: head(tag, n=1 << 31)),
                "version": garbage(lambda tag, n: head(tag, version=7) + n)}.items():
            with self.subTest(what):
                self.wrong(fakejob.READ, reply, False)
        for reply in (too_many, descriptor):
            with self.subTest(reply.__name__):
                self.wrong(fakejob.READ, reply)

    def test_a_job_that_goes_and_another_one(self):
        """The mount's next job is not asked by who has just lost one, but by new programs."""
        with FakeJob(self.socket) as job, self.mount(f"job={self.socket}", PATIENT) as mount:
            serving(mount)
            job.hang_up_after = 3
            done = self.run_right("cat", mount.join("one"), env=ALWAYS)
            self.assertGreater(done.through, 0)
            self.assertAsked(job, fakejob.READ)
            self.assertEqual(len(job.clients(WINDOW)), 1)
            job.hang_up_after = None
            serving(mount)
            self.assertGreater(self.run_right("cat", mount.join("one"), env=ALWAYS).by_job, 0)
            self.assertEqual(len(job.clients(WINDOW)), 2)

    def test_no_job_yet(self):
        """It is not there when the record is opened: the container is read."""
        with self.mount(f"job={self.socket}") as mount:
            done = self.run_right("cat", mount.join("one"), env=ALWAYS)
            self.assertEqual((done.round, done.by_job), (RECORD, 0))
            with FakeJob(self.socket):
                serving(mount)
                done = self.run_right("cat", mount.join("one"), env=ALWAYS)
                self.assertGreater(done.by_job, LEAST, done.stderr)

    def test_closed_unseen(self):
        """Descriptors of the library that the program closes behind its back, and takes: by none
        of them a byte is read or written that is not its own."""
        code = ("import ctypes, os, socket, sys\n"
                "libc = ctypes.CDLL(None, use_errno=True)\n"
                "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
                "data = os.read(fd, 6_000_000)\n"
                "libc.syscall(436, 100, 0xffffffff, 0)\n"  # close_range
                "ends = [socket.socketpair() for _ in range(3)]\n"
                "own = []\n"
                "for one, other in ends:\n"
                "    other.send(b'mine')\n"
                "for n in range(500, 520):\n"
                "    libc.syscall(33, ends[n % 3][0].fileno(), n)\n"  # dup2
                "    own.append(n)\n"
                "while got := os.read(fd, 300_000):\n"
                "    data += got\n"
                "for one, other in ends:\n"
                "    assert one.recv(10, socket.MSG_DONTWAIT) == b'mine'\n"
                "    try: sys.exit(other.recv(10, socket.MSG_DONTWAIT))\n"
                "    except BlockingIOError: pass\n"
                "while data:\n"
                "    data = data[os.write(1, data):]\n")
        if os.uname().machine != "x86_64":
            self.skipTest("numbers of system calls")
        with FakeJob(self.socket) as job, self.mount(f"job={self.socket}", PATIENT) as mount:
            serving(mount)
            done = limetest.run(["limefs-run", PYTHON, "-c", code, mount.join("one")],
                                env=test_run.environ(**ALWAYS))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertBytes(done.stdout, self.data, done.stderr)
            self.assertAsked(job, fakejob.READ)


class Connections(OneContainer):
    """What the library asks of jobs that answer well."""

    def test_limited_files(self):
        """A window that is longer than files may be is not made."""
        for limit in (MIB, WINDOW - 1, WINDOW):
            self.new_socket()
            with self.subTest(limit), FakeJob(self.socket) as job, \
                    self.mount(f"job={self.socket}", PATIENT) as mount:
                serving(mount)
                done = self.run_right(
                    "cat", mount.join("one"), env=ALWAYS,
                    preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
                self.assertEqual(done.by_job > LEAST, limit == WINDOW, done.stderr)
                self.assertEqual(done.through > RECORD // 2, limit < WINDOW, done.stderr)
                self.assertEqual(len(job.clients(WINDOW)), int(limit == WINDOW))

    def test_two_jobs(self):
        """Threads that read records of two mounts do not end each other's connections for ever."""
        code = ("import hashlib, sys, threading\n"
                "start, sums = threading.Barrier(2), {}\n"
                "def go_on(path):\n"
                "    start.wait()\n"
                "    with open(path, 'rb', buffering=0) as file:\n"
                "        for turn in range(3):\n"
                "            digest = sums[path, turn] = hashlib.sha256()\n"
                "            file.seek(0)\n"
                "            while data := file.read(300_000): digest.update(data)\n"
                "threads = [threading.Thread(target=go_on, args=[path]) for path in sys.argv[1:]]\n"
                "for thread in threads: thread.start()\n"
                "for thread in threads: thread.join()\n"
                "for path in sys.argv[1:]:\n"
                "    for turn in range(3): print(sums[path, turn].hexdigest())\n")

        def slowly(job, connection, opcode, tag, payload):
            if opcode == fakejob.OPEN:
                time.sleep(0.3)
            return job.answer(connection, opcode, tag, payload)

        second = os.path.join(self.tempdir(), "another socket")
        path = os.path.join(self.tempdir(), "d.lime")
        self.write_container(path, 1)
        with FakeJob(self.socket) as job, FakeJob(second) as another, \
                self.mount(f"job={self.socket}", PATIENT) as mount, \
                self.mount(f"job={second}", PATIENT, source=path) as other:
            serving(mount)
            serving(other)
            job.handle = another.handle = slowly
            done = test_run.run([PYTHON, "-c", code, mount.join("one"), other.join("two")],
                                env=ALWAYS, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.decode().split(),
                             [sha256(self.data)] * 3 + [sha256(self.other)] * 3)
            self.assertGreater(done.by_job, 0, done.stderr)
            counts = [len(one.clients(WINDOW)) for one in (job, another)]
            self.assertGreater(sum(counts), 0)
            self.assertLessEqual(max(counts), 3)

    def test_one_after_another(self):
        """Records that are opened, read and closed: each by the job."""
        code = ("import hashlib, os, sys\n"
                "for path in sys.argv[1:]:\n"
                "    digest = hashlib.sha256()\n"
                "    fd = os.open(path, os.O_RDONLY)\n"
                "    while data := os.read(fd, 500_000): digest.update(data)\n"
                "    os.close(fd)\n"
                "    print(digest.hexdigest())\n")
        with FakeJob(self.socket), self.mount(f"job={self.socket}", PATIENT) as mount:
            serving(mount)
            names = [mount.join(name) for name in ("one", "two")] * 2
            done = test_run.run([PYTHON, "-c", code, *names], env=ALWAYS, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.decode().split(),
                             [sha256(self.data), sha256(self.other)] * 2)
            self.assertGreater(done.by_job, 3 * RECORD, done.stderr)

    def test_many_containers(self):
        """More than the library has open at a job."""
        code = ("import hashlib, os, sys\n"
                "fds = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]\n"
                "sums = {fd: hashlib.sha256() for fd in fds}\n"
                "left = list(fds)\n"
                "while left:\n"
                "    for fd in list(left):\n"
                "        data = os.read(fd, 300_000)\n"
                "        sums[fd].update(data)\n"
                "        if not data: left.remove(fd)\n"
                "for fd in fds: print(sums[fd].hexdigest())\n")
        folder = self.tempdir()
        records = [words(10 + i, 4 * MIB) for i in range(11)]
        for i, record in enumerate(records):
            with open(os.path.join(folder, f"{i}.lime"), "wb") as file:
                file.write(limetest.container([("data", record)]))
        settled(file.name)
        with FakeJob(self.socket) as job, \
                self.mount(f"job={self.socket}", PATIENT, source=folder) as mount:
            serving(mount)
            names = [mount.join(f"{i}.lime", "data") for i in range(len(records))]
            done = test_run.run([PYTHON, "-c", code, *names], env=ALWAYS, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.decode().split(), [sha256(record) for record in records])
            self.assertGreater(done.by_job, 0, done.stderr)
            self.assertGreater(job.asked(fakejob.OPEN, WINDOW), 1)

    def test_large_extents(self):
        """The defaults: four slots of 32 MiB each."""
        size, path = 160 * MIB, os.path.join(self.tempdir(), "large.lime")
        with open(path, "wb") as file:
            head = limetest.header("data", size, True, True)
            file.write(head)
            for at in range(0, size, MIB):
                file.seek(len(head) + at)
                file.write(at.to_bytes(8, "big"))
            file.truncate(len(head) + size)
        settled(path)
        with open(path, "rb") as file:
            file.seek(len(head))
            data = file.read()
        with FakeJob(self.socket) as job, \
                limetest.Mount(path, opts=[f"job={self.socket}", PATIENT]) as mount:
            serving(mount)
            done = self.run_right("cat", mount.join("data"), data=data, env=ALWAYS)
            self.assertGreater(done.by_job, size // 2, done.stderr)
            self.assertGreater(job.asked(fakejob.READ, 128 * MIB), 0)
            self.assertEqual(max(n for _, n in job.reads), 32 * MIB)


@needs_mpi
class Calls(test_run.Calls):
    """All that tests/helpers/run-calls.c does, and each read by the job if that can be."""

    @classmethod
    def setUpClass(cls):
        cls.job = jobtest.Job(2).start()

    @classmethod
    def tearDownClass(cls):
        cls.job.stop()

    def mount(self):
        return limetest.Mount(self.container, opts=[
            f"job={self.job.path}", "forward_from=1", "extent=1M", "window=8M", PATIENT])

    def check(self, what, round_=True, opts=None):
        with self.mount() as mount:
            serving(mount)
            done = test_run.run(["run-calls", what, mount.join("data"), self.plain], env=ALWAYS,
                                timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            if round_:
                self.assertGreater(done.by_job, 0, done.stderr)
            return done

    def test_each_call(self):
        self.check("calls")

    def test_edges(self):
        with self.mount() as mount:
            serving(mount)
            plain = limetest.run(["run-edges", mount.join("data")], env=test_run.environ(),
                                 timeout=300)
            done = test_run.run(["run-edges", mount.join("data")], env=ALWAYS, timeout=300)
        self.assertEqual((plain.returncode, done.returncode), (0, 0), plain.stderr + done.stderr)
        self.assertEqual(done.stdout.splitlines(), plain.stdout.splitlines())
        self.assertGreater(done.by_job, 0, done.stderr)

    test_a_mount_that_is_written_to = test_bytes_that_are_looked_at_on_their_way = None


if __name__ == "__main__":
    limetest.main()
