"""lime join: volume sets by an independent writer, intact and damaged."""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
import volumelib
from limetest import read, run
from volumelib import Set, blocks

DIMS = (4, 2, 4, 6)


def fields(dims=DIMS):
    return [(96, scidac.field(dims, 96, 1)), (None, b"one datum for all\0"),
            (24, scidac.field(dims, 24, 2)), (288, scidac.field(dims, 288, 3))]


class JoinCase(limetest.TestCase):
    def setUp(self):
        self.dir = self.tempdir()
        self.out = os.path.join(self.tempdir(), "out.lime")

    def join(self, *args, status=0, messages=()):
        done = run(["lime", "join", "-f", *args])
        self.err = done.stderr.decode()
        self.assertEqual(done.returncode, status, self.err)
        for word in messages:
            self.assertIn(word, self.err)
        if status == 0 and not messages:
            self.assertEqual(self.err, "")
        return done.stdout.decode()

    def joins(self, made, name="prop"):
        first = made.write(self.dir, name)
        self.assertEqual(self.join(first, self.out), "")
        self.assertEqual(read(self.out), made.joined())
        self.run_ok(["lime", "check", "-q", "--data", self.out])
        return first

    def refused(self, made, *messages, status=1, volume=None, before=None):
        first = made.write(self.dir)
        if before:
            before()
        for args in ((first, self.out), ("--info", first)):
            self.join(*args, status=status, messages=messages)
            if volume is not None:
                self.assertIn(os.path.basename(made.path(self.dir, volume)), self.err)
        self.assertFalse(os.path.exists(self.out))
        self.assertEqual(os.listdir(os.path.dirname(self.out)), [])


class Whole(JoinCase):
    def test_formats(self):
        for volfmt in (1, 2, 3):
            for list_format in (">I", ">q"):
                for grid in ((1, 1, 1, 1), (1, 1, 1, 3), (2, 1, 2, 2), (4, 2, 4, 6)):
                    with self.subTest(volfmt=volfmt, list_format=list_format, grid=grid):
                        self.joins(Set(DIMS, fields(), blocks(DIMS, grid), volfmt,
                                       list_format=list_format), f"p{volfmt}{list_format[1]}"
                                   + "".join(map(str, grid)))

    def test_numbers_with_gaps(self):
        """The number in a name is that of an I/O node; lime join accepts any volume of the set."""
        made = Set(DIMS, fields(), blocks(DIMS, (1, 1, 2, 2)), numbers=[0, 8, 512, 12345])
        self.joins(made)
        os.unlink(self.out)
        self.join(made.path(self.dir, 2), self.out)
        self.assertEqual(read(self.out), made.joined())

    def test_master_anywhere(self):
        made = Set(DIMS, fields(), blocks(DIMS, (2, 1, 1, 2)), 3, numbers=[3, 5, 7, 9])
        made.master = 2
        self.joins(made)

    def test_any_order(self):
        """MULTIFILE volumes have sites in the order in which they were stored."""
        ranks = list(range(4 * 2 * 4 * 6))
        random.Random(4).shuffle(ranks)
        self.joins(Set(DIMS, fields(), [ranks[:7], ranks[7:100], [], ranks[100:]], 1))

    def test_relative_paths(self):
        for volfmt, volume in ((2, "prop.vol0000"), (3, "vol0000/prop")):
            made = Set(DIMS, fields()[:1], blocks(DIMS, (1, 1, 1, 2)), volfmt)
            made.write(self.dir)
            self.run_ok(["lime", "join", "-f", volume, self.out], cwd=self.dir)
            self.assertEqual(read(self.out), made.joined())

    def test_other_files_are_ignored(self):
        """lime join ignores other sets, and names that only look like a volume's."""
        Set(DIMS, fields()[:1], blocks(DIMS, (1, 1, 1, 2))).write(self.dir, "other")
        for name in ("prop.vol0", "prop.vol00x1", "prop.volume0001", "xprop.vol0001", "vol0001"):
            with open(os.path.join(self.dir, name), "wb") as file:
                file.write(b"x")
        self.joins(Set(DIMS, fields(), blocks(DIMS, (1, 1, 1, 3))))

    def test_info(self):
        made = Set(DIMS, fields(), blocks(DIMS, (1, 1, 1, 2)), numbers=[0, 4])
        made.write(self.dir)
        output = self.join("--info", made.path(self.dir, 1))
        for word in ("PARTFILE\n", "lattice   4 2 4 6", "volumes   2, complete", "fields    3",
                     "prop.vol0000: 96 sites, with the metadata", "prop.vol0004: 96 sites\n",
                     "scidac-binary-data                    18K"):
            self.assertIn(word, output)

