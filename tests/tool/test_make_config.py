"""make-config: the sample configuration has the stated contents, read without our library."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import limetest

try:
    import numpy
    import gaugelib
except ImportError:
    numpy = None


@unittest.skipIf(numpy is None, "needs python3-numpy")
class MakeConfig(limetest.TestCase):
    def make(self, *args):
        path = os.path.join(self.tempdir(), "conf.0001")
        self.run_ok(["make-config", *args, path])
        self.run_ok(["lime", "check", path])
        return limetest.read(path)

    def test_lattices(self):
        """gaugelib compares the checksum and the values that ildg-format states."""
        for edge, precision, *more in (((4, 4, 4, 4), 64), ((2, 3, 4, 5), 32), ((3, 2, 2, 1), 64),
                                       ((2, 2, 2, 2), 32, "--lfn", "lfn://there/it is")):
            with self.subTest(edge=edge):
                raw = self.make("--lattice", ",".join(map(str, edge)), "--precision",
                                str(precision), *more)
                u, data = gaugelib.read_ildg(raw)
                self.assertEqual(list(data), ["xlf-info", "ildg-format", "ildg-binary-data",
                                              "ildg-data-lfn", "scidac-checksum"])
                self.assertEqual(gaugelib.extent(u), edge)
                error = 1e-13 if precision == 64 else 1e-6
                square = u @ u.conj().swapaxes(-1, -2)
                self.assertLess(abs(square - numpy.eye(3)).max(), error)
                self.assertLess(abs(numpy.linalg.det(u) - 1).max(), error)
                info = re.match(rb"plaquette = (0\.\d{12})\n trajectory nr = 1\n",
                                data["xlf-info"])
                self.assertAlmostEqual(float(info[1]), gaugelib.plaquette(u), delta=1e-12)
                self.assertIn(b"there/it is" if more else b"sample", data["ildg-data-lfn"])

    def test_same_bytes(self):
        self.assertEqual(self.make(), self.make("--lattice=8,8,8,16", "--precision=64"))
        small = ["--lattice", "2,2,2,2"]
        one, again, two = (self.make(*small, "--seed", n) for n in "778")
        self.assertEqual(one, again)
        self.assertNotEqual(one, two)


if __name__ == "__main__":
    limetest.main()
