/* ring.c - a store on our own nodes: opened, and the calls of store.h made of what its parts do. */
#include "segments/store/ring.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "ring/wire/listing.h"
#include "segments/store/ring_int.h"

/* How often a blob is placed and its note written, while its owners change. */
#define NAME_ROUNDS 5
#define NODE_PATH "/v1/node"
#define NODE_BYTES_MAX ((size_t)1 << 20)

static const struct sg_store_ops ring_ops;

bool sg_store_is_ring(const struct sg_store *store)
{
    return store && store->ops == &ring_ops;
}

void sg_ring_set_local(struct sg_store *base, const struct sg_ring_local *local)
{
    ring_of(base)->local = *local;
}

void sg_ring_set_handoff(struct sg_store *base, const struct sg_ring_handoff *handoff)
{
    ring_of(base)->handoff = *handoff;
}

struct sg_ring_nodes sg_ring_nodes(const struct sg_store *base)
{
    const struct ring_store *store = (const struct ring_store *)base;

    return (struct sg_ring_nodes){ .urls = (const char *const *)store->nodes,
                                   .count = store->node_count,
                                   .key_file = store->key_file,
                                   .ca_file = store->ca_file };
}

struct sg_keep_client *sg_ring_client(struct sg_store *base)
{
    return ring_of(base)->client;
}

void sg_ring_suspect_local(struct sg_store *base, struct qf_str name)
{
    const struct sg_ring_local *local = &ring_of(base)->local;

    if (local->suspect)
        local->suspect(local->ctx, name);
}

bool sg_ring_is_local(struct sg_store *base, struct qf_str name)
{
    const struct sg_ring_local *local = sg_store_is_ring(base) ? &ring_of(base)->local : NULL;

    return local && local->has && local->has(local->ctx, name);
}

/* --- opening --- */

struct parsed {
    struct qf_str nodes;
    char *key, *ca, *cert, *cert_key;
};

static void parsed_done(struct parsed *parsed)
{
    free(parsed->key);
    free(parsed->ca);
    free(parsed->cert);
    free(parsed->cert_key);
}

static qf_rc parse_param(struct qf_str param, struct parsed *parsed, struct qf_err *err)
{
    const struct {
        struct qf_str mark;
        char **value;
    } known[] = { { QF_STR("key="), &parsed->key },
                  { QF_STR("ca="), &parsed->ca },
                  { QF_STR("cert="), &parsed->cert },
                  { QF_STR("cert-key="), &parsed->cert_key } };

    for (size_t i = 0; i < QF_COUNT_OF(known); i++) {
        struct qf_str value = qf_str_sub(param, known[i].mark.len, param.len);

        if (!qf_str_starts(param, known[i].mark) || !value.len || *known[i].value)
            continue;
        *known[i].value = qf_xmemdup0(value.data, value.len);
        return QF_OK;
    }
    return qf_err_set(err, QF_EINVAL,
                      "ring://: \"%.*s\" is none of key=FILE, ca=FILE, cert=FILE and "
                      "cert-key=FILE, or is there twice",
                      QF_STR_ARG(param));
}

static qf_rc parse(struct qf_str rest, struct parsed *parsed, struct qf_err *err)
{
    const char *mark = rest.len ? memchr(rest.data, '?', rest.len) : NULL;
    struct qf_str params = QF_STR("");
    qf_rc rc = QF_OK;

    parsed->nodes = rest;
    if (mark) {
        parsed->nodes = qf_str_sub(rest, 0, (size_t)(mark - rest.data));
        params = qf_str_sub(rest, parsed->nodes.len + 1, rest.len);
    }
    while (params.len && !rc) {
        const char *end = memchr(params.data, '&', params.len);
        struct qf_str param = qf_str_sub(params, 0, end ? (size_t)(end - params.data) : params.len);

        rc = parse_param(param, parsed, err);
        params = qf_str_sub(params, param.len + 1, params.len);
    }
    return rc;
}

