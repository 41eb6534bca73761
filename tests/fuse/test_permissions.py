"""Permissions in root's mount: a table of callers, objects, modes and operations.

A process runs each row on two equal objects: natively, and through a mount. The errno must be the
same, and owner, group and mode of all objects afterwards. Containers and records have their own
tables, because they do not support each operation, or by another call (docs/writing.md).
"""

import contextlib
import errno
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import users
import writelib
from limetest import descriptor, put

OWNER, MEMBER, EXTRA, OTHER, NAMED = 54321, 54322, 54323, 54324, 54325
GROUP, SPARE = 54400, 54401  # of the objects; another group of their owner

CALLERS = {
    "owner": {"uid": OWNER, "groups": [SPARE]},
    "member": {"uid": MEMBER, "gid": GROUP},
    "supplementary member": {"uid": EXTRA, "groups": [GROUP]},
    "other": {"uid": OTHER},
    "named in the list": {"uid": NAMED},
    "root": {"uid": 0},
}

# (mode, permissions of NAMED in an access control list, those in a directory's default list)
MODES = [(mode, None, None) for mode in (0o000, 0o400, 0o200, 0o600, 0o604, 0o640, 0o660, 0o666,
                                         0o707, 0o770, 0o777)]
LISTS = [(mode, perm, None) for mode in (0o600, 0o640, 0o660, 0o604, 0o770) for perm in (7, 4, 0)]
SET_IDS = [(mode, None, None) for mode in (0o4777, 0o6777, 0o2775)]
FLAGS = [(mode, None, None) for mode in (0o1777, 0o1770, 0o1707, 0o2770, 0o2777, 0o2755)]
DEFAULTS = [(mode, 7, perm) for mode in (0o777, 0o770, 0o2770) for perm in (7, 5)]

MAX_LINES = 100  # of a failure's message

CONTAINER = limetest.container([("first", b"1" * 100), ("last", b"2" * 100)])


# ---- operations on a path, in the caller's process ----


def open_file(path, flags):
    os.close(os.open(path, flags, 0o666))


def write_byte(path):
    """Writes a byte, which clears set-id bits."""
    with descriptor(path, os.O_WRONLY) as fd:
        os.write(fd, b"x")


def rewrite_inner(path):
    """Replaces an inner record by one of another length, which makes the container a new file."""
    put(os.path.join(os.path.dirname(path), "first"), b"data")


def create(path, mode=0o666, umask=0o022):
    old = os.umask(umask)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    finally:
        os.umask(old)


def access(path, how):
    if not os.access(path, how):
        raise PermissionError(errno.EACCES, "access")


def stat_path(path):
    os.stat(path)


def list_names(path):
    os.listdir(path)


def refuse(path):
    raise PermissionError(errno.EACCES, "never")


def call_each(path, *calls):
    for function, *args in calls:
        function(path, *args)


def within(path, name, function, *args):
    function(os.path.join(path, name), *args)


def free_path(path, other=""):
    """Returns a path of this row alone, in a directory that all users may write."""
    return os.path.join(os.path.dirname(path), "../free", os.path.basename(path) + other)


def link_away(path, name=""):
    os.link(os.path.join(path, name) if name else path, free_path(path))


def link_nearby(path):
    os.link(path, os.path.join(os.path.dirname(path), "new"))


def link_into(path, name):
    os.link(free_path(path, ".own"), os.path.join(path, name))


def rename(path, name, to):
    os.rename(os.path.join(path, name), os.path.join(path, to))


def rename_away(path, name):
    os.rename(os.path.join(path, name), free_path(path))


def rename_into(path, name):
    os.rename(free_path(path, ".own"), os.path.join(path, name))


def symlink(path):
    os.symlink("nowhere", os.path.join(path, "new"))


R, W, RW = os.O_RDONLY, os.O_WRONLY, os.O_RDWR

