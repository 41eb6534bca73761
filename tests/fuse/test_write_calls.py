"""Each call that the daemon or a rank makes on a container fails once while records are appended,
grown, cut, patched, rewritten, renamed and removed. The container then has all acknowledged data,
each other step has returned an error, other records are unchanged, and the mount still works.
`make check` draws which calls fail and how; `make stress` tests all; LIMETEST_SEED=N repeats a run.
"""

import contextlib
import errno
import os
import random
import subprocess
import sys
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import crashlog
import faults
import limetest
import mpitest
import test_ranks
import writelib
from writelib import put, read, records, whole_records

ITEMS = [("xlf-info", b"x" * 77), ("data", bytes(200000)), ("log", b"log" * 1001)]
STEPS = ["append", "grow", "patch", "append", "name", "renew_same", "allocate", "renew_inner",
         "message", "cut", "resize", "grow", "remove", "append", "renew_last", "patch"]
LARGE_STEPS = ["append_big", "patch_large", "renew_last_big", "grow", "append_big", "patch_large",
               "renew_big", "remove"]
CODES = [errno.EIO] * 3 + [errno.ENOSPC, errno.EDQUOT, errno.EINTR, errno.ENOMEM]
BY_HALF = ("pwrite", "pread", "copy_file_range")
AFTER = (b"after", b"a" * 12345)
SEED = int(os.environ.get("LIMETEST_SEED") or random.randrange(1 << 30))


