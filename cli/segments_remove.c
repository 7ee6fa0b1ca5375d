/* segments_remove.c - promfabric segments rm and expire: look first, ask, then delete. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/tenant.h"
#include "base/sys/clock.h"
#include "base/sys/small_file.h"
#include "cli/segments.h"
#include "queryapi/http/params.h"
#include "queryapi/tenant/tenants.h"
#include "segments/annex/annex.h"
#include "segments/catalog/changes.h"
#include "segments/write/remove.h"
#include "segments/store/turn.h"

/* Of the segments that a range cuts so many are named. */
#define CUT_SHOWN_MAX 10

struct removal {
    const struct segments_cli *cli;
    struct sg_store *store;
    const atomic_bool *cancel;
    struct qa_tenants *tenants; /* expire */
    int64_t now_ms;             /* expire */
    int64_t min_ts, max_ts;     /* rm */
    bool dry_run;
    uint64_t cut_shown;
    struct sg_remove_figures gone, cut; /* of all tenants */
    struct qf_err err;
};

static void print_figures(struct qf_strbuf *text, const struct sg_remove_figures *figures)
{
    qf_strbuf_printf(text, "%" PRIu64 " segment%s", figures->segments,
                     figures->segments == 1 ? "" : "s");
    if (figures->segments) {
        qf_strbuf_puts(text, ", ");
        segments_print_bytes(text, figures->bytes);
        qf_strbuf_puts(text, ", ");
        segments_print_times(text, figures->min_ts, figures->max_ts);
    }
    if (figures->annexes)
        qf_strbuf_printf(text, ", and %" PRIu64 " file%s of exemplars and metadata",
                         figures->annexes, figures->annexes == 1 ? "" : "s");
}

static void add(struct sg_remove_figures *sum, const struct sg_remove_figures *figures)
{
    sum->segments += figures->segments;
    sum->bytes += figures->bytes;
    sum->annexes += figures->annexes;
    sum->min_ts = QF_MIN(sum->min_ts, figures->min_ts);
    sum->max_ts = QF_MAX(sum->max_ts, figures->max_ts);
}

static bool name_cut(void *ctx, const struct sg_store_object *object,
                     const struct sg_segment_name *name, bool cut)
{
    struct removal *r = ctx;

    (void)name;
    if (cut && r->dry_run && r->cut_shown++ < CUT_SHOWN_MAX)
        printf("stays, as only a part of it is in the range: %.*s\n", QF_STR_ARG(object->name));
    return true;
}

static void say_wait(void *ctx)
{
    (void)ctx;
    fprintf(stderr, "waiting for a compaction of these times to end\n");
}

/* One tenant and range; false after an error. */
static bool remove_range(struct removal *r, struct qf_str tenant, int64_t min_ts, int64_t max_ts,
                         bool name_those_cut)
{
    struct sg_remove_options options = { .store = r->store,
                                         .tenant = tenant,
                                         .min_ts = min_ts,
                                         .max_ts = max_ts,
                                         .retention = r->tenants != NULL,
                                         .dry_run = r->dry_run,
                                         .for_good = name_those_cut,
                                         .on_wait = say_wait,
                                         .cancel = r->cancel,
                                         .on_segment = name_those_cut ? name_cut : NULL,
                                         .ctx = r };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_remove_result result;
    qf_rc rc = sg_remove(&options, &result, &r->err);

    add(&r->gone, &result.gone);
    add(&r->cut, &result.cut);
    if (result.gone.segments + result.gone.annexes) {
        print_figures(&text, &result.gone);
        printf("%s of tenant %.*s: %s\n", r->dry_run ? "would go" : "gone", QF_STR_ARG(tenant),
               qf_strbuf_cstr(&text));
    }
    return rc == QF_OK;
}

static void begin(struct removal *r, bool dry_run)
{
    struct sg_remove_figures none = { .min_ts = INT64_MAX, .max_ts = INT64_MIN };

    r->dry_run = dry_run;
    r->gone = r->cut = none;
    r->cut_shown = 0;
}

static int failed(const struct removal *r)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    print_figures(&text, &r->gone);
    fprintf(stderr, "error: %s; %s before that: %s\n", r->err.msg, r->dry_run ? "found" : "deleted",
            qf_strbuf_cstr(&text));
    return 1;
}

