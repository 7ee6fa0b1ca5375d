/* test_model.c - each kind against a plain model: random puts, look-ups at random times, condensation and retention, with and
 * without clashes of hashes. */
#include "statemap/store/upkeep.h"
#include "tests/unit/statemap/statemap_help.h"

#ifndef MODEL_PUTS
#define MODEL_PUTS 60000
#endif

enum { PHASES = 6, PUTS_PER_TXN = 5000 };

struct bench {
    char *folder;
    struct sm_env *env;
    struct sm_txn *txn;
    struct qf_prng prng;
    struct qf_err err;
    uint64_t load;
    int64_t settled; /* nothing is put up to here any more, nothing asked before it */
    uint64_t dropped;
};

static void bench_open(struct bench *b, enum sm_kind kind, bool direct, bool clashes)
{
    *b = (struct bench){ .folder = help_folder(), .prng = { (uint64_t)kind + 17 }, .settled = -1 };
    b->env =
        help_env(b->folder, (struct sm_layout){ kind, direct }, clashes ? help_few_hashes : NULL);
}

static void bench_close(struct bench *b)
{
    (void)sm_env_close(b->env);
    help_folder_gone(&b->folder);
}

static int64_t below(struct bench *b, int64_t bound)
{
    return (int64_t)qf_prng_below(&b->prng, (uint64_t)bound);
}

/* Keys of different lengths, some of which begin alike. */
static struct qf_str key_of(int64_t number, char room[64])
{
    int len = snprintf(room, 64, "%.*skey-%lld", (int)(number % 7), "long-er-", (long long)number);

    return (struct qf_str){ room, (size_t)len };
}

static struct sm_value value_of(int64_t number, unsigned char room[8])
{
    for (int i = 7; i >= 0; i--, number >>= 8)
        room[i] = (unsigned char)number;
    return (struct sm_value){ SM_INTEGER, { (char *)room, 8 } };
}

static int64_t number_of(struct sm_value value)
{
    int64_t number = 0;

    CHECK_EQ(value.type, SM_INTEGER);
    for (int i = 0; i < 8; i++)
        number = number << 8 | (unsigned char)value.bytes.data[i];
    return number;
}

static void put(struct bench *b, struct sm_row *row, int64_t value)
{
    unsigned char room[8];

    row->value = value_of(value, room);
    row->load = b->load;
    CHECK_OK(sm_put(b->txn, row, &b->err), &b->err);
}

static void commit(struct bench *b)
{
    CHECK_OK(sm_commit(b->txn, &b->err), &b->err);
    b->txn = NULL;
}

static void begin(struct bench *b, bool write)
{
    CHECK_OK(write ? sm_write_begin(b->env, &b->txn, &b->err)
                   : sm_read_begin(b->env, &b->txn, &b->err),
             &b->err);
}

/* Random puts of a phase; @one makes one. */
static void put_many(struct bench *b, void *model, int phase,
                     void (*one)(struct bench *b, void *model, int phase))
{
    for (int64_t i = 0; i < MODEL_PUTS / PHASES; i++) {
        if (i % PUTS_PER_TXN == 0) {
            if (b->txn)
                commit(b);
            begin(b, true);
            b->load++;
        }
        one(b, model, phase);
    }
    commit(b);
}

static void upkeep(struct bench *b, int64_t condense, int64_t retain)
{
    struct sm_upkeep done = { 0 };
    struct sm_cutoffs cutoffs = { condense, retain };

    CHECK_OK(sm_upkeep(b->env, cutoffs, &done, &b->err), &b->err);
    CHECK(!done.more);
    b->dropped += done.dropped;
}

/* State. */

enum { KEYS = 400 };

struct state_model {
    int64_t value[KEYS]; /* 0: none */
};

static void state_put(struct bench *b, void *ctx, int phase)
{
    struct state_model *m = ctx;
    int64_t key = below(b, KEYS), value = 1 + below(b, 1000);
    char room[64];
    struct sm_row row = { .key = key_of(key, room) };

    (void)phase;
    m->value[key] = value;
    put(b, &row, value);
}

