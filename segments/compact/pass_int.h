/* pass_int.h - a pass between its files: look.c finds out what there is, pass.c acts on it. */
#ifndef SEGMENTS_COMPACT_PASS_INT_H
#define SEGMENTS_COMPACT_PASS_INT_H

#include "base/pure/arena.h"
#include "base/pure/vec.h"
#include "segments/compact/pass.h"
#include "segments/parquet/segment.h"

/* A file as the last listing has it, and what was learnt of it. Names and texts are in pass.names. */
struct pass_file {
    struct qf_str name, etag;
    struct sg_segment_name parts;
    uint64_t size;
    int64_t mtime_ms;
    size_t replaced_by; /* index, or SG_PLAN_NONE */
    bool damaged, verified;
    bool known; /* what it says of itself was read: */
    bool outdated;
    struct qf_str replaces, beside;
};

struct pass {
    const struct sg_pass_options *options;
    const struct sg_agree *agree; /* that of the options, or on our own nodes: */
    struct sg_agree *own_agree;
    struct qf_str tenant;
    struct sg_store_call call;
    int64_t now_ms; /* by the store's clock */
    uint64_t below;
    QF_VEC(struct pass_file) files;  /* by name */
    QF_VEC(struct pass_file) learnt; /* the files of the listing before, by name */
    struct qf_arena *arena;          /* of a round */
    struct qf_arena *names;          /* of the pass */
    struct sg_pass_result result;
};

void sg_pass_tell(const struct pass *p, enum sg_pass_event event, const char *format, ...)
    QF_PRINTF(3, 4);
/* The file cannot be read: it is left alone from now on. */
void sg_pass_damaged(struct pass *p, size_t file, const char *why);
/* List the files, and find out which replace which. QF_ETIMEOUT if that took so long that inputs may have gone meanwhile. */
QF_MUST_CHECK qf_rc sg_pass_look(struct pass *p, struct qf_err *err);
/* Read the file and those beside it whole, and say so in file->verified; a damaged one is told of. Errors of the store. */
QF_MUST_CHECK qf_rc sg_pass_verify(struct pass *p, struct pass_file *file, struct qf_err *err);
/* Merge files of exemplars and metadata (segments/annex/files.h). */
QF_MUST_CHECK qf_rc sg_pass_annexes(struct pass *p, struct qf_err *err);

#endif
