"""Programs build with the Lemon of `make install`: by hand, by pkg-config, by CMake."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import limetest
import mpitest

CANONICAL = os.path.join(limetest.REPO, "src", "mpi", "examples", "canonical.c")

CMAKE_PROJECT = """cmake_minimum_required(VERSION 3.16)
project(user {language})
find_package(lemon {version} REQUIRED)
add_executable(user {source})
target_link_libraries(user {target})
"""

# Calls a function that needs another library.
CHECKSUM_C = """#include <stdio.h>
#define main canonical
#include "canonical.c"
#undef main

int main(int argc, char **argv)
{
    if (lemonWriterSetChecksum(NULL, 1) != LEMON_ERR_PARAM)
        return 1;
    return canonical(argc, argv);
}
"""

# Names of C-LIME, and its header: a program can use both libraries.
FAKE_LIME_H = """#ifndef LIME_H
#define LIME_H
typedef struct { int fake; } LimeReader;
extern int lime_padding(int n);
extern void lime_byte_swap(void *data, int n);
extern LimeReader *limeCreateReader(void *fp);
#endif
"""
FAKE_LIME_C = """#include "lime.h"
static LimeReader reader = {77};
int lime_padding(int n) { return n + 1000; }
void lime_byte_swap(void *data, int n) { (void)n; *(char *)data = 's'; }
LimeReader *limeCreateReader(void *fp) { (void)fp; return &reader; }
"""
BOTH_C = """#include <lime.h>
#include <lemon.h>
#include <stdio.h>
#define main canonical
#include "canonical.c"
#undef main

