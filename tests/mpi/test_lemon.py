"""Lemon on 1, 2, 3, 4 and 6 ranks: lattices against an oracle, and the API call by call."""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest

MPIRUN = os.environ.get("MPIRUN") or "mpirun"
RANKS = (1, 2, 3, 4, 6)


def mpirun(ranks, program, *args, options=(), timeout=250):
    """Runs a program of tests/mpi. Open MPI's own leaks and idle spinning are left out."""
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    oversubscribe = [] if "mpich" in MPIRUN else ["--oversubscribe"]
    return limetest.run([MPIRUN, *oversubscribe, *options, "-n", str(ranks),
                         os.path.join(limetest.B, "mpi", program), *args],
                        env=env, timeout=timeout)


def has_mpi():
    return shutil.which(MPIRUN) and os.path.exists(os.path.join(limetest.B, "mpi", "api"))


class Lemon(limetest.TestCase):
    def setUp(self):
        if not has_mpi():
            self.skipTest("needs MPI")

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
                repetitions = "200" if limetest.STRESS else "10"
                self.passes(mpirun(ranks, "lattice", path, repetitions), 10)

    def test_lattices_with_romio(self):
        if "mpich" in MPIRUN:
            self.skipTest("MPICH has nothing else")
        for ranks in (3, 4):
            with self.subTest(ranks=ranks):
                path = os.path.join(self.tempdir(), "file")
                self.passes(mpirun(ranks, "lattice", path,
                                   options=["--mca", "io", "romio321"]), 10)

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
