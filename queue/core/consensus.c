/* consensus.c - cowsql/raft 0.22 as a pure core. Every call of the library is in this file.
 *
 * Memory: the library owns what it is given in an event, or gives it back in the update, and the
 * rules differ by path. To keep them few, it gets as little as possible: for entries a token of one
 * byte in place of their bytes (it reads only those of changes, inside the call), for a snapshot one
 * byte in place of its data. */
#include <assert.h>

#include <raft.h>

#include "base/pure/vec.h"
#include "queue/core/consensus.h"

struct qc_consensus {
    struct raft raft;
    QF_VEC(struct raft_entry) entries; /* scratch: what an event carries */
    QF_VEC(struct qc_message) messages;
    struct ql_entry noop;
};

static void to_library(const struct qc_members *members, struct raft_configuration *ret)
{
    raft_configuration_init(ret);
    for (uint32_t i = 0; i < members->count; i++) {
        int rv =
            raft_configuration_add(ret, members->items[i].id, members->items[i].name,
                                   members->items[i].role == QC_VOTER ? RAFT_VOTER : RAFT_STANDBY);

        assert(rv == 0);
    }
}

/* One entry in the library's form. Changes are encoded anew; drop_entries() frees that. */
static struct raft_entry entry_of(const struct ql_entry *entry, void *token)
{
    struct raft_entry out = { .term = entry->term, .type = RAFT_COMMAND, .batch = token };

    if (entry->type == QL_NOOP)
        out.type = RAFT_BARRIER;
    if (entry->type == QL_CHANGE) {
        struct raft_configuration configuration;
        struct qc_members members;
        qf_rc rc = qc_members_decode(entry->data, &members);
        int rv;

        assert(rc == QF_OK);
        to_library(&members, &configuration);
        rv = raft_configuration_encode(&configuration, &out.buf);
        assert(rv == 0);
        raft_configuration_close(&configuration);
        out.type = RAFT_CHANGE;
    }
    return out;
}

static void take_entries(struct qc_consensus *consensus, const struct ql_entry *entries,
                         uint32_t count)
{
    void *token = count ? raft_malloc(1) : NULL;

    consensus->entries.count = 0;
    for (uint32_t i = 0; i < count; i++)
        QF_VEC_PUSH(&consensus->entries, entry_of(&entries[i], token));
}

/* @token too if the library has not freed it. */
static void drop_entries(struct qc_consensus *consensus, bool token)
{
    if (token && consensus->entries.count)
        raft_free(consensus->entries.items[0].batch);
    for (size_t i = 0; i < consensus->entries.count; i++)
        if (consensus->entries.items[i].type == RAFT_CHANGE)
            raft_free(consensus->entries.items[i].buf.base);
    consensus->entries.count = 0;
}

static struct qc_message message_of(const struct raft_message *in, uint64_t from)
{
    struct qc_message out = { .from = from, .to = in->server_id };

    switch (in->type) {
    case RAFT_APPEND_ENTRIES:
        out.kind = QC_APPEND;
        out.term = in->append_entries.term;
        out.index = in->append_entries.prev_log_index;
        out.index_term = in->append_entries.prev_log_term;
        out.commit = in->append_entries.leader_commit;
        out.count = in->append_entries.n_entries;
        break;
    case RAFT_APPEND_ENTRIES_RESULT:
        out.kind = QC_APPEND_RESULT;
        out.term = in->append_entries_result.term;
        out.rejected = in->append_entries_result.rejected;
        out.index = in->append_entries_result.last_log_index;
        break;
    case RAFT_REQUEST_VOTE:
        out.kind = QC_VOTE;
        out.term = in->request_vote.term;
        out.index = in->request_vote.last_log_index;
        out.index_term = in->request_vote.last_log_term;
        out.disrupt = in->request_vote.disrupt_leader;
        out.pre_vote = in->request_vote.pre_vote;
        break;
    case RAFT_REQUEST_VOTE_RESULT:
        out.kind = QC_VOTE_RESULT;
        out.term = in->request_vote_result.term;
        out.granted = in->request_vote_result.vote_granted;
        out.pre_vote = in->request_vote_result.pre_vote;
        break;
    case RAFT_INSTALL_SNAPSHOT:
        out.kind = QC_INSTALL;
        out.term = in->install_snapshot.term;
        out.index = in->install_snapshot.last_index;
        out.index_term = in->install_snapshot.last_term;
        out.change_index = in->install_snapshot.conf_index;
        break;
    case RAFT_TIMEOUT_NOW:
        out.kind = QC_TIMEOUT_NOW;
        out.term = in->timeout_now.term;
        out.index = in->timeout_now.last_log_index;
        out.index_term = in->timeout_now.last_log_term;
        break;
    }
    return out;
}

