/* documents.c - requests of documents: what is asked of replicas, and what their senders hear. */
#include "ingest/docs/documents.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/base64.h"
#include "base/pure/utf8.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/pool.h"
#include "ingest/docs/counter.h"
#include "ingest/docs/once.h"
#include "ingest/metrics.h"

/* A context is of times that clocks of nodes could have shown: it cannot put a document out of reach. */
#define AHEAD_MS (INT64_C(24) * 60 * 60 * 1000)
/* A request of which the log says that it took long. */
#define SLOW_MS 1000

struct in_documents {
    struct in_replicas *replicas;
    struct in_counter *counter;
    struct in_metrics *metrics;
    struct in_once *once;
    struct qf_pool *pool;
};

struct task {
    struct in_documents *documents;
    struct qh_stream *stream;
    int64_t began_ms;
    struct in_document_ask ask; /* texts are below */
    struct qf_strbuf texts;
};

/* --- answers --- */

static void count(const struct task *task, enum in_document_outcome outcome)
{
    qf_metric_add(task->documents->metrics->documents_requests, (size_t)outcome, 1);
}

/* Each at debug; at info what should be rare, and what took long. */
static void note(const struct task *task, int status)
{
    static const char *const verbs[] = { "GET", "POST", "DELETE" };
    int64_t ms = qf_clock_mono_ms() - task->began_ms;
    const char *what = status == 409   ? "an idempotency key stands for another request"
                       : ms >= SLOW_MS ? "slow request of a document"
                                       : "request of a document";

    qf_metric_observe(task->documents->metrics->documents_seconds, (double)ms / 1000);
    QF_LOG_AT(status == 409 || ms >= SLOW_MS ? QF_LOG_LEVEL_INFO : QF_LOG_LEVEL_DEBUG, what,
              QF_KV_SLICE("tenant", task->ask.tenant), QF_KV_SLICE("key", task->ask.key),
              QF_KV_STR("method", verbs[task->ask.verb]), QF_KV_I64("status", status),
              QF_KV_I64("ms", ms));
}

static void send(struct task *task, int status, const struct qf_strbuf *body)
{
    note(task, status);
    if (status == 503)
        qh_stream_header(task->stream, "Retry-After", "1");
    qh_stream_answer(task->stream, status, "application/json", qf_strbuf_view(body));
}

static void put_key(const struct task *task, struct qf_strbuf *body)
{
    qf_strbuf_puts(body, ",\"key\":");
    qf_strbuf_json(body, task->ask.key);
}

static void put_context(struct qf_strbuf *body, const struct rg_context *context)
{
    qf_strbuf_puts(body, ",\"context\":\"");
    rg_context_print(body, context);
    qf_strbuf_putc(body, '"');
}

static void put_error(struct qf_strbuf *body, qf_rc rc, const char *why)
{
    qf_strbuf_puts(body, "{\"error\":");
    qf_strbuf_json(body, qf_str_from(qf_rc_name(rc)));
    qf_strbuf_puts(body, ",\"message\":");
    qf_strbuf_json(body, qf_str_from(why));
}

static void fail(struct task *task, enum in_document_outcome outcome, const struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    put_error(&body, err->rc, err->msg);
    qf_strbuf_puts(&body, "}\n");
    count(task, outcome);
    send(task, qf_rc_http_status(err->rc), &body);
}

static void put_replicas(const struct task *task, const struct in_round_of *round,
                         struct qf_strbuf *body)
{
    qf_strbuf_puts(body, ",\"replicas\":[");
    for (size_t i = 0; i < round->count; i++) {
        const struct in_replica *replica = &round->replicas[i];

        qf_strbuf_puts(body, i ? ",{\"node\":" : "{\"node\":");
        qf_strbuf_json(body, qf_str_from(replica->node));
        qf_strbuf_puts(body, ",\"answer\":");
        qf_strbuf_json(body, qf_str_from(replica->ok ? "ok" : qf_rc_name(replica->rc)));
        if (!replica->ok && task->ask.operates) {
            qf_strbuf_puts(body, ",\"message\":");
            qf_strbuf_json(body, qf_str_from(replica->text));
        }
        qf_strbuf_putc(body, '}');
    }
    qf_strbuf_putc(body, ']');
}

