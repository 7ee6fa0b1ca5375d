/* head.c - tenants and ranges: opened, closed, sealed, let go. */
#include "ingest/head/head.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/private_dir.h"
#include "ingest/head/head_int.h"
#include "ingest/head/manifest.h"
#include "ingest/head/memory_int.h"
#include "segments/parquet/segment.h"

#define WINDOW_MS (INT64_C(2) * 3600 * 1000)

/* --- made and freed --- */

struct in_head *in_head_new(const struct in_head_options *options, struct qf_err *err)
{
    struct in_head *head;
    qf_rc rc = QF_OK;

    if (!sg_shard_count_valid(options->shards) || options->window_ms < 0 || options->keep_ms < 0)
        rc = qf_err_set(err, QF_EINVAL, "a head needs a power of two as number of shards");
    if (rc == QF_OK)
        rc = qf_private_dir(options->dir, err);
    if (rc != QF_OK)
        return NULL;
    head = qf_xcalloc(1, sizeof(*head));
    head->options = *options;
    if (!head->options.window_ms)
        head->options.window_ms = WINDOW_MS;
    head->options.dir = head->dir = qf_xstrdup(options->dir);
    head->lock = qf_lock_new();
    head->extras = in_extras_new(&options->extras);
    in_told_init(&head->told);
    head->arena = qf_arena_new(SIZE_MAX);
    return in_manifest_load(head, err) == QF_OK ? head : in_head_free(head);
}

static void free_range(struct in_head_range *range)
{
    (void)in_memory_drop(range->memory);
    (void)in_files_drop(range->files);
    free(range);
}

static void free_tenant(struct in_head_tenant *tenant)
{
    for (size_t i = 0; i < tenant->ranges.count; i++)
        free_range(tenant->ranges.items[i]);
    QF_VEC_DONE(&tenant->ranges);
    free(tenant->name);
    free(tenant);
}

static void forget_kept(struct in_head *head)
{
    for (size_t i = 0; i < head->kept.count; i++)
        in_kept_done(&head->kept.items[i]);
    head->kept.count = 0;
}

static void forget_all(struct in_head *head)
{
    for (size_t i = 0; i < head->tenants.count; i++)
        free_tenant(head->tenants.items[i]);
    head->tenants.count = 0;
    qf_map_clear(&head->names);
}

/* Files of ranges that are not sealed are for the next process. */
static void let_files_stay(struct in_head *head)
{
    for (size_t i = 0; i < head->tenants.count; i++)
        for (size_t j = 0; j < head->tenants.items[i]->ranges.count; j++) {
            struct in_head_range *range = head->tenants.items[i]->ranges.items[j];

            if (range->files && range->files->manifest && !range->sealed)
                range->files->stay = true;
        }
    for (size_t i = 0; i < head->kept.count; i++)
        head->kept.items[i].files->stay = true;
}

struct in_head *in_head_free(struct in_head *head)
{
    if (!head)
        return NULL;
    let_files_stay(head);
    forget_all(head);
    forget_kept(head);
    QF_VEC_DONE(&head->kept);
    QF_VEC_DONE(&head->tenants);
    qf_map_done(&head->names);
    (void)qf_lock_free(head->lock);
    (void)in_extras_free(head->extras);
    in_told_done(&head->told);
    (void)qf_arena_free(head->arena);
    free(head->dir);
    free(head);
    return NULL;
}

int64_t in_head_now(const struct in_head *head)
{
    return head->options.now_ms ? head->options.now_ms() : qf_clock_mono_ms();
}

char *in_head_new_path(const struct in_head *head, const char *suffix)
{
    struct qf_strbuf path = QF_STRBUF_INIT;
    uint64_t serial = atomic_fetch_add(&((struct in_head *)head)->serial, 1);

    qf_strbuf_printf(&path, "%s/%016" PRIx64 "%s", head->dir, serial, suffix);
    return qf_strbuf_take(&path);
}

/* --- files --- */

struct in_files *in_files_new(void)
{
    struct in_files *files = qf_xcalloc(1, sizeof(*files));

    atomic_store(&files->refs, 1);
    return files;
}

struct in_files *in_files_ref(struct in_files *files)
{
    atomic_fetch_add(&files->refs, 1);
    return files;
}

static void drop_file(struct in_head_file *file, bool stay)
{
    if (!stay)
        (void)unlink(file->path);
    free(file->path);
    free(file->name);
}

