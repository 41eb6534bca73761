"""lime info --table: a line for each configuration; columns, order, CSV and TSV."""
import csv
import io
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import gaugelib
import limetest
import scidac
from limetest import container

DIMS = (2, 2, 2, 4)
DATA = bytes(576 * 32)
USUAL = ["file", "status", "lattice", "precision", "beta", "kappa", "mu", "mass", "csw",
         "trajectory", "plaquette", "checksum", "lfn"]


def config(*before, lfn=None):
    """A configuration with metadata records before it."""
    message = scidac.records(DIMS, DATA)
    if lfn:
        message.insert(1, ("ildg-data-lfn", lfn))
    return container([*before, message])


def xlf(trajectory, beta="5.5"):
    return ("xlf-info", f"plaquette = 0.{trajectory}1\n trajectory nr = {trajectory}, beta = {beta},"
                        f" kappa = 0.1\n".encode())


class Table(limetest.TestCase):
    def setUp(self):
        self.dir = self.tempdir()

    def put(self, name, data):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return limetest.put(path, data)

    def rows(self, *args, status=0):
        text = self.lime("info", "--csv", *args, "-r", self.dir, status=status)
        return list(csv.DictReader(io.StringIO(text)))

    def test_values(self):
        """The values that tmLQCD, NERSC, USQCD, MILC and QIO write, in the usual columns."""
        usqcd = (b"<usqcdInfo><version>1.0</version><plaq>0.25</plaq><linktr>0.5</linktr><info>"
                 b"gauge.beta11 = 6.76\nquark.mass1 = 0.01\nseries = 1</info></usqcdInfo>")
        self.put("a.lime", config(xlf(7), lfn=b"lfn://a/b"))
        self.put("b.lime", config(("nersc-header", b"SEQUENCE_NUMBER = 12\nENSEMBLE_ID = e\n"
                                                   b"PLAQUETTE = 0.125\n")))
        self.put("c.lime", container([[("scidac-record-xml", usqcd),
                                       *scidac.records(DIMS, DATA)[:2]]]))
        a, b, c = self.rows()
        self.assertEqual(list(a), USUAL)
        common = {"status": "good", "lattice": "2x2x2x4", "precision": "64", "mu": "", "csw": ""}
        self.assertEqual(a, {**common, "file": os.path.join(self.dir, "a.lime"), "beta": "5.5",
                             "kappa": "0.1", "mass": "", "trajectory": "7", "plaquette": "0.71",
                             "checksum": "stated", "lfn": "lfn://a/b"})
        self.assertEqual((b["trajectory"], b["plaquette"]), ("12", "0.125"))
        self.assertEqual((c["beta"], c["mass"], c["plaquette"], c["checksum"]),
                         ("6.76", "0.01", "0.25", "none"))
        _, b, c = self.rows("--columns", "ensemble,linktrace,info:series,record,bytes,sums,type")
        self.assertEqual(list(b.values())[:5], ["e", "", "", "3", str(len(DATA))])
        self.assertEqual(list(c.values())[:4], ["", "0.5", "1", "3"])
        self.assertRegex(b["sums"], "^[0-9a-f]{8} [0-9a-f]{8}$")
        self.assertEqual(b["type"], "su3gauge")

    def test_formats(self):
        """The checksums of files in other formats are those in their headers."""
        u = gaugelib.random_links(DIMS)
        self.put("a.nersc", gaugelib.write_nersc(u))
        self.put("b.milc", gaugelib.write_milc(u))
        self.put("c.milc", gaugelib.write_milc(u, sums=(0, 0)))
        self.put("d", gaugelib.write_openqcd(u))
        a, b, c, d = self.rows("--columns", "checksum,sums,precision")
        sum_ = gaugelib.nersc_sum(gaugelib.reals(u, ">f8").tobytes(), ">")
        self.assertEqual(list(a.values()), ["stated", f"{sum_:x}", "64"])
        self.assertEqual((b["checksum"], len(b["sums"].split())), ("stated", 2))
        self.assertEqual([list(row.values()) for row in (c, d)],
                         [["none", "", "32"], ["none", "", "64"]])

    def test_several_and_bad(self):
        """Each field of a container has a line; a bad file without one has its status."""
        self.put("two.lime", container([[xlf(1), *scidac.records(DIMS, DATA)],
                                        [xlf(2), *scidac.records(DIMS, DATA)]]))
        self.put("cut.lime", config(xlf(3))[:2000])
        self.put("empty.lime", b"")
        self.put("log", b"text\n")
        self.put("spinor.lime", container([("ildg-format", b"x")]))
        rows = self.rows("--columns", "file,status,trajectory", status=1)
        self.assertEqual([(os.path.basename(r["file"]), r["status"], r["trajectory"]) for r in rows],
                         [("cut.lime", "bad", ""), ("empty.lime", "bad", ""),
                          ("spinor.lime", "bad", ""), ("two.lime", "good", "1"),
                          ("two.lime", "good", "2")])
        self.assertEqual(len(self.rows("-q", status=1)), 3)
        self.assertNotIn("files:", self.out)

    def test_order(self):
        for name, number, beta in (("c.10", 2, "10.5"), ("c.2", 10, "9"), ("c.x", 3, "weak")):
            self.put(name, config(xlf(number, beta)))
        self.put("d", config())

        def order(*args):
            return [os.path.basename(r["file"]) for r in self.rows(*args)]

        self.assertEqual(order(), ["c.2", "c.10", "c.x", "d"])
        self.assertEqual(order("--sort", "trajectory"), ["c.10", "c.x", "c.2", "d"])
        self.assertEqual(order("--sort", "-trajectory"), ["c.2", "c.x", "c.10", "d"])
        self.assertEqual(order("--sort", "beta", "--columns", "file"), ["c.2", "c.10", "c.x", "d"])
        self.assertEqual(order("--sort", "-file"), ["d", "c.x", "c.10", "c.2"])

    def test_forms(self):
        """Aligned columns without those that are empty; quoted CSV; TSV without control bytes."""
        name = self.put('a, "b"\t.lime', config(xlf(7)))
        self.put("c.lime", config())
        shown = 'a, "b"?.lime'
        lines = self.lime("info", "--table", "-r", self.dir).splitlines()
        self.assertEqual([line.split()[-7:] for line in lines],
                         [["lattice", "precision", "beta", "kappa", "trajectory", "plaquette",
                           "checksum"],
                          ["2x2x2x4", "64", "5.5", "0.1", "7", "0.71", "stated"],
                          ["2x2x2x4", "64", "-", "-", "-", "-", "stated"]])
        self.assertEqual(len({line.index(word) for line, word in
                              zip(lines, ("lattice", "2x2x2x4", "2x2x2x4"))}), 1)
        self.assertIn(shown, lines[1])
        self.assertIn("2 files: 2 good", self.err)
        text = self.lime("info", "--csv", "--columns", "file,mu", name)
        self.assertEqual(text, 'file,mu\n"%s",\n' % (os.path.join(self.dir, shown)
                                                     .replace('"', '""')))
        text = self.lime("info", "--tsv", "--columns", "mu,file", name)
        self.assertEqual(text, f"mu\tfile\n\t{os.path.join(self.dir, shown)}\n")

    def test_usage(self):
        path = self.put("a.lime", config())
        for args, text in ((("--columns", "file,nothing"), "unknown column 'nothing' (file, status"),
                           (("--sort", "-no"), "unknown column 'no' (file, "),
                           (("--sort", "traj"), "did you mean 'trajectory'?"),
                           (("--columns", ""), "unknown column ''"),
                           (("--csv", "--tsv"), "choose one"), (("--table", "--json"), "choose one")):
            self.fails(["lime", "info", *args, path], text, status=2, out=b"")


if __name__ == "__main__":
    limetest.main()
