"""Mounting containers and trees with rw: recovery, refusals, users and directories."""

import concurrent.futures
import errno
import os
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import users
import writelib
from writelib import A, B, put, read, some, until


@limetest.needs_fuse
class Mounting(writelib.TestCase):
    def test_unfinished_record_is_cut(self):
        """The mount cuts an unfinished record with a message and corrects the message flags."""
        good = limetest.container([A, B])
        half = limetest.record("unfinished", b"u" * 1000, 0, 1, magic=0)
        for tail in (half[:144], half[:700], half[:144] + b"u" * 50000, half[:8], half):
            with self.subTest(len(tail)):
                path = self.write("c.lime", good + tail)
                mount = self.rw(path)
                self.assertRegex(mount.words, r"c\.lime.*offset.*cut")
                self.assertEqual(sorted(os.listdir(mount)), ["001-first", "002-second"])
                put(mount.join("new"), b"x")
                mount.stop()
                self.assertHolds(path, [A, B, ("new", b"x")])
                with self.rw(path) as again:
                    self.assertEqual(again.words, "")

    def test_foreign_data_is_not_lost(self):
        """Foreign data behind the records is not lost: the mount fails, or saves it in a file."""
        good = limetest.container([A, B])
        for tail in (b"a user's notes!!" * 100, limetest.header("cut", 5000, 1, 1) + b"x" * 3000):
            path = self.write("c.lime", good + tail)
            done = limetest.run(["limefs", "-o", "rw", path, where := self.tempdir()],
                                timeout=20, stdout=subprocess.DEVNULL)
            if done.returncode != 0:
                self.assertIn(b"repair", done.stderr)
                self.assertEqual(read(path), good + tail)
                continue
            limetest.run(["fusermount3", "-u", where], check=True)
            saved = b"".join(read(os.path.join(os.path.dirname(path), name))
                             for name in os.listdir(os.path.dirname(path)))
            self.assertIn(tail, saved)

    def test_cut_tails_are_saved(self):
        """Each cut tail is saved in a new file with the mode of the container."""
        good, tails = limetest.container([A, B]), (b"notes" * 300, b"more" * 200)
        path = self.write("c.lime", good)
        os.chmod(path, 0o640)
        for tail in tails:
            put(path, tail, "ab")
            with self.rw(path):
                self.assertEqual(read(path), good)
        for i, tail in enumerate(tails):
            saved = f"{path}.cut-{len(good)}" + (f".{i}" if i else "")
            self.assertEqual(read(saved), tail)
            self.assertEqual(stat.S_IMODE(os.stat(saved).st_mode), 0o640)

    def test_not_a_container(self):
        for data in (b"no container" * 100, limetest.header("t", 0, 1, 1, version=2)):
            path = self.write("c.lime", data)
            done = limetest.run(["limefs", "-o", "rw", path, self.tempdir()], timeout=20)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotEqual(done.stderr, b"")
            self.assertEqual(read(path), data)

    def test_flags_that_contradict_each_other(self):
        """The mount changes nothing and reports the flags, as lime append does."""
        message = "message flags contradict each other; nothing was changed, see 'lime repair -n'"
        case = os.path.join(limetest.CASES, "flags-contradict.lime")
        for strange in (read(case), limetest.record(*A, 1, 0) + limetest.record(*B, 0, 0),
                        limetest.record(*A, 1, 1) + limetest.record(*B, 0, 1),
                        limetest.record(*A, 1, 0) + limetest.record(*B, 1, 1) + b"a tail"):
            tree = self.tempdir()
            path = put(os.path.join(tree, "c.lime"), strange)
            self.fails(["limefs", "-o", "rw", path, self.tempdir()], message, timeout=60)
            with self.rw(tree) as mount:
                first = mount.join("c.lime", os.listdir(mount.join("c.lime"))[0])
                self.assertErrno(errno.EROFS, open, first, "r+b")
                self.assertErrno(errno.EROFS, open, mount.join("c.lime", "new"), "wb")
                self.assertTrue(read(first))
            self.assertEqual((read(path), os.listdir(tree)), (strange, ["c.lime"]))
            self.run_ok(["lime", "repair", "--force", path])
            with self.rw(path) as mount:
                put(mount.join("new"), b"x")

    def test_harmless_deviations_are_unchanged(self):
        """Mounting, as lime append, repairs only what a crash of limefs can leave."""
        strange = (limetest.record(*A, 1, 0, flags=0x81, reserved=3) +
                   limetest.record("odd", b"12345", 0, 0, padding=b"abc") +
                   limetest.record(*B, 0, 1))
        path = self.write("c.lime", strange)
        with self.rw(path) as mount:
            put(mount.join("new"), b"x")
        self.assertEqual(read(path)[:len(strange) - 2160], strange[:-2160])
        self.assertEqual(len(limetest.record(*B, 0, 1)), 2160 - 8)

    def test_killed_replacement_is_completed(self):
        """The mount completes a killed lime replace, or fails if its new data is missing."""
        good = limetest.container([A, B, ("third", b"c" * 8)])
        at, target = len(good) - 152, len(good) - 8
        left = (good[:at + 7] + b"\x3d" + good[at + 8:] + bytes(8) + b"d" * 8 + b"limeredo" +
                target.to_bytes(8, "big") + (8).to_bytes(8, "big"))
        path = self.write("c.lime", left)
        with self.rw(path) as mount:
            self.assertIn("copied into the record that was being replaced", mount.words)
            put(mount.join("new"), b"x")
        self.assertHolds(path, [A, B, ("third", b"d" * 8), ("new", b"x")])
        path = self.write("c.lime", left[:-8])
        self.fails(["limefs", "-o", "rw", path, self.tempdir()],
                       "part old, part new", timeout=60)
        self.assertEqual(read(path), left[:-8])

    def test_missing_padding(self):
        data = limetest.container([A, ("odd", b"12345")])
        path = self.write("c.lime", data[:-3])
        with self.rw(path) as mount:
            put(mount.join("new"), b"x")
        self.assertHolds(path, [A, ("odd", b"12345"), ("new", b"x")])

    @writelib.as_root
    def test_read_only_file_system(self):
        fs = writelib.SmallFs(self, "tmpfs", 4)
        path = put(fs.join("c.lime"), limetest.container([A]))
        self.run_ok(["mount", "-o", "remount,ro", fs.path])
        self.fails(["limefs", "-o", "rw", path, self.tempdir()],
                       "Read-only file system", status=None, timeout=20)
        with limetest.Mount(path) as mount:
            self.assertEqual(read(mount.join("first")), A[1])