static qf_rc add_nodes(struct ring_store *store, const struct parsed *parsed, struct qf_err *err)
{
    struct qf_str rest = parsed->nodes;

    while (rest.len) {
        const char *end = memchr(rest.data, ',', rest.len);
        struct qf_str node = qf_str_sub(rest, 0, end ? (size_t)(end - rest.data) : rest.len);
        struct qf_strbuf url = QF_STRBUF_INIT;

        if (!node.len || !memchr(node.data, ':', node.len) || memchr(node.data, '/', node.len))
            return qf_err_set(err, QF_EINVAL, "ring://: \"%.*s\" is not HOST:PORT",
                              QF_STR_ARG(node));
        if (store->node_count == RING_NODES_MAX)
            return qf_err_set(err, QF_EINVAL, "ring://: at most %d ingest nodes", RING_NODES_MAX);
        qf_strbuf_printf(&url, "%s://%.*s", parsed->ca ? "https" : "http", QF_STR_ARG(node));
        store->nodes[store->node_count++] = qf_strbuf_take(&url);
        rest = qf_str_sub(rest, node.len + 1, rest.len);
    }
    return store->node_count
               ? QF_OK
               : qf_err_set(err, QF_EINVAL, "ring://: want HOST:PORT of ingest nodes");
}

static void ring_close(struct sg_store *base)
{
    struct ring_store *store = ring_of(base);

    atomic_store(&store->closing, true);
    ring_puts_done(store);
    for (size_t i = 0; i < store->node_count; i++)
        free(store->nodes[i]);
    free(store->key_file);
    free(store->ca_file);
    (void)sg_keep_client_free(store->client);
    (void)rg_ring_free(store->ring);
    (void)rg_ring_free(store->rules);
    ring_mirror_done(&store->mirror);
    (void)qf_lock_free(store->lock);
    free(store);
}

qf_rc ring_store_open(const struct sg_store_options *options, struct qf_str rest,
                      struct sg_store **ret_store, struct qf_err *err)
{
    QF_CLEANUP(parsed_done) struct parsed parsed = { 0 };
    struct ring_store *store;
    qf_rc rc = parse(rest, &parsed, err);

    if (rc)
        return rc;
    store = qf_xcalloc(1, sizeof(*store));
    store->base.ops = &ring_ops;
    store->lock = qf_lock_new();
    store->rules = rg_ring_new(1);
    ring_mirror_init(&store->mirror);
    rc = add_nodes(store, &parsed, err);
    if (rc == QF_OK) {
        store->client = sg_keep_client_new(
            &(struct sg_keep_client_options){ .key_file = parsed.key,
                                              .ca_file = parsed.ca,
                                              .cert_file = parsed.cert,
                                              .cert_key_file = parsed.cert_key,
                                              .connect_timeout_ms = options->connect_timeout_ms,
                                              .stall_timeout_ms = options->stall_timeout_ms },
            err);
        rc = store->client ? QF_OK : err ? err->rc : QF_EINVAL;
    }
    if (rc) {
        ring_close(&store->base);
        return rc;
    }
    store->base.url = qf_xstrdup(options->url);
    store->key_file = QF_TAKE(parsed.key);
    store->ca_file = QF_TAKE(parsed.ca);
    *ret_store = &store->base;
    return QF_OK;
}

/* --- reading --- */

/* Its size: listed, or, since whoever asks may know of it from elsewhere, after another look. */
static qf_rc find(struct ring_store *store, struct qf_str name, const struct sg_store_limit *limit,
                  uint64_t *ret_bytes, struct qf_err *err)
{
    uint32_t partition;
    qf_rc rc;

    if (ring_find(store, name, ret_bytes, &partition))
        return QF_OK;
    rc = ring_refresh(store, limit, err);
    if (rc == QF_OK && !ring_find(store, name, ret_bytes, &partition))
        rc = qf_err_set(err, QF_ENOTFOUND, "%.*s is not listed", QF_STR_ARG(name));
    return rc;
}

static qf_rc ring_stat(struct sg_store *base, struct qf_str name,
                       const struct sg_store_limit *limit, struct sg_store_info *ret_info,
                       struct qf_err *err)
{
    uint64_t bytes = 0;
    qf_rc rc = ring_refresh(ring_of(base), limit, err);

    if (rc == QF_OK)
        rc = find(ring_of(base), name, limit, &bytes, err);
    if (rc == QF_OK)
        *ret_info = (struct sg_store_info){ .size = bytes };
    return rc;
}

static qf_rc ring_read_at(struct sg_store *base, struct qf_str name, uint64_t offset, void *buf,
                          size_t len, const struct sg_store_limit *limit, size_t *ret_len,
                          struct qf_err *err)
{
    struct sg_keep_range range = { .offset = offset, .len = len, .buf = buf, .fd = -1 };
    uint64_t got = 0;
    qf_rc rc = ring_read(ring_of(base), name, &range, limit, &got, err);

    *ret_len = (size_t)got;
    return rc;
}

