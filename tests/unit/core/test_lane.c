/* test_lane.c - background jobs on the API side: where they go, what ends them, and a long random life. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/prng.h"
#include "tests/lib/test.h"
#include "workcoord/lane.h"
#include "workcoord/lane_worker.h"

/* Steps the lane; what it did is in text: "assign j1#1 w1; ended j1#1 ok". */
struct fixture {
    struct wc_lane *lane;
    char line[WC_TRACE_MAX + 50];
};

static void keep_line(void *ctx, const char *line, size_t len)
{
    struct fixture *f = ctx;
    const char *arrow;

    memcpy(f->line, line, len);
    f->line[len] = '\0';
    arrow = strstr(f->line, " -> ");
    if (arrow)
        memmove(f->line, arrow + 4, strlen(arrow + 4) + 1);
    else if (!strstr(f->line, "(stale)"))
        f->line[0] = '\0';
}

static struct fixture begin(struct wc_lane_limits limits)
{
    return (struct fixture){ .lane = wc_lane_new(&limits) };
}

static const char *tell(struct fixture *f, struct wc_lane_event event)
{
    struct wc_lane_effects effects;

    wc_lane_trace(f->lane, keep_line, f);
    CHECK_EQ(wc_lane_step(f->lane, &event, &effects), QF_OK);
    return f->line;
}

static const char *status(struct fixture *f, uint64_t worker, uint32_t slots, uint32_t load)
{
    return tell(f, (struct wc_lane_event){ .type = WC_LANE_EV_STATUS,
                                           .worker = { worker },
                                           .session = { worker * 10 },
                                           .status = { .slots = slots, .load = load } });
}

static const char *submit(struct fixture *f, uint64_t job)
{
    return tell(f, (struct wc_lane_event){ .type = WC_LANE_EV_SUBMIT, .job = { job } });
}

static const char *say(struct fixture *f, enum wc_lane_event_type type, uint64_t worker,
                       uint64_t job, uint32_t attempt, qf_time_ms now)
{
    return tell(f, (struct wc_lane_event){ .type = type,
                                           .now = now,
                                           .worker = { worker },
                                           .session = { worker * 10 },
                                           .job = { job },
                                           .attempt = attempt });
}

static const char *failed(struct fixture *f, uint64_t worker, uint64_t job, uint32_t attempt,
                          bool retryable, qf_time_ms now)
{
    return tell(f, (struct wc_lane_event){ .type = WC_LANE_EV_FAILED,
                                           .now = now,
                                           .worker = { worker },
                                           .session = { worker * 10 },
                                           .job = { job },
                                           .attempt = attempt,
                                           .failure = { QF_EIO, retryable } });
}

static const char *lost(struct fixture *f, uint64_t worker, bool died)
{
    return tell(
        f, (struct wc_lane_event){ .type = WC_LANE_EV_LOST, .worker = { worker }, .died = died });
}

TEST(a_worker_without_a_lane_is_never_given_a_job)
{
    struct fixture f = begin((struct wc_lane_limits){ 0 });

    CHECK_STR(status(&f, 1, 0, 0), "");
    CHECK_STR(submit(&f, 1), "");
    CHECK_EQ(wc_lane_stats(f.lane)->workers, 0);
    CHECK_EQ(wc_lane_stats(f.lane)->pending, 1);
    CHECK_STR(status(&f, 2, 1, 0), "assign j1#1 w2");
    CHECK_STR(say(&f, WC_LANE_EV_DONE, 2, 1, 1, 0), "ended j1#1 ok");
    CHECK_EQ(wc_lane_stats(f.lane)->sent, 0);
    wc_lane_free(f.lane);
}

