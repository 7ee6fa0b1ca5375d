/* test_lead.c - migrations driven to their end, with keepers in memory that keep the real rules. */
#include "ring/coord/lead.h"

#include <stdlib.h>

#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "ring/core/keep.h"
#include "tests/unit/ring/core/ring_help.h"

#define WORLD QF_CLEANUP(world_done) struct world
#define PATIENCE_MS 60000
enum { SLOTS = 16, KEEPERS = 5, BLOB_BYTES = 100 };

/* Holds at most one blob a slot: "b". */
struct keeper {
    struct rg_keep keep;
    uint64_t incarnation;
    bool away, full, has[SLOTS];
    unsigned streams, refused;
    uint32_t slots[64]; /* of the first streams */
};

struct world {
    struct qf_lock *lock; /* of all below */
    struct rg_ring *ring;
    struct keeper keepers[KEEPERS];
    struct rg_board *board;
    struct rg_hands hands;
    struct rg_lead_options options;
    struct rg_lead *lead;
    uint64_t term;
    bool mute; /* meta confirms nothing */
};

static struct keeper *at_url(struct world *world, const char *url)
{
    return &world->keepers[url[strlen(url) - 1] - '0'];
}

static qf_rc away(struct qf_err *err)
{
    return qf_err_set(err, QF_EUNAVAILABLE, "it is away");
}

static qf_rc look(void *ctx, const char *url, struct rg_looked *ret, struct qf_err *err)
{
    struct world *world = ctx;
    struct keeper *keeper = at_url(world, url);
    qf_rc rc;

    qf_lock_take(world->lock);
    *ret = (struct rg_looked){ keeper->incarnation, keeper->keep.told };
    rc = keeper->away ? away(err) : QF_OK;
    qf_lock_drop(world->lock);
    return rc;
}

static qf_rc tell(void *ctx, const char *url, const uint64_t *epochs, uint32_t count,
                  struct rg_looked *ret, struct qf_err *err)
{
    struct world *world = ctx;
    struct keeper *keeper = at_url(world, url);

    CHECK_EQ(count, SLOTS);
    if (look(ctx, url, ret, err) != QF_OK)
        return err->rc;
    qf_lock_take(world->lock);
    (void)rg_keep_tell(&keeper->keep, epochs);
    qf_lock_drop(world->lock);
    return QF_OK;
}

static qf_rc list(void *ctx, uint32_t slot, struct rg_listing *listing, struct qf_err *err)
{
    struct world *world = ctx;

    (void)slot, (void)err;
    qf_strbuf_putc(&listing->bytes, 'b');
    QF_VEC_PUSH(&listing->names, qf_strbuf_view(&listing->bytes));
    qf_lock_take(world->lock);
    listing->epoch = world->ring->epoch;
    qf_lock_drop(world->lock);
    return QF_OK;
}

/* With the lock taken. */
static bool takes(struct keeper *keeper, const struct rg_place_of_call *at, struct qf_err *err)
{
    if (!keeper->away && rg_keep_takes(&keeper->keep, at->slot, at->epoch))
        return true;
    keeper->refused += !keeper->away;
    (void)away(err);
    return false;
}

static qf_rc stream(void *ctx, const struct rg_place_of_call *at, const struct qf_str *names,
                    size_t count, struct rg_moved *ret, struct qf_err *err)
{
    struct world *world = ctx;
    struct keeper *keeper = at_url(world, at->url);
    bool found = false;

    (void)names;
    qf_lock_take(world->lock);
    for (size_t i = 0; i < at->source_count; i++)
        found |= at_url(world, at->sources[i])->has[at->slot];
    if (takes(keeper, at, err)) {
        bool comes = found && !keeper->full && !keeper->has[at->slot];

        if (keeper->streams < QF_COUNT_OF(keeper->slots))
            keeper->slots[keeper->streams] = at->slot;
        keeper->streams++;
        keeper->has[at->slot] |= comes;
        *ret = (struct rg_moved){ .incarnation = keeper->incarnation,
                                  .blobs = comes,
                                  .bytes = comes ? BLOB_BYTES : 0,
                                  .missing = count && !keeper->has[at->slot] };
    }
    qf_lock_drop(world->lock);
    return err->rc;
}

