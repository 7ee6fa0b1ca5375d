/* cmd_compact.c - promfabric compact: many small segments become few. */
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/tenant.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "cli/flags.h"
#include "segments/compact/pass.h"
#include "segments/write/claim.h"

int cli_compact(int argc, char **argv);

static struct {
    const char *store, *tenant, *temp_dir, *ingest_key, *ingest_ca;
    int64_t grace, settle;
    uint64_t file_size, memory;
    bool dry_run, ingest_stopped, quiet;
} o;

static struct cli_list ingest;

static const struct cli_flag flags[] = {
    { "store", CLI_FLAG_STR, &o.store, "URL", "./store",
      "where segments are: a folder, s3://bucket/prefix or ring://HOST:PORT[,...]" },
    { "tenant", CLI_FLAG_STR, &o.tenant, "NAME", NULL, "only this tenant's" },
    { "dry-run", CLI_FLAG_BOOL, &o.dry_run, NULL, NULL,
      "tell what would be merged and deleted, and change nothing" },
    { "settle", CLI_FLAG_DURATION, &o.settle, "DURATION", "1h",
      "merge a segment only when it was written, and its time window ended, this long ago; at "
      "most 1h" },
    { "grace", CLI_FLAG_DURATION, &o.grace, "DURATION", "2h",
      "delete replaced segments this much later; must be longer than listing the store twice" },
    { "file-size", CLI_FLAG_BYTES, &o.file_size, "BYTES", "512MiB",
      "segments of this size are not merged any further" },
    { "memory", CLI_FLAG_BYTES, &o.memory, "BYTES", "256MiB", "memory for reading" },
    { "temp-dir", CLI_FLAG_STR, &o.temp_dir, "DIR", NULL,
      "where temporary files go (default $TMPDIR or /tmp)" },
    { "ingest", CLI_FLAG_LIST, &ingest, "HOST:PORT", NULL,
      "HTTP address of an ingest node that writes to this store; repeatable. They are asked what "
      "is "
      "sealed" },
    { "ingest-key", CLI_FLAG_STR, &o.ingest_key, "FILE", NULL,
      "a line with the operator's key of the ingest nodes" },
    { "ingest-tls-ca", CLI_FLAG_STR, &o.ingest_ca, "FILE", NULL,
      "ingest nodes are asked over TLS and must show a certificate signed by one of these (PEM)" },
    { "ingest-stopped", CLI_FLAG_BOOL, &o.ingest_stopped, NULL, NULL,
      "ingest nodes that wrote to this store have sealed everything and are stopped" },
    { "quiet", CLI_FLAG_BOOL, &o.quiet, NULL, NULL, "no progress" },
};

static const struct cli_spec spec = {
    "promfabric compact [FLAG...]",
    "Merge the segments of each shard into one per two hours and then per day, as far as windows "
    "are over\n"
    "and nobody can add to them. Answers do not change, at no moment. Replaced segments stay for "
    "--grace\n"
    "and are deleted by the next run after that. Safe to interrupt, to repeat and to run twice at "
    "once.\n"
    "With --ingest a run takes what an earlier run, --settle ago, found sealed: repeat it, say "
    "every "
    "quarter\n"
    "of an hour. On nodes of our own (ring://) the ingest nodes of the store are asked, and inputs "
    "are traded\n"
    "for outputs at once: --ingest and --grace do not matter.",
    flags,
    QF_COUNT_OF(flags),
};

static atomic_bool interrupted;

static void on_signal(int number)
{
    (void)number;
    atomic_store_explicit(&interrupted, true, memory_order_relaxed);
}

struct progress {
    bool terminal;
    int64_t shown_ms, started_ms;
};

static void clear_line(const struct progress *progress)
{
    if (progress->terminal)
        fputs("\r\033[K", stderr);
}

