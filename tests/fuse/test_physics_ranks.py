"""lime check --physics of a mount: a job's ranks measure the configuration."""

import json
import os
import signal
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import celllib
import limetest
import scidac
from fakejob import PHYSICS, FakeJob, error
from test_ranks import TestCase, pids_of, serving, stats

SHAPES = [((24, 8, 10, 12), 64), ((6, 5, 7, 61), 32), ((40, 40, 40, 3), 64), ((7, 5, 3, 1), 64),
          ((20, 40, 44, 6), 32)]
PARAMETERS = 18 * 4


class Physics(TestCase):
    timeout = 30.0

    def setUp(self):
        TestCase.records = 0
        super().setUp()

    def configuration(self, dims, precision, bad=()):
        """bad: (site, direction, value) of links whose first number is another one."""
        extents = ",".join(map(str, dims))
        self.run_ok(["make-config", "--lattice", extents, "--precision",
                     str(precision), self.container])
        with open(self.container, "r+b") as file:
            offset = file.read().index(b"ildg-binary-data\0") - 16 + 144
            for site, direction, value in bad:
                at = offset + (site * 72 + direction * 18) * precision // 8
                os.pwrite(file.fileno(), struct.pack(">d" if precision == 64 else ">f", value), at)

    def result(self, path, *options):
        done = limetest.run(["lime", "check", "--physics", "--json", *options, path])
        self.assertIn(done.returncode, (0, 1), done.stderr)
        result, = json.loads(done.stdout)["physics"]
        return result

    def same(self, mount, measured=True):
        """The mount gives what is found without it, to the last bit."""
        before = stats(mount)["measured_bytes"]
        got = self.result(mount.path)
        wanted = self.result(self.container)
        for result in got, wanted:
            result.pop("stated", None)
        self.assertEqual(got, wanted)
        more = stats(mount)["measured_bytes"] - before
        self.assertEqual(more > 0, measured)
        return got

    def test_any_number_of_ranks(self):
        for ranks in (1, 2, 3, 4, 6):
            for dims, precision in SHAPES:
                self.configuration(dims, precision)
                with self.subTest(ranks=ranks, dims=dims), \
                        self.mount(f"ranks={ranks}", "forward_from=4K") as mount:
                    serving(mount)
                    self.assertEqual(self.same(mount)["state"], "good")

    def test_a_configuration_of_qio(self):
        dims, precision = SHAPES[4]
        self.configuration(dims, precision)
        (at, size), = [record[1:3] for record in celllib.records(self.container)
                       if record[0] == "ildg-binary-data"]
        with open(self.container, "rb") as file:
            file.seek(at)
            data = file.read(size)
        with open(self.container, "wb") as file:
            file.write(limetest.container([
                [scidac.private_file(dims)],
                [scidac.private_record(288, "USQCD_F3_ColorMatrix"), ("scidac-binary-data", data)]]))
        with self.mount("ranks=2", "forward_from=4K") as mount:
            serving(mount)
            self.assertEqual(self.same(mount)["state"], "good")

    def test_the_first_bad_link(self):
        dims, precision = SHAPES[0]
        sites = dims[0] * dims[1] * dims[2] * dims[3]
        for bad in ([(sites - 1, 3, 0.5)], [(777, 2, 5.0), (sites // 2, 0, 3.0)],
                    [(5000, 1, float("nan")), (5000, 0, 2.0), (20000, 3, float("inf"))]):
            self.configuration(dims, precision, bad)
            for ranks in (1, 3):
                with self.subTest(bad, ranks=ranks), \
                        self.mount(f"ranks={ranks}", "forward_from=4K") as mount:
                    serving(mount)
                    result = self.same(mount)
                    self.assertEqual(result["state"], "bad")
                    site, first = min(bad)[0], []
                    for extent in dims:
                        first.append(site % extent)
                        site //= extent
                    self.assertEqual(result["first_bad"]["site"], first)

    def test_without_a_job_and_without_ranks_that_know_how(self):
        dims, precision = SHAPES[0]
        self.configuration(dims, precision)
        with self.mount("ranks=2", "forward_from=4K") as mount:
            serving(mount)
            before = stats(mount)["measured_bytes"]
            self.result(mount.path, "-j", "1")  # by this host
            self.assertEqual(stats(mount)["measured_bytes"], before)
        with limetest.Mount(self.container, timeout=60) as mount:
            self.assertEqual(self.same(mount, measured=False)["state"], "good")
        path = os.path.join(self.tempdir(), "socket")
        with FakeJob(path), self.mount(f"job={path}", "forward_from=4K") as mount:
            serving(mount)
            self.assertEqual(self.same(mount, measured=False)["state"], "good")

    def test_wrong_replies(self):
        """Half a reply, sums of too few steps, and a link that is none of the lattice's."""
        self.configuration(*SHAPES[0])
        tally = struct.pack("<5QIQIIQ", 0, 0, 0, 1, 1, 3, 1 << 40, 0, 0, 0)
        for reply in (struct.pack("<I", 0), struct.pack("<I", 0) + tally, b"", error(5, "no"),
                      struct.pack("<I", 0) + tally + bytes(60000),
                      *5 * [struct.pack("<I", 0) + bytes(len(tally) + 24)]):
            path = os.path.join(self.tempdir(), "socket")

            def handle(job, connection, opcode, tag, payload, reply=reply):
                return reply if opcode == PHYSICS else job.answer(connection, opcode, tag,
                                                                  payload)
            with FakeJob(path) as job:
                job.handle = handle
                with self.subTest(reply[:60]), \
                        self.mount(f"job={path}", "forward_from=4K") as mount:
                    serving(mount)
                    self.assertEqual(self.same(mount, measured=False)["state"], "good")

    def test_a_rank_that_is_killed(self):
        """In the middle, at the beginning, or after the end: the result is the same."""
        self.configuration((48, 24, 24, 48), 64)
        wanted = self.result(self.container)
        for delay in (0.0, 0.02, 0.1):
            with self.subTest(delay), self.mount("ranks=3") as mount:
                serving(mount)
                pid = pids_of(mount, "limefs-io")[-1]
                timer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
                timer.start()
                self.assertEqual(self.result(mount.path), wanted)
                timer.join()


if __name__ == "__main__":
    limetest.main()
