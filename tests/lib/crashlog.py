"""crashlog - a program that changes the records of a mount and logs each step before it starts and
after it is acknowledged; and a check of the container that a crash leaves against such a log.

    python3 crashlog.py MOUNTPOINT LOG SEED KIND...      random steps until killed, or an error
    python3 crashlog.py --once MOUNTPOINT LOG SEED KIND...    each of them, in that order
    python3 crashlog.py --once MOUNTPOINT LOG SEED KIND...    each of them, in that order

The log has a line of JSON for each of these:

    do      a step begins: append, grow, resize, renew, remove, patch, name, message; with its
            arguments
    to      number of bytes of the step that are written after the next write
    part    patch: the bytes that the next write changes
    tried   fsync or close is called next
    kept    ... and has returned 0
    done    the whole step is acknowledged
    error   the errno of a failed call; the log ends

A tag in the log determines the bytes, so that the log stays small.
"""

import functools
import json
import os
import random
import signal
import sys
import time

import limetest

LARGEST = 1500000
PIECES = [1, 100, 4096, 65536, 131072, LARGEST]
LARGE_PIECES = [131072, 300001] + [1 << 20] * 10
MANY = 8  # records; with more, append becomes remove
# Steps with long records: the step, the least length, how much longer at most, which record.
LARGE = {"append_large": ("append", 0, 20000000), "append_big": ("append", 5000000, 1000000),
         "renew_large": ("renew", 0, 20000000), "renew_big": ("renew", 1000000, 1000000, 1),
         "renew_last_big": ("renew", 4000000, 1000000, -1)}


