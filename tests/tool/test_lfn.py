"""lime lfn: logical file names shown, set and added, in containers of all shapes; kills."""
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
from limetest import container, program, read, run

FORMAT = ("ildg-format", scidac.ildg_format((1, 1, 1, 1), 32))
DATA = ("ildg-binary-data", bytes(range(256)) + bytes(32))
SUM = ("scidac-checksum", b"<scidacChecksum><suma>0</suma><sumb>0</sumb></scidacChecksum>")
OTHER = ("xlf-info", b"plaquette = 0.5\n")


def lfn(text):
    return ("ildg-data-lfn", text if isinstance(text, bytes) else text.encode())


class LfnCase(limetest.TestCase):
    def lime(self, *args, status=0):
        return super().lime("lfn", *args, status=status)

    def becomes(self, before, name, after, *record):
        """Sets the name in the container `before`; the result is `after`, byte for byte."""
        path = self.write("f.lime", container(before))
        self.assertEqual(self.lime("--set", name, path, *record), "")
        self.assertEqual(read(path), container(after))
        self.run_ok(["lime", "check", "-q", path])
        self.assertEqual(os.listdir(os.path.dirname(path)), ["f.lime"])

    def refused(self, before, name, *messages, record=(), status=1):
        path = self.write("f.lime", container(before))
        self.lime("--set", name, path, *record, status=status)
        for word in messages:
            self.assertIn(word, self.err)
        self.assertEqual(read(path), container(before))


class Show(LfnCase):
    def test_corpus(self):
        path = os.path.join(limetest.CORPUS, "qio_nersc_ildg.lime")
        self.assertEqual(self.lime(path), "lfn://test/lfn\n")
        none = os.path.join(limetest.CORPUS, "lemon_canonical_n1.lime")
        self.assertEqual(self.lime(path, none, status=1).splitlines()[:-1],
                         [f"{path}: lfn://test/lfn"])
        one, two = limetest.json_lines(self.lime("--json", path, none, status=1))
        self.assertEqual(one, {"file": path, "lfns": ["lfn://test/lfn"], "status": "good",
                               "error": None})
        self.assertEqual((two["lfns"], two["status"]), ([], "bad"))
        self.assertIn("no logical file name", two["error"])
        self.assertIn(f"{none}: no logical file name", self.err)

    def test_all_of_them(self):
        path = self.write("f", container([lfn(" lfn://one\n"), OTHER, lfn("lfn://two\0\0")]))
        self.assertEqual(self.lime(path), "lfn://one\nlfn://two\n")

    def test_capital_letters(self):
        """lime lfn finds and keeps the upper-case name that qcdutils writes."""
        capital = "ildg-data-LFN"
        path = self.write("f", container([FORMAT, DATA, (capital, b"lfn://one")]))
        self.assertEqual(self.lime(path), "lfn://one\n")
        self.lime("--set", "lfn://other", path)
        self.assertEqual(read(path), container([FORMAT, DATA, (capital, b"lfn://other")]))
        self.assertIn(b"LFN               lfn://other\n", self.run_ok(["lime", "info", path]))
        both = [[FORMAT, (capital, b"lfn://one"), DATA], [FORMAT, DATA, lfn("lfn://two")]]
        path = self.write("g", container(both))
        self.assertEqual(self.lime(path), "lfn://one\nlfn://two\n")
        self.lime("--set", "lfn://x", path, status=1)
        self.lime("--set", "lfn://x", path, "3")
        self.assertEqual(self.lime(path), "lfn://x\nlfn://two\n")

    def test_no_name(self):
        path = self.write("f", container([lfn("\n"), lfn("a\x1b[2J"), lfn("x" * 2000),
                                          lfn("lfn://four")]))
        self.assertEqual(self.lime(path, status=1), "lfn://four\n")
        for i in (1, 2, 3):
            self.assertIn(f"record {i}: ", self.err)
        self.assertNotIn("\x1b", self.err)

    def test_unusable(self):
        self.lime("/nonexistent", status=2)
        self.lime(self.write("f", b"hello, world\n" * 20), status=2)
        self.lime(status=2)
        self.lime("--nonsense", "f", status=2)
        self.lime("--set", "lfn://x", status=2)
        self.lime("--set", "lfn://x", "a", "b", "c", status=2)
        for option in "-r", "--files-from=l":
            self.lime("--set", "lfn://x", option, "a", status=2)


