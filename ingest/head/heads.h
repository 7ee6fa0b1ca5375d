/* heads.h - the heads of all partitions of this node, by number. */
#ifndef INGEST_HEAD_HEADS_H
#define INGEST_HEAD_HEADS_H

#include "ingest/head/head.h"

enum { IN_PARTITIONS_MAX = 1024 };

struct in_heads;

struct in_heads_options {
    const char *dir;           /* made if need be; each head has a folder in it */
    struct in_head_options of; /* every head; its dir is not looked at */
    uint64_t memory_bytes;     /* of all together, for in_heads_relieve(); 0: no bound */
};

/* NULL and @err filled: errors of in_head_new(). */
struct in_heads *in_heads_new(const struct in_heads_options *options, struct qf_err *err);
struct in_heads *in_heads_free(struct in_heads *heads); /* Accepts NULL, returns NULL. */
const char *in_heads_dir(const struct in_heads *heads);
uint32_t in_heads_shards(const struct in_heads *heads);

/* The head of @partition, whose queue has this id: a new one, or the one that is there, emptied. It
 * stays until in_heads_free(). On the queue's thread. Errors of in_head_new(); QF_EINVAL: no such
 * partition can be, or its queue had another id before. */
struct in_head *in_heads_open(struct in_heads *heads, uint32_t partition, uint64_t queue_id,
                              struct qf_err *err);

/* Any thread. NULL: it was not opened (yet). */
struct in_head *in_heads_get(struct in_heads *heads, uint32_t partition, uint64_t *ret_queue_id);
uint32_t in_heads_count(struct in_heads *heads); /* one more than the last that is open */
/* Of all of them together. */
struct in_head_figures in_heads_figures(struct in_heads *heads);

/* Beyond the bound of memory: give up positions of closed ranges that have files. */
void in_heads_relieve(struct in_heads *heads);

#endif
