"""Attacks by a user of root's mount on another user's files.

Users can rename and exchange files in the tree below the mount. The victim owns files that no other
user may read or write; ann tries to get at them. She must not read or change a protected file, nor
become its owner; data whose write succeeded must be in her own files.

The tests force races: names change before each call of the daemon and of the ranks in turn
(faults.renames()). With STRESS, other processes also rename as fast as they can.
"""

import contextlib
import errno
import fcntl
import itertools
import json
import mmap
import os
import shutil
import signal
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import faults
import limetest
import mpitest
import users
import writelib
from pairs import pairwise
from writelib import MIB

VICTIM, ANN, GROUP = 54321, 54322, 54400  # ann is in GROUP
MARK = b"SECRET"
SECRET = MARK * 2000
JOB = ("ranks=2", "forward_from=1M", "extent=1M", "window=8M", "job_timeout=30")

TRIES = 30000  # calls while another process renames


def secret_container():
    return limetest.container([(MARK.decode() + "-type", SECRET), ("last", MARK * 100)])


def own_container(n=100):
    return limetest.container([("inner", b"m" * n), ("data", b"m" * n)])


# ---- calls that ann's process makes ----

_held = {}


def hold(name, path, flags=os.O_PATH):
    fd = os.open(path, flags)
    if name in _held:
        os.close(_held[name])
    _held[name] = fd


def close_held():
    for fd in _held.values():
        with contextlib.suppress(OSError):
            os.close(fd)
    _held.clear()


def at(name):
    """Return a path to the held file that does not depend on its name."""
    return f"/proc/self/fd/{_held[name]}"


def read_some(path, flags=0):
    with limetest.descriptor(path, os.O_RDONLY | flags) as fd:
        return os.read(fd, 1000)


def write_some(path, flags=0):
    with limetest.descriptor(path, os.O_WRONLY | flags, 0o666) as fd:
        os.write(fd, b"ann was here")
        os.fsync(fd)


def allocate(path):
    with limetest.descriptor(path, os.O_WRONLY) as fd:
        users.fallocate(fd, 0, 0, 1 << 20)


def make(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))


def write_held(data):
    fd = _held.pop("it")
    return write_through(fd, data)


def write_through(fd, data):
    """Return whether all writes, fsync() and close() succeeded."""
    try:
        for begin in range(0, len(data), 256 * 1024):
            writelib.write_all(fd, data[begin:begin + 256 * 1024])
        os.fsync(fd)
    except OSError:
        with contextlib.suppress(OSError):
            os.close(fd)
        return False
    try:
        os.close(fd)
    except OSError:
        return False
    return True


def describe(call):
    """Format a call for a message."""
    return " ".join(getattr(word, "__name__", str(word))[-24:] for word in call)


def call_repeatedly(count, *functions_and_args):
    """Make `count` calls in turn, ignoring OSError; return the first value that contains MARK."""
    found = []
    for i in range(count):
        function, *args = functions_and_args[i % len(functions_and_args)]
        with contextlib.suppress(OSError):
            value = function(*args)
            if MARK in repr(value).encode():
                found.append(f"{describe((function, *args))}: {value!r:.60}")
    return found[:1]


