"""lime stage: a target that is the source through a limefs mount, or that a mount writes to."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from limetest import put, read

INNER = limetest.container([("b", b"a container in a record")])


@limetest.needs_fuse
class Stage(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.tempdir()
        self.c = os.path.join(self.folder, "c")
        self.data = limetest.container([("a", INNER)])
        put(self.c, self.data)

    def refused(self, words, source, target):
        self.fails(["lime", "stage", "-f", source, target], words)
        self.assertEqual(os.listdir(self.folder), ["c"])
        self.assertEqual(read(self.c), self.data)

    def test_itself(self):
        """A record of a mount is not copied over its container, nor the container into itself."""
        for source, opts in ((self.c, None), (self.c, "rw"), (self.folder, "rw")):
            with limetest.Mount(source, opts=opts) as mount:
                where = mount.path if source == self.c else os.path.join(mount.path, "c")
                record = os.path.join(where, os.listdir(where)[0])
                self.refused("the source itself", record, self.c)
                self.refused("the source itself", self.c, os.path.join(where, "new"))

    def test_locked(self):
        """The record that is being written in a mount is not lost."""
        other = os.path.join(self.tempdir(), "c")
        put(other, limetest.container([("x", b"x")]))
        with limetest.Mount(self.c, opts="rw") as mount:
            with open(os.path.join(mount.path, "002-new"), "wb") as file:
                file.write(b"acknowledged")
                file.flush()
                os.fsync(file.fileno())
                done = limetest.run(["lime", "stage", "-f", other, self.folder])
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("another process has this container open for writing", done.stderr.decode())
        self.assertIn(b"acknowledged", read(self.c))


if __name__ == "__main__":
    limetest.main()
