/* test_table.c - what records of meta amount to. */
#include "queue/node/table.h"
#include "tests/lib/test.h"

static struct qn_row row(const char *name, const char *tenant)
{
    struct qn_row row = { .options = { .level = QC_LEVEL_ALL,
                                       .retention_ms = 5000,
                                       .retention_bytes = UINT64_C(1) << 40,
                                       .delete_on_consume = true },
                          .members = {
                              .count = 2,
                              .items = { { .id = UINT64_MAX, .role = QC_VOTER, .name = "a" },
                                         { .id = 7, .role = QC_STANDBY, .name = "b\"" } } } };

    (void)snprintf(row.name, sizeof(row.name), "%s", name);
    (void)snprintf(row.tenant, sizeof(row.tenant), "%s", tenant);
    return row;
}

static bool apply_create(struct qn_table *table, uint64_t index, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qn_row created = row(name, "t");

    qn_record_create(&buf, &created);
    return qn_table_apply(table, index, qf_strbuf_view(&buf));
}

static bool apply_delete(struct qn_table *table, uint64_t index, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    qn_record_delete(&buf, name);
    return qn_table_apply(table, index, qf_strbuf_view(&buf));
}

/* All that a queue is made of comes back out of its record. */
TEST(a_created_queue_is_in_the_table_with_all_it_has)
{
    QF_CLEANUP(qn_table_clear) struct qn_table table = { 0 };
    struct qn_row want = row("orders", "t");
    const struct qn_row *got;

    CHECK(apply_create(&table, 17, "orders"));
    got = qn_table_find(&table, "orders");
    CHECK(got != NULL);
    CHECK_EQ(got->id, 17);
    CHECK_STR(got->tenant, "t");
    CHECK(qn_queue_options_equal(&got->options, &want.options));
    CHECK_EQ(got->members.count, 2);
    CHECK_EQ(got->members.items[0].id, UINT64_MAX);
    CHECK_EQ(got->members.items[0].role, QC_VOTER);
    CHECK_EQ(got->members.items[1].role, QC_STANDBY);
    CHECK_STR(got->members.items[1].name, "b\"");
    CHECK_EQ(qn_table_owned(&table, "t"), 1);
    CHECK_EQ(qn_table_owned(&table, "u"), 0);
}

/* Of two records with one name the first counts, on every node. */
TEST(a_name_that_exists_is_not_created_again)
{
    QF_CLEANUP(qn_table_clear) struct qn_table table = { 0 };

    CHECK(apply_create(&table, 3, "orders"));
    CHECK(!apply_create(&table, 4, "orders"));
    CHECK_EQ(qn_table_find(&table, "orders")->id, 3);
    CHECK(apply_delete(&table, 5, "orders"));
    CHECK(!apply_delete(&table, 6, "orders"));
    CHECK(apply_create(&table, 7, "orders"));
    CHECK_EQ(qn_table_find(&table, "orders")->id, 7);
}

/* What was before a whole table can be trimmed. */
TEST(a_whole_table_takes_the_place_of_everything_before)
{
    QF_CLEANUP(qn_table_clear) struct qn_table table = { 0 }, other = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT, again = QF_STRBUF_INIT;

    CHECK(apply_create(&table, 3, "a"));
    CHECK(apply_create(&table, 4, "b"));
    CHECK(apply_create(&other, 1, "c"));
    qn_record_table(&buf, &table);
    CHECK(qn_table_apply(&other, 9, qf_strbuf_view(&buf)));
    CHECK(!qn_table_find(&other, "c"));
    CHECK_EQ(qn_table_find(&other, "b")->id, 4);
    qn_record_table(&again, &other);
    CHECK_STR(qf_strbuf_cstr(&again), qf_strbuf_cstr(&buf));
}

