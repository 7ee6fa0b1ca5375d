/* asker.c - questions on libcurl's multi interface: who is asked next, and what is done with answers. */
#include "queryapi/fresh/asker.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/net/tls_files.h"
#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/mailbox.h"
#include "base/sys/small_file.h"
#include "base/sys/thread.h"
#include "queryapi/fresh/atlas.h"
#include "queryapi/fresh/covered.h"

#define WAIT_MS 10000
#define PATIENCE_MS 1000
#define TRY_MS 3000
#define CONNECT_MS 1000
/* Between two tries of a question, once every node was asked. */
#define PAUSE_MS 100
#define NAP_MS 1000
#define TRANSFERS_MAX 16
/* Of these to certain nodes, which may be away: the others are for queries. */
#define NODE_TRANSFERS_MAX 4
/* Besides questions: new lists of nodes, and listings that have ended. */
#define NOTES_MAX 8192
#define KEY_BYTES_MAX 4096

struct note {
    struct qa_question *question; /* or */
    char *nodes;                  /* each with a newline behind it; or */
    struct qa_status *status;     /* listed; or */
    qa_roll_heard *heard;
    void *ctx;
};

struct transfer {
    struct transfer *next;
    struct qa_asker *asker;
    CURL *easy;
    struct qa_question *questions; /* of one tenant */
    struct qf_strbuf body, answer;
    struct curl_slist *headers;
    char *node; /* a copy */
    int64_t started_ns;
    uint64_t generation; /* of the TLS files that it has */
    char error[CURL_ERROR_SIZE];
};

struct qa_asker {
    struct qa_asker_options options;
    struct qf_mailbox *box;
    struct qf_thread *thread;
    atomic_bool stop;
    CURLM *multi;
    struct transfer slots[TRANSFERS_MAX], *free_slots;
    struct qa_question *waiting; /* oldest first */
    struct qa_covered *covered;
    QF_VEC(char *) nodes;
    size_t node; /* asked first: it answered last */
    size_t node_transfers;
    struct qa_roll *roll;
    struct qa_atlas *atlas; /* NULL: state maps are not asked for */
    bool in_vain;      /* somebody waited for as long as one may, and nobody has answered since */
    uint64_t epoch;    /* of the last answer */
    int64_t warned_ms; /* of the timeout of ingest nodes that was last found too short */
    struct qf_tls_files *tls;
    char *key, *key_file;
    struct stat key_seen;
    int64_t key_look_ms;
};

struct qa_question *qa_question_free(struct qa_question *question)
{
    if (!question)
        return NULL;
    (void)qa_status_drop(question->status);
    (void)qa_maps_drop(question->maps);
    qf_strbuf_done(&question->body);
    qf_strbuf_done(&question->answer);
    free(question->tenant);
    free(question->node);
    free(question);
    return NULL;
}

static void note_free(void *arg)
{
    struct note *note = arg;

    (void)qa_question_free(note->question);
    (void)qa_status_drop(note->status);
    if (note->heard)
        note->heard(note->ctx, QF_STR(""));
    free(note->nodes);
    free(note);
}

/* --- answers --- */

static void count(struct qa_asker *asker, enum qa_asked how, const struct qa_question *question)
{
    if (asker->options.asked)
        qf_metric_add(asker->options.asked, how, 1);
    if (asker->options.seconds)
        qf_metric_observe(asker->options.seconds,
                          (double)(qf_clock_mono_ms() - question->began_ms) / 1e3);
}

static void hand_back(struct qa_asker *asker, struct qa_question *question)
{
    question->next = NULL;
    if (question->done)
        question->done(question);
    else
        asker->options.done(asker->options.ctx, question);
}

static void answer(struct qa_asker *asker, struct qa_question *question, enum qa_asked how,
                   struct qa_status *status)
{
    question->rc = QF_OK;
    question->status = status;
    if (!question->aside)
        count(asker, how, question);
    if (asker->atlas && !question->path)
        qa_atlas_end(asker->atlas, question, qf_clock_mono_ms());
    else
        hand_back(asker, question);
}

