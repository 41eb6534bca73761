# SPDX-License-Identifier: BSD-3-Clause
from spack.package import *


class Limefs(MakefilePackage):
    """Mount, check and move LIME containers of lattice QCD; the MPI library Lemon."""

    license("BSD-3-Clause")
    version("0.1.0", url=f"file://{os.getcwd()}/limefs-0.1.0.tar.gz")

    variant("mpi", default=True, description="Lemon, the MPI job of limefs, lime-checkpoint")
    variant("hdf5", default=True, description="fields as HDF5 files")
    variant("compat", default=False, when="+mpi", description="Lemon also as -llemon, lemon.pc")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("expat@2.2.10:")
    depends_on("isa-l@2.30:")
    depends_on("jansson@2.13:")
    depends_on("libfuse@3.10:")
    depends_on("libxml2@2.9.10:")
    depends_on("openssl@1.1.1:")
    depends_on("hdf5~mpi", when="+hdf5")
    depends_on("mpi", when="+mpi")

    # The Lemon of tmLQCD's and QUDA's recipes.
    provides("lemonio@1.1.0", when="+mpi")
    conflicts("%gcc@:9")
    conflicts("%clang@:13")

    @property
    def settings(self):
        mpicc = self.spec["mpi"].mpicc if self.spec.satisfies("+mpi") else "none"
        return [f"PREFIX={self.prefix}", f"MPICC={mpicc}"]

    @property
    def build_targets(self):
        return [*self.settings, "all"]

    def install(self, spec, prefix):
        make(*self.settings, "install")
        if spec.satisfies("+compat"):
            make(*self.settings, "install-compat")
