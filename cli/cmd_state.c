/* cmd_state.c - promfabric state: maps of what metrics do not say, in a folder of this machine or of a cluster. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/tenant.h"
#include "base/sys/clock.h"
#include "cli/flags.h"
#include "cli/state_web.h"

int cli_state(int argc, char **argv);

static struct state_cli o;
static struct cli_web web;

static const struct cli_flag flags[] = {
    { "data", CLI_FLAG_STR, &o.data, "DIR", "./maps", "where maps are, without --url" },
    CLI_WEB_FLAGS(web, NULL, "an ingest node whose cluster has the maps; any of it"),
    { "metric", CLI_FLAG_STR, &o.metric, "NAME", NULL,
      "define, with --url: the info series that the map is selectable as" },
    { "kind", CLI_FLAG_STR, &o.kind, "KIND", NULL,
      "define: state, temporal, ranged, temporal_ranged or session" },
    { "type", CLI_FLAG_STR, &o.type, "TYPE", "any",
      "define: of all values: string, integer, double, boolean, json, or any" },
    { "short-keys", CLI_FLAG_BOOL, &o.short_keys, NULL, NULL,
      "define: keys are stored as they are, without a hash; at most 491 bytes" },
    { "condense", CLI_FLAG_DURATION, &o.condense_ms, "DURATION", "0s",
      "define: what is older is condensed; 0s: nothing is" },
    { "retention", CLI_FLAG_DURATION, &o.retention_ms, "DURATION", "0s",
      "define: what was replaced, or over, before that goes; 0s: nothing does" },
    { "timeout", CLI_FLAG_DURATION, &o.timeout_ms, "DURATION", "0s",
      "define: how long sessions last that do not say their end; 0s: they must" },
    { "map-bytes", CLI_FLAG_BYTES, &o.map_bytes, "BYTES", "10GiB", "define: how large it may get" },
    { "readers", CLI_FLAG_U64, &o.readers, "N", "126", "define: how many may read at a time" },
    { "map", CLI_FLAG_STR, &o.map, "NAME", NULL, "load: of rows that do not say theirs" },
    { "format", CLI_FLAG_STR, &o.format, "NAME", "auto",
      "load: xml, jsonl, csv, or auto: by the end of the file's name" },
    { "on-error", CLI_FLAG_STR, &o.on_error, "WHAT", "stop",
      "load: what a wrong row does: stop (nothing is loaded) or skip" },
    { "quiet", CLI_FLAG_BOOL, &o.quiet, NULL, NULL, "load: no progress" },
    { "time", CLI_FLAG_STR, &o.time, "TIME", NULL, "get: at this moment (RFC 3339); else now" },
    { "limit", CLI_FLAG_U64, &o.limit, "N", "0", "rows: at most so many; 0: all" },
    { "prefix", CLI_FLAG_STR, &o.prefix, "TEXT", NULL, "rows: of keys that begin so" },
};

static const struct cli_spec spec = {
    "promfabric state define|drop|maps|load|get|rows|stats|rules|maintain [FLAG...] [NAME...]",
    "define NAME --kind KIND  makes a map, or changes what is said of it; its kind stays\n"
    "drop NAME                it is no map any more; its rows go with the next maintain\n"
    "maps                     lists maps\n"
    "load FILE...             rows of XML, JSON lines or CSV (\"-\": the input), all or nothing\n"
    "get MAP KEY...           what a map says of keys; exits with 1 if it lacks one\n"
    "rows MAP                 its rows as JSON lines, which can be loaded again\n"
    "stats [MAP...]           rows, bytes and versions\n"
    "rules list               with --url: by which rules samples that come in are enriched\n"
    "rules put RULE           a rule as JSON, or the file that has it (\"-\": the input)\n"
    "rules rm NAME            it is no rule any more\n"
    "maintain                 merges what waits, condenses, lets go of what is old or dropped\n"
    "With --url these are maps of a cluster, which maintains them by itself, and a file is loaded "
    "in\n"
    "pieces of 8 MiB, each of which counts whole or not at all.",
    flags,
    QF_COUNT_OF(flags),
};

int state_failed(const struct qf_err *err)
{
    fprintf(stderr, "error: %s\n", err->msg);
    return 1;
}

/* What the flags say of it: 0, or the exit code. */
static int read_definition(const char *name, struct sm_definition *d)
{
    *d = (struct sm_definition){ .layout.direct = o.short_keys,
                                 .condense_ms = o.condense_ms,
                                 .retention_ms = o.retention_ms,
                                 .timeout_ms = o.timeout_ms,
                                 .map_bytes = o.map_bytes,
                                 .readers = o.readers };
    if (!o.kind || !sm_kind_parse(qf_str_from(o.kind), &d->layout.kind) ||
        !sm_type_parse(qf_str_from(o.type), &d->type)) {
        fprintf(stderr, "error: say a --kind: state, temporal, ranged, temporal_ranged or session; "
                        "a --type: string, integer, double, boolean, json or any\n");
        return 2;
    }
    if (!sm_name_fold(qf_str_from(name), d->name)) {
        fprintf(stderr, "error: %s is no name of a map: letters, digits, underscores\n", name);
        return 2;
    }
    if (o.metric && (!web.url || strlen(o.metric) > SM_METRIC_MAX)) {
        fprintf(stderr, "error: --metric: with --url, at most %d bytes\n", SM_METRIC_MAX);
        return 2;
    }
    if (o.metric)
        memcpy(d->metric, o.metric, strlen(o.metric) + 1);
    return 0;
}

