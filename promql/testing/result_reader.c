/* result_reader.c - a leaf result in memory, read as if it came from a worker. */
#include "promql/testing/engine.h"

struct memory_reader {
    struct pq_leaf_reader reader;
    const struct pq_leaf_result *result;
    bool done;
};

static qf_rc memory_next(struct pq_leaf_reader *reader, struct pq_rows *ret_rows,
                         struct qf_err *err)
{
    struct memory_reader *self = (struct memory_reader *)reader;

    (void)err;
    *ret_rows = (struct pq_rows){ 0 };
    if (!self->done)
        *ret_rows = self->result->rows;
    self->done = true;
    return QF_OK;
}

static void memory_close(struct pq_leaf_reader *reader)
{
    (void)reader;
}

struct pq_leaf_reader *pq_leaf_result_reader(struct qf_arena *arena,
                                             const struct pq_leaf_result *result)
{
    struct memory_reader *self = QF_ARENA_NEW(arena, struct memory_reader);

    if (!self)
        return NULL;
    self->reader = (struct pq_leaf_reader){ .kind = result->kind,
                                            .series = result->series,
                                            .series_count = result->series_count,
                                            .notes = result->notes,
                                            .samples_read = result->samples_read,
                                            .points = result->points,
                                            .next = memory_next,
                                            .close = memory_close };
    self->result = result;
    return &self->reader;
}
