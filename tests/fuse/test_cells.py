"""Checkpoints of particles through a mount: the text, and the program in Python of docs/cells.md as
it stands there."""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cellslib
import limetest
from cellslib import Checkpoint
from limetest import run


@limetest.needs_fuse
class Mounted(limetest.TestCase):
    def test_records_are_files(self):
        c = Checkpoint(500, (3, 4, 5), order="shuffled", step=7)
        with limetest.Mount(self.write("c.lime", c.container())) as mount:
            self.assertEqual(sorted(os.listdir(mount)),
                             [f"00{i + 1}-{type}" for i, (type, _) in enumerate(c.records())])
            for type, data in c.records():
                self.assertEqual(run(["cat", mount.join(type)], check=True).stdout, data)
            with open(mount.join(cellslib.DATA), "rb") as file:  # a cell is a range
                first = sum(len(c.members[i]) for i in c.sequence()[:30])
                cell = c.members[c.sequence()[30]]
                file.seek(first * c.particle_bytes)
                self.assertEqual(file.read(len(cell) * c.particle_bytes), b"".join(cell))


@limetest.needs_fuse
class Page(limetest.TestCase):
    def setUp(self):
        self.python = cellslib.python_with_numpy()
        if self.python is None:
            self.skipTest("needs numpy")
        if not shutil.which("gnuplot"):
            self.skipTest("needs gnuplot")

    def run_it(self, c, layer):
        path = self.write("c.lime", c.container())
        program = self.write("particles.py", cellslib.example("python").encode())
        figure = os.path.join(self.tempdir(), "particles.svg")
        with limetest.Mount(path) as mount:
            done = run([self.python, program, mount.path, str(layer), figure], timeout=120)
        return done, figure

    def test_as_it_stands(self):
        for c in (Checkpoint(5000, (4, 3, 5), length=(8, 6, 5), order="shuffled"),
                  Checkpoint(2000, (2, 2, 2), big=True, origin=(-1, -1, 3)),
                  Checkpoint(500, (1, 1, 3), particle_bytes=25, fields=(
                      ("position", "float32", 3, 1), ("velocity", "float32", 3, 13)))):
            done, figure = self.run_it(c, 1)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            layer = [i for i in range(len(c.members)) if i % c.cells[2] == 1]
            picked = sum(len(c.members[i]) for i in layer)
            self.assertTrue(done.stdout.decode().startswith(
                f"{picked} of {c.count()} particles, mean speed "), done.stdout)
            with open(figure, encoding="utf-8") as file:
                drawn = file.read()
            self.assertIn("</svg>", drawn)
            self.assertGreaterEqual(drawn.count(" L"), picked)  # a stroke each

    def test_a_wrong_checksum_is_seen(self):
        c = Checkpoint(100, (2, 2, 2))
        c.entry[1] = (len(c.members[0]), len(c.members[1]), 12345)
        done, figure = self.run_it(c, 1)
        self.assertIn(b"a cell has a wrong checksum", done.stderr)
        self.assertFalse(os.path.exists(figure))

    def test_the_picture_is_small(self):
        figure = os.path.join(limetest.REPO, "docs", "particles.svg")
        self.assertLess(os.path.getsize(figure), 60000)
        again = os.path.join(self.tempdir(), "again.svg")
        self.run_ok([os.path.join(limetest.REPO, "scripts", "particles"), again], timeout=120)
        with open(figure, encoding="utf-8") as old, open(again, encoding="utf-8") as new:
            self.assertEqual(strokes(old.read()), strokes(new.read()))


def strokes(svg):
    """How many there are; gnuplots draw a little differently."""
    return svg.count(" L")


if __name__ == "__main__":
    limetest.main()
