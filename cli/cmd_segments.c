/* cmd_segments.c - promfabric segments ls|show|verify: what is in a store, and is it whole? */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/vec.h"
#include "cli/flags.h"
#include "segments/catalog/changes.h"
#include "segments/parquet/segment_reader.h"
#include "segments/store/store.h"

int cli_segments(int argc, char **argv);

static struct {
    const char *store, *tenant, *temp_dir;
} o;

static const struct cli_flag flags[] = {
    { "store", CLI_FLAG_STR, &o.store, "URL", "./store",
      "where segments are: a folder or s3://bucket/prefix" },
    { "tenant", CLI_FLAG_STR, &o.tenant, "NAME", NULL, "only this tenant's" },
    { "temp-dir", CLI_FLAG_STR, &o.temp_dir, "DIR", "/tmp",
      "where show and verify keep their copy of a segment" },
};

static const struct cli_spec spec = {
    "promfabric segments ls|show|verify [FLAG...] [NAME...]",
    "ls lists segments by name, show prints what a segment says of itself and its metrics, verify\n"
    "reads segments whole and checks checksums, order, counts, shard and name. Without NAME, show\n"
    "and verify take all of them.",
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

    qf_time_print_rfc3339(&text, min_ts);
    qf_strbuf_puts(&text, " ");
    qf_time_print_rfc3339(&text, max_ts);
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

/* A local copy of an object under a name of its own; NULL after an error. */
static struct sg_reader *fetch(struct sg_store *store, const char *name, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct sg_reader *reader = NULL;
    uint64_t size;
    int fd;

    qf_strbuf_printf(&path, "%s/promfabric-segment-XXXXXX", o.temp_dir);
    fd = mkstemp(path.data);
    if (fd < 0) {
        (void)qf_err_set(err, QF_EIO, "%s: cannot create", path.data);
        return NULL;
    }
    (void)unlink(path.data); /* nothing stays, whatever happens */
    qf_strbuf_reset(&path);
    qf_strbuf_printf(&path, "/proc/self/fd/%d", fd);
    if (sg_store_read_fd(store, qf_str_from(name), fd, NULL, &size, err) == QF_OK)
        reader = sg_reader_open(path.data, err);
    (void)close(fd);
    return reader;
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
    struct sg_reader *reader = fetch(store, name, err);
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

/* A name must tell the truth about its content: catalogue and merge rely on it. */
static qf_rc check_name(const char *text, const struct sg_meta *meta, struct qf_err *err)
{
    struct sg_segment_name name;

    if (!sg_segment_name_parse(qf_str_from(text), &name))
        return qf_err_set(err, QF_EINVAL, "not the name of a segment");
    if (!qf_str_eq(name.tenant, meta->name.tenant) || name.min_ts != meta->name.min_ts ||
        name.max_ts != meta->name.max_ts || name.shard != meta->name.shard ||
        name.shard_count != meta->name.shard_count || name.generation != meta->name.generation ||
        name.id != meta->name.id)
        return qf_err_set(err, QF_ECORRUPT, "the name does not fit the content");
    return QF_OK;
}

static qf_rc verify(struct sg_store *store, const char *name, struct qf_err *err)
{
    struct sg_reader *reader = fetch(store, name, err);
    qf_rc rc;

    if (!reader)
        return err->rc;
    rc = sg_reader_verify(reader, err);
    if (rc == QF_OK)
        rc = check_name(name, sg_reader_meta(reader), err);
    (void)sg_reader_free(reader);
    return rc;
}

static int for_each(struct sg_store *store, const struct names *names,
                    qf_rc (*fn)(struct sg_store *store, const char *name, struct qf_err *err))
{
    size_t bad = 0;

    for (size_t i = 0; i < names->items.count; i++) {
        struct qf_err err = { 0 };

        if (fn(store, names->items.items[i], &err) == QF_OK)
            continue;
        fprintf(stderr, "error: %s: %s\n", names->items.items[i], err.msg);
        bad++;
    }
    if (fn == verify)
        printf("%zu segments verified, %zu bad\n", names->items.count, bad);
    return bad ? 1 : 0;
}

static int run(const char *word, struct sg_store *store, char **given, int given_count)
{
    struct names names = { 0 };
    struct qf_err err = { 0 };
    int code = 2;

    for (int i = 0; i < given_count; i++)
        QF_VEC_PUSH(&names.items, qf_xstrdup(given[i]));
    if (given_count == 0 && list(store, &names, &err) != QF_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        code = 1;
    } else if (strcmp(word, "ls") == 0) {
        print_list(&names);
        code = 0;
    } else {
        code = for_each(store, &names, strcmp(word, "show") == 0 ? show : verify);
    }
    for (size_t i = 0; i < names.items.count; i++)
        free(names.items.items[i]);
    QF_VEC_DONE(&names.items);
    QF_VEC_DONE(&names.sizes);
    return code;
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
    if (positional == 0 ||
        (strcmp(argv[1], "ls") != 0 && strcmp(argv[1], "show") != 0 &&
         strcmp(argv[1], "verify") != 0) ||
        (positional > 1 && strcmp(argv[1], "ls") == 0)) {
        fprintf(stderr, "error: say ls, show or verify; try --help\n");
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
