/* query_ask.c - `promfabric query` asks the API. */
#include "cli/query_ask.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queryapi/http/params.h"

#define LINE_BYTES_MAX ((size_t)16 << 20)
#define DOCUMENT_BYTES_MAX ((size_t)1 << 30)
/* Answers of hundreds of thousands of points come in megabytes. */
#define RECEIVE_BYTES 262144L
#define PROGRESS "{\"type\":\"progress\""

struct listener {
    const struct cli_question *question;
    struct cli_reply *reply;
    struct qf_strbuf line;
    struct qf_strbuf body; /* of an answer that is no event stream */
    bool events, done_ok;
};

/* --- how far it is --- */

static volatile sig_atomic_t progress_shown;

/* The line is taken back, then Ctrl-C does what it always does. */
static void on_interrupt(int number)
{
    static const char clean[] = "\r\033[K";
    ssize_t ignored = progress_shown ? write(STDERR_FILENO, clean, sizeof(clean) - 1) : 0;

    (void)ignored;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void hide_progress(void)
{
    if (progress_shown)
        (void)fprintf(stderr, "\r\033[K");
    progress_shown = 0;
}

static void show_progress(const struct cli_question *question, const json_t *data)
{
    if (!question->terminal)
        return;
    progress_shown = 1;
    (void)fprintf(stderr, "\r\033[K%lld of %lld work items, %lld workers",
                  (long long)json_integer_value(json_object_get(data, "work_done")),
                  (long long)json_integer_value(json_object_get(data, "work_total")),
                  (long long)json_integer_value(json_object_get(data, "workers")));
}

static void print_notes(const json_t *data, const char *key)
{
    const json_t *note;
    size_t i;

    json_array_foreach(json_object_get(data, key), i, note)
    {
        if (json_is_string(note))
            (void)fprintf(stderr, "%s\n", json_string_value(note));
    }
}

/* --- events --- */

static void fail(struct cli_reply *reply, const char *message)
{
    reply->failed = true;
    (void)snprintf(reply->message, sizeof(reply->message), "%s", message ? message : "?");
}

static void hear(struct listener *listener, const char *type, json_t *data)
{
    const struct cli_question *question = listener->question;

    if (question->explain)
        cli_explain_hear(question->explain, type, data);
    if (strcmp(type, "progress") == 0) {
        show_progress(question, data);
    } else if (strcmp(type, "error") == 0) {
        fail(listener->reply, json_string_value(json_object_get(data, "message")));
    } else if (strcmp(type, "done") == 0) {
        const char *status = json_string_value(json_object_get(data, "status"));

        hide_progress();
        listener->done_ok = status && strcmp(status, "ok") == 0;
        print_notes(data, "warnings");
        print_notes(data, "infos");
    } else {
        cli_answer_event(&listener->reply->answer, type, data);
    }
}

static void on_event(struct listener *listener, const char *text)
{
    size_t flags = cli_event_flags(text);
    json_t *event;
    const char *type;

    if (listener->question->json && strncmp(text, PROGRESS, sizeof(PROGRESS) - 1) != 0) {
        hide_progress();
        (void)puts(text);
        if (flags)
            return; /* values, and nobody looks at them here */
    }
    event = json_loads(text, flags, NULL);
    type = json_string_value(json_object_get(event, "type"));
    if (type)
        hear(listener, type, json_object_get(event, "data"));
    else
        fail(listener->reply, "the API sent an event that is no JSON");
    json_decref(event);
}

static size_t on_bytes(char *data, size_t size, size_t count, void *arg)
{
    struct listener *listener = arg;
    struct qf_str rest = { data, size * count };
    const char *end;

    if (!listener->events) {
        qf_strbuf_str(&listener->body, rest);
        return listener->body.overflowed ? 0 : size * count;
    }
    while ((end = memchr(rest.data, '\n', rest.len))) {
        size_t len = (size_t)(end - rest.data);

        qf_strbuf_add(&listener->line, rest.data, len);
        rest = qf_str_sub(rest, len + 1, rest.len);
        if (strncmp(qf_strbuf_cstr(&listener->line), "data: ", 6) == 0)
            on_event(listener, listener->line.data + 6);
        qf_strbuf_reset(&listener->line);
    }
    qf_strbuf_str(&listener->line, rest);
    if (listener->question->json) /* once for all that came: an event may be a single point */
        (void)fflush(stdout);
    return listener->line.overflowed ? 0 : size * count;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct listener *listener = arg;
    size_t len = size * count;

    if (len > 13 && strncasecmp(data, "content-type:", 13) == 0)
        listener->events = memmem(data, len, "text/event-stream", 17) != NULL;
    return len;
}

/* --- what is asked --- */

static char *events_body(const struct cli_question *question)
{
    json_t *body = json_object();
    char *text;

    (void)json_object_set_new(body, "q", json_string(question->expr));
    (void)json_object_set_new(body, "e", json_string(question->end));
    (void)json_object_set_new(body, "s", json_string(question->start ? question->start : "e"));
    if (question->step)
        (void)json_object_set_new(body, "step", json_string(question->step));
    if (!question->json)
        (void)json_object_set_new(body, "format", json_string("batch"));
    (void)json_object_set_new(body, question->events ? "explain" : "progress", json_true());
    text = json_dumps(body, 0);
    json_decref(body);
    return text;
}

static void add_field(struct qf_strbuf *body, const char *name, const char *value)
{
    char *escaped = curl_easy_escape(NULL, value, (int)strlen(value));

    qf_strbuf_printf(body, "%s%s=%s", body->len ? "&" : "", name, escaped ? escaped : "");
    curl_free(escaped);
}

/* A form. "now" is the API's. */
static char *instant_body(const struct cli_question *question, qf_time_ms at)
{
    struct qf_strbuf body = QF_STRBUF_INIT;
    char text[40];

    add_field(&body, "query", question->expr);
    if (strcmp(question->end, "now") != 0) {
        (void)snprintf(text, sizeof(text), "%.3f", (double)at / 1000);
        add_field(&body, "time", text);
    }
    return qf_strbuf_take(&body);
}

static bool is_before_now(const char *time)
{
    return strncmp(time, "-", 1) == 0 || strncmp(time, "now-", 4) == 0;
}

/* Before anybody is asked, so that what is wrong is said of the flag and not of a parameter. */
static bool read_times(const struct cli_question *question, qf_time_ms *ret_end,
                       struct cli_reply *reply)
{
    const char *start = question->start;
    qf_time_ms first = 0, now = qf_clock_wall_ms();
    struct qf_err err = { 0 };

    if (qa_param_when("--end", qf_str_from(question->end), now, QF_TIME_NEVER, ret_end, &err) ||
        (start && qa_param_when("--start", qf_str_from(start), now, *ret_end, &first, &err))) {
        fail(reply, err.msg);
        return false;
    }
    if (!start || first <= *ret_end || !is_before_now(start))
        return true;
    (void)qf_err_set(&err, QF_EINVAL,
                     "--start %.30s is before now, but after --end; before the end is e%.30s",
                     start, strchr(start, '-'));
    fail(reply, err.msg);
    return false;
}

/* --- how it ends --- */

static void read_document(const struct listener *listener, long status)
{
    struct cli_reply *reply = listener->reply;
    json_t *answer =
        json_loadb(listener->body.data ? listener->body.data : "", listener->body.len, 0, NULL);
    const json_t *text = json_object_get(answer, "error");

    if (!json_is_string(text)) /* what was refused before it was a query */
        text = json_object_get(answer, "message");
    print_notes(answer, "warnings");
    print_notes(answer, "infos");
    if (json_is_string(text))
        fail(reply, json_string_value(text));
    else if (status != 200 || !cli_answer_document(&reply->answer, json_object_get(answer, "data")))
        (void)snprintf(reply->message, sizeof(reply->message), "%s answered HTTP status %ld%s",
                       listener->question->web->url, status,
                       status == 200 ? ", but no answer of a query" : "");
    else if (listener->question->json)
        (void)printf("%s\n", qf_strbuf_cstr(&listener->body));
    if (reply->message[0])
        reply->failed = true;
    json_decref(answer);
}

static void finish(struct listener *listener, CURLcode code, const char *problem, long status)
{
    struct cli_reply *reply = listener->reply;

    hide_progress();
    if (code != CURLE_OK && !listener->done_ok) {
        reply->failed = true;
        (void)snprintf(reply->message, sizeof(reply->message), "%s: %s",
                       listener->question->web->url,
                       listener->body.overflowed ? "the answer is larger than a gigabyte"
                       : problem[0]              ? problem
                                                 : curl_easy_strerror(code));
    } else if (!listener->events) {
        read_document(listener, status);
    } else if (!listener->done_ok && !reply->failed) {
        fail(reply, "the answer was cut short");
    }
}

void cli_ask(const struct cli_question *question, struct cli_reply *reply)
{
    struct listener listener = { .question = question,
                                 .reply = reply,
                                 .line.limit = LINE_BYTES_MAX,
                                 .body.limit = DOCUMENT_BYTES_MAX };
    bool events = question->start || question->events;
    char problem[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers;
    CURLcode code;
    long status = 0;
    qf_time_ms end;
    char *body;
    CURL *easy;

    if (!read_times(question, &end, reply))
        return;
    body = events ? events_body(question) : instant_body(question, end);
    easy =
        cli_web_open(question->web, events ? "/api/v1/metrics/query" : "/api/v1/query",
                     events ? "application/json" : "application/x-www-form-urlencoded", &headers);
    (void)signal(SIGINT, on_interrupt);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, &listener);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, &listener);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem);
    code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    finish(&listener, code, problem, status);
    (void)signal(SIGINT, SIG_DFL);
    free(body);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    qf_strbuf_done(&listener.line);
    qf_strbuf_done(&listener.body);
}
