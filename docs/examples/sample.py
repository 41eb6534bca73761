#!/usr/bin/python3
"""Fields of which the answer is known, as LIME containers to try the other examples on.

    sample.py instanton FILE       one SU(2) instanton in an SU(3) configuration: Q is near 1
    sample.py quark FILE           the propagator of a free Wilson quark from a point source, 12
                                   columns: the pion's mass is 2 ln(1 + m)

The records are put together by 'lime pack'; 'lime checksum' adds the checksums.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile

import numpy

import limefs

PAULI = numpy.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])


def eta_bar():
    """'t Hooft's symbol [a, mu, nu], mu = x, y, z, t."""
    out = numpy.zeros((3, 4, 4))
    for a, i, j in itertools.permutations(range(3)):
        out[a, i, j] = (a - i) * (i - j) * (j - a) / 2
    for a in range(3):
        out[a, a, 3], out[a, 3, a] = -1, 1
    return out


def instanton(size, radius):
    """Links (T, Z, Y, X, mu, 3, 3) of an instanton in singular gauge in the middle of a cell.
    Along a link its potential keeps its direction in colour: the integral is elementary. The
    potential is that of D = d - iA, so the links, which stand for D = d + iA, have -A."""
    edge = numpy.arange(size) - (size - 1) / 2
    t, z, y, x = numpy.meshgrid(edge, edge, edge, edge, indexing="ij")
    at = numpy.stack([x, y, z, t], axis=-1)
    links = numpy.zeros((size,) * 4 + (4, 3, 3), dtype=complex)
    for mu in range(4):
        r = numpy.sqrt(numpy.sum(at ** 2, axis=-1) - at[..., mu] ** 2)
        far = numpy.sqrt(r ** 2 + radius ** 2)
        begin, end = at[..., mu], at[..., mu] + 1
        along = (numpy.arctan(end / r) - numpy.arctan(begin / r)) / r \
            - (numpy.arctan(end / far) - numpy.arctan(begin / far)) / far
        phi = 2 * numpy.einsum("an,...n->...a", eta_bar()[:, mu], at) * along[..., None]
        angle = numpy.linalg.norm(phi, axis=-1)[..., None, None]
        links[..., mu, :2, :2] = numpy.cos(angle / 2) * numpy.eye(2) - 1j * numpy.sin(angle / 2) \
            * numpy.einsum("...a,aij->...ij", phi, PAULI) / numpy.maximum(angle, 1e-30)
        links[..., mu, 2, 2] = 1
    return links


def free_quark(size, time, mass):
    """S(x) of Wilson's action with r = 1 from a source at 0, antiperiodic in time:
    (T, Z, Y, X, sink spin, source spin)."""
    zero, one = numpy.zeros((2, 2)), numpy.eye(2)
    gamma = [numpy.block([[zero, -1j * s], [1j * s, zero]]) for s in PAULI]
    gamma.append(numpy.block([[zero, one], [one, zero]]).astype(complex))
    space = 2 * numpy.pi * numpy.arange(size) / size
    energy = 2 * numpy.pi * (numpy.arange(time) + 0.5) / time
    pt, pz, py, px = numpy.meshgrid(energy, space, space, space, indexing="ij")
    p = (px, py, pz, pt)
    wilson = mass + sum(1 - numpy.cos(one) for one in p)
    below = wilson ** 2 + sum(numpy.sin(one) ** 2 for one in p)
    of_p = wilson[..., None, None] * numpy.eye(4) \
        - 1j * sum(numpy.sin(one)[..., None, None] * g for one, g in zip(p, gamma))
    phase = numpy.exp(1j * numpy.pi * numpy.arange(time) / time)
    return numpy.fft.ifftn(of_p / below[..., None, None], axes=(0, 1, 2, 3)) \
        * phase[:, None, None, None, None, None]


def write(path, messages):
    """A container of lists of (type, bytes), with checksums."""
    lime = limefs.find_lime()
    with tempfile.TemporaryDirectory() as directory:
        words = []
        for i, message in enumerate(messages):
            words += ["-m"] * (i > 0)
            for type, data in message:
                words += ["-t", type, os.path.join(directory, str(len(words)))]
                with open(words[-1], "wb") as file:
                    file.write(data)
        for command in ([lime, "pack", "-o", path, *words], [lime, "checksum", "--add", path]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, check=False)
            if done.returncode:
                raise limefs.Error(done.stderr.decode(errors="replace").strip())


def extents(shape):
    return "".join(f"<l{name}>{extent}</l{name}>" for name, extent in zip("xyzt", shape[::-1]))


def write_configuration(path, links):
    xml = ('<?xml version="1.0" encoding="UTF-8"?><ildgFormat xmlns="http://www.lqcd.org/ildg">'
           "<version>1.0</version><field>su3gauge</field><precision>64</precision>"
           f"{extents(links.shape[:4])}</ildgFormat>")
    write(path, [[("ildg-format", xml.encode()),
                  ("ildg-binary-data", links.astype(">c16").tobytes())]])


def write_propagator(path, propagator):
    """12 columns, spin slowest, as spinors (T, Z, Y, X, 4, 3) of single precision."""
    lattice = propagator.shape[:4]
    xml = ("<etmcFormat><field>diracFermion</field><precision>32</precision><flavours>1</flavours>"
           f"{extents(lattice)}</etmcFormat>")
    messages = [[("propagator-type", b"DiracFermion_Sink")],
                [("etmc-propagator-format", xml.encode())]]
    for spin, colour in itertools.product(range(4), range(3)):
        spinor = numpy.zeros((*lattice, 4, 3), ">c8")
        spinor[..., colour] = propagator[..., spin]
        messages.append([("scidac-binary-data", spinor.tobytes())])
    write(path, messages)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("instanton", "quark"))
    parser.add_argument("out", metavar="FILE")
    parser.add_argument("--size", type=int, help="of the lattice in space (16; quark: 8)")
    parser.add_argument("--time", type=int, default=32, help="quark: time slices (%(default)s)")
    parser.add_argument("--radius", type=float, default=4.0, help="instanton: (%(default)s)")
    parser.add_argument("--mass", type=float, default=0.2, help="quark: (%(default)s)")
    args = parser.parse_args()
    if args.what == "instanton":
        write_configuration(args.out, instanton(args.size or 16, args.radius))
    else:
        write_propagator(args.out, free_quark(args.size or 8, args.time, args.mass))


if __name__ == "__main__":
    try:
        main()
    except (limefs.Error, OSError) as error:
        sys.exit(f"sample.py: {error}")
