/* s3_list.c - ListObjectsV2, page by page, and unfinished uploads. */
#include <curl/curl.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "segments/store/s3_int.h"
#include "segments/store/xml.h"

/* A thousand keys of a kilobyte, each escaped threefold, and their tags. */
#define PAGE_BYTES_MAX ((size_t)8 << 20)
/* A server may answer pages without a key (it filtered them), but not for ever. */
#define EMPTY_PAGES_MAX 1000

/* A listing under way: the state that its pages share. */
struct listing {
    struct s3_store *store;
    struct qf_str prefix, start_after;
    bool folders; /* stop at the next '/' */
    sg_store_list_fn *fn;
    sg_store_folder_fn *folder_fn;
    void *ctx;
    const struct sg_store_limit *limit;

    struct qf_strbuf last;  /* the name reported last: the order is checked */
    struct qf_strbuf token; /* of the next page; empty: this was the last */
    size_t seen;            /* entries of this page */
    bool stop;
};

/* A page being read. */
struct page {
    struct listing *listing;
    bool url_encoded, truncated;
    struct qf_strbuf key, etag, token;
    uint64_t size;
    int64_t mtime_ms;
    /* Entries wait until the page is complete, since its encoding may be told last. */
    QF_VEC(struct entry) entries;
};

struct entry {
    char *key, *etag;
    uint64_t size;
    int64_t mtime_ms;
};

static void page_done(struct page *page)
{
    for (size_t i = 0; i < page->entries.count; i++) {
        free(page->entries.items[i].key);
        free(page->entries.items[i].etag);
    }
    QF_VEC_DONE(&page->entries);
    qf_strbuf_done(&page->key);
    qf_strbuf_done(&page->etag);
    qf_strbuf_done(&page->token);
}

static void keep_text(struct qf_strbuf *to, struct qf_str text)
{
    qf_strbuf_reset(to);
    qf_strbuf_str(to, text);
}

static void end_entry(struct page *page)
{
    struct qf_str etag = s3_etag(qf_strbuf_view(&page->etag));
    struct entry entry = { .key = qf_xstrdup(qf_strbuf_cstr(&page->key)),
                           .etag = qf_xmemdup0(etag.data ? etag.data : "", etag.len),
                           .size = page->size,
                           .mtime_ms = page->mtime_ms };

    QF_VEC_PUSH(&page->entries, entry);
    qf_strbuf_reset(&page->key);
    qf_strbuf_reset(&page->etag);
    page->size = 0;
    page->mtime_ms = 0;
}

static qf_rc on_contents(struct page *page, const struct xml_element *element, struct qf_err *err)
{
    if (qf_str_is(element->name, "Key")) {
        keep_text(&page->key, element->text);
    } else if (qf_str_is(element->name, "ETag")) {
        keep_text(&page->etag, element->text);
    } else if (qf_str_is(element->name, "Size")) {
        if (!qf_parse_u64(element->text, &page->size))
            return qf_err_set(err, QF_EPROTO, "a size is \"%.*s\"", QF_STR_ARG(element->text));
    } else if (qf_str_is(element->name, "LastModified")) {
        if (!qf_time_parse_rfc3339(element->text, &page->mtime_ms))
            page->mtime_ms = 0;
    }
    return QF_OK;
}

