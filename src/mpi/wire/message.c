/* message.c - the table of messages */
#include "limejob.h"

static const struct limejob_message messages[] = {
    {LIMEJOB_HELLO, "hello", 8, 8},
    {LIMEJOB_OPEN, "open", 8 + 8 + 8 + 4 + 1, 8 + 8 + 8 + 4 + LIMEJOB_PATH_MAX - 1},
    {LIMEJOB_CLOSE, "close", 4, 4},
    {LIMEJOB_READ, "read", 4 + 8 + 8 + 8, 4 + 8 + 8 + 8},
    {LIMEJOB_STATUS, "status", 0, 0},
    {LIMEJOB_STOP, "stop", 0, 0},
    {LIMEJOB_OPEN_WRITE, "open for writing", 8 + 1, 8 + LIMEJOB_PATH_MAX - 1},
    {LIMEJOB_WRITE, "write", 4 + 8 + 8 + 8, 4 + 8 + 8 + 8 + 8 + 8},
    {LIMEJOB_SYNC, "sync", 4, 4},
    {LIMEJOB_SUM, "sum", 4 + 8 + 8 + 8 + 8, 4 + 8 + 8 + 8 + 8},
};

const struct limejob_message *limejob_message_of(uint16_t opcode)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].opcode == opcode)
            return &messages[i];
    return NULL;
}
