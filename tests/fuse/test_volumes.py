"""Sets of volumes (QIO's PARTFILE and MULTIFILE) in a tree, joined by -o formats: beside an
independent joiner, incomplete, changed under the mount, hostile, and for other users."""

import contextlib
import ctypes
import errno
import os
import random
import shutil
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import faults
import limetest
import scidac
import users
import volumelib
import writelib
from limetest import run
from volumelib import Set, blocks

DIMS = (4, 2, 4, 6)
SITES = 4 * 2 * 4 * 6
FRESH = "attr_timeout=0,entry_timeout=0"
ANN, GROUP, OTHER = 54321, 54400, 54999


def fields(seed=0):
    return [(96, scidac.field(DIMS, 96, seed + 1)), (None, b"one datum for all\0"),
            (288, scidac.field(DIMS, 288, seed + 2))]


def a_set(grid=(1, 1, 2, 2), seed=0, **more):
    return Set(DIMS, fields(seed), blocks(DIMS, grid), **more)


def records(container):
    """(name in a mount, data) of each record, from the bytes."""
    found, at = [], 0
    while at < len(container):
        nbytes, kind = struct.unpack_from(">q128s", container, at + 8)
        kind = kind.split(b"\0")[0].decode()
        found.append((f"{len(found) + 1:03d}-{kind}", container[at + 144:at + 144 + nbytes]))
        at += 144 + (nbytes + 7) // 8 * 8
    return found


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Directory:
    """Its names and where the list goes on after each, as libc reads them."""

    class Entry(ctypes.Structure):
        _fields_ = [("ino", ctypes.c_uint64), ("next", ctypes.c_int64),
                    ("length", ctypes.c_uint16), ("type", ctypes.c_uint8),
                    ("name", ctypes.c_char * 256)]

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.opendir.restype = ctypes.c_void_p
        self.libc.readdir64.restype = ctypes.POINTER(self.Entry)
        self.stream = ctypes.c_void_p(self.libc.opendir(os.fsencode(path)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.libc.closedir(self.stream)

    def __iter__(self):
        return self

    def __next__(self):
        entry = self.libc.readdir64(self.stream)
        if not entry:
            raise StopIteration
        return entry.contents.name.decode(), entry.contents.next

    def seek(self, to):
        self.libc.seekdir(self.stream, ctypes.c_long(to))


class Case(limetest.TestCase):
    def setUp(self):
        self.dir = self.tempdir()

    def under(self, *names):
        return os.path.join(self.dir, *names)

    def mounted(self, opts="formats"):
        return limetest.Mount(self.dir, opts=opts)

    def assert_joined(self, mount, made, name="prop"):
        want = records(made.joined())
        self.assertEqual(sorted(os.listdir(mount.join(name))), [record for record, _ in want])
        for record, data in want:
            self.assertEqual(read(mount.join(name, record)), data, record)

    def assert_hidden(self, mount, name="prop"):
        self.assertNotIn(name, os.listdir(mount.path))
        with self.assertRaises(FileNotFoundError):
            os.stat(mount.join(name))

    @contextlib.contextmanager
    def logged(self, opts="formats"):
        """A mount in the foreground: (its path, what it has logged so far, as a function)."""
        point, log = self.tempdir(), os.path.join(self.tempdir(), "log")
        with open(log, "wb") as out:
            daemon = subprocess.Popen([limetest.program("limefs"), "-f", "-o", opts, self.dir,
                                       point], stdout=out, stderr=out)
        try:
            self.assertTrue(limetest._wait(lambda: limetest.mounts_under(point), 60))
            os.listdir(point)
            yield point, lambda: read(log).decode()
        finally:
            # EBUSY passes: somebody is just closing a file.
            limetest._wait(lambda: run(["fusermount3", "-u", point]).returncode == 0, 60)
            self.assertEqual(daemon.wait(60), 0)


@limetest.needs_fuse
class Whole(Case):
    def test_the_bytes(self):
        for grid in ((1, 1, 1, 1), (1, 1, 1, 3), (2, 1, 2, 2), (4, 2, 4, 6)):
            for volfmt, list_format in ((1, ">q"), (2, ">I"), (2, ">q")):
                name = f"p{volfmt}{list_format[1]}" + "".join(map(str, grid))
                a_set(grid, volfmt=volfmt, list_format=list_format).write(self.dir, name)
        with self.mounted() as mount:
            names = os.listdir(mount.path)
            self.assertEqual(len(names), len(set(names)))
            for name in {name.split(".")[0] for name in names}:
                self.assertIn(name, names)
                self.assert_joined(mount, a_set(), name)

    def test_any_range(self):
        made = a_set((2, 1, 2, 2))
        made.write(self.dir)
        data, rng = made.fields[2][1], random.Random(5)
        with self.mounted() as mount, open(mount.join("prop/013-scidac-binary-data"), "rb",
                                           buffering=0) as file:
            for _ in range(200):
                at, n = rng.randrange(len(data)), rng.randrange(1, 3000)
                self.assertEqual(os.pread(file.fileno(), n, at), data[at:at + n])

    def test_names_and_attributes(self):
        """Of the set; the volumes stay what they are."""
        made = a_set()
        made.write(self.dir)
        with self.mounted() as mount:
            self.assertEqual(sorted(os.listdir(mount.path)),
                             ["prop"] + [f"prop.vol{i:04d}" for i in range(4)])
            self.assertEqual(read(mount.join("prop.vol0001/scidac-sitelist")),
                             made.sitelist(1))
            path = mount.join("prop")
            self.assertTrue(os.path.isdir(path))
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o555)
            self.assertEqual(os.getxattr(path, "user.lime.records"),
                             str(len(records(made.joined()))).encode())
            inodes = [os.stat(mount.join(name)).st_ino for name in os.listdir(mount.path)]
            inodes += [os.stat(mount.join("prop", name)).st_ino for name in os.listdir(path)]
            self.assertEqual(len(set(inodes)), len(inodes))
            with os.scandir(mount.path) as entries:
                for entry in entries:
                    self.assertEqual(entry.inode(), os.stat(entry.path).st_ino, entry.name)
            data = mount.join("prop/005-scidac-binary-data")
            self.assertEqual(os.getxattr(data, "user.lime.cksum"),
                             run(["cksum"], input=made.fields[0][1], check=True)
                             .stdout.split()[0])
            self.assertNotIn("user.lime.offset", os.listxattr(data))
            with open(data, "rb") as file:
                self.assertEqual(os.lseek(file.fileno(), 7, os.SEEK_DATA), 7)

    def test_the_tools(self):
        made = a_set()
        made.write(self.dir)
        joined = self.write("joined.lime", made.joined())
        with self.mounted() as mount:
            self.run_ok(["lime", "check", "-q", "--data", mount.join("prop")])
            self.assertIn(b"4 x 2 x 4 x 6", self.run_ok(["lime", "info", mount.join("prop")]))
            self.assertEqual(
                len(self.run_ok(["lime", "ls", mount.join("prop")]).splitlines()),
                len(self.run_ok(["lime", "ls", joined]).splitlines()))

    def test_faces(self):
        """A configuration, as numpy reads it."""
        made = Set(DIMS, [(288, scidac.field(DIMS, 288, 7))], blocks(DIMS, (1, 2, 2, 1)),
                   ildg=scidac.ildg_format(DIMS, 32))
        made.write(self.dir, "conf")
        with self.mounted() as mount:
            data = made.fields[0][1]
            self.assertEqual(read(mount.join("conf/ildg-binary-data")), data)
            npy = read(mount.join("conf/ildg-binary-data.npy"))
            self.assertEqual(npy[:6], b"\x93NUMPY")
            begin = 10 + struct.unpack_from("<H", npy, 8)[0]
            self.assertIn(b"(6, 4, 2, 4, 4, 3, 3)", npy[:begin])
            self.assertIn(b">c8", npy[:begin])
            self.assertEqual(npy[begin:], data)
            last = SITES // 6 * 288
            self.assertEqual(read(mount.join("conf/ildg-binary-data.t/005")), data[-last:])

    def test_checksums_are_verified(self):
        good, wrong = a_set(), a_set(seed=9)
        wrong.sums[2] = (1, 2)
        good.write(self.dir, "good")
        wrong.write(self.dir, "wrong")
        with self.mounted("formats,verify=open") as mount:
            self.run_ok(["lime", "verify", mount.join("good")])
            self.assert_joined(mount, good, "good")
            bad = mount.join("wrong/013-scidac-binary-data")
            self.assertNotEqual(run(["lime", "verify", mount.join("wrong")]).returncode, 0)
            self.assertEqual(os.getxattr(bad, "user.lime.checksum"), b"bad")
            with self.assertRaises(OSError) as seen:
                read(bad)
            self.assertEqual(seen.exception.errno, errno.EIO)
            self.assertEqual(read(mount.join("wrong/005-scidac-binary-data")),
                             wrong.fields[0][1])

    def test_where_it_is_asked_for(self):
        made = a_set()
        first = made.write(self.dir)
        with self.mounted(None) as mount:
            self.assert_hidden(mount)
        with limetest.Mount(first, opts="formats") as mount:  # that volume, as it is
            self.assertEqual(sorted(os.listdir(mount.path)),
                             [name for name, _ in records(made.volume(0))])

    def test_numbers_with_gaps(self):
        made = a_set(numbers=[0, 8, 16, 12345])
        made.write(self.dir)
        with self.mounted() as mount:
            self.assert_joined(mount, made)

    def test_many_sets_in_a_list(self):
        """More than one reply takes, and those that are not shown among them."""
        made = a_set((1, 1, 1, 2))
        for i in range(60):
            made.write(self.dir, f"{'a-long-name-' * 12}{i:03d}")
        for i in range(0, 60, 3):
            os.unlink(self.under(f"{'a-long-name-' * 12}{i:03d}.vol0001"))
        with self.mounted() as mount:
            names = os.listdir(mount.path)
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual(sum(not name.endswith(("vol0000", "vol0001")) for name in names),
                             40)
            with os.scandir(mount.path) as entries:  # again, from the start
                self.assertEqual(sorted(entry.name for entry in entries), sorted(names))

    def test_a_set_among_many_names(self):
        """It comes last, also where names are looked up as they are listed."""
        a_set((1, 1, 1, 2)).write(self.dir, "p")
        for i in range(300):
            with open(self.under(f"{i:03d}" + "-" * (40 + i % 97)), "wb") as file:
                file.write(b"no container " * 20)
        names = sorted(os.listdir(self.dir) + ["p"])
        with self.mounted() as mount:
            for _ in range(3):
                self.assertEqual(sorted(os.listdir(mount.path)), names)
                for name in names[:20]:
                    os.stat(mount.join(name))

    def test_names_that_fill_a_reply(self):
        """Where the set is the first that does not fit, the next reply begins with it."""
        a_set().write(self.dir)
        with self.mounted() as mount:
            for i in range(300):  # one more name than a reply takes is among these numbers
                self.assertIn("prop", os.listdir(mount.path), i)
                with open(self.under(f"{i:03d}"), "wb"):
                    pass

    def test_seeking_in_a_list(self):
        """After its end, to the place before the sets or between them."""
        for name in ("p", "q"):
            a_set((1, 1, 1, 2)).write(self.dir, name)
        for i in range(300):
            with open(self.under(f"{i:03d}"), "wb"):
                pass
        with self.mounted() as mount, Directory(mount.path) as listed:
            names = list(listed)
            self.assertEqual(sorted(name for name, _ in names[-2:]), ["p", "q"])
            for back in (1, 100, 200):
                for after in (3, 2):
                    listed.seek(names[back][1])
                    self.assertEqual(next(listed), names[back + 1])
                    listed.seek(names[-after][1])
                    self.assertEqual(list(listed), names[1 - after:])

    def test_asleep_and_awake(self):
        """Kept open while nobody uses them are fewer than there are."""
        made = a_set()
        for i in range(5):
            made.write(self.dir, f"p{i}")
        with self.mounted("formats,max_open=1") as mount:
            for _ in range(3):
                for i in range(5):
                    self.assert_joined(mount, made, f"p{i}")
            open_files = len(os.listdir(f"/proc/{mount.pid}/fd"))
            self.assertLess(open_files, 40)

    def test_nothing_is_written(self):
        made = a_set()
        made.write(self.dir)
        before = {name: read(self.under(name)) for name in os.listdir(self.dir)}
        with self.mounted("formats,rw") as mount:
            self.assert_joined(mount, made)
            for words in ("echo x >> prop/001-scidac-private-file-xml", "echo x > prop/new",
                          "rm prop/005-scidac-binary-data", "chmod 777 prop", "rmdir prop",
                          "mv prop moved", "touch prop", "mkdir prop/new",
                          "truncate -s 5 prop/005-scidac-binary-data",
                          "setfattr -n user.lime.type -v x prop/005-scidac-binary-data"):
                done = run(["sh", "-c", words], cwd=mount.path)
                self.assertNotEqual(done.returncode, 0, words)
                self.assertRegex(done.stderr.decode(), "Read-only|not permitted|not empty",
                                 words)
            self.assert_joined(mount, made)
        self.assertEqual({name: read(self.under(name)) for name in os.listdir(self.dir)},
                         before)


@limetest.needs_fuse
class Incomplete(Case):
    """Never shown, and the log says why."""

    def refused(self, made, *words, then=lambda: None):
        shutil.rmtree(self.dir)
        os.mkdir(self.dir)
        made.write(self.dir)
        then()
        with self.logged() as (path, log):
            names = os.listdir(path)
            with contextlib.suppress(OSError):  # its lists of sites may be read only now
                for name in os.listdir(os.path.join(path, "prop")):
                    self.fail(f"prop has {name}")
            for _ in range(3):
                self.assertNotIn("prop", os.listdir(path))
                self.assertFalse(os.path.exists(os.path.join(path, "prop")))
            self.assertIn("prop.vol0000", names)
            told = [line for line in log().splitlines() if "not shown as one" in line]
            self.assertTrue(told)
            for word in words:
                self.assertIn(word, told[0])
            return told

    def cut(self, name, nbytes):
        os.truncate(self.under(name), nbytes)

    def test_missing(self):
        told = self.refused(a_set(), "prop", "3 volumes", "sites are missing",
                            then=lambda: os.unlink(self.under("prop.vol0002")))
        self.assertLess(len(told), 4)

    def test_many(self):
        """Each is told of once, however many there are and however often it is looked up."""
        for i in range(90):  # the log has room for 100 lines
            with open(self.under(f"prop{i}.vol0000"), "wb") as file:
                file.write(b"no volume")
        with self.logged() as (path, log):
            for i in 3 * [*range(90)]:
                self.assertFalse(os.path.exists(os.path.join(path, f"prop{i}")))
            told = [line for line in log().splitlines() if "1 volumes not shown as one" in line]
            self.assertEqual(len(told), 90)

    def test_lengths(self):
        self.refused(a_set(), "prop.vol0001", then=lambda: self.cut("prop.vol0001", 500))
        self.refused(a_set(), "prop.vol0000", then=lambda: self.cut("prop.vol0000", 700))
        self.refused(a_set(), "prop.vol0003", then=lambda: self.cut("prop.vol0003", 0))
        made = a_set()
        made.parts[1] = made.parts[1][:-1]  # fewer data than its list has
        self.refused(made, "prop.vol0001", "list")

    def test_lists(self):
        made = a_set()
        made.lists[1][0] = made.lists[0][0]
        self.refused(made, "twice")
        made = a_set()
        made.lists[2][5] = SITES
        self.refused(made, "prop.vol0002", "list")
        made = a_set()
        made.lists[1] = made.lists[0]
        self.refused(made, "twice")

    def test_volumes_that_disagree(self):
        def foreign():
            other = a_set(numbers=[10, 11, 12, 13])
            shutil.copy(other.write(self.tempdir()), self.under("prop.vol0001"))
        self.refused(a_set(), "metadata", then=foreign)
        twice = a_set()
        self.refused(twice, "twice", then=lambda: shutil.copy(
            self.under("prop.vol0001"), self.under("prop.vol0004")))

        def fewer():
            other = Set(DIMS, fields()[:1], blocks(DIMS, (1, 1, 2, 2)))
            other.write(self.tempdir())
            with open(self.under("prop.vol0001"), "wb") as file:
                file.write(other.volume(1))
        self.refused(a_set(), "prop.vol0001", then=fewer)

    def test_no_volumes(self):
        def other(data):
            with open(self.under("prop.vol0002"), "wb") as file:
                file.write(data)
        self.refused(a_set(), "prop.vol0002", then=lambda: other(b"text\n" * 100))
        self.refused(a_set(), "prop.vol0002",
                     then=lambda: other(limetest.record("x", b"1", True, True)))

    def test_links_are_not_followed(self):
        def linked():
            os.rename(self.under("prop.vol0002"), os.path.join(self.outside, "volume"))
            os.symlink(os.path.join(self.outside, "volume"), self.under("prop.vol0002"))
        self.outside = self.tempdir()
        self.refused(a_set(), "prop.vol0002", then=linked)

        def piped():
            os.unlink(self.under("prop.vol0002"))
            os.mkfifo(self.under("prop.vol0002"))
        self.refused(a_set(), "prop.vol0002", then=piped)

    def test_a_file_of_that_name(self):
        made = a_set()
        made.write(self.dir)
        for make, remove in ((lambda path: self.put(path, b"mine"), os.unlink),
                             (os.mkdir, os.rmdir),
                             (lambda path: os.symlink("nowhere", path), os.unlink)):
            with self.mounted("formats," + FRESH) as mount:
                self.assert_joined(mount, made)
                make(self.under("prop"))
                self.assertEqual(os.listdir(mount.path).count("prop"), 1)
                self.assertEqual(os.lstat(mount.join("prop")).st_mode & 0o170000,
                                 os.lstat(self.under("prop")).st_mode & 0o170000)
                self.assertFalse(os.path.exists(mount.join("prop/001-scidac-private-file-xml")))
                remove(self.under("prop"))
                self.assert_joined(mount, made)

    def put(self, path, data):
        with open(path, "wb") as file:
            file.write(data)

    def test_it_comes_while_it_is_mounted(self):
        made = a_set()
        with self.mounted("formats," + FRESH) as mount:
            for i in range(4):
                self.assert_hidden(mount)
                self.put(made.path(self.dir, i), made.volume(i))
            self.assert_joined(mount, made)


@limetest.needs_fuse
class Hostile(Case):
    def assert_small(self, mount, kib):
        with open(f"/proc/{mount.pid}/status", encoding="ascii") as status:
            most = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        if not os.environ.get("SAN"):
            self.assertLess(most, kib)

    def sparse(self, dims, site_bytes):
        """A set of one volume whose list and data are holes."""
        sites = 1
        for extent in dims:
            sites *= extent
        head = limetest.record("scidac-private-file-xml", volumelib.private_file(dims, 2), True,
                               False)
        where = len(head)
        head += limetest.header("scidac-sitelist", 4 * sites, False, True)
        path = self.under("prop.vol0000")
        with open(path, "wb") as file:
            file.write(head)
            file.seek(where + 144 + (4 * sites + 7) // 8 * 8)
            file.write(limetest.record("scidac-private-record-xml",
                                       volumelib.private_record(site_bytes), True, False))
            file.write(limetest.header("scidac-binary-data", sites * site_bytes, False, True))
            file.truncate(file.tell() + (sites * site_bytes + 7) // 8 * 8)

    def test_holes(self):
        self.sparse((256, 256, 256, 128), 96)
        with self.mounted() as mount:
            with self.assertRaises(OSError):
                os.listdir(mount.join("prop"))
            self.assert_hidden(mount)
            self.assert_small(mount, 1 << 17)

    def test_lattices(self):
        """Extents that overflow, and more sites than there are data."""
        for dims in ((1 << 31, 1 << 31, 4, 4), (0, 4, 4, 4), (1 << 16, 1 << 16, 1 << 16, 1 << 15),
                     (4, 2, 4, 7)):
            made = a_set()
            made.dims = dims
            with self.subTest(dims=dims):
                made.write(self.dir)
                with self.mounted() as mount:
                    self.assert_hidden(mount)

    def test_many_files(self):
        """More than the daemon can have open."""
        for i in range(3000):
            with open(self.under(f"prop.vol{i:04d}"), "wb") as file:
                file.truncate(1000)
        a_set().write(self.dir, "other")
        mount = limetest.Mount(self.dir, opts="formats",
                               prefix=["sh", "-c", 'ulimit -n 512; exec "$@"', "sh"])
        with mount:
            self.assert_hidden(mount)
            self.assert_joined(mount, a_set(), "other")
            self.assertLess(len(os.listdir(f"/proc/{mount.pid}/fd")), 100)

    def test_names(self):
        for name in ("..vol0000", "...vol0000", ".vol0000", "vol0000", "x.vol000",
                     "n" * 247 + ".vol0000", "x.vol0000000000000000000000000",
                     "bell\a.vol0000", "line\nline.vol0000"):
            shutil.copy(a_set((1, 1, 1, 1)).write(self.tempdir()), self.under(name))
        with self.logged() as (path, log):
            names = os.listdir(path)
            self.assertEqual(sorted(set(names) - set(os.listdir(self.dir))),
                             sorted(["n" * 247, "bell\a", "line\nline"]))
            for name in names:
                os.listdir(os.path.join(path, name))
            os.truncate(self.under("bell\a.vol0000"), 600)
            os.truncate(self.under("line\nline.vol0000"), 600)
            os.listdir(path)
            self.assertNotIn("\a", log())
            self.assertNotIn("\nline.", log())


@limetest.needs_fuse
class Changed(Case):
    """Under the mount: what was open stays whole, or fails."""

    def setUp(self):
        super().setUp()
        self.old, self.new = a_set(), a_set(seed=50)
        self.old.write(self.dir)
        self.data = self.old.fields[2][1]

    def change(self, name, change):
        """Of one volume, with a record of the old set open; (the bytes or errno that it gives,
        those of a new look)."""
        with self.mounted("formats," + FRESH) as mount:
            path = mount.join("prop/013-scidac-binary-data")
            with open(path, "rb", buffering=0) as file:
                self.assertEqual(os.pread(file.fileno(), 100, 0), self.data[:100])
                change(self.under(name))
                outcomes = []
                for look in (lambda: self.uncached(file.fileno()), lambda: read(path)):
                    try:
                        outcomes.append(look())
                    except OSError as error:
                        outcomes.append(error.errno)
                return outcomes

    def uncached(self, fd):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(fd, len(self.data) + 1, 0)

    def mixed(self, new=(1,)):
        """The data with those volumes' sites out of the new set."""
        data = bytearray(self.data)
        for volume in new:
            for rank in self.old.parts[volume]:
                data[rank * 288:rank * 288 + 288] = \
                    self.new.fields[2][1][rank * 288:rank * 288 + 288]
        return bytes(data)

    def test_a_disk_that_is_back(self):
        """What could not be read is looked at again."""
        store = faults.Faults(self.dir)
        with limetest.Mount(self.dir, opts="formats," + FRESH,
                            env=store.environment()) as mount:
            def is_read(path):
                try:
                    return sorted(os.listdir(path)) == \
                        [record for record, _ in records(self.old.joined())]
                except OSError as error:
                    self.assertEqual(error.errno, errno.EIO)
            # Volumes that are young are looked at again in any case: this is for longer.
            until = time.time() + 0.1
            while time.time() < until:
                store.arm(faults.DAEMON, "pread", 1, errno.EIO, lasts=True)
                self.assertFalse(is_read(mount.join("prop")))
            store.disarm()
            self.assertTrue(is_read(mount.join("prop")))
            self.assertIn("prop", os.listdir(mount.path))

    def test_in_place(self):
        def rewrite(path):
            with open(path, "r+b") as file:
                file.write(self.new.volume(1))
        self.assertEqual(self.change("prop.vol0001", rewrite), [errno.ESTALE, self.mixed()])

    def test_in_place_with_its_old_time(self):
        """Times lie; the inode's own does not, and the next look sees it."""
        def rewrite(path):
            st = os.stat(path)
            with open(path, "r+b") as file:
                file.write(self.new.volume(1))
            os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
        self.assertEqual(self.change("prop.vol0001", rewrite)[1], self.mixed())

    def test_in_the_middle_of_a_change(self):
        """Of any volume: see InTheMiddle of test_looks.py."""
        path, rank = self.under("prop.vol0001"), self.old.parts[1][0]
        site = self.data[rank * 288:rank * 288 + 288]
        at, values = read(path).index(site), bytes([site[0] ^ 1, site[0] ^ 2])
        writelib.let_time_pass(path)
        with self.mounted("formats," + FRESH) as mount:
            def shown():
                return read(mount.join("prop/013-scidac-binary-data"))[rank * 288]
            self.assertEqual(shown(), site[0])
            writelib.change_in_two(path, at, values,
                                   lambda: self.assertEqual(shown(), values[0]))
            writelib.until(lambda: shown() == values[1])

    def test_replaced(self):
        def replace(path):
            with open(path + ".tmp", "wb") as file:
                file.write(self.new.volume(1))
            os.rename(path + ".tmp", path)
        self.assertEqual(self.change("prop.vol0001", replace), [self.data, self.mixed()])

    def test_removed(self):
        for name in ("prop.vol0000", "prop.vol0001"):
            self.old.write(self.dir)
            self.assertEqual(self.change(name, os.unlink), [self.data, errno.ENOENT])

    def test_cut(self):
        for name in ("prop.vol0000", "prop.vol0003"):
            self.old.write(self.dir)
            self.assertEqual(self.change(name, lambda path: os.truncate(path, 900)),
                             [errno.ESTALE, errno.ENOENT])

    def test_grown(self):
        def append(path):
            with open(path, "ab") as file:
                file.write(limetest.record("more", b"1", True, True))
        self.assertEqual(self.change("prop.vol0001", append), [errno.ESTALE, self.data])

    def test_another_volume(self):
        def add(path):
            shutil.copy(path, self.under("prop.vol0007"))
        self.assertEqual(self.change("prop.vol0001", add), [self.data, errno.ENOENT])

    def test_modes_and_names_change_nothing(self):
        self.assertEqual(self.change("prop.vol0001", lambda path: os.chmod(path, 0o600)),
                         [self.data, self.data])
        self.assertEqual(self.change("prop.vol0001",
                                     lambda path: os.link(path, self.under("other"))),
                         [self.data, self.data])

    def test_exchanged_all_the_while(self):
        """One volume with another's: each read of all is of one of the two, or an error."""
        both = {self.data, self.mixed()}
        other = self.under("aside")
        with open(other, "wb") as file:
            file.write(self.new.volume(1))
        exchanger = users.User(self, os.geteuid(), os.getegid())
        seen = set()
        with self.mounted("formats," + FRESH) as mount, \
                exchanger.busy(users.exchanging, self.under("prop.vol0001"), other):
            def is_read():
                try:
                    seen.add(read(mount.join("prop/013-scidac-binary-data")))
                except OSError as error:
                    self.assertIn(error.errno, (errno.ESTALE, errno.ENOENT))
                return seen
            for _ in range(400):
                is_read()
            writelib.until(is_read)  # however few are between two exchanges
        self.assertTrue(seen <= both)

    def test_rewritten_all_the_while(self):
        """In place: whoever reads all at once, and gets it, gets one state's bytes."""
        path = self.under("prop.vol0001")
        states = [self.old.volume(1), self.new.volume(1)]
        rewriter = users.User(self, os.geteuid(), os.getegid())
        with self.mounted("formats," + FRESH) as mount, \
                rewriter.busy(rewriting, path, states):
            for _ in range(200):
                with contextlib.suppress(OSError):
                    os.listdir(mount.join("prop"))
                    read(mount.join("prop/013-scidac-binary-data"))
            self.assertIsNotNone(mount.pid)
        with open(path, "r+b") as file:
            file.write(states[0])
        with self.mounted() as mount:
            self.assert_joined(mount, self.old)


def rewriting(path, states):
    while not users.stopped():
        for state in states:
            with open(path, "r+b") as file:
                file.write(state)


def may_read(path):
    with open(path, "rb") as file:
        file.read()


def may_list(path):
    return sorted(os.listdir(path))


@limetest.needs_fuse
class Others(Case):
    """Who may not read each volume reads nothing of the set."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.dir = users.open_folder()
        users.reach(self, self.dir)
        self.made = a_set((1, 1, 1, 2))
        self.user = users.User(self, ANN, groups=[GROUP])

    def arrange(self, name, *volumes):
        """(uid, gid, mode, access list or None) of each."""
        self.made.write(self.dir, name)
        for i, (uid, gid, mode, acl) in enumerate(volumes):
            path = self.made.path(self.dir, i, name)
            os.chown(path, uid, gid)
            os.chmod(path, mode)
            if acl:
                os.setxattr(path, users.ACL, acl)

    def outcome(self, mount, name):
        record = mount.join(name, "005-scidac-binary-data")
        listed, opened = (self.user.attempt(may_list, mount.join(name)),
                          self.user.attempt(may_read, record))
        asked = self.user.attempt(os.getxattr, record, "user.lime.cksum")
        self.assertEqual(listed, opened)
        self.assertIn(asked, (0,) if opened == 0 else (errno.EACCES,))
        return opened

    def test_each_must_let_them(self):
        lists = [None, users.acl(0o640, ANN, 4), users.acl(0o640, ANN, 0),
                 users.acl(0o644, ANN, 0), users.acl(0o600, ANN, 4)]
        kinds = [(uid, gid, mode, None) for uid, gid in ((0, 0), (ANN, 0), (0, GROUP), (OTHER, 0))
                 for mode in (0o644, 0o640, 0o604, 0o600, 0o400, 0o044)]
        kinds += [(0, 0, 0o640, acl) for acl in lists[1:]]
        pairs = [(one, other) for one in kinds for other in kinds]
        rng = random.Random(3)
        pairs = [(kind, kind) for kind in kinds] + rng.sample(pairs, 150)
        for i, pair in enumerate(pairs):
            self.arrange(f"p{i:04d}", *pair)
        allowed = 0
        with limetest.Mount(self.dir, opts="formats,allow_other") as mount:
            for i, pair in enumerate(pairs):
                native = [self.user.attempt(may_read, self.made.path(self.dir, v, f"p{i:04d}"))
                          for v in (0, 1)]
                got = self.outcome(mount, f"p{i:04d}")
                if any(native):
                    self.assertEqual(got, errno.EACCES, pair)
                elif pair[0] == pair[1]:
                    self.assertEqual(got, 0, pair)
                allowed += got == 0
            self.assert_joined(mount, self.made, "p0000")  # root
        self.assertGreater(allowed, 10)

    def test_a_mode_that_changes(self):
        self.arrange("prop", (0, 0, 0o644, None), (0, 0, 0o644, None))
        with limetest.Mount(self.dir, opts="formats,allow_other," + FRESH) as mount:
            path = self.made.path(self.dir, 1)
            for mode, want in ((0o644, 0), (0o600, errno.EACCES), (0o644, 0)):
                os.chmod(path, mode)
                self.assertEqual(self.outcome(mount, "prop"), want)
            os.setxattr(path, users.ACL, users.acl(0o644, ANN, 0))
            self.assertEqual(self.outcome(mount, "prop"), errno.EACCES)

    def test_the_daemon_asks_for_each(self):
        """Whatever the kernel still believes."""
        self.arrange("prop", (0, 0, 0o644, None), (0, 0, 0o644, None))
        opts = "formats,allow_other,attr_timeout=1000,entry_timeout=1000"
        with limetest.Mount(self.dir, opts=opts) as mount:
            self.assertEqual(self.outcome(mount, "prop"), 0)
            os.chmod(self.made.path(self.dir, 1), 0o600)
            self.assertEqual(self.user.attempt(may_read,
                                               mount.join("prop/005-scidac-binary-data")),
                             errno.EACCES)

    def test_a_folder_that_they_cannot_enter(self):
        users.folder(os.path.join(self.dir, "closed"), mode=0o700)
        self.made.write(os.path.join(self.dir, "closed"))
        with limetest.Mount(self.dir, opts="formats,allow_other") as mount:
            self.assertEqual(self.user.attempt(may_list, mount.join("closed/prop")),
                             errno.EACCES)

    def test_a_folder_that_they_may_only_list(self):
        """Whether volumes are a whole set is for those who may look at its files."""
        for name, mode in (("listed", 0o744), ("searched", 0o755)):
            self.made.write(users.folder(os.path.join(self.dir, name), mode=mode))
        with limetest.Mount(self.dir, opts="formats,allow_other") as mount:
            names = os.listdir(os.path.join(self.dir, "listed"))
            self.assertEqual(sorted(self.user.call(os.listdir, mount.join("listed"))),
                             sorted(names))
            for path in (mount.join("listed"), mount.join("searched")):
                self.assertEqual(sorted(os.listdir(path)), sorted(names + ["prop"]))
            self.assertIn("prop", self.user.call(os.listdir, mount.join("searched")))

    def test_an_ordinary_user_s_own_mount(self):
        """Of volumes of others that it may read, or of which one is closed to it."""
        users.folder(os.path.join(self.dir, "tree"), ANN)
        self.dir = os.path.join(self.dir, "tree")
        self.arrange("open", (ANN, ANN, 0o600, None), (0, GROUP, 0o640, None))
        self.arrange("shut", (ANN, ANN, 0o600, None), (0, 0, 0o640, None))
        point = users.folder(os.path.join(users.open_folder(), "mnt"), ANN)
        code = self.user.attempt(subprocess.run, [limetest.program("limefs"), "-o", "formats",
                                                  self.dir, point])
        self.assertEqual(code, 0)
        try:
            if not limetest.mounts_under(point):
                self.skipTest("ordinary users cannot mount here")
            self.assertEqual(self.user.attempt(may_read,
                                               os.path.join(point,
                                                            "open/005-scidac-binary-data")), 0)
            self.assertEqual(self.user.attempt(may_list, os.path.join(point, "shut")),
                             errno.ENOENT)
        finally:
            run(["umount", point])


if __name__ == "__main__":
    limetest.main()