/* The entries of an update are a tail of those given, or the library's own barrier. */
static void take_update_entries(struct qc_consensus *consensus, const struct raft_update *update,
                                const struct ql_entry *given, struct qc_update *ret)
{
    if (update->entries.batch == &consensus->raft.barrier) {
        raft_free(consensus->raft.barrier.buf.base);
        consensus->noop = (struct ql_entry){ .index = update->entries.index,
                                             .term = consensus->raft.barrier.term,
                                             .type = QL_NOOP };
        ret->entries = &consensus->noop;
    } else {
        ret->entries = given + (update->entries.batch - consensus->entries.items);
        assert(ret->entries->index == update->entries.index);
    }
    ret->count = update->entries.n;
}

/* Run one event. @given: the entries that it carries, in our form. */
static qf_rc step(struct qc_consensus *consensus, struct raft_event *event,
                  const struct ql_entry *given, struct qc_update *ret)
{
    struct raft_update update = { 0 };
    int rv;

    *ret = (struct qc_update){ 0 };
    rv = raft_step(&consensus->raft, event, &update);
    if (rv == RAFT_NOTLEADER || rv == RAFT_NOTFOUND || rv == RAFT_BADID)
        return QF_EUNAVAILABLE;
    if (rv == RAFT_CANTCHANGE)
        return QF_EBUSY;
    if (rv != 0)
        return QF_EINTERNAL;
    ret->vote = update.flags & (RAFT_UPDATE_CURRENT_TERM | RAFT_UPDATE_VOTED_FOR);
    ret->standing = update.flags & RAFT_UPDATE_STATE;
    ret->commit = update.flags & RAFT_UPDATE_COMMIT_INDEX;
    ret->install = update.flags & RAFT_UPDATE_SNAPSHOT;
    if (update.flags & RAFT_UPDATE_ENTRIES)
        take_update_entries(consensus, &update, given, ret);
    consensus->messages.count = 0;
    if (update.flags & RAFT_UPDATE_MESSAGES)
        for (unsigned i = 0; i < update.messages.n; i++)
            QF_VEC_PUSH(&consensus->messages,
                        message_of(&update.messages.batch[i], consensus->raft.id));
    ret->messages = consensus->messages.items;
    ret->message_count = consensus->messages.count;
    if (ret->install) {
        raft_configuration_close(&update.snapshot.metadata.configuration);
        raft_free(update.snapshot.chunk.base);
    }
    return QF_OK;
}

struct qc_consensus *qc_consensus_new(const struct qc_start *start, uint64_t now,
                                      struct qc_update *ret_update)
{
    struct qc_consensus *consensus = qf_xcalloc(1, sizeof(*consensus));
    struct raft_event event = { .time = now, .type = RAFT_START };
    struct raft_snapshot_metadata metadata;
    char name[32];
    qf_rc rc;
    int rv;

    snprintf(name, sizeof(name), "%llx", (unsigned long long)start->id);
    rv = raft_init(&consensus->raft, NULL, NULL, start->id, name);
    assert(rv == 0);
    raft_seed(&consensus->raft, start->seed);
    raft_set_pre_vote(&consensus->raft, true);
    raft_set_election_timeout(&consensus->raft, start->election_ms);
    raft_set_heartbeat_timeout(&consensus->raft, start->heartbeat_ms);
    raft_set_max_inflight_entries(&consensus->raft, start->in_flight);
    take_entries(consensus, start->entries, start->count);
    event.start.term = start->term;
    event.start.voted_for = start->vote;
    event.start.start_index = start->first;
    event.start.entries = consensus->entries.items;
    event.start.n_entries = start->count;
    if (start->snapshot_index) {
        metadata = (struct raft_snapshot_metadata){ .index = start->snapshot_index,
                                                    .term = start->snapshot_term,
                                                    .configuration_index = start->change_index };
        to_library(start->members, &metadata.configuration);
        event.start.metadata = &metadata;
    }
    rc = step(consensus, &event, start->entries, ret_update);
    assert(rc == QF_OK); /* only lack of memory and configurations that cannot be read fail */
    drop_entries(consensus, true);
    return consensus;
}

struct qc_consensus *qc_consensus_free(struct qc_consensus *consensus)
{
    if (consensus) {
        raft_close(&consensus->raft, NULL);
        QF_VEC_DONE(&consensus->entries);
        QF_VEC_DONE(&consensus->messages);
        free(consensus);
    }
    return NULL;
}

static void fill_append(struct raft_message *out, const struct qc_message *in)
{
    out->type = RAFT_APPEND_ENTRIES;
    out->append_entries = (struct raft_append_entries){ .version = 0,
                                                        .term = in->term,
                                                        .prev_log_index = in->index,
                                                        .prev_log_term = in->index_term,
                                                        .leader_commit = in->commit,
                                                        .n_entries = in->count };
}

