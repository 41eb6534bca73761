"""Who may do what through root's mount: a table of callers, objects, modes and operations.

Each row is done twice by the same process, to two things that are alike: natively, and through a
mount. The errno must be the same, and owner, group and mode of all that is there then. What records
and containers cannot do, or do by another call, is said in their own tables (docs/writing.md).
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
GROUP, SPARE = 54400, 54401  # of the objects, and another one of their owner

CALLERS = {
    "owner": {"uid": OWNER, "groups": [SPARE]},
    "member": {"uid": MEMBER, "gid": GROUP},
    "member besides": {"uid": EXTRA, "groups": [GROUP]},
    "other": {"uid": OTHER},
    "named in the list": {"uid": NAMED},
    "root": {"uid": 0},
}

# (mode, permissions of NAMED in an access control list, those in a list for what is made inside)
MODES = [(mode, None, None) for mode in (0o000, 0o400, 0o200, 0o600, 0o604, 0o640, 0o660, 0o666,
                                         0o707, 0o770, 0o777)]
LISTS = [(mode, perm, None) for mode in (0o600, 0o640, 0o660, 0o604, 0o770) for perm in (7, 4, 0)]
SET_IDS = [(mode, None, None) for mode in (0o4777, 0o6777, 0o2775)]
FLAGS = [(mode, None, None) for mode in (0o1777, 0o1770, 0o1707, 0o2770, 0o2777, 0o2755)]
DEFAULTS = [(mode, 7, perm) for mode in (0o777, 0o770, 0o2770) for perm in (7, 5)]

WORDS = 100  # lines, of what is wrong

CONTAINER = limetest.container([("first", b"1" * 100), ("last", b"2" * 100)])


# ---- operations: on a path, in the caller's process ----


def opened(path, flags):
    os.close(os.open(path, flags, 0o666))


def written(path):
    """A byte, which takes set-id bits away."""
    with descriptor(path, os.O_WRONLY) as fd:
        os.write(fd, b"x")


def written_anew(path):
    """The inner record, of another length: the container is another file then."""
    put(os.path.join(os.path.dirname(path), "first"), b"anew")


def made(path, mode=0o666, umask=0o022):
    old = os.umask(umask)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    finally:
        os.umask(old)


def may(path, how):
    if not os.access(path, how):
        raise PermissionError(errno.EACCES, "access")


def looked_at(path):
    os.stat(path)


def listed(path):
    os.listdir(path)


def refused(path):
    raise PermissionError(errno.EACCES, "never")


def in_turn(path, *calls):
    for function, *args in calls:
        function(path, *args)


def within(path, name, function, *args):
    function(os.path.join(path, name), *args)


def free(path, other=""):
    """In a directory of all, beside that of the object: a name of this row's own."""
    return os.path.join(os.path.dirname(path), "../free", os.path.basename(path) + other)


def linked(path, name=""):
    os.link(os.path.join(path, name) if name else path, free(path))


def linked_beside(path):
    os.link(path, os.path.join(os.path.dirname(path), "new"))


def linked_here(path, name):
    os.link(free(path, ".own"), os.path.join(path, name))


def renamed(path, name, to):
    os.rename(os.path.join(path, name), os.path.join(path, to))


def renamed_away(path, name):
    os.rename(os.path.join(path, name), free(path))


def renamed_here(path, name):
    os.rename(free(path, ".own"), os.path.join(path, name))


def symlinked(path):
    os.symlink("nowhere", os.path.join(path, "new"))


R, W, RW = os.O_RDONLY, os.O_WRONLY, os.O_RDWR

