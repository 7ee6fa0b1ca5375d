/* extras.c - exemplars and metadata of imported text. */
#include "segments/import/extras.h"

#include "segments/parquet/segment_name.h"

const char *extras_metadata(struct sg_annex *annex, const struct text_metadata *metadata,
                            uint64_t generation, struct qf_arena *arena, bool *ret_full)
{
    const struct sg_metadata *before;
    struct sg_metadata now = { .type = QF_METRIC_UNKNOWN };
    struct qf_str name, text;
    const char *what = text_metadata(metadata, arena, &name, &text);

    if (what)
        return what;
    before = sg_annex_find_metadata(annex, name);
    if (before)
        now = *before;
    now.name = name;
    now.generation = generation;
    if (metadata->says == TEXT_SAYS_TYPE)
        now.type = metadata->type;
    else if (metadata->says == TEXT_SAYS_HELP)
        now.help = text;
    else
        now.unit = text;
    if (name.len + now.help.len + now.unit.len > SG_ANNEX_ENTRY_MAX)
        return "what is said of the metric is too long";
    *ret_full = !sg_annex_add_metadata(annex, &now, true);
    return NULL;
}

const char *extras_exemplar(struct sg_annex *annex, struct text_state *state,
                            const struct text_sample *sample, struct qf_arena *arena,
                            bool *ret_full)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf series = QF_STRBUF_INIT, own = QF_STRBUF_INIT;
    struct text_exemplar exemplar;
    struct qf_labels labels;
    const char *what = text_exemplar(state, sample, arena, &exemplar);

    if (!what)
        what = text_labels(state, sample, arena, &labels);
    if (what)
        return what;
    qf_labels_encode(&series, labels);
    qf_labels_encode(&own, exemplar.labels);
    if (series.len + own.len > SG_ANNEX_ENTRY_MAX)
        return "the labels of the exemplar's series are too long";
    if (!sg_times_fit(exemplar.ts, exemplar.ts))
        return "the time of an exemplar is out of bounds";
    *ret_full =
        !sg_annex_add_exemplar(annex, &(struct sg_exemplar){ .series = qf_strbuf_view(&series),
                                                             .labels = qf_strbuf_view(&own),
                                                             .ts = exemplar.ts,
                                                             .value = exemplar.value });
    return NULL;
}
