"""Programs and libraries are built with hardening options."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest  # noqa: E402

LEMON = os.path.join(limetest.B, "lib", "liblemonio.so")


def built():
    found = [os.path.join(limetest.BIN, name) for name in sorted(os.listdir(limetest.BIN))]
    found = [path for path in found if not os.path.islink(path)]
    return found + ([LEMON] if os.path.exists(LEMON) else [])


@unittest.skipIf(limetest.SANITIZED, "sanitizers bring their own")
@unittest.skipUnless(shutil.which("readelf"), "needs readelf")
class Hardening(limetest.TestCase):
    def read(self, path, *what):
        return self.run_ok(["readelf", "-W", *what, path]).decode()

    def test_addresses_are_random_and_tables_read_only(self):
        for path in built():
            with self.subTest(path):
                self.assertRegex(self.read(path, "-h"), r"Type:\s+DYN")
                self.assertIn("GNU_RELRO", self.read(path, "-l"))
                self.assertRegex(self.read(path, "-d"), r"FLAGS.*NOW")

    def test_stacks_are_not_executable(self):
        for path in built():
            with self.subTest(path):
                self.assertRegex(self.read(path, "-l"), r"GNU_STACK.*RW ")

    def test_overflows_are_detected(self):
        for path in built():
            with self.subTest(path):
                symbols = self.read(path, "--dyn-syms")
                self.assertIn("__stack_chk_fail", symbols)
                self.assertRegex(symbols, r"__\w+_chk")


if __name__ == "__main__":
    limetest.main()