static qf_rc documents(void *ctx, const struct rg_place_of_call *at, struct qf_err *err)
{
    (void)ctx, (void)err;
    CHECK(at->source_count >= 1);
    return QF_OK;
}

static qf_rc ask_hold(void *ctx, const struct rg_place_of_call *at, const struct qf_str *names,
                      size_t count, struct rg_moved *ret, struct qf_err *err)
{
    struct world *world = ctx;
    struct keeper *keeper = at_url(world, at->url);

    (void)names;
    qf_lock_take(world->lock);
    if (takes(keeper, at, err))
        *ret = (struct rg_moved){ .incarnation = keeper->incarnation,
                                  .missing = count && !keeper->has[at->slot] };
    qf_lock_drop(world->lock);
    return err->rc;
}

static qf_rc clean(void *ctx, const struct rg_place_of_call *at, struct qf_err *err)
{
    struct world *world = ctx;
    struct keeper *keeper = at_url(world, at->url);
    qf_rc rc = QF_OK;

    qf_lock_take(world->lock);
    if (keeper->away || !rg_keep_cleans(&keeper->keep, at->slot, at->epoch))
        rc = away(err);
    else
        keeper->has[at->slot] = false;
    qf_lock_drop(world->lock);
    return rc;
}

/* meta writes it at once; times in it do not go back. */
static void propose(void *ctx, const struct rg_entry *entry)
{
    struct world *world = ctx;
    struct rg_entry written = *entry;

    qf_lock_take(world->lock);
    written.time_ms = QF_MAX(written.time_ms, world->ring->time_ms);
    (void)rg_ring_apply(world->ring, world->ring->applied + 1, &written);
    rg_board_post(world->board, world->ring);
    qf_lock_drop(world->lock);
}

static void confirm(void *ctx, uint64_t term)
{
    struct world *world = ctx;
    uint64_t applied;

    qf_lock_take(world->lock);
    applied = world->mute ? 0 : world->ring->applied;
    qf_lock_drop(world->lock);
    if (applied)
        rg_lead_confirmed(world->lead, term, applied);
}

static uint32_t partitions(void *ctx)
{
    (void)ctx;
    return 0;
}

static void lead(struct world *world)
{
    struct qf_err err = { 0 };

    world->lead = rg_lead_new(&world->options, &err);
    CHECK(world->lead != NULL);
    rg_lead_set(world->lead, ++world->term);
}

static void node(struct world *world, unsigned number)
{
    char name[8], url[16];

    (void)snprintf(name, sizeof(name), "n%u", number);
    (void)snprintf(url, sizeof(url), "http://k/%u", number);
    propose(world, &(struct rg_entry){ .kind = RG_ADD,
                                       .name = qf_str_from(name),
                                       .url = qf_str_from(url),
                                       .time_ms = qf_clock_wall_ms() });
}

/* A ring of three, two copies of each slot's blob. */
static void begin(struct world *world, int64_t grace_ms)
{
    *world = (struct world){ .lock = qf_lock_new(), .ring = rg_ring_new(SLOTS) };
    world->board = rg_board_new();
    world->hands = (struct rg_hands){ world,     look,     tell,  list, stream,
                                      documents, ask_hold, clean, NULL, NULL };
    world->options = (struct rg_lead_options){ .hands = &world->hands,
                                               .board = world->board,
                                               .propose = propose,
                                               .confirm = confirm,
                                               .partitions = partitions,
                                               .ctx = world,
                                               .retry_ms = 20,
                                               .look_ms = 10,
                                               .fail_ms = 20 };
    for (unsigned i = 0; i < KEEPERS; i++) {
        world->keepers[i].incarnation = 100 + i;
        world->keepers[i].keep.slots = SLOTS;
    }
    for (unsigned i = 0; i < 3; i++)
        node(world, i);
    propose(world, &(struct rg_entry){ .kind = RG_FOUND, .copies = 2, .grace_ms = grace_ms });
    for (uint32_t at = 0; at < SLOTS; at++)
        for (unsigned i = 0; i < 2; i++)
            world->keepers[world->ring->slots[at].owners.nodes[i]].has[at] = true;
    lead(world);
}

