"""Room that a record which ranks write gets ahead of them, and gives back."""

import contextlib
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import test_write_ranks
import writelib
from test_ranks import pids_of, stats
from test_write_ranks import blocks, write_record
from writelib import MIB, until

EXTENT = 4 * MIB  # of test_write_ranks.SMALL


@limetest.needs_fuse
class Room(test_write_ranks.TestCase):
    OPTS = (*test_write_ranks.SMALL, "job_timeout=30")
    INFO = ("info", b"i" * 77)

    def sizes_while(self, mount, path, data):
        """Those of the container after each MiB of a record, around the kernel's cache; then it is
        synced and closed."""
        found = []
        write_record(mount.join("data"), data, flags=os.O_CREAT | os.O_DIRECT,
                     each=lambda at: found.append(os.stat(path).st_size))
        return found

    def begun(self, *opts, ranks=2, fs=None):
        path = writelib.put(fs.join("c.lime"), limetest.container([self.INFO])) if fs \
            else self.write("c.lime", limetest.container([self.INFO]))
        return path, self.through(path, f"ranks={ranks}", *opts)

    def most_ahead(self, found):
        """How far the file went beyond the extents that had been begun."""
        before = len(limetest.container([self.INFO])) + 144
        return max(size - (before + (i + 1) * MIB + EXTENT - 1) // EXTENT * EXTENT
                   for i, size in enumerate(found))

    def test_ahead_and_given_back(self):
        """As much again as was written, at most; the record's end is the file's once it is
        closed."""
        path, mount = self.begun()
        data = blocks(1, 30 * MIB)
        found = self.sizes_while(mount, path, data)
        self.assertGreaterEqual(self.most_ahead(found), EXTENT)
        self.assertLessEqual(self.most_ahead(found), len(data))
        self.assertGreater(stats(mount)["forwarded_written_bytes"], 16 * MIB)
        self.assertHolds(path, [self.INFO, ("data", data)])
        held = os.stat(path)
        self.assertLess(held.st_blocks * 512, held.st_size + MIB)

    def test_synced_in_between(self):
        """A record that was committed ends where it ends, and begins anew to get room."""
        path, mount = self.begun()
        data = blocks(2, 48 * MIB)
        half = len(data) // 2
        with self.written(mount, path, b"") as fd:
            for begin in (0, half):
                ahead = []
                for at in range(begin, begin + half, MIB):
                    writelib.pwrite_all(fd, data[at:at + MIB], at)
                    ahead.append(os.stat(path).st_size - (at + MIB))
                self.assertGreater(max(ahead), 2 * EXTENT)
                os.fsync(fd)
                self.assertHolds(path, [self.INFO, ("data", data[:begin + half])])

    def test_in_place(self):
        """What does not grow is not made longer, nor is the file when its last record is written
        over, to its end, in the middle of an extent."""
        path, mount = self.begun()
        write_record(mount.join("data"), blocks(3, 30 * MIB + 1000))
        size = os.stat(path).st_size
        data = blocks(4, 30 * MIB + 1000)
        found = self.sizes_while(mount, path, data)
        self.assertEqual(set(found), {size})
        self.assertGreater(stats(mount)["forwarded_written_bytes"], 40 * MIB)
        self.assertHolds(path, [self.INFO, ("data", data)])

    @contextlib.contextmanager
    def written(self, mount, path, data):
        """A record that was written by streams, has room ahead, and is open; closed, not synced."""
        fd = os.open(mount.join("data"), os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
        try:
            for at in range(0, len(data), MIB):
                writelib.pwrite_all(fd, data[at:at + MIB], at)
            if data:
                self.assertGreater(os.stat(path).st_size, len(data) + 2 * MIB)
            yield fd
        finally:
            with contextlib.suppress(OSError):
                os.close(fd)

    def test_a_far_jump(self):
        """What nobody writes stays a hole."""
        path, mount = self.begun("forward_from=256K")  # the first request goes to the job
        first, hole, second = blocks(5, 24 * MIB), 176 * MIB, blocks(6, 12 * MIB)
        with self.written(mount, path, first) as fd:
            for at in range(0, len(second), MIB):
                writelib.pwrite_all(fd, second[at:at + MIB], len(first) + hole + at)
            self.assertLess(os.stat(path).st_blocks * 512, 100 * MIB)
        self.assertLess(os.stat(path).st_blocks * 512, 100 * MIB)
        self.assertHolds(path, [self.INFO, ("data", first + bytes(hole) + second)])

    def test_allocated(self):
        """A program's own room is not cut off with ours."""
        path, mount = self.begun()
        data, total = blocks(7, 24 * MIB), 64 * MIB
        with self.written(mount, path, data) as fd:
            writelib.fallocate(fd, 0, 0, total)
            self.assertGreaterEqual(os.stat(path).st_blocks * 512, total)
        self.assertGreaterEqual(os.stat(path).st_blocks * 512, total)
        self.assertHolds(path, [self.INFO, ("data", data + bytes(total - len(data)))])

    def test_cut_and_grown(self):
        """By the program, while there is room ahead: what comes then is zeros."""
        path, mount = self.begun()
        data = blocks(8, 24 * MIB)
        with self.written(mount, path, data) as fd:
            os.ftruncate(fd, 10 * MIB)
            os.ftruncate(fd, 30 * MIB)
        self.assertHolds(path, [self.INFO, ("data", data[:10 * MIB] + bytes(20 * MIB))])

    def test_killed(self):
        """What was not committed is cut off, with its room, once no rank is left."""
        path, mount = self.begun()
        with self.written(mount, path, blocks(9, 20 * MIB)):
            ranks = pids_of(mount, "limefs-io")
            os.kill(mount.pid, signal.SIGKILL)
            mount.wait_for_end()
        until(lambda: all(map(writelib.has_ended, ranks)), 60)
        mount.stop()
        self.assertEqual(limetest.run(["lime", "check", path]).returncode, 1)
        self.assertEqual(limetest.run(["lime", "repair", path]).returncode, 0)
        self.assertHolds(path, [self.INFO])

    def test_one_rank(self):
        """It takes turns with nobody."""
        path, mount = self.begun(ranks=1)
        data = blocks(6, 24 * MIB)
        found = self.sizes_while(mount, path, data)
        self.assertLessEqual(self.most_ahead(found), 0)
        self.assertGreater(stats(mount)["forwarded_written_bytes"], 16 * MIB)
        self.assertHolds(path, [self.INFO, ("data", data)])

    def test_a_disk_that_is_nearly_full(self):
        """A quarter of what is free, at most."""
        for mib, ahead in ((14, False), (80, True)):
            with self.subTest(mib=mib):
                fs = writelib.SmallFs(self, "tmpfs", mib)
                path, mount = self.begun(fs=fs)
                data = blocks(7, 12 * MIB)
                found = self.sizes_while(mount, path, data)
                self.assertEqual(self.most_ahead(found) > 0, ahead)
                self.assertGreater(stats(mount)["forwarded_written_bytes"], 7 * MIB)
                self.assertHolds(path, [self.INFO, ("data", data)])
                mount.stop()
                writelib.unmount(fs.path)


if __name__ == "__main__":
    limetest.main()
