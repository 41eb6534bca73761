"""Exports: files in other formats that a mount shows in addition to a field's record."""

import ast
import ctypes
import errno
import mmap
import os
import random
import shutil
import stat
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import scidac
import users
import writelib
from writelib import opened, put, read

DIMS = (4, 3, 2, 5)  # x, y, z, t
LISTED = (".npy", ".h5", ".zarr", ".t", ".le.npy", ".f4.npy", ".f8.npy", ".eo.npy", ".nersc",
          ".milc", ".openqcd")


def numpy_of(raw):
    """Returns header and data of a .npy file, parsed by the description of format 1.0."""
    assert raw[:8] == b"\x93NUMPY\x01\x00", raw[:8]
    length, = struct.unpack("<H", raw[8:10])
    assert (10 + length) % 64 == 0
    return ast.literal_eval(raw[10:10 + length].decode()), raw[10 + length:]


def gauge(dims=DIMS, precision=64, seed=1):
    """Returns metadata and data of a configuration of real numbers without NaN."""
    count = dims[0] * dims[1] * dims[2] * dims[3] * 72
    dice = random.Random(seed)
    data = struct.pack(f">{count}{'d' if precision == 64 else 'f'}",
                       *(dice.uniform(-1, 1) for _ in range(count)))
    return scidac.ildg_format(dims, precision), data


def configuration(dims=DIMS, precision=64, seed=1, checksum=None):
    form, data = gauge(dims, precision, seed)
    items = [("ildg-format", form), ("ildg-binary-data", data)]
    if checksum:
        items.append(("scidac-checksum", scidac.checksum_xml(checksum)))
    return limetest.container(items)


def converted(data, precision, to, little):
    count = len(data) // (precision // 8)
    letters = {32: "f", 64: "d"}
    numbers = struct.unpack(f">{count}{letters[precision]}", data)
    return struct.pack(f"{'<' if little else '>'}{count}{letters[to]}", *numbers)


