"""Large reads through a working job and through faulty ones: right bytes, without long waits."""

import errno
import json
import os
import random
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import fakejob
import limetest
from fakejob import FakeJob
from test_ranks import serving, stats
from writelib import put, until

MIB = 1 << 20
TIMEOUT = 1.0  # job_timeout of these mounts
PATIENT = "job_timeout=30"  # for a working job


@limetest.needs_fuse
class Forward(limetest.TestCase):
    def setUp(self):
        directory = self.tempdir()
        self.container = os.path.join(directory, "big.lime")
        self.socket = os.path.join(directory, "socket")
        self.data = random.Random(4).randbytes(61 * MIB + 12345)
        self.other = random.Random(5).randbytes(23 * MIB + 7)
        with open(self.container, "wb") as file:
            file.write(limetest.container([("xlf-info", b"a b c"), ("first", self.data),
                                           ("second", self.other)]))

    def mount(self, *options):
        return limetest.Mount(self.container, opts=[f"job={self.socket}", "extent=8M",
                                                    f"job_timeout={TIMEOUT}", "window=64M",
                                                    *options])

    def check(self, mount, name="first", block=MIB):
        with open(mount.join(name), "rb", buffering=0) as file:
            data = b"".join(iter(lambda: file.read(block), b""))
        self.assertTrue(data == {"first": self.data, "second": self.other}[name])

    def test_a_stream_is_forwarded(self):
        with FakeJob(self.socket) as job, serving(self.mount(PATIENT)) as mount:
            self.check(mount)
            seen = stats(mount)
            self.assertGreater(seen["forwarded_bytes"], 40 * MIB)
            self.assertLess(seen["local_bytes"], 20 * MIB)
            self.assertEqual(seen["job"]["ranks"], 3)
            self.assertEqual(job.opens, [self.container])
            self.assertEqual(job.roots, [os.path.dirname(self.container)])
            for offset, n in job.reads:
                self.assertEqual(offset % 4096, 0)
                self.assertLessEqual(offset % (8 * MIB) + n, 8 * MIB, "across an extent")
            self.assertLessEqual(sum(n for _, n in job.reads), len(self.data) + 8 * MIB)

    def test_random_readers_are_served_locally(self):
        with FakeJob(self.socket) as job, serving(self.mount("readahead=0")) as mount:
            fd = os.open(mount.join("first"), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            chance = random.Random(1)
            for _ in range(2000):
                at = chance.randrange(len(self.data) - 4096)
                self.assertEqual(os.pread(fd, 4096, at), self.data[at:at + 4096])
            os.close(fd)
            self.assertEqual(job.reads, [])

    def test_many_streams(self):
        with FakeJob(self.socket), serving(self.mount()) as mount:
            def reader(name, start):
                data = {"first": self.data, "second": self.other}[name]
                with open(mount.join(name), "rb", buffering=0) as file:
                    at = file.seek(start)
                    while part := file.read(MIB):
                        self.assertTrue(part == data[at:at + len(part)], (name, at))
                        at += len(part)
                    self.assertEqual(at, len(data))

            limetest.at_once(*((reader, *args) for args in [
                ("first", 0), ("second", 0), ("first", 30 * MIB + 5), ("second", 1),
                ("first", 11 * MIB), ("second", 99), ("first", 3), ("first", 50 * MIB)]))

    def test_waits_for_a_slow_job(self):
        with FakeJob(self.socket) as job, serving(self.mount()) as mount:
            job.delay = 0.2
            self.check(mount)
            self.assertGreater(stats(mount)["waits"], 1)

    def test_a_job_that_stops_answering(self):
        with FakeJob(self.socket) as job, serving(self.mount()) as mount:
            job.silent.set()
            begin = time.monotonic()
            self.check(mount)
            self.assertLess(time.monotonic() - begin, TIMEOUT + 5 * limetest.SLOWNESS)
            job.silent.clear()
            until(lambda: job.hellos > 1)
            serving(mount)
            self.check(mount, "second")
            self.assertGreater(stats(mount)["forwarded_bytes"], 8 * MIB)

    def test_one_missing_answer(self):
        """The job sends other answers, so it is alive, but the reader must not wait forever."""
        lost = []

        def handle(job, connection, opcode, tag, payload):
            if opcode == fakejob.READ and not lost:
                lost.append(tag)
                return None
            return FakeJob.answer(job, connection, opcode, tag, payload)

        with FakeJob(self.socket) as job, serving(self.mount()) as mount:
            job.handle = handle
            first = threading.Thread(target=self.check, args=(mount,))
            begin = time.monotonic()
            first.start()
            until(lambda: lost)
            while first.is_alive():
                self.assertLess(time.monotonic() - begin, 4 * TIMEOUT + 5 * limetest.SLOWNESS)
                done = limetest.run(["dd", f"if={mount.join('second')}", "bs=1M", "iflag=direct",
                                     "status=none"])
                self.assertEqual(done.stdout, self.other)
            first.join()

    def test_late_answers_do_no_harm(self):
        """Answers to abandoned requests arrive, for a window that is no longer in use."""
        with FakeJob(self.socket) as job, serving(self.mount()) as mount:
            job.delay = 1.7 * TIMEOUT
            self.check(mount)

    def test_a_job_that_hangs_up(self):
        for reads in (0, 1, 3):
            with self.subTest(reads), FakeJob(self.socket) as job, serving(self.mount()) as mount:
                job.hang_up_after = reads
                self.check(mount)
                job.hang_up_after = None
                until(lambda job=job: job.hellos > 1)
                serving(mount)
                self.check(mount, "second")
                self.assertGreater(stats(mount)["forwarded_bytes"], 8 * MIB)

    def test_refused_and_failing(self):
        for field, code in (("refuse", errno.ESTALE), ("fail", errno.EIO)):
            with self.subTest(field), FakeJob(self.socket) as job, serving(self.mount()) as mount:
                setattr(job, field, code)
                self.check(mount)
                self.assertEqual(stats(mount)["forwarded_bytes"], 0)
                self.assertEqual(stats(mount)["job"]["state"], "serving")

    def test_protocol_violations(self):
        """limefs closes the connection to a peer that violates the protocol."""
        def answer_reads_by(change):
            def handle(job, connection, opcode, tag, payload):
                if opcode != fakejob.READ:
                    return FakeJob.answer(job, connection, opcode, tag, payload)
                change(connection, tag)
                return None
            return handle

        def packet(magic=fakejob.MAGIC, version=fakejob.VERSION, opcode=fakejob.READ, flags=1,
                   tag=0, payload=struct.pack("<IQ", 0, 1), length=None):
            return fakejob.HEADER.pack(magic, version, opcode, flags,
                                       len(payload) if length is None else length, tag) + payload

        changes = {
            "magic": lambda c, tag: c.sendall(packet(magic=1, tag=tag)),
            "version": lambda c, tag: c.sendall(packet(version=9, tag=tag)),
            "too long": lambda c, tag: c.sendall(packet(length=1 << 31, tag=tag)),
            "a request": lambda c, tag: c.sendall(packet(flags=0, tag=tag)),
            "another tag": lambda c, tag: c.sendall(packet(tag=tag ^ 1 << 20)),
            "another kind": lambda c, tag: c.sendall(packet(tag=7 << 32)),
            "no such slot": lambda c, tag: c.sendall(packet(tag=2 << 32 | 0xffffffff)),
            "no such write buffer": lambda c, tag: c.sendall(packet(tag=4 << 32 | 0xffffffff)),
            "no such file": lambda c, tag: c.sendall(packet(tag=3 << 32 | 0xffffffff)),
            "short count": lambda c, tag: c.sendall(packet(tag=tag)),
            "no code": lambda c, tag: c.sendall(packet(tag=tag, payload=b"")),
            "an odd code": lambda c, tag: c.sendall(packet(tag=tag, payload=b"\xff" * 4)),
            "half a packet": lambda c, tag: c.sendall(packet(tag=tag)[:11]),
        }
        for name, change in changes.items():
            with self.subTest(name), FakeJob(self.socket) as job, serving(self.mount()) as mount:
                job.handle = answer_reads_by(change)
                begin = time.monotonic()
                self.check(mount)
                self.assertLess(time.monotonic() - begin, TIMEOUT + 5 * limetest.SLOWNESS)
                self.assertEqual(stats(mount)["forwarded_bytes"], 0)

    def test_changed_during_open(self):
        """Ranks may find another file by the same name: limefs closes it unread and opens again."""
        changes, closes = 3, []

        def handle(job, connection, opcode, tag, payload):
            reply = FakeJob.answer(job, connection, opcode, tag, payload)
            if opcode == fakejob.OPEN and len(job.opens) <= changes:
                os.chmod(self.container, 0o600 | len(job.opens))
            if opcode == fakejob.CLOSE and len(closes) < changes:
                closes.append(list(job.reads))
            return reply

        with FakeJob(self.socket) as job, self.mount(PATIENT) as mount:
            job.handle = handle
            serving(mount)

            def forwarded():
                self.check(mount)
                return stats(mount)["forwarded_bytes"] > 0

            until(forwarded)
            self.assertEqual(len(job.opens), changes + 1)
            self.assertEqual(closes, [[]] * changes)

    def test_another_version(self):
        with FakeJob(self.socket) as job:
            job.version = fakejob.VERSION - 1
            with self.mount() as mount:
                self.check(mount)
                self.assertEqual(stats(mount)["job"]["connections"], 0)

    def test_a_container_that_grows(self):
        with FakeJob(self.socket), serving(self.mount()) as mount:
            with open(mount.join("first"), "rb", buffering=0) as file:
                self.assertTrue(file.read(20 * MIB) == self.data[:20 * MIB])
                put(self.container, limetest.record("late", b"x" * 100, True, True), "ab")
                self.assertTrue(file.read() == self.data[20 * MIB:])
            until(lambda: os.path.exists(mount.join("late")))
            self.check(mount)

    def test_a_container_changed_in_place(self):
        """A reader gets an error rather than a mixture of old and new bytes."""
        with FakeJob(self.socket), serving(self.mount()) as mount:
            fd = os.open(mount.join("first"), os.O_RDONLY)
            os.read(fd, 12 * MIB)
            time.sleep(0.05)
            with open(self.container, "rb+") as file:
                file.seek(40 * MIB)
                file.write(bytes(MIB))
            self.assertErrno(errno.ESTALE, lambda: [*iter(lambda: os.read(fd, MIB), b"")])
            os.close(fd)

    def test_status(self):
        with FakeJob(self.socket), serving(self.mount()) as mount:
            self.check(mount)
            text = self.run_ok(["limefs", "--status", mount.path]).decode()
            self.assertIn("3 ranks on 1 host", text)
            self.assertIn("read by the job", text)
            self.assertEqual(json.loads(self.run_ok(["limefs", "--status", "--json",
                                                     mount.path])), stats(mount))
            for option in "--status", "-u":
                self.fails(["limefs", option, "/"], "not a limefs mount", status=2)
                self.fails(["limefs", option, self.tempdir() + "/none"],
                           "No such file or directory", status=2)


if __name__ == "__main__":
    limetest.main()
