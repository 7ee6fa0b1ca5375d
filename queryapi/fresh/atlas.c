/* atlas.c - tenants, what is known of their maps, and who waits to know more. */
#include "queryapi/fresh/atlas.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"

#define FRESH_MS 1000
#define PATIENCE_MS 1000
/* An answer is asked for no longer than this: it is less than questions for a status may take, which say more of whether
 * anybody is there. */
#define ASK_MS 8000

struct entry {
    struct qa_atlas *atlas;
    char *tenant;
    uint64_t hash, used;
    struct qa_maps *maps; /* NULL: nothing is known */
    int64_t tried_ms;     /* when the last answer, or none, came */
    bool asking, failed;
    struct qa_question *waiting; /* oldest first */
};

struct qa_atlas {
    struct qa_atlas_options options;
    struct entry *entries[QA_ATLAS_TENANTS_MAX];
    size_t count;
    uint64_t uses;
};

struct qa_atlas *qa_atlas_new(const struct qa_atlas_options *options)
{
    struct qa_atlas *atlas = qf_xcalloc(1, sizeof(*atlas));

    atlas->options = *options;
    atlas->options.fresh_ms = options->fresh_ms ? options->fresh_ms : FRESH_MS;
    atlas->options.patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;
    return atlas;
}

static void free_entry(struct entry *entry)
{
    struct qa_question *next;

    for (struct qa_question *question = entry->waiting; question; question = next) {
        next = question->next;
        (void)qa_question_free(question);
    }
    (void)qa_maps_drop(entry->maps);
    free(entry->tenant);
    free(entry);
}

struct qa_atlas *qa_atlas_free(struct qa_atlas *atlas)
{
    if (!atlas)
        return NULL;
    while (atlas->count)
        free_entry(atlas->entries[--atlas->count]);
    free(atlas);
    return NULL;
}

/* --- tenants --- */

static struct entry *find(struct qa_atlas *atlas, const char *tenant)
{
    uint64_t hash = qf_hash_bytes(qf_str_from(tenant));

    for (size_t i = 0; i < atlas->count; i++) {
        struct entry *entry = atlas->entries[i];

        if (entry->hash == hash && strcmp(entry->tenant, tenant) == 0) {
            entry->used = ++atlas->uses;
            return entry;
        }
    }
    return NULL;
}

/* The place of the tenant asked for longest ago of whom no answer is under way; NULL: there is none. */
static struct entry **place_for_another(struct qa_atlas *atlas)
{
    struct entry **oldest = NULL;

    if (atlas->count < QA_ATLAS_TENANTS_MAX)
        return &atlas->entries[atlas->count++];
    for (size_t i = 0; i < atlas->count; i++)
        if (!atlas->entries[i]->asking && !atlas->entries[i]->waiting &&
            (!oldest || atlas->entries[i]->used < (*oldest)->used))
            oldest = &atlas->entries[i];
    if (oldest)
        free_entry(*oldest);
    return oldest;
}

static struct entry *add(struct qa_atlas *atlas, const char *tenant)
{
    struct entry **place = place_for_another(atlas);
    struct entry *entry;

    if (!place)
        return NULL;
    *place = entry = qf_xcalloc(1, sizeof(*entry));
    entry->atlas = atlas;
    entry->tenant = qf_xstrdup(tenant);
    entry->hash = qf_hash_bytes(qf_str_from(tenant));
    entry->used = ++atlas->uses;
    return entry;
}

/* --- answers --- */

static void hand_back(struct qa_atlas *atlas, const struct entry *entry,
                      struct qa_question *question)
{
    question->next = NULL;
    question->maps = qa_maps_ref(entry ? entry->maps : NULL);
    atlas->options.hand_back(atlas->options.ctx, question);
}

static void hand_back_all(struct entry *entry)
{
    struct qa_question *question = QF_TAKE(entry->waiting), *next;

    for (; question; question = next) {
        next = question->next;
        hand_back(entry->atlas, entry, question);
    }
}

