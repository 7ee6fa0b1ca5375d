/* http.c - queries through a running API. */
#include "tests/promqltest/http.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "promql/plan.h"
#include "tests/promqltest/histogram.h"
#include "tests/promqltest/http_load.h"

#define ANSWER_BYTES_MAX ((size_t)256 << 20)

struct http_engine {
    CURL *easy;
    char *url, *store_url, *binary;
    char tenant[64];
    uint64_t tenants;
    bool changed;
};

struct http_engine *http_engine_new(const char *url, const char *store_url, const char *binary)
{
    struct http_engine *engine = qf_xcalloc(1, sizeof(*engine));

    engine->url = qf_xstrdup(url);
    engine->store_url = qf_xstrdup(store_url);
    engine->binary = qf_xstrdup(binary);
    engine->easy = curl_easy_init();
    engine->changed = true;
    return engine;
}

struct http_engine *http_engine_free(struct http_engine *engine)
{
    if (!engine)
        return NULL;
    curl_easy_cleanup(engine->easy);
    free(engine->url);
    free(engine->store_url);
    free(engine->binary);
    free(engine);
    return NULL;
}

void http_engine_changed(struct http_engine *engine)
{
    engine->changed = true;
}

/* All series into a tenant nobody has asked for yet: the API lists it at the first query. */
static qf_rc load_all(struct http_engine *engine, struct storage *storage, size_t shard_count,
                      struct qf_err *err)
{
    struct http_load_options options = { .binary = engine->binary,
                                         .store_url = engine->store_url,
                                         .tenant = engine->tenant,
                                         .shard_count = shard_count };
    qf_rc rc;

    (void)snprintf(engine->tenant, sizeof(engine->tenant), "t%d-%" PRIu64, (int)getpid(),
                   ++engine->tenants);
    rc = http_load(storage, &options, err);
    engine->changed = rc != QF_OK;
    return rc;
}

/* --- JSON to results --- */

static bool read_number(const json_t *value, double *ret_number)
{
    return json_is_string(value) &&
           qf_parse_double(qf_str_from(json_string_value(value)), ret_number);
}

static int64_t read_time(const json_t *value)
{
    return (int64_t)llround(json_number_value(value) * 1000);
}

static struct qf_labels read_labels(struct qf_arena *arena, const json_t *metric)
{
    size_t count = 0;
    struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, json_object_size(metric) + 1);
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)metric, key, value)
    {
        items[count++] = (struct qf_label){
            qf_arena_str(arena, qf_str_from(key)),
            qf_arena_str(arena,
                         (struct qf_str){ json_string_value(value), json_string_length(value) }),
        };
    }
    return qf_labels_normalize(items, count);
}

/* Bounds and counts of the buckets, as judges of histograms take them. */
static const struct pq_histogram *read_histogram(struct qf_arena *arena, const json_t *json)
{
    struct pq_histogram *h = QF_ARENA_NEW(arena, struct pq_histogram);
    const json_t *buckets = json_object_get(json, "buckets");
    size_t count = json_array_size(buckets);
    double *numbers = QF_ARENA_ARRAY(arena, double, 3 * count + 1);

    for (size_t i = 0; i < 3 * count; i++)
        if (!read_number(json_array_get(json_array_get(buckets, i / 3), i % 3 + 1), &numbers[i]))
            return NULL;
    h->schema = HISTOGRAM_BOUNDS;
    h->custom_values = numbers;
    h->custom_value_count = 3 * count;
    return read_number(json_object_get(json, "count"), &h->count) &&
                   read_number(json_object_get(json, "sum"), &h->sum)
               ? h
               : NULL;
}

/* Points while they are read: floats and histograms come in two lists. */
struct points {
    int64_t *ts;
    double *values;
    const struct pq_histogram **histograms;
    size_t count;
};

