"""lime-bench: every back end and option on a few ranks, and errors."""

import concurrent.futures
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import benchlib
import hosts
import limetest
import mpitest
import users
from benchlib import BENCH, PATTERNS, SMALL, TWO_MODES, TestCase, data_at

# Both MPI-IO components of Open MPI; MPICH has one.
COMPONENTS = {"romio": ()} if mpitest.MPICH else {"ompio": ("--mca", "io", "ompio"),
                                                  "romio321": ("--mca", "io", "romio321")}
LATTICE = ("--lattice", "8x6x5x7", "--grid", "2x1x1x2")  # 4 ranks; 7 is not divisible
DATASETS = ("hdf5", "netcdf4", "pnetcdf")


class BackEnds(TestCase):
    """Each run tests many back ends."""

    def test_patterns(self):
        names = [name for name in benchlib.BACKENDS if name != "limefs-job"]
        for i, (component, options) in enumerate(COMPONENTS.items()):
            for k, pattern in enumerate(PATTERNS):
                for ranks in (1, 2, 4) if limetest.STRESS else ((1, 4, 2, 4)[(i + k) % 4],):
                    with self.subTest(component=component, ranks=ranks, pattern=pattern):
                        result = self.check_all(ranks, pattern, options=options, backends=names)
                        if "MPI 4" in result["system"]["mpi"]:
                            self.assertEqual(result["system"]["mpi_io"], component)
            names = ["mpiio", "subarray", "lime", *DATASETS]  # others do not use the component

    def test_independent(self):
        for i, (component, options) in enumerate(COMPONENTS.items()):
            for pattern in PATTERNS if limetest.STRESS else PATTERNS[i::len(COMPONENTS)]:
                with self.subTest(component=component, pattern=pattern):
                    result = self.check_all(4, pattern, "--independent", options=options,
                                            backends=["posix", *sorted(TWO_MODES)])
                    self.assertIs(result["parameters"]["collective"], False)

    def test_a_mount_with_a_job(self):
        if "limefs-job" in self.absent():
            self.skipTest(self.absent()["limefs-job"])
        result = self.measure(2, "-b", "limefs-job", "--job-ranks", 3, *SMALL)
        self.assertTrue(result["results"][1]["verified"])
        self.assertEqual(result["parameters"]["job_ranks"], 3)

    def test_layouts(self):
        """The layouts that the thesis on HDF5 and NetCDF compares."""
        cases = {
            ("--chunk", "3000"): {"hdf5", "netcdf4"},
            ("--chunk", "8k", "--unlimited"): {"hdf5", "netcdf4"},
            ("--unlimited", "--shape", "1d"): {"pnetcdf"},
            ("--alignment", "4k"): {*DATASETS, "lime"},
        }
        flat = {
            ("--shape", "2d"): set(DATASETS),
            ("--shape", "2d", "--chunk", "2k", "--unlimited"): {"hdf5", "netcdf4"},
            ("--shape", "2d", "--unlimited"): {"pnetcdf"},
        }
        components = itertools.cycle(COMPONENTS.items())  # in turn
        for k, pattern in enumerate(PATTERNS):
            for i, (args, able) in enumerate((cases if pattern == "lattice"
                                              else {**cases, **flat}).items()):
                if (i + k) % 3 and not limetest.STRESS:
                    continue  # each case with one or two patterns
                component, options = next(components)
                with self.subTest(component=component, pattern=pattern, args=args):
                    self.check_able(pattern, args, able, options)
            if limetest.STRESS:
                next(components)

    def check_able(self, pattern, args, able, options):
        able = able - benchlib.unsupported(pattern) - set(self.absent())
        if not able:
            return
        names = ",".join({*DATASETS, "lime", "posix"})
        result = self.measure(4, "-b", names, "-p", pattern, *SMALL, *args, options=options)
        self.assertEqual({one["backend"] for one in result["results"]}, able)
        self.assertTrue(all(one["verified"] for one in result["results"]))
        for one in result["skipped"]:
            self.assertRegex(one["reason"], "^(--[a-z]+: |not available: |it cannot do)")

    def test_lattices(self):
        """A grid that divides the fastest dimension, and extents that are not divisible."""
        for component, options in COMPONENTS.items():
            with self.subTest(component=component):
                result = self.measure(4, *LATTICE, "--warm", "--repetitions", 2, "--reorder", "-b",
                                      "posix,subarray,lime,gather,mpiio," + ",".join(DATASETS),
                                      options=options)
                self.assertTrue(all(one["verified"] for one in result["results"]))
                self.assertTrue(result["parameters"]["reorder"])
                self.assertEqual(len(result["results"][0]["seconds"]), 2)

    def test_other_options(self):
        for args in (("-b", "lime", "--checksum"), ("-b", "posix,mpiio,gather", "--no-fsync"),
                     ("-b", "lime", "--checksum", "-p", "disjoint", "--reorder"),
                     ("-b", "lime", "--checksum", "-p", "interleaved"),
                     ("-b", "posix", "--cold"), ("-b", "posix", "-p", "random", "--seed", "7"),
                     ("-b", "lime,posix", "--outputs", "3", "--compute", "0.01")):
            with self.subTest(args=args):
                result = self.measure(2, *SMALL, *args)
                self.assertTrue(all(one["verified"] for one in result["results"]))
        writes = [one for one in result["results"] if one["operation"] == "write"]
        self.assertEqual(len(writes), 2)
        for one in writes:
            self.assertGreater(one["seconds"][0]["compute"], 0)
            self.assertEqual(one["bytes"] % 3, 0)

    def test_hints(self):
        result = self.measure(2, *SMALL, "-b", "mpiio,lime,posix", "--hint", "cb_nodes=1")
        self.assertEqual(result["parameters"]["hints"], {"cb_nodes": "1"})
        self.assertEqual({one["backend"] for one in result["results"]}, {"mpiio", "lime"})
        self.assertEqual({one["hints"].get("cb_nodes") for one in result["results"]}, {"1"})
        self.assertIn("does not use MPI-IO", result["skipped"][0]["reason"])

    def test_several_hosts(self):
        if hosts.why_not():
            self.skipTest(hosts.why_not())
        cluster = hosts.Hosts("alpha", "beta")
        directory = self.tempdir()
        done = limetest.run([*cluster.enter(), *cluster.mpirun("alpha:2,beta:2"), "-n", "4", BENCH,
                             "-b", "posix,lime,limefs", *SMALL, "--reorder", "--quiet", "--json",
                             "-", os.path.join(directory, "f")], env=mpitest.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        result = json.loads(done.stdout)
        self.assertEqual(result["parameters"]["hosts"], 2)
        self.assertTrue(all(one["verified"] for one in result["results"]))
        self.assertEqual([one["backend"] for one in result["skipped"]], ["limefs"])
        self.assertRegex(result["skipped"][0]["reason"], "several hosts|not available")
        self.assertEqual(os.listdir(directory), [])


class Files(TestCase):
    def files(self, *backends, args=()):
        """Writes files with the available back ends; returns {back end: path}."""
        directory, absent = self.tempdir(), self.absent()
        names = [name for name in backends if name not in absent]
        self.run_bench(4, "-b", ",".join(names), *SMALL, "--operations", "write", "--keep", *args,
                       where=directory)
        return {name: os.path.join(directory, f"f.{name}" if len(names) > 1 else "f")
                for name in names}

    def place_of(self, path, offset):
        """Returns the offset in the file of a byte of the data."""
        found = limetest.read(path).find(data_at(offset, 64))
        self.assertGreaterEqual(found, 0)
        return found

    def test_wrong_bytes_are_found(self):
        for name in set(benchlib.BACKENDS) & set(self.absent()):
            print(f"# {name}: {self.absent()[name]}")
        paths = self.files("posix", "mpiio", "lime", "gather", *DATASETS, "limefs",
                          args=("--grid", "4x1x1x1"))
        read = ("-b", ",".join(paths), *SMALL, "--operations", "read", "--grid", "4x1x1x1")
        where = os.path.dirname(paths["posix"])
        results = self.measure(4, *read, where=where)["results"]
        self.assertEqual([one["verified"] for one in results], [True] * len(paths))
        offset = (2 * (results[0]["bytes"] // 4) + 4000) // 8 * 8
        old = {mpitest.flip(path, self.place_of(path, offset) + 5, 0x10) for path in paths.values()}
        self.assertEqual(len(old), 1)
        old = old.pop()
        for more, rank in ((), 2), (("--reorder",), 1):
            messages = self.run_bench(4, *read, *more, status=1, where=where).messages
            for backend, path in paths.items():
                self.assertIn(f"lime-bench: {path}: {backend}: rank {rank}: verify: wrong "
                              f"byte at offset {offset + 5} of the data: expected "
                              f"0x{old:02x}, found 0x{old ^ 0x10:02x}; 1 of its bytes", messages)

    def test_wrong_bytes_in_the_result(self):
        path = self.files("posix")["posix"]
        with open(path, "r+b") as file:
            file.write(bytes(100))
        done = self.run_bench(2, "-b", "posix", *SMALL, "--size", "96k", "--operations", "read",
                              "--json", path + ".json", status=1, where=os.path.dirname(path))
        self.assertIn(b"WRONG BYTES", done.stdout)
        result = json.loads(limetest.read(path + ".json"))
        self.assertIs(result["results"][0]["verified"], False)

    def test_wrong_checksum(self):
        path = self.files("lime", args=("--checksum",))["lime"]
        mpitest.flip(path, self.place_of(path, 8000))
        messages = self.run_bench(4, "-b", "lime", *SMALL, "--checksum", "--operations", "read",
                               status=1, where=os.path.dirname(path)).messages
        self.assertRegex(messages, r"lime: rank 0: checksum: [0-9a-f]{8} [0-9a-f]{8} of the data, ")

    def test_valid_container(self):
        for backends, args in ((("lime", "limefs"), ()), (("lime",), ("-p", "interleaved")),
                               (("lime",), ("--checksum", "--alignment", "4k"))):
            for backend, path in self.files(*backends, args=args).items():
                with self.subTest(backend=backend, args=args):
                    self.assertIn(b": good: ", self.run_ok(["lime", "check", path]))

    def test_disjoint_interleaved_and_random_are_one_file(self):
        self.assertEqual({limetest.read(self.files("posix", args=("-p", pattern))["posix"])
                          for pattern in ("disjoint", "interleaved", "random")},
                         {data_at(0, 4 * 48 * 1024)})

    def test_alignment(self):
        for path in self.files("lime", *DATASETS, args=("-p", "disjoint", "--alignment",
                                                       "4k")).values():
            self.assertEqual(self.place_of(path, 0) % 4096, 0, path)

    def test_outputs(self):
        path = self.files("posix", args=("--outputs", "3"))["posix"]
        self.assertEqual(sorted(os.listdir(os.path.dirname(path))), ["f.1", "f.2", "f.3"])

    def test_existing_files_stay(self):
        """lime-bench overwrites neither an empty file nor a link."""
        directory = self.tempdir()
        path = os.path.join(directory, "f")
        for make in (lambda: limetest.put(path, b"user's data"), lambda: limetest.put(path, b""),
                     lambda: os.symlink("nowhere", path), lambda: os.mkfifo(path)):
            make()
            before = os.lstat(path)
            messages = self.run_bench(2, "-b", "posix", *SMALL, status=2, where=directory).messages
            self.assertIn(f"lime-bench: {path}: write: exists already", messages)
            self.assertEqual(os.lstat(path)[:-3], before[:-3])
            self.assertEqual(os.listdir(directory), ["f"])
            os.unlink(path)

    def test_json_replaces_nothing(self):
        """--json changes no file that exists, is locked, holds data, or is not regular."""
        directory = self.tempdir()
        path, data = os.path.join(directory, "c"), limetest.container([("a", b"data")])
        limetest.put(path, data)
        limetest.put(os.path.join(directory, "data"), bytes(1 << 20))
        os.symlink("data", os.path.join(directory, "link"))
        os.mkfifo(os.path.join(directory, "fifo"))
        os.mkdir(os.path.join(directory, "d"))
        names = sorted(os.listdir(directory))
        small = ("-b", "posix", *SMALL)
        cases = [((*small, "--json", "c", "f"), "c: exists already; use -f"),
                 ((*small, "--json", "c", "-f", "f"), "c: lock: another process has this"),
                 ((*small, "--json", "f", "f"), "f: is also the data file"),
                 (("-b", "posix,lime", *SMALL, "--json", "d/../f.lime", "f"),
                  "f.lime: is also the data file"),
                 ((*small, "--operations", "read", "--json", "link", "--force", "data"),
                  "link: is also the data file"),
                 ((*small, "--json", "fifo", "-f", "f"), "fifo: not a regular file"),
                 ((*small, "--json", "d", "-f", "f"), "d: Is a directory")]
        with open(path, "r+b") as file:
            limetest.lock(file)
            for args, message in cases:
                with self.subTest(args=args):
                    done = mpitest.mpirun(1, self.bench, *map(str, args), "--cold-file",
                                          cwd=directory, env=benchlib.IMPATIENT)
                    self.assertEqual(done.returncode, 1, done)
                    self.assertRegex(done.stderr.decode(), "lime-bench: (d/../)?" + message)
                    self.assertEqual(sorted(os.listdir(directory)), names)
        self.assertEqual(limetest.read(path), data)
        self.run_bench(1, *small, "--json", path, "--force", "-q", where=directory)
        self.assertEqual(json.loads(limetest.read(path))["program"], "lime-bench")
        self.assertEqual(sorted(os.listdir(directory)), names)

    def test_json_of_a_killed_run(self):
        """A killed run leaves the old file or a complete new one; the next run removes temporary
        files. No run writes in another user's directory."""
        directory = self.tempdir()
        path, draw = os.path.join(directory, "c"), random.Random(46)
        command = [self.bench, "-b", "posix", *SMALL, "--cold-file", "--json", path, "--force",
                   "-q", os.path.join(directory, "f")]
        begun = time.monotonic()
        limetest.run(command, env=mpitest.environment_of_one(), check=True)
        took = time.monotonic() - begun
        for _ in range(200 if limetest.STRESS else 8):
            limetest.put(path, b"old")
            with subprocess.Popen(command, env=mpitest.environment_of_one(),
                                  stderr=subprocess.DEVNULL) as process:
                time.sleep(draw.uniform(0, 1.1 * took))
                process.kill()
            found = limetest.read(path)
            self.assertTrue(found == b"old" or json.loads(found)["program"] == "lime-bench")
        limetest.run(command, env=mpitest.environment_of_one(), check=True)
        self.assertEqual([name for name in os.listdir(directory) if ".lime-tmp-" in name], [])
        users.reach(self, directory)
        if os.geteuid() == 0:
            limetest.put(path, b"old")
            os.chmod(directory, 0o755)
            theirs = self.tempdir()
            os.chmod(theirs, 0o777)
            done = limetest.run([*command[:-1], os.path.join(theirs, "f")],
                                env=mpitest.environment({"TMPDIR": theirs}), user=54321,
                                group=54321, extra_groups=[])
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(b"/c: open: Permission denied", done.stderr)
            self.assertEqual(limetest.read(path), b"old")

    def test_errors_have_messages(self):
        directory = self.tempdir()
        for args, message in (
                (("-b", "posix", "--operations", "read"), "posix: rank 0: open: No such file"),
                (("-b", "lime", "--operations", "read"), "lime: rank 0: open: "),
                (("-b", "posix", "--json", f"{directory}/no/json"), "json: open: No such")):
            with self.subTest(args=args):
                self.assertIn(message, self.run_bench(2, *SMALL, *args, status=1).messages)
        limetest.put(os.path.join(directory, "f"), bytes(1000))
        for backend, message in (("posix", "read: the file ends at byte 1000"),
                                 ("lime", "lime: rank 0: Lemon: "), ("hdf5", "open: H5F")):
            with self.subTest(backend=backend):
                if backend not in self.absent():
                    messages = self.run_bench(1, "-b", backend, *SMALL, "--operations", "read",
                                              status=1, where=directory).messages
                    self.assertIn(message, messages)


class Output(TestCase):
    def test_json(self):
        result = self.measure(2, "-b", "posix,lime", "--repetitions", 3, "--size", "64k")
        self.assertEqual(result["program"], "lime-bench")
        self.assertRegex(result["version"], r"^\d+\.\d+\.\d+$")
        self.assertRegex(result["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        system = result["system"]
        self.assertRegex(system["mpi"], r"^(Open MPI|MPICH) \d")
        for name, kind in (("mpi_io", str), ("libraries", dict), ("host", str), ("kernel", str),
                           ("cpus", int), ("memory_bytes", int)):
            self.assertIsInstance(system[name], kind, name)
        self.assertEqual(set(system["file_system"]),
                         {"type", "block_bytes", "stripe_bytes", "stripe_count"})
        parameters = {"ranks": 2, "pattern": "lattice", "block_bytes": None, "segments": None,
                      "site_bytes": 576, "collective": True, "alignment": 0, "chunk": 0,
                      "unlimited": False, "fsync": True, "reorder": False, "cold": True,
                      "hints": {}, "repetitions": 3, "seed": 1, "checksum": False}
        self.assertLessEqual(parameters.items(), result["parameters"].items())
        whole = 576
        for extent in result["parameters"]["lattice"]:
            whole *= extent
        self.assertEqual([(one["backend"], one["operation"], one["bytes"])
                          for one in result["results"]],
                         [(name, operation, whole) for name in ("posix", "lime")
                          for operation in ("write", "read")])
        for one in result["results"]:
            self.assertEqual(len(one["seconds"]), 3)
            speeds = [whole / seconds["total"] for seconds in one["seconds"]]
            for seconds in one["seconds"]:
                self.assertEqual(set(seconds), {"open", "transfer", "close", "total"})
                self.assertLessEqual(max(seconds["open"], seconds["transfer"]), seconds["total"])
            for name, value in (("min", min(speeds)), ("max", max(speeds)),
                                ("mean", sum(speeds) / 3), ("median", sorted(speeds)[1])):
                self.assertAlmostEqual(one["bytes_per_second"][name] / value, 1, places=5)
            mean = sum(speeds) / 3
            deviation = (sum((speed - mean) ** 2 for speed in speeds) / 2) ** 0.5
            self.assertAlmostEqual(one["bytes_per_second"]["deviation"] / deviation, 1, places=4)
        self.assertEqual((result["skipped"], result["failed"]), ([], []))

    def test_text_and_json_in_one_run(self):
        done = self.run_bench(2, "-b", "posix,subarray", "-p", "disjoint", *SMALL, "--json", "-")
        result = json.loads(done.stdout)
        speed = result["results"][0]["bytes_per_second"]["median"] / 1e6
        self.assertRegex(done.messages, rf"(?m)^posix +write +{speed:.{int(speed < 99.95)}f} ")
        self.assertIn("\n  subarray    it cannot do the disjoint pattern\n", done.messages)
        self.assertIn("\nEvery byte that was read is right.\n", done.messages)
        self.assertNotIn("\r", done.messages)

    def test_nothing_but_the_table(self):
        done = self.run_bench(1, "-b", "posix", *SMALL)
        self.assertEqual(done.messages, "")
        self.assertTrue(all(len(line) <= 80 for line in done.stdout.decode().splitlines()))
        self.assertEqual(self.run_bench(1, "-b", "posix", *SMALL, "--quiet").stdout, b"")

    def test_help(self):
        done = mpitest.mpirun(2, BENCH, "--help")
        text = done.stdout.decode()
        self.assertEqual((done.returncode, text.count("\nusage: ") + text.startswith("usage: ")),
                         (0, 1))
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))
        self.assertIn(b"lime-bench (limefs) ", mpitest.mpirun(2, BENCH, "--version").stdout)

    def test_usage(self):
        file = os.path.join(self.tempdir(), "f")
        cases = [
            ((), "usage: "), ((file, file), "usage: "), (("--nonsense", file), "unknown option"),
            (("-z", file), "unknown option"), (("--size",), "requires a value"),
            (("-b", "nfs", file), "unknown back end"), (("-p", "star", file), "(disjoint, "),
            (("--size", "0", file), "(1 to 1024T)"), (("--size", "4x", file), "value '4x'"),
            (("--size", "99999999T", file), "value"), (("--size", "-1", file), "value '-1'"),
            (("--lattice", "4x4x4", file), "(4 numbers, as in"),
            (("--lattice", "4x4x4x4", "--size", "1M", file), "give one of"),
            (("--grid", "2x2x1x1", file), "--grid: 4 ranks, but there are 1"),
            (("-p", "disjoint", "--lattice", "4x4x4x4", file), "for the lattice pattern only"),
            (("-p", "disjoint", "--segments", "2", file), "the disjoint pattern has one"),
            *((("-p", pattern, "--block-size", "4k", "--transfer-size", "8k", file), message)
              for pattern, message in (("disjoint", "larger than"),
                                       ("interleaved", "is one transfer"))),
            (("--independent", "--collective", file), "give one of"),
            (("-b", "posix", "--job-ranks", "2", file), "limefs-job only"),
            (("-b", "posix", "--checksum", file), "posix: --checksum: "),
            (("-b", "posix", "--collective", file), "posix: --collective: "),
            (("-b", "lime", "--independent", file), "lime: --independent: "),
            (("-b", "lime", "-p", "random", file), "lime: it cannot do the random pattern"),
            (("-b", "lime", "--alignment", "100", file), "lime: --alignment: "),
            (("-b", "subarray", "-p", "disjoint", file), "subarray: it cannot do"),
        ]
        def run(case):
            return limetest.run([BENCH, *case[0]], env=mpitest.environment_of_one())

        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # mostly waiting for MPI
            results = list(pool.map(run, cases))
        for (args, message), done in zip(cases, results):
            with self.subTest(args=args):
                self.assertEqual(done.returncode, 2)
                self.assertIn(message, mpitest.without_noise(done.stderr.decode()))
                self.assertEqual(done.stdout, b"")
        self.assertFalse(os.path.exists(file))


class Interruption(TestCase):
    """Long runs that are stopped as soon as there is something to clean up."""

    def start(self, command):
        directory = self.tempdir()
        backend = "posix" if "limefs" in self.absent() else "limefs"
        process = subprocess.Popen([*command, BENCH, "-b", backend, "--size", "4M", "--repetitions",
                                    "1000", "--warm", os.path.join(directory, "f")],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   env=mpitest.environment())
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def is_under_way():
            return process.poll() is not None or (
                limetest.mounts_under(directory) if backend == "limefs" else os.listdir(directory))

        self.assertTrue(limetest._wait(is_under_way, 60))
        self.assertIsNone(process.poll())
        return process, directory

    def ended(self, process, directory, at_once=True):
        status = process.wait(timeout=120)
        if not at_once:
            limetest._wait(lambda: not os.listdir(directory), 60)
        self.assertEqual(limetest.mounts_under(directory), [])
        self.assertEqual(os.listdir(directory), [])
        return status

    def ranks_of(self, process):
        """The ranks of mpirun, in any order."""
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            children = [int(pid) for pid in file.read().split()]
        return [pid for pid in children
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "lime-bench"]

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                process, directory = self.start([])
                process.send_signal(number)
                self.assertEqual(self.ended(process, directory), 128 + number)

    def test_killed(self):
        process, directory = self.start([])
        process.kill()
        self.ended(process, directory, at_once=False)

    def test_mpirun(self):
        if mpitest.MPICH:
            self.skipTest("Open MPI's mpirun is the parent of the ranks")
        command = [mpitest.MPIRUN, "--oversubscribe", "-n", "2"]
        process, directory = self.start(command)
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(self.ended(process, directory, at_once=False), 0)
        process, directory = self.start(command)
        os.kill(self.ranks_of(process)[0], signal.SIGINT)
        self.assertEqual(self.ended(process, directory, at_once=False), 130)


if __name__ == "__main__":
    limetest.main()
