/* plan.c - what a client of a job asks for ahead of its readers */
#include "plan.h"

static const uint64_t near = UINT64_C(16) << 20; /* reads of one course are no further apart */
static const uint64_t late = UINT64_C(4) << 20;  /* nobody who shares a position is more so */
static const uint64_t align = 4096;              /* of loads: direct reads want it */
static const uint64_t asleep = UINT64_C(2000000000); /* ns without a read */
static const uint64_t fresh = UINT64_C(100000000);   /* ns that an answer is kept */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void limefs_run_plan_begin(struct limefs_run_plan *plan, uint64_t extent)
{
    plan->extent = smaller(extent, LIMEFS_RUN_EXTENT_MAX) / align * align;
    if (plan->extent < LIMEFS_RUN_EXTENT_LEAST)
        plan->extent = LIMEFS_RUN_EXTENT_LEAST;
    plan->slots = (unsigned)smaller(LIMEFS_RUN_WINDOW_MAX / plan->extent, LIMEFS_RUN_SLOTS_MAX);
    for (int i = 0; i < LIMEFS_RUN_SLOTS_MAX; i++)
        plan->slot[i].state = LIMEFS_RUN_SLOT_EMPTY;
    for (int i = 0; i < LIMEFS_RUN_COURSES; i++)
        plan->course[i] = (struct limefs_run_course){.file = -1};
}

uint64_t limefs_run_plan_window(const struct limefs_run_plan *plan)
{
    return plan->slots * plan->extent;
}

/* ---- courses ---- */

static bool is_awake(const struct limefs_run_course *course, uint64_t now)
{
    return course->file >= 0 && now < course->since + asleep;
}

static struct limefs_run_course *find_course(struct limefs_run_plan *plan, int file,
                                             uint64_t at)
{
    struct limefs_run_course *nearest = NULL;
    uint64_t least = near;
    for (int i = 0; i < LIMEFS_RUN_COURSES; i++) {
        struct limefs_run_course *course = &plan->course[i];
        uint64_t apart = course->next < at ? at - course->next : course->next - at;
        if (course->file == file && apart <= least) {
            nearest = course;
            least = apart;
        }
    }
    return nearest;
}

/* In the place of the one that was longest ago. */
static struct limefs_run_course *new_course(struct limefs_run_plan *plan, int file, uint64_t at)
{
    struct limefs_run_course *oldest = plan->course;
    for (struct limefs_run_course *i = plan->course; i < plan->course + LIMEFS_RUN_COURSES; i++)
        if (i->since < oldest->since)
            oldest = i;
    *oldest = (struct limefs_run_course){.file = file, .next = at};
    return oldest;
}

struct limefs_run_course *limefs_run_plan_course(struct limefs_run_plan *plan,
                                                 const struct limefs_run_want *want)
{
    struct limefs_run_course *course = find_course(plan, want->file, want->at);
    int slot = limefs_run_plan_find(plan, want->file, want->at);
    uint64_t behind = course && want->at < course->next ? course->next - want->at : 0;
    if (!course || (slot < 0 && behind > late)) /* another reader, who comes after the other */
        course = new_course(plan, want->file, want->at);
    course->since = want->now;
    if (slot >= 0 && course->ahead > want->at)
        return course;
    if (slot < 0 && behind > 0 && behind <= late)
        return NULL;
    uint64_t from = slot < 0 ? want->at : plan->slot[slot].to; /* another one has fetched it */
    course->ahead = from < want->end ? from / align * align : from;
    course->size = smaller(LIMEFS_RUN_LOAD_FIRST, plan->extent);
    course->next = want->at;
    return course;
}

void limefs_run_plan_went(struct limefs_run_plan *plan, int file, uint64_t from, uint64_t to)
{
    struct limefs_run_course *course = find_course(plan, file, from);
    int slot = limefs_run_plan_find(plan, file, from);
    if (slot >= 0)
        plan->slot[slot].fresh = 0;
    if (course && course->next < to)
        course->next = to;
}

/* ---- slots ---- */

/* Somebody is on his way to it. */
static bool is_wanted(const struct limefs_run_plan *plan, const struct limefs_run_slot *slot,
                      uint64_t now)
{
    for (int i = 0; i < LIMEFS_RUN_COURSES; i++) {
        const struct limefs_run_course *course = &plan->course[i];
        if (is_awake(course, now) && course->file == slot->file && course->next < slot->to &&
            course->ahead > slot->from)
            return true;
    }
    return false;
}

static bool is_free(const struct limefs_run_plan *plan, const struct limefs_run_slot *slot,
                    uint64_t now)
{
    return slot->state != LIMEFS_RUN_SLOT_LOADING && atomic_load(&slot->holds) == 0 &&
           (slot->state == LIMEFS_RUN_SLOT_EMPTY ||
            (now >= slot->fresh && !is_wanted(plan, slot, now)));
}

