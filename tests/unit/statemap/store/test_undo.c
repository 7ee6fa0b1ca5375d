/* test_undo.c - a map as it was: against maps that have the first parts alone. */
#include "tests/unit/statemap/statemap_help.h"

enum { PARTS = 6, PUTS = 40, KEYS = 12, ASKED = 400 };

static struct sm_row random_row(struct qf_prng *prng, enum sm_kind kind, char key[8],
                                char value[16])
{
    struct sm_row row = { .time = (int64_t)qf_prng_below(prng, 30) };

    (void)snprintf(key, 8, "k%d", (int)qf_prng_below(prng, KEYS));
    (void)snprintf(value, 16, "v%d", (int)qf_prng_below(prng, 1000));
    if (sm_kind_keyed(kind))
        row.key = qf_str_from(key);
    else
        row.from = (int64_t)qf_prng_below(prng, 20);
    row.to = row.from + (int64_t)qf_prng_below(prng, 8);
    row.end = row.time + 1 + (int64_t)qf_prng_below(prng, 10);
    if (kind != SM_SESSION)
        row.value = (struct sm_value){ SM_STRING, qf_str_from(value) };
    return row;
}

static struct sm_env *make_part(const char *folder, struct sm_layout layout, struct qf_prng *prng)
{
    struct sm_env *env = help_env(folder, layout, help_few_hashes);
    struct sm_txn *txn = NULL;
    struct qf_err err = { 0 };

    CHECK_OK(sm_write_begin(env, &txn, &err), &err);
    for (int i = 0; i < PUTS; i++) {
        char key[8], value[16];
        struct sm_row row = random_row(prng, layout.kind, key, value);

        CHECK_OK(sm_put(txn, &row, &err), &err);
    }
    CHECK_OK(sm_commit(txn, &err), &err);
    return env;
}

/* What it says as of @position; 0: of now. */
static void answer(struct sm_env *env, uint64_t position, int what, int64_t time, char text[64])
{
    struct sm_txn *txn = NULL;
    struct sm_row row = { 0 };
    struct qf_err err = { 0 };
    bool found = false, any = true;
    char key[8];

    CHECK_OK(sm_read_begin(env, &txn, &err), &err);
    if (position)
        CHECK_OK(sm_as_of(txn, position, &any, &err), &err);
    CHECK(any);
    (void)snprintf(key, sizeof(key), "%s%d", sm_kind_ranged(sm_layout_of(txn)->kind) ? "" : "k",
                   what);
    CHECK_OK(sm_find_text(txn, qf_str_from(key), time, &found, &row, &err), &err);
    (void)snprintf(text, 64, "%d %lld..%lld %.*s", found, found ? (long long)row.time : 0,
                   found ? (long long)row.end : 0, found ? (int)row.value.bytes.len : 0,
                   found && row.value.bytes.data ? row.value.bytes.data : "");
    (void)sm_end(txn);
}

static void check_kind(struct sm_layout layout, uint64_t seed)
{
    char *folders[2 * PARTS + 1];
    struct sm_env *parts[PARTS], *then[PARTS], *now;
    struct qf_prng prng = { seed };
    struct qf_err err = { 0 };

    for (int i = 0; i < 2 * PARTS + 1; i++)
        folders[i] = help_folder();
    now = help_env(folders[2 * PARTS], layout, help_few_hashes);
    CHECK_OK(sm_number_first(now, 1, &err), &err);
    for (int i = 0; i < PARTS; i++) {
        parts[i] = make_part(folders[i], layout, &prng);
        then[i] = help_env(folders[PARTS + i], layout, help_few_hashes);
        for (int j = 0; j <= i; j++)
            CHECK_OK(sm_merge(then[i], parts[j], 10 * ((uint64_t)j + 1), 0, &err), &err);
        CHECK_OK(sm_merge(now, parts[i], 10 * ((uint64_t)i + 1), 1000 + i, &err), &err);
    }
    for (int n = 0; n < ASKED; n++) {
        int at = (int)qf_prng_below(&prng, PARTS), what = (int)qf_prng_below(&prng, 28);
        int64_t time = (int64_t)qf_prng_below(&prng, 45);
        char want[64], got[64];

        answer(then[at], 0, what, time, want);
        answer(now, 10 * ((uint64_t)at + 1) + qf_prng_below(&prng, 10), what, time, got);
        CHECK_MSG(strcmp(want, got) == 0, "seed %llu, part %d, %d at %lld: %s, not %s",
                  (unsigned long long)seed, at, what, (long long)time, got, want);
    }
    for (int i = 0; i < PARTS; i++) {
        (void)sm_env_close(parts[i]);
        (void)sm_env_close(then[i]);
    }
    (void)sm_env_close(now);
    for (int i = 0; i < 2 * PARTS + 1; i++)
        help_folder_gone(&folders[i]);
}

TEST(a_map_as_it_was_answers_as_it_did)
{
    for (int kind = 0; kind < SM_KIND__COUNT; kind++)
        for (int direct = 0; direct <= sm_kind_keyed((enum sm_kind)kind); direct++)
            check_kind((struct sm_layout){ (enum sm_kind)kind, direct },
                       100 + 10 * (uint64_t)kind + (uint64_t)direct);
}

static qf_rc as_of(struct sm_env *env, uint64_t position, bool *ret_any)
{
    struct sm_txn *txn = NULL;
    struct qf_err err = { 0 };
    qf_rc rc;

    CHECK_OK(sm_read_begin(env, &txn, &err), &err);
    rc = sm_as_of(txn, position, ret_any, &err);
    (void)sm_end(txn);
    return rc;
}

TEST(what_rows_were_is_kept_for_a_while_and_then_said_to_be_gone)
{
    const struct sm_layout layout = { .kind = SM_STATE };
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    QF_CLEANUP(help_folder_gone) char *part_folder = help_folder();
    struct qf_prng prng = { 5 };
    struct sm_env *env = help_env(folder, layout, NULL);
    struct sm_env *part = make_part(part_folder, layout, &prng);
    struct qf_err err = { 0 };
    int64_t now = 1000;
    bool any;

    CHECK_EQ(as_of(env, 5, &any), QF_OK);
    CHECK(!any);
    CHECK_OK(sm_number_first(env, 10, &err), &err);
    CHECK_OK(sm_merge(env, part, 20, 0, &err), &err); /* what was before it nobody wanted to know */
    CHECK_OK(sm_merge(env, part, 30, now, &err), &err);
    CHECK_OK(sm_merge(env, part, 40, now + SM_UNDO_KEEP_MS, &err), &err);
    CHECK_EQ(as_of(env, 9, &any), QF_OK);
    CHECK(!any); /* the map had no rows */
    CHECK_EQ(as_of(env, 19, &any), QF_EGONE);
    CHECK_EQ(as_of(env, 20, &any), QF_OK);
    CHECK(any);
    CHECK_EQ(as_of(env, 99, &any), QF_OK);
    /* Long after, the oldest goes. */
    now += 2 * SM_UNDO_KEEP_MS;
    CHECK_OK(sm_merge(env, part, 50, now + 1, &err), &err);
    CHECK_EQ(as_of(env, 29, &any), QF_EGONE);
    CHECK_EQ(as_of(env, 40, &any), QF_OK);
    /* A merge that keeps nothing ends it. */
    CHECK_OK(sm_merge(env, part, 60, 0, &err), &err);
    CHECK_EQ(as_of(env, 50, &any), QF_EGONE);
    CHECK_EQ(as_of(env, 60, &any), QF_OK);
    (void)sm_env_close(env);
    (void)sm_env_close(part);
}
