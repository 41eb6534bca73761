"""The memory that each command needs for hostile containers with very many tiny records.

A million records may take LIMIT_MB; fewer take a proportional share above BASE_MB.
"""

import os
import shutil
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest  # noqa: E402

MILLION = 10 ** 6
SHARE = 1 if limetest.STRESS else 50 if limetest.SANITIZED else 5  # fraction of a sample
LIMIT_MB, BASE_MB = 200, 30
STAGE_MB = 16  # the blocks of a file that lime stage copies
TIMEOUT = 600 * limetest.SLOWNESS
CHUNK = 1000  # cycles of records that are written at once: see Measured

FORMAT = (b"<ildgFormat><version>1.0</version><field>su3gauge</field><precision>64</precision>"
          b"<lx>%d</lx><ly>4</ly><lz>4</lz><lt>4</lt></ildgFormat>")
CHECKSUM = b"<scidacChecksum><suma>1</suma><sumb>2</sumb></scidacChecksum>"
# The longest possible description, and a different one for each record.
BOX = (b"<scidacRecord><recordtype>2</recordtype><datatype>" + b"x" * 63 + b"</datatype>"
       b"<typesize>1</typesize><datacount>%d</datacount>"
       b"<hyperlower>0 0 0 0 0 0 0 0</hyperlower><hyperupper>9 9 9 9 9 9 9 9</hyperupper>"
       b"</scidacRecord>")
SITE = (b"<scidacRecord><recordtype>0</recordtype><typesize>8</typesize>"
        b"<datacount>1</datacount></scidacRecord>")

# A cycle of records that repeats; "%d" in a type or in data is the number of the cycle.
KINDS = {
    "data": [("ildg-binary-data", b"")],
    "other data": [("scidac-binary-data", b"")],
    "checksums": [("scidac-checksum", CHECKSUM)],
    "empty checksums": [("scidac-checksum", b"")],
    "formats": [("ildg-format", FORMAT)],
    "empty formats": [("ildg-format", b"")],
    "configurations": [("ildg-format", FORMAT), ("ildg-binary-data", b""),
                       ("scidac-checksum", CHECKSUM)],
    "data and checksums": [("ildg-binary-data", b""), ("scidac-checksum", CHECKSUM)],
    "fields": [("scidac-private-record-xml", SITE), ("scidac-binary-data", bytes(8)),
               ("scidac-checksum", CHECKSUM)],
    "boxes": [("scidac-private-record-xml", BOX), ("scidac-binary-data", b"")],
    "names": [("ildg-binary-data", b""), ("ildg-data-lfn", b"lfn://a/%d")],
    "types": [("type-%d-" + 40 * "x", b"")],
    "long types": [("%07d-" + 119 * "x", b"")],
    "particles": [("lemon-cells-data", b"")],
    "checkpoints": [("lemon-cells-format", b"<lemonCells/>"), ("lemon-cells-index", b""),
                    ("lemon-cells-data", b"")],
    "texts": [("xlf-info", b"plaquette = 0.5\n"), ("scidac-record-xml", b"<a><b>c</b></a>")],
}

DOCUMENT = os.path.join(limetest.REPO, "tests", "fuzz", "corpus", "qcdml", "plain.xml")

# (arguments, where C stands for the container and D for an empty directory; may fail)
READING = [
    (["ls", "C"], False), (["ls", "--json", "C"], False), (["lfn", "C"], True),
    (["cat", "C", "1"], False), (["info", "C"], False), (["info", "--json", "C"], False),
    (["check", "C"], True), (["check", "--strict", "--data", "--json", "C"], True),
    (["check", "--strict", "--data", "C"], True),
    (["checksum", "C"], True), (["checksum", "--json", "C"], True),
    (["checksum", "--cksum", "C"], True), (["check", "--qcdml", DOCUMENT, "C"], True),
    (["qcdml", "--template", DOCUMENT, "--lfn", "lfn://a", "C"], True),
    (["stage", "C", "D"], True), (["repair", "-n", "C"], True),
]
CHANGING = [
    (["append", "C", "-m", "-t", "log", __file__], False),
    (["set", "--type", "other", "C", "5"], False),
    (["rm", "C", "500"], False),
    (["replace", "C", "500", __file__], False),
    (["lfn", "--set", "lfn://a/b", "C", "500"], True),
    (["checksum", "--add", "C", "501"], True),
    (["repair", "C"], True),
]

