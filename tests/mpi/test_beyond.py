"""What Lemon has beyond the paper, on 1, 2, 3, 4 and 6 ranks."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import MPICH, RANKS, TestCase, mpirun


class Beyond(TestCase):
    def passes(self, ranks, program, *args, options=()):
        done = mpirun(ranks, program, *args, options=options)
        lines = done.stdout.decode(errors="replace").splitlines()
        bad = [line for line in lines if line.startswith(("not ok", "#"))]
        self.assertEqual(bad, [], done.stderr.decode(errors="replace")[-2000:])
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace")[-2000:])
        self.assertEqual(lines[-1], f"1..{len(lines) - 1}")

    def test_hints(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                self.passes(ranks, "beyond", os.path.join(self.tempdir(), "file"))

    def test_hints_with_romio(self):
        if MPICH:
            self.skipTest("MPICH has nothing else")
        self.passes(3, "beyond", os.path.join(self.tempdir(), "file"),
                    options=["--mca", "io", "romio321"])


if __name__ == "__main__":
    limetest.main()
