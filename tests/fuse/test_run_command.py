"""limefs --run: mounts, runs a command, unmounts, and exits with the command's status."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import mpitest
from writelib import put, read, until

CONTAINER = limetest.container([("info", b"hello"), ("data", b"d" * 1000000)])
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# Writes "ready", and exits with the number of a signal after it has read the mount again.
WAITER = """
import os, signal, sys, time
point, log = sys.argv[1:]
def handle(number, frame):
    open(log, "a").write(f"{number} {open(point + '/info').read()}\\n")
    os._exit(number)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
    signal.signal(number, handle)
open(log, "w").write("ready\\n")
while True:
    time.sleep(1000)
"""


@limetest.needs_fuse
class RunCommand(limetest.TestCase):
    def setUp(self):
        self.path = self.write("c.lime", CONTAINER)
        self.directory = self.tempdir()
        self.point = os.path.join(self.directory, "mnt")
        self.log = os.path.join(self.directory, "log")

    def arguments(self, *command, opts=None, flags=()):
        return [limetest.program("limefs"), *flags, *(["-o", opts] if opts else []), self.path,
                self.point, "--run", *command]

    def assertGone(self):
        self.assertEqual(limetest.mounts_under(self.point), [])
        self.assertFalse(os.path.lexists(self.point))

    def ends_with(self, status, *command, opts=None, error=""):
        """Runs limefs to its end; returns the command's output."""
        done = limetest.run(self.arguments(*command, opts=opts))
        words = done.stderr.decode()
        self.assertEqual(done.returncode, status, words)
        self.assertEqual(words.startswith(f"limefs: {error}") if error else words,
                         True if error else "", words)
        self.assertGone()
        return done.stdout

    def start(self, *command, opts=None, flags=(), **kw):
        """Starts limefs with a command that writes "ready" into the log (by default WAITER)."""
        command = command or (sys.executable, "-c", WAITER, self.point, self.log)
        process = subprocess.Popen(self.arguments(*command, opts=opts, flags=flags),
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **kw)
        self.addCleanup(self.give_up, process)
        until(lambda: self.logged().startswith("ready\n"))
        return process

    def give_up(self, process):
        process.kill()
        process.wait()
        process.stderr.close()
        until(lambda: not limetest.mounts_under(self.point))

    def logged(self):
        with contextlib.suppress(FileNotFoundError):
            return read(self.log).decode()
        return ""

    def children(self, process):
        """Returns the daemon's and the command's process id."""
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            daemon, command = map(int, file.read().split())
        return daemon, command

    def test_exit_status(self):
        self.assertEqual(self.ends_with(0, "cat", self.point + "/info"), b"hello")
        self.ends_with(3, "sh", "-c", f"test -s {self.point}/data && exit 3")
        self.ends_with(128 + 9, "sh", "-c", "kill -9 $$")
        self.ends_with(127, "nosuch", error="nosuch: run: No such file")
        self.ends_with(127, self.path + "/x", error=f"{self.path}/x: run: Not a directory")
        self.ends_with(126, self.path, error=f"{self.path}: run: Permission denied")

    def test_nothing_is_run(self):
        touch = ("touch", self.log)
        self.ends_with(125, error="option '--run' requires a command")
        self.ends_with(125, *touch, opts="foo", error="unknown option 'foo'")
        self.ends_with(125, *touch, opts="ranks=1,job_required,mpirun=false", error="job: it does")
        self.ends_with(125, *touch, opts="job=/nosuch,job_required", error="job: /nosuch: connect")
        os.mkdir(self.point)
        self.fails(["limefs", "--status", self.path, self.point, "--run", *touch],
                   "unknown option '--status'", status=125)
        os.rmdir(self.point)
        put(self.path, b"no container")
        self.ends_with(125, *touch, error=f"{self.path}: ")
        self.path += "x"
        self.ends_with(125, *touch, error=f"{self.path}: open: No such file")
        self.fails(["limefs", self.path, self.point + "/x", "--run", *touch],
                   f"create it with 'mkdir -p {self.point}/x'", status=125)
        self.assertFalse(os.path.exists(self.log))

    def test_mount_point_and_paths(self):
        """A mount point that existed remains; paths may be relative; options after --run are the
        command's."""
        os.mkdir(self.point)
        for command in ("cat", "mnt/info"), ("echo", "-n", "--run", "--status"):
            done = limetest.run(["limefs", "-f", os.path.relpath(self.path, self.directory), "mnt",
                                 "--run", *command], cwd=self.directory, check=True)
            self.assertEqual(done.stdout, b"hello" if command[0] == "cat" else b"--run --status")
            self.assertEqual(os.listdir(self.point), [])
            self.assertEqual(limetest.mounts_under(self.point), [])

    def test_command_inherits(self):
        """The command has limefs's input, descriptors, limits and signals, not the daemon's."""
        script = "cat <&3; cat; ulimit -n; grep -E 'SigIgn|SigBlk' /proc/self/status"
        with open(self.path, "rb") as extra, open(self.write("in", b"input\n"), "rb") as data:
            for prefix in [], self.arguments():
                done = limetest.run([*prefix, "sh", "-c", f"ulimit -Sn 50; {script}"] if not prefix
                                    else ["sh", "-c", 'ulimit -Sn 50; exec "$@"', "sh", *prefix,
                                          "sh", "-c", script],
                                    stdin=data, pass_fds=[extra.fileno()], check=True,
                                    preexec_fn=lambda: os.dup2(extra.fileno(), 3))
                shown = done.stdout if not prefix else self.assertEqual(done.stdout, shown)
                extra.seek(0)
                data.seek(0)

    def test_signals(self):
        """The command gets the signal, reads the mount again, and ends; then the mount ends."""
        for number in (*ENDING, signal.SIGUSR1, signal.SIGQUIT):
            process = self.start()
            process.send_signal(number)
            self.assertEqual(process.wait(60 * limetest.SLOWNESS), number)
            self.assertEqual(self.logged(), f"ready\n{int(number)} hello\n")
            self.assertGone()
            os.unlink(self.log)

    def test_signal_to_all_processes(self):
        """The daemon serves until the command has ended. Slurm sends signals so."""
        for number in signal.SIGTERM, signal.SIGINT:
            process = self.start()
            for pid in (*self.children(process), process.pid):
                os.kill(pid, number)
            self.assertEqual(process.wait(60 * limetest.SLOWNESS), number)
            self.assertEqual(self.logged(), f"ready\n{int(number)} hello\n")
            self.assertGone()
            os.unlink(self.log)

    def test_signals_that_limefs_ignored(self):
        """The daemon ends, also if the caller ignores SIGHUP and SIGCHLD, or blocks all signals."""
        for prepare in (lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
                        lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
                        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)):
            done = limetest.run(self.arguments("sh", "-c", "exit 5"), preexec_fn=prepare)
            self.assertEqual(done.returncode, 5)
            self.assertGone()

    def test_interrupt_of_a_terminal(self):
        """The terminal interrupts the command, which gets the signal once."""
        script = ("import os, signal, sys, time; seen = []\n"
                  "signal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
                  "signal.signal(signal.SIGTERM, lambda *_: os._exit(len(seen)))\n"
                  f"open({self.log!r}, 'w').write('ready\\n')\n"
                  "while True: time.sleep(0.01); seen and os.kill(os.getppid(), signal.SIGTERM)")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(limetest.program("limefs"), self.arguments(sys.executable, "-c", script))
        until(lambda: self.logged() == "ready\n")
        os.write(terminal, b"\x03")
        limetest.read_terminal(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 1)
        self.assertGone()

    def test_killed(self):
        """If limefs is killed, the mount ends, and the command gets SIGTERM; also if the daemon's
        only thread has switched to another user and back."""
        other = f"setpriv --reuid=54321 --regid=54321 --clear-groups cat {self.point}/info >&2; "
        for path in self.directory, os.path.dirname(self.path):
            os.chmod(path, 0o711)
        for opts, first in (None, ""), ("allow_other", other if os.geteuid() == 0 else ""):
            script = (f"trap 'echo told >>{self.log}; exit' TERM; {first} echo ready >{self.log}; "
                      "while :; do sleep 0.05; done")
            process = self.start("sh", "-c", script, opts=opts, flags=["-s"] if first else [])
            daemon, command = self.children(process)
            process.kill()
            self.assertEqual(process.communicate()[1], b"hello" if first else b"")
            until(lambda: not limetest.is_alive(daemon) and not limetest.is_alive(command))
            self.assertEqual(self.logged(), "ready\ntold\n")
            until(lambda: not os.path.lexists(self.point))
            self.assertGone()
            os.unlink(self.log)

    def test_killed_daemon(self):
        """If the daemon is killed, limefs removes the dead mount after the command."""
        process = self.start("sh", "-c", f"echo ready >{self.log}; read line <{self.point}/info; "
                                         f"while ls {self.point} 2>&-; do sleep 0.05; done; exit 4",
                             stdout=subprocess.DEVNULL)
        os.kill(self.children(process)[0], signal.SIGKILL)
        _, errors = process.communicate(timeout=60 * limetest.SLOWNESS)
        self.assertEqual(process.returncode, 4)
        self.assertIn(f"limefs: {self.point}: the daemon was killed by signal 9\n".encode(), errors)
        self.assertGone()

    def test_unmounted_by_the_command(self):
        limefs = limetest.program("limefs")
        self.ends_with(6, "sh", "-c", f"{limefs} -u {self.point}; test -e {self.point}/info || "
                                      "exit 6")

    def test_command_that_ignores_sigterm(self):
        """The mount ends before Slurm would kill all processes; the command continues."""
        process = self.start("sh", "-c", f"trap '' TERM; echo ready >{self.log}; "
                                         f"while test -e {self.point}/info; do sleep 0.1; done; "
                                         f"exit 8")
        process.terminate()
        _, errors = process.communicate(timeout=60 * limetest.SLOWNESS)
        self.assertEqual((process.returncode, errors.decode()),
                         (8, f"limefs: {self.point}: unmounted; the command has not ended 15 s "
                             "after SIGTERM\n"))
        self.assertGone()

    def test_process_that_stays(self):
        """A process that the command has left in the background does not keep the mount."""
        self.ends_with(0, "sh", "-c", f"exec 3<{self.point}/data; sleep 1000 >&- 2>&- & "
                                      f"echo $! >{self.log}")
        pid = int(self.logged())
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.assertErrno((107, 103), os.open, f"/proc/{pid}/fd/3", os.O_RDONLY)

    def test_signal_before_the_mount_is_ready(self):
        slow = self.write("mpirun", b"#!/bin/sh\necho ready >$LOG; exec sleep 1000\n")
        os.chmod(slow, 0o755)
        process = self.start("touch", self.log + "2", opts=f"ranks=1,job_required,mpirun={slow}",
                             env={**os.environ, "LOG": self.log})
        process.terminate()
        self.assertEqual(process.wait(60 * limetest.SLOWNESS), 128 + signal.SIGTERM)
        self.assertGone()
        self.assertFalse(os.path.exists(self.log + "2"))

    def test_written(self):
        """What the command has written, also to a mapping of a closed file, is in the container."""
        os.mkdir(self.point)
        script = ("import mmap, os, sys; point = sys.argv[1]\n"
                  "open(point + '/more', 'wb').write(b'm' * 5000)\n"
                  "file = open(point + '/data', 'r+b'); map = mmap.mmap(file.fileno(), 1000000)\n"
                  "file.close(); map[500000:] = b'e' * 500000; os._exit(0)")
        done = limetest.run(self.arguments(sys.executable, "-c", script, self.point, opts="rw"))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        found = {record.name: record.data for record in limetest.records_of(self.path)}
        self.assertEqual(found, {"info": b"hello", "data": b"d" * 500000 + b"e" * 500000,
                                 "more": b"m" * 5000})

    @unittest.skipIf(mpitest.MPIRUN is None, "needs mpirun")
    def test_job(self):
        """With a job of MPI ranks: nothing of it is left after the end or a kill."""
        opts = f"ranks=2,job_required,mpirun={mpitest.MPIRUN}"
        token = f"LIMETEST_JOB={self.id()}-{os.getpid()}"
        env = dict([token.split("=")])
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            process = self.start(opts=opts, env={**os.environ, **env})
            self.assertGreater(len(limetest._processes_with(token)), 5)
            daemon, command = self.children(process)
            os.kill(*(process.pid, number) if number else (command, signal.SIGUSR1))
            process.communicate(timeout=60 * limetest.SLOWNESS)
            until(lambda: not limetest._processes_with(token))
            self.assertGone()
            self.assertFalse([name for name in os.listdir("/dev/shm")
                              if name.startswith(f"limefs-{daemon}-")])
            os.unlink(self.log)


if __name__ == "__main__":
    limetest.main()
