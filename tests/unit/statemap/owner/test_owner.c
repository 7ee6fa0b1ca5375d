/* test_owner.c - definitions and parts by one log: the same at every owner, whatever moment anybody stops at. */
#include "statemap/owner/owner.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include "statemap/load/load.h"
#include "statemap/store/rules.h"
#include "tests/unit/statemap/statemap_help.h"

/* A log, and an owner that does it. */
struct bench {
    char *folder;
    struct sm_owner *owner;
    QF_VEC(char *) entries; /* the first one is at position 1 */
    QF_VEC(size_t) lens;
    QF_VEC(int64_t) times;
    int64_t now;
    struct sm_verdict verdict; /* of the last one done */
    struct qf_err err;
};

static void open_owner(struct bench *b)
{
    QF_CLEANUP(qf_freep) char *root = sm_path(b->folder, "state", NULL);

    CHECK_OK(sm_owner_open(root, &b->owner, &b->err), &b->err);
    sm_owner_merge(b->owner);
}

static struct bench bench_open(void)
{
    struct bench b = { .folder = help_folder(), .now = 1000 };

    open_owner(&b);
    return b;
}

static void bench_done(struct bench *b)
{
    b->owner = sm_owner_close(b->owner);
    for (size_t i = 0; i < b->entries.count; i++)
        free(b->entries.items[i]);
    QF_VEC_DONE(&b->entries);
    QF_VEC_DONE(&b->lens);
    QF_VEC_DONE(&b->times);
    help_folder_gone(&b->folder);
}

static uint64_t say(struct bench *b, const struct sm_entry *entry)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    sm_entry_encode(&bytes, entry);
    QF_VEC_PUSH(&b->lens, bytes.len);
    QF_VEC_PUSH(&b->entries, qf_xmemdup0(bytes.data, bytes.len));
    QF_VEC_PUSH(&b->times, b->now++);
    return b->entries.count;
}

/* Do what the log has and the owner has not. */
static qf_rc do_log(struct bench *b, bool save)
{
    qf_rc rc = QF_OK;

    for (uint64_t at = sm_owner_next(b->owner); at <= b->entries.count && rc == QF_OK; at++)
        rc = sm_owner_apply(b->owner, at, b->times.items[at - 1],
                            (struct qf_str){ b->entries.items[at - 1], b->lens.items[at - 1] },
                            &b->verdict, &b->err);
    if (rc == QF_OK && save)
        CHECK_OK(sm_owner_save(b->owner, &b->err), &b->err);
    return rc;
}

static uint64_t define(struct bench *b, const char *tenant, const char *json, uint64_t expected)
{
    uint64_t position = say(b, &(struct sm_entry){ .kind = SM_ENTRY_DEFINE,
                                                   .tenant = qf_str_from(tenant),
                                                   .expected = expected,
                                                   .bytes = qf_str_from(json) });

    CHECK_OK(do_log(b, true), &b->err);
    return position;
}

static void drop(struct bench *b, const char *tenant, const char *name)
{
    (void)say(b, &(struct sm_entry){ .kind = SM_ENTRY_DROP,
                                     .tenant = qf_str_from(tenant),
                                     .expected = SM_EXPECT_ANY,
                                     .bytes = qf_str_from(name) });
    CHECK_OK(do_log(b, true), &b->err);
}