static void world_done(struct world *world)
{
    world->lead = rg_lead_free(world->lead);
    world->board = rg_board_free(world->board);
    world->ring = rg_ring_free(world->ring);
    world->lock = qf_lock_free(world->lock);
}

/* Wait until @is is true of the world. */
static void await(struct world *world, const char *what, bool (*is)(struct world *world))
{
    int64_t end = qf_clock_mono_ms() + PATIENCE_MS;
    bool yes = false;

    qf_lock_take(world->lock);
    while (!(yes = is(world)) && qf_clock_mono_ms() < end)
        (void)qf_lock_wait(world->lock, 5);
    qf_lock_drop(world->lock);
    CHECK_MSG(yes, "%s", what);
}

static bool all_told(struct world *world)
{
    for (unsigned i = 0; i < 3; i++)
        if (!world->keepers[i].keep.told || world->ring->nodes[i].incarnation != 100 + i)
            return false;
    return true;
}

static bool at_rest(struct world *world)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        if (rg_change_runs(&world->ring->changes[i]))
            return false;
    return true;
}

static bool cleaned_up(struct world *world)
{
    for (uint32_t at = 0; at < SLOTS; at++)
        if (world->ring->slots[at].stale)
            return false;
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        if (world->ring->changes[i].kind != RG_CHANGE_NONE)
            return false;
    return true;
}

static bool third_is_down(struct world *world)
{
    return rg_node_state(world->ring, 2) == RG_NODE_DOWN;
}

static bool third_is_up(struct world *world)
{
    return rg_node_state(world->ring, 2) == RG_NODE_NORMAL;
}

/* For some ticks of the leader: the new node is up, and knows the epoch of the slots that move. */
static bool begins_to_move(struct world *world)
{
    for (uint32_t at = 0; at < SLOTS; at++)
        if (world->ring->slots[at].change &&
            world->keepers[3].keep.epochs[at] >= world->ring->slots[at].epoch)
            return true;
    return false;
}

static bool moves(struct world *world)
{
    return world->keepers[3].streams > 1;
}

/* Every owner of every slot has its blob. */
static void check_owners(struct world *world)
{
    qf_lock_take(world->lock);
    for (uint32_t at = 0; at < SLOTS; at++)
        for (unsigned i = 0; i < world->ring->slots[at].owners.count; i++)
            CHECK(world->keepers[world->ring->slots[at].owners.nodes[i]].has[at]);
    qf_lock_drop(world->lock);
}

TEST(nodes_are_looked_at_and_told_the_epochs)
{
    WORLD world;

    begin(&world, HOUR_MS);
    await(&world, "nodes to be told", all_told);
    CHECK_EQ(atomic_load(&rg_lead_figures(world.lead)->open), 0);
}

/* Later slots are read more, at whichever node. */
static qf_rc heat(void *ctx, const char *url, uint64_t ret_heat[RG_SLOTS], struct qf_err *err)
{
    (void)ctx, (void)err;
    for (uint32_t at = 0; at < SLOTS; at++)
        ret_heat[at] = at % 2 == (uint32_t)(url[strlen(url) - 1] - '0') % 2 ? 1 + at : 0;
    return QF_OK;
}

