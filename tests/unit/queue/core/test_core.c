/* Single nodes whose peers are played by the test: rules that a simulation rarely comes to need. */
#include "queue/core/core.h"
#include "tests/lib/queue/sim_disk.h"
#include "tests/lib/test.h"

enum { CLUSTER = 5, SELF = 10, PEER = 20, OTHER = 30 };

struct node {
    struct sim_disk *disk;
    struct ql_store store;
    struct qc_core *core;
    uint64_t now;
    struct qc_effect last[64]; /* effects of the last step, without their entries */
    size_t count;
};

static uint64_t log_first(void *ctx)
{
    return ql_log_first(((struct node *)ctx)->store.log);
}
static uint64_t log_last(void *ctx)
{
    return ql_log_last(((struct node *)ctx)->store.log);
}
static uint64_t log_term(void *ctx, uint64_t index)
{
    return ql_log_term(((struct node *)ctx)->store.log, index);
}
static uint64_t log_length(void *ctx, uint64_t index)
{
    return ql_log_length(((struct node *)ctx)->store.log, index);
}
static enum ql_type log_type(void *ctx, uint64_t index)
{
    return ql_log_type(((struct node *)ctx)->store.log, index);
}
static qf_rc log_read(void *ctx, uint64_t index, struct qf_strbuf *buf, struct ql_entry *ret,
                      struct qf_err *err)
{
    return ql_log_read(((struct node *)ctx)->store.log, index, buf, ret, err);
}

static void perform(struct node *node, struct qc_effects effects)
{
    struct qf_err err = { 0 };

    CHECK(effects.count <= QF_COUNT_OF(node->last));
    node->count = effects.count;
    for (size_t i = 0; i < effects.count; i++) {
        const struct qc_effect *effect = &effects.items[i];

        node->last[i] = *effect;
        if (effect->kind == QC_EFFECT_VOTE)
            CHECK_OK(ql_store_vote(&node->store, effect->term, effect->vote, &err), &err);
        if (effect->kind == QC_EFFECT_APPEND)
            CHECK_OK(ql_log_append(node->store.log, effect->entries, effect->count, true, &err),
                     &err);
    }
}

static void step(struct node *node, struct qc_event event)
{
    struct qc_effects effects;

    event.now = node->now;
    qc_step(node->core, &event, &effects);
    perform(node, effects);
}

static void begin(struct node *node, bool bootstrap, uint64_t unsafe)
{
    const struct ql_sequence_state sequence = { CLUSTER, SELF, bootstrap, 0 };
    const struct ql_options log_options = { .file_bytes = 1 << 20 };
    const struct qc_options options = { .cluster = CLUSTER, .id = SELF, .unsafe = unsafe };
    const struct qc_members members = { 1, { { SELF, QC_VOTER, "self" } } };
    const struct qc_log log = {
        node, log_first, log_last, log_term, log_type, log_read, log_length
    };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qc_effects effects;
    struct qf_err err = { 0 };

    *node = (struct node){ .disk = sim_disk_new("d"), .now = 1000 };
    CHECK_OK(ql_store_create(sim_disk_of(node->disk), &sequence, &err), &err);
    CHECK_OK(ql_store_open(&node->store, sim_disk_of(node->disk), &log_options, &err), &err);
    qc_members_encode(&buf, &members);
    if (bootstrap)
        CHECK_OK(ql_log_append(node->store.log,
                               &(struct ql_entry){ 1, 1, QL_CHANGE, qf_strbuf_view(&buf) }, 1, true,
                               &err),
                 &err);
    CHECK_OK(
        qc_new(&options, &log, &node->store.sequence, &node->store.snapshot, &node->core, &err),
        &err);
    qc_start(node->core, node->now, &effects);
    perform(node, effects);
}

static void node_done(struct node *node)
{
    node->core = qc_free(node->core);
    ql_store_close(&node->store);
    node->disk = sim_disk_free(node->disk);
}

