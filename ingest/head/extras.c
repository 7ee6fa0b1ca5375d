/* extras.c - the newest exemplars and metadata of a partition. */
#include "ingest/head/extras.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "base/sys/thread.h"

#define EXEMPLARS_MAX 100000
#define METADATA_MAX 400000
#define EXEMPLAR_BYTES_MAX 4096
/* Entries that a reader looks at before it lets others have the lock. */
#define PIECE 256

/* The labels of the series follow, then its own. */
struct exemplar {
    uint32_t series_len, labels_len;
    double value;
    int64_t ts;
    char text[];
};

/* The name follows. */
struct metadata {
    enum qf_metric_type type;
    char *help, *unit;
    uint64_t generation;
    uint32_t help_len, unit_len, name_len;
    char name[];
};

struct tenant {
    char *name;
    struct exemplar **ring; /* capacity places, oldest at first */
    uint32_t capacity, first, count;
    struct qf_map names; /* to places in: */
    QF_VEC(struct metadata *) metadata;
};

struct in_extras {
    struct in_extras_limits limits;
    struct qf_lock *lock; /* of everything below */
    struct qf_map names;  /* to places in: */
    QF_VEC(struct tenant *) tenants;
    struct in_extras_figures figures;
};

struct in_extras *in_extras_new(const struct in_extras_limits *limits)
{
    struct in_extras *extras = qf_xcalloc(1, sizeof(*extras));

    extras->limits = *limits;
    if (!extras->limits.exemplars_max)
        extras->limits.exemplars_max = EXEMPLARS_MAX;
    if (!extras->limits.metadata_max)
        extras->limits.metadata_max = METADATA_MAX;
    extras->lock = qf_lock_new();
    return extras;
}

static void free_tenant(struct tenant *tenant)
{
    for (uint32_t i = 0; i < tenant->count; i++)
        free(tenant->ring[(tenant->first + i) % tenant->capacity]);
    for (size_t i = 0; i < tenant->metadata.count; i++) {
        free(tenant->metadata.items[i]->help);
        free(tenant->metadata.items[i]->unit);
        free(tenant->metadata.items[i]);
    }
    free(tenant->ring);
    QF_VEC_DONE(&tenant->metadata);
    qf_map_done(&tenant->names);
    free(tenant->name);
    free(tenant);
}

static void clear(struct in_extras *extras)
{
    for (size_t i = 0; i < extras->tenants.count; i++)
        free_tenant(extras->tenants.items[i]);
    extras->tenants.count = 0;
    qf_map_clear(&extras->names);
    extras->figures.exemplars = extras->figures.metadata = 0;
}

struct in_extras *in_extras_free(struct in_extras *extras)
{
    if (!extras)
        return NULL;
    clear(extras);
    QF_VEC_DONE(&extras->tenants);
    qf_map_done(&extras->names);
    (void)qf_lock_free(extras->lock);
    free(extras);
    return NULL;
}

void in_extras_clear(struct in_extras *extras)
{
    qf_lock_take(extras->lock);
    clear(extras);
    qf_lock_drop(extras->lock);
}

static struct tenant *find_tenant(const struct in_extras *extras, struct qf_str name)
{
    const uint64_t *place = qf_map_get(&extras->names, name);

    return place ? extras->tenants.items[*place] : NULL;
}

static struct tenant *make_tenant(struct in_extras *extras, struct qf_str name)
{
    struct tenant *tenant = find_tenant(extras, name);

    if (tenant)
        return tenant;
    tenant = qf_xcalloc(1, sizeof(*tenant));
    tenant->name = qf_xmemdup0(name.data, name.len);
    (void)qf_map_put(&extras->names, (struct qf_str){ tenant->name, name.len },
                     extras->tenants.count, NULL);
    QF_VEC_PUSH(&extras->tenants, tenant);
    return tenant;
}

/* --- adding --- */

static void drop_oldest(struct in_extras *extras, struct tenant *tenant)
{
    free(tenant->ring[tenant->first]);
    tenant->first = (tenant->first + 1) % tenant->capacity;
    tenant->count--;
    extras->figures.exemplars--;
    extras->figures.exemplars_dropped++;
}

/* Whose oldest exemplar goes for one more of @tenant. */
static struct tenant *whose_goes(const struct in_extras *extras, struct tenant *tenant)
{
    struct tenant *most = tenant;

    if ((uint64_t)tenant->count * extras->tenants.count >= extras->limits.exemplars_max)
        return tenant;
    for (size_t i = 0; i < extras->tenants.count; i++)
        if (extras->tenants.items[i]->count > most->count)
            most = extras->tenants.items[i];
    return most;
}

