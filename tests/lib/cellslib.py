"""cellslib - write checkpoints of particles independently of src/lime, by docs/format.md.

    c = cellslib.Checkpoint(particles=1000, cells=(4, 4, 4), seed=1)
    c.harm...                       see Checkpoint
    path.write(c.container())
"""

import bisect
import math
import os
import random
import struct
import zlib

import limetest

TEXT, INDEX, DATA = "lemon-cells-format", "lemon-cells-index", "lemon-cells-data"
TYPES = {"int32": (1, "i"), "uint32": (2, "I"), "int64": (3, "q"), "uint64": (4, "Q"),
         "float32": (5, "f"), "float64": (6, "d")}

# name, type, count, offset
USUAL = (("id", "uint64", 1, 0), ("component", "uint32", 1, 8), ("position", "float64", 3, 16),
         ("velocity", "float64", 3, 40))


def crc(data):
    return zlib.crc32(data) & 0xFFFFFFFF


class Checkpoint:
    """Random particles in a domain, sorted into cells; a test may replace each part before it is
    encoded. `order`: the order of the cells in the data, a list of numbers or "shuffled"."""

    def __init__(self, particles=0, cells=(1, 1, 1), origin=(0.0, 0.0, 0.0),
                 length=(1.0, 1.0, 1.0), periodic=(True, True, True), fields=USUAL,
                 particle_bytes=64, big=False, step=0, time=0.0, order=None, seed=0):
        self.cells, self.origin, self.length = tuple(cells), tuple(origin), tuple(length)
        self.periodic, self.fields, self.big = tuple(periodic), fields, big
        self.particle_bytes, self.step, self.time = particle_bytes, step, time
        self.chance = random.Random(seed)
        self.order = order
        self.members = [[] for _ in range(math.prod(self.cells))]  # each cell's particles, as bytes
        for i in range(particles):
            self.add(i, [o + self.chance.random() * n for o, n in zip(self.origin, self.length)])
        self.entry = {}  # {cell number: (first, count, crc)} to write instead of the right entry
        self.header = {}  # index values to write instead of the right ones: particles=, ...
        self.field_bytes = None  # bytes to write instead of the field table

    # ---- the cell of a point on a face ----

    def edge(self, d, i):
        return self.origin[d] + self.length[d] * (i / self.cells[d])

    def locate(self, d, x):
        low, high = self.edge(d, 0), self.origin[d] + self.length[d]
        if not low <= x <= high:
            return None
        if x == high:
            return 0 if self.periodic[d] else self.cells[d] - 1
        return bisect.bisect_right(range(self.cells[d]), x, key=lambda i: self.edge(d, i)) - 1

    def number(self, at):
        return (at[0] * self.cells[1] + at[1]) * self.cells[2] + at[2]

    def at(self, number):
        rest, z = divmod(number, self.cells[2])
        return *divmod(rest, self.cells[1]), z

    # ---- particles ----

    def encode(self, **values):
        out = bytearray(self.particle_bytes)
        for name, type, count, offset in self.fields:
            value = values.get(name, 0 if count == 1 else (0,) * count)
            struct.pack_into((">" if self.big else "<") + TYPES[type][1] * count, out, offset,
                             *(value if count > 1 else (value,)))
        return bytes(out)

    def add(self, id, position, cell=None, **values):
        """Adds a particle to the cell that contains it, or to `cell`."""
        values.setdefault("velocity", [self.chance.gauss(0, 1) for _ in range(3)])
        if cell is None:
            cell = self.number([self.locate(d, position[d]) for d in range(3)])
        self.members[cell].append(self.encode(id=id, component=id % 3, position=position, **values))

    # ---- records ----

    def sequence(self):
        numbers = list(range(len(self.members)))
        if self.order == "shuffled":
            random.Random(99).shuffle(numbers)
        return self.order if isinstance(self.order, list) else numbers

    def data(self):
        return b"".join(b"".join(self.members[i]) for i in self.sequence())

    def entries(self):
        out, first = [b""] * len(self.members), 0
        for i in self.sequence():
            data, n = b"".join(self.members[i]), len(self.members[i])
            out[i] = struct.pack(">QQII", *self.entry.get(i, (first, n, crc(data)) if n else
                                                          (0, 0, 0)), 0)
            first += n
        return b"".join(out)

    def count(self):
        return sum(len(cell) for cell in self.members)

    def index(self):
        entries = self.entries()
        fields = b"".join(struct.pack(">64sIIQ", name.encode(), TYPES[type][0], count, offset)
                          for name, type, count, offset in self.fields)
        if self.field_bytes is not None:
            fields = self.field_bytes
        h = {"magic": b"LEMNCELL", "version": 1, "bytes": 136 + len(fields),
             "particles": self.count(), "particle_bytes": self.particle_bytes,
             "cells": self.cells, "origin": self.origin, "length": self.length,
             "flags": sum(p << d for d, p in enumerate(self.periodic)) | self.big << 3,
             "fields": len(fields) // 80, "step": self.step, "time": self.time,
             "entries_crc": crc(entries), "crc": 0}
        h.update(self.header)
        form = ">8sIIQQ3Q3d3dIIqdII"
        fixed = struct.pack(form, h["magic"], h["version"], h["bytes"], h["particles"],
                            h["particle_bytes"], *h["cells"], *h["origin"], *h["length"],
                            *map(h.get, ("flags", "fields", "step", "time", "entries_crc", "crc")))
        if "crc" not in self.header:
            fixed = fixed[:132] + struct.pack(">I", crc(fixed + fields))
        return fixed + fields + entries

    def text(self):
        def three(values, form):
            return " ".join(format(v, form) for v in values)
        lines = "".join(f'    <field name="{n}" type="{type}" count="{count}" offset="{offset}"/>\n'
                        for n, type, count, offset in self.fields)
        return (f'<?xml version="1.0" encoding="UTF-8"?>\n<lemonCells>\n  <version>1.0</version>\n'
                f"  <step>{self.step}</step>\n  <time>{self.time:.17g}</time>\n"
                f"  <particles>{self.count()}</particles>\n"
                f"  <origin>{three(self.origin, '.17g')}</origin>\n"
                f"  <length>{three(self.length, '.17g')}</length>\n"
                f"  <periodic>{three(self.periodic, 'd')}</periodic>\n"
                f"  <cells>{three(self.cells, 'd')}</cells>\n"
                f"  <byteOrder>{'big' if self.big else 'little'}</byteOrder>\n"
                f'  <particle bytes="{self.particle_bytes}">\n{lines}  </particle>\n'
                "</lemonCells>\n").encode()

    def records(self):
        return [(TEXT, self.text()), (INDEX, self.index()), (DATA, self.data())]

    def container(self):
        return limetest.container(self.records())


# ---- the examples of docs/cells.md ----


PARTICLES = os.path.join(limetest.REPO, "docs", "examples", "particles.py")


def example(number=1):
    """Returns the page's first C program, or another one by number."""
    with open(os.path.join(limetest.REPO, "docs", "cells.md"), encoding="utf-8") as page:
        return page.read().split("```c\n")[number].split("```")[0]
