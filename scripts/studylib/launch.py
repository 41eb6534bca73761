"""Runs lime-bench under mpirun and ends all processes that it has started."""

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


class RunError(Exception):
    """A failed run, with its message. status: exit status, None after a timeout; answer: results
    of back ends that succeeded, or None."""

    def __init__(self, text, status=None, answer=None):
        super().__init__(text)
        self.status, self.answer = status, answer


class Stopped(Exception):
    """A signal requests the end of the study."""


class Signals:
    """Records SIGINT, SIGTERM and SIGHUP until check(), so that they interrupt no operation."""

    def __init__(self):
        self.received = None
        self.previous = {}

    def __enter__(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            ignored = signal.getsignal(number) == signal.SIG_IGN
            if not (ignored and number == signal.SIGHUP):  # ignored under nohup
                self.previous[number] = signal.signal(number, self.record)
        return self

    def __exit__(self, *_):
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def record(self, number, _frame):
        self.received = self.received or number

    def check(self):
        if self.received:
            raise Stopped(self.received)


def environment(token):
    """Allows Open MPI as root and with more ranks than processors. The user's settings win."""
    ours = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none"}
    return {**ours, **os.environ, MARK: token}


def find_marked(token):
    """Returns the pids of processes that have our mark in their environment."""
    found, mark = [], f"\0{MARK}={token}\0".encode()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
                if mark in b"\0" + file.read() + b"\0":
                    found.append(int(entry))
    return found


def mounts_below(directory):
    """Returns the mount points below a directory, innermost first."""
    found = []
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            point = os.fsdecode(line.split(b" ")[4].decode("unicode_escape").encode("latin-1"))
            if point.startswith(os.path.realpath(directory) + os.sep):
                found.append(point)
    return sorted(found, key=len, reverse=True)


class Launcher:
    def __init__(self, mpirun, program, directory, signals):
        self.mpirun, self.program, self.directory = mpirun, program, directory
        self.signals = signals
        self.token = uuid.uuid4().hex

    def command(self, ranks, arguments):
        """self.program includes the options of all runs."""
        return [*self.mpirun, "-n", str(ranks), *self.program, *arguments,
                os.path.join(self.directory, "data")]

    def run(self, ranks, arguments, limit, tick):
        """Returns lime-bench's answer and the seconds it took. Raises RunError if it fails or does
        not end within `limit` seconds, and Stopped after a signal, when no process runs."""
        self.clean_up()
        os.makedirs(self.directory, exist_ok=True)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            begin = time.monotonic()
            process = subprocess.Popen(self.command(ranks, arguments), stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, env=environment(self.token),
                                       start_new_session=True)
            try:
                status = self.wait(process, begin + limit, tick)
            finally:
                self.terminate(process)
                self.clean_up()
            wall = time.monotonic() - begin
            out.seek(0)
            err.seek(0)
            return parse_output(status, out.read(), err.read(), limit), wall

    def wait(self, process, end, tick):
        """Returns the exit status, or None after the time limit."""
        while time.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=0.2)
            self.signals.check()
            tick()
        return None

    def terminate(self, process):
        """Terminates mpirun, which ends its ranks, and then kills remaining processes."""
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
        # A child process of lime-bench removes its files and mounts; wait for it.
        for number, pauses in ((signal.SIGTERM, 500), (signal.SIGKILL, 100)):
            for pid in find_marked(self.token):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            for _ in range(pauses):
                if not find_marked(self.token):
                    break
                time.sleep(0.02)
        process.wait()

    def clean_up(self):
        """Unmounts what a run has left mounted and removes its directory."""
        if not os.path.isdir(self.directory):
            return
        for point in mounts_below(self.directory):
            for command in (["fusermount3", "-u", "-z", point], ["umount", "-l", point]):
                with contextlib.suppress(OSError):
                    if subprocess.run(command, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, check=False).returncode == 0:
                        break
        if not mounts_below(self.directory):
            shutil.rmtree(self.directory, ignore_errors=True)


def find_message(err):
    """Returns the last message of lime-bench, or else of mpirun."""
    lines = [line.strip() for line in err.decode(errors="replace").splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("lime-bench:")]
    shown = "".join(c if c.isprintable() else "?" for c in (own or lines or [""])[-1])
    return shown[:400]


def parse_json(out):
    """Returns lime-bench's answer, or None."""
    begin = out.find(b"{")
    try:
        answer = json.loads(out[begin:].decode()) if begin >= 0 else None
    except ValueError:
        return None
    good = isinstance(answer, dict) and isinstance(answer.get("results"), list)
    return answer if good else None


def parse_output(status, out, err, limit):
    if status is None:
        raise RunError(f"timeout after {limit:.0f} s")
    answer = parse_json(out)
    if status != 0:
        raise RunError(find_message(err) or f"exit {status}", status, answer)
    if not answer:
        raise RunError("no JSON with results from lime-bench")
    return answer
