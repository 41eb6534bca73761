# limefs - LIME containers as file systems. `make help` lists what can be made.

VERSION := 0.1.0
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/limefs
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# Where systemd looks for units; below HOME, in share.
UNITDIR ?= $(PREFIX)/$(if $(filter $(HOME)/%,$(PREFIX)),share,lib)/systemd
# The directory of the Python package limefs: where python3 looks below PREFIX, else Debian's.
PYTHON  ?= python3
python_folders := import site, sys; print(*(p for p in [*sys.path, site.getusersitepackages()] \
    if p.startswith("$(PREFIX)/lib/python3") and p.endswith("-packages")))
PYTHONDIR ?= $(or $(firstword $(shell $(PYTHON) -c '$(python_folders)' 2>/dev/null)),$(PREFIX)/lib/python3/dist-packages)

# SAN=address,undefined builds with these sanitizers, in a separate directory.
# LOCKS=1, and any SAN, builds a daemon that checks the order of its locks (src/fuse/base/lock.h).
SAN ?=
LOCKS ?= $(if $(SAN),1)
B   ?= build$(if $(findstring thread,$(SAN)),-tsan,$(if $(SAN),-san,$(if $(LOCKS),-locks)))
V   ?= 0
Q   := $(if $(filter 1,$(V)),,@)

CC       ?= cc
OBJCOPY  ?= objcopy
CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -Wformat=2 -Wpointer-arith -Wundef $(if $(findstring clang,$(CC)),-Wno-missing-field-initializers)
# Hardening against attacks; `make HARDENING= HARDLINK=` builds without it.
HARDENING ?= $(if $(SAN),,-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2) -fPIE
HARDLINK  ?= -Wl,-z,relro,-z,now
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=undefined \
            -fno-omit-frame-pointer)
BASE     := -std=gnu11 $(WARNINGS) -D_FILE_OFFSET_BITS=64 -DLIMEFS_VERSION='"$(VERSION)"' \
            $(SANFLAGS) $(if $(LOCKS),-DLIMEFS_LOCKS)
LINKFLAGS = $(CFLAGS) $(SANFLAGS) $(if $(HARDLINK),-pie) $(HARDLINK) $(LDFLAGS)
LINK      = $(CC) $(LINKFLAGS) -o $@

# Required packages: names of pkg-config and lowest versions, which are those of Debian 11.
NEEDS   := libisal:2.30 libcrypto:1.1.1 expat:2.2.10 jansson:2.13 fuse3:3.10 libxml-2.0:2.9.10
PKG     := pkg-config
package  = $(word 1,$(subst :, ,$(1)))
lowest   = $(word 2,$(subst :, ,$(1)))
is_found = $(PKG) --atleast-version=$(call lowest,$(1)) $(call package,$(1)) 2>/dev/null
here     = $(shell $(PKG) --modversion $(call package,$(1)) 2>/dev/null | sed 's/.*/ (here: &)/')
MISSING := $(strip $(foreach p,$(NEEDS),$(shell $(call is_found,$(p)) || echo '$(call package,$(p)) >= $(call lowest,$(p))$(call here,$(p)),')))
pkg_cflags = $(shell $(PKG) --cflags $(1))
pkg_libs   = $(shell $(PKG) --libs $(1))

# Layers: a directory; its headers in include/ are for the layers above it, all others are
# private. A layer sees the include paths in its list, and no list leads upwards
# (docs/architecture.md has the picture, tests/tool/test_layers.py compares).
INC_lime := -Isrc/lime/include
INC_cells := -Isrc/lime/cells/include $(INC_lime)
INC_checkpoint := -Isrc/lime/checkpoint/include $(INC_cells)
INC_exports = -Isrc/lime/exports/include $(INC_formats)
INC_physics := -Isrc/lime/physics/include $(INC_lime)
INC_formats := -Isrc/lime/formats/include $(INC_physics)
INC_qcdml := -Isrc/lime/qcdml/include $(INC_lime)
INC_wire := -Isrc/mpi/wire/include $(INC_lime)
INC_plan := -Isrc/mpi/plan/include $(INC_lime)
INC_lemon := -Isrc/mpi/lemon/include $(INC_lime)
INC_series := -Isrc/mpi/series/include $(INC_lemon)
INC_backend := -Isrc/mpi/bench/backend/include $(INC_lemon) -Isrc/mpi/plan/include
INC_stage := -Isrc/lime/stage/include $(INC_cells) $(INC_wire)
INC_shared := -Isrc/lime/tool/shared/include $(INC_formats)
INC_run := $(INC_lime)
# The layers of the daemon, from the lowest.
fuse_layers := base names job write verify exports file ops process
fuse_cflags = $(INC_exports) $(INC_wire) $(call pkg_cflags,fuse3 jansson) -DFUSE_USE_VERSION=312

