"""lime check: each finding by name and offset, exit statuses, JSON."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from limetest import container, header, record, run

GOOD = container([[("first", b"12345"), ("second", b"x" * 16)], [("third", b"")]])
ONE = record("one", b"1", 1, 1)  # 152 bytes

# name: (bytes, code, offset, record)
BROKEN = {
    "mb missing": (ONE + record("t", b"", 0, 1), "mb-missing", 158, 2),
    "mb missing at once": (record("t", b"", 0, 1), "mb-missing", 6, 1),
    "mb doubled": (record("t", b"", 1, 0) + record("t", b"", 1, 1), "mb-inside", 150, 2),
    "me missing": (ONE + record("t", b"", 1, 0), "me-missing", 158, 2),
    "reserved bits": (ONE + record("t", b"", 1, 1, flags=0xc1), "reserved-flags", 158, 2),
    "reserved byte": (ONE + record("t", b"", 1, 1, reserved=7), "reserved-byte", 159, 2),
    "no type": (ONE + record("", b"", 1, 1), "type-empty", 168, 2),
    "long type": (ONE + record("t" * 128, b"", 1, 1), "type-long", 168, 2),
    "control": (ONE + record(b"a\x1b", b"", 1, 1), "type-ascii", 168, 2),
    "high bytes": (ONE + record(b"a\xff", b"", 1, 1), "type-ascii", 168, 2),
    "after the NUL": (ONE + record("t", b"", 1, 1, raw_type=b"t\0x".ljust(128, b"\0")),
                      "type-tail", 169, 2),
    "padding": (record("t", b"1", 1, 1, padding=b"\0\0\1\0\0\0\0") + ONE, "padding-nonzero",
                147, 1),
    "padding cut": (record("t", b"1", 1, 1, padding=b"\0\0"), "padding-cut", 147, 1),
    "header cut": (ONE + header("t", 0, 1, 1)[:-1], "header-cut", 152, 2),
    "first header cut": (header("t", 0, 1, 1)[:3], "header-cut", 0, 1),
    "data cut": (ONE + header("t", 9, 1, 1) + b"12345678", "data-cut", 152, 2),
    "2^62": (ONE + header("t", 2**62, 1, 1), "data-cut", 152, 2),
    "2^63": (ONE + header("t", 2**63, 1, 1), "length", 160, 2),
    "2^64-144": (ONE + header("t", 2**64 - 144, 1, 1), "length", 160, 2),
    "one byte": (ONE + b"x", "trailing", 152, 2),
    "zeros": (ONE + bytes(500), "trailing", 152, 2),
    "version 0": (ONE + header("t", 0, 1, 1, version=0), "version", 156, 2),
    "version 2": (ONE + header("t", 0, 1, 1, version=2), "version", 156, 2),
}
FAULTS = {"header-cut", "data-cut", "length", "trailing", "version"}


class Check(limetest.TestCase):
    def test_good(self):
        path = self.write("good.lime", GOOD)
        done = run(["lime", "check", path])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.decode(), f"{path}: good: 3 records in 2 messages, "
                                               f"{len(GOOD)} bytes\n")

    def test_empty(self):
        done = run(["lime", "check", self.write("empty", b"")])
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"good: 0 records in 0 messages, 0 bytes", done.stdout)

    def test_each_finding(self):
        for name, (data, code, offset, ordinal) in BROKEN.items():
            with self.subTest(name):
                path = self.write("broken", data)
                done = run(["lime", "check", path])
                self.assertEqual(done.returncode, 1)
                self.assertTrue(done.stderr.decode().startswith(
                    f"lime: {path}: offset {offset}: record {ordinal}: "), done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1)
                self.assertIn(f"{path}: 1 deviation".encode(), done.stdout)
                self.assertEqual(b"ends the container" in done.stdout, code in FAULTS)

    def test_each_finding_in_json(self):
        paths = [self.write("broken", data) for data, *_ in BROKEN.values()]
        done = run(["lime", "check", "--json", *paths])
        self.assertEqual((done.returncode, done.stderr), (1, b""))
        results = json.loads(done.stdout)
        for result, path, (data, code, offset, ordinal) in zip(results, paths, BROKEN.values(),
                                                               strict=True):
            self.assertEqual((result["file"], result["size"]), (path, len(data)))
            self.assertEqual(result["verdict"], "fault" if code in FAULTS else "deviations")
            self.assertEqual([(f["code"], f["offset"], f["ordinal"])
                              for f in result["findings"]], [(code, offset, ordinal)])
            self.assertTrue(result["findings"][0]["message"])

    def test_have_and_want(self):
        done = run(["lime", "check", "--json", self.write("f", BROKEN["data cut"][0])])
        finding = json.loads(done.stdout)["findings"][0]
        self.assertEqual((finding["have"], finding["want"]), (8, 9))

    def test_json_of_a_good_file(self):
        path = self.write("good.lime", GOOD)
        self.assertEqual(json.loads(self.run_ok(["lime", "check", "--json", path])),
                         {"file": path, "findings": [], "deviations": 0, "faults": 0,
                          "records": 3, "messages": 2, "size": len(GOOD), "verdict": "good"})

    def test_ten_thousand_are_all_named(self):
        path = self.write("many", record("t", b"", 1, 1, reserved=1) * 10000)
        done = run(["lime", "check", path])
        self.assertEqual(done.stderr.count(b"reserved byte"), 10000)
        self.assertIn(b": 10000 deviations: 10000 records in 10000 messages", done.stdout)
        findings = json.loads(run(["lime", "check", "--json", path]).stdout)["findings"]
        self.assertEqual(findings[-1]["offset"], 9999 * 144 + 7)

    def test_unusable(self):
        fifo = os.path.join(limetest.tempdir(), "fifo")
        os.mkfifo(fifo)
        for path, verdict in ((self.write("f", b"text" * 99), "not-a-container"),
                              (self.write("f", header("t", 0, 1, 1, version=2)),
                               "not-a-container"),
                              (fifo, "unreadable"), (limetest.tempdir(), "unreadable"),
                              ("/dev/zero", "unreadable"), ("/nonexistent", "unreadable")):
            done = run(["lime", "check", path])
            self.assertEqual(done.returncode, 2, path)
            self.assertIn(f"lime: {path}: ".encode(), done.stderr)
            done = run(["lime", "check", "--json", path])
            self.assertEqual(done.returncode, 2)
            self.assertEqual(json.loads(done.stdout)["verdict"], verdict)

    def test_quiet(self):
        for data, status in ((GOOD, 0), (BROKEN["padding"][0], 1), (b"text" * 50, 2)):
            done = run(["lime", "check", "-q", self.write("f", data)])
            self.assertEqual((done.returncode, done.stdout, done.stderr), (status, b"", b""))

    def test_worst_of_all(self):
        good, bad = self.write("g", GOOD), self.write("b", BROKEN["padding"][0])
        self.assertEqual(run(["lime", "check", good, bad, good]).returncode, 1)
        self.assertEqual(run(["lime", "check", good, "/none", bad]).returncode, 2)

    def test_corpus(self):
        for path in {row["path"] for row in limetest.manifest()}:
            done = run(["lime", "check", path])
            cut = os.path.getsize(path) % 8 != 0
            self.assertEqual(done.returncode, 1 if cut else 0)
            self.assertEqual(b"harmless" in done.stderr, cut)


if __name__ == "__main__":
    limetest.main()
