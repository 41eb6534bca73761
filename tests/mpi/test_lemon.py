"""Lemon on several numbers of ranks: lattices against an oracle, the API call by call, faults of
MPI-IO on one rank, and several threads on each rank."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from limetest import STRESS
from mpitest import MPICH, RANKS, TestCase


class Lemon(TestCase):
    def test_api(self):
        self.on(RANKS, "api")

    def test_lattices(self):
        if STRESS:
            self.on(RANKS, "lattice", 200)
        else:
            self.on((1,), "lattice")  # every mapping of three and four dimensions
            self.on((4,), "lattice", 1)
            self.on((3,), "lattice", 0)

    def test_lattices_with_romio(self):
        self.on((3, 4) if STRESS else (3,), "lattice", 10 if STRESS else 1, romio=True)

    def test_a_full_disk(self):
        """Every rank gets the error and none hangs, blocking or not."""
        self.on((1, 3, 4), "full", directory=self.tmpfs("-o", "size=1m"))


class Faults(TestCase):
    """If MPI-IO fails on one rank, all ranks get the same error, and none waits for ever."""

    every = ["all"] if STRESS else []

    def test_every_call_of_every_rank(self):
        self.on(RANKS if STRESS else (1, 3), "faults", *self.every)

    def test_with_threads(self):
        self.on(RANKS if STRESS else (3,), "faults", "threads", *self.every)

    def test_with_romio(self):
        self.on(RANKS if STRESS else (4,), "faults", *(self.every or ["one"]), romio=True)


class Threads(TestCase):
    def threads(self, who_opens, few, **kw):
        self.on(RANKS if STRESS else few, "threads", 100 if STRESS else 6, who_opens, **kw)

    def test_files_of_the_main_thread(self):
        self.threads("main", (1, 3))

    def test_files_of_each_thread(self):
        if MPICH:
            self.skipTest("ROMIO's ranks deadlock: each opens another file and holds the lock "
                          "that the other one's open needs")
        self.threads("each", (1, 3))

    def test_with_romio(self):
        self.threads("main", (3,), romio=True)


if __name__ == "__main__":
    limetest.main()