@limetest.needs_fuse
class TestCase(limetest.TestCase):
    def check_reads(self, path, whole):
        """Reads the whole file, and parts at odd offsets by pread and through a mapping."""
        self.assertTrue(read(path) == whole, path)
        dice = random.Random(len(whole))
        self.assertEqual(os.stat(path).st_size, len(whole))
        with open(path, "rb") as file, \
                mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
            for _ in range(20):
                at, n = dice.randrange(len(whole) + 10), dice.choice([1, 7, 63, 4097, 200001])
                self.assertEqual(os.pread(file.fileno(), n, at), whole[at:at + n], (path, at, n))
                self.assertEqual(mapped[at:at + n], whole[at:at + n], (path, at, n))
        with limetest.descriptor(path, os.O_RDONLY | os.O_DIRECT) as direct:
            space = mmap.mmap(-1, (len(whole) + 8191) // 4096 * 4096)
            got = os.preadv(direct, [space], 0)
            self.assertEqual(space[:got], whole[:got], path)


class Content(TestCase):
    def test_same_as_lime_cat(self):
        """Each export, of the corpus and of a lattice with odd extents, is what lime cat prints,
        which tests/tool/test_exports.py checks. (test_whole.py has whole configurations.)"""
        paths = {row["path"] for row in limetest.manifest()}
        seen = 0
        for path in (*paths, *(self.write("conf", configuration(precision=n)) for n in (32, 64))):
            with self.subTest(path), limetest.Mount(path, opts="faces") as mount:
                files = [os.path.join(directory, name) for directory, _, names in os.walk(mount)
                         for name in names if not name.endswith((".nersc", ".milc", ".openqcd"))]
                for file in files:
                    whole = self.run_ok(["lime", "cat", path, os.path.relpath(file, mount)])
                    self.check_reads(file, whole)
                    seen += file.endswith(".npy")
        self.assertGreater(seen, 40)


class Names(TestCase):
    def setUp(self):
        self.path = self.write("conf", configuration())

    def listed(self, mount, *names):
        return sorted(os.listdir(mount.join(*names)))

    def test_found_and_not_listed(self):
        with limetest.Mount(self.path) as mount:
            self.assertEqual(self.listed(mount), ["001-ildg-format", "002-ildg-binary-data"])
            for name in ("ildg-format.npy", "ildg-binary-data.foo", "ildg-binary-data.npy.npy",
                         ".npy", ".t", "ildg-binary-data.le.f4.npy", "003-ildg-binary-data.npy",
                         "ildg-binary-data.t/005", "ildg-binary-data.t/00", "no.zarr",
                         "ildg-binary-data.zarr/nothing", "x" * 255, "x" * 251 + ".npy"):
                self.assertErrno(errno.ENOENT, os.stat, mount.join(name))
            self.assertErrno(errno.ENOTDIR, os.stat, mount.join("ildg-binary-data.npy/x"))
            self.assertErrno(errno.ENOTDIR, os.listdir, mount.join("ildg-binary-data.t/000"))
            one, other = (os.stat(mount.join(f"{stem}ildg-binary-data.npy"))
                          for stem in ("", "002-"))
            self.assertEqual(one, other)

    def test_listed(self):
        with limetest.Mount(self.path, opts="faces") as mount:
            names = self.listed(mount)
            self.assertEqual(names[:2], ["001-ildg-format", "002-ildg-binary-data"])
            exports = names[2:]
            self.assertTrue(all(n.startswith("002-ildg-binary-data.") for n in exports))
            self.assertTrue({n[len("002-ildg-binary-data"):] for n in exports} <= set(LISTED))
            self.assertGreaterEqual(len(exports), 6)
            self.assertLessEqual({"002-ildg-binary-data.nersc", "002-ildg-binary-data.milc"},
                                 {*exports})
            for entry in os.scandir(mount.path):
                found = os.stat(entry.path)
                self.assertEqual(entry.inode(), found.st_ino, entry.name)
                self.assertEqual(entry.is_dir(), stat.S_ISDIR(found.st_mode), entry.name)
            long = self.run_ok(["ls", "-lR", mount.path]).decode()
            self.assertIn("002-ildg-binary-data.f4.npy", long)
            found = self.run_ok(["find", mount.path, "-type", "f"]).decode().splitlines()
            self.assertGreater(len(found), len(names) + DIMS[3])
            for path in found:
                read(path)

    def test_attributes(self):
        """Exports have the container's attributes, read-only, and unique, stable inode numbers."""
        os.chmod(self.path, 0o640)
        os.utime(self.path, (1000, 2000))
        directory = os.path.dirname(self.path)
        for opts in ("faces", "faces,ino32", "faces,rw"):
            for source in (self.path, directory):
                seen = []
                for _ in range(2):
                    with limetest.Mount(source, opts=opts) as mount:
                        top = mount.join("conf") if source == directory else mount.path
                        seen.append({})
                        for where, directories, names in os.walk(top):
                            for name in directories + names:
                                path = os.path.join(where, name)
                                seen[-1][os.path.relpath(path, top)] = os.lstat(path)
                self.assertEqual({n: s.st_ino for n, s in seen[0].items()},
                                 {n: s.st_ino for n, s in seen[1].items()})
                numbers = [found.st_ino for found in seen[0].values()]
                self.assertEqual(len(set(numbers)), len(numbers))
                if "ino32" in opts:
                    self.assertLess(max(numbers), 1 << 32)
                for name, found in seen[0].items():
                    if name.count("-") == 2 and "." not in name:
                        continue
                    if "." in name:
                        self.assertEqual(stat.S_IMODE(found.st_mode),
                                         0o550 if stat.S_ISDIR(found.st_mode) else 0o440, name)
                    self.assertEqual(found.st_mtime, 2000, name)

    def test_a_record_wins(self):
        """A record whose own name is an export's hides the export."""
        form, data = gauge()
        other = ("ildg-binary-data.npy", b"my own")
        path = self.write("conf", limetest.container([("ildg-format", form),
                                                      ("ildg-binary-data", data), other]))
        with limetest.Mount(path, opts="faces") as mount:
            self.assertEqual(read(mount.join("ildg-binary-data.npy")), b"my own")
            self.assertEqual(numpy_of(read(mount.join("002-ildg-binary-data.npy")))[1], data)
            self.assertEqual(len(self.listed(mount)), len(set(self.listed(mount))))
        with limetest.Mount(path, opts="rw") as mount:
            npy = mount.join("ildg-binary-data.npy")
            self.assertErrno(errno.EPERM, os.rename, npy, mount.join("y"))
            self.assertErrno(errno.EROFS, os.rename, mount.join(
                             "002-ildg-binary-data.npy"), mount.join("y"))

    def test_cached_names(self):
        """A new record replaces an export of its name, and a name that did not exist."""
        with limetest.Mount(self.path, opts="entry_timeout=0.05") as mount:
            self.assertEqual(numpy_of(read(mount.join("ildg-binary-data.npy")))[1], gauge()[1])
            self.assertErrno(errno.ENOENT, os.stat, mount.join("x.npy"))
            put(self.path, limetest.container([("ildg-binary-data.npy", b"new"), ("x.npy", b"x")]),
                "ab")
            writelib.until(lambda: read(mount.join("ildg-binary-data.npy")) == b"new")
            self.assertEqual(read(mount.join("x.npy")), b"x")
        with limetest.Mount(self.path, opts="rw") as mount:
            os.unlink(mount.join("x.npy"))
            os.unlink(mount.join("ildg-binary-data.npy"))
            self.assertErrno(errno.ENOENT, os.stat, mount.join("x.npy"))
            self.assertEqual(numpy_of(read(mount.join("ildg-binary-data.npy")))[1], gauge()[1])
            put(mount.join("003-ildg-binary-data.npy"), b"again")
            self.assertEqual(read(mount.join("ildg-binary-data.npy")), b"again")

    def test_many(self):
        """Offsets in a directory stay valid, whatever the order of reads."""
        form, data = gauge((2, 2, 2, 2), 32)
        path = self.write("many", limetest.container(
            [[("ildg-format", form), ("ildg-binary-data", data)] for _ in range(700)]))
        libc = ctypes.CDLL(None)
        libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
        libc.telldir.restype = ctypes.c_long
        for name in ("readdir", "telldir", "closedir", "rewinddir"):
            getattr(libc, name).argtypes = [ctypes.c_void_p]
        libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]

        def next_name(directory):
            entry = libc.readdir(directory)  # d_name is at offset 19
            return ctypes.string_at(entry + 19).decode() if entry else None

        with limetest.Mount(path, opts="faces") as mount:
            names = os.listdir(mount.path)
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual(len(names) % 700, 0)
            self.assertGreaterEqual(len(names), 700 * 8)
            self.assertTrue(all("." not in n for n in names[:1400]))
            directory = libc.opendir(os.fsencode(mount.path))
            places, at = {}, libc.telldir(directory)
            while name := next_name(directory):
                places[name], at = at, libc.telldir(directory)
            self.assertEqual(set(places) - {".", ".."}, set(names))
            dice = random.Random(4)
            for name in dice.sample(sorted(places), 200):
                libc.seekdir(directory, places[name])
                self.assertEqual(next_name(directory), name)
            libc.rewinddir(directory)
            self.assertEqual(next_name(directory), ".")
            libc.closedir(directory)

    def test_hostile(self):
        """A million time slices, more sites than bytes, and metadata that are not XML."""
        with limetest.Mount(self.sparse((1, 1, 1, 1000000)), opts="faces") as mount:
            with os.scandir(mount.join("ildg-binary-data.t")) as names:
                first = [next(names).name for _ in range(1000)]
            self.assertEqual(sorted(first)[0].lstrip("0"), "")
            last = "999999".rjust(len(first[0]), "0")
            self.assertEqual(os.stat(mount.join("ildg-binary-data.t", last)).st_size, 288)
        for text in (scidac.ildg_format((1 << 20, 1 << 20, 1 << 20, 1 << 20)), b"<nothing",
                     scidac.ildg_format((0, 0, 0, 0)), b"\0" * 300):
            path = self.write("bad", limetest.container([("ildg-format", text),
                                                         ("ildg-binary-data", b"z" * 5760)]))
            with limetest.Mount(path, opts="faces") as mount:
                self.assertEqual(len(os.listdir(mount.path)), 2)
                for suffix in LISTED:
                    self.assertErrno(errno.ENOENT, os.stat, mount.join("ildg-binary-data" + suffix))

    def sparse(self, dims):
        """Creates a configuration without data blocks on the disk, of any size."""
        form = scidac.ildg_format(dims, 32)
        path = self.write("sparse", limetest.record("ildg-format", form, True, False))
        nbytes = dims[0] * dims[1] * dims[2] * dims[3] * 288
        with open(path, "ab") as file:
            file.write(limetest.header("ildg-binary-data", nbytes, False, True))
            file.truncate(file.tell() + nbytes)
        return path

    def test_more_slices_than_can_be_listed(self):
        """limefs lists the directory above them anyway."""
        with limetest.Mount(self.sparse((1, 1, 1, 1 << 31))) as mount:
            names = limetest.run(["ls", "-A", mount.join("ildg-binary-data.zarr")], timeout=60)
            self.assertEqual(sorted(names.stdout.split()),
                             [b".zattrs", b".zgroup", b".zmetadata", b"field"])

    def test_the_only_configuration(self):
        """conf.* is the only SU(3) field; fields of other groups do not count."""
        form, data = gauge((2, 2, 2, 4), 64)
        su3 = [("ildg-format", form), ("ildg-binary-data", data)]
        u1 = [("ildg-format", form.replace(b"su3", b"u1")),
              ("ildg-binary-data", data[:len(data) // 9])]
        for messages, number in (([su3, u1], "002"), ([u1, su3], "004"), ([su3, su3], None),
                                 ([u1], None)):
            path = self.write("several", limetest.container(messages))
            with limetest.Mount(path) as mount:
                for suffix in (".nersc", ".milc", ".openqcd"):
                    whole = mount.join("conf" + suffix)
                    if number:
                        record = mount.join(f"{number}-ildg-binary-data{suffix}")
                        self.assertEqual(read(whole), read(record))
                    else:
                        self.assertErrno(errno.ENOENT, os.stat, whole)

    def test_a_lattice_that_is_long_in_x(self):
        """A few of its planes exceed the memory that a pass usually takes."""
        with limetest.Mount(self.sparse((100000, 2, 2, 2))) as mount:
            for name, head in ("conf.nersc", b"BEGIN_HEADER"), ("conf.milc", b"\x87N\0\0"):
                with open(mount.join(name), "rb") as whole:
                    self.assertEqual(whole.read(len(head)), head)

    def test_names_of_255_bytes(self):
        form, data = gauge((2, 2, 2, 2), 32)
        with limetest.Mount(self.write("conf", limetest.container([
                ("ildg-format", form), ("ildg-binary-data", data),
                ("\x01" * 100, b"x")])), opts="faces") as mount:
            self.assertTrue(all(len(os.fsencode(name)) <= 255 for name in os.listdir(mount.path)))


class Refused(TestCase):
    """Calls that would change an export fail."""

    def calls(self, mount, base):
        npy, directory = os.path.join(base, "ildg-binary-data.npy"), \
            os.path.join(base, "ildg-binary-data.t")
        other = os.path.join(base, "new")
        return [(os.open, npy, os.O_WRONLY), (os.open, npy, os.O_RDWR),
                (os.open, npy, os.O_WRONLY | os.O_TRUNC), (os.truncate, npy, 10),
                (os.unlink, npy), (os.rename, npy, other), (os.rmdir, directory),
                (os.rename, directory, other), (os.chmod, npy, 0o666), (os.utime, npy),
                (os.chmod, directory, 0o777), (os.mkdir, os.path.join(directory, "x")),
                (os.open, os.path.join(directory, "x"), os.O_WRONLY | os.O_CREAT),
                (os.unlink, os.path.join(directory, "000")),
                (os.open, os.path.join(directory, "000"), os.O_RDWR),
                (os.rename, os.path.join(directory, "000"), os.path.join(directory, "x")),
                (os.rename, os.path.join(base, "001-ildg-format"), os.path.join(directory, "x")),
                (os.symlink, "x", os.path.join(directory, "x")),
                (os.mkfifo, os.path.join(directory, "x")),
                (os.setxattr, npy, "user.lime.type", b"x"),
                (os.setxattr, npy, "user.mine", b"x"),
                (os.removexattr, npy, "user.mine")]

    def test_by_root_and_owner(self):
        path = self.write("conf", configuration())
        before = read(path)
        for opts in ("rw", "ro"):
            for source in (path, os.path.dirname(path)):
                with limetest.Mount(source, opts=opts) as mount:
                    base = mount.path if source == path else mount.join("conf")
                    for call in self.calls(mount, base):
                        self.assertErrno((errno.EROFS, errno.EACCES, errno.EPERM), *call)
                    if os.geteuid() == 0:
                        for call in self.calls(mount, base)[:6]:
                            self.assertErrno(errno.EROFS, *call)
                    npy = os.path.join(base, "ildg-binary-data.npy")
                    self.assertErrno(errno.EEXIST, os.open, npy,
                                     os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                    self.assertErrno((errno.EPERM, errno.EROFS), os.link, npy,
                                     os.path.join(base, "x"))
                    self.assertEqual(len(os.listdir(base)), 2)
        self.assertEqual(read(path), before)

    def test_extended_attributes(self):
        path = self.write("conf", configuration())
        for opts in ("rw", "ro"):
            with limetest.Mount(path, opts=opts) as mount:
                npy = mount.join("ildg-binary-data.npy")
                self.assertEqual(os.listxattr(npy), [])
                self.assertErrno(errno.ENODATA, os.getxattr, npy, "user.lime.type")
                self.assertErrno(errno.ENODATA, os.getxattr, npy, "user.lime.verify")


def size(path):
    return os.stat(path).st_size


class Users(TestCase):
    """A user without read permission for the container can't read its exports."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.top = users.open_directory()
        users.reach(self, self.top)
        self.victim = users.User(self, 54321, name="victim")
        self.ann = users.User(self, 54322, name="ann")

    def test_modes_and_lists(self):
        path = users.put(os.path.join(self.top, "conf"), configuration(), 54321, 0o600)
        for opts in (["allow_other"], ["allow_other", "rw"]):
            with limetest.Mount(self.top, opts=opts) as mount:
                base = mount.join("conf")
                npy = os.path.join(base, "ildg-binary-data.npy")
                one = os.path.join(base, "ildg-binary-data.t", "001")
                os.chmod(path, 0o600)
                calls = [(read, npy), (read, one), (os.listdir, os.path.dirname(one)),
                         (size, npy)]
                for call in calls:
                    self.assertEqual(self.ann.attempt(*call), errno.EACCES, call)
                    self.assertEqual(self.victim.attempt(*call), 0, call)
                for flags in (os.O_WRONLY, os.O_RDWR):
                    self.assertIn(self.victim.attempt(os.open, npy, flags),
                                  (errno.EACCES, errno.EROFS))
                os.chmod(path, 0o644)
                writelib.until(lambda: self.ann.attempt(read, npy) == 0)
                self.assertEqual(self.ann.attempt(read, one), 0)
                self.assertIn(self.ann.attempt(os.unlink, npy), (errno.EACCES, errno.EROFS))
                os.chmod(path, 0o600)
                writelib.until(lambda: self.ann.attempt(read, npy) == errno.EACCES)
                self.assertEqual(self.ann.attempt(read, one), errno.EACCES)
                try:
                    os.setxattr(path, users.ACL, users.acl(0o640, 54322, 4))
                except OSError:
                    continue  # no access control lists
                writelib.until(lambda: self.ann.attempt(read, npy) == 0)
                self.assertEqual(self.ann.attempt(read, one), 0)
                self.assertIn(self.ann.attempt(os.open, npy, os.O_WRONLY),
                              (errno.EACCES, errno.EROFS))
                os.setxattr(path, users.ACL, users.acl(0o600, 54322, 0))
                writelib.until(lambda: self.ann.attempt(read, npy) == errno.EACCES)
                os.removexattr(path, users.ACL)


class Changes(TestCase):
    """An export has the current data of its record; old bytes are never mixed with new ones."""

    def setUp(self):
        self.path = self.write("conf", configuration())
        self.form, self.data = gauge()

    def body(self, mount, name="ildg-binary-data.npy"):
        return numpy_of(read(mount.join(name)))[1]

    def test_written_in_place(self):
        with limetest.Mount(self.path, opts="rw") as mount:
            npy, record = mount.join("ildg-binary-data.npy"), mount.join("ildg-binary-data")
            one = mount.join("ildg-binary-data.t/002")
            for i in range(5):
                held = os.open(npy, os.O_RDONLY)
                os.pread(held, 100, 0)
                new = gauge(seed=10 + i)[1]
                before = self.body(mount)
                slice_before = read(one)
                opened(record, os.O_WRONLY, new)
                self.assertNotEqual(before, new)
                self.assertEqual(self.body(mount), new)
                self.assertEqual(self.body(mount, "ildg-binary-data.le.npy"),
                                 converted(new, 64, 64, True))
                self.assertNotEqual(read(one), slice_before)
                self.assertEqual(read(one), new[2 * len(new) // 5:3 * len(new) // 5])
                self.assertIsNone(self.old_or_stale(held, before))
                os.close(held)

    def old_or_stale(self, fd, old):
        """Returns None if reads of an open .npy give old bytes or ESTALE, else a message."""
        for at in range(0, len(old), 4096):
            try:
                got = os.pread(fd, 4096, 128 + at)
            except OSError as error:
                if error.errno != errno.ESTALE:
                    return str(error)
                continue
            if got != old[at:at + 4096]:
                return f"at {at}: bytes that are not the old ones"
        return None

    def test_written_synced_and_mapped(self):
        with limetest.Mount(self.path, opts="rw") as mount:
            record = mount.join("ildg-binary-data")
            fd = os.open(record, os.O_RDWR)
            for i in range(4):
                chunk = bytes([i + 1]) * 1000
                os.pwrite(fd, chunk, 5000 * i)
                os.fsync(fd)
                self.assertEqual(self.body(mount)[5000 * i:5000 * i + 1000], chunk)
                with open(mount.join("ildg-binary-data.npy"), "rb") as file, \
                        mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
                    self.assertEqual(mapped[128 + 5000 * i:128 + 5000 * i + 1000], chunk)
            os.close(fd)

    def test_another_record_is_written(self):
        """A write to one record does not disturb readers of another record's exports."""
        other = limetest.container([[("ildg-format", self.form), ("ildg-binary-data", self.data)],
                                    [("log", b"l" * 10000)]])
        path = self.write("conf", other)
        with limetest.Mount(path, opts="rw") as mount:
            held = os.open(mount.join("002-ildg-binary-data.npy"), os.O_RDONLY)
            for i in range(3):
                fd = os.open(mount.join("log"), os.O_WRONLY)
                os.pwrite(fd, b"x" * 100, i * 100)
                os.close(fd)
                put(mount.join(f"{4 + i:03}-more-{i}"), b"y" * 5000)
                self.assertEqual(os.pread(held, 4096, 4096 * (i + 1)),
                                 self.data[4096 * (i + 1) - 128:4096 * (i + 2) - 128])
            self.assertEqual(self.body(mount, "002-ildg-binary-data.npy"), self.data)
            os.close(held)

    def test_other_metadata(self):
        """A program changes the metadata that describe the record."""
        half = gauge((4, 3, 2, 5), 32)[1]
        path = self.write("conf", limetest.container([("ildg-format", self.form),
                                                      ("ildg-binary-data", half)]))
        with limetest.Mount(path, opts="rw") as mount:
            self.assertFalse(os.path.exists(mount.join("ildg-binary-data.npy")))
            opened(mount.join("ildg-format"), os.O_WRONLY, scidac.ildg_format(DIMS, 32))
            self.assertEqual(self.body(mount), half)
            self.assertEqual(numpy_of(read(mount.join("ildg-binary-data.npy")))[0]["descr"], ">c8")
            opened(mount.join("ildg-format"), os.O_WRONLY, scidac.ildg_format((2, 6, 2, 5), 32))
            self.assertEqual(numpy_of(read(mount.join("ildg-binary-data.npy")))[0]["shape"],
                             (5, 2, 6, 2, 4, 3, 3))

    def test_truncated_grown_and_removed(self):
        with limetest.Mount(self.path, opts="rw") as mount:
            record, npy = mount.join("ildg-binary-data"), mount.join("ildg-binary-data.npy")
            held = os.open(npy, os.O_RDONLY)
            os.truncate(record, 1000)
            self.assertErrno(errno.ENOENT, os.stat, npy)
            self.assertErrno(errno.ESTALE, os.pread, held, 4096, 4096)
            os.close(held)
            writelib.put(record, self.data)
            self.assertEqual(self.body(mount), self.data)
            held = os.open(npy, os.O_RDONLY)
            os.unlink(record)
            self.assertErrno(errno.ENOENT, os.stat, npy)
            self.assertIsNone(self.old_or_stale(held, self.data))
            os.close(held)
            other = gauge(seed=77)[1]
            writelib.put(mount.join("002-ildg-binary-data"), other)
            self.assertEqual(self.body(mount), other)

    def test_written_by_others(self):
        """Another process replaces the container, changes it in place, or appends to it."""
        with limetest.Mount(self.path, opts="attr_timeout=0.05,entry_timeout=0.05") as mount:
            npy = mount.join("ildg-binary-data.npy")
            held = os.open(npy, os.O_RDONLY)
            self.assertEqual(self.body(mount), self.data)
            put(self.path, limetest.container([("more", b"m")]), "ab")
            self.assertEqual(os.pread(held, 100, 128), self.data[:100])
            self.assertEqual(self.body(mount), self.data)
            os.close(held)
            held = os.open(npy, os.O_RDONLY)
            new = configuration(seed=3)
            shutil.copy(self.write("new", new), self.path + ".new")
            os.rename(self.path + ".new", self.path)
            writelib.until(lambda: self.body(mount) == gauge(seed=3)[1])
            self.assertEqual(os.pread(held, 4096, 4096), self.data[3968:3968 + 4096])
            os.close(held)
            held = os.open(npy, os.O_RDONLY)
            fd = os.open(self.path, os.O_WRONLY)
            os.pwrite(fd, configuration(seed=4), 0)
            os.close(fd)
            writelib.until(lambda: self.body(mount) == gauge(seed=4)[1])
            self.assertIsNone(self.old_or_stale(held, gauge(seed=3)[1]))
            os.close(held)
            os.unlink(self.path)
            writelib.until(lambda: not os.path.exists(npy))

    def test_concurrent_writer(self):
        """Readers get the data of one moment, or ESTALE, while a program writes the record."""
        plain = [bytes([i]) * len(self.data) for i in range(6)]
        path = self.write("conf", limetest.container([("ildg-format", self.form),
                                                      ("ildg-binary-data", plain[0])]))
        with limetest.Mount(path, opts="rw") as mount:
            def read_export():
                try:
                    self.assertLessEqual(len(set(self.body(mount))), 2)
                except OSError as error:
                    self.assertIn(error.errno, (errno.ESTALE, errno.ENOENT))

            with limetest.in_background(read_export, threads=3):
                for data in plain[1:]:
                    opened(mount.join("ildg-binary-data"), os.O_WRONLY, data)
                    self.assertEqual(self.body(mount), data)
            self.assertEqual(self.body(mount), plain[5])


class Verified(TestCase):
    """limefs detects a wrong checksum while it computes an export."""

    def test_wrong_data(self):
        data = gauge()[1]
        for mode in ("stream", "open"):
            for checksum in (scidac.checksum(data, 576), (1, 2)):
                path = self.write("conf", configuration(checksum=checksum))
                with limetest.Mount(path, opts=f"verify={mode}") as mount:
                    for name in ("ildg-binary-data.npy", "ildg-binary-data.le.npy", "conf.nersc"):
                        if checksum == (1, 2) and name == "conf.nersc":
                            for _ in range(2):
                                self.assertErrno(errno.EIO, os.open, mount.join(name), os.O_RDONLY)
                        elif checksum == (1, 2):
                            self.assertErrno(errno.EIO, read, mount.join(name))
                        else:
                            self.assertGreater(len(read(mount.join(name))), len(data))


class Memory(TestCase):
    def test_many_exports(self):
        """Programs read far more exports than the daemon keeps open."""
        form, data = gauge((2, 2, 2, 2), 32)
        path = self.write("many", limetest.container(
            [[("ildg-format", form), ("ildg-binary-data", data)] for _ in range(300)]))
        with limetest.Mount(path, opts="faces") as mount:
            held = [os.open(mount.join(f"{2 * i + 2:03}-ildg-binary-data.npy"), os.O_RDONLY)
                    for i in range(150)]
            for name in os.listdir(mount.path):
                if name.endswith(".npy"):
                    self.assertGreater(len(read(mount.join(name))), len(data) // 2)
            for fd in held:
                self.assertEqual(os.pread(fd, len(data), 128), data)
                os.close(fd)
            if not limetest.SANITIZED:
                self.assertLess(mount.usage()[1], 64 << 20)


if __name__ == "__main__":
    limetest.main()
