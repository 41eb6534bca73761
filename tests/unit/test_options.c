/* test_options.c - the command line of limefs */
#define _GNU_SOURCE
#include "options.h"
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

static struct limefs_options options;
static struct limefs_command command;

static char errors[1024]; /* output on stderr */

/* Returns the result of limefs_options_parse() for "limefs LINE". */
static int parse_line(const char *line)
{
    char *copy = strdup(line), *argv[32] = {"limefs"};
    int argc = 1;
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    int err = dup(2), ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], 2);
    int code = limefs_options_parse(argc, argv, &command, &options);
    dup2(err, 2);
    ssize_t n = read(ends[0], errors, sizeof errors - 1);
    errors[n > 0 ? n : 0] = '\0';
    close(err);
    close(ends[0]);
    close(ends[1]);
    free(copy);
    return code;
}

static void release(void)
{
    limefs_options_release(&command, &options);
    memset(&command, 0, sizeof command);
    memset(&options, 0, sizeof options);
}

TEST(test_plain)
{
    assert_int_equal(parse_line("conf.0100 /mnt"), 0);
    assert_string_equal(command.source, "conf.0100");
    assert_non_null(strstr(command.fuse.mountpoint, "mnt"));
    assert_false(options.rw);
    assert_int_equal(options.max_open, 128);
    assert_int_equal(options.extent, 32 << 20);
    assert_true(options.attr_timeout == 1.0);
    release();
}

