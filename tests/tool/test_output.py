"""Outputs of lime: it never replaces an input or a locked file, and an existing file only with -f;
a killed command leaves the old file or the new one, and the next run removes its temporary
file."""
import contextlib
import errno
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import limetest
import scidac
import users
import volumelib
from limetest import container, program, run

SPACE = "http://www.lqcd.org/ildg/QCDml/config2.0"
DOCUMENT = (f'<gaugeConfiguration xmlns="{SPACE}"><dataLFN/><precision/><markovSequence>'
            "<markovStep><update>1</update><record><field/><crcCheckSum/><avePlaquette/></record>"
            "</markovStep></markovSequence></gaugeConfiguration>\n")
SCHEMA = (f'<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="{SPACE}">'
          '<s:element name="gaugeConfiguration"/></s:schema>\n')
INPUT = re.compile(r"\{(?!out\})([^}]+)\}")
EXISTS = "exists already; use -f to replace it"
LOCKED = "another process has this container open for writing"
IS_INPUT = "is also the input"
OLD = container([("old", b"what was there before")])

# For each command and option that writes a file: the paths of its inputs in a mount if they
# differ, and inputs that the command line does not name.
COMMANDS = {
    "convert to nersc": ("lime convert -f --to nersc {conf.lime} {out}",
                         {"conf.lime": "conf.lime/conf.nersc"}, ()),
    "convert to ildg": ("lime convert --force --to ildg {conf.lime} {out}",
                        {"conf.lime": "conf.lime/conf.nersc"}, ()),
    "convert to milc": ("lime convert -f --to milc {conf.nersc} {out}", {}, ()),
    "convert to openqcd": ("lime convert -f --to openqcd {conf.nersc} {out}", {}, ()),
    "convert a set": ("lime convert -f --to nersc {set.vol0000} {out}", None, ("set.vol0001",)),
    "pack": ("lime pack -f -o {out} -t a {a.txt} -t b {conf.lime}",
             {"conf.lime": "conf.lime/003-ildg-binary-data"}, ()),
    "pack a list": ("lime pack --force -o {out} --list {list}", {}, ("a.txt", "conf.lime")),
    "pack a directory": ("lime pack -f parts {out}", None,
                         ("parts/manifest.tsv", "parts/001-first")),
    "lime_pack": ("lime_pack {list} {out}", {}, ("a.txt", "conf.lime")),
    "join": ("lime join -f {set.vol0000} {out}", None, ("set.vol0001",)),
    "qcdml": ("lime qcdml -f --template {t.xml} --schema {x.xsd} --out {out} {conf.lime}",
              {"conf.lime": "conf.lime"}, ()),
    "new": ("lime new -f {out}", {}, ()),
}
UNFORCED = [name for name in COMMANDS if name != "lime_pack"]


def make_inputs(directory, lattice="4,4,4,4", fill=1000):
    """Creates the inputs of all commands."""
    def put(name, data):
        limetest.put(os.path.join(directory, name), data)

    run(["make-config", "--lattice", lattice, os.path.join(directory, "conf.lime")], check=True)
    run(["lime", "convert", "--to", "nersc", "conf.lime", "conf.nersc"], cwd=directory, check=True)
    put("a.txt", b"some text\n" * fill)
    put("list", b"a.txt first\n\nconf.lime second\n")
    put("t.xml", DOCUMENT.encode())
    put("x.xsd", SCHEMA.encode())
    put("inner.lime", container([("first", b"1" * fill), ("second", b"2")]))
    run(["lime", "unpack", "inner.lime", "parts"], cwd=directory, check=True)
    dims, unit = (4, 2, 2, 4), struct.pack(">18f", *([1] + 7 * [0]) * 2, 1, 0)
    volumelib.Set(dims, [(288, unit * 4 * 64)], volumelib.blocks(dims, (1, 1, 1, 2)),
                  ildg=scidac.ildg_format(dims, 32)).write(directory, "set")


def listing(directory):
    """Returns the inode and size of each file in the tree."""
    return {os.path.relpath(os.path.join(at, name), directory):
            (os.lstat(os.path.join(at, name)).st_ino, os.lstat(os.path.join(at, name)).st_size)
            for at, directories, names in os.walk(directory) for name in directories + names}


def leftovers(directory):
    return [name for name in os.listdir(directory) if ".lime-tmp-" in name]


