"""lime check, info and stage on many files in parallel; results appear in the order of the list."""
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import jobtest
import limetest
from limetest import header, record, run
import scidac

DIMS = (4, 4, 4, 8)
# Sites of 576 bytes, all in a hole, so that the sum takes a while.
HUGE = (64, 64, 64, 512)


def huge(path, dims=HUGE):
    """Writes a configuration of 72 GiB, or of these dimensions, with a wrong checksum."""
    sites = dims[0] * dims[1] * dims[2] * dims[3]
    head = record("ildg-format", scidac.ildg_format(dims), 1, 0)
    head += header("ildg-binary-data", sites * 576, 0, 0)
    with open(path, "wb") as out:
        out.write(head)
        out.seek(sites * 576, os.SEEK_CUR)
        out.write(record("scidac-checksum", scidac.checksum_xml((1, 2)), 0, 1))


def workers(process):
    return jobtest.children_of(process.pid)


def reads(pid, path):
    try:
        return any(os.path.realpath(f"/proc/{pid}/fd/{fd}") == path
                   for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def threads(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def has_stopped(pid):
    try:
        return not jobtest.is_alive(pid) or jobtest.has_stopped(pid)
    except OSError:  # it has ended
        return True


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Several(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = self.tempdir()

    def put(self, name, data):
        path = os.path.join(self.directory, name)
        limetest.put(path, data)
        return path

    def configurations(self, count):
        good = scidac.gauge(DIMS, scidac.field(DIMS, 576, seed=1))
        at = good.index(b"ildg-binary-data") + 3000
        bad = good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
        return [self.put(f"c{i:04}", bad if i % 7 == 3 else good) for i in range(count)]

    def limited(self, limit, *args, **options):
        """Runs lime with a limit of ulimit."""
        return run(self.limit(limit, *args), timeout=300, **options)

    @staticmethod
    def limit(limit, *args):
        return ["sh", "-c", f'ulimit {limit} && exec "$0" "$@"', limetest.program("lime"), *args]

    def test_order(self):
        """lime prints for each file what it prints for that file alone, in list order."""
        paths = self.configurations(40)
        alone = [run(["lime", "check", "--data", path]) for path in paths]
        for threads in "1", "2", "7", "200":
            both = run(["lime", "check", "--data", "-j", threads, *paths], stderr=subprocess.STDOUT)
            lines = both.stdout.splitlines()
            want = [line for one in alone for line in (one.stderr + one.stdout).splitlines()]
            self.assertEqual(lines[:-1], want)
            self.assertEqual(both.returncode, 1)
            self.assertIn(b"40 files: 34 good, 6 bad, 0 unverified", lines[-1])

    def test_much_output_of_each_file(self):
        """A file has more output than a worker can buffer before its turn."""
        noise = record("t", b"", 0, 1) * 6000
        paths = [self.put(f"n{i}", noise) for i in range(12)]
        done = run(["lime", "check", "-j", "4", *paths], timeout=300, stderr=subprocess.STDOUT)
        whose = [line.split(b": ")[1] for line in done.stdout.splitlines()
                 if line.startswith(b"lime: ")]
        self.assertEqual(whose, [path.encode() for path in paths for _ in range(6000)])

    def test_a_worker_that_is_killed(self):
        """A killed worker affects only its own file, which lime reports in its turn."""
        paths = self.configurations(30)
        bad = os.path.join(self.directory, "b-huge")
        huge(bad)
        with subprocess.Popen([limetest.program("lime"), "check", "--data", "-r", "-j", "2",
                               self.directory], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as check:
            found = limetest._wait(
                lambda: [pid for pid in workers(check) if reads(pid, bad)], 60)
            os.kill(found[0], signal.SIGKILL)
            out = check.communicate(timeout=300)[0].splitlines()
        self.assertEqual(check.returncode, 2)
        self.assertEqual(out[0].decode(), f"lime: {bad}: check: killed by signal 9")
        self.assertEqual(sum(b"checksums: 1 right" in line for line in out), 26)
        self.assertIn(b"31 files: 26 good, 4 bad, 0 unverified, 1 unreadable", out[-1])
        self.assertEqual(len(paths), 30)

    def lose_a_worker(self, command, *args):
        """Kills the worker that reads the second file; returns paths and the JSON output."""
        text = b"plaquette = 0.5\n"
        small = record("xlf-info", text, 0, 1)
        paths = [self.put(f"n{i}", small * (300000 if i == 1 else 2000)) for i in range(3)]
        with subprocess.Popen([limetest.program("lime"), command, "--json", "-j", "2", *args],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            found = limetest._wait(
                lambda: [pid for pid in workers(process) if reads(pid, paths[1])], 60)
            os.kill(found[0], signal.SIGKILL)
            out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 2)
        self.assertIn(f"{paths[1]}: {command}: killed by signal 9", err.decode())
        return paths, out

    def test_output_is_the_input(self):
        """The exit status is 1, and the file stays."""
        path = self.configurations(1)[0]
        before = limetest.read(path)
        for command in (["convert", "-f", "--to", "ildg", path, path],
                        ["convert", "-f", "--to", "ildg", "--name", "{ext}c0000", path,
                         self.directory], ["pack", "-f", "-o", path, "-t", "x", path],
                        ["append", "-t", "x", path, path], ["replace", path, "1", path],
                        ["stage", "-f", path, path], ["refs", "-f", "-o", path, path]):
            done = run(["lime", *command])
            self.assertEqual((done.returncode, command), (1, command), done)
            self.assertNotIn(b"no file has", done.stderr)
            self.assertEqual(limetest.read(path), before)

    def test_interrupted(self):
        """lime prints the results of the files that it has examined, and ends by the signal."""
        good, = self.configurations(1)
        slow = os.path.join(self.directory, "huge")
        huge(slow)
        command = [limetest.program("lime"), "check", "--data", "-j", "1", good, slow, good]
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as check:
                found = limetest._wait(
                    lambda: [pid for pid in workers(check) if reads(pid, slow)], 60)
                check.send_signal(number)
                out, errors = check.communicate(timeout=60 * limetest.SLOWNESS)
            self.assertEqual(check.returncode, -number)
            self.assertFalse(jobtest.is_alive(found[0]))
            self.assertEqual(out.count(b"\n"), 1)
            self.assertIn(b"checksums: 1 right", out)
            self.assertEqual(errors, b"lime: interrupted; 1 file: 1 good, 0 bad, 0 unverified, 0 "
                                     b"unreadable, 0 skipped, 2 not examined\n")

    def test_a_lost_worker_in_json(self):
        """The file of a killed worker has one object with the reason, without partial output."""
        why = "killed by signal 9"
        names = [os.path.join(self.directory, f"n{i}") for i in range(3)]
        for command in "info", "check":
            paths, out = self.lose_a_worker(command, *names)
            files = limetest.json_lines(out)
            self.assertEqual([one["file"] for one in files], paths)
            self.assertEqual(files[1]["error"], why)
            alone = run(["lime", command, "--json", paths[0]]).stdout
            self.assertEqual(files[0], json.loads(alone))
            self.assertEqual([one["status"] for one in files], ["bad", "unreadable", "bad"])
        paths, out = self.lose_a_worker("check", "-r", self.directory)
        lines = limetest.json_lines(out)
        self.assertEqual(lines[1], {"file": paths[1], "status": "unreadable", "error": why})
        summary = lines[-1]["summary"]
        self.assertEqual((summary["bad"], summary["unreadable"]), (2, 1))

    def test_workers_end_with_the_command(self):
        """Workers end when the command is killed, even if they are stopped."""
        bad = self.put("first", scidac.gauge(DIMS, scidac.field(DIMS, 576)))
        for name in "huge1", "huge2":
            huge(os.path.join(self.directory, name))
        with subprocess.Popen([limetest.program("lime"), "check", "--data", "-r", self.directory],
                              stdout=subprocess.DEVNULL) as check:
            path = os.path.join(self.directory, "huge1")
            found = limetest._wait(
                lambda: [pid for pid in workers(check) if reads(pid, path)], 60)
            os.kill(found[0], signal.SIGSTOP)  # the worker must not finish first
            check.kill()
        self.addCleanup(kill, found[0])
        self.assertTrue(limetest._wait(lambda: not os.path.exists(f"/proc/{found[0]}"), 20))
        self.assertTrue(os.path.exists(bad))

    @limetest.not_with_thread_sanitizer
    def test_no_memory_for_the_output(self):
        """lime reports a file whose output does not fit in memory, also as an object in JSON."""
        paths = self.configurations(3)
        for command in "check", "info":
            done = self.limited("-f 0", command, "--json", "-j", "2", *paths)
            self.assertEqual(done.returncode, 2)
            why = "not enough memory for its output"
            self.assertEqual(done.stderr.decode(), "".join(
                f"lime: {path}: {command}: {why}\n" for path in paths))
            self.assertEqual([(one["file"], one["error"]) for one in limetest.json_lines(done.stdout)],
                             [(path, why) for path in paths])

    def assert_same_with(self, limit):
        """lime prints the same with the limit as without it."""
        paths = self.configurations(12)
        paths.insert(3, self.put("noise", record("xlf-info", b"plaquette = 0.5\n", 0, 1) * 3000))
        other = self.put("notes.txt", b"no container")
        for args in (["check"], ["check", "--json"], ["check", "-q", "-r"], ["info"],
                     ["info", "--json"], ["info", "--json", "-r"]):
            names = [self.directory] if "-r" in args else [other, *paths]
            command = [limetest.program("lime"), *args, *names]
            both = run(command, stderr=subprocess.STDOUT)
            done = run([*limit, *command], stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, both.returncode, args)
            self.assertTrue(done.stdout == both.stdout, args)

    def test_few_descriptors(self):
        self.assert_same_with(["prlimit", "--nofile=12"])

    @limetest.unittest.skipUnless(os.geteuid() == 0, "needs root")
    @limetest.unittest.skipIf(limetest.SANITIZED, "a sanitizer begins a process")
    def test_no_right_to_start_a_process(self):
        os.chmod(self.directory, 0o755)
        self.assert_same_with(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups",
                               "prlimit", "--nproc=1"])

    def test_error_in_a_directory(self):
        """lime reports the error and processes the files that it has found."""
        self.configurations(5)
        fault = faults.Faults(self.directory)
        for command, status in ("check", 2), ("info", 2), ("refs", 2):
            fault.arm(faults.LIME, "readdir", 4, errno.EIO)
            done = run(["lime", command, "-r", self.directory], env=fault.environment())
            self.assertEqual(fault.struck, 1, command)
            self.assertEqual(done.returncode, status, command)
            self.assertIn(f"lime: {self.directory}: read: Input/output error", done.stderr.decode())
        fault.arm(faults.LIME, "readdir", 4, errno.EIO)
        done = run(["lime", "stage", "-r", self.directory, self.tempdir()], env=fault.environment())
        self.assertEqual((done.returncode, fault.struck), (1, 1))
        self.assertIn(f"lime: {self.directory}: not copied: Input/output error",
                      done.stderr.decode())

    def test_one_at_a_time(self):
        noise = record("t", b"", 0, 1) * 6000
        paths = [self.put(f"n{i}", noise) for i in range(6)]
        with subprocess.Popen([limetest.program("lime"), "check", "-j", "1", *paths],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as check:
            check.stderr.read(1)  # all workers have started
            self.assertEqual(len(workers(check)), 1)
            check.communicate(timeout=300)

    def threads_at_once(self, paths, processors):
        """Returns the largest number of threads that the workers of lime check --data had."""
        most = 0
        memory = faults.Faults(self.directory)  # uncached files get more threads
        memory.arm(faults.LIME, "cachestat", 1, errno.ENOSYS, lasts=True)
        with subprocess.Popen([limetest.program("lime"), "check", "--data", "-q", "-j",
                               str(processors), *paths], env=memory.environment()) as check:
            while check.poll() is None:
                most = max(most, self.threads_now(workers(check)))
                time.sleep(0.002)
        return most

    def threads_now(self, pids):
        """Counts the threads of these processes while all of them are stopped."""
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        try:
            for pid in pids:
                limetest._wait(lambda p=pid: has_stopped(p), 10)
            return sum(threads(pid) for pid in pids)
        finally:
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)

    @limetest.not_with_thread_sanitizer
    def test_threads(self):
        """lime divides the processors among the files that it reads at the same time."""
        path = os.path.join(self.directory, "first")
        huge(path, (32, 32, 32, 16))
        paths = [path]
        for i in range(7):
            paths.append(path + str(i))
            os.link(path, paths[-1])
        self.assertLessEqual(self.threads_at_once(paths, 8), 8)
        most = 0
        while most < 4:  # all threads may have started and ended between two checks
            most = self.threads_at_once(paths[:2], 8)
            self.assertLessEqual(most, 8)

    def test_usage(self):
        name = self.put("f", record("t", b"", 1, 1))
        for command in "check", "info", "refs":
            for args, why in (([], "no FILE given"), (["-r"], "no FILE given"),
                              (["-0", name], "-0 requires --files-from")):
                self.fails(["lime", command, *args], f"lime: {command}: {why}", status=2, out=b"")
            done = run(["lime", command, "--files-from", name + "-not"])
            self.assertEqual((done.returncode, done.stdout), (2, b""))
        for command in "check", "info", "checksum":
            for number in "0", "x", "65536", "":
                self.fails(["lime", command, "-j", number, name],
                           f"-j: invalid value '{number}' (a number from 1 to 65535)", status=2,
                           out=b"")

    def test_info(self):
        paths = self.configurations(20)
        self.put("notes.txt", b"no container")
        alone = [run(["lime", "info", path]).stdout for path in paths]
        total = b"\n\n%d files: 20 good, 0 bad, 0 unverified, 0 unreadable, %d skipped\n"
        self.assertEqual(run(["lime", "info", *paths]).stdout,
                         b"\n\n".join(alone) + total % (20, 0))
        for args in (["-r", self.directory], ["-j", "3", "-r", self.directory]):
            done = run(["lime", "info", *args])
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(done.stdout, b"\n\n".join(alone) + total % (21, 1))
        names = "\0".join(reversed(paths)).encode()
        done = run(["lime", "info", "--json", "-0", "--files-from", "-"], input=names)
        self.assertEqual([one["file"] for one in limetest.json_lines(done.stdout)[:-1]],
                         paths[::-1])
        done = run(["lime", "info", "--json", "-r", self.tempdir()])
        self.assertEqual((done.returncode, json.loads(done.stdout)["summary"]["files"]), (0, 0))

    def test_empty_list(self):
        """The exit status is 0, except of lime verify for an operand: the mount may be missing."""
        empty, new = self.put("empty", b""), os.path.join(self.tempdir(), "new")
        for command in (["ls"], ["info"], ["check"], ["checksum"], ["checksum", "--cksum"],
                        ["repair"], ["lfn"], ["verify"], ["convert", "--to", "nersc"],
                        ["refs"], ["refs", "-o", new], ["stage"]):
            target = [new] if command[0] in ("convert", "stage") else []
            done = run(["lime", *command, "--files-from", empty, *target])
            self.assertEqual((done.returncode, command), (0, command), done)
        self.assertFalse(os.path.exists(new))
        self.fails(["lime", "verify", "-r", self.tempdir()], "not in a limefs mount; mount it with",
                   status=2)

    def test_list_with_cr_lf(self):
        """A CR is removed, unless it is a part of the name."""
        paths = self.configurations(2) + [self.put("return\r", b"")]
        lists = "\r\n".join(paths[:2] + ["", paths[2], ""]).encode()
        done = run(["lime", "info", "--json", "--files-from", "-"], input=lists)
        self.assertEqual([one["file"] for one in limetest.json_lines(done.stdout)[:-1]], paths)

    def test_info_of_another_file(self):
        paths = self.configurations(2)
        other = self.put("notes.txt", b"no container")
        self.fails(["lime", "info", paths[0], other, paths[1]], "notes.txt: not a LIME container",
                   status=2)
        done = run(["lime", "info", "--json", paths[0], other, paths[1]])
        self.assertEqual([one["status"] for one in limetest.json_lines(done.stdout)],
                         ["good", "unreadable", "good"])

    def test_stage(self):
        """The first file takes longest; failed files keep their place in the list."""
        first = self.put("a-long", scidac.gauge((16, 16, 16, 16),
                                                scidac.field((16, 16, 16, 16), 576, seed=3)))
        paths = self.configurations(30)
        target = self.tempdir()
        done = run(["lime", "stage", "--json", "-r", self.directory + "/", target])
        lines = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
        self.assertEqual([os.path.basename(one["target"]) for one in lines],
                         [os.path.basename(path) for path in [first] + paths])
        self.assertEqual([i for i, one in enumerate(lines) if one["action"] == "failed"],
                         [4, 11, 18, 25])


if __name__ == "__main__":
    limetest.main()