/* The first effect of this kind in the last step, or NULL. */
static const struct qc_effect *find(const struct node *node, enum qc_effect_kind kind,
                                    enum qc_message_kind message)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->last[i].kind == kind && (!message || node->last[i].message.kind == message))
            return &node->last[i];
    return NULL;
}

static bool answered(const struct node *node, uint64_t request, qf_rc rc)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->last[i].kind == QC_EFFECT_DONE && node->last[i].request == request &&
            node->last[i].rc == rc)
            return true;
    return false;
}

static void persist(struct node *node)
{
    uint64_t last = ql_log_last(node->store.log);
    struct qf_err err = { 0 };

    CHECK_OK(ql_log_sync(node->store.log, &err), &err);
    step(node, (struct qc_event){ .kind = QC_EVENT_PERSISTED,
                                  .index = last,
                                  .term = ql_log_term(node->store.log, last) });
}

static struct qc_message message(enum qc_message_kind kind, uint64_t from, uint64_t term)
{
    return (struct qc_message){
        .kind = kind, .cluster = CLUSTER, .from = from, .to = SELF, .term = term, .space = 1 << 20
    };
}

static void receive(struct node *node, struct qc_message received)
{
    step(node, (struct qc_event){ .kind = QC_EVENT_MESSAGE, .message = &received });
}

static void change(struct node *node, uint64_t request, enum qc_change what, uint64_t member)
{
    step(node, (struct qc_event){ .kind = QC_EVENT_CHANGE,
                                  .request = request,
                                  .change = what,
                                  .member = member,
                                  .name = member == OTHER ? "other" : "peer" });
}

/* @from has stored everything. */
static void stores(struct node *node, uint64_t from)
{
    struct qc_message result = message(QC_APPEND_RESULT, from, qc_term(node->core));

    result.index = ql_log_last(node->store.log);
    receive(node, result);
}

static void peer_stores(struct node *node)
{
    stores(node, PEER);
}

/* SELF leads, PEER votes and has everything. */
static void lead_two(struct node *node, uint64_t unsafe)
{
    begin(node, true, unsafe);
    persist(node);
    CHECK(qc_serves(node->core));
    change(node, 1, QC_ADD, PEER);
    persist(node);
    peer_stores(node);
    change(node, 2, QC_PROMOTE, PEER);
    persist(node);
    peer_stores(node);
    CHECK(answered(node, 2, QF_OK));
}

/* SELF leads, PEER and OTHER vote and have everything. */
static void lead_three(struct node *node, uint64_t unsafe)
{
    lead_two(node, unsafe);
    step(node, (struct qc_event){ .kind = QC_EVENT_SPACE, .bytes = 1 << 20 });
    change(node, 3, QC_ADD, OTHER);
    persist(node);
    peer_stores(node);
    stores(node, OTHER);
    change(node, 4, QC_PROMOTE, OTHER);
    persist(node);
    peer_stores(node);
    CHECK(answered(node, 4, QF_OK));
    stores(node, OTHER);
}

static void offer(struct node *node, uint64_t request, enum qc_level level)
{
    step(node,
         (struct qc_event){
             .kind = QC_EVENT_COMMAND, .request = request, .level = level, .data = QF_STR("\1x") });
}

/* Who has stored an offer when it is acknowledged. */
TEST(level_one_waits_for_the_leaders_disk_alone)
{
    QF_CLEANUP(node_done) struct node node;

    lead_three(&node, 0);
    offer(&node, 50, QC_LEVEL_ONE);
    CHECK(!answered(&node, 50, QF_OK));
    persist(&node);
    CHECK(answered(&node, 50, QF_OK));
    peer_stores(&node); /* once is enough */
    CHECK(!answered(&node, 50, QF_OK));
}

