/* annexes.c - exemplars and metadata of a tenant in fewer files. */
#include "base/pure/duration.h"
#include "segments/annex/files.h"
#include "segments/compact/pass_int.h"
#include "segments/store/ring.h"

#define DAY_MS INT64_C(86400000)

static void tell_damaged(void *ctx, const char *text)
{
    sg_pass_tell(ctx, SG_PASS_DAMAGED, "%s", text);
}

/* Of days that are over, and no range of them is on its way any more. */
qf_rc sg_pass_annexes(struct pass *p, struct qf_err *err)
{
    const struct sg_annex_merge merge = {
        .store = p->options->store,
        .tenant = p->tenant,
        .before_ms = qf_floor_div(p->now_ms - p->options->settle_ms, DAY_MS) * DAY_MS,
        .dry_run = p->options->dry_run,
        .call = &p->call,
        .damaged = tell_damaged,
        .ctx = p,
    };
    struct sg_annex_merged merged;
    qf_rc rc;

    /* A name that was traded away is never given again on our own nodes, and files of exemplars are called by their content:
     * an import that is repeated would be refused what the merged file has. */
    if (sg_store_is_ring(p->options->store))
        return QF_OK;
    rc = sg_annex_merge(&merge, &merged, err);
    p->result.annexes_merged += merged.inputs;
    p->result.annexes_written += merged.outputs;
    p->result.damaged += merged.damaged;
    if (rc == QF_EBUSY) {
        sg_pass_tell(p, SG_PASS_REMOVED, "%s", err->msg);
        return QF_OK;
    }
    return rc;
}
