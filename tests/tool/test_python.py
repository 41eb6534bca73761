"""limefs for Python: numbers as an independent reader finds them, in containers and mounts;
errors; many containers as one array that is read on access; the installed package."""

import contextlib
import json
import os
import random
import re
import shutil
import struct
import sys
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import limetest
import scidac
from limetest import container, run

PACKAGE = os.path.join(limetest.REPO, "src", "lime", "python")
sys.dont_write_bytecode = True
sys.path.insert(0, PACKAGE)
os.environ["LIME"] = limetest.program("lime")
if numpython.has("numpy"):
    import numpy

    import gaugelib
    import limefs
    from limefs import _stack


def needs_numpy(test):
    return unittest.skipUnless(numpython.has("numpy"), "needs numpy")(test)


# ---- the independent reader ----


def records_of(path):
    """Returns (type, data offset, length) of each record, and the file's bytes."""
    data = limetest.read(path)
    return [(r.name, r.at, len(r.data)) for r in limetest.records(data, strict=False)], data


def number(xml, element):
    return int(re.search(rf"<{element}>\s*(\d+)\s*</{element}>", xml)[1])


def fields_of(path):
    """Returns (ordinal, shape, letter of struct, numbers in file order) of each known field."""
    records, data = records_of(path)
    out, dims, site, box = [], None, None, None
    for ordinal, (kind, offset, length) in enumerate(records, 1):
        text = data[offset:offset + length].decode("latin-1")
        if kind == "scidac-private-file-xml":
            x = [int(n) for n in re.search(r"<dims>(.*?)</dims>", text)[1].split()]
            dims = x[::-1]
        elif kind in ("ildg-format", "etmc-propagator-format"):
            dims = [number(text, "l" + c) for c in "tzyx"]
            size = number(text, "precision") // 8
            site = (4, 3, 3) if kind == "ildg-format" else (4, 3)
            letter, pair, box = "fd"[size == 8], True, None
        elif kind == "scidac-private-record-xml":
            real = "Real" in text
            size, count = number(text, "typesize"), number(text, "datacount")
            site = (size * count // 4,) if real else (count, 3, 3)
            letter, pair = "f", not real
            box = None
            if "<recordtype>2<" in text:
                corner = {c: [int(n) for n in re.search(rf"<hyper{c}>(.*?)<", text)[1].split()]
                          for c in ("lower", "upper")}
                box = [u - l + 1 for l, u in zip(corner["lower"], corner["upper"])][::-1]
            elif "<recordtype>1<" in text:
                box = []
        elif kind.endswith("-binary-data") and site:
            lattice = dims if box is None else box
            n = length // (4 if letter == "f" else 8)
            out.append((ordinal, (*lattice, *site), letter, pair,
                        struct.unpack_from(f">{n}{letter}", data, offset)))
    return out


def random_key(draw, shape):
    """Returns subscripts of all kinds for some axes, with arrays that usually broadcast."""
    key, axis, length = [], 0, draw.randint(1, 3)

    def array(extent):
        form = draw.choice([(length,)] * 4 + [(1,), (2, 1), (2, length), (), (0,)])
        return numpy.array([draw.randrange(-extent, extent) for _ in range(9)])[
            :int(numpy.prod(form, dtype=int))].reshape(form)

    def mask(extents):
        return numpy.array([draw.random() < 0.5 for _ in range(int(numpy.prod(extents)))],
                           bool).reshape(extents)

    few = draw.random() < 0.7
    while axis < len(shape) and draw.random() < 0.85:
        kind = draw.choice("iissaaaaaamMn.") if not few else draw.choice("isssaan.")
        if kind in "n." and not key or kind == "." and any(one is ... for one in key):
            continue
        if kind == "n":
            key.append(None)
        elif kind == ".":
            key.append(...)
            axis = draw.randint(axis, len(shape))
            continue
        taken = shape[axis:axis + {"n": 0, "M": 2}.get(kind, 1)]
        if kind == "s":
            key.append(slice(*draw.choice([(None,), (1, None), (None, None, -1), (0, 1), (3, 3)])))
        elif kind in "mM":
            key.append(mask(taken))
        elif kind != "n":
            key.append(array(*taken) if kind == "a" else draw.randrange(-taken[0], taken[0]))
        axis += len(taken)
    return tuple(key)


def corpus():
    return sorted({row["path"] for row in limetest.manifest()})


GAUGE = os.path.join(limetest.CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
QIO = os.path.join(limetest.CORPUS, "qio_test1_scidac_n1.lime")


class Case(limetest.TestCase):
    def assertRaisesWith(self, messages, call, *args, error=None, **kw):
        with self.assertRaises(error or limefs.Error) as caught:
            call(*args, **kw)
        for word in [messages] if isinstance(messages, str) else messages:
            self.assertIn(word, str(caught.exception))

    def check_numbers(self, path, opened):
        """Compares the fields of a container with the independent reader; returns their number."""
        expected = fields_of(path)
        for ordinal, shape, letter, pair, numbers in expected:
            array = opened.array(ordinal)
            self.assertEqual(array.shape, shape, path)
            self.assertEqual(array.dtype.str, ">" + "cf"[not pair] +
                             str((8 if letter == "d" else 4) * (1 + pair)))
            flat = numpy.asarray(array).reshape(-1)
            reals = flat.view(f">f{8 if letter == 'd' else 4}")
            self.assertEqual(tuple(reals.tolist()), numbers, path)
        return len(expected)


@needs_numpy
class Containers(Case):
    def test_records(self):
        for path in corpus():
            records, data = records_of(path)
            opened = limefs.open(path)
            self.assertEqual([(r.type, r.offset, r.bytes) for r in opened], records)
            self.assertEqual([r.ordinal for r in opened], list(range(1, len(opened) + 1)))
            for record in opened:
                self.assertEqual(record.read(),
                                 data[record.offset:record.offset + record.bytes])
        rows = [row for row in limetest.manifest() if row["path"] == QIO]
        for row, record in zip(rows, limefs.open(QIO).records):
            self.assertEqual((row["message"], row["record"], bool(row["MB"]), bool(row["ME"])),
                             (record.message, record.record, record.mb, record.me))

    def test_numbers(self):
        fields = sum(self.check_numbers(path, limefs.open(path)) for path in corpus())
        self.assertEqual(fields, 9)

    @limetest.needs_fuse
    def test_numbers_of_mounts(self):
        fields = 0
        with limetest.Mount(limetest.CORPUS) as mount:
            for path in corpus():
                opened = limefs.open(mount.join(os.path.basename(path)))
                self.assertTrue(opened.mounted)
                fields += self.check_numbers(path, opened)
        self.assertEqual(fields, 9)
        with limetest.Mount(GAUGE, opts="rw") as mount:
            self.assertEqual(self.check_numbers(GAUGE, limefs.open(mount.path)), 1)

    def test_metadata(self):
        opened = limefs.open(GAUGE)
        field, = opened.fields
        self.assertEqual((field.name, field.kind, field.lattice, field.precision,
                          field.site_bytes, field.ordinal),
                         ("su3gauge", "gauge", (4, 4, 4, 4), 64, 576, 3))
        record = opened["ildg-binary-data"]
        self.assertIs(record.field, opened.fields[0])
        self.assertIsNone(opened["xlf-info"].field)
        self.assertEqual(field.checksum, scidac.checksum(record.read(), 576))
        self.assertEqual(opened["003-ildg-binary-data"], opened[3])
        self.assertIn("plaquette = ", opened.text("xlf-info"))
        self.assertTrue(0 < float(opened.facts["xlf-info"]["plaquette"]) < 1)
        self.assertIn("ildg-format", opened)
        self.assertNotIn("nonsense", opened)
        self.assertIsNone(opened.fault)
        self.assertEqual((opened.attributes, record.attributes), ({}, {}))
        self.assertIn("su3gauge (4, 4, 4, 4, 4, 3, 3)", repr(opened))
        self.assertEqual(limefs.open(os.path.join(limetest.CORPUS, "qio_nersc_ildg.lime")).lfn,
                         "lfn://test/lfn")

    @limetest.needs_fuse
    def test_attributes(self):
        with limetest.Mount(GAUGE) as mount:
            opened = limefs.open(mount.path)
            self.assertEqual(opened.attributes, {"records": "4", "messages": "2"})
            attributes = opened["ildg-binary-data"].attributes
            self.assertEqual((attributes["type"], attributes["offset"], attributes["checksum"]),
                             ("ildg-binary-data", str(limefs.open(GAUGE)[3].offset), "unverified"))
            self.assertEqual(limefs.attributes(mount.join("xlf-info"))["mb"], "1")

    @limetest.needs_fuse
    def test_exports(self):
        with limetest.Mount(GAUGE) as mount:
            if not os.path.exists(mount.join("ildg-binary-data.le.npy")):
                self.skipTest("this limefs has no faces")
            opened = limefs.open(mount.path)
            stored = opened.array()
            little = opened.array(face="le")
            self.assertEqual(little.dtype.str, "<c16")
            self.assertTrue(numpy.array_equal(little, stored))
            self.assertTrue(numpy.array_equal(opened.array(face="f4.le"),
                                              stored.astype("<c8")))
            self.assertRaisesWith("no such file", opened.array, face="nonsense",
                                  error=limefs.NotFound)
            del stored, little  # a mapping keeps the mount busy

    @limetest.needs_fuse
    def test_direct_io(self):
        """A large record in a writable direct_io mount can't be mapped; the error tells why."""
        path = os.path.join(limetest.tempdir(), "conf")
        self.run_ok(["make-config", "--lattice", "8,8,8,16", path])
        with limetest.Mount(path, opts="rw,direct_io,forward_from=1M") as mount:
            opened = limefs.open(mount.path)
            self.assertRaisesWith("-o direct_io; mount it without", opened.array)
            data = opened["ildg-binary-data"].read()
            self.assertEqual(len(data), 8 * 8 * 8 * 16 * 576)
        limetest.need_linux(self, 6, 6)
        with limetest.Mount(path, opts="direct_io,forward_from=1M") as mount:
            array = limefs.open(mount.path).array()
            self.assertEqual(array.tobytes(), data)
            del array  # a mapping keeps the mount busy

    def test_arrays(self):
        """arrays() maps each field of a container on its own."""
        columns = [(("scidac-binary-data"), struct.pack(">8d", *range(8 * i, 8 * i + 8)) * 6)
                   for i in range(3)]
        form = ("etmc-propagator-format", b"<etmcFormat><field>diracFermion</field><precision>64"
                b"</precision><flavours>1</flavours><lx>2</lx><ly>1</ly><lz>1</lz><lt>1</lt>"
                b"</etmcFormat>")
        path = self.write("prop", container([form, *columns]))
        stack = limefs.open(path).arrays("scidac-binary-data")
        self.assertEqual(stack.shape, (3, 1, 1, 1, 2, 4, 3))
        self.assertEqual(stack[2, 0, 0, 0, 0, 0, 0], 16 + 17j)
        self.assertRaisesWith(["3 fields", "(2, 3, 4)"], limefs.open(path).array,
                              error=limefs.NotFound)

    def test_read_only(self):
        array = limefs.open(GAUGE).array()
        self.assertFalse(array.flags.writeable)
        with self.assertRaises(ValueError):
            array[0] = 0


@needs_numpy
class Errors(Case):
    def test_messages_of_lime(self):
        self.assertRaisesWith("/nowhere: open: No such file", limefs.open, "/nowhere")
        self.assertRaisesWith("not a LIME container", limefs.open,
                              self.write("junk", b"junk" * 99))
        self.assertRaisesWith("Is a directory; use limefs.tree()", limefs.open, limetest.CORPUS)
        self.assertRaisesWith("null", limefs.open, "a\0b")

    def test_names_that_look_like_options(self):
        here = limetest.tempdir()
        shutil.copy(GAUGE, os.path.join(here, "--help"))
        before = os.getcwd()
        os.chdir(here)
        try:
            self.assertEqual(len(limefs.open("--help")), 4)
            self.assertEqual(len(limefs.tree(".")), 1)
        finally:
            os.chdir(before)

    def test_names_that_are_not_utf8(self):
        here = os.fsencode(limetest.tempdir())
        path = os.path.join(here, b"conf\xff.1")
        shutil.copy(os.fsencode(GAUGE), path)
        self.assertEqual(limefs.open(os.fsdecode(path)).array().shape[:4], (4, 4, 4, 4))
        self.assertEqual(len(limefs.tree(os.fsdecode(here))), 1)

    def test_records(self):
        opened = limefs.open(QIO)
        self.assertRaisesWith("no record nonsense", opened.__getitem__, "nonsense",
                              error=limefs.NotFound)
        self.assertRaisesWith("no record 19", opened.__getitem__, 19, error=LookupError)
        self.assertRaisesWith(["4 records of type scidac-checksum", "(6, 10, 14, 18)"],
                              opened.text, "scidac-checksum")
        self.assertRaisesWith("4 fields", opened.array)
        self.assertRaisesWith("not lattice data", opened.array, 2)
        self.assertRaisesWith("only available in a mount", opened.array, 5, face="le")
        plain = limefs.open(os.path.join(limetest.CORPUS, "lemon_canonical_n1.lime"))
        self.assertRaisesWith("no lattice data", plain.array, error=limefs.NotFound)
        self.assertRaisesWith("no lattice data", plain.arrays, error=limefs.NotFound)

    def test_other_formats(self):
        """The offsets in the container that limefs would show are not those in the file."""
        path = self.write("conf.nersc", gaugelib.write_nersc(
            gaugelib.random_links((2, 2, 2, 2)), more=["X = 1"] * 1000))
        for read in (limefs.open, lambda path: limefs.stack([path])):
            self.assertRaisesWith("conf.nersc: a nersc file: mount it", read, path)
        self.assertRaisesWith("no container", limefs.tree, path, error=limefs.NotFound)

    def test_length_is_wrong(self):
        path = self.write("conf", container([("ildg-format", scidac.ildg_format((2, 2, 2, 2))),
                                             ("ildg-binary-data", bytes(576 * 16 - 8))]))
        self.assertRaisesWith(["record 2", "lime check"], limefs.open(path).array)
        self.assertRaisesWith(["record 2", "lime check"], limefs.tree, path)

    def test_damaged(self):
        path = self.write("conf", limetest.read(GAUGE)[:100000])
        opened = limefs.open(path)
        self.assertIn("record 3", opened.fault)
        self.assertEqual([r.type for r in opened], ["xlf-info", "ildg-format"])
        for read in opened.array, opened.arrays:
            self.assertRaisesWith(["no lattice data; offset", "record 3: the file ends"], read)
        self.assertRaisesWith(["record 3", "lime repair"], limefs.tree, os.path.dirname(path))

    def test_changed(self):
        """limefs reports a container that was replaced or truncated since it was opened."""
        path = self.write("conf", b"")
        for change in (lambda: os.truncate(path, 70000), lambda: os.utime(path, ns=(1, 1)),
                       lambda: os.replace(shutil.copy(GAUGE, path + "2"), path),
                       lambda: os.unlink(path)):
            shutil.copyfile(GAUGE, path)
            opened, stack = limefs.open(path), limefs.tree(path)
            self.assertEqual(opened.array().shape, stack[0].shape)
            change()
            message = "changed" if os.path.exists(path) else "No such file"
            self.assertRaisesWith(message, opened.array)
            self.assertRaisesWith(message, opened.text, "xlf-info")
            self.assertRaisesWith(message, stack.__getitem__, 0)

    @limetest.needs_fuse
    def test_changed_in_a_mount(self):
        """limefs reports a record that changed in a mount, even if its length is the same."""
        directory = limetest.tempdir()
        path = os.path.join(directory, "conf.1")

        def put(extents, name):
            with open(name, "wb") as file:
                file.write(container([("ildg-format", scidac.ildg_format(extents)),
                                      ("ildg-binary-data", bytes(576 * 16)), ("log", b"text")]))

        def rewrite():
            put((4, 2, 2, 1), path)

        def replace():
            put((4, 2, 2, 1), path + ".new")
            os.replace(path + ".new", path)

        for opts in ("", "attr_timeout=0,entry_timeout=0", "rw"):
            for change, message in ((rewrite, "changed since"), (replace, "changed since"),
                                    (lambda: os.truncate(path, 1000), "No such file")):
                put((2, 2, 2, 2), path)
                with limetest.Mount(directory, opts=opts) as mount:
                    opened, stack = limefs.open(mount.join("conf.1")), limefs.tree(mount.path)
                    self.assertEqual(opened.array().shape, stack[0].shape)
                    self.assertEqual(opened.text("log"), "text")
                    change()
                    for call in (opened.array, lambda: opened.text("log"), lambda: stack[0],
                                 lambda: stack[:, 0], opened.arrays().__array__):
                        self.assertRaisesWith([mount.path, message], call)

    def test_program(self):
        """limefs searches lime on the path and in $LIME, and reports an unusable program."""
        here = limetest.tempdir()
        shutil.copytree(os.path.join(PACKAGE, "limefs"), os.path.join(here, "lib", "limefs"))
        code = ("import sys\nsys.path.insert(0, sys.argv[1])\nimport limefs\n"
                "try:\n print(limefs.find_lime())\n limefs.open(sys.argv[2])\n"
                "except limefs.Error as error:\n print(error)")

        def found(path=os.defpath, package=os.path.join(here, "lib"), **more):
            done = run([sys.executable, "-c", code, package, GAUGE],
                       env={"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more})
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            return done.stdout.decode().strip()

        empty = limetest.tempdir()
        self.assertIn("lime: not found: build it", found(path=empty))
        self.assertEqual(found(path=limetest.BIN), os.path.join(limetest.BIN, "lime"))
        self.assertIn("$LIME: /nowhere: not a program", found(LIME="/nowhere"))
        self.assertIn("no JSON", found(LIME="/bin/true"))
        old = os.path.join(here, "old")
        with open(old, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nkill -9 $$\n")
        os.chmod(old, 0o755)
        self.assertIn("ended by signal 9", found(LIME=old))
        if limetest.B == os.path.join(limetest.REPO, "build"):
            self.assertEqual(found(path=empty, package=PACKAGE),
                             os.path.join(limetest.BIN, "lime"))


@needs_numpy
class Stacks(Case):
    """Many containers; the test counts the mappings."""

    def setUp(self):
        super().setUp()
        self.directory = limetest.tempdir()
        self.data = []
        os.mkdir(os.path.join(self.directory, "b"))
        self.names = ["conf.9", "conf.10", "conf.100", "b/conf.1"]
        for seed, name in enumerate(self.names):
            reals = [seed + i / 1024 for i in range(72 * 16)]
            data = struct.pack(f">{len(reals)}d", *reals)
            self.data.append(numpy.array(reals).view("c16").reshape(2, 2, 2, 2, 4, 3, 3))
            with open(os.path.join(self.directory, name), "wb") as file:
                file.write(container([
                    ("ildg-format", scidac.ildg_format((2, 2, 2, 2))),
                    ("ildg-binary-data", data), ("log", b"text")]))
        shutil.copy(os.path.join(limetest.CORPUS, "tm_lemon_prop_4444_p64_n1.lime"), self.directory)
        shutil.copy(os.path.join(self.directory, "conf.9"),
                    os.path.join(self.directory, ".conf.9.lime-tmp-0123abcd-17-5a-0"))
        for name, data in (("README", b"not LIME"), ("other", b"PK\3\4")):
            limetest.put(os.path.join(self.directory, name), data)
        os.mkfifo(os.path.join(self.directory, "fifo"))
        # In sorted order: the directory b first.
        self.all = numpy.array([self.data[i] for i in (3, 0, 1, 2)])
        self.mapped = []
        original = _stack.map_array

        def counted(place, shape, dtype):
            self.mapped.append(os.path.basename(place.file))
            return original(place, shape, dtype)

        _stack.map_array = counted
        self.addCleanup(setattr, _stack, "map_array", original)

    def tree(self, **kw):
        return limefs.tree(self.directory, "ildg-binary-data", **kw)

    def test_nothing_is_mapped_at_first(self):
        stack = self.tree()
        self.assertEqual(stack.shape, (4, 2, 2, 2, 2, 4, 3, 3))
        self.assertEqual((stack.dtype.str, stack.ndim, len(stack), stack.size, stack.nbytes),
                         (">c16", 8, 4, 4 * 576, 4 * 576 * 16))
        self.assertEqual([os.path.relpath(path, self.directory) for path in stack.paths],
                         ["b/conf.1", "conf.9", "conf.10", "conf.100"])
        self.assertEqual(stack[1:3].shape[0], 2)
        self.assertEqual(stack[[0, -1]].paths, [stack.paths[0], stack.paths[3]])
        self.assertEqual(stack[numpy.array([True, False, False, True])].shape[0], 2)
        self.assertEqual(stack[...].shape, stack.shape)
        self.assertEqual(self.mapped, [])

    def test_only_requested_data_are_mapped(self):
        stack = self.tree()
        self.assertTrue(numpy.array_equal(stack[2], self.all[2]))
        self.assertEqual(self.mapped, ["conf.10"])
        self.assertIsInstance(stack[2], numpy.memmap)
        self.mapped.clear()
        self.assertTrue(numpy.array_equal(stack[1:3, 0, ..., 0], self.all[1:3, 0, ..., 0]))
        self.assertEqual(self.mapped, ["conf.9", "conf.10"])
        self.mapped.clear()
        for i, one in enumerate(stack):
            self.assertTrue(numpy.array_equal(one, self.all[i]))
            self.assertEqual(len(self.mapped), i + 1)
        self.mapped.clear()
        self.assertEqual(stack[4:, 0].shape, (0, 2, 2, 2, 4, 3, 3))
        self.assertEqual(self.mapped, [])

    def test_as_numpy_has_it(self):
        stack, whole = self.tree(), self.all
        keys = [0, -1, slice(1, 3), slice(None, None, -1), ..., (), (..., 0), (slice(None), 1),
                (0, 1, 1, 1, 1, 3, 2, 2), (slice(None), 0, 0, 0, 0, 0, 0, 0), (2, ...),
                (slice(0, 2), ..., slice(1), 0), ([3, 1], slice(None), 0),
                (1, None, 0), (slice(1, 3), None, 0), (slice(None), [1, 0]),
                numpy.array([False, True, True, False]), numpy.int64(2), []]
        for key in keys:
            got, expected = stack[key], whole[key]
            self.assertEqual(numpy.shape(got), expected.shape, key)
            self.assertTrue(numpy.array_equal(numpy.asarray(got), expected), key)
        self.assertTrue(numpy.array_equal(numpy.asarray(stack), whole))
        self.assertEqual(numpy.asarray(stack).dtype.str, ">c16")
        self.assertEqual(numpy.asarray(stack, dtype="<c8").dtype.str, "<c8")
        self.assertAlmostEqual(numpy.mean(stack), whole.mean())

    def check_key(self, key):
        """The stack and the array in memory give the same or both refuse; False if they refuse."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                expected = self.all[key]
        except IndexError:
            with self.assertRaises(IndexError, msg=key):
                self.stack[key]
            return False
        if expected.size == 0:  # numpy has not checked all numbers
            with contextlib.suppress(IndexError):
                self.assertEqual(self.stack[key].shape, expected.shape, key)
            return True
        got = numpy.asarray(self.stack[key])
        self.assertEqual((got.shape, got.dtype.str), (expected.shape, ">c16"), key)
        self.assertTrue(numpy.array_equal(got, expected), key)
        return True

    def test_arrays_of_subscripts(self):
        """Two arrays select pairs; if an axis is between them, their axes come first."""
        self.stack = self.tree()
        some, whole = numpy.array([True, False, True, False]), slice(None)
        for key in (([0, 1], [1, 0]), ([0, 3, 0], whole, [1, 0, 1]), (some, [0, 1]),
                    (numpy.arange(4), 1), (whole, whole, [0, 1], whole, [0, 1]),
                    (whole, [0, 1], whole, 0), (whole, [0, 1], None, [0, 1]),
                    (1, whole, [0, 1]), (-1, [0, 1]), ([2, 3], 1, whole, 0), ([1, 2], None, [0, 1]),
                    ([0, 1], [0, 1, 0]), (whole, [0, 1], [0, 1, 0]), ([[0, 1], [2, 3]], [0, 1]),
                    numpy.ix_([3, 1], [0, 1], [1]), (self.all.real > 2), (some, some),
                    numpy.array([[True, False]] * 4), (whole, numpy.eye(2, dtype=bool)),
                    [[0]], ([], []), ([], whole, 0), (slice(4, None), [0, 1], whole, [0, 1]),
                    ([0, 1], [0, 2]), ([0, 4], 0), ([0], numpy.array([0.0])),
                    (whole, numpy.array([1, -1], numpy.int8)),
                    (..., [0, 1], 0, 1, 1, 2, 1, [0, 2]),
                    (whole, [0, 1], ..., [0, 1], 0, 0, 0, 0, 0)):
            self.check_key(key)

    def test_any_subscripts(self):
        self.stack = self.tree()
        draw = random.Random(1)
        good = sum(self.check_key(random_key(draw, self.all.shape)) for _ in range(3000))
        self.assertGreater(good, 1500)

    def test_arrays_map_selected_containers(self):
        stack = self.tree()
        self.assertEqual(stack[[3, 1, 3], [0, 1, 0]].shape[0], 3)
        self.assertEqual(self.mapped, ["conf.9", "conf.100"])
        self.mapped.clear()
        self.assertEqual(stack[numpy.array([False, True, False, True]), 0].shape[0], 2)
        self.assertEqual(self.mapped, ["conf.9", "conf.100"])

    def test_wrong_subscripts(self):
        stack = self.tree()
        for key in (4, -5, [4], (0,) * 9, (slice(None),) * 9, (0, 2), (slice(None), 2), (None,),
                    (..., ...), "x", 1.5, True, [True, False]):
            with self.assertRaises(IndexError, msg=key):
                stack[key]

    def test_shapes_differ(self):
        with open(os.path.join(self.directory, "conf.11"), "wb") as file:
            file.write(container([("ildg-format", scidac.ildg_format((2, 2, 2, 4))),
                                  ("ildg-binary-data", bytes(576 * 32))]))
        self.assertRaisesWith(["conf.11, record 2", "(4, 2, 2, 2, 4, 3, 3)", "conf.1, record 2",
                               "(2, 2, 2, 2, 4, 3, 3)"], self.tree)
        self.assertEqual(len(self.tree(pattern="conf.1*0")), 2)

    def test_order(self):
        """limefs.tree sorts a tree as lime's commands do."""
        directory = limetest.tempdir()
        names = [*self.names, "conf.2", "conf.02", "conf.002", "conf.2a", "conf.2.lime", "conf",
                 "conf.", "conf.x", "conf.010", "0", "00", "000", "1", "01", "-1", ":1", "9a10",
                 "9a9", "9a09", "a9b", "a10b", "a", "A", "Z", "_", "~", " ", "9" * 255,
                 "8" * 255, "0" * 200 + "7", "18446744073709551616", "18446744073709551615",
                 "4294967296", "\u00e9.2", "\u00e9.10", "\u0663", "\u0661", "\u00b2",
                 "\U0001d7ce", "a\nb", "b.1/conf.1", "b.1/conf.01", "b10/c", "b9/c", "b09/c",
                 "b09.1", "conf.9 (1)", "v1.10.2", "v1.9.10", "v1.9.9", "v1.9"]
        for name in names:
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.link(os.path.join(self.directory, self.names[0]), path)
        paths = limefs.tree(directory).paths
        self.assertEqual(len(paths), len(names))
        at = [os.path.relpath(path, directory) for path in paths]
        for before, after in (("conf.2", "conf.9"), ("conf.9", "conf.10"), ("0", "1"),
                              ("conf.002", "conf.02"), ("conf.02", "conf.2"), ("b09/c", "b9/c"),
                              ("b9/c", "b10/c"), ("b/conf.1", "b.1/conf.1"), ("v1.9.10", "v1.10.2"),
                              ("18446744073709551615", "18446744073709551616"), ("9a9", "9a10"),
                              ("-1", "0"), ("9" * 255, ":1"), ("\u00e9.2", "\u00e9.10")):
            self.assertLess(at.index(before), at.index(after), (before, after))
        refs = json.loads(self.run_ok(["lime", "refs", "-r", directory]))["refs"]
        self.assertEqual([refs[f"field/{i}.0.0.0.0.0.0.0"][0] for i in range(len(names))], paths)
        shown = limetest.json_lines(
            self.run_ok(["lime", "info", "--json", "-r", directory]))[:-1]
        self.assertEqual([one["file"] for one in shown], paths)

    def test_choice(self):
        self.assertRaisesWith("no container in it has lattice data of type nonsense",
                              limefs.tree, self.directory, "nonsense", error=limefs.NotFound)
        self.assertRaisesWith("no such file or directory", limefs.tree, "/nowhere")
        self.assertRaisesWith("shape", limefs.tree, self.directory)  # the propagator matches too
        chosen = [os.path.join(self.directory, name) for name in self.names[::-1]]
        self.assertEqual(limefs.stack(chosen).paths, chosen)
        self.assertRaisesWith("README: not a LIME container", limefs.stack,
                              [*chosen, os.path.join(self.directory, "README")])
        self.assertRaisesWith("not a file", limefs.stack, [os.path.join(self.directory, "fifo")])
        self.assertRaisesWith("nothing to stack", limefs.stack, [])
        self.assertEqual(limefs.tree(chosen[0]).paths, chosen[:1])

    def test_damaged(self):
        """limefs.tree reports a damaged or unfinished container."""
        path = os.path.join(self.directory, "conf.12")
        good = limetest.read(os.path.join(self.directory, "conf.9"))
        for data, message in ((b"", "conf.12: the file is empty"),
                              (bytes(500), "conf.12: the file begins with zeros"),
                              (b"X" + good[1:],
                               "conf.12: the first record header is damaged")):
            limetest.put(path, data)
            self.assertRaisesWith(message, self.tree)
            self.assertRaisesWith(message, limefs.stack, [path])

    def test_skip_bad(self):
        """Damaged and unreadable files, and one of another shape, are left out with a warning."""
        good = self.tree().paths
        os.symlink("/nowhere", os.path.join(self.directory, "conf.12"))
        limetest.put(os.path.join(self.directory, "conf.13"), b"")
        limetest.put(os.path.join(self.directory, "conf.14"), container(
            [("ildg-format", scidac.ildg_format((2, 2, 2, 4))),
             ("ildg-binary-data", bytes(576 * 32))]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stack = self.tree(skip_bad=True)
        self.assertEqual(stack.paths, good)
        texts = [str(one.message) for one in caught]
        self.assertEqual(len(texts), 3, texts)
        for name, text in zip(("conf.12: open: ", "conf.13: the file is empty", "conf.14, record"),
                              texts):
            self.assertIn(name, text)
            self.assertTrue(text.startswith("left out: "), text)

    def test_unreadable_file(self):
        os.symlink("/nowhere", os.path.join(self.directory, "conf.12"))
        self.assertRaisesWith("conf.12: open: No such file", self.tree)

    @limetest.needs_fuse
    def test_mount(self):
        with limetest.Mount(self.directory) as mount:
            stack = limefs.tree(mount.path, "ildg-binary-data")
            self.assertEqual([os.path.relpath(path, mount.path) for path in stack.paths],
                             ["b/conf.1", "conf.9", "conf.10", "conf.100"])
            self.assertTrue(numpy.array_equal(stack[1], self.all[1]))
            self.assertEqual(self.mapped, ["002-ildg-binary-data"])
            self.assertTrue(numpy.array_equal(numpy.asarray(stack), self.all))
            one = limefs.tree(mount.join("conf.9"))
            self.assertEqual(one.shape[0], 1)
            del stack, one

    def test_many(self):
        """More containers than one call of lime takes, and more than may be open at once."""
        directory = limetest.tempdir()
        for i in range(450):
            shutil.copy(os.path.join(self.directory, "conf.9"),
                        os.path.join(directory, f"conf.{i}"))
        stack = limefs.tree(directory)
        self.assertEqual([os.path.basename(path) for path in stack.paths],
                         [f"conf.{i}" for i in range(450)])
        self.assertTrue((stack[:, 0, 0, 0, 0, 0, 0, 0] == self.data[0].flat[0]).all())


@needs_numpy
class Installed(Case):
    def python(self, *args, **more):
        return self.run_ok([sys.executable, *args], env={
            "PATH": limetest.BIN + ":" + os.defpath, "PYTHONDONTWRITEBYTECODE": "1", **more},
            timeout=120).decode()

    def test_version(self):
        self.assertIn(limefs.__version__, self.run_ok(["lime", "--version"]).decode())
        with open(os.path.join(PACKAGE, "pyproject.toml"), encoding="ascii") as file:
            self.assertIn(f'version = "{limefs.__version__}"', file.read())

    def test_make_install(self):
        """make install uses the directory variables; make uninstall removes every file."""
        target = limetest.tempdir()
        make = ["make", "-C", limetest.REPO, f"B={limetest.B}", f"DESTDIR={target}", "MPICC=none",
                "-o", "all"]
        self.run_ok([*make, "PREFIX=/opt/lime", "install"], timeout=120)
        where = os.path.join(target, "opt/lime/lib/python3/dist-packages")
        self.assertEqual(sorted(os.listdir(os.path.join(where, "limefs"))),
                         sorted(name for name in os.listdir(os.path.join(PACKAGE, "limefs"))
                                if name.endswith(".py")))
        out = self.python("-c", "import limefs; print(limefs.find_lime())", PYTHONPATH=where)
        self.assertEqual(out.strip(), os.path.join(target, "opt/lime/bin/lime"))
        self.run_ok([*make, "PREFIX=/opt/lime", "uninstall"], timeout=120)
        left = [name for _, _, names in os.walk(target) for name in names]
        self.assertEqual(left, [])
        self.run_ok([*make, "PREFIX=/usr", "PYTHONDIR=/x/y", "install"], timeout=120)
        self.assertTrue(os.path.exists(os.path.join(target, "x/y/limefs/__init__.py")))

    def test_pip(self):
        """pip installs without a network and writes nothing to the source directory."""
        if not numpython.has("pip") or not numpython.has("venv"):
            self.skipTest("needs pip")
        target = limetest.tempdir()
        before = sorted(os.listdir(PACKAGE))
        self.python("-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                    "--disable-pip-version-check", "--no-cache-dir", "--target", target, PACKAGE,
                    HOME=target)
        self.assertEqual(sorted(os.listdir(PACKAGE)), before)
        out = self.python("-c", "import limefs, sys; print(limefs.open(sys.argv[1]).array().shape)",
                          GAUGE, PYTHONPATH=target)
        self.assertEqual(out.strip(), "(4, 4, 4, 4, 4, 3, 3)")
        out = self.python("-m", "pip", "list", "--path", target, "--disable-pip-version-check",
                          HOME=target)
        self.assertRegex(out, rf"limefs +{re.escape(limefs.__version__)}")


if __name__ == "__main__":
    limetest.main()