class TestCase(limetest.TestCase):
    """A tree, its users, and root's mount of the tree for all users."""

    OPTS = ()

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.job = "ranks=2" in self.OPTS
        if self.job:
            mpitest.need_job(self)
        self.top = users.open_directory()
        users.reach(self, self.top)
        self.faults = None  # faults of the last mount
        self.protected = []
        self.addCleanup(self.close_protected)
        self.ann = users.User(self, ANN, groups=[GROUP], name="ann")
        self.accomplice = users.User(self, ANN, groups=[GROUP], name="ann's accomplice")
        self.count = 0

    def under(self, *names):
        return os.path.join(self.top, *names)

    def shared_directory(self, mode=0o777):
        """Create a directory that is open to all users; return its name."""
        self.count += 1
        return os.path.basename(users.directory(self.under(f"both{self.count}"), 0, mode))

    def mounted(self, *opts, source=None):
        self.faults = faults.Faults(self.top)
        mount = writelib.Mount(source or self.top, timeout=60,
                               env=self.faults.environment(mpitest.environment()),
                               opts=["allow_other", *self.OPTS, *opts]).start()
        self.addCleanup(mount.stop)
        self.addCleanup(self.ann.attempt, close_held)
        if self.job:
            writelib.until(lambda: self.stats(mount)["job"]["state"] == "serving", 60)
        return mount

    def stats(self, mount):
        return json.loads(os.getxattr(mount.path, "user.limefs.stats"))

    def protect(self, path):
        self.protected.append(users.FileSnapshot(path))
        return path

    def close_protected(self):
        for file in self.protected:
            file.close()
        self.protected.clear()

    def harm(self):
        """Describe all changes of protected files but removals, which shared directories allow."""
        return [f"{os.path.relpath(file.path, self.top)}: {what}: {then!s:.60} -> {now!s:.60}"
                for file in self.protected for what, (then, now) in file.changes().items()
                if not (file.removable and what == "links" and now < then)]

    def assertUnharmed(self, what, found=()):
        """No protected file has changed, and `found` is empty."""
        harm = [*found, *self.harm()]
        self.close_protected()
        self.assertNone(harm, f"{what}: harm to the victim's files")

    def assertNone(self, found, what):
        """If `found` is not empty, fail with a line for each item."""
        if found:
            self.fail("\n".join([f"{what}:", *found]))


# ---- names that change after the kernel has cached them ----


def inside(path, name, function, *args):
    """Call the function on an entry of a directory or container."""
    return function(os.path.join(path, name), *args)


def symlink_in(path, name):
    os.symlink("nowhere", os.path.join(path, name))


def link_in(path, name):
    os.link(os.path.join(path, "../spare"), os.path.join(path, name))


def rename_in(path, name):
    os.rename(os.path.join(path, "../spare"), os.path.join(path, name))


def rename_out(path, name):
    os.rename(os.path.join(path, name), os.path.join(path, "../stolen"))


def listed(path):
    """List a directory by a descriptor."""
    with limetest.descriptor(path, os.O_RDONLY | os.O_DIRECTORY) as fd:
        return os.listdir(fd)


THEIRS = "user.theirs"  # any user may list it, but not read its value
ATTRIBUTES = [
    (os.chmod, 0o666), (os.chown, -1, GROUP), (os.utime,), (os.utime, (1, 1)),
    (os.setxattr, "user.ann", b"1"), (os.setxattr, users.ACL, users.acl(0o660, ANN, 7)),
    (os.removexattr, THEIRS), (os.getxattr, THEIRS), (os.listxattr,)]

# Calls by name or by descriptor that the kernel allows ann on her own files, and no others.
CALLS = {
    "file": ATTRIBUTES + [
        (os.chmod, 0o4755), (os.chown, ANN, ANN), (os.truncate, 0), (os.truncate, 100000),
        (read_some,), (read_some, os.O_DIRECT), (write_some,), (write_some, os.O_APPEND),
        (write_some, os.O_TRUNC), (write_some, os.O_DIRECT), (write_some, os.O_CREAT),
        (write_some, os.O_CREAT | os.O_TRUNC), (allocate,)],
    "container": ATTRIBUTES + [
        (listed,), (os.rmdir,),
        *((inside, name, function, *args) for name in ("data", "new", "002-data", "002-last")
          for function, *args in [
              (make,), (read_some,), (write_some,), (write_some, os.O_TRUNC), (os.unlink,),
              (write_some, os.O_APPEND), (write_some, os.O_CREAT), (os.truncate, 0),
              (os.utime, (1, 1)), (os.setxattr, "user.lime.type", b"anns")])],
    "directory": ATTRIBUTES + [
        (os.setxattr, users.DEFAULT_ACL, users.acl(0o660, ANN, 7)), (listed,),
        (symlink_in, "new"), (link_in, "new"), (link_in, "file"), (rename_in, "new"),
        (rename_in, "file"), (rename_in, "c.lime"), (rename_out, "file"), (rename_out, "c.lime"),
        (rename_out, "sub"), *((inside, *call) for call in [
            ("new", make), ("new", os.mkdir), ("new", os.mknod), ("new", write_some, os.O_CREAT),
            ("file", read_some), ("file", write_some), ("file", write_some, os.O_TRUNC),
            ("file", write_some, os.O_CREAT), ("file", write_some, os.O_CREAT | os.O_TRUNC),
            ("file", os.truncate, 0), ("file", os.chmod, 0o666), ("file", os.unlink),
            ("empty", os.unlink), ("sub", os.rmdir), ("sub/new", make),
            ("c.lime", listed), ("c.lime/data", read_some), ("c.lime/inner", read_some),
            ("c.lime/data", write_some, os.O_TRUNC), ("c.lime/inner", write_some, os.O_TRUNC),
            ("c.lime/new", make), ("c.lime/002-data", os.unlink), ("c.lime", os.unlink)])],
}
READS = (os.getxattr, read_some, listed)

