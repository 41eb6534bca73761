"""The units of systemd: systemd accepts them, and their commands do what they promise."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import mpitest

UNITS = os.path.join(limetest.REPO, "packaging", "systemd")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KINDS = ("system", "user")
NAME = "all-runs"  # of the instance


def assignments(settings):
    return dict(setting.split("=", 1) for setting in settings)


class Unit:
    """A unit file, and its commands as systemd runs them for the instance NAME. `etc` and `run`
    replace the directories of configuration files and of sockets."""

    def __init__(self, path, etc, run):
        self.settings, self.specifiers = {}, {"%E": etc, "%t": run, "%i": NAME}
        for line in limetest.read(path).decode().splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                self.settings.setdefault(key, []).append(self.expand(value))
        self.variables = {}
        for line in self.settings["Environment"]:
            self.variables |= assignments(shlex.split(line))
        for path in self.settings["EnvironmentFile"]:
            self.variables |= assignments(shlex.split(limetest.read(path).decode()))

    def expand(self, value):
        return re.sub("%.", lambda match: self.specifiers[match[0]], value)

    def command(self, key):
        """Returns the words: ${NAME} is replaced in a word, and $NAME becomes any number of words."""
        words = []
        for word in shlex.split(self.settings[key][0].removeprefix("-")):
            if re.fullmatch(r"\$\w+", word):
                words += self.variables[word[1:]].split()
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda match: self.variables[match[1]], word))
        return words

    def restrictions(self):
        """Returns a command that applies those restrictions that need no systemd."""
        command = ["setpriv"]
        if "NoNewPrivileges" in self.settings:
            command.append("--no-new-privs")
        for value in self.settings.get("CapabilityBoundingSet", ()):
            names = value.removeprefix("~").lower().replace("cap_", "-").split()
            command.append("--bounding-set=" + ",".join(names))
        return command if len(command) > 1 else []

    def environment(self):
        given = {key: value for key, value in mpitest.environment().items()
                 if re.match("OMPI_MCA|PRTE_MCA|LIMETEST|[AUT].*SAN_OPTIONS", key)}
        return {**given, **self.variables, "PATH": PATH, "HOME": "/nonexistent"}


class Verify(limetest.TestCase):
    def verify(self, kind, change=lambda text: text):
        """Returns what systemd-analyze says about the units of a kind."""
        directory = self.tempdir()
        for name in os.listdir(os.path.join(UNITS, kind)):
            text = limetest.read(os.path.join(UNITS, kind, name)).decode()
            text = re.sub("@BINDIR@/[a-z-]+|fusermount3", "/bin/true", text)
            limetest.put(os.path.join(directory, name), change(text).encode())
        done = limetest.run(["systemd-analyze", f"--{kind}", "--man=no", "verify",
                             *(os.path.join(directory, name) for name in os.listdir(directory))],
                            env={"PATH": PATH, "HOME": directory, "XDG_RUNTIME_DIR": directory})
        return done.returncode, (done.stdout + done.stderr).decode()

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_verify(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.assertEqual(self.verify(kind), (0, ""))
                _, said = self.verify(kind, lambda text: text.replace("KillMode", "KilMode"))
                self.assertIn("Unknown key", said)

    def test_pairs(self):
        """The units of both kinds run the same commands."""
        for name in os.listdir(os.path.join(UNITS, "user")):
            commands = [re.findall("(?m)^(?:Exec|Type|Kill|Restart).*",
                                   limetest.read(os.path.join(UNITS, kind, name)).decode())
                        for kind in KINDS]
            self.assertEqual(*commands)


@limetest.needs_fuse
class Commands(limetest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prefix = os.path.join(limetest.tempdir(), "usr")
        # Installs the existing build; make must not rebuild it, perhaps with other flags.
        limetest.run(["make", "-s", "-C", limetest.REPO, "-o", "all", "install",
                      f"B={limetest.B}", f"PREFIX={cls.prefix}"], check=True)

    def setUp(self):
        if not shutil.which("setpriv"):
            self.skipTest("needs setpriv")
        self.etc, self.run_dir, self.where = self.tempdir(), self.tempdir(), self.tempdir()
        self.source = os.path.join(self.tempdir(), "my runs")
        self.mountpoint = os.path.join(self.where, "new", "all runs")
        os.mkdir(self.source)
        limetest.put(os.path.join(self.source, "c.lime"), limetest.record("info", b"hello", 1, 1))

    def kinds(self):
        """Root's units, if this is root, and a user's."""
        return KINDS if os.geteuid() == 0 else ("user",)

    def configure(self, text):
        os.makedirs(os.path.join(self.etc, "limefs"), exist_ok=True)
        limetest.put(os.path.join(self.etc, "limefs", NAME + ".conf"), text.encode())

    def unit(self, kind, name):
        path = os.path.join(self.prefix, "lib/systemd", kind, name + "@.service")
        return Unit(path, self.etc, self.run_dir)

    def execute(self, unit, key):
        self.run_ok([*unit.restrictions(), *unit.command(key)], env=unit.environment())

    def start(self, unit):
        self.execute(unit, "ExecStartPre")
        self.execute(unit, "ExecStart")
        self.addCleanup(limetest.run, ["umount", "-l", self.mountpoint])
        self.assertEqual(limetest.read(os.path.join(self.mountpoint, "c.lime/info")), b"hello")

    def daemons(self):
        """Returns the processes of limefs that have this mount point."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = limetest.read(f"/proc/{entry}/cmdline").split(b"\0")
            except OSError:
                continue
            if words[-2:-1] == [os.fsencode(self.mountpoint)] and limetest.is_alive(entry):
                found.append(int(entry))
        return found

    def wait_for_end(self):
        limetest._wait(lambda: not self.daemons(), 60 * limetest.SLOWNESS)
        self.assertEqual(self.daemons(), [])

    def stop(self, unit):
        self.execute(unit, "ExecStop")
        self.assertEqual(limetest.mounts_under(self.where), [])
        self.wait_for_end()

    def test_mount(self):
        self.configure(f"SOURCE='{self.source}'\nMOUNTPOINT=\"{self.mountpoint}\"\n")
        for kind in self.kinds():
            with self.subTest(kind):
                unit = self.unit(kind, "limefs")
                self.start(unit)
                options = limetest.json_lines(self.run_ok(
                    ["limefs", "--status", "--json", self.mountpoint]))[0]["options"]
                self.assertIn("ro", options.split(","))
                self.stop(unit)

    def test_restart_after_a_crash(self):
        """A crash leaves a dead mount, which is busy while a program has a file of it open."""
        self.configure(f"SOURCE='{self.source}'\nMOUNTPOINT='{self.mountpoint}'\nOPTIONS=max_open=3")
        for kind in self.kinds():
            with self.subTest(kind):
                unit = self.unit(kind, "limefs")
                self.start(unit)
                with open(os.path.join(self.mountpoint, "c.lime/info"), "rb"):
                    pid, = self.daemons()
                    os.kill(pid, signal.SIGKILL)
                    self.wait_for_end()
                    self.execute(unit, "ExecStopPost")
                    self.assertEqual(limetest.mounts_under(self.where), [])
                    self.start(unit)
                self.execute(unit, "ExecStopPost")  # as after another, failed start
                self.assertEqual(limetest.mounts_under(self.where), [self.mountpoint])
                self.stop(unit)

    def test_job(self):
        mpitest.need_job(self)
        options = "-n 2" if mpitest.MPICH else "--oversubscribe -n 2"
        self.configure(f"SOURCE='{self.source}'\nMOUNTPOINT='{self.mountpoint}'\n"
                       f"MPIRUN='{shutil.which(mpitest.MPIRUN)} {options}'\nIO_OPTIONS='--stripe 64K'\n"
                       f"OPTIONS=ro,job_required,job={self.run_dir}/limefs-io-{NAME}\n")
        for kind in self.kinds():
            with self.subTest(kind):
                job, mount = self.unit(kind, "limefs-io"), self.unit(kind, "limefs")
                environment = job.environment()
                if os.geteuid() == 0:  # also as the user of a user's unit
                    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
                process = subprocess.Popen([*job.restrictions(), *job.command("ExecStart")],
                                           env=environment, stdin=subprocess.DEVNULL)
                self.addCleanup(process.kill)
                socket = f"{self.run_dir}/limefs-io-{NAME}"
                self.assertTrue(limetest._wait(lambda: limetest.run(
                    ["limefs-io", "--status", socket]).returncode == 0, 60 * limetest.SLOWNESS))
                self.start(mount)
                status, = limetest.json_lines(self.run_ok(
                    ["limefs", "--status", "--json", self.mountpoint]))
                self.assertEqual(status["job"]["ranks"], 2)
                self.stop(mount)
                self.execute(job, "ExecStop")
                self.assertEqual(process.wait(60 * limetest.SLOWNESS), 0)


if __name__ == "__main__":
    limetest.main()
