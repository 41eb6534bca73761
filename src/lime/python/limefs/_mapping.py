"""Find the bytes of a record in a file, and read them or map them as an array."""

import errno
import os
from typing import NamedTuple, Optional

import numpy

from ._program import Error


class Place(NamedTuple):
    """Position of the bytes of one record, in a container or a file of a mount."""

    file: str
    offset: int
    bytes: int
    stamp: Optional[tuple]  # identity of the file when listed; None: it had changed already


def stamp_of(status):
    """Returns values that differ after a file is changed or replaced."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def mounted_places(directory, records):
    """Returns the Place of each record that `lime ls` lists in a directory of a mount, by
    ordinal. Call it before `lime info`: otherwise a container that another program has replaced
    in between would be read with the description of the old one."""
    places = {}
    for info in records:
        path, length = os.path.join(directory, info["name"]), info["bytes"]
        places[info["ordinal"]] = Place(path, 0, length, _stamp_in_mount(path, length))
    return places


def _stamp_in_mount(path, length):
    try:
        status = os.stat(path)
    except OSError:
        return None  # opening the file will report the error
    return stamp_of(status) if status.st_size == length else None


def _open_place(place):
    """Opens the file and checks that it has not changed since it was listed."""
    try:
        file = open(place.file, "rb")
    except OSError as error:
        raise Error(f"{place.file}: open: {error.strerror}") from error
    status = os.fstat(file.fileno())
    if stamp_of(status) != place.stamp or status.st_size < place.offset + place.bytes:
        file.close()
        raise Error(f"{place.file}: changed since it was listed; open it again")
    return file


def map_array(place, shape, dtype):
    """Returns a read-only memory map without reading data."""
    with _open_place(place) as file:
        try:
            return numpy.memmap(file, dtype=dtype, mode="r", offset=place.offset, shape=shape)
        except (OSError, ValueError) as error:
            why = "not possible in a mount with -o direct_io; mount it without this option" \
                if getattr(error, "errno", 0) == errno.ENODEV else error
            raise Error(f"{place.file}: map: {why}") from error


def read(place):
    """Returns all bytes of the record."""
    with _open_place(place) as file:
        try:
            file.seek(place.offset)
            data = file.read(place.bytes)
        except OSError as error:
            raise Error(f"{place.file}: read: {error.strerror}") from error
    if len(data) != place.bytes:
        raise Error(f"{place.file}: changed since it was listed; open it again")
    return data
