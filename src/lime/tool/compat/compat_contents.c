/* compat_contents.c - lime_contents and lemon_contents: all heads, and short data as text */
#include "compat.h"
#include "text.h"
#include "tool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum {
    LONG_LIME = 64000, /* data of this length and more are not shown */
    LONG_LEMON = 4096,
};

struct style {
    uint64_t long_bytes;
    const char *binary; /* how it speaks of data that are not ASCII */
    bool harmless;      /* nothing may steer the terminal */
};

static bool is_ascii(const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (data[i] & 0x80)
            return false;
    return true;
}

static int print_data(struct limefile_source *source, const struct limefile_record *r,
                      const struct style *style)
{
    static char data[LONG_LIME];
    if (r->bytes >= style->long_bytes) {
        printf("Data:           [Long record skipped]\n");
        return 0;
    }
    ssize_t got = limefile_read_full(source, data, (size_t)r->bytes, r->data_offset);
    if (got < 0)
        return (int)got;
    if ((uint64_t)got < r->bytes)
        return LIMEFILE_E_SHRUNK;
    data[got] = '\0';
    if (!is_ascii(data, (size_t)got)) {
        printf("Data:           %s\n", style->binary);
        return 0;
    }
    if (style->harmless)
        limefile_text_defuse(data, "\t\n");
    printf("Data:           \"%s\" \n", data); /* up to a NUL, as it always was */
    return 0;
}

static void print_head(const struct limefile_record *r, const struct style *style)
{
    char type[LIMEFILE_TYPE_BYTES + 1];
    snprintf(type, sizeof type, "%s", r->type);
    if (style->harmless)
        limefile_text_defuse(type, "");
    printf("\n\n");
    printf("Message:        %" PRIu32 "\n", r->message);
    printf("Record:         %" PRIu32 "\n", r->record);
    printf("Type:           %s\n", type);
    printf("Data Length:    %" PRIu64 "\n", r->bytes);
    printf("Padding Length: %u\n", r->padding);
    printf("MB flag:        %d\n", r->mb);
    printf("ME flag:        %d\n", r->me);
}

/* Record by record, so that what stands before a fault is shown. */
static int print_all(const char *path, int fd, const struct style *style)
{
    struct limefile_fd file;
    struct limefile_scan *scan;
    struct limefile_record record;
    int got;
    limefile_fd_init(&file, fd);
    int err = limefile_scan_new(&file.source, NULL, NULL, &scan);
    if (err) {
        message_code(path, "read", err);
        return TOOL_BAD;
    }
    while (!err && (got = limefile_scan_next(scan, &record)) > 0) {
        print_head(&record, style);
        err = print_data(&file.source, &record, style);
    }
    if (err)
        message_code(path, "read", err);
    else if (got < 0)
        finding_message(path, limefile_scan_fault(scan));
    limefile_scan_free(scan);
    return err || got < 0 ? TOOL_BAD : TOOL_GOOD;
}

static int contents(int argc, char **argv, const char *arguments, struct style style)
{
    if (argc != 2)
        return compat_usage(argv[0], arguments);
    style.harmless = isatty(STDOUT_FILENO);
    int fd = open_with_message(argv[1], O_RDONLY);
    if (fd < 0)
        return TOOL_BAD;
    int status = print_all(argv[1], fd, &style);
    close(fd);
    return status;
}

static int run_lime(int argc, char **argv)
{
    struct style style = {LONG_LIME, "[Binary data]", false};
    return contents(argc, argv, "<lime_file>", style);
}

static int run_lemon(int argc, char **argv)
{
    struct style style = {LONG_LEMON, "[Binary data].", false};
    return contents(argc, argv, "<lemon_file>", style);
}

const struct command compat_lime_contents = {
    "lime_contents", NULL,
    "Usage: lime_contents <lime_file>\n"
    "Print the records of a LIME container, as C-LIME does. See lime_contents(1).\n",
    run_lime};
const struct command compat_lemon_contents = {
    "lemon_contents", NULL,
    "Usage: lemon_contents <lemon_file>\n"
    "Print the records of a LIME container, as Lemon does. See lemon_contents(1).\n",
    run_lemon};
