/* test_source.c - copies of maps as series: labels and order, shards, matchers, times, clashes, bounds. */
#include "statemap/info/source.h"

#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "statemap/core/info.h"
#include "tests/unit/statemap/statemap_help.h"

enum { MAPS = 2 };

struct bench {
    char *folders[MAPS], *files[MAPS];
    struct sm_env *envs[MAPS];
    struct sm_info_map maps[MAPS];
    struct pq_matcher matchers[3];
    struct pq_select select;
    struct sm_info_options options;
};

static void add_map(struct bench *b, struct sm_layout layout, const char *metric)
{
    size_t i = b->options.count++;
    struct qf_strbuf file = QF_STRBUF_INIT;

    b->folders[i] = help_folder();
    b->envs[i] = help_env(b->folders[i], layout, NULL);
    qf_strbuf_printf(&file, "%s/" SM_DATA_FILE, b->folders[i]);
    b->files[i] = qf_strbuf_take(&file);
    b->maps[i] = (struct sm_info_map){
        .file = b->files[i], .name = "m", .layout = layout, .metric = metric, .interval_ms = 60000
    };
}

static struct bench *bench_new(struct sm_layout layout)
{
    struct bench *b = qf_xcalloc(1, sizeof(*b));

    b->select = (struct pq_select){ .matchers = b->matchers, .min_ts = 0, .max_ts = 120000 };
    b->options =
        (struct sm_info_options){ .maps = b->maps, .select = &b->select, .shard_count = 1 };
    add_map(b, layout, "m_info");
    return b;
}

static void bench_free(struct bench **b)
{
    for (size_t i = 0; i < (*b)->options.count; i++) {
        (void)sm_env_close((*b)->envs[i]);
        help_folder_gone(&(*b)->folders[i]);
        free((*b)->files[i]);
    }
    free(*b);
}

#define BENCH(layout) QF_CLEANUP(bench_free) struct bench *b = bench_new((struct sm_layout)layout)
#define KIND(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void put(struct bench *b, size_t map, const char *key, int64_t time, enum sm_type type,
                const char *value)
{
    struct sm_row row = help_row(key, time, value);

    row.value.type = type;
    help_put(b->envs[map], &row);
}

static void match(struct bench *b, const char *name, enum pq_match_type type, const char *value)
{
    b->matchers[b->select.matcher_count++] =
        (struct pq_matcher){ .type = type, .name = qf_str_from(name), .value = qf_str_from(value) };
}

/* "{labels} 0 60 120s; ..." in seconds, s: a marker. The environments are closed: nobody opens a file twice. */
static const char *read_all(struct bench *b)
{
    static struct qf_strbuf text;
    struct pq_source *source;
    struct pq_series series;
    struct qf_err err = { 0 };
    bool more = true;

    for (size_t i = 0; i < b->options.count; i++)
        b->envs[i] = sm_env_close(b->envs[i]);
    qf_strbuf_reset(&text);
    source = sm_info_source_new(&b->options);
    while (more) {
        qf_rc rc = source->next(source, &series, &more, &err);

        if (rc != QF_OK) {
            qf_strbuf_printf(&text, "%s: %s", qf_rc_name(rc), err.msg);
            break;
        }
        if (!more)
            break;
        if (text.len)
            qf_strbuf_puts(&text, "; ");
        qf_labels_print(&text, series.labels);
        for (size_t i = 0; i < series.count; i++) {
            CHECK(qf_is_stale(series.values[i]) || series.values[i] == 1);
            CHECK(!series.no_stale || series.values[i] == 1);
            qf_strbuf_printf(&text, " %lld%s", (long long)series.ts[i] / 1000,
                             qf_is_stale(series.values[i]) ? "s" : "");
        }
    }
    source->close(source);
    return qf_strbuf_cstr(&text);
}

