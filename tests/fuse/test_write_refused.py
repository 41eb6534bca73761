"""Unsupported operations fail with the errno that docs/writing.md names."""

import contextlib
import errno
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import writelib
from writelib import A, B, C, opened, put, read, until


@limetest.needs_fuse
class Refused(writelib.TestCase):
    def test_mode_and_owner_of_a_new_record(self):
        """A new record ignores a mode and owner set while it is open, as it does open()'s mode."""
        with self.written([A, B]) as (path, mount):
            os.chmod(path, 0o644)
            before = os.stat(path)
            with open(mount.join("new"), "wb", buffering=0) as file:
                os.fchmod(file.fileno(), 0o600)
                if os.geteuid() == 0:
                    os.fchown(file.fileno(), 4711, 4712)
                got = os.fstat(file.fileno())
                self.assertEqual((got.st_mode, got.st_uid), (before.st_mode, before.st_uid))
                file.write(b"new")
                os.fsync(file.fileno())
                self.assertErrno(errno.EPERM, os.fchmod, file.fileno(), 0o600)
            source = self.write("given", b"given")
            os.chmod(source, 0o600)
            if os.geteuid() == 0:
                os.chown(source, 4711, 4712)
            self.run_ok(["cp", "-p", source, mount.join("cp-p")])
            self.run_ok(["cp", "-a", source, mount.join("cp-a")])
            self.run_ok(["install", "-m", "644", source, mount.join("install")])
            self.run_ok(["install", source, mount.join("install-once-more")])
            for field in ("st_mode", "st_uid", "st_gid"):
                self.assertEqual(getattr(os.stat(path), field), getattr(before, field))
        self.assertHolds(path, [A, B, ("new", b"new"), ("cp-p", b"given"), ("cp-a", b"given"),
                                ("install", b"given"), ("install-once-more", b"given")])

    def test_log_messages(self):
        """The daemon logs a reason for each refusal that a program does not expect."""
        path = self.write("c.lime", limetest.container([A, B, C]))
        daemon = limetest.Foreground(path, "-o", "rw")
        first = daemon.join("first")
        for call in ((put, daemon.join("007-x"), b""), (os.unlink, first),
                     (opened, first, os.O_WRONLY | os.O_APPEND, b"x"),
                     (os.setxattr, first, "user.other", b"x"), (os.mkdir, daemon.join("directory")),
                     (os.rename, first, daemon.join("x"))):
            before = daemon.words()
            self.assertRaises(OSError, *call)
            until(lambda old=before: daemon.words() != old, 5)
        # cp, install and mv tolerate the refusal, so the daemon logs nothing.
        os.chmod(path, 0o644)
        before = daemon.words()
        self.run_ok(["cp", "-p", path, daemon.join("copied")])
        self.run_ok(["install", "-m", "644", path, daemon.join("installed")])
        self.run_ok(["mv", daemon.join("installed"), self.tempdir()])
        os.unlink(daemon.join("copied"))
        self.assertEqual(daemon.words(), before)
        # One message for each record.
        for name, shown in (("a b\u00e4", "a b%C3%A4"), ("c\nd", "c%0Ad")):
            before = daemon.words()
            put(daemon.join(name), b"x" * 10000)
            os.truncate(daemon.join(name), 5)
            os.setxattr(daemon.join(name), "user.lime.type", b"plain")
            os.setxattr(daemon.join("plain"), "user.lime.type", b"\xff")
            messages = daemon.words()[len(before):].splitlines()
            self.assertEqual(len(messages), 2, messages)
            self.assertIn(shown, messages[0])
            self.assertIn("%FF", messages[1])
            os.unlink(daemon.join("004-%FF"))
        self.assertEqual(daemon.end(), 0)
        self.assertHolds(path, [A, B, C])


