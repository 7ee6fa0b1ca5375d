#include "ingest/otlp/otlp.h"

#include <math.h>

#include "base/pure/number.h"
#include "ingest/otlp/json.h"
#include "promql/histogram/check.h"
#include "tests/lib/test.h"

static const struct in_check_limits limits = { 30, 100, 2000, 0, INT64_C(1) << 50 };

static struct qf_arena *arena;
static struct qf_strbuf message;
static struct in_request request;
static struct qf_err err;

/* Decode and check a request in JSON, where ' stands for ". */
static qf_rc take(const char *text)
{
    struct qf_strbuf json = QF_STRBUF_INIT;
    qf_rc rc;

    for (; *text; text++)
        qf_strbuf_putc(&json, *text == '\'' ? '"' : *text);
    qf_strbuf_reset(&message);
    err = (struct qf_err){ 0 };
    rc = in_otlp_json_decode(qf_strbuf_view(&json), 1 << 20, &message, &err);
    qf_strbuf_done(&json);
    if (rc != QF_OK)
        return rc;
    qf_arena_freep(&arena);
    arena = qf_arena_new(1 << 22);
    rc = in_otlp_decode(qf_strbuf_view(&message), arena, &request, &err);
    if (rc == QF_OK)
        in_request_check(&request, &limits);
    return rc;
}

#define RESOURCE(attributes, metrics)                                                              \
    "{'resourceMetrics':[{'resource':{'attributes':[" attributes                                   \
    "]},'scopeMetrics':[{'scope':{'name':'x'},'metrics':[" metrics "]}]}]}"
#define METRICS(metrics) RESOURCE("", metrics)
#define AT "'timeUnixNano':'1700000000123999999'"
#define AT_MS INT64_C(1700000000123)
#define STRING(key, value) "{'key':'" key "','value':{'stringValue':'" value "'}}"

static const struct in_series *find(const char *name, const char *label, const char *value)
{
    for (size_t i = 0; i < request.series_count; i++) {
        struct qf_labels labels = in_series_labels(&request.series[i]);

        if (qf_str_is(qf_labels_get(labels, QF_STR("__name__")), name) &&
            (!label || qf_str_is(qf_labels_get(labels, qf_str_from(label)), value)))
            return &request.series[i];
    }
    return NULL;
}

static double value_of(const char *name, const char *label, const char *value)
{
    const struct in_series *series = find(name, label, value);

    return series ? series->samples[0].value : (double)NAN;
}

static bool has_label(const struct in_series *series, const char *name, const char *value)
{
    return series && qf_str_is(qf_labels_get(in_series_labels(series), qf_str_from(name)), value);
}

TEST(gauges_and_sums_are_series_of_their_points)
{
    CHECK_EQ(take(METRICS(
                 "{'name':'a.b','unit':'s','description':'What.','gauge':{'dataPoints':[{" AT
                 ",'asDouble':1.5,'attributes':[" STRING(
                     "k.x", "1") "]},{" AT ",'asInt':'-7'}]}},"
                                 "{'name':'c','sum':{'aggregationTemporality':2,'isMonotonic':true,"
                                 "'dataPoints':[{" AT ",'startTimeUnixNano':1600000000000000000,"
                                 "'asInt':3}]}}")),
             QF_OK);
    CHECK(request.series_count == 3 && request.accepted.samples == 3 && !request.first[0]);
    CHECK(value_of("a_b_seconds", "k_x", "1") == 1.5 && value_of("a_b_seconds", "k_x", "") == -7);
    CHECK_EQ(find("c_total", NULL, NULL)->samples[0].ts, AT_MS);
    CHECK_EQ(find("c_total", NULL, NULL)->samples[0].start_ts, INT64_C(1600000000000));
    CHECK(request.metadata_count == 2 && request.metadata[0].type == QF_METRIC_GAUGE);
    CHECK(qf_str_is(request.metadata[0].name, "a_b_seconds") &&
          qf_str_is(request.metadata[0].help, "What.") && qf_str_is(request.metadata[0].unit, "s"));
    CHECK(request.metadata[1].type == QF_METRIC_COUNTER);
}