static int define(struct sm_store *store, char **names)
{
    struct sm_definition d;
    struct qf_err err = { 0 };
    int code = read_definition(names[0], &d);

    if (code)
        return code;
    if (sm_store_define(store, &d, &err) != QF_OK)
        return state_failed(&err);
    printf("map %s: %s\n", d.name, sm_kind_name(d.layout.kind));
    return 0;
}

static int drop(struct sm_store *store, char **names)
{
    struct qf_err err = { 0 };

    return sm_store_undefine(store, qf_str_from(names[0]), &err) == QF_OK ? 0 : state_failed(&err);
}

static void print_duration(const char *name, int64_t ms)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    if (!ms)
        return;
    qf_duration_print(&text, ms);
    printf("  %s %s", name, qf_strbuf_cstr(&text));
}

static int maps(struct sm_store *store)
{
    sm_definitions all = { 0 };
    struct qf_err err = { 0 };

    if (sm_store_definitions(store, &all, &err) != QF_OK)
        return state_failed(&err);
    for (size_t i = 0; i < all.count; i++) {
        const struct sm_definition *d = &all.items[i];

        printf("%-30s %-16s %-8s", d->name, sm_kind_name(d->layout.kind),
               sm_kind_valued(d->layout.kind) ? sm_type_name(d->type) : "-");
        print_duration("condense", d->condense_ms);
        print_duration("retention", d->retention_ms);
        print_duration("timeout", d->timeout_ms);
        printf("%s\n", d->layout.direct ? "  short keys" : "");
    }
    QF_VEC_DONE(&all);
    return 0;
}

static int stats_of(struct sm_store *store, const char *name)
{
    struct sm_reading reading;
    struct sm_about about;
    struct qf_err err = { 0 };
    qf_rc rc = sm_reading_begin(store, qf_str_from(name), &reading, &err);

    if (rc == QF_ENOTFOUND && sm_store_definition(store, qf_str_from(name),
                                                  &(struct sm_definition){ 0 }, NULL) == QF_OK) {
        printf("%-30s %12d rows\n", name, 0);
        return 0;
    }
    if (rc != QF_OK)
        return state_failed(&err);
    about = sm_about(reading.txn);
    printf("%-30s %12" PRIu64 " rows %14" PRIu64 " of %" PRIu64 " bytes  version %" PRIu64 "\n",
           name, about.rows, about.bytes_used, about.bytes_max, about.version);
    sm_reading_end(store, &reading);
    return 0;
}

static int stats(struct sm_store *store, char **names, int count)
{
    sm_definitions all = { 0 };
    struct qf_err err = { 0 };
    int code = 0;

    for (int i = 0; i < count; i++)
        code |= stats_of(store, names[i]);
    if (count == 0 && sm_store_definitions(store, &all, &err) != QF_OK)
        return state_failed(&err);
    for (size_t i = 0; i < all.count; i++)
        code |= stats_of(store, all.items[i].name);
    QF_VEC_DONE(&all);
    return code;
}

static int maintain_map(struct sm_store *store, const char *name)
{
    struct sm_upkeep upkeep = { .more = true };
    struct qf_err err = { 0 };
    uint64_t dropped = 0, freed = 0;
    qf_rc rc;

    while (upkeep.more) {
        rc = sm_store_upkeep(store, qf_str_from(name), qf_clock_wall_ms(), &upkeep, &err);
        if (rc == QF_ENOTFOUND) /* no rows yet */
            return 0;
        if (rc != QF_OK)
            return state_failed(&err);
        dropped += upkeep.dropped;
    }
    rc = sm_store_compact(store, qf_str_from(name), &freed, &err);
    if (rc == QF_ENOTFOUND)
        return 0;
    printf("%-30s %12" PRIu64 " rows and %12" PRIu64 " bytes of its file went\n", name, dropped,
           freed);
    return rc == QF_OK || rc == QF_EUNSUPPORTED ? 0 : state_failed(&err);
}

