"""lime stage: the verdict on each kind of damage (docs/verdicts.md), and that only what is not bad is
copied."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import numpython
numpython.need("numpy")
import damage
import limetest


class Verdicts(limetest.TestCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.tempdir(), self.tempdir()

    def stage(self, path, verdict, *options):
        """The line of JSON of a file that has this verdict, and what is on standard error."""
        done = limetest.run(["lime", "stage", "--json", *options, path, self.target])
        self.assertEqual(done.returncode, damage.STATUS[verdict], (path, done))
        result = json.loads(done.stdout)
        self.assertEqual(result["verdict"], verdict, done)
        name, copied = os.path.basename(path), verdict in ("good", "unverified", "skipped")
        self.assertEqual(result["status"], "staged" if copied else "failed", done)
        self.assertEqual(os.listdir(self.target), [name] if copied else [])
        if copied:
            os.unlink(os.path.join(self.target, name))
        return result, done.stderr.decode()

    def test_damage(self):
        """Without and with --strict."""
        for name, data in damage.kinds().items():
            path = os.path.join(self.source, "c")
            with open(path, "wb") as file:
                file.write(data)
            harmless = name in damage.harmless()
            if not damage.is_container(name):
                verdict = strict = "unreadable"
            elif name in ("good", "bad link", "wrong plaquette"):  # no --physics here
                verdict = strict = "good"
            elif name == "no checksum":
                verdict, strict = "unverified", "bad"
            else:
                verdict, strict = "good" if harmless else "bad", "bad"
            with self.subTest(name):
                result, errors = self.stage(path, verdict)
                self.assertEqual(bool(result["deviations"]), harmless)
                self.assertEqual("warning" in errors, harmless or verdict == "unverified")
                self.stage(path, strict, "--strict")
                if verdict == "unreadable":
                    self.stage(path, "skipped", "--any")

    def test_cases(self):
        for name, verdict in (("only-data.ildg", "bad"), ("xlf-and-data.ildg", "bad"),
                              ("flags-contradict.lime", "bad"), ("usqcd-f3.lime", "good"),
                              ("quda-spinor.lime", "good"), ("bad-sum.nersc", "unreadable")):
            with self.subTest(name):
                self.stage(os.path.join(limetest.CASES, name), verdict)


if __name__ == "__main__":
    limetest.main()