int main(int argc, char **argv)
{
    char byte = 0;
    lime_byte_swap(&byte, 1);
    if (lime_padding(1) != 1001 || byte != 's' || limeCreateReader(NULL)->fake != 77)
        return 1;
    return canonical(argc, argv);
}
"""


def make(target, *variables):
    # Installs the existing build; make must not rebuild it, perhaps with other flags.
    limetest.run(["make", "-s", "-C", limetest.REPO, "-o", "all", target, f"B={limetest.B}",
                  f"MPICC={mpitest.MPICC}", *variables], check=True)


@limetest.check_all
class Install(mpitest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if limetest.SANITIZED:
            raise unittest.SkipTest("a program would have to load the sanitizer before liblemon.so")
        for tool in ("pkg-config", "cmake", "g++", mpitest.MPIRUN):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"needs {tool}")
        cls.prefix = os.path.join(limetest.tempdir(), "usr")
        make("install", f"PREFIX={cls.prefix}")
        cls.lib = os.path.join(cls.prefix, "lib")

    def compile(self, source, *flags, compiler=None):
        where = self.tempdir()
        path = source
        if not os.path.isabs(source) or "\n" in source:
            path = os.path.join(where, "user.cc" if compiler else "user.c")
            limetest.put(path, source.encode())
        program = os.path.join(where, "user")
        self.run_ok([compiler or mpitest.MPICC, "-Wall", "-Werror", "-o", program, path, *flags],
                    env=mpitest.environment())
        return program

    def pkg_config(self, *args, **env):
        env = {**os.environ, "PKG_CONFIG_PATH": os.path.join(self.lib, "pkgconfig"), **env}
        return self.run_ok(["pkg-config", *args, "lemon"], env=env).decode().split()

    def works(self, program, shared=True):
        """The program writes the file of the paper's example, on 2 ranks."""
        needed = self.run_ok(["readelf", "-d", program]).decode()
        self.assertEqual("[liblemon.so.1]" in needed, shared, needed)
        where = self.tempdir()
        done = mpitest.mpirun(2, program, cwd=where, env={"LD_LIBRARY_PATH": self.lib})
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        self.assertEqual(limetest.read(os.path.join(where, "canonical.test")),
                         limetest.record("lemon-test-text", b"LEMON test message", True, True))

    def test_installed_files(self):
        for path in ("lib/liblemon.a", "lib/liblemon.so", "lib/liblemon.so.1",
                     "lib/liblemon.so.1.1.0", "include/lemon.h", "include/lemon_cells.h",
                     "include/lemon_series.h", "lib/pkgconfig/lemon.pc",
                     "lib/cmake/lemon/lemonConfig.cmake", "bin/lemon_benchmark",
                     "bin/lemon_contents", "share/man/man1/lemon_benchmark.1",
                     "bin/lime-bench", "share/man/man1/lime-bench.1",
                     "bin/lime-checkpoint", "share/man/man1/lime-checkpoint.1",
                     "share/doc/limefs/docs/lemon.md",
                     "share/doc/limefs/docs/examples/xlf.c"):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, path)), path)
        link = os.path.join(self.lib, "liblemon.so")
        self.assertEqual(os.readlink(link), "liblemon.so.1")
        self.assertEqual(os.readlink(link + ".1"), "liblemon.so.1.1.0")

    def symbols(self, *options):
        shown = self.run_ok(["nm", "--defined-only", *options]).decode()
        return {line.split()[-1] for line in shown.splitlines() if len(line.split()) == 3}

    def test_symbols(self):
        """The library exports the calls of its headers, and no other names."""
        text = "".join(limetest.read(os.path.join(self.prefix, "include", name)).decode()
                       for name in ("lemon.h", "lemon_cells.h", "lemon_series.h"))
        declared = set(re.findall(r"\b(lemon[A-Z]\w*)\(", re.sub(r"/\*.*?\*/", "", text,
                                                                flags=re.S)))
        self.assertGreater(len(declared), 40)
        self.assertEqual(self.symbols("-D", os.path.join(self.lib, "liblemon.so")),
                         declared - {"lemonMessageHandler"})
        for name in self.symbols("-g", os.path.join(self.lib, "liblemon.a")):
            self.assertRegex(name, "^(lemon|limefile_)")

    def test_pkg_config(self):
        flags = self.pkg_config("--cflags", "--libs")
        self.works(self.compile(CANONICAL, *flags))
        self.works(self.compile(CANONICAL, *flags, compiler="cc"))  # without MPI's flags
        self.assertEqual(self.pkg_config("--modversion"), ["1.1.0"])

    def test_pkg_config_static(self):
        flags = self.pkg_config("--static", "--cflags", "--libs")
        flags[flags.index("-llemon")] = "-l:liblemon.a"
        self.works(self.compile(CANONICAL, *flags), shared=False)
        self.works(self.compile(CHECKSUM_C, f"-I{os.path.dirname(CANONICAL)}", *flags),
                   shared=False)

    def test_destdir(self):
        dest = self.tempdir()
        make("install", "PREFIX=/usr", f"DESTDIR={dest}")
        self.lib = os.path.join(dest, "usr", "lib")
        for root, _, names in os.walk(dest):
            for name in names:
                if name.endswith((".pc", ".cmake", ".h")):
                    self.assertNotIn(dest.encode(), limetest.read(os.path.join(root, name)))
        flags = self.pkg_config("--cflags", "--libs", PKG_CONFIG_SYSROOT_DIR=dest,
                                PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
                                PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
        self.works(self.compile(CANONICAL, *flags))
        self.works(self.cmake("lemon::lemon", prefix=os.path.join(dest, "usr")))

    def cmake(self, target, source=CANONICAL, language="C", version="", prefix=None):
        project, build = self.tempdir(), self.tempdir()
        limetest.put(os.path.join(project, "CMakeLists.txt"), CMAKE_PROJECT.format(
            language=language, source=source, target=target, version=version).encode())
        mpi = [f"-DMPI_C_COMPILER={mpitest.MPICC}"] if language == "C" else []
        if mpitest.MPICH:
            mpi.append("-DMPI_CXX_COMPILER=mpicxx.mpich")
        env = {**mpitest.environment(), "CMAKE_PREFIX_PATH": prefix or self.prefix}
        self.run_ok(["cmake", "-S", project, "-B", build, *mpi], env=env)
        self.run_ok(["cmake", "--build", build], env=env)
        return os.path.join(build, "user")

    def test_cmake(self):
        self.works(self.cmake("lemon::lemon"))
        self.works(self.cmake("lemon::lemon_static", version="1.0"), shared=False)
        with self.assertRaises(AssertionError):
            self.cmake("lemon::lemon", version="2.0")

    def in_cxx(self):
        """Returns the example as a C++ file; it is valid C++, as is lemon.h."""
        return self.write("user.cc", limetest.read(CANONICAL))

    def test_cmake_in_a_project_of_cxx_only(self):
        self.works(self.cmake("lemon::lemon", source=self.in_cxx(), language="CXX"))

    def test_cxx(self):
        flags = self.pkg_config("--cflags", "--libs")
        compiler = "mpicxx.mpich" if mpitest.MPICH else "mpicxx"
        self.works(self.compile(self.in_cxx(), *flags, compiler=compiler))

    def test_together_with_clime(self):
        """One static program can use both libraries, linked in either order."""
        where = self.tempdir()
        for name, text in (("lime.h", FAKE_LIME_H), ("lime.c", FAKE_LIME_C)):
            limetest.put(os.path.join(where, name), text.encode())
        subprocess.run(["cc", "-c", "lime.c"], cwd=where, check=True)
        subprocess.run(["ar", "rcs", "liblime.a", "lime.o"], cwd=where, check=True)
        flags = [f"-I{where}", f"-I{os.path.dirname(CANONICAL)}",
                 f"-I{os.path.join(self.prefix, 'include')}"]
        libraries = [os.path.join(where, "liblime.a"), os.path.join(self.lib, "liblemon.a")]
        for order in (libraries, libraries[::-1]):
            whole = ["-Wl,--whole-archive", *order, "-Wl,--no-whole-archive"]
            self.works(self.compile(BOTH_C, *flags, *whole, "-lisal"), shared=False)
        # Shared: Lemon must not use the program's C-LIME.
        self.works(self.compile(BOTH_C, *flags, "-rdynamic", libraries[0], f"-L{self.lib}",
                                                "-llemon"))

    def test_the_installed_examples(self):
        where = os.path.join(self.prefix, "share", "doc", "limefs", "docs", "examples")
        flags = self.pkg_config("--cflags", "--libs")
        for name in sorted(os.listdir(where)):
            if name.endswith(".c"):
                self.compile(os.path.join(where, name), *flags)

    def test_uninstall(self):
        prefix = self.tempdir()
        make("install", f"PREFIX={prefix}")
        make("uninstall", f"PREFIX={prefix}")
        left = [os.path.join(root, name) for root, _, names in os.walk(prefix)
                for name in names]
        self.assertEqual(left, [])


if __name__ == "__main__":
    limetest.main()
