"""fakejob - a job in one process that answers as a test requires.

    with FakeJob(path) as job:
        job.delay = 0.1            # before each answer to a read
        job.reads                  # (offset, bytes) of each read that it served
        job.writes                 # (offset, bytes, fence, until, uid)
        job.requests               # the opcodes, in order of arrival

It reads and writes by the descriptors that come with OPEN and OPEN_WRITE. docs/protocol.md
describes the protocol. A test may replace `handle`: handle(job, connection, opcode, tag, payload)
returns the reply's payload, None for no reply, or raises Hangup. While it runs, job.passed is the
descriptor that came with the request, or None.
"""

import errno
import fcntl
import mmap
import os
import socket
import struct
import threading
import time

from jobclient import (CLOSE, HEADER, HELLO, MAGIC, OPEN, OPEN_WRITE, OPENING, READ, STATUS, SYNC,
                       VERSION, WRITE)

WRITING = struct.Struct("<IQQQQQI")


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
        self.roots = []
        self.refuse = 0   # errno for opens
        self.fail = 0     # errno for reads
        self.silent = threading.Event()  # set: reads and writes get no answer
        self.hang_up_after = None        # number of reads
        self.handle = FakeJob.answer
        self.files, self.last, self._here = {}, 0, threading.local()
        self.windows, self.window = {}, None  # by connection; the latest one
        self.connections, self.ended, self.requests = [], False, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.listening = threading.Thread(target=self._listen, daemon=True)
        self.listening.start()

    def __enter__(self):
        return self

    @property
    def passed(self):
        """The descriptor of the calling thread's request."""
        return self._here.passed

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Waits for the thread before its descriptor is closed: a restarted accept() would wait
        on the next socket with the same number."""
        self.ended = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listening.join()
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
                self._here.passed = fds[0] if fds else None
                if opcode == HELLO and fds:
                    self.window = mmap.mmap(fds[0], struct.unpack("<Q", payload)[0])
                    self.windows[connection] = self.window
                self.requests.append(opcode)
                reply = self.handle(self, connection, opcode, tag, payload)
                for fd in fds:
                    os.close(fd)
                if reply is not None:
                    connection.sendall(HEADER.pack(MAGIC, self.version, opcode, 1, len(reply),
                                                   tag) + reply)
        except (Hangup, OSError):
            connection.close()

    def answer(self, connection, opcode, _tag, payload):
        if opcode == HELLO:
            self.hellos += 1
            return ok("IIQ", self.ranks, self.hosts, 1 << 20)
        if opcode in (OPEN, OPEN_WRITE):
            return self.open(opcode, payload)
        if opcode == CLOSE:
            number = struct.unpack("<I", payload)[0]
            if number not in self.files:
                return error(errno.EBADF, "no such file")
            os.close(self.files.pop(number))
            return ok()
        if opcode == READ:
            number, offset, n, at = struct.unpack("<IQQQ", payload)
            if number not in self.files:
                return error(errno.EBADF, "no such file")
            if self.hang_up_after is not None and len(self.reads) >= self.hang_up_after:
                raise Hangup
            self.reads.append((offset, n))
            if self.silent.is_set():
                return None
            time.sleep(self.delay)
            if self.fail:
                return error(self.fail, "failed by the test")
            data = os.pread(self.files[number], n, offset)
            self.windows[connection][at:at + n] = data
            return ok("Q", len(data))
        if opcode == WRITE:
            number, offset, n, at, fence, until, uid = WRITING.unpack(payload)
            self.writes.append((offset, n, fence, until, uid))
            if self.silent.is_set():
                return None
            os.pwrite(self.files[number], self.windows[connection][at:at + n], offset)
            return ok("Q", n)
        if opcode == SYNC:
            return ok()
        return error(errno.ENOSYS)

    def open(self, opcode, payload):
        """Checks the descriptor as a job does: present, as described, and open for that access."""
        device, inode, uid, mode, size, mtime, mtime_ns, ctime, ctime_ns, root = \
            OPENING.unpack_from(payload)
        path = payload[OPENING.size:].decode()
        if opcode == OPEN:
            self.opens.append(path)
        self.roots.append(path[:root])
        if self.refuse:
            return error(self.refuse, "refused by the test")
        if self.passed is None:
            return error(errno.EBADF, "no descriptor")
        st = os.fstat(self.passed)
        state = (st.st_size, st.st_mtime_ns, st.st_ctime_ns)
        if (st.st_dev, st.st_ino, st.st_uid, st.st_mode) != (device, inode, uid, mode) or (
                opcode == OPEN and state != (size, mtime * 10 ** 9 + mtime_ns,
                                             ctime * 10 ** 9 + ctime_ns)):
            return error(errno.ESTALE, "another file")
        access = fcntl.fcntl(self.passed, fcntl.F_GETFL) & os.O_ACCMODE
        if access not in (os.O_RDWR, os.O_RDONLY if opcode == OPEN else os.O_WRONLY):
            return error(errno.EBADF, "not open for that")
        number = self.last = self.last + 1
        self.files[number] = os.dup(self.passed)
        return ok("I", number) if opcode == OPEN else ok("II", number, 0)
