"""lime append, rm, replace, set: the bytes that lime pack writes; refusals, signals, kills."""
import filecmp
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
from faults import Faults, HANG, LIME
from limetest import container, header, program, record, run

RECORDS = [[("xlf-info", b"12345"), ("ildg-format", b"x" * 16)],
           [("ildg-binary-data", b"data" * 5000), ("scidac-checksum", b"")]]
GOOD = container(RECORDS)


class EditCase(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.path = self.write("f.lime", GOOD)

    def lime(self, *args, status=0, **kw):
        super().lime(*args, status=status, **kw)
        return limetest.read(self.path)

    def data(self, content, name="data"):
        return self.write(name, content)

    def packed(self, messages):
        """Returns the bytes that lime pack writes for these messages."""
        args, target = [], os.path.join(limetest.tempdir(), "packed.lime")
        for m, message in enumerate(messages):
            for r, (type, data) in enumerate(message):
                args += ["-m"] * (r == 0) + ["-t", type, self.data(data, f"{m}.{r}")]
        run(["lime", "pack", "-o", target, *args], check=True)
        return limetest.read(target)

    def left_over(self):
        return sorted(set(os.listdir(os.path.dirname(self.path))) - {"f.lime", "data"})

    def unchanged(self, *args, status=1, message="", **kw):
        before = limetest.read(self.path)
        self.assertEqual(self.lime(*args, status=status, **kw), before)
        self.assertIn(message, self.err)


class Append(EditCase):
    def test_same_as_pack(self):
        for size in (0, 1, 7, 8, 9, 100000, (2 << 20) + 3):
            data = os.urandom(size)
            self.path = self.write("f.lime", GOOD)
            joined = self.lime("append", self.path, "-t", "new", self.data(data))
            self.assertEqual(joined, self.packed([RECORDS[0], RECORDS[1] + [("new", data)]]))
            self.path = self.write("f.lime", GOOD)
            begun = self.lime("append", self.path, "-m", "-t", "new", self.data(data))
            self.assertEqual(begun, self.packed(RECORDS + [[("new", data)]]))

    def test_several(self):
        a, b, c = (self.data(t.encode() * 99, t) for t in "abc")
        got = self.lime("append", self.path, "-t", "a", a, "-m", "-t", "b", b, "--type", "c", c)
        self.assertEqual(got, self.packed([RECORDS[0], RECORDS[1] + [("a", b"a" * 99)],
                                           [("b", b"b" * 99), ("c", b"c" * 99)]]))

    def test_to_an_empty_container(self):
        self.path = self.write("f.lime", b"")
        self.assertEqual(self.lime("append", self.path, "-t", "t", self.data(b"abc")),
                         container([("t", b"abc")]))

    def test_stream(self):
        data = os.urandom(3 << 20)
        for source in ("-", "/dev/stdin"):
            self.path = self.write("f.lime", GOOD)
            self.assertEqual(self.lime("append", self.path, "-t", "new", source, input=data),
                             self.packed([RECORDS[0], RECORDS[1] + [("new", data)]]))
        self.unchanged("append", self.path, "-t", "a", "-", "-t", "b", "-", status=2,
                       message="given only once")

    def test_all_or_none(self):
        good = self.data(b"x" * 1000)
        self.unchanged("append", self.path, "-t", "a", good, "-m", "-t", "b", good, "-t", "c",
                       "/nonexistent", message="/nonexistent: open: No such file")
        self.unchanged("append", self.path, "-t", "a", good, "-t", "b", self.path,
                       message="the container itself")
        self.unchanged("append", self.path, "-t", "a", good, "-t", "b", limetest.tempdir(),
                       message="Is a directory")

    def test_no_room(self):
        small, big = self.data(b"small", "small"), self.data(bytes(3 << 20), "big")
        for args in (["-t", "b", big], ["-t", "a", small, "-m", "-t", "b", big]):
            self.fails(["bash", "-c", 'ulimit -f 1000; exec "$@"', "-",
                        program("lime"), "append", self.path, *args], "write: File too large")
            self.assertEqual(limetest.read(self.path), GOOD)

    def test_usage(self):
        for args in ([], ["f"], ["f", "-t", "t"], ["f", "g"], ["f", "-t", "t", "-t", "u", "g"],
                     ["f", "-t", "t", "g", "-m"], ["f", "-t", "", "g"], ["-z"],
                     ["f", "-t", "t" * 128, "g"]):
            self.unchanged("append", *args, status=2)


class Killed(EditCase):
    def start(self):
        """Starts a large append and waits until it has written data."""
        child = subprocess.Popen([program("lime"), "append", self.path, "-t", "large", "-"],
                                 stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (child.stdin.close(), child.stderr.close(), child.wait()))
        child.stdin.write(os.urandom(5 << 20))
        child.stdin.flush()
        deadline = time.monotonic() + 20
        while os.path.getsize(self.path) < len(GOOD) + (3 << 20):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return child

    def test_kill(self):
        child = self.start()
        child.kill()
        child.wait()
        left = limetest.read(self.path)
        self.assertEqual(left[:len(GOOD)], GOOD)
        done = run(["lime", "ls", self.path])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stdout.splitlines()), 5)
        for command in (["append", self.path, "-t", "t", "/dev/null"], ["rm", self.path, "1"],
                        ["replace", self.path, "1", "/dev/null"],
                        ["set", self.path, "1", "--type", "t"]):
            self.unchanged(*command, message="'lime repair -n'")
        self.lime("repair", "-n", self.path, status=1)
        self.assertEqual(limetest.read(self.path), left)
        self.assertEqual(self.lime("repair", self.path, status=1), GOOD)  # as lime check reports
        self.assertIn("an unfinished record of type 'large'", self.out)
        self.assertEqual(self.left_over(), [])

    def test_kill_in_an_empty_container(self):
        self.path = self.write("f.lime", b"")
        child = subprocess.Popen([program("lime"), "append", self.path, "-t", "t", "-"],
                                 stdin=subprocess.PIPE)
        while os.path.getsize(self.path) < 144:
            time.sleep(0.01)
        child.kill()
        child.wait()
        child.stdin.close()
        self.unchanged("append", self.path, "-t", "t", "/dev/null", message="'lime repair -n'")
        self.assertEqual(self.lime("repair", self.path, status=1), b"")
        self.assertIn("the file is empty", self.err)

    def test_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            child = self.start()
            child.send_signal(number)
            self.assertEqual(child.wait(), -number)
            self.assertEqual(limetest.read(self.path), GOOD)


