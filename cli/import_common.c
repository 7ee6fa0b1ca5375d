/* import_common.c - what `import` and `demo-data` share. */
#include "cli/import_common.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/pure/strbuf.h"
#include "base/pure/duration.h"
#include "base/sys/clock.h"
#include "base/pure/tenant.h"
#include "segments/store/identity.h"
#include "segments/write/claim.h"
#include "segments/write/sweep.h"

#define MALFORMED_SHOWN_MAX 10
#define BAR_WIDTH 30
/* Blocks from this size on go back to the system when they are freed: what was sorted does not stay
 * beside what is sorted next. */
#define MMAP_THRESHOLD (256 << 10)

static atomic_bool interrupted;

static void on_signal(int number)
{
    (void)number;
    atomic_store_explicit(&interrupted, true, memory_order_relaxed);
}

static void clear_line(const struct import_cli *cli)
{
    if (cli->terminal)
        fputs("\r\033[K", stderr);
}

void import_cli_malformed(void *ctx, const char *file, uint64_t line, const char *what)
{
    struct import_cli *cli = ctx;

    if (cli->malformed_shown++ >= MALFORMED_SHOWN_MAX)
        return;
    clear_line(cli);
    fprintf(stderr, "%s:%" PRIu64 ": skipped: %s\n", file, line, what);
}

/* A time a thousand times off is found much later: what was taken for what is said. */
void import_cli_read(void *ctx, const struct sg_import_read *read)
{
    static const char *const texts[] = {
        [SG_IMPORT_OPENMETRICS] = "OpenMetrics, times in seconds",
        [SG_IMPORT_PROMETHEUS] = "Prometheus text, times in milliseconds",
        [SG_IMPORT_TSDB_DUMP] = "a dump of promtool, times in milliseconds",
    };
    struct import_cli *cli = ctx;

    if (read->format == SG_IMPORT_AUTO)
        return;
    clear_line(cli);
    if (read->guessed && !cli->quiet)
        fprintf(stderr, "%s: read as %s (--format says otherwise)\n", read->file,
                texts[read->format]);
    if (read->format == SG_IMPORT_OPENMETRICS && !read->ended)
        fprintf(stderr, "warning: %s: no # EOF at its end: it may have been cut short\n",
                read->file);
}

static void print_bar(double done, double seconds)
{
    int filled = (int)(done * BAR_WIDTH);

    fputc('[', stderr);
    for (int i = 0; i < BAR_WIDTH; i++)
        fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %3.0f%%", done * 100);
    if (done > 0.01 && seconds > 1)
        fprintf(stderr, " %.0fs left", seconds / done - seconds);
}

/* One line, or none: @samples so far, @done of everything (negative: not known). */
static void show(struct import_cli *cli, const char *phase, uint64_t samples, double done,
                 uint64_t segments)
{
    int64_t now = qf_clock_mono_ms();
    double seconds = (double)(now - cli->phase_ms) / 1000;

    if (cli->quiet || now - cli->shown_ms < (cli->terminal ? 200 : 5000))
        return;
    cli->shown_ms = now;
    clear_line(cli);
    if (cli->terminal && done >= 0)
        print_bar(done, seconds);
    fprintf(stderr, "%s%s: %" PRIu64 " samples, %.2f M/s", cli->terminal ? " " : "", phase, samples,
            seconds > 0 ? (double)samples / seconds / 1e6 : 0);
    if (segments)
        fprintf(stderr, ", %" PRIu64 " segments", segments);
    if (cli->malformed)
        fprintf(stderr, ", %" PRIu64 " malformed lines", cli->malformed);
    if (!cli->terminal)
        fputc('\n', stderr);
    (void)fflush(stderr);
}

void import_cli_reading(void *ctx, const struct sg_import_progress *progress)
{
    struct import_cli *cli = ctx;
    struct sg_store_call call = { .cancel = &interrupted };
    uint64_t total = cli->inputs_bytes ? cli->inputs_bytes : progress->bytes_total;

    if (cli->claim)
        sg_claim_tick(cli->claim, &call);
    cli->malformed = progress->malformed;
    show(cli, "reading", progress->samples,
         total ? (double)progress->bytes_done / (double)total : -1, 0);
}

static void on_writing(void *ctx, const struct sg_batch_summary *s)
{
    struct import_cli *cli = ctx;

    if (!cli->writing)
        cli->phase_ms = qf_clock_mono_ms();
    cli->writing = true;
    show(cli, "writing", s->merged_samples, (double)s->merged_samples / (double)s->samples,
         s->segments + s->segments_present);
}

