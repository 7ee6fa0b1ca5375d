/* cache_parts.c - segments that are copied in parts: who still waits for which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "queryworker/cache/cache_int.h"

#define PART_SUFFIX ".some" /* of no use to a later process, which does not know what is in it */

/* Where the copy with holes is while the whole one would be at @path. */
static char *partial_path(const char *path)
{
    const char *dot = strrchr(path, '.');
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_printf(&text, "%.*s" PART_SUFFIX, (int)(dot ? dot - path : (long)strlen(path)), path);
    return qf_strbuf_take(&text);
}

static void set_partial_path(struct qw_download *d, char *path)
{
    const char *slash = strrchr(path, '/');

    d->partial_path = path;
    d->partial_label = slash ? slash + 1 : path;
}

void qw_parts_need(struct qw_download *d, struct qw_need *need)
{
    if (!need) /* a head input, or a store that is a folder */
        return;
    if (!d->partial_path)
        set_partial_path(d, partial_path(d->path));
    d->needs = qf_xrealloc(d->needs, (d->need_count + 1) * sizeof(struct qw_need *));
    d->needs[d->need_count++] = qw_need_ref(need);
}

qf_rc qw_parts_more(struct qw_cache *cache, struct qw_segment *s, struct qf_err *err)
{
    struct qw_download *d;
    bool any = false;

    for (const struct qw_hold *hold = cache->waiting; hold && !any; hold = hold->next)
        any = qw_hold_has(hold, s);
    if (!any)
        return QF_OK;
    d = qw_cache_download_new(cache, s, s->store_name, s->etag);
    set_partial_path(d, qf_xstrdup(s->path));
    d->upto = cache->last_hold;
    d->partial = s->partial;
    d->reader = s->reader;
    for (const struct qw_hold *hold = cache->waiting; hold; hold = hold->next)
        if (qw_hold_has(hold, s))
            qw_parts_need(d, hold->need);
    return qw_cache_download_start(cache, d, s->size_announced - s->partial->bytes, err);
}

void qw_parts_back(struct qw_cache *cache, struct qw_segment *s, struct qw_download *d)
{
    if (!d->partial)
        return;
    if (!s->partial) { /* the first parts of it */
        s->partial = d->partial;
        s->store_name = qf_xstrdup(d->name);
        s->etag = qf_xstrdup(d->etag_expected);
        free(s->path);
        s->path = qf_xstrdup(d->partial_path);
    }
    if (d->reader_opened)
        qw_segment_give_reader(cache, s, d->reader);
    if (d->rc ==
        QF_ENOTFOUND) /* it was replaced since: what is here is of no use to the next plan */
        (void)qw_segment_distrust(cache, s);
    if (s->distrusted && d->rc == QF_OK) /* a scan found it bad meanwhile */
        d->rc = qf_err_set(&d->err, QF_EUNAVAILABLE, "the copy of %s is damaged", d->name);
}

void qw_parts_unpinned(struct qw_segment *s)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    if (!s->partial || s->download || !s->partial->whole || !s->present)
        return;
    qf_strbuf_printf(&path, "%.*s" QW_CACHE_SUFFIX, (int)(strlen(s->path) - strlen(PART_SUFFIX)),
                     s->path);
    if (rename(s->path, qf_strbuf_cstr(&path)) == 0) {
        free(s->path);
        s->path = qf_strbuf_take(&path);
        s->partial = qw_partial_free(s->partial);
    }
    qf_strbuf_done(&path);
}
