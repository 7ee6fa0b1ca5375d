/* test_ledger_note.c - the manifest in a partition's log: named with SEALED or alone, kept in snapshots, told in pages. */
#include "ingest/core/ledger.h"
#include "ingest/core/listing.h"
#include "ring/wire/listing.h"
#include "tests/lib/test.h"

#define BYTES QF_CLEANUP(qf_strbuf_done) struct qf_strbuf

/* Records with notes of one blob, or of none; each keeps its bytes in @buf. */
static struct in_record decoded(const struct qf_strbuf *buf)
{
    struct in_record record;
    struct qf_err err = { 0 };

    CHECK_OK(in_record_decode(qf_strbuf_view(buf), &record, &err), &err);
    return record;
}

static struct in_record note_record(struct qf_strbuf *buf, const struct rg_note *note)
{
    BYTES bytes = QF_STRBUF_INIT;

    rg_note_encode(&bytes, note);
    qf_strbuf_reset(buf);
    in_record_put_note(buf, qf_strbuf_view(&bytes));
    return decoded(buf);
}

static struct in_record epoch_of_slot(struct qf_strbuf *buf, uint32_t slot, uint64_t epoch)
{
    struct rg_note note = { .kind = RG_NOTE_EPOCH, .epoch = epoch };

    rg_slot_set_add(&note.slots, slot);
    return note_record(buf, &note);
}

static struct in_record removed(struct qf_strbuf *buf, const char *name)
{
    struct qf_str gone = qf_str_from(name);

    return note_record(
        buf, &(struct rg_note){ .kind = RG_NOTE_REMOVED, .removed = &gone, .removed_count = 1 });
}

static struct in_record sealed(struct qf_strbuf *buf, uint64_t from, uint64_t to, const char *name,
                               uint64_t epoch)
{
    BYTES bytes = QF_STRBUF_INIT;
    struct rg_blob blob = { .name = qf_str_from(name), .slot = 3, .bytes = 10 };
    struct in_sealed_file file = { .name = blob.name, .etag = QF_STR(""), .size = 10 };

    rg_note_encode(&bytes,
                   &(struct rg_note){
                       .kind = RG_NOTE_SEALED, .epoch = epoch, .added = &blob, .added_count = 1 });
    qf_strbuf_reset(buf);
    in_record_put_sealed_note(buf, QF_STR("t"), from, to, &file, 1, qf_strbuf_view(&bytes));
    return decoded(buf);
}

/* A ledger with a closed range of tenant "t" from record 1 to record 2. */
static struct in_ledger *closed(void)
{
    struct in_ledger *ledger = in_ledger_new();
    struct in_record samples = {
        .kind = IN_SAMPLES, .tenant = QF_STR("t"), .sample_count = 1, .min_ts = 5, .max_ts = 5
    };
    struct in_record seal = { .kind = IN_SEAL, .tenant = QF_STR("t"), .generation = 1000 };

    CHECK_EQ(in_ledger_apply(ledger, 1, &samples, NULL), IN_APPLIED);
    CHECK_EQ(in_ledger_apply(ledger, 2, &seal, NULL), IN_APPLIED);
    return ledger;
}

static struct rg_page page_of(const struct in_ledger *ledger, uint64_t queue, uint64_t since,
                              struct qf_strbuf *buf)
{
    BYTES question = QF_STRBUF_INIT;
    const struct in_listing_of of = { .cluster = 9, .queue = 7, .partitions = 4 };
    struct rg_page page;

    in_listing_ask_encode(&question, &(struct in_listing_ask){ .queue = queue, .since = since });
    qf_strbuf_reset(buf);
    CHECK_EQ(in_listing_answer(qf_strbuf_view(&question), ledger, &of, buf), QF_OK);
    CHECK_EQ(rg_page_decode(qf_strbuf_view(buf), &page), QF_OK);
    return page;
}

TEST(a_sealed_range_names_its_blobs)
{
    struct in_ledger *ledger = closed();
    BYTES buf = QF_STRBUF_INIT;
    struct in_record record = sealed(&buf, 1, 2, "tenant=t/a", 1);

    CHECK_EQ(record.kind, IN_SEALED);
    CHECK_EQ(in_ledger_apply(ledger, 3, &record, NULL), IN_APPLIED);
    CHECK(rg_manifest_names(in_ledger_manifest(ledger), QF_STR("tenant=t/a")));
    CHECK_EQ(in_ledger_manifest_changed(ledger), 3);
    CHECK_EQ(in_ledger_tenant(ledger, QF_STR("t"))->file_count, 1);
    (void)in_ledger_free(ledger);
}

TEST(a_range_whose_puts_were_counted_before_the_owners_changed_is_not_sealed)
{
    struct in_ledger *ledger = closed();
    BYTES buf = QF_STRBUF_INIT;
    struct in_record record = epoch_of_slot(&buf, 3, 2);

    CHECK_EQ(in_ledger_apply(ledger, 3, &record, NULL), IN_APPLIED);
    record = sealed(&buf, 1, 2, "tenant=t/a", 1);
    CHECK_EQ(in_ledger_apply(ledger, 4, &record, NULL), IN_OUT_OF_TURN);
    CHECK_EQ(in_ledger_tenant(ledger, QF_STR("t"))->range_count, 1); /* it waits to be put again */
    record = sealed(&buf, 1, 2, "tenant=t/a", 2);
    CHECK_EQ(in_ledger_apply(ledger, 5, &record, NULL), IN_APPLIED);
    CHECK_EQ(in_ledger_tenant(ledger, QF_STR("t"))->range_count, 0);
    (void)in_ledger_free(ledger);
}

