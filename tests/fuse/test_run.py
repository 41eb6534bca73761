"""limefs-run reads records directly from the container, with the same results as the mount."""

import array
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import numpython
import test_ranks
import users
import writelib
from fakejob import FakeJob
from limetest import put, read

numpython.need("numpy")

LIBRARY = os.path.join(limetest.B, "lib", "liblimefs-run.so")
PYTHON = sys.executable
SIZE = 3_000_000  # of a record: not a multiple of the page size
RECORD = 20_000_000 + 4321  # of a record large enough for a job
REPORT = re.compile(rb"limefs-run: (\S+): (\d+) bytes read directly,"
                    rb" (\d+) bytes through the mount")


def environ(**more):
    """Disable ASan's check of the link order: the library has no sanitizers."""
    options = os.environ.get("ASAN_OPTIONS", "")
    return {**os.environ, "LIMEFS_RUN_REPORT": "1",
            "ASAN_OPTIONS": f"{options}:verify_asan_link_order=0", **more}


def run(args, *, env=None, **kw):
    """Run limefs-run; done.direct and done.through are the bytes that all its processes read."""
    done = limetest.run(["limefs-run", limetest.program(args[0]), *args[1:]],
                        env=environ(**(env or {})), **kw)
    reports = REPORT.findall(done.stderr)
    done.direct = sum(int(found[1]) for found in reports)
    done.through = sum(int(found[2]) for found in reports)
    return done


def tagged_data(tag, size=SIZE):
    """Return data in which each eight bytes contain the tag and their offset."""
    first = tag << 48
    numbers = array.array("Q", range(first, first + size + 8, 8))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()[:size]


def make_stable(path, *records):
    """Write a container of `records`, if any, and wait until its times are older than a clock tick,
    so that a mount trusts them."""
    if records:
        put(path, limetest.container(records))
    writelib.let_time_pass(path)
    return path


