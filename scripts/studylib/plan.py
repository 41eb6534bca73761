"""Defines the studies: their questions and their measurements.

A measurement is one run of lime-bench, in which several back ends take turns. The measurements of
a study are repeated in rounds, every other one backwards, so that other load on the machine affects
all settings alike.
"""

import dataclasses
import hashlib

from .formatting import option_size

ALL = ("posix", "mpiio", "subarray", "lime", "gather", "hdf5", "netcdf4", "pnetcdf", "limefs",
       "limefs-job")
LIBRARIES = ("hdf5", "netcdf4", "pnetcdf")
LATTICE = ("lime", "gather", "posix", "subarray")

KIB, MIB = 1 << 10, 1 << 20
SITE, RESULT = 576, 192  # bytes a site: four SU(3) matrices; a spinor field, 24 numbers
TRANSFERS = tuple(4 * KIB << 2 * i for i in range(7))  # to 16 MiB
CHUNKS = tuple(16 * KIB << 2 * i for i in range(5))  # to 4 MiB
MOVED = 4 * MIB  # transfer size when chunks are compared; in the thesis 512 MiB
ALIGNMENTS = (0, 4 * KIB, 64 * KIB, MIB)
WARM_UP = 1  # first repetitions of each program that do not count: libraries initialize
EXTENTS = (4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64)  # L of lattices L^3 x 2L

# The applications of the Lemon paper, section 5.4: bytes a site of the one result, how many are
# written, and the time for computing in units of the time that gather takes to write one result
# of a spinor field. The paper gives 57 % for the run time of the multiple-mass inversion with
# Lemon, so 43 % were I/O at most: 19 results and a configuration, which is 3 times as large, are
# 22 units; that makes 29 for computing. One inversion computes half as long ("about twice a
# single one"). About the trajectory the paper states only that I/O is rare: here 6 units of 150.
APPS = {
    "hmc": ("HMC trajectory", "HMC", SITE, 1, 144.0),
    "inversion": ("inversion", "inversion", RESULT, 1, 14.6),
    "mms": ("multiple-mass inversion", "multi-mass", RESULT, 19, 29.2),
}

# name: (title, question, result of the sources)
STUDIES = {
    "disjoint": (
        "Disjoint pattern",
        "Each rank has one contiguous region of the file. Which back end is fastest, and does "
        "collective I/O help?",
        "Thesis, figure 4.3: on Lustre, collective writing helped HDF5 and NetCDF-4, independent "
        "reading was faster, and no back end came near the network's limit."),
    "interleaved": (
        "Interleaved pattern",
        "The ranks' pieces alternate in the file. Which back end is fastest, and does collective "
        "I/O help?",
        "Thesis, figure 4.9: with one stripe for each piece, POSIX and MPI-IO came near the limit, "
        "HDF5 was better independently, and unaligned NetCDF-4 fell far behind."),
    "transfer-size": (
        "Transfer size",
        "How much should be moved with each call?",
        "Thesis, figures 4.5 and 4.10: small transfers cost much, most of all in reading; HDF5 "
        "wrote at full speed from 512 KiB, reading still gained at 512 MiB."),
    "chunk-size": (
        "Chunk size",
        "What do chunked datasets cost, and how large should the chunks be?",
        "Thesis, figures 4.7, 4.15 and 4.16: small chunks were slow by far, large ones as fast as "
        "the contiguous layout; interleaved access to chunks was better independently."),
    "alignment": (
        "Alignment",
        "Does it help to begin the data at a multiple of some number of bytes?",
        "Thesis, figures 5.1 to 5.3: with data aligned to the stripes, NetCDF-4 nearly reached "
        "HDF5; the interleaved pattern gained most, up to 14 times in collective writing."),
    "scaling": (
        "Scaling over ranks",
        "A lattice of fixed size is written and read by more and more ranks. Does the speed grow?",
        "Lemon paper, figure 3: nearly twice the speed for twice the I/O nodes, while gathering "
        "to one rank, as C-LIME programs do, stayed at 42.5 MB/s."),
    "block-size": (
        "Block size",
        "The same ranks write and read lattices of different sizes. From which size on is the "
        "full speed reached?",
        "Lemon paper, figures 4 and 5: a mild dependence; larger lattices were written somewhat "
        "faster, and read somewhat slower."),
    "variability": (
        "Variability",
        "How much do the speeds vary from run to run, and is the first write of a program slow?",
        "Lemon paper, section 5.3: parallel I/O varied much more than writing by one rank, and "
        "the first write was regularly the slowest."),
    "formats": (
        "Formats",
        "All back ends write and read the same distributed lattice. What does the choice of a "
        "library and its format cost?",
        "Beyond the sources: the thesis compares libraries on regions of bytes, the paper "
        "compares Lemon with C-LIME only."),
    "app": (
        "Applications",
        "How much sooner do the three applications of the Lemon paper end if all ranks write "
        "(lime) instead of one that gathers (gather, as with C-LIME)? Each reads a configuration, "
        "computes as long as gather takes here to write 144 (HMC), 14.6 (inversion) or 29.2 "
        "spinor fields, and writes a configuration, one spinor field, or 19 of them: the paper's "
        "proportions.",
        "Lemon paper, figure 6: little for an HMC trajectory, much for an inversion, and 57 % of "
        "the run time for a multiple-mass inversion with 19 results."),
}


