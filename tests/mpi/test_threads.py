"""Lemon in several threads of each rank at once."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import MPICH, RANKS, TestCase


class Threads(TestCase):
    def threads(self, who_opens, *options, few=(1, 3)):
        rounds = 100 if limetest.STRESS else 6
        for ranks in RANKS if limetest.STRESS else few:
            with self.subTest(ranks=ranks):
                self.tap(ranks, "threads", os.path.join(self.tempdir(), "file"), rounds,
                         who_opens, options=options)

    def test_files_of_the_main_thread(self):
        self.threads("main")

    def test_files_of_each_thread(self):
        if MPICH:
            self.skipTest("ROMIO's ranks wait for each other for ever: each is in the open of "
                          "another file, and keeps the lock that the other one's open needs")
        self.threads("each")

    def test_with_romio(self):
        if MPICH:
            self.skipTest("MPICH has nothing else")
        self.threads("main", "--mca", "io", "^ompio", few=(3,))


if __name__ == "__main__":
    limetest.main()