static bool read_point(struct qf_arena *arena, const json_t *json, struct points *points)
{
    const json_t *value = json_array_get(json, 1);
    int64_t ts = read_time(json_array_get(json, 0));
    size_t at = points->count++;

    for (; at > 0 && points->ts[at - 1] > ts; at--) {
        points->ts[at] = points->ts[at - 1];
        points->values[at] = points->values[at - 1];
        points->histograms[at] = points->histograms[at - 1];
    }
    points->ts[at] = ts;
    points->values[at] = 0;
    points->histograms[at] = NULL;
    if (json_is_object(value)) {
        points->histograms[at] = read_histogram(arena, value);
        return points->histograms[at] != NULL;
    }
    if (!read_number(value, &points->values[at]))
        return false;
    if (isnan(points->values[at]))
        points->values[at] = qf_double_from_bits(QF_NORMAL_NAN_BITS);
    return true;
}

static bool read_series(struct qf_arena *arena, const json_t *json, struct pq_result_series *series)
{
    const json_t *values = json_object_get(json, "values"), *value = json_object_get(json, "value");
    const json_t *many = json_object_get(json, "histograms");
    const json_t *one = json_object_get(json, "histogram");
    size_t count = json_array_size(values) + json_array_size(many) + 2;
    struct points points = { .ts = QF_ARENA_ARRAY(arena, int64_t, count),
                             .values = QF_ARENA_ARRAY(arena, double, count),
                             .histograms =
                                 QF_ARENA_ARRAY(arena, const struct pq_histogram *, count) };
    bool good = true;

    for (size_t i = 0; i < json_array_size(values); i++)
        good = good && read_point(arena, json_array_get(values, i), &points);
    for (size_t i = 0; i < json_array_size(many); i++)
        good = good && read_point(arena, json_array_get(many, i), &points);
    if (value)
        good = good && read_point(arena, value, &points);
    if (one)
        good = good && read_point(arena, one, &points);
    *series =
        (struct pq_result_series){ .labels = read_labels(arena, json_object_get(json, "metric")),
                                   .count = points.count,
                                   .ts = points.ts,
                                   .values = points.values,
                                   .histograms = points.histograms };
    return good;
}

static bool read_data(struct qf_arena *arena, const json_t *data, struct pq_result *result)
{
    const char *type = json_string_value(json_object_get(data, "resultType"));
    const json_t *list = json_object_get(data, "result");

    if (!type || !json_is_array(list))
        return false;
    if (strcmp(type, "scalar") == 0 || strcmp(type, "string") == 0) {
        const json_t *value = json_array_get(list, 1);

        result->ts = read_time(json_array_get(list, 0));
        result->type = strcmp(type, "scalar") == 0 ? PQ_TYPE_SCALAR : PQ_TYPE_STRING;
        result->string = qf_arena_str(
            arena, (struct qf_str){ json_string_value(value), json_string_length(value) });
        return result->type == PQ_TYPE_STRING || read_number(value, &result->scalar);
    }
    result->type = strcmp(type, "vector") == 0 ? PQ_TYPE_VECTOR : PQ_TYPE_MATRIX;
    result->series_count = json_array_size(list);
    result->series = QF_ARENA_ARRAY(arena, struct pq_result_series, result->series_count + 1);
    for (size_t i = 0; i < result->series_count; i++)
        if (!read_series(arena, json_array_get(list, i), &result->series[i]))
            return false;
    return true;
}

/* "PromQL info: TEXT (1:5)" back to a note; scripts have one line per query. */
static void read_notes(const json_t *list, enum pq_note_level level, struct pq_notes *notes)
{
    const char *prefix = level == PQ_NOTE_WARNING ? "PromQL warning: " : "PromQL info: ";
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        const char *end = text ? strrchr(text, '(') : NULL;
        unsigned line = 1, column = 1;

        if (!end || strncmp(text, prefix, strlen(prefix)) != 0 ||
            sscanf(end, "(%u:%u)", &line, &column) != 2)
            continue;
        text += strlen(prefix);
        pq_note_add(notes, level, (struct pq_pos){ column - 1, column }, "%.*s",
                    (int)(end - text - 1), text);
    }
}

/* --- asking --- */

static size_t keep_bytes(char *data, size_t size, size_t count, void *buf)
{
    qf_strbuf_add(buf, data, size * count);
    return ((struct qf_strbuf *)buf)->overflowed ? 0 : size * count;
}

static void add_param(struct http_engine *engine, struct qf_strbuf *form, const char *name,
                      struct qf_str value)
{
    char *escaped = curl_easy_escape(engine->easy, value.data, (int)value.len);

