/* test_state.c - state transitions of a container that is written to, and forbidden ones */
#ifndef LIMEFS_LOCKS
#define LIMEFS_LOCKS /* reports a forbidden transition */
#endif
#include "write_state.c"
#include "unit.h"

#include <errno.h>

static unsigned broken;

void limefs_report_violation(const char *rule)
{
    assert_non_null(rule);
    broken++;
}

void limefs_lockcheck_acquire(enum limefs_lock_rank rank)
{
    (void)rank;
}

void limefs_lockcheck_release(enum limefs_lock_rank rank)
{
    (void)rank;
}

/* Returns whether a rule was broken since the last call. */
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
    limefs_container_closed(&one); /* the open failed */
    limefs_container_opened(&one);
    limefs_container_rewritten(&one);
    assert_true(limefs_container_is_unindexed(&one));
    limefs_container_opened(&one);
    assert_false(limefs_container_is_unindexed(&one));
    limefs_container_closed(&one);
    assert_false(limefs_container_is_abandoned(&one));
    limefs_container_opened(&one);
    limefs_container_rewritten(&one);
    limefs_container_closed(&one);
    assert_true(limefs_container_is_abandoned(&one));
    assert_false(limefs_container_is_unindexed(&one));
    assert_false(was_broken());

    limefs_container_opened(&one); /* open in another snapshot */
    assert_true(was_broken());
    one.state = LIMEFS_CONTAINER_CLOSED;
    limefs_container_rewritten(&one); /* without the lock */
    assert_true(was_broken());
}

TEST(test_last)
{
    struct limefs_last one = {0};
    assert_false(limefs_last_is_growing(&one));
    limefs_last_begin_growth(&one);
    assert_true(limefs_last_is_growing(&one));
    assert_int_equal(limefs_last_error(&one), 0);
    limefs_last_commit(&one);
    assert_false(limefs_last_is_growing(&one));
    limefs_last_truncate(&one, true, false);
    assert_int_equal(one.state, LIMEFS_LAST_GROWING);
    limefs_last_reset(&one);
    assert_false(was_broken());

    limefs_last_commit(&one); /* there is nothing to commit */
    assert_true(was_broken());
}

/* A gap remains until the record is emptied or closed by its last user. */
TEST(test_gap)
{
    struct limefs_last one = {0};
    limefs_last_fail(&one, -EIO, false); /* within its length: only reported */
    assert_int_equal(one.state, LIMEFS_LAST_COMMITTED);
    assert_int_equal(limefs_last_error(&one), 0);
    limefs_last_fail(&one, -ENOSPC, true);
    assert_int_equal(one.state, LIMEFS_LAST_FAILED);
    assert_int_equal(limefs_last_error(&one), -ENOSPC);
    limefs_last_truncate(&one, true, false);
    assert_int_equal(one.state, LIMEFS_LAST_GAP);
    limefs_last_truncate(&one, false, false);
    assert_int_equal(one.state, LIMEFS_LAST_FAILED);
    limefs_last_truncate(&one, false, true);
    assert_int_equal(one.state, LIMEFS_LAST_COMMITTED);
    limefs_last_begin_growth(&one);
    limefs_last_fail(&one, -EIO, false); /* a growing record may have lost any byte */
    limefs_last_fail(&one, -EFBIG, true);
    assert_int_equal(one.state, LIMEFS_LAST_GAP);
    assert_true(limefs_last_is_growing(&one));
    assert_int_equal(limefs_last_error(&one), -EFBIG);
    limefs_last_truncate(&one, false, false);
    limefs_last_fail(&one, -EIO, false); /* another error */
    assert_int_equal(limefs_last_error(&one), -EFBIG);
    assert_false(was_broken());

    limefs_last_begin_growth(&one); /* it would hide the gap */
    assert_true(was_broken());
    one = (struct limefs_last){LIMEFS_LAST_GAP, -EIO};

    limefs_last_commit(&one); /* forbidden with a gap */
    assert_true(was_broken());
    assert_int_equal(limefs_last_error(&one), 0);
}

TEST(test_staging)
{
    struct limefs_staging one = {0};
    assert_false(limefs_is_staged(&one));
    limefs_staging_begin(&one, 0, true);
    assert_true(limefs_is_staged(&one) && limefs_staging_is_empty(&one));
    limefs_staging_truncate(&one, 0, 0);
    assert_true(limefs_staging_is_empty(&one));
    limefs_staging_write(&one);
    assert_false(limefs_staging_is_empty(&one));
    assert_true(limefs_staging_is_dirty(&one));
    limefs_staging_store(&one);
    assert_true(limefs_is_staged(&one));
    assert_false(limefs_staging_is_dirty(&one));
    limefs_staging_truncate(&one, 10, 10);
    assert_false(limefs_staging_is_dirty(&one));
    limefs_staging_truncate(&one, 10, 4);
    assert_true(limefs_staging_is_dirty(&one));
    assert_false(was_broken());

    limefs_staging_store(&one);
    limefs_staging_store(&one); /* there is nothing to store */
    assert_true(was_broken());
    one.state = LIMEFS_STAGING_NONE;
    limefs_staging_write(&one);
    assert_true(was_broken());
}

TEST(test_staging_gap)
{
    struct limefs_staging one = {0};
    limefs_staging_fail(&one, -EIO, false);
    assert_int_equal(one.state, LIMEFS_STAGING_NONE);
    limefs_staging_fail(&one, -ENOSPC, true);
    assert_false(limefs_is_staged(&one));
    assert_int_equal(limefs_staging_error(&one), -ENOSPC);
    limefs_staging_begin(&one, 5, false); /* it lacks the failed write */
    assert_int_equal(one.state, LIMEFS_STAGING_GAP);
    limefs_staging_write(&one);
    limefs_staging_truncate(&one, 5, 6);
    assert_int_equal(limefs_staging_error(&one), -ENOSPC);
    limefs_staging_truncate(&one, 6, 0);
    assert_int_equal(limefs_staging_error(&one), 0);
    assert_int_equal(one.state, LIMEFS_STAGING_WRITTEN);
    limefs_staging_store(&one);
    limefs_staging_fail(&one, -EIO, false); /* readers see the gap, so close() reports it */
    assert_true(limefs_staging_is_dirty(&one));
    assert_false(was_broken());

    limefs_staging_store(&one); /* forbidden with a gap */
    assert_true(was_broken());
    one = (struct limefs_staging){LIMEFS_STAGING_FAILED, -EIO};
    limefs_staging_begin(&one, 0, true);
    assert_true(limefs_staging_is_empty(&one));
    assert_false(was_broken());
}

TEST(test_sync)
{
    struct limefs_written written = {0};
    assert_false(limefs_sync_begin(&written));
    limefs_sync_end(&written);
    limefs_sync_mark_due(&written);
    assert_true(limefs_sync_begin(&written));
    assert_true(limefs_sync_begin(&written)); /* the first has not finished */
    limefs_sync_end(&written);
    limefs_sync_end(&written);
    assert_false(limefs_sync_begin(&written));
    limefs_sync_end(&written);
}
