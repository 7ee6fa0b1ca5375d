/* store_name.c - which store this API reads. */
#include "queryapi/query/store_name.h"

#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "proto/codec/control.h"

/* Workers look again within ten seconds (queryworker/cache/identity.c). */
#define NAMED_GRACE_MS 30000

void qa_store_name_learn(struct qa_store_name *name, struct sg_store *store,
                         const struct sg_store_call *call)
{
    struct qf_err err = { 0 };
    bool created;

    if (atomic_load(&name->known))
        return;
    if (sg_store_identity(store, true, call, name->id, &created, &err) != QF_OK) {
        QF_LOG_DEBUG("stores of workers cannot be compared with this one",
                     QF_KV_STR("reason", err.msg));
        name->missed = true;
        return;
    }
    name->named_ms = created || name->missed ? qf_clock_mono_ms() : 0;
    atomic_store(&name->known, true);
}

const char *qa_store_name_refuses(const struct qa_store_name *name, struct qf_str worker_store,
                                  qf_time_ms now)
{
    if (!name || !atomic_load(&name->known) || worker_store.len == 0 ||
        qf_str_is(worker_store, name->id))
        return NULL;
    if (!qf_str_is(worker_store, PB_STORE_NONE))
        return "the worker reads another store than this API: give both the same --store";
    if (name->named_ms && now - name->named_ms < NAMED_GRACE_MS)
        return NULL;
    return "the worker's store lacks " SG_STORE_ID_NAME
           ", which the API's has: give both the same --store";
}
