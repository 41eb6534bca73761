"""The program `lime`: where it is, what it prints."""

import json
import os
import shutil
import subprocess

_HERE = os.path.dirname(os.path.abspath(__file__))
_FILES_AT_ONCE = 200


class Error(Exception):
    """What went wrong, in the words of `lime` where it has said something."""


class NotFound(Error, LookupError):
    """A container has no such record or field, or more than one."""


def _beside():
    """Of the build tree or the installation that this package is in, if it is in one: in any
    other folder a program of that name would be anybody's."""
    parts = [""] * 4 + _HERE.split(os.sep)
    root = os.sep.join(parts[4:-4])
    if parts[-4:-1] == ["src", "lime", "python"]:
        return os.path.join(root, "build", "bin", "lime")
    if parts[-4] == "lib" and parts[-3].startswith("python3") and parts[-2].endswith("-packages"):
        return os.path.join(root, "bin", "lime")
    return None


def find_lime():
    """The path of the program `lime`."""
    given = os.environ.get("LIME")
    if given:
        found = shutil.which(given)
        if not found:
            raise Error(f"$LIME: {given}: not a program")
        return found
    beside = _beside()
    found = beside and shutil.which(beside) or shutil.which("lime")
    if not found:
        raise Error("lime: not found: build it (make), set LIME to its path, or add its folder "
                    "to PATH")
    return found


def _run(command, paths, options=()):
    """The objects that `lime command --json` prints, one for each path, and its messages. Its exit
    status is that of the worst file, and says nothing that the objects do not."""
    program = find_lime()
    try:
        done = subprocess.run([program, command, "--json", *options, "--",
                               *map(os.fspath, paths)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
    except (OSError, ValueError) as error:  # ValueError: a NUL in a path
        raise Error(f"{program}: {error}") from error
    words = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0:
        raise Error(f"{program} {command}: ended by signal {-done.returncode}")
    try:
        told = json.loads(done.stdout)
    except ValueError as error:
        raise Error(words or f"{program} {command}: no JSON: {error}") from error
    told = told if isinstance(told, list) else [told]
    if len(told) != len(paths):
        raise Error(words or f"{program} {command}: {len(told)} objects for {len(paths)} files")
    return told, words


def tell(command, path):
    """The object that `lime command --json PATH` prints. Error if it is not a container."""
    (told,), words = _run(command, [path])
    if "error" in told:
        raise Error(words or f"{os.fspath(path)}: {told['error']}")
    return told


def check(path, data=True, physics=False, strict=False):
    """Checks a container, or a NERSC, MILC or openQCD file: a dict, as `lime check --json` prints it.

    Its "verdict" is "good", "unverified" (data have no checksum, or one that cannot be compared),
    "bad" or "unreadable" (then "error" has the reason); "findings" is what is wrong, each with a
    "message".
    data: also read the data, and compare them with their checksums. physics: also compute
    plaquette and link trace of gauge configurations, and find links that are not in SU(3).
    strict: warnings and what is unverified are bad."""
    options = [option for option, wanted in (("--data", data), ("--physics", physics),
                                             ("--strict", strict)) if wanted]
    return _run("check", [path], options)[0][0]


def tell_all(command, paths):
    """One object for each path; also for what is not a container: it has "error"."""
    for first in range(0, len(paths), _FILES_AT_ONCE):
        yield from _run(command, paths[first:first + _FILES_AT_ONCE])[0]


def is_foreign(told):
    """It could be read, and is not a container."""
    return told.get("error") == "not a LIME container"
