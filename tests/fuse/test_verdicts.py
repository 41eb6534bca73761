#!/usr/bin/env python3
"""Verdicts that a mount gives on damaged files: lime verify and lime check of the mount, its
attributes, -o verify=open|stream. docs/verdicts.md has the table."""

import errno
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython
numpython.need("numpy")
import damage
import faults
import limetest
import test_verify
from limetest import put, read

CHECKSUM, REASON = "user.lime.checksum", "user.lime.reason"
PLAIN = "a plain file"
NO_DATA = None

# {(verdict on the data, exit status of lime verify on the container): names of files}
TABLE = {name: row for row, names in {
    ("good", 0): [
        "good", "bad link", "wrong plaquette", *damage.harmless(), "good.nersc", "link.nersc",
        "good.milc", "link.milc", "good.openqcd"],
    PLAIN: [
        "cut in the first magic", "cut in the first header", "empty", "zeros",
        "zeros before the second header", "a block of zeros", "bit in the first magic",
        "version of the first header", "garbage before the second header",
        "first header and half its data", "cut.nersc", "cut.milc", "cut.openqcd"],
    (NO_DATA, 1): [
        "cut behind the first header", "cut in metadata", "cut between metadata and data",
        "cut in the header of the data", "cut behind the header of the data", "cut in the data",
        "cut one byte off the data", "length of the first header",
        "bit in the magic of the data", "version of the header of the data",
        "high bit of the length of the data", "top bit of the length of the data",
        "bit in the type of the data", "checksum of no data"],
    ("unverified", 1): [
        "cut between data and checksum", "cut in the last header", "cut in the checksum",
        "bit in the XML", "low bit of the length of the data", "top bit in the type of metadata",
        "checksum that cannot be read"],
    ("bad", 1): [
        "bit in the data", "bit in the last link", "bit in the checksum", "sum.nersc",
        "bit.nersc", "plaquette.nersc", "sum.milc", "bit.milc", "plaquette.openqcd"],
    ("good", 1): [
        "bit in the lattice", "message begins twice", "message does not end", "reserved byte",
        "trailing garbage", "trailing zeros"],
    ("unverified", 3): ["no checksum"],
}.items() for name in names}

# {file in limetest.CASES: (verdict on the data, reason)}
CASES = {
    "bad-sum.nersc": ("bad", "checksum 8b1942b0, not 8b1942b1 as in the header"),
    "bad-plaq.nersc": ("bad", "plaquette 0.000544516767399, not 0.1234445170 as in the header"),
    "zero-sums.milc": ("unverified", "the header has no usable checksum"),
    "usqcd-f3.lime": ("good", None),
    "only-data.ildg": ("unverified", "no checksum"),
}


def attribute(path, name):
    try:
        return os.getxattr(path, name).decode()
    except OSError as error:
        assert error.errno == errno.ENODATA, error
        return None


def data_record(directory):
    """Return the path of the data record, or None."""
    found = [name for name in os.listdir(directory)
             if name[0].isdigit() and name.endswith("-binary-data")]
    return os.path.join(directory, found[0]) if found else None


