"""lime info: containers of all writers; --json; faults; hostile text."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
from limetest import container, header, record, run


def corpus(name):
    return os.path.join(limetest.CORPUS, name + ".lime")


def ildg(x, y, z, t, precision=32, field="su3gauge"):
    return ("ildg-format", f"<ildgFormat><field>{field}</field><precision>{precision}</precision>"
            f"<lx>{x}</lx><ly>{y}</ly><lz>{z}</lz><lt>{t}</lt></ildgFormat>".encode())


def checksum(suma, sumb):
    return ("scidac-checksum", f"<scidacChecksum><suma>{suma}</suma><sumb>{sumb}</sumb>"
            "</scidacChecksum>".encode())


def ilfn(name):
    return ("ildg-data-lfn", name.encode())


class InfoCase(limetest.TestCase):
    def info(self, *paths, status=0):
        return self.lime("info", *paths, status=status)

    def json(self, *paths, status=0):
        out = self.lime("info", "--json", *paths, status=status)
        self.assertTrue(out.isascii())
        return json.loads(out)

    def of(self, *items, status=0):
        """Returns the JSON for a container of these records."""
        return self.json(self.write("f.lime", container(items)), status=status)


class Text(InfoCase):
    def test_gauge(self):
        path = corpus("tm_clime_gauge_4448_p32_n1")
        self.assertEqual(self.info(path), f"""{path}
  file              145K, 4 records in 2 messages

ensemble (record 1)
  plaquette         0.235086003392
  trajectory nr     0
  beta              6.000000000000
  kappa             0.177000000000
  mu                0.500000000000
  c2_rec            0.000000
  time              1795160741
  hmcversion        tmLQCD 6.1.0
  mubar             0.000000000000
  epsilonbar        0.000000000000
  date              Fri Nov 20 07:45:41 2026

gauge configuration su3gauge (record 3)
  lattice           4^3 x 8
  precision         single, 32 bits
  size              144K
  checksum          62d81924 43650089, not verified
