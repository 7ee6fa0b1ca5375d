/* ledger.c - records become ranges, sealed positions, keys and a floor. */
#include "ingest/core/ledger.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/core/ledger_int.h"

struct in_ledger *in_ledger_new(void)
{
    struct in_ledger *ledger = qf_xcalloc(1, sizeof(*ledger));

    ledger->time_ms = ledger->floor_ms = INT64_MIN;
    in_keys_init(&ledger->keys, IN_KEYS_MAX);
    return ledger;
}

static void drop_files(struct in_tenant *tenant, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(tenant->files[i].name);
        free(tenant->files[i].etag);
    }
    tenant->file_count -= count;
    if (tenant->file_count)
        memmove(tenant->files, tenant->files + count, tenant->file_count * sizeof(*tenant->files));
}

struct in_ledger *in_ledger_free(struct in_ledger *ledger)
{
    if (!ledger)
        return NULL;
    for (size_t i = 0; i < ledger->tenant_count; i++) {
        drop_files(ledger->tenants[i], ledger->tenants[i]->file_count);
        free(ledger->tenants[i]->files);
        in_tenant_drop_elected(ledger->tenants[i]);
        free(ledger->tenants[i]->ranges);
        free(ledger->tenants[i]->name);
        free(ledger->tenants[i]);
    }
    free(ledger->tenants);
    qf_map_done(&ledger->names);
    in_keys_done(&ledger->keys);
    QF_VEC_DONE(&ledger->voids);
    (void)rg_manifest_free(ledger->manifest);
    free(ledger);
    return NULL;
}

/* --- tables --- */

/* Room for one more of @count items of @size. */
static void *grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? 2 * *capacity : 4;
    return qf_xrealloc(items, *capacity * size);
}

struct in_range *in_tenant_add_range(struct in_tenant *tenant)
{
    tenant->ranges =
        grow(tenant->ranges, tenant->range_count, &tenant->range_capacity, sizeof(*tenant->ranges));
    tenant->ranges[tenant->range_count] = (struct in_range){ 0 };
    return &tenant->ranges[tenant->range_count++];
}

struct in_recent_file *in_tenant_add_file(struct in_tenant *tenant)
{
    tenant->files =
        grow(tenant->files, tenant->file_count, &tenant->file_capacity, sizeof(*tenant->files));
    tenant->files[tenant->file_count] = (struct in_recent_file){ 0 };
    return &tenant->files[tenant->file_count++];
}

static struct in_tenant *find_tenant(const struct in_ledger *ledger, struct qf_str name)
{
    const uint64_t *place = qf_map_get(&ledger->names, name);

    return place ? ledger->tenants[*place] : NULL;
}

struct in_tenant *in_ledger_make_tenant(struct in_ledger *ledger, struct qf_str name)
{
    struct in_tenant *tenant = find_tenant(ledger, name);

    if (tenant || ledger->tenant_count == IN_TENANTS_MAX)
        return tenant;
    tenant = qf_xcalloc(1, sizeof(*tenant));
    tenant->name = qf_xmemdup0(name.data, name.len);
    tenant->max_ts = INT64_MIN;
    ledger->tenants = grow(ledger->tenants, ledger->tenant_count, &ledger->tenant_capacity,
                           sizeof(struct in_tenant *));
    (void)qf_map_put(&ledger->names, (struct qf_str){ tenant->name, name.len },
                     ledger->tenant_count, NULL);
    ledger->tenants[ledger->tenant_count++] = tenant;
    return tenant;
}

/* --- records --- */

static struct in_range *open_range(struct in_tenant *tenant)
{
    struct in_range *last = tenant->range_count ? &tenant->ranges[tenant->range_count - 1] : NULL;

    return last && !last->to ? last : NULL;
}

/* Generations are wall clocks in microseconds where clocks go forward, and go forward where they
 * do not. */
static uint64_t generation_at(const struct in_tenant *tenant, int64_t time_ms)
{
    uint64_t now = time_ms > 0 && time_ms < INT64_MAX / 1000 ? (uint64_t)time_ms * 1000 : 0;
    uint64_t least = QF_MAX(tenant->generation + 1, tenant->next_generation);

    if (tenant->below)
        least = QF_MAX(least, (tenant->below / 1000 + 1) * 1000);
    /* The second half of a millisecond is for imports, which no range shall equal. */
    if (least % 1000 >= 500)
        least += 1000 - least % 1000;
    return QF_MAX(least, now);
}

