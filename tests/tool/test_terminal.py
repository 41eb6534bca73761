"""No output of a program steers a terminal or forges a line, on stdout or stderr."""
import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import fakejob
import jobclient
import jobtest
import limetest
import mpitest
from limetest import container, header, record, run

# Escape sequences by ESC, by C1 as a byte and as U+009B; direction changes; line separators.
HOSTILE = (b"a\x1b[2J\x9b1\xc2\x9b2\xe2\x80\xae3\xd8\x9c4\xe2\x80\xa85\x7f6\xff7\xe2\x81\xa68"
           b"\xc3\xa9\nFORGED")
SHOWN = b"a?[2J?1??2???3??4???5?6?7???8\xc3\xa9?FORGED"  # as programs must print it
# The part that is UTF-8, for data that arrive as text.
UTF8 = HOSTILE.replace(b"\x9b1", b"").replace(b"\xc2\x9b2", b"\xc2\x9b").replace(b"\xff7", b"")
BIDI = {0x061C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def harmful_part(output, allowed="\n"):
    """Returns a harmful character of an output, or None."""
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        return error
    for c in text:
        if c not in allowed and (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or ord(c) in BIDI):
            return hex(ord(c))
    return "a forged line" if ("\n" + text).find("\nFORGED") >= 0 else None


class Harmless(limetest.TestCase):
    def defused(self, *args, status=None, shows=(SHOWN,), allowed="\n", **kw):
        """Runs a program; its outputs must be harmless and contain `shows`. Returns both."""
        done = run(args, **kw)
        if status is not None:
            self.assertEqual(done.returncode, status, (args, done))
        self.assertGreaterEqual(done.returncode, 0, args)
        output = done.stdout + done.stderr
        self.assertIsNone(harmful_part(output, allowed), (args, output))
        for text in shows:
            self.assertIn(text, output, args)
        return output

    def directory(self):
        """Creates a directory with a hostile name, in a directory of its own."""
        path = os.path.join(os.fsencode(self.tempdir()), HOSTILE)
        os.mkdir(path)
        return path

    def file(self, data, name=b"f"):
        """Creates a file in a directory with a hostile name."""
        path = os.path.join(self.directory(), name)
        limetest.put(path, data)
        return path


def xml(element, text):
    return b"<%s><version>1.0</version>%s</%s>" % (element, text, element)


FORMAT = ("ildg-format", xml(b"ildgFormat", b"<field>su3gauge&#x9b;&#x202e;x\xe2\x80\xae</field>"
                             b"<precision>32</precision><lx>1</lx><ly>1</ly><lz>1</lz><lt>1</lt>"))
SUM = ("scidac-checksum", xml(b"scidacChecksum", b"<suma>1</suma><sumb>2</sumb>"))
METADATA = [("xlf-info", b"beta" + HOSTILE + b" = 1" + HOSTILE), ("inverter-info", HOSTILE),
            ("scidac-file-xml", b"<a><b>x&#x9b;2J&#x202e;&#x2028;&#x7f;\xe2\x81\xa6</b></a>"),
            ("scidac-private-record-xml",
             xml(b"scidacRecord", b"<date>1&#x9b;2J&#x202e;</date><recordtype>0</recordtype>"
                 b"<datatype>x&#x202e;</datatype><precision>F</precision><colors>3</colors>"
                 b"<typesize>288</typesize><datacount>1</datacount>")),
            ("scidac-record-xml", b"<a><b>x\xe2\x80\xae</b></a>"),
            ("ildg-data-lfn", "lfn://x\u009b2J\u202e\u2028\u2066".encode() + b"\x9b\xff"),
            FORMAT, ("ildg-binary-data", bytes(288)), SUM]
TYPES = [(HOSTILE, b"1"), (b"\x9b", b"2"), (b"\x9b", b"3"), (b"t\xe2\x80\xae", b"4")]
FILE = container([METADATA, TYPES])


class Lime(Harmless):
    def test_any_file(self):
        """Missing, a directory, not a container, with deviations, truncated, or good."""
        whole = self.file(FILE)
        right = self.file(container([FORMAT, ("ildg-binary-data", bytes(288))]))
        odd = self.file(record(HOSTILE, b"1", 0, 0, flags=0xFF, padding=b"garbage"))
        cut = self.file(FILE + header("cut", 99, 1, 1) + b"x")
        text = self.file(b"no container" * 20)
        for path in (whole, right, odd, cut, text, self.directory(), whole + b".none"):
            for args in (["ls", path], ["ls", "-lh", path, path], ["info", path],
                         ["info", path, path], ["cat", path, "99"], ["cat", path, HOSTILE],
                         ["cat", path, "-t", b"\x9b"], ["cat", path, "-t", HOSTILE + b"x"],
                         ["check", path], ["check", "--data", "--strict", path],
                         ["check", "-r", os.path.dirname(path)], ["checksum", path],
                         ["checksum", path, HOSTILE + b"x"], ["verify", path],
                         ["verify", "-q", path], ["repair", "-n", path], ["lfn", path, path]):
                self.defused("lime", *args, shows=())
            self.defused("lime", "ls", path, path)
            self.defused("lime", "check", path)

    def test_changes(self):
        data = self.file(b"data")
        for path in (self.file(FILE), self.file(FILE + header("cut", 99, 1, 1)),
                     self.file(b"no container" * 20), self.directory(), data + b".none"):
            for args in (["append", path, "-t", HOSTILE, data], ["append", path, "-t", "t", path],
                         ["append", path, "-t", HOSTILE * 9, data], ["replace", path, "99", data],
                         ["replace", path, "1", data + b".none"], ["replace", path, HOSTILE, data],
                         ["rm", path, HOSTILE + b"x"], ["rm", path, "99"],
                         ["set", path, "1", "--type", HOSTILE], ["set", path, "99", "--type", "t"],
                         ["set", path, "1", "--type", HOSTILE * 9], ["lfn", "--set", HOSTILE, path],
                         ["lfn", "--set", UTF8.split(b"[2J")[1].split(b"\x7f")[0], path],
                         ["checksum", "--add", path], ["checksum", "--add", "--replace", path],
                         ["repair", path], ["repair", "--force", path]):
                self.defused("lime", *args, shows=())

    def test_packing(self):
        source, directory = self.file(FILE), self.directory()
        self.defused("lime", "unpack", source, os.path.join(directory, HOSTILE), status=0, shows=())
        self.defused("lime", "unpack", source, os.path.join(directory, HOSTILE), status=1)
        self.defused("lime", "unpack", source, os.path.join(directory, b"no", HOSTILE), status=1)
        self.defused("lime", "unpack", source, source, status=1)
        self.defused("lime", "pack", os.path.join(directory, HOSTILE), source, shows=())
        self.defused("lime", "pack", source, source + b"2")
        data, out = self.file(b"data"), os.path.join(directory, b"out")
        self.defused("lime", "pack", "-o", out, "-t", HOSTILE, data, status=0, shows=())
        self.defused("lime", "pack", "-o", out, "-t", "t", data + b".none", status=1)
        self.defused("lime", "pack", "-o", os.path.join(directory, b"no", HOSTILE), "-t", "t", data)
        for text in (HOSTILE, HOSTILE + b" t", data + b"\t" + HOSTILE,
                     b"\x9b\tt\n\xe2\x80\xae t\n"):
            self.defused("lime", "pack", "-o", out, "--list", self.file(text), shows=())

    def test_staging(self):
        source, bad = self.file(FILE, HOSTILE), self.file(b"no container" * 20)
        directory = self.directory()
        self.defused("lime", "stage", source, directory)
        self.defused("lime", "stage", bad, source + b".none", source, directory)
        self.defused("lime", "stage", "-r", os.path.dirname(source), directory)
        self.defused("lime", "stage", bad, os.path.join(directory, b"no", HOSTILE), status=1)
        self.defused("lime", "stage", "--files-from", source, directory, shows=())
        self.defused("lime", "stage", "--files-from", source + b".none", directory, status=2)
        self.defused("lime", "stage", "--job", source, source, directory)
        os.symlink(b"none", os.path.join(os.path.dirname(source), HOSTILE + b"l"))
        self.defused("lime", "stage", "-r", os.path.dirname(source), directory)

    def test_messages(self):
        for args in ([HOSTILE], ["help", HOSTILE], ["stage", "-j", HOSTILE, "a", "b"],
                     ["stage", "--sums", HOSTILE, "a", "b"],
                     ["stage", "--job-timeout", HOSTILE, "a", "b"],
                     ["stage", "--checkpoint", HOSTILE, "a", "b"],
                     ["cat", "f", "1", "--range", HOSTILE], ["lfn", "--set", HOSTILE, "f"],
                     ["checksum", "--site-bytes", HOSTILE, "f"],
                     ["checksum", "--lattice", HOSTILE, "f"], ["check", "-j", HOSTILE, "f"]):
            self.defused("lime", *args, status=2, shows=(), cwd=self.tempdir())
        for name in ("ls", "info", "cat", "unpack", "pack", "append", "replace", "rm", "set", "lfn",
                     "check", "checksum", "verify", "repair", "stage"):
            for word in (b"--" + HOSTILE, b"-\x9b", b"-\xe2\x80\xae", b"--help=" + HOSTILE,
                         b"-\x1b"):
                self.defused("lime", name, word, status=2, shows=())

    def test_attributes_of_other_file_systems(self):
        path = self.file(FILE)
        try:
            for name, value in (("type", b"t"), ("checksum", b"ok"), ("verify", b"ok" + UTF8),
                                ("reason", b'"' + HOSTILE)):
                os.setxattr(path, "user.lime." + name, value)
        except OSError:
            self.skipTest("no attributes here")
        for args in ([], ["-q"], ["--json"]):  # they do not make it a record of a mount
            self.defused("lime", "verify", *args, path, status=2)

    def test_old_names(self):
        path, directory = self.file(FILE), self.directory()
        alias = os.path.join(directory, b"lime_contents")
        os.symlink(limetest.program("lime"), alias)
        self.defused(os.fsdecode(alias), status=1)
        for name in ("lime_contents", "lemon_contents", "lime_unpack"):
            for bad in (path + b".none", self.file(b"no container" * 20)):
                self.defused(name, bad, status=1)
        for args in (["record", path, HOSTILE, "1"], ["record", path, "99", "1"],
                     ["type", path, HOSTILE + b"x"], ["type", path + b".none", "t"]):
            self.defused("lime_extract_" + args[0], *args[1:], status=1, shows=())
        self.defused("lime_unpack", path, status=0)
        name = HOSTILE.replace(b"\n", b"_")
        data = self.file(b"data", name)
        done = self.defused("lime_pack", self.file(b"%s %s\n" % (name, name)), directory + b"/out",
                            status=0, shows=(SHOWN.replace(b"?FORGED", b"_FORGED"),),
                            allowed="\n\t", cwd=os.path.dirname(data))
        self.assertEqual(done.count(b"\n"), 4)  # a heading, two for the record, a warning
        self.defused("lime_pack", self.file(name + b" t"), directory + b"/out", status=1, shows=(),
                     allowed="\n\t")

    def test_old_names_on_a_terminal(self):
        path = self.write("f", container([*TYPES, ("ascii", b"\x1b[2J\x7f\x07text")]))
        for name in ("lime_contents", "lemon_contents"):
            done, output = limetest.run_on_terminal([name, path])
            self.assertEqual(done.returncode, 0)
            self.assertIsNone(harmful_part(output.replace(b"\r\n", b"\n")), output)
            self.assertIn(b"Type:           " + SHOWN, output)
            self.assertIn(b'"?[2J??text"', output)
            self.assertIn(b"\x1b", self.run_ok([name, path]))  # unchanged in a pipe


class Json(Harmless):
    """Machine-readable output is exact, and is also harmless on a terminal."""

    def json(self, *args):
        done = run(args)
        self.assertIsNone(harmful_part(done.stdout), (args, done.stdout))
        self.assertTrue(done.stdout.isascii(), args)
        return json.loads(done.stdout)

    def setUp(self):
        self.name = UTF8.decode()
        self.path = os.path.join(os.fsencode(self.tempdir()), UTF8)
        limetest.put(self.path, FILE + record(UTF8, b"", 1, 1))

    def test_ls(self):
        listing = self.json("lime", "ls", "--json", self.path)
        self.assertEqual(os.path.basename(listing["file"]), self.name)
        self.assertEqual(listing["records"][-1]["type"], self.name)
        self.assertEqual(listing["records"][len(METADATA)]["type_hex"], HOSTILE.hex())

    def test_info(self):
        info = self.json("lime", "info", "--json", self.path)
        self.assertEqual(os.path.basename(info["file"]), self.name)
        facts = {record["type"]: record["facts"] for record in info["info"]}
        self.assertEqual(facts["scidac-file-xml"], {"b": "x\u009b2J\u202e\u2028\x7f\u2066"})
        self.assertEqual(facts["inverter-info"][""], "a [2J%9B1\u009b2\u202e3\u061c4\u20285\x7f6"
                         "%FF7\u20668\u00e9")
        self.assertEqual(info["lfn"], "lfn://x\u009b2J\u202e\u2028\u2066%9B%FF")
        self.assertEqual(info["fields"][0]["name"], "su3gauge\u009b\u202ex\u202e")

    def test_others(self):
        directory = self.directory()
        for args in (["check", "--json", "--data", self.path],
                     ["checksum", "--json", self.path, str(len(METADATA) - 1)]):
            self.assertEqual(os.path.basename(self.json("lime", *args)["file"]), self.name)
        staged = self.json("lime", "stage", "--json", self.path, directory)
        self.assertEqual(os.path.basename(staged["file"]), self.name)
        done = run(["lime", "stage", "--json", self.path + b".none", directory])
        self.assertIsNone(harmful_part(done.stdout + done.stderr))
        for command in ("ls", "info", "check", "checksum"):
            self.json("lime", command, "--json", self.path + b".none")

    def test_data_are_unchanged(self):
        for selector, data in ((["-t", HOSTILE], b"1"), (["xlf-info"], METADATA[0][1])):
            self.assertEqual(self.run_ok(["lime", "cat", self.path, *selector]), data)


@limetest.needs_fuse
class Limefs(Harmless):
    def test_messages(self):
        path, where = self.file(FILE), self.directory()
        self.defused("limefs", b"-\x9b", path, where, status=2, shows=(b"'-?'",))
        for args in ([b"--" + HOSTILE, path, where], ["-o", HOSTILE, path, where],
                     ["-o", b"max_open=" + HOSTILE, path, where],
                     ["-o", b"max_threads=" + HOSTILE, path, where], [path, where, HOSTILE],
                     [path, where + b".none"]):
            self.defused("limefs", *args, status=2)
        for option in ("readahead", "window", "extent", "forward_from", "stripe", "verify"):
            self.defused("limefs", "-o", option.encode() + b"=" + HOSTILE, path, where, status=2,
                         shows=())
        self.defused("limefs", path + b".none", where, status=1)
        self.defused("limefs", self.file(b"no container" * 20), where, status=1)
        self.defused("limefs", path, self.file(b"x"), status=1)
        self.defused("limefs", path, path, status=1)
        self.defused("limefs", where, self.file(b""), shows=())
        inside = os.path.join(where, HOSTILE)
        os.mkdir(inside)
        self.defused("limefs", where, inside, status=1)
        self.defused("limefs", "-o", b"fsname=" + HOSTILE + b",nonsense", path, where, status=2,
                     shows=())

    def test_status(self):
        for args in ([self.directory()], [self.file(b"")], [self.directory() + b".none"]):
            self.defused("limefs", "--status", *args, status=2)
            self.defused("limefs", "--status", "--json", *args, status=2)
        path = self.directory()
        try:
            os.setxattr(path, "user.limefs.stats", b'{"job": {"state": "\\u001b%s"}}' %
                        UTF8.replace(b"\x1b", b"").replace(b"\n", b""))
        except OSError:
            self.skipTest("no attributes here")
        self.defused("limefs", "--status", path, status=0, shows=())
        self.defused("limefs", "--status", "--json", path, status=0, shows=())
        os.setxattr(path, "user.limefs.stats", HOSTILE)
        self.defused("limefs", "--status", path, status=1)
        self.defused("limefs", "--status", "--json", path, status=1)

    def in_foreground(self, *args, use=lambda where: None, until=b""):
        """Returns the log of a daemon in the foreground after use(mount point) and `until`."""
        *options, source = args
        daemon = limetest.Foreground(source, *options)
        use(os.fsencode(daemon.path))
        self.assertTrue(limetest._wait(lambda: until in daemon.words().encode(), 160),
                        daemon.words())
        self.assertEqual(daemon.end(), 0)
        output = daemon.words().encode()
        self.assertIsNone(harmful_part(output), output)
        return output

    def test_log(self):
        """The log of a tree with broken containers, and of a refused change in a writable mount."""
        bad = self.file(FILE + b"tail", HOSTILE)
        limetest.put(os.path.join(os.path.dirname(bad), b"other"), header("t", 0, 1, 1, version=2))

        def read_all(where):
            for directory, _, _ in os.walk(where):
                os.listdir(directory)
        output = self.in_foreground(os.path.dirname(bad), use=read_all)
        self.assertIn(SHOWN + b": index: offset", output)
        self.assertIn(SHOWN + b": index: offset",
                      self.in_foreground(bad))

        def change(where):
            for name in (HOSTILE, b"009-" + HOSTILE, b"t" * 200 + b"\xe2\x80\xae"):
                try:
                    with open(os.path.join(where, name), "xb") as file:
                        file.write(b"x")
                except OSError:
                    pass
            for call in (lambda: os.mkdir(where + b"/" + HOSTILE),
                         lambda: os.rename(where + b"/001-t", where + b"/" + HOSTILE),
                         lambda: os.unlink(where + b"/001-t")):
                try:
                    call()
                except OSError:
                    pass
        path = self.file(container([("t", b"1"), ("u", b"2")]), HOSTILE)
        self.assertIn(SHOWN, self.in_foreground("-o", "rw", path, use=change))
        self.assertIn(b"INIT", self.in_foreground("-d", path, use=os.listdir))

    def test_a_job(self):
        """The output of mpirun and of a job."""
        path = self.file(FILE)
        script = os.path.join(self.tempdir(), "mpirun")
        limetest.put(script + ".words", b"ready\n" + HOSTILE.replace(b"\n", b"_") + b"\n")
        with open(script, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\ncat "$0.words"; exec sleep 999\n')
        os.chmod(script, 0o755)
        self.in_foreground("-o", "ranks=1,mpirun=" + script, path,
                           until=b"job: " + SHOWN.replace(b"?FORGED", b"_FORGED"))
        with open(script, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\nsed 1d "$0.words"\n')
        self.in_foreground("-o", "ranks=1,mpirun=" + script, path, until=b"does not start: ")
        self.defused("limefs", "-o", b"job_required,ranks=1,mpirun=/none/" + HOSTILE, path, self.tempdir(),
                     status=1, shows=(b": program not found; ",))
        socket = os.path.join(self.tempdir(), "job")
        with fakejob.FakeJob(socket) as job:
            job.handle = lambda *_: struct.pack("<I", 13) + HOSTILE
            self.in_foreground("-o", "job=" + socket, path, until=b"connect: " + SHOWN)

    def test_demo(self):
        built = self.tempdir()
        os.mkdir(os.path.join(built, "bin"))
        program = os.path.join(built, "bin", "make-config")
        limetest.put(program, b"#!/bin/sh\ncat \"$0.words\"; exit 1\n")
        limetest.put(program + ".words", HOSTILE.replace(b"\n", b"_"))
        make = os.path.join(built, "make")  # all is built
        os.symlink(shutil.which("true"), make)
        os.chmod(program, 0o755)
        self.defused(os.path.join(limetest.REPO, "scripts", "demo"), status=1, shows=(b"_FORGED",),
                     env={**os.environ, "B": built, "PATH": f"{built}:{os.environ['PATH']}"})


class LimefsIo(Harmless):
    def setUp(self):
        if not os.path.exists(jobtest.IO):
            self.skipTest("needs MPI")

    def test_messages(self):
        where = self.directory()
        for word in (b"-\x9b", b"-\x1b", b"-\x1b\x9b", b"-\xe2\x80\xae"):
            self.defused(jobtest.IO, word, status=2, shows=())
        for args in ([b"--" + HOSTILE], [HOSTILE], ["--socket", "a", HOSTILE],
                     ["--stop", "a", HOSTILE],
                     ["--socket", HOSTILE * 9], ["--socket", "a", "--stripe", HOSTILE],
                     ["--socket", "a", "--hint", HOSTILE], ["--socket", "a", "--ready", HOSTILE],
                     ["--socket", "a", "--lifeline", HOSTILE], [b"--socket" + HOSTILE]):
            self.defused(jobtest.IO, *args, status=2)
        self.defused(jobtest.IO, b"--help=" + HOSTILE, status=2, shows=())
        for action in ("--stop", "--status"):
            self.defused(jobtest.IO, action, HOSTILE, status=1, cwd=where)
            self.defused(jobtest.IO, action, where[-107:], status=1)

    def test_foreign_job(self):
        where = self.tempdir()
        socket = os.path.join(where, "job")
        hosts = {"name": UTF8.decode(), "ranks": [0]}
        status = {"version": UTF8.decode(), "hosts": [hosts], "open_files": [UTF8.decode(), 1]}
        text = json.dumps(status)
        raw = json.dumps({"version": UTF8[5:-7].decode()}, ensure_ascii=False)
        for reply in (struct.pack("<I", 0) + text.encode(), struct.pack("<I", 0) + raw.encode(),
                      struct.pack("<I", 0) + HOSTILE, struct.pack("<I", 13) + HOSTILE):
            def answer(job, connection, opcode, tag, payload, reply=reply):
                return reply if opcode == fakejob.STATUS else \
                    fakejob.FakeJob.answer(job, connection, opcode, tag, payload)
            with fakejob.FakeJob(socket) as job:
                job.handle = answer
                for args in (["--status", socket], ["--status", socket, "--json"]):
                    self.defused(jobtest.IO, *args, shows=())

    def test_a_job(self):
        directory = self.tempdir()
        socket = os.path.join(directory, os.fsdecode(HOSTILE))
        path = os.fsdecode(self.file(bytes(1 << 20)))
        with jobtest.Job(2, path=socket) as job:
            client = job.client(1 << 20)
            client.open(path)
            self.defused(jobtest.IO, "--status", socket, status=0)
            self.assertIsNone(harmful_part(run([jobtest.IO, "--status", socket, "--json"]).stdout))
            with self.assertRaises(jobclient.JobError) as caught:
                client.open(path, inode=1)
            self.assertIsNone(harmful_part(str(caught.exception.strerror).encode()))
            connection = job.connection()
            connection.send(99, HOSTILE)
            self.assertTrue(connection.is_dropped())
            second = jobtest.Job(1, path=socket).launch()
            self.assertTrue(jobtest.wait_until(second.is_gone, jobtest.START_S))
        for one, text in ((job, b": dropped: "), (second, SHOWN + b": listen: ")):
            ours = self.lines_of(b"limefs-io: ", limetest.read(one._log))
            self.assertIsNone(harmful_part(ours), ours)
            self.assertIn(text, ours)

    def lines_of(self, program, output):
        """Drops the lines of mpirun itself, which may contain anything."""
        return b"".join(line for line in output.splitlines(True) if line.startswith(program))

    def test_benchmark(self):
        for args in (["-f", os.path.join(self.directory(), b"no", b"f"), "2", "1"],
                     ["-r", "-f", self.file(b"no container" * 20), "1"]):
            done = mpitest.mpirun(1, os.path.join(limetest.BIN, "lemon_benchmark"), *args)
            self.assertEqual(done.returncode, 1)
            ours = self.lines_of(b"lemon_benchmark: ", done.stderr)
            self.assertIsNone(harmful_part(ours), ours)
            self.assertIn(SHOWN, ours)

    def test_bench(self):
        for args, status in ((["-b", HOSTILE, "f"], 2), (["--hint", b"k=" + HOSTILE, "f", "g"], 2),
                             (["-b", "posix", "--operations", "read", "--hint", HOSTILE, "f"], 2),
                             (["-b", "posix", os.path.join(self.directory(), b"no", b"f")], 1),
                             (["-b", "posix", "--operations", "read",
                               os.path.join(self.directory(), b"f")], 1),
                             (["-b", "posix", "--json", os.path.join(self.directory(), b"no", b"j"),
                               os.path.join(self.directory(), b"f")], 1)):
            done = mpitest.mpirun(1, os.path.join(limetest.BIN, "lime-bench"), *args)
            self.assertEqual(done.returncode, status, done.stderr)
            ours = self.lines_of(b"lime-bench: ", done.stderr)
            self.assertIsNone(harmful_part(ours + done.stdout), ours)
            if "g" not in args:
                self.assertIn(SHOWN, ours)


if __name__ == "__main__":
    limetest.main()
