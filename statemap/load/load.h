/* load.h - rows out of files: XML reference data, JSON lines, CSV.
 *
 * A file is fed piece by piece. What a row says is checked against the definition of its map; a row that is wrong is refused with its
 * line and reason, which ends the load (nothing of it counts), or is skipped and counted. What is no XML, or CSV without a proper
 * head, cannot be skipped.
 *
 *   XML         <referenceData><reference> map, key or from and to, time?, value </reference>
 *               <session> map, key, time, timeout? </session></referenceData>. No document type, UTF-8, no elements in values
 *   JSON lines  an object per line with the members below
 *   CSV         RFC 4180 with a head: the columns below in any order; an empty field is none, but of `value`
 *
 *   map         unless all rows are of one map
 *   key         of ranged maps: a number, a range of one
 *   from, to    of ranged maps
 *   time        RFC 3339; without it, that of the load. Maps without times take no notice
 *   start, end, timeout    of sessions; `time` is `start`, `timeout` a duration
 *   value, type            without `type`, what the definition says, or text. JSON has types of its own */
#ifndef STATEMAP_LOAD_LOAD_H
#define STATEMAP_LOAD_LOAD_H

#include "statemap/store/store.h"

enum sm_format { SM_XML, SM_JSON_LINES, SM_CSV };

/* By the end of a file's name: .xml, .jsonl (.ndjson, .json), .csv. */
bool sm_format_of(struct qf_str file, enum sm_format *ret_format);

/* A row, or a line of JSON or CSV, has at most so many bytes. */
#define SM_RECORD_MAX ((size_t)(4 << 20))

struct sm_load_options {
    struct sm_store *store;
    struct sm_writer *writer; /* several files may go into one */
    struct qf_str map;        /* of rows that do not say theirs; empty: all must */
    int64_t now_ms;           /* of rows without a time */
    bool skip;                /* rows that are wrong */
    void (*skipped)(void *ctx, const char *why); /* NULL: nobody wants to know */
    void *ctx;
};

struct sm_loaded {
    uint64_t rows, skipped;
};

struct sm_load;

struct sm_load *sm_load_new(const struct sm_load_options *options, enum sm_format format);
struct sm_load *sm_load_free(struct sm_load *load); /* Accepts NULL, returns NULL. */

/* QF_EINVAL, with the line in the message: the load is over. Other errors are those of sm_writer_put(). */
QF_MUST_CHECK qf_rc sm_load_feed(struct sm_load *load, struct qf_str bytes, struct qf_err *err);
/* The file ended. */
QF_MUST_CHECK qf_rc sm_load_end(struct sm_load *load, struct qf_err *err);
struct sm_loaded sm_load_count(const struct sm_load *load);

#endif
