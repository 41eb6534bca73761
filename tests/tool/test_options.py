"""Messages of all programs about options that they do not accept."""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import mpitest

# Options of lime's sub-commands, and the message.
OF_LIME = (
    (("cat", "a", "-t"), "option '-t' requires a value"),
    (("cat", "a", "--type"), "option '--type' requires a value"),
    (("cat", "a", "--ty"), "option '--type' requires a value"),
    (("cat", "a", "-xt"), "unknown option '-x'"),
    (("ls", "--json=1", "a"), "option '--json' takes no value"),
    (("ls", "--json", "-xl", "a"), "unknown option '-x'"),
    (("ls", "a", "-l", "-x"), "unknown option '-x'"),
    (("ls", "-:", "a"), "unknown option '-:'"),
    (("ls", "--nosuch=1", "a"), "unknown option '--nosuch'"),
    (("ls", "--\x1b[2J", "a"), "unknown option '--?[2J'"),
    (("checksum", "--", "-x"), None),
    (("stage", "--che", "a", "b"), "option '--che' is ambiguous (--checkpoint, --check-there)"),
    (("convert", "--to", "nersx", "a", "b"),
     "--to: unknown format 'nersx' (nersc, milc, openqcd, ildg); did you mean 'nersc'?"),
    (("convert", "--to", "", "a", "b"), "--to: unknown format '' (nersc, milc, openqcd, ildg)"),
    (("convert", "--precision", "48", "a", "b"), "--precision: invalid value '48' (32, 64)"),
    (("convert", "--rows", "-1", "a", "b"), "--rows: invalid value '-1' (2, 3)"),
    (("convert", "--sequence", "x", "a", "b"), "--sequence: invalid value 'x' (a number)"),
    (("checksum", "-j", "0", "a"), "-j: invalid value '0' (a number from 1 to 65535)"),
    (("checksum", "--site-bytes", "0", "a"), "--site-bytes: invalid value '0' (bytes, from 1)"),
    (("checksum", "--lattice", "4", "--lattice", "4x", "a"),
     "--lattice: invalid value '4x' (extents, as in 32x32x32x64)"),
    (("cat", "--range", "x", "a", "b"), "--range: invalid value 'x' (OFF:LEN or OFF:)"),
    (("stage", "--sums", "md5,crc", "a", "b"),
     "--sums: unknown checksum 'crc' (cksum, adler32, md5, sha256)"),
    (("stage", "-j", "65", "a", "b"), "-j: invalid value '65' (a number from 1 to 64)"),
    (("stage", "--job-timeout", "0", "a", "b"),
     "--job-timeout: invalid value '0' (seconds, 1 to 86400)"),
    (("stage", "--checkpoint", "-1", "a", "b"),
     "--checkpoint: invalid value '-1' (bytes, as in 64M)"),
)

# Mistyped words, and the suggestion, "" for none.
MISTYPED = (
    (("chekc",), "chekc: unknown command; did you mean 'check'?"),
    (("cnvret", "a"), "cnvret: unknown command; did you mean 'convert'?"),
    (("--versoin",), "unknown option '--versoin'; did you mean '--version'?"),
    (("-x",), "unknown option '-x'; see lime --help"),
    (("xy",), "xy: unknown command; see lime --help"),
    (("help", "cehck"), "help: cehck: unknown command; did you mean 'check'?"),
    (("convert", "--to", "NERSC", "a", "b"),
     "convert: --to: unknown format 'NERSC' (nersc, milc, openqcd, ildg); did you mean 'nersc'?"),
    (("convert", "--name", "x", "a", "b.nersc"),
     "convert: --name and --table are for many files, but 'b.nersc' names one; leave them out, "
     "or give --to FORMAT and a directory"),
    (("ls", "--jsno", "a"), "ls: unknown option '--jsno'; did you mean '--json'?"),
    (("info", "--file-from=a"), "info: unknown option '--file-from'; did you mean '--files-from'?"),
    (("convert", "--to", "nercs", "a", "b"),
     "convert: --to: unknown format 'nercs' (nersc, milc, openqcd, ildg); did you mean 'nersc'?"),
    (("stage", "--sums", "md5,adler", "a", "b"),
     "stage: --sums: unknown checksum 'adler' (cksum, adler32, md5, sha256); "
     "did you mean 'adler32'?"),
    (("cat", "{file}", "ildg-fromat"),
     "{file}: record 'ildg-fromat': no such record; did you mean 'ildg-format'?"),
    (("cat", "{file}", "01-ildg-format"),
     "{file}: record '01-ildg-format': no such record; did you mean '001-ildg-format'?"),
)

