"""faults - the test's side of tests/helpers/fault.c: which call of which process is to fail, and
how often each was made."""

import mmap
import os
import struct

import limetest

# How: nothing is done, half of it and no error, half of it and one, nothing before it is disarmed.
FAIL, SHORT, TORN, HANG = range(4)
DAEMON, LIME = 0, -1  # who; a rank is 1 + its number
_HEAD = struct.Struct("=24siiiiQQ")
_CALL = struct.Struct("=24sQ")
_CALLS = 64


class Faults:
    """Of the processes that are started with environment(), on files in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(limetest.tempdir(), "control")
        with open(self.path, "w+b") as file:
            file.truncate(_HEAD.size + _CALLS * _CALL.size)
            self._map = mmap.mmap(file.fileno(), 0)

    def environment(self, base=None, later=0):
        """later: seconds by which their clock is ahead: no file is young then."""
        preload = limetest.program("fault.so")
        base = os.environ if base is None else base
        more = {"LD_PRELOAD": preload, "FAULT_CONTROL": self.path, "FAULT_FOLDER": self.folder,
                "FAULT_LATER": str(later)}
        if limetest.SANITIZED:  # it comes before the sanitizer's own library
            more["ASAN_OPTIONS"] = base.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return {**base, **more}

    def count(self, who):
        """From now on, its calls, and none fails."""
        self.arm(who, "", 0, 0)

    def arm(self, who, call, nth, code, how=FAIL, lasts=False):
        """The nth call from now on fails, and (lasts) those that follow."""
        self.disarm()
        for i in range(_CALLS):
            struct.pack_into("=Q", self._map, _HEAD.size + i * _CALL.size + 24, 0)
        _HEAD.pack_into(self._map, 0, call.encode(), who, code, how, lasts, nth, 0)

    def disarm(self):
        struct.pack_into("=Q", self._map, _HEAD.size - 16, 0)

    @property
    def struck(self):
        return _HEAD.unpack_from(self._map, 0)[-1]

    def counts(self):
        """{call: how often}, of those that were made."""
        found = (_CALL.unpack_from(self._map, _HEAD.size + i * _CALL.size) for i in range(_CALLS))
        return {name.rstrip(b"\0").decode(): count for name, count in found if count}