class Parts(JoinCase):
    """Sets with a record of a part of the lattice, as QIO writes hypercubes."""

    BOX = ((1, 0, 0, 2), (2, 1, 3, 2))

    def made(self, parts=(0,), **kw):
        made = Set(DIMS, fields(), blocks(DIMS, (1, 1, 2, 2)), **kw)
        made.boxes = {i: self.BOX for i in parts}
        return made

    def test_info(self):
        first = self.made(parts=(2,)).write(self.dir)
        output = self.join("--info", first)
        for word in ("fields    2", "prop.vol0000: record 14: not joined: a part of the lattice "
                     "(QDP_F3_DiracFermion, sites 1 0 0 2 to 2 1 3 2)"):
            self.assertIn(word, output)
        self.run_ok(["lime", "info", first])

    def test_refused(self):
        first = self.made().write(self.dir)
        self.join(first, self.out, status=1,
                  messages=["prop.vol0000: record 6: not joined: a part of the lattice",
                            "--skip-parts", "--record", "not written"])
        self.assertEqual(os.listdir(os.path.dirname(self.out)), [])

    def test_without_parts(self):
        for volfmt in 1, 2, 3:
            for parts in (0,), (2,), (3,), (0, 3):
                with self.subTest(volfmt=volfmt, parts=parts):
                    made = self.made(parts, volfmt=volfmt)
                    first = made.write(self.tempdir())
                    self.join("--skip-parts", first, self.out, messages=["warning: record"])
                    self.assertEqual(self.err.count("not joined"), len(parts))
                    self.assertEqual(read(self.out), made.joined(
                        [i for i in range(4) if i not in parts]))
                    self.run_ok(["lime", "check", "-q", "--data", self.out])
                    os.unlink(self.out)

    def test_volumes_without_a_site_of_the_part(self):
        """Some writers omit the part's record from volumes without its sites."""
        made = self.made()
        first = made.write(self.dir)
        other = self.made()
        other.fields, other.boxes = other.fields[1:], {}
        with open(made.path(self.dir, 3), "wb") as file:
            file.write(other.volume(3))
        self.join("--skip-parts", first, self.out, messages=["warning: record"])
        self.assertEqual(read(self.out), made.joined([1, 2, 3]))

    def test_records(self):
        """--record takes the numbers that --info shows: two of the file, four of each field."""
        for parts in (), (0,):
            made = self.made(parts)
            first = made.write(self.tempdir())
            left = [i for i in range(4) if i not in parts]
            for number, fields_of in ((5, left[:1]), (3, left[:1]), (1, []), (9, left[1:2]),
                                      (14, left[2:3])):
                self.assertEqual(self.join("--record", str(number), first, self.out), "")
                self.assertEqual(read(self.out), made.joined(fields_of), (parts, number))
                os.unlink(self.out)
            self.join("--record", "14", "--record", "5", first, self.out)
            self.assertEqual(read(self.out), made.joined([left[0], left[2]]))
            os.unlink(self.out)
            for number in 100, 4 * len(left) + 3:
                self.join("--record", "5", "--record", str(number), first, self.out, status=1,
                          messages=["no such record"])
            for number in "0", "-1", "x", "1.2":
                self.join("--record", number, first, self.out, status=2)

    def test_only_parts(self):
        made = self.made(parts=(0, 2, 3))
        first = made.write(self.dir)
        for args in (first, self.out), ("--skip-parts", first, self.out), ("--info", first):
            self.join(*args, status=1, messages=["prop.vol0000", "cannot be joined"])

    def test_convert(self):
        made = Set(DIMS, [(24, scidac.field(DIMS, 24, 2)), (288, bytes(288 * 192))],
                   blocks(DIMS, (1, 1, 2, 2)), ildg=scidac.ildg_format(DIMS, 32))
        made.boxes = {0: self.BOX}
        done = run(["lime", "convert", made.write(self.dir), self.out])
        self.assertEqual(done.returncode, 0, done.stderr)


