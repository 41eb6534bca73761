"""users - ordinary users by number alone; each is a process that makes the calls of a test.

    ann = users.User(test, 54321, groups=[54400])
    ann.call(os.open, path, os.O_RDWR)          the result; raises OSError
    ann.attempt(os.chmod, path, 0o666)          its errno, 0 for success
    ann.batch([(os.stat, path), ...])           (errno, value) of each, thousands a second
    with ann.busy(users.exchanging, one, other):    ... in parallel with the body

Functions are importable ones and run in that process; pickle must support the values. Descriptors
belong to the process: calls that share one must be made by one function.
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
NOBODY = 0xFFFFFFFF  # no id: for entries of access control lists, and chown
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
    """Returns an access control list: the entries of `mode`, whose group bits are also the mask,
    and one for a user."""
    entries = [(0x01, mode >> 6 & 7, NOBODY), (0x02, perm, uid), (0x04, mode >> 3 & 7, NOBODY),
               (0x10, mode >> 3 & 7, NOBODY), (0x20, mode & 7, NOBODY)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# ---- loops that run in parallel with other calls ----

_stop = None  # this process's stop flag


def stopped():
    return _stop[0] != 0


def exchanging(one, other):
    """Exchanges two names and exchanges them back, repeatedly. Returns the count."""
    n = 0
    while not stopped():
        for _ in range(2):
            with contextlib.suppress(OSError):
                exchange(one, other)
        n += 2
    return n


def moving(one, other):
    """Renames a file over another name and back, repeatedly. Returns the count."""
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
    gc.freeze()  # a collected object could close a number that is in use again
    os.closerange(3, pipe.fileno())
    os.closerange(pipe.fileno() + 1, 4096)
    if os.geteuid() == 0:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.umask(umask)
    os.chdir("/")
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; forgotten by setresuid
    _libc.prctl(4, 1)               # PR_SET_DUMPABLE: the user owns /proc/self
    while True:
        pipe.send([_outcome(call) for call in pipe.recv()])


class User:
    """A process with these ids, for the duration of the test. name: for messages."""

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
        """Starts the calls; finish() waits for them."""
        self._pipe.send(calls)

    def finish(self):
        """Returns the outcomes of the started calls."""
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
        """Runs a function that ends when stopped() until the end of the `with`, which receives a
        list for its result."""
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
    """Returns a temporary directory that all users may enter."""
    path = limetest.tempdir()
    os.chmod(path, 0o755)
    return path


def reach(test, path):
    """Skips a test if other users cannot enter its temporary directory."""
    above = path
    while above != "/":
        above = os.path.dirname(above)
        if not os.stat(above).st_mode & 0o001:
            test.skipTest(f"other users cannot enter {above}")


def let_in(path):
    """Allows others to read a temporary directory and to enter all those above it."""
    while len(path) > len("/tmp"):
        os.chmod(path, os.stat(path).st_mode | 0o055)
        path = os.path.dirname(path)


def open_device(test):
    """Allows ordinary users to mount until the end of the test, which needs root."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        test.skipTest("needs root and setpriv")
    mode = os.stat("/dev/fuse").st_mode & 0o777
    if not mode & 0o006:
        os.chmod("/dev/fuse", 0o666)
        test.addCleanup(os.chmod, "/dev/fuse", mode)


# A prefix that runs a program as an ordinary user without supplementary groups.
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
    """Creates a file with this owner and mode."""
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


class FileSnapshot:
    """The attributes and contents of a file, followed across renames. removable: any user may
    remove its name."""

    def __init__(self, path):
        self.path = path
        self.removable = os.stat(os.path.dirname(path)).st_mode & 0o1002 == 0o002
        self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._then = self._read_state()

    def close(self):
        os.close(self._fd)

    def _read_state(self):
        st = os.fstat(self._fd)
        state = {"owner": st.st_uid, "group": st.st_gid, "mode": oct(st.st_mode),
                 "attributes": {name: os.getxattr(self._fd, name)
                                for name in os.listxattr(self._fd)}}
        if stat.S_ISREG(st.st_mode):
            state["links"] = st.st_nlink
            state["bytes"] = st.st_size
            state["sum"] = hashlib.sha256(self.read()).hexdigest()[:16]
        else:
            state["names"] = sorted(os.listdir(self._fd))
        return {**state, "mtime": st.st_mtime_ns}

    def read(self):
        return os.pread(self._fd, os.fstat(self._fd).st_size, 0)

    def changes(self):
        """Returns the changes since the snapshot: {what: (then, now)}."""
        now = self._read_state()
        return {what: (then, now[what]) for what, then in self._then.items() if now[what] != then}


def word(code):
    """Returns the name of an errno for a message."""
    return errno.errorcode.get(code, str(code)) if code else "0"