/* Look, ask, delete, look again. @pass runs over what is to be looked at. */
static int remove_asked(struct removal *r, bool (*pass)(struct removal *r))
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    uint64_t deleted;

    begin(r, true);
    if (!pass(r))
        return failed(r);
    print_figures(&text, &r->gone);
    printf("%s would go", qf_strbuf_cstr(&text));
    if (r->cut.segments)
        printf("; %" PRIu64 " stay whole, as the range cuts them: segments are not rewritten",
               r->cut.segments);
    printf("\n");
    if (r->cli->dry_run || !(r->gone.segments + r->gone.annexes))
        return 0;
    (void)fflush(stdout);
    if (!segments_confirm(r->cli, "Delete them?"))
        return 2;
    begin(r, false);
    if (!pass(r))
        return failed(r);
    deleted = r->gone.segments + r->gone.annexes;
    begin(r, true); /* a compaction or an import that was under way may have put some again */
    if (!pass(r))
        return failed(r);
    printf("%" PRIu64 " deleted\n", deleted);
    if (!(r->gone.segments + r->gone.annexes))
        return 0;
    fprintf(stderr,
            "error: %" PRIu64 " came meanwhile, of an import or a compaction: run it again\n",
            r->gone.segments + r->gone.annexes);
    return 1;
}

/* --- rm NAME... --- */

/* A merge that has read it must not bring it back. */
static qf_rc remove_name(struct removal *r, struct qf_str name, const struct sg_store_call *call)
{
    struct sg_segment_name parts;
    struct sg_turn *turn = NULL;
    qf_rc rc = QF_OK;

    if (sg_segment_name_parse(name, &parts))
        rc = sg_turn_remove(r->store, parts.tenant, parts.min_ts, parts.max_ts, call, say_wait,
                            NULL, &turn, &r->err);
    if (rc == QF_OK)
        rc = sg_store_delete(r->store, name, call, &r->err);
    if (rc == QF_OK && turn)
        rc = sg_turn_check(turn, call, &r->err);
    (void)sg_turn_end(turn);
    return rc;
}

static int remove_names(struct removal *r, char **names, int count)
{
    struct sg_changes_note note = { 0 };
    struct sg_store_call call = { .cancel = r->cancel };
    struct sg_segment_name name;
    struct sg_annex_name annex;
    int deleted = 0;
    qf_rc rc = QF_OK;

    for (int i = 0; i < count; i++) {
        struct sg_store_info info;

        if (!sg_segment_name_parse(qf_str_from(names[i]), &name) &&
            !sg_annex_name_parse(qf_str_from(names[i]), &annex)) {
            fprintf(stderr, "error: %s: not the name of a segment\n", names[i]);
            return 2;
        }
        if (sg_store_stat(r->store, qf_str_from(names[i]), &call, &info, &r->err) != QF_OK) {
            fprintf(stderr, "error: %s\n", r->err.msg);
            return 1;
        }
        printf("would go: %s, %" PRIu64 " bytes\n", names[i], info.size);
    }
    if (r->cli->dry_run)
        return 0;
    (void)fflush(stdout);
    if (!segments_confirm(r->cli, "Delete them?"))
        return 2;
    for (int i = 0; i < count && rc == QF_OK; i++) {
        rc = remove_name(r, qf_str_from(names[i]), &call);
        if (!sg_annex_name_parse(qf_str_from(names[i]), &annex))
            sg_changes_note_add(&note, qf_str_from(names[i]));
        deleted += rc == QF_OK;
    }
    if (rc == QF_OK)
        rc = sg_changes_note_put(&note, r->store, NULL, &r->err);
    sg_changes_note_done(&note);
    printf("%d deleted\n", deleted);
    if (rc != QF_OK)
        fprintf(stderr, "error: %s\n", r->err.msg);
    return rc == QF_OK ? 0 : 1;
}

/* --- rm of a range --- */

static bool pass_range(struct removal *r)
{
    return remove_range(r, qf_str_from(r->cli->tenant), r->min_ts, r->max_ts, true);
}

