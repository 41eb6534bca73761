/* test_options.c - the command line of limefs */
#define _GNU_SOURCE
#include "options.h"
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

static struct limefs_options options;
static struct limefs_command command;

/* What limefs_options_read() says of "limefs WORDS". */
static int reads(const char *words)
{
    char *copy = strdup(words), *argv[32] = {"limefs"};
    int argc = 1;
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    int err = dup(2), nowhere = open("/dev/null", O_WRONLY); /* what is wrong is said there */
    dup2(nowhere, 2);
    int code = limefs_options_read(argc, argv, &command, &options);
    dup2(err, 2);
    close(err);
    close(nowhere);
    free(copy);
    return code;
}

static void release(void)
{
    limefs_options_release(&command, &options);
    memset(&command, 0, sizeof command);
    memset(&options, 0, sizeof options);
}

static void test_plain(void **state)
{
    (void)state;
    assert_int_equal(reads("conf.0100 /mnt"), 0);
    assert_string_equal(command.source, "conf.0100");
    assert_non_null(strstr(command.fuse.mountpoint, "mnt"));
    assert_false(options.rw);
    assert_int_equal(options.max_open, 128);
    assert_int_equal(options.extent, 32 << 20);
    assert_true(options.attr_timeout == 1.0);
    release();
}

static void test_values(void **state)
{
    (void)state;
    assert_int_equal(reads("-o rw,window=64M,extent=4096k,forward_from=1g,readahead=0 -o "
                           "attr_timeout=2.5,ino32,verify=stream,ranks=3,stripe=1M,"
                           "job_timeout=0.5,max_open=7,mkdir=container a /"),
                     0);
    assert_true(options.rw && options.ino32 && options.mkdir_container);
    assert_int_equal(options.window, 64 << 20);
    assert_int_equal(options.extent, 4 << 20);
    assert_int_equal(options.forward_from, 1 << 30);
    assert_int_equal(options.readahead, 0);
    assert_int_equal(options.stripe, 1 << 20);
    assert_int_equal(options.ranks, 3);
    assert_int_equal(options.max_open, 7);
    assert_int_equal(options.verify, LIMEFS_VERIFY_STREAM);
    assert_true(options.attr_timeout == 2.5 && options.job_timeout == 0.5);
    release();
    assert_int_equal(reads("-o job=socket a /"), 0);
    assert_true(options.job[0] == '/'); /* the daemon will be elsewhere */
    release();
}

/* mount(8) says rw for whatever is not ro: it counts for who says it himself. */
static void test_writing(void **state)
{
    static const struct {
        const char *words;
        bool rw;
    } cases[] = {
        {"-o ro,rw a /", true},
        {"-o rw,ro a /", false},
        {"-o rw,nosuid,nodev a /", false},
        {"-o rw,nosuid,nodev,writable a /", true},
        {"-o writable a /", true},
        {"-o rw,noauto,user,_netdev,nofail,defaults a /", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(reads(cases[i].words), 0);
        assert_int_equal(options.rw, cases[i].rw);
        release();
    }
}

static void test_wrong(void **state)
{
    static const char *const wrong[] = {
        "",
        "a",
        "-o window=x a /",
        "-o window=-1 a /",
        "-o window=1T a /",
        "-o extent=1000 a /",
        "-o extent=4097k a /",
        "-o extent=32M,window=63M a /",
        "-o stripe=2G a /",
        "-o ranks=2,job=x a /",
        "-o ranks=100001 a /",
        "-o verify=never a /",
        "-o attr_timeout=-1 a /",
        "-o entry_timeout=nan a /",
        "-o job_timeout=0 a /",
        "-o readahead=18446744073709551616 a /",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(reads(wrong[i]), -1);
        release();
    }
}

/* What the kernel and /proc/mounts are told; a comma in a name divides nothing. */
static void test_finish(void **state)
{
    (void)state;
    assert_int_equal(reads("a /"), 0);
    assert_int_equal(limefs_options_finish(&command, false, "/data/a,suid"), 0);
    assert_string_equal(command.args.argv[1], "-o");
    assert_string_equal(command.args.argv[2],
                        "ro,default_permissions,subtype=limefs,fsname=/data/a\\,suid");
    release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_writing), cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
