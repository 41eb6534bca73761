#!/usr/bin/env python3
"""user.lime.cksum: what cksum(1) prints of a record, on request."""

import errno
import os
import random
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from test_ranks import stats, until
from limetest import put, read

CKSUM = "user.lime.cksum"


def cksum(data):
    done = subprocess.run(["cksum"], input=data, capture_output=True, check=True)
    return done.stdout.split()[0]


@limetest.needs_fuse
class Cksum(limetest.TestCase):
    def conf(self, *datas):
        path = os.path.join(self.tempdir(), "conf.lime")
        put(path, limetest.container([("ildg-binary-data", data) for data in datas]))
        os.utime(path, (1e9, 1e9))  # what has just been written might yet be looked at again
        return path

    def test_corpus(self):
        """Of every record, whatever it is."""
        with limetest.Mount(limetest.CORPUS) as mount:
            rows = [row for row in limetest.manifest()]
            for row in rows:
                path = mount.join(row["file"], f"{row['ordinal']:03}-{row['type']}")
                want = cksum(read(path))
                self.assertEqual(os.getxattr(path, CKSUM), want, path)
                self.assertEqual(os.getxattr(path, CKSUM), want, path)
            self.assertGreater(len(rows), 20)

    def test_known(self):
        path = self.conf(b"123456789", b"")
        with limetest.Mount(path) as mount:
            self.assertEqual(os.getxattr(mount.join("001-ildg-binary-data"), CKSUM), b"930766865")
            self.assertEqual(os.getxattr(mount.join("002-ildg-binary-data"), CKSUM),
                             b"4294967295")
            self.assertErrno(errno.ENODATA, os.getxattr, mount.path, CKSUM)

    def test_on_request_alone(self):
        data = random.Random(1).randbytes(3_000_001)
        path = self.conf(data)
        with limetest.Mount(path) as mount:
            record = mount.join("ildg-binary-data")
            done = limetest.run(["getfattr", "--absolute-names", "-d", "-m", "-", record],
                                check=True)
            self.assertNotIn(b"user.lime.cksum", done.stdout)
            self.assertEqual(stats(mount)["verified_bytes"], 0)
            done = limetest.run(["getfattr", "--only-values", "-n", CKSUM, record], check=True)
            self.assertEqual(done.stdout, cksum(data))
            self.assertEqual(stats(mount)["verified_bytes"], len(data))
            self.assertNotIn(CKSUM, os.listxattr(record))

    def test_changes_from_outside(self):
        data = random.Random(2).randbytes(2_000_000)
        path = self.conf(data)
        with limetest.Mount(path, opts="attr_timeout=0,entry_timeout=0") as mount:
            record = mount.join("ildg-binary-data")
            self.assertEqual(os.getxattr(record, CKSUM), cksum(data))
            with open(path, "r+b") as file:
                file.seek(144 + 1_000_000)
                file.write(bytes(100))
            data = data[:1_000_000] + bytes(100) + data[1_000_100:]
            until(lambda: os.getxattr(record, CKSUM) == cksum(data))

    def test_grown_while_it_is_open(self):
        data = random.Random(4).randbytes(100_000)
        path = self.conf(data)
        with limetest.Mount(path) as mount, open(mount.join("ildg-binary-data"), "rb") as record:
            record.read(1)
            put(path, limetest.container([("more", b"m" * 100)]), "ab")
            self.assertEqual(os.getxattr(record.fileno(), CKSUM), cksum(data))

    def test_changes_by_the_mount(self):
        data = bytearray(random.Random(3).randbytes(2_000_000))
        path = self.conf(bytes(data), b"123456789")
        with limetest.Mount(path, opts="rw") as mount:
            first, last = (mount.join(f"00{i}-ildg-binary-data") for i in (1, 2))
            self.assertEqual(os.getxattr(last, CKSUM), b"930766865")
            self.assertErrno(errno.EPERM, os.setxattr, last, CKSUM, b"1")
            for at in (0, 1_234_567):
                with open(first, "r+b") as file:
                    file.seek(at)
                    file.write(b"other bytes")
                    file.flush()
                    os.fsync(file.fileno())
                data[at:at + 11] = b"other bytes"
                self.assertEqual(os.getxattr(first, CKSUM), cksum(data))
            put(last, b"0", "ab")
            self.assertEqual(os.getxattr(last, CKSUM), cksum(b"1234567890"))

    def test_many_at_once(self):
        datas = [random.Random(n).randbytes(1_000_000 + n) for n in range(6)]
        path = self.conf(*datas)
        with limetest.Mount(path) as mount:
            paths = [mount.join(f"{i + 1:03}-ildg-binary-data") for i in range(6)]
            got = limetest.at_once(*((os.getxattr, path, CKSUM) for path in paths * 4))
            self.assertEqual(got, [cksum(data) for data in datas] * 4)

    def test_interrupted(self):
        """Who asks and goes leaves nothing running; nor does the mount's end."""
        path = os.path.join(self.tempdir(), "big.lime")
        limetest.run(["make-config", "--lattice", "32,32,32,32", path], check=True)
        with limetest.Mount(path) as mount:
            record = mount.join("ildg-binary-data")
            asking = subprocess.Popen(["getfattr", "-n", CKSUM, record],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            asking.send_signal(signal.SIGINT)
            asking.wait(60 * limetest.SLOWNESS)
            done = limetest.run(["lime", "checksum", "--cksum", path], check=True)
            self.assertEqual(os.getxattr(record, CKSUM), done.stdout.split()[0])


if __name__ == "__main__":
    limetest.main()
