#!/usr/bin/env python3
"""Records verified by their checksums: user.lime.checksum and user.lime.cksum, lime verify,
-o verify=open|stream."""

import concurrent.futures
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
import test_ranks
import writelib
from limetest import descriptor, put, read
from test_ranks import serving, stats, until

CHECKSUM, VERIFY = "user.lime.checksum", "user.lime.verify"
REASON, CKSUM = "user.lime.reason", "user.lime.cksum"
MIB = 1 << 20
PATIENT = "job_timeout=30"  # seconds, for a busy machine


def configuration(lattice, seed=1, harm=None, checksum=True):
    """Return the records of a configuration; if `harm` is set, the byte of the data at this offset
    does not match the checksum."""
    form, (kind, data), sums = scidac.records(lattice, scidac.field(lattice, 576, seed))
    if harm is not None:
        data = data[:harm] + bytes([data[harm] ^ 16]) + data[harm + 1:]
    return [form, (kind, data), sums][:3 if checksum else 2]


class Files(limetest.TestCase):
    LATTICE = (8, 8, 8, 16)  # 4.7 MB

    def put(self, records, name="conf.lime"):
        path = os.path.join(getattr(self, "directory", None) or self.tempdir(), name)
        put(path, limetest.container(records))
        os.utime(path, (1e9, 1e9))  # the daemon may check a fresh file again
        return path

    def conf(self, name="conf.lime", **how):
        """Write a configuration; return its path and its data."""
        records = configuration(**{"lattice": self.LATTICE, **how})
        return self.put(records, name), records[1][1]

    def lime(self, *args, status=0):
        done = limetest.run(["lime", "verify", *args])
        self.assertEqual(done.returncode, status, done)
        return done.stdout.decode() + done.stderr.decode()


def verdict(path):
    return os.getxattr(path, CHECKSUM).decode()


def read_to_the_end(path, block=131072, flags=0):
    """Return the data, and 0 or the errno that ended the read."""
    fd = os.open(path, os.O_RDONLY | flags)
    got = []
    try:
        while True:
            data = os.read(fd, block)
            if not data:
                return b"".join(got), 0
            got.append(data)
    except OSError as error:
        return b"".join(got), error.errno
    finally:
        os.close(fd)