TEST(level_quorum_waits_for_a_majority)
{
    QF_CLEANUP(node_done) struct node node;

    lead_three(&node, 0);
    offer(&node, 50, QC_LEVEL_QUORUM);
    persist(&node);
    CHECK(!answered(&node, 50, QF_OK));
    peer_stores(&node);
    CHECK(answered(&node, 50, QF_OK));
}

/* Two followers are a majority, but the leader has not stored it: it is not applied here. */
TEST(level_quorum_waits_for_the_leader_itself)
{
    QF_CLEANUP(node_done) struct node node;

    lead_three(&node, 0);
    offer(&node, 50, QC_LEVEL_QUORUM);
    peer_stores(&node);
    stores(&node, OTHER);
    CHECK(!answered(&node, 50, QF_OK));
    persist(&node);
    CHECK(answered(&node, 50, QF_OK));
}

TEST(level_all_waits_for_every_voter)
{
    QF_CLEANUP(node_done) struct node node;

    lead_three(&node, 0);
    offer(&node, 50, QC_LEVEL_ALL);
    persist(&node);
    peer_stores(&node);
    CHECK(!answered(&node, 50, QF_OK));
    stores(&node, OTHER);
    CHECK(answered(&node, 50, QF_OK));
}

static size_t count_of(const struct node *node, enum qc_effect_kind kind,
                       enum qc_message_kind message, uint64_t to)
{
    size_t count = 0;

    for (size_t i = 0; i < node->count; i++)
        count += node->last[i].kind == kind &&
                 (!message || node->last[i].message.kind == message) &&
                 (!to || node->last[i].message.to == to);
    return count;
}

static void offer_three(struct node *node, struct qf_str second)
{
    const struct qc_request commands[] = { { 51, QF_STR_INIT("\1a"), QC_LEVEL_QUORUM },
                                           { 52, second, QC_LEVEL_ONE },
                                           { 53, QF_STR_INIT("\1c"), QC_LEVEL_ALL } };

    step(node, (struct qc_event){ .kind = QC_EVENT_COMMANDS, .commands = commands, .count = 3 });
}

/* One write and one message to each follower, but an answer for each, at its own level. */
TEST(commands_that_come_together_are_written_and_sent_together)
{
    QF_CLEANUP(node_done) struct node node;
    uint64_t last;

    lead_three(&node, 0);
    last = ql_log_last(node.store.log);
    offer_three(&node, QF_STR("\1b"));
    CHECK_EQ(count_of(&node, QC_EFFECT_APPEND, 0, 0), 1);
    CHECK_EQ(count_of(&node, QC_EFFECT_SEND, QC_APPEND, PEER), 1);
    CHECK_EQ(count_of(&node, QC_EFFECT_SEND, QC_APPEND, OTHER), 1);
    CHECK_EQ(find(&node, QC_EFFECT_SEND, QC_APPEND)->message.count, 3);
    CHECK_EQ(ql_log_last(node.store.log), last + 3);
    persist(&node);
    CHECK(answered(&node, 52, QF_OK));
    CHECK(!answered(&node, 51, QF_OK));
    peer_stores(&node);
    CHECK(answered(&node, 51, QF_OK));
    CHECK_EQ(find(&node, QC_EFFECT_DONE, 0)->index, last + 1);
    CHECK(!answered(&node, 53, QF_OK));
    stores(&node, OTHER);
    CHECK(answered(&node, 53, QF_OK));
    CHECK_EQ(find(&node, QC_EFFECT_DONE, 0)->index, last + 3);
}