# Calls by an open descriptor: they change the file that was opened.
BY_DESCRIPTOR = [
    (os.fchmod, 0o666), (os.fchown, -1, GROUP), (os.ftruncate, 0), (os.ftruncate, 100000),
    (os.utime, (1, 1)), (os.setxattr, "user.ann", b"1"),
    (os.setxattr, users.ACL, users.acl(0o660, ANN, 7)), (os.pwrite, b"ann was here", 0),
    (users.fallocate, 0, 0, 1 << 20)]


def by_held(function, *args):
    return function(at("it"), *args)


def by_descriptor(function, *args):
    value = function(_held["it"], *args)
    os.fsync(_held["it"])
    return value


class Pairs(TestCase):
    """Exchanges of a file of ann's with a file of the victim's."""

    def pair(self, kind, other, mode=0o777):
        """Create one of each in a shared directory; return the directory's name."""
        both = self.shared_directory(mode)
        users.put(self.under(both, "spare"), b"ann's", ANN)
        self.create(kind, self.under(both, "own"), ANN, 0o644)
        self.create(other, self.under(both, "theirs"), VICTIM, 0o600)
        return both

    def create(self, kind, path, uid, mode):
        """Create a file, container, directory or link; `mode`: whether others may read it."""
        theirs = uid == VICTIM
        if kind == "link":
            secret = users.put(os.path.join(users.open_directory(), "secret"), SECRET, 0, 0o600)
            os.symlink(self.protect(secret), path)
            return
        if "directory" in kind:
            self.directory(path, uid, 0o755 if kind == "open directory" or not theirs else 0o700)
        elif kind == "container":
            users.put(path, secret_container() if theirs else own_container(), uid, mode)
        else:
            users.put(path, SECRET if theirs else b"ann's", uid, mode)
        if theirs:
            os.setxattr(path, THEIRS, MARK)
            self.protect(path)

    def directory(self, path, uid, mode):
        """Create a directory with an entry of each kind."""
        users.directory(path, uid)
        users.directory(os.path.join(path, "sub"), uid)
        users.put(os.path.join(path, "empty"), b"", uid)
        for name, kind in (("file", "file"), ("c.lime", "container")):
            self.create(kind, os.path.join(path, name), uid, 0o644)
        if uid == VICTIM:
            users.put(os.path.join(path, MARK.decode()), b"", uid)
        os.chmod(path, mode)

    def swap(self, both):
        users.exchange(self.under(both, "own"), self.under(both, "theirs"))

    def swap_and_call(self, both, call):
        """Exchange the two names and make ann's call; return its errno and the harm, which includes
        a value with MARK."""
        self.swap(both)
        code, value = self.ann.batch([call])[0]
        return code, self.harm() + [f"read: {value!r:.60}"] * (MARK in repr(value).encode())

    def cache_names(self, path, kind):
        """Let ann look the names up, so that the kernel caches them."""
        names = {"container": ["002-data", "data"], "file": []}.get(
            kind, ["file", "empty", "sub", "c.lime", "c.lime/002-data"])
        calls = [(os.stat, path), *((os.stat, os.path.join(path, name)) for name in names)]
        self.assertEqual([code for code, _ in self.ann.batch(calls)], [0] * len(calls), path)


