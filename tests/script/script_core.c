/* script_core.c - run scripts of events against the coordination cores and compare their traces.
 *
 * usage: script_core [--rewrite] FILE.txt...
 *
 * A script is a list of commands, each followed by the trace lines it must produce:
 *
 *     # a comment
 *     api attempts=3                 (or: worker slots=2 runs=8, or: life active=1)
 *     at 100                         the time of what follows
 *     begin q1 k1=w2,w1 k2=w1@w3,w4  items and the workers their affinity leads to, in order; behind @ their owners
 *     > [100] begin q1 items=2 -> ...
 *     show                           the state of every worker and item
 *
 * The words are those of the traces. --rewrite puts in the lines the core produces now; review
 * reads the difference. Exit code 1 and the first differing line of each file otherwise. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_int.h"
#include "base/pure/strbuf.h"
#include "life_int.h"
#include "tests/lib/core/coretest.h"
#include "worker_int.h"

enum { WORDS_MAX = 32, ITEMS_MAX = 32, WORKERS = 9 };

struct script {
    struct wc_api *api;
    struct wc_worker *worker;
    struct wc_life *life;
    qf_time_ms now;
    struct qf_strbuf out;
    char *words[WORDS_MAX];
    int word_count;
    const char *file;
    int line;
};

_Noreturn static void die(const struct script *script, const char *what, const char *word)
{
    fprintf(stderr, "%s:%d: %s: %s\n", script->file, script->line, what, word);
    exit(2);
}

static void on_trace(void *ctx, const char *line, size_t len)
{
    struct script *script = ctx;

    qf_strbuf_printf(&script->out, "> %.*s\n", (int)len, line);
}

/* The word that starts with @prefix, without it; NULL if there is none. */
static const char *find_word(const struct script *script, const char *prefix)
{
    for (int i = 1; i < script->word_count; i++) {
        if (strncmp(script->words[i], prefix, strlen(prefix)) == 0)
            return script->words[i] + strlen(prefix);
    }
    return NULL;
}

static bool has_word(const struct script *script, const char *word)
{
    const char *found = find_word(script, word);

    return found && !*found;
}

static int64_t number(const struct script *script, const char *prefix, int64_t otherwise)
{
    const char *word = find_word(script, prefix);

    return word ? strtoll(word, NULL, 10) : otherwise;
}

/* "w3": the number behind the letter, 0 if no such word. Attempts are written k3#2. */
static uint64_t id_word(const struct script *script, char letter, uint32_t *ret_attempt)
{
    for (int i = 1; i < script->word_count; i++) {
        char *end;

        if (script->words[i][0] == letter && strspn(script->words[i] + 1, "0123456789") > 0) {
            uint64_t id = strtoull(script->words[i] + 1, &end, 10);

            if (ret_attempt && *end == '#')
                *ret_attempt = (uint32_t)strtoul(end + 1, NULL, 10);
            return id;
        }
    }
    return 0;
}

static qf_rc rc_word(const struct script *script)
{
    for (int i = 1; i < script->word_count; i++) {
        if (qf_rc_from_name(script->words[i]) != QF_EINTERNAL)
            return qf_rc_from_name(script->words[i]);
    }
    return has_word(script, "internal") ? QF_EINTERNAL : QF_OK;
}

static uint64_t affinity_of(const char *wish)
{
    uint64_t order[WORKERS];
    size_t count = 0;

    while (*wish == 'w' && count < WORKERS) {
        char *end;

        order[count++] = strtoull(wish + 1, &end, 10);
        wish = *end == ',' ? end + 1 : end;
    }
    return core_affinity(order, count, WORKERS);
}

/* Bits of the workers behind @; 0: there is none. */
static unsigned owners_of(const char *word)
{
    const char *at = strchr(word, '@');
    unsigned owners = 0;

    for (; at && at[1] == 'w'; at = strchr(at + 1, ','))
        owners |= 1U << (strtoul(at + 2, NULL, 10) & 15);
    return owners;
}

static size_t item_words(const struct script *script, struct wc_api_item_spec *items)
{
    size_t count = 0;

    for (int i = 1; i < script->word_count; i++) {
        char *end;

        if (script->words[i][0] != 'k')
            continue;
        items[count].work.v = strtoull(script->words[i] + 1, &end, 10);
        items[count].leaf.v = 1;
        items[count].expect_ms = number(script, "expect=", 0);
        core_own(&items[count], owners_of(end));
        items[count++].affinity = *end == '=' ? affinity_of(end + 1) : 1;
    }
    return count;
}

static int type_of(const char *word, const char *(*name)(int type), int count)
{
    for (int type = 0; type < count; type++) {
        if (strcmp(word, name(type)) == 0)
            return type;
    }
    return -1;
}