static void state_check(struct bench *b, const struct state_model *m)
{
    char room[64];

    begin(b, false);
    for (int64_t key = 0; key < KEYS + 10; key++) {
        struct sm_row row = { 0 };
        bool found = false;

        CHECK_OK(sm_find(b->txn, key_of(key, room), below(b, 100), &found, &row, &b->err), &b->err);
        CHECK_EQ(found, key < KEYS && m->value[key] != 0);
        if (found)
            CHECK_EQ(number_of(row.value), m->value[key]);
    }
    b->txn = sm_end(b->txn);
}

static void run_state(bool direct, bool clashes)
{
    struct state_model *m = qf_xcalloc(1, sizeof(*m));
    struct bench b;

    bench_open(&b, SM_STATE, direct, clashes);
    for (int phase = 0; phase < PHASES; phase++) {
        put_many(&b, m, phase, state_put);
        state_check(&b, m);
    }
    bench_close(&b);
    free(m);
}

TEST(state_answers_as_a_plain_model_does)
{
    run_state(false, false);
}

TEST(state_with_clashes_of_hashes_answers_as_a_plain_model_does)
{
    run_state(false, true);
}

TEST(state_with_short_keys_answers_as_a_plain_model_does)
{
    run_state(true, false);
}

/* Temporal state. */

enum { T_KEYS = 40, SPAN = 100, TIMES = PHASES * SPAN };

struct temporal_model {
    int64_t value[T_KEYS][TIMES]; /* 0: none */
};

static int64_t random_time(struct bench *b, int phase)
{
    int64_t first = b->settled + 1, end = (phase + 1) * SPAN;

    return first + below(b, end - first);
}

static void temporal_put(struct bench *b, void *ctx, int phase)
{
    struct temporal_model *m = ctx;
    int64_t key = below(b, T_KEYS), value = 1 + below(b, 2);
    char room[64];
    struct sm_row row = { .key = key_of(key, room), .time = random_time(b, phase) };

    /* Not all moments, or nothing would ever be far from its row. */
    if ((row.time * 7 + key) % 5 && MODEL_PUTS > 20000)
        return;
    m->value[key][row.time] = value;
    put(b, &row, value);
}

static void temporal_check(struct bench *b, const struct temporal_model *m, bool exact)
{
    char room[64];

    begin(b, false);
    for (int i = 0; i < 20000; i++) {
        int64_t key = below(b, T_KEYS + 1), from = b->settled > 0 ? b->settled : -2;
        int64_t time = from + below(b, TIMES + 3 - from), t = time < TIMES ? time : TIMES - 1;
        struct sm_row row = { 0 };
        bool found = false;

        while (t >= 0 && (key == T_KEYS || !m->value[key][t]))
            t--;
        CHECK_OK(sm_find(b->txn, key_of(key, room), time, &found, &row, &b->err), &b->err);
        CHECK_EQ(found, t >= 0);
        if (found)
            CHECK_EQ(number_of(row.value), m->value[key][t]);
        if (found && exact)
            CHECK_EQ(row.time, t);
    }
    b->txn = sm_end(b->txn);
}

/* No row says again what the one before it said. */
static void temporal_condensed(struct bench *b)
{
    struct sm_rows rows = { 0 };
    struct sm_row row = { 0 };
    struct qf_strbuf key = QF_STRBUF_INIT;
    int64_t former = -1;
    bool found = true;

    begin(b, false);
    rows.txn = b->txn;
    for (;;) {
        CHECK_OK(sm_rows_next(&rows, &found, &row, &b->err), &b->err);
        if (!found)
            break;
        CHECK(!qf_str_eq(qf_strbuf_view(&key), row.key) || number_of(row.value) != former);
        former = number_of(row.value);
        qf_strbuf_reset(&key);
        qf_strbuf_str(&key, row.key);
    }
    b->txn = sm_end(b->txn);
    qf_strbuf_done(&key);
}

static void run_temporal(bool direct, bool clashes)
{
    struct temporal_model *m = qf_xcalloc(1, sizeof(*m));
    struct bench b;

    bench_open(&b, SM_TEMPORAL, direct, clashes);
    for (int phase = 0; phase < PHASES; phase++) {
        int64_t end = (phase + 1) * SPAN;

        put_many(&b, m, phase, temporal_put);
        temporal_check(&b, m, phase == 0);
        upkeep(&b, phase % 3 ? end - 10 : INT64_MIN, phase % 2 ? end - 20 : INT64_MIN);
        b.settled = end - 10;
        temporal_check(&b, m, false);
    }
    upkeep(&b, TIMES, INT64_MIN);
    temporal_condensed(&b);
    temporal_check(&b, m, false);
    CHECK(b.dropped > 100);
    bench_close(&b);
    free(m);
}

