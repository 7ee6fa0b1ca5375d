#include "ingest/seal/seal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "ingest/seal/sealer.h"
#include "tests/lib/test.h"
#include "tests/unit/ingest/head/rig.h"

/* A head and a store beside it. */
struct bench {
    struct rig rig;
    char dir[64];
    struct sg_store *store;
};

static void begin(struct bench *bench)
{
    struct qf_err err = { 0 };
    struct sg_store_options options = { .create = true };

    (void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/test_seal.XXXXXX");
    CHECK(mkdtemp(bench->dir));
    options.url = bench->dir;
    rig_begin(&bench->rig, 2);
    CHECK_OK(sg_store_open(&options, &bench->store, &err), &err);
}

static bool remove_object(void *ctx, const struct sg_store_object *object)
{
    CHECK_EQ(sg_store_delete(((struct bench *)ctx)->store, object->name, NULL, NULL), QF_OK);
    return true;
}

static void end(struct bench *bench)
{
    char command[128];

    CHECK_EQ(sg_store_list(bench->store, QF_STR(""), QF_STR(""), NULL, remove_object, bench, NULL),
             QF_OK);
    bench->store = sg_store_free(bench->store);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", bench->dir);
    CHECK_EQ(system(command), 0);
    rig_end(&bench->rig);
}

/* A closed range with files, of samples with @value. */
static void make_range(struct bench *bench, double value)
{
    struct qf_err err = { 0 };
    bool built;

    for (uint32_t i = 0; i < 10; i++)
        (void)rig_sample(&bench->rig, "t", i, true, 100, value);
    CHECK_EQ(rig_seal(&bench->rig, "t"), IN_APPLIED);
    CHECK_OK(in_head_build(bench->rig.head, &built, &err), &err);
}

static void seal(struct bench *bench, struct in_seal_result *ret_result, struct qf_strbuf *record)
{
    struct in_head_sealable range;
    struct qf_err err = { 0 };

    CHECK(in_head_next_sealable(bench->rig.head, NULL, &range));
    CHECK_OK(in_seal(&range, bench->store, 0xc1, NULL, record, ret_result, &err), &err);
    in_head_sealable_done(&range);
}

struct found {
    size_t count;
    struct qf_str rest; /* of the record's files */
    const struct in_record *record;
};

/* The store has what the record says, as it says it. */
static bool check_object(void *ctx, const struct sg_store_object *object)
{
    struct found *found = ctx;
    struct in_sealed_file file;
    struct qf_str rest = found->record->files;

    for (uint32_t i = 0; i < found->record->file_count; i++) {
        CHECK(in_record_next_file(&rest, &file));
        if (qf_str_eq(file.name, object->name)) {
            CHECK_EQ(file.size, object->size);
            CHECK(qf_str_eq(file.etag, object->etag));
            found->count++;
        }
    }
    return true;
}

TEST(a_range_goes_into_the_store_under_its_names)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_seal_result result;
    struct in_record record;
    struct found found = { .record = &record };
    struct bench bench;

    begin(&bench);
    make_range(&bench, 1);
    seal(&bench, &result, &buf);
    CHECK(result.put == 2 && result.present == 0 && result.bytes > 0);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, NULL), QF_OK);
    CHECK(record.kind == IN_SEALED && record.from == 1 && record.to == 11);
    CHECK_EQ(record.file_count, 2);
    CHECK_EQ(sg_store_list(bench.store, QF_STR("tenant=t/"), QF_STR(""), NULL, check_object, &found,
                           NULL),
             QF_OK);
    CHECK_EQ(found.count, 2);
    CHECK_EQ(rig_append(&bench.rig, qf_strbuf_view(&buf)), IN_APPLIED);
    CHECK_EQ(in_ledger_needed_from(bench.rig.ledger), 13);
    end(&bench);
}

/* Two leaders seal the same range: the second finds the files, and the log hears one of them. */
TEST(a_name_that_exists_is_not_put_again)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf first = QF_STRBUF_INIT, second = QF_STRBUF_INIT;
    struct in_seal_result result;
    struct bench bench;

    begin(&bench);
    make_range(&bench, 1);
    seal(&bench, &result, &first);
    seal(&bench, &result, &second);
    CHECK(result.put == 0 && result.present == 2 && result.bytes == 0);
    CHECK(qf_str_eq(qf_strbuf_view(&first), qf_strbuf_view(&second)));
    CHECK_EQ(rig_append(&bench.rig, qf_strbuf_view(&first)), IN_APPLIED);
    CHECK_EQ(rig_append(&bench.rig, qf_strbuf_view(&second)), IN_OUT_OF_TURN);
    end(&bench);
}

/* The same samples as in an older range are put all the same: with the newer generation they stand
 * above what came in between. */
TEST(equal_content_of_a_later_range_is_another_file)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_seal_result result;
    struct bench bench;

    begin(&bench);
    for (int i = 0; i < 3; i++) {
        make_range(&bench, i == 1 ? 7 : 1);
        qf_strbuf_reset(&buf);
        seal(&bench, &result, &buf);
        CHECK(result.put == 2 && result.present == 0);
        CHECK_EQ(rig_append(&bench.rig, qf_strbuf_view(&buf)), IN_APPLIED);
    }
    end(&bench);
}

