/* cmd_segments.c - promfabric segments: what is in a store, is it whole, and what goes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "cli/flags.h"
#include "cli/segments.h"

int cli_segments(int argc, char **argv);

static struct segments_cli o;

static const struct cli_flag flags[] = {
    { "store", CLI_FLAG_STR, &o.store, "URL", "./store",
      "where segments are: a folder or s3://bucket/prefix" },
    { "tenant", CLI_FLAG_STR, &o.tenant, "NAME", NULL, "only this tenant's" },
    { "temp-dir", CLI_FLAG_STR, &o.temp_dir, "DIR", "/tmp",
      "where show and verify keep their copies of segments" },
    { "jobs", CLI_FLAG_U64, &o.jobs, "N", "4", "verify: segments at a time" },
    { "after", CLI_FLAG_STR, &o.after, "NAME", NULL,
      "verify: go on behind this name, where an earlier one was stopped" },
    { "from", CLI_FLAG_STR, &o.from, "TIME", NULL,
      "rm: samples from this time on (RFC 3339, Unix seconds, now-30d)" },
    { "to", CLI_FLAG_STR, &o.to, "TIME", NULL, "rm: samples before this time" },
    { "retention", CLI_FLAG_DURATION, &o.retention_ms, "DURATION", "0s",
      "expire: segments go that have only samples older than this; 0s: those of tenants that "
      "--tenant-limits names" },
    { "tenant-limits", CLI_FLAG_STR, &o.limits_file, "FILE", NULL,
      "expire: the API's file, for tenants whose retention is another" },
    { "retention-slack", CLI_FLAG_DURATION, &o.slack_ms, "DURATION", "1h",
      "expire: how much longer they are kept, as the API's flag" },
    { "age", CLI_FLAG_DURATION, &o.age_ms, "DURATION", "1d",
      "sweep: only what is older; a writer may be at work on younger ones" },
    { "dry-run", CLI_FLAG_BOOL, &o.dry_run, NULL, NULL,
      "rm, expire, sweep: delete nothing, tell what would go" },
    { "yes", CLI_FLAG_BOOL, &o.yes, NULL, NULL, "rm, expire: do not ask" },
};

static const struct cli_spec spec = {
    "promfabric segments ls|show|verify|rm|expire|sweep [FLAG...] [NAME...]",
    "ls      lists segments by name\n"
    "show    prints what segments say of themselves and their metrics; without NAME, of all\n"
    "verify  reads segments whole and checks checksums, order, counts, shard and name; without\n"
    "        NAME, all. Exits with 1 if one is damaged, with 3 if one could not be read\n"
    "rm      deletes the segments named, or those of --tenant whose samples are all in [--from,\n"
    "        --to); one that the range cuts stays whole\n"
    "expire  deletes segments behind the retention, as an API with --retention does by itself\n"
    "sweep   removes what writers left that died: half uploads, temporary files, old notes and\n"
    "        leases, empty folders",
    flags,
    QF_COUNT_OF(flags),
};

struct names {
    QF_VEC(char *) items;
    QF_VEC(uint64_t) sizes;
    uint64_t foreign;
};

static bool collect(void *ctx, const struct sg_store_object *object)
{
    struct names *names = ctx;
    struct sg_segment_name name;

    if (!sg_segment_name_parse(object->name, &name)) {
        names->foreign += !qf_str_starts(object->name, QF_STR("_")); /* notes, leases, marks */
        return true;
    }
    QF_VEC_PUSH(&names->items, qf_xmemdup0(object->name.data, object->name.len));
    QF_VEC_PUSH(&names->sizes, object->size);
    return true;
}

static qf_rc list(struct sg_store *store, struct names *names, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf prefix = QF_STRBUF_INIT;

    if (o.tenant)
        qf_strbuf_printf(&prefix, "tenant=%s/", o.tenant);
    return sg_store_list(store, qf_strbuf_view(&prefix), QF_STR(""), NULL, collect, names, err);
}

static void print_times(int64_t min_ts, int64_t max_ts)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    segments_print_times(&text, min_ts, max_ts);
    printf("%s", qf_strbuf_cstr(&text));
    qf_strbuf_done(&text);
}

static void print_list(const struct names *names)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < names->items.count; i++) {
        struct sg_segment_name name;

        if (!sg_segment_name_parse(qf_str_from(names->items.items[i]), &name))
            continue;
        printf("%12" PRIu64 "  ", names->sizes.items[i]);
        print_times(name.min_ts, name.max_ts);
        printf("  %u/%u  %s\n", name.shard, name.shard_count, names->items.items[i]);
        bytes += names->sizes.items[i];
    }
    printf("%zu segments, %" PRIu64 " bytes", names->items.count, bytes);
    if (names->foreign)
        printf("; %" PRIu64 " other objects", names->foreign);
    printf("\n");
}

struct metric {
    char *name;
    uint64_t series, samples;
};

