"""lime check --physics against numpy and against the values in the metadata."""
import json
import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import limetest
from limetest import container, run
import scidac

try:
    import gaugelib
except ImportError:
    print("1..0 # SKIP needs python3-numpy")
    sys.exit()


def links_of(dims, seed=0):
    return gaugelib.random_links(dims, seed, spread=2)


def encode(links, precision=64):
    return gaugelib.reals(links, f">f{precision // 8}").tobytes()


# ---- containers ----


def xlf(text):
    return [("xlf-info", text if isinstance(text, bytes) else text.encode())]


def message(dims, links, precision=64, before=()):
    return [*before, ("ildg-format", scidac.ildg_format(dims, precision)),
            ("ildg-binary-data", encode(links, precision))]


def usqcd(elements):
    return [("scidac-record-xml", f'<?xml version="1.0"?><usqcdInfo><version>1.0</version>'
             f'{elements}</usqcdInfo>'.encode() + b"\0")]


def json_of(path, *options, status=0):
    done = run(["lime", "check", "--physics", "--json", *options, path])
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


DIMS = (3, 2, 1, 4)
LINKS = links_of(DIMS)
SPACE, TIME = gaugelib.plaquettes(LINKS)
TRACE = gaugelib.link_trace(LINKS)
PLAQUETTE = gaugelib.plaquette(LINKS)


