/* driver.c - the hands of meta's leader: requests to keepers, asks to this node. */
#include "ingest/ring/driver.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "ingest/docs/replicas.h"
#include "ingest/ring/names.h"
#include "ring/coord/coord.h"
#include "ring/wire/keeper.h"
#include "segments/store/keep_client.h"

/* A look is short; pieces of a stream are as long as their blobs. */
#define LOOK_MS 3000
#define CALL_MS 30000
#define STREAM_MS (INT64_C(5) * 60 * 1000)

struct in_driver {
    struct in_driver_options options;
    struct rg_board *board;
    struct sg_keep_client *client;
    struct rg_hands hands;
    struct in_names *names;
    _Atomic(struct qn_node *) node;
    atomic_bool stopping;
    struct qf_lock *lock; /* of what follows: the node's thread meets whoever halts it */
    struct rg_lead *lead; /* NULL: not started, or halted */
    uint64_t term;        /* as was heard last */
};

/* A question about how far meta is. */
struct confirming {
    struct in_driver *driver;
    uint64_t term;
};

/* --- keepers --- */

static struct sg_store_limit within(struct in_driver *driver, int64_t ms)
{
    return (struct sg_store_limit){ .cancel = &driver->stopping,
                                    .deadline_ms = qf_clock_mono_ms() + ms };
}

static struct rg_keep_query query_of(const struct rg_place_of_call *at)
{
    return (struct rg_keep_query){ .slot = at->slot, .epoch = at->epoch };
}

static qf_rc look(void *ctx, const char *url, struct rg_looked *ret, struct qf_err *err)
{
    struct in_driver *driver = ctx;
    const struct sg_store_limit limit = within(driver, LOOK_MS);
    const struct rg_keep_query query = { 0 };
    struct sg_keep_answer answer = { 0 };
    qf_rc rc = sg_keep_ask(driver->client, url, "GET", RG_KEEP_STATUS, &query, QF_STR(""), &limit,
                           NULL, &answer, err);

    *ret = (struct rg_looked){ answer.incarnation, answer.told };
    if (rc == QF_OK && !answer.incarnation)
        rc = qf_err_set(err, QF_EPROTO, "%s is not a storage node", url);
    return rc;
}

static qf_rc heat(void *ctx, const char *url, uint64_t ret_heat[RG_SLOTS], struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct in_driver *driver = ctx;
    const struct sg_store_limit limit = within(driver, LOOK_MS);
    const struct rg_keep_query query = { 0 };
    struct sg_keep_answer answer = { 0 };
    uint32_t count;
    qf_rc rc = sg_keep_ask(driver->client, url, "GET", RG_KEEP_HEAT, &query, QF_STR(""), &limit,
                           &body, &answer, err);

    if (rc == QF_OK && rg_told_decode(qf_strbuf_view(&body), ret_heat, &count) != QF_OK)
        rc = qf_err_set(err, QF_EPROTO, "%s: an answer that cannot be read", url);
    return rc;
}

static qf_rc tell(void *ctx, const char *url, const uint64_t *epochs, uint32_t count,
                  struct rg_looked *ret, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct in_driver *driver = ctx;
    const struct sg_store_limit limit = within(driver, CALL_MS);
    const struct rg_keep_query query = { 0 };
    struct sg_keep_answer answer = { 0 };
    qf_rc rc;

    rg_told_encode(&body, epochs, count);
    rc = sg_keep_ask(driver->client, url, "POST", RG_KEEP_TELL, &query, qf_strbuf_view(&body),
                     &limit, NULL, &answer, err);
    *ret = (struct rg_looked){ answer.incarnation, answer.told };
    return rc;
}

/* POST something about names: what it holds, and what it lacks. */
static qf_rc about_names(struct in_driver *driver, const char *path,
                         const struct rg_place_of_call *at, const struct rg_names *names,
                         int64_t ms, struct rg_moved *ret, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT, answer = QF_STRBUF_INIT;
    const struct sg_store_limit limit = within(driver, ms);
    const struct rg_keep_query query = query_of(at);
    struct sg_keep_answer said = { 0 };
    struct rg_held held;
    qf_rc rc;

    if (names)
        rg_names_encode(&body, names);
    rc = sg_keep_ask(driver->client, at->url, "POST", path, &query, qf_strbuf_view(&body), &limit,
                     &answer, &said, err);
    if (rc != QF_OK)
        return rc;
    if (rg_held_decode(qf_strbuf_view(&answer), &held) != QF_OK)
        return qf_err_set(err, QF_EPROTO, "%s: an answer that cannot be read", at->url);
    *ret = (struct rg_moved){ .incarnation = held.incarnation,
                              .blobs = held.blobs,
                              .bytes = held.bytes,
                              .missing = held.missing_count };
    rg_held_done(&held);
    return QF_OK;
}

