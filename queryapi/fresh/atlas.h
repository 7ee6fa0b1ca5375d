/* atlas.h - the state maps of tenants as they are known here: asked for beside what is fresh, at most once a second.
 *
 *     a question for a status comes   qa_atlas_begin()   what is known of its tenant's maps may be too old: ask
 *     its status is there             qa_atlas_end()     it goes back with the maps: at once, or when they are known
 *
 * A question waits for the answer that was asked for beside it. If nobody answers, what was known before goes back with it, after a
 * second if that is not too old, else once it is certain that nobody does. How old is too old for what is read is the plan's business
 * (qa_maps_age); nothing known is NULL.
 *
 * Bounded: of the tenants asked for longest ago nothing is known any more. One thread owns it. */
#ifndef QUERYAPI_FRESH_ATLAS_H
#define QUERYAPI_FRESH_ATLAS_H

#include "queryapi/fresh/asker.h"

#define QA_ATLAS_TENANTS_MAX 1024

struct qa_atlas;

struct qa_atlas_options {
    int64_t fresh_ms;    /* no new answer is asked for so long after one; 0: 1 s */
    int64_t patience_ms; /* a question waits so long where older maps will do; 0: 1 s */
    int64_t age_ms_max;  /* and so old may those be */
    void (*ask)(void *ctx,
                struct qa_question *question); /* takes it; it comes back through its `done` */
    void (*hand_back)(void *ctx, struct qa_question *question);
    void *ctx;
};

struct qa_atlas *qa_atlas_new(const struct qa_atlas_options *options);
/* Questions that wait are freed. No answer is under way any more. Accepts NULL, returns NULL. */
struct qa_atlas *qa_atlas_free(struct qa_atlas *atlas);

void qa_atlas_begin(struct qa_atlas *atlas, const struct qa_question *question, int64_t now_ms);
/* Takes @question. */
void qa_atlas_end(struct qa_atlas *atlas, struct qa_question *question, int64_t now_ms);
/* Hand back those that have waited long enough. Returns when that is to be done next; INT64_MAX: nobody waits. */
int64_t qa_atlas_beat(struct qa_atlas *atlas, int64_t now_ms);

#endif
