"""mpitest - run MPI programs and Lemon's tests under mpirun.

Environment: MPIRUN (default mpirun; mpirun.mpich requires programs built with mpicc.mpich), and
the variables of limetest.
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
# Open MPI 5's warning about a network without a usable address; lines of several ranks mix.
NETWORK = (re.compile(r"\[\S+\]\[\[\d+,\d+\],\d+\]\[\S*btl_tcp_proc\.c\S*\] ?"),
           re.compile(r"(?:Unable )?to find reachable pairing between local and remote "
                      r"interfaces\n"))


def without_noise(text):
    for noise in NETWORK:
        text = noise.sub("", text)
    return text


def environment(more=None):
    """Returns an environment without reports of Open MPI's leaks, without idle spinning, and
    without binding, which would put small jobs of all tests on the first processors."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
            **(more or {})}


_sessions = None  # the directory for the session directories of all jobs


def environment_of_one(more=None):
    """Returns environment() for one of several jobs that begin and end at the same time. They can't
    share a session directory: Open MPI removes it with the last job while another one is about to
    use it. Without mpirun, a process starts no daemon of Open MPI."""
    global _sessions
    if not _sessions:
        _sessions = tempfile.mkdtemp(prefix="mpi-")
        atexit.register(shutil.rmtree, _sessions, ignore_errors=True)
    return {**environment(more), "OMPI_MCA_ess_singleton_isolated": "1",
            "TMPDIR": tempfile.mkdtemp(prefix="", dir=_sessions)}


def mpirun(ranks, program, *args, options=(), under=(), timeout=1100, env=None, cwd=None):
    """Runs a program, one of tests/mpi by name or any other by path; `under`: another program."""
    oversubscribe = [] if MPICH else ["--oversubscribe"]
    return limetest.run([MPIRUN, *oversubscribe, *options, "-n", str(ranks), *under,
                         os.path.join(limetest.B, "mpi", program), *args],
                        env=environment_of_one(env), cwd=cwd, timeout=timeout)


def flip(path, offset, bits=1):
    """Flips bits of a byte of the file; a negative offset counts from its end. Returns the old
    byte."""
    with open(path, "r+b") as file:
        place = file.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ bits]))
    return byte


def has_mpi():
    return shutil.which(MPIRUN) and os.path.exists(os.path.join(limetest.B, "mpi", "api"))


def need_job(test):
    """Skips the test if limefs-io can't run."""
    if not (shutil.which(MPIRUN) and os.path.exists(limetest.program("limefs-io"))):
        test.skipTest("needs MPI")


class TestCase(limetest.TestCase):
    def setUp(self):
        if not has_mpi():
            self.skipTest("needs MPI")

    def tap(self, ranks, program, *args, romio=False, **kw):
        """Runs a program of tests/mpi (mpirun()); all its TAP lines must be ok. romio: use that
        component for MPI-IO instead of Open MPI's default."""
        if romio and MPICH:
            self.skipTest("MPICH has nothing else")
        if romio:
            kw["options"] = ["--mca", "io", "^ompio"]
        done = mpirun(ranks, program, *map(str, args), **kw)
        text = done.stderr.decode(errors="replace")[-2000:]
        lines = done.stdout.decode(errors="replace").splitlines()
        if lines and lines[-1].startswith("1..0 # SKIP "):
            self.skipTest(lines[-1][len("1..0 # SKIP "):])
        bad = [line for line in lines if line.startswith(("not ok", "#"))]
        self.assertEqual(bad, [], text)
        self.assertEqual(done.returncode, 0, text)
        self.assertEqual(lines[-1:], [f"1..{len(lines) - 1}"], text)
        self.assertGreater(len(lines), 1)

    def on(self, all_ranks, program, *args, directory=None, **kw):
        """Runs tap() on each number of ranks, with a new file."""
        for ranks in all_ranks:
            with self.subTest(program=program, ranks=ranks):
                self.tap(ranks, program, os.path.join(directory or self.tempdir(), "file"), *args,
                         **kw)

    def tmpfs(self, *options):
        """Mounts a tmpfs; returns its directory."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        directory = self.tempdir()
        limetest.run(["mount", "-t", "tmpfs", *options, "tmpfs", directory], check=True)
        self.addCleanup(limetest.run, ["umount", "-l", directory])
        return directory
