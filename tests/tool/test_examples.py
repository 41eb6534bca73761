"""The Python examples in docs/examples, against known values, and their plots."""

import importlib.util
import math
import os
import re
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy", "matplotlib")
numpython.need("numpy")
import limetest
from limetest import run

EXAMPLES = os.path.join(limetest.REPO, "docs", "examples")
PACKAGE = os.path.join(limetest.REPO, "src", "lime", "python")
sys.dont_write_bytecode = True
sys.path.insert(0, PACKAGE)
os.environ["LIME"] = limetest.program("lime")
ENV = {**os.environ, "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}
GAUGE = os.path.join(limetest.CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
SPINOR = os.path.join(limetest.CORPUS, "tm_lemon_prop_4444_p64_n1.lime")
if numpython.has("numpy"):
    import numpy

    import gaugelib
    import limefs


def example(name):
    """Returns the script as a module."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(EXAMPLES, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@unittest.skipUnless(numpython.has("numpy"), "needs numpy")
class Case(limetest.TestCase):
    def script(self, name, *args, status=0):
        done = run([sys.executable, os.path.join(EXAMPLES, name + ".py"), *args], env=ENV,
                   timeout=120)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        self.assertNotIn(b"Traceback", done.stderr)
        self.err = done.stderr.decode()
        return done.stdout.decode()

    def figures(self, name, *args):
        """Makes the plot in both formats; the same arguments give the same picture."""
        if not numpython.has("matplotlib"):
            self.skipTest("needs matplotlib")
        path = os.path.join(limetest.tempdir(), "figure")
        env = {**ENV, "MPLCONFIGDIR": limetest.tempdir()}
        for form, begin in ((".png", b"\x89PNG"), (".svg", b"<?xml"), ("2.svg", b"<?xml")):
            run([sys.executable, os.path.join(EXAMPLES, name + ".py"), *args, "--out",
                 path + form], env=env, timeout=120, check=True)
            data = limetest.read(path + form)
            self.assertTrue(data.startswith(begin), form)
            self.assertGreater(len(data), 5000)
        self.assertEqual(limetest.read(path + ".svg"), data)
        return data.decode()


def transformed(links, seed):
    """Returns a random gauge transformation of (T, Z, Y, X, mu, 3, 3)."""
    g = gaugelib.random_links(gaugelib.extent(links), seed)[..., 0, :, :]
    out = numpy.empty_like(links)
    for mu in range(4):
        ahead = numpy.roll(g, -1, axis=3 - mu)
        out[..., mu, :, :] = g @ links[..., mu, :, :] @ ahead.conj().swapaxes(-1, -2)
    return out


def reflected(links, mu):
    """Returns the configuration at x_mu -> -x_mu; links in that direction are inverted."""
    axis = 3 - mu
    out = numpy.roll(numpy.flip(links, axis), 1, axis)
    back = numpy.roll(out[..., mu, :, :], -1, axis)  # U_mu at -x-mu
    out[..., mu, :, :] = back.conj().swapaxes(-1, -2)
    return out


class Usage(Case):
    def test_help_and_errors(self):
        for name in ("plaquette", "topcharge", "pion", "sample"):
            self.assertIn(f"usage: {name}.py", self.script(name, "--help"))
            self.script(name, status=2)
        for name in ("plaquette", "topcharge", "pion"):
            self.script(name, "/nowhere", status=1)
            self.assertIn(f"{name}.py: ", self.err)
            self.assertIn("o such file", self.err)
        self.script("plaquette", "--type", "scidac-binary-data", SPINOR, status=1)
        self.assertIn("not SU(3) configurations", self.err)
        self.script("topcharge", "--record", "scidac-binary-data", SPINOR, status=1)
        self.assertIn("not an SU(3) configuration", self.err)
        self.script("topcharge", GAUGE, "--t", "4", status=1)
        self.assertIn("no slice", self.err)
        self.script("pion", GAUGE, status=1)
        self.assertIn("no container in it has lattice data of type scidac", self.err)
        self.script("sample", "quark", "/nowhere/file", status=1)


class Plaquette(Case):
    def lines(self, *args):
        found = re.findall(r"^ *(\S+) +(\S+) +(\S+) +(\S+)  (.*)$", self.script(
            "plaquette", *args), re.M)
        return {os.path.basename(line[4]): line[:4] for line in found}

    def test_as_the_writers_state(self):
        got = self.lines(*sorted({row["path"] for row in limetest.manifest()
                                  if "gauge" in row["file"] or "nersc" in row["file"]}))
        self.assertEqual(len(got), 3)
        for name, (mean, _, _, written) in got.items():
            expected = 1.0 if "nersc" in name else float(written)
            self.assertAlmostEqual(float(mean), expected, delta=2e-9, msg=name)

    def test_tree_and_mount(self):
        directory = limetest.tempdir()
        for seed in (1, 2, 10):
            self.run_ok(["make-config", "--seed", str(seed), "--lattice", "3,4,2,5",
                         os.path.join(directory, f"conf.{seed}")])
        below = self.lines(directory)
        self.assertEqual(list(below), ["conf.1", "conf.2", "conf.10"])
        for mean, spatial, temporal, written in below.values():
            self.assertAlmostEqual(float(mean), float(written), delta=2e-9)
            self.assertAlmostEqual((float(spatial) + float(temporal)) / 2, float(mean),
                                   delta=2e-9)
        if limetest.can_mount():
            with limetest.Mount(directory) as mount:
                self.assertEqual(self.lines(mount.path), below)
                self.assertEqual(self.lines(mount.join("conf.2"))["conf.2"], below["conf.2"])

    def test_gauge_invariance(self):
        module = example("plaquette")
        links = numpy.array(limefs.open(GAUGE).array(), dtype=complex)
        self.assertTrue(numpy.allclose(module.plaquettes(links),
                                       module.plaquettes(transformed(links, 1)), atol=1e-12))

    def test_plot(self):
        self.assertIn("time slice t", self.figures("plaquette", GAUGE))


class TopologicalCharge(Case):
    def setUp(self):
        super().setUp()
        self.module = example("topcharge")

    def test_unit_field(self):
        links = numpy.broadcast_to(numpy.eye(3, dtype=complex), (2, 3, 4, 5, 4, 3, 3))
        self.assertEqual(abs(self.module.charge_density(links)).max(), 0)
        pure = transformed(links, 2)
        self.assertLess(abs(self.module.charge_density(pure)).max(), 1e-14)

    def test_symmetries(self):
        """q is gauge invariant and changes sign under the reflection of any axis."""
        links = gaugelib.random_links((5, 3, 4, 3), 3, spread=2)
        q = self.module.charge_density(links)
        self.assertGreater(abs(q).max(), 1e-3)
        self.assertTrue(numpy.allclose(self.module.charge_density(transformed(links, 4)), q,
                                       atol=1e-13))
        for mu in range(4):
            axis = 3 - mu
            mirror = numpy.roll(numpy.flip(q, axis), 1, axis)
            self.assertTrue(numpy.allclose(self.module.charge_density(reflected(links, mu)),
                                           -mirror, atol=1e-13), mu)

    def test_constant_field(self):
        """U(1) subgroup diag(1, -1, 0), flux 1 through x-y and through z-t: the definition gives an
        exact value on the lattice, and Q = 2 in the continuum."""
        size = 8
        flux = 2 * math.pi / size ** 2
        at = numpy.arange(size)
        t, z, y, x = numpy.meshgrid(at, at, at, at, indexing="ij")
        angle = numpy.zeros((size,) * 4 + (4,))
        # The field strength in a plane (a, b) is `flux` everywhere; the last link closes it.
        for a, b, mu, nu in ((x, y, 0, 1), (z, t, 2, 3)):
            angle[..., nu] += flux * a
            angle[..., mu] -= numpy.where(a == size - 1, flux * size * b, 0)
        links = numpy.zeros(angle.shape + (3, 3), dtype=complex)
        links[..., 0, 0], links[..., 1, 1] = numpy.exp(1j * angle), numpy.exp(-1j * angle)
        links[..., 2, 2] = 1
        total = self.module.charge_density(links).sum()
        self.assertAlmostEqual(total, size ** 4 * 2 * math.sin(flux) ** 2 / (4 * math.pi ** 2),
                               delta=1e-12)
        self.assertAlmostEqual(total, 2, delta=0.01)

    def test_instanton(self):
        """Q approaches 1 as the instanton grows; a mount gives the same value."""
        path = os.path.join(limetest.tempdir(), "instanton")
        self.script("sample", "instanton", path, "--size", "12", "--radius", "3")
        self.run_ok(["lime", "check", "--data", "--strict", path])
        links = limefs.open(path).array()
        self.assertLess(abs(links @ links.conj().swapaxes(-1, -2) - numpy.eye(3)).max(), 1e-14)
        out = self.script("topcharge", path)
        self.assertTrue(0.9 < float(re.search(r"Q = (\S+)", out)[1]) < 1, out)
        if limetest.can_mount():
            with limetest.Mount(path) as mount:
                self.assertEqual(self.script("topcharge", mount.path), out)

    def test_plot(self):
        self.assertIn("topological charge density", self.figures("topcharge", GAUGE, "--t", "1"))


class Pion(Case):
    def correlator(self, *args):
        out = self.script("pion", *args)
        return out.splitlines()[0], [[float(word) for word in line.split()]
                                     for line in out.splitlines()[2:]]

    def test_free_quark(self):
        path = os.path.join(limetest.tempdir(), "quark")
        self.script("sample", "quark", path, "--size", "4", "--time", "24", "--mass", "0.3")
        self.run_ok(["lime", "check", "--data", "--strict", path])
        head, rows = self.correlator(path)
        self.assertIn("pion correlator, 12 columns; source at t = 0", head)
        self.assertEqual(len(rows), 24)
        for t in range(10, 15):
            self.assertAlmostEqual(rows[t][2], 2 * math.log(1.3), delta=1e-3)
        for t in range(1, 12):
            self.assertAlmostEqual(rows[t][1] / rows[24 - t][1], 1, delta=1e-5)
        if limetest.can_mount():
            with limetest.Mount(path) as mount:
                self.assertEqual(self.script("pion", mount.path), self.script("pion", path))

    def test_single_spinor(self):
        """tmLQCD's: |psi|^2 per time slice, added up by struct; the output states what it is."""
        record = limefs.open(SPINOR)["scidac-binary-data"]
        with open(SPINOR, "rb") as file:
            file.seek(record.offset)
            reals = struct.unpack(f">{record.bytes // 8}d", file.read(record.bytes))
        per = len(reals) // 4
        expected = [math.fsum(x * x for x in reals[t * per:(t + 1) * per]) for t in range(4)]
        head, rows = self.correlator(SPINOR, "--source", "0")
        self.assertIn("norm of 1 of 12 columns: a part of the pion correlator", head)
        for (_, got, _), one in zip(rows, expected):
            self.assertAlmostEqual(got / one, 1, delta=1e-8)

    def test_plot(self):
        self.assertIn("effective mass", self.figures("pion", SPINOR))


if __name__ == "__main__":
    limetest.main()
