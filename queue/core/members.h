/* members.h - who takes part in a queue: the content of a CHANGE entry.
 *
 * A member is an incarnation: the random number made with its data folder. A wiped node comes back
 * as another member, so that it can never vote under its old name. The name is for people and for
 * finding an address. */
#ifndef QUEUE_CORE_MEMBERS_H
#define QUEUE_CORE_MEMBERS_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"

enum { QC_MEMBERS_MAX = 15, QC_NAME_SIZE = 64 };

enum qc_role {
    QC_STANDBY = 1, /* gets the log, does not vote */
    QC_VOTER = 2
};

struct qc_member {
    uint64_t id;
    enum qc_role role;
    char name[QC_NAME_SIZE]; /* not empty; two members never have the same */
};

struct qc_members {
    uint32_t count;
    struct qc_member items[QC_MEMBERS_MAX];
};

/* What one CHANGE may do: exactly one of these to exactly one member. */
enum qc_change {
    QC_ADD,     /* as a standby */
    QC_PROMOTE, /* to voter */
    QC_DEMOTE,  /* to standby */
    QC_REMOVE
};

const struct qc_member *qc_members_find(const struct qc_members *members, uint64_t id);
uint32_t qc_members_voters(const struct qc_members *members);
bool qc_members_votes(const struct qc_members *members, uint64_t id);
bool qc_members_sole_voter(const struct qc_members *members, uint64_t id);

/* @members with one change; the others keep their order. @name only for QC_ADD. QF_EINVAL with a
 * reason if that member is already so, is unknown, or nobody would be left to vote. */
QF_MUST_CHECK qf_rc qc_members_change(const struct qc_members *members, enum qc_change change,
                                      uint64_t id, const char *name, struct qc_members *ret_members,
                                      struct qf_err *err);

void qc_members_encode(struct qf_strbuf *buf, const struct qc_members *members);
/* QF_ECORRUPT unless @bytes are exactly what encode would write. */
QF_MUST_CHECK qf_rc qc_members_decode(struct qf_str bytes, struct qc_members *ret_members);

#endif
