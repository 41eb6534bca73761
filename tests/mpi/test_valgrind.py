"""Lemon under valgrind: no invalid access, no use of uninitialized bytes, no leak."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import shutil

import limetest
from mpitest import MPICH, TestCase

HERE = os.path.dirname(os.path.abspath(__file__))


def suppressions_of_open_mpi():
    """Returns Open MPI's own suppression file, or None."""
    if not shutil.which("ompi_info"):
        return None
    out = limetest.run(["ompi_info", "--parsable", "--path", "pkgdatadir"]).stdout.decode()
    path = os.path.join(out.strip().split(":")[-1], "openmpi-valgrind.supp")
    return path if os.path.exists(path) else None


@limetest.check_all
class Valgrind(TestCase):
    def setUp(self):
        super().setUp()
        if limetest.SANITIZED:
            self.skipTest("sanitized programs do not run under valgrind")
        if not shutil.which("valgrind"):
            self.skipTest("needs valgrind")
        if MPICH or not suppressions_of_open_mpi():
            self.skipTest("needs Open MPI's openmpi-valgrind.supp")

    def good(self, program, *args):
        valgrind = ["valgrind", "-q", "--error-exitcode=98", "--num-callers=30",
                    "--leak-check=full", "--show-leak-kinds=definite",
                    "--errors-for-leak-kinds=definite",
                    f"--suppressions={suppressions_of_open_mpi()}",
                    f"--suppressions={os.path.join(HERE, 'valgrind.supp')}"]
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                path = os.path.join(self.tempdir(), "file")
                self.tap(ranks, program, path, *args, under=valgrind)

    def test_api(self):
        self.good("api")

    def test_lattices(self):
        self.good("lattice", 0)

    def test_more(self):
        if not limetest.STRESS:
            self.skipTest("a long run")
        self.good("faults")
        self.good("hints")
        self.good("checksum")


if __name__ == "__main__":
    limetest.main()