@limetest.needs_fuse
class Users(writelib.TestCase):
    """Mounts by unprivileged users."""

    def setUp(self):
        users.open_device(self)
        self.directory = self.tempdir()
        os.mkdir(self.directory + "/mnt")
        self.path = put(self.directory + "/c.lime", limetest.container([A, B]))
        shutil.copy(limetest.program("limefs"), self.directory)  # where user nobody may read it
        users.let_in(self.directory)

    def change_owner(self, *paths):
        for path in paths or (self.directory, self.directory + "/mnt", self.path):
            os.chown(path, users.NOBODY_ID, users.NOBODY_ID)

    def as_nobody(self, script, **kw):
        script = f"cd {self.directory} && {script}"
        return limetest.run([*users.AS_NOBODY, "sh", "-c", script], **kw)

    def test_unprivileged_user_writes(self):
        self.change_owner()
        script = ("./limefs c.lime mnt && ls mnt && fusermount3 -u mnt && "
                  "./limefs -o rw c.lime mnt && echo hello >mnt/new && cp mnt/new mnt/newer && "
                  "echo longer >>mnt/newer && echo short >mnt/first && rm mnt/newer && "
                  "setfattr -n user.lime.mb -v 1 mnt/new && ls mnt; r=$?; fusermount3 -u mnt; "
                  "exit $r")
        done = self.as_nobody(script, stderr=subprocess.DEVNULL)
        self.assertEqual(done.stdout, b"001-first\n002-second\n" * 2 + b"003-new\n")
        self.assertEqual(done.returncode, 0)
        self.assertHolds(self.path, [[("first", b"short\n"), B], [("new", b"hello\n")]])
        self.assertEqual(os.stat(self.path).st_uid, users.NOBODY_ID)

    def test_container_of_another_user(self):
        self.change_owner(self.directory, self.directory + "/mnt")
        os.chmod(self.path, 0o644)
        done = self.as_nobody("./limefs -o rw c.lime mnt")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"Permission denied", done.stderr)
        self.assertHolds(self.path, [A, B])

    def test_directory_of_another_user(self):
        """Appending needs write access only to the file, a rewrite also to the directory."""
        self.change_owner(self.path, self.directory + "/mnt")
        script = ("./limefs -o rw c.lime mnt && echo hello >mnt/new; "
                  "echo short >mnt/first; echo $? >&2; fusermount3 -u mnt")
        done = self.as_nobody(script)
        found = self.assertClean(self.path)
        self.assertEqual(found[2].data, b"hello\n", done.stderr)
        self.assertIn(found[0].data, (A[1], b"short\n"))
        if found[0].data == A[1]:
            self.assertRegex(done.stderr, rb"(?i)permission denied|not permitted")