MOUNTS = (
    (("-o", "ro,rnaks=2"), "unknown option 'rnaks=2'; did you mean 'ranks'?"),
    (("--statsu",), "unknown option '--statsu'; did you mean '--status'?"),
    (("-o", "verify=steam"),
     "verify: unknown value 'steam' (off, open, stream); did you mean 'stream'?"),
)

# Programs with a one-line message: their arguments, exit status and message.
OTHER_PROGRAMS = (
    (("lime", "--foo"), 2, "unknown option '--foo'; see lime --help"),
    (("limefs-run", "--foo", "true"), 125, "unknown option '--foo'; see limefs-run --help"),
    (("limefs-run", "-x", "true"), 125, "unknown option '-x'; see limefs-run --help"),
)

MPI_PROGRAMS = (
    (("lime-bench", "--nosuch", "f"), 2, "unknown option '--nosuch'; try lime-bench --help"),
    (("lime-bench", "-z", "f"), 2, "unknown option '-z'; try lime-bench --help"),
    (("lime-bench", "--size"), 2, "option '--size' requires a value; try lime-bench --help"),
    (("lime-bench", "-b", "posxi", "f"), 2, "--backend posxi: unknown back end; did you mean "
                                            "'posix'?"),
    (("lime-checkpoint", "infp", "f"), 2, "infp: unknown command; did you mean 'info'?"),
    (("lime-checkpoint", "info", "--nosuch", "f"), 2, "info: unknown option '--nosuch'; see "),
    (("lime-checkpoint", "generate", "-n"), 2, "generate: option '-n' requires a value; see "),
    (("lime-checkpoint", "generate", "-Z"), 2, "generate: unknown option '-Z'; see "),
)


class Options(limetest.TestCase):
    def commands(self):
        listed = self.run_ok(["lime", "help"]).decode()
        return re.findall(r"^  lime (\w+)", listed, re.MULTILINE)

    def test_unknown(self):
        self.assertGreater(len(self.commands()), 15)
        for command in self.commands():
            for option in ("--nosuch", "-Z"):
                done = limetest.run(["lime", command, option])
                self.assertEqual((done.returncode, done.stdout, done.stderr.decode()), (
                    2, b"", f"lime: {command}: unknown option '{option}'\n"
                            f"Try 'lime {command} --help'.\n"))

    def test_lime(self):
        for args, message in OF_LIME:
            done = limetest.run(["lime", *args])
            self.assertEqual(done.returncode, 2, args)
            if message:
                self.assertEqual(done.stderr.decode(), f"lime: {args[0]}: {message}\n"
                                                       f"Try 'lime {args[0]} --help'.\n")
            else:
                self.assertNotIn(b"option", done.stderr)

    def test_suggestions(self):
        path = self.write("f", limetest.container([("ildg-format", b"x")]))
        for args, message in MISTYPED:
            done = limetest.run(["lime", *(arg.format(file=path) for arg in args)])
            self.assertEqual(done.stderr.decode().splitlines()[0],
                             "lime: " + message.format(file=path))
            self.assertIn(done.returncode, (1, 2))
        for args, message in MOUNTS:
            done = limetest.run(["limefs", *args, path, self.tempdir()])
            self.assertEqual((done.returncode, done.stderr.decode()), (2, f"limefs: {message}\n"))

    def test_h_is_help(self):
        """-h prints what --help prints."""
        env = mpitest.environment()
        programs = [["lime"], ["limefs"], ["limefs-run"], ["lime_contents"], ["lime_pack"]]
        programs += [["lime", command] for command in self.commands()]
        if shutil.which("lime-bench", path=limetest.BIN):
            programs += [["limefs-io"], ["lime-bench"], ["lime-checkpoint"], ["lemon_benchmark"],
                         ["lime-checkpoint", "info"]]
        for program in programs:
            with self.subTest(program=program):
                shown = self.run_ok([*program, "--help"], timeout=120, env=env)
                self.assertEqual(self.run_ok([*program, "-h"], timeout=120, env=env), shown)
                if not program[0].startswith("lime_"):
                    self.assertIn(b"-h", shown)

    def check(self, table, env=None):
        for args, code, message in table:
            done = limetest.run(args, timeout=120, env=env)
            self.assertEqual(done.returncode, code, args)
            self.assertTrue(done.stderr.decode().startswith(f"{args[0]}: {message}"), done.stderr)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_other_programs(self):
        self.check(OTHER_PROGRAMS)

    def test_mpi_programs(self):
        if not shutil.which("lime-bench", path=limetest.BIN):
            self.skipTest("built without MPI")
        self.check(MPI_PROGRAMS, mpitest.environment())


if __name__ == "__main__":
    limetest.main()
