"""aheadlib - what the tests of reading ahead share: what is in memory, and daemons that end."""

import contextlib
import ctypes
import mmap
import os
import threading

import writelib

PAGE = 4096
FIELD = "ildg-binary-data"


def drop(path):
    """Nothing of it is in memory, where the file system can do that: else nothing is read ahead."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def pages_there(path):
    """How many of a file's pages the kernel has."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    with open(path, "rb") as file, \
            mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE) as mapped:
        there = ctypes.create_string_buffer((len(mapped) + PAGE - 1) // PAGE)
        place = ctypes.c_char.from_buffer(mapped)
        result = libc.mincore(ctypes.addressof(place), len(mapped), there)
        del place
        assert result == 0, ctypes.get_errno()
        return sum(byte & 1 for byte in there.raw)


def need_linux(test, *version):
    if tuple(map(int, os.uname().release.split(".")[:2])) < version:
        test.skipTest(f"needs Linux {'.'.join(map(str, version))}")


def need_pages(test, path):
    """Skips it where what is read ahead cannot be told by the pages that are in memory."""
    need_linux(test, 6, 5)
    drop(path)
    if pages_there(path):
        test.skipTest("needs a file system whose pages can be dropped")


def check_end(test, mount, how, read):
    """The daemon gets signal `how` while a thread reads, once read(begun) has set `begun`: it
    ends, and the reader does not wait for ever."""
    mount.start()
    pid, begun = mount.pid, threading.Event()

    def run():
        with contextlib.suppress(OSError):
            read(begun)
        begun.set()
    reader = threading.Thread(target=run)
    reader.start()
    test.assertTrue(begun.wait(60))
    os.kill(pid, how)
    reader.join(60)
    test.assertFalse(reader.is_alive())
    writelib.until(lambda: not os.path.exists(f"/proc/{pid}"), 60)
    mount.stop()
