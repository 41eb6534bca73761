"""gaugelib - gauge configurations as numpy arrays; reads and writes files of NERSC, MILC, openQCD
and ILDG by their formats' descriptions: an oracle that shares no code with the programs.

A configuration is U[t, z, y, x, mu, a, b], mu = x, y, z, t, complex."""
import re
import struct

import numpy

import limetest
import scidac

AXIS = (3, 2, 1, 0)  # of x, y, z, t


def random_links(extent, seed=1, spread=0.4, dtype="complex128"):
    """Returns random SU(3) matrices near unity; extent: x, y, z, t."""
    random = numpy.random.default_rng(seed)
    shape = tuple(reversed(extent)) + (4, 3, 3)
    m = numpy.eye(3) + spread * (random.normal(size=shape) + 1j * random.normal(size=shape))
    q, r = numpy.linalg.qr(m)
    diagonal = numpy.einsum("...ii->...i", r)
    q = q * (diagonal / abs(diagonal))[..., None, :]
    return (q / numpy.linalg.det(q)[..., None, None] ** (1 / 3)).astype(dtype)


def extent(u):
    return u.shape[3], u.shape[2], u.shape[1], u.shape[0]


def plaquettes(u):
    """Returns the spatial and the temporal plaquette; 1 for unit links."""
    u = u.astype("complex128")
    total = [0, 0]
    for m in range(4):
        for n in range(m + 1, 4):
            a, b = u[..., m, :, :], u[..., n, :, :]
            above_m, above_n = numpy.roll(b, -1, AXIS[m]), numpy.roll(a, -1, AXIS[n])
            total[n == 3] += ((a @ above_m) * (b @ above_n).conj()).real.sum()
    return [float(sum_) / (9 * u[..., 0, 0, 0].size) for sum_ in total]


def plaquette(u):
    return sum(plaquettes(u)) / 2


def link_trace(u):
    u = u.astype("complex128")
    return float(numpy.einsum("...ii->...", u).real.sum() / (3 * u[..., 0, 0].size))


def reals(u, kind):
    """Returns the real numbers in order; kind: ">f8", "<f4"..."""
    u = numpy.ascontiguousarray(u)
    return u.view(u.real.dtype).astype(kind)


def from_reals(raw, kind, extents, rows=3):
    numbers = numpy.frombuffer(raw, kind).astype(kind.replace(">", "=").replace("<", "="))
    shape = tuple(reversed(extents)) + (4, rows, 3, 2)
    numbers = numbers.reshape(shape)
    u = numbers[..., 0] + 1j * numbers[..., 1]
    if rows == 2:
        a, b = (u[..., row, :].astype("complex128") for row in (0, 1))
        u = numpy.concatenate([u, numpy.cross(a, b).conj()[..., None, :].astype(u.dtype)], axis=-2)
    return u


def rotated(words, period):
    """Returns MILC's sum of u32 words."""
    by = (numpy.arange(len(words)) % period).astype("uint64")
    w = words.astype("uint64") << by
    return int(numpy.bitwise_xor.reduce((w | w >> numpy.uint64(32)) & numpy.uint64(0xFFFFFFFF)))


# ---- NERSC ----


def nersc_sum(raw, order):
    return int(numpy.frombuffer(raw, order + "u4").astype("uint64").sum()) & 0xFFFFFFFF


def write_nersc(u, kind=">f8", rows=3, floating=None, more=(), **changed):
    order, bits = kind[0], 8 * int(kind[2])
    raw = reals(u[..., :rows, :], kind).tobytes()
    x, y, z, t = extent(u)
    values = {
        "HDR_VERSION": "1.0", "DATATYPE": "4D_SU3_GAUGE" + ("_3x3" if rows == 3 else ""),
        "STORAGE_FORMAT": "1.0", "DIMENSION_1": x, "DIMENSION_2": y, "DIMENSION_3": z,
        "DIMENSION_4": t, "LINK_TRACE": f"{link_trace(u):.12f}",
        "PLAQUETTE": f"{plaquette(u):.12f}", "CHECKSUM": f"{nersc_sum(raw, order):x}",
        "ENSEMBLE_ID": "ens", "ENSEMBLE_LABEL": "a label", "SEQUENCE_NUMBER": 17,
        "FLOATING_POINT": floating or f"IEEE{bits}" + ("BIG" if order == ">" else "LITTLE"),
    }
    values.update(changed)
    lines = [f"{key} = {value}" for key, value in values.items() if value is not None]
    head = "\n".join(["BEGIN_HEADER", *lines, *more, "END_HEADER", ""])
    return head.encode() + raw


