#!/usr/bin/env python3
"""Slurm on three hosts (tests/lib/slurm.py) runs docs/examples/slurm: jobs that end by themselves,
by scancel, by the time limit and by failure of a node leave nothing."""

import hashlib
import os
import random
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jobtest
import limetest
import mpitest
import slurm

EXAMPLES = os.path.join(limetest.REPO, "docs", "examples", "slurm")
MOUNT, STEPS = (os.path.join(EXAMPLES, name) for name in ("mount.sh", "steps.sh"))
RECORD = 40_000_000 + 4321
WAIT_S = 60 * limetest.SLOWNESS

# Reads all records past the kernel's cache until the job serves, then the status.
READER = f"""
import hashlib, json, os, subprocess, sys, time
def status():
    shown = subprocess.run(["{limetest.program('limefs')}", "--status", "--json", point],
                           stdout=subprocess.PIPE, check=True)
    return json.loads(shown.stdout)
point = os.environ["RUNS"]
end = time.monotonic() + {WAIT_S}
while time.monotonic() < end and status()["job"]["state"] != "serving":
    time.sleep(0.05)
digest = hashlib.md5()
for name in sorted(os.listdir(point)):
    with open(point + "/" + name + "/data", "rb", buffering=0) as file:
        while part := file.read(1 << 20):
            digest.update(part)
job = status()
print("read", digest.hexdigest(), job["job"]["ranks"], job["job"]["hosts"],
      job["forwarded_bytes"] > 0, flush=True)
""".encode()


@limetest.needs_fuse
class SlurmTestCase(limetest.TestCase):
    names = ("alpha", "beta", "gamma")
    node_timeout = 300

    def setUp(self):
        if slurm.why_not():
            self.skipTest(slurm.why_not())
        mpitest.need_job(self)
        self.directory = self.tempdir()
        self.data = random.Random(3).randbytes(RECORD)
        self.runs = [self.make_runs(i) for i in range(2)]
        self.reader = self.write("reader", f"#!{sys.executable}\n".encode() + READER)
        self.waiter = self.write("waiter", b"#!/bin/sh\n" + self.reader.encode() +
                                 b"; exec sleep 1000 <$RUNS/conf.0/data\n")
        self.deaf = self.write("deaf", b"#!/bin/sh\ntrap '' TERM; sleep 1000 <$RUNS/conf.0/data\n")
        for path in self.reader, self.waiter, self.deaf:
            os.chmod(path, 0o755)
        self.cluster = slurm.Cluster(*self.names, node_timeout=self.node_timeout)
        self.addCleanup(self.cluster.stop)

    def make_runs(self, i):
        runs = os.path.join(self.directory, f"runs{i}")
        os.mkdir(runs)
        for j in range(2):
            limetest.put(f"{runs}/conf.{j}", limetest.container([("data", self.data)]))
        return runs

    def submit_mount(self, command, *options):
        return self.cluster.submit([MOUNT, self.runs[0], *command], *options)

    def submit_steps(self, command, *options):
        return self.cluster.submit([STEPS, command, *self.runs], *options)

    def has_read(self, job, times=1, nodes=3):
        """Waits until commands of the job have read the mounts, with limefs-io on these nodes."""
        def words():
            return re.findall("^read .*", self.cluster.output(job), re.M)
        limetest._wait(lambda: len(words()) >= times or self.cluster.has_ended(job), WAIT_S, 0.1)
        self.assertEqual(len(words()), times, self.cluster.output(job) + self.cluster.logs())
        digest = hashlib.md5(self.data * 2).hexdigest()
        for line in words():
            self.assertEqual(line.split()[1:], [digest, str(nodes), str(nodes), "True"],
                             self.cluster.output(job))

    def assertNothingLeft(self, *, names=None, timeout=jobtest.END_S):
        """The hosts have no mounts, processes or files of a job."""
        def left():
            return {name: found for name in names or self.names
                    if any(found := self.cluster.left(name))}
        limetest._wait(lambda: not left(), timeout, 0.1)
        self.assertEqual(left(), {})


