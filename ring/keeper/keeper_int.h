/* keeper_int.h - what the files of the keeper share. */
#ifndef RING_KEEPER_KEEPER_INT_H
#define RING_KEEPER_KEEPER_INT_H

#include <xxhash.h>

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "base/sys/thread.h"
#include "ring/keeper/keeper.h"
#include "segments/store/store.h"

/* A blob that is held, or was: names are remembered so that places stay. */
struct kp_entry {
    char *name;
    uint32_t slot;
    uint64_t size;
    struct rg_sum sum;
    int64_t put_ms; /* 0: not held */
    bool suspect;   /* somebody found it damaged */
};

struct kp_upload {
    uint64_t id; /* 0: the place is free */
    char *name;
    int fd;
    uint64_t size, got;
    bool busy; /* a part is being written */
    int64_t touched_ms;
    struct rg_sum sum;
    XXH3_state_t *state;
};

/* Of the documents of a slot. */
struct kp_digest {
    bool known;
    uint64_t changes; /* since the start */
    uint64_t count;   /* of them; known */
    struct rg_sum sum;
};

struct kp_keeper {
    struct kp_options options;
    int root, lock_fd;
    struct sg_store *docs; /* of DIR/docs */
    uint64_t incarnation;

    struct qf_lock *lock; /* guards the rest; held for moments, and while new epochs are synced */
    struct rg_keep keep;
    bool failed; /* epochs could not be synced: nothing is answered until they are */
    struct qf_map places;
    QF_VEC(struct kp_entry) entries;
    struct kp_upload *uploads;
    size_t scrub_at, suspects;
    struct kp_figures figures;
    struct kp_digest digests[RG_SLOTS];
    uint64_t heat[RG_SLOTS];
    int64_t heat_ms; /* when it was halved last */

    struct qf_lock *doc_lock; /* of documents that are replaced */
};

void kp_say(struct kp_said *said, int status, const char *format, ...) QF_PRINTF(3, 4);

/* open.c: with the lock. The epochs as they are now are on the disk after it. */
bool kp_save_epochs(struct kp_keeper *keeper);

/* keeper.c: with the lock. May something of the slot be taken or said in this epoch? Durable if so; else 409, 412 or 500
 * is said. */
bool kp_takes(struct kp_keeper *keeper, const struct rg_keep_query *query, struct kp_said *said);
/* DIR/blobs/... of a blob, below the root. */
void kp_blob_path(struct qf_strbuf *buf, uint32_t slot, struct qf_str name,
                  const struct rg_sum *sum);
/* With the lock: the entry of @name that is held, or NULL. */
struct kp_entry *kp_find(struct kp_keeper *keeper, struct qf_str name);
/* With the lock: it is held from now on; what @name was before must not be held. */
void kp_add(struct kp_keeper *keeper, struct qf_str name, uint32_t slot, uint64_t size,
            const struct rg_sum *sum, int64_t now_ms);
/* With the lock: it is not held any more, and its file is gone. */
void kp_remove(struct kp_keeper *keeper, struct kp_entry *entry);
bool kp_has_room(const struct kp_keeper *keeper, uint64_t bytes);

/* digests.c: documents of @slot changed, or may have. */
void kp_docs_changed(struct kp_keeper *keeper, uint32_t slot);

/* put.c */
void kp_uploads_done(struct kp_keeper *keeper);

#endif
