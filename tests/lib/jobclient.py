"""jobclient - a Python client of limefs-io, by docs/protocol.md.

    with jobclient.Client(path, window=64 << 20) as client:
        file = client.open("/data/conf.0001")
        client.read(file, offset=0, n=32 << 20, at=0)
        client.window[:32 << 20]
        file = client.open_for_writing("/data/conf.0001")
        client.write(file, offset=0, n=32 << 20, at=0)
        client.sync(file)
"""

import collections
import contextlib
import fcntl
import json
import mmap
import os
import socket
import struct

import limetest

MAGIC, VERSION = 0x4A4D494C, 3
HELLO, OPEN, CLOSE, READ, STATUS, STOP, OPEN_WRITE, WRITE, SYNC = range(1, 10)
REPLY = 1
HEADER = struct.Struct("<IHHIIQ")
OPENING = struct.Struct("<QQIIQqIqII")  # the fields of OPEN before its path; the last one is root
MOVE = struct.Struct("<IQQQ")
PERMIT = struct.Struct("<QQI")  # the further fields of WRITE
NO_FENCE = 2 ** 64 - 1
PAYLOAD_MAX = 64 * 1024
F_ADD_SEALS, SEAL, SHRINK, GROW = 1033, 1, 2, 4

Packet = collections.namedtuple("Packet", "opcode flags tag payload")


class JobError(OSError):
    """An error reply of the job."""


def packet(opcode, payload=b"", tag=0, flags=0, magic=MAGIC, version=VERSION, length=None):
    n = len(payload) if length is None else length
    return HEADER.pack(magic, version, opcode, flags, n, tag) + payload


def memfd(n, seals=SEAL | SHRINK | GROW):
    fd = os.memfd_create("jobclient", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, n)
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def identity(fd):
    """Returns what OPEN states about the file behind fd."""
    st = os.fstat(fd)
    return {"device": st.st_dev, "inode": st.st_ino, "uid": st.st_uid, "mode": st.st_mode,
            "size": st.st_size, "mtime_ns": st.st_mtime_ns, "ctime_ns": st.st_ctime_ns}


def opening(path, device, inode, uid, mode, size, mtime_ns, ctime_ns, root=None):
    """Returns the payload of OPEN and OPEN_WRITE. root: length of the agreed root in the path; by
    default, its directory."""
    path = os.fsencode(path)
    root = max(len(os.path.dirname(path)), 1) if root is None else root
    mtime, ctime = divmod(mtime_ns, 10 ** 9), divmod(ctime_ns, 10 ** 9)
    return OPENING.pack(device, inode, uid, mode, size, *mtime, *ctime, root) + path


def writing(file, offset, n, at, fence=None, until=0, uid=None):
    """Returns the payload of WRITE."""
    return MOVE.pack(file, offset, n, at) + PERMIT.pack(
        NO_FENCE if fence is None else fence, until, os.geteuid() if uid is None else uid)


class Connection:
    """Sends and receives raw packets, for tests that break the protocol."""

    def __init__(self, path, timeout=30):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(timeout * limetest.SLOWNESS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, opcode, payload=b"", fds=(), **header):
        raw = packet(opcode, payload, **header)
        if fds:
            socket.send_fds(self.socket, [raw], fds)
        else:
            self.socket.sendall(raw)

    def _receive_bytes(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise EOFError("the job has hung up")
            data += more
        return data

    def receive(self):
        magic, version, opcode, flags, n, tag = HEADER.unpack(self._receive_bytes(HEADER.size))
        assert (magic, version) == (MAGIC, VERSION), (magic, version)
        assert n <= PAYLOAD_MAX, n
        return Packet(opcode, flags, tag, self._receive_bytes(n))

    def is_dropped(self):
        """Whether the job hangs up, after any replies."""
        try:
            while self.socket.recv(4096):
                pass
        except ConnectionError:
            pass
        return True


def code_of(reply):
    """Returns (errno, text) of an error, else (0, payload)."""
    code, = struct.unpack_from("<I", reply.payload)
    return (code, reply.payload[4:].decode()) if code else (0, reply.payload[4:])


class Client(Connection):
    def __init__(self, path, window=0, timeout=30, hello=True):
        super().__init__(path, timeout)
        self._tag, self._replies = 100, {}
        self.window, self.window_bytes = None, window
        self._fd = memfd(window) if window else -1
        if window:
            self.window = mmap.mmap(self._fd, window)
        if hello:
            answer = self.ask(HELLO, struct.pack("<Q", window), [self._fd] if window else ())
            self.ranks, self.hosts, self.stripe = struct.unpack("<IIQ", answer)

    def close(self):
        super().close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def start(self, opcode, payload=b"", fds=()):
        """Sends a request; returns its tag."""
        self._tag += 1
        self.send(opcode, payload, fds, tag=self._tag)
        return self._tag

    def reply(self, tag):
        """Returns the reply to that request, after any other replies."""
        while tag not in self._replies:
            got = self.receive()
            assert got.flags == REPLY, got
            self._replies[got.tag] = got
        return self._replies.pop(tag)

    def finish(self, tag):
        """Returns the reply after its code; raises JobError if the code is not 0."""
        code, rest = code_of(self.reply(tag))
        if code:
            raise JobError(code, rest)
        return rest

    def ask(self, opcode, payload=b"", fds=()):
        return self.finish(self.start(opcode, payload, fds))

    def start_open(self, path, fd=None, opcode=OPEN, root=None, **wrong):
        """Opens the file here, if no fd is passed, and sends the descriptor. `wrong` replaces
        fields of identity()."""
        mine = os.open(path, os.O_RDONLY if opcode == OPEN else os.O_WRONLY) if fd is None else fd
        try:
            return self.start(opcode, opening(path, **{**identity(mine), **wrong}, root=root),
                              [mine])
        finally:
            if fd is None:
                os.close(mine)

    def open(self, path, fd=None, **kw):
        return struct.unpack_from("<I", self.finish(self.start_open(path, fd, **kw)))[0]

    def close_file(self, file):
        self.ask(CLOSE, struct.pack("<I", file))

    def start_read(self, file, offset, n, at):
        return self.start(READ, MOVE.pack(file, offset, n, at))

    def read(self, file, offset, n, at):
        return self.read_done(self.start_read(file, offset, n, at))

    def read_done(self, tag):
        return struct.unpack("<Q", self.finish(tag))[0]

    def start_open_for_writing(self, path, fd=None, **kw):
        return self.start_open(path, fd, OPEN_WRITE, **kw)

    def open_for_writing(self, path, fd=None, **kw):
        return self.open(path, fd, opcode=OPEN_WRITE, **kw)

    def start_write(self, file, offset, n, at, **permit):
        """permit: fence, until, uid."""
        return self.start(WRITE, writing(file, offset, n, at, **permit))

    def write(self, file, offset, n, at, **permit):
        return self.write_done(self.start_write(file, offset, n, at, **permit))

    def write_done(self, tag):
        return struct.unpack("<Q", self.finish(tag))[0]

    def start_sync(self, file):
        return self.start(SYNC, struct.pack("<I", file))

    def sync(self, file):
        self.finish(self.start_sync(file))

    def status(self):
        return json.loads(self.ask(STATUS))

    def stop(self):
        self.ask(STOP)
