/* test_node.c - a node over disks in memory: what its files go through, and what asks hear of it. */
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "queue/node/blocked.h"
#include "queue/node/node.h"
#include "tests/lib/queue/sim_disk.h"
#include "tests/lib/test.h"

enum { DISKS_MAX = 8 };

/* Simulated disks belong to one thread; a node syncs on another. */
struct shared_disk {
    struct ql_disk disk;
    struct world *world;
    struct sim_disk *sim;
    char name[32];
};

struct world {
    struct qf_lock *lock;
    struct shared_disk disks[DISKS_MAX];
    size_t disk_count;
    struct qn_node *node;
    char fatal[256];
    struct qn_ask *answered;
};

#define INNER(disk) sim_disk_of(((struct shared_disk *)(disk))->sim)
#define LOCKED(disk, call)                                                                         \
    __extension__({                                                                                \
        struct qf_lock *lock_ = ((struct shared_disk *)(disk))->world->lock;                       \
        qf_lock_take(lock_);                                                                       \
        qf_rc rc_ = INNER(disk)->ops->call;                                                        \
        qf_lock_drop(lock_);                                                                       \
        rc_;                                                                                       \
    })

static qf_rc d_open(struct ql_disk *d, const char *name, bool create, int *f, struct qf_err *err)
{
    return LOCKED(d, open(INNER(d), name, create, f, err));
}
static void d_close(struct ql_disk *d, int f)
{
    qf_lock_take(((struct shared_disk *)d)->world->lock);
    INNER(d)->ops->close(INNER(d), f);
    qf_lock_drop(((struct shared_disk *)d)->world->lock);
}
static qf_rc d_size(struct ql_disk *d, int f, uint64_t *size, struct qf_err *err)
{
    return LOCKED(d, size(INNER(d), f, size, err));
}
static qf_rc d_read(struct ql_disk *d, int f, uint64_t at, void *data, size_t len,
                    struct qf_err *err)
{
    return LOCKED(d, read(INNER(d), f, at, data, len, err));
}
static qf_rc d_write(struct ql_disk *d, int f, uint64_t at, const void *data, size_t len,
                     struct qf_err *err)
{
    return LOCKED(d, write(INNER(d), f, at, data, len, err));
}
static qf_rc d_truncate(struct ql_disk *d, int f, uint64_t size, struct qf_err *err)
{
    return LOCKED(d, truncate(INNER(d), f, size, err));
}
static qf_rc d_sync(struct ql_disk *d, int f, struct qf_err *err)
{
    return LOCKED(d, sync(INNER(d), f, err));
}
static qf_rc d_rename(struct ql_disk *d, const char *from, const char *to, struct qf_err *err)
{
    return LOCKED(d, rename(INNER(d), from, to, err));
}
static qf_rc d_remove(struct ql_disk *d, const char *name, struct qf_err *err)
{
    return LOCKED(d, remove(INNER(d), name, err));
}
static qf_rc d_sync_folder(struct ql_disk *d, struct qf_err *err)
{
    return LOCKED(d, sync_folder(INNER(d), err));
}
static qf_rc d_list(struct ql_disk *d, struct qf_strbuf *names, struct qf_err *err)
{
    return LOCKED(d, list(INNER(d), names, err));
}
static qf_rc d_space(struct ql_disk *d, uint64_t *bytes, struct qf_err *err)
{
    return LOCKED(d, space(INNER(d), bytes, err));
}

static const struct ql_disk_ops ops = { d_open,   d_close,       d_size, d_read,
                                        d_write,  d_truncate,    d_sync, d_rename,
                                        d_remove, d_sync_folder, d_list, d_space };

static struct shared_disk *disk_of(struct world *world, const char *folder)
{
    struct shared_disk *disk;