/* Chained: what comes behind one that is refused may stand on it, and is refused as well. */
TEST(chained_commands_fall_together)
{
    const struct qc_request commands[] = { { 61, QF_STR_INIT("\1a"), QC_LEVEL_QUORUM },
                                           { 62, QF_STR_INIT("?"), QC_LEVEL_QUORUM },
                                           { 63, QF_STR_INIT("\1c"), QC_LEVEL_QUORUM } };
    QF_CLEANUP(node_done) struct node node;
    uint64_t last;

    lead_three(&node, 0);
    last = ql_log_last(node.store.log);
    step(&node, (struct qc_event){
                    .kind = QC_EVENT_COMMANDS, .commands = commands, .count = 3, .chained = true });
    CHECK(answered(&node, 62, QF_EINVAL));
    CHECK(answered(&node, 63, QF_EINVAL));
    CHECK_EQ(find(&node, QC_EFFECT_DONE, 0)->request, 63);
    CHECK_EQ(ql_log_last(node.store.log), last + 1);
}

/* While leadership is handed over nothing is written: all of them fall, whatever each had come to,
 * and who made them undoes the last one first. */
TEST(chained_commands_that_cannot_be_submitted_end_the_last_one_first)
{
    const struct qc_request commands[] = { { 61, QF_STR_INIT("\1a"), QC_LEVEL_QUORUM },
                                           { 62, QF_STR_INIT("\1b"), QC_LEVEL_QUORUM },
                                           { 63, QF_STR_INIT("?"), QC_LEVEL_QUORUM },
                                           { 64, QF_STR_INIT("\1d"), QC_LEVEL_QUORUM } };
    QF_CLEANUP(node_done) struct node node;
    uint64_t last, request = 64;

    lead_three(&node, 0);
    last = ql_log_last(node.store.log);
    step(&node, (struct qc_event){ .kind = QC_EVENT_TRANSFER, .request = 60, .member = PEER });
    CHECK(answered(&node, 60, QF_OK));
    step(&node, (struct qc_event){
                    .kind = QC_EVENT_COMMANDS, .commands = commands, .count = 4, .chained = true });
    for (size_t i = 0; i < node.count; i++)
        if (node.last[i].kind == QC_EFFECT_DONE)
            CHECK_EQ(node.last[i].request, request--);
    CHECK_EQ(request, 60);
    CHECK_EQ(ql_log_last(node.store.log), last);
}

TEST(of_commands_that_come_together_each_is_refused_by_itself)
{
    QF_CLEANUP(node_done) struct node node;
    uint64_t last;

    lead_three(&node, 0);
    last = ql_log_last(node.store.log);
    offer_three(&node, QF_STR("\7"));
    CHECK(answered(&node, 52, QF_EINVAL));
    CHECK_EQ(ql_log_last(node.store.log), last + 2);
    persist(&node);
    peer_stores(&node);
    CHECK(answered(&node, 51, QF_OK));
    stores(&node, OTHER);
    CHECK(answered(&node, 53, QF_OK));
    CHECK_EQ(find(&node, QC_EFFECT_DONE, 0)->index, last + 2);
}

/* Whoever loses leadership cannot say what became of what it has not acknowledged. */
TEST(an_offer_under_way_at_the_loss_of_leadership_is_of_unknown_outcome)
{
    QF_CLEANUP(node_done) struct node node;

    lead_three(&node, 0);
    offer(&node, 50, QC_LEVEL_QUORUM);
    receive(&node, message(QC_APPEND, PEER, qc_term(node.core) + 1));
    CHECK(answered(&node, 50, QF_EUNAVAILABLE));
}