# The most different cases are part of every run: kind, records, and commands.
SAMPLE = [
    ("data", MILLION, [["info", "C"], ["checksum", "C"], ["checksum", "--cksum", "C"],
                       ["check", "--qcdml", DOCUMENT, "C"],
                       ["check", "--strict", "--data", "--json", "C"], ["stage", "C", "D"],
                       ["lfn", "--set", "lfn://a/b", "C", "500"],
                       ["checksum", "--add", "C", "501"]]),
    ("empty formats", MILLION, [["info", "C"], ["check", "--strict", "--data", "C"]]),
    ("types", MILLION, [["ls", "C"], ["check", "C"], ["set", "--type", "other", "C", "5"]]),
    ("long types", MILLION, [["info", "C"], ["stage", "C", "D"]]),
    ("configurations", 300 * 1000, [["info", "C"], ["checksum", "--json", "C"],
                                    ["stage", "C", "D"]]),
    ("boxes", 200 * 1000, [["checksum", "C"]]),
    ("particles", MILLION, [["check", "--data", "--json", "C"]]),
    ("checkpoints", 300 * 1000, [["info", "C"], ["info", "--json", "C"],
                                 ["check", "--data", "C"]]),
]


def cycle(kind, i, begins, ends):
    last = len(kind) - 1
    for j, (name, data) in enumerate(kind):
        yield limetest.record(name % i if "%" in name else name,
                              data % i if b"%" in data else data,
                              begins and j == 0, ends and j == last)


def make(path, kind, records, one_message=False):
    """Writes a container with this many records, one message a cycle, or all in one."""
    inner, last = not one_message, records // len(kind) - 1
    with open(path, "wb", buffering=1 << 20) as file:
        file.writelines(cycle(kind, 0, True, inner))
        if any("%" in name or b"%" in data for name, data in kind):
            for i in range(1, last):
                file.writelines(cycle(kind, i, inner, inner))
        else:
            same = b"".join(cycle(kind, 1, inner, inner))
            for done in range(1, last, CHUNK):
                file.write(same * min(CHUNK, last - done))
        file.writelines(cycle(kind, last, inner, True))


