/* test_siteshape.c - the array of numbers at a site of a field */
#include "limesites.h"
#include "unit.h"

static struct limefile_field field_of(const char *name, unsigned precision, uint64_t site_bytes)
{
    struct limefile_field f = {
        .kind = LIMEFILE_KIND_SCIDAC, .precision = precision, .site_bytes = site_bytes};
    f.record.type = "scidac-binary-data";
    snprintf(f.name, sizeof f.name, "%s", name);
    return f;
}

/* Shapes by QIO's datatype names with any prefix, and by sizes for other names. */
TEST(test_shapes)
{
    enum {
        GAUGE = LIMEFILE_KIND_GAUGE,
        PROPAGATOR = LIMEFILE_KIND_PROPAGATOR,
        SCIDAC = LIMEFILE_KIND_SCIDAC,
    };
    static const struct {
        int kind;
        const char *name;
        unsigned precision;
        uint64_t typesize, datacount; /* 0: not stated */
        unsigned colors, spins;
        bool complex;
        unsigned dims;
        uint64_t site[5];
    } fields[] = {
        {SCIDAC, "QUDA_DNs4Nc3_ColorSpinorField", 64, 192, 1, 3, 4, true, 2, {4, 3}},
        {SCIDAC, "QUDA_FNs4Nc3_ColorSpinorField", 32, 96, 12, 3, 4, true, 3, {12, 4, 3}},
        {SCIDAC, "QUDA_FNs1Nc3_ColorSpinorField", 32, 24, 1, 3, 1, true, 1, {3}},
        {SCIDAC, "QUDA_FNs2Nc24_ColorSpinorField", 32, 384, 1, 24, 2, true, 2, {2, 24}},
        {SCIDAC, "QIO_DNs4Nc3_ColorSpinorField", 64, 192, 1, 3, 4, true, 2, {4, 3}},
        {SCIDAC, "ABC_D3_DiracFermion", 64, 192, 1, 3, 4, true, 2, {4, 3}},
        {SCIDAC, "DiracFermion", 64, 192, 1, 0, 0, true, 2, {4, 3}},
        {SCIDAC, "USQCD_F3_ColorVector", 32, 24, 1, 3, 0, true, 1, {3}},
        {SCIDAC, "USQCD_F3_ColorVector", 32, 24, 3, 3, 0, true, 2, {3, 3}},
        {SCIDAC, "USQCD_F3_DiracPropagator", 32, 1152, 1, 3, 4, true, 4, {4, 4, 3, 3}},
        {SCIDAC, "ABC_F3_DiracPropagator", 32, 1152, 1, 3, 4, true, 4, {4, 4, 3, 3}},
        {SCIDAC, "QDP_F3_DiracPropagator", 32, 1152, 1, 3, 4, true, 4, {3, 4, 3, 4}},
        {SCIDAC, "QDP_F3_HalfFermion", 32, 48, 1, 3, 4, true, 2, {3, 2}},
        {SCIDAC, "QDP_F_ColorMatrix", 32, 32, 1, 2, 0, true, 2, {2, 2}},
        {SCIDAC, "QLA_F_Real", 32, 4, 1, 0, 0, false, 0, {0}},
        {SCIDAC, "Lattice", 32, 8, 1, 3, 4, true, 0, {0}},
        {SCIDAC, "Lattice", 32, 24, 1, 3, 4, true, 1, {3}},
        {SCIDAC, "Lattice", 32, 72, 1, 3, 4, true, 2, {3, 3}},
        {SCIDAC, "Lattice", 32, 96, 1, 3, 4, true, 2, {4, 3}},
        {SCIDAC, "Lattice", 64, 2304, 1, 3, 4, true, 4, {4, 4, 3, 3}},
        {SCIDAC, "Lattice", 64, 192, 12, 3, 4, true, 3, {12, 4, 3}},
        {SCIDAC, "Lattice", 64, 64, 4, 2, 4, true, 3, {4, 2, 2}},
        {SCIDAC, "Lattice", 64, 64, 1, 2, 1, true, 2, {2, 2}},
        {SCIDAC, "", 64, 192, 1, 3, 4, true, 2, {4, 3}},
        {SCIDAC, "mine", 64, 192, 1, 0, 0, true, 2, {4, 3}},
        {SCIDAC, "Lattice", 32, 20, 1, 3, 4, false, 1, {5}}, /* five reals */
        {SCIDAC, "Lattice", 32, 28, 1, 3, 4, false, 1, {7}}, /* an odd number of reals */
        {SCIDAC,
         "GRID_F_LorentzVector4_LorentzVector4",
         32,
         128,
         1,
         0,
         0,
         false,
         1,
         {32}},                                                         /* two names */
        {SCIDAC, "USQCD_F3_Fermions", 32, 40, 1, 3, 4, false, 1, {10}}, /* not a whole name */
        {SCIDAC, "Lattice", 32, 24, 1, 4000000000, 4000000000, false, 1, {6}},
        {GAUGE, "su3gauge", 64, 576, 0, 0, 0, true, 3, {4, 3, 3}},
        {GAUGE, "su3gauge", 32, 288, 0, 0, 0, true, 3, {4, 3, 3}},
        {GAUGE, "su2gauge", 64, 256, 0, 0, 0, true, 3, {4, 2, 2}},
        {GAUGE, "sp4gauge", 64, 1024, 0, 0, 0, true, 3, {4, 4, 4}},
        {GAUGE, "su3gauge", 64, 584, 0, 0, 0, false, 1, {73}},
        {PROPAGATOR, "diracFermion", 64, 192, 0, 0, 0, true, 2, {4, 3}},
        {PROPAGATOR, "staggered", 64, 48, 0, 0, 0, true, 1, {3}},
        {SCIDAC, "QDP_F_Real", 32, 4, 0, 0, 0, false, 0, {0}},
        {SCIDAC, "QDP_F_Real", 32, 12, 0, 0, 0, false, 1, {3}},
        {SCIDAC, "QDP_D_Complex", 64, 16, 0, 0, 0, true, 0, {0}},
        {SCIDAC, "QDP_F3_ColorMatrix", 32, 72, 0, 0, 0, true, 2, {3, 3}},
        {SCIDAC, "QDP_F3_ColorMatrix", 32, 288, 0, 0, 0, true, 3, {4, 3, 3}},
        {SCIDAC, "QDP_D2_ColorVector", 64, 32, 0, 0, 0, true, 1, {2}},
        {SCIDAC, "QDP_D3_DiracFermion", 64, 192, 0, 0, 0, true, 2, {3, 4}},
        {SCIDAC, "USQCD_D3_DiracFermion", 64, 192, 0, 0, 0, true, 2, {4, 3}},
        {SCIDAC, "QUDA_DNc3_GaugeField", 64, 576, 0, 0, 0, true, 3, {4, 3, 3}},
        {SCIDAC, "GRID_D_LorentzVector4_ColourMatrix3", 64, 576, 0, 0, 0, true, 3, {4, 3, 3}},
        {SCIDAC, "GRID_D_SpinMatrix4_ColourMatrix3", 64, 2304, 0, 0, 0, true, 4, {4, 4, 3, 3}},
        {SCIDAC, "GRID_F_Complex", 32, 8, 0, 0, 0, true, 0, {0}},
        {SCIDAC, "Lattice", 64, 96, 0, 0, 0, false, 1, {12}},
        {SCIDAC, "QDP_Int", 0, 4, 0, 0, 0, false, 1, {4}},
        {SCIDAC, "QDP_F99999999999999999999_ColorMatrix", 32, 72, 0, 0, 0, true, 2, {3, 3}},
    };
    for (size_t i = 0; i < COUNT(fields); i++) {
        struct limefile_siteshape site;
        uint64_t count = fields[i].datacount;
        struct limefile_field f = field_of(fields[i].name, fields[i].precision,
                                           fields[i].typesize * (count ? count : 1));
        f.kind = (enum limefile_fieldkind)fields[i].kind;
        f.format_ordinal = fields[i].kind == SCIDAC ? 0 : 5;
        f.datacount = count;
        f.colors = fields[i].colors;
        f.spins = fields[i].spins;
        limefile_siteshape_derive(&f, &site);
        assert_int_equal(site.precision, fields[i].precision);
        assert_int_equal(site.complex, fields[i].complex);
        assert_int_equal(site.dims, fields[i].dims);
        assert_memory_equal(site.extent, fields[i].site, sizeof site.extent);
    }
}