TEST(state_is_there_always_with_a_label_for_each_member)
{
    BENCH(KIND(SM_STATE, false));
    put(b, 0, "b", 0, SM_JSON,
        "{\"team\":\"x\",\"tier\":1,\"ok\":true,\"none\":null,\"ratio\":0.1,\"list\":[1,{\"a\":2}],"
        "\"__name__\":\"n\",\"key\":\"k\",\"\":\"e\",\"empty\":\"\"}");
    put(b, 0, "a", 0, SM_STRING, "plain");
    put(b, 0, "c", 0, SM_JSON, "[1,2]");
    CHECK_STR(read_all(b), "{__name__=\"m_info\", key=\"a\", value=\"plain\"} 0 60 120; "
                           "{__name__=\"m_info\", key=\"b\", list=\"[1,{\\\"a\\\":2}]\", "
                           "ok=\"true\", ratio=\"0.1\", team=\"x\", "
                           "tier=\"1\"} 0 60 120; "
                           "{__name__=\"m_info\", key=\"c\", value=\"[1,2]\"} 0 60 120");
}

/* A confirmation changes nothing; what comes back is the same series again. */
TEST(temporal_state_ends_where_the_next_row_begins)
{
    BENCH(KIND(SM_TEMPORAL, false));
    b->select.max_ts = 300000;
    put(b, 0, "a", 0, SM_STRING, "1");
    put(b, 0, "a", 60000, SM_STRING, "1");
    put(b, 0, "a", 90000, SM_STRING, "2");
    put(b, 0, "a", 180000, SM_STRING, "1");
    put(b, 0, "b", 250000, SM_STRING, "3");
    CHECK_STR(read_all(b), "{__name__=\"m_info\", key=\"a\", value=\"1\"} 0 60 90s 180 240 300; "
                           "{__name__=\"m_info\", key=\"a\", value=\"2\"} 120 180s; "
                           "{__name__=\"m_info\", key=\"b\", value=\"3\"} 300");
}

TEST(sessions_that_touch_are_one_and_end_with_a_marker)
{
    BENCH(KIND(SM_SESSION, false));
    b->select.max_ts = 300000;
    help_put(b->envs[0], &(struct sm_row){ .key = QF_STR("a"), .time = 0, .end = 60000 });
    help_put(b->envs[0], &(struct sm_row){ .key = QF_STR("a"), .time = 60000, .end = 100000 });
    help_put(b->envs[0], &(struct sm_row){ .key = QF_STR("a"), .time = 200000, .end = 210000 });
    CHECK_STR(read_all(b), "{__name__=\"m_info\", key=\"a\"} 0 60 100s 210s");
}

/* Each kind of keys: the same with a look-up as with a walk over everything. */
static void check_key(struct sm_layout layout)
{
    QF_CLEANUP(bench_free) struct bench *b = bench_new(layout);
    char key[20];

    b->select.max_ts = 0;
    for (int i = 0; i < 300; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        put(b, 0, key, 0, SM_STRING, "v");
        put(b, 0, key, 1000, SM_STRING, "w");
    }
    match(b, "key", PQ_MATCH_EQUAL, "k17");
    CHECK_STR(read_all(b), sm_kind_timed(layout.kind)
                               ? "{__name__=\"m_info\", key=\"k17\", value=\"v\"} 0"
                               : "{__name__=\"m_info\", key=\"k17\", value=\"w\"} 0");
    b->matchers[0].value = QF_STR("k1700");
    CHECK_STR(read_all(b), "");
}

TEST(a_key_that_is_asked_for_is_looked_up)
{
    check_key((struct sm_layout){ SM_STATE, false });
    check_key((struct sm_layout){ SM_STATE, true });
    check_key((struct sm_layout){ SM_TEMPORAL, false });
    check_key((struct sm_layout){ SM_TEMPORAL, true });
}

