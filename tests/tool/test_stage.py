"""lime stage: sums, refusals, existing targets, interruptions, full disks, concurrent runs."""

import contextlib
import errno
import functools
import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import faults
import limetest
import scidac
import writelib
from limetest import put, read

MIB = 1 << 20


@functools.lru_cache(maxsize=None)
def made(*options):
    """Returns the file that make-config writes."""
    path = os.path.join(limetest.tempdir(), "c")
    limetest.run(["make-config", *options, path], check=True)
    return read(path)


def configuration(path, lattice="4,4,4,8", seed=1, lfn="lfn://here"):
    """Writes a gauge configuration with its checksum."""
    return put(path, made("--lattice", lattice, "--seed", str(seed), "--lfn", lfn))


def large(path, mib, seed):
    """Writes a container of random bytes."""
    data = random.Random(seed).randbytes(mib * MIB - 7 * seed)
    return put(path, limetest.container([("xlf-info", b"x" * 77), ("data", data)]))


class TestCase(limetest.TestCase):
    def setUp(self):
        self.source, self.target = self.tempdir(), self.tempdir()

    def at_source(self, name):
        return os.path.join(self.source, name)

    def at_target(self, name):
        return os.path.join(self.target, name)

    def stage(self, *args, code=0, **kw):
        """Returns (result of each target's last name, stderr)."""
        done = limetest.run(["lime", "stage", "--json", *args], **kw)
        self.assertEqual(done.returncode, code, done)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return ({os.path.basename(line["target"]): line for line in lines if "target" in line},
                done.stderr.decode())

    def assertSame(self, name, source=None):
        a, b = source or self.at_source(name), self.at_target(name)
        self.assertTrue(read(a) == read(b), name)
        self.assertEqual(os.stat(a).st_mtime_ns, os.stat(b).st_mtime_ns, name)
        self.assertEqual(os.stat(a).st_mode, os.stat(b).st_mode, name)

    def assertNothingLeft(self, names=()):
        self.assertEqual(sorted(os.listdir(self.target)), sorted(names))

    def assertFails(self, reason, *args, code=1, **kw):
        found, errors = self.stage(*args, code=code, **kw)
        self.assertIn(reason, errors)
        return found


