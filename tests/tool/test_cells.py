"""lime info and lime check of particle checkpoints that tests/lib/cellslib.py has written."""
import json
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cellslib
import limetest
import scidac
from cellslib import Checkpoint
from limetest import container, record, run

NAN = float("nan")


class CellsCase(limetest.TestCase):
    def check(self, data, *options, status=0):
        """Returns the JSON of lime check for a file with these bytes."""
        path = self.write("c.lime", data)
        done = run(["lime", "check", "--json", *options, path])
        self.assertEqual((done.returncode, done.stderr), (status, b""), done.stdout)
        return json.loads(done.stdout)

    def messages(self, data, *options, status=1):
        """Returns the messages on standard error without the file's name, and the summary."""
        path = self.write("c.lime", data)
        out = self.lime("check", *options, path, status=status)
        return self.err.replace(f"lime: {path}: ", ""), out.replace(f"{path}: ", "")

    def info(self, data, *options, status=0):
        path = self.write("c.lime", data)
        return self.lime("info", *options, path, status=status).replace(path, "c")

    def findings(self, data, *options):
        return [(f["code"], f["ordinal"]) for f in self.check(data, *options, status=1)["findings"]]


class Info(CellsCase):
    def test_text(self):
        c = Checkpoint(1000, (4, 3, 2), origin=(0, -1.5, 1e-3), length=(10, 3, 0.5),
                       periodic=(True, False, True), step=1200, time=0.1)
        few, many = min(map(len, c.members)), max(map(len, c.members))
        self.assertEqual(self.info(c.container()), f"""c
  file              65K, 3 records in 1 message

checkpoint of particles (record 3)
  particles         1000 of 64 bytes
  step              1200, time 0.1
  domain            0..10 x -1.5..1.5 x 0.001..0.501
  periodic          x, z
  cells             4 x 3 x 2
  in a cell         {few} to {many} particles
  byte order        little-endian
  fields            id: uint64 at byte 0
                    component: uint32 at byte 8
                    position: 3 float64 at byte 16
                    velocity: 3 float64 at byte 40
  size              62K
""")

    def test_json(self):
        c = Checkpoint(10, (4, 3, 2), length=(10, 3, 0.1), periodic=(True, False, True), step=-3,
                       time=2.5, big=True, order="shuffled")
        report = json.loads(self.info(c.container(), "--json"))
        self.assertEqual(report["deviations"], [])
        self.assertEqual(report["checkpoints"], [{
            "ordinal": 3, "index_record": 2, "text_record": 1, "message": 1, "bytes": 640,
            "whole": True, "particles": 10, "particle_bytes": 64, "step": -3, "time": 2.5,
            "byte_order": "big", "origin": [0, 0, 0], "length": [10, 3, 0.1],
            "periodic": [True, False, True], "cells": [4, 3, 2], "fewest": 0,
            "most": max(map(len, c.members)), "empty": sum(not cell for cell in c.members),
            "fields": [dict(zip(("name", "type", "count", "offset"), f, strict=True))
                       for f in cellslib.USUAL]}])

    def test_others(self):
        """Checkpoints without particles, with a NaN time, several, and one next to a lattice."""
        none = Checkpoint(0, (2, 1, 1), time=NAN)
        self.assertIn("0 to 0 particles, 2 empty", self.info(none.container()))
        self.assertIn("time nan", self.info(none.container()))
        found = json.loads(self.info(none.container(), "--json"))["checkpoints"]
        self.assertIsNone(found[0]["time"])
        several = container([("xlf-info", b"beta = 5.3\n"), none.records(),
                             Checkpoint(3).records()])
        text = self.info(several)
        self.assertEqual([line for line in text.splitlines() if "(record" in line],
                         ["ensemble (record 1)", "checkpoint of particles (record 4)",
                          "checkpoint of particles (record 7)"])
        self.assertEqual(len(json.loads(self.info(several, "--json"))["checkpoints"]), 2)

    def test_damaged(self):
        c = Checkpoint(20, (2, 2, 2))
        text, index, data = c.records()
        for records, messages in (
                ([text, (index[0], index[1][:200]), data], ["index             damaged"]),
                ([text, index], ["size              no data", "no particles follow"]),
                ([data], ["index             none", "no index of cells"]),
                ([text, index, (data[0], data[1][:-1])],
                 ["size              1279 bytes, but should be 1280",
                  "the data length does not match the particles (1279 bytes, not 1280)"])):
            report = self.info(container(records), status=1)
            for word in [*messages, "problems"]:
                self.assertIn(word, report)
            report = json.loads(self.info(container(records), "--json", status=1))
            self.assertEqual(report["status"], "bad")
            self.assertTrue(report["deviations"])
            self.assertFalse(report["checkpoints"][0]["whole"])


