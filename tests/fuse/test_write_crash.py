"""Daemons, ranks and whole machines that crash during a change: the container keeps all data that
fsync or close acknowledged, other records are unchanged, and lime repair or the next mount makes
the container clean again."""

import contextlib
import errno
import glob
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import crashlog
import limetest
import mpitest
import test_ranks
import writelib
from writelib import put, read, records, until, whole_records

ITEMS = [("xlf-info", b"x" * 77), ("data", bytes(200000)), ("log", b"log")]
KINDS = {
    "appends": ["append", "append", "append", "grow", "cut", "remove"],
    "rewrites": ["renew", "renew", "append", "name"],
    "in place": ["patch"],
    "large": ["append_large", "renew_large", "patch_large", "remove"],
    "everything": ["append", "grow", "cut", "renew", "patch", "patch", "remove", "name",
                   "message"],
}
MORE = b"more" * 1000 + b"12345"  # ends where the next header can begin
TIMEOUT = 30  # seconds; the writer's longest step


class Round:
    """One writer on one mount, from start to crash, and its log."""

    def __init__(self, test, directory, before, seed, kinds):
        self.test = test
        self.log = os.path.join(test.tempdir(), "log")
        put(self.log, b"")
        self.before = before
        self.writer = subprocess.Popen([sys.executable, crashlog.__file__, directory, self.log,
                                        str(seed), *kinds], stdin=subprocess.DEVNULL)
        test.addCleanup(self.writer.wait)
        test.addCleanup(self.writer.kill)

    def lines(self):
        return read(self.log).count(b"\n")

    def wait_for_lines(self, lines):
        """Waits until the log has this many more lines or the writer ends."""
        least = self.lines() + lines
        until(lambda: self.lines() >= least or self.writer.poll() is not None, TIMEOUT)

    def finish(self, crashed):
        """Returns the log. No step may fail before the time `crashed`; None: no step may fail."""
        if crashed is None:
            self.writer.terminate()
        code = self.writer.wait(TIMEOUT * limetest.SLOWNESS)
        log = crashlog.Log(self.log, self.before)
        if log.error and (crashed is None or log.error[1] < crashed):
            raise AssertionError(f"a step failed: {log}")
        if code not in (0, -signal.SIGKILL):
            raise AssertionError(f"the writer's exit: {code}: {log}")
        return log


def read_records(path):
    """The records of a clean container, in crashlog's form."""
    return [(record.type, record.data) for record in records(read(path))]


