"""debian - a minimal Debian in a directory, with a copy of this tree, to install and run things in."""

import os
import shutil
import subprocess

import limetest

SUITES = ("bookworm", "trixie")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
PROXIES = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}


def mirror():
    """Returns the package mirror that this machine uses, or None."""
    listed = limetest.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"]).stdout.decode()
    return next((uri for uri in listed.split() if uri.rstrip("/").endswith("/debian")), None)


class TestCase(limetest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("debootstrap"):
            self.skipTest("needs root and debootstrap")
        if limetest.SANITIZED:
            self.skipTest("the same with sanitizers")

    def debian(self, suite):
        """Installs a base system with sudo, a user named user and a copy of this tree in /src."""
        root, uri = os.path.join(self.tempdir(), suite), mirror()
        if not uri:
            self.skipTest("no mirror of Debian is configured")
        made = limetest.run(["debootstrap", "--variant=minbase", "--include=sudo", suite, root,
                             uri], timeout=900)
        if made.returncode != 0:
            self.skipTest(f"debootstrap: {made.stdout.decode().splitlines()[-1:]}")
        acquire = limetest.run(["apt-config", "dump", "Acquire"], check=True).stdout
        with open(os.path.join(root, "etc/apt/apt.conf.d/90-here"), "wb") as file:
            file.write(acquire)
        for name in ("resolv.conf", "hosts"):  # a host waits to resolve its own name
            shutil.copy("/etc/" + name, os.path.join(root, "etc", name))
        os.mkdir(os.path.join(root, "src"))
        with subprocess.Popen(["tar", "-C", limetest.REPO, "--exclude=./build*", "--exclude=./.git",
                               "-c", "."], stdout=subprocess.PIPE) as tar:
            limetest.run(["tar", "-C", os.path.join(root, "src"), "-x"], stdin=tar.stdout,
                         check=True)
        os.symlink("/proc/self/mounts", os.path.join(root, "etc/mtab"))  # fusermount3 needs it
        limetest.put(os.path.join(root, "etc/sudoers.d/user"), b"user ALL=NOPASSWD: ALL\n")
        self.run_inside(root, "useradd -m user && chown -R user /src", 60)
        limetest.run(["mount", "--bind", root, root], check=True)  # some tests unshare mounts
        self.addCleanup(limetest.run, ["umount", "-l", root])
        limetest.run(["mount", "-t", "proc", "proc", root + "/proc"], check=True)
        self.addCleanup(limetest.run, ["umount", "-l", root + "/proc"])
        limetest.run(["mount", "-t", "sysfs", "-o", "ro", "sysfs", root + "/sys"], check=True)
        self.addCleanup(limetest.run, ["umount", "-l", root + "/sys"])
        limetest.run(["mount", "--rbind", "--make-rslave", "/dev", root + "/dev"], check=True)
        self.addCleanup(limetest.run, ["umount", "-R", "-l", root + "/dev"])
        fuse = os.path.join(root, "root/fuse")  # any user may open it
        limetest.run(["mknod", "-m", "666", fuse, "c", "10", "229"], check=True)
        limetest.run(["mount", "--bind", fuse, root + "/dev/fuse"], check=True)
        return root

    def run_inside(self, root, command, timeout, user="root"):
        done = limetest.run(["chroot", root, "su", user, "-c", f"cd /src && {command}"],
                            env={"PATH": PATH, **PROXIES}, timeout=timeout)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode()[-3000:])
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            self.assertNotIn(f" {root}/tmp/", mounts.read())
        return done.stdout.decode()
