"""Find and run the program `lime`, and parse its JSON output."""

import json
import os
import shutil
import subprocess

_HERE = os.path.dirname(os.path.abspath(__file__))
_FILES_PER_CALL = 200


class Error(Exception):
    """An error, with the message of `lime` if it has printed one."""


class NotFound(Error, LookupError):
    """A container has no such record or field, or more than one."""


def _own_lime():
    """Returns the path of `lime` in the build tree or installation that contains this package, or
    None. In any other directory, another user could have placed a program of that name."""
    parts = [""] * 4 + _HERE.split(os.sep)
    root = os.sep.join(parts[4:-4])
    if parts[-4:-1] == ["src", "lime", "python"]:
        return os.path.join(root, "build", "bin", "lime")
    if parts[-4] == "lib" and parts[-3].startswith("python3") and parts[-2].endswith("-packages"):
        return os.path.join(root, "bin", "lime")
    return None


def find_lime():
    """Returns the path of the program `lime`."""
    given = os.environ.get("LIME")
    if given:
        found = shutil.which(given)
        if not found:
            raise Error(f"$LIME: {given}: not a program")
        return found
    own = _own_lime()
    found = own and shutil.which(own) or shutil.which("lime")
    if not found:
        raise Error("lime: not found: build it (make), set LIME to its path, or add its directory "
                    "to PATH")
    return found


def _run_lime(command, paths, options=()):
    """Returns the objects that `lime command --json` prints, one for each path, and its messages.
    The exit status is that of the worst file, and adds nothing to the objects."""
    program = find_lime()
    try:
        done = subprocess.run([program, command, "--json", *options, "--",
                               *map(os.fspath, paths)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
    except (OSError, ValueError) as error:  # ValueError: a NUL in a path
        raise Error(f"{program}: {error}") from error
    messages = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0:
        raise Error(f"{program} {command}: ended by signal {-done.returncode}")
    try:
        found = [json.loads(line) for line in done.stdout.splitlines()]
    except ValueError as error:
        raise Error(messages or f"{program} {command}: no JSON: {error}") from error
    if len(found) != len(paths):
        raise Error(messages or f"{program} {command}: no JSON: {len(found)} objects for {len(paths)} files")
    return found, messages


def query(command, path):
    """Returns the object that `lime command --json PATH` prints. Error: PATH is not a container."""
    (info,), messages = _run_lime(command, [path])
    if is_failure(info):
        messages = messages.replace("use -r for", "use limefs.tree() for")
        raise Error(messages or f"{os.fspath(path)}: {info['error']}")
    if _has_other_format(info, path):
        raise Error(f"{os.fspath(path)}: a {info['format']} file: mount it with limefs, or use "
                    "'lime convert --to ildg'")
    return info


def check(path, data=True, physics=False, strict=False):
    """Checks a container, or a NERSC, MILC or openQCD file. Returns the dict that
    `lime check --json` prints.

    Its "status" is "good", "unverified" (data have no checksum, or one that cannot be compared),
    "bad" or "unreadable" ("error" has the reason); "findings" lists defects with a "message".
    data: also read the data, and compare them with their checksums. physics: also compute
    plaquette and link trace of gauge configurations, and find links that are not in SU(3).
    strict: warnings and unverified data make the status "bad"."""
    options = [option for option, is_set in (("--data", data), ("--physics", physics),
                                             ("--strict", strict)) if is_set]
    return _run_lime("check", [path], options)[0][0]


def query_all(command, paths):
    """Yields one object for each path; see is_failure()."""
    for first in range(0, len(paths), _FILES_PER_CALL):
        yield from _run_lime(command, paths[first:first + _FILES_PER_CALL])[0]


def is_failure(info):
    """Returns true if `lime ls` or `lime info` could not read the container at all."""
    return "size" not in info


def _has_other_format(info, path):
    """Returns true for a NERSC, MILC or openQCD file, whose records are not stored in it."""
    return "format" in info and not os.path.isdir(path)


def is_foreign(info, path):
    """Returns true if the file could be read and is not a container."""
    return _has_other_format(info, path) or (
        is_failure(info) and (info["error"] or "").startswith("not a LIME container"))
