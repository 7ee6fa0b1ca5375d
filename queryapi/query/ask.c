/* ask.c - kinds of queries, and copies of what was asked. */
#include "queryapi/query/ask.h"

#include <assert.h>
#include <string.h>

struct row {
    const char *name;
    enum qa_asks asks;
    enum qa_format format;
};

static const struct row rows[QA_QUERY__COUNT] = {
#define QA_KIND(kind, name, asks, format)                                                          \
    [QA_QUERY_##kind] = { name, QA_ASKS_##asks, QA_FORMAT_##format },
#include "queryapi/query/kinds.def"
#undef QA_KIND
};

static const struct row *row_of(enum qa_query_kind kind)
{
    assert(kind < QA_QUERY__COUNT);
    return &rows[kind];
}

const char *qa_query_kind_name(enum qa_query_kind kind)
{
    return row_of(kind)->name;
}

enum qa_asks qa_query_kind_asks(enum qa_query_kind kind)
{
    return row_of(kind)->asks;
}

enum qa_format qa_query_kind_format(enum qa_query_kind kind)
{
    return row_of(kind)->format;
}

struct qa_ask qa_ask_copy(struct qf_arena *arena, const struct qa_ask *ask)
{
    struct qa_ask copy = *ask;
    struct qf_str *matches = NULL;
    struct qa_ask_range *ranges = NULL;

    copy.tenant = qf_arena_str(arena, ask->tenant);
    copy.text = qf_arena_str(arena, ask->text);
    copy.label = qf_arena_str(arena, ask->label);
    copy.traceparent = qf_arena_str(arena, ask->traceparent);
    if (ask->match_count)
        matches = QF_ARENA_ARRAY(arena, struct qf_str, ask->match_count);
    if (ask->match_count && ask->ranges)
        ranges = QF_ARENA_ARRAY(arena, struct qa_ask_range, ask->match_count);
    if (ranges)
        memcpy(ranges, ask->ranges, ask->match_count * sizeof(*ranges));
    copy.ranges = ranges;
    copy.matches = matches;
    copy.match_count = matches ? ask->match_count : 0;
    for (size_t i = 0; i < copy.match_count; i++)
        matches[i] = qf_arena_str(arena, ask->matches[i]);
    return copy;
}
