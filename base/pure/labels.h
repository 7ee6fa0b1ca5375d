/* labels.h - label sets: sorted by name, no duplicate, no empty value.
 *
 * A set is an immutable array of borrowed strings; whoever built it (an arena, as a rule) owns both
 * the array and the bytes. Order, equality and hashes depend on content alone. */
#ifndef BASE_PURE_LABELS_H
#define BASE_PURE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

#define QF_METRIC_NAME "__name__"

struct qf_label {
    struct qf_str name;
    struct qf_str value;
};

struct qf_labels {
    const struct qf_label *items;
    size_t count;
};

/* Sort @items in place by name and drop those with an empty value; of several with one name the
 * last given wins. The result borrows @items. */
struct qf_labels qf_labels_normalize(struct qf_label *items, size_t count);

/* A copy of set and strings inside @arena. False if its budget is spent. */
QF_MUST_CHECK bool qf_labels_copy(struct qf_arena *arena, struct qf_labels labels,
                                  struct qf_labels *ret_copy);

/* The value of @name, or an empty string: PromQL makes no difference between the two. */
struct qf_str qf_labels_get(struct qf_labels labels, struct qf_str name);
bool qf_labels_has(struct qf_labels labels, struct qf_str name);

/* Prometheus's order: name, then value, pair by pair; a prefix first. */
int qf_labels_cmp(struct qf_labels a, struct qf_labels b);
bool qf_labels_eq(struct qf_labels a, struct qf_labels b);

/* XXH3 of the canonical encoding (below). */
uint64_t qf_labels_hash(struct qf_labels labels);
/* The same over the set without __name__: what decides a series's shard. */
uint64_t qf_labels_shard_hash(struct qf_labels labels);
/* XXH64 over Prometheus's own encoding (lengths of one byte, or 0xff and three bytes little
 * endian): what limit_ratio compares. */
uint64_t qf_labels_prom_hash(struct qf_labels labels);

/* Keep (or drop) the labels named in @names, which is sorted; the result is built in @arena and
 * shares the strings of @labels. False if the budget is spent. */
QF_MUST_CHECK bool qf_labels_keep(struct qf_arena *arena, struct qf_labels labels,
                                  const struct qf_str *names, size_t name_count,
                                  struct qf_labels *ret_labels);
QF_MUST_CHECK bool qf_labels_drop(struct qf_arena *arena, struct qf_labels labels,
                                  const struct qf_str *names, size_t name_count,
                                  struct qf_labels *ret_labels);
/* Set @name to @value, or remove it if @value is empty; the second builds the result in @items,
 * which has room for one label more than @labels. */
QF_MUST_CHECK bool qf_labels_set(struct qf_arena *arena, struct qf_labels labels,
                                 struct qf_str name, struct qf_str value,
                                 struct qf_labels *ret_labels);
struct qf_labels qf_labels_set_in(struct qf_label *items, struct qf_labels labels,
                                  struct qf_str name, struct qf_str value);

/* Canonical encoding: per label varint length + name, varint length + value. */
void qf_labels_encode(struct qf_strbuf *buf, struct qf_labels labels);
/* Decode what qf_labels_encode wrote, strings borrowed from @bytes. QF_ECORRUPT for anything else:
 * wrong order, duplicates, empty names or values, trailing bytes. QF_ELIMIT if the budget is spent.
 */
QF_MUST_CHECK qf_rc qf_labels_decode(struct qf_arena *arena, struct qf_str bytes,
                                     struct qf_labels *ret_labels, struct qf_err *err);

/* {a="b", c="d"}: every label incl. __name__ inside the braces, as Go's labels.Labels.String(). */
void qf_labels_print(struct qf_strbuf *buf, struct qf_labels labels);
/* name{a="b"}: how series are shown to people; a name that needs quotes goes inside the braces. */
void qf_labels_print_series(struct qf_strbuf *buf, struct qf_labels labels);
/* {"a":"b"} */
void qf_labels_json(struct qf_strbuf *buf, struct qf_labels labels);

/* [a-zA-Z_][a-zA-Z0-9_]* */
bool qf_label_name_plain(struct qf_str name);
/* [a-zA-Z_:][a-zA-Z0-9_:]* */
bool qf_metric_name_plain(struct qf_str name);

#endif