static bool read_range(struct removal *r)
{
    const struct segments_cli *cli = r->cli;
    struct qf_err *err = &r->err;
    int64_t now = qf_clock_wall_ms();

    r->min_ts = INT64_MIN;
    r->max_ts = INT64_MAX;
    if (!cli->tenant || (!cli->from && !cli->to)) {
        (void)qf_err_set(err, QF_EINVAL, "say which: names, or --tenant and --from, --to or both");
        return false;
    }
    if (!qf_tenant_valid(qf_str_from(cli->tenant))) {
        (void)qf_err_set(err, QF_EINVAL, "--tenant %s: no tenant can be called that", cli->tenant);
        return false;
    }
    if ((cli->from && qa_param_when("--from", qf_str_from(cli->from), now, QF_TIME_NEVER,
                                    &r->min_ts, err) != QF_OK) ||
        (cli->to &&
         qa_param_when("--to", qf_str_from(cli->to), now, QF_TIME_NEVER, &r->max_ts, err) != QF_OK))
        return false;
    if (cli->to)
        r->max_ts--; /* before it */
    if (r->min_ts <= r->max_ts)
        return true;
    (void)qf_err_set(err, QF_EINVAL, "--from is not before --to");
    return false;
}

int segments_rm(const struct segments_cli *cli, struct sg_store *store, char **names,
                int name_count)
{
    struct removal r = { .cli = cli, .store = store, .cancel = segments_catch_signals() };

    if (name_count && !cli->from && !cli->to)
        return remove_names(&r, names, name_count);
    if (name_count || !read_range(&r)) {
        fprintf(stderr, "error: %s\n",
                name_count ? "names and times do not go together" : r.err.msg);
        return 2;
    }
    return remove_asked(&r, pass_range);
}

/* --- expire --- */

static bool expire_tenant(void *ctx, struct qf_str tenant)
{
    struct removal *r = ctx;
    struct qf_limits limits = qa_tenants_limits(r->tenants, tenant);
    int64_t oldest = qf_limits_oldest(&limits, r->now_ms);

    if (oldest == INT64_MIN || (r->cli->tenant && !qf_str_is(tenant, r->cli->tenant)))
        return true;
    return remove_range(r, tenant, INT64_MIN, oldest - r->cli->slack_ms - 1, false);
}

static bool pass_tenants(struct removal *r)
{
    struct sg_store_call call = { .cancel = r->cancel };
    struct qf_err err = { 0 };

    if (sg_remove_tenants(r->store, &call, expire_tenant, r, &err) != QF_OK)
        r->err = err;
    return r->err.rc == QF_OK;
}

/* The earlier of two clocks, if they do not differ by too much. */
static bool tell_time(struct removal *r)
{
    int64_t stores, wall;

    if (sg_store_clock(r->store, NULL, &stores, &r->err) != QF_OK)
        return false;
    wall = qf_clock_wall_ms();
    r->now_ms = QF_MIN(stores, wall);
    if (wall - stores <= r->cli->slack_ms && stores - wall <= r->cli->slack_ms)
        return true;
    (void)qf_err_set(&r->err, QF_EINVAL,
                     "this machine's clock and the store's differ by %" PRId64
                     " s, more than --retention-slack: nothing is deleted",
                     (wall - stores) / 1000);
    return false;
}

int segments_expire(const struct segments_cli *cli, struct sg_store *store)
{
    struct removal r = { .cli = cli, .store = store, .cancel = segments_catch_signals() };
    struct qf_purse purse = { .limit = SIZE_MAX };
    struct qa_tenants_options tenants = {
        .limits.of = { [QF_LIMIT_RETENTION] = (uint64_t)cli->retention_ms },
        .file = cli->limits_file,
        .purse = &purse,
    };
    int code = 2;

    r.tenants = qa_tenants_new(&tenants, &r.err);
    if (r.tenants && !qa_tenants_retentions(r.tenants))
        (void)qf_err_set(&r.err, QF_EINVAL, "say --retention, or --tenant-limits with one");
    if (r.tenants && r.err.rc == QF_OK && tell_time(&r))
        code = remove_asked(&r, pass_tenants);
    else
        fprintf(stderr, "error: %s\n", r.err.msg);
    (void)qa_tenants_free(r.tenants);
    return code;
}