TEST(a_resource_is_job_instance_and_target_info)
{
    CHECK_EQ(take(RESOURCE(
                 STRING("service.name", "shop") "," STRING("service.namespace", "eu") "," STRING(
                     "service.instance.id", "7") "," STRING("host.name", "h"),
                 "{'name':'a','gauge':{'dataPoints':[{" AT
                 ",'asInt':1,'attributes':[" STRING("job", "mine") "]}]}}")),
             QF_OK);
    CHECK_EQ(request.series_count, 2);
    CHECK(has_label(find("a", NULL, NULL), "job", "eu/shop"));
    CHECK(has_label(find("a", NULL, NULL), "instance", "7"));
    CHECK(has_label(find("a", NULL, NULL), "host_name", ""));
    CHECK_EQ(value_of("target_info", "host_name", "h"), 1);
    CHECK(has_label(find("target_info", NULL, NULL), "job", "eu/shop"));
    CHECK(has_label(find("target_info", NULL, NULL), "service_name", ""));
    CHECK_EQ(find("target_info", NULL, NULL)->samples[0].ts, AT_MS);
}

TEST(without_more_to_tell_there_is_no_target_info)
{
    CHECK_EQ(take(RESOURCE(STRING("service.name", "shop"),
                           "{'name':'a','gauge':{'dataPoints':[{" AT ",'asInt':1}]}}")),
             QF_OK);
    CHECK_EQ(request.series_count, 1);
    CHECK_EQ(take(RESOURCE(STRING("host.name", "nobody"),
                           "{'name':'a','gauge':{'dataPoints':[{" AT ",'asInt':1}]}}")),
             QF_OK);
    CHECK_EQ(request.series_count, 1);
    CHECK_EQ(take(RESOURCE(STRING("service.name", "a") "," STRING("x", "y"), "")), QF_OK);
    CHECK_EQ(request.series_count, 0);
}

TEST(attributes_of_any_type_are_text)
{
    const struct in_series *series;

    CHECK_EQ(
        take(METRICS(
            "{'name':'a','gauge':{'dataPoints':[{" AT ",'asInt':1,'attributes':["
            "{'key':'i','value':{'intValue':'-5'}},{'key':'d','value':{'doubleValue':1.5}},"
            "{'key':'b','value':{'boolValue':true}},{'key':'by','value':{'bytesValue':'AAEC'}},"
            "{'key':'l','value':{'arrayValue':{'values':[{'stringValue':'x'},{'intValue':1},{}]}}},"
            "{'key':'m','value':{'kvlistValue':{'values':[{'key':'z','value':{'intValue':1}},"
            "{'key':'a','value':{'stringValue':'y'}}]}}},{'key':'n','value':{}}]}]}}")),
        QF_OK);
    series = find("a", NULL, NULL);
    CHECK(has_label(series, "i", "-5") && has_label(series, "d", "1.5"));
    CHECK(has_label(series, "b", "true") && has_label(series, "by", "AAEC"));
    CHECK(has_label(series, "l", "[\"x\",1,null]"));
    CHECK(has_label(series, "m", "{\"a\":\"y\",\"z\":1}"));
    CHECK(has_label(series, "n", ""));
}

TEST(attributes_that_come_to_one_name_are_joined_in_order)
{
    CHECK_EQ(
        take(METRICS("{'name':'a','gauge':{'dataPoints':[{" AT ",'asInt':1,'attributes':[" STRING(
            "x_y", "2") "," STRING("x.y", "1") "," STRING("x-y", "0") "," STRING("__name__",
                                                                                 "evil") "]}]}}")),
        QF_OK);
    CHECK(has_label(find("a", NULL, NULL), "x_y", "0;1;2"));
}

TEST(a_histogram_is_buckets_sum_and_count)
{
    const struct in_series *series;

    CHECK_EQ(
        take(METRICS("{'name':'h','unit':'s','histogram':{'aggregationTemporality':2,"
                     "'dataPoints':[{" AT ",'count':'10','sum':5.5,'bucketCounts':['1','2','7'],"
                     "'explicitBounds':[0.005,5],'exemplars':[{" AT
                     ",'asDouble':0.001,'traceId':'0AFF','spanId':'00',"
                     "'filteredAttributes':[" STRING("a.b", "x") "]},{" AT ",'asInt':'9'}]}]}}")),
        QF_OK);
    CHECK(request.series_count == 5 && request.accepted.exemplars == 2);
    CHECK(value_of("h_seconds_bucket", "le", "0.005") == 1 &&
          value_of("h_seconds_bucket", "le", "5") == 3 &&
          value_of("h_seconds_bucket", "le", "+Inf") == 10);
    CHECK(value_of("h_seconds_sum", NULL, NULL) == 5.5 &&
          value_of("h_seconds_count", NULL, NULL) == 10);
    series = find("h_seconds_bucket", "le", "0.005");
    CHECK(series->exemplar_count == 1 && series->exemplars[0].label_count == 2);
    CHECK(qf_str_is(series->exemplars[0].labels[0].name, "a.b") &&
          qf_str_is(series->exemplars[0].labels[1].value, "0aff"));
    CHECK_EQ(find("h_seconds_bucket", "le", "+Inf")->exemplars[0].value, 9);
}

