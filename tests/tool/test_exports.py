"""Export formats by lime cat and lime refs, read by numpy, h5py, netCDF4, zarr, xarray, fsspec."""
import array
import functools
import itertools
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
from numpython import python_with
from limetest import CORPUS, container, run

# Every field of the corpus: file, ordinal, shape, reals of 4 or 8 bytes, complex, first site.
FIELDS = [
    ("qio_nersc_ildg.lime", 7, (8, 4, 4, 4, 4, 3, 3), 4, True),
    ("qio_test1_scidac_n1.lime", 5, (4, 4, 4, 8, 2), 4, False),
    ("qio_test1_scidac_n1.lime", 9, (1, 4, 4, 2, 2), 4, False),
    ("qio_test1_scidac_n1.lime", 13, (3,), 4, False),
    ("qio_test1_scidac_n1.lime", 17, (4, 4, 4, 8, 4, 3, 3), 4, True),
    ("tm_clime_gauge_4444_p64_n1.lime", 3, (4, 4, 4, 4, 4, 3, 3), 8, True),
    ("tm_clime_gauge_4448_p32_n1.lime", 3, (8, 4, 4, 4, 4, 3, 3), 4, True),
    ("tm_clime_prop_4444_p32_n1.lime", 6, (4, 4, 4, 4, 4, 3), 4, True),
    ("tm_lemon_prop_4444_p64_n1.lime", 6, (4, 4, 4, 4, 4, 3), 8, True),
]
# First site (x, y, z, t) of the box of record 9.
BOX = {("qio_test1_scidac_n1.lime", 9): (1, 0, 0, 2)}
GAUGE = os.path.join(CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
ILDG = "ildg-binary-data"


def numbers(path, ordinal, size):
    """Returns the record's real numbers as doubles."""
    data = limetest.records_of(path, strict=False)[ordinal - 1].data
    return array.array("d", struct.unpack(f">{len(data) // size}{'d' if size == 8 else 'f'}", data))


def single(values):
    return array.array("d", struct.unpack(f"<{len(values)}f",
                                          struct.pack(f"<{len(values)}f", *values)))


def even_odd(values, shape, origin=0):
    """Sorts sites by counting coordinates; shape is the lattice's, t first."""
    sites = list(itertools.product(*map(range, shape)))
    per = len(values) // len(sites)
    order = [i for parity in (0, 1) for i, site in enumerate(sites)
             if (sum(site) + origin) % 2 == parity]
    out = array.array("d")
    for i in order:
        out.extend(values[i * per:(i + 1) * per])
    return out


def needs(*modules):
    return lambda test: limetest.unittest.skipUnless(
        python_with(*modules), "needs " + ", ".join(modules))(test)


PUT = """
import sys
import numpy as np
def put(a):
    "The shape and type, then all numbers as doubles."
    a = np.asarray(a)
    print(a.shape, a.dtype.str, flush=True)
    wide = a.astype('<c16' if a.dtype.kind == 'c' else '<f8')
    sys.stdout.buffer.write(np.ascontiguousarray(wide).tobytes())
"""


class TestCase(limetest.TestCase):
    def python(self, modules, script, *args, **kw):
        """Returns what the script prints by put(): shape, type, numbers."""
        done = run([python_with(*modules), "-c", PUT + script, *args], timeout=120, **kw)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        line, data = done.stdout.split(b"\n", 1)
        shape, dtype = line.decode().rsplit(" ", 1)
        values = array.array("d")
        values.frombytes(data)
        return tuple(int(n) for n in shape.strip("()").split(",") if n), dtype, values

    def export(self, path, word):
        return self.run_ok(["lime", "cat", path, word])

    def saved(self, path, word, name):
        return self.write(name, self.export(path, word))

    def each(self):
        for name, ordinal, shape, size, is_complex in FIELDS:
            path = os.path.join(CORPUS, name)
            letter = f"{'c' if is_complex else 'f'}{size * (2 if is_complex else 1)}"
            yield path, ordinal, shape, letter, numbers(path, ordinal, size)

    def zarr_of(self, path, ordinal):
        """Creates the directory as a mount shows it."""
        directory = os.path.join(self.tempdir(), "X.zarr")
        os.makedirs(os.path.join(directory, "field"))
        array_info = json.loads(self.export(path, f"{ordinal}.zarr/field/.zarray"))
        slices = array_info["shape"][0] // array_info["chunks"][0]
        chunks = [".".join([str(t)] + ["0"] * (len(array_info["shape"]) - 1))
                  for t in range(slices)]
        names = [".zgroup", ".zattrs", ".zmetadata"] + \
            ["field/" + name for name in [".zarray", ".zattrs", *chunks]]
        for name in names:
            with open(os.path.join(directory, name), "wb") as file:
                file.write(self.export(path, f"{ordinal}.zarr/{name}"))
        return directory


class Numpy(TestCase):
    def setUp(self):
        if not python_with("numpy"):
            self.skipTest("needs numpy")

    def test_as_stored(self):
        for path, ordinal, shape, letter, values in self.each():
            file = self.saved(path, f"{ordinal}.npy", "x.npy")
            got = self.python(["numpy"], "put(np.load(sys.argv[1], mmap_mode='r'))", file)
            self.assertEqual(got, (shape, ">" + letter, values))
            with open(file, "rb") as whole:  # numpy aligns its own files in this way
                start = whole.read(128)
            self.assertEqual(struct.unpack("<H", start[8:10])[0], 118)

    def test_computed(self):
        for path, ordinal, shape, letter, values in self.each():
            for precision, order in itertools.product(("", ".f4", ".f8"), ("", ".le")):
                with self.subTest(precision=precision, order=order):
                    file = self.saved(path, f"{ordinal}{precision}{order}.npy", "x.npy")
                    got = self.python(["numpy"], "put(np.load(sys.argv[1]))", file)
                    size = int(precision[2]) * (2 if letter[0] == "c" else 1) if precision \
                        else int(letter[1:])
                    dtype = f"{'<' if order else '>'}{letter[0]}{size}"
                    expected = single(values) if precision == ".f4" else values
                    self.assertEqual(got, (shape, dtype, expected))

    def test_even_odd(self):
        for path, ordinal, shape, letter, values in self.each():
            if len(shape) < 4:
                self.fails(["lime", "cat", path, f"{ordinal}.eo.npy"],
                           "its lattice needs 2 to 4 dimensions", out=b"")
                continue
            origin = sum(BOX.get((os.path.basename(path), ordinal), ()))
            sites = functools.reduce(lambda a, b: a * b, shape[:4])
            for suffix in (".eo.npy", ".eo.f8.le.npy"):
                file = self.saved(path, f"{ordinal}{suffix}", "x.npy")
                got = self.python(["numpy"], "put(np.load(sys.argv[1]))", file)
                self.assertEqual(got[0], (2, sites // 2) + shape[4:])
                self.assertEqual(got[2], even_odd(values, shape[:4], origin))

    def test_slices(self):
        for path, ordinal, shape, letter, values in self.each():
            if len(shape) < 4:
                continue
            per = len(values) // shape[0]
            for t in range(shape[0]):
                data = self.export(path, f"{ordinal}.t/{t:03}")
                count = len(data) // per
                self.assertEqual(array.array("d", struct.unpack(
                    f">{per}{'d' if count == 8 else 'f'}", data)), values[t * per:(t + 1) * per])

    def test_bytes_of_unknown_meaning(self):
        path = self.write("c.lime", container([
            [scidac.private_file((1, 3, 1, 2))],
            [scidac.private_record(3, "Other"), ("scidac-binary-data", bytes(range(18)))]]))
        file = self.saved(path, "scidac-binary-data.npy", "x.npy")
        self.assertEqual(self.python(["numpy"], "put(np.load(sys.argv[1]))", file),
                         ((2, 1, 3, 1, 3), "|u1", array.array("d", range(18))))
        self.fails(["lime", "cat", path, "3.le.npy"], "not known to contain real numbers")


@needs("numpy", "h5py")
class Hdf5(TestCase):
    def setUp(self):
        done = run(["lime", "cat", GAUGE, ILDG + ".h5"])
        if b"built without HDF5" in done.stderr:
            self.skipTest("built without HDF5")

    def test_h5py(self):
        for path, ordinal, shape, letter, values in self.each():
            file = self.saved(path, f"{ordinal}.h5", "x.h5")
            got = self.python(["numpy", "h5py"], """
import h5py
with h5py.File(sys.argv[1], "r") as file:
    field = file["field"]
    assert field.id.get_offset() > 0 and field.attrs["record"] == int(sys.argv[2])
    assert field.chunks is None and len(field.dims) == field.ndim
    put(field[...])
""", file, str(ordinal))
            self.assertEqual(got, (shape, ">" + letter, values))

    def test_attributes(self):
        file = self.saved(GAUGE, ILDG + ".h5", "x.h5")
        done = run([python_with("numpy", "h5py"), "-c", """
import h5py, json, sys
with h5py.File(sys.argv[1], "r") as file:
    print(json.dumps({k: v.tolist() if hasattr(v, "tolist") else v
                      for k, v in file["field"].attrs.items()}))
    print([dim.label for dim in file["field"].dims])
""", file], check=True)
        attributes, labels = done.stdout.decode().splitlines()
        self.assertEqual(json.loads(attributes), {
            "record_type": ILDG, "record": 3, "field": "su3gauge", "precision": 64,
            "lattice": [4, 4, 4, 4], "scidac_checksum": "f17ba6db ebc2d919",
            "DIMENSION_LABELS": ["t", "z", "y", "x", "mu", "a", "b"]})
        self.assertEqual(labels, "['t', 'z', 'y', 'x', 'mu', 'a', 'b']")

    @needs("numpy", "netCDF4")
    def test_netcdf4(self):
        """netCDF4 reads complex numbers as compounds."""
        for path, ordinal, shape, letter, values in self.each():
            file = self.saved(path, f"{ordinal}.h5", "x.h5")
            got = self.python(["numpy", "netCDF4"], """
import netCDF4
with netCDF4.Dataset(sys.argv[1]) as file:
    a = file["field"][...]
    put(a["r"] + 1j * a["i"] if a.dtype.names else a)
""", file)
            self.assertEqual((got[0], got[2]), (shape, values))

    def test_same_bytes_each_time(self):
        self.assertEqual(self.export(GAUGE, ILDG + ".h5"), self.export(GAUGE, ILDG + ".h5"))

    def test_of_a_large_record(self):
        """A sparse file of 8 GB: lime reads only the requested bytes."""
        extent = (128, 128, 64, 14)
        nbytes = 128 * 128 * 64 * 14 * 576
        start = container([("ildg-format", scidac.ildg_format(extent), True, False)]) + \
            limetest.header(ILDG, nbytes, False, True)
        path = self.write("big.lime", start)
        os.truncate(path, len(start) + nbytes)
        before = self.run_ok(["lime", "cat", "--range", "0:4096", path, ILDG + ".h5"])
        self.assertTrue(before.startswith(b"\x89HDF\r\n\x1a\n"))
        after = self.run_ok(["lime", "cat", "--range", f"{nbytes}:", path, ILDG + ".h5"])
        file = os.path.join(self.tempdir(), "x.h5")
        with open(file, "wb") as out:
            out.write(before)
            out.seek(nbytes)
            out.write(after)
        got = self.python(["numpy", "h5py"], """
import h5py
with h5py.File(sys.argv[1], "r") as file:
    assert file["field"].shape == (14, 64, 128, 128, 4, 3, 3)
    assert file["field"].id.get_offset() % 4096 == 0
    put(file["field"][13, 63, 127, 127, 3])
""", file)
        self.assertEqual(got, ((3, 3), ">c16", array.array("d", [0.0] * 18)))


class Zarr(TestCase):
    @needs("numpy", "zarr")
    def test_zarr(self):
        for path, ordinal, shape, letter, values in self.each():
            directory = self.zarr_of(path, ordinal)
            for way in ("open_group", "open_consolidated"):
                got = self.python(["numpy", "zarr"],
                                  f"import zarr\nput(zarr.{way}(sys.argv[1], mode='r')"
                                  "['field'][...])", directory)
                self.assertEqual(got, (shape, ">" + letter, values))

    @needs("numpy", "zarr", "xarray")
    def test_xarray(self):
        for path, ordinal, shape, letter, values in self.each():
            directory = self.zarr_of(path, ordinal)
            got = self.python(["numpy", "zarr", "xarray"], """
import xarray
data = xarray.open_dataset(sys.argv[1], engine="zarr").field
assert len(set(data.dims)) == data.ndim, data.dims
assert data.ndim < 4 or data.dims[:4] == ("t", "z", "y", "x"), data.dims
put(data.values)
""", directory)
            self.assertEqual((got[0], got[2]), (shape, values))


# The references as zarr 2 and zarr 3 read them; OPTIONS are fsspec's.
OPEN = """
import fsspec, json, zarr
def opened(**options):
    options.update(fo=json.load(open(sys.argv[1])), remote_protocol="file")
    if zarr.__version__.startswith("2"):
        store = fsspec.get_mapper("reference://", **options)
    else:
        store = zarr.storage.FsspecStore(
            fsspec.filesystem("reference", asynchronous=True, **options), read_only=True)
    return zarr.open_group(store, mode="r")["field"][...]
put(opened(OPTIONS))
"""


class Refs(TestCase):
    def refs(self, *args):
        return self.write("refs.json", self.run_ok(["lime", "refs", *args]))

    def copy(self, path, name):
        with open(path, "rb") as file:
            return self.write(name, file.read())

    def changed(self, ordinal, name="b.lime"):
        """Returns a copy of the configuration with another first number."""
        path = self.copy(GAUGE, name)
        with open(path, "r+b") as file:
            file.seek(limetest.records_of(GAUGE)[ordinal - 1].at)
            file.write(struct.pack(">d", 42))
        return path

    def test_skip_bad(self):
        """Files that do not fit are left out and named, also the first one."""
        bad = self.write("empty", b"")
        small = self.write("small", scidac.gauge((2, 2, 2, 2), bytes(16 * 576)))
        expected = self.run_ok(["lime", "refs", GAUGE, GAUGE])
        self.fails(["lime", "refs", "--skip-bad", bad, GAUGE, small, GAUGE], bad + ": ",
                   small + ": its array is ", "refs: 2 of 4 files left out", out=expected,
                   status=None)
        self.fails(["lime", "refs", "--skip-bad", bad], bad + ": ", out=b"", status=None)
        self.assertEqual(self.run_ok(["lime", "refs", "--skip-bad", GAUGE, GAUGE]), expected)

    @needs("numpy", "zarr", "fsspec")
    def test_configurations(self):
        other = self.changed(3)
        got = self.python(["numpy", "zarr", "fsspec"], OPEN.replace("OPTIONS", ""),
                          self.refs(GAUGE, other, GAUGE))
        first, second = numbers(GAUGE, 3, 8), numbers(other, 3, 8)
        self.assertEqual(second[0], 42)
        self.assertEqual(got, ((3, 4, 4, 4, 4, 4, 3, 3), ">c16", first + second + first))

    @needs("numpy", "zarr", "fsspec")
    def test_every_field(self):
        for path, ordinal, shape, letter, values in self.each():
            got = self.python(["numpy", "zarr", "fsspec"], OPEN.replace("OPTIONS", ""),
                              self.refs("--record", str(ordinal), path, path))
            self.assertEqual(got, ((2,) + shape, ">" + letter, values + values))

    @needs("numpy", "zarr", "xarray", "fsspec")
    def test_xarray(self):
        got = self.python(["numpy", "zarr", "xarray", "fsspec"], """
import xarray
data = xarray.open_dataset("reference://", engine="zarr", backend_kwargs={
    "consolidated": False, "storage_options": {"fo": sys.argv[1]}}).field
assert data.dims == ("config", "t", "z", "y", "x", "mu", "a", "b")
put(data.isel(config=1, t=2).values)
""", self.refs(GAUGE, GAUGE))
        per = 4 * 4 * 4 * 72
        self.assertEqual(got[2], numbers(GAUGE, 3, 8)[2 * per:3 * per])

    @needs("numpy", "zarr", "fsspec", "jinja2")
    def test_braces_in_a_name(self):
        """kerchunk treats braces in a name as a template; lime refs escapes them."""
        for name in ("{{x}}.lime", "a{{b", "}}{{{", "{%if%}{{", "{{b}}"):
            path = self.changed(3, name)
            for options in ("", "simple_templates=False"):
                got = self.python(["numpy", "zarr", "fsspec"], OPEN.replace("OPTIONS", options),
                                  self.refs(path, GAUGE))
                self.assertEqual(got[2][0], 42)

    def test_urls(self):
        directory = os.path.dirname(self.copy(GAUGE, "c.lime"))
        record = limetest.records_of(GAUGE)[2]
        offset, nbytes = record.at, len(record.data)
        for args, url in (([], os.path.join(directory, "c.lime")),
                          (["--url-prefix", "s3://bucket/run/"], "s3://bucket/run/c.lime")):
            out = json.loads(self.run_ok(["lime", "refs", *args, "c.lime"], cwd=directory))
            self.assertEqual(out["version"], 1)
            self.assertNotIn("templates", out)
            self.assertEqual(out["refs"]["field/0.3.0.0.0.0.0.0"],
                             [url, offset + 3 * nbytes // 4, nbytes // 4])

    def test_directory_and_list(self):
        directory = self.tempdir()
        for name in ("b", "a"):
            os.link(self.copy(GAUGE, name), os.path.join(directory, name))
        names = self.write("list", f"{directory}/b\n{directory}/a\n".encode())
        for args, order in ((["-r", directory], "ab"), (["--files-from", names], "ba")):
            refs = json.loads(self.run_ok(["lime", "refs", *args]))["refs"]
            self.assertEqual([os.path.basename(refs[f"field/{i}.0.0.0.0.0.0.0"][0])
                              for i in (0, 1)], list(order))

    def test_output_is_the_list(self):
        """The list of the sources is not replaced, under none of its names."""
        names = self.write("list", f"{GAUGE}\n".encode())
        link, hard = names + ".link", names + ".hard"
        os.symlink(names, link)
        os.link(names, hard)
        for output in names, link, hard:
            errors = self.refused(1, "-f", "-o", output, "--files-from", names)
            self.assertIn("is also the input", errors)
        with open(names, "rb") as file:
            self.assertEqual(file.read(), f"{GAUGE}\n".encode())
        with open(names, "rb") as file:
            done = run(["lime", "refs", "-f", "-o", names, "--files-from", "-"], stdin=file)
        self.assertEqual(done.returncode, 1)
        self.run_ok(["lime", "refs", "-o", names + ".json", "--files-from", names])

    def refused(self, status, *args):
        done = run(["lime", "refs", *args])
        self.assertEqual((done.returncode, done.stdout), (status, b""))
        return done.stderr.decode()

    def test_mismatched_fields(self):
        other = os.path.join(CORPUS, "tm_clime_gauge_4448_p32_n1.lime")
        errors = self.refused(1, GAUGE, other)
        self.assertIn(f"{other}: its array is (8, 4, 4, 4, 4, 3, 3) of single complex", errors)
        several = os.path.join(CORPUS, "qio_test1_scidac_n1.lime")
        self.assertIn("4 records are fields; choose one with --record: 5, 9, 13, 17",
                      self.refused(1, several))
        self.assertIn("no field with a known site size",
                      self.refused(1, os.path.join(CORPUS, "clime_pack_multi.lime")))
        self.assertIn("not a field", self.refused(1, "--record", "2", GAUGE))
        self.assertIn("no such record", self.refused(1, "-t", "2", GAUGE))
        self.refused(2, GAUGE, "/none")
        self.refused(2)
        self.refused(2, "--wrong", GAUGE)
        odd = self.copy(GAUGE, b"\xff.lime".decode("utf-8", "surrogateescape"))
        self.assertIn("not UTF-8", self.refused(1, odd))


class Cat(TestCase):
    def refused(self, word, status=1, *args):
        done = run(["lime", "cat", *args, GAUGE, word])
        self.assertEqual((done.returncode, done.stdout), (status, b""), word)
        return done.stderr.decode()

    def test_ranges(self):
        for word in (".npy", ".eo.f4.le.npy", ".t/002", ".zarr/.zmetadata"):
            whole = self.export(GAUGE, ILDG + word)
            self.assertTrue(whole)
            for offset, n in ((0, 1), (0, 129), (127, 2), (len(whole) - 1, 1), (77, 200)):
                part = self.run_ok(["lime", "cat", "--range", f"{offset}:{n}", GAUGE,
                                    ILDG + word])
                self.assertEqual(part, whole[offset:offset + n])
            self.assertEqual(self.run_ok(["lime", "cat", "--range", f"{len(whole)}:", GAUGE,
                                          ILDG + word]), b"")
            self.assertIn("bytes only",
                          self.refused(ILDG + word, 1, "--range", f"{len(whole)}:1"))

    def test_ways_to_name_the_record(self):
        whole = self.export(GAUGE, ILDG + ".npy")
        for word in ("3.npy", "2.2.npy", "003-ildg-binary-data.npy"):
            self.assertEqual(self.export(GAUGE, word), whole)
        self.assertEqual(self.run_ok(["lime", "cat", GAUGE, "3.npy", "1", "3.npy"]),
                         whole + self.export(GAUGE, "1") + whole)

    def test_invalid_names(self):
        self.assertIn("is a directory: name a file in it", self.refused("3.zarr"))
        self.assertIn("is a directory", self.refused("3.t"))
        self.assertIn("is a directory", self.refused("3.zarr/field"))
        for word in ("3.t/4", "3.t/004", "3.t/0000", "3.t/", "3.zarr/x", "3.zarr/field/0",
                     "3.zarr/field/0.0.0.0.0.0.0/x", "3.zarr/.zgroup/x", "3.t/000/"):
            self.assertIn("no such file", self.refused(word))
        self.assertIn("the number of its sites is unknown", self.refused("1.npy"))
        for word in ("9.npy", "none.npy", "none.t/000", ".npy", "3.npy/x", "3.le", "3.f4"):
            self.assertIn("no such record", self.refused(word))
        done = run(["lime", "cat", GAUGE, "-t", ILDG + ".npy"])
        self.assertEqual((done.returncode, done.stdout), (1, b""))

    def test_a_record_comes_first(self):
        path = self.write("c.lime", container([("x", b"it"), ("x.npy", b"mine"),
                                               ("x.t/000", b"mine, too")]))
        self.assertEqual(self.export(path, "x.npy"), b"mine")
        self.assertEqual(self.export(path, "x.t/000"), b"mine, too")
        self.assertEqual(self.run_ok(["lime", "cat", path, "-t", "x.npy"]), b"mine")

    def test_outputs(self):
        whole = self.export(GAUGE, "3.f4.npy")
        path = os.path.join(self.tempdir(), "out")
        with open(path, "wb") as out:
            run(["lime", "cat", GAUGE, "3.f4.npy"], stdout=out, check=True)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), whole)

    def test_truncated_container(self):
        with open(GAUGE, "rb") as file:
            data = file.read()
        path = self.write("c.lime", data[:-400])
        done = run(["lime", "cat", path, "3.le.npy"])
        self.assertEqual(done.returncode, 1)  # there is no such record, as it is truncated
        self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    limetest.main()