TEST(slots_that_are_read_most_are_streamed_first)
{
    WORLD world;

    begin(&world, HOUR_MS);
    world.lead = rg_lead_free(world.lead);
    world.hands.heat = heat;
    world.options.streams = world.options.node_streams = 1;
    lead(&world);
    await(&world, "nodes to be told", all_told);
    node(&world, 3);
    await(&world, "the migration to end", at_rest);
    check_owners(&world);
    CHECK(world.keepers[3].streams > 2);
    for (unsigned i = 1; i < QF_MIN(world.keepers[3].streams, QF_COUNT_OF(world.keepers[3].slots));
         i++)
        CHECK(world.keepers[3].slots[i] <= world.keepers[3].slots[i - 1]); /* again, if it failed */
}

TEST(nothing_is_streamed_in_an_hour_that_is_off)
{
    WORLD world;

    begin(&world, HOUR_MS);
    world.lead = rg_lead_free(world.lead);
    for (size_t hour = 0; hour < RG_HOURS; hour++)
        world.options.hours.of[hour] = (struct rg_hour){ .said = true, .off = true };
    lead(&world);
    await(&world, "nodes to be told", all_told);
    node(&world, 3);
    await(&world, "slots to move", begins_to_move);
    world.lead = rg_lead_free(world.lead);
    CHECK_EQ(world.keepers[3].streams, 0);
    memset(&world.options.hours, 0, sizeof(world.options.hours));
    lead(&world);
    await(&world, "the migration to end", at_rest);
    check_owners(&world);
}

TEST(a_node_that_was_added_gets_what_it_is_to_keep)
{
    WORLD world;
    const struct rg_change *change;

    begin(&world, HOUR_MS);
    node(&world, 3);
    await(&world, "the migration to end", at_rest);
    check_owners(&world);
    CHECK_EQ(rg_node_state(world.ring, 3), RG_NODE_NORMAL);
    change = rg_ring_change(world.ring, 5);
    CHECK(change != NULL);
    CHECK_EQ(change->state, RG_COMPLETED);
    CHECK(change->blobs > 0);
    CHECK_EQ(change->bytes, change->blobs * BLOB_BYTES);
    CHECK_EQ(atomic_load(&rg_lead_figures(world.lead)->blobs), change->blobs);
}

TEST(a_node_that_was_removed_is_left_when_others_have_everything)
{
    WORLD world;

    begin(&world, HOUR_MS);
    propose(&world, &(struct rg_entry){ .kind = RG_REMOVE, .node = 1 });
    await(&world, "the migration to end", at_rest);
    check_owners(&world);
    CHECK_EQ(world.ring->nodes[1].state, RG_NODE_REMOVED);
}

TEST(what_former_owners_hold_goes_after_the_grace_period_and_nothing_else)
{
    WORLD world;
    unsigned blobs = 0;

    begin(&world, 1);
    node(&world, 3);
    await(&world, "everything to be cleaned up", cleaned_up);
    check_owners(&world);
    for (unsigned i = 0; i < KEEPERS; i++)
        for (uint32_t at = 0; at < SLOTS; at++)
            blobs += world.keepers[i].has[at];
    CHECK_EQ(blobs, 2 * SLOTS);
    CHECK(atomic_load(&rg_lead_figures(world.lead)->cleaned) > 0);
}

/* Whoever led before had a clock that is ahead by a day: what is waited for does not take a day. */
TEST(grace_periods_end_though_the_rings_time_is_ahead_of_all_clocks)
{
    WORLD world;

    begin(&world, 1);
    propose(&world, &(struct rg_entry){ .kind = RG_ADD,
                                        .name = QF_STR("n3"),
                                        .url = QF_STR("http://k/3"),
                                        .time_ms = qf_clock_wall_ms() + 24 * HOUR_MS });
    await(&world, "everything to be cleaned up", cleaned_up);
    check_owners(&world);
}

