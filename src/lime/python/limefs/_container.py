"""One container: its records and fields."""

import os
from typing import NamedTuple, Optional

import numpy

from ._mapping import Place, mapped, places_in_mount, read, stamp_of
from ._program import Error, NotFound, tell


class Array(NamedTuple):
    """How numpy has to see the data of a field."""

    shape: tuple       # the lattice first, t slowest; then what a site has
    lattice_dims: int  # how many of the dimensions are the lattice's
    dtype: numpy.dtype
    offset: int        # of the data in the container


class Field(NamedTuple):
    """Binary data that something in the container describes; None: not known."""

    ordinal: int
    message: int
    type: str
    kind: str               # gauge, propagator, source, field, global, unknown
    name: Optional[str]     # su3gauge, diracFermion ...
    lattice: Optional[tuple]  # extents, x first
    precision: Optional[int]
    sites: Optional[int]
    site_bytes: Optional[int]
    bytes: int
    checksum: Optional[tuple]  # (suma, sumb), as the container has them; not verified
    array: Optional[Array]     # None: it is none, as its length contradicts its description
    told: dict                 # all that `lime info --json` prints of it


def field_of(told):
    """A Field from what `lime info --json` prints."""
    if "array" not in told:
        raise Error("lime is older than this package: 'lime info --json' prints no array")
    seen, checksum = told["array"], told["checksum"]
    array = seen and Array(tuple(seen["shape"]), seen["lattice_dims"],
                           numpy.dtype(seen["dtype"]), seen["offset"])
    return Field(told["ordinal"], told["message"], told["type"], told["kind"], told["name"],
                 told["lattice"] and tuple(told["lattice"]), told["precision"], told["sites"],
                 told["site_bytes"], told["bytes"],
                 checksum and (int(checksum["suma"], 16), int(checksum["sumb"], 16)), array, told)


def attributes(path):
    """What a mount tells of a record or container in extended attributes, by the part of their
    names after "user.lime."; empty below the mount."""
    prefix = "user.lime."
    try:
        names = [name for name in os.listxattr(path) if name.startswith(prefix)]
        return {name[len(prefix):]: os.getxattr(path, name).decode(errors="replace")
                for name in names}
    except AttributeError:  # not Linux: no mount either
        return {}
    except OSError as error:
        raise Error(f"{os.fspath(path)}: read attributes: {error.strerror}") from error


class Record:
    """A record, as `lime ls` lists it: ordinal, message, record (both in the message), type,
    name (of its file in a mount), mb, me, offset (of the data in the container), bytes."""

    def __init__(self, container, told):
        self.container = container
        self.ordinal = told["ordinal"]
        self.message = told["message"]
        self.record = told["record"]
        self.type = told["type"]
        self.name = told["name"]
        self.mb = told["mb"]
        self.me = told["me"]
        self.offset = told["data_offset"]
        self.bytes = told["bytes"]

    def __repr__(self):
        return f"<limefs.Record {self.name} of {self.container.path!r}, {self.bytes} bytes>"

    @property
    def place(self):
        return self.container._place(self)

    @property
    def attributes(self):
        """user.lime.* in a mount: {"checksum": "good", ...}; empty below it."""
        return attributes(self.place.file)

    @property
    def field(self):
        """Of binary data, the Field; None of others."""
        return self.container._field_by_ordinal.get(self.ordinal)

    def read(self):
        """The data."""
        return read(self.place)

    def text(self):
        """The data as text, without NULs at the end."""
        return self.read().rstrip(b"\0").decode("utf-8", "replace")

    def array(self, face=None):
        """A read-only memory map. See Container.array()."""
        if face is not None:
            return self.container._face(self, face)
        field = self.field
        if field is None:
            raise NotFound(f"{self.container.path}: record {self.ordinal}: {self.type}: not "
                           "lattice data")
        if field.array is None:
            raise Error(f"{self.container.path}: record {self.ordinal}: {self.type}: nothing "
                        f"tells its lattice, or another length than its {self.bytes} bytes; see "
                        "'lime check'")
        return mapped(self.place, field.array.shape, field.array.dtype)