/* Remove what imports that were killed left behind; false if the store cannot be used. */
static bool sweep(const struct import_cli *cli)
{
    struct sg_store_call call = { .cancel = &interrupted };
    struct sg_sweep_options options = { .store = cli->opened, .temp_dir = cli->temp_dir };
    struct sg_sweep swept;
    struct qf_err err = { 0 }, why = { 0 };

    if (sg_sweep(&options, &call, &swept, &why, &err) != QF_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        return false;
    }
    if (cli->quiet)
        return true;
    if (why.rc)
        fprintf(stderr, "warning: cannot look for unfinished uploads: %s\n", why.msg);
    if (swept.in_store + swept.folders)
        fprintf(stderr, "removed what earlier imports left behind: %zu in the store, %zu here\n",
                swept.in_store, swept.folders);
    return true;
}

/* Compactors keep away from the generation from now on. */
static bool claim(struct import_cli *cli)
{
    struct sg_store_call call = { .cancel = &interrupted };
    struct qf_err err = { 0 };

    if (!qf_tenant_valid(qf_str_from(cli->tenant)))
        return true; /* the batch says so */
    if (sg_claim_new(cli->opened, qf_str_from(cli->tenant), (uint64_t)qf_clock_wall_ms() * 1000,
                     &call, &cli->claim, &err) != QF_OK)
        fprintf(stderr, "error: %s\n", err.msg);
    return cli->claim != NULL;
}

bool import_cli_start(struct import_cli *cli, struct sg_batch_options *ret_options)
{
    struct sg_store_options store = { .url = cli->store, .create = true };
    struct sigaction action = { .sa_handler = on_signal };
    struct qf_err err = { 0 };

    if (cli->shards > UINT32_MAX)
        cli->shards = 0; /* refused with the others that are no power of two */
    if (sg_store_open(&store, &cli->opened, &err) != QF_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        return false;
    }
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
    (void)mallopt(M_TRIM_THRESHOLD, MMAP_THRESHOLD);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (!sweep(cli) || !claim(cli)) {
        cli->opened = sg_store_free(cli->opened);
        return false;
    }
    cli->started_ms = cli->shown_ms = cli->phase_ms = qf_clock_mono_ms();
    cli->terminal = isatty(STDERR_FILENO) == 1;
    *ret_options = (struct sg_batch_options){
        .store = cli->opened,
        .tenant = qf_str_from(cli->tenant),
        .shard_count = (uint32_t)cli->shards,
        .window_ms = cli->window,
        .memory_bytes = cli->memory,
        .temp_dir = cli->temp_dir,
        .generation = cli->claim ? sg_claim_generation(cli->claim) : 1,
        .claim = cli->claim,
        .cancel = &interrupted,
        .on_progress = on_writing,
        .ctx = cli,
    };
    return true;
}

/* APIs and workers compare their stores by it, and need not be allowed to put anything. */
static void name_store(struct import_cli *cli)
{
    struct sg_store_call call = { .timeout_ms = 5000 };
    char id[SG_STORE_ID_LEN + 1];
    bool created;

    (void)!sg_store_identity(cli->opened, true, &call, id, &created, NULL);
}

static void print_summary(const struct import_cli *cli, const struct sg_batch_summary *s)
{
    struct qf_strbuf min = QF_STRBUF_INIT, max = QF_STRBUF_INIT;
    double seconds = (double)(qf_clock_mono_ms() - cli->started_ms) / 1000;

    qf_time_print_rfc3339(&min, s->min_ts);
    qf_time_print_rfc3339(&max, s->max_ts);
    printf("imported %" PRIu64 " samples", s->stored_samples);
    if (s->samples != s->stored_samples)
        printf(" (%" PRIu64 " duplicates dropped)", s->samples - s->stored_samples);
    if (s->samples)
        printf(", %s to %s", qf_strbuf_cstr(&min), qf_strbuf_cstr(&max));
    printf(", in %.1f s: %" PRIu64 " segments (%" PRIu64 " bytes)", seconds, s->segments, s->bytes);
    if (s->segments_present)
        printf(", %" PRIu64 " were there already%s", s->segments_present,
               s->segments ? "" : ": nothing was new");
    if (cli->exemplars || cli->metadata)
        printf("; %" PRIu64 " exemplars, metadata of %" PRIu64 " metrics", cli->exemplars,
               cli->metadata);
    if (cli->malformed)
        printf("; %" PRIu64 " malformed lines skipped", cli->malformed);
    printf("\n");
    qf_strbuf_done(&min);
    qf_strbuf_done(&max);
}

int import_cli_end(struct import_cli *cli, const struct sg_batch_summary *summary, qf_rc rc,
                   const struct qf_err *err)
{
    clear_line(cli);
    if (rc == QF_OK) {
        name_store(cli);
        print_summary(cli, summary);
    } else {
        fprintf(stderr, "error: %s; %s\n", err->msg,
                summary->segments_left || cli->samples_stored ? "a part was imported: import again"
                                                              : "nothing was imported");
    }
    cli->claim = sg_claim_end(cli->claim);
    cli->opened = sg_store_free(cli->opened);
    return rc == QF_OK ? 0 : rc == QF_EINVAL ? 2 : 1;
}
