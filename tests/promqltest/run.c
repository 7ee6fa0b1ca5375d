/* run.c - the evals of one script, one after the other. */
#include "tests/promqltest/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "promql/testing/engine.h"
#include "segments/parquet/artifact.h"
#include "tests/promqltest/http.h"
#include "tests/promqltest/judge.h"
#include "tests/promqltest/script.h"
#include "tests/promqltest/storage.h"
#include "tests/promqltest/variants.h"

#define MINUTE_MS (60 * 1000)
#define QUERY_BYTES_MAX ((size_t)1 << 30)
#define SCRIPT_BYTES_MAX ((size_t)16 << 20)
/* What Prometheus's own test engine allows. */
#define SAMPLES_MAX 10000

enum outcome { PASSED, FAILED };
static const char *const outcome_names[] = { "passed", "failed" };

struct runner {
    const struct run_options *options;
    const char *path;
    struct storage *storage;
    struct pq_engine engine;
    /* The same series spread over another number of shards; NULL if nothing is compared. */
    struct storage *other_storage;
    struct pq_engine other_engine;
};

/* One run of a query: as written, or as a variant. */
struct attempt {
    const struct script_eval *eval;
    bool fixed; /* selectors fixed at the eval's time */
    int64_t start_ms, end_ms, step_ms;
    struct qf_arena *arena;
    struct pq_result result;
    struct qf_err err;
    qf_rc rc;
};

static qf_rc encode(void *ctx, const struct pq_leaf_result *result, struct qf_strbuf *buf,
                    struct qf_err *err)
{
    (void)ctx;
    return sg_artifact_write_memory(result, buf, NULL, err);
}

static qf_rc decode(void *ctx, struct qf_str bytes, struct pq_leaf_reader **ret_reader,
                    struct qf_err *err)
{
    (void)ctx;
    *ret_reader = sg_artifact_open_memory(bytes, "artifact", NULL, err);
    return *ret_reader ? QF_OK : err->rc;
}

static const struct pq_result_codec parquet_codec = { encode, decode, NULL };

static void attempt_free(struct attempt *attempt)
{
    attempt->arena = qf_arena_free(attempt->arena);
}

/* The query as a client sends it: a variant exists as a tree only and is printed. */
static struct qf_str attempt_text(const struct attempt *attempt, const struct pq_expr *expr)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    if (!attempt->fixed)
        return attempt->eval->query;
    pq_print(&text, expr);
    return qf_arena_str(attempt->arena, qf_strbuf_view(&text));
}

/* False if there is no such variant of the query. */
static bool attempt_run(struct runner *runner, const struct pq_engine *engine,
                        struct attempt *attempt)
{
    const struct script_eval *eval = attempt->eval;
    struct pq_query_params params = {
        .start_ms = attempt->start_ms,
        .end_ms = attempt->end_ms,
        .step_ms = attempt->step_ms,
        .delayed_name_removal = true,
        .start_timestamps = true,
        .samples_max = SAMPLES_MAX,
        .no_pushdown = runner->options->no_pushdown,
    };
    struct pq_expr *expr;

    attempt->arena = qf_arena_new(QUERY_BYTES_MAX);
    attempt->rc =
        pq_parse(attempt->arena, eval->query, &script_parse_options, &expr, &attempt->err);
    if (attempt->rc != QF_OK)
        return true;
    if (attempt->fixed && !variant_fix_times(expr, eval->start_ms))
        return false;
    if (runner->options->http) {
        attempt->rc = http_engine_run(
            runner->options->http, runner->storage, runner->options->shard_count, attempt->arena,
            attempt_text(attempt, expr), &params, &attempt->result, &attempt->err);
        return true;
    }
    attempt->rc = pq_engine_run(engine, attempt->arena, expr, eval->query, &params,
                                &attempt->result, &attempt->err);
    return true;
}

static void describe(const struct attempt *attempt, struct qf_strbuf *why)
{
    qf_strbuf_puts(why, "  (");
    if (attempt->fixed)
        qf_strbuf_puts(why, "selectors fixed, ");
    if (attempt->step_ms)
        qf_strbuf_printf(why, "range %lld..%lld step %lld", (long long)attempt->start_ms,
                         (long long)attempt->end_ms, (long long)attempt->step_ms);
    else
        qf_strbuf_printf(why, "at %lld", (long long)attempt->start_ms);
    qf_strbuf_puts(why, ")");
}

/* The answer of the query itself, or of a variant at another time. */
static bool judge_attempt(const struct runner *runner, const struct attempt *attempt,
                          struct qf_strbuf *why)
{
    const struct script_eval *eval = attempt->eval;

