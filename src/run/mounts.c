/* mounts.c - which mounts are limefs, and whose, by /proc/self/mountinfo */
#define _GNU_SOURCE
#include "run.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    DEVICE = 2,   /* field of a line, from 0 */
    TYPE = 1,     /* after the field "-" */
    OPTIONS = 3,  /* after it, too: of the file system */
    TEXT_MAX = 32 /* of what is looked for; longer words are something else */
};

/* A word at a time, as lines may be longer than any buffer. */
struct reader {
    int field, separator; /* the fields so far in this line, that "-" was; -1: not yet */
    char word[TEXT_MAX];
    size_t len;
    unsigned major, minor; /* looked for */
    bool device, limefs;   /* this line's */
    uint64_t user;         /* this line's: who has mounted it */
    enum limefs_run_mount found;
};

/* A decimal number up to `end`. */
static bool number(const char **at, char end, uint64_t *n)
{
    const char *begin = *at;
    for (*n = 0; **at >= '0' && **at <= '9' && *at < begin + 18; ++*at)
        *n = *n * 10 + (uint64_t)(**at - '0');
    return *at > begin && *(*at)++ == end;
}

static bool is_device(const struct reader *reader)
{
    uint64_t major, minor;
    const char *at = reader->word;
    return number(&at, ':', &major) && number(&at, '\0', &minor) && major == reader->major &&
           minor == reader->minor;
}

static void take_word(struct reader *reader)
{
    static const char user[] = "user_id=";
    reader->word[reader->len < TEXT_MAX ? reader->len : 0] = '\0';
    int after = reader->separator < 0 ? 0 : reader->field - reader->separator;
    if (reader->field == DEVICE)
        reader->device = is_device(reader);
    else if (reader->separator < 0 && reader->field > DEVICE && strcmp(reader->word, "-") == 0)
        reader->separator = reader->field;
    else if (after == TYPE)
        reader->limefs = strcmp(reader->word, "fuse.limefs") == 0;
    else if (after == OPTIONS && strncmp(reader->word, user, sizeof user - 1) == 0) {
        const char *at = reader->word + sizeof user - 1;
        if (!number(&at, '\0', &reader->user))
            reader->user = UINT64_MAX;
    }
    reader->len = 0;
}

static void end_line(struct reader *reader)
{
    if (reader->device && reader->limefs)
        reader->found = reader->user == 0 || reader->user == geteuid() ? LIMEFS_RUN_TRUSTED
                                                                       : LIMEFS_RUN_STRANGER;
    reader->device = reader->limefs = false;
    reader->user = UINT64_MAX;
    reader->field = 0;
    reader->separator = -1;
}

static void take(struct reader *reader, char c)
{
    bool option =
        c == ',' && reader->separator >= 0 && reader->field == reader->separator + OPTIONS;
    if (c != ' ' && c != '\n' && !option) {
        if (reader->len < TEXT_MAX)
            reader->word[reader->len++] = c;
        return;
    }
    take_word(reader);
    if (c == '\n')
        end_line(reader);
    else if (c == ' ')
        reader->field++;
}

enum limefs_run_mount limefs_run_mount_of(unsigned major, unsigned minor)
{
    char buf[1024];
    struct reader reader = {.major = major, .minor = minor, .found = LIMEFS_RUN_OTHER};
    end_line(&reader);
    const struct limefs_run_real *real = limefs_run_real();
    int fd = real->open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return LIMEFS_RUN_UNKNOWN;
    ssize_t got;
    while ((got = real->read(fd, buf, sizeof buf)) > 0)
        for (ssize_t i = 0; i < got; i++)
            take(&reader, buf[i]);
    real->close(fd);
    return reader.found;
}
