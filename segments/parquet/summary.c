/* summary.c - Bloom filters over the labels of a segment.
 *
 * Text: "1:" and base64 of
 *     varint probes, varint number of filter bytes, the filter (bit i is bit i % 8 of byte i / 8),
 *     varint count of open labels, the XXH3 of each of their names (8 bytes little endian, sorted).
 *
 * Every label name is in the filter, and every (name, value) pair but those of open labels: labels
 * with so many values that the filter would grow past SG_SUMMARY_BYTES_MAX. */
#include "segments/parquet/summary.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/arena.h"
#include "base/pure/base64.h"
#include "base/pure/map.h"
#include "base/pure/varint.h"
#include "base/pure/vec.h"

#define VERSION "1:"
/* Ten bits and seven probes a key: 0.8 % false positives. */
#define BITS_PER_KEY 10
#define PROBES 7
#define PROBES_MAX 32
#define FILTER_BYTES_MAX (SG_SUMMARY_BYTES_MAX - 2048)
#define KEYS_MAX (FILTER_BYTES_MAX * 8 / BITS_PER_KEY)
#define OPEN_LABELS_MAX 200
/* Label values that a builder holds at most, some hundred bytes each. */
#define PAIRS_MAX (8 * KEYS_MAX)
#define NAMES_MAX 10000
#define ALTERNATIVES_MAX 64

/* --- keys --- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a ^ (b * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x7f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t pair_key(uint64_t name_hash, struct qf_str value)
{
    return mix(name_hash, qf_hash_bytes(value));
}

/* Double hashing (Kirsch and Mitzenmacher): probe i looks at bit h1 + i * h2. */
static uint64_t probe(uint64_t key, unsigned i, uint64_t bits)
{
    return (key + i * ((key >> 32 | key << 32) | 1)) % bits;
}

/* --- building --- */

struct label_values {
    uint64_t name_hash;
    QF_VEC(uint64_t) keys; /* of its pairs, each once */
};

struct sg_summary_builder {
    struct qf_arena *arena;
    struct qf_map names; /* name -> index into labels */
    struct qf_map pairs; /* 8 bytes of a pair's key -> nothing */
    QF_VEC(struct label_values) labels;
    bool full; /* some pairs or names were not counted: nothing can be ruled out */
};

struct sg_summary_builder *sg_summary_builder_new(void)
{
    struct sg_summary_builder *builder = qf_xcalloc(1, sizeof(*builder));

    builder->arena = qf_arena_new(SIZE_MAX);
    return builder;
}

struct sg_summary_builder *sg_summary_builder_free(struct sg_summary_builder *builder)
{
    if (!builder)
        return NULL;
    for (size_t i = 0; i < builder->labels.count; i++)
        QF_VEC_DONE(&builder->labels.items[i].keys);
    QF_VEC_DONE(&builder->labels);
    qf_map_done(&builder->names);
    qf_map_done(&builder->pairs);
    (void)qf_arena_free(builder->arena);
    free(builder);
    return NULL;
}

static struct label_values *label_of(struct sg_summary_builder *builder, struct qf_str name)
{
    uint64_t *index = qf_map_get(&builder->names, name);

    if (!index) {
        if (builder->labels.count >= NAMES_MAX)
            return NULL;
        index = qf_map_put(&builder->names, qf_arena_str(builder->arena, name),
                           builder->labels.count, NULL);
        QF_VEC_PUSH(&builder->labels, (struct label_values){ .name_hash = qf_hash_bytes(name) });
    }
    return &builder->labels.items[*index];
}

void sg_summary_builder_add(struct sg_summary_builder *builder, struct qf_labels labels)
{
    for (size_t i = 0; i < labels.count && !builder->full; i++) {
        struct label_values *label = label_of(builder, labels.items[i].name);
        uint64_t key;
        struct qf_str bytes;

        if (label && label->keys.count > KEYS_MAX)
            continue; /* more than fit: it will be open, however many there are */
        if (!label || builder->pairs.count >= PAIRS_MAX) {
            builder->full = true;
            return;
        }
        key = pair_key(label->name_hash, labels.items[i].value);
        bytes = (struct qf_str){ (const char *)&key, sizeof(key) };
        if (qf_map_get(&builder->pairs, bytes))
            continue;
        (void)qf_map_put(&builder->pairs, qf_arena_str(builder->arena, bytes), 0, NULL);
        QF_VEC_PUSH(&label->keys, key);
    }
}

static int by_values(const void *a, const void *b)
{
    const struct label_values *x = a, *y = b;

    if (x->keys.count != y->keys.count)
        return x->keys.count < y->keys.count ? -1 : 1;
    return (x->name_hash > y->name_hash) - (x->name_hash < y->name_hash);
}