@limetest.needs_fuse
class Calls(limetest.TestCase):
    """tests/helpers/run-calls.c compares each call with the same call on a plain file."""

    # (step, mount options, whether bytes are read directly). None: not checked, because a step that
    # closes all descriptors closes the report's, too.
    STEPS = (
        *((step, None, True) for step in ("calls", "dups", "unseen", "forks", "shares", "executes",
                                          "passes", "threads", "signals", "kernel")),
        ("taken", None, None), ("close_all", None, None), ("streams", None, False),
        *((step, "rw", False) for step in ("calls", "dups", "streams", "kernel")),
        ("calls", "verify=stream", False))

    def setUp(self):
        self.data = tagged_data(0)
        self.plain = self.write("plain", self.data)
        self.container = make_stable(f"{self.tempdir()}/c.lime", ("first", b"some text"),
                                     ("data", self.data), ("last", tagged_data(5)))

    def test_each_step(self):
        for opts, steps in itertools.groupby(self.STEPS, lambda row: row[1]):
            with limetest.Mount(self.container, opts=opts) as mount:
                for step, _, is_direct in steps:
                    with self.subTest(step, opts=opts):
                        done = run(["run-calls", step, mount.join("data"), self.plain],
                                   timeout=120)
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                        if is_direct is not None:
                            self.assertEqual(done.direct > 0, is_direct, done.stderr)
                        if is_direct and step in ("calls", "shares"):
                            self.assertEqual(done.through, 0)

    def test_edges(self):
        """tests/helpers/run-edges.c prints the same with and without the library, also errors."""
        with limetest.Mount(self.container) as mount:
            plain = limetest.run(["run-edges", mount.join("data")], env=environ(), timeout=120)
            done = run(["run-edges", mount.join("data")], timeout=120)
        self.assertEqual((plain.returncode, done.returncode), (0, 0), plain.stderr + done.stderr)
        self.assertGreater(plain.stdout.count(b"\n"), 100)
        self.assertEqual(done.stdout.splitlines(), plain.stdout.splitlines())
        self.assertGreater(done.direct, 0)

    @unittest.skipIf(limetest.SANITIZED, "sanitizers change errno")
    def test_errno_at_the_start(self):
        """A C program starts with errno 0, although the library has checked closed descriptors."""
        with limetest.Mount(self.container) as mount:
            done = run(["run-calls", "start", mount.join("data"), self.plain])
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipIf(limetest.SANITIZED, "sanitizers make other system calls")
    def test_filter(self):
        """tests/helpers/run-filter.c dies by a system call that the manual does not list."""
        for more in ((), ("threads",)):
            with self.subTest(more), limetest.Mount(self.container) as mount:
                args = ["run-filter", mount.join("data"), *more]
                self.run_ok(args, timeout=120)
                done = run(args, timeout=120)
                self.assertEqual((done.returncode, done.through), (0, 0), done.stderr)
                self.assertGreater(done.direct, 0)

    def test_races_with_other_threads(self):
        """tests/helpers/run-races.c runs other threads between any two system calls of a read."""
        for step in ("replaced", "taken", "closed"):
            with self.subTest(step), limetest.Mount(self.container) as mount:
                args = ["run-races", step, mount.join("data"), self.plain]
                self.run_ok(args, timeout=120)
                done = run(args, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@limetest.needs_fuse
class Programs(limetest.TestCase):
    def setUp(self):
        self.data = tagged_data(7)
        self.plain = self.write("plain", self.data)
        self.directory = self.tempdir()
        for name in ("a", "b"):
            make_stable(os.path.join(self.directory, name), ("info", b"about"), ("data", self.data))

    def check(self, *args, through=0, **kw):
        done = run(list(args), **kw)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(done.direct, 0, done.stderr)
        if through is not None:
            self.assertEqual(done.through, through)
        return done.stdout

    def test_programs(self):
        with limetest.Mount(self.directory) as mount:
            record, other = mount.join("a", "data"), mount.join("b", "002-data")
            self.check("cmp", record, self.plain)
            self.assertEqual(self.check("cmp", record, other), b"")
            self.assertEqual(self.check("cat", record), self.data)
            self.assertEqual(self.check("dd", f"if={record}", "bs=12345"), self.data)
            self.assertEqual(self.check("sh", "-c", f"tail -c 100000 < {record}"),
                             self.data[-100000:])
            out = os.path.join(self.tempdir(), "out")
            self.check("cp", record, out)
            self.assertEqual(read(out), self.data)
            packed = self.check("tar", "-C", mount.path, "-cf", "-", "a", through=len(b"about"))
            with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
                self.assertEqual(tar.extractfile("a/002-data").read(), self.data)

    @unittest.skipUnless(shutil.which("rsync"), "needs rsync")
    def test_rsync(self):
        with limetest.Mount(self.directory) as mount:
            to = self.tempdir()
            self.check("rsync", "-r", mount.path + "/", to, through=2 * len(b"about"))
            self.assertEqual(read(os.path.join(to, "b", "002-data")), self.data)

    def test_lime(self):
        """lime and C-LIME's command read a container that is the data of a record."""
        inner = limetest.container([("x", b"x" * 100), ("y", self.data)])
        outer = make_stable(os.path.join(self.tempdir(), "outer.lime"), ("inner", inner))
        with limetest.Mount(outer) as mount:
            for command in (["lime", "cat", mount.join("inner"), "y"],
                            ["lime_extract_record", mount.join("inner"), "1", "2", "out"]):
                with self.subTest(command[0]):
                    to = self.tempdir()
                    out = self.check(*command, cwd=to)
                    if not out.startswith(self.data[:8]):
                        out = read(os.path.join(to, "out"))
                    self.assertEqual(out, self.data)

    @unittest.skipUnless(numpython.has("numpy"), "needs numpy")
    def test_exports(self):
        """Exported data that are the record's own bytes are read directly, and their header through
        the mount; computed data are not read directly."""
        path = os.path.join(self.tempdir(), "cfg")
        self.run_ok(["make-config", "--lattice", "8,8,8,16", path])
        make_stable(path)
        name = "ildg-binary-data"
        code = ("import numpy, os, sys\n"
                "path, plain = sys.argv[1:]\n"
                "with open(plain, 'rb') as file: data = file.read()\n"
                "want = numpy.load(plain)\n"
                "with open(path, 'rb') as file: assert file.read() == data\n"
                "with open(path, 'rb', buffering=0) as file:\n"
                "    assert file.read() == data\n"
                "    at = file.seek(-50, os.SEEK_END)\n"
                "    assert file.read() == data[at:] and file.read() == b''\n"
                "fd = os.open(path, os.O_RDONLY)\n"
                "for at in (0, 1, 127, 128, 129, 5000, *(len(data) - n for n in (3000, 1, 0))):\n"
                "    for n in (1, 127, 128, 129, 4000, 700000):\n"
                "        assert os.pread(fd, n, at) == data[at:at + n], (at, n)\n"
                "        parts = [bytearray(n // 3 + 1) for _ in range(3)]\n"
                "        got = os.preadv(fd, parts, at)\n"
                "        assert b''.join(parts)[:got] == data[at:at + got], (at, n)\n"
                "        assert got == min(3 * (n // 3 + 1), len(data) - at)\n"
                "if path.endswith('.npy'):\n"
                "    assert numpy.array_equal(numpy.load(path), want)\n"
                "    assert numpy.array_equal(numpy.fromfile(path, want.dtype, offset=128),\n"
                "                             want.ravel())\n"
                "    assert numpy.array_equal(numpy.load(path, mmap_mode='r'), want)\n")
        with limetest.Mount(path) as mount:
            for export, is_direct in ((".npy", True), (".le.npy", False), (".h5", None)):
                if not os.path.exists(mount.join(name + export)):
                    self.assertEqual(export, ".h5")
                    continue
                with self.subTest(export):
                    plain = shutil.copyfile(mount.join(name + export),
                                            os.path.join(self.tempdir(), "plain.npy"))
                    if export == ".h5":
                        code = code.replace("want = numpy.load(plain)", "")
                    done = run([PYTHON, "-c", code, mount.join(name + export), plain])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    if is_direct is not None:
                        self.assertEqual(done.direct > 0, is_direct, done.stderr)
                    if is_direct:
                        self.assertGreater(done.direct, 5 * done.through)

    def test_small_records(self):
        with limetest.Mount(self.directory) as mount:
            record = mount.join("a", "info")
            done = run(["cat", record])
            self.assertEqual((done.stdout, done.direct, done.through), (b"about", 0, 5))
            done = run(["cat", record], env={"LIMEFS_RUN_FROM": "1"})
            self.assertEqual((done.stdout, done.direct, done.through), (b"about", 5, 0))

    def test_other_files(self):
        """Plain files are not read directly; files outside of mounts are not reported."""
        path = os.path.join(self.directory, "plain")
        shutil.copy(self.plain, path)
        with limetest.Mount(self.directory) as mount:
            done = run(["cat", path])
            self.assertEqual((done.stdout, done.stderr), (self.data, b""))
            done = run(["cat", mount.join("plain")])
            self.assertEqual((done.stdout, done.direct, done.through), (self.data, 0, SIZE))

    def test_attribute(self):
        """user.limefs.range is not listed; mounts that write or verify do not have it."""
        name = "user.limefs.range"
        for opts, exists in ((None, True), ("rw", False), ("verify=stream", False)):
            with self.subTest(opts), limetest.Mount(self.directory, opts=opts) as mount:
                record = mount.join("a", "data")
                self.assertNotIn(name, os.listxattr(record))
                if not exists:
                    self.assertRaises(OSError, os.getxattr, record, name)
                    continue
                value = os.getxattr(record, name).split(b" ", 12)
                st = os.stat(os.path.join(self.directory, "a"))
                self.assertEqual([int(field) for field in value[1:4]],
                                 [st.st_dev, st.st_ino, st.st_size])
                self.assertEqual(int(value[9]), SIZE)
                self.assertEqual(value[11], b"0")
                self.assertEqual(value[12], os.path.join(self.directory, "a").encode())
                for path in ("a", "a/data.npy"):
                    self.assertRaises(OSError, os.getxattr, mount.join(path), name)

    def test_fsx(self):
        """fsx works on a read-write mount as without the library: no bytes are read directly."""
        path = self.write("w.lime", limetest.container([("data", bytes(300_000))]))
        with limetest.Mount(path, opts="rw") as mount:
            done = run(["fsx", "--steps", "3000", "--seed", "7", "--no-append",
                        mount.join("data")], timeout=200)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(done.direct, 0)


@limetest.needs_fuse
class Places(limetest.TestCase):
    """The container's path or its directory leads to another file than at mount time."""

    def setUp(self):
        self.top = self.tempdir()
        self.directory = os.path.join(self.top, "files")
        os.mkdir(self.directory)
        for name, tag in (("c.lime", 1), ("d.lime", 2)):
            make_stable(os.path.join(self.directory, name), ("data", tagged_data(tag)))

    def cat(self, mount, *, prefix=()):
        """Compare cat with and without the library; return the number of bytes read directly."""
        record = mount.join("c.lime", "data")
        command = [limetest.program("limefs-run"), "cat", record]
        done = limetest.run([*prefix, *command], env=environ())
        plain = limetest.run(["cat", record])
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout),
                         done.stderr)
        self.assertIn(done.stdout, (tagged_data(1), tagged_data(2), b""))
        return sum(int(found[1]) for found in REPORT.findall(done.stderr))

    def test_the_directory_is_renamed(self):
        with limetest.Mount(self.directory) as mount:
            self.assertEqual(self.cat(mount), SIZE)
            os.rename(self.directory, self.directory + ".old")
            self.assertEqual(self.cat(mount), 0)
            os.mkdir(self.directory)
            shutil.copy2(os.path.join(self.directory + ".old", "d.lime"),
                         os.path.join(self.directory, "c.lime"))
            self.assertEqual(self.cat(mount), 0)
            shutil.rmtree(self.directory)
            os.symlink(self.directory + ".old", self.directory)
            self.assertEqual(self.cat(mount), SIZE)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_something_is_mounted_over_it(self):
        """Only the program sees the bind mount; the daemon sees the old directory."""
        other = os.path.join(self.top, "other")
        os.mkdir(other)
        shutil.copy2(os.path.join(self.directory, "d.lime"), os.path.join(other, "c.lime"))
        over = ["unshare", "-m", "sh", "-c",
                'mount --make-rprivate / && mount --bind "$0" "$1" && shift && exec "$@"', other,
                self.directory]
        with limetest.Mount(self.directory) as mount:
            self.assertEqual(self.cat(mount), SIZE)
            self.assertEqual(self.cat(mount, prefix=over), 0)

    def test_empty_environment_and_no_free_descriptor(self):
        """An empty environment changes nothing; without a free descriptor cat reads the mount."""
        with limetest.Mount(self.directory) as mount:
            self.assertEqual(self.cat(mount, prefix=["env", "-i", "LIMEFS_RUN_REPORT=1"]), SIZE)
            self.assertEqual(self.cat(mount, prefix=["prlimit", "--nofile=7:7"]), 0)