static qf_rc on_list_element(void *ctx, const struct xml_element *element, struct qf_err *err)
{
    struct page *page = ctx;

    if (element->depth == 0 && !qf_str_is(element->name, "ListBucketResult"))
        return qf_err_set(err, QF_EPROTO, "a listing is called \"%.*s\"",
                          QF_STR_ARG(element->name));
    if (element->depth == 2 && qf_str_is(element->parent, "Contents"))
        return on_contents(page, element, err);
    if (element->depth == 2 && qf_str_is(element->parent, "CommonPrefixes") &&
        qf_str_is(element->name, "Prefix"))
        keep_text(&page->key, element->text);
    if (element->depth != 1)
        return QF_OK;
    if (qf_str_is(element->name, "Contents")) {
        if (page->listing->folders) /* a file beside the folders */
            qf_strbuf_reset(&page->key);
        else
            end_entry(page);
    } else if (qf_str_is(element->name, "CommonPrefixes")) {
        end_entry(page);
    } else if (qf_str_is(element->name, "EncodingType")) {
        page->url_encoded = qf_str_is(element->text, "url");
    } else if (qf_str_is(element->name, "IsTruncated")) {
        page->truncated = qf_str_is(element->text, "true");
    } else if (qf_str_is(element->name, "NextContinuationToken")) {
        keep_text(&page->token, element->text);
    }
    return QF_OK;
}

/* Parameters in the order in which they are signed. */
static void print_query(const struct listing *listing, struct qf_strbuf *query)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;

    if (listing->token.len) {
        qf_strbuf_puts(query, "continuation-token=");
        s3_escape(query, qf_strbuf_view(&listing->token), false);
        qf_strbuf_putc(query, '&');
    }
    if (listing->folders)
        qf_strbuf_puts(query, "delimiter=%2F&");
    qf_strbuf_puts(query, "encoding-type=url&list-type=2&max-keys=1000&prefix=");
    qf_strbuf_puts(&key, listing->store->key_prefix);
    qf_strbuf_str(&key, listing->prefix);
    s3_escape(query, qf_strbuf_view(&key), false);
    if (listing->start_after.len && !listing->token.len) {
        qf_strbuf_reset(&key);
        qf_strbuf_puts(&key, listing->store->key_prefix);
        qf_strbuf_str(&key, listing->start_after);
        qf_strbuf_puts(query, "&start-after=");
        s3_escape(query, qf_strbuf_view(&key), false);
    }
}

/* Hand one entry on. Order is part of the contract, and a server that breaks it could make the
 * catalogue forget segments, so it is an error. */
static qf_rc report(struct listing *listing, struct qf_str key, const struct entry *entry,
                    struct qf_err *err)
{
    struct qf_str prefix = qf_str_from(listing->store->key_prefix);
    struct qf_str name = qf_str_sub(key, prefix.len, key.len);
    bool valid;

    if (!qf_str_starts(key, prefix) || !qf_str_starts(name, listing->prefix))
        return qf_err_set(err, QF_EPROTO, "a listing has \"%.*s\", which was not asked for",
                          QF_STR_ARG(key));
    if (listing->last.len && qf_str_cmp(name, qf_strbuf_view(&listing->last)) <= 0)
        return qf_err_set(err, QF_EPROTO, "a listing has \"%.*s\" after \"%s\"", QF_STR_ARG(name),
                          qf_strbuf_cstr(&listing->last));
    keep_text(&listing->last, name);
    if (listing->folders) {
        struct sg_store_folder folder = { .name = name };

        valid = name.len && name.data[name.len - 1] == '/' &&
                sg_store_name_valid(qf_str_sub(name, 0, name.len - 1));
        if (valid)
            listing->stop = !listing->folder_fn(listing->ctx, &folder);
    } else {
        struct sg_store_object object = { .name = name,
                                          .size = entry->size,
                                          .mtime_ms = entry->mtime_ms,
                                          .etag = qf_str_from(entry->etag) };

        valid = sg_store_name_valid(name) && qf_str_cmp(name, listing->start_after) > 0;
        if (valid)
            listing->stop = !listing->fn(listing->ctx, &object);
    }
    return QF_OK;
}