    for (size_t i = 0; i < world->disk_count; i++)
        if (strcmp(world->disks[i].name, folder) == 0)
            return &world->disks[i];
    CHECK(world->disk_count < DISKS_MAX);
    disk = &world->disks[world->disk_count++];
    (void)snprintf(disk->name, sizeof(disk->name), "%s", folder);
    disk->world = world;
    disk->sim = sim_disk_new(disk->name);
    disk->disk = (struct ql_disk){ &ops, disk->name };
    return disk;
}

static qf_rc open_folder(void *ctx, const char *folder, bool create, struct ql_disk **ret_disk,
                         struct qf_err *err)
{
    (void)create;
    (void)err;
    *ret_disk = &disk_of(ctx, folder)->disk;
    return QF_OK;
}
static void close_folder(void *ctx, struct ql_disk *disk)
{
    (void)ctx;
    (void)disk;
}
static qf_rc remove_folder(void *ctx, const char *folder, struct qf_err *err)
{
    (void)err;
    sim_disk_wipe(disk_of(ctx, folder)->sim);
    return QF_OK;
}
static void add_path(void *ctx, const char *folder, const char *name, struct qf_strbuf *buf)
{
    (void)ctx;
    qf_strbuf_printf(buf, "%s/%s", folder, name);
}

static void on_fatal(void *ctx, const char *why)
{
    struct world *world = ctx;

    qf_lock_take(world->lock);
    (void)snprintf(world->fatal, sizeof(world->fatal), "%s", why);
    qf_lock_drop(world->lock);
}

static void begin(struct world *world, bool bootstrap)
{
    struct qf_err err = { 0 };
    const struct qn_options options = {
        .name = "a",
        .bootstrap = bootstrap,
        .reserve_bytes = 4096,
        .folders = { world, open_folder, close_folder, remove_folder, add_path },
        .fatal = on_fatal,
        .ctx = world,
    };

    if (!world->lock)
        world->lock = qf_lock_new();
    CHECK_OK(qn_start(&options, &world->node, &err), &err);
}

static void world_done(struct world *world)
{
    world->node = qn_stop(world->node);
    for (size_t i = 0; i < world->disk_count; i++)
        (void)sim_disk_free(world->disks[i].sim);
    (void)qf_lock_free(world->lock);
}

static void on_done(void *ctx, struct qn_ask *ask)
{
    struct world *world = ctx;

    qf_lock_take(world->lock);
    world->answered = ask;
    qf_lock_wake_all(world->lock);
    qf_lock_drop(world->lock);
}

/* Ask and wait; the answered ask, to be freed. NULL: no answer within @ms. */
static struct qn_ask *ask_for(struct world *world, struct qn_ask *ask, int64_t ms)
{
    int64_t deadline = qf_clock_mono_ms() + ms;
    struct qn_ask *answered;

    (void)snprintf(ask->tenant, sizeof(ask->tenant), "t");
    ask->operates = true;
    ask->done = on_done;
    ask->ctx = world;
    CHECK(qn_ask(world->node, ask));
    qf_lock_take(world->lock);
    while (!world->answered && qf_clock_mono_ms() < deadline)
        (void)qf_lock_wait(world->lock, 10);
    answered = world->answered;
    world->answered = NULL;
    qf_lock_drop(world->lock);
    return answered;
}

/* The code of the answer. */
static qf_rc ask_rc(struct world *world, struct qn_ask *ask)
{
    struct qn_ask *answered = ask_for(world, ask, 20000);
    qf_rc rc;

    CHECK(answered != NULL);
    rc = answered->answer.err.rc;
    (void)qn_ask_free(answered);
    return rc;
}

static qf_rc offer(struct world *world, const char *record)
{
    struct qn_ask *ask = qn_ask_new(QN_OFFER, QF_STR("orders"));

    qn_ask_add(ask, qf_str_from(record));
    return ask_rc(world, ask);
}

static qf_rc create(struct world *world)
{
    return ask_rc(world, qn_ask_new(QN_CREATE, QF_STR("orders")));
}

