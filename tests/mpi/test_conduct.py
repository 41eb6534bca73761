"""What calls return in odd situations, where docs/lemon.md states a difference from the reference,
and elsewhere; damaged containers."""

import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
from mpitest import TestCase, mpirun

DOCUMENT = os.path.join(limetest.REPO, "docs", "lemon.md")
ALIKE = os.path.join(limetest.REPO, "tests", "data", "conduct.txt")  # as the reference answers
CONTAINERS = 500


def table():
    """Returns the rows of "Odd situations": [call, situation, reference, here, why]."""
    with open(DOCUMENT, encoding="utf-8") as document:
        section = document.read().split("\n## Odd situations\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


class Conduct(TestCase):
    def test_odd_situations(self):
        want = [(call.strip("`"), situation, here.replace("`", ""))
                for call, situation, _, here, _ in table()]
        with open(ALIKE, encoding="utf-8") as file:
            want += [tuple(line.strip().split(" | ")) for line in file]
        self.assertGreater(len(want), 60)
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                done = mpirun(ranks, "conduct", os.path.join(self.tempdir(), "scratch.lime"))
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                got = [tuple(line.split(" | ")) for line in done.stdout.decode().splitlines()]
                self.assertEqual(sorted(got), sorted(want))

    def test_every_difference_has_a_reason(self):
        for call, situation, reference, here, why in table():
            self.assertNotEqual(reference, here)
            if reference != "crashes":
                self.assertTrue(why, (call, situation))


class Damaged(TestCase):
    def damaged(self, dice):
        """A container of a few records that is cut, has trailing garbage, or has wrong bytes."""
        whole = limetest.container([[(f"type-{i}", dice.randbytes(dice.randrange(30)))
                                     for i in range(dice.randrange(1, 4))]
                                    for _ in range(dice.randrange(1, 4))])
        kind = dice.randrange(4)
        if kind == 0:
            return whole[:dice.randrange(len(whole))]
        if kind == 1:
            return whole + dice.randbytes(dice.choice([1, 7, 8, 100, 144, 1000]))
        harmed = bytearray(whole)
        headers = [at for at in range(0, len(whole), 8) if whole[at:at + 4] == whole[:4]]
        for _ in range(dice.randrange(1, 4)):
            at = dice.choice(headers)
            harmed[at + dice.randrange(16)] = dice.choice([0, 1, 0x7f, 0x80, 0xff])
        return bytes(harmed) + (dice.randbytes(50) if kind == 3 else b"")

    def test_search_loop_ends(self):
        directory, dice = self.tempdir(), random.Random(20140)
        for i in range(CONTAINERS):
            limetest.put(os.path.join(directory, str(i)), self.damaged(dice))
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                done = mpirun(ranks, "conduct", "search", directory, str(CONTAINERS))
                ends, steps = re.fullmatch(rb"(\d+) ends, (\d+) steps\n", done.stdout).groups()
                self.assertEqual(int(ends), CONTAINERS)
                self.assertGreater(int(steps), CONTAINERS)


if __name__ == "__main__":
    limetest.main()
