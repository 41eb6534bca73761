"""volumelib - volume sets as QIO writes them, made from the format's description."""
import os
import struct

import scidac
from limetest import container
from scidac import checksum, checksum_xml


def private_file(dims, volfmt=0):
    """Returns the record as QIO writes it: with a space after the extents, and a NUL."""
    kind, text = scidac.private_file(dims, volfmt)
    return kind, text.replace(b"</dims>", b" </dims>") + b"\0"


def private_record(typesize, datacount=1, recordtype=0, datatype="QDP_F3_DiracFermion", box=None):
    corners = "" if box is None else f"<spacetime>{len(box[0])}</spacetime>" + "".join(
        f"<hyper{name}>{' '.join(map(str, corner))} </hyper{name}>"
        for name, corner in zip(("lower", "upper"), box))
    return ('<?xml version="1.0" encoding="UTF-8"?><scidacRecord><version>1.1</version>'
            f"<date>Thu</date><recordtype>{recordtype}</recordtype>{corners}<datatype>"
            f"{datatype}</datatype><precision>F</precision><colors>3</colors><spins>4</spins>"
            f"<typesize>{typesize}</typesize><datacount>{datacount}</datacount>"
            "</scidacRecord>").encode() + b"\0"


class Set:
    """fields: [(site_bytes, data)], or (None, data) for a global one. parts: ranks of the sites of
    each volume; numbers: of the volumes. A test puts errors into `parts`, `lists` (the site lists
    of the volumes) or attributes."""

    def __init__(self, dims, fields, parts, volfmt=2, numbers=None, list_format=">I", ildg=None):
        self.dims, self.fields, self.parts, self.volfmt = dims, fields, parts, volfmt
        self.numbers = numbers or list(range(len(parts)))
        self.list_format, self.ildg = list_format, ildg
        self.lists = [list(part) for part in parts]
        self.master = 0
        self.sums = {}  # {field: checksums to write instead of the right ones}
        self.boxes = {}  # {field: its corners}, if it covers a part of the lattice

    def sites(self, volume, site_bytes, data, box=None):
        inside = box and set(scidac.box_ranks(self.dims, *box))
        return b"".join(data[rank * site_bytes:(rank + 1) * site_bytes]
                        for rank in self.parts[volume] if not box or rank in inside)

    def sitelist(self, volume):
        return b"".join(struct.pack(self.list_format, rank) for rank in self.lists[volume])

    def record(self, number, binary):
        """Returns a message of the master volume, and of the joined container."""
        site_bytes, data = self.fields[number]
        sums = self.sums.get(number) or checksum(data, site_bytes or len(data))
        box = self.boxes.get(number)
        private = private_record(site_bytes or len(data), box=box,
                                 recordtype=2 if box else int(site_bytes is None))
        if site_bytes in (288, 576) and self.ildg:
            private = private_record(site_bytes // 4, 4, datatype="QDP_F3_ColorMatrix")
        kind = "ildg-binary-data" if self.ildg else "scidac-binary-data"
        return [("scidac-private-record-xml", private), ("scidac-record-xml", b"user's\0"),
                *([("ildg-format", self.ildg)] if self.ildg else []),
                (kind, binary), ("scidac-checksum", checksum_xml(sums))]

    def joined(self, only=None):
        """Returns the set as one container; only: the numbers of the fields to include."""
        return container([[private_file(self.dims),
                           ("scidac-file-xml", b"file\0")]]
                         + [self.record(i, data) for i, (_, data) in enumerate(self.fields)
                            if only is None or i in only])

    def volume(self, volume):
        if volume == self.master:
            return container(
                [[private_file(self.dims, self.volfmt),
                  ("scidac-sitelist", self.sitelist(volume)), ("scidac-file-xml", b"file\0")]]
                + [self.record(i, data if size is None else self.field_part(volume, i))
                   for i, (size, data) in enumerate(self.fields)])
        kind = "ildg-binary-data" if self.ildg else "scidac-binary-data"
        return container([[("scidac-sitelist", self.sitelist(volume))]]
                         + [[(kind, self.field_part(volume, i))]
                            for i, (size, _) in enumerate(self.fields) if size is not None])

    def field_part(self, volume, number):
        box = self.boxes.get(number)
        return self.sites(volume, *self.fields[number], *([box] if box else []))

    def path(self, directory, volume, name="prop"):
        number = self.numbers[volume]
        if self.volfmt == 3:
            return os.path.join(directory, f"vol{number:04d}", name)
        return os.path.join(directory, f"{name}.vol{number:04d}")

    def write(self, directory, name="prop"):
        """Writes all volumes; returns the path of the first one."""
        for volume in range(len(self.parts)):
            path = self.path(directory, volume, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(self.volume(volume))
        return self.path(directory, 0, name)


def blocks(dims, grid):
    """Returns the ranks of the sites of each block of a lattice, ascending."""
    size = [extent // n for extent, n in zip(dims, grid)]
    parts = {}
    total = 1
    for extent in dims:
        total *= extent
    for rank in range(total):
        rest, key = rank, []
        for extent, width in zip(dims, size):
            key.append(rest % extent // width)
            rest //= extent
        parts.setdefault(tuple(key), []).append(rank)
    return [parts[key] for key in sorted(parts)]
