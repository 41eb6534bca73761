"""Fields of many containers as one array, of which only what is asked for is read."""

import fnmatch
import os
import re
import stat
from typing import NamedTuple

import numpy

from ._container import field_of
from ._mapping import Place, mapped, places_in_mount, stamp_of
from ._program import Error, NotFound, is_foreign, tell, tell_all
from ._subscript import (are_apart, chosen_by_arrays, first_of_arrays, has_arrays, is_array,
                         is_whole, plain)


class Slot(NamedTuple):
    """One field of a stack."""

    path: str     # of its container
    ordinal: int  # of its record
    place: Place
    shape: tuple
    dtype: numpy.dtype

    def __str__(self):
        return f"{self.path}, record {self.ordinal}"


def slots_of(path, fields, type, place_of):
    """Those of a container's fields (of that type) that are arrays."""
    slots = []
    for field in fields:
        if type is not None and field.type != type:
            continue
        if field.array is None:
            raise Error(f"{path}: record {field.ordinal}: {field.type}: nothing tells its "
                        f"lattice, or another length than its {field.bytes} bytes; see "
                        "'lime check'")
        slots.append(Slot(path, field.ordinal, place_of(field.ordinal), field.array.shape,
                          field.array.dtype))
    return slots


class Stack:
    """Fields of one shape, one after another: shape (N, T, Z, Y, X, ...).

    stack[i] is the memory map of one; stack[i:j], stack[[3, 5]] and stack[mask] are stacks
    again; with further subscripts, stack[:, 0], the part is read into memory, and so is all of
    it by numpy.asarray(stack). Subscripts mean what they mean to numpy: stack[[3, 5], [0, 1]] is
    of two fields. Iteration maps one field at a time."""

    def __init__(self, slots):
        slots = list(slots)
        for slot in slots[1:]:
            if (slot.shape, slot.dtype) != (slots[0].shape, slots[0].dtype):
                raise Error(f"{slot}: shape {slot.shape} of {slot.dtype.str}, but {slots[0]} has "
                            f"{slots[0].shape} of {slots[0].dtype.str}")
        if not slots:
            raise NotFound("nothing to stack")
        self._setup(slots, slots[0].shape, slots[0].dtype)

    def _setup(self, slots, shape, dtype):
        self.slots = slots
        self.dtype = dtype
        self.shape = (len(slots), *shape)

    def _chosen(self, numbers):
        chosen = object.__new__(Stack)
        chosen._setup([self.slots[i] for i in numbers], self.shape[1:], self.dtype)
        return chosen

    # ---- as arrays have it ----

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    @property
    def paths(self):
        """Of the containers, in the order of the stack."""
        return [slot.path for slot in self.slots]

    def __len__(self):
        return len(self.slots)

    def __repr__(self):
        return f"<limefs.Stack {self.shape} of {self.dtype.str}>"

    def __iter__(self):
        return (self._map(i) for i in range(len(self)))

    def _map(self, i):
        slot = self.slots[i]
        return mapped(slot.place, slot.shape, slot.dtype)

    def __getitem__(self, key):
        first, *rest = plain(key, self.shape)
        rest = tuple(rest)
        if first is None:
            raise IndexError("no new axis before that of the fields")
        if isinstance(first, int) and not has_arrays(rest):
            return self._map(first)[rest]
        whole = all(is_whole(one) for one in rest)
        if isinstance(first, slice):
            numbers = range(len(self))[first]
            return self._chosen(numbers) if whole else self._gathered(numbers, rest)
        numbers = numpy.asarray(first)
        if whole and numbers.ndim == 1:
            return self._chosen(numbers)
        return self._picked(numbers, rest)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a stack is read to become an array: it cannot be without a copy")
        return self._gathered(range(len(self)), (...,), dtype)

    def _like_one(self):
        """For shapes, without reading anything: an array of a field's shape, all one number."""
        return numpy.broadcast_to(numpy.empty((), self.dtype), self.shape[1:])

    def _gathered(self, numbers, rest, dtype=None):
        """The same part of each of these fields."""
        shape = self._like_one()[rest].shape
        arrays = [one for one in rest if is_array(one)]
        axis = numpy.broadcast(*arrays).ndim if arrays and are_apart(rest) else 0
        out = numpy.empty((*shape[:axis], len(numbers), *shape[axis:]),
                          self.dtype if dtype is None else dtype)
        of_field = numpy.moveaxis(out, axis, 0)
        for at, i in enumerate(numbers):
            of_field[at] = self._map(i)[rest]
        return out

    def _picked(self, first, rest):
        """Each element of the arrays in `rest` is of the field that `first` names in its place,
        and numpy puts their axes before all others: they are the first, or apart."""
        at = chosen_by_arrays(rest) if has_arrays(rest) else []
        first, *others = _broadcast([first, *(rest[i] for i in at)])

        def part(field, which):
            key = list(rest)
            for i, numbers in zip(at, others):
                key[i] = numbers.reshape(-1)[which]
            found = field[tuple(key)]
            return numpy.moveaxis(found, first_of_arrays(key), 0) if at else found

        shape = part(self._like_one(), []).shape[bool(at):]
        out = numpy.empty((first.size, *shape), self.dtype)
        for i, which in _places_of_each(first.reshape(-1)):
            out[which] = part(self._map(i), which)
        return out.reshape(*first.shape, *shape)