static qf_rc report_page(struct listing *listing, const struct page *page, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    qf_rc rc = QF_OK;

    for (size_t i = 0; !rc && !listing->stop && i < page->entries.count; i++) {
        const struct entry *entry = &page->entries.items[i];

        qf_strbuf_reset(&key);
        if (!page->url_encoded)
            qf_strbuf_puts(&key, entry->key);
        else if (!s3_unescape(&key, qf_str_from(entry->key), true))
            return qf_err_set(err, QF_EPROTO, "a listing has the badly escaped \"%s\"", entry->key);
        rc = report(listing, qf_strbuf_view(&key), entry, err);
    }
    listing->seen = page->entries.count;
    return rc;
}

static qf_rc list_page(struct listing *listing, struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf query = QF_STRBUF_INIT;
    QF_CLEANUP(page_done) struct page page = { .listing = listing };
    struct s3_request request = { .method = "GET", .body_max = PAGE_BYTES_MAX, .what = "list" };
    qf_rc rc;

    print_query(listing, &query);
    request.query = qf_strbuf_cstr(&query);
    rc = s3_perform(listing->store, &request, listing->limit, &response, err);
    if (rc)
        return rc;
    rc = xml_parse(qf_strbuf_view(&response.body), on_list_element, &page, err);
    if (!rc)
        rc = report_page(listing, &page, err);
    if (!rc && page.truncated &&
        (!page.token.len ||
         qf_str_eq(qf_strbuf_view(&page.token), qf_strbuf_view(&listing->token))))
        rc = qf_err_set(err, QF_EPROTO, "a page of a listing does not tell where the next begins");
    if (rc)
        return qf_err_prefix(err, rc, "cannot list %s", listing->store->base.url);
    keep_text(&listing->token, page.truncated ? qf_strbuf_view(&page.token) : QF_STR(""));
    return QF_OK;
}

static qf_rc list_pages(struct listing *listing, struct qf_err *err)
{
    unsigned empty = 0;
    qf_rc rc;

    do {
        rc = list_page(listing, err);
        empty = listing->seen ? 0 : empty + 1;
        if (!rc && empty > EMPTY_PAGES_MAX)
            rc = qf_err_set(err, QF_EPROTO, "cannot list %s: page after page is empty",
                            listing->store->base.url);
    } while (!rc && !listing->stop && listing->token.len);
    qf_strbuf_done(&listing->last);
    qf_strbuf_done(&listing->token);
    return rc;
}

qf_rc s3_list(struct sg_store *base, struct qf_str prefix, struct qf_str start_after,
              const struct sg_store_limit *limit, sg_store_list_fn *fn, void *ctx,
              struct qf_err *err)
{
    struct listing listing = { .store = (struct s3_store *)base,
                               .prefix = prefix,
                               .start_after = start_after,
                               .fn = fn,
                               .ctx = ctx,
                               .limit = limit };

    return list_pages(&listing, err);
}

qf_rc s3_folders(struct sg_store *base, struct qf_str prefix, const struct sg_store_limit *limit,
                 sg_store_folder_fn *fn, void *ctx, struct qf_err *err)
{
    struct listing listing = { .store = (struct s3_store *)base,
                               .prefix = prefix,
                               .folders = true,
                               .folder_fn = fn,
                               .ctx = ctx,
                               .limit = limit };

    return list_pages(&listing, err);
}

/* Every answer says when it was made. */
qf_rc s3_clock(struct sg_store *base, const struct sg_store_limit *limit, int64_t *ret_ms,
               struct qf_err *err)
{
    struct s3_store *store = (struct s3_store *)base;
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf query = QF_STRBUF_INIT;
    struct s3_request request = { .method = "GET", .body_max = PAGE_BYTES_MAX, .what = "list" };
    int64_t seconds;
    char date[64];
    qf_rc rc;

    qf_strbuf_puts(&query, "list-type=2&max-keys=1&prefix=");
    s3_escape(&query, qf_str_from(store->key_prefix), false);
    request.query = qf_strbuf_cstr(&query);
    rc = s3_perform(store, &request, limit, &response, err);
    if (rc)
        return rc;
    (void)snprintf(date, sizeof(date), "%.*s", QF_STR_ARG(http_header(&response, "date")));
    seconds = date[0] ? (int64_t)curl_getdate(date, NULL) : -1;
    if (seconds <= 0)
        return qf_err_set(err, QF_EPROTO, "%s: the server does not tell the time", base->url);
    *ret_ms = seconds * 1000;
    return QF_OK;
}