@dataclasses.dataclass(frozen=True)
class Size:
    """The size of the study, stored in study.json."""

    ranks: tuple  # numbers of ranks to compare
    main: int  # number of ranks of all other studies
    bytes: int  # per rank: disjoint and interleaved
    extent: int  # L of the lattice L^3 x 2L
    extents: tuple  # to compare
    small: int  # L of the applications
    unit: float  # seconds in which gather writes one of their results
    repetitions: int
    rounds: int
    stripe: int  # of the file system, in bytes; 0: none

    @staticmethod
    def from_dict(fields):
        return Size(**{key: tuple(value) if isinstance(value, list) else value
                       for key, value in fields.items()})


@dataclasses.dataclass(frozen=True)
class Measurement:
    study: str
    label: str
    ranks: int
    backends: tuple
    options: tuple
    volume: int  # bytes moved by one back end in one repetition
    where: tuple  # ((name, value), ...): the setting, for tables and plots
    repetitions: int
    round: int = 1
    idle: float = 0.0  # seconds of computing in one repetition of one back end
    warm_up: int = WARM_UP

    @property
    def name(self):
        """The name of its file; equal parameters give equal names."""
        key = repr((self.ranks, self.backends, self.options, self.all_repetitions, self.round))
        code = hashlib.sha256(key.encode()).hexdigest()[:8]
        return f"{self.study}_{self.label}_n{self.ranks}_round{self.round}_{code}"

    @property
    def all_repetitions(self):
        return self.repetitions + self.warm_up

    def arguments(self):
        """Returns the arguments of lime-bench without the file."""
        return ["--backend", ",".join(self.backends), *self.options,
                "--repetitions", str(self.all_repetitions), "--seed", str(self.round),
                "--json", "-", "--quiet"]

    def each(self):
        """Returns one measurement for each back end."""
        return [dataclasses.replace(self, backends=(one,), label=f"{self.label}-{one}")
                for one in self.backends] if len(self.backends) > 1 else []


def lattice_bytes(extent, site=SITE):
    return 2 * extent ** 4 * site


def lattice_options(extent, site=SITE):
    return ("--pattern", "lattice", "--lattice", f"{2 * extent}x{extent}x{extent}x{extent}",
            "--site-bytes", str(site))


def region_options(pattern, nbytes, transfer, mode=None):
    """mode: None for the default of each back end."""
    return ("--pattern", pattern, "--size", option_size(nbytes), "--transfer-size",
            option_size(transfer), *([f"--{mode}"] if mode else []))


def _regions(study, size, settings, backends):
    """Yields measurements of byte regions; settings: (pattern, mode, transfer, options, where)."""
    for pattern, mode, transfer, options, where in settings:
        nbytes = max(size.bytes, transfer)
        label = "-".join([*([] if pattern == study else [pattern]), mode,
                          *(f"{name}{option_size(v) if v else 0}" for name, v in where)])
        yield Measurement(
            study, label, size.main, backends,
            region_options(pattern, nbytes, transfer, mode) + ("--reorder",) + options,
            2 * nbytes * size.main, (("pattern", pattern), ("mode", mode), *where),
            size.repetitions)


