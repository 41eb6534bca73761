"""The README's two commands on minimal Debian systems; warnings with their headers."""

import glob
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import debian
import limetest
from debian import SUITES, mirror

UNITS = ("scripts/install-deps --for demo && apt-get install -qq libcmocka-dev && "
         "make -s -j$(nproc) units && for test in build/tests/*; do $test 2>&1 || exit; done")
COMMANDS = {"demo": "scripts/demo", "check": "scripts/check", "units": UNITS}
PRINTED = {"demo": "same bytes as in the container", "check": "Result: PASS", "units": "PASSED"}
PLATFORMS = {"bookworm": ("demo", "check"), "trixie": ("demo", "check"),
             "bullseye": ("demo", "units")}


@unittest.skipIf(limetest.SANITIZED, "the same with sanitizers")
class Headers(limetest.TestCase):
    """Sources compile without warnings, also with the headers of the next Debian."""

    PACKAGES = ("libc6-dev", "libexpat1-dev", "libfuse3-dev", "libisal-dev", "libjansson-dev",
                "libssl-dev", "libxml2-dev", "linux-libc-dev")
    KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
    DAEMON = [f"obj/{os.path.relpath(path, limetest.REPO)[:-1]}o"
              for path in glob.glob(os.path.join(limetest.REPO, "src/fuse/*/*.c"))]

    def compile(self, compiler, sysroot=None, objects=None):
        """Compiles the objects, or all of src. sysroot: the headers; None: those of this
        machine."""
        build, env = self.tempdir(), {**os.environ, "MAKEFLAGS": ""}
        if sysroot:
            machine = self.run_ok(["gcc", "-print-multiarch"]).decode().strip()
            env.update(PKG_CONFIG_SYSROOT_DIR=sysroot,
                       PKG_CONFIG_LIBDIR=f"{sysroot}/usr/lib/{machine}/pkgconfig")
            compiler += f" --sysroot={sysroot}"
        targets = [os.path.join(build, name) for name in objects] if objects else ["objects"]
        done = limetest.run(["make", "-s", "-k", f"-j{os.cpu_count()}", "-C", limetest.REPO,
                             f"B={build}", f"CC={compiler}",
                             "CFLAGS=-O2 -fsyntax-only -Werror", *targets],
                            env={**env, "OMPI_CC": compiler}, timeout=600)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""), (compiler, sysroot))

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

    def next_debian(self):
        """Returns a directory with the headers of the next Debian."""
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
        return root + "/x"

    def test_daemon(self):
        self.compile("gcc", objects=self.DAEMON)

    def test_daemon_with_the_next_debian(self):
        self.compile("gcc", self.next_debian(), self.DAEMON)

    @limetest.check_all
    def test_all_of_src(self):
        for sysroot in (None, self.next_debian()):
            for compiler in ("gcc", "clang"):
                with self.subTest(compiler=compiler, sysroot=sysroot):
                    self.compile(compiler, sysroot)


class NoDebian(limetest.TestCase):
    def test_names_of_fedora(self):
        path = self.tempdir()
        for name in ("sed", "sh"):
            os.symlink(shutil.which(name), os.path.join(path, name))
        script = os.path.join(limetest.REPO, "scripts/install-deps")
        done = limetest.run([script, "--for", "build"], env={"PATH": path})
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr.decode(), "dnf install gcc .* fuse3-devel isa-l-devel ")


@limetest.check_all
@limetest.needs_fuse
class Fresh(debian.TestCase):
    def test_demo(self):
        root = self.debian(SUITES[0])
        self.assertFalse(os.path.exists(os.path.join(root, "usr/bin/make")))
        shown = self.run_inside(root, "scripts/demo", 900)
        self.assertIn("same bytes as in the container", shown)
        self.assertIn("conf.0001: good: 5 records", shown)
        again = self.run_inside(root, "scripts/demo", 900)
        self.assertNotIn("installing", again)

    @unittest.skipUnless(limetest.STRESS, "long: make stress, or make platforms")
    def test_platforms(self):
        """Prints a line for each command on each suite; see `make help`."""
        print("# suite     command  user  seconds  packages  result")
        commands = os.environ.get("COMMANDS", "").split()
        for suite in os.environ.get("SUITES", "").split() or PLATFORMS:
            for command in commands or PLATFORMS[suite]:
                for user in ("root", "user") if command != "units" else ("root",):
                    with self.subTest(suite=suite, command=command, user=user):
                        self.platform(suite, command, user)

    def platform(self, suite, command, user):
        root = self.debian(suite)
        count, result = "dpkg-query -f . -W | wc -c", "not ok"
        before, begin = int(self.run_inside(root, count, 60)), time.monotonic()
        try:
            shown = self.run_inside(root, COMMANDS[command], 5400, user)
            self.assertIn(PRINTED[command], shown)
            result = "ok"
        finally:
            packages = int(self.run_inside(root, count, 60)) - before
            print(f"# {suite:9} {command:8} {user:5} {time.monotonic() - begin:7.0f} "
                  f"{packages:9}  {result}", flush=True)


if __name__ == "__main__":
    limetest.main()