lime_src := $(wildcard $(addprefix src/lime/,*.c edit/*.c output/*.c cells/*.c checkpoint/*.c exports/*.c formats/*.c physics/*.c))
tool_src := $(wildcard src/lime/tool/*.c src/lime/tool/*/*.c)
stage_src := $(wildcard src/lime/stage/*.c)
qcdml_src := $(wildcard src/lime/qcdml/*.c)
fuse_src := $(wildcard src/fuse/*/*.c)
run_src := $(wildcard src/run/*.c)
wire_src := $(wildcard src/mpi/wire/*.c)
unit_src := $(wildcard tests/unit/*.c)
help_src := $(filter-out tests/helpers/fault.c tests/helpers/waits.c,$(wildcard tests/helpers/*.c))
waits := $(shell sed -n '/^WAITS/s/^[^,]*, *\([a-z0-9]*\),.*/\1/p' tests/helpers/waits.c)
obj       = $(patsubst %.c,$(B)/obj/%.o,$(1))

liblimefile := $(B)/lib/liblimefile.a

# X.h5 needs an HDF5 without MPI, which is loaded at run time.
h5_pkg := $(firstword $(foreach p,hdf5-serial hdf5,$(if $(findstring mpi,$(shell $(PKG) --cflags --libs $(p) 2>/dev/null || echo mpi)),,$(p))))
h5_file := $(if $(h5_pkg),$(firstword $(wildcard $(patsubst -L%,%/libhdf5.so,$(shell $(PKG) --libs-only-L $(h5_pkg)))) \
    $(shell $(CC) -print-file-name=libhdf5.so)))
h5_name := $(if $(h5_file),$(shell readelf -d $(h5_file) 2>/dev/null | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'))
h5_cflags := $(if $(h5_name),-DLIMEFILE_EXPORT_HDF5='"$(h5_name)"' $(patsubst -I%,-isystem %,$(call pkg_cflags,$(h5_pkg))))

# With an mpicc, all parts are built; without, `make` names those that need MPI.
MPICC   ?= mpicc
HAVE_MPI := $(shell command -v $(MPICC) 2>/dev/null)
LEMON_MAJOR := 1
LEMON_VERSION := 1.1.0
lemon_src := $(wildcard src/mpi/lemon/*.c src/mpi/series/*.c src/mpi/plan/*.c)
plan_src  := $(wildcard src/mpi/plan/*.c)
benchmark_src := $(wildcard src/mpi/programs/*.c) src/mpi/bench/backend/pattern.c
examples_src  := $(wildcard src/mpi/examples/*.c)
mpi_test_src  := $(wildcard tests/mpi/*.c)
liblemonio := $(B)/lib/liblemonio.a $(B)/lib/liblemonio.so
# The parts of liblimefile that Lemon contains.
lemon_lime_src := $(addprefix src/lime/,array.c record_header.c page_cache.c direct_io.c checksum.c descriptor.c) $(wildcard src/lime/cells/*.c)
lemon_libs = $(call pkg_libs,libisal) -pthread
bench_src     := $(wildcard src/mpi/bench/*.c)
job_src       := $(wildcard src/mpi/job/*.c)
checkpoint_src := $(wildcard src/mpi/checkpoint/*.c)

# Libraries that lime-bench compares, by pkg-config name, if Debian has built them with this MPI;
# `lime-bench --list` gives the reason for a missing one.
HDF5_PKG    ?= hdf5-openmpi
NETCDF4_PKG ?= netcdf-mpi
PNETCDF_PKG ?= pnetcdf
rivals      := HDF5 NETCDF4 PNETCDF
is_open_mpi := $(if $(HAVE_MPI),$(findstring Open MPI,$(shell $(MPICC) --showme:version 2>&1)))
have_rivals := $(strip $(if $(is_open_mpi),$(foreach r,$(rivals),$(shell $(PKG) --exists $($(r)_PKG) 2>/dev/null && echo $(r)))))
rival_files_HDF5    := backend_hdf5.c
rival_files_NETCDF4 := backend_netcdf4.c
rival_files_PNETCDF := backend_pnetcdf.c
lacking      = $(filter-out $(have_rivals),$(rivals))
why_lacking  = $(if $(is_open_mpi),pkg-config finds no $($(1)_PKG),built with $(MPICC)$(comma) not Open MPI)
comma       := ,
backend_src := $(filter-out $(foreach r,$(lacking),$(addprefix %/,$(rival_files_$(r)))),$(wildcard src/mpi/bench/backend/*.c))
# netcdf-mpi.pc names a directory without netcdf.h. -isystem: no warnings of foreign headers.
rival_cflags := $(patsubst -I%,-isystem %,$(if $(have_rivals),$(call pkg_cflags,$(foreach r,$(have_rivals),$($(r)_PKG))))) \
    $(if $(filter NETCDF4,$(have_rivals)),-isystem $(shell $(PKG) --variable=prefix $(NETCDF4_PKG))/include) \
    $(foreach r,$(lacking),-DBENCH_WITHOUT_$(r)='"$(call why_lacking,$(r))"')
rival_libs   := $(if $(have_rivals),$(call pkg_libs,$(foreach r,$(have_rivals),$($(r)_PKG))))
mpi_tests := $(patsubst tests/mpi/%.c,$(B)/mpi/%,$(mpi_test_src))
mpi_programs := $(addprefix $(B)/bin/,lemon_benchmark limefs-io lime-bench lime-checkpoint)
mpi_all   := $(liblemonio) $(mpi_programs) \
             $(patsubst src/mpi/examples/%.c,$(B)/examples/%,$(examples_src))
programs    := $(B)/bin/lime $(B)/bin/limefs $(B)/bin/limefs-run
liblimefs_run := $(B)/lib/liblimefs-run.so
# The names of C-LIME's and Lemon's tools, which are links to lime.
compat      := lime_contents lime_extract_record lime_extract_type lime_pack lime_unpack \
               lemon_contents
units       := $(patsubst tests/unit/%.c,$(B)/tests/%,$(unit_src))
helpers     := $(patsubst tests/helpers/%.c,$(B)/helpers/%,$(help_src)) $(B)/helpers/fault.so

.PHONY: all check check-all run-check cluster demo bench run-bench stress fuzz fuzz-short lint format dist install \
        install-compat uninstall clean help deps tests
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

all: require $(programs) $(liblimefs_run) $(compat:%=$(B)/bin/%) $(if $(HAVE_MPI),$(mpi_all),no-mpi) $(if $(h5_name),,no-hdf5) ## build programs and libraries

help: ## list these targets
	@echo 'limefs $(VERSION): make TARGET [B=dir] [SAN=address,undefined] [LOCKS=1] [V=1]'
	@echo '                   [PREFIX=$(PREFIX)] [DESTDIR=dir] [MPICC=mpicc]'
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

deps: ## install from Debian what is missing (scripts/install-deps)
	$(Q)scripts/install-deps

check: ## set everything up and run the tests (scripts/check)
	+$(Q)scripts/check B=$(B)

check-all: deps ## and those with MPICH, CMake, valgrind and Debian's mirror
	$(Q)$(MAKE) --no-print-directory tests fuzz-short
	$(Q)B=$(abspath $(B)) SAN=$(SAN) tests/run

cluster: ## the tests with Slurm, MooseFS and GlusterFS on hosts that are namespaces of this one
	$(Q)scripts/install-deps --for cluster
	$(Q)$(MAKE) --no-print-directory all
	$(Q)B=$(abspath $(B)) SAN=$(SAN) tests/run tests/cluster

demo: ## set everything up, mount a sample configuration and look into it (scripts/demo)
	+$(Q)B=$(abspath $(B)) scripts/demo

bench: deps ## measure every speed that docs/performance.md names
	$(Q)$(MAKE) --no-print-directory run-bench

.PHONY: require no-mpi no-hdf5
no-mpi:
	@echo 'note: no $(MPICC): Lemon is left out'
no-hdf5:
	@echo 'note: no HDF5 without MPI (hdf5-serial or hdf5 of pkg-config): exports as .h5 are left out'

require:
	$(if $(shell command -v $(PKG)),,$(error missing: $(PKG); run `make deps`))
	$(if $(MISSING),$(error missing or too old: $(MISSING) which are names of pkg-config; run `make deps`))

# ---- rules ----

# When the flags change, everything is built again, if the compiler will do.
flags = $(CC) $(MPICC) $(HARDENING) $(CPPFLAGS) $(CFLAGS) $(BASE) $(HARDLINK) $(LDFLAGS) $(have_rivals) $(h5_name)
$(B)/flags: FORCE
	$(Q)mkdir -p $(@D); echo '$(flags)' | cmp -s - $@ || \
	    { $(CC) $(CPPFLAGS) $(CFLAGS) -fsyntax-only src/lime/compiler.c && echo '$(flags)' > $@; }
.PHONY: FORCE

define compile
$(B)/obj/$(1)/%.o: $(1)/%.c $(B)/flags
	@mkdir -p $$(@D); $(if $(filter 1,$(V)),,echo '  CC   $$<')
	$(Q)$(CC) $(HARDENING) $(CPPFLAGS) $(CFLAGS) $(BASE) $(2) -MMD -MP -c -o $$@ $$<
endef
$(eval $(call compile,src/lime,$(INC_lime) -fPIC))
$(eval $(call compile,src/lime/edit,$(INC_lime)))
$(eval $(call compile,src/lime/output,$(INC_lime)))
$(eval $(call compile,src/lime/cells,$(INC_cells) -fPIC))
$(eval $(call compile,src/lime/checkpoint,$(INC_checkpoint)))
$(eval $(call compile,src/lime/exports,$(INC_exports) $$(h5_cflags)))
# No fused multiply-add, for the same bits on every machine; loops over sites become vectors.
$(eval $(call compile,src/lime/formats,$(INC_formats) -O3 -ffp-contract=off))
$(eval $(call compile,src/lime/physics,$(INC_physics) -O3 -ffp-contract=off))
$(eval $(call compile,src/lime/tool/shared,$(INC_shared)))
$(eval $(call compile,src/lime/tool/cmd,$(INC_shared) $(INC_checkpoint) $(INC_exports) $(INC_qcdml) -Isrc/lime/stage/include))
# libxml2 is loaded at run time, by its SONAME.
libxml2_name = $(or $(shell objdump -p $$($(CC) -print-file-name=libxml2.so) 2>/dev/null | sed -n 's/ *SONAME *//p'),libxml2.so.2)
$(eval $(call compile,src/lime/qcdml,$(INC_qcdml) $$(call pkg_cflags,libxml-2.0) -DQCDML_LIBXML2='"$$(libxml2_name)"'))
$(eval $(call compile,src/lime/tool/compat,$(INC_shared)))
$(eval $(call compile,src/lime/tool,$(INC_shared)))
$(eval $(call compile,src/lime/stage,$(INC_stage)))
$(eval $(call compile,src/mpi/wire,$(INC_wire) -fPIC))
# The preloaded library: no sanitizers, which must be loaded first; defines both names of a function;
# no fortified versions of libc's functions.
$(eval $(call compile,src/run,$(INC_run) -fPIC -fvisibility=hidden -fno-sanitize=all -U_FILE_OFFSET_BITS -U_FORTIFY_SOURCE))
$(eval $(call compile,src/run/program,$(INC_run)))
seen :=
$(foreach r,$(fuse_layers),$(eval seen += -Isrc/fuse/$(r)/include)\
    $(eval $(call compile,src/fuse/$(r),$(seen) $$(fuse_cflags))))
# Unit tests see the private headers of their layer; some have headers of the same name.
$(eval $(call compile,tests/unit,$$(INC_first) $(INC_lime) $(seen) $(INC_wire) -Isrc/lime \
    $(fuse_layers:%=-Isrc/fuse/%) -Isrc/mpi/plan/include -Isrc/mpi/lemon \
    $(INC_checkpoint) -Isrc/lime/checkpoint $(INC_exports) $(INC_formats) $(INC_physics)))
$(B)/obj/tests/unit/test_options.o: INC_first := $(fuse_cflags)
$(B)/obj/tests/unit/test_physics.o: INC_first := -Isrc/lime/physics -Isrc/lime/formats
$(B)/obj/tests/unit/test_bench_pattern.o: INC_first := -Isrc/mpi/bench/backend/include -Isrc/mpi/bench/backend
$(B)/obj/tests/unit/test_stage.o: INC_first := -Isrc/lime/stage -Isrc/lime/stage/include
$(eval $(call compile,tests/helpers,$(INC_lime) $$(helper_cflags)))

# gcc takes MPICH's MPI_STATUSES_IGNORE for an array of size 0.
MPI_WARNINGS := $(if $(findstring mpich,$(MPICC)),-Wno-stringop-overflow)

define compile_mpi
$(B)/obj/$(1)/%.o: $(1)/%.c $(B)/flags
	@mkdir -p $$(@D); $(if $(filter 1,$(V)),,echo '  MPICC $$<')
	$(Q)$(MPICC) $(HARDENING) $(CPPFLAGS) $(CFLAGS) $(BASE) $(MPI_WARNINGS) -fPIC $(2) -MMD -MP -c -o $$@ $$<
endef
$(eval $(call compile_mpi,src/mpi/plan,$(INC_plan)))
$(eval $(call compile_mpi,src/mpi/lemon,$(INC_lemon) $(INC_plan) $(INC_cells)))
$(eval $(call compile_mpi,src/mpi/series,$(INC_series)))
$(eval $(call compile_mpi,src/mpi/job,$(INC_plan) $(INC_wire)))
bench_cflags := $(call pkg_cflags,jansson) $(rival_cflags) \
    -DBENCH_LEMON_VERSION='"$(LEMON_VERSION)"'
$(eval $(call compile_mpi,src/mpi/bench/backend,$(INC_backend) $$(bench_cflags)))
$(eval $(call compile_mpi,src/mpi/bench,$(INC_backend) $$(bench_cflags)))
$(eval $(call compile_mpi,src/mpi/programs,$(INC_backend)))
# No fused multiply-add, for the same bits on every machine.
$(eval $(call compile_mpi,src/mpi/checkpoint,$(INC_series) -ffp-contract=off $(call pkg_cflags,jansson)))

# The parts of Lemon and lime-bench that need no MPI, for tests without MPI.
define compile_no_mpi
$(B)/obj/no-mpi/%.o: $(1)/%.c $(B)/flags
	@mkdir -p $$(@D); $(if $(filter 1,$(V)),,echo '  CC   $$<')
	$(Q)$(CC) $(HARDENING) $(CPPFLAGS) $(CFLAGS) $(BASE) $(2) $(INC_plan) -MMD -MP -c -o $$@ $$<
endef
$(eval $(call compile_no_mpi,src/mpi/plan))
$(eval $(call compile_no_mpi,src/mpi/lemon))
$(eval $(call compile_no_mpi,src/mpi/bench/backend,-Isrc/mpi/bench/backend/include))

# One object, in which the names of internal functions are local.
$(B)/lib/liblemonio.a: $(call obj,$(lemon_src) $(lemon_lime_src))
	@mkdir -p $(@D); echo '  AR   $@'
	$(Q)$(LD) -r -o $(@D)/lemonio.o $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='lemon[A-Z]*' $(@D)/lemonio.o
	$(Q)rm -f $@; $(AR) rcs $@ $(@D)/lemonio.o

$(B)/lib/liblemonio.so: $(call obj,$(lemon_src) $(lemon_lime_src)) src/mpi/lemon/lemonio.map
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(MPICC) $(CFLAGS) $(SANFLAGS) $(HARDLINK) $(LDFLAGS) -shared -Wl,-soname,$(@F).$(LEMON_MAJOR) \
	    -Wl,--version-script=src/mpi/lemon/lemonio.map -o $@.$(LEMON_VERSION) $(filter %.o,$^) \
	    $(lemon_libs)
	$(Q)ln -sf $(@F).$(LEMON_VERSION) $@.$(LEMON_MAJOR); ln -sf $(@F).$(LEMON_MAJOR) $@

$(B)/bin/lemon_benchmark: $(call obj,$(benchmark_src) $(plan_src)) $(B)/lib/liblemonio.a $(liblimefile)
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(MPICC) $(LINKFLAGS) -o $@ $^ $(lemon_libs) -lm

$(B)/bin/limefs-io: $(call obj,$(job_src) $(plan_src)) $(B)/lib/liblimejob.a $(B)/lib/liblimefile.a
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(MPICC) $(LINKFLAGS) -o $@ $^ $(call pkg_libs,jansson libisal) -lm -ldl -pthread

$(B)/bin/lime-bench: $(call obj,$(bench_src) $(backend_src) $(plan_src)) $(B)/lib/liblemonio.a $(liblimefile)
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(MPICC) $(LINKFLAGS) -o $@ $^ $(lemon_libs) $(call pkg_libs,jansson) $(rival_libs) -lm

$(B)/bin/lime-checkpoint: $(call obj,$(checkpoint_src)) $(B)/lib/liblemonio.a $(liblimefile)
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(MPICC) $(LINKFLAGS) -o $@ $^ $(lemon_libs) $(call pkg_libs,jansson) -lm

# Programs with one source each.
define mpi_program
$(B)/$(2)/%: $(1)/%.c $(wildcard $(1)/*.h) src/mpi/lemon/include/lemon.h src/mpi/series/include/lemon_series.h $(B)/lib/liblemonio.a
	@mkdir -p $$(@D); echo '  MPICC $$@'
	$(Q)$(MPICC) $(HARDENING) $(BASE) $(LINKFLAGS) $(INC_series) -o $$@ $$< $(B)/lib/liblemonio.a \
	    $(lemon_libs) -lm
endef
$(eval $(call mpi_program,tests/mpi,mpi))
$(eval $(call mpi_program,src/mpi/examples,examples))

libwire := $(B)/lib/liblimejob.a
$(libwire): $(call obj,$(wire_src))
	@mkdir -p $(@D); echo '  AR   $@'
	$(Q)rm -f $@; $(AR) rcs $@ $^

libstage := $(B)/lib/liblimestage.a
$(libstage): $(call obj,$(stage_src))
	@mkdir -p $(@D); echo '  AR   $@'
	$(Q)rm -f $@; $(AR) rcs $@ $^

libqcdml := $(B)/lib/liblimeqcdml.a
$(libqcdml): $(call obj,$(qcdml_src))
	@mkdir -p $(@D); echo '  AR   $@'
	$(Q)rm -f $@; $(AR) rcs $@ $^

$(liblimefile): $(call obj,$(lime_src))
	@mkdir -p $(@D); echo '  AR   $@'
	$(Q)rm -f $@; $(AR) rcs $@ $^

$(B)/bin/lime: $(call obj,$(tool_src)) $(libstage) $(libqcdml) $(liblimefile) $(libwire)
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(LINK) $^ $(call pkg_libs,libisal libcrypto expat jansson) -lm -ldl -pthread

$(B)/bin/limefs: $(call obj,$(fuse_src) $(if $(LOCKS),tests/helpers/waits.c)) $(liblimefile) $(libwire)
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(LINK) $^ $(if $(LOCKS),$(waits:%=-Wl,--wrap=%)) $(call pkg_libs,fuse3 jansson libisal expat) -lm -ldl -pthread

$(B)/bin/limefs-run: $(call obj,$(wildcard src/run/program/*.c) $(addprefix src/lime/,text.c option.c complete.c suggest.c))
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(LINK) $^ -lm

# Its own objects of the format, without sanitizers.
run_other_obj := $(patsubst %,$(B)/obj/src/run/%.o,lime/range lime/identity lime/page_cache lime/text)
run_other = $(CC) $(HARDENING) $(CPPFLAGS) $(CFLAGS) $(BASE) $(INC_run) -fPIC -fvisibility=hidden -fno-sanitize=all -MMD -MP
$(B)/obj/src/run/lime/%.o: src/lime/%.c $(B)/flags
	@mkdir -p $(@D); $(if $(filter 1,$(V)),,echo '  CC   $<')
	$(Q)$(run_other) -c -o $@ $<

$(liblimefs_run): $(call obj,$(run_src)) $(run_other_obj) src/run/run.map
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(CC) $(CFLAGS) $(HARDLINK) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=src/run/run.map \
	    -o $@ $(filter %.o,$^) -ldl

$(compat:%=$(B)/bin/%): $(B)/bin/lime
	$(Q)ln -sf lime $@

# Units of the daemon that need no FUSE.
$(B)/tests/test_forward: $(call obj,src/fuse/job/prefetch.c)
$(B)/tests/test_spans: $(call obj,src/fuse/job/range_set.c)
$(B)/tests/test_stall: $(call obj,src/fuse/job/job_timeout.c)
$(B)/tests/test_tally: $(call obj,src/fuse/verify/tally.c src/fuse/job/range_set.c)
$(B)/tests/test_credentials: $(call obj,$(addprefix src/fuse/base/,credentials.c lock.c))
# A layer, with those below it; it notifies the kernel through libfuse3.
names_src := $(wildcard src/fuse/base/*.c src/fuse/names/*.c)
$(B)/tests/test_inode $(B)/tests/test_snapshot: $(call obj,$(names_src))
$(B)/tests/test_options: $(call obj,$(wildcard src/fuse/base/*.c) src/fuse/process/options.c) $(libwire)
$(B)/tests/test_inode $(B)/tests/test_snapshot $(B)/tests/test_options: unit_libs = $(call pkg_libs,fuse3)
# Sums of staged data.
$(B)/tests/test_stage: $(libstage)
$(B)/tests/test_stage: unit_libs = $(call pkg_libs,libcrypto)
# Packets between the daemon and the job.
$(B)/tests/test_wire: $(B)/lib/liblimejob.a
# Units of Lemon that need no MPI.
$(B)/tests/test_box: $(B)/obj/no-mpi/box.o $(B)/obj/no-mpi/grid.o
$(B)/tests/test_runs: $(B)/obj/no-mpi/runs_plan.o $(B)/obj/no-mpi/file_domains.o
$(B)/tests/test_plan: $(patsubst %,$(B)/obj/no-mpi/%.o,box grid lattice_plan schedule file_domains)
$(B)/tests/test_permute: $(patsubst %,$(B)/obj/no-mpi/%.o,permute box grid)
$(B)/tests/test_scidac: $(B)/obj/no-mpi/scidac_checksum.o
$(B)/tests/test_bench_pattern: $(addprefix $(B)/obj/no-mpi/,box.o pattern.o dataset.o)

$(B)/tests/%: $(B)/obj/tests/unit/%.o $(liblimefile)
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(LINK) $^ $(liblimefile) $(unit_libs) $(call pkg_libs,cmocka libisal expat) -lm -ldl -pthread

$(B)/helpers/%: $(B)/obj/tests/helpers/%.o $(liblimefile)
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(LINK) $^ $(helper_libs) $(call pkg_libs,libisal expat) -lm -ldl -pthread

$(B)/obj/tests/helpers/long-names.o: helper_cflags = $(call pkg_cflags,fuse3)
$(B)/helpers/long-names: helper_libs = $(call pkg_libs,fuse3)

# Preloaded libraries have no sanitizer: they run before it does.
$(B)/helpers/fault.so: tests/helpers/fault.c $(B)/flags
	@mkdir -p $(@D); echo '  LINK $@'
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter-out $(SANFLAGS),$(BASE)) -fPIC -shared -o $@ $<

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

# ---- tests ----

# All of src; with CFLAGS=-fsyntax-only it only checks (tests/tool/test_fresh.py).
.PHONY: objects units platforms
objects: $(call obj,$(lime_src) $(tool_src) $(stage_src) $(qcdml_src) $(fuse_src) $(run_src) $(wire_src) \
    $(wildcard src/run/program/*.c) $(if $(HAVE_MPI),$(lemon_src) $(benchmark_src) $(job_src) $(plan_src) \
    $(bench_src) $(backend_src) $(checkpoint_src)))

units: $(units)

tests: all $(units) $(helpers) $(if $(HAVE_MPI),$(mpi_tests))

run-check: tests fuzz-short
	$(Q)B=$(abspath $(B)) SAN=$(SAN) SHORT=1 tests/run

stress: deps ## the long runs: many kills and mounts
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)B=$(abspath $(B)) SAN=$(SAN) STRESS=1 LIMETEST_TIMEOUT=3600 tests/run

platforms: ## the README's commands on minimal Debian systems (SUITES=trixie COMMANDS="demo check units")
	$(Q)STRESS=1 SUITES="$(SUITES)" COMMANDS="$(COMMANDS)" \
	    LIMETEST_TIMEOUT=36000 python3 tests/tool/test_fresh.py Fresh.test_platforms

run-bench: all $(helpers)
	$(Q)B=$(abspath $(B)) scripts/bench

# libFuzzer needs clang; each target runs for FUZZ_SECONDS.
FUZZ_SECONDS ?= 600
fuzzers := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/*.c))

# Without schema validation, which libxml2 does.
fuzz_qcdml_src := $(filter-out %/qcdml_validate.c,$(qcdml_src))
$(B)/fuzz/%: tests/fuzz/%.c $(lime_src) $(wire_src) $(fuzz_qcdml_src) \
             $(wildcard src/lime/*.h src/lime/*/*.h src/lime/*/include/*.h src/mpi/wire/include/*.h) \
             $(B)/flags
	@mkdir -p $(@D); echo '  FUZZ $@'
	$(Q)clang -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=undefined $(INC_checkpoint) -Isrc/lime/checkpoint $(INC_exports) \
	    $(INC_formats) $(INC_physics) $(INC_wire) $(INC_qcdml) -o $@ $< $(lime_src) $(wire_src) \
	    $(fuzz_qcdml_src) $(call pkg_libs,libisal expat) -lm -ldl -pthread

fuzz: $(fuzzers) ## fuzz index, names, packets, metadata, cells and formats for FUZZ_SECONDS each
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) B=$(B) tests/fuzz/run

fuzz-short: $(fuzzers)

# ---- house ----

c_files := $(shell git ls-files '*.c' '*.h' 2>/dev/null)

lint: ## cppcheck, shellcheck, man pages, systemd's units and formatting
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
	    --error-exitcode=1 --suppress=missingIncludeSystem $(INC_lime) src tests
	$(Q)shellcheck scripts/completion/lime scripts/install-deps scripts/demo scripts/check tests/run tests/fuzz/run .ci/run \
	    src/mpi/package/install src/mpi/package/compat docs/examples/slurm/*.sh
	$(Q)clang-format --dry-run -Werror $(c_files)
	$(Q)mandoc -T lint -W warning docs/man/*
	$(Q)if command -v systemd-analyze >/dev/null; then python3 tests/fuse/test_systemd.py Verify >/dev/null; fi

format: ## clang-format all C files
	clang-format -i $(c_files)

# The same bytes for the same commit.
dist: ## pack the last commit as limefs-VERSION.tar.gz, in the directory B
	$(Q)mkdir -p $(B)
	$(Q)git -c tar.umask=0022 archive --prefix=limefs-$(VERSION)/ HEAD | gzip -9n > $(B)/limefs-$(VERSION).tar.gz

man_pages := $(filter-out $(if $(HAVE_MPI),,%/lemon_benchmark.1 %/limefs-io.1 %/lime-bench.1 %/lime-checkpoint.1),$(wildcard docs/man/*.1))

# Units of systemd, named by their directory and name: system/limefs@.service.
systemd_units := $(patsubst packaging/systemd/%,%,$(filter-out $(if $(HAVE_MPI),,%/limefs-io@.service),$(wildcard packaging/systemd/*/*)))

texts := README.md LICENSE CHANGELOG.md CONTRIBUTING.md

# Programs other than lime: shells load completion by a program's name.
completed := limefs limefs-run limefs-io lime-bench lime-checkpoint

# Paths are quoted: DESTDIR may contain spaces. limefs-run is in the directory of its library, where it
# finds it whatever LIBDIR is.
install: all ## install to DESTDIR/PREFIX
	install -d "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(MANDIR)/man1" "$(DESTDIR)$(DOCDIR)/docs/examples/slurm"
	install -m 755 $(filter-out %/limefs-run,$(programs)) "$(DESTDIR)$(BINDIR)"
	install -d "$(DESTDIR)$(LIBDIR)/limefs"
	install -m 644 $(liblimefs_run) "$(DESTDIR)$(LIBDIR)/limefs"
	install -m 755 $(B)/bin/limefs-run "$(DESTDIR)$(LIBDIR)/limefs"
	ln -srf "$(DESTDIR)$(LIBDIR)/limefs/limefs-run" "$(DESTDIR)$(BINDIR)"
	for n in $(compat); do ln -sf lime "$(DESTDIR)$(BINDIR)/$$n"; done
	install -m 644 $(man_pages) "$(DESTDIR)$(MANDIR)/man1"
	install -d "$(DESTDIR)$(BASHDIR)" "$(DESTDIR)$(ZSHDIR)" "$(DESTDIR)$(FISHDIR)"
	install -m 644 scripts/completion/lime "$(DESTDIR)$(BASHDIR)"
	for n in $(completed); do ln -sf lime "$(DESTDIR)$(BASHDIR)/$$n"; ln -sf lime.fish "$(DESTDIR)$(FISHDIR)/$$n.fish"; done
	install -m 644 scripts/completion/_lime "$(DESTDIR)$(ZSHDIR)"
	install -m 644 scripts/completion/lime.fish "$(DESTDIR)$(FISHDIR)"
	install -m 644 $(texts) "$(DESTDIR)$(DOCDIR)"
	install -m 644 docs/*.md docs/*.svg "$(DESTDIR)$(DOCDIR)/docs"
	install -d "$(DESTDIR)$(UNITDIR)/system" "$(DESTDIR)$(UNITDIR)/user"
	for u in $(systemd_units); do sed 's,@BINDIR@,$(BINDIR),' packaging/systemd/$$u >"$(DESTDIR)$(UNITDIR)/$$u" && \
	    chmod 644 "$(DESTDIR)$(UNITDIR)/$$u" || exit 1; done
	install -d "$(DESTDIR)$(PYTHONDIR)/limefs"
	install -m 644 src/lime/python/limefs/*.py "$(DESTDIR)$(PYTHONDIR)/limefs"
	install -m 755 docs/examples/*.py "$(DESTDIR)$(DOCDIR)/docs/examples"
	install -m 755 docs/examples/slurm/*.sh "$(DESTDIR)$(DOCDIR)/docs/examples/slurm"
	$(if $(HAVE_MPI),install -m 755 $(mpi_programs) "$(DESTDIR)$(BINDIR)")
	$(if $(HAVE_MPI),install -m 644 src/mpi/examples/*.[ch] "$(DESTDIR)$(DOCDIR)/docs/examples")
	$(if $(HAVE_MPI),src/mpi/package/install $(B)/lib $(LEMON_VERSION) "$(DESTDIR)" \
	    "$(PREFIX)" "$(LIBDIR)" "$(INCLUDEDIR)" '$(lemon_libs)')

install-compat: ## after install: Lemon also as lemon.h, -llemon, lemon.pc
	$(Q)src/mpi/package/compat create "$(DESTDIR)$(LIBDIR)" "$(DESTDIR)$(INCLUDEDIR)"

# $(call remove,DIRECTORY,FILES) removes files, named relative to the directory.
remove = if cd "$(DESTDIR)$(1)/" 2>/dev/null; then rm -f $(2); fi

uninstall: ## remove what install and install-compat put there
	$(Q)src/mpi/package/compat remove "$(DESTDIR)$(LIBDIR)" "$(DESTDIR)$(INCLUDEDIR)"
	$(call remove,$(BINDIR),$(notdir $(programs) $(mpi_programs)) $(compat))
	$(call remove,$(MANDIR)/man1,$(notdir $(wildcard docs/man/*.1)))
	$(call remove,$(BASHDIR),lime $(completed))
	$(call remove,$(ZSHDIR),_lime)
	$(call remove,$(FISHDIR),$(patsubst %,%.fish,lime $(completed)))
	$(call remove,$(LIBDIR),limefs/limefs-run limefs/liblimefs-run.so pkgconfig/lemonio.pc \
	    $(addprefix cmake/lemonio/,lemonioConfig.cmake lemonioConfigVersion.cmake) liblemonio.a \
	    liblemonio.so liblemonio.so.$(LEMON_MAJOR) liblemonio.so.$(LEMON_VERSION))
	$(call remove,$(INCLUDEDIR)/lemonio,lemon.h lemon_cells.h lemon_series.h)
	$(call remove,$(DOCDIR),$(texts) $(wildcard docs/*.md docs/*.svg docs/examples/*.py docs/examples/slurm/*.sh) \
	    $(addprefix docs/examples/,$(notdir $(wildcard src/mpi/examples/*.[ch]))))
	$(call remove,$(UNITDIR),$(patsubst packaging/systemd/%,%,$(wildcard packaging/systemd/*/*)))
	rm -rf "$(DESTDIR)$(PYTHONDIR)/limefs"
	for d in "$(LIBDIR)/limefs" "$(LIBDIR)/cmake/lemonio" "$(INCLUDEDIR)/lemonio" \
	    "$(DOCDIR)/docs/examples/slurm" "$(DOCDIR)/docs/examples" "$(DOCDIR)/docs" "$(DOCDIR)"; do \
	    rmdir "$(DESTDIR)$$d" 2>/dev/null || :; done

clean: ## remove what was built
	rm -rf build build-san build-tsan build-locks build-mpich build-san-mpich $(B) $(B)-mpich
