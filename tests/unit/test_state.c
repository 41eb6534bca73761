/* test_state.c - what a container that is written to goes through, and what it cannot */
#ifndef LIMEFS_LOCKS
#define LIMEFS_LOCKS /* a step that no line allows is told */
#endif
#include "state.c"
#include "unit.h"

#include <errno.h>

static unsigned broken;

void limefs_broken(const char *rule)
{
    assert_non_null(rule);
    broken++;
}

void limefs_lock_taken(enum limefs_rank rank)
{
    (void)rank;
}

void limefs_lock_left(enum limefs_rank rank)
{
    (void)rank;
}

/* Whether a rule was broken since the last time. */
static bool was_broken(void)
{
    bool was = broken > 0;
    broken = 0;
    return was;
}

TEST(test_container)
{
    struct limefs_container one = {0};
    assert_int_equal(one.state, LIMEFS_CONTAINER_CLOSED);
    limefs_container_closed(&one); /* it could not be opened */
    limefs_container_opened(&one);
    limefs_container_rewritten(&one);
    assert_true(limefs_container_is_behind(&one));
    limefs_container_opened(&one);
    assert_false(limefs_container_is_behind(&one));
    limefs_container_closed(&one);
    assert_false(limefs_container_is_left(&one));
    limefs_container_opened(&one);
    limefs_container_rewritten(&one);
    limefs_container_closed(&one);
    assert_true(limefs_container_is_left(&one));
    assert_false(limefs_container_is_behind(&one));
    assert_false(was_broken());

    limefs_container_opened(&one); /* another snapshot has it */
    assert_true(was_broken());
    one.state = LIMEFS_CONTAINER_CLOSED;
    limefs_container_rewritten(&one); /* without the lock on it */
    assert_true(was_broken());
}

TEST(test_last)
{
    struct limefs_last one = {0};
    assert_false(limefs_last_is_growing(&one));
    limefs_last_grows(&one);
    assert_true(limefs_last_is_growing(&one));
    assert_int_equal(limefs_last_error(&one), 0);
    limefs_last_commits(&one);
    assert_false(limefs_last_is_growing(&one));
    limefs_last_cut(&one, true, false);
    assert_int_equal(one.state, LIMEFS_LAST_GROWING);
    limefs_last_settles(&one);
    assert_false(was_broken());

    limefs_last_commits(&one); /* there is nothing to commit */
    assert_true(was_broken());
}

/* A gap stays until the record is emptied, or its last user has gone. */
TEST(test_gap)
{
    struct limefs_last one = {0};
    limefs_last_fails(&one, -EIO, false); /* within its length: told, and that is all */
    assert_int_equal(one.state, LIMEFS_LAST_COMMITTED);
    assert_int_equal(limefs_last_error(&one), 0);
    limefs_last_fails(&one, -ENOSPC, true);
    assert_int_equal(one.state, LIMEFS_LAST_FAILED);
    assert_int_equal(limefs_last_error(&one), -ENOSPC);
    limefs_last_cut(&one, true, false);
    assert_int_equal(one.state, LIMEFS_LAST_GAP);
    limefs_last_cut(&one, false, false);
    assert_int_equal(one.state, LIMEFS_LAST_FAILED);
    limefs_last_cut(&one, false, true);
    assert_int_equal(one.state, LIMEFS_LAST_COMMITTED);
    limefs_last_grows(&one);
    limefs_last_fails(&one, -EIO, false); /* what grows may have lost anything */
    limefs_last_fails(&one, -EFBIG, true);
    assert_int_equal(one.state, LIMEFS_LAST_GAP);
    assert_true(limefs_last_is_growing(&one));
    assert_int_equal(limefs_last_error(&one), -EFBIG);
    limefs_last_cut(&one, false, false);
    limefs_last_fails(&one, -EIO, false); /* of something else */
    assert_int_equal(limefs_last_error(&one), -EFBIG);
    assert_false(was_broken());

    limefs_last_grows(&one); /* which would hide it */
    assert_true(was_broken());
    one = (struct limefs_last){LIMEFS_LAST_GAP, -EIO};

    limefs_last_commits(&one); /* not with a gap */
    assert_true(was_broken());
    assert_int_equal(limefs_last_error(&one), 0);
}

TEST(test_aside)
{
    struct limefs_collected one = {0};
    assert_false(limefs_collected_is(&one));
    limefs_collected_begins(&one, 0, true);
    assert_true(limefs_collected_is(&one) && limefs_collected_is_empty(&one));
    limefs_collected_cut(&one, 0, 0);
    assert_true(limefs_collected_is_empty(&one));
    limefs_collected_wrote(&one);
    assert_false(limefs_collected_is_empty(&one));
    assert_true(limefs_collected_is_news(&one));
    limefs_collected_puts(&one);
    assert_true(limefs_collected_is(&one));
    assert_false(limefs_collected_is_news(&one));
    limefs_collected_cut(&one, 10, 10);
    assert_false(limefs_collected_is_news(&one));
    limefs_collected_cut(&one, 10, 4);
    assert_true(limefs_collected_is_news(&one));
    assert_false(was_broken());

    limefs_collected_puts(&one);
    limefs_collected_puts(&one); /* there is nothing to put */
    assert_true(was_broken());
    one.state = LIMEFS_STAGING_NONE;
    limefs_collected_wrote(&one);
    assert_true(was_broken());
}

TEST(test_aside_gap)
{
    struct limefs_collected one = {0};
    limefs_collected_fails(&one, -EIO, false);
    assert_int_equal(one.state, LIMEFS_STAGING_NONE);
    limefs_collected_fails(&one, -ENOSPC, true);
    assert_false(limefs_collected_is(&one));
    assert_int_equal(limefs_collected_error(&one), -ENOSPC);
    limefs_collected_begins(&one, 5, false); /* what was to be written is missing in it */
    assert_int_equal(one.state, LIMEFS_STAGING_GAP);
    limefs_collected_wrote(&one);
    limefs_collected_cut(&one, 5, 6);
    assert_int_equal(limefs_collected_error(&one), -ENOSPC);
    limefs_collected_cut(&one, 6, 0);
    assert_int_equal(limefs_collected_error(&one), 0);
    assert_int_equal(one.state, LIMEFS_STAGING_WRITTEN);
    limefs_collected_puts(&one);
    limefs_collected_fails(&one, -EIO, false); /* readers see it: so closing says so */
    assert_true(limefs_collected_is_news(&one));
    assert_false(was_broken());

    limefs_collected_puts(&one); /* not with a gap */
    assert_true(was_broken());
    one = (struct limefs_collected){LIMEFS_STAGING_FAILED, -EIO};
    limefs_collected_begins(&one, 0, true);
    assert_true(limefs_collected_is_empty(&one));
    assert_false(was_broken());
}

TEST(test_sync)
{
    struct limefs_job_view written = {0};
    assert_false(limefs_sync_begins(&written));
    limefs_sync_ends(&written);
    limefs_sync_due(&written);
    assert_true(limefs_sync_begins(&written));
    assert_true(limefs_sync_begins(&written)); /* the other has the mark, and is not through */
    limefs_sync_ends(&written);
    limefs_sync_ends(&written);
    assert_false(limefs_sync_begins(&written));
    limefs_sync_ends(&written);
}