TEST(jobs_go_to_the_emptiest_lane_then_to_who_has_least_to_do)
{
    struct fixture f = begin((struct wc_lane_limits){ 0 });

    status(&f, 1, 2, 9);
    status(&f, 2, 1, 3);
    CHECK_STR(submit(&f, 1), "assign j1#1 w2"); /* both empty: less to do */
    CHECK_STR(submit(&f, 2), "assign j2#1 w1");
    CHECK_STR(submit(&f, 3), "assign j3#1 w1");
    CHECK_STR(submit(&f, 4), ""); /* no slot */
    CHECK_STR(submit(&f, 5), "");
    CHECK_STR(say(&f, WC_LANE_EV_DONE, 1, 3, 1, 0),
              "ended j3#1 ok; assign j4#1 w1"); /* the older */
    wc_lane_free(f.lane);
}

static const char *keeper(struct fixture *f, uint64_t worker, uint32_t slots, bool draining)
{
    return tell(f, (struct wc_lane_event){
                       .type = WC_LANE_EV_STATUS,
                       .worker = { worker },
                       .session = { worker * 10 },
                       .status = { .slots = slots, .key = worker + 100, .draining = draining } });
}

static const char *submit_kept(struct fixture *f, uint64_t job, uint64_t a, uint64_t b)
{
    return tell(f, (struct wc_lane_event){ .type = WC_LANE_EV_SUBMIT,
                                           .job = { job },
                                           .owners = { 2, { a + 100, b + 100 } } });
}

TEST(a_job_goes_to_who_keeps_its_inputs_and_waits_for_it)
{
    struct fixture f = begin((struct wc_lane_limits){ .rest_ms = 100 });

    (void)keeper(&f, 1, 2, false);
    (void)keeper(&f, 2, 1, false);
    (void)keeper(&f, 3, 1, false);
    CHECK_STR(submit_kept(&f, 1, 2, 3), "assign j1#1 w2"); /* though w1 has more room */
    CHECK_STR(submit_kept(&f, 2, 2, 3), "assign j2#1 w3");
    CHECK_STR(submit_kept(&f, 3, 2, 3), ""); /* w1 is idle */
    CHECK_STR(submit_kept(&f, 4, 1, 9), "assign j4#1 w1");
    CHECK_STR(say(&f, WC_LANE_EV_DONE, 3, 2, 1, 0), "ended j2#1 ok; assign j3#1 w3");
    /* The one that failed is left alone for a while, the other one is waited for. */
    CHECK_STR(failed(&f, 2, 1, 1, true, 1), "");
    CHECK_STR(say(&f, WC_LANE_EV_DONE, 3, 3, 1, 2), "ended j3#1 ok; assign j1#2 w3");
    wc_lane_free(f.lane);
}

TEST(a_job_whose_keepers_are_gone_drain_or_failed_goes_anywhere)
{
    struct fixture f = begin((struct wc_lane_limits){ .rest_ms = 100 });

    (void)keeper(&f, 1, 4, false);
    CHECK_STR(submit_kept(&f, 1, 2, 3), "assign j1#1 w1"); /* not known here */
    (void)keeper(&f, 2, 1, false);
    (void)keeper(&f, 3, 0, false); /* no lane */
    CHECK_STR(submit_kept(&f, 2, 2, 3), "assign j2#1 w2");
    CHECK_STR(submit_kept(&f, 3, 2, 3), "");
    CHECK_STR(keeper(&f, 2, 1, true), "assign j3#1 w1");
    (void)keeper(&f, 2, 1, false);
    CHECK_STR(submit_kept(&f, 4, 2, 3), "");
    CHECK_STR(failed(&f, 2, 2, 1, true, 1), "assign j2#2 w1; assign j4#1 w2");
    CHECK_STR(lost(&f, 2, true), "assign j4#2 w1");
    wc_lane_free(f.lane);
}

TEST(no_more_jobs_are_out_than_the_limit_says)
{
    struct fixture f = begin((struct wc_lane_limits){ .sent_max = 1 });

    status(&f, 1, 4, 0);
    CHECK_STR(submit(&f, 1), "assign j1#1 w1");
    CHECK_STR(submit(&f, 2), "");
    CHECK_STR(say(&f, WC_LANE_EV_DONE, 1, 1, 1, 0), "ended j1#1 ok; assign j2#1 w1");
    wc_lane_free(f.lane);
}