@limetest.needs_fuse
class Changes(limetest.TestCase):
    """Another process swaps the two records of the container self.path in each turn: a reader gets
    old data, new data or an error."""

    def layout(self, turn):
        pair = [(name, tagged_data(tag)) for name, tag in (("one", 1), ("two", 2))]
        return limetest.container(pair[::-1] if turn % 2 else pair)

    def setUp(self):
        self.directory = self.tempdir()
        self.path = os.path.join(self.directory, "c.lime")
        put(self.path, self.layout(0))
        make_stable(self.path)

    def in_place(self, turn, cut=False):
        """Clear the magic number first: the file is not a valid container between two layouts."""
        data = self.layout(turn)
        with open(self.path, "r+b", buffering=0) as file:
            file.write(bytes(8))
            if cut:
                os.truncate(file.fileno(), 100_000 + turn)
            os.pwrite(file.fileno(), data[8:], 8)
            os.pwrite(file.fileno(), data[:8], 0)

    def replaced(self, turn):
        os.rename(put(self.path + ".new", self.layout(turn)), self.path)


    READER = (
        "import array, os, sys, time\n"
        "path, tag, code = sys.argv[1], int(sys.argv[2]), 0\n"
        "end = time.monotonic() + float(sys.argv[3])\n"
        "piece = int(sys.argv[4])\n"
        "good = bad = 0\n"
        "while time.monotonic() < end or not good:\n"
        "    try:\n"
        "        with open(path, 'rb', buffering=0) as file:\n"
        "            at = 0\n"
        "            while data := file.read(piece):\n"
        "                got = array.array('Q', data)\n"
        "                for i in range(0, len(got), 499):\n"
        "                    if got[i] != (at + 8 * i | tag << 48):\n"
        "                        sys.exit(f'{at + 8 * i}: {got[i]:x}')\n"
        "                at += len(data)\n"
        "        good += 1\n"
        "    except OSError:\n"
        "        bad += 1\n"
        "print(good, bad)\n")

    def read_during(self, change):
        """Read both records while another thread calls change(turn)."""
        turns = itertools.count(1)

        def change_once():
            turn = next(turns)
            change(turn)
            time.sleep(0.03 * (1 + turn % 4))

        with limetest.Mount(self.directory) as mount, limetest.in_background(change_once):
            readers = [subprocess.Popen(
                [limetest.program("limefs-run"), PYTHON, "-c", self.READER,
                 mount.join("c.lime", name), str(tag), "4", piece], env=environ(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for name, tag in (("one", 1), ("two", 2)) for piece in ("200000", "4096")]
            for reader in readers:
                out, err = reader.communicate(timeout=300)
                self.assertEqual(reader.returncode, 0, out + err)
                self.assertTrue(REPORT.search(err), err)
                print("#", out.decode().strip(), REPORT.search(err)[0].decode())

    def test_in_place(self):
        self.read_during(self.in_place)

    def test_replaced(self):
        self.read_during(self.replaced)

    def test_cut(self):
        self.read_during(lambda turn: self.in_place(turn, cut=True))

    def reader(self, record):
        """Start a process; read_next(n) reads n bytes: the first 16 in hex or an errno's name."""
        code = ("import errno, os, sys\n"
                "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
                "for line in sys.stdin:\n"
                "    try:\n"
                "        print(os.read(fd, int(line)).hex()[:32], flush=True)\n"
                "    except OSError as error:\n"
                "        print(errno.errorcode[error.errno], flush=True)\n")
        process = subprocess.Popen([limetest.program("limefs-run"), PYTHON, "-c", code, record],
                                   env=environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)

        def read_next(n):
            process.stdin.write(b"%d\n" % n)
            process.stdin.flush()
            return process.stdout.readline().decode().strip()

        return process, read_next

    def test_an_open_record(self):
        """A process with the record open continues or gets ESTALE, as in test_change.py."""
        old = tagged_data(1)
        for change, want in ((self.in_place, "ESTALE"), (self.replaced, old[1600:1616].hex()),
                             (lambda turn: os.truncate(self.path, 1000), "ESTALE"),
                             (lambda turn: os.unlink(self.path), old[1600:1616].hex())):
            self.setUp()
            with self.subTest(change), limetest.Mount(self.directory) as mount:
                process, read_next = self.reader(mount.join("c.lime", "one"))
                self.assertEqual(read_next(800), old[:16].hex())
                self.assertEqual(read_next(800), old[800:816].hex())
                change(1)
                self.assertEqual(read_next(1000), want)
                done = process.communicate()[1]
                self.assertIn(b" 1600 bytes read directly", done)

    def test_a_shared_position(self):
        """Threads that share a descriptor lose no data when reads switch to the mount."""
        code = ("import collections, os, struct, sys, threading\n"
                "fd, all = os.open(sys.argv[1], os.O_RDONLY), collections.Counter()\n"
                "changed = threading.Event()\n"
                "def go_on():\n"
                "    while data := os.read(fd, 4096):\n"
                "        place = struct.unpack('<Q', data[:8])[0] & 0xffffffffffff\n"
                "        all[place] += len(data)\n"
                "        if place == 50 * 4096:\n"
                "            os.rename(sys.argv[2] + '.new', sys.argv[2])\n"
                "            changed.set()\n"
                "        elif place > 100 * 4096:\n"
                "            changed.wait()\n"
                "threads = [threading.Thread(target=go_on) for _ in range(8)]\n"
                "for thread in threads: thread.start()\n"
                "for thread in threads: thread.join()\n"
                "at = 0\n"
                "for place in sorted(all):\n"
                "    if place != at: sys.exit(f'{place} for {at}')\n"
                "    at += all[place]\n"
                "print(at)\n")
        for turn in range(3):
            self.setUp()
            with self.subTest(turn), limetest.Mount(self.directory) as mount:
                put(self.path + ".new", self.layout(1))
                done = run([PYTHON, "-c", code, mount.join("c.lime", "one"), self.path])
                self.assertEqual((done.returncode, done.stdout), (0, b"%d\n" % SIZE), done.stderr)
                self.assertGreater(done.direct, 0)
                self.assertGreater(done.through, 0)


@limetest.needs_fuse
@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Users(limetest.TestCase):
    """The library lets no user read data that the mount denies to the user."""

    def setUp(self):
        self.data = tagged_data(3)
        self.directory = self.tempdir()
        self.path = os.path.join(self.directory, "c.lime")
        make_stable(self.path, ("data", self.data))
        os.chmod(self.path, 0o640)

    def cat(self, record, user):
        return run(["cat", record], user=user, group=user, extra_groups=[])

    def test_user_without_access_to_the_container(self):
        """A user who cannot enter the container's directory reads through the mount, if at all."""
        for mode, want, through in ((0o640, 1, 0), (0o644, 0, SIZE)):
            os.chmod(self.path, mode)
            os.chmod(self.directory, 0o700)
            make_stable(self.path)
            point = self.tempdir()
            os.chmod(point, 0o755)
            with self.subTest(mode), limetest.Mount(self.path, point, opts="allow_other") as mount:
                done = self.cat(mount.join("data"), 12345)
                self.assertEqual(done.returncode, want, done.stderr)
                self.assertEqual(done.direct, 0)
                self.assertEqual(done.through, through)
                if want:
                    self.assertEqual(done.stdout, b"")
                    tried = limetest.run(["getfattr", "-n", "user.limefs.range",
                                          mount.join("data")], user=12345, group=12345,
                                         extra_groups=[]) if shutil.which("getfattr") else None
                    self.assertFalse(tried and tried.stdout)

    def test_user_with_access_to_the_container(self):
        os.chmod(self.path, 0o644)
        os.chmod(self.directory, 0o755)
        make_stable(self.path)
        point = self.tempdir()
        os.chmod(point, 0o755)
        with limetest.Mount(self.path, point, opts="allow_other") as mount:
            done = self.cat(mount.join("data"), 12345)
            self.assertEqual((done.stdout, done.direct), (self.data, SIZE), done.stderr)

    def test_another_users_mount(self):
        """The mount names the file to read, so only programs of the mount's user trust it."""
        top = users.open_directory()
        directory, point = (users.directory(f"{top}/{name}", 65534) for name in ("files", "mnt"))
        shutil.copy(self.path, os.path.join(directory, "c"))
        os.chmod(os.path.join(directory, "c"), 0o644)
        make_stable(os.path.join(directory, "c"))
        plain = put(os.path.join(top, "plain"), self.data)
        script = ("as_user 65534 $0/bin/limefs -o allow_other $1 $2 && "
                  "for number in 65534 54322 0; do as_user $number $0/bin/limefs-run cmp "
                  "$2/c/data $3; done; umount $2")
        done = users.run_with_private_fuse(self, script, directory, point, plain, env=environ())
        reports = REPORT.findall(done.stderr)
        size = str(SIZE).encode()
        self.assertEqual(reports, [(b"cmp", size, b"0"), (b"cmp", b"0", size),
                                   (b"cmp", b"0", size)],
                         done.stdout + done.stderr)


def supported(path):
    """Return whether the kernel reports which pages are in memory (Linux 6.5)."""
    with limetest.Mount(path, opts="job=/nonexistent/socket") as mount:
        return run(["cat", mount.join("data")]).through == 0


@limetest.needs_fuse
class Job(limetest.TestCase):
    """A mount with a job, and not the library, reads records that are not in memory."""

    def setUp(self):
        self.data = tagged_data(1, RECORD)
        self.path = make_stable(os.path.join(self.tempdir(), "c.lime"), ("data", self.data))
        if not supported(self.path):
            self.skipTest("needs cachestat(2)")

    def read(self, mount, **kw):
        """Return True if cat reads the record directly, and False if it reads the mount."""
        done = run(["cat", mount.join("data")], **kw)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout == self.data, done.stderr)
        self.assertIn((done.direct, done.through), ((RECORD, 0), (0, RECORD)))
        return done.through == 0

    def test_record_in_memory(self):
        socket = os.path.join(self.tempdir(), "socket")
        with FakeJob(socket) as job, \
                test_ranks.serving(limetest.Mount(self.path, opts=[
                    f"job={socket}", "forward_from=512K"])) as mount:
            self.assertTrue(self.read(mount))
            self.assertEqual(job.reads, [])
            limetest.drop_cache(self.path)
            self.assertFalse(self.read(mount))
            self.assertNotEqual(job.reads, [])

    def test_record_partly_in_memory(self):
        with limetest.Mount(self.path, opts="job=/nonexistent/socket") as mount:
            limetest.drop_cache(self.path, RECORD // 2)
            self.assertFalse(self.read(mount))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_users_container(self):
        """The kernel reports cached pages only to users with write permission and the owner."""
        os.chmod(os.path.dirname(self.path), 0o755)
        os.chmod(self.path, 0o644)
        make_stable(self.path)
        point = self.tempdir()
        os.chmod(point, 0o755)
        with limetest.Mount(self.path, point,
                            opts=["job=/nonexistent/socket", "allow_other"]) as mount:
            self.assertFalse(self.read(mount, user=12345, group=12345, extra_groups=[]))


class Wrapper(limetest.TestCase):
    def test_messages(self):
        done = limetest.run(["limefs-run", "--help"])
        self.assertEqual(done.returncode, 0)
        self.assertLess(max(len(line) for line in done.stdout.splitlines()), 80)
        self.assertIn(b"limefs-run", self.run_ok(["limefs-run", "--version"]))
        for args, status, message in (([], 125, "no command"), (["--what"], 125, "--help"),
                                      (["/nonexistent"], 127, "No such file"),
                                      (["/"], 126, "Permission denied")):
            self.fails(["limefs-run", *args], message, status=status)

    def test_ld_preload_is_extended(self):
        env = {**os.environ, "LD_PRELOAD": "/nonexistent.so"}
        out = self.run_ok(["limefs-run", "--", "sh", "-c", "echo $LD_PRELOAD"], env=env)
        self.assertEqual(out.decode().strip(), f"{LIBRARY}:/nonexistent.so")

    def test_installed_library(self):
        """The library is in the program's directory; PATH has a link to the program."""
        directory = self.tempdir()
        for path in (limetest.program("limefs-run"), LIBRARY):
            shutil.copy(path, directory)
        link = os.path.join(self.tempdir(), "limefs-run")
        os.symlink(os.path.join(directory, "limefs-run"), link)
        out = self.run_ok([link, "sh", "-c", "echo $LD_PRELOAD"])
        self.assertEqual(out.decode().strip(), os.path.join(directory, "liblimefs-run.so"))
        os.remove(os.path.join(directory, "liblimefs-run.so"))
        self.fails([link, "true"], "liblimefs-run.so: find: no such file", status=125)



if __name__ == "__main__":
    limetest.main()
