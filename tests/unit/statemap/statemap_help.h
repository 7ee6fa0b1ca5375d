/* statemap_help.h - what tests of state maps share: folders that go, environments, values. */
#ifndef TESTS_UNIT_STATEMAP_HELP_H
#define TESTS_UNIT_STATEMAP_HELP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/prng.h"
#include "statemap/store/env.h"
#include "statemap/store/folder.h"
#include "tests/lib/test.h"

/* A new folder below /tmp; help_folder_gone() removes it. */
static inline char *help_folder(void)
{
    char *folder = qf_xstrdup("/tmp/promfabric-statemap-XXXXXX");

    CHECK(mkdtemp(folder));
    return folder;
}

static inline void help_folder_gone(char **folder)
{
    if (*folder)
        (void)sm_folder_remove(*folder, NULL);
    free(*folder);
}

static inline uint64_t help_few_hashes(struct qf_str key)
{
    return key.len ? (unsigned char)key.data[key.len - 1] % 2 : 0;
}

static inline struct sm_env *help_env(const char *folder, struct sm_layout layout,
                                      uint64_t (*hash)(struct qf_str))
{
    struct sm_env_options options = {
        .folder = folder, .name = "m", .layout = layout, .hash = hash, .create = true, .alone = true
    };
    struct sm_env *env = NULL;
    struct qf_err err = { 0 };

    CHECK_OK(sm_env_open(&options, &env, &err), &err);
    return env;
}

static inline void help_put(struct sm_env *env, const struct sm_row *row)
{
    struct sm_txn *txn = NULL;
    struct qf_err err = { 0 };

    CHECK_OK(sm_write_begin(env, &txn, &err), &err);
    CHECK_OK(sm_put(txn, row, &err), &err);
    CHECK_OK(sm_commit(txn, &err), &err);
}

/* A row with a string. */
static inline struct sm_row help_row(const char *key, int64_t time, const char *value)
{
    return (struct sm_row){ .key = qf_str_from(key),
                            .time = time,
                            .value = { SM_STRING, qf_str_from(value) } };
}

static inline struct sm_row help_range(int64_t from, int64_t to, int64_t time, const char *value)
{
    return (struct sm_row){
        .from = from, .to = to, .time = time, .value = { SM_STRING, qf_str_from(value) }
    };
}

/* What the map says as text; "-": nothing. The buffer is one for all. */
static inline const char *help_find(struct sm_env *env, const char *key, int64_t time)
{
    static char text[256];
    struct sm_txn *txn = NULL;
    struct sm_row row = { 0 };
    struct qf_err err = { 0 };
    bool found = false;

    CHECK_OK(sm_read_begin(env, &txn, &err), &err);
    CHECK_OK(sm_find(txn, qf_str_from(key), time, &found, &row, &err), &err);
    if (!found)
        (void)snprintf(text, sizeof(text), "-");
    else if (sm_layout_of(txn)->kind == SM_SESSION)
        (void)snprintf(text, sizeof(text), "%lld..%lld", (long long)row.time, (long long)row.end);
    else
        (void)snprintf(text, sizeof(text), "%.*s", QF_STR_ARG(row.value.bytes));
    (void)sm_end(txn);
    return text;
}

static inline const char *help_find_number(struct sm_env *env, int64_t number, int64_t time)
{
    static char text[256];
    struct sm_txn *txn = NULL;
    struct sm_row row = { 0 };
    struct qf_err err = { 0 };
    bool found = false;

    CHECK_OK(sm_read_begin(env, &txn, &err), &err);
    CHECK_OK(sm_find_number(txn, number, time, &found, &row, &err), &err);
    (void)snprintf(text, sizeof(text), "%.*s", found ? (int)row.value.bytes.len : 1,
                   found ? row.value.bytes.data : "-");
    (void)sm_end(txn);
    return text;
}

static inline uint64_t help_rows(struct sm_env *env)
{
    struct sm_txn *txn = NULL;
    struct qf_err err = { 0 };
    uint64_t rows;

    CHECK_OK(sm_read_begin(env, &txn, &err), &err);
    rows = sm_about(txn).rows;
    (void)sm_end(txn);
    return rows;
}

#endif
