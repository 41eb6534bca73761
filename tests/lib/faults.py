"""faults - control tests/helpers/fault.c: select the call of a process that fails or that a rename
precedes, and count calls."""

import mmap
import os
import struct

import limetest

# FAIL: the call does nothing. SHORT: half of it, no error. TORN: half of it and an error. HANG: it
# waits for disarm(). RENAME: all of it, after a rename. CHANGE: all, after rename[0] is changed.
FAIL, SHORT, TORN, HANG, RENAME, CHANGE = range(6)
DAEMON, LIME, ANY_PROCESS = 0, -1, -2  # who; a rank is 1 + its number
EACH = "*"  # any call
_HEAD = struct.Struct("=24siiiiQQQ512s512sq")
_STRUCK, _NTH = (struct.calcsize("=24siiii") + 8, struct.calcsize("=24siiii"))
_CALL = struct.Struct("=24sQ")
_CALLS = 64


class Faults:
    """Controls the processes started with environment(), for files in `directory`."""

    def __init__(self, directory):
        self.directory = directory
        self.path = os.path.join(limetest.tempdir(), "control")
        with open(self.path, "w+b") as file:
            file.truncate(_HEAD.size + _CALLS * _CALL.size)
            self._map = mmap.mmap(file.fileno(), 0)

    def environment(self, base=None, later=0, links=True):
        """later: seconds by which the processes' clock is ahead, so that no file is recent. links:
        whether the file system has hard links."""
        preload = limetest.program("fault.so")
        base = os.environ if base is None else base
        more = {"LD_PRELOAD": preload, "FAULT_CONTROL": self.path, "FAULT_FOLDER": self.directory,
                "FAULT_LATER": str(later)}
        if not links:
            more["FAULT_NO_LINKS"] = "1"
        if limetest.SANITIZED:  # it comes before the sanitizer's own library
            more["ASAN_OPTIONS"] = base.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return {**base, **more}

    def count(self, who):
        """Starts counting calls; none fails."""
        self.arm(who, "", 0, 0)

    def arm(self, who, call, nth, code, how=FAIL, lasts=False, rename=(b"", b"", 0)):
        """The nth call from now on fails; with `lasts`, all later ones, too."""
        self.disarm()
        for i in range(_CALLS):
            struct.pack_into("=Q", self._map, _HEAD.size + i * _CALL.size + 24, 0)
        _HEAD.pack_into(self._map, 0, call.encode(), who, code, how, lasts, 0, 0, 0, *rename)
        struct.pack_into("=Q", self._map, _NTH, nth)  # last: this arms the entry

    def disarm(self):
        struct.pack_into("=Q", self._map, _NTH, 0)

    def renames(self, one, other, flags, who=ANY_PROCESS, most=1000):
        """For each run of the loop's body, renames `one` to `other` (renameat2() with these flags)
        one call of the daemon or a rank later, until there are no more calls. Then again, with
        a rename back before the next call, and so on."""
        names = (os.fsencode(one), os.fsencode(other), flags)
        for lasts in (False, True):
            for nth in range(1, most):
                self.arm(who, EACH, nth, 0, RENAME, lasts, names)
                yield nth
                self.disarm()
                if not self.struck:
                    break
            else:
                raise AssertionError(f"more than {most} calls")

    @property
    def struck(self):
        return struct.unpack_from("=Q", self._map, _STRUCK)[0]

    def counts(self):
        """Returns {call: count} of the calls that were made."""
        found = (_CALL.unpack_from(self._map, _HEAD.size + i * _CALL.size) for i in range(_CALLS))
        return {name.rstrip(b"\0").decode(): count for name, count in found if count}
