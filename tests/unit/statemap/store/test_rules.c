/* test_rules.c - rules as text, and sets of them that replace each other. */
#include "statemap/store/rules.h"

#include "statemap/store/rule_text.h"
#include "tests/unit/statemap/statemap_help.h"

static struct sm_rule read_rule(const char *text)
{
    struct qf_err err = { 0 };
    struct sm_rule rule;

    CHECK_OK(sm_rule_read(qf_str_from(text), "", &rule, &err), &err);
    return rule;
}

TEST(a_rule_is_printed_as_it_is_read)
{
    static const char *const texts[] = {
        "{\"name\":\"a\",\"map\":\"m\",\"from\":[\"x\"]}",
        "{\"name\":\"a\",\"map\":\"m\",\"from\":[\"x\"],\"to\":\"y\",\"missing\":\"leave\"}",
        "{\"name\":\"a\",\"map\":\"m\",\"from\":[\"x\",\"on-call\"],\"separator\":\"\\\"\","
        "\"prefix\":\"p_\","
        "\"overwrite\":true,\"order\":5,\"version\":9}",
        "{\"name\":\"a\",\"map\":\"m\",\"from\":[\"x\"],\"members\":{\"one\":\"a\",\"two\":\"b\"}}",
    };

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
        struct sm_rule rule = read_rule(texts[i]);

        sm_rule_print(&text, &rule);
        CHECK_STR(qf_strbuf_cstr(&text), texts[i]);
    }
}

static struct sm_store *open_store(const char *folder)
{
    struct sm_store_options options = { .root = folder, .write = true };
    struct sm_store *store = NULL;
    struct qf_err err = { 0 };

    CHECK_OK(sm_store_open(&options, &store, &err), &err);
    return store;
}

static void put(struct sm_store *store, const char *name, uint64_t order, uint64_t position,
                int64_t now_ms)
{
    struct sm_rule rule = read_rule("{\"name\":\"a\",\"map\":\"m\",\"from\":\"x\"}");
    struct qf_err err = { 0 };

    (void)snprintf(rule.name, sizeof(rule.name), "%s", name);
    rule.order = order;
    CHECK_OK(sm_rules_put(store, &rule, position, now_ms, &err), &err);
}

/* Names of the rules in force at @position, in their order; "-": not known. The buffer is one for all. */
static const char *names_at(struct sm_store *store, uint64_t position)
{
    static char text[64];
    struct sm_rule_set *set;
    struct qf_err err = { 0 };

    if (sm_rules_take(store, position, &set, &err) != QF_OK)
        return "-";
    text[0] = '\0';
    for (size_t i = 0; set && i < set->count; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", set->rules[i].name);
    sm_rules_give_back(set);
    return text;
}

TEST(sets_of_rules_are_kept_for_a_while_and_over_a_restart)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_store *store = open_store(folder);
    struct sm_rule_set *held;
    struct qf_err err = { 0 };
    bool matter;

    CHECK_STR(names_at(store, 0), "");
    CHECK_STR(names_at(store, 7), "");
    put(store, "b", 0, 10, 1000);
    put(store, "a", 0, 20, 2000);
    put(store, "c", 0, 30, 3000);
    put(store, "a", 9, 40, 4000);
    CHECK_OK(sm_rules_take(store, 0, &held, &err), &err);
    CHECK_OK(sm_rules_remove(store, "b", 50, 5000, &err), &err);
    CHECK_OK(sm_rules_remove(store, "b", 60, 5000, &err), &err); /* it is none any more */
    for (int twice = 0; twice < 2; twice++) {
        CHECK_STR(names_at(store, 0), "ca");
        CHECK_STR(names_at(store, 50), "ca");
        CHECK_STR(names_at(store, 49), "bca");
        CHECK_STR(names_at(store, 39), "abc");
        CHECK_STR(names_at(store, 10), "b");
        CHECK_STR(names_at(store, 9), "");
        store = sm_store_close(store);
        store = open_store(folder);
    }
    CHECK_EQ(held->count, 3); /* whoever has it keeps it */
    sm_rules_give_back(held);
    /* None are left; what was begun with them matters for a while. */
    CHECK_OK(sm_rules_remove(store, "a", 70, 6000, &err), &err);
    CHECK_OK(sm_rules_remove(store, "c", 80, 7000, &err), &err);
    CHECK_OK(sm_rules_matter(store, NULL, 7000 + SM_RULES_KEEP_MS - 1, &matter, &err), &err);
    CHECK(matter);
    CHECK_OK(sm_rules_matter(store, NULL, 7000 + SM_RULES_KEEP_MS, &matter, &err), &err);
    CHECK(!matter);
    CHECK_OK(sm_rules_matter(store, "m", 7000, &matter, &err), &err);
    CHECK(matter);
    CHECK_OK(sm_rules_matter(store, "other", 7000, &matter, &err), &err);
    CHECK(!matter);
    /* Those that were replaced long ago go with the next change. */
    put(store, "d", 0, 90, 5500 + SM_RULES_KEEP_MS);
    CHECK_STR(names_at(store, 39), "-");
    CHECK_STR(names_at(store, 70), "c");
    for (uint64_t i = 0; i < SM_RULE_SETS_MAX + 2; i++)
        put(store, "d", i, 100 + i, 5500 + SM_RULES_KEEP_MS);
    CHECK_STR(names_at(store, 70), "-");
    CHECK_STR(names_at(store, 100 + SM_RULE_SETS_MAX - 8), "d");
    (void)sm_store_close(store);
}

TEST(a_damaged_file_of_rules_is_told_and_not_taken_for_none)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    static const char *const bad[] = { "", "{}", "[{\"from\":1}]",
                                       "[{\"from\":1,\"rules\":[{\"name\":\"a\"}]}]" };
    struct sm_store *store = open_store(folder);
    struct qf_err err = { 0 };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        struct sm_rule_set *set;

        CHECK_OK(sm_file_replace(folder, "rules.json", qf_str_from(bad[i]), &err), &err);
        CHECK_EQ(sm_rules_take(store, 0, &set, NULL), QF_ECORRUPT);
    }
    (void)sm_store_close(store);
}

TEST(rules_that_cannot_be_written_stay_as_they_were)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    QF_CLEANUP(qf_freep) char *file = sm_path(folder, "rules.json", NULL);
    QF_CLEANUP(qf_freep) char *inside = sm_path(file, "x", NULL);
    QF_CLEANUP(qf_freep) char *aside = sm_path(folder, "aside", NULL);
    struct sm_store *store = open_store(folder);
    struct sm_rule rule = read_rule("{\"name\":\"b\",\"map\":\"m\",\"from\":\"x\"}");
    struct qf_err err = { 0 };

    put(store, "a", 0, 10, 1000);
    CHECK_EQ(rename(file, aside), 0);
    CHECK_OK(sm_folder_make(file, &err), &err);
    CHECK_OK(sm_folder_make(inside, &err), &err); /* which no file replaces */
    CHECK(sm_rules_remove(store, "a", 20, 2000, NULL) != QF_OK);
    CHECK_OK(sm_folder_remove(file, &err), &err);
    CHECK_EQ(rename(aside, file), 0);
    CHECK_STR(names_at(store, 0), "a");
    CHECK_OK(sm_rules_put(store, &rule, 30, 3000, &err), &err);
    CHECK_STR(names_at(store, 0), "ab");
    (void)sm_store_close(store);
}
