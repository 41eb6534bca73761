"""No command opens an output by itself: what opens files for writing in src/lime and src/mpi is listed
here, with a reason each."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest

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
    "src/lime/tool/shared/copy.c": "a file without a name",
    "src/lime/tool/shared/pathlist.c": "a list that is read",
    "src/lime/stage/target.c": "lime stage: its own temporary file, which the next run resumes",
    "src/lime/stage/file.c": "the same",
    "src/lime/stage/remote.c": "the same",
    "src/mpi/series/series.c": "lemon_series: parts of a series",
    "src/mpi/series/push.c": "the same",
    "src/mpi/series/folder.c": "the same",
    "src/mpi/lemon/writer.c": "Lemon: a file that the program has opened",
    "src/mpi/programs/lemon_benchmark.c": "a file that is read and written for its time",
    "src/mpi/examples/canonical.c": "an example",
    "src/mpi/examples/sample.h": "an example",
    "src/mpi/job/opening.c": "a job: what the mount has open",
    "src/mpi/job/container.c": "the same",
    "src/mpi/job/store.c": "the same",
    "src/mpi/job/options.c": "a text",
    "src/mpi/checkpoint/main.c": "/dev/null",
    "src/mpi/checkpoint/input.c": "an input",
    "src/mpi/checkpoint/output.c": "lime-checkpoint's outputs",
    "src/mpi/bench/jsonfile.c": "lime-bench's figures",
    "src/mpi/bench/system.c": "lime-bench: a probe of the file system, a file of the kernel",
    "src/mpi/bench/backend": "lime-bench's container, by each library",
}


class Sources(limetest.TestCase):
    def test_every_open_has_a_reason(self):
        unknown = []
        for part in ("src/lime", "src/mpi"):
            for at, _, names in os.walk(os.path.join(limetest.REPO, part)):
                for name in names:
                    path = os.path.relpath(os.path.join(at, name), limetest.REPO)
                    if name.endswith((".c", ".h")) and not (
                            path in REASONS or os.path.dirname(path) in REASONS):
                        unknown += self.calls(path)
        self.assertEqual(unknown, [], "use limeoutput.h, or give a reason here")

    def calls(self, path):
        with open(os.path.join(limetest.REPO, path), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), file.read(), flags=re.S)
        return [f"{path}:{number}: {line.strip()}" for number, line in enumerate(text.split("\n"), 1)
                if CALLS.search(line) and not READS.search(line)]


if __name__ == "__main__":
    limetest.main()
