"""lime-checkpoint: particles stay the same, bit for bit, on any number of ranks; import and export
of text; damaged or wrong input is an error on all ranks."""

import concurrent.futures
import contextlib
import itertools
import json
import math
import os
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import celllib
import cellslib
import limetest
import mpitest
import users
from benchlib import IMPATIENT
from mpitest import RANKS

PROGRAM = os.path.join(limetest.BIN, "lime-checkpoint")
FEW = RANKS if limetest.STRESS else (1, 3)
HEAD = """mardyn trunk 20090731
currentTime 0.25
#rho 0.5
Temperature 0.7
Length {length}
NumberOfComponents 2
1 0 0 0 0
0. 0. 0.  10000. 1. 1. 5.0 0.0
0. 0. 0.
0 1 0 0 0
0 0 0 1.5 -1
0 0 0
1.0 1.0
1.0e+10
NumberOfMolecules {count}
MoleculeFormat {format}
"""


def text(lines, form="ICRV", length="10 10 10", count=None):
    head = HEAD.format(length=length, count=len(lines) if count is None else count, format=form)
    return (head + "".join(line + "\n" for line in lines)).encode()


def line(ident, position, component=1, velocity=(0, 0, 0), rest=()):
    return " ".join(map(str, (ident, component, *position, *velocity, *rest)))


class TestCase(mpitest.TestCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists(PROGRAM):
            self.skipTest("needs lime-checkpoint")
        self.directory = self.tempdir()
        self.last = threading.local()  # results of the thread's last call

    def tearDown(self):
        self.assertEqual([name for name in os.listdir(self.directory) if name.startswith(".")], [])

    def each(self, function, cases):
        """Runs function(number, *case) for three cases at a time; MPI's start is mostly waiting."""
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(function, i, *case) for i, case in enumerate(cases)]:
                done.result()

    @property
    def messages(self):
        """The messages of the last call: lines of standard error without the program's name."""
        return self.last.messages

    def path(self, name):
        return os.path.join(self.directory, name)

    def call(self, ranks, *args, status=0):
        """Runs the program, without mpirun on one rank; returns its standard output."""
        args = [PROGRAM, *map(str, args)]
        if ranks == 1:
            done = limetest.run(args, env=mpitest.environment_of_one(), cwd=self.directory,
                                timeout=1100)
        else:
            done = mpitest.mpirun(ranks, *args, env=IMPATIENT, cwd=self.directory)
        text = mpitest.without_noise(done.stderr.decode(errors="replace"))
        self.last.stderr = text
        self.last.messages = [line[len("lime-checkpoint: "):] for line in text.splitlines()
                              if line.startswith("lime-checkpoint: ")]
        self.last.status = done.returncode
        self.assertIn(done.returncode, status if isinstance(status, tuple) else (status,),
                      text + done.stdout.decode())
        return done.stdout.decode()

    def refuse(self, ranks, expected, *args, status=1):
        """The program must fail with one message, by rank 0, that matches `expected`."""
        self.call(ranks, *args, status=status)
        self.assertEqual(len(self.messages), 1, self.last.stderr)
        self.assertRegex(self.messages[0], expected)

    def put(self, name, data):
        limetest.put(self.path(name), data)

    def get(self, name):
        return limetest.read(self.path(name))

    def change_index(self, name, offset, form, value):
        """Changes a value in the index header and updates the header's checksum."""
        data = bytearray(self.get(name))
        at = next(at for type, at, *_ in celllib.records(self.path(name))
                  if type == celllib.INDEX)
        end = at + int.from_bytes(data[at + 12:at + 16], "big")
        struct.pack_into(form, data, at + offset, value)
        struct.pack_into(">I", data, at + 132, 0)
        struct.pack_into(">I", data, at + 132, zlib.crc32(data[at:end]))
        self.put(name, data)

    def read(self, name):
        return celllib.Checkpoint(self.path(name))


