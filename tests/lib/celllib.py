"""celllib - read and verify checkpoints of particles without the library, by docs/format.md."""

import math
import struct
import zlib

import limetest

FORMAT, INDEX, DATA = "lemon-cells-format", "lemon-cells-index", "lemon-cells-data"
HEADER = "mardyn-header"
FIXED = struct.Struct(">8sII2Q3Q3d3dIIqdII")
FIELD = struct.Struct(">64sIIQ")
ENTRY = struct.Struct(">QQII")
TYPES = {1: "i", 2: "I", 3: "q", 4: "Q", 5: "f", 6: "d"}


def records(path):
    """Returns [(type, offset of the data, bytes, MB, ME)]."""
    return [(r.name, r.at, len(r.data), r.mb, r.me) for r in limetest.records_of(path)]


class Checkpoint:
    """The first checkpoint in a file. Compares every checksum and each particle's cell."""

    def __init__(self, path):
        self.records = records(path)
        with open(path, "rb") as file:
            self.file = file.read()
        data = {type: self.file[at:at + size] for type, at, size, _, _ in self.records}
        self.header = data[HEADER].decode() if HEADER in data else None
        self.text, self.index, self.data = data[FORMAT].decode(), data[INDEX], data[DATA]
        self.read_index()
        self.verify()

    def read_index(self):
        fixed = FIXED.unpack_from(self.index)
        assert fixed[0] == b"LEMNCELL" and fixed[1] == 1
        self.header_bytes, self.count, self.bytes = fixed[2:5]
        self.cells, self.origin, self.length = fixed[5:8], fixed[8:11], fixed[11:14]
        self.flags, fields, self.step, self.time, entries_crc, header_crc = fixed[14:]
        self.fields = {}
        for i in range(fields):
            name, type, count, offset = FIELD.unpack_from(self.index, FIXED.size + i * FIELD.size)
            self.fields[name.rstrip(b"\0").decode()] = (TYPES[type], count, offset)
        assert self.header_bytes == FIXED.size + fields * FIELD.size
        raw = self.index[:132] + bytes(4) + self.index[136:self.header_bytes]
        assert zlib.crc32(raw) == header_crc
        entries = self.index[self.header_bytes:]
        assert zlib.crc32(entries) == entries_crc
        assert len(entries) == math.prod(self.cells) * ENTRY.size
        self.entries = list(ENTRY.iter_unpack(entries))

    def field(self, particle, name):
        """Returns the field's numbers from a particle's bytes."""
        type, count, offset = self.fields[name]
        order = ">" if self.flags & 8 else "<"
        return struct.unpack_from(f"{order}{count}{type}", particle, offset)

    def cell_of(self, position):
        """Returns the number of the cell that contains the position, faces included."""
        number = 0
        for d, x in enumerate(position):
            lower, n = self.origin[d], self.cells[d]
            upper = lower + self.length[d]
            assert lower <= x <= upper
            if x == upper:
                i = 0 if self.flags >> d & 1 else n - 1
            else:
                i = min(int((x - lower) / self.length[d] * n), n - 1)
            number = number * n + i
        return number

    def verify(self):
        assert len(self.data) == self.count * self.bytes
        end = 0
        for first, count, _, _ in sorted(entry for entry in self.entries if entry[1]):
            assert first == end
            end += count
        assert end == self.count
        step = 1 if self.count < 100000 else 97
        for number, (first, count, crc, zero) in enumerate(self.entries):
            raw = self.data[first * self.bytes:(first + count) * self.bytes]
            assert zero == 0 and (count or first == 0) and zlib.crc32(raw) == crc
            for i in range(0, count if number % step == 0 else 0):
                position = self.field(raw[i * self.bytes:(i + 1) * self.bytes], "position")
                assert self.cell_of(position) == number, (number, position)

    def particles(self):
        """Returns all particles as bytes, sorted."""
        return sorted(self.data[i:i + self.bytes]
                      for i in range(0, len(self.data), self.bytes))
