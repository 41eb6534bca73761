"""Configurations that a mount exports as whole files of other formats: conf.nersc, conf.milc,
conf.openqcd. tests/lib/gaugelib.py has their readers, made from the formats' specifications."""

import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import limetest
import scidac
from limetest import run
from writelib import read

try:
    import numpy
    import gaugelib
except ImportError:
    numpy = None

FORMATS = ("nersc", "milc", "openqcd")
CONFIGURATIONS = ("tm_clime_gauge_4444_p64_n1.lime", "tm_clime_gauge_4448_p32_n1.lime",
                  "qio_nersc_ildg.lime")


def corpus(name):
    return os.path.join(limetest.CORPUS, name)


@limetest.needs_fuse
@unittest.skipIf(numpy is None, "needs python3-numpy")
class Whole(limetest.TestCase):
    def links(self, data, kind):
        """Return the links in double precision; the reader of the format compares sums and
        plaquette with the header."""
        got = getattr(gaugelib, f"read_{kind}")(data)
        return numpy.asarray(got[0] if isinstance(got, tuple) else got, dtype="complex128")

    def test_links_sums_and_plaquette(self):
        for name in CONFIGURATIONS:
            want = numpy.asarray(self.links(read(corpus(name)), "ildg"))
            with limetest.Mount(corpus(name)) as mount:
                for kind in FORMATS:
                    with self.subTest(name=name, kind=kind):
                        data = read(mount.join(f"conf.{kind}"))
                        self.assertEqual(len(data), os.stat(mount.join(f"conf.{kind}")).st_size)
                        got = self.links(data, kind)
                        self.assertEqual(got.shape, want.shape)
                        bound = 1e-7 if kind == "milc" else 0
                        self.assertLessEqual(float(abs(got - want).max()), bound)
                        self.assertEqual(read(mount.join(f"ildg-binary-data.{kind}")), data)
                        self.assertEqual(
                            run(["lime", "cat", corpus(name), f"ildg-binary-data.{kind}"],
                                check=True).stdout, data)

    def test_any_part(self):
        with limetest.Mount(corpus(CONFIGURATIONS[0])) as mount:
            for kind in FORMATS:
                path = mount.join(f"conf.{kind}")
                whole = read(path)
                with limetest.Mount(corpus(CONFIGURATIONS[0])) as fresh, \
                        open(fresh.join(f"conf.{kind}"), "rb", buffering=0) as file:
                    for at, n in ((0, 1), (len(whole) - 1, 10), (23, 100), (5000, 4097),
                                  (77777, 40001), (len(whole), 5)):
                        self.assertEqual(os.pread(file.fileno(), n, at), whole[at:at + n])

    def test_opened_by_several_at_once(self):
        with limetest.Mount(corpus(CONFIGURATIONS[0])) as mount:
            found = limetest.at_once(*[(read, mount.join("conf.nersc"))] * 6)
            self.assertEqual(len(set(found)), 1)

    def test_written_to(self):
        """After a write, an open export fails, and the next open has new sums. The container has no
        checksum: data that do not match one have no exports."""
        with limetest.Mount(corpus(CONFIGURATIONS[0])) as mount:
            data = read(mount.join("ildg-binary-data"))
        path = self.write("conf.lime", limetest.record(
            "ildg-format", scidac.ildg_format((4, 4, 4, 4), 64), True, False) +
            limetest.record("ildg-binary-data", data, False, True))
        with limetest.Mount(path, opts="rw") as mount:
            before = self.links(read(mount.join("conf.nersc")), "nersc")
            with open(mount.join("conf.nersc"), "rb", buffering=0) as old:
                old.read(10)
                with open(mount.join("ildg-binary-data"), "r+b") as file:
                    first = file.read(16)
                    file.seek(0)
                    file.write(bytes(16))
                os.posix_fadvise(old.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                self.assertRaises(OSError, os.pread, old.fileno(), 100, 100000)
            after = self.links(read(mount.join("conf.nersc")), "nersc")
            self.assertNotEqual(first, bytes(16))
            self.assertEqual(int((before != after).sum()), 1)
            for command in (["sh", "-c", "echo x >> conf.nersc"], ["rm", "conf.nersc"],
                            ["truncate", "-s", "5", "conf.milc"]):
                self.assertNotEqual(run(command, cwd=mount.path).returncode, 0, command)

    def test_nan(self):
        path = self.write("conf.lime", read(corpus(CONFIGURATIONS[0])))
        with limetest.Mount(path, opts="rw") as mount:
            with open(mount.join("ildg-binary-data"), "r+b") as file:
                file.write(b"\x7f\xf8" + bytes(6))
        with limetest.Mount(path) as mount:
            self.assertRaises(OSError, read, mount.join("conf.nersc"))
            self.assertTrue(os.stat(mount.join("conf.nersc")).st_size)

    def test_interrupted(self):
        """A signal ends an open() that waits for the sums of a configuration. The file is sparse:
        reading it would take hours."""
        dims = (32, 32, 32, 1 << 19)
        path = self.write("conf.lime", limetest.record(
            "ildg-format", scidac.ildg_format(dims, 64), True, False))
        nbytes = dims[0] * dims[1] * dims[2] * dims[3] * 576
        with open(path, "ab") as file:
            file.write(limetest.header("ildg-binary-data", nbytes, False, True))
            file.truncate(file.tell() + nbytes)
        with limetest.Mount(path) as mount:
            reader = subprocess.Popen(["cat", mount.join("conf.nersc")],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.wait_until_open_waits(reader)
            reader.terminate()
            self.assertNotEqual(reader.wait(timeout=300), 0)
            self.assertEqual(run(["cat", mount.join("ildg-format")], timeout=300).returncode, 0)

    def wait_until_open_waits(self, process):
        """Wait until the process sleeps in open(), in a request to the daemon."""
        for _ in range(3000):
            with open(f"/proc/{process.pid}/wchan", encoding="ascii") as file:
                if file.read() == "request_wait_answer":
                    return
            time.sleep(0.1)
        self.fail("the open does not wait")


if __name__ == "__main__":
    limetest.main()
