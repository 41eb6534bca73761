"""Writes through a mount: the container has byte for byte what programs write, also when many
write at once."""

import contextlib
import errno
import mmap
import os
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import writelib
from pairs import pairwise
from writelib import (
    A, B, C, flags, MIB, put, pwrite_all, read, records, some, until, whole_records, write_all)


@limetest.needs_fuse
class RoundTrips(writelib.TestCase):
    """Ordinary programs write containers record by record."""

    DATA = [b"", b"1", b"1234567", b"12345678", some(4096, 2), some(3 * MIB + 5, 3)]

    def make(self, write, data=None):
        """Write a container by write(path of the record, path of the data) for each record; the
        names are type and NNN-type in turn."""
        directory = self.tempdir()
        items = [("xlf-info", b"begin")]
        path = self.write("c.lime", limetest.container(items))
        with self.rw(path) as mount:
            for i, bytes_ in enumerate(self.DATA if data is None else data, 2):
                name = f"type {i}" if i % 2 else f"{i:03d}-type {i}"
                items.append((f"type {i}", bytes_))
                write(mount.join(name), put(os.path.join(directory, str(i)), bytes_))
                self.assertEqual(len(os.listdir(mount)), i)
        self.assertHoldsForAll(path, items)
        self.assertBytes(self.packed([items]), read(path), "lime pack")

    # IN and OUT stand for the paths of the data and of the record.
    COMMANDS = [
        (["cp", "IN", "OUT"], None),
        *((["dd", "if=IN", "of=OUT", f"bs={block}", "status=none", *options], data)
          for (block, data), options in pairwise(
              [("4k", [some(5 * 4096, 1), some(MIB + 1, 2)]), ("1M", [some(3 * MIB + 3, 3)]),
               ("8M", [some(9 * MIB + 7, 4)]),
               *[("64M", [some(70 * MIB + 7, 5)])] * limetest.STRESS], ([], ["conv=fsync"]))),
        (["dd", "if=IN", "of=OUT", "bs=1M", "oflag=direct", "status=none"],
         [some(5 * MIB, 1), some(4096, 2)]),
        (["sh", "-c", 'tee "$2" <"$1" >/dev/null', "sh", "IN", "OUT"], None),
        (["sh", "-c", 'cat <"$1" >"$2"', "sh", "IN", "OUT"], None),
        (["sh", "-c", 'cat "$1" >>"$2"', "sh", "IN", "OUT"], None),
        *[(["rsync", "--inplace", "IN", "OUT"], None)] * bool(shutil.which("rsync")),
    ]

    def test_programs(self):
        for command, data in self.COMMANDS:
            with self.subTest(command):
                self.make(lambda out, source, args=command: self.run_ok(
                    [arg.replace("IN", source).replace("OUT", out) for arg in args]), data)

    def test_a_mapping_outlives_its_descriptor(self):
        def write(out, source):
            data = read(source)
            with open(out, "w+b") as file:
                file.truncate(len(data))
                pages = mmap.mmap(file.fileno(), len(data))
            pages[:] = data
            pages.flush()
            pages.close()
        self.make(write, [some(100000, 1), some(3 * MIB + 1, 2)])

    def test_copies_of_the_corpus(self):
        """A copy of each container, record by record and message by message, has the same bytes."""
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
                want = read(original)  # an old Lemon left out the last padding of one
                self.assertBytes(read(path), want + bytes(-len(want) % 8), name)

    def test_many_records(self):
        count = 1000 if limetest.STRESS else 150
        path = self.write("c.lime", b"")
        with self.rw(path) as mount:
            for i in range(count):
                put(mount.join(f"{i + 1:03d}-t"), b"x" * (i % 11))
        self.assertHolds(path, [("t", b"x" * (i % 11)) for i in range(count)])


class RoundTripsByOneThread(RoundTrips):
    """The same with one thread in the daemon and without timeouts of the kernel's cache."""

    OPTS = ("attr_timeout=0", "entry_timeout=0")
    ARGS = ("-s",)


class RoundTripsDirect(RoundTrips):
    OPTS = ("direct_io",)