    qf_strbuf_printf(form, "%s%s=%s", form->len ? "&" : "", name, escaped);
    curl_free(escaped);
}

static void add_time(struct http_engine *engine, struct qf_strbuf *form, const char *name,
                     int64_t ms)
{
    char text[40];

    (void)snprintf(text, sizeof(text), "%s%" PRIu64 ".%03" PRIu64, ms < 0 ? "-" : "",
                   (uint64_t)llabs(ms) / 1000, (uint64_t)llabs(ms) % 1000);
    add_param(engine, form, name, qf_str_from(text));
}

static qf_rc post(struct http_engine *engine, const char *path, const struct qf_strbuf *form,
                  struct qf_strbuf *answer, struct qf_err *err)
{
    char url[512], header[100];
    struct curl_slist *headers;
    CURLcode code;

    (void)snprintf(url, sizeof(url), "%s%s", engine->url, path);
    (void)snprintf(header, sizeof(header), "X-Scope-OrgID: %s", engine->tenant);
    headers = curl_slist_append(NULL, header);
    (void)curl_easy_setopt(engine->easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(engine->easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(engine->easy, CURLOPT_POSTFIELDS, qf_strbuf_cstr(form));
    (void)curl_easy_setopt(engine->easy, CURLOPT_WRITEFUNCTION, keep_bytes);
    (void)curl_easy_setopt(engine->easy, CURLOPT_WRITEDATA, answer);
    (void)curl_easy_setopt(engine->easy, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(engine->easy, CURLOPT_TIMEOUT_MS, 60000L);
    code = curl_easy_perform(engine->easy);
    curl_slist_free_all(headers);
    if (code != CURLE_OK)
        return qf_err_set(err, QF_EIO, "%s: %s", url, curl_easy_strerror(code));
    return QF_OK;
}

/* The message as the engine gave it, without the frame of the HTTP API. */
static const char *bare_message(const char *error)
{
    static const char frame[] = "invalid parameter \"query\": ", position[] = ": parse error: ";
    const char *at;

    if (strncmp(error, frame, strlen(frame)) == 0)
        error += strlen(frame);
    at = strstr(error, position);
    return at ? at + strlen(position) : error;
}

static qf_rc read_answer(struct qf_arena *arena, const struct qf_strbuf *answer,
                         struct pq_result *result, struct qf_err *err)
{
    json_t *root = json_loadb(qf_strbuf_cstr(answer), answer->len, 0, NULL);
    const char *error = json_string_value(json_object_get(root, "error"));
    qf_rc rc = QF_OK;

    *result = (struct pq_result){ .notes.arena = arena };
    if (error)
        rc = qf_err_set(err, QF_EEXEC, "%s", bare_message(error));
    else if (!read_data(arena, json_object_get(root, "data"), result))
        rc = qf_err_set(err, QF_EPROTO, "not an answer: %.200s", qf_strbuf_cstr(answer));
    read_notes(json_object_get(root, "warnings"), PQ_NOTE_WARNING, &result->notes);
    read_notes(json_object_get(root, "infos"), PQ_NOTE_INFO, &result->notes);
    json_decref(root);
    return rc;
}

qf_rc http_engine_run(struct http_engine *engine, struct storage *storage, size_t shard_count,
                      struct qf_arena *arena, struct qf_str query,
                      const struct pq_query_params *params, struct pq_result *ret_result,
                      struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf form = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf answer = { .limit = ANSWER_BYTES_MAX };
    qf_rc rc = engine->changed ? load_all(engine, storage, shard_count, err) : QF_OK;

    if (rc)
        return rc;
    add_param(engine, &form, "query", query);
    if (params->step_ms) {
        add_time(engine, &form, "start", params->start_ms);
        add_time(engine, &form, "end", params->end_ms);
        add_time(engine, &form, "step", params->step_ms);
    } else {
        add_time(engine, &form, "time", params->start_ms);
    }
    rc = post(engine, params->step_ms ? "/api/v1/query_range" : "/api/v1/query", &form, &answer,
              err);
    return rc ? rc : read_answer(arena, &answer, ret_result, err);
}
