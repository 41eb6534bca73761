"""Checkpoints of particles in cells: any number of ranks, invalid writes, damaged files."""

import os
import random
import re
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import celllib
import limetest
from mpitest import RANKS, TestCase, mpirun

TRIES = 400 if limetest.STRESS else 30  # damaged files
READ, CHECKSUM = -8, -12
BAD = range(-20, 0)


class Cells(TestCase):
    def test_written_and_read_by_any_ranks(self):
        for writers in RANKS:
            directory = self.tempdir()
            self.tap(writers, "cells", "write", directory, "usual")
            for readers in RANKS if limetest.STRESS else {1: (3,), 3: (1, 4), 4: (1, 3)}[writers]:
                with self.subTest(writers=writers, readers=readers):
                    self.tap(readers, "cells", "read", directory, "usual")

    def test_many_ranks(self):
        """With many ranks, Lemon finds the communicating ones in a sparse exchange."""
        for writers, readers in ((18, 3), (3, 18)):
            directory = self.tempdir()
            self.tap(writers, "cells", "write", directory, "usual")
            self.tap(readers, "cells", "read", directory, "usual")

    def test_many_particles_and_many_cells(self):
        for writers, readers in ((4, 3), (3, 4)) if limetest.STRESS else ((4, 3),):
            directory = self.tempdir()
            self.tap(writers, "cells", "write", directory, "large")
            self.tap(readers, "cells", "read", directory, "large")

    def test_ranks_with_long_runs_write_them(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                self.tap(ranks, "cells", "own", os.path.join(self.tempdir(), "file"))

    def test_refused_with_messages(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                path = os.path.join(self.tempdir(), "file")
                done = mpirun(ranks, "cells", "wrong", path)
                text = done.stderr.decode()
                self.assertEqual(done.returncode, 0, done.stdout.decode() + text)
                last = 11 + 2 * (ranks - 1)
                for message in (rf"particle 1 \(id {last}\): y = -?nan is not a number",
                                rf"particle 1 \(id {last}\): y = 3\.5 is outside the domain",
                                rf"particle 1 \(id {last}\): y = -inf is outside the domain",
                                r"duplicate id 10 on ranks 0 and "):
                    self.assertEqual(len(re.findall(message, text)), ranks, text)  # on each rank


class Damaged(TestCase):
    """All ranks get the same code and the same message, which names the cell; none crashes."""

    def setUp(self):
        super().setUp()
        self.directory = self.tempdir()
        self.tap(3, "cells", "write", self.directory, "usual")
        path = os.path.join(self.directory, "4")
        self.whole, self.cells = limetest.read(path), celllib.Checkpoint(path)
        places = {type: (at, size) for type, at, size, _, _ in self.cells.records}
        self.index, self.index_bytes = places[celllib.INDEX]
        self.data, self.data_bytes = places[celllib.DATA]

    def results(self, files, ranks):
        """Reads the files in one job; returns (code, messages of all ranks) of each."""
        for i, data in enumerate(files):
            limetest.put(os.path.join(self.directory, str(i)), data)
        done = mpirun(ranks, "cells", "damaged", self.directory, str(len(files)))
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 0, text)
        codes = dict(re.findall(r"^(\d+): code (-?\d+)$", done.stdout.decode(), re.M))
        return [(int(codes[str(i)]), re.findall(rf"^{i}: lemon: (?:rank \d+: )?(.*)$", text, re.M))
                for i in range(len(files))]

    def flip(self, at):
        data = bytearray(self.whole)
        data[at] ^= 0x10
        return bytes(data)

    def with_entries(self, changes):
        """Replaces entries of cells, {number: entry}; the index has matching checksums."""
        data, begin = bytearray(self.whole), self.index + self.cells.header_bytes
        for number, entry in changes.items():
            celllib.ENTRY.pack_into(data, begin + number * celllib.ENTRY.size, *entry)
        end = self.index + self.index_bytes
        struct.pack_into(">I", data, self.index + 128, zlib.crc32(data[begin:end]))
        struct.pack_into(">I", data, self.index + 132, 0)
        struct.pack_into(">I", data, self.index + 132, zlib.crc32(data[self.index:begin]))
        return bytes(data)

    def wrong_entries(self):
        """Yields files with wrong entries, with the expected codes and message."""
        entries = self.cells.entries
        full = [i for i, entry in enumerate(entries) if entry[1] > 1]
        a, b = full[1], full[-1]
        big, beyond, overlap = 1 << 62, "beyond", "the cells overlap or leave out particles"
        FIRST, COUNT, CRC, ZERO = range(4)
        for cell, field, value, message in (
                (a, COUNT, big, beyond), (a, FIRST, big, beyond), (b, COUNT, 1 << 63, beyond),
                (a, COUNT, (1 << 64) - 1, beyond), (b, FIRST, big, beyond),
                (a, FIRST, 3, overlap), (a, COUNT, 1, overlap),
                (a, COUNT, entries[a][COUNT] + 1, overlap), (a, FIRST, entries[b][FIRST], "cell"),
                (a, COUNT, 0, "no particles, but"), (b, ZERO, 1, "cell"),
                (a, CRC, entries[a][CRC] ^ 1, "wrong checksum")):
            entry = list(entries[cell])
            entry[field] = value
            yield self.with_entries({cell: entry}), (READ, CHECKSUM), rf".*{message}"
        yield (self.with_entries({a: entries[b], b: entries[a]}), (READ, CHECKSUM),
               rf"({self.name_of(a)}|{self.name_of(b)}): .*outside")

    def name_of(self, cell):
        """The cell's name in messages."""
        return rf".*cell \({cell // 16}, {cell // 4 % 4}, {cell % 4}\)"

    def test_damage(self):
        size, cut = self.index_bytes, self.data + self.data_bytes // 2
        rows = [(self.whole, (0,), None)]
        for at in (0, self.data_bytes // 2, self.data_bytes - 1):
            cell = next(i for i, (first, count, _, _) in enumerate(self.cells.entries)
                        if first <= at // self.cells.bytes < first + count)
            rows.append((self.flip(self.data + at), (CHECKSUM,), self.name_of(cell) +
                         ": wrong checksum"))
        rows += [*self.wrong_entries(), (self.whole[:self.data - 144], (READ,),
                                         "no particle data after the cell index")]
        for end in (cut, self.data, self.data - 100, self.index + 500, self.index + 50,
                    self.index - 10, 200):
            rows.append((self.whole[:end], BAD, "the file ends"))
        for at in (3, 9, 13, 23, 31, 39, 80, 105, 111, 140, 300, size - 1, size - 20, size - 400):
            rows.append((self.flip(self.index + at), BAD, "cell index: "))
        for ranks in (1, 3):
            for i, (code, messages) in enumerate(self.results([row[0] for row in rows], ranks)):
                _, codes, expected = rows[i]
                with self.subTest(row=i, ranks=ranks, messages=messages):
                    self.assertIn(code, codes)
                    self.assertEqual(expected is None, messages == [])
                    self.assertRegex("\n".join(messages), expected or "^$")
                    if code == CHECKSUM:
                        self.assertEqual((len(messages), len(set(messages))), (ranks, 1))

    def test_anything(self):
        dice, files = random.Random(17), []
        for _ in range(TRIES):
            data = bytearray(self.whole)
            for _ in range(dice.randrange(1, 4)):
                where = dice.choice([self.index + dice.randrange(self.index_bytes),
                                     dice.randrange(len(data)),
                                     self.index + dice.randrange(136)])
                data[where] = dice.choice([0, 1, 0x7f, 0x80, 0xff, data[where] ^ 1])
            if dice.randrange(5) == 0:
                data = data[:dice.randrange(len(data))]
            files.append(bytes(data))
        for ranks in (1, 2, 3):
            for i, (code, messages) in enumerate(self.results(files, ranks)):
                self.assertLessEqual(code, 0, (i, messages))


if __name__ == "__main__":
    limetest.main()
