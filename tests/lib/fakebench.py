#!/usr/bin/env python3
"""fakebench - a fake lime-bench and mpirun for the tests of scripts/study: no MPI, no I/O, numbers
that the test chooses.

As `mpirun [OPTION...] -n N PROGRAM ARGUMENT...` it prints the JSON of a lime-bench on N ranks. A
speed is that of the back end (below), times the factors of all rules that match. Environment
variables:

FAKEBENCH  a JSON file: {"rules": [[{"backend": "lime", "operation": "write", ...}, factor], ...],
           "noise": 0.02, "speeds": {"lime": 1e9, ...}, "absent": {"pnetcdf": "why"},
           "fail": {"hdf5": "message"}, "abort": "message",
           "hang": ["text of the command", ...], "started": FILE, "calls": FILE}
           A rule's conditions test `parameters`, `backend`, `operation`, and `first` (true for
           the first repetition). noise: relative to the speed.
           fail: these back ends give no result, and the exit status is 1; abort: no JSON at all.
           hang: writes its pid to `started` and waits for SIGTERM if the command has all of the
           texts. calls: appends a line for each call to that file.
"""

import json
import math
import os
import random
import signal
import sys

SPEEDS = {"posix": 800e6, "mpiio": 760e6, "subarray": 500e6, "lime": 700e6, "gather": 350e6,
          "hdf5": 600e6, "netcdf4": 580e6, "pnetcdf": 560e6, "limefs": 450e6, "limefs-job": 420e6}
LATTICE_ONLY = ("subarray",)
FLAGS = ("--independent", "--collective", "--unlimited", "--fsync", "--no-fsync", "--reorder",
         "--cold", "--warm", "--checksum", "--keep", "--quiet")
UNITS = {"k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def mpirun(args):
    if args[:1] == ["--version"]:
        print("mpirun (Fake MPI) 1.0")
        return
    at = args.index("-n")
    os.environ["FAKE_RANKS"] = args[at + 1]
    lime_bench(args[at + 3:])


def parse(args):
    options, rest = {}, []
    args = iter(args)
    for arg in args:
        if arg in FLAGS:
            options[arg[2:]] = True
        elif arg.startswith("--"):
            options[arg[2:]] = next(args)
        else:
            rest.append(arg)
    return options, rest


def parameters(options):
    ranks = int(os.environ["FAKE_RANKS"])
    lattice = [int(n) for n in options["lattice"].split("x")] if "lattice" in options else None
    site = int(options.get("site-bytes", 576))
    nbytes = math.prod(lattice) * site // ranks if lattice else size(options["size"])
    return {"ranks": ranks, "pattern": options["pattern"], "block_bytes": nbytes,
            "collective": "collective" in options,
            "repetitions": int(options.get("repetitions", 5))}


def skipped(backend, config, params):
    """Returns why this back end cannot do that; None if it can."""
    if backend in config.get("absent", {}):
        return config["absent"][backend]
    if backend in LATTICE_ONLY and params["pattern"] != "lattice":
        return f"{backend} moves lattices only"
    if backend == "posix" and params["collective"]:
        return "posix has no collective I/O"
    return None


def measured(backend, operation, config, params, options):
    seconds = []
    nbytes = params["block_bytes"] * params["ranks"] * int(options.get("outputs", 1))
    compute = float(options.get("compute", 0)) * int(options.get("outputs", 1))
    dice = random.Random(repr((backend, operation, sorted(options.items()))))
    for repetition in range(params["repetitions"]):
        facts = {**params, "backend": backend, "operation": operation, "first": repetition == 0}
        speed = config.get("speeds", SPEEDS).get(backend, 500e6) * (2 if operation == "read" else 1)
        for conditions, factor in config.get("rules", []):
            if all(facts.get(name) == value for name, value in conditions.items()):
                speed *= factor
        noise = config.get("noise", 0.02)
        io = nbytes / (speed * dice.uniform(1 - noise, 1 + noise))
        seconds.append({"open": 0.001, "transfer": io, "close": 0.0,
                        "compute": compute, "total": io + compute})
    return {"backend": backend, "operation": operation, "bytes": nbytes, "seconds": seconds,
            "verified": True}


def hang(started, path):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(path, "wb") as file:
        file.write(b"data of a run that is ended")
    with open(started + ".part", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.rename(started + ".part", started)
    while True:
        signal.pause()


def lime_bench(args):
    config = {}
    if os.environ.get("FAKEBENCH"):
        with open(os.environ["FAKEBENCH"], encoding="utf-8") as file:
            config = json.load(file)
    command = " ".join(args)
    if config.get("calls"):
        with open(config["calls"], "a", encoding="utf-8") as file:
            file.write(command + "\n")
    options, rest = parse(args)
    if config.get("hang") and all(text in command for text in config["hang"]):
        hang(config["started"], rest[0])
    params = parameters(options)
    results, left_out, status = [], [], 0
    if config.get("abort"):
        sys.exit(f"lime-bench: {config['abort']}")
    backends = options["backend"].split(",")
    for backend in backends:
        if backend in config.get("fail", {}):
            print(f"lime-bench: {rest[0]}: {backend}: {config['fail'][backend]}", file=sys.stderr)
            status = 1
            continue
        if reason := skipped(backend, config, params):
            left_out.append({"backend": backend, "reason": reason})
            continue
        for operation in options.get("operations", "write,read").split(","):
            results.append(measured(backend, operation, config, params, options))
    if len(left_out) == len(backends):
        for item in left_out:
            print(f"lime-bench: {item['backend']}: {item['reason']}", file=sys.stderr)
        sys.exit(2)
    json.dump({
        "program": "lime-bench", "version": "0.1.0", "time": "2026-11-22T16:00:00Z",
        "system": {"mpi": "Fake MPI 1.0", "mpi_io": "fake",
                   "libraries": {"hdf5": "1.10.8", "netcdf": "4.9.0"}, "host": "node <1>",
                   "kernel": "6.1", "cpus": 2, "memory_bytes": 24 << 30,
                   "file_system": {"type": "ext4", "block_bytes": 4096, "stripe_bytes": None,
                                   "stripe_count": None}},
        "parameters": params, "results": results, "skipped": left_out}, sys.stdout)
    sys.stdout.flush()
    sys.exit(status)


if __name__ == "__main__":
    if os.path.basename(sys.argv[0]) == "mpirun":
        mpirun(sys.argv[1:])
    else:
        lime_bench(sys.argv[1:])
