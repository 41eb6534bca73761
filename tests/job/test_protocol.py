#!/usr/bin/env python3
"""The example in docs/protocol.md, byte for byte."""

import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jobclient
import limetest
from jobclient import HELLO, MOVE, OPEN, OPEN_WRITE, READ, SYNC, WRITE, packet


def numbers(*values):
    return struct.pack(f"<{len(values)}I", *values)


def long(value):
    return struct.pack("<Q", value)


def example():
    n = 4719568
    opening = jobclient.opening(
        "/data/conf.0001", root=5, device=0x802, inode=1048600, uid=1000, mode=0o100640, size=n,
        mtime_ns=1763632800123456789, ctime_ns=1763632801500000000)
    write = jobclient.writing(8, 1 << 20, n, 32 << 20, uid=1000)
    for opcode, tag, request, reply in [
            (HELLO, 1, long(64 << 20), numbers(0, 2, 1) + long(1 << 20)),
            (OPEN, 2, opening, numbers(0, 7)),
            (READ, 3, MOVE.pack(7, 0, n, 0), numbers(0) + long(n)),
            (OPEN_WRITE, 5, opening, numbers(0, 8)),
            (WRITE, 6, write, numbers(0) + long(n)),
            (SYNC, 7, numbers(8), numbers(0))]:
        yield ">", packet(opcode, request, tag)
        yield "<", packet(opcode, reply, tag, flags=1)
    yield "<", packet(READ, numbers(6) + b"read: outside of the file", 4, flags=1)


class Protocol(limetest.TestCase):
    def test_example(self):
        with open(os.path.join(limetest.REPO, "docs", "protocol.md"), encoding="utf-8") as file:
            lines = file.read().partition("## An example")[2].splitlines()
        found = []
        for line in lines:
            if line[4:5] in ("<", ">"):
                found.append((line[4], bytes.fromhex(line[5:])))
            elif found and line.startswith("      "):
                found[-1] = (found[-1][0], found[-1][1] + bytes.fromhex(line))
        self.assertEqual(found, list(example()))


if __name__ == "__main__":
    limetest.main()
