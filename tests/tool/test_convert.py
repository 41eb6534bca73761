"""lime convert: formats, read back by independent readers; damage; hostile headers."""
import itertools
import json
import os
import random
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import limetest
import scidac
from limetest import container, read, run

try:
    import numpy
    import gaugelib
except ImportError:
    numpy = None

DOUBLES = ("tm_clime_gauge_4444_p64_n1.lime",)
SINGLES = ("tm_clime_gauge_4448_p32_n1.lime", "qio_nersc_ildg.lime")


@unittest.skipIf(numpy is None, "needs python3-numpy")
class ConvertCase(limetest.TestCase):
    def setUp(self):
        self.dir = self.tempdir()

    def path(self, name):
        return os.path.join(self.dir, name)

    def convert(self, *args, status=0, messages=()):
        done = run(["lime", "convert", "-f", *args])
        self.err = done.stderr.decode()
        self.assertEqual(done.returncode, status, self.err)
        self.assertEqual(done.stdout, b"")
        for word in messages:
            self.assertIn(word, self.err)
        if status == 0 and not messages:
            self.assertEqual(self.err, "")

    def made(self, source, name, *args, **kw):
        """Returns the bytes of the file that lime convert creates; source: bytes, or a path."""
        if isinstance(source, bytes):
            source = self.write("in", source)
        out = self.path(name)
        self.convert(*args, source, out, **kw)
        self.assertEqual(sorted(n for n in os.listdir(self.dir) if n.startswith(".")), [])
        return read(out)

    def refused(self, source, *messages, status=1, args=("--to", "ildg")):
        before = os.listdir(self.dir)
        self.convert(*args, self.write("in", source), self.path("never"), status=status,
                     messages=messages)
        self.assertEqual(os.listdir(self.dir), before)

    def same(self, one, other):
        self.assertEqual(one.shape, other.shape)
        self.assertEqual(gaugelib.reals(one, ">f8").tobytes(),
                         gaugelib.reals(other, ">f8").tobytes())


def payload(path):
    return gaugelib.records(read(path))["ildg-binary-data"]


class Corpus(ConvertCase):
    def chain(self, name, *steps):
        """Converts through files with these suffixes; returns the data of the last one."""
        at = os.path.join(limetest.CORPUS, name)
        for i, step in enumerate(steps):
            suffix, *options = step.split()
            out = self.path(f"{i}.{suffix}")
            self.convert(*options, at, out)
            at = out
        self.run_ok(["lime", "check", "-q", "--data", "--strict", at])
        return payload(at)

    def test_double(self):
        for name in DOUBLES:
            before = payload(os.path.join(limetest.CORPUS, name))
            for steps in itertools.permutations(("nersc", "openqcd", "ildg")):
                self.assertEqual(self.chain(name, *steps, "lime"), before, steps)

    def test_single(self):
        for name in SINGLES:
            before = payload(os.path.join(limetest.CORPUS, name))
            self.assertEqual(self.chain(name, "nersc", "milc", "ildg", "lime"), before)
            self.assertEqual(self.chain(name, "milc", "openqcd --precision 64",
                                        "nersc --precision 32", "lime"), before)

    def test_double_by_milc(self):
        """lime rounds to single precision as numpy does."""
        name = DOUBLES[0]
        before = numpy.frombuffer(payload(os.path.join(limetest.CORPUS, name)), ">f8")
        self.assertEqual(self.chain(name, "nersc", "milc", "openqcd", "lime --precision 32"),
                         before.astype(">f4").tobytes())

    def test_each_is_read_by_other_readers(self):
        for name in DOUBLES + SINGLES:
            path = os.path.join(limetest.CORPUS, name)
            u, _ = gaugelib.read_ildg(read(path))
            single = u.astype("complex64")
            self.same(gaugelib.read_nersc(self.made(path, "a.nersc"))[0], u)
            self.same(gaugelib.read_milc(self.made(path, "a.milc")), single)
            self.same(gaugelib.read_openqcd(self.made(path, "a.openqcd")), u)
            self.same(gaugelib.read_ildg(self.made(path, "a.lime", "--precision", "32"))[0],
                      single)

    def test_two_rows(self):
        path = os.path.join(limetest.CORPUS, DOUBLES[0])
        u, _ = gaugelib.read_ildg(read(path))
        two, values = gaugelib.read_nersc(self.made(path, "a.nersc", "--rows", "2"))
        self.assertEqual(values["DATATYPE"], "4D_SU3_GAUGE")
        self.assertLess(abs(two - u).max(), 1e-14)
        again, _ = gaugelib.read_ildg(self.made(self.path("a.nersc"), "b.lime"))
        self.same(again[..., :2, :], u[..., :2, :])
        self.assertLess(abs(again - u).max(), 1e-14)


