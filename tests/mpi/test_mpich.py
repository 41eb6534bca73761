"""Lemon with MPICH in addition to Open MPI, built into a separate directory, $B-mpich."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import shutil

HERE_ALREADY = "mpich" in (os.environ.get("MPIRUN") or "")
os.environ["MPIRUN"] = "mpirun.mpich"
import benchlib
import limetest
from mpitest import RANKS, TestCase

PROGRAMS = ("api", "lattice", "faults", "threads", "checksum", "cells", "series")


def build():
    limetest.B += "-mpich"
    # A relative path, as a user types it: to make, build-mpich and /.../build-mpich differ.
    where = limetest.B
    if where.startswith(limetest.REPO + os.sep):
        where = os.path.relpath(where, limetest.REPO)
    # Without the variables of the make that runs this test.
    env = {name: value for name, value in os.environ.items()
           if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "B", "SAN", "MPICC")}
    limetest.run(["make", "-j2", "-C", limetest.REPO, f"B={where}", "MPICC=mpicc.mpich",
                  f"SAN={os.environ.get('SAN', '')}",
                  os.path.join(where, "bin", "lime-bench"),
                  *(os.path.join(where, "mpi", name) for name in PROGRAMS)],
                 timeout=250, check=True, env=env)


@limetest.check_all
class Mpich(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.missing = [name for name in ("mpicc.mpich", "mpirun.mpich") if not shutil.which(name)]
        if not cls.missing and not HERE_ALREADY:
            build()

    def setUp(self):
        if self.missing:
            self.skipTest("needs " + " and ".join(self.missing))
        if HERE_ALREADY:
            self.skipTest("all tests run with MPICH")

    def test_api(self):
        self.on(RANKS, "api")

    def test_lattices(self):
        self.on(RANKS if limetest.STRESS else (1, 2, 3), "lattice",
                200 if limetest.STRESS else 10)

    def test_faults(self):
        self.on(RANKS if limetest.STRESS else (1, 3), "faults")

    def test_checksums(self):
        self.on(RANKS if limetest.STRESS else (1, 3), "checksum")

    def test_threads(self):
        self.on(RANKS if limetest.STRESS else (1, 3), "threads", 5, "main")

    def test_cells(self):
        directory = self.tempdir()
        self.tap(3, "cells", "write", directory, "usual")
        self.tap(2, "cells", "read", directory, "usual")

    def test_series(self):
        for ranks in RANKS if limetest.STRESS else (1, 3):
            with self.subTest(ranks=ranks):
                self.tap(ranks, "series", self.tempdir())

    def test_bench(self):
        """lime-bench runs the back ends that MPICH has, and skips the others."""
        case = benchlib.TestCase()
        case.bench = os.path.join(limetest.B, "bin", "lime-bench")
        backends = ["mpiio", "subarray", "lime", "gather", "posix", "hdf5"]
        self.assertIn("not Open MPI", case.absent()["hdf5"])
        for ranks in RANKS if limetest.STRESS else (1, 2, 4):
            for pattern in benchlib.PATTERNS:
                with self.subTest(ranks=ranks, pattern=pattern):
                    result = case.check_all(ranks, pattern, backends=backends)
                    self.assertEqual(result["system"]["mpi_io"], "romio")
        self.assertRegex(result["system"]["mpi"], r"^MPICH \d")
        case.check_all(4, "lattice", "--independent", backends=["mpiio", "posix", "limefs"])


if __name__ == "__main__":
    limetest.main()
