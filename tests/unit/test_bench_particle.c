/* test_bench_particle.c - lime-bench: made-up particles are in the domain, differ, and go
 * through numbers and text unchanged */
#include "lattice.h"

#include "particle.h"

#include <stdio.h>

static struct bench_gas gas_by_chance(void)
{
    int64_t particles = 1 + (int64_t)chance_below(INT64_C(1) << 40);
    return (struct bench_gas){particles, 0.001 + (double)chance_below(1000000) / 7,
                              chance_below(2) ? BENCH_CLUSTER : BENCH_UNIFORM};
}

static void test_in_the_domain(void **state)
{
    (void)state;
    for (int i = 0; i < chance_times(20000); i++) {
        struct bench_gas gas = gas_by_chance();
        double at[BENCH_SPACE];
        bench_particle_position(&gas, 1 + (int64_t)chance_below((uint64_t)gas.particles), at);
        for (int d = 0; d < BENCH_SPACE; d++)
            assert_true(at[d] >= 0 && at[d] < gas.length);
    }
}

static void test_a_function_of_seed_and_id(void **state)
{
    (void)state;
    for (int i = 0; i < chance_times(5000); i++) {
        struct bench_gas gas = gas_by_chance();
        int64_t id = 1 + (int64_t)chance_below((uint64_t)gas.particles);
        uint64_t seed = chance_below(1000);
        char one[BENCH_PARTICLE_BYTES], same[BENCH_PARTICLE_BYTES], other[BENCH_PARTICLE_BYTES];
        double here[BENCH_SPACE], there[BENCH_SPACE];
        bench_particle_make(&gas, seed, id, one);
        bench_particle_make(&gas, seed, id, same);
        assert_memory_equal(one, same, sizeof one);
        assert_int_equal(bench_particle_id(one), id);
        bench_particle_make(&gas, seed + 1, id, other); /* it is in the same place */
        bench_particle_where(one, here);
        bench_particle_where(other, there);
        assert_memory_equal(here, there, sizeof here);
        assert_memory_not_equal(one + BENCH_AT_VELOCITY, other + BENCH_AT_VELOCITY, 24);
        bench_particle_make(&gas, seed, id + 1, other);
        assert_memory_not_equal(one + BENCH_AT_VELOCITY, other + BENCH_AT_VELOCITY, 24);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < chance_times(2000); i++) {
        struct bench_gas gas = gas_by_chance();
        int64_t id = 1 + (int64_t)chance_below((uint64_t)gas.particles);
        char one[BENCH_PARTICLE_BYTES], again[BENCH_PARTICLE_BYTES], text[32];
        double numbers[BENCH_PARTICLE_NUMBERS];
        bench_particle_make(&gas, 1, id, one);
        bench_particle_numbers(one, numbers);
        for (int n = 0; n < BENCH_PARTICLE_NUMBERS; n++) {
            snprintf(text, sizeof text, "%.17g", numbers[n]);
            assert_true(strtod(text, NULL) == numbers[n]);
        }
        memset(again, 'x', sizeof again);
        bench_particle_of(numbers, again);
        assert_memory_equal(one, again, sizeof one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_the_domain),
        cmocka_unit_test(test_a_function_of_seed_and_id),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests_name("lime-bench: particles", tests, NULL, NULL);
}
