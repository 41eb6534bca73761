/* main.c - the main program of lime-checkpoint, which calls the sub-commands of cmd_*.c */
#include "options.h"
#include "complete.h"
#include "suggest.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct checkpoint_command *const commands[] = {
    &checkpoint_generate, &checkpoint_import, &checkpoint_restart, &checkpoint_export,
    &checkpoint_compare,  &checkpoint_info,   &checkpoint_run,
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static const struct checkpoint_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void print_overview(FILE *out)
{
    fputs("Usage: mpirun -n N " CHECKPOINT_PROGRAM " COMMAND [OPTION]... FILE...\n"
          "Checkpoints of particles: written by all ranks, read by any number of them.\n\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  " CHECKPOINT_PROGRAM " %-8s %s\n", commands[i]->name,
                commands[i]->summary);
    fputs("\n'" CHECKPOINT_PROGRAM " COMMAND --help' shows its options; '" CHECKPOINT_PROGRAM
          " --version' the version.\n",
          out);
}

static int print_help(const struct checkpoint_world *world,
                      const struct checkpoint_command *command)
{
    if (world->rank == 0)
        printf("Usage: mpirun -n N " CHECKPOINT_PROGRAM " %s %s\n%s", command->name,
               command->arguments, command->help);
    return CHECKPOINT_SUCCESS;
}

/* Returns true if an argument before "--" is -h, --help or an abbreviation of --help. */
static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t len = strlen(argv[i]);
        if ((len > 2 && strncmp(argv[i], "--help", len) == 0) || strcmp(argv[i], "-h") == 0)
            return true;
    }
    return false;
}

static void report_unknown_command(const char *word)
{
    struct limefile_suggestion near = {0};
    for (size_t i = 0; i < COMMANDS; i++)
        limefile_suggest(&near, word, commands[i]->name);
    const char *text = limefile_suggest_text(&near);
    checkpoint_log("%s: unknown command%s", word,
                   *text ? text : "; see " CHECKPOINT_PROGRAM " --help");
}

/* Runs the sub-command argv[1]. Returns the exit status, the same on all ranks. Collective. */
static int dispatch(const struct checkpoint_world *world, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    bool first = world->rank == 0;
    const struct checkpoint_command *command = word ? find_command(word) : NULL;
    if (command && wants_help(argc - 1, argv + 1))
        return print_help(world, command);
    if (command)
        return command->run(world, argc - 1, argv + 1);
    if (word && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        if (first)
            print_overview(stdout);
        return CHECKPOINT_SUCCESS;
    }
    if (word && (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)) {
        if (first)
            puts(CHECKPOINT_PROGRAM " (limefs) " LIMEFS_VERSION);
        return CHECKPOINT_SUCCESS;
    }
    if (first && word)
        report_unknown_command(word);
    else if (first)
        print_overview(stderr);
    return CHECKPOINT_USAGE;
}

/* Opens /dev/null for each closed standard stream, so that no other file gets its number. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            _exit(CHECKPOINT_FAILED);
}

/* Flushes stdout. If rank 0 fails, changes success to CHECKPOINT_FAILED. Collective. */
static int finish_output(const struct checkpoint_world *world, int status)
{
    int failed = fflush(stdout) != 0 || ferror(stdout);
    if (failed && world->rank == 0)
        checkpoint_log("standard output: write error");
    failed = checkpoint_broadcast(failed);
    return status == CHECKPOINT_SUCCESS && failed ? CHECKPOINT_FAILED : status;
}

/* argv: "lime-checkpoint --complete WORD...". The commands print the candidates when they parse
 * their options, before they use MPI. */
static int complete_words(int argc, char **argv)
{
    const struct checkpoint_world world = {.ranks = 1};
    struct limefile_completion c;
    const struct checkpoint_command *command = find_command(argv[2]);
    if (argc == 3) {
        limefile_complete(NULL, "--help  list the commands\n", 1, argv + 2, stdout, &c);
        for (size_t i = 0; i < COMMANDS; i++)
            limefile_complete_offer(&c, commands[i]->name, commands[i]->summary);
    } else if (command) {
        argv[2] = argv[1];
        command->run(&world, argc - 1, argv + 1);
    }
    return fflush(stdout) == 0 ? CHECKPOINT_SUCCESS : CHECKPOINT_FAILED;
}

int main(int argc, char **argv)
{
    struct checkpoint_world world;
    int level;
    fill_standard_streams();
    if (limefile_complete_requested(argc, argv))
        return complete_words(argc, argv);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    checkpoint_world_init(&world);
    int status = dispatch(&world, argc, argv);
    status = finish_output(&world, status);
    MPI_Finalize();
    return status;
}