static struct rg_names names_of(const struct rg_place_of_call *at, const struct qf_str *names,
                                size_t count)
{
    struct rg_names of = { .names = (struct qf_str *)names, .count = count };

    for (; of.source_count < QF_MIN(at->source_count, (size_t)RG_KEEP_SOURCES_MAX);
         of.source_count++)
        of.sources[of.source_count] = qf_str_from(at->sources[of.source_count]);
    return of;
}

static qf_rc hold(void *ctx, const struct rg_place_of_call *at, const struct qf_str *names,
                  size_t count, struct rg_moved *ret, struct qf_err *err)
{
    const struct rg_names of = { .names = (struct qf_str *)names, .count = count };

    return about_names(ctx, RG_KEEP_HOLD, at, &of, CALL_MS, ret, err);
}

static qf_rc stream(void *ctx, const struct rg_place_of_call *at, const struct qf_str *names,
                    size_t count, struct rg_moved *ret, struct qf_err *err)
{
    const struct rg_names of = names_of(at, names, count);

    if (!count) { /* nothing is fetched: only who it is */
        return hold(ctx, at, names, 0, ret, err);
    }
    return about_names(ctx, RG_KEEP_STREAM, at, &of, STREAM_MS, ret, err);
}

/* A page of what @source has goes to the newcomer. @last: the last name of it. */
static qf_rc join_page(struct in_driver *driver, const struct rg_place_of_call *at,
                       const struct rg_docs *docs, const char *source,
                       char last[RG_BLOB_NAME_MAX + 1], struct qf_err *err)
{
    struct rg_keep_query query = query_of(at);

    for (size_t i = 0; i < docs->count; i++) {
        QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
        const struct sg_store_limit limit = within(driver, CALL_MS);
        int status;
        qf_rc rc;

        query.name = docs->items[i].name;
        if (query.name.len > RG_BLOB_NAME_MAX ||
            rg_sheet_decode(docs->items[i].bytes, &sheet) != QF_OK)
            return qf_err_set(err, QF_EPROTO, "%s has a document that cannot be read", source);
        rc = in_replica_join(driver->client, at->url, &query, &sheet, &limit, &status, err);
        if (rc != QF_OK)
            return rc;
        memcpy(last, query.name.data, query.name.len);
        last[query.name.len] = 0;
    }
    return QF_OK;
}

static qf_rc join_source(struct in_driver *driver, const struct rg_place_of_call *at,
                         const char *source, struct qf_err *err)
{
    char last[RG_BLOB_NAME_MAX + 1] = "";
    bool more = true;
    qf_rc rc = QF_OK;

    while (more && rc == QF_OK) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
        const struct sg_store_limit limit = within(driver, CALL_MS);
        struct rg_keep_query query = query_of(at);
        struct sg_keep_answer said = { 0 };
        struct rg_docs docs;

        query.after = qf_str_from(last);
        rc = sg_keep_ask(driver->client, source, "GET", RG_KEEP_DOCS, &query, QF_STR(""), &limit,
                         &body, &said, err);
        if (rc != QF_OK)
            break;
        if (rg_docs_decode(qf_strbuf_view(&body), &docs) != QF_OK)
            return qf_err_set(err, QF_EPROTO, "%s: documents that cannot be read", source);
        rc = join_page(driver, at, &docs, source, last, err);
        more = docs.more && docs.count;
        rg_docs_done(&docs);
    }
    return rc;
}

/* The sources are a majority of the owners before, and know the epoch: what is written in an older one reaches
 * no majority any more, and what was is with one of them (!). */
static qf_rc documents(void *ctx, const struct rg_place_of_call *at, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < at->source_count && rc == QF_OK; i++)
        rc = join_source(ctx, at, at->sources[i], err);
    return rc;
}

static qf_rc clean(void *ctx, const struct rg_place_of_call *at, struct qf_err *err)
{
    struct rg_moved moved;

    return about_names(ctx, RG_KEEP_CLEAN, at, NULL, CALL_MS, &moved, err);
}

/* --- this node --- */

static qf_rc list(void *ctx, uint32_t slot, struct rg_listing *listing, struct qf_err *err)
{
    return in_names_list(((struct in_driver *)ctx)->names, slot, listing, err);
}

static qf_rc adopt(void *ctx, uint32_t partition, const struct rg_ring *ring, struct qf_err *err)
{
    return in_names_adopt(((struct in_driver *)ctx)->names, partition, ring, err);
}

static uint32_t partitions(void *ctx)
{
    return qn_partitions(atomic_load(&((struct in_driver *)ctx)->node));
}

static void forget(void *ctx, struct qn_ask *ask)
{
    (void)ctx;
    (void)qn_ask_free(ask);
}