/* The record time @life_ms before the last one. */
static int64_t ago(const struct in_ledger *ledger, int64_t life_ms)
{
    return ledger->time_ms < INT64_MIN + life_ms ? INT64_MIN : ledger->time_ms - life_ms;
}

/* The time of a record. Records cannot tell a calendar that leaps from hours without any: either way
 * keys get older by IN_KEY_STEP_MS at most, for a request may be on its way again meanwhile. */
static void pass_time(struct in_ledger *ledger, int64_t time_ms)
{
    int64_t before = ledger->time_ms;

    if (time_ms <= before)
        return;
    if (before != INT64_MIN && before < INT64_MAX - IN_KEY_STEP_MS &&
        time_ms > before + IN_KEY_STEP_MS)
        in_keys_delay(&ledger->keys, (uint64_t)time_ms - (uint64_t)(before + IN_KEY_STEP_MS));
    ledger->time_ms = time_ms;
    in_keys_expire(&ledger->keys, ago(ledger, IN_KEY_LIFE_MS));
}

static enum in_verdict known(const struct in_ledger *ledger, const struct in_record *record,
                             const struct in_key_entry **ret_before)
{
    const struct in_key_entry *before =
        record->key.given ? in_keys_find(&ledger->keys, record->key.key) : NULL;

    if (ret_before)
        *ret_before = before;
    if (!before)
        return IN_APPLIED;
    return memcmp(before->body, record->key.body, IN_HASH_BYTES) == 0 ? IN_REPEATED : IN_OTHER_BODY;
}

static void remember(struct in_ledger *ledger, uint64_t index, const struct in_record *record)
{
    struct in_key_entry entry = { .accepted = record->accepted,
                                  .refused = record->refused,
                                  .time_ms = ledger->time_ms,
                                  .index = index };

    if (!record->key.given)
        return;
    memcpy(entry.key, record->key.key, IN_HASH_BYTES);
    memcpy(entry.body, record->key.body, IN_HASH_BYTES);
    in_keys_add(&ledger->keys, &entry);
}

static bool has_room(const struct in_tenant *tenant)
{
    return tenant->range_count < IN_RANGES_MAX || !tenant->ranges[tenant->range_count - 1].to;
}

static enum in_verdict apply_samples(struct in_ledger *ledger, uint64_t index,
                                     const struct in_record *record,
                                     const struct in_key_entry **ret_before)
{
    enum in_verdict verdict;
    struct in_tenant *tenant;
    struct in_range *range;

    pass_time(ledger, record->time_ms);
    verdict = known(ledger, record, ret_before);
    if (verdict != IN_APPLIED) {
        tenant = find_tenant(ledger, record->tenant);
        if (tenant && open_range(tenant))
            in_ledger_note_void(ledger, index);
        return verdict;
    }
    tenant = in_ledger_make_tenant(ledger, record->tenant);
    if (!tenant || !has_room(tenant))
        return IN_NO_ROOM;
    range = open_range(tenant);
    if (!range) {
        tenant->generation = generation_at(tenant, ledger->time_ms);
        range = in_tenant_add_range(tenant);
        *range = (struct in_range){ .generation = tenant->generation,
                                    .from = index,
                                    .min_ts = INT64_MAX,
                                    .max_ts = INT64_MIN };
    }
    range->samples += record->sample_count;
    range->min_ts = QF_MIN(range->min_ts, record->min_ts);
    range->max_ts = QF_MAX(range->max_ts, record->max_ts);
    tenant->max_ts = QF_MAX(tenant->max_ts, record->max_ts);
    remember(ledger, index, record);
    return IN_APPLIED;
}

/* The position is told where other requests have what was accepted. */
static enum in_verdict apply_pin(struct in_ledger *ledger, uint64_t index,
                                 const struct in_record *record,
                                 const struct in_key_entry **ret_before)
{
    struct in_record pin = *record;
    enum in_verdict verdict;

    pass_time(ledger, record->time_ms);
    verdict = known(ledger, record, ret_before);
    pin.accepted.series = record->position;
    if (verdict == IN_APPLIED)
        remember(ledger, index, &pin);
    return verdict;
}

