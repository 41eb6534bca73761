"""Build the wheel of limefs for pip (PEP 517), a zip of the package and its metadata. It needs no
other package, so that it works without a network."""

import base64
import glob
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def _read_setting(key):
    """Reads a string from pyproject.toml; Python 3.9 has no TOML parser."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="ascii") as file:
        return re.search(rf'^{key} = "(.*)"$', file.read(), re.M)[1]


def _metadata():
    return (f"Metadata-Version: 2.1\nName: limefs\nVersion: {_read_setting('version')}\n"
            f"Summary: {_read_setting('description')}\nLicense: BSD-3-Clause\n"
            f"Requires-Python: {_read_setting('requires-python')}\nRequires-Dist: numpy\n")


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = f"limefs-{_read_setting('version')}.dist-info"
    files = {f"{info}/METADATA": _metadata().encode(),
             f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: limefs\n"
                              b"Root-Is-Purelib: true\nTag: py3-none-any\n"}
    for path in sorted(glob.glob(os.path.join(HERE, "limefs", "*.py"))):
        with open(path, "rb") as file:
            files[f"limefs/{os.path.basename(path)}"] = file.read()
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n"
                     for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    name = f"limefs-{_read_setting('version')}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in files.items():
            out.writestr(path, data)
    return name
