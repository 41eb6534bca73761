/* pace.c - whether the thread that waits for the next request sleeps, by trial */
#include "pace.h"

/* Of a program that asks for one thing after the other; else it has paused. */
static const uint64_t apart_most = 2000000;

bool limefs_pace_watches(const struct limefs_pace *pace)
{
    return pace->watching && !pace->paused;
}

/* First asleep, then on the watch; then the better one is kept, until it has become slower by a
 * quarter than the other one was. The watch must gain a quarter: it takes more of the
 * processors' time. */
static void end_trial(struct limefs_pace *pace, uint64_t spent)
{
    unsigned trial = pace->ended++;
    if (trial == 0) {
        pace->other = spent;
        pace->watching = true;
    } else if (trial == 1) {
        pace->watching = spent < pace->other - pace->other / 4;
        if (!pace->watching)
            pace->other = spent;
    } else if (trial > LIMEFS_PACE_REST || spent > pace->other + pace->other / 4) {
        pace->watching = false;
        pace->ended = 0;
    }
}

void limefs_pace_request(struct limefs_pace *pace, double now)
{
    uint64_t at = (uint64_t)(now * 1e9), before = atomic_exchange(&pace->last, at);
    uint64_t apart = at > before ? at - before : 0;
    pace->paused = apart > apart_most;
    if (apart > apart_most)
        return;
    atomic_fetch_add(&pace->spent, apart);
    if (atomic_fetch_add(&pace->count, 1) + 1 != LIMEFS_PACE_TRIAL)
        return;
    end_trial(pace, atomic_exchange(&pace->spent, 0));
    pace->count = 0; /* the next one may end */
}
