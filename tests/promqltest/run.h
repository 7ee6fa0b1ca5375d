/* run.h - run a script through the in-process pipeline. */
#ifndef TESTS_PROMQLTEST_RUN_H
#define TESTS_PROMQLTEST_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/regex/regex.h"

struct http_engine;

struct run_options {
    size_t shard_count;
    const struct qf_regex *only; /* unanchored on "FILE:LINE QUERY"; NULL: all */
    bool list;                   /* name the evals, run nothing */
    bool verdicts;               /* a line "verdict FILE:LINE WORD" for each eval */
    bool no_codec;               /* hand leaf results over without encoding them */
    size_t compare_shards;       /* 0, or: the same bits must come with this many shards */
    bool no_pushdown;            /* leaves do no more than select and apply their range function */
    struct http_engine *http;    /* ask a running API instead; NULL: in process */
};

struct run_counts {
    size_t passed, failed;
};

/* Run the script in @path and print what failed; adds to @counts. A script that cannot be read
 * counts as one failure. */
void run_file(const char *path, const struct run_options *options, struct run_counts *counts);

#endif