class Replace(LfnCase):
    def test_same_length_in_place(self):
        path = self.write("f", container([lfn("lfn://old"), FORMAT, DATA]))
        inode = os.stat(path).st_ino
        self.lime("--set", "lfn://new", path)
        self.assertEqual(read(path), container([lfn("lfn://new"), FORMAT, DATA]))
        self.assertEqual(os.stat(path).st_ino, inode)

    def test_shorter_in_place(self):
        self.becomes([lfn("lfn://old"), FORMAT, DATA], "lfn://x",
                     [lfn("lfn://x\0\0"), FORMAT, DATA])

    def test_longer(self):
        self.becomes([lfn("lfn://old"), FORMAT, DATA], "lfn://longer/name",
                     [lfn("lfn://longer/name"), FORMAT, DATA])

    def test_nul_at_the_end_is_kept(self):
        self.becomes([lfn("lfn://old\0"), FORMAT, DATA], "lfn://longer",
                     [lfn("lfn://longer\0"), FORMAT, DATA])
        self.becomes([lfn("lfn://old\0"), FORMAT, DATA], "lfn://newer",
                     [lfn("lfn://newer\0"), FORMAT, DATA])

    def test_last_record_takes_any_length(self):
        for new in ("lfn://new", "lfn://x", "lfn://" + "long" * 50):
            path = self.write("f", container([FORMAT, DATA, lfn("lfn://old")]))
            inode = os.stat(path).st_ino
            self.lime("--set", new, path)
            self.assertEqual(read(path), container([FORMAT, DATA, lfn(new)]))
            self.assertEqual(os.stat(path).st_ino, inode)

    def test_empty_and_invalid_names(self):
        self.becomes([lfn(""), FORMAT, DATA], "lfn://new", [lfn("lfn://new"), FORMAT, DATA])
        self.becomes([lfn("\x1b" * 20), FORMAT, DATA], "lfn://new",
                     [lfn(b"lfn://new".ljust(20, b"\0")), FORMAT, DATA])

    def test_one_of_several(self):
        before = [[FORMAT, DATA, lfn("lfn://one")], [FORMAT, DATA, lfn("lfn://two")], [OTHER]]
        self.refused(before, "lfn://new", "2 records are of type ildg-data-lfn")
        after = [[FORMAT, DATA, lfn("lfn://one")], [FORMAT, DATA, lfn("lfn://new")], [OTHER]]
        self.becomes(before, "lfn://new", after, "6")
        self.becomes(before, "lfn://new", after, "5")  # the ordinal of its data
        self.becomes(before, "lfn://new", after, "2.3")
        self.refused(before, "lfn://new", record=["9"])


