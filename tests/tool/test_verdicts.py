"""Verdicts and exit statuses of all commands for each kind of damage (docs/verdicts.md)."""
import errno
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import damage
import faults
import limetest
from limetest import container, header, run

sys.path.insert(0, os.path.join(limetest.REPO, "src", "lime", "python"))
sys.dont_write_bytecode = True
os.environ["LIME"] = limetest.program("lime")
import limefs
from damage import STATUS

# Bad with all options, as the structure or the metadata are wrong.
BAD = [*damage.cuts(), *damage.beginnings(), "bit in the XML", "bit in the lattice",
       "bit in the magic of the data", "version of the header of the data",
       "low bit of the length of the data", "high bit of the length of the data",
       "top bit of the length of the data", "bit in the type of the data",
       "top bit in the type of metadata", "message begins twice", "message does not end",
       "reserved byte", "checksum that cannot be read", "checksum of no data",
       "trailing garbage", "trailing zeros"]

# name: (check, check --data, check --data --physics).
VERDICTS = {
    "good": ("good", "good", "good"),
    **{name: ("bad", "bad", "bad") for name in BAD},
    **{name: ("good", "good", "good") for name in damage.harmless()},
    "bit in the data": ("good", "bad", "bad"),
    "bit in the last link": ("good", "bad", "bad"),
    "bit in the checksum": ("good", "bad", "bad"),
    "no checksum": ("good", "unverified", "unverified"),
    "bad link": ("good", "good", "bad"),
    "wrong plaquette": ("good", "good", "bad"),
    "good.nersc": ("good", "good", "good"),
    "sum.nersc": ("good", "bad", "bad"),
    "bit.nersc": ("good", "bad", "bad"),
    "plaquette.nersc": ("good", "bad", "bad"),
    "link.nersc": ("good", "good", "bad"),
    "cut.nersc": ("bad", "bad", "bad"),
    "good.milc": ("good", "good", "good"),
    "sum.milc": ("good", "bad", "bad"),
    "bit.milc": ("good", "bad", "bad"),
    "link.milc": ("good", "good", "bad"),
    "cut.milc": ("bad", "bad", "bad"),
    "good.openqcd": ("good", "good", "good"),
    "plaquette.openqcd": ("good", "bad", "bad"),
    "cut.openqcd": ("bad", "bad", "bad"),
}
OPTIONS = ([], ["--data"], ["--data", "--physics"])


def strict(verdict, name):
    """With --strict warnings and unverified data are bad."""
    return "bad" if verdict == "unverified" or name in damage.harmless() else verdict


def worst(verdicts):
    return max(verdicts, key=["good", "skipped", "unverified", "bad", "unreadable"].index)


