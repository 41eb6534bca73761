"""lime convert of many files: targets, names, resuming, the table, damage."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import faults
import gaugelib
import limetest
import scidac
import volumelib
from limetest import container, read

U = gaugelib.random_links((2, 2, 2, 4))
LIME = scidac.gauge((2, 2, 2, 4), gaugelib.reals(U, ">f8").tobytes())
SUM = f"{gaugelib.nersc_sum(gaugelib.reals(U, '>f8').tobytes(), '>'):08x}"


def numbered(number):
    return container([("xlf-info", b"trajectory nr = %d\n" % number),
                      scidac.records((2, 2, 2, 4), gaugelib.reals(U, ">f8").tobytes())])


class Tree(limetest.TestCase):
    def setUp(self):
        self.dir = self.tempdir()
        self.source, self.target = self.path("run"), self.path("out")
        for name, data in (("conf.0002.lime", LIME), ("conf.0010", LIME), ("b/x.milc", LIME),
                           ("b/run1n7", gaugelib.write_openqcd(U)),
                           ("b/conf.0002.log", b"text\n"),
                           ("b/spinor", container([[("ildg-data-lfn", b"lfn://a/b")]]))):
            self.put("run/" + name, data)

    def path(self, name):
        return os.path.join(self.dir, name)

    def put(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        return limetest.put(self.path(name), data)

    def convert(self, *args, status=0, to="nersc"):
        """Converts the tree; returns {target: (status, sum)} of the table."""
        text = self.lime("convert", "--to", to, *args, "-r", self.source, self.target,
                         status=status)
        if not text:
            return None
        head, *lines = [line.split("\t") for line in text.splitlines()]
        self.assertEqual(head, ["source", "target", "status", "sum"])
        return {os.path.relpath(line[1], self.target): tuple(line[2:]) for line in lines}

    def found(self):
        return sorted(os.path.relpath(os.path.join(top, name), self.target)
                      for top, _, names in os.walk(self.target) for name in names)

    def test_tree(self):
        """The tree is kept; a second run does nothing, a later one only what has changed."""
        names = ["b/run1n7.nersc", "b/x.nersc", "conf.0002.nersc", "conf.0010.nersc"]
        self.assertEqual(self.convert(), dict.fromkeys(names, ("converted", SUM)))
        self.assertIn("6 files: 4 good, 0 bad, 0 unverified, 0 unreadable, 2 skipped", self.err)
        self.assertEqual(self.found(), names)
        for name in names:
            back = gaugelib.read_nersc(read(os.path.join(self.target, name)))[0]
            self.assertEqual(back.tobytes(), U.tobytes())
        before = {name: os.stat(os.path.join(self.target, name)) for name in names}
        self.assertEqual(self.convert(), dict.fromkeys(names, ("unchanged", SUM)))
        self.assertIn("6 files: 0 good, 0 bad, 0 unverified, 0 unreadable, 6 skipped", self.err)
        os.unlink(os.path.join(self.target, names[1]))
        newer = before[names[2]].st_mtime_ns + 10 ** 9
        os.utime(os.path.join(self.source, "conf.0002.lime"), ns=(newer, newer))
        done = self.convert(status=1)
        self.assertEqual([done[name][0] for name in names],
                         ["unchanged", "converted", "failed", "unchanged"])
        self.assertIn("conf.0002.nersc: exists already, but is older than its source", self.err)
        for name in (names[0], names[2], names[3]):
            self.assertEqual(os.stat(os.path.join(self.target, name)), before[name])
        done = self.convert("-f")
        self.assertEqual({status for status, _ in done.values()}, {"converted"})
        # Other forms are not up to date.
        self.assertEqual({status for status, _ in self.convert("--precision", "32",
                                                               status=1).values()}, {"failed"})

    def test_labels(self):
        """A target with another label is not up to date."""
        label = "--label", "caf\u00e9 " + 100 * "x"
        for args, status in (((), "converted"), (label, "failed"), ((*label, "-f"), "converted"),
                             (label, "unchanged"), ((), "unchanged"),
                             (("--ensemble", "x"), "failed")):
            done = self.convert(*args, status=int(status == "failed"))
            self.assertEqual({status for status, _ in done.values()}, {status}, args)

    def test_formats(self):
        for to, kind in (("milc", "conf.0002.milc"), ("openqcd", "conf.0002.openqcd"),
                         ("ildg", "conf.0002.ildg")):
            self.target = self.path(to)
            self.assertEqual(self.convert(to=to)[kind][0], "converted")
            self.assertEqual(self.convert(to=to)[kind][0], "unchanged")
            cut = os.path.join(self.target, kind)
            os.truncate(cut, os.path.getsize(cut) - 100)
            self.assertEqual(self.convert(to=to, status=1)[kind][0], "failed")

    def test_volumes(self):
        """A set is one source; a target that is older than any volume is not up to date."""
        dims = (2, 2, 2, 4)
        made = volumelib.Set(dims, [(576, gaugelib.reals(U, ">f8").tobytes())],
                             volumelib.blocks(dims, (1, 1, 1, 2)),
                             ildg=scidac.ildg_format(dims, 64))
        made.write(self.source)
        for expected in ("converted", "unchanged"):
            self.assertEqual(self.convert()["prop.vol0000.nersc"], (expected, SUM))
        later = os.stat(self.path("out/prop.vol0000.nersc")).st_mtime_ns + 10 ** 9
        os.utime(made.path(self.source, 1), ns=(later, later))
        self.assertEqual(self.convert(status=1)["prop.vol0000.nersc"][0], "failed")
        os.unlink(made.path(self.source, 0))
        self.assertEqual(self.convert(status=1)["prop.vol0001.nersc"][0], "failed")

    def test_interrupted(self):
        """The next run removes what killed processes have left, and completes the run."""
        with open(self.path("hole"), "wb") as file:
            file.truncate(40 << 30)
        os.mkdir(self.target)
        with subprocess.Popen([limetest.program("lime"), "pack", "-o", "conf.0002.nersc", "-t", "x",
                               self.path("hole")], cwd=self.target) as child:
            self.assertTrue(limetest._wait(self.found, 60))
            child.kill()
        left = self.found()
        self.assertTrue(left[0].startswith(".conf.0002.nersc.lime-tmp-"), left)
        self.assertEqual(set(self.convert().values()), {("converted", SUM)})
        self.assertEqual(len(self.found()), 4)
        self.assertNotIn(left[0], self.found())

    def test_damage(self):
        """A bad file does not stop the others; its error and status are in table and JSON."""
        self.put("run/conf.0001", LIME[:-9])
        self.put("run/conf.0003", LIME[:-1000] + bytes([LIME[-1000] ^ 1]) + LIME[-999:])
        self.put("run/conf.0004", LIME[:1000])
        self.put("run/conf.0005", b"")
        done = self.convert(status=1)
        self.assertEqual([done.get(f"conf.000{i}.nersc") for i in (1, 2, 3, 4, 5)],
                         [("converted", SUM), ("converted", SUM), ("failed", "-"),
                          ("failed", "-"), ("failed", "-")])
        self.assertIn("conf.0005: the file is empty", self.err)
        self.assertEqual(len(self.found()), 5)
        self.assertIn("the data have the checksum", self.err)
        quiet = self.convert("-q", status=1)
        self.assertEqual(list(quiet), ["conf.0003.nersc", "conf.0004.nersc",
                                       "conf.0005.nersc"])
        text = self.lime("convert", "--to", "nersc", "--json", "-r", self.source, self.target,
                         status=1)
        *lines, summary = [json.loads(line) for line in text.splitlines()]
        by_name = {os.path.basename(line["file"]): line for line in lines}
        self.assertEqual([(by_name[n]["result"], by_name[n]["status"], by_name[n]["sum"])
                          for n in ("conf.0002.lime", "conf.0004")],
                         [("unchanged", "skipped", SUM), ("failed", "bad", None)])
        self.assertIn("ends inside the data", by_name["conf.0004"]["error"])
        self.assertEqual(by_name["conf.0002.lime"]["error"], "up to date; its data were not read")
        self.assertEqual((summary["summary"]["skipped"], summary["summary"]["bad"]), (7, 3))

    def test_interrupted(self):
        """The table has the files that are done, and no unfinished file is left."""
        fault = faults.Faults(self.target)
        os.mkdir(self.target)
        command = [limetest.program("lime"), "convert", "--to", "nersc", "-j", "1", "-r",
                   self.source, self.target]
        fault.count(faults.LIME)
        self.run_ok(command, env=fault.environment())
        syncs = fault.counts()["fsync"] // 4  # of a file
        names = self.found()
        for number in signal.SIGINT, signal.SIGTERM:
            shutil.rmtree(self.target)
            os.mkdir(self.target)
            fault.arm(faults.LIME, "fsync", syncs + 1, 0, faults.HANG)
            with subprocess.Popen(command, env=fault.environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as process:
                self.assertTrue(limetest._wait(lambda: fault.struck, 60 * limetest.SLOWNESS))
                process.send_signal(number)
                out, errors = process.communicate(timeout=60 * limetest.SLOWNESS)
            self.assertEqual(process.returncode, -number, errors)
            self.assertEqual([line.split(b"\t")[2] for line in out.splitlines()],
                             [b"status", b"converted"])
            self.assertIn(b"interrupted; 3 files: 1 good, 0 bad, 0 unverified, 0 unreadable, "
                          b"2 skipped, 3 not examined; repeat the command to continue", errors)
            self.assertEqual(self.found(), names[:1])

    def test_names(self):
        """The number is the one in the name or, without one, the trajectory's in the metadata."""
        self.put("run/plain", numbered(31))
        self.put("run/5.6_L8", numbered(31))
        found = self.convert("--name", "{stem}-{n}-{ext}.{name}", status=1)
        self.assertIn("b/x.milc: no number for {n}", self.err)
        self.assertEqual(found.pop(os.path.relpath("-", self.target)), ("failed", "-"))
        self.assertEqual(sorted(found),
                         ["5.6_L-8-.5.6_L8", "b/run1n-7-.run1n7", "conf-0002-lime.conf.0002.lime",
                          "conf-0010-.conf.0010", "plain-31-.plain"])

    def test_large_number(self):
        """A trajectory number that NERSC's readers cannot hold is not written."""
        self.put("run/large", numbered(2 ** 64 - 1))
        self.convert()
        self.assertIn(b"\nSEQUENCE_NUMBER = 0\n", read(self.path("out/large.nersc")))

    def test_refused(self):
        """Nothing is written if two files would have one name, or a target is a source."""
        for args, text in ((("--name", "{stem}.nersc"), "would have this name"),
                           (("--name", "{x}"), "--name: invalid value '{x}'"),
                           (("--name", "a/{name}"), "--name: invalid value"),
                           (("--lfn", "lfn://a/b/c"), "--lfn"), (("--sequence", "1"), "one file")):
            self.convert(*args, status=2)
            self.assertIn(text, self.err)
            self.assertFalse(os.path.exists(self.target))
        self.target = ""
        self.convert(status=2)
        self.target = os.path.join(self.source, "b", "new")
        self.convert(status=2)
        self.assertIn("is in the source", self.err)
        self.assertFalse(os.path.exists(self.target))
        listing = self.put("list", self.source.encode() + b"\n")
        self.fails(["lime", "convert", "--to", "nersc", "-r", "--files-from", listing, self.target],
                   "is in the source", status=2)
        self.assertFalse(os.path.exists(self.target))
        before = read(self.path("run/conf.0010"))
        self.fails(["lime", "convert", "-f", "--to", "nersc", "--name", "{ext}conf.0010",
                    self.path("run/conf.0002.lime"), self.path("run/conf.0010"), self.source],
                   "is also a source")
        self.assertEqual(read(self.path("run/conf.0010")), before)

    def test_lists_and_table_file(self):
        """Files and lists go into the directory itself; the table may go into a file."""
        names = [self.path("run/conf.0002.lime"), self.path("run/b/x.milc")]
        table, listing = self.path("table"), self.put("list", "\0".join(names).encode())
        self.lime("convert", "--to", "nersc", "--table", table, "-0", "--files-from", listing,
                  self.target)
        self.assertEqual(self.found(), ["conf.0002.nersc", "x.nersc"])
        self.assertEqual(self.out, "2 files: 2 good, 0 bad, 0 unverified, 0 unreadable, 0 skipped\n")
        self.assertEqual(read(table).count(b"\tconverted\t"), 2)
        self.lime("convert", "--to", "nersc", "--table", table, *names, self.target)
        self.assertEqual(read(table).count(b"\tunchanged\t"), 2)
        self.fails(["lime", "convert", "--to", "nersc", "--table", names[0], *names, self.target],
                   "exists already and is not a table", status=2)
        os.mkfifo(self.path("pipe"))
        self.fails(["lime", "convert", "--to", "nersc", "--table", self.path("pipe"), *names,
                    self.path("new")], "pipe: open: ", status=2)
        self.assertFalse(os.path.exists(self.path("new")))


if __name__ == "__main__":
    limetest.main()