/* A restart makes the same names again. */
TEST(files_made_again_have_the_same_names)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf first = QF_STRBUF_INIT, second = QF_STRBUF_INIT;
    struct in_seal_result result;
    struct qf_err err = { 0 };
    struct bench bench;
    bool built;

    begin(&bench);
    make_range(&bench, 1);
    seal(&bench, &result, &first);
    rig_restart(&bench.rig);
    CHECK_OK(in_head_build(bench.rig.head, &built, &err), &err);
    seal(&bench, &result, &second);
    CHECK_EQ(result.present, 2);
    CHECK(qf_str_eq(qf_strbuf_view(&first), qf_strbuf_view(&second)));
    end(&bench);
}

/* --- the threads --- */

/* The partition's log: proposals wait here for the test's thread. */
struct log {
    struct qf_lock *lock;
    char *record;
    size_t len;
    in_proposed *done;
    void *arg;
    atomic_bool leads;
};

static bool leads(void *ctx, uint32_t partition)
{
    return partition == 0 && atomic_load(&((struct log *)ctx)->leads);
}

static uint64_t cluster(void *ctx)
{
    (void)ctx;
    return 0xc1;
}

static void propose(void *ctx, uint32_t partition, struct qf_str record, in_proposed *done,
                    void *arg)
{
    struct log *log = ctx;

    CHECK_EQ(partition, 0);
    qf_lock_take(log->lock);
    CHECK(!log->record);
    log->record = qf_xmemdup0(record.data, record.len);
    log->len = record.len;
    log->done = done;
    log->arg = arg;
    qf_lock_drop(log->lock);
}

/* Apply what was proposed, if anything was within @timeout_ms. */
static bool apply_proposal(struct rig *rig, struct log *log, int64_t timeout_ms)
{
    int64_t deadline = qf_clock_mono_ms() + timeout_ms;
    char *record = NULL;

    while (!record && qf_clock_mono_ms() < deadline) {
        (void)usleep(2000);
        qf_lock_take(log->lock);
        record = QF_TAKE(log->record);
        qf_lock_drop(log->lock);
    }
    if (!record)
        return false;
    CHECK_EQ(rig_append(rig, (struct qf_str){ record, log->len }), IN_APPLIED);
    free(record);
    log->done(log->arg, QF_OK);
    return true;
}

static int64_t now_ms(void)
{
    return rig_now;
}

static bool is_announced(const struct bench *bench, const char *tenant)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/_ingest/clusters/tenant=%s/00000000000000c1", bench->dir,
                   tenant);
    return access(path, F_OK) == 0;
}

/* Answer what was proposed with an error. */
static bool refuse_proposal(struct log *log, qf_rc rc)
{
    for (int i = 0; i < 10000; i++) {
        char *record;

        qf_lock_take(log->lock);
        record = QF_TAKE(log->record);
        qf_lock_drop(log->lock);
        if (record) {
            free(record);
            log->done(log->arg, rc);
            return true;
        }
        (void)usleep(2000);
    }
    return false;
}

