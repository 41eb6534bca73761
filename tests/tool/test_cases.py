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
        """The output and the messages of a command that exits with that status."""
        done = run(["lime", *args])
        self.assertEqual(done.returncode, status, (args, done.stdout, done.stderr))
        return done.stdout.decode(), done.stderr.decode()

    def test_data_without_a_format(self):
        for name, ordinal in ("only-data.ildg", 1), ("xlf-and-data.ildg", 2):
            for option in (), ("--data",), ("--strict",):
                _, err = self.lime("check", *option, case(name), status=1)
                self.assertIn(f"record {ordinal}: no ildg-format describes these data", err)
                self.assertEqual(err.count("no ildg-format"), 1)

    def test_an_optional_element_that_cannot_be_read(self):
        _, err = self.lime("check", "--data", case("spins-empty.lime"), status=0)
        self.assertIn("record 3: an optional element of the metadata cannot be read and is "
                      "ignored: spins", err)
        out, _ = self.lime("check", "--data", case("spins-empty.lime"), status=0)
        self.assertIn("checksums: 1 right", out)
        self.lime("check", "--strict", case("spins-empty.lime"), status=1)


if __name__ == "__main__":
    limetest.main()
