"""Where the bytes of a record are, and arrays of them."""

import errno
import os
from typing import NamedTuple, Optional

import numpy

from ._program import Error


class Place(NamedTuple):
    """The bytes of one record: in a container, or a file of a mount."""

    file: str
    offset: int
    bytes: int
    stamp: Optional[tuple]  # of that file when it was listed; None: it was another already


def stamp_of(status):
    """What is another if a file was changed or replaced."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def places_in_mount(folder, records):
    """The Place of each record, by its ordinal, of those that `lime ls` lists in a folder of a
    mount. To be asked for before `lime info` tells what they are: else a container that has
    come in between would be read with the meaning of the one before."""
    places = {}
    for one in records:
        path = os.path.join(folder, one["name"])
        places[one["ordinal"]] = Place(path, 0, one["bytes"], _stamp_in_mount(path, one["bytes"]))
    return places


def _stamp_in_mount(path, length):
    try:
        status = os.stat(path)
    except OSError:
        return None  # who opens it gets the words
    return stamp_of(status) if status.st_size == length else None


def _opened(place):
    """The file, if it is still the one that was listed."""
    try:
        file = open(place.file, "rb")
    except OSError as error:
        raise Error(f"{place.file}: open: {error.strerror}") from error
    status = os.fstat(file.fileno())
    if stamp_of(status) != place.stamp or status.st_size < place.offset + place.bytes:
        file.close()
        raise Error(f"{place.file}: it has changed since it was listed; open it again")
    return file


def mapped(place, shape, dtype):
    """A read-only memory map; nothing is read."""
    with _opened(place) as file:
        try:
            return numpy.memmap(file, dtype=dtype, mode="r", offset=place.offset, shape=shape)
        except (OSError, ValueError) as error:
            why = "not possible in a mount with -o direct_io; mount it without" \
                if getattr(error, "errno", 0) == errno.ENODEV else error
            raise Error(f"{place.file}: map: {why}") from error


def read(place):
    """All bytes of the record."""
    with _opened(place) as file:
        try:
            file.seek(place.offset)
            data = file.read(place.bytes)
        except OSError as error:
            raise Error(f"{place.file}: read: {error.strerror}") from error
    if len(data) != place.bytes:
        raise Error(f"{place.file}: it has changed since it was listed; open it again")
    return data
