"""writelib - helpers for tests of writing: mounts with `rw`, checks of a changed container, and
small file systems that fill up or fail.
"""

import contextlib
import ctypes
import fcntl
import functools
import mmap
import os
import random
import shutil
import struct
import subprocess
import time

import limetest
import users
from limetest import descriptor, put, read, records, whole_records

MIB = 1 << 20

A = ("first", b"a" * 1000)
B = ("second", b"b" * 2001)
C = ("third", b"c" * 3003)

FALLOC_KEEP_SIZE, FALLOC_PUNCH, FALLOC_INSERT = 1, 2, 32


def some(n, seed=1):
    return random.Random(seed).randbytes(n)


def opened(path, mode, data=None):
    """Opens the file, writes data if any, and closes it."""
    with descriptor(path, mode, 0o644) as fd:
        if data is not None:
            write_all(fd, data)


def let_time_pass(path):
    """Waits until a changed file is no longer suspect for its recent ctime alone."""
    until(lambda: time.time() - os.stat(path).st_ctime > 0.1)


def change_in_two(path, at, values, look):
    """Stores two values into one page and calls look() in between; the file's times are those of
    the first store."""
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    memory[at] = values[0]
    before = os.stat(path).st_ctime_ns
    let_time_pass(path)
    look()
    memory[at] = values[1]
    memory.close()
    assert os.stat(path).st_ctime_ns == before


def sizes(mount):
    return [os.stat(mount.join(name)).st_size for name in sorted(os.listdir(mount))]


def until(what, timeout=20):
    """Waits until what() is true, and returns its value."""
    found = limetest._wait(what, timeout * limetest.SLOWNESS)
    if not found:
        raise AssertionError("timed out")
    return found


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


def pwrite_all(fd, data, at):
    view = memoryview(data)
    while view:
        n = os.pwrite(fd, view, at)
        view, at = view[n:], at + n


def write_direct(fd, data, at=0):
    """Writes in requests of a MiB from page-aligned memory, as O_DIRECT
    requires."""
    with mmap.mmap(-1, len(data)) as buffer:
        buffer[:] = data
        for i in range(0, len(data), MIB):
            pwrite_all(fd, memoryview(buffer)[i:i + MIB], at + i)


def flags(data):
    """Returns MB and ME of each record in the bytes: "MB", "ME", "MBME" or ""."""
    return [("MB" if r.mb else "") + ("ME" if r.me else "") for r in whole_records(data)[0]]


# ---- a writing process ----


class Remote:
    """Calls functions of `os` in a separate process. (A process that forks others, as tests do,
    closes copies of its descriptors in them, which commits.)"""

    def __init__(self, test):
        self._user = users.User(test, os.geteuid())
        self.end = self._user.end

    def __getattr__(self, name):
        return functools.partial(self._user.call, getattr(os, name))

    def kill(self):
        self._user.kill()
        self.end()


# ---- mounts ----


class Mount(limetest.Mount):
    """limetest's; after stop(), its daemon has closed the container."""

    def start(self):
        if not self.process:
            super().start()
            self._daemons = self.pids()
        return self

    def stop(self):
        super().stop()
        self.wait_for_end()

    def wait_for_end(self):
        until(lambda: not any(map(limetest.is_alive, self._daemons)))
        self._daemons = []  # the numbers may be reused soon


# ---- tests ----


