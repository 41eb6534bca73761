/* main.c - run a sub-command of lime, or the C-LIME or Lemon program that argv[0] names */
#include "complete.h"
#include "complete_line.h"
#include "suggest.h"
#include "tool.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct command *const commands[] = {
    &cmd_ls,      &cmd_info,  &cmd_cat,  &cmd_unpack, &cmd_new,     &cmd_pack,     &cmd_append,
    &cmd_replace, &cmd_rm,    &cmd_set,  &cmd_lfn,    &cmd_check,   &cmd_checksum, &cmd_verify,
    &cmd_repair,  &cmd_stage, &cmd_refs, &cmd_qcdml,  &cmd_convert, &cmd_join,     &cmd_diff,
};

static const struct command *const compat_programs[] = {
    &compat_lime_contents,     &compat_lemon_contents, &compat_lime_extract_record,
    &compat_lime_extract_type, &compat_lime_pack,      &compat_lime_unpack,
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const struct command *find_command(const struct command *const *table, size_t count,
                                          const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

static void print_overview(FILE *out)
{
    fputs("Usage: lime COMMAND [OPTION]... FILE...\n"
          "Work with LIME containers: lattice configurations, propagators and the like.\n\n",
          out);
    for (size_t i = 0; i < COUNT(commands); i++)
        fprintf(out, "  lime %-8s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n'lime help COMMAND' describes a command; 'lime --version' prints the version.\n"
          "-h means --help in each command without an option -h.\n"
          "limefs mounts a container, so that its records are files.\n",
          out);
}

static int report_unknown_command(const char *file, const char *word)
{
    struct limefile_suggestion near = {0};
    for (size_t i = 0; i < COUNT(commands); i++)
        limefile_suggest(&near, word, commands[i]->name);
    limefile_suggest(&near, word, "help");
    const char *text = limefile_suggest_text(&near);
    message(file, "%s: unknown command%s", word, *text ? text : "; see lime --help");
    return TOOL_UNUSABLE;
}

static int report_unknown_option(const char *word)
{
    struct limefile_suggestion near = {0};
    limefile_suggest_from_list(&near, word, "--help, --version");
    const char *text = limefile_suggest_text(&near);
    message(NULL, "unknown option '%s'%s", word, *text ? text : "; see lime --help");
    return TOOL_UNUSABLE;
}

static int print_command_help(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview(stdout);
        return TOOL_GOOD;
    }
    const struct command *command = find_command(commands, COUNT(commands), argv[1]);
    if (command)
        return print_help(command);
    return report_unknown_command("help", argv[1]);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return TOOL_UNUSABLE;
    }
    const char *word = argv[1];
    if (limefile_complete_requested(argc, argv)) {
        complete_line(commands, COUNT(commands), argc - 2, argv + 2);
        return TOOL_GOOD;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return print_command_help(argc - 1, argv + 1);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        puts("lime (limefs) " LIMEFS_VERSION);
        return TOOL_GOOD;
    }
    const struct command *command = find_command(commands, COUNT(commands), word);
    if (command)
        return command_run(command, argc - 1, argv + 1);
    if (*word != '-')
        return report_unknown_command(NULL, word);
    return report_unknown_option(word);
}

static bool wants_help(int argc, char **argv)
{
    return argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

/* Opens /dev/null in place of each closed standard stream. Otherwise a file that is opened
 * later would get the stream's descriptor, and messages would be written into that file. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
            _exit(TOOL_BAD);
}

/* Makes malloc() map blocks of 4 MiB or more: growing arrays then leave no holes in the heap,
 * and free() returns their memory to the system. Setting the threshold also keeps glibc from
 * raising it after a free(). Buffers for checksums are smaller and stay on the heap. */
static void limit_heap_growth(void)
{
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    limit_heap_growth();
    signal(SIGXFSZ, SIG_IGN); /* write() then fails with EFBIG, and the command cleans up */
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = argc == 0 ? "lime" : slash ? slash + 1 : argv[0];
    const struct command *compat = find_command(compat_programs, COUNT(compat_programs), name);
    if (compat)
        message_set_program(compat->name);
    int status = !compat                  ? dispatch(argc, argv)
                 : wants_help(argc, argv) ? print_help(compat)
                                          : compat->run(argc, argv);
    int flushed = finish_stdout();
    return worse_status(status, flushed);
}