/* Pieces of a part with these rows go into the log, and its load if @load. */
static void send(struct bench *b, const char *tenant, uint64_t upload, const char *rows, bool load)
{
    QF_CLEANUP(qf_freep) char *path = sm_owner_outgoing(b->owner, upload);
    struct sm_load_options options = { .now_ms = 5 };
    static char bytes[1 << 20];
    struct sm_entry entry = { .upload = upload, .tenant = qf_str_from(tenant) };
    struct sm_load *reader;
    bool any = false;
    ssize_t len;
    int file;

    CHECK_OK(sm_owner_store(b->owner, qf_str_from(tenant), &options.store, &b->err), &b->err);
    CHECK_OK(sm_writer_begin(options.store, &options.writer, &b->err), &b->err);
    reader = sm_load_new(&options, SM_JSON_LINES);
    CHECK_OK(sm_load_feed(reader, qf_str_from(rows), &b->err), &b->err);
    CHECK_OK(sm_load_end(reader, &b->err), &b->err);
    (void)sm_load_free(reader);
    CHECK_OK(sm_writer_pack(options.writer, path, &any, &b->err), &b->err);
    CHECK(any);
    file = open(path, O_RDONLY);
    len = read(file, bytes, sizeof(bytes));
    CHECK(len > 100);
    (void)close(file);
    (void)unlink(path);
    for (ssize_t at = 0; at < len; at += 100) {
        entry.kind = SM_ENTRY_PIECE;
        entry.offset = (uint64_t)at;
        entry.bytes = (struct qf_str){ bytes + at, (size_t)QF_MIN(len - at, (ssize_t)100) };
        (void)say(b, &entry);
    }
    entry.kind = SM_ENTRY_LOAD;
    entry.size = (uint64_t)len;
    entry.sum = XXH3_64bits(bytes, (size_t)len);
    if (load)
        (void)say(b, &entry);
}

static void load(struct bench *b, const char *tenant, uint64_t upload, const char *rows)
{
    send(b, tenant, upload, rows, true);
    CHECK_OK(do_log(b, true), &b->err);
}

static const char *get(struct bench *b, const char *tenant, const char *map, const char *key)
{
    static char text[64];
    struct sm_reading reading;
    struct sm_store *store = NULL;
    struct sm_row row;
    bool found = false;
    qf_rc rc = sm_owner_store(b->owner, qf_str_from(tenant), &store, &b->err);

    if (rc == QF_OK)
        rc = sm_reading_begin(store, qf_str_from(map), &reading, &b->err);
    if (rc == QF_ENOTFOUND)
        return "-";
    CHECK_OK(rc, &b->err);
    CHECK_OK(sm_find(reading.txn, qf_str_from(key), 10000, &found, &row, &b->err), &b->err);
    (void)snprintf(text, sizeof(text), "%.*s", found ? (int)row.value.bytes.len : 1,
                   found ? row.value.bytes.data : "-");
    sm_reading_end(store, &reading);
    return text;
}

static void reopen(struct bench *b)
{
    b->owner = sm_owner_close(b->owner);
    open_owner(b);
}

#define TEAM "{\"name\":\"team\",\"kind\":\"state\"}"

TEST(a_definition_counts_only_if_it_is_of_the_expected_version)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    uint64_t first = define(&b, "acme", TEAM, 0);

    CHECK_EQ(b.verdict.err.rc, QF_OK);
    CHECK_EQ(b.verdict.version, first);
    (void)define(&b, "acme", TEAM, 0);
    CHECK_EQ(b.verdict.err.rc, QF_EEXIST);
    (void)define(&b, "acme", "{\"name\":\"team\",\"kind\":\"state\",\"metric\":\"team_info\"}",
                 first);
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    (void)define(&b, "acme", TEAM, first);
    CHECK_EQ(b.verdict.err.rc, QF_EEXIST);
    (void)define(&b, "acme", "{\"name\":\"team\",\"kind\":\"temporal\"}", SM_EXPECT_ANY);
    CHECK_EQ(b.verdict.err.rc, QF_EEXIST);
    (void)define(&b, "acme", "{\"name\":\"x\",\"kind\":\"state\",\"metric\":\"team_info\"}", 0);
    CHECK_EQ(b.verdict.err.rc, QF_EEXIST);
    (void)define(&b, "else", "{\"name\":\"x\",\"kind\":\"state\",\"metric\":\"team_info\"}", 0);
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    (void)define(&b, "acme", "{\"name\":\"x\"}", 0);
    CHECK_EQ(b.verdict.err.rc, QF_EINVAL);
}

