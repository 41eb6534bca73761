"""Fields of many containers as one array that reads only the requested parts."""

import fnmatch
import os
import re
import stat
import warnings
from typing import NamedTuple

import numpy

from ._container import make_field, no_array_error
from ._mapping import Place, map_array, mounted_places, stamp_of
from ._program import Error, NotFound, is_failure, is_foreign, query, query_all
from ._subscript import (are_apart, array_positions, first_array_axis, has_arrays, is_array,
                         is_whole, normalize)


class Slot(NamedTuple):
    """One field of a stack."""

    path: str     # path of its container
    ordinal: int  # ordinal of its record
    place: Place
    shape: tuple
    dtype: numpy.dtype

    def __str__(self):
        return f"{self.path}, record {self.ordinal}"


def make_slots(path, fields, type, find_place):
    """Returns a Slot for each of a container's fields (of that type)."""
    slots = []
    for field in fields:
        if type is not None and field.type != type:
            continue
        if field.array is None:
            raise no_array_error(path, field)
        slots.append(Slot(path, field.ordinal, find_place(field.ordinal), field.array.shape,
                          field.array.dtype))
    return slots


class Stack:
    """Fields of one shape, one after another: shape (N, T, Z, Y, X, ...).

    stack[i] is the memory map of one field; stack[i:j], stack[[3, 5]] and stack[mask] are stacks
    again. Further subscripts, as in stack[:, 0], read the part into memory; numpy.asarray(stack)
    reads all. Subscripts have the same meaning as in numpy: stack[[3, 5], [0, 1]] takes parts of
    two fields. Iteration maps one field at a time."""

    def __init__(self, slots):
        slots = list(slots)
        for slot in slots:
            _check_slot(slot, slots[0])
        if not slots:
            raise NotFound("nothing to stack")
        self._setup(slots, slots[0].shape, slots[0].dtype)

    def _setup(self, slots, shape, dtype):
        self.slots = slots
        self.dtype = dtype
        self.shape = (len(slots), *shape)

    def _select(self, numbers):
        selected = object.__new__(Stack)
        selected._setup([self.slots[i] for i in numbers], self.shape[1:], self.dtype)
        return selected

    # ---- the interface of an array ----

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
        """The paths of the containers, in the order of the stack."""
        return [slot.path for slot in self.slots]

    def __len__(self):
        return len(self.slots)

    def __repr__(self):
        return f"<limefs.Stack {self.shape} of {self.dtype.str}>"

    def __iter__(self):
        return (self._map(i) for i in range(len(self)))

    def _map(self, i):
        slot = self.slots[i]
        return map_array(slot.place, slot.shape, slot.dtype)

    def __getitem__(self, key):
        first, *rest = normalize(key, self.shape)
        rest = tuple(rest)
        if first is None:
            raise IndexError("a new axis before that of the fields is not supported")
        if isinstance(first, int) and not has_arrays(rest):
            return self._map(first)[rest]
        whole = all(is_whole(one) for one in rest)
        if isinstance(first, slice):
            numbers = range(len(self))[first]
            return self._select(numbers) if whole else self._read_parts(numbers, rest)
        numbers = numpy.asarray(first)
        if whole and numbers.ndim == 1:
            return self._select(numbers)
        return self._read_by_arrays(numbers, rest)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a stack cannot become an array without a copy")
        return self._read_parts(range(len(self)), (...,), dtype)

    def _shape_model(self):
        """Returns an array with the shape of a field but one element, to compute shapes of parts
        without reading data."""
        return numpy.broadcast_to(numpy.empty((), self.dtype), self.shape[1:])

    def _read_parts(self, numbers, rest, dtype=None):
        """Reads the same part of each of these fields."""
        shape = self._shape_model()[rest].shape
        arrays = [one for one in rest if is_array(one)]
        axis = numpy.broadcast(*arrays).ndim if arrays and are_apart(rest) else 0
        out = numpy.empty((*shape[:axis], len(numbers), *shape[axis:]),
                          self.dtype if dtype is None else dtype)
        parts = numpy.moveaxis(out, axis, 0)
        for at, i in enumerate(numbers):
            parts[at] = self._map(i)[rest]
        return out

    def _read_by_arrays(self, first, rest):
        """Reads by arrays of subscripts: each element of the arrays in `rest` belongs to the field
        whose number `first` has at the same position. As in numpy, the axes of the arrays come
        before all others, since the arrays are the first subscripts or are apart."""
        at = array_positions(rest) if has_arrays(rest) else []
        first, *others = _broadcast([first, *(rest[i] for i in at)])

        def part(field, which):
            key = list(rest)
            for i, numbers in zip(at, others):
                key[i] = numbers.reshape(-1)[which]
            found = field[tuple(key)]
            return numpy.moveaxis(found, first_array_axis(key), 0) if at else found

        shape = part(self._shape_model(), []).shape[bool(at):]
        out = numpy.empty((first.size, *shape), self.dtype)
        for i, which in _group_equal(first.reshape(-1)):
            out[which] = part(self._map(i), which)
        return out.reshape(*first.shape, *shape)


def _broadcast(arrays):
    try:
        return numpy.broadcast_arrays(*arrays)
    except ValueError as error:
        raise IndexError(f"subscripts: {error}") from error


def _group_equal(numbers):
    """Yields each different number with the positions where it occurs."""
    order = numpy.argsort(numbers, kind="stable")
    ends = numpy.flatnonzero(numpy.diff(numbers[order])) + 1
    return ((int(numbers[which[0]]), which) for which in numpy.split(order, ends) if which.size)


# ---- many containers ----