def read_all(path):
    """Ignores an error of close(): the kernel reports a failed write-back of the file's times to
    the next close, even a reader's."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 20), b""))
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


class Round:
    """One mount with one failing call."""

    def __init__(self, test, fault, process, seed):
        self.test, self.fault, self.process, self.seed = test, fault, process, seed
        self.directory = test.tempdir()
        self.path = put(os.path.join(self.directory, "c.lime"), limetest.container(ITEMS))
        self.before = [(type.encode(), data) for type, data in ITEMS]
        self.faults = faults.Faults(self.directory)
        self.log, self.counts, self.mounted = None, {}, None

    def arm(self):
        if self.fault:
            self.faults.arm(self.process, *self.fault)
        else:
            self.faults.count(self.process)

    def mount(self):
        """Mounts the container; if the fault makes that fail with a message, mounts it again."""
        try:
            mount = self.test.start(self.path, self.faults)
        except AssertionError as error:
            if not self.faults.struck or "limefs: exit 1" not in str(error):
                raise
            self.faults.disarm()
            self.test.assertRegex(str(error), "limefs: .*: .*: ")
            self.test.assertHolds(self.path, ITEMS)
            mount = self.test.start(self.path, self.faults)
        return mount

    def write(self, mount):
        path = put(os.path.join(self.test.tempdir(), "log"), b"")
        done = limetest.run([sys.executable, crashlog.__file__, "--once", mount, path, self.seed,
                             *self.test.STEPS], timeout=self.test.TIMEOUT)
        self.counts = self.faults.counts()
        self.log = crashlog.Log(path, self.before)
        self.test.assertEqual(done.returncode, 0, done.stderr.decode()[-1000:])
        if self.log.error and not self.faults.struck:
            raise crashlog.Wrong("an error, though nothing has failed")

    def check_mount(self, mount):
        """The daemon still runs, shows the expected records, and accepts a new one."""
        self.faults.disarm()
        put(mount.join(AFTER[0].decode()), AFTER[1])
        found = whole_records(read(self.path))[0]
        names = sorted(os.listdir(mount))
        self.test.assertEqual(len(names), len(found))
        changed = self.log.open.get("i", -2) if self.log.open else None
        for i, (name, record) in enumerate(zip(names, found)):
            if i != (changed + len(found) if changed == -2 else changed):
                self.test.assertBytes(read_all(mount.join(name)), record.data, name)

    def check_result(self):
        """After the unmount, the file, another mount and lime all have the expected records."""
        if not self.test.is_clean(self.path):
            self.test.recover(self.path)
        found = [(r.type, r.data) for r in self.test.assertClean(self.path)]
        self.test.assertEqual(found[-1], AFTER)
        self.log.judge(found[:-1])
        with writelib.Mount(self.path) as mount:
            for i, (name, (_, data)) in enumerate(zip(sorted(os.listdir(mount)), found), 1):
                self.test.assertBytes(read(mount.join(name)), data, name)
                self.test.assertBytes(self.test.run_ok(["lime", "cat", self.path, str(i)]), data)
        self.test.assertEqual(os.listdir(self.directory), ["c.lime"])

    def run(self):
        if self.test.MOUNT_TOO:
            self.arm()
        mount = self.mounted = self.mount()
        if not self.test.MOUNT_TOO:
            self.arm()
        self.write(mount)
        self.check_mount(mount)
        mount.stop()
        self.check_result()


class Calls:
    """Mixin of both TestCases."""

    PROCESSES = (faults.DAEMON,)
    STEPS = STEPS
    MOUNT_TOO = True  # the fault may also hit the mount itself
    TIMEOUT = 60
    DRAWN = 12

    def start(self, path, control):
        return self.rw(path, env=control.environment())

    def is_clean(self, path):
        with contextlib.suppress(limetest.BadContainer):
            records(read(path))
            return limetest.run(["lime", "check", path]).returncode == 0
        return False

    def recover(self, path):
        if random.randrange(2):
            self.run_ok(["lime", "repair", path])
        else:
            self.rw(path).stop()

    def run_round(self, process, fault, seed):
        """Returns the number of times each call was made, whether the fault struck, and the error
        that the writer got."""
        round = Round(self, fault, process, seed)
        try:
            round.run()
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            text = (f"LIMETEST_SEED={SEED}: {fault} of {process}, seed {seed}: {error}; "
                    f"{round.log}; {traceback.format_exc(limit=-1)}")
            self.failed.append(text)
            self.assertLess(len(self.failed), 20)
            if round.mounted:
                round.mounted._give_up()
            print(f"# {text}".replace("\n", "\n# "), flush=True)
            return {}, 0, None
        return round.counts, round.faults.struck, round.log.error

    def fault_kinds(self, call, dice):
        """Ways in which a call can fail: (errno, how, lasts)."""
        kinds = [(dice.choice(CODES), faults.FAIL, False)]
        if limetest.STRESS:
            kinds.append((errno.EIO, faults.FAIL, True))
        elif dice.randrange(3) == 0:
            kinds = [(errno.EIO, faults.FAIL, True)]
        if call in BY_HALF and (limetest.STRESS or dice.randrange(2)):
            kinds += [(0, faults.SHORT, False), (errno.EIO, faults.TORN, False)]
        return kinds if limetest.STRESS else [dice.choice(kinds)]

    def test_each_call(self):
        dice = random.Random(SEED)
        reported = silent = 0
        self.failed = []
        for process in self.PROCESSES:
            seed = f"{dice.randrange(1 << 30)}"
            counts, _, error = self.run_round(process, None, seed)
            self.assertIsNone(error)
            self.assertEqual(self.failed, [])
            self.assertIn("fsync", counts, "fault.so is not preloaded")
            faults_to_do = [(call, nth) for call in counts for nth in range(1, counts[call] + 1)]
            if not limetest.STRESS:  # all calls are equally likely
                calls = [dice.choice(sorted(counts)) for _ in range(self.DRAWN)]
                faults_to_do = [(call, dice.randrange(counts[call]) + 1) for call in calls]
            for call, nth in faults_to_do:
                for code, how, lasts in self.fault_kinds(call, dice):
                    fault = (call, nth, code, how, lasts)
                    _, struck, error = self.run_round(process, fault, seed)
                    reported += bool(struck and error)
                    silent += bool(struck and not error)
            name = f"rank {process - 1}" if process else "the daemon"
            print(f"# {self.id()}: {name}: {counts}")
        print(f"# {self.id()}: LIMETEST_SEED={SEED}: {reported} failures were reported, {silent} "
              "were recovered from or did no harm")
        self.assertEqual(self.failed, [])


@limetest.needs_fuse
class Daemon(Calls, writelib.TestCase):
    """A daemon without a job."""


@limetest.needs_fuse
class Ranks(Calls, writelib.TestCase):
    """A daemon whose job writes for it: the daemon or one rank fails."""

    PROCESSES = (1, 2, faults.DAEMON)
    STEPS = LARGE_STEPS
    MOUNT_TOO = False
    TIMEOUT = 120
    DRAWN = 2

    def setUp(self):
        mpitest.need_job(self)

    def start(self, path, control):
        return test_ranks.serving(self.rw(
            path, "ranks=2", "job_timeout=5", "extent=1M", "window=16M", "stripe=256K",
            "forward_from=512K", env=control.environment(mpitest.environment()), timeout=60))


if __name__ == "__main__":
    limetest.main()
