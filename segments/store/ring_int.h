/* ring_int.h - what the files of the ring store share. */
#ifndef SEGMENTS_STORE_RING_INT_H
#define SEGMENTS_STORE_RING_INT_H

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "base/sys/thread.h"
#include "ring/core/breaker.h"
#include "segments/store/keep_client.h"
#include "segments/store/ring.h"
#include "segments/store/store_int.h"

enum {
    RING_NODES_MAX = 16,        /* ingest nodes in a URL */
    RING_PARTITIONS_MAX = 1024, /* of a cluster */
    RING_PUTS_MAX = 64,         /* that go on behind a quorum */
    RING_REMOVED_MIN = 4096     /* names that were removed and are remembered, whatever their age */
};
/* How long they are beyond that: longer than a query lasts that was planned with them, and than keepers keep them. */
#define RING_REMEMBER_MS (2 * SG_RING_SPARED_MS)

/* A blob that is listed in a partition, or was. */
struct ring_item {
    char *name;
    uint64_t bytes;
    uint32_t slot, partition;
    uint32_t next; /* place of the next one of this name, from 1; 0: there is none */
    bool named;
    int64_t removed_ms; /* monotonic, when that was heard; 0: never */
};

struct ring_partition {
    uint64_t queue, since;
};

/* What the partitions said, kept. */
struct ring_mirror {
    struct qf_lock *turn; /* one refresh at a time */
    struct qf_lock *lock; /* of the rest; held for moments, and while listing */
    struct qf_map places; /* names to places in items */
    QF_VEC(struct ring_item) items;
    uint32_t *sorted; /* places of those that are named, in the order of names */
    size_t sorted_count;
    bool dirty; /* `sorted` is not what items say */
    struct ring_partition partitions[RING_PARTITIONS_MAX];
    uint32_t partition_count;
    uint64_t cluster;
    size_t removed; /* items that are not named any more */
    int64_t pruned_ms;
    uint64_t rounds;  /* refreshes that began */
    uint64_t changes; /* names that came or went */
};

struct ring_put;
struct rg_page;

struct ring_store {
    struct sg_store base;
    struct sg_keep_client *client;
    char *nodes[RING_NODES_MAX]; /* "http://host:port" */
    size_t node_count;
    atomic_size_t node;       /* that answered last */
    char *key_file, *ca_file; /* or NULL */

    struct qf_lock *lock;                     /* of the ring, the breakers and the puts */
    struct rg_breaker breakers[RG_NODES_MAX]; /* of nodes that blobs are read from */
    struct rg_ring *ring;                     /* NULL: not read yet */
    struct rg_ring *rules; /* an empty one: no rule is switched off in it; for counting */
    int64_t ring_ms;       /* when it was read */
    struct ring_put *puts;
    size_t put_count;
    atomic_bool closing;

    struct ring_mirror mirror;
    struct sg_ring_local local;
    struct sg_ring_handoff handoff; /* add NULL: there is none */
};

static inline struct ring_store *ring_of(struct sg_store *base)
{
    return (struct ring_store *)base;
}

/* ring_ask.c: ask ingest nodes, the one that answered last first; @path with its query. */
qf_rc ring_get(struct ring_store *store, const char *path, size_t body_max,
               const struct sg_store_limit *limit, struct qf_strbuf *ret_body, struct qf_err *err);
qf_rc ring_post(struct ring_store *store, const char *path, struct qf_str body,
                const struct sg_store_limit *limit, struct qf_strbuf *ret_body, struct qf_err *err);
/* Have the ring, not older than @age_ms if it can be had. */
qf_rc ring_follow(struct ring_store *store, int64_t age_ms, const struct sg_store_limit *limit,
                  struct qf_err *err);

/* ring_mirror.c */
void ring_mirror_init(struct ring_mirror *mirror);
void ring_mirror_done(struct ring_mirror *mirror);
/* With its lock: take what @page says of @partition, @first: it is the first one of an answer. */
void ring_mirror_take(struct ring_mirror *mirror, uint32_t partition, const struct rg_page *page,
                      bool first);
/* With its lock: names that were removed long ago go. */
void ring_mirror_prune(struct ring_mirror *mirror);
/* Size and partition of a blob that is listed. False: it is not. */
bool ring_find(struct ring_store *store, struct qf_str name, uint64_t *ret_bytes,
               uint32_t *ret_partition);
/* Size of one that is listed, or was a while ago. */
bool ring_remembers(struct ring_store *store, struct qf_str name, uint64_t *ret_bytes);

/* ring_list.c */
/* All that was applied before the call is known after it. */
qf_rc ring_refresh(struct ring_store *store, const struct sg_store_limit *limit,
                   struct qf_err *err);
qf_rc ring_list(struct sg_store *base, struct qf_str prefix, struct qf_str start_after,
                const struct sg_store_limit *limit, sg_store_list_fn *fn, void *ctx,
                struct qf_err *err);
qf_rc ring_folders(struct sg_store *base, struct qf_str prefix, const struct sg_store_limit *limit,
                   sg_store_folder_fn *fn, void *ctx, struct qf_err *err);

/* ring_put.c */
qf_rc ring_place(struct ring_store *store, struct qf_str name, const struct sg_store_bytes *bytes,
                 const struct sg_store_limit *limit, uint32_t *ret_slot, uint64_t *ret_epoch,
                 struct qf_err *err);
void ring_puts_done(struct ring_store *store);

/* ring_get.c */
qf_rc ring_read(struct ring_store *store, struct qf_str name, const struct sg_keep_range *range,
                const struct sg_store_limit *limit, uint64_t *ret_len, struct qf_err *err);

#endif
