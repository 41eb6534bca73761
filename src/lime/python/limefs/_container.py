"""A container with its records and fields."""

import os
from typing import NamedTuple, Optional

import numpy

from ._mapping import Place, map_array, mounted_places, read, stamp_of
from ._program import Error, NotFound, query


class Array(NamedTuple):
    """The numpy array that the data of a field form."""

    shape: tuple       # the lattice first, t slowest; then the array that one site holds
    lattice_dims: int  # number of dimensions that belong to the lattice
    dtype: numpy.dtype
    offset: int        # offset of the data in the container


class Field(NamedTuple):
    """Binary data of a container with their description; None: unknown."""

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
    checksum: Optional[tuple]  # (suma, sumb) as stored in the container; not verified
    array: Optional[Array]     # None: the length contradicts the description
    told: dict                 # the object that `lime info --json` prints for the field


def make_field(info):
    """Returns a Field for an object that `lime info --json` prints."""
    if "array" not in info:
        raise Error("lime is older than this package: 'lime info --json' prints no array")
    layout, checksum = info["array"], info["checksum"]
    array = layout and Array(tuple(layout["shape"]), layout["lattice_dims"],
                             numpy.dtype(layout["dtype"]), layout["offset"])
    return Field(info["ordinal"], info["message"], info["type"], info["kind"], info["name"],
                 info["lattice"] and tuple(info["lattice"]), info["precision"], info["sites"],
                 info["site_bytes"], info["bytes"],
                 checksum and (int(checksum["suma"], 16), int(checksum["sumb"], 16)), array, info)


def no_array_error(path, field):
    return Error(f"{path}: record {field.ordinal}: {field.type}: its lattice is unknown, or does "
                 f"not match its {field.bytes} bytes; see 'lime check'")


def attributes(path):
    """Returns the attributes user.lime.* of a mounted record or container, without this prefix."""
    prefix = "user.lime."
    try:
        names = [name for name in os.listxattr(path) if name.startswith(prefix)]
        return {name[len(prefix):]: os.getxattr(path, name).decode(errors="replace")
                for name in names}
    except AttributeError:  # only Linux has mounts and os.listxattr()
        return {}
    except OSError as error:
        raise Error(f"{os.fspath(path)}: read attributes: {error.strerror}") from error


class Record:
    """A record, as `lime ls` lists it: ordinal, message, record (number in the message), type,
    name (of its file in a mount), mb, me, offset (of the data in the container), bytes."""

    def __init__(self, container, info):
        self.container = container
        self.ordinal = info["ordinal"]
        self.message = info["message"]
        self.record = info["record"]
        self.type = info["type"]
        self.name = info["name"]
        self.mb = info["mb"]
        self.me = info["me"]
        self.offset = info["data_offset"]
        self.bytes = info["bytes"]

    def __repr__(self):
        return f"<limefs.Record {self.name} of {self.container.path!r}, {self.bytes} bytes>"

    @property
    def place(self):
        return self.container._place(self)

    @property
    def attributes(self):
        """user.lime.* in a mount: {"checksum": "good", ...}; empty outside of mounts."""
        return attributes(self.place.file)

    @property
    def field(self):
        """The Field of binary data; None for other records."""
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
            return self.container._load_export(self, face)
        field = self.field
        if field is None:
            raise NotFound(f"{self.container.path}: record {self.ordinal}: {self.type}: not "
                           "lattice data")
        if field.array is None:
            raise no_array_error(self.container.path, field)
        return map_array(self.place, field.array.shape, field.array.dtype)


