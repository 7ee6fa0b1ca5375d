/* exposition.h - samples as text that a Prometheus scrapes.
 *
 * Names that are no plain words are quoted for who says that it reads that; else what may not be in a
 * name is an underscore. */
#ifndef QUERYAPI_ENCODE_EXPOSITION_H
#define QUERYAPI_ENCODE_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/labels.h"
#include "base/pure/strbuf.h"

#define QA_EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
#define QA_EXPOSITION_UTF8_TYPE "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8"

/* A line with a sample, after a line of its metric's type if that is not @before. As Prometheus does when
 * it is federated, a series without the label `instance` gets it empty: who scrapes must not put its
 * own there. */
void qa_exposition_sample(struct qf_strbuf *buf, struct qf_labels labels, struct qf_str before,
                          bool utf8, double value, int64_t ts);

#endif