class Crash:
    """Mixin of the TestCases of crashes."""

    ROUNDS = 2  # in `make check`
    STRESS_ROUNDS = 40
    TREE = False
    HARMS = ("daemon",)
    SHORT = tuple(KINDS)  # the kinds that `make check` tests

    def setUp(self):
        self.seed = random.randrange(1 << 30)
        self.dice = random.Random(self.seed)
        self.path = os.path.join(self.directory(), "c.lime")
        put(self.path, limetest.container(ITEMS))
        os.sync()  # the container itself must survive the crash

    def directory(self):
        """The directory for the container."""
        return self.tempdir()

    def start(self):
        return self.rw(os.path.dirname(self.path) if self.TREE else self.path)

    def records_directory(self, mount):
        return mount.join("c.lime") if self.TREE else mount.path

    # ---- harm ----

    def daemon(self, mount):
        return mount.pid

    def harm(self, mount, _):
        """Crashes a process, one of HARMS. Returns whether the writer must continue undisturbed."""
        os.kill(self.daemon(mount), signal.SIGKILL)
        return False

    def after_harm(self, mount):
        mount.wait_for_end()
        mount.stop()

    # ---- checks ----

    def check_earlier_records(self, log):
        """Readers see all acknowledged records before the container is repaired."""
        found = whole_records(read(self.path))[0]
        affected = len(log.records) - 1 if log.open else len(log.records)
        if log.open and "i" in log.open:
            affected = log.open["i"]
        for i, (want, got) in enumerate(zip(log.records[:affected], found)):
            if want != (got.type, got.data):
                raise crashlog.Wrong(f"record {i + 1} has changed")
        if len(found) < affected:
            raise crashlog.Wrong(f"{len(found)} of {affected} records can be read")
        done = limetest.run(["lime", "ls", self.path])
        self.assertIn(done.returncode, (0, 1), done)

    def is_clean(self):
        try:
            records(read(self.path))
        except limetest.BadContainer:
            return False
        return True

    def recover_by_repair(self):
        done = limetest.run(["lime", "repair", self.path])
        text = done.stdout.decode() + done.stderr.decode()
        if "a complete record is cut: type 'inside " not in text:  # data that looks like a record
            self.assertEqual(done.returncode, 0, done)
        return text

    def recover_by_mount(self):
        mount = self.start()
        if self.TREE:  # a tree recovers a container at its first change
            put(os.path.join(self.records_directory(mount), "passing"), b"")
            os.unlink(os.path.join(self.records_directory(mount), "passing"))
        mount.stop()
        return mount.words

    def recover(self):
        clean, before = self.is_clean(), read(self.path)
        method = self.dice.choice([self.recover_by_repair, self.recover_by_mount])
        text = method()
        self.assertClean(self.path)
        if clean:
            self.assertBytes(read(self.path), before, "a clean container that was recovered")
        elif not (self.TREE and method == self.recover_by_mount):  # it reports to the system log
            self.assertNotEqual(text, "")
        for left in glob.glob(glob.escape(self.path) + ".cut-*"):
            os.unlink(left)

    def check_leftover_files(self):
        left = set(os.listdir(os.path.dirname(self.path))) - {"c.lime", "lost+found"}
        self.assertLessEqual(left, {".c.lime.limefs-new"})

    # ---- the test ----

    def run_round(self, number, kinds, harm):
        before = read_records(self.path)
        mount = self.start()
        round = Round(self, self.records_directory(mount), before, f"{self.seed}.{number}", kinds)
        round.wait_for_lines(self.dice.choice([1, 2, 5, 10, 30, 60]))
        time.sleep(self.dice.random() * 0.01)  # crash at a random moment
        crashed = time.monotonic()
        if self.harm(mount, harm):
            round.wait_for_lines(20)
            self.log = round.finish(None)
            mount.stop()
        else:
            self.log = round.finish(crashed)
            self.after_harm(mount)
            self.check_earlier_records(self.log)
        self.recover()
        self.log.judge(read_records(self.path))
        self.check_leftover_files()

    def run_crashes(self, name):
        if name not in self.SHORT and not limetest.STRESS:
            self.skipTest("long: make stress")
        rounds = (self.STRESS_ROUNDS if limetest.STRESS else self.ROUNDS) * len(self.HARMS)
        steps = 0
        for number in range(rounds):
            self.log = None
            harm = self.HARMS[number % len(self.HARMS)]
            try:
                self.run_round(number, KINDS[name], harm)
                steps += self.log.steps
            except AssertionError as error:
                evidence = self.keep_evidence()
                raise AssertionError(f"round {number}, seed {self.seed}, {harm}: {error}; "
                                     f"{self.log}; {evidence}") from error
        print(f"# {self.id()}: {rounds} crashes, {steps} whole steps before them")

    def keep_evidence(self):
        """Copies the container to the directory LIMETEST_EVIDENCE, if that is set."""
        where = os.environ.get("LIMETEST_EVIDENCE")
        if not where:
            return "LIMETEST_EVIDENCE=directory keeps the container"
        name = os.path.join(where, f"{self.id()}-{self.seed}")
        with contextlib.suppress(OSError):
            put(name, read(self.path))
        return name

    def test_appends(self):
        self.run_crashes("appends")

    def test_rewrites(self):
        self.run_crashes("rewrites")

    def test_in_place(self):
        self.run_crashes("in place")

    def test_everything(self):
        self.run_crashes("everything")


@limetest.needs_fuse
class Killed(Crash, writelib.TestCase):
    """SIGKILL to the daemon."""


