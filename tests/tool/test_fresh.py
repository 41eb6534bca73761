"""The README's two commands on a minimal Debian; headers of other Debian releases."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import debian
import limetest
from debian import SUITES, mirror


class Headers(limetest.TestCase):
    """The daemon compiles with headers of other releases."""

    CC = os.environ.get("CC", "cc")
    PACKAGES = ("libc6-dev", "libfuse3-dev", "linux-libc-dev")
    KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

    def compile(self, *options):
        sources = glob.glob(os.path.join(limetest.REPO, "src/fuse/*/*.c"))
        self.assertTrue(sources)
        layers = [directory for layer in ("lime", "fuse", "mpi/wire")
                  for directory, _, _ in os.walk(os.path.join(limetest.REPO, "src", layer))
                  if os.path.basename(directory) == "include"]
        fuse = limetest.run(["pkg-config", "--cflags", "fuse3"]).stdout.decode().split()
        done = limetest.run([self.CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                             "-D_FILE_OFFSET_BITS=64", "-DLIMEFS_VERSION=\"0\"",
                             "-DFUSE_USE_VERSION=312", *("-I" + layer for layer in layers),
                             *options, *(word.replace("-I", "-isystem", 1) for word in fuse),
                             *sources], timeout=300)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""), options)

    def apt_get(self, root, *args):
        setting = {"Dir::State": root, "Dir::State::Status": root + "/status", "Dir::Cache": root,
                   "Dir::Etc::SourceList": root + "/sources.list", "APT::Sandbox::User": "root",
                   "Dir::Etc::SourceParts": "/dev/null", "Acquire::Languages": "none",
                   "Acquire::http::Timeout": "20"}
        options = [f"-o{name}={value}" for name, value in setting.items()]
        try:
            done = limetest.run(["apt-get", "-q", *options, *args], cwd=root, timeout=300)
        except subprocess.TimeoutExpired:
            self.skipTest("the mirror of Debian does not answer")
        if done.returncode != 0:
            self.skipTest(f"apt-get {args[0]}: {done.stderr.decode().splitlines()[-1:]}")

    @limetest.check_all
    def test_the_next_debian(self):
        uri, root = shutil.which("apt-get") and mirror(), self.tempdir()
        if not uri or not os.path.exists(self.KEYS):
            self.skipTest("no mirror of Debian is configured")
        for name in ("lists", "archives"):
            os.makedirs(os.path.join(root, name, "partial"))
        with open(root + "/status", "w"), open(root + "/sources.list", "w") as sources:
            sources.write(f"deb [signed-by={self.KEYS}] {uri} {SUITES[1]} main\n")
        self.apt_get(root, "update")
        self.apt_get(root, "download", *self.PACKAGES)
        for package in glob.glob(root + "/*.deb"):
            limetest.run(["dpkg-deb", "-x", package, root + "/x"], check=True)
        machine = limetest.run([self.CC, "-print-multiarch"], check=True).stdout.decode().strip()
        found = [root + "/x/usr/include" + part for part in ("/fuse3", "/" + machine, "")]
        self.compile(*(f"-isystem{directory}" for directory in found))


@limetest.check_all
@limetest.needs_fuse
class Fresh(debian.TestCase):
    def demo(self, suite):
        root = self.debian(suite)
        self.assertFalse(os.path.exists(os.path.join(root, "usr/bin/make")))
        shown = self.run_inside(root, "scripts/demo", 900)
        self.assertIn("same bytes as in the container", shown)
        self.assertIn("conf.0001: good: 5 records", shown)
        again = self.run_inside(root, "scripts/demo", 900)
        self.assertNotIn("installing", again)

    def test_demo(self):
        self.demo(SUITES[0])

    @unittest.skipUnless(limetest.STRESS, "long: make stress")
    def test_demo_of_the_next_debian(self):
        self.demo(SUITES[1])

    @unittest.skipUnless(limetest.STRESS, "long: make stress")
    def test_check(self):
        for suite in SUITES:
            with self.subTest(suite=suite):
                shown = self.run_inside(self.debian(suite), "scripts/check", 5400)
                self.assertIn("Result: PASS", shown)
                print(f"# {suite}:", *shown.splitlines()[-2:])


if __name__ == "__main__":
    limetest.main()
