/* ring_small.c - names on our own nodes that say something by being there. */
#include "segments/store/ring_small.h"

#include <sys/random.h>

#include "base/sys/clock.h"

#define CONTENT QF_STR("\n")

void ring_small_done(struct ring_small *change)
{
    QF_VEC_DONE(&change->added);
    QF_VEC_DONE(&change->removed);
}

qf_rc ring_small_add(struct ring_small *change, struct sg_store *store, const char *name,
                     const struct sg_store_call *call, struct qf_err *err)
{
    struct rg_blob blob = { .name = qf_str_from(name), .bytes = CONTENT.len };
    uint64_t epoch = 0;
    qf_rc rc = sg_ring_place_data(store, blob.name, CONTENT, call, &blob.slot, &epoch, err);

    change->epoch = QF_MIN(change->epoch, epoch);
    if (rc == QF_OK)
        QF_VEC_PUSH(&change->added, blob);
    return rc;
}

qf_rc ring_small_commit(const struct ring_small *change, struct sg_store *store, struct qf_str key,
                        const struct sg_store_call *call, struct qf_err *err)
{
    const struct sg_ring_change entry = { .tenant = key,
                                          .added = change->added.items,
                                          .added_count = change->added.count,
                                          .epoch = change->epoch,
                                          .removed = change->removed.items,
                                          .removed_count = change->removed.count };
    struct qf_err why = { 0 };
    bool named = change->added.count > 0;
    qf_rc rc = sg_ring_change(store, &entry, call, &why);

    if (rc != QF_EGONE)
        return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
    /* Its answer may have been lost, and then somebody went on from there. */
    rc = sg_ring_refresh(store, call, err);
    for (size_t i = 0; i < change->added.count; i++)
        named = named && sg_ring_lists(store, change->added.items[i].name);
    if (rc == QF_OK && !named)
        rc = qf_err_set(err, QF_EGONE, "%s", why.msg);
    return rc;
}

uint64_t ring_small_id(void)
{
    uint64_t id = (uint64_t)qf_clock_mono_ns();

    (void)!getrandom(&id, sizeof(id), GRND_NONBLOCK);
    return id;
}