static const char *level_name(enum rg_level level)
{
    return level == RG_LEVEL_ONE ? "one" : level == RG_LEVEL_ALL ? "all" : "quorum";
}

/* The level is not met: with what each owner said. A write may be there all the same. */
static void answer_not_met(struct task *task, const struct in_round_of *round, bool wrote)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf why = QF_STRBUF_INIT;

    qf_strbuf_printf(&why, "level %s is not met: %u of %u owners %s", level_name(task->ask.level),
                     round->have, round->owners, wrote ? "have it" : "answered");
    put_error(&body, QF_EUNAVAILABLE, qf_strbuf_cstr(&why));
    qf_strbuf_printf(&body, ",\"unknown\":%s", wrote ? "true" : "false");
    put_replicas(task, round, &body);
    qf_strbuf_puts(&body, "}\n");
    count(task, IN_DOCUMENT_NOT_MET);
    send(task, 503, &body);
}

static void answer_written(struct task *task, const struct rg_context *context, bool repeated)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_puts(&body, "{\"status\":\"ok\"");
    put_key(task, &body);
    qf_strbuf_printf(&body, ",\"time_ms\":%" PRId64, context->time_ms);
    put_context(&body, context);
    qf_strbuf_puts(&body, "}\n");
    if (repeated)
        qh_stream_header(task->stream, "Idempotent-Replayed", "true");
    count(task, repeated ? IN_DOCUMENT_REPEATED : IN_DOCUMENT_DONE);
    send(task, 200, &body);
}

static void put_value(struct qf_strbuf *body, const struct rg_sheet *sheet,
                      const struct rg_value *value)
{
    struct qf_str bytes = rg_sheet_bytes(sheet, value);

    qf_strbuf_printf(body, "\"time_ms\":%" PRId64, value->time_ms);
    if (!value->content) {
        qf_strbuf_puts(body, ",\"deleted\":true");
    } else if (qf_utf8_valid(bytes)) {
        qf_strbuf_puts(body, ",\"value\":");
        qf_strbuf_json(body, bytes);
    } else {
        qf_strbuf_puts(body, ",\"base64\":\"");
        qf_base64_encode(body, bytes);
        qf_strbuf_putc(body, '"');
    }
}

/* Values that lost against the first one; those that say the same are not worth a word. */
static void put_siblings(struct qf_strbuf *body, const struct rg_sheet *sheet)
{
    const struct rg_document *document = &sheet->document;
    const char *between = "";

    qf_strbuf_puts(body, ",\"siblings\":[");
    for (unsigned i = 1; i < document->count; i++) {
        if (document->values[i].content == document->values[0].content)
            continue;
        qf_strbuf_printf(body, "%s{", between);
        put_value(body, sheet, &document->values[i]);
        qf_strbuf_putc(body, '}');
        between = ",";
    }
    qf_strbuf_putc(body, ']');
}

static bool is_live(const struct rg_document *document)
{
    for (unsigned i = 0; i < document->count; i++)
        if (document->values[i].content)
            return true;
    return false;
}

static void answer_read(struct task *task, const struct rg_sheet *sheet)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    const struct rg_context context = rg_sheet_context(sheet);
    bool live = is_live(&sheet->document);

    if (live)
        qf_strbuf_puts(&body, "{\"status\":\"ok\"");
    else
        put_error(&body, QF_ENOTFOUND, "there is no such document");
    put_key(task, &body);
    if (sheet->document.count) /* also of a deletion: who writes next hands it back */
        put_context(&body, &context);
    if (live) {
        qf_strbuf_putc(&body, ',');
        put_value(&body, sheet, &sheet->document.values[0]);
        put_siblings(&body, sheet);
    }
    qf_strbuf_puts(&body, "}\n");
    if (sheet->document.count > 1)
        qf_metric_add(task->documents->metrics->documents_conflicts, 0, 1);
    count(task, live ? IN_DOCUMENT_DONE : IN_DOCUMENT_NOT_FOUND);
    send(task, live ? 200 : 404, &body);
}

/* --- reading --- */

static void run_get(struct task *task)
{
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    const struct in_document_ask *ask = &task->ask;
    struct in_round_of round;
    struct qf_err err = { 0 };

    if (in_replicas_read(task->documents->replicas, ask->tenant, ask->key, ask->level, &sheet,
                         &round, &err) != QF_OK)
        fail(task, IN_DOCUMENT_FAILED, &err);
    else if (!round.met)
        answer_not_met(task, &round, false);
    else
        answer_read(task, &sheet);
}

