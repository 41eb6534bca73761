"""A file system that hangs below one directory of a tree: the rest of the tree works."""

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

# Programs for child processes, which may hang: read whole files, and set a file's times.
READ_FILES = ("import os, sys\n"
              "for path in sys.argv[1:]:\n"
              "    with open(path, 'rb') as file: data = file.read()\n"
              "    os.stat(path)\n"
              "    print(len(data))\n")
SET_TIMES = "import os, sys; os.utime(sys.argv[1], (1000000000, 1000000000))"


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

    def start_reader(self, *paths):
        child = subprocess.Popen([sys.executable, "-c", READ_FILES, *paths], stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        return child

    @contextlib.contextmanager
    def hang(self, call, **options):
        """The daemon's next such call below the directory hangs until the end of the `with`."""
        self.faults.arm(faults.DAEMON, call, 1, 0, faults.HANG, **options)
        try:
            yield
        finally:
            self.faults.disarm()

    def check_hang(self, mount, call, *before):
        """The daemon serves other readers while one hangs; returns whether the call hung."""
        for path in before:
            self.assertEqual(self.start_reader(mount.join(path)).wait(300), 0)
        with self.hang(call, lasts=True):
            waiting = self.start_reader(mount.join("hung/a/data"))
            writelib.until(lambda: self.faults.struck or waiting.poll() is not None, 300)
            hung = self.faults.struck > 0
            other = self.start_reader(mount.join("fine/a/data"), mount.join("fine/b/last"))
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

    def check_calls(self, calls, *opts, job=False):
        """Returns which of the calls hung."""
        hung = set()
        for call in calls:
            for before in ((), ("hung/a/data",), ("hung/a/data", "hung/b/data")):
                with self.rw(self.top, "max_open=1", "attr_timeout=0", "entry_timeout=0", *opts,
                             env=self.faults.environment(mpitest.environment()),
                             timeout=60) as mount:
                    if job:
                        writelib.until(lambda: b'"serving"' in os.getxattr(
                            mount.path, "user.limefs.stats"), 300)
                    if self.check_hang(mount, call, *before):
                        hung.add(call)
        return hung

    def test_each_call(self):
        hung = self.check_calls(("fstat", "fstatat", "openat2", "open", "pread", "cachestat",
                                 "dup"))
        self.assertLessEqual({"fstat", "openat2", "pread"}, hung)

    def test_read_ahead_of_the_daemon(self):
        """The daemon reads ahead if the kernel does so by 128 KiB only."""
        calls = {"fstat", "pread", "cachestat"}
        self.assertEqual(calls, self.check_calls(calls, "readahead=128K"))

    def test_another_name_in_the_directory(self):
        with self.rw(self.top, "attr_timeout=1000", "entry_timeout=1000",
                     env=self.faults.environment()) as mount:
            os.stat(mount.join("hung"))
            with self.hang("fstatat"):
                waiting = self.start_reader(mount.join("hung/a/last"))
                writelib.until(lambda: self.faults.struck, 300)
                other = self.start_reader(mount.join("hung/b/last"))
                writelib.until(lambda: other.poll() is not None, 60)
                self.assertIsNone(waiting.poll())
            self.assertEqual(other.communicate(timeout=300)[0], b"4\n")
            self.assertEqual(waiting.communicate(timeout=300)[0], b"4\n")

    def test_times_of_a_container(self):
        """utime() works while the daemon reads the container's headers."""
        with self.rw(self.top, "attr_timeout=1000", "entry_timeout=1000",
                     env=self.faults.environment()) as mount:
            path = mount.join("hung/a")
            os.stat(path)
            with self.hang("pread"):
                listing = subprocess.Popen(["ls", path], stdout=subprocess.DEVNULL)
                writelib.until(lambda: self.faults.struck, 300)
                setting = subprocess.Popen([sys.executable, "-c", SET_TIMES, path])
                writelib.until(lambda: setting.poll() is not None, 60)
                self.assertIsNone(listing.poll())
            self.assertEqual(setting.wait(300), 0)
            self.assertEqual(listing.wait(300), 0)
            self.assertEqual(os.stat(path).st_mtime, 1000000000)

    def test_with_a_job(self):
        mpitest.need_job(self)
        calls = {"fstat", "openat2"}
        self.assertEqual(calls, self.check_calls(calls, "ranks=1", "forward_from=1M", "extent=1M",
                                                 "window=8M", job=True))


if __name__ == "__main__":
    limetest.main()
