"""Subscripts of arrays with numpy's rules."""

import operator

import numpy


def normalize(key, shape):
    """Returns one subscript for each axis: an int, a slice, or an array of numbers, counted from 0
    and inside the axis; None for each new axis. '...' remains where it stands for no axis:
    numpy treats arrays on both sides of it as apart."""
    key = [_convert(one) for one in (key if isinstance(key, tuple) else (key,))]
    out, axis = [], 0
    for one in _expand(key, len(shape)):
        extents = shape[axis:axis + _axis_count(one)]
        if _is_mask(one):
            out += _mask_to_arrays(one, extents, axis)
        elif isinstance(one, int) or is_array(one):
            out.append(_check_range(one, *extents, axis))
        else:
            out.append(one)
        axis += len(extents)
    return out


def is_array(one):
    return isinstance(one, numpy.ndarray)


def has_arrays(key):
    return any(is_array(one) for one in key)


def is_whole(one):
    """Returns true if the subscript selects its whole axis unchanged."""
    return one is Ellipsis or isinstance(one, slice) and one == slice(None)


def array_positions(key):
    """Returns the positions of arrays of numbers, with which numpy also counts ints."""
    return [i for i, one in enumerate(key) if is_array(one) or isinstance(one, int)]


def are_apart(key):
    """Returns true if other subscripts are between the arrays: their axes then come first."""
    at = array_positions(key)
    return at[-1] - at[0] >= len(at)


def first_array_axis(key):
    """Returns the axis of the result that is the first one of the arrays."""
    if are_apart(key):
        return 0
    return sum(one is not Ellipsis for one in key[:array_positions(key)[0]])


# ---- conversion of any subscript ----


def _convert(one):
    """Returns the subscript as None, '...', slice, int or array."""
    if one is None or one is Ellipsis or isinstance(one, slice):
        return one
    if not isinstance(one, (bool, numpy.bool_)):
        try:
            return operator.index(one)
        except TypeError:
            pass
    return _to_array(one)


def _to_array(one):
    try:
        array = numpy.asarray(one)
    except ValueError as error:  # lists of several lengths
        raise IndexError(f"subscript {one!r}: {error}") from error
    if array.size == 0 and not is_array(one):
        array = array.astype(numpy.intp)
    if array.ndim == 0 or array.dtype.kind not in "biu":
        raise IndexError(f"subscript {one!r}: not a number, a slice or an array of numbers or "
                         "booleans")
    return array


def _is_mask(one):
    return is_array(one) and one.dtype == bool


def _axis_count(one):
    """Returns the number of axes that the subscript selects from."""
    return 0 if one is None or one is Ellipsis else one.ndim if _is_mask(one) else 1


def _expand(key, ndim):
    """Adds a slice for each axis of '...', or for the last axes."""
    dots = [i for i, one in enumerate(key) if one is Ellipsis]
    missing = ndim - sum(_axis_count(one) for one in key)
    if len(dots) > 1:
        raise IndexError("more than one '...'")
    if missing < 0:
        raise IndexError(f"{ndim - missing} subscripts for {ndim} dimensions")
    rest = [slice(None)] * missing
    if not dots:
        return key + rest
    before = key[:dots[0]]
    return before + (rest or [Ellipsis] * bool(before)) + key[dots[0] + 1:]


def _mask_to_arrays(mask, extents, axis):
    """Converts booleans to one array of numbers for each of their axes."""
    if mask.shape != extents:
        raise IndexError(f"axis {axis}: booleans of shape {mask.shape} for {extents}")
    return mask.nonzero()


def _check_range(one, extent, axis):
    outside = [i for i in ([one] if isinstance(one, int) else [one.min(), one.max()]
                           if one.size else []) if not -extent <= i < extent]
    if outside:
        raise IndexError(f"axis {axis}: subscript {outside[0]} outside of {extent}")
    if isinstance(one, int):
        return one % extent
    numbers = one.astype(numpy.intp)
    return numpy.where(numbers < 0, numbers + extent, numbers)
