/* remove.c - take whole segments of a tenant and a time range out of a store, and its annexes. */
#include "segments/write/remove.h"

#include <stdlib.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/tenant.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "segments/annex/annex.h"
#include "segments/catalog/changes.h"
#include "segments/store/turn.h"

/* Names held at once. */
#define PAGE_MAX 1000
#define NOTE_INTERVAL_MS 1000
#define PAUSE_MAX_MS 50
/* How long what was deleted may still be told after an error or a cancel. */
#define LAST_NOTE_MS 5000
/* Folders sort by date from year 0 to 9999. */
#define DATES_MAX_MS INT64_C(253402300799999)

struct going {
    char *name;
    uint64_t size;
    int64_t min_ts, max_ts;
    bool annex;
};

/* Where files of a tenant are. */
enum place { SEGMENTS, EXEMPLARS, METADATA, PLACE__COUNT };

struct removal {
    const struct sg_remove_options *options;
    struct sg_remove_result *result;
    int64_t max_ts;            /* of files in: */
    enum place place;          /* that is looked at */
    struct qf_strbuf last;     /* of the listing: everything up to here was looked at */
    struct qf_strbuf stop;     /* the folder of the range's end; empty: none is known */
    QF_VEC(struct going) page; /* what goes next */
    bool more;                 /* the page ended before the listing */
    struct sg_changes_note note;
    struct sg_turn *turn; /* or NULL */
    int64_t noted_ms, started_ms;
    uint64_t deleted;
};

static void count(struct sg_remove_figures *figures, const struct going *going)
{
    if (going->annex) {
        figures->annexes++;
        return;
    }
    figures->segments++;
    figures->bytes += going->size;
    figures->min_ts = QF_MIN(figures->min_ts, going->min_ts);
    figures->max_ts = QF_MAX(figures->max_ts, going->max_ts);
}

/* What the name of a file says; false if it is another kind of file. *@segment is filled for a segment alone. */
static bool read_name(const struct removal *removal, const struct sg_store_object *object,
                      struct sg_segment_name *segment, struct going *ret_going)
{
    struct sg_annex_name annex = { 0 };
    bool is_annex = removal->place != SEGMENTS;

    if (is_annex ? !sg_annex_name_parse(object->name, &annex)
                 : !sg_segment_name_parse(object->name, segment))
        return false;
    *ret_going = (struct going){ .size = object->size,
                                 .min_ts = is_annex ? annex.min_ts : segment->min_ts,
                                 .max_ts = is_annex ? annex.max_ts : segment->max_ts,
                                 .annex = is_annex };
    return qf_str_eq(is_annex ? annex.tenant : segment->tenant, removal->options->tenant);
}

static bool look(void *ctx, const struct sg_store_object *object)
{
    struct removal *removal = ctx;
    const struct sg_remove_options *o = removal->options;
    struct sg_segment_name name;
    struct going going;
    bool cut;

    if (removal->stop.len && qf_str_cmp(object->name, qf_strbuf_view(&removal->stop)) > 0 &&
        !qf_str_starts(object->name, qf_strbuf_view(&removal->stop)))
        return false; /* from here on all begin later */
    qf_strbuf_reset(&removal->last);
    qf_strbuf_str(&removal->last, object->name);
    if (!read_name(removal, object, &name, &going) || going.min_ts > removal->max_ts ||
        going.max_ts < o->min_ts)
        return true;
    cut = going.min_ts < o->min_ts || going.max_ts > removal->max_ts;
    if (o->on_segment && !o->on_segment(o->ctx, object, going.annex ? NULL : &name, cut)) {
        removal->result->ended = true;
        return false;
    }
    if (cut || o->dry_run) {
        count(cut ? &removal->result->cut : &removal->result->gone, &going);
        return true;
    }
    going.name = qf_xmemdup0(object->name.data, object->name.len);
    QF_VEC_PUSH(&removal->page, going);
    removal->more = removal->page.count == PAGE_MAX;
    return !removal->more;
}