class Index(CellsCase):
    def test_good(self):
        for c in (Checkpoint(), Checkpoint(1), Checkpoint(5000, (5, 6, 7), order="shuffled"),
                  Checkpoint(300, (3, 3, 3), big=True, periodic=(0, 0, 0)),
                  Checkpoint(50, (1, 1, 9), origin=(1e6, -1e6, 0), length=(1e-3, 1e6, 3)),
                  Checkpoint(9, fields=(("position", "float32", 3, 1),), particle_bytes=13)):
            report = self.check(c.container(), "--data")
            self.assertEqual((report["status"], report["findings"]), ("good", []))
            self.assertEqual(report["checkpoints"], [{"ordinal": 3, "state": "good", "bad": 0,
                                                      "cells": len(c.members)}])
            report = self.check(c.container())
            self.assertEqual(report["status"], "good")
            self.assertNotIn("checkpoints", report)

    def test_header(self):
        big = 1 << 63
        for header, reason in (
                ({"magic": b"LEMNCELK"}, "it does not begin with the magic number"),
                ({"version": 2}, "unknown version"),
                ({"bytes": 456 + 80}, "the header's length does not match its fields"),
                ({"crc": 1}, "wrong checksum of the header"),
                ({"entries_crc": 1},
                 "wrong checksum of the cells' entries"),
                ({"flags": 16}, "unknown flags"),
                ({"particles": 21}, "the cells overlap or leave out particles"),
                ({"particles": big}, "there are more particles than a file can hold"),
                ({"particles": 0}, "cell (0, 0, 0): it reaches beyond the data"),
                ({"particle_bytes": 63}, "a field reaches beyond the particle"),
                ({"particle_bytes": 0}, "a particle must have 1 byte to 1 MiB"),
                ({"cells": (2, 2, 3)}, "the record's length does not match its cells"),
                ({"cells": (0, 2, 2)}, "the number of cells must be 1 to 2^40"),
                ({"cells": (1 << 20, 1 << 20, 2)}, "the number of cells must be 1 to 2^40"),
                ({"cells": (big, big, big)}, "the number of cells must be 1 to 2^40"),
                ({"length": (1, 1, 0)}, "the domain has no volume"),
                ({"length": (1, NAN, 1)}, "the domain is not finite"),
                ({"origin": (1e300, 0, 0)}, "the domain has no volume")):
            with self.subTest(header):
                c = Checkpoint(20, (2, 2, 2))
                text = c.text()
                c.header = header
                data = container([(cellslib.TEXT, text), (cellslib.INDEX, c.index()),
                                  (cellslib.DATA, c.data())])
                errors, summary = self.messages(data, "--data")
                line = next(line for line in errors.splitlines() if "index of cells is" in line)
                at = 144 + len(text) + -len(text) % 8 + 144
                self.assertEqual(line, f"offset {at}: record 2: the index of cells is damaged: "
                                       f"{reason}")
                self.assertIn("record 3: unverified: its index is damaged", summary)
        text, index, data = Checkpoint(20, (2, 2, 2)).records()
        for length, reason in ((0, "it is shorter than its header"),
                               (135, "it is shorter than its header"),
                               (236, "it is shorter than its header"),
                               (-1, "the record's length does not match its cells")):
            errors, _ = self.messages(container([text, (index[0], index[1][:length]), data]))
            self.assertIn(f"the index of cells is damaged: {reason}\n", errors)

    def test_entries(self):
        for entry, reason in (
                ((0, 99, 0), "cell (0, 1, 1): it reaches beyond the data"),
                ((0, 0, 5), "cell (0, 1, 1): it has no particles, but an offset or a checksum"),
                ((0, 2, 0), "the cells overlap or leave out particles")):
            c = Checkpoint(20, (2, 2, 2), seed=4)
            c.entry[3] = entry
            self.assertIn(reason, self.messages(c.container())[0])
            self.assertEqual(self.findings(c.container()), [("cells-index", 2)])

    def test_records(self):
        c = Checkpoint(20, (2, 2, 2))
        text, index, data = c.records()
        other = ("other", b"x")
        for items, want in (
                ([text, index], [("cells-data-missing", 2)]),
                ([text, data], [("cells-text", 1), ("cells-index-missing", 2)]),
                ([index, data], [("cells-text", 1)]),
                ([text], [("cells-text", 1)]),
                ([data], [("cells-index-missing", 1)]),
                ([[text, index], [data]], [("cells-data-missing", 2), ("cells-index-missing", 3)]),
                ([text, index, (data[0], b"")], [("cells-length", 3)]),
                ([text, index, (data[0], data[1] + b"\0")], [("cells-length", 3)]),
                ([text, (index[0], b""), data], [("cells-index", 2)]),
                ([(text[0], b""), index, data], [("cells-text", 1)]),
                ([(text[0], b" " * (1 << 20)), index, data], [("cells-text", 1)]),
                # several in one message, each without one of its records
                ([[text, text, data, index], [text], [index, data, data]],
                 [("cells-text", 1), ("cells-text", 2), ("cells-index-missing", 3),
                  ("cells-text", 4), ("cells-data-missing", 4), ("cells-text", 5),
                  ("cells-text", 6), ("cells-index-missing", 8)]),
                ([text, index, data, data], [("cells-index-missing", 4)])):
            with self.subTest(want):
                self.assertEqual(self.findings(container(items)), want)
        self.assertEqual(self.check(container([other, text, other, index, other, data, other]))
                         ["status"], "good")
        self.assertEqual(self.check(container([[text, index, data, text, index, data]]))
                         ["status"], "good")
        errors, _ = self.messages(container([[text], [index, data]]))
        self.assertIn("no index follows it\n", errors)
        self.assertIn("the text is missing\n", errors)

    def test_text(self):
        """lime check ignores white space in the text and nothing else."""
        for time in 0.0, NAN, 0.1 + 0.2:
            text, index, data = Checkpoint(20, (2, 3, 2), time=time).records()
            for old, new, good in (
                    (b"<version>", b"<version>", True), (b"<step>0<", b"<step> 0\n<", True),
                    (b"</lemonCells>\n", b"</lemonCells>", True), (b"<step>0", b"<step>1", False),
                    (b"<step>0</step>", b"", False), (b"0 0 0</origin>", b"0 0</origin>", False),
                    (b"<cells>2 3 2", b"<cells>3 2 2", False), (b"little", b"big", False),
                    (b"uint64", b"int64", False), (b"</lemonCells>", b"", False),
                    (b"</lemonCells>", b"</lemonCells>x", False),
                    (b"</lemonCells>", b"</lemonCellx>", False),
                    (b"  </particle>", b"<field/></particle>", False)):
                with self.subTest(new=new, time=time):
                    changed = container([(text[0], text[1].replace(old, new, 1)), index, data])
                    findings = self.check(changed, status=0 if good else 1)["findings"]
                    self.assertEqual([f["message"].endswith("it has different contents")
                                      for f in findings], [] if good else [True])

    def test_in_the_order_of_the_file(self):
        """lime check sorts findings of checkpoints, structure and lattices by offset."""
        text, index, data = Checkpoint(3).records()
        found = self.findings(record("first", b"", 1, 1, reserved=1)
                              + container([[text, (index[0], b"short"), data]])
                              + container([[("ildg-format", scidac.ildg_format((4, 4, 4, 4))),
                                            ("ildg-binary-data", b"x")]])
                              + record("third", b"", 1, 1, reserved=1)
                              + container([[text, index]])
                              + record("last", b"", 1, 1, reserved=1))
        self.assertEqual(found, [("reserved-byte", 1), ("cells-index", 3), ("field-length", 6),
                                 ("reserved-byte", 7), ("cells-data-missing", 9),
                                 ("reserved-byte", 10)])

    def test_length_in_words(self):
        text, index, data = Checkpoint(3).records()
        cut = container([text, index, (data[0], data[1][:100])])
        errors, summary = self.messages(cut, "--data")
        self.assertIn("the data length does not match the particles (100 bytes, not 192)", errors)
        self.assertIn("record 3: bad: its length is not that of the particles", summary)
        self.assertIn("checksums: 1 wrong", summary)