static qf_rc ring_read_tail(struct sg_store *base, struct qf_str name, void *buf, size_t len,
                            const struct sg_store_limit *limit, size_t *ret_len, uint64_t *ret_size,
                            struct qf_err *err)
{
    uint64_t size = 0;
    /* Also of one that is not listed any more: it stays for a while, for whoever knows of it from before. */
    qf_rc rc = ring_remembers(ring_of(base), name, &size)
                   ? QF_OK
                   : find(ring_of(base), name, limit, &size, err);

    if (rc)
        return rc;
    *ret_size = size;
    *ret_len = 0;
    len = (size_t)QF_MIN((uint64_t)len, size);
    if (!len)
        return QF_OK;
    rc = ring_read_at(base, name, size - len, buf, len, limit, ret_len, err);
    if (rc == QF_OK && *ret_len != len)
        rc = qf_err_set(err, QF_ECORRUPT, "%.*s ends too early", QF_STR_ARG(name));
    return rc;
}

static qf_rc ring_read_whole(struct sg_store *base, struct qf_str name,
                             const struct sg_store_sink *sink, const struct sg_store_limit *limit,
                             uint64_t *ret_size, struct qf_err *err)
{
    struct sg_keep_range range = { .buf = sink->buf, .fd = sink->fd, .bytes_max = sink->capacity };
    uint64_t len = 0;
    qf_rc rc = ring_read(ring_of(base), name, &range, limit, &len, err);

    if (rc == QF_OK && sink->fd >= 0 && ftruncate(sink->fd, (off_t)len) != 0)
        rc = qf_err_set(err, QF_EIO, "%.*s: cannot cut its copy", QF_STR_ARG(name));
    if (rc == QF_OK)
        *ret_size = len;
    return rc;
}

static qf_rc ring_open(struct sg_store *base, struct qf_str name, int *ret_fd, struct qf_err *err)
{
    const struct sg_ring_local *local = &ring_of(base)->local;
    int fd = local->open ? local->open(local->ctx, name) : -1;

    if (!local->open)
        return qf_err_set(err, QF_EUNSUPPORTED, "%s: objects are not files", base->url);
    if (fd < 0)
        return qf_err_set(err, QF_ENOTFOUND, "%.*s is not on this disk", QF_STR_ARG(name));
    *ret_fd = fd;
    return QF_OK;
}

/* --- writing --- */

/* A note into a partition's log. */
static qf_rc post_note(struct ring_store *store, uint32_t partition, const struct rg_note *note,
                       const struct sg_store_limit *limit, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf said = QF_STRBUF_INIT;
    char path[64];

    rg_note_encode(&body, note);
    (void)snprintf(path, sizeof(path), RG_LISTING_PATH "?partition=%" PRIu32, partition);
    return ring_post(store, path, qf_strbuf_view(&body), limit, &said, err);
}

/* The partition of @key. It does not move: a cluster's number of partitions stays what it is. */
static qf_rc partition_of(struct ring_store *store, struct qf_str key,
                          const struct sg_store_limit *limit, uint32_t *ret_partition,
                          struct qf_err *err)
{
    struct ring_mirror *mirror = &store->mirror;
    uint32_t count;
    qf_rc rc = QF_OK;

    qf_lock_take(mirror->lock);
    count = mirror->partition_count;
    qf_lock_drop(mirror->lock);
    if (!count) {
        rc = ring_refresh(store, limit, err);
        qf_lock_take(mirror->lock);
        count = mirror->partition_count;
        qf_lock_drop(mirror->lock);
    }
    if (rc)
        return rc;
    if (!count)
        return qf_err_set(err, QF_EUNAVAILABLE, "%s: nobody knows the partitions", store->base.url);
    *ret_partition = (uint32_t)(qf_hash_bytes(key) % count);
    return QF_OK;
}

qf_rc sg_ring_change(struct sg_store *base, const struct sg_ring_change *change,
                     const struct sg_store_call *call, struct qf_err *err)
{
    struct ring_store *store = ring_of(base);
    struct sg_store_limit limit = sg_store_limit_of(call);
    struct rg_note note = { .kind = RG_NOTE_REMOVED,
                            .epoch = change->epoch,
                            .added = change->added,
                            .added_count = change->added_count,
                            .removed = change->removed,
                            .removed_count = change->removed_count };
    uint32_t partition = change->partition ? *change->partition : 0;
    qf_rc rc =
        change->partition ? QF_OK : partition_of(store, change->tenant, &limit, &partition, err);

    if (change->added_count)
        note.kind = change->removed_count ? RG_NOTE_REPLACED : RG_NOTE_ADDED;
    return rc ? rc : post_note(store, partition, &note, &limit, err);
}