@functools.lru_cache(maxsize=16)
def tag_bytes(tag, n):
    """Random bytes; or whole records, so that data looks like a header."""
    dice = random.Random(tag)
    if dice.randrange(3):
        return dice.randbytes(n)
    image = limetest.container([(f"inside {tag}", dice.randbytes(dice.randrange(1000)))])
    return (image * (n // len(image) + 1))[:n]


# ---- the program ----


class Writer:
    def __init__(self, mount, log, seed):
        self.mount, self.seed, self.count = mount, seed, 0
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.dice = random.Random(seed)

    def write_entry(self, **entry):
        os.write(self.log, json.dumps({**entry, "time": time.monotonic()}).encode() + b"\n")

    def names(self):
        return sorted(os.listdir(self.mount), key=lambda name: int(name.split("-")[0]))

    def path(self, name):
        return os.path.join(self.mount, name)

    def length(self):
        return self.dice.choice([0, 1, 8, 1000, 4096, 70001, self.dice.randrange(300000),
                                 self.dice.randrange(LARGEST)])

    def open(self, name, flags):
        """Opens half of the files with O_DIRECT, so that the daemon has unsynced data, too."""
        return os.open(self.path(name), flags | self.dice.choice([0, os.O_DIRECT]), 0o644)

    def tag(self):
        self.count += 1
        return f"{self.seed}.{self.count}"

    def sync(self, fd, upto):
        self.write_entry(tried=upto)
        os.fsync(fd)
        self.write_entry(kept=upto)

    def close(self, fd, upto):
        self.write_entry(tried=upto)
        os.close(fd)
        self.write_entry(done=True)

    def write(self, fd, data, syncs, pieces=PIECES):
        """Writes `data` in pieces."""
        at = 0
        while at < len(data):
            n = self.dice.choice(pieces)
            self.write_entry(to=min(at + n, len(data)))
            at += os.write(fd, data[at:at + n])
            if syncs and self.dice.randrange(len(pieces)) == 0:
                self.sync(fd, at)
        # Without a write, close acknowledges nothing: other processes may continue the record.
        if not data or (syncs and self.dice.randrange(2)):
            self.sync(fd, at)
        return at

    def append(self, n=None, pieces=PIECES):
        names, tag = self.names(), self.tag()
        n = self.length() if n is None else n
        type = f"t{tag}"
        name = self.dice.choice([type, f"{len(names) + 1:03d}-{type}"])
        self.write_entry(do="append", type=type, tag=tag, n=n)
        fd = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self.close(fd, self.write(fd, tag_bytes(tag, n), True, pieces))

    def patch_large(self):
        self.patch([4000000, 1048576])

    def grow(self):
        name, tag, n = self.names()[-1], self.tag(), self.length() // 3 + 1
        self.write_entry(do="grow", tag=tag, n=n)
        fd = self.open(name, os.O_WRONLY | os.O_APPEND)
        self.close(fd, self.write(fd, tag_bytes(tag, n), True))

    def cut(self):
        self.resize(len(self.names()) - 1)

    def renew(self, n=None, pieces=PIECES, i=None):
        """Rewrites an inner record, or the last one; often with the same length."""
        names, tag = self.names(), self.tag()
        if i is None:
            i = self.dice.randrange(len(names))
            if self.dice.randrange(3) == 0:
                n = os.stat(self.path(names[i])).st_size
            elif n is None:
                n = self.length()
        i %= len(names)
        last = i == len(names) - 1
        self.write_entry(do="renew", i=i, tag=tag, n=n)
        fd = self.open(names[i], os.O_WRONLY | os.O_TRUNC)
        at = self.write(fd, tag_bytes(tag, n), last, pieces)
        if not last and self.dice.randrange(2):
            self.sync(fd, at)
        self.close(fd, at)

    def allocate(self):
        name = self.names()[-1]
        n = os.stat(self.path(name)).st_size + self.length() + 1
        self.write_entry(do="resize", i=len(self.names()) - 1, n=n)
        fd = os.open(self.path(name), os.O_RDWR)
        os.posix_fallocate(fd, 0, n)
        os.fsync(fd)
        os.close(fd)
        self.write_entry(done=True)

    def resize(self, i=None):
        """Resizes an inner record or record i, by path or by an open descriptor."""
        names, n = self.names(), self.length()
        i = self.dice.randrange(len(names) - 1) if i is None else i
        self.write_entry(do="resize", i=i, n=n)
        if self.dice.randrange(2):
            os.truncate(self.path(names[i]), n)
        else:
            fd = os.open(self.path(names[i]), os.O_WRONLY)
            os.ftruncate(fd, n)
            os.close(fd)
        self.write_entry(done=True)

    def renew_inner(self):
        """Rewrites an inner record with another length."""
        names = self.names()
        i = self.dice.randrange(len(names) - 1)
        self.renew(os.stat(self.path(names[i])).st_size + self.dice.randrange(1, 100000), i=i)

    def renew_same(self):
        """Rewrites an inner record with the same length."""
        names = self.names()
        i = self.dice.randrange(len(names) - 1)
        self.renew(os.stat(self.path(names[i])).st_size, i=i)

    def renew_last(self):
        self.renew(self.length(), i=len(self.names()) - 1)

    def remove(self):
        name = self.names()[-1]
        self.write_entry(do="remove")
        os.unlink(self.path(name))
        self.write_entry(done=True)

    def patch(self, lengths=(1, 8, 4096, 100000)):
        """Changes bytes of a record in place."""
        names = self.names()
        i = self.dice.randrange(len(names))
        fd = self.open(names[i], os.O_RDWR)
        size = os.fstat(fd).st_size
        self.write_entry(do="patch", i=i)
        for _ in range(self.dice.randrange(1, 12) if size else 0):
            at, tag = self.dice.randrange(size), self.tag()
            n = min(self.dice.choice(lengths), size - at)
            self.write_entry(part=[at, tag, n])
            data = memoryview(tag_bytes(tag, n))
            while data:  # usually one write
                done = os.pwrite(fd, data, at)
                data, at = data[done:], at + done
            if self.dice.randrange(3) == 0:
                self.sync(fd, 0)
        self.close(fd, 0)

    def name(self):
        names, type = self.names(), f"n{self.tag()}"
        i = self.dice.randrange(len(names))
        self.write_entry(do="name", i=i, type=type)
        os.setxattr(self.path(names[i]), "user.lime.type", type.encode())
        self.write_entry(done=True)

    def message(self):
        names = self.names()
        i = self.dice.randrange(len(names))
        self.write_entry(do="message", i=i)
        if i > 0:
            value = b"%d" % self.dice.randrange(2)
            os.setxattr(self.path(names[i]), "user.lime.mb", value)
        self.write_entry(done=True)

    def step(self, kind):
        method, *large = LARGE.get(kind, (kind,))
        if large:
            least, more, *which = large
            getattr(self, method)(least + self.dice.randrange(more), LARGE_PIECES, *which)
        else:
            getattr(self, method)()

    def run(self, kinds):
        """Does random steps until SIGTERM or the first error."""
        ended = []
        signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
        try:
            while not ended:
                count = len(self.names())
                kind = self.dice.choice(kinds)
                if count < 3:
                    kind = "append"
                elif count > MANY and kind.startswith("append"):
                    kind = "remove"
                self.step(kind)
        except OSError as error:
            self.write_entry(error=error.errno, text=str(error))

    def run_once(self, kinds):
        """Does each step, until the first error."""
        try:
            for kind in kinds:
                self.step(kind)
        except OSError as error:
            self.write_entry(error=error.errno, text=str(error))


# ---- the check of a log ----


class Wrong(AssertionError):
    pass


def _need(good, message):
    if not good:
        raise Wrong(message)


def _resized(data, n):
    return data[:n].ljust(n, b"\0")


def _patched(data, part):
    at, tag, n = part
    return data[:at] + tag_bytes(tag, n) + data[at + n:]


def _is_mixture(found, versions):
    """Returns whether each byte is the one that some version has there."""
    if any(found == version for version in versions):
        return True
    step = 4096
    for at in range(0, len(found), step):
        pieces = {version[at:at + step] for version in versions}
        part = found[at:at + step]
        if part not in pieces and not all(any(piece[i] == byte for piece in pieces)
                                          for i, byte in enumerate(part)):
            return False
    return True


class Log:
    """records: [(type, data), ...] as acknowledged; open: the unfinished step, or None; error:
    (errno, time, message) of the program's error."""

    def __init__(self, path, records):
        self.records, self.open, self.error, self.steps = list(records), None, None, 0
        self.before = []  # the last steps, for messages
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
        for line in lines[:-1]:  # an incomplete last line does not count
            self._apply(json.loads(line))

    def __str__(self):
        return f"{self.steps} steps, {self.before}, then {self.open}; error {self.error}"

    def _apply(self, entry):
        if "do" in entry:
            self.open = {"to": 0, "ends": [0], "parts": [], "tried": None, "kept": None, **entry}
        elif "to" in entry:
            self.open["to"] = entry["to"]
            self.open["ends"].append(entry["to"])
        elif "part" in entry:
            self.open["parts"].append(entry["part"])
        elif "tried" in entry:
            self.open["tried"] = entry["tried"]
        elif "kept" in entry:
            self._kept(entry["kept"])
        elif "done" in entry:
            self._done()
        else:
            self.error = entry["error"], entry["time"], entry["text"]

    def _kept(self, upto):
        self.open["kept"] = upto
        if self.open["do"] == "patch":
            self._apply_parts()

    def _apply_parts(self):
        i = self.open["i"]
        for part in self.open["parts"]:
            self._change(i, data=_patched(self.records[i][1], part))
        self.open["parts"] = []

    def _change(self, i, type=None, data=None):
        old = self.records[i]
        self.records[i] = (type or old[0], old[1] if data is None else data)

    def _done(self):
        open, kind = self.open, self.open["do"]
        if kind == "append":
            self.records.append((open["type"].encode(), tag_bytes(open["tag"], open["n"])))
        elif kind == "grow":
            self._change(-1, data=self.records[-1][1] + tag_bytes(open["tag"], open["n"]))
        elif kind == "resize":
            i = open["i"]
            self._change(i, data=_resized(self.records[i][1], open["n"]))
        elif kind == "renew":
            self._change(open["i"], data=tag_bytes(open["tag"], open["n"]))
        elif kind == "remove":
            self.records.pop()
        elif kind == "patch":
            self._apply_parts()
        elif kind == "name":
            self._change(open["i"], type=open["type"].encode())
        self.before = [*self.before[-3:], open]
        self.open = None
        self.steps += 1

    def judge(self, found):
        """Raises Wrong if the records found, [(type, data), ...], contradict the log."""
        open = self.open
        kind = open["do"] if open else None
        where = {"append": len(self.records), "grow": len(self.records) - 1,
                 "remove": len(self.records) - 1}
        i = where[kind] if kind in where else open["i"] if open else None
        for j, (want, got) in enumerate(zip(self.records, found)):
            if j != i:
                _need(got[0] == want[0], f"record {j + 1}: type {got[0]}, not {want[0]}")
                _need(got[1] == want[1], f"record {j + 1} has other data than it had: "
                                         f"{len(got[1])} bytes, {len(want[1])} before")
        old = self.records[i] if i is not None and i < len(self.records) else None
        new = found[i] if i is not None and i < len(found) else None
        missing = 1 if kind in ("remove", "append") and new is None else 0
        expected = len(self.records) + (kind == "append") - missing
        _need(len(found) == expected, f"{len(found)} records instead of {expected}")
        if kind in ("grow", "resize", "renew", "patch", "message"):
            _need(new[0] == old[0], f"record {i + 1}: type {new[0]}, not {old[0]}")
        if kind and not (kind == "remove" and new is None):
            getattr(self, f"_judge_{kind}")(open, old, new)

    def _lengths(self, open):
        """The allowed lengths: what was acknowledged, or was about to be. A program that met an
        error may have exited, which closes all files; not every call need have failed."""
        return {open["kept"] or 0, open["tried"] or 0, *(open["ends"] if self.error else ())}

    def _whole_or_part(self, open, base, data, what):
        """The data is the base and an allowed part of the new bytes."""
        lengths = {len(base) + n for n in self._lengths(open)}
        _need(len(data) in lengths, f"{what}: {len(data)} bytes, not one of {lengths}")
        _need(data == (base + tag_bytes(open["tag"], open["n"]))[:len(data)], f"{what}: wrong data")

    def _judge_append(self, open, _, new):
        if new is None:
            _need(open["kept"] is None, "an acknowledged record is missing")
            return
        _need(open["tried"] is not None or self.error,
              "a record exists that no process has synced or closed")
        _need(new[0] == open["type"].encode(), f"new record: type {new[0]}")
        self._whole_or_part(open, b"", new[1], "new record")

    def _judge_grow(self, open, old, new):
        self._whole_or_part(open, old[1], new[1], "record that grows")

    def _judge_resize(self, open, old, new):
        _need(new[1] in (old[1], _resized(old[1], open["n"])),
              f"record {open['i'] + 1}, resized to {open['n']}: {len(new[1])} bytes, "
              f"{len(old[1])} before")

    def _judge_remove(self, _, old, new):
        _need(new == old, "a record that is being removed exists, and has changed")

    def _judge_name(self, open, old, new):
        _need(new[0] in (old[0], open["type"].encode()), f"record {open['i'] + 1}: type {new[0]}")
        _need(new[1] == old[1], "a record has other data after a change of its type")

    def _judge_message(self, _, old, new):
        _need(new == old, "a record has other data after a change of its MB")

    def _judge_patch(self, open, old, new):
        versions = [old[1]]
        for part in open["parts"]:
            versions.append(_patched(old[1], part))
        _need(len(new[1]) == len(old[1]), f"a record written in place: {len(new[1])} bytes, "
                                          f"{len(old[1])} before")
        _need(_is_mixture(new[1], versions), "a record written in place has foreign bytes")

    def _judge_renew(self, open, old, new):
        whole = tag_bytes(open["tag"], open["n"])
        if open["i"] == len(self.records) - 1:
            if open["kept"] is not None or new[1] != old[1]:
                self._whole_or_part(open, b"", new[1], "last record, rewritten")
        elif open["tried"] is None and not self.error:
            _need(new[1] == old[1], "a record changed before its new data is complete")
        elif open["kept"] is not None:
            _need(new[1] == whole, "a rewritten and acknowledged record has other data")
        else:
            parts = [whole[:n] for n in open["ends"]] if self.error else []
            _need(new[1] in (old[1], whole, *parts), "a record is neither the old nor the new one")


def main(args):
    once = args[0] == "--once"
    writer = Writer(*args[once:once + 3])
    (writer.run_once if once else writer.run)(args[once + 3:])


if __name__ == "__main__":
    main(sys.argv[1:])
