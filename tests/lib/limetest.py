"""limetest - the base of all Python tests: TAP, containers made by hand, mounts.

A test file is

    import os, sys
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
    import limetest

    class Something(limetest.TestCase):
        def test_it(self):
            self.assertEqual(limetest.run(["lime", "ls", path]).returncode, 0)

    if __name__ == "__main__":
        limetest.main()

Environment: B (build directory, absolute; default <repo>/build), SAN (the sanitizers in B), STRESS
(non-empty: the long runs), SHORT (non-empty: skip what check_all decorates), LIMETEST_TIMEOUT
(seconds for one test).
"""

import atexit
import concurrent.futures
import contextlib
import csv
import errno
import faulthandler
import fcntl
import functools
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import typing
import unittest
import uuid

REPO = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
B = os.path.abspath(os.environ.get("B") or os.path.join(REPO, "build"))
BIN = os.path.join(B, "bin")
HELPERS = os.path.join(B, "helpers")
CORPUS = os.path.join(REPO, "tests", "data", "corpus")
CASES = os.path.join(REPO, "tests", "data", "cases")
SANITIZED = bool(os.environ.get("SAN"))
STRESS = bool(os.environ.get("STRESS"))
# The sanitizer has its own thread and files, and delays a signal to the next call that it knows.
not_with_thread_sanitizer = unittest.skipIf("thread" in os.environ.get("SAN", ""),
                                            "not with the thread sanitizer")

MAGIC = 0x456789AB
HEADER_BYTES = 144
# Factor for every wait and limit: the machine may be busy, and sanitized programs are several
# times slower.
SLOWNESS = 16 if SANITIZED else 8
# tests/run sets this exit status for sanitizer reports; no program uses it.
SANITIZER_EXIT = 99
NO_FUSE = "needs /dev/fuse"

# At each start, Open MPI would look for other networks for half a second.
os.environ.setdefault("OMPI_MCA_pml", "ob1")


def manifest():
    """Returns the corpus, a dict for each record: the columns of MANIFEST.tsv (numbers as int),
    `path` and `ordinal`."""
    rows = []
    ordinals = {}
    with open(os.path.join(CORPUS, "MANIFEST.tsv"), encoding="ascii", newline="") as table:
        for row in csv.DictReader(table, delimiter="\t"):
            for column in ("message", "record", "MB", "ME", "bytes", "padbytes"):
                row[column] = int(row[column])
            ordinals[row["file"]] = row["ordinal"] = ordinals.get(row["file"], 0) + 1
            row["path"] = os.path.join(CORPUS, row["file"])
            rows.append(row)
    return rows


def need_linux(test, *version):
    if tuple(map(int, os.uname().release.split(".")[:2])) < version:
        test.skipTest(f"needs Linux {'.'.join(map(str, version))}")


# ---- containers made by hand, valid or not ----


def _bytes(type):
    return type.encode() if isinstance(type, str) else bytes(type)


def header(type, nbytes, mb, me, *, magic=MAGIC, version=1, flags=None, reserved=0,
           raw_type=None):
    """Returns 144 bytes. `flags` replaces mb and me, `raw_type` the NUL-padded type."""
    if flags is None:
        flags = (0x80 if mb else 0) | (0x40 if me else 0)
    field = _bytes(type)[:128].ljust(128, b"\0") if raw_type is None else raw_type
    assert len(field) == 128, "raw_type is 128 bytes"
    return struct.pack(">IHBBQ", magic, version, flags, reserved, nbytes % (1 << 64)) + field


def record(type, data, mb, me, *, padding=None, **overrides):
    """Returns a whole record. `padding`: the bytes after the data (default: the correct padding);
    the overrides are header()'s, and nbytes."""
    nbytes = overrides.pop("nbytes", len(data))
    if padding is None:
        padding = bytes(-len(data) % 8)
    return header(type, nbytes, mb, me, **overrides) + bytes(data) + padding