""")
        self.assertEqual(self.err, "")

    def test_several_configurations(self):
        """ILDG 2.0: each has its own format, checksum and LFN, and one has two fields."""
        lattice = 16 * 288
        path = self.write("several.lime", container(
            [[ilfn("lfn://a/b/1"), ildg(2, 2, 2, 2), ("ildg-binary-data", bytes(lattice)),
             checksum("1", "2")],
            [ildg(2, 2, 2, 2, 64), ("ildg-binary-data", bytes(2 * lattice)), checksum("3", "4"),
             ildg(2, 2, 2, 2, 32, "u1phase"), ("ildg-binary-data", bytes(256)),
             ilfn("lfn://a/b/2")]]))
        output = self.info(path)
        for text in (f"{path}\n  LFN               lfn://a/b/1\n",
                     "gauge configuration su3gauge (record 3)\n",
                     "gauge configuration su3gauge (record 6)\n",
                     "gauge configuration u1phase (record 9)\n",
                     "  LFN               lfn://a/b/2\n", "double, 64 bits"):
            self.assertIn(text, output)
        fields = self.json(path)["fields"]
        self.assertEqual([(f["name"], f["precision"], f["site_bytes"], f["lfn"],
                           f["checksum"] and f["checksum"]["suma"]) for f in fields],
                         [("su3gauge", 32, 288, "lfn://a/b/1", "00000001"),
                          ("su3gauge", 64, 576, None, "00000003"),
                          ("u1phase", 32, 16, "lfn://a/b/2", None)])
        done = run(["lime", "check", path])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_propagator(self):
        out = self.info(corpus("tm_lemon_prop_4444_p64_n1"))
        for text in ("propagator type (record 1)\n  DiracFermion_Sink\n", "inverter (record 4)\n",
                     "  solver            CG\n", "propagator diracFermion (record 6)\n",
                     "  precision         double, 64 bits\n", "  lattice           4^3 x 4\n"):
            self.assertIn(text, out)

    def test_qio(self):
        out = self.info(corpus("qio_nersc_ildg"))
        for text in ("  LFN               lfn://test/lfn\n",
                     "  title             Converted NERSC gauge configuration\n",
                     "  written           Fri Nov 20 07:44:46 2026 UTC\n",
                     "  plaq              1.0\n", "  linktr            1.0\n",
                     "  ENSEMBLE_ID       test\n"):
            self.assertIn(text, out)
        out = self.info(corpus("qio_test1_scidac_n1"))
        for text in ("lattice field QDP_F_Real (record 5)\n  lattice           8 x 4 x 4 x 4\n",
                     "  only sites        1..2, 0..3, 0..3, 2..2\n",
                     "global data QLA_F_Real (record 13)\n  precision ",
                     "  Dummy user record XML for su3 field\n"):
            self.assertIn(text, out)

    def test_lattices(self):
        for dims, text in (((24, 24, 24, 48), "24^3 x 48"), ((4, 4, 4, 4), "4^3 x 4"),
                           ((2, 3, 4, 5), "2 x 3 x 4 x 5"), ((4, 4, 5, 4), "4 x 4 x 5 x 4")):
            path = self.write("f", container([ildg(*dims), ("ildg-binary-data", b"")]))
            out = self.info(path, status=1)
            self.assertIn(f"  lattice           {text}\n", out)

    def test_deviations_in_text(self):
        data = container([ildg(2, 2, 2, 2), ("ildg-binary-data", bytes(100)), checksum("x", 1)])
        out = self.info(self.write("f", data), status=1)
        self.assertIn("  size              100 bytes, but should be 4608\n", out)
        self.assertIn("  checksum          cannot be understood\n", out)
        wrong = out.split("problems\n")[1].splitlines()
        self.assertEqual(len(wrong), 2)
        self.assertIn("record 2: the data length does not match the lattice (100 bytes, not 4608)",
                      wrong[0])
        self.assertIn("record 3: the metadata cannot be understood", wrong[1])

    def test_many_deviations(self):
        data = container([[checksum(1, 2)]] * 50)
        out = self.info(self.write("f", data), status=1)
        self.assertIn("record 20: ", out)
        self.assertNotIn("record 21: ", out)
        self.assertTrue(out.endswith("  ... and 30 more; 'lime check' names all\n"))
        got = self.json(self.write("f", data), status=1)
        self.assertEqual((len(got["deviations"]), got["status"]), (50, "bad"))

    def test_plain_containers(self):
        out = self.info(corpus("lemon_canonical_n1"))
        self.assertEqual(len(out.splitlines()), 2)
        self.assertNotIn("wrong", self.info(corpus("clime_pack_multi")))

    def test_bold_on_a_terminal_only(self):
        path = corpus("lemon_canonical_n1")
        self.assertNotIn("\x1b", self.info(path))
        for env, bold in (({}, True), ({"NO_COLOR": "1"}, False)):
            _, out = limetest.run_on_terminal(
                ["lime", "info", path],
                env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, **env})
            self.assertEqual(b"\x1b[1m" in out, bold)


class Facts(InfoCase):
    def facts(self, type, data):
        (info,) = self.of((type, data))["info"]
        self.assertEqual(info["type"], type)
        return info["facts"]

    def test_text(self):
        self.assertEqual(
            self.facts("xlf-info", b"\n plaquette = 5.0e-01\n beta = 6.0, kappa = 0.1,mu=0.5\n"
                                   b"hmcversion = a, b and c\r\nset = x, y = 3, z = 1, 2\n"
                                   b"just words\n\n = 3\nnothing =\n\0\0"),
            {"plaquette": "5.0e-01", "beta": "6.0", "kappa": "0.1", "mu": "0.5",
             "hmcversion": "a, b and c", "set": "x", "y": "3", "z": "1, 2", "": "just words",
             "nothing": ""})

    def test_xml(self):
        self.assertEqual(
            self.facts("scidac-file-xml", b"<q:p xmlns:q='x'><version>1.0</version><q:spin>3"
                                          b"</q:spin><deep><color> 2\n</color></deep><none/>"
                                          b"</q:p>\0"), {"spin": "3", "color": "2"})
        self.assertEqual(self.facts("scidac-file-xml", b"<title> of\n all </title>"),
                         {"title": "of  all"})
        self.assertEqual(self.facts("scidac-file-xml", b"no XML\0"), {"": "no XML"})
        self.assertEqual(self.facts("scidac-file-xml", b""), {})
        self.assertEqual(self.facts("scidac-file-xml", "<a><b>J\u00fclich</b></a>".encode()),
                         {"b": "J\u00fclich"})

    def test_limits(self):
        many = self.facts("xlf-info", b"".join(b"k%d = v\n" % i for i in range(5000)))
        self.assertEqual(len(many), 400)
        self.assertEqual(self.facts("xlf-info", b"k = " + b"x" * 1000000)["k"][:9], "x" * 9)
        out = self.info(self.write("f", container([("xlf-info", b"x = 1\n" * 5000)])))
        self.assertIn("  ...\n", out)
        bomb = b"<!DOCTYPE a [<!ENTITY a 'xxxx'><!ENTITY b '&a;&a;&a;'>]><a><c>&b;</c></a>"
        self.assertNotIn("c", self.facts("scidac-file-xml", bomb))

    def test_user_xml_goes_with_its_data(self):
        path = self.write("f", container([
            ("scidac-record-xml", b"<a><one>1</one></a>"), ildg(1, 1, 1, 1),
            ("ildg-binary-data", bytes(288)), ("scidac-record-xml", b"<a><two>2</two></a>")]))
        out = self.info(path)
        self.assertLess(out.index("gauge configuration"), out.index("one "))
        self.assertIn("record (record 4)\n  two               2\n", out)


class Json(InfoCase):
    def test_gauge(self):
        path = corpus("qio_nersc_ildg")
        got = self.json(path)
        self.assertEqual(got["fields"], [{
            "ordinal": 7, "message": 2, "type": "ildg-binary-data", "kind": "gauge",
            "name": "su3gauge", "lattice": [4, 4, 4, 8], "lower": None, "upper": None,
            "precision": 32, "sites": 512, "site_bytes": 288, "bytes": 147456,
            "expected": 147456, "checksum": {"suma": "52e387af", "sumb": "b848b848"},
            "array": {"shape": [8, 4, 4, 4, 4, 3, 3], "lattice_dims": 4, "dtype": ">c8",
                      "offset": 2216},
            "date": "Fri Nov 20 07:44:46 2026 UTC", "format_record": 5, "private_record": 3,
            "checksum_record": 8, "lfn": "lfn://test/lfn", "lfn_record": 6}])
        self.assertEqual({k: v for k, v in got.items() if k not in ("fields", "info")}, {
            "file": path, "size": os.path.getsize(path), "records": 8, "messages": 2,
            "fault": None, "lfn": "lfn://test/lfn", "deviations": [], "checkpoints": [],
            "status": "good", "error": None})
        self.assertEqual([i["type"] for i in got["info"]],
                         ["scidac-file-xml", "scidac-record-xml"])
        self.assertEqual(got["info"][1]["facts"]["ENSEMBLE_ID"], "test")

    def test_arrays(self):
        """The array is null for data that do not form one or whose shape is unknown."""
        cut = self.of(ildg(2, 2, 2, 2), ("ildg-binary-data", bytes(100)), status=1)["fields"][0]
        self.assertIsNone(cut["array"])
        plain = self.of(("ildg-binary-data", bytes(100)))["fields"][0]
        self.assertIsNone(plain["array"])
        real = self.json(corpus("qio_test1_scidac_n1"))["fields"]
        self.assertEqual([(f["array"]["shape"], f["array"]["dtype"]) for f in real],
                         [([4, 4, 4, 8, 2], ">f4"), ([1, 4, 4, 2, 2], ">f4"), ([3], ">f4"),
                          ([4, 4, 4, 8, 4, 3, 3], ">c8")])

    def test_kinds(self):
        kinds = {name: [f["kind"] for f in self.json(corpus(name))["fields"]] for name in (
            "clime_pack_multi", "tm_clime_prop_4444_p32_n1", "qio_test1_scidac_n1")}
        self.assertEqual(kinds, {"clime_pack_multi": ["unknown", "unknown"],
                                 "tm_clime_prop_4444_p32_n1": ["propagator"],
                                 "qio_test1_scidac_n1": ["field", "field", "global", "gauge"]})
        box = self.json(corpus("qio_test1_scidac_n1"))["fields"][1]
        self.assertEqual((box["lattice"], box["lower"], box["upper"], box["sites"]),
                         ([8, 4, 4, 4], [1, 0, 0, 2], [2, 3, 3, 2], 32))

    def test_checkerboard(self):
        path = self.write("f.lime", container([[
            scidac.grid_format((4, 4, 4, 8)), scidac.private_record(24, "GRID_F_X"),
            ("ildg-binary-data", bytes(256 * 24))]]))
        field, = self.json(path)["fields"]
        self.assertEqual((field["lattice"], field["sites"], field["expected"], field["lower"]),
                         ([4, 4, 4, 8], 256, 6144, None))
        self.assertIn("only sites        every second, a checkerboard\n", self.info(path))

    def test_deviations(self):
        got = self.of(ildg(2, 2, 2, 2), ("ildg-binary-data", bytes(100)), status=1)
        self.assertEqual([(d["code"], d["ordinal"], d["have"], d["want"])
                          for d in got["deviations"]], [("field-length", 2, 100, 4608)])


class Failures(InfoCase):
    def test_fault(self):
        path = self.write("f", container([ildg(1, 1, 1, 1), ("ildg-binary-data", bytes(288))])
                          + header("cut", 100, 1, 1) + b"x")
        out = self.info(path, status=1)
        self.assertIn("gauge configuration", out)
        self.assertIn("record 3: the file ends inside the data", self.err)
        got = self.json(path, status=1)
        self.assertEqual((got["fault"]["code"], len(got["fields"]), got["status"]),
                         ("data-cut", 1, "bad"))

    def test_structure(self):
        """lime info counts structural deviations; a warning does not change the verdict."""
        for broken, status in ({"reserved": 1}, 1), ({"flags": 0xc1}, 0):
            path = self.write("f", record("t", b"", 1, 1, **broken))
            out = self.info(path, status=status)
            self.assertEqual("1 deviation of the structure; 'lime check' names all" in out,
                             status == 1)
            self.assertEqual(self.json(path, status=status)["status"], ["good", "bad"][status])

    def test_damaged_beginnings(self):
        """A damaged or empty container is bad; another file is unreadable."""
        good = container([ildg(1, 1, 1, 1), ("ildg-binary-data", bytes(288))])
        for data, message, verdict in (
                (b"", "the file is empty", "bad"),
                (bytes(1000), "the file begins with zeros instead of a record header", "bad"),
                (b"XX" + good[2:], "the first record header is damaged", "bad"),
                (b"text" * 99, "not a LIME container (no record header at offset 0)",
                 "unreadable")):
            path = self.write("f", data)
            status = 1 if verdict == "bad" else 2
            self.info(path, status=status)
            self.assertIn(f"lime: {path}: {message}", self.err)
            self.assertEqual(self.json(path, status=status)["status"], verdict)
            *got, _ = limetest.json_lines(self.info("--json", "-r", os.path.dirname(path),
                                                    status=status % 2))
            self.assertEqual([one["status"] for one in got], ["bad"] * (status == 1))

    def test_many_records(self):
        """The time is proportional to the number of records."""
        one = b"".join(record(*item) for item in (
            (*ildg(1, 1, 1, 1), 1, 0), ("ildg-binary-data", bytes(288), 0, 0),
            (*checksum(1, 2), 0, 1)))
        path = self.write("many", one * 20000)
        got = self.json(path)
        self.assertEqual(len(got["fields"]), 20000)
        self.assertEqual(got["deviations"], [])


if __name__ == "__main__":
    limetest.main()
