"""Configurations in other formats through a mount: as the containers that they would be. The files
are made here, from what the formats say and the data of a container in tests/data/corpus."""

import array
import contextlib
import errno
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import faults
import limetest
import scidac
import volumelib
from limetest import put, record, run

CONTAINER = "tm_clime_gauge_4444_p64_n1.lime"
L = 4  # sites in each direction
LINK = 144  # bytes, double precision


def corpus_data():
    """ildg-binary-data of the container, as it is."""
    path = next(row["path"] for row in limetest.manifest() if row["path"].endswith(CONTAINER))
    return run(["lime", "cat", path, "ildg-binary-data"], check=True).stdout


def swapped(data, kind):
    values = array.array(kind, data)
    values.byteswap()
    return values.tobytes()


def single(data):
    """The same numbers in single precision, big-endian."""
    numbers = array.array("d", data)
    if sys.byteorder == "little":
        numbers.byteswap()
    numbers = array.array("f", numbers)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


def nersc(data, rows, floating, sequence=17):
    """`data` are double precision, big-endian; of each link the first rows are stored."""
    bits = 64 if "64" in floating else 32
    data = data if bits == 64 else single(data)
    link = LINK * bits // 64
    if rows == 2:
        data = b"".join(data[at:at + link // 3 * 2] for at in range(0, len(data), link))
    total = sum(struct.unpack(f">{len(data) // 4}I", data)) & 0xffffffff
    if floating.endswith("LITTLE"):
        data = swapped(data, "d" if bits == 64 else "f")
    header = ["BEGIN_HEADER", "HDR_VERSION = 1.0",
              "DATATYPE = " + ("4D_SU3_GAUGE" if rows == 2 else "4D_SU3_GAUGE_3x3"),
              "STORAGE_FORMAT = 1.0"]
    header += [f"DIMENSION_{i + 1} = {L}" for i in range(4)]
    header += ["LINK_TRACE = 0.0", "PLAQUETTE = 0.5", f"CHECKSUM = {total:x}",
               "ENSEMBLE_ID = test", f"SEQUENCE_NUMBER = {sequence}",
               f"FLOATING_POINT = {floating}", "END_HEADER", ""]
    return "\n".join(header).encode() + data


def milc(data):
    data = swapped(single(data), "f")
    sums = [0, 0]
    for k, word in enumerate(struct.unpack(f"<{len(data) // 4}I", data)):
        for i, period in enumerate((29, 31)):
            turn = k % period
            sums[i] ^= (word << turn | word >> (32 - turn)) & 0xffffffff
    return struct.pack("<i4i64si2I", 20103, L, L, L, L, b"Sun Nov 22", 0, *sums) + data


def listed(data, order):
    """A MILC file with a list: the data of site order[i] are the i-th."""
    plain, site = milc(data), len(data) // 2 // L ** 4
    head, sums, sites = plain[:84], plain[88:96], plain[96:]
    return (head + struct.pack("<i", 1) + struct.pack(f"<{len(order)}I", *order) + sums
            + b"".join(sites[i * site:(i + 1) * site] for i in order))


def openqcd(data):
    def link(t, x, y, z, mu):
        """mu: t, x, y, z"""
        site = ((t % L * L + z % L) * L + y % L) * L + x % L
        at = (site * 4 + (mu - 1) % 4) * LINK
        return swapped(data[at:at + LINK], "d")
    out = [struct.pack("<4id", L, L, L, L, 1.5)]
    for n in range(L ** 4):
        point = (n // L ** 3, n // L ** 2 % L, n // L % L, n % L)
        if sum(point) % 2:
            for mu in range(4):
                before = [c - (i == mu) for i, c in enumerate(point)]
                out += [link(*point, mu), link(*before, mu)]
    return b"".join(out)


@limetest.needs_fuse
class Formats(limetest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = corpus_data()

    def assert_shows(self, folder, kind, data):
        self.assertEqual(sorted(os.listdir(folder)),
                         [f"001-{kind}-header", "002-ildg-format", "003-ildg-binary-data"])
        self.assertEqual(self.read(os.path.join(folder, "ildg-binary-data")), data)

    def read(self, path):
        return limetest.read(path)

    def test_a_file_is_a_container(self):
        for kind, content, data in (("nersc", nersc(self.data, 3, "IEEE64BIG"), self.data),
                                    ("nersc", nersc(self.data, 3, "IEEE64LITTLE"), self.data),
                                    ("nersc", nersc(self.data, 3, "IEEE32BIG"),
                                     single(self.data)),
                                    ("milc", milc(self.data), single(self.data)),
                                    ("openqcd", openqcd(self.data), self.data)):
            with self.subTest(kind=kind), limetest.Mount(self.write("conf", content)) as mount:
                self.assert_shows(mount.path, kind, data)
                with open(mount.join("ildg-binary-data"), "rb") as file:  # anywhere in it
                    for at, n in ((1, 7), (575, 2), (100003, 4099)):
                        self.assertEqual(os.pread(file.fileno(), n, at), data[at:at + n])
                told = self.run_ok(["lime", "info", mount.path]).decode()
                self.assertIn("su3gauge", told)
                self.assertIn("4^3 x 4", told)
                header = self.read(mount.join("ildg-binary-data.npy"))[:6]
                self.assertEqual(header, b"\x93NUMPY")  # faces are there, too

    def test_attributes_are_of_what_is_shown(self):
        """The file itself has other bytes, elsewhere."""
        for content in (openqcd(self.data), nersc(self.data, 3, "IEEE64LITTLE")):
            with limetest.Mount(self.write("conf", content)) as mount:
                path = mount.join("ildg-binary-data")
                sum_is = os.getxattr(path, "user.lime.cksum").decode()
                self.assertEqual(sum_is, run(["cksum"], input=self.data,
                                             check=True).stdout.split()[0].decode())
                names = os.listxattr(path)
                self.assertIn("user.lime.type", names)
                self.assertNotIn("user.lime.offset", names)
                self.assertErrno(errno.ENODATA, os.getxattr, path, "user.lime.offset")

    def test_two_rows(self):
        """The third is computed: near to what it was."""
        with limetest.Mount(self.write("conf", nersc(self.data, 2, "IEEE64BIG"))) as mount:
            read = self.read(mount.join("ildg-binary-data"))
            got = struct.unpack(f">{len(read) // 8}d", read)
            want = struct.unpack(f">{len(self.data) // 8}d", self.data)
            self.assertEqual(len(got), len(want))
            self.assertLess(max(abs(a - b) for a, b in zip(got, want)), 1e-13)
            text = self.read(mount.join("nersc-header")).decode()
            self.assertIn("SEQUENCE_NUMBER = 17", text)

    def test_in_a_tree_where_it_is_asked_for(self):
        folder = self.tempdir()
        files = {"a.nersc": nersc(self.data, 3, "IEEE64BIG"), "b.milc": milc(self.data),
                 "c.openqcd": openqcd(self.data), "d.lime": record("x", b"1", True, True),
                 "e.txt": b"BEGIN_HEADER\nnothing of this kind\n" * 20}
        for name, content in files.items():
            put(os.path.join(folder, name), content)
        with limetest.Mount(folder) as mount:
            self.assertEqual([name for name in files if os.path.isdir(mount.join(name))],
                             ["d.lime"])
            self.assertEqual(self.read(mount.join("a.nersc")), files["a.nersc"])
        with limetest.Mount(folder, opts="formats") as mount:
            self.assertEqual([name for name in files if os.path.isdir(mount.join(name))],
                             list(files)[:4])
            self.assertEqual(self.read(mount.join("e.txt")), files["e.txt"])
            for name, kind in (("a.nersc", "nersc"), ("b.milc", "milc"), ("c.openqcd", "openqcd")):
                self.assert_shows(mount.join(name), kind,
                                  single(self.data) if kind == "milc" else self.data)

    def test_volumes_of_a_set(self):
        """Each is the container that it is, and which sites it has is not known."""
        folder, dims = self.tempdir(), (L,) * 4
        volumes = volumelib.Set(dims, [(576, self.data)], volumelib.blocks(dims, (1, 1, 1, 2)),
                                ildg=scidac.ildg_format(dims, 64))
        first = volumes.write(folder, "conf")
        for source, at in ((folder, "conf.vol0000"), (first, "")):
            with limetest.Mount(source, opts="formats") as mount:
                if at:
                    self.assertEqual(sorted(os.listdir(mount.path)), sorted(os.listdir(folder)))
                self.assertEqual(self.read(mount.join(at, "scidac-sitelist")), volumes.sitelist(0))
                data = mount.join(at, "ildg-binary-data")
                self.assertEqual(self.read(data), volumes.of_field(0, 0))
                self.assertEqual(os.getxattr(data, "user.lime.checksum"), b"unverified")
                self.assertEqual(os.getxattr(data, "user.lime.reason"),
                                 b"which sites of the lattice it has is not known")

    def test_what_takes_a_look_at_all_of_it_stays_a_file(self):
        """Nobody waits for that who only looks a name up."""
        folder = self.tempdir()
        sites = 512 ** 3
        head = struct.pack("<i4i64si", 20103, 512, 512, 512, 1, b"", 1)
        with open(os.path.join(folder, "list"), "wb") as file:  # no bytes but these
            file.write(head)
            file.truncate(88 + 4 * sites + 8 + 288 * sites)
        put(os.path.join(folder, "order"), nersc(bytes(len(self.data)), 3, "IEEE64"))
        with limetest.Mount(folder, opts="formats") as mount:
            for name in ("list", "order"):
                self.assertTrue(os.path.isfile(mount.join(name)), name)

    def test_a_list_that_names_a_site_twice(self):
        """Such a file is no configuration, and its bytes are there; a long list is not read to look
        a name up, and whoever opens it is told."""
        folder = self.tempdir()
        order = list(range(L ** 4))
        random.Random(1).shuffle(order)
        files = {"good": listed(self.data, order), "bad": listed(self.data, [0] + order[1:]),
                 "outside": listed(self.data, order)[:88] + struct.pack("<I", L ** 4)
                            + listed(self.data, order)[92:]}
        for name, content in files.items():
            put(os.path.join(folder, name), content)
        with open(os.path.join(folder, "long"), "wb") as file:
            file.write(struct.pack("<i4i64si", 20103, 128, 128, 128, 1, b"", 1))
            file.truncate(88 + 4 * 128 ** 3 + 8 + 288 * 128 ** 3)
        daemon = limetest.Foreground(folder, "-o", "formats")
        self.assert_shows(daemon.join("good"), "milc", single(self.data))
        for name in ("bad", "outside"):
            self.assertEqual(self.read(daemon.join(name)), files[name])
        self.assertErrno(errno.EIO, os.listdir, daemon.join("long"))
        self.assertEqual(daemon.end(), 0)
        self.assertIn("long: open: the list of sites does not name each site once",
                      daemon.words())

    def test_a_disk_that_is_back(self):
        """What could not be read is not taken for what cannot be shown."""
        folder = self.tempdir()
        for i in range(4):
            put(os.path.join(folder, f"conf{i}"), milc(self.data))
            os.utime(os.path.join(folder, f"conf{i}"), (1, 1))
        time.sleep(0.1)  # what is younger than a tick is looked at again in any case
        store = faults.Faults(folder)
        with limetest.Mount(folder, opts="formats,attr_timeout=0,entry_timeout=0",
                            env=store.environment()) as mount:
            for i in range(4):
                path = mount.join(f"conf{i}")
                store.arm(faults.DAEMON, "pread", i + 1, errno.EIO)
                with contextlib.suppress(OSError):
                    os.stat(path)
                store.disarm()
                self.assertTrue(os.path.isdir(path), i)
                store.arm(faults.DAEMON, "pread", i + 1, errno.EIO)
                try:
                    names = os.listdir(path)
                except OSError as error:
                    self.assertIn(error.errno, (errno.EIO, errno.ENOTDIR))
                else:
                    self.assertEqual(len(names), 3, i)
                store.disarm()
                self.assert_shows(path, "milc", single(self.data))

    def test_nothing_is_written(self):
        folder = self.tempdir()
        path = os.path.join(folder, "conf")
        content = nersc(self.data, 3, "IEEE64BIG")
        put(path, content)
        with limetest.Mount(folder, opts="formats,rw") as mount:
            for words in (["sh", "-c", "echo x >> conf/ildg-format"],
                          ["sh", "-c", "echo x > conf/new"], ["rm", "conf/003-ildg-binary-data"],
                          ["truncate", "-s", "5", "conf/nersc-header"]):
                done = run(words, cwd=mount.path)
                self.assertNotEqual(done.returncode, 0, words)
                self.assertIn("Read-only file system", done.stderr.decode())
        self.assertEqual(self.read(path), content)
        done = run(["limefs", "-o", "rw", path, self.tempdir()])
        self.assertEqual(done.returncode, 1)
        self.assertIn("open for writing: Read-only file system", done.stderr.decode())

    def test_another_file_in_its_place(self):
        folder = self.tempdir()
        path = os.path.join(folder, "conf")
        put(path, nersc(self.data, 3, "IEEE64BIG", 1))
        with limetest.Mount(path, opts="attr_timeout=0,entry_timeout=0") as mount:
            with open(mount.join("ildg-binary-data"), "rb", buffering=0) as old:
                self.assertEqual(old.read(8), self.data[:8])
                new = os.path.join(folder, "new")
                put(new, milc(self.data))
                os.rename(new, path)
                self.assert_shows(mount.path, "milc", single(self.data))
                self.assertEqual(os.pread(old.fileno(), 8, 65536), self.data[65536:65544])
            with open(path, "r+b") as file:  # in place: what is open fails, or is what it was
                with open(mount.join("ildg-binary-data"), "rb", buffering=0) as old:
                    old.read(8)
                    file.truncate(1000)
                    self.assertRaises(OSError, os.pread, old.fileno(), 8, 65536)

    def test_large_files_with_holes(self):
        """Whoever looks at them neither waits nor fills the memory."""
        folder = self.tempdir()
        head = nersc(b"", 3, "IEEE64").replace(b"= 4\n", b"= 256\n")
        with open(os.path.join(folder, "conf.nersc"), "wb") as file:
            file.write(head)
            file.truncate(len(head) + 576 * 256 ** 4)
        head = struct.pack("<i4i64si", 20103, 1024, 1024, 512, 1, b"Sun Nov 22", 1)
        with open(os.path.join(folder, "conf.milc"), "wb") as file:
            file.write(head)
            file.truncate(len(head) + 8 + (4 + 288) * 512 * 1024 ** 2)
        with limetest.Mount(folder, opts="formats") as mount:
            for name in ("conf.nersc", "conf.milc"):
                done = run(["stat", "-c", "%F", mount.join(name)], timeout=60, check=True)
                self.assertEqual(done.stdout, b"regular file\n")
            with open(f"/proc/{mount.pid}/status", encoding="ascii") as status:
                most = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            self.assertLess(most, 1 << 20)  # kB; the list alone would take twice as much

    def test_damaged(self):
        for content in (nersc(self.data, 3, "IEEE64BIG")[:-1], milc(self.data)[:-1],
                        openqcd(self.data)[:-8], b"BEGIN_HEADER\n" * 50):
            done = run(["limefs", self.write("conf", content), self.tempdir()])
            self.assertEqual(done.returncode, 1)
            self.assertIn("conf", done.stderr.decode())


if __name__ == "__main__":
    limetest.main()