TEST(who_rejects_rests_and_what_it_gave_back_goes_elsewhere)
{
    struct fixture f = begin((struct wc_lane_limits){ .rest_ms = 100 });

    status(&f, 1, 1, 0);
    CHECK_STR(submit(&f, 1), "assign j1#1 w1");
    CHECK_STR(say(&f, WC_LANE_EV_REJECTED, 1, 1, 1, 5), "");
    CHECK_EQ(wc_lane_deadline(f.lane), 105);
    CHECK_STR(status(&f, 2, 1, 0), "assign j1#2 w2");
    CHECK_STR(submit(&f, 2), ""); /* w1 rests */
    CHECK_STR(tell(&f, (struct wc_lane_event){ .type = WC_LANE_EV_TICK, .now = 105 }),
              "assign j2#1 w1");
    wc_lane_free(f.lane);
}

TEST(rejections_cost_no_attempt_and_failures_do)
{
    struct fixture f = begin((struct wc_lane_limits){ .rest_ms = 1, .attempts_max = 2 });

    status(&f, 1, 1, 0);
    submit(&f, 1);
    for (uint32_t i = 1; i <= 5; i++) {
        say(&f, WC_LANE_EV_REJECTED, 1, 1, i, 10 * i);
        CHECK(strstr(tell(&f, (struct wc_lane_event){ .type = WC_LANE_EV_TICK, .now = 10 * i + 1 }),
                     "assign j1#"));
    }
    CHECK_STR(failed(&f, 1, 1, 6, true, 100), "");
    CHECK_STR(tell(&f, (struct wc_lane_event){ .type = WC_LANE_EV_TICK, .now = 101 }),
              "assign j1#7 w1");
    CHECK_STR(failed(&f, 1, 1, 7, true, 102), "ended j1#7 io");
    submit(&f, 2);
    CHECK_STR(failed(&f, 1, 2, 1, false, 103), "ended j2#1 io");
    wc_lane_free(f.lane);
}

TEST(a_job_of_a_worker_that_is_lost_goes_to_another)
{
    struct fixture f = begin((struct wc_lane_limits){ 0 });

    status(&f, 1, 1, 0);
    submit(&f, 1);
    status(&f, 2, 1, 0);
    CHECK_STR(lost(&f, 1, false), "assign j1#2 w2");
    CHECK_STR(say(&f, WC_LANE_EV_DONE, 1, 1, 1, 0), "[0] done w1 j1#1 (stale)");
    CHECK_STR(say(&f, WC_LANE_EV_DONE, 2, 1, 2, 0), "ended j1#2 ok");
    wc_lane_free(f.lane);
}

TEST(a_job_that_two_workers_died_of_is_not_given_to_a_third)
{
    struct fixture f = begin((struct wc_lane_limits){ 0 });

    status(&f, 1, 1, 0);
    submit(&f, 1);
    status(&f, 2, 1, 0);
    status(&f, 3, 1, 0);
    CHECK_STR(lost(&f, 1, true), "assign j1#2 w2");
    CHECK_STR(lost(&f, 2, true), "ended j1#2 quarantined");
    wc_lane_free(f.lane);
}

TEST(a_stream_that_came_again_is_another_session)
{
    struct fixture f = begin((struct wc_lane_limits){ 0 });

    status(&f, 1, 1, 0);
    submit(&f, 1);
    CHECK_STR(tell(&f, (struct wc_lane_event){ .type = WC_LANE_EV_STATUS,
                                               .worker = { 1 },
                                               .session = { 77 },
                                               .status = { .slots = 1 } }),
              "assign j1#2 w1");
    CHECK_STR(say(&f, WC_LANE_EV_DONE, 1, 1, 2, 0), "[0] done w1 j1#2 (stale)"); /* session 10 */
    wc_lane_free(f.lane);
}