class Info(ConvertCase):
    def test_text_is_kept(self):
        """A conversion keeps xlf-info, and a container keeps the header of another format."""
        source = os.path.join(limetest.CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
        info = gaugelib.records(read(source))["xlf-info"]
        single = self.made(source, "a.lime", "--precision", "32")
        self.assertEqual(gaugelib.records(single)["xlf-info"], info)
        nersc = self.made(source, "a.nersc")
        first = gaugelib.records(self.made(nersc, "b.lime"))["nersc-header"]
        self.assertIn(b"PLAQUETTE", first)
        again = self.made(self.path("b.lime"), "c.lime", "--lfn", "lfn://x/y")
        self.assertEqual(gaugelib.records(again)["nersc-header"], first)


class Formats(ConvertCase):
    """Files that the oracle has written."""

    def test_nersc(self):
        u = gaugelib.random_links((4, 3, 2, 5))
        for kind, rows in itertools.product((">f8", "<f8", ">f4", "<f4"), (2, 3)):
            with self.subTest(kind=kind, rows=rows):
                stored = u.astype("complex64" if kind[2] == "4" else "complex128")
                nersc = gaugelib.write_nersc(stored, kind, rows)
                got, contents = gaugelib.read_ildg(self.made(nersc, "a.lime"))
                if rows == 3:
                    self.same(got, stored)
                else:
                    self.same(got[..., :2, :], stored[..., :2, :])
                    self.assertLess(abs(got - stored).max(), 1e-6 if kind[2] == "4" else 1e-14)
                self.assertIn(b"ENSEMBLE_LABEL = a label\n", contents["nersc-header"])

    def test_nersc_without_byte_order(self):
        u = gaugelib.random_links((4, 2, 2, 2), seed=3)
        for kind in (">f8", "<f8", ">f4", "<f4"):
            data = gaugelib.write_nersc(u.astype("complex64"), kind, 3,
                                        f"IEEE{kind[2] == '8' and 64 or 32}")
            self.same(gaugelib.read_ildg(self.made(data, "a.lime"))[0], u.astype("complex64"))

    def test_nersc_order_from_the_checksum(self):
        """If no row has length 1, the checksum determines the byte order."""
        u = 5 * gaugelib.random_links((2, 2, 2, 2))
        for kind in (">f8", "<f8"):
            data = gaugelib.write_nersc(u, kind, 3, "IEEE64")
            self.same(gaugelib.read_ildg(self.made(data, "a.lime", messages=["warning"]))[0], u)
        self.refused(gaugelib.write_nersc(u, "<f8", 3, "IEEE64", CHECKSUM="1"), "byte order",
                     status=2)

    def test_nersc_of_other_writers(self):
        u = gaugelib.random_links((2, 4, 2, 2)).astype("complex64")
        data = gaugelib.write_nersc(u, ">f4", 2, FLOATING_POINT=None,
                                    more=["MILC_INFO = a = b", "SCIDAC_CHECKSUMA = 12", ""])
        data = data.replace(b"PLAQUETTE =", b"PLAQUETTE  =").replace(b"\nDIM", b"\r\n  DIM")
        got, _ = gaugelib.read_ildg(self.made(data, "a.lime"))
        self.same(got[..., :2, :], u[..., :2, :])

    def test_nersc_keeps_its_labels(self):
        u = gaugelib.random_links((2, 2, 2, 2))
        data = gaugelib.write_nersc(u)
        _, values = gaugelib.read_nersc(self.made(data, "a.nersc", "--precision", "32"))
        self.assertEqual((values["ENSEMBLE_ID"], values["ENSEMBLE_LABEL"],
                          values["SEQUENCE_NUMBER"]), ("ens", "a label", "17"))
        _, values = gaugelib.read_nersc(self.made(
            data, "a.nersc", "--ensemble", "e" * 300, "--label", "two\nlines\033[m", "--sequence",
            "4", messages=["warning: ENSEMBLE_ID truncated to 96 characters\n",
                           "warning: ENSEMBLE_LABEL has '?' for"]))
        self.assertEqual((values["ENSEMBLE_ID"], values["ENSEMBLE_LABEL"],
                          values["SEQUENCE_NUMBER"]), ("e" * 96, "two?lines?[m", "4"))

    def test_milc(self):
        u = gaugelib.random_links((3, 4, 2, 4), dtype="complex64")
        ranks = list(range(96))
        random.Random(5).shuffle(ranks)
        for order, listed in itertools.product("<>", (None, range(96), ranks)):
            with self.subTest(order=order, listed=listed):
                got, contents = gaugelib.read_ildg(self.made(gaugelib.write_milc(u, order, listed),
                                                             "a.lime"))
                self.same(got, u)
                self.assertIn(b"time_stamp = Thu Jan  1 00:00:00 1970\n", contents["milc-header"])

    def test_openqcd(self):
        for extents in ((2, 2, 2, 2), (4, 2, 6, 8), (2, 8, 4, 2), (6, 6, 2, 4)):
            u = gaugelib.random_links(extents, seed=sum(extents))
            got, contents = gaugelib.read_ildg(self.made(gaugelib.write_openqcd(u), "a.lime"))
            self.same(got, u)
            self.assertIn(f"N0 = {extents[3]}\n".encode(), contents["openqcd-header"])
            self.same(gaugelib.read_openqcd(self.made(self.path("a.lime"), "a.openqcd")), u)
            self.same(gaugelib.read_openqcd(self.made(self.path("a.openqcd"), "b.openqcd")), u)

    def test_odd_extents(self):
        u = gaugelib.random_links((3, 1, 5, 1))
        data = gaugelib.write_nersc(u)
        self.same(gaugelib.read_ildg(self.made(data, "a.lime"))[0], u)
        self.refused(data, "does not support this lattice", args=("--to", "openqcd"))

    def test_records(self):
        """--record selects one of several configurations, with its LFN."""
        extents = (2, 2, 2, 2)
        parts, raws = [], []
        for seed in (1, 2):
            u = gaugelib.random_links(extents, seed)
            raws.append(gaugelib.reals(u, ">f8").tobytes())
            parts.append(scidac.records(extents, raws[-1])
                         + [("ildg-data-lfn", b"lfn://x/%d" % seed)])
        data = container([*parts])
        self.refused(data, "--record", status=2)
        for record, which in (("2", 0), ("6", 1), ("2.2", 1)):
            _, contents = gaugelib.read_ildg(self.made(data, "a.lime", "--record", record))
            self.assertEqual(contents["ildg-binary-data"], raws[which])
            self.assertEqual(contents["ildg-data-lfn"], b"lfn://x/%d" % (which + 1))
        _, contents = gaugelib.read_ildg(self.made(data, "a.lime", "--record", "2",
                                              "--lfn", "lfn://mine"))
        self.assertEqual(contents["ildg-data-lfn"], b"lfn://mine")
        self.refused(data, "no SU(3)", status=2, args=("--to", "milc", "--record", "1"))
        self.refused(data, "no such record", args=("--to", "milc", "--record", "77"))


class Damage(ConvertCase):
    """lime convert writes nothing if the data contradict the header."""

    def setUp(self):
        super().setUp()
        self.u = gaugelib.random_links((4, 2, 2, 4))

    def bit(self, data, at=-100):
        changed = bytearray(data)
        changed[at] ^= 1
        return bytes(changed)

    def test_checksums(self):
        u = self.u
        for data in (gaugelib.write_nersc(u), gaugelib.write_nersc(u, "<f4", 2),
                     gaugelib.write_milc(u), gaugelib.write_milc(u, ">"),
                     scidac.gauge((4, 2, 2, 4), gaugelib.reals(u, ">f8").tobytes())):
            at = -600
            self.refused(self.bit(data, at), "checksum", "not written")

    def test_plaquette_and_trace(self):
        u = self.u
        data = gaugelib.write_openqcd(u)
        self.refused(self.bit(data, -2), "plaquette", "not written")
        self.refused(gaugelib.write_openqcd(u, 3 * gaugelib.plaquette(u) + 4e-9), "plaquette")
        for text in "0.5", "", f"{gaugelib.plaquette(u) + 1e-6:.12f}":
            self.refused(gaugelib.write_nersc(u, PLAQUETTE=text), "plaquette")
        self.refused(gaugelib.write_nersc(u, LINK_TRACE="-0.5"), "link trace")
        raw = gaugelib.reals(u, ">f8").tobytes()
        items = [[("xlf-info", b"plaquette = 0.123\n trajectory nr = 1\n")],
                 scidac.records((4, 2, 2, 4), raw)]
        self.refused(container(items), "plaquette")
        good = b"plaquette = %.9f\n" % gaugelib.plaquette(u)
        # As in lime check --physics: values that are not numbers, and each value of each record.
        for text in b"nan", b"", b"0,123":
            self.refused(container([[("xlf-info", b"plaquette = " + text)], items[1]]), "plaquette")
        for name, value in (("plaq", 0.5), ("linktr", 0.5), ("linktr", "nan")):
            usqcd = ("scidac-record-xml", f"<usqcdInfo><version>1.0</version><{name}>{value}"
                     f"</{name}></usqcdInfo>".encode())
            self.refused(container([[("xlf-info", good)], [usqcd, *items[1]]]),
                         f"not {value} as in the scidac-record-xml")
        self.made(container([[("xlf-info", good)], items[1]]), "a.nersc")

    def test_wrong_links(self):
        """The message names the first bad link and the largest deviation; --rows 2 is refused."""
        u = self.u
        u[3, 1, 0, 2, 1] *= 1.01
        u[2, 1, 1, 3, 3] *= 1.02
        data = scidac.gauge((4, 2, 2, 4), gaugelib.reals(u, ">f8").tobytes())
        made = self.made(data, "a.nersc",
                         messages=["warning: 2 links", "site 3 1 1 2, direction t"])
        self.same(gaugelib.read_nersc(made)[0], u)
        os.unlink(self.path("a.nersc"))
        self.refused(data, "--rows 3", args=("--to", "nersc", "--rows", "2"))

    def test_links_far_from_su3(self):
        """lime writes links that a format can hold and lime can read back, with a warning."""
        for factor, holds in ((0.5, "nersc milc openqcd ildg"), (1.7, "nersc milc ildg"),
                              (1e4, "milc ildg")):
            data = scidac.gauge((4, 2, 2, 4), gaugelib.reals(factor * self.u, ">f8").tobytes())
            for to in ("nersc", "milc", "openqcd", "ildg"):
                with self.subTest(factor=factor, to=to):
                    if to in holds.split():
                        self.made(data, "a." + to, messages=["warning: 256 links deviate"])
                        self.convert(self.path("a." + to), self.path("b.ildg"),
                                     messages=["warning: 256 links deviate"])
                        os.unlink(self.path("b.ildg"))
                        os.unlink(self.path("a." + to))
                    else:
                        self.refused(data, "do not fit into this format", args=("--to", to))

    def test_nan(self):
        for value in (numpy.nan, numpy.inf):
            self.u[1, 1, 1, 1, 2, 2, 2] = value
            data = scidac.gauge((4, 2, 2, 4), gaugelib.reals(self.u, ">f8").tobytes())
            for to in ("nersc", "milc", "openqcd", "ildg"):
                self.refused(data, "1 number is NaN or infinite", args=("--to", to))

    def test_failure_keeps_the_old_file(self):
        out = self.write("conf.lime", b"old")
        bad = self.write("in", self.bit(gaugelib.write_nersc(self.u)))
        self.convert(bad, out, status=1)
        self.assertEqual(read(out), b"old")
        self.assertEqual(os.listdir(os.path.dirname(out)), ["conf.lime"])
        self.convert(self.write("in", gaugelib.write_nersc(self.u)), out)
        self.same(gaugelib.read_ildg(read(out))[0], self.u)

    def test_limit_of_a_files_size(self):
        source = self.write("in", gaugelib.write_nersc(self.u))
        before = os.listdir(self.dir)
        self.fails(["bash", "-c", 'ulimit -f 1; exec "$@"', "-", limetest.program("lime"),
                    "convert",
                    source, self.path("out.lime")], "File too large")
        self.assertEqual(os.listdir(self.dir), before)


class Checked(ConvertCase):
    """lime check --physics and --data of files in other formats."""

    def setUp(self):
        super().setUp()
        self.u = gaugelib.random_links((4, 2, 2, 4))

    def check(self, data, *options, status=0, name="in"):
        path = self.write(name, data)
        done = run(["lime", "check", "--json", *options, path])
        self.assertEqual(done.returncode, status, done)
        shown = run(["lime", "check", *options, path])
        self.assertEqual(shown.returncode, status, shown)
        self.text, self.err = shown.stdout.decode(), shown.stderr.decode()
        return json.loads(done.stdout)

    def test_good(self):
        u = self.u
        files = {"nersc": gaugelib.write_nersc(u), "milc": gaugelib.write_milc(u),
                 "openqcd": gaugelib.write_openqcd(u)}
        for name, data in files.items():
            with self.subTest(name=name):
                report = self.check(data, "--physics", "--data", "--bytes")
                result, = report["physics"]
                within = 1e-6 if name == "milc" else 1e-13
                self.assertLess(abs(result["plaquette"] - gaugelib.plaquette(u)), within)
                self.assertLess(abs(result["link_trace"] - gaugelib.link_trace(u)), within)
                self.assertEqual((report["format"], report["status"], result["state"]),
                                 (name, "good", "good"))
                self.assertEqual([s["name"] for s in result["stated"]],
                                 {"nersc": ["link_trace", "plaquette"], "milc": [],
                                  "openqcd": ["plaq"]}[name])
                self.assertTrue(all(s["agrees"] for s in result["stated"]))
                self.assertIn(f"good: {name} file, {len(data)} bytes; checksums: 1 right; "
                              "configurations: 1 good\n", self.text)
                self.assertNotIn("physics", self.check(data, "--data"))
        for rows in (2, 3):
            self.check(gaugelib.write_nersc(u, "<f4", rows), "--physics")

    def test_checksums_as_of_containers(self):
        """lime check reports the header's checksum; with --strict there must be one."""
        raw = gaugelib.reals(self.u, ">f8").tobytes()
        milc = numpy.frombuffer(gaugelib.reals(self.u.astype("complex64"), "<f4").tobytes(), "<u4")
        sums = {"sum29": f"{gaugelib.rotated(milc, 29):08x}",
                "sum31": f"{gaugelib.rotated(milc, 31):08x}"}
        nersc = {"sum": f"{gaugelib.nersc_sum(raw, '>'):08x}"}
        none = {"state": "unverified", "reason": "the header has no usable checksum"}
        nothing = {"CHECKSUM": None, "PLAQUETTE": None, "LINK_TRACE": None}
        single = self.u.astype("complex64")
        for data, want, strict in (
                (gaugelib.write_nersc(self.u), {"state": "good", **nersc}, 0),
                (gaugelib.write_nersc(self.u, CHECKSUM="1"), {"state": "bad", **nersc}, 1),
                (gaugelib.write_nersc(self.u, CHECKSUM=None), {"state": "good", **nersc}, 0),
                (gaugelib.write_nersc(self.u, **nothing), {**none, **nersc}, 1),
                (gaugelib.write_milc(single), {"state": "good", **sums}, 0),
                (gaugelib.write_milc(single, sums=(0, 0)), {**none, **sums}, 1),
                (gaugelib.write_openqcd(self.u), {"state": "good"}, 0),
                (gaugelib.write_openqcd(self.u, 0.5), {"state": "bad"}, 1)):
            report = self.check(data, "--data",
                                status={"good": 0, "bad": 1, "unverified": 3}[want["state"]])
            self.assertEqual(report["checksums"], [{"ordinal": 0, **want}])
            self.assertEqual("unverified: the header has no usable checksum" in self.text,
                             want["state"] == "unverified")
            for option in ("--data", "--physics"):
                report = self.check(data, option, "--strict", status=strict)
                self.assertEqual([f["code"] for f in report["findings"]],
                                 {"good": [],
                                  "bad": ["plaquette" if want == {"state": "bad"} else "checksum"],
                                  "unverified": ["checksum-missing"]}[want["state"]])

    def test_link_trace(self):
        data = gaugelib.write_nersc(self.u, LINK_TRACE="-0.5")
        finding, = self.check(data, "--data", status=1)["findings"]
        self.assertEqual(finding["code"], "link-trace")
        self.assertIn(finding["message"], self.err)

    def test_which_plaquette(self):
        """Each configuration has its own xlf-info; the stated digits set the tolerance."""
        v = gaugelib.random_links((4, 2, 2, 4), seed=9)
        items, records = [], []
        for i, (links, form) in enumerate(((self.u, "%.3f"), (v, "%.9f"))):
            items += [[("xlf-info", b"plaquette = " + (form % gaugelib.plaquette(links)).encode())],
                      scidac.records((4, 2, 2, 4), gaugelib.reals(links, ">f8").tobytes())]
            records.append(str(3 + 4 * i))
        first = scidac.records((4, 2, 2, 4), gaugelib.reals(v, ">f8").tobytes())
        data = container(items + [first])
        for record in (records[0], "7", "10"):
            self.made(data, "a.lime", "--record", record)


class Hostile(ConvertCase):
    def test_nersc(self):
        u = gaugelib.random_links((2, 2, 2, 2))
        header, length = "no end or is not text", "that its header describes"
        reads = "; lime reads 4D_SU3_GAUGE and 4D_SU3_GAUGE_3x3"
        for key, value, message in (
                ("DIMENSION_1", "-2", "not a number of sites"),
                ("DIMENSION_1", "two", "not a number of sites"),
                ("DIMENSION_4", None, ""), ("DIMENSION_1", "2 2", "not a number of sites"),
                ("DIMENSION_1", "0x2", "not a number of sites"), ("DIMENSION_2", "", ""),
                ("DIMENSION_1", str(1 << 64), "not a number of sites"),
                ("DATATYPE", "4D_SU2_GAUGE", "not SU(3)" + reads),
                ("DATATYPE", "4D_SU(N)_GAUGE", "not SU(3)" + reads),
                ("DATATYPE", "4D_SU4_GAUGE_4x4", "not SU(3)" + reads),
                ("DATATYPE", "4D_U1_GAUGE", "not SU(3)" + reads),
                ("DATATYPE", "5D_SU3_GAUGE", "unknown" + reads),
                ("DATATYPE", "4D_SU3_GAUGE_3x", "unknown" + reads), ("DATATYPE", None, ""),
                ("FLOATING_POINT", "IEEE16BIG", "unknown; lime reads IEEE32 and IEEE64"),
                ("FLOATING_POINT", "IEEE64BIGGER", "unknown; lime reads IEEE32 and IEEE64"),
                ("CHECKSUM", "xyz", "not a hexadecimal number of 32 bits"),
                ("CHECKSUM", "-1", "not a hexadecimal number of 32 bits"),
                ("CHECKSUM", "100000000", "not a hexadecimal number of 32 bits"),
                ("PLAQUETTE", "nan", "not a number"), ("PLAQUETTE", "0.5.5", "not a number"),
                ("LINK_TRACE", "inf", "not a number")):
            with self.subTest(key=key, value=value):
                data = gaugelib.write_nersc(u, **{key: value})
                expected = f"{key} = {value}: {message}" if value else f"the header has no {key}"
                kind = value and key in ("DATATYPE", "FLOATING_POINT")
                self.refused(data, expected, status=2 if kind else 1)
                checked = run(["lime", "check", "--data", self.write("in", data)])
                self.assertEqual(checked.returncode, 3 if kind else 1)
                self.assertIn(expected, (checked.stdout if kind else checked.stderr).decode())
        lattice = "not a valid lattice"
        for message, changed in (
                (lattice, {"DIMENSION_1": 0}), (lattice, {"DIMENSION_1": 1 << 62}),
                (lattice, {"DIMENSION_1": 1 << 53}), (length, {"DIMENSION_1": 4}),
                (length, {"DIMENSION_1": 1}), (length, {"FLOATING_POINT": "IEEE32BIG"}),
                (length, {"DATATYPE": "4D_SU3_GAUGE"}),
                ("ENSEMBLE_ID has more than 255 characters", {"ENSEMBLE_ID": "x" * 300})):
            with self.subTest(changed=changed):
                self.refused(gaugelib.write_nersc(u, **changed), message)
        good = gaugelib.write_nersc(u)
        for message, data in (
                ("DIMENSION_1 twice", gaugelib.write_nersc(u, more=["DIMENSION_1 = 2"])),
                ("CHECKSUM twice", gaugelib.write_nersc(u, more=["CHECKSUM = 0"])),
                (header, gaugelib.write_nersc(u, more=["no sign"])),
                (header, gaugelib.write_nersc(u, more=["NUL = \0"])),
                (header, good.replace(b"END_HEADER", b"END_HEADEX")),
                (header, good.replace(b"END_HEADER\n", b"")), (header, b"BEGIN_HEADER"),
                (header, b"BEGIN_HEADER\n"), (header, b"BEGIN_HEADER and more\n" + good[13:]),
                (header, b"BEGIN_HEADER\n" + b"x" * 70000), (length, good[:-1]),
                (header, b"BEGIN_HEADER\nX = " + b"x" * 70000 + good[13:]), (length, good + b"\0")):
            with self.subTest(data=data[:80]):
                self.refused(data, message)

    def test_milc(self):
        u = gaugelib.random_links((2, 2, 2, 2), dtype="complex64")
        good = gaugelib.write_milc(u)
        for message, at, value in (
                ("nx = 0: not a number of sites", 4, 0), ("nx = -2: not a number", 4, -2),
                ("header describes (4 x 2 x 2 x 2 sites", 4, 4), ("too many sites", 8, 1 << 30),
                ("header describes", 84, 1), ("checksum", 88, 0), ("checksum", 92, 0)):
            changed = bytearray(good)
            changed[at:at + 4] = struct.pack("<i", value)
            if value == 1 << 30:  # the value is 2^30 or more
                changed[12:20] = struct.pack("<2i", value, value)
            self.refused(bytes(changed), message)
        for n in (4, 50, 95, 96, len(good) - 1):
            self.refused(good[:n], "")
        for ranks in ([0] * 16, list(range(15)) + [16], list(range(15)) + [-1]):
            data = gaugelib.write_milc(u, ranks=range(16))
            self.refused(data[:88] + struct.pack("<16i", *ranks) + data[152:], "list of sites")

    def test_openqcd(self):
        u = gaugelib.random_links((2, 2, 2, 4))
        good = gaugelib.write_openqcd(u)
        for data in (good[:167], good[:23], struct.pack("<i", 3) + good[4:],
                     struct.pack("<4i", -2, -4, 2, 2) + good[16:],
                     struct.pack("<4i", 1 << 30, 1 << 30, 1 << 30, 1 << 30) + good[16:],
                     b"abc", good[:24] + bytes(144) + good[168:-1],
                     good + bytes(8 + 32 * 32)):  # an openQ*D file with a U(1) field
            self.refused(data, "not a gauge configuration", status=2)
        self.refused(b"", "the file is empty")
        self.refused(bytes(24), "zeros")
        # The first link identifies the format.
        for data in good[:-1], good + b"\0", good[:168]:
            self.refused(data, "not the 18456 that its header describes")
        for value in numpy.nan, 1e300, -3.2:
            self.refused(good[:16] + struct.pack("<d", value) + good[24:],
                         "not a plaquette")

    def test_containers(self):
        self.refused(container([("text", b"x")]), "no SU(3) gauge configuration", status=2)
        u = gaugelib.random_links((2, 2, 2, 2))
        good = scidac.gauge((2, 2, 2, 2), gaugelib.reals(u, ">f8").tobytes())
        self.refused(good[:1000], "ends inside the data")
        self.refused(good[:1000], "offset ")
        self.refused(good.replace(b"su3gauge", b"su2gauge"), "not an SU(3)", status=2)
        self.refused(good.replace(b"<lx>2", b"<lx>4"), "not an SU(3)", status=2)


class Usage(ConvertCase):
    def test_messages(self):
        path = os.path.join(limetest.CORPUS, DOUBLES[0])
        for args in ((), (path,), (path, "a.milc", "b"), (path, "out"), (path, "out.xyz"),
                     ("--to", "x", path, "a"), ("--to", "milc", "--precision", "16", path, "a"),
                     ("--rows", "4", path, "a.nersc"), ("--sequence", "-1", path, "a.nersc"),
                     ("--sequence", str(1 << 63), path, "a.nersc"),
                     ("--lfn", "lfn://a/b/c/d/e", path, self.path("a.nersc")),
                     ("--ensemble", "e", path, self.path("a.milc")),
                     ("--label", "e", path, self.path("a.openqcd")),
                     ("--sequence", "1", path, self.path("a.lime")),
                     ("--lfn", "a\nb", path, "a.lime"), ("--nothing", path, "a.lime"),
                     ("--rows", "2", path, self.path("a.milc")),
                     ("--rows", "2", path, self.path("a.lime")),
                     ("--precision", "64", path, self.path("a.milc")),
                     ("--precision", "32", path, self.path("a.openqcd")),
                     (self.path("none"), self.path("a.milc")), (self.dir, self.path("a.milc"))):
            with self.subTest(args=args):
                self.convert(*args, status=2, messages=["lime: "])
                self.assertEqual(os.listdir(self.dir), [])
        self.assertIn(b"--to FORMAT", self.run_ok(["lime", "convert", "--help"]))
        self.convert(path, self.path("no/such.milc"), status=1, messages=["create"])


if __name__ == "__main__":
    limetest.main()