static const char *api_name(int type)
{
    return wc_api_event_name((enum wc_api_event_type)type);
}
static const char *worker_name(int type)
{
    return wc_worker_event_name((enum wc_worker_event_type)type);
}
static const char *life_name(int type)
{
    return wc_life_event_name((enum wc_life_event_type)type);
}
static const char *reject_name(int type)
{
    return wc_reject_name((enum wc_reject)type);
}
static const char *fetch_name(int type)
{
    return wc_fetch_error_name((enum wc_fetch_error)type);
}

static void api_details(const struct script *script, struct wc_api_event *event,
                        struct wc_api_item_spec *items)
{
    const char *last = script->words[script->word_count - 1];

    if (event->type == WC_API_EV_STATUS) {
        event->status.worker_key = core_worker_key(event->worker.v);
        event->status.accepting = has_word(script, "accepting");
        event->status.draining = has_word(script, "draining");
    } else if (event->type == WC_API_EV_REJECTED) {
        event->reject = (enum wc_reject)type_of(last, reject_name, WC_REJECT__COUNT);
    } else if (event->type == WC_API_EV_FETCH_FAILED) {
        event->fetch_error = (enum wc_fetch_error)type_of(last, fetch_name, WC_FETCH__COUNT);
    } else if (event->type == WC_API_EV_FAILED) {
        event->failure.rc = rc_word(script);
        event->failure.retryable = has_word(script, "retryable");
    } else if (event->type == WC_API_EV_READY || event->type == WC_API_EV_FETCHED) {
        event->checksum.low = (uint64_t)number(script, "sum=", 7);
    } else if (event->type == WC_API_EV_HEARTBEAT) {
        event->sent_at = number(script, "sent=", script->now);
    } else if (event->type == WC_API_EV_QUERY_CANCEL) {
        event->rc = rc_word(script);
    } else if (event->type == WC_API_EV_QUERY_BEGIN) {
        event->work.v = 0;
        event->attempt = 0;
        event->begin.items = items;
        event->begin.count = item_words(script, items);
        event->begin.tenant.v = id_word(script, 't', NULL);
        event->begin.sent_max = (uint32_t)number(script, "share=", 0);
    }
}

static void api_command(struct script *script)
{
    struct wc_api_item_spec items[ITEMS_MAX] = { 0 };
    struct wc_api_event event = { .now = script->now };
    struct wc_api_effects effects;
    int type = type_of(script->words[0], api_name, WC_API_EV__COUNT);

    if (type < 0)
        die(script, "unknown command", script->words[0]);
    event.type = (enum wc_api_event_type)type;
    event.worker.v = id_word(script, 'w', NULL);
    event.session.v = id_word(script, 's', NULL);
    event.query.v = id_word(script, 'q', NULL);
    event.work.v = id_word(script, 'k', &event.attempt);
    event.random = (uint64_t)number(script, "random=", 0);
    api_details(script, &event, items);
    if (wc_api_step(script->api, &event, &effects) != QF_OK && effects.count)
        die(script, "a refused event has effects", script->words[0]);
}

static void worker_command(struct script *script)
{
    struct wc_worker_event event = { .now = script->now };
    struct wc_worker_effects effects;
    int type = type_of(script->words[0], worker_name, WC_WORKER_EV__COUNT);

    if (type < 0)
        die(script, "unknown command", script->words[0]);
    event.type = (enum wc_worker_event_type)type;
    event.session.v = id_word(script, 's', NULL);
    event.work.v = id_word(script, 'k', &event.attempt);
    event.run.v = id_word(script, 'r', NULL);
    if (event.type == WC_WORKER_EV_ASSIGN) {
        event.assign.query.v = id_word(script, 'q', NULL);
        event.assign.deadline = number(script, "deadline=", 0);
    } else if (event.type == WC_WORKER_EV_RUN_FAILED) {
        event.failure.rc = rc_word(script);
        event.failure.retryable = has_word(script, "retryable");
    } else if (event.type == WC_WORKER_EV_RUN_DONE) {
        event.checksum.low = 7;
    } else if (event.type == WC_WORKER_EV_ACCEPTING) {
        event.accepting = has_word(script, "yes");
    } else if (event.type == WC_WORKER_EV_DRAIN) {
        event.drain_deadline = number(script, "deadline=", QF_TIME_NEVER);
    } else if (event.type == WC_WORKER_EV_HEARTBEAT) {
        event.sent_at = script->now;
    }
    if (wc_worker_step(script->worker, &event, &effects) != QF_OK && effects.count)
        die(script, "a refused event has effects", script->words[0]);
}

