"""benchlib - run lime-bench and check its results."""

import functools
import json
import os
import re
import struct

import limetest
import mpitest

BENCH = os.path.join(limetest.BIN, "lime-bench")
PATTERNS = ("lattice", "disjoint", "interleaved", "random")
BACKENDS = ("posix", "mpiio", "subarray", "lime", "gather", "hdf5", "netcdf4", "pnetcdf", "limefs",
            "limefs-job")
TWO_MODES = {"mpiio", "hdf5", "netcdf4", "pnetcdf"}  # independent and collective calls
# Fast, and small: 48 transfers of 1 KiB a rank, or a lattice of about as much.
SMALL = ("--size", "48k", "--transfer-size", "1k", "--repetitions", "1", "--warm")
# Open MPI's mpirun waits this long after a rank has exited with a status other than 0.
IMPATIENT = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}
MASK = (1 << 64) - 1


def data_at(offset, n, seed=1):
    """The n bytes that lime-bench writes from `offset` on; both are multiples of 8."""
    key = (seed + 0x9E3779B97F4A7C15) & MASK
    key = ((key ^ key >> 30) * 0xBF58476D1CE4E5B9) & MASK
    key = ((key ^ key >> 27) * 0x94D049BB133111EB) & MASK
    key ^= key >> 31
    words = []
    for i in range(offset // 8, (offset + n) // 8):
        x = (key + i * 0x9E3779B97F4A7C15) & MASK
        x = ((x ^ x >> 32) * 0xD6E8FEB86659FD93) & MASK
        words.append(x ^ x >> 32)
    return struct.pack(f"={len(words)}Q", *words)


def unsupported(pattern):
    """The back ends that do not support the pattern."""
    others = set() if pattern == "lattice" else {"subarray"}
    return others | ({"lime"} if pattern == "random" else set())


@functools.lru_cache(maxsize=None)
def listed(program):
    """Parses --list: returns the set of all names, and {name: reason} of the missing ones."""
    text = limetest.run([program, "--list"], check=True,
                        env=mpitest.environment()).stdout.decode()
    return (set(re.findall(r"^  ([a-z0-9-]+) ", text, re.M)),
            dict(re.findall(r"^  ([a-z0-9-]+) .*NOT AVAILABLE: (.+)$", text, re.M)))


class TestCase(mpitest.TestCase):
    bench = BENCH

    def setUp(self):
        super().setUp()
        if not os.path.exists(self.bench):
            self.skipTest("needs lime-bench")

    def run_bench(self, ranks, *args, status=0, options=(), where=None):
        """Writes file `f` in a new directory, which must be empty afterwards, or in `where`.
        Returns the finished process."""
        directory = where or self.tempdir()
        # Other tests run at the same time, and some count what is read again.
        done = mpitest.mpirun(ranks, self.bench, *map(str, args), "--cold-file",
                              os.path.join(directory, "f"), options=options, env=IMPATIENT)
        done.messages = mpitest.without_noise(done.stderr.decode(errors="replace"))
        self.assertEqual(done.returncode, status, done.messages + done.stdout.decode())
        if not where:
            self.assertEqual(os.listdir(directory), [])
        return done

    def measure(self, ranks, *args, **kw):
        """Returns the JSON object."""
        done = self.run_bench(ranks, *args, "--quiet", "--json", "-", **kw)
        return json.loads(done.stdout)

    def absent(self):
        """Returns {back end: reason} of the missing ones."""
        names, absent = listed(self.bench)
        self.assertEqual(names, set(BACKENDS) | set(PATTERNS))
        return absent

    def check_all(self, ranks, pattern, *args, backends=BACKENDS, **kw):
        """Each back end that supports the pattern writes and reads it; each other one is skipped
        with its reason. For options whose exclusions are not known in advance, pass `backends`."""
        result = self.measure(ranks, "-b", ",".join(backends), "-p", pattern, *SMALL, *args, **kw)
        absent = set(self.absent()) & set(backends)
        expected = set(backends) - unsupported(pattern) - absent
        done = {(one["backend"], one["operation"]) for one in result["results"]}
        self.assertEqual(done, {(name, operation) for name in expected
                                for operation in ("write", "read")})
        self.assertTrue(all(one["verified"] for one in result["results"]), result["results"])
        reasons = {one["backend"]: one["reason"] for one in result["skipped"]}
        self.assertEqual(set(reasons), set(backends) - expected)
        for name, reason in reasons.items():
            self.assertIn("not available: " if name in absent else f"the {pattern} pattern",
                          reason)
        return result
