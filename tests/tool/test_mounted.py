"""A container in a mount, and a file in another format, are containers for each command that reads:
the results are those for the file. Commands that edit name the file."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import damage
import limetest
from limetest import needs_fuse, put, read, run

MANY = (["check"], ["check", "--data", "--physics"], ["check", "--strict", "--json", "--data"],
        ["ls", "-l"], ["ls", "--json"], ["info"], ["info", "--json"], ["lfn"])
ONE = (["checksum", "FILE"], ["checksum", "--json", "FILE"], ["checksum", "--cksum", "FILE"],
       ["cat", "FILE", "1"], ["cat", "FILE", "3"], ["cat", "--range", "7:50", "FILE", "2"],
       ["cat", "FILE", "ildg-binary-data.npy"], ["cat", "FILE", "3.nersc"],
       ["unpack", "-f", "FILE", "OUT"], ["convert", "-f", "FILE", "OUT/x.openqcd"],
       ["convert", "-f", "--to", "ildg", "FILE", "OUT/x"])
EDITS = (["append", "FILE", "-t", "x", "/dev/null"], ["replace", "FILE", "1", "/dev/null"],
         ["rm", "FILE", "1"], ["set", "FILE", "1", "--type", "x"], ["checksum", "--add", "FILE"],
         ["lfn", "--set", "lfn://a/b", "FILE"], ["repair", "FILE"], ["repair", "-n", "FILE"])
FORMATS = {"good.nersc": "nersc", "good.milc": "milc", "good.openqcd": "openqcd"}


def contents(directory):
    """Returns the bytes of the files, and removes them."""
    found = {}
    for name in sorted(os.listdir(directory)):
        found[name] = read(os.path.join(directory, name))
        os.unlink(os.path.join(directory, name))
    return found


def result(args, top, out):
    """Runs lime in a directory. Returns everything that it printed and wrote."""
    done = run(["lime", *(arg.replace("OUT", out) for arg in args)], cwd=top)
    return done.returncode, done.stdout, done.stderr, contents(out)


class Files(limetest.TestCase):
    def setUp(self):
        self.top = self.tempdir()
        for name, data in damage.kinds().items():
            put(os.path.join(self.top, name), data)

    def assert_same(self, names, tops):
        """Each command has the same result in all directories."""
        out = self.tempdir()
        cases = [[*command, *names] for command in MANY]
        cases += [[name if arg == "FILE" else arg for arg in command]
                  for command in ONE for name in names]
        for args in cases:
            one, *others = (result(args, top, out) for top in tops)
            for other in others:
                self.assertEqual(one, other, args)


@needs_fuse
class Mounted(Files):
    def test_damaged(self):
        """The same findings, also for formats that the mount shows as containers."""
        with limetest.Mount(self.top, opts="formats") as mount:
            names = os.listdir(self.top)
            self.assertGreater(sum(os.path.isdir(mount.join(name)) for name in names), 45)
            self.assert_same(sorted(names), (self.top, mount.path))

    def test_corpus(self):
        for top in limetest.CORPUS, limetest.CASES:
            names = [name for name in os.listdir(top) if name.endswith((".lime", ".ildg"))]
            copy = self.tempdir()
            for name in names:
                put(os.path.join(copy, name), read(os.path.join(top, name)))
            with limetest.Mount(copy) as mount, limetest.Mount(copy, opts="rw") as writable:
                self.assert_same(sorted(names), (copy, mount.path, writable.path))

    def test_sums_of_whole_files(self):
        sums = os.path.join(self.tempdir(), "sums")
        self.run_ok(["lime", "checksum", "--write", sums, "-r", self.top])
        with limetest.Mount(self.top, opts="formats") as mount:
            lines = self.lime("checksum", "--verify", sums, "--json", mount.path).splitlines()
            self.lime("checksum", "--write", sums, "-f", "-r", mount.path)
            self.lime("checksum", "--verify", sums, self.top)
        count = len(os.listdir(self.top))
        summary = json.loads(lines[-1])["summary"]
        self.assertEqual((summary["files"], summary["good"]), (count, count))

    def test_a_container_alone(self):
        path = os.path.join(self.top, "good")
        with limetest.Mount(path) as mount:
            self.assertEqual(self.lime("ls", path), self.lime("ls", mount.path))
            self.fails(["lime", "rm", mount.path, "1"], f"edit the file {path}\n", status=2)

    def test_edits(self):
        self.top = os.path.join(self.top, "a b\\c\n")  # mountinfo escapes such names
        os.mkdir(self.top)
        path = put(os.path.join(self.top, "conf"), damage.configuration())
        with limetest.Mount(self.top) as mount:
            for edit in EDITS:
                args = ["lime", *(mount.join("conf") if arg == "FILE" else arg for arg in edit)]
                done = self.fails(args, "conf: a container in a mount; edit the file ", status=2)
                self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
                self.assertIn(b"c?/conf\n", done.stderr)
        self.assertEqual(read(path), damage.configuration())

    def test_stage(self):
        out = self.tempdir()
        with limetest.Mount(self.top) as mount:
            self.lime("stage", mount.join("good"), out)
            self.lime("stage", mount.join("padding cut"), os.path.join(out, "renamed"))
            run(["lime", "stage", "-r", mount.path, out])
            top = os.path.join(out, os.path.basename(mount.path))
            for copy, name in (("good", "good"), ("renamed", "padding cut")):
                self.assertEqual(read(os.path.join(out, copy)), read(os.path.join(self.top, name)))
            self.assertEqual(read(os.path.join(top, "good")), damage.configuration())

    def test_refs(self):
        with limetest.Mount(os.path.join(self.top, "good")) as mount:
            refs = json.loads(self.lime("refs", mount.path))["refs"]
            data = b""
            for path, at, n in (ref for key, ref in refs.items() if key.startswith("field/0.")):
                data += read(path)[at:at + n]
            self.assertEqual(data, damage.raw())


class Formats(Files):
    """Files in other formats, without a mount."""

    def test_shown_as_a_container(self):
        for name, kind in FORMATS.items():
            path = os.path.join(self.top, name)
            listed = json.loads(self.lime("ls", "--json", path))
            self.assertEqual(listed["format"], kind)
            self.assertEqual([record["type"] for record in listed["records"]],
                             [f"{kind}-header", "ildg-format", "ildg-binary-data"])
            info = json.loads(self.lime("info", "--json", path))
            self.assertEqual((info["format"], info["size"], info["status"]),
                             (kind, os.path.getsize(path), "good"))
            self.assertEqual(info["fields"][0]["lattice"], list(damage.EXTENT))
            self.assertIn(f"{kind}-header", [one["type"] for one in info["info"]])
            double = self.run_ok(["lime", "cat", path, "3"])
            self.assertEqual(len(double), len(damage.raw()) // (2 if kind == "milc" else 1))
            if kind != "milc":
                self.assertEqual(double, damage.raw())
            self.lime("checksum", path, status=3)
            self.fails(["lime", "append", path, "-t", "x", "/dev/null"],
                       f"a {kind} file; 'lime convert --to ildg'", status=2)

    def test_check(self):
        """Without --data, the header is examined."""
        for name, data in damage.others().items():
            bad = name.startswith("cut")
            done = run(["lime", "check", "--bytes", os.path.join(self.top, name)])
            self.assertEqual(done.returncode, 1 if bad else 0, done)
            if not bad:
                self.assertIn(f"good: {name.split('.')[1]} file, {len(data)} bytes; data not read"
                              .encode(), done.stdout)
            done = run(["lime", "info", os.path.join(self.top, name)])
            self.assertEqual(done.returncode, 1 if bad else 0, done)

    def test_in_a_tree(self):
        """check and info -r know them, and skip files of no known format."""
        top = self.tempdir()
        for name, data in damage.others().items():
            put(os.path.join(top, name), data)
        put(os.path.join(top, "notes"), b"text")
        count = len(damage.others())
        for command in "check", "info":
            done = run(["lime", command, "-r", top])
            for name in damage.others():
                self.assertIn(name, (done.stdout + done.stderr).decode())
            self.assertNotIn(b"notes", done.stdout)
        self.assertIn(f"{count + 1} files: {count - 3} good, 3 bad", self.lime("check", "-r", top,
                                                                                status=1))


if __name__ == "__main__":
    limetest.main()