TEST(a_job_that_takes_for_ever_is_tried_elsewhere)
{
    struct fixture f =
        begin((struct wc_lane_limits){ .job_ms = 100, .attempts_max = 2, .rest_ms = 10 });

    status(&f, 1, 1, 0);
    submit(&f, 1);
    status(&f, 2, 1, 0);
    CHECK_EQ(wc_lane_deadline(f.lane), 100);
    CHECK_STR(tell(&f, (struct wc_lane_event){ .type = WC_LANE_EV_TICK, .now = 100 }),
              "cancel j1#1 w1; assign j1#2 w2");
    CHECK_STR(tell(&f, (struct wc_lane_event){ .type = WC_LANE_EV_TICK, .now = 200 }),
              "cancel j1#2 w2; ended j1#2 timeout");
    CHECK_EQ(wc_lane_deadline(f.lane), QF_TIME_NEVER);
    wc_lane_free(f.lane);
}

TEST(a_draining_worker_gets_no_job)
{
    struct fixture f = begin((struct wc_lane_limits){ 0 });

    status(&f, 1, 2, 0);
    submit(&f, 1);
    tell(&f, (struct wc_lane_event){ .type = WC_LANE_EV_STATUS,
                                     .worker = { 1 },
                                     .session = { 10 },
                                     .status = { .slots = 2, .draining = true } });
    CHECK_STR(submit(&f, 2), "");
    CHECK_EQ(wc_lane_stats(f.lane)->slots, 0);
    CHECK_EQ(wc_lane_stats(f.lane)->sent, 1); /* what it has it may finish, or give back */
    wc_lane_free(f.lane);
}

TEST(a_canceled_job_ends_at_once_wherever_it_is)
{
    struct fixture f = begin((struct wc_lane_limits){ .jobs_max = 2 });
    struct wc_lane_event event = { .type = WC_LANE_EV_SUBMIT, .job = { 1 } };
    struct wc_lane_effects effects;

    status(&f, 1, 1, 0);
    submit(&f, 1);
    submit(&f, 2);
    CHECK_EQ(wc_lane_step(f.lane, &event, &effects), QF_EEXIST);
    event.job.v = 3;
    CHECK_EQ(wc_lane_step(f.lane, &event, &effects), QF_ELIMIT);
    CHECK_STR(say(&f, WC_LANE_EV_CANCEL, 0, 2, 0, 0), "ended j2#0 canceled");
    CHECK_STR(say(&f, WC_LANE_EV_CANCEL, 0, 1, 0, 0), "cancel j1#1 w1; ended j1#1 canceled");
    CHECK_STR(say(&f, WC_LANE_EV_CANCEL, 0, 1, 0, 0), "[0] cancel j1 (stale)");
    wc_lane_free(f.lane);
}

/* --- the worker's slots --- */

static const struct wc_lane_worker_effect *work(struct wc_lane_worker *lane,
                                                struct wc_lane_worker_event event, size_t want)
{
    struct wc_lane_worker_effects effects;

    wc_lane_worker_step(lane, &event, &effects);
    CHECK_EQ(effects.count, want);
    return effects.items;
}

static struct wc_lane_worker_event given(enum wc_lane_worker_event_type type, uint64_t session,
                                         uint64_t job)
{
    return (struct wc_lane_worker_event){
        .type = type, .session = { session }, .job = { job }, .attempt = 1
    };
}

TEST(a_slot_runs_one_job_and_is_free_when_its_thread_is_back)
{
    struct wc_lane_worker *lane = wc_lane_worker_new(1);
    const struct wc_lane_worker_effect *effect =
        work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 1, 7), 1);

    CHECK_EQ(effect->type, WC_LANE_WORKER_DO_RUN);
    (void)work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 1, 7), 0); /* the same again */
    effect = work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 2, 7), 1);
    CHECK_EQ(effect->type, WC_LANE_WORKER_DO_REJECT); /* of another API: no slot */
    CHECK_EQ(effect->reject, WC_REJECT_FULL);
    effect = work(lane, given(WC_LANE_WORKER_EV_CANCEL, 1, 7), 1);
    CHECK_EQ(effect->type, WC_LANE_WORKER_DO_STOP);
    CHECK_EQ(work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 1, 8), 1)->type, WC_LANE_WORKER_DO_REJECT);
    (void)work(lane, (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_DONE }, 0);
    CHECK_EQ(work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 1, 8), 1)->type, WC_LANE_WORKER_DO_RUN);
    effect = work(lane,
                  (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_FAILED,
                                                 .failure = { QF_ENOSPC, true } },
                  1);
    CHECK_EQ(effect->type, WC_LANE_WORKER_DO_FAILED);
    CHECK_EQ(effect->failure.rc, QF_ENOSPC);
    CHECK_EQ(effect->job.v, 8);
    CHECK_EQ(wc_lane_worker_stats(lane)->running, 0);
    wc_lane_worker_free(lane);
}