TEST(a_node_that_does_not_answer_is_down_until_it_does)
{
    WORLD world;

    begin(&world, HOUR_MS);
    await(&world, "nodes to be told", all_told);
    qf_lock_take(world.lock);
    world.keepers[2].away = true;
    qf_lock_drop(world.lock);
    await(&world, "it to be down", third_is_down);
    qf_lock_take(world.lock);
    world.keepers[2].away = false;
    world.keepers[2].incarnation = 7; /* with another disk */
    world.keepers[2].keep.told = false;
    memset(world.keepers[2].has, 0, sizeof(world.keepers[2].has));
    qf_lock_drop(world.lock);
    await(&world, "it to be up", third_is_up);
    CHECK_EQ(world.ring->nodes[2].incarnation, 7);
}

TEST(a_newcomer_that_takes_nothing_is_given_up)
{
    WORLD world;

    begin(&world, HOUR_MS);
    world.keepers[3].full = true;
    node(&world, 3);
    await(&world, "the migration to end", at_rest);
    CHECK_EQ(rg_ring_change(world.ring, 5)->state, RG_ROLLED_BACK);
    CHECK(rg_ring_change(world.ring, 5)->failures >= RG_FAILURES_MAX);
    check_owners(&world);
}

static bool has_failed(struct world *world)
{
    return rg_ring_change(world->ring, 5)->failures > 0;
}

/* All its streams fail at once when a newcomer is full, or dies. */
TEST(streams_that_fail_together_are_one_failure)
{
    WORLD world;

    begin(&world, HOUR_MS);
    world.lead = rg_lead_free(world.lead);
    world.options.fail_ms = HOUR_MS;
    lead(&world);
    world.keepers[3].full = true;
    node(&world, 3);
    await(&world, "a failure", has_failed);
    qf_lock_take(world.lock);
    (void)qf_lock_wait(world.lock, 300);
    CHECK_EQ(rg_ring_change(world.ring, 5)->failures, 1);
    world.keepers[3].full = false;
    qf_lock_drop(world.lock);
    await(&world, "the migration to end", at_rest);
    CHECK_EQ(rg_ring_change(world.ring, 5)->state, RG_COMPLETED);
    check_owners(&world);
}

TEST(whoever_leads_next_goes_on_where_the_ring_says)
{
    WORLD world;
    unsigned before;

    begin(&world, HOUR_MS);
    world.options.hours.rate = 10 * BLOB_BYTES; /* ten blobs a second: it is not over at once */
    world.options.node_streams = 1;
    world.lead = rg_lead_free(world.lead);
    lead(&world);
    node(&world, 3);
    await(&world, "it to be under way", moves);
    world.lead = rg_lead_free(world.lead);
    CHECK(!at_rest(&world));
    before = world.keepers[3].streams;
    world.options.hours.rate = 0;
    lead(&world);
    await(&world, "the migration to end", at_rest);
    check_owners(&world);
    CHECK(world.keepers[3].streams > before);
}

TEST(who_does_not_lead_does_nothing)
{
    WORLD world;

    begin(&world, HOUR_MS);
    await(&world, "nodes to be told", all_told);
    rg_lead_set(world.lead, 0);
    world.lead = rg_lead_free(world.lead);
    world.lead = rg_lead_new(&world.options, NULL);
    node(&world, 3);
    qf_lock_take(world.lock);
    (void)qf_lock_wait(world.lock, 300);
    CHECK_EQ(world.keepers[3].streams, 0);
    CHECK(!world.keepers[3].keep.told);
    qf_lock_drop(world.lock);
}

/* Epochs that nobody confirmed may be old ones. */
TEST(nobody_is_told_what_meta_did_not_confirm)
{
    WORLD world;

    begin(&world, HOUR_MS);
    world.lead = rg_lead_free(world.lead);
    for (unsigned i = 0; i < 3; i++)
        world.keepers[i].keep.told = false;
    world.mute = true;
    lead(&world);
    qf_lock_take(world.lock);
    (void)qf_lock_wait(world.lock, 300);
    for (unsigned i = 0; i < 3; i++)
        CHECK(!world.keepers[i].keep.told);
    world.mute = false;
    qf_lock_drop(world.lock);
    await(&world, "nodes to be told", all_told);
}