/* Nodes that answer 404 are of a release without state maps, and if all are there are none. */
static struct qa_maps *read_answer(const struct qa_question *question, int64_t now,
                                   struct qf_err *err)
{
    if (question->rc != QF_OK) {
        (void)qf_err_set(err, question->rc, "%s", question->reason);
        return NULL;
    }
    return question->lacking ? qa_maps_none(now)
                             : qa_maps_parse(qf_strbuf_view(&question->answer), now, err);
}

static void told(struct qa_question *question)
{
    struct entry *entry = question->ctx;
    int64_t now = qf_clock_mono_ms();
    struct qf_err err = { 0 };
    struct qa_maps *maps = read_answer(question, now, &err);

    if (!maps && !entry->failed)
        QF_LOG_WARN(
            "cannot find out which state maps there are; what was known is used for a while",
            QF_KV_STR("tenant", entry->tenant), QF_KV_STR("reason", err.msg));
    if (maps) {
        (void)qa_maps_drop(entry->maps);
        entry->maps = maps;
    }
    entry->failed = !maps;
    entry->asking = false;
    entry->tried_ms = now;
    (void)qa_question_free(question);
    hand_back_all(entry);
}

static void ask(struct entry *entry)
{
    struct qa_question *question = qf_xcalloc(1, sizeof(*question));

    *question = (struct qa_question){ .tenant = qf_xstrdup(entry->tenant),
                                      .path = "/v1/state/info",
                                      .timeout_ms = ASK_MS,
                                      .aside = true,
                                      .done = told,
                                      .ctx = entry };
    qf_strbuf_puts(&question->body, "{\"tenant\":");
    qf_strbuf_json(&question->body, qf_str_from(entry->tenant));
    qf_strbuf_putc(&question->body, '}');
    entry->asking = true;
    entry->atlas->options.ask(entry->atlas->options.ctx, question);
}

/* --- who asks --- */

void qa_atlas_begin(struct qa_atlas *atlas, const struct qa_question *question, int64_t now_ms)
{
    struct entry *entry = find(atlas, question->tenant);
    bool known;

    if (!entry)
        entry = add(atlas, question->tenant);
    if (!entry || entry->asking)
        return;
    known = entry->tried_ms && now_ms - entry->tried_ms < atlas->options.fresh_ms;
    if (!known || (question->anew && !entry->failed))
        ask(entry);
}

/* What is known will do, if no answer comes soon. */
static bool will_do(const struct entry *entry, int64_t now_ms)
{
    return entry->maps &&
           entry->maps->age_ms + now_ms - entry->maps->heard_ms <= entry->atlas->options.age_ms_max;
}

void qa_atlas_end(struct qa_atlas *atlas, struct qa_question *question, int64_t now_ms)
{
    struct entry *entry = find(atlas, question->tenant);
    struct qa_question **end;

    if (!entry || !entry->asking) {
        hand_back(atlas, entry, question);
        return;
    }
    question->deadline_ms =
        will_do(entry, now_ms) ? now_ms + atlas->options.patience_ms : INT64_MAX;
    for (end = &entry->waiting; *end; end = &(*end)->next)
        ;
    question->next = NULL;
    *end = question;
}

static int64_t beat_entry(struct entry *entry, int64_t now_ms)
{
    struct qa_question **link = &entry->waiting;
    int64_t next = INT64_MAX;

    while (*link) {
        struct qa_question *question = *link;

        if (question->deadline_ms > now_ms) {
            next = QF_MIN(next, question->deadline_ms);
            link = &question->next;
            continue;
        }
        *link = question->next;
        hand_back(entry->atlas, entry, question);
    }
    return next;
}

int64_t qa_atlas_beat(struct qa_atlas *atlas, int64_t now_ms)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < atlas->count; i++)
        if (atlas->entries[i]->waiting)
            next = QF_MIN(next, beat_entry(atlas->entries[i], now_ms));
    return next;
}
