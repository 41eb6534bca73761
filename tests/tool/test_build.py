"""What make says if limefs can't be built here; the archive of the sources."""

import os
import re
import shutil
import sys
import tarfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest


class Refused(limetest.TestCase):
    def make(self, *args):
        """Runs make, which must fail; returns its messages."""
        done = limetest.run(["make", "-C", limetest.REPO, f"B={self.tempdir()}", *args])
        self.assertNotEqual(done.returncode, 0)
        return done.stderr.decode()

    def test_packages(self):
        said = self.make("require", "NEEDS=expat:1 fuse3:99 nothing-like-it:1.2")
        self.assertRegex(said, r"missing or too old: fuse3 >= 99 \(here: \d[\d.]*\), "
                               r"nothing-like-it >= 1.2, which .* run `make deps`")
        self.assertIn("missing: no-pkg-config; run", self.make("require", "PKG=no-pkg-config"))

    def test_machine_and_compiler(self):
        for macros, expected in ((("-U__SIZEOF_POINTER__", "-D__SIZEOF_POINTER__=4"),
                                  "needs a 64-bit machine"),
                                 (("-U__clang__", "-U__GNUC__", "-D__GNUC__=9"),
                                  "needs gcc 10 or clang 14"),
                                 (("-D__clang__=1", "-U__clang_major__", "-D__clang_major__=13"),
                                  "needs gcc 10 or clang 14")):
            said = self.make("CPPFLAGS=" + " ".join(macros), "all")
            self.assertIn(expected, said)
            self.assertNotIn("limefile.h", said)


@unittest.skipUnless(shutil.which("git") and os.path.exists(os.path.join(limetest.REPO, ".git")),
                     "needs the git repository")
class Dist(limetest.TestCase):
    def pack(self):
        directory = self.tempdir()
        self.run_ok(["make", "-C", limetest.REPO, f"B={directory}", "dist"])
        (name,) = os.listdir(directory)
        return os.path.join(directory, name)

    def test_same_bytes_and_all_files(self):
        packed = self.pack()
        self.assertEqual(limetest.read(packed), limetest.read(self.pack()))
        listed = self.run_ok(["git", "-C", limetest.REPO, "ls-tree", "-r", "--name-only", "HEAD"])
        top = os.path.basename(packed).removesuffix(".tar.gz")
        with tarfile.open(packed) as tar:
            self.assertEqual(sorted(info.name for info in tar if not info.isdir()),
                             sorted(f"{top}/{name}" for name in listed.decode().splitlines()))

    @limetest.check_all
    def test_builds_without_a_network(self):
        packed, directory = self.pack(), self.tempdir()
        if limetest.run(["unshare", "-n", "true"]).returncode != 0:
            self.skipTest("needs root")
        self.run_ok(["tar", "-x", "-f", packed, "--strip-components=1"], cwd=directory)
        self.run_ok(["unshare", "-n", "make", "-s", "-j2", "all", "tests"], cwd=directory,
                    timeout=1800)
        self.run_ok(["unshare", "-n", "tests/run", "tests/tool/test_ls.py"], cwd=directory,
                    env={**os.environ, "B": os.path.join(directory, "build")}, timeout=600)


@unittest.skipUnless(shutil.which("reuse"), "needs reuse")
class License(limetest.TestCase):
    @limetest.check_all
    def test_of_each_file_is_known(self):
        version = self.run_ok(["reuse", "--version"]).decode()
        if int(re.search(r"\d+", version)[0]) < 4:
            self.skipTest("REUSE.toml needs reuse 4")
        self.run_ok(["reuse", "--root", limetest.REPO, "lint"])


if __name__ == "__main__":
    limetest.main()