class TestCase(limetest.TestCase):
    """limetest's, with a container and writable mounts."""

    OPTS = ()  # more mount options
    ARGS = ()  # more arguments

    def rw(self, source, *opts, **kw):
        """Returns a started writable mount, stopped at the end of the test or of a `with`."""
        kw.setdefault("args", self.ARGS)
        mount = Mount(source, opts=["rw", *self.OPTS, *opts], **kw).start()
        self.addCleanup(mount.stop)
        return mount

    @contextlib.contextmanager
    def written(self, items, *opts):
        """Mounts a container of these items for writing: yields its path and mount; afterwards
        unmounts it, and it must be valid."""
        path = self.write("c.lime", limetest.container(items))
        mount = self.rw(path, *opts)
        yield path, mount
        mount.stop()
        self.assertClean(path)

    def succeeds(self, codes, function, *args):
        """Returns whether the call succeeds; a failure must have one of these codes."""
        try:
            function(*args)
        except OSError as error:
            self.assertIn(error.errno, codes)
            return False
        return True

    def assertClean(self, path):
        """The file is a valid container for the Python reader and for `lime check`."""
        found = records(read(path))
        done = limetest.run(["lime", "check", path])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return found

    def assertBytes(self, got, want, what=""):
        """assertEqual for long bytes, with a short message."""
        if got == want:
            return
        at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b),
                  min(len(got), len(want)))
        self.fail(f"{what}: {len(got)} bytes instead of {len(want)}; the first difference is at "
                  f"{at}: {got[at:at + 24].hex()} instead of {want[at:at + 24].hex()}")

    def assertHolds(self, path, items):
        """The file equals, to the last byte, the container of these items."""
        want = limetest.container(items)
        got = read(path)
        if got != want:
            shown = [[(r.type, len(r.data), r.mb, r.me) for r in whole_records(data)[0]]
                     for data in (got, want)]
            self.assertEqual(shown[0], shown[1])
        self.assertBytes(got, want, path)
        self.assertClean(path)

    def assertHoldsForAll(self, path, items):
        """assertHolds(), also when read by lime, lime pack and a mount."""
        self.assertHolds(path, items)
        want = records(read(path))
        for i, record in enumerate(want, 1):
            self.assertBytes(self.run_ok(["lime", "cat", path, str(i)]), record.data, f"cat {i}")
        parts = os.path.join(self.tempdir(), "parts")
        self.run_ok(["lime", "unpack", path, parts])
        again = os.path.join(self.tempdir(), "again")
        self.run_ok(["lime", "pack", parts, again])
        self.assertBytes(read(again), read(path), "lime pack")
        with limetest.Mount(path) as mount:
            names = sorted(os.listdir(mount))
            self.assertEqual(len(names), len(want))
            for i, (name, record) in enumerate(zip(names, want), 1):
                self.assertTrue(name.startswith(f"{i:03d}-"), name)
                self.assertBytes(read(mount.join(name)), record.data, name)
                self.assertEqual(os.getxattr(mount.join(name), "user.lime.type"), record.type)
                self.assertBytes(read(os.path.join(parts, name)), record.data, f"unpack {name}")

    def packed(self, messages):
        """Returns the output of `lime pack` for [[(type, data), ...], ...]."""
        directory, args = self.tempdir(), []
        for i, message in enumerate(messages):
            args += ["-m"] if i else []
            for j, (type, data) in enumerate(message):
                args += ["-t", type, put(os.path.join(directory, f"{i}.{j}"), data)]
        self.run_ok(["lime", "pack", "-o", os.path.join(directory, "out"), *args])
        return read(os.path.join(directory, "out"))


def as_root(test):
    """Decorates a test that needs root."""
    @functools.wraps(test)
    def wrapped(self, *args, **kw):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        return test(self, *args, **kw)
    return wrapped


# ---- small file systems ----

USER, PROJECT = 0, 2  # kinds of quota


def unmount(point):
    """Unmounts the file system, lazily if a file is still open."""
    for command in (["umount", point], ["umount", "-l", point]):
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          timeout=60).returncode == 0:
            return


