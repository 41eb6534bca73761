"""Completion of command lines in bash, zsh and fish."""

import os
import pty
import re
import select
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest

PROGRAMS = ("lime", "limefs", "limefs-run", "limefs-io", "lime-bench", "lime-checkpoint")
SCRIPTS = os.path.join(limetest.REPO, "scripts", "completion")
FILE = limetest.container([[("xlf-info", b"x"), ("twice", b"12"), ("twice", b"3"),
                            ("ildg-format", b"y" * 2000)]])

# Prints the command line, and completes as the program in BIN does.
PROGRAM = """#!/bin/sh
test "$1" != --complete || exec "%s" "$@"
printf '<%%s>' "${0##*/}" "$@"
echo
"""

# Each shell's arguments, and the lines that load the completion.
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], f"PS1=read''y; . {SCRIPTS}/lime"),
    "zsh": (["-f", "-i"], f"PS1=read''y; fpath=({SCRIPTS} $fpath); autoload -Uz compinit; "
                          "compinit -u -D"),
    "fish": (["--no-config", "-i"], "set -g fish_autosuggestion_enabled 0; function fish_prompt; echo -n read''y; end; "
                                    f"source {SCRIPTS}/lime.fish"),
}

# A line as it is typed, with TABs, and the command that the shell then runs.
LINES = [
    ("lime conv\t--to ner\ta b", ["lime", "convert", "--to", "nersc", "a", "b"]),
    ("lime convert --to=op\ta b", ["lime", "convert", "--to=openqcd", "a", "b"]),
    ("lime stage --sums md5,ad\ta b", ["lime", "stage", "--sums", "md5,adler32", "a", "b"]),
    ("lime help checks\t", ["lime", "help", "checksum"]),
    ("lime info --files-f\tli\t", ["lime", "info", "--files-from", "list"]),
    ("lime info --files-from=li\t", ["lime", "info", "--files-from=list"]),
    ("lime ls my\t", ["lime", "ls", "my file"]),
    ("lime cat my\\ file ild\t", ["lime", "cat", "my file", "ildg-format"]),
    ("lime cat ~/my\\ file 002\t", ["lime", "cat", "{home}/my file", "002-twice"]),
    ("lime cat --type xlf-info my\\ file -t tw\t",
     ["lime", "cat", "--type", "xlf-info", "my file", "-t", "twice"]),
    ("lime rm list xl\t", ["lime", "rm", "list", "xl"]),
    ("limefs -o ro,verify=str\tx y", ["limefs", "-o", "ro,verify=stream", "x", "y"]),
    ("limefs -o max_o\t5 x y", ["limefs", "-o", "max_open=5", "x", "y"]),
    ("limefs --sta\tx", ["limefs", "--status", "x"]),
    ("limefs x y --ru\tls -- --ru\t", ["limefs", "x", "y", "--run", "ls", "--", "--ru"]),
    ("limefs-run --ver\t", ["limefs-run", "--version"]),
    ("limefs-run limefs-i\tx", ["limefs-run", "limefs-io", "x"]),
]
WITH_MPI = [
    ("lime-bench --back\tposix,gat\tx", ["lime-bench", "--backend", "posix,gather", "x"]),
    ("lime-checkpoint run --contin\t", ["lime-checkpoint", "run", "--continue"]),
    ("limefs-io --sock\tli\t", ["limefs-io", "--socket", "list"]),
]


