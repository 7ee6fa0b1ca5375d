/* store.h - all files of one queue on one node: sequence state, snapshot and log, opened as one.
 *
 * `snapshot.dat` holds the applied state at an index and names the generation of log files that
 * belongs to it. Replacing the log by a snapshot from a peer writes the entries that come with it
 * into files of the next generation, and then replaces `snapshot.dat`: before that moment the old
 * log counts, after it the new one, and opening removes whichever does not. */
#ifndef QUEUE_LOG_STORE_H
#define QUEUE_LOG_STORE_H

#include "queue/log/log.h"
#include "queue/log/sequence_state.h"

#define QL_SNAPSHOT_FILE "snapshot.dat"
/* Version 1 has no application; one without is still written as version 1. Version 3 has one that releases before it would
 * have dropped without a word. */
enum { QL_SNAPSHOT_VERSION = 3, QL_SNAPSHOT_MAX = 256 << 20 };

struct ql_snapshot {
    uint64_t index, term;  /* last entry that the state contains; 0: no snapshot */
    uint64_t change_index; /* of the configuration in force at index */
    struct qf_str members; /* that configuration; borrowed */
    struct qf_str state;   /* borrowed */
    struct qf_str
        application;     /* what the records mean to the queue's role; borrowed, often empty */
    bool needed;         /* there is an application, and nobody may go on without it: version 3 */
    uint64_t generation; /* of the log; the store fills it in */
    uint64_t generation_first; /* first index of that generation; the store fills it in */
};

struct ql_store {
    struct ql_disk *disk;
    struct ql_sequence_state sequence;
    struct ql_snapshot snapshot; /* borrows from snapshot_bytes */
    struct qf_strbuf snapshot_bytes;
    struct ql_log *log;
    struct ql_recovery recovery;
    struct ql_options options;
};

/* Make the files of a node that is new: @sequence with its incarnation, and nothing else.
 * QF_EEXIST: there is one already. */
QF_MUST_CHECK qf_rc ql_store_create(struct ql_disk *disk, const struct ql_sequence_state *sequence,
                                    struct qf_err *err);

/* Open and recover. @options: generation and salt are filled in here. On error nothing is open.
 * QF_ENOTFOUND: no sequence state here; QF_ECORRUPT, QF_EUNSUPPORTED: the node must not start. */
QF_MUST_CHECK qf_rc ql_store_open(struct ql_store *store, struct ql_disk *disk,
                                  const struct ql_options *options, struct qf_err *err);
void ql_store_close(struct ql_store *store);

/* Make @snapshot, taken by this node, durable. Nothing is dropped from the log. */
QF_MUST_CHECK qf_rc ql_store_save(struct ql_store *store, const struct ql_snapshot *snapshot,
                                  struct qf_err *err);

/* The same in pieces, so that another thread can wait for the disk: the bytes of snapshot.dat, which it
 * writes with ql_disk_replace(); then the store takes them. Meanwhile nothing else is saved, and no
 * snapshot of a peer changed over to. */
void ql_store_save_begin(const struct ql_store *store, const struct ql_snapshot *snapshot,
                         struct qf_strbuf *bytes);
void ql_store_save_end(struct ql_store *store, struct qf_strbuf *bytes);

/* Make a peer's @snapshot durable, with the @count entries that end at its index (or none), in
 * place of the whole log. */
QF_MUST_CHECK qf_rc ql_store_install(struct ql_store *store, const struct ql_snapshot *snapshot,
                                     const struct ql_entry *entries, size_t count,
                                     struct qf_err *err);

/* The same in pieces, for what may be as large as a log. First, on any thread: write the entries to
 * files of the generation after that of @options, which nobody reads yet; all of it is durable. The
 * log is the caller's. QF_ENOSPC: nothing is left of it; else the process must end. */
QF_MUST_CHECK qf_rc ql_store_prepare(struct ql_disk *disk, const struct ql_options *options,
                                     const struct ql_snapshot *snapshot,
                                     const struct ql_entry *entries, size_t count,
                                     struct ql_log **ret_log, struct qf_err *err);
/* Then, by who owns the store: from now on @log counts, which is the store's. On an error it stays
 * the caller's, and the process must end. */
QF_MUST_CHECK qf_rc ql_store_switch(struct ql_store *store, const struct ql_snapshot *snapshot,
                                    struct ql_log *log, struct qf_err *err);
/* Last, on any thread: remove the files of a generation that does not count (any more). */
QF_MUST_CHECK qf_rc ql_store_clear(struct ql_disk *disk, uint64_t generation, struct qf_err *err);

/* Make term and vote durable, both copies, and only then part of store->sequence. */
QF_MUST_CHECK qf_rc ql_store_vote(struct ql_store *store, uint64_t term, uint64_t vote,
                                  struct qf_err *err);

/* The bytes of snapshot.dat, for the fuzzer and tests; decoding borrows from @bytes. */
void ql_snapshot_encode(struct qf_strbuf *buf, const struct ql_snapshot *snapshot);
QF_MUST_CHECK qf_rc ql_snapshot_decode(struct qf_str bytes, struct ql_snapshot *ret_snapshot);

#endif