    if (attempt->rc == QF_EPARSE) {
        qf_strbuf_printf(why, "does not parse: %s", attempt->err.msg);
        return false;
    }
    if (eval->fail) {
        if (attempt->rc != QF_OK)
            return judge_failure(eval, attempt->err.msg, why);
        qf_strbuf_puts(why, "should fail but did not");
        return false;
    }
    if (attempt->rc != QF_OK) {
        qf_strbuf_printf(why, "error: %s", attempt->err.msg);
        return false;
    }
    if (!judge_result(eval, &attempt->result, why))
        return false;
    /* Notes of a printed variant name places in its text, not in the one of the script. */
    if (attempt->fixed && runner->options->http)
        return true;
    return judge_notes(eval, &attempt->result.notes, eval->query, why);
}

/* The same query over a range of three points; the one in the middle must be the same. */
static enum outcome check_range_mode(struct runner *runner, const struct attempt *instant,
                                     struct qf_strbuf *why)
{
    QF_CLEANUP(attempt_free)
    struct attempt attempt = { .eval = instant->eval,
                               .fixed = instant->fixed,
                               .start_ms = instant->start_ms - MINUTE_MS,
                               .end_ms = instant->start_ms + MINUTE_MS,
                               .step_ms = MINUTE_MS };
    bool good;

    (void)attempt_run(runner, &runner->engine, &attempt);
    if (attempt.rc != QF_OK) {
        qf_strbuf_printf(why, "error: %s", attempt.err.msg);
        good = false;
    } else if (instant->eval->ordered) {
        good = true;
    } else {
        good = judge_point(instant->eval, &attempt.result, instant->start_ms,
                           instant->result.type == PQ_TYPE_SCALAR, why);
    }
    if (!good)
        describe(&attempt, why);
    return good ? PASSED : FAILED;
}

/* The number of shards must not show in the answer. */
static bool same_elsewhere(struct runner *runner, const struct attempt *first,
                           struct qf_strbuf *why)
{
    QF_CLEANUP(attempt_free)
    struct attempt attempt = { .eval = first->eval,
                               .fixed = first->fixed,
                               .start_ms = first->start_ms,
                               .end_ms = first->end_ms,
                               .step_ms = first->step_ms };

    if (!runner->other_storage || first->rc != QF_OK)
        return true;
    (void)attempt_run(runner, &runner->other_engine, &attempt);
    if (attempt.rc == QF_OK && judge_same(&first->result, &attempt.result, why))
        return true;
    qf_strbuf_printf(why, " with %zu shards", runner->options->compare_shards);
    return false;
}

static bool has_range_mode(const struct script_eval *eval)
{
    return !eval->range && !eval->fail && !eval->range_vector && !eval->has_string &&
           variant_range_allowed(eval->query);
}

/* @ret_more false: there are no variants of this query. */
static enum outcome check_at(struct runner *runner, const struct script_eval *eval, bool fixed,
                             int64_t at_ms, struct qf_strbuf *why, bool *ret_more)
{
    QF_CLEANUP(attempt_free)
    struct attempt attempt = { .eval = eval,
                               .fixed = fixed,
                               .start_ms = at_ms,
                               .end_ms = eval->range ? eval->end_ms : at_ms,
                               .step_ms = eval->step_ms };

    *ret_more = attempt_run(runner, &runner->engine, &attempt);
    if (!*ret_more)
        return PASSED;
    if (!judge_attempt(runner, &attempt, why) || !same_elsewhere(runner, &attempt, why)) {
        describe(&attempt, why);
        return FAILED;
    }
    return has_range_mode(eval) ? check_range_mode(runner, &attempt, why) : PASSED;
}

static enum outcome run_eval(struct runner *runner, const struct script_eval *eval,
                             struct qf_strbuf *why)
{
    int64_t times[VARIANT_TIMES_MAX];
    bool more;
    enum outcome outcome = check_at(runner, eval, false, eval->start_ms, why, &more);
    size_t count = eval->range ? 0 : variant_times(eval->start_ms, times);

    /* One of them shows that the way through HTTP keeps what is fixed; a query costs more there. */
    if (runner->options->http && count > 1)
        count = 1;
    for (size_t i = 0; i < count && more && outcome == PASSED; i++)
        outcome = check_at(runner, eval, true, times[i], why, &more);
    return outcome;
}

