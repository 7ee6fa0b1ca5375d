#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "tests/lib/test.h"
#include "tests/unit/ingest/head/rig.h"

_Atomic int64_t rig_now;

static int64_t now_ms(void)
{
    return rig_now;
}

static void open_head(struct rig *rig)
{
    struct in_head_options options = {
        .dir = rig->dir, .shards = rig->shards, .keep_ms = RIG_KEEP_MS, .now_ms = now_ms
    };
    struct qf_err err = { 0 };

    rig->head = in_head_new(&options, &err);
    CHECK_MSG(rig->head, "%s", err.msg);
}

void rig_begin(struct rig *rig, uint32_t shards)
{
    *rig = (struct rig){ .dir = "/tmp/test_head.XXXXXX", .shards = shards };
    CHECK(mkdtemp(rig->dir));
    rig->ledger = in_ledger_new();
    open_head(rig);
}

void rig_end(struct rig *rig)
{
    if (rig->head) {
        in_head_advance(rig->head, rig->index + 1);
        in_head_reset(rig->head); /* and its files go */
    }
    rig->head = in_head_free(rig->head);
    rig->ledger = in_ledger_free(rig->ledger);
    for (size_t i = 0; i < rig->log.count; i++)
        free(rig->log.items[i]);
    QF_VEC_DONE(&rig->log);
    QF_VEC_DONE(&rig->lengths);
    CHECK_MSG(rmdir(rig->dir) == 0, "files were left in %s", rig->dir);
}

enum in_verdict rig_append(struct rig *rig, struct qf_str bytes)
{
    enum in_verdict verdict;
    struct in_record record;

    QF_VEC_PUSH(&rig->log, qf_xmemdup0(bytes.data, bytes.len));
    QF_VEC_PUSH(&rig->lengths, bytes.len);
    CHECK_EQ(in_record_decode(bytes, &record, NULL), QF_OK);
    rig->index++;
    verdict = in_ledger_apply(rig->ledger, rig->index, &record, NULL);
    in_head_apply(rig->head, rig->ledger, rig->index, &record);
    return verdict;
}

enum in_verdict rig_samples(struct rig *rig, const char *tenant,
                            const struct in_record_series *series, size_t count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct in_record record = { .tenant = qf_str_from(tenant), .time_ms = rig_now };

    in_record_put_samples(&buf, &record, series, count);
    return rig_append(rig, qf_strbuf_view(&buf));
}

enum in_verdict rig_sample(struct rig *rig, const char *tenant, uint32_t number, bool fresh,
                           int64_t ts, double value)
{
    struct in_sample sample = { .ts = ts, .value = value };
    char text[16];
    struct qf_label labels[] = { { QF_STR_INIT("__name__"), QF_STR_INIT("m") },
                                 { QF_STR_INIT("s"), { text, 0 } } };
    struct in_record_series series = { .number = number,
                                       .fresh = fresh,
                                       .labels = { labels, 2 },
                                       .samples = &sample,
                                       .sample_count = 1 };

    labels[1].value.len = (size_t)snprintf(text, sizeof(text), "%u", number);
    return rig_samples(rig, tenant, &series, 1);
}

enum in_verdict rig_seal(struct rig *rig, const char *tenant)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    in_record_put_seal(&buf, qf_str_from(tenant), 0);
    return rig_append(rig, qf_strbuf_view(&buf));
}

enum in_verdict rig_sealed(struct rig *rig, const char *tenant)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct in_tenant *owner = in_ledger_tenant(rig->ledger, qf_str_from(tenant));
    const struct in_range *range = owner ? in_tenant_next_to_seal(owner) : NULL;

    in_record_put_sealed(&buf, qf_str_from(tenant), range ? range->from : 1, range ? range->to : 1,
                         NULL, 0);
    return rig_append(rig, qf_strbuf_view(&buf));
}

static void start_again(struct rig *rig, bool again)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    in_ledger_encode(&bytes, rig->ledger);
    rig->ledger = in_ledger_free(rig->ledger);
    CHECK_EQ(in_ledger_decode(qf_strbuf_view(&bytes), &rig->ledger), QF_OK);
    if (again) {
        rig->head = in_head_free(rig->head);
        open_head(rig);
    }
    in_head_reset(rig->head);
    for (uint64_t i = in_ledger_needed_from(rig->ledger); i <= rig->index; i++) {
        struct in_record record;

        CHECK_EQ(
            in_record_decode((struct qf_str){ rig->log.items[i - 1], rig->lengths.items[i - 1] },
                             &record, NULL),
            QF_OK);
        in_head_apply(rig->head, rig->ledger, i, &record);
    }
    in_head_advance(rig->head, rig->index);
}

void rig_restart(struct rig *rig)
{
    start_again(rig, true);
}

void rig_install(struct rig *rig)
{
    start_again(rig, false);
}

uint64_t rig_generation(const struct rig *rig, const char *tenant)
{
    return in_ledger_tenant(rig->ledger, qf_str_from(tenant))->generation;
}

void rig_print_segment(const char *path, struct qf_strbuf *buf)
{
    struct qf_err err = { 0 };
    struct sg_reader *reader = sg_reader_open(path, &err);
    const struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source;
    struct pq_series series;
    bool more;

    CHECK_MSG(reader, "%s", err.msg);
    CHECK_OK(sg_reader_verify(reader, &err), &err);
    source = sg_source_new(&reader, 1, &select, NULL, 0);
    for (;;) {
        CHECK_OK(source->next(source, &series, &more, &err), &err);
        if (!more)
            break;
        qf_labels_print(buf, series.labels);
        for (size_t i = 0; i < series.count; i++) {
            qf_strbuf_printf(buf, " %" PRId64 ":", series.ts[i]);
            if (series.histograms && series.histograms[i])
                qf_strbuf_printf(buf, "h%g", series.histograms[i]->count);
            else
                qf_strbuf_printf(buf, "%.17g", series.values[i]);
            if (series.start_ts && series.start_ts[i])
                qf_strbuf_printf(buf, "@%" PRId64, series.start_ts[i]);
        }
        qf_strbuf_putc(buf, '\n');
    }
    source->close(source);
    (void)sg_reader_free(reader);
}

char *rig_ask(struct rig *rig, struct in_head_ask ask)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct in_head_answer answer = { 0 };
    struct qf_err err = { 0 };
    char path[128];
    qf_rc rc;

    (void)snprintf(path, sizeof(path), "%s/read%d.tmp", rig->dir, rig->reads++);
    ask.path = path;
    ask.memory_bytes = ask.memory_bytes ? ask.memory_bytes : 64 << 20;
    rc = in_head_read(rig->head, &ask, &answer, &err);
    if (rc != QF_OK)
        qf_strbuf_puts(&text, qf_rc_name(rc));
    else if (answer.samples)
        rig_print_segment(path, &text);
    CHECK_MSG((rc == QF_OK && answer.samples) == (unlink(path) == 0), "a file that is or is not");
    return qf_strbuf_take(&text);
}

char *rig_read(struct rig *rig, const char *tenant, uint64_t generation, uint64_t cut)
{
    return rig_ask(rig, (struct in_head_ask){ .tenant = qf_str_from(tenant),
                                              .generation = generation,
                                              .cut = cut,
                                              .shards = 1,
                                              .min_ts = INT64_MIN,
                                              .max_ts = INT64_MAX });
}