@limetest.needs_fuse
class Synchronous(writelib.TestCase):
    def test_written_bytes_survive_the_daemon(self):
        """O_SYNC and O_DSYNC hold also where the kernel leaves them to the daemon (direct_io)."""
        data, before = some(3 * MIB), bytes(8 * MIB)  # a large record
        for flag in (os.O_SYNC, os.O_DSYNC):
            for opts in ((), ("direct_io",)):
                path = self.write("c.lime", limetest.container([A, ("data", before)]))
                with self.subTest(flag=flag, opts=opts):
                    mount = self.rw(path, *opts)
                    fd = os.open(mount.join("data"), os.O_WRONLY | flag)
                    for at in range(0, len(data), MIB):
                        self.assertEqual(os.pwrite(fd, data[at:at + MIB], len(before) + at),
                                         MIB)
                    os.kill(mount.pid, signal.SIGKILL)
                    mount.wait_for_end()
                    with contextlib.suppress(OSError):
                        os.close(fd)
                    mount.stop()
                    with self.rw(path):
                        pass
                    self.assertHolds(path, [A, ("data", before + data)])


@limetest.needs_fuse
class Concurrent(writelib.TestCase):
    SIZE = 2 * MIB + 77

    def chunks(self, size, seed):
        """Return [0, size) as chunks (offset, length) in a random order."""
        dice, at, found = random.Random(seed), 0, []
        while at < size:
            n = min(dice.choice([100, 4096, 65536, 300001]), size - at)
            found.append((at, n))
            at += n
        dice.shuffle(found)
        return found

    def write_chunks(self, path, data, chunks, how):
        with limetest.descriptor(path, os.O_RDWR) as fd:
            if how == "map":
                with mmap.mmap(fd, 0) as pages:
                    for at, n in chunks:
                        pages[at:at + n] = data[at:at + n]
                    pages.flush()
            else:
                for at, n in chunks:
                    pwrite_all(fd, data[at:at + n], at)
                    if how == "sync" and at % 5 == 0:
                        os.fsync(fd)

    def write_at_once(self, jobs):
        limetest.at_once(*((self.write_chunks, *args) for args in jobs))

    def test_ranges_of_one_record(self):
        """Writers of adjacent ranges do not affect each other: in an inner record, in the last one,
        and in a new one whose first bytes are written last."""
        new = some(8 * 300000 + 5, 4)
        for name in ("one", "two", "new"):
            items = {"one": bytes(len(new)), "two": bytes(len(new))}
            with self.subTest(name), self.written([*items.items()]) as (path, mount), \
                    open(mount.join(name), "ab" if name == "new" else "rb"):
                chunks = self.chunks(len(new), 7)
                if name == "new":
                    chunks.sort(reverse=True)
                self.write_at_once([(mount.join(name), new, chunks[i::8], ("plain", "sync")[i % 2])
                                    for i in range(8)])
            self.assertHolds(path, [*{**items, name: new}.items()])

    def test_readers_and_a_writer(self):
        """A reader sees only old or new bytes of each block."""
        block, count = 4096, 200
        old, new = b"o" * block * count, b"n" * block * count
        with self.written([A, ("data", old), B]) as (path, mount):
            def check():
                found = read(mount.join("data"))
                self.assertEqual(len(found), len(old))
                self.assertLessEqual(set(found), {ord("o"), ord("n")})

            with limetest.in_background(check, threads=3):
                self.write_chunks(mount.join("data"), new, self.chunks(len(new), 3), "sync")
            self.assertBytes(read(mount.join("data")), new)
        self.assertHolds(path, [A, ("data", new), B])

    def everything_at_once(self, *opts, tree=False, start=None, **kw):
        """Each thread changes its own record: in place, rewritten with another length, appended and
        removed, with new flags and types. Other threads read all records."""
        size = 300000
        items = [("patched", bytes(size)), ("mapped", bytes(size)), ("whole", b"whole"),
                 ("named", b"n" * 5000), ("still", b"s" * 100000), ("last", b"")]
        path = self.write("c.lime", limetest.container(items))
        source = os.path.dirname(path) if tree else path
        mount = start(source) if start else self.rw(source, *opts, **kw)
        inside = mount.join("c.lime") if tree else mount.path
        want = dict(items)

        def within(name):
            return os.path.join(inside, name)

        def unless_busy(call, *args):
            """Return None if another thread appends or rewrites: a later turn tries again."""
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
            with limetest.descriptor(within("001-patched"), os.O_RDWR) as fd:
                pwrite_all(fd, part, at)
                if dice.randrange(2):
                    os.fsync(fd)
                self.assertBytes(os.pread(fd, size, 0), bytes(data), "patched")
            want["patched"] = bytes(data)

        def change_map(dice):
            at, n = dice.randrange(size - 5000), dice.randrange(1, 5000)
            part = dice.randbytes(n)
            with open(within("002-mapped"), "r+b") as file, mmap.mmap(file.fileno(), 0) as m:
                m[at:at + n] = part
                if dice.randrange(2):
                    m.flush()
            want["mapped"] = want["mapped"][:at] + part + want["mapped"][at + n:]

        def rewrite(dice):
            data = dice.randbytes(dice.choice([1, 4, 1000, 70000]))
            # The release of the last write may still commit the record.
            until(lambda: self.succeeds([errno.EBUSY], put, within("003-whole"), data))
            want["whole"] = data
            self.assertBytes(read(within("whole")), want["whole"], "whole")

        def set_attributes(dice):
            types = ["named", "renamed", "n" * 127]
            found = [n for n in os.listdir(inside) if n.startswith("004-")][0]
            unless_busy(os.setxattr, within(found), "user.lime.type",
                        dice.choice(types).encode())
            unless_busy(os.setxattr, within("005-still"), "user.lime.mb", b"%d" % dice.randrange(2))

        def append(dice):
            fd = unless_busy(os.open, within("007-more"), os.O_RDWR | os.O_CREAT | os.O_EXCL)
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

        def check_mount(_):
            self.assertBytes(read(within("still")), want["still"], "still")
            self.assertEqual(os.stat(within("patched")).st_size, size)
            self.assertGreaterEqual(len(os.listdir(inside)), len(items))

        def check_container(_):
            with open(path, "rb") as file:  # a whole container at any time
                found = whole_records(file.read())[0]
            self.assertGreaterEqual(len(found), len(items))
            self.assertBytes(found[4].data, want["still"], "still, from outside")

        with contextlib.ExitStack() as stack:
            for i, call in enumerate([patch, change_map, rewrite, set_attributes, append,
                                      check_mount, check_mount, check_container]):
                stack.enter_context(limetest.in_background(call, random.Random(i)))
            time.sleep(60 if limetest.STRESS else 2)
        mount.stop()
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

    def test_two_append(self):
        """With O_APPEND no line is lost or torn."""
        count = 2000 if limetest.STRESS else 300

        def append(name):
            with limetest.descriptor(mount.join("log"), os.O_WRONLY | os.O_APPEND) as fd:
                for i in range(count):
                    self.assertEqual(os.write(fd, b"%s %06d\n" % (name, i)), 9)
                    if i % 50 == 0:
                        os.fsync(fd)

        with self.written([A]) as (path, mount):
            put(mount.join("log"), b"")
            limetest.at_once((append, b"x"), (append, b"y"))
        lines = records(read(path))[1].data.split(b"\n")
        self.assertEqual(lines.pop(), b"")
        for name in (b"x", b"y"):
            self.assertEqual([line for line in lines if line[:1] == name],
                             [b"%s %06d" % (name, i) for i in range(count)])
        self.assertEqual(len(lines), 2 * count)


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
            put(mount.join("more"), b"")  # an empty record appears with its release
            until(lambda: flags(read(path)) == ["MBME", "MB", "ME"])
        self.assertHoldsForAll(path, [[A], [("new", b"data"), ("more", b"")]])

    def test_boundaries_anywhere(self):
        """A change of one record's boundary flag changes its neighbour's flag, too."""
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

    def test_refused_values(self):
        with self.written([A, B, C]) as (path, mount):
            for value in (b"2", b"-1", b"", b"yes", b"11", b"0x1"):
                for what in ("mb", "me"):
                    self.assertErrno(errno.EINVAL, self.set, mount, "second", what, value)
            for value in (b"t" * 128, b"a\0b", b"t" * 5000):
                self.assertErrno(errno.EINVAL, self.set, mount, "second", "type", value)
            for what in ("message", "record", "offset", "nonsense"):
                self.assertErrno((errno.EPERM, errno.EOPNOTSUPP), self.set, mount, "second", what,
                                 b"1")
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
            os.setxattr(mount.join("x" * 127), "user.lime.type", b"y", os.XATTR_REPLACE)
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
class Random(writelib.TestCase):
    """tests/helpers/fsx compares a record after random steps with a copy in memory."""

    STEPS = 100000 if limetest.STRESS else 1000

    def fsx(self, *args):
        limit = 3000 if limetest.STRESS else 240
        expected = os.path.join(self.tempdir(), "expected")
        done = limetest.run(["fsx", "--steps", str(self.STEPS), "--seed",
                             str(random.randrange(1 << 30)), "--save", expected, *args],
                            timeout=limit)
        self.assertEqual(done.returncode, 0, done.stdout.decode()[-8000:] + done.stderr.decode())
        print(f"# {self.id()}: {self.STEPS} steps without a difference")
        return read(expected)

    def test_one_record(self):
        data = ("data", some(200003))
        for items, name, args, opts, mount_args in (
                ([A, B], "new", [], [], ()),
                ([A, B], "new", [], ["attr_timeout=0", "entry_timeout=0"], ("-s",)),
                ([A], "new", ["--no-mmap", "--max", "600000"], ["direct_io"], ()),
                ([A, data, C], "data", ["--no-resize"], [], ()),
                ([A, data, C], "data", ["--no-append"], [], ())):
            path = self.write("c.lime", limetest.container(items))
            with self.subTest(name, args=args, opts=opts):
                with self.rw(path, *opts, args=mount_args) as mount:
                    want = self.fsx(*args, mount.join(name))
                    self.assertBytes(read(mount.join(name)), want)
                items = dict([*items, (name, want)])
                self.assertHolds(path, list(items.items()))

    def test_two_at_once(self):
        path = self.write("c.lime", limetest.container([A, ("data", some(200003)), B]))
        with self.rw(path) as mount:
            inner, last = limetest.at_once((self.fsx, "--no-resize", mount.join("data")),
                                           (self.fsx, mount.join("second")))
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
            os.truncate(mount.join("new"), size)  # fio needs the full size
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
    def test_descriptors_and_memory_stay_level(self):
        with self.rw(self.write("c.lime", limetest.container([A, B]))) as mount:
            def use():
                for i in range(20):
                    put(mount.join("new"), b"x" * 100000)
                    put(mount.join("first"), b"y" * (100 + i))
                    with open(mount.join("second"), "r+b") as file:
                        file.write(b"z")
                        file.truncate(len(B[1]))
                    os.setxattr(mount.join("new"), "user.lime.mb", b"1")
                    os.unlink(mount.join("new"))
                    for refused in ((os.unlink, mount.join("first")),
                                    (put, mount.join("009-x"), b"")):
                        self.assertErrno(errno.EPERM, *refused)

            for _ in range(3):
                use()
                fds, size = mount.usage()
            for _ in range(3):
                use()
            until(lambda: len(mount.usage()[0]) <= len(fds), 5)  # the daemon handles releases late
            if not limetest.SANITIZED:  # sanitizers keep freed memory for a while
                self.assertLess(mount.usage()[1], size + (8 << 20))

    def test_valgrind(self):
        path = self.write("c.lime", limetest.container([A, B, C]))
        for source, inside in ((path, ""), (os.path.dirname(path), "c.lime")):
            with limetest.valgrind(self, source, "-o", "rw") as daemon:
                unfinished = self.each_kind_of_change(daemon, inside)
            with contextlib.suppress(OSError):
                os.close(unfinished)
            with self.rw(path):
                pass
            self.assertClean(path)
            put(path, limetest.container([A, B, C]))

    def each_kind_of_change(self, daemon, inside):
        """Make each kind of change; return an open descriptor of an unfinished record."""
        def at(name):
            return daemon.join(inside, name)

        put(at("new"), b"x" * 100000)
        with open(at("new"), "ab") as file:
            file.write(b"more")
            os.fsync(file.fileno())
        put(at("first"), A[1])  # the same length, then other lengths
        put(at("first"), b"longer than it was" * 100)
        os.truncate(at("second"), 100)
        os.truncate(at("new"), 5)
        with open(at("second"), "r+b") as file:
            file.write(b"in place")
        os.setxattr(at("new"), "user.lime.type", b"newer")
        os.setxattr(at("newer"), "user.lime.mb", b"1")
        for refused in ((os.unlink, at("first")), (put, at("009-x"), b""),
                        (os.setxattr, at("first"), "user.lime.mb", b"0")):
            self.assertRaises(OSError, *refused)
        fd = os.open(at("gone"), os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"x" * 1000)
        with contextlib.suppress(OSError):  # EBUSY: it is removed below
            os.unlink(at("gone"))
        with contextlib.suppress(OSError):
            os.close(fd)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(at("gone"))
        os.unlink(at("newer"))
        if inside:
            put(daemon.join("plain"), b"text")
            os.rename(daemon.join("plain"), daemon.join("other"))
            os.unlink(daemon.join("other"))
            os.mkdir(daemon.join("empty"))
            os.rmdir(daemon.join("empty"))
        fd = os.open(at("unfinished"), os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"x" * 1000)
        return fd


if __name__ == "__main__":
    limetest.main()