def read_nersc(data):
    """Returns (u, values); checks every value of the header."""
    end = data.index(b"END_HEADER\n") + 11
    lines = data[:end].decode("ascii").split("\n")
    assert lines[0] == "BEGIN_HEADER" and max(map(len, lines)) < 128
    values = {}
    for line in lines[1:-2]:
        key, value = re.fullmatch(r"(\w+) = (\S.*)", line).groups()
        assert key not in values, key
        values[key] = value
    extents = [int(values[f"DIMENSION_{i}"]) for i in (1, 2, 3, 4)]
    kind = {"IEEE32BIG": ">f4", "IEEE64BIG": ">f8"}[values["FLOATING_POINT"]]
    rows = {"4D_SU3_GAUGE": 2, "4D_SU3_GAUGE_3x3": 3}[values["DATATYPE"]]
    raw = data[end:]
    assert len(raw) == numpy.prod(extents) * 24 * rows * int(kind[2])
    assert int(values["CHECKSUM"], 16) == nersc_sum(raw, ">")
    u = from_reals(raw, kind, extents, rows)
    assert abs(plaquette(u) - float(values["PLAQUETTE"])) < (1e-9 if kind == ">f8" else 1e-6)
    assert abs(link_trace(u) - float(values["LINK_TRACE"])) < (1e-9 if kind == ">f8" else 1e-6)
    assert int(values["SEQUENCE_NUMBER"]) >= 0
    return u, values


# ---- MILC ----


def write_milc(u, order="<", ranks=None, date=b"Thu Jan  1 00:00:00 1970", sums=None):
    raw = reals(u, order + "f4").tobytes()
    if ranks is not None:
        raw = b"".join(raw[288 * rank:288 * rank + 288] for rank in ranks)
    words = numpy.frombuffer(raw, order + "u4")
    head = struct.pack(order + "5i64si", 20103, *extent(u), date, int(ranks is not None))
    listed = b"" if ranks is None else struct.pack(f"{order}{len(ranks)}i", *ranks)
    return head + listed + struct.pack(order + "2I", *(sums or (rotated(words, 29),
                                                               rotated(words, 31)))) + raw


def read_milc(data):
    order = "<" if data[:4] == struct.pack("<i", 20103) else ">"
    magic, *extents = struct.unpack(order + "5i", data[:20])
    listed, sum29, sum31 = struct.unpack(order + "iII", data[84:96])
    assert magic == 20103 and listed == 0 and b"\0" in data[20:84]
    words = numpy.frombuffer(data[96:], order + "u4")
    assert len(words) == numpy.prod(extents) * 72
    assert (sum29, sum31) == (rotated(words, 29), rotated(words, 31))
    return from_reals(data[96:], order + "f4", extents)


# ---- openQCD ----


def openqcd_points(extents):
    """Returns the coordinates (x, y, z, t) of the odd points in the file's order."""
    x, y, z, t = extents
    t, x, y, z = numpy.meshgrid(*(numpy.arange(n) for n in (t, x, y, z)), indexing="ij")
    odd = ((t + x + y + z) % 2 == 1).ravel()
    return [c.ravel()[odd] for c in (x, y, z, t)]


def openqcd_places(extents):
    """Yields for each matrix of a point: (direction in x, y, z, t; its coordinates)."""
    at = openqcd_points(extents)
    for direction in (3, 0, 1, 2):
        below = list(at)
        below[direction] = (below[direction] - 1) % extents[direction]
        yield direction, at
        yield direction, below


def write_openqcd(u, plaq=None):
    extents = extent(u)
    links = [u[at[3], at[2], at[1], at[0], direction]
             for direction, at in openqcd_places(extents)]
    x, y, z, t = extents
    head = struct.pack("<4id", t, x, y, z, 3 * plaquette(u) if plaq is None else plaq)
    return head + reals(numpy.stack(links, axis=1), "<f8").tobytes()


def read_openqcd(data):
    t, x, y, z, plaq = struct.unpack("<4id", data[:24])
    assert len(data) == 24 + 576 * x * y * z * t
    numbers = numpy.frombuffer(data[24:], "<f8").reshape(-1, 8, 3, 3, 2)
    links = numbers[..., 0] + 1j * numbers[..., 1]
    u = numpy.full((t, z, y, x, 4, 3, 3), numpy.nan, "complex128")
    for i, (direction, at) in enumerate(openqcd_places((x, y, z, t))):
        u[at[3], at[2], at[1], at[0], direction] = links[:, i]
    assert not numpy.isnan(u).any()
    assert abs(plaq / 3 - plaquette(u)) < 1e-12
    return u


# ---- ILDG ----


def records(data):
    """Returns {type: payload} of a container."""
    return {record.name: record.data for record in limetest.records(data)}


def read_ildg(data):
    """Returns (u, {type: payload}) of one configuration."""
    found = records(data)
    text = found["ildg-format"].decode()
    value = {name: re.search(rf"<{name}>\s*(\w+)\s*</{name}>", text)[1]
             for name in ("field", "precision", "lx", "ly", "lz", "lt")}
    assert value["field"] == "su3gauge"
    extents = [int(value[name]) for name in ("lx", "ly", "lz", "lt")]
    raw = found["ildg-binary-data"]
    site = 9 * int(value["precision"])
    assert len(raw) == numpy.prod(extents) * site
    sums = [int(re.search(rf"<{name}>(\w+)</{name}>", found["scidac-checksum"].decode())[1], 16)
            for name in ("suma", "sumb")]
    assert sums == list(scidac.checksum(raw, site)), "checksum"
    return from_reals(raw, ">f" + str(int(value["precision"]) // 8), extents), found
