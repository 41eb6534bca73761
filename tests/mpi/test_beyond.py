"""What Lemon has beyond the paper, on several numbers of ranks."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import MPICH, RANKS, TestCase, mpirun

# Those of aligned.c: type, bytes, MB, ME.
RECORDS = (("first", 100, 1, 0), ("second", 0, 0, 0), ("lattice", 4800, 0, 1),
           ("fourth", 300, 1, 1), ("fifth", 12345, 1, 0), ("sixth", 7, 0, 0),
           ("seventh", 4096, 0, 1))


def data(k, nbytes):
    return bytes((31 * k + 7 * i) % 256 for i in range(nbytes))


def aligned(alignment, from_bytes, records=RECORDS):
    """The whole file."""
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
    def passes(self, ranks, program, *args, options=()):
        done = mpirun(ranks, program, *map(str, args), options=options)
        lines = done.stdout.decode(errors="replace").splitlines()
        bad = [line for line in lines if line.startswith(("not ok", "#"))]
        self.assertEqual(bad, [], done.stderr.decode(errors="replace")[-2000:])
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace")[-2000:])
        self.assertEqual(lines[-1], f"1..{len(lines) - 1}")

    def on_all_ranks(self, program, *args):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                self.passes(ranks, program, os.path.join(self.tempdir(), "file"), *args)

    # ---- hints ----

    def test_hints(self):
        self.on_all_ranks("hints")

    def test_hints_with_romio(self):
        if MPICH:
            self.skipTest("MPICH has nothing else")
        self.passes(3, "hints", os.path.join(self.tempdir(), "file"),
                    options=["--mca", "io", "^ompio"])

    # ---- alignment ----

    def check_aligned(self, path, want, alignment, from_bytes):
        with open(path, "rb") as file:
            self.assertEqual(file.read(), want)
        self.assertIn(b": good: ", self.run_ok(["lime", "check", path]))
        records = json.loads(self.run_ok(["lime", "ls", "--json", path]))["records"]
        kept = [record for record in records if record["type"] != "lemon-filler"]
        self.assertEqual([(record["type"], record["bytes"]) for record in kept],
                         [(type, nbytes) for type, nbytes, _, _ in RECORDS])
        for record in kept:
            if alignment and record["bytes"] >= from_bytes:
                self.assertEqual(record["data_offset"] % alignment, 0, record)
        for k, record in enumerate(kept):
            at = record["data_offset"]
            self.assertEqual(want[at:at + record["bytes"]], data(k, record["bytes"]))
        self.assertEqual(self.run_ok(["lime", "cat", path, "fifth"]), data(4, 12345))
        contents = self.run_ok(["lime_contents", path])
        self.assertEqual(contents.count(b"lemon-filler"), len(records) - len(kept))

    def test_alignment(self):
        for i, (alignment, from_bytes) in enumerate((
                (0, 0), (8, 0), (16, 0), (512, 0), (512, 300), (4096, 0), (4096, 300),
                (1 << 20, 4096))):
            for ranks in RANKS if limetest.STRESS else (RANKS[i % 3],):
                with self.subTest(ranks=ranks, alignment=alignment, from_bytes=from_bytes):
                    path = os.path.join(self.tempdir(), "file")
                    # What lies where the first four go must not show through.
                    before = aligned(alignment, from_bytes, RECORDS[:4])
                    with open(path, "wb") as file:
                        file.write(b"\xff" * len(before))
                    self.passes(ranks, "aligned", path, alignment, from_bytes)
                    self.check_aligned(path, aligned(alignment, from_bytes), alignment,
                                       from_bytes)

    def test_arguments_of_the_alignment(self):
        self.on_all_ranks("aligned", "arguments")

    def test_no_room_for_a_filler(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        where = self.tempdir()
        limetest.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", where], check=True)
        self.addCleanup(limetest.run, ["umount", where])
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                path = os.path.join(where, "file")
                self.passes(ranks, "aligned", path, "full")
                os.unlink(path)

    # ---- orders in memory ----

    def test_permuted(self):
        for ranks in RANKS if limetest.STRESS else (1, 3):
            with self.subTest(ranks=ranks):
                self.passes(ranks, "permuted", os.path.join(self.tempdir(), "file"),
                            *(["all"] if limetest.STRESS else []))

    def test_permuted_with_romio(self):
        if MPICH:
            self.skipTest("MPICH has nothing else")
        self.passes(4, "permuted", os.path.join(self.tempdir(), "file"),
                    options=["--mca", "io", "^ompio"])


if __name__ == "__main__":
    limetest.main()
