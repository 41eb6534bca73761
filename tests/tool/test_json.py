"""The JSON of lime: every object has the members and types that docs/json.md states."""
import glob
import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import numpython

numpython.need("numpy")
import cellslib
import damage
import limetest
from limetest import container, run

WORDS = {"string": str, "boolean": bool, "object": dict}
COMMANDS = {"ls": ["ls"], "info": ["info"], "check": ["check", "--data", "--physics"],
            "checksum": ["checksum"], "lfn": ["lfn"], "qcdml": ["qcdml"],
            "refs": ["refs", "-f", "-o", os.path.join(limetest.tempdir(), "refs.json")],
            "repair": ["repair", "-n"],
            "convert": ["convert", "--to", "nersc", limetest.tempdir()]}


def tables():
    """Returns {table: {member: (type, may be missing)}} of docs/json.md."""
    found, rows = {}, None
    with open(os.path.join(limetest.REPO, "docs", "json.md"), encoding="utf-8") as page:
        for line in page:
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            if not cells:
                rows = None
            elif rows is None:
                rows = found[cells[0]] = {}
            elif cells[0].startswith("`"):
                name = cells[0].strip("`")
                rows[name.rstrip("?")] = (cells[1], name.endswith("?"))
    return found


TABLES = tables()


def check_type(value, text, where):
    """Asserts that the value has one of the types, such as "list of *record* or null"."""
    for one in text.replace(", ", " or ").split(" or "):
        one = one.strip()
        if one == "null":
            good = value is None
        elif one in WORDS:
            good = isinstance(value, WORDS[one])
        elif one == "integer":
            good = isinstance(value, int) and not isinstance(value, bool) or \
                isinstance(value, float) and value >= 2 ** 63
        elif one == "number":
            good = isinstance(value, float)
        elif one == "hex":
            good = isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{8}", value))
        elif one.startswith("list of "):
            good = isinstance(value, list)
            for item in value if good else ():
                check_type(item, one[8:], where)
        elif one.startswith("*"):
            good = isinstance(value, dict)
            if good:
                check_members(value, one.strip("*"))
        else:
            good = value == one
        if good:
            return
    raise AssertionError(f"{where}: {value!r} is not of type {text}")


def check_members(value, *names):
    """Asserts that the object has the members of these tables."""
    expected = {}
    for name in names:
        expected |= TABLES[name]
    for member, (text, may_miss) in expected.items():
        if member in value:
            check_type(value[member], text, f"{names[-1]}.{member}")
        elif not may_miss:
            raise AssertionError(f"{names[-1]}: no member {member}: {value}")
    assert not set(value) - set(expected), (names, set(value) - set(expected))


def mutations():
    """Yields 200 damaged containers, always the same."""
    choose = random.Random(47)
    good = [damage.configuration(), cellslib.Checkpoint(50, (2, 2, 2)).container()]
    for i in range(200):
        data = bytearray(choose.choice(good))
        for _ in range(choose.randint(1, 4)):
            at = choose.randrange(len(data))
            if i % 4 == 0:
                del data[at:at + choose.randint(1, 300)]
            elif i % 4 == 1:
                data[at:at] = choose.randbytes(choose.randint(1, 300))
            else:  # headers and metadata are most of the beginning
                data[at % choose.choice((160, 2000, len(data)))] ^= 1 << choose.randrange(8)
        yield bytes(data)


class Json(limetest.TestCase):
    def assert_valid(self, command, paths, status=None):
        """Every line of the command is an object of its table, in the order of the paths."""
        done = run(["lime", *COMMANDS.get(command, [command]), "--json", "--list-skipped",
                    "--files-from", "-"], input="\n".join(paths).encode(), timeout=600)
        self.assertTrue(done.stdout.isascii())
        *lines, total = done.stdout.splitlines()
        check_members(json.loads(total), "summary line")
        files = [json.loads(line) for line in lines]
        self.assertEqual([one["file"] for one in files], paths)
        for one in files:
            if set(one) == set(TABLES["file"]):  # the command could not read it
                check_members(one, "file")
                self.assertNotEqual(one["status"], "good")
            else:
                check_members(one, "file", command)
            self.assertEqual(one["error"] is None, one["status"] == "good", one)
        states = [one["status"] for one in files]
        for word in damage.STATUS:
            self.assertEqual(json.loads(total)["summary"][word], states.count(word))
        self.assertEqual(done.returncode, max((damage.STATUS[word] for word in states),
                                              key=(0, 3, 1, 2).index))
        return files

    def test_real_files(self):
        paths = sorted({row["path"] for row in limetest.manifest()})
        paths += sorted(glob.glob(os.path.join(limetest.CASES, "*")))
        for command in COMMANDS:
            files = self.assert_valid(command, paths)
            self.assertTrue(any(one["status"] == "good" for one in files), command)

    def test_damaged_files(self):
        directory = self.tempdir()
        paths = []
        for i, data in enumerate([*damage.kinds().values(), *mutations()]):
            paths.append(os.path.join(directory, str(i)))
            limetest.put(paths[-1], data)
        for command in COMMANDS:
            self.assert_valid(command, paths)

    def test_all_members_occur(self):
        """No table states a member that lime never prints, as far as these files show."""
        odd = self.write("odd", container([(b"\xff", b""), ("ildg-data-lfn", b"lfn://a/b")]))
        self.assert_valid("ls", [odd])
        self.assert_valid("lfn", [odd])

    def test_sums_and_stage(self):
        paths = sorted({row["path"] for row in limetest.manifest()})
        made = os.path.join(self.tempdir(), "list")
        for command, table in ((["checksum", "--write", made, *paths], "sum of a file"),
                               (["checksum", "--verify", made], "sum of a file"),
                               (["stage", "-r", os.path.dirname(paths[0]), self.tempdir()],
                                "stage")):
            *files, total = limetest.json_lines(run(["lime", *command, "--json"]).stdout)
            if "summary" in total:
                check_members(total, "summary line")
            self.assertGreaterEqual(len(files) + 1, len(paths))
            for one in files:
                check_members(one, "file", table)
                self.assertEqual(one["error"] is None, one["status"] == "good", one)

    @limetest.needs_fuse
    def test_verify(self):
        directory = self.tempdir()
        for i, data in enumerate(damage.kinds().values()):
            limetest.put(os.path.join(directory, f"{i:02}"), data)
        with limetest.Mount(directory, opts="formats") as mount:
            paths = [mount.join(name) for name in sorted(os.listdir(mount.path))
                     if os.path.isdir(mount.join(name))]
            self.assertGreater(len(paths), 10)
            self.assert_valid("verify", paths)


if __name__ == "__main__":
    limetest.main()