static void on_event(void *ctx, enum sg_pass_event event, const char *text)
{
    struct progress *progress = ctx;

    if (o.quiet && event != SG_PASS_DAMAGED && event != SG_PASS_SKIPPED)
        return;
    clear_line(progress);
    switch (event) {
    case SG_PASS_JOB:
        if (o.dry_run)
            printf("would merge %s\n", text);
        else
            fprintf(stderr, "merging %s\n", text);
        break;
    case SG_PASS_DAMAGED:
        fprintf(stderr, "error: %s; it is left alone\n", text);
        break;
    case SG_PASS_VANISHED:
        fprintf(stderr, "another compactor was quicker: %s\n", text);
        break;
    case SG_PASS_REMOVED:
        fprintf(stderr, "left for later: %s\n", text);
        break;
    case SG_PASS_SKIPPED:
        fprintf(stderr, "error: %s; more --memory is needed\n", text);
        break;
    case SG_PASS_DELETE:
        if (o.dry_run)
            printf("would delete %s\n", text);
        break;
    }
}

static void on_progress(void *ctx, const struct sg_job_result *so_far)
{
    struct progress *progress = ctx;
    int64_t now = qf_clock_mono_ms();

    if (o.quiet || !progress->terminal || now - progress->shown_ms < 200)
        return;
    progress->shown_ms = now;
    clear_line(progress);
    fprintf(stderr, "%" PRIu64 " samples", so_far->samples);
    (void)fflush(stderr);
}

/* --- tenants --- */

struct tenants {
    QF_VEC(char *) items;
};

static bool on_folder(void *ctx, const struct sg_store_folder *folder)
{
    struct tenants *tenants = ctx;
    struct qf_str prefix = QF_STR("tenant=");
    struct qf_str name = qf_str_sub(folder->name, prefix.len, folder->name.len - 1);

    if (qf_str_starts(folder->name, prefix) && qf_tenant_valid(name))
        QF_VEC_PUSH(&tenants->items, qf_xmemdup0(name.data, name.len));
    return true;
}

static qf_rc find_tenants(struct sg_store *store, struct tenants *tenants, struct qf_err *err)
{
    struct sg_store_call call = { .cancel = &interrupted };

    if (!o.tenant)
        return sg_store_folders(store, QF_STR(""), &call, on_folder, tenants, err);
    if (!qf_tenant_valid(qf_str_from(o.tenant)))
        return qf_err_set(err, QF_EINVAL, "not a valid tenant: %s", o.tenant);
    QF_VEC_PUSH(&tenants->items, qf_xstrdup(o.tenant));
    return QF_OK;
}

/* --- one of them --- */

static void add(struct sg_pass_result *total, const struct sg_pass_result *r)
{
    total->files_before += r->files_before;
    total->bytes_before += r->bytes_before;
    total->files_after += r->files_after;
    total->bytes_after += r->bytes_after;
    total->jobs += r->jobs;
    total->merged += r->merged;
    total->written += r->written;
    total->samples += r->samples;
    total->damaged += r->damaged;
    total->skipped += r->skipped;
    total->deleted += r->deleted;
    total->doomed += r->doomed;
    total->waiting += r->waiting;
    total->annexes_merged += r->annexes_merged;
    total->annexes_written += r->annexes_written;
}

static qf_rc compact(struct sg_store *store, const struct sg_agree *agree, const char *tenant,
                     struct progress *progress, struct sg_pass_result *total, struct qf_err *err)
{
    struct sg_pass_options options = { .store = store,
                                       .agree = agree,
                                       .ingest_stopped = o.ingest_stopped,
                                       .temp_dir = o.temp_dir,
                                       .memory_bytes = o.memory,
                                       .file_bytes = o.file_size,
                                       .settle_ms = o.settle,
                                       .grace_ms = o.grace,
                                       .dry_run = o.dry_run,
                                       .cancel = &interrupted,
                                       .on_event = on_event,
                                       .on_progress = on_progress,
                                       .ctx = progress };
    struct sg_pass_result result = { 0 };
    qf_rc rc = sg_pass_run(&options, qf_str_from(tenant), &result, err);

    add(total, &result);
    return rc;
}