static enum in_verdict apply_seal(struct in_ledger *ledger, uint64_t index,
                                  const struct in_record *record)
{
    struct in_tenant *tenant = find_tenant(ledger, record->tenant);
    struct in_range *range = tenant ? open_range(tenant) : NULL;

    if (!range || record->generation > IN_GENERATION_MAX)
        return IN_OUT_OF_TURN;
    range->to = index;
    tenant->next_generation = record->generation;
    return IN_APPLIED;
}

/* Those that are told of long enough, and, if there are too many, the oldest. */
static void forget_files(struct in_ledger *ledger, struct in_tenant *tenant, size_t room,
                         int64_t life_ms)
{
    size_t count = 0;

    while (count < tenant->file_count && (tenant->file_count - count + room > IN_RECENT_FILES_MAX ||
                                          tenant->files[count].time_ms < ago(ledger, life_ms)))
        tenant->files_after = QF_MAX(tenant->files_after, tenant->files[count++].index);
    drop_files(tenant, count);
}

static void note_files(struct in_ledger *ledger, struct in_tenant *tenant, uint64_t index,
                       const struct in_record *record)
{
    struct qf_str rest = record->files;
    struct in_sealed_file file;

    forget_files(ledger, tenant, QF_MIN(record->file_count, (uint32_t)IN_RECENT_FILES_MAX),
                 IN_FILE_LIFE_MS);
    if (record->file_count > IN_RECENT_FILES_MAX) { /* whoever wants to know lists the store */
        tenant->files_after = index;
        return;
    }
    while (in_record_next_file(&rest, &file))
        *in_tenant_add_file(tenant) =
            (struct in_recent_file){ .name = qf_xmemdup0(file.name.data, file.name.len),
                                     .etag = qf_xmemdup0(file.etag.data, file.etag.len),
                                     .size = file.size,
                                     .index = index,
                                     .time_ms = ledger->time_ms };
}

static enum in_verdict apply_sealed(struct in_ledger *ledger, uint64_t index,
                                    const struct in_record *record)
{
    struct in_tenant *tenant = find_tenant(ledger, record->tenant);
    const struct in_range *range = tenant ? in_tenant_next_to_seal(tenant) : NULL;

    if (!range || record->from != range->from || record->to != range->to)
        return IN_OUT_OF_TURN;
    if (record->note.len && !in_ledger_note(ledger, index, record))
        return IN_OUT_OF_TURN;
    tenant->sealed = range->to;
    tenant->range_count--;
    if (tenant->range_count)
        memmove(tenant->ranges, tenant->ranges + 1, tenant->range_count * sizeof(*tenant->ranges));
    note_files(ledger, tenant, index, record);
    in_ledger_forget_voids(ledger);
    return IN_APPLIED;
}

static enum in_verdict apply_floor(struct in_ledger *ledger, const struct in_record *record)
{
    /* What is read again at a start must count for as much as it did: no floor above it. */
    if (record->floor_ms <= ledger->floor_ms || record->floor_ms > in_ledger_oldest(ledger))
        return IN_OUT_OF_TURN;
    ledger->floor_ms = record->floor_ms;
    return IN_APPLIED;
}

static enum in_verdict apply_below(struct in_ledger *ledger, const struct in_record *record)
{
    struct in_tenant *tenant;

    pass_time(ledger, record->time_ms);
    if (record->generation > IN_GENERATION_MAX)
        return IN_OUT_OF_TURN;
    tenant = in_ledger_make_tenant(ledger, record->tenant);
    if (!tenant)
        return IN_NO_ROOM;
    if (record->generation > in_tenant_settled(tenant))
        return IN_OUT_OF_TURN;
    tenant->below = QF_MAX(tenant->below, record->generation);
    /* Files that will be merged and deleted now: nobody is told of them by their old names. */
    forget_files(ledger, tenant, 0, (int64_t)QF_MIN(record->keep_ms, (uint64_t)IN_FILE_LIFE_MS));
    return IN_APPLIED;
}