@limetest.needs_fuse
class KilledTree(Crash, writelib.TestCase):
    TREE = True
    ROUNDS = 1
    STRESS_ROUNDS = 25


@limetest.needs_fuse
class PowerFails(Crash, writelib.TestCase):
    """The file system below shuts down at once and loses all data that was not on the disk."""

    ROUNDS = 2
    STRESS_ROUNDS = 40
    KIND = "ext4"
    MIB = 200

    def directory(self):
        self.fs = writelib.SmallFs(self, self.KIND, self.MIB)
        return self.fs.path

    def harm(self, mount, _):
        daemon = self.daemon(mount)
        self.fs.power_fails()
        os.kill(daemon, signal.SIGKILL)
        return False

    def after_harm(self, mount):
        super().after_harm(mount)
        self.fs.comes_back()


@limetest.needs_fuse
class PowerFailsXfs(PowerFails):
    KIND = "xfs"
    ROUNDS = 1


@limetest.needs_fuse
class KilledRanks(Crash, writelib.TestCase):
    """A job writes for the daemon; SIGKILL to one of the processes or to all of them."""

    OPTS = ("ranks=2", "job_timeout=2", "extent=1M", "window=16M", "forward_from=1M")
    HARMS = ("limefs", "limefs-io", "mpirun", "supervisor", "everything")
    SHORT = ("everything", "large")
    ROUNDS = 1
    STRESS_ROUNDS = 12

    def setUp(self):
        mpitest.need_job(self)
        super().setUp()

    def start(self):
        mount = self.rw(self.path, env=mpitest.environment(), timeout=60)
        return test_ranks.serving(mount)

    def daemon(self, mount):
        return test_ranks.pids_of(mount, "limefs")[0]

    def recover_by_mount(self):
        """Recovers by a mount without a job."""
        with writelib.Mount(self.path, opts=["rw"]) as mount:
            return mount.words

    def harm(self, mount, name):
        names = self.HARMS[:-1] if name == "everything" else [name]
        for pid in [pid for name in names for pid in test_ranks.pids_of(mount, name)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return "limefs" not in names

    def after_harm(self, mount):
        super().after_harm(mount)
        until(lambda: not mount.pids(), TIMEOUT)

    def test_large(self):
        """Steps that are large enough to be forwarded."""
        self.run_crashes("large")


@limetest.needs_fuse
class PowerFailsRanks(PowerFails, KilledRanks):
    """Acknowledged data that the ranks wrote is on the disk after a power failure."""

    HARMS = ("power",)
    SHORT = ("large",)
    MIB = 600


@limetest.needs_fuse
class AfterCrash(writelib.TestCase):
    """The state of a container after a crash, and the messages about it."""

    def mount_write_and_kill(self, source, write):
        """Mounts, calls write(mount), which returns an open descriptor, and kills the daemon."""
        mount = self.rw(source)
        fd = write(mount)
        os.kill(mount.pid, signal.SIGKILL)
        mount.wait_for_end()
        with contextlib.suppress(OSError):
            os.close(fd)
        mount.stop()

    def unfinished(self, mount):
        fd = os.open(mount.join("new"), os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
        writelib.write_all(fd, b"n" * 100000)
        return fd

    def growing(self, mount):
        fd = os.open(mount.join("log"), os.O_WRONLY | os.O_APPEND | os.O_DIRECT)
        writelib.write_all(fd, MORE)
        os.fsync(fd)
        writelib.write_all(fd, limetest.container([("fake", b"f" * 100)]) * 100)
        return fd

    def test_readers_before_it_is_repaired(self):
        for write, items in ((self.unfinished, ITEMS),
                             (self.growing, [*ITEMS[:2], ("log", b"log" + MORE)])):
            path = self.write("c.lime", limetest.container(ITEMS))
            self.mount_write_and_kill(path, write)
            with self.subTest(write.__name__), limetest.Mount(path) as mount:
                self.assertEqual(len(os.listdir(mount)), len(items))
                for i, (type, data) in enumerate(items, 1):
                    self.assertBytes(read(mount.join(f"{i:03d}-{type}")), data, type)
                    self.assertBytes(self.run_ok(["lime", "cat", path, str(i)]), data, type)
            done = limetest.run(["lime", "check", path])
            self.assertEqual(done.returncode, 1, done)
            copy = self.write("copy.lime", read(path))
            # The data behind "log" looks like whole records: repair counts them as lost.
            done = limetest.run(["lime", "repair", copy])
            self.assertEqual(done.returncode, write == self.growing, done)
            self.assertRegex(done.stdout, b"cut")
            self.assertHolds(copy, items)
            mount = self.rw(path)
            self.assertRegex(mount.words, "cut")
            mount.stop()
            self.assertHolds(path, items)

    def test_no_message_if_nothing_is_recovered(self):
        path = self.write("c.lime", limetest.container(ITEMS))

        def complete(mount):
            put(mount.join("new"), b"x" * 1000)
            fd = os.open(mount.join("new"), os.O_RDWR)
            os.pwrite(fd, b"y" * 10, 0)
            os.fsync(fd)
            return fd

        self.mount_write_and_kill(path, complete)
        self.assertClean(path)
        before = read(path)
        mount = self.rw(path)
        self.assertEqual(mount.words, "")
        mount.stop()
        self.assertBytes(read(path), before)

    def test_closed_empty_record(self):
        """An empty record is in the container as soon as close returns."""
        for i in range(15):
            path = self.write("c.lime", limetest.container(ITEMS))
            mount = self.rw(path)
            name, pid = mount.join("data" if i % 2 else "new"), mount.pid
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
            os.kill(pid, signal.SIGKILL)
            mount.wait_for_end()
            mount.stop()
            self.assertHolds(path, [ITEMS[0], ("data", b""), ITEMS[2]] if i % 2
                             else [*ITEMS, ("new", b"")])

    def test_open_when_the_mount_ends(self):
        """A record that is open when the mount ends is not committed, whether its data is in the
        kernel's cache or, with O_DIRECT, in the container."""
        for number in (signal.SIGTERM, signal.SIGINT, None):
            for name in ("new", "data"):
                path = self.write("c.lime", limetest.container(ITEMS))
                mount, writer = self.rw(path), writelib.Remote(self)
                fd = writer.open(mount.join(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                                 | (os.O_DIRECT if number == signal.SIGINT else 0))
                writer.write(fd, b"a" * 100000)
                if number is None:
                    self.run_ok(["umount", "-l", mount.path])
                    writer.kill()
                else:
                    os.kill(mount.pid, number)
                mount.wait_for_end()
                writer.end()
                mount.stop()
                self.run_ok(["lime", "repair", path])
                want = ITEMS
                if number is None:  # the end of the writer closed it, so all its data is there
                    want = [*ITEMS, ("new", b"a" * 100000)] if name == "new" else \
                        [ITEMS[0], ("data", b"a" * 100000), ITEMS[2]]
                self.assertHolds(path, want)

    def test_log_names_uncommitted_records(self):
        """The log names each record whose change was not committed."""
        path = self.write("c.lime", limetest.container(ITEMS))
        daemon, writer = limetest.Foreground(path, "-o", "rw"), writelib.Remote(self)
        writer.open(daemon.join("data"), os.O_WRONLY | os.O_TRUNC)
        writer.open(daemon.join("new"), os.O_WRONLY | os.O_CREAT)
        daemon.end()
        writer.end()
        self.assertIn("record 2 keeps its old data: ", daemon.words())
        self.assertIn("record 4 (new) was not finished: removing it", daemon.words())
        self.assertHolds(path, ITEMS)

    def test_leftover_temporary_file_is_removed(self):
        """A temporary file from a crash during a rewrite of the container is removed."""
        path = self.write("c.lime", limetest.container(ITEMS))
        leftover = os.path.join(os.path.dirname(path), ".c.lime.limefs-new")
        put(leftover, b"half")
        with self.rw(path) as mount:
            put(mount.join("xlf-info"), b"another length")
        self.assertHolds(path, [("xlf-info", b"another length"), *ITEMS[1:]])
        self.assertEqual(os.listdir(os.path.dirname(path)), ["c.lime"])

    def test_writers_get_an_error(self):
        path = self.write("c.lime", limetest.container(ITEMS))
        mount = self.rw(path)
        fds = [os.open(mount.join("new"), os.O_WRONLY | os.O_CREAT),
               os.open(mount.join("data"), os.O_RDWR)]
        for fd in fds:
            os.pwrite(fd, b"x" * 5000, 0)
        os.kill(mount.pid, signal.SIGKILL)
        mount.wait_for_end()
        gone = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)
        for fd in fds:
            with contextlib.suppress(OSError):  # the kernel's cache may accept it
                os.pwrite(fd, b"x", 0)
            self.assertErrno(gone, os.fsync, fd)
            self.assertErrno(gone, os.close, fd)
        mount.stop()
        self.run_ok(["lime", "repair", path])
        found = self.assertClean(path)
        self.assertEqual([found[0].data, found[2].data], [ITEMS[0][1], ITEMS[2][1]])


class Judge(limetest.TestCase):
    """crashlog.Log.judge() accepts right containers and rejects wrong ones."""

    OLD = [(b"a", b"old" * 100), (b"b", b"b" * 50)]

    def judge(self, lines, good, bad):
        """judge() accepts each of `good` after these lines and rejects each of `bad`."""
        path = self.write("log", b"".join(json.dumps({"time": 0, **line}).encode() + b"\n"
                                          for line in lines))
        for found in good:
            crashlog.Log(path, self.OLD).judge(found)
        for found in bad:
            with self.subTest(lines=lines, found=found):
                self.assertRaises(crashlog.Wrong, crashlog.Log(path, self.OLD).judge, found)

    def test_each_kind(self):
        a, b = self.OLD
        self.judge([], [self.OLD], [[a], [a, b, (b"c", b"")], [a, (b"b", b"c" * 50)],
                                    [a, (b"c", b"b" * 50)]])
        remove = [{"do": "remove"}, {"done": True}]
        self.judge(remove[:1], [self.OLD, [a]], [])
        self.judge(remove, [], [self.OLD])
        self.judge([*remove, {"do": "name", "i": 0, "type": "x"}, {"done": True}], [], [[a]])
        data = crashlog.tag_bytes("x", 100)
        appended = [[a, b, (b"c", data[:n])] for n in (59, 60, 61, 100)]
        steps = [{"do": "append", "type": "c", "tag": "x", "n": 100}, {"to": 60}, {"tried": 60},
                 {"kept": 60}, {"to": 100}, {"tried": 100}, {"done": True}]
        self.judge(steps[:2], [self.OLD], [appended[1]])
        self.judge(steps[:3], [self.OLD, appended[1]], [appended[2], [a, b, (b"c", bytes(60))]])
        self.judge(steps[:5], [appended[1]], [self.OLD, appended[0]])
        self.judge(steps, [appended[3]], [appended[1]])
        for n in (300, 77):
            data = crashlog.tag_bytes("x", n)
            steps = [{"do": "renew", "i": 0, "tag": "x", "n": n}, {"to": n}, {"tried": n},
                     {"kept": n}]
            new, mixed = [(b"a", data), b], [(b"a", data[:30] + a[1][30:]), b]
            self.judge(steps[:2], [self.OLD], [new])
            self.judge(steps[:3], [new], [mixed])
            self.judge(steps, [], [self.OLD])
        patched = [(b"a", a[1][:20] + crashlog.tag_bytes("x", 10) + a[1][30:]), b]
        steps = [{"do": "patch", "i": 0}, {"part": [20, "x", 10]}, {"tried": 0}, {"kept": 0}]
        self.judge(steps[:2], [self.OLD, patched], [[(b"a", b"x" * 300), b]])
        self.judge(steps, [patched], [self.OLD])


if __name__ == "__main__":
    limetest.main()