/* --- writing --- */

/* Who makes up a context harms this document alone, and not with times and numbers that are still to come. */
static qf_rc check_context(struct task *task, int64_t now_ms, struct qf_err *err)
{
    struct in_counter *counter = task->documents->counter;
    const struct rg_context *context = &task->ask.context;

    if (context->time_ms > now_ms + AHEAD_MS)
        return qf_err_set(
            err, QF_EINVAL,
            "the context is of a time that is still to come: read the document again");
    for (unsigned i = 0; i < context->clock.count; i++)
        if (context->clock.entries[i].coordinator == in_counter_incarnation(counter) &&
            context->clock.entries[i].counter > in_counter_last(counter))
            return qf_err_set(err, QF_EINVAL,
                              "the context names a write that this node has not made");
    return QF_OK;
}

static struct rg_repeat repeat_of(const struct in_document_ask *ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf request = QF_STRBUF_INIT;
    struct rg_repeat repeat = { 0 };

    qf_strbuf_putc(&request, (char)('0' + ask->verb));
    rg_context_print(&request, &ask->context);
    qf_strbuf_putc(&request, ' ');
    qf_strbuf_str(&request, ask->value);
    rg_digest(ask->repeat_key, repeat.key);
    rg_digest(qf_strbuf_view(&request), repeat.request);
    return repeat;
}

/* Join @sheet at the owners, and answer. */
static void write(struct task *task, const struct rg_sheet *sheet, const struct rg_context *context,
                  bool repeated)
{
    const struct in_document_ask *ask = &task->ask;
    struct in_round_of round;
    struct qf_err err = { 0 };

    if (in_replicas_join(task->documents->replicas, ask->tenant, ask->key, ask->level, sheet,
                         &round, &err) != QF_OK)
        fail(task, IN_DOCUMENT_FAILED, &err);
    else if (!round.met)
        answer_not_met(task, &round, true);
    else
        answer_written(task, context, repeated);
}

/* True: it was answered, since a request of this key was. */
static bool answer_repeat(struct task *task, const struct rg_repeat *repeat, int64_t now_ms)
{
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    const struct in_document_ask *ask = &task->ask;
    const struct rg_repeat *before;
    struct in_round_of round;
    struct qf_err err = { 0 };

    if (in_replicas_read(task->documents->replicas, ask->tenant, ask->key, ask->level, &sheet,
                         &round, &err) != QF_OK) {
        fail(task, IN_DOCUMENT_FAILED, &err);
        return true;
    }
    if (!round.met) {
        answer_not_met(task, &round, false);
        return true;
    }
    before = rg_sheet_repeat(&sheet, repeat->key, now_ms);
    if (!before)
        return false;
    if (memcmp(before->request, repeat->request, RG_DIGEST_BYTES) != 0) {
        (void)qf_err_set(&err, QF_ECONFLICT,
                         "another request was sent with this idempotency key before");
        fail(task, IN_DOCUMENT_REFUSED, &err);
        return true;
    }
    write(task, &sheet, &before->context, true); /* the first time it may not have got far enough */
    return true;
}

static void run_put(struct task *task)
{
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    const struct in_document_ask *ask = &task->ask;
    struct in_documents *documents = task->documents;
    struct rg_repeat repeat = { 0 };
    int64_t now_ms = qf_clock_wall_ms();
    struct qf_err err = { 0 };
    struct rg_value value;
    uint64_t number = 0;

    if (check_context(task, now_ms, &err) != QF_OK) {
        fail(task, IN_DOCUMENT_REFUSED, &err);
        return;
    }
    if (ask->repeat_key.len) {
        repeat = repeat_of(ask);
        if (answer_repeat(task, &repeat, now_ms))
            return;
    }
    if (in_counter_next(documents->counter, &number, &err) != QF_OK) {
        fail(task, IN_DOCUMENT_FAILED, &err);
        return;
    }
    value = rg_context_write(&ask->context, in_counter_incarnation(documents->counter), number,
                             now_ms, ask->verb == IN_DOCUMENT_PUT ? rg_content_id(ask->value) : 0);
    repeat.context = (struct rg_context){ value.clock, value.time_ms };
    rg_sheet_add(&sheet, &value, ask->value);
    if (ask->repeat_key.len)
        rg_sheet_remember(&sheet, &repeat);
    write(task, &sheet, &repeat.context, false);
}