class Physics(limetest.TestCase):
    def test_values(self):
        for dims in ((1, 1, 1, 1), (2, 2, 2, 2), (5, 3, 1, 2), (4, 2, 3, 3), (33, 1, 2, 1)):
            for precision in (32, 64):
                with self.subTest(dims=dims, precision=precision):
                    links = links_of(dims, 7).astype(f"complex{2 * precision}")
                    path = self.write("c", container([message(dims, links, precision)]))
                    result, = json_of(path)["physics"]
                    space, time = gaugelib.plaquettes(links)
                    self.assertAlmostEqual(result["space"], space, 13)
                    self.assertAlmostEqual(result["time"], time, 13)
                    self.assertAlmostEqual(result["plaquette"], (space + time) / 2, 13)
                    self.assertAlmostEqual(result["link_trace"], gaugelib.link_trace(links), 13)
                    self.assertLess(result["unitarity"], 1e-14 if precision == 64 else 1e-6)
                    self.assertLess(result["determinant"], 1e-14 if precision == 64 else 1e-6)
                    self.assertEqual((result["ordinal"], result["state"], result["bad_links"],
                                      result["bad_sites"], result["nonfinite"], result["stated"],
                                      result["first_bad"], result["bound"]),
                                     (2, "good", 0, 0, 0, [], None,
                                      1e-6 if precision == 64 else 1e-4))

    def test_corpus(self):
        seen = 0
        for row in limetest.manifest():
            if row["type"] != "ildg-binary-data" or row["file"] == "clime_pack_multi.lime":
                continue  # its data are not a field
            result, = json_of(row["path"])["physics"]
            self.assertEqual(result["state"], "good", row["path"])
            with open(row["path"], "rb") as file:
                text = re.search(rb"plaquette = (\d\.\d+)|<plaq>([^<]+)", file.read())
            stated = float(text[1] or text[2])
            self.assertEqual([s["agrees"] for s in result["stated"]],
                             [True] * (1 if text[1] else 4))
            self.assertLess(abs(result["plaquette"] - stated), 1e-8)
            seen += 1
        self.assertGreaterEqual(seen, 3)

    def test_text(self):
        path = self.write("c", container([xlf(f"plaquette = {PLAQUETTE:.12f}\n"),
                                          message(DIMS, LINKS)]))
        done = run(["lime", "check", "--physics", path])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[0], f"{path}: record 3: plaquette {PLAQUETTE:.12f} (space "
                                   f"{SPACE:.12f}, time {TIME:.12f}), link trace {TRACE:.12f}; "
                                   "agrees with xlf-info plaquette")
        self.assertRegex(lines[1], r": record 3: largest deviation from 1: of U U\^\+ [0-9.e-]+, "
                                   r"of det U [0-9.e-]+ \(bound 1e-06\)$")
        self.assertTrue(lines[2].endswith("; configurations: 1 good"), lines)
        self.assertEqual(len(lines), 3)
        done = run(["lime", "check", "-q", "--physics", path])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_any_number_of_threads(self):
        path = self.write("c", container([message((4, 6, 8, 5), links_of((4, 6, 8, 5)))]))
        results = [json_of(path, "-j", str(threads)) for threads in (1, 2, 3, 7)]
        for result in results[1:]:
            self.assertEqual(result, results[0])

    # ---- bad links ----

    def damaged(self, site, direction, change, precision=64, good=LINKS):
        links = good.copy()
        change(links.reshape(-1, 4, 3, 3)[site, direction])
        data = container([message(DIMS, links, precision)])
        path = self.write("c", data)
        result = json_of(path, status=1)
        finding, = result["findings"]
        self.assertEqual((finding["code"], finding["ordinal"]), ("links", 2))
        self.assertEqual(finding["offset"], data.index(encode(links, precision))
                         + (4 * site + direction) * 18 * precision // 8)
        self.assertEqual(result["status"], "bad")
        first = result["physics"][0]["first_bad"]
        at = [site % 3, site // 3 % 2, site // 6 % 1, site // 6]
        self.assertEqual((first["site"], first["direction"]), (at, "xyzt"[direction]))
        self.assertIn(f"site {' '.join(map(str, at))} (x y z t), direction "
                      f"{'xyzt'[direction]}: ", finding["message"])
        done = self.fails(["lime", "check", "--physics", path], finding["message"])
        self.assertTrue(done.stdout.decode().endswith("; configurations: 1 bad\n"))
        self.assertEqual(run(["lime", "check", "-q", "--physics", path]).returncode, 1)
        return result["physics"][0], finding

    def test_not_unitary(self):
        def change(link):
            link[1, 2] *= 2
        for precision in (32, 64):
            physics, finding = self.damaged(13, 2, change, precision)
            self.assertEqual(physics["first_bad"]["wrong"], "unitarity")
            self.assertEqual((physics["bad_links"], physics["bad_sites"]), (1, 1))
            self.assertNotIn("none of the links", finding["message"])
            self.assertRegex(finding["message"], r"U U\^\+ differs from 1 by [0-9.e-]+$")
            self.assertEqual((finding["have"], finding["want"]), (1, 4 * 24))
            self.assertEqual(physics["first_bad"]["deviation"], physics["unitarity"])
            self.assertGreater(physics["unitarity"], 1e-3)

    def test_wrong_determinant(self):
        def change(link):
            link[[0, 1]] = link[[1, 0]]
        physics, finding = self.damaged(0, 3, change)
        self.assertIn("its determinant differs from 1 by 2", finding["message"])
        self.assertEqual(physics["first_bad"]["wrong"], "determinant")
        self.assertAlmostEqual(physics["first_bad"]["deviation"], 2, 12)

    def test_not_finite(self):
        for value, word in ((math.nan, "nan"), (math.inf, "infinite"), (-math.inf, "infinite")):
            def change(link, value=value):
                link[2, 0] = complex(0.5, value)
            physics, finding = self.damaged(23, 1, change)
            self.assertEqual((physics["first_bad"]["wrong"], physics["first_bad"]["real"]),
                             (word, 13))
            self.assertIn("row 3, column 1 is " + "not a number" * (word == "nan"),
                          finding["message"])
            self.assertEqual(physics["nonfinite"], 1)
            self.assertEqual([physics[name] for name in ("plaquette", "space", "time",
                                                         "link_trace")], [None] * 4)
            self.assertLess(physics["unitarity"], 1e-14)

    def test_not_finite_as_text(self):
        for value in math.nan, 1e308:
            links = LINKS.copy()
            links.reshape(-1)[0] = value
            path = self.write("c", container([xlf(f"plaquette = {PLAQUETTE:.12f}\n"),
                                              message(DIMS, links)]))
            done = run(["lime", "check", "--physics", path])
            text = (done.stdout + done.stderr).decode()
            self.assertEqual(done.returncode, 1)
            self.assertIn("no plaquette or link trace: numbers are NaN, infinite or too large", text)
            self.assertIn("but plaquette of record 3 cannot be computed", text)
            self.assertNotRegex(text, r"\bnan\b|e\+308")

    def test_all_zero_and_other_byte_order(self):
        dims = (2, 2, 2, 2)
        data = encode(links_of(dims))
        swapped = b"".join(data[i:i + 8][::-1] for i in range(0, len(data), 8))
        for raw in (bytes(len(data)), swapped, b"\xff" * len(data), os.urandom(len(data))):
            path = self.write("c", container([[("ildg-format", scidac.ildg_format(dims)),
                                               ("ildg-binary-data", raw)]]))
            result = json_of(path, status=1)
            self.assertEqual(result["physics"][0]["bad_links"], 64)
            self.assertEqual(result["physics"][0]["first_bad"]["site"], [0, 0, 0, 0])
            self.assertTrue(result["findings"][0]["message"].endswith(
                "; none of the links is SU(3): it may be fat links or momenta, not a "
                "configuration"))
            self.assertEqual(run(["lime", "check", "--physics", path]).returncode, 1)

    # ---- metadata ----

    def stated(self, before, *, precision=64, status):
        """Returns the codes of the findings, and the stated values."""
        path = self.write("c", container([message(DIMS, LINKS, precision, before)]))
        result = json_of(path, status=status)
        done = run(["lime", "check", "--physics", path])
        self.assertEqual(done.returncode, status)
        text = done.stdout + done.stderr
        self.assertFalse(any(byte < 32 and byte != 10 or byte > 126 for byte in text), text)
        return [f["code"] for f in result["findings"]], result["physics"][0]["stated"]

    def test_plaquette_of_xlf_info(self):
        for value, precision, good in (
                (f"{PLAQUETTE:.12f}", 64, True), (f"{PLAQUETTE:.4e}", 64, True),
                (f"{PLAQUETTE + 5e-8:.12f}", 64, True), (f"{PLAQUETTE + 2e-7:.12f}", 64, False),
                (f"{PLAQUETTE + 5e-6:.12f}", 32, True), (f"{PLAQUETTE + 2e-5:.12f}", 32, False),
                (f"{PLAQUETTE + 2e-3:.2f}", 64, False), (f"{3 * PLAQUETTE:.12f}", 64, False)):
            if value.endswith("2f") and abs(float(value) - PLAQUETTE) < 1e-3:
                continue
            with self.subTest(value=value, precision=precision):
                codes, stated = self.stated(xlf(f"plaquette = {value}\n beta = 6\n"),
                                            precision=precision, status=0 if good else 1)
                self.assertEqual(codes, [] if good else ["plaquette"])
                self.assertEqual([(s["text"], s["agrees"], s["where"]) for s in stated],
                                 [(value, good, "xlf-info")])
                self.assertAlmostEqual(stated[0]["measured"], PLAQUETTE, 6)

    def test_usqcd(self):
        good = f"<plaq>{PLAQUETTE:e}</plaq><linktr>{TRACE:e}</linktr>"
        codes, stated = self.stated(usqcd(good), status=0)
        self.assertEqual((codes, [s["name"] for s in stated]), ([], ["plaq", "linktr"]))
        for xml, want in ((f"<plaq>0.9</plaq><linktr>{TRACE:e}</linktr>", ["plaquette"]),
                          (f"<plaq>{PLAQUETTE:e}</plaq><linktr>0.9</linktr>", ["link-trace"]),
                          ("<plaq>0.9</plaq><linktr>x</linktr>", ["plaquette", "link-trace"]),
                          (good + f"<info>gauge.ssplaq = {3 * SPACE:e}\n"
                           f"gauge.stplaq = {3 * TIME:e}</info>", []),
                          (good + f"<info>gauge.ssplaq = {3 * SPACE:e}\n"
                           f"gauge.stplaq = {TIME:e}</info>", ["plaquette"]),
                          (good + f"<info>PLAQUETTE = {PLAQUETTE:.10f}\n"
                           f"LINK_TRACE = {-TRACE:.10f}</info>", ["link-trace"])):
            with self.subTest(xml):
                self.assertEqual(self.stated(usqcd(xml), status=1 if want else 0)[0], want)

    def test_hostile_values(self):
        for value in ("nan", "inf", "-inf", "1e999", "0x1", "", "none", "0,59", "9" * 400,
                      "\x1b[2J0.5", "0.59 0.59", "é", "1e-999999999999", "0e300", "%n%s", "1e",
                      "1e+", ".", "-", "--1", "0e99999", "1.2.3", "plaquette", "0." + "1" * 66):
            with self.subTest(value):
                if value == "":
                    self.stated(xlf("plaquette ="), status=1)
                codes, stated = self.stated(xlf(f"plaquette = {value}\n"), status=1)
                self.assertEqual(codes, ["plaquette"])
                self.assertEqual([s["agrees"] for s in stated], [False])
                codes, _ = self.stated(usqcd(f"<linktr>{value.replace(chr(27), '')}</linktr>"),
                                       status=1)
                self.assertEqual(codes, ["link-trace"])
        for text in (b"plaquette", b"=" * 5000, b"\xff\xfe\0", b"plaquette : 0.1", b"", b",,,\n"):
            self.assertEqual(self.stated(xlf(text), status=0), ([], []))
        self.assertEqual(self.stated([("scidac-record-xml", b"<usqcdInfo><plaq>0.1")],
                                     status=0), ([], []))

    def all_stated(self, items):
        """Returns the stated values of each configuration, with their records."""
        path = self.write("c", container(items))
        return [[(s["ordinal"], s["where"], s["name"], s["text"],
                  s["value"] and round(s["value"], 15))
                 for s in one["stated"]] for one in json_of(path, status=1)["physics"]]

    def test_metadata_before_the_data(self):
        """Metadata count if they precede the data, in any message; the first number counts."""
        data = message(DIMS, LINKS)
        every = usqcd("<plaq>5.9e-01</plaq><linktr>nonsense</linktr><info>gauge.ssplaq = 1.8\n"
                      "PLAQUETTE = 0.6\nLINK_TRACE =  0.01</info>")
        xml = [(7, "scidac-record-xml", name, text, value) for name, text, value in (
            ("plaq", "5.9e-01", 0.59), ("linktr", "nonsense", None), ("gauge.ssplaq", "1.8", 0.6),
            ("plaquette", "0.6", 0.6), ("link_trace", "0.01", 0.01))]
        self.assertEqual(self.all_stated([
            xlf("plaquette = 0.5\n trajectory nr = 7\n beta = 6.0, kappa = 0.1\nplaquette = 0.7\n"),
            data, data, usqcd("<plaq>0.1</plaq>"), [*every, *data], xlf("plaquette = 0.25"),
            xlf("plaquette: none"), [("scidac-record-xml", b"<plaq>0.5</"), *data]]),
            [[(1, "xlf-info", "plaquette", "0.5", 0.5)], [], xml, []])

    def test_metadata_in_the_message(self):
        """A QCDml document and a later xlf-info count only for data of their own message."""
        qcdml = ("QCDml", b"<gaugeConfiguration><markovSequence><markovStep><record><avePlaquette>"
                 b"0.61</avePlaquette></record></markovStep></markovSequence></gaugeConfiguration>")
        data = message(DIMS, LINKS)
        self.assertEqual(
            self.all_stated([[qcdml, *data, *xlf("plaquette = 0.6")], data,
                             xlf("plaquette = 0.7")]),
            [[(4, "xlf-info", "plaquette", "0.6", 0.6), (1, "qcdml", "avePlaquette", "0.61", 0.61)],
             []])

    def test_finding_names_the_metadata_record(self):
        path = self.write("c", container([xlf("plaquette = 0.9"), message(DIMS, LINKS)]))
        finding, = json_of(path, status=1)["findings"]
        self.assertEqual((finding["ordinal"], finding["offset"]), (1, 144))
        self.assertIn("plaquette of xlf-info is '0.9', but plaquette of record 3 is "
                      f"{PLAQUETTE:.12g}", finding["message"])

    # ---- many ----

    def test_several_in_one_file(self):
        other = links_of(DIMS, 5)
        value = gaugelib.plaquette(other)
        bad = other.copy()
        bad.reshape(-1, 3, 3)[50] *= 2
        path = self.write("c", container([
            xlf(f"plaquette = {PLAQUETTE:.12f}"), message(DIMS, LINKS),
            message(DIMS, other), xlf(f"plaquette = {value:.12f}"), message(DIMS, other, 32),
            message(DIMS, bad)]))
        result = json_of(path, status=1)
        self.assertEqual([(p["ordinal"], p["state"], len(p["stated"]))
                          for p in result["physics"]],
                         [(3, "good", 1), (5, "good", 0), (8, "good", 1), (10, "bad", 0)])
        self.assertEqual([(f["ordinal"], f["code"]) for f in result["findings"]],
                         [(10, "links")])
        self.assertIn(b"; configurations: 3 good, 1 bad\n",
                      run(["lime", "check", "--physics", path]).stdout)


if __name__ == "__main__":
    limetest.main()