class Sums(TestCase):
    def check(self, path, result):
        data = read(path)
        cksum = limetest.run(["cksum", path], check=True).stdout.split()
        md5 = limetest.run(["md5sum", path], check=True).stdout.split()[0].decode()
        self.assertEqual(result["cksum"], int(cksum[0]), path)
        self.assertEqual(result["size"], int(cksum[1]), path)
        self.assertEqual(result["adler32"], f"{zlib.adler32(data):08x}", path)
        self.assertEqual(result["md5"], md5, path)

    def test_corpus(self):
        files = [name for name in os.listdir(limetest.CORPUS) if name.endswith(".lime")]
        paths = [os.path.join(limetest.CORPUS, name) for name in files]
        bad = "clime_pack_multi.lime"  # it has ildg-binary-data but no ildg-format
        found, _ = self.stage(*paths, self.target, code=1)
        self.assertEqual(found.pop(bad)["status"], "bad")
        for name, result in found.items():
            path = os.path.join(limetest.CORPUS, name)
            self.assertEqual((result["action"], result["status"]), ("staged", "good"))
            self.check(path, result)
            self.assertSame(name, path)
        self.assertEqual(found["qio_nersc_ildg.lime"]["lfn"], "lfn://test/lfn")
        self.assertGreater(found["qio_nersc_ildg.lime"]["checksums_verified"], 0)
        self.assertNothingLeft(found)

    def test_sizes(self):
        """Files around each boundary: blocks, pages, lanes of different lengths."""
        sizes = [0, 1, 7, 55, 56, 63, 64, 65, 4095, 4096, 4097, MIB - 1, MIB, MIB + 1, 3 * MIB,
                 3 * MIB + 4095, 5 * MIB + 13]
        for i, size in enumerate(sizes):
            put(self.at_source(f"f{i}"), random.Random(i).randbytes(size))
        for files in ("1", "4", "9", "64"):
            found, _ = self.stage("--any", "-f", "-j", files, *map(self.at_source, os.listdir(
                self.source)), self.target)
            for name in os.listdir(self.source):
                self.check(self.at_source(name), found[name])
                self.assertSame(name)

    def test_fewer(self):
        configuration(self.at_source("c"))
        found, _ = self.stage("--sums=md5", self.at_source("c"), self.target)
        self.assertIsNone(found["c"]["adler32"])
        self.assertIsNotNone(found["c"]["md5"])
        found, _ = self.stage("-f", "--sums", "cksum", self.at_source("c"), self.target)
        self.assertIsNone(found["c"]["md5"])
        # The second run stages the missing ones and skips the others.
        found, _ = self.stage(self.at_source("c"), self.target)
        self.assertEqual(found["c"]["action"], "there")
        self.check(self.at_source("c"), found["c"])

    def test_table(self):
        configuration(self.at_source("c"), lfn="lfn://a/b")
        done = limetest.run(["lime", "stage", self.at_source("c"), self.target], check=True)
        head, row = done.stdout.decode().splitlines()
        md5 = limetest.run(["md5sum", self.at_source("c")]).stdout.split()[0].decode()
        self.assertEqual(head.split(),
                         "STATUS SIZE CKSUM ADLER32 MD5 VERDICT PATH LFN DATA".split())
        data = limetest.run(["lime", "checksum", "--cksum", self.at_source("c")], check=True)
        self.assertEqual([row.split()[i] for i in (0, 4, 5, 6, 7, 8)],
                         ["staged", md5, "good", self.at_target("c"), "lfn://a/b",
                          data.stdout.split()[0].decode()])
        self.assertIn(b"1 staged", done.stderr)
        quiet = limetest.run(["lime", "stage", "-q", self.at_source("c"), self.target])
        self.assertEqual(quiet.stderr, b"")

    def cksums(self, name):
        done = limetest.run(["lime", "checksum", "--cksum", "--json", self.at_source(name)])
        return [{"ordinal": r["ordinal"], "cksum": r["cksum"]}
                for r in json.loads(done.stdout)["records"] if r["type"] == "ildg-binary-data"]

    def test_data(self):
        """crcCheckSum of each record, from the copy and from the stored attribute."""
        dice = random.Random(5)

        def field(sites):
            return [("ildg-format", scidac.ildg_format((sites, 1, 1, 1), 32)),
                    ("ildg-binary-data", dice.randbytes(288 * sites))]
        put(self.at_source("some"), limetest.container(
            [field(sites) for sites in (3, 1, 10923, 3 * MIB // 144, 2)] +
            [[("scidac-binary-data", dice.randbytes(99))], field(1)]))
        put(self.at_source("many"), limetest.container(
            [field(dice.randrange(1, 5)) for _ in range(1000)]))
        put(self.at_source("none"), limetest.container([("x", b"x")]))
        put(self.at_source("any"), b"no container")
        names = ("some", "many", "none", "any")
        want = {name: self.cksums(name) for name in ("some", "many")}
        for status in ("staged", "there", "there"):
            found, _ = self.stage("--any", *map(self.at_source, names), self.target, code=3)
            self.assertEqual({found[name]["action"] for name in names}, {status})
            self.assertEqual(found["some"]["data"], want["some"])
            self.assertEqual(found["many"]["data"], want["many"][:128])
            self.assertEqual([found[name]["data_more"] for name in names], [0, 872, 0, 0])
            self.assertEqual((found["none"]["data"], found["any"]["data"]), ([], []))
        self.assertEqual(len(want["some"]), 6)
        # Earlier versions stored no crcCheckSum; --check-there computes it.
        name = "user.limefs.staged"
        old = os.getxattr(self.at_target("some"), name)
        os.setxattr(self.at_target("some"), name, old[:old.index(b" data")])
        found, _ = self.stage(self.at_source("some"), self.target, code=3)
        self.assertEqual((found["some"]["action"], found["some"]["data"]), ("there", None))
        for broken in (b" data", b" data ", b" data 1:2", b" data 1:99999999999 +0",
                       b" data x:1 +0", b" data 1:2 +", b" data -1:2 +0", b" data 1:2 +0 "):
            os.setxattr(self.at_target("some"), name, old[:old.index(b" data")] + broken)
            found, _ = self.stage(self.at_source("some"), self.target, code=3)
            self.assertIsNone(found["some"]["data"], broken)

    def test_hole(self):
        with open(self.at_source("hole"), "wb") as file:
            file.truncate(9 * MIB + 5)
        found, _ = self.stage("--any", self.at_source("hole"), self.target)
        self.check(self.at_source("hole"), found["hole"])
        self.assertSame("hole")


class Bad(TestCase):
    def test_bad_files_do_not_stop_the_others(self):
        good = read(configuration(self.at_source("good")))
        flipped = bytearray(good)
        flipped[len(good) // 2] ^= 4
        put(self.at_source("flipped"), flipped)
        put(self.at_source("cut"), good[:-5000])
        put(self.at_source("text"), b"no container at all")
        put(self.at_source("empty"), b"")
        os.mkfifo(self.at_source("fifo"))
        os.mkdir(self.at_source("directory"))
        names = ["flipped", "cut", "text", "missing", "empty", "good", "fifo", "directory"]
        found, errors = self.stage(*map(self.at_source, names), self.target, code=2)
        self.assertEqual({name for name, r in found.items() if r["action"] == "staged"}, {"good"})
        self.assertEqual({name: r["status"] for name, r in found.items()},
                         {"flipped": "bad", "cut": "bad", "text": "unreadable",
                          "missing": "unreadable", "empty": "bad", "good": "good",
                          "fifo": "unreadable", "directory": "unreadable"})
        for reason in ("7 of 8 files failed", "flipped: record 3: wrong checksum",
                       "text: not a LIME container; --any", "missing: open: ", "empty: the file is empty",
                       "cut: ", "fifo: open: ", "directory: open: Is a directory"):
            self.assertIn(reason, errors)
        self.assertIn("wrong checksum", found["flipped"]["error"])
        self.assertEqual(found["flipped"]["size"], len(flipped))
        self.assertIsNone(found["missing"]["size"])
        self.assertSame("good")
        self.assertNothingLeft(["good"])

    def test_skipped(self):
        """In a tree, only sources that are not containers are skipped, whatever the targets are."""
        os.mkdir(self.at_source("t"))
        status = os.stat(configuration(self.at_source("t/conf"), "2,2,2,2"))
        size = status.st_size
        put(self.at_source("t/text"), b"x" * size)
        os.mkdir(self.at_target("t"))
        for name in "conf", "text":
            put(self.at_target(f"t/{name}"), b"y" * size)
            for path in self.at_source(f"t/{name}"), self.at_target(f"t/{name}"):
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        for args, names in ((), ["conf"]), (["--list-skipped"], ["conf", "text"]):
            found, errors = self.stage(*args, "-r", self.at_source("t"), self.target, code=2)
            self.assertEqual(list(found), names)
            self.assertEqual((found["conf"]["action"], found["conf"]["status"]),
                             ("failed", "unreadable"))
            self.assertIn("1 of 2 files failed", errors)
            self.assertIn("1 failed; 1 skipped (not containers; --any copies them)", errors)
        self.assertEqual((found["text"]["action"], found["text"]["status"],
                          found["text"]["error"]),
                         ("skipped", "skipped", "not a LIME container"))
        self.assertEqual(read(self.at_target("t/text")), b"y" * size)

    def test_damaged_target(self):
        """The message and the verdict are about the target, not about the good source."""
        path, target = configuration(self.at_source("conf"), "2,2,2,2"), self.at_target("conf")
        self.stage(path, self.target)
        data, status = bytearray(read(target)), os.stat(target)
        data[-800] ^= 1  # in the lattice
        put(target, bytes(data))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        for args in ["--check-there"], []:
            if not args:
                for name in os.listxattr(target):
                    os.removexattr(target, name)
            self.assertFails("the existing target is not a good copy: record 3: wrong checksum",
                             *args, path, self.target)
        self.assertEqual(read(target), bytes(data))

    def test_any(self):
        put(self.at_source("text"), b"no container at all")
        put(self.at_source("empty"), b"")
        found, _ = self.stage("--any", self.at_source("text"), self.at_source("empty"),
                              self.target)
        self.assertEqual([(r["container"], r["status"], r["error"]) for r in found.values()],
                         2 * [(False, "skipped", "not a LIME container")])
        self.assertSame("text")
        self.assertSame("empty")

    def test_usage(self):
        configuration(self.at_source("c"))
        for args in ([], [self.target], ["--sums=sha1", "a", "b"], ["-j", "0", "a", "b"],
                     ["--files-from", "l", "a", "b"], ["--checkpoint", "0", "a", "b"]):
            self.stage(*args, code=2)
        for sums in ("", ",", "md5,", "md5,,cksum", "md5 ", "MD5"):
            _, errors = self.stage("--sums", sums, self.at_source("c"), self.target, code=2)
            self.assertIn("--sums: unknown checksum '", errors)
        self.stage("--sums=md5,md5", self.at_source("c"), self.at_target("twice"))
        self.assertFails("not a directory", self.at_source("c"), self.at_source("c"),
                         self.at_target("twice"))
        self.assertFails("would have this name", self.at_source("c"),
                         self.source + "/./c", self.target)

    def test_source_that_changes(self):
        path = large(self.at_source("c"), 24, 1)
        fault = faults.Faults(os.path.dirname(path))
        fault.arm(faults.LIME, faults.EACH, 1, 0, faults.CHANGE, lasts=True,
                  rename=(os.fsencode(path), b"", 0))
        self.assertFails("the source keeps changing", path, self.target, env=fault.environment())
        self.assertGreater(fault.struck, 10)
        self.assertNothingLeft()
        self.stage(path, self.target)
        self.assertSame("c")

    def test_source_that_shrinks(self):
        path = large(self.at_source("c"), 40, 1)
        data = read(path)
        for pause in (0.005, 0.01, 0.02, 0.04):
            put(path, data)
            process = subprocess.Popen([limetest.program("lime"), "stage", "-q", path,
                                        self.target], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE)
            time.sleep(pause)
            os.truncate(path, 1 * MIB)
            errors = process.communicate()[1]
            if process.returncode == 0:
                self.assertTrue(read(self.at_target("c")) == data)
                os.unlink(self.at_target("c"))
            else:
                self.assertIn(b"c: ", errors)
            self.assertNothingLeft()


class Unverified(TestCase):
    """Checksums that lime stage can't compare with anything."""

    def setUp(self):
        super().setUp()
        self.files = {}
        data = random.Random(1).randbytes(4 * 4 * 4 * 8 * 576)
        good = scidac.records((4, 4, 4, 8), data)
        record = ("scidac-private-record-xml", b"<scidacRecord><recordtype>0</recordtype>"
                  b"<datatype>QDP_D3_ColorMatrix</datatype><precision>D</precision>"
                  b"<typesize>144</typesize><datacount>4</datacount></scidacRecord>")
        for name, why, records in (
                ("nissa", "the size of a site is unknown",
                 [("scidac-binary-data", data), good[2]]),
                ("garbled", "its checksum cannot be understood",
                 [good[0], good[1], ("scidac-checksum", b"<x/>")]),
                ("part", "one volume of a partitioned set; use 'lime join'",
                 [("scidac-private-file-xml", b"<scidacFile><dims>4 4 4 16</dims>"
                   b"<volfmt>1</volfmt></scidacFile>"), record,
                  ("scidac-binary-data", data), good[2]])):
            ordinal = 1 + [type.endswith("data") for type, _ in records].index(True)
            put(self.at_source(name), limetest.container(records))
            self.files[name] = f"record {ordinal}: unverified: {why}"
        self.good = put(self.at_source("good"), limetest.container(good))

    def test_warning(self):
        for name, reason in self.files.items():
            path = self.at_source(name)
            if name == "garbled":  # metadata that cannot be read
                found, errors = self.stage(path, self.good, "-f", self.target, code=1)
                self.assertEqual(found[name]["status"], "bad")
                continue
            found, errors = self.stage(path, self.good, "-f", self.target, code=3)
            self.assertIn(f"lime: {path}: warning: {reason}\n", errors)
            self.assertIn("; 1 unverified", errors)
            self.assertEqual([(r["status"], r["checksums_verified"], r["checksums_unverified"],
                               r["unverified"]) for r in (found[name], found["good"])],
                             [("unverified", 0, 1, [reason]), ("good", 1, 0, [])])
            self.assertSame(name)
            # A second run, with the target up to date, gives the same warning.
            found, errors = self.stage(path, self.target, code=3)
            self.assertEqual((found[name]["action"], found[name]["status"]),
                             ("there", "unverified"))
            self.assertIn(f"warning: {reason}", errors)

    def test_strict(self):
        for name, reason in self.files.items():
            found, errors = self.stage("--strict", self.at_source(name), self.good, self.target,
                                       code=1)
            self.assertEqual((found[name]["action"], found[name]["status"]), ("failed", "bad"))
            if name != "garbled":  # lime names that deviation first
                self.assertEqual(found[name]["error"], reason)
                self.assertEqual(errors.count(reason), 1)
            self.assertNothingLeft(["good"])

    def test_table(self):
        put(self.at_source("none"), limetest.container([("xlf-info", b"text")]))
        sources = [self.good, self.at_source("nissa"), self.at_source("none"),
                   self.at_source("missing")]
        def verdicts(*options):
            done = limetest.run(["lime", "stage", *options, *sources, self.target])
            rows = [row.split() for row in done.stdout.decode().splitlines()[1:]]
            return {os.path.basename(row[6]): row[5] for row in rows}
        self.assertEqual(verdicts(), {"good": "good", "nissa": "unverified", "none": "good",
                                      "missing": "unreadable"})
        self.assertEqual(verdicts()["good"], "-")  # up to date, so it is not read in this run
        self.assertEqual(verdicts("--check-there")["good"], "good")

    def test_many(self):
        """Many warnings do not hide unverified checksums."""
        field = [("scidac-binary-data", b"x" * 80),
                 ("scidac-checksum", scidac.checksum_xml((1, 2)))]
        padding = limetest.record("a", b"data", True, True, padding=b"!!!!")
        put(self.at_source("c"), limetest.container([padding] * 40 + [field] * 20))
        found, errors = self.stage(self.at_source("c"), self.target, code=3)
        self.assertEqual(found["c"]["checksums_unverified"], 20)
        self.assertIn("record 41: unverified: ", errors)

    def test_without_a_checksum(self):
        """Fields and particles whose sums lime stage does not compare."""
        records = scidac.records((2, 2, 2, 2), bytes(16 * 576))
        for records, why in ((records[:2], "the data have no checksum"),
                             ([("scidac-binary-data", b"data")], "nothing describes these data"),
                             ([("lemon-cells-data", b"data")], "particles; ")):
            path = put(self.at_source("c"), limetest.container([records]))
            found, errors = self.stage("-f", path, self.target, code=3)
            self.assertEqual((found["c"]["status"], found["c"]["checksums_unverified"],
                              found["c"]["deviations"]), ("unverified", 1, []))
            self.assertIn(f"{path}: warning: record {len(records)}: unverified: {why}", errors)
            self.assertFails(why, "-f", "--strict", path, self.target)

    def test_verified_counts_right_checksums(self):
        found, _ = self.stage("--verify-target", self.good, self.target)
        self.assertEqual(found["good"]["checksums_verified"], 1)
        flipped = bytearray(read(self.good))
        flipped[len(flipped) // 2] ^= 1
        found, _ = self.stage(put(self.at_source("bad"), flipped), self.target, code=1)
        self.assertIsNone(found["bad"]["checksums_verified"])
        # Another program made the copy, so lime reads both.
        shutil.copy2(self.good, self.at_target("d"))
        found, _ = self.stage(self.good, self.at_target("d"))
        self.assertEqual((found["d"]["action"], found["d"]["checksums_verified"]), ("there", 1))


class UpToDate(TestCase):
    def setUp(self):
        super().setUp()
        configuration(self.at_source("c"), lfn="lfn://a/b")

    def test_again(self):
        first, _ = self.stage(self.at_source("c"), self.target)
        inode = os.stat(self.at_target("c")).st_ino
        again, _ = self.stage(self.at_source("c"), self.target)
        self.assertEqual(again["c"]["action"], "there")
        for what in ("cksum", "adler32", "md5", "lfn", "size"):
            self.assertEqual(first["c"][what], again["c"][what])
        self.assertEqual(os.stat(self.at_target("c")).st_ino, inode)
        forced, _ = self.stage("--force", self.at_source("c"), self.target)
        self.assertEqual(forced["c"]["action"], "staged")
        self.assertSame("c")
        self.assertNothingLeft(["c"])

    def test_other_files(self):
        st = os.stat(self.at_source("c"))
        data = bytearray(read(self.at_source("c")))
        put(self.at_target("c"), b"other")
        self.assertFails("a different size (5 bytes)", self.at_source("c"), self.target)
        put(self.at_target("c"), data)
        self.assertFails("a different modification time", self.at_source("c"), self.target)
        data[data.index(b"lfn://a/b")] ^= 1  # no checksum covers this byte
        put(self.at_target("c"), data)
        os.utime(self.at_target("c"), ns=(st.st_atime_ns, st.st_mtime_ns))
        self.assertFails("has different contents", self.at_source("c"), self.target)
        self.stage("-f", self.at_source("c"), self.target)
        self.assertSame("c")

    def test_rounded_times(self):
        """A target file system rounds times: to 100 ns, microseconds, ..., seconds."""
        path, second = self.at_source("c"), 10 ** 18
        os.utime(path, ns=(second, second + 987654321))
        self.stage(path, self.target)
        for rounded in [987654321 // 10 ** n * 10 ** n for n in range(2, 10)]:
            os.utime(self.at_target("c"), ns=(second, second + rounded))
            # lime finds it by its attribute and reads no data.
            found, _ = self.stage(path, self.target)
            self.assertEqual((found["c"]["action"], found["c"]["checksums_verified"]),
                             ("there", None), rounded)
        for other in (987654322, 987654320, 987654400, 987655000, 987654001, 1000000000):
            os.utime(self.at_target("c"), ns=(second, second + other))
            self.assertFails("a different modification time", path, self.target)

    def test_damaged(self):
        self.stage(self.at_source("c"), self.target)
        st = os.stat(self.at_target("c"))
        with open(self.at_target("c"), "r+b") as file:
            file.seek(read(self.at_source("c")).index(b"lfn://a/b"))  # no other checksum covers it
            file.write(b"?")
        os.utime(self.at_target("c"), ns=(st.st_atime_ns, st.st_mtime_ns))
        found, _ = self.stage(self.at_source("c"), self.target)
        self.assertEqual(found["c"]["action"], "there")  # by size and time, as in rsync
        self.assertFails("the target has been damaged", "--check-there", self.at_source("c"),
                         self.target)

    def test_damaged_target_is_read_once(self):
        """lime reads a damaged target only once, like one that is up to date."""
        path = large(self.at_source("d"), 24, 1)
        self.stage(path, self.target)
        st = os.stat(self.at_target("d"))
        fault = faults.Faults(self.target)

        def reads(code):
            fault.count(faults.LIME)
            found, _ = self.stage("--check-there", path, self.target, code=code,
                                  env=fault.environment())
            return found["d"], sum(fault.counts().get(call, 0) for call in ("pread", "preadv"))
        good = reads(0)
        with open(self.at_target("d"), "r+b") as file:
            file.seek(5 * MIB)
            file.write(b"damage")
        os.utime(self.at_target("d"), ns=(st.st_atime_ns, st.st_mtime_ns))
        bad = reads(1)
        self.assertIn("the target has been damaged", bad[0]["error"])
        self.assertGreaterEqual(good[1], 12)
        self.assertLess(bad[1], good[1] + 6)

    def test_links(self):
        other = put(os.path.join(self.tempdir(), "other"), b"other")
        os.symlink(self.at_source("c"), self.at_source("link"))
        self.stage(self.at_source("link"), self.target)
        self.assertTrue(read(self.at_target("link")) == read(self.at_source("c")))
        self.assertFalse(os.path.islink(self.at_target("link")))
        os.symlink(other, self.at_target("c"))
        self.assertFails("is a link; --force", self.at_source("c"), self.target)
        self.stage("-f", self.at_source("c"), self.target)
        self.assertFalse(os.path.islink(self.at_target("c")))
        self.assertSame("c")
        self.assertEqual(read(other), b"other")

    def test_not_a_file(self):
        """lime never replaces a device, a FIFO or a socket, not even with -f."""
        os.mkfifo(self.at_target("fifo"))
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
            server.bind(self.at_target("socket"))
        os.symlink("/dev/null", self.at_target("link"))
        names = [("fifo", "is a FIFO"), ("socket", "is a socket"), ("link", "leads to a device")]
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):
                os.mknod(self.at_target("device"), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
                names.append(("device", "is a device"))
        before = os.listdir(self.target)
        for name, reason in names:
            inode = os.lstat(self.at_target(name)).st_ino
            for options in ([], ["-f"]):
                found = self.assertFails(reason, *options, self.at_source("c"),
                                         self.at_target(name))
                self.assertNotIn("force", found[name]["error"])
            self.assertEqual(os.lstat(self.at_target(name)).st_ino, inode)
        self.assertNothingLeft(before)

    def test_itself(self):
        self.assertFails("the source itself", "-f", self.at_source("c"), self.source)
        os.mkdir(self.at_target("c"))
        self.assertFails("is a directory", "-f", self.at_source("c"), self.target)

    def test_names(self):
        """The longest name, a file as DST, odd characters."""
        for name in ("n" * 255, "a b\nc\x1b", "-dash", "\udcff"):
            shutil.copy2(self.at_source("c"), self.at_source(name))
            self.stage("--", self.at_source(name), self.target)
            self.assertSame(name)
        self.stage(self.at_source("c"), self.at_target("d"))
        self.assertSame("d", self.at_source("c"))
        here = limetest.run(["lime", "stage", "-q", self.at_source("c"), "e"], cwd=self.target)
        self.assertEqual(here.returncode, 0, here)
        self.assertSame("e", self.at_source("c"))

    def test_modes(self):
        os.chmod(self.at_source("c"), 0o640)
        os.utime(self.at_source("c"), ns=(10 ** 18 + 7, 10 ** 18 + 123456789))
        if os.geteuid() == 0:
            os.chown(self.at_source("c"), 4711, 4712)
        self.stage(self.at_source("c"), self.target)
        self.assertSame("c")
        self.assertEqual(os.stat(self.at_source("c")).st_gid, os.stat(self.at_target("c")).st_gid)


class Lists(TestCase):
    def test_tree(self):
        for name in ("a/x", "a/b/y", "a/b/z"):
            os.makedirs(os.path.dirname(self.at_source(name)), exist_ok=True)
            configuration(self.at_source(name), "2,2,2,2", seed=len(name))
        os.symlink("y", self.at_source("a/b/link"))
        unfinished = [".q.limefs-stage", ".q.lime-tmp-0123abcd-42-1f-0"]
        for name in unfinished:
            put(self.at_source(f"a/b/{name}"), b"left by a run")
        self.assertFails("Is a directory; use -r", self.at_source("a"), self.target, code=2)
        self.stage("-r", self.at_source("a") + "/", self.target)
        for name in ("a/x", "a/b/y", "a/b/z"):
            self.assertSame(name)
        self.assertTrue(read(self.at_target("a/b/link")) == read(self.at_source("a/b/y")))
        for name in unfinished:
            self.assertFalse(os.path.exists(self.at_target(f"a/b/{name}")))

    def test_directory_that_cannot_be_made(self):
        for name in ("t/a/b/x", "t/c/x"):
            os.makedirs(os.path.dirname(self.at_source(name)))
            configuration(self.at_source(name), "2,2,2,2")
        os.mkdir(self.at_target("t"))
        put(self.at_target("t/a"), b"another user's data")
        done = limetest.run(["lime", "stage", "--json", "-r", self.at_source("t"), self.target])
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual({line["target"]: line["action"]
                          for line in map(json.loads, done.stdout.splitlines()[:-1])},
                         {self.at_target("t/a/b/x"): "failed", self.at_target("t/c/x"): "staged"})
        for name, why in (("a", "File exists"), ("a/b", "Not a directory")):
            self.assertIn(f"lime: {self.at_target('t')}/{name}: not copied: mkdir: {why}\n",
                          done.stderr.decode())
        self.assertSame("t/c/x")
        self.assertEqual(read(self.at_target("t/a")), b"another user's data")
        # lime also reports a directory without files.
        shutil.rmtree(self.at_source("t/a/b"))
        self.assertFails("t/a: not copied: mkdir: ", "-r", self.at_source("t"), self.target)

    def test_tree_without_a_name(self):
        """The contents of a source like "." go directly into DST."""
        os.mkdir(self.at_target("dst"))
        os.makedirs(self.at_source("a/b/d"))
        for name in ("a/x", "a/b/d/y"):
            configuration(self.at_source(name), "2,2,2,2")
        dst, a, b = self.at_target("dst"), self.at_source("a"), self.at_source("a/b")
        for directory, source in ((b, ".."), (b, "../"), (self.source, "a/b/.."), (a, "."),
                               (self.source, "a/."), (a, "./")):
            for target in (dst, dst + "/"):
                done = limetest.run(["lime", "stage", "--json", "-r", source, target],
                                    cwd=directory)
                self.assertEqual(done.returncode, 0, done)
                lines = done.stdout.splitlines()[:-1]
                self.assertEqual({json.loads(line)["target"] for line in lines},
                                 {dst + "/x", dst + "/b/d/y"})
                self.assertNothingLeft(["dst"])
                self.assertEqual(sorted(os.listdir(dst)), ["b", "x"])
                self.assertSame("dst/x", self.at_source("a/x"))
                self.assertSame("dst/b/d/y", self.at_source("a/b/d/y"))
                shutil.rmtree(dst + "/b")
                os.unlink(dst + "/x")
        # Names that only begin like "." and "..".
        for name in ("...", "..x", ".x"):
            os.mkdir(self.at_source(name))
            shutil.copy2(self.at_source("a/x"), self.at_source(name))
            self.stage("-r", self.at_source(name), dst)
            self.assertSame(f"dst/{name}/x", self.at_source("a/x"))

    def test_one_target_for_two(self):
        """lime refuses two sources for one target, in any spelling, also with --force."""
        for name in ("a", "b"):
            os.mkdir(self.at_source(name))
            configuration(self.at_source(name + "/x"), "2,2,2,2", seed=ord(name))
            put(self.at_source(name + "/" + name), read(self.at_source(name + "/x")))
        a, b = self.at_source("a"), self.at_source("b")
        os.mkdir(self.at_target("a"))
        os.symlink("a", self.at_target("b"))
        for options in ([], ["-f"]):
            self.assertFails("both ", "-r", *options, a, b, self.target)
            self.assertFails(f"both {a}/./x and {b}/x", "-r", *options, a + "/.", b + "/x",
                             self.at_target("b"))
        self.assertNothingLeft(["a", "b"])
        self.assertEqual(os.listdir(self.at_target("a")), [])
        # Two sources may share a directory.
        os.unlink(b + "/x")
        self.stage("-r", a, b, self.target)
        self.assertEqual(sorted(os.listdir(self.at_target("a"))), ["a", "b", "x"])
        self.assertSame("a/b", b + "/b")

    def test_files_from(self):
        names = [configuration(self.at_source(f"c{i}"), "2,2,2,2", seed=i) for i in range(20)]
        listed = "\n".join(names[:-1]) + "\n\n" + names[-1]
        found, _ = self.stage("--files-from", "-", self.target, input=listed.encode())
        self.assertEqual(len(found), 20)
        for i in range(20):
            self.assertSame(f"c{i}")
        names = [configuration(self.at_source(name), "2,2,2,2") for name in ("a\nb", "c d")]
        listed = "".join(name + "\0" for name in names)
        found, _ = self.stage("-0", "--files-from", "-", self.target, input=listed.encode())
        self.assertEqual(set(found), {"a\nb", "c d"})
        self.stage("-0", names[0], self.target, code=2)
        self.stage("--files-from", self.at_source("none"), self.target, code=2)

    def test_no_files(self):
        for text in (b"", b"\n\n"):
            self.assertFails("standard input: the list is empty", "--files-from", "-", self.target,
                             input=text, code=0)
        self.assertFails("lime: /dev/null: the list is empty", "--files-from", "/dev/null",
                         self.target, code=0)

    def test_tree_into_itself(self):
        inner = self.at_source("inner")
        configuration(self.at_source("c"), "2,2,2,2")
        os.mkdir(inner)
        for target in (self.source, inner):
            self.assertFails("is inside it", "-r", self.source, target)
        self.assertEqual((os.listdir(inner), sorted(os.listdir(self.source))),
                         ([], ["c", "inner"]))
        os.mkdir(self.source + "-2")
        self.addCleanup(shutil.rmtree, self.source + "-2")
        self.stage("-r", self.source, self.source + "-2")

    def test_no_directory(self):
        path = configuration(self.at_source("c"), "2,2,2,2")
        none, reason = self.at_target("none"), ": no such directory; create it first"
        self.assertFails(none + "/" + reason, path, none + "/c")
        self.assertFails(none + "/" + reason, path, none + "/")
        self.assertFails(none + reason, path, path, none)
        self.assertFails(none + reason, "-r", self.source, none)
        self.assertFails(none + reason, "--files-from", "-", none, input=b"a\nb\n")
        os.symlink("nowhere", none)
        self.assertFails("a dangling link", path, path, none)
        self.assertFails("not a directory", path, path + "/c")
        self.assertNothingLeft(["none"])


class Disks(TestCase):
    def test_full(self):
        small = writelib.SmallFs(self, "tmpfs", 10)
        self.target = small.path
        files = [large(self.at_source(f"c{i}"), 4, i) for i in range(4)]
        self.assertFails("nothing was staged", *files, self.target)
        self.assertNothingLeft()
        found, errors = self.stage("--no-space-check", "-j", "1", *files, self.target, code=1)
        self.assertIn("No space left", errors.replace("no space left", "No space left"))
        good = [name for name, r in found.items() if r["action"] == "staged"]
        self.assertEqual(len(good), 2)
        self.assertNothingLeft(good)
        for name in good:
            self.assertSame(name)

    def test_no_room_for_the_journal(self):
        """The copy succeeds without a journal."""
        small = writelib.SmallFs(self, "tmpfs", 10)
        self.target = small.path
        put(self.at_source("c"), limetest.container([("a", bytes(10 * MIB - 144))]))
        self.stage("--checkpoint", "1M", self.at_source("c"), self.target)
        self.assertSame("c")
        self.assertNothingLeft(["c"])

    def test_copy_cannot_be_read_back(self):
        """lime reports a read error of the copy, not damage."""
        path = configuration(self.at_source("c"))
        fault = faults.Faults(self.target)
        for call, nth, code in (("pread", 1, errno.EIO), ("pread", 1, errno.ESTALE),
                                ("fstat", 4, errno.ENOMEM)):
            fault.arm(faults.LIME, call, nth, code, lasts=call == "pread")
            found = self.assertFails("1 of 1 files failed", path, self.target,
                                     env=fault.environment())
            self.assertEqual(found["c"]["error"].lower(),
                             f"read the copy: {os.strerror(code)}".lower())
            self.assertNothingLeft()

    def test_kinds_of_file_systems(self):
        for kind in ("ext4", "xfs", "btrfs"):
            with self.subTest(kind):
                small = writelib.SmallFs(self, kind, 64)
                self.target = small.path
                self.stage(large(self.at_source(kind), 9, 1), self.target)
                self.assertSame(kind)

    def test_read_only(self):
        small = writelib.SmallFs(self, "tmpfs", 10)
        limetest.run(["mount", "-o", "remount,ro", small.path], check=True)
        configuration(self.at_source("c"))
        self.assertFails(f"c: open the temporary file {small.path}/.c.limefs-stage: ",
                         self.at_source("c"), small.path)

    def test_no_memory(self):
        if limetest.SANITIZED:
            self.skipTest("sanitizers reserve address space")
        configuration(self.at_source("c"))
        for megabytes in (20, 40, 80):
            self.fails(["prlimit", f"--as={megabytes << 20}", limetest.program("lime"), "stage",
                        self.at_source("c"), self.target], "annot allocate memory")
            self.assertNothingLeft()


class Others(TestCase):
    def test_locked(self):
        configuration(self.at_source("c"))
        with open(self.at_target(".c.limefs-stage"), "wb") as file:
            limetest.lock(file)
            self.assertFails("another lime stage is copying it", self.at_source("c"), self.target)
            self.assertNothingLeft([".c.limefs-stage"])
        self.stage(self.at_source("c"), self.target)
        self.assertNothingLeft(["c"])

    def test_temporary_name_is_in_use(self):
        """lime refuses to use anything else at the temporary file's name, and keeps it."""
        configuration(self.at_source("c"))
        other = put(os.path.join(self.tempdir(), "other"), b"other")
        ways = [("a link", lambda path: os.symlink(other, path)),
                ("a FIFO", os.mkfifo), ("a directory", os.mkdir),
                ("a file with several hard links", lambda path: os.link(other, path))]
        if os.geteuid() == 0:
            ways.append(("another user's file", lambda path: os.chown(put(path, b""), 4711, -1)))
        for kind, make in ways:
            path = self.at_target(".c.limefs-stage")
            make(path)
            self.assertFails(f"c: {kind} is in the way; remove it: {path}", self.at_source("c"),
                             self.target)
            self.assertNothingLeft([".c.limefs-stage"])
            (os.rmdir if kind == "a directory" else os.unlink)(path)
            self.assertEqual(read(other), b"other")

    def test_several_at_once(self):
        files = [large(self.at_source(f"c{i}"), 8, i) for i in range(4)]
        command = [limetest.program("lime"), "stage", "-q", *files, self.target]
        for _ in range(10 if limetest.STRESS else 2):
            running = [subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE) for _ in range(3)]
            for process in running:
                errors = process.communicate()[1].decode()
                for line in errors.splitlines():
                    self.assertTrue("files failed" in line or "another lime stage" in line or
                                    "another process" in line, errors)
            self.assertNothingLeft([f"c{i}" for i in range(4)])
            for i in range(4):
                self.assertSame(f"c{i}")
                os.unlink(self.at_target(f"c{i}"))


class Existing(TestCase):
    """--force replaces a file only if no other process writes to it, and never a source."""

    def setUp(self):
        super().setUp()
        configuration(self.at_source("c"))
        self.old = limetest.container([("a", b"acknowledged")])

    def test_locked(self):
        """Also a read-only target, and one that is locked while lime reads it."""
        for mode in (0o644, 0o444):
            os.chmod(put(self.at_target("c"), self.old), mode)
            with open(self.at_target("c"), "r+b") as file:
                limetest.lock(file)
                for options in (["-f"], ["-f", "--any"]):
                    found = self.assertFails("another process has this container open for "
                                             "writing", *options, self.at_source("c"),
                                             self.target)
                    self.assertEqual(found["c"]["action"], "failed")
                    self.assertEqual(read(self.at_target("c")), self.old)
                    self.assertNothingLeft(["c"])
            self.stage("-f", self.at_source("c"), self.target)
            self.assertSame("c")
            os.unlink(self.at_target("c"))

    def test_source(self):
        """The target is the source, by six spellings, or another source in the list."""
        os.mkdir(self.at_source("d"))
        path, old = self.at_source("c"), read(self.at_source("c"))
        os.symlink(path, self.at_source("link"))
        os.link(path, self.at_source("hard"))
        with open(path, "rb") as file:
            ways = [(path, path), (path, self.at_source("d/../c")), (path, self.at_source("link")),
                    (self.at_source("link"), path), (path, self.at_source("hard")),
                    (f"/proc/self/fd/{file.fileno()}", path)]
            before = sorted(os.listdir(self.source))
            for source, target in ways:
                for options in ([], ["-f"], ["-f", "--any"]):
                    self.assertFails("the source itself", *options, source, target,
                                     pass_fds=[file.fileno()])
            with open(path, "rb") as again:
                self.assertFails("the source itself", "-f", "/dev/stdin", path, stdin=again)
        self.assertEqual(sorted(os.listdir(self.source)), before)
        self.assertTrue(os.path.islink(self.at_source("link")))
        self.assertTrue(read(path) == old)
        # The copy of "c" would replace the file to which "other" leads.
        shutil.copy(path, self.at_target("c"))
        os.symlink(self.at_target("c"), self.at_source("other"))
        self.assertFails("would replace the source", "-f", path, self.at_source("other"),
                         self.target)
        self.assertNothingLeft(["c"])
        # lime does not replace the list of sources either, alone or in a directory.
        names = self.at_target("names")
        shutil.copy(path, self.at_source("names"))
        for source, target in ((path, names), (self.at_source("names"), self.target)):
            with open(names, "w", encoding="utf-8") as file:
                file.write(source + "\n")
            with open(names, "rb") as file:
                for listing in (names, "-"):
                    self.assertFails("would replace the list", "-f", "--files-from", listing,
                                     target, stdin=file)
            self.assertEqual(read(names), (source + "\n").encode())

    def test_another_users(self):
        """lime does not replace a file that it can't open, as it may be locked."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv")
        where = self.tempdir()
        program = shutil.copy(limetest.program("lime"), where)
        for directory in (where, self.source, self.target):
            os.chmod(directory, 0o777)
        os.chmod(put(self.at_target("c"), self.old), 0o600)
        self.fails(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program,
                    "stage", "-f", self.at_source("c"), self.target],
                   "the target cannot be locked: Permission denied")
        self.assertEqual(read(self.at_target("c")), self.old)
        self.assertNothingLeft(["c"])


class Held(TestCase):
    """The test acts while lime stage is stopped at one of its calls in the target directory."""

    def setUp(self):
        super().setUp()
        self.path = configuration(self.at_source("c"), seed=1)
        self.fault = faults.Faults(self.target)
        self.program, self.user, self.env = limetest.program("lime"), [], {}

    @contextlib.contextmanager
    def held(self, call, *options, nth=1, code=0):
        """Stops lime at the call until the block ends; then fills the yielded list with results."""
        self.fault.arm(faults.LIME, call, nth, 0, faults.HANG)
        command = [*self.user, self.program, "stage", "--json", *options, self.path, self.target]
        self.process = process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**self.fault.environment(), **self.env})
        found = []
        try:
            limetest._wait(lambda: self.fault.struck or process.poll() is not None,
                           20 * limetest.SLOWNESS)
            self.assertEqual((self.fault.struck, process.poll()), (1, None), call)
            yield found
        except BaseException:
            process.kill()
            raise
        finally:
            self.fault.disarm()
            out, errors = process.communicate(timeout=60 * limetest.SLOWNESS)
        self.assertEqual(process.returncode, code, (out, errors))
        found += map(json.loads, out.splitlines())


class HeldSource(Held):
    def test_replaced(self):
        """A rename replaces the source; the open file does not change."""
        configuration(self.at_source("new"), seed=2)
        other = read(self.at_source("new"))
        with self.held("fsync") as found:
            os.rename(self.at_source("new"), self.path)
        self.assertEqual(found[0]["deviations"], ["the source changed while it was read"])
        self.assertTrue(read(self.at_target("c")) == other)
        self.assertSame("c")
        self.assertNothingLeft(["c"])

    def test_another_directory(self):
        """The path leads to another directory; the open file and its times do not change."""
        for name in ("old", "new"):
            os.mkdir(self.at_source(name))
        shutil.move(self.path, self.at_source("old"))
        configuration(self.at_source("new/c"), seed=2)
        os.symlink("old", self.at_source("link"))
        os.symlink("new", self.at_source("next"))
        self.path = self.at_source("link/c")
        with self.held("fsync"):
            os.rename(self.at_source("next"), self.at_source("link"))
        self.assertSame("c", self.at_source("new/c"))

    def test_replaced_by_a_bad_file(self):
        with self.held("fsync", code=1) as found:
            put(self.at_source("new"), read(self.path)[:-5000])
            os.rename(self.at_source("new"), self.path)
        self.assertEqual(found[0]["action"], "failed")
        self.assertNothingLeft()

    def test_removed(self):
        with self.held("fsync", code=1) as found:
            os.unlink(self.path)
        self.assertIn("the source has disappeared", found[0]["error"])
        self.assertNothingLeft()


class HeldFirst(Held):
    def setUp(self):
        super().setUp()
        self.first, self.path = self.path, configuration(self.at_source("c2"), "2,2,2,2")

    def peak_mb(self):
        """Returns the peak memory when it has stopped growing."""
        def kib():
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        before = 0
        while before < kib():
            before = kib()
            time.sleep(0.5)
        return before / 1024

    def test_many_later_files_finish_first(self):
        """lime holds the results of many later files in little memory and prints all of them."""
        names = [f"/none/{i}" for i in range(40000)]
        with self.held("fsync", self.first, *names, code=2) as found:
            if not limetest.SANITIZED:
                self.assertLess(self.peak_mb(), 90)
        self.assertEqual([os.path.basename(r["target"]) for r in found],
                         ["c", *map(os.path.basename, names), "c2"])
        self.assertEqual({r["action"] for r in found[1:-1]}, {"failed"})
        self.assertSame("c")
        self.assertSame("c2")

    def test_interrupted_while_others_wait(self):
        with self.held("fsync", self.first, *(f"/none/{i}" for i in range(20000)),
                       code=-signal.SIGTERM) as found:
            self.peak_mb()
            self.process.terminate()
        self.assertLess(len(found), 20002)
        self.assertNothingLeft(["c"] if found[0]["action"] == "staged" else [])


class HeldTarget(Held):
    def test_append(self):
        """lime append can't acknowledge a record that lime stage then replaces."""
        put(self.at_target("c"), limetest.container([("a", b"acknowledged")]))
        with self.held("fsync", "-f"):
            self.fails(["lime", "append", self.at_target("c"), "-t", "b", "-"],
                       "another process has this container open for writing", input=b"record")
        self.assertSame("c")
        self.assertNothingLeft(["c"])

    def test_replaced(self):
        """Another process replaces the locked target, or creates a target that did not exist."""
        for options, exists in (("-f",), True), (("-f",), False), ((), False):
            if exists:
                put(self.at_target("c"), limetest.container([("a", b"acknowledged")]))
            with self.held("linkat", *options, code=1) as found:
                os.rename(put(self.at_source("new"), b"another"), self.at_target("c"))
            self.assertIn("another process has created or replaced the target" if options else
                          "the target exists with a different", found[0]["error"])
            self.assertEqual(read(self.at_target("c")), b"another")
            self.assertNothingLeft(["c"])
            os.unlink(self.at_target("c"))

    def test_other_bytes(self):
        """Another process changes a record header, or the length."""
        for offset, more in ((16, b"?"), (len(read(self.path)), bytes(8))):
            with self.held("fsync", code=1) as found, \
                    open(self.at_target(".c.limefs-stage"), "r+b") as file:
                file.seek(offset)
                file.write(more)
            self.assertEqual(found[0]["error"], "the records of the copy differ from the source")
            self.assertNothingLeft()


class HeldName(Held):
    def setUp(self):
        super().setUp()
        self.temp = self.at_target(".c.limefs-stage")

    def exchange(self, aside=None):
        """Puts another file at the temporary's name, as a second lime stage without locks does."""
        part = put(self.at_target("part"), read(self.path)[:1000])
        if aside:
            os.rename(self.temp, aside)
        os.rename(part, self.temp)

    def assertStays(self):
        self.assertTrue(read(self.temp) == read(self.path)[:1000])
        os.unlink(self.temp)

    def test_temporary_that_is_exchanged(self):
        for options in ([], ["-f"]):
            with self.held("fsync", *options, code=1) as found:
                self.exchange()
            self.assertIn("replaced the temporary file", found[0]["error"])
            self.assertStays()
            self.assertNothingLeft()

    def test_temporary_that_is_removed(self):
        with self.held("fsync", code=1) as found:
            os.unlink(self.temp)
        self.assertIn("removed or replaced the temporary file", found[0]["error"])
        self.assertNothingLeft()

    def test_second_run_without_locks(self):
        """A second run without locks replaces the temporary file and finishes before the first."""
        unlocked = faults.Faults(self.target)
        unlocked.arm(faults.LIME, "lock", 1, errno.ENOLCK, lasts=True)
        with self.held("fsync", "-f", code=1) as found:
            self.stage(self.path, self.target, env=unlocked.environment())
            inode = os.stat(self.at_target("c")).st_ino
        self.assertIn("nothing was renamed", found[0]["error"])
        self.assertEqual((unlocked.struck, os.stat(self.at_target("c")).st_ino), (2, inode))
        self.assertSame("c")
        self.assertNothingLeft(["c"])

    def test_exchanged_after_the_check(self):
        """lime links the verified file, even if another file has the temporary's name."""
        aside = self.at_target("aside")
        for options in ([], ["-f"]):
            with self.held("linkat", *options) as found:
                self.exchange(aside)
            self.assertEqual(found[0]["action"], "staged")
            self.assertStays()
            self.assertSame("c")
            os.unlink(self.at_target("c"))
            os.unlink(aside)
            # A file without any name can't be linked.
            with self.held("linkat", *options, code=1) as found:
                self.exchange()
            self.assertIn("nothing was renamed", found[0]["error"])
            self.assertStays()
            self.assertNothingLeft()

    def test_exchanged_as_it_replaces(self):
        """A rename can install another file; lime reports that."""
        put(self.at_target("c"), b"old")
        with self.held("renameat", "-f", code=1) as found:
            self.exchange()
        self.assertEqual(found[0]["action"], "failed")
        self.assertIn("NOT the verified copy", found[0]["error"])
        self.assertNothingLeft(["c"])

    def test_without_links(self):
        for options in ([], ["-f"], ["-f"]):
            self.fault.arm(faults.LIME, "linkat", 1, errno.EPERM)
            found, _ = self.stage(*options, self.path, self.target,
                                  env=self.fault.environment())
            self.assertEqual((found["c"]["action"], self.fault.struck), ("staged", 1))
            self.assertSame("c")
            self.assertNothingLeft(["c"])

    def test_killed_with_both_names(self):
        """The temporary is a second name of the target; the next run removes it."""
        for options, status in (([], "there"), (["-f"], "staged")):
            with self.held("unlinkat", "-f", code=-signal.SIGKILL) as _:
                self.assertTrue(os.path.samefile(self.temp, self.at_target("c")))
                self.process.kill()
                self.process.wait()
            found, _ = self.stage(*options, self.path, self.target)
            self.assertEqual(found["c"]["action"], status)
            self.assertSame("c")
            self.assertNothingLeft(["c"])
            os.unlink(self.at_target("c"))


class HeldMode(Held):
    """The temporary gets the source's mode and owner immediately before its final name."""

    UID = 65534

    def setUp(self):
        super().setUp()
        self.temp = self.at_target(".c.limefs-stage")
        os.chmod(self.path, 0o444)

    def as_user(self):
        """Runs the following commands as another user."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv")
        where = self.tempdir()
        for name in ("lime", "fault.so"):
            shutil.copy(limetest.program(name), where)
        for directory in (where, self.source, self.target):
            os.chmod(directory, 0o777)
        os.chown(self.target, self.UID, -1)
        os.chmod(self.fault.path, 0o666)
        directory = os.path.dirname(self.fault.path)
        while len(directory) > len("/tmp"):
            os.chmod(directory, os.stat(directory).st_mode | 0o011)
            directory = os.path.dirname(directory)
        self.user = ["setpriv", f"--reuid={self.UID}", f"--regid={self.UID}", "--clear-groups"]
        self.program = os.path.join(where, "lime")
        self.env = {"LD_PRELOAD": os.path.join(where, "fault.so")}

    def other_owner(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.chown(self.path, 4711, 4712)

    def again(self):
        command = [*self.user, self.program, "stage", "--json", self.path, self.target]
        done = limetest.run(command)
        return done.returncode, json.loads(done.stdout)

    def interrupt(self, call, nth=1):
        """Starts a second lime stage while the first is stopped; then kills the first."""
        with self.held(call, nth=nth, code=-signal.SIGKILL):
            self.during = os.stat(self.temp)
            code, result = self.again()
            self.assertEqual((code, result["error"]),
                             (1, "another lime stage is copying it"))
            self.assertEqual(os.stat(self.temp), self.during)
            self.process.kill()
            self.process.wait()

    def assertResumes(self):
        code, result = self.again()
        self.assertEqual((code, result["action"]), (0, "staged"), result)
        self.assertSame("c")
        self.assertNothingLeft(["c"])
        os.unlink(self.at_target("c"))

    def test_before(self):
        """The temporary is private while lime syncs it and reads it back."""
        if os.geteuid() == 0:
            self.other_owner()
        for call, options in (("fsync", []), ("pread", ["--verify-target"])):
            with self.held(call, *options):
                st = os.stat(self.temp)
                self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid), (0o600, os.geteuid()))
            self.assertSame("c")
            self.assertEqual(os.stat(self.path).st_uid, os.stat(self.at_target("c")).st_uid)
            os.unlink(self.at_target("c"))

    def test_another_owner(self):
        self.other_owner()
        self.interrupt("fsync")
        self.assertResumes()
        # Before the rename it belongs to another user; no run is active, so it can be removed.
        self.interrupt("linkat")
        self.assertEqual(self.during.st_uid, 4711)
        self.assertIn("another user's file is in the way", self.again()[1]["error"])
        os.unlink(self.temp)
        self.assertResumes()

    def test_read_only(self):
        """An ordinary user can't write to the temporary once it is read-only."""
        self.as_user()
        for call in ("fsync", "linkat"):
            self.interrupt(call)
            self.assertResumes()
        self.assertEqual(stat.S_IMODE(self.during.st_mode), 0o444)

    def test_private_again(self):
        """If the rename fails, the temporary becomes private again."""
        if os.geteuid() == 0:
            self.other_owner()
        aside = self.at_target("aside")
        with self.held("linkat", code=1):
            self.assertEqual(os.stat(self.temp).st_uid, os.stat(self.path).st_uid)
            put(self.at_target("c"), b"another")
            os.rename(self.temp, aside)
        st = os.stat(aside)
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid), (0o600, os.geteuid()))


class Runs(TestCase):
    """Copies of a few large files that end at any moment."""

    COUNT, EACH = 3, 24

    def setUp(self):
        super().setUp()
        self.seed = random.randrange(1 << 30)
        self.dice = random.Random(self.seed)
        self.data = {}
        for i in range(self.COUNT):
            self.data[f"c{i}"] = read(large(self.at_source(f"c{i}"), self.EACH, i))
        self.command = [limetest.program("lime"), "stage", "--json", "--checkpoint", "2M",
                        *map(self.at_source, self.data), self.target]

    def start(self):
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def duration(self):
        begin = time.monotonic()
        self.assertEqual(self.start().wait(), 0)
        seconds = time.monotonic() - begin
        self.clear()
        return seconds

    def clear(self):
        for name in os.listdir(self.target):
            if name != "lost+found":
                os.unlink(self.at_target(name))

    def assertNothingWrong(self):
        """Each file with a final name is complete."""
        for name in os.listdir(self.target):
            if not name.startswith(".") and name != "lost+found":
                self.assertTrue(read(self.at_target(name)) == self.data[name],
                                (name, self.seed))

    def finish(self):
        found, _ = self.stage(*self.command[3:])
        self.assertEqual(set(found), set(self.data), self.seed)
        for name in self.data:
            self.assertSame(name)
        self.assertEqual({name for name in os.listdir(self.target)} - {"lost+found"},
                         set(self.data))
        return found

    def kill(self, number, seconds):
        process = self.start()
        time.sleep(self.dice.random() * seconds)
        process.send_signal(number)
        process.wait()
        self.assertNothingWrong()


class Interrupted(Runs):
    def test_killed(self):
        seconds = self.duration()
        kills, resumed = 0, 0
        while kills < (100 if limetest.STRESS else 6):
            for _ in range(self.dice.randrange(1, 4)):
                self.kill(signal.SIGKILL, seconds)
                kills += 1
            resumed += sum(r["resumed"] > 0 for r in self.finish().values())
            self.clear()
        print(f"# {kills} kills, {resumed} files were resumed", flush=True)

    def test_terminated(self):
        seconds = self.duration()
        for _ in range(20 if limetest.STRESS else 3):
            self.kill(self.dice.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]), seconds)
            self.finish()
            self.clear()

    def temp(self, name):
        return self.at_target(f".{name}.limefs-stage")

    def journal_offset(self, name):
        return -(-len(self.data[name]) // 4096) * 4096

    def unfinished(self):
        """Kills a run; returns the name in the target whose temporary has a journal."""
        seconds = self.duration()
        for _ in range(200):
            self.kill(signal.SIGKILL, seconds)
            for name in self.data:
                if os.path.exists(self.temp(name)) and \
                        os.path.getsize(self.temp(name)) > len(self.data[name]):
                    return name
            self.clear()
        self.fail("never in the middle")

    def test_resumes(self):
        name = self.unfinished()
        self.assertGreater(self.finish()[name]["resumed"], 0)

    def test_temporary_of_another_run(self):
        """lime keeps a temporary that can be resumed, although the target exists."""
        name = self.unfinished()
        temp = read(self.temp(name))
        self.finish()
        put(self.temp(name), temp)
        found, _ = self.stage(*self.command[3:])
        self.assertEqual(found[name]["action"], "there")
        self.assertEqual(read(self.temp(name)), temp)

    def test_damaged_before_resuming(self):
        """lime verifies the data of an interrupted run before it resumes."""
        name = self.unfinished()
        with open(self.temp(name), "r+b") as file:
            file.seek(MIB // 2)
            file.write(b"damage")
        found = self.finish()[name]
        self.assertEqual((found["resumed"], found["error"]), (0, None))
        self.assertEqual(len(found["deviations"]), 1)
        self.assertIn("the data kept from an earlier run are damaged", found["deviations"][0])

    def test_journal_of_something_else(self):
        name = self.unfinished()
        temp, at = read(self.temp(name)), self.journal_offset(name)
        good = temp[at:].rstrip(b"\0")
        synced = int(good.split()[2])
        self.assertTrue(good.startswith(b"limefs-stage 2 ") and good.endswith(b"\n"), good)
        for bad in (b"", b"\0" * 1024, good.replace(b"2 ", b"1 ", 1), good[:50],
                    good.replace(b" %d " % synced, b" %d " % (synced + (1 << 40))),
                    os.urandom(1024)):
            self.clear()
            put(self.temp(name), temp[:at] + bad)
            self.assertEqual(self.finish()[name]["resumed"], 0, bad)

    def test_source_changes_before_resuming(self):
        name = self.unfinished()
        other = bytearray(self.data[name])
        other[5 * MIB] ^= 1
        st = os.stat(self.at_source(name))
        put(self.at_source(name), other)
        os.utime(self.at_source(name), ns=(st.st_atime_ns, st.st_mtime_ns))
        self.data[name] = bytes(other)
        self.assertEqual(self.finish()[name]["resumed"], 0)


class Faults(TestCase):
    """Each system call fails once, at some point."""

    def test_every_call(self):
        top = self.tempdir()
        self.source, self.target = os.path.join(top, "source"), os.path.join(top, "target")
        os.mkdir(self.source)
        os.mkdir(self.target)
        fault = faults.Faults(top)
        files = [large(self.at_source(f"c{i}"), 6, i) for i in range(2)]
        files.append(configuration(self.at_source("c2"), "4,4,8,8"))
        failed, dice = set(), random.Random() if limetest.STRESS else random.Random(2)
        for call, most in (("pread", 40), ("pwrite", 9), ("fsync", 9), ("fdatasync", 8),
                           ("fallocate", 3), ("renameat2", 3), ("futimens", 3)):
            # All of the rare calls: threads decide about their order, and lime ignores some errors
            # (in a journal, or EINVAL from a directory's fsync).
            for at in range(1, most + 1, 1 if limetest.STRESS or most < 10 else 4):
                # The first write is of data; EINVAL only makes lime use the page cache.
                code = errno.EIO if at == 1 else dice.choice(
                    [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINVAL])
                fault.arm(faults.LIME, call, at, code)
                done = limetest.run(["lime", "stage", "--checkpoint", "1M", *files, self.target],
                                    env=fault.environment(links=call != "renameat2"))
                self.assertIn(done.returncode, (0, 1, 2), (call, at, done))
                if done.returncode:
                    failed.add(call)
                for name in os.listdir(self.target):
                    self.assertFalse(name.startswith("."), (call, at, name))
                    self.assertSame(name)
                self.stage(*files, self.target)
                self.assertNothingLeft(["c0", "c1", "c2"])
                for name in os.listdir(self.target):
                    self.assertSame(name)
                    os.unlink(self.at_target(name))
        # Cached data need fewer reads, and lime may have retried with success.
        self.assertEqual(failed | {"pread"}, {"pread", "pwrite", "fsync", "fdatasync", "fallocate",
                                              "renameat2", "futimens"})


class PowerFailure(Runs):
    COUNT, EACH = 2, 16

    def setUp(self):
        self.fs = writelib.SmallFs(self, "ext4", 160)
        super().setUp()
        self.target = self.fs.path
        self.command[-1] = self.target

    def test_power_failure(self):
        seconds, resumed = self.duration(), 0
        for _ in range(40 if limetest.STRESS else 3):
            os.sync()
            process = self.start()
            time.sleep(self.dice.random() * seconds)
            self.fs.power_fails()
            process.wait()
            self.fs.comes_back()
            self.assertNothingWrong()
            resumed += sum(r["resumed"] > 0 for r in self.finish().values())
            self.clear()
        print(f"# {resumed} files were resumed", flush=True)


if __name__ == "__main__":
    limetest.main()
