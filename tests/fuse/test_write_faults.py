"""Errors below a writable mount reach the writer, at write, fsync or close, and harm nothing else:
full disks, quotas, limits, failing disks, and containers that another program replaces, cuts or
removes."""

import contextlib
import errno
import glob
import os
import random
import resource
import shutil
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import faults
import limetest
import users
import writelib
from writelib import MIB, put, pwrite_all, read, until, whole_records, write_all

A = ("first", b"a" * 1000)
B = ("second", b"b" * 200001)
C = ("third", b"c" * 3003)
FULL = (errno.ENOSPC,)


def failure(function, *args):
    """The errno of the first failure, even if a close failed after it; None if all succeeded."""
    try:
        function(*args)
    except OSError as error:
        while isinstance(error.__context__, OSError):
            error = error.__context__
        return error.errno
    return None


def call_all(fd, *calls):
    """Calls each function on the descriptor until one fails, and always closes it."""
    try:
        for function, *args in calls:
            function(fd, *args)
    finally:
        os.close(fd)


def attempt(path, flags, data, sync=False, at=None, block=65536):
    """Writes data to a record; returns the errno of the first failure, or None."""
    def write():
        parts = [(begin, data[begin:begin + block]) for begin in range(0, len(data), block)]
        call_all(os.open(path, flags, 0o644),
             *((write_all, part) if at is None else (pwrite_all, part, at + begin)
               for begin, part in parts), *[(os.fsync,)] * sync)
    return failure(write)


APPEND = os.O_WRONLY | os.O_CREAT | os.O_EXCL
EXTEND = os.O_WRONLY | os.O_APPEND
REWRITE = os.O_WRONLY | os.O_TRUNC


def is_in_unlink(thread):
    """Whether the thread is in the system call unlink or unlinkat (numbers of x86-64, arm64)."""
    try:
        with open(f"/proc/self/task/{thread.native_id}/syscall", encoding="ascii") as file:
            return file.read().split()[0] in ("87", "263", "35")
    except OSError:  # the thread has ended
        return True


class Faults(writelib.TestCase):
    def remove_records_after(self, mount, count):
        """Removes the records after the first `count`. The release of a failed record may remove it
        at the same time."""
        for name in sorted(os.listdir(mount))[count:]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(mount.join(name))

    def expect(self, error, codes):
        self.assertIn(error, codes, errno.errorcode.get(error))

    def recover(self, path):
        """Repairs the container if it needs that; returns its records."""
        for left in glob.glob(glob.escape(path) + ".cut-*"):
            os.unlink(left)
        if limetest.run(["lime", "check", path]).returncode != 0:
            self.run_ok(["lime", "repair", path])
        return self.assertClean(path)

    def check_first_records(self, found, items):
        """Checks that these records come first."""
        self.assertGreaterEqual(len(found), len(items))
        for (type, data), record in zip(items, found):
            self.assertEqual(record.type, type.encode())
            self.assertBytes(record.data, data, type)