# What is asked of everything.
ATTRIBUTES = {
    "access r": (may, os.R_OK), "access w": (may, os.W_OK), "access x": (may, os.X_OK),
    "stat": (looked_at,), "chmod 0777": (os.chmod, 0o777), "chmod 0600": (os.chmod, 0o600),
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
    "open r": (opened, R), "open w": (opened, W), "open rw": (opened, RW),
    "open and empty": (opened, W | os.O_TRUNC), "open rw and empty": (opened, RW | os.O_TRUNC),
    "open r and empty": (opened, R | os.O_TRUNC), "append": (opened, W | os.O_APPEND),
    "open or create": (opened, W | os.O_CREAT), "create anew": (made,),
    "empty or create": (opened, W | os.O_CREAT | os.O_TRUNC), "write": (written,),
    "truncate": (os.truncate, 0), "truncate longer": (os.truncate, 5000), "link": (linked,),
}

FOLDER = {
    **ATTRIBUTES,
    "list": (listed,), "stat inside": (within, "file", looked_at),
    "open inside r": (within, "file", opened, R), "open inside w": (within, "file", opened, W),
    "open or create": (within, "file", opened, W | os.O_CREAT),
    "open or create root's": (within, "roots", opened, W | os.O_CREAT),
    "create": (within, "new", made), "create 4777": (within, "new", made, 0o4777, 0),
    "create 2777": (within, "new", made, 0o2777, 0), "create 0640": (within, "new", made, 0o640),
    "create, umask 077": (within, "new", made, 0o666, 0o077),
    "create, umask 000": (within, "new", made, 0o666, 0o000),
    "create anew": (within, "file", made), "mknod": (within, "new", os.mknod, 0o100666),
    "symlink": (symlinked,), "rmdir inside": (within, "sub", os.rmdir),
    "unlink inside": (within, "file", os.unlink), "unlink root's": (within, "roots", os.unlink),
    "link away": (linked, "file"), "link root's away": (linked, "roots"),
    "link here": (linked_here, "new"), "link onto": (linked_here, "file"),
    "rename": (renamed, "file", "new"), "rename root's": (renamed, "roots", "new"),
    "rename over": (renamed, "file", "roots"), "rename away": (renamed_away, "file"),
    "rename root's away": (renamed_away, "roots"), "rename directory away": (renamed_away, "sub"),
    "rename here": (renamed_here, "new"), "rename here, over": (renamed_here, "file"),
    "rename here, over root's": (renamed_here, "roots"),
    "rename container": (renamed, "c.lime", "new"),
    "rename container away": (renamed_away, "c.lime"),
    "unlink container": ((within, "c.lime", os.unlink), (within, "c.lime", os.unlink),
                         errno.EISDIR),
    "rmdir container": ((within, "c.lime", os.rmdir), (within, "c.lime", os.unlink),
                        errno.ENOTEMPTY),
}

# mkdir makes a container here, and a directory natively: the errno alone is compared.
MKDIR = {"mkdir": (within, "new", os.mkdir)}

# Below: (here, natively, the errno here where that is permitted, or a function of the mode).

# A container is entered by those who may read it, and changed by those who may write it as well.
ENTER, CHANGE = (opened, R), (opened, RW)

CONTAINERS = {
    **{name: (call, call, 0) for name, call in ATTRIBUTES.items()},
    "access x": ((may, os.X_OK), (may, os.R_OK), 0),
    "setxattr": ((os.setxattr, "user.new", b"1"), (os.setxattr, "user.new", b"1"), errno.EPERM),
    "getxattr": ((os.getxattr, "user.x"), (os.getxattr, "user.x"), errno.ENODATA),
    "removexattr": ((os.removexattr, "user.x"), (os.removexattr, "user.x"), errno.EPERM),
    "set a list": (ATTRIBUTES["set a list"], ATTRIBUTES["set a list"], errno.EPERM),
    "list": ((listed,), ENTER, 0),
    "stat inside": ((within, "last", looked_at), ENTER, 0),
    "create": ((within, "new", made), CHANGE, 0),
    "open or create": ((within, "new", opened, W | os.O_CREAT), CHANGE, 0),
    "unlink inside": ((within, "last", os.unlink), CHANGE, 0),
    "unlink inner": ((within, "first", os.unlink), CHANGE, errno.EPERM),
    "mkdir inside": ((within, "new", os.mkdir), CHANGE, errno.EPERM),
    "symlink inside": ((symlinked,), CHANGE, errno.EPERM),
    "rename inside": ((renamed, "last", "new"), CHANGE, errno.EPERM),
    "rename away": ((renamed_away, "last"), CHANGE, errno.EXDEV),
    "rename here": ((renamed_here, "new"), CHANGE, errno.EXDEV),
    "link here": ((linked_here, "new"), CHANGE, errno.EPERM),
    "unlink": ((os.unlink,), (os.unlink,), errno.EISDIR),
    "rmdir": ((os.rmdir,), (os.unlink,), errno.ENOTEMPTY),
    "link": ((linked,), (linked,), errno.EPERM),
    # The kernel says so before it looks at permissions.
    "truncate": ((os.truncate, 0), (looked_at,), errno.EISDIR),
    "open w": ((opened, W), (looked_at,), errno.EISDIR),
}


