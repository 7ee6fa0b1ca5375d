/* once.c - which requests are under way, in a small table. */
#include "ingest/docs/once.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"

struct in_once {
    struct qf_lock *lock;
    size_t count;
    uint8_t ids[IN_ONCE_MAX][RG_DIGEST_BYTES];
};

struct in_once *in_once_new(void)
{
    struct in_once *once = qf_xcalloc(1, sizeof(*once));

    once->lock = qf_lock_new();
    return once;
}

struct in_once *in_once_free(struct in_once *once)
{
    if (once)
        (void)qf_lock_free(once->lock);
    free(once);
    return NULL;
}

/* With the lock. @count: it is not there. */
static size_t find(const struct in_once *once, const uint8_t id[RG_DIGEST_BYTES])
{
    size_t at = 0;

    while (at < once->count && memcmp(once->ids[at], id, RG_DIGEST_BYTES) != 0)
        at++;
    return at;
}

bool in_once_begin(struct in_once *once, struct qf_str tenant, struct qf_str key,
                   struct qf_str repeat_key, uint8_t ret_id[RG_DIGEST_BYTES])
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    int64_t until_ms = qf_clock_mono_ms() + IN_ONCE_WAIT_MS, left_ms = IN_ONCE_WAIT_MS;
    char name[RG_DOC_NAME_TEXT + 1];
    bool begun;

    rg_doc_name(tenant, key, name);
    qf_strbuf_puts(&text, name); /* of a fixed length */
    qf_strbuf_str(&text, repeat_key);
    rg_digest(qf_strbuf_view(&text), ret_id);
    qf_lock_take(once->lock);
    while (find(once, ret_id) < once->count && left_ms > 0) {
        (void)qf_lock_wait(once->lock, left_ms);
        left_ms = until_ms - qf_clock_mono_ms();
    }
    begun = once->count < IN_ONCE_MAX && find(once, ret_id) == once->count;
    if (begun)
        memcpy(once->ids[once->count++], ret_id, RG_DIGEST_BYTES);
    qf_lock_drop(once->lock);
    return begun;
}

void in_once_end(struct in_once *once, const uint8_t id[RG_DIGEST_BYTES])
{
    size_t at;

    qf_lock_take(once->lock);
    at = find(once, id);
    if (at < once->count)
        memmove(once->ids[at], once->ids[--once->count], RG_DIGEST_BYTES);
    qf_lock_wake_all(once->lock);
    qf_lock_drop(once->lock);
}
