#!/usr/bin/python3
"""Plaquettes of gauge configurations, per time slice.

Each argument is a LIME container, a directory that limefs shows for one, or a directory with any
number of them (a mount, too). Two time slices of a configuration are in memory.

    plaquette.py /data/runs                        one line a configuration
    plaquette.py --out plaquette.svg conf.0100     and a plot over the time slices

P = sum of Re tr U_p / 3 over the plaquettes, divided by their number: 1 for unit links. A
spatial plaquette belongs to its time slice, a temporal one (x,t y,t z,t) to the slice in which
it begins; boundaries are periodic. 'lime check --physics' computes the mean on all processors.
"""

import argparse
import sys

import numpy

import limefs


def links_of(config, t):
    """A time slice, as this machine's double precision: (Z, Y, X, mu, 3, 3)."""
    return numpy.array(config[t % len(config)], dtype=complex)


def ahead(links, mu):
    """The field at x + mu, mu = 0, 1, 2: x, y, z, the last axis of the lattice first."""
    return numpy.roll(links, -1, axis=2 - mu)


def loop(u_mu, u_nu_ahead, u_nu, u_mu_ahead):
    """Mean of Re tr U_mu(x) U_nu(x+mu) (U_nu(x) U_mu(x+nu))^+ / 3."""
    return numpy.mean(numpy.sum(u_mu @ u_nu_ahead * (u_nu @ u_mu_ahead).conj(),
                                axis=(-2, -1)).real) / 3


def plaquettes(config):
    """(spatial, temporal) of each time slice of an array (T, Z, Y, X, 4, 3, 3): shape (2, T)."""
    out = numpy.empty((2, len(config)))
    first = here = links_of(config, 0)
    for t in range(len(config)):
        after = links_of(config, t + 1) if t + 1 < len(config) else first
        u = [here[..., mu, :, :] for mu in range(4)]
        out[0, t] = numpy.mean([loop(u[mu], ahead(u[nu], mu), u[nu], ahead(u[mu], nu))
                                for mu in range(3) for nu in range(mu)])
        out[1, t] = numpy.mean([loop(u[mu], ahead(u[3], mu), u[3], after[..., mu, :, :])
                                for mu in range(3)])
        here = after
    return out


def written(path):
    """The mean plaquette as the configuration's writer has noted it, or nothing."""
    try:
        return float(limefs.open(path).facts["xlf-info"]["plaquette"])
    except (KeyError, ValueError):
        return None


def plot(path, measured):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "limefs"})
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    slices = numpy.arange(measured.shape[2])
    for i, (name, marker, colour) in enumerate((("spatial", "o", "C0"), ("temporal", "s", "C1"))):
        mean = measured[:, i].mean(axis=0)
        error = measured[:, i].std(axis=0, ddof=1) / len(measured) ** 0.5 \
            if len(measured) > 1 else None
        axes.errorbar(slices, mean, error, color=colour, marker=marker, markersize=4,
                      linewidth=1, capsize=2, label=name)
    axes.axhline(measured.mean(), color="grey", linewidth=1, linestyle="--", label="mean")
    axes.set_xlabel("time slice t")
    axes.set_ylabel("plaquette P(t)")
    axes.set_title(f"{len(measured)} configuration" + "s" * (len(measured) > 1) +
                   f", mean {measured.mean():.6f}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="+", help="container, mount, or directory with containers")
    parser.add_argument("--out", metavar="FIGURE", help="plot over the time slices (.svg, .png)")
    parser.add_argument("--type", default="ildg-binary-data",
                        help="of the records (default: %(default)s)")
    parser.add_argument("--skip-bad", action="store_true", help="leave damaged files out, and warn")
    args = parser.parse_args()
    measured = []
    for number, path in enumerate(args.path):
        configs = limefs.tree(path, args.type, skip_bad=args.skip_bad)
        if configs.shape[-3:] != (4, 3, 3) or configs.ndim != 8:
            raise limefs.Error(f"{path}: shape {configs.shape}: not SU(3) configurations")
        if number == 0:
            print(f"{'P':>12} {'spatial':>12} {'temporal':>12} {'as written':>12}  configuration")
        for config, name in zip(configs, configs.paths):
            measured.append(plaquettes(config))
            spatial, temporal = measured[-1].mean(axis=1)
            noted = written(name)
            print(f"{(spatial + temporal) / 2:12.9f} {spatial:12.9f} {temporal:12.9f} "
                  f"{noted if noted is not None else '-':>12}  {name}", flush=True)
    if args.out:
        if len({one.shape for one in measured}) > 1:
            raise limefs.Error("--out: the configurations have different numbers of time slices")
        plot(args.out, numpy.array(measured))


if __name__ == "__main__":
    try:
        main()
    except (limefs.Error, ImportError, OSError) as error:
        sys.exit(f"plaquette.py: {error}")
