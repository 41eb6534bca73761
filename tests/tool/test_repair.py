"""lime repair: tails, flags, padding; files that it must not change; locks."""
import glob
import json
import os
import stat
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
from limetest import container, header, record, run

GOOD = container([[("first", b"12345"), ("second", b"x" * 16)], [("third", b"")]])


class RepairCase(limetest.TestCase):
    def repair(self, data, *args, status=0):
        self.path = self.write("f.lime", data)
        return self.again(*args, status=status)

    def again(self, *args, status=0):
        self.lime("repair", *args, self.path, status=status)
        return limetest.read(self.path)

    def copies(self):
        return {os.path.basename(p): limetest.read(p)
                for p in glob.glob(glob.escape(self.path) + ".*")}

    def check(self):
        return run(["lime", "check", self.path]).returncode


class Tails(RepairCase):
    def tail(self, tail, lost=None):
        """lost: the message about the lost record, if there is one."""
        self.assertEqual(self.repair(GOOD + tail, status=int(lost is not None)), GOOD)
        self.assertEqual(self.copies(), {f"f.lime.cut-{len(GOOD)}": tail})
        self.assertIn(f"{self.path}: offset {len(GOOD)}: {len(tail)} bytes cut, kept in "
                      f"{self.path}.cut-{len(GOOD)}\n", self.out)
        count = ", 1 record is lost" if lost else ""
        self.assertIn(f"structure good now{count}: 3 records in 2 messages", self.out)
        self.assertIn("data not examined (lime check --data)", self.out)
        self.assertEqual(self.check(), 0)
        self.assertEqual("is lost" in self.err, lost is not None, self.err)
        self.assertIn(f"repair: record 4 is lost: {lost}\n" if lost else "", self.err)

    def test_header_cut_at_any_byte(self):
        whole = header("t", 8, 1, 1)
        for n in range(1, 144):
            self.tail(whole[:n], f"the file had {n} of the 144 bytes of its header")

    def test_data_cut(self):
        self.tail(header("t", 9, 1, 1) + b"12345678", "type 't', the file had 8 of its 9 bytes")
        self.tail(header("ta", 2**62, 1, 1) + os.urandom(3 << 20),
                  f"type 'ta', the file had {3 << 20} of its {2**62} bytes")

    def test_header_damaged(self):
        """The type in the damaged header shows that a record was there."""
        whole = record("ildg-binary-data", b"12345678", 1, 1)
        self.tail(b"x" + whole[1:], "type 'ildg-binary-data', its header is damaged")

    def test_trailing(self):
        for n in (1, 7, 8, 143, 144, 145, 10000):
            self.tail(b"x" * n)
            self.tail(bytes(n))

    def test_length_that_no_file_has(self):
        self.tail(header("t", 2**64 - 144, 1, 1), "type 't', no file can have its length")

    def test_nothing_but_a_tail(self):
        self.assertEqual(self.repair(header("t", 9, 1, 1), status=1), b"")
        self.assertEqual(self.copies(), {"f.lime.cut-0": header("t", 9, 1, 1)})

    def test_last_whole_record_ends_its_message(self):
        data = record("a", b"1", 1, 0) + record("b", b"2", 0, 0)
        self.assertEqual(self.repair(data + header("c", 8, 0, 1), status=1),
                         container([("a", b"1"), ("b", b"2")]))
        self.assertIn("record 2: flags: ME set", self.out)

    def test_copies_are_never_overwritten(self):
        self.repair(GOOD + b"one")
        for tail in (b"two", b"three"):
            with open(self.path, "ab") as file:
                file.write(tail)
            self.again()
        at = f"f.lime.cut-{len(GOOD)}"
        self.assertEqual(self.copies(), {at: b"one", at + ".1": b"two", at + ".2": b"three"})

    def test_copy_is_as_private_as_the_file(self):
        self.path = self.write("f.lime", GOOD + b"tail")
        os.chmod(self.path, 0o600)
        self.again()
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.path}.cut-{len(GOOD)}").st_mode), 0o600)

    def test_full_disk_cuts_nothing(self):
        self.path = self.write("f.lime", GOOD + bytes(1 << 20))
        done = run(["bash", "-c", 'trap "" XFSZ; ulimit -f 10; exec "$@"', "-",
                    limetest.program("lime"), "repair", self.path])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(limetest.read(self.path), GOOD + bytes(1 << 20))
        self.assertEqual(self.copies(), {})

    def test_long_tail_is_searched_fast(self):
        self.path = self.write("f.lime", GOOD)
        os.truncate(self.path, 512 << 20)  # a hole
        began = time.monotonic()
        self.again("-n", status=1)
        self.assertLess(time.monotonic() - began, 10 * limetest.SLOWNESS)
        self.assertIn(f"{(512 << 20) - len(GOOD)} bytes cut (dry run)", self.out)


