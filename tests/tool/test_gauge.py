"""All commands and export formats agree on what is a gauge configuration, for files of any
program, and give the same numbers; check --physics names what it did not examine."""
import io
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import limetest
import scidac
import volumelib
from limetest import container, run

try:
    import numpy
    import gaugelib
except ImportError:
    numpy = None

DIMS = (2, 4, 6, 2)


def private(datatype, precision, typesize, datacount, more="<colors>3</colors>", box=None):
    """Returns a private record; an element that is None is left out."""
    values = [("datatype", datatype), ("precision", precision), ("typesize", typesize),
              ("datacount", datacount), ("recordtype", 2 if box else 0)]
    if box:
        values += [("spacetime", len(box[0])), ("hyperlower", " ".join(map(str, box[0]))),
                   ("hyperupper", " ".join(map(str, box[1])))]
    text = "".join(f"<{name}>{value}</{name}>" for name, value in values if value is not None)
    return "scidac-private-record-xml", (
        f"<scidacRecord><version>1.1</version><date>x</date>{text}{more}</scidacRecord>\0").encode()


def field(record, raw, site):
    """Returns the message of a field, with the correct checksum."""
    return [record, ("scidac-binary-data", raw),
            ("scidac-checksum", scidac.checksum_xml(scidac.checksum(raw, site)))]


# Configurations of several programs: datatype, precision, typesize, datacount, other elements.
WRITERS = (
    ("USQCD_F3_ColorMatrix", "F", 72, 4, "<colors>3</colors><spins>4</spins>"),
    ("USQCD_D3_ColorMatrix", "D", 144, 4, "<colors>3</colors>"),
    ("USQCD_F3_ColorMatrix", "F", 288, 1, "<colors>3</colors><spins>0</spins>"),
    ("QDP_F3_ColorMatrix", "F", 72, 4, ""),
    ("QDP_D3_ColorMatrix", "D", 576, 1, ""),
    ("QDP_D3_ColorMatrix", None, 144, 4, ""),
    ("QLA_D3_ColorMatrix", "D", 144, 4, "<colors>3</colors>"),
    ("MILC_F3_ColorMatrix", "F", 72, 4, "<colors>3</colors>"),
    ("QUDA_FNc3_GaugeField", "F", 72, 4, "<colors>3</colors>"),
    ("QUDA_DNc3_GaugeField", "D", 144, 4, "<colors>3</colors>"),
    ("QUDA_DNc3_GaugeField", "D", 576, 1, "<colors>3</colors><spins>0</spins>"),
    ("GRID_D_LorentzVector4_ColourMatrix3", "D", 576, 1, ""),
    ("Lattice", "F", 72, 4, "<colors>3</colors><spins>4</spins>"),
    ("QDP_GenericType", "D", 144, 4, "<colors>3</colors><spins>4</spins>"),
    ("LatticeColorMatrix", "F", 288, 1, ""),
    ("D3_ColorMatrix", "D", 144, 4, ""),
    ("", "D", 144, 4, ""),
    (None, "F", 72, 4, "<colors>3</colors>"),
    # prefixes that lime does not know
    ("ABC_F3_ColorMatrix", "F", 72, 4, "<colors>3</colors>"),
    ("ABC_D_Links", "D", 576, 1, "<colors>3</colors>"),
)


