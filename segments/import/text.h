/* text.h - one line of exposition text: which series, which value, when; or what a metric is. Pure. */
#ifndef SEGMENTS_IMPORT_TEXT_H
#define SEGMENTS_IMPORT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/labels.h"
#include "base/pure/metric_type.h"
#include "segments/import/import.h"

/* What earlier lines of the file said that matters for later ones. */
struct text_state {
    enum sg_import_format format; /* SG_IMPORT_AUTO until it is known */
    bool histogram, summary;      /* the last # TYPE: le or quantile are written as floats */
    bool ended;                   /* # EOF was seen */
    bool timeless;                /* samples may come without a time: theirs is now_ms */
    int64_t now_ms;
};

/* What is said of the most common mistake. */
#define TEXT_NO_TIME                                                                               \
    "no timestamp: scraped text has none; write the time behind the value, or send the text to "   \
    "an "                                                                                          \
    "ingest node"

enum text_line {
    TEXT_SAMPLE,
    TEXT_METADATA,
    TEXT_NOTHING, /* empty, a comment */
    TEXT_MALFORMED,
};

/* # HELP, # TYPE, # UNIT. */
enum text_says { TEXT_SAYS_NOTHING, TEXT_SAYS_HELP, TEXT_SAYS_TYPE, TEXT_SAYS_UNIT };
struct text_metadata {
    enum text_says says;
    struct qf_str name, text; /* as written; for text_metadata() */
    enum qf_metric_type type; /* TYPE */
};

/* Characters of all names and values of an exemplar's labels: OpenMetrics allows no more. */
#define TEXT_EXEMPLAR_RUNES_MAX 128
struct text_exemplar {
    struct qf_labels labels;
    double value;
    int64_t ts; /* that of its sample if it has none of its own */
};

struct text_sample {
    struct qf_str series; /* the text up to the value, as written: equal text is an equal series
                             while `normalize` is equal, too */
    char normalize;       /* 'h': le, 's': quantile, '-': neither is rewritten */
    int64_t ts;
    bool timeless;    /* ts was not in the text */
    int64_t start_ts; /* 0: not known */
    double value;
    struct qf_str histogram;       /* a composite value as written (histogram_text.h); else empty */
    struct qf_str exemplar;        /* as written, for text_exemplar(); else empty */
    struct text_metadata metadata; /* of TEXT_METADATA, and nothing else then */
};

/* Take a line apart; labels are left for text_labels(), which is needed once per series. *ret_what
 * is a constant text that says why a line is malformed. */
enum text_line text_parse_line(struct text_state *state, struct qf_str line,
                               struct text_sample *ret_sample, const char **ret_what);

/* The labels of a sample, built in @arena. NULL if all is well, else why not. Label values must be
 * UTF-8; a label may occur once; empty values are dropped. */
const char *text_labels(const struct text_state *state, const struct text_sample *sample,
                        struct qf_arena *arena, struct qf_labels *ret_labels);

/* The name and text of metadata, built in @arena; of TYPE there is no need for the text. NULL, or what is wrong. */
const char *text_metadata(const struct text_metadata *metadata, struct qf_arena *arena,
                          struct qf_str *ret_name, struct qf_str *ret_text);
/* The exemplar of a sample that has one, built in @arena. NULL, or what is wrong. */
const char *text_exemplar(struct text_state *state, const struct text_sample *sample,
                          struct qf_arena *arena, struct text_exemplar *ret_exemplar);

#endif