@limetest.needs_fuse
class Stale(Pairs):
    """The kernel has a name cached for attr_timeout, but it leads to another file by now."""

    def attack(self, mount, kind, others, calls, ways):
        found = []
        for call, other, way, job in pairwise(calls, others, ways, (False, True)):
            if job == self.job:
                found += [f"{describe(call)}: by {way}, of a {kind}, now a {other}: {line}"
                          for line in self.attack_once(mount, kind, other, call, way)[:1]]
        self.assertNone(found, f"{len(found)} kinds of harm")

    def attack_once(self, mount, kind, other, call, way):
        """Return the harm that one call does."""
        both = self.pair(kind, other)
        path = mount.join(both, "own")
        self.cache_names(path, kind)
        own = users.FileSnapshot(self.under(both, "own"))
        if way == "name":
            call = (call[0], path, *call[1:])
        else:
            self.ann.call(hold, "it", path, os.O_PATH if way == "path" else os.O_RDWR)
            call = (by_held if way == "path" else by_descriptor, *call)
        code, harm = self.swap_and_call(both, call)
        self.ann.call(close_held)
        if other == "open directory":
            harm = [line for line in harm if not line.startswith("read: ")]
        if way == "descriptor" and code == 0 and not own.changes():
            harm.append("acknowledged, but not done to her own")
        own.close()
        self.close_protected()
        return harm

    def test_files(self):
        self.attack(self.mounted("rw"), "file", ("file", "container", "link", "directory"),
                    CALLS["file"], ("name", "path"))

    def test_descriptors(self):
        self.attack(self.mounted("rw"), "file", ("file", "container", "link", "directory"),
                    BY_DESCRIPTOR, ("descriptor",))

    def test_containers(self):
        self.attack(self.mounted("rw"), "container", ("container", "file", "link", "directory"),
                    CALLS["container"], ("name", "path"))

    def test_directories(self):
        self.attack(self.mounted("rw"), "directory", ("directory", "open directory"),
                    CALLS["directory"], ("name", "path"))

    def test_reading_only(self):
        mount = self.mounted()
        for kind, calls in CALLS.items():
            with self.subTest(kind):
                reads = [call for call in calls if call[0] in READS or call[-1] in READS]
                self.attack(mount, kind, (kind,), reads, ("name", "path"))

    def test_new_containers(self):
        """The mount remembers the name of a container that ann has made by mkdir."""
        mount = self.mounted("rw")
        found = []
        for call, other, job in pairwise(CALLS["container"],
                                         ("file", "container", "link", "directory"), (False, True)):
            if job != self.job:
                continue
            both = self.pair("file", other)
            os.unlink(self.under(both, "own"))
            self.ann.call(os.mkdir, mount.join(both, "own"))
            _, harm = self.swap_and_call(both, (call[0], mount.join(both, "own"), *call[1:]))
            found += [f"{describe(call)}: of a new container, now a {other}: {line}"
                      for line in harm[:1]]
            self.close_protected()
        self.assertNone(found, f"{len(found)} kinds of harm")

    def test_open_records(self):
        """Data whose write was acknowledged are in ann's container even if its name has changed."""
        mount = self.mounted("rw")
        changes = {"data": (os.O_WRONLY, "in place"), "inner": (os.O_WRONLY | os.O_TRUNC, "cut"),
                   "new": (os.O_WRONLY | os.O_CREAT, "appended"),
                   "002-data": (os.O_WRONLY | os.O_APPEND, "grown")}
        for place in ("own", "own/c.lime"):
            kinds = ("container", "file", "link") if place == "own" else ("open directory",)
            for other in kinds:
                for name, (flags, how) in changes.items():
                    with self.subTest(how, place=place, other=other):
                        self.open_record(mount, place, other, name, flags)

    def open_record(self, mount, place, other, name, flags):
        both = self.pair("container" if place == "own" else "directory", other)
        own = os.open(self.under(both, place), os.O_RDONLY)
        self.addCleanup(os.close, own)
        self.ann.call(hold, "it", mount.join(both, place, name), flags)
        self.swap(both)
        data = b"what ann has written" * 100
        acknowledged = self.ann.call(write_held, data)
        self.ann.call(close_held)
        self.assertUnharmed("an open record was written")
        path = self.under(both, place.replace("own", "theirs"))  # ann may have rewritten it
        found = os.pread(own, 1 << 20, 0) + (writelib.read(path) if os.path.isfile(path) else b"")
        if acknowledged:
            self.assertIn(data, found, "acknowledged, but not in her own container")


