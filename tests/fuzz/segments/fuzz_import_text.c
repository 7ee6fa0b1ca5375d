/* fuzz_import_text.c - any text is lines that are read or refused, never a crash; labels that are
 * read are sorted, unique and printable back. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "segments/import/histogram_text.h"
#include "segments/import/text.h"
#include "promql/histogram/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A histogram that is read has a text that reads back as the same, and an encoding that decodes. */
static void check_histogram(struct qf_arena *arena, struct qf_str text)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf printed = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf first = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf second = QF_STRBUF_INIT;
    const struct pq_histogram *histogram, *again;
    const char *what = sg_histogram_text_parse(text, arena, &histogram);

    if (what)
        return;
    pq_histogram_encode(&first, histogram);
    sg_histogram_text_print(&printed, histogram);
    what = sg_histogram_text_parse(qf_strbuf_view(&printed), arena, &again);
    assert(!what);
    pq_histogram_encode(&second, again);
    assert(qf_str_eq(qf_strbuf_view(&first), qf_strbuf_view(&second)));
    assert(pq_histogram_decode(arena, qf_strbuf_view(&first), &again, NULL) == QF_OK);
}

/* Exemplars and metadata: read, or refused with words. */
static void check_extras(struct text_state *state, enum text_line kind,
                         const struct text_sample *sample, struct qf_arena *arena)
{
    struct text_exemplar exemplar;
    struct qf_str name, text;

    if (kind == TEXT_METADATA && !text_metadata(&sample->metadata, arena, &name, &text))
        assert(name.len > 0);
    if (kind == TEXT_SAMPLE && sample->exemplar.len &&
        !text_exemplar(state, sample, arena, &exemplar))
        for (size_t i = 0; i < exemplar.labels.count; i++)
            assert(exemplar.labels.items[i].value.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text_state state = { .format =
                                    size ? (enum sg_import_format)(data[0] % 4) : SG_IMPORT_AUTO };
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_str rest = { (const char *)data, size };

    rest = qf_str_sub(rest, 1, rest.len);
    while (rest.len) {
        const char *newline = memchr(rest.data, '\n', rest.len);
        size_t len = newline ? (size_t)(newline - rest.data) : rest.len;
        struct text_sample sample;
        struct qf_labels labels;
        const char *what;
        enum text_line kind = text_parse_line(&state, qf_str_sub(rest, 0, len), &sample, &what);

        check_extras(&state, kind, &sample, arena);
        if (kind == TEXT_SAMPLE && !text_labels(&state, &sample, arena, &labels)) {
            assert(labels.count > 0);
            for (size_t i = 0; i < labels.count; i++) {
                assert(labels.items[i].name.len > 0);
                assert(labels.items[i].value.len > 0);
                assert(!i || qf_str_cmp(labels.items[i - 1].name, labels.items[i].name) < 0);
            }
            check_histogram(arena, sample.histogram);
        }
        rest = qf_str_sub(rest, len + 1, rest.len);
    }
    (void)qf_arena_free(arena);
    return 0;
}
