"""Lists of sums of whole files: lime checksum --write and --verify, lime stage --write-sums and
--verify-sums, md5sum, sha256sum and cksum."""

import json
import os
import shutil
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from limetest import put, read

NAMES = ["conf.2", "conf.10", "back\\slash", "new\nline", "return\r", "sub/blank s", "sub/*"]
KINDS = ["sha256", "md5", "adler32", "cksum"]


class Case(limetest.TestCase):
    def setUp(self):
        self.top = os.path.realpath(self.tempdir())
        os.makedirs(self.at("run/sub"))
        for i, name in enumerate(NAMES):
            put(self.at("run", name), os.urandom(40000 * i))
        self.list = self.at("run.sums")

    def at(self, *names):
        return os.path.join(self.top, *names)

    def lime(self, *args, code=0, cwd=None):
        done = limetest.run(["lime", *args], cwd=cwd or self.top)
        self.assertEqual(done.returncode, code, done)
        return done.stdout.decode(), done.stderr.decode()

    def write(self, *args, **kw):
        return self.lime("checksum", "--write", self.list, *args, **kw)

    def verify(self, *args, code=0, **kw):
        """Returns ({path below the top: status}, the summary)."""
        out, _ = self.lime("checksum", "--verify", self.list, "--json", *args, code=code, **kw)
        *files, last = map(json.loads, out.splitlines())
        return ({os.path.relpath(self.at(f["file"]), self.top): f["status"] for f in files},
                last["summary"])

    def flip(self, path):
        data = bytearray(read(path))
        data[len(data) // 2] ^= 1
        put(path, data)

    def print_list(self, *command):
        """Makes another program write the list."""
        names = [os.path.join("run", name) for name in NAMES]
        done = limetest.run([*command, *names], cwd=self.top)
        self.assertEqual(done.returncode, 0, done)
        put(self.list, done.stdout)


class Formats(Case):
    def test_other_programs_read_our_lists(self):
        for kind in KINDS:
            out, _ = self.write("-f", "--sum", kind, "-r", "run")
            self.assertIn(f"{len(NAMES)} good", out)
            if kind in ("md5", "sha256"):
                done = limetest.run([kind + "sum", "--strict", "-c", self.list], cwd=self.top)
                self.assertEqual((done.returncode, done.stdout.count(b": OK\n")), (0, len(NAMES)),
                                 done)
            self.assertEqual(self.verify(), self.verify(cwd="/"))
            self.assertEqual(self.verify()[1]["good"], len(NAMES))

    def test_lines(self):
        self.write("run/conf.10", "run/conf.2")
        self.assertEqual([line.split()[1] for line in read(self.list).decode().splitlines()],
                         ["run/conf.10", "run/conf.2"])
        self.write("-f", "--sum=adler32", "run/conf.10")
        self.assertEqual(read(self.list).decode(),
                         f"{zlib.adler32(read(self.at('run/conf.10'))):08x} run/conf.10\n")
        self.write("-f", "--sum=cksum", "run/conf.10")
        done = limetest.run(["cksum", "run/conf.10"], cwd=self.top)
        self.assertEqual(read(self.list), done.stdout)
        # A path that is not below the list's directory is absolute.
        self.list = self.at("run/sub/list")
        self.write("run/conf.10", "run/sub/*")
        self.assertEqual([line[66:] for line in read(self.list).decode().splitlines()],
                         [self.at("run/conf.10"), "*"])

    def test_our_program_reads_other_lists(self):
        for command in (["md5sum"], ["md5sum", "-b"], ["md5sum", "--tag"], ["sha256sum"],
                        ["sha256sum", "--tag"]):
            self.print_list(*command)
            self.assertEqual(self.verify()[1]["good"], len(NAMES), command)
        NAMES.remove("new\nline")  # cksum does not escape names
        self.addCleanup(NAMES.append, "new\nline")
        self.print_list("cksum")
        put(self.list, b"# a comment\n\n" + read(self.list))
        self.assertEqual(self.verify()[1]["good"], len(NAMES))

    def test_lines_that_end_with_cr_lf(self):
        self.print_list("sha256sum")
        put(self.list, read(self.list).replace(b"\n", b"\r\n"))
        self.assertEqual(self.verify()[1]["good"], len(NAMES))

    def test_standard_output(self):
        for kind in "sha256", "cksum":
            self.write("-f", "--sum", kind, "run/conf.10", "run/return\r")
            out, errors = self.lime("checksum", "--write", "-", "--sum", kind, "run/conf.10",
                                    "run/return\r")
            self.assertEqual(out.encode(), read(self.list))
            self.assertIn("2 files: 2 good", errors)
        self.assertEqual(sorted(os.listdir(self.top)), ["run", "run.sums"])
        _, errors = self.lime("checksum", "--write", "-", "--json", "run/conf.10", code=2)
        self.assertIn("--json requires a file for --write", errors)
        _, errors = self.lime("stage", "--write-sums", "-", "run/conf.10", "x", code=2)
        self.assertIn("--write-sums requires a file", errors)

    def test_invalid(self):
        self.write("run/conf.10")
        good = read(self.list)
        for junk in (b"no sum\n", b"0" * 40 + b"  run/conf.2\n", b"0" * 32 + b"\n",
                     b"\\" + b"0" * 32 + b"  a\\x\n", b"SHA1 (x) = 00\n"):
            put(self.list, good + junk)
            out, errors = self.lime("checksum", "--verify", self.list, code=2)
            self.assertIn("run/conf.10: good\n", out)
            self.assertIn("line 2: not a sum", errors)
        for content in (b"", b"# only\n", read(self.at("run/conf.10"))):
            put(self.list, content)
            self.lime("checksum", "--verify", self.list, code=2)
        put(self.list, good + good.replace(good[:4], b"0000"))  # contradicts itself
        self.assertEqual(self.verify(code=1)[0], {"run/conf.10": "bad"})


class Verify(Case):
    def test_damage(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.write("-f", "--sum", kind, "-r", "run")
                self.flip(self.at("run/conf.10"))
                found, summary = self.verify(code=1)
                self.assertEqual([name for name in found if found[name] != "good"],
                                 ["run/conf.10"])
                self.assertEqual((summary["good"], summary["bad"]), (len(NAMES) - 1, 1))
        os.rename(self.at("run/conf.2"), self.at("run/other"))
        found, _ = self.verify(code=2)
        self.assertEqual((found["run/conf.2"], found["run/conf.10"]), ("unreadable", "bad"))
        out, errors = self.lime("checksum", "--verify", "run.sums", "-q", code=2)
        self.assertEqual(out, "run/conf.2: unreadable\nrun/conf.10: bad\n")
        self.assertIn("lime: run/conf.2: open: No such file", errors)

    def test_copy_elsewhere(self):
        self.write("-r", "run")
        absolute = read(self.list).replace(b"  run", b"  " + self.at("run").encode())
        shutil.copytree(self.at("run"), self.at("other/run"))
        for content in (read(self.list), absolute):
            put(self.list, content)
            for directory in ("other", "other/run", "other/run/"):
                found, summary = self.verify(directory)
                self.assertEqual({name[:10] for name in found}, {"other/run/"})
                self.assertEqual(summary["good"], len(NAMES))
        self.flip(self.at("other/run/sub/*"))
        put(self.at("other/run/sub/more"), b"")
        found, summary = self.verify("other", "--list-skipped", code=1)
        self.assertEqual((found["other/run/sub/*"], found["other/run/sub/more"]),
                         ("bad", "skipped"))
        self.assertEqual((summary["bad"], summary["skipped"]), (1, 1))
        self.lime("checksum", "--verify", self.list, "none", code=2)

    def test_only_files_below_the_directory_are_verified(self):
        shutil.copytree(self.at("run"), self.at("copy"))
        put(self.at("run/list"), self.run_ok(["sha256sum", "../run/conf.2", "../run/conf.10"],
                                             cwd=self.at("run")))
        self.list = self.at("run/list")
        self.flip(self.at("copy/conf.10"))
        found, summary = self.verify("copy", code=1)
        self.assertEqual((found["copy/conf.2"], found["copy/conf.10"], summary["good"]),
                         ("good", "bad", 1))

    def test_usage(self):
        self.write("-r", "run")
        for args in (["--verify", self.list, "-r", "run"], ["--verify", self.list, "run", "run"],
                     ["--verify", self.list, "--write", "x", "run"], ["--sum=md5", "run"],
                     ["--write", "x", "--sum=sha1", "run"], ["--write", "x", "--add", "run"],
                     ["--write", "x"], ["-f", "run"]):
            self.lime("checksum", *args, code=2)
        self.assertFalse(os.path.exists(self.at("x")))


class Write(Case):
    def test_existing_list(self):
        self.write("run/conf.2")
        mine = read(self.list)
        _, errors = self.write("-r", "run", code=1)
        self.assertIn("use -f", errors)
        self.assertEqual(read(self.list), mine)
        self.list = shutil.copy(self.list, self.at("run/list"))
        out, _ = self.write("-f", "-r", "run")  # does not list itself
        self.assertIn(f"{len(NAMES)} good, 0 bad, 0 unverified, 0 unreadable, 1 skipped", out)
        self.assertEqual(self.verify()[1]["good"], len(NAMES))
        self.assertEqual(sorted(os.listdir(self.top)), ["run", "run.sums"])

    def test_unreadable(self):
        out, _ = self.write("--json", "run/conf.2", "run/none", "run/conf.10", code=2)
        self.assertEqual([json.loads(line)["status"] for line in out.splitlines()],
                         ["good", "unreadable", "good"])
        self.assertEqual(len(read(self.list).splitlines()), 2)
        before = read(self.list)
        _, errors = self.write("-f", "run/none", code=2)
        self.assertIn("not written: no file has a sum", errors)
        self.assertEqual(read(self.list), before)
        self.lime("checksum", "--write", "new", "run/none", code=2)
        self.assertFalse(os.path.exists(self.at("new")))

    def test_hint_for_a_file_in_place_of_the_list(self):
        before = read(self.at("run/conf.10"))
        _, errors = self.lime("checksum", "-f", "--write", "run/conf.10", "run/conf.2", code=2)
        self.assertIn("not a list of sums; name the list first", errors)
        self.assertEqual(read(self.at("run/conf.10")), before)

    def test_replaces_only_lists(self):
        put(self.at("names"), b"run/conf.10\n")
        for name, args in (("run/conf.10", ["run/conf.10"]), ("run/conf.10", ["-r", "run"]),
                           ("names", ["--files-from", "names"])):
            before = read(self.at(name))
            _, errors = self.lime("checksum", "--write", name, "-f", *args, code=2)
            self.assertIn(f"lime: {name}: line 1: not a sum", errors)
            self.assertEqual(read(self.at(name)), before)
        put(self.list, b"")
        self.write("-f", "run/conf.2")

    def test_file_with_more_bytes_than_its_size(self):
        _, errors = self.write("/proc/cpuinfo", code=2)
        self.assertIn("more bytes than its size", errors)


class Stage(Case):
    def setUp(self):
        super().setUp()
        shutil.rmtree(self.at("run"))
        os.makedirs(self.at("run"))
        for i in range(3):
            self.run_ok(["make-config", "--lattice", "4,4,4,4", "--seed", str(i),
                         "--lfn", "lfn://here", self.at(f"run/conf.{i}")])
        os.mkdir(self.at("dst"))
        self.list = self.at("dst/list")

    def damage(self, path):
        """Changes a byte that the SciDAC checksum does not cover."""
        put(path, read(path).replace(b"lfn://here", b"lfn://Here"))

    def stage(self, *args, code=0):
        out, errors = self.lime("stage", "--json", "-r", *args, "run", "dst", code=code)
        *files, summary = map(json.loads, out.splitlines())
        return [(f["status"], f["action"]) for f in files], summary["summary"], errors

    def test_write_and_verify(self):
        _, summary, _ = self.stage("--write-sums", self.list)
        self.assertEqual((summary["files"], summary["good"], summary["staged"]), (3, 3, 3))
        done = limetest.run(["md5sum", "-c", "--strict", "list"], cwd=self.at("dst"))
        self.assertEqual(done.stdout.count(b": OK\n"), 3, done)
        self.assertEqual(self.verify("dst")[1]["good"], 3)
        # The same command again updates the list.
        put(self.list, read(self.list).replace(b"conf.1", b"gone"))
        self.flip(self.at("dst/run/conf.2"))
        shutil.copystat(self.at("run/conf.2"), self.at("dst/run/conf.2"))
        _, summary, _ = self.stage("--sums=sha256", "-f", "--write-sums", self.list)
        self.assertEqual(summary["staged"], 3)
        lines = read(self.list).decode().splitlines()
        self.assertEqual(sorted(line.split()[1] for line in lines),
                         ["run/conf.0", "run/conf.1", "run/conf.2", "run/gone"])
        self.assertEqual([len(line.split()[0]) for line in lines], [64, 32, 64, 64])
        # An unrelated file is not replaced, and then nothing is staged.
        put(self.list, b"a letter\n")
        shutil.rmtree(self.at("dst/run"))
        done = limetest.run(["lime", "stage", "run/conf.0", "dst", "--write-sums", self.list],
                            cwd=self.top)
        self.assertEqual((done.returncode, os.listdir(self.at("dst")), read(self.list)),
                         (2, ["list"], b"a letter\n"))

    def test_existing_copies_are_compared_by_their_sums(self):
        source = self.at("run.sums")
        self.lime("checksum", "--write", source, "-r", "run")
        shutil.copytree(self.at("run"), self.at("dst/run"))
        os.utime(self.at("dst/run/conf.0"), (1, 1))
        self.assertIn("different modification time", self.stage(code=1)[2])
        found, _, _ = self.stage("--verify-sums", source)
        self.assertEqual(found, 3 * [("good", "there")])
        self.damage(self.at("dst/run/conf.0"))
        found, _, errors = self.stage("--verify-sums", source, code=1)
        self.assertEqual(found, [("bad", "failed")] + 2 * [("good", "there")])
        self.assertIn("the target exists and has the sum", errors)
        # The list names the copies, and is not that of the sources.
        self.lime("checksum", "--write", self.list, "-r", "dst/run")
        self.assertEqual(self.stage("--verify-sums", self.list)[0], 3 * [("good", "there")])

    def test_damaged_source(self):
        source = self.at("run.sums")
        self.lime("checksum", "--write", source, "--sum=adler32", "run/conf.0", "run/conf.1")
        self.damage(self.at("run/conf.0"))
        found, _, errors = self.stage("--verify-sums", source, code=1)
        self.assertEqual(found,
                         [("bad", "failed"), ("good", "staged"), ("unverified", "staged")])
        self.assertIn("run/conf.0: the file has the sum", errors)
        # A list is not made without sums.
        self.lime("stage", "--write-sums", self.list, "none", "dst", code=2)
        self.assertFalse(os.path.exists(self.list))
        self.assertIn("the list of sums does not name the file", errors)
        self.assertEqual(sorted(os.listdir(self.at("dst/run"))), ["conf.1", "conf.2"])


if __name__ == "__main__":
    limetest.main()