# Operations on each kind of object.
ATTRIBUTES = {
    "access r": (access, os.R_OK), "access w": (access, os.W_OK), "access x": (access, os.X_OK),
    "stat": (stat_path,), "chmod 0777": (os.chmod, 0o777), "chmod 0600": (os.chmod, 0o600),
    "chmod 4755": (os.chmod, 0o4755), "chmod 2775": (os.chmod, 0o2775),
    "chown to other": (os.chown, OTHER, -1), "chown to owner": (os.chown, OWNER, -1),
    "chgrp to owner's other group": (os.chown, -1, SPARE),
    "chgrp to a foreign group": (os.chown, -1, OTHER),
    "chown to the same": (os.chown, OWNER, GROUP),
    "utime now": (os.utime,), "utime": (os.utime, (1, 1)),
    "setxattr": (os.setxattr, "user.new", b"1"), "getxattr": (os.getxattr, "user.x"),
    "removexattr": (os.removexattr, "user.x"), "listxattr": (os.listxattr,),
    "set a list": (os.setxattr, users.ACL, users.acl(0o660, OTHER, 7)),
}

PLAIN = {
    **ATTRIBUTES,
    "open r": (open_file, R), "open w": (open_file, W), "open rw": (open_file, RW),
    "open and empty": (open_file, W | os.O_TRUNC), "open or create": (open_file, W | os.O_CREAT),
    "open rw and empty": (open_file, RW | os.O_TRUNC), "create exclusively": (create,),
    "open r and empty": (open_file, R | os.O_TRUNC), "append": (open_file, W | os.O_APPEND),
    "empty or create": (open_file, W | os.O_CREAT | os.O_TRUNC), "write": (write_byte,),
    "truncate": (os.truncate, 0), "truncate longer": (os.truncate, 5000), "link": (link_away,),
}

DIRECTORY = {
    **ATTRIBUTES,
    "list": (list_names,), "open inside r": (within, "file", open_file, R),
    "stat inside": (within, "file", stat_path), "open inside w": (within, "file", open_file, W),
    "open or create": (within, "file", open_file, W | os.O_CREAT),
    "open or create root's": (within, "roots", open_file, W | os.O_CREAT),
    "create": (within, "new", create), "create 0640": (within, "new", create, 0o640),
    "create 2777": (within, "new", create, 0o2777, 0),
    "create 4777": (within, "new", create, 0o4777, 0),
    "create, umask 077": (within, "new", create, 0o666, 0o077),
    "create, umask 000": (within, "new", create, 0o666, 0o000),
    "create exclusively": (within, "file", create), "mknod": (within, "new", os.mknod, 0o100666),
    "symlink": (symlink,), "rmdir inside": (within, "sub", os.rmdir),
    "unlink inside": (within, "file", os.unlink), "unlink root's": (within, "roots", os.unlink),
    "link away": (link_away, "file"), "link root's away": (link_away, "roots"),
    "link here": (link_into, "new"), "link onto": (link_into, "file"),
    "rename": (rename, "file", "new"), "rename root's": (rename, "roots", "new"),
    "rename over": (rename, "file", "roots"), "rename away": (rename_away, "file"),
    "rename root's away": (rename_away, "roots"), "rename directory away": (rename_away, "sub"),
    "rename here": (rename_into, "new"), "rename here, over": (rename_into, "file"),
    "rename here, over root's": (rename_into, "roots"),
    "rename container": (rename, "c.lime", "new"),
    "rename container away": (rename_away, "c.lime"),
    "unlink container": ((within, "c.lime", os.unlink), (within, "c.lime", os.unlink),
                         errno.EISDIR),
    "rmdir container": ((within, "c.lime", os.rmdir), (within, "c.lime", os.unlink),
                        errno.ENOTEMPTY),
}

MKDIR = {"mkdir": (within, "new", os.mkdir)}