static void life_command(struct script *script)
{
    struct wc_life_event event = { .now = script->now };
    struct wc_life_effects effects;
    int type = type_of(script->words[0], life_name, WC_LIFE_EV__COUNT);

    if (type < 0)
        die(script, "unknown command", script->words[0]);
    event.type = (enum wc_life_event_type)type;
    event.query.v = id_word(script, 'q', NULL);
    if (event.type == WC_LIFE_EV_SUBMIT) {
        event.submit.tenant.v = id_word(script, 't', NULL);
        event.submit.deadline = number(script, "deadline=", QF_TIME_NEVER);
        event.submit.share.active_max = (uint32_t)number(script, "active=", 0);
        event.submit.share.streams_max = (uint32_t)number(script, "streams=", 0);
    } else {
        event.rc = rc_word(script);
    }
    if (wc_life_step(script->life, &event, &effects) != QF_OK && effects.count)
        die(script, "a refused event has effects", script->words[0]);
}

static void show_life(struct script *script)
{
    const struct wc_life_stats *stats = wc_life_stats(script->life);

    qf_strbuf_printf(&script->out, "> active=%u tenants=%u", stats->active, stats->tenants);
    for (int state = 0; state < WC_QUERY_ENDED; state++) {
        if (stats->queries[state])
            qf_strbuf_printf(&script->out, " %s=%u",
                             wc_query_state_name((enum wc_query_state)state),
                             stats->queries[state]);
    }
    qf_strbuf_puts(&script->out, "\n");
}

static void show_api(struct script *script)
{
    struct wc_api_worker_view views[WORKERS];
    size_t count = wc_api_workers(script->api, views, WORKERS);

    for (size_t i = 0; i < count && i < WORKERS; i++) {
        const struct wc_api_worker_view *view = &views[i];

        qf_strbuf_printf(&script->out, "> w%" PRIu64 " %s%s%s%s assigned=%u accepted=%u ready=%u\n",
                         view->worker.v, wc_peer_state_name(view->state),
                         view->available ? " available" : "", view->draining ? " draining" : "",
                         view->leaving ? " leaving" : "", view->assigned, view->accepted,
                         view->ready);
    }
    for (uint64_t work = 1; work <= ITEMS_MAX; work++) {
        struct wc_api_item_view item;

        if (!wc_api_item(script->api, (struct wc_work_id){ work }, &item))
            continue;
        qf_strbuf_printf(&script->out, "> k%" PRIu64 "#%u %s", work, item.attempt,
                         wc_item_state_name(item.state));
        if (item.worker.v)
            qf_strbuf_printf(&script->out, " w%" PRIu64, item.worker.v);
        qf_strbuf_printf(&script->out, " failures=%u", item.failures);
        if (item.hedge.worker.v)
            qf_strbuf_printf(&script->out, " hedge #%u %s w%" PRIu64, item.hedge.attempt,
                             wc_hedge_state_name(item.hedge.state), item.hedge.worker.v);
        qf_strbuf_puts(&script->out, "\n");
    }
}

static void show_worker(struct script *script)
{
    const struct wc_worker_stats *stats = wc_worker_stats(script->worker);

    qf_strbuf_printf(&script->out, "> sessions=%u%s%s%s", stats->sessions,
                     stats->accepting ? " accepting" : "", stats->draining ? " draining" : "",
                     stats->drained ? " drained" : "");
    for (int state = 0; state < WC_RUN_GONE; state++)
        qf_strbuf_printf(&script->out, " %s=%u", wc_run_state_name((enum wc_run_state)state),
                         stats->runs[state]);
    qf_strbuf_puts(&script->out, "\n");
}

static void new_core(struct script *script)
{
    if (strcmp(script->words[0], "api") == 0) {
        struct wc_api_limits limits = {
            .workers_max = (uint32_t)number(script, "workers=", 8),
            .queries_max = (uint32_t)number(script, "queries=", 8),
            .items_max = (uint32_t)number(script, "items=", ITEMS_MAX),
            .attempts_max = (uint32_t)number(script, "attempts=", 0),
            .dial_min_ms = number(script, "dial_min=", 100),
            .dial_max_ms = number(script, "dial_max=", 10000),
            .retry_delay_ms = number(script, "retry_delay=", 0),
            .worker_wait_ms = number(script, "worker_wait=", 0),
            .hedge_after = (double)number(script, "hedge_after=", 0),
        };

        script->api = wc_api_new(&limits);
        wc_api_trace(script->api, on_trace, script);
    } else if (strcmp(script->words[0], "life") == 0) {
        struct wc_life_limits limits = {
            .queries_max = (uint32_t)number(script, "queries=", 8),
            .active_max = (uint32_t)number(script, "active=", 1),
            .tenant_queue_max = (uint32_t)number(script, "queue=", 4),
            .replans_max = (uint32_t)number(script, "replans=", 3),
        };

        script->life = wc_life_new(&limits);
        wc_life_trace(script->life, on_trace, script);
    } else {
        struct wc_worker_limits limits = {
            .sessions_max = (uint32_t)number(script, "sessions=", 4),
            .runs_max = (uint32_t)number(script, "runs=", ITEMS_MAX),
            .slots = (uint32_t)number(script, "slots=", 1),
        };

        script->worker = wc_worker_new(&limits);
        wc_worker_trace(script->worker, on_trace, script);
    }
}