@unittest.skipIf(numpy is None, "needs python3-numpy")
class GaugeCase(limetest.TestCase):
    def setUp(self):
        self.dir = self.tempdir()
        self.links = gaugelib.random_links(DIMS, seed=3)

    def raw(self, double):
        return gaugelib.reals(self.links, ">f8" if double else ">f4").tobytes()

    def check(self, path, *options, status=None):
        """Returns the JSON of check --physics."""
        done = run(["lime", "check", "--physics", "--json", *options, path])
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def assert_measured(self, result, links, places=6):
        self.assertEqual(result["state"], "good")
        self.assertAlmostEqual(result["plaquette"], gaugelib.plaquette(links), places)
        self.assertAlmostEqual(result["link_trace"], gaugelib.link_trace(links), places)

    def npy(self, path, name):
        return numpy.load(io.BytesIO(self.run_ok(["lime", "cat", path, name])))

    def converted(self, source, kind, *options):
        out = os.path.join(self.dir, "out." + kind)
        if os.path.exists(out):
            os.unlink(out)
        self.run_ok(["lime", "convert", "--to", kind, *options, source, out])
        with open(out, "rb") as file:
            return file.read()

    def assert_converted(self, path, double, *options):
        """Other readers find the record's bits in each format that lime convert writes."""
        single = self.links.astype("complex64").astype("complex128")
        stored = self.links if double else single
        for kind, reader, links in (("nersc", lambda data: gaugelib.read_nersc(data)[0], stored),
                                    ("milc", gaugelib.read_milc, single),
                                    ("openqcd", gaugelib.read_openqcd, stored),
                                    ("ildg", lambda data: gaugelib.read_ildg(data)[0], stored)):
            got = reader(self.converted(path, kind, *options))
            self.assertEqual(got.shape, links.shape)
            self.assertTrue((got == links).all(), kind)


class Writers(GaugeCase):
    def test_each_command(self):
        for writer in WRITERS:
            with self.subTest(writer=writer):
                double = writer[2] * writer[3] == 576
                raw = self.raw(double)
                path = self.write("c", container([
                    [scidac.private_file(DIMS)],
                    field(private(*writer), raw, 576 if double else 288)]))
                info = json.loads(self.run_ok(["lime", "info", "--json", path]))["fields"][0]
                self.assertEqual((info["kind"], info["precision"]),
                                 ("gauge", 64 if double else 32))
                self.assertEqual(tuple(info["array"]["shape"]), self.links.shape)
                self.assertIn(b"gauge configuration", self.run_ok(["lime", "info", path]))
                report = self.check(path, "--data", status=0)
                unknown = str(writer[0]).startswith("ABC")
                self.assertEqual([f["code"] for f in report["findings"]], ["datatype"] * unknown)
                self.assertEqual((report["status"], report["warnings"]), ("good", int(unknown)))
                self.check(path, "--data", "--strict", status=int(unknown))
                self.assert_measured(report["physics"][0], self.links)
                got = self.npy(path, "3.npy")
                self.assertEqual(got.dtype.str, ">c16" if double else ">c8")
                self.assertEqual((got.shape, got.tobytes()), (self.links.shape, raw))
                self.assert_converted(path, double)

    def test_one_of_several_records(self):
        single, double = self.raw(False), self.raw(True)
        sites = self.links[..., 0, 0, 0].size
        path = self.write("c", container([
            [scidac.private_file(DIMS)],
            field(private("USQCD_F3_DiracFermion", "F", 96, 1), bytes(96 * sites), 96),
            field(private("USQCD_D3_ColorMatrix", "D", 144, 4), double, 576),
            field(private("USQCD_F3_DiracPropagator", "F", 1152, 1), bytes(1152 * sites), 1152),
            field(private("USQCD_F3_ColorMatrix", "F", 72, 1), bytes(72 * sites), 72)]))
        report = self.check(path, status=0)
        self.assertEqual([p["ordinal"] for p in report["physics"]], [6])
        self.assert_measured(report["physics"][0], self.links)
        self.assert_converted(path, True)
        two = self.write("two", container([
            [scidac.private_file(DIMS)],
            field(private("USQCD_F3_ColorMatrix", "F", 72, 4), single, 288),
            [("ildg-format", scidac.ildg_format(DIMS)), ("ildg-binary-data", double),
             ("scidac-checksum", scidac.checksum_xml(scidac.checksum(double, 576)))]]))
        self.assertEqual([(p["ordinal"], p["state"]) for p in self.check(two, status=0)["physics"]],
                         [(3, "good"), (6, "good")])
        done = run(["lime", "convert", "--to", "nersc", two, os.path.join(self.dir, "never")])
        self.assertIn(b"--record", done.stderr)
        self.assertEqual(done.returncode, 2)
        self.assert_converted(two, False, "--record", "3")
        self.assert_converted(two, True, "--record", "6")