TEST(a_histogram_whose_parts_contradict_each_other_is_refused)
{
    static const char *const points[] = {
        "'count':'10','bucketCounts':['1','2'],'explicitBounds':[1]",
        "'count':'3','bucketCounts':['1','2'],'explicitBounds':[1,2]",
        "'count':'3','bucketCounts':['1','1','1'],'explicitBounds':[2,1]",
        "'count':'1','bucketCounts':['18446744073709551615','2'],'explicitBounds':[1]",
    };
    char text[512];

    for (size_t i = 0; i < QF_COUNT_OF(points); i++) {
        (void)snprintf(text, sizeof(text),
                       METRICS("{'name':'bad.one','histogram':{'aggregationTemporality':2,"
                               "'dataPoints':[{" AT ",%s}]}}"),
                       points[i]);
        CHECK_EQ(take(text), QF_OK);
        CHECK(request.series_count == 0 && request.refused.samples == 1);
        CHECK(strstr(request.first, "metric bad.one"));
    }
}

TEST(an_exponential_histogram_is_a_native_one)
{
    const struct pq_histogram *h;

    CHECK_EQ(
        take(METRICS("{'name':'e','exponentialHistogram':{'aggregationTemporality':2,"
                     "'dataPoints':[{" AT ",'count':'10','sum':5.5,'scale':1,'zeroCount':'2',"
                     "'zeroThreshold':0.01,'positive':{'offset':-2,'bucketCounts':['1','0','0',"
                     "'0','4']},'negative':{'offset':3,'bucketCounts':[3]}}]}}")),
        QF_OK);
    CHECK_EQ(request.accepted.histograms, 1);
    h = find("e", NULL, NULL)->samples[0].histogram;
    CHECK(h && !pq_histogram_check(h));
    CHECK(h->schema == 1 && h->count == 10 && h->sum == 5.5 && h->zero_count == 2);
    CHECK(h->zero_threshold == 0.01 && h->positive_span_count == 2);
    CHECK(h->positive_spans[0].offset == -1 && h->positive_spans[0].length == 1);
    CHECK(h->positive_spans[1].offset == 3 && h->positive_buckets[1] == 4);
    CHECK(h->negative_spans[0].offset == 4 && h->negative_buckets[0] == 3);
}

TEST(an_exponential_histogram_finer_than_schema_8_is_made_coarser)
{
    const struct pq_histogram *h;

    CHECK_EQ(take(METRICS("{'name':'e','exponentialHistogram':{'aggregationTemporality':2,"
                          "'dataPoints':[{" AT ",'count':'15','scale':10,"
                          "'positive':{'offset':-3,'bucketCounts':[1,2,3,4,5]}}]}}")),
             QF_OK);
    h = find("e", NULL, NULL)->samples[0].histogram;
    CHECK(h && !pq_histogram_check(h) && h->schema == 8 && h->zero_threshold == 1e-128);
    /* -3..-1 are in bucket -1 of scale 8, 0 and 1 in bucket 0; native ones count from one more. */
    CHECK(h->positive_bucket_count == 2 && h->positive_spans[0].offset == 0);
    CHECK(h->positive_buckets[0] == 6 && h->positive_buckets[1] == 9);
}

TEST(exponential_histograms_that_cannot_be_are_refused)
{
    static const char *const points[] = {
        "'count':'1','scale':-5,'positive':{'bucketCounts':[1]}",
        "'count':'2','scale':1,'positive':{'bucketCounts':[1]}",
        "'count':'1','scale':1,'positive':{'offset':2147483647,'bucketCounts':[1]}",
        "'count':'1','scale':1,'zeroThreshold':-1,'zeroCount':2,'positive':{'bucketCounts':[1]}",
    };
    char text[512];

    for (size_t i = 0; i < QF_COUNT_OF(points); i++) {
        (void)snprintf(text, sizeof(text),
                       METRICS("{'name':'e','exponentialHistogram':{'aggregationTemporality':2,"
                               "'dataPoints':[{" AT ",%s}]}}"),
                       points[i]);
        CHECK_EQ(take(text), QF_OK);
        CHECK(request.series_count == 0 && request.first[0]);
    }
}

