"""lime-bench model: what Lemon's plan asks of any number of ranks, beside other ways."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import mpitest

BENCH = os.path.join(limetest.B, "bin/lime-bench")
LATTICE = "192x96x96x96"
BYTES = 192 * 96 ** 3 * 576


class Model(limetest.TestCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists(BENCH):
            self.skipTest("no MPI here: lime-bench was not built")

    def run_model(self, *options, **more):
        return limetest.run([BENCH, "model", *options], env=mpitest.environment(), **more)

    def model(self, *options):
        """By method; and what concerns all."""
        done = self.run_model("--json", *options, check=True)
        self.assertEqual(done.stderr, b"")
        answer = json.loads(done.stdout)
        return {result["method"]: result for result in answer["results"]}, answer

    def check_sums(self, results, total):
        """What is sent is received, and what is written is the lattice."""
        for method, result in results.items():
            with self.subTest(method=method):
                written = result["bytes_per_mover"]
                self.assertAlmostEqual(written["mean"] * written["count"], total, delta=1)
                extents = result["extent_bytes"]
                self.assertAlmostEqual(extents["mean"] * extents["count"], total, delta=1)
                if result["direct"] or method == "collective":  # that one is sampled
                    continue
                for what in ("messages", "bytes"):
                    sent, got = result[f"{what}_sent"], result[f"{what}_received"]
                    self.assertAlmostEqual(sent["mean"] * sent["count"],
                                           got["mean"] * got["count"], delta=1)

    def test_all_that_is_sent_is_received_and_written(self):
        for ranks in (1, 2, 12, 512, 4096):
            with self.subTest(ranks=ranks):
                results, answer = self.model("--ranks", str(ranks), "--lattice", LATTICE)
                self.assertEqual(answer["bytes"], BYTES)
                self.assertEqual(answer["ranks"], ranks)
                self.check_sums(results, BYTES)
        for options in (["--grid", "3x5x2x7", "--lattice", "20x21x11x30", "--site-bytes", "24"],
                        ["--grid", "2x100", "--lattice", "64x99", "--site-bytes", "64k"],
                        ["--grid", "40", "--lattice", "17", "--site-bytes", "1M"]):
            with self.subTest(options=options):
                results, answer = self.model(*options)
                self.check_sums(results, answer["bytes"])

    def test_many_ranks(self):
        """Beside an exchange in rows: as long extents from half as many ranks, each of which
        two rows' worth of messages reach; nothing is kept for each rank."""
        for grid in ("32x16x16x8", "16x16x16x16"):
            with self.subTest(grid=grid):
                results, _ = self.model("--grid", grid, "--lattice", LATTICE)
                lime, rows = results["lime"], results["alltoallv"]
                self.assertFalse(lime["direct"])
                self.assertLess(lime["messages_sent"]["mean"], rows["messages_sent"]["mean"])
                self.assertGreaterEqual(round(lime["extent_bytes"]["mean"]),
                                        round(rows["extent_bytes"]["mean"]))
                self.assertEqual(lime["shared_stripes"], 0)
                self.assertLess(lime["plan_bytes"], 65536)
                self.assertLess(lime["memory_bytes"]["most"], 200e6)

    def test_the_most_ranks(self):
        results, _ = self.model("--ranks", "262144", "--lattice", LATTICE)
        self.check_sums(results, BYTES)
        self.assertLess(results["lime"]["plan_bytes"], 262144)

    def test_wishes(self):
        few, _ = self.model("--ranks", "4096", "--movers", "100")
        self.assertEqual(few["lime"]["movers"], 100)
        long, _ = self.model("--ranks", "4096", "--round", "128M")
        self.assertGreater(long["lime"]["extent_bytes"]["mean"], 40e6)

    def test_text(self):
        done = self.run_model("--ranks", "65536", check=True)
        text = done.stdout.decode()
        self.assertIn("97.84 GB, on 65536 ranks", text)
        self.assertIn("messages sent, a rank", text)
        self.assertLess(max(map(len, text.splitlines())), 100)

    def test_cells(self):
        """All particles are written once by each way, and Lemon's messages arrive."""
        for options in (["--ranks", "1"], ["--ranks", "12", "--particles", "1M"],
                        ["--ranks", "64", "--particles", "3M", "--decomposition", "kd"],
                        ["--ranks", "100", "--particles", "4M", "--particle-bytes", "56",
                         "--cells", "30x20x10", "--decomposition", "kd", "--distribution",
                         "cluster"],
                        ["--ranks", "50", "--particles", "70", "--cells", "3x4x5"],
                        ["--ranks", "7", "--particles", "1000", "--cells", "1x1x1",
                         "--decomposition", "kd"]):
            with self.subTest(options=options):
                results, answer = self.model("-p", "cells", *options)
                self.assertEqual(set(results), {"lime", "independent", "gather"})
                self.assertEqual(answer["bytes"], answer["particles"] * answer["particle_bytes"])
                lime = results["lime"]
                for result in results.values():
                    for what in ("bytes_per_mover", "extent_bytes"):
                        self.assertAlmostEqual(result[what]["mean"] * result[what]["count"],
                                               answer["bytes"], delta=1)
                for what in ("messages", "bytes"):
                    sent, got = lime[f"{what}_sent"], lime[f"{what}_received"]
                    self.assertAlmostEqual(sent["mean"] * sent["count"],
                                           got["mean"] * got["count"], delta=1)

    def test_cells_on_many_ranks(self):
        """The thesis' 16,384 processes: beside each for itself, long extents and few clients."""
        for options in ([], ["--decomposition", "kd", "--distribution", "cluster"]):
            with self.subTest(options=options):
                results, answer = self.model("--pattern", "cells", "--ranks", "16384", *options)
                self.assertEqual(answer["particles"], 33000000)
                lime, alone, one = (results[name] for name in ("lime", "independent", "gather"))
                self.assertGreater(lime["extent_bytes"]["mean"], 4e6)
                self.assertLess(alone["extent_bytes"]["mean"], 300e3)
                self.assertEqual(lime["shared_stripes"], 0)
                self.assertGreater(alone["shared_stripes"], 3000)
                self.assertLess(lime["messages_sent"]["most"], 10)
                self.assertLess(lime["planning_messages"]["most"], 2500)
                self.assertLessEqual(lime["plan_bytes"], 16 * 16384)  # a word or two of each rank
                for other in (alone, one):
                    self.assertLess(lime["total_seconds"], other["total_seconds"])

    def test_called_wrongly(self):
        for options in (["-p", "star"], ["-p", "cells"], ["-p", "cells", "--grid", "2x2x2"],
                        ["-p", "cells", "--ranks", "2", "--cells", "4x4"],
                        ["-p", "cells", "--ranks", "2", "--cells", "4096x4096x4096"],
                        ["-p", "cells", "--ranks", "2", "--decomposition", "hilbert"],
                        ["-p"], [], ["--ranks", "0"], ["--ranks", "x"], ["--ranks", "3", "--grid", "2x1x1x1"],
                        ["--grid", "2x2"], ["--grid", "4194304x2x1x1"], ["--grid", "2x"],
                        ["--ranks", "2", "more"], ["--nothing"], ["--ranks"],
                        ["--ranks", "2", "--stripe", "5000000000"],
                        ["--ranks", "2", "--latency", "-1"],
                        ["--ranks", "2", "--lattice", "16777216x16777216x16777216"]):
            with self.subTest(options=options):
                done = self.run_model(*options)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, b"")
                self.assertRegex(done.stderr.decode(), r"^lime-bench: model: [^\n]*\n$")


if __name__ == "__main__":
    limetest.main()