@contextlib.contextmanager
def locked(path):
    """Holds the lock of a writer of this project."""
    with open(path, "r+b") as file:
        limetest.lock(file)
        yield


class OutputCase(limetest.TestCase):
    def setUp(self):
        self.dir = self.tempdir()

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def start(self, name, out, force=True, instead=(), **kw):
        """Runs the command; `instead`: other names of inputs."""
        args = [word for word in COMMANDS[name][0].split()
                if force or word not in ("-f", "--force")]
        names = {"out": out, **dict(instead)}
        args = [re.sub(r"\{([^}]+)\}", lambda m: names.get(m[1], m[1]), word) for word in args]
        return run(args, cwd=self.dir, **kw)

    def refused(self, done, *errors):
        self.assertEqual(done.returncode, 1, done)
        for word in errors:
            self.assertIn(word, done.stderr.decode())


class IsInput(OutputCase):
    def setUp(self):
        super().setUp()
        make_inputs(self.dir)
        os.mkdir(self.path("sub"))
        self.links = self.tempdir()

    def inputs(self, name):
        return INPUT.findall(COMMANDS[name][0]) + list(COMMANDS[name][2])

    def check(self, name, *args, **kw):
        before = listing(self.dir)
        with self.subTest(name, args=args):
            self.refused(self.start(name, *args, **kw), IS_INPUT)
            self.assertEqual(listing(self.dir), before)

    def test_names(self):
        """The output is an input by the same path, by links, `..`, or a descriptor."""
        for name in COMMANDS:
            for at in self.inputs(name):
                symlink, hard = (os.path.join(self.links, f"{name} {way} {at}".replace("/", "-"))
                                 for way in ("symlink", "hard"))
                os.symlink(self.path(at), symlink)
                os.link(self.path(at), hard)
                for out in (at, self.path(at), symlink, hard, os.path.join("sub", "..", at)):
                    self.check(name, out, True)
                    self.check(name, out, False)
                with open(self.path(at), "rb") as file:
                    self.check(name, f"/proc/self/fd/{file.fileno()}", pass_fds=[file.fileno()])
                    self.check(name, "/dev/stdin", stdin=file)

    def test_standard_input(self):
        for name in ("convert to ildg", "convert to milc", "pack a list", "qcdml"):
            for at in INPUT.findall(COMMANDS[name][0]):
                with open(self.path(at), "rb") as file:
                    self.check(name, at, instead={at: "/dev/stdin"}, stdin=file)

    @limetest.needs_fuse
    def test_mount(self):
        """The output is an input through a mount, or the input is, or both are."""
        with limetest.Mount(self.dir) as mount, limetest.Mount(self.dir, opts="rw") as other:
            for name, (_, views, _) in COMMANDS.items():
                for at in self.inputs(name) if views is not None else ():
                    shown = mount.join(views.get(at, at))
                    if at in INPUT.findall(COMMANDS[name][0]):
                        self.check(name, at, instead={at: shown})
                    if os.path.isdir(other.join(at)):
                        self.check(name, other.join(at, "001-xlf-info"))
                        self.check(name, other.join(at, "not-there"))
                    else:
                        self.check(name, other.join(at))
                    if os.path.isfile(shown) and at in INPUT.findall(COMMANDS[name][0]):
                        view = other.join(views.get(at, at))
                        self.check(name, view, instead={at: shown})

    @limetest.needs_fuse
    def test_unpack_into_a_mount(self):
        os.mkdir(self.path("inner.lime.contents"))
        before = listing(self.dir)
        with limetest.Mount(self.dir, opts="rw") as mount:
            self.refused(run(["lime", "unpack", "-f", self.path("inner.lime"),
                              mount.join("inner.lime")]), IS_INPUT)
        for opts in ("rw", None):
            with limetest.Mount(self.path("inner.lime"), self.path("inner.lime.contents"), opts):
                self.refused(run(["lime_unpack", "inner.lime"], cwd=self.dir), IS_INPUT)
        self.assertEqual(listing(self.dir), before)

    def test_unpack(self):
        for name in ("001-first", "manifest.tsv"):
            shutil.copy(self.path("inner.lime"), self.path("parts", name))
            before = listing(self.dir), limetest.read(self.path("parts", name))
            self.refused(run(["lime", "unpack", "-f", f"parts/{name}", "parts"], cwd=self.dir),
                         IS_INPUT)
            self.assertEqual((listing(self.dir), limetest.read(self.path("parts", name))), before)
        os.mkdir(self.path("inner.lime.contents"))
        os.link(self.path("inner.lime"), self.path("inner.lime.contents", "msg01.rec01.first"))
        self.refused(run(["lime_unpack", "inner.lime"], cwd=self.dir), IS_INPUT)
        self.assertEqual(os.stat(self.path("inner.lime")).st_nlink, 2)

    def test_changes(self):
        """A command does not read its container as the new data."""
        before = listing(self.dir), limetest.read(self.path("inner.lime"))
        os.symlink(self.path("inner.lime"), os.path.join(self.links, "link"))
        for data in ("inner.lime", os.path.join(self.links, "link")):
            for command in (["append", "inner.lime", "-t", "x", data],
                            ["replace", "inner.lime", "1", data]):
                self.refused(run(["lime", *command], cwd=self.dir), "the container itself")
        self.assertEqual((listing(self.dir), limetest.read(self.path("inner.lime"))), before)


