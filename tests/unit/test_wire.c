/* test_wire.c - packets, channels and windows with faulty peers */
#define _GNU_SOURCE
#include "unit.h"

#include "limejob.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two ends of a connection, static because each has 64 KiB. */
static struct limejob_channel near, far;
static struct limejob_packet sent, got;

static int connect_ends(void **state)
{
    int pair[2];
    (void)state;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    limejob_channel_init(&near, pair[0]);
    limejob_channel_init(&far, pair[1]);
    return 0;
}

static int close_ends(void **state)
{
    (void)state;
    limejob_channel_close(&near);
    limejob_channel_close(&far);
    return 0;
}

static int count_fds(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void put_raw(const void *data, size_t n)
{
    assert_int_equal(write(near.fd, data, n), (ssize_t)n);
}

/* ---- packets ---- */

TEST(test_replies)
{
    char text[LIMEJOB_TEXT_MAX], longer[2 * LIMEJOB_TEXT_MAX];
    limejob_request_init(&sent, LIMEJOB_OPEN, 7);
    limejob_reply_init(&got, &sent, 0, "not sent");
    assert_true(got.opcode == LIMEJOB_OPEN && got.tag == 7 && got.flags == LIMEJOB_REPLY);
    assert_int_equal(got.bytes, 4);
    assert_int_equal(limejob_get_code(&got, text, sizeof text), 0);
    assert_string_equal(text, "");
    limejob_reply_init(&got, &sent, -ESTALE, "another one"); /* either sign */
    assert_int_equal(limejob_get_code(&got, text, sizeof text), -ESTALE);
    assert_string_equal(text, "another one");
    limejob_reply_init(&got, &sent, ESTALE, NULL);
    assert_int_equal(limejob_get_code(&got, text, sizeof text), -ESTALE);
    assert_string_equal(text, "");
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    limejob_reply_init(&got, &sent, EIO, longer);
    assert_int_equal(got.bytes, 4 + LIMEJOB_TEXT_MAX - 1);
    assert_int_equal(limejob_get_code(&got, text, sizeof text), -EIO);
    assert_int_equal(strlen(text), LIMEJOB_TEXT_MAX - 1);
}

TEST(test_broken_replies)
{
    char text[16];
    limejob_request_init(&got, LIMEJOB_OPEN, 0);
    assert_int_equal(limejob_get_code(&got, text, sizeof text), -EPROTO);
    limejob_request_init(&got, LIMEJOB_OPEN, 0);
    limejob_put_u32(&got, 4096); /* not an errno */
    assert_int_equal(limejob_get_code(&got, text, sizeof text), -EPROTO);
    limejob_request_init(&got, LIMEJOB_OPEN, 0);
    limejob_put_u32(&got, UINT32_MAX);
    assert_int_equal(limejob_get_code(&got, NULL, 0), -EPROTO);
}

TEST(test_gets_end)
{
    char text[4];
    limejob_request_init(&got, LIMEJOB_CLOSE, 0);
    limejob_put_u32(&got, 5);
    assert_true(limejob_get_u64(&got) == 0 && got.broken);
    assert_int_equal(limejob_get_u32(&got), 0); /* an error is permanent */
    assert_int_equal(limejob_get_text(&got, text, sizeof text), -1);
    limejob_request_init(&got, LIMEJOB_CLOSE, 0);
    limejob_put_bytes(&got, "abcd", 4);
    assert_int_equal(limejob_get_text(&got, text, sizeof text), -1); /* too small for the NUL */
    limejob_request_init(&got, LIMEJOB_CLOSE, 0);
    limejob_put_bytes(&got, "a\0b", 3);
    assert_int_equal(limejob_get_text(&got, text, sizeof text), -1);
    assert_string_equal(text, "");
}

TEST_WITH(test_puts_end, connect_ends, close_ends)
{
    static char much[LIMEJOB_PAYLOAD_MAX];
    limejob_request_init(&sent, LIMEJOB_STATUS, 0);
    limejob_put_bytes(&sent, much, sizeof much);
    assert_false(sent.broken);
    limejob_put_u32(&sent, 1);
    assert_true(sent.broken && sent.bytes == LIMEJOB_PAYLOAD_MAX);
    assert_int_equal(limejob_send(&near, &sent, 0), -EMSGSIZE);
}

TEST(test_messages)
{
    for (uint16_t opcode = LIMEJOB_HELLO; opcode <= LIMEJOB_SYNC; opcode++) {
        const struct limejob_message *message = limejob_find_message(opcode);
        assert_true(message && message->min_bytes <= message->max_bytes &&
                    message->max_bytes <= LIMEJOB_PAYLOAD_MAX);
    }
    assert_null(limejob_find_message(0));
    assert_null(limejob_find_message(LIMEJOB_SYNC + 1));
    assert_null(limejob_find_message(LIMEJOB_INTERNAL));
}

/* ---- which container ---- */

static const struct limefile_identity conf = {
    .dev = 2049,
    .ino = 1048600,
    .uid = 1000,
    .mode = S_IFREG | 0640,
    .size = 4719568,
    .mtime = {1763632800, 123456789},
    .ctime = {1763632801, 5},
};

static int get_opening(const char *path, size_t n, uint32_t root, uint64_t bytes)
{
    static struct limejob_open_request opening;
    struct limefile_identity identity = conf;
    identity.size = (int64_t)bytes;
    limejob_request_init(&sent, LIMEJOB_OPEN, 2);
    limejob_put_open_request(&sent, &identity, "", root);
    limejob_put_bytes(&sent, path, n);
    return limejob_get_open_request(&sent, &opening);
}

TEST(test_roots)
{
    static const struct {
        const char *path;
        uint32_t root;
        int err;
    } rows[] = {
        {"/a/b/c", 2, 0},       {"/a/b/c", 4, 0},       {"/a/b/c", 1, 0},
        {"/a", 1, 0},           {"//a", 1, 0},          {"/a//b", 2, 0},
        {"/a/b/c", 3, 0},       {"/a/b/c", 0, -EINVAL}, {"/a/b/c", 6, -EINVAL},
        {"/a/b/c", 7, -EINVAL}, {"/ab/c", 2, -EINVAL},  {"/a/b/c", UINT32_MAX, -EINVAL},
        {"/a/", 2, -EINVAL},    {"/a//", 3, -EINVAL},   {"a/b", 1, -EINVAL},
        {"", 1, -EINVAL},       {"//", 1, -EINVAL},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(get_opening(rows[i].path, strlen(rows[i].path), rows[i].root, 1),
                         rows[i].err);
    assert_int_equal(limejob_directory_bytes("/conf"), 1);
    assert_int_equal(get_opening("/a\0b/c", 6, 1, 1), -EINVAL);
    assert_int_equal(get_opening("/a/b", 4, 2, INT64_MAX), 0);
    assert_int_equal(get_opening("/a/b", 4, 2, (uint64_t)INT64_MAX + 1), -EINVAL);
}

TEST(test_differences)
{
    struct limefile_identity others[9];
    static const char *const texts[] = {
        "device 7, not 2049",
        "inode 7, not 1048600",
        "uid 7, not 1000",
        "mode 0100600, not 0100640",
        "size 7, not 4719568",
        "mtime 7.123456789, not 1763632800.123456789",
        "mtime 1763632800.000000007, not 1763632800.123456789",
        "ctime -7.000000005, not 1763632801.000000005",
        "ctime 1763632801.000000007, not 1763632801.000000005",
    };
    char text[128];
    for (size_t i = 0; i < COUNT(others); i++)
        others[i] = conf;
    others[0].dev = others[1].ino = others[2].uid = 7;
    others[3].mode = S_IFREG | 0600;
    others[4].size = others[5].mtime.tv_sec = others[6].mtime.tv_nsec = 7;
    others[7].ctime.tv_sec = -7;
    others[8].ctime.tv_nsec = 7;
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(limejob_identity_compare(&others[i], &conf, 0, text, 128), -ESTALE);
        assert_string_equal(text, texts[i]);
        assert_int_equal(limejob_identity_compare(&others[i], &conf, LIMEFILE_STATE, NULL, 0),
                         i < 4 ? -ESTALE : 0);
        assert_int_equal(limejob_identity_compare(&others[i], &conf, LIMEFILE_DEV, NULL, 0),
                         i > 0 ? -ESTALE : 0);
    }
}

/* ---- headers ---- */

TEST_WITH(test_longest_packet, connect_ends, close_ends)
{
    unsigned char raw[LIMEJOB_HEADER_BYTES];
    limejob_request_init(&sent, LIMEJOB_STATUS, 3);
    sent.bytes = LIMEJOB_PAYLOAD_MAX;
    memset(sent.payload, 0x5a, sizeof sent.payload);
    assert_int_equal(limejob_send(&near, &sent, 1000), 0);
    assert_int_equal(limejob_receive(&far, &got, 1000), 1);
    assert_int_equal(got.bytes, LIMEJOB_PAYLOAD_MAX);
    assert_memory_equal(got.payload, sent.payload, sizeof got.payload);
    limejob_header_encode(&sent, raw);
    raw[12] = 1; /* a byte too many */
    put_raw(raw, sizeof raw);
    assert_int_equal(limejob_receive(&far, &got, 1000), -EMSGSIZE);
}

/* ---- channels ---- */

TEST_WITH(test_hung_up, connect_ends, close_ends)
{
    unsigned char raw[LIMEJOB_HEADER_BYTES];
    limejob_request_init(&sent, LIMEJOB_STATUS, 1);
    limejob_header_encode(&sent, raw);
    put_raw(raw, 10); /* in the middle of a packet */
    limejob_channel_close(&near);
    assert_int_equal(limejob_receive(&far, &got, 1000), -EPIPE);
    assert_int_equal(limejob_send(&far, &sent, 1000), -EPIPE);
}

TEST_WITH(test_timeouts, connect_ends, close_ends)
{
    assert_int_equal(limejob_receive(&far, &got, 30), 0);
    limejob_request_init(&sent, LIMEJOB_STATUS, 1);
    sent.bytes = LIMEJOB_PAYLOAD_MAX;
    int err = 0;
    for (int i = 0; i < 1000 && !err; i++) /* the peer does not receive */
        err = limejob_send(&near, &sent, 30);
    assert_int_equal(err, -ETIMEDOUT);
}

/* ---- descriptors ---- */

TEST_WITH(test_descriptor_passes, connect_ends, close_ends)
{
    struct stat a, b;
    int fd = memfd_create("passed", MFD_CLOEXEC);
    limejob_request_init(&sent, LIMEJOB_HELLO, 1);
    limejob_put_u64(&sent, 0);
    sent.fd = fd;
    assert_int_equal(limejob_send(&near, &sent, 1000), 0);
    assert_int_equal(limejob_receive(&far, &got, 1000), 1);
    assert_true(got.fd >= 0 && got.fd != fd);
    assert_true(fstat(fd, &a) == 0 && fstat(got.fd, &b) == 0 && a.st_ino == b.st_ino);
    assert_true(fcntl(got.fd, F_GETFD) & FD_CLOEXEC);
    close(got.fd);
    close(fd);
    sent.fd = -1;
    assert_int_equal(limejob_send(&near, &sent, 1000), 0);
    assert_int_equal(limejob_receive(&far, &got, 1000), 1);
    assert_int_equal(got.fd, -1);
}

/* ---- windows ---- */

TEST(test_window)
{
    struct limejob_window mine, theirs;
    int before = count_fds();
    assert_int_equal(limejob_window_create(&mine, 10000), 0);
    assert_int_not_equal(ftruncate(mine.fd, 0), 0);
    assert_int_equal(limejob_window_map(&theirs, fcntl(mine.fd, F_DUPFD_CLOEXEC, 3), 10000), 0);
    theirs.data[9999] = 'x';
    assert_int_equal(mine.data[9999], 'x');
    limejob_window_release(&theirs);
    limejob_window_release(&mine);
    assert_int_equal(count_fds(), before);
    assert_int_equal(limejob_window_create(&mine, 0), -EINVAL);
    assert_int_equal(limejob_window_create(&mine, LIMEJOB_WINDOW_MAX + 1), -EINVAL);
}