class SmallFs:
    """A separate file system for a test. kind: tmpfs, ext3 (its times advance in clock ticks),
    ext4, xfs or btrfs; `test` is skipped without it. features: mkfs options. path: mount point."""

    LEAST = {"tmpfs": 0, "ext3": 4, "ext4": 4, "xfs": 300, "btrfs": 128}  # MiB

    def __init__(self, test, kind, mib, options="", features=()):
        self.test, self.kind, self.options, self.features = test, kind, options, features
        self.mib = max(mib, self.LEAST[kind])
        if os.geteuid() != 0:
            test.skipTest("needs root")
        self.path = os.path.join(limetest.tempdir(), "fs")
        os.mkdir(self.path)
        self.image = None
        if kind == "tmpfs":
            self.options = ",".join(filter(None, [f"size={self.mib}M", options]))
            self._mount()
        else:
            self._make_image()
        test.addCleanup(unmount, self.path)
        os.chmod(self.path, 0o755)

    def _make_image(self):
        program = shutil.which(f"mkfs.{self.kind}", path="/sbin:/usr/sbin:" + os.environ["PATH"])
        if not program:
            self.test.skipTest(f"needs mkfs.{self.kind}")
        self.image = os.path.join(limetest.tempdir(), "image")
        put(self.image, b"")
        os.truncate(self.image, self.mib * MIB)
        extended = ["-q", "-F", "-m", "0"]
        quiet = {"ext3": extended, "ext4": extended, "xfs": ["-q", "-f"], "btrfs": ["-q", "-f"]}
        done = limetest.run([program, *quiet[self.kind], *self.features, self.image])
        if done.returncode != 0:
            self.test.skipTest(f"mkfs.{self.kind}: {done.stderr.decode().strip()}")
        self._mount()

    def _mount(self):
        how = ["-t", "tmpfs", "tmpfs"] if self.kind == "tmpfs" else \
            ["-o", "loop", "-t", self.kind, self.image]
        options = ["-o", self.options] if self.options else []
        done = limetest.run(["mount", *options, *how, self.path])
        if done.returncode != 0:
            self.test.skipTest(f"needs a {self.kind} with {self.options or 'defaults'}: "
                               f"{done.stderr.decode().splitlines()[0]}")

    def join(self, *names):
        return os.path.join(self.path, *names)

    def free(self):
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def limit(self, kind, number, nbytes):
        """Sets a quota of nbytes for the USER or PROJECT `number`."""
        limits = struct.pack("=8QI4x", nbytes // 1024, nbytes // 1024, 0, 0, 0, 0, 0, 0, 1)
        with open("/proc/self/mountinfo", encoding="utf-8") as table:
            device = next(line.split(" - ")[1].split()[1] for line in table
                          if line.split()[4] == self.path)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.quotactl(0x800008 << 8 | kind, device.encode(), number, limits) != 0:  # Q_SETQUOTA
            self.test.skipTest(f"needs quotas on {self.kind}: {os.strerror(ctypes.get_errno())}")

    def give_project(self, path, number):
        """Assigns the project to a directory and to files created in it later."""
        with descriptor(path, os.O_RDONLY) as fd:
            found = bytearray(28)  # struct fsxattr
            fcntl.ioctl(fd, 0x801C581F, found)
            flags, extent, count, _, hint = struct.unpack_from("=5I", found)
            flags |= 0x200 if os.path.isdir(path) else 0  # FS_XFLAG_PROJINHERIT
            struct.pack_into("=5I", found, 0, flags, extent, count, number, hint)
            fcntl.ioctl(fd, 0x401C5820, bytes(found))

    def fill(self, leave=0):
        """Fills the file system up to `leave` bytes; returns the path of the filler."""
        path = self.join("filler")
        with open(path, "ab", buffering=0) as file:
            most = self.free() - leave - 16 * MIB
            if most > 0:
                with contextlib.suppress(OSError):
                    os.posix_fallocate(file.fileno(), 0, most)
                    file.seek(0, os.SEEK_END)
            for block in (MIB, 4096):
                with contextlib.suppress(OSError):
                    while self.free() >= leave + block:
                        file.write(bytes(block))
            with contextlib.suppress(OSError):
                os.fsync(file.fileno())
        return path

    def power_fails(self):
        """Discards everything that is not on the disk yet, as after a power failure."""
        with descriptor(self.path, os.O_RDONLY) as fd:
            fcntl.ioctl(fd, 0x8004587D, struct.pack("I", 2))  # FS_IOC_SHUTDOWN, no log flush

    def comes_back(self):
        """Mounts again after power_fails(); requires that all files are closed."""
        until(lambda: limetest.run(["umount", self.path]).returncode == 0)
        # Another process's mount namespace may keep it a little longer.
        until(lambda: not limetest.run(["losetup", "-j", self.image]).stdout, 60)
        self._mount()