/* Courses that are awake share the slots. */
static bool has_its_share(const struct limefs_run_plan *plan,
                          const struct limefs_run_course *course)
{
    unsigned awake = 0, has = 0;
    for (int i = 0; i < LIMEFS_RUN_COURSES; i++)
        awake += is_awake(&plan->course[i], course->since);
    for (unsigned i = 0; i < plan->slots; i++) {
        const struct limefs_run_slot *slot = &plan->slot[i];
        has += slot->state != LIMEFS_RUN_SLOT_EMPTY && slot->file == course->file &&
               slot->to > course->next && slot->from < course->ahead;
    }
    unsigned share = awake ? plan->slots / awake : plan->slots;
    return has >= (share ? share : 1);
}

int limefs_run_plan_find(const struct limefs_run_plan *plan, int file, uint64_t at)
{
    for (unsigned i = 0; i < plan->slots; i++) {
        const struct limefs_run_slot *slot = &plan->slot[i];
        if (slot->state != LIMEFS_RUN_SLOT_EMPTY && slot->file == file && slot->from <= at &&
            at < slot->to)
            return (int)i;
    }
    return -1;
}

bool limefs_run_plan_next(const struct limefs_run_plan *plan,
                          const struct limefs_run_course *course,
                          const struct limefs_run_want *want, uint64_t *to)
{
    uint64_t reach = want->run > LIMEFS_RUN_LOAD_FIRST ? want->run : LIMEFS_RUN_LOAD_FIRST;
    reach = smaller(reach, LIMEFS_RUN_WINDOW_MAX);
    uint64_t target = smaller(want->at + reach, want->end);
    if (course->ahead >= target)
        return false;
    uint64_t boundary = (course->ahead / plan->extent + 1) * plan->extent;
    *to = smaller((course->ahead + course->size) / align * align, boundary);
    *to = smaller(*to, want->end);
    return true;
}

void limefs_run_plan_pass(const struct limefs_run_plan *plan, struct limefs_run_course *course,
                          uint64_t to)
{
    course->ahead = to;
    course->size = smaller(course->size * 2, plan->extent);
}

/* -1: none. */
static int free_slot(const struct limefs_run_plan *plan, const struct limefs_run_course *course,
                     uint64_t now)
{
    if (has_its_share(plan, course))
        return -1;
    for (unsigned i = 0; i < plan->slots; i++)
        if (is_free(plan, &plan->slot[i], now))
            return (int)i;
    return -1;
}

bool limefs_run_plan_has_room(const struct limefs_run_plan *plan,
                              const struct limefs_run_course *course, uint64_t now)
{
    return free_slot(plan, course, now) >= 0;
}

int limefs_run_plan_take(struct limefs_run_plan *plan, struct limefs_run_course *course,
                         uint64_t to, uint64_t now)
{
    int i = free_slot(plan, course, now);
    if (i < 0)
        return -1;
    struct limefs_run_slot *slot = &plan->slot[i];
    slot->state = LIMEFS_RUN_SLOT_LOADING;
    slot->file = course->file;
    slot->from = course->ahead;
    slot->to = to;
    slot->asked = now;
    limefs_run_plan_pass(plan, course, to);
    return i;
}

void limefs_run_plan_loaded(struct limefs_run_slot *slot, uint64_t now)
{
    slot->state = LIMEFS_RUN_SLOT_READY;
    slot->fresh = now + fresh;
}

/* ---- the end ---- */

bool limefs_run_plan_is_idle(const struct limefs_run_plan *plan, int file, uint64_t now)
{
    for (int i = 0; i < LIMEFS_RUN_COURSES; i++)
        if (is_awake(&plan->course[i], now) && (file < 0 || plan->course[i].file == file))
            return false;
    for (unsigned i = 0; i < plan->slots; i++)
        if (plan->slot[i].state == LIMEFS_RUN_SLOT_LOADING &&
            (file < 0 || plan->slot[i].file == file))
            return false;
    return true;
}

void limefs_run_plan_forget(struct limefs_run_plan *plan, int file)
{
    for (unsigned i = 0; i < plan->slots; i++)
        if (plan->slot[i].file == file && plan->slot[i].state == LIMEFS_RUN_SLOT_READY)
            plan->slot[i].state = LIMEFS_RUN_SLOT_EMPTY;
    for (int i = 0; i < LIMEFS_RUN_COURSES; i++)
        if (plan->course[i].file == file)
            plan->course[i] = (struct limefs_run_course){.file = -1};
}
