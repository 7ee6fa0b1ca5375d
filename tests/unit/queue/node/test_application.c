/* test_application.c - the application of a queue: what it is given, keeps, and answers. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "tests/lib/queue/nodes.h"
#include "tests/lib/test.h"

#define QUEUE QF_STR("book")

/* A list of texts. "drop" says that nothing up to itself is needed any more. A text that begins with
 * "once" is written once: who writes it again waits for the first and hears of it. */
struct book {
    struct qf_lock *lock; /* the test looks at it from its own thread */
    struct qf_strbuf state, seen_again;
    uint64_t applied, needed, term;
    uint32_t restores, pending, ended, failed;
    char under_way[64];
    bool open;
};

static qf_rc restore(void *ctx, uint64_t index, struct qf_str state, struct qf_err *err)
{
    struct book *book = ctx;

    (void)err;
    qf_lock_take(book->lock);
    qf_strbuf_reset(&book->state);
    qf_strbuf_reset(&book->seen_again);
    book->applied = index;
    book->needed = index + 1;
    if (state.len) {
        memcpy(&book->needed, state.data, sizeof(book->needed));
        qf_strbuf_str(&book->state, qf_str_sub(state, sizeof(book->needed), state.len));
    }
    book->restores++;
    qf_lock_drop(book->lock);
    return QF_OK;
}

static void apply(void *ctx, const struct qn_record *record, bool again)
{
    struct book *book = ctx;

    qf_lock_take(book->lock);
    CHECK(record->time_ms > 0);
    if (again) {
        CHECK(record->offset <= book->applied);
        qf_strbuf_printf(&book->seen_again, "%.*s;", QF_STR_ARG(record->data));
    } else {
        CHECK(record->offset > book->applied);
        book->applied = record->offset;
        qf_strbuf_printf(&book->state, "%.*s;", QF_STR_ARG(record->data));
        if (!book->state.len || book->needed > record->offset)
            book->needed = record->offset;
        if (qf_str_is(record->data, "drop"))
            book->needed = record->offset + 1;
    }
    qf_lock_drop(book->lock);
}

static void save(void *ctx, struct qf_strbuf *buf)
{
    struct book *book = ctx;

    qf_strbuf_add(buf, &book->needed, sizeof(book->needed));
    qf_strbuf_str(buf, qf_strbuf_view(&book->state));
}

static uint64_t needed_from(void *ctx)
{
    return ((struct book *)ctx)->needed;
}

static void lead(void *ctx, uint64_t term)
{
    struct book *book = ctx;

    qf_lock_take(book->lock);
    book->term = term;
    qf_lock_drop(book->lock);
}

static bool has(const struct qf_strbuf *text, struct qf_str word)
{
    return text->len && memmem(text->data, text->len, word.data, word.len) != NULL;
}

static enum qn_proposal propose(void *ctx, struct qn_ask *ask, struct qf_strbuf *record,
                                void **ret_pending)
{
    struct book *book = ctx;
    struct qf_str text = qn_ask_record(ask, 0);
    bool once = text.len > 4 && memcmp(text.data, "once", 4) == 0;

    CHECK(book->term != 0);
    if (once && qf_str_is(text, book->under_way))
        return QN_DEFERRED;
    if (once && has(&book->state, text)) {
        qf_strbuf_puts(&ask->answer.text, "before");
        return QN_ANSWERED;
    }
    if (once)
        (void)snprintf(book->under_way, sizeof(book->under_way), "%.*s", QF_STR_ARG(text));
    if (qf_str_is(text, "large"))
        for (int i = 0; i < 40000; i++)
            qf_strbuf_puts(record, "0123456789");
    qf_strbuf_str(record, text);
    book->pending++;
    *ret_pending = book;
    return QN_PROPOSED;
}

static void ended(void *ctx, void *pending, qf_rc rc, uint64_t index, struct qn_answer *answer)
{
    struct book *book = ctx;

    CHECK(pending == book);
    CHECK(rc != QF_OK || index <= book->applied); /* applied first */
    qf_lock_take(book->lock);
    book->under_way[0] = 0;
    book->pending--;
    book->ended++;
    book->failed += rc != QF_OK;
    qf_lock_drop(book->lock);
    if (answer && rc == QF_OK)
        qf_strbuf_printf(&answer->text, "%" PRIu64, index);
}

static void answer(void *ctx, struct qn_ask *ask, uint64_t index)
{
    struct book *book = ctx;

    CHECK(index == 0 || book->term != 0);
    qf_strbuf_str(&ask->answer.text, qf_strbuf_view(&book->state));
}

static void close_book(void *ctx)
{
    ((struct book *)ctx)->open = false;
}

static bool open_book(void *ctx, const char *queue, uint64_t id, struct qn_application *ret)
{
    struct book *book = ctx;

    CHECK((id != 0) == (strcmp(queue, QN_META) != 0));
    if (!qf_str_eq(qf_str_from(queue), QUEUE))
        return false;
    CHECK(!book->open);
    book->open = true;
    *ret = (struct qn_application){ book,    restore, apply,  save, needed_from, lead,
                                    propose, ended,   answer, NULL, close_book };
    return true;
}