TEST(matchers_choose_among_all_labels)
{
    BENCH(KIND(SM_STATE, true));
    b->select.max_ts = 0;
    put(b, 0, "a", 0, SM_JSON, "{\"team\":\"x\"}");
    put(b, 0, "b", 0, SM_JSON, "{\"team\":\"y\"}");
    put(b, 0, "c", 0, SM_JSON, "{}");
    match(b, "team", PQ_MATCH_NOT_EQUAL, "y");
    match(b, "__name__", PQ_MATCH_EQUAL, "m_info");
    CHECK_STR(read_all(b),
              "{__name__=\"m_info\", key=\"a\", team=\"x\"} 0; {__name__=\"m_info\", key=\"c\"} 0");
    b->matchers[1].value = QF_STR("other_info");
    CHECK_STR(read_all(b), "");
}

TEST(each_series_is_in_one_shard)
{
    BENCH(KIND(SM_STATE, false));
    size_t found = 0;
    char key[20];

    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        put(b, 0, key, 0, SM_STRING, "v");
    }
    b->select.max_ts = 0;
    b->options.shard_count = 8;
    for (uint32_t shard = 0; shard < 8; shard++) {
        const char *at;

        b->options.shard = shard;
        at = read_all(b);
        CHECK(*at);
        for (; (at = strstr(at, "{__name__")) != NULL; at++)
            found++;
    }
    CHECK_EQ(found, 100);
}

/* Two maps that say the same series: one of them, whole. */
TEST(of_two_maps_with_one_series_the_first_one_counts)
{
    BENCH(KIND(SM_STATE, false));
    add_map(b, (struct sm_layout){ SM_TEMPORAL, false }, "m_info");
    put(b, 0, "a", 0, SM_STRING, "v");
    put(b, 1, "a", 60000, SM_STRING, "v");
    put(b, 1, "b", 60000, SM_STRING, "v");
    CHECK_STR(read_all(b), "{__name__=\"m_info\", key=\"a\", value=\"v\"} 0 60 120; "
                           "{__name__=\"m_info\", key=\"b\", value=\"v\"} 60 120");
}

TEST(presence_is_one_sample)
{
    BENCH(KIND(SM_TEMPORAL, false));
    b->select.min_ts = -INT64_C(62135596800000);
    b->select.max_ts = INT64_C(253402300799999);
    b->options.presence = true;
    put(b, 0, "a", 90000, SM_STRING, "v");
    put(b, 0, "b", 61000, SM_STRING, "never scraped");
    put(b, 0, "b", 62000, SM_STRING, "v");
    CHECK_STR(read_all(b), "{__name__=\"m_info\", key=\"a\", value=\"v\"} 120; "
                           "{__name__=\"m_info\", key=\"b\", value=\"v\"} 120");
}

TEST(what_needs_too_much_memory_is_said)
{
    BENCH(KIND(SM_STATE, false));
    put(b, 0, "a", 0, SM_STRING, "v");
    b->options.memory_max = 1 << 20;
    b->select.max_ts = INT64_C(253402300799999);
    CHECK(strstr(read_all(b), "limit: info series of state maps need more than the 1048576 bytes"));
}

TEST(a_copy_of_another_version_or_layout_is_not_read)
{
    BENCH(KIND(SM_STATE, false));
    put(b, 0, "a", 0, SM_STRING, "v");
    b->maps[0].version = 9;
    CHECK_STR(read_all(b), "corrupt: map m: the copy is of another version");
    b->maps[0].version = 0;
    b->maps[0].layout.direct = true;
    CHECK(strstr(read_all(b), "unsupported: "));
    b->maps[0].file = "/nowhere/at/all";
    CHECK(strstr(read_all(b), "not_found: "));
}

TEST(a_canceled_work_ends)
{
    BENCH(KIND(SM_STATE, false));
    atomic_bool cancel = true;

    put(b, 0, "a", 0, SM_STRING, "v");
    b->options.cancel = &cancel;
    CHECK(strstr(read_all(b), "cancel"));
}