def _natural_key(path):
    """Returns a sort key that puts conf.9 before conf.10, in the order of lime's commands
    (text.h): by directory; runs of digits compare as numbers, other bytes by value, and
    names that differ only in leading zeros by all bytes."""
    return [([(ord("0"), int(token)) if token.isdigit() else (ord(token), 0)
              for token in re.findall(rb"[0-9]+|.", name, re.DOTALL)], name)
            for name in os.fsencode(path).split(b"/")]


def _is_mounted_container(path):
    try:
        return bool(os.getxattr(path, "user.lime.records"))
    except (AttributeError, OSError):
        return False


# Names of temporary files and locks, which lime check -r skips, too.
_WORKING_FILE = re.compile(r"\..*(\.lime-tmp-.*|\.limefs-new.*|\.limefs-stage|\.part|\.lock)",
                           re.DOTALL)


def _find_files(root, pattern):
    """Finds files, and directories that a mount shows for containers."""
    def raise_error(error):
        raise Error(f"{error.filename}: read: {error.strerror}") from error

    if _is_mounted_container(root) or os.path.isfile(root):
        return [root]
    found = []
    for parent, dirs, names in os.walk(root, onerror=raise_error):
        containers = [name for name in dirs if _is_mounted_container(os.path.join(parent, name))]
        dirs[:] = [name for name in dirs if name not in containers]
        found += [os.path.join(parent, name) for name in containers + names
                  if fnmatch.fnmatchcase(name, pattern) and not _WORKING_FILE.fullmatch(name)]
    return sorted(found, key=_natural_key)


def _stamp_of_path(path, strict):
    """Returns the stamp of a file, None for a directory, or (not `strict`) False for others."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise Error(f"{path}: open: {error.strerror}") from error
    if stat.S_ISREG(status.st_mode):
        return stamp_of(status)
    if strict and not stat.S_ISDIR(status.st_mode):
        raise Error(f"{path}: not a file")
    return None if stat.S_ISDIR(status.st_mode) else False


def _container_slots(path, info, stamp, listed, type, strict):
    """Returns the slots of one container, from what `lime info` prints."""
    if is_failure(info) or is_foreign(info, path):
        if strict or not is_foreign(info, path):
            query("info", path)  # raises, with the message for this file alone
            raise Error(f"{path}: changed while it was listed")
        return []
    if info["fault"]:
        more = "" if info["size"] == 0 else "; see 'lime repair -n'"
        raise Error(f"{path}: {info['fault']['message']}{more}")
    find_place = _place_finder(path, info, stamp, listed)
    found = make_slots(path, [make_field(one) for one in info["fields"]], type, find_place)
    if strict and not found:
        raise NotFound(f"{path}: no lattice data" + (f" of type {type}" if type else ""))
    return found


def _attempt(skip_bad, default, function, *args):
    """Returns function(*args). With skip_bad, an Error becomes a warning, and the result default."""
    try:
        return function(*args)
    except Error as error:
        if not skip_bad:
            raise
        warnings.warn(f"left out: {error}", stacklevel=5)
        return default


def _check_slot(slot, first):
    if (slot.shape, slot.dtype) != (first.shape, first.dtype):
        raise Error(f"{slot}: shape {slot.shape} of {slot.dtype.str}, but {first} has "
                    f"{first.shape} of {first.dtype.str}")
    return [slot]


def _read_slots(paths, type, strict, skip_bad=False):
    """Returns the slots of all containers. Other files are an error only if `strict`; skip_bad
    leaves out files with an error, and those whose fields have not the shape of the first."""
    stamps = {path: _attempt(skip_bad, False, _stamp_of_path, path, strict) for path in paths}
    paths = [path for path in paths if stamps[path] is not False]
    dirs = [path for path in paths if stamps[path] is None]
    listed = {path: mounted_places(path, listing.get("records", ()))
              for path, listing in zip(dirs, query_all("ls", dirs))}
    slots = []
    for path, info in zip(paths, query_all("info", paths)):
        slots += _attempt(skip_bad, [], _container_slots, path, info, stamps[path],
                          listed.get(path), type, strict)
    if skip_bad:
        slots = [one for slot in slots
                 for one in _attempt(True, [], _check_slot, slot, slots[0])]
    return slots


def _place_finder(path, info, stamp, listed):
    """Returns a function that returns the Place of the field with an ordinal."""
    fields = {one["ordinal"]: one for one in info["fields"]}

    def find_place(ordinal):
        field = fields[ordinal]
        if stamp is not None:
            return Place(path, field["array"]["offset"], field["bytes"], stamp)
        if ordinal not in listed or listed[ordinal].bytes != field["bytes"]:
            raise Error(f"{path}: changed while it was listed")
        return listed[ordinal]

    return find_place


def stack(paths, type=None):
    """Returns a Stack of the fields (of that record type) of these containers, in their order."""
    return Stack(_read_slots([os.fspath(path) for path in paths], type, True))


def tree(directory, type=None, pattern="*", skip_bad=False):
    """Returns a Stack of the fields (of that record type) of all containers in a directory, or in
    a mount of one, ordered by name, conf.9 before conf.10. Other files, and containers without
    such a field, are skipped; a damaged container and an empty file are errors.

    pattern: a shell pattern for the names of files, such as "conf.0[12]*".
    skip_bad: a file with an error, or whose field has another shape than the first, is left out
    with a warning."""
    root = os.fspath(directory)
    if not os.path.exists(root):
        raise Error(f"{root}: no such file or directory")
    slots = _read_slots(_find_files(root, pattern), type, False, skip_bad)
    if not slots:
        raise NotFound(f"{root}: no container in it has lattice data"
                       + (f" of type {type}" if type else ""))
    return Stack(slots)