/* Of two requests of a key at the same moment neither would find the other one in the document. */
static void run_once(struct task *task)
{
    const struct in_document_ask *ask = &task->ask;
    struct in_once *once = task->documents->once;
    uint8_t id[RG_DIGEST_BYTES];
    struct qf_err err = { 0 };

    if (in_once_begin(once, ask->tenant, ask->key, ask->repeat_key, id)) {
        run_put(task);
        in_once_end(once, id);
        return;
    }
    (void)qf_err_set(&err, QF_ECONFLICT, "a request with this idempotency key is under way");
    fail(task, IN_DOCUMENT_REFUSED, &err);
}

/* --- requests --- */

static void run_task(void *arg)
{
    struct task *task = arg;

    if (task->ask.verb == IN_DOCUMENT_GET)
        run_get(task);
    else if (task->ask.repeat_key.len)
        run_once(task);
    else
        run_put(task);
    (void)qh_stream_drop(task->stream);
    qf_strbuf_done(&task->texts);
    free(task);
}

/* The texts of a request, in memory of its own. */
static void own_texts(struct task *task)
{
    struct qf_str *const texts[] = { &task->ask.tenant, &task->ask.key, &task->ask.value,
                                     &task->ask.repeat_key };
    size_t at = 0;

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++)
        qf_strbuf_str(&task->texts, *texts[i]);
    for (size_t i = 0; i < QF_COUNT_OF(texts); i++) {
        texts[i]->data = qf_strbuf_cstr(&task->texts) + at;
        at += texts[i]->len;
    }
}

bool in_documents_submit(struct in_documents *documents, const struct in_document_ask *ask,
                         struct qh_stream *stream)
{
    struct task *task = qf_xcalloc(1, sizeof(*task));

    *task = (struct task){ .documents = documents,
                           .stream = qh_stream_ref(stream),
                           .began_ms = qf_clock_mono_ms(),
                           .ask = *ask };
    own_texts(task);
    if (qf_pool_submit(documents->pool, run_task, task))
        return true;
    (void)qh_stream_drop(task->stream);
    qf_strbuf_done(&task->texts);
    free(task);
    return false;
}

/* --- beginning and end --- */

qf_rc in_documents_start(const struct in_documents_options *options, struct rg_board *board,
                         struct in_metrics *metrics, struct in_documents **ret_documents,
                         struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf dir = QF_STRBUF_INIT;
    struct in_documents *documents = qf_xcalloc(1, sizeof(*documents));
    qf_rc rc;

    documents->metrics = metrics;
    documents->once = in_once_new();
    qf_strbuf_printf(&dir, "%s/documents", options->data);
    rc = in_counter_open(qf_strbuf_cstr(&dir), &documents->counter, err);
    if (rc == QF_OK) {
        documents->replicas = in_replicas_new(&options->keepers, options->handoff, board, err);
        rc = documents->replicas ? QF_OK : err->rc;
    }
    if (rc == QF_OK) {
        documents->pool = qf_pool_new("document", IN_DOCUMENT_THREADS, IN_DOCUMENTS_MAX);
        if (!documents->pool)
            rc = qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    }
    if (rc == QF_OK)
        *ret_documents = documents;
    else
        (void)in_documents_stop(documents);
    return rc;
}

struct in_documents *in_documents_stop(struct in_documents *documents)
{
    if (documents) {
        in_replicas_halt(documents->replicas);
        if (documents->pool)
            documents->pool = qf_pool_free(documents->pool);
        documents->replicas = in_replicas_free(documents->replicas);
        documents->counter = in_counter_free(documents->counter);
        documents->once = in_once_free(documents->once);
        free(documents);
    }
    return NULL;
}

void in_documents_lacking(struct in_documents *documents, uint32_t slot, const char *name)
{
    in_replicas_lacking(documents->replicas, slot, name);
}

void in_documents_figures(struct in_documents *documents, struct in_replicas_figures *ret_figures)
{
    *ret_figures = (struct in_replicas_figures){ 0 };
    if (documents)
        in_replicas_figures(documents->replicas, ret_figures);
}