class Existing(OutputCase):
    def setUp(self):
        super().setUp()
        make_inputs(self.dir)
        self.out = self.path("out")

    def old(self, mode=0o640):
        limetest.put(self.out, OLD)
        os.chmod(self.out, mode)

    def untouched(self, done, *errors):
        self.refused(done, *errors)
        self.assertEqual(limetest.read(self.out), OLD)
        self.assertEqual(leftovers(self.dir), [])

    def test_force(self):
        """lime replaces a file only with -f, keeps its mode, and follows a symbolic link."""
        os.symlink("out", self.path("link"))
        for name in COMMANDS:
            with self.subTest(name):
                self.old()
                if name in UNFORCED:
                    self.untouched(self.start(name, "out", force=False), f"out: {EXISTS}")
                inode = os.stat(self.out).st_ino
                self.assertEqual(self.start(name, "link").returncode, 0)
                self.assertNotEqual(os.stat(self.out).st_ino, inode)
                self.assertNotEqual(limetest.read(self.out), OLD)
                self.assertEqual(stat.S_IMODE(os.stat(self.out).st_mode), 0o640)
                self.assertEqual(os.readlink(self.path("link")), "out")
                os.unlink(self.out)
                self.assertEqual(self.start(name, "out", force=False, umask=0o027).returncode, 0)
                self.assertEqual(stat.S_IMODE(os.stat(self.out).st_mode), 0o640)
                self.assertEqual(leftovers(self.dir), [])

    def test_not_a_file(self):
        """The output is a FIFO, device, directory or dangling link, or its directory is missing."""
        os.mkfifo(self.path("fifo"))
        os.symlink("nowhere", self.path("dangling"))
        before = listing(self.dir)
        for name in COMMANDS:
            for out, why in (("fifo", "not a regular file"), ("/dev/null", "not a regular file"),
                             ("parts", ""), ("none/out", ""), ("out/", ""),
                             ("dangling", "a symbolic link to a file that does not exist")):
                if out == "parts" and name.startswith("convert"):
                    continue  # lime convert writes into a directory, as cp does
                with self.subTest(name, out=out):
                    self.refused(self.start(name, out), f"{out}: ", why)
        self.assertEqual(listing(self.dir), before)

    def test_locked(self):
        """lime replaces or changes no container that another program of this project has locked."""
        self.old()
        with locked(self.out):
            for name in COMMANDS:
                with self.subTest(name):
                    self.untouched(self.start(name, "out"), f"out: lock: {LOCKED}")
            for command in ("append out -t x a.txt", "replace out 1 a.txt", "rm out 1",
                            "set out 1 --type y", "lfn --set lfn://a out",
                            "checksum --add --site-bytes 4 out 1",
                            "repair out"):
                with self.subTest(command):
                    self.untouched(run(["lime", *command.split()], cwd=self.dir), LOCKED)
        os.makedirs(self.path("into"))
        os.rename(self.out, self.path("into", "001-first"))
        with locked(self.path("into", "001-first")):
            self.refused(run(["lime", "unpack", "-f", "inner.lime", "into"], cwd=self.dir), LOCKED)
        self.assertEqual(os.listdir(self.path("into")), ["001-first"])
        self.assertEqual(limetest.read(self.path("into", "001-first")), OLD)

    def test_read_only_target_is_locked(self):
        """The process can't open the file for writing."""
        users.reach(self, self.dir)
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.old(0o444)
        os.chown(self.out, 54321, 54321)
        os.chmod(self.dir, 0o777)
        with locked(self.out):
            self.untouched(self.start("pack", "out", user=54321, group=54321, extra_groups=[]),
                           LOCKED)
        done = self.start("pack", "out", user=54321, group=54321, extra_groups=[])
        self.assertEqual(done.returncode, 0, done)

    def test_append_in_progress(self):
        self.old()
        with subprocess.Popen([program("lime"), "append", self.out, "-t", "x", "-"],
                              stdin=subprocess.PIPE) as child:
            child.stdin.write(b"first")
            child.stdin.flush()
            self.assertTrue(limetest._wait(lambda: os.stat(self.out).st_size > len(OLD), 60))
            for name in COMMANDS:
                with self.subTest(name):
                    self.refused(self.start(name, "out"), LOCKED)
            child.stdin.write(b" and last")
            child.stdin.close()
            self.assertEqual(child.wait(60), 0)
        self.assertEqual(self.run_ok(["lime", "cat", self.out, "2"]), b"first and last")

    def test_changed_in_the_meantime(self):
        """Another program creates, replaces or removes the target while the command runs."""
        other = container([("other", b"another program's")])
        limetest.put(self.path("big"), bytes(1 << 20))
        for before, then in ((False, True), (True, True), (True, False)):
            with self.subTest(before=before, then=then), contextlib.suppress(FileNotFoundError):
                os.unlink(self.out)
            if before:
                self.old()
            fault = faults.Faults(self.dir)
            fault.arm(faults.LIME, "copy_file_range", 1, 0, faults.HANG)
            with subprocess.Popen([program("lime"), "pack", "-fo", self.out, "-t", "x", "big"],
                                  env=fault.environment(), stderr=subprocess.PIPE,
                                  cwd=self.dir) as child:
                self.assertTrue(limetest._wait(lambda: fault.struck, 60))
                if then:
                    limetest.put(self.path("another"), other)
                    os.rename(self.path("another"), self.out)
                else:
                    os.unlink(self.out)
                fault.disarm()
                errors = child.communicate(timeout=60 * limetest.SLOWNESS)[1]
            self.assertEqual(child.returncode, 1)
            self.assertIn(b"out: not written: another process has", errors)
            self.assertEqual(os.path.exists(self.out), then)
            self.assertTrue(not then or limetest.read(self.out) == other)
            self.assertEqual(leftovers(self.dir), [])

    def test_replaced_before_it_is_locked(self):
        """A command that waits for the lock changes the file that has the name afterwards."""
        conf = limetest.read(self.path("conf.lime"))
        for command in ("append out -t x a.txt", "replace out 1 a.txt", "rm out 2", "repair out",
                        "set out 1 --type y", "lfn --set lfn://a out"):
            with self.subTest(command):
                limetest.put(self.path("expected"), conf)
                run(["lime", *re.sub(r"\bout\b", "expected", command).split()], cwd=self.dir,
                    check=True)
                self.old()
                fault = faults.Faults(self.dir)
                fault.arm(faults.LIME, "lock", 1, 0, faults.HANG)
                with subprocess.Popen([program("lime"), *command.split()], cwd=self.dir,
                                      env=fault.environment(), stdout=subprocess.DEVNULL) as child:
                    self.assertTrue(limetest._wait(lambda: fault.struck, 60))
                    limetest.put(self.path("another"), conf)
                    os.rename(self.path("another"), self.out)
                    fault.disarm()
                    self.assertEqual(child.wait(60 * limetest.SLOWNESS), 0)
                self.assertEqual(limetest.read(self.out), limetest.read(self.path("expected")))

    def test_access_control_list(self):
        """lime keeps the list and grants no new access, even under a default list."""
        def lists(path):
            return {name: os.getxattr(path, name) for name in os.listxattr(path)
                    if name == users.ACL}

        with_list, new = users.acl(0o600, 54321, 6), users.acl(0o777, 54322, 7)
        try:
            self.old(0o600)
            os.setxattr(self.out, users.ACL, with_list)
        except OSError as error:
            self.skipTest(f"no access control lists here: {error}")
        before = os.stat(self.out).st_mode, lists(self.out)
        self.start("pack", "out", check=True)
        self.assertEqual((os.stat(self.out).st_mode, lists(self.out)), before)
        os.unlink(self.out)
        self.old(0o640)
        os.setxattr(self.dir, users.DEFAULT_ACL, new)
        self.start("pack", "out", check=True)
        self.assertEqual(stat.S_IMODE(os.stat(self.out).st_mode), 0o640)
        self.assertEqual(lists(self.out), {})

    def test_no_modes(self):
        """A file system that refuses every change of a mode and gives all files the same mode."""
        fault = faults.Faults(self.dir)
        for name, mode in (("new", None), ("out", 0o600)):
            with self.subTest(name):
                if mode:
                    self.old(mode)
                fault.arm(faults.LIME, "fchmod", 1, errno.EPERM, lasts=True)
                self.start("pack", name, env=fault.environment(), check=True)
                self.assertEqual(leftovers(self.dir), [])

    @limetest.needs_fuse
    def test_mounted_for_writing(self):
        self.old()
        with limetest.Mount(self.out, opts="rw") as mount:
            with open(mount.join("new"), "wb") as file:
                file.write(b"data")
                os.fsync(file.fileno())
                for name in COMMANDS:
                    with self.subTest(name):
                        self.refused(self.start(name, "out"), LOCKED)
        self.assertEqual(self.run_ok(["lime", "cat", self.out, "2"]), b"data")

    def test_other_users(self):
        """A read-only directory, another user's file, a sticky directory."""
        users.reach(self, self.dir)
        if os.geteuid() != 0:
            self.skipTest("needs root")
        who = {"user": 54321, "group": 54321, "extra_groups": []}
        for mode, of_file, names in ((0o755, 0o644, ("out", "new")), (0o777, 0o600, ("out",)),
                                     (0o1777, 0o666, ("out",))):
            os.chmod(self.dir, mode)
            self.old(of_file)
            for name in COMMANDS:
                for out in names:
                    with self.subTest(name, mode=oct(mode)):
                        before = listing(self.dir)
                        self.refused(self.start(name, out, **who), f"{out}: ",
                                     "ermi")  # "Permission denied" or "not permitted"
                        self.assertEqual(listing(self.dir), before)
                        self.assertEqual(limetest.read(self.out), OLD)


