"""Directories, plain files and links of a tree, compared with the file system below: errno and
result of each operation on each kind of object, and of random sequences of operations."""

import errno
import hashlib
import itertools
import os
import random
import socket
import stat
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import users
import writelib
from pairs import pairwise
from limetest import descriptor, put, read

STEPS = 100_000 if limetest.STRESS else 4_000
STEPS //= 10 if limetest.SANITIZED else 1
SEED = int(os.environ.get("SEED", "0")) or (random.SystemRandom().randrange(10 ** 6)
                                             if limetest.STRESS else 14)
THEN = (1_000_000_000_123456789, 1_100_000_000_987654321)  # ns
AGED = 900_000_000_000000000
LONG = "n" * 255


# ---- the scene: every kind of object ----

def create_file(path, data=b"some data\n", mode=0o644):
    put(path, data)
    os.chmod(path, mode)


def scene(top):
    """Creates the objects that OBJECTS names."""
    at = lambda name: os.path.join(top, name)  # noqa: E731
    create_file(at("file"))
    create_file(at("other"), b"other data", 0o600)
    create_file(at("set-id"), b"#!/bin/sh\n", 0o6755)
    os.chmod(at("set-id"), 0o6755)
    create_file(at("empty"), b"")
    create_file(at("linked"), b"of two names")
    os.link(at("linked"), at("linked-2"))
    os.mkdir(at("directory"))
    os.mkdir(at("full"))
    create_file(at("full/inner"))
    os.mkdir(at("full/deep"))
    os.symlink("file", at("to-file"))
    os.symlink("full", at("to-directory"))
    os.symlink("missing", at("to-nothing"))
    os.symlink("loop", at("loop"))
    os.mkfifo(at("fifo"), 0o640)


OBJECTS = ["file", "set-id", "empty", "linked", "linked-2", "directory", "full", "full/inner",
           "full/deep", "to-file", "to-directory", "to-nothing", "loop", "fifo", "missing",
           "missing/x", "file/x", "to-directory/inner", "directory/", "file/", "directory/.",
           "full/..", LONG, LONG + "n"]

PAIRS = ["file", "other", "linked", "linked-2", "directory", "full", "full/inner", "full/deep/x",
         "full/deep", "to-file", "to-directory", "loop", "fifo", "missing", "missing/x", "file/x",
         "directory/", "directory/x"]


# ---- operations on one path or two; tests compare the returned values ----

def opened(flags, act=None):
    def operation(path):
        with descriptor(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o6751) as fd:
            return act(fd) if act else None
    return operation


