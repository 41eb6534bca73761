/* pace.c - how many threads wait for the next request, by trial */
#include "pace.h"

/* Of a program that asks for one thing after the other; else it has paused. */
static const uint64_t apart_most = 2000000;

unsigned limefs_pace_threads(const struct limefs_pace *pace)
{
    return pace->many ? LIMEFS_PACE_MANY : LIMEFS_PACE_FEW;
}

static void begin_trials(struct limefs_pace *pace)
{
    pace->many = false;
    pace->ended = 0;
}

/* First with few, then with many; then the better one is kept, until it has become slower than
 * the other one was. Many must gain an eighth: they take more of the processors' time. */
static void end_trial(struct limefs_pace *pace, uint64_t spent)
{
    unsigned trial = pace->ended++;
    if (trial == 0) {
        pace->other = spent;
        pace->many = true;
    } else if (trial == 1) {
        pace->many = spent < pace->other - pace->other / 8;
        if (!pace->many)
            pace->other = spent;
    } else if (trial > LIMEFS_PACE_REST || spent > pace->other + pace->other / 4) {
        begin_trials(pace);
    }
}

unsigned limefs_pace_request(struct limefs_pace *pace, double now)
{
    uint64_t at = (uint64_t)(now * 1e9), before = atomic_exchange(&pace->last, at);
    uint64_t apart = at > before ? at - before : 0;
    if (apart > apart_most)
        return 0;
    atomic_fetch_add(&pace->spent, apart);
    if (atomic_fetch_add(&pace->count, 1) + 1 != LIMEFS_PACE_TRIAL)
        return 0;
    unsigned threads = limefs_pace_threads(pace);
    end_trial(pace, atomic_exchange(&pace->spent, 0));
    pace->count = 0; /* the next one may end */
    unsigned now_threads = limefs_pace_threads(pace);
    return now_threads > threads ? now_threads - threads : 0;
}
