/* message.c - the table of messages */
#include "limejob.h"

enum {
    /* An identity, root, and a folder with a name below it: "/x" at least. */
    OPENING_LEAST = LIMEJOB_IDENTITY_BYTES + 4 + 2,
    OPENING_MOST = LIMEJOB_IDENTITY_BYTES + 4 + LIMEJOB_PATH_MAX - 1,
    WRITE_BYTES = 4 + 8 + 8 + 8 + 8 + 8 + 4,
};

static const struct limejob_message messages[] = {
    {LIMEJOB_HELLO, "hello", 8, 8},
    {LIMEJOB_OPEN, "open", OPENING_LEAST, OPENING_MOST},
    {LIMEJOB_CLOSE, "close", 4, 4},
    {LIMEJOB_READ, "read", 4 + 8 + 8 + 8, 4 + 8 + 8 + 8},
    {LIMEJOB_STATUS, "status", 0, 0},
    {LIMEJOB_STOP, "stop", 0, 0},
    {LIMEJOB_OPEN_WRITE, "open for writing", OPENING_LEAST, OPENING_MOST},
    {LIMEJOB_WRITE, "write", WRITE_BYTES, WRITE_BYTES},
    {LIMEJOB_SYNC, "sync", 4, 4},
};

const struct limejob_message *limejob_message_of(uint16_t opcode)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].opcode == opcode)
            return &messages[i];
    return NULL;
}
