/* route_keep.c - requests to a keeper (ring/wire/keeper.h): read, handed to a pool, answered. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/http/range.h"
#include "base/pure/alloc.h"
#include "base/pure/hex.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "queryworker/keep/keep.h"

/* A fetch of many blobs ends by itself; the next request goes on with what is missing. */
#define STREAM_MS (INT64_C(5) * 60 * 1000)

/* A request on its way through the pool. */
struct task {
    struct qw_keep *keep;
    struct qh_stream *stream;
    struct rg_keep_query query;
    bool has_was;
    struct rg_sum was;
    char *name, *after, *body; /* owned; what the request said */
    size_t body_len;
    void (*run)(struct task *task, struct kp_said *said, struct qf_strbuf *body);
};

static struct qf_str body_of(const struct task *task)
{
    return (struct qf_str){ task->body, task->body_len };
}

/* --- answers --- */

static void add_life(struct qh_stream *stream, struct qw_keep *keep)
{
    struct kp_life life = kp_life(qw_keep_keeper(keep));
    char text[24];

    (void)snprintf(text, sizeof(text), "%016" PRIx64, life.incarnation);
    qh_stream_header(stream, RG_KEEP_INCARNATION, text);
    qh_stream_header(stream, RG_KEEP_TOLD, life.told ? "1" : "0");
}

static void answer(struct qh_stream *stream, struct qw_keep *keep, const struct kp_said *said,
                   struct qf_str body)
{
    char text[24];

    add_life(stream, keep);
    if (said->status == 409) {
        (void)snprintf(text, sizeof(text), "%" PRIu64, said->epoch);
        qh_stream_header(stream, RG_KEEP_EPOCH, text);
    }
    if (said->status == 503)
        qh_stream_header(stream, "Retry-After", "1");
    if (said->status < 300 && body.len)
        qh_stream_answer(stream, said->status, "application/octet-stream", body);
    else
        qh_stream_answer(stream, said->status, "text/plain; charset=utf-8",
                         qf_str_from(said->text));
}

static void refuse(struct qh_visit *visit, int status, const char *why)
{
    struct kp_said said = { .status = status };

    (void)snprintf(said.text, sizeof(said.text), "%s\n", why);
    answer(visit->stream, qw_http_keep(visit->role), &said, QF_STR(""));
}

static void fail(struct qh_visit *visit, const struct qf_err *err)
{
    refuse(visit, qf_rc_http_status(err->rc), err->msg);
}

static void task_free(struct task *task)
{
    (void)qh_stream_drop(task->stream);
    free(task->name);
    free(task->after);
    free(task->body);
    free(task);
}

static void run_task(void *arg)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct kp_said said = { .status = 200 };
    struct task *task = arg;

    task->run(task, &said, &body);
    answer(task->stream, task->keep, &said, qf_strbuf_view(&body));
    task_free(task);
}

/* --- what was asked --- */

static bool param_u64(struct qh_visit *visit, const char *name, uint64_t max, uint64_t *ret_value)
{
    struct qf_str text = qh_visit_param(visit, name);

    return qf_parse_u64(text, ret_value) && *ret_value <= max;
}

static bool read_upload(struct qh_visit *visit, struct rg_keep_query *query)
{
    query->upload = true;
    return param_u64(visit, "size", RG_KEEP_BLOB_BYTES_MAX, &query->size) &&
           param_u64(visit, "from", RG_KEEP_BLOB_BYTES_MAX, &query->from) &&
           qf_hex_u64(qh_visit_param(visit, "upload"), &query->upload_id) &&
           rg_sum_parse(qh_visit_param(visit, "sum"), &query->sum);
}

/* False: answered. */
static bool is_of_the_ring(struct qh_visit *visit)
{
    if (visit->caller.sees_all && visit->request->peer_verified)
        return true;
    refuse(visit, 403, "this is for the nodes of the ring: a key for all tenants, a certificate");
    return false;
}

/* False: answered. */
static bool read_query(struct qh_visit *visit, bool named, struct rg_keep_query *query)
{
    uint64_t slot = 0;

    *query = (struct rg_keep_query){ .name = qh_visit_param(visit, "name") };
    if (!is_of_the_ring(visit))
        return false;
    if (!param_u64(visit, "slot", RG_SLOTS - 1, &slot) ||
        !param_u64(visit, "epoch", UINT64_MAX, &query->epoch) ||
        (named && !rg_blob_name_valid(query->name))) {
        refuse(visit, 400, "expected slot, epoch and the name of a blob or document");
        return false;
    }
    query->slot = (uint32_t)slot;
    return true;
}

static char *copy(struct qf_str text)
{
    return text.len ? qf_xmemdup0(text.data, text.len) : NULL;
}

