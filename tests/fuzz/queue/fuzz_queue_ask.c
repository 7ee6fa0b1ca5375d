/* fuzz_queue_ask.c - any bytes in place of what nodes ask each other, or of a record of meta.
 *
 * The first byte chooses. What is an ask or an answer must come out as it went in. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/node/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_ask(struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct qn_ask *ask;

    if (qn_ask_decode(bytes, &ask) != QF_OK)
        return;
    for (size_t i = 0; i < ask->records.count; i++) /* as the node does when it begins */
        ask->records.items[i].data = ask->bytes.data + (size_t)ask->records.items[i].data;
    qn_ask_encode(&again, ask);
    assert(qf_str_eq(qf_strbuf_view(&again), bytes));
    qf_strbuf_done(&again);
    (void)qn_ask_free(ask);
}

static void try_answer(struct qf_str bytes)
{
    struct qn_ask *ask = qn_ask_new(QN_POLL, QF_STR("q"));
    struct qf_strbuf again = QF_STRBUF_INIT;

    if (qn_answer_decode(bytes, &ask->answer) == QF_OK) {
        struct qn_ask *copy = qn_ask_new(QN_POLL, QF_STR("q"));
        qf_rc rc;

        qn_answer_encode(&again, &ask->answer);
        rc = qn_answer_decode(qf_strbuf_view(&again), &copy->answer);
        assert(rc == QF_OK);
        assert(copy->answer.records.count == ask->answer.records.count);
        (void)qn_ask_free(copy);
    }
    qf_strbuf_done(&again);
    (void)qn_ask_free(ask);
}

static void try_record(struct qf_str bytes)
{
    struct qf_strbuf record = QF_STRBUF_INIT, again = QF_STRBUF_INIT;
    struct qn_table table = { 0 }, copy = { 0 };

    (void)qn_table_apply(&table, 7, bytes);
    qn_record_table(&record, &table);
    (void)qn_table_apply(&copy, 8, qf_strbuf_view(&record));
    qn_record_table(&again, &copy);
    assert(qf_str_eq(qf_strbuf_view(&again), qf_strbuf_view(&record)));
    qf_strbuf_done(&record);
    qf_strbuf_done(&again);
    qn_table_clear(&table);
    qn_table_clear(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str bytes = { (const char *)data + 1, size ? size - 1 : 0 };

    if (!size)
        return 0;
    if (data[0] % 3 == 0)
        try_ask(bytes);
    else if (data[0] % 3 == 1)
        try_answer(bytes);
    else
        try_record(bytes);
    return 0;
}