@limetest.needs_fuse
class Alone(Pairs):
    def test_a_container_mounted_alone(self):
        """A mount of one container in a shared directory depends on a name, too."""
        found = []
        others = ("container", "file", "link", "directory")
        for call, other in pairwise(CALLS["container"], others) if limetest.STRESS else \
                zip(CALLS["container"], itertools.cycle(others)):
            both = self.pair("container", other)
            with self.mounted("rw", source=self.under(both, "own")) as mount:
                self.ann.batch([(os.stat, mount.path), (os.stat, mount.join("002-data"))])
                _, harm = self.swap_and_call(both, (call[0], mount.path, *call[1:]))
            found += [f"{describe(call)}: now a {other}: {line}" for line in harm[:1]]
            self.close_protected()
        self.assertNone(found, f"{len(found)} kinds of harm")


class StaleWithJob(Stale):
    OPTS = JOB


# ---- creation of names, and races of all these calls ----


def create_and_read(path, flags):
    """Create or open a file, and return its content."""
    with limetest.descriptor(path, os.O_RDWR | os.O_CREAT | flags, 0o600) as fd:
        return os.read(fd, 1000)


def remove_own(path):
    """Remove ann's own file, so that it can be created again."""
    if os.lstat(path).st_uid == ANN:
        os.unlink(path)


@limetest.needs_fuse
class Races(Pairs):
    def call_during_renames(self, user, loop, names, calls):
        """Return what ann reads of others' data by calls while `names` change: for each of them,
        before each call of the daemon in turn."""
        theirs, flags = os.stat(names[0], follow_symlinks=False).st_ino, \
            users.RENAME_EXCHANGE if loop == users.exchanging else 0
        found = []
        for call in calls:
            for _ in self.faults.renames(*names, flags):
                found += self.ann.call(call_repeatedly, 1, call)
                self.faults.disarm()
                self.put_back(*names, theirs, flags)
        if limetest.STRESS:
            with user.busy(loop, *names):
                found += self.ann.call(call_repeatedly, TRIES, *calls)
        return found[:1]

    def put_back(self, one, other, number, flags):
        """Give the name `one` back to the inode `number`, and free `other` if flags is 0. An armed
        call can still rename, so the file gets a third name before it is examined and removed."""
        if flags:
            if os.lstat(other).st_ino == number:
                users.rename2(other, one, flags)
            return
        moved = other + ".moved"
        with contextlib.suppress(FileNotFoundError):
            os.rename(other, moved)
            found = os.lstat(moved)
            if found.st_ino == number:
                os.rename(moved, one)
            elif stat.S_ISDIR(found.st_mode):
                os.rmdir(moved)
            else:
                os.unlink(moved)

    def create_names(self, mode, loop, user):
        """A file of the victim's gets a name that ann creates; the mount must not open it for ann.
        With entry_timeout=0 the kernel looks the name up each time."""
        mount = self.mounted("rw", "entry_timeout=0")
        for way, (function, *args) in {
                "create": (create_and_read, 0), "create and empty": (create_and_read, os.O_TRUNC),
                "create exclusively": (create_and_read, os.O_EXCL), "mkdir": (os.mkdir,),
                "mknod": (os.mknod,), "symlink": (os.symlink,), "link": (os.link,)}.items():
            with self.subTest(way):
                both = self.pair("file", "file", mode)
                path = mount.join(both, "name")
                others = {"symlink": ["nowhere"], "link": [mount.join(both, "own")]}.get(way, [])
                names = self.under(both, "theirs"), self.under(both, "name")
                calls = [(function, *others, path, *args), (remove_own, names[1])]
                found = self.call_during_renames(user, loop, names,
                                                 calls[:1 if mode == 0o777 else 2])
                self.assertUnharmed(way, found)

    def test_create_names(self):
        self.create_names(0o777, users.moving, self.accomplice)

    def test_create_names_in_a_sticky_directory(self):
        """The victim's own program renames, because the sticky bit prevents ann from it."""
        victim = users.User(self, VICTIM, name="victim")
        self.create_names(0o1777, users.moving, victim)

    def test_exchanged_names(self):
        mount = self.mounted("rw")
        natively = (os.rmdir, rename_in, rename_out)  # ann can do these below the mount as well
        for kind, other in (
                ("file", "file"), ("file", "link"), ("container", "container"),
                ("container", "file"), ("directory", "directory"), ("file", "container")):
            calls = [call for call in CALLS[kind] if call[0] not in natively]
            if not limetest.STRESS:  # RacesWithJob makes the other half
                calls = calls[self.job::2]
            for call in calls:
                with self.subTest(f"{kind} and {other}", call=describe(call)):
                    both = self.pair(kind, other)
                    self.ann.call(hold, "it", mount.join(both, "own"))
                    names = self.under(both, "own"), self.under(both, "theirs")
                    found = self.call_during_renames(self.accomplice, users.exchanging, names,
                                                     [(by_held, *call)])
                    self.ann.call(close_held)
                    self.assertUnharmed("a race", found)


