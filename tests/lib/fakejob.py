"""fakejob - a job made of one thread, that answers as a test wants it to.

    with FakeJob(path) as job:
        job.delay = 0.1            # before each answer to a read
        job.reads                  # (offset, bytes) of those that were served
    job.writes                 # (offset, bytes, gate, until)

What it speaks is docs/protocol.md. `handle` may be replaced: handle(job, connection, opcode, tag,
payload) returns the reply's payload, None for no reply at all, or raises Hangup.
"""

import mmap
import os
import socket
import struct
import threading
import time

MAGIC, VERSION = 0x4A4D494C, 1
HELLO, OPEN, CLOSE, READ, STATUS, STOP, OPEN_WRITE, WRITE, SYNC, SUM = range(1, 11)
HEADER = struct.Struct("<IHHIIQ")


class Hangup(Exception):
    pass


def ok(fmt="", *values):
    return struct.pack("<I" + fmt, 0, *values)


def error(code, text=""):
    return struct.pack("<I", code) + text.encode()


class FakeJob:
    def __init__(self, path, ranks=3):
        self.path, self.ranks = path, ranks
        self.version, self.hosts = VERSION, 1
        self.delay = 0
        self.reads, self.writes, self.opens, self.hellos = [], [], [], 0
        self.refuse = 0   # errno of openings
        self.fail = 0     # errno of reads
        self.silent = threading.Event()  # reads and writes get no answer
        self.hang_up_after = None        # so many reads
        self.handle = FakeJob.answer
        self.files, self.last, self.window = {}, 0, None
        self.connections, self.ended = [], False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.ended = True
        self.listener.close()
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.drop()

    def drop(self):
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _listen(self):
        while not self.ended:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _exactly(self, connection, n):
        data = b""
        while len(data) < n:
            part = connection.recv(n - len(data))
            if not part:
                raise Hangup
            data += part
        return data

    def _serve(self, connection):
        try:
            while True:
                head, fds, _, _ = socket.recv_fds(connection, HEADER.size, 4)
                if not head:
                    raise Hangup
                head += self._exactly(connection, HEADER.size - len(head))
                _, _, opcode, _, n, tag = HEADER.unpack(head)
                payload = self._exactly(connection, n)
                if opcode == HELLO and fds:
                    self.window = mmap.mmap(fds[0], struct.unpack("<Q", payload)[0])
                    os.close(fds[0])
                reply = self.handle(self, connection, opcode, tag, payload)
                if reply is not None:
                    connection.sendall(HEADER.pack(MAGIC, self.version, opcode, 1, len(reply),
                                                   tag) + reply)
        except (Hangup, OSError):
            connection.close()

    def answer(self, _connection, opcode, _tag, payload):
        if opcode == HELLO:
            self.hellos += 1
            return ok("IIQ", self.ranks, self.hosts, 1 << 20)
        if opcode == OPEN:
            inode, size, _, _ = struct.unpack_from("<QQqI", payload)
            path = payload[28:].decode()
            self.opens.append(path)
            if self.refuse:
                return error(self.refuse, "refused by the test")
            st = os.stat(path)
            if (st.st_ino, st.st_size) != (inode, size):
                return error(116, "another file")
            number = self.last = self.last + 1
            self.files[number] = os.open(path, os.O_RDONLY)
            return ok("I", number)
        if opcode == CLOSE:
            os.close(self.files.pop(struct.unpack("<I", payload)[0]))
            return ok()
        if opcode == READ:
            number, offset, n, at = struct.unpack("<IQQQ", payload)
            if self.hang_up_after is not None and len(self.reads) >= self.hang_up_after:
                raise Hangup
            self.reads.append((offset, n))
            if self.silent.is_set():
                return None
            time.sleep(self.delay)
            if self.fail:
                return error(self.fail, "failed by the test")
            data = os.pread(self.files[number], n, offset)
            self.window[at:at + n] = data
            return ok("Q", len(data))
        if opcode == OPEN_WRITE:
            number = self.last = self.last + 1
            self.files[number] = os.open(payload[8:].decode(), os.O_WRONLY)
            return ok("I", number)
        if opcode == WRITE:
            number, offset, n, at, gate, until = struct.unpack("<IQQQQQ", payload)
            self.writes.append((offset, n, gate, until))
            if self.silent.is_set():
                return None
            os.pwrite(self.files[number], self.window[at:at + n], offset)
            return ok("Q", n)
        if opcode == SYNC:
            return ok()
        return error(38)
