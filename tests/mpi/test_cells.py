"""Checkpoints of particles in cells: written and read by any ranks; what is refused; damage."""

import os
import random
import re
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import RANKS, TestCase, mpirun

TRIES = 400 if limetest.STRESS else 12  # damaged files
READ, CHECKSUM = -8, -12


def records(data):
    """{type: (offset of the data, their length)} of a container."""
    found, at = {}, 0
    while at < len(data):
        length = struct.unpack_from(">Q", data, at + 8)[0]
        kind = data[at + 16:at + 144].rstrip(b"\0").decode()
        found[kind] = (at + 144, length)
        at += 144 + length + -length % 8
    return found


class Cells(TestCase):
    def test_written_and_read_by_any_ranks(self):
        for writers in RANKS:
            folder = self.tempdir()
            self.tap(writers, "cells", "write", folder, "usual")
            for readers in RANKS:
                with self.subTest(writers=writers, readers=readers):
                    self.tap(readers, "cells", "read", folder, "usual")

    def test_more_ranks_than_tell_each_other_everything(self):
        """Beyond 16, who has anything for whom is found out in another way (sparse.c)."""
        for writers, readers in ((18, 3), (3, 18)):
            folder = self.tempdir()
            self.tap(writers, "cells", "write", folder, "usual")
            self.tap(readers, "cells", "read", folder, "usual")

    def test_many_particles_and_many_cells(self):
        for writers, readers in ((4, 3), (3, 4)) if limetest.STRESS else ((4, 3),):
            folder = self.tempdir()
            self.tap(writers, "cells", "write", folder, "large")
            self.tap(readers, "cells", "read", folder, "large")

    def test_ranks_that_have_much_write_it_themselves(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                self.tap(ranks, "cells", "own", os.path.join(self.tempdir(), "file"))

    def test_refused_with_words(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                path = os.path.join(self.tempdir(), "file")
                done = mpirun(ranks, "cells", "wrong", path)
                words = done.stderr.decode()
                self.assertEqual(done.returncode, 0, done.stdout.decode() + words)
                last = 11 + 2 * (ranks - 1)
                for text in (rf"particle 1 \(id {last}\): y = -?nan is no number",
                             rf"particle 1 \(id {last}\): y = 3\.5 is outside of the domain",
                             rf"particle 1 \(id {last}\): y = -inf is outside of the domain",
                             r"id 10 is there twice: on ranks 0 and "):
                    self.assertEqual(len(re.findall(text, words)), ranks, words)  # on each rank


class Damaged(TestCase):
    """The same answer on all ranks, which names the cell, and no crash."""

    def setUp(self):
        super().setUp()
        folder = self.tempdir()
        self.tap(3, "cells", "write", folder, "usual")
        with open(os.path.join(folder, "4"), "rb") as file:
            self.whole = file.read()
        self.records = records(self.whole)
        self.path = os.path.join(folder, "damaged")

    def read(self, data, ranks=3):
        with open(self.path, "wb") as file:
            file.write(data)
        done = mpirun(ranks, "cells", "damaged", self.path)
        words = done.stderr.decode()
        self.assertEqual(done.returncode, 0, words)
        return int(re.search(r"^code (-?\d+)$", done.stdout.decode(), re.M)[1]), words

    def with_entry(self, cell, **new):
        """Another entry of a cell, with checksums that are right for it."""
        data = bytearray(self.whole)
        at, length = self.records["lemon-cells-index"]
        header = struct.unpack_from(">I", data, at + 12)[0]
        entry = at + header + 24 * cell
        first, count, crc = struct.unpack_from(">QQI", data, entry)
        struct.pack_into(">QQI", data, entry, new.get("first", first), new.get("count", count),
                         new.get("crc", crc))
        struct.pack_into(">I", data, at + 128, zlib.crc32(data[at + header:at + length]))
        struct.pack_into(">I", data, at + 132, 0)
        struct.pack_into(">I", data, at + 132, zlib.crc32(data[at:at + header]))
        return bytes(data)

    def test_whole(self):
        self.assertEqual(self.read(self.whole), (0, ""))

    def test_a_wrong_byte_of_a_particle(self):
        data = bytearray(self.whole)
        at, length = self.records["lemon-cells-data"]
        data[at + length // 2] ^= 4
        code, words = self.read(bytes(data))
        self.assertEqual(code, CHECKSUM, words)
        said = re.findall(r"cell \(\d+, \d+, \d+\): its particles do not have the checksum", words)
        self.assertEqual(len(said), 3, words)
        self.assertEqual(len(set(said)), 1, words)

    def test_entries_that_lie(self):
        big, cell = 1 << 62, r"cell \(\d+, \d+, \d+\): .*"
        for new, reason in (({"count": big}, cell + "beyond the data"),
                            ({"first": big}, cell + "beyond"),
                            ({"first": 3}, "the cells overlap, or leave particles out"),
                            ({"count": 1}, "the cells overlap, or leave particles out"),
                            ({"count": 0}, cell + "no particles, but"),
                            ({"crc": 1}, cell + "do not have the checksum")):
            with self.subTest(**new):
                code, words = self.read(self.with_entry(21, **new))
                self.assertIn(code, (READ, CHECKSUM), words)
                self.assertRegex(words, reason)

    def test_without_data(self):
        at, _ = self.records["lemon-cells-data"]
        code, words = self.read(self.whole[:at - 144])
        self.assertEqual(code, READ)
        self.assertIn("there are no data", words)

    def test_anything(self):
        dice = random.Random(17)
        for i in range(TRIES):
            data = bytearray(self.whole)
            index, length = self.records["lemon-cells-index"]
            for _ in range(dice.randrange(1, 4)):
                where = dice.choice([index + dice.randrange(length), dice.randrange(len(data)),
                                     index + dice.randrange(136)])
                data[where] = dice.choice([0, 1, 0x7f, 0x80, 0xff, data[where] ^ 1])
            if dice.randrange(5) == 0:
                data = data[:dice.randrange(len(data))]
            with self.subTest(i=i):
                code, words = self.read(bytes(data), dice.choice((1, 2, 3)))
                if code != 0 or bytes(data) != self.whole:
                    self.assertLessEqual(code, 0, words)


if __name__ == "__main__":
    limetest.main()