def _patterns(study, size):
    return _regions(study, size, [(study, mode, min(MIB, size.bytes), (), ())
                                  for mode in ("independent", "collective")], ALL)


def transfers(size):
    return [t for t in TRANSFERS if t <= max(size.bytes, MIB)]


def _transfer_size(study, size):
    return _regions(study, size, [
        (pattern, mode, t, (), (("transfer", t),))
        for pattern, mode in (("disjoint", "collective"), ("interleaved", "independent"),
                              ("interleaved", "collective"))
        for t in transfers(size)], ("posix", "mpiio", *LIBRARIES))


def _chunk_size(study, size):
    """The disjoint pattern uses large transfers for all chunk sizes; the interleaved pattern
    transfers one chunk at a time, as in the thesis."""
    moved = min(MOVED, max(size.bytes, MIB))
    chunks = [c for c in CHUNKS if c <= moved]
    settings = [("disjoint", "collective", moved, ("--chunk", option_size(c)) if c else (),
                 (("chunk", c),)) for c in [0, *chunks]]
    settings += [("interleaved", mode, c, ("--chunk", option_size(c)), (("chunk", c),))
                 for mode in ("independent", "collective") for c in chunks if c >= 64 * KIB]
    return _regions(study, size, settings, ("hdf5", "netcdf4"))


def alignments(size):
    return sorted({*ALIGNMENTS, size.stripe} if size.stripe else ALIGNMENTS)


def _alignment(study, size):
    return _regions(study, size, [
        (pattern, mode, min(MIB, size.bytes), ("--alignment", option_size(a)) if a else (),
         (("alignment", a),))
        for pattern, mode in (("disjoint", "collective"), ("interleaved", "independent"),
                              ("interleaved", "collective"))
        for a in alignments(size)], (*LIBRARIES, "lime"))


def _lattices(study, size, backends, settings, **others):
    """Yields measurements of lattices; settings: (ranks, extent)."""
    for ranks, extent in settings:
        yield Measurement(
            study, f"lattice-L{extent}", ranks, backends, lattice_options(extent),
            2 * lattice_bytes(extent), (("ranks", ranks), ("extent", extent)),
            **{"repetitions": size.repetitions, **others})


def _scaling(study, size):
    return _lattices(study, size, LATTICE, [(ranks, size.extent) for ranks in size.ranks])


def _block_size(study, size):
    return _lattices(study, size, LATTICE, [(size.main, extent) for extent in size.extents])


def _variability(study, size):
    return _lattices(study, size, ("lime", "gather", "posix", "hdf5"), [(size.main, size.extent)],
                     repetitions=10, warm_up=0)


def _formats(study, size):
    return _lattices(study, size, ALL, [(ranks, size.extent) for ranks in size.ranks])


def _app(study, size):
    """Yields the reading of a configuration, and computing and writing of each application."""
    yield Measurement(study, "configuration", size.main, ("gather", "lime"),
                      lattice_options(size.small), 2 * lattice_bytes(size.small),
                      (("app", "configuration"),), size.repetitions)
    for app, (_, _, site, outputs, units) in APPS.items():
        compute = units * size.unit
        yield Measurement(
            study, app, size.main, ("gather", "lime"),
            (*lattice_options(size.small, site), "--operations", "write", "--compute",
             f"{compute / outputs:.4f}", "--outputs", str(outputs)),
            outputs * lattice_bytes(size.small, site), (("app", app),), size.repetitions,
            idle=compute)


MEASURED = {
    "disjoint": _patterns, "interleaved": _patterns, "transfer-size": _transfer_size,
    "chunk-size": _chunk_size, "alignment": _alignment, "scaling": _scaling,
    "block-size": _block_size, "variability": _variability, "formats": _formats, "app": _app,
}


def rounds_of(study, size):
    """The study of the first write of a program needs several programs."""
    return max(4, size.rounds) if study == "variability" else size.rounds


def measurements(study, size):
    once = list(MEASURED[study](study, size))
    return [dataclasses.replace(m, round=r)
            for r in range(1, rounds_of(study, size) + 1) for m in (once if r % 2 else once[::-1])]
