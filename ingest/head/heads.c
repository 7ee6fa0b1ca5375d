/* heads.c - the heads of all partitions of this node. */
#include "ingest/head/heads.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/private_dir.h"

struct in_heads {
    struct in_heads_options options;
    char *dir;
    /* Written by the queues' thread, once each, the id before the head. */
    struct in_head *_Atomic heads[IN_PARTITIONS_MAX];
    uint64_t ids[IN_PARTITIONS_MAX];
    atomic_uint count;
};

struct in_heads *in_heads_new(const struct in_heads_options *options, struct qf_err *err)
{
    struct in_heads *heads;

    if (qf_private_dir(options->dir, err) != QF_OK)
        return NULL;
    heads = qf_xcalloc(1, sizeof(*heads));
    heads->options = *options;
    heads->dir = qf_xstrdup(options->dir);
    return heads;
}

struct in_heads *in_heads_free(struct in_heads *heads)
{
    if (!heads)
        return NULL;
    for (uint32_t i = 0; i < IN_PARTITIONS_MAX; i++)
        (void)in_head_free(atomic_load(&heads->heads[i]));
    free(heads->dir);
    free(heads);
    return NULL;
}

const char *in_heads_dir(const struct in_heads *heads)
{
    return heads->dir;
}

uint32_t in_heads_shards(const struct in_heads *heads)
{
    return heads->options.of.shards;
}

struct in_head *in_heads_open(struct in_heads *heads, uint32_t partition, uint64_t queue_id,
                              struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf dir = QF_STRBUF_INIT;
    struct in_head_options options = heads->options.of;
    struct in_head *head;

    if (partition >= IN_PARTITIONS_MAX) {
        (void)qf_err_set(err, QF_EINVAL, "at most %d partitions", IN_PARTITIONS_MAX);
        return NULL;
    }
    head = atomic_load(&heads->heads[partition]);
    if (head && heads->ids[partition] != queue_id) {
        (void)qf_err_set(err, QF_EINVAL, "partition %u has another queue", partition);
        return NULL;
    }
    if (head) {
        in_head_reset(head);
        return head;
    }
    qf_strbuf_printf(&dir, "%s/%u", heads->dir, partition);
    options.dir = qf_strbuf_cstr(&dir);
    head = in_head_new(&options, err);
    if (!head)
        return NULL;
    heads->ids[partition] = queue_id;
    atomic_store(&heads->heads[partition], head);
    if (partition >= atomic_load(&heads->count))
        atomic_store(&heads->count, partition + 1);
    return head;
}

struct in_head *in_heads_get(struct in_heads *heads, uint32_t partition, uint64_t *ret_queue_id)
{
    struct in_head *head =
        partition < IN_PARTITIONS_MAX ? atomic_load(&heads->heads[partition]) : NULL;

    if (head && ret_queue_id)
        *ret_queue_id = heads->ids[partition];
    return head;
}

uint32_t in_heads_count(struct in_heads *heads)
{
    return atomic_load(&heads->count);
}

struct in_head_figures in_heads_figures(struct in_heads *heads)
{
    struct in_head_figures all = { 0 };

    for (uint32_t i = 0; i < in_heads_count(heads); i++) {
        struct in_head *head = in_heads_get(heads, i, NULL);
        struct in_head_figures one = head ? in_head_figures(head) : (struct in_head_figures){ 0 };

        all.memory_bytes += one.memory_bytes;
        all.file_bytes += one.file_bytes;
        all.open_ranges += one.open_ranges;
        all.closed_ranges += one.closed_ranges;
        all.sealed_ranges += one.sealed_ranges;
        all.waiting_ranges += one.waiting_ranges;
        all.open_series += one.open_series;
        all.unknown_series += one.unknown_series;
        all.extras_dropped += one.extras_dropped;
    }
    return all;
}

void in_heads_relieve(struct in_heads *heads)
{
    uint64_t bound = heads->options.memory_bytes;
    bool any = true;

    while (bound && any && in_heads_figures(heads).memory_bytes > bound) {
        any = false;
        for (uint32_t i = 0; i < in_heads_count(heads); i++) {
            struct in_head *head = in_heads_get(heads, i, NULL);

            any |= head && in_head_give_up(head);
        }
    }
}
