#!/usr/bin/python3
"""Topological charge density of a gauge configuration, and a picture of one slice.

The argument is a LIME container, or a directory that limefs shows for one. The field
strength has the clover-leaf definition: C is the sum of the four plaquettes in the mu-nu plane that
begin and end at x and are oriented alike, and

    F_mu,nu(x) = (C - C^+) / 8i, without its trace
    q(x) = 1/(32 pi^2) eps_mu,nu,rho,sigma tr F_mu,nu F_rho,sigma,  eps_xyzt = 1
         = 1/(4 pi^2) tr (F_xy F_zt + F_xz F_ty + F_xt F_yz)

Q is the sum of q over all sites; boundaries are periodic. It is near an integer for smooth
fields only: a configuration out of a simulation has to be smoothed first (gradient flow,
cooling), otherwise the picture shows noise. Three time slices are in memory at once.

    topcharge.py conf.0100 --out charge.png
"""

import argparse
import sys

import numpy

import limefs

X, Y, Z, T = range(4)


def dagger(u):
    return u.conj().swapaxes(-1, -2)


class Slice:
    """The links at and around a time slice."""

    def __init__(self, before, here, after):
        self.links = {-1: before, 0: here, 1: after}
        self.known = {}

    def link(self, mu, *shift):
        """U_mu at all x + shift of the slice; shift: directions, those backward as ~nu."""
        step = [0, 0, 0, 0]
        for nu in shift:
            step[nu if nu >= 0 else ~nu] += 1 if nu >= 0 else -1
        key = (mu, *step)
        if key not in self.known:
            self.known[key] = numpy.roll(self.links[step[T]][..., mu, :, :],
                                         [-step[Z], -step[Y], -step[X]], axis=(0, 1, 2))
        return self.known[key]

    def field_strength(self, mu, nu):
        u = self.link
        leaves = u(mu) @ u(nu, mu) @ dagger(u(nu) @ u(mu, nu))
        leaves += u(nu) @ dagger(u(nu, ~mu) @ u(mu, ~mu, nu)) @ u(mu, ~mu)
        leaves += dagger(u(nu, ~mu, ~nu) @ u(mu, ~mu)) @ u(mu, ~mu, ~nu) @ u(nu, ~nu)
        leaves += dagger(u(nu, ~nu)) @ u(mu, ~nu) @ u(nu, mu, ~nu) @ dagger(u(mu))
        f = (leaves - dagger(leaves)) / 8j
        return f - numpy.trace(f, axis1=-2, axis2=-1)[..., None, None] / 3 * numpy.eye(3)

    def charge_density(self):
        f = self.field_strength
        return sum(numpy.einsum("...ij,...ji->...", f(*one), f(*other)).real
                   for one, other in (((X, Y), (Z, T)), ((X, Z), (T, Y)), ((X, T), (Y, Z)))) \
            / (4 * numpy.pi ** 2)


def charge_density(config):
    """q of an array (T, Z, Y, X, 4, 3, 3): shape (T, Z, Y, X)."""
    def links_of(t):
        return numpy.array(config[t % len(config)], dtype=complex)

    out = numpy.empty(config.shape[:4])
    before, here = links_of(-1), links_of(0)
    for t in range(len(config)):
        after = links_of(t + 1)
        out[t] = Slice(before, here, after).charge_density()
        before, here = here, after
    return out


def plot(path, q, t, z):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "limefs"})
    figure, axes = pyplot.subplots(figsize=(5.6, 5), layout="constrained")
    most = abs(q[t, z]).max() or 1.0
    image = axes.imshow(q[t, z], origin="lower", cmap="RdBu_r", vmin=-most, vmax=most)
    figure.colorbar(image, label="q(x)")
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    axes.set_title(f"topological charge density\nz = {z}, t = {t}; Q = {q.sum():.3f}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="container, or mount of one")
    parser.add_argument("--out", metavar="FIGURE", help="picture of a slice (.png, .svg)")
    parser.add_argument("--t", type=int, help="of the picture (default: where |q| is largest)")
    parser.add_argument("--z", type=int)
    parser.add_argument("--record", default="ildg-binary-data",
                        help="type, name or ordinal (default: %(default)s)")
    args = parser.parse_args()
    key = int(args.record) if args.record.isdigit() else args.record
    config = limefs.open(args.path).array(key)
    if config.shape[4:] != (4, 3, 3):
        raise limefs.Error(f"{args.path}: shape {config.shape}: not an SU(3) configuration")
    q = charge_density(config)
    most = numpy.unravel_index(abs(q).argmax(), q.shape)
    print(f"Q = {q.sum():.9f}")
    print(f"sum of |q| = {abs(q).sum():.9f}")
    print(f"largest |q| = {abs(q).max():.9f} at x, y, z, t = "
          + ", ".join(str(i) for i in most[::-1]))
    t = most[0] if args.t is None else args.t
    z = most[1] if args.z is None else args.z
    if not (0 <= t < q.shape[0] and 0 <= z < q.shape[1]):
        raise limefs.Error(f"no slice at z = {z}, t = {t}: the lattice is {q.shape[::-1]}")
    if args.out:
        plot(args.out, q, t, z)


if __name__ == "__main__":
    try:
        main()
    except (limefs.Error, ImportError, OSError) as error:
        sys.exit(f"topcharge.py: {error}")