class NotExamined(GaugeCase):
    """lime check names data that may be a configuration but can't be examined, with the reason."""

    def reasons(self, *messages, status=3):
        path = self.write("c", container([*messages]))
        report = self.check(path, status=status)
        for result in report["physics"]:
            self.assertEqual(result["state"], "unverified")
            line = f": record {result['ordinal']}: unverified: {result['reason']}\n"
            done = run(["lime", "check", "--physics", path])
            self.assertIn(line.encode(), done.stdout)
            self.assertNotIn(b": good", done.stdout)
            self.assertIn(b"; configurations: 1 unverified\n", done.stdout)
            self.assertEqual(done.returncode, status)
            self.fails(["lime", "convert", "--to", "nersc", path, os.path.join(self.dir, "never")],
                       f"record {result['ordinal']}: not an SU(3) gauge configuration: "
                       f"{result['reason']}\n", status=2)
        return [result["reason"] for result in report["physics"]]

    def test_reasons(self):
        raw = self.raw(False)
        usqcd = ("USQCD_F3_ColorMatrix", "F", 72, 4)
        whole = scidac.private_file(DIMS)
        links = "4 colour matrices a site, but "
        for reason, status, *messages in (
                (links + "no record describes the lattice", 3, field(private(*usqcd), raw, 288)),
                (links + "the lattice does not have 4 dimensions", 3,
                 [scidac.private_file((2, 2, 2, 6, 2))], field(private(*usqcd), raw, 288)),
                (links + "its length does not match the lattice", 1,
                 [whole], field(private(*usqcd), raw[:-288], 288)),
                (links + "its length does not match the lattice", 1,
                 [whole], field(private(*usqcd), raw + bytes(288), 288)),
                (links + "only of a part of the lattice", 3, [whole],
                 field(private(*usqcd, box=((0, 0, 0, 0), (1, 3, 5, 0))), raw[:len(raw) // 2],
                       288)),
                ("a gauge field, but not of SU(3)", 3, [whole],
                 field(private("USQCD_F2_ColorMatrix", "F", 32, 4, "<colors>2</colors>"),
                       raw[:len(raw) // 288 * 128], 128)),
                ("a gauge field, but not of SU(3)", 3, [whole],
                 field(private("Lattice", "F", 32, 4, "<colors>2</colors>"),
                       raw[:len(raw) // 288 * 128], 128)),
                # metadata that contradict each other or lack the precision
                ("it has the bytes of 4 colour matrices a site, but", 3, [whole],
                 field(private("QDP_D3_ColorMatrix", "F", 144, 4), self.raw(True), 576)),
                ("it has the bytes of 4 colour matrices a site, but", 3, [whole],
                 field(private("Lattice", None, 72, 4), raw, 288)),
                ("it has the bytes of 4 colour matrices a site, but", 1, [whole],
                 field(private("USQCD_F3_ColorMatrix", "F", 72, 1), raw, 72)),
                # two descriptions; a checkerboard; one of several volumes
                ("its descriptions contradict each other", 1,
                 [private("USQCD_F3_ColorMatrix", "F", 144, 4),
                  ("ildg-format", scidac.ildg_format(DIMS, 32)), ("ildg-binary-data", raw)]),
                (links + "only of every second site", 3,
                 [scidac.grid_format(DIMS),
                  private("GRID_F_LorentzVector4_ColourMatrix3", "F", 288, 1, ""),
                  ("ildg-binary-data", raw[:len(raw) // 2])]),
                ("one volume of a partitioned set; use 'lime join'", 3,
                 [(whole[0], whole[1].replace(b"<volfmt>0", b"<volfmt>1"))],
                 field(private(*usqcd), raw, 288)),
                # a field type that ILDG does not define
                ("it has the bytes of 4 colour matrices a site, but", 3,
                 [("ildg-format", scidac.ildg_format(DIMS, 32).replace(b"su3gauge", b"links")),
                  ("ildg-binary-data", raw)]),
                ("a gauge field, but not of SU(3)", 1,
                 [("ildg-format", scidac.ildg_format(DIMS, 32).replace(b"su3gauge", b"su2gauge")),
                  ("ildg-binary-data", raw)]),
                *(("a gauge field, but not of SU(3)", 3,
                   [("ildg-format", scidac.ildg_format(DIMS, 32).replace(b"su3gauge", name)),
                    ("ildg-binary-data", raw)]) for name in (
                        b"su3gauge#a1", b"su3gauge_b", b"so3gauge", b"u3gauge", b"u1phase",
                        b"sp4gauge")),
                ("no metadata describe it", 3, [("scidac-binary-data", raw)]),
                ("no metadata describe it", 1, [("ildg-binary-data", raw)]),
                ("the metadata that describe it cannot be read", 1, [whole],
                 field(("scidac-private-record-xml", b"<scidacRecord>"), raw, 288))):
            with self.subTest(reason=reason):
                reasons = self.reasons(*messages, status=status)
                self.assertEqual(len(reasons), 1)
                self.assertTrue(reasons[0].startswith(reason), reasons[0])

    def test_other_fields(self):
        sites = self.links[..., 0, 0, 0].size
        for datatype, precision, typesize, datacount in (
                ("USQCD_F3_DiracFermion", "F", 96, 1), ("USQCD_F3_DiracFermion", "F", 96, 3),
                ("USQCD_F3_DiracPropagator", "F", 1152, 1),
                ("QUDA_FNs4Nc3_ColorSpinorField", "F", 96, 12),
                ("USQCD_F3_ColorVector", "F", 24, 12), ("USQCD_F3_ColorMatrix", "F", 72, 1),
                ("USQCD_F3_ColorMatrix", "F", 72, 3), ("USQCD_F3_ColorMatrix", "F", 72, 8),
                ("Lattice", "F", 24, 12), ("QDP_F_Real", "F", 4, 72), ("QDP_Int", "I", 4, 1)):
            with self.subTest(datatype=datatype, typesize=typesize, datacount=datacount):
                site = typesize * datacount
                path = self.write("c", container([
                    [scidac.private_file(DIMS)],
                    field(private(datatype, precision, typesize, datacount), bytes(sites * site),
                          site)]))
                self.assertEqual(self.check(path, status=0)["physics"], [])
                self.assertIn(b"; configurations: none\n",
                              self.run_ok(["lime", "check", "--physics", path]))
                done = run(["lime", "convert", "--to", "nersc", path,
                            os.path.join(self.dir, "never")])
                self.assertEqual(done.returncode, 2)

        for name in ("tm_clime_prop_4444_p32_n1.lime", "tm_lemon_prop_4444_p64_n1.lime"):
            path = os.path.join(limetest.CORPUS, name)
            self.assertEqual(self.check(path, status=0)["physics"], [])

    def test_counted(self):
        """lime check -r counts such a file as unverified."""
        good = field(private("USQCD_F3_ColorMatrix", "F", 72, 4), self.raw(False), 288)
        directory = self.tempdir()
        for name, messages in ("good", [[scidac.private_file(DIMS)], good]), ("none", [good]):
            with open(os.path.join(directory, name), "wb") as file:
                file.write(container(messages))
        done = run(["lime", "check", "--physics", "-r", directory])
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn(b"1 good, 0 bad, 1 unverified", done.stdout)


class GaugeSet(volumelib.Set):
    def record(self, number, binary):
        message = super().record(number, binary)
        return [private("USQCD_F3_ColorMatrix", "F", 72, 4), *message[1:]]


class Volumes(GaugeCase):
    def test_volume_set(self):
        raw = self.raw(False)
        made = GaugeSet(DIMS, [(288, raw)], volumelib.blocks(DIMS, (1, 2, 1, 1)))
        first = made.write(self.dir)
        for volume in 0, 1:
            report = self.check(made.path(self.dir, volume), status=3)
            self.assertEqual([(p["state"], p["reason"].split(";")[0]) for p in report["physics"]],
                             [("unverified", "one volume of a partitioned set")])
        self.assert_converted(first, False)
        joined = os.path.join(self.dir, "joined")
        self.run_ok(["lime", "join", first, joined])
        self.assert_measured(self.check(joined, "--data", status=0)["physics"][0], self.links)
        self.assert_converted(joined, False)


if __name__ == "__main__":
    limetest.main()