/* --- rules --- */

static uint64_t rule(struct bench *b, const char *tenant, const char *json, uint64_t expected)
{
    uint64_t position = say(b, &(struct sm_entry){ .kind = SM_ENTRY_RULE,
                                                   .tenant = qf_str_from(tenant),
                                                   .expected = expected,
                                                   .bytes = qf_str_from(json) });

    CHECK_OK(do_log(b, true), &b->err);
    return position;
}

static void unrule(struct bench *b, const char *tenant, const char *name, uint64_t expected)
{
    (void)say(b, &(struct sm_entry){ .kind = SM_ENTRY_UNRULE,
                                     .tenant = qf_str_from(tenant),
                                     .expected = expected,
                                     .bytes = qf_str_from(name) });
    CHECK_OK(do_log(b, true), &b->err);
}

/* Versions of the rules in force, by their order; "": none. */
static const char *rules(struct bench *b, const char *tenant)
{
    static char text[256];
    struct sm_rule_set *set = NULL;
    struct sm_store *store = NULL;

    CHECK_OK(sm_owner_store(b->owner, qf_str_from(tenant), &store, &b->err), &b->err);
    CHECK_OK(sm_rules_take(store, 0, &set, &b->err), &b->err);
    text[0] = '\0';
    for (size_t i = 0; set && i < set->count; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %llu ",
                       set->rules[i].name, (unsigned long long)set->rules[i].version);
    sm_rules_give_back(set);
    return text;
}

#define BY_SERVICE "\"map\":\"team\",\"from\":\"service\",\"to\":\"team\"}"

TEST(a_rule_counts_if_its_map_is_there_and_keeps_it_there)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    uint64_t first;

    (void)rule(&b, "acme", "{\"name\":\"a\"," BY_SERVICE, 0);
    CHECK_EQ(b.verdict.err.rc, QF_EINVAL); /* nobody has maps */
    (void)define(&b, "acme", "{\"name\":\"team\",\"kind\":\"state\",\"type\":\"string\"}", 0);
    first = rule(&b, "acme", "{\"name\":\"a\"," BY_SERVICE, 0);
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    CHECK_EQ(b.verdict.version, first);
    (void)rule(&b, "acme", "{\"name\":\"a\"," BY_SERVICE, 0);
    CHECK_EQ(b.verdict.err.rc, QF_EEXIST);
    (void)rule(&b, "acme", "{\"name\":\"b\"," BY_SERVICE, 7);
    CHECK_EQ(b.verdict.err.rc, QF_EEXIST);
    (void)rule(&b, "acme", "{\"name\":\"b\",\"map\":\"nowhere\",\"from\":\"a\"}", 0);
    CHECK_EQ(b.verdict.err.rc, QF_EINVAL);
    (void)rule(&b, "acme", "{\"name\":\"b\",\"map\":\"team\",\"from\":\"a\"}", 0);
    CHECK_EQ(b.verdict.err.rc, QF_EINVAL); /* its values have no members */
    (void)rule(&b, "acme", "{\"name\":", 0);
    CHECK_EQ(b.verdict.err.rc, QF_EINVAL);
    first = rule(&b, "acme", "{\"name\":\"a\",\"order\":5," BY_SERVICE, first);
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    drop(&b, "acme", "team");
    CHECK_EQ(b.verdict.err.rc, QF_EEXIST);
    unrule(&b, "acme", "a", first - 1);
    CHECK_EQ(b.verdict.err.rc, QF_EEXIST);
    unrule(&b, "acme", "nobody", SM_EXPECT_ANY);
    CHECK_EQ(b.verdict.err.rc, QF_ENOTFOUND);
    unrule(&b, "else", "a", SM_EXPECT_ANY);
    CHECK_EQ(b.verdict.err.rc, QF_ENOTFOUND);
    unrule(&b, "acme", "A", first);
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    CHECK_STR(rules(&b, "acme"), "");
    drop(&b, "acme", "team");
    CHECK_EQ(b.verdict.err.rc, QF_OK);
}