def same_as(mode):
    """What is not changed is not refused: those who may read and write."""
    return lambda now: 0 if now & 0o666 == mode & 0o666 else errno.EPERM


DOCUMENTED = {
    "chmod 0777": same_as(0o777), "chmod 0600": same_as(0o600), "chmod 4755": same_as(0o755),
    "chmod 2775": same_as(0o775), "chown to other": errno.EPERM,
    "chgrp to owner's other group": errno.EPERM, "chgrp to a foreign group": errno.EPERM,
    "setxattr": errno.EPERM, "getxattr": errno.ENODATA, "removexattr": errno.EPERM,
    "set a list": errno.EOPNOTSUPP,
}

RECORDS = {
    **{name: (call, (in_turn, ENTER, call), DOCUMENTED.get(name, 0))
       for name, call in ATTRIBUTES.items()},
    "access x": ((may, os.X_OK), (refused,), 0),  # a record is no program
    **{name: ((opened, flags), ENTER if flags == R else CHANGE, 0) for name, flags in [
        ("open r", R), ("open w", W), ("open rw", RW), ("open and empty", W | os.O_TRUNC),
        ("open rw and empty", RW | os.O_TRUNC), ("append", W | os.O_APPEND),
        ("open or create", W | os.O_CREAT)]},
    "write": ((written,), CHANGE, 0),
    "truncate": ((os.truncate, 0), CHANGE, 0),
    "truncate longer": ((os.truncate, 5000), CHANGE, 0),
    "write inner anew": ((written_anew,), CHANGE, 0),
    # Links to what one may not write are refused first (protected_hardlinks).
    "link": ((linked_beside,), (in_turn, ENTER, (linked,), CHANGE), errno.EPERM),
}


# ---- the table ----


def lists(path, mask):
    """Access control lists, as words."""
    found = []
    for name in (users.ACL, users.DEFAULT_ACL):
        with contextlib.suppress(OSError):
            value = os.getxattr(path, name, follow_symlinks=False)
            found += [f" {tag}:{id}:{perm & mask & 7}"
                      for tag, perm, id in struct.iter_unpack("<HHI", value[4:])]
    return "".join(found)


class Row:
    """Who does what to a thing of this shape (see MODES), here and natively; documented: the errno
    here where it is permitted natively."""

    def __init__(self, caller, shape, name, here, natively, documented):
        self.caller, self.shape, self.name = caller, shape, name
        self.here, self.natively = here, natively
        self.documented = documented(shape[0]) if callable(documented) else documented

    def __str__(self):
        mode, perm, default = self.shape
        words = [f"{self.caller}: mode {mode:04o}"]
        words += [] if perm is None else [f"list with {perm}"]
        words += [] if default is None else [f"default list with {default}"]
        return f"{', '.join(words)}: {self.name}"