static void grow_ring(struct tenant *tenant)
{
    uint32_t capacity = tenant->capacity ? 2 * tenant->capacity : 16;
    struct exemplar **ring;

    if (tenant->count < tenant->capacity)
        return;
    ring = qf_xcalloc(capacity, sizeof(struct exemplar *));
    for (uint32_t i = 0; i < tenant->count; i++)
        ring[i] = tenant->ring[(tenant->first + i) % tenant->capacity];
    free(tenant->ring);
    tenant->ring = ring;
    tenant->capacity = capacity;
    tenant->first = 0;
}

static void add_exemplar(struct in_extras *extras, struct tenant *tenant,
                         const struct in_extra *extra)
{
    size_t len = extra->series.len + extra->labels.len;
    struct exemplar *exemplar;

    if (len > EXEMPLAR_BYTES_MAX) {
        extras->figures.exemplars_dropped++;
        return;
    }
    if (extras->figures.exemplars >= extras->limits.exemplars_max)
        drop_oldest(extras, whose_goes(extras, tenant));
    exemplar = qf_xmalloc(sizeof(*exemplar) + len);
    *exemplar = (struct exemplar){ .series_len = (uint32_t)extra->series.len,
                                   .labels_len = (uint32_t)extra->labels.len,
                                   .value = extra->value,
                                   .ts = extra->ts };
    memcpy(exemplar->text, extra->series.data, extra->series.len);
    memcpy(exemplar->text + extra->series.len, extra->labels.data, extra->labels.len);
    grow_ring(tenant);
    tenant->ring[(tenant->first + tenant->count++) % tenant->capacity] = exemplar;
    extras->figures.exemplars++;
}

/* The entry of @name, made if there is room. */
static struct metadata *entry_of(struct in_extras *extras, struct tenant *tenant,
                                 struct qf_str name)
{
    const uint64_t *place = qf_map_get(&tenant->names, name);
    struct metadata *entry;

    if (place)
        return tenant->metadata.items[*place];
    if (extras->figures.metadata >= extras->limits.metadata_max ||
        tenant->metadata.count >= QF_MAX(extras->limits.metadata_max / 4, 1u)) {
        extras->figures.metadata_refused++;
        return NULL;
    }
    entry = qf_xcalloc(1, sizeof(*entry) + name.len);
    entry->name_len = (uint32_t)name.len;
    memcpy(entry->name, name.data, name.len);
    (void)qf_map_put(&tenant->names, (struct qf_str){ entry->name, name.len },
                     tenant->metadata.count, NULL);
    QF_VEC_PUSH(&tenant->metadata, entry);
    extras->figures.metadata++;
    return entry;
}

static void add_metadata(struct in_extras *extras, struct tenant *tenant, uint64_t generation,
                         const struct in_metadata *metadata)
{
    struct metadata *entry = entry_of(extras, tenant, metadata->name);

    if (!entry)
        return;
    free(entry->help);
    free(entry->unit);
    entry->type = metadata->type;
    entry->generation = generation;
    entry->help = qf_xmemdup0(metadata->help.data, metadata->help.len);
    entry->unit = qf_xmemdup0(metadata->unit.data, metadata->unit.len);
    entry->help_len = (uint32_t)metadata->help.len;
    entry->unit_len = (uint32_t)metadata->unit.len;
}

void in_extras_drop(struct in_extras *extras, uint64_t count)
{
    if (!count)
        return;
    qf_lock_take(extras->lock);
    extras->figures.not_sealed += count;
    qf_lock_drop(extras->lock);
}

void in_extras_add(struct in_extras *extras, struct qf_str name, uint64_t generation,
                   struct qf_str bytes)
{
    struct tenant *tenant;
    struct in_extra extra;

    if (!bytes.len)
        return;
    qf_lock_take(extras->lock);
    tenant = make_tenant(extras, name);
    while (in_extra_next(&bytes, &extra)) {
        if (extra.kind == IN_EXTRA_EXEMPLAR)
            add_exemplar(extras, tenant, &extra);
        else
            add_metadata(extras, tenant, generation, &extra.metadata);
    }
    qf_lock_drop(extras->lock);
}

struct in_extras_figures in_extras_figures(struct in_extras *extras)
{
    struct in_extras_figures figures;

    qf_lock_take(extras->lock);
    figures = extras->figures;
    qf_lock_drop(extras->lock);
    return figures;
}

/* --- reading --- */

/* Copies of a piece of a tenant's exemplars in the times asked for, from place *@at on; *@at moves on
 * with what was dropped meanwhile. False: the arena is spent. */
static bool copy_piece(struct in_extras *extras, const struct in_exemplars_ask *ask, uint64_t *at,
                       struct qf_arena *arena, struct exemplar **out, size_t *ret_count, bool *more)
{
    const struct tenant *tenant;
    bool ok = true;