TEST(a_worker_that_drains_gives_back_what_it_began)
{
    struct wc_lane_worker *lane = wc_lane_worker_new(2);
    const struct wc_lane_worker_effect *effects;

    (void)work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 1, 7), 1);
    effects = work(lane, (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_DRAIN }, 2);
    CHECK_EQ(effects[0].type, WC_LANE_WORKER_DO_STOP);
    CHECK_EQ(effects[1].type, WC_LANE_WORKER_DO_REJECT);
    CHECK_EQ(effects[1].reject, WC_REJECT_DRAINING);
    CHECK_EQ(effects[1].job.v, 7);
    CHECK_EQ(wc_lane_worker_stats(lane)->slots, 0);
    CHECK_EQ(wc_lane_worker_stats(lane)->stopping, 1);
    effects = work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 1, 8), 1);
    CHECK_EQ(effects->reject, WC_REJECT_DRAINING);
    (void)work(lane, (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_DONE }, 0);
    CHECK_EQ(wc_lane_worker_stats(lane)->stopping, 0);
    wc_lane_worker_free(lane);
}

TEST(a_lost_stream_stops_its_jobs_and_no_others)
{
    struct wc_lane_worker *lane = wc_lane_worker_new(2);
    const struct wc_lane_worker_effect *effect;

    (void)work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 1, 7), 1);
    (void)work(lane, given(WC_LANE_WORKER_EV_ASSIGN, 2, 7), 1);
    effect = work(lane, given(WC_LANE_WORKER_EV_LOST, 1, 0), 1);
    CHECK_EQ(effect->type, WC_LANE_WORKER_DO_STOP);
    CHECK_EQ(effect->slot, 0);
    CHECK_EQ(
        work(lane, (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_DONE, .slot = 1 }, 1)
            ->session.v,
        2);
    wc_lane_worker_free(lane);
}

/* --- a long random life --- */

enum { LIFE_WORKERS = 5, LIFE_JOBS = 40, LIFE_STEPS = 4000 };

struct life {
    struct wc_lane *lane;
    struct qf_prng prng;
    qf_time_ms now;
    uint64_t sessions, worker_session[LIFE_WORKERS + 1], last_job;
    uint32_t ended, submitted;
    struct {
        uint64_t job, worker;
        uint32_t attempt;
    } out[LIFE_JOBS * 4]; /* what workers were sent and did not answer */
    size_t out_count;
};

static void live(struct life *life, struct wc_lane_event event)
{
    struct wc_lane_effects effects;

    event.now = life->now;
    CHECK_EQ(wc_lane_step(life->lane, &event, &effects), QF_OK);
    for (size_t i = 0; i < effects.count; i++) {
        const struct wc_lane_effect *effect = &effects.items[i];

        life->ended += effect->type == WC_LANE_DO_ENDED;
        if (effect->type != WC_LANE_DO_ASSIGN)
            continue;
        CHECK_EQ(effect->session.v, life->worker_session[effect->worker.v]);
        CHECK(life->out_count < QF_COUNT_OF(life->out));
        life->out[life->out_count].job = effect->job.v;
        life->out[life->out_count].worker = effect->worker.v;
        life->out[life->out_count++].attempt = effect->attempt;
    }
}

