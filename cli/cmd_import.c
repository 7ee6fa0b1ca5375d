/* cmd_import.c - promfabric import: text files to segments. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/flags.h"
#include "cli/import_common.h"

int cli_import(int argc, char **argv);

static struct {
    struct import_cli common;
    const char *format, *on_error;
} o;

static const struct cli_flag flags[] = {
    IMPORT_CLI_FLAGS(o.common),
    { "format", CLI_FLAG_STR, &o.format, "NAME", "auto",
      "auto, openmetrics (seconds), prometheus (milliseconds) or tsdb-dump" },
    { "on-error", CLI_FLAG_STR, &o.on_error, "WHAT", "stop",
      "what a malformed line does: stop (nothing is imported) or skip" },
};

static const struct cli_spec spec = {
    "promfabric import [FLAG...] FILE...",
    "Read samples with timestamps from OpenMetrics text, Prometheus text or the output of\n"
    "`promtool tsdb dump`, plain, gzip or zstd, and write them as segments; \"-\" is standard\n"
    "input. Either everything is imported or nothing. Importing a file again changes nothing.",
    flags,
    QF_COUNT_OF(flags),
};

static bool choose(const char *flag, const char *text, const char *const *words, size_t count,
                   int *ret_choice)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) {
            *ret_choice = (int)i;
            return true;
        }
    fprintf(stderr, "error: --%s %s: no such choice; try --help\n", flag, text);
    return false;
}

/* The size of all inputs, so that the bar knows where it is; 0 if one is not a regular file. */
static uint64_t total_size(char **files, int count)
{
    uint64_t total = 0;

    for (int i = 0; i < count; i++) {
        struct stat status;

        if (stat(files[i], &status) != 0 || !S_ISREG(status.st_mode))
            return 0;
        total += (uint64_t)status.st_size;
    }
    return total;
}

static qf_rc run(const struct sg_import_options *options, char **files, int count,
                 struct sg_import_summary *ret_summary, struct qf_err *err)
{
    struct sg_import *import = sg_import_new(options, err);
    qf_rc rc = import ? QF_OK : err->rc;

    for (int i = 0; i < count && rc == QF_OK; i++)
        rc = sg_import_file(import, files[i], err);
    if (rc == QF_OK)
        rc = sg_import_commit(import, err);
    if (import)
        *ret_summary = sg_import_summary(import);
    (void)sg_import_free(import);
    return rc;
}

int cli_import(int argc, char **argv)
{
    static const char *const formats[] = { "auto", "openmetrics", "prometheus", "tsdb-dump" };
    static const char *const reactions[] = { "stop", "skip" };
    struct sg_import_options options = { .on_malformed = import_cli_malformed,
                                         .on_progress = import_cli_reading,
                                         .on_read = import_cli_read,
                                         .ctx = &o.common };
    struct sg_import_summary summary = { 0 };
    struct qf_err err = { 0 };
    int files, format, reaction;
    qf_rc rc;

    switch (cli_flags_parse(&spec, argc, argv, &files)) {
    case CLI_PARSED_HELP:
        return 0;
    case CLI_PARSED_BAD:
        return 2;
    case CLI_PARSED_OK:
        break;
    }
    if (files == 0) {
        fprintf(stderr, "error: no file given; try --help\n");
        return 2;
    }
    if (!choose("format", o.format, formats, QF_COUNT_OF(formats), &format) ||
        !choose("on-error", o.on_error, reactions, QF_COUNT_OF(reactions), &reaction))
        return 2;
    o.common.inputs_bytes = total_size(argv + 1, files);
    if (!import_cli_start(&o.common, &options.batch))
        return 1;
    options.format = (enum sg_import_format)format;
    options.skip_malformed = reaction == 1;
    rc = run(&options, argv + 1, files, &summary, &err);
    o.common.malformed = summary.malformed;
    o.common.exemplars = summary.exemplars;
    o.common.metadata = summary.metadata;
    o.common.samples_stored = summary.samples_stored;
    return import_cli_end(&o.common, &summary.batch, rc, &err);
}
