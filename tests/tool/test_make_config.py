"""make-config: the sample configuration is what it says it is, seen without our library."""
import cmath
import itertools
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from limetest import records, run, scidac_checksum

TYPES = ["xlf-info", "ildg-format", "ildg-binary-data", "ildg-data-lfn", "scidac-checksum"]
ILDG = "{http://www.lqcd.org/ildg}"


def links(data, precision):
    """[site * 4 + mu]: a 3x3 matrix as 9 complex numbers."""
    letter = {32: "f", 64: "d"}[precision]
    reals = struct.unpack(f">{len(data) * 8 // precision}{letter}", data)
    values = [complex(reals[i], reals[i + 1]) for i in range(0, len(reals), 2)]
    return [values[i:i + 9] for i in range(0, len(values), 9)]


def times(a, b):
    return [sum(a[3 * i + k] * b[3 * k + j] for k in range(3))
            for i in range(3) for j in range(3)]


def dagger(a):
    return [a[3 * j + i].conjugate() for i in range(3) for j in range(3)]


def determinant(a):
    return (a[0] * (a[4] * a[8] - a[5] * a[7]) - a[1] * (a[3] * a[8] - a[5] * a[6])
            + a[2] * (a[3] * a[7] - a[4] * a[6]))


def plaquette(u, edge):
    """The mean of Re tr / 3 over all elementary loops, by the textbook."""
    def rank(x):
        return ((x[3] % edge[3] * edge[2] + x[2] % edge[2]) * edge[1] + x[1] % edge[1]) \
            * edge[0] + x[0] % edge[0]

    def link(x, mu):
        return u[rank(x) * 4 + mu]

    def step(x, mu):
        return tuple(c + (i == mu) for i, c in enumerate(x))

    total = loops = 0
    for x in itertools.product(*map(range, edge)):
        for mu, nu in itertools.combinations(range(4), 2):
            loop = times(times(link(x, mu), link(step(x, mu), nu)),
                         times(dagger(link(step(x, nu), mu)), dagger(link(x, nu))))
            total += (loop[0] + loop[4] + loop[8]).real / 3
            loops += 1
    return total / loops


class MakeConfig(limetest.TestCase):
    def make(self, *args):
        path = os.path.join(self.tempdir(), "conf.0001")
        self.run_ok(["make-config", *args, path])
        self.assertEqual(os.listdir(os.path.dirname(path)), ["conf.0001"])
        with open(path, "rb") as file:
            return file.read()

    def check(self, edge, precision, *args):
        """Makes one and checks all but the numbers; the data by type."""
        raw = self.make("--lattice", ",".join(map(str, edge)), "--precision", str(precision),
                        *args)
        found = records(raw)
        self.assertEqual([r.name for r in found], TYPES)
        self.assertEqual([(r.mb, r.me) for r in found], [(True, True), (True, False), (False, False),
                                                         (False, False), (False, True)])
        data = {r.name: r.data for r in found}
        sites = edge[0] * edge[1] * edge[2] * edge[3]
        self.assertEqual(len(data["ildg-binary-data"]), sites * 4 * 9 * 2 * precision // 8)
        xml = ElementTree.fromstring(data["ildg-format"])
        self.assertEqual(xml.tag, ILDG + "ildgFormat")
        values = {child.tag.replace(ILDG, ""): child.text for child in xml}
        self.assertEqual(values, {"version": "1.0", "field": "su3gauge",
                                  "precision": str(precision), "lx": str(edge[0]),
                                  "ly": str(edge[1]), "lz": str(edge[2]), "lt": str(edge[3])})
        xml = ElementTree.fromstring(data["scidac-checksum"])
        self.assertEqual((xml.tag, xml.findtext("version")), ("scidacChecksum", "1.0"))
        self.assertEqual((int(xml.findtext("suma"), 16), int(xml.findtext("sumb"), 16)),
                         scidac_checksum(data["ildg-binary-data"], 72 * precision // 8))
        return data

    def check_numbers(self, data, edge, precision):
        u = links(data["ildg-binary-data"], precision)
        error = 1e-13 if precision == 64 else 1e-6
        one = [1, 0, 0, 0, 1, 0, 0, 0, 1]
        for matrix in u[:40] + u[-40:]:
            self.assertLess(max(map(abs, (a - b for a, b in zip(times(matrix, dagger(matrix)),
                                                               one)))), error)
            self.assertTrue(cmath.isclose(determinant(matrix), 1, abs_tol=error))
        self.assertEqual(len({tuple(matrix) for matrix in u}), len(u))
        said = re.match(rb"plaquette = (0\.\d{12})\n trajectory nr = \d+\n", data["xlf-info"])
        self.assertIsNotNone(said, data["xlf-info"])
        self.assertAlmostEqual(float(said[1]), plaquette(u, edge), delta=1e-12)

    def test_64_bits(self):
        edge = (4, 4, 4, 4)
        self.check_numbers(self.check(edge, 64), edge, 64)

    def test_32_bits_and_edges_that_differ(self):
        edge = (2, 3, 4, 5)
        self.check_numbers(self.check(edge, 32), edge, 32)

    def test_one_time_slice(self):
        edge = (3, 2, 2, 1)
        self.check_numbers(self.check(edge, 64), edge, 64)

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

    def test_well_formed_to_lime(self):
        path = self.write("conf", self.make("--lattice", "2,2,2,2"))
        self.assertEqual(run(["lime", "check", path]).returncode, 0)


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
        self.assertFalse(os.path.exists(path))

    def test_target(self):
        folder = self.tempdir()
        self.assertIn("directory", self.refused(folder, code=1))
        self.assertRegex(self.refused("/dev/null", code=1),
                         "^make-config: /dev/null: write: not a regular file\n$")
        self.assertIn("No such file", self.refused(os.path.join(folder, "no", "conf"), code=1))
        self.assertEqual(os.listdir(folder), [])

    def test_too_large(self):
        path = os.path.join(self.tempdir(), "conf")
        self.assertIn("length", self.refused("--lattice", "65536,65536,65536,65536", path, code=1))
        self.assertEqual(os.listdir(os.path.dirname(path)), [])

    def test_full_disk_leaves_the_old_file(self):
        path = self.write("conf", b"old")
        done = subprocess.run(["sh", "-c", 'ulimit -f 100; trap "" XFSZ; exec "$@"', "sh",
                               limetest.program("make-config"), path],
                              stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr.decode()),
                         (1, f"make-config: {path}: write: File too large\n"))
        self.assertEqual(os.listdir(os.path.dirname(path)), ["conf"])
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"old")


if __name__ == "__main__":
    limetest.main()
