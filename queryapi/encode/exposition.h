/* exposition.h - samples in the forms that a Prometheus scrapes: text, and messages of protobuf.
 *
 * Text has a line for each sample, and no form for native histograms. The messages have one: each is a
 * MetricFamily behind its length as a varint (family.h).
 *
 * Who asks says in `Accept` which of both it takes, and what shall become of names that are no plain words
 * (letters, digits, underscores and colons, of metrics and of labels alike):
 *
 *     underscores    a.b is a_b        what it is if nothing is said
 *     dots           a.b is a_dot_b
 *     values         a.b is U__a_2e_b
 *     allow-utf-8    a.b is a.b; text puts it in quotes, and the metric's name then among the labels */
#ifndef QUERYAPI_ENCODE_EXPOSITION_H
#define QUERYAPI_ENCODE_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/labels.h"
#include "base/pure/strbuf.h"

enum qa_escaping {
    QA_ESCAPE_UNDERSCORES,
    QA_ESCAPE_DOTS,
    QA_ESCAPE_VALUES,
    QA_ESCAPE_NONE,
    QA_ESCAPE__COUNT
};

struct qa_exposition {
    bool protobuf;
    enum qa_escaping escaping;
};

/* The form that @accept weighs highest; text if it names none. As Prometheus reads it: of equal weights
 * the first, a weight that is no number is 0, and an escaping counts for what comes behind it as well. Of more
 * than QA_ACCEPT_MAX forms the first ones are looked at. */
#define QA_ACCEPT_MAX 32
struct qa_exposition qa_exposition_choose(struct qf_str accept);
/* What the answer calls itself. */
const char *qa_exposition_type(struct qa_exposition form);

/* A name of a metric or a label, without quotes. */
void qa_exposition_name(struct qf_strbuf *buf, struct qf_str name, enum qa_escaping escaping);

/* A line with a sample, after a line of its metric's type if that is not @before. As Prometheus does when
 * it is federated, a series without the label `instance` gets it empty: who scrapes must not put its
 * own there. */
void qa_exposition_sample(struct qf_strbuf *buf, struct qf_labels labels, struct qf_str before,
                          enum qa_escaping escaping, double value, int64_t ts);

#endif