/* The position is written after what was done. */
TEST(rules_that_are_done_again_after_a_crash_are_the_same)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    (void)define(&b, "acme", TEAM, 0);
    for (const char *name = "cba"; *name; name++) {
        char text[100];

        (void)snprintf(text, sizeof(text), "{\"name\":\"%c\"," BY_SERVICE, *name);
        (void)say(&b, &(struct sm_entry){ .kind = SM_ENTRY_RULE,
                                          .tenant = QF_STR("acme"),
                                          .expected = 0,
                                          .bytes = qf_str_from(text) });
        CHECK_OK(do_log(&b, false), &b.err);
        CHECK_EQ(b.verdict.err.rc, QF_OK);
        reopen(&b);
    }
    CHECK_OK(do_log(&b, true), &b.err);
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    CHECK_STR(rules(&b, "acme"), "a 4 b 3 c 2 ");
}

TEST(a_load_counts_for_its_tenant_and_is_merged_once)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    (void)define(&b, "acme", TEAM, 0);
    (void)define(&b, "else", TEAM, 0);
    load(&b, "acme", 1, "{\"map\":\"team\",\"key\":\"checkout\",\"value\":\"blue\"}\n");
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    CHECK_STR(get(&b, "acme", "team", "checkout"), "blue");
    CHECK_STR(get(&b, "else", "team", "checkout"), "-");
    load(&b, "acme", 2, "{\"map\":\"team\",\"key\":\"checkout\",\"value\":\"green\"}\n");
    CHECK_STR(get(&b, "acme", "team", "checkout"), "green");
    reopen(&b);
    CHECK_EQ(sm_owner_next(b.owner), b.entries.count + 1);
    CHECK_STR(get(&b, "acme", "team", "checkout"), "green");
}

TEST(a_load_that_lacks_a_piece_counts_for_nothing)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    uint64_t last;

    (void)define(&b, "acme", TEAM, 0);
    send(&b, "acme", 1, "{\"map\":\"team\",\"key\":\"a\",\"value\":\"blue\"}\n", true);
    last = b.entries.count;
    /* The second piece never came: the log has something else there. */
    free(b.entries.items[2]);
    b.entries.items[2] = qf_xstrdup("?");
    b.lens.items[2] = 1;
    CHECK_OK(do_log(&b, true), &b.err);
    CHECK_EQ(b.verdict.err.rc, QF_EUNAVAILABLE);
    CHECK_EQ(sm_owner_next(b.owner), last + 1);
    CHECK_EQ(sm_owner_needed(b.owner), last + 1);
    CHECK_STR(get(&b, "acme", "team", "a"), "-");
}

TEST(an_upload_that_was_left_is_forgotten_after_a_while)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_entry piece = { .kind = SM_ENTRY_PIECE, .upload = 9, .bytes = QF_STR("PFSTATE1") };
    uint64_t first;

    (void)define(&b, "acme", TEAM, 0);
    first = say(&b, &piece);
    CHECK_OK(do_log(&b, true), &b.err);
    CHECK_EQ(sm_owner_needed(b.owner), first);
    b.now += SM_UPLOAD_MS_MAX + 1000;
    (void)define(&b, "acme", TEAM, SM_EXPECT_ANY);
    CHECK_EQ(sm_owner_needed(b.owner), b.entries.count + 1);
}

