#!/usr/bin/env python3
"""limefs-run and limefs-io with another preloaded library: one that counts what is read and
written, and Darshan, if DARSHAN is the path of a libdarshan.so (Debian has no package of it)."""

import glob
import os
import shutil
import sys
import unittest

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, name) for name in ("lib", "fuse")]
import limetest
import mpitest
import test_ranks
import test_run
from jobtest import MIB
from test_write_ranks import write_record

DARSHAN = os.environ.get("DARSHAN")
LIBRARY = test_run.LIBRARY
COPY = "-c", "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static _Atomic long calls, bytes;

static ssize_t counted(ssize_t n)
{
    calls++;
    bytes += n > 0 ? n : 0;
    return n;
}

#define REPLACED(result, name, parameters, arguments, use)               \
    result name parameters                                                \
    {                                                                     \
        static result (*real) parameters;                                 \
        if (!real)                                                        \
            real = (result(*) parameters)dlsym(RTLD_NEXT, #name);         \
        return use(real arguments);                                       \
    }
#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...)                            \
    {                                                                     \
        va_list list;                                                     \
        va_start(list, flags);                                            \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list);                                                     \
        calls++;                                                          \
        return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode); \
    }

OPEN(open)
OPEN(open64)
REPLACED(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), counted)
REPLACED(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), counted)
REPLACED(ssize_t, pread64, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), counted)
REPLACED(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), counted)
REPLACED(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), counted)
REPLACED(ssize_t, pwrite64, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), counted)
REPLACED(int, close, (int fd), (fd), counted)

__attribute__((destructor)) static void report(void)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%ld", getenv("COUNTER"), (long)getpid());
    FILE *file = calls ? fopen(name, "w") : NULL;
    if (file) {
        fprintf(file, "%ld\n", (long)bytes);
        fclose(file);
    }
}
"""


def some(n, seed):
    return test_run.tagged_data(seed, n)


class Preloads:
    """The tests of a library; preload() returns its path and its environment."""

    def setUp(self):
        super().setUp()
        if not limetest.can_mount():
            self.skipTest(limetest.NO_FUSE)
        self.reports = os.path.join(self.tempdir(), "report")
        self.library, self.more = self.preload()

    def test_run(self):
        """limefs-run's library before the other one, and after it."""
        data = some(5 * MIB + 3, 1)
        path = test_run.make_stable(f"{self.tempdir()}/c.lime", ("info", b"x"), ("data", data))
        ours_first = [], {**self.more, "LD_PRELOAD": self.library}
        other_first = ["env", f"LD_PRELOAD={self.library}:{LIBRARY}"], self.more
        with limetest.Mount(path) as mount:
            for order, (prefix, env) in (("ours first", ours_first),
                                         ("the other first", other_first)):
                for command in ["cat"], ["dd", "bs=300001", "status=none"], [sys.executable, *COPY]:
                    record = mount.join("data")
                    command = [*prefix, *command,
                               f"if={record}" if command[0] == "dd" else record]
                    with self.subTest(command=command, order=order):
                        done = test_run.run(command, env=env)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertTrue(done.stdout == data)
                        self.assertEqual((done.direct, done.through), (len(data), 0), done.stderr)
        self.assertTrue(glob.glob(self.reports + "*"))

    def test_job(self):
        """The ranks of a job read and write under the library, and end with it."""
        mpitest.need_job(self)
        old, new, more = (some(n, i) for i, n in enumerate((64 * MIB, 64 * MIB, 24 * MIB)))
        path = self.write("c.lime", limetest.container([("data", old)]))
        settings = " ".join(f"-x {name}={value}" for name, value in
                            {**self.more, "LD_PRELOAD": self.library}.items())
        mount = limetest.Mount(path, timeout=60, env=mpitest.environment(), opts=[
            "ranks=3", "rw", "extent=12M", "job_timeout=30",
            f"mpirun=mpirun --oversubscribe {settings}"])
        with test_ranks.serving(mount):
            os.sync()
            limetest.drop_cache(path)
            self.assertTrue(limetest.read(mount.join("data")) == old)
            write_record(mount.join("data"), new, flags=0)
            write_record(mount.join("more"), more)
            self.assertTrue(limetest.read(mount.join("data")) == new)
            seen = test_ranks.stats(mount)
            self.assertGreater(seen["forwarded_bytes"], 32 * MIB)
            self.assertGreater(seen["forwarded_written_bytes"], 64 * MIB)
            self.assertEqual(seen["job"]["connections"], 1)
        self.assertEqual([(record.name, record.data) for record in limetest.records_of(path)],
                         [("data", new), ("more", more)])
        self.assertTrue(glob.glob(self.reports + "*"))


@unittest.skipUnless(shutil.which("cc"), "needs cc")
class Counter(Preloads, limetest.TestCase):
    def preload(self):
        source = self.write("counter.c", COUNTER.encode())
        library = os.path.join(os.path.dirname(source), "counter.so")
        self.run_ok(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"])
        return library, {"COUNTER": self.reports}


@unittest.skipUnless(DARSHAN, "needs DARSHAN=PATH of libdarshan.so")
class Darshan(Preloads, limetest.TestCase):
    def preload(self):
        return DARSHAN, {"DARSHAN_LOGFILE": self.reports, "DARSHAN_ENABLE_NONMPI": "1"}


if __name__ == "__main__":
    limetest.main()
