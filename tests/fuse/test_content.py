"""Every record of every container, read through a mount in every way, is what it must be."""

import concurrent.futures
import hashlib
import mmap
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from limetest import read


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def name_of(row):
    return f"{row['ordinal']:03d}-{row['type']}"


def by_file():
    files = {}
    for row in limetest.manifest():
        files.setdefault(row["path"], []).append(row)
    return files


@limetest.needs_fuse
class Corpus(limetest.TestCase):
    def each(self):
        for path, rows in by_file().items():
            with self.subTest(os.path.basename(path)), limetest.Mount(path) as mount:
                yield mount, rows

    def test_names_are_complete_and_in_order(self):
        for mount, rows in self.each():
            self.assertEqual(sorted(os.listdir(mount)), [name_of(row) for row in rows])

    def test_cat(self):
        for mount, rows in self.each():
            for row in rows:
                data = self.run_ok(["cat", mount.join(name_of(row))])
                self.assertEqual((len(data), sha256(data)), (row["bytes"], row["sha256"]))
                self.assertEqual(os.stat(mount.join(name_of(row))).st_size, row["bytes"])

    def test_mmap(self):
        for mount, rows in self.each():
            for row in rows:
                with open(mount.join(name_of(row)), "rb") as file, \
                        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                    self.assertEqual(sha256(data), row["sha256"])

    def test_sendfile(self):
        for mount, rows in self.each():
            for row in rows:
                copy = os.path.join(self.tempdir(), "copy")
                with open(mount.join(name_of(row)), "rb") as file, open(copy, "wb+") as out:
                    at = 0
                    while got := os.sendfile(out.fileno(), file.fileno(), at, 1 << 20):
                        at += got
                    out.seek(0)
                    self.assertEqual(sha256(out.read()), row["sha256"])

    def test_64_parallel_readers_at_random_offsets(self):
        for mount, rows in self.each():
            whole = {}
            for row in rows:
                container = read(row["path"])
            for row in rows:  # where the data lie is told by the mount; what they are, by sha256
                at = int(os.getxattr(mount.join(name_of(row)), "user.lime.offset"))
                whole[name_of(row)] = container[at:at + row["bytes"]]
                self.assertEqual(sha256(whole[name_of(row)]), row["sha256"])

            def reader(seed):
                dice = random.Random(seed)
                for _ in range(30):
                    name = dice.choice(list(whole))
                    data = whole[name]
                    at = dice.randrange(len(data) + 1)
                    n = dice.choice([1, 100, 4096, 131072])
                    fd = os.open(mount.join(name), os.O_RDONLY)
                    try:
                        if os.pread(fd, n, at) != data[at:at + n]:
                            return (seed, name, at, n)
                    finally:
                        os.close(fd)
                return None

            with concurrent.futures.ThreadPoolExecutor(64) as pool:
                self.assertEqual([bad for bad in pool.map(reader, range(64)) if bad], [])

    def test_xattrs(self):
        for mount, rows in self.each():
            for row in rows:
                path = mount.join(name_of(row))
                verdict = {"user.lime.checksum", "user.lime.reason"}
                self.assertEqual(sorted(set(os.listxattr(path)) - verdict), sorted(
                    f"user.lime.{key}"
                    for key in ("type", "message", "record", "mb", "me", "offset")))
                for key, want in (("type", row["type"]), ("message", row["message"]),
                                  ("record", row["record"]), ("mb", row["MB"]),
                                  ("me", row["ME"])):
                    self.assertEqual(os.getxattr(path, f"user.lime.{key}"), str(want).encode())
                self.assertRaises(OSError, os.getxattr, path, "user.lime.nothing")

    def test_a_type_that_occurs_once_needs_no_number(self):
        for mount, rows in self.each():
            types = [row["type"] for row in rows]
            for row in rows:
                if types.count(row["type"]) == 1:
                    self.assertEqual(sha256(read(mount.join(row["type"]))), row["sha256"])
                else:
                    self.assertFalse(os.path.exists(mount.join(row["type"])))

    def test_the_whole_corpus_as_a_tree(self):
        with limetest.Mount(limetest.CORPUS) as mount:
            for row in limetest.manifest():
                path = mount.join(row["file"], name_of(row))
                self.assertEqual(sha256(read(path)), row["sha256"])
            with open(mount.join("MANIFEST.tsv"), "rb") as got, \
                    open(os.path.join(limetest.CORPUS, "MANIFEST.tsv"), "rb") as want:
                self.assertEqual(got.read(), want.read())


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

    def drop_cache(self):
        fd = os.open(self.path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)

    def test_cold_and_warm(self):
        for opts in (None, "readahead=0", "readahead=128K"):
            for _ in range(2):
                self.drop_cache()
                with limetest.Mount(self.path, opts=opts) as mount:
                    for _ in range(2):
                        self.assertEqual(sha256(read(mount.join("ildg-binary-data"))),
                                         sha256(self.data))
                    self.assertEqual(read(mount.join("end")), b"x" * 9)

    def test_reads_around_the_kernels_cache(self):
        self.drop_cache()
        with limetest.Mount(self.path) as mount:
            fd = os.open(mount.join("ildg-binary-data"), os.O_RDONLY | os.O_DIRECT)
            try:
                buffer = mmap.mmap(-1, 3 << 20)
                for at in (0, 4096, self.BYTES // 4096 * 4096, self.BYTES - 1, self.BYTES):
                    got = os.preadv(fd, [buffer], at)
                    self.assertEqual(buffer[:got], self.data[at:at + (3 << 20)])
            finally:
                os.close(fd)

    def test_random_reads_in_many_threads(self):
        self.drop_cache()
        with limetest.Mount(self.path) as mount:
            fd = os.open(mount.join("ildg-binary-data"), os.O_RDONLY)

            def reader(seed):
                dice = random.Random(seed)
                for _ in range(20):
                    at = dice.randrange(self.BYTES)
                    n = dice.choice([1, 4096, 65536, 1 << 20, 3 << 20])
                    if os.pread(fd, n, at) != self.data[at:at + n]:
                        return at, n
                return None

            try:
                with concurrent.futures.ThreadPoolExecutor(16) as pool:
                    self.assertEqual([b for b in pool.map(reader, range(16)) if b], [])
            finally:
                os.close(fd)

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
        with limetest.Mount(path) as mount:
            fd = os.open(mount.join("001-a"), os.O_RDONLY)
            try:
                self.assertEqual(os.lseek(fd, 0, os.SEEK_DATA), 0)
                self.assertEqual(os.lseek(fd, 8999, os.SEEK_DATA), 8999)
                self.assertEqual(os.lseek(fd, 5, os.SEEK_HOLE), 9000)
                self.assertEqual(os.lseek(fd, 0, os.SEEK_END), 9000)
                for whence in (os.SEEK_DATA, os.SEEK_HOLE):
                    with self.assertRaises(OSError) as caught:
                        os.lseek(fd, 9000, whence)
                    self.assertEqual(caught.exception.errno, 6)  # ENXIO
            finally:
                os.close(fd)

    def test_a_sparse_record(self):
        path = os.path.join(self.tempdir(), "c.lime")
        size = 64 << 20
        with open(path, "wb") as file:
            file.write(limetest.header("sparse", size, 1, 1))
            file.seek(144 + (32 << 20))
            file.write(b"here")
            file.truncate(144 + size)
        if os.stat(path).st_blocks * 512 > size // 2:
            self.skipTest("this file system has no holes")
        with limetest.Mount(path) as mount:
            fd = os.open(mount.join("001-sparse"), os.O_RDONLY)
            try:
                hole = os.lseek(fd, 0, os.SEEK_HOLE)
                data = os.lseek(fd, hole, os.SEEK_DATA)
                self.assertLess(hole, 1 << 20)
                self.assertTrue((31 << 20) < data <= (32 << 20))
                self.assertEqual(os.pread(fd, 4, 32 << 20), b"here")
                hole = os.lseek(fd, data, os.SEEK_HOLE)
                self.assertRaises(OSError, os.lseek, fd, hole, os.SEEK_DATA)
            finally:
                os.close(fd)


if __name__ == "__main__":
    limetest.main()
