"""numpython - tests that need numpy run in a Python that has it: Debian's, if not this one.

    import numpython
    numpython.need("numpy")        # before anything else is done
"""

import functools
import importlib.util
import os
import subprocess
import sys

DEBIAN = "/usr/bin/python3"


def has(module):
    """Whether this Python has it."""
    return importlib.util.find_spec(module) is not None


@functools.lru_cache(maxsize=None)
def python_with(*modules):
    """The Python that has these: this one, or Debian's; None."""
    if all(map(has, modules)):
        return sys.executable
    if os.access(DEBIAN, os.X_OK) and subprocess.run(
            [DEBIAN, "-c", f"import {', '.join(modules)}"], stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=480, check=False).returncode == 0:
        return DEBIAN
    return None


def need(*modules):
    """Goes on in a Python that has these modules; if there is none, in this one."""
    if python_with(*modules) == DEBIAN != sys.executable and not os.environ.get("NUMPYTHON"):
        os.execve(DEBIAN, [DEBIAN, *sys.argv], {**os.environ, "NUMPYTHON": "1"})
