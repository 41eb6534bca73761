"""make-config: the sample configuration is what it says it is, seen without our library."""
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import limetest
from limetest import run

try:
    import numpy
    import gaugelib
except ImportError:
    numpy = None

TYPES = ["xlf-info", "ildg-format", "ildg-binary-data", "ildg-data-lfn", "scidac-checksum"]
ILDG = "{http://www.lqcd.org/ildg}"


@unittest.skipIf(numpy is None, "needs python3-numpy")
class MakeConfig(limetest.TestCase):
    def make(self, *args):
        path = os.path.join(self.tempdir(), "conf.0001")
        self.run_ok(["make-config", *args, path])
        self.assertEqual(run(["lime", "check", path]).returncode, 0)
        with open(path, "rb") as file:
            return file.read()

    def check(self, edge, precision, *args):
        """Makes one and checks all of it; the data by type. gaugelib compares the checksum."""
        raw = self.make("--lattice", ",".join(map(str, edge)), "--precision", str(precision),
                        *args)
        self.assertEqual(list(gaugelib.records(raw)), TYPES)
        u, data = gaugelib.read_ildg(raw)
        self.assertEqual(gaugelib.extent(u), edge)
        xml = ElementTree.fromstring(data["ildg-format"])
        self.assertEqual(xml.tag, ILDG + "ildgFormat")
        values = {child.tag.replace(ILDG, ""): child.text for child in xml}
        self.assertEqual(values, {"version": "1.0", "field": "su3gauge",
                                  "precision": str(precision), "lx": str(edge[0]),
                                  "ly": str(edge[1]), "lz": str(edge[2]), "lt": str(edge[3])})
        xml = ElementTree.fromstring(data["scidac-checksum"])
        self.assertEqual((xml.tag, xml.findtext("version")), ("scidacChecksum", "1.0"))
        error = 1e-13 if precision == 64 else 1e-6
        square = u @ u.conj().swapaxes(-1, -2)
        self.assertLess(abs(square - numpy.eye(3)).max(), error)
        self.assertLess(abs(numpy.linalg.det(u) - 1).max(), error)
        self.assertEqual(len(numpy.unique(u.reshape(-1, 9), axis=0)), u[..., 0, 0].size)
        said = re.match(rb"plaquette = (0\.\d{12})\n trajectory nr = \d+\n", data["xlf-info"])
        self.assertIsNotNone(said, data["xlf-info"])
        self.assertAlmostEqual(float(said[1]), gaugelib.plaquette(u), delta=1e-12)
        return data

    def test_lattices(self):
        for edge, precision in (((4, 4, 4, 4), 64), ((2, 3, 4, 5), 32), ((3, 2, 2, 1), 64)):
            with self.subTest(edge=edge):
                self.check(edge, precision)

    def test_default(self):
        data = self.check((8, 8, 8, 16), 64)
        self.assertEqual(self.make(), self.make("--lattice=8,8,8,16", "--precision=64"))
        self.assertTrue(data["ildg-data-lfn"].startswith(b"lfn://"))
        self.assertIn(b"\n beta = ", data["xlf-info"])

    def test_lfn(self):
        data = self.check((2, 2, 2, 2), 32, "--lfn", "lfn://there/it is")
        self.assertEqual(data["ildg-data-lfn"], b"lfn://there/it is")

    def test_seed(self):
        small = ["--lattice", "2,2,2,2"]
        one, again, two = (self.make(*small, "--seed", n) for n in "778")
        self.assertEqual(one, again)
        self.assertNotEqual(one, two)
        self.make(*small, "--seed", str(2**64 - 1))


class Refusals(limetest.TestCase):
    def refused(self, *args, code=2):
        done = run(["make-config", *args])
        self.assertEqual((done.returncode, done.stdout), (code, b""))
        return done.stderr.decode()

    def test_options(self):
        path = os.path.join(self.tempdir(), "conf")
        for args in (["--lattice", "4,4,4"], ["--lattice", "4,4,4,4,4"], ["--lattice", "4,4,0,4"],
                     ["--lattice", "4,4,-4,4"], ["--lattice", "4,4,4,70000"],
                     ["--lattice", ""], ["--precision", "16"], ["--precision", "64x"],
                     ["--seed", "-1"], ["--seed", str(2**64)], ["--seed", ""]):
            self.assertRegex(self.refused(*args, path), "^make-config: --.*: read: '.*'")
        self.assertIn("usage", self.refused())
        self.assertIn("usage", self.refused(path, path))
        self.refused("--nonsense", path)
        self.assertIn("length", self.refused("--lattice", "65536,65536,65536,65536", path, code=1))
        self.assertFalse(os.path.exists(path))
        self.assertIn("No such file", self.refused(os.path.join(path, "conf"), code=1))

    def test_full_disk(self):
        path = os.path.join(self.tempdir(), "conf")
        done = subprocess.run(["sh", "-c", 'ulimit -f 100; trap "" XFSZ; exec "$@"', "sh",
                               limetest.program("make-config"), path],
                              stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr.decode()),
                         (1, f"make-config: {path}: write: File too large\n"))


if __name__ == "__main__":
    limetest.main()
