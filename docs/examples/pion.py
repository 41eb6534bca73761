#!/usr/bin/python3
"""The pion's correlator from a quark propagator, and a plot.

Each argument is a LIME container with propagators, a directory that limefs shows for one, or a
directory with any number of them. For a point source, gamma5-hermiticity makes the propagator back
the adjoint of that forth, so that

    C(t) = sum over x, spin, colour and the columns of |S(x, t)|^2

where a column is the solution for one spin and one colour of the source. With all 12 columns C
is the correlator of the pion (or, with a full propagator in one record). With fewer, as in a
file that holds a single spinor, it is only those columns' part of it: their norm per time slice.

    pion.py propagator.lime --out pion.svg

The effective mass is m(t) = arcosh((C(t-1) + C(t+1)) / 2 C(t)), for a periodic correlator.
"""

import argparse
import sys

import numpy

import limefs

COLUMNS = 12


def norms(propagator):
    """Sum of |psi|^2 per time slice of an array (T, Z, Y, X, ...)."""
    return numpy.array([numpy.sum(numpy.abs(numpy.asarray(one, dtype=complex)) ** 2)
                        for one in propagator])


def effective_mass(correlator):
    """As long as the correlator; nan where it has none."""
    before, after = numpy.roll(correlator, 1), numpy.roll(correlator, -1)
    with numpy.errstate(invalid="ignore", divide="ignore"):
        return numpy.arccosh((before + after) / (2 * correlator))


def plot(path, correlator, what):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "limefs"})
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 6), sharex=True,
                                             layout="constrained")
    t = numpy.arange(len(correlator))
    above.semilogy(t, correlator, "o-", markersize=4, linewidth=1)
    above.set_ylabel("C(t)")
    above.set_title(what)
    below.plot(t, effective_mass(correlator), "s", markersize=4, color="C1")
    below.set_ylabel("effective mass")
    below.set_ylim(bottom=0)
    below.set_xlabel("t from the source")
    below.xaxis.get_major_locator().set_params(integer=True)
    for axes in (above, below):
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="+", help="container, mount, or directory with containers")
    parser.add_argument("--out", metavar="FIGURE", help="plot of C and of the mass (.svg, .png)")
    parser.add_argument("--source", type=int, metavar="T",
                        help="its time slice (default: where C is largest)")
    parser.add_argument("--skip-bad", action="store_true", help="leave damaged files out, and warn")
    args = parser.parse_args()
    correlator, columns = 0, 0
    for path in args.path:
        spinors = limefs.tree(path, "scidac-binary-data", skip_bad=args.skip_bad)
        inner = int(numpy.prod(spinors.shape[5:]))
        if spinors.dtype.kind != "c" or spinors.ndim < 7 or inner % COLUMNS:
            raise limefs.Error(f"{path}: shape {spinors.shape} of {spinors.dtype}: not spinors")
        if columns and spinors.shape[1] != len(correlator):
            raise limefs.Error(f"{path}: {spinors.shape[1]} time slices, not {len(correlator)}")
        for spinor in spinors:
            correlator = correlator + norms(spinor)
            columns += inner // COLUMNS
    source = int(correlator.argmax()) if args.source is None else args.source
    correlator = numpy.roll(correlator, -source)
    what = f"pion correlator, {columns} columns" if columns % COLUMNS == 0 else \
        f"norm of {columns} of {COLUMNS} columns: a part of the pion correlator"
    print(f"# {what}; source at t = {source}\n#  t            C(t)    m(t)")
    for t, (c, m) in enumerate(zip(correlator, effective_mass(correlator))):
        print(f"{t:4} {c:15.8e} {m:7.4f}")
    if args.out:
        plot(args.out, correlator, what)


if __name__ == "__main__":
    try:
        main()
    except (limefs.Error, ImportError, OSError) as error:
        sys.exit(f"pion.py: {error}")