static void submit(struct qh_visit *visit, const struct rg_keep_query *query, bool slow,
                   void (*run)(struct task *, struct kp_said *, struct qf_strbuf *))
{
    struct qw_keep *keep = qw_http_keep(visit->role);
    struct qf_str was = qh_visit_param(visit, "was");
    struct task *task = qf_xcalloc(1, sizeof(*task));

    task->keep = keep;
    task->stream = qh_stream_ref(visit->stream);
    task->query = *query;
    task->has_was = rg_sum_parse(was, &task->was);
    task->name = copy(query->name);
    task->query.name = (struct qf_str){ task->name, query->name.len };
    task->after = copy(qh_visit_param(visit, "after"));
    task->body = copy(visit->request->body);
    task->body_len = visit->request->body.len;
    task->run = run;
    if (was.len && !task->has_was) {
        refuse(visit, 400, "`was` is not a checksum");
    } else if (qw_keep_submit(keep, slow, run_task, task)) {
        return;
    } else {
        qf_metric_add(qw_keep_metrics(keep)->keep_busy, 0, 1);
        refuse(visit, 503, "too many requests are under way at this keeper");
    }
    task_free(task);
}

/* --- blobs --- */

static void run_put(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    (void)body;
    kp_put(qw_keep_keeper(task->keep), &task->query, body_of(task), said);
}

static void run_delete(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    (void)body;
    kp_delete(qw_keep_keeper(task->keep), &task->query, said);
}

static void send_blob(struct qh_visit *visit, const struct rg_keep_query *query)
{
    struct qw_keep *keep = qw_http_keep(visit->role);
    struct kp_said said = { 0 };
    struct kp_file file;
    char sum[RG_SUM_TEXT + 1];

    kp_get(qw_keep_keeper(keep), query->name, &file, &said);
    if (said.status != 200) {
        answer(visit->stream, keep, &said, QF_STR(""));
        return;
    }
    add_life(visit->stream, keep);
    rg_sum_print(&file.sum, sum);
    qh_stream_header(visit->stream, RG_KEEP_SUM, sum);
    (void)qh_range_send(visit->stream, qh_request_header(visit->request, "Range"),
                        "application/octet-stream", &(struct qh_body){ .fd = file.fd }, file.size);
}

static void handle_blob(struct qh_visit *visit)
{
    struct rg_keep_query query;

    if (!read_query(visit, true, &query))
        return;
    if (visit->request->method == QH_METHOD_PUT && !read_upload(visit, &query))
        refuse(visit, 400, "expected size, from, upload and sum");
    else if (visit->request->method == QH_METHOD_PUT)
        submit(visit, &query, false, run_put);
    else if (visit->request->method == QH_METHOD_DELETE)
        submit(visit, &query, false, run_delete);
    else
        send_blob(visit, &query);
}

/* --- slots --- */

static void run_tell(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    QF_CLEANUP(qf_freep) uint64_t *epochs = qf_xcalloc(RG_SLOTS, sizeof(*epochs));
    uint32_t count;

    (void)body;
    if (rg_told_decode(body_of(task), epochs, &count) == QF_OK)
        kp_tell(qw_keep_keeper(task->keep), epochs, count, said);
    else
        *said = (struct kp_said){ .status = 400, .text = "the epochs cannot be read\n" };
}

static void handle_tell(struct qh_visit *visit)
{
    struct rg_keep_query none = { 0 };

    if (visit->caller.sees_all && visit->request->peer_verified)
        submit(visit, &none, false, run_tell);
    else
        refuse(visit, 403, "this is for ingest nodes: a key for all tenants, a certificate");
}

static void run_names(struct task *task, bool streams, struct kp_said *said, struct qf_strbuf *body)
{
    struct sg_store_limit limit = { .deadline_ms = qf_clock_mono_ms() + STREAM_MS };
    struct kp_keeper *keeper = qw_keep_keeper(task->keep);
    struct rg_held held = { 0 };
    struct rg_names names;

    if (rg_names_decode(body_of(task), &names) != QF_OK) {
        *said = (struct kp_said){ .status = 400, .text = "the names cannot be read\n" };
        return;
    }
    if (streams)
        kp_stream(keeper, qw_keep_client(task->keep), &task->query, &names, &limit, &held, said);
    else
        kp_hold(keeper, &task->query, &names, &held, said);
    rg_held_encode(body, &held);
    rg_held_done(&held);
    rg_names_done(&names);
}

static void run_hold(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    run_names(task, false, said, body);
}

static void run_stream(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    run_names(task, true, said, body);
}

static void run_clean(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    struct rg_held held = { 0 };

    kp_clean(qw_keep_keeper(task->keep), &task->query, &held, said);
    rg_held_encode(body, &held);
    rg_held_done(&held);
}

static void handle_hold(struct qh_visit *visit)
{
    struct rg_keep_query query;

    if (read_query(visit, false, &query))
        submit(visit, &query, false, run_hold);
}

static void handle_stream(struct qh_visit *visit)
{
    struct rg_keep_query query;

    if (read_query(visit, false, &query))
        submit(visit, &query, true, run_stream);
}