/* Of a certain node, which is nobody's answer to what is fresh. */
static void hand_back_node(struct qa_asker *asker, struct qa_question *question, qf_rc rc,
                           const char *reason)
{
    question->rc = rc;
    (void)snprintf(question->reason, sizeof(question->reason), "%s", reason);
    hand_back(asker, question);
}

static void give_up(struct qa_asker *asker, struct qa_question *question)
{
    if (question->node) {
        hand_back_node(asker, question, QF_ETIMEOUT, "it was not asked: too much else was");
        return;
    }
    question->rc = QF_EUNAVAILABLE;
    if (question->aside) {
        hand_back(asker, question);
        return;
    }
    if (question->deadline_ms - question->began_ms >= asker->options.wait_ms)
        asker->in_vain = true;
    if (!question->reason[0])
        (void)snprintf(question->reason, sizeof(question->reason),
                       "no ingest node is known, so that no partition can be asked");
    count(asker, QA_ASKED_FAILED, question);
    QF_LOG_WARN("cannot find out what is fresh, a query fails",
                QF_KV_STR("reason", question->reason), QF_KV_U64("tries", question->tries));
    hand_back(asker, question);
}

/* What a node that does not know says: the partition in its words, if it names one. */
static void note_refusal(struct transfer *transfer, long status, char *reason, size_t size)
{
    struct qf_str body = qf_strbuf_view(&transfer->answer);
    json_t *root = json_loadb(body.data ? body.data : "", body.len, 0, NULL);
    const char *message = json_string_value(json_object_get(root, "message"));

    if (status == 401 || status == 403)
        (void)snprintf(reason, size, "ingest nodes do not accept this API's key (--ingest-key)");
    else if (message)
        (void)snprintf(reason, size, "what was written last cannot be read: %.200s", message);
    else
        (void)snprintf(reason, size,
                       "what was written last cannot be read: an ingest node answers %ld", status);
    json_decref(root);
}

/* The questions of a transfer that came to nothing wait for another one. */
static void retry(struct transfer *transfer, const char *reason)
{
    struct qa_asker *asker = transfer->asker;
    struct qa_question **end = &asker->waiting, *question;
    int64_t now = qf_clock_mono_ms();

    QF_LOG_DEBUG("an ingest node does not say what is fresh", QF_KV_STR("node", transfer->node),
                 QF_KV_STR("reason", reason));
    if (asker->nodes.count && strcmp(asker->nodes.items[asker->node], transfer->node) == 0)
        asker->node = (asker->node + 1) % asker->nodes.count;
    while (*end)
        end = &(*end)->next;
    while ((question = transfer->questions) != NULL) {
        transfer->questions = question->next;
        question->next = NULL;
        question->tries++;
        question->retry_ms = question->tries < asker->nodes.count ? now : now + PAUSE_MS;
        (void)snprintf(question->reason, sizeof(question->reason), "%s", reason);
        *end = question;
        end = &question->next;
    }
}

/* The catalogue learns of the segments first, so that who has the status finds them there. */
static void take_files(struct qa_asker *asker, struct qa_status *status)
{
    for (size_t i = 0; i < status->count; i++) {
        const struct qa_fresh_partition *partition = &status->partitions[i];
        struct qf_err err = { 0 };

        if (sg_catalog_tell(asker->options.catalog, partition->files, partition->file_count,
                            &err) != QF_OK)
            status->list = true; /* too many to remember: a listing finds them */
    }
}