struct in_files *in_files_drop(struct in_files *files)
{
    if (!files || atomic_fetch_sub(&files->refs, 1) > 1)
        return NULL;
    if (files->manifest && !files->stay)
        (void)unlink(files->manifest); /* first: without it the files are nobody's */
    free(files->manifest);
    for (size_t i = 0; i < files->items.count; i++)
        drop_file(&files->items.items[i], files->stay);
    for (size_t i = 0; i < files->annexes.count; i++)
        drop_file(&files->annexes.items[i], files->stay);
    QF_VEC_DONE(&files->items);
    QF_VEC_DONE(&files->annexes);
    free(files);
    return NULL;
}

/* --- tables --- */

struct in_head_tenant *in_head_tenant(const struct in_head *head, struct qf_str name)
{
    const uint64_t *place = qf_map_get(&head->names, name);

    return place ? head->tenants.items[*place] : NULL;
}

struct in_head_range *in_head_range(const struct in_head_tenant *tenant, uint64_t generation)
{
    for (size_t i = tenant ? tenant->ranges.count : 0; i > 0; i--)
        if (tenant->ranges.items[i - 1]->generation == generation)
            return tenant->ranges.items[i - 1];
    return NULL;
}

static struct in_head_tenant *make_tenant(struct in_head *head, struct qf_str name)
{
    struct in_head_tenant *tenant = in_head_tenant(head, name);

    if (tenant)
        return tenant;
    tenant = qf_xcalloc(1, sizeof(*tenant));
    tenant->name = qf_xmemdup0(name.data, name.len);
    (void)qf_map_put(&head->names, (struct qf_str){ tenant->name, name.len }, head->tenants.count,
                     NULL);
    QF_VEC_PUSH(&head->tenants, tenant);
    return tenant;
}

/* The files of a range that was closed before this process began: its records need not be read. */
static struct in_files *claim_kept(struct in_head *head, const struct in_head_tenant *tenant,
                                   const struct in_range *like)
{
    for (size_t i = 0; i < head->kept.count; i++) {
        struct in_kept *kept = &head->kept.items[i];
        struct in_files *files;

        if (kept->generation != like->generation || kept->from != like->from ||
            strcmp(kept->tenant, tenant->name) != 0 || (like->to && kept->to != like->to))
            continue;
        files = in_files_ref(kept->files);
        in_kept_done(kept);
        *kept = head->kept.items[--head->kept.count];
        return files;
    }
    return NULL;
}

static struct in_head_range *make_range(struct in_head *head, struct in_head_tenant *tenant,
                                        const struct in_range *like)
{
    struct in_head_range *range = in_head_range(tenant, like->generation);

    if (range)
        return range;
    range = qf_xcalloc(1, sizeof(*range));
    range->generation = like->generation;
    range->from = like->from;
    range->files = claim_kept(head, tenant, like);
    if (!range->files)
        range->memory = in_memory_new();
    else
        atomic_fetch_add(&head->told_epoch, 1); /* what its annexes tell is not known here */
    QF_VEC_PUSH(&tenant->ranges, range);
    return range;
}

/* --- applying --- */

static void add_samples(struct in_head *head, struct in_memory *memory, uint64_t index,
                        int64_t floor_ms, const struct in_record *record)
{
    struct in_record_cursor cursor = in_record_series_of(record);
    struct in_record_series series;
    struct in_sample sample;

    while (qf_arena_reset(head->arena), in_record_next_series(&cursor, head->arena, &series)) {
        if (series.fresh)
            in_memory_define(memory, series.number, series.labels);
        while (in_record_next_sample(&cursor, head->arena, &sample))
            if (sample.ts >= floor_ms && !in_memory_add(memory, series.number, index, &sample))
                atomic_fetch_add_explicit(&head->unknown, 1, memory_order_relaxed);
    }
}

static void add_all(struct in_head *head, struct in_head_range *range, uint64_t index,
                    int64_t floor_ms, const struct in_record *record)
{
    add_samples(head, range->memory, index, floor_ms, record);
    if (!record->extras.len)
        return;
    in_extras_drop(head->extras, in_annex_add(range->memory, range->generation, record->extras));
    in_memory_count(range->memory);
}

static void apply_samples(struct in_head *head, const struct in_ledger *ledger, uint64_t index,
                          const struct in_record *record)
{
    const struct in_tenant *owner = in_ledger_tenant(ledger, record->tenant);
    const struct in_range *like = owner ? in_tenant_range_at(owner, index) : NULL;
    struct in_head_range *range;

    if (!like || in_ledger_is_void(ledger, index))
        return;
    qf_lock_take(head->lock);
    range = make_range(head, make_tenant(head, record->tenant), like);
    qf_lock_drop(head->lock);
    /* Nobody takes the memory of an open range away, and this thread alone closes ranges. */
    if (!range->to && range->memory)
        add_all(head, range, index, in_ledger_floor(ledger), record);
    in_extras_add(head->extras, record->tenant, like->generation, record->extras);
}

