/* files.h - annexes in a store: put, found, read, merged. Blocks on the store; errors are those of store.h. */
#ifndef SEGMENTS_ANNEX_FILES_H
#define SEGMENTS_ANNEX_FILES_H

#include "base/pure/vec.h"
#include "segments/annex/annex.h"
#include "segments/store/store.h"

struct sg_annex_result {
    uint64_t put, present, bytes; /* files put, files found; bytes put */
};

/* Put a file, unless one of its name is there: it has the same content. Adds to @result. */
QF_MUST_CHECK qf_rc sg_annex_put_file(struct sg_store *store, const char *name, struct qf_str bytes,
                                      const struct sg_store_call *call,
                                      struct sg_annex_result *result, struct qf_err *err);
/* Put everything that was collected. What was put before an error stays: it is true. */
QF_MUST_CHECK qf_rc sg_annex_put(struct sg_annex *annex, struct sg_store *store,
                                 struct qf_str tenant, const struct sg_store_call *call,
                                 struct sg_annex_result *ret_result, struct qf_err *err);

struct sg_annex_file {
    char *name;
    uint64_t size;
    struct sg_annex_name parts; /* the tenant is the one that was asked for */
};
struct sg_annex_list {
    QF_VEC(struct sg_annex_file) files; /* by name */
};
void sg_annex_list_done(struct sg_annex_list *list);

struct sg_annex_find {
    struct qf_str tenant;
    enum sg_annex_kind kind;
    int64_t min_ts, max_ts; /* files that have something between, as far as names tell */
    size_t files_max;       /* QF_ELIMIT: there are more */
};
/* Files that were put before it is called are found. @ret_list is to be done with also after an error. */
QF_MUST_CHECK qf_rc sg_annex_find(struct sg_store *store, const struct sg_annex_find *find,
                                  const struct sg_store_call *call, struct sg_annex_list *ret_list,
                                  struct qf_err *err);

/* --- fewer files --- */

/* Small files become one: of exemplars those of a day, of metadata those of all days, each once the day is over before
 * @before_ms. Inputs go at once: readers list until there is nothing new, and find what they were merged into. May end
 * anywhere, and run twice at once. A file that cannot be read is left alone.
 *
 * Removals of the same times are taken turns with (segments/store/turn.h), behind reading. QF_EBUSY: one is under way, and what
 * it may want to remove was left as it is; all else is done. */
struct sg_annex_merge {
    struct sg_store *store;
    struct qf_str tenant;
    int64_t before_ms;
    bool dry_run; /* only count */
    const struct sg_store_call *call;
    void (*damaged)(void *ctx, const char *text); /* may be NULL */
    void *ctx;
};
struct sg_annex_merged {
    uint64_t inputs, outputs, damaged;
};
QF_MUST_CHECK qf_rc sg_annex_merge(const struct sg_annex_merge *merge,
                                   struct sg_annex_merged *ret_merged, struct qf_err *err);

#endif
