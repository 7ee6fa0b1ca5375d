/* memory.c - series and their labels: tables that grow under their readers. */
#include "ingest/head/memory.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/varint.h"
#include "ingest/head/annex.h"
#include "ingest/head/memory_int.h"
#include "segments/annex/annex.h"

#define TEXT_BYTES_MIN 1024
#define TEXT_BYTES_MAX 65536

struct in_memory *in_memory_new(void)
{
    struct in_memory *memory = qf_xcalloc(1, sizeof(*memory));

    atomic_store(&memory->refs, 1);
    memory->arena = qf_arena_new(SIZE_MAX);
    return memory;
}

struct in_memory *in_memory_ref(struct in_memory *memory)
{
    atomic_fetch_add(&memory->refs, 1);
    return memory;
}

struct in_memory *in_memory_drop(struct in_memory *memory)
{
    if (!memory || atomic_fetch_sub(&memory->refs, 1) > 1)
        return NULL;
    (void)qf_arena_free(memory->arena);
    QF_VEC_DONE(&memory->numbers);
    (void)sg_annex_free(memory->annex);
    free(memory->slots);
    free(memory);
    return NULL;
}

/* --- pieces --- */

/* Room for one more item, which no reader sees before publish(). */
static void *add_item(struct in_memory *memory, struct in_pieces *pieces, size_t size)
{
    size_t piece = pieces->added / IN_PIECE;
    void **table = atomic_load_explicit(&pieces->table, memory_order_relaxed);

    if (piece == pieces->capacity) {
        size_t capacity = piece ? 2 * piece : 8;
        void **larger = QF_ARENA_ARRAY(memory->arena, void *, capacity);

        if (piece)
            memcpy(larger, table, piece * sizeof(*table));
        pieces->capacity = capacity;
        table = larger;
        atomic_store_explicit(&pieces->table, larger, memory_order_release);
    }
    if (pieces->added % IN_PIECE == 0)
        table[piece] = qf_arena_calloc(memory->arena, IN_PIECE, size);
    return (char *)table[piece] + (pieces->added++ % IN_PIECE) * size;
}

static void publish(struct in_pieces *pieces)
{
    atomic_store_explicit(&pieces->count, pieces->added, memory_order_release);
}

/* Bytes that need no alignment, side by side. */
static char *add_text(struct in_memory *memory, size_t len)
{
    char *text;

    if (len > memory->text_left) {
        size_t room = qf_arena_used(memory->arena) / 16;

        room = QF_MIN(room, (size_t)TEXT_BYTES_MAX);
        room = QF_MAX(room, (size_t)TEXT_BYTES_MIN);
        if (len > room / 4)
            return qf_arena_alloc(memory->arena, len ? len : 1);
        memory->text = qf_arena_alloc(memory->arena, room);
        memory->text_left = room;
    }
    text = memory->text;
    memory->text += len;
    memory->text_left -= len;
    return text;
}

/* --- pairs --- */

static uint32_t hash_pair(const struct qf_label *label)
{
    uint64_t hash =
        qf_hash_bytes(label->name) * UINT64_C(0x9e3779b97f4a7c15) ^ qf_hash_bytes(label->value);

    return (uint32_t)(hash ^ hash >> 32);
}

static struct in_pair *pair_at(const struct in_memory *memory, uint32_t i)
{
    void **table = atomic_load_explicit(&memory->pairs.table, memory_order_relaxed);

    return (struct in_pair *)table[i / IN_PIECE] + i % IN_PIECE;
}

static void grow_slots(struct in_memory *memory)
{
    uint32_t count = memory->slot_count ? 2 * memory->slot_count : 64;

    free(memory->slots);
    memory->slots = qf_xcalloc(count, sizeof(*memory->slots));
    memory->slot_count = count;
    for (uint32_t i = 0; i < memory->pairs.added; i++) {
        uint32_t at = pair_at(memory, i)->hash & (count - 1);

        while (memory->slots[at])
            at = (at + 1) & (count - 1);
        memory->slots[at] = i + 1;
    }
}

static uint32_t add_pair(struct in_memory *memory, const struct qf_label *label, uint32_t hash)
{
    struct in_pair *pair = add_item(memory, &memory->pairs, sizeof(*pair));
    char *text = add_text(memory, label->name.len + label->value.len);

    memcpy(text, label->name.data, label->name.len);
    memcpy(text + label->name.len, label->value.data, label->value.len);
    *pair = (struct in_pair){ text, (uint32_t)label->name.len, (uint32_t)label->value.len, hash };
    return memory->pairs.added - 1;
}

/* The number of a pair, which is added if it is new. */
static uint32_t number_of_pair(struct in_memory *memory, const struct qf_label *label)
{
    uint32_t hash = hash_pair(label), at;

    if (memory->pairs.added >= memory->slot_count / 4 * 3)
        grow_slots(memory);
    at = hash & (memory->slot_count - 1);
    for (; memory->slots[at]; at = (at + 1) & (memory->slot_count - 1)) {
        const struct in_pair *pair = pair_at(memory, memory->slots[at] - 1);

        if (pair->hash == hash && qf_str_eq(in_pair_name(pair), label->name) &&
            qf_str_eq(in_pair_value(pair), label->value))
            return memory->slots[at] - 1;
    }
    memory->slots[at] = memory->pairs.added + 1;
    return add_pair(memory, label, hash);
}

