"""faults - the test's side of tests/helpers/fault.c: which call of which process is to fail, and
how often each was made; or before which call a name comes to lead elsewhere."""

import mmap
import os
import struct

import limetest

# How: nothing is done, half of it and no error, half of it and one, nothing before it is disarmed,
# all of it after renames() has renamed, or after the file `rename[0]` has been changed.
FAIL, SHORT, TORN, HANG, RENAME, CHANGE = range(6)
DAEMON, LIME, ANYBODY = 0, -1, -2  # who; a rank is 1 + its number
EACH = "*"  # call
_HEAD = struct.Struct("=24siiiiQQQ512s512sq")
_STRUCK, _NTH = (struct.calcsize("=24siiii") + 8, struct.calcsize("=24siiii"))
_CALL = struct.Struct("=24sQ")
_CALLS = 64


class Faults:
    """Of the processes that are started with environment(), on files in `directory`."""

    def __init__(self, directory):
        self.directory = directory
        self.path = os.path.join(limetest.tempdir(), "control")
        with open(self.path, "w+b") as file:
            file.truncate(_HEAD.size + _CALLS * _CALL.size)
            self._map = mmap.mmap(file.fileno(), 0)

    def environment(self, base=None, later=0, links=True):
        """later: seconds by which their clock is ahead: no file is young then. links: whether the
        file system has hard links."""
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
        """From now on, its calls, and none fails."""
        self.arm(who, "", 0, 0)

    def arm(self, who, call, nth, code, how=FAIL, lasts=False, rename=(b"", b"", 0)):
        """The nth call from now on fails, and (lasts) those that follow."""
        self.disarm()
        for i in range(_CALLS):
            struct.pack_into("=Q", self._map, _HEAD.size + i * _CALL.size + 24, 0)
        _HEAD.pack_into(self._map, 0, call.encode(), who, code, how, lasts, 0, 0, 0, *rename)
        struct.pack_into("=Q", self._map, _NTH, nth)  # last: it arms what is there by then

    def disarm(self):
        struct.pack_into("=Q", self._map, _NTH, 0)

    def renames(self, one, other, flags, who=ANYBODY, most=1000):
        """Each time that the body of the loop does something, `one` gets the name `other`
        (renameat2() with these flags) one call of the daemon or a rank later; until there are no
        more calls. Then again, and back again before the call that follows, and so on."""
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
        """{call: how often}, of those that were made."""
        found = (_CALL.unpack_from(self._map, _HEAD.size + i * _CALL.size) for i in range(_CALLS))
        return {name.rstrip(b"\0").decode(): count for name, count in found if count}