def regular(path):
    """Returns the path, or raises ESPIPE for a fifo, where the operation would block."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise OSError(errno.ESPIPE, "a fifo")
    return path


def write_and_read(path):
    """A second descriptor sees what the first one wrote, before and after fsync()."""
    with open(regular(path), "r+b", buffering=0) as one, open(path, "rb", buffering=0) as another:
        one.write(b"NEW")
        seen = another.read(100)
        os.fsync(one.fileno())
        return seen, os.fstat(another.fileno()).st_size


def use_after_unlink(path):
    with descriptor(regular(path), os.O_RDWR) as fd:
        os.unlink(path)
        os.pwrite(fd, b"after", 2)
        found = os.fstat(fd)
        return os.pread(fd, 100, 0), found.st_nlink, found.st_size


def seek_written_data(path):
    """A written byte is not in a hole, flushed or not."""
    with open(regular(path), "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"far", 100_000)
        return (os.lseek(file.fileno(), 100_000, os.SEEK_DATA) == 100_000,
                os.lseek(file.fileno(), 0, os.SEEK_END))


def listen(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


def resize(path, by):
    """Changes the length. (Truncating to the same length sets the mtime below, but not in a kernel
    with a write-back cache.)"""
    size = os.stat(path).st_size
    os.truncate(path, size + by if size + by >= 0 else 1)


def copy_range(path):
    with open(regular(path), "rb") as source, open(path + ".copy", "w+b") as target:
        return os.copy_file_range(source.fileno(), target.fileno(), 100, 0, 7)


READ, WRITE, BOTH, CREATE = os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_CREAT

ONE = {
    "lstat": lambda p: stat.S_IFMT(os.lstat(p).st_mode),
    "stat": lambda p: os.stat(p).st_mode,
    "readlink": os.readlink,
    "listdir": lambda p: sorted(os.listdir(p)),
    "access w": lambda p: os.access(p, os.W_OK),
    "access x": lambda p: os.access(p, os.X_OK),
    "read": opened(READ, lambda fd: os.read(fd, 100)),
    "read at the end": opened(READ, lambda fd: os.pread(fd, 10, 1000)),
    "open directory": opened(READ | os.O_DIRECTORY),
    "open nofollow": opened(READ | os.O_NOFOLLOW),
    "open path": opened(os.O_PATH),
    "write": opened(WRITE, lambda fd: os.write(fd, b"new")),
    "write far": opened(WRITE, lambda fd: os.pwrite(fd, b"far", 5000)),
    "write to a read descriptor": opened(READ, lambda fd: os.write(fd, b"x")),
    "append": opened(WRITE | os.O_APPEND, lambda fd: os.write(fd, b"more")),
    "truncated open": opened(WRITE | os.O_TRUNC),
    "truncated read": opened(READ | os.O_TRUNC, lambda fd: os.read(fd, 10)),
    "create": opened(CREATE | BOTH, lambda fd: os.write(fd, b"c")),
    "create exclusively": opened(CREATE | os.O_EXCL | WRITE, lambda fd: os.write(fd, b"c")),
    "create empty": opened(CREATE | os.O_TRUNC | WRITE),
    "truncate": lambda p: resize(p, -1),
    "grow": lambda p: resize(p, 10_000),
    "truncate a read descriptor": opened(READ, lambda fd: os.ftruncate(fd, 1)),
    "allocate": opened(BOTH, lambda fd: os.posix_fallocate(fd, 100, 50)),
    "allocate beyond": opened(BOTH, lambda fd: users.fallocate(fd, 1, 100, 50)),
    "punch": opened(BOTH, lambda fd: users.fallocate(fd, 3, 2, 3)),
    "chmod": lambda p: os.chmod(p, 0o750),
    "chmod set-id": lambda p: os.chmod(p, 0o7711),
    "fchmod": opened(READ, lambda fd: os.fchmod(fd, 0o604)),
    "utime": lambda p: os.utime(p, ns=THEN),
    "utime of a link": lambda p: os.utime(p, ns=THEN, follow_symlinks=False),
    "mkdir": lambda p: os.mkdir(p, 0o7775),
    "rmdir": os.rmdir,
    "unlink": os.unlink,
    "symlink": lambda p: os.symlink("where/ever", p),
    "mkfifo": lambda p: os.mkfifo(p, 0o666),
    "mknod": lambda p: os.mknod(p, 0o666),
    "socket": listen,
    "setxattr": lambda p: os.setxattr(p, "user.note", b"text"),
    "setxattr create": lambda p: os.setxattr(p, "user.note", b"1", os.XATTR_CREATE),
    "setxattr replace": lambda p: os.setxattr(p, "user.note", b"1", os.XATTR_REPLACE),
    "getxattr": lambda p: os.getxattr(p, "user.note"),
    "removexattr": lambda p: os.removexattr(p, "user.note"),
    "fsync": opened(READ, os.fsync),
    "write and read": write_and_read,
    "use after unlink": use_after_unlink,
    "seek in written data": seek_written_data,
    "copy_file_range": copy_range,
}

if os.geteuid() == 0:
    ONE["chown"] = lambda p: os.chown(p, 4711, 4712)
    ONE["lchown"] = lambda p: os.chown(p, 4711, -1, follow_symlinks=False)


def rename_while_open(a, b):
    with open(regular(a), "r+b", buffering=0) as file:
        os.rename(a, b)
        file.write(b"R")
        return os.pread(file.fileno(), 20, 0), os.fstat(file.fileno()).st_nlink


def both_names(a, b):
    """Writes by one name and reads by the other, then the reverse."""
    with open(regular(a), "r+b", buffering=0) as one, open(regular(b), "r+b", buffering=0) as two:
        os.pwrite(one.fileno(), b"one", 0)
        first = os.pread(two.fileno(), 20, 0)
        os.pwrite(two.fileno(), b"two", 4)
        os.fsync(two.fileno())
        return first, os.pread(one.fileno(), 20, 0)


TWO = {
    "rename": os.rename,
    "rename, not over": lambda a, b: users.rename2(a, b, users.RENAME_NOREPLACE),
    "exchange": users.exchange,
    "link": lambda a, b: os.link(a, b, follow_symlinks=False),
    "rename while open": rename_while_open,
    "both names": both_names,
}


# ---- state of the files ----

def get_state(path, top):
    """Returns all that must be equal on both sides; link counts of directories need not be."""
    found = os.lstat(path)
    is_directory = stat.S_ISDIR(found.st_mode)
    state = [found.st_mode, found.st_uid, found.st_gid]
    if not is_directory:
        state += [found.st_nlink, found.st_size]
    if stat.S_ISREG(found.st_mode):
        state.append(hashlib.md5(read(path)).hexdigest())
        names = os.listxattr(path)
        state += [(name, os.getxattr(path, name)) for name in sorted(names)]
    if stat.S_ISLNK(found.st_mode):
        state.append(os.readlink(path).replace(top, ""))
    if found.st_mtime_ns == THEN[1] and not stat.S_ISFIFO(found.st_mode):
        state.append("then")  # data in a fifo do not change the one below
    return state


def tree(top):
    found = {".": get_state(top, top)}
    for directory, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, top)] = get_state(path, top)
    return found


def all_paths(top):
    return [top] + [os.path.join(directory, name) for directory, directories, files in os.walk(top)
                    for name in directories + files]


def age(top):
    for path in all_paths(top):
        os.utime(path, ns=(AGED, AGED), follow_symlinks=False)


def get_ctimes(top):
    """Returns (inode number, ctime) of each object, once the clock has advanced beyond them."""
    found = {(st.st_ino, st.st_ctime_ns) for st in map(os.lstat, all_paths(top))}
    with tempfile.TemporaryFile(dir=os.path.dirname(top)) as file:
        while os.fstat(file.fileno()).st_ctime_ns <= max(ctime for _, ctime in found):
            os.fchmod(file.fileno(), 0o600)
    return found


def get_times(top, before, start):
    """Returns for each object which mtime it has, and whether its ctime has changed."""
    found = {}
    for path in all_paths(top):
        st = os.lstat(path)
        if stat.S_ISFIFO(st.st_mode):  # see get_state()
            continue
        named = {AGED: "aged", THEN[1]: "then"}
        end = time.time_ns()
        now = "now" if start <= st.st_mtime_ns <= end else st.st_mtime_ns - start
        changed = (st.st_ino, st.st_ctime_ns) not in before
        if changed and not start <= st.st_ctime_ns <= end:
            changed = st.st_ctime_ns - start
        found[os.path.relpath(path, top)] = named.get(st.st_mtime_ns, now), changed
    return found


def outcome(operation, *paths):
    try:
        return operation(*paths)
    except OSError as error:
        return errno.errorcode.get(error.errno, error.errno)


def clock(path):
    """Returns the file system's time, which is up to one kernel tick late."""
    with open(path, "ab"):
        os.utime(path)
    return os.stat(path).st_mtime_ns