class Remove(EditCase):
    def test_last(self):
        inode = os.stat(self.path).st_ino
        self.assertEqual(self.lime("rm", self.path, "4"),
                         self.packed([RECORDS[0], RECORDS[1][:1]]))
        self.assertEqual(self.lime("rm", self.path, "2.1"), self.packed(RECORDS[:1]))
        self.lime("rm", self.path, "2")
        self.assertEqual(self.lime("rm", self.path, "1"), b"")
        self.assertEqual(os.stat(self.path).st_ino, inode)
        self.unchanged("rm", self.path, "1", message="no such record")

    def test_inner(self):
        self.assertEqual(self.lime("rm", self.path, "xlf-info"),
                         self.packed([RECORDS[0][1:], RECORDS[1]]))
        self.assertEqual(self.lime("rm", self.path, "001-ildg-format"),
                         self.packed(RECORDS[1:]))
        self.assertEqual(self.left_over(), [])

    def test_link_stays(self):
        link = os.path.join(limetest.tempdir(), "link")
        os.symlink(self.path, link)
        self.lime("rm", link, "1")
        self.assertTrue(os.path.islink(link))
        self.assertEqual(limetest.read(self.path), self.packed([RECORDS[0][1:], RECORDS[1]]))

    def test_hard_links_are_named(self):
        other = self.path + ".other"
        os.link(self.path, other)
        self.lime("rm", self.path, "1")
        self.assertIn("other hard links", self.err)
        self.assertEqual(limetest.read(other), GOOD)

    def test_mode_stays(self):
        os.chmod(self.path, 0o640)
        self.lime("rm", self.path, "1")
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)

    def test_relative_name(self):
        directory, name = os.path.split(self.path)
        self.lime("rm", name, "1", cwd=directory)
        self.assertEqual(limetest.read(self.path), self.packed([RECORDS[0][1:], RECORDS[1]]))

    def test_long_names_that_begin_alike(self):
        """Two containers in one directory are rewritten at the same time."""
        paths = [os.path.join(os.path.dirname(self.path), "n" * 254 + end) for end in "ab"]
        for path in paths:
            shutil.copy(self.path, path)
        self.run_ok(["lime", "rm", self.path, "1"])
        faults = Faults(os.path.dirname(self.path))
        faults.arm(LIME, "renameat", 1, 0, HANG)
        with subprocess.Popen([program("lime"), "rm", paths[0], "1"],
                              env=faults.environment()) as child:
            self.assertTrue(limetest._wait(lambda: faults.struck, 60))
            self.run_ok(["lime", "rm", paths[1], "1"])
            faults.disarm()
            self.assertEqual(child.wait(60 * limetest.SLOWNESS), 0)
        for path in paths:
            self.assertTrue(filecmp.cmp(path, self.path, shallow=False))


