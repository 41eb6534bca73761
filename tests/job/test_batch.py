#!/usr/bin/env python3
"""One Slurm job on two hosts runs docs/examples/slurm/mount.sh; tests/cluster has more."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", name)
                for name in ("lib", "cluster")]
import limetest
import test_slurm


class Batch(test_slurm.SlurmTestCase):
    names = ("alpha", "beta")

    def test_mount(self):
        job = self.submit_mount(["sh", "-c", f"{self.reader}; exit 3"], "--nodes=2")
        self.assertEqual(self.cluster.wait(job), "FAILED 3:0", self.cluster.output(job))
        self.has_read(job, nodes=2)
        self.assertNothingLeft()


if __name__ == "__main__":
    limetest.main()
