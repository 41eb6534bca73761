"""The layers of the source: a directory includes only headers that lower layers offer. No command
opens an output itself: each file that opens files for writing is listed with a reason."""

import os
import re
import shlex
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest

SRC = os.path.join(limetest.REPO, "src")
NAME = re.compile(r"^(?!static)[^\W\d][^\n;{}]*?\b((?:limefs|limefile|limejob|lemon|bench|stage|"
                  r"job|checkpoint)_[a-z0-9]+)\w*\([^;{}]*\)\n\{", re.M)
FUNCTION = re.compile(r"^[^\W\d][^\n;{}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}$", re.M | re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# A file and a header that it must not see: private to another layer, or of a higher layer.
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
         ("lime/physics/planes.c", "limegauge.h"), ("mpi/plan/range_io.c", "internal.h"),
         ("mpi/bench/backend/backend_common.c", "measure.h"), ("mpi/bench/measure.c", "dataset.h"),
         ("mpi/programs/lemon_benchmark.c", "measure.h"),
         ("mpi/checkpoint/textfile.c", "internal.h"), ("run/find_container.c", "tool.h"),
         ("run/read_record.c", "snapshot.h"), ("run/program/main.c", "run.h"),
         ("mpi/job/extent.c", "lemon.h"), ("mpi/job/extent.c", "internal.h"),
         ("mpi/checkpoint/output.c", "lattice_plan.h"), ("fuse/ops/xattr.c", "run.h")]

# Calls that open a file for writing or rename one, and the reason why a file that makes them writes
# no output of a command.
CALLS = re.compile(r"\b(O_CREAT|O_WRONLY|O_RDWR|O_TMPFILE)\b|\b(fopen|freopen|mkostemp|mkstemp|"
                   r"mkdtemp|tmpfile|rename|renameat|renameat2|link|linkat|creat|MPI_File_open)\(")
