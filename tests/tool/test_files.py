"""Every command that takes many files does so in the same way: a table of commands and options."""
import math
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
from limetest import container, run

DIMS = (2, 2, 2, 4)


def make_links():
    """Returns the data of a configuration: identity matrices."""
    return struct.pack(">18d", *(i in (0, 8, 16) for i in range(18))) * 4 * math.prod(DIMS)


GOOD = [scidac.records(DIMS, make_links()) + [("ildg-data-lfn", b"lfn://a/b")]]
# In natural order; the last two are not containers.
FILES = {"conf.2": container(GOOD), "conf.10": container(GOOD)[:-200], "conf.11": b"",
         "sub/conf.1": container(GOOD), "sub/no-lfn": container([[("text", b"x")]]),
         "sub/notes.txt": b"text" * 100, "sub/table.csv": b"1,2\n" * 100}
G, B, N, X, S = "good", "bad", "unverified", "unreadable", "skipped"
# The status that each command gives the containers, in the order of FILES.
COMMANDS = {
    ("ls",): (G, B, B, G, G),
    ("info",): (G, B, B, G, G),
    ("check",): (G, B, B, G, G),
    ("check", "--data"): (G, B, B, G, G),
    ("checksum",): (G, B, B, G, B),
    ("checksum", "--cksum"): (G, B, B, G, B),
    ("lfn",): (G, B, B, G, B),
    ("repair", "-n"): (G, B, B, G, G),
    ("qcdml",): (G, B, B, G, B),
    ("refs", "--skip-bad", "-f", "-o", os.path.join(limetest.tempdir(), "refs.json")):
        (G, B, B, G, B),
    ("convert", "--to", "nersc"): (G, G, B, G, X),
    ("stage",): (G, B, B, G, G),
}
# In a tree, lime convert skips containers without a configuration.
IN_TREE = {("convert", "--to", "nersc"): (G, G, B, G, S)}
TO_TARGET = ("convert", "stage")  # the last operand is the targets' directory
VERIFY = ("verify",)  # works only in a mount
VERIFIED = (G, B, B, G, N)
STATUS = {G: 0, S: 0, B: 1, X: 2, N: 3}


def worst(states):
    return max((STATUS[state] for state in states), key=(0, 3, 1, 2).index)


def without_target(files):
    """Returns the objects without what differs from target to target."""
    return [{name: value for name, value in one.items() if name not in ("target", "seconds")}
            for one in files]