/* What operators should know of an answer. */
static void note_answer(struct qa_asker *asker, const struct qa_status *status, const char *node)
{
    int64_t theirs = status->query_timeout_ms, ours = asker->options.query_timeout_ms;

    if (asker->epoch && status->epoch > asker->epoch)
        QF_LOG_INFO("ingest nodes have joined or left partitions",
                    QF_KV_U64("epoch", status->epoch));
    asker->epoch = QF_MAX(asker->epoch, status->epoch);
    if (theirs > 0 && theirs < ours && theirs != asker->warned_ms) {
        QF_LOG_WARN("ingest nodes keep what queries read for less time than a query may take: long "
                    "ones are planned again and may fail; raise --query-timeout there",
                    QF_KV_STR("node", node), QF_KV_U64("ingest_ms", (uint64_t)theirs),
                    QF_KV_U64("api_ms", (uint64_t)ours));
        asker->warned_ms = theirs;
    }
}

static void succeed(struct transfer *transfer, struct qa_status *status)
{
    struct qa_asker *asker = transfer->asker;
    struct qa_question *question;

    asker->in_vain = false;
    note_answer(asker, status, transfer->node);
    take_files(asker, status);
    if (!status->list)
        qa_covered_now(asker->covered, qf_str_from(transfer->questions->tenant), status);
    while ((question = transfer->questions) != NULL) {
        transfer->questions = question->next;
        answer(asker, question, QA_ASKED_OK, qa_status_ref(status));
    }
    (void)qa_status_drop(status);
}

/* What was asked besides a status: its answer is the asker's to understand. */
static void relay(struct transfer *transfer)
{
    struct qa_question *question = QF_TAKE(transfer->questions);

    transfer->asker->in_vain = false;
    question->answer = transfer->answer;
    transfer->answer = (struct qf_strbuf)QF_STRBUF_INIT;
    answer(transfer->asker, question, QA_ASKED_OK, NULL);
}

static void conclude_node(struct transfer *transfer, CURLcode code, long http)
{
    struct qa_question *question = QF_TAKE(transfer->questions);
    char reason[300] = "";

    if (code != CURLE_OK)
        (void)snprintf(reason, sizeof(reason), "%.200s",
                       transfer->error[0] ? transfer->error : curl_easy_strerror(code));
    else if (http == 404)
        (void)snprintf(reason, sizeof(reason), "an older release, which does not tell");
    else if (http != 200)
        note_refusal(transfer, http, reason, sizeof(reason));
    question->answer = transfer->answer;
    transfer->answer = (struct qf_strbuf)QF_STRBUF_INIT;
    transfer->asker->node_transfers--;
    hand_back_node(transfer->asker, question, reason[0] ? QF_EUNAVAILABLE : QF_OK, reason);
}

/* A node of a release that knows of no such question. If all are, there is no answer. */
static bool is_lacking(struct transfer *transfer, long http)
{
    struct qa_question *question = transfer->questions;

    if (!question->aside || http != 404)
        return false;
    return ++question->lacking >= transfer->asker->nodes.count;
}

static void conclude(struct transfer *transfer, CURLcode code)
{
    struct qa_status *status = NULL;
    struct qf_err err = { 0 };
    char reason[300];
    long http = 0;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &http);
    if (transfer->questions->node) {
        conclude_node(transfer, code, http);
        return;
    }
    if (code != CURLE_OK) {
        (void)snprintf(reason, sizeof(reason),
                       "what was written last cannot be read: no ingest node answers for any "
                       "partition (%.150s)",
                       transfer->error[0] ? transfer->error : curl_easy_strerror(code));
    } else if (is_lacking(transfer, http)) {
        relay(transfer);
        return;
    } else if (http != 200) {
        note_refusal(transfer, http, reason, sizeof(reason));
    } else if (transfer->questions->path) {
        transfer->questions->lacking = 0;
        relay(transfer);
        return;
    } else {
        status = qa_status_parse(qf_strbuf_view(&transfer->answer), &err);
        if (!status)
            (void)snprintf(reason, sizeof(reason), "%s", err.msg);
    }
    if (status)
        succeed(transfer, status);
    else
        retry(transfer, reason);
}

