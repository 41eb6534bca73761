"""users - ordinary users by number alone, each a process that makes the calls it is told to.

    ann = users.User(test, 54321, groups=[54400])
    ann.call(os.open, path, os.O_RDWR)          what it returns; OSError
    ann.attempt(os.chmod, path, 0o666)          its errno, 0 for success
    ann.batch([(os.stat, path), ...])           (errno, value) of each, thousands a second
    with ann.busy(users.exchanging, one, other):    ... all the while

Functions are those of a module, and run there; values are what pickle takes. Descriptors are the
process's own: calls that share one are made by one function.
"""

import contextlib
import ctypes
import errno
import gc
import hashlib
import mmap
import multiprocessing
import os
import shutil
import signal
import stat
import struct
import traceback

import limetest

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
NOBODY = 0xFFFFFFFF  # for no id: of entries of access control lists, and chown
ACL, DEFAULT_ACL = "system.posix_acl_access", "system.posix_acl_default"

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD = -100


def _failed():
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


# ---- calls that Python lacks ----


def rename2(one, other, flags):
    if _libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), flags) != 0:
        raise _failed()


def exchange(one, other):
    rename2(one, other, RENAME_EXCHANGE)


def fallocate(fd, mode, offset, nbytes):
    if _libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(nbytes)) != 0:
        raise _failed()


def mount(source, target, kind, options):
    if _libc.mount(os.fsencode(source), os.fsencode(target), os.fsencode(kind),
                   ctypes.c_ulong(0), os.fsencode(options)) != 0:
        raise _failed()


def syncfs(fd):
    if _libc.syncfs(fd) != 0:
        raise _failed()


