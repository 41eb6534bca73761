"""README.md: each command in it runs and prints the output in it."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import mpitest
import numpython


@limetest.needs_fuse
class Readme(limetest.TestCase):
    def setUp(self):
        mpitest.need_job(self)
        if not numpython.python_with("numpy"):
            self.skipTest("needs numpy")

    def test_commands_and_outputs(self):
        done = limetest.run([os.path.join(limetest.REPO, "scripts", "readme"), "--check"],
                            timeout=300)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode())
        self.assertGreaterEqual(int(done.stdout.split()[1]), 10)


if __name__ == "__main__":
    limetest.main()
