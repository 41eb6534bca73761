"""The SciDAC checksum that Lemon computes while it reads and writes, and its verification."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import RANKS, TestCase, flip


# Bytes of a site, for files whose metadata lack it.
SITES = {"tm_clime_gauge_4444_p64_n1.lime": 576, "tm_clime_gauge_4448_p32_n1.lime": 288,
         "tm_clime_prop_4444_p32_n1.lime": 96, "tm_lemon_prop_4444_p64_n1.lime": 192}

HYPERCUBE = 2  # a part of a lattice; its sites keep their ranks in the whole


def elements(xml, *names):
    """Returns the numbers in the elements with these names."""
    return [int(re.search(f"<{name}>([^<]*)</{name}>", xml).group(1)) for name in names]


def summed_records():
    """Returns path, ordinal, bytes of a site and number of sites of each record of the corpus that
    a checksum follows."""
    found, before, private = [], None, ""
    for row in limetest.manifest():
        if row["type"] == "scidac-private-record-xml":
            private = limetest.run(["lime", "cat", row["path"],
                                    f"{row['message']}.{row['record']}"]).stdout.decode()
        elif row["type"] == "scidac-checksum" and before:
            size = SITES.get(row["file"])
            if not size:
                typesize, count, kind = elements(private, "typesize", "datacount",
                                                 "recordtype")
                size = typesize * count
                if kind == HYPERCUBE:
                    continue
            found.append((row["path"], before["ordinal"], size, before["bytes"] // size))
        before = row
    return found


class Checksum(TestCase):
    def test_calls(self):
        self.on(RANKS if limetest.STRESS else (1, 3), "checksum",
                *(["all"] if limetest.STRESS else []))

    def test_with_romio(self):
        self.on(RANKS if limetest.STRESS else (4,), "checksum", romio=True)

    def test_on_tmpfs(self):
        """tmpfs has no disk: verification can't bypass the page cache."""
        self.on((3,), "checksum", directory=self.tmpfs("-o", "size=64m"))

    def test_lime_verifies_it(self):
        for ranks in RANKS if limetest.STRESS else (1, 3):
            with self.subTest(ranks=ranks):
                path = os.path.join(self.tempdir(), "file")
                self.tap(ranks, "checksum", path, "ildg")
                self.run_ok(["lime", "check", "--data", path])
                flip(path, -1000, 4)  # in the lattice
                self.assertEqual(limetest.run(["lime", "check", "--data", path]).returncode, 1)

    def test_same_configuration(self):
        """lime diff finds no difference between tmLQCD's configuration, written with C-LIME, and
        the same one written with Lemon, and none in its single-precision conversion beyond the
        rounding."""
        source = os.path.join(limetest.CORPUS, "tm_clime_gauge_4444_p64_n1.lime")
        path = os.path.join(self.tempdir(), "file")
        single = path + ".single"
        self.tap(3, "checksum", path, "copy", source)
        done = limetest.run(["lime", "diff", source, path])
        self.assertEqual((done.returncode, b"the same data, bit for bit" in done.stdout),
                         (0, True), done)
        self.run_ok(["lime", "convert", "--to", "ildg", "--precision", "32", path, single])
        done = limetest.run(["lime", "diff", "--json", source, single])
        [field] = json.loads(done.stdout)["fields"]
        self.assertEqual((done.returncode, field["result"], field["beyond"]), (0, "equal", 0))
        self.assertLess(0, field["largest"]["relative"])
        self.assertLessEqual(field["largest"]["relative"], 6e-8)

    def test_files_of_other_programs(self):
        args, records = [], summed_records()
        self.assertGreaterEqual(len(records), 7)
        for path, ordinal, site, sites in records:
            extents = [4, 4, 4, sites // 64] if sites % 64 == 0 else [1, 1, 1, sites]
            args += [path, ordinal, site, *extents]
        for ranks in RANKS if limetest.STRESS else (3,):
            with self.subTest(ranks=ranks):
                self.tap(ranks, "checksum", "sum", *args)


if __name__ == "__main__":
    limetest.main()