class RacesWithJob(Races):
    OPTS = JOB


# ---- attacks without a race ----


def fill(path, nbytes, flags):
    """Write until an error; return whether all bytes were written."""
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    return write_through(fd, bytes(nbytes))


def fill_by_allocating(path, nbytes):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        for at in range(0, nbytes, MIB):
            users.fallocate(fd, 0, at, MIB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def fill_by_mapping(path, nbytes):
    """Write by a mapping, whose pages the kernel writes later."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(fd, nbytes)
        with mmap.mmap(fd, nbytes) as pages:
            for i in range(0, nbytes, mmap.PAGESIZE):
                pages[i] = 1
            pages.flush()
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)
    return True


def sync(path):
    with limetest.descriptor(path, os.O_RDONLY) as fd:
        users.syncfs(fd)


def link_held(path):
    os.link(at("it"), path, src_dir_fd=_held["it"])  # makes it follow the link in /proc


@limetest.needs_fuse
class Ownership(Pairs):
    """Owners, limits and permissions are the same through the mount as natively."""

    def test_a_container_in_a_setgid_directory(self):
        users.directory(self.under("mounted"), 0, 0o2770, GROUP)
        mount = self.mounted("rw")
        self.assertEqual(self.ann.attempt(os.mkdir, mount.join("mounted/c.lime")), 0)
        found = os.stat(self.under("mounted/c.lime"))
        self.assertEqual((found.st_uid, found.st_gid), (ANN, GROUP))

    def fill_all_ways(self, fs, room, violations):
        """ann cannot exceed her limit in any way; violations() describes an excess."""
        os.chmod(os.path.dirname(fs.path), 0o755)
        os.chmod(fs.path, 0o777)
        mount = self.mounted("rw", source=fs.path)
        found = []
        for i, (function, name, *flags) in enumerate([
                (fill, "file", os.O_CREAT), (fill, "file", os.O_CREAT | os.O_DIRECT),
                (fill_by_allocating, "file"), (fill_by_mapping, "file"),
                (fill, "c.lime/new", os.O_CREAT), (fill, "c.lime/new", os.O_CREAT | os.O_DIRECT),
                (fill, "c.lime/data", os.O_APPEND), (fill, "c.lime/inner", os.O_TRUNC)]):
            directory = users.directory(fs.join(str(i)), ANN)
            users.put(os.path.join(directory, "c.lime"), own_container(), ANN)
            code, all_of_it = self.ann.batch(
                [(function, mount.join(str(i), name), room + 2 * MIB, *flags)])[0]
            sync(fs.path)
            what = f"{describe((function, *flags))}: {name}"
            self.assertEqual(users.word(code), "0", what)
            found += [f"{what}: {wrong}" for wrong in ["acknowledged"] * all_of_it + violations()]
            shutil.rmtree(directory)
            if found:  # the space might stay in use
                break
            writelib.until(lambda: fs.free() > room - MIB)
        self.assertNone(found, "more than her limit")

    def test_blocks_for_root(self):
        """ext4 reserves blocks for root, which ann must not use."""
        fs = writelib.SmallFs(self, "ext4", 32, features=["-m", "30"])
        found = os.statvfs(fs.path)
        reserved = (found.f_bfree - found.f_bavail) * found.f_frsize
        self.assertGreater(reserved, 4 * MIB)

        def violations():
            found = os.statvfs(fs.path)
            free = found.f_bfree * found.f_frsize
            return [f"{free} of {reserved} bytes left"] if free < reserved - 256 * 1024 else []

        self.fill_all_ways(fs, fs.free(), violations)

    def test_quota(self):
        limit = 4 * MIB
        fs = writelib.SmallFs(self, "ext4", 64, "usrquota", ["-O", "quota", "-E",
                                                             "quotatype=usrquota"])
        fs.limit(writelib.USER, ANN, limit)

        def violations():
            blocks = sum(os.lstat(os.path.join(path, name)).st_blocks * 512
                         for path, _, names in os.walk(fs.path) for name in names)
            return [f"{blocks} bytes"] if blocks > limit + 64 * 1024 else []

        self.fill_all_ways(fs, limit, violations)

    def test_hard_links(self):
        """As natively, ann can link only files that she owns or may write (protected_hardlinks)."""
        mount = self.mounted("rw")
        for kind in ("file", "container"):
            both = self.pair(kind, kind)
            os.chmod(self.under(both, "theirs"), 0o644)
            self.close_protected()
            self.protect(self.under(both, "theirs"))
            self.ann.call(hold, "it", self.under(both, "theirs"))
            natively = self.ann.attempt(link_held, self.under(both, "link"))
            self.ann.call(hold, "it", mount.join(both, "theirs"))
            for call in ((os.link, mount.join(both, "theirs"), mount.join(both, "link")),
                         (link_held, mount.join(both, "link"))):
                code = self.ann.attempt(*call)
                self.assertTrue(code, f"{kind}: natively {users.word(natively)}")
            self.ann.call(hold, "it", mount.join(both, "own"))
            self.swap(both)
            self.ann.attempt(link_held, mount.join(both, "link"))
            self.assertUnharmed(kind)

    def test_a_mode_that_has_just_changed(self):
        """The kernel still has the old mode cached; the daemon checks the new one."""
        mount = self.mounted("rw")
        both = self.shared_directory()
        users.put(self.under(both, "file"), SECRET, VICTIM)
        users.put(self.under(both, "c.lime"), secret_container(), VICTIM)
        self.directory(self.under(both, "directory"), VICTIM, 0o755)
        names = ("file", "c.lime", "directory", "c.lime/002-last", "directory/file",
                 "directory/sub", "directory/c.lime/002-last")
        self.assertEqual([self.ann.attempt(os.stat, mount.join(both, name)) for name in names],
                         [0] * len(names))
        for name in names[:3]:
            os.chmod(self.under(both, name), 0o700 if name == "directory" else 0o600)
        for name in names[:4]:
            function = read_some if name in ("file", "c.lime/002-last") else listed
            self.assertEqual(users.word(self.ann.attempt(function, mount.join(both, name))),
                             "EACCES", name)
        for name in names[4:]:  # the kernel has these paths cached
            call = (listed if name == "directory/sub" else read_some, mount.join(both, name))
            writelib.until(lambda: self.ann.attempt(*call) == errno.EACCES)

    def test_names_cached_for_another_user(self):
        """The kernel has cached names for root in a directory that ann may not search."""
        mount = self.mounted("rw")
        self.directory(self.under("closed"), VICTIM, 0o700)
        names = ("file", "c.lime/002-last", "sub", "c.lime")
        self.ann.call(hold, "it", mount.join("closed"))
        for name in names:
            os.stat(mount.join("closed", name))
        found = []
        for name in names:
            functions = [os.stat, read_some if name in names[:2] else listed]
            for way, path in (("name", mount.join("closed", name)), ("path", name)):
                for function in functions:
                    call = (function, path) if way == "name" else (by_held, inside, path, function)
                    code, value = self.ann.batch([call])[0]
                    if code != errno.EACCES:
                        found.append(f"{describe(call)}: {users.word(code)} {value!r:.60}")
        self.assertNone(found, "calls without EACCES")


def lease_all(paths):
    """Take write leases: other processes wait for lease-break-time to open the files."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    for path in paths:
        fd = os.open(path, os.O_RDWR)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        _held[path] = fd


class Traces(TestCase):
    """Remains of other users' files, and files that the daemon creates for them."""

    def create_with_inode_of(self, path, deleted):
        """Create a file with the inode number and times of a deleted one, once the daemon has
        closed that; return False if the number is not used again."""
        for _ in range(2000):
            users.put(path + ".new", bytes(deleted.st_size), ANN)
            if os.stat(path + ".new").st_ino == deleted.st_ino:
                os.utime(path + ".new", ns=(deleted.st_atime_ns, deleted.st_mtime_ns))
                os.rename(path + ".new", path)
                return True
            os.unlink(path + ".new")
        return False

    def test_pages_of_a_deleted_file(self):
        victim = users.User(self, VICTIM, name="victim")
        for opts in ("ro", "rw"):
            mount = self.mounted(opts)
            both = self.shared_directory()
            path = users.put(self.under(both, "file"), SECRET, VICTIM, 0o600)
            self.assertEqual(victim.call(read_some, mount.join(both, "file")), SECRET[:1000])
            self.ann.call(hold, "it", mount.join(both, "file"), os.O_PATH)
            deleted = os.stat(path)
            os.unlink(path)
            if not self.create_with_inode_of(path, deleted):
                self.skipTest("the file system does not reuse inode numbers at once")
            writelib.until(lambda: self.ann.attempt(read_some, mount.join(both, "file")) == 0)
            self.assertEqual(self.ann.call(read_some, mount.join(both, "file")), bytes(1000), opts)

    def test_leases(self):
        """A lease affects only opens of the leased file, which soon fail with EAGAIN."""
        mount = self.mounted("rw")
        users.directory(self.under("ann"), ANN)
        paths = [users.put(self.under("ann", f"c{i}"), own_container(), ANN) for i in range(12)]
        users.put(self.under("file"), b"public")
        for path in paths:
            self.ann.call(os.stat, mount.join("ann", os.path.basename(path)))
        self.ann.call(lease_all, paths)
        others = [users.User(self, 54330 + i) for i in range(len(paths))]
        for user, path in zip(others, paths):
            user.start((os.listdir, mount.join("ann", os.path.basename(path))))
        for user in others:  # long before /proc/sys/fs/lease-break-time ends
            self.assertEqual(users.word(user.finish()[0][0]), "EAGAIN")
        self.assertEqual(self.accomplice.call(read_some, mount.join("file")), b"public")

    def test_a_saved_tail(self):
        """A user without access to the container cannot read its saved tail."""
        mount = self.mounted("rw")
        both = self.shared_directory()
        other = users.User(self, 54330, name="other")
        path = users.put(self.under(both, "c"), own_container() + b"\1SECRET TAIL", ANN,
                         0o640, GROUP)
        os.setxattr(self.under(both), users.DEFAULT_ACL, users.acl(0o777, 54330, 7))
        self.assertNotEqual(other.attempt(read_some, path), 0)
        self.ann.call(write_some, mount.join(both, "c/data"))
        saved = [name for name in os.listdir(self.under(both)) if name.startswith("c.cut-")]
        self.assertEqual(len(saved), 1)
        found = os.stat(self.under(both, saved[0]))
        self.assertEqual((found.st_uid, found.st_gid), (ANN, GROUP))
        self.assertEqual(users.word(other.attempt(read_some, self.under(both, saved[0]))), "EACCES")

    def test_the_temporary_name_of_a_container(self):
        mount = self.mounted("rw")
        both = self.shared_directory(0o1777)
        users.put(self.under(both, "c"), own_container(), ANN)
        self.protect(users.put(self.under(both, ".c.limefs-new"), SECRET, VICTIM, 0o600))
        self.ann.call(os.truncate, mount.join(both, "c/inner"), 1000)
        self.assertEqual(os.stat(self.under(both, "c")).st_uid, ANN)
        self.assertUnharmed("a container is rewritten")
        self.assertTrue(os.path.exists(self.under(both, ".c.limefs-new")))

    def test_a_mount_by_an_ordinary_user(self):
        """Other users read what the modes allow, and cannot change anything."""
        directory = users.directory(self.under("files"), 65534)
        point = users.directory(self.under("mnt"), 65534)
        users.put(os.path.join(directory, "c"), own_container(), 65534, 0o666)
        script = ("as_user 65534 $0/bin/limefs -o rw,allow_other $1 $2 && cd $2 &&"
                  "as_user 54322 sh -c 'wc -c <c/data; echo x >new; echo x >c/data; rm c/data; "
                  "chmod 777 c; mkdir d'; as_user 65534 sh -c 'echo x >new; ls'; cd /; umount $2")
        done = users.run_with_private_fuse(self, script, directory, point)
        errors = done.stderr.decode()
        self.assertEqual(done.stdout.decode().split(), ["100", "c", "new"], errors)
        self.assertEqual(errors.count("ermission denied") + errors.count("Is a directory") +
                         errors.count("not permitted"), 5, errors)


class OwnershipWithJob(Ownership):
    OPTS = JOB


if __name__ == "__main__":
    limetest.main()