def acl(mode, uid, perm):
    """The value of an access control list: those of `mode`, whose group bits are the mask, too,
    and a user besides."""
    entries = [(0x01, mode >> 6 & 7, NOBODY), (0x02, perm, uid), (0x04, mode >> 3 & 7, NOBODY),
               (0x10, mode >> 3 & 7, NOBODY), (0x20, mode & 7, NOBODY)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# ---- loops beside what others do ----

_stop = None  # this process's flag


def stopped():
    return _stop[0] != 0


def exchanging(one, other):
    """Two names change places and back, over and over. How often."""
    n = 0
    while not stopped():
        for _ in range(2):
            with contextlib.suppress(OSError):
                exchange(one, other)
        n += 2
    return n


def moving(one, other):
    """A file gets another name, whatever was there, and its old one again. How often."""
    n = 0
    while not stopped():
        for names in ((one, other), (other, one)):
            with contextlib.suppress(OSError):
                os.rename(*names)
        n += 2
    return n


# ---- a user ----


def _outcome(call):
    function, *args = call
    try:
        return 0, function(*args)
    except OSError as error:
        return error.errno, None
    except Exception:
        return None, traceback.format_exc()


def _serve(pipe, uid, gid, groups, umask):
    gc.freeze()  # what is closed here may be open by another number's owner
    os.closerange(3, pipe.fileno())
    os.closerange(pipe.fileno() + 1, 4096)
    if os.geteuid() == 0:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.umask(umask)
    os.chdir("/")
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; forgotten by setresuid
    _libc.prctl(4, 1)               # PR_SET_DUMPABLE: /proc/self is one's own
    while True:
        pipe.send([_outcome(call) for call in pipe.recv()])


class User:
    """A process of these ids, for as long as the test runs. name: for messages."""

    def __init__(self, test, uid, gid=None, groups=(), umask=0o022, name=None):
        global _stop
        self.uid, self.gid = uid, uid if gid is None else gid
        self.groups, self.umask = list(groups), umask
        self.name = name or str(uid)
        self._flag = mmap.mmap(-1, mmap.PAGESIZE)
        self._pipe, far = multiprocessing.Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _stop = self._flag
                _serve(far, uid, self.gid, self.groups, umask)
            finally:
                os._exit(0)
        far.close()
        test.addCleanup(self.end)

    def start(self, *calls):
        """They are made while others do something; then comes finish()."""
        self._pipe.send(calls)

    def finish(self):
        """The outcomes of what was started."""
        outcomes = self._pipe.recv()
        for code, value in outcomes:
            if code is None:
                raise AssertionError(f"user {self.name}: {value}")
        return outcomes

    def batch(self, calls):
        self.start(*calls)
        return self.finish()

    def attempt(self, function, *args):
        return self.batch([(function, *args)])[0][0]

    def call(self, function, *args):
        code, value = self.batch([(function, *args)])[0]
        if code:
            raise OSError(code, f"{function.__name__}{args}: {os.strerror(code)}"[:300])
        return value

    @contextlib.contextmanager
    def busy(self, function, *args):
        """Until the end of the `with`: a function that ends when it is stopped(). What it returns
        is put into the list."""
        values = []
        self._flag[0] = 0
        self.start((function, *args))
        try:
            yield values
        finally:
            self._flag[0] = 1
            values.append(self.finish()[0][1])

    def kill(self):
        os.kill(self._pid, signal.SIGKILL)

    def end(self):
        if self._pid:
            self._flag[0] = 1
            self._pipe.close()
            os.waitpid(self._pid, 0)
            self._pid = 0


# ---- files ----


def open_directory():
    """A temporary directory that all users may enter."""
    path = limetest.tempdir()
    os.chmod(path, 0o755)
    return path


def reach(test, path):
    """Skips a test whose temporary directory other users cannot enter."""
    above = path
    while above != "/":
        above = os.path.dirname(above)
        if not os.stat(above).st_mode & 0o001:
            test.skipTest(f"other users cannot enter {above}")


def let_in(path):
    """Others may read a temporary directory, and enter all those above it."""
    while len(path) > len("/tmp"):
        os.chmod(path, os.stat(path).st_mode | 0o055)
        path = os.path.dirname(path)


def open_device(test):
    """Ordinary users may mount, until the end of the test, which needs root."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        test.skipTest("needs root and setpriv")
    mode = os.stat("/dev/fuse").st_mode & 0o777
    if not mode & 0o006:
        os.chmod("/dev/fuse", 0o666)
        test.addCleanup(os.chmod, "/dev/fuse", mode)


# What runs a program as an ordinary user, who is in no other group.
NOBODY_ID = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY_ID}", f"--regid={NOBODY_ID}", "--clear-groups"]


def run_with_private_fuse(test, script, *args, **kw):
    """Runs a shell script in a mount namespace in which ordinary users may mount for others. $0 is
    a directory that all may enter, with bin and lib; the script has `as_user NUMBER COMMAND`."""
    if not os.path.exists("/etc/fuse.conf") or not shutil.which("fusermount3"):
        test.skipTest("needs fusermount3")
    top = open_directory()
    for kind in ("bin", "lib"):
        shutil.copytree(os.path.join(limetest.B, kind), os.path.join(top, kind), symlinks=True)
        os.chmod(os.path.join(top, kind), 0o755)
    fuse = os.path.join(top, "fuse")
    os.mknod(fuse, stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
    os.chmod(fuse, 0o666)
    put(os.path.join(top, "conf"), b"user_allow_other\n")
    script = ("mount --make-rprivate / && mount --bind $0/fuse /dev/fuse && "
              "mount --bind $0/conf /etc/fuse.conf && as_user() { user=$1; shift; "
              f"setpriv --reuid $user --regid $user --clear-groups \"$@\"; }} && {script}")
    return limetest.run(["unshare", "-m", "sh", "-c", script, top, *args], **kw)


def put(path, data=b"", uid=0, mode=0o644, gid=None):
    """A file of somebody."""
    with open(path, "wb") as file:
        file.write(data)
    os.chown(path, uid, uid if gid is None else gid)
    os.chmod(path, mode)
    return path


def directory(path, uid=0, mode=0o755, gid=None):
    os.mkdir(path)
    os.chown(path, uid, uid if gid is None else gid)
    os.chmod(path, mode)
    return path


class Kept:
    """What a file is and holds, whatever name it has later. removable: its name can be taken away
    by anybody."""

    def __init__(self, path):
        self.path = path
        self.removable = os.stat(os.path.dirname(path)).st_mode & 0o1002 == 0o002
        self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._then = self._look()

    def close(self):
        os.close(self._fd)

    def _look(self):
        found = os.fstat(self._fd)
        looks = {"owner": found.st_uid, "group": found.st_gid, "mode": oct(found.st_mode),
                 "attributes": {name: os.getxattr(self._fd, name)
                                for name in os.listxattr(self._fd)}}
        if stat.S_ISREG(found.st_mode):
            looks["links"] = found.st_nlink
            looks["bytes"] = found.st_size
            looks["sum"] = hashlib.sha256(self.read()).hexdigest()[:16]
        else:
            looks["names"] = sorted(os.listdir(self._fd))
        return {**looks, "mtime": found.st_mtime_ns}

    def read(self):
        return os.pread(self._fd, os.fstat(self._fd).st_size, 0)

    def changes(self):
        """What is not as it was: {what: (then, now)}."""
        now = self._look()
        return {what: (then, now[what]) for what, then in self._then.items() if now[what] != then}


def word(code):
    """An errno for a message."""
    return errno.errorcode.get(code, str(code)) if code else "0"
