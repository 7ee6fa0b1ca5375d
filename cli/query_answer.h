/* query_answer.h - what the API answered to `promfabric query`, out of either form it answers in.
 *
 * An instant query is answered by one document, a range by events: "series" with labels, each once,
 * then "batch" with rows of values. Numbers of events may be larger than any integer of C. */
#ifndef CLI_QUERY_ANSWER_H
#define CLI_QUERY_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/pure/vec.h"

struct cli_point {
    int64_t ms;
    double value;      /* of a histogram its observations */
    json_t *histogram; /* NULL: a float, or one that was not kept */
};

struct cli_series {
    json_t *tags; /* label names and values; NULL: it has none */
    char *label;  /* the same as text: name{a="b"} */
    QF_VEC(struct cli_point) points;
};

struct cli_answer {
    QF_VEC(struct cli_series) series; /* in the order of the answer */
    char *text;          /* the answer is a string, and nothing else; NULL: it is none */
    bool one_time;       /* each series has one point, of the same time */
    bool all_histograms; /* keep each histogram, not only the last of a series */
};

void cli_answer_done(struct cli_answer *answer);

/* "data" of a document. False: it has no form we know. */
bool cli_answer_document(struct cli_answer *answer, const json_t *data);

/* Flags for json_loads() that read the event in @text without loss. */
size_t cli_event_flags(const char *text);
/* One event; those that have no values are ignored. */
void cli_answer_event(struct cli_answer *answer, const char *type, const json_t *data);

/* By label, for answers whose order is nobody's wish. */
void cli_answer_sort(struct cli_answer *answer);

#endif