class Restart(TestCase):
    """w ranks write particles; r ranks read and write them, in both decompositions."""

    def test_uneven(self):
        sets = {}

        def write(_, w):
            self.call(w, "generate", "-n", 3000, "-o", f"C{w}", "-q", "--distribution", "cluster",
                      "--cells", "5x4x7", "--components", 3, "--format", "ICRVQD")
            sets[w] = self.read(f"C{w}").particles()
            self.assertEqual(len(sets[w]), 3000)

        def restart(_, w, r, kind):
            name = f"C{w}-{r}-{kind}"
            self.call(r, "restart", "-q", "-d", kind, "--out", name, f"C{w}")
            self.assertEqual(self.read(name).particles(), sets[w], name)
            if r == w:
                self.call(w, "compare", f"C{w}", name)

        self.each(write, ((w,) for w in RANKS))
        pairs = ((1, 4, "kd"), (3, 1, "regular"), (3, 3, "kd"), (4, 3, "regular"))
        self.each(restart, ((w, r, kind) for w in RANKS for r in RANKS for kind in ("regular", "kd")
                            if limetest.STRESS or (w, r, kind) in pairs))

    def test_special_places(self):
        """Particles on faces and corners, all in one cell or at one place, and none."""
        places, chance = (0.0, 5.0, 10.0, 3.3333333333333335), random.Random(1)
        sets = {"faces": [line(i, position) for i, position in
                          enumerate(itertools.product(places, repeat=3))],
                "cell": [line(i, [6 + chance.random() for _ in range(3)]) for i in range(200)],
                "none": [], "place": [line(i, (5, 5, 5)) for i in range(50)]}

        def one(_, name, w, r, kind):
            lines, before, after = sets[name], f"{name}-{w}", f"{name}-{w}-{r}"
            self.put(before + ".txt", text(lines))
            self.call(w, "import", before + ".txt", before, "-q", "--cells", "2x2x2")
            self.assertEqual(self.read(before).count, len(lines))
            self.call(r, "restart", "-q", "-d", kind, "--out", after, before, "--cells", "3x2x4")
            self.assertEqual(self.read(after).particles(), self.read(before).particles())

        self.each(one, ((name, *how) for name in sets
                        for how in ((1, 4, "kd"), (3, 1, "regular"), (4, 3, "regular"))))
        # On upper faces, which are periodic, they belong to the first cell with that position.
        c = self.read("faces-3")
        self.assertEqual({c.field(p, "position") for p in c.particles()},
                         set(itertools.product(places, repeat=3)))
        self.call(1, "generate", "-n", 0, "-o", "N", "-q")
        self.call(3, "export", "-q", "N", "T2")
        self.call(2, "compare", "N", "N")


class Generate(TestCase):
    def test_any_number_of_ranks(self):
        def one(_, distribution, ranks):
            self.call(ranks, "generate", "-n", "2k", "-o", f"{distribution}-{ranks}", "-q",
                      "--seed", 7, "--distribution", distribution)

        distributions = ("uniform", "lattice", "cluster")
        self.each(one, ((name, ranks) for name in distributions for ranks in (1, 3, 4)))
        for name in distributions:
            sets = [self.read(f"{name}-{ranks}").particles() for ranks in (1, 3, 4)]
            self.assertEqual(sets[0], sets[1])
            self.assertEqual(sets[0], sets[2])
            self.assertEqual(len(set(sets[0])), 2000)

    def test_contents(self):
        self.call(2, "generate", "-n", 4001, "-o", "C", "-q", "--format", "ICRVQD", "--length",
                  "10x20x40", "--components", 2, "--temperature", 2.5, "--cells", "2x3x5",
                  "--distribution", "lattice")
        c = self.read("C")
        self.assertEqual((c.bytes, c.length, c.cells), (120, (10, 20, 40), (2, 3, 5)))
        self.assertEqual(list(c.fields), ["id", "component", "position", "velocity",
                                          "orientation", "angular-momentum"])
        particles = c.particles()
        self.assertEqual(sorted(c.field(p, "id")[0] for p in particles),
                         list(range(1, 4002)))
        self.assertEqual({c.field(p, "component")[0] for p in particles}, {1, 2})
        self.assertEqual({p[12:16] for p in particles}, {bytes(4)})
        velocities = [c.field(p, "velocity") for p in particles]
        for d in range(3):
            self.assertLess(abs(sum(v[d] for v in velocities)), 1e-9)
        energy = sum(x * x for v in velocities for x in v) / len(velocities) / 3
        self.assertLess(abs(energy - 2.5), 0.25)
        for p in particles[:100]:
            self.assertAlmostEqual(sum(x * x for x in c.field(p, "orientation")), 1)
        self.assertEqual([type for type, *_ in c.records],
                         [celllib.HEADER, celllib.FORMAT, celllib.INDEX, celllib.DATA])
        self.assertEqual([(mb, me) for *_, mb, me in c.records],
                         [(True, False), (False, False), (False, False), (False, True)])
        self.assertIn("NumberOfMolecules\t4001\n", c.header)

    def test_wrong_usage(self):
        def one(_, args, expected):
            self.call(1, *args, status=2)
            if expected:
                self.assertIn(expected, self.messages[0])

        self.each(one, (
                ((), None), (("x",), "x: unknown command"),
                (("generate",), "--particles is required"),
                (("generate", "-n", "5"), "--out is required"),
                (("generate", "-n", "-5", "-o", "C"), "invalid value '-5' (a number from 0 to 1e"),
                *((("generate", "-n", "5", "-o", "C", *args), message) for args, message in (
                    (("--format", "IR"), "--format: unknown value 'IR' (ICRV"),
                    (("--nonsense",), "unknown option '--nonsense'"),
                    (("-Z",), "unknown option '-Z'"), (("--cells", "2x2"), "3 numbers"),
                    (("--length", "1", "--density", "1"), "one of --density and --length"))),
                (("generate", "-n"), "option '-n' requires a value"),
                (("restart", "C"), "--out is required"), (("compare", "C"), "1 name given"),
                (("import", "T"), "1 name given, 2 expected"), (("info",), "0 names given")))
        self.assertIn("restart", self.call(2, "--help"))
        self.assertIn("--decomposition", self.call(1, "restart", "--help"))
        self.assertRegex(self.call(1, "--version"), r"^lime-checkpoint \(limefs\) \d")