static void finish(struct transfer *transfer)
{
    struct qa_asker *asker = transfer->asker;

    free(transfer->node);
    transfer->node = NULL;
    transfer->next = asker->free_slots;
    asker->free_slots = transfer;
}

static void collect(struct qa_asker *asker)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(asker->multi, &left)) != NULL) {
        struct transfer *transfer = NULL;
        CURLcode code = message->data.result;
        CURL *easy = message->easy_handle;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
        (void)curl_multi_remove_handle(asker->multi, easy);
        conclude(transfer, code);
        finish(transfer);
    }
}

/* --- questions --- */

static size_t on_bytes(char *data, size_t size, size_t n, void *arg)
{
    struct transfer *transfer = arg;

    if (transfer->answer.len + size * n > QA_STATUS_BYTES_MAX)
        return 0;
    qf_strbuf_add(&transfer->answer, data, size * n);
    return size * n;
}

static bool may_share(const struct qa_question *a, const struct qa_question *b)
{
    return !a->path && !b->path && strcmp(a->tenant, b->tenant) == 0;
}

static bool may_begin(const struct qa_asker *asker, const struct qa_question *question, int64_t now)
{
    if (question->node)
        return asker->node_transfers < NODE_TRANSFERS_MAX;
    return asker->nodes.count && question->retry_ms <= now;
}

/* All questions of the first one's tenant that may be sent now, out of the line. */
static struct qa_question *take_together(struct qa_asker *asker, int64_t now)
{
    struct qa_question **link = &asker->waiting, *together = NULL, **end = &together;

    while (*link) {
        struct qa_question *question = *link;

        if (!may_begin(asker, question, now) || (together && !may_share(question, together))) {
            link = &question->next;
            continue;
        }
        *link = question->next;
        question->next = NULL;
        *end = question;
        end = &question->next;
    }
    return together;
}

static void set_blob(CURL *easy, CURLoption option, char *text)
{
    struct curl_blob blob = { .data = text,
                              .len = text ? strlen(text) : 0,
                              .flags = CURL_BLOB_COPY };

    if (text)
        (void)curl_easy_setopt(easy, option, &blob);
}

static void set_authorities(struct transfer *transfer)
{
    struct qf_tls_files *files = transfer->asker->tls;
    const struct qf_tls_texts *texts;

    if (!files || qf_tls_files_generation(files) == transfer->generation)
        return;
    texts = qf_tls_files_take(files);
    set_blob(transfer->easy, CURLOPT_CAINFO_BLOB, texts->ca);
    transfer->generation = texts->generation;
    qf_tls_texts_drop(texts);
}

static void set_headers(struct transfer *transfer)
{
    struct qf_strbuf line = QF_STRBUF_INIT;

    curl_slist_free_all(transfer->headers);
    transfer->headers = curl_slist_append(NULL, "Content-Type: application/json");
    transfer->headers = curl_slist_append(transfer->headers, "Expect:");
    if (transfer->asker->key) {
        qf_strbuf_printf(&line, "Authorization: Bearer %s", transfer->asker->key);
        transfer->headers = curl_slist_append(transfer->headers, qf_strbuf_cstr(&line));
    }
    qf_strbuf_done(&line);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
}

/* One body for all of them: their times together. */
static void make_body(struct transfer *transfer)
{
    const struct qa_question *question = transfer->questions;
    int64_t min_ts = INT64_MAX, max_ts = INT64_MIN;

    qf_strbuf_reset(&transfer->body);
    if (question->path) {
        qf_strbuf_str(&transfer->body, qf_strbuf_view(&question->body));
        return;
    }
    for (; question; question = question->next) {
        min_ts = QF_MIN(min_ts, question->min_ts);
        max_ts = QF_MAX(max_ts, question->max_ts);
    }
    qa_covered_ask(transfer->asker->covered, qf_str_from(transfer->questions->tenant), min_ts,
                   max_ts, &transfer->body);
}