static size_t count_records(struct world *world)
{
    struct qn_ask *ask = qn_ask_new(QN_POLL, QF_STR("orders")), *answered;
    size_t count;

    ask->max = QN_POLL_MAX;
    answered = ask_for(world, ask, 20000);
    CHECK(answered != NULL);
    CHECK_EQ(answered->answer.err.rc, QF_OK);
    count = answered->answer.records.count;
    (void)qn_ask_free(answered);
    return count;
}

/* What was acknowledged is on the disk, whatever the power does afterwards. */
TEST(acknowledged_records_survive_a_loss_of_power)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        QF_CLEANUP(world_done) struct world world = { 0 };
        struct qf_prng prng = { seed };

        begin(&world, true);
        CHECK_EQ(create(&world), QF_OK);
        for (int i = 0; i < 20; i++)
            CHECK_EQ(offer(&world, "record"), QF_OK);
        world.node = qn_stop(world.node);
        for (size_t i = 0; i < world.disk_count; i++)
            sim_disk_power_loss(world.disks[i].sim, &prng);
        begin(&world, false);
        CHECK_EQ(count_records(&world), 20);
        CHECK_EQ(offer(&world, "one more"), QF_OK);
        CHECK_STR(world.fatal, "");
    }
}

struct waiter {
    struct qn_node *node;
    atomic_bool asked;
    qf_rc rc;
};

static void wait_for_records(void *arg)
{
    struct waiter *waiter = arg;
    struct qn_ask *ask = qn_ask_new(QN_POLL, QF_STR("orders"));
    struct qn_blocked blocked;
    bool asked;

    ask->operates = true;
    ask->max = 1;
    ask->from = 100;
    ask->wait_ms = 60000;
    qn_blocked_begin(&blocked, ask);
    asked = qn_ask(waiter->node, ask);
    atomic_store(&waiter->asked, true);
    ask = qn_blocked_end(&blocked, ask, asked);
    waiter->rc = asked ? ask->answer.err.rc : QF_EUNAVAILABLE;
    (void)qn_ask_free(ask);
}

/* A node that stops keeps the poll that it had, and answers with another one: who waits reads and frees that. */
TEST(who_waits_for_records_hears_that_the_node_stops)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    struct waiter waiter = { 0 };
    struct qf_thread *thread;

    begin(&world, true);
    CHECK_EQ(create(&world), QF_OK);
    waiter.node = world.node;
    thread = qf_thread_start("waiter", wait_for_records, &waiter);
    while (!atomic_load(&waiter.asked) || count_records(&world) != 0)
        continue; /* what was asked later is answered: the poll waits by now */
    world.node = qn_stop(world.node);
    (void)qf_thread_join(thread);
    CHECK_EQ(waiter.rc, QF_EUNAVAILABLE);
}

/* After a failed sync nobody knows what is durable: the process ends, and the client hears no yes. */
TEST(a_failed_sync_is_the_end_and_acknowledges_nothing)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    struct qn_ask *ask;

    begin(&world, true);
    CHECK_EQ(create(&world), QF_OK);
    CHECK_EQ(offer(&world, "1"), QF_OK);
    /* The mark of an idle log is written and synced as well: not now. */
    for (int64_t until = qf_clock_mono_ms() + 400; qf_clock_mono_ms() < until;)
        CHECK_EQ(count_records(&world), 1);
    qf_lock_take(world.lock);
    sim_disk_fail_next_sync(disk_of(&world, "q-3")->sim);
    qf_lock_drop(world.lock);
    ask = qn_ask_new(QN_OFFER, QF_STR("orders"));
    qn_ask_add(ask, QF_STR("2"));
    CHECK(ask_for(&world, ask, 300) == NULL);
    CHECK(world.fatal[0] != 0);
    world.node = qn_stop(world.node);
    CHECK(world.answered != NULL);
    CHECK_EQ(world.answered->answer.err.rc, QF_EUNAVAILABLE);
    (void)qn_ask_free(world.answered);
    world.answered = NULL;
}