class FullDisk(OutputCase):
    def test_full(self):
        """On a full disk an old file is unchanged, and no new one is created."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        make_inputs(self.dir, fill=20000)
        small = self.path("small")
        os.mkdir(small)
        users.mount("none", small, "tmpfs", "size=64k")
        self.addCleanup(limetest._detach, small)
        with open(os.path.join(small, "fill"), "wb") as file, contextlib.suppress(OSError):
            file.write(bytes(56 << 10))
        limetest.put(os.path.join(small, "old"), OLD)
        with contextlib.suppress(OSError), open(os.path.join(small, "rest"), "wb") as file:
            while True:
                os.write(file.fileno(), bytes(1 << 10))
        before = listing(small)
        for name in COMMANDS:
            for out in ("small/old", "small/new") if name != "new" else ():
                with self.subTest(name, out=out):
                    self.refused(self.start(name, out), f"{out}: ", "No space left on device")
                    self.assertEqual(listing(small), before)
        self.assertEqual(limetest.read(os.path.join(small, "old")), OLD)


class FullOutput(limetest.TestCase):
    def test_full(self):
        """Every command reports a failed write to standard output with the reason."""
        qio, gauge = (os.path.join(limetest.CORPUS, name + ".lime")
                      for name in ("qio_nersc_ildg", "tm_clime_gauge_4444_p64_n1"))
        target = self.tempdir()
        for args in (["lime", "cat", qio, "1"], ["lime", "cat", qio, "7"],
                     ["lime", "cat", gauge, "3.f4.npy"], ["lime", "refs", gauge],
                     ["lime", "info", qio], ["lime", "ls", qio], ["lime", "ls", "--json", qio],
                     ["lime", "check", *[qio] * 20], ["lime", "stage", qio, target],
                     ["lime", "stage", "--json", qio, target],
                     ["lime_contents", qio], ["lime_extract_record", qio, "2", "1"]):
            with self.subTest(args), open("/dev/full", "wb") as full:
                self.fails(args, "standard output: write: No space left", stdout=full)


class Killed(OutputCase):
    """SIGKILL during a write."""

    def setUp(self):
        super().setUp()
        make_inputs(self.dir)
        self.out = self.path("out")

    def test_in_the_middle(self):
        """The input is a hole whose copy takes longer than the test."""
        with open(self.path("hole"), "wb") as file:
            file.truncate(40 << 30)
        with open(self.path("hole.lime"), "wb") as file:
            file.write(limetest.header("hole", 40 << 30, 1, 1))
            file.truncate(144 + (40 << 30))
        os.mkdir(self.path("into"))
        for directory, args in ((self.dir, ["pack", "-f", "-o", "out", "-t", "x", "hole"]),
                              (self.path("into"), ["unpack", "hole.lime", "into"])):
            limetest.put(self.out, OLD)
            with subprocess.Popen([program("lime"), *args], cwd=self.dir,
                                  stderr=subprocess.DEVNULL) as child:
                self.assertTrue(limetest._wait(lambda: leftovers(directory), 60))
                # lime keeps the temporary file of a running process.
                self.start("new", os.path.join(directory, "another.lime"), check=True)
                self.assertEqual(len(leftovers(directory)), 1)
                os.unlink(os.path.join(directory, "another.lime"))
                child.kill()
                self.assertEqual(child.wait(60), -signal.SIGKILL)
            self.assertEqual(limetest.read(self.out), OLD)
            self.assertEqual(len(leftovers(directory)), 1)
            if directory == self.dir:
                self.start("new", "another.lime", check=True)
            else:
                run(["lime", "unpack", "inner.lime", "into"], cwd=self.dir, check=True)
            self.assertEqual(leftovers(directory), [])

    @limetest.not_with_thread_sanitizer
    def test_signals(self):
        """On a signal a process removes its temporary file; the old file is unchanged."""
        with open(self.path("hole"), "wb") as file:
            file.truncate(40 << 30)
        limetest.put(self.out, OLD)
        before = listing(self.dir)
        for out in ("out", "new"):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with subprocess.Popen([program("lime"), "pack", "-fo", out, "-t", "x", "hole"],
                                      cwd=self.dir, stderr=subprocess.DEVNULL) as child:
                    self.assertTrue(limetest._wait(lambda: leftovers(self.dir), 60))
                    child.send_signal(number)
                    self.assertEqual(child.wait(60), -number)
                self.assertEqual(listing(self.dir), before)
        self.assertEqual(limetest.read(self.out), OLD)

    def test_other_files_are_kept(self):
        """lime removes only temporary files of processes of this host that have ended."""
        mark = re.compile(r"\.lime-tmp-([0-9a-f]{8})-(\d+)-([0-9a-f]+)-(\d+)$")
        name = self.stale()
        host, pid, start, count = mark.search(name).groups()
        keep = [f".a.lime-tmp-{int(host, 16) ^ 1:08x}-{pid}-{start}-{count}",  # another host
                f".b.lime-tmp-{host}-{os.getpid()}-0-{count}",                 # alive
                f"c.lime-tmp-{host}-{pid}-{start}-{count}",                    # not hidden
                f".d.lime-tmp-{host}-{pid}-{start}-{count}x", ".e.lime-tmp-", ".f"]
        for other in keep:
            limetest.put(self.path(other), b"precious")
        os.mkdir(self.path(f".g.lime-tmp-{host}-{pid}-{start}-{count}"))
        os.symlink("a.txt", self.path(f".h.lime-tmp-{host}-{pid}-{start}-{count}"))
        keep += [f".g.lime-tmp-{host}-{pid}-{start}-{count}",
                 f".h.lime-tmp-{host}-{pid}-{start}-{count}"]
        if os.geteuid() == 0:
            keep.append(f".i.lime-tmp-{host}-{pid}-{start}-{count}")
            users.put(self.path(keep[-1]), b"precious", 54321)
        # Another process has this PID now.
        with open(self.path(f".j.lime-tmp-{host}-{os.getpid()}-1-{count}"), "wb"):
            pass
        self.start("new", "new.lime", check=True)
        self.assertEqual([other for other in keep if not os.path.lexists(self.path(other))], [])
        self.assertEqual([other for other in leftovers(self.dir) if other not in keep], [])

    def stale(self):
        """Kills a command; returns the name of its temporary file."""
        with open(self.path("hole"), "wb") as file:
            file.truncate(40 << 30)
        with subprocess.Popen([program("lime"), "pack", "-o", "stale", "-t", "x", "hole"],
                              cwd=self.dir, stderr=subprocess.DEVNULL) as child:
            self.assertTrue(limetest._wait(lambda: leftovers(self.dir), 60))
            child.kill()
        return leftovers(self.dir)[0]


if __name__ == "__main__":
    limetest.main()