class Broken(JoinCase):
    def made(self, **kw):
        return Set(DIMS, fields(), blocks(DIMS, (1, 1, 2, 2)), **kw)

    def test_missing(self):
        made = self.made()
        self.refused(made, "not all volumes are given",
                     before=lambda: os.unlink(made.path(self.dir, 2)))

    def test_master_missing_or_twice(self):
        made = self.made()
        first = made.write(self.dir)
        os.unlink(first)
        self.join(made.path(self.dir, 1), self.out, status=1, messages=["must have its metadata"])
        made.write(self.dir)
        os.link(first, os.path.join(self.dir, "prop.vol0009"))
        self.join(first, self.out, status=1, messages=["must have its metadata"])

    def test_sites_twice(self):
        made = self.made()
        made.lists[1][3] = made.lists[2][0]
        self.refused(made, "a site is in the volumes twice")
        made = self.made()
        made.lists[1][3] = made.lists[1][0]
        self.refused(made, "twice")

    def test_ranks_beyond(self):
        made = self.made()
        made.lists[3][-1] = 192
        self.refused(made, "list of sites", volume=3)
        made = self.made(list_format=">q")
        made.lists[3][-1] = -1
        self.refused(made, "list of sites", volume=3)

    def test_lists(self):
        made = self.made()
        made.lists[2].pop()
        self.refused(made, "list of sites", volume=2)
        made.lists[2] += [0, 0, 0]
        self.refused(made, "list of sites", volume=2)

    def test_lengths(self):
        made = self.made()
        whole = made.sites
        for wrong in (lambda v, s, d: whole(v, s, d)[:-1] if v == 1 else whole(v, s, d),
                      lambda v, s, d: whole(v, s, d)[:-s] if (v, s) == (1, 24) else whole(v, s, d),
                      lambda v, s, d: whole(v, s, d) * 100 if v == 1 else whole(v, s, d)):
            made.sites = wrong
            self.refused(made, "records", volume=1)

    def test_records(self):
        for change in (lambda f: f[:2], lambda f: f + f[:1]):
            made, other = self.made(), self.made()
            other.fields = change(other.fields)
            first = made.write(self.dir)
            with open(made.path(self.dir, 3), "wb") as file:
                file.write(other.volume(3))
            self.join(first, self.out, status=1, messages=["prop.vol0003", "records"])

    def test_part_of_the_lattice(self):
        made = self.made()
        record = made.record
        box = (b"<spacetime>4</spacetime><hyperlower>0 0 0 0</hyperlower>"
               b"<hyperupper>1 1 1 1</hyperupper><date>")
        made.record = lambda number, binary: [
            (kind, data.replace(b"<recordtype>0", b"<recordtype>2").replace(b"<date>", box))
            for kind, data in record(number, binary)]
        self.refused(made, "a record is of a part of the lattice, and cannot be joined", volume=0)

    def test_checksum(self):
        made = self.made()
        made.sums[3] = (1, 2)
        first = made.write(self.dir)
        self.join(first, self.out, status=1,
                  messages=["all volumes have the checksum", "00000001 00000002", "not written"])
        self.assertEqual(os.listdir(os.path.dirname(self.out)), [])

    def test_a_byte(self):
        made = self.made()
        first = made.write(self.dir)
        path = made.path(self.dir, 2)
        data = bytearray(read(path))
        data[-9] ^= 4
        with open(path, "wb") as file:
            file.write(data)
        self.join(first, self.out, status=1, messages=["checksum"])

    def test_cut(self):
        made = self.made()
        first = made.write(self.dir)
        path = made.path(self.dir, 2)
        os.truncate(path, os.path.getsize(path) - 100)
        self.join(first, self.out, status=1, messages=["prop.vol0002", "the file ends"])

    def test_not_a_volume(self):
        one = self.write("conf.vol0000", scidac.gauge((2, 2, 2, 2), bytes(576 * 16)))
        self.join(one, self.out, status=1, messages=["list of sites"])
        self.join(self.write("conf", b"x"), self.out, status=2, messages=["not named as a volume"])
        self.join(os.path.join(self.dir, "none.vol0000"), self.out, status=2, messages=["no such"])
        none = os.path.join(self.dir, "none", "a.vol0000")
        self.join(none, self.out, status=2, messages=["open"])
        self.join(self.write("text.vol0000", b"text"), self.out, status=1)
        single = self.made(volfmt=0)
        self.refused(single, "not a volume of a set", status=2)

    def test_usage(self):
        for args in ((), ("a",), ("a", "b", "c"), ("--info",), ("--info", "a", "b"), ("-x",)):
            self.join(*args, status=2)
        self.assertIn(b"PARTFILE_DIR", self.run_ok(["lime", "join", "--help"]))


if __name__ == "__main__":
    limetest.main()