static void print_summary(const struct sg_pass_result *r, const struct progress *progress)
{
    double seconds = (double)(qf_clock_mono_ms() - progress->started_ms) / 1000;

    if (o.dry_run)
        printf("would run %" PRIu64 " jobs over %" PRIu64 " of %" PRIu64
               " segments and delete %" PRIu64,
               r->jobs, r->merged, r->files_before, r->deleted);
    else
        printf("%" PRIu64 " segments (%" PRIu64 " bytes) are %" PRIu64 " (%" PRIu64
               " bytes) now: %" PRIu64 " jobs, %" PRIu64 " samples, in %.1f s; %" PRIu64
               " replaced ones deleted",
               r->files_before, r->bytes_before, r->files_after, r->bytes_after, r->jobs,
               r->samples, seconds, r->deleted);
    if (r->doomed)
        printf(", %" PRIu64 " wait for it", r->doomed);
    if (r->annexes_merged && o.dry_run)
        printf("; %" PRIu64 " files of exemplars and metadata would be merged", r->annexes_merged);
    else if (r->annexes_merged)
        printf("; %" PRIu64 " files of exemplars and metadata are %" PRIu64 " now",
               r->annexes_merged, r->annexes_written);
    if (r->waiting)
        printf("; %" PRIu64 " are too young, or an import is under way%s", r->waiting,
               ingest.count ? ", or were sealed since --settle" : "");
    if (r->damaged)
        printf("; %" PRIu64 " are damaged", r->damaged);
    printf("\n");
}

static int run(struct sg_store *store, const struct sg_agree *agree)
{
    struct progress progress = { .terminal = isatty(STDERR_FILENO) == 1,
                                 .started_ms = qf_clock_mono_ms() };
    struct tenants tenants = { 0 };
    struct sg_pass_result total = { 0 };
    struct qf_err err = { 0 };
    bool failed = find_tenants(store, &tenants, &err) != QF_OK;

    if (failed)
        fprintf(stderr, "error: %s\n", err.msg);
    for (size_t i = 0; i < tenants.items.count; i++) {
        struct qf_err why = { 0 };

        if (!atomic_load_explicit(&interrupted, memory_order_relaxed) &&
            compact(store, agree, tenants.items.items[i], &progress, &total, &why) != QF_OK) {
            clear_line(&progress);
            fprintf(stderr, "error: %s\n", why.msg);
            failed = true;
        }
        free(tenants.items.items[i]);
    }
    QF_VEC_DONE(&tenants.items);
    clear_line(&progress);
    print_summary(&total, &progress);
    return failed || total.damaged || total.skipped ||
                   atomic_load_explicit(&interrupted, memory_order_relaxed)
               ? 1
               : 0;
}

static bool flags_valid(void)
{
    if (o.settle < 0 || o.settle > SG_CLAIM_ENDED_MS)
        fprintf(stderr, "error: --settle is from 0s to 1h\n");
    else if (o.grace < 0)
        fprintf(stderr, "error: --grace is from 0s on\n");
    else if (ingest.count && strncmp(o.store, "ring://", 7) == 0)
        fprintf(stderr, "error: --ingest does not go with ring://: its own nodes are asked\n");
    else if (ingest.count && o.ingest_stopped)
        fprintf(stderr, "error: --ingest and --ingest-stopped do not go together\n");
    else if (o.file_size == 0 || o.memory < (UINT64_C(16) << 20))
        fprintf(stderr, "error: --file-size is from 1 on, --memory from 16MiB on\n");
    else
        return true;
    return false;
}

/* Who is asked what is sealed, if there is anybody. */
static bool make_agree(struct sg_agree **ret_agree, struct qf_err *err)
{
    const struct sg_agree_options options = { .nodes = (const char *const *)ingest.items,
                                              .node_count = ingest.count,
                                              .key_file = o.ingest_key,
                                              .ca_file = o.ingest_ca };

    return !ingest.count || sg_agree_new(&options, ret_agree, err) == QF_OK;
}

int cli_compact(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct sg_store_options options = { 0 };
    struct qf_err err = { 0 };
    struct sg_store *store = NULL;
    struct sg_agree *agree = NULL;
    int positional, code;

    switch (cli_flags_parse(&spec, argc, argv, &positional)) {
    case CLI_PARSED_HELP:
        return 0;
    case CLI_PARSED_BAD:
        return 2;
    case CLI_PARSED_OK:
        break;
    }
    if (positional) {
        fprintf(stderr, "error: %s: compact takes flags only; try --help\n", argv[1]);
        return 2;
    }
    if (!flags_valid())
        return 2;
    options.url = o.store;
    if (!make_agree(&agree, &err) || sg_store_open(&options, &store, &err) != QF_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        (void)sg_agree_free(agree);
        return 1;
    }
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    code = run(store, agree);
    (void)sg_agree_free(agree);
    (void)sg_store_free(store);
    return code;
}