static qf_time_ms deadline_of(const struct script *script)
{
    if (script->life)
        return wc_life_deadline(script->life);
    return script->api ? wc_api_deadline(script->api) : wc_worker_deadline(script->worker);
}

static void show(struct script *script)
{
    if (script->life)
        show_life(script);
    else if (script->api)
        show_api(script);
    else
        show_worker(script);
}

static void run_command(struct script *script)
{
    const char *verb = script->words[0];

    if (!script->api && !script->worker && !script->life) {
        if (strcmp(verb, "api") != 0 && strcmp(verb, "worker") != 0 && strcmp(verb, "life") != 0)
            die(script, "a script begins with api, worker or life, not", verb);
        new_core(script);
    } else if (strcmp(verb, "at") == 0) {
        script->now = script->word_count > 1 ? strtoll(script->words[1], NULL, 10) : 0;
    } else if (strcmp(verb, "show") == 0) {
        show(script);
    } else if (strcmp(verb, "deadline") == 0) {
        qf_time_ms due = deadline_of(script);

        if (due == QF_TIME_NEVER)
            qf_strbuf_puts(&script->out, "> never\n");
        else
            qf_strbuf_printf(&script->out, "> %" PRId64 "\n", due);
    } else if (script->life) {
        life_command(script);
    } else if (script->api) {
        api_command(script);
    } else {
        worker_command(script);
    }
}

static void run_line(struct script *script, char *line)
{
    char *rest = NULL;

    script->line++;
    if (strncmp(line, "> ", 2) == 0)
        return;
    qf_strbuf_printf(&script->out, "%s\n", line);
    script->word_count = 0;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (word[0] == '#' || script->word_count == WORDS_MAX)
            break;
        script->words[script->word_count++] = word;
    }
    if (script->word_count)
        run_command(script);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    struct qf_strbuf text = QF_STRBUF_INIT;
    char chunk[4096];
    size_t len;

    if (!file)
        return NULL;
    while ((len = fread(chunk, 1, sizeof(chunk), file)) > 0)
        qf_strbuf_add(&text, chunk, len);
    fclose(file);
    return qf_strbuf_take(&text);
}

/* The first line in which the texts differ. */
static void report(const char *path, const char *want, const char *got)
{
    int line = 1;
    size_t start = 0, i = 0;

    for (; want[i] && want[i] == got[i]; i++) {
        if (want[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    printf("%s:%d: want: %.*s\n%s:%d: got:  %.*s\n", path, line, (int)strcspn(want + start, "\n"),
           want + start, path, line, (int)strcspn(got + start, "\n"), got + start);
}

static bool run_file(const char *path, bool rewrite)
{
    char *text = read_whole(path), *copy, *line, *rest;
    struct script script = { .file = path };
    bool same;

    if (!text)
        die(&script, "cannot read", path);
    copy = rest = strdup(text);
    while ((line = strsep(&rest, "\n")) && (*line || rest))
        run_line(&script, line);
    same = strcmp(text, qf_strbuf_cstr(&script.out)) == 0;
    if (!same && rewrite) {
        FILE *file = fopen(path, "w");

        if (!file || fputs(qf_strbuf_cstr(&script.out), file) < 0 || fclose(file) != 0)
            die(&script, "cannot write", path);
        printf("rewritten %s\n", path);
        same = true;
    } else if (!same) {
        report(path, text, qf_strbuf_cstr(&script.out));
    }
    free(copy);
    free(text);
    qf_strbuf_done(&script.out);
    wc_api_free(script.api);
    wc_worker_free(script.worker);
    wc_life_free(script.life);
    return same;
}

int main(int argc, char **argv)
{
    bool rewrite = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
    int failed = 0, first = rewrite ? 2 : 1;

    for (int i = first; i < argc; i++)
        failed += !run_file(argv[i], rewrite);
    printf("%d scripts, %d differ\n", argc - first, failed);
    return failed || argc == first;
}
