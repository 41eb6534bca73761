"""Writing through a mount: what programs write is what the container holds, byte for byte, and
what cannot be done is refused, with the errno that docs/writing.md names."""

import concurrent.futures
import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import writelib
from writelib import MIB, flags, put, pwrite_all, read, records, until, whole_records, write_all

A = ("first", b"a" * 1000)
B = ("second", b"b" * 2001)
C = ("third", b"c" * 3003)

FALLOC_KEEP_SIZE, FALLOC_PUNCH, FALLOC_COLLAPSE, FALLOC_INSERT = 1, 2, 8, 32


def some(n, seed=1):
    return random.Random(seed).randbytes(n)


def fallocate(fd, mode, offset, n):
    libc = ctypes.CDLL(None, use_errno=True)
    call = libc.fallocate
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if call(fd, mode, offset, n) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def opened(path, mode, data=None):
    """Opens, writes, closes."""
    fd = os.open(path, mode, 0o644)
    try:
        if data is not None:
            write_all(fd, data)
    finally:
        os.close(fd)


def lock(fd):
    """As limefs does it: F_OFD_SETLK, which Python 3.11 has no name for."""
    fcntl.fcntl(fd, 37, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))


def sizes(mount):
    return [os.stat(mount.join(name)).st_size for name in sorted(os.listdir(mount))]


@limetest.needs_fuse
class RoundTrips(writelib.TestCase):
    """Containers that are made of nothing but what ordinary programs write."""

    DATA = [b"", b"1", b"1234567", b"12345678", some(4096, 2), some(3 * MIB + 5, 3)]

    def make(self, write, data=None):
        """A container of records that write(path of the record, path of the data) makes: by type,
        and by NNN-type."""
        folder = self.tempdir()
        items = [("xlf-info", b"begin")]
        path = self.write("c.lime", limetest.container(items))
        with self.rw(path) as mount:
            for i, bytes_ in enumerate(self.DATA if data is None else data, 2):
                name = f"type {i}" if i % 2 else f"{i:03d}-type {i}"
                items.append((f"type {i}", bytes_))
                write(mount.join(name), put(os.path.join(folder, str(i)), bytes_))
                self.assertEqual(len(os.listdir(mount)), i)
        self.assertHoldsForAll(path, items)
        self.assertBytes(self.packed([items]), read(path), "lime pack")

    def by_command(self, *args, data=None, shell=False):
        """In the words, IN and OUT stand for the data and the record."""
        def write(out, given):
            if shell:
                limetest.run(["sh", "-c", args[0], "sh", given, out], check=True)
            else:
                words = [arg.replace("IN", given).replace("OUT", out) for arg in args]
                limetest.run(words, check=True)
        self.make(write, data)

    def test_cp(self):
        self.by_command("cp", "IN", "OUT")

    def test_cp_into_the_folder(self):
        """Named as the file is."""
        path = self.write("c.lime", limetest.container([A]))
        given = self.write("ildg-log", some(100000))
        with self.rw(path) as mount:
            self.run_ok(["cp", given, mount.path])
        self.assertHoldsForAll(path, [A, ("ildg-log", some(100000))])

    def test_dd(self):
        data = {"4k": [some(5 * 4096, 1), some(4 * MIB + 1, 2)], "1M": [some(9 * MIB + 3, 3)],
                "64M": [some(70 * MIB + 7, 4)]}
        for block, given in data.items():
            for options in ("", "conv=fsync"):
                with self.subTest(bs=block, options=options):
                    self.by_command("dd", "if=IN", "of=OUT", f"bs={block}", "status=none",
                                    *options.split(), data=given)

    def test_dd_direct(self):
        self.by_command("dd", "if=IN", "of=OUT", "bs=1M", "oflag=direct", "status=none",
                        data=[some(5 * MIB, 1), some(4096, 2)])

    def test_tee(self):
        self.by_command('tee "$2" <"$1" >/dev/null', shell=True)

    def test_redirected(self):
        self.by_command('cat <"$1" >"$2"', shell=True)

    def test_appended_to(self):
        """The shell opens the same record a hundred times."""
        self.by_command('cat "$1" >>"$2"', shell=True)
        path = self.write("c.lime", limetest.container([A]))
        with self.rw(path) as mount:
            script = 'for i in $(seq 100); do echo "line $i" >>"$1"; done'
            self.run_ok(["sh", "-c", script, "sh", mount.join("log")])
            self.run_ok(["sh", "-c", script, "sh", mount.join("002-log")])
        lines = b"".join(b"line %d\n" % i for i in range(1, 101)) * 2
        self.assertHoldsForAll(path, [A, ("log", lines)])

    def test_rsync_inplace(self):
        if not shutil.which("rsync"):
            self.skipTest("needs rsync")
        self.by_command("rsync", "--inplace", "IN", "OUT")
        for size in (len(B[1]), 10, 5 * MIB):  # over the last record, and over an inner one
            with self.written([A, B, C]) as (path, mount):
                new = some(size, 7)
                for name in ("second", "third"):
                    self.run_ok(["rsync", "--inplace", "--ignore-times", self.write("x", new),
                                 mount.join(name)])
            self.assertHolds(path, [A, ("second", new), ("third", new)])

    def test_mapped(self):
        def write(out, given):
            data = read(given)
            with open(out, "w+b") as file:
                if data:
                    file.truncate(len(data))
                    with mmap.mmap(file.fileno(), len(data)) as pages:
                        pages[:] = data
                        if len(data) % 2:
                            pages.flush()
        self.make(write)

    def test_mapped_longer_than_it_is_open(self):
        def write(out, given):
            data = read(given)
            with open(out, "w+b") as file:
                file.truncate(len(data))
                pages = mmap.mmap(file.fileno(), len(data))
            pages[:] = data
            pages.flush()
            pages.close()
        self.make(write, [some(100000, 1), some(3 * MIB + 1, 2)])

    def test_small_and_odd_writes(self):
        def write(out, given):
            data, dice = memoryview(read(given)), random.Random(5)
            fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            while data:
                n = os.write(fd, data[:dice.choice([1, 7, 100, 4096, 131073])])
                data = data[n:]
                if dice.randrange(20) == 0:
                    os.fsync(fd)
            os.close(fd)
        self.make(write)

    def test_backwards_and_with_holes(self):
        def write(out, given):
            data, block = read(given), 10007
            with open(out, "w+b", buffering=0) as file:
                for at in reversed(range(0, len(data), block)):
                    if any(data[at:at + block]):
                        pwrite_all(file.fileno(), data[at:at + block], at)
                file.truncate(len(data))
                self.assertBytes(os.pread(file.fileno(), len(data), 0), data, "read back")
        self.make(write, [some(300000, 1), bytes(50000) + some(3, 2) + bytes(99999),
                          bytes(100000)])

    def test_made_of_nothing(self):
        path = self.write("new.lime", b"")
        with self.rw(path) as mount:
            self.assertEqual(os.listdir(mount), [])
            for i in range(1, 4):
                put(mount.join(f"type-{i}"), b"%d" % i * i)
        self.assertHoldsForAll(path, [("type-1", b"1"), ("type-2", b"22"), ("type-3", b"333")])

    def test_the_corpus_again(self):
        """Each container of the corpus, written record by record, message by message."""
        names = sorted({row["file"] for row in limetest.manifest()})
        for name in names:
            original = os.path.join(limetest.CORPUS, name)
            path = self.write("copy.lime", b"")
            with self.subTest(name), self.rw(path) as mount, limetest.Mount(original) as old:
                for i, record in enumerate(sorted(os.listdir(old)), 1):
                    shutil.copyfile(old.join(record), mount.join(record))
                    if i > 1 and os.getxattr(old.join(record), "user.lime.mb") == b"1":
                        os.setxattr(mount.join(record), "user.lime.mb", b"1")
                mount.stop()
                want = read(original)  # one lacks its last padding, as Lemon wrote it once
                self.assertBytes(read(path), want + bytes(-len(want) % 8), name)

    def test_many_records(self):
        count = 1000 if limetest.STRESS else 150
        path = self.write("c.lime", b"")
        with self.rw(path) as mount:
            for i in range(count):
                put(mount.join(f"{i + 1:03d}-t"), b"x" * (i % 11))
        self.assertHolds(path, [("t", b"x" * (i % 11)) for i in range(count)])


class RoundTripsByOneThread(RoundTrips):
    """The same with one thread in the daemon and a kernel that trusts nothing."""

    OPTS = ("attr_timeout=0", "entry_timeout=0")
    ARGS = ("-s",)


class RoundTripsDirect(RoundTrips):
    OPTS = ("direct_io",)