/* How many partitions there are is said once, and stays when everything else is said anew. */
TEST(the_number_of_partitions_is_fixed)
{
    QF_CLEANUP(qn_table_clear) struct qn_table table = { 0 }, other = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    uint32_t number;

    qn_record_partitions(&buf, 4);
    CHECK(qn_table_apply(&table, 1, qf_strbuf_view(&buf)));
    CHECK_EQ(table.partitions, 4);
    CHECK(!qn_table_apply(&table, 2, QF_STR("{\"partitions\":8}")));
    CHECK(!qn_table_apply(&other, 2, QF_STR("{\"partitions\":3}")));
    CHECK(!qn_table_apply(&other, 2, QF_STR("{\"partitions\":256}")));
    CHECK(!qn_table_apply(&other, 2, QF_STR("{\"partitions\":\"4\"}")));
    qf_strbuf_reset(&buf);
    qn_record_table(&buf, &table);
    CHECK(qn_table_apply(&other, 3, qf_strbuf_view(&buf)));
    CHECK_EQ(other.partitions, 4);
    CHECK(qn_name_partition("metrics-17", &number));
    CHECK_EQ(number, 17);
    CHECK(!qn_name_partition("metrics-017", &number));
    CHECK(!qn_name_partition("metrics-128", &number));
    CHECK(!qn_name_partition("metrics-", &number));
    CHECK(!qn_name_partition("metrics-1x", &number));
    CHECK(!qn_name_partition("orders", &number));
}

/* Later versions may write other records; and nobody ends a node with a record. */
TEST(records_that_are_none_are_skipped)
{
    static const char *const records[] = {
        "",
        "{",
        "[]",
        "7",
        "{\"tenant\":\"x\"}",
        "{\"create\":7}",
        "{\"create\":\"UP\"}",
        "{\"create\":\"a\",\"tenant\":\"t\",\"level\":\"most\"}",
        "{\"create\":\"a\",\"tenant\":\"t\",\"level\":\"all\",\"members\":[{}]}",
    };
    QF_CLEANUP(qn_table_clear) struct qn_table table = { 0 };

    for (size_t i = 0; i < QF_COUNT_OF(records); i++)
        CHECK(!qn_table_apply(&table, 1, qf_str_from(records[i])));
    CHECK_EQ(table.rows.count, 0);
}

/* They would be other numbers when the table is written and read again. */
TEST(rows_with_numbers_below_zero_are_skipped)
{
    QF_CLEANUP(qn_table_clear) struct qn_table table = { 0 };

#define ROW(id, bytes)                                                                             \
    "{\"id\":" id ",\"name\":\"b\",\"tenant\":\"t\",\"level\":\"one\",\"retention_bytes\":" bytes  \
    "}"
    CHECK(qn_table_apply(
        &table, 1,
        QF_STR("{\"table\":[" ROW("-7", "0") "," ROW("0", "0") "," ROW("5", "-1") "]}")));
    CHECK_EQ(table.rows.count, 0);
    CHECK(qn_table_apply(&table, 2, QF_STR("{\"table\":[" ROW("5", "1") "]}")));
    CHECK_EQ(table.rows.count, 1);
#undef ROW
}

TEST(a_table_is_bounded)
{
    QF_CLEANUP(qn_table_clear) struct qn_table table = { 0 };
    char name[16];

    for (int i = 0; i < QN_QUEUES_MAX + 3; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        CHECK_EQ(apply_create(&table, (uint64_t)i + 1, name), i < QN_QUEUES_MAX);
    }
}

TEST(names_of_queues)
{
    CHECK(qn_name_valid(QF_STR("a")));
    CHECK(qn_name_valid(QF_STR("0rders-2.x_y")));
    CHECK(!qn_name_valid(QF_STR("")));
    CHECK(!qn_name_valid(QF_STR("-a")));
    CHECK(!qn_name_valid(QF_STR("A")));
    CHECK(!qn_name_valid(QF_STR("a/b")));
    CHECK(!qn_name_valid(QF_STR("a23456789012345678901234567890123456789012")));
    CHECK(qn_name_is_system("meta"));
    CHECK(qn_name_is_system("metrics-3"));
    CHECK(!qn_name_is_system("metadata"));
}