class Text(TestCase):
    NUMBERS = ("0.1", "1e-300", "-0", "4.9406564584124654e-324", "1.7976931348623157e308",
               "0.30000000000000004", "123456789.12345679", "-2.2250738585072014e-308")

    def molecules(self, form, n=300):
        chance = random.Random(5)
        lines = []
        for i in range(n):
            position = [repr(chance.uniform(0, 10)) for _ in range(3)]
            numbers = [chance.choice(self.NUMBERS + (repr(chance.gauss(0, 1)),))
                       for _ in range(10)]
            lines.append(" ".join([str(i + 1), *([] if form == "IRV" else
                                                 [str(chance.choice((1, 2)))]),
                                   *position, *numbers[:10 if form == "ICRVQD" else 3]]))
        return lines

    def expected(self, form, lines):
        """Returns the particles as bytes, sorted."""
        found = []
        for values in map(str.split, lines):
            numbers = list(map(float, values[1 if form == "IRV" else 2:]))
            component = 0 if form == "IRV" else int(values[1])
            found.append(struct.pack(f"<QII{len(numbers)}d", int(values[0]), component, 0,
                                     *numbers))
        return sorted(found)

    def round_trip(self, _, form, ranks):
        source, c, out, again = (f"{name}-{form}" for name in ("T", "C", "T2", "C2"))
        lines = self.molecules(form)
        data = text(lines, form)
        self.put(source, data)
        self.call(ranks[0], "import", source, c, "-q", "--check")
        first = self.read(c)
        self.assertEqual(first.particles(), self.expected(form, lines))
        self.assertEqual(first.time, 0.25)
        self.assertEqual("component" in first.fields, form != "IRV")
        self.assertEqual(first.header.encode(),
                         data[:len(data) - sum(len(line) + 1 for line in lines)])
        self.call(ranks[1], "export", c, out, "-q")
        self.call(ranks[2], "import", out, again, "-q")
        self.call(2, "compare", c, again)
        self.assertEqual(self.read(again).header, first.header)
        # The export is sorted by id, so it does not depend on the ranks.
        exported = self.get(out)
        self.call(ranks[2], "export", again, out, "-f", "-q")
        self.assertEqual(self.get(out), exported)
        self.call(2, "export", again, out, "-f", "-q", "--unsorted")
        self.assertEqual(sorted(self.get(out).splitlines()), sorted(exported.splitlines()))

    def test_round_trips(self):
        self.each(self.round_trip,
                  (("ICRV", (1, 4, 3)), ("IRV", (3, 1, 4)), ("ICRVQD", (4, 3, 1))))

    def test_spellings(self):
        """Short keywords, comments and blank lines anywhere, CRLF, no newline at the end."""
        source = (b"MDProject trunk 20140915\r\n# a comment\r\n\r\nt 2.5\r\nT 0.7 # here too\r\n"
                  b"h 1 0.5\r\no 1 1\nU 1\nI 5 1 2\nL 10 20\n30\nN 3\r\nM ICRV\r\n"
                  b"\r\n1 1 1 2 3 0 0 0 # first\r\n#no\r\n  2\t1 9 19 29 .5 -1e3 +2\r\n\n"
                  b"18446744073709551615 1 0 0 0 0 0 0")
        self.put("T", source)
        for ranks in (1, 3):
            self.call(ranks, "import", "T", "C", "-f", "-q")
            c = self.read("C")
            self.assertEqual((c.count, c.time, c.length), (3, 2.5, (10, 20, 30)))
            self.assertEqual({c.field(p, "id")[0] for p in c.particles()},
                             {1, 2, 18446744073709551615})

    def test_wrong_lines(self):
        good = [line(i, (1, 2, 3)) for i in range(1, 100)]
        cases = [(50, "51 1 1 2 3 0 0", "7 values where ICRV has 8"),
                 (98, "7 1 1 2 3 0 0 0 9", "more than the 8 values of ICRV"),
                 (0, "x 1 1 2 3 0 0 0", "value 1 is invalid"),
                 (77, "-3 1 1 2 3 0 0 0", "value 1 is invalid"),
                 (10, "7 1 1 2z 3 0 0 0", "value 4 is invalid"),
                 (10, "7 1 1 2 3 0 0 1e999", "value 8 is invalid"),
                 (33, "34 3 1 2 3 0 0 0", "molecule 34: component 3 is not 1 to 2"),
                 (60, "61 1 1 nan 3 0 0 0",
                  r"molecule 61: position \(1, nan, 3\) is outside the domain"),
                 (61, "62 1 10.5 2 3 0 0 0", "molecule 62: position .* outside"),
                 (62, "63 1 1 2 -1e-9 0 0 0", "molecule 63: position .* outside")]

        def one(i, where, new, expected):
            lines = list(good)
            lines[where] = new
            self.put(f"T{i}", text(lines))
            number = HEAD.count("\n") + where + 1
            self.refuse(FEW[i % len(FEW)], f"^T{i}: line {number}: {expected}", "import", f"T{i}",
                        "C")

        self.each(one, cases)
        for count, follow in ((98, 99), (100, 99)):
            self.put("T", text(good, count=count))
            self.refuse(3, f"T: NumberOfMolecules is {count}, but {follow} follow", "import",
                        "T", "C")
        self.put("T", text(good[:1] * 2))
        self.refuse(2, "C: write: .*1", "import", "--check", "T", "C")
        self.assertNotIn("C", os.listdir(self.directory))

    def test_wrong_headers(self):
        good = HEAD.format(length="10 10 10", count=0, format="ICRV")

        def one(i, old, new, number, expected):
            self.put(f"T{i}", good.replace(old, new).encode())
            self.refuse(1, f"^T{i}: line {number}: .*{expected}", "import", f"T{i}", "C")

        self.each(one, (
                ("mardyn", "martyn", 1, "the first word"), ("trunk", "branch", 1, "the second"),
                ("20090731", "20080101", 1, "version 20080101 is older"),
                ("currentTime", "currentLime", 2, "unknown keyword 'currentLime'"),
                ("Length 10 10 10", "Length 10 0 10", 5, "Length 0 is not positive"),
                ("Length 10 10 10", "Length 10 10 ten", 5, "'ten' is not a number"),
                ("ICRV", "ICRVQDV", 16, "molecule format 'ICRVQDV'"),
                ("Molecules 0", "Molecules -1", 15, "'-1' is not a number"),
                ("NumberOfMolecules 0\nMoleculeFormat ICRV\n", "", 15, "ends before")))
        self.put("T", b"")
        self.refuse(2, "T: line 1: header ends", "import", "T", "C")
        self.refuse(2, "X: open: No such file", "import", "X", "C")
        self.refuse(2, r"\.: not a regular file", "import", ".", "C")

    def test_mutations(self):
        """Any text gives a checkpoint, or one message and no file."""
        good = text(self.molecules("ICRV", 8))
        parts = (b"#", b"\n", b" ", b"\0", b"9" * 30, b"-", b"nan", b"N 5\n", b"C 7", b"M IRV\n",
                 b"1e400", b"\xff", b"L 1 1 1\n")

        def one(i):
            chance = random.Random(i)
            data = bytearray(good)
            for _ in range(chance.randint(1, 4)):
                where = chance.randrange(len(data))
                if chance.random() < 0.7:  # mostly in the header
                    where %= good.index(b"ICRV")
                end = where + chance.choice((0, 0, 1, 2, 20))
                data[where:end] = chance.choice(parts)
            self.put(f"T{i}", data)
            self.call(FEW[i % len(FEW)], "import", "-q", f"T{i}", f"C{i}", status=(0, 1))
            status = self.last.status
            self.assertEqual(len(self.messages), status, (i, self.last.stderr))
            self.assertEqual(os.path.exists(self.path(f"C{i}")), status == 0)

        self.each(one, (() for _ in range(1000 if limetest.STRESS else 12)))

    def test_one_id(self):
        """The order of molecules with the same id does not depend on the ranks."""
        self.put("T", text([line(7, (i % 10, i % 7, 0.125)) for i in range(300)]))
        self.call(3, "import", "T", "C", "-q")
        outs = []
        for ranks in (1, 2, 4):
            self.call(ranks, "export", "C", "T2", "-q", "-f")
            outs.append(self.get("T2"))
        self.assertEqual(outs, outs[:1] * 3)
        self.assertEqual(sorted(outs[0].splitlines()), sorted(self.get("T").splitlines()))
        self.refuse(3, "C2: write: .*duplicate id 7 on ranks", "restart", "--out", "C2", "C")

    def test_a_full_disk(self):
        """A full disk leaves no incomplete file, wherever the write fails."""
        self.call(1, "generate", "-n", "20000", "-o", "C", "-q")
        self.call(2, "export", "C", "T", "-q")
        small = self.tmpfs("-o", f"size={os.stat(self.path('T')).st_size}")
        out, filler = os.path.join(small, "T"), os.path.join(small, "filler")
        half = os.stat(self.path("T")).st_size - (1 << 19)  # leaves less space than C needs
        for ranks in (1, 3):
            limetest.put(filler, b"")
            self.call(ranks, "export", "C", out, "-q")
            os.unlink(out)
            for used, command in ((4096, ("export", "C", out)), (1 << 20, ("export", "C", out)),
                                  (half, ("restart", "C", "--out", out))):
                limetest.put(filler, bytes(used))
                self.refuse(ranks, "full|space", *command, "-q")
                self.assertEqual(os.listdir(small), ["filler"])

    def test_components_of_a_checkpoint_without_a_header(self):
        """The export of a program's checkpoint without a header can be imported."""
        for components, message in (((1, 2, 5), None), ((0, 1), "component 0 of 1 to"),
                                    ((1, 9999), "component 9999 of 1 to")):
            c = cellslib.Checkpoint(cells=(2, 2, 2))
            for i, component in enumerate(components):
                c.members[0].append(c.encode(id=i, component=component, position=(0.1 * i,) * 3))
            self.put("C", limetest.container([c.records()]))
            if message:
                self.refuse(2, message, "export", "C", "T", "-q", "-f")
                continue
            self.call(2, "export", "C", "T", "-q", "-f")
            self.call(2, "import", "T", "C2", "-q", "-f")
            self.call(2, "compare", "C", "C2")

    def test_time_in_the_header(self):
        """The exported header has the checkpoint's current time."""
        self.put("T", text([line(1, (1, 1, 1))]))
        self.call(1, "import", "T", "C", "-q")
        self.change_index("C", 120, ">d", 0.1)
        self.call(2, "export", "C", "T2", "-q")
        self.assertIn(b"currentTime 0.1\n#rho", self.get("T2"))


