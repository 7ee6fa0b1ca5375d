/* test_jobs.c - background jobs in the coordinator: what is sent, what becomes of it, and who waits for it. */
#include "queryapi/dispatch/jobs.h"

#include <string.h>

#include "queryapi/dispatch/coordinator_int.h"
#include "tests/lib/test.h"
#include "tests/unit/queryapi/dispatch/desk.h"

#define DESK() QF_CLEANUP(desk_freep) struct desk *desk = desk_new(4, 2, 4)

static const struct qf_str inputs[] = { QF_STR_INIT("tenant=t/a"), QF_STR_INIT("tenant=t/b") };

static struct qa_job job(void)
{
    return (struct qa_job){ .job = { .tenant = QF_STR("t"), .inputs = inputs, .input_count = 2 } };
}

/* A worker that takes @slots jobs at once. */
static void lane_up(struct desk *desk, uint64_t session, uint32_t slots)
{
    struct pb_worker_message status = {
        .kind = PB_WORKER_STATUS,
        .u.status = { .protocol_version = PB_PROTOCOL_VERSION,
                      .accepting_work = true,
                      .slots = 1,
                      .artifact_base_url = QF_STR("http://w"),
                      .background_slots = slots },
    };
    char name[20];

    desk_worker_up(desk, session);
    (void)snprintf(name, sizeof(name), "w%u", (unsigned)session);
    status.u.status.worker_id = qf_str_from(name);
    desk_say(desk, session, &status);
    (void)desk_log(desk);
}

static void begin(struct desk *desk, struct job_batch *batch)
{
    co_jobs(desk->coord, batch);
}

static bool is_back(struct desk *desk, const struct job_batch *batch)
{
    return qf_mailbox_try_receive(desk->coord->lane.back) == batch;
}

TEST(jobs_go_to_a_worker_with_a_lane_and_come_back_when_all_are_over)
{
    DESK();
    struct qa_job jobs[] = { job(), job() };
    struct job_batch batch = { .jobs = jobs, .count = 2 };
    struct pb_worker_message done = { .kind = PB_WORKER_JOB_DONE,
                                      .u.job_done = { .job_id = 1, .attempt = 1, .samples = 77 } };

    lane_up(desk, 1, 0);
    begin(desk, &batch);
    CHECK_STR(desk_log(desk), ""); /* it knows of no lane */
    lane_up(desk, 2, 1);
    CHECK_EQ(qa_coord_lane(desk->coord).sent, 1);
    CHECK_EQ(qa_coord_lane(desk->coord).pending, 1);
    desk_say(desk, 2, &done);
    CHECK_STR(desk_log(desk), "s2 job j2#1");
    CHECK(!is_back(desk, &batch));
    CHECK_EQ(jobs[0].rc, QF_OK);
    CHECK_EQ(jobs[0].done.samples, 77);
    done.u.job_done.job_id = 2;
    desk_say(desk, 2, &done);
    CHECK(is_back(desk, &batch));
    CHECK_EQ(qa_coord_lane(desk->coord).sent, 0);
}

TEST(what_a_worker_says_of_a_damaged_input_comes_back)
{
    DESK();
    struct qa_job jobs[] = { job() };
    struct job_batch batch = { .jobs = jobs, .count = 1 };
    struct pb_worker_message failed = { .kind = PB_WORKER_JOB_FAILED,
                                        .u.job_failed = { .job_id = 1,
                                                          .attempt = 1,
                                                          .code = QF_STR("corrupt"),
                                                          .reason = QF_STR("b is bad"),
                                                          .input = 2 } };

    lane_up(desk, 1, 1);
    begin(desk, &batch);
    CHECK_STR(desk_log(desk), "s1 job j1#1");
    desk_say(desk, 1, &failed);
    CHECK(is_back(desk, &batch));
    CHECK_EQ(jobs[0].rc, QF_ECORRUPT);
    CHECK_STR(jobs[0].err.msg, "b is bad");
    CHECK_EQ(jobs[0].err.subject, 2);
}

TEST(a_lost_worker_costs_its_job_another_begin_and_two_deaths_end_it)
{
    DESK();
    struct qa_job jobs[] = { job() };
    struct job_batch batch = { .jobs = jobs, .count = 1 };

    lane_up(desk, 1, 1);
    lane_up(desk, 2, 1);
    begin(desk, &batch);
    CHECK_STR(desk_log(desk), "s1 job j1#1");
    co_closed(desk->coord, 1, "gone", true);
    CHECK(strstr(desk_log(desk), "s2 job j1#2"));
    co_closed(desk->coord, 2, "gone", true);
    CHECK(is_back(desk, &batch));
    CHECK_EQ(jobs[0].rc, QF_EQUARANTINED);
    CHECK(strstr(jobs[0].err.msg, "tenant=t/a"));
}

TEST(canceled_jobs_come_back_at_once_whether_sent_or_not)
{
    DESK();
    struct qa_job jobs[3];
    struct job_batch batch = { .jobs = jobs, .count = 3 }, none = { .jobs = jobs, .count = 3 };

    for (size_t i = 0; i < 3; i++)
        jobs[i] = job();
    lane_up(desk, 1, 1);
    begin(desk, &batch);
    CHECK_STR(desk_log(desk), "s1 job j1#1");
    co_jobs_cancel(desk->coord);
    CHECK_STR(desk_log(desk), "s1 cancel j1#1");
    CHECK(is_back(desk, &batch));
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ(jobs[i].rc, QF_ECANCELED);
    co_jobs_cancel(desk->coord); /* none are there: nothing */
    desk->coord->stopping = true;
    begin(desk, &none);
    CHECK(is_back(desk, &none));
    desk->coord->stopping = false;
}
