"""Lemon when MPI-IO fails on one rank: all ranks are told the same, and none waits for ever."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import MPICH, RANKS, TestCase


class Faults(TestCase):
    def faults(self, ranks, *args, **kw):
        with self.subTest(ranks=ranks):
            every = ["all"] if limetest.STRESS else []
            self.tap(ranks, "faults", os.path.join(self.tempdir(), "file"), *args, *every, **kw)

    def test_every_call_of_every_rank(self):
        for ranks in RANKS if limetest.STRESS else (1, 3):
            self.faults(ranks)

    def test_with_threads(self):
        for ranks in RANKS if limetest.STRESS else (3,):
            self.faults(ranks, "threads")

    def test_with_romio(self):
        if MPICH:
            self.skipTest("MPICH has nothing else")
        for ranks in RANKS if limetest.STRESS else (4,):
            self.faults(ranks, options=["--mca", "io", "^ompio"])


if __name__ == "__main__":
    limetest.main()
