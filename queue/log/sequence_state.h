/* sequence_state.h - what a node must never forget: term, vote, and who it is.
 *
 * `sequence-state.dat` holds two copies, each with a counter and a checksum. A save writes and
 * syncs the first copy, then the second; only then may the new values be used. So the file always
 * has one whole copy that is at least as new as anything used, whatever a crash or one damaged copy
 * does:
 *
 *   crash while the first is written    the second has the values in force
 *   crash while the second is written   the first has newer ones, which nobody has used yet
 *   one copy damaged later              the other is the same
 *
 * With both damaged the node must not start: it could vote twice. */
#ifndef QUEUE_LOG_SEQUENCE_STATE_H
#define QUEUE_LOG_SEQUENCE_STATE_H

#include "queue/log/disk.h"

#define QL_SEQUENCE_STATE_FILE "sequence-state.dat"
enum { QL_SEQUENCE_STATE_VERSION = 1, QL_SEQUENCE_COPY_BYTES = 512 };

struct ql_sequence_state {
    uint64_t cluster;     /* every peer must name the same */
    uint64_t incarnation; /* random, made with the folder; what configurations and votes name */
    uint64_t term;
    uint64_t vote; /* incarnation voted for in this term, 0: none */
};

/* Read both copies, take the newer whole one, and make both durable copies of it.
 * QF_ENOTFOUND: no file. QF_ECORRUPT: both damaged. QF_EUNSUPPORTED: of a newer version. */
QF_MUST_CHECK qf_rc ql_sequence_state_load(struct ql_disk *disk,
                                           struct ql_sequence_state *ret_state, struct qf_err *err);

/* Make @state durable in both copies, creating the file if need be. Any error: the process must
 * end, for nobody knows which values the next start will read. */
QF_MUST_CHECK qf_rc ql_sequence_state_save(struct ql_disk *disk,
                                           const struct ql_sequence_state *state,
                                           struct qf_err *err);

/* One copy, for the fuzzer and tests: encode, and decode from @len bytes. */
void ql_sequence_state_encode(const struct ql_sequence_state *state, uint64_t counter,
                              unsigned char out[QL_SEQUENCE_COPY_BYTES]);
QF_MUST_CHECK qf_rc ql_sequence_state_decode(const unsigned char *data, size_t len,
                                             struct ql_sequence_state *ret_state,
                                             uint64_t *ret_counter);

#endif
