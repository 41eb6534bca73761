"""limefs-run in a mount whose job runs on several hosts: their bytes are the right ones, and a host
that is lost costs none."""

import os
import signal
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "lib"), os.path.join(TESTS, "job"),
                os.path.dirname(os.path.abspath(__file__))]
import test_run_job  # first: it may go on in another Python
import jobtest
import limetest
import test_hosts
import test_ranks


class TestCase(test_hosts.MountTestCase):
    timeout = test_ranks.PATIENCE

    def setUp(self):
        super().setUp()
        test_run_job.settled(self.container)

    def cold(self, mount):
        test_ranks.serving(mount)
        test_run_job.cold(self.container)
        return mount

    def assertRecord(self, got, i):
        self.assertEqual(len(got), len(self.data[i]))
        self.assertTrue(got == self.data[i], f"record {i}")


class Ranks(TestCase):
    names = ("alpha", "beta", "gamma")

    def test_own_jobs(self):
        for where in ("alpha:1,beta:2", "alpha:1,beta:1,gamma:1"):
            with self.subTest(where), self.mount(where) as mount:
                for i, command in enumerate((["cat"], ["dd", "bs=70000"])):
                    self.cold(mount)
                    name = mount.join(f"data-{i}")
                    done = test_run_job.test_run.run(
                        [*command, f"if={name}" if command[0] == "dd" else name], timeout=300)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertRecord(done.stdout, i)
                    self.assertGreater(done.by_job, test_run_job.LEAST, done.stderr)
                    self.assertEqual(done.through, 0, done.stderr)
            self.assertNothingLeft()


class Faults(TestCase):
    def harmed(self, mount, harm):
        """`harm` is done when a reader is in the middle of a record; what was read by the job."""
        self.cold(mount)
        process = test_run_job.TestCase.reader(self, mount.join("data-0"))
        got = test_run_job.TestCase.ask(process, 20)
        harm()
        blocks = len(self.data[0]) // test_run_job.BLOCK + 1
        got += test_run_job.TestCase.ask(process, blocks - 20)
        self.assertRecord(got, 0)
        _, by_job, through = test_run_job.TestCase.report(self, process)
        self.assertGreater(by_job, test_run_job.LEAST)
        return through

    def kill(self):
        os.kill(test_hosts.Faults.there(self, "limefs-io")[0], signal.SIGKILL)

    def test_killed(self):
        """A rank on the other host; and the next program is served again."""
        with self.mount("alpha:1,beta:2") as mount:
            self.harmed(mount, self.kill)
            self.comes_back(mount)
            self.harmed(mount, lambda: None)
        self.assertNothingLeft()

    def test_link_down(self):
        """Nobody is told: the reader goes on when job_timeout is past."""
        self.timeout = test_ranks.TIMEOUT
        with self.mount("alpha:1,beta:2") as mount:
            self.assertGreater(self.harmed(mount, lambda: self.hosts.link("beta", "down")), 0)
            self.hosts.link("beta", "up")
        self.assertNothingLeft(40)

    def test_power_off(self):
        with self.mount("alpha:1,beta:2") as mount:
            self.harmed(mount, lambda: self.hosts.off("beta"))


if __name__ == "__main__":
    limetest.main()
