"""Writing through real jobs, while all goes well and while it does not."""

import contextlib
import errno
import json
import mmap
import os
import random
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import mpitest
import test_ranks
import writelib
from test_ranks import pids_of, serving, stats
from writelib import MIB, until

SMALL = ("extent=4M", "window=64M", "forward_from=1M", "job_timeout=2")


def blocks(seed, nbytes):
    return writelib.some(nbytes, seed)


def write_record(path, data, block=MIB, flags=os.O_CREAT, each=None):
    """As dd conv=fsync does; `each` is called after each block."""
    with limetest.descriptor(path, os.O_WRONLY | flags) as fd:
        for at in range(0, len(data), block):
            writelib.write_all(fd, data[at:at + block])
            if each:
                each(at)
        os.fsync(fd)


@limetest.needs_fuse
class TestCase(writelib.TestCase):
    OPTS = SMALL

    def setUp(self):
        mpitest.need_job(self)
        super().setUp()

    def through(self, source, *opts):
        """A mount whose job serves."""
        return serving(self.rw(source, *opts, env=mpitest.environment(), timeout=60))

    def foreign_job(self, ranks):
        return test_ranks.TestCase.foreign_job(self, ranks)


class Good(TestCase):
    OPTS = (*SMALL, "job_timeout=30")  # a busy disk may take seconds; it is no fault

    def test_records(self):
        """Appended, one after the other, and in place, on some number of ranks."""
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                first, second = blocks(ranks, 37 * MIB + 13), blocks(ranks + 10, 16 * MIB)
                anew = blocks(ranks + 20, len(first))
                path = self.write("c.lime", limetest.container([("info", b"x" * 77)]))
                with self.through(path, f"ranks={ranks}") as mount:
                    write_record(mount.join("first"), first)
                    self.assertHolds(path, [("info", b"x" * 77), ("first", first)])
                    write_record(mount.join("second"), second, block=64 * 1024)
                    write_record(mount.join("first"), anew, flags=0)
                    found = stats(mount)
                self.assertHolds(path, [("info", b"x" * 77), ("first", anew), ("second", second)])
                total = 2 * len(first) + len(second)
                through, locally = (found[f"{how}_written_bytes"] for how in ("forwarded", "local"))
                self.assertEqual(through + locally, total)
                self.assertGreater(through, total / 2)

    def test_two_mounts_on_one_job(self):
        """The job's own counter says that it really was the job."""
        socket = self.foreign_job(2)
        data = [blocks(i, 24 * MIB + i) for i in range(2)]
        paths = [self.write(f"{i}.lime", b"") for i in range(2)]
        mounts = [self.through(path, f"job={socket}") for path in paths]
        limetest.at_once(*((write_record, mounts[i].join("data"), data[i]) for i in range(2)))
        through = sum(stats(mount)["forwarded_written_bytes"] for mount in mounts)
        for path, mount, one in zip(paths, mounts, data):
            mount.stop()
            self.assertHolds(path, [("data", one)])
        status = json.loads(self.run_ok(["limefs-io", "--status", socket, "--json"],
                                        env=mpitest.environment()))
        self.assertEqual(status["bytes_written"], through)
        self.assertGreater(through, 24 * MIB)

    def test_eight_at_once(self):
        """On ranges of one record, and others on other records."""
        old = [blocks(i, 12 * MIB + i) for i in range(4)]
        new = [blocks(i + 10, 12 * MIB + i) for i in range(4)]
        path = self.write("c.lime", limetest.container([(f"r{i}", o) for i, o in enumerate(old)]))

        def write_half(mount, i, half):
            middle = len(new[i]) // 2 + 1001
            begin, end = (0, middle) if half == 0 else (middle, len(new[i]))
            with limetest.descriptor(mount.join(f"r{i}"), os.O_WRONLY) as fd:
                for at in range(begin, end, MIB):
                    writelib.pwrite_all(fd, new[i][at:min(at + MIB, end)], at)
                os.fsync(fd)

        with self.through(path, "ranks=2") as mount:
            limetest.at_once(*((write_half, mount, i, half) for i in range(4) for half in range(2)))
        self.assertHolds(path, [(f"r{i}", n) for i, n in enumerate(new)])

    def test_read_while_it_is_written(self):
        """What is gathered, or on its way, is found by who reads around the kernel's cache."""
        data = blocks(1, 24 * MIB)
        path = self.write("c.lime", b"")
        with self.through(path, "ranks=2") as mount:
            with limetest.descriptor(mount.join("data"),
                                     os.O_RDWR | os.O_CREAT | os.O_DIRECT) as fd:
                for at in range(0, len(data), MIB):
                    writelib.pwrite_all(fd, data[at:at + MIB], at)
                    with limetest.descriptor(mount.join("data"), os.O_DIRECT) as other:
                        for place in (at, max(0, at - 5 * MIB)):
                            self.assertBytes(os.pread(other, MIB, place), data[place:place + MIB])
                os.fsync(fd)
        self.assertHolds(path, [("data", data)])

    def test_requests_overtake_each_other(self):
        """A stream whose requests come in another order is one all the same."""
        data = blocks(1, 48 * MIB)
        path = self.write("c.lime", limetest.container([("data", bytes(len(data)))]))
        order = [*range(8), *(at for near in range(8, 28) for at in (near, near + 20))]
        block = mmap.mmap(-1, MIB)  # begins at a page: the kernel makes one request of it
        with self.through(path, "ranks=2") as mount:
            with limetest.descriptor(mount.join("data"), os.O_WRONLY | os.O_DIRECT) as fd:
                for at in order:
                    block[:] = data[at * MIB:(at + 1) * MIB]
                    writelib.pwrite_all(fd, block, at * MIB)
                os.fsync(fd)
            self.assertGreater(stats(mount)["forwarded_written_bytes"], 40 * MIB)
        self.assertHolds(path, [("data", data)])

    def test_written_again(self):
        """An extent is begun in its middle, then at its beginning, and written over as a whole:
        what was there first does not come last."""
        extent, piece = 4 * MIB, 256 * 1024
        path = self.write("c.lime", limetest.container([("data", bytes(16 * MIB))]))
        want = bytearray(16 * MIB)
        with self.through(path, "ranks=2") as mount:
            first = extent - int(os.getxattr(mount.join("data"), "user.lime.offset"))
            second, middle = first + extent, first + extent + extent // 2

            def write(at, end, seed):
                want[at:end] = blocks(seed, end - at)
                for begin in range(at, end, piece):
                    writelib.pwrite_all(fd, want[begin:min(begin + piece, end)], begin)

            with limetest.descriptor(mount.join("data"), os.O_RDWR | os.O_DIRECT) as fd:
                for i in range(5):  # gathered from the next piece on
                    write(first, first + piece, i)
                write(first + piece, first + extent, 10)  # whole: its slot is free again
                until(lambda: stats(mount)["forwarded_written_bytes"] >= extent - piece)
                for i in range(5):
                    write(middle, middle + piece, 20 + i)
                write(second, middle, 40)
                write(middle, second + extent, 50)
                os.fsync(fd)
        self.assertHolds(path, [("data", bytes(want))])

    def test_random_steps(self):
        path = self.write("c.lime", limetest.container([("inner", bytes(3 * MIB)), ("last", b"")]))
        steps = "100000" if limetest.STRESS else "600"
        with self.through(path, "ranks=2", "extent=1M", "window=8M") as mount:
            for seed, args in ((1, ["--max", "20000000", mount.join("last")]),
                               (2, ["--no-resize", mount.join("inner")]),
                               (3, ["--no-append", "--max", "6000000", mount.join("inner")])):
                done = limetest.run(["fsx", "--steps", steps, "--seed", str(seed), *args],
                                    timeout=3000)
                self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
            through = stats(mount)["forwarded_written_bytes"]
            self.assertGreater(through, 0)
        self.assertClean(path)
        print(f"# {self.id()}: three times {steps} steps, {through} bytes through the job")

    def test_fio(self):
        """Streams, which the job writes, and then what it does not, on the same records."""
        if not limetest.STRESS:
            self.skipTest("long: make stress")
        if not shutil.which("fio"):
            self.skipTest("needs fio")
        size = 256 * MIB
        path = self.write("c.lime", limetest.container([("inner", bytes(size)), ("last", b"")]))
        with self.through(path, "ranks=2") as mount:
            os.truncate(mount.join("last"), size)  # fio wants it that long
            for name in ("inner", "last"):
                for how in (["--rw=write", "--bs=1M"], ["--rw=write", "--bs=256k", "--direct=1"],
                            ["--rw=write", "--bsrange=64k-4M", "--bs_unaligned=1"],
                            ["--rw=randrw", "--bsrange=4k-1M", "--verify_backlog=256"]):
                    self.run_ok(["fio", "--name=verify", f"--filename={mount.join(name)}", *how,
                                 f"--size={size}", "--verify=crc32c", "--verify_fatal=1",
                                 "--do_verify=1", "--ioengine=psync", "--end_fsync=1",
                                 "--allow_file_create=0", "--fallocate=none"],
                                timeout=600, cwd=self.tempdir())
            through = stats(mount)["forwarded_written_bytes"]
            self.assertGreater(through, 6 * size // 2)
        self.assertEqual([len(r.data) for r in self.assertClean(path)], [size, size])
        print(f"# {self.id()}: {through} bytes through the job")


class Faults(TestCase):
    def while_written(self, harm, *opts, at=14 * MIB, nbytes=40 * MIB):
        """A record is written, and harm(mount) done when it is half there; the container and the
        mount, which goes on."""
        data = blocks(3, nbytes)
        path = self.write("c.lime", limetest.container([("info", b"i")]))
        mount = self.through(path, *(opts or ["ranks=2"]))
        # Around the kernel's cache: then the job has work at this moment.
        write_record(mount.join("data"), data, flags=os.O_CREAT | os.O_DIRECT,
                     each=lambda done: harm(mount) if done == at else None)
        self.assertHolds(path, [("info", b"i"), ("data", data)])
        return path, mount, data

    def test_a_rank_is_killed(self):
        def harm(mount):
            os.kill(random.Random(1).choice(pids_of(mount, "limefs-io")), signal.SIGKILL)

        path, mount, data = self.while_written(harm)
        until(lambda: stats(mount)["job"]["connections"] >= 2, 60)
        serving(mount)
        before = stats(mount)["forwarded_written_bytes"]
        again = blocks(4, len(data))
        write_record(mount.join("data"), again, flags=0)
        self.assertGreater(stats(mount)["forwarded_written_bytes"], before)
        mount.stop()
        self.assertHolds(path, [("info", b"i"), ("data", again)])

    def test_the_job_stands_still(self):
        """SIGSTOP: after job_timeout the daemon writes by itself."""
        stopped = []

        def harm(mount):
            stopped.extend(pids_of(mount, "limefs-io"))
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)

        _, mount, _ = self.while_written(harm)
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        mount.stop()

    def test_unmounted_with_a_record_open(self):
        """SIGTERM in the middle: the container is good, the record is not there."""
        path = self.write("c.lime", limetest.container([("info", b"i")]))
        mount = self.through(path, "ranks=2")
        fd = os.open(mount.join("data"), os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
        writelib.write_all(fd, blocks(1, 10 * MIB))
        os.kill(mount.pid, signal.SIGTERM)
        mount.wait_for_end()
        self.assertRaises(OSError, os.fsync, fd)
        with contextlib.suppress(OSError):
            os.close(fd)
        mount.stop()
        self.assertHolds(path, [("info", b"i")])

    def test_full_disk(self):
        fs = writelib.SmallFs(self, "tmpfs", 40)
        path = writelib.put(fs.join("c.lime"), limetest.container([("info", b"i" * 99)]))
        mount = self.through(path, "ranks=2")
        data = blocks(1, 60 * MIB)
        self.assertErrno((errno.ENOSPC, errno.EIO), write_record, mount.join("data"), data)
        until(lambda: not os.path.exists(mount.join("data")))
        self.assertHolds(path, [("info", b"i" * 99)])
        write_record(mount.join("data"), data[:20 * MIB])
        mount.stop()
        self.assertHolds(path, [("info", b"i" * 99), ("data", data[:20 * MIB])])

    def test_replaced_meanwhile(self):
        """The ranks go on writing to the old file, the writer hears of it, the new one is whole."""
        path = self.write("c.lime", limetest.container([("info", b"i")]))
        other = limetest.container([("other", b"o" * 1000)])
        mount = self.through(path, "ranks=2")

        def harm(at):
            if at == 10 * MIB:
                os.rename(self.write("new", other), path)

        self.assertErrno((errno.ESTALE, errno.EIO), write_record, mount.join("data"),
                         blocks(1, 30 * MIB), each=harm)
        mount.stop()
        self.assertEqual(writelib.read(path), other)


if __name__ == "__main__":
    limetest.main()