/* A full disk refuses records; what frees it goes on. */
TEST(a_full_disk_refuses_records_and_takes_the_rest)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    struct qn_ask *ask;
    char record[2000];
    int taken = 0;
    qf_rc rc = QF_OK;

    memset(record, 'x', sizeof(record) - 1);
    record[sizeof(record) - 1] = 0;
    begin(&world, true);
    CHECK_EQ(create(&world), QF_OK);
    CHECK_EQ(offer(&world, record), QF_OK);
    qf_lock_take(world.lock);
    sim_disk_set_capacity(disk_of(&world, "q-3")->sim, 100000);
    qf_lock_drop(world.lock);
    /* A node looks at its disk once a second while there is much room. */
    for (int64_t until = qf_clock_mono_ms() + 1500; qf_clock_mono_ms() < until;)
        CHECK_EQ(count_records(&world), 1);
    for (int i = 0; i < 100 && rc == QF_OK; i++) {
        rc = offer(&world, record);
        taken += rc == QF_OK;
    }
    CHECK_EQ(rc, QF_ENOSPC);
    CHECK(taken > 20);
    ask = qn_ask_new(QN_OFFSET, QF_STR("orders"));
    (void)snprintf(ask->consumer, sizeof(ask->consumer), "c");
    ask->from = 5;
    CHECK_EQ(ask_rc(&world, ask), QF_OK);
    CHECK_EQ(count_records(&world), (size_t)taken + 1);
    qf_lock_take(world.lock);
    sim_disk_set_capacity(disk_of(&world, "q-3")->sim, 0);
    qf_lock_drop(world.lock);
    for (int64_t until = qf_clock_mono_ms() + 20000; rc != QF_OK && qf_clock_mono_ms() < until;)
        rc = offer(&world, record);
    CHECK_EQ(rc, QF_OK);
    CHECK_STR(world.fatal, "");
}

/* A queue that comes while the disk is full is made when there is room: the node goes on without it. */
TEST(a_queue_for_which_there_is_no_room_is_made_later)
{
    QF_CLEANUP(world_done) struct world world = { 0 };
    qf_rc rc = QF_ENOSPC;

    begin(&world, true);
    qf_lock_take(world.lock);
    sim_disk_set_capacity(disk_of(&world, "q-3")->sim, 40); /* something fits, not all of it */
    qf_lock_drop(world.lock);
    CHECK_EQ(create(&world), QF_OK);
    CHECK(offer(&world, "x") != QF_OK);
    CHECK_STR(world.fatal, "");
    qf_lock_take(world.lock);
    sim_disk_set_capacity(disk_of(&world, "q-3")->sim, 0);
    qf_lock_drop(world.lock);
    for (int64_t until = qf_clock_mono_ms() + 20000; rc != QF_OK && qf_clock_mono_ms() < until;)
        rc = offer(&world, "x");
    CHECK_EQ(rc, QF_OK);
    CHECK_EQ(count_records(&world), 1);
    CHECK_STR(world.fatal, "");
}

TEST(a_stopping_node_answers_everyone)
{
    QF_CLEANUP(world_done) struct world world = { 0 };

    begin(&world, true);
    CHECK_EQ(create(&world), QF_OK);
    qn_halt(world.node);
    CHECK_EQ(qn_ask(world.node, NULL), false);
}

TEST(a_node_without_a_cluster_says_so)
{
    QF_CLEANUP(world_done) struct world world = { 0 };

    begin(&world, false);
    CHECK_EQ(qn_cluster(world.node), 0);
    CHECK_EQ(create(&world), QF_EUNAVAILABLE);
    world.node = qn_stop(world.node);
    begin(&world, true);
    CHECK(qn_cluster(world.node) != 0);
    CHECK_EQ(create(&world), QF_OK);
}