READS = re.compile(r'fopen\([^;]*"re?"\)|MPI_MODE_RDONLY')
REASONS = {
    "src/lime/output": "outputs",
    "src/lime/edit/rewrite.c": "a locked container, rewritten as a temporary file in its directory",
    "src/lime/edit/recover.c": "lime repair: a new file for the removed bytes, never over another",
    "src/lime/tool/shared/edit.c": "a container that is changed in place, locked",
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
    "src/mpi/lemon/writer.c": "Lemon: a file that the program opens",
    "src/mpi/programs/lemon_benchmark.c": "a file for timing",
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


def layer_of(path):
    """Returns the path's directory in src; headers in include/ belong to its parent."""
    directory = os.path.relpath(os.path.dirname(path), SRC)
    return os.path.dirname(directory) if os.path.basename(directory) == "include" else directory


def files():
    return [os.path.join(directory, name) for directory, _, names in os.walk(SRC) for name in names
            if name.endswith((".c", ".h"))]


def compile_commands(paths):
    """Returns {path: compiler and relevant options with which make compiles the file}."""
    made = limetest.run(["make", "-C", limetest.REPO, "--no-print-directory", "-n", "V=1",
                         "B=build-none", *(f"build-none/obj/src/{path[:-2]}.o" for path in paths)],
                        check=True).stdout.decode()
    lines = [line for line in made.splitlines() if " -c " in line]
    found = {}
    for path in paths:
        args = shlex.split(next(line for line in lines if f" src/{path}" in line))
        found[path] = [args[0], *(arg for arg in args if arg.startswith(("-I", "-D", "-std")))]
    return found


def nm(path):
    """Returns the symbols that an object defines, and those that it uses."""
    lines = limetest.run(["nm", "-P", path], check=True).stdout.decode().splitlines()
    symbols = [line.split()[:2] for line in lines]
    return ({name for name, kind in symbols if kind in "TDBRVWC"},
            {name for name, kind in symbols if kind == "U"})


class Layers(limetest.TestCase):
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
                neighbour = os.path.join(os.path.dirname(path), name)
                others = [other for other in offered.get(os.path.basename(name), [])
                          if other.endswith("/" + name) and
                          os.path.basename(os.path.dirname(other)) == "include"]
                if os.path.exists(neighbour):
                    continue
                own = [other for other in others if layer_of(other) == layer_of(path)]
                self.assertTrue(others or own, f"{path}: {name}")
                if not own:
                    found.setdefault((layer_of(path), layer_of(others[0])), []).append(
                        os.path.basename(path))
        return found

    def test_no_cycle(self):
        arrows = self.arrows()
        below = {}
        for (upper, lower), _ in arrows.items():
            below.setdefault(upper, set()).add(lower)
            below.setdefault(lower, set())
        for upper in sorted(below):
            print(f"# {upper} -> {', '.join(sorted(below[upper])) or '-'}")
        while below:
            lowest = {layer for layer, lower in below.items() if not lower & set(below)}
            self.assertTrue(lowest, f"a cycle: {below}")
            below = {layer: lower for layer, lower in below.items() if layer not in lowest}

    def test_wrong_includes_do_not_compile(self):
        commands = compile_commands([path for path, _ in WRONG])
        for path, header in WRONG:
            with self.subTest(path=path, header=header):
                if not shutil.which(commands[path][0]):
                    continue  # without MPI
                source = os.path.join(self.tempdir(), os.path.basename(path))
                with open(os.path.join(SRC, path), encoding="utf-8") as file:
                    text = file.read()
                with open(source, "w", encoding="utf-8") as file:
                    file.write(text + f'#include "{header}"\n')
                done = limetest.run([*commands[path], "-iquote",
                                     os.path.join(SRC, os.path.dirname(path)), "-fsyntax-only",
                                     source], cwd=limetest.REPO)
                errors = [line for line in done.stderr.decode().splitlines() if " error: " in line]
                self.assertEqual(len(errors), 1, errors)
                self.assertIn(f"{header}: No such file", errors[0])

    def test_no_cycle_of_files(self):
        """No two files of a directory call each other's functions, directly or through others."""
        uses = {}  # {directory: {file: files whose functions it uses}}
        for directory, objects in self.objects().items():
            symbols = {name: nm(path) for name, path in objects.items()}
            offers = {symbol: name for name, (offered, _) in symbols.items()
                      for symbol in offered}
            uses[directory] = {name: {offers[one] for one in used if one in offers} - {name}
                            for name, (_, used) in symbols.items()}
        self.assertGreater(len(uses), 20)
        for directory, below in uses.items():
            while lowest := {name for name, lower in below.items() if not lower & set(below)}:
                below = {name: lower for name, lower in below.items() if name not in lowest}
            while highest := set(below) - set().union(*below.values()):
                below = {name: lower for name, lower in below.items() if name not in highest}
            self.assertFalse(below, f"{directory}: a cycle of {sorted(below)}")

    def objects(self):
        """Returns the object files that were built, by directory and file."""
        found = {}
        top = os.path.join(limetest.B, "obj", "src")
        for path in files():
            name = os.path.relpath(path, SRC)[:-2]
            built = os.path.join(top, name + ".o")
            if path.endswith(".c") and os.path.exists(built):
                found.setdefault(os.path.dirname(name), {})[os.path.basename(name)] = built
        return found

    def test_prefixes(self):
        """The first two words of a function's name determine its layer."""
        found = {}
        for path in files():
            with open(path, encoding="utf-8") as file:
                for prefix in NAME.findall(file.read()):
                    found.setdefault(prefix, set()).add(layer_of(path))
        for prefix, layers in found.items():
            self.assertEqual(len(layers), 1, (prefix, layers))
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
        """A function has at most 70 lines between its braces (clang-format: in column 1)."""
        for path in files():
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for found in FUNCTION.finditer(text):
                name = f"{os.path.relpath(path, SRC)}: {found[1]}"
                self.assertLessEqual(found[2].count("\n"), 70, name)


if __name__ == "__main__":
    limetest.main()