class Files(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.top = self.directory = self.tempdir()
        os.mkdir(os.path.join(self.top, "sub"))
        for name, data in FILES.items():
            limetest.put(os.path.join(self.top, name), data)

    def run_lime(self, command, *args, status, **options):
        target = [tempfile.mkdtemp(dir=limetest.tempdir())] if command[0] in TO_TARGET else []
        done = run(["lime", *command, *args, *target], **options)
        self.assertEqual(done.returncode, status, (command, args, done))
        return done

    def json(self, command, *args, status, **options):
        """Returns the objects of the files, and the numbers of the last line or None."""
        lines = limetest.json_lines(self.run_lime(command, "--json", *args, status=status,
                                                  **options).stdout)
        total = lines.pop()["summary"] if lines and "summary" in lines[-1] else None
        for one in lines:
            self.assertEqual(list(one)[0], "file", one)
            self.assertEqual(list(one)[-2:], ["status", "error"], one)
            self.assertEqual(one["error"] is None, one["status"] == G, one)
        return without_target(lines), total

    def assert_total(self, total, states):
        self.assertEqual(total["files"], len(states))
        for word in STATUS:
            self.assertEqual(total[word], states.count(word), word)
        self.assertEqual(list(total)[:6], ["files", G, B, N, X, S])

    def total_line(self, states):
        counted = (f"{states.count(state)} {state}" for state in (G, B, N, X, "skipped"))
        return f"{len(states)} files: " + ", ".join(counted)

    def assert_command(self, command, states):
        paths = [os.path.join(self.top, name) for name in FILES][:len(states)]
        others = [os.path.join(self.top, name) for name in FILES][len(states):]
        in_tree = IN_TREE.get(command, states)
        tree = [*in_tree, S, S]
        # the tree: natural order, other files are skipped and counted
        found, total = self.json(command, "-r", self.top, status=worst(in_tree))
        self.assertEqual([(one["file"], one["status"]) for one in found],
                         [one for one in zip(paths, in_tree) if one[1] != S])
        self.assert_total(total, tree)
        # the same files from a list and as operands, with any number of jobs
        files, total = self.json(command, *paths, status=worst(states))
        self.assertEqual([(one["file"], one["status"]) for one in files], list(zip(paths, states)))
        self.assertIsNone(total)
        self.assertEqual([one for one in files if one in found], found)
        for end, args in ("\n", []), ("\0", ["-0"]):
            for jobs in ["-j", "1"], ["--jobs", "7"], ["--threads", "2"]:
                if command[0] == "stage":  # has no --threads
                    jobs[0] = jobs[0].replace("threads", "jobs")
                listed = self.json(command, *args, *jobs, "--files-from", "-", status=worst(states),
                                   input=end.join(paths).encode())
                self.assertEqual(listed[0], files)
                self.assert_total(listed[1], list(states))
        # a single file has the same object, and no summary
        for path, state, one in zip(paths, states, files):
            self.assertEqual(self.json(command, path, status=STATUS[state]), ([one], None))
            text = self.run_lime(command, path, status=STATUS[state])
            self.assertNotIn(b"1 file:", text.stdout + text.stderr)
        # skipped files
        listed = self.json(command, "--list-skipped", "-r", self.top, status=worst(in_tree))[0]
        self.assertEqual([one["file"] for one in listed], paths + others)
        self.assertEqual([one for one in listed if one["status"] != S], found)
        # -q leaves out what is good, as JSON and as text
        quiet, total = self.json(command, "-q", "-r", self.top, status=worst(in_tree))
        self.assertEqual(quiet, [one for one in found if one["status"] != G])
        self.assert_total(total, tree)
        text = self.run_lime(command, "-q", "-r", self.top, status=worst(in_tree))
        shown = (text.stdout + text.stderr).decode()
        for path, state in zip(paths, in_tree):
            self.assertEqual(path in shown, state not in (G, S), (path, shown))
        self.assertNotIn("files:", shown)
        # text: a last line with the numbers; the files in the same order
        text = self.run_lime(command, "-r", self.top, status=worst(in_tree))
        last = [(stream.decode().splitlines() or [""])[-1].removeprefix("lime: ")
                for stream in (text.stdout, text.stderr)]
        self.assertTrue(any(line.startswith(self.total_line(tree)) for line in last), text)
        seen = [at for at in map(text.stdout.decode().find, paths) if at >= 0]
        self.assertEqual(seen, sorted(seen))
        # a file of another kind that is named is unreadable
        files, total = self.json(command, others[0], paths[0], status=2)
        self.assertEqual([one["status"] for one in files], [X, states[0]])
        files, total = self.json(command, os.path.join(self.top, "none"), status=2)
        self.assertEqual([one["status"] for one in files], [X])

    def test_commands(self):
        for command, states in COMMANDS.items():
            with self.subTest(command):
                self.assert_command(command, states)

    @limetest.needs_fuse
    def test_in_a_mount(self):
        below = self.top
        with limetest.Mount(below) as mount:
            self.top = mount.path
            self.assert_command(VERIFY, VERIFIED)
            for command in ("ls",), ("info",), ("check",), ("lfn",):
                files, total = self.json(command, "-r", self.top, status=1)
                self.assertEqual([one["status"] for one in files], list(COMMANDS[command]))

    def test_usage(self):
        for command in [*COMMANDS, VERIFY]:
            for args in [], ["-r"], ["-0", self.top], ["-j", "0", self.top], ["--nonsense"]:
                self.run_lime(command, *args, status=2)
            if command != VERIFY:
                done = self.run_lime(command, self.top, status=2)
                self.assertIn(b"Is a directory; use -r for the files in it", done.stderr)


if __name__ == "__main__":
    limetest.main()
