"""Inputs on which a released version failed (tests/data/cases), and what is right for them."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from limetest import run

CASES = os.path.join(limetest.REPO, "tests", "data", "cases")


def case(name):
    return os.path.join(CASES, name)


class Formats(limetest.TestCase):
    def lime(self, *args, status=0):
        """The output and the messages of a command that exits with that status (None: any)."""
        done = run(["lime", *args])
        if status is not None:
            self.assertEqual(done.returncode, status, (args, done.stdout, done.stderr))
        return done.stdout.decode(), done.stderr.decode()

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
        """A file appears only if lime itself can read it back."""
        folder = self.tempdir()
        out = os.path.join(folder, "out")
        _, err = self.lime("convert", "--to", "openqcd", case("fat.lime"), out, status=1)
        self.assertIn("not SU(3) matrices do not fit into this format", err)
        self.assertEqual(os.listdir(folder), [])
        for form in "nersc", "milc", "ildg":
            _, err = self.lime("convert", "--to", form, case("fat.lime"), out + form)
            self.assertIn("warning: 1024 links deviate from SU(3)", err)
            self.lime("check", "--data", out + form)
            self.lime("convert", "--to", "milc", out + form, out + form + ".milc")
        data = set()
        for form in "nersc", "milc", "ildg":
            with open(out + form + ".milc", "rb") as again:
                data.add(again.read()[96:]) # without the date
        self.assertEqual(len(data), 1)

    def test_a_header_without_a_usable_sum(self):
        folder = self.tempdir()
        out = os.path.join(folder, "out.nersc")
        _, err = self.lime("convert", case("zero-sums.milc"), out, status=1)
        self.assertIn("the header has no usable sum", err)
        self.assertIn("--ignore-checksum", err)
        self.assertEqual(os.listdir(folder), [])
        _, err = self.lime("convert", "--ignore-checksum", case("zero-sums.milc"), out)
        self.assertIn("warning: the header has no usable sum", err)
        self.lime("check", "--data", "--physics", out)
        checked, err = self.lime("check", "--data", case("zero-sums.milc"), status=3)
        self.assertIn("unverified", checked)
        self.assertNotIn("do not have the checksum", err)

    def test_a_wrong_sum_that_is_ignored(self):
        folder = self.tempdir()
        for name in "bad-sum.nersc", "bad-plaq.nersc":
            for form in "ildg", "openqcd":
                out = os.path.join(folder, name + form)
                _, err = self.lime("convert", "--to", form, case(name), out, status=1)
                self.assertIn("--ignore-checksum", err)
                _, err = self.lime("convert", "--ignore-checksum", "--to", form, case(name), out)
                self.assertIn("warning: the data may be damaged", err)
                self.lime("check", "--data", "--physics", out, status=None)
                self.lime("convert", "--to", "nersc", out, out + ".nersc")


if __name__ == "__main__":
    limetest.main()
