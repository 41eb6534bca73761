"""Every record of every container, read through a mount in every way, is what it must be."""

import errno
import hashlib
import mmap
import os
import random
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
                for row in rows:
                    self.bytes_by_each_call(mount.join(name_of(row)), row)
                    self.attributes(mount.join(name_of(row)), row)
                    # A type that occurs once needs no number.
                    if types.count(row["type"]) == 1:
                        self.assertEqual(sha256(read(mount.join(row["type"]))), row["sha256"])
                    else:
                        self.assertFalse(os.path.exists(mount.join(row["type"])))
                self.many_readers_at_random_offsets(mount, rows)

    def bytes_by_each_call(self, path, row):
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

    def attributes(self, path, row):
        want = {"type": row["type"], "message": row["message"], "record": row["record"],
                "mb": row["MB"], "me": row["ME"]}
        listed = set(os.listxattr(path)) - {"user.lime.checksum", "user.lime.reason"}
        self.assertEqual(listed, {f"user.lime.{key}" for key in (*want, "offset")})
        for key, value in want.items():
            self.assertEqual(os.getxattr(path, f"user.lime.{key}"), str(value).encode())
        self.assertRaises(OSError, os.getxattr, path, "user.lime.nothing")

    def many_readers_at_random_offsets(self, mount, rows):
        whole, container = {}, read(rows[0]["path"])
        for row in rows:  # where the data lie is told by the mount; what they are, by sha256
            at = int(os.getxattr(mount.join(name_of(row)), "user.lime.offset"))
            whole[name_of(row)] = container[at:at + row["bytes"]]
            self.assertEqual(sha256(whole[name_of(row)]), row["sha256"])

        def reader(seed):
            dice = random.Random(seed)
            for _ in range(30):
                name = dice.choice(list(whole))
                at, n = dice.randrange(len(whole[name]) + 1), dice.choice([1, 100, 4096, 131072])
                with open(mount.join(name), "rb", buffering=0) as file:
                    self.assertEqual(os.pread(file.fileno(), n, at), whole[name][at:at + n])

        limetest.at_once(*((reader, seed) for seed in range(64)))

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

    def test_inode_numbers_are_a_function_of_the_record(self):
        data = limetest.container([(f"t{i}", b"x") for i in range(50)])
        path = self.write("c.lime", data)
        folder = os.path.dirname(path)
        seen = []
        for source, where in ((path, "."), (path, "."), (folder, "c.lime"), (folder, "c.lime")):
            with limetest.Mount(source) as mount:
                listed = {entry.name: entry.inode() for entry in os.scandir(mount.join(where))}
                self.assertEqual(
                    {n: os.stat(mount.join(where, n)).st_ino for n in listed}, listed)
                self.assertEqual(len(set(listed.values())), 50)
                self.assertEqual(sorted(listed, key=listed.get), sorted(listed))
                seen.append(listed)
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[2], seen[3])

    def test_statfs_is_that_of_the_source(self):
        path = self.write("c.lime", limetest.container([("a", b"1")]))
        with limetest.Mount(path) as mount:
            got, want = os.statvfs(mount), os.statvfs(path)
            self.assertEqual((got.f_blocks, got.f_frsize), (want.f_blocks, want.f_frsize))
            self.assertTrue(got.f_flag & os.ST_RDONLY)


@limetest.needs_fuse
class Large(limetest.TestCase):
    """A record long enough for read-ahead and direct reads, at an odd place."""

    BYTES = 37 * 1024 * 1024 + 12345

    def setUp(self):
        self.data = random.Random(1).randbytes(self.BYTES)
        self.path = self.write("big.lime", limetest.container(
            [("note", b"odd"), ("ildg-binary-data", self.data), ("end", b"x" * 9)]))

    def test_cold_and_warm(self):
        for opts in (None, "readahead=0", "readahead=128K"):
            for _ in range(2):
                limetest.drop_cache(self.path)
                with limetest.Mount(self.path, opts=opts) as mount:
                    for _ in range(2):
                        self.assertEqual(sha256(read(mount.join("ildg-binary-data"))),
                                         sha256(self.data))
                    self.assertEqual(read(mount.join("end")), b"x" * 9)

    def test_reads_around_the_kernels_cache(self):
        limetest.drop_cache(self.path)
        with limetest.Mount(self.path) as mount, descriptor(
                mount.join("ildg-binary-data"), os.O_RDONLY | os.O_DIRECT) as fd:
            buffer = mmap.mmap(-1, 3 << 20)
            for at in (0, 4096, self.BYTES // 4096 * 4096, self.BYTES - 1, self.BYTES):
                got = os.preadv(fd, [buffer], at)
                self.assertEqual(buffer[:got], self.data[at:at + (3 << 20)])

    def test_random_reads_in_many_threads(self):
        limetest.drop_cache(self.path)
        with limetest.Mount(self.path) as mount, \
                open(mount.join("ildg-binary-data"), "rb", buffering=0) as file:
            def reader(seed):
                dice = random.Random(seed)
                for _ in range(20):
                    at = dice.randrange(self.BYTES)
                    n = dice.choice([1, 4096, 65536, 1 << 20, 3 << 20])
                    self.assertTrue(os.pread(file.fileno(), n, at) == self.data[at:at + n], (at, n))

            limetest.at_once(*((reader, seed) for seed in range(16)))

    def test_pages_stay_cached_between_opens(self):
        os.utime(self.path, (1, 1))  # one changed this very moment is indexed a second time
        with limetest.Mount(self.path) as mount:
            path = mount.join("ildg-binary-data")
            read(path)
            before = self.reads_of(mount.pid)
            self.assertEqual(sha256(read(path)), sha256(self.data))
            self.assertLess(self.reads_of(mount.pid) - before, self.BYTES // 4)

    @staticmethod
    def reads_of(pid):
        """Bytes that the daemon has read so far."""
        with open(f"/proc/{pid}/io") as file:
            return int(dict(line.split(": ") for line in file)["rchar"])


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
