"""Inputs on which a released version failed (tests/data/cases), with the correct results."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from limetest import needs_fuse, run

def case(name):
    return os.path.join(limetest.CASES, name)


class Gauge(limetest.TestCase):
    PLAQUETTE, SPACE, TIME, TRACE = 0.0005445170, 0.0115649148, -0.0104758809, -0.1693366103

    def physics(self, path, status=0):
        done = run(["lime", "check", "--physics", "--json", path])
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        configurations = json.loads(done.stdout)["physics"]
        self.assertEqual(len(configurations), 1)
        return configurations[0]

    def assert_usqcd(self, path):
        """The sums of another program agree to about 1e-9, as the links have single precision."""
        result = self.physics(path)
        self.assertEqual(result["state"], "good")
        for name, value in (("plaquette", self.PLAQUETTE), ("space", self.SPACE),
                            ("time", self.TIME), ("link_trace", self.TRACE)):
            self.assertAlmostEqual(result[name], value, 8, (path, name))

    def assert_header(self, data):
        """Checks the header of a NERSC file."""
        for key, value in ("PLAQUETTE", self.PLAQUETTE), ("LINK_TRACE", self.TRACE):
            stated = re.search(rb"%s = (\S+)" % key.encode(), data)[1]
            self.assertAlmostEqual(float(stated), value, 8)

    def shape(self, path):
        (field,) = json.loads(self.run_ok(["lime", "info", "--json", path]))["fields"]
        head = self.run_ok(["lime", "cat", "--range", "0:128", path, f"{field['ordinal']}.npy"])
        text = ", ".join(map(str, field["array"]["shape"]))
        self.assertIn(f"'shape': ({text}), ".encode(), head)
        self.assertIn(f"'descr': '{field['array']['dtype']}'".encode(), head)
        return field["kind"], field["array"]["dtype"], field["array"]["shape"]

    def test_usqcd(self):
        path = case("usqcd-f3.lime")
        self.assert_usqcd(path)
        self.assertEqual(self.shape(path), ("gauge", ">c8", [4, 4, 4, 4, 4, 3, 3]))
        self.assertIn(b"\ngauge configuration USQCD_F3_ColorMatrix (record 5)\n",
                      self.run_ok(["lime", "info", path]))
        for kind in "nersc", "milc", "openqcd", "ildg":
            out = os.path.join(self.tempdir(), "out")
            self.run_ok(["lime", "convert", "--to", kind, path, out])
            self.assert_usqcd(out)
        self.assert_header(self.run_ok(["lime", "cat", path, "5.nersc"]))

    @needs_fuse
    def test_usqcd_in_a_mount(self):
        mount = self.mount(case("usqcd-f3.lime"))
        self.assert_usqcd(mount.path)
        for name in "conf.nersc", "conf.milc", "conf.openqcd", "scidac-binary-data.nersc":
            path = self.write("copy", limetest.read(mount.join(name)))
            self.assert_usqcd(path)
        self.assert_header(limetest.read(mount.join("conf.nersc")))
        with open(mount.join("scidac-binary-data.npy"), "rb") as file:
            self.assertIn(b"'shape': (4, 4, 4, 4, 4, 3, 3)", file.read(128))

    def test_bad_link(self):
        path = case("qdp-d3-badlink.lime")
        result = self.physics(path, status=1)
        self.assertEqual((result["state"], result["bad_links"]), ("bad", 1))
        bad = result["first_bad"]
        self.assertEqual((bad["site"], bad["direction"]), ([0, 2, 0, 0], "z"))
        self.assertAlmostEqual(bad["deviation"], 55.8, 1)
        done = self.fails(["lime", "check", "--physics", path],
                          "site 0 2 0 0 (x y z t), direction z")
        self.assertIn(b"configurations: 1 bad\n", done.stdout)
        self.run_ok(["lime", "check", "--data", path])  # its checksum is right

    def test_fat(self):
        result = self.physics(case("fat.lime"), status=1)
        self.assertEqual((result["state"], result["bad_links"]), ("bad", 1024))

    def test_spinor(self):
        path = case("quda-spinor.lime")
        self.assertEqual(self.shape(path), ("field", ">c16", [4, 4, 4, 4, 4, 3]))
        self.assertIn(b"configurations: none\n", self.run_ok(["lime", "check", "--physics", path]))

    def test_not_examined(self):
        """lime check reports data without a description as unverified."""
        for name, ordinal in ("only-data.ildg", 1), ("xlf-and-data.ildg", 2):
            done = run(["lime", "check", "--physics", case(name)])
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f": record {ordinal}: unverified: no metadata describe it\n".encode(),
                          done.stdout)
            self.assertIn(b"; configurations: 1 unverified\n", done.stdout)


class Formats(limetest.TestCase):
    def lime(self, *args, status=0):
        super().lime(*args, status=status)
        return self.out, self.err

    def test_data_without_a_format(self):
        for name, ordinal in ("only-data.ildg", 1), ("xlf-and-data.ildg", 2):
            for option in (), ("--data",), ("--strict",):
                _, err = self.lime("check", *option, case(name), status=1)
                self.assertIn(f"record {ordinal}: no ildg-format describes these data", err)
                self.assertEqual(err.count("no ildg-format"), 1)

    def test_an_optional_element_that_cannot_be_read(self):
        out, err = self.lime("check", "--data", case("spins-empty.lime"))
        self.assertIn("record 3: an optional element of the metadata cannot be read and is "
                      "ignored: spins", err)
        self.assertIn("checksums: 1 right", out)
        self.lime("check", "--strict", case("spins-empty.lime"), status=1)

    def test_links_that_a_format_cannot_hold(self):
        """lime convert creates a file only if lime can read it back."""
        directory = self.tempdir()
        out = os.path.join(directory, "out")
        _, err = self.lime("convert", "--to", "openqcd", case("fat.lime"), out, status=1)
        self.assertIn("not SU(3) matrices do not fit into this format", err)
        self.assertEqual(os.listdir(directory), [])
        for form in "nersc", "milc", "ildg":
            _, err = self.lime("convert", "--to", form, case("fat.lime"), out + form)
            self.assertIn("warning: 1024 links deviate from SU(3)", err)
            self.lime("check", "--data", out + form)
            self.lime("convert", "--to", "milc", out + form, out + form + ".milc")
        data = set()
        for form in "nersc", "milc", "ildg":
            data.add(limetest.read(out + form + ".milc")[96:]) # without the date
        self.assertEqual(len(data), 1)

    def test_a_header_without_a_usable_sum(self):
        directory = self.tempdir()
        out = os.path.join(directory, "out.nersc")
        _, err = self.lime("convert", case("zero-sums.milc"), out, status=1)
        self.assertIn("the header has no usable checksum", err)
        self.assertIn("--ignore-checksum", err)
        self.assertEqual(os.listdir(directory), [])
        _, err = self.lime("convert", "--ignore-checksum", case("zero-sums.milc"), out)
        self.assertIn("warning: the header has no usable checksum", err)
        self.lime("check", "--data", "--physics", out)
        checked, err = self.lime("check", "--data", case("zero-sums.milc"), status=3)
        self.assertIn("unverified: the header has no usable checksum", checked)
        self.assertNotIn("do not match the checksum", err)

    def test_a_wrong_sum_that_is_ignored(self):
        directory = self.tempdir()
        for name in "bad-sum.nersc", "bad-plaq.nersc":
            for form in "ildg", "openqcd":
                out = os.path.join(directory, name + form)
                _, err = self.lime("convert", "--to", form, case(name), out, status=1)
                self.assertIn("--ignore-checksum", err)
                _, err = self.lime("convert", "--ignore-checksum", "--to", form, case(name), out)
                self.assertIn("warning: the data may be damaged", err)
                self.lime("check", "--data", "--physics", out, status=None)
                self.lime("convert", "--to", "nersc", out, out + ".nersc")


if __name__ == "__main__":
    limetest.main()