class Container:
    """A container, from limefs.open()."""

    def __init__(self, path):
        self.path = os.fspath(path)
        try:
            stamp = stamp_of(os.stat(self.path))
        except (OSError, ValueError):
            stamp = None  # `lime ls` reports the error
        listing = query("ls", self.path)
        #: True for a directory of a mount.
        self.mounted = os.path.isdir(self.path)
        self._stamp = stamp
        self._places = mounted_places(self.path, listing["records"]) if self.mounted else {}
        self.records = [Record(self, info) for info in listing["records"]]
        #: Why the list of records ends early; None if it does not.
        self.fault = listing["fault"] and listing["fault"]["message"]
        self._info = None
        self._fields = None

    def __repr__(self):
        what = ", ".join(f"{field.name or field.type} {field.array.shape}"
                         for field in self.fields if field.array)
        return (f"<limefs.Container {self.path!r}: {len(self.records)} records; "
                f"{what or 'no lattice data'}>")

    def _place(self, record):
        if self.mounted:
            return self._places[record.ordinal]
        return Place(self.path, record.offset, record.bytes, self._stamp)

    def _get_info(self):
        if self._info is None:
            self._info = query("info", self.path)
        return self._info

    # ---- contents ----

    @property
    def fields(self):
        """The binary data that `lime info` describes: a list of Field."""
        if self._fields is None:
            self._fields = [make_field(info) for info in self._get_info()["fields"]]
        return self._fields

    @property
    def _field_by_ordinal(self):
        return {field.ordinal: field for field in self.fields}

    @property
    def status(self):
        """The verdict on structure and metadata, "good" or "bad"; check() reads data, too."""
        return self._get_info()["status"]

    @property
    def lfn(self):
        """The logical file name, or None."""
        return self._get_info()["lfn"]

    @property
    def facts(self):
        """Values that programs have stored about ensemble, inverter and so on, by record type:
        conf.facts["xlf-info"]["plaquette"]. Only the first record of each type is used."""
        out = {}
        for info in self._get_info()["info"]:
            out.setdefault(info["type"], info["facts"])
        return out

    @property
    def attributes(self):
        """user.lime.* of the directory in a mount; empty outside of mounts."""
        return attributes(self.path) if self.mounted else {}

    def find(self, key):
        """Returns a list of all records with this type, ordinal or name ("003-ildg-format")."""
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
            raise NotFound(f"{self.path}: {len(found)} {what}; choose one by its ordinal "
                           f"({ordinals}{', ...' if len(found) > 8 else ''})")
        return found[0]

    # ---- data ----

    def text(self, key):
        """A record's data as text, without NULs at the end."""
        return self[key].text()

    def array(self, key=None, face=None):
        """A read-only memory map of a field: of the record `key` (type, name or ordinal), or of
        the only field. The lattice's dimensions come first, t slowest; a gauge configuration
        has (T, Z, Y, X, mu, 3, 3), mu = x, y, z, t. Numbers are big-endian, as stored.

        face: an export format that a mount computes on reading: "le" has this machine's byte
        order, "f4" single precision; see limefs(1)."""
        if key is not None:
            return self[key].array(face)
        found = [self[field.ordinal] for field in self.fields]
        if not found:
            raise self._no_data_error()
        return self._the_only(found, "fields").array(face)

    def arrays(self, type=None):
        """All fields (of that type) as one Stack, for example the columns of a propagator."""
        from ._stack import Stack, make_slots
        slots = make_slots(self.path, self.fields, type, self._place_by_ordinal)
        if not slots:
            raise self._no_data_error(type)
        return Stack(slots)

    def _no_data_error(self, type=None):
        """The data may be after the place where the list of records ends early."""
        return NotFound(f"{self.path}: no lattice data" + (f" of type {type}" if type else "") +
                        (f"; {self.fault}" if self.fault else ""))

    def _place_by_ordinal(self, ordinal):
        return self._place(self[ordinal])

    def _load_export(self, record, face):
        if not self.mounted:
            raise Error(f"{self.path}: face {face}: only available in a mount; mount the container "
                        "with limefs")
        path = os.path.join(self.path, f"{record.name}.{face}.npy")
        try:
            return numpy.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError as error:
            raise NotFound(f"{path}: the mount has no such file for this record") from error
        except (OSError, ValueError) as error:
            raise Error(f"{path}: {error}") from error


def open(path):
    """Opens a LIME file, or the directory that limefs shows for one, as a Container."""
    return Container(path)
