"""The rooms of the source: directories of which each includes only what lower ones offer. No command opens
an output by itself: what opens files for writing in src/lime and src/mpi is listed with a reason."""

import os
import re
import shlex
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest

SRC = os.path.join(limetest.REPO, "src")
NAME = re.compile(r"^(?!static)[^\W\d][^\n;{}]*?\b((?:limefs|limefile|limejob|lemon|bench|stage|job|checkpoint)_"
                  r"[a-z0-9]+)\w*\([^;{}]*\)\n\{", re.M)
FUNCTION = re.compile(r"^[^\W\d][^\n;{}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}$", re.M | re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# A header that is a room's own, or of one above, and a file that must not see it.
WRONG = [("fuse/names/snapshot.c", "writer_internal.h"), ("fuse/names/tree.c", "file.h"),
         ("fuse/process/main.c", "checksum.h"), ("lime/tool/cmd/cmd_ls.c", "cut.h"),
         ("lime/tool/shared/edit.c", "check.h"), ("lime/tool/cmd/cmd_info.c", "cell_entries.h"),
         ("lime/cells/cell_index.c", "limecheckpoint.h"), ("lime/scan.c", "limeexport.h"),
         ("lime/tool/cmd/cmd_refs.c", "export.h"), ("fuse/exports/exports.c", "file.h"),
         ("fuse/verify/verify.c", "exports.h"), ("fuse/ops/dir.c", "export.h"),
         ("lime/scan.c", "stage.h"), ("lime/sites.c", "limephysics.h"),
         ("lime/physics/link_measure.c", "limeexport.h"), ("lime/tool/cmd/cmd_check.c", "tile.h"),
         ("lime/qcdml/qcdml_parse.c", "tool.h"), ("lime/tool/cmd/qcdml.c", "safe_xml.h"),
         ("lime/tool/cmd/cmd_join.c", "gauge.h"), ("lime/formats/gauge_pass.c", "tile.h"),
         ("lime/physics/planes.c", "limegauge.h"), ("mpi/move/range_io.c", "internal.h"),
         ("mpi/bench/backend/backend_common.c", "measure.h"), ("mpi/bench/measure.c", "dataset.h"),
         ("mpi/programs/lemon_benchmark.c", "measure.h"),
         ("mpi/checkpoint/textfile.c", "internal.h"), ("run/find_container.c", "tool.h"),
         ("run/read_record.c", "snapshot.h"), ("run/program/main.c", "run.h"),
         ("mpi/job/extent.c", "lemon.h"), ("mpi/job/extent.c", "internal.h"),
         ("mpi/checkpoint/output.c", "lattice_plan.h"), ("fuse/ops/xattr.c", "run.h")]

# Calls that open a file for writing or rename one, and the reason why the file that makes them is
# not an output of a command.
CALLS = re.compile(r"\b(O_CREAT|O_WRONLY|O_RDWR|O_TMPFILE)\b|\b(fopen|freopen|mkostemp|mkstemp|mkdtemp|tmpfile|"
                   r"rename|renameat|renameat2|link|linkat|creat|MPI_File_open)\(")
READS = re.compile(r'fopen\([^;]*"re?"\)|MPI_MODE_RDONLY')
REASONS = {
    "src/lime/output": "outputs",
    "src/lime/edit/rewrite.c": "a container that is locked, written again beside itself",
    "src/lime/edit/recover.c": "lime repair: a new file with what is cut, never over another",
    "src/lime/tool/shared/edit.c": "a container that is changed in its place, locked",
    "src/lime/tool/cmd/cmd_repair.c": "the same",
    "src/lime/tool/cmd/cmd_pack.c": "lime new in a mount: a directory",
    "src/lime/tool/shared/record_input.c": "a file without a name",
    "src/lime/tool/shared/pathlist.c": "a list that is read",
    "src/lime/stage/target.c": "lime stage: its own temporary file, which the next run resumes",
    "src/lime/stage/stage_file.c": "the same",
    "src/lime/stage/remote.c": "the same",
    "src/mpi/series/series.c": "lemon_series: parts of a series",
    "src/mpi/series/writeback.c": "the same",
    "src/mpi/series/directory.c": "the same",
    "src/mpi/lemon/writer.c": "Lemon: a file that the program has opened",
    "src/mpi/programs/lemon_benchmark.c": "a file that is read and written for its time",
    "src/mpi/examples/canonical.c": "an example",
    "src/mpi/examples/sample.h": "an example",
    "src/mpi/job/open_check.c": "a job: what the mount has open",
    "src/mpi/job/container.c": "the same",
    "src/mpi/job/container_write.c": "the same",
    "src/mpi/job/options.c": "a text",
    "src/mpi/checkpoint/main.c": "/dev/null",
    "src/mpi/checkpoint/input.c": "an input",
    "src/mpi/checkpoint/output.c": "lime-checkpoint's outputs",
    "src/mpi/bench/json_file.c": "lime-bench's figures",
    "src/mpi/bench/system.c": "lime-bench: a probe of the file system, a file of the kernel",
    "src/mpi/bench/backend": "lime-bench's container, by each library",
}


def room_of(path):
    """Its directory in src; the headers in include/ are the same room's."""
    directory = os.path.relpath(os.path.dirname(path), SRC)
    return os.path.dirname(directory) if os.path.basename(directory) == "include" else directory


def files():
    return [os.path.join(directory, name) for directory, _, names in os.walk(SRC) for name in names
            if name.endswith((".c", ".h"))]


def command(path):
    """As make compiles it: the compiler and what matters to it."""
    made = limetest.run(["make", "-C", limetest.REPO, "--no-print-directory", "-n", "-W",
                         f"src/{path}", "V=1", "B=build-none",
                         f"build-none/obj/src/{path[:-2]}.o"], check=True).stdout.decode()
    line = next(line for line in made.splitlines() if f" src/{path}" in line and " -c " in line)
    words = shlex.split(line)
    return words[0], [word for word in words if word.startswith(("-I", "-D", "-std"))]


def nm(path):
    """The symbols that an object offers to others, and those that it wants of others."""
    lines = limetest.run(["nm", "-P", path], check=True).stdout.decode().splitlines()
    symbols = [line.split()[:2] for line in lines]
    return ({name for name, kind in symbols if kind in "TDBRVWC"},
            {name for name, kind in symbols if kind == "U"})


class Rooms(limetest.TestCase):
    def arrows(self):
        offered = {}
        for path in files():
            if path.endswith(".h"):
                offered.setdefault(os.path.basename(path), []).append(path)
        found = {}
        for path in files():
            with open(path, encoding="utf-8") as file:
                names = INCLUDE.findall(file.read())
            for name in names:
                beside = os.path.join(os.path.dirname(path), name)
                others = [other for other in offered.get(os.path.basename(name), [])
                          if other.endswith("/" + name) and
                          os.path.basename(os.path.dirname(other)) == "include"]
                if os.path.exists(beside):
                    continue
                own = [other for other in others if room_of(other) == room_of(path)]
                self.assertTrue(others or own, f"{path}: {name}")
                if not own:
                    found.setdefault((room_of(path), room_of(others[0])), []).append(
                        os.path.basename(path))
        return found

    def test_no_circle(self):
        arrows = self.arrows()
        below = {}
        for (upper, lower), _ in arrows.items():
            below.setdefault(upper, set()).add(lower)
            below.setdefault(lower, set())
        for upper in sorted(below):
            print(f"# {upper} -> {', '.join(sorted(below[upper])) or '-'}")
        while below:
            lowest = {room for room, lower in below.items() if not lower & set(below)}
            self.assertTrue(lowest, f"a circle: {below}")
            below = {room: lower for room, lower in below.items() if room not in lowest}

    def test_wrong_includes_do_not_compile(self):
        for path, header in WRONG:
            with self.subTest(path=path, header=header):
                compiler, options = command(path)
                if not shutil.which(compiler):
                    continue  # without MPI
                for name, fine in ((None, True), (header, False)):
                    given = f'#include "{name}"\n' if name else ""
                    source = os.path.join(self.tempdir(), os.path.basename(path))
                    with open(os.path.join(SRC, path), encoding="utf-8") as file:
                        text = file.read()
                    with open(source, "w", encoding="utf-8") as file:
                        file.write(given + text)
                    done = limetest.run([compiler, *options, "-iquote",
                                         os.path.join(SRC, os.path.dirname(path)),
                                         "-fsyntax-only", source], cwd=limetest.REPO)
                    self.assertEqual(done.returncode == 0, fine, done.stderr.decode()[:500])
                    if not fine:
                        self.assertIn(f"{header}: No such file", done.stderr.decode())

    def test_no_circle_of_files(self):
        """Inside a directory: files of which each uses functions of the other are one."""
        uses = {}  # directory: file: files of which it uses something
        for directory, objects in self.objects().items():
            symbols = {name: nm(path) for name, path in objects.items()}
            offers = {symbol: name for name, (offered, _) in symbols.items()
                      for symbol in offered}
            uses[directory] = {name: {offers[symbol] for symbol in wanted if symbol in offers} - {name}
                            for name, (_, wanted) in symbols.items()}
        self.assertGreater(len(uses), 20)
        for directory, below in uses.items():
            while lowest := {name for name, lower in below.items() if not lower & set(below)}:
                below = {name: lower for name, lower in below.items() if name not in lowest}
            while highest := set(below) - set().union(*below.values()):
                below = {name: lower for name, lower in below.items() if name not in highest}
            self.assertFalse(below, f"{directory}: a circle of {sorted(below)}")

    def objects(self):
        """By directory and file, of what was built."""
        found = {}
        top = os.path.join(limetest.B, "obj", "src")
        for path in files():
            name = os.path.relpath(path, SRC)[:-2]
            built = os.path.join(top, name + ".o")
            if path.endswith(".c") and os.path.exists(built):
                found.setdefault(os.path.dirname(name), {})[os.path.basename(name)] = built
        return found

    def test_prefixes(self):
        """The first two words of a function's name lead to its room."""
        found = {}
        for path in files():
            with open(path, encoding="utf-8") as file:
                for prefix in NAME.findall(file.read()):
                    found.setdefault(prefix, set()).add(room_of(path))
        for prefix, rooms in found.items():
            self.assertEqual(len(rooms), 1, (prefix, rooms))
        self.assertGreater(len(found), 50)

    def test_every_open_has_a_reason(self):
        unknown = []
        for path in files():
            name = os.path.relpath(path, limetest.REPO)
            if name.startswith(("src/lime/", "src/mpi/")) and not (
                    name in REASONS or os.path.dirname(name) in REASONS):
                with open(path, encoding="utf-8") as file:
                    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), file.read(),
                                  flags=re.S)
                unknown += [f"{name}:{number}: {line.strip()}"
                            for number, line in enumerate(text.split("\n"), 1)
                            if CALLS.search(line) and not READS.search(line)]
        self.assertEqual(unknown, [], "use limeoutput.h, or give a reason here")

    def test_functions(self):
        """Of at most 70 lines between their braces, which clang-format puts at the margin."""
        for path in files():
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for found in FUNCTION.finditer(text):
                name = f"{os.path.relpath(path, SRC)}: {found[1]}"
                self.assertLessEqual(found[2].count("\n"), 70, name)


if __name__ == "__main__":
    limetest.main()
