"""Plain files that programs append to on the mount and below it at the same time: each written byte
is in the file once, in its writer's order."""

import contextlib
import errno
import fcntl
import mmap
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import writelib
from limetest import read

ROUNDS = 100 if limetest.STRESS else 6
APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def append(path, *parts):
    fd = os.open(path, APPEND, 0o644)
    for part in parts:
        os.write(fd, part)
    os.close(fd)


class Appended(writelib.TestCase):
    def setUp(self):
        self.below = self.tempdir()
        self.mount = str(self.rw(self.below).path)

    def paths(self, name):
        return os.path.join(self.below, name), os.path.join(self.mount, name)

    def append_lines(self, path, lines, each):
        """Appends the lines, and reopens the file after every `each` lines."""
        for i in range(0, len(lines), each):
            append(path, *lines[i:i + each])

    def append_at_once(self, name, count, line, each):
        """Two writers append on each side; returns the file's lines."""
        below, mount = self.paths(name)
        limetest.at_once(*(
            (self.append_lines, path, [b"%d %d %s\n" % (i, n, line) for n in range(count)], each[i])
            for i, path in enumerate((below, mount, below, mount))))
        self.assertEqual(read(mount), read(below))
        return read(below).split(b"\n")[:-1]

    def test_lines(self):
        for turn in range(ROUNDS):
            each = [random.choice((1, 1, 3, 50)) for _ in range(4)]
            with self.subTest(turn=turn, each=each):
                lines = self.append_at_once(f"log{turn}", 200, b"", each)
                self.assertEqual(len(lines), 800)
                for i in range(4):
                    mine = [line for line in lines if line.startswith(b"%d " % i)]
                    self.assertEqual(mine, [b"%d %d " % (i, n) for n in range(200)])

    def test_writes_of_several_requests(self):
        """The kernel splits a large write; data of other writers may come between its requests."""
        count, line = 4, b"x" * 3_000_000
        below, _ = self.paths("big")
        self.append_at_once("big", count, line, [1, 1, 1, 1])
        data = read(below)
        self.assertEqual(data.count(b"x"), 4 * count * len(line))
        self.assertEqual(len(data), sum(len(b"%d %d %s\n" % (i, n, line))
                                        for i in range(4) for n in range(count)))

    def test_kept_open(self):
        """An open file shows only what was written on the mount. After the release, which close()
        does not wait for, both sides show everything."""
        below, mount = self.paths("log")
        append(below, b"first\n")
        fd = os.open(mount, APPEND)
        for i in range(10):
            append(below, b"below %d\n" % i)
            os.write(fd, b"mount %d\n" % i)
            if i % 3 == 0:
                os.fsync(fd)
        self.assertEqual(read(mount), b"first\n" + b"".join(b"mount %d\n" % i for i in range(10)))
        os.close(fd)
        lines = read(below).decode().splitlines()
        self.assertEqual(sorted(lines), sorted(["first"] + [f"{side} {i}" for i in range(10)
                                                            for side in ("below", "mount")]))
        writelib.until(lambda: read(mount) == read(below))
        self.assertEqual(os.stat(mount).st_size, os.stat(below).st_size)

    def test_read_while_it_grows(self):
        """A reader follows a growing file, as tail -f does."""
        below, mount = self.paths("log")
        data = b"first\n"
        append(below, data)
        with open(mount, "rb", buffering=0) as reader:
            self.assertEqual(reader.read(), data)
            for i in range(4):
                more = b"%d" % i * 3000 + b"\n"
                append((below, mount)[i % 2], more)
                data += more
                writelib.until(lambda: os.fstat(reader.fileno()).st_size == len(data), 300)
                self.assertEqual(reader.read(), more)
                self.assertEqual(read(mount), data)

    def test_truncated_below(self):
        """The kernel flushes each descriptor before close(2) returns. Data that are truncated
        below, as by logrotate's copytruncate, do not come back."""
        below, mount = self.paths("log")
        with open(mount, "ab", buffering=0) as log:
            log.write(b"old\n" * 3000)
            os.fsync(log.fileno())
            os.truncate(below, 0)
            for i in range(3):
                append(below, b"other\n" * 100)
                log.write(b"new\n")
                os.close(os.dup(log.fileno()))
                self.assertEqual(read(below), (b"other\n" * 100 + b"new\n") * (i + 1))
                self.assertEqual(read(mount), read(below))
        self.assertEqual(read(mount), read(below))

    def test_truncated_on_the_mount(self):
        below, mount = self.paths("log")
        append(below, b"old\n")
        fd = os.open(mount, APPEND)
        append(below, b"below\n")
        os.write(fd, b"mount\n")
        os.fsync(fd)
        with open(mount, "wb"):
            pass
        os.write(fd, b"new\n")
        os.close(fd)
        self.assertEqual(read(below), b"new\n")
        self.assertEqual(read(mount), b"new\n")

    def test_other_writers_of_the_mount(self):
        """Data written by another descriptor or through a mapping keep their offsets."""
        below, mount = self.paths("file")
        append(below, b"0123456789")
        fd = os.open(mount, APPEND)
        other = os.open(mount, os.O_RDWR)
        os.write(fd, b"abc")
        os.pwrite(other, b"X", 0)
        os.pwrite(other, b"far", 20)
        with mmap.mmap(other, 10) as memory:
            memory[5:6] = b"Y"
        os.close(other)
        os.write(fd, b"end")
        os.close(fd)
        self.assertEqual(read(below), b"X1234Y6789abc" + bytes(7) + b"far" + b"end")

    def test_clear_o_append(self):
        """A write after fcntl() has cleared O_APPEND goes to its offset."""
        below, mount = self.paths("file")
        append(below, b"0123456789")
        fd = os.open(mount, APPEND)
        fcntl.fcntl(fd, fcntl.F_SETFL, 0)
        os.pwrite(fd, b"XYZ", 2)
        os.close(fd)
        self.assertEqual(read(below), b"01XYZ56789")

    def test_truncated_and_allocated(self):
        below, mount = self.paths("file")
        append(below, b"0123456789")
        fd = os.open(mount, APPEND)
        os.ftruncate(fd, 5)
        os.write(fd, b"abc")
        os.ftruncate(fd, 12)
        os.write(fd, b"d")
        self.assertEqual(os.fstat(fd).st_size, 13)
        try:
            os.posix_fallocate(fd, 0, 20)
        except OSError as error:
            self.assertEqual(error.errno, errno.EOPNOTSUPP)
            os.ftruncate(fd, 20)
        os.write(fd, b"e")
        os.close(fd)
        self.assertEqual(read(below), b"01234abc" + bytes(4) + b"d" + bytes(7) + b"e")
        self.assertEqual(read(mount), read(below))

    @unittest.skipUnless(os.geteuid() == 0, "mounting a tmpfs needs root")
    def test_a_full_disk(self):
        """The append fails with ENOSPC; after a truncation below, appends succeed again."""
        below, mount = self.paths("small")
        os.mkdir(below)
        limetest.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", below], check=True)
        self.addCleanup(limetest.run, ["umount", "-l", below])
        log = os.path.join(mount, "log")
        append(log, b"first\n")
        fd = os.open(log, APPEND)
        with self.assertRaises(OSError) as raised:
            os.write(fd, b"x" * 200_000)
            os.fsync(fd)
        self.assertEqual(raised.exception.errno, errno.ENOSPC)
        with contextlib.suppress(OSError):
            os.close(fd)
        os.truncate(os.path.join(below, "log"), 6)
        append(log, b"then\n")
        self.assertEqual(read(os.path.join(below, "log")), b"first\nthen\n")
        self.assertEqual(read(log), b"first\nthen\n")


if __name__ == "__main__":
    limetest.main()