class Verdicts(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = self.tempdir()
        self.files = {}
        for i, (name, data) in enumerate(damage.kinds().items()):
            path = os.path.join(self.directory, f"{i:02}-{name.replace(' ', '-')}")
            limetest.put(path, data)
            self.files[name] = path

    def test_all_kinds_are_in_the_table(self):
        self.assertEqual(set(VERDICTS), set(damage.kinds()))

    def test_check(self):
        for name, path in self.files.items():
            for options, verdict in zip(OPTIONS, VERDICTS[name], strict=True):
                with self.subTest(name, options=options):
                    done = run(["lime", "check", *options, path])
                    self.assertEqual(done.returncode, STATUS[verdict], done.stderr)
                    self.assertIn(f"{path}: {verdict}: ", done.stdout.decode().splitlines()[-1])
                    # lime prints a message for warnings and for every other verdict.
                    self.assertEqual(bool(done.stderr) or b": unverified: " in done.stdout,
                                     verdict != "good" or name in damage.harmless())
                    done = run(["lime", "check", "-q", *options, path])
                    self.assertEqual((done.returncode, bool(done.stdout + done.stderr)),
                                     (STATUS[verdict], verdict != "good"))

    def test_repair(self):
        """lime repair -n gives the verdict of lime check without --data and changes nothing."""
        for name, path in self.files.items():
            with self.subTest(name):
                done = run(["lime", "repair", "-n", path])
                verdict = VERDICTS[name][0] if damage.is_container(name) else "unreadable"
                self.assertEqual(done.returncode, STATUS[verdict], done)
                if done.returncode == 0 and b"nothing was changed" not in done.stdout:
                    self.assertIn(b"data not examined", done.stdout)
                self.assertEqual(limetest.read(path), damage.kinds()[name])

    def test_strict(self):
        for options, column in zip(OPTIONS[1:], (1, 2)):
            done = run(["lime", "check", "--json", "--strict", *options, *self.files.values()])
            self.assertEqual([one["status"] for one in limetest.json_lines(done.stdout)],
                             [strict(VERDICTS[name][column], name) for name in self.files])

    def test_json_of_all(self):
        """The exit status is the worst one, in the order 2, 1, 3, 0."""
        for options, column in zip(OPTIONS, (0, 1, 2)):
            expected = [VERDICTS[name][column] for name in self.files]
            done = run(["lime", "check", "--json", *options, *self.files.values()])
            got = limetest.json_lines(done.stdout)
            self.assertEqual([one["status"] for one in got], expected)
            self.assertEqual(done.returncode, STATUS[worst(expected)])
            for one in got:
                self.assertEqual(bool(one["error"]), one["status"] != "good", one)
                if one["status"] == "unreadable":
                    continue
                counted = one["deviations"] + one["faults"] > 0
                self.assertEqual(counted, one["status"] == "bad", one)
                self.assertEqual(one["warnings"], sum(f["harmless"] for f in one["findings"]))
        for names in (["good", "no checksum"], ["no checksum", "bad link", "bit in the data"],
                      ["good.nersc", "good"]):
            done = run(["lime", "check", "-q", "--data", *(self.files[name] for name in names)])
            self.assertEqual(done.returncode, STATUS[worst(VERDICTS[name][1] for name in names)])

    def test_recursive(self):
        """lime check -r skips files that are not containers; --all makes them bad."""
        names = list(self.files)
        self.files["notes"] = limetest.put(os.path.join(self.directory, "notes"), b"text")
        for options, column in zip(OPTIONS, (0, 1, 2)):
            expected = [VERDICTS[name][column] for name in names] + ["skipped"]
            for skipped, more in ("skipped", ["--list-skipped"]), ("bad", ["--all"]):
                done = run(["lime", "check", "-r", "--json", *options, *more, self.directory])
                self.assertEqual(done.returncode, 1)
                *got, totals = map(json.loads, done.stdout.splitlines())
                verdicts = [skipped if verdict == "skipped" else verdict for verdict in expected]
                self.assertEqual([(one["file"], one["status"]) for one in got],
                                 list(zip(self.files.values(), verdicts, strict=True)))
                self.assertEqual({word: totals["summary"][word] for word in STATUS},
                                 {word: verdicts.count(word) for word in STATUS})

    def test_info(self):
        """lime info examines structure and metadata, as lime check does without --data."""
        done = run(["lime", "info", "--json", *self.files.values()])
        self.assertEqual(done.returncode, 1)
        for name, one in zip(self.files, limetest.json_lines(done.stdout), strict=True):
            self.assertEqual(one["status"], VERDICTS[name][0], name)
        for name in ("good", "empty", "zeros", "bit in the first magic", "cut in the data",
                     "bit in the lattice", "reserved byte", "padding missing", "good.nersc"):
            with self.subTest(name):
                done = run(["lime", "info", self.files[name]])
                self.assertEqual(done.returncode, STATUS[VERDICTS[name][0]], done.stderr)
                self.assertEqual(b"problems" in done.stdout or bool(done.stderr),
                                 VERDICTS[name][0] != "good")
        done = run(["lime", "info", "-r", "--json", self.directory])
        self.assertEqual(done.returncode, 1)
        self.assertEqual([one["file"] for one in limetest.json_lines(done.stdout)[:-1]],
                         list(self.files.values()))

    def stage(self, path, verdict, *options):
        """lime copies only files that are not bad; returns the JSON and standard error."""
        target = self.tempdir()
        done = run(["lime", "stage", "--json", *options, path, target])
        result = json.loads(done.stdout)
        copied = verdict in ("good", "unverified", "skipped")
        self.assertEqual((done.returncode, result["status"], result["action"]),
                         (STATUS[verdict], verdict, "staged" if copied else "failed"), done)
        self.assertEqual(os.listdir(target), [os.path.basename(path)] if copied else [])
        return result, done.stderr

    def test_stage(self):
        """lime stage gives the verdict of lime check --data, for containers only."""
        for name, path in self.files.items():
            verdict = VERDICTS[name][1] if damage.is_container(name) else "unreadable"
            with self.subTest(name):
                result, errors = self.stage(path, verdict)
                harmless = name in damage.harmless()
                self.assertEqual(bool(result["deviations"]), harmless)
                self.assertEqual(b"warning" in errors, harmless or verdict == "unverified")
                self.stage(path, strict(verdict, name), "--strict")
                if verdict == "unreadable":
                    self.stage(path, "skipped", "--any")

    def test_stage_other_files(self):
        """An archive is not a container; a header of another version makes a damaged one."""
        good = damage.configuration()
        for data, verdict in ((b"PK\3\4" + bytes(1000) + good, "unreadable"),
                              (good[:4] + b"\0\2" + good[6:], "bad")):
            path = self.write("c", data)
            self.assertEqual(run(["lime", "check", path]).returncode, STATUS[verdict])
            self.stage(path, verdict)
        for name, verdict in (("only-data.ildg", "bad"), ("xlf-and-data.ildg", "bad"),
                              ("flags-contradict.lime", "bad"), ("usqcd-f3.lime", "good"),
                              ("quda-spinor.lime", "good"), ("bad-sum.nersc", "unreadable")):
            with self.subTest(name):
                self.stage(os.path.join(limetest.CASES, name), verdict)

    def test_python(self):
        for name, path in self.files.items():
            with self.subTest(name):
                self.assertEqual(limefs.check(path)["status"], VERDICTS[name][1])
        for name in "no checksum", "padding missing", "bad link", "empty":
            path = self.files[name]
            self.assertEqual(limefs.check(path, data=False)["status"], VERDICTS[name][0])
            self.assertEqual(limefs.check(path, physics=True)["status"], VERDICTS[name][2])
            self.assertEqual(limefs.check(path, strict=True)["status"],
                             strict(VERDICTS[name][1], name))
            self.assertEqual(limefs.open(path).status, VERDICTS[name][0])
        self.assertEqual(limefs.check("/nonexistent")["status"], "unreadable")
        with self.assertRaisesRegex(limefs.Error, "the first record header is damaged"):
            limefs.open(self.files["bit in the first magic"])


class Unreadable(limetest.TestCase):
    def test_a_disk_that_fails(self):
        """A file is unreadable, exit status 2, if any read fails."""
        path = self.write("c.lime", damage.configuration())
        fault = faults.Faults(os.path.dirname(path))
        for command in (["check"], ["check", "--data"], ["check", "--data", "--physics"],
                        ["check", "--data", "-r"], ["info"], ["checksum"]):
            target = os.path.dirname(path) if "-r" in command else path
            fault.count(faults.LIME)
            run(["lime", *command, target], env=fault.environment(), check=True)
            reads = fault.counts()["pread"]
            for nth in range(1, reads + 1):
                fault.arm(faults.LIME, "pread", nth, errno.EIO, lasts=True)
                done = run(["lime", *command, "--json", target], env=fault.environment())
                with self.subTest(command, nth=nth):
                    self.assertGreater(fault.struck, 0)
                    self.assertEqual(done.returncode, 2, done)
                    if command[0] != "checksum":
                        self.assertIn(b'"status": "unreadable"', done.stdout)


class Beginnings(limetest.TestCase):
    """How lime distinguishes a damaged container from another file."""

    def check(self, data):
        """Returns the finding and its offset, or None for another file."""
        directory = self.tempdir()
        limetest.put(os.path.join(directory, "f"), data)
        done = run(["lime", "check", "-r", "--json", "--list-skipped", directory])
        one = json.loads(done.stdout.splitlines()[0])
        self.assertEqual(done.returncode, STATUS[one["status"]])
        found = one.get("findings")
        return (found[0]["code"], found[0]["have"]) if found else None

    def test_damaged(self):
        good = damage.configuration()
        second = damage.places()[1][1]
        alone = container([("text", b"12345678" * 100)])
        for data, expected in (
                (good, None), (bytes(4) + good[4:], ("beginning", second)),
                (bytes(200) + good[200:], ("zeros", damage.places()[2][1])),
                (b"\xff" * 16 + good[16:], ("beginning", second)),
                # A single record: its header is the only one.
                (b"F" + alone[1:], ("beginning", 0)), (b"F" * 6 + alone[6:], ("beginning", 0)),
                # The first bytes are missing.
                (good[77:], ("beginning", second - 77)),
                # The next header is far behind, within the first MiB.
                (b"x" * 1000000 + good, ("beginning", 1000000)), (b"x" * 1100000 + good, None),
                (bytes(5 << 20) + good, ("zeros", 0)), (bytes(1), ("zeros", 0)),
                (bytes(143), ("zeros", 0))):
            self.assertEqual(self.check(data), expected)

    def test_others(self):
        good = damage.configuration()
        tar = (b"c.lime".ljust(257, b"\0") + b"ustar\x0000").ljust(512, b"\0") + good
        for data in (tar, b"PK\3\4" + bytes(26) + good, b"text, not LIME\n" * 1000,
                     bytes(range(256)) * 1000, b"\1", b"!<arch>\n" + good,
                     # Compressed, without links: gzip, bzip2, xz, zstd, lz4, 7z; and images.
                     *(begin + bytes(3) + good for begin in (
                         b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd",
                         b"\x04\x22\x4d\x18", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07\1\0", b"hsqs",
                         b"%PDF-1.4\n")),
                     # Similar to a header: too long, an unterminated type, flags, version.
                     b"abc\n" + header("t", 1 << 40, 1, 1)[4:],
                     b"abc\n" + header("t" * 128, 0, 1, 1)[4:],
                     b"abc\n" + header("t", 0, 1, 1, flags=0x81)[4:],
                     b"some text\n" * 20 + header("t", 0, 1, 1, version=2)):
            self.assertIsNone(self.check(data), data[:20])

    def test_a_sparse_beginning(self):
        """lime does not read gigabytes of zeros."""
        directory = self.tempdir()
        with open(os.path.join(directory, "f"), "wb") as file:
            file.seek(1 << 36)
            file.write(damage.configuration())
        self.fails(["lime", "check", "-r", directory],
                   "f: the file begins with zeros instead of a record header\n")


if __name__ == "__main__":
    limetest.main()
