/*
 * manifest.h - manifest.tsv, what `lime unpack` writes beside the files so that `lime pack`
 * can put them together again: a heading, then a line for each record
 *
 *     ordinal message record mb me bytes type file        separated by TABs
 *
 * type with %XX for unsafe bytes; bytes is for people, packing takes the files as they are.
 */
#ifndef MANIFEST_H
#define MANIFEST_H

#define MANIFEST_NAME "manifest.tsv"
#define MANIFEST_HEAD "#ordinal\tmessage\trecord\tmb\tme\tbytes\ttype\tfile\n"

#endif