/* --- unfinished uploads --- */

struct upload {
    char *key, *id;
    int64_t started_ms;
};

struct uploads {
    struct upload current;
    QF_VEC(struct upload) items;
};

static qf_rc on_upload_element(void *ctx, const struct xml_element *element, struct qf_err *err)
{
    struct uploads *uploads = ctx;
    struct upload *current = &uploads->current;

    (void)err;
    if (element->depth == 2 && qf_str_is(element->parent, "Upload")) {
        char **to = qf_str_is(element->name, "Key")        ? &current->key
                    : qf_str_is(element->name, "UploadId") ? &current->id
                                                           : NULL;

        if (to) {
            free(*to);
            *to = qf_xmemdup0(element->text.data ? element->text.data : "", element->text.len);
        }
        if (qf_str_is(element->name, "Initiated") &&
            !qf_time_parse_rfc3339(element->text, &current->started_ms))
            current->started_ms = QF_TIME_NEVER;
    }
    if (element->depth == 1 && qf_str_is(element->name, "Upload")) {
        if (current->key && current->id && uploads->items.count < 1000)
            QF_VEC_PUSH(&uploads->items, *current);
        else
            free(current->key), free(current->id);
        *current = (struct upload){ .started_ms = QF_TIME_NEVER };
    }
    return QF_OK;
}

static void uploads_done(struct uploads *uploads)
{
    free(uploads->current.key);
    free(uploads->current.id);
    for (size_t i = 0; i < uploads->items.count; i++) {
        free(uploads->items.items[i].key);
        free(uploads->items.items[i].id);
    }
    QF_VEC_DONE(&uploads->items);
}

/* The first page of uploads only: the next sweep sees those behind it. */
qf_rc s3_sweep(struct sg_store *base, int64_t age_ms, bool dry_run,
               const struct sg_store_limit *limit, size_t *ret_removed, struct qf_err *err)
{
    struct s3_store *store = (struct s3_store *)base;
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf query = QF_STRBUF_INIT;
    QF_CLEANUP(uploads_done)
    struct uploads uploads = { .current = { .started_ms = QF_TIME_NEVER } };
    struct s3_request request = { .method = "GET", .body_max = PAGE_BYTES_MAX, .what = "sweep" };
    struct qf_str prefix = qf_str_from(store->key_prefix);
    int64_t older_than_ms = qf_clock_wall_ms() - age_ms;
    size_t removed = 0;
    qf_rc rc;

    qf_strbuf_puts(&query, "prefix=");
    s3_escape(&query, prefix, false);
    qf_strbuf_puts(&query, "&uploads=");
    request.query = qf_strbuf_cstr(&query);
    rc = s3_perform(store, &request, limit, &response, err);
    if (!rc)
        rc = xml_parse(qf_strbuf_view(&response.body), on_upload_element, &uploads, err);
    for (size_t i = 0; !rc && i < uploads.items.count; i++) {
        const struct upload *upload = &uploads.items.items[i];
        struct qf_str key = qf_str_from(upload->key);
        struct qf_str name = qf_str_sub(key, prefix.len, key.len);

        /* Others may use the bucket, too: only segments are large enough to go up in parts. */
        if (!qf_str_starts(key, prefix) || !qf_str_starts(name, QF_STR("tenant=")) ||
            upload->started_ms >= older_than_ms)
            continue;
        if (!dry_run)
            rc = s3_abort_upload(store, name, qf_str_from(upload->id), limit, err);
        removed += !rc;
    }
    if (!rc)
        *ret_removed = removed;
    return rc;
}