static void report(const struct runner *runner, const char *word,
                   const struct script_command *command, const char *why)
{
    struct qf_str query = command->kind == SCRIPT_EVAL ? command->eval.query : QF_STR("(load)");

    printf("%s %s:%zu: %.*s\n    %s\n", word, runner->path, command->line, QF_STR_ARG(query), why);
}

static bool wanted(const struct runner *runner, const struct script_command *command)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    if (!runner->options->only)
        return true;
    qf_strbuf_printf(&text, "%s:%zu %.*s", runner->path, command->line,
                     QF_STR_ARG(command->eval.query));
    return qf_regex_match(runner->options->only, text.data, text.len);
}

static void run_eval_command(struct runner *runner, const struct script_command *command,
                             struct run_counts *counts)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf why = QF_STRBUF_INIT;
    enum outcome outcome;

    if (!wanted(runner, command))
        return;
    if (runner->options->list) {
        printf("%s:%zu %.*s\n", runner->path, command->line, QF_STR_ARG(command->eval.query));
        return;
    }
    if (command->rc != QF_OK) {
        qf_strbuf_printf(&why, "cannot read this eval: %s", command->error);
        outcome = FAILED;
    } else {
        outcome = run_eval(runner, &command->eval, &why);
    }
    if (outcome == PASSED)
        counts->passed++;
    else
        counts->failed++;
    if (runner->options->verdicts)
        printf("verdict %s:%zu %s\n", runner->path, command->line, outcome_names[outcome]);
    if (outcome == FAILED)
        report(runner, "FAILED", command, qf_strbuf_cstr(&why));
}

static void run_command(struct runner *runner, const struct script_command *command,
                        struct run_counts *counts)
{
    struct qf_err err = { 0 };
    qf_rc rc = command->rc;

    switch (command->kind) {
    case SCRIPT_CLEAR:
        storage_clear(runner->storage);
        if (runner->other_storage)
            storage_clear(runner->other_storage);
        if (runner->options->http)
            http_engine_changed(runner->options->http);
        break;
    case SCRIPT_EVAL:
        run_eval_command(runner, command, counts);
        break;
    case SCRIPT_LOAD:
        if (runner->options->list)
            break;
        if (rc == QF_OK)
            rc = storage_load(runner->storage, &command->load, &err);
        if (rc == QF_OK && runner->other_storage)
            rc = storage_load(runner->other_storage, &command->load, &err);
        if (runner->options->http)
            http_engine_changed(runner->options->http);
        if (rc != QF_OK) {
            counts->failed++;
            report(runner, "FAILED", command, command->error ? command->error : err.msg);
        }
        break;
    }
}

static char *read_whole_file(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    char *data;

    if (!file)
        return NULL;
    data = qf_xmalloc(SCRIPT_BYTES_MAX + 1);
    *ret_len = fread(data, 1, SCRIPT_BYTES_MAX, file);
    data[*ret_len] = '\0';
    if (ferror(file) || !feof(file)) {
        free(data);
        data = NULL;
    }
    (void)fclose(file);
    return data;
}

void run_file(const char *path, const struct run_options *options, struct run_counts *counts)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_freep) char *text = NULL;
    struct runner runner = { .options = options, .path = path };
    struct run_counts mine = { 0 };
    struct script script;
    struct qf_err err = { 0 };
    size_t len = 0;

    text = read_whole_file(path, &len);
    if (!text) {
        printf("FAILED %s: cannot be read\n", path);
        counts->failed++;
        return;
    }
    if (script_parse(arena, (struct qf_str){ text, len }, &script, &err) != QF_OK) {
        printf("FAILED %s: %s\n", path, err.msg);
        counts->failed++;
        return;
    }
    runner.storage = storage_new(options->shard_count);
    if (options->http)
        http_engine_changed(options->http);
    runner.engine = (struct pq_engine){ .shard_count = options->shard_count,
                                        .open = storage_open,
                                        .ctx = runner.storage,
                                        .codec = options->no_codec ? NULL : &parquet_codec };
    if (options->compare_shards) {
        runner.other_storage = storage_new(options->compare_shards);
        runner.other_engine = runner.engine;
        runner.other_engine.shard_count = options->compare_shards;
        runner.other_engine.ctx = runner.other_storage;
    }
    for (size_t i = 0; i < script.count; i++)
        run_command(&runner, &script.commands[i], &mine);
    runner.storage = storage_free(runner.storage);
    runner.other_storage = storage_free(runner.other_storage);
    if (!options->list)
        printf("%s: %zu passed, %zu failed, 0 skipped\n", path, mine.passed, mine.failed);
    counts->passed += mine.passed;
    counts->failed += mine.failed;
}