TEST(test_values)
{
    assert_int_equal(parse_line("-o rw,window=64M,extent=4096k,forward_from=1g,readahead=0 -o "
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
    assert_int_equal(parse_line("-o job=socket a /"), 0);
    assert_true(options.job[0] == '/'); /* the daemon will be elsewhere */
    release();
    assert_int_equal(parse_line("-o ranks=2,mpirun=bin/mpirun a /"), 0);
    assert_true(options.mpirun[0] == '/');
    release();
    assert_int_equal(parse_line("-o ranks=2,mpirun=mpirun a /"), 0);
    assert_string_equal(options.mpirun, "mpirun");
    release();
}

/* mount(8) passes rw by default, so only the user's own option counts. */
TEST(test_writing)
{
    static const struct {
        const char *line;
        bool rw;
    } cases[] = {
        {"-o ro,rw a /", true},
        {"-o rw,ro a /", false},
        {"-o rw,nosuid,nodev a /", false},
        {"-o rw,nosuid,nodev,writable a /", true},
        {"-o writable a /", true},
        {"-o rw,noauto,user,_netdev,nofail,defaults a /", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(parse_line(cases[i].line), 0);
        assert_int_equal(options.rw, cases[i].rw);
        release();
    }
}

TEST(test_wrong)
{
    static const struct {
        const char *line, *message;
    } wrong[] = {
        {"", "no container or directory given"},
        {"a", "no mount point given"},
        {"-o window=x a /", "window: invalid value 'x' (2M to 1T)"},
        {"-o window=-1 a /", "window: invalid value '-1'"},
        {"-o window=2T a /", "window: invalid value '2T'"},
        {"-o window=+1G a /", "window: invalid value '+1G'"},
        {"-o window= a /", "window: invalid value ''"},
        {"-o window a /", "option 'window' requires a value"},
        {"-o window=2048G a /", "window: invalid value '2048G'"},
        {"-o extent=1000 a /", "extent: invalid value '1000'"},
        {"-o extent=4097k a /", "a multiple of 4K"},
        {"-o extent=32M,window=63M a /", "window: too small for two extents (at least 65536K)"},
        {"-o stripe=2G a /", "stripe: invalid value '2G' (1 to 1G)"},
        {"-o stripe=0,ranks=2 a /", "stripe: invalid value '0'"},
        {"-o forward_from=4M4 a /", "forward_from: invalid value '4M4'"},
        {"-o readahead=18446744073709551616 a /", "readahead: invalid value"},
        {"-o readahead=1 a /", "readahead: invalid value '1' (0, or 4K to 1G)"},
        {"-o readahead=2G a /", "readahead: invalid value '2G'"},
        {"-o ranks=2,job=x a /", "options 'ranks' and 'job' cannot be used together"},
        {"-o job_required a /", "option 'job_required' requires 'ranks' or 'job'"},
        {"-o ranks=0 a /", "ranks: invalid value '0' (a number from 1 to 4096)"},
        {"-o ranks=-2 a /", "ranks: invalid value '-2'"},
        {"-o ranks=2x a /", "ranks: invalid value '2x'"},
        {"-o ranks=2.5 a /", "ranks: invalid value '2.5'"},
        {"-o ranks= a /", "ranks: invalid value ''"},
        {"-o ranks a /", "option 'ranks' requires a value"},
        {"-o ranks=4097,mpirun=x a /", "ranks: invalid value '4097'"},
        {"-o max_open=-1 a /", "max_open: invalid value '-1'"},
        {"-o max_open=99999999999999999999 a /", "max_open: invalid value"},
        {"-o max_read=1 a /", "max_read: invalid value '1' (bytes, 4096 to 1048576)"},
        {"-o max_read=2097152 a /", "max_read: invalid value"},
        {"-o max_threads=0 a /", "max_threads: invalid value '0'"},
        {"-o max_idle_threads=-1 a /", "max_idle_threads: invalid value '-1'"},
        {"-o attr_timeout=-1 a /", "attr_timeout: invalid value '-1' (seconds, from 0)"},
        {"-o attr_timeout=1x a /", "attr_timeout: invalid value '1x'"},
        {"-o attr_timeout=0x10 a /", "attr_timeout: invalid value '0x10'"},
        {"-o entry_timeout=nan a /", "entry_timeout: invalid value 'nan'"},
        {"-o entry_timeout=inf a /", "entry_timeout: invalid value 'inf'"},
        {"-o job_timeout=0 a /", "job_timeout: invalid value '0' (seconds, 0.1 to 86400)"},
        {"-o verify=never a /", "verify: unknown value 'never' (off, open, stream)"},
        {"-o verify= a /", "verify: unknown value '' (off, open, stream)"},
        {"-o verify a /", "option 'verify' requires a value"},
        {"-o mkdir=file a /", "mkdir: unknown value 'file' (directory, container)"},
        {"-o mpirun= a /", "option 'mpirun' requires a value"},
        {"-o job= a /", "option 'job' requires a value"},
        {"-o faces=1 a /", "option 'faces' takes no value"},
        {"-o rw=1 a /", "option 'rw' takes no value"},
        {"a / b", "unexpected argument 'b'"},
        {"a / -o", "option '-o' requires a value"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(parse_line(wrong[i].line), -1);
        if (!strstr(errors, wrong[i].message) || !strstr(errors, "see limefs --help\n"))
            fail_msg("%s: %s", wrong[i].line, errors);
        assert_ptr_equal(strchr(errors, '\n'), errors + strlen(errors) - 1);
        release();
    }
}

/* Options of a job have no effect without ranks=. */
TEST(test_no_effect)
{
    static const char *const job_options[] = {"window=64M", "extent=8M", "job_timeout=3",
                                              "stripe=1M", "mpirun=x"};
    for (size_t i = 0; i < COUNT(job_options); i++) {
        char line[64];
        snprintf(line, sizeof line, "-o %s a /", job_options[i]);
        assert_int_equal(parse_line(line), 0);
        assert_non_null(strstr(errors, ": no effect without ranks="));
        release();
        snprintf(line, sizeof line, "-o ranks=2,%s a /", job_options[i]);
        assert_int_equal(parse_line(line), 0);
        assert_string_equal(errors, "");
        release();
    }
}

/* Options for the kernel and /proc/mounts; a comma in a name is escaped. */
TEST(test_finish)
{
    assert_int_equal(parse_line("a /"), 0);
    assert_int_equal(limefs_options_add_source(&command, false, "/data/a,suid"), 0);
    assert_string_equal(command.args.argv[1], "-o");
    assert_string_equal(command.args.argv[2],
                        "ro,default_permissions,subtype=limefs,fsname=/data/a\\,suid");
    release();
}
