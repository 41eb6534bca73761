/* suggest.c - find the word that a user probably meant */
#include "suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    WORD_MAX = sizeof((struct limefile_suggestion *)0)->best - 1,
    ABBREVIATION_MIN = 3, /* characters */
};

static bool is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static int smaller_of(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the Damerau-Levenshtein distance: the number of characters to insert, remove or
 * replace, and of neighbours to exchange, where upper and lower case are the same. Both words
 * have at most WORD_MAX bytes. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    int n = (int)strlen(b);
    for (int k = 0; k <= n; k++)
        row[k] = k;
    for (int i = 1; a[i - 1]; i++) {
        int *unused = before;
        before = last;
        last = row;
        row = unused;
        row[0] = i;
        for (int k = 1; k <= n; k++) {
            row[k] = smaller_of(last[k - 1] + !is_same(a[i - 1], b[k - 1]),
                                smaller_of(last[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && is_same(a[i - 1], b[k - 2]) && is_same(a[i - 2], b[k - 1]))
                row[k] = smaller_of(row[k], before[k - 2] + 1);
        }
    }
    return row[n];
}

void limefile_suggest(struct limefile_suggestion *s, const char *word, const char *candidate)
{
    size_t len = strlen(word);
    int most = len < 2 ? 0 : len < 5 ? 1 : 2;
    if (len > WORD_MAX || strlen(candidate) > WORD_MAX)
        return;
    if (strcmp(word, candidate) == 0)
        return;
    int distance = 1 + edit_distance(word, candidate);
    if (len >= ABBREVIATION_MIN && strncasecmp(word, candidate, len) == 0)
        distance = smaller_of(distance, 1 + most);
    if (distance > 1 + most || (s->distance && distance >= s->distance))
        return;
    s->distance = distance;
    strcpy(s->best, candidate);
}

void limefile_suggest_from_list(struct limefile_suggestion *s, const char *word,
                                const char *list)
{
    char item[WORD_MAX + 1];
    for (size_t len; *list; list += len, list += strspn(list, ", ")) {
        len = strcspn(list, ", ");
        snprintf(item, sizeof item, "%.*s", (int)len, list);
        limefile_suggest(s, word, item);
    }
}

const char *limefile_suggest_text(struct limefile_suggestion *s)
{
    s->text[0] = '\0';
    if (s->distance)
        snprintf(s->text, sizeof s->text, "; did you mean '%s'?", s->best);
    return s->text;
}

const char *limefile_suggest_or(const char *message, const char *hint)
{
    size_t len = strlen(message);
    return len > 0 && message[len - 1] == '?' ? "" : hint;
}