class Replace(EditCase):
    def with_data(self, ordinal, data):
        messages = [[list(r) for r in m] for m in RECORDS]
        (messages[0] + messages[1])[ordinal - 1][1] = data
        return self.packed(messages)

    def test_all_lengths(self):
        for ordinal, old in ((1, 5), (2, 16), (3, 20000), (4, 0)):
            for n in (0, 1, 5, 16, 100, 20000, 100001):
                for stream in (False, True):
                    data = os.urandom(n)
                    self.path = self.write("f.lime", GOOD)
                    inode = os.stat(self.path).st_ino
                    got = (self.lime("replace", self.path, str(ordinal), "-", input=data)
                           if stream else
                           self.lime("replace", self.path, str(ordinal), self.data(data)))
                    self.assertEqual(got, self.with_data(ordinal, data))
                    in_place = (n == old or ordinal == 4) and n <= len(GOOD) - old
                    self.assertEqual(os.stat(self.path).st_ino == inode, in_place)
                    self.assertEqual("scidac-checksum" in self.err, ordinal == 3)
        self.assertEqual(self.left_over(), [])

    def test_no_room(self):
        big = self.data(bytes(3 << 20))
        for ordinal in "1", "4":
            self.fails(["bash", "-c", 'trap "" XFSZ; ulimit -f 1000; exec "$@"', "-",
                        program("lime"), "replace", self.path, ordinal, big], "File too large")
            self.assertEqual(limetest.read(self.path), GOOD)
            self.assertEqual(self.left_over(), [])

    def interrupted(self, ordinal, data, action):
        """Returns the exit status of lime replace if a signal is pending from the start."""
        def hold():
            signal.signal(signal.SIGINT, action)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            os.kill(os.getpid(), signal.SIGINT)
        return run(["lime", "replace", self.path, ordinal, self.data(data)],
                   preexec_fn=hold).returncode

    def test_signal(self):
        """A signal makes lime restore the container; an ignored signal (nohup) has no effect."""
        for ordinal, data in (("2", b"d" * 16), ("4", b"x" * 10_001)):
            self.assertEqual(self.interrupted(ordinal, data, signal.SIG_DFL), 1)
            self.assertEqual(limetest.read(self.path), GOOD)
            self.assertEqual(self.interrupted(ordinal, data, signal.SIG_IGN), 0)
            self.assertEqual(limetest.read(self.path), self.with_data(int(ordinal), data))
            self.path = self.write("f.lime", GOOD)

    def test_refused(self):
        self.unchanged("replace", self.path, "1", self.path, message="the container itself")
        self.unchanged("replace", self.path, "1", "/nonexistent", message="No such file")
        self.unchanged("replace", self.path, "7", self.data(b""), message="no such record")