static void handle_clean(struct qh_visit *visit)
{
    struct rg_keep_query query;

    if (read_query(visit, false, &query))
        submit(visit, &query, true, run_clean);
}

/* --- documents --- */

static void run_doc_put(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    (void)body;
    kp_doc_put(qw_keep_keeper(task->keep), &task->query, body_of(task),
               task->has_was ? &task->was : NULL, said);
}

static void run_doc_get(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    kp_doc_get(qw_keep_keeper(task->keep), &task->query, body, said);
    if (said->status == 200 && !body->len)
        said->text[0] = '\0'; /* an empty document */
}

static void run_docs(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    struct qf_str after = task->after ? qf_str_from(task->after) : QF_STR("");

    kp_docs(qw_keep_keeper(task->keep), &task->query, after, body, said);
}

static void run_sums(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    struct qf_str after = task->after ? qf_str_from(task->after) : QF_STR("");

    kp_doc_sums(qw_keep_keeper(task->keep), &task->query, after, body, said);
}

static void run_digests(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    struct rg_digests digests;

    (void)said;
    kp_doc_digests(qw_keep_keeper(task->keep), &digests);
    rg_digests_encode(body, &digests);
    rg_digests_done(&digests);
}

static void run_heat(struct task *task, struct kp_said *said, struct qf_strbuf *body)
{
    uint64_t heat[RG_SLOTS];

    (void)said;
    kp_heat(qw_keep_keeper(task->keep), qf_clock_mono_ms(), heat);
    rg_told_encode(body, heat, RG_SLOTS);
}

static void handle_doc(struct qh_visit *visit)
{
    bool puts = visit->request->method == QH_METHOD_PUT;
    struct rg_keep_query query;

    if (read_query(visit, true, &query))
        submit(visit, &query, false, puts ? run_doc_put : run_doc_get);
}

static void handle_docs(struct qh_visit *visit)
{
    struct rg_keep_query query;

    if (read_query(visit, false, &query))
        submit(visit, &query, false, run_docs);
}

static void handle_sums(struct qh_visit *visit)
{
    struct rg_keep_query query;

    if (read_query(visit, false, &query))
        submit(visit, &query, true, run_sums);
}

/* --- of all slots --- */

static void handle_all(struct qh_visit *visit,
                       void (*run)(struct task *, struct kp_said *, struct qf_strbuf *))
{
    struct rg_keep_query none = { 0 };

    if (is_of_the_ring(visit))
        submit(visit, &none, false, run);
}

static void handle_digests(struct qh_visit *visit)
{
    handle_all(visit, run_digests);
}

static void handle_heat(struct qh_visit *visit)
{
    handle_all(visit, run_heat);
}

/* --- for people --- */

static void handle_status(struct qh_visit *visit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct qw_keep *keep = qw_http_keep(visit->role);
    struct kp_figures f = kp_figures(qw_keep_keeper(keep));
    struct kp_life life = kp_life(qw_keep_keeper(keep));

    qf_strbuf_printf(&body,
                     "{\"incarnation\":\"%016" PRIx64 "\",\"told\":%s,\"blobs\":%" PRIu64
                     ",\"bytes\":%" PRIu64 ",\"free_bytes\":%" PRIu64 ",\"damaged\":%" PRIu64 "}\n",
                     life.incarnation, life.told ? "true" : "false", f.blobs, f.bytes, f.free_bytes,
                     f.damaged);
    add_life(visit->stream, keep);
    qh_stream_answer(visit->stream, 200, "application/json", qf_strbuf_view(&body));
}

static const struct qh_route routes[] = {
    { RG_KEEP_BLOB, QH_GET | QH_METHOD_PUT | QH_METHOD_DELETE, false, handle_blob, fail },
    { RG_KEEP_TELL, QH_METHOD_POST, false, handle_tell, fail },
    { RG_KEEP_HOLD, QH_METHOD_POST, false, handle_hold, fail },
    { RG_KEEP_STREAM, QH_METHOD_POST, false, handle_stream, fail },
    { RG_KEEP_CLEAN, QH_METHOD_POST, false, handle_clean, fail },
    { RG_KEEP_DOC, QH_GET | QH_METHOD_PUT, false, handle_doc, fail },
    { RG_KEEP_DOCS, QH_METHOD_GET, false, handle_docs, fail },
    { RG_KEEP_SUMS, QH_METHOD_GET, false, handle_sums, fail },
    { RG_KEEP_DIGESTS, QH_METHOD_GET, false, handle_digests, fail },
    { RG_KEEP_HEAT, QH_METHOD_GET, false, handle_heat, fail },
    { RG_KEEP_STATUS, QH_METHOD_GET, false, handle_status, fail },
};
const struct qh_routes qw_keep_routes = { routes, QF_COUNT_OF(routes) };