/* Whatever was saved when it stopped: what comes after is done once, and to the same end. */
TEST(an_owner_that_stops_anywhere_comes_to_the_same_maps)
{
    for (uint64_t stop = 1; stop < 40; stop += 3) {
        QF_CLEANUP(bench_done) struct bench b = bench_open();

        (void)define(&b, "acme", TEAM, 0);
        send(&b, "acme", 1, "{\"map\":\"team\",\"key\":\"a\",\"value\":\"1\"}\n", true);
        send(&b, "acme", 2, "{\"map\":\"team\",\"key\":\"b\",\"value\":\"2\"}\n", true);
        send(&b, "acme", 3, "{\"map\":\"team\",\"key\":\"a\",\"value\":\"3\"}\n", true);
        for (uint64_t at = 2; at <= QF_MIN(stop, (uint64_t)b.entries.count); at++)
            CHECK_OK(
                sm_owner_apply(b.owner, at, b.times.items[at - 1],
                               (struct qf_str){ b.entries.items[at - 1], b.lens.items[at - 1] },
                               &b.verdict, &b.err),
                &b.err);
        if (stop % 2)
            CHECK_OK(sm_owner_save(b.owner, &b.err), &b.err);
        reopen(&b);
        CHECK_OK(do_log(&b, true), &b.err);
        CHECK_STR(get(&b, "acme", "team", "a"), "3");
        CHECK_STR(get(&b, "acme", "team", "b"), "2");
        CHECK_EQ(sm_owner_needed(b.owner), b.entries.count + 1);
    }
}

TEST(rows_of_a_map_that_was_dropped_do_not_come_back_with_its_name)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_reading reading;
    struct sm_store *store = NULL;
    struct sm_row row;
    bool found = false;

    (void)define(&b, "acme", TEAM, 0);
    load(&b, "acme", 1, "{\"map\":\"team\",\"key\":\"a\",\"value\":\"1\"}\n");
    CHECK_OK(sm_owner_store(b.owner, QF_STR("acme"), &store, &b.err), &b.err);
    CHECK_OK(sm_reading_begin(store, QF_STR("team"), &reading, &b.err), &b.err);
    drop(&b, "acme", "TEAM");
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    /* Who reads it still may. */
    CHECK_OK(sm_find(reading.txn, QF_STR("a"), 0, &found, &row, &b.err), &b.err);
    CHECK(found);
    sm_reading_end(store, &reading);
    (void)define(&b, "acme", "{\"name\":\"team\",\"kind\":\"temporal\"}", 0);
    CHECK_EQ(b.verdict.err.rc, QF_OK);
    CHECK_STR(get(&b, "acme", "team", "a"), "-");
    drop(&b, "acme", "team");
    drop(&b, "acme", "team");
    CHECK_EQ(b.verdict.err.rc, QF_ENOTFOUND);
}

TEST(a_full_map_keeps_what_it_had_and_takes_the_rest_once_it_may_be_larger)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf rows = QF_STRBUF_INIT;
    struct qf_err why = { 0 };

    (void)define(&b, "acme", "{\"name\":\"team\",\"kind\":\"state\",\"map_bytes\":1048576}", 0);
    load(&b, "acme", 1, "{\"map\":\"team\",\"key\":\"a\",\"value\":\"1\"}\n");
    for (uint64_t part = 2; part < 5; part++) {
        qf_strbuf_reset(&rows);
        for (int i = 0; i < 90; i++)
            qf_strbuf_printf(&rows, "{\"map\":\"team\",\"key\":\"k%d-%d\",\"value\":\"%04000d\"}\n",
                             (int)part, i, i);
        load(&b, "acme", part, qf_strbuf_cstr(&rows));
    }
    CHECK_EQ(b.verdict.err.rc, QF_ENOSPC);
    CHECK(sm_owner_waiting(b.owner, &why) > 0);
    CHECK_EQ(why.rc, QF_ENOSPC);
    CHECK_STR(get(&b, "acme", "team", "a"), "1");
    (void)define(&b, "acme", "{\"name\":\"team\",\"kind\":\"state\",\"map_bytes\":16777216}",
                 SM_EXPECT_ANY);
    CHECK_EQ(sm_owner_waiting(b.owner, &why), 0);
    CHECK(strlen(get(&b, "acme", "team", "k4-89")) > 60);
}
