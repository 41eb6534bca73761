/* stageprint.h - what `lime stage` says of each file: a line of a table, or of JSON */
#ifndef STAGEPRINT_H
#define STAGEPRINT_H

#include "stage.h"

void stageprint_head(void);
void stageprint_row(const struct stage_result *);
void stageprint_json(const struct stage_result *);

const char *stageprint_status(enum stage_status);

/* The target is there and whole. */
bool stageprint_is_in_place(const struct stage_result *);

/* What exit status the file alone would give. */
int stageprint_exit_status(const struct stage_result *);

#endif