/* Records of 1.5 MiB each: two fit one message, the third follows in another. */
TEST(long_entries_go_in_several_messages)
{
    QF_CLEANUP(node_done) struct node node;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    struct qc_message missed;
    uint64_t next = 0;
    size_t sent = 0;

    begin(&node, true, 0);
    persist(&node);
    qf_strbuf_putc(&record, 1);
    while (record.len < 3 << 19)
        qf_strbuf_puts(&record, "0123456789abcdef");
    for (uint64_t i = 0; i < 5; i++) /* entries 3 to 7 */
        step(&node, (struct qc_event){ .kind = QC_EVENT_COMMAND,
                                       .request = 70 + i,
                                       .data = qf_strbuf_view(&record) });
    persist(&node);
    change(&node, 1, QC_ADD, PEER);
    CHECK(find(&node, QC_EFFECT_SEND, QC_APPEND));
    missed = message(QC_APPEND_RESULT, PEER, qc_term(node.core));
    missed.rejected = find(&node, QC_EFFECT_SEND, QC_APPEND)->message.index;
    persist(&node);
    receive(&node, missed); /* it has nothing yet */
    for (size_t i = 0; i < node.count; i++) {
        const struct qc_message *out = &node.last[i].message;

        if (node.last[i].kind != QC_EFFECT_SEND || out->kind != QC_APPEND)
            continue;
        CHECK_EQ(out->index, next);
        CHECK_EQ(out->index_term, ql_log_term(node.store.log, next));
        CHECK(out->count >= 1);
        CHECK(out->count <= 4); /* the first two entries and the last are short */
        next += out->count;
        sent++;
    }
    CHECK_EQ(next, ql_log_last(node.store.log));
    CHECK_EQ(sent, 3);
}

/* How many entries the leader sends to the voter that it demotes, before that is committed. */
static uint32_t demotion_sent(uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;
    uint32_t sent = 0, others = 0;

    lead_three(&node, unsafe);
    change(&node, 60, QC_DEMOTE, PEER);
    for (size_t i = 0; i < node.count; i++) {
        const struct qc_message *out = &node.last[i].message;

        if (node.last[i].kind != QC_EFFECT_SEND || out->kind != QC_APPEND)
            continue;
        sent += out->to == PEER ? out->count : 0;
        others += out->to == OTHER ? out->count : 0;
    }
    CHECK_EQ(others, 1);
    return sent;
}

/* With its demotion as the end of the longest log it would neither stand for election nor vote for
 * who lacks it; if the leader died then, nobody could lead. */
TEST(a_voter_hears_of_its_demotion_when_it_is_committed)
{
    CHECK_EQ(demotion_sent(0), 0);
    CHECK_EQ(demotion_sent(QC_UNSAFE_DEMOTED_FIRST), 1);
}

static void send_change(struct node *node, uint64_t index, const struct qc_members *members)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry entry = { index, 2, QL_CHANGE, { NULL, 0 } };
    struct qc_message append = message(QC_APPEND, PEER, 2);

    qc_members_encode(&buf, members);
    entry.data = qf_strbuf_view(&buf);
    append.index = index - 1;
    append.index_term = index > 1 ? 2 : 0;
    append.commit = 1; /* of a leader that does not know yet what is committed */
    append.entries = &entry;
    append.count = 1;
    receive(node, append);
    persist(node);
}

/* Members in force after two changes came, not known to be committed, and the second was taken back.
 */
static uint32_t members_after_taking_back(uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;
    struct qc_members members = { 2, { { PEER, QC_VOTER, "peer" }, { SELF, QC_VOTER, "self" } } };
    const struct ql_entry noop = { 3, 3, QL_NOOP, { NULL, 0 } };
    struct qc_message append = message(QC_APPEND, PEER, 3);

    begin(&node, false, unsafe);
    send_change(&node, 1, &members);
    members.items[members.count++] = (struct qc_member){ OTHER, QC_STANDBY, "other" };
    send_change(&node, 2, &members);
    members.items[2].role = QC_VOTER;
    send_change(&node, 3, &members);
    append.index = append.index_term = 2;
    append.commit = 1;
    append.entries = &noop;
    append.count = 1;
    receive(&node, append);
    qc_members(node.core, &members);
    return members.count;
}

/* A leader changes members only when the change before is committed: whoever gets the second one
 * knows that the first one stands. */
TEST(a_change_settles_the_one_before_it)
{
    CHECK_EQ(members_after_taking_back(0), 3);
    CHECK_EQ(members_after_taking_back(QC_UNSAFE_CHANGE_PILE), 2);
}