struct world {
    struct book books[NODES_MAX];
    struct nodes *nodes;
};

static void begin(struct world *world, size_t count)
{
    struct nodes_options options = { .count = count, .file_bytes = 1 << 20 };

    for (size_t i = 0; i < count; i++) {
        world->books[i].lock = qf_lock_new();
        options.applications[i] = (struct qn_applications){ &world->books[i], open_book };
    }
    world->nodes = nodes_new(&options);
    for (size_t i = 0; i < count; i++)
        nodes_start(world->nodes, i);
    for (size_t i = 1; i < count; i++)
        nodes_join(world->nodes, 0, i);
    CHECK_EQ(nodes_ask_rc(world->nodes, 0, qn_ask_new(QN_CREATE, QUEUE)), QF_OK);
}

static void world_done(struct world *world)
{
    world->nodes = nodes_free(world->nodes);
    for (size_t i = 0; i < NODES_MAX; i++) {
        CHECK(!world->books[i].open);
        qf_strbuf_done(&world->books[i].state);
        qf_strbuf_done(&world->books[i].seen_again);
        (void)qf_lock_free(world->books[i].lock);
    }
}

static struct qn_ask *write_ask(const char *text)
{
    struct qn_ask *ask = qn_ask_new(QN_WRITE, QUEUE);

    qn_ask_add(ask, qf_str_from(text));
    return ask;
}

static void write_text(struct world *world, size_t i, const char *text)
{
    struct qn_ask *ask = nodes_ask(world->nodes, i, write_ask(text));

    CHECK_OK(ask->answer.err.rc, &ask->answer.err);
    CHECK(ask->answer.text.len > 0);
    (void)qn_ask_free(ask);
}

static void check_answer(struct world *world, size_t i, enum qn_verb verb, const char *want)
{
    struct qn_ask *ask = nodes_ask(world->nodes, i, qn_ask_new(verb, QUEUE));

    CHECK_OK(ask->answer.err.rc, &ask->answer.err);
    CHECK_STR(qf_strbuf_cstr(&ask->answer.text), want);
    (void)qn_ask_free(ask);
}

/* Everything is applied in order, also after a restart, whether or not there was a snapshot. */
TEST(an_application_is_given_every_record_in_order)
{
    QF_CLEANUP(world_done) struct world world = { 0 };

    begin(&world, 1);
    write_text(&world, 0, "a");
    write_text(&world, 0, "b");
    check_answer(&world, 0, QN_QUESTION, "a;b;");
    nodes_stop(world.nodes, 0);
    nodes_start(world.nodes, 0);
    write_text(&world, 0, "c");
    check_answer(&world, 0, QN_QUESTION, "a;b;c;");
    check_answer(&world, 0, QN_LOOK, "a;b;c;");
    CHECK_EQ(world.books[0].restores, 2);
    CHECK_EQ(world.books[0].pending, 0);
    CHECK_STR(nodes_fatal(world.nodes), "");
}

/* Records of a queue with an application come from its role alone, and it cannot be deleted. */
TEST(a_queue_with_an_application_takes_no_other_records)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    struct qn_ask *ask;

    begin(&world, 1);
    ask = qn_ask_new(QN_OFFER, QUEUE);
    qn_ask_add(ask, QF_STR("x"));
    CHECK_EQ(nodes_ask_rc(world.nodes, 0, ask), QF_EINVAL);
    CHECK_EQ(nodes_ask_rc(world.nodes, 0, qn_ask_new(QN_DELETE, QUEUE)), QF_EINVAL);
    CHECK_EQ(nodes_ask_rc(world.nodes, 0, qn_ask_new(QN_CREATE, QF_STR("plain"))), QF_OK);
    ask = qn_ask_new(QN_WRITE, QF_STR("plain"));
    CHECK_EQ(nodes_ask_rc(world.nodes, 0, ask), QF_EINVAL);
}

struct told {
    struct qf_lock *lock;
    struct qf_strbuf texts;
    int count;
};

static void on_told(void *ctx, struct qn_ask *ask)
{
    struct told *told = ctx;

    qf_lock_take(told->lock);
    CHECK_EQ(ask->answer.err.rc, QF_OK);
    qf_strbuf_printf(&told->texts, "%s;",
                     ask->answer.text.len ? qf_strbuf_cstr(&ask->answer.text) : "");
    told->count++;
    qf_lock_wake_all(told->lock);
    qf_lock_drop(told->lock);
    (void)qn_ask_free(ask);
}