static int maintain(struct sm_store *store)
{
    sm_definitions all = { 0 };
    struct qf_err err = { 0 };
    uint64_t left;
    int code = 0;

    if (sm_store_merge(store, &left, &err) != QF_OK)
        code = state_failed(&err);
    err = (struct qf_err){ 0 };
    if (sm_store_definitions(store, &all, &err) != QF_OK)
        return state_failed(&err);
    for (size_t i = 0; i < all.count; i++)
        code |= maintain_map(store, all.items[i].name);
    QF_VEC_DONE(&all);
    if (sm_store_clean(store, &err) != QF_OK)
        code = state_failed(&err);
    return code;
}

/* Words, how many names they take, and whether they write. */
static const struct word {
    const char *word;
    int least, most; /* -1: any number */
    bool writes;
} words[] = { { "define", 1, 1, true },  { "drop", 1, 1, true },   { "maps", 0, 0, false },
              { "load", 1, -1, true },   { "get", 2, -1, false },  { "rows", 1, 1, false },
              { "stats", 0, -1, false }, { "rules", 1, 2, false }, { "maintain", 0, 0, true } };

static const struct word *find_word(const char *text, int names)
{
    for (size_t i = 0; text && i < QF_COUNT_OF(words); i++)
        if (strcmp(text, words[i].word) == 0)
            return names >= words[i].least && (words[i].most < 0 || names <= words[i].most)
                       ? &words[i]
                       : NULL;
    return NULL;
}

static int run(const char *word, struct sm_store *store, char **names, int count)
{
    if (strcmp(word, "define") == 0)
        return define(store, names);
    if (strcmp(word, "drop") == 0)
        return drop(store, names);
    if (strcmp(word, "maps") == 0)
        return maps(store);
    if (strcmp(word, "load") == 0)
        return state_load(&o, store, names, count);
    if (strcmp(word, "get") == 0)
        return state_get(&o, store, names, count);
    if (strcmp(word, "rows") == 0)
        return state_rows(&o, store, names, count);
    if (strcmp(word, "stats") == 0)
        return stats(store, names, count);
    if (strcmp(word, "rules") == 0) {
        fprintf(stderr, "error: rules are of a cluster, which samples come into: say --url\n");
        return 2;
    }
    return maintain(store);
}

static int open_and_run(const struct word *word, char **names, int count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf root = QF_STRBUF_INIT;
    struct sm_store_options options = { .write = word->writes };
    struct sm_store *store;
    struct qf_err err = { 0 };
    int code;

    if (word->writes)
        (void)mkdir(o.data, 0750); /* or the store says why not */
    qf_strbuf_printf(&root, "%s/tenant=%s", o.data, o.tenant);
    options.root = qf_strbuf_cstr(&root);
    if (sm_store_open(&options, &store, &err) != QF_OK)
        return state_failed(&err);
    code = run(word->word, store, names, count);
    (void)sm_store_close(store);
    return code;
}

/* --- of a cluster --- */

static int run_web(const char *word, char **names, int count)
{
    struct sm_definition d;
    int code;

    if (strcmp(word, "define") == 0) {
        code = read_definition(names[0], &d);
        return code ? code : state_web_define(&web, &d);
    }
    if (strcmp(word, "drop") == 0)
        return state_web_drop(&web, names[0]);
    if (strcmp(word, "maps") == 0)
        return state_web_maps(&web);
    if (strcmp(word, "load") == 0)
        return state_web_load(&web, &o, names, count);
    if (strcmp(word, "get") == 0)
        return state_web_get(&web, &o, names, count);
    if (strcmp(word, "rows") == 0)
        return state_web_rows(&web, &o, names[0]);
    if (strcmp(word, "stats") == 0)
        return state_web_stats(&web, names, count);
    if (strcmp(word, "rules") == 0)
        return state_web_rules(&web, names, count);
    fprintf(stderr, "error: a cluster maintains its maps by itself\n");
    return 2;
}

int cli_state(int argc, char **argv)
{
    const struct word *word;
    int positional;

    switch (cli_flags_parse(&spec, argc, argv, &positional)) {
    case CLI_PARSED_HELP:
        return 0;
    case CLI_PARSED_BAD:
        return 2;
    case CLI_PARSED_OK:
        break;
    }
    word = find_word(positional ? argv[1] : NULL, positional - 1);
    if (!word) {
        fprintf(stderr,
                "error: say define NAME, drop NAME, maps, load FILE..., get MAP KEY..., rows MAP, "
                "stats, rules list|put|rm or maintain; try --help\n");
        return 2;
    }
    if (web.url) {
        (void)curl_global_init(CURL_GLOBAL_DEFAULT);
        return cli_web_read_key(&web) ? run_web(word->word, argv + 2, positional - 1) : 2;
    }
    o.tenant = web.tenant ? web.tenant : "default";
    if (!qf_tenant_valid(qf_str_from(o.tenant))) {
        fprintf(stderr, "error: %s is no name of a tenant\n", o.tenant);
        return 2;
    }
    return open_and_run(word, argv + 2, positional - 1);
}