static void print_metrics(struct sg_reader *reader, struct qf_err *err)
{
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source = sg_source_new(&reader, 1, &all, NULL, 0);
    struct metric metric = { 0 };
    struct pq_series series;
    bool more = true;

    while (source->next(source, &series, &more, err) == QF_OK) {
        struct qf_str name =
            more ? qf_labels_get(series.labels, QF_STR(QF_METRIC_NAME)) : QF_STR("");

        if (metric.name && (!more || !qf_str_is(name, metric.name))) {
            printf("  %10" PRIu64 " series %12" PRIu64 " samples  %s\n", metric.series,
                   metric.samples, metric.name[0] ? metric.name : "(no name)");
            free(metric.name);
            metric = (struct metric){ 0 };
        }
        if (!more)
            break;
        if (!metric.name)
            metric.name = qf_xmemdup0(name.data ? name.data : "", name.len);
        metric.series++;
        metric.samples += series.count;
    }
    free(metric.name);
    source->close(source);
}

static qf_rc show(struct sg_store *store, const char *name, struct qf_err *err)
{
    struct sg_reader *reader = segments_fetch(&o, store, name, NULL, err);
    const struct sg_meta *meta;

    if (!reader)
        return err->rc;
    meta = sg_reader_meta(reader);
    printf("%s\n  schema version %u, tenant %.*s, shard %u of %u, generation %" PRIu64
           ", id %016" PRIx64 "\n  %" PRIu64 " series, %" PRIu64 " samples, ",
           name, meta->schema_version, QF_STR_ARG(meta->name.tenant), meta->name.shard,
           meta->name.shard_count, meta->name.generation, meta->name.id, meta->series_count,
           meta->sample_count);
    print_times(meta->name.min_ts, meta->name.max_ts);
    printf("%s%s\n", meta->has_start_ts ? ", start timestamps" : "",
           meta->has_histograms ? ", native histograms" : "");
    print_metrics(reader, err);
    (void)sg_reader_free(reader);
    return err->rc;
}

static int show_all(struct sg_store *store, const struct names *names)
{
    size_t bad = 0;

    for (size_t i = 0; i < names->items.count; i++) {
        struct qf_err err = { 0 };

        if (show(store, names->items.items[i], &err) == QF_OK)
            continue;
        fprintf(stderr, "error: %s: %s\n", names->items.items[i], err.msg);
        bad++;
    }
    return bad ? 1 : 0;
}

static int list_or_show(const char *word, struct sg_store *store, char **given, int given_count)
{
    struct names names = { 0 };
    struct qf_err err = { 0 };
    int code = 0;

    for (int i = 0; i < given_count; i++)
        QF_VEC_PUSH(&names.items, qf_xstrdup(given[i]));
    if (given_count == 0 && list(store, &names, &err) != QF_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        code = 1;
    } else if (strcmp(word, "ls") == 0) {
        print_list(&names);
    } else {
        code = show_all(store, &names);
    }
    for (size_t i = 0; i < names.items.count; i++)
        free(names.items.items[i]);
    QF_VEC_DONE(&names.items);
    QF_VEC_DONE(&names.sizes);
    return code;
}

/* Words, and whether they take names. */
static const struct word {
    const char *word;
    bool names;
} words[] = { { "ls", false }, { "show", true },    { "verify", true },
              { "rm", true },  { "expire", false }, { "sweep", false } };

static int run(const char *word, struct sg_store *store, char **given, int given_count)
{
    if (strcmp(word, "verify") == 0)
        return segments_verify(&o, store, given, given_count);
    if (strcmp(word, "rm") == 0)
        return segments_rm(&o, store, given, given_count);
    if (strcmp(word, "expire") == 0)
        return segments_expire(&o, store);
    if (strcmp(word, "sweep") == 0)
        return segments_sweep(&o, store);
    return list_or_show(word, store, given, given_count);
}

static bool word_valid(const char *word, bool names)
{
    for (size_t i = 0; i < QF_COUNT_OF(words); i++)
        if (strcmp(word, words[i].word) == 0)
            return words[i].names || !names;
    return false;
}

int cli_segments(int argc, char **argv)
{
    struct sg_store_options options = { 0 };
    struct qf_err err = { 0 };
    struct sg_store *store;
    int positional, code;

    switch (cli_flags_parse(&spec, argc, argv, &positional)) {
    case CLI_PARSED_HELP:
        return 0;
    case CLI_PARSED_BAD:
        return 2;
    case CLI_PARSED_OK:
        break;
    }
    if (positional == 0 || !word_valid(argv[1], positional > 1)) {
        fprintf(stderr, "error: say ls, show, verify, rm, expire or sweep; try --help\n");
        return 2;
    }
    options.url = o.store;
    if (sg_store_open(&options, &store, &err) != QF_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        return 1;
    }
    code = run(argv[1], store, argv + 2, positional - 1);
    (void)sg_store_free(store);
    return code;
}