class Add(LfnCase):
    NAME = "lfn://a/b"

    def test_at_the_end(self):
        path = self.write("f", container([[OTHER], [FORMAT, DATA, SUM]]))
        inode = os.stat(path).st_ino
        self.lime("--set", self.NAME, path)
        self.assertEqual(read(path), container([[OTHER], [FORMAT, DATA, SUM, lfn(self.NAME)]]))
        self.assertEqual(os.stat(path).st_ino, inode)
        self.assertEqual(self.lime(path), self.NAME + "\n")

    def test_inside(self):
        self.becomes([[FORMAT, DATA, SUM], [OTHER]], self.NAME,
                     [[FORMAT, DATA, SUM, lfn(self.NAME)], [OTHER]])
        self.becomes([[OTHER], [FORMAT, DATA], [OTHER]], self.NAME,
                     [[OTHER], [FORMAT, DATA, lfn(self.NAME)], [OTHER]])

    def test_one_of_several(self):
        two = [FORMAT, DATA, SUM, FORMAT, DATA, SUM]
        self.refused(two, self.NAME, "2 records are of type ildg-binary-data")
        self.becomes(two, self.NAME,
                     [FORMAT, DATA, lfn(self.NAME), SUM, FORMAT, DATA, SUM], "2")
        self.becomes(two, self.NAME, two + [lfn(self.NAME)], "5")

    def test_other_data(self):
        before = [("scidac-binary-data", b"12345678"), SUM]
        self.refused(before, self.NAME, "no record ildg-binary-data")
        self.becomes(before, self.NAME, before + [lfn(self.NAME)], "1")
        self.becomes(before + [lfn(self.NAME)], "lfn://b", before + [lfn("lfn://b")], "1")
        self.refused([("text", b"x")] + before, self.NAME, "is not lattice data", record=["1"])

    def test_empty_record_is_filled(self):
        for before in ([FORMAT, lfn(""), DATA], [FORMAT, DATA, lfn("")]):
            after = [lfn(self.NAME) if r[0] == "ildg-data-lfn" else r for r in before]
            for named in ((), ("ildg-binary-data",)):
                self.becomes(before, self.NAME, after, *named)


class Refusals(LfnCase):
    def test_names(self):
        for bad in ("", " ", " lfn://x", "lfn://x ", "lfn://\n", "lfn://\x1b", "x" * 1024):
            self.refused([FORMAT, DATA], bad, "--set", status=2)
            self.assertNotIn("\x1b", self.err)
        self.becomes([FORMAT, DATA], "lfn://" + "x" * 1017,
                     [FORMAT, DATA, lfn("lfn://" + "x" * 1017)])

    def test_warning_about_another_scheme(self):
        path = self.write("f", container([FORMAT, DATA]))
        self.lime("--set", "http://x", path)
        self.assertIn("warning", self.err)
        self.assertEqual(self.lime(path), "http://x\n")

    def test_damaged(self):
        data = container([FORMAT, DATA]) + b"trailing"
        path = self.write("f", data)
        self.lime("--set", "lfn://x", path, status=1)
        self.assertIn("lime repair", self.err)
        self.assertEqual(read(path), data)


class Kills(LfnCase):
    """After any kill, and a repair if needed, the container has the old or the new name."""

    def test_kills(self):
        seed = time.time_ns()
        print(f"# seed {seed}")
        dice = random.Random(seed)
        # LeakSanitizer reports a kill during its search.
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        old = "lfn://old/name"
        shapes = [([FORMAT, DATA, lfn(old)], "lfn://" + "new" * 40, {old}),
                  ([FORMAT, DATA, lfn(old)], "lfn://x", {old}),
                  ([FORMAT, lfn(old), DATA], "lfn://x", {old}),
                  ([FORMAT, lfn(old), DATA], "lfn://" + "new" * 40, {old}),
                  ([FORMAT, DATA, SUM], "lfn://x", {""})]
        for before, new, allowed in shapes:
            path = self.write("g.lime", container(before))
            begun = time.monotonic()
            self.lime("--set", new, path)
            longest = 1.2 * (time.monotonic() - begun)
            for _ in range(100 if limetest.STRESS else 15):
                path = self.write("f.lime", container(before))
                with subprocess.Popen([program("lime"), "lfn", "--set", new, path],
                                      env=env) as child:
                    time.sleep(dice.random() * longest)
                    child.kill()
                if run(["lime", "check", "-q", path]).returncode:
                    self.run_ok(["lime", "repair", path])
                self.run_ok(["lime", "check", "-q", path])
                got = run(["lime", "lfn", path]).stdout.decode().strip()
                self.assertIn(got, allowed | {new})


if __name__ == "__main__":
    limetest.main()