class Measured(limetest.TestCase):
    """ru_maxrss starts at the parent's size, so this process never holds a whole container."""

    def peak_mb(self, args, may_fail):
        child = subprocess.Popen([limetest.program(args[0]), *args[1:]],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        watchdog = threading.Timer(TIMEOUT, child.kill)
        watchdog.start()
        _, status, usage = os.wait4(child.pid, 0)
        watchdog.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(child.returncode, (0, 1, 2, 3) if may_fail else (0,), args)
        return usage.ru_maxrss / 1024

    def assert_small(self, mb, records, what, blocks_mb=0):
        limit = blocks_mb + BASE_MB + (LIMIT_MB - BASE_MB) * records / MILLION
        if not limetest.SANITIZED:
            self.assertLess(mb, limit, f"MB of {what}, {records} records")

    def measure(self, command, may_fail, container, records, what):
        directory = container + ".directory"
        os.mkdir(directory)
        args = [container if word == "C" else directory if word == "D" else word
                for word in command]
        mb = self.peak_mb(["lime", *args], may_fail)
        shutil.rmtree(directory)
        self.assert_small(mb, records, f"lime {' '.join(command)}: {what}",
                          STAGE_MB if command[0] == "stage" else 0)

    def measure_change(self, command, may_fail, container, records, what):
        copy = container + ".copy"
        shutil.copyfile(container, copy)
        self.measure(command, may_fail, copy, records, what)
        os.unlink(copy)


class Commands(Measured):
    def test_sample(self):
        changing = [command for command, _ in CHANGING]
        for kind, records, commands in SAMPLE:
            records //= SHARE
            path = os.path.join(self.tempdir(), "c.lime")
            make(path, KINDS[kind], records)
            for command in commands:
                with self.subTest(kind=kind, command=command):
                    how = self.measure_change if command in changing else self.measure
                    how(command, True, path, records, kind)
            os.unlink(path)

    @unittest.skipUnless(limetest.STRESS, "long: make stress")
    def test_all(self):
        for kind in KINDS:
            for one_message in (False, True):
                path = os.path.join(self.tempdir(), "c.lime")
                make(path, KINDS[kind], MILLION, one_message)
                what = kind + (", one message" if one_message else "")
                for command, may_fail in READING:
                    with self.subTest(kind=what, command=command):
                        self.measure(command, may_fail, path, MILLION, what)
                for command, may_fail in CHANGING:
                    with self.subTest(kind=what, command=command):
                        self.measure_change(command, may_fail, path, MILLION, what)
                os.unlink(path)


class Several(Measured):
    FILES, RECORDS = 8, 200 * 1000

    def test_stage(self):
        """Several records at once take 200 bytes each (docs/staging.md), plus blocks."""
        directory = self.tempdir()
        sources, target = os.path.join(directory, "sources"), os.path.join(directory, "target")
        os.mkdir(sources)
        os.mkdir(target)
        make(os.path.join(sources, "c0"), KINDS["long types"], self.RECORDS)
        for i in range(1, self.FILES):
            os.link(os.path.join(sources, "c0"), os.path.join(sources, f"c{i}"))
        mb = self.peak_mb(["lime", "stage", "-r", sources, target], False)
        self.assert_small(mb, self.FILES * self.RECORDS * 6 // 5,
                          f"lime stage of {self.FILES} files", 4 * STAGE_MB)
        self.assertEqual(len(os.listdir(os.path.join(target, "sources"))), self.FILES)


class Unpacking(Measured):
    def test_unpack_and_pack(self):
        records = 200 * 1000 if limetest.STRESS else 2000
        directory = self.tempdir()
        path, parts = os.path.join(directory, "c.lime"), os.path.join(directory, "parts")
        packed = os.path.join(directory, "packed.lime")
        make(path, [("type-%d-" + 110 * "x", b"")], records)
        for command in (["unpack", path, parts], ["pack", parts, packed]):
            self.assert_small(self.peak_mb(["lime", *command], False), records, command)
        self.run_ok(["cmp", path, packed])


@limetest.needs_fuse
class Mounts(Measured):
    def daemon_mb(self, mount):
        with open(f"/proc/{mount.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status
                        if line.startswith("VmHWM:")) / 1024

    def verify(self, kind, records, first_data):
        path = os.path.join(self.tempdir(), "c.lime")
        make(path, KINDS[kind], records)
        for option in (None, "verify=open", "verify=stream"):
            with self.subTest(kind=kind, option=option), \
                    limetest.Mount(path, opts=option) as mount:
                limetest.read(mount.join(first_data))
                try:
                    os.getxattr(mount.join(first_data), "user.lime.checksum")
                except OSError:
                    pass
                self.assert_small(self.daemon_mb(mount), records, f"limefs -o {option}: {kind}")
                if limetest.STRESS and option is None:
                    self.assert_small(self.peak_mb(["lime", "verify", mount.path], True),
                                      records, f"lime verify: {kind}")
                    self.assert_small(self.daemon_mb(mount), records, f"limefs: {kind}")

    def test_sample(self):
        self.verify("data and checksums", MILLION // (50 if limetest.SANITIZED else 1),
                    "001-ildg-binary-data")

    @unittest.skipUnless(limetest.STRESS, "long: make stress")
    def test_all(self):
        for kind, data in (("configurations", "002-ildg-binary-data"),
                           ("fields", "002-scidac-binary-data"),
                           ("types", "001-type-0-" + 40 * "x")):
            self.verify(kind, MILLION, data)


if __name__ == "__main__":
    limetest.main()
