/* command.h - what COMMAND entries say. The offset of a record is the index of its entry.
 *
 *     OFFER    a record: any bytes
 *     OFFSET   consumer NAME has read everything below OFFSET; never moves back
 *     CONSUME  records FROM..TO of a delete-on-consume queue are handed out; counts only if FROM is
 *              the queue's position, so that of two only one gets them
 *     TRIM     records below FIRST are not needed any more */
#ifndef QUEUE_CORE_COMMAND_H
#define QUEUE_CORE_COMMAND_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"

enum qc_command_kind { QC_OFFER = 1, QC_OFFSET = 2, QC_CONSUME = 3, QC_TRIM = 4 };

enum {
    QC_CONSUMER_SIZE = 64,
    QC_OFFER_HEADER = 1 /* an OFFER is the byte QC_OFFER, and the record as it is */
};

struct qc_command {
    enum qc_command_kind kind;
    struct qf_str data; /* OFFER: the record; OFFSET: the consumer, 1 to 63 bytes */
    uint64_t offset;    /* OFFSET: the first one not read; TRIM: the first one kept */
    uint64_t from, to;  /* CONSUME: from <= to */
};

void qc_command_encode(struct qf_strbuf *buf, const struct qc_command *command);
/* Borrows from @bytes. QF_ECORRUPT unless @bytes are exactly what encode would write. */
QF_MUST_CHECK qf_rc qc_command_decode(struct qf_str bytes, struct qc_command *ret_command);
/* True for what may use the reserved space: all but records. */
bool qc_command_urgent(struct qf_str bytes);

#endif
