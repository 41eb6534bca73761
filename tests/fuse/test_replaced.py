"""A container that is replaced while the daemon is looking at it: what its name leads to is shown
afterwards, at whatever call it happened."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import faults
import limetest
import writelib

OLD = [("a", b"o")]
OTHER = [("a", b"other"), ("b", b"other")]
NEW = [("b", b"new"), ("a", b"new"), ("c", b"new")]
NAMES = ["001-b", "002-a", "003-c"]
# What looks at a container.
CALLS = ("openat2", "fstat", "pread")
MOST = 40


@limetest.needs_fuse
class Replaced(limetest.TestCase):
    OPTIONS = ["attr_timeout=0", "entry_timeout=0"]

    def setUp(self):
        self.top = self.tempdir()
        self.path = os.path.join(self.top, "c")
        writelib.put(self.path, limetest.container(OLD))
        self.store = faults.Faults(self.top)
        self.source = self.path
        self.inside = ()

    def start(self):
        self.point = self.mount(self.source, opts=self.OPTIONS, env=self.store.environment())

    def replace(self, items):
        writelib.put(self.path + ".new", limetest.container(items))
        os.rename(self.path + ".new", self.path)

    def listed(self):
        return sorted(os.listdir(self.point.join(*self.inside)))

    def replace_at(self, call, nth):
        """Another time, while the listing's call hangs; whether there was one."""
        self.replace(OTHER)
        failed = []

        def look():
            try:
                self.listed()
            except OSError as error:
                failed.append(error)

        looks = threading.Thread(target=look)
        self.store.arm(faults.DAEMON, call, nth, 0, faults.HANG)
        try:
            looks.start()
            writelib.until(lambda: self.store.struck or not looks.is_alive())
            struck = self.store.struck > 0
            self.replace(NEW)
            time.sleep(0.05)  # so that nothing about the old one is young any more
        finally:
            self.store.disarm()
        looks.join()
        self.assertEqual(failed, [])
        return struck

    def test_at_each_call(self):
        self.start()
        for call in CALLS:
            for nth in range(1, MOST):
                with self.subTest(call=call, nth=nth):
                    struck = self.replace_at(call, nth)
                    self.assertEqual(self.listed(), NAMES)
                    self.assertEqual(writelib.read(self.point.join(*self.inside, "001-b")),
                                     b"new")
                if not struck:
                    break
            self.assertFalse(struck, call)
            self.assertGreater(nth, 1, call)

    def test_who_has_it_open_goes_on(self):
        """Also in one that has no name any more."""
        self.start()
        with open(self.point.join(*self.inside, "001-a"), "rb", buffering=0) as file:
            self.replace_at("fstat", 2)
            self.assertEqual(file.read(), b"o")
            os.unlink(self.path)
            self.assertRaises(OSError, os.stat, self.point.join(*self.inside, "001-b"))
            self.assertEqual(os.pread(file.fileno(), 1, 0), b"o")

    def test_by_a_name_of_another_file(self):
        """The old one keeps a name, and so is not deleted."""
        self.start()
        for call in CALLS:
            os.link(self.path, os.path.join(self.top, call))
            with self.subTest(call=call):
                self.replace_at(call, 2)
                os.link(self.path, os.path.join(self.top, call + "2"))
                self.assertEqual(self.listed(), NAMES)


class ReplacedInATree(Replaced):
    def setUp(self):
        super().setUp()
        self.source = self.top
        self.inside = ("c",)


class ReplacedBelowAWriter(Replaced):
    OPTIONS = Replaced.OPTIONS + ["rw"]


class ReplacedInATreeBelowAWriter(ReplacedInATree):
    OPTIONS = Replaced.OPTIONS + ["rw"]


if __name__ == "__main__":
    limetest.main()
