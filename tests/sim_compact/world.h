/* world.h - a store, its clock and everybody who uses it, one step at a time, all of it by a seed.
 *
 * Time is a number of steps. A point is a series and a timestamp; the value of a sample is the number of the write it came
 * from. Beside the store there is a shadow: every file as its writer made it, never compacted. Whatever a reader puts
 * together must be what the shadow said, point by point, at some moment of its listing. */
#ifndef TESTS_SIM_COMPACT_WORLD_H
#define TESTS_SIM_COMPACT_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/prng.h"
#include "ingest/core/ledger.h"
#include "segments/plan/plan.h"

enum {
    STEPS = 6000,
    GRAIN = 50, /* steps between timestamps */
    TIMES = STEPS / GRAIN,
    SERIES = 4, /* in shard number mod 2 */
    SHARDS = 2,
    FILES_MAX = 4096,
    LATE_MAX = 40,  /* a listing may not show what happened so long ago */
    LIST_MAX = 150, /* a listing that takes longer is given up */
    SETTLE = 60,
    GRACE = 400,
    WINDOW = 400,
    DAY = 1600,
    IMPORTERS = 2,
    COMPACTORS = 2,
    READERS = 2,
    LEASE_LIFE = 1500, /* then somebody thinks its owner is dead, and removes it */
    NAMES_MAX = 64,
    WORDS_MAX = 4096,
    TURN_LIFE = 60,      /* a merge or removal that is silent for longer seems dead */
    TAKE_BACK_MAX = 300, /* what was put longer ago is not taken back; less than the grace */
    SLEEP_MAX = 500,
    WRITES_MAX = 1 << 16,
};

/* Rules that can be taken out. */
struct rules {
    bool below, leases, ranges, words, grace, clock, beside, runs, marks, turns, again, back, late;
    bool sources, trade; /* on our own nodes */
};

typedef uint32_t points[SERIES][TIMES]; /* 0: no sample */

struct file {
    int64_t min_ts, max_ts;
    uint32_t shard;
    uint64_t generation, id;
    points values;
    uint64_t size;
    bool damaged;
    bool disowned; /* its import lost its lease: what becomes of its samples is open */
    /* What it says of itself: */
    size_t replaces[NAMES_MAX], beside[NAMES_MAX];
    size_t replaces_count, beside_count;
    /* In the store: */
    int64_t put, put_seen, gone, gone_seen; /* steps; gone 0: it is there */
};

/* How a point's winner in the shadow changed. */
struct version {
    int64_t since;
    uint32_t value;
};
#define VERSIONS_MAX 64

struct importer {
    int stage; /* 0: idle */
    uint64_t generation;
    uint64_t above; /* of the imports that had ended when it began, the greatest generation */
    int64_t clock, until;
    int64_t lease_put, lease_gone, ended; /* steps; 0: not */
    size_t files[NAMES_MAX], count, next;
};

struct range {
    uint64_t generation;
    size_t files[SHARDS * 8], count, next; /* as they will be put */
    int64_t opened, closed, sealed;
};
#define RANGES_MAX 512

/* What a compactor heard of ingest nodes and left in the store (segments/compact/ranges.h). */
struct word {
    uint64_t generation;
    int64_t put;
};

struct listing {
    bool
        late; /* it shows what was, LATE_MAX steps ago at most: writers' alone, readers are told in time */
    bool active;
    int64_t began;
    size_t order[FILES_MAX], count, next;
    size_t seen[FILES_MAX], seen_count;
};

struct compactor {
    int stage;
    int64_t clock;
    int64_t now; /* of the store, as last learnt */
    uint64_t below;
    struct listing listing;
    size_t inputs[NAMES_MAX], input_count, at;
    size_t dead[NAMES_MAX], dead_count;
    int64_t window;
    size_t outputs[NAMES_MAX], output_count;
    size_t doomed[FILES_MAX], doomed_count;
    bool damaged[FILES_MAX]; /* found out by reading */
    int64_t asleep_until;
    bool turn; /* its lease while it puts (segments/store/turn.h) is there */
    int64_t turn_min, turn_max, turn_began, turn_renewed;
};