/* All dimensions of a site have different names. */
TEST(test_names_of_dimensions)
{
    static const struct {
        const char *name;
        uint64_t site_bytes;
        const char *names;
    } fields[] = {
        {"USQCD_F3_ColorMatrix", 288, "mu a b"},
        {"QUDA_FNc3_GaugeField", 288, "mu a b"},
        {"QDP_F3_ColorMatrix", 216, "datum a b"},
        {"QDP_F3_DiracPropagator", 1152, "a spin b spin2"},
        {"USQCD_F3_DiracPropagator", 1152, "spin spin2 a b"},
        {"QUDA_FNs4Nc3_ColorSpinorField", 1152, "datum spin colour"},
        {"GRID_F_LorentzMatrix4_SpinMatrix4", 2048, "mu nu spin spin2"},
    };
    for (size_t i = 0; i < COUNT(fields); i++) {
        struct limefile_field f = field_of(fields[i].name, 32, fields[i].site_bytes);
        struct limefile_siteshape site;
        char names[64] = "";
        limefile_siteshape_derive(&f, &site);
        assert_true(site.known);
        for (unsigned d = 0; d < site.dims; d++) {
            strcat(names, d ? " " : "");
            strcat(names, site.name[d]);
        }
        assert_string_equal(names, fields[i].names);
    }
}

TEST(test_datatypes)
{
    static const struct {
        const char *name;
        unsigned precision;
        bool known;
    } types[] = {
        {"QDP_F3_ColorMatrix", 32, true},
        {"USQCD_D3_ColorMatrix", 64, true},
        {"QUDA_DNc3_GaugeField", 64, true},
        {"QLA_F_Real", 32, true},
        {"GRID_D_LorentzVector4_ColourMatrix3", 64, true},
        {"ABC_F3_ColorMatrix", 32, false},
        {"ABC_ColorMatrix", 0, false},
        {"FAT_ColorMatrix", 0, false},
        {"D3_ColorMatrix", 64, true},
        {"Lattice", 0, true},
        {"ColorMatrix", 0, true},
        {"", 0, true},
        {"QDP_GenericType", 0, true},
        {"_", 0, false},
        {"my_field", 0, false},
        {"USQCDX_F3_ColorMatrix", 32, false},
    };
    for (size_t i = 0; i < COUNT(types); i++) {
        assert_int_equal(limefile_datatype_precision(types[i].name), types[i].precision);
        assert_int_equal(limefile_datatype_is_known(types[i].name), types[i].known);
    }
}