def clear(top):
    for name in os.listdir(top):
        path = os.path.join(top, name)
        if os.path.isdir(path) and not os.path.islink(path):
            clear(path)
            os.rmdir(path)
        else:
            os.unlink(path)


@limetest.needs_fuse
class Posix(writelib.TestCase):
    def setUp(self):
        super().setUp()
        directory = self.tempdir()
        self.native = os.path.join(directory, "native")
        self.below = os.path.join(directory, "below")
        for path in (self.native, self.below):
            os.mkdir(path)
            scene(path)
        self.mount = str(self.rw(self.below).path)
        self.sides = (self.native, self.mount)

    def run_both(self, what, operation, *names):
        got = [outcome(operation, *[os.path.join(side, name) for name in names])
               for side in self.sides]
        self.assertEqual(got[1], got[0], what)
        return got[0]

    def assertSameTrees(self, what):
        native, mounted = tree(self.native), tree(self.mount)
        self.assertEqual(mounted, native, what)

    def reset(self):
        for side in self.sides:
            clear(side)
            scene(side)

    def rows(self, operations, arguments):
        arguments = list(arguments)
        for name, operation in operations.items():
            for names in arguments:
                what = (name, *names)
                with self.subTest(what=what):
                    result = self.run_both(what, operation, *names)
                    if not (isinstance(result, str) and result.startswith("E")):
                        self.assertSameTrees(what)
                        self.reset_if_changed()

    def test_times(self):
        """An operation changes the same times, of objects and of their directories."""
        objects = OBJECTS if limetest.STRESS else OBJECTS[:15]  # one path to each
        rows = [(name, operation, (path,)) for name, operation in ONE.items() for path in objects]
        rows += [(name, operation, pair) for name, operation in TWO.items()
                 for pair in [("file", "other"), ("full", "directory/x"), ("linked", "linked-2"),
                              ("to-file", "x"), ("full/inner", "inner"), ("file", "full/inner")]]
        for name, operation, names in rows:
            for side in self.sides:
                age(side)
            # The mount shows the kernel's own ctime until the kernel forgets the file, which can
            # happen at any time, then the ctime below.
            before = set().union(*map(get_ctimes, (*self.sides, self.below)))
            start = clock(self.below + ".clock")
            result = self.run_both((name, *names), operation, *names)
            with self.subTest(operation=name, names=names):
                native, mounted, below = (get_times(side, before, start)
                                          for side in (*self.sides, self.below))
                self.assertEqual(mounted, native)
                self.assertEqual(below, native)
            if not (isinstance(result, str) and result.startswith("E")):
                self.reset()

    def reset_if_changed(self):
        if tree(self.native) != self.scene:
            self.reset()

    def test_one_path(self):
        self.scene = tree(self.native)
        old = os.umask(0o027)
        self.addCleanup(os.umask, old)
        self.rows(ONE, [(name,) for name in OBJECTS])

    def test_two_paths(self):
        self.scene = tree(self.native)
        whole = {name: TWO[name] for name in ("rename", "exchange")}
        self.rows(whole, itertools.product(PAIRS, PAIRS))
        for name, a, b in pairwise([name for name in TWO if name not in whole], PAIRS, PAIRS):
            self.rows({name: TWO[name]}, [(a, b)])

    def test_random(self):
        dice = random.Random(SEED)
        operations = list(ONE.items()) + list(TWO.items()) * 3
        done = []
        for step in range(STEPS):
            name, operation = dice.choice(operations)
            names = ([dice.choice(PAIRS), dice.choice(PAIRS)] if operation in TWO.values()
                     else [dice.choice(OBJECTS)])
            done = done[-20:] + [(name, *names)]
            what = f"SEED={SEED}, step {step}: {done}"
            self.run_both(what, operation, *names)
            if step % 10 == 9:
                self.assertSameTrees(what)
            if step % 200 == 199:
                self.reset()
        self.assertSameTrees(f"SEED={SEED}")
        self.assertEqual(tree(self.below), tree(self.native))


