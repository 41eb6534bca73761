"""Subscripts of arrays, as numpy has them."""

import operator

import numpy


def plain(key, shape):
    """One subscript for each axis: an int, a slice, or an array of numbers, counted from 0 and
    inside of the axis; None for each new axis. '...' stays where it stands for no axis: to
    numpy, arrays on both sides of it are apart."""
    key = [_known(one) for one in (key if isinstance(key, tuple) else (key,))]
    out, axis = [], 0
    for one in _filled(key, len(shape)):
        extents = shape[axis:axis + _axes(one)]
        if _is_mask(one):
            out += _trues(one, extents, axis)
        elif isinstance(one, int) or is_array(one):
            out.append(_within(one, *extents, axis))
        else:
            out.append(one)
        axis += len(extents)
    return out


def is_array(one):
    return isinstance(one, numpy.ndarray)


def has_arrays(key):
    return any(is_array(one) for one in key)


def is_whole(one):
    """Does it take all of its axis, as it is?"""
    return one is Ellipsis or isinstance(one, slice) and one == slice(None)


def chosen_by_arrays(key):
    """Where arrays of numbers stand. Where there are any, numpy takes an int for one, too."""
    return [i for i, one in enumerate(key) if is_array(one) or isinstance(one, int)]


def are_apart(key):
    """Is something between the arrays? Their axes are the first of the result then."""
    at = chosen_by_arrays(key)
    return at[-1] - at[0] >= len(at)


def first_of_arrays(key):
    """The axis of the result that is the first of the arrays'."""
    if are_apart(key):
        return 0
    return sum(one is not Ellipsis for one in key[:chosen_by_arrays(key)[0]])


# ---- what may be given ----


def _known(one):
    """As None, '...', slice, int or array."""
    if one is None or one is Ellipsis or isinstance(one, slice):
        return one
    if not isinstance(one, (bool, numpy.bool_)):
        try:
            return operator.index(one)
        except TypeError:
            pass
    return _array(one)


def _array(one):
    try:
        array = numpy.asarray(one)
    except ValueError as error:  # lists of several lengths
        raise IndexError(f"subscript {one!r}: {error}") from error
    if array.size == 0 and not is_array(one):
        array = array.astype(numpy.intp)
    if array.ndim == 0 or array.dtype.kind not in "biu":
        raise IndexError(f"subscript {one!r}: neither a number, a slice nor an array of numbers "
                         "or truth values")
    return array


def _is_mask(one):
    return is_array(one) and one.dtype == bool


def _axes(one):
    """How many it is for."""
    return 0 if one is None or one is Ellipsis else one.ndim if _is_mask(one) else 1


def _filled(key, ndim):
    """With all axes: those of '...', and the last ones."""
    dots = [i for i, one in enumerate(key) if one is Ellipsis]
    missing = ndim - sum(_axes(one) for one in key)
    if len(dots) > 1:
        raise IndexError("more than one '...'")
    if missing < 0:
        raise IndexError(f"{ndim - missing} subscripts for {ndim} dimensions")
    rest = [slice(None)] * missing
    if not dots:
        return key + rest
    before = key[:dots[0]]
    return before + (rest or [Ellipsis] * bool(before)) + key[dots[0] + 1:]


def _trues(mask, extents, axis):
    """As numpy takes truth values: one array of numbers for each of their axes."""
    if mask.shape != extents:
        raise IndexError(f"axis {axis}: truth values of shape {mask.shape} for {extents}")
    return mask.nonzero()


def _within(one, extent, axis):
    outside = [i for i in ([one] if isinstance(one, int) else [one.min(), one.max()]
                           if one.size else []) if not -extent <= i < extent]
    if outside:
        raise IndexError(f"axis {axis}: {outside[0]} of {extent}")
    if isinstance(one, int):
        return one % extent
    numbers = one.astype(numpy.intp)
    return numpy.where(numbers < 0, numbers + extent, numbers)
