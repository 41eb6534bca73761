"""Inner records: written in place, resized and rewritten."""

import contextlib
import errno
import mmap
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import writelib
from writelib import A, B, C, MIB, put, pwrite_all, read, sizes, some, until, write_all


@limetest.needs_fuse
class Inner(writelib.TestCase):
    """A record that has other records behind it."""

    def test_in_place(self):
        with self.written([A, B, C]) as (path, mount):
            inode = os.stat(path).st_ino
            with open(mount.join("second"), "r+b", buffering=0) as file:
                os.pwrite(file.fileno(), b"12345", 0)
                os.pwrite(file.fileno(), b"end", len(B[1]) - 3)
                self.assertBytes(file.read(), b"12345" + B[1][8:] + b"end")
            self.run_ok(["dd", f"of={mount.join('001-first')}", "conv=notrunc", "bs=10", "seek=3",
                         "status=none"], input=b"in the middle")
            self.assertEqual(os.stat(path).st_ino, inode)
        self.assertHolds(path, [("first", b"a" * 30 + b"in the middle" + b"a" * 957),
                                ("second", b"12345" + B[1][8:] + b"end"), C])

    def test_mapped_allocated_direct_cut(self):
        data = some(3 * MIB + 5)

        def map_all(file):
            with mmap.mmap(file.fileno(), 0) as pages:
                pages[:] = data

        def allocate(file):
            os.posix_fallocate(file.fileno(), len(data) - 10, 100)

        def write_uncached(file):
            """Aligned writes that are not aligned in the container."""
            with limetest.descriptor(file.name, os.O_RDWR | os.O_DIRECT) as fd:
                writelib.write_direct(fd, data[4096:2 * MIB], 4096)

        def cut_and_write(file):
            file.truncate(100)
            file.seek(90)
            file.write(b"0123456789abcdef")

        for change, old, new in [(map_all, bytes(len(data)), data),
                                 (allocate, data, data + bytes(90)),
                                 (write_uncached, bytes(2 * MIB),
                                  bytes(4096) + data[4096:2 * MIB]),
                                 (cut_and_write, data, data[:90] + b"0123456789abcdef")]:
            items = [A, ("data", old), C]
            with self.subTest(change.__name__), self.written(items) as (path, mount):
                with open(mount.join("data"), "r+b", buffering=0) as file:
                    change(file)
                    self.assertEqual(os.fstat(file.fileno()).st_size, len(new))
                    self.assertBytes(os.pread(file.fileno(), len(new), 0), new)
            self.assertHolds(path, [A, ("data", new), C])

    def test_written_behind_its_end(self):
        """Growing data is staged in a shadow file, and close rewrites the container."""
        size = len(B[1])
        with self.written([A, B, C]) as (path, mount):
            for at in (size, size + 1, size + 144, 3 * MIB, size - 3):
                for sync in (True, False):
                    put(mount.join("second"), B[1])
                    want = (B[1][:at].ljust(at, b"\0") + b"ENDxyz").ljust(size, b"\0")
                    self.write_at(mount.join("second"), b"ENDxyz", at, sync)
                    self.assertEqual(os.stat(mount.join("second")).st_size, len(want))
                    self.assertBytes(read(mount.join("second")), want)
                    self.assertEqual(read(mount.join("third")), C[1])
                    self.assertHolds(path, [A, ("second", want), C])

    def test_overwritten_and_extended(self):
        """As rsync --inplace: overwrite the record, go on behind its end, set the length last."""
        new = some(3 * MIB + 5, 4)
        for sync in (False, True):
            with self.written([A, B, C]) as (path, mount):
                with open(mount.join("second"), "r+b", buffering=0) as file:
                    for at in range(0, len(new), 100_000):
                        pwrite_all(file.fileno(), new[at:at + 100_000], at)
                        if sync:
                            os.fsync(file.fileno())
                    self.assertBytes(os.pread(file.fileno(), len(new), 0), new)
                    os.ftruncate(file.fileno(), len(new))
            self.assertHolds(path, [A, ("second", new), C])

    def test_written_too_far_behind_its_end(self):
        """Offsets beyond the limits of any file or disk."""
        with self.written([A, B, C]) as (path, mount):
            for at in (1 << 45, 1 << 62):
                for sync in (True, False):
                    self.assertErrno((errno.EFBIG, errno.ENOSPC, errno.EIO, errno.EINVAL),
                                     self.write_at, mount.join("second"), b"x", at, sync)
                    until(lambda: os.stat(mount.join("second")).st_size == len(B[1]), 3)
                    self.assertEqual(read(mount.join("second")), B[1])
        self.assertHolds(path, [A, B, C])

    def test_appended_to(self):
        """open() with O_APPEND fails at once: the shell's echo ignores errors of close."""
        items = [A, ("empty", b""), C]
        with self.written(items) as (path, mount):
            for name in ("first", "empty", "001-first"):
                for mode in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT):
                    self.assertErrno(errno.EPERM, os.open, mount.join(name), mode | os.O_APPEND)
                for shell in ("sh", "bash"):
                    self.fails([shell, "-c", 'echo abc >>"$1"', "sh", mount.join(name)],
                                   "not permitted", status=None)
                done = limetest.run(["dd", f"of={mount.join(name)}", "oflag=append",
                                     "conv=notrunc", "status=none"], input=b"more")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(b"not permitted", done.stderr)
                with open(mount.join(name), "r+b"):
                    pass
            self.assertHolds(path, items)
            fd = os.open(mount.join("third"), os.O_WRONLY | os.O_APPEND)
            os.write(fd, b"1")
            os.fsync(fd)
            put(mount.join("new"), b"n")
            os.write(fd, b"more")  # it was opened as the last record
            os.close(fd)
            # An emptied record is staged in a shadow file and can grow.
            with open(mount.join("first"), "wb", buffering=0) as file:
                file.write(b"12")
                put(mount.join("first"), b"34", "ab")
            fd = os.open(mount.join("empty"), os.O_WRONLY | os.O_APPEND | os.O_TRUNC)
            write_all(fd, b"full")
            os.close(fd)
        self.assertHolds(path, [("first", b"1234"), ("empty", b"full"), ("third", C[1] + b"1more"),
                                ("new", b"n")])

    def write_at(self, path, data, at, sync):
        fd = os.open(path, os.O_RDWR)
        try:
            pwrite_all(fd, data, at)
            if sync:
                os.fsync(fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.close(fd)
            raise
        os.close(fd)

    def test_rewritten(self):
        """An inner record is rewritten by a program, by a descriptor, and with fsync."""
        old = [[A], [B, C]]
        with self.written(old) as (path, mount):
            name = mount.join("second")
            for new in (b"n" * len(B[1]), b"", b"short", some(3 * MIB + 3)):
                for how in ("cp", "write", "sync"):
                    put(name, B[1])
                    want = [[A], [("second", new), C]]
                    with self.subTest(len(new), how=how):
                        if how == "cp":
                            self.run_ok(["cp", self.write("new", new), name])
                        else:
                            with open(name, "wb", buffering=0) as file:
                                self.assertEqual(os.fstat(file.fileno()).st_size, 0)
                                if new:
                                    write_all(file.fileno(), new)
                                self.assertEqual(os.fstat(file.fileno()).st_size, len(new))
                                self.assertBytes(read(path), limetest.container(old))
                                if how == "sync" and new:
                                    os.fsync(file.fileno())
                                    self.assertHolds(path, want)
                                    os.fsync(file.fileno())
                        self.assertHolds(path, want)
                        self.assertEqual(sizes(mount), [len(A[1]), len(new), len(C[1])])
                        self.assertBytes(read(name), new)
                        self.assertBytes(read(mount.join("third")), C[1])
                        self.assertBytes(read(mount.join("001-first")), A[1])
        self.assertEqual(os.listdir(os.path.dirname(path)), ["c.lime"])

    def test_emptied_before_the_first_write(self):
        """The container is rewritten once, when the last copy of the descriptor is closed."""
        old = limetest.container([A, B, C])
        path = self.write("c.lime", old)
        for tree in (False, True):
            with self.rw(os.path.dirname(path) if tree else path) as mount:
                name = mount.join("c.lime/002-second" if tree else "second")
                writer = writelib.Remote(self)
                fd = writer.open(name, os.O_WRONLY | os.O_TRUNC)
                writer.close(writer.dup(fd))
                self.assertEqual(writer.system("true"), 0)
                self.assertBytes(read(path), old)
                writer.write(fd, b"abc")
                writer.close(fd)
                self.assertHolds(path, [A, ("second", b"abc"), C])
                self.run_ok(["sh", "-c", '{ cat /dev/null; cmp "$2" "$3"; cat "$3"; } >"$1"', "sh",
                             name, path, self.write("same", read(path))])
                found = self.assertClean(path)
                self.assertBytes(found[1].data, limetest.container([A, ("second", b"abc"), C]))
                put(name, B[1])
                self.assertBytes(read(path), old)

    def test_emptied_and_open_twice(self):
        """A close commits the record even while another process has it open."""
        with self.written([A, B, C]) as (path, mount):
            one, two = writelib.Remote(self), writelib.Remote(self)
            other = two.open(mount.join("second"), os.O_RDWR)
            one.close(one.open(mount.join("second"), os.O_WRONLY | os.O_TRUNC))
            self.assertHolds(path, [A, ("second", b""), C])
            two.write(other, b"x")
            two.close(other)
            self.assertHolds(path, [A, ("second", b"x"), C])

    def test_two_records_rewritten_at_once(self):
        """Two records are rewritten at the same time."""
        with self.written([A, B, C]) as (path, mount):
            with open(mount.join("first"), "wb", buffering=0) as one, \
                    open(mount.join("second"), "wb", buffering=0) as two:
                for i in range(50):
                    one.write(b"%d" % i)
                    two.write(b"%d," % i)
            numbers = [b"%d" % i for i in range(50)]
        self.assertHolds(path, [("first", b"".join(numbers)),
                                ("second", b",".join(numbers) + b","), C])

    def test_resized(self):
        """An inner record is resized by path, by descriptor and by a program."""
        def by_descriptor(path, n):
            with open(path, "r+b", buffering=0) as file:
                file.truncate(n)
                self.assertEqual(os.fstat(file.fileno()).st_size, n)
                self.assertBytes(file.read(), B[1][:n].ljust(n, b"\0"))

        def by_program(path, n):
            self.run_ok(["truncate", "-s", str(n), path])

        with self.written([A, B, C]) as (path, mount):
            for n in (len(B[1]) - 1, 1, 0, len(B[1]) + 1, 500000):
                new = B[1][:n].ljust(n, b"\0")
                for resize in (os.truncate, by_descriptor, by_program):
                    with self.subTest(n, how=resize.__name__):
                        put(mount.join("second"), B[1])
                        resize(mount.join("second"), n)
                        # The release of put()'s descriptor may come after resize().
                        items = [A, ("second", new), C]
                        until(lambda want=limetest.container(items): read(path) == want)
                        self.assertHolds(path, items)
                        self.assertBytes(read(mount.join("second")), new)
                        self.assertEqual(sizes(mount), [len(A[1]), n, len(C[1])])

    def test_other_records_during_a_rewrite(self):
        """A rewrite of the container does not affect open files of other records."""
        with self.written([A, B, C]) as (path, mount):
            with open(mount.join("third"), "r+b", buffering=0) as third, \
                    open(mount.join("first"), "rb", buffering=0) as first:
                self.assertEqual(first.read(10), A[1][:10])
                third.write(b"before")
                put(mount.join("second"), b"another length")
                third.write(b"after!")
                self.assertEqual(os.pread(third.fileno(), 12, 0), b"beforeafter!")
                os.posix_fadvise(first.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                self.assertBytes(first.read(), A[1][10:])
                os.fsync(third.fileno())
            self.assertEqual(os.stat(mount.join("second")).st_size, 14)
        self.assertHolds(path, [A, ("second", b"another length"),
                                ("third", b"beforeafter!" + C[1][12:])])

    def test_another_mount_reads_the_replaced_file(self):
        """A rewrite leaves data and times of the old file unchanged for its open descriptors."""
        for how in ("rewritten", "truncated", "touched"):
            path = self.write("c.lime", limetest.container([A, B, C]))
            os.utime(path, (1000000000, 1000000000))
            with self.rw(path) as mount, limetest.Mount(path) as reader, \
                    open(path, "rb", buffering=0) as old, \
                    open(reader.join("second"), "rb", buffering=0) as second:
                self.assertBytes(os.pread(second.fileno(), 10, 0), B[1][:10])
                if how == "truncated":
                    os.truncate(mount.join("first"), 13)
                else:
                    with open(mount.join("first"), "wb", buffering=0) as file:
                        file.write(b"a" * 13)
                        if how == "touched":
                            os.utime(file.fileno(), (1500000000, 1500000000))
                self.assertEqual(os.fstat(old.fileno()).st_nlink, 0)
                self.assertEqual(os.fstat(old.fileno()).st_mtime, 1000000000)
                os.posix_fadvise(second.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                self.assertBytes(os.pread(second.fileno(), len(B[1]), 0), B[1])
                if how == "touched":
                    self.assertEqual(os.stat(path).st_mtime, 1500000000)
                else:
                    self.assertGreater(os.stat(path).st_mtime, 1000000000)
            self.assertHolds(path, [("first", b"a" * 13), B, C])

    def test_last_record_grows_during_a_rewrite(self):
        with self.written([A, B, C]) as (path, mount):
            with open(mount.join("third"), "ab", buffering=0) as third:
                third.write(b"one")
                put(mount.join("first"), b"another length")
                third.write(b"two")
        self.assertHolds(path, [("first", b"another length"), B, ("third", C[1] + b"onetwo")])

    def test_owner_mode_and_attributes_stay(self):
        with self.written([A, B, C]) as (path, mount):
            os.chmod(path, 0o640)
            os.setxattr(path, "user.mine", b"yes")
            if os.geteuid() == 0:
                os.chown(path, 4711, 4712)
            want = os.stat(path)
            put(mount.join("second"), b"another length")
            got = os.stat(path)
            self.assertNotEqual(got.st_ino, want.st_ino)
            self.assertEqual((got.st_mode, got.st_uid, got.st_gid),
                             (want.st_mode, want.st_uid, want.st_gid))
            self.assertEqual(os.getxattr(path, "user.mine"), b"yes")
            self.assertErrno(errno.EBUSY, self.try_lock, path)

    def try_lock(self, path):
        """Raises EBUSY if the new file is locked."""
        fd = os.open(path, os.O_RDWR)
        try:
            limetest.lock(fd)
        except BlockingIOError:
            raise OSError(errno.EBUSY, "locked") from None
        finally:
            os.close(fd)

    def test_rewritten_after_it_was_read(self):
        """A later open shows neither cached pages nor attributes of the old record."""
        for new in (b"n" * 300000, b"n" * 200000, b"n" * 400000):
            with self.written([A, ("data", b"o" * 300000), C]) as (path, mount):
                self.assertBytes(read(mount.join("data")), b"o" * 300000)
                with open(mount.join("data"), "rb", buffering=0) as reader:
                    put(mount.join("data"), new)
                    self.assertBytes(read(mount.join("data")), new)
                    self.assertEqual(os.stat(mount.join("data")).st_size, len(new))
                    self.succeeds((errno.ESTALE, errno.EIO), lambda file=reader: (
                        self.assertLessEqual(set(file.read()), {ord("o"), ord("n")})))
                self.assertBytes(read(mount.join("third")), C[1])


class InnerByOneThread(Inner):
    OPTS = ("attr_timeout=0", "entry_timeout=0")
    ARGS = ("-s",)


if __name__ == "__main__":
    limetest.main()