static void begin(struct qa_asker *asker, struct qa_question *questions)
{
    struct transfer *transfer = asker->free_slots;
    struct qf_strbuf url = QF_STRBUF_INIT;

    asker->free_slots = transfer->next;
    transfer->questions = questions;
    transfer->node =
        qf_xstrdup(questions->node ? questions->node : asker->nodes.items[asker->node]);
    asker->node_transfers += questions->node != NULL;
    transfer->error[0] = '\0';
    qf_strbuf_reset(&transfer->answer);
    make_body(transfer);
    qf_strbuf_printf(&url, "%s://%s%s", asker->tls ? "https" : "http", transfer->node,
                     questions->path ? questions->path : "/v1/heads/status");
    (void)curl_easy_setopt(transfer->easy, CURLOPT_URL, qf_strbuf_cstr(&url));
    qf_strbuf_done(&url);
    (void)curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDS, qf_strbuf_cstr(&transfer->body));
    (void)curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE, (long)transfer->body.len);
    (void)curl_easy_setopt(transfer->easy, questions->node ? CURLOPT_HTTPGET : CURLOPT_POST, 1L);
    set_headers(transfer);
    set_authorities(transfer);
    (void)curl_multi_add_handle(asker->multi, transfer->easy);
}

static void begin_waiting(struct qa_asker *asker)
{
    int64_t now = qf_clock_mono_ms();

    while (asker->free_slots) {
        struct qa_question *questions = take_together(asker, now);

        if (!questions)
            return;
        begin(asker, questions);
    }
}

/* How long the query can wait, and how long it is any use. */
static void take_question(struct qa_asker *asker, struct qa_question *question)
{
    struct qa_question **end = &asker->waiting;
    int64_t now = qf_clock_mono_ms();

    question->began_ms = question->retry_ms = now;
    question->deadline_ms =
        now + (asker->in_vain ? asker->options.patience_ms : asker->options.wait_ms);
    if (question->timeout_ms > 0)
        question->deadline_ms = QF_MIN(question->deadline_ms, now + question->timeout_ms);
    if (asker->atlas && !question->path)
        qa_atlas_begin(asker->atlas, question, now);
    if (!question->path &&
        qa_covered_below(asker->covered, qf_str_from(question->tenant), question->max_ts)) {
        answer(asker, question, QA_ASKED_BELOW_FLOOR, qa_status_none());
        return;
    }
    while (*end)
        end = &(*end)->next;
    *end = question;
}

static void take_own_question(void *ctx, struct qa_question *question)
{
    take_question(ctx, question);
}

static void hand_back_known(void *ctx, struct qa_question *question)
{
    hand_back(ctx, question);
}

static void give_up_late(struct qa_asker *asker)
{
    struct qa_question **link = &asker->waiting;
    int64_t now = qf_clock_mono_ms();

    while (*link) {
        struct qa_question *question = *link;

        if (question->deadline_ms > now) {
            link = &question->next;
            continue;
        }
        *link = question->next;
        give_up(asker, question);
    }
}

/* --- the thread --- */

static void take_nodes(struct qa_asker *asker, char *text)
{
    char *line, *rest = text;

    while (asker->nodes.count)
        free(asker->nodes.items[--asker->nodes.count]);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (*line)
            QF_VEC_PUSH(&asker->nodes, qf_xstrdup(line));
    asker->node = 0;
}

static void take_notes(struct qa_asker *asker)
{
    struct note *note;

    while ((note = qf_mailbox_try_receive(asker->box)) != NULL) {
        if (note->question)
            take_question(asker, QF_TAKE(note->question));
        else if (note->nodes)
            take_nodes(asker, note->nodes);
        else if (note->heard)
            qa_roll_call(asker->roll, asker->nodes.items, asker->nodes.count, QF_TAKE(note->heard),
                         note->ctx);
        else
            qa_covered_listed(asker->covered, note->status);
        note_free(note);
    }
}