class Particles(CellsCase):
    def damaged(self, c, *cells):
        """Returns the container with one changed byte in the data of each of these cells."""
        text, index, data = c.records()
        data, first = bytearray(data[1]), 0
        for i in c.sequence():
            if i in cells:
                data[(first + len(c.members[i]) // 2) * c.particle_bytes + 5] ^= 1
            first += len(c.members[i])
        return container([text, index, (cellslib.DATA, bytes(data))])

    def test_checksums(self):
        for order in (None, "shuffled"):
            c = Checkpoint(2000, (4, 5, 6), order=order, seed=3)
            data = self.damaged(c, 17, 100, 118)
            errors, summary = self.messages(data, "--data")
            at = len(data) - len(c.data())
            self.assertEqual(errors, f"offset {at}: record 3: cells do not hold the particles that "
                             "their index describes (3 of 120 cells): the first is (0, 2, 5): "
                             "wrong checksum\n")
            self.assertIn("1 deviation: 3 records in 1 message", summary)
            self.assertIn("checksums: 1 wrong", summary)
            report = self.check(data, "--data", status=1)
            self.assertEqual(report["checkpoints"], [{"ordinal": 3, "state": "bad", "cells": 120,
                                                      "bad": 3, "first_bad": [0, 2, 5]}])
            self.assertEqual([f["code"] for f in report["findings"]], ["cells"])
            self.assertEqual(self.check(data)["status"], "good")

    def test_quiet(self):
        c = Checkpoint(200, (2, 2, 2))
        for data, status in ((c.container(), 0), (self.damaged(c, 3), 1)):
            path = self.write("c", data)
            done = run(["lime", "check", "-q", "--data", path])
            self.assertEqual((done.returncode, bool(done.stdout), bool(done.stderr)),
                             (status, status == 1, status == 1))

    def test_positions(self):
        """lime check finds misplaced particles although the checksums are right."""
        for position, reason in (((0.9, 0.1, 0.1), "is in another cell"),
                                 ((0.1, 0.5, 0.1), "is in another cell"),
                                 ((0.1, 0.1, NAN), "is outside of the domain"),
                                 ((0.1, 0.1, 1.01), "is outside of the domain"),
                                 ((0.1, 0.1, math.inf), "is outside of the domain"),
                                 ((-1e-300, 0.1, 0.1), "is outside of the domain")):
            c = Checkpoint(50, (2, 2, 2))
            c.add(50, position, cell=0)
            errors, _ = self.messages(c.container(), "--data")
            self.assertIn(f"(1 of 8 cells): the first is (0, 0, 0): particle "
                          f"{len(c.members[0]) - 1} {reason}\n", errors)

    def test_faces(self):
        """A face belongs to the upper cell; the last face to the last cell, or 0 if periodic."""
        for periodic in (False, True):
            c = Checkpoint(0, (2, 2, 2), periodic=(periodic,) * 3)
            upper = 0 if periodic else 7
            for position, cell in (((0, 0, 0), 0), ((-0.0, 0, 0), 0), ((1, 1, 1), upper),
                                   ((0.5, 0.5, 0.5), 7), ((0.5, 0, 0), 4), ((0, 0.5, 0), 2)):
                c.add(0, position, cell=cell)
            self.assertEqual(self.check(c.container(), "--data")["status"], "good")
            c.add(0, (1, 1, 1), cell=7 - upper)
            self.assertEqual(self.findings(c.container(), "--data"), [("cells", 3)])

    def test_other_byte_order(self):
        c = Checkpoint(500, (3, 3, 3), big=True)
        data = c.data()
        c.big = False
        self.assertEqual(self.findings(container([c.records()[0], (cellslib.INDEX, c.index()),
                                                  (cellslib.DATA, data)]), "--data"),
                         [("cells", 3)])

    def test_same_cells_as_cellslib(self):
        """lime and cellslib put each position in the same cell, also next to faces."""
        for seed in range(8):
            chance = Checkpoint(seed=seed).chance
            cells = [chance.choice((1, 2, 3, 7, 10, 49, 100)) for _ in range(3)]
            origin = [chance.choice((0, -0.1, 1e-3, 1e5, -7.3)) for _ in range(3)]
            length = [chance.choice((1, 0.3, 1e3, 0.1, 77.7)) for _ in range(3)]
            c = Checkpoint(300, cells, origin, length, big=seed % 2,
                           periodic=[chance.random() < 0.5 for _ in range(3)], seed=seed)
            for i in range(2000):
                position = []
                for d in range(3):
                    x = c.edge(d, chance.randrange(cells[d] + 1))
                    for _ in range(chance.randrange(3)):
                        x = math.nextafter(x, chance.choice((-1e300, 1e300)))
                    position.append(min(max(x, c.origin[d]), c.origin[d] + c.length[d]))
                c.add(i, position)
            self.assertEqual(self.check(c.container(), "--data")["status"], "good")

    def test_two_checkpoints(self):
        c, other = Checkpoint(100, (2, 2, 2), seed=1), Checkpoint(100, (2, 2, 2), seed=2)
        data = c.container() + self.damaged(other, 5) + container([c.records()[2:]])
        report = self.check(data, "--data", status=1)
        self.assertEqual([(r["ordinal"], r["state"]) for r in report["checkpoints"]],
                         [(3, "good"), (6, "bad"), (7, "unverified")])
        _, summary = self.messages(data, "--data")
        self.assertIn("record 7: unverified: no index of cells", summary)
        self.assertIn("checksums: 1 right, 1 wrong, 1 unverified", summary)


class Memory(CellsCase):
    def limited(self, path, *options, status=0, megabytes=100):
        """Runs lime check with a limit on its address space."""
        if limetest.SANITIZED:
            self.skipTest("sanitizers reserve address space")
        done = run(["prlimit", f"--data={megabytes << 20}", limetest.program("lime"), "check",
                    "-q", *options, path], timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)

    def test_does_not_grow_with_the_cells(self):
        """An index of 2^25 empty cells: a hole of 800 MB, which uses no disk space."""
        c, zeros = Checkpoint(0), 24 << 25
        c.cells = (1 << 9, 1 << 8, 1 << 8)
        c.header = {"entries_crc": crc_of_zeros(zeros)}
        index = c.index()[:-24]  # without its only cell
        path = self.write("sparse.lime", record(cellslib.TEXT, c.text(), 1, 0)
                          + limetest.header(cellslib.INDEX, len(index) + zeros, 0, 0) + index)
        with open(path, "r+b") as file:
            file.seek(zeros, os.SEEK_END)
            file.write(record(cellslib.DATA, b"", 0, 1))
        self.limited(path, "--data")
        with open(path, "r+b") as file:  # an entry without particles, with its checksum
            file.seek(-144 - 8, os.SEEK_END)
            file.write(b"x")
        self.limited(path, "--data", status=1)


def crc_of_zeros(n):
    """Returns zlib's crc32 of n zero bytes, by arithmetic in the field of polynomials."""
    def multiply(a, b):
        product = 0
        for bit in range(31, -1, -1):
            if a >> bit & 1:
                product ^= b
            b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
        return product
    shift, power = 1 << 31, 1 << 23
    while n:
        if n & 1:
            shift = multiply(shift, power)
        power, n = multiply(power, power), n >> 1
    return multiply(0xFFFFFFFF, shift) ^ 0xFFFFFFFF


if __name__ == "__main__":
    limetest.main()