# (call in the mount, native call, errno (or function of the mode) if the native call succeeds)
# Entering a container requires read permission; changing it requires write permission, too.
ENTER, CHANGE = (open_file, R), (open_file, RW)

CONTAINERS = {
    **{name: (call, call, 0) for name, call in ATTRIBUTES.items()},
    "access x": ((access, os.X_OK), (access, os.R_OK), 0),
    "setxattr": ((os.setxattr, "user.new", b"1"), (os.setxattr, "user.new", b"1"), errno.EPERM),
    "getxattr": ((os.getxattr, "user.x"), (os.getxattr, "user.x"), errno.ENODATA),
    "removexattr": ((os.removexattr, "user.x"), (os.removexattr, "user.x"), errno.EPERM),
    "set a list": (ATTRIBUTES["set a list"], ATTRIBUTES["set a list"], errno.EPERM),
    "list": ((list_names,), ENTER, 0),
    "stat inside": ((within, "last", stat_path), ENTER, 0),
    "create": ((within, "new", create), CHANGE, 0),
    "open or create": ((within, "new", open_file, W | os.O_CREAT), CHANGE, 0),
    "unlink inside": ((within, "last", os.unlink), CHANGE, 0),
    "unlink inner": ((within, "first", os.unlink), CHANGE, errno.EPERM),
    "mkdir inside": ((within, "new", os.mkdir), CHANGE, errno.EPERM),
    "symlink inside": ((symlink,), CHANGE, errno.EPERM),
    "rename inside": ((rename, "last", "new"), CHANGE, errno.EPERM),
    "rename away": ((rename_away, "last"), CHANGE, errno.EXDEV),
    "rename here": ((rename_into, "new"), CHANGE, errno.EXDEV),
    "link here": ((link_into, "new"), CHANGE, errno.EPERM),
    "unlink": ((os.unlink,), (os.unlink,), errno.EISDIR),
    "rmdir": ((os.rmdir,), (os.unlink,), errno.ENOTEMPTY),
    "link": ((link_away,), (link_away,), errno.EPERM),
    # The kernel refuses these before it checks permissions.
    "truncate": ((os.truncate, 0), (stat_path,), errno.EISDIR),
    "open w": ((open_file, W), (stat_path,), errno.EISDIR),
}


def same_as(mode):
    """chmod() succeeds if it keeps the read and write bits."""
    return lambda now: 0 if now & 0o666 == mode & 0o666 else errno.EPERM


DOCUMENTED = {
    "chmod 0777": same_as(0o777), "chmod 0600": same_as(0o600), "chmod 4755": same_as(0o755),
    "chmod 2775": same_as(0o775), "chown to other": errno.EPERM,
    "chgrp to owner's other group": errno.EPERM, "chgrp to a foreign group": errno.EPERM,
    "setxattr": errno.EPERM, "getxattr": errno.ENODATA, "removexattr": errno.EPERM,
    "set a list": errno.EOPNOTSUPP,
}

RECORDS = {
    **{name: (call, (call_each, ENTER, call), DOCUMENTED.get(name, 0))
       for name, call in ATTRIBUTES.items()},
    "access x": ((access, os.X_OK), (refuse,), 0),  # a record is not executable
    **{name: ((open_file, flags), ENTER if flags == R else CHANGE, 0) for name, flags in [
        ("open r", R), ("open w", W), ("open rw", RW), ("open and empty", W | os.O_TRUNC),
        ("open rw and empty", RW | os.O_TRUNC), ("append", W | os.O_APPEND),
        ("open or create", W | os.O_CREAT)]},
    "write": ((write_byte,), CHANGE, 0),
    "truncate": ((os.truncate, 0), CHANGE, 0),
    "truncate longer": ((os.truncate, 5000), CHANGE, 0),
    "rewrite inner": ((rewrite_inner,), CHANGE, 0),
    # The kernel first refuses links to files that the user can't write (protected_hardlinks).
    "link": ((link_nearby,), (call_each, ENTER, (link_away,), CHANGE), errno.EPERM),
}


