"""The C program of docs/cells.md compiles unchanged, and reads checkpoints written by Lemon and by
tests/lib/cellslib.py."""

import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cellslib
import limetest
import mpitest
from mpitest import RANKS, TestCase, mpirun

FIELDS = (("id", "int64", 1, 0), ("position", "float64", 3, 8), ("velocity", "float64", 3, 32))


class Page(TestCase):
    def compiled(self, text, *options):
        directory = self.tempdir()
        source, program = (os.path.join(directory, name) for name in ("molecules.c", "molecules"))
        limetest.put(source, text.encode())
        sanitizers = ["-fsanitize=" + os.environ["SAN"]] if limetest.SANITIZED else []
        self.run_ok([mpitest.MPICC, "-Wall", "-Wextra", "-Werror", *options, *sanitizers,
                     *("-I" + os.path.join(limetest.REPO, "src", "mpi", module, "include")
                       for module in ("lemon", "series")), source,
                     os.path.join(limetest.B, "lib", "liblemonio.a"), "-lisal", "-lm", "-pthread",
                     "-o", program], timeout=120)
        return program

    def counts(self, program, ranks, path):
        """Returns the number of particles of each rank."""
        done = mpirun(ranks, program, path)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        found = re.findall(r"rank (\d+) has (\d+) of (\d+) molecules", done.stdout.decode())
        self.assertEqual(sorted(int(rank) for rank, _, _ in found), list(range(ranks)))
        self.assertEqual(sum(int(n) for _, n, _ in found), int(found[0][2]))
        return [int(n) for _, n, _ in found]

    def test_unchanged(self):
        program = self.compiled(cellslib.example())
        for ranks in RANKS:
            path = os.path.join(self.tempdir(), "checkpoint.lime")
            self.assertEqual(sum(self.counts(program, ranks, path)), 1000 * ranks)
            checked = self.run_ok(["lime", "check", "--strict", "--data", path]).decode()
            self.assertIn("good: 3 records in 1 message", checked)
            self.assertIn("checksums: 1 right", checked)
            info = self.run_ok(["lime", "info", path]).decode()
            for row in (f"particles         {ranks}000 of 56 bytes", "cells             4 x 4 x 4",
                        "step              1000, time 2.5", "velocity: 3 float64 at byte 32"):
                self.assertIn(row, info)

    def test_series(self):
        """The second program, with the functions of the first, continues its series."""
        first, second = cellslib.example(), cellslib.example(2)
        text = first[:first.index("int main(")] + """
            static int moves;
            static void move(Molecule *molecules, MPI_Offset count)
            {
                moves += count > 0 && molecules[0].id >= 0;
            }
            """ + second + """
            int main(int argc, char **argv)
            {
                int level, ranks, rank;
                Molecule mine[10] = {{0}};
                MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
                MPI_Comm_size(MPI_COMM_WORLD, &ranks);
                MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                simulate(mine, 10, argv[1], ranks, rank);
                printf("rank %d moved %d times\\n", rank, moves);
                MPI_Finalize();
                return argc != 2;
            }
            """
        program = self.compiled(text, "-Wno-unused-function")
        where = self.tempdir()
        for ranks, moves in ((2, 1000), (3, 0)):
            done = mpirun(ranks, program, os.path.join(where, "ck"))
            self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
            self.assertEqual(done.stdout.decode().count(f"moved {moves} times"), ranks)
            self.assertEqual(sorted(os.listdir(where)), [".ck.lock", "ck.000000000900.lime",
                                                         "ck.000000001000.lime"])
        os.remove(os.path.join(where, "ck.000000001000.lime"))
        done = mpirun(1, program, os.path.join(where, "ck"))
        self.assertIn("moved 100 times", done.stdout.decode())

    def test_same_records(self):
        """cellslib computes the same text and index from the data of Lemon's checkpoint."""
        program = self.compiled(cellslib.example())
        path = os.path.join(self.tempdir(), "checkpoint.lime")
        self.counts(program, 4, path)
        text, index, data = (self.run_ok(["lime", "cat", path, type]) for type in (
            cellslib.TEXT, cellslib.INDEX, cellslib.DATA))
        c = cellslib.Checkpoint(0, (4, 4, 4), length=(10, 10, 10), fields=FIELDS, particle_bytes=56,
                                step=1000, time=2.5)
        for at in range(0, len(data), 56):
            particle = data[at:at + 56]
            position = struct.unpack_from("<3d", particle, 8)
            c.members[c.number([c.locate(d, position[d]) for d in range(3)])].append(particle)
        entries = struct.iter_unpack(">QQII", index[136 + 3 * 80:])
        first = [(entry[0], i) for i, entry in enumerate(entries) if entry[1]]
        empty = [i for i, cell in enumerate(c.members) if not cell]
        c.order = [i for _, i in sorted(first)] + empty
        self.assertEqual(c.data(), data)
        self.assertEqual(c.text(), text)
        self.assertEqual(c.index(), index)

    def test_other_writer(self):
        source = cellslib.example()
        call = "    write_checkpoint(name, mine, COUNT);\n"
        self.assertIn(call, source)
        program = self.compiled(source.replace(call, "    (void)write_checkpoint;\n"))
        for c in (cellslib.Checkpoint(5000, (5, 4, 3), order="shuffled", fields=FIELDS, big=True,
                                      particle_bytes=56),
                  cellslib.Checkpoint(1, (1, 1, 7), fields=FIELDS, particle_bytes=56),
                  cellslib.Checkpoint(0, (2, 2, 2), fields=FIELDS, particle_bytes=56)):
            path = self.write("c.lime", c.container())
            for ranks in (1, 3, 4):
                self.assertEqual(sum(self.counts(program, ranks, path)), c.count())


if __name__ == "__main__":
    limetest.main()