@limetest.needs_fuse
class Trees(writelib.TestCase):
    def setUp(self):
        self.top = self.tempdir()

    def under(self, *names):
        return os.path.join(self.top, *names)

    def test_mkdir_makes_a_container(self):
        with self.rw(self.top) as mount:
            os.mkdir(mount.join("new.lime"))
            self.assertTrue(stat.S_ISDIR(os.stat(mount.join("new.lime")).st_mode))
            self.assertEqual(os.listdir(mount.join("new.lime")), [])
            self.assertEqual(os.listdir(mount), ["new.lime"])
            self.assertEqual(read(self.under("new.lime")), b"")
            put(mount.join("new.lime/one"), b"1")
            put(mount.join("new.lime/two"), b"22")
            self.assertErrno(errno.ENOTEMPTY, os.rmdir, mount.join("new.lime"))
            self.assertErrno((errno.EISDIR, errno.EPERM), os.unlink, mount.join("new.lime"))
            self.assertErrno(errno.EEXIST, os.mkdir, mount.join("new.lime"))
        self.assertHoldsForAll(self.under("new.lime"), [("one", b"1"), ("two", b"22")])

    def test_container_copied(self):
        """cp -r copies the records in the order of their inode numbers."""
        items = [(f"type-{i % 7}", some(1 + i * 100, i)) for i in range(60)]
        put(self.under("a.lime"), limetest.container(items))
        with self.rw(self.top) as mount:
            self.run_ok(["cp", "-r", mount.join("a.lime"), mount.join("b.lime")])
        self.assertHoldsForAll(self.under("b.lime"), items)

    def test_an_empty_container(self):
        """An empty container can be removed; after the next mount it is a plain empty file."""
        with self.rw(self.top, "mkdir=container") as mount:
            os.mkdir(mount.join("a"))
            os.rmdir(mount.join("a"))
            self.assertEqual((os.listdir(mount), os.listdir(self.top)), ([], []))
            os.mkdir(mount.join("a"))
            put(mount.join("a/x"), b"1")
            os.unlink(mount.join("a/x"))
            os.rmdir(mount.join("a"))
            self.assertErrno(errno.ENOENT, os.stat, mount.join("a"))
            self.assertErrno(errno.EPERM, os.makedirs, mount.join("a/b"))
            self.assertEqual(os.listdir(mount), ["a"])
        with self.rw(self.top) as mount:
            self.assertTrue(stat.S_ISREG(os.stat(mount.join("a")).st_mode))
            self.assertErrno(errno.ENOTDIR, os.rmdir, mount.join("a"))
            os.unlink(mount.join("a"))
        self.assertEqual(os.listdir(self.top), [])

    def test_mkdir_makes_directories(self):
        with self.rw(self.top) as mount:
            os.makedirs(mount.join("real/inner"))
            os.mkdir(mount.join(".lime"))
            put(mount.join("real/inner/notes"), b"plain")
            os.mkdir(mount.join("real/inner/c.lime"))
            put(mount.join("real/inner/c.lime/x"), b"1")
        self.assertTrue(os.path.isdir(self.under(".lime")))
        self.assertEqual(read(self.under("real/inner/notes")), b"plain")
        self.assertHolds(self.under("real/inner/c.lime"), [("x", b"1")])

    def test_plain_file_becomes_a_container(self):
        """A plain file becomes a container at its last release, after close() has returned, even if
        it was looked up while it was written and still plain."""
        with self.rw(self.top, "entry_timeout=0", "attr_timeout=0") as mount:
            with open(mount.join("x"), "wb", buffering=0) as file:
                file.write(limetest.container([A]))
                os.fsync(file.fileno())
                self.assertTrue(os.path.isfile(mount.join("x")))
            put(mount.join("y"), limetest.container([A]))
            for name in ("x", "y"):
                self.assertTrue(until(lambda n=name: os.path.isdir(mount.join(n))))
                self.assertEqual(read(mount.join(name, "first")), A[1])
                put(mount.join(name, "new"), b"n")
        for name in ("x", "y"):
            self.assertHolds(self.under(name), [A, ("new", b"n")])

    def test_many_containers(self):
        count = 300
        for i in range(count):
            put(self.under(f"conf.{i:04d}"), limetest.container([A]))
        with self.rw(self.top, "max_open=8") as mount:
            pid = mount.pid

            def one(i):
                put(mount.join(f"conf.{i:04d}/n"), b"%d" % i)
                with open(mount.join(f"conf.{i:04d}/first"), "r+b") as file:
                    file.write(b"%04d" % i)

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for _ in pool.map(one, range(count)):
                    pass
            self.assertTrue(pid)
        for i in range(count):
            self.assertHolds(self.under(f"conf.{i:04d}"),
                             [("first", b"%04d" % i + A[1][4:]), ("n", b"%d" % i)])


if __name__ == "__main__":
    limetest.main()
