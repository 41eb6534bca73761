"""A store that does not answer, for a part of a tree: the rest of it goes on."""

import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import limetest
import mpitest
import writelib
from limetest import put

MIB = 1 << 20
DATA = bytes(range(256)) * (4 * MIB // 256)

# What hangs: whatever touches a container that nobody has looked at yet; then one that is open.
ASKED = ("import os, sys\n"
         "for path in sys.argv[1:]:\n"
         "    with open(path, 'rb') as file: data = file.read()\n"
         "    os.stat(path)\n"
         "    print(len(data))\n")
SETS = "import os, sys; os.utime(sys.argv[1], (1000000000, 1000000000))"


@limetest.needs_fuse
class Hanging(writelib.TestCase):
    def setUp(self):
        super().setUp()
        self.top = self.tempdir()
        for directory in ("hung", "fine"):
            os.mkdir(os.path.join(self.top, directory))
            for name in "ab":
                put(os.path.join(self.top, directory, name),
                    limetest.container([("data", DATA), ("last", b"text")]))
        self.faults = faults.Faults(os.path.join(self.top, "hung"))

    def ask(self, *paths):
        child = subprocess.Popen([sys.executable, "-c", ASKED, *paths], stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        return child

    @contextlib.contextmanager
    def hung(self, call, **how):
        """This call of the daemon, in the directory, until the end of the `with`."""
        self.faults.arm(faults.DAEMON, call, 1, 0, faults.HANG, **how)
        try:
            yield
        finally:
            self.faults.disarm()

    def hangs_at(self, mount, call, *before):
        """Others are served while one waits."""
        for path in before:
            self.assertEqual(self.ask(mount.join(path)).wait(300), 0)
        with self.hung(call, lasts=True):
            waiting = self.ask(mount.join("hung/a/data"))
            writelib.until(lambda: self.faults.struck or waiting.poll() is not None, 300)
            hung = self.faults.struck > 0
            other = self.ask(mount.join("fine/a/data"), mount.join("fine/b/last"))
            self.assertEqual(other.communicate(timeout=300)[0], b"%d\n4\n" % len(DATA), call)
            self.assertEqual(os.listdir(mount.join("fine/b")), ["001-data", "002-last"])
            for name in os.listdir(mount.join("fine")):
                os.stat(mount.join("fine", name))
            with open(mount.join("fine/a/last"), "r+b") as file:
                file.write(b"TEXT")
            if hung:
                self.assertIsNone(waiting.poll(), call)
        self.assertEqual(waiting.communicate(timeout=300)[0], b"%d\n" % len(DATA), call)
        return hung

    def calls(self, calls, *opts):
        """Which of them did hang."""
        met = set()
        for call in calls:
            for before in ((), ("hung/a/data",), ("hung/a/data", "hung/b/data")):
                with self.rw(self.top, "max_open=1", "attr_timeout=0", "entry_timeout=0", *opts,
                             env=self.faults.environment(mpitest.environment()),
                             timeout=60) as mount:
                    if opts:
                        writelib.until(lambda: b'"serving"' in os.getxattr(
                            mount.path, "user.limefs.stats"), 300)
                    if self.hangs_at(mount, call, *before):
                        met.add(call)
        return met

    def test_look_ups_go_on(self):
        met = self.calls(("fstat", "fstatat", "openat2", "open", "pread", "cachestat", "dup"))
        self.assertLessEqual({"fstat", "openat2", "pread"}, met)

    def test_another_name_of_the_directory(self):
        with self.rw(self.top, "attr_timeout=1000", "entry_timeout=1000",
                     env=self.faults.environment()) as mount:
            os.stat(mount.join("hung"))
            with self.hung("fstatat"):
                waiting = self.ask(mount.join("hung/a/last"))
                writelib.until(lambda: self.faults.struck, 300)
                other = self.ask(mount.join("hung/b/last"))
                writelib.until(lambda: other.poll() is not None, 60)
                self.assertIsNone(waiting.poll())
            self.assertEqual(other.communicate(timeout=300)[0], b"4\n")
            self.assertEqual(waiting.communicate(timeout=300)[0], b"4\n")

    def test_times_of_a_container(self):
        """They are set while its headers are read."""
        with self.rw(self.top, "attr_timeout=1000", "entry_timeout=1000",
                     env=self.faults.environment()) as mount:
            path = mount.join("hung/a")
            os.stat(path)
            with self.hung("pread"):
                listing = subprocess.Popen(["ls", path], stdout=subprocess.DEVNULL)
                writelib.until(lambda: self.faults.struck, 300)
                setting = subprocess.Popen([sys.executable, "-c", SETS, path])
                writelib.until(lambda: setting.poll() is not None, 60)
                self.assertIsNone(listing.poll())
            self.assertEqual(setting.wait(300), 0)
            self.assertEqual(listing.wait(300), 0)
            self.assertEqual(os.stat(path).st_mtime, 1000000000)

    def test_with_a_job(self):
        mpitest.need_job(self)
        calls = {"fstat", "openat2"}
        self.assertEqual(self.calls(calls, "ranks=1", "forward_from=1M", "extent=1M", "window=8M"),
                         calls)


if __name__ == "__main__":
    limetest.main()