/* A sole voter starts in a term that it has never used, durable before its first entry. */
TEST(a_sole_voter_starts_in_a_new_term)
{
    QF_CLEANUP(node_done) struct node node;

    begin(&node, true, 0);
    CHECK_EQ(node.last[0].kind, QC_EFFECT_VOTE);
    CHECK_EQ(node.last[0].term, 2);
    CHECK(qc_leads(node.core));
    CHECK(!qc_serves(node.core));
    step(&node, (struct qc_event){ .kind = QC_EVENT_COMMAND, .request = 9, .data = QF_STR("\1x") });
    CHECK(answered(&node, 9, QF_EUNAVAILABLE));
    persist(&node);
    CHECK(qc_serves(node.core));
}

/* Somebody made up a higher term. Leading again without a new one would be a second leadership in
 * that term, for all that anyone knows. */
static uint64_t term_after_losing(uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;
    struct qc_message append = message(QC_APPEND, OTHER, 7);

    begin(&node, true, unsafe);
    persist(&node);
    append.index = 900, append.index_term = 6;
    receive(&node, append);
    CHECK(!qc_leads(node.core));
    node.now += 5000;
    step(&node, (struct qc_event){ .kind = QC_EVENT_TICK });
    CHECK(qc_leads(node.core));
    return qc_term(node.core);
}

TEST(a_sole_voter_that_follows_restarts_with_a_new_term)
{
    CHECK_EQ(term_after_losing(0), 8);
    CHECK_EQ(term_after_losing(QC_UNSAFE_SOLE_TIMEOUT), 7);
}

static void confirm(struct node *node, uint64_t nonce)
{
    struct qc_message answer = message(QC_CONFIRM_RESULT, PEER, qc_term(node->core));

    answer.nonce = nonce;
    receive(node, answer);
}

/* True if a read that began after the questions were sent is answered with them. */
static bool joins_questions_under_way(uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;
    uint64_t nonce;
    bool joined;

    lead_two(&node, unsafe);
    step(&node, (struct qc_event){ .kind = QC_EVENT_READ, .request = 5 });
    nonce = find(&node, QC_EFFECT_SEND, QC_CONFIRM)->message.nonce;
    step(&node, (struct qc_event){ .kind = QC_EVENT_READ, .request = 6 });
    CHECK_EQ(node.count, 0);
    confirm(&node, nonce);
    CHECK(answered(&node, 5, QF_OK));
    joined = answered(&node, 6, QF_OK);
    if (!joined) {
        confirm(&node, nonce);
        CHECK_EQ(node.count, 0);
        confirm(&node, nonce + 1);
        CHECK(answered(&node, 6, QF_OK));
    }
    return joined;
}

TEST(a_read_waits_for_questions_that_were_sent_after_it_began)
{
    CHECK(!joins_questions_under_way(0));
    CHECK(joins_questions_under_way(QC_UNSAFE_JOIN_SENT_ROUND));
}

static bool confirms(uint64_t own_term, uint64_t asked_term, uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;
    struct qc_message question = message(QC_CONFIRM, PEER, asked_term);

    begin(&node, false, unsafe);
    receive(&node, message(QC_APPEND, PEER, own_term));
    question.nonce = 1;
    receive(&node, question);
    return find(&node, QC_EFFECT_SEND, QC_CONFIRM_RESULT) != NULL;
}

TEST(only_followers_of_its_term_confirm_a_leader)
{
    CHECK(confirms(4, 4, 0));
    CHECK(!confirms(4, 3, 0));
    CHECK(!confirms(4, 5, 0));
    CHECK(confirms(4, 3, QC_UNSAFE_ANY_ANSWER));
}