def _message(items):
    last = len(items) - 1
    return b"".join(record(type, data, i == 0, i == last)
                    for i, (type, data) in enumerate(items))


def container(items):
    """Returns records in order. An item is (type, data), a run of which makes one message; a list
    of these, a separate message; (type, data, mb, me); or raw bytes."""
    out, run_of_pairs = [], []

    def flush():
        if run_of_pairs:
            out.append(_message(run_of_pairs))
            run_of_pairs.clear()

    for item in items:
        if isinstance(item, tuple) and len(item) == 2:
            run_of_pairs.append(item)
            continue
        flush()
        if isinstance(item, list):
            out.append(_message(item))
        elif isinstance(item, tuple):
            out.append(record(*item))
        else:
            out.append(bytes(item))
    flush()
    return b"".join(out)


# ---- containers read without the library ----

_HEADER = struct.Struct(">IHBBQ128s")


class Record(typing.NamedTuple):
    type: bytes
    data: bytes
    mb: bool
    me: bool
    header: int  # the offset of its header

    @property
    def name(self):
        """The type as text."""
        return self.type.decode()

    @property
    def at(self):
        """The offset of its data."""
        return self.header + HEADER_BYTES


class BadContainer(AssertionError):
    """The bytes violate the format."""


def _record_at(data, at):
    """Returns the record at this offset, the offset of the next one, and whether it deviates."""
    if len(data) - at < HEADER_BYTES:
        raise BadContainer(f"offset {at}: {len(data) - at} bytes are not a header")
    magic, version, flags, reserved, nbytes, field = _HEADER.unpack_from(data, at)
    if (magic, version) != (MAGIC, 1):
        raise BadContainer(f"offset {at}: no header: {data[at:at + 16].hex()}")
    begin = at + HEADER_BYTES
    if nbytes > len(data) - begin:
        raise BadContainer(f"offset {at}: {nbytes} bytes of data do not end before the file")
    type, _, rest = field.partition(b"\0")
    end = begin + nbytes
    after = end + -nbytes % 8
    record = Record(type, data[begin:end], bool(flags & 0x80), bool(flags & 0x40), at)
    wrong = flags & 0x3F or reserved or rest.strip(b"\0") or data[end:after] != bytes(after - end)
    return record, after, bool(wrong)


def whole_records(data):
    """Returns all records up to the first invalid one, and the offset after them."""
    found, at = [], 0
    with contextlib.suppress(BadContainer):
        while at < len(data):
            record, at, _ = _record_at(data, at)
            found.append(record)
    return found, min(at, len(data))


def records(data, strict=True):
    """Returns all records of a container. Raises BadContainer if it has anything else, or, with
    strict, if it deviates from the format."""
    found, at = [], 0
    while at < len(data):
        begin = at
        record, at, wrong = _record_at(data, at)
        if strict and (wrong or at > len(data)):
            raise BadContainer(f"offset {begin}: reserved bits, bytes after the type, or padding")
        if strict and record.mb != (not found or found[-1].me):
            raise BadContainer(f"offset {begin}: MB is {record.mb} after {found[-1:]}"[:200])
        found.append(record)
    if strict and found and not found[-1].me:
        raise BadContainer("the last record lacks ME")
    return found


def records_of(path, strict=True):
    with open(path, "rb") as file:
        return records(file.read(), strict)


# ---- locks ----