class Container:
    """A container, from limefs.open()."""

    def __init__(self, path):
        self.path = os.fspath(path)
        try:
            stamp = stamp_of(os.stat(self.path))
        except (OSError, ValueError):
            stamp = None  # lime has the words for it
        told = tell("ls", self.path)
        #: Is it a folder of a mount?
        self.mounted = os.path.isdir(self.path)
        self._stamp = stamp
        self._mounted_places = places_in_mount(self.path, told["records"]) if self.mounted else {}
        self.records = [Record(self, one) for one in told["records"]]
        #: Why the list of records ends early; None if it does not.
        self.fault = told["fault"] and told["fault"]["message"]
        self._info = None
        self._fields = None

    def __repr__(self):
        what = ", ".join(f"{field.name or field.type} {field.array.shape}"
                         for field in self.fields if field.array)
        return (f"<limefs.Container {self.path!r}: {len(self.records)} records; "
                f"{what or 'no lattice data'}>")

    def _place(self, record):
        if self.mounted:
            return self._mounted_places[record.ordinal]
        return Place(self.path, record.offset, record.bytes, self._stamp)

    def _told(self):
        if self._info is None:
            self._info = tell("info", self.path)
        return self._info

    # ---- what is in it ----

    @property
    def fields(self):
        """The binary data, as `lime info` tells them: a list of Field."""
        if self._fields is None:
            self._fields = [field_of(one) for one in self._told()["fields"]]
        return self._fields

    @property
    def _field_by_ordinal(self):
        return {field.ordinal: field for field in self.fields}

    @property
    def verdict(self):
        """On structure and metadata: "good" or "bad". limefs.check() examines the data, too."""
        return self._told()["verdict"]

    @property
    def lfn(self):
        """The logical file name, or None."""
        return self._told()["lfn"]

    @property
    def facts(self):
        """What writers say of ensemble, inverter and so on, by the type of the record:
        conf.facts["xlf-info"]["plaquette"]. The first record of a type counts."""
        out = {}
        for one in self._told()["info"]:
            out.setdefault(one["type"], one["facts"])
        return out

    @property
    def attributes(self):
        """user.lime.* of the folder in a mount; empty below it."""
        return attributes(self.path) if self.mounted else {}

    def find(self, key):
        """All records of a type, or the one of an ordinal or a name as "003-ildg-format"."""
        if not isinstance(key, str):
            return [record for record in self.records if record.ordinal == key]
        return [record for record in self.records if key in (record.type, record.name)]

    def __getitem__(self, key):
        """The record of this type, name ("003-ildg-format") or ordinal (counted from 1)."""
        found = self.find(key)
        if not found:
            raise NotFound(f"{self.path}: no record {key}")
        return self._the_only(found, f"records of type {key}")

    def __contains__(self, key):
        return bool(self.find(key))

    def __iter__(self):
        return iter(self.records)

    def __len__(self):
        return len(self.records)

    def _the_only(self, found, what):
        if len(found) > 1:
            ordinals = ", ".join(str(one.ordinal) for one in found[:8])
            raise NotFound(f"{self.path}: {len(found)} {what}: choose one by its ordinal "
                           f"({ordinals}{', ...' if len(found) > 8 else ''})")
        return found[0]

    # ---- data ----

    def text(self, key):
        """A record's data as text, without NULs at the end."""
        return self[key].text()

    def array(self, key=None, face=None):
        """A read-only memory map of a field: of the record `key` (type, name or ordinal), or of
        the only field. The lattice's dimensions come first, t slowest; a gauge configuration
        has (T, Z, Y, X, mu, 3, 3), mu = x, y, z, t. Numbers are big-endian, as they are stored.

        face: in a mount, another form of the data, computed while it is read: "le" is in this
        machine's byte order, "f4" in single precision; see limefs(1)."""
        if key is not None:
            return self[key].array(face)
        found = [self[field.ordinal] for field in self.fields]
        if not found:
            raise NotFound(f"{self.path}: no lattice data")
        return self._the_only(found, "fields").array(face)

    def arrays(self, type=None):
        """All fields (of that type) as one Stack: the columns of a propagator, say."""
        from ._stack import Stack, slots_of
        slots = slots_of(self.path, self.fields, type, self._place_by_ordinal)
        if not slots:
            raise NotFound(f"{self.path}: no lattice data" + (f" of type {type}" if type else ""))
        return Stack(slots)

    def _place_by_ordinal(self, ordinal):
        return self._place(self[ordinal])

    def _face(self, record, face):
        if not self.mounted:
            raise Error(f"{self.path}: face {face}: only a mount has faces; mount the container "
                        "with limefs")
        path = os.path.join(self.path, f"{record.name}.{face}.npy")
        try:
            return numpy.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError as error:
            raise NotFound(f"{path}: no such face of this record") from error
        except (OSError, ValueError) as error:
            raise Error(f"{path}: {error}") from error


def open(path):
    """The Container of that path: a LIME file, or the folder as which limefs shows one."""
    return Container(path)
