/* extras.h - exemplars and metadata of imported text, collected for the store (segments/annex/annex.h). */
#ifndef SEGMENTS_IMPORT_EXTRAS_H
#define SEGMENTS_IMPORT_EXTRAS_H

#include "segments/annex/annex.h"
#include "segments/import/text.h"

/* Of a metric HELP, TYPE and UNIT come one by one: what was said before of the others stays. NULL, or what is wrong; @ret_full: there
 * is no room. @arena is scratch. */
const char *extras_metadata(struct sg_annex *annex, const struct text_metadata *metadata,
                            uint64_t generation, struct qf_arena *arena, bool *ret_full);
/* The exemplar of a sample that has one. Likewise. */
const char *extras_exemplar(struct sg_annex *annex, struct text_state *state,
                            const struct text_sample *sample, struct qf_arena *arena,
                            bool *ret_full);

#endif
