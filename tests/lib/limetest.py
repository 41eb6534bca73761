"""limetest - what the Python tests share: TAP, containers made by hand, mounts.

A test file is

    import os, sys
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
    import limetest

    class Something(limetest.TestCase):
        def test_it(self):
            self.assertEqual(limetest.run(["lime", "ls", path]).returncode, 0)

    if __name__ == "__main__":
        limetest.main()

Environment: B (build directory, absolute; default <repo>/build), SAN (sanitizers it was built
with), STRESS (non-empty: the long runs), SHORT (non-empty: without what is decorated with
check_all), LIMETEST_TIMEOUT (seconds for one test).
"""

import atexit
import concurrent.futures
import contextlib
import csv
import errno
import faulthandler
import fcntl
import functools
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
# It has a thread and files of its own, and delivers a signal at the next call that it knows.
not_with_thread_sanitizer = unittest.skipIf("thread" in os.environ.get("SAN", ""),
                                            "not with the thread sanitizer")

MAGIC = 0x456789AB
HEADER_BYTES = 144
# What every wait and limit is multiplied by: the machine may be busy, and sanitized programs are
# several times slower.
SLOWNESS = 16 if SANITIZED else 8
# Given to the sanitizers by tests/run, so that a report cannot be taken for a program's own exit.
SANITIZER_EXIT = 99
NO_FUSE = "needs /dev/fuse"

# Open MPI looks for networks that there are none of for half a second, at each start.
os.environ.setdefault("OMPI_MCA_pml", "ob1")


def manifest():
    """The corpus, a dict for each record: the columns of MANIFEST.tsv (numbers as int) and
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


# ---- containers made by hand, right or wrong ----


def _bytes(type):
    return type.encode() if isinstance(type, str) else bytes(type)


def header(type, nbytes, mb, me, *, magic=MAGIC, version=1, flags=None, reserved=0,
           raw_type=None):
    """144 bytes. `flags` replaces what mb and me say, `raw_type` the NUL-padded type."""
    if flags is None:
        flags = (0x80 if mb else 0) | (0x40 if me else 0)
    field = _bytes(type)[:128].ljust(128, b"\0") if raw_type is None else raw_type
    assert len(field) == 128, "raw_type is 128 bytes"
    return struct.pack(">IHBBQ", magic, version, flags, reserved, nbytes % (1 << 64)) + field


def record(type, data, mb, me, *, padding=None, **overrides):
    """A whole record. `padding`: the bytes after the data, whatever is right otherwise; the
    overrides are header()'s, and nbytes."""
    nbytes = overrides.pop("nbytes", len(data))
    if padding is None:
        padding = bytes(-len(data) % 8)
    return header(type, nbytes, mb, me, **overrides) + bytes(data) + padding


def _message(items):
    last = len(items) - 1
    return b"".join(record(type, data, i == 0, i == last)
                    for i, (type, data) in enumerate(items))


def container(items):
    """Records one after another. An item is (type, data), a run of which makes one message;
    a list of such, a message of its own; (type, data, mb, me); or bytes, taken as they are."""
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


# ---- containers read by other code than the library's ----

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
    """Not what the format asks for."""


def _record_at(data, at):
    """The whole record at this offset, where the next one begins, and whether it deviates."""
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
    """As many records as can be read, and the offset of the first thing that isn't a record."""
    found, at = [], 0
    with contextlib.suppress(BadContainer):
        while at < len(data):
            record, at, _ = _record_at(data, at)
            found.append(record)
    return found, min(at, len(data))