TEST(a_removed_blob_is_named_no_more)
{
    struct in_ledger *ledger = closed();
    BYTES buf = QF_STRBUF_INIT;
    struct in_record record = sealed(&buf, 1, 2, "tenant=t/a", 1);

    CHECK_EQ(in_ledger_apply(ledger, 3, &record, NULL), IN_APPLIED);
    record = removed(&buf, "tenant=t/a");
    CHECK_EQ(in_ledger_apply(ledger, 4, &record, NULL), IN_APPLIED);
    CHECK(!rg_manifest_names(in_ledger_manifest(ledger), QF_STR("tenant=t/a")));
    record = removed(&buf, "tenant=t/a"); /* doubled: harmless */
    CHECK_EQ(in_ledger_apply(ledger, 5, &record, NULL), IN_APPLIED);
    CHECK_EQ(in_ledger_manifest_changed(ledger), 4);
    (void)in_ledger_free(ledger);
}

TEST(a_snapshot_carries_the_manifest)
{
    struct in_ledger *ledger = closed(), *read = NULL;
    BYTES buf = QF_STRBUF_INIT;
    BYTES bytes = QF_STRBUF_INIT;
    BYTES again = QF_STRBUF_INIT;
    struct in_record record = sealed(&buf, 1, 2, "tenant=t/a", 1);

    in_ledger_encode(&bytes, ledger);
    CHECK(bytes.data[0] < 4); /* without a manifest nodes of before can read it */
    CHECK_EQ(in_ledger_apply(ledger, 3, &record, NULL), IN_APPLIED);
    qf_strbuf_reset(&bytes);
    in_ledger_encode(&bytes, ledger);
    CHECK_EQ(in_ledger_decode(qf_strbuf_view(&bytes), &read), QF_OK);
    CHECK(rg_manifest_names(in_ledger_manifest(read), QF_STR("tenant=t/a")));
    CHECK_EQ(in_ledger_manifest_changed(read), 3);
    in_ledger_encode(&again, read);
    CHECK(qf_str_eq(qf_strbuf_view(&bytes), qf_strbuf_view(&again)));
    for (size_t len = bytes.len - 1; len > bytes.len - 6; len--) {
        struct in_ledger *cut = NULL;

        CHECK_EQ(in_ledger_decode((struct qf_str){ bytes.data, len }, &cut), QF_ECORRUPT);
    }
    (void)in_ledger_free(ledger);
    (void)in_ledger_free(read);
}

TEST(records_with_notes_that_do_not_belong_there_are_malformed)
{
    BYTES bytes = QF_STRBUF_INIT;
    BYTES buf = QF_STRBUF_INIT;
    struct in_record record;
    struct qf_err err = { 0 };

    rg_note_encode(&bytes, &(struct rg_note){ .kind = RG_NOTE_SEALED });
    in_record_put_note(&buf, qf_strbuf_view(&bytes));
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, &err), QF_ECORRUPT);
    qf_strbuf_reset(&bytes);
    qf_strbuf_reset(&buf);
    rg_note_encode(&bytes, &(struct rg_note){ .kind = RG_NOTE_ADDED });
    in_record_put_sealed_note(&buf, QF_STR("t"), 1, 2, NULL, 0, qf_strbuf_view(&bytes));
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, &err), QF_ECORRUPT);
    qf_strbuf_reset(&buf);
    in_record_put_note(&buf, QF_STR("x"));
    CHECK_EQ(in_record_decode(qf_strbuf_view(&buf), &record, &err), QF_ECORRUPT);
}

TEST(who_asks_hears_what_changed_and_everything_of_another_queue)
{
    struct in_ledger *ledger = closed();
    BYTES buf = QF_STRBUF_INIT;
    BYTES answer = QF_STRBUF_INIT;
    struct in_record record = sealed(&buf, 1, 2, "tenant=t/a", 1);
    struct rg_page page = page_of(ledger, 0, 0, &answer);

    CHECK_EQ(page.count, 0);
    CHECK_EQ(page.partitions, 4);
    CHECK(page.whole);
    rg_page_done(&page);
    CHECK_EQ(in_ledger_apply(ledger, 3, &record, NULL), IN_APPLIED);
    page = page_of(ledger, 7, 2, &answer);
    CHECK_EQ(page.count, 1);
    CHECK(!page.whole);
    CHECK_EQ(page.applied, 3);
    rg_page_done(&page);
    page = page_of(ledger, 7, 3, &answer);
    CHECK_EQ(page.count, 0);
    rg_page_done(&page);
    page = page_of(ledger, 8, 3, &answer);
    CHECK_EQ(page.count, 1);
    CHECK(page.whole);
    rg_page_done(&page);
    CHECK_EQ(in_listing_answer(QF_STR("L"), ledger, &(struct in_listing_of){ 0 }, &answer),
             QF_ECORRUPT);
    (void)in_ledger_free(ledger);
}
