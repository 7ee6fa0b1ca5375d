/* state_web_load.c - promfabric state load --url: files to a cluster, in pieces that fit into a request.
 *
 * A piece ends where a row does: JSON lines at a line's end, CSV at one that is not quoted, with the head in front of each piece. XML is
 * one piece. A piece counts whole or not at all; loading again does no harm. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "cli/state_web.h"
#include "statemap/load/load.h"

/* A request may have 16 MiB. */
#define PIECE_BYTES ((size_t)8 << 20)
#define WHOLE_BYTES ((size_t)16 << 20)
/* A node answers once it has merged what was sent, at the latest. */
#define TIMEOUT_MS 330000L

struct sending {
    const struct cli_web *web;
    const struct state_cli *cli;
    enum sm_format format;
    struct qf_strbuf head; /* of CSV, with its end of line */
    struct qf_strbuf rows; /* not sent yet */
    uint64_t lines;        /* sent before, of this file: reasons count from there */
    uint64_t loaded, skipped;
    bool terminal;
};

static const char *format_name(enum sm_format format)
{
    switch (format) {
    case SM_XML:
        return "xml";
    case SM_JSON_LINES:
        return "jsonl";
    case SM_CSV:
        return "csv";
    }
    return "";
}

static void tell(const struct sending *s, bool end)
{
    if (s->terminal)
        fprintf(stderr, "\r%" PRIu64 " rows loaded%s", s->loaded, end ? "\n" : "");
}

static void print_reasons(const struct sending *s, const json_t *data)
{
    const json_t *reason;
    size_t i;

    json_array_foreach(json_object_get(data, "reasons"), i, reason)
    {
        fprintf(stderr, "skipped: %s\n", json_string_value(reason));
    }
    if (s->lines && json_array_size(json_object_get(data, "reasons")))
        fprintf(stderr, "(lines counted from line %" PRIu64 " of the file on)\n", s->lines + 1);
}

/* The first @len bytes of what is there. */
static bool send_piece(struct sending *s, size_t len)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT, body = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf why = QF_STRBUF_INIT;
    const json_t *data;
    json_t *answer;

    qf_strbuf_puts(&path, "/api/v1/state/load");
    cli_web_param(&path, "format", format_name(s->format));
    cli_web_param(&path, "on-error", s->cli->on_error);
    if (s->cli->map)
        cli_web_param(&path, "map", s->cli->map);
    qf_strbuf_str(&body, qf_strbuf_view(&s->head));
    qf_strbuf_add(&body, s->rows.data, len);
    answer = cli_web_try(s->web,
                         &(struct cli_web_request){ .method = "POST",
                                                    .path = qf_strbuf_cstr(&path),
                                                    .body = qf_strbuf_view(&body),
                                                    .content_type = "application/octet-stream" },
                         TIMEOUT_MS, &why);
    if (!answer) {
        fprintf(stderr, "error: %s%s\n", qf_strbuf_cstr(&why),
                s->lines ? " (counted from where the last piece ended)" : "");
        return false;
    }
    data = json_object_get(answer, "data");
    s->loaded += (uint64_t)cli_json_number(data, "rows");
    s->skipped += (uint64_t)cli_json_number(data, "skipped");
    print_reasons(s, data);
    json_decref(answer);
    for (size_t i = 0; i < len; i++)
        s->lines += s->rows.data[i] == '\n';
    tell(s, false);
    memmove(s->rows.data, s->rows.data + len, s->rows.len - len);
    s->rows.len -= len;
    return true;
}

/* Where the last whole row ends; *ret_first: the first one. 0: none does. */
static size_t end_of_rows(const struct sending *s, size_t *ret_first)
{
    bool quoted = false;
    size_t end = 0;

    *ret_first = 0;
    for (size_t i = 0; i < s->rows.len; i++) {
        quoted ^= s->format == SM_CSV && s->rows.data[i] == '"';
        if (s->rows.data[i] != '\n' || quoted)
            continue;
        end = i + 1;
        if (!*ret_first)
            *ret_first = end;
    }
    return end;
}

static void take_head(struct sending *s, size_t len)
{
    qf_strbuf_add(&s->head, s->rows.data, len);
    s->lines++;
    memmove(s->rows.data, s->rows.data + len, s->rows.len - len);
    s->rows.len -= len;
}

/* What can be sent of what was read so far. */
static bool send_full(struct sending *s)
{
    size_t first, end;

    if (s->format == SM_XML) {
        if (s->rows.len <= WHOLE_BYTES)
            return true;
        fprintf(stderr, "error: XML of more than 16 MiB is loaded in parts, or as JSON lines\n");
        return false;
    }
    if (s->rows.len < PIECE_BYTES)
        return true;
    end = end_of_rows(s, &first);
    if (end && s->format == SM_CSV && !s->head.len) {
        take_head(s, first);
        end -= first;
    }
    if (end)
        return send_piece(s, end);
    if (s->rows.len < PIECE_BYTES + SM_RECORD_MAX)
        return true;
    fprintf(stderr, "error: a row has more than %zu bytes\n", SM_RECORD_MAX);
    return false;
}

static bool send_file(struct sending *s, int fd, const char *file)
{
    ssize_t len = 1;

    while (len) {
        (void)qf_strbuf_reserve(&s->rows, 1 << 18);
        len = read(fd, s->rows.data + s->rows.len, 1 << 18);
        if (len < 0 && errno == EINTR) {
            len = 1;
            continue;
        }
        if (len < 0) {
            fprintf(stderr, "error: %s: %s\n", file, strerror(errno));
            return false;
        }
        s->rows.len += (size_t)len;
        if (!send_full(s))
            return false;
    }
    return s->rows.len == 0 || send_piece(s, s->rows.len);
}

static bool load_file(struct sending *s, const char *file)
{
    bool input = strcmp(file, "-") == 0, done;
    int fd = STDIN_FILENO;

    if (!state_format_of(s->cli, file, &s->format)) {
        fprintf(stderr, "error: %s: say its --format: xml, jsonl or csv\n", file);
        return false;
    }
    if (!input)
        fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fprintf(stderr, "error: %s: %s\n", file, strerror(errno));
        return false;
    }
    qf_strbuf_reset(&s->head);
    qf_strbuf_reset(&s->rows);
    s->lines = 0;
    done = send_file(s, fd, file);
    if (!input)
        (void)close(fd);
    if (!done)
        fprintf(stderr, "error: %s was not loaded to its end; loading it again does no harm\n",
                file);
    return done;
}

int state_web_load(const struct cli_web *web, const struct state_cli *cli, char **names, int count)
{
    struct sending s = { .web = web, .cli = cli, .terminal = isatty(STDERR_FILENO) && !cli->quiet };
    bool done = true;

    for (int i = 0; i < count && done; i++)
        done = load_file(&s, names[i]);
    tell(&s, true);
    qf_strbuf_done(&s.head);
    qf_strbuf_done(&s.rows);
    printf("%" PRIu64 " rows loaded", s.loaded);
    if (s.skipped)
        printf(", %" PRIu64 " skipped", s.skipped);
    printf("\n");
    return done ? 0 : 1;
}
