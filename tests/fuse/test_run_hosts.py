"""limefs-run in a mount whose job runs on several hosts: their bytes are the right ones, and a host
that is lost costs none."""

import os
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


class Faults(TestCase, test_hosts.Faults):
    """All that happens to the mount's own readers there."""

    timeout = test_ranks.TIMEOUT

    def harmed(self, mount, harm):
        """`harm` is done when a reader is in the middle of a record."""
        self.cold(mount)
        process = test_run_job.TestCase.reader(self, mount.join("data-0"))
        got = test_run_job.TestCase.ask(process, 20)
        harm()
        blocks = len(self.data[0]) // test_run_job.BLOCK + 1
        got += test_run_job.TestCase.ask(process, blocks - 20)
        self.assertRecord(got, 0)
        _, by_job, self.through = test_run_job.TestCase.report(self, process)
        self.assertGreater(by_job, test_run_job.LEAST)

    def comes_back(self, mount):
        """For the next program, too."""
        super().comes_back(mount)
        self.harmed(mount, lambda: None)

    def test_link_down(self):
        """The reader goes on when job_timeout is past."""
        super().test_link_down()
        self.assertGreater(self.through, 0)


if __name__ == "__main__":
    limetest.main()
