"""Computed exports of a mount with a job are right, also when the job fails."""

import os
import random
import signal
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import scidac
from test_faces import numpy_of
from test_ranks import TestCase, serving, sha256, signals, stats, sum_while, until
from limetest import put, read

MIB = 1 << 20
DIMS = {32: (16, 16, 16, 40), 64: (16, 16, 16, 20)}
NAME = "ildg-binary-data"


def numbers_of(precision, seed):
    """Returns random data, and the same in each form: a dictionary by (precision, is little)."""
    count = DIMS[precision][0] ** 3 * DIMS[precision][3] * 72
    block = [random.Random(seed).uniform(-1, 1) for _ in range(9973)]
    letter = {32: "f", 64: "d"}
    forms = {}
    if precision == 32:
        block = struct.unpack("9973f", struct.pack("9973f", *block))
    for to in (32, 64):
        for order in "><":
            packed = struct.pack(f"{order}9973{letter[to]}", *block)
            forms[to, order == "<"] = (packed * (count // 9973 + 1))[:count * to // 8]
    return forms[precision, False], forms


class Exports(TestCase):
    """One container with two records, one in each precision."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.forms = {}
        items = []
        for precision in (64, 32):
            data, cls.forms[precision] = numbers_of(precision, precision)
            items.append([("xlf-info", b"x" * (1000 + precision)),  # for odd offsets of the data
                          ("ildg-format", scidac.ildg_format(DIMS[precision], precision)),
                          (NAME, data)])
        cls.content = limetest.container(items)

    def setUp(self):
        TestCase.records = 0
        super().setUp()
        put(self.container, self.content)

    def exports(self):
        """Yields name and data of each export in another form than the record's."""
        for precision, number in ((64, 3), (32, 6)):
            for to, little in self.forms[precision]:
                if (to, little) != (precision, False):
                    suffix = (f".f{to // 8}" if to != precision else "") + ".le" * little
                    yield f"{number:03}-{NAME}{suffix}.npy", self.forms[precision][to, little]

    def check(self, mount, name, data):
        got = numpy_of(read(mount.join(name)))[1]
        self.assertTrue(got == data, name)


class Ranks(Exports):
    timeout = 30.0

    def test_any_number_of_ranks(self):
        for ranks in (1, 2, 3, 4, 6):
            with self.subTest(ranks=ranks), serving(self.mount(f"ranks={ranks}")) as mount:
                for name, data in self.exports():
                    self.check(mount, name, data)
                for precision, number in ((64, 3), (32, 6)):
                    slices = mount.join(f"{number:03}-{NAME}.t")
                    whole = b"".join(read(os.path.join(slices, t))
                                     for t in sorted(os.listdir(slices)))
                    self.assertTrue(whole == self.forms[precision][precision, False])
                self.assertGreater(stats(mount)["forwarded_bytes"], 100 * MIB)
                self.assertEqual(stats(mount)["failed_loads"], 0)

    def test_exports_and_records_at_once(self):
        names = dict(self.exports())
        whole = {f"003-{NAME}": self.forms[64][64, False],
                 f"006-{NAME}": self.forms[32][32, False]}
        with serving(self.mount("ranks=2")) as mount:
            wrong = []

            def reader(name, data):
                raw = read(mount.join(name))
                if (raw if name in whole else numpy_of(raw)[1]) != data:
                    wrong.append(name)
            limetest.at_once(*((reader, *each) for each in {**names, **whole}.items()))
            self.assertEqual(wrong, [])

    def test_random_access_at_odd_offsets(self):
        dice = random.Random(5)
        with serving(self.mount("ranks=2")) as mount:
            for name, data in self.exports():
                with open(mount.join(name), "rb", buffering=0) as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                    head = os.fstat(file.fileno()).st_size - len(data)
                    for _ in range(40):
                        at, n = dice.randrange(len(data)), dice.choice([1, 5, 4097, 200001, MIB])
                        self.assertTrue(os.pread(file.fileno(), n, head + at) == data[at:at + n])

    def test_sites_in_another_order(self):
        export = f"003-{NAME}.eo.npy"
        with serving(self.mount("ranks=2")) as mount:
            want = self.run_ok(["lime", "cat", self.container, export])
            self.assertTrue(read(mount.join(export)) == want)
            self.assertGreater(stats(mount)["forwarded_bytes"], 0)

    def test_verified_during_a_read(self):
        data = self.forms[64][64, False]
        put(self.container, scidac.gauge(DIMS[64], data))
        with serving(self.mount("ranks=2", "verify=stream")) as mount:
            self.check(mount, f"{NAME}.le.npy", self.forms[64][64, True])
            self.assertEqual(stats(mount)["verified_ok"], 1)

    def test_the_container_is_written_to(self):
        """A write to the record drops cached data of its exports, too."""
        export, patch = f"{NAME}.le.npy", os.urandom(MIB)
        data = bytearray(self.forms[64][64, False])
        put(self.container, scidac.gauge(DIMS[64], bytes(data), False))
        with serving(self.mount("rw", "ranks=2")) as mount:
            self.check(mount, export, self.forms[64][64, True])
            for at in (0, 20 * MIB, len(data) - MIB):
                with open(mount.join(NAME), "r+b", buffering=0) as file:
                    os.pwrite(file.fileno(), patch, at)
                data[at:at + MIB] = patch
                expected = struct.pack(f"<{len(data) // 8}Q",
                                       *struct.unpack(f">{len(data) // 8}Q", data))
                self.check(mount, export, expected)

    def test_the_container_is_replaced(self):
        """Another container with other numbers replaces it, several times."""
        export, forms = f"{NAME}.le.npy", {}
        with serving(self.mount("ranks=2")) as mount:
            for seed in range(3):
                data, forms = numbers_of(64, 100 + seed)
                os.rename(put(self.container + ".new", scidac.gauge(DIMS[64], data, False)),
                          self.container)
                self.check(mount, export, forms[64, True])


class Faults(Exports):
    def test_killed_and_stopped(self):
        """A process of the job is killed or stopped while a program reads an export."""
        name, data = list(self.exports())[0]
        for number in (signal.SIGKILL, signal.SIGSTOP):
            with self.subTest(number), serving(self.mount("ranks=3")) as mount:
                path = mount.join(name)
                got = sum_while(path, signals(mount, "limefs-io", number), 0.1,
                                os.stat(path).st_size - len(data))
                self.assertEqual(got, sha256(data))
                until(lambda mount=mount: self.forwards_again(mount), 60)

    def forwards_again(self, mount):
        serving(mount)
        before = stats(mount)["forwarded_bytes"]
        name, data = list(self.exports())[0]
        fd = os.open(mount.join(name), os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        self.check(mount, name, data)
        now = stats(mount)
        return now["job"]["connections"] > 1 and now["forwarded_bytes"] > before


if __name__ == "__main__":
    limetest.main()