/* How far a follower says it has stored when the end of an outdated write is heard of. */
static uint64_t stored_after_outdated_write(uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct qc_members members = { 1, { { PEER, QC_VOTER, "peer" } } };
    struct qc_message append = message(QC_APPEND, PEER, 2);
    struct ql_entry old[] = { { 1, 1, QL_CHANGE, { NULL, 0 } },
                              { 2, 2, QL_NOOP, { NULL, 0 } },
                              { 3, 2, QL_NOOP, { NULL, 0 } } };
    const struct ql_entry new[] = { { 2, 3, QL_NOOP, { NULL, 0 } },
                                    { 3, 3, QL_NOOP, { NULL, 0 } } };
    const struct qc_effect *effect;

    begin(&node, false, unsafe);
    qc_members_encode(&buf, &members);
    old[0].data = qf_strbuf_view(&buf);
    append.entries = old, append.count = 3;
    receive(&node, append);
    append = message(QC_APPEND, PEER, 3);
    append.index = append.index_term = 1;
    append.entries = new, append.count = 2;
    receive(&node, append);
    step(&node, (struct qc_event){ .kind = QC_EVENT_PERSISTED, .index = 3, .term = 2 });
    effect = find(&node, QC_EFFECT_SEND, QC_APPEND_RESULT);
    return effect ? effect->message.index : 0;
}

TEST(the_end_of_a_write_that_was_replaced_says_nothing)
{
    CHECK_EQ(stored_after_outdated_write(0), 0);
    CHECK_EQ(stored_after_outdated_write(QC_UNSAFE_ANY_COMPLETION), 3);
}

static qf_rc promote_too_early(uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;

    begin(&node, true, unsafe);
    persist(&node);
    change(&node, 1, QC_ADD, PEER);
    persist(&node);
    change(&node, 2, QC_PROMOTE, PEER);
    return answered(&node, 2, QF_EBUSY) ? QF_EBUSY : QF_OK;
}

TEST(a_new_member_does_not_vote_before_it_has_caught_up)
{
    CHECK_EQ(promote_too_early(0), QF_EBUSY);
    CHECK_EQ(promote_too_early(QC_UNSAFE_NEW_VOTER), QF_OK);
}

static bool changes_before_own_commit(uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;

    begin(&node, true, unsafe);
    change(&node, 1, QC_ADD, PEER);
    return !answered(&node, 1, QF_EUNAVAILABLE);
}

TEST(a_new_leader_changes_no_members_before_it_has_committed)
{
    CHECK(!changes_before_own_commit(0));
    CHECK(changes_before_own_commit(QC_UNSAFE_EARLY_CHANGE));
}

TEST(a_leader_of_two_cannot_leave)
{
    QF_CLEANUP(node_done) struct node node;

    lead_two(&node, 0);
    change(&node, 7, QC_REMOVE, SELF);
    CHECK(answered(&node, 7, QF_EINVAL));
    change(&node, 8, QC_REMOVE, PEER);
    CHECK(!answered(&node, 8, QF_EINVAL));
}

/* A majority with too little room: records are refused, what frees the disk is not. */
static bool refuses_records(uint64_t unsafe)
{
    QF_CLEANUP(node_done) struct node node;
    struct qc_event trim = { .kind = QC_EVENT_COMMAND,
                             .request = 11,
                             .data = QF_STR_INIT("\4\2\0\0\0\0\0\0\0") };

    lead_two(&node, unsafe);
    step(&node, (struct qc_event){ .kind = QC_EVENT_SPACE, .bytes = 10 });
    step(&node, trim);
    CHECK(!answered(&node, 11, QF_ENOSPC));
    step(&node,
         (struct qc_event){ .kind = QC_EVENT_COMMAND, .request = 12, .data = QF_STR("\1x") });
    return answered(&node, 12, QF_ENOSPC);
}

TEST(records_are_refused_while_there_is_no_room)
{
    CHECK(refuses_records(0));
    CHECK(!refuses_records(QC_UNSAFE_NO_SPACE_CHECK));
}

