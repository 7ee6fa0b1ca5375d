/* script.h - promqltest scripts as commands: load, clear, eval.
 *
 * A script is read whole before anything runs. Blocks end at an empty line or a comment. What a
 * line means is described in Prometheus's promqltest package; this reader takes everything of it.
 */
#ifndef TESTS_PROMQLTEST_SCRIPT_H
#define TESTS_PROMQLTEST_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/labels.h"
#include "promql/parse.h"
#include "promql/testing/series.h"

struct qf_regex;

/* One line of a load block: value i is at i * gap. */
struct script_series {
    size_t line;
    struct qf_labels labels;
    struct pq_sequence_value *values;
    size_t count;
    int64_t *start_offsets; /* NULL, or per value what to add to its time; see start_known */
    bool *start_known;
};

struct script_load {
    int64_t gap_ms;
    bool with_nhcb; /* also build native histograms with custom buckets from classic ones */
    struct script_series *series;
    size_t series_count;
};

/* An `expect warn|info|fail` with its matcher. */
struct script_expect {
    struct qf_str text;           /* exact, if has_text */
    const struct qf_regex *regex; /* unanchored, or NULL */
    bool has_text;
};

#define SCRIPT_EXPECTS_MAX 32

struct script_expects {
    struct script_expect items[SCRIPT_EXPECTS_MAX];
    size_t count;
    bool none; /* no_warn, no_info */
};

/* One expected series; value i is at start + i * step of the eval or of the range vector. */
struct script_expected {
    struct qf_labels labels;
    struct pq_sequence_value *values;
    size_t count;
    size_t order; /* from 0, in the order of the lines */
};

struct script_eval {
    bool range;
    int64_t start_ms, end_ms, step_ms; /* an instant eval: start is its time */
    struct qf_str query;

    bool ordered;
    bool fail;
    struct script_expect failure;
    struct script_expects warnings, infos;

    bool has_scalar;
    double scalar;
    bool has_string;
    struct qf_str string;
    bool range_vector; /* the instant query answers a matrix on the grid below */
    int64_t vector_start_ms, vector_end_ms, vector_step_ms;
    struct script_expected *series;
    size_t series_count;
    bool has_histogram; /* among the expected values */
};

enum script_kind { SCRIPT_LOAD, SCRIPT_CLEAR, SCRIPT_EVAL };

struct script_command {
    enum script_kind kind;
    size_t line; /* from 1 */
    qf_rc rc;    /* QF_OK, or what is wrong with this command: it must not be run */
    const char *error;
    union {
        struct script_load load;
        struct script_eval eval;
    };
};

struct script {
    struct script_command *commands;
    size_t count;
};

/* The parser settings of scripts: all experiments on. */
extern const struct pq_parse_options script_parse_options;

/* Read @text into @arena. Errors inside a block are kept with its command. QF_EINVAL: a line that
 * begins no command. */
QF_MUST_CHECK qf_rc script_parse(struct qf_arena *arena, struct qf_str text,
                                 struct script *ret_script, struct qf_err *err);

#endif