static void answer(struct life *life, uint64_t dice)
{
    static const enum wc_lane_event_type types[] = { WC_LANE_EV_DONE, WC_LANE_EV_DONE,
                                                     WC_LANE_EV_FAILED, WC_LANE_EV_REJECTED };
    size_t i;
    struct wc_lane_event event = { .type = types[dice / 1000 % 4] };

    if (!life->out_count)
        return;
    i = dice % life->out_count;
    event.worker.v = life->out[i].worker;
    event.session.v = life->worker_session[event.worker.v];
    event.job.v = life->out[i].job;
    event.attempt = life->out[i].attempt;
    if (event.type == WC_LANE_EV_FAILED) {
        event.failure.rc = QF_EIO;
        event.failure.retryable = dice / 4000 % 2;
    }
    life->out[i] = life->out[--life->out_count];
    live(life, event);
}

static void lose_one(struct life *life, uint64_t worker, bool died)
{
    size_t kept = 0;

    for (size_t i = 0; i < life->out_count; i++)
        if (life->out[i].worker != worker)
            life->out[kept++] = life->out[i];
    life->out_count = kept;
    live(life,
         (struct wc_lane_event){ .type = WC_LANE_EV_LOST, .worker = { worker }, .died = died });
    life->worker_session[worker] = 0;
}

static void appear(struct life *life, uint64_t worker, uint64_t dice)
{
    if (!life->worker_session[worker])
        life->worker_session[worker] = ++life->sessions;
    live(life, (struct wc_lane_event){ .type = WC_LANE_EV_STATUS,
                                       .worker = { worker },
                                       .session = { life->worker_session[worker] },
                                       .status = { .slots = 1 + (uint32_t)worker % 3,
                                                   .load = (uint32_t)(dice % 7),
                                                   .draining = dice % 11 == 0 } });
}

static void live_one_step(struct life *life)
{
    uint64_t dice = qf_prng_next(&life->prng), what = dice % 20, rest = dice / 20;
    uint64_t worker = 1 + rest % LIFE_WORKERS;

    life->now += (qf_time_ms)(rest % 50);
    if (what < 5 && life->submitted - life->ended < LIFE_JOBS) {
        life->submitted++;
        live(life,
             (struct wc_lane_event){ .type = WC_LANE_EV_SUBMIT, .job = { ++life->last_job } });
    } else if (what < 12) {
        answer(life, rest);
    } else if (what < 16) {
        appear(life, worker, rest / 5);
    } else if (what == 16) {
        lose_one(life, worker, rest % 2);
    } else if (what == 17 && life->last_job) {
        live(life, (struct wc_lane_event){ .type = WC_LANE_EV_CANCEL,
                                           .job = { 1 + rest % life->last_job } });
    } else {
        live(life, (struct wc_lane_event){ .type = WC_LANE_EV_TICK });
    }
}

/* Whatever happens: each job ends once, and when workers are there at last none is left. */
static void live_through(uint64_t seed)
{
    struct life life = { .prng.state = seed };
    const struct wc_lane_stats *stats;

    life.lane = wc_lane_new(&(struct wc_lane_limits){ .jobs_max = LIFE_JOBS, .rest_ms = 100 });
    stats = wc_lane_stats(life.lane);
    for (int i = 0; i < LIFE_STEPS; i++) {
        live_one_step(&life);
        CHECK_EQ(life.submitted - life.ended, stats->pending + stats->sent);
    }
    for (uint64_t w = 1; w <= LIFE_WORKERS; w++)
        lose_one(&life, w, false);
    for (int i = 0; i < 10000 && life.ended < life.submitted; i++) {
        for (uint64_t w = 1; w <= LIFE_WORKERS; w++)
            appear(&life, w, 1);
        answer(&life, 0);
        life.now += 100;
        live(&life, (struct wc_lane_event){ .type = WC_LANE_EV_TICK });
    }
    CHECK_MSG(life.ended == life.submitted, "seed %llu: %u of %u ended", (unsigned long long)seed,
              life.ended, life.submitted);
    wc_lane_free(life.lane);
}

TEST(through_any_life_each_job_ends_once)
{
    for (uint64_t seed = 1; seed <= 50; seed++)
        live_through(seed);
}