class Names(TestCase):
    def test_only_when_complete(self):
        self.call(1, "generate", "-n", 100, "-o", "C", "-q")
        first = self.get("C")
        self.refuse(2, "C: exists already; use -f", "generate", "-n", 5, "-o", "C")
        self.assertEqual(self.get("C"), first)
        os.symlink("C", self.path("L"))
        self.call(1, "generate", "-n", 5, "-o", "L", "--force", "-q")
        self.assertTrue(os.path.islink(self.path("L")))
        self.assertEqual(self.read("C").count, 5)
        self.refuse(2, "X/C: create: No such file", "generate", "-n", 5, "-o", "X/C")
        os.mkdir(self.path("D"))
        self.refuse(2, "D: Is a directory", "generate", "-n", 5, "-o", "D", "-f")
        os.chmod(self.path("C"), 0o640)
        self.call(1, "generate", "-n", 7, "-o", "C2", "-q")
        self.call(2, "restart", "--out", "C2", "-f", "-q", "C")
        self.call(2, "restart", "--out", "C", "-f", "-q", "C2")
        self.assertEqual(os.stat(self.path("C")).st_mode & 0o777, 0o640)
        self.assertEqual(self.read("C").count, 5)

    def start(self, number, *args, stderr=subprocess.DEVNULL):
        """Starts two ranks; mpirun has no time to clean up if it is to be killed."""
        env = mpitest.environment_of_one(IMPATIENT if number == signal.SIGKILL else {})
        return subprocess.Popen(
            [mpitest.MPIRUN, *([] if mpitest.MPICH else ["--oversubscribe"]), "-n", "2", PROGRAM,
             *args], env=env, cwd=self.directory,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)

    def wait_for(self, condition):
        end = time.monotonic() + 30 * limetest.SLOWNESS
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.002)

    def hidden(self):
        return [name for name in os.listdir(self.directory) if ".lime-tmp-" in name]

    def test_killed(self):
        """A killed run leaves no file by the name; after SIGTERM to a rank, no other file either.
        (mpirun would kill a rank that has not ended within a second.)"""
        for number in (signal.SIGKILL, signal.SIGTERM):
            process = self.start(number, "generate", "-n", "20M", "-o", "K")
            self.wait_for(self.hidden)
            if number == signal.SIGTERM:
                os.kill(self.first_rank(), number)
            else:
                process.kill()
            process.wait(timeout=60 * limetest.SLOWNESS)
            if number == signal.SIGTERM:
                self.wait_for(lambda: not self.hidden())
            else:
                self.wait_for(lambda: not list(self.processes()))
                self.assertEqual(os.listdir(self.directory), self.hidden())
                self.wait_for(self.next_run_removes_them)
            self.assertEqual(os.listdir(self.directory), [])

    def next_run_removes_them(self):
        """Whether a run removes them: not while the killed process still closes its files."""
        self.call(1, "generate", "-n", 5, "-o", "K", "-q")
        os.unlink(self.path("K"))
        return not self.hidden()

    def test_killed_at_random_moments(self):
        """The file is the old or the new one; the next run removes temporary files."""
        self.call(1, "generate", "-n", "20k", "-o", "C", "-q")
        begun = time.monotonic()
        self.call(1, "export", "C", "T", "-q")
        took, new, draw = time.monotonic() - begun, self.get("T"), random.Random(45)
        for _ in range(500 if limetest.STRESS else 10):
            self.put("T", b"old")
            with subprocess.Popen([PROGRAM, "export", "-f", "C", "T", "-q"], cwd=self.directory,
                                  env=mpitest.environment_of_one(), stdin=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                time.sleep(draw.uniform(0, 1.1 * took))
                process.kill()
            self.assertIn(self.get("T"), (b"old", new))
        self.wait_for(self.next_run_removes_them)
        self.assertEqual(sorted(os.listdir(self.directory)), ["C", "T"])

    def test_directory_of_another_user(self):
        """Without write permission for the directory, the files do not change."""
        users.reach(self, self.directory)
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.call(1, "generate", "-n", 20, "-o", "C", "-q")
        self.call(1, "export", "C", "T", "-q")
        os.chmod(self.directory, 0o755)
        before, theirs = (self.get("C"), self.get("T")), self.tempdir()
        os.chmod(theirs, 0o777)
        for args in (("export", "-f", "C", "T"), ("import", "-f", "T", "C"),
                     ("generate", "-n", "5", "-o", "new")):
            done = limetest.run([PROGRAM, *args, "-q"], env=mpitest.environment({"TMPDIR": theirs}),
                                cwd=self.directory, user=54321, group=54321, extra_groups=[])
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(f"lime-checkpoint: {args[-1]}: create: Permission denied",
                          done.stderr.decode())
        self.assertEqual((self.get("C"), self.get("T")), before)
        self.assertEqual(sorted(os.listdir(self.directory)), ["C", "T"])

    def test_created_during_the_run(self):
        """A file that another process creates during the run stays, also with --force."""
        for more in ((), ("--force",)):
            process = self.start(0, "generate", "-n", "3M", "-o", "K", *more,
                                 stderr=subprocess.PIPE)
            self.wait_for(self.hidden)
            self.put("K", b"of another process")
            text = process.communicate(timeout=60 * limetest.SLOWNESS)[1].decode()
            self.assertEqual((process.returncode, self.get("K")), (1, b"of another process"))
            self.assertIn("K: not written: another process has created", text)
            self.assertEqual(os.listdir(self.directory), ["K"])
            os.unlink(self.path("K"))

    def test_refused(self):
        """An output that is the input, that another process writes to, or that is not a file is an
        error and stays the same. tests/tool/test_output.py has more cases."""
        self.call(1, "generate", "-n", 20, "-o", "C", "-q")
        self.call(2, "export", "C", "T", "-q")
        self.call(1, "generate", "-n", 5, "-o", "locked", "-q")
        for name in ("C", "T"):
            os.symlink(name, self.path(name + ".link"))
            os.link(self.path(name), self.path(name + ".hard"))
        os.mkdir(self.path("d"))
        os.mkfifo(self.path("fifo"))
        os.symlink("nowhere", self.path("dangling"))
        is_input = "is also the input"
        locked = "another process has this container open for writing"
        cases = [(("export", "-f", "C", out), is_input) for out in ("C", "d/../C", "C.link",
                                                                    "C.hard", self.path("C"))]
        cases += [(("import", "-f", "T", out), is_input) for out in ("T.link", "T.hard")]
        cases += [(("restart", "-f", "C", "-o", out), is_input) for out in ("C.link", "C.hard")]
        for command, source, *option in (("export", "C"), ("import", "T"), ("restart", "C", "-o")):
            cases += [((command, "-f", source, *option, "locked"), locked),
                      ((command, source, *option, "locked"), "exists already")]
        cases += [(("export", "-f", "C", out), message) for out, message in
                  (("d", "Is a directory"), ("fifo", "not a regular file"),
                   ("dangling", "a symbolic link to a file that does not exist"),
                   ("none/x", "create: No such file"))]
        before = {name: self.get(name) for name in ("C", "T", "locked")}
        names = sorted(os.listdir(self.directory))
        with open(self.path("locked"), "r+b") as file:
            limetest.lock(file)
            self.each(lambda i, args, message: self.refuse(1 + i % 2, message, *args, "-q"), cases)
        for name, command in (("C", "export"), ("T", "import")):
            with open(self.path(name), "rb") as file:
                for args in (("/dev/stdin", name), (name, f"/proc/self/fd/{file.fileno()}")):
                    done = limetest.run([PROGRAM, command, "-f", *args], stdin=file,
                                        pass_fds=[file.fileno()], cwd=self.directory,
                                        env=mpitest.environment_of_one())
                    self.assertEqual(done.returncode, 1, done)
                    self.assertIn(b"is also the input", done.stderr)
        self.assertEqual({name: self.get(name) for name in before}, before)
        self.assertEqual(sorted(os.listdir(self.directory)), names)

    @limetest.needs_fuse
    def test_refused_through_a_mount(self):
        self.call(1, "generate", "-n", 20, "-o", "C", "-q")
        self.call(1, "export", "C", "T", "-q")
        before = self.get("C"), self.get("T")
        with limetest.Mount(self.directory, opts="rw") as mount:
            for args in (("import", "T", f"{mount.path}/T"), ("import", f"{mount.path}/T", "T"),
                         ("export", "C", f"{mount.path}/C/new")):
                self.refuse(2, "is also the input", *args, "-f", "-q")
        self.assertEqual((self.get("C"), self.get("T")), before)
        self.assertEqual(sorted(os.listdir(self.directory)), ["C", "T"])

    def test_run_keeps_what_it_continues_from(self):
        options = ("run", "-n", 500, "--series", "S", "--every", 5, "-o", "S.000000000005.lime")
        self.call(2, *options[:-2], "-s", 6)
        before = self.get("S.000000000005.lime")
        for more, message in (((), "exists already"), (("-f",), "is also the input")):
            self.call(2, *options, "-s", 8, "--continue", *more, status=1)
            self.assertIn(f"S.000000000005.lime: {message}", self.messages[-1])
        self.assertEqual(self.get("S.000000000005.lime"), before)
        os.unlink(self.path(".S.lock"))

    def processes(self):
        """Yields the processes whose working directory is the test's."""
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{entry}/cwd") == self.directory:
                    yield int(entry)

    def first_rank(self):
        for pid in self.processes():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                if {b"OMPI_COMM_WORLD_RANK=0", b"PMI_RANK=0"} & set(file.read().split(b"\0")):
                    return pid
        return self.fail("no first rank")


class Compare(TestCase):
    def test_differences(self):
        lines = [line(i, (i / 100, 5, 5)) for i in range(1, 900)]
        self.put("T", text(lines))
        self.call(3, "import", "T", "C", "-q")
        changed = list(lines)
        changed[6] = line(7, (0.07, 5, 5), velocity=("1e-300", 0, 0))
        changed[800] = line(801, (5, 5, 5))
        self.put("T", text(changed + [line(5000, (1, 1, 1))]))
        self.call(2, "import", "T", "C2", "-q", "--cells", "3x3x3")
        for ranks in (1, 4):
            out = self.call(ranks, "compare", "C", "C2", status=1)
            self.assertEqual(out, "only in C: 2 particles, id 7, 801\n"
                                  "only in C2: 3 particles, id 7, 801, 5000\n")
        self.assertEqual(self.call(2, "compare", "-q", "C", "C2", status=1), "")
        self.put("T", text([line(3, (5, 5, 5)) for i in range(30)]))
        self.call(2, "import", "T", "C3", "-q")
        self.put("T", text([line(3, (5, 5, 5)) for i in range(31)]))
        self.call(2, "import", "T", "C4", "-q")
        self.assertEqual(self.call(3, "compare", "C3", "C4", status=1),
                         "only in C4: 1 particle, id 3\n")
        out = self.call(2, "compare", "C", "C4", status=1)
        self.assertRegex(out, r"^only in C: 899 particles, id 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, \.")

    def test_other_shapes(self):
        self.put("T", text([line(1, (1, 1, 1))]))
        self.call(1, "import", "T", "C", "-q")
        self.put("T", text([line(1, (1, 1, 1))], length="10 10 11"))
        self.call(1, "import", "T", "C2", "-q")
        self.assertEqual(self.call(2, "compare", "C", "C2", status=1),
                         "C and C2: not the same domains\n")
        self.put("C2", self.get("C"))
        self.change_index("C2", 104, ">I", 0b101)  # not periodic in y
        self.assertEqual(self.call(2, "compare", "C", "C2", status=1),
                         "C and C2: not the same domains\n")
        self.call(1, "generate", "-n", 1, "--format", "IRV", "-o", "C3", "-q")
        self.assertEqual(self.call(2, "compare", "C", "C3", status=1),
                         "C and C3: not the same fields\n")
        self.refuse(2, "X: open: No such file", "compare", "C", "X", status=2)


class Info(TestCase):
    def test_json(self):
        self.call(1, "generate", "-n", 6000, "-o", "C", "-q", "--distribution", "cluster",
                  "--cells", "8x8x8")
        c = self.read("C")
        counts = [entry[1] for entry in c.entries]
        for ranks in (1, 3):
            info = json.loads(self.call(ranks, "info", "--json", "--ranks", 5, "C"))
            self.assertEqual((info["particles"], info["particle_bytes"]), (6000, 64))
            self.assertEqual(info["cells"], {"all": 512, "empty": counts.count(0),
                                             "fewest": min(counts), "most": max(counts)})
            self.assertEqual(info["domain"]["cells"], [8, 8, 8])
            for kind in ("regular", "kd"):
                self.assertEqual(info[kind]["ranks"], 5)
                self.assertAlmostEqual(info[kind]["mean"], 1200)
            self.assertLess(info["kd"]["most"], info["regular"]["most"])
        out = self.call(5, "restart", "-d", "kd", "--out", "C2", "C")
        found = re.search(r"read +C: 6000 particles, .* (\d+) to (\d+) a rank", out)
        self.assertEqual((int(found[1]), int(found[2])),
                         (round(info["kd"]["fewest"]), round(info["kd"]["most"])))
        self.assertIn("in a cell", self.call(2, "info", "C"))

    def test_no_finite_time(self):
        """A time that is not finite is copied to a new checkpoint, but not exported."""
        self.call(1, "generate", "-n", 100, "-o", "C", "-q")
        for value in (math.nan, math.inf):
            self.change_index("C", 120, ">d", value)
            self.assertIsNone(json.loads(self.call(2, "info", "--json", "C"))["time"])
            self.assertIn(f"time        {value}", self.call(1, "info", "C"))
            self.call(2, "restart", "--out", "C2", "C", "-f", "-q")
            self.call(2, "compare", "C", "C2")
            self.refuse(2, "^C: the time is not", "export", "C", "T")

    def test_without_a_checkpoint(self):
        self.put("E", b"")
        self.put("R", limetest.record("text", b"hello", True, True))
        self.put("X", b"nothing of the kind" * 20)
        for name in ("E", "R", "X"):
            self.refuse(2, f"^{name}: ", "info", name)


class Damage(TestCase):
    """Damage gives one message with file and reason, and no output; test_cells.py has more."""

    def test_refused(self):
        self.call(1, "generate", "-n", 900, "-o", "C", "-q", "--cells", "3x3x3")
        good = self.get("C")
        places = {type: (at, size) for type, at, size, *_ in celllib.records(self.path("C"))}
        (index, _), (data, size) = places[celllib.INDEX], places[celllib.DATA]

        def flip(at):
            return good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:]

        cell = r"read: cell \(\d, \d, \d\): .*checksum"
        restart, compare = ("restart", "--out", "N"), ("compare", "C")

        def one(i, ranks, damaged, expected, command, status=1):
            self.put(f"D{i}", damaged)
            self.refuse(ranks, f"^D{i}: {expected}", *command, f"D{i}", status=status)

        self.each(one, ((3, flip(data), cell, restart), (1, flip(data + size - 1), cell, restart),
                        (3, flip(data + size // 2), cell, compare, 2),
                        (3, flip(index + 140), "", ("info",)), (1, flip(index + 9), "", ("info",)),
                        (3, good[:data + size // 2], "", restart), (1, good[:index], "", restart)))
        self.assertNotIn("N", os.listdir(self.directory))


if __name__ == "__main__":
    limetest.main()