/* --- series --- */

static const unsigned char *add_labels(struct in_memory *memory, struct qf_labels labels)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    unsigned char bytes[QF_VARINT_MAX];
    char *text;

    qf_strbuf_add(&buf, bytes, qf_varint_put(bytes, labels.count));
    for (size_t i = 0; i < labels.count; i++)
        qf_strbuf_add(&buf, bytes, qf_varint_put(bytes, number_of_pair(memory, &labels.items[i])));
    text = add_text(memory, buf.len);
    memcpy(text, buf.data, buf.len);
    return (const unsigned char *)text;
}

void in_memory_count(struct in_memory *memory)
{
    atomic_store_explicit(&memory->bytes,
                          sizeof(*memory) + qf_arena_used(memory->arena) +
                              memory->slot_count * sizeof(*memory->slots) +
                              memory->numbers.capacity * sizeof(*memory->numbers.items) +
                              (memory->annex ? sg_annex_bytes(memory->annex) : 0),
                          memory_order_relaxed);
}

struct sg_annex *in_memory_annex(struct in_memory *memory)
{
    if (!memory->annex)
        memory->annex = sg_annex_new(IN_ANNEX_BYTES_MAX);
    return memory->annex;
}

bool in_memory_has_annex(const struct in_memory *memory)
{
    return memory->annex != NULL;
}

static struct in_memory_series *add_series(struct in_memory *memory, const unsigned char *labels,
                                           uint32_t shard_hash)
{
    struct in_memory_series *series = add_item(memory, &memory->series, sizeof(*series));

    series->labels = labels;
    series->ordinal = memory->series.added;
    series->shard_hash = shard_hash;
    publish(&memory->pairs); /* readers see a series only with its labels */
    publish(&memory->series);
    return series;
}

void in_memory_define(struct in_memory *memory, uint32_t number, struct qf_labels labels)
{
    assert(number < IN_SERIES_MAX);
    assert(labels.count <= IN_LABELS_MAX);
    while (memory->numbers.count <= number)
        QF_VEC_PUSH(&memory->numbers, NULL);
    memory->numbers.items[number] =
        add_series(memory, add_labels(memory, labels), (uint32_t)qf_labels_shard_hash(labels));
    in_memory_count(memory);
}

bool in_memory_add(struct in_memory *memory, uint32_t number, uint64_t position,
                   const struct in_sample *sample)
{
    struct in_memory_series *series =
        number < memory->numbers.count ? memory->numbers.items[number] : NULL;

    if (!series)
        return false;
    /* What is read together has a bound: a series goes on as another of the same labels. */
    if (atomic_load_explicit(&series->len, memory_order_relaxed) >= IN_STREAM_MAX)
        series = memory->numbers.items[number] =
            add_series(memory, series->labels, series->shard_hash);
    in_series_append(memory, series, position, sample);
    return true;
}

/* --- anyone --- */

uint64_t in_memory_bytes(const struct in_memory *memory)
{
    return atomic_load_explicit(&memory->bytes, memory_order_relaxed);
}

uint64_t in_memory_samples(const struct in_memory *memory)
{
    return atomic_load_explicit(&memory->samples, memory_order_relaxed);
}

struct in_memory_view in_memory_view(const struct in_memory *memory)
{
    struct in_memory_view view;

    view.series_count = atomic_load_explicit(&memory->series.count, memory_order_acquire);
    view.series = atomic_load_explicit(&memory->series.table, memory_order_acquire);
    view.pair_count = atomic_load_explicit(&memory->pairs.count, memory_order_acquire);
    view.pairs = atomic_load_explicit(&memory->pairs.table, memory_order_acquire);
    return view;
}

uint32_t in_series_label_count(const struct in_memory_series *series)
{
    const unsigned char *at = series->labels;

    return in_labels_next(&at);
}

struct qf_labels in_view_labels(const struct in_memory_view *view,
                                const struct in_memory_series *series, struct qf_label *items)
{
    const unsigned char *at = series->labels;
    uint32_t count = in_labels_next(&at);

    for (uint32_t i = 0; i < count; i++) {
        const struct in_pair *pair = in_view_pair(view, in_labels_next(&at));

        items[i] = (struct qf_label){ in_pair_name(pair), in_pair_value(pair) };
    }
    return (struct qf_labels){ items, count };
}

int in_view_cmp(const struct in_memory_view *view, const struct in_memory_series *a,
                const struct in_memory_series *b)
{
    const unsigned char *at_a = a->labels, *at_b = b->labels;
    uint32_t count_a = in_labels_next(&at_a), count_b = in_labels_next(&at_b);
    uint32_t count = QF_MIN(count_a, count_b);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = in_labels_next(&at_a), y = in_labels_next(&at_b);
        const struct in_pair *p, *q;
        int order;

        if (x == y)
            continue;
        p = in_view_pair(view, x);
        q = in_view_pair(view, y);
        order = qf_str_cmp(in_pair_name(p), in_pair_name(q));
        return order ? order : qf_str_cmp(in_pair_value(p), in_pair_value(q));
    }
    return (count_a > count_b) - (count_a < count_b);
}
