/* test_scripts.c - every query and every series line of the test scripts parses, and prints as a
 * text that parses into the same print. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "promql/parse.h"
#include "promql/testing/series.h"
#include "tests/lib/test.h"

static const struct pq_parse_options all = {
    .experimental_functions = true,
    .extended_range_selectors = true,
    .fill_modifiers = true,
};

struct counts {
    int queries, series, failed;
};

/* Skip @count words and the blanks behind them. */
static const char *skip_words(const char *line, int count)
{
    while (count-- > 0) {
        line += strcspn(line, " \t");
        line += strspn(line, " \t");
    }
    return line;
}

static void complain(struct counts *counts, const char *line, const char *what)
{
    printf("  %s\n      %s\n", line, what);
    counts->failed++;
}

static void check_query(struct counts *counts, const char *text)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_strbuf once = QF_STRBUF_INIT, twice = QF_STRBUF_INIT;
    struct pq_expr *node = NULL, *again = NULL;
    struct qf_err err = { 0 };

    counts->queries++;
    if (pq_parse(arena, qf_str_from(text), &all, &node, &err) != QF_OK) {
        complain(counts, text, err.msg);
    } else {
        pq_print(&once, node);
        if (pq_parse(arena, qf_strbuf_view(&once), &all, &again, &err) != QF_OK)
            complain(counts, qf_strbuf_cstr(&once), err.msg);
        else
            pq_print(&twice, again);
        if (again && strcmp(qf_strbuf_cstr(&once), qf_strbuf_cstr(&twice)) != 0)
            complain(counts, qf_strbuf_cstr(&once), qf_strbuf_cstr(&twice));
    }
    qf_strbuf_done(&once);
    qf_strbuf_done(&twice);
    (void)qf_arena_free(arena);
}

static void check_series(struct counts *counts, const char *text)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_sequence_value *values;
    struct qf_labels labels;
    struct qf_err err = { 0 };
    size_t count;

    counts->series++;
    if (pq_parse_series(arena, qf_str_from(text), &labels, &values, &count, &err) != QF_OK)
        complain(counts, text, err.msg);
    (void)qf_arena_free(arena);
}

static void check_line(struct counts *counts, const char *line, bool *loading)
{
    if (strncmp(line, "load", 4) == 0) {
        *loading = true;
    } else if (strncmp(line, "eval", 4) == 0) {
        *loading = false;
        check_query(counts,
                    skip_words(line, strstr(line, " range ") && strstr(line, " range ") < line + 14
                                         ? 8
                                         : 4));
    } else if (*line == '\0' || *line == '#') {
        *loading = false;
    } else if (*loading && !strstr(line, "@st ") && !strstr(line, "@st\t")) {
        check_series(counts, line);
    }
}

static void check_file(struct counts *counts, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    bool loading = false;

    CHECK_MSG(file, "cannot open %s", path);
    while (getline(&line, &size, file) >= 0) {
        struct qf_str trimmed = qf_str_trim(qf_str_from(line));
        char *copy = qf_xmemdup0(trimmed.data, trimmed.len);

        check_line(counts, copy, &loading);
        free(copy);
    }
    free(line);
    (void)fclose(file);
}

TEST(every_line_of_the_test_scripts_parses)
{
    struct counts counts = { 0 };
    DIR *dir = opendir(TEST_SCRIPTS);
    struct dirent *entry;
    int files = 0;

    if (!dir)
        test_skip("no ../shared/promql/promqltest beside the source tree");
    while ((entry = readdir(dir)) != NULL) {
        char path[1024];

        if (!qf_str_ends(qf_str_from(entry->d_name), QF_STR(".test")))
            continue;
        files++;
        (void)snprintf(path, sizeof(path), "%s/%s", TEST_SCRIPTS, entry->d_name);
        check_file(&counts, path);
    }
    (void)closedir(dir);
    printf("  %d files: %d queries, %d series, %d failed\n", files, counts.queries, counts.series,
           counts.failed);
    CHECK(files > 0);
    CHECK_EQ(counts.failed, 0);
}