/* Wait until the next deletion is due. */
static qf_rc pace(const struct removal *removal, struct qf_err *err)
{
    const struct sg_remove_options *o = removal->options;
    unsigned rate = o->per_second ? o->per_second : SG_REMOVE_PER_SECOND;
    int64_t due = removal->started_ms + (int64_t)(removal->deleted * 1000 / rate);

    for (;;) {
        int64_t left = due - qf_clock_mono_ms();
        struct timespec pause;

        if (o->cancel && atomic_load_explicit(o->cancel, memory_order_relaxed))
            return qf_err_set(err, QF_ECANCELED, "canceled");
        if (left <= 0)
            return QF_OK;
        pause = (struct timespec){ .tv_nsec = (long)QF_MIN(left, (int64_t)PAUSE_MAX_MS) * 1000000 };
        (void)nanosleep(&pause, NULL);
    }
}

static qf_rc tell(struct removal *removal, const struct sg_store_call *call, struct qf_err *err)
{
    removal->noted_ms = qf_clock_mono_ms();
    return sg_changes_note_put(&removal->note, removal->options->store, call, err);
}

static qf_rc delete_page(struct removal *removal, struct qf_err *err)
{
    struct sg_store_call call = { .cancel = removal->options->cancel };
    qf_rc rc = QF_OK;

    for (size_t i = 0; rc == QF_OK && i < removal->page.count; i++) {
        struct qf_str name = qf_str_from(removal->page.items[i].name);

        rc = pace(removal, err);
        if (rc == QF_OK && removal->turn)
            rc = sg_turn_tick(removal->turn, &call, err);
        if (rc)
            break;
        if (!removal->page.items[i].annex)
            sg_changes_note_add(&removal->note, name); /* one that fails may have happened */
        rc = sg_store_delete(removal->options->store, name, &call, err);
        removal->deleted++;
        if (rc == QF_OK)
            count(&removal->result->gone, &removal->page.items[i]);
        if (rc == QF_OK && qf_clock_mono_ms() - removal->noted_ms >= NOTE_INTERVAL_MS)
            rc = tell(removal, &call, err);
    }
    return rc;
}

static void forget_page(struct removal *removal)
{
    for (size_t i = 0; i < removal->page.count; i++)
        free(removal->page.items[i].name);
    removal->page.count = 0;
}

static qf_rc remove_page(struct removal *removal, struct qf_str prefix, struct qf_err *err)
{
    struct sg_store_call call = { .cancel = removal->options->cancel };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf after = QF_STRBUF_INIT;
    qf_rc rc;

    removal->more = false;
    qf_strbuf_str(&after, qf_strbuf_view(&removal->last));
    rc = sg_store_list(removal->options->store, prefix, qf_strbuf_view(&after), &call, look,
                       removal, err);
    /* What on_segment() was told of went or goes, also if it ended things with the next one. */
    if (rc == QF_OK)
        rc = delete_page(removal, err);
    forget_page(removal);
    return rc;
}

static void print_place(struct qf_strbuf *prefix, enum place place, struct qf_str tenant)
{
    if (place == SEGMENTS)
        qf_strbuf_printf(prefix, "tenant=%.*s/", QF_STR_ARG(tenant));
    else
        sg_annex_print_prefix(prefix, tenant,
                              place == EXEMPLARS ? SG_ANNEX_EXEMPLARS : SG_ANNEX_METADATA);
}

static qf_rc remove_from(struct removal *removal, enum place place, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf prefix = QF_STRBUF_INIT;
    const struct sg_remove_options *o = removal->options;
    qf_rc rc = QF_OK;

    removal->place = place;
    removal->max_ts = o->max_ts;
    if (place == METADATA && o->retention && o->max_ts > INT64_MIN + SG_ANNEX_TOLD_MS)
        removal->max_ts -= SG_ANNEX_TOLD_MS;
    removal->more = true;
    qf_strbuf_reset(&removal->last);
    qf_strbuf_reset(&removal->stop);
    print_place(&prefix, place, o->tenant);
    if (removal->max_ts >= 0 && removal->max_ts <= DATES_MAX_MS && place == SEGMENTS)
        sg_segment_name_print_folder(&removal->stop, o->tenant, removal->max_ts);
    else if (removal->max_ts >= 0 && removal->max_ts <= DATES_MAX_MS)
        sg_annex_print_folder(&removal->stop, o->tenant,
                              place == EXEMPLARS ? SG_ANNEX_EXEMPLARS : SG_ANNEX_METADATA,
                              removal->max_ts);
    while (rc == QF_OK && removal->more && !removal->result->ended)
        rc = remove_page(removal, qf_strbuf_view(&prefix), err);
    return rc;
}