TEST(temporal_state_answers_as_a_plain_model_does)
{
    run_temporal(false, false);
}

TEST(temporal_state_with_clashes_of_hashes_answers_as_a_plain_model_does)
{
    run_temporal(false, true);
}

TEST(temporal_state_with_short_keys_answers_as_a_plain_model_does)
{
    run_temporal(true, false);
}

/* Ranges. Their ends lie on a grid, that is wide enough for all numbers or has single ones. */

enum { GRID = 41, R_TIMES = 60 };

struct range_cell {
    int64_t value; /* 0: none */
    uint64_t load;
};

struct range_model {
    bool wide;
    int times; /* 1: without */
    struct range_cell cells[GRID][GRID][R_TIMES];
};

static int64_t on_grid(const struct range_model *m, int64_t i)
{
    if (!m->wide)
        return i - GRID / 2;
    return i == 0 ? INT64_MIN : i == GRID - 1 ? INT64_MAX : (i - GRID / 2) * (INT64_C(1) << 58);
}

static void range_put(struct bench *b, void *ctx, int phase)
{
    struct range_model *m = ctx;
    int64_t from = below(b, GRID), to = from + below(b, GRID - from), value = 1 + below(b, 3);
    int64_t first = b->settled + 1, end = (phase + 1) * R_TIMES / PHASES;
    int64_t time = m->times > 1 ? first + below(b, end - first) : 0;
    struct sm_row row = { .from = on_grid(m, from), .to = on_grid(m, to), .time = time };

    /* Not all of them: narrow ones would always answer, where equally wide ones shall overlap. Nor at all times: the last
     * moment would always answer. */
    if ((to - from) % 6 || (from == to && from % 10) ||
        (m->times > 1 && (time * 13 + from + to * 5) % 7))
        return;
    m->cells[from][to][time] = (struct range_cell){ value, b->load };
    put(b, &row, value);
}

/* The best of all; narrowest, latest, last loaded, then the one that begins later. */
static int64_t range_answer(const struct range_model *m, int64_t at, bool beside, int64_t time)
{
    int64_t best = 0, best_time = 0;
    uint64_t best_load = 0;
    qf_u128 best_width = 0;

    for (int64_t from = 0; from <= at; from++)
        for (int64_t to = at + beside; to < GRID; to++) {
            qf_u128 width = (qf_u128)on_grid(m, to) - (qf_u128)on_grid(m, from);
            const struct range_cell *cell;
            int64_t t = time;

            while (t >= 0 && !m->cells[from][to][t].value)
                t--;
            if (t < 0)
                continue;
            cell = &m->cells[from][to][t];
            if (best && (width > best_width || (width == best_width && t < best_time) ||
                         (width == best_width && t == best_time && cell->load < best_load)))
                continue;
            best = cell->value;
            best_width = width;
            best_time = t;
            best_load = cell->load;
        }
    return best;
}

static void range_check(struct bench *b, const struct range_model *m)
{
    begin(b, false);
    for (int i = 0; i < 1500; i++) {
        int64_t at = below(b, GRID), from = b->settled > 0 ? b->settled : 0;
        bool beside = m->wide && at < GRID - 1 && below(b, 2); /* between two of the grid */
        int64_t time = m->times > 1 ? from + below(b, R_TIMES - from) : 0;
        struct sm_row row = { 0 };
        bool found = false;
        int64_t want = range_answer(m, at, beside, time);

        CHECK_OK(sm_find_number(b->txn, on_grid(m, at) + beside, time, &found, &row, &b->err),
                 &b->err);
        CHECK_EQ(found, want != 0);
        if (found)
            CHECK_EQ(number_of(row.value), want);
    }
    b->txn = sm_end(b->txn);
}

