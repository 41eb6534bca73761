"""limefs-run: who reads much is told of changes by the kernel, in place of looking for them."""

import contextlib
import fcntl
import mmap
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import limetest
import writelib
from test_run import Rewritten, environ, run, words

SIZE = 1 << 20  # of records: words of eight bytes, and pieces of 4096
ONE, TWO = 0x101, 0x202  # whose words they are; no word ends in a zero


def why_not(folder):
    """Why the kernel tells nothing here; None: it does."""
    major, minor = (int(n) for n in re.match(r"(\d+)\.(\d+)", platform.release()).groups())
    if (major, minor) < (6, 12):
        return "Linux 6.12"
    done = subprocess.run(["stat", "-f", "-c", "%T", folder], stdout=subprocess.PIPE, check=True)
    if done.stdout.strip() not in (b"ext2/ext3", b"xfs", b"btrfs", b"tmpfs"):
        return "a file system of this host"
    try:
        with open("/proc/sys/kernel/io_uring_disabled", encoding="ascii") as file:
            if file.read().strip() != "0":
                return "io_uring"
    except FileNotFoundError:
        pass
    with open("/proc/self/status", encoding="ascii") as file:
        if "\nSeccomp:\t0" not in file.read():
            return "io_uring, which a filter may refuse"
    return None


