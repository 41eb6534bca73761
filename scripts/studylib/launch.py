"""Starts lime-bench under mpirun, and ends it with all that it has started."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

MARK = "LIMEFS_STUDY"


class Failed(Exception):
    """A run that did not end well; its text is what it said. status: None if it had to be ended;
    answer: what there is all the same, of other back ends."""

    def __init__(self, text, status=None, answer=None):
        super().__init__(text)
        self.status, self.answer = status, answer


class Stopped(Exception):
    """A signal asked to stop."""


class Signals:
    """SIGINT, SIGTERM and SIGHUP are kept until somebody asks: nothing is cut in its middle."""

    def __init__(self):
        self.got = None
        self.before = {}

    def __enter__(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            ignored = signal.getsignal(number) == signal.SIG_IGN
            if not (ignored and number == signal.SIGHUP):  # as it is under nohup
                self.before[number] = signal.signal(number, self.keep)
        return self

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def keep(self, number, _frame):
        self.got = self.got or number

    def check(self):
        if self.got:
            raise Stopped(self.got)


def environment(token):
    """For Open MPI as root, and for more ranks than processors; what the user has set stays."""
    ours = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none"}
    return {**ours, **os.environ, MARK: token}


def bearing(token):
    """Processes that were started with our mark in their environment, as pids."""
    found, mark = [], f"\0{MARK}={token}\0".encode()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
                if mark in b"\0" + file.read() + b"\0":
                    found.append(int(entry))
    return found


def mounts_below(folder):
    """Mount points, the innermost first."""
    found = []
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            point = os.fsdecode(line.split(b" ")[4].decode("unicode_escape").encode("latin-1"))
            if point.startswith(os.path.realpath(folder) + os.sep):
                found.append(point)
    return sorted(found, key=len, reverse=True)


class Launcher:
    def __init__(self, mpirun, program, folder, signals):
        self.mpirun, self.program, self.folder = mpirun, program, folder
        self.signals = signals
        self.token = uuid.uuid4().hex

    def command(self, ranks, arguments):
        """self.program: with the options that it always has."""
        return [*self.mpirun, "-n", str(ranks), *self.program, *arguments,
                os.path.join(self.folder, "data")]

    def run(self, ranks, arguments, limit, tick):
        """lime-bench's answer and the seconds it took. Failed: with what it said, or that it did
        not end within `limit` seconds. Stopped: by a signal, and nothing runs any more."""
        self.clear()
        os.makedirs(self.folder, exist_ok=True)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            begin = time.monotonic()
            process = subprocess.Popen(self.command(ranks, arguments), stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, env=environment(self.token),
                                       start_new_session=True)
            try:
                status = self.wait(process, begin + limit, tick)
            finally:
                self.end(process)
                self.clear()
            wall = time.monotonic() - begin
            out.seek(0)
            err.seek(0)
            return answer_of(status, out.read(), err.read(), limit), wall

    def wait(self, process, end, tick):
        """Its exit status; None when time is up."""
        while time.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=0.2)
            self.signals.check()
            tick()
        return None

    def end(self, process):
        """mpirun ends its ranks when it is told to end; whoever is left after that is killed."""
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
        # lime-bench removes its files and mounts in a process of its own, which is waited for.
        for number, pauses in ((signal.SIGTERM, 500), (signal.SIGKILL, 100)):
            for pid in bearing(self.token):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            for _ in range(pauses):
                if not bearing(self.token):
                    break
                time.sleep(0.02)
        process.wait()

    def clear(self):
        """What a run has left in its folder is removed; a mount that has been left is unmounted
        first."""
        if not os.path.isdir(self.folder):
            return
        for point in mounts_below(self.folder):
            for command in (["fusermount3", "-u", "-z", point], ["umount", "-l", point]):
                with contextlib.suppress(OSError):
                    if subprocess.run(command, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, check=False).returncode == 0:
                        break
        if not mounts_below(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)


def last_words(err):
    """The line that says what is wrong: lime-bench's own rather than mpirun's about it."""
    lines = [line.strip() for line in err.decode(errors="replace").splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("lime-bench:")]
    shown = "".join(c if c.isprintable() else "?" for c in (own or lines or [""])[-1])
    return shown[:400]


def json_of(out):
    """lime-bench's answer; None if there is none."""
    begin = out.find(b"{")
    try:
        answer = json.loads(out[begin:].decode()) if begin >= 0 else None
    except ValueError:
        return None
    good = isinstance(answer, dict) and isinstance(answer.get("results"), list)
    return answer if good else None


def answer_of(status, out, err, limit):
    if status is None:
        raise Failed(f"no end after {limit:.0f} s")
    answer = json_of(out)
    if status != 0:
        raise Failed(last_words(err) or f"exit {status}", status, answer)
    if not answer:
        raise Failed("no JSON with results from lime-bench")
    return answer
