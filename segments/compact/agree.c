/* agree.c - questions to ingest nodes, over HTTP. */
#include "segments/compact/agree.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/small_file.h"
#include "segments/store/http.h"
#include "segments/store/ring.h"

#define TIMEOUT_MS 30000
#define CONNECT_MS 3000
#define STALL_MS 15000
/* Between two rounds over all nodes. */
#define PAUSE_MS 500
#define PAUSE_STEP_MS 50
#define KEY_BYTES_MAX 4096

struct sg_agree {
    struct http_client *client;
    char **urls;
    size_t count;
    char *key_file;
    int64_t timeout_ms;
};

static bool is_address(struct qf_str text)
{
    const char *colon = memrchr(text.data, ':', text.len);

    return colon && colon > text.data && colon + 1 < text.data + text.len &&
           !memchr(text.data, '/', text.len) && !memchr(text.data, '@', text.len);
}

qf_rc sg_agree_new(const struct sg_agree_options *options, struct sg_agree **ret_agree,
                   struct qf_err *err)
{
    struct http_options http = { .connect_timeout_ms = CONNECT_MS,
                                 .stall_timeout_ms = STALL_MS,
                                 .ca_file = options->ca_file };
    struct sg_agree *agree;

    for (size_t i = 0; i < options->node_count; i++)
        if (!is_address(qf_str_from(options->nodes[i])))
            return qf_err_set(err, QF_EINVAL, "an ingest node: %s: expected HOST:PORT",
                              options->nodes[i]);
    if (!options->node_count)
        return qf_err_set(err, QF_EINVAL, "no ingest node was named");
    agree = qf_xcalloc(1, sizeof(*agree));
    agree->client = http_client_new(&http);
    agree->urls = qf_xcalloc(options->node_count, sizeof(agree->urls[0]));
    for (; agree->count < options->node_count; agree->count++) {
        struct qf_strbuf url = QF_STRBUF_INIT;

        qf_strbuf_printf(&url, "%s://%s/v1/below", options->ca_file ? "https" : "http",
                         options->nodes[agree->count]);
        agree->urls[agree->count] = qf_strbuf_take(&url);
    }
    agree->key_file = options->key_file ? qf_xstrdup(options->key_file) : NULL;
    agree->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
    *ret_agree = agree;
    return QF_OK;
}

qf_rc sg_agree_of_ring(const struct sg_store *store, struct sg_agree **ret_agree,
                       struct qf_err *err)
{
    struct sg_ring_nodes ring = sg_ring_nodes(store);
    const char **nodes = qf_xcalloc(ring.count + 1, sizeof(*nodes));
    const struct sg_agree_options options = {
        .nodes = nodes, .node_count = ring.count, .key_file = ring.key_file, .ca_file = ring.ca_file
    };
    qf_rc rc;

    for (size_t i = 0; i < ring.count; i++)
        nodes[i] = strstr(ring.urls[i], "://") + 3;
    rc = sg_agree_new(&options, ret_agree, err);
    free(nodes);
    return rc;
}

struct sg_agree *sg_agree_free(struct sg_agree *agree)
{
    if (!agree)
        return NULL;
    for (size_t i = 0; i < agree->count; i++)
        free(agree->urls[i]);
    free(agree->urls);
    free(agree->key_file);
    (void)http_client_free(agree->client);
    free(agree);
    return NULL;
}

/* --- one question --- */

struct question {
    const struct sg_agree *agree;
    struct sg_store_limit limit;
    struct qf_strbuf body, key; /* the second one: a whole header; empty: none */
    uint64_t generation;
};

static void question_done(struct question *q)
{
    qf_strbuf_done(&q->body);
    qf_strbuf_done(&q->key);
}

static qf_rc read_key(struct question *q, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    const char *end;
    struct qf_str line;
    struct stat seen;
    qf_rc rc;

    if (!q->agree->key_file)
        return QF_OK;
    rc = qf_small_file_read(q->agree->key_file, "the key of ingest nodes", KEY_BYTES_MAX, &text,
                            &seen, err);
    if (rc)
        return rc;
    line = qf_strbuf_view(&text);
    end = memchr(line.data, '\n', line.len);
    line = qf_str_trim(qf_str_sub(line, 0, end ? (size_t)(end - line.data) : line.len));
    if (!line.len || memchr(line.data, 0, line.len))
        return qf_err_set(err, QF_EINVAL, "%s has no key in its first line", q->agree->key_file);
    qf_strbuf_printf(&q->key, "Authorization: Bearer %.*s", QF_STR_ARG(line));
    return QF_OK;
}

