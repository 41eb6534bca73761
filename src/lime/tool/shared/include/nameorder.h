/* nameorder.h - the order in which files of a directory are listed */
#ifndef NAMEORDER_H
#define NAMEORDER_H

/* Compares two names in natural order: a run of digits counts as a number, so that conf.9 comes
 * before conf.10; every other byte counts as it is, and a number in the place of '0' to '9'.
 * Names that differ in leading zeros alone are in the order of their bytes. Returns a number
 * less than, equal to or greater than 0. limefs._stack._natural is the same order in Python. */
int name_compare(const char *a, const char *b);

#endif