class Remains(RepairCase):
    """Remains of limefs -o rw and lime append after a kill."""

    UNFINISHED = bytes(8) + header("new/type", 0, 0, 0)[8:]

    def cut(self, tail, message, before=GOOD, status=0):
        """status: of lime check afterwards, as an empty *.lime is bad."""
        for args in (["-n"], [], ["--force"]):
            got = self.repair(before + tail, *args, status=1 if args == ["-n"] else status)
            self.assertEqual(got, before + tail if args == ["-n"] else GOOD[:len(before)])
            self.assertIn(message, self.out)
            self.assertEqual(self.copies(), {})

    def test_unfinished(self):
        for data in (b"", b"x", bytes(1000), GOOD):
            self.cut(self.UNFINISHED + data, f"offset {len(GOOD)}: an unfinished record of type "
                     f"'new%2Ftype', {len(data)} bytes, cut")

    def test_length_known(self):
        head = bytes(8) + header("t", 16, 0, 0)[8:]
        for n in (0, 5, 16, 17, 100):
            self.cut(head + b"x" * n, f"type 't', {n} bytes, cut")

    def test_nothing_else(self):
        self.cut(self.UNFINISHED + b"x", "offset 0: an unfinished record", b"", status=1)
        self.cut(bytes(144), "offset 0: 144 bytes cut", b"", status=1)

    def test_resized(self):
        at = len(GOOD) - 144
        marked = GOOD[:at + 7] + b"\x5f" + GOOD[at + 8:]
        for tail in (b"x", b"x" * 1000, header("t", 9, 1, 1) + b"12345678", self.UNFINISHED):
            self.cut(tail, f"{len(tail)} bytes after record 3, which was being resized, cut",
                     marked)
        self.assertEqual(self.repair(marked), GOOD)
        self.assertIn("record 3 was being resized by a program that was killed", self.err)
        self.assertIn("data not examined", self.out)
        whole = record("t", b"", 1, 1)  # may come from a program that does not know the mark
        self.assertEqual(self.repair(marked + whole, status=1), GOOD)
        self.assertEqual(self.copies(), {f"f.lime.cut-{len(GOOD)}": whole})
        self.assertIn("a complete record is cut: type 't', 0 bytes", self.err)
        self.assertIn("1 record is lost", self.out)

    def redo(self, old, target, data):
        """Returns a container during a replacement of the record at `target`, with a mark."""
        at = len(GOOD) - 144
        marked = old[:at + 7] + b"\x3d" + old[at + 8:]
        return (marked + bytes(8) + data + bytes(-len(data) % 8) + b"limeredo" +
                struct.pack(">QQ", target, len(data)))

    def test_replaced(self):
        """lime repair completes a killed lime replace, however much was copied."""
        last = container([[("first", b"12345"), ("second", b"x" * 16)], [("third", b"new")]])
        inner = GOOD.replace(b"x" * 16, b"y" * 16)
        second = GOOD.index(b"x" * 16)
        for left, want in ((self.redo(GOOD, second, b"y" * 16), inner),
                           (self.redo(GOOD[:second] + b"yy" + GOOD[second + 2:], second,
                                      b"y" * 16), inner),
                           (self.redo(GOOD, len(GOOD), b"new").replace(
                               bytes(8) + b"new", bytes(16) + b"new"), last)):
            self.path = self.write("f.lime", left)
            self.assertEqual(self.check(), 1)
            self.assertEqual(self.again("-n", status=1), left)
            self.assertIn("new data", self.out)
            self.assertEqual(self.again(), want)
            self.assertIn("copied into the record that was being replaced", self.out)
            self.assertIn("structure good now", self.out)
            self.assertEqual((self.check(), self.copies()), (0, {}))

    def test_replaced_without_its_data(self):
        """lime repair never clears the only mark of a record that is part old, part new."""
        second = GOOD.index(b"x" * 16)
        good = self.redo(GOOD, second, b"y" * 16)
        for left in (good[:len(GOOD)], good[:-8], good + b"x", self.redo(GOOD, 9, b"y" * 16),
                     self.redo(GOOD, second, b"y" * 24),
                     self.redo(GOOD, len(GOOD), b"new")[:len(GOOD)]):
            for args in ([], ["-n"], ["--force"]):
                self.assertEqual(self.repair(left, *args, status=1), left)
                self.assertIn("part old, part new", self.err)
                self.assertNotIn("good", self.out)
            self.assertEqual(self.check(), 1)

    def test_zeroed_magic_in_the_middle(self):
        second = GOOD.index(header("second", 16, 0, 1))
        bad = GOOD[:second] + bytes(8) + GOOD[second + 8:]
        self.assertEqual(self.repair(bad, status=1), bad)
        self.assertIn("there may be an intact record", self.err)