static qf_rc read_key(struct qa_asker *asker, struct qf_err *err)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct stat seen;
    qf_rc rc = qf_small_file_read(asker->key_file, "the key for ingest nodes", KEY_BYTES_MAX, &text,
                                  &seen, err);
    struct qf_str key = qf_str_trim(qf_strbuf_view(&text));

    if (rc == QF_OK && (!key.len || memchr(key.data, '\n', key.len)))
        rc = qf_err_set(err, QF_EINVAL, "%s: expected one line with a key", asker->key_file);
    if (rc == QF_OK) {
        free(asker->key);
        asker->key = qf_xmemdup0(key.data, key.len);
        asker->key_seen = seen;
    }
    qf_strbuf_done(&text);
    return rc;
}

/* Keys and certificates are renewed under running processes. */
static void look_at_files(struct qa_asker *asker)
{
    int64_t now = qf_clock_mono_ms();
    struct qf_err err = { 0 };

    if (asker->tls)
        qf_tls_files_look(asker->tls);
    if (!asker->key_file || now < asker->key_look_ms)
        return;
    asker->key_look_ms = now + 1000;
    if (qf_small_file_changed(asker->key_file, &asker->key_seen) && read_key(asker, &err) != QF_OK)
        QF_LOG_WARN("the key for ingest nodes cannot be read, the one before stays",
                    QF_KV_STR("error", err.msg));
}

static int time_to_sleep(const struct qa_asker *asker, int64_t known_ms)
{
    int64_t now = qf_clock_mono_ms(), next = QF_MIN(known_ms, now + NAP_MS);

    for (const struct qa_question *q = asker->waiting; q; q = q->next) {
        next = QF_MIN(next, q->deadline_ms);
        if (asker->free_slots &&
            (q->node ? asker->node_transfers < NODE_TRANSFERS_MAX : asker->nodes.count > 0))
            next = QF_MIN(next, q->retry_ms);
    }
    return next <= now ? 0 : (int)(next - now);
}

static void run(void *arg)
{
    struct qa_asker *asker = arg;
    int64_t next = INT64_MAX; /* when somebody has waited for maps long enough */
    int still;

    while (!atomic_load(&asker->stop)) {
        look_at_files(asker);
        take_notes(asker);
        give_up_late(asker);
        if (asker->atlas)
            next = qa_atlas_beat(asker->atlas, qf_clock_mono_ms());
        begin_waiting(asker);
        (void)curl_multi_perform(asker->multi, &still);
        collect(asker);
        if (!qf_mailbox_count(asker->box))
            (void)curl_multi_poll(asker->multi, NULL, 0, time_to_sleep(asker, next), NULL);
    }
}

/* --- start and end --- */

static void slot_init(struct qa_asker *asker, struct transfer *slot)
{
    CURL *easy = slot->easy = curl_easy_init();

    slot->asker = asker;
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, slot);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, slot);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->error);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)asker->options.try_ms);
    if (asker->tls)
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* our authorities, no others */
    slot->next = asker->free_slots;
    asker->free_slots = slot;
}

static qf_rc read_files(struct qa_asker *asker, struct qf_err *err)
{
    struct qf_tls_paths paths = { asker->options.tls_ca_file, NULL, NULL };

    if (paths.ca_file) {
        asker->tls = qf_tls_files_new(&paths, err);
        if (!asker->tls)
            return err->rc;
    }
    if (!asker->options.key_file)
        return QF_OK;
    asker->key_file = qf_xstrdup(asker->options.key_file);
    return read_key(asker, err);
}

struct qa_asker *qa_asker_new(const struct qa_asker_options *options, struct qf_err *err)
{
    struct qa_asker *asker = qf_xcalloc(1, sizeof(*asker));