def records(data, strict=True):
    """All records of a container. BadContainer: something else is in it, or it deviates from the
    format, which not strict allows."""
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
    OFD_SETLK = 37  # not every Python has its name
    fcntl.fcntl(file, OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


# ---- programs ----


def program(name):
    """A bare name stands for the one in BIN, or else for a helper, which is built or a script."""
    name = os.fspath(name)
    if os.sep not in name:
        for directory in (BIN, HELPERS, os.path.join(REPO, "tests", "helpers")):
            if os.path.exists(os.path.join(directory, name)):
                return os.path.join(directory, name)
    return name


def run(args, timeout=60, check=False, **kw):
    """subprocess.run: bytes, output captured, no input unless given, time-out stretched for
    sanitizers. A sanitizer's report is an assertion failure whatever the caller expects."""
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


# ---- what a test leaves behind is taken away ----

_current = None  # the test that runs
_late = contextlib.ExitStack()  # of what was made outside of any test
atexit.register(_late.close)


def read_terminal(ours):
    """All that is shown on the terminal until nobody has it open; which is closed then."""
    shown = b""
    try:
        while more := os.read(ours, 4096):
            shown += more
    except OSError:  # EIO: the end of a terminal
        pass
    os.close(ours)
    return shown


def run_on_terminal(args, **kw):
    """run() with its stdout on a terminal, for some KB: what came of it, and what is shown."""
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
    """Mount points at or below `path` (resolved already: to look at it would wait for a daemon
    that hangs), the innermost first."""
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
    # Never walk into a mount that is still there: it may be writable.
    for point in mounts_under(path):
        _detach(point)
    shutil.rmtree(path, onerror=lambda _f, p, _e: _make_removable(p, path))
    if os.path.exists(path):
        shutil.rmtree(path, ignore_errors=True)


def _make_removable(path, tree):
    with contextlib.suppress(OSError):
        if path != tree:  # what holds the tree is everybody's
            os.chmod(os.path.dirname(path), 0o700)
        if not os.path.islink(path):
            os.chmod(path, 0o700)


def tempdir():
    """A new directory, gone at the end of the test (of the program, outside of tests)."""
    path = os.path.realpath(tempfile.mkdtemp(prefix="limetest-"))
    _cleanup(_remove_tree, path)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def put(path, data, mode="wb"):
    """Writes the bytes to the file, to its end with mode "ab"; returns its path."""
    with open(path, mode) as file:
        file.write(data)
    return path


@contextlib.contextmanager
def descriptor(path, flags=os.O_RDONLY, mode=0o644):
    """A descriptor, closed at the end of the `with`."""
    fd = os.open(path, flags, mode)
    try:
        yield fd
    finally:
        os.close(fd)


def drop_cache(path, at=0):
    """Nothing of the file from there on is in memory, where the file system can do that."""
    with descriptor(path) as fd:
        os.fsync(fd)
        os.posix_fadvise(fd, at, 0, os.POSIX_FADV_DONTNEED)


# ---- threads ----


def at_once(*calls):
    """Runs each call, a tuple (function, *args), in a thread of its own; returns their values."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [job.result() for job in [pool.submit(*call) for call in calls]]


@contextlib.contextmanager
def meanwhile(function, *args, threads=1):
    """Calls the function over and over in other threads, until the end of the `with`."""
    over = threading.Event()

    def loop():
        while not over.is_set():
            function(*args)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(loop) for _ in range(threads)]
        try:
            yield
        finally:
            over.set()
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
    """Asks until `condition` gives something true; False when time is up."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def is_alive(pid):
    """Whether the process runs; of one that does not, all files are closed."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _processes_with(setting):
    """Ids of living processes that were started with this NAME=value in their environment."""
    found = []
    wanted = b"\0" + os.fsencode(setting) + b"\0"
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if wanted in b"\0" + environ.read() + b"\0":
                        found.append(int(entry))
    return found


class Mount:
    """`limefs [-o opts] source mountpoint`, mounted from __enter__ (or start()) to __exit__ (or
    stop()), and unmounted in any case at the end of the test.

    path: the mount point; process: what starting gave; also usable where a path is."""

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
        """Returns when it is mounted; AssertionError with limefs's words if it is not. To start
        one that is started, as `with` does, is no harm."""
        if self.process:
            return self
        _cleanup(self._give_up)
        # A daemon that keeps stderr open would keep a pipe open: its words go to a file.
        with tempfile.TemporaryFile() as words:
            try:
                self.process = subprocess.run(self.command(), env=self.environ(), stdout=words,
                                              stdin=subprocess.DEVNULL, timeout=self.timeout,
                                              stderr=subprocess.STDOUT)
            except subprocess.TimeoutExpired as error:
                raise AssertionError(f"limefs was not ready after {self.timeout} s") from error
            words.seek(0)
            self.words = words.read().decode(errors="replace")
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
        """Of the daemon; None if there is none."""
        return next(iter(self.pids()), None)

    def usage(self):
        """The daemon's descriptors, but those of /dev/fuse, of which each thread has one, as what
        they are open for; and the bytes that it has in memory."""
        names, pid = [], self.pid
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # open only for a moment
                names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        pages = int(read(f"/proc/{pid}/statm").split()[1])
        return [name for name in names if name != "/dev/fuse"], pages * mmap.PAGESIZE

    def stop(self):
        """Unmounts and waits for the daemon's end; AssertionError if it doesn't end."""
        if self.mounted():
            command = ["fusermount3", "-u", self.path]
            if shutil.which(command[0]) is None:
                command = ["umount", self.path]
            # EBUSY passes: somebody is just closing a file.
            done = _wait(lambda: subprocess.run(command, stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL,
                                                timeout=self.timeout).returncode == 0, 5)
            if not done:
                _detach(self.path)
                self._kill()
                raise AssertionError(f"{self.path} could not be unmounted: busy")
        if not _wait(lambda: not self.pids(), self.timeout):
            self._kill()
            raise AssertionError("limefs is still there after its unmounting")

    def _kill(self):
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        _wait(lambda: not self.pids(), 5)

    def _give_up(self):
        """After a failed test: nothing may stay, and nothing is said about it."""
        for _ in range(10):  # one over the other, or one that won't go
            if not (self.mounted() and _detach(self.path)):
                break
        if not _wait(lambda: not self.pids(), 2):
            self._kill()


class Foreground:
    """`limefs -f` on a new mount point, path; ended at the end of the test. prefix: a program to
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
        """What it has said so far."""
        return read(self._log).decode()

    def end(self, number=signal.SIGTERM):
        """Its exit status after the signal."""
        self.process.send_signal(number)
        return self.process.wait(60 * SLOWNESS)

    def _give_up(self):
        self.process.kill()
        self.process.wait()
        if mounts_under(self.path):
            _detach(self.path)


@contextlib.contextmanager
def valgrind(test, source, *args):
    """A Foreground under valgrind, which must find nothing to complain of."""
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
    """unittest's, with shorthands."""

    maxDiff = 2000
    longMessage = True

    def tempdir(self):
        return tempdir()

    def write(self, name, data):
        """A file of these bytes in a directory of its own; its path."""
        path = os.path.join(tempdir(), name)
        put(path, data)
        return path

    def mount(self, source, *args, **kw):
        """A started Mount."""
        return Mount(source, *args, **kw).start()

    def run_ok(self, args, **kw):
        """run(), and the program must succeed; its standard output."""
        return run(args, check=True, **kw).stdout

    def lime(self, *args, status=0, **kw):
        """Runs lime, which must exit with this status (None: any); its standard output, which is
        in self.out, too, as its standard error is in self.err."""
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

    def fails(self, args, *words, status=1, out=None, **kw):
        """run(), and the program must exit with this status (None: any but 0), say these words
        on its standard error and, if `out` is given, write that; what came of it."""
        done = run(args, **kw)
        self.assertTrue(done.returncode != 0 if status is None else done.returncode == status, done)
        for word in words:
            self.assertIn(word, done.stderr.decode(errors="replace"))
        if out is not None:
            self.assertEqual(done.stdout, out, args)
        return done


def _say(stream, text):
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
        """The test hangs: say where, take its mounts away, end the program as failed."""
        print(f"not ok {self.number + 1} - {self._name(test)} (no end after {limit} s)",
              flush=True)
        _say(sys.stderr, f"{self._name(test)}: no end after {limit} s; all threads:")
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        for function, args, kw in reversed(test._cleanups):
            if getattr(function, "__name__", "") == "_give_up":
                with contextlib.suppress(Exception):
                    function(*args, **kw)
        os._exit(1)

    def _fail(self, test, error):
        self._verdict = "fail"
        _say(sys.stderr, f"{self._name(test)}\n" + "".join(traceback.format_exception(*error)))

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
    """Runs the TestCases of the main module (those named on the command line, if any)."""
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
    except Exception:  # what could not be taken away is a failure like any other
        _say(sys.stderr, traceback.format_exc())
        result._line("nothing is left behind", "fail")
    print(f"1..{result.number}", flush=True)
    sys.exit(1 if result.failed else 0)
