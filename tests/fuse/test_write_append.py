"""Appended records, and the last record, which may change its length."""

import errno
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import writelib
from writelib import (
    A, B, C, MIB, opened, put, read, records, some, until, whole_records, write_all)


@limetest.needs_fuse
class Appending(writelib.TestCase):
    def test_names(self):
        with self.written([A]) as (path, mount):
            put(mount.join("plain"), b"1")
            put(mount.join("003-numbered"), b"2")
            put(mount.join("a%2Fb"), b"3")
            put(mount.join("005-x%20y%25"), b"4")
            put(mount.join("006-plain"), b"5")
            self.assertEqual(sorted(os.listdir(mount)),
                             ["001-first", "002-plain", "003-numbered", "004-a%2Fb",
                              "005-x y%25", "006-plain"])
            self.assertEqual(read(mount.join("a%2Fb")), b"3")
            self.assertEqual(read(mount.join("002-plain")), b"1")
            self.assertFalse(os.path.exists(mount.join("plain")))  # ambiguous
        self.assertHoldsForAll(path, [A, ("plain", b"1"), ("numbered", b"2"), ("a/b", b"3"),
                                      ("x y%", b"4"), ("plain", b"5")])

    def test_longest_type_and_invalid_types(self):
        long = "t" * 127
        with self.written([A]) as (path, mount):
            put(mount.join(long), b"x")
            for name in ("t" * 128, "003-" + "t" * 128, "%00", "a%00b", "003-%00"):
                self.assertErrno((errno.EINVAL, errno.ENAMETOOLONG), put, mount.join(name), b"")
        self.assertHolds(path, [A, (long, b"x")])

    def test_ordinal_that_is_not_the_next(self):
        with self.written([A, B]) as (path, mount):
            for name in ("001-first!", "002-x", "004-x", "000-x", "999-x", "001-second"):
                self.assertErrno(errno.EPERM, put, mount.join(name), b"data")
            self.assertEqual(len(os.listdir(mount)), 2)
        self.assertHolds(path, [A, B])

    def test_existing_type(self):
        with self.written([A, B, ("first", b"!")]) as (path, mount):
            self.assertErrno(errno.EEXIST, put, mount.join("first"), b"data")
            self.assertErrno(errno.EEXIST, opened, mount.join("first"), os.O_WRONLY | os.O_CREAT)
            opened(mount.join("second"), os.O_WRONLY | os.O_CREAT, b"new")
            opened(mount.join("003-first"), os.O_WRONLY | os.O_CREAT, b"?")
            put(mount.join("004-second"), b"more")
            self.assertErrno(errno.EEXIST, put, mount.join("second"), b"data")
        self.assertHolds(path, [A, ("second", b"new" + B[1][3:]), ("first", b"?"),
                                ("second", b"more")])

    def test_exclusive(self):
        exclusive = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with self.written([A, B]) as (path, mount):
            for name in ("first", "001-first", "second", "002-second"):
                self.assertErrno(errno.EEXIST, opened, mount.join(name), exclusive, b"x")
            opened(mount.join("new"), exclusive, b"x")
            self.assertErrno(errno.EEXIST, opened, mount.join("new"), exclusive, b"y")
            self.assertErrno(errno.EEXIST, opened, mount.join("003-new"), exclusive, b"y")
            opened(mount.join("004-new"), exclusive, b"z")
            self.assertErrno(errno.EEXIST, opened, mount.join("new"), exclusive)
        self.assertHolds(path, [A, B, ("new", b"x"), ("new", b"z")])

    def test_one_append_at_a_time(self):
        with self.written([A]) as (path, mount):
            with open(mount.join("b"), "wb", buffering=0) as file:
                file.write(b"12")
                for name in ("c", "003-c"):
                    self.assertErrno(errno.EBUSY, put, mount.join(name), b"no")
                file.write(b"34")
                self.assertErrno(errno.EBUSY, put, mount.join("c"), b"no")
            put(mount.join("c"), b"yes")  # at once, without waiting for a release
        self.assertHolds(path, [A, ("b", b"1234"), ("c", b"yes")])

    def test_no_append_while_the_last_record_is_open_and_empty(self):
        """This also holds for a record that existed before, and after fsync."""
        with self.written([A, B]) as (path, mount):
            writer = writelib.Remote(self)
            for name, mode in (("second", os.O_TRUNC), ("new", os.O_CREAT)):
                fd = writer.open(mount.join(name), os.O_WRONLY | mode)
                writer.fsync(fd)
                self.assertErrno(errno.EBUSY, put, mount.join("other"), b"x")
                put(mount.join("first"), b"f" * 2000)
                writer.write(fd, b"abc")
                writer.close(fd)
            put(mount.join("other"), b"x")
        self.assertHolds(path, [("first", b"f" * 2000), ("second", b"abc"), ("new", b"abc"),
                                ("other", b"x")])

    def test_concurrent_appends(self):
        """One process appends, the others get EBUSY, and no data is mixed."""
        with self.written([A]) as (path, mount):
            def append_records(i):
                done, data = 0, bytes([65 + i]) * (20000 + i)
                for j in range(20):
                    done += self.succeeds([errno.EBUSY], opened, mount.join(f"{i}.{j}"),
                                          os.O_WRONLY | os.O_CREAT | os.O_EXCL, data)
                return done
            done = limetest.at_once(*((append_records, i) for i in range(6)))
            self.assertGreater(sum(done), 0)
        found = records(read(path))[1:]
        self.assertEqual(len(found), sum(done))
        for record in found:
            i = int(record.type.split(b".")[0])
            self.assertBytes(record.data, bytes([65 + i]) * (20000 + i), record.type)

    def test_empty_record_exists_after_close(self):
        with self.written([A]) as (path, mount):
            writer = writelib.Remote(self)
            for i in range(2, 30):
                name = mount.join(f"{i:03d}-empty")
                if i % 4:
                    writer.close(writer.open(name, os.O_WRONLY | os.O_CREAT))
                elif i % 8:
                    writer.mknod(name)
                elif i % 16:
                    self.run_ok(["touch", name])
                else:
                    self.run_ok(["sh", "-c", ': >"$1"', "sh", name])
                self.assertBytes(read(path), limetest.container([A, *[("empty", b"")] * (i - 1)]))

    def test_duplicate_closed_before_the_first_write(self):
        """Closing a duplicate of the descriptor, here or in a child, does not commit the record."""
        with self.written([A]) as (path, mount):
            writer = writelib.Remote(self)
            fd = writer.open(mount.join("new"), os.O_WRONLY | os.O_CREAT)
            writer.close(writer.dup(fd))
            self.assertEqual(writer.system("true"), 0)
            self.assertEqual(len(whole_records(read(path))[0]), 1)
            writer.write(fd, b"abc")
            writer.close(fd)
            self.assertHolds(path, [A, ("new", b"abc")])

    def test_readers_of_an_unfinished_record(self):
        """The writer's mount shows uncommitted data; another mount and lime show only committed
        records, with the data in the kernel's cache (direct=0) or in the container."""
        for direct in (0, os.O_DIRECT):
            with self.subTest(direct=direct):
                self.check_readers(direct)

    def check_readers(self, direct):
        old = limetest.container([A, B])
        path = self.write("c.lime", old)
        mount, other = self.rw(path), self.mount(path)

        def check_other_readers(items):
            data = read(path)
            found, _ = whole_records(data)
            self.assertEqual([(r.type.decode(), r.data) for r in found], items)
            self.assertEqual(len(os.listdir(other)), len(items))
            for i, (type, data) in enumerate(items, 1):
                self.assertBytes(read(other.join(f"{i:03d}-{type}")), data, type)
            done = limetest.run(["lime", "ls", path])
            self.assertEqual(done.stdout.count(b"\n"), limetest.run(
                ["lime", "ls", self.write("x", limetest.container(items))]).stdout.count(b"\n"))
            return done

        writer = writelib.Remote(self)
        fd = writer.open(mount.join("new"), os.O_RDWR | os.O_CREAT | direct)
        self.assertEqual(sorted(os.listdir(mount))[-1], "003-new")
        for n in (0, 1, 1000, 70000):
            writer.ftruncate(fd, 0)
            self.assertEqual(writer.pwrite(fd, b"n" * n, 0), n)
            self.assertEqual(writer.lseek(fd, 0, os.SEEK_END), n)
            self.assertEqual(os.stat(mount.join("new")).st_size, n)
            self.assertEqual(read(mount.join("003-new")), b"n" * n)
            self.assertEqual(read(path)[:len(old)], old)
            done = check_other_readers([A, B])
            self.assertEqual((done.returncode, done.stderr != b""), (1, True), done)
        writer.fsync(fd)
        check_other_readers([A, B, ("new", b"n" * 70000)])
        self.assertHolds(path, [A, B, ("new", b"n" * 70000)])
        writer.pwrite(fd, b"m" * 10000, 70000)
        self.assertEqual(os.stat(mount.join("new")).st_size, 80000)
        check_other_readers([A, B, ("new", b"n" * 70000)])
        writer.close(fd)
        check_other_readers([A, B, ("new", b"n" * 70000 + b"m" * 10000)])
        mount.stop(), other.stop()
        self.assertHolds(path, [A, B, ("new", b"n" * 70000 + b"m" * 10000)])

    def test_data_that_looks_like_records(self):
        """Readers don't take uncommitted data that looks like a container for records, not even
        where the next header is expected."""
        image = limetest.container([("fake", b"f" * 100), ("fake", b"e" * 8)]) * 3
        path = self.write("c.lime", limetest.container([A, ("last", b"12345678")]))

        def check_other_readers(items):
            want = [(type.encode(), len(data)) for type, data in items]
            with limetest.Mount(path) as other:
                self.assertEqual([os.stat(other.join(name)).st_size
                                  for name in sorted(os.listdir(other))], [n for _, n in want])
            listed = json.loads(limetest.run(["lime", "ls", "--json", path]).stdout)["records"]
            self.assertEqual([(r["type"].encode(), r["bytes"]) for r in listed], want)

        with self.rw(path) as mount:
            writer = writelib.Remote(self)
            for name, data in (("last", b"12345678"), ("new", b"")):
                fd = writer.open(mount.join(name), os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
                before = [A] if name == "last" else [A, ("last", b"12345678" + image * 2)]
                known = [*before, (name, data)] if data else before
                for part in (image, image):
                    writer.pwrite(fd, part, len(data))
                    check_other_readers(known)
                    writer.fsync(fd)
                    data += part
                    known = [*before, (name, data)]
                    check_other_readers(known)
                writer.close(fd)
                check_other_readers(known)
        self.assertHoldsForAll(path, known)

    def test_several_programs_write_one_record(self):
        """Each program closes the record at its end; the next one continues it."""
        with self.written([A]) as (path, mount):
            self.run_ok(["sh", "-c", '{ echo one; echo two | cat; dd if=/dev/zero bs=8 count=1 '
                                     'status=none; cat "$2"; } >"$1"', "sh", mount.join("new"),
                         self.write("image", limetest.container([A, B]))])
            self.run_ok(["sh", "-c", '(cat; echo end) >>"$1"', "sh", mount.join("new")],
                        input=b"more")
        self.assertHolds(path, [A, ("new", b"one\ntwo\n" + bytes(8) + limetest.container([A, B])
                                    + b"moreend\n")])

    def test_removed_while_open(self):
        """unlink of an open record removes it at once or returns EBUSY; its descriptor then changes
        no other record."""
        with self.written([A]) as (path, mount):
            fd = os.open(mount.join("new"), os.O_RDWR | os.O_CREAT | os.O_DIRECT)
            write_all(fd, b"x" * 100000)
            if not self.succeeds([errno.EBUSY], os.unlink, mount.join("new")):
                os.close(fd)
                self.assertHolds(path, [A, ("new", b"x" * 100000)])
                os.unlink(mount.join("new"))
                return
            self.assertEqual(os.listdir(mount), ["001-first"])
            self.assertHolds(path, [A])
            gone = (errno.ESTALE, errno.ENOENT, errno.EIO)
            for call in ((os.write, fd, b"y"), (os.fsync, fd)):
                self.succeeds(gone, *call)  # may succeed, but must not change the container
            self.assertHolds(path, [A])
            put(mount.join("other"), b"z" * 50)
            self.assertHolds(path, [A, ("other", b"z" * 50)])
            self.succeeds(gone, os.close, fd)
            self.assertHolds(path, [A, ("other", b"z" * 50)])


class AppendingByOneThread(Appending):
    OPTS = ("attr_timeout=0", "entry_timeout=0")
    ARGS = ("-s",)


@limetest.needs_fuse
class Last(writelib.TestCase):
    """The last record may change to any length at any time."""

    def assert_too_far(self, fd, data, at):
        """Asserts that write, fsync or close reports EFBIG or EINVAL; closes fd."""
        def steps():
            os.pwrite(fd, data, at)
            os.fsync(fd)
        try:
            self.assertErrno((errno.EFBIG, errno.EINVAL), steps)
        finally:
            self.succeeds((errno.EFBIG, errno.EINVAL, errno.EIO), os.close, fd)

    def test_rewritten(self):
        with self.written([A, B]) as (path, mount):
            for new in (b"n" * len(B[1]), b"", b"short", some(MIB + 3)):
                with self.subTest(len(new)):
                    with open(mount.join("second"), "wb", buffering=0) as file:
                        self.assertEqual(os.stat(mount.join("second")).st_size, 0)
                        if new:
                            write_all(file.fileno(), new)
                        self.assertEqual(os.stat(mount.join("second")).st_size, len(new))
                    self.assertHolds(path, [A, ("second", new)])
                    self.assertBytes(read(mount.join("second")), new)

    def test_truncated(self):
        """Truncation by path, by descriptor and by truncate(1) takes effect at once."""
        with self.written([A, B]) as (path, mount):
            data = B[1]
            for n in (2000, 1999, 1, 0, 7, 4096, 5000, 300000, 100):
                data = data[:n].ljust(n, b"\0")
                os.truncate(mount.join("second"), n)
                self.assertEqual(os.stat(mount.join("second")).st_size, n)
                self.assertBytes(read(mount.join("second")), data)
                self.assertHolds(path, [A, ("second", data)])
            for n in (0, 3, 70000, 15):
                data = data[:n].ljust(n, b"\0")
                self.run_ok(["truncate", "-s", str(n), mount.join("second")])
                self.assertHolds(path, [A, ("second", data)])
            with open(mount.join("second"), "r+b", buffering=0) as file:
                for n in (2000, 1, 0, 123456, 77):
                    data = data[:n].ljust(n, b"\0")
                    file.truncate(n)
                    self.assertEqual(os.fstat(file.fileno()).st_size, n)
                    os.fsync(file.fileno())
                    self.assertHolds(path, [A, ("second", data)])

    def test_sizes_too_large_for_a_file(self):
        with self.written([A, B]) as (path, mount):
            for n in (1 << 62, (1 << 63) - 1):
                self.assertErrno((errno.EFBIG, errno.EINVAL), os.truncate, mount.join("second"), n)
            self.assert_too_far(os.open(mount.join("second"), os.O_RDWR), b"x", (1 << 63) - 2)
            until(lambda: os.stat(mount.join("second")).st_size == len(B[1]))
        self.assertHolds(path, [A, B])

    def test_removed(self):
        with self.written([[A], [B, C]]) as (path, mount):
            self.run_ok(["rm", mount.join("third")])
            self.assertHolds(path, [[A], [B]])
            self.assertEqual(sorted(os.listdir(mount)), ["001-first", "002-second"])
            os.unlink(mount.join("002-second"))
            self.assertHolds(path, [[A]])
            put(mount.join("other"), b"x")
            self.assertHolds(path, [[A, ("other", b"x")]])
            os.unlink(mount.join("other"))
            os.unlink(mount.join("first"))
            self.assertEqual(os.listdir(mount), [])
            self.assertEqual(read(path), b"")
            put(mount.join("again"), b"y")
        self.assertHolds(path, [("again", b"y")])

    def test_removed_while_read(self):
        """A reader of a removed record gets its old data or ESTALE, never another record's data."""
        data = b"d" * (2 * MIB)
        with self.written([A, ("data", data)]) as (path, mount):
            fd = os.open(mount.join("data"), os.O_RDONLY)
            self.assertEqual(os.read(fd, 4096), b"d" * 4096)
            os.unlink(mount.join("data"))
            self.assertHolds(path, [A])
            put(mount.join("data"), b"n" * (2 * MIB))
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            try:
                while part := os.read(fd, MIB):
                    self.assertEqual(set(part), {ord("d")})
            except OSError as error:
                self.assertEqual(error.errno, errno.ESTALE)
            os.close(fd)
            self.assertBytes(read(mount.join("data")), b"n" * (2 * MIB))
        self.assertHolds(path, [A, ("data", b"n" * (2 * MIB))])

    def test_becomes_an_inner_record(self):
        """A process that has the record open continues to write in it and behind its end."""
        with self.written([A, B]) as (path, mount):
            fd = os.open(mount.join("second"), os.O_RDWR)
            os.pwrite(fd, b"1234", len(B[1]))
            os.fsync(fd)
            if not self.succeeds([errno.EBUSY], put, mount.join("new"), b"n" * 100):
                os.close(fd)
                self.assertHolds(path, [A, ("second", B[1] + b"1234")])
                return
            os.pwrite(fd, b"56", len(B[1]))
            os.fsync(fd)
            os.pwrite(fd, b"78", len(B[1]) + 4)
            os.close(fd)
        self.assertHolds(path, [A, ("second", B[1] + b"563478"), ("new", b"n" * 100)])


class LastByOneThread(Last):
    OPTS = ("attr_timeout=0", "entry_timeout=0")
    ARGS = ("-s",)


if __name__ == "__main__":
    limetest.main()
