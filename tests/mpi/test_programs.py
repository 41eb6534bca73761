"""lemon_benchmark and the sample programs."""

import itertools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import mpitest
from mpitest import RANKS, TestCase, mpirun

EXAMPLES = os.path.join(limetest.B, "examples")
BENCHMARK = os.path.join(limetest.BIN, "lemon_benchmark")
SAMPLES = ("canonical", "xlf", "parallel")

# The grids of MPI_Dims_create in 4 dimensions.
GRIDS = {1: (1, 1, 1, 1), 2: (2, 1, 1, 1), 3: (3, 1, 1, 1), 4: (2, 2, 1, 1), 6: (3, 2, 1, 1)}


def corpus(name):
    return limetest.read(os.path.join(limetest.CORPUS, name))


def linearised(ranks, mapping=(0, 3, 1, 2)):
    """The samples' data: the rank of each site, as a digit, in the order of the disk."""
    grid = GRIDS[ranks]
    extents = [range(4 * grid[d]) for d in mapping]
    digits = bytearray()
    for at in itertools.product(*extents):
        rank = 0
        for d in range(4):
            rank = rank * grid[d] + at[mapping.index(d)] // 4
        digits.append(ord("0") + rank)
    return bytes(digits)


class Samples(TestCase):
    def sample(self, name, ranks, where, **env):
        done = mpirun(ranks, os.path.join(EXAMPLES, name), cwd=where, env=env)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        if name != "canonical":
            self.assertEqual(done.stdout.count(b"reports data okay."), ranks)

    def check(self, where, *names):
        paths = [os.path.join(where, name) for name in names or os.listdir(where)]
        text = self.run_ok(["lime", "check", *paths]).decode()
        self.assertEqual(text.count(": good: "), len(paths), text)

    def test_on_any_number_of_ranks(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                where = self.tempdir()
                for name in SAMPLES:
                    self.sample(name, ranks, where, SOURCE_DATE_EPOCH="1795159805", TZ="UTC")
                self.check(where)
                # The file in the corpus lacks the last padding.
                xlf = corpus("lemon_xlf_non_blocking_n1.lime") + bytes(4)
                parallel = limetest.record("parallel-test", linearised(ranks), True, True)
                for name, expected in (("canonical", corpus("lemon_canonical_n1.lime")),
                                       ("xlf", xlf), ("xlf_non_blocking", xlf),
                                       ("parallel", parallel),
                                       ("parallel_non_blocking", parallel)):
                    self.assertEqual(limetest.read(os.path.join(where, name + ".test")), expected)
                if ranks == 1:
                    self.assertEqual(parallel, corpus("lemon_parallel_n1.lime"))

    def test_the_page_shows_the_sample(self):
        page, sample = (limetest.read(os.path.join(limetest.REPO, path)).decode()
                        for path in ("docs/lemon.md", "src/mpi/examples/canonical.c"))
        shown = page.split("```c\n")[1].split("```")[0]
        sample = sample.split("\n", 1)[1]  # after the comment that names it
        self.assertEqual("".join(shown.split()), "".join(sample.split()))

    def test_a_file_that_exists_stays(self):
        where = self.tempdir()
        for name in SAMPLES[1:]:  # the first is the paper's program, unchanged
            path = limetest.put(os.path.join(where, name + ".test"), b"a file of the user")
            done = mpirun(1, os.path.join(EXAMPLES, name), cwd=where)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"{name}.test: exists already; remove it".encode(), done.stderr)
            self.assertEqual(limetest.read(path), b"a file of the user")


