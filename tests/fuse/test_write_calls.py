"""Each call that the daemon, or a rank, makes on a container fails once, while records are
appended, grown, cut, written in place and anew, renamed and removed: what was acknowledged is
there, what was not has given an error, all else is what it was, and the mount goes on.

Which call fails, and how, is drawn; `make stress` goes through all of them. LIMETEST_SEED=N
repeats it.
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
    """The next close of a file, also a reader's, gets what the kernel has met when it wanted to
    write back its times."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 20), b""))
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


class Round:
    """One mount, with one thing that fails."""

    def __init__(self, test, fault, who, seed):
        self.test, self.fault, self.who, self.seed = test, fault, who, seed
        self.directory = test.tempdir()
        self.path = put(os.path.join(self.directory, "c.lime"), limetest.container(ITEMS))
        self.before = [(type.encode(), data) for type, data in ITEMS]
        self.faults = faults.Faults(self.directory)
        self.log, self.counts, self.mounted = None, {}, None

    def arm(self):
        if self.fault:
            self.faults.arm(self.who, *self.fault)
        else:
            self.faults.count(self.who)

    def mount(self):
        """Or None: it was refused, with words."""
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

    def goes_on(self, mount):
        """The daemon is there, shows what it should, and can be written to."""
        self.faults.disarm()
        put(mount.join(AFTER[0].decode()), AFTER[1])
        found = whole_records(read(self.path))[0]
        names = sorted(os.listdir(mount))
        self.test.assertEqual(len(names), len(found))
        changed = self.log.open.get("i", -2) if self.log.open else None
        for i, (name, record) in enumerate(zip(names, found)):
            if i != (changed + len(found) if changed == -2 else changed):
                self.test.assertBytes(read_all(mount.join(name)), record.data, name)

    def judge(self):
        """What is there in the end, for everybody."""
        if not self.test.is_clean(self.path):
            self.test.bring_back(self.path)
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
        self.goes_on(mount)
        mount.stop()
        self.judge()


class Calls:
    """What both classes share; they are TestCases, too."""

    WHO = (faults.DAEMON,)
    STEPS = STEPS
    MOUNT_TOO = True  # mounting may fail, too
    TIMEOUT = 60
    DRAWN = 12

    def start(self, path, control):
        return self.rw(path, env=control.environment())

    def is_clean(self, path):
        with contextlib.suppress(limetest.BadContainer):
            records(read(path))
            return limetest.run(["lime", "check", path]).returncode == 0
        return False

    def bring_back(self, path):
        if random.randrange(2):
            self.run_ok(["lime", "repair", path])
        else:
            self.rw(path).stop()

    def one(self, who, fault, seed):
        """How often each call was made, and whether the fault came about."""
        round = Round(self, fault, who, seed)
        try:
            round.run()
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            words = (f"LIMETEST_SEED={SEED}: {fault} of {who}, seed {seed}: {error}; {round.log}; "
                     f"{traceback.format_exc(limit=-1)}")
            self.failed.append(words)
            self.assertLess(len(self.failed), 20)
            if round.mounted:
                round.mounted._give_up()
            print(f"# {words}".replace("\n", "\n# "), flush=True)
            return {}, 0, None
        return round.counts, round.faults.struck, round.log.error

    def kinds_of(self, call, dice):
        """What may happen to a call: (errno, how, whether it lasts)."""
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
        told = silent = 0
        self.failed = []
        for who in self.WHO:
            seed = f"{dice.randrange(1 << 30)}"
            counts, _, error = self.one(who, None, seed)
            self.assertIsNone(error)
            self.assertEqual(self.failed, [])
            self.assertIn("fsync", counts, "nothing is preloaded")
            faults_to_do = [(call, nth) for call in counts for nth in range(1, counts[call] + 1)]
            if not limetest.STRESS:  # each call is as likely as any other, however often it is made
                calls = [dice.choice(sorted(counts)) for _ in range(self.DRAWN)]
                faults_to_do = [(call, dice.randrange(counts[call]) + 1) for call in calls]
            for call, nth in faults_to_do:
                for code, how, lasts in self.kinds_of(call, dice):
                    fault = (call, nth, code, how, lasts)
                    _, struck, error = self.one(who, fault, seed)
                    told += bool(struck and error)
                    silent += bool(struck and not error)
            print(f"# {self.id()}: {'rank %d' % (who - 1) if who else 'the daemon'}: {counts}")
        print(f"# {self.id()}: LIMETEST_SEED={SEED}: {told} failures were told, {silent} were "
              "made good, or did no harm")
        self.assertEqual(self.failed, [])


@limetest.needs_fuse
class Daemon(Calls, writelib.TestCase):
    """Alone."""


@limetest.needs_fuse
class Ranks(Calls, writelib.TestCase):
    """With a job that writes for it: the daemon, or one rank."""

    WHO = (1, 2, faults.DAEMON)
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