static int by_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void set_key(unsigned char *filter, uint64_t bits, uint64_t key)
{
    for (unsigned i = 0; i < PROBES; i++) {
        uint64_t bit = probe(key, i, bits);

        filter[bit / 8] = (unsigned char)(filter[bit / 8] | 1u << (bit % 8));
    }
}

static void put_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void put_open_labels(struct qf_strbuf *raw, const struct label_values *labels, size_t count)
{
    QF_VEC(uint64_t) hashes = { 0 };

    for (size_t i = 0; i < count; i++)
        QF_VEC_PUSH(&hashes, labels[i].name_hash);
    if (count)
        qsort(hashes.items, count, sizeof(uint64_t), by_u64);
    put_varint(raw, count);
    for (size_t i = 0; i < count; i++) {
        for (unsigned shift = 0; shift < 64; shift += 8)
            qf_strbuf_putc(raw, (char)(hashes.items[i] >> shift));
    }
    QF_VEC_DONE(&hashes);
}

void sg_summary_builder_print(struct sg_summary_builder *builder, struct qf_strbuf *buf)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf raw = QF_STRBUF_INIT;
    size_t keys = builder->labels.count, closed = 0;
    unsigned char *filter;
    size_t filter_bytes;

    /* From here on the order of labels is that of their diversity; the map is not used again. */
    if (keys)
        qsort(builder->labels.items, keys, sizeof(builder->labels.items[0]), by_values);
    while (closed < builder->labels.count &&
           keys + builder->labels.items[closed].keys.count <= KEYS_MAX)
        keys += builder->labels.items[closed++].keys.count;
    qf_map_clear(&builder->names);
    qf_strbuf_puts(buf, VERSION);
    if (builder->full || keys > KEYS_MAX || builder->labels.count - closed > OPEN_LABELS_MAX)
        return; /* A version and nothing else: nothing is known. */
    filter_bytes = (keys * BITS_PER_KEY + 7) / 8;
    filter_bytes = filter_bytes ? filter_bytes : 1;
    filter = qf_xcalloc(filter_bytes, 1);
    for (size_t i = 0; i < builder->labels.count; i++) {
        const struct label_values *label = &builder->labels.items[i];

        set_key(filter, filter_bytes * 8, label->name_hash);
        for (size_t j = 0; i < closed && j < label->keys.count; j++)
            set_key(filter, filter_bytes * 8, label->keys.items[j]);
    }
    put_varint(&raw, PROBES);
    put_varint(&raw, filter_bytes);
    qf_strbuf_add(&raw, filter, filter_bytes);
    put_open_labels(&raw, builder->labels.items + closed, builder->labels.count - closed);
    qf_base64_encode(buf, qf_strbuf_view(&raw));
    free(filter);
}

/* --- reading --- */

struct sg_summary {
    unsigned probes;
    size_t filter_bytes, open_count;
    const unsigned char *filter; /* behind the open labels */
    uint64_t open[];
};

static bool get_varint(struct qf_str *bytes, uint64_t max, uint64_t *ret_value)
{
    size_t used = qf_varint_get(*bytes, ret_value);

    if (!used || *ret_value > max)
        return false;
    *bytes = qf_str_sub(*bytes, used, bytes->len);
    return true;
}

static struct sg_summary *summary_decode(struct qf_str bytes)
{
    struct sg_summary *summary;
    uint64_t probes, filter_bytes, open_count;
    struct qf_str filter;

    if (!get_varint(&bytes, PROBES_MAX, &probes) || !probes ||
        !get_varint(&bytes, SG_SUMMARY_BYTES_MAX, &filter_bytes) || !filter_bytes ||
        bytes.len < filter_bytes)
        return NULL;
    filter = qf_str_sub(bytes, 0, (size_t)filter_bytes);
    bytes = qf_str_sub(bytes, filter.len, bytes.len);
    if (!get_varint(&bytes, OPEN_LABELS_MAX, &open_count) || bytes.len != open_count * 8)
        return NULL;
    summary = qf_xcalloc(1, sizeof(*summary) + open_count * 8 + filter.len);
    summary->probes = (unsigned)probes;
    summary->filter_bytes = filter.len;
    summary->filter = memcpy(summary->open + open_count, filter.data, filter.len);
    summary->open_count = (size_t)open_count;
    for (size_t i = 0; i < open_count * 8; i++)
        summary->open[i / 8] |= (uint64_t)(unsigned char)bytes.data[i] << (i % 8 * 8);
    return summary;
}

