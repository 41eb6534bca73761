"""numpython - run tests that need numpy in a Python that has it: Debian's, if not this one.

    import numpython
    numpython.need("numpy")        # before anything else
"""

import functools
import importlib.util
import os
import subprocess
import sys

DEBIAN = "/usr/bin/python3"


def has(module):
    """Whether this Python has the module."""
    return importlib.util.find_spec(module) is not None


@functools.lru_cache(maxsize=None)
def python_with(*modules):
    """Returns a Python that has the modules: this one, or Debian's; else None."""
    if all(map(has, modules)):
        return sys.executable
    if os.access(DEBIAN, os.X_OK) and subprocess.run(
            [DEBIAN, "-c", f"import {', '.join(modules)}"], stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=480, check=False).returncode == 0:
        return DEBIAN
    return None


def need(*modules):
    """Restarts the test in a Python that has these modules; without one, continues here."""
    if python_with(*modules) == DEBIAN != sys.executable and not os.environ.get("NUMPYTHON"):
        os.execve(DEBIAN, [DEBIAN, *sys.argv], {**os.environ, "NUMPYTHON": "1"})