TEST(messages_of_another_cluster_or_for_another_incarnation_are_dropped)
{
    QF_CLEANUP(node_done) struct node node;
    struct qc_message append = message(QC_APPEND, PEER, 9);

    begin(&node, false, 0);
    append.cluster = CLUSTER + 1;
    receive(&node, append);
    append.cluster = CLUSTER;
    append.to = SELF + 1;
    receive(&node, append);
    CHECK_EQ(qc_figures(node.core).dropped, 2);
    CHECK_EQ(qc_term(node.core), 0);
}

/* A leader learns only after one to two election timeouts that it lost its majority; whoever asks it
 * to write hears so before. */
TEST(a_leader_knows_since_when_it_has_not_heard_of_a_majority)
{
    QF_CLEANUP(node_done) struct node node;
    uint64_t began;

    lead_three(&node, 0);
    began = node.now;
    CHECK_EQ(qc_heard(node.core, node.now), began);
    node.now += 100;
    stores(&node, OTHER); /* two of three */
    CHECK_EQ(qc_heard(node.core, node.now), began + 100);
    node.now += 100;
    CHECK_EQ(qc_heard(node.core, node.now), began + 100);
    /* Who asks for votes, or speaks of another term, does not follow. */
    receive(&node, message(QC_VOTE, PEER, qc_term(node.core)));
    receive(&node, message(QC_APPEND_RESULT, OTHER, qc_term(node.core) - 1));
    CHECK_EQ(qc_heard(node.core, node.now), began + 100);
    stores(&node, PEER);
    CHECK_EQ(qc_heard(node.core, node.now), began + 200);
}

TEST(a_sole_voter_has_its_majority)
{
    QF_CLEANUP(node_done) struct node node;

    begin(&node, true, 0);
    persist(&node);
    CHECK_EQ(qc_heard(node.core, node.now + 5000), node.now + 5000);
}

/* Being told how far the leader is is not having it. */
TEST(a_follower_knows_as_of_when_it_has_everything)
{
    QF_CLEANUP(node_done) struct node node;
    struct qc_message append = message(QC_APPEND, PEER, 2);
    struct ql_entry noop = { .index = 2, .term = 2, .type = QL_NOOP };
    const struct qc_members members = {
        2, { { SELF, QC_VOTER, "self" }, { PEER, QC_VOTER, "peer" } }
    };
    uint64_t began;

    begin(&node, false, 0);
    began = node.now;
    append.commit = 2;
    receive(&node, append); /* it lacks two entries */
    CHECK_EQ(qc_current(node.core, node.now), 0);
    node.now += 100;
    send_change(&node, 1, &members);
    append.index = 1, append.index_term = 2;
    append.entries = &noop, append.count = 1;
    receive(&node, append); /* written, not synced */
    CHECK_EQ(qc_current(node.core, node.now), 0);
    persist(&node);
    node.now += 100;
    append.index = 2, append.count = 0;
    receive(&node, append);
    CHECK_EQ(qc_current(node.core, node.now), began);
    node.now += 100;
    receive(&node, append);
    CHECK_EQ(qc_current(node.core, node.now), began + 200);
}

TEST(a_leader_has_everything)
{
    QF_CLEANUP(node_done) struct node node;

    lead_two(&node, 0);
    CHECK_EQ(qc_current(node.core, node.now + 7), node.now + 7);
}

TEST(a_follower_knows_when_it_heard_of_its_leader)
{
    QF_CLEANUP(node_done) struct node node;
    uint64_t began;

    begin(&node, false, 0);
    CHECK_EQ(qc_heard(node.core, node.now), 0);
    began = node.now;
    receive(&node, message(QC_APPEND, PEER, 4));
    CHECK_EQ(qc_heard(node.core, node.now), began);
    node.now += 300;
    receive(&node, message(QC_CONFIRM_RESULT, OTHER, 4));
    CHECK_EQ(qc_heard(node.core, node.now), began);
    receive(&node, message(QC_APPEND, PEER, 4));
    CHECK_EQ(qc_heard(node.core, node.now), began + 300);
}
