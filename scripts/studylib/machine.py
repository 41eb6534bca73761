"""Describes the machine and chooses the size of the study for it."""

import hashlib
import os
import subprocess

from . import plan
from .samples import Sample
from .formatting import size as nbytes_text

LOCAL = ("tmpfs", "overlay", "zfs", "btrfs", "ramfs")  # and file systems on local devices
MAX_RANKS = 64
MIN_BYTES, MAX_BYTES = 64 << 10, 1 << 30  # per rank
OPERATION_SECONDS = 0.03  # fixed cost of an operation on a file
CALIBRATION_BYTES = 2 << 20, 32 << 20  # per rank, in the two calibration runs
MAX_PLANNED_BYTES = 32 << 20  # per rank; more rounds are a better use of the time
ROUNDS = 2, 5
PLANNED_SHARE = 0.8  # of the time; the rest is reserve


def file_system(path):
    """Returns (type, device) of the file system of a path, by the longest mount point above it."""
    best, found = "", ("unknown", "unknown")
    path = os.path.realpath(path)
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as table:
            for line in table:
                words = line.split()
                point, rest = words[4], words[words.index("-") + 1:]
                inside = path == point or path.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, found = point, (rest[0], rest[1])
    except OSError:
        pass
    return found


def memory(name):
    """Returns the bytes of an entry of /proc/meminfo, or 0 if unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next((int(line.split()[1]) * 1024 for line in file
                         if line.startswith(name + ":")), 0)
    except OSError:
        return 0


def first_line(command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.decode(errors="replace").partition("\n")[0].strip() or "unknown"


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def identity(program, mpirun, directory):
    """Returns {name: value} of what must be equal for results to be comparable. On a shared file
    system a batch job may continue on another host of the same kind."""
    kind, device = file_system(directory)
    own = kind in LOCAL or device.startswith("/dev/")
    return {"host": os.uname().nodename if own else "any", "kernel": os.uname().release,
            "cpus": cpus(), "memory in GiB": round(memory("MemTotal") / (1 << 30)),
            "file system": f"{kind} on {device}", "mpirun": first_line([*mpirun, "--version"]),
            "lime-bench": digest(program), "user": "root" if os.geteuid() == 0 else "not root"}


def cpus():
    return len(os.sched_getaffinity(0))


def ranks_for(processors):
    """Returns 1, 2, 4 and so on to the number of processors, at least to 4."""
    most = min(max(4, processors), MAX_RANKS)
    return [1 << i for i in range(most.bit_length()) if 1 << i <= most]


def main_rank(ranks, processors):
    fit = [n for n in ranks if n <= max(2, processors)]
    return max(fit) if fit else min(ranks)


def bytes_limit(directory, ranks):
    """Returns the maximum bytes per rank: a file is a small part of memory and disk."""
    status = os.statvfs(directory)
    free = status.f_bavail * status.f_frsize
    limits = [MAX_BYTES, free // 32 // ranks]
    if memory("MemAvailable"):
        limits.append(memory("MemAvailable") // 8 // ranks)
    return min(limits)


def round_bytes(nbytes):
    """Rounds down to a power of two within the bounds."""
    nbytes = min(max(int(nbytes), MIN_BYTES), MAX_BYTES)
    return 1 << nbytes.bit_length() - 1


def make_size(ranks, main, nbytes, rounds=ROUNDS[0], stripe=0, unit=0.0, small=None):
    """Returns a Size whose lattices have nearly the same number of bytes."""
    volume = main * nbytes
    fits = [e for e in plan.EXTENTS if plan.lattice_bytes(e) <= volume] or [plan.EXTENTS[0]]
    compared = [e for e in plan.EXTENTS if plan.lattice_bytes(e) <= 4 * volume]
    return plan.Size(ranks=tuple(ranks), main=main, bytes=nbytes, extent=fits[-1],
                     extents=tuple(compared[-5:] or fits), small=small or fits[-1], unit=unit,
                     repetitions=3, rounds=rounds, stripe=stripe)


def predict(m, calibration):
    """Predicts the seconds of a measurement from the calibration."""
    moved = m.volume * calibration["seconds_per_byte"] + 2 * OPERATION_SECONDS + m.idle
    return calibration["startup"] + m.all_repetitions * len(m.backends) * moved


def total(size, calibration):
    return sum(predict(m, calibration) for study in plan.STUDIES
               for m in plan.measurements(study, size))


def fit_size(ranks, main, most, calibration, seconds, fixed=None):
    """Returns (bytes per rank, rounds) with which all studies end in time: first chooses the size
    of the data, then as many rounds as fit, or `fixed`."""
    nbytes, rounds = round_bytes(min(most, MAX_PLANNED_BYTES)), fixed or ROUNDS[0]

    def fits(size):
        return total(size, calibration) <= seconds * PLANNED_SHARE

    while nbytes > MIN_BYTES and not fits(make_size(ranks, main, nbytes, rounds)):
        nbytes >>= 1
    while not fixed and rounds < ROUNDS[1] and fits(make_size(ranks, main, nbytes, rounds + 1)):
        rounds += 1
    return nbytes, rounds


def calibration_arguments(nbytes):
    """Returns the arguments of a calibration run."""
    return ["--backend", "posix,lime,hdf5", *plan.region_options("disjoint", nbytes, 1 << 20),
            "--repetitions", "3", "--json", "-", "--quiet"]


def unit_arguments(extent):
    """Returns the arguments of the run that measures how long gather writes a result."""
    return ["--backend", "gather", *plan.lattice_options(extent, plan.RESULT), "--operations",
            "write", "--repetitions", "15", "--json", "-", "--quiet"]


def compute_calibration(answers, walls):
    """Computes the seconds to start and per byte from two runs that differ in size only, the
    smaller first. Their whole time counts: lime-bench also makes, compares and removes data."""
    moved = [sum(result["bytes"] * len(result["seconds"]) for result in answer["results"])
             for answer in answers]
    operations = sum(len(result["seconds"]) for result in answers[0]["results"])
    per_byte = max((walls[1] - walls[0]) / max(1, moved[1] - moved[0]), 2e-10)
    startup = walls[0] - operations * OPERATION_SECONDS - moved[0] * per_byte
    return {"startup": max(0.2, startup), "seconds_per_byte": per_byte}


def compute_unit(answer):
    return Sample([run["total"] for run in answer["results"][0]["seconds"]]).median


def describe(size):
    return (f"{size.main} ranks, {nbytes_text(size.bytes)} a rank, lattice "
            f"{size.extent}^3 x {2 * size.extent}, {size.rounds} rounds of {size.repetitions} "
            "repetitions")