/* Leases, marks and notes of changes change their content, which names on the ring do not. */
static qf_rc refuse_mutable(struct qf_str name, struct qf_err *err)
{
    return qf_err_set(err, QF_EUNSUPPORTED,
                      "%.*s: names on our own nodes never change their content", QF_STR_ARG(name));
}

static qf_rc ring_put(struct sg_store *base, struct qf_str name, const struct sg_store_bytes *bytes,
                      const struct sg_store_limit *limit, struct qf_err *err)
{
    struct ring_store *store = ring_of(base);
    struct rg_blob blob = { .name = name, .bytes = bytes->size };
    struct rg_note note = { .kind = RG_NOTE_ADDED, .added = &blob, .added_count = 1 };
    struct qf_err why = { 0 };
    uint32_t partition;
    qf_rc rc;

    if (name.data[0] == '_')
        return refuse_mutable(name, err);
    rc = partition_of(store, name, limit, &partition, err);
    if (rc)
        return rc;
    for (int i = 0; i < NAME_ROUNDS; i++) {
        rc = ring_place(store, name, bytes, limit, &blob.slot, &note.epoch, err);
        if (rc)
            return rc;
        why = (struct qf_err){ 0 };
        rc = post_note(store, partition, &note, limit, &why);
        if (rc != QF_EGONE || ring_follow(store, 0, limit, NULL)) /* owners may be others by now */
            break;
    }
    return rc ? qf_err_set(err, rc, "%.*s is not named: %s", QF_STR_ARG(name), why.msg) : QF_OK;
}

static qf_rc ring_put_new(struct sg_store *base, struct qf_str name,
                          const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                          struct qf_err *err)
{
    (void)base;
    (void)bytes;
    (void)limit;
    return refuse_mutable(name, err);
}

/* The time of an ingest node. */
static qf_rc ring_clock(struct sg_store *base, const struct sg_store_limit *limit, int64_t *ret_ms,
                        struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct ring_store *store = ring_of(base);
    qf_rc rc = ring_get(store, NODE_PATH, NODE_BYTES_MAX, limit, &body, err);
    json_t *root;
    json_int_t ms;

    if (rc)
        return rc;
    root = json_loadb(body.data, body.len, 0, NULL);
    ms = json_integer_value(json_object_get(root, "time_ms")); /* 0 of what is none */
    json_decref(root);
    if (ms <= 0)
        return qf_err_set(err, QF_EPROTO, "an ingest node does not say what time it is");
    *ret_ms = (int64_t)ms;
    return QF_OK;
}

static qf_rc ring_remove(struct sg_store *base, struct qf_str name,
                         const struct sg_store_limit *limit, struct qf_err *err)
{
    struct ring_store *store = ring_of(base);
    struct rg_note note = { .kind = RG_NOTE_REMOVED, .removed = &name, .removed_count = 1 };
    uint32_t partition;
    uint64_t bytes;
    qf_rc rc = ring_refresh(store, limit, err);

    /* It may be in more than one. */
    while (rc == QF_OK && ring_find(store, name, &bytes, &partition)) {
        rc = post_note(store, partition, &note, limit, err);
        if (rc == QF_OK)
            rc = ring_refresh(store, limit, err);
    }
    return rc;
}

static qf_rc ring_sweep(struct sg_store *base, int64_t age_ms, bool dry_run,
                        const struct sg_store_limit *limit, size_t *ret_removed, struct qf_err *err)
{
    (void)base;
    (void)age_ms;
    (void)dry_run;
    (void)limit;
    (void)err;
    *ret_removed = 0; /* keepers look after that themselves */
    return QF_OK;
}

/* A ring is known by the cluster that lists it. */
static qf_rc ring_identity(struct sg_store *base, const struct sg_store_limit *limit, char *ret_id,
                           size_t size, struct qf_err *err)
{
    struct ring_store *store = ring_of(base);
    qf_rc rc = ring_refresh(store, limit, err);

    if (rc == QF_OK)
        (void)snprintf(ret_id, size, "%016" PRIx64 "%016" PRIx64, UINT64_C(0x72696e67),
                       store->mirror.cluster);
    return rc;
}

static const struct sg_store_ops ring_ops = {
    .list = ring_list,
    .folders = ring_folders,
    .stat = ring_stat,
    .read = ring_read_at,
    .read_tail = ring_read_tail,
    .read_whole = ring_read_whole,
    .put = ring_put,
    .put_new = ring_put_new,
    .clock = ring_clock,
    .remove = ring_remove,
    .sweep = ring_sweep,
    .open = ring_open,
    .identity = ring_identity,
    .close = ring_close,
    .has_tokens = true,
};
