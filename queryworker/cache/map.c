/* map.c - copies of state maps over HTTP, with their sums. */
#include "queryworker/cache/map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "queryworker/cache/head_int.h"

/* One node may take so long, and a second more for each of so many bytes. */
#define READ_MS 90000
#define READ_BYTES_PER_S (UINT64_C(4) << 20)
/* A node's copy may be larger than the one that was announced, which is another node's: but not much. */
#define MORE_BYTES (UINT64_C(16) << 20)

struct qw_map_ask {
    struct qf_strbuf text, path, tenant;
    uint64_t created, version, bytes;
    char **nodes;
    size_t node_count;
};

struct qw_map_ask *qw_map_ask_new(struct qf_str tenant, const struct pb_maps *maps,
                                  const struct pb_map *map)
{
    struct qw_map_ask *ask = qf_xcalloc(1, sizeof(*ask));

    qf_strbuf_printf(&ask->text, "map %.*s %.*s %" PRIu64 " %" PRIu64, QF_STR_ARG(tenant),
                     QF_STR_ARG(map->name), map->created, map->version);
    qf_strbuf_printf(&ask->path, "/api/v1/state/maps/%.*s/snapshot?version=%" PRIu64,
                     QF_STR_ARG(map->name), map->version);
    qf_strbuf_printf(&ask->tenant, "X-Scope-OrgID: %.*s", QF_STR_ARG(tenant));
    ask->created = map->created;
    ask->version = map->version;
    ask->bytes = map->bytes;
    ask->node_count = maps->node_count;
    ask->nodes = qf_xcalloc(maps->node_count + 1, sizeof(*ask->nodes));
    for (size_t i = 0; i < maps->node_count; i++)
        ask->nodes[i] = qf_xmemdup0(maps->nodes[i].data, maps->nodes[i].len);
    return ask;
}

void qw_map_ask_free(struct qw_map_ask *ask)
{
    if (!ask)
        return;
    for (size_t i = 0; i < ask->node_count; i++)
        free(ask->nodes[i]);
    free(ask->nodes);
    qf_strbuf_done(&ask->text);
    qf_strbuf_done(&ask->path);
    qf_strbuf_done(&ask->tenant);
    free(ask);
}

struct qf_str qw_map_ask_text(const struct qw_map_ask *ask)
{
    return qf_strbuf_view(&ask->text);
}

/* The file, and the sum of what went there. */
struct summed {
    struct qw_sink sink; /* first member */
    XXH3_state_t *state;
};

static bool on_bytes(void *ctx, const struct http_response *response, const void *data, size_t len)
{
    struct summed *summed = ctx;

    (void)XXH3_64bits_update(summed->state, data, len);
    return qw_sink_write(&summed->sink, response, data, len);
}

static bool header_is(const struct http_response *response, const char *name, uint64_t wanted)
{
    uint64_t value;

    return qf_parse_u64(http_header(response, name), &value) && value == wanted;
}

static qf_rc gone(const struct qw_download *d, struct qf_err *err)
{
    return qf_err_set(err, QF_EGONE, "%s is not there any more", d->name);
}

static qf_rc judge_copy(const struct qw_download *d, const struct http_response *response,
                        uint64_t sum, struct qf_err *err)
{
    char text[17];

    (void)snprintf(text, sizeof(text), "%016" PRIx64, sum);
    if (!header_is(response, "x-promfabric-state-version", d->map->version) ||
        !header_is(response, "x-promfabric-state-created", d->map->created))
        return gone(d, err);
    if (qf_str_is(http_header(response, "x-promfabric-state-sum"), text))
        return QF_OK;
    /* On the way, or at that node, which looks through its copies before it sends them. */
    return qf_err_set(err, QF_EUNAVAILABLE, "%s came damaged", d->name);
}

static qf_rc judge(const struct qw_download *d, const struct http_response *response, uint64_t sum,
                   struct qf_err *err)
{
    struct qf_str body = qf_strbuf_view(&response->body);

    switch (response->status) {
    case 200:
        return judge_copy(d, response, sum, err);
    case 204: /* a map without rows: another one */
    case 404:
    case 410:
        return gone(d, err);
    case 401:
    case 403:
        return qf_err_set(err, QF_EDENIED, "%s: ingest nodes do not accept this worker's key",
                          d->name);
    default:
        return qf_err_set(err, QF_EBUSY, "%s: %ld %.*s", d->name, response->status,
                          (int)QF_MIN(body.len, (size_t)200), body.data ? body.data : "");
    }
}

static qf_rc get(struct qw_download *d, const char *node, struct summed *summed,
                 struct http_response *response, struct qf_err *err)
{
    int64_t time_ms = READ_MS + (int64_t)(d->map->bytes / READ_BYTES_PER_S) * 1000;
    struct sg_store_limit limit = { &d->cancel, qf_clock_mono_ms() + time_ms };
    QF_CLEANUP(qf_freep) char *key = qw_head_authorization(d->heads);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT;
    struct http_request request = { .method = "GET",
                                    .headers = { qf_strbuf_cstr(&d->map->tenant), key },
                                    .header_count = key ? 2 : 1,
                                    .sink = on_bytes,
                                    .sink_ctx = summed,
                                    .no_proxy = true };

    qf_strbuf_printf(&url, "%s%s", node, qf_strbuf_cstr(&d->map->path));
    request.url = qf_strbuf_cstr(&url);
    return http_perform(qw_head_patient_http(d->heads), &request, &limit, response, err);
}

static qf_rc ask_node(struct qw_download *d, const char *node, int fd, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct summed summed = { .sink = { .fd = fd, .size_max = 2 * d->map->bytes + MORE_BYTES } };
    uint64_t sum;
    qf_rc rc;

    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0)
        return qw_disk_error(err, "empty", d->path, errno);
    summed.state = XXH3_createState();
    (void)XXH3_64bits_reset(summed.state);
    rc = get(d, node, &summed, &response, err);
    sum = XXH3_64bits_digest(summed.state);
    (void)XXH3_freeState(summed.state);
    if (summed.sink.error)
        return qw_disk_error(err, "write", d->path, summed.sink.error);
    if (summed.sink.too_large)
        return qf_err_set(err, QF_ELIMIT, "%s has more than %" PRIu64 " bytes", d->name,
                          summed.sink.size_max);
    d->size = summed.sink.size;
    return rc ? rc : judge(d, &response, sum, err);
}

qf_rc qw_map_fetch(struct qw_download *d, const char *temp)
{
    return qw_fetch_into(d, temp, d->map->nodes, d->map->node_count, ask_node);
}