class Middle(RepairCase):
    """Damage with whole records behind it is not an unfinished tail."""

    REST = record("ildg-binary-data", b"precious" * 1000, 1, 1)

    def refused(self, middle, rest=REST, status=0):
        data = GOOD + middle + rest
        self.assertEqual(self.repair(data, status=1), data)
        self.assertEqual(self.copies(), {})
        self.assertIn(f"{len(middle + rest)} bytes from offset {len(GOOD)}", self.err)
        self.assertIn("nothing was changed", self.err)
        self.assertIn("--force", self.err)
        if rest:
            self.assertIn(f"at offset {len(GOOD + middle)} there may be an intact record "
                          "(type 'ildg-binary-data', 8000 bytes)", self.err)
        self.again("-n", status=1)
        self.assertEqual(self.again("--force", status=int(bool(rest) or status)), GOOD)
        if rest:
            self.assertIn("a complete record is cut: type 'ildg-binary-data', 8000 bytes", self.err)
        self.assertEqual(self.copies(), {f"f.lime.cut-{len(GOOD)}": middle + rest})

    def test_refused(self):
        self.refused(header("t", 8, 1, 1, magic=0x466789ab) + bytes(8))
        self.refused(header("t", 2**63, 1, 1) + bytes(8))
        self.refused(header("t", 1 << 40, 1, 1) + bytes(8))
        self.refused(header("t", 8, 1, 1, version=3) + bytes(8))
        self.refused(b"lost byte")  # the next record is not at a multiple of 8
        self.refused(bytes((8 << 20) - 3))  # the next record is at a block boundary

    def test_unknown_version_is_not_a_tail(self):
        self.refused(header("t", 8, 1, 1, version=2) + bytes(8), b"", 1)
        self.assertIn("record 4 is lost: type 't', version 2", self.err)

    def test_truncated_record_is_not_intact(self):
        tail = b"y" * 64 + header("t", 9, 1, 1) + b"12345678"
        self.assertEqual(self.repair(GOOD + tail), GOOD)

    def test_configuration_without_its_data(self):
        """lime repair and a later lime check report the same about a truncated file."""
        good = scidac.gauge((2, 2, 2, 4), scidac.field((2, 2, 2, 4), 576, seed=1))
        at = good.index(b"ildg-binary-data") - 16
        self.assertEqual(self.repair(good[:at + 1000], "-n", status=1), good[:at + 1000])
        self.assertIn("record 2 is lost: type 'ildg-binary-data', the file had 856 of its 18432 "
                      "bytes", self.err)
        self.assertNotIn("good", self.out)
        self.repair(good[:at + 1000], status=1)
        self.assertIn("record 2 is lost", self.err)
        self.assertNotIn("good", self.out)
        self.assertIn(f"{self.path}: bad: 1 deviation: 1 record", self.out)
        self.assertEqual(self.check(), 1)

    def test_wrong_data_are_never_good(self):
        good = scidac.gauge((2, 2, 2, 4), scidac.field((2, 2, 2, 4), 576, seed=1))
        at = good.index(b"ildg-binary-data") + 200
        for args in ([], ["-n"]):
            self.repair(good[:at] + b"x" + good[at + 1:], *args)
            self.assertIn("data not examined (lime check --data)", self.out)