@limetest.needs_fuse
class ReadOnly(writelib.TestCase):
    """A mount without rw changes nothing and opens no file for writing."""

    def setUp(self):
        self.path = self.write("c.lime", limetest.container([A, B]))

    def refused(self, mount, inside=""):
        def at(name):
            return mount.join(inside, name)
        calls = [(put, at("new"), b""), (put, at("003-new"), b""), (put, at("first"), b""),
                 (open, at("first"), "r+b"), (open, at("second"), "ab"),
                 (os.truncate, at("second"), 0), (os.unlink, at("second")),
                 (os.rename, at("second"), at("x")), (os.link, at("second"), at("x")),
                 (os.symlink, "x", at("y")), (os.mkdir, at("x")), (os.mkfifo, at("x")),
                 (os.chmod, at("second"), 0o600), (os.utime, at("second")),
                 (os.setxattr, at("second"), "user.lime.mb", b"1"),
                 (os.removexattr, at("second"), "user.lime.mb")]
        for call in calls:
            with self.subTest(str(call[0].__name__), args=call[1:]):
                self.assertErrno(errno.EROFS, *call)

    def check_not_opened_for_writing(self, mount):
        """Asserts that the daemon has no file in this directory open for writing."""
        directory = os.path.dirname(self.path)
        for fd in os.listdir(f"/proc/{mount.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"/proc/{mount.pid}/fd/{fd}").startswith(directory):
                    with open(f"/proc/{mount.pid}/fdinfo/{fd}", encoding="ascii") as file:
                        mode = [line for line in file if line.startswith("flags:")][0]
                    self.assertEqual(int(mode.split()[1], 8) & os.O_ACCMODE, os.O_RDONLY)

    def test_a_container(self):
        before = os.stat(self.path)
        for opts in (None, "ro"):
            with limetest.Mount(self.path, opts=opts) as mount:
                self.assertEqual(read(mount.join("first")), A[1])
                self.refused(mount)
                self.check_not_opened_for_writing(mount)
        after = os.stat(self.path)
        self.assertEqual((after.st_mtime_ns, after.st_ctime_ns),
                         (before.st_mtime_ns, before.st_ctime_ns))

    def test_a_tree(self):
        directory = os.path.dirname(self.path)
        put(os.path.join(directory, "first"), b"plain")
        put(os.path.join(directory, "second"), b"plain")
        with limetest.Mount(directory) as mount:
            self.assertEqual(read(mount.join("c.lime/first")), A[1])
            self.refused(mount, "c.lime")
            self.refused(mount)
            self.assertErrno(errno.EROFS, os.rmdir, mount.join("c.lime"))
            self.check_not_opened_for_writing(mount)

    def test_unfinished_record_is_unchanged(self):
        """A read-only mount does not recover an unfinished record."""
        header = limetest.header("unfinished", 0, 0, 1, magic=0)
        put(self.path, header + b"data", "ab")
        before = read(self.path)
        with limetest.Mount(self.path) as mount:
            self.assertEqual(len(os.listdir(mount)), 2)
            self.assertIn(b"offset", os.getxattr(mount.path, "user.lime.fault"))
        self.assertEqual(read(self.path), before)

    def test_last_of_ro_and_rw_counts(self):
        """The last of several contradicting options counts, as in mount(8)."""
        with limetest.Mount(self.path, opts="rw,ro") as mount:
            self.refused(mount)
        with limetest.Mount(self.path, opts="ro,rw") as mount:
            put(mount.join("new"), b"x")
        self.assertHolds(self.path, [A, B, ("new", b"x")])


@limetest.needs_fuse
class Locks(writelib.TestCase):
    def setUp(self):
        self.path = self.write("c.lime", limetest.container([A, B]))

    def refused(self, *args):
        done = limetest.run(args, timeout=20)
        self.assertNotEqual(done.returncode, 0, args)
        self.assertRegex(done.stderr.decode().lower(), "busy|locked|mounted|writ", args)
        return done

    def test_a_second_writer(self):
        with self.rw(self.path) as mount:
            link, hard = self.path + ".link", self.path + ".hard"
            os.symlink(self.path, link)
            os.link(self.path, hard)
            for path in (self.path, link, hard):  # the lock is on the file, not on its name
                self.refused("limefs", "-o", "rw", path, self.tempdir())
            put(mount.join("new"), b"x")
            self.refused("limefs", "-o", "rw", self.path, self.tempdir())
        with self.rw(self.path) as mount:
            put(mount.join("newer"), b"y")
        self.assertHolds(self.path, [A, B, ("new", b"x"), ("newer", b"y")])

    def test_lime_commands(self):
        data = self.write("data", b"x")
        with self.rw(self.path) as mount:
            put(mount.join("new"), b"x")
            for name, *more in (("repair",), ("append", "-t", "x", data), ("rm", "2"),
                                ("replace", "2", data), ("set", "2", "--type", "x")):
                self.refused("lime", name, self.path, *more)
            other = put(os.path.join(self.tempdir(), "c.lime"), limetest.container([C]))
            self.refused("lime", "stage", "-f", other, os.path.dirname(self.path))
        self.assertHolds(self.path, [A, B, ("new", b"x")])
        self.run_ok(["lime", "repair", self.path])

    def test_staged_over_itself(self):
        """lime stage copies neither a record over its own container nor a container into itself."""
        directory = os.path.dirname(self.path)
        for source, opts in ((self.path, None), (self.path, "rw"), (directory, "rw")):
            with limetest.Mount(source, opts=opts) as mount:
                where = mount.path if source == self.path else mount.join("c.lime")
                for each in ([os.path.join(where, "001-first"), self.path],
                             [self.path, os.path.join(where, "new")]):
                    self.fails(["lime", "stage", "-f", *each], "the source itself")
                self.assertEqual(os.listdir(directory), ["c.lime"])
        self.assertHolds(self.path, [A, B])

    def test_readers_are_not_locked_out(self):
        with self.rw(self.path) as mount, limetest.Mount(self.path) as reader:
            put(mount.join("new"), b"x" * 100000)
            self.assertEqual(read(reader.join("new")), b"x" * 100000)
            self.assertEqual(self.run_ok(["lime", "cat", self.path, "new"]), b"x" * 100000)
            self.run_ok(["lime", "check", self.path])

    def test_locked_by_another_process(self):
        with open(self.path, "r+b") as file:
            limetest.lock(file)
            self.refused("limefs", "-o", "rw", self.path, self.tempdir())
            with limetest.Mount(self.path) as reader:
                self.assertEqual(read(reader.join("first")), A[1])

    def test_a_tree(self):
        """A mounted tree locks a container at its first change, and leaves others unlocked."""
        directory = os.path.dirname(self.path)
        other = shutil.copy(self.path, os.path.join(directory, "other.lime"))
        with self.rw(directory) as tree:
            with self.rw(self.path) as mount:
                self.assertEqual(read(tree.join("c.lime/first")), A[1])
                self.assertErrno(errno.EBUSY, put, tree.join("c.lime/new"), b"x")
                self.assertErrno(errno.EBUSY, open, tree.join("c.lime/first"), "r+b")
                self.assertErrno(errno.EBUSY, os.unlink, tree.join("c.lime/second"))
                put(tree.join("other.lime/new"), b"y")
                put(mount.join("new"), b"x")
            put(tree.join("c.lime/newer"), b"z")
            with open(tree.join("c.lime/newer"), "ab") as file:
                file.write(b"!")
                self.refused("lime", "repair", self.path)
                self.refused("limefs", "-o", "rw", self.path, self.tempdir())
        self.assertHolds(self.path, [A, B, ("new", b"x"), ("newer", b"z!")])
        self.assertHolds(other, [A, B, ("new", b"y")])


if __name__ == "__main__":
    limetest.main()