def opens(path):
    """Open `path` for reading; return 0 or the errno."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return error.errno
    return 0


def checked(names, *options):
    """Return what lime check --json reports for the files."""
    done = limetest.run(["lime", "check", "--json", *options, *names])
    return limetest.json_lines(done.stdout)


@limetest.needs_fuse
class Damaged(limetest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = limetest.tempdir()
        for name, content in damage.kinds().items():
            path = os.path.join(cls.directory, name)
            put(path, content)
            os.utime(path, (1e9, 1e9))

    def shown(self, mount):
        """Yield (name, directory, verdict, status) of each file shown as a container."""
        self.assertEqual(set(TABLE), set(damage.kinds()))
        for name, row in TABLE.items():
            path = mount.join(name)
            self.assertEqual(os.path.isfile(path), row is PLAIN, name)
            if row is not PLAIN:
                yield name, path, *row

    def assert_verify(self, directory, verdict, status):
        """lime verify reports this verdict and exits with this status for a container."""
        done = limetest.run(["lime", "verify", "--json", directory])
        reported = {one["name"]: one for one in json.loads(done.stdout)["records"]}
        self.assertEqual((done.returncode, done.stderr), (status, b""))
        record = data_record(directory)
        if record:
            one = reported.pop(os.path.basename(record))
            self.assertEqual((one["status"], bool(one["error"])), (verdict, verdict != "good"))
        bad_structure = status == 1 and verdict != "bad"
        self.assertEqual([one["status"] for one in reported.values() if one["status"] == "bad"],
                         ["bad"] * bad_structure)

    def test_on_request(self):
        with limetest.Mount(self.directory, opts="formats") as mount:
            for name, path, verdict, status in self.shown(mount):
                with self.subTest(name):
                    record = data_record(path)
                    self.assertEqual(record is None, verdict is NO_DATA)
                    if record:
                        self.assertEqual(attribute(record, CHECKSUM), "unverified")
                        self.assertEqual(opens(record), 0)
                    self.assert_verify(path, verdict, status)
                    if record:
                        self.assertEqual(attribute(record, CHECKSUM), verdict)
                        self.assertEqual(attribute(record, REASON) is None, verdict == "good")
                        listed = REASON in os.listxattr(record)
                        self.assertEqual(listed, verdict != "good")
            done = limetest.run(["lime", "verify", "--json", mount.path])
            self.assertEqual(done.returncode, 1)
            reported = {os.path.basename(line["file"]): line["status"]
                        for line in limetest.json_lines(done.stdout)[:-1]}
            for name, row in TABLE.items():  # lime verify reports remains of containers
                if row is PLAIN:
                    self.assertEqual(reported.get(name), "bad", name)

    def test_before_it_is_opened(self):
        with limetest.Mount(self.directory, opts="formats,verify=open") as mount:
            for name, path, verdict, status in self.shown(mount):
                with self.subTest(name):
                    record = data_record(path)
                    if record:
                        want = errno.EIO if verdict == "bad" else 0
                        self.assertEqual(opens(record), want)
                        self.assertEqual(attribute(record, CHECKSUM), verdict)
                        export = record + ".npy"
                        if os.path.exists(export):
                            self.assertEqual(opens(export), want)
                    self.assert_verify(path, verdict, status)

    def test_at_the_end_of_a_stream(self):
        with limetest.Mount(self.directory, opts="formats") as mount:
            content = {name: test_verify.read_to_the_end(data_record(path))[0]
                       for name, path, verdict, _ in self.shown(mount) if verdict}
        with limetest.Mount(self.directory, opts="formats,verify=stream") as mount:
            for name, path, verdict, _ in self.shown(mount):
                if verdict is NO_DATA:
                    continue
                with self.subTest(name):
                    record = data_record(path)
                    for block in 1000, 131072, 1 << 20:
                        data, error = test_verify.read_to_the_end(record, block)
                        if verdict == "bad":
                            self.assertEqual(error, errno.EIO)
                            self.assertLess(len(data), len(content[name]))
                            self.assertTrue(content[name].startswith(data))
                        else:
                            self.assertEqual((data, error), (content[name], 0))
                    self.assertEqual(attribute(record, CHECKSUM), verdict)

    def assert_same_findings(self, mount, options):
        """lime check has the same findings in the mount as in the file."""
        names = [name for name, *_ in self.shown(mount)]
        files = checked([os.path.join(self.directory, name) for name in names], *options)
        shown = checked([mount.join(name) for name in names], *options)
        for name, file, container in zip(names, files, shown):
            for report in file, container:
                del report["file"]
            self.assertEqual(container, file, (name, options))

    def test_check(self):
        with limetest.Mount(self.directory, opts="formats") as mount:
            for options in (), ("--data",), ("--physics",), ("--data", "--physics"):
                self.assert_same_findings(mount, options)

    def test_check_where_data_are_withheld(self):
        """lime check reports bad data that the mount withholds as bad, not as unreadable; also if
        it cannot find the file that the mount shows."""
        for verify in "open", "stream":
            with limetest.Mount(self.directory, opts=f"formats,verify={verify}") as mount:
                self.assert_same_findings(mount, ())
                moved = os.path.join(self.tempdir(), "moved")
                os.rename(self.directory, moved)
                self.addCleanup(lambda: os.path.exists(moved) and os.rename(moved, self.directory))
                for name, path, verdict, _ in self.shown(mount):
                    if verdict != "bad":
                        continue
                    for options in ("--data",), ("--physics",), ("--data", "--physics"):
                        with self.subTest(name, verify=verify, options=options):
                            (report,) = checked([path], *options)
                            codes = [one["code"] for one in report["findings"]]
                            want = "plaquette" if name.startswith("plaquette") else "checksum"
                            self.assertEqual(codes, [want])
                            for part in "checksums", "physics":
                                self.assertIn([one["state"] for one in report.get(part, ())],
                                              ([], ["bad"]))
                            done = limetest.run(["lime", "check", "-q", *options, path])
                            self.assertEqual(done.returncode, 1)
            os.rename(moved, self.directory)


@limetest.needs_fuse
class Cases(limetest.TestCase):
    def test_all(self):
        with limetest.Mount(limetest.CASES, opts="formats") as mount:
            for name, (verdict, reason) in CASES.items():
                with self.subTest(name):
                    record = data_record(mount.join(name))
                    done = limetest.run(["lime", "verify", record])
                    self.assertEqual(done.stdout.decode(), f"{record}: {verdict}"
                                     + (f": {reason}\n" if reason else "\n"))
                    self.assertEqual(done.returncode, damage.STATUS[verdict])
                    self.assertEqual((attribute(record, CHECKSUM), attribute(record, REASON)),
                                     (verdict, reason))
            for options in ("--data",), ("--physics",), ("--data", "--physics"):
                for name in "bad-sum.nersc", "bad-plaq.nersc":
                    done = limetest.run(["lime", "check", *options, "-r", mount.join(name)])
                    self.assertEqual(done.returncode, 1, (name, options, done))

    def test_tolerance_of_plaquettes(self):
        """A plaquette may differ by 1e-9 in openQCD, and by 1e-7 in NERSC with double precision."""
        u, directory = damage.links(), self.tempdir()
        plaquette = damage.gaugelib.plaquette(u)
        for name, data, good in (
                ("a", damage.gaugelib.write_openqcd(u, 3 * plaquette + 4e-9), False),
                ("b", damage.gaugelib.write_openqcd(u, 3 * plaquette + 1e-9), True),
                ("c", damage.gaugelib.write_nersc(u, PLAQUETTE=f"{plaquette + 1e-6:.9f}"), False),
                ("d", damage.gaugelib.write_nersc(u, PLAQUETTE=f"{plaquette + 5e-8:.9f}"), True)):
            path = os.path.join(directory, name)
            put(path, data)
            with limetest.Mount(path) as mount:
                done = limetest.run(["lime", "verify", mount.path])
                self.assertEqual(done.returncode, int(not good), (name, done))
                for options in ("--data",), ("--physics",), ("--data", "--physics"):
                    for checked_path in path, mount.path:
                        (report,) = checked([checked_path], *options)
                        self.assertEqual([one["code"] for one in report["findings"]],
                                         [] if good else ["plaquette"], (name, options))
                        done = limetest.run(["lime", "check", "-q", *options, checked_path])
                        self.assertEqual(done.returncode, int(not good), (name, options))


@limetest.needs_fuse
class Exports(limetest.TestCase):
    def test_damaged_data_get_no_new_checksum(self):
        """Bad data have no exports, whose own checksum would make the data appear good."""
        for name, good in (("good", True), ("bit in the data", False), ("no checksum", True)):
            path = self.write("c.lime", damage.kinds()[name])
            with limetest.Mount(path) as mount:
                for export in "nersc", "milc", "openqcd":
                    with self.subTest(name, export=export):
                        shown = mount.join("ildg-binary-data." + export)
                        done = limetest.run(["lime", "cat", path, "ildg-binary-data." + export])
                        self.assertEqual((done.returncode, bool(done.stdout)), (0, True) if good
                                         else (1, False))
                        if good:
                            self.assertEqual(read(shown), done.stdout)
                        else:
                            self.assertIn(b"do not match the checksum in the file", done.stderr)
                            with self.assertRaises(OSError) as caught, open(shown, "rb") as file:
                                file.read()
                            self.assertEqual(caught.exception.errno, errno.EIO)


class Unreadable(limetest.TestCase):
    def test_a_disk_that_fails(self):
        """Data that cannot be read are unreadable, not bad; the next verification reads again."""
        directory = self.tempdir()
        for name in "good", "good.nersc":
            put(os.path.join(directory, name), damage.kinds()[name])
            os.utime(os.path.join(directory, name), (1e9, 1e9))
        store = faults.Faults(directory)
        with limetest.Mount(directory, opts="formats", env=store.environment(later=100)) as mount:
            for name in "good", "good.nersc":
                record = data_record(mount.join(name))
                attribute(record, CHECKSUM)  # makes the daemon read the metadata
                store.arm(faults.DAEMON, "pread", 1, errno.EIO, lasts=True)
                done = limetest.run(["lime", "verify", record])
                store.disarm()
                self.assertEqual((done.returncode, done.stdout.decode()),
                                 (2, f"{record}: unreadable: Input/output error\n"))
                self.assertEqual(attribute(record, CHECKSUM), "unreadable")
                self.assertEqual(attribute(record, REASON), "Input/output error")
                done = limetest.run(["lime", "verify", record])
                self.assertEqual(done.stdout.decode(), f"{record}: good\n")
                self.assertEqual(attribute(record, CHECKSUM), "good")


if __name__ == "__main__":
    limetest.main()