def lock(file):
    """Locks an open container, a file or a descriptor, as limefile_lock() does."""
    OFD_SETLK = 37  # some Python versions lack the name
    fcntl.fcntl(file, OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


# ---- programs ----


def program(name):
    """Returns the path of a program: a bare name is looked up in BIN, then among the helpers."""
    name = os.fspath(name)
    if os.sep not in name:
        for directory in (BIN, HELPERS, os.path.join(REPO, "tests", "helpers")):
            if os.path.exists(os.path.join(directory, name)):
                return os.path.join(directory, name)
    return name


def json_lines(text):
    """Returns the values of a text with one JSON value in each line."""
    return [json.loads(line) for line in text.splitlines()]


def run(args, timeout=60, check=False, **kw):
    """subprocess.run: bytes, output captured, no input by default, timeout times SLOWNESS. A
    sanitizer's report is an assertion failure whatever status the caller expects."""
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    if "input" not in kw:
        kw.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([program(args[0]), *args[1:]], timeout=timeout * SLOWNESS, **kw)
    if SANITIZED and done.returncode in (SANITIZER_EXIT, -6):
        raise AssertionError(f"sanitizer report from {args}: {(done.stderr or b'').decode()}")
    if check and done.returncode != 0:
        raise AssertionError(f"{args}: exit {done.returncode}: "
                             f"{(done.stderr or b'').decode(errors='replace')}")
    return done


# ---- cleanup after a test ----

_current = None  # the running test
_late = contextlib.ExitStack()  # cleanups of what is made outside of any test
atexit.register(_late.close)


def read_terminal(ours):
    """Returns the terminal's output until its other end is closed everywhere; closes `ours`."""
    shown = b""
    try:
        while more := os.read(ours, 4096):
            shown += more
    except OSError:  # EIO: the end of a terminal
        pass
    os.close(ours)
    return shown


def run_on_terminal(args, **kw):
    """run() with stdout on a terminal, for some KB; returns the process and the output."""
    ours, theirs = os.openpty()
    done = run(args, stdout=theirs, **kw)
    os.close(theirs)
    return done, read_terminal(ours)


def _cleanup(function, *args):
    if _current is not None:
        _current.addCleanup(function, *args)
    else:
        _late.callback(function, *args)


def mounts_under(path):
    """Returns the mount points at or below `path`, the innermost first. `path` is resolved: a
    lookup would block on a daemon that hangs."""
    path = os.fspath(path)
    found = []
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            point = line.split(b" ")[4].decode("unicode_escape").encode("latin-1")
            point = os.fsdecode(point)
            if point == path or point.startswith(path + os.sep):
                found.append(point)
    return sorted(found, key=len, reverse=True)


def _remove_tree(path):
    # Never walk into a remaining mount: it may be writable.
    for point in mounts_under(path):
        _detach(point)
    shutil.rmtree(path, onerror=lambda _f, p, _e: _make_removable(p, path))
    if os.path.exists(path):
        shutil.rmtree(path, ignore_errors=True)


def _make_removable(path, tree):
    with contextlib.suppress(OSError):
        if path != tree:  # the parent of the tree is shared
            os.chmod(os.path.dirname(path), 0o700)
        if not os.path.islink(path):
            os.chmod(path, 0o700)


def tempdir():
    """Creates a directory, removed at the end of the test (outside of tests: of the program)."""
    path = os.path.realpath(tempfile.mkdtemp(prefix="limetest-"))
    _cleanup(_remove_tree, path)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def put(path, data, mode="wb"):
    """Writes the bytes to the file (mode "ab": appends them); returns its path."""
    with open(path, mode) as file:
        file.write(data)
    return path


@contextlib.contextmanager
def descriptor(path, flags=os.O_RDONLY, mode=0o644):
    """Opens a descriptor for the body of the `with`."""
    fd = os.open(path, flags, mode)
    try:
        yield fd
    finally:
        os.close(fd)


def drop_cache(path, at=0):
    """Drops the file's pages from `at` on from memory, where the file system supports that."""
    with descriptor(path) as fd:
        os.fsync(fd)
        os.posix_fadvise(fd, at, 0, os.POSIX_FADV_DONTNEED)


# ---- threads ----


def at_once(*calls):
    """Runs each call, a tuple (function, *args), in its own thread; returns their values."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [job.result() for job in [pool.submit(*call) for call in calls]]


@contextlib.contextmanager
def in_background(function, *args, threads=1):
    """Calls the function repeatedly in other threads during the body of the `with`."""
    stop = threading.Event()

    def loop():
        while not stop.is_set():
            function(*args)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(loop) for _ in range(threads)]
        try:
            yield
        finally:
            stop.set()
        for job in jobs:
            job.result()


# ---- mounts ----


@functools.lru_cache(maxsize=None)
def can_mount():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return os.geteuid() == 0 or shutil.which("fusermount3") is not None


def needs_fuse(test):
    """Decorates a test method or class: skipped, and counted by tests/run, without /dev/fuse."""
    return unittest.skipUnless(can_mount(), NO_FUSE)(test)


def check_all(test):
    """Decorates a test method or class that `make check` leaves to `make check-all`."""
    return unittest.skipIf(os.environ.get("SHORT"), "make check-all")(test)


def _detach(point):
    for command in (["fusermount3", "-u", "-z", point], ["umount", "-l", point]):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=20).returncode == 0:
                return True
    return False


def _wait(condition, timeout, pause=0.005):
    """Polls until `condition` returns a true value, and returns it; a false one after timeout."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def is_alive(pid):
    """Whether the process runs. If it does not, all its files are closed."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _processes_with(setting):
    """Returns the ids of living processes that started with this NAME=value in the environment."""
    found = []
    entry_bytes = b"\0" + os.fsencode(setting) + b"\0"
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if entry_bytes in b"\0" + environ.read() + b"\0":
                        found.append(int(entry))
    return found


class Mount:
    """`limefs [-o opts] source mountpoint`, mounted from __enter__ (or start()) to __exit__ (or
    stop()), at most to the end of the test. Can be used as a path.

    path: the mount point; process: the finished limefs command."""

    def __init__(self, source, mountpoint=None, opts=None, args=(), timeout=20, env=None,
                 prefix=()):
        self.source = os.fspath(source)
        self.path = os.path.realpath(mountpoint or tempdir())
        self.opts = ",".join(opts) if isinstance(opts, (list, tuple)) else opts
        self.args = list(args)
        self.prefix = list(prefix)  # a program to run it under
        self.timeout = timeout * SLOWNESS
        self.env = env
        self.process = None
        self._token = f"LIMETEST_MOUNT={uuid.uuid4().hex}"

    def __fspath__(self):
        return self.path

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def join(self, *names):
        return os.path.join(self.path, *names)

    def command(self):
        options = ["-o", self.opts] if self.opts else []
        return [*self.prefix, program("limefs"), *options, *self.args, self.source, self.path]

    def environ(self):
        name, value = self._token.split("=")
        return {**(os.environ if self.env is None else self.env), name: value}

    def start(self):
        """Mounts; raises AssertionError with limefs's output on failure. A second call, as from
        `with`, does nothing."""
        if self.process:
            return self
        _cleanup(self._give_up)
        # The daemon inherits stderr: a pipe would stay open, so the output goes to a file.
        with tempfile.TemporaryFile() as output:
            try:
                self.process = subprocess.run(self.command(), env=self.environ(), stdout=output,
                                              stdin=subprocess.DEVNULL, timeout=self.timeout,
                                              stderr=subprocess.STDOUT)
            except subprocess.TimeoutExpired as error:
                raise AssertionError(f"limefs was not ready after {self.timeout} s") from error
            output.seek(0)
            self.words = output.read().decode(errors="replace")
        if self.process.returncode != 0:
            raise AssertionError(f"limefs: exit {self.process.returncode}: {self.words}")
        if not self.mounted():
            raise AssertionError("limefs returned 0 but nothing is mounted")
        return self

    def mounted(self):
        return self.path in mounts_under(self.path)

    def pids(self):
        return _processes_with(self._token)

    @property
    def pid(self):
        """The daemon's process id, or None."""
        return next(iter(self.pids()), None)

    def usage(self):
        """Returns the targets of the daemon's descriptors, except those of /dev/fuse (one for each
        thread), and its resident memory in bytes."""
        names, pid = [], self.pid
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed since
                names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        pages = int(read(f"/proc/{pid}/statm").split()[1])
        return [name for name in names if name != "/dev/fuse"], pages * mmap.PAGESIZE

    def stop(self):
        """Unmounts and waits for the daemon's end; raises AssertionError if it doesn't end."""
        if self.mounted():
            command = ["fusermount3", "-u", self.path]
            if shutil.which(command[0]) is None:
                command = ["umount", self.path]
            # EBUSY passes when a process that is closing a file has finished.
            done = _wait(lambda: subprocess.run(command, stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL,
                                                timeout=self.timeout).returncode == 0, 5)
            if not done:
                _detach(self.path)
                self._kill()
                raise AssertionError(f"{self.path} could not be unmounted: busy")
        if not _wait(lambda: not self.pids(), self.timeout):
            self._kill()
            raise AssertionError("limefs still runs after the unmount")

    def _kill(self):
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        _wait(lambda: not self.pids(), 5)

    def _give_up(self):
        """Cleans up silently after a failed test."""
        for _ in range(10):  # several mounts on one point, or one that stays
            if not (self.mounted() and _detach(self.path)):
                break
        if not _wait(lambda: not self.pids(), 2):
            self._kill()


class Foreground:
    """`limefs -f` on a new mount point, path; stopped at the end of the test. prefix: a program to
    run it under."""

    def __init__(self, source, *args, prefix=()):
        self.path, self._log = tempdir(), os.path.join(tempdir(), "log")
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                [*prefix, program("limefs"), "-f", *args, source, self.path],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        _cleanup(self._give_up)
        if not _wait(lambda: mounts_under(self.path), 60 * SLOWNESS):
            raise AssertionError(f"limefs -f is not mounted: {self.words()}")

    def join(self, *names):
        return os.path.join(self.path, *names)

    def words(self):
        """Returns its output so far."""
        return read(self._log).decode()

    def end(self, number=signal.SIGTERM):
        """Sends the signal and returns the exit status."""
        self.process.send_signal(number)
        return self.process.wait(60 * SLOWNESS)

    def _give_up(self):
        self.process.kill()
        self.process.wait()
        if mounts_under(self.path):
            _detach(self.path)


@contextlib.contextmanager
def valgrind(test, source, *args):
    """Runs a Foreground under valgrind, which must report no error."""
    if SANITIZED or not shutil.which("valgrind"):
        test.skipTest("needs valgrind and no sanitizer")
    log = os.path.join(tempdir(), "valgrind")
    daemon = Foreground(source, *args, prefix=[
        "valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite,indirect",
        "--error-exitcode=9", f"--log-file={log}"])
    yield daemon
    code, words = daemon.end(), read(log).decode()
    test.assertEqual(code, 0, words)
    test.assertNotRegex(words, "lost in|Invalid|uninitialised")


# ---- TAP ----


class TestCase(unittest.TestCase):
    """unittest's, with helpers for files, mounts and programs."""

    maxDiff = 2000
    longMessage = True

    def tempdir(self):
        return tempdir()

    def write(self, name, data):
        """Writes a file of these bytes in a new directory; returns its path."""
        path = os.path.join(tempdir(), name)
        put(path, data)
        return path

    def mount(self, source, *args, **kw):
        """Returns a started Mount."""
        return Mount(source, *args, **kw).start()

    def run_ok(self, args, **kw):
        """run() of a program that must succeed; returns its standard output."""
        return run(args, check=True, **kw).stdout

    def lime(self, *args, status=0, **kw):
        """Runs lime, which must exit with this status (None: any). Returns its standard output and
        stores it in self.out, and its standard error in self.err."""
        done = run(["lime", *args], **kw)
        self.out, self.err = done.stdout.decode(), done.stderr.decode()
        if status is not None:
            self.assertEqual(done.returncode, status, self.out + self.err)
        return self.out

    def assertErrno(self, codes, function, *args, **kw):
        codes = codes if isinstance(codes, tuple) else (codes,)
        with self.assertRaises(OSError) as caught:
            function(*args, **kw)
        got = caught.exception.errno
        self.assertIn(got, codes, f"{errno.errorcode.get(got)}, not "
                                  f"{[errno.errorcode[code] for code in codes]}")

    def fails(self, args, *texts, status=1, out=None, **kw):
        """run() of a program that must exit with this status (None: any but 0), with all of `texts`
        on its standard error and, if set, `out` as its output; returns the process."""
        done = run(args, **kw)
        self.assertTrue(done.returncode != 0 if status is None else done.returncode == status, done)
        for text in texts:
            self.assertIn(text, done.stderr.decode(errors="replace"))
        if out is not None:
            self.assertEqual(done.stdout, out, args)
        return done


def _comment(stream, text):
    for line in text.rstrip("\n").split("\n"):
        stream.write(f"# {line}\n")
    stream.flush()


class _Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.failed = False
        self._verdict = None
        self._watchdog = None

    def startTest(self, test):
        global _current
        super().startTest(test)
        _current = test
        self._verdict = ""
        limit = int(os.environ.get("LIMETEST_TIMEOUT") or 1200) * (SLOWNESS // 8)
        self._watchdog = threading.Timer(limit, self._bite, [test, limit])
        self._watchdog.daemon = True
        self._watchdog.start()

    def stopTest(self, test):
        global _current
        self._watchdog.cancel()
        _current = None
        self._line(self._name(test), self._verdict)
        super().stopTest(test)

    def _name(self, test):
        return test.id().replace("__main__.", "").replace("#", "")

    def _line(self, name, verdict):
        self.number += 1
        if verdict == "fail":
            self.failed = True
            print(f"not ok {self.number} - {name}", flush=True)
        else:
            print(f"ok {self.number} - {name}{verdict or ''}", flush=True)
        self._verdict = None

    def _bite(self, test, limit):
        """The test hangs: print its stack, remove its mounts, exit with a failure."""
        print(f"not ok {self.number + 1} - {self._name(test)} (no end after {limit} s)",
              flush=True)
        _comment(sys.stderr, f"{self._name(test)}: no end after {limit} s; all threads:")
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        for function, args, kw in reversed(test._cleanups):
            if getattr(function, "__name__", "") == "_give_up":
                with contextlib.suppress(Exception):
                    function(*args, **kw)
        os._exit(1)

    def _fail(self, test, error):
        self._verdict = "fail"
        _comment(sys.stderr, f"{self._name(test)}\n" + "".join(traceback.format_exception(*error)))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._outside(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._outside(test, err)

    def _outside(self, test, err):
        self._fail(test, err)
        if _current is None:  # setUpClass and such
            self._line(self._name(test), "fail")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._fail(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if self._verdict != "fail":
            self._verdict = f" # SKIP {reason}"
        if reason == NO_FUSE and os.environ.get("LIMETEST_SKIPS"):
            with open(os.environ["LIMETEST_SKIPS"], "a", encoding="utf-8") as skips:
                skips.write(f"{self._name(test)}\n")
        if _current is None:
            self._line(self._name(test), self._verdict)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._verdict = "fail"


def main():
    """Runs the TestCases of the main module, or those named on the command line."""
    faulthandler.enable()
    loader = unittest.TestLoader()
    module = sys.modules["__main__"]
    names = sys.argv[1:]
    suite = loader.loadTestsFromNames(names, module) if names \
        else loader.loadTestsFromModule(module)
    result = _Tap()
    suite.run(result)
    try:
        _late.close()
    except Exception:  # a cleanup that fails is a failure like any other
        _comment(sys.stderr, traceback.format_exc())
        result._line("nothing is left behind", "fail")
    print(f"1..{result.number}", flush=True)
    sys.exit(1 if result.failed else 0)
