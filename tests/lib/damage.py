"""damage - one small configuration and its damaged variants.

A test takes a damaged file from kinds() and compares a program's verdict with its own table:

    import numpython
    numpython.need("numpy")
    import damage
    for name, data in damage.kinds().items():
        verdict = TABLE[name]

Names that end in .nersc, .milc or .openqcd are files in that format; all others are LIME
containers, or were containers before the damage. docs/verdicts.md has the verdicts.
"""
import functools

import gaugelib
import scidac
from limetest import HEADER_BYTES, container, records

EXTENT = (2, 2, 2, 4)  # x, y, z, t
SITE_BYTES = 576
BAD_LINK = (5, 3)  # rank of its site, direction
# The exit status of a program that gives this verdict.
STATUS = {"good": 0, "skipped": 0, "unverified": 3, "bad": 1, "unreadable": 2}


@functools.lru_cache(maxsize=None)
def links():
    return gaugelib.random_links(EXTENT, seed=44)


def raw(u=None):
    """Returns the data of ildg-binary-data."""
    return gaugelib.reals(links() if u is None else u, ">f8").tobytes()


def with_bad_link():
    """Returns the links with one that is not unitary."""
    u = links().copy()
    site, direction = BAD_LINK
    u.reshape(-1, 4, 3, 3)[site, direction] *= 1.5
    return u


def message(u=None, plaquette=None, checksum=True):
    """Returns [(type, data)] of the configuration. The texts of xlf-info, ildg-format and
    scidac-checksum have lengths that require padding."""
    u = links() if u is None else u
    plaquette = gaugelib.plaquette(u) if plaquette is None else plaquette
    text = f"plaquette = {plaquette:.12f}\n trajectory nr = 42\n".encode()
    data = raw(u)
    pairs = [("xlf-info", text), ("ildg-format", scidac.ildg_format(EXTENT)),
             ("ildg-binary-data", data)]
    if checksum:
        sums = scidac.checksum(data, SITE_BYTES) if checksum is True else checksum
        pairs.append(("scidac-checksum", scidac.checksum_xml(sums)))
    return [(type, text + b" " * (-len(text) % 8 == 0)) for type, text in pairs[:2]] + pairs[2:3] \
        + [(type, text + b"\n" * (-len(text) % 8 == 0)) for type, text in pairs[3:]]


@functools.lru_cache(maxsize=None)
def configuration():
    """A valid file: the checksum and the plaquette match, and the links are in SU(3)."""
    return container([message()])


def places(data=None):
    """Returns [(type, offset of the header, offset of the data, length)] of a valid container."""
    data = configuration() if data is None else data
    return [(r.name, r.header, r.at, len(r.data)) for r in records(data)]