@limetest.needs_fuse
class Concurrent(writelib.TestCase):
    SIZE = 2 * MIB + 77

    def pieces(self, size, seed):
        """[0, size) in pieces, in a random order."""
        dice, at, found = random.Random(seed), 0, []
        while at < size:
            n = min(dice.choice([100, 4096, 65536, 300001]), size - at)
            found.append((at, n))
            at += n
        dice.shuffle(found)
        return found

    def write_pieces(self, path, data, pieces, how):
        fd = os.open(path, os.O_RDWR)
        try:
            if how == "map":
                with mmap.mmap(fd, 0) as pages:
                    for at, n in pieces:
                        pages[at:at + n] = data[at:at + n]
                    pages.flush()
            else:
                for at, n in pieces:
                    pwrite_all(fd, data[at:at + n], at)
                    if how == "sync" and at % 5 == 0:
                        os.fsync(fd)
        finally:
            os.close(fd)

    def all_of(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
            for job in [pool.submit(self.write_pieces, *args) for args in jobs]:
                job.result()

    def test_eight_records(self):
        new = [some(self.SIZE + i, i) for i in range(8)]
        old = [(f"r{i}", bytes(len(data))) for i, data in enumerate(new)]
        with self.written(old) as (path, mount):
            self.all_of([(mount.join(f"r{i}"), data, self.pieces(len(data), i),
                          ("plain", "map", "sync")[i % 3]) for i, data in enumerate(new)])
        self.assertHoldsForAll(path, [(f"r{i}", data) for i, data in enumerate(new)])

    def test_ranges_of_one_record(self):
        """Writers of neighbouring bytes harm each other nowhere; an inner record, the last."""
        new = some(8 * 300000 + 5, 4)
        for which in (0, 1):
            items = [("one", bytes(len(new))), ("two", bytes(len(new)))]
            with self.subTest(items[which][0]), self.written(items) as (path, mount):
                pieces = self.pieces(len(new), 7)
                self.all_of([(mount.join(items[which][0]), new, pieces[i::8], "plain")
                             for i in range(8)])
            items[which] = (items[which][0], new)
            self.assertHolds(path, items)

    def test_ranges_of_a_new_record(self):
        """Eight writers of a record that is not there yet, the first bytes last."""
        new = some(8 * 300000 + 5, 4)
        with self.written([A]) as (path, mount):
            pieces = sorted(self.pieces(len(new), 7), reverse=True)
            with open(mount.join("new"), "wb"):
                self.all_of([(mount.join("new"), new, pieces[i::8], ("plain", "sync")[i % 2])
                             for i in range(8)])
        self.assertHolds(path, [A, ("new", new)])

    def test_readers_and_a_writer(self):
        """A reader sees old or new bytes of each block, and never others."""
        block, count = 4096, 200
        old, new = b"o" * block * count, b"n" * block * count
        stop, wrong = threading.Event(), []
        with self.written([A, ("data", old), B]) as (path, mount):
            def reader():
                while not stop.is_set():
                    found = read(mount.join("data"))
                    if len(found) != len(old) or set(found) - {ord("o"), ord("n")}:
                        wrong.append(set(found))

            threads = [threading.Thread(target=reader) for _ in range(3)]
            for thread in threads:
                thread.start()
            try:
                self.write_pieces(mount.join("data"), new, self.pieces(len(new), 3), "sync")
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            self.assertEqual(wrong, [])
            self.assertBytes(read(mount.join("data")), new)
        self.assertHolds(path, [A, ("data", new), B])

    def everything_at_once(self, *opts, tree=False, start=None, **kw):
        """Each thread with a record of its own, which nobody else changes: in place, written anew
        in other lengths, appended and removed, given flags and types; and readers of all."""
        size, end, wrong = 300000, time.monotonic() + (60 if limetest.STRESS else 4), []
        items = [("patched", bytes(size)), ("mapped", bytes(size)), ("anew", b"anew"),
                 ("named", b"n" * 5000), ("still", b"s" * 100000), ("last", b"")]
        path = self.write("c.lime", limetest.container(items))
        source = os.path.dirname(path) if tree else path
        mount = start(source) if start else self.rw(source, *opts, **kw)
        inside = mount.join("c.lime") if tree else mount.path
        want = dict(items)

        def within(name):
            return os.path.join(inside, name)

        def busy(call, *args):
            """Somebody appends, or the container is just written anew: later, then."""
            try:
                return call(*args)
            except OSError as error:
                if error.errno not in (errno.EBUSY, errno.ENOENT, errno.ESTALE):
                    raise
                return None

        def patch(dice):
            data = bytearray(want["patched"])
            at = dice.randrange(size)
            part = dice.randbytes(dice.randrange(1, size - at + 1))
            data[at:at + len(part)] = part
            fd = os.open(within("001-patched"), os.O_RDWR)
            try:
                pwrite_all(fd, part, at)
                if dice.randrange(2):
                    os.fsync(fd)
                self.assertBytes(os.pread(fd, size, 0), bytes(data), "patched")
            finally:
                os.close(fd)
            want["patched"] = bytes(data)

        def change_map(dice):
            at, n = dice.randrange(size - 5000), dice.randrange(1, 5000)
            part = dice.randbytes(n)
            with open(within("002-mapped"), "r+b") as file, mmap.mmap(file.fileno(), 0) as m:
                m[at:at + n] = part
                if dice.randrange(2):
                    m.flush()
            want["mapped"] = want["mapped"][:at] + part + want["mapped"][at + n:]

        def anew(dice):
            data = dice.randbytes(dice.choice([1, 4, 1000, 70000]))
            while not wrong:
                try:
                    put(within("003-anew"), data)
                    break
                except OSError as error:  # its release may still put it in its place
                    if error.errno != errno.EBUSY:
                        raise
            want["anew"] = data
            self.assertBytes(read(within("anew")), want["anew"], "anew")

        def name(dice):
            types = ["named", "renamed", "n" * 127]
            found = [n for n in os.listdir(inside) if n.startswith("004-")][0]
            busy(os.setxattr, within(found), "user.lime.type",
                 dice.choice(types).encode())
            busy(os.setxattr, within("005-still"), "user.lime.mb", b"%d" % dice.randrange(2))

        def append(dice):
            fd = busy(os.open, within("007-more"), os.O_RDWR | os.O_CREAT | os.O_EXCL)
            if fd is None:
                return
            data = dice.randbytes(dice.randrange(1, 100000))
            try:
                write_all(fd, data)
                self.assertBytes(os.pread(fd, len(data), 0), data, "more")
            finally:
                os.close(fd)
            self.assertBytes(read(within("007-more")), data, "more")
            os.unlink(within("007-more"))

        def look(_):
            self.assertBytes(read(within("still")), want["still"], "still")
            self.assertEqual(os.stat(within("patched")).st_size, size)
            self.assertGreaterEqual(len(os.listdir(inside)), len(items))

        def look_from_outside(_):
            with open(path, "rb") as file:  # always the same file, whole
                found = whole_records(file.read())[0]
            self.assertGreaterEqual(len(found), len(items))
            self.assertBytes(found[4].data, want["still"], "still, from outside")

        def loop(call, seed):
            dice = random.Random(seed)
            try:
                while time.monotonic() < end and not wrong:
                    call(dice)
            except (OSError, AssertionError, IndexError) as error:
                at = traceback.extract_tb(error.__traceback__)[1]
                wrong.append((call.__name__, at.lineno, at.line, repr(error)))

        calls = [patch, change_map, anew, name, append, look, look, look_from_outside]
        threads = [threading.Thread(target=loop, args=(call, i)) for i, call in enumerate(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        mount.stop()
        self.assertEqual(wrong, [])
        found = self.assertClean(path)
        for (type, _), record in zip(items, found):
            self.assertBytes(record.data, want[type], type)
        self.assertEqual(len(found), len(items))

    def test_everything_at_once(self):
        self.everything_at_once()

    def test_everything_at_once_by_one_thread(self):
        self.everything_at_once("attr_timeout=0", "entry_timeout=0", args=["-s"])

    def test_everything_at_once_in_a_tree(self):
        self.everything_at_once(tree=True)

    def test_two_processes_append(self):
        """With O_APPEND no line is lost or torn."""
        count = 2000 if limetest.STRESS else 300
        code = ("import os, sys\n"
                "fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)\n"
                f"for i in range({count}):\n"
                "    line = b'%s %06d\\n' % (sys.argv[2].encode(), i)\n"
                "    assert os.write(fd, line) == len(line)\n"
                "    if i % 50 == 0: os.fsync(fd)\n"
                "os.close(fd)\n")
        with self.written([A]) as (path, mount):
            put(mount.join("log"), b"")
            writers = [subprocess.Popen([sys.executable, "-c", code, mount.join("log"), name])
                       for name in ("x", "y")]
            for writer in writers:
                self.addCleanup(writer.kill)
                self.assertEqual(writer.wait(60 * limetest.SLOWNESS), 0)
        lines = records(read(path))[1].data.split(b"\n")
        self.assertEqual(lines.pop(), b"")
        for name in (b"x", b"y"):
            self.assertEqual([line for line in lines if line[:1] == name],
                             [b"%s %06d" % (name, i) for i in range(count)])
        self.assertEqual(len(lines), 2 * count)


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
            self.assertFalse(os.path.exists(mount.join("plain")))  # of two
        self.assertHoldsForAll(path, [A, ("plain", b"1"), ("numbered", b"2"), ("a/b", b"3"),
                                      ("x y%", b"4"), ("plain", b"5")])

    def test_the_longest_type(self):
        long = "t" * 127
        with self.written([A]) as (path, mount):
            put(mount.join(long), b"x")
            for name in ("t" * 128, "003-" + "t" * 128):
                self.assertErrno((errno.EINVAL, errno.ENAMETOOLONG), put, mount.join(name), b"")
        self.assertHolds(path, [A, (long, b"x")])

    def test_types_that_no_header_can_hold(self):
        with self.written([A]) as (path, mount):
            for name in ("%00", "a%00b", "t" * 128, "002-%00"):
                self.assertErrno((errno.EINVAL, errno.ENAMETOOLONG), put, mount.join(name), b"")
        self.assertHolds(path, [A])

    def test_an_ordinal_that_is_not_the_next(self):
        with self.written([A, B]) as (path, mount):
            for name in ("001-first!", "002-x", "004-x", "000-x", "999-x", "001-second"):
                self.assertErrno(errno.EPERM, put, mount.join(name), b"data")
            self.assertEqual(len(os.listdir(mount)), 2)
        self.assertHolds(path, [A, B])

    def test_a_type_that_occurs(self):
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

    def test_one_at_a_time(self):
        with self.written([A]) as (path, mount):
            with open(mount.join("b"), "wb", buffering=0) as file:
                file.write(b"12")
                for name in ("c", "003-c"):
                    self.assertErrno(errno.EBUSY, put, mount.join(name), b"no")
                file.write(b"34")
                self.assertErrno(errno.EBUSY, put, mount.join("c"), b"no")
            put(mount.join("c"), b"yes")  # at once: nothing is to be waited for
        self.assertHolds(path, [A, ("b", b"1234"), ("c", b"yes")])

    def test_none_behind_one_that_is_to_be_filled(self):
        """Also where it was there before, or fsync has said that it is."""
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

    def test_one_right_after_the_other(self):
        count = 500 if limetest.STRESS else 60
        with self.written([A]) as (path, mount):
            for i in range(count):
                opened(mount.join(f"t{i}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, b"%d" % i)
        self.assertHolds(path, [A, *((f"t{i}", b"%d" % i) for i in range(count))])

    def test_many_who_want_to_append(self):
        """One gets it, the others EBUSY, and nothing is mixed."""
        with self.written([A]) as (path, mount):
            def one(i):
                done, data = 0, bytes([65 + i]) * (20000 + i)
                for j in range(20):
                    try:
                        opened(mount.join(f"{i}.{j}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, data)
                        done += 1
                    except OSError as error:
                        if error.errno != errno.EBUSY:
                            raise
                return done
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                done = list(pool.map(one, range(6)))
            self.assertGreater(sum(done), 0)
        found = records(read(path))[1:]
        self.assertEqual(len(found), sum(done))
        for record in found:
            i = int(record.type.split(b".")[0])
            self.assertBytes(record.data, bytes([65 + i]) * (20000 + i), record.type)

    def test_nothing_written(self):
        with self.written([A]) as (path, mount):
            self.run_ok(["touch", mount.join("empty")])
            self.assertEqual(os.stat(mount.join("empty")).st_size, 0)
            self.assertEqual(read(mount.join("empty")), b"")
        self.assertHolds(path, [A, ("empty", b"")])

    def test_nothing_written_is_there_when_it_is_closed(self):
        with self.written([A]) as (path, mount):
            writer = writelib.Remote(self)
            for i in range(2, 30):
                name = mount.join(f"{i:03d}-empty")
                if i % 4:
                    writer.close(writer.open(name, os.O_WRONLY | os.O_CREAT))
                elif i % 8:
                    writer.mknod(name)
                else:
                    self.run_ok(["sh", "-c", ': >"$1"', "sh", name])
                self.assertBytes(read(path), limetest.container([A, *[("empty", b"")] * (i - 1)]))

    def test_nothing_written_yet(self):
        """A copy of the descriptor is closed, and by processes that were started; then it goes
        on."""
        with self.written([A]) as (path, mount):
            writer = writelib.Remote(self)
            fd = writer.open(mount.join("new"), os.O_WRONLY | os.O_CREAT)
            writer.close(writer.dup(fd))
            self.assertEqual(writer.system("true"), 0)
            self.assertEqual(len(whole_records(read(path))[0]), 1)
            writer.write(fd, b"abc")
            writer.close(fd)
            self.assertHolds(path, [A, ("new", b"abc")])

    def test_what_everybody_sees_meanwhile(self):
        """The writer, the same mount, another mount, lime; step by step; with what is written in
        the kernel's cache, and with it in the container."""
        for direct in (0, os.O_DIRECT):
            with self.subTest(direct=direct):
                self.everybody_sees(direct)

    def everybody_sees(self, direct):
        old = limetest.container([A, B])
        path = self.write("c.lime", old)
        mount, other = self.rw(path), self.mount(path)

        def others_see(items):
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
            done = others_see([A, B])
            self.assertEqual((done.returncode, done.stderr != b""), (1, True), done)
        writer.fsync(fd)
        others_see([A, B, ("new", b"n" * 70000)])
        self.assertHolds(path, [A, B, ("new", b"n" * 70000)])
        writer.pwrite(fd, b"m" * 10000, 70000)
        self.assertEqual(os.stat(mount.join("new")).st_size, 80000)
        others_see([A, B, ("new", b"n" * 70000)])
        writer.close(fd)
        others_see([A, B, ("new", b"n" * 70000 + b"m" * 10000)])
        mount.stop(), other.stop()
        self.assertHolds(path, [A, B, ("new", b"n" * 70000 + b"m" * 10000)])

    def test_data_that_look_like_records(self):
        """Containers in records: nobody takes what is not committed for records, where a header
        may stand behind what is."""
        image = limetest.container([("fake", b"f" * 100), ("fake", b"e" * 8)]) * 3
        path = self.write("c.lime", limetest.container([A, ("last", b"12345678")]))

        def others_see(items):
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
                    others_see(known)
                    writer.fsync(fd)
                    data += part
                    known = [*before, (name, data)]
                    others_see(known)
                writer.close(fd)
                others_see(known)
        self.assertHoldsForAll(path, known)

    def test_several_programs_into_one_record(self):
        """Each of them closes it at its end; the record goes on."""
        with self.written([A]) as (path, mount):
            self.run_ok(["sh", "-c", '{ echo one; echo two | cat; dd if=/dev/zero bs=8 count=1 '
                                     'status=none; cat "$2"; } >"$1"', "sh", mount.join("new"),
                         self.write("image", limetest.container([A, B]))])
            self.run_ok(["sh", "-c", '(cat; echo end) >>"$1"', "sh", mount.join("new")],
                        input=b"more")
        self.assertHolds(path, [A, ("new", b"one\ntwo\n" + bytes(8) + limetest.container([A, B])
                                    + b"moreend\n")])

    def test_removed_while_it_is_open(self):
        """As any file: who has it open goes on with it; the container does not have it."""
        with self.written([A]) as (path, mount):
            fd = os.open(mount.join("new"), os.O_RDWR | os.O_CREAT | os.O_DIRECT)
            write_all(fd, b"x" * 100000)
            try:
                os.unlink(mount.join("new"))
            except OSError as error:
                self.assertEqual(error.errno, errno.EBUSY)
                os.close(fd)
                self.assertHolds(path, [A, ("new", b"x" * 100000)])
                os.unlink(mount.join("new"))
                return
            self.assertEqual(os.listdir(mount), ["001-first"])
            self.assertHolds(path, [A])
            for call in (lambda: os.write(fd, b"y"), lambda: os.fsync(fd)):
                try:  # like a file that has gone, or an error; but nowhere else
                    call()
                except OSError as error:
                    self.assertIn(error.errno, (errno.ESTALE, errno.ENOENT, errno.EIO))
            self.assertHolds(path, [A])
            put(mount.join("other"), b"z" * 50)
            self.assertHolds(path, [A, ("other", b"z" * 50)])
            try:
                os.close(fd)
            except OSError as error:
                self.assertIn(error.errno, (errno.ESTALE, errno.ENOENT, errno.EIO))
            self.assertHolds(path, [A, ("other", b"z" * 50)])

    def test_unmounted_while_it_is_written(self):
        """What was written by then and never closed may be gone; the container is good."""
        path = self.write("c.lime", limetest.container([A, B]))
        for number in (15, 2):
            mount = self.rw(path)
            fd = os.open(mount.join("new"), os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
            write_all(fd, b"x" * 300000)
            os.kill(mount.pid, number)
            mount.wait_for_end()
            with self.assertRaises(OSError):
                os.fsync(fd)
            with self.assertRaises(OSError):
                os.close(fd)
            mount.stop()
            with self.rw(path):
                pass
            found = self.assertClean(path)
            self.assertEqual([r.data for r in found[:2]], [A[1], B[1]])


class AppendingByOneThread(Appending):
    OPTS = ("attr_timeout=0", "entry_timeout=0")
    ARGS = ("-s",)


@limetest.needs_fuse
class Messages(writelib.TestCase):
    def set(self, mount, name, what, value):
        os.setxattr(mount.join(name), f"user.lime.{what}", value)

    def test_each_append_joins_the_last_message(self):
        with self.written([[A], [B]]) as (path, mount):
            self.assertEqual(flags(read(path)), ["MBME", "MBME"])
            with open(mount.join("new"), "wb", buffering=0) as file:
                file.write(b"x")
                self.assertEqual(flags(read(path)), ["MBME", "MBME"])
                os.fsync(file.fileno())
                self.assertEqual(flags(read(path)), ["MBME", "MB", "ME"])
            put(mount.join("newer"), b"y")
            self.assertEqual(flags(read(path)), ["MBME", "MB", "", "ME"])
            self.assertEqual(os.getxattr(mount.join("newer"), "user.lime.message"), b"2")
            self.assertEqual(os.getxattr(mount.join("newer"), "user.lime.record"), b"3")
            os.unlink(mount.join("newer"))
            self.assertEqual(flags(read(path)), ["MBME", "MB", "ME"])
            os.unlink(mount.join("new"))
            self.assertEqual(flags(read(path)), ["MBME", "MBME"])
            os.unlink(mount.join("second"))
            self.assertEqual(flags(read(path)), ["MBME"])

    def test_a_new_message_before_the_data(self):
        with self.written([A]) as (path, mount):
            fd = os.open(mount.join("new"), os.O_WRONLY | os.O_CREAT)
            self.set(mount, "new", "mb", b"1")
            self.assertEqual(flags(read(path)), ["MBME"])
            write_all(fd, b"data")
            os.close(fd)
            self.assertEqual(flags(read(path)), ["MBME", "MBME"])
            put(mount.join("more"), b"")  # of nothing: there when its release has come
            until(lambda: flags(read(path)) == ["MBME", "MB", "ME"])
        self.assertHoldsForAll(path, [[A], [("new", b"data"), ("more", b"")]])

    def test_a_new_message_after_the_data(self):
        with self.written([A]) as (path, mount):
            put(mount.join("new"), b"data")
            self.set(mount, "new", "mb", b"1")
            self.assertEqual(flags(read(path)), ["MBME", "MBME"])
            self.assertEqual(os.getxattr(mount.join("new"), "user.lime.message"), b"2")
            self.set(mount, "new", "mb", b"0")
            self.assertEqual(flags(read(path)), ["MB", "ME"])
            self.assertEqual(os.getxattr(mount.join("new"), "user.lime.message"), b"1")

    def test_boundaries_anywhere(self):
        """The neighbour follows, whichever of the two is set."""
        with self.written([A, B, C]) as (path, mount):
            steps = [("second", "mb", b"1", ["MBME", "MB", "ME"]),
                     ("second", "me", b"1", ["MBME", "MBME", "MBME"]),
                     ("first", "me", b"0", ["MB", "ME", "MBME"]),
                     ("third", "mb", b"0", ["MB", "", "ME"]),
                     ("third", "mb", b"0", ["MB", "", "ME"]),
                     ("first", "mb", b"1", ["MB", "", "ME"]),
                     ("third", "me", b"1", ["MB", "", "ME"]),
                     ("second", "me", b"1", ["MB", "ME", "MBME"])]
            for name, what, value, want in steps:
                self.set(mount, name, what, value)
                self.assertEqual(flags(read(path)), want, (name, what, value))
                for record, flag in zip(sorted(os.listdir(mount)), want):
                    for attribute in ("mb", "me"):
                        self.assertEqual(os.getxattr(mount.join(record),
                                                     f"user.lime.{attribute}"),
                                         b"1" if attribute.upper() in flag else b"0")
        self.assertHolds(path, [[A, B], [C]])

    def test_by_setfattr(self):
        with self.written([A, B, C]) as (path, mount):
            self.run_ok(["setfattr", "-n", "user.lime.mb", "-v", "1", mount.join("third")])
            self.run_ok(["setfattr", "-n", "user.lime.type", "-v", "a new type",
                         mount.join("second")])
            found = self.run_ok(["getfattr", "-d", mount.join("002-a new type")])
            self.assertIn(b'user.lime.type="a new type"', found)
        self.assertHoldsForAll(path, [[A, ("a new type", B[1])], [C]])

    def test_attributes_that_are_there_and_others(self):
        with self.written([A, B, C]) as (_, mount):
            path = mount.join("second")
            for name, flags, error in (("user.lime.type", os.XATTR_CREATE, errno.EEXIST),
                                       ("user.note", os.XATTR_CREATE, errno.EPERM),
                                       ("user.note", 0, errno.EPERM),
                                       ("security.note", os.XATTR_CREATE, errno.EOPNOTSUPP)):
                self.assertErrno(error, os.setxattr, path, name, b"x", flags)
            os.setxattr(path, "user.lime.type", b"other", os.XATTR_REPLACE)

    def test_refused_values(self):
        with self.written([A, B, C]) as (path, mount):
            for value in (b"2", b"-1", b"", b"yes", b"11", b"0x1"):
                for what in ("mb", "me"):
                    self.assertErrno(errno.EINVAL, self.set, mount, "second", what, value)
            self.assertErrno(errno.EINVAL, self.set, mount, "first", "mb", b"0")
            self.assertErrno(errno.EINVAL, self.set, mount, "third", "me", b"0")
            for value in (b"t" * 128, b"a\0b", b"t" * 5000):
                self.assertErrno(errno.EINVAL, self.set, mount, "second", "type", value)
            for what in ("message", "record", "offset", "nonsense"):
                self.assertErrno((errno.EPERM, errno.EOPNOTSUPP), self.set, mount, "second", what,
                                 b"1")
            self.assertErrno((errno.EPERM, errno.EOPNOTSUPP), os.setxattr, mount.join("second"),
                             "user.other", b"1")
            for what in ("mb", "me", "type"):
                self.assertErrno((errno.EPERM, errno.EOPNOTSUPP, errno.EINVAL), os.removexattr,
                                 mount.join("second"), f"user.lime.{what}")
        self.assertHolds(path, [A, B, C])

    def test_types(self):
        with self.written([A, B, C]) as (path, mount):
            with open(mount.join("third"), "rb") as file:
                self.set(mount, "third", "type", b"x" * 127)
                self.assertEqual(file.read(), C[1])
            self.assertEqual(sorted(os.listdir(mount))[2], "003-" + "x" * 127)
            self.assertFalse(os.path.exists(mount.join("third")))
            self.set(mount, "x" * 127, "type", b"y")
            self.set(mount, "first", "type", b"a/b %")
            self.assertEqual(read(mount.join("001-a%2Fb %25")), A[1])
            self.assertEqual(os.getxattr(mount.join("y"), "user.lime.type"), b"y")
        self.assertHolds(path, [("a/b %", A[1]), B, ("y", C[1])])

    def test_a_type_while_it_is_written(self):
        with self.written([A]) as (path, mount):
            with open(mount.join("new"), "wb", buffering=0) as file:
                file.write(b"123")
                self.set(mount, "new", "type", b"newer")
                self.assertEqual(sorted(os.listdir(mount)), ["001-first", "002-newer"])
                file.write(b"456")
        self.assertHolds(path, [A, ("newer", b"123456")])


@limetest.needs_fuse
class Last(writelib.TestCase):
    """The last record may have any length, at any time."""

    def too_far(self, fd, data, at):
        """That is told by write, fsync or close, which closes it."""
        def steps():
            os.pwrite(fd, data, at)
            os.fsync(fd)
        try:
            self.assertErrno((errno.EFBIG, errno.EINVAL), steps)
        finally:
            try:
                os.close(fd)
            except OSError as error:  # who has not synced hears it now
                self.assertIn(error.errno, (errno.EFBIG, errno.EINVAL, errno.EIO))

    def test_goes_on(self):
        with self.written([A, B]) as (path, mount):
            for name in ("second", "002-second"):
                with open(mount.join(name), "ab") as file:
                    file.write(b"more")
            self.assertEqual(os.stat(mount.join("second")).st_size, len(B[1]) + 8)
        self.assertHolds(path, [A, ("second", B[1] + b"moremore")])

    def test_written_anew(self):
        for new in (b"n" * len(B[1]), b"", b"short", some(MIB + 3)):
            with self.subTest(len(new)), self.written([A, B]) as (path, mount):
                with open(mount.join("second"), "wb", buffering=0) as file:
                    self.assertEqual(os.stat(mount.join("second")).st_size, 0)
                    if new:
                        write_all(file.fileno(), new)
                    self.assertEqual(os.stat(mount.join("second")).st_size, len(new))
                self.assertHolds(path, [A, ("second", new)])
                self.assertBytes(read(mount.join("second")), new)

    def test_truncated(self):
        """By path, by descriptor, by a program; each is there at once."""
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

    def test_what_was_cut_off_stays_away(self):
        """Grown again, zeros stand there; also where pages were mapped or cached."""
        with self.written([A, ("data", b"x" * 100000)]) as (path, mount):
            with open(mount.join("data"), "r+b", buffering=0) as file:
                pages = mmap.mmap(file.fileno(), 100000)
                self.assertEqual(pages[99999], ord("x"))
                file.truncate(50001)
                file.truncate(100000)
                self.assertBytes(pages[:], b"x" * 50001 + bytes(49999))
                pages.close()
                self.assertBytes(file.read(), b"x" * 50001 + bytes(49999))
        self.assertHolds(path, [A, ("data", b"x" * 50001 + bytes(49999))])

    def test_allocated(self):
        with self.written([A, B]) as (path, mount):
            with open(mount.join("second"), "r+b", buffering=0) as file:
                os.posix_fallocate(file.fileno(), 0, 10)  # it has them
                self.assertEqual(os.fstat(file.fileno()).st_size, len(B[1]))
                os.posix_fallocate(file.fileno(), 100, 100000)
                self.assertEqual(os.fstat(file.fileno()).st_size, 100100)
                for mode in (FALLOC_COLLAPSE, FALLOC_INSERT):
                    self.assertErrno((errno.EOPNOTSUPP, errno.EINVAL), fallocate, file.fileno(),
                                     mode, 4096, 4096)
                self.assertBytes(file.read(), B[1].ljust(100100, b"\0"))
            self.run_ok(["fallocate", "-l", "200000", mount.join("second")])
        self.assertHolds(path, [A, ("second", B[1].ljust(200000, b"\0"))])

    def test_holes_are_zeros(self):
        """Where the file system can, they are punched; what is behind the record stays."""
        with self.written([A, ("data", b"x" * 100000), C]) as (path, mount):
            want = b"x" * 100000
            with open(mount.join("data"), "r+b", buffering=0) as file:
                try:
                    fallocate(file.fileno(), FALLOC_PUNCH | FALLOC_KEEP_SIZE, 10000, 50000)
                    fallocate(file.fileno(), FALLOC_PUNCH | FALLOC_KEEP_SIZE, 90000, 50000)
                    want = want[:10000] + bytes(50000) + want[60000:90000] + bytes(10000)
                except OSError as error:
                    self.assertEqual(error.errno, errno.EOPNOTSUPP)
                self.assertBytes(file.read(), want)
        self.assertHolds(path, [A, ("data", want), C])

    def test_written_far_behind_its_end(self):
        with self.written([A, B]) as (path, mount):
            with open(mount.join("second"), "r+b", buffering=0) as file:
                os.pwrite(file.fileno(), b"far", 5 * MIB)
                self.assertEqual(os.fstat(file.fileno()).st_size, 5 * MIB + 3)
                self.assertEqual(os.pread(file.fileno(), 10, 5 * MIB - 5), bytes(5) + b"far")
        self.assertHolds(path, [A, ("second", B[1].ljust(5 * MIB, b"\0") + b"far")])

    def test_sizes_that_no_file_has(self):
        with self.written([A, B]) as (path, mount):
            for n in (1 << 62, (1 << 63) - 1):
                self.assertErrno((errno.EFBIG, errno.EINVAL), os.truncate, mount.join("second"), n)
            self.too_far(os.open(mount.join("second"), os.O_RDWR), b"x", (1 << 63) - 2)
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

    def test_removed_while_it_is_read(self):
        """No other bytes come; an inner record may become the last meanwhile."""
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
                self.assertIn(error.errno, (errno.ESTALE, errno.EIO, errno.ENOENT))
            try:
                os.close(fd)
            except OSError as error:
                self.assertEqual(error.errno, errno.EIO)
            self.assertBytes(read(mount.join("data")), b"n" * (2 * MIB))
        self.assertHolds(path, [A, ("data", b"n" * (2 * MIB))])

    def test_removed_and_made_again_many_times(self):
        with self.written([A]) as (path, mount):
            for i in range(200 if limetest.STRESS else 30):
                put(mount.join("data"), b"%d" % i * 1000)
                self.assertBytes(read(mount.join("data")), b"%d" % i * 1000)
                os.unlink(mount.join("data"))
                self.assertFalse(os.path.exists(mount.join("data")))
        self.assertHolds(path, [A])

    def test_becomes_an_inner_one(self):
        """Who has it open for writing goes on, in it and behind its end."""
        with self.written([A, B]) as (path, mount):
            fd = os.open(mount.join("second"), os.O_RDWR)
            os.pwrite(fd, b"1234", len(B[1]))
            os.fsync(fd)
            try:
                put(mount.join("new"), b"n" * 100)
            except OSError as error:
                self.assertEqual(error.errno, errno.EBUSY)
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


@limetest.needs_fuse
class Inner(writelib.TestCase):
    """A record with others behind it."""

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

    def test_mapped(self):
        data = some(3 * MIB + 5)
        with self.written([A, ("data", bytes(len(data))), C]) as (path, mount):
            with open(mount.join("data"), "r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
                pages[:] = data
        self.assertHolds(path, [A, ("data", data), C])

    def test_direct(self):
        """Aligned writes that are not aligned in the container."""
        data = some(2 * MIB)
        with self.written([A, ("data", bytes(len(data))), C]) as (path, mount):
            self.run_ok(["dd", f"of={mount.join('data')}", "conv=notrunc", "oflag=direct",
                         "bs=256k", "status=none"], input=data)
            fd = os.open(mount.join("data"), os.O_RDWR | os.O_DIRECT)
            with mmap.mmap(-1, 8192) as block:
                block[:] = b"z" * 8192
                self.assertEqual(os.pwrite(fd, block, 4096), 8192)
            os.close(fd)
            self.assertBytes(read(mount.join("data")), data[:4096] + b"z" * 8192 + data[12288:])
        self.assertHolds(path, [A, ("data", data[:4096] + b"z" * 8192 + data[12288:]), C])

    def test_behind_its_end(self):
        """It grows: collected beside the container, which is written anew at close."""
        size = len(B[1])
        for at in (size, size + 1, size + 144, 3 * MIB, size - 3):
            for sync in (True, False):
                with self.written([A, B, C]) as (path, mount):
                    want = (B[1][:at].ljust(at, b"\0") + b"ENDxyz").ljust(size, b"\0")
                    self.write_there(mount.join("second"), b"ENDxyz", at, sync)
                    self.assertEqual(os.stat(mount.join("second")).st_size, len(want))
                    self.assertBytes(read(mount.join("second")), want)
                    self.assertEqual(read(mount.join("third")), C[1])
                self.assertHolds(path, [A, ("second", want), C])

    def test_behind_its_end_after_all_of_it(self):
        """As rsync --inplace does: over what is there and on, the length at last."""
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

    def test_allocated_behind_its_end(self):
        with self.written([A, B, C]) as (path, mount):
            with open(mount.join("second"), "r+b", buffering=0) as file:
                os.posix_fallocate(file.fileno(), len(B[1]) - 10, 100)
                self.assertEqual(os.fstat(file.fileno()).st_size, len(B[1]) + 90)
        self.assertHolds(path, [A, ("second", B[1] + bytes(90)), C])

    def test_too_far_behind_its_end(self):
        """Farther than any file or disk goes."""
        with self.written([A, B, C]) as (path, mount):
            for at in (1 << 45, 1 << 62):
                for sync in (True, False):
                    self.assertErrno((errno.EFBIG, errno.ENOSPC, errno.EIO, errno.EINVAL),
                                     self.write_there, mount.join("second"), b"x", at, sync)
                    until(lambda: os.stat(mount.join("second")).st_size == len(B[1]), 3)
                    self.assertEqual(read(mount.join("second")), B[1])
        self.assertHolds(path, [A, B, C])

    def test_appended_to(self):
        """Refused at once: the shell's echo does not look at what close says."""
        items = [A, ("empty", b""), C]
        with self.written(items) as (path, mount):
            for name in ("first", "empty", "001-first"):
                for mode in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT):
                    self.assertErrno(errno.EPERM, os.open, mount.join(name), mode | os.O_APPEND)
                for shell in ("sh", "bash"):
                    done = limetest.run([shell, "-c", 'echo abc >>"$1"', "sh", mount.join(name)])
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(b"not permitted", done.stderr)
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
            os.write(fd, b"more")  # what was opened before goes on, by a new container
            os.close(fd)
            # Emptied, it is collected beside the container, and grows.
            with open(mount.join("first"), "wb", buffering=0) as file:
                file.write(b"12")
                with open(mount.join("first"), "ab", buffering=0) as other:
                    other.write(b"34")
            fd = os.open(mount.join("empty"), os.O_WRONLY | os.O_APPEND | os.O_TRUNC)
            write_all(fd, b"full")
            os.close(fd)
        self.assertHolds(path, [("first", b"1234"), ("empty", b"full"), ("third", C[1] + b"1more"),
                                ("new", b"n")])

    def write_there(self, path, data, at, sync):
        fd = os.open(path, os.O_RDWR)
        try:
            pwrite_all(fd, data, at)
            if sync:
                os.fsync(fd)
        except OSError:
            try:
                os.close(fd)
            except OSError:
                pass
            raise
        os.close(fd)

    def test_a_big_write_over_its_end(self):
        """The kernel sends it in parts, some inside and some behind."""
        old, new = b"o" * (3 * MIB + 11), b"n" * (5 * MIB)
        with self.written([A, ("data", old), C]) as (path, mount):
            self.run_ok(["dd", f"of={mount.join('data')}", "conv=notrunc", "bs=5M",
                         "iflag=fullblock", "status=none"], input=new)
        self.assertHolds(path, [A, ("data", new), C])

    def test_written_anew(self):
        for new in (b"n" * len(B[1]), b"", b"short", some(3 * MIB + 3)):
            for program in (False, True):
                with self.subTest(len(new), program=program), \
                        self.written([[A], [B, C]]) as (path, mount):
                    want = [[A], [("second", new), C]]
                    if program:
                        self.run_ok(["cp", self.write("new", new), mount.join("second")])
                    else:
                        with open(mount.join("second"), "wb", buffering=0) as file:
                            self.assertEqual(os.fstat(file.fileno()).st_size, 0)
                            if new:
                                write_all(file.fileno(), new)
                            self.assertEqual(os.fstat(file.fileno()).st_size, len(new))
                            self.assertBytes(read(path), limetest.container([[A], [B, C]]))
                    self.assertHolds(path, want)
                    self.assertEqual(sizes(mount), [len(A[1]), len(new), len(C[1])])
                    self.assertBytes(read(mount.join("second")), new)
                    self.assertBytes(read(mount.join("third")), C[1])
                    self.assertBytes(read(mount.join("001-first")), A[1])
                self.assertEqual(os.listdir(os.path.dirname(path)), ["c.lime"])

    def test_an_empty_one_anew(self):
        with self.written([A, ("second", b""), C]) as (path, mount):
            for new in (b"x", b"", b"longer"):
                put(mount.join("second"), new)
                self.assertHolds(path, [A, ("second", new), C])
            put(mount.join("second"), b"")
            self.assertHolds(path, [A, ("second", b""), C])
            with open(mount.join("second"), "r+b", buffering=0) as file:
                file.truncate(10)
                file.write(b"y")
        self.assertHolds(path, [A, ("second", b"y" + bytes(9)), C])

    def test_emptied_when_it_is_closed(self):
        """Each time, and at once; in a tree, too."""
        path = self.write("c.lime", limetest.container([A, B, C]))
        for tree in (False, True):
            with self.rw(os.path.dirname(path) if tree else path) as mount:
                name = mount.join("c.lime/second" if tree else "second")
                writer = writelib.Remote(self)
                for _ in range(20):
                    writer.close(writer.open(name, os.O_WRONLY | os.O_TRUNC))
                    self.assertHolds(path, [A, ("second", b""), C])
                    put(name, B[1])
                    self.run_ok(["cp", "/dev/null", name])
                    self.assertHolds(path, [A, ("second", b""), C])
                    put(name, B[1])
                    self.run_ok(["sh", "-c", ': >"$1"', "sh", name])
                    self.assertHolds(path, [A, ("second", b""), C])
                    put(name, B[1])

    def test_emptied_and_not_yet_written(self):
        """The container is written anew once, when the last copy of the descriptor goes."""
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
        """Who closes it has it done, whoever else has it open."""
        with self.written([A, B, C]) as (path, mount):
            one, two = writelib.Remote(self), writelib.Remote(self)
            other = two.open(mount.join("second"), os.O_RDWR)
            one.close(one.open(mount.join("second"), os.O_WRONLY | os.O_TRUNC))
            self.assertHolds(path, [A, ("second", b""), C])
            two.write(other, b"x")
            two.close(other)
            self.assertHolds(path, [A, ("second", b"x"), C])

    def test_written_anew_and_synced(self):
        """fsync says that it is there."""
        for new in (b"n" * len(B[1]), some(MIB)):
            with self.written([A, B, C]) as (path, mount):
                with open(mount.join("second"), "wb", buffering=0) as file:
                    write_all(file.fileno(), new)
                    os.fsync(file.fileno())
                    self.assertHolds(path, [A, ("second", new), C])
                    os.fsync(file.fileno())
                self.assertHolds(path, [A, ("second", new), C])

    def test_written_anew_twice_at_once(self):
        """Two records, the two open at the same time."""
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
        """By path, by descriptor, by a program."""
        for n in (len(B[1]) - 1, 1, 0, len(B[1]) + 1, 500000):
            new = B[1][:n].ljust(n, b"\0")
            for how in ("truncate", "ftruncate", "program"):
                with self.subTest(n, how=how), self.written([A, B, C]) as (path, mount):
                    if how == "truncate":
                        os.truncate(mount.join("second"), n)
                    elif how == "program":
                        self.run_ok(["truncate", "-s", str(n), mount.join("second")])
                    else:
                        with open(mount.join("second"), "r+b", buffering=0) as file:
                            file.truncate(n)
                            self.assertEqual(os.fstat(file.fileno()).st_size, n)
                            self.assertBytes(file.read(), new)
                    self.assertHolds(path, [A, ("second", new), C])
                    self.assertBytes(read(mount.join("second")), new)
                    self.assertEqual(sizes(mount), [len(A[1]), n, len(C[1])])

    def test_resized_and_written(self):
        with self.written([A, B, C]) as (path, mount):
            with open(mount.join("second"), "r+b", buffering=0) as file:
                file.truncate(100)
                file.seek(90)
                file.write(b"0123456789abcdef")
                self.assertEqual(os.fstat(file.fileno()).st_size, 106)
                self.assertBytes(os.pread(file.fileno(), 1000, 0),
                                 B[1][:90] + b"0123456789abcdef")
        self.assertHolds(path, [A, ("second", B[1][:90] + b"0123456789abcdef"), C])

    def test_others_are_used_meanwhile(self):
        """A container that is written anew leaves open files of other records what they were."""
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

    def test_another_mount_reads_what_is_replaced(self):
        """The old container's bytes and times stay, and so do those who have it open."""
        for how in ("anew", "truncated", "touched"):
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

    def test_the_last_one_grows_meanwhile(self):
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
            self.assertErrno(errno.EBUSY, self.another_writer, path)

    def another_writer(self, path):
        """The lock is on the new file, too."""
        fd = os.open(path, os.O_RDWR)
        try:
            lock(fd)
        except BlockingIOError:
            raise OSError(errno.EBUSY, "locked") from None
        finally:
            os.close(fd)

    def test_anew_when_it_has_been_read_before(self):
        """Neither pages nor attributes of the old one are shown."""
        for new in (b"n" * 300000, b"n" * 200000, b"n" * 400000):
            with self.written([A, ("data", b"o" * 300000), C]) as (path, mount):
                self.assertBytes(read(mount.join("data")), b"o" * 300000)
                with open(mount.join("data"), "rb", buffering=0) as reader:
                    put(mount.join("data"), new)
                    self.assertBytes(read(mount.join("data")), new)
                    self.assertEqual(os.stat(mount.join("data")).st_size, len(new))
                    try:
                        self.assertLessEqual(set(reader.read()), {ord("o"), ord("n")})
                    except OSError as error:
                        self.assertIn(error.errno, (errno.ESTALE, errno.EIO))
                self.assertBytes(read(mount.join("third")), C[1])

    def test_not_removed(self):
        with self.written([A, B, C]) as (path, mount):
            for name in ("first", "001-first", "second", "002-second"):
                self.assertErrno(errno.EPERM, os.unlink, mount.join(name))
            done = limetest.run(["rm", "-f", mount.join("first")])
            self.assertIn(b"Operation not permitted", done.stderr)
            self.assertEqual(len(os.listdir(mount)), 3)
        self.assertHolds(path, [A, B, C])


class InnerByOneThread(Inner):
    OPTS = ("attr_timeout=0", "entry_timeout=0")
    ARGS = ("-s",)


@limetest.needs_fuse
class Refused(writelib.TestCase):
    def test_what_records_are_not(self):
        with self.written([A, B, C]) as (path, mount):
            outside = self.write("outside", b"x")
            not_here = (errno.EPERM, errno.EOPNOTSUPP)
            for name in ("first", "002-second"):
                self.assertErrno(errno.EPERM, os.link, mount.join(name), mount.join("link"))
                self.assertErrno(errno.EPERM, os.rename, mount.join(name), mount.join("new"))
                self.assertErrno(errno.EPERM, os.rename, mount.join(name), mount.join("third"))
                self.assertErrno(errno.EPERM, os.rename, mount.join("third"), mount.join(name))
            self.assertErrno(errno.EPERM, os.link, mount.join("third"), mount.join("link"))
            self.assertErrno(not_here, os.mkdir, mount.join("folder"))
            self.assertErrno(not_here, os.mkfifo, mount.join("fifo"))
            self.assertErrno(not_here, os.symlink, outside, mount.join("symlink"))
            self.assertErrno((errno.EXDEV, errno.EPERM), os.rename, outside, mount.join("new"))
            self.assertErrno((errno.ENOTDIR, errno.EPERM), os.rmdir, mount.join("third"))
            self.assertErrno(errno.ENOENT, os.unlink, mount.join("none"))
            self.assertErrno(errno.ENOENT, os.unlink, mount.join("004-none"))
            self.assertEqual(len(os.listdir(mount)), 3)
        self.assertHolds(path, [A, B, C])

    def test_mode_and_owner(self):
        with self.written([A, B]) as (path, mount):
            before = os.stat(path)
            for name in ("first", "second"):
                self.assertErrno(errno.EPERM, os.chmod, mount.join(name), 0o600)
                if os.geteuid() == 0:
                    self.assertErrno(errno.EPERM, os.chown, mount.join(name), 4711, -1)
                    self.assertErrno(errno.EPERM, os.chown, mount.join(name), -1, 4711)
            after = os.stat(path)
            for field in ("st_mode", "st_uid", "st_gid"):
                self.assertEqual(getattr(after, field), getattr(before, field))

    def test_mode_and_owner_of_a_new_one(self):
        """As with the mode that is asked for when it is made, nothing comes of them."""
        with self.written([A, B]) as (path, mount):
            os.chmod(path, 0o644)
            before = os.stat(path)
            with open(mount.join("new"), "wb", buffering=0) as file:
                os.fchmod(file.fileno(), 0o600)
                if os.geteuid() == 0:
                    os.fchown(file.fileno(), 4711, 4712)
                got = os.fstat(file.fileno())
                self.assertEqual((got.st_mode, got.st_uid), (before.st_mode, before.st_uid))
                file.write(b"new")
                os.fsync(file.fileno())
                self.assertErrno(errno.EPERM, os.fchmod, file.fileno(), 0o600)
            given = self.write("given", b"given")
            os.chmod(given, 0o600)
            if os.geteuid() == 0:
                os.chown(given, 4711, 4712)
            self.run_ok(["cp", "-p", given, mount.join("cp-p")])
            self.run_ok(["cp", "-a", given, mount.join("cp-a")])
            self.run_ok(["install", "-m", "644", given, mount.join("install")])
            self.run_ok(["install", given, mount.join("install-once-more")])
            for field in ("st_mode", "st_uid", "st_gid"):
                self.assertEqual(getattr(os.stat(path), field), getattr(before, field))
        self.assertHolds(path, [A, B, ("new", b"new"), ("cp-p", b"given"), ("cp-a", b"given"),
                                ("install", b"given"), ("install-once-more", b"given")])

    def test_times(self):
        """They are the container's; touch and cp -p are content."""
        given = self.write("given", some(5000))
        os.utime(given, (1000000000, 1000000000))
        os.chmod(given, 0o644)
        path = self.write("c.lime", limetest.container([A, B]))
        os.chmod(path, 0o644)
        with self.rw(path) as mount:
            self.run_ok(["touch", mount.join("first")])
            self.run_ok(["touch", "-d", "2020-02-02 02:02:02 UTC", mount.join("second")])
            self.run_ok(["cp", "-p", given, mount.join("new")])
            self.run_ok(["cp", "-p", given, mount.join("first")])
        self.assertHolds(path, [("first", some(5000)), B, ("new", some(5000))])

    def test_times_tell_of_changes(self):
        path = self.write("c.lime", limetest.container([A, B]))
        os.utime(path, (1000000000, 1000000000))
        with self.rw(path, "attr_timeout=0") as mount:
            self.assertEqual(int(os.stat(mount.join("first")).st_mtime), 1000000000)
            with open(mount.join("first"), "r+b") as file:
                file.write(b"x")
            self.assertGreater(os.stat(mount.join("first")).st_mtime, 1000000000)
            self.assertGreater(os.stat(path).st_mtime, 1000000000)

    def test_opened_for_reading_only(self):
        with self.written([A, B]) as (_, mount):
            with open(mount.join("second"), "rb", buffering=0) as file:
                self.assertErrno(errno.EBADF, os.write, file.fileno(), b"x")
                self.assertErrno(errno.EINVAL, os.ftruncate, file.fileno(), 5)

    def test_what_it_says(self):
        """The log has what to do instead; programs have a reason."""
        path = self.write("c.lime", limetest.container([A, B, C]))
        where = self.tempdir()
        log = open(self.write("log", b""), "w+b")
        self.addCleanup(log.close)
        daemon = subprocess.Popen([limetest.program("limefs"), "-f", "-o", "rw", path, where],
                                  stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        until(lambda: limetest.mounts_under(where))

        def words():
            log.seek(0)
            return log.read().decode()

        def says(call, *args):
            before = len(words())
            with self.assertRaises(OSError):
                call(*args)
            until(lambda: len(words()) > before, 5)

        def go_on(name):
            fd = os.open(name, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(fd, b"x")
            finally:
                os.close(fd)

        def inside(name):
            return os.path.join(where, name)

        says(put, inside("007-x"), b"")
        says(os.unlink, inside("first"))
        says(go_on, inside("first"))
        says(os.setxattr, inside("first"), "user.other", b"x")
        says(os.mkdir, inside("folder"))
        says(os.rename, inside("first"), inside("x"))
        # What programs try, and do without, is no error.
        os.chmod(path, 0o644)
        before = words()
        self.run_ok(["cp", "-p", path, inside("copied")])
        self.run_ok(["install", "-m", "644", path, inside("installed")])
        self.run_ok(["mv", inside("installed"), self.tempdir()])
        os.unlink(inside("copied"))
        self.assertEqual(words(), before)
        # Once for each record.
        for name in ("a b\u00e4", "c\nd"):
            before = words()
            put(inside(name), b"x" * 10000)
            os.truncate(inside(name), 5)
            os.setxattr(inside(name), "user.lime.type", b"plain")
            os.setxattr(inside("plain"), "user.lime.type", b"\xff")
            said = words()[len(before):].splitlines()
            self.assertEqual(len(said), 2, said)
            self.assertIn({"c\nd": "c%0Ad"}.get(name, "a b%C3%A4"), said[0])
            self.assertIn("%FF", said[1])
            os.unlink(os.path.join(where, "004-%FF"))
        daemon.terminate()
        self.assertEqual(daemon.wait(20 * limetest.SLOWNESS), 0)
        self.assertHolds(path, [A, B, C])


@limetest.needs_fuse
class ReadOnly(writelib.TestCase):
    """Without rw nothing is changed, and nothing is opened so that it could be."""

    def setUp(self):
        self.path = self.write("c.lime", limetest.container([A, B]))

    def refused(self, mount, inside=""):
        def at(name):
            return mount.join(inside, name)
        calls = [(put, at("new"), b""), (put, at("003-new"), b""), (put, at("first"), b""),
                 (open, at("first"), "r+b"), (open, at("second"), "ab"),
                 (os.truncate, at("second"), 0), (os.unlink, at("second")),
                 (os.rename, at("second"), at("x")), (os.link, at("second"), at("x")),
                 (os.symlink, "x", at("y")), (os.mkdir, at("x")), (os.mkfifo, at("x")),
                 (os.chmod, at("second"), 0o600), (os.utime, at("second")),
                 (os.setxattr, at("second"), "user.lime.mb", b"1"),
                 (os.removexattr, at("second"), "user.lime.mb")]
        for call in calls:
            with self.subTest(str(call[0].__name__), args=call[1:]):
                self.assertErrno(errno.EROFS, *call)

    def never_written_by(self, mount):
        """Its descriptors: none of a file below here is open for writing."""
        folder = os.path.dirname(self.path)
        for fd in os.listdir(f"/proc/{mount.pid}/fd"):
            try:
                if os.readlink(f"/proc/{mount.pid}/fd/{fd}").startswith(folder):
                    with open(f"/proc/{mount.pid}/fdinfo/{fd}", encoding="ascii") as file:
                        mode = [line for line in file if line.startswith("flags:")][0]
                    self.assertEqual(int(mode.split()[1], 8) & os.O_ACCMODE, os.O_RDONLY)
            except FileNotFoundError:
                pass

    def test_a_container(self):
        before = os.stat(self.path)
        for opts in (None, "ro"):
            with limetest.Mount(self.path, opts=opts) as mount:
                self.assertEqual(read(mount.join("first")), A[1])
                self.refused(mount)
                self.never_written_by(mount)
        after = os.stat(self.path)
        self.assertEqual((after.st_mtime_ns, after.st_ctime_ns),
                         (before.st_mtime_ns, before.st_ctime_ns))

    def test_a_tree(self):
        folder = os.path.dirname(self.path)
        put(os.path.join(folder, "first"), b"plain")
        put(os.path.join(folder, "second"), b"plain")
        with limetest.Mount(folder) as mount:
            self.assertEqual(read(mount.join("c.lime/first")), A[1])
            self.refused(mount, "c.lime")
            self.refused(mount)
            self.assertErrno(errno.EROFS, os.rmdir, mount.join("c.lime"))
            self.never_written_by(mount)

    def test_an_unfinished_record_is_left_alone(self):
        """A mount that only reads recovers nothing."""
        header = limetest.header("unfinished", 0, 0, 1, magic=0)
        with open(self.path, "ab") as file:
            file.write(header + b"data")
        before = read(self.path)
        with limetest.Mount(self.path) as mount:
            self.assertEqual(len(os.listdir(mount)), 2)
            self.assertIn(b"offset", os.getxattr(mount.path, "user.lime.fault"))
        self.assertEqual(read(self.path), before)

    def test_the_mount_table(self):
        def options(mount):
            with open("/proc/self/mounts", encoding="utf-8") as table:
                return [line for line in table if mount.path in line][0].split()[3].split(",")
        with limetest.Mount(self.path) as mount:
            self.assertIn("ro", options(mount))
        with self.rw(self.path) as mount:
            self.assertIn("rw", options(mount))

    def test_the_last_one_of_ro_and_rw_counts(self):
        """As mount(8) has it."""
        with limetest.Mount(self.path, opts="rw,ro") as mount:
            self.refused(mount)
        with limetest.Mount(self.path, opts="ro,rw") as mount:
            put(mount.join("new"), b"x")
        self.assertHolds(self.path, [A, B, ("new", b"x")])


@limetest.needs_fuse
class Locks(writelib.TestCase):
    def setUp(self):
        self.path = self.write("c.lime", limetest.container([A, B]))

    def refused(self, *args):
        done = limetest.run(args, timeout=20)
        self.assertNotEqual(done.returncode, 0, args)
        self.assertRegex(done.stderr.decode().lower(), "busy|locked|mounted|writ", args)
        return done

    def test_a_second_writer(self):
        with self.rw(self.path) as mount:
            self.refused("limefs", "-o", "rw", self.path, self.tempdir())
            put(mount.join("new"), b"x")
            self.refused("limefs", "-o", "rw", self.path, self.tempdir())
        with self.rw(self.path) as mount:
            put(mount.join("newer"), b"y")
        self.assertHolds(self.path, [A, B, ("new", b"x"), ("newer", b"y")])

    def test_by_another_name(self):
        """It is the file that is locked."""
        link = os.path.join(self.tempdir(), "link")
        os.symlink(self.path, link)
        hard = self.path + ".hard"
        os.link(self.path, hard)
        with self.rw(self.path):
            self.refused("limefs", "-o", "rw", link, self.tempdir())
            self.refused("limefs", "-o", "rw", hard, self.tempdir())

    def test_the_commands(self):
        commands = [("repair",)]
        usage = limetest.run(["lime", "--help"]).stdout.decode()
        data = self.write("data", b"x")
        for name, more in (("append", ("-t", "x", data)), ("rm", ("2",)),
                           ("replace", ("2", data)), ("set", ("2", "--type", "x"))):
            if f"lime {name}" in usage or f" {name} " in usage:
                commands.append((name, *more))
        with self.rw(self.path) as mount:
            put(mount.join("new"), b"x")
            for name, *more in commands:
                self.refused("lime", name, self.path, *more)
        self.assertHolds(self.path, [A, B, ("new", b"x")])
        self.run_ok(["lime", "repair", self.path])

    def test_readers_go_on(self):
        with self.rw(self.path) as mount, limetest.Mount(self.path) as reader:
            put(mount.join("new"), b"x" * 100000)
            self.assertEqual(read(reader.join("new")), b"x" * 100000)
            self.assertEqual(self.run_ok(["lime", "cat", self.path, "new"]), b"x" * 100000)
            self.run_ok(["lime", "check", self.path])

    def test_locked_by_somebody_else(self):
        with open(self.path, "r+b") as file:
            lock(file.fileno())
            self.refused("limefs", "-o", "rw", self.path, self.tempdir())
            with limetest.Mount(self.path) as reader:
                self.assertEqual(read(reader.join("first")), A[1])

    def test_a_tree(self):
        """A container of it from the first change on; others are free."""
        folder = os.path.dirname(self.path)
        other = shutil.copy(self.path, os.path.join(folder, "other.lime"))
        with self.rw(folder) as tree:
            with self.rw(self.path) as mount:
                self.assertEqual(read(tree.join("c.lime/first")), A[1])
                self.assertErrno(errno.EBUSY, put, tree.join("c.lime/new"), b"x")
                self.assertErrno(errno.EBUSY, open, tree.join("c.lime/first"), "r+b")
                self.assertErrno(errno.EBUSY, os.unlink, tree.join("c.lime/second"))
                put(tree.join("other.lime/new"), b"y")
                put(mount.join("new"), b"x")
            put(tree.join("c.lime/newer"), b"z")
            with open(tree.join("c.lime/newer"), "ab") as file:
                file.write(b"!")
                self.refused("lime", "repair", self.path)
                self.refused("limefs", "-o", "rw", self.path, self.tempdir())
        self.assertHolds(self.path, [A, B, ("new", b"x"), ("newer", b"z!")])
        self.assertHolds(other, [A, B, ("new", b"y")])

    def test_a_tree_lets_go(self):
        """After a while nobody writes, and others may."""
        folder = os.path.dirname(self.path)
        with self.rw(folder) as tree:
            put(tree.join("c.lime/new"), b"x")
            until(lambda: limetest.run(["lime", "repair", self.path]).returncode == 0, 60)
            self.run_ok(["lime", "check", self.path])
            put(tree.join("c.lime/newer"), b"y")
        self.assertHolds(self.path, [A, B, ("new", b"x"), ("newer", b"y")])


@limetest.needs_fuse
class Mounting(writelib.TestCase):
    def test_what_a_crash_has_left(self):
        """An unfinished record is cut, and that is said; flags come right."""
        good = limetest.container([A, B])
        half = limetest.record("unfinished", b"u" * 1000, 0, 1, magic=0)
        for tail in (half[:144], half[:700], half[:144] + b"u" * 50000, half[:8], half):
            with self.subTest(len(tail)):
                path = self.write("c.lime", good + tail)
                mount = self.rw(path)
                self.assertEqual(sorted(os.listdir(mount)), ["001-first", "002-second"])
                put(mount.join("new"), b"x")
                mount.stop()
                self.assertHolds(path, [A, B, ("new", b"x")])

    def test_the_words_of_it(self):
        path = self.write("c.lime", limetest.container([A]) +
                          limetest.header("unfinished", 0, 0, 1, magic=0) + b"data")
        mount = self.rw(path)
        self.assertRegex(mount.words, r"c\.lime.*offset.*cut")
        mount.stop()
        again = self.rw(path)
        self.assertEqual(again.words, "")

    def test_foreign_damage_is_not_cut(self):
        """What is no unfinished record of ours is somebody's data: refused, with words, or
        mounted with all of it kept."""
        good = limetest.container([A, B])
        for tail in (b"somebody's notes" * 100, limetest.header("cut", 5000, 1, 1) + b"x" * 3000):
            path = self.write("c.lime", good + tail)
            done = limetest.run(["limefs", "-o", "rw", path, where := self.tempdir()],
                                timeout=20, stdout=subprocess.DEVNULL)
            if done.returncode != 0:
                self.assertIn(b"repair", done.stderr)
                self.assertEqual(read(path), good + tail)
                continue
            limetest.run(["fusermount3", "-u", where], check=True)
            kept = b"".join(read(os.path.join(os.path.dirname(path), name))
                            for name in os.listdir(os.path.dirname(path)))
            self.assertIn(tail, kept)

    def test_what_is_kept_of_a_tail(self):
        """Each beside those before it, as private as the container."""
        good, tails = limetest.container([A, B]), (b"notes" * 300, b"more" * 200)
        path = self.write("c.lime", good)
        os.chmod(path, 0o640)
        for tail in tails:
            with open(path, "ab") as file:
                file.write(tail)
            with self.rw(path):
                self.assertEqual(read(path), good)
        for i, tail in enumerate(tails):
            kept = f"{path}.cut-{len(good)}" + (f".{i}" if i else "")
            self.assertEqual(read(kept), tail)
            self.assertEqual(stat.S_IMODE(os.stat(kept).st_mode), 0o640)

    def test_no_container(self):
        for data in (b"no container" * 100, limetest.header("t", 0, 1, 1, version=2)):
            path = self.write("c.lime", data)
            done = limetest.run(["limefs", "-o", "rw", path, self.tempdir()], timeout=20)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotEqual(done.stderr, b"")
            self.assertEqual(read(path), data)

    def test_deviations_of_others_stay_or_are_mended(self):
        """Mounting does not harm a container that has been written strangely."""
        strange = limetest.record(*A, 1, 0) + limetest.record(*B, 0, 0)  # no ME at the end
        path = self.write("c.lime", strange)
        with self.rw(path) as mount:
            put(mount.join("new"), b"x")
        self.assertHolds(path, [A, B, ("new", b"x")])

    def test_a_missing_padding(self):
        data = limetest.container([A, ("odd", b"12345")])
        path = self.write("c.lime", data[:-3])
        with self.rw(path) as mount:
            put(mount.join("new"), b"x")
        self.assertHolds(path, [A, ("odd", b"12345"), ("new", b"x")])

    def test_a_file_that_may_not_be_written(self):
        if os.geteuid() == 0:
            self.skipTest("root may")
        path = self.write("c.lime", limetest.container([A]))
        os.chmod(path, 0o444)
        done = limetest.run(["limefs", "-o", "rw", path, self.tempdir()], timeout=20)
        self.assertNotEqual(done.returncode, 0)

    @writelib.as_root
    def test_a_read_only_file_system(self):
        fs = writelib.SmallFs(self, "tmpfs", 4)
        path = put(fs.join("c.lime"), limetest.container([A]))
        self.run_ok(["mount", "-o", "remount,ro", fs.path])
        done = limetest.run(["limefs", "-o", "rw", path, self.tempdir()], timeout=20)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"Read-only file system", done.stderr)
        with limetest.Mount(path) as mount:
            self.assertEqual(read(mount.join("first")), A[1])

    def test_over_its_own_container(self):
        path = self.write("c.lime", limetest.container([A, B]))
        with self.rw(path, mountpoint=os.path.dirname(path)) as mount:
            put(mount.join("new"), b"x")
            put(mount.join("first"), b"another length")
        self.assertHolds(path, [("first", b"another length"), B, ("new", b"x")])


@limetest.needs_fuse
class Users(writelib.TestCase):
    """Those who are not root."""

    UID = 65534

    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root")
        mode = os.stat("/dev/fuse").st_mode & 0o777
        if not mode & 0o006:
            os.chmod("/dev/fuse", 0o666)
            self.addCleanup(os.chmod, "/dev/fuse", mode)
        self.folder = self.tempdir()
        os.mkdir(self.folder + "/mnt")
        self.path = put(self.folder + "/c.lime", limetest.container([A, B]))
        shutil.copy(limetest.program("limefs"), self.folder)  # where nobody may read it
        path = self.folder
        while len(path) > len("/tmp"):
            os.chmod(path, os.stat(path).st_mode | 0o055)
            path = os.path.dirname(path)

    def give(self, *paths):
        for path in paths or (self.folder, self.folder + "/mnt", self.path):
            os.chown(path, self.UID, self.UID)

    def as_nobody(self, script, uid=UID, **kw):
        return limetest.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                             "sh", "-c", f"cd {self.folder} && {script}"], **kw)

    def test_an_ordinary_user_writes(self):
        self.give()
        script = ("./limefs -o rw c.lime mnt && echo hello >mnt/new && cp mnt/new mnt/newer && "
                  "echo longer >>mnt/newer && echo short >mnt/first && rm mnt/newer && "
                  "setfattr -n user.lime.mb -v 1 mnt/new && ls mnt; r=$?; fusermount3 -u mnt; "
                  "exit $r")
        done = self.as_nobody(script, stderr=subprocess.DEVNULL)
        self.assertEqual(done.stdout, b"001-first\n002-second\n003-new\n")
        self.assertEqual(done.returncode, 0)
        self.assertHolds(self.path, [[("first", b"short\n"), B], [("new", b"hello\n")]])
        self.assertEqual(os.stat(self.path).st_uid, self.UID)

    def test_a_container_of_somebody_else(self):
        self.give(self.folder, self.folder + "/mnt")
        os.chmod(self.path, 0o644)
        done = self.as_nobody("./limefs -o rw c.lime mnt")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"Permission denied", done.stderr)
        self.assertHolds(self.path, [A, B])

    def test_a_folder_of_somebody_else(self):
        """In place needs no more than the file; a file beside it needs the folder."""
        self.give(self.path, self.folder + "/mnt")
        script = ("./limefs -o rw c.lime mnt && echo hello >mnt/new; "
                  "echo short >mnt/first; echo $? >&2; fusermount3 -u mnt")
        done = self.as_nobody(script)
        found = self.assertClean(self.path)
        self.assertEqual(found[2].data, b"hello\n", done.stderr)
        self.assertIn(found[0].data, (A[1], b"short\n"))
        if found[0].data == A[1]:
            self.assertRegex(done.stderr, rb"(?i)permission denied|not permitted")

    def test_other_users_of_a_mount(self):
        """allow_other: modes say who may write."""
        with self.rw(self.path, "allow_other", mountpoint=self.folder + "/mnt"):
            os.chmod(self.path, 0o644)
            until(lambda: os.stat(self.folder + "/mnt/first").st_mode & 0o777 == 0o644)
            for script in ("echo x >mnt/first", "echo x >>mnt/second", "echo x >mnt/new",
                           "rm -f mnt/second", "truncate -s 0 mnt/second"):
                done = self.as_nobody(script)
                self.assertNotEqual(done.returncode, 0, script)
                self.assertRegex(done.stderr, b"Permission denied|not permitted", script)
            self.assertHolds(self.path, [A, B])
            os.chmod(self.path, 0o666)
            until(lambda: os.stat(self.folder + "/mnt/first").st_mode & 0o777 == 0o666)
            self.assertEqual(self.as_nobody("echo x >>mnt/second").returncode, 0)
            self.assertHolds(self.path, [A, ("second", B[1] + b"x\n")])


@limetest.needs_fuse
class Trees(writelib.TestCase):
    def setUp(self):
        self.top = self.tempdir()

    def under(self, *names):
        return os.path.join(self.top, *names)

    def test_a_container_in_it(self):
        os.mkdir(self.under("deep"))
        path = put(self.under("deep/c.lime"), limetest.container([A, B]))
        with self.rw(self.top) as mount:
            inside = mount.join("deep/c.lime")
            put(os.path.join(inside, "new"), b"x" * 100)
            put(os.path.join(inside, "first"), b"another length")
            with open(os.path.join(inside, "second"), "r+b") as file:
                file.write(b"1234")
            self.assertErrno(errno.EPERM, os.unlink, os.path.join(inside, "first"))
            os.unlink(os.path.join(inside, "new"))
            put(os.path.join(inside, "003-newer"), b"y")
            self.assertEqual(sorted(os.listdir(inside)), ["001-first", "002-second", "003-newer"])
        self.assertHoldsForAll(path, [("first", b"another length"), ("second", b"1234" + B[1][4:]),
                                      ("newer", b"y")])
        self.assertEqual(os.listdir(self.under("deep")), ["c.lime"])

    def test_mkdir_makes_a_container(self):
        with self.rw(self.top) as mount:
            os.mkdir(mount.join("new.lime"))
            self.assertTrue(stat.S_ISDIR(os.stat(mount.join("new.lime")).st_mode))
            self.assertEqual(os.listdir(mount.join("new.lime")), [])
            self.assertEqual(os.listdir(mount), ["new.lime"])
            self.assertEqual(read(self.under("new.lime")), b"")
            put(mount.join("new.lime/one"), b"1")
            put(mount.join("new.lime/two"), b"22")
            self.assertErrno(errno.ENOTEMPTY, os.rmdir, mount.join("new.lime"))
            self.assertErrno((errno.EISDIR, errno.EPERM), os.unlink, mount.join("new.lime"))
            self.assertErrno(errno.EEXIST, os.mkdir, mount.join("new.lime"))
        self.assertHoldsForAll(self.under("new.lime"), [("one", b"1"), ("two", b"22")])

    def test_a_container_copied(self):
        """cp -r takes the records by their inode numbers."""
        items = [(f"type-{i % 7}", some(1 + i * 100, i)) for i in range(60)]
        put(self.under("a.lime"), limetest.container(items))
        with self.rw(self.top) as mount:
            self.run_ok(["cp", "-r", mount.join("a.lime"), mount.join("b.lime")])
        self.assertHoldsForAll(self.under("b.lime"), items)

    def test_rmdir_of_an_empty_container(self):
        with self.rw(self.top, "mkdir=container") as mount:
            os.mkdir(mount.join("a"))
            os.rmdir(mount.join("a"))
            self.assertEqual((os.listdir(mount), os.listdir(self.top)), ([], []))
            os.mkdir(mount.join("a"))
            put(mount.join("a/x"), b"1")
            os.unlink(mount.join("a/x"))
            os.rmdir(mount.join("a"))
            self.assertErrno(errno.ENOENT, os.stat, mount.join("a"))
            self.assertEqual(os.listdir(self.top), [])

    def test_an_empty_container_after_the_next_mount(self):
        """Nothing in it says what it is."""
        with self.rw(self.top, "mkdir=container") as mount:
            self.assertErrno(errno.EPERM, os.makedirs, mount.join("a/b"))
            self.assertEqual(os.listdir(mount), ["a"])
            os.mkdir(mount.join("c"))
        with self.rw(self.top) as mount:
            self.assertTrue(stat.S_ISREG(os.stat(mount.join("a")).st_mode))
            self.assertErrno(errno.ENOTDIR, os.rmdir, mount.join("a"))
            os.unlink(mount.join("a"))
            os.unlink(mount.join("c"))
        self.assertEqual(os.listdir(self.top), [])

    def test_a_directory_below_stays_one(self):
        os.makedirs(self.under("real/inner"))
        with self.rw(self.top) as mount:
            put(mount.join("real/inner/notes"), b"plain")
            os.mkdir(mount.join("real/inner/c.lime"))
            put(mount.join("real/inner/c.lime/x"), b"1")
        self.assertEqual(read(self.under("real/inner/notes")), b"plain")
        self.assertHolds(self.under("real/inner/c.lime"), [("x", b"1")])

    def test_plain_files(self):
        """All that the file system below does."""
        put(self.under("old"), b"old")
        os.mkdir(self.under("d"))
        with self.rw(self.top) as mount:
            put(mount.join("notes"), b"text")
            with open(mount.join("notes"), "ab") as file:
                file.write(b" and more")
            self.assertEqual(read(mount.join("notes")), b"text and more")
            self.assertEqual(os.stat(mount.join("notes")).st_size, 13)
            os.truncate(mount.join("notes"), 4)
            with open(mount.join("notes"), "r+b") as file, mmap.mmap(file.fileno(), 4) as pages:
                pages[0:1] = b"T"
            os.chmod(mount.join("notes"), 0o640)
            os.utime(mount.join("notes"), (1000000000, 1000000000))
            os.setxattr(mount.join("notes"), "user.mine", b"yes")
            os.rename(mount.join("notes"), mount.join("d/notes"))
            os.link(mount.join("d/notes"), mount.join("link"))
            os.symlink("d/notes", mount.join("symlink"))
            self.assertEqual(read(mount.join("symlink")), b"Text")
            os.unlink(mount.join("old"))
            self.assertErrno(errno.ENOENT, os.stat, mount.join("old"))
            self.assertEqual(sorted(os.listdir(mount)), ["d", "link", "symlink"])
            put(mount.join("over"), b"1")
            os.rename(mount.join("over"), mount.join("d/notes"))  # over another
            self.assertEqual(read(mount.join("d/notes")), b"1")
            os.removexattr(mount.join("link"), "user.mine")
        self.assertEqual(sorted(os.listdir(self.top)), ["d", "link", "symlink"])
        self.assertEqual(read(self.under("link")), b"Text")
        found = os.stat(self.under("link"))
        self.assertEqual((found.st_mode & 0o777, found.st_mtime), (0o640, 1000000000))
        self.assertEqual(os.listxattr(self.under("link")), [])
        self.assertEqual(os.readlink(self.under("symlink")), "d/notes")
        self.assertEqual(read(self.under("d/notes")), b"1")

    @writelib.as_root
    def test_the_owner_of_a_plain_file(self):
        put(self.under("notes"), b"text")
        with self.rw(self.top) as mount:
            os.chown(mount.join("notes"), 4711, 4712)
        found = os.stat(self.under("notes"))
        self.assertEqual((found.st_uid, found.st_gid), (4711, 4712))

    def test_programs_on_plain_files(self):
        data = some(2 * MIB + 1)
        given = self.write("given", data)
        os.mkdir(self.under("d"))
        with self.rw(self.top) as mount:
            self.run_ok(["cp", given, mount.join("d/copy")])
            self.run_ok(["sed", "-i", "s/x/y/", put(mount.join("d/text"), b"xxx")])
            self.run_ok(["mv", mount.join("d/copy"), mount.join("copy")])
            self.run_ok(["sh", "-c", 'cat "$1" >>"$2"', "sh", given, mount.join("copy")])
            self.run_ok(["dd", f"if={given}", f"of={mount.join('d/dd')}", "bs=64k", "conv=fsync",
                         "status=none"])
            self.run_ok(["rm", "-f", mount.join("d/dd")])
        self.assertEqual(read(self.under("d/text")), b"yxx")
        self.assertBytes(read(self.under("copy")), data + data)
        self.assertEqual(os.listdir(self.under("d")), ["text"])

    def test_a_file_open_while_it_goes(self):
        with self.rw(self.top) as mount:
            with open(mount.join("x"), "w+b", buffering=0) as file:
                file.write(b"1234")
                os.unlink(mount.join("x"))
                file.write(b"5678")
                self.assertEqual(os.pread(file.fileno(), 10, 0), b"12345678")
            self.assertEqual(os.listdir(mount), [])
        self.assertEqual(os.listdir(self.top), [])

    def test_a_plain_file_and_a_container_of_the_same_name(self):
        """The one may become the other."""
        with self.rw(self.top, "entry_timeout=0", "attr_timeout=0") as mount:
            put(mount.join("x"), limetest.container([A]))
            # The kernel tells of the last close after close() has returned.
            self.assertTrue(until(lambda: os.path.isdir(mount.join("x"))))
            self.assertEqual(read(mount.join("x/first")), A[1])
            put(mount.join("x/new"), b"n")
        self.assertHolds(self.under("x"), [A, ("new", b"n")])

    def test_renaming_containers(self):
        put(self.under("c.lime"), limetest.container([A]))
        os.mkdir(self.under("d"))
        with self.rw(self.top) as mount:
            put(mount.join("c.lime/new"), b"x")
            try:
                os.rename(mount.join("c.lime"), mount.join("d/moved.lime"))
                where = "d/moved.lime"
            except OSError as error:
                self.assertIn(error.errno, (errno.EPERM, errno.EBUSY))
                where = "c.lime"
            put(mount.join(where, "newer"), b"y")
        self.assertHolds(self.under(where), [A, ("new", b"x"), ("newer", b"y")])

    def test_records_do_not_leave_their_container(self):
        put(self.under("a.lime"), limetest.container([A, B]))
        put(self.under("b.lime"), limetest.container([A, B]))
        put(self.under("plain"), b"p")
        with self.rw(self.top) as mount:
            for old, new in (("a.lime/second", "b.lime/third"), ("a.lime/second", "x"),
                             ("a.lime/first", "b.lime/first"), ("plain", "a.lime/third"),
                             ("plain", "a.lime/second")):
                for call in (os.rename, os.link):
                    self.assertErrno((errno.EPERM, errno.EXDEV, errno.EEXIST), call,
                                     mount.join(old), mount.join(new))
        for name in ("a.lime", "b.lime"):
            self.assertHolds(self.under(name), [A, B])

    def test_links_lead_nowhere_outside(self):
        """What the daemon may write, a link in the tree does not lead to."""
        outside = self.write("outside", b"safe")
        os.symlink(outside, self.under("link"))
        with self.rw(self.top) as mount:
            # The kernel follows the link, on the user's behalf: no business of the daemon.
            self.assertEqual(os.readlink(mount.join("link")), outside)
            self.assertErrno(errno.ELOOP, os.open, mount.join("link"),
                             os.O_WRONLY | os.O_NOFOLLOW)
        self.assertEqual(read(outside), b"safe")

    def test_many_containers(self):
        count = 300
        for i in range(count):
            put(self.under(f"conf.{i:04d}"), limetest.container([A]))
        with self.rw(self.top, "max_open=8") as mount:
            pid = mount.pid

            def one(i):
                put(mount.join(f"conf.{i:04d}/n"), b"%d" % i)
                with open(mount.join(f"conf.{i:04d}/first"), "r+b") as file:
                    file.write(b"%04d" % i)

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for _ in pool.map(one, range(count)):
                    pass
            self.assertTrue(pid)
        for i in range(count):
            self.assertHolds(self.under(f"conf.{i:04d}"),
                             [("first", b"%04d" % i + A[1][4:]), ("n", b"%d" % i)])


@limetest.needs_fuse
class Random(writelib.TestCase):
    """tests/helpers/fsx.c: random steps beside a picture in memory."""

    STEPS = 100000 if limetest.STRESS else 3000

    def fsx(self, *args):
        limit = 3000 if limetest.STRESS else 240
        picture = os.path.join(self.tempdir(), "picture")
        done = limetest.run(["fsx", "--steps", str(self.STEPS), "--seed",
                             str(random.randrange(1 << 30)), "--save", picture, *args],
                            timeout=limit)
        self.assertEqual(done.returncode, 0, done.stdout.decode()[-8000:] + done.stderr.decode())
        print(f"# {self.id()}: {self.STEPS} steps without a difference")
        return read(picture)

    def last_record(self, *opts, **kw):
        path = self.write("c.lime", limetest.container([A, B]))
        with self.rw(path, *opts, **kw) as mount:
            want = self.fsx(mount.join("new"))
            self.assertBytes(read(mount.join("new")), want)
        self.assertHolds(path, [A, B, ("new", want)])

    def test_the_last_record(self):
        self.last_record()

    def test_the_last_record_by_one_thread(self):
        self.last_record("attr_timeout=0", "entry_timeout=0", args=["-s"])

    def test_the_last_record_around_the_page_cache(self):
        path = self.write("c.lime", limetest.container([A]))
        with self.rw(path, "direct_io") as mount:
            want = self.fsx("--no-mmap", "--max", "600000", mount.join("new"))
        self.assertHolds(path, [A, ("new", want)])

    def test_an_inner_record(self):
        path = self.write("c.lime", limetest.container([A, ("data", some(200003)), C]))
        with self.rw(path) as mount:
            want = self.fsx("--no-resize", mount.join("data"))
        self.assertHolds(path, [A, ("data", want), C])

    def test_an_inner_record_of_any_length(self):
        path = self.write("c.lime", limetest.container([A, ("data", some(200003)), C]))
        with self.rw(path) as mount:
            want = self.fsx("--no-append", mount.join("data"))
        self.assertHolds(path, [A, ("data", want), C])

    def test_two_at_once(self):
        path = self.write("c.lime", limetest.container([A, ("data", some(200003)), B]))
        with self.rw(path) as mount, concurrent.futures.ThreadPoolExecutor(2) as pool:
            inner = pool.submit(self.fsx, "--no-resize", mount.join("data"))
            last = pool.submit(self.fsx, mount.join("second"))
            inner, last = inner.result(), last.result()
        self.assertHolds(path, [A, ("data", inner), ("second", last)])

    def test_a_plain_file_of_a_tree(self):
        top = self.tempdir()
        with self.rw(top) as mount:
            want = self.fsx(mount.join("plain"))
        self.assertBytes(read(os.path.join(top, "plain")), want)

    def test_fio(self):
        if not limetest.STRESS:
            self.skipTest("long: make stress")
        if not shutil.which("fio"):
            self.skipTest("needs fio")
        size = 64 * MIB
        path = self.write("c.lime", limetest.container([A, ("data", bytes(size)), B]))
        with self.rw(path) as mount:
            put(mount.join("new"), b"")
            os.truncate(mount.join("new"), size)  # fio wants it that long
            for name in ("data", "new"):
                for engine in ("psync", "mmap", "libaio"):
                    self.run_ok(["fio", "--name=verify", f"--filename={mount.join(name)}",
                                 f"--size={size}", "--rw=randrw", "--bsrange=4k-256k",
                                 "--verify=crc32c", "--verify_fatal=1", "--do_verify=1",
                                 f"--ioengine={engine}", "--end_fsync=1", "--allow_file_create=0",
                                 "--fallocate=none", "--verify_backlog=256"],
                                timeout=600, cwd=self.tempdir())
        found = self.assertClean(path)
        self.assertEqual([len(r.data) for r in found], [len(A[1]), size, len(B[1]), size])
        self.assertEqual([found[0].data, found[2].data], [A[1], B[1]])


@limetest.needs_fuse
class Leaks(writelib.TestCase):
    def test_mounts_and_unmounts(self):
        path = self.write("c.lime", limetest.container([A]))
        where, items = self.tempdir(), [A]
        fds = len(os.listdir("/proc/self/fd"))
        for i in range(200 if limetest.STRESS else 10):
            limetest.run(["limefs", "-o", "rw", path, where], check=True,
                         stderr=subprocess.DEVNULL)
            put(os.path.join(where, f"r{i}"), b"%d" % i)
            items.append((f"r{i}", b"%d" % i))
            limetest.run(["fusermount3", "-u", where], check=True)
            self.assertEqual(limetest.mounts_under(where), [], i)
            # The lock goes with the daemon, a moment after the mount.
            until(lambda: limetest.run(["lime", "repair", path]).returncode == 0)
        self.assertHolds(path, items)
        self.assertEqual(len(os.listdir("/proc/self/fd")), fds)

    def test_descriptors_and_memory_stay_level(self):
        folder = self.tempdir()
        path = put(os.path.join(folder, "c.lime"), limetest.container([A, B]))
        with self.rw(path) as mount:
            pid = mount.pid

            def use():
                for i in range(20):
                    put(mount.join("new"), b"x" * 100000)
                    put(mount.join("first"), b"y" * (100 + i))
                    with open(mount.join("second"), "r+b") as file:
                        file.write(b"z")
                        file.truncate(len(B[1]))
                    os.setxattr(mount.join("new"), "user.lime.mb", b"1")
                    os.unlink(mount.join("new"))
                    for refused in (lambda: os.unlink(mount.join("first")),
                                    lambda: put(mount.join("009-x"), b"")):
                        self.assertErrno(errno.EPERM, refused)

            def level():
                names = []
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    try:
                        names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
                    except FileNotFoundError:
                        pass
                with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                    return (len([name for name in names if name != "/dev/fuse"]),
                            int(file.read().split()[1]))

            for _ in range(3):
                use()
                fds, pages = level()
            for _ in range(3):
                use()
            until(lambda: level()[0] <= fds, 5)  # releases are answered late
            if not limetest.SANITIZED:  # they keep what is freed for a while
                self.assertLess(level()[1], pages + 2000)

    def test_valgrind(self):
        if limetest.SANITIZED or not shutil.which("valgrind"):
            self.skipTest("needs valgrind and no sanitizer")
        folder = self.tempdir()
        path = put(os.path.join(folder, "c.lime"), limetest.container([A, B, C]))
        for source, inside in ((path, ""), (folder, "c.lime")):
            where, log = self.tempdir(), os.path.join(self.tempdir(), "valgrind")
            process = subprocess.Popen(
                ["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite,indirect",
                 "--error-exitcode=9", f"--log-file={log}", limetest.program("limefs"), "-f",
                 "-o", "rw", source, where], stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            until(lambda w=where: limetest.mounts_under(w), 60)

            def at(name, w=where, i=inside):
                return os.path.join(w, i, name)

            put(at("new"), b"x" * 100000)
            with open(at("new"), "ab") as file:
                file.write(b"more")
                os.fsync(file.fileno())
            put(at("first"), A[1])  # the same length, then others
            put(at("first"), b"longer than it was" * 100)
            os.truncate(at("second"), 100)
            os.truncate(at("new"), 5)
            with open(at("second"), "r+b") as file:
                file.write(b"in place")
            os.setxattr(at("new"), "user.lime.type", b"newer")
            os.setxattr(at("newer"), "user.lime.mb", b"1")
            for refused in (lambda: os.unlink(at("first")), lambda: put(at("009-x"), b""),
                            lambda: os.setxattr(at("first"), "user.lime.mb", b"0")):
                with self.assertRaises(OSError):
                    refused()
            fd = os.open(at("gone"), os.O_WRONLY | os.O_CREAT)
            os.write(fd, b"x" * 1000)
            gone = True
            try:
                os.unlink(at("gone"))
            except OSError as error:
                self.assertEqual(error.errno, errno.EBUSY)
                gone = False
            try:
                os.close(fd)
            except OSError:
                pass
            if not gone:
                os.unlink(at("gone"))
            os.unlink(at("newer"))
            if inside:
                put(os.path.join(where, "plain"), b"text")
                os.rename(os.path.join(where, "plain"), os.path.join(where, "other"))
                os.unlink(os.path.join(where, "other"))
                os.mkdir(os.path.join(where, "empty"))
                os.rmdir(os.path.join(where, "empty"))
            fd = os.open(at("unfinished"), os.O_WRONLY | os.O_CREAT)
            os.write(fd, b"x" * 1000)
            process.terminate()
            code = process.wait(60)
            try:
                os.close(fd)
            except OSError:
                pass
            with open(log, encoding="utf-8") as file:
                words = file.read()
            self.assertEqual(code, 0, words)
            self.assertNotRegex(words, "lost in|Invalid|uninitialised")
            with self.rw(path):
                pass
            self.assertClean(path)
            put(path, limetest.container([A, B, C]))


if __name__ == "__main__":
    limetest.main()