static qf_rc read_answer(const struct question *q, const json_t *root, struct sg_agreed *ret_agreed,
                         const char *url, struct qf_err *err)
{
    const json_t *generation = json_object_get(root, "generation");
    const char *cluster = json_string_value(json_object_get(root, "cluster"));

    if (!json_is_integer(generation) || json_integer_value(generation) < 0 ||
        (uint64_t)json_integer_value(generation) > q->generation || !cluster ||
        strlen(cluster) != sizeof(ret_agreed->cluster) - 1)
        return qf_err_set(err, QF_EPROTO, "%s does not answer as an ingest node does", url);
    ret_agreed->generation = (uint64_t)json_integer_value(generation);
    memcpy(ret_agreed->cluster, cluster, sizeof(ret_agreed->cluster));
    return QF_OK;
}

/* What is wrong with an answer of another status than 200. */
static qf_rc read_refusal(const json_t *root, long status, const char *url, struct qf_err *err)
{
    const char *message = json_string_value(json_object_get(root, "message"));
    bool old = status == 404 || status == 405;
    qf_rc rc = status == 401 || status == 403   ? QF_EDENIED
               : old                            ? QF_EUNSUPPORTED
               : status == 429 || status >= 500 ? QF_EUNAVAILABLE
                                                : QF_EPROTO;

    if (rc == QF_EDENIED)
        return qf_err_set(err, rc, "ingest nodes do not accept the key (--ingest-key): %s",
                          message ? message : url);
    if (old)
        return qf_err_set(err, rc,
                          "%s: an ingest node of an older release, which does not know what a "
                          "compactor asks: run this one on all nodes",
                          url);
    if (message)
        return qf_err_set(err, rc, "ingest nodes: %s", message);
    return qf_err_set(err, rc, "%s answers %ld", url, status);
}

static qf_rc ask(const struct question *q, const char *url, struct sg_agreed *ret_agreed,
                 struct qf_err *err)
{
    const struct sg_store_bytes body = { .data = q->body.data, .size = q->body.len };
    struct http_request request = { .method = "POST",
                                    .url = url,
                                    .headers = { "Content-Type: application/json" },
                                    .header_count = 1,
                                    .body = &body,
                                    .body_len = q->body.len };
    struct http_response response = { 0 };
    json_t *root;
    qf_rc rc;

    if (q->key.len)
        request.headers[request.header_count++] = q->key.data;
    rc = http_perform(q->agree->client, &request, &q->limit, &response, err);
    if (rc == QF_OK) {
        root = json_loadb(response.body.data ? response.body.data : "", response.body.len, 0, NULL);
        rc = response.status == 200 ? read_answer(q, root, ret_agreed, url, err)
                                    : read_refusal(root, response.status, url, err);
        json_decref(root);
    }
    http_response_done(&response);
    return rc;
}

/* False: it is over. */
static bool pause_for(const struct question *q, struct qf_err *err)
{
    for (int waited = 0; waited < PAUSE_MS; waited += PAUSE_STEP_MS) {
        struct timespec step = { .tv_nsec = PAUSE_STEP_MS * 1000000L };
        struct qf_err over = { 0 };

        if (sg_store_limit_check(&q->limit, QF_STR("ingest nodes"), &over) != QF_OK) {
            if (over.rc == QF_ECANCELED)
                *err = over; /* else what was last wrong says more */
            return false;
        }
        (void)nanosleep(&step, NULL);
    }
    return true;
}

/* Everybody in turn; what they are not able to now they may be a moment later. */
static qf_rc ask_all(const struct question *q, struct sg_agreed *ret_agreed, struct qf_err *err)
{
    do {
        for (size_t i = 0; i < q->agree->count; i++) {
            qf_rc rc;

            *err = (struct qf_err){ 0 };
            rc = ask(q, q->agree->urls[i], ret_agreed, err);
            if (rc != QF_EUNAVAILABLE)
                return rc == QF_ETIMEOUT
                           ? qf_err_set(err, QF_EUNAVAILABLE, "ingest nodes did not answer in time")
                           : rc;
        }
    } while (pause_for(q, err));
    return err->rc;
}

qf_rc sg_agree_below(const struct sg_agree *agree, struct qf_str tenant, uint64_t generation,
                     int64_t keep_ms, const atomic_bool *cancel, struct sg_agreed *ret_agreed,
                     struct qf_err *err)
{
    QF_CLEANUP(question_done)
    struct question q = { .agree = agree,
                          .limit = { .cancel = cancel,
                                     .deadline_ms = qf_clock_mono_ms() + agree->timeout_ms },
                          .generation = generation };
    struct qf_err own = { 0 };
    qf_rc rc;

    if (!err)
        err = &own;
    qf_strbuf_puts(&q.body, "{\"tenant\":");
    qf_strbuf_json(&q.body, tenant);
    qf_strbuf_printf(&q.body, ",\"generation\":%" PRIu64 ",\"keep_ms\":%" PRId64 "}", generation,
                     keep_ms);
    rc = read_key(&q, err);
    return rc == QF_OK ? ask_all(&q, ret_agreed, err) : rc;
}