TEST(a_summary_is_quantiles_sum_and_count)
{
    CHECK_EQ(take(METRICS(
                 "{'name':'s','summary':{'dataPoints':[{" AT ",'count':'4','sum':2,"
                 "'quantileValues':[{'quantile':0.5,'value':1},{'quantile':0.99,'value':2}]}]}}")),
             QF_OK);
    CHECK(value_of("s", "quantile", "0.5") == 1 && value_of("s", "quantile", "0.99") == 2);
    CHECK(value_of("s_sum", NULL, NULL) == 2 && value_of("s_count", NULL, NULL) == 4);
}

TEST(a_point_without_a_recorded_value_ends_its_series)
{
    CHECK_EQ(take(METRICS("{'name':'a','gauge':{'dataPoints':[{" AT ",'flags':1}]}},"
                          "{'name':'e','exponentialHistogram':{'aggregationTemporality':2,"
                          "'dataPoints':[{" AT ",'flags':1}]}}")),
             QF_OK);
    CHECK_EQ(request.series_count, 2);
    CHECK(qf_is_stale(value_of("a", NULL, NULL)) && qf_is_stale(value_of("e", NULL, NULL)));
}

TEST(delta_temporality_is_refused_by_name_and_the_rest_is_taken)
{
    CHECK_EQ(
        take(METRICS("{'name':'since.last','sum':{'aggregationTemporality':1,'isMonotonic':true,"
                     "'dataPoints':[{" AT ",'asInt':1},{" AT ",'asInt':2}]}},"
                     "{'name':'unsaid','histogram':{'dataPoints':[{" AT "}]}},"
                     "{'name':'fine','gauge':{'dataPoints':[{" AT ",'asInt':1}]}}")),
        QF_OK);
    CHECK(request.series_count == 1 && request.refused.samples == 3);
    CHECK(strstr(request.first, "delta") && strstr(request.first, "since.last"));
}

TEST(points_without_value_or_time_and_names_without_letters_are_refused)
{
    CHECK_EQ(
        take(METRICS("{'name':'a','gauge':{'dataPoints':[{" AT "},{'asInt':1}]}},"
                     "{'name':'!','gauge':{'dataPoints':[{" AT ",'asInt':1}]}},{'name':'none'}")),
        QF_OK);
    CHECK(request.series_count == 0 && request.refused.samples == 3);
}

TEST(too_many_attributes_refuse_their_point)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_puts(&text, "{'resourceMetrics':[{'scopeMetrics':[{'metrics':[{'name':'a','gauge':"
                          "{'dataPoints':[{" AT ",'asInt':1,'attributes':[");
    for (int i = 0; i <= IN_OTLP_ATTRIBUTES_MAX; i++)
        qf_strbuf_printf(&text, "%s{'key':'k%d','value':{'intValue':%d}}", i ? "," : "", i, i);
    qf_strbuf_puts(&text, "]}]}}]}]}]}");
    CHECK_EQ(take(qf_strbuf_cstr(&text)), QF_OK);
    CHECK(request.refused.samples == 1 && strstr(request.first, "too many attributes"));
    qf_strbuf_done(&text);
}

/* An attribute @key whose value is a map of @members, or lists within @depth lists. */
static void put_large(struct qf_strbuf *text, const char *key, int members, int depth)
{
    qf_strbuf_printf(text, "{'key':'%s','value':", key);
    for (int i = 0; i < depth; i++)
        qf_strbuf_puts(text, "{'arrayValue':{'values':[");
    qf_strbuf_puts(text, "{'kvlistValue':{'values':[");
    for (int i = 0; i < members; i++)
        qf_strbuf_printf(text, "%s{'key':'k%03d','value':{'intValue':%d}}", i ? "," : "", i, i);
    qf_strbuf_puts(text, "]}}");
    for (int i = 0; i < depth; i++)
        qf_strbuf_puts(text, "]}}");
    qf_strbuf_putc(text, '}');
}

