"""mpitest - what the tests of Lemon share: the MPI that is used, and mpirun.

Environment: MPIRUN (default mpirun; with mpirun.mpich, the programs must have been built by
mpicc.mpich), and what limetest says.
"""

import atexit
import os
import re
import shutil
import tempfile

import limetest

MPIRUN = os.environ.get("MPIRUN") or "mpirun"
MPICH = "mpich" in MPIRUN
MPICC = os.environ.get("MPICC") or ("mpicc.mpich" if MPICH else "mpicc")
# One rank, an odd number, and a grid of two dimensions; make stress adds the others.
RANKS = (1, 2, 3, 4, 6) if limetest.STRESS else (1, 3, 4)
# What Open MPI 5 says of a network that has no address that it likes; lines of several ranks mix.
NETWORK = (re.compile(r"\[\S+\]\[\[\d+,\d+\],\d+\]\[\S*btl_tcp_proc\.c\S*\] ?"),
           re.compile(r"Unable to find reachable pairing between local and remote interfaces\n"))


def without_noise(words):
    for noise in NETWORK:
        words = noise.sub("", words)
    return words


def environment(more=None):
    """Open MPI's own leaks and idle spinning are left out; nor does it bind ranks to processors:
    it binds those of one and of two to the first ones, which other tests have, too."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
            **(more or {})}


_sessions = None  # a directory for those of all jobs


def environment_of_one(more=None):
    """The same, for one of several jobs that begin and end at the same time: what Open MPI keeps
    of a job is in a directory that the last one removes, while another one is about to use it.
    Without mpirun, a process starts no daemon of Open MPI's."""
    global _sessions
    if not _sessions:
        _sessions = tempfile.mkdtemp(prefix="mpi-")
        atexit.register(shutil.rmtree, _sessions, ignore_errors=True)
    return {**environment(more), "OMPI_MCA_ess_singleton_isolated": "1",
            "TMPDIR": tempfile.mkdtemp(prefix="", dir=_sessions)}


def mpirun(ranks, program, *args, options=(), under=(), timeout=1100, env=None, cwd=None):
    """Runs a program: one of tests/mpi by its name, any other by its path; `under` another."""
    oversubscribe = [] if MPICH else ["--oversubscribe"]
    return limetest.run([MPIRUN, *oversubscribe, *options, "-n", str(ranks), *under,
                         os.path.join(limetest.B, "mpi", program), *args],
                        env=environment_of_one(env), cwd=cwd, timeout=timeout)


def flip(path, offset, bits=1):
    """Changes bits of a byte of the file; from its end if the offset is negative. Returns what the
    byte was."""
    with open(path, "r+b") as file:
        place = file.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ bits]))
    return byte


def has_mpi():
    return shutil.which(MPIRUN) and os.path.exists(os.path.join(limetest.B, "mpi", "api"))


def need_job(test):
    """Skips it without what starts the job of a mount."""
    if not (shutil.which(MPIRUN) and os.path.exists(limetest.program("limefs-io"))):
        test.skipTest("needs MPI")


class TestCase(limetest.TestCase):
    def setUp(self):
        if not has_mpi():
            self.skipTest("needs MPI")

    def tap(self, ranks, program, *args, romio=False, **kw):
        """Runs a program of tests/mpi (mpirun()); all that it says must be good. romio: with that
        component for MPI-IO, not the one that Open MPI takes itself."""
        if romio and MPICH:
            self.skipTest("MPICH has nothing else")
        if romio:
            kw["options"] = ["--mca", "io", "^ompio"]
        done = mpirun(ranks, program, *map(str, args), **kw)
        words = done.stderr.decode(errors="replace")[-2000:]
        lines = done.stdout.decode(errors="replace").splitlines()
        if lines and lines[-1].startswith("1..0 # SKIP "):
            self.skipTest(lines[-1][len("1..0 # SKIP "):])
        bad = [line for line in lines if line.startswith(("not ok", "#"))]
        self.assertEqual(bad, [], words)
        self.assertEqual(done.returncode, 0, words)
        self.assertEqual(lines[-1:], [f"1..{len(lines) - 1}"], words)
        self.assertGreater(len(lines), 1)

    def on(self, all_ranks, program, *args, directory=None, **kw):
        """The same on each number of ranks, with a file of its own."""
        for ranks in all_ranks:
            with self.subTest(program=program, ranks=ranks):
                self.tap(ranks, program, os.path.join(directory or self.tempdir(), "file"), *args,
                         **kw)

    def tmpfs(self, *options):
        """The directory of a file system of its own."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        directory = self.tempdir()
        limetest.run(["mount", "-t", "tmpfs", *options, "tmpfs", directory], check=True)
        self.addCleanup(limetest.run, ["umount", "-l", directory])
        return directory