    *ret_count = 0;
    qf_lock_take(extras->lock);
    tenant = find_tenant(extras, ask->tenant);
    for (int i = 0; tenant && *at < tenant->count && i < PIECE && ok; i++, (*at)++) {
        const struct exemplar *from = tenant->ring[(tenant->first + *at) % tenant->capacity];
        size_t size = sizeof(*from) + from->series_len + from->labels_len;

        if (from->ts < ask->min_ts || from->ts > ask->max_ts)
            continue;
        out[*ret_count] = qf_arena_alloc(arena, size);
        ok = out[*ret_count] != NULL;
        if (ok)
            memcpy(out[(*ret_count)++], from, size);
    }
    *more = tenant && *at < tenant->count;
    qf_lock_drop(extras->lock);
    return ok;
}

static bool matches(const struct in_exemplars_ask *ask, struct qf_labels series)
{
    for (size_t i = 0; i < ask->selector_count; i++)
        if (pq_matchers_match(ask->matchers[i], ask->matcher_counts[i], series))
            return true;
    return false;
}

static bool decode(const struct exemplar *from, struct qf_arena *arena,
                   struct sg_found_exemplar *ret_exemplar)
{
    *ret_exemplar = (struct sg_found_exemplar){ .value = from->value, .ts = from->ts };
    return qf_labels_decode(arena, (struct qf_str){ from->text, from->series_len },
                            &ret_exemplar->series, NULL) == QF_OK &&
           qf_labels_decode(arena,
                            (struct qf_str){ from->text + from->series_len, from->labels_len },
                            &ret_exemplar->labels, NULL) == QF_OK;
}

qf_rc in_extras_exemplars(struct in_extras *extras, const struct in_exemplars_ask *ask,
                          struct qf_arena *arena, struct sg_found *found, struct qf_err *err)
{
    struct exemplar *piece[PIECE];
    size_t piece_count;
    uint64_t at = 0;
    bool more = true, ok = true;

    while (more && ok) {
        ok = copy_piece(extras, ask, &at, arena, piece, &piece_count, &more);
        for (size_t i = 0; i < piece_count && ok; i++) {
            struct sg_found_exemplar exemplar;

            ok = decode(piece[i], arena, &exemplar);
            if (ok && matches(ask, exemplar.series))
                ok = sg_found_add(found, arena, &exemplar);
        }
    }
    return ok ? QF_OK : qf_err_set(err, QF_ELIMIT, "more exemplars than memory allows");
}

static int by_name(const void *a, const void *b)
{
    return qf_str_cmp(((const struct in_found_metadata *)a)->is.name,
                      ((const struct in_found_metadata *)b)->is.name);
}

static bool copy_metadata(const struct metadata *from, struct qf_arena *arena,
                          struct in_found_metadata *to)
{
    to->generation = from->generation;
    to->is.type = from->type;
    to->is.name = qf_arena_str(arena, (struct qf_str){ from->name, from->name_len });
    to->is.help = qf_arena_str(arena, (struct qf_str){ from->help, from->help_len });
    to->is.unit = qf_arena_str(arena, (struct qf_str){ from->unit, from->unit_len });
    return to->is.name.data && to->is.help.data && to->is.unit.data;
}

qf_rc in_extras_metadata(struct in_extras *extras, struct qf_str name, struct qf_str metric,
                         struct qf_arena *arena, struct in_found_metadata **ret_metadata,
                         size_t *ret_count, struct qf_err *err)
{
    struct in_found_metadata *items = NULL;
    const struct tenant *tenant;
    size_t count = 0, at = 0, end = 0;
    bool ok = true;

    do { /* entries never move and never go, but for in_extras_clear() */
        qf_lock_take(extras->lock);
        tenant = find_tenant(extras, name);
        end = tenant ? tenant->metadata.count : 0;
        if (end && !items) {
            items = QF_ARENA_ARRAY(arena, struct in_found_metadata, end);
            ok = items != NULL;
            count = end; /* as many as there are now */
        }
        end = QF_MIN(end, count);
        for (int i = 0; i < PIECE && at < end && ok; i++, at++)
            ok = copy_metadata(tenant->metadata.items[at], arena, &items[at]);
        qf_lock_drop(extras->lock);
    } while (at < end && ok);
    if (!ok)
        return qf_err_set(err, QF_ELIMIT, "more metadata than memory allows");
    count = 0;
    for (size_t i = 0; i < at; i++)
        if (!metric.len || qf_str_eq(items[i].is.name, metric))
            items[count++] = items[i];
    if (count)
        qsort(items, count, sizeof(*items), by_name);
    *ret_metadata = items;
    *ret_count = count;
    return QF_OK;
}
