/* ahead.c - a part of a large document as text, made by several threads at once. */
#include "queryapi/query/ahead.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/thread.h"
#include "queryapi/encode/prom_json.h"

/* About what a point takes: a time of ten digits, a value of seventeen. */
#define POINT_BYTES 36
#define LABEL_BYTES 24
#define HELPERS_MAX 7

struct chunk {
    size_t first, end;
    struct qf_strbuf text;
};

struct qa_ahead {
    const struct pq_result_series *series; /* whoever holds a chunk that is not written may look */
    QF_VEC(struct chunk) chunks;
    atomic_size_t next; /* the chunk to be taken next */
    size_t out, offset; /* what is to be sent next */
    struct qf_lock *lock;
    size_t written; /* chunks; under the lock, as the next */
    unsigned refs;  /* the query, and helpers that have not ended */
};

static void drop(struct qa_ahead *ahead)
{
    unsigned left;

    qf_lock_take(ahead->lock);
    left = --ahead->refs;
    qf_lock_drop(ahead->lock);
    if (left)
        return;
    for (size_t i = 0; i < ahead->chunks.count; i++)
        qf_strbuf_done(&ahead->chunks.items[i].text);
    QF_VEC_DONE(&ahead->chunks);
    (void)qf_lock_free(ahead->lock);
    free(ahead);
}

static void write_chunk(const struct qa_ahead *ahead, struct chunk *chunk)
{
    struct qa_json_times times = { 0 };

    for (size_t i = chunk->first; i < chunk->end; i++) {
        const struct pq_result_series *series = &ahead->series[i];

        qf_strbuf_puts(&chunk->text, i ? ",{\"metric\":" : "{\"metric\":");
        qf_labels_json(&chunk->text, series->labels);
        if (series->count) {
            qf_strbuf_puts(&chunk->text, ",\"values\":[");
            for (size_t k = 0; k < series->count; k++) {
                if (k)
                    qf_strbuf_putc(&chunk->text, ',');
                qa_json_float(&chunk->text, &times, k, series->ts[k], series->values[k]);
            }
            qf_strbuf_putc(&chunk->text, ']');
        }
        qf_strbuf_putc(&chunk->text, '}');
    }
    qa_json_times_done(&times);
}

static void write_chunks(struct qa_ahead *ahead)
{
    size_t index;

    while ((index = atomic_fetch_add(&ahead->next, 1)) < ahead->chunks.count) {
        write_chunk(ahead, &ahead->chunks.items[index]);
        qf_lock_take(ahead->lock);
        ahead->written++;
        qf_lock_wake_all(ahead->lock);
        qf_lock_drop(ahead->lock);
    }
}

static void help(void *arg)
{
    write_chunks(arg);
    drop(arg);
}

static void ask_for_help(struct qa_ahead *ahead, struct qf_pool *pool)
{
    for (size_t i = 1; pool && i < ahead->chunks.count && i <= HELPERS_MAX; i++) {
        qf_lock_take(ahead->lock);
        ahead->refs++;
        qf_lock_drop(ahead->lock);
        if (!qf_pool_submit(pool, help, ahead)) {
            drop(ahead);
            return;
        }
    }
}

/* Cut the window into chunks. */
static size_t cut(struct qa_ahead *ahead, size_t first, size_t count)
{
    size_t bytes = 0, all = 0, end = first;

    while (end < count && all < QA_AHEAD_WINDOW_BYTES) {
        const struct pq_result_series *series = &ahead->series[end++];

        bytes += series->labels.count * LABEL_BYTES + series->count * POINT_BYTES;
        if (bytes < QA_AHEAD_CHUNK_BYTES && end < count)
            continue;
        QF_VEC_PUSH(&ahead->chunks, (struct chunk){ .first = first, .end = end });
        first = end;
        all += bytes;
        bytes = 0;
    }
    return end;
}

struct qa_ahead *qa_ahead_new(const struct pq_result_series *series, size_t first, size_t count,
                              struct qf_pool *pool, size_t *ret_end)
{
    struct qa_ahead *ahead = qf_xcalloc(1, sizeof(*ahead));

    ahead->series = series;
    ahead->lock = qf_lock_new();
    ahead->refs = 1;
    *ret_end = cut(ahead, first, count);
    ask_for_help(ahead, pool);
    write_chunks(ahead);
    qf_lock_take(ahead->lock);
    while (ahead->written < ahead->chunks.count)
        (void)qf_lock_wait(ahead->lock, -1);
    qf_lock_drop(ahead->lock);
    return ahead;
}

struct qa_ahead *qa_ahead_free(struct qa_ahead *ahead)
{
    if (ahead)
        drop(ahead);
    return NULL;
}

struct qf_str qa_ahead_text(const struct qa_ahead *ahead, size_t most)
{
    struct qf_str text;

    if (ahead->out == ahead->chunks.count)
        return QF_STR("");
    text = qf_strbuf_view(&ahead->chunks.items[ahead->out].text);
    return qf_str_sub(text, ahead->offset, QF_MIN(text.len, ahead->offset + most));
}

void qa_ahead_take(struct qa_ahead *ahead, size_t bytes)
{
    struct chunk *chunk = &ahead->chunks.items[ahead->out];

    ahead->offset += bytes;
    if (ahead->offset < chunk->text.len)
        return;
    qf_strbuf_done(&chunk->text);
    ahead->out++;
    ahead->offset = 0;
}