/* `segments rm`, of which there is one at a time. */
struct remover {
    int stage;
    int64_t min_ts, max_ts;
    bool lease;
    int64_t renewed;
    struct listing listing;
    size_t files[FILES_MAX], count, next;
};

struct reader {
    struct listing listing;
    points heads;
    uint64_t head_generation[SERIES][TIMES];
};

struct world {
    struct qf_prng prng;
    struct rules rules;
    bool
        ring; /* the store is one of our own nodes: what is there, logs say (segments/compact/trade.h) */
    bool trace;
    int64_t now;
    uint32_t last_write;
    struct file *files; /* that were ever made; the index is the name */
    size_t file_count;
    bool in_shadow[FILES_MAX];
    struct version history[SERIES][TIMES][VERSIONS_MAX];
    size_t versions[SERIES][TIMES];
    uint64_t below_mark; /* in the store */
    struct importer importers[IMPORTERS];
    struct range ranges[RANGES_MAX];
    size_t range_count;
    struct in_ledger *ledger; /* the one that ships; a step is a millisecond */
    uint64_t log;             /* index of its last record */
    int64_t ingest_clock;     /* of the leader */
    struct word words[WORDS_MAX];
    size_t word_count;
    struct compactor compactors[COMPACTORS];
    struct reader readers[READERS];
    struct remover remover;
    int removals_left;
    bool touched[TIMES];         /* times that a removal is or was about */
    int64_t removed[WRITES_MAX]; /* since when a sample is known to be gone; 0: it is not */
    uint64_t last_ended;         /* the greatest generation of the imports that ended well */
    /* What happened, so that a run that shows nothing is seen. */
    uint64_t answers, jobs, deleted, samples_removed;
    char failure[300];
};

/* world.c */
bool chance(struct world *w, double probability);
int64_t between(struct world *w, int64_t from, int64_t to); /* inclusive */
void say(const struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t file_new(struct world *w, uint32_t shard, uint64_t generation);
/* Set a sample; files know their times. */
void file_set(struct file *file, int series, int at, uint32_t value);
void file_seal(struct file *file); /* no more samples: size and id */
void store_put(struct world *w, size_t file);
void store_delete(struct world *w, size_t file);
bool store_has(const struct world *w, size_t file);
bool same_name(const struct file *a, const struct file *b);
/* Newer files win. */
bool newer(const struct file *a, const struct file *b);
void shadow_add(struct world *w, size_t file);
void shadow_remove(struct world *w, size_t file);
void listing_start(struct world *w, struct listing *listing);
/* One step: true when it has ended. Given up: it is not active any more. */
bool listing_step(struct world *w, struct listing *listing);
/* Is @file replaced by a file among those seen, all of whose company is seen too? Its index, or SG_PLAN_NONE. */
size_t replaced_by(const struct world *w, const struct listing *listing, size_t file);

/* writers.c */
void importer_step(struct world *w, struct importer *importer);
void ingest_step(struct world *w);
/* Up to which generation the leader of the partition settles, as segments/compact/agree.h asks it. */
uint64_t ingest_settle(struct world *w, uint64_t generation);
void sweep_step(struct world *w); /* leases of the dead */

/* compactor.c, reader.c, remover.c */
void compactor_step(struct world *w, struct compactor *compactor);
/* It puts, and has not seen yet that it is thought to be dead. */
bool compactor_is_unaware(const struct compactor *compactor);
void reader_step(struct world *w, struct reader *reader);
void remover_step(struct world *w, struct remover *remover);
/* Is a removal of times under way that the compactor's turn is about? */
bool removal_under_way(const struct world *w, const struct compactor *compactor);
void fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