@limetest.needs_fuse
class Permissions(limetest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.top = self.place()
        users.reach(self, self.top)
        for side in ("native", "tree"):
            users.directory(self.under(side))
            for name in ("it", "free"):
                users.directory(self.under(side, name), 0, 0o777)
        self.callers = {name: users.User(self, name=name, **ids) for name, ids in CALLERS.items()}

    def place(self):
        """A tmpfs is the fastest by far, where it has attributes for users (Linux 6.6)."""
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

    # ---- what is there before and after ----

    def give(self, path, shape):
        """Owner, group, mode and lists, and an attribute."""
        mode, perm, default = shape
        os.setxattr(path, "user.x", b"1")
        os.chown(path, OWNER, GROUP)
        if perm is not None:
            os.setxattr(path, users.ACL, users.acl(mode, NAMED, perm))
        if default is not None:
            os.setxattr(path, users.DEFAULT_ACL, users.acl(0o750, NAMED, default))
        os.chmod(path, mode)

    def plain(self, path, shape):
        self.give(users.put(path, b"plain text"), shape)

    def container(self, path, shape):
        self.give(users.put(path, CONTAINER), shape)
        users.put(free(path, ".own"), b"", self.uid)

    def directory(self, path, shape):
        users.directory(path)
        users.put(os.path.join(path, "file"), b"plain text", OWNER, 0o666)
        users.put(os.path.join(path, "roots"), b"plain text", 0, 0o644)
        users.put(os.path.join(path, "c.lime"), CONTAINER, OWNER, 0o666)
        users.directory(os.path.join(path, "sub"), OWNER, 0o777)
        users.put(free(path, ".own"), b"", self.uid)
        self.give(path, shape)

    def found(self, side, i, mask):
        """Owner, group and mode of the object, of what is in it, and of what came of it."""
        path = self.under(side, "it", str(i))
        paths = [path, free(path), free(path, ".own")]
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
        """All callers, shapes and operations. mask: of the modes that are compared; inside: the
        record that it is done to."""
        rows = [Row(caller, shape, name, *(call if isinstance(call[0], tuple) else (call, call, 0)))
                for caller in CALLERS for shape in shapes for name, call in table.items()]
        for i, row in enumerate(rows):
            self.uid = CALLERS[row.caller]["uid"]
            for side in ("native", "tree"):
                make(self.under(side, "it", str(i)), row.shape)
        before = [self.found("tree", i, mask) for i in range(len(rows))]
        with writelib.Mount(self.under("tree"), opts=["allow_other", *opts]) as mount:
            natively = self.done(rows, "natively", self.under("native"))
            here = self.done(rows, "here", mount.path, inside)
        wrong = []
        for i, row in enumerate(rows):
            code = row.documented if natively[i] == 0 else natively[i]
            if here[i] != code:
                wrong.append(f"{row}: {users.word(here[i])}, natively {users.word(natively[i])}")
            else:
                side = "tree" if row.documented or inside else "native"
                want = before[i] if side == "tree" else self.found(side, i, mask)
                got = self.found("tree", i, mask)
                wrong += [f"{row}: {name} is {got.get(name)}, not {want.get(name)}"
                          for name in sorted({*got, *want}) if got.get(name) != want.get(name)]
        print(f"# {self.id()}: {len(rows)} rows")
        if wrong:
            self.fail("\n".join([f"{len(wrong)} of {len(rows)} rows:", *wrong[:WORDS]]))

    def done(self, rows, way, directory, inside=""):
        """The errno of each; all callers at once."""
        codes = [None] * len(rows)
        for caller, user in self.callers.items():
            user.start(*[(function, os.path.join(directory, "it", str(i), inside).rstrip("/"), *args)
                         for i, row in enumerate(rows) if row.caller == caller
                         for function, *args in [getattr(row, way)]])
        for caller, user in self.callers.items():
            mine = [i for i, row in enumerate(rows) if row.caller == caller]
            for i, (code, _) in zip(mine, user.finish()):
                codes[i] = code
        return codes

    def test_plain_files(self):
        self.compare(self.plain, MODES + LISTS + SET_IDS, PLAIN)

    def test_directories(self):
        self.compare(self.directory, MODES + LISTS + FLAGS + DEFAULTS, FOLDER)

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