static void apply_seal(struct in_head *head, const struct in_ledger *ledger, uint64_t index,
                       const struct in_record *record)
{
    const struct in_tenant *owner = in_ledger_tenant(ledger, record->tenant);
    const struct in_range *like = owner ? in_tenant_range_at(owner, index) : NULL;
    struct in_head_range *range;

    if (!like || like->to != index) /* it counted for nothing, or what it closed is sealed */
        return;
    qf_lock_take(head->lock);
    range = in_head_range(in_head_tenant(head, record->tenant), like->generation);
    if (range && !range->to) {
        range->to = index;
        range->closed_ms = in_head_now(head);
    }
    qf_lock_drop(head->lock);
}

static void apply_sealed(struct in_head *head, const struct in_ledger *ledger,
                         const struct in_record *record)
{
    const struct in_tenant *owner = in_ledger_tenant(ledger, record->tenant);
    struct in_head_tenant *tenant;

    qf_lock_take(head->lock);
    tenant = in_head_tenant(head, record->tenant);
    for (size_t i = 0; owner && tenant && i < tenant->ranges.count; i++) {
        struct in_head_range *range = tenant->ranges.items[i];

        if (range->to && range->to <= owner->sealed && !range->sealed) {
            range->sealed = true;
            range->sealed_ms = in_head_now(head);
        }
    }
    qf_lock_drop(head->lock);
}

void in_head_apply(struct in_head *head, const struct in_ledger *ledger, uint64_t index,
                   const struct in_record *record)
{
    switch (record->kind) {
    case IN_SAMPLES:
        apply_samples(head, ledger, index, record);
        break;
    case IN_SEAL:
        apply_seal(head, ledger, index, record);
        break;
    case IN_SEALED:
        apply_sealed(head, ledger, record);
        break;
    case IN_FLOOR:
    case IN_BELOW:
    case IN_ELECT:
    case IN_NOTE:
    case IN_PIN:
        break;
    }
    in_head_advance(head, index);
}

void in_head_advance(struct in_head *head, uint64_t index)
{
    if (index > atomic_load_explicit(&head->applied, memory_order_relaxed))
        atomic_store_explicit(&head->applied, index, memory_order_release);
}

void in_head_reset(struct in_head *head)
{
    qf_lock_take(head->lock);
    forget_all(head);
    if (atomic_load(&head->applied)) /* else it is only about to begin */
        forget_kept(head);
    atomic_store(&head->applied, 0);
    atomic_fetch_add(&head->told_epoch, 1);
    qf_lock_drop(head->lock);
    in_extras_clear(head->extras);
}

/* --- figures --- */

struct in_extras *in_head_extras(struct in_head *head)
{
    return head->extras;
}

uint64_t in_head_applied(const struct in_head *head)
{
    return atomic_load_explicit(&head->applied, memory_order_acquire);
}

uint64_t in_head_tenant_bytes(struct in_head *head, struct qf_str name)
{
    struct in_head_tenant *tenant;
    uint64_t bytes = 0;

    qf_lock_take(head->lock);
    tenant = in_head_tenant(head, name);
    for (size_t i = 0; tenant && i < tenant->ranges.count; i++)
        if (tenant->ranges.items[i]->memory && !tenant->ranges.items[i]->sealed)
            bytes += in_memory_bytes(tenant->ranges.items[i]->memory);
    qf_lock_drop(head->lock);
    return bytes;
}

static void count_range(const struct in_head_range *range, struct in_head_figures *figures)
{
    figures->memory_bytes += range->memory ? in_memory_bytes(range->memory) : 0;
    figures->file_bytes += range->files ? range->files->bytes : 0;
    figures->open_ranges += !range->to;
    figures->closed_ranges += range->to && !range->sealed;
    figures->sealed_ranges += range->sealed;
    figures->waiting_ranges += range->to && !range->sealed && !range->files;
    if (!range->to && range->memory)
        figures->open_series += in_memory_view(range->memory).series_count;
}

struct in_head_figures in_head_figures(struct in_head *head)
{
    struct in_head_figures figures = { .unknown_series = atomic_load(&head->unknown),
                                       .extras_dropped =
                                           in_extras_figures(head->extras).not_sealed };

    qf_lock_take(head->lock);
    for (size_t i = 0; i < head->tenants.count; i++)
        for (size_t j = 0; j < head->tenants.items[i]->ranges.count; j++)
            count_range(head->tenants.items[i]->ranges.items[j], &figures);
    qf_lock_drop(head->lock);
    return figures;
}
