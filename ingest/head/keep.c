/* keep.c - closed ranges become files, and what nobody can ask for any more goes. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "ingest/head/head_int.h"
#include "ingest/head/manifest.h"

/* --- building --- */

/* With the lock: of the closed ranges without files that were closed first, one. */
static struct in_head_range *next_to_build(const struct in_head *head, struct in_build *build)
{
    struct in_head_range *found = NULL;

    for (size_t i = 0; i < head->tenants.count; i++) {
        struct in_head_tenant *tenant = head->tenants.items[i];

        for (size_t j = 0; j < tenant->ranges.count; j++) {
            struct in_head_range *range = tenant->ranges.items[j];

            if (!range->to || range->sealed || range->files || (found && range->to > found->to))
                continue;
            found = range;
            build->tenant = qf_str_from(tenant->name);
        }
    }
    return found;
}

/* With the lock: the range may have gone meanwhile, with everything (in_head_reset()). */
static void settle(struct in_head *head, const struct in_build *build)
{
    struct in_head_range *range =
        in_head_range(in_head_tenant(head, build->tenant), build->generation);

    if (range && range->memory == build->memory && !range->files)
        range->files = in_files_ref(build->files);
}

qf_rc in_head_build(struct in_head *head, bool *ret_built, struct qf_err *err)
{
    struct in_build build = { .head = head };
    struct in_memory *memory = NULL;
    struct in_head_range *range;
    char *tenant = NULL;
    uint64_t from = 0, to = 0;
    qf_rc rc = QF_OK;

    qf_lock_take(head->lock);
    range = next_to_build(head, &build);
    if (range) {
        build.memory = memory = in_memory_ref(range->memory);
        build.generation = range->generation;
        from = range->from;
        to = range->to;
        tenant = qf_xmemdup0(build.tenant.data, build.tenant.len);
        build.tenant.data = tenant;
    }
    qf_lock_drop(head->lock);
    *ret_built = range != NULL;
    if (!range)
        return QF_OK;
    build.files = in_files_new();
    rc = in_build_files(&build, err);
    if (rc == QF_OK) {
        in_manifest_save(head, build.tenant, build.generation, from, to, build.files);
        qf_lock_take(head->lock);
        settle(head, &build);
        qf_lock_drop(head->lock);
    }
    (void)in_files_drop(build.files);
    (void)in_memory_drop(memory);
    free(tenant);
    return rc;
}

/* --- letting go --- */

/* What is to be freed once the lock is not held. */
struct leaving {
    QF_VEC(struct in_memory *) memory;
    QF_VEC(struct in_files *) files;
};

static void leave(struct leaving *leaving, struct in_memory *memory, struct in_files *files)
{
    if (memory)
        QF_VEC_PUSH(&leaving->memory, memory);
    if (files)
        QF_VEC_PUSH(&leaving->files, files);
}

static void tick_tenant(struct in_head *head, struct in_head_tenant *tenant, int64_t now,
                        struct leaving *leaving)
{
    int64_t keep_ms = head->options.keep_ms;
    size_t kept = 0;

    for (size_t i = 0; i < tenant->ranges.count; i++) {
        struct in_head_range *range = tenant->ranges.items[i];

        if (range->sealed && now - range->sealed_ms >= keep_ms) {
            leave(leaving, range->memory, range->files);
            free(range);
            continue;
        }
        if (range->files && range->memory && now - range->closed_ms >= keep_ms) {
            leave(leaving, range->memory, NULL);
            range->memory = NULL;
        }
        tenant->ranges.items[kept++] = range;
    }
    tenant->ranges.count = kept;
}

void in_head_tick(struct in_head *head)
{
    struct leaving leaving = { 0 };
    int64_t now = in_head_now(head);

    qf_lock_take(head->lock);
    for (size_t i = 0; i < head->tenants.count; i++)
        tick_tenant(head, head->tenants.items[i], now, &leaving);
    for (size_t i = head->kept.count; i > 0; i--) { /* the log went by and did not want them */
        struct in_kept *kept = &head->kept.items[i - 1];

        if (kept->to > in_head_applied(head))
            continue;
        leave(&leaving, NULL, in_files_ref(kept->files));
        in_kept_done(kept);
        *kept = head->kept.items[--head->kept.count];
    }
    qf_lock_drop(head->lock);
    for (size_t i = 0; i < leaving.memory.count; i++)
        (void)in_memory_drop(leaving.memory.items[i]);
    for (size_t i = 0; i < leaving.files.count; i++)
        (void)in_files_drop(leaving.files.items[i]);
    QF_VEC_DONE(&leaving.memory);
    QF_VEC_DONE(&leaving.files);
}

static bool is_given_up_first(const struct in_head_range *range, const struct in_head_range *than)
{
    return range->memory && range->to && (range->files || range->sealed) &&
           (!than || range->closed_ms < than->closed_ms);
}

bool in_head_give_up(struct in_head *head)
{
    struct in_head_range *found = NULL;
    struct in_memory *memory = NULL;

    qf_lock_take(head->lock);
    for (size_t i = 0; i < head->tenants.count; i++)
        for (size_t j = 0; j < head->tenants.items[i]->ranges.count; j++)
            if (is_given_up_first(head->tenants.items[i]->ranges.items[j], found))
                found = head->tenants.items[i]->ranges.items[j];
    if (found)
        memory = QF_TAKE(found->memory);
    qf_lock_drop(head->lock);
    (void)in_memory_drop(memory);
    return memory != NULL;
}

/* --- sealing --- */

/* The oldest range that is not sealed, if it has files. */
static const struct in_head_range *sealable(const struct in_head_tenant *tenant)
{
    for (size_t i = 0; i < tenant->ranges.count; i++)
        if (!tenant->ranges.items[i]->sealed)
            return tenant->ranges.items[i]->files ? tenant->ranges.items[i] : NULL;
    return NULL;
}

static void copy_out(const struct in_head_tenant *tenant, const struct in_head_range *range,
                     struct in_head_sealable *out)
{
    *out = (struct in_head_sealable){ .tenant = qf_xstrdup(tenant->name),
                                      .generation = range->generation,
                                      .from = range->from,
                                      .to = range->to,
                                      .files = range->files->items.items,
                                      .file_count = range->files->items.count,
                                      .annexes = range->files->annexes.items,
                                      .annex_count = range->files->annexes.count,
                                      .held = in_files_ref(range->files) };
}

bool in_head_next_sealable(struct in_head *head, const char *after,
                           struct in_head_sealable *ret_sealable)
{
    const struct in_head_tenant *found = NULL;

    qf_lock_take(head->lock);
    for (size_t i = 0; i < head->tenants.count; i++) {
        const struct in_head_tenant *tenant = head->tenants.items[i];

        if ((!after || strcmp(tenant->name, after) > 0) &&
            (!found || strcmp(tenant->name, found->name) < 0) && sealable(tenant))
            found = tenant;
    }
    if (found)
        copy_out(found, sealable(found), ret_sealable);
    qf_lock_drop(head->lock);
    return found != NULL;
}

void in_head_sealable_done(struct in_head_sealable *sealable)
{
    (void)in_files_drop(sealable->held);
    free(sealable->tenant);
    *sealable = (struct in_head_sealable){ 0 };
}

char *in_head_tenant_name(struct in_head *head, size_t i)
{
    char *name = NULL;

    qf_lock_take(head->lock);
    if (i < head->tenants.count)
        name = qf_xstrdup(head->tenants.items[i]->name);
    qf_lock_drop(head->lock);
    return name;
}