class Benchmark(TestCase):
    def benchmark(self, ranks, *args, status=0, where=None):
        done = mpirun(ranks, BENCHMARK, *args, cwd=where or self.tempdir())
        text = done.stdout.decode() + mpitest.without_noise(done.stderr.decode(errors="replace"))
        self.assertEqual(done.returncode, status, text)
        return text

    def test_on_any_number_of_ranks(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                where = self.tempdir()
                text = self.benchmark(ranks, "6", "2", where=where)
                grid = GRIDS[ranks]
                whole = [max(n // g, 1) * g for n, g in zip((6, 6, 6, 12), grid)]
                self.assertIn("representing a {} x {} x {} x {} lattice".format(*whole), text)
                if ranks > 1:
                    local = [n // g for n, g in zip(whole, grid)]
                    self.assertIn(f"distributed over {ranks} MPI processes", text)
                    self.assertIn("for a local {} x {} x {} x {} lattice.".format(*local),
                                  text)
                self.assertIn("Benchmark on a block of data 1.4M in size", text)
                self.assertIn("Measurement 2 of 2.", text)
                self.assertEqual(text.count("Time spent writing was "), 2)
                self.assertEqual(text.count("Time spent reading was "), 2)
                self.assertEqual(text.count("All nodes report that every byte matches."), 2)
                for what in ("writing", "reading"):
                    self.assertRegex(text, rf"Average time spent {what} was \d\.\d\de[-+]\d\d s"
                                     r", with a standard deviation of \d\.\d\de[-+]\d\d s\.")
                    self.assertRegex(text, rf"Average {what} speed was [\d.]+([KMG]| bytes)/s")
                self.assertIn("All data were read back correctly.", text)
                self.assertEqual(os.listdir(where), [], "the file is deleted")

    def test_lattice_is_adjusted(self):
        self.assertIn("a 3 x 2 x 1 x 2 lattice", self.benchmark(6, "1", "1"))
        self.assertIn("a 3 x 4 x 5 x 10 lattice", self.benchmark(6, "5", "1"))

    def test_checksum(self):
        where = self.tempdir()
        path = os.path.join(where, "kept")
        text = self.benchmark(4, "-ck", "-f", path, "4", "2")
        sums = re.findall("^The checksum is ([0-9a-f]{8} [0-9a-f]{8}), as in the file.$", text,
                          flags=re.M)
        self.assertEqual(len(sums), 2)
        for ranks in (1, 3):
            text = self.benchmark(ranks, "-rc", "-f", path, "1")
            self.assertIn(f"The checksum is {sums[1]}, as in the file.", text)
        mpitest.flip(path, 5000)
        self.assertIn("checksum: the data do not match",
                      self.benchmark(2, "-rc", "-f", path, "1", status=1))

    def test_a_file_that_exists(self):
        """It is overwritten only with --force, and never while another process writes to it."""
        where = self.tempdir()
        path, data = os.path.join(where, "c"), limetest.container([("a", b"data")])
        with open(path, "wb+") as file:
            file.write(data)
            file.flush()
            os.symlink("c", os.path.join(where, "link"))
            os.mkfifo(os.path.join(where, "fifo"))
            limetest.lock(file)
            for name, force, message in (
                    ("c", [], "exists already; --force overwrites it"),
                    ("link", [], "exists already"), ("fifo", ["--force"], "not a regular file"),
                    ("c", ["--force"], "lock: another process has this container")):
                text = self.benchmark(2, "-f", name, *force, "2", "1", where=where, status=1)
                self.assertIn(f"lemon_benchmark: {name}: write: {message}", text)
            file.seek(0)
            self.assertEqual(file.read(), data)
        self.assertEqual(sorted(os.listdir(where)), ["c", "fifo", "link"])
        self.benchmark(2, "-k", "-f", path, "--force", "2", "1")
        self.assertIn(": good: 2 records", self.run_ok(["lime", "check", path]).decode())

    def test_a_kept_file(self):
        where = self.tempdir()
        path = os.path.join(where, "kept")
        self.benchmark(4, "-k", "-f", path, "4", "2")
        check = self.run_ok(["lime", "check", path]).decode()
        self.assertIn(": good: 2 records in 1 message", check)
        table = self.run_ok(["lime", "ls", "--bytes", path]).decode()
        self.assertRegex(table, rf"{4 * 4 * 4 * 8 * 576} +benchmark\n")  # bytes, not sites
        # The numbers at each place do not depend on the number of processes; 3 and 6 do not divide
        # 4 x 4 x 4 x 8 sites evenly.
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                text = self.benchmark(ranks, "-r", "-f", path, "1")
                self.assertIn("All data were read back correctly.", text)
                self.assertNotIn("writing", text)

    def test_each_wrong_byte_is_reported(self):
        where = self.tempdir()
        path = os.path.join(where, "kept")
        self.benchmark(4, "-k", "-f", path, "4", "1")
        size, data = os.path.getsize(path), 4 * 4 * 4 * 8 * 576
        # 2 x 2 ranks along the slow dimensions: x, and y in each half.
        places = [rank // 2 * (data // 2) + rank % 2 * (data // 8) for rank in range(4)]
        for ranks in ((1,), (0, 2, 3)):  # all ranks after the second turn
            for rank in ranks:
                mpitest.flip(path, size - data + places[rank] + 1000)
            text = self.benchmark(4, "-r", "-f", path, "2", status=1)
            for rank in ranks:
                self.assertIn(f"check: rank {rank}: wrong bytes: 1; the first is byte 1000 of",
                              text)
            n = 1 if len(ranks) == 1 else 4
            self.assertIn(f"WARNING: wrong bytes: {n}, on {n} of 4 nodes!", text)
            self.assertIn("WARNING: data were wrong in 2 of 2 measurements!", text)

    def test_failures_have_messages_and_a_status(self):
        where = self.tempdir()
        path = os.path.join(where, "file")
        cases = [(["-f", os.path.join(where, "no", "file"), "2", "1"], "open: "),
                 (["-r", "-f", path, "1"], "open: "),
                 (["1000000", "1"], "lattice: too large")]
        for args, reason in cases:
            with self.subTest(args=args):
                text = self.benchmark(3, *args, status=1)
                self.assertIn("lemon_benchmark: ", text)
                self.assertIn(reason, text)
        for data in (b"", b"no container" * 100,
                     limetest.container([("benchmark-info", b"nonsense"), ("benchmark", b"")]),
                     limetest.container([("benchmark-info", b"seed = 1\nlattice = 1 1 1 1\n"),
                                         ("benchmark", bytes(575))])):
            with self.subTest(data=data[:20]):
                limetest.put(path, data)
                text = self.benchmark(2, "-r", "-f", path, "1", status=1)
                self.assertIn(f"lemon_benchmark: {path}: ", text)

    def test_a_cut_file(self):
        path = os.path.join(self.tempdir(), "kept")
        self.benchmark(2, "-k", "-f", path, "4", "1")
        os.truncate(path, os.path.getsize(path) - 1000)
        self.assertIn("read: Lemon error -8",
                      self.benchmark(3, "-r", "-f", path, "1", status=1))

    def test_usage(self):
        for args in ([], ["4"], ["0", "1"], ["4", "0"], ["4", "x"], ["-4", "1"], ["4", "1", "1"],
                     ["-r"], ["-r", "4", "1"], ["-z", "4", "1"], ["99999999999", "1"]):
            with self.subTest(args=args):
                done = limetest.run([BENCHMARK, *args], env=mpitest.environment())
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr.count(b"usage: lemon_benchmark"), 1)
        text = self.benchmark(2, "--help")
        self.assertEqual(text.count("usage: lemon_benchmark"), 1)
        self.assertTrue(all(len(line) <= 96 for line in text.splitlines()))


if __name__ == "__main__":
    limetest.main()