qf_rc sg_remove(const struct sg_remove_options *options, struct sg_remove_result *ret_result,
                struct qf_err *err)
{
    struct removal removal = { .options = options,
                               .result = ret_result,
                               .started_ms = qf_clock_mono_ms(),
                               .noted_ms = qf_clock_mono_ms() };
    struct sg_store_call last = { .timeout_ms = LAST_NOTE_MS };
    qf_rc rc = QF_OK, told;

    *ret_result = (struct sg_remove_result){ .gone = { .min_ts = INT64_MAX, .max_ts = INT64_MIN },
                                             .cut = { .min_ts = INT64_MAX, .max_ts = INT64_MIN } };
    if (!qf_tenant_valid(options->tenant))
        return qf_err_set(err, QF_EINVAL, "not a tenant: \"%.*s\"", QF_STR_ARG(options->tenant));
    if (options->for_good && !options->dry_run)
        rc = sg_turn_remove(options->store, options->tenant, options->min_ts, options->max_ts,
                            &(struct sg_store_call){ .cancel = options->cancel }, options->on_wait,
                            options->ctx, &removal.turn, err);
    for (int place = 0; place < PLACE__COUNT && rc == QF_OK && !ret_result->ended; place++)
        rc = remove_from(&removal, (enum place)place, err);
    /* Lost: a merge may have read what was deleted since. */
    if (rc == QF_OK && removal.turn)
        rc = sg_turn_check(removal.turn, &(struct sg_store_call){ .cancel = options->cancel }, err);
    (void)sg_turn_end(removal.turn);
    told = tell(&removal, &last, rc ? NULL : err);
    QF_VEC_DONE(&removal.page);
    qf_strbuf_done(&removal.last);
    qf_strbuf_done(&removal.stop);
    return rc ? rc : told;
}

/* --- tenants --- */

struct tenants {
    QF_VEC(char *) names;
    size_t prefix_len; /* of folders before "tenant=" */
};

static bool on_folder(void *ctx, const struct sg_store_folder *folder)
{
    static const struct qf_str prefix = QF_STR_INIT("tenant=");
    struct tenants *tenants = ctx;
    struct qf_str name = qf_str_sub(folder->name, tenants->prefix_len, folder->name.len - 1);
    struct qf_str tenant = qf_str_sub(name, prefix.len, name.len);

    if (qf_str_starts(name, prefix) && qf_tenant_valid(tenant))
        QF_VEC_PUSH(&tenants->names, qf_xmemdup0(tenant.data, tenant.len));
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

qf_rc sg_remove_tenants(struct sg_store *store, const struct sg_store_call *call,
                        sg_remove_tenant_fn *fn, void *ctx, struct qf_err *err)
{
    struct tenants tenants = { 0 };
    bool go_on = true;
    qf_rc rc = sg_store_folders(store, QF_STR(""), call, on_folder, &tenants, err);

    tenants.prefix_len = sizeof(SG_ANNEX_PREFIX) - 1;
    if (rc == QF_OK)
        rc = sg_store_folders(store, QF_STR(SG_ANNEX_PREFIX), call, on_folder, &tenants, err);
    if (tenants.names.count)
        qsort(tenants.names.items, tenants.names.count, sizeof(char *), by_text);
    for (size_t i = 0; i < tenants.names.count; i++) {
        bool again = i && strcmp(tenants.names.items[i - 1], tenants.names.items[i]) == 0;

        if (rc == QF_OK && go_on && !again)
            go_on = fn(ctx, qf_str_from(tenants.names.items[i]));
    }
    for (size_t i = 0; i < tenants.names.count; i++)
        free(tenants.names.items[i]);
    QF_VEC_DONE(&tenants.names);
    return rc;
}
