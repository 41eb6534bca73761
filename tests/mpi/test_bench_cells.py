"""lime-bench cells: every way on a few ranks, in all decompositions, and wrong bytes are found."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import celllib
import limetest
import mpitest
from benchlib import BENCH, TestCase, WAYS

FEW = ("cells", "--particles", "3000", "--repetitions", "1", "--warm")
BYTES = 120


class CellsCase(TestCase):
    def ways(self):
        return [way for way in WAYS if way not in self.absent()]

    def check_result(self, result, ways, operations=("write", "read")):
        self.assertEqual({(one["backend"], one["operation"]) for one in result["results"]},
                         {(way, operation) for way in ways for operation in operations})
        self.assertTrue(all(one["verified"] for one in result["results"] if "read" in operations))
        self.assertEqual(result["failed"], [])

    def kept(self, way, *args, ranks=4):
        """The path of a file that it has written."""
        folder = self.tempdir()
        self.run_bench(ranks, *FEW, "--ways", way, "--operations", "write", "--keep", *args,
                       where=folder)
        return os.path.join(folder, "f")

    def read(self, path, ranks, way, *args, status=0):
        return self.run_bench(ranks, *FEW, "--ways", way, "--operations", "read", *args,
                              status=status, where=os.path.dirname(path))


class Ways(CellsCase):
    def test_decompositions(self):
        """All ways read what they wrote, whoever wrote and whoever reads."""
        cases = [(), ("--decomposition", "kd"), ("--read-decomposition", "kd", "--reorder"),
                 ("--decomposition", "kd", "--read-decomposition", "regular",
                  "--distribution", "cluster"),
                 ("--distribution", "cluster", "--read-decomposition", "kd", "--cells", "5x3x7"),
                 ("--cells", "3x1x2"), ("--particles", "3", "--cells", "2x3x4")]
        for i, args in enumerate(cases):
            for ranks in (1, 3, 4) if limetest.STRESS else ((1, 3, 4)[i % 3],):
                with self.subTest(ranks=ranks, args=args):
                    self.check_result(self.measure(ranks, *FEW, *args), self.ways())

    def test_other_numbers_of_ranks(self):
        cases = [(1, ()), (3, ("--cells", "3x2x5", "--read-decomposition", "kd")),
                 (2, ("--distribution", "uniform"))]
        for i, way in enumerate(self.ways()):
            path = self.kept(way, "--cells", "3x2x5", ranks=4)
            for ranks, args in cases if limetest.STRESS else (cases[i % 3], cases[(i + 1) % 3]):
                with self.subTest(way=way, ranks=ranks):
                    self.assertIn(b"Every byte that was read is right", self.read(
                        path, ranks, way, *args).stdout)

    def test_options(self):
        result = self.measure(2, *FEW, "--repetitions", 3, "--ways", "posix,binary,ascii",
                              "--no-fsync", "--seed", 5)
        self.check_result(result, {"posix", "binary", "ascii"})
        self.assertIs(result["parameters"]["fsync"], False)
        self.assertEqual(len(result["results"][0]["seconds"]), 3)
        result = self.measure(2, *FEW, "--ways", "lime,posix", "--hint", "cb_nodes=1")
        self.check_result(result, {"lime"})
        self.assertIn("--hint", result["skipped"][0]["reason"])
        result = self.measure(2, *FEW, "--ways", "lime,posix", "--alignment", "4k")
        self.check_result(result, {"lime"})
        self.assertIn("--alignment", result["skipped"][0]["reason"])
        result = self.measure(1, *FEW, "--ways", "lime,posix", "--no-fsync")
        self.check_result(result, {"posix"})

    def test_json(self):
        result = self.measure(2, "cells", "--particles", "2k", "--decomposition", "kd",
                              "--repetitions", 2, "--ways", "posix,ascii,lime")
        self.assertLessEqual({"ranks": 2, "particles": 2048, "particle_bytes": BYTES,
                              "cells": [16, 16, 16], "distribution": "uniform",
                              "decomposition": "kd", "read_decomposition": "kd", "fsync": True,
                              "repetitions": 2, "seed": 1}.items(), result["parameters"].items())
        for one in result["results"]:
            self.assertEqual(one["bytes"], 2048 * BYTES)
            self.assertEqual(set(one["times"]), {"posix", "ascii", "lime"})
            self.assertEqual(one["times"][one["backend"]], 1)
            self.assertGreaterEqual(one["file_bytes"], one["bytes"])
        of = {(one["backend"], one["operation"]): one for one in result["results"]}
        for operation in ("write", "read"):
            mean = [sum(s["total"] for s in of[way, operation]["seconds"]) / 2
                    for way in ("ascii", "posix")]  # of two, the median is the mean
            self.assertAlmostEqual(of["ascii", operation]["times"]["posix"],
                                   mean[0] / mean[1], places=4)
        self.assertEqual(of["posix", "write"]["file_bytes"], 2048 * BYTES)

    def test_text(self):
        done = self.run_bench(2, *FEW)
        words = done.stdout.decode()
        self.assertEqual(done.words, "")
        self.assertIn("3000 particles of 120 bytes in 2 x 1 x 1 cells, uniform,\n"
                      "written regular, read regular\n", words)
        self.assertRegex(words, r"(?m)^posix +write +360 kB +[0-9.]+ +[0-9.]+ +[0-9.]+ +\d+ +1\.00 ")
        self.assertRegex(words, r"(?m)^lime +write .* 1\.00$")
        self.assertTrue(all(len(line) <= 80 for line in words.splitlines()), words)


class Files(CellsCase):
    def test_the_format_of_the_text(self):
        with open(self.kept("ascii"), encoding="ascii") as file:
            lines = file.read().splitlines()
        begin = lines.index("MoleculeFormat ICRVQD") + 1
        self.assertEqual(lines[begin - 2], "NumberOfMolecules 3000")
        self.assertTrue(lines[0].startswith("mardyn trunk 20"))
        self.assertEqual(len(lines) - begin, 3000)
        ids = set()
        for line in lines[begin:]:
            words = line.split(" ")
            self.assertEqual(len(words), 15)
            ids.add(int(words[0]))
            self.assertTrue(all(0 <= float(word) < 3000 ** (1 / 3) for word in words[2:5]))
        self.assertEqual(ids, set(range(1, 3001)))

    def test_the_container_is_one(self):
        said = self.run_ok(["lime", "check", self.kept("lime", "--cells", "4x4x4")]).decode()
        self.assertIn(": good: ", said)

    def test_alignment(self):
        """Of the particles, in the file."""
        for alignment in (1 << 12, 1 << 16):
            path = self.kept("lime", "--alignment", str(alignment))
            places = {type: at for type, at, *_ in celllib.records(path)}
            self.assertEqual(places[celllib.DATA] % alignment, 0)

    def flip(self, path, at):
        with open(path, "r+b") as file:
            file.seek(at)
            old = file.read(1)[0]
            file.seek(at)
            file.write(bytes([old ^ 0x01]))

    def test_wrong_bytes_are_found(self):
        """Of a particle in the middle of the file."""
        words = {"posix": r"verify: particle \d+: wrong byte at \d+: expected 0x",
                 "binary": r"verify: particle \d+: wrong byte at \d+: expected 0x",
                 "pnetcdf": r"verify: particle \d+: wrong byte at \d+: expected 0x",
                 "ascii": r"verify: particle \d+: wrong byte at \d+: expected 0x|read: ",
                 "lime": "lime: rank"}
        for way in self.ways():
            with self.subTest(way=way):
                path = self.kept(way)
                at = self.momentum(path, way)
                if way == "ascii":  # a digit of a number
                    with open(path, "rb") as file:
                        at = file.read().index(b".", at) + 3
                self.flip(path, at)
                self.assertRegex(self.read(path, 4, way, status=1).words, words[way])

    def momentum(self, path, way):
        """Where a byte of one is; PnetCDF's last numbers, of the last particle, are one."""
        size = os.path.getsize(path)
        return {"pnetcdf": size - 5, "lime": size // 2}.get(way, size // 2 // BYTES * BYTES + 100)

    def test_missing_particles_are_found(self):
        for way in self.ways():
            with self.subTest(way=way):
                path = self.kept(way)
                os.truncate(path, os.path.getsize(path) * 3 // 4)
                self.assertRegex(self.read(path, 2, way, status=1).words,
                                 rf"{way}: rank \d: .+")

    def test_another_ones_particles_are_found(self):
        """What was written of another seed, or of more particles than are expected."""
        path = self.kept("binary")
        self.assertRegex(self.read(path, 2, "binary", "--seed", 2, status=1).words, "wrong byte")
        path = self.kept("lime")
        said = self.read(path, 2, "lime", "--particles", 2999, status=1).words
        self.assertRegex(said, "particle|Lemon")

    def test_twice_the_same_particle(self):
        path = self.kept("binary")
        with open(path, "r+b") as file:
            first = file.read(BYTES)
            file.seek(BYTES)
            file.write(first)
        self.assertRegex(self.read(path, 2, "binary", status=1).words,
                         "verify: particle [0-9]+: came twice")


class Usage(CellsCase):
    def test_usage(self):
        file = os.path.join(self.tempdir(), "f")
        for args, words in ((("--cells", "4x4"), "expected three numbers"),
                            (("--cells", "1000x1000x1000"), "expected three numbers"),
                            (("--particles", "0"), "expected 1 to"),
                            (("--ways", "hdf5"), "no such way"),
                            (("--decomposition", "hilbert"), "are regular and kd"),
                            (("--distribution", "x"), "are uniform and cluster"),
                            (("--lattice", "4x4x4x4"), "not for this sub-command"),
                            (("--backend", "posix"), "not for this sub-command")):
            with self.subTest(args=args):
                done = limetest.run([BENCH, "cells", *args, file], env=mpitest.environment())
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr.decode())
        done = limetest.run([BENCH, "--ways", "posix", file], env=mpitest.environment())
        self.assertIn(b"not for this sub-command", done.stderr)
        done = limetest.run([BENCH, "cells", "--help"], env=mpitest.environment())
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"lime-bench cells [OPTION]", done.stdout)
        self.assertTrue(all(len(line) <= 80 for line in done.stdout.decode().splitlines()))

    def test_what_is_there_is_not_overwritten(self):
        path = self.write("f", b"a checkpoint")
        done = self.run_bench(2, *FEW, "--ways", "posix", status=2, where=os.path.dirname(path))
        self.assertIn("would be overwritten", done.words)


if __name__ == "__main__":
    limetest.main()