/* Ranges are sealed by the leader alone, not while the store is away, and in their order. */
TEST(a_leader_seals_when_the_store_is_there)
{
    struct log log = { .lock = qf_lock_new() };
    struct in_heads_options options = { .of = { .shards = 1, .keep_ms = 1, .now_ms = now_ms } };
    struct in_sealer_options with = { .ctx = &log,
                                      .cluster = cluster,
                                      .leads = leads,
                                      .propose = propose,
                                      .pause_ms = 5,
                                      .retry_ms_max = 20 };
    struct in_sealer *sealer = NULL;
    struct qf_err err = { 0 };
    struct bench bench;
    char away[80], heads_dir[80];

    begin(&bench);
    bench.rig.head = in_head_free(bench.rig.head);
    (void)snprintf(heads_dir, sizeof(heads_dir), "%s/heads", bench.rig.dir);
    (void)snprintf(away, sizeof(away), "%s/tenant=t", bench.dir);
    options.dir = heads_dir;
    with.heads = in_heads_new(&options, &err);
    CHECK_MSG(with.heads, "%s", err.msg);
    bench.rig.head = in_heads_open(with.heads, 0, 77, &err);
    CHECK_MSG(bench.rig.head, "%s", err.msg);
    with.store = bench.store;
    CHECK_EQ(close(creat(away, 0600)), 0); /* where a folder should be */
    CHECK_OK(in_sealer_start(&with, &sealer, &err), &err);
    for (int i = 0; i < 3; i++) {
        (void)rig_sample(&bench.rig, "t", 0, true, 100, i);
        (void)rig_seal(&bench.rig, "t");
    }
    CHECK(!apply_proposal(&bench.rig, &log, 100)); /* not the leader */
    CHECK_EQ(atomic_load(&in_sealer_figures(sealer)->failures), 0);
    atomic_store(&log.leads, true);
    CHECK(!apply_proposal(&bench.rig, &log, 200)); /* the store is away */
    CHECK(atomic_load(&in_sealer_figures(sealer)->failures) > 0);
    CHECK(atomic_load(&in_sealer_figures(sealer)->store_away));
    CHECK_EQ(unlink(away), 0);
    for (int i = 0; i < 3; i++)
        CHECK_MSG(apply_proposal(&bench.rig, &log, 20000), "range %d was not sealed", i);
    CHECK_EQ(in_ledger_needed_from(bench.rig.ledger), bench.rig.index + 1);
    rig_now += 2;
    for (int i = 0; i < 1000 && in_heads_figures(with.heads).file_bytes; i++)
        (void)usleep(2000);
    CHECK_EQ(in_heads_figures(with.heads).file_bytes, 0);
    for (int i = 0; i < 1000 && atomic_load(&in_sealer_figures(sealer)->ranges) < 3; i++)
        (void)usleep(2000); /* it counts after the log has heard of it */
    CHECK_EQ(atomic_load(&in_sealer_figures(sealer)->ranges), 3);
    /* A tenant is known to the store while its first range is open: compactors must ask for it. */
    CHECK(is_announced(&bench, "t") && !is_announced(&bench, "u"));
    (void)rig_sample(&bench.rig, "u", 0, true, 100, 1);
    for (int i = 0; i < 10000 && !is_announced(&bench, "u"); i++)
        (void)usleep(2000);
    CHECK(is_announced(&bench, "u"));
    sealer = in_sealer_stop(sealer);
    with.heads = in_heads_free(with.heads);
    bench.rig.head = NULL;
    (void)snprintf(away, sizeof(away), "%s/0", heads_dir);
    CHECK(rmdir(away) == 0 && rmdir(heads_dir) == 0);
    (void)qf_lock_free(log.lock);
    end(&bench);
}

/* A leader and the one before it seal the same range: what the log refuses is no failure of the store, and what one tenant
 * lacks holds up no other. */
TEST(a_range_that_was_sealed_already_and_one_that_fails_hold_up_nobody)
{
    struct log log = { .lock = qf_lock_new() };
    struct in_heads_options options = { .of = { .shards = 1, .keep_ms = 1, .now_ms = now_ms } };
    struct in_sealer_options with = { .ctx = &log,
                                      .cluster = cluster,
                                      .leads = leads,
                                      .propose = propose,
                                      .pause_ms = 5,
                                      .retry_ms_max = 20 };
    struct in_sealer *sealer = NULL;
    struct qf_err err = { 0 };
    struct bench bench;
    char away[80], heads_dir[80];

    begin(&bench);
    bench.rig.head = in_head_free(bench.rig.head);
    (void)snprintf(heads_dir, sizeof(heads_dir), "%s/heads", bench.rig.dir);
    (void)snprintf(away, sizeof(away), "%s/tenant=a", bench.dir);
    options.dir = heads_dir;
    with.heads = in_heads_new(&options, &err);
    CHECK_MSG(with.heads, "%s", err.msg);
    bench.rig.head = in_heads_open(with.heads, 0, 77, &err);
    CHECK_MSG(bench.rig.head, "%s", err.msg);
    with.store = bench.store;
    CHECK_EQ(close(creat(away, 0600)), 0); /* where the folder of tenant a should be */
    atomic_store(&log.leads, true);
    CHECK_OK(in_sealer_start(&with, &sealer, &err), &err);
    (void)rig_sample(&bench.rig, "b", 0, true, 100, 1);
    (void)rig_seal(&bench.rig, "b");
    CHECK(refuse_proposal(&log, QF_EINVAL));
    CHECK(refuse_proposal(&log, QF_EINVAL));
    CHECK_EQ(atomic_load(&in_sealer_figures(sealer)->failures), 0);
    (void)rig_sample(&bench.rig, "a", 0, true, 100, 1);
    (void)rig_seal(&bench.rig, "a");
    for (int i = 0; i < 10000 && !atomic_load(&in_sealer_figures(sealer)->failures); i++) {
        bool waits;

        qf_lock_take(log.lock);
        waits = log.record != NULL;
        qf_lock_drop(log.lock);
        if (waits)
            CHECK(refuse_proposal(&log, QF_EINVAL));
        (void)usleep(2000);
    }
    CHECK(atomic_load(&in_sealer_figures(sealer)->failures) > 0);
    CHECK_MSG(apply_proposal(&bench.rig, &log, 20000), "tenant b waits for tenant a");
    CHECK_EQ(unlink(away), 0);
    CHECK_MSG(apply_proposal(&bench.rig, &log, 20000), "tenant a was not sealed");
    sealer = in_sealer_stop(sealer);
    with.heads = in_heads_free(with.heads);
    bench.rig.head = NULL;
    (void)snprintf(away, sizeof(away), "rm -rf '%s'", heads_dir);
    CHECK_EQ(system(away), 0);
    (void)qf_lock_free(log.lock);
    end(&bench);
}