enum in_verdict in_ledger_apply(struct in_ledger *ledger, uint64_t index,
                                const struct in_record *record,
                                const struct in_key_entry **ret_before)
{
    assert(index > ledger->applied);
    ledger->applied = index;
    switch (record->kind) {
    case IN_SAMPLES:
        return apply_samples(ledger, index, record, ret_before);
    case IN_SEAL:
        return apply_seal(ledger, index, record);
    case IN_SEALED:
        return apply_sealed(ledger, index, record);
    case IN_FLOOR:
        return apply_floor(ledger, record);
    case IN_BELOW:
        return apply_below(ledger, record);
    case IN_ELECT:
        pass_time(ledger, record->time_ms);
        return in_ledger_elect(ledger, record);
    case IN_PIN:
        return apply_pin(ledger, index, record, ret_before);
    case IN_NOTE:
        return in_ledger_note(ledger, index, record) ? IN_APPLIED : IN_OUT_OF_TURN;
    }
    return IN_OUT_OF_TURN; /* decoding lets no other kind through */
}

/* --- what is asked --- */

bool in_ledger_room(const struct in_ledger *ledger, struct qf_str name)
{
    const struct in_tenant *tenant = find_tenant(ledger, name);

    return tenant ? tenant->range_count == 0 || has_room(tenant)
                  : ledger->tenant_count < IN_TENANTS_MAX;
}

const struct in_tenant *in_ledger_tenant(const struct in_ledger *ledger, struct qf_str name)
{
    return find_tenant(ledger, name);
}

size_t in_ledger_tenant_count(const struct in_ledger *ledger)
{
    return ledger->tenant_count;
}

const struct in_tenant *in_ledger_tenant_at(const struct in_ledger *ledger, size_t i)
{
    return ledger->tenants[i];
}

const struct in_range *in_tenant_open(const struct in_tenant *tenant)
{
    const struct in_range *last =
        tenant->range_count ? &tenant->ranges[tenant->range_count - 1] : NULL;

    return last && !last->to ? last : NULL;
}

const struct in_range *in_tenant_next_to_seal(const struct in_tenant *tenant)
{
    return tenant->range_count && tenant->ranges[0].to ? &tenant->ranges[0] : NULL;
}

uint64_t in_tenant_settled(const struct in_tenant *tenant)
{
    return tenant->range_count ? tenant->ranges[0].generation - 1 : UINT64_MAX;
}

bool in_ledger_knows_below(const struct in_ledger *ledger)
{
    for (size_t i = 0; i < ledger->tenant_count; i++)
        if (ledger->tenants[i]->below)
            return true;
    return false;
}

const struct in_range *in_tenant_range_at(const struct in_tenant *tenant, uint64_t index)
{
    for (size_t i = tenant->range_count; i > 0; i--) {
        const struct in_range *range = &tenant->ranges[i - 1];

        if (range->from <= index)
            return !range->to || index <= range->to ? range : NULL;
    }
    return NULL;
}

const struct in_key_entry *in_ledger_key(const struct in_ledger *ledger,
                                         const uint8_t key[IN_HASH_BYTES])
{
    return in_keys_find(&ledger->keys, key);
}

uint64_t in_ledger_applied(const struct in_ledger *ledger)
{
    return ledger->applied;
}

int64_t in_ledger_time(const struct in_ledger *ledger)
{
    return ledger->time_ms;
}

int64_t in_ledger_floor(const struct in_ledger *ledger)
{
    return ledger->floor_ms;
}

int64_t in_ledger_oldest(const struct in_ledger *ledger)
{
    int64_t oldest = INT64_MAX;

    for (size_t i = 0; i < ledger->tenant_count; i++)
        for (size_t j = 0; j < ledger->tenants[i]->range_count; j++)
            oldest = QF_MIN(oldest, ledger->tenants[i]->ranges[j].min_ts);
    return oldest;
}

int64_t in_ledger_floor_due(const struct in_ledger *ledger, int64_t wall_ms, int64_t age_ms)
{
    int64_t newest = INT64_MIN;

    for (size_t i = 0; i < ledger->tenant_count; i++)
        newest = QF_MAX(newest, ledger->tenants[i]->max_ts);
    if (newest != INT64_MIN)
        wall_ms = QF_MIN(wall_ms, newest);
    if (wall_ms < INT64_MIN + age_ms)
        return INT64_MIN;
    return QF_MIN(wall_ms - age_ms, in_ledger_oldest(ledger));
}

uint64_t in_ledger_needed_from(const struct in_ledger *ledger)
{
    uint64_t from = ledger->applied + 1;

    for (size_t i = 0; i < ledger->tenant_count; i++)
        if (ledger->tenants[i]->range_count)
            from = QF_MIN(from, ledger->tenants[i]->ranges[0].from);
    return from;
}