@limetest.needs_fuse
class Records(writelib.TestCase):
    """Unsupported operations on records and containers: the table of docs/writing.md."""

    TYPE, CREATE = "user.lime.type", os.O_WRONLY | os.O_CREAT
    OPERATIONS = {
        "mkdir c/x": lambda: os.mkdir("c/x"),
        "mkfifo c/x": lambda: os.mkfifo("c/x"),
        "symlink c/x": lambda: os.symlink("where", "c/x"),
        "link c/third c/x": lambda: os.link("c/third", "c/x"),
        "link c/third x": lambda: os.link("c/third", "x"),
        "link file c/x": lambda: os.link("file", "c/x"),
        "link c x": lambda: os.link("c", "x"),
        "rename c other": lambda: os.rename("c", "other"),
        "rename c/third c/x": lambda: os.rename("c/third", "c/x"),
        "rename c/third x": lambda: os.rename("c/third", "x"),
        "rename file c/x": lambda: os.rename("file", "c/x"),
        "exchange c/first c/second": lambda: users.exchange("c/first", "c/second"),
        "unlink c/second": lambda: os.unlink("c/second"),
        "unlink c": lambda: os.unlink("c"),
        "rmdir c": lambda: os.rmdir("c"),
        "rmdir c/third": lambda: os.rmdir("c/third"),
        "listdir c/third": lambda: os.listdir("c/third"),
        "open c for writing": lambda: opened(os.O_WRONLY)("c"),
        "truncate c": lambda: os.truncate("c", 0),
        "open c/second to append": lambda: opened(os.O_WRONLY | os.O_APPEND)("c/second"),
        "create c/009-x": lambda: opened(Records.CREATE)("c/009-x"),
        "create c/twice": lambda: opened(Records.CREATE)("c/twice"),
        "create c/TYPE of 128 bytes": lambda: opened(Records.CREATE)("c/" + "t" * 128),
        "create unnamed in c": lambda: opened(os.O_WRONLY | os.O_TMPFILE)("c"),
        "chmod c/second": lambda: os.chmod("c/second", 0o600),
        "chown c/second": lambda: os.chown("c/second", -1, os.getgid() + 1),
        "collapse c/third": lambda: opened(
            os.O_RDWR, lambda fd: users.fallocate(fd, 8, 0, 4096))("c/third"),
        "setxattr c/second user.note": lambda: os.setxattr("c/second", "user.note", b"x"),
        "setxattr c user.note": lambda: os.setxattr("c", "user.note", b"x"),
        "getxattr c/second user.note": lambda: os.getxattr("c/second", "user.note"),
        "getxattr c user.note": lambda: os.getxattr("c", "user.note"),
        "setxattr c/second security.note": lambda: os.setxattr("c/second", "security.note", b"x"),
        "setxattr c/second acl": lambda: os.setxattr("c/second", "system.posix_acl_access",
                                                     users.acl(0o644, 1, 6)),
        "setxattr c/second user.lime.offset": lambda: os.setxattr("c/second", "user.lime.offset",
                                                                  b"0"),
        "setxattr c/second user.lime.type again": lambda: os.setxattr(
            "c/second", Records.TYPE, b"x", os.XATTR_CREATE),
        "setxattr c/second user.lime.type of 128 bytes": lambda: os.setxattr(
            "c/second", Records.TYPE, b"t" * 128),
        "setxattr c/second user.lime.mb 2": lambda: os.setxattr("c/second", "user.lime.mb", b"2"),
        "setxattr c/first user.lime.mb 0": lambda: os.setxattr("c/first", "user.lime.mb", b"0"),
        "setxattr c/third user.lime.me 0": lambda: os.setxattr("c/third", "user.lime.me", b"0"),
        "removexattr c/second user.lime.type": lambda: os.removexattr("c/second", Records.TYPE),
    }

    @staticmethod
    def table():
        with open(os.path.join(limetest.REPO, "docs", "writing.md"), encoding="utf-8") as document:
            section = document.read().split("One by one, in a tree")[1].split("\n\n")[1]
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in section.splitlines()[2:]]
        return {what.strip("`"): code for what, code, _ in rows}

    def check_refused(self, work, rows):
        """Runs each of the rows in the directory."""
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(work)
        for what, (operation, code) in rows.items():
            with self.subTest(what=what):
                self.assertErrno(code, operation)
        os.chdir("/")

    @writelib.as_root
    def test_unsupported(self):
        """In a tree, and in a mount of the container alone if the row names no other file."""
        top, work, documented = self.tempdir(), self.tempdir(), self.table()
        items = [("first", b"1"), ("second", b"2" * 100), ("twice", b"a"), ("twice", b"b"),
                 ("third", b"3" * 10)]
        create_file(os.path.join(top, "file"))
        create_file(os.path.join(top, "c"), limetest.container(items))
        create_file(os.path.join(top, "other"), limetest.container(items[:1]))
        os.setxattr(os.path.join(top, "c"), "user.note", b"below")
        before = tree(top)
        self.assertEqual(set(documented), set(self.OPERATIONS))
        rows = {what: (operation, getattr(errno, documented[what]))
                for what, operation in self.OPERATIONS.items()}
        rows.update({
            "rename c/first c/third": (lambda: os.rename("c/first", "c/third"), errno.EPERM),
            "rename c/third to other x": (lambda: os.rename("c/third", "other/x"), errno.EPERM),
            "rename c/third over other": (lambda: os.rename("c/third", "other/first"), errno.EPERM),
            "rename file c/third": (lambda: os.rename("file", "c/third"), errno.EXDEV),
            "link c/third to other x": (lambda: os.link("c/third", "other/x"), errno.EPERM),
            "insert into c/third": (lambda: opened(
                os.O_RDWR, lambda fd: users.fallocate(
                    fd, writelib.FALLOC_INSERT, 0, 4096))("c/third"), errno.EOPNOTSUPP),
            "unlink c/none": (lambda: os.unlink("c/none"), errno.ENOENT),
            "unlink c/009-none": (lambda: os.unlink("c/009-none"), errno.ENOENT)})
        with self.rw(top) as mount:
            self.check_refused(mount.path, rows)
        self.assertEqual(tree(top), before)
        os.mkdir(os.path.join(work, "c"))
        with self.rw(os.path.join(top, "c"), mountpoint=os.path.join(work, "c")):
            self.check_refused(work, {what: row for what, row in rows.items()
                                      if not {"c", "x", "file", "other"} & set(what.split())})
        self.assertEqual(tree(top), before)


