"""A mount shows configurations in other formats as containers. tests/lib/gaugelib.py makes the
files from the data of a container in tests/data/corpus."""

import contextlib
import errno
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import numpython
numpython.need("numpy")
import faults
import gaugelib
import limetest
import scidac
import volumelib
from limetest import put, read, record, run

CONTAINER = "tm_clime_gauge_4444_p64_n1.lime"
L = 4  # sites in each direction


def corpus_data():
    """Returns the ildg-binary-data of the container."""
    path = next(row["path"] for row in limetest.manifest() if row["path"].endswith(CONTAINER))
    return run(["lime", "cat", path, "ildg-binary-data"], check=True).stdout


@limetest.needs_fuse
class Formats(limetest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = corpus_data()
        cls.links = gaugelib.from_reals(cls.data, ">f8", (L,) * 4)
        cls.single = gaugelib.reals(cls.links, ">f4").tobytes()
        cls.nersc = gaugelib.write_nersc(cls.links)
        cls.milc = gaugelib.write_milc(cls.links)
        cls.openqcd = gaugelib.write_openqcd(cls.links)

    def assert_shows(self, directory, kind, data):
        self.assertEqual(sorted(os.listdir(directory)),
                         [f"001-{kind}-header", "002-ildg-format", "003-ildg-binary-data"])
        self.assertEqual(read(os.path.join(directory, "ildg-binary-data")), data)

    def test_a_file_is_a_container(self):
        for kind, content, data in (("nersc", self.nersc, self.data),
                                    ("nersc", gaugelib.write_nersc(self.links, "<f8"), self.data),
                                    ("nersc", gaugelib.write_nersc(self.links, ">f4"), self.single),
                                    ("milc", self.milc, self.single),
                                    ("openqcd", self.openqcd, self.data)):
            with self.subTest(kind=kind), limetest.Mount(self.write("conf", content)) as mount:
                self.assert_shows(mount.path, kind, data)
                with open(mount.join("ildg-binary-data"), "rb") as file:  # at any offset
                    for at, n in ((1, 7), (575, 2), (100003, 4099)):
                        self.assertEqual(os.pread(file.fileno(), n, at), data[at:at + n])
                info = self.run_ok(["lime", "info", mount.path]).decode()
                self.assertIn("su3gauge", info)
                self.assertIn("4^3 x 4", info)
                header = read(mount.join("ildg-binary-data.npy"))[:6]
                self.assertEqual(header, b"\x93NUMPY")  # exports exist, too

    def test_attributes(self):
        """Attributes describe the shown records; the file has other bytes at other offsets."""
        for content in (self.openqcd, gaugelib.write_nersc(self.links, "<f8")):
            with limetest.Mount(self.write("conf", content)) as mount:
                path = mount.join("ildg-binary-data")
                cksum = os.getxattr(path, "user.lime.cksum").decode()
                self.assertEqual(cksum, run(["cksum"], input=self.data,
                                            check=True).stdout.split()[0].decode())
                names = os.listxattr(path)
                self.assertIn("user.lime.type", names)
                self.assertNotIn("user.lime.offset", names)
                self.assertErrno(errno.ENODATA, os.getxattr, path, "user.lime.offset")

    def test_two_rows(self):
        """limefs computes the third row, with rounding errors."""
        with limetest.Mount(self.write("conf", gaugelib.write_nersc(self.links, rows=2))) as mount:
            got = gaugelib.from_reals(read(mount.join("ildg-binary-data")), ">f8", (L,) * 4)
            self.assertLess(float(abs(got - self.links).max()), 1e-13)
            text = read(mount.join("nersc-header")).decode()
            self.assertIn("SEQUENCE_NUMBER = 17", text)

    def test_in_a_tree_with_the_option(self):
        directory = self.tempdir()
        files = {"a.nersc": self.nersc, "b.milc": self.milc,
                 "c.openqcd": self.openqcd, "d.lime": record("x", b"1", True, True),
                 "e.txt": b"BEGIN_HEADER\nnothing of this kind\n" * 20}
        for name, content in files.items():
            put(os.path.join(directory, name), content)
        with limetest.Mount(directory) as mount:
            self.assertEqual([name for name in files if os.path.isdir(mount.join(name))],
                             ["d.lime"])
            self.assertEqual(read(mount.join("a.nersc")), files["a.nersc"])
        with limetest.Mount(directory, opts="formats") as mount:
            self.assertEqual([name for name in files if os.path.isdir(mount.join(name))],
                             list(files)[:4])
            self.assertEqual(read(mount.join("e.txt")), files["e.txt"])
            for name, kind in (("a.nersc", "nersc"), ("b.milc", "milc"), ("c.openqcd", "openqcd")):
                self.assert_shows(mount.join(name), kind,
                                  self.single if kind == "milc" else self.data)

    def test_volumes_of_a_set(self):
        """limefs shows each volume as its own container, with unverified data."""
        directory, dims = self.tempdir(), (L,) * 4
        volumes = volumelib.Set(dims, [(576, self.data)], volumelib.blocks(dims, (1, 1, 1, 2)),
                                ildg=scidac.ildg_format(dims, 64))
        first = volumes.write(directory, "conf")
        for source, at in ((directory, "conf.vol0000"), (first, "")):
            with limetest.Mount(source, opts="formats") as mount:
                if at:
                    self.assertEqual(sorted(os.listdir(mount.path)), sorted(os.listdir(directory)))
                self.assertEqual(read(mount.join(at, "scidac-sitelist")), volumes.sitelist(0))
                data = mount.join(at, "ildg-binary-data")
                self.assertEqual(read(data), volumes.field_part(0, 0))
                self.assertEqual(os.getxattr(data, "user.lime.checksum"), b"unverified")
                self.assertEqual(os.getxattr(data, "user.lime.reason"),
                                 b"one volume of a partitioned set; use 'lime join'")

    def test_a_list_that_names_a_site_twice(self):
        """Such a file stays a plain file. limefs does not read a long list for a lookup; opening
        the file then fails, and the daemon reports the reason."""
        directory = self.tempdir()
        order = list(range(L ** 4))
        random.Random(1).shuffle(order)
        files = {name: gaugelib.write_milc(self.links, ranks=ranks) for name, ranks in (
            ("good", order), ("bad", [0] + order[1:]))}
        files["outside"] = files["good"][:88] + struct.pack("<I", L ** 4) + files["good"][92:]
        for name, content in files.items():
            put(os.path.join(directory, name), content)
        head = struct.pack("<i4i64si", 20103, 128, 128, 128, 1, b"", 1)
        os.truncate(put(os.path.join(directory, "long"), head),
                    88 + 4 * 128 ** 3 + 8 + 288 * 128 ** 3)
        daemon = limetest.Foreground(directory, "-o", "formats")
        self.assert_shows(daemon.join("good"), "milc", self.single)
        for name in ("bad", "outside"):
            self.assertEqual(read(daemon.join(name)), files[name])
        self.assertErrno(errno.EIO, os.listdir, daemon.join("long"))
        self.assertEqual(daemon.end(), 0)
        self.assertIn("long: open: the list of sites does not name each site once", daemon.words())

    def test_a_temporary_read_error(self):
        """After a read error limefs still shows the file as a container."""
        directory = self.tempdir()
        for i in range(4):
            put(os.path.join(directory, f"conf{i}"), self.milc)
            os.utime(os.path.join(directory, f"conf{i}"), (1, 1))
        time.sleep(0.1)  # limefs rechecks younger files anyway
        store = faults.Faults(directory)
        with limetest.Mount(directory, opts="formats,attr_timeout=0,entry_timeout=0",
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
                self.assert_shows(path, "milc", self.single)

    def test_no_writes(self):
        directory = self.tempdir()
        path = put(os.path.join(directory, "conf"), self.nersc)
        with limetest.Mount(directory, opts="formats,rw") as mount:
            for command in (["sh", "-c", "echo x >> conf/ildg-format"],
                            ["sh", "-c", "echo x > conf/new"], ["rm", "conf/003-ildg-binary-data"],
                            ["truncate", "-s", "5", "conf/nersc-header"]):
                self.fails(command, "Read-only file system", status=None, cwd=mount.path)
        self.assertEqual(read(path), self.nersc)
        self.fails(["limefs", "-o", "rw", path, self.tempdir()],
                       "open for writing: Read-only file system")

    def test_replaced_by_another_file(self):
        directory = self.tempdir()
        path = put(os.path.join(directory, "conf"), self.nersc)
        with limetest.Mount(path, opts="attr_timeout=0,entry_timeout=0") as mount:
            with open(mount.join("ildg-binary-data"), "rb", buffering=0) as old:
                self.assertEqual(old.read(8), self.data[:8])
                os.rename(put(os.path.join(directory, "new"), self.milc), path)
                self.assert_shows(mount.path, "milc", self.single)
                self.assertEqual(os.pread(old.fileno(), 8, 65536), self.data[65536:65544])
            with open(path, "r+b") as file:  # in place: reads of an open record fail
                with open(mount.join("ildg-binary-data"), "rb", buffering=0) as old:
                    old.read(8)
                    file.truncate(1000)
                    self.assertRaises(OSError, os.pread, old.fileno(), 8, 65536)

    def test_large_files_with_holes(self):
        """stat() takes little time and memory; such files stay plain files."""
        directory = self.tempdir()
        head = gaugelib.write_nersc(self.links, floating="IEEE64")[:-len(self.data)]
        head = head.replace(b"= 4\n", b"= 256\n")
        os.truncate(put(os.path.join(directory, "conf.nersc"), head), len(head) + 576 * 256 ** 4)
        head = struct.pack("<i4i64si", 20103, 1024, 1024, 512, 1, b"Sun Nov 22", 1)
        os.truncate(put(os.path.join(directory, "conf.milc"), head),
                    len(head) + 8 + (4 + 288) * 512 * 1024 ** 2)
        put(os.path.join(directory, "order"),
            gaugelib.write_nersc(0 * self.links, floating="IEEE64"))
        with limetest.Mount(directory, opts="formats") as mount:
            for name in ("conf.nersc", "conf.milc", "order"):
                done = run(["stat", "-c", "%F", mount.join(name)], timeout=60, check=True)
                self.assertEqual(done.stdout, b"regular file\n")
            with open(f"/proc/{mount.pid}/status", encoding="ascii") as status:
                most = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            self.assertLess(most, 1 << 20)  # kB; the list alone would take twice as much

    def test_damaged(self):
        for content in (self.nersc[:-1], self.milc[:-1],
                        self.openqcd[:-8], b"BEGIN_HEADER\n" * 50):
            self.fails(["limefs", self.write("conf", content), self.tempdir()], "conf")


if __name__ == "__main__":
    limetest.main()