/* Three points, of which the second one has such an attribute. */
static qf_rc take_large_point(int members, int depth)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_puts(&text, "{'resourceMetrics':[{'scopeMetrics':[{'metrics':[{'name':'a','gauge':"
                          "{'dataPoints':[{" AT ",'asInt':1},{" AT ",'asInt':2,'attributes':[");
    put_large(&text, "large", members, depth);
    qf_strbuf_puts(&text, "]}]}},{'name':'b','gauge':{'dataPoints':[{" AT ",'asInt':3}]}}]}]}]}");
    return take(qf_strbuf_cstr(&text));
}

TEST(an_attribute_that_is_too_large_refuses_its_point_alone)
{
    CHECK_EQ(take_large_point(IN_OTLP_MEMBERS_MAX, 1), QF_OK);
    CHECK(request.series_count == 3 && request.refused.samples == 0);
    CHECK_EQ(take_large_point(IN_OTLP_MEMBERS_MAX + 1, 0), QF_OK);
    CHECK(request.series_count == 2 && request.refused.samples == 1);
    CHECK_STR(request.first, "a map in an attribute has too many members: metric a");
    CHECK(value_of("a", NULL, NULL) == 1 && value_of("b", NULL, NULL) == 3);
    CHECK_EQ(take_large_point(1, IN_OTLP_DEPTH_MAX + 1), QF_OK);
    CHECK(request.series_count == 2 && request.refused.samples == 1);
    CHECK_STR(request.first, "an attribute's value is nested too deeply: metric a");
}

/* A resource with such an attribute, and two points. */
static qf_rc take_large_resource(const char *key)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_puts(&text, "{'resourceMetrics':[{'resource':{'attributes':[");
    put_large(&text, key, IN_OTLP_MEMBERS_MAX + 1, 0);
    qf_strbuf_puts(
        &text,
        "," STRING(
            "service.instance.id",
            "i") "]},'scopeMetrics':[{'metrics':[{"
                 "'name':'a','gauge':{'dataPoints':[{" AT ",'asInt':1},{" AT
                 ",'asInt':2,'attributes':[" STRING(
                     "k",
                     "v") "]}]}}]}]},"
                          "{'scopeMetrics':[{'metrics':[{'name':'b','gauge':{'dataPoints':[{" AT
                          ",'asInt':3}]}}]}]}]}");
    return take(qf_strbuf_cstr(&text));
}

TEST(a_resource_that_is_too_large_loses_its_info_or_if_nobody_knows_whose_they_are_its_points)
{
    CHECK_EQ(take_large_resource("large"), QF_OK);
    CHECK(request.series_count == 3 && request.refused.samples == 1);
    CHECK(strstr(request.first, "target_info"));
    CHECK(has_label(find("a", "k", "v"), "instance", "i"));
    CHECK_EQ(take_large_resource("service.name"), QF_OK);
    CHECK(request.series_count == 1 && request.refused.samples == 2);
    CHECK(value_of("b", NULL, NULL) == 3);
}

TEST(an_exemplar_that_is_too_large_goes_alone)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_puts(&text, "{'resourceMetrics':[{'scopeMetrics':[{'metrics':[{'name':'a','gauge':"
                          "{'dataPoints':[{" AT ",'asInt':1,'exemplars':[{" AT
                          ",'asInt':1,'filteredAttributes':[");
    put_large(&text, "large", IN_OTLP_MEMBERS_MAX + 1, 0);
    qf_strbuf_puts(&text, "]},{" AT ",'asInt':2}]}]}}]}]}]}");
    CHECK_EQ(take(qf_strbuf_cstr(&text)), QF_OK);
    CHECK(request.series_count == 1 && request.refused.samples == 0);
    CHECK(request.refused.exemplars == 1 && request.accepted.exemplars == 1);
}

/* --- JSON --- */

TEST(json_is_read_as_the_protocol_has_it)
{
    CHECK_EQ(take("{}"), QF_OK);
    CHECK_EQ(take(" { 'resourceMetrics' : [ ] , 'later' : {'a':[1,-2.5e3,true,null,'\\u00e9']} } "),
             QF_OK);
    CHECK_EQ(take("{'resourceMetrics':null}"), QF_OK);
    CHECK_EQ(take(METRICS("{'name':'a\\u002eb','gauge':{'dataPoints':[{" AT
                          ",'asDouble':'NaN','attributes':[" STRING(
                              "k", "\\ud83d\\ude00\\n\\t\\\\") "]}]}}")),
             QF_OK);
    CHECK(has_label(find("a_b", NULL, NULL), "k", "\xf0\x9f\x98\x80\n\t\\"));
    CHECK(isnan(value_of("a_b", NULL, NULL)));
}