@limetest.needs_fuse
class OnRequest(Files):
    def test_the_corpus(self):
        """Every record with a checksum is good, whichever program wrote it."""
        count = 0
        with limetest.Mount(limetest.CORPUS) as mount:
            for row in limetest.manifest():
                path = mount.join(row["file"], f"{row['ordinal']:03}-{row['type']}")
                has = row["type"] in ("ildg-binary-data", "scidac-binary-data") and \
                    not row["file"].startswith("clime_pack")
                is_data = row["type"].endswith("-binary-data")
                self.assertEqual(CHECKSUM in os.listxattr(path), is_data, path)
                if is_data and not has:
                    for name in CHECKSUM, VERIFY:
                        self.assertEqual(os.getxattr(path, name), b"unverified")
                    self.assertEqual(os.getxattr(path, REASON), b"no checksum")
                elif has:
                    self.assertEqual(verdict(path), "unverified")
                    self.assertEqual(os.getxattr(path, VERIFY), b"good", path)
                    self.assertEqual(verdict(path), "good")
                    count += 1
                else:
                    for name in CHECKSUM, VERIFY:
                        self.assertErrno(errno.ENODATA, os.getxattr, path, name)
            self.assertEqual(stats(mount)["verified_ok"], count)
            self.assertGreater(count, 8)

    def test_other_lengths(self):
        """A record that is longer or shorter than its lattice is bad: without a verification if its
        length is not a whole number of sites, else by its checksum."""
        form, (kind, data), sums = configuration((4, 4, 4, 8))
        whole = "its length is not a whole number of sites"
        for harmed, why in ((data[:-576], ""), (data + bytes(576), ""), (data * 2, ""),
                            (data[:-1], whole), (data + b"x", whole), (b"", "there are no data")):
            path = self.put([form, (kind, harmed), sums])
            for opts in "verify=off", "verify=stream", "verify=open":
                with self.subTest(opts, n=len(harmed)), limetest.Mount(path, opts=opts) as mount:
                    record = mount.join("ildg-binary-data")
                    self.assertEqual(verdict(record), "bad" if why else "unverified")
                    self.assertEqual(REASON in os.listxattr(record), bool(why))
                    if opts == "verify=stream" and harmed:
                        self.assertEqual(read_to_the_end(record)[1], errno.EIO)
                        self.assertEqual(verdict(record), "bad")
                    if opts == "verify=open":
                        self.assertRaises(OSError, os.open, record, os.O_RDONLY)
                    self.assertEqual(os.getxattr(record, VERIFY), b"bad")
                    self.assertEqual(verdict(record), "bad")
                    reason = os.getxattr(record, REASON).decode()
                    self.assertTrue(reason == why or not why and "checksum" in reason, reason)
                    self.assertIn(f"{record}: bad: {reason}\n".replace("/ildg", "/002-ildg"),
                                  self.lime(mount.path, status=1))

    def test_other_sites_than_described(self):
        """Data that match their checksum are good even if the format states another lattice."""
        _, (kind, data), sums = configuration((4, 4, 4, 8))
        for form in (scidac.ildg_format((4, 4, 4, 4)), scidac.ildg_format((8, 4, 8, 8)),
                     scidac.ildg_format((4, 4, 4, 8), 32)):
            path = self.put([("ildg-format", form), (kind, data), sums])
            for opts in "verify=off", "verify=stream", "verify=open":
                with limetest.Mount(path, opts=opts) as mount:
                    record = mount.join("ildg-binary-data")
                    self.assertEqual(verdict(record), "unverified")
                    if opts == "verify=off":
                        self.assertEqual(self.lime("-q", record), "")
                        self.assertIn(": bad: ", self.lime(mount.path, status=1))
                    for block in 131072, 1000, 1 << 20:
                        self.assertEqual(read_to_the_end(record, block), (data, 0))
                    self.assertEqual(verdict(record), "good")

    def test_unverifiable(self):
        """Data that cannot be verified have the verdict "unverified" and a reason."""
        form, (kind, data), sums = configuration((4, 4, 4, 8))
        self.directory = self.tempdir()
        cases = {"a": ([("scidac-binary-data", data), sums], "the size of a site is unknown"),
                 "b": ([form, (kind, data), ("scidac-checksum", b"<x/>")],
                       "its checksum cannot be understood"),
                 "c": ([scidac.private_record(288), form, (kind, data * 2), sums],
                       "its descriptions disagree on the size of a site"),
                 "d": ([("note", b"text"), form, (kind, data)], "no checksum")}
        for name, (records, _) in cases.items():
            self.put(records, name)
        self.put([("note", b"text"), ("note", b"more")], "none")
        nothing = "no record with data to verify"
        for opts in "verify=off", "verify=stream", "verify=open":
            with limetest.Mount(self.directory, opts=opts) as mount:
                expected = []
                for name, (records, why) in cases.items():
                    ordinal = 1 + max(i for i, (type, _) in enumerate(records)
                                      if type.endswith("-binary-data"))
                    path = mount.join(name, f"{ordinal:03}-{records[ordinal - 1][0]}")
                    expected.append((path, why))
                    self.assertEqual(verdict(path), "unverified")
                    self.assertEqual(os.getxattr(path, "user.lime.reason").decode(), why)
                    self.assertEqual(read_to_the_end(path), (records[ordinal - 1][1], 0))
                    self.assertEqual(os.getxattr(path, VERIFY), b"unverified")
                    self.assertEqual(self.lime(path, status=3), f"{path}: unverified: {why}\n")
                for args in (["-q"], []):  # metadata of "b" and "c" are bad as well
                    lines = self.lime(*args, mount.path, status=1).splitlines()
                    self.assertEqual([line for line in lines if ": unverified: " in line],
                                     [f"{path}: unverified: {why}" for path, why in expected] +
                                     [f"{mount.join('none')}: unverified: {nothing}"])
                    self.assertEqual([line.split(": bad: ")[0] for line in lines
                                      if ": bad: " in line], [mount.join(name) for name in "bc"])
                *found, total = limetest.json_lines(self.lime("--json", mount.path, status=1))
                self.assertEqual([(os.path.join(one["file"], record["name"]), record["error"])
                                  for one in found for record in one["records"]
                                  if record["status"] == "unverified" and record["name"]],
                                 expected)
                self.assertEqual((total["summary"]["bad"], total["summary"]["unverified"]), (2, 3))
                none = mount.join("none")
                for args in (["-q"], []):
                    self.assertEqual(self.lime(*args, none, status=3),
                                     f"{none}: unverified: {nothing}\n")
                state = {"status": "unverified", "error": nothing}
                self.assertEqual(json.loads(self.lime("--json", none, status=3)),
                                 {"file": none, "records": [{"name": None, **state}], **state})
                note = mount.join("none", "001-note")
                self.assertIn("not the data of a field", self.lime(note, status=3))
                self.assertFalse({CHECKSUM, REASON} & set(os.listxattr(note)))

    def test_no_checksum_in_a_stream(self):
        """Reading a record without a checksum does not affect the verification of another one."""
        path, data = self.conf()
        with limetest.Mount(path, opts="verify=stream") as mount:
            for _ in range(5):
                read_to_the_end(mount.join("ildg-format"))
            self.assertEqual(read_to_the_end(mount.join("ildg-binary-data")), (data, 0))
            self.assertEqual(verdict(mount.join("ildg-binary-data")), "good")

    def test_change_by_another_program(self):
        """If another program changes the data, the verdict is unverified again."""
        path, data = self.conf()
        with limetest.Mount(path, opts="attr_timeout=0,entry_timeout=0") as mount:
            record = mount.join("ildg-binary-data")
            self.assertEqual(os.getxattr(record, VERIFY), b"good")
            at = limetest.read(path).index(data) + 1_000_000
            with open(path, "r+b") as file:
                file.seek(at)
                file.write(bytes(100))
            until(lambda: verdict(record) == "unverified")
            self.assertEqual(os.getxattr(record, VERIFY), b"bad")

    def test_size_of_attributes(self):
        """A query of an attribute's size verifies nothing; user.lime.cksum is not listed."""
        path, data = self.conf()
        with limetest.Mount(path) as mount:
            record = mount.join("ildg-binary-data")
            done = limetest.run(["getfattr", "--absolute-names", "-d", "-m", "-", record],
                                check=True)
            self.assertIn(b'user.lime.checksum="unverified"', done.stdout)
            self.assertNotIn(CKSUM.encode(), done.stdout)
            self.assertEqual(stats(mount)["verified_bytes"], 0)
            for name, value in (VERIFY, b"good"), (CKSUM, cksum(data)):
                self.assertEqual(
                    self.run_ok(["getfattr", "--only-values", "-n", name, record]), value)

    def test_command(self):
        good, _data = self.conf("good.lime")
        self.directory = os.path.dirname(good)
        self.conf("bad.lime", seed=2, harm=3_000_000)
        self.conf("plain.lime", checksum=False)
        with open(os.path.join(self.directory, "notes.txt"), "w", encoding="ascii") as out:
            out.write("no container")
        with limetest.Mount(self.directory) as mount:
            record = mount.join("good.lime", "ildg-binary-data")
            self.assertEqual(self.lime(record), f"{record}: good\n")
            self.assertEqual(self.lime("-q", record), "")
            state = {"status": "good", "error": None}
            self.assertEqual(json.loads(self.lime("--json", record)),
                             {"file": record, "records": [{"name": None, **state}], **state})
            bad = mount.join("bad.lime", "002-ildg-binary-data")
            plain = mount.join("plain.lime", "002-ildg-binary-data")
            output = self.lime("-q", mount.path, status=1)
            lines = [f"{bad}: bad: {os.getxattr(bad, REASON).decode()}\n",
                     f"{plain}: unverified: no checksum\n"]
            self.assertRegex(lines[0], "bad: checksum [0-9a-f]{8} [0-9a-f]{8}, expected "
                                       "[0-9a-f]{8} [0-9a-f]{8}$")
            self.assertEqual(output, "".join(lines))
            lines.insert(1, f"{mount.join('good.lime', '002-ildg-binary-data')}: good\n")
            self.assertEqual(self.lime(mount.path, status=1), "".join(lines) +
                             "4 files: 1 good, 1 bad, 1 unverified, 0 unreadable, 1 skipped\n")
            self.assertIn("not a record in a limefs mount",
                          self.lime(mount.join("notes.txt"), status=2))
        self.assertIn("not a record in a limefs mount", self.lime(good, status=2))
        self.assertIn("not in a limefs mount", self.lime(self.tempdir(), status=2))
        self.assertIn("No such file", self.lime(mount.join("none"), status=2))
        self.lime(status=2)

    def test_working_files(self):
        """lime skips the temporary files and locks of its commands in a mount, too."""
        good, _data = self.conf("good.lime")
        self.directory = os.path.dirname(good)
        with open(good, "rb") as file:
            part = file.read(3_000_000)
        for name in ".good.lime.lime-tmp-0123abcd-17-5a-0", ".good.lime.limefs-stage", ".run.lock":
            put(os.path.join(self.directory, name), b"" if name == ".run.lock" else part)
        with limetest.Mount(self.directory) as mount:
            self.assertEqual(self.lime(mount.path),
                             f"{mount.join('good.lime', '002-ildg-binary-data')}: good\n"
                             "4 files: 1 good, 0 bad, 0 unverified, 0 unreadable, 3 skipped\n")
            done = limetest.run(["lime", "check", "-r", mount.path], check=True)
            self.assertIn(b"4 files: 1 good, 0 bad, 0 unverified, 0 unreadable, 3 skipped",
                          done.stdout)

    def test_other_requests_during_a_verification(self):
        """A daemon with one thread serves other requests during a long verification."""
        path, data = self.conf(lattice=(16, 16, 16, 32))  # 75 MB
        with limetest.Mount(path, args=["-s"]) as mount:
            record = mount.join("ildg-binary-data")

            def verify():
                self.assertEqual(os.getxattr(record, VERIFY), b"good")

            with limetest.in_background(verify, threads=4):
                for seen in range(20):
                    os.listdir(mount.path)
                    with open(record, "rb") as file:
                        file.seek(seen * 1000)
                        self.assertEqual(file.read(100), data[seen * 1000:seen * 1000 + 100])

    def test_interrupted(self):
        """An interrupted verification ends, and does not prevent the next one or the unmount."""
        path = os.path.join(self.tempdir(), "big.lime")
        limetest.run(["make-config", "--lattice", "32,32,32,32", path], check=True)
        with limetest.Mount(path) as mount:
            record = mount.join("ildg-binary-data")
            client = subprocess.Popen([limetest.program("lime"), "verify", record],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until(lambda: int(os.getxattr(record, "user.lime.verifying")) > 0 or
                  client.poll() is not None)
            client.send_signal(signal.SIGINT)
            client.wait(20)
            self.assertEqual(os.getxattr(record, VERIFY), b"good")


def cksum(data):
    done = limetest.run(["cksum"], input=data, check=True)
    return done.stdout.split()[0]


@limetest.needs_fuse
class Cksum(Files):
    """user.lime.cksum: what cksum(1) prints of a record, on request."""

    def conf_of(self, *datas):
        return self.put([("ildg-binary-data", data) for data in datas])

    def test_corpus(self):
        """Each record of the corpus has the right value."""
        with limetest.Mount(limetest.CORPUS) as mount:
            for row in limetest.manifest():
                path = mount.join(row["file"], f"{row['ordinal']:03}-{row['type']}")
                want = cksum(read(path))
                self.assertEqual(os.getxattr(path, CKSUM), want, path)

    def test_changes_by_the_mount(self):
        data = bytearray(random.Random(3).randbytes(2_000_000))
        path = self.conf_of(bytes(data), b"123456789")
        with limetest.Mount(path, opts="rw") as mount:
            first, last = (mount.join(f"00{i}-ildg-binary-data") for i in (1, 2))
            self.assertEqual(os.getxattr(last, CKSUM), b"930766865")
            self.assertErrno(errno.ENODATA, os.getxattr, mount.path, CKSUM)
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
        path = self.conf_of(*datas)
        with limetest.Mount(path) as mount:
            paths = [mount.join(f"{i + 1:03}-ildg-binary-data") for i in range(6)]
            got = limetest.at_once(*((os.getxattr, path, CKSUM) for path in paths * 4))
            self.assertEqual(got, [cksum(data) for data in datas] * 4)


@limetest.needs_fuse
class AtOpen(Files):
    def test_right(self):
        path, data = self.conf()
        with limetest.Mount(path, opts="verify=open") as mount:
            with open(mount.join("ildg-binary-data"), "rb") as file:
                self.assertEqual(verdict(file.name), "good")
                self.assertTrue(file.read() == data)
            for _ in range(3):
                with open(mount.join("ildg-binary-data"), "rb") as file:
                    file.read(1)
            self.assertIn(b"su3gauge", limetest.read(mount.join("ildg-format")))
            self.assertEqual(stats(mount)["verified_bytes"], len(data))

    def test_many_at_once(self):
        path, data = self.conf()
        with limetest.Mount(path, opts="verify=open") as mount:
            found = limetest.at_once(*[(read, mount.join("ildg-binary-data"))] * 16)
            self.assertTrue(all(one == data for one in found))
            self.assertEqual(stats(mount)["verified_bytes"], len(data))


@limetest.needs_fuse
class WhileRead(Files):
    opts = "verify=stream"

    def mount(self, path, *opts, **how):
        return limetest.Mount(path, opts=[self.opts, *opts], **how)

    def readers(self, record, data, right):
        """Sequential reads of several kinds detect bad data."""
        good, code = (data, 0) if right else (None, errno.EIO)
        for block, flags in [(131072, 0), (4096, 0), (1_000_003, 0), (MIB, os.O_DIRECT)]:
            got, error = read_to_the_end(record, block, flags)
            self.assertEqual(error, code)
            self.assertTrue(data.startswith(got))
            self.assertEqual(got == data, right)
            if good is None:  # at most the last request fails
                self.assertGreaterEqual(len(got), len(data) - 8 * MIB)

    def test_right(self):
        path, data = self.conf()
        with self.mount(path) as mount:
            record = mount.join("ildg-binary-data")
            self.assertEqual(verdict(record), "unverified")
            self.readers(record, data, True)
            self.assertEqual(verdict(record), "good")
            self.assertEqual(stats(mount)["verified_bytes"], len(data))

    def test_wrong(self):
        for at in 0, 1_234_567, 8 * 8 * 8 * 16 * 576 - 1:
            path, data = self.conf(harm=at)
            with self.mount(path) as mount:
                record = mount.join("ildg-binary-data")
                self.readers(record, data, False)
                self.assertEqual(verdict(record), "bad")
                done = subprocess.run(["cp", record, self.tempdir()], stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"Input/output error", done.stderr)

    def test_the_end_of_a_bad_record(self):
        """A later open gets EIO at the end, even if the kernel has the end cached."""
        path, data = self.conf(harm=99)
        with self.mount(path) as mount:
            record = mount.join("ildg-binary-data")

            def tail():
                with open(record, "rb", buffering=0) as file:
                    file.seek(-10, os.SEEK_END)
                    return file.read(10)

            self.assertEqual(tail(), data[-10:])
            self.assertEqual(os.getxattr(record, VERIFY), b"bad")
            self.assertErrno(errno.EIO, tail)
            self.assertEqual(read_to_the_end(record)[1], errno.EIO)
            with open(record, "rb", buffering=0) as file:
                self.assertEqual(file.read(10), data[:10])

    def test_wrong_and_mapped(self):
        """A process that maps a bad record gets SIGBUS at its end."""
        path, data = self.conf(harm=99)
        code = ("import mmap, sys\nfile = open(sys.argv[1], 'rb')\n"
                "mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
                "for at in range(0, len(mapped), 4096):\n"
                "    mapped[at]\n"
                "    print(at, flush=at > len(mapped) - 8192)\n")
        with self.mount(path) as mount:
            record = mount.join("ildg-binary-data")
            done = subprocess.run([sys.executable, "-c", code, record], stdout=subprocess.PIPE)
            self.assertEqual(done.returncode, -signal.SIGBUS)
            self.assertEqual(verdict(record), "bad")

    def test_at_random(self):
        """A program that reads parts, or at random, gets no error and does not wait for long."""
        path, data = self.conf(harm=99)
        with self.mount(path) as mount:
            record = mount.join("ildg-binary-data")
            dice = random.Random(1)
            fd = os.open(record, os.O_RDONLY | os.O_DIRECT)
            for _ in range(2000):
                at, n = dice.randrange(len(data) - MIB), dice.randrange(1, 5000)
                self.assertTrue(os.pread(fd, n, at) == data[at:at + n])
            begin = time.monotonic()
            self.assertEqual(os.pread(fd, 4096, len(data) - 4096), data[-4096:])
            self.assertLess(time.monotonic() - begin, 5)
            os.close(fd)

    def test_all_at_random_then_in_sequence(self):
        path, data = self.conf(harm=99)
        with self.mount(path) as mount:
            record = mount.join("ildg-binary-data")
            fd = os.open(record, os.O_RDONLY | os.O_DIRECT)
            for i in range(1100, 0, -1):
                os.pread(fd, 512, i * 4096)
            os.close(fd)
            self.assertEqual(read_to_the_end(record, flags=os.O_DIRECT)[1], errno.EIO)

    def test_many_at_once(self):
        for harm, want in (None, "good"), (2_000_000, "bad"):
            path, data = self.conf(harm=harm)
            with self.mount(path) as mount:
                record = mount.join("ildg-binary-data")
                done = limetest.at_once(*((read_to_the_end, record, 4096 << i % 6)
                                          for i in range(16)))
                if harm is None:
                    self.assertTrue(all(one == (data, 0) for one in done))
                else:
                    self.assertEqual({error for _, error in done}, {errno.EIO})
                self.assertEqual(verdict(record), want)

    def read_second_half(self, size, path):
        """Read the second half, which gives no verdict, up to the end, which waits for one."""
        with descriptor(path, os.O_RDONLY | os.O_DIRECT) as fd:
            for at in range(size // 2 // MIB * MIB, size, MIB // 8):
                os.pread(fd, MIB // 8, at)

    def test_a_verdict_of_another_request(self):
        """A read that waits for the verdict ends as soon as another request has it."""
        path, data = self.conf(harm=99)
        for _ in range(3):  # the machine may be busy
            with self.mount(path) as mount, concurrent.futures.ThreadPoolExecutor() as pool:
                record = mount.join("ildg-binary-data")
                second_half = pool.submit(self.read_second_half, len(data), record)
                time.sleep(0.2)
                self.assertEqual(os.getxattr(record, VERIFY), b"bad")
                begin = time.monotonic()
                self.assertErrno(errno.EIO, second_half.result)
                waited = time.monotonic() - begin
            if waited < 1.2:
                return
        self.fail(f"the verdict came after {waited} seconds")

    def test_other_requests_while_ends_wait(self):
        """The daemon serves other requests while the ends of many records wait for verdicts."""
        self.directory = self.tempdir()
        for i in range(12):
            _, data = self.conf(f"{i}.lime")

        def look_up(mount):
            begin = time.monotonic()
            self.assertFalse(os.path.exists(mount.join(f"0.lime/{begin}")))
            return time.monotonic() - begin

        for _ in range(3):  # the machine may be busy
            with self.mount(self.directory) as mount, \
                    concurrent.futures.ThreadPoolExecutor(12) as pool:
                reads = [pool.submit(self.read_second_half, len(data),
                                     mount.join(f"{i}.lime/ildg-binary-data")) for i in range(12)]
                slowest = 0
                while not all(one.done() for one in reads):
                    slowest = max(slowest, look_up(mount))
                    time.sleep(0.01)
            if slowest < 1.2:
                return
        self.fail(f"a lookup took {slowest} seconds")

    def test_the_log(self):
        path, _data = self.conf(harm=5)
        daemon = limetest.Foreground(path, "-o", self.opts)
        read_to_the_end(daemon.join("ildg-binary-data"))
        daemon.end()
        lines = daemon.words().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("record 2: verify: bad: checksum ", lines[0])


class WhileReadDirect(WhileRead):
    """The same without the kernel's page cache."""
    opts = "verify=stream,direct_io,forward_from=1M"

    def readers(self, record, data, right):
        got, error = read_to_the_end(record, MIB)
        self.assertEqual(error, 0 if right else errno.EIO)
        self.assertTrue(data.startswith(got))

    test_wrong_and_mapped = None


@limetest.needs_fuse
class Writing(Files):
    def verified(self, record):
        """Return the new verdict, once the daemon has committed the closed record."""
        def verify():
            try:
                return os.getxattr(record, VERIFY)
            except OSError as error:
                self.assertEqual(error.errno, errno.EBUSY)
                return None
        return writelib.until(verify)

    def test_verdicts_do_not_outlive_writes(self):
        path, data = self.conf()
        with limetest.Mount(path, opts="rw") as mount:
            record = mount.join("002-ildg-binary-data")
            self.assertEqual(os.getxattr(record, VERIFY), b"good")
            self.assertEqual(verdict(record), "good")
            fd = os.open(record, os.O_RDWR)
            os.pwrite(fd, bytes([data[1000] ^ 1]), 1000)
            os.fsync(fd)
            self.assertEqual(verdict(record), "unverified")
            self.assertEqual(os.getxattr(record, VERIFY), b"bad")
            os.pwrite(fd, data[1000:1001], 1000)
            os.fsync(fd)
            self.assertEqual(os.getxattr(record, VERIFY), b"good")
            os.close(fd)
            put(mount.join("log"), b"more")
            self.assertEqual(os.getxattr(record, VERIFY), b"good")

    def test_replaced(self):
        path, data = self.conf()
        other = configuration(self.LATTICE, seed=5)
        with limetest.Mount(path, opts="rw") as mount:
            record = mount.join("002-ildg-binary-data")
            self.assertEqual(self.verified(record), b"good")
            put(record, other[1][1])
            self.assertEqual(self.verified(record), b"bad")
            put(mount.join("003-scidac-checksum"), other[2][1])
            self.assertEqual(self.verified(record), b"good")
            put(record, data)
            self.assertEqual(self.verified(record), b"bad")

    def test_a_new_container(self):
        directory = self.tempdir()
        records = configuration(self.LATTICE)
        with limetest.Mount(directory, opts="rw,verify=open") as mount:
            os.mkdir(mount.join("new.lime"))
            for name, data in records:
                put(mount.join("new.lime", name), data)
            record = mount.join("new.lime", "ildg-binary-data")
            self.assertTrue(limetest.read(record) == records[1][1])
            self.assertEqual(verdict(record), "good")


@limetest.needs_fuse
class Job(test_ranks.TestCase, Files):
    records = 0
    LATTICE = (16, 16, 16, 16)  # 37.7 MB

    def test_while_read(self):
        for harm in None, 20_000_000:
            path, data = self.conf(harm=harm)
            with self.mount("ranks=2", PATIENT, "verify=stream", source=path) as mount:
                record = serving(mount).join("ildg-binary-data")
                got, err = read_to_the_end(record)
                self.assertEqual(err, errno.EIO if harm else 0)
                self.assertTrue(data.startswith(got))
                self.assertEqual(verdict(record), "bad" if harm else "good")
                self.assertGreater(stats(mount)["forwarded_bytes"], len(data) // 2)


if __name__ == "__main__":
    limetest.main()
