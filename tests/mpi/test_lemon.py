"""Lemon on several numbers of ranks: lattices against an oracle, and the API call by call."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import MPICH, RANKS, TestCase, mpirun


class Lemon(TestCase):
    def passes(self, done, at_least):
        lines = done.stdout.decode(errors="replace").splitlines()
        bad = [line for line in lines if line.startswith(("not ok", "#"))]
        self.assertEqual(bad, [], done.stderr.decode(errors="replace")[-2000:])
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace")[-2000:])
        self.assertGreaterEqual(sum(line.startswith("ok") for line in lines), at_least)

    def test_api(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                path = os.path.join(self.tempdir(), "file")
                self.passes(mpirun(ranks, "api", path), 100)

    def test_lattices(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                path = os.path.join(self.tempdir(), "file")
                repetitions = ["200"] if limetest.STRESS else []
                self.passes(mpirun(ranks, "lattice", path, *repetitions), 10)

    def test_lattices_with_romio(self):
        if MPICH:
            self.skipTest("MPICH has nothing else")
        for ranks in (3, 4) if limetest.STRESS else (3,):
            with self.subTest(ranks=ranks):
                path = os.path.join(self.tempdir(), "file")
                self.passes(mpirun(ranks, "lattice", path, "10" if limetest.STRESS else "0",
                                   options=["--mca", "io", "^ompio"]), 9)

    def test_a_full_disk(self):
        """Every rank gets the error, none hangs; blocking or not."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        where = self.tempdir()
        limetest.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", where], check=True)
        self.addCleanup(limetest.run, ["umount", where])
        for ranks in (1, 3, 4):
            with self.subTest(ranks=ranks):
                self.passes(mpirun(ranks, "full", os.path.join(where, "file")), 4)


if __name__ == "__main__":
    limetest.main()
