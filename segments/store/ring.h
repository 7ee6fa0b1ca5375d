/* ring.h - what a store on our own nodes can do beside store.h: `ring://HOST:PORT[,HOST:PORT...]`, the ingest nodes.
 *
 * Blobs lie with keepers (ring/wire/keeper.h), which of them is a function of the name and the ring (ring/core/place.h). Which
 * blobs there are is in the logs of ingest nodes (ring/wire/listing.h), not with the keepers: listing, size and folders come
 * from there. So a put has two steps: the bytes to the owners, then the name into a log. Whoever has a log of its own
 * does the second step itself (sg_ring_place()).
 *
 *   put     to all owners of the slot at once, old and new ones while it moves; done when a majority of each has it durably.
 *           The others go on by themselves. Refused for an old epoch: the ring is read again, and it is put again
 *   get     from an owner, the next one on failure or damage; whole blobs are verified against their checksum
 *   list    the leaders of the partitions are asked what changed; what they said is kept in memory, and taken partition by
 *           partition: a list shows what an entry of a log added and what it removed together, or neither
 *   delete  is a note that the name is REMOVED; keepers drop the bytes later, and until then they can be read by who knew
 *           of them
 *
 * Parameters of a URL: `key=FILE` (the key for ingest nodes and keepers), `ca=FILE` (who signs their certificates; https
 * from then on), `cert=FILE` and `cert-key=FILE` (shown to those that ask for a certificate). */
#ifndef SEGMENTS_STORE_RING_H
#define SEGMENTS_STORE_RING_H

#include "ring/core/manifest.h"
#include "ring/core/tally.h"
#include "ring/wire/keeper.h"
#include "segments/store/call.h"
#include "segments/store/store.h"

struct sg_keep_client;

bool sg_store_is_ring(const struct sg_store *store);

/* Put @size bytes of @fd under @name with the owners, without naming it anywhere: it is garbage in a day unless somebody
 * does. *@ret_epoch is the ring's in which its owners were counted, *@ret_slot where it lies. Errors of sg_store_put();
 * QF_EUNAVAILABLE: no majority of the owners could be reached. */
QF_MUST_CHECK qf_rc sg_ring_place(struct sg_store *store, struct qf_str name, int fd, uint64_t size,
                                  const struct sg_store_call *call, uint32_t *ret_slot,
                                  uint64_t *ret_epoch, struct qf_err *err);

/* The same with @data. */
QF_MUST_CHECK qf_rc sg_ring_place_data(struct sg_store *store, struct qf_str name,
                                       struct qf_str data, const struct sg_store_call *call,
                                       uint32_t *ret_slot, uint64_t *ret_epoch, struct qf_err *err);
/* Where a blob called @name lies, and the ring's epoch of now: for what is named already, which is with a majority of its owners
 * in every epoch. */
QF_MUST_CHECK qf_rc sg_ring_place_of(struct sg_store *store, struct qf_str name,
                                     const struct sg_store_call *call, uint32_t *ret_slot,
                                     uint64_t *ret_epoch, struct qf_err *err);
/* Must blobs placed at @placed_ms (monotonic) be placed again before they are named? */
bool sg_ring_placed_too_early(int64_t placed_ms);

/* What is named and what is not any more, in one step of the log: all of it, or nothing. */
struct sg_ring_change {
    struct qf_str tenant;        /* in whose partition; all changes that name each other have one */
    const uint32_t *partition;   /* or in this one, NULL: the tenant's */
    const struct rg_blob *added; /* placed: name, slot, bytes */
    size_t added_count;
    uint64_t epoch; /* the least in which their owners were counted */
    const struct qf_str *removed;
    size_t removed_count; /* with `added`: it counts only if all of them are named */
};
/* The most that one change adds and removes. */
#define SG_RING_CHANGE_MAX ((size_t)RG_NOTE_BLOBS_MAX)
/* To do it again is harmless. QF_EGONE: it counts for nothing, for one of `removed` is not named, one of `added` was
 * removed before, or owners changed since its epoch: place them again. Others: it may count, or not, or later. */
QF_MUST_CHECK qf_rc sg_ring_change(struct sg_store *store, const struct sg_ring_change *change,
                                   const struct sg_store_call *call, struct qf_err *err);

/* A copy of the ring as it is known, not older than @age_ms if ingest nodes can be asked; rg_ring_free() it. Of its copy of
 * the node called @name the owner looks for itself. */
QF_MUST_CHECK qf_rc sg_ring_view(struct sg_store *store, int64_t age_ms,
                                 const struct sg_store_call *call, struct rg_ring **ret_ring,
                                 struct qf_err *err);

