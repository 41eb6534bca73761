"""Lemon's extensions of the paper's API, on several numbers of ranks."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import RANKS, TestCase

# The records of aligned.c: type, bytes, MB, ME.
RECORDS = (("first", 100, 1, 0), ("second", 0, 0, 0), ("lattice", 4800, 0, 1),
           ("fourth", 300, 1, 1), ("fifth", 12345, 1, 0), ("sixth", 7, 0, 0),
           ("seventh", 4096, 0, 1))


def data(k, nbytes):
    return bytes((31 * k + 7 * i) % 256 for i in range(nbytes))


def aligned(alignment, from_bytes, records=RECORDS):
    """Returns the bytes of the whole file."""
    out = bytearray()
    for k, (type, nbytes, mb, me) in enumerate(records):
        gap = -(len(out) + limetest.HEADER_BYTES) % (alignment or 8)
        if alignment and nbytes >= from_bytes and gap:
            while gap < limetest.HEADER_BYTES:
                gap += alignment
            out += limetest.record("lemon-filler", bytes(gap - limetest.HEADER_BYTES), mb, mb)
        out += limetest.record(type, data(k, nbytes), mb, me)
    return bytes(out)


class Beyond(TestCase):
    def test_hints(self):
        self.on(RANKS, "hints")

    def test_records_that_hold_more_than_their_headers_say(self):
        self.on((1, 3), "hints", "compat", env={"LEMON_COMPAT": "overfull"})

    def test_hints_with_romio(self):
        self.on((3,), "hints", romio=True)

    def check_aligned(self, path, want, alignment, from_bytes):
        self.assertEqual(limetest.read(path), want)
        self.assertIn(b": good: ", self.run_ok(["lime", "check", path]))
        records = json.loads(self.run_ok(["lime", "ls", "--json", path]))["records"]
        data_records = [record for record in records if record["type"] != "lemon-filler"]
        self.assertEqual([(record["type"], record["bytes"]) for record in data_records],
                         [(type, nbytes) for type, nbytes, _, _ in RECORDS])
        for record in data_records:
            if alignment and record["bytes"] >= from_bytes:
                self.assertEqual(record["data_offset"] % alignment, 0, record)
        for k, record in enumerate(data_records):
            at = record["data_offset"]
            self.assertEqual(want[at:at + record["bytes"]], data(k, record["bytes"]))
        self.assertEqual(self.run_ok(["lime", "cat", path, "fifth"]), data(4, 12345))
        contents = self.run_ok(["lime_contents", path])
        self.assertEqual(contents.count(b"lemon-filler"), len(records) - len(data_records))

    def test_alignment(self):
        pairs = ((0, 0), (8, 0), (16, 0), (512, 0), (512, 300), (4096, 0), (4096, 300),
                 (1 << 20, 4096))
        for i, ranks in enumerate(RANKS):
            mine = pairs if limetest.STRESS else pairs[i::len(RANKS)]
            prefix = os.path.join(self.tempdir(), "file")
            for pair in mine:
                # Old bytes in the place of the first four records must not show through.
                limetest.put("{}-{}-{}".format(prefix, *pair),
                             b"\xff" * len(aligned(*pair, RECORDS[:4])))
            self.tap(ranks, "aligned", prefix, *sum(mine, ()))
            for pair in mine:
                with self.subTest(ranks=ranks, pair=pair):
                    self.check_aligned("{}-{}-{}".format(prefix, *pair), aligned(*pair), *pair)

    def test_arguments_of_the_alignment(self):
        self.on(RANKS, "aligned", "arguments")

    def test_no_room_for_a_filler(self):
        directory = self.tmpfs("-o", "size=1m")
        for ranks in (1, 3):
            self.on((ranks,), "aligned", "full", directory=directory)
            os.unlink(os.path.join(directory, "file"))


if __name__ == "__main__":
    limetest.main()