# ---- the table ----


def lists(path, mask):
    """Returns a file's access control lists as text."""
    found = []
    for name in (users.ACL, users.DEFAULT_ACL):
        with contextlib.suppress(OSError):
            value = os.getxattr(path, name, follow_symlinks=False)
            found += [f" {tag}:{id}:{perm & mask & 7}"
                      for tag, perm, id in struct.iter_unpack("<HHI", value[4:])]
    return "".join(found)


class Row:
    """A caller, an object's shape (see MODES), and the calls on it in the mount and natively;
    documented: the errno in the mount if the native call succeeds."""

    def __init__(self, caller, shape, name, mounted, natively, documented):
        self.caller, self.shape, self.name = caller, shape, name
        self.mounted, self.natively = mounted, natively
        self.documented = documented(shape[0]) if callable(documented) else documented

    def __str__(self):
        mode, perm, default = self.shape
        parts = [f"{self.caller}: mode {mode:04o}"]
        parts += [] if perm is None else [f"list with {perm}"]
        parts += [] if default is None else [f"default list with {default}"]
        return f"{', '.join(parts)}: {self.name}"


@limetest.needs_fuse
class Permissions(limetest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.top = self.create_top()
        users.reach(self, self.top)
        for side in ("native", "tree"):
            users.directory(self.under(side))
            for name in ("it", "free"):
                users.directory(self.under(side, name), 0, 0o777)
        self.callers = {name: users.User(self, name=name, **ids) for name, ids in CALLERS.items()}

    def create_top(self):
        """Uses a tmpfs, the fastest file system, if it has user attributes (Linux 6.6)."""
        if limetest.STRESS:
            return users.open_directory()
        fs = writelib.SmallFs(self, "tmpfs", 400, "nr_inodes=1m")
        os.chmod(os.path.dirname(fs.path), 0o755)
        try:
            os.setxattr(users.put(fs.join("try")), "user.x", b"1")
        except OSError:
            return users.open_directory()
        return fs.path

    def under(self, *names):
        return os.path.join(self.top, *names)

    # ---- objects and their state ----

    def set_state(self, path, shape):
        """Sets owner, group, mode, access control lists and an attribute."""
        mode, perm, default = shape
        os.setxattr(path, "user.x", b"1")
        os.chown(path, OWNER, GROUP)
        if perm is not None:
            os.setxattr(path, users.ACL, users.acl(mode, NAMED, perm))
        if default is not None:
            os.setxattr(path, users.DEFAULT_ACL, users.acl(0o750, NAMED, default))
        os.chmod(path, mode)

    def plain(self, path, shape):
        self.set_state(users.put(path, b"plain text"), shape)

    def container(self, path, shape):
        self.set_state(users.put(path, CONTAINER), shape)
        users.put(free_path(path, ".own"), b"", self.uid)

    def directory(self, path, shape):
        users.directory(path)
        users.put(os.path.join(path, "file"), b"plain text", OWNER, 0o666)
        users.put(os.path.join(path, "roots"), b"plain text", 0, 0o644)
        users.put(os.path.join(path, "c.lime"), CONTAINER, OWNER, 0o666)
        users.directory(os.path.join(path, "sub"), OWNER, 0o777)
        users.put(free_path(path, ".own"), b"", self.uid)
        self.set_state(path, shape)

    def get_state(self, side, i, mask):
        """Returns owner, group and mode of the object, its entries, and its files in `free`."""
        path = self.under(side, "it", str(i))
        paths = [path, free_path(path), free_path(path, ".own")]
        if os.path.isdir(path):
            paths += sorted(os.path.join(path, name) for name in os.listdir(path))
        states = {}
        for each in paths:
            if os.path.lexists(each):
                st = os.lstat(each)
                name = os.path.relpath(each, os.path.dirname(path)).replace(str(i), "it", 1)
                states[name] = f"{st.st_uid}:{st.st_gid} {st.st_mode & mask:o}{lists(each, mask)}"
        return states

    # ---- all rows ----

    def compare(self, make, shapes, table, mask=0o177777, inside="", opts=("rw",)):
        """Runs all rows. mask: mode bits to compare; inside: the record to operate on."""
        rows = [Row(caller, shape, name, *(call if isinstance(call[0], tuple) else (call, call, 0)))
                for caller in CALLERS for shape in shapes for name, call in table.items()]
        for i, row in enumerate(rows):
            self.uid = CALLERS[row.caller]["uid"]
            for side in ("native", "tree"):
                make(self.under(side, "it", str(i)), row.shape)
        before = [self.get_state("tree", i, mask) for i in range(len(rows))]
        with writelib.Mount(self.under("tree"), opts=["allow_other", *opts]) as mount:
            natively = self.run_rows(rows, "natively", self.under("native"))
            mounted = self.run_rows(rows, "mounted", mount.path, inside)
        wrong = []
        for i, row in enumerate(rows):
            code = row.documented if natively[i] == 0 else natively[i]
            if mounted[i] != code:
                wrong.append(f"{row}: {users.word(mounted[i])}, natively {users.word(natively[i])}")
            else:
                side = "tree" if row.documented or inside else "native"
                want = before[i] if side == "tree" else self.get_state(side, i, mask)
                got = self.get_state("tree", i, mask)
                wrong += [f"{row}: {name} is {got.get(name)}, not {want.get(name)}"
                          for name in sorted({*got, *want}) if got.get(name) != want.get(name)]
        print(f"# {self.id()}: {len(rows)} rows")
        if wrong:
            self.fail("\n".join([f"{len(wrong)} of {len(rows)} rows:", *wrong[:MAX_LINES]]))

    def run_rows(self, rows, way, directory, inside=""):
        """Returns the errno of each row; all callers run at once."""
        codes = [None] * len(rows)
        for caller, user in self.callers.items():
            user.start(*[(function, os.path.join(directory, "it", str(i), inside).rstrip("/"),
                          *args) for i, row in enumerate(rows) if row.caller == caller
                         for function, *args in [getattr(row, way)]])
        for caller, user in self.callers.items():
            mine = [i for i, row in enumerate(rows) if row.caller == caller]
            for i, (code, _) in zip(mine, user.finish()):
                codes[i] = code
        return codes

    def test_plain_files(self):
        self.compare(self.plain, MODES + LISTS + SET_IDS, PLAIN)

    def test_directories(self):
        self.compare(self.directory, MODES + LISTS + FLAGS + DEFAULTS, DIRECTORY)

    def test_mkdir(self):
        self.compare(self.directory, MODES + LISTS + FLAGS + DEFAULTS, MKDIR)

    def test_reading_only(self):
        reads = ("access r", "access x", "stat", "open r", "getxattr", "listxattr")
        self.compare(self.plain, MODES + LISTS, {name: PLAIN[name] for name in reads}, opts=())

    def test_reading_containers_only(self):
        reads = ("access r", "access x", "stat", "list", "stat inside", "listxattr")
        self.compare(self.container, MODES + LISTS, {name: CONTAINERS[name] for name in reads},
                     mask=0o666, opts=())

    def test_reading_records_only(self):
        reads = ("access r", "access x", "stat", "open r", "getxattr", "listxattr")
        self.compare(self.container, MODES + LISTS, {name: RECORDS[name] for name in reads},
                     mask=0o666, inside="last", opts=())

    def test_containers(self):
        self.compare(self.container, MODES + LISTS, CONTAINERS, mask=0o666)

    def test_records(self):
        self.compare(self.container, MODES + LISTS, RECORDS, mask=0o666, inside="last")


if __name__ == "__main__":
    limetest.main()