/* Know the ring, not older than @age_ms if ingest nodes can be asked; for: */
QF_MUST_CHECK qf_rc sg_ring_follow(struct sg_store *store, int64_t age_ms,
                                   const struct sg_store_call *call, struct qf_err *err);
/* The nodes that hold @tenant's @shard, by their names, in the order of preference: of a slot that moves those before the move.
 * Does not wait. None: the ring is not known yet, or it is another store. */
struct sg_ring_owners {
    size_t count;
    char names[RG_COPIES_MAX][RG_NAME_MAX + 1];
};
void sg_ring_owners(struct sg_store *store, struct qf_str tenant, uint32_t shard,
                    struct sg_ring_owners *ret_owners);

/* Who keeps what owners still have to get (the specification's hand-off; ingest/ring/handoff.h). Nodes by their names. Called
 * by threads of puts, several at a time. */
struct sg_ring_blob {
    struct qf_str name;
    uint32_t slot;
    const struct sg_store_bytes *bytes;
    struct rg_sum sum;
};
struct sg_ring_handoff {
    void *ctx;
    /* @name is about to be sent to @node. False: it is being sent to it by somebody else this moment. */
    bool (*begin)(void *ctx, const char *node, struct qf_str name);
    /* After a begin() that was true. @ok: @node has it. */
    void (*end)(void *ctx, const char *node, struct qf_str name, bool ok);
    /* @node is thought to be away: a put does not wait for it. */
    bool (*away)(void *ctx, const char *node);
    /* A majority has @blob, @node has not: keep it for @node, durably. An error fails the put. */
    qf_rc (*add)(void *ctx, const char *node, const struct sg_ring_blob *blob, struct qf_err *err);
};
/* Before the store is used. With it a put is done when each owner has the blob or it was handed off for it; without it when a
 * majority has it. Owners that are not thought to be away have half a second for that. */
void sg_ring_set_handoff(struct sg_store *store, const struct sg_ring_handoff *handoff);
/* The ingest nodes, "http://HOST:PORT" or https; and the files with the key and the authority's certificate, or NULL. */
struct sg_ring_nodes {
    const char *const *urls;
    size_t count;
    const char *key_file, *ca_file;
};
struct sg_ring_nodes sg_ring_nodes(const struct sg_store *store);
/* What the store talks to keepers with. */
struct sg_keep_client *sg_ring_client(struct sg_store *store);

/* Blobs that this process has on its own disk: they are read there. Before the store is used. */
struct sg_ring_local {
    bool (*has)(void *ctx, struct qf_str name);
    int (*open)(
        void *ctx,
        struct qf_str name); /* a descriptor of the whole blob; -1: it is not there (any more) */
    void (*suspect)(
        void *ctx,
        struct qf_str name); /* it seems damaged: `has` no more, until it was looked at */
    void *ctx;
};
void sg_ring_set_local(struct sg_store *store, const struct sg_ring_local *local);
/* sg_store_open_file() would find it now. Does not wait for the network. False of any other store. */
bool sg_ring_is_local(struct sg_store *store, struct qf_str name);

/* Who read it here found it damaged. Does not wait. */
void sg_ring_suspect_local(struct sg_store *store, struct qf_str name);

/* Ask the leaders what changed. What came of it: */
QF_MUST_CHECK qf_rc sg_ring_refresh(struct sg_store *store, const struct sg_store_call *call,
                                    struct qf_err *err);
/* @name was listed. */
bool sg_ring_lists(struct sg_store *store, struct qf_str name);
/* In which partition it was listed. False: in none, or it is another store. */
bool sg_ring_partition(struct sg_store *store, struct qf_str name, uint32_t *ret_partition);
/* When this process heard that @name was removed, monotonic; 0: it is listed, or was not heard of for a while. Keepers keep the
 * blob for SG_RING_SPARED_MS from then on, for queries that were planned before. */
#define SG_RING_SPARED_MS (INT64_C(10) * 60 * 1000)
int64_t sg_ring_removed_ms(struct sg_store *store, struct qf_str name);
/* Another number than before if names came or went. */
uint64_t sg_ring_changes(struct sg_store *store);

/* Every name that is listed, after a refresh: for keepers that compare what they have. False ends it. */
typedef bool sg_ring_name_fn(void *ctx, struct qf_str name, uint32_t slot, uint64_t bytes);
QF_MUST_CHECK qf_rc sg_ring_names(struct sg_store *store, const struct sg_store_call *call,
                                  sg_ring_name_fn *fn, void *ctx, struct qf_err *err);

#endif
