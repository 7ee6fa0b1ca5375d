/* bombs.h - files that are small, sealed right, and cost gigabytes if they are believed. */
#ifndef TESTS_INTEGRATION_HOSTILE_BOMBS_H
#define TESTS_INTEGRATION_HOSTILE_BOMBS_H

#include "base/pure/strbuf.h"

#define BOMB_TEXT_BYTES ((size_t)16 << 20)
#define BOMB_TEXTS 64                /* 1 GiB of zeros, some kilobytes when they are compressed */
#define BOMB_ROWS ((size_t)24 << 20) /* 400 MB of numbers that are all alike */

/* A segment of @tenant at @start_ms, its name appended to @key; each kind lies about something else. */
enum bomb {
    BOMB_PAGES,   /* a label's values: pages that decompress to a gigabyte */
    BOMB_RUNS,    /* a label's values: one of a mebibyte, thousands of times */
    BOMB_SAMPLES, /* millions of samples of one series in one row group */
    BOMB_DIGITS,  /* the same as decimals, in a file of version 2; the others are of version 1 */
    BOMB_FOOTER,  /* a footer that announces a hundred thousand structures: less than may be */
    BOMB_FOOTERS, /* and almost a million of them */
    BOMB__COUNT
};
void bomb_segment(enum bomb bomb, const char *tenant, int64_t start_ms, struct qf_strbuf *key,
                  struct qf_strbuf *bytes);

/* The same as artifacts: histograms, rows and footers. BOMB_RUNS is BOMB_PAGES here, and BOMB_DIGITS
 * BOMB_SAMPLES. */
void bomb_artifact(enum bomb bomb, struct qf_strbuf *bytes);

#endif