class ReplaceKilled(EditCase):
    """After a kill of lime replace, and lime repair if needed, the old or the new file is there."""

    FIRST, INNER, LAST = (bytes([c]) * n for c, n in ((0x61, 600_000), (0x62, 90_001),
                                                      (0x63, 200_005)))
    SHAPES = [(3, 200_005), (3, 200_000), (3, 200_007), (3, 300_000), (3, 5), (3, 0),  # in place
              (2, 90_001),
              (3, 1_000_000), (2, 90_000)]  # rewritten

    def setUp(self):
        super().setUp()
        self.rounds = 0

    def containers(self, ordinal, n):
        """Returns the old container, the new one, and the path of the new data."""
        data = bytes(range(1, 252)) * (n // 251 + 1)
        data = data[:n]
        old = [self.FIRST, self.INNER, self.LAST]
        new = [data if i + 1 == ordinal else d for i, d in enumerate(old)]
        return (*(container([[("first", a)], [("inner", b), ("last", c)]])
                  for a, b, c in (old, new)), self.data(data))

    def put(self, content):
        limetest.put(self.path, content)

    def repaired(self, old, new):
        """Repairs the container if lime check finds something; True if it is the new one."""
        self.rounds += 1
        if run(["lime", "check", "-q", self.path]).returncode:
            self.lime("repair", self.path)
            self.assertIn("structure good now", self.out)
        got = limetest.read(self.path)
        self.assertTrue(got in (old, new), f"a mixture of {len(got)} bytes")
        self.run_ok(["lime", "check", "-q", self.path])
        self.assertEqual([name for name in self.left_over() if "new" not in name], [])
        return got == new

    def kill_at(self, faults, call, nth, ordinal, data):
        faults.arm(LIME, call, nth, 0, HANG)
        # LeakSanitizer reports a kill during its search.
        env = faults.environment()
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        with subprocess.Popen([program("lime"), "replace", self.path, str(ordinal), data],
                              env=env) as child:
            while not faults.struck:
                self.assertIsNone(child.poll(), f"{call} {nth} never came")
                time.sleep(0.001)
            child.kill()
        faults.disarm()

    def test_at_every_call(self):
        """lime replace is killed before each call that changes the container or a name."""
        changing = {"pwrite", "write", "ftruncate", "fsync", "copy_file_range", "linkat",
                    "renameat"}
        for ordinal, n in self.SHAPES:
            outcomes = set()
            old, new, data = self.containers(ordinal, n)
            faults = Faults(os.path.dirname(self.path))
            self.put(old)
            faults.count(LIME)
            self.run_ok(["lime", "replace", self.path, str(ordinal), data],
                        env=faults.environment())
            self.assertTrue(limetest.read(self.path) == new)
            for call, count in faults.counts().items():
                for nth in range(1, count * (call in changing) + 1):
                    self.put(old)
                    self.kill_at(faults, call, nth, ordinal, data)
                    outcomes.add(self.repaired(old, new))
            self.assertEqual(outcomes, {False, True}, (ordinal, n))
        print(f"# {self.rounds} kills")


class Set(EditCase):
    def test_types(self):
        for ordinal in range(1, 5):
            self.lime("set", self.path, str(ordinal), "--type", f"type-{ordinal}")
        self.assertEqual(limetest.read(self.path), container(
            [[(f"type-{2 * m + r + 1}", data) for r, (_, data) in enumerate(message)]
             for m, message in enumerate(RECORDS)]))
        self.unchanged("set", self.path, "1", "--type", "", status=2)
        self.unchanged("set", self.path, "1", "--type", "t" * 128, status=2)

    def test_boundaries(self):
        flat = RECORDS[0] + RECORDS[1]
        self.assertEqual(self.lime("set", self.path, "3", "--join-message"), container([flat]))
        self.unchanged("set", self.path, "3", "--join-message", status=0)
        for ordinal in (2, 3, 4):
            self.lime("set", self.path, str(ordinal), "--begin-message")
        self.assertEqual(limetest.read(self.path), container([[r] for r in flat]))
        for ordinal in (4, 3, 2):
            self.lime("set", self.path, str(ordinal), "--join-message")
        self.assertEqual(limetest.read(self.path), container([flat]))
        self.unchanged("set", self.path, "1", "--begin-message", status=0)
        self.unchanged("set", self.path, "1", "--join-message", message="always begins")
        self.unchanged("set", self.path, "1", "--type", "t", "--join-message")

    def test_both(self):
        self.assertEqual(self.lime("set", "--type", "new", "--begin-message", self.path, "4"),
                         container([RECORDS[0], RECORDS[1][:1], [("new", b"")]]))

    def test_usage(self):
        for args in ([], ["f"], ["f", "1"], ["f", "1", "2", "--type", "t"],
                     ["f", "1", "--begin-message", "--join-message"]):
            self.unchanged("set", *args, status=2)


COMMANDS = (["append", "FILE", "-t", "t", "/dev/null"], ["rm", "FILE", "1"],
            ["replace", "FILE", "1", "/dev/null"], ["set", "FILE", "1", "--type", "t"])


class Refused(EditCase):
    def all_refuse(self, message, status=1):
        for command in COMMANDS:
            self.unchanged(*[self.path if word == "FILE" else word for word in command],
                           status=status, message=message)
        self.assertEqual(self.left_over(), [])

    def test_tails(self):
        for tail in (b"x", bytes(8), header("t", 8, 1, 1), header("t", 9, 1, 1) + b"12345678"):
            self.path = self.write("f.lime", GOOD + tail)
            self.all_refuse("'lime repair -n'")

    def test_flags(self):
        self.path = self.write("f.lime", record("a", b"", 1, 0) + record("b", b"", 0, 0))
        self.all_refuse("message flags contradict each other; nothing was changed, see "
                        "'lime repair -n'")

    def test_harmless_deviations(self):
        self.path = self.write("f.lime", record("a", b"1", 1, 0, padding=b"x" * 7) +
                               record("b\xff", b"1", 0, 1, padding=b""))
        self.lime("append", self.path, "-t", "c", "/dev/null")
        self.assertEqual(limetest.read(self.path),
                         record("a", b"1", 1, 0, padding=b"x" * 7) +
                         record("b\xff", b"1", 0, 0) + record("c", b"", 0, 1))

    def test_not_a_container(self):
        self.path = self.write("f.lime", b"text" * 100)
        self.all_refuse("not a LIME container", 2)

    def test_no_file(self):
        for command in COMMANDS:
            for path in ("/nonexistent", limetest.tempdir()):
                done = run(["lime", *[path if word == "FILE" else word for word in command]])
                self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    limetest.main()