static void fill_install(struct raft_message *out, const struct qc_message *in,
                         const struct qc_members *members)
{
    out->type = RAFT_INSTALL_SNAPSHOT;
    out->install_snapshot = (struct raft_install_snapshot){ .version = 0,
                                                            .term = in->term,
                                                            .last_index = in->index,
                                                            .last_term = in->index_term,
                                                            .conf_index = in->change_index };
    to_library(members, &out->install_snapshot.conf);
    out->install_snapshot.data = (struct raft_buffer){ raft_malloc(1), 1 };
}

static void fill_other(struct raft_message *out, const struct qc_message *in)
{
    if (in->kind == QC_APPEND_RESULT) {
        out->type = RAFT_APPEND_ENTRIES_RESULT;
        out->append_entries_result = (struct raft_append_entries_result){
            .version = 1, .term = in->term, .rejected = in->rejected, .last_log_index = in->index
        };
    } else if (in->kind == QC_VOTE) {
        out->type = RAFT_REQUEST_VOTE;
        out->request_vote = (struct raft_request_vote){ .version = 2,
                                                        .term = in->term,
                                                        .candidate_id = in->from,
                                                        .last_log_index = in->index,
                                                        .last_log_term = in->index_term,
                                                        .disrupt_leader = in->disrupt,
                                                        .pre_vote = in->pre_vote };
    } else if (in->kind == QC_VOTE_RESULT) {
        out->type = RAFT_REQUEST_VOTE_RESULT;
        out->request_vote_result = (struct raft_request_vote_result){
            .version = 2, .term = in->term, .vote_granted = in->granted, .pre_vote = in->pre_vote
        };
    } else {
        assert(in->kind == QC_TIMEOUT_NOW);
        out->type = RAFT_TIMEOUT_NOW;
        out->timeout_now = (struct raft_timeout_now){ .version = 0,
                                                      .term = in->term,
                                                      .last_log_index = in->index,
                                                      .last_log_term = in->index_term };
    }
}

qf_rc qc_consensus_receive(struct qc_consensus *consensus, uint64_t now,
                           const struct qc_message *message, const struct qc_members *members,
                           struct qc_update *ret_update)
{
    char name[32];
    struct raft_message in = { .server_id = message->from, .server_address = name };
    struct raft_event event = { .time = now, .type = RAFT_RECEIVE, .receive = { &in } };
    qf_rc rc;

    snprintf(name, sizeof(name), "%llx", (unsigned long long)message->from);
    consensus->entries.count = 0;
    if (message->kind == QC_APPEND) {
        take_entries(consensus, message->entries, message->count);
        fill_append(&in, message);
        in.append_entries.entries = consensus->entries.items;
    } else if (message->kind == QC_INSTALL) {
        fill_install(&in, message, members);
    } else {
        fill_other(&in, message);
    }
    rc = step(consensus, &event, message->entries, ret_update);
    drop_entries(consensus, rc == QF_OK && ret_update->count);
    return rc;
}

qf_rc qc_consensus_persisted(struct qc_consensus *consensus, uint64_t now, uint64_t index,
                             struct qc_update *ret_update)
{
    struct raft_event event = { .time = now, .type = RAFT_PERSISTED_ENTRIES };

    event.persisted_entries.index = index;
    return step(consensus, &event, NULL, ret_update);
}

qf_rc qc_consensus_installed(struct qc_consensus *consensus, uint64_t now, uint64_t index,
                             uint64_t term, const struct qc_members *members, uint64_t change_index,
                             struct qc_update *ret_update)
{
    struct raft_event event = { .time = now, .type = RAFT_PERSISTED_SNAPSHOT };

    event.persisted_snapshot.metadata = (struct raft_snapshot_metadata){
        .index = index, .term = term, .configuration_index = change_index
    };
    event.persisted_snapshot.last = true;
    to_library(members, &event.persisted_snapshot.metadata.configuration);
    return step(consensus, &event, NULL, ret_update);
}

qf_rc qc_consensus_snapshot(struct qc_consensus *consensus, uint64_t now, uint64_t index,
                            uint64_t first, const struct qc_members *members, uint64_t change_index,
                            struct qc_update *ret_update)
{
    struct raft_event event = { .time = now, .type = RAFT_SNAPSHOT };

    event.snapshot.metadata =
        (struct raft_snapshot_metadata){ .index = index, .configuration_index = change_index };
    event.snapshot.trailing = (unsigned)(index + 1 - first);
    to_library(members, &event.snapshot.metadata.configuration);
    return step(consensus, &event, NULL, ret_update);
}