    asker->options = *options;
    asker->options.wait_ms = options->wait_ms ? options->wait_ms : WAIT_MS;
    asker->options.patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;
    asker->options.try_ms = options->try_ms ? options->try_ms : TRY_MS;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    asker->multi = curl_multi_init();
    asker->box = qf_mailbox_new(options->questions_max + NOTES_MAX);
    asker->covered = qa_covered_new();
    asker->roll = qa_roll_new(take_own_question, asker);
    if (options->maps)
        asker->atlas =
            qa_atlas_new(&(struct qa_atlas_options){ .age_ms_max = options->maps_age_ms_max,
                                                     .ask = take_own_question,
                                                     .hand_back = hand_back_known,
                                                     .ctx = asker });
    if (read_files(asker, err) != QF_OK)
        return qa_asker_free(asker);
    for (size_t i = 0; i < TRANSFERS_MAX; i++)
        slot_init(asker, &asker->slots[i]);
    asker->thread = qf_thread_start("fresh", run, asker);
    if (asker->thread)
        return asker;
    (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start a thread");
    return qa_asker_free(asker);
}

static void drop_questions(struct qa_question *question)
{
    for (struct qa_question *next; question; question = next) {
        next = question->next;
        (void)qa_question_free(question);
    }
}

struct qa_asker *qa_asker_free(struct qa_asker *asker)
{
    if (!asker)
        return NULL;
    atomic_store(&asker->stop, true);
    (void)curl_multi_wakeup(asker->multi);
    if (asker->thread)
        (void)qf_thread_join(asker->thread);
    for (size_t i = 0; i < TRANSFERS_MAX; i++) {
        struct transfer *slot = &asker->slots[i];

        if (slot->node)
            (void)curl_multi_remove_handle(asker->multi, slot->easy);
        drop_questions(slot->questions);
        curl_easy_cleanup(slot->easy);
        curl_slist_free_all(slot->headers);
        qf_strbuf_done(&slot->body);
        qf_strbuf_done(&slot->answer);
        free(slot->node);
    }
    drop_questions(asker->waiting);
    (void)curl_multi_cleanup(asker->multi);
    (void)qf_mailbox_free(asker->box, note_free);
    (void)qa_roll_free(asker->roll);
    (void)qa_atlas_free(asker->atlas);
    (void)qa_covered_free(asker->covered);
    (void)qf_tls_files_free(asker->tls);
    while (asker->nodes.count)
        free(asker->nodes.items[--asker->nodes.count]);
    QF_VEC_DONE(&asker->nodes);
    free(asker->key);
    free(asker->key_file);
    free(asker);
    return NULL;
}

static bool post(struct qa_asker *asker, struct note note)
{
    struct note *copy = qf_xmalloc(sizeof(*copy));

    *copy = note;
    if (!qf_mailbox_try_send(asker->box, copy)) {
        copy->question = NULL;
        copy->heard = NULL;
        note_free(copy);
        return false;
    }
    (void)curl_multi_wakeup(asker->multi);
    return true;
}

bool qa_asker_submit(struct qa_asker *asker, struct qa_question *question)
{
    return post(asker, (struct note){ .question = question });
}

void qa_asker_nodes(struct qa_asker *asker, const char *const *addresses, size_t count)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_puts(&text, "\n");
    for (size_t i = 0; i < count; i++)
        qf_strbuf_printf(&text, "%s\n", addresses[i]);
    (void)post(asker, (struct note){ .nodes = qf_strbuf_take(&text) });
}

void qa_asker_listed(struct qa_asker *asker, struct qa_status *status)
{
    (void)post(asker, (struct note){ .status = qa_status_ref(status) });
}

bool qa_asker_roll(struct qa_asker *asker, qa_roll_heard *heard, void *ctx)
{
    return post(asker, (struct note){ .heard = heard, .ctx = ctx });
}