class Ends(SlurmTestCase):
    def test_ends(self):
        """The examples end by themselves, also before limefs-io has started; the exit status is the
        command's. One job runs after the other."""
        jobs = [self.submit_mount([self.reader], "--exclusive"),
                self.submit_mount(["sh", "-c", "exit 3"], "--exclusive"),
                self.submit_steps(self.reader, "--exclusive"),
                self.submit_steps("true", "--exclusive")]
        states = [self.cluster.wait(job) for job in jobs]
        self.assertEqual(states, ["COMPLETED 0:0", "FAILED 3:0", "COMPLETED 0:0", "COMPLETED 0:0"],
                         [self.cluster.output(job) for job in jobs])
        self.has_read(jobs[0])
        self.has_read(jobs[2], 2)
        self.assertNothingLeft()

    def test_scancel(self):
        for submit, n in (lambda: self.submit_mount([self.waiter]), 1), \
                         (lambda: self.submit_steps(self.waiter), 2):
            job = submit()
            self.has_read(job, n)
            self.cluster.command("scancel", job)
            self.assertRegex(self.cluster.wait(job), "^CANCELLED")
            self.assertNothingLeft()

    def test_scancel_at_random(self):
        dice = random.Random()
        for _ in range(100 if limetest.STRESS else 4):
            job = dice.choice([lambda: self.submit_mount([self.waiter]),
                               lambda: self.submit_steps(self.waiter)])()
            time.sleep(dice.random() * 5)
            self.cluster.command("scancel", job)
            self.assertRegex(self.cluster.wait(job), "^CANCELLED")
            self.assertNothingLeft()

    def test_time_limit(self):
        jobs = [self.submit_mount([self.waiter], "--time=1"),
                self.submit_mount([self.deaf], "--time=1"),
                self.submit_steps(self.waiter, "--time=1")]
        states = [self.cluster.wait(job, 180).split()[0] for job in jobs]
        self.assertEqual(states, ["TIMEOUT"] * 3, [self.cluster.output(job) for job in jobs])
        self.assertIn("unmounted; the command has not ended 15 s after SIGTERM",
                      self.cluster.output(jobs[1]))
        self.assertNothingLeft()

    def test_memory(self):
        """The window is memory of the job. If it exceeds --mem, OverMemoryKill sends SIGKILL to all
        processes at once: limefs -u removes the dead mount, and the next limefs the other files."""
        job = self.submit_mount([self.reader], "--mem=600")
        self.assertEqual(self.cluster.wait(job), "COMPLETED 0:0", self.cluster.output(job))
        self.has_read(job)
        job = self.submit_mount([self.waiter], "--mem=50")
        self.assertRegex(self.cluster.wait(job), "^(OUT_OF_MEMORY|FAILED|CANCELLED)",
                         self.cluster.output(job))
        self.assertIn("memory limit", self.cluster.output(job))
        mount = f"/dev/shm/runs-{job}"
        self.cluster.on("alpha", f"limefs -u {mount}; rmdir {mount}", check=False)
        job = self.submit_mount([self.reader])
        self.assertEqual(self.cluster.wait(job), "COMPLETED 0:0", self.cluster.output(job))
        self.assertNothingLeft()


class NodeFails(SlurmTestCase):
    node_timeout = 10

    def end_of(self, job):
        self.assertRegex(self.cluster.wait(job), "^NODE_FAIL", self.cluster.output(job))

    def test_node_of_a_rank(self):
        job = self.submit_mount([self.waiter])
        self.has_read(job)
        self.cluster.power_off("gamma")
        self.end_of(job)
        self.assertNothingLeft(names=["alpha", "beta"])

    def test_node_of_the_mount(self):
        for submit, times in (lambda *options: self.submit_mount([self.waiter], *options), 1), \
                             (lambda *options: self.submit_steps(self.waiter, *options), 2):
            if times == 2:
                self.cluster.boot("beta")
            job = submit("--nodelist=beta,gamma", "--nodes=2")
            self.has_read(job, times, nodes=2)
            self.cluster.power_off("beta")
            self.end_of(job)
            self.assertNothingLeft(names=["alpha", "gamma"])

    def test_network(self):
        """The job ends on both sides of the gap."""
        job = self.submit_mount([self.waiter])
        self.has_read(job)
        self.cluster.link("gamma", "down")
        self.end_of(job)
        self.assertNothingLeft(names=["alpha", "beta"])
        self.cluster.link("gamma", "up")
        self.assertNothingLeft(timeout=120)


if __name__ == "__main__":
    limetest.main()