qf_rc qc_consensus_changed(struct qc_consensus *consensus, uint64_t now, uint64_t index,
                           const struct qc_members *members, struct qc_update *ret_update)
{
    struct raft_event event = { .time = now, .type = RAFT_CONFIGURATION };

    event.configuration.index = index;
    to_library(members, &event.configuration.conf);
    return step(consensus, &event, NULL, ret_update);
}

qf_rc qc_consensus_timeout(struct qc_consensus *consensus, uint64_t now,
                           struct qc_update *ret_update)
{
    struct raft_event event = { .time = now, .type = RAFT_TIMEOUT };
    qf_rc rc = step(consensus, &event, NULL, ret_update);

    /* Whoever does not stand for election keeps a leader in mind that is long gone, and would refuse
     * its vote to everyone else for ever. */
    if (rc == QF_OK && consensus->raft.state == RAFT_FOLLOWER && !ret_update->standing) {
        raft_free(consensus->raft.follower_state.current_leader.address);
        consensus->raft.follower_state.current_leader.address = NULL;
        consensus->raft.follower_state.current_leader.id = 0;
    }
    return rc;
}

qf_rc qc_consensus_submit(struct qc_consensus *consensus, uint64_t now,
                          const struct ql_entry *entries, uint32_t count,
                          struct qc_update *ret_update)
{
    struct raft_event event = { .time = now, .type = RAFT_SUBMIT };
    qf_rc rc;

    take_entries(consensus, entries, count);
    event.submit.entries = consensus->entries.items;
    event.submit.n = count;
    rc = step(consensus, &event, entries, ret_update);
    drop_entries(consensus, true);
    return rc;
}

qf_rc qc_consensus_transfer(struct qc_consensus *consensus, uint64_t now, uint64_t id,
                            struct qc_update *ret_update)
{
    struct raft_event event = { .time = now, .type = RAFT_TRANSFER };

    event.transfer.server_id = id;
    return step(consensus, &event, NULL, ret_update);
}

void qc_consensus_grant(struct qc_consensus *consensus, uint64_t id)
{
    assert(consensus->raft.state == RAFT_FOLLOWER);
    assert(consensus->raft.voted_for == 0 || consensus->raft.voted_for == id);
    consensus->raft.voted_for = id;
    consensus->raft.election_timer_start = consensus->raft.now;
}

enum qc_standing qc_consensus_standing(const struct qc_consensus *consensus)
{
    return consensus->raft.state == RAFT_LEADER      ? QC_LEADER
           : consensus->raft.state == RAFT_CANDIDATE ? QC_CANDIDATE
                                                     : QC_FOLLOWER;
}

uint64_t qc_consensus_term(const struct qc_consensus *consensus)
{
    return consensus->raft.current_term;
}

uint64_t qc_consensus_vote(const struct qc_consensus *consensus)
{
    return consensus->raft.voted_for;
}

uint64_t qc_consensus_commit(const struct qc_consensus *consensus)
{
    return consensus->raft.commit_index;
}

uint64_t qc_consensus_stored(const struct qc_consensus *consensus)
{
    return consensus->raft.last_stored;
}

uint64_t qc_consensus_leader(const struct qc_consensus *consensus)
{
    switch (qc_consensus_standing(consensus)) {
    case QC_LEADER:
        return consensus->raft.id;
    case QC_FOLLOWER:
        return consensus->raft.follower_state.current_leader.id;
    case QC_CANDIDATE:
        break;
    }
    return 0;
}

uint64_t qc_consensus_timeout_at(const struct qc_consensus *consensus)
{
    return raft_timeout(&consensus->raft);
}

uint64_t qc_consensus_uncommitted_change(const struct qc_consensus *consensus)
{
    return consensus->raft.configuration_uncommitted_index;
}

bool qc_consensus_in_pre_vote(const struct qc_consensus *consensus)
{
    return consensus->raft.state == RAFT_CANDIDATE && consensus->raft.candidate_state.in_pre_vote;
}

bool qc_consensus_installing(const struct qc_consensus *consensus)
{
    return consensus->raft.snapshot.installing;
}

uint64_t qc_consensus_match(const struct qc_consensus *consensus, uint64_t id)
{
    raft_index index;

    return raft_match_index(&consensus->raft, id, &index) == 0 ? index : 0;
}

void qc_consensus_members(const struct qc_consensus *consensus, struct qc_members *ret_members)
{
    const struct raft_configuration *from = &consensus->raft.configuration;

    *ret_members = (struct qc_members){ .count = from->n };
    for (unsigned i = 0; i < from->n; i++) {
        struct qc_member *member = &ret_members->items[i];

        member->id = from->servers[i].id;
        member->role = from->servers[i].role == RAFT_VOTER ? QC_VOTER : QC_STANDBY;
        snprintf(member->name, sizeof(member->name), "%s", from->servers[i].address);
    }
}
