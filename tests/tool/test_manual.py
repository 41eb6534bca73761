"""The man page and --help of each program and sub-command name the same options."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest

EVERYWHERE = {"-h", "--help", "-V", "--version"}  # named once a page
OF_LIBFUSE = {"-d", "-f", "-s", "-o", "-o writable", "-o max_threads", "-o max_idle_threads"}


def options_of_help(text):
    """Returns the options that begin a line of the lists: "  -r, --recursive", "    -o rw"."""
    found = set()
    for line in text.splitlines():
        if not re.match(r"  +-", line):
            continue
        head = re.split(r"\s{2,}", line.strip())[0]
        found |= set(re.findall(r"(?<![\w-])--?[\w-]*\w", re.sub(r"-o (\w+).*", "", head)))
        found |= {"-o " + name for name in re.findall(r"-o (\w+)", head)}
    return found


def options_of_page(lines, with_o):
    """Returns the options of its lists: .It Fl r , Fl -recursive; .It Cm ranks Ns = Ns Ar n"""
    found = set()
    for line in lines:
        for part in line[4:].split(" , ") if re.match(r"\.It (Fl|Cm)", line) else []:
            flag = re.match(r"(?:Fl )?(-?\w[\w-]*)", part)
            name = re.match(r"(?:Cm )?(\w*)", part)
            if line.startswith(".It Fl"):
                found.add("-" + flag.group(1))
            elif with_o:
                found.add("-o " + name.group(1))
    return found


def page(name):
    with open(os.path.join(limetest.REPO, "docs", "man", name + ".1"), encoding="utf-8") as file:
        return file.read().splitlines()


def section(lines, name):
    begin = lines.index(".Ss " + name) + 1
    end = next(i for i in range(begin, len(lines)) if lines[i].startswith((".Ss ", ".Sh ")))
    return lines[begin:end]


class Manual(limetest.TestCase):
    def help_of(self, *command):
        leaks = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # of the MPI library
        done = limetest.run([limetest.program(command[0]), *command[1:]],
                            env={**os.environ, "ASAN_OPTIONS": leaks})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def assertSame(self, shown, documented, exceptions=frozenset()):
        """The page documents each option that --help lists, and mentions no other one."""
        mentioned = set(re.findall(r"(?<![\w-])--?[\w-]*\w", shown)) | options_of_help(shown)
        self.assertEqual(options_of_help(shown) - documented - EVERYWHERE, set())
        self.assertEqual(documented - mentioned - EVERYWHERE - exceptions, set())

    def test_lime(self):
        names = re.findall(r"^  lime (\w+)", self.help_of("lime", "--help"), re.M)
        self.assertGreater(len(names), 15)
        for name in names:
            with self.subTest(command=name):
                shown = self.help_of("lime", "help", name)
                lines = section(page("lime"), "lime " + name)
                if "--list-skipped" in shown:
                    lines += section(page("lime"), "Many files")
                self.assertSame(shown, options_of_page(lines, False))

    def test_programs(self):
        for name in ("limefs", "limefs-run", "limefs-io", "lime-bench", "lime-checkpoint",
                     "lemon_benchmark"):
            if not os.path.exists(limetest.program(name)):
                continue
            with self.subTest(program=name):
                shown = self.help_of(name, "--help")
                for command in re.findall(r"^  lime-checkpoint (\w+)", shown, re.M):
                    shown += self.help_of(name, command, "--help")
                self.assertSame(shown,
                                options_of_page(page(name), name == "limefs"), OF_LIBFUSE)


if __name__ == "__main__":
    limetest.main()
