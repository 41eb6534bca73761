"""Lemon beyond 2 GiB: in one call, and in the file."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import RANKS, TestCase

GIB = 1 << 30
SHM = "/dev/shm"  # a disk would take minutes


def available_memory():
    with open("/proc/meminfo", encoding="ascii") as info:
        kib = [line.split()[1] for line in info if line.startswith("MemAvailable:")]
    return 1024 * int(kib[0]) if kib else 0


def free_space(path):
    if not os.path.isdir(path):
        return 0
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


class Big(TestCase):
    def file_in_memory(self):
        path = os.path.join(SHM, f"lemon-big-{os.getpid()}")
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        return path

    def sparse(self, ranks, what, nbytes):
        """Less than 1 GiB of memory is used."""
        if min(available_memory(), free_space(SHM)) < 2 * GIB:
            self.skipTest(f"needs 2 GiB of memory and of {SHM}")
        self.tap(ranks, "big", self.file_in_memory(), what, nbytes, "sparse")

    def test_far_away_in_the_file(self):
        self.on(RANKS, "big", "far")

    def test_data(self):
        """The old library reported success having moved 100 bytes."""
        self.sparse(1, "data", 4 * GIB + 100)

    # Of 3 GiB on 2 ranks the first has 2.

    def test_lattice(self):
        self.sparse(2, "direct", 3 * GIB + 20000)

    def test_in_full(self):
        """The bytes are in memory (data: of each rank), or in the file, which is in memory too, but
        not in both at once."""
        if not limetest.STRESS:
            self.skipTest("a long run")
        for ranks, what, nbytes in ((1, "data", 4 * GIB + 100), (2, "data", 2 * GIB + 100),
                                    (1, "direct", 2 * GIB), (2, "direct", 3 * GIB + 20000),
                                    (2, "movers", 3 * GIB + 20000)):
            with self.subTest(ranks=ranks, what=what):
                need = nbytes * (ranks if what == "data" else 1) + GIB
                if min(available_memory(), free_space(SHM)) < need:
                    self.skipTest(f"needs {need / GIB:.1f} GiB of memory and of {SHM}")
                self.tap(ranks, "big", self.file_in_memory(), what, nbytes)


if __name__ == "__main__":
    limetest.main()