TEST(json_that_is_none_is_refused_and_says_where)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{",
        "{}x",
        "{'resourceMetrics':{}}",
        "{'resourceMetrics':[}",
        "{'resourceMetrics':[{]}",
        "{'a':tru}",
        "{'a':1 'b':2}",
        "{'a':'\\ud800'}",
        "{'a':'\\x'}",
        "{'a':'",
        "{'a':[1,]}",
        "{'a':0x10}",
        METRICS("{'name':1}"),
        METRICS("{'name':'a','gauge':{'dataPoints':[{'timeUnixNano':1.5}]}}"),
        METRICS("{'name':'a','gauge':{'dataPoints':[{'timeUnixNano':'99999999999999999999'}]}}"),
        METRICS("{'name':'a','sum':{'isMonotonic':1}}"),
        METRICS("{'name':'a','gauge':{'dataPoints':[{'exemplars':[{'traceId':'xy'}]}]}}"),
    };

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++) {
        CHECK_EQ(take(texts[i]), QF_EPARSE);
        CHECK(strstr(err.msg, "byte "));
    }
}

TEST(json_has_a_depth_and_a_length)
{
    struct qf_strbuf text = QF_STRBUF_INIT, out = QF_STRBUF_INIT;

    qf_strbuf_puts(&text, "{'a':");
    for (int i = 0; i < 100000; i++)
        qf_strbuf_putc(&text, '[');
    CHECK_EQ(take(qf_strbuf_cstr(&text)), QF_EPARSE);
    CHECK(strstr(err.msg, "too deep"));
    qf_strbuf_reset(&text);
    qf_strbuf_puts(&text, "{\"resourceMetrics\":[");
    for (int i = 0; i < 1000; i++)
        qf_strbuf_puts(&text, i ? ",{}" : "{}");
    qf_strbuf_puts(&text, "]}");
    CHECK_EQ(in_otlp_json_decode(qf_strbuf_view(&text), 1000, &out, &err), QF_ELIMIT);
    CHECK(out.len < 1100);
    qf_strbuf_done(&text);
    qf_strbuf_done(&out);
}

TEST(messages_that_end_in_the_middle_are_refused)
{
    CHECK_EQ(take(METRICS("{'name':'a','gauge':{'dataPoints':[{" AT ",'asInt':1}]}}")), QF_OK);
    for (size_t len = 1; len < message.len; len++)
        CHECK_EQ(in_otlp_decode((struct qf_str){ message.data, len }, arena, &request, &err),
                 QF_EPARSE);
}

TEST(an_arena_that_is_spent_is_a_limit)
{
    struct qf_arena *small = qf_arena_new(256);

    CHECK_EQ(take(METRICS("{'name':'a','gauge':{'dataPoints':[{" AT ",'asInt':1},{" AT
                          ",'asInt':1},{" AT ",'asInt':1}]}}")),
             QF_OK);
    CHECK_EQ(in_otlp_decode(qf_strbuf_view(&message), small, &request, &err), QF_ELIMIT);
    (void)qf_arena_free(small);
}

TEST(answers_are_in_the_coding_of_the_request)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    in_otlp_put_response(&buf, true, 0, QF_STR(""));
    CHECK_STR(qf_strbuf_cstr(&buf), "{}");
    qf_strbuf_reset(&buf);
    in_otlp_put_response(&buf, true, 3, QF_STR("no \"x\""));
    CHECK_STR(qf_strbuf_cstr(&buf), "{\"partialSuccess\":{\"rejectedDataPoints\":\"3\","
                                    "\"errorMessage\":\"no \\\"x\\\"\"}}");
    qf_strbuf_reset(&buf);
    in_otlp_put_response(&buf, false, 0, QF_STR(""));
    CHECK_EQ(buf.len, 0);
    in_otlp_put_response(&buf, false, 3, QF_STR("no"));
    CHECK_STR(qf_strbuf_cstr(&buf), "\x0a\x06\x08\x03\x12\x02no");
    qf_strbuf_reset(&buf);
    in_otlp_put_status(&buf, false, 503, QF_STR("no"));
    CHECK_STR(qf_strbuf_cstr(&buf), "\x08\x0e\x12\x02no");
    qf_strbuf_reset(&buf);
    in_otlp_put_status(&buf, true, 400, QF_STR("no"));
    CHECK_STR(qf_strbuf_cstr(&buf), "{\"code\":3,\"message\":\"no\"}");
    qf_strbuf_done(&buf);
}
