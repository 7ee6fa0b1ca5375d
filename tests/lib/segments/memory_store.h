/* memory_store.h - a store in memory, to show the catalogue and writers what a bucket may do.
 *
 * Lists in order, has no tokens, counts its calls and runs a hook in the middle of a listing. */
#ifndef TESTS_LIB_SEGMENTS_MEMORY_STORE_H
#define TESTS_LIB_SEGMENTS_MEMORY_STORE_H

#include "segments/store/store.h"

struct memory_store;

struct memory_store *memory_store_new(void);
struct sg_store *memory_store_base(struct memory_store *memory); /* Free it with sg_store_free(). */

/* Objects may be put in any order before the next listing; @content may be NULL. */
void memory_store_put(struct memory_store *memory, const char *name, struct qf_str content);
bool memory_store_remove(struct memory_store *memory, const char *name);

/* The next listings fail with @rc; QF_OK ends that. */
void memory_store_fail(struct memory_store *memory, qf_rc rc);
/* Puts fail with @rc once @puts of them went well, and removals fail with @rc; QF_OK ends that. */
void memory_store_fail_puts(struct memory_store *memory, unsigned puts, qf_rc rc);
void memory_store_fail_removals(struct memory_store *memory, qf_rc rc);
/* What time it is in the store, 1 at first: objects put from now on are stamped with it. */
void memory_store_clock(struct memory_store *memory, int64_t now_ms);
/* It has no conditional puts: they are QF_EUNSUPPORTED. */
void memory_store_plain(struct memory_store *memory);
/* Called before each object a listing reports; NULL: none. */
void memory_store_hook(struct memory_store *memory, void (*fn)(void *ctx, struct qf_str name),
                       void *ctx);
/* Called once, when so many objects have been read whole. */
void memory_store_after_reads(struct memory_store *memory, unsigned reads, void (*fn)(void *ctx),
                              void *ctx);
/* Microseconds each page of a listing takes, a thousand objects or none. */
void memory_store_slow(struct memory_store *memory, unsigned us);

struct memory_counts {
    unsigned lists, folders, objects_listed, tails;
};
struct memory_counts memory_store_counts(const struct memory_store *memory);

#endif
