"""lime-checkpoint run: the same trajectory on any number of ranks, and after any kill."""

import contextlib
import glob
import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import mpitest
from mpitest import RANKS, TestCase, mpirun

PROGRAM = os.path.join(limetest.BIN, "lime-checkpoint")
# 1000 particles in 4 x 4 x 4 cells.
SMALL = ["--particles", "1000"]
# The bound on a particle's energy that --help and the manual state.
BOUND = 0.002
KILLS = 200 if limetest.STRESS else 5


def content(path):
    """Returns a checkpoint's state of the run and its particles, sorted."""
    found = {r.name: r.data for r in limetest.records_of(path)}
    data = found["lemon-cells-data"]
    assert len(data) % 64 == 0, len(data)
    return (found["lime-checkpoint-run"],
            sorted(data[i:i + 64] for i in range(0, len(data), 64)))


def energies(out):
    """Returns {step: line} of the energies; the last line may be incomplete."""
    return {int(found[1]): found[0] for found in
            re.finditer(r"^step +(\d+)  time .*change \S+$", out.decode(errors="replace"), re.M)}


class Job:
    """`mpirun lime-checkpoint run`; a mark identifies its processes."""

    def __init__(self, ranks, *args):
        self.mark = f"LIMETEST_JOB={uuid.uuid4().hex}"
        name, value = self.mark.split("=")
        oversubscribe = [] if mpitest.MPICH else ["--oversubscribe"]
        self.process = subprocess.Popen(
            [mpitest.MPIRUN, *oversubscribe, "-n", str(ranks), PROGRAM, "run", *args],
            env=mpitest.environment_of_one({name: value}), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.out = b""

    def line(self):
        """Returns the next line of energies, or None at the end."""
        line = self.process.stdout.readline()
        self.out += line
        return line or None

    def kill(self):
        """Kills all processes in random order; returns their standard error."""
        if self.process.stdout.closed:
            return b""
        while True:
            found = limetest._processes_with(self.mark)
            random.shuffle(found)
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not found and self.process.poll() is not None:
                break
        self.out += self.process.stdout.read()
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return errors


class Run(TestCase):
    def setUp(self):
        super().setUp()
        self.where = self.tempdir()
        self.prefix = os.path.join(self.where, "ck")

    def path(self, name):
        return os.path.join(self.where, name)

    def run_on(self, ranks, *args, status=0, **kw):
        done = mpirun(ranks, PROGRAM, "run", *args, **kw)
        self.assertEqual(done.returncode, status,
                         done.stderr.decode(errors="replace")[-2000:])
        return done

    def shown(self):
        """Returns the numbers of the checkpoints, in the order of ls."""
        return [int(name.split(".")[-2]) for name in
                sorted(glob.glob(glob.escape(self.prefix) + ".*"))]

    def parts(self):
        return [name for name in os.listdir(self.where) if name.endswith(".part")]

    def whole(self, steps, *args):
        """Runs without interruption or series; returns its last state and its energies."""
        path = self.path(f"whole-{len(os.listdir(self.where))}")
        done = self.run_on(1, *SMALL, "--steps", str(steps), "--print", "5", "--out", path,
                           *args)
        return content(path), energies(done.stdout)

    # ---- physics ----

    def test_any_number_of_ranks(self):
        """The same, bit for bit, also with one rank or 3 cells in a dimension."""
        for n, several in ("1000", (1, 3)), ("500", (4, 6)), ("2001", (1, 4)):
            first = None
            for ranks in RANKS if limetest.STRESS else several:
                with self.subTest(particles=n, ranks=ranks):
                    path = self.path(f"{n}-{ranks}")
                    done = self.run_on(ranks, "--particles", n, "--steps", "120", "--out", path)
                    this = content(path), energies(done.stdout)
                    self.assertEqual(len(this[0][1]), int(n))
                    self.assertEqual(len(this[1]), 13)
                    first = first or this
                    self.assertEqual(this, first)

    def test_energy(self):
        """Energy is conserved within the stated bound; a wrong force would violate it."""
        text = limetest.run([PROGRAM, "run", "--help"],
                            env=mpitest.environment_of_one()).stdout.decode()
        self.assertIn(f"{BOUND:g}", text)
        spreads = []
        for dt in ("0.004", "0.008"):  # the first is the default
            done = self.run_on(1, *SMALL, "--dt", dt, "--steps",
                               "5000" if limetest.STRESS else "600")
            found = energies(done.stdout)
            totals = [float(line.split()[9]) for line in found.values()]
            kinetic = [float(line.split()[7]) for line in found.values()]
            spreads.append(max(totals) - min(totals))
            self.assertGreater(max(kinetic) - min(kinetic), 20 * BOUND)
        self.assertLess(spreads[0], BOUND)
        self.assertTrue(3 < spreads[1] / spreads[0] < 5, spreads)  # of second order

    def test_refused(self):
        for message, args in (
                ("box is too small", ["--particles", "100"]),
                ("--continue requires --series", ["--continue"]),
                ("choose a smaller --dt", [*SMALL, "--dt", "1"])):
            with self.subTest(message=message):
                done = mpirun(2, PROGRAM, "run", *args)
                self.assertIn(message, done.stderr.decode())
                self.assertIn(done.returncode, (1, 2))

    # ---- the series ----

    def test_continued(self):
        """A run continues on other ranks, in several steps; repeated options must agree."""
        want, lines = self.whole(90)
        found = {}
        for ranks, steps in ((2, 30), (3, 60), (1, 90)):
            done = self.run_on(ranks, *SMALL, "--steps", str(steps), "--print", "5", "--series",
                               self.prefix, "--every", "10", "--continue", "--out",
                               self.path(f"at-{steps}"))
            for step, line in energies(done.stdout).items():
                self.assertEqual(found.setdefault(step, line), line)
        self.assertEqual(content(self.path("at-90")), want)
        self.assertEqual(found, lines)
        for option, value in (("--dt", "0.003"), ("--cut-off", "2"), ("--density", "0.71"),
                              ("--particles", "1001"), ("--temperature", "1.5"), ("--seed", "2")):
            done = self.run_on(1, "--steps", "100", "--series", self.prefix, "--continue",
                               option, value, status=1)
            self.assertIn(f"different {option}", done.stderr.decode())
        done = self.run_on(2, "--steps", "10", "--series", self.prefix, "--continue", status=1)
        self.assertIn("already at step 90", done.stderr.decode())
        done = self.run_on(2, *SMALL, "--series", self.prefix, status=1)
        self.assertIn("--continue continues", done.stderr.decode())
        self.assertEqual(self.shown(), [80, 90])

    def test_damaged(self):
        """The run continues from the previous checkpoint; if all are damaged, none changes."""
        want, _ = self.whole(60)

        def cut(path):
            os.truncate(path, os.path.getsize(path) // 2)

        self.run_on(2, *SMALL, "--steps", "40", "--series", self.prefix, "--every", "10", "--keep",
                    "2")
        good = {}
        for path in glob.glob(self.prefix + ".*"):
            good[path] = limetest.read(path)
        for name, damage in (("data", lambda p: mpitest.flip(p, -10)),
                             ("record", lambda p: mpitest.flip(p, 160)), ("cut", cut),
                             ("empty", lambda p: os.truncate(p, 0))):
            with self.subTest(damage=name):
                for path in glob.glob(self.prefix + ".*"):
                    os.remove(path)
                for path, data in good.items():
                    limetest.put(path, data)
                damage(self.prefix + ".000000000040.lime")
                out = self.path("out-" + name)
                done = self.run_on(3, "--steps", "60", "--series", self.prefix, "--every", "15",
                                   "--keep", "2", "--continue", "--out", out)
                errors = done.stderr.decode()
                self.assertIn("000000000040.lime: skipped", errors)
                self.assertIn("continued from step 30", errors)
                self.assertEqual(content(out), want)
                self.assertEqual(self.shown(), [45, 60])
        for path in glob.glob(self.prefix + ".*"):
            os.truncate(path, 100)
        done = self.run_on(2, "--steps", "70", "--series", self.prefix, "--continue", status=1)
        self.assertIn("no checkpoint of the series can be read", done.stderr.decode())
        self.assertEqual(self.shown(), [45, 60])

    def test_thin_gas(self):
        """Memory grows with the number of particles, not with the empty space between them."""
        gas = ["--particles", "500", "--density", "1e-9", "--steps", "2"]
        outs = [self.run_on(ranks, *gas).stdout for ranks in (1, 3)]
        self.assertEqual(sorted(energies(outs[0])), [0, 2])
        self.assertEqual(energies(outs[0]), energies(outs[1]))

    def test_two_runs(self):
        """A second run of an open series is an error."""
        job = Job(2, *SMALL, "--steps", "1M", "--series", self.prefix, "--every", "10")
        self.addCleanup(job.kill)
        self.assertIsNotNone(job.line())
        done = self.run_on(2, "--series", self.prefix, "--continue", status=1)
        self.assertIn("another run has this series open", done.stderr.decode())
        for _ in range(5):
            self.assertIsNotNone(job.line())
        job.kill()
        self.run_on(2, "--steps", str(max(self.shown() or [0]) + 10), "--series", self.prefix,
                    "--continue", *([] if self.shown() else SMALL))

    def test_a_full_disk(self):
        """A full disk is an error, and the previous checkpoint stays complete."""
        small, (want, _) = self.tmpfs("-o", "size=300k"), self.whole(60)
        prefix = os.path.join(small, "ck")
        for options in ([], ["--no-overlap"]):
            with self.subTest(options=options):
                done = self.run_on(2, *SMALL, "--steps", "60", "--series", prefix, "--every",
                                   "10", "--keep", "9", *options, status=1)
                self.assertRegex(done.stderr.decode(), "lime-checkpoint: .*(disk full|No space)")
                names = sorted(os.listdir(small))
                self.assertFalse([n for n in names if n.endswith(".part")])
                self.assertGreater(len(names), 1)
                out = self.path("out" + "".join(options))
                self.run_on(3, "--steps", "60", "--series", prefix, "--every", "1k",
                            "--continue", "--out", out)
                self.assertEqual(content(out), want)
                for name in names:
                    os.remove(os.path.join(small, name))

    # ---- kills ----

    def attempt(self, ranks, steps, found, kills):
        """Continues the run, and kills it if `kills`. Returns whether it ended regularly."""
        args = [*SMALL, "--steps", str(steps), "--print", "5", "--series", self.prefix,
                "--every", "10", "--keep", "2", "--continue", "--force", "--out",
                self.path("out")]
        job = Job(ranks, *args)
        try:
            writing = random.random() < 0.5
            left = random.randint(0, 25)
            while kills and (writing or left) and job.process.poll() is None:
                if left or not writing:
                    left -= 1
                    if job.line() is None:
                        break
                elif self.parts():
                    break
            if not kills:
                while job.line():
                    pass
            elif random.random() < 0.5:
                end = time.monotonic() + random.random() * 0.02
                while time.monotonic() < end:
                    pass
        finally:
            if not kills:
                job.process.wait()
            errors = job.kill()
        ended = job.process.returncode == 0
        if not ended:
            self.assertIn(job.process.returncode, (-signal.SIGKILL, 137), errors.decode())
        for step, line in energies(job.out).items():
            self.assertTrue(found[step].startswith(line), (line, found[step]))
        return ended

    def check_checkpoints(self):
        """Each checkpoint is complete; there is at most one more than requested."""
        self.assertLessEqual(len(self.shown()), 3)
        for name in glob.glob(self.prefix + ".*"):
            run, particles = content(name)
            self.assertEqual(len(particles), 1000)
            self.assertIn(f"step {int(name.split('.')[-2])}\n".encode(), run)

    def test_kills(self):
        """Kills at random moments, half of them while a checkpoint is being written."""
        steps = 150
        want, lines = self.whole(steps)
        kills = ends = left = begun = 0
        while kills < KILLS or ends == 0:
            begun += 1
            ended = self.attempt(random.choice((1, 2, 3, 4)), steps, lines,
                                 kills < KILLS and begun % 8)
            kills += not ended
            left += len(self.parts()) > 0
            self.check_checkpoints()
            if ended:
                ends += 1
                self.assertEqual(content(self.path("out")), want)
                self.assertEqual(self.parts(), [])
                os.remove(self.path("out"))
                for name in glob.glob(self.prefix + ".*"):
                    os.remove(name)
        print(f"# {kills} kills, {left} of them left an unfinished checkpoint, {ends} runs "
              f"ended, all as the uninterrupted one")


class Series(TestCase):
    def test_calls(self):
        several = RANKS if limetest.STRESS else (1, 3)
        # They mostly wait for a lock.
        limetest.at_once(*((self.tap, ranks, "series", self.tempdir()) for ranks in several))

    def test_with_romio(self):
        if not limetest.STRESS:
            self.skipTest("a long run")
        self.tap(3, "series", self.tempdir(), romio=True)


if __name__ == "__main__":
    limetest.main()
