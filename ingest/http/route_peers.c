/* route_peers.c - snapshots for other nodes, and how it stands with them. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http/range.h"
#include "base/pure/alloc.h"
#include "ingest/http/routes_int.h"
#include "queue/peer/peer.h"

/* A peer that waits for a snapshot. */
struct fetcher {
    struct qh_stream *stream;
    char range[128];
};

static void answer_plain(struct qh_stream *stream, int status, const char *text)
{
    if (status == 503)
        qh_stream_header(stream, "Retry-After", "1");
    qh_stream_answer(stream, status, "text/plain; charset=utf-8", qf_str_from(text));
}

/* The file, or the part of it that was asked for. */
static void send_file(struct fetcher *fetcher, int fd, const struct stat *stat)
{
    uint64_t size = (uint64_t)stat->st_size, offset = 0, length = size;
    enum qh_range range = qh_range_parse(qf_str_from(fetcher->range), size, &offset, &length);
    struct qh_body body = { .fd = fd };
    char text[96];

    if (range == QH_RANGE_UNSATISFIABLE) {
        (void)close(fd);
        (void)snprintf(text, sizeof(text), "bytes */%" PRIu64, size);
        qh_stream_header(fetcher->stream, "Content-Range", text);
        qh_stream_answer(fetcher->stream, 416, NULL, QF_STR(""));
        return;
    }
    (void)snprintf(text, sizeof(text), "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"",
                   (uint64_t)stat->st_ino, size,
                   (uint64_t)stat->st_mtim.tv_sec * 1000000000 + (uint64_t)stat->st_mtim.tv_nsec);
    qh_stream_header(fetcher->stream, "ETag", text);
    qh_stream_header(fetcher->stream, "Accept-Ranges", "bytes");
    if (range == QH_RANGE_PART) {
        (void)snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, offset,
                       offset + length - 1, size);
        qh_stream_header(fetcher->stream, "Content-Range", text);
    }
    body.offset = offset;
    body.length = length;
    qh_stream_send(fetcher->stream, range == QH_RANGE_PART ? 206 : 200, "application/octet-stream",
                   &body);
}

static void bundled(void *ctx, qf_rc rc, const char *path)
{
    struct fetcher *fetcher = ctx;
    struct stat stat;
    int fd = rc == QF_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (rc == QF_ENOTFOUND)
        answer_plain(fetcher->stream, 404, "no such snapshot\n");
    else if (fd < 0 || fstat(fd, &stat) != 0)
        answer_plain(fetcher->stream, 503, "the snapshot is not ready: try again\n");
    else
        send_file(fetcher, fd, &stat);
    (void)qh_stream_drop(fetcher->stream);
    free(fetcher);
}

/* In a time that tells nothing about where they differ. */
static bool is_token(struct qf_str header, const char *token)
{
    struct qf_str given = qf_str_sub(header, 7, header.len);
    unsigned char differs = 0;

    if (!token || !qf_str_starts(header, QF_STR("Bearer ")) || given.len != strlen(token))
        return false;
    for (size_t i = 0; i < given.len; i++)
        differs |= (unsigned char)(given.data[i] ^ token[i]);
    return differs == 0;
}

static void handle_snapshot(struct qh_visit *visit)
{
    struct in_routes *routes = in_routes_of(visit);
    struct qf_str range = qh_request_header(visit->request, "Range");
    char queue[QP_NAME_SIZE];
    struct fetcher *fetcher;
    uint64_t index, term;

    if (!is_token(qh_request_header(visit->request, "Authorization"),
                  atomic_load(&routes->token))) {
        answer_plain(visit->stream, 403, "snapshots are for nodes of this cluster\n");
        return;
    }
    if (!in_param_text(visit, "queue", queue, sizeof(queue)) ||
        !in_param_u64(visit, "index", 0, UINT64_MAX, &index) ||
        !in_param_u64(visit, "term", 0, UINT64_MAX, &term))
        return;
    fetcher = qf_xcalloc(1, sizeof(*fetcher));
    fetcher->stream = qh_stream_ref(visit->stream);
    if (range.len < sizeof(fetcher->range))
        (void)snprintf(fetcher->range, sizeof(fetcher->range), "%.*s", QF_STR_ARG(range));
    qn_bundle(routes->node, queue, index, term, bundled, fetcher);
}

static void handle_peers(struct qh_visit *visit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct qp_peers *peers = atomic_load(&in_routes_of(visit)->peers);
    struct qp_peer_stat *stats = qf_xcalloc(QP_PEERS_MAX, sizeof(*stats));
    size_t count = peers ? qp_stat(peers, stats) : 0;
    struct qf_err err = { 0 };

    qf_strbuf_puts(&body, "{\"peers\":[");
    for (size_t i = 0; i < count; i++) {
        qf_strbuf_puts(&body, i ? ",{\"name\":" : "{\"name\":");
        qf_strbuf_json(&body, qf_str_from(stats[i].name));
        qf_strbuf_printf(&body, ",\"state\":\"%s\",\"protocol\":%" PRIu32 ",\"why\":",
                         qp_state_text(stats[i].state), stats[i].protocol);
        qf_strbuf_json(&body, qf_str_from(stats[i].why));
        qf_strbuf_printf(&body,
                         ",\"messages_sent\":%" PRIu64 ",\"messages_received\":%" PRIu64
                         ",\"messages_dropped\":%" PRIu64 "}",
                         stats[i].messages_sent, stats[i].messages_received,
                         stats[i].messages_dropped);
    }
    qf_strbuf_puts(&body, "]}\n");
    free(stats);
    if (visit->caller.sees_all) {
        qh_visit_json(visit, 200, qf_strbuf_view(&body));
        return;
    }
    (void)qf_err_set(&err, QF_EDENIED, "peers are shown to operators: a key for all tenants");
    in_fail(visit, &err);
}

static const struct qh_route routes[] = {
    { "/v1/peer/snapshot", QH_METHOD_GET, true, handle_snapshot, in_fail },
    { "/v1/peers", QH_METHOD_GET, false, handle_peers, in_fail },
};
const struct qh_routes in_peer_routes = { routes, QF_COUNT_OF(routes) };