def _broadcast(arrays):
    try:
        return numpy.broadcast_arrays(*arrays)
    except ValueError as error:
        raise IndexError(f"subscripts: {error}") from error


def _places_of_each(numbers):
    """Each number once, and where it stands."""
    order = numpy.argsort(numbers, kind="stable")
    ends = numpy.flatnonzero(numpy.diff(numbers[order])) + 1
    return ((int(numbers[which[0]]), which) for which in numpy.split(order, ends) if which.size)


# ---- many containers ----


def _natural(path):
    """For sorting: conf.9 comes before conf.10. The same order as that of lime's commands
    (nameorder.h): by directory; a run of digits is a number, other bytes are themselves, and of
    names that differ in leading zeros alone the bytes decide."""
    return [([(ord("0"), int(token)) if token.isdigit() else (ord(token), 0)
              for token in re.findall(rb"[0-9]+|.", name, re.DOTALL)], name)
            for name in os.fsencode(path).split(b"/")]


def _is_mounted_container(folder):
    try:
        return bool(os.getxattr(folder, "user.lime.records"))
    except (AttributeError, OSError):
        return False


# Temporary files and locks of commands, as lime check -r skips them.
_WORKING_FILE = re.compile(r"\..*(\.lime-tmp-.*|\.limefs-new.*|\.limefs-stage|\.part|\.lock)",
                           re.DOTALL)


def _found_in(folder, pattern):
    """Files, and folders as which a mount shows containers."""
    def fail(error):
        raise Error(f"{error.filename}: read: {error.strerror}") from error

    if _is_mounted_container(folder) or os.path.isfile(folder):
        return [folder]
    found = []
    for where, folders, names in os.walk(folder, onerror=fail):
        containers = [name for name in folders if _is_mounted_container(os.path.join(where, name))]
        folders[:] = [name for name in folders if name not in containers]
        found += [os.path.join(where, name) for name in containers + names
                  if fnmatch.fnmatchcase(name, pattern) and not _WORKING_FILE.fullmatch(name)]
    return sorted(found, key=_natural)


def _slots(paths, type, strict):
    """Of all containers; what is not one is an error only if `strict`."""
    stamps = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            raise Error(f"{path}: open: {error.strerror}") from error
        if stat.S_ISREG(status.st_mode):
            stamps[path] = stamp_of(status)
        elif stat.S_ISDIR(status.st_mode):
            stamps[path] = None
        elif strict:
            raise Error(f"{path}: not a file")
    paths = [path for path in paths if path in stamps]
    folders = [path for path in paths if stamps[path] is None]
    listed = {path: places_in_mount(path, told.get("records", ()))
              for path, told in zip(folders, tell_all("ls", folders))}
    slots = []
    for path, told in zip(paths, tell_all("info", paths)):
        if "error" in told:
            if strict or not is_foreign(told):
                tell("info", path)  # raises, with the message for this file alone
                raise Error(f"{path}: it has changed while it was listed")
            continue
        if told["fault"]:
            more = "" if told["size"] == 0 else "; 'lime repair -n' tells more"
            raise Error(f"{path}: {told['fault']['message']}{more}")
        place_of = _places(path, told, stamps[path], listed.get(path))
        found = slots_of(path, [field_of(one) for one in told["fields"]], type, place_of)
        if strict and not found:
            raise NotFound(f"{path}: no lattice data" + (f" of type {type}" if type else ""))
        slots += found
    return slots


def _places(path, told, stamp, listed):
    """A function that gives the Place of the field of an ordinal."""
    fields = {one["ordinal"]: one for one in told["fields"]}

    def place_of(ordinal):
        field = fields[ordinal]
        if stamp is not None:
            return Place(path, field["array"]["offset"], field["bytes"], stamp)
        if ordinal not in listed or listed[ordinal].bytes != field["bytes"]:
            raise Error(f"{path}: it has changed while it was listed")
        return listed[ordinal]

    return place_of


def stack(paths, type=None):
    """A Stack of the fields (of that record type) of these containers, in their order."""
    return Stack(_slots([os.fspath(path) for path in paths], type, True))


def tree(folder, type=None, pattern="*"):
    """A Stack of the fields (of that record type) of all containers in a folder, or in a mount
    of one, in the order of their names, conf.9 before conf.10. Other files, and containers
    without such a field, are left out; a damaged container and an empty file are errors.

    pattern: of the names of files, as the shell has it, "conf.0[12]*"."""
    folder = os.fspath(folder)
    if not os.path.exists(folder):
        raise Error(f"{folder}: no such file or folder")
    slots = _slots(_found_in(folder, pattern), type, False)
    if not slots:
        raise NotFound(f"{folder}: no container in it has lattice data"
                       + (f" of type {type}" if type else ""))
    return Stack(slots)
