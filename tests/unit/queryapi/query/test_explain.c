/* test_explain.c - many changes of many work items, told in few events. */
#include "queryapi/query/explain.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

#define ITEMS 4096

static struct qa_query_env env = { .memory_bytes_max = 64 << 20 };

/* A watched query whose plan has @count items, without the plan. */
static struct qa_query *watched(size_t count)
{
    struct qh_stream *stream = qh_stream_new(1 << 20);
    struct qa_ask ask = { .kind = QA_QUERY_EVENTS, .explain = true, .text = QF_STR("up") };
    struct qa_query *query = qa_query_new(&env, &ask, stream);
    struct qa_explain *explain = QF_ARENA_NEW(query->arena, struct qa_explain);

    explain->count = count;
    explain->notes = QF_ARENA_ARRAY(query->arena, struct qa_work_note, count);
    explain->changed = QF_ARENA_ARRAY(query->arena, uint32_t, count);
    for (size_t i = 0; i < count; i++)
        explain->notes[i].view = (struct qa_work_view){ .id = (uint32_t)i, .state = "pending" };
    query->explain = explain;
    (void)qh_stream_drop(stream);
    return query;
}

/* What was written to the stream since the last look; the caller frees it. */
static char *written(struct qa_query *query)
{
    struct qf_strbuf all = QF_STRBUF_INIT;
    struct qh_stream_hooks hooks = { .fd = -1 };
    char piece[4096];
    ssize_t len;

    qh_stream_attach(query->stream, &hooks);
    qh_stream_end(query->stream);
    while ((len = qh_stream_take(query->stream, piece, sizeof(piece))) > 0)
        qf_strbuf_add(&all, piece, (size_t)len);
    return qf_strbuf_take(&all);
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

/* However often items change, an event holds no more than it may, and the last state of each. */
TEST(changes_of_thousands_of_items_are_told_in_bounded_events)
{
    struct qa_query *query = watched(ITEMS);
    size_t events = 0, told = 0;
    char *text;

    qh_stream_begin(query->stream, 200, "text/event-stream");
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < ITEMS; i++)
            qa_explain_mark(query->explain, i);
    CHECK_EQ(query->explain->changed_count, ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        query->explain->notes[i].view.state = "accepted";
    for (size_t count; (count = qa_explain_works(query, QA_WORKS_AT_ONCE)) > 0; events++) {
        CHECK(count <= QA_WORKS_AT_ONCE);
        told += count;
    }
    CHECK_EQ(told, ITEMS);
    CHECK_EQ(events, ITEMS / QA_WORKS_AT_ONCE);
    text = written(query);
    CHECK_EQ(count_of(text, "\"type\":\"works\""), events);
    CHECK_EQ(count_of(text, "\"state\":\"accepted\""), ITEMS);
    CHECK_EQ(count_of(text, "pending"), 0);
    CHECK_EQ(count_of(text, "{\"id\":4095,"), 1);
    free(text);
    (void)qa_query_free(query);
}

/* An item that changes while others wait to be told keeps its place in line. */
TEST(the_oldest_changes_are_told_first)
{
    struct qa_query *query = watched(4);
    char *text;

    qh_stream_begin(query->stream, 200, "text/event-stream");
    qa_explain_mark(query->explain, 3);
    qa_explain_mark(query->explain, 1);
    qa_explain_mark(query->explain, 3);
    CHECK_EQ(qa_explain_works(query, 1), 1);
    qa_explain_mark(query->explain, 3);
    CHECK_EQ(qa_explain_works(query, 8), 2);
    CHECK_EQ(qa_explain_works(query, 8), 0);
    text = written(query);
    CHECK(strstr(text, "[{\"id\":3,") && strstr(text, "[{\"id\":1,"));
    CHECK(strstr(text, "[{\"id\":3,") < strstr(text, "[{\"id\":1,"));
    CHECK_EQ(count_of(text, "\"type\":\"works\""), 2);
    free(text);
    (void)qa_query_free(query);
}

TEST(names_of_workers_are_kept_once_each)
{
    struct qa_query *query = watched(1);
    const char *name = qa_explain_name(query, 7, "w7");

    CHECK_STR(name, "w7");
    CHECK_STR(qa_explain_name(query, 8, "w8"), "w8");
    CHECK(qa_explain_name(query, 7, "another") == name);
    CHECK_EQ(query->explain->name_count, 2);
    (void)qa_query_free(query);
}

/* Only a client of events that asked for it. */
TEST(who_did_not_ask_is_told_nothing)
{
    struct qa_query *query = watched(1);

    CHECK(qa_explained(query));
    query->ask.explain = false;
    CHECK(!qa_explained(query));
    query->ask.explain = true;
    query->ask.kind = QA_QUERY_RANGE;
    CHECK(!qa_explained(query));
    (void)qa_query_free(query);
}
