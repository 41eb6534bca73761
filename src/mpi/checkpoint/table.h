/*
 * table.h - the sub-commands: each is a file cmd_NAME.c and a row of the table in main.c
 */
#ifndef CHECKPOINT_TABLE_H
#define CHECKPOINT_TABLE_H

#include "command.h"

extern const struct checkpoint_command checkpoint_generate, checkpoint_import,
    checkpoint_restart, checkpoint_export, checkpoint_compare, checkpoint_info, checkpoint_run;

#endif