@limetest.needs_fuse
class Programs(writelib.TestCase):
    def test_copies_of_an_open_file(self):
        """Programs that look for holes copy all data that were written before."""
        top, out = self.tempdir(), self.tempdir()
        data = random.Random(5).randbytes(300_000)
        put(os.path.join(top, "c.lime"), limetest.container([("a", b"1")]))
        with self.rw(top) as mount:
            for name in ("plain", "c.lime/data"):
                with open(mount.join(name), "wb", buffering=0) as file:
                    file.write(data)
                    for i, command in enumerate((["cp"], ["cp", "--sparse=always"],
                                                 ["rsync", "-S"])):
                        target = os.path.join(out, f"{i}-{os.path.basename(name)}")
                        self.run_ok([*command, mount.join(name), target])
                        self.assertEqual(read(target), data, (name, command))
                    archive = limetest.run(["tar", "-C", mount.path, "-S", "-cf", "-", name],
                                           check=True).stdout
                    extracted = limetest.run(["tar", "-xO"], input=archive, check=True).stdout
                    self.assertEqual(extracted, data, name)

    def test_two_names_used_by_many(self):
        """Each thread writes its own part of the file, and reads it by the other name."""
        top, threads, rounds = self.tempdir(), 20, 2000 if limetest.STRESS else 60

        def use(i):
            for n in range(rounds):
                one, two = (mount.join("ab"[(n + turn) % 2]) for turn in (0, 1))
                part = bytes([(i * 7 + n) % 256]) * 5000
                with descriptor(one, os.O_RDWR) as fd:
                    os.pwrite(fd, part, i * 5000)
                    if n % 5 == 0:
                        os.fsync(fd)
                with descriptor(two) as fd:
                    self.assertEqual(os.pread(fd, 5000, i * 5000), part, (i, n))

        with self.rw(top) as mount:
            put(mount.join("a"), bytes(5000 * threads))
            os.link(mount.join("a"), mount.join("b"))
            limetest.at_once(*((use, i) for i in range(threads)))
            self.assertEqual(os.stat(mount.join("b")).st_nlink, 2)
        parts = (bytes([(i * 7 + rounds - 1) % 256]) * 5000 for i in range(threads))
        self.assertEqual(read(os.path.join(top, "a")), b"".join(parts))

    SCRIPTS = {
        "cp -r": 'cp -r "$SCENE" there && cp -r there again',
        "cp -a": 'cp -a "$SCENE" there && cp -al there linked',
        "tar": 'tar -C "$SCENE" -cf scene.tar . && mkdir there && tar -C there -xpf scene.tar',
        "rsync": 'rsync -aH "$SCENE/" there && touch -d @5 there/file && rsync -a "$SCENE/" there',
        "mv": 'cp -a "$SCENE" there && mkdir d && mv there d && mv d/there/file d/there/full',
        "git": 'git init -q repo && cd repo && cp -r "$SCENE/full" . && git add . && '
               'git -c user.name=n -c user.email=e commit -qm one && git clone -q . ../clone && '
               'git gc -q && git -C ../clone gc -q && git -C ../clone fsck && '
               'rm -rf .git ../clone/.git',
        "make": "printf 'int main(void) { return 0; }\\n' >a.c && "
                "printf 'a: a.o\\n\\tcc -o a a.o\\na.o: a.c\\n\\tcc -c a.c\\n' >Makefile && "
                "make -s && ./a && make -q && touch -d '1 hour' a.c && "
                "if make -q; then false; fi && "
                "touch -d '1 hour ago' a.c && rm a && make -s && rm a a.o",
        "dd": 'dd if="$SCENE/file" of=f bs=64k conv=fsync status=none && cat "$SCENE/file" >>f',
        "sed -i": 'cp "$SCENE/file" f && sed -i s/data/words/ f && sed -i.old s/some/few/ f',
        "patch": "printf 'a\\nb\\n' >f && printf '%s\\n' '--- f' '+++ f' '@@ -1,2 +1,2 @@' ' a' "
                 "'-b' '+c' >p && patch -s f p",
        "vim": 'cp -r "$SCENE" there && cd there && for f in file full/inner; do '
               "vim.tiny -u NONE -es -c 'set backup swapfile' -c '%s/a/vim/' -c wq $f; "
               "vim.tiny -u NONE -es -c 'set backupcopy=yes' -c 'normal Gonew' -c wq $f; done",
        "python": "python3 -m venv --without-pip v && v/bin/python -c 'import sys' && "
                  "rm -rf v/bin v/pyvenv.cfg",
        "sqlite": "python3 -c \"import sqlite3; c = sqlite3.connect('db'); "
                  "c.execute('create table t (a)'); "
                  "[c.execute('insert into t values (?)', (i,)) for i in range(1000)]; "
                  "c.commit(); c.execute('delete from t where a > 500'); c.rollback(); "
                  "assert c.execute('select count(*) from t').fetchone() == (1000,); "
                  "c.close()\" && rm db",
        "find": 'cp -r "$SCENE" there && find there -name "in*" -delete && '
                'find there -type d -empty -delete',
        "mkfifo": "mkfifo f && (cat f >copy & echo text >f; wait)",
        "install": 'install -d a/b/c && install -m 750 "$SCENE/file" a/b/c/file',
        "links": 'echo 1 >a && ln a b && echo 2 >>b && ln -s a c && cp -a a b c "$PWD/../"; rm c',
    }

    def test_programs_as_below(self):
        """Each program succeeds, and leaves the same tree as on the file system below."""
        directory = self.tempdir()
        source = os.path.join(directory, "source")
        os.mkdir(source)
        scene(source)
        os.unlink(os.path.join(source, "loop"))
        sides = os.path.join(directory, "native"), os.path.join(directory, "below")
        for side in sides:
            os.mkdir(side)
        with self.rw(sides[1]) as mount:
            for name, script in self.SCRIPTS.items():
                with self.subTest(program=name):
                    found = []
                    for side in (sides[0], str(mount.path)):
                        work = os.path.join(side, "d", "work")
                        limetest.run(["rm", "-rf", os.path.dirname(work)], check=True)
                        os.makedirs(work)
                        done = limetest.run(["sh", "-ec", script], cwd=work, timeout=300,
                                            env={**os.environ, "SCENE": source})
                        self.assertEqual(done.returncode, 0, (side, done.stderr.decode()[-2000:]))
                        found.append(tree(os.path.join(side, "d")))
                        limetest.run(["rm", "-rf", os.path.join(side, "d")], check=True)
                    self.assertEqual(found[1], found[0])
            self.assertEqual((os.listdir(sides[0]), os.listdir(mount)), ([], []))

    def test_lime_new(self):
        top = self.tempdir()
        with self.rw(top) as mount:
            self.run_ok(["lime", "new", mount.join("conf.0100")])
            self.assertTrue(os.path.isdir(mount.join("conf.0100")))
            put(mount.join("conf.0100/log"), b"text")
            for name in ("conf.0100", "conf.0100/x"):
                self.fails(["lime", "new", mount.join(name)], out=b"")
            self.assertEqual(os.listdir(mount), ["conf.0100"])
        self.run_ok(["lime", "check", os.path.join(top, "conf.0100")])


if __name__ == "__main__":
    limetest.main()
