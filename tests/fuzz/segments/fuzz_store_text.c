/* fuzz_store_text.c - what stores and files say in bytes of their own: XML, names, summaries, footers,
 * histograms.
 *
 * The first byte chooses the decoder. What is accepted survives a round trip where there is one. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "promql/histogram/codec.h"
#include "segments/import/histogram_text.h"
#include "segments/parquet/segment_name.h"
#include "segments/parquet/contents.h"
#include "segments/parquet/summary.h"
#include "segments/parquet/thrift_scan.h"
#include "segments/store/xml.h"

#define FOOTER_COST_MAX ((uint64_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static qf_rc see(void *ctx, const struct xml_element *element, struct qf_err *err)
{
    size_t *seen = ctx;

    (void)err;
    if (element->depth < 0 || element->depth > XML_DEPTH_MAX)
        abort();
    (*seen)++;
    return QF_OK;
}

static void read_xml(struct qf_str text)
{
    size_t seen = 0;

    if (xml_parse(text, see, &seen, NULL) == QF_OK && seen == 0)
        abort(); /* a document has a root */
}

static void read_name(struct qf_str text)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf again = QF_STRBUF_INIT;
    struct sg_segment_name name, twin;

    if (!sg_segment_name_parse(text, &name))
        return;
    sg_segment_name_print(&again, &name); /* the folder of the day may be another one */
    if (!sg_segment_name_parse(qf_strbuf_view(&again), &twin) || twin.min_ts != name.min_ts ||
        twin.max_ts != name.max_ts || twin.shard != name.shard ||
        twin.shard_count != name.shard_count || twin.generation != name.generation ||
        twin.id != name.id || !qf_str_eq(twin.tenant, name.tenant))
        abort();
}

static void read_summary(struct qf_str text)
{
    (void)sg_summary_free(sg_summary_parse(text));
    (void)sg_contents_free(sg_contents_parse(text));
}

static void read_footer(struct qf_str text)
{
    uint64_t cost = 0;

    if (thrift_scan(text, FOOTER_COST_MAX, &cost, NULL) == QF_OK && cost > FOOTER_COST_MAX)
        abort();
}

static void read_histogram(struct qf_str bytes)
{
    struct qf_arena *arena = qf_arena_new((size_t)1 << 20);
    const struct pq_histogram *histogram;

    (void)!pq_histogram_decode(arena, bytes, &histogram, NULL);
    (void)sg_histogram_text_parse(bytes, arena, &histogram);
    (void)qf_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const read[])(struct qf_str) = { read_xml, read_name, read_summary, read_footer,
                                                   read_histogram };
    struct qf_str text = { (const char *)data + 1, size - 1 };

    if (size > 0)
        read[data[0] % QF_COUNT_OF(read)](text);
    return 0;
}
