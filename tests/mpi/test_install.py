"""Programs build with the Lemon of `make install`: by hand, by pkg-config, by CMake."""

import os
import re
import shlex
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
find_package({package} {version} REQUIRED)
add_executable(user {source})
target_link_libraries(user {target})
"""

# Uses COIN-OR's LEMON: RED is in the library.
COIN_OR = """#include <lemon/color.h>
#include <lemon/list_graph.h>

int main()
{
    lemon::ListDigraph graph;
    graph.addArc(graph.addNode(), graph.addNode());
    return lemon::countArcs(graph) == 1 && lemon::RED.red() == 1 ? 0 : 1;
}
"""

COMPAT = ("lib/liblemon.a", "lib/liblemon.so", "lib/pkgconfig/lemon.pc",
          "lib/cmake/lemon/lemonConfig.cmake", "lib/cmake/lemon/lemonConfigVersion.cmake",
          "include/lemon.h", "include/lemon_cells.h", "include/lemon_series.h")

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


def make_command(target, *variables):
    # Installs the existing build; make must not rebuild it, perhaps with other flags.
    return ["make", "-s", "-C", limetest.REPO, "-o", "all", target, f"B={limetest.B}",
            f"MPICC={mpitest.MPICC}", *variables]


def make(target, *variables):
    limetest.run(make_command(target, *variables), check=True)


def files(directory):
    """Returns the content of each file, or the target of each link, by path."""
    paths = [os.path.join(root, name) for root, _, names in os.walk(directory) for name in names]
    return {path: os.readlink(path) if os.path.islink(path) else limetest.read(path)
            for path in paths}


def multiarch():
    machine = limetest.run(["cc", "-print-multiarch"], check=True).stdout.decode().strip()
    return "lib/" + (machine or "x86_64-linux-gnu")


@limetest.check_all
class Install(mpitest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if limetest.SANITIZED:
            raise unittest.SkipTest("a program would have to load the sanitizer before liblemonio.so")
        for tool in ("pkg-config", "cmake", "g++", mpitest.MPIRUN):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"needs {tool}")
        cls.prefix = os.path.join(limetest.tempdir(), "usr")
        make("install", f"PREFIX={cls.prefix}")
        cls.lib = os.path.join(cls.prefix, "lib")

    def compile(self, source, *flags, compiler=None, env=None):
        where = self.tempdir()
        path = source
        if not os.path.isabs(source) or "\n" in source:
            path = os.path.join(where, "user.cc" if compiler else "user.c")
            limetest.put(path, source.encode())
        program = os.path.join(where, "user")
        self.run_ok([compiler or mpitest.MPICC, "-Wall", "-Werror", "-o", program, path, *flags],
                    env={**mpitest.environment(), **(env or {})})
        return program

    def pkg_config(self, *args, package="lemonio", **env):
        env = {**os.environ, "PKG_CONFIG_PATH": os.path.join(self.lib, "pkgconfig"), **env}
        return shlex.split(self.run_ok(["pkg-config", *args, package], env=env).decode())

    def works(self, program, shared=True):
        """The program writes the file of the paper's example, on 2 ranks."""
        needed = self.run_ok(["readelf", "-d", program]).decode()
        self.assertEqual("[liblemonio.so.1]" in needed, shared, needed)
        where = self.tempdir()
        done = mpitest.mpirun(2, program, cwd=where, env={"LD_LIBRARY_PATH": self.lib})
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        self.assertEqual(limetest.read(os.path.join(where, "canonical.test")),
                         limetest.record("lemon-test-text", b"LEMON test message", True, True))

    def test_installed_files(self):
        for path in ("lib/liblemonio.a", "lib/liblemonio.so.1.1.0", "include/lemonio/lemon.h",
                     "include/lemonio/lemon_cells.h", "include/lemonio/lemon_series.h",
                     "lib/pkgconfig/lemonio.pc", "lib/cmake/lemonio/lemonioConfig.cmake",
                     "lib/limefs/liblimefs-run.so", "bin/limefs-run", "bin/lemon_benchmark",
                     "bin/lemon_contents", "share/man/man1/lemon_benchmark.1",
                     "bin/lime-bench", "share/man/man1/lime-bench.1",
                     "bin/lime-checkpoint", "share/man/man1/lime-checkpoint.1",
                     "lib/systemd/system/limefs@.service", "lib/systemd/user/limefs-io@.service",
                     "share/doc/limefs/docs/lemon.md",
                     "share/doc/limefs/docs/examples/xlf.c"):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, path)), path)
        for path in COMPAT:
            self.assertFalse(os.path.lexists(os.path.join(self.prefix, path)), path)
        link = os.path.join(self.lib, "liblemonio.so")
        self.assertEqual(os.readlink(link), "liblemonio.so.1")
        self.assertEqual(os.readlink(link + ".1"), "liblemonio.so.1.1.0")

    def symbols(self, *options):
        shown = self.run_ok(["nm", "--defined-only", *options]).decode()
        return {line.split()[-1] for line in shown.splitlines() if len(line.split()) == 3}

    def test_symbols(self):
        """Both libraries export the calls of their headers, and no other names."""
        text = "".join(limetest.read(os.path.join(self.prefix, "include/lemonio", name)).decode()
                       for name in ("lemon.h", "lemon_cells.h", "lemon_series.h"))
        declared = set(re.findall(r"\b(lemon[A-Z]\w*)\(", re.sub(r"/\*.*?\*/", "", text,
                                                                flags=re.S)))
        declared.remove("lemonMessageHandler")  # a type
        self.assertGreater(len(declared), 40)
        self.assertEqual(self.symbols("-D", os.path.join(self.lib, "liblemonio.so")),
                         {name + "@@LEMONIO_1" for name in declared} | {"LEMONIO_1"})
        self.assertEqual(self.symbols("-g", os.path.join(self.lib, "liblemonio.a")), declared)

    def test_pkg_config(self):
        flags = self.pkg_config("--cflags", "--libs")
        self.works(self.compile(CANONICAL, *flags))
        self.assertEqual([os.path.normpath(flag) for flag in flags], [
            f"-I{self.prefix}/include/lemonio", f"-L{self.lib}", "-llemonio"])  # none of an MPI
        self.assertEqual(self.pkg_config("--modversion"), ["1.1.0"])

    def test_pkg_config_static(self):
        flags = self.pkg_config("--static", "--cflags", "--libs")
        flags[flags.index("-llemonio")] = "-l:liblemonio.a"
        self.works(self.compile(CANONICAL, *flags), shared=False)
        self.works(self.compile(CHECKSUM_C, f"-I{os.path.dirname(CANONICAL)}", *flags),
                   shared=False)

    def test_destdir(self):
        """A path with spaces; uninstall removes no file outside it, and the tree can be moved."""
        outside = os.path.join(self.tempdir(), "a")
        os.mkdir(outside)
        limetest.put(os.path.join(outside, "file"), b"")
        dest = outside + " b"
        variables = ["PREFIX=/usr", f"DESTDIR={dest}"]
        make("install", *variables)
        make("install-compat", *variables)
        self.lib = os.path.join(dest, "usr", "lib")
        for root, _, names in os.walk(dest):
            for name in names:
                if name.endswith((".pc", ".cmake", ".h")):
                    self.assertNotIn(dest.encode(), limetest.read(os.path.join(root, name)))
        self.works(self.compile(CANONICAL, *self.pkg_config("--cflags", "--libs")))
        self.works(self.cmake("lemonio::lemonio", prefix=os.path.join(dest, "usr")))
        self.uninstalls(dest, *variables)
        self.assertEqual(os.listdir(outside), ["file"])

    def uninstalls(self, where, *variables):
        """make uninstall leaves no file, and only directories that other packages have, too."""
        make("uninstall", *variables)
        self.assertEqual(files(where), {})
        self.assertEqual([name for _, names, _ in os.walk(where) for name in names
                          if name in ("limefs", "lemonio", "lemon", "docs")], [])

    def test_libdir(self):
        """The library directory can be chosen after the build."""
        for lib in ("lib64", multiarch()):
            with self.subTest(lib):
                dest = self.tempdir()
                variables = ["PREFIX=/usr", f"LIBDIR=/usr/{lib}", f"DESTDIR={dest}"]
                make("install", *variables)
                self.lib = os.path.join(dest, "usr", lib)
                self.assertFalse(os.path.exists(os.path.join(dest, "usr/lib/limefs")))
                shown = self.run_ok([os.path.join(dest, "usr/bin/limefs-run"), "printenv",
                                     "LD_PRELOAD"]).decode().strip()
                self.assertEqual(shown, os.path.join(self.lib, "limefs/liblimefs-run.so"))
                for sysroot in ({}, {"PKG_CONFIG_SYSROOT_DIR": dest}):
                    flags = self.pkg_config("--cflags", "--libs", **sysroot)
                    self.works(self.compile(CANONICAL, *flags))
                self.works(self.cmake("lemonio::lemonio", prefix=os.path.join(dest, "usr"),
                                      lemonio_DIR=os.path.join(self.lib, "cmake/lemonio")))
                self.uninstalls(dest, *variables)

    def test_compat(self):
        """Programs that use the names of the Lemon paper's library build unchanged."""
        prefix = self.tempdir()
        self.refuses_compat(prefix, "run make install first")
        make("install", f"PREFIX={prefix}")
        for _ in range(2):  # again: the links are its own
            make("install-compat", f"PREFIX={prefix}")
        for path in COMPAT:
            self.assertTrue(os.path.islink(os.path.join(prefix, path)), path)
            self.assertTrue(os.path.exists(os.path.join(prefix, path)), path)
        self.lib = os.path.join(prefix, "lib")
        self.works(self.compile(CANONICAL, f"-I{prefix}/include", f"-L{self.lib}", "-llemon"))
        self.works(self.compile(CANONICAL, *self.pkg_config("--cflags", "--libs", package="lemon")))
        self.works(self.cmake("lemon::lemon", prefix=prefix, package="lemon", version="1.0"))
        self.uninstalls(prefix, f"PREFIX={prefix}")

    def refuses_compat(self, prefix, message, *variables):
        before = files(prefix)
        self.fails(make_command("install-compat", f"PREFIX={prefix}", *variables), message,
                   "nothing was changed", status=2)
        self.assertEqual(files(prefix), before)

    def test_compat_refused(self):
        """Files of other packages are neither replaced nor removed."""
        prefix = self.tempdir()
        make("install", f"PREFIX={prefix}")
        for name in COMPAT:
            path = os.path.join(prefix, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            for create in (lambda: limetest.put(path, b"other"),
                           lambda: os.symlink("liblemon.so.1.3.1", path)):
                create()
                self.refuses_compat(prefix, f"{path}: belongs to another package")
                os.remove(path)
        for name in COMPAT:
            limetest.put(os.path.join(prefix, name), b"other")
        make("uninstall", f"PREFIX={prefix}")
        self.assertEqual(files(prefix), {os.path.join(prefix, name): b"other" for name in COMPAT})

    def cmake(self, target, source=CANONICAL, language="C", version="", prefix=None,
              package="lemonio", options=(), **env):
        project, build = self.tempdir(), self.tempdir()
        limetest.put(os.path.join(project, "CMakeLists.txt"), CMAKE_PROJECT.format(
            language=language, source=source, target=target, version=version,
            package=package).encode())
        mpi = [f"-DMPI_C_COMPILER={mpitest.MPICC}"] if language == "C" else []
        if mpitest.MPICH:
            mpi.append("-DMPI_CXX_COMPILER=mpicxx.mpich")
        env = {**mpitest.environment(), "CMAKE_PREFIX_PATH": prefix or self.prefix, **env}
        self.run_ok(["cmake", "-S", project, "-B", build, *mpi, *options], env=env)
        self.run_ok(["cmake", "--build", build], env=env)
        return os.path.join(build, "user")

    def test_cmake(self):
        self.works(self.cmake("lemonio::lemonio"))
        self.works(self.cmake("lemon::lemon"))
        self.works(self.cmake("lemonio::lemonio_static", version="1.0"), shared=False)
        with self.assertRaises(AssertionError):
            self.cmake("lemonio::lemonio", version="2.0")

    def unpack_liblemon_dev(self):
        """Returns a directory with COIN-OR's LEMON in usr."""
        root = self.tempdir()
        try:
            done = limetest.run(["apt-get", "-q", "-oAPT::Sandbox::User=root",
                                 "-oAcquire::http::Timeout=20", "download", "liblemon-dev"],
                                cwd=root, timeout=120)
        except (FileNotFoundError, subprocess.TimeoutExpired):
            self.skipTest("needs apt-get and a mirror of Debian")
        if done.returncode != 0:
            self.skipTest(f"apt-get: {done.stderr.decode().splitlines()[-1:]}")
        package, = os.listdir(root)
        limetest.run(["dpkg-deb", "-x", package, "root"], cwd=root, check=True)
        return os.path.join(root, "root")

    def test_together_with_coin_or(self):
        """In the same prefix as liblemon-dev, which has lemon.pc and liblemon.so: programs of both build
        by pkg-config, CMake and -l."""
        root = self.unpack_liblemon_dev()
        others, arch = files(root), multiarch()
        usr = os.path.join(root, "usr")
        libraries = [os.path.join(usr, lib) for lib in ("local/lib", arch, "lib")]
        # The directories that are searched without options if root is /.
        env = {"CPATH": f"{usr}/local/include:{usr}/include",
               "LIBRARY_PATH": ":".join(libraries),
               "PKG_CONFIG_PATH": ":".join(lib + "/pkgconfig" for lib in libraries)}
        prefixes = f"{usr}/local:{usr}"
        coin_or = self.write("coin_or.cc", COIN_OR.encode())
        for prefix, lib in (("/usr", "lib"), ("/usr", arch), ("/usr/local", "lib")):
            with self.subTest(f"{prefix}/{lib}"):
                variables = [f"PREFIX={prefix}", f"LIBDIR={prefix}/{lib}", f"DESTDIR={root}"]
                make("install", *variables)
                self.lib = f"{root}{prefix}/{lib}"
                pkg_config = [self.pkg_config("--cflags", "--libs", package=package, **env)
                              for package in ("lemonio", "lemon")]
                self.works(self.compile(CANONICAL, *pkg_config[0], env=env))
                self.works(self.compile(CANONICAL, f"-I{root}{prefix}/include/lemonio", "-llemonio",
                                        env=env))
                self.works(self.cmake("lemonio::lemonio", prefix=prefixes))
                for program in (  # C++11: later standards deprecate what COIN-OR's headers use
                        self.compile(coin_or, "-std=c++11", *pkg_config[1], compiler="g++", env=env),
                        self.compile(coin_or, "-std=c++11", "-llemon", compiler="g++", env=env),
                        self.cmake("${LEMON_LIBRARIES}", coin_or, "CXX", "", prefixes, "lemon", (
                            f"-DLEMON_INCLUDE_DIR={usr}/include",
                            f"-DLEMON_LIBRARY={usr}/{arch}/liblemon.a"), **env)):
                    self.run_ok([program])
                if lib == arch:
                    self.refuses_compat(usr, "belongs to another package",
                                        f"LIBDIR={self.lib}")
                installed = files(root)
                self.assertEqual({path: installed.get(path) for path in others}, others)
                make("uninstall", *variables)
                self.assertEqual(files(root), others)

    def in_cxx(self):
        """Returns the example as a C++ file; it is valid C++, as is lemon.h."""
        return self.write("user.cc", limetest.read(CANONICAL))

    def test_cmake_in_a_project_of_cxx_only(self):
        self.works(self.cmake("lemonio::lemonio", source=self.in_cxx(), language="CXX"))

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
                 f"-I{os.path.join(self.prefix, 'include/lemonio')}"]
        libraries = [os.path.join(where, "liblime.a"), os.path.join(self.lib, "liblemonio.a")]
        for order in (libraries, libraries[::-1]):
            whole = ["-Wl,--whole-archive", *order, "-Wl,--no-whole-archive"]
            self.works(self.compile(BOTH_C, *flags, *whole, "-lisal"), shared=False)
        # Shared: Lemon must not use the program's C-LIME.
        self.works(self.compile(BOTH_C, *flags, "-rdynamic", libraries[0], f"-L{self.lib}",
                                                "-llemonio"))

    def test_the_installed_examples(self):
        where = os.path.join(self.prefix, "share", "doc", "limefs", "docs", "examples")
        flags = self.pkg_config("--cflags", "--libs")
        for name in sorted(os.listdir(where)):
            if name.endswith(".c"):
                self.compile(os.path.join(where, name), *flags)


if __name__ == "__main__":
    limetest.main()