struct sg_summary *sg_summary_parse(struct qf_str text)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf raw = QF_STRBUF_INIT;

    if (!qf_str_starts(text, QF_STR(VERSION)) || text.len > 2 + (SG_SUMMARY_BYTES_MAX + 2) / 3 * 4)
        return NULL;
    if (!qf_base64_decode(&raw, qf_str_sub(text, 2, text.len)))
        return NULL;
    return summary_decode(qf_strbuf_view(&raw));
}

struct sg_summary *sg_summary_free(struct sg_summary *summary)
{
    free(summary);
    return NULL;
}

size_t sg_summary_bytes(const struct sg_summary *summary)
{
    return summary ? sizeof(*summary) + summary->open_count * 8 + summary->filter_bytes : 0;
}

static bool has_key(const struct sg_summary *summary, uint64_t key)
{
    for (unsigned i = 0; i < summary->probes; i++) {
        uint64_t bit = probe(key, i, summary->filter_bytes * 8);

        if (!(summary->filter[bit / 8] & 1u << (bit % 8)))
            return false;
    }
    return true;
}

/* --- asking --- */

/* What one matcher asks for: a label, and one of some values if there are any. */
struct question {
    uint64_t name_hash;
    QF_VEC(uint64_t) keys;
};

struct sg_summary_probe {
    QF_VEC(struct question) questions;
};

/* The alternatives of "a|b|c" or "(a|b)". False if it is another kind of pattern, or if the empty
 * value is among them: of series without the label nothing is recorded. */
static bool split_alternatives(struct qf_str regex, struct question *question)
{
    size_t start = 0;

    if (regex.len >= 2 && regex.data[0] == '(' && regex.data[regex.len - 1] == ')')
        regex = qf_str_sub(regex, 1, regex.len - 1);
    for (size_t i = 0; i < regex.len; i++) {
        if (regex.data[i] == '\0' || strchr("\\.+*?()[]{}^$", regex.data[i]))
            return false;
    }
    for (size_t i = 0; i <= regex.len; i++) {
        if (i < regex.len && regex.data[i] != '|')
            continue;
        if (i == start || question->keys.count == ALTERNATIVES_MAX)
            return false;
        QF_VEC_PUSH(&question->keys, pair_key(question->name_hash, qf_str_sub(regex, start, i)));
        start = i + 1;
    }
    return true;
}

static struct question make_question(const struct pq_matcher *matcher)
{
    struct question question = { .name_hash = qf_hash_bytes(matcher->name) };

    if (matcher->type == PQ_MATCH_EQUAL)
        QF_VEC_PUSH(&question.keys, pair_key(question.name_hash, matcher->value));
    else if (matcher->type == PQ_MATCH_REGEX && !split_alternatives(matcher->value, &question))
        QF_VEC_DONE(&question.keys);
    return question;
}

struct sg_summary_probe *sg_summary_probe_new(const struct pq_matcher *matchers,
                                              size_t matcher_count)
{
    struct sg_summary_probe *probe = qf_xcalloc(1, sizeof(*probe));

    for (size_t i = 0; i < matcher_count; i++) {
        /* One that accepts the empty value is satisfied by series without the label. */
        if (!pq_matcher_matches(&matchers[i], QF_STR("")))
            QF_VEC_PUSH(&probe->questions, make_question(&matchers[i]));
    }
    return probe;
}

struct sg_summary_probe *sg_summary_probe_free(struct sg_summary_probe *probe)
{
    if (!probe)
        return NULL;
    for (size_t i = 0; i < probe->questions.count; i++)
        QF_VEC_DONE(&probe->questions.items[i].keys);
    QF_VEC_DONE(&probe->questions);
    free(probe);
    return NULL;
}

static bool is_open(const struct sg_summary *summary, uint64_t name_hash)
{
    return summary->open_count && bsearch(&name_hash, summary->open, summary->open_count,
                                          sizeof(uint64_t), by_u64) != NULL;
}

static bool may_answer(const struct sg_summary *summary, const struct question *question)
{
    if (!has_key(summary, question->name_hash))
        return false;
    if (!question->keys.count || is_open(summary, question->name_hash))
        return true;
    for (size_t i = 0; i < question->keys.count; i++) {
        if (has_key(summary, question->keys.items[i]))
            return true;
    }
    return false;
}

bool sg_summary_probe_may_match(const struct sg_summary_probe *probe,
                                const struct sg_summary *summary)
{
    for (size_t i = 0; summary && i < probe->questions.count; i++) {
        if (!may_answer(summary, &probe->questions.items[i]))
            return false;
    }
    return true;
}

bool sg_summary_may_match(const struct sg_summary *summary, const struct pq_matcher *matchers,
                          size_t matcher_count)
{
    struct sg_summary_probe *probe = sg_summary_probe_new(matchers, matcher_count);
    bool answer = sg_summary_probe_may_match(probe, summary);

    (void)sg_summary_probe_free(probe);
    return answer;
}