class Mends(RepairCase):
    def mended(self, bad, good, *messages):
        self.assertEqual(self.repair(bad), good)
        for word in messages:
            self.assertIn(word, self.out)
        self.assertEqual(self.copies(), {})
        self.assertEqual(self.check(), 0)
        self.assertEqual(self.again(), good)
        self.assertIn("structure good, nothing to do", self.out)

    def test_flags_follow_the_rule(self):
        names = "abcd"
        for bits in range(256):
            flags = [(bits >> 2 * i & 1, bits >> 2 * i + 1 & 1) for i in range(4)]
            bad = b"".join(record(n, n.encode(), *f) for n, f in zip(names, flags))
            ends = [flags[i][1] or i == 3 or flags[i + 1][0] for i in range(4)]
            good = b"".join(record(n, n.encode(), i == 0 or ends[i - 1], ends[i])
                            for i, n in enumerate(names))
            self.assertEqual(self.repair(bad), good, flags)
            self.assertEqual(self.check(), 0)

    def test_flags_are_named(self):
        self.mended(record("a", b"", 0, 0) + record("b", b"", 1, 0),
                    record("a", b"", 1, 1) + record("b", b"", 1, 1),
                    "offset 6: record 1: flags: MB set ME set",
                    "offset 150: record 2: flags: ME set")

    def test_reserved(self):
        self.mended(record("a", b"x", 1, 0, flags=0xbf, reserved=9) + record("b", b"", 0, 1),
                    container([("a", b"x"), ("b", b"")]), "reserved bits cleared",
                    "reserved byte cleared")

    def test_after_the_nul(self):
        raw = b"type\0garbage" + b"\xff" * 116
        self.mended(record("type", b"x", 1, 1, raw_type=raw), container([("type", b"x")]),
                    "offset 20: record 1: bytes after the type's NUL cleared")

    def test_padding(self):
        self.mended(record("a", b"12345", 1, 0, padding=b"abc") + record("b", b"", 0, 1),
                    container([("a", b"12345"), ("b", b"")]),
                    "offset 149: record 1: padding set to zero")
        for n in range(7):
            self.mended(record("a", b"1", 1, 1, padding=b"\1" * n), container([("a", b"1")]))

    def test_all_at_once(self):
        raw = b"type\0x".ljust(128, b"\1")
        bad = record("type", b"1", 0, 0, raw_type=raw, reserved=1, padding=b"\1" * 7)
        self.assertEqual(self.repair(bad * 100 + b"tail"),
                         container([("type", b"1")] * 100))

    def test_hopeless(self):
        for type, word in ((b"", "empty"), (b"t" * 128, "without a NUL"), (b"\xff", "non-ASCII")):
            bad = record(type, b"1", 1, 0) + b"tail"
            self.assertEqual(self.repair(bad, status=1), record(type, b"1", 1, 1))
            self.assertIn(word, self.err)
            self.assertIn("cannot be repaired", self.err)

    def test_million_records(self):
        count = 200000
        self.assertEqual(self.repair(record("t", b"x", 1, 0) * count),
                         record("t", b"x", 1, 1) * count)

    def test_corpus(self):
        for path in {row["path"] for row in limetest.manifest()}:
            data = limetest.read(path)
            self.assertEqual(self.repair(data), data + bytes(-len(data) % 8))


class Unchanged(RepairCase):
    def test_good(self):
        self.path = self.write("f.lime", GOOD)
        before = os.stat(self.path)
        self.again()
        after = os.stat(self.path)
        self.assertEqual((before.st_mtime_ns, before.st_ino), (after.st_mtime_ns, after.st_ino))
        self.assertIn("structure good, nothing to do", self.out)

    def test_empty(self):
        self.assertEqual(self.repair(b"", status=1), b"")
        self.assertIn("the file is empty", self.err)

    def test_dry_run(self):
        bad = record("a", b"1", 0, 0, reserved=3) + b"tail"
        self.assertEqual(self.repair(bad, "--dry-run", status=1), bad)
        self.assertEqual(self.copies(), {})
        for word in ("offset 152: 4 bytes cut (dry run)", "MB set ME set (dry run)",
                     "reserved byte cleared (dry run)", "nothing was changed"):
            self.assertIn(word, self.out)
        self.assertEqual(self.repair(GOOD, "-n"), GOOD)

    def test_not_a_container(self):
        """lime repair refuses other files, and ones whose beginning is damaged."""
        for status, data in ((2, b"text"), (2, b"text" * 100), (1, b"\0"), (1, bytes(200)),
                             (1, header("t", 0, 1, 1, version=2)), (1, bytes(4) + GOOD[4:])):
            for options in ("-n",), (), ("--force",):
                self.assertEqual(self.repair(data, *options, status=status), data)
                self.assertIn("nothing was changed", self.err)
                self.assertEqual(self.copies(), {})

    def test_cut_bytes(self):
        """lime repair -r skips what an earlier one has cut off."""
        self.repair(GOOD + header("t", 8, 1, 1), status=1)
        for more in "", ".1":
            put = self.write(f"f.lime.cut-{len(GOOD)}{more}", header("t", 8, 1, 1))
            self.lime("repair", "-r", os.path.dirname(self.path))
            self.assertIn("1 good, 0 bad", self.out)
            self.assertEqual(limetest.read(put), header("t", 8, 1, 1))

    def test_json(self):
        self.path = self.write("f.lime", bytes(200))
        self.again("--json", status=1)
        self.assertEqual(json.loads(self.out)["error"],
                         "the file begins with zeros instead of a record header")

    def test_not_a_file(self):
        fifo = os.path.join(limetest.tempdir(), "fifo")
        os.mkfifo(fifo)
        for path in (fifo, limetest.tempdir(), "/nonexistent"):
            self.assertEqual(run(["lime", "repair", path]).returncode, 2)

    def test_lock(self):
        bad = GOOD + b"tail"
        self.path = self.write("f.lime", bad)
        with open(self.path, "r+b") as held:
            limetest.lock(held)
            for args in ([], ["-n"], ["--force"]):
                self.assertEqual(self.again(*args, status=1), bad)
                self.assertIn("another process has this container open for writing", self.err)
        self.assertEqual(self.again(), GOOD)


if __name__ == "__main__":
    limetest.main()
