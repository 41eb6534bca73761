"""Particle checkpoints in a mount: lime info, lime check and docs/examples/particles.py."""

import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cellslib
import limetest
import numpython
from cellslib import Checkpoint
from limetest import container, header, put, record, run


@limetest.needs_fuse
class Tool(limetest.TestCase):
    """lime info and lime check accept a container's directory in a mount."""

    def assert_same(self, path, directory):
        """The outputs for the file and for the directory differ only in the name."""
        for command in (["info"], ["info", "--json"], ["check"], ["check", "--data"],
                        ["check", "--data", "--strict", "--json"]):
            outputs = []
            for name in (path, directory):
                done = run(["lime", *command, name])
                self.assertNotIn(done.returncode, (-6, -11))
                outputs.append((done.returncode, done.stdout.decode().replace(name, "X"),
                                done.stderr.decode().replace(name, "X")))
            self.assertEqual(*outputs, command)
        return outputs[0]

    def test_corpus(self):
        """Files of real programs, except those without padding. Listed exports are not records."""
        for path in {row["path"] for row in limetest.manifest()}:
            for opts in (None, "faces") if os.path.getsize(path) % 8 == 0 else ():
                with limetest.Mount(path, opts=opts) as mount:
                    self.assert_same(path, mount.path)

    def test_checkpoints(self):
        c = Checkpoint(3000, (5, 4, 3), order="shuffled")
        text, index, data = c.records()
        wrong = bytearray(data[1])
        wrong[30000] ^= 1
        directory = self.tempdir()
        for name, items, status in (
                ("good", [text, index, data], 0), ("wrong", [text, index, (data[0], wrong)], 1),
                ("short", [text, index, (data[0], data[1][:-9])], 1),
                ("no-index", [[text], [data], [text, index, data]], 1),
                ("damaged", [text, (index[0], index[1][:-24] + bytes(24)), data], 1)):
            put(os.path.join(directory, f"{name}-{status}"), container(items))
        with limetest.Mount(directory) as mount:  # a tree
            for name in os.listdir(directory):
                status, out, err = self.assert_same(os.path.join(directory, name), mount.join(name))
                self.assertEqual((status, err), (int(name[-1]), ""))
                self.assertTrue(json.loads(out)["checkpoints"])
            errors = run(["lime", "check", "--data", mount.join("wrong-1")]).stderr.decode()
            self.assertIn("(1 of 60 cells): the first is (", errors)

    def test_any_types(self):
        path = self.write("c.lime", record("a/b", b"1", 1, 0) + record("", b"", 0, 0)
                          + record("t" * 128, b"12345678", 0, 0) + record(b"\xff\x01", b"x", 0, 1)
                          + record("x", b"", 0, 0))
        with limetest.Mount(path) as mount:
            self.assertEqual(self.assert_same(path, mount.path)[0], 1)

    def test_a_fault_is_reported(self):
        path = self.write("c.lime", container(Checkpoint(9).records())
                          + header("t", 1000, 1, 1) + b"cut")
        message = "the file ends inside the data (3 of 1000 bytes present)"
        with limetest.Mount(path) as mount:
            for command in (["info"], ["check"], ["check", "--data"]):
                done = run(["lime", *command, mount.path])
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr.decode().count(message), 1, done.stderr)
            found = json.loads(run(["lime", "check", "--json", mount.path]).stdout)
            self.assertEqual((found["status"], found["faults"], found["records"]), ("bad", 1, 3))
            self.assertEqual([f["code"] for f in found["findings"]], ["data-cut"])
            found = json.loads(run(["lime", "info", "--json", mount.path]).stdout)
            self.assertEqual(found["fault"]["code"], "data-cut")
            self.assertIn(message, found["fault"]["message"])

    def test_other_directories(self):
        """Directories outside a mount, and a tree's own, are not containers."""
        directory = self.tempdir()
        os.mkdir(os.path.join(directory, "inner"))
        with limetest.Mount(directory) as mount:
            for path in (directory, mount.path, mount.join("inner")):
                for command in ("info", "check"):
                    self.fails(["lime", command, path], "Is a directory", status=2)

    def test_unreadable_records(self):
        """lime reports the error if it may not read the records."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        path = self.write("c.lime", Checkpoint(9).container())
        os.chmod(path, 0)
        os.chmod(os.path.dirname(path), 0o755)
        lime = os.path.join(os.path.dirname(path), "lime")  # any user may run it there
        shutil.copy(limetest.program("lime"), lime)
        with limetest.Mount(path, opts="allow_other") as mount:
            os.chmod(os.path.dirname(mount.path), 0o755)
            for command in ("info", "check"):
                done = run([lime, command, mount.path], user=65534, group=65534,
                           extra_groups=[])
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(b"Permission denied", done.stderr)


@limetest.needs_fuse
class Example(limetest.TestCase):
    def setUp(self):
        self.python = numpython.python_with("numpy")
        if self.python is None:
            self.skipTest("needs numpy")
        if not shutil.which("gnuplot"):
            self.skipTest("needs gnuplot")

    def run_example(self, c, layer):
        path = self.write("c.lime", c.container())
        figure = os.path.join(self.tempdir(), "particles.svg")
        with limetest.Mount(path) as mount:
            done = run([self.python, cellslib.PARTICLES, mount.path, str(layer), figure],
                       timeout=120)
        return done, figure

    def test_figure(self):
        for c in (Checkpoint(5000, (4, 3, 5), length=(8, 6, 5), order="shuffled"),
                  Checkpoint(2000, (2, 2, 2), big=True, origin=(-1, -1, 3)),
                  Checkpoint(500, (1, 1, 3), particle_bytes=25, fields=(
                      ("position", "float32", 3, 1), ("velocity", "float32", 3, 13)))):
            done, figure = self.run_example(c, 1)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            layer = [i for i in range(len(c.members)) if i % c.cells[2] == 1]
            picked = sum(len(c.members[i]) for i in layer)
            self.assertTrue(done.stdout.decode().startswith(
                f"{picked} of {c.count()} particles, mean speed "), done.stdout)
            with open(figure, encoding="utf-8") as file:
                drawn = file.read()
            self.assertIn("</svg>", drawn)
            self.assertGreaterEqual(drawn.count(" L"), picked)  # one stroke per particle

    def test_a_wrong_checksum_is_reported(self):
        c = Checkpoint(100, (2, 2, 2))
        c.entry[1] = (len(c.members[0]), len(c.members[1]), 12345)
        done, figure = self.run_example(c, 1)
        self.assertIn(b"a cell has a wrong checksum", done.stderr)
        self.assertFalse(os.path.exists(figure))


if __name__ == "__main__":
    limetest.main()
