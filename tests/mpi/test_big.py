"""Lemon with more than 2 GiB in one call, and at large offsets."""

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
    def big(self, ranks, what, nbytes, need=2 * GIB):
        if min(available_memory(), free_space(SHM)) < need:
            self.skipTest(f"needs {need / GIB:.1f} GiB of memory and of {SHM}")
        path = os.path.join(SHM, f"lemon-big-{os.getpid()}")
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        self.tap(ranks, "big", path, what, nbytes)

    def test_far_away_in_the_file(self):
        self.on(RANKS, "big", "far")

    def test_data(self):
        """More than 4 GiB in one call (the old library succeeds after 100 bytes)."""
        self.big(1, "data", 4 * GIB + 100)

    def test_lattice(self):
        """A lattice of 3 GiB on 2 ranks; the first has 2 GiB."""
        self.big(2, "direct", 3 * GIB + 20000)
        if limetest.STRESS:
            self.big(2, "aggregators", 3 * GIB + 20000, 4 * GIB)


if __name__ == "__main__":
    limetest.main()