class Case(Rewritten, limetest.TestCase):
    TAGS, SIZE = (ONE, TWO), SIZE

    def setUp(self):
        super().setUp()
        self.plain = self.write("plain", words(ONE, self.SIZE))

    def needs_it(self):
        missing = why_not(self.folder)
        if missing:
            self.skipTest("needs " + missing)

    def reader(self, mount, what="serve", record="one"):
        process = subprocess.Popen(
            [limetest.program("limefs-run"), limetest.program("run-notice"), what,
             mount.join("c.lime", record), self.plain],
            env=environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        return process


@limetest.needs_fuse
class Descriptors(Case):
    """tests/helpers/run-notice.c: they become other files' where no library can see it."""

    def check(self, what, reports=True):
        with limetest.Mount(self.folder) as mount:
            done = run(["run-notice", what, mount.join("c.lime", "one"), self.plain], timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if reports:
            self.assertGreater(done.round, 0)
        return done

    def test_no_looks(self):
        self.needs_it()
        self.check("counts", False)  # the report makes system calls that are counted

    def test_closed_unseen(self):
        self.check("unseen")

    def test_numbers_of_ours_are_taken(self):
        self.check("taken", False)

    def test_numbers_of_ours_are_taken_beside_a_child(self):
        self.check("taken_beside0", False)  # the number of the report is taken, too

    def test_all_that_makes_children(self):
        self.needs_it()
        for way in range(9):
            with self.subTest(way):
                self.check(f"seen{way}", False)  # the report makes system calls that are counted

    def test_a_shared_position_between_any_two_instructions(self):
        self.check("shared_at", False)

    def test_marks_of_others(self):
        self.needs_it()
        self.check("marks_of_others0", False)
        self.check("leases")

    def test_fork_between_any_two_instructions(self):
        self.check("forks_at0")
        self.check("forks_on0")

    def test_copies(self):
        self.check("copies")

    def test_vfork(self):
        self.check("vforks")

    def test_threads(self):
        self.check("thread_closes")
        self.check("threads", False)

    def test_signals(self):
        self.check("signals")

    def test_no_mark_twice(self):
        self.needs_it()
        self.check("marks")

    def test_signals_between_any_two_instructions(self):
        self.check("stepped")

    def test_bytes_are_read_once(self):
        self.check("once")

    def test_many(self):
        self.assertEqual(self.check("many").through, 0)

    def test_who_filters_system_calls(self):
        self.check("filtered")
        self.check("filtered_twice")

    def test_kept_elsewhere(self):
        self.check("kept")

    def test_urgent(self):
        self.check("urgent", False)

    def test_children(self):
        self.needs_it()
        self.check("children")

    def test_inotify_is_left_to_others(self):
        self.check("inotifies")

    def test_zeros(self):
        """What truncate() may have made of other bytes."""
        self.needs_it()
        self.check("zeros", False)

    def test_waits(self):
        """None ends early because somebody has opened the container."""
        with limetest.Mount(self.folder) as mount:
            process = self.reader(mount, "waits")
            while process.poll() is None:
                with open(self.path, "rb"):
                    time.sleep(0.03)
            out, err = process.communicate()
        self.assertEqual(process.returncode, 0, out + err)


class OfLargeRecords(Descriptors):
    """That they are closed, the mount tells."""

    SIZE = 16 << 20

    def test_no_calls(self):
        self.needs_it()
        self.check("bare", False)

    def test_the_daemon_is_killed(self):
        with limetest.Mount(self.folder) as mount:
            process = self.reader(mount, "killed")
            self.assertEqual(process.stdout.read(1), b"x")
            os.kill(mount.pid, signal.SIGKILL)
            writelib.until(lambda: not mount.pids())
            out, _ = process.communicate()
            self.assertEqual(process.returncode, 0, out)

    def test_the_daemon_keeps_one_descriptor(self):
        """However many have asked, and until the last of them is closed."""
        info = os.stat(self.path)
        asked, container = 1 << 30 | 16 << 16 | ord("L") << 8 | 1, (info.st_dev, info.st_ino)
        with limetest.Mount(self.folder) as mount:
            def held():
                count, folder = 0, f"/proc/{mount.pid}/fd"
                for fd in os.listdir(folder):
                    with contextlib.suppress(FileNotFoundError):  # closed by now
                        count += os.readlink(os.path.join(folder, fd)) == self.path
                return count
            with contextlib.ExitStack() as stack:
                files = [stack.enter_context(open(mount.join("c.lime", "one"), "rb", buffering=0))
                         for _ in range(20)]
                before = held()
                for want in (0, 1):
                    for file in files:
                        argument = bytearray(struct.pack("=QQ", *container))
                        self.assertEqual(fcntl.ioctl(file, asked, argument), want)
                self.assertEqual(held(), before + 1)
                for file in files[1:]:
                    file.close()
                self.assertEqual(held(), before + 1)
            writelib.until(lambda: held() <= before)

    def test_the_daemon_ends_just_then(self):
        for turn in range(10):
            with self.subTest(turn), limetest.Mount(self.folder) as mount:
                process = self.reader(mount, "killed")
                self.assertEqual(process.stdout.read(1), b"x")
                process.stdin.close()
                process.stdin = None
                os.kill(mount.pid, signal.SIGTERM)
                writelib.until(lambda: not mount.pids())
                out, err = process.communicate()
                self.assertEqual(process.returncode, 0, out + err)

    def test_the_daemon_ends(self):
        """However long it takes to close what tells so."""
        fault = faults.Faults(self.folder)
        for how in (signal.SIGTERM, signal.SIGKILL):
            fault.disarm()
            with self.subTest(how), limetest.Mount(self.folder, env=fault.environment()) as mount:
                process = self.reader(mount, "ended")
                self.assertEqual(process.stdout.read(1), b"x")
                fault.arm(faults.DAEMON, "close", 1, 0, faults.HANG)
                os.kill(mount.pid, how)
                writelib.until(lambda: fault.struck or not mount.pids())
                fault.disarm()
                out, err = process.communicate()
                self.assertEqual(process.returncode, 0, out + err)


@limetest.needs_fuse
class Changes(Case):
    """Old bytes, new ones, or an error, and never another record's."""

    def cut(self, turn):
        os.truncate(self.path, SIZE + 1000 + turn)  # behind what is read

    def ask(self, process, at):
        """What is there, and the looks so far."""
        process.stdin.write(b"%d\n" % at)
        process.stdin.flush()
        answer, looks = process.stdout.readline().split()
        return answer.decode(), int(looks)

    def test_told_at_once(self):
        """The first read after the change: the library looks again, and leaves it to the mount."""
        self.needs_it()
        for change in (self.in_place, self.replaced, self.cut, lambda turn: os.unlink(self.path),
                       lambda turn: os.utime(self.path), lambda turn: os.link(self.path, self.path + "2")):
            with self.subTest(change), limetest.Mount(self.folder) as mount:
                process = self.reader(mount)
                self.assertEqual(self.ask(process, 800), (f"{ONE << 48 | 800:x}", 0))
                change(1)
                answer, looks = self.ask(process, 1600)
                process.communicate()
                self.assertGreater(looks, 0)
                self.assertIn(answer, (f"{ONE << 48 | 1600:x}", "ESTALE"))
            self.setUp()

    def test_who_only_opens_it(self):
        """It is told, looked at, and found as it was."""
        self.needs_it()
        with limetest.Mount(self.folder) as mount:
            process = self.reader(mount)
            self.assertEqual(self.ask(process, 1600), (f"{ONE << 48 | 1600:x}", 0))
            with open(self.path, "rb"):
                answer, looks = self.ask(process, 800)
            process.communicate()
            self.assertEqual(answer, f"{ONE << 48 | 800:x}")
            self.assertGreater(looks, 0)

    def writer(self, write):
        """Somebody has the container open for writing before it is read. Of one that was changed
        within the last minute, the mount would tell nothing then."""
        later = faults.Faults(self.folder).environment(later=120)
        with limetest.Mount(self.folder, env=later) as mount:
            process = self.reader(mount)
            _, before = self.ask(process, 800)
            self.assertGreater(before, 0)  # there is nothing that the kernel could tell
            write()
            answer, _ = self.ask(process, 1600)
            process.communicate()
            self.assertIn(answer, (f"{ONE << 48 | 1600:x}", "ESTALE"))

    def test_writer_who_was_there_before(self):
        with open(self.path, "r+b", buffering=0) as file:
            self.writer(lambda: file.write(self.layout(1)))

    def test_writer_who_has_mapped_it(self):
        with open(self.path, "r+b") as file:
            memory = mmap.mmap(file.fileno(), 0)

        def write():
            memory[:] = self.layout(1)
            memory.flush()

        try:
            self.writer(write)
        finally:
            memory.close()

    def hammered(self, change, pause):
        """Readers of both records while that goes on, more often than they can be told of."""
        seconds = 60 if os.environ.get("STRESS") else 3
        with limetest.Mount(self.folder) as mount:
            readers = [self.reader(mount, f"hammer{tag}", name)
                       for name, tag in (("one", ONE), ("two", TWO))]
            end, turn = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                turn += 1
                change(turn)
                time.sleep(pause * (1 + turn % 4))
            for reader in readers:
                out, err = reader.communicate(timeout=300)
                self.assertEqual(reader.returncode, 0, out + err)
                good, bad = (int(n) for n in out.split())
                self.assertGreater(good, 0)
                print(f"# {turn} changes, {good} reads, {bad} errors")

    def test_in_place(self):
        self.hammered(self.in_place, 0.01)

    def test_replaced(self):
        self.hammered(self.replaced, 0.01)

    def test_cut(self):
        def change(turn):
            with open(self.path, "r+b", buffering=0) as file:
                file.write(bytes(8))
                os.truncate(file.fileno(), 100_000 + turn)
            self.in_place(turn)

        self.hammered(change, 0.1)


if __name__ == "__main__":
    limetest.main()
