"""lime diff: data bit for bit, in other precisions and formats; metadata; what differs and where."""
import itertools
import json
import math
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import limetest
import scidac
from limetest import container, put, read, run
from test_json import check_members

GAUGE = os.path.join(limetest.CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
SINGLE = os.path.join(limetest.CORPUS, "tm_clime_gauge_4448_p32_n1.lime")
PROPAGATORS = [os.path.join(limetest.CORPUS, name) for name in
               ("tm_clime_prop_4444_p32_n1.lime", "tm_lemon_prop_4444_p64_n1.lime")]
DIMS = (2, 3, 4, 5)
NUMBERS = 72 * math.prod(DIMS)


def links(seed=1):
    generator = random.Random(seed)
    return [generator.uniform(-1, 1) for _ in range(NUMBERS)]


def packed(numbers, precision=64):
    return struct.pack(f">{len(numbers)}{'d' if precision == 64 else 'f'}", *numbers)


def gauge(data, dims=DIMS, precision=64, info=b"beta = 6.0, kappa = 0.17\ndate = today\n"):
    return container([("xlf-info", info), ("ildg-format", scidac.ildg_format(dims, precision)),
                      ("ildg-binary-data", data)])


def place(number):
    """Returns the place of a number of a gauge field, as in JSON."""
    site, index = divmod(number, 72)
    coordinates = []
    for extent in DIMS:
        site, at = divmod(site, extent)
        coordinates.append(at)
    return {"number": number, "site": coordinates, "part": ("real", "imaginary")[index % 2],
            "index": {"mu": index // 18, "a": index // 6 % 3, "b": index // 2 % 3}}


class DiffCase(limetest.TestCase):
    def setUp(self):
        self.dir = self.tempdir()

    def file(self, name, data):
        return put(os.path.join(self.dir, name), data)

    def diff(self, a, b, *args, status=0):
        """Returns the text; a and b: paths, or bytes."""
        paths = [self.file(name, data) if isinstance(data, bytes) else data
                 for name, data in (("a", a), ("b", b))]
        done = run(["lime", "diff", *args, *paths])
        self.err = done.stderr.decode()
        self.assertEqual(done.returncode, status, (done.stdout, self.err))
        self.assertEqual(self.err == "", status != 2, self.err)
        return done.stdout.decode()

    def json(self, a, b, *args, status=0):
        found = json.loads(self.diff(a, b, "--json", *args, status=status))
        check_members(found, "diff")
        self.assertEqual(found["status"], ("same", "different", "error")[status])
        self.assertEqual(found["error"] is None, status != 2)
        return found

    def fields(self, *args, **kw):
        return self.json(*args, **kw)["fields"]

    def convert(self, source, name, *args):
        path = os.path.join(self.dir, name)
        self.run_ok(["lime", "convert", "-f", *args, source, path])
        return path


class Tree(DiffCase):
    def setUp(self):
        super().setUp()
        data = packed(links())
        self.sides = [os.path.join(self.dir, name) for name in "ab"]
        for i, side in enumerate(self.sides):
            os.makedirs(os.path.join(side, "sub"))
            for name in "conf.9", "conf.10", "sub/conf.1":
                self.file(f"{'ab'[i]}/{name}", gauge(data))
            self.file(f"{'ab'[i]}/notes", f"text {i}".encode())

    def test_same(self):
        shown = self.diff(*self.sides, "-r")
        self.assertEqual(shown.count("the same data, bit for bit"), 3)
        self.assertLess(shown.index("b/conf.9:"), shown.index("b/conf.10:"))
        self.assertIn("4 files: 3 same, 0 different, 0 only in ", shown)
        self.assertIn(" 0 unreadable, 1 skipped\n", shown)
        self.assertEqual(self.diff(*self.sides, "-r", "-q"), "")

    def test_different(self):
        self.file("b/conf.9", gauge(packed(links(2))))
        os.rename(self.dir + "/b/sub/conf.1", self.dir + "/b/sub/conf.2")
        self.assertEqual(self.diff(*self.sides, "-q", "--recursive", status=1).splitlines(), [
            f"{self.sides[0]}/conf.9 and {self.sides[1]}/conf.9 differ",
            f"only on one side: {self.sides[0]}/sub/conf.1",
            f"only on one side: {self.sides[1]}/sub/conf.2"])
        *lines, last = limetest.json_lines(self.diff(*self.sides, "-r", "--json", status=1))
        for line in lines:
            check_members(line, "diff")
        self.assertEqual([line["status"] for line in lines],
                         ["different", "same", "different", "different"])
        self.assertEqual((lines[2]["other"], lines[3]["file"]), (None, None))
        check_members(last["summary"], "diff summary")
        self.assertEqual(last["summary"], {"files": 5, "same": 1, "different": 3, "error": 0,
                                           "skipped": 1})

    def test_unreadable(self):
        self.file("b/conf.9", b"")
        self.diff(*self.sides, "-r", status=2)
        self.assertIn("b/conf.9: the file is empty", self.err)
        *lines, last = limetest.json_lines(self.diff(*self.sides, "-r", "--json", status=2))
        self.assertEqual([(line["status"], line["error"]) for line in lines[:2]],
                         [("error", "the file is empty"), ("same", None)])

    def test_usage(self):
        for args, text in (((), f"{self.sides[0]}: is a directory; use -r"),
                           (("-r",), f"{GAUGE}: not a directory")):
            self.fails(["lime", "diff", *args, self.sides[0], GAUGE], text, status=2, out=b"")
        self.fails(["lime", "diff", GAUGE, self.sides[0]], "is a directory; use -r", status=2)
        self.diff(GAUGE, GAUGE, "-r")


class Data(DiffCase):
    def test_same_bits(self):
        data = packed(links())
        other = container([[("ildg-format", scidac.ildg_format(DIMS))],
                           [("text", b"more"), ("ildg-binary-data", data)]])
        shown = self.diff(gauge(data), other)
        self.assertIn("record 3, su3gauge 2x3x4x5, 69120 bytes: the same bits", shown)
        self.assertIn("the same data, bit for bit", shown)
        self.assertEqual(self.diff(gauge(data), other, "-q"), "")

    def test_c_lime_and_lemon(self):
        shown = self.diff(*PROPAGATORS)
        self.assertIn("record 6, diracFermion 4x4x4x4, 24576 bytes: equal within 6e-08", shown)
        self.assertRegex(shown, r"at site \d \d \d \d, spin \d, colour \d, (real|imaginary) part: ")
        self.diff(*PROPAGATORS, "--bound", "1e-9", status=1)
        self.assertEqual(self.fields(PROPAGATORS[1], PROPAGATORS[1])[0]["result"], "identical")

    def test_precisions(self):
        """The largest difference, relative to the largest number of its site, is found."""
        numbers = links()
        single = struct.unpack(f">{NUMBERS}f", packed(numbers, 32))
        relative = []
        for i in range(0, NUMBERS, 72):
            scale = max(map(abs, numbers[i:i + 72] + list(single[i:i + 72])))
            relative += [abs(x - y) / scale for x, y in zip(numbers[i:i + 72], single[i:i + 72])]
        at = relative.index(max(relative))
        pair = gauge(packed(numbers)), gauge(packed(numbers, 32), precision=32)
        field, = self.fields(*pair)
        self.assertEqual((field["result"], field["bound"]), ("equal", 6e-8))
        self.assertEqual((field["precision"], field["other_precision"]), (64, 32))
        self.assertEqual(field["beyond"], 0)
        largest = field["largest"]
        self.assertEqual(largest, {**largest, **place(at), "a": numbers[at], "b": single[at]})
        self.assertAlmostEqual(largest["relative"], relative[at], delta=1e-20)
        self.assertIn("equal within 6e-08 (64 and 32 bits)", self.diff(*pair))
        bound = sorted(relative)[NUMBERS // 2]
        beyond, = self.fields(*pair, "--bound", f"{bound * (1 + 1e-9)}", status=1)
        self.assertEqual(beyond["beyond"], sum(x > bound * (1 + 1e-9) for x in relative))

    def test_values_that_both_precisions_hold(self):
        numbers = list(struct.unpack(f">{NUMBERS}f", packed(links(), 32)))
        numbers[:3] = -0.0, float("inf"), float("nan")
        shown = self.diff(gauge(packed(numbers)), gauge(packed(numbers, 32), precision=32))
        self.assertIn("the same values (64 and 32 bits)", shown)

    def test_one_bit(self):
        """The last bit of a number, and the sign of a zero, are found."""
        numbers = links()
        numbers[77] = 0.0
        for precision, number in itertools.product((32, 64), (0, 77, 1000, NUMBERS - 1)):
            size = precision // 8
            data = packed(numbers, precision)
            changed = bytearray(data)
            if number == 77:
                changed[number * size] ^= 0x80
            else:
                changed[number * size + size - 1] ^= 1
            with self.subTest(precision=precision, number=number):
                pair = gauge(data, precision=precision), gauge(changed, precision=precision)
                field, = self.fields(*pair, status=1)
                self.assertEqual((field["unequal"], field["beyond"]), (1, 1))
                self.assertEqual(field["largest"], {**field["largest"], **place(number)})
                self.diff(*pair, "--bound", "2e-7" if number != 77 else "0")
        shown = self.diff(*pair, status=1)
        self.assertIn("1 of 8640 numbers differ\n", shown)
        self.assertIn("at site 1 2 3 4, direction t, a 2, b 2, imaginary part: ", shown)

    def test_nan(self):
        def with_bits(bits, precision):
            data = bytearray(packed(links(), precision))
            data[:precision // 8] = bits.to_bytes(precision // 8, "big")
            return gauge(data, precision=precision)

        for precision, nans in ((64, (0x7FF8 << 48, 0x7FF4 << 48, 0xFFF8 << 48)),
                                (32, (0x7FC0 << 16, 0x7FA0 << 16, 0xFFC0 << 16))):
            for a, b in itertools.product((*nans, 0), repeat=2):
                with self.subTest(precision=precision, a=a, b=b):
                    pair = with_bits(a, precision), with_bits(b, precision)
                    for bound in ([], ["--bound", "1"]):
                        self.diff(*pair, *bound, status=int(a != b))
        field, = self.fields(*pair[:1], with_bits(nans[0], 32), status=1)
        self.assertEqual((field["beyond"], field["largest"]["difference"]), (1, None))
        self.diff(with_bits(0x7FF8 << 48, 64), with_bits(0x7FC0 << 16, 32))
        self.diff(with_bits(0xFFF8 << 48, 64), with_bits(0x7FC0 << 16, 32), status=1)

    def test_large_in_parts(self):
        """Differences in several parts, which several threads read."""
        dims = (16, 16, 16, 8)
        data = bytearray(random.Random(3).randbytes(288 * math.prod(dims)))
        for i in range(0, len(data), 4):
            data[i] = 0x3F
        changed = bytearray(data)
        places = range(5, len(data) // 4, 200001)
        for number in places:
            changed[4 * number + 3] ^= 1
        changed[4 * places[3] + 1] ^= 0x40
        field, = self.fields(gauge(data, dims, 32), gauge(changed, dims, 32), status=1)
        self.assertEqual(field["unequal"], len(places))
        self.assertEqual(field["largest"]["number"], places[3])
        self.assertEqual(self.diff(gauge(data, dims, 32), gauge(changed, dims, 32), "-q", status=1),
                         f"{self.dir}/a and {self.dir}/b differ\n")

    def test_without_description(self):
        """A description of one file is used for both; without any, the bytes are compared."""
        data = packed(links())
        bare = container([("ildg-binary-data", data)])
        changed = data[:-1] + bytes([data[-1] ^ 1])
        self.assertEqual(self.fields(gauge(data), bare)[0]["result"], "identical")
        field, = self.fields(bare, gauge(changed), status=1)
        self.assertEqual(field["largest"]["site"], [1, 2, 3, 4])
        field, = self.fields(bare, container([("ildg-binary-data", changed)]), status=1)
        self.assertEqual(field["largest"], {"byte": len(data) - 1})


class OtherFiles(DiffCase):
    def test_different_fields(self):
        data = packed(links())
        two = container([*((type, body) for type, body in (
            ("ildg-format", scidac.ildg_format(DIMS)), ("ildg-binary-data", data))),
            scidac.private_file(DIMS), scidac.private_record(24), ("scidac-binary-data", bytes(2880))])
        shown = self.diff(gauge(data), two, status=1)
        self.assertIn("su3gauge 2x3x4x5, 69120 bytes: the same bits", shown)
        self.assertIn(f"2880 bytes: only in {self.dir}/b", shown)
        shown = self.diff(gauge(data), gauge(data, (3, 2, 4, 5)), status=1)
        self.assertIn("the lattices differ: su3gauge 3x2x4x5", shown)
        self.assertIn("< ildg-format: lx = 2\n> ildg-format: lx = 3\n", shown)
        shown = self.diff(GAUGE, SINGLE, status=1)
        self.assertIn("the lattices differ: su3gauge 4x4x4x8", shown)
        self.diff(GAUGE, PROPAGATORS[0], status=1)

    def test_fields_of_a_kind(self):
        """A source in one file only does not change which propagators are compared."""
        propagator = read(PROPAGATORS[1])
        source = container([
            [("etmc-source-format", b"<etmcFormat><field>diracFermion</field><precision>64"
              b"</precision><flavours>1</flavours><lx>2</lx><ly>2</ly><lz>2</lz><lt>2</lt>"
              b"</etmcFormat>"), ("scidac-binary-data", bytes(16 * 192))]])
        shown = self.diff(propagator, source + propagator, status=1)
        self.assertIn("records 6 and 8, diracFermion 4x4x4x4, 49152 bytes: the same bits", shown)
        self.assertIn(f"3072 bytes: only in {self.dir}/b", shown)

    def test_damaged(self):
        data = read(GAUGE)
        for name, other in (("cut", data[:100000]), ("cut", data[:1000]), ("empty", b""),
                            ("text", b"no container\n" * 20)):
            with self.subTest(name=name):
                for pair in ((GAUGE, other), (other, GAUGE)):
                    self.assertEqual(self.diff(*pair, status=2), "")
                    self.assertEqual(self.fields(*pair, status=2), [])
        self.diff(GAUGE, self.dir + "/none", status=2)
        self.assertIn("No such file", self.err)

    def test_usage(self):
        for args in ((), (GAUGE,), (GAUGE,) * 3, ("--bound", "-1", GAUGE, GAUGE),
                     ("--bound", "x", GAUGE, GAUGE)):
            done = run(["lime", "diff", *args])
            self.assertEqual((done.returncode, done.stdout), (2, b""))

    def test_binary_records(self):
        """Records that are not text count as data, also long ones."""
        for data in (bytes(range(100)), b"text" * 300000):
            a = container([("other", data)])
            self.assertIn("the same bits", self.diff(a, a))
            shown = self.diff(a, container([("other", data[:70] + b"-" + data[71:])]), status=1)
            self.assertIn("1 of", shown)
            self.assertIn("first at byte 70\n", shown)
            self.diff(a, container([("other", data[:-1])]), status=1)
            self.diff(a, container([("third", data)]), status=1)
            self.diff(a, container([("other", data[:-1])]), "--metadata")
        zeros = container([("other", bytes(8))])
        self.assertIn("the same bits", self.diff(zeros, zeros))
        self.assertIn("the lengths differ",
                      self.diff(zeros, container([("other", bytes(16))]), status=1))


class Metadata(DiffCase):
    DATA = packed(links())

    def test_values(self):
        other = gauge(self.DATA, info=b"beta = 6.0, kappa = 0.18\ndate = today\nnew = 1\n\0")
        shown = self.diff(gauge(self.DATA), other)
        self.assertEqual(shown.splitlines()[1:], [
            "< xlf-info: kappa = 0.17", "> xlf-info: kappa = 0.18", "> xlf-info: new = 1",
            "the same data, bit for bit; different metadata"])
        self.assertNotIn("kappa", self.diff(gauge(self.DATA), other, "--data"))
        self.assertNotIn("su3gauge", self.diff(gauge(self.DATA), other, "--metadata", status=1))
        self.diff(gauge(self.DATA), other, "--data", "--metadata", status=1)
        found = self.json(gauge(self.DATA), other)["metadata"]
        self.assertEqual(found[0], {"type": "xlf-info", "field": "kappa", "value": "0.17",
                                    "other_value": "0.18"})
        self.assertEqual(found[1]["value"], None)

    def test_white_space_at_the_ends(self):
        other = gauge(self.DATA, info=b" beta = 6.0, kappa = 0.17\ndate = today\0\0")
        self.diff(gauge(self.DATA), other, "-q", "--metadata")

    def test_same_values(self):
        a, b = (container([("a-xml", xml)]) for xml in
                (b"<a><b>1</b><c>2</c></a>", b"<?xml version='1.0'?>\n<a>\n <b>1</b><c>2</c></a>"))
        self.assertIn("a-xml: the texts differ, but not their values", self.diff(a, b, status=1))
        self.json(a, b, status=1)

    def test_no_data(self):
        """If there are no data, metadata count; --data then has nothing to compare."""
        a, b = (container([("ildg-data-lfn", lfn)]) for lfn in (b"lfn://a", b"lfn://b"))
        shown = self.diff(a, b, status=1)
        self.assertEqual(shown, "< ildg-data-lfn: lfn://a\n> ildg-data-lfn: lfn://b\n"
                         "no data; different metadata\n")
        self.assertIn("no data; the same metadata", self.diff(a, a))
        self.diff(a, a, "--data", status=2)

    def test_hostile_text(self):
        a, b = (container([("x\n\033y", text)]) for text in
                (b"a = \xff\x9b\n" * 3, b"<a>" + b",=," * 1000 + b" = \n"))
        self.assertNotIn("\033", self.diff(a, b, status=1))
        self.json(a, b, status=1)


class Formats(DiffCase):
    def test_conversions(self):
        for source, single in ((GAUGE, False), (SINGLE, True)):
            names = ["nersc", "milc", "lime"] if single else ["nersc", "openqcd", "lime"]
            for name in names:
                with self.subTest(source=source, name=name):
                    field, = self.fields(source, self.convert(source, "c." + name))
                    self.assertEqual(field["result"], "identical")

    def test_other_precision(self):
        for name, *args in (("milc",), ("nersc", "--precision", "32"), ("lime", "--precision", "32")):
            field, = self.fields(self.convert(GAUGE, "c." + name, *args), GAUGE)
            self.assertEqual((field["result"], field["bound"]), ("equal", 6e-8))

    def test_two_rows(self):
        """The third row that is computed agrees within eight times the precision."""
        for source, bound, precision in ((GAUGE, 9.6e-16, "64"), (SINGLE, 4.8e-7, "32"),
                                         (GAUGE, 4.8e-7, "32")):
            two = self.convert(source, "c.nersc", "--rows", "2", "--precision", precision)
            field, = self.fields(source, two)
            self.assertEqual(field["result"], "equal")
            self.assertAlmostEqual(field["bound"], bound, delta=bound / 100)
            self.assertEqual(self.fields(two, self.convert(two, "c.lime"))[0]["result"],
                             "identical")

    def test_changed_number(self):
        path = self.convert(GAUGE, "c.nersc")
        data = bytearray(read(path))
        data[-1] ^= 1
        put(path, data)
        field, = self.fields(path, GAUGE, status=1)
        self.assertEqual(field["largest"]["number"], 4 ** 4 * 72 - 1)


if __name__ == "__main__":
    limetest.main()
