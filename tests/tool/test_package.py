"""Debian packages: built twice with the same bytes, installed, used, and purged without a
trace."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import debian
import limetest

INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install"


@limetest.check_all
@limetest.needs_fuse
@unittest.skipUnless(limetest.STRESS, "long: make stress")
class Packages(debian.TestCase):
    def files(self, root):
        """Returns the files that programs and packages may have left, without those of apt."""
        found = self.run_inside(root, "find /bin /boot /etc /home /lib /opt /root /sbin /srv /usr "
                                      "/var/lib -xdev -not -path '/var/lib/apt/*' "
                                      "-not -path '/var/lib/dpkg/*'", 300)
        return set(found.splitlines())

    def build(self, root, directory):
        """Builds the packages in a directory and moves them to /debs; returns their sums."""
        self.run_inside(root, f"mkdir -p {directory} /debs && cp -a /src {directory}/limefs && "
                              f"cd {directory}/limefs && dpkg-buildpackage -b -uc -us", 3600)
        self.run_inside(root, f"mv {directory}/*.deb /debs", 60)
        return self.run_inside(root, "cd /debs && sha256sum *.deb", 60)

    def build_twice(self, suite):
        """Returns the directory of the packages."""
        root = self.debian(suite)
        self.run_inside(root, f"apt-get -q update && {INSTALL} dpkg-dev lintian && "
                              "apt-get -q -y build-dep ./", 1800)
        first = self.build(root, "/first")
        self.assertEqual(len(first.splitlines()), 9)
        self.assertEqual(self.build(root, "/second/time"), first)
        # A first upload would close a bug of Debian's list of wanted packages.
        self.run_inside(root, "lintian --pedantic --allow-root --fail-on error,warning,pedantic "
                              "--suppress-tags initial-upload-closes-no-bugs /debs/*.deb", 900)
        return os.path.join(root, "debs")

    def use(self, packages, suite):
        """Installs, tests and purges them in a system that has nothing of the build."""
        root = self.debian(suite)
        self.run_inside(root, f"apt-get -q update && {INSTALL} gcc pkgconf libc6-dev mpi-default-dev"
                              " mpi-default-bin libisal-dev fuse3 python3 python3-numpy", 1800)
        shutil.copytree(packages, os.path.join(root, "debs"))
        before = self.files(root)
        installed = self.run_inside(root, f"dpkg-query -W -f '${{Package}} ' ; {INSTALL} /debs/*.deb"
                                          " >/dev/null", 1800).split()
        for test in ("mount", "library"):
            self.run_inside(root, f"mkdir -p /t && AUTOPKGTEST_TMP=/t debian/tests/{test}; "
                                  "status=$?; rm -r /t; exit $status", 600)
        self.run_inside(root, "apt-get -q -y purge $(dpkg-query -W -f '${Package} ' | tr ' ' '\\n' |"
                              f" grep -vxF '{chr(10).join(installed)}')", 600)
        self.assertEqual(self.files(root) - before, set())

    def test_debian(self):
        for suite in debian.SUITES:
            with self.subTest(suite=suite):
                self.use(self.build_twice(suite), suite)


if __name__ == "__main__":
    limetest.main()