class Shell:
    """A shell on a terminal."""

    def __init__(self, name, directory):
        args, setup = SHELLS[name]
        env = {"PATH": f"{directory}/bin:/usr/bin:/bin", "HOME": directory, "TERM": "xterm",
               "LANG": "C.UTF-8", "COLUMNS": "200", "LINES": "50"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(name, [name, *args], env)
        limetest._cleanup(self.end)
        self.shown = b""
        self.run_line(setup + "; echo load''ed", "loaded")

    def run_line(self, line, output):
        """Types a line. Waits for its output, and for the next prompt."""
        self.type(line + "\r")
        self.wait_for(output)
        self.wait_for("ready")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, text):
        """Returns the output up to `text`; fails after a long time."""
        while text.encode() not in self.shown:
            if not select.select([self.terminal], [], [], 20 * limetest.SLOWNESS)[0]:
                raise AssertionError(f"no {text!r} in {self.shown.decode(errors='replace')}")
            self.shown += os.read(self.terminal, 4096)
        before, self.shown = self.shown.split(text.encode(), 1)
        return before.decode(errors="replace")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Shells(limetest.TestCase):
    def directory(self):
        path = self.tempdir()
        os.mkdir(os.path.join(path, "bin"))
        for name in PROGRAMS:
            program = os.path.join(path, "bin", name)
            limetest.put(program, PROGRAM.encode() % os.fsencode(limetest.program(name)))
            os.chmod(program, 0o755)
        limetest.put(os.path.join(path, "my file"), FILE)
        limetest.put(os.path.join(path, "list"), b"")
        return path

    def check(self, name):
        if not shutil.which(name):
            self.skipTest("needs " + name)
        directory = self.directory()
        shell = Shell(name, directory)
        lines = LINES + (WITH_MPI if os.path.exists(limetest.program("lime-bench")) else [])
        for typed, command in lines:
            expected = "".join(f"<{word.format(home=directory)}>" for word in command)
            shell.run_line(typed, expected)
        shell.type("lime check\t\t")
        if name == "bash":
            shell.wait_for("checksum")
        else:
            shell.wait_for("compute, compare and add checksums")

    def test_bash(self):
        self.check("bash")

    def test_zsh(self):
        self.check("zsh")

    def test_fish(self):
        self.check("fish")


class Candidates(limetest.TestCase):
    def complete(self, *words):
        """Returns the candidates for the last word, and their descriptions."""
        lines = self.run_ok([words[0], "--complete", *words[1:]]).decode().splitlines()
        return dict(line.split("\t") for line in lines)

    def test_options_of_help(self):
        """Each option that begins a line of a command's help is offered with a description."""
        commands = self.complete("lime", "")
        self.assertGreater(len(commands), 15)
        for command in sorted(commands.keys() - {"help"}):
            with self.subTest(command=command):
                shown = self.run_ok(["lime", command, "--help"]).decode()
                heads = re.findall(r"^  (?:-\S, |    )(--[^\s,]+(?:, --[^\s,]+)*)", shown, re.M)
                listed = re.findall(r"--[\w-]+", " ".join(heads))
                offered = self.complete("lime", command, "--")
                self.assertEqual(sorted(offered), sorted(set(listed)))
                self.assertTrue(all(offered.values()), offered)

    def test_values_and_letters(self):
        self.assertEqual(list(self.complete("lime", "convert", "--rows", "")), ["2", "3"])
        columns = list(self.complete("lime", "info", "--columns", ""))
        path = os.path.join(limetest.CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
        self.run_ok(["lime", "info", "--table", "--columns", ",".join(columns), path])
        self.assertEqual(list(self.complete("lime", "info", "--sort", "pl")), ["plaquette"])
        self.assertEqual(list(self.complete("lime", "convert", "--to", "nersc", "-f")), ["-f"])
        self.assertEqual(list(self.complete("lime", "ls", "-l", "--", "-")), [])
        self.assertEqual(list(self.complete("lime", "check", "-j2", "--al")), ["--all"])
        self.assertEqual(list(self.complete("lime", "check", "-j", "--al")), [])
        self.assertEqual(list(self.complete("limefs", "-o", "rw,mkdir=")),
                         ["rw,mkdir=directory", "rw,mkdir=container"])

    def test_records(self):
        path = self.write("f", limetest.container([[("a\tb\n/", b""), ("xml", b"12")],
                                                   [("xml", b"")]]))
        self.assertEqual(self.complete("lime", "cat", path, ""),
                         {"a%09b%0A%2F": "record 1, 0 bytes", "002-xml": "record 2, 2 bytes",
                          "003-xml": "record 3, 0 bytes"})
        self.assertEqual(list(self.complete("lime", "cat", path, "-t", "x")), ["xml"])
        self.assertEqual(list(self.complete("lime", "cat", path, "002-xml", "003")), ["003-xml"])
        self.assertEqual(list(self.complete("lime", "replace", path, "002-xml", "")), [])
        self.assertEqual(list(self.complete("lime", "refs", path, "--record", "00")),
                         ["001-a%09b%0A%2F", "002-xml", "003-xml"])
        self.assertEqual(self.complete("lime", "cat", path + ".none", ""), {})


if __name__ == "__main__":
    limetest.main()