@limetest.needs_fuse
class FullTmpfs(Faults):
    KIND = "tmpfs"
    MIB = 8

    def setUp(self):
        self.fs = writelib.SmallFs(self, self.KIND, self.MIB)
        self.path = put(self.fs.join("c.lime"), limetest.container([A, B, C]))
        self.big = random.Random(1).randbytes(1 << 16) * 160  # 10 MiB

    def check_full(self, flags, name, *, leave=100000, sync=False, data=None, at=None, items=None,
                   opts=()):
        """A writer gets ENOSPC, other records are unchanged, and writing works again once there is
        space. Some file systems have a little more space than they report."""
        with self.rw(self.path, *opts) as mount:
            filler = self.fs.fill(leave)
            error = attempt(mount.join(name), flags, self.big if data is None else data, sync, at)
            if error is None and data is not None and len(data) < MIB:
                self.assertBytes(read(mount.join(name)), data, name)
                os.unlink(filler)
                return
            self.expect(error, FULL)
            for record, (type, data) in enumerate([A, B, C] if items is None else items, 1):
                path = mount.join(f"{record:03d}-{type}")
                if type == name:  # the release after close() discards the failed data
                    until(lambda path=path, data=data: read(path) == data)
                self.assertBytes(read(path), data, type)
            os.unlink(filler)
            self.remove_records_after(mount, 3)
            put(mount.join("after"), b"y" * 50000)
        found = self.assertClean(self.path)
        self.check_first_records(found, items or [A, B])
        self.assertEqual((found[-1].type, found[-1].data), (b"after", b"y" * 50000))

    def test_new_record(self):
        for sync in (False, True):
            self.check_full(APPEND, "new", sync=sync)
            put(self.path, limetest.container([A, B, C]))

    def test_new_record_and_unmount(self):
        """The disk is still full when the mount ends; a later mount finds the old records."""
        with self.rw(self.path) as mount:
            self.fs.fill(50000)
            self.expect(attempt(mount.join("new"), APPEND, self.big), FULL)
        found, _ = whole_records(read(self.path))
        self.check_first_records(found, [A, B, C])
        os.unlink(self.fs.join("filler"))
        self.check_first_records(self.recover(self.path), [A, B, C])
        with self.rw(self.path) as mount:
            put(mount.join("after"), b"y" * 50000)
        self.check_first_records(self.assertClean(self.path), [A, B, C])

    def test_removed_before_its_release(self):
        """Releasing a failed record removes it. An unlink that waits for the release removes that
        record, not the one before it, which is the last by then."""
        with self.rw(self.path) as mount:
            for _ in range(3):
                filler = self.fs.fill(100000)
                try:
                    fd = os.open(mount.join("new"), APPEND)
                except OSError:  # Btrfs may have no space for the header either
                    os.unlink(filler)
                    continue
                with self.assertRaises(OSError):
                    write_all(fd, self.big)
                    os.fsync(fd)
                errors = []

                def remove():
                    try:
                        os.unlink(mount.join("004-new"))
                    except OSError as error:
                        errors.append(error.errno)
                unlinker = threading.Thread(target=remove)
                unlinker.start()
                until(lambda thread=unlinker: is_in_unlink(thread))
                with contextlib.suppress(OSError):
                    os.close(fd)
                unlinker.join()
                self.assertIn(errors, ([], [errno.ENOENT], [errno.EBUSY]))
                os.unlink(filler)
                until(lambda: len(os.listdir(mount)) == 3)
                self.check_first_records(self.assertClean(self.path), [A, B, C])

    def test_little_space_left(self):
        """The disk becomes full at a record's header, in its data, or at its padding."""
        steps = 40 if limetest.STRESS else 8
        with self.rw(self.path) as mount:
            expected = [A, B, C]
            for i in range(steps):
                filler = self.fs.fill(4096 * (i % 3))
                name, data = f"r{i}", bytes([i]) * (1 + i * 1111)
                error = attempt(mount.join(name), APPEND, data, i % 2 == 0)
                os.unlink(filler)
                if error is None:
                    expected.append((name, data))
                else:
                    self.expect(error, FULL)
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(mount.join(f"{len(expected) + 1:03d}-{name}"))
                put(mount.join("passing"), b"p")
                os.unlink(mount.join("passing"))
                self.check_first_records(self.assertClean(self.path), expected)
            self.assertEqual(len(os.listdir(mount)), len(expected))
        self.assertHolds(self.path, expected)

    def test_last_record(self):
        """The last record is appended to or rewritten when the disk becomes full."""
        for flags, then, expected in ((EXTEND, lambda path: os.truncate(path, 10), C[1][:10]),
                                      (REWRITE, lambda path: put(path, b"new"), b"new")):
            put(self.path, limetest.container([A, B, C]))
            with self.rw(self.path) as mount:
                filler = self.fs.fill(100000)
                self.expect(attempt(mount.join("third"), flags, self.big), FULL)
                found, _ = whole_records(read(self.path))
                self.check_first_records(found, [A, B])
                if flags == EXTEND:
                    self.assertBytes(found[2].data[:len(C[1])], C[1])
                os.unlink(filler)
                then(mount.join("third"))
            self.assertHolds(self.path, [A, B, ("third", expected)])

    def test_last_record_fills_the_disk(self):
        """The daemon cuts the failed data at once; this frees space to commit the old length."""
        for then in ("nothing", "less", "remove"):
            put(self.path, limetest.container([A, B, C]))
            with self.rw(self.path) as mount:
                filler = self.fs.fill(48 * MIB)  # a large file system may use that much itself
                self.expect(attempt(mount.join("third"), EXTEND, self.big), FULL)
                until(lambda: os.path.getsize(self.path) < MIB)
                if then == "less":
                    os.truncate(mount.join("third"), 10)
                elif then == "remove":
                    os.unlink(mount.join("third"))
            os.unlink(filler)
            expected = {"nothing": [C], "less": [("third", C[1][:10])], "remove": []}[then]
            self.assertHolds(self.path, [A, B, *expected])

    def check_no_temporary_file(self):
        """Checks that no temporary file is left next to the container."""
        self.assertLessEqual(set(os.listdir(self.fs.path)), {"c.lime", "lost+found"})

    def test_inner_record_rewritten(self):
        """The shadow file has no space: the record keeps its old data."""
        for size in (len(self.big), len(B[1])):  # a new length, the same length
            for sync in (False, True):
                self.check_full(REWRITE, "second", sync=sync, data=self.big[:size], items=[A, B, C])
                self.check_no_temporary_file()
                put(self.path, limetest.container([A, B, C]))

    def test_inner_record_grows(self):
        for sync in (False, True):
            for opts in ([], ["attr_timeout=0"]):  # the kernel gets the attributes at each write
                self.check_full(os.O_WRONLY, "second", sync=sync, at=len(B[1]), items=[A, B, C],
                                opts=opts)
                self.check_no_temporary_file()
            put(self.path, limetest.container([A, B, C]))

    def test_no_space_for_a_second_container(self):
        """There is space for the new data, but not for a second copy of the container."""
        data = self.big[:2 * MIB]
        items = [A, ("large", self.big[:5 * MIB // 2]), C]
        put(self.path, limetest.container(items))
        with self.rw(self.path) as mount:
            filler = self.fs.fill(MIB)
            error = attempt(mount.join("first"), REWRITE, data[:MIB // 2])
            if error is not None:  # Btrfs and XFS can share the extents
                self.expect(error, FULL)
                self.assertHolds(self.path, items)
            os.unlink(filler)
            put(mount.join("first"), b"another length")
        self.assertHolds(self.path, [("first", b"another length"), *items[1:]])
        self.check_no_temporary_file()

    def test_inner_record_emptied(self):
        """Emptying an inner record rewrites the container; close reports ENOSPC."""
        items = [A, ("large", self.big[:5 * MIB // 2]), C]
        put(self.path, limetest.container(items))
        with self.rw(self.path) as mount:
            filler = self.fs.fill(MIB)
            for i in range(6):
                if i % 2:
                    done = limetest.run(["cp", "/dev/null", mount.join("first")])
                    error = None if done.returncode == 0 else b"No space left" in done.stderr
                else:
                    error = attempt(mount.join("first"), REWRITE, b"")
                    error = None if error is None else error in FULL
                if error is None:  # the extents are shared
                    items[0] = ("first", b"")
                self.assertIn(error, (None, True))
                self.assertHolds(self.path, items)
            os.unlink(filler)
            put(mount.join("first"), b"another length")
        self.assertHolds(self.path, [("first", b"another length"), *items[1:]])

    def test_new_empty_record(self):
        """An empty record needs space for its header only."""
        for leave in (0, 1, 4096):
            put(self.path, limetest.container([A, B, C]))
            with self.rw(self.path) as mount:
                filler = self.fs.fill(leave)
                made = []
                for i in range(4, 200):
                    name = mount.join(f"{i:03d}-new")
                    error = attempt(name, APPEND, b"")
                    if error is not None:
                        self.expect(error, FULL)
                        break
                    made.append(("new", b""))
                    self.assertHolds(self.path, [A, B, C, *made])
                os.unlink(filler)
            self.check_first_records(self.recover(self.path), [A, B, C, *made])

    def test_changes_that_need_no_space(self):
        """Writing in place and removing need no space, except on copy-on-write file systems."""
        with self.rw(self.path) as mount:
            self.fs.fill()
            in_place = attempt(mount.join("second"), os.O_WRONLY, b"n" * len(B[1]), True, at=0)
            for error in (in_place, failure(os.unlink, mount.join("third"))):
                if self.KIND == "btrfs" and error is not None:
                    self.expect(error, FULL)
                    return
                self.assertIsNone(error)
            os.truncate(mount.join("second"), 1000)
        self.assertHolds(self.path, [A, ("second", b"n" * 1000)])

    def test_allocated(self):
        """fallocate returns ENOSPC at once, changes nothing, and frees what it had allocated."""
        with self.rw(self.path) as mount, open(mount.join("third"), "r+b", buffering=0) as file:
            before = os.statvfs(self.fs.path).f_bavail
            self.assertErrno(FULL, os.posix_fallocate, file.fileno(), 0, 1 << 30)
            free = os.statvfs(self.fs.path)
            self.assertGreater(free.f_bavail, before - MIB // free.f_bsize)
            self.fs.fill(300000)
            refused = not self.succeeds(FULL, os.posix_fallocate, file.fileno(), 0, len(self.big))
            if refused:
                self.assertEqual(os.fstat(file.fileno()).st_size, len(C[1]))
                self.assertBytes(file.read(), C[1])
        if refused:
            self.assertHolds(self.path, [A, B, C])

    def test_mapped(self):
        """A hole is filled through a mapping: msync, fsync or close reports ENOSPC."""
        with self.rw(self.path) as mount:
            filler = self.fs.fill(100000)
            code = ("import mmap, os, sys\n"
                    "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
                    f"os.ftruncate(fd, {len(self.big)})\n"
                    f"m = mmap.mmap(fd, {len(self.big)})\n"
                    f"for i in range(0, {len(self.big)}, 4096): m[i] = 1\n"
                    "m.flush()\n"
                    "os.fsync(fd)\n"
                    "m.close()\n"
                    "os.close(fd)\n")
            done = limetest.run([sys.executable, "-c", code, mount.join("new")])
            self.assertNotEqual(done.returncode, 0)
            if done.returncode != -signal.SIGBUS:
                self.assertIn(b"No space left", done.stderr)
            os.unlink(filler)
            self.remove_records_after(mount, 3)
            put(mount.join("after"), b"y")
        self.assertHolds(self.path, [A, B, C, ("after", b"y")])

    def test_programs(self):
        """Programs fail with a message; none succeeds without writing its data."""
        source = self.write("given", self.big)
        commands = [["cp", source, "NEW"], ["dd", f"if={source}", "of=NEW", "bs=1M", "status=none"],
                    ["dd", f"if={source}", "of=NEW", "bs=4k", "conv=fsync", "status=none"],
                    ["dd", f"if={source}", "of=NEW", "bs=64M", "status=none"],
                    ["sh", "-c", f"cat {source} >NEW"], ["tee", "NEW"]]
        with self.rw(self.path) as mount:
            for i, command in enumerate(commands):
                filler = self.fs.fill(i * 33333)
                args = [word.replace("NEW", mount.join("new")) for word in command]
                done = limetest.run(args, input=self.big if command[0] == "tee" else b"")
                self.assertNotEqual(done.returncode, 0, command)
                self.assertIn(b"No space left", done.stderr, command)
                os.unlink(filler)
                self.remove_records_after(mount, 3)
                self.assertHolds(self.path, [A, B, C])

    def test_plain_file_of_a_tree(self):
        with self.rw(self.fs.path) as mount:
            self.fs.fill(100000)
            self.expect(attempt(mount.join("plain"), APPEND, self.big), FULL)
            with contextlib.suppress(FileNotFoundError):  # no space even for an inode
                os.unlink(mount.join("plain"))
            os.unlink(mount.join("filler"))
            put(mount.join("c.lime/new"), b"x")
        self.assertHolds(self.path, [A, B, C, ("new", b"x")])

    def test_new_container_of_a_tree(self):
        with self.rw(self.fs.path) as mount:
            filler = self.fs.fill()
            self.expect(failure(os.mkdir, mount.join("new.lime")) or
                        attempt(mount.join("new.lime/x"), APPEND, b"x" * 100000), FULL)
            os.unlink(filler)
            if os.path.exists(mount.join("new.lime")):
                put(mount.join("new.lime/y"), b"y")
        self.assertHolds(self.path, [A, B, C])


class FullExt4(FullTmpfs):
    KIND = "ext4"
    MIB = 16

    def setUp(self):
        super().setUp()
        self.big *= 2


class FullXfs(FullTmpfs):
    KIND = "xfs"
    MIB = 300

    def setUp(self):
        super().setUp()
        self.big *= 8


class FullBtrfs(FullXfs):
    KIND = "btrfs"
    MIB = 128


@limetest.needs_fuse
class Limits(Faults):
    def setUp(self):
        self.path = self.write("c.lime", limetest.container([A, B, C]))

    def limit_file_size(self, mount, size):
        """Limits the size of the files that the daemon may write; None: no limit."""
        size = resource.RLIM_INFINITY if size is None else size
        resource.prlimit(mount.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def test_file_size_limit(self):
        """EFBIG fails one write; SIGXFSZ does not kill the daemon."""
        data = b"n" * (5 * MIB)
        size = os.path.getsize(self.path)
        for limit in (size, size + 100, size + 144, size + 150, size + MIB + 5):
            with self.rw(self.path) as mount:
                self.limit_file_size(mount, limit)
                self.expect(attempt(mount.join("new"), APPEND, data), (errno.EFBIG, errno.EIO))
                self.assertTrue(mount.pid, "the daemon has ended")
                self.assertBytes(read(mount.join("second")), B[1])
                self.limit_file_size(mount, None)
                self.remove_records_after(mount, 3)
                put(mount.join("new"), data)
                self.assertHolds(self.path, [A, B, C, ("new", data)])
                os.unlink(mount.join("new"))
        self.assertHolds(self.path, [A, B, C])

    def test_file_size_limit_of_existing_records(self):
        with self.rw(self.path) as mount:
            self.limit_file_size(mount, os.path.getsize(self.path) - 10000)
            for flags, name in ((REWRITE, "first"), (EXTEND, "third")):
                self.expect(attempt(mount.join(name), flags, b"n" * MIB),
                            (errno.EFBIG, errno.EIO))
            self.expect(failure(os.truncate, mount.join("third"), MIB), (errno.EFBIG, errno.EIO))
            self.limit_file_size(mount, None)
            # The release after close() discards the failed data.
            until(lambda: self.succeeds((errno.EFBIG, errno.EIO), put, mount.join("third"), b"new"))
        self.assertHolds(self.path, [A, B, ("third", b"new")])

    def test_few_descriptors(self):
        """EMFILE when the daemon opens a file leaves no change half done."""
        with self.rw(self.path) as mount:
            used = len(os.listdir(f"/proc/{mount.pid}/fd"))
            _, hard = resource.prlimit(mount.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(mount.pid, resource.RLIMIT_NOFILE, (used, hard))
            for flags, name in ((REWRITE, "first"), (APPEND, "new")):
                self.expect(attempt(mount.join(name), flags, b"n" * 100),
                            (None, errno.EMFILE, errno.ENFILE, errno.EIO))
            resource.prlimit(mount.pid, resource.RLIMIT_NOFILE, (hard, hard))
            put(mount.join("third"), b"new" if len(os.listdir(mount)) == 3 else C[1])
        self.check_first_records(self.assertClean(self.path)[1:], [B])


@limetest.needs_fuse
class Quota(Faults):
    """A user over quota gets EDQUOT (at close the kernel makes it EIO), a project gets ENOSPC."""

    LIMIT = 4 * MIB
    PROJECT = 4711
    relief = ()  # after a failed command: raise the limit, discard its data, restore the limit

    def setUp(self):
        users.open_device(self)
        self.big = self.write("big", b"b" * (3 * self.LIMIT))

    def make(self, kind, mib, options, features=()):
        self.fs = writelib.SmallFs(self, kind, mib, options, features)
        os.chmod(self.fs.path, 0o777)
        self.path = put(self.fs.join("c.lime"), limetest.container([A, B, C]))

    def as_user(self):
        """Gives the container to user nobody; returns the prefix of a command run as nobody."""
        self.mountpoint = self.tempdir()
        for path in (self.path, self.mountpoint):
            os.chown(path, users.NOBODY_ID, users.NOBODY_ID)
        for path in (self.mountpoint, self.fs.path, self.big):
            users.let_in(path)
        return users.AS_NOBODY

    def check_quota(self, error, *user):
        """Each way to write too much fails; a small write then succeeds."""
        program = limetest.program("limefs")
        if user:
            program = shutil.copy(program, os.path.join(os.path.dirname(self.big), "limefs"))
        into, block = f"dd if={self.big} of={self.mountpoint}", "bs=64k status=none"
        commands = [f"{into}/new {block} conv=fsync", f"{into}/new bs=1M status=none oflag=direct",
                    f"cp {self.big} {self.mountpoint}/new", f"{into}/second {block} conv=fsync",
                    f"{into}/third {block} oflag=append conv=notrunc,fsync",
                    f"fallocate -l {len(read(self.big))} {self.mountpoint}/third"]
        after = "; ".join([*self.relief[:1], f"rm -f {self.mountpoint}/new", *self.relief[1:]])
        script = "; ".join([f"{program} -o rw {self.path} {self.mountpoint} || exit",
                            *(f"echo '-- {command}' >&2; {command}; echo exit $?; {after}"
                              for command in commands),
                            f"echo x >{self.mountpoint}/new; echo exit $?",
                            f"fusermount3 -u {self.mountpoint}"])
        self.addCleanup(writelib.unmount, self.mountpoint)
        done = limetest.run([*user, "sh", "-c", script], env={**os.environ, "LC_ALL": "C"})
        output = done.stderr.decode() + done.stdout.decode()
        for part in done.stderr.decode().split("-- ")[1:]:
            command, _, message = part.partition("\n")
            if command.startswith("cp"):
                self.assertRegex(message, f"{error}|Input/output error", output)
            else:
                self.assertIn(error, message, output)
        exits = [line for line in done.stdout.decode().splitlines() if line.startswith("exit")]
        self.assertEqual(exits, ["exit 1" for _ in commands] + ["exit 0"], output)
        until(lambda: limetest.run(["lime", "repair", self.path]).returncode == 0)
        self.assertHolds(self.path, [A, B, C, ("new", b"x\n")])

    def test_users(self):
        for kind, mib, options, *features in (
                ("tmpfs", 64, f"usrquota_block_hardlimit={self.LIMIT}"),
                ("ext4", 64, "usrquota", "-O", "quota", "-E", "quotatype=usrquota"),
                ("xfs", 300, "uquota")):
            with self.subTest(kind):
                self.make(kind, mib, options, features)
                if kind != "tmpfs":
                    self.fs.limit(writelib.USER, users.NOBODY_ID, self.LIMIT)
                self.check_quota("quota exceeded", *self.as_user())

    def test_subvolume_btrfs(self):
        """Btrfs quotas need no other kernel feature and also apply to root. Cutting a file needs
        space, too: until the quota is raised, each change gets EDQUOT; the first change after that
        discards the failed data."""
        self.make("btrfs", 128, "")
        directory = self.fs.join("sub")
        for command in (["subvolume", "create", directory], ["quota", "enable", self.fs.path],
                        ["qgroup", "limit", str(self.LIMIT), directory]):
            done = limetest.run(["btrfs", *command])
            if done.returncode != 0:
                self.skipTest(f"needs btrfs quotas: {done.stderr.decode().strip()}")
        self.path = shutil.copy(self.path, os.path.join(directory, "c.lime"))
        self.mountpoint = self.tempdir()
        # With a full quota this command fails, too, until deleted data is freed.
        limit = ("for i in 1 2 3 4 5 6 7 8 9; do "
                 f"btrfs qgroup limit {{}} {directory} >/dev/null 2>&1 && break; "
                 f"sync -f {directory}; done")
        change = f": >{self.mountpoint}/new && rm {self.mountpoint}/new || echo exit here"
        self.relief = (limit.format("none"), f"{change}; sync -f {directory}",
                       limit.format(self.LIMIT))
        self.check_quota("quota exceeded")

    def test_project_xfs(self):
        """A project quota limits a directory and also applies to root."""
        self.make("xfs", 300, "pquota")
        self.fs.limit(writelib.PROJECT, self.PROJECT, self.LIMIT)
        for path in (self.fs.path, self.path):
            self.fs.give_project(path, self.PROJECT)
        self.mountpoint = self.tempdir()
        self.check_quota("No space left")


@limetest.needs_fuse
class BadDisk(Faults):
    """All reads and writes fail permanently from some moment on."""

    def setUp(self):
        self.fs = writelib.SmallFs(self, "ext4", 32)
        self.path = put(self.fs.join("c.lime"), limetest.container([A, B, C]))
        os.sync()

    def test_every_writer_gets_the_error(self):
        broken = (errno.EIO, errno.EROFS)
        mount = self.rw(self.path)
        fds = {"new": os.open(mount.join("new"), os.O_RDWR | os.O_CREAT),
               "second": os.open(mount.join("second"), os.O_RDWR),
               "first": os.open(mount.join("first"), os.O_RDWR | os.O_TRUNC)}
        for fd in fds.values():
            os.pwrite(fd, b"x" * 5000, 0)
        self.fs.power_fails()
        for name, fd in fds.items():
            with self.subTest(name):
                self.expect(failure(call_all, fd, (os.pwrite, b"y" * 5000, 0), (os.fsync,)), broken)
        for call in (lambda: put(mount.join("newer"), b"x"),
                     lambda: os.truncate(mount.join("second"), 10),
                     lambda: os.setxattr(mount.join("second"), "user.lime.mb", b"1")):
            self.assertRaises(OSError, call)
        self.assertTrue(mount.pid)
        mount.stop()
        self.fs.comes_back()
        found = self.recover(self.path)
        self.assertEqual([found[0].data, found[2].data], [A[1], C[1]])
        self.assertEqual(set(found[1].data) - set(b"xyb"), set())

    def test_fsync_reports_earlier_errors(self):
        """The next fsync or close reports an earlier write's error; it may be reported again."""
        mount = self.rw(self.path)
        fd = os.open(mount.join("new"), os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, b"x" * 100000, 0)
        self.fs.power_fails()
        self.expect(failure(os.fsync, fd), (errno.EIO, errno.EROFS))
        self.expect(failure(call_all, fd, (os.fsync,)), (errno.EIO, errno.EROFS))
        mount.stop()
        self.fs.comes_back()
        self.recover(self.path)
        self.assertHolds(self.path, [A, B, C])


@limetest.needs_fuse
class OneCall(Faults):
    """A single call fails, and later calls, which succeed, don't hide the failure.
    (test_write_calls.py tests all calls.)"""

    def setUp(self):
        directory = self.tempdir()
        self.path = put(os.path.join(directory, "c.lime"), limetest.container([A, B, C]))
        self.faults = faults.Faults(directory)

    def mounted(self):
        return self.rw(self.path, env=self.faults.environment())

    def test_inner_record_without_shadow_file(self):
        with self.mounted() as mount:
            fd = os.open(mount.join("second"), os.O_WRONLY)
            self.faults.arm(faults.DAEMON, "openat", 1, errno.ENOSPC)  # of the shadow file
            for at in (len(B[1]), len(B[1]) + 100000):
                self.expect(failure(os.pwrite, fd, b"n" * 5000, at) or failure(os.fsync, fd), FULL)
            failure(os.close, fd)
            self.assertTrue(self.faults.struck)
            self.assertHolds(self.path, [A, B, C])
            attempt(mount.join("second"), os.O_WRONLY, b"n" * 10, at=len(B[1]))
        self.assertHolds(self.path, [A, ("second", B[1] + b"n" * 10), C])

    def test_disk_loses_written_data(self):
        """fsync reports lost data once; a later fsync that succeeds does not commit the data."""
        for name, flags in (("new", APPEND), ("third", EXTEND)):
            for nth in (1, 2, 3):
                with self.subTest(name, nth=nth), self.mounted() as mount:
                    fd = os.open(mount.join(name), flags, 0o644)
                    os.write(fd, b"n" * 100000)
                    self.faults.arm(faults.DAEMON, "fsync", nth, errno.EIO)
                    self.assertErrno(errno.EIO, os.close, fd)
                    put(mount.join("passing"), b"p")
                    os.unlink(mount.join("passing"))
                    self.assertHolds(self.path, [A, B, C])

    def test_error_of_another_process_is_reported_too(self):
        """fsync reports an error to its caller even after another process's call got it first."""
        with self.mounted() as mount:
            fd = os.open(mount.join("second"), os.O_WRONLY | os.O_DIRECT)
            os.write(fd, b"n" * 4096)
            self.faults.arm(faults.DAEMON, "fsync", 1, errno.EIO)
            self.assertErrno(errno.EIO, os.setxattr, mount.join("first"), "user.lime.type", b"1st")
            self.assertErrno(errno.EIO, os.fsync, fd)
            os.close(fd)


@limetest.needs_fuse
class ReadOnlyBelow(Faults):
    def setUp(self):
        self.fs = writelib.SmallFs(self, "tmpfs", 16)
        self.path = put(self.fs.join("c.lime"), limetest.container([A, B, C]))

    def bind(self, *options):
        where = os.path.join(self.tempdir(), "bind")
        os.mkdir(where)
        self.run_ok(["mount", "--bind", self.fs.path, where])
        self.addCleanup(writelib.unmount, where)
        if options:
            self.run_ok(["mount", "-o", f"remount,bind,{','.join(options)}", where])
        return where

    def test_a_tree(self):
        """A read-only tree can be mounted with rw; each change fails with EROFS."""
        where = self.bind("ro")
        put(self.fs.join("plain"), b"plain")
        with self.rw(where) as mount:
            self.assertBytes(read(mount.join("c.lime/second")), B[1])
            for call in (lambda: put(mount.join("c.lime/new"), b"x"),
                         lambda: put(mount.join("c.lime/third"), b"x"),
                         lambda: open(mount.join("c.lime/second"), "r+b"),
                         lambda: os.unlink(mount.join("c.lime/third")),
                         lambda: put(mount.join("plain"), b"x"),
                         lambda: put(mount.join("new"), b"x"),
                         lambda: os.mkdir(mount.join("new.lime"))):
                self.assertErrno(errno.EROFS, call)
        self.assertHolds(self.path, [A, B, C])
        self.assertEqual(sorted(os.listdir(self.fs.path)), ["c.lime", "plain"])

    def test_becomes_read_only(self):
        """The directory becomes read-only while the tree is mounted; none of its files is open."""
        where = self.bind()
        with self.rw(where) as mount:
            self.assertBytes(read(mount.join("c.lime/second")), B[1])
            self.run_ok(["mount", "-o", "remount,bind,ro", where])
            self.assertErrno(errno.EROFS, put, mount.join("c.lime/new"), b"x")
            self.assertErrno(errno.EROFS, put, mount.join("c.lime/first"), b"x")
            self.run_ok(["mount", "-o", "remount,bind,rw", where])
            put(mount.join("c.lime/new"), b"x")
        self.assertHolds(self.path, [A, B, C, ("new", b"x")])


@limetest.needs_fuse
class Outside(Faults):
    """Another program changes the container without locking it."""

    GONE = (errno.ESTALE, errno.EIO, errno.ENOENT)
    HOW = {"new": APPEND, "third": EXTEND, "second": os.O_RDWR, "first": REWRITE}

    def setUp(self):
        self.path = self.write("c.lime", limetest.container([A, B, C]))
        self.other = limetest.container([("other", b"o" * 5000), ("records", b"r" * 7000)])

    def replace(self):
        put(self.path + ".new", self.other)
        os.rename(self.path + ".new", self.path)

    @contextlib.contextmanager
    def write_and_harm(self, name, harm, tree=False, close_only=False):
        """Calls harm() while a record is written; its writer gets an error, from close if it calls
        nothing else. Yields the directory of the records."""
        put(self.path, limetest.container([A, B, C]))
        with self.rw(os.path.dirname(self.path) if tree else self.path) as mount:
            inside = mount.join("c.lime") if tree else mount.path
            fd = os.open(os.path.join(inside, name), self.HOW[name], 0o644)
            write_all(fd, b"x" * 10000)
            harm()
            calls = [] if close_only else [(write_all, b"y" * 10000), (os.fsync,)]
            self.expect(failure(call_all, fd, *calls), self.GONE)
            yield inside

    def test_replaced(self):
        for name in self.HOW:
            for tree in (False, True):
                with self.subTest(name, tree=tree):
                    with self.write_and_harm(name, self.replace, tree) as inside:
                        self.assertBytes(read(self.path), self.other, "the new container")
                        until(lambda i=inside: "001-other" in os.listdir(i), 5)
                        self.assertBytes(read(os.path.join(inside, "other")), b"o" * 5000)
                    self.assertBytes(read(self.path), self.other, "the new container")

    def test_replaced_before_close(self):
        """close reports the replacement if the writer calls nothing else."""
        for name in ("new", "third", "first"):
            with self.subTest(name):
                with self.write_and_harm(name, self.replace, close_only=True):
                    pass
                self.assertBytes(read(self.path), self.other, "the new container")

    def test_new_container_can_be_written_to(self):
        with self.rw(self.path) as mount:
            put(mount.join("new"), b"x")
            self.replace()
            until(lambda: sorted(os.listdir(mount)) == ["001-other", "002-records"], 5)
            put(mount.join("newer"), b"y")
            self.assertEqual(limetest.run(["lime", "rm", self.path, "1"]).returncode, 1)
        self.assertHolds(self.path, [("other", b"o" * 5000), ("records", b"r" * 7000),
                                     ("newer", b"y")])

    def test_deleted(self):
        for name in self.HOW:
            with self.subTest(name):
                with self.write_and_harm(name, lambda: os.unlink(self.path)) as inside:
                    self.assertErrno((*self.GONE, errno.EBUSY), put,
                                     os.path.join(inside, "newer"), b"z")
                self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    def test_cut(self):
        """Another program cuts the container during a write: the records before that stay whole."""
        for name in ("new", "third", "first"):
            with self.subTest(name):
                with self.write_and_harm(name, lambda: os.truncate(self.path, 144 + 1000)):
                    pass
                found = self.recover(self.path)
                self.check_first_records(found, [A])
                self.assertEqual(len(found), 1)

    def test_appended_to(self):
        """A record that another program appends without a lock stays whole and is shown."""
        foreign = ("foreign", b"f" * 1000)

        def grow_what_is_open(mount, fd):
            """Grows an open record that is no longer the last one."""
            os.pwrite(fd, b"y" * 10, len(C[1]))
            os.fsync(fd)
            self.assertBytes(read(mount.join("third")), C[1] + b"y" * 10)

        for how, change in {
                "create": lambda mount, _: put(mount.join("newer"), b"y" * 10),
                "grow": lambda mount, _: attempt(mount.join("third"), EXTEND, b"y" * 10),
                "grow what is open": grow_what_is_open,
                "empty": lambda mount, _: attempt(mount.join("third"), REWRITE, b""),
                "remove": lambda mount, _: self.assertErrno(errno.EPERM, os.unlink,
                                                            mount.join("third")),
                "rewrite": lambda mount, _: put(mount.join("first"), b"y" * 10),
                "cut": lambda mount, _: os.truncate(mount.join("third"), 10)}.items():
            put(self.path, limetest.container([A, B, C]))
            with self.subTest(how), self.rw(self.path) as mount:
                fd = os.open(mount.join("third"), os.O_WRONLY)
                put(self.path, limetest.record(*foreign, 1, 1), "ab")
                change(mount, fd)
                with contextlib.suppress(OSError):
                    os.close(fd)
                until(lambda: "004-foreign" in os.listdir(mount))
                self.assertBytes(read(mount.join("foreign")), foreign[1])
            found = self.assertClean(self.path)
            self.check_first_records(found[3:], [foreign])
            self.check_first_records(found[1:], [B])

    def test_garbage_is_added(self):
        """Garbage may be an incomplete record: the mount neither cuts it nor appends to it."""
        with self.rw(self.path) as mount:
            put(self.path, b"garbage" * 100, "ab")
            before = read(self.path)
            for call in (lambda: put(mount.join("newer"), b"y"),
                         lambda: os.truncate(mount.join("third"), 10),
                         lambda: os.unlink(mount.join("third"))):
                self.assertRaises(OSError, call)
            self.assertBytes(read(self.path), before)
            self.assertBytes(read(mount.join("third")), C[1])
            os.truncate(self.path, len(before) - 700)
            put(mount.join("newer"), b"y")
        self.assertHolds(self.path, [A, B, C, ("newer", b"y")])

    def test_moved_away_and_back(self):
        with self.rw(self.path) as mount:
            for access in (lambda: read(mount.join("third")), lambda: os.listdir(mount)):
                os.rename(self.path, self.path + ".away")
                with contextlib.suppress(OSError):
                    access()
                os.rename(self.path + ".away", self.path)
                until(lambda: os.listdir(mount))
                put(mount.join("third"), b"x" * 10)
            self.replace()  # another container has the name for a while
            os.link(self.path, self.path + ".other")
            until(lambda: "001-other" in os.listdir(mount))
            put(self.path + ".new", limetest.container([A, B]))
            os.rename(self.path + ".new", self.path)
            until(lambda: "001-first" in os.listdir(mount))
            put(mount.join("third"), b"y")
            os.rename(self.path + ".other", self.path)
            until(lambda: "001-other" in os.listdir(mount))
            put(mount.join("more"), b"z")
        self.assertHolds(self.path, [("other", b"o" * 5000), ("records", b"r" * 7000),
                                     ("more", b"z")])

    def test_changed_while_unlocked(self):
        """A tree releases an idle container's lock; it notices what others changed until it writes
        again."""
        directory = os.path.dirname(self.path)
        with self.rw(directory) as mount:
            put(mount.join("c.lime/new"), b"x")
            until(lambda: limetest.run(["lime", "repair", self.path]).returncode == 0, 60)
            put(self.path, limetest.record("foreign", b"f" * 1000, 1, 1), "ab")
            put(mount.join("c.lime/newer"), b"y")
        self.assertHolds(self.path, [[A, B, C, ("new", b"x")],
                                     [("foreign", b"f" * 1000), ("newer", b"y")]])


if __name__ == "__main__":
    limetest.main()
