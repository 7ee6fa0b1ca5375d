/* names.h - names of OpenTelemetry's metrics and attributes as names of Prometheus. Pure.
 *
 * The rules are those that OpenTelemetry's specification gives for compatibility with Prometheus, with
 * Prometheus's default of underscores and suffixes:
 *
 *     metric      runs of what is neither letter, digit nor ':' become one '_', none at the ends; the
 *                 unit in words behind it ("By" bytes, "m/s" meters_per_second, "{...}" none) unless
 *                 the name has that word; "total" last for a counter, "ratio" for a gauge of unit 1; a
 *                 leading digit gets a '_'
 *     attribute   each character that is neither letter, digit nor '_' becomes '_'; a leading digit
 *                 gets "key_", a leading single '_' "key" */
#ifndef INGEST_OTLP_NAMES_H
#define INGEST_OTLP_NAMES_H

#include "base/pure/arena.h"
#include "base/pure/slice.h"

enum in_otlp_kind { IN_OTLP_COUNTER, IN_OTLP_GAUGE, IN_OTLP_OTHER };

/* Empty, with no NULL data, for a name without a letter or digit. NULL data: the arena is spent. Lives in
 * @arena. */
struct qf_str in_otlp_metric_name(struct qf_arena *arena, struct qf_str name, struct qf_str unit,
                                  enum in_otlp_kind kind);

/* As above; may be @key itself. */
struct qf_str in_otlp_label_name(struct qf_arena *arena, struct qf_str key);

#endif
