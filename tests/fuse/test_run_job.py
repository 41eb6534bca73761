"""limefs-run in a mount with a job: the mount reads records that are not in memory."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import limetest
import test_ranks
import test_run
from fakejob import FakeJob

RECORD = 20_000_000 + 4321


def supported(path):
    """The kernel tells what is in memory (Linux 6.5)."""
    with limetest.Mount(path, opts="job=/nonexistent/socket") as mount:
        return test_run.run(["cat", mount.join("data")]).through == 0


@limetest.needs_fuse
class Job(limetest.TestCase):
    def setUp(self):
        self.data = test_run.words(1, RECORD)
        self.path = self.write("c.lime", limetest.container([("data", self.data)]))
        test_run.settled(self.path)
        if not supported(self.path):
            self.skipTest("needs cachestat(2)")

    def cold(self, at=0):
        with open(self.path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), at, 0, os.POSIX_FADV_DONTNEED)

    def read(self, mount, **kw):
        """True if the container was read, and not the mount."""
        done = test_run.run(["cat", mount.join("data")], **kw)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout == self.data, done.stderr)
        self.assertIn((done.round, done.through), ((RECORD, 0), (0, RECORD)))
        return done.through == 0

    def test_what_is_in_memory(self):
        socket = os.path.join(self.tempdir(), "socket")
        with FakeJob(socket) as job, \
                limetest.Mount(self.path, opts=[f"job={socket}", "forward_from=512K"]) as mount:
            test_ranks.serving(mount)
            self.assertTrue(self.read(mount))
            self.assertEqual(job.reads, [])
            self.cold()
            self.assertFalse(self.read(mount))
            self.assertNotEqual(job.reads, [])

    def test_a_part_of_it_is_not(self):
        with limetest.Mount(self.path, opts="job=/nonexistent/socket") as mount:
            self.cold(RECORD // 2)
            self.assertFalse(self.read(mount))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_users_container(self):
        """The kernel tells its owner alone, and who may write to it."""
        os.chmod(os.path.dirname(self.path), 0o755)
        os.chmod(self.path, 0o644)
        test_run.settled(self.path)
        point = self.tempdir()
        os.chmod(point, 0o755)
        with limetest.Mount(self.path, point,
                            opts=["job=/nonexistent/socket", "allow_other"]) as mount:
            self.assertFalse(self.read(mount, user=12345, group=12345, extra_groups=[]))


if __name__ == "__main__":
    limetest.main()
