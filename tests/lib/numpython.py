"""numpython - tests that need numpy run in a Python that has it: Debian's, if not this one.

    import numpython
    numpython.need("numpy")        # before anything else is done
"""

import importlib.util
import os
import subprocess
import sys

DEBIAN = "/usr/bin/python3"


def has(module):
    """Whether this Python has it."""
    return importlib.util.find_spec(module) is not None


def need(*modules):
    """Goes on in a Python that has these modules; if there is none, in this one."""
    if all(has(module) for module in modules) or os.environ.get("NUMPYTHON") \
            or not os.access(DEBIAN, os.X_OK):
        return
    names = ", ".join(modules)
    if subprocess.run([DEBIAN, "-c", f"import {names}"], stdin=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, timeout=480, check=False).returncode == 0:
        os.execve(DEBIAN, [DEBIAN, *sys.argv], {**os.environ, "NUMPYTHON": "1"})