/* Who must wait for another's end is proposed again when that is known. */
TEST(a_deferred_write_is_proposed_again)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    struct told told = { .lock = qf_lock_new(), .texts = QF_STRBUF_INIT };
    int64_t deadline = qf_clock_mono_ms() + 20000;

    begin(&world, 1);
    for (int i = 0; i < 5; i++) {
        struct qn_ask *ask = write_ask("once upon a time");

        ask->operates = true;
        ask->done = on_told;
        ask->ctx = &told;
        CHECK(qn_ask(nodes_at(world.nodes, 0), ask));
    }
    qf_lock_take(told.lock);
    while (told.count < 5 && qf_clock_mono_ms() < deadline)
        (void)qf_lock_wait(told.lock, 10);
    qf_lock_drop(told.lock);
    CHECK_EQ(told.count, 5);
    CHECK(strstr(qf_strbuf_cstr(&told.texts), "before;before;before;before;") != NULL);
    check_answer(&world, 0, QN_QUESTION, "once upon a time;");
    qf_strbuf_done(&told.texts);
    (void)qf_lock_free(told.lock);
}

/* A snapshot carries the state, and records that it counts but that are still needed come again. */
TEST(a_snapshot_carries_the_state_and_keeps_what_is_needed)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    struct book *book = &world.books[0];
    bool again = false;

    begin(&world, 1);
    write_text(&world, 0, "old");
    write_text(&world, 0, "drop");
    write_text(&world, 0, "kept");
    /* Enough for snapshots: every 32 MiB of log. */
    for (int i = 0; i < 90; i++)
        write_text(&world, 0, "large");
    (void)poll(NULL, 0, 2500); /* two rounds of housekeeping */
    write_text(&world, 0, "last");
    nodes_stop(world.nodes, 0);
    nodes_start(world.nodes, 0);
    qf_lock_take(book->lock);
    again = has(&book->seen_again, QF_STR("kept;"));
    CHECK(!has(&book->seen_again, QF_STR("old;")));
    qf_lock_drop(book->lock);
    CHECK(again);
    CHECK(has(&book->state, QF_STR("old;drop;kept;")));
    write_text(&world, 0, "more");
    CHECK(has(&book->state, QF_STR("last;more;")));
    CHECK_STR(nodes_fatal(world.nodes), "");
}

static void wait_for(struct world *world, size_t i, const char *text)
{
    int64_t deadline = qf_clock_mono_ms() + 20000;
    bool found = false;

    while (!found && qf_clock_mono_ms() < deadline) {
        qf_lock_take(world->books[i].lock);
        found = has(&world->books[i].state, qf_str_from(text));
        qf_lock_drop(world->books[i].lock);
        if (!found)
            (void)poll(NULL, 0, 10);
    }
    CHECK_MSG(found, "node %zu never applied %s", i, text);
}

/* Any node takes a write or a question and the leader answers; every node applies the same; when the
 * leader goes, another one leads the application. */
TEST(writes_and_questions_find_the_leader)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    size_t leader, other;

    begin(&world, 3);
    leader = nodes_leader(world.nodes, "book");
    other = (leader + 1) % 3;
    write_text(&world, other, "a");
    check_answer(&world, other, QN_QUESTION, "a;");
    write_text(&world, leader, "b");
    for (size_t i = 0; i < 3; i++) {
        wait_for(&world, i, "a;b;");
        CHECK_EQ(world.books[i].term != 0, i == leader);
    }
    nodes_stop(world.nodes, leader);
    write_text(&world, other, "c");
    check_answer(&world, other, QN_QUESTION, "a;b;c;");
    CHECK(nodes_leader(world.nodes, "book") != leader);
}

/* A node that joins late gets the state with a snapshot, and what is still needed again. */
TEST(a_new_node_gets_the_state_with_a_snapshot)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    struct nodes_options options = { .count = 2, .file_bytes = 1 << 20 };
    struct book *book = &world.books[1];

    for (size_t i = 0; i < 2; i++) {
        world.books[i].lock = qf_lock_new();
        options.applications[i] = (struct qn_applications){ &world.books[i], open_book };
    }
    world.nodes = nodes_new(&options);
    nodes_start(world.nodes, 0);
    CHECK_EQ(nodes_ask_rc(world.nodes, 0, qn_ask_new(QN_CREATE, QUEUE)), QF_OK);
    write_text(&world, 0, "old");
    for (int i = 0; i < 5; i++)
        write_text(&world, 0, "large");
    write_text(&world, 0, "drop");
    write_text(&world, 0, "kept");
    for (int i = 0; i < 90; i++)
        write_text(&world, 0, "large");
    (void)poll(NULL, 0, 3500); /* a snapshot, a trim, a snapshot */
    write_text(&world, 0, "last");
    nodes_start(world.nodes, 1);
    nodes_join(world.nodes, 0, 1);
    wait_for(&world, 1, "last;");
    qf_lock_take(book->lock);
    CHECK(has(&book->state, QF_STR("drop;kept;")));
    CHECK(has(&book->seen_again, QF_STR("kept;")));
    CHECK(!has(&book->seen_again, QF_STR("old;")));
    qf_lock_drop(book->lock);
    CHECK(atomic_load(&qn_figures(nodes_at(world.nodes, 1))->installs) > 0);
    CHECK_STR(nodes_fatal(world.nodes), "");
}
