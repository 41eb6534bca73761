"""What the study runs on, and how large it may be there."""

import hashlib
import os
import subprocess

from . import plan
from .samples import Sample
from .words import size as nbytes_text

LOCAL = ("tmpfs", "overlay", "zfs", "btrfs", "ramfs")  # and what is on a device of this host
RANKS_MOST = 64
BYTES_LEAST, BYTES_MOST = 64 << 10, 1 << 30  # a rank
EACH = 0.03  # seconds for an operation on a file, whatever its size
FIRST = 2 << 20, 32 << 20  # bytes a rank of the runs that tell how fast this machine is
NOMINAL = 32 << 20  # bytes a rank; what time is left is better used by more rounds
ROUNDS = 2, 5
SHARE = 0.8  # of the time is planned for; the rest is for what goes slower than in calibration


def file_system(path):
    """(type, device) of what `path` is on, by the longest mount point above it."""
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
    """Bytes, by its name in /proc/meminfo; 0 if that cannot be told."""
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


def identity(program, mpirun, folder):
    """What must be the same for results to stand side by side: {name: value}, names for people.
    A job of a batch system may go on, on the same file system, on another host of its kind."""
    kind, device = file_system(folder)
    own = kind in LOCAL or device.startswith("/dev/")
    return {"host": os.uname().nodename if own else "any", "kernel": os.uname().release,
            "cpus": cpus(), "memory in GiB": round(memory("MemTotal") / (1 << 30)),
            "file system": f"{kind} on {device}", "mpirun": first_line([*mpirun, "--version"]),
            "lime-bench": digest(program), "user": "root" if os.geteuid() == 0 else "not root"}


def cpus():
    return len(os.sched_getaffinity(0))


def ranks_for(processors):
    """1, 2, 4 and so on, to the number of processors, and to 4 in any case."""
    most = min(max(4, processors), RANKS_MOST)
    return [1 << i for i in range(most.bit_length()) if 1 << i <= most]


def main_rank(ranks, processors):
    fit = [n for n in ranks if n <= max(2, processors)]
    return max(fit) if fit else min(ranks)


def room(folder, ranks):
    """Bytes a rank that memory and disk allow: a back end's file a small part of either."""
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    limits = [BYTES_MOST, free // 32 // ranks]
    if memory("MemAvailable"):
        limits.append(memory("MemAvailable") // 8 // ranks)
    return min(limits)


def rounded(nbytes):
    """Down to a power of two within the bounds."""
    nbytes = min(max(int(nbytes), BYTES_LEAST), BYTES_MOST)
    return 1 << nbytes.bit_length() - 1


def shape(ranks, main, nbytes, rounds=ROUNDS[0], stripe=0, unit=0.0, small=None):
    """A Size whose lattices come near to the same bytes."""
    volume = main * nbytes
    fits = [e for e in plan.EXTENTS if plan.lattice_bytes(e) <= volume] or [plan.EXTENTS[0]]
    compared = [e for e in plan.EXTENTS if plan.lattice_bytes(e) <= 4 * volume]
    return plan.Size(ranks=tuple(ranks), main=main, bytes=nbytes, extent=fits[-1],
                     extents=tuple(compared[-5:] or fits), small=small or fits[-1], unit=unit,
                     repetitions=3, rounds=rounds, stripe=stripe)


def predicted(m, calibration):
    """Seconds that a measurement will take, by the calibration."""
    moved = m.volume * calibration["seconds_per_byte"] + 2 * EACH + m.idle
    return calibration["startup"] + m.all_repetitions * len(m.backends) * moved


def total(size, calibration):
    return sum(predicted(m, calibration) for study in plan.STUDIES
               for m in plan.measurements(study, size))


def fitting(ranks, main, most, calibration, seconds, fixed=None):
    """(bytes a rank, rounds) with which all studies end in that time, by the calibration: first
    the data as large as need be, then as many rounds as there is time for, or as are `fixed`."""
    nbytes, rounds = rounded(min(most, NOMINAL)), fixed or ROUNDS[0]

    def fits(size):
        return total(size, calibration) <= seconds * SHARE

    while nbytes > BYTES_LEAST and not fits(shape(ranks, main, nbytes, rounds)):
        nbytes >>= 1
    while not fixed and rounds < ROUNDS[1] and fits(shape(ranks, main, nbytes, rounds + 1)):
        rounds += 1
    return nbytes, rounds


def first_arguments(nbytes):
    """Of a run that tells how fast this machine is."""
    return ["--backend", "posix,lime,hdf5", *plan.region_options("disjoint", nbytes, 1 << 20),
            "--repetitions", "3", "--json", "-", "--quiet"]


def unit_arguments(extent):
    """Of the run that tells how long gather needs for a result."""
    return ["--backend", "gather", *plan.lattice_options(extent, plan.RESULT), "--operations",
            "write", "--repetitions", "15", "--json", "-", "--quiet"]


def calibration_of(answers, walls):
    """From two runs that differ in size only, the smaller first: seconds to start, and for each
    byte that is moved. All of their time counts: lime-bench also makes, compares and removes
    data."""
    moved = [sum(result["bytes"] * len(result["seconds"]) for result in answer["results"])
             for answer in answers]
    operations = sum(len(result["seconds"]) for result in answers[0]["results"])
    a_byte = max((walls[1] - walls[0]) / max(1, moved[1] - moved[0]), 2e-10)
    startup = walls[0] - operations * EACH - moved[0] * a_byte
    return {"startup": max(0.2, startup), "seconds_per_byte": a_byte}


def unit_of(answer):
    return Sample([run["total"] for run in answer["results"][0]["seconds"]]).median


def describe(size):
    return (f"{size.main} ranks, {nbytes_text(size.bytes)} a rank, lattice "
            f"{size.extent}^3 x {2 * size.extent}, {size.rounds} rounds of {size.repetitions} "
            "repetitions")
