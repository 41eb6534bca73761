"""The limefs process: options, readiness, permissions and cleanup."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import users
from writelib import put, read, until

CONTAINER = limetest.container([("info", b"hello"), ("data", b"d" * 1000000)])


class Help(limetest.TestCase):
    def test_help_and_version(self):
        done = limetest.run(["limefs", "--help"], check=True)
        for word in (b"usage: limefs", b"readahead=", b"attr_timeout=", b"max_open=",
                     b"allow_other", b"limefs -u"):
            self.assertIn(word, done.stdout)
        self.assertRegex(limetest.run(["limefs", "-V"], check=True).stdout, rb"limefs \d+\.\d+")

    def test_wrong_use(self):
        """The message names the wrong argument."""
        path, point = self.write("c.lime", CONTAINER), self.tempdir()
        for args, message in (([], ""), (["x"], ""),
                              (["--foo", path, point], "unknown option '--foo'"),
                              (["-Z", path, point], "unknown option '-Z'"),
                              (["-o", "foo=1", path, point], "unknown option 'foo=1'"),
                              (["-o", "readahead=lots", "x", "/tmp"], ""),
                              (["-o", "readahead=-1", "x", "/tmp"], ""),
                              (["-o"], "option '-o' requires a value"),
                              ([path, point, "x"], "unexpected argument 'x'"),
                              ([path, point + "/no"],
                               f"{point}/no: no such directory; create it with 'mkdir -p {point}/no'"),
                              (["-o", "job_required", path, point], "option 'job_required' requi"),
                              (["-u"], "-u: one mount point expected"),
                              (["-u", point], f"{point}: not a limefs mount"),
                              (["-u", point + "/no"], f"{point}/no: No such file"),
                              (["--status"], "no mount point"),
                              (["--status", point, "--foo"], "unknown option '--foo'"),
                              (["--status", point, point], "unexpected argument")):
            done = limetest.run(["limefs", *args])
            self.assertEqual((done.returncode, done.stdout), (2, b""), args)
            self.assertTrue(done.stderr.decode().startswith("limefs: " + message), done.stderr)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_a_job_whose_program_is_missing(self):
        path, point = self.write("c.lime", CONTAINER), self.tempdir()
        for mpirun in ("nosuch", "./nosuch -x", "/nosuch", point):
            done = limetest.run(["limefs", "-o", f"job_required,ranks=2,mpirun={mpirun}", path,
                                 point])
            self.assertEqual((done.returncode, limetest.mounts_under(point)), (1, []), mpirun)
            self.assertRegex(done.stderr, rb": program not found; .*; nothing is mounted")


@limetest.needs_fuse
class Process(limetest.TestCase):
    def setUp(self):
        self.path = self.write("c.lime", CONTAINER)

    def test_full_output(self):
        with limetest.Mount(self.path) as mount:
            for args in (["--help"], ["--version"], ["--status", mount.path],
                         ["--status", "--json", mount.path]):
                with open("/dev/full", "wb") as full:
                    done = limetest.run(["limefs", *args], stdout=full)
                self.assertEqual(done.returncode, 1, args)
                self.assertIn(b"standard output: write: No space left", done.stderr)

    def test_status_arguments_in_any_order(self):
        with limetest.Mount(self.path) as mount:
            for args in itertools.permutations(["--status", "--json", mount.path]):
                shown = json.loads(self.run_ok(["limefs", *args]))
                self.assertEqual(shown["job"]["state"], "none")
            self.assertIn(b"job  ", self.run_ok(["limefs", mount.path, "--status"]))

    def test_status_reports_why_there_is_no_job(self):
        with limetest.Mount(self.path, opts="ranks=2,mpirun=false") as mount:
            def reason():
                shown = json.loads(self.run_ok(["limefs", "--status", "--json", mount.path]))
                return shown["job"].get("reason")
            until(reason)
            self.assertEqual(reason(), "it does not start: mpirun has ended")
            self.assertRegex(self.run_ok(["limefs", "--status", mount.path]),
                             rb"job +(absent|starting): it does not start: mpirun has ended\n")
            self.assertEqual(read(mount.join("data")), b"d" * 1000000)

    def test_a_required_job_that_does_not_start(self):
        point = self.tempdir()
        for opts, reason in (("ranks=2,mpirun=false", "it does not start: mpirun has ended"),
                             (f"job={point}/none", f"{point}/none: connect: No such file")):
            for args in ([], ["-f"], ["-s"]):
                self.fails(["limefs", *args, "-o", "job_required," + opts, self.path, point],
                           f"limefs: job: {reason}")
                self.assertEqual(limetest.mounts_under(point), [])

    def test_a_job_that_is_not_required(self):
        """limefs warns at once, and the status has the reason."""
        for opts, reason in (("ranks=2,mpirun=nosuch", "nosuch: program not found; "),
                             ("ranks=4096", "ranks: at most ")):
            with limetest.Mount(self.path, opts=["rw", opts, "ino32"]) as mount:
                self.assertIn(f"limefs: {reason}", mount.words)
                shown = json.loads(self.run_ok(["limefs", "--status", "--json", mount.path]))
                self.assertEqual(shown["job"]["state"], "none")
                self.assertTrue(shown["job"]["reason"].startswith(reason), shown)
                self.assertEqual((shown["source"], shown["options"]),
                                 (os.path.realpath(self.path), f"rw,{opts},ino32"))
                text = self.run_ok(["limefs", "--status", mount.path]).decode()
                self.assertRegex(text, rf"(?m)^options +rw,{opts},ino32$")
                self.assertRegex(text, r"(?m)^uptime +0:0\d:\d\d$")
                read(mount.join("data"))
                text = self.run_ok(["limefs", "--status", mount.path]).decode()
                self.assertRegex(text, r"(?m)^read locally +9\d\dK$")

    def test_unmount(self):
        mount = self.mount(self.path)
        with open(mount.join("data"), "rb"):
            self.fails(["limefs", "-u", mount.path], f"{mount.path}: unmount: busy; ")
        self.run_ok(["limefs", "-u", os.path.basename(mount.path)],
                    cwd=os.path.dirname(mount.path))
        self.assertEqual(limetest.mounts_under(mount.path), [])
        self.fails(["limefs", "-u", "/proc"], "limefs: /proc: not a limefs mount", status=2)

    def test_mount_over_a_mount(self):
        mount = self.mount(self.path)
        self.fails(["limefs", self.path, mount.path],
                   f"limefs: {mount.path}: is already a mount point; unmount it with 'limefs -u "
                   f"{mount.path}', or give -o over_mount")
        with limetest.Mount(self.path, mountpoint=mount.path, opts="over_mount"):
            self.assertEqual(len(limetest.mounts_under(mount.path)), 2)
        self.assertEqual(read(mount.join("info")), b"hello")

    def test_relative_paths(self):
        where = self.tempdir()
        os.mkdir(os.path.join(where, "mnt"))
        shutil.copy(self.path, where)
        self.assertEqual(limetest.run(["limefs", "c.lime", "mnt"], cwd=where,
                                      stdout=subprocess.DEVNULL).returncode, 0)
        self.assertEqual(read(os.path.join(where, "mnt/info")), b"hello")
        limetest.run(["fusermount3", "-u", os.path.join(where, "mnt")], check=True)

    def test_foreground(self):
        daemon = limetest.Foreground(self.path)
        self.assertEqual(read(daemon.join("info")), b"hello")
        self.assertEqual(daemon.end(), 0)
        self.assertEqual(limetest.mounts_under(daemon.path), [])

    def test_faults_are_reported_once_and_escaped(self):
        daemon = limetest.Foreground(self.write("a\nb\x1b[2Jc.lime", CONTAINER + b"tail"))
        for _ in range(3):
            self.assertEqual(read(daemon.join("info")), b"hello")
            os.listdir(daemon.path)
        daemon.end()
        output = daemon.words()
        self.assertEqual(output.count("a?b?[2Jc.lime: index: offset "), 1, output)
        self.assertEqual(output.count("\n"), 1, output)

    def test_debug(self):
        with subprocess.Popen([limetest.program("limefs"), "-d", self.path, self.tempdir()],
                              stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            self.assertTrue(any(b"INIT" in line for line in process.stderr))
            process.terminate()
            process.stderr.read()

    def test_every_signal_unmounts(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            mount = self.mount(self.path)
            os.kill(mount.pid, number)
            until(lambda m=mount: not m.pids() and not m.mounted())

    def test_killed_during_a_read(self):
        mount = self.mount(self.path)
        with open(mount.join("data"), "rb", buffering=0) as file:
            file.read(10)
            os.kill(mount.pid, signal.SIGKILL)
            until(lambda: not mount.pids())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with self.assertRaises(OSError):  # immediately: it does not hang
                os.pread(file.fileno(), 1000000, 0)
                os.stat(mount.join("001-info"))
        time.sleep(1.1)  # the kernel caches the mount point's attributes for 1 s
        self.fails(["limefs", self.path, mount.path], f"limefs -u {mount.path}")
        self.run_ok(["limefs", "-u", mount.path])
        with limetest.Mount(self.path, mountpoint=mount.path):
            self.assertEqual(read(mount.join("info")), b"hello")

    def test_mounts_and_unmounts(self):
        where = self.tempdir()
        for i in range(40):
            limetest.run(["limefs", self.path, where], check=True, stderr=subprocess.DEVNULL)
            self.assertEqual(read(os.path.join(where, "info")), b"hello")
            limetest.run(["fusermount3", "-u", where], check=True)
            self.assertEqual(limetest.mounts_under(where), [], i)

    def test_descriptors_and_memory_stay_level(self):
        with limetest.Mount(self.path) as mount:
            def use():
                for _ in range(50):
                    read(mount.join("data"))
                    os.listdir(mount)
                    os.getxattr(mount.join("info"), "user.lime.type")
                    os.path.exists(mount.join("none"))

            for _ in range(2):
                limetest.at_once(*[(use,)] * 8)
                fds, size = mount.usage()
            limetest.at_once(*[(use,)] * 8)
            until(lambda: len(mount.usage()[0]) <= len(fds), 5)  # releases arrive late
            if not limetest.SANITIZED:  # sanitizers delay free()
                self.assertLess(mount.usage()[1], size + (8 << 20))

    def test_valgrind(self):
        for source, inside in ((self.path, ""), (os.path.dirname(self.path), "c.lime")):
            with limetest.valgrind(self, source) as daemon:
                read(daemon.join(inside, "data"))
                list(os.scandir(daemon.join(inside)))
                list(os.scandir(daemon.path))
                os.getxattr(daemon.join(inside, "info"), "user.lime.type")
                os.path.exists(daemon.join(inside, "none"))
                put(self.path, limetest.record("more" + inside, b"x", 1, 1), "ab")
                read(daemon.join(inside, "more" + inside))
                os.rename(self.path, self.path + ".away")
                os.path.exists(daemon.join(inside, "more"))
                os.rename(self.path + ".away", self.path)


@limetest.needs_fuse
class Mounting(limetest.TestCase):
    """Mounts by mount(8) and fstab, and access of other users."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.path = self.write("c, with\\ odd name.lime", CONTAINER)

    def run_mount(self, command, path, kind):
        """Runs the command and checks the mount's type; returns mount point and mount options."""
        if not shutil.which("mount.fuse3", path="/sbin:/usr/sbin:" + os.environ["PATH"]):
            self.skipTest("no mount.fuse3")
        where = self.tempdir()
        env = {**os.environ, "PATH": f"{limetest.BIN}:/sbin:/usr/sbin:{os.environ['PATH']}"}
        fstab = put(os.path.join(self.tempdir(), "fstab"), (
            f"{limetest.program('limefs')}#{path} {where} fuse "
            "ro,noauto,nofail,allow_other,_netdev,x-systemd.automount 0 0\n").encode())
        limetest.run([arg.format(where=where, path=path, fstab=fstab) for arg in command],
                     env=env, check=True, stderr=subprocess.DEVNULL)
        self.addCleanup(limetest.run, ["umount", where])
        self.assertEqual(read(os.path.join(where, "info")), b"hello")
        line = [line.split() for line in read("/proc/self/mounts").decode().splitlines()
                if where in line][0]
        self.assertEqual(line[2], kind)
        return where, line[3].split(",")

    def test_by_mount(self):
        """mount -t fuse.limefs runs this command, with limefs in the PATH. mount(8) always passes
        rw, and sets a PATH of its own, so fstab has to name the program."""
        command = ["mount.fuse3", "{path}", "{where}", "-t", "fuse.limefs", "-o"]
        _, options = self.run_mount([*command, "rw,nodev,nosuid"], self.path, "fuse.limefs")
        self.assertIn("ro", options)
        path = shutil.copy(self.path, os.path.join(self.tempdir(), "c.lime"))
        where, _ = self.run_mount([*command, "rw,nodev,nosuid,writable"], path, "fuse.limefs")
        put(os.path.join(where, "info"), b"HELLO")
        limetest.run(["umount", where], check=True)
        self.assertIn(b"HELLO", read(path))

    def test_fstab(self):
        path = shutil.copy(self.path, os.path.join(self.tempdir(), "c.lime"))
        self.run_mount(["mount", "-T", "{fstab}", "{where}"], path, "fuse.limefs")

    def test_others_see_nothing_unless_allowed(self):
        where = self.tempdir()
        users.let_in(where)
        with limetest.Mount(self.path, mountpoint=where):
            self.assertNotEqual(limetest.run([*users.AS_NOBODY, "ls", where]).returncode, 0)
        os.chmod(self.path, 0o644)
        with limetest.Mount(self.path, mountpoint=where, opts="allow_other"):
            self.assertEqual(self.run_ok([*users.AS_NOBODY, "cat", where + "/info"]), b"hello")
        os.chmod(self.path, 0o600)
        with limetest.Mount(self.path, mountpoint=where, opts="allow_other"):
            done = limetest.run([*users.AS_NOBODY, "cat", where + "/info"])
            self.assertIn(b"Permission denied", done.stderr)

    def test_ordinary_user_unmounts(self):
        users.open_device(self)
        directory = self.tempdir()
        users.let_in(directory)
        program = shutil.copy(limetest.program("limefs"), directory)
        path, where = os.path.join(directory, "c.lime"), os.path.join(directory, "mnt")
        put(path, CONTAINER)
        os.mkdir(where)
        os.chown(where, users.NOBODY_ID, users.NOBODY_ID)
        self.run_ok([*users.AS_NOBODY, program, path, where], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
        self.run_ok([*users.AS_NOBODY, program, "-u", where])
        self.assertEqual(limetest.mounts_under(where), [])

    def test_fusermount_messages_are_escaped(self):
        """A mount point's name in a message must not control the terminal or begin a line."""
        users.open_device(self)
        directory = os.fsencode(self.tempdir())
        users.let_in(os.fsdecode(directory))
        program = shutil.copy(limetest.program("limefs"), os.fsdecode(directory))
        put(directory + b"/c.lime", CONTAINER)
        for name in (b"a\x1b[2J\x9b\xe2\x80\xae", b"a\x9b\nb"):
            where = os.path.join(directory, name)  # owned by root
            os.mkdir(where)
            done = limetest.run([*users.AS_NOBODY, program, "-f", directory + b"/c.lime", where])
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rb"fusermount3: .*/a\?(\[2J\?\?\?\?|\?b)")
            self.assertNotRegex(done.stderr, rb"[\x1b\x9b\x80]|\nb")
            self.assertTrue(done.stderr.endswith(b"\n"))


if __name__ == "__main__":
    limetest.main()