def flip(data, at, bit=0):
    """Returns the bytes with one bit flipped."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1:]


def overwrite(data, at, new):
    return data[:at] + new + data[at + len(new):]


def cuts():
    """Files that end too early, at each kind of place."""
    good = configuration()
    _, form, numbers, sums = places(good)
    return {
        "cut in the first magic": good[:3],
        "cut in the first header": good[:100],
        "cut behind the first header": good[:HEADER_BYTES],
        "cut in metadata": good[:form[2] + 20],
        "cut between metadata and data": good[:numbers[1]],
        "cut in the header of the data": good[:numbers[1] + 40],
        "cut behind the header of the data": good[:numbers[2]],
        "cut in the data": good[:numbers[2] + numbers[3] // 2],
        "cut one byte off the data": good[:numbers[2] + numbers[3] - 1],
        "cut between data and checksum": good[:sums[1]],
        "cut in the last header": good[:sums[1] + 143],
        "cut in the checksum": good[:sums[2] + 30],
    }


def beginnings():
    """Files with a damaged beginning."""
    good = configuration()
    first, second, *_ = places(good)
    return {
        "empty": b"",
        "zeros": bytes(len(good)),
        "zeros before the second header": bytes(second[1]) + good[second[1]:],
        "a block of zeros": overwrite(good, 0, bytes(4096)),
        "bit in the first magic": flip(good, 1),
        "version of the first header": overwrite(good, 4, b"\0\2"),
        "garbage before the second header": b"\xa5" * second[1] + good[second[1]:],
        "length of the first header": flip(good, 15, 6),
        "first header and half its data": overwrite(good, 0, b"\x3c" * (first[2] + 8)),
    }


def bits():
    """Files with flipped bits."""
    good = configuration()
    _, form, numbers, sums = places(good)
    return {
        "bit in the data": flip(good, numbers[2] + 1001, 3),
        "bit in the last link": flip(good, numbers[2] + numbers[3] - 1),
        "bit in the XML": flip(good, good.index(b"<ildgFormat"), 1),
        "bit in the lattice": good.replace(b"<lt>4</lt>", b"<lt>5</lt>"),
        "bit in the magic of the data": flip(good, numbers[1] + 2, 5),
        "version of the header of the data": overwrite(good, numbers[1] + 4, b"\1\1"),
        "low bit of the length of the data": flip(good, numbers[1] + 15, 3),
        "high bit of the length of the data": flip(good, numbers[1] + 9),
        "top bit of the length of the data": flip(good, numbers[1] + 8, 7),
        "bit in the type of the data": flip(good, numbers[1] + 16 + 5),
        "top bit in the type of metadata": flip(good, form[1] + 16, 7),
        "message begins twice": flip(good, form[1] + 6, 7),
        "message does not end": flip(good, sums[1] + 6, 6),
        "reserved byte": overwrite(good, form[1] + 7, b"\1"),
        "bit in the checksum": container([message(checksum=tuple(
            word ^ 0x10 for word in scidac.checksum(raw(), SITE_BYTES)))]),
    }


def meanings():
    """Complete files whose contents contradict each other or lack something."""
    return {
        "no checksum": container([message(checksum=False)]),
        "checksum that cannot be read": container([message(checksum=False)
                                                   + [("scidac-checksum", b"<suma")]]),
        "checksum of no data": container([message()[:2] + message()[3:]]),
        "bad link": container([message(with_bad_link())]),
        "wrong plaquette": container([message(plaquette=0.123)]),
        "trailing garbage": configuration() + b"garbage" * 50,
        "trailing zeros": configuration() + bytes(512),
    }


def harmless():
    """Damage that no reader notices."""
    good = configuration()
    xlf, form, *_, sums = places(good)
    return {
        "padding not zero": flip(good, xlf[2] + xlf[3]),
        "padding missing": good[:sums[2] + sums[3]],
        "padding cut": good[:sums[2] + sums[3] + 1],
        "bytes behind the type": overwrite(good, form[1] + 16 + 20, b"x"),
        "reserved bits": flip(good, form[1] + 6, 2),
    }


def others():
    """Files in other formats."""
    u = links()
    nersc, milc = gaugelib.write_nersc(u), gaugelib.write_milc(u)
    openqcd = gaugelib.write_openqcd(u)
    return {
        "good.nersc": nersc,
        "sum.nersc": gaugelib.write_nersc(u, CHECKSUM="badc0de"),
        "bit.nersc": flip(nersc, len(nersc) - 1001),
        "plaquette.nersc": gaugelib.write_nersc(u, PLAQUETTE="0.123"),
        "link.nersc": gaugelib.write_nersc(with_bad_link()),
        "cut.nersc": nersc[:-1000],
        "good.milc": milc,
        "sum.milc": gaugelib.write_milc(u, sums=(1, 2)),
        "bit.milc": flip(milc, len(milc) - 1001),
        "link.milc": gaugelib.write_milc(with_bad_link()),
        "cut.milc": milc[:-1000],
        "good.openqcd": openqcd,
        "plaquette.openqcd": gaugelib.write_openqcd(u, plaq=0.123),
        "cut.openqcd": openqcd[:-1000],
    }


@functools.lru_cache(maxsize=None)
def kinds():
    """Returns {name: bytes of the file}, the valid file first."""
    return {"good": configuration(), **cuts(), **beginnings(), **bits(), **meanings(),
            **harmless(), **others()}


def is_container(name):
    """Whether the file is, or was before its damage, a LIME container."""
    return not name.endswith((".nersc", ".milc", ".openqcd"))
