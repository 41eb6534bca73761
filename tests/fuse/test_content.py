"""Every record of every container has the right bytes by each system call on a mount."""

import errno
import hashlib
import mmap
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from limetest import descriptor, read


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def name_of(row):
    return f"{row['ordinal']:03d}-{row['type']}"


@limetest.needs_fuse
class Corpus(limetest.TestCase):
    def test_each_container(self):
        files = {}
        for row in limetest.manifest():
            files.setdefault(row["path"], []).append(row)
        for path, rows in files.items():
            with self.subTest(os.path.basename(path)), limetest.Mount(path) as mount:
                self.assertEqual(sorted(os.listdir(mount)), [name_of(row) for row in rows])
                types = [row["type"] for row in rows]
                container = read(path)
                for row in rows:
                    self.check_bytes(mount.join(name_of(row)), row)
                    self.check_attributes(mount.join(name_of(row)), row, container)
                    # A type that occurs once needs no number.
                    if types.count(row["type"]) == 1:
                        self.assertEqual(sha256(read(mount.join(row["type"]))), row["sha256"])
                    else:
                        self.assertFalse(os.path.exists(mount.join(row["type"])))

    def check_bytes(self, path, row):
        self.assertEqual(os.stat(path).st_size, row["bytes"])
        data = self.run_ok(["cat", path])
        self.assertEqual((len(data), sha256(data)), (row["bytes"], row["sha256"]))
        with open(path, "rb") as file:
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                self.assertEqual(sha256(mapped), row["sha256"])
            with tempfile.TemporaryFile() as copy:
                at = 0
                while got := os.sendfile(copy.fileno(), file.fileno(), at, 1 << 20):
                    at += got
                copy.seek(0)
                self.assertEqual(sha256(copy.read()), row["sha256"])

    def check_attributes(self, path, row, container):
        want = {"type": row["type"], "message": row["message"], "record": row["record"],
                "mb": row["MB"], "me": row["ME"]}
        listed = set(os.listxattr(path)) - {"user.lime.checksum", "user.lime.reason"}
        self.assertEqual(listed, {f"user.lime.{key}" for key in (*want, "offset")})
        for key, value in want.items():
            self.assertEqual(os.getxattr(path, f"user.lime.{key}"), str(value).encode())
        self.assertRaises(OSError, os.getxattr, path, "user.lime.nothing")
        at = int(os.getxattr(path, "user.lime.offset"))
        self.assertEqual(sha256(container[at:at + row["bytes"]]), row["sha256"])

    def test_the_whole_corpus_as_a_tree(self):
        with limetest.Mount(limetest.CORPUS) as mount:
            for row in limetest.manifest():
                self.assertEqual(sha256(read(mount.join(row["file"], name_of(row)))),
                                 row["sha256"])
            self.assertEqual(read(mount.join("MANIFEST.tsv")),
                             read(os.path.join(limetest.CORPUS, "MANIFEST.tsv")))


@limetest.needs_fuse
class Attributes(limetest.TestCase):
    def test_times_owner_and_mode_come_from_the_container(self):
        path = self.write("c.lime", limetest.container([("a", b"12345"), ("b", b"")]))
        os.chmod(path, 0o640)
        os.utime(path, ns=(10**18 + 5, 10**18 + 7))
        if os.geteuid() == 0:
            os.chown(path, 12, 34)
        want = os.stat(path)
        with limetest.Mount(path) as mount:
            got = os.stat(mount.join("001-a"))
            self.assertEqual(got.st_mode, 0o100640)
            self.assertEqual((got.st_uid, got.st_gid), (want.st_uid, want.st_gid))
            self.assertEqual(got.st_mtime_ns, want.st_mtime_ns)
            self.assertEqual((got.st_size, got.st_blocks, got.st_nlink), (5, 1, 1))
            self.assertEqual(os.stat(mount.join("002-b")).st_size, 0)
            self.assertEqual(os.stat(mount).st_mode, 0o40750)

    def test_statfs_is_that_of_the_source(self):
        path = self.write("c.lime", limetest.container([("a", b"1")]))
        with limetest.Mount(path) as mount:
            got, want = os.statvfs(mount), os.statvfs(path)
            self.assertEqual((got.f_blocks, got.f_frsize), (want.f_blocks, want.f_frsize))
            self.assertTrue(got.f_flag & os.ST_RDONLY)


@limetest.needs_fuse
class Seek(limetest.TestCase):
    def test_data_and_holes_of_a_full_record(self):
        path = self.write("c.lime", limetest.container([("a", b"1" * 9000), ("b", b"2" * 9000)]))
        with limetest.Mount(path) as mount, descriptor(mount.join("001-a"), os.O_RDONLY) as fd:
            for at, whence, want in ((0, os.SEEK_DATA, 0), (8999, os.SEEK_DATA, 8999),
                                     (5, os.SEEK_HOLE, 9000), (0, os.SEEK_END, 9000)):
                self.assertEqual(os.lseek(fd, at, whence), want)
            for whence in (os.SEEK_DATA, os.SEEK_HOLE):
                self.assertErrno(errno.ENXIO, os.lseek, fd, 9000, whence)

    def test_a_sparse_record(self):
        size = 64 << 20
        path = self.write("c.lime", limetest.header("sparse", size, 1, 1))
        with open(path, "r+b") as file:
            file.seek(144 + (32 << 20))
            file.write(b"here")
            file.truncate(144 + size)
        if os.stat(path).st_blocks * 512 > size // 2:
            self.skipTest("this file system has no holes")
        with limetest.Mount(path) as mount, descriptor(mount.join("001-sparse"), os.O_RDONLY) as fd:
            hole = os.lseek(fd, 0, os.SEEK_HOLE)
            data = os.lseek(fd, hole, os.SEEK_DATA)
            self.assertLess(hole, 1 << 20)
            self.assertTrue((31 << 20) < data <= (32 << 20))
            self.assertEqual(os.pread(fd, 4, 32 << 20), b"here")
            hole = os.lseek(fd, data, os.SEEK_HOLE)
            self.assertRaises(OSError, os.lseek, fd, hole, os.SEEK_DATA)


if __name__ == "__main__":
    limetest.main()
