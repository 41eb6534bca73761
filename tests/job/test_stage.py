"""lime stage through a job: the ranks copy, or lime copies without them if they fail."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import jobtest
import limetest
from limetest import read

MIB = 1 << 20


class Stage(jobtest.TestCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.tempdir(), self.tempdir()
        self.files = {}
        for i, size in enumerate((5 * MIB + 17, 33 * MIB, 60 * MIB - 1)):
            name = f"c{i}"
            data = limetest.container([("a", b"x" * 77),
                                       ("data", random.Random(i).randbytes(size))])
            with open(os.path.join(self.source, name), "wb") as file:
                file.write(data)
            self.files[name] = data
        self.sources = [os.path.join(self.source, name) for name in self.files]

    def command(self, job, *options):
        return [limetest.program("lime"), "stage", "--json", "--job", getattr(job, "path", job),
                *options, *self.sources, self.target]

    def assertStaged(self, done):
        self.assertEqual(done.returncode, 0, done)
        for line in done.stdout.splitlines():
            self.assertEqual(json.loads(line)["action"], "staged")
        self.assertEqual(set(os.listdir(self.target)), set(self.files))
        for name, data in self.files.items():
            path = os.path.join(self.target, name)
            self.assertTrue(read(path) == data, name)
            os.unlink(path)

    def test_by_ranks(self):
        job = self.job(2)
        for options in ([], ["--checkpoint", "8M"], ["-j", "1", "--verify-target"]):
            done = limetest.run(self.command(job, *options))
            self.assertNotIn(b"warning", done.stderr)
            self.assertStaged(done)
        status = job.client().status()
        self.assertEqual(status["bytes_written"],
                         3 * sum(map(len, self.files.values())))
        job.stop()

    def test_no_job(self):
        done = limetest.run(self.command("/nonexistent"))
        self.assertIn(b"without the job", done.stderr)
        self.assertStaged(done)

    def start(self, job, *options):
        return subprocess.Popen(self.command(job, *options), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finish(self, process):
        out, errors = process.communicate(timeout=100 * limetest.SLOWNESS)
        self.assertStaged(subprocess.CompletedProcess([], process.returncode, out, errors))
        return errors

    def test_job_that_dies(self):
        for _ in range(10 if limetest.STRESS else 2):
            job = self.job(2)
            process = self.start(job, "--checkpoint", "8M")
            time.sleep(random.random() * 0.2)
            for pid in job.rank_pids():
                with contextlib.suppress(ProcessLookupError):  # it has ended with another rank
                    os.kill(pid, signal.SIGKILL)
            self.finish(process)
            job._give_up()

    def test_job_that_hangs(self):
        job = self.job(2)
        pid = job.rank_pids_by_rank()[1]
        with jobtest.stopped(pid):
            errors = self.finish(self.start(job, "--job-timeout", "1"))
            self.assertIn(b"does not answer", errors)

    def test_interrupted(self):
        job = self.job(2)
        kills = 30 if limetest.STRESS else 4
        for _ in range(kills):
            process = self.start(job, "--checkpoint", "4M")
            time.sleep(random.random() * 0.3)
            process.kill()
            process.communicate()
            for name in os.listdir(self.target):
                if not name.startswith("."):
                    path = os.path.join(self.target, name)
                    self.assertTrue(read(path) == self.files[name], name)
        done = limetest.run(self.command(job))
        self.assertEqual(done.returncode, 0, done)
        for name, data in self.files.items():
            self.assertTrue(read(os.path.join(self.target, name)) == data, name)
        self.assertEqual(set(os.listdir(self.target)), set(self.files))
        job.stop()


if __name__ == "__main__":
    limetest.main()
