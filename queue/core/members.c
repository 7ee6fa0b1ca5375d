#include <inttypes.h>

#include "queue/core/members.h"
#include "queue/log/bytes.h"

/* count 1, then for each: id 8, role 1, length of the name 1, name. */
enum { FIXED = 10 };

const struct qc_member *qc_members_find(const struct qc_members *members, uint64_t id)
{
    for (uint32_t i = 0; i < members->count; i++)
        if (members->items[i].id == id)
            return &members->items[i];
    return NULL;
}

uint32_t qc_members_voters(const struct qc_members *members)
{
    uint32_t voters = 0;

    for (uint32_t i = 0; i < members->count; i++)
        voters += members->items[i].role == QC_VOTER;
    return voters;
}

bool qc_members_votes(const struct qc_members *members, uint64_t id)
{
    const struct qc_member *member = qc_members_find(members, id);

    return member && member->role == QC_VOTER;
}

bool qc_members_sole_voter(const struct qc_members *members, uint64_t id)
{
    return qc_members_voters(members) == 1 && qc_members_votes(members, id);
}

static qf_rc add(struct qc_members *members, uint64_t id, const char *name, struct qf_err *err)
{
    struct qc_member *member;

    if (!id || !name || !*name || strlen(name) >= QC_NAME_SIZE)
        return qf_err_set(err, QF_EINVAL, "a member needs an id and a name of 1 to %d bytes",
                          QC_NAME_SIZE - 1);
    if (members->count == QC_MEMBERS_MAX)
        return qf_err_set(err, QF_ELIMIT, "a queue has at most %d members", QC_MEMBERS_MAX);
    for (uint32_t i = 0; i < members->count; i++)
        if (members->items[i].id == id || strcmp(members->items[i].name, name) == 0)
            return qf_err_set(err, QF_EEXIST,
                              "%s is already a member, as %016" PRIx64
                              ": remove that one first if its folder is gone",
                              members->items[i].name, members->items[i].id);
    member = &members->items[members->count++];
    *member = (struct qc_member){ .id = id, .role = QC_STANDBY };
    memcpy(member->name, name, strlen(name));
    return QF_OK;
}

static qf_rc set_role(struct qc_members *members, uint64_t id, enum qc_role role,
                      struct qf_err *err)
{
    struct qc_member *member = (struct qc_member *)qc_members_find(members, id);

    if (!member)
        return qf_err_set(err, QF_ENOTFOUND, "%016" PRIx64 " is not a member", id);
    if (member->role == role)
        return qf_err_set(err, QF_EEXIST, "%s has that role already", member->name);
    member->role = role;
    return QF_OK;
}

static qf_rc take_out(struct qc_members *members, uint64_t id, struct qf_err *err)
{
    const struct qc_member *member = qc_members_find(members, id);
    size_t at;

    if (!member)
        return qf_err_set(err, QF_ENOTFOUND, "%016" PRIx64 " is not a member", id);
    at = (size_t)(member - members->items);
    members->count--;
    memmove(&members->items[at], &members->items[at + 1],
            (members->count - at) * sizeof(members->items[0]));
    return QF_OK;
}

qf_rc qc_members_change(const struct qc_members *members, enum qc_change change, uint64_t id,
                        const char *name, struct qc_members *ret_members, struct qf_err *err)
{
    struct qc_members next = *members;
    qf_rc rc = QF_EINVAL;

    switch (change) {
    case QC_ADD:
        rc = add(&next, id, name, err);
        break;
    case QC_PROMOTE:
        rc = set_role(&next, id, QC_VOTER, err);
        break;
    case QC_DEMOTE:
        rc = set_role(&next, id, QC_STANDBY, err);
        break;
    case QC_REMOVE:
        rc = take_out(&next, id, err);
        break;
    }
    if (rc == QF_OK && !qc_members_voters(&next))
        rc = qf_err_set(err, QF_EINVAL, "nobody would be left to vote");
    if (rc == QF_OK)
        *ret_members = next;
    return rc;
}

void qc_members_encode(struct qf_strbuf *buf, const struct qc_members *members)
{
    qf_strbuf_putc(buf, (char)members->count);
    for (uint32_t i = 0; i < members->count; i++) {
        const struct qc_member *member = &members->items[i];
        unsigned char fixed[FIXED];

        ql_put(fixed, member->id, 8);
        fixed[8] = (unsigned char)member->role;
        fixed[9] = (unsigned char)strlen(member->name);
        qf_strbuf_add(buf, fixed, sizeof(fixed));
        qf_strbuf_puts(buf, member->name);
    }
}

static size_t decode_one(struct qf_str bytes, struct qc_member *ret_member)
{
    const unsigned char *in = (const unsigned char *)bytes.data;
    size_t len;

    if (bytes.len < FIXED)
        return 0;
    len = in[9];
    if (!ql_get(in, 8) || (in[8] != QC_STANDBY && in[8] != QC_VOTER) || !len ||
        len >= QC_NAME_SIZE || len > bytes.len - FIXED || memchr(in + FIXED, 0, len))
        return 0;
    *ret_member = (struct qc_member){ .id = ql_get(in, 8), .role = (enum qc_role)in[8] };
    memcpy(ret_member->name, in + FIXED, len);
    return FIXED + len;
}

static bool repeats(const struct qc_members *members, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (members->items[i].id == members->items[at].id ||
            strcmp(members->items[i].name, members->items[at].name) == 0)
            return true;
    return false;
}

qf_rc qc_members_decode(struct qf_str bytes, struct qc_members *ret_members)
{
    struct qc_members members = { 0 };
    size_t at = 1;

    if (!bytes.len || (unsigned char)bytes.data[0] > QC_MEMBERS_MAX)
        return QF_ECORRUPT;
    members.count = (unsigned char)bytes.data[0];
    for (uint32_t i = 0; i < members.count; i++) {
        size_t used = decode_one(qf_str_sub(bytes, at, bytes.len), &members.items[i]);

        if (!used || repeats(&members, i))
            return QF_ECORRUPT;
        at += used;
    }
    if (at != bytes.len || !qc_members_voters(&members))
        return QF_ECORRUPT;
    *ret_members = members;
    return QF_OK;
}