static void run_ranges(enum sm_kind kind, bool wide)
{
    struct range_model *m = qf_xcalloc(1, sizeof(*m));
    struct bench b;

    m->wide = wide;
    m->times = kind == SM_RANGED ? 1 : R_TIMES;
    bench_open(&b, kind, false, false);
    for (int phase = 0; phase < PHASES; phase++) {
        int64_t end = (phase + 1) * R_TIMES / PHASES;

        put_many(&b, m, phase, range_put);
        range_check(&b, m);
        upkeep(&b, phase % 3 ? end - 3 : INT64_MIN, phase % 2 ? end - 4 : INT64_MIN);
        if (m->times > 1)
            b.settled = end - 3;
        range_check(&b, m);
    }
    CHECK_EQ(b.dropped > 50, kind == SM_TEMPORAL_RANGED);
    bench_close(&b);
    free(m);
}

TEST(ranged_state_answers_as_a_plain_model_does)
{
    run_ranges(SM_RANGED, false);
}

TEST(ranged_state_of_all_numbers_answers_as_a_plain_model_does)
{
    run_ranges(SM_RANGED, true);
}

TEST(temporal_ranged_state_answers_as_a_plain_model_does)
{
    run_ranges(SM_TEMPORAL_RANGED, false);
}

TEST(temporal_ranged_state_of_all_numbers_answers_as_a_plain_model_does)
{
    run_ranges(SM_TEMPORAL_RANGED, true);
}

/* Sessions: the model knows which moments are in one. Those that overlap or touch are one. */

enum { S_KEYS = 60, S_SPAN = 400, S_TIMES = PHASES * S_SPAN + 100 };

struct session_model {
    bool covered[S_KEYS][S_TIMES];
};

static void session_put(struct bench *b, void *ctx, int phase)
{
    struct session_model *m = ctx;
    int64_t key = below(b, S_KEYS), first = b->settled + 1, end = (phase + 1) * S_SPAN;
    char room[64];
    struct sm_row row = { .key = key_of(key, room), .time = first + below(b, end - first) };

    row.end = row.time + 1 + below(b, below(b, 20) ? 8 : 60);
    if (row.time / 40 % 2) /* with gaps */
        return;
    for (int64_t t = row.time; t < row.end; t++)
        m->covered[key][t] = true;
    put(b, &row, 0);
}

static void session_check(struct bench *b, const struct session_model *m)
{
    char room[64];

    begin(b, false);
    for (int i = 0; i < 20000; i++) {
        int64_t key = below(b, S_KEYS + 1), from = b->settled > 0 ? b->settled : 0;
        int64_t time = from + below(b, S_TIMES - from), start = time, end = time;
        bool covered = key < S_KEYS && m->covered[key][time], found = false;
        struct sm_row row = { 0 };

        CHECK_OK(sm_find(b->txn, key_of(key, room), time, &found, &row, &b->err), &b->err);
        CHECK_EQ(found, covered);
        if (!found)
            continue;
        while (start > 0 && m->covered[key][start - 1])
            start--;
        while (end < S_TIMES && m->covered[key][end])
            end++;
        CHECK_EQ(row.time, start);
        CHECK_EQ(row.end, end);
    }
    b->txn = sm_end(b->txn);
}

static void run_sessions(bool direct, bool clashes)
{
    struct session_model *m = qf_xcalloc(1, sizeof(*m));
    struct bench b;

    bench_open(&b, SM_SESSION, direct, clashes);
    for (int phase = 0; phase < PHASES; phase++) {
        int64_t end = (phase + 1) * S_SPAN;

        put_many(&b, m, phase, session_put);
        session_check(&b, m);
        upkeep(&b, phase % 3 ? end - 30 : INT64_MIN, phase % 2 ? end - 60 : INT64_MIN);
        b.settled = end - 30;
        session_check(&b, m);
    }
    CHECK(b.dropped > 1000);
    bench_close(&b);
    free(m);
}

TEST(sessions_answer_as_a_plain_model_does)
{
    run_sessions(false, false);
}

TEST(sessions_with_clashes_of_hashes_answer_as_a_plain_model_does)
{
    run_sessions(false, true);
}

TEST(sessions_with_short_keys_answer_as_a_plain_model_does)
{
    run_sessions(true, false);
}
