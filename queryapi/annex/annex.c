/* annex.c - answers about exemplars and metadata: who makes them, and how they read. */
#include "queryapi/annex/annex.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/pool.h"
#include "queryapi/annex/annex_int.h"
#include "queryapi/encode/error.h"

/* They wait for the store more than they compute. */
#define THREADS 4
#define WAITING_MAX 256
/* Metadata of one answer, in all files. */
#define METADATA_BYTES_MAX ((size_t)128 << 20)

/* --- life --- */

struct qa_annex *qa_annex_new(const struct qa_annex_options *options)
{
    struct qa_annex *annex = qf_xcalloc(1, sizeof(*annex));

    annex->options = *options;
    annex->lock = qf_lock_new();
    annex->pool = qf_pool_new("annex", THREADS, WAITING_MAX);
    return annex->pool ? annex : qa_annex_free(annex);
}

struct qa_annex *qa_annex_free(struct qa_annex *annex)
{
    if (!annex)
        return NULL;
    atomic_store(&annex->stopping, true);
    if (annex->pool)
        annex->pool = qf_pool_free(annex->pool);
    qa_annex_forget(annex);
    (void)qf_lock_free(annex->lock);
    free(annex);
    return NULL;
}

struct qa_annex_ask *qa_annex_ask_new(struct qa_annex *annex, enum sg_annex_kind kind,
                                      struct qh_stream *stream, struct qf_str tenant)
{
    struct qa_annex_ask *ask = qf_xcalloc(1, sizeof(*ask));

    ask->annex = annex;
    ask->kind = kind;
    ask->stream = qh_stream_ref(stream);
    atomic_init(&ask->purse.limit, annex->options.memory_bytes_max);
    ask->purse.parent = annex->options.purse;
    ask->arena = qf_arena_new_from(&ask->purse);
    ask->tenant = qf_arena_str(ask->arena, tenant);
    ask->min_ts = INT64_MIN;
    ask->max_ts = INT64_MAX;
    return ask;
}

struct qa_annex_ask *qa_annex_ask_free(struct qa_annex_ask *ask)
{
    if (!ask)
        return NULL;
    (void)qf_arena_free(ask->arena);
    (void)qh_stream_drop(ask->stream);
    qf_strbuf_done(&ask->heads);
    free(ask);
    return NULL;
}

/* --- answering --- */

static bool is_wanted(void *ctx, const struct sg_metadata *metadata)
{
    const struct qa_annex_ask *ask = ctx;

    return (int64_t)(metadata->generation / 1000) >= ask->min_ts &&
           (!ask->metric.len || qf_str_eq(metadata->name, ask->metric));
}

static void print_metadata(struct qf_strbuf *body, const struct qa_annex_answer *answer)
{
    size_t count;
    const struct sg_metadata **items =
        sg_annex_metadata(answer->metadata, is_wanted, answer->ask, &count);

    if (answer->ask->limit)
        count = QF_MIN(count, (size_t)answer->ask->limit);
    qf_strbuf_putc(body, '{');
    for (size_t i = 0; i < count; i++) {
        qf_strbuf_puts(body, i ? "," : "");
        qf_strbuf_json(body, items[i]->name);
        qf_strbuf_printf(body, ":[{\"type\":\"%s\",\"help\":", qf_metric_type_text(items[i]->type));
        qf_strbuf_json(body, items[i]->help);
        qf_strbuf_puts(body, ",\"unit\":");
        qf_strbuf_json(body, items[i]->unit);
        qf_strbuf_puts(body, "}]");
    }
    qf_strbuf_putc(body, '}');
    free(items);
}

/* What went wrong with the store is for its operator. */
static void answer_error(const struct qa_annex_ask *ask, const struct qf_err *err)
{
    bool asked = err->rc == QF_ELIMIT || err->rc == QF_EUNAVAILABLE || err->rc == QF_ETIMEOUT ||
                 err->rc == QF_ECANCELED || err->rc == QF_ECORRUPT || err->rc == QF_EUNSUPPORTED;

    if (!asked)
        QF_LOG_WARN("exemplars or metadata cannot be read", QF_KV_SLICE("tenant", ask->tenant),
                    QF_KV_STR("error", err->msg));
    qa_answer_error(ask->stream, QA_FORMAT_JSON, asked ? err->rc : QF_ESTORE,
                    asked ? err->msg : "the store cannot be read; the server's log says more");
}

static void make_answer(void *arg)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct qa_annex_ask *ask = arg;
    struct qa_annex_answer answer = { .ask = ask, .metadata = sg_annex_new(METADATA_BYTES_MAX) };
    struct qf_err err = { 0 };
    qf_rc rc =
        qf_arena_failed(ask->arena) ? qa_annex_spent(ask, &err) : qa_annex_read(&answer, &err);

    if (rc == QF_OK)
        rc = qa_annex_read_heads(&answer, &err);
    if (rc == QF_OK) {
        qf_strbuf_puts(&body, "{\"status\":\"success\",\"data\":");
        if (ask->kind == SG_ANNEX_METADATA) {
            print_metadata(&body, &answer);
        } else {
            sg_found_sort(&answer.found);
            sg_found_print(&body, &answer.found, ask->limit);
        }
        qf_strbuf_puts(&body, "}");
        qh_stream_answer(ask->stream, 200, "application/json", qf_strbuf_view(&body));
    } else {
        answer_error(ask, &err);
    }
    (void)sg_annex_free(answer.metadata);
    (void)qa_annex_ask_free(ask);
}

bool qa_annex_submit(struct qa_annex_ask *ask)
{
    if (ask->annex->options.timeout_ms)
        ask->deadline_ms = qf_clock_mono_ms() + ask->annex->options.timeout_ms;
    return qf_pool_submit(ask->annex->pool, make_answer, ask);
}