static void propose(void *ctx, const struct rg_entry *entry)
{
    struct in_driver *driver = ctx;
    struct qn_ask *ask = rg_coord_wish(&(struct rg_wish){ .entry = *entry });

    ask->done = forget;
    if (!qn_ask(atomic_load(&driver->node), ask))
        (void)qn_ask_free(ask); /* the driver proposes it again */
}

static void confirmed(void *ctx, struct qn_ask *ask)
{
    struct confirming *confirming = ctx;
    struct in_driver *driver = confirming->driver;
    uint64_t applied;

    qf_lock_take(driver->lock);
    if (driver->lead && ask->answer.err.rc == QF_OK &&
        qf_parse_u64(qf_strbuf_view(&ask->answer.text), &applied))
        rg_lead_confirmed(driver->lead, confirming->term, applied);
    qf_lock_drop(driver->lock);
    free(confirming);
    (void)qn_ask_free(ask);
}

static void confirm(void *ctx, uint64_t term)
{
    struct in_driver *driver = ctx;
    struct confirming *confirming = qf_xcalloc(1, sizeof(*confirming));
    struct qn_ask *ask = rg_coord_question(RG_ASK_APPLIED, QF_STR(""));

    *confirming = (struct confirming){ driver, term };
    ask->done = confirmed;
    ask->ctx = confirming;
    if (qn_ask(atomic_load(&driver->node), ask))
        return;
    free(confirming);
    (void)qn_ask_free(ask);
}

/* --- beginning and end --- */

struct in_driver *in_driver_new(const struct in_driver_options *options, struct rg_board *board,
                                struct qf_err *err)
{
    struct in_driver *driver = qf_xcalloc(1, sizeof(*driver));
    const struct sg_keep_client_options client = { .key_file = options->key_file,
                                                   .ca_file = options->ca_file,
                                                   .cert_file = options->cert_file,
                                                   .cert_key_file = options->cert_key_file };

    driver->options = *options;
    driver->board = board;
    driver->lock = qf_lock_new();
    driver->hands =
        (struct rg_hands){ driver, look, tell, list, stream, documents, hold, clean, heat, adopt };
    driver->client = sg_keep_client_new(&client, err);
    return driver->client ? driver : in_driver_free(driver);
}

qf_rc in_driver_start(struct in_driver *driver, struct qn_node *node, struct qf_err *err)
{
    const struct rg_lead_options lead = { .hands = &driver->hands,
                                          .board = driver->board,
                                          .propose = propose,
                                          .confirm = confirm,
                                          .partitions = partitions,
                                          .ctx = driver,
                                          .dead_ms = driver->options.dead_ms,
                                          .hours = driver->options.hours };
    qf_rc rc = QF_OK;

    atomic_store(&driver->node, node);
    driver->names = in_names_new(node);
    qf_lock_take(driver->lock);
    driver->lead = rg_lead_new(&lead, err);
    if (!driver->lead)
        rc = QF_EUNAVAILABLE;
    else if (driver->term)
        rg_lead_set(driver->lead, driver->term);
    qf_lock_drop(driver->lock);
    return rc;
}

void in_driver_lead(struct in_driver *driver, uint64_t term)
{
    qf_lock_take(driver->lock);
    driver->term = term;
    if (driver->lead)
        rg_lead_set(driver->lead, term);
    qf_lock_drop(driver->lock);
}

void in_driver_halt(struct in_driver *driver)
{
    struct rg_lead *lead;

    if (!driver)
        return;
    atomic_store(&driver->stopping, true);
    qf_lock_take(driver->lock);
    lead = driver->lead;
    driver->lead = NULL;
    qf_lock_drop(driver->lock);
    (void)rg_lead_free(lead);
}

struct in_driver *in_driver_free(struct in_driver *driver)
{
    if (driver) {
        in_driver_halt(driver);
        driver->names = in_names_free(driver->names);
        driver->client = sg_keep_client_free(driver->client);
        driver->lock = qf_lock_free(driver->lock);
        free(driver);
    }
    return NULL;
}

void in_driver_figures(struct in_driver *driver, struct in_driver_counts *ret_counts)
{
    struct rg_lead_figures *figures;

    *ret_counts = (struct in_driver_counts){ 0 };
    qf_lock_take(driver->lock);
    if (driver->lead) {
        figures = rg_lead_figures(driver->lead);
        *ret_counts = (struct in_driver_counts){ .blobs = atomic_load(&figures->blobs),
                                                 .bytes = atomic_load(&figures->bytes),
                                                 .failed = atomic_load(&figures->streams_failed),
                                                 .cleaned = atomic_load(&figures->cleaned),
                                                 .moves = atomic_load(&figures->running),
                                                 .open = atomic_load(&figures->open),
                                                 .unwritable = atomic_load(&figures->unwritable) };
    }
    qf_lock_drop(driver->lock);
}
