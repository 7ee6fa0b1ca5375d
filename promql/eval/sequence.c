/* sequence.c - lists of series in the order of an instant query. */
#include "promql/eval/sequence.h"

qf_rc pq_sequence_begin(struct pq_sequence *sequence, const struct pq_exec *exec,
                        struct qf_err *err)
{
    size_t room = exec->batch.series_count;

    sequence->count = 0;
    if (!pq_grow(exec->eval->arena, &sequence->ids, &sequence->ids_capacity, room,
                 sizeof(*sequence->ids)) ||
        !pq_grow(exec->eval->arena, &sequence->listed, &sequence->listed_capacity, room, 1))
        return pq_eval_no_memory(err);
    if (room)
        memset(sequence->listed, 0, room);
    return QF_OK;
}

void pq_sequence_add(struct pq_sequence *sequence, const struct pq_exec *exec, uint32_t id)
{
    if (sequence->listed[id] || !(exec->batch.present[id] & 1))
        return;
    sequence->listed[id] = 1;
    sequence->ids[sequence->count++] = id;
}

void pq_sequence_end(const struct pq_sequence *sequence, struct pq_exec *exec)
{
    exec->batch.order = sequence->ids;
    exec->batch.order_count = sequence->count;
}

qf_rc pq_sequence_map(struct pq_sequence *sequence, struct pq_exec *exec,
                      const struct pq_exec *child, const uint32_t *out, const uint64_t *ignored,
                      struct qf_err *err)
{
    const struct pq_batch *in = &child->batch;
    qf_rc rc = pq_sequence_begin(sequence, exec, err);

    if (rc != QF_OK)
        return rc;
    for (size_t i = 0; i < pq_batch_length(in); i++) {
        uint32_t s = pq_batch_at(in, i);

        if ((in->present[s] | (ignored ? ignored[s] : 0)) & 1)
            pq_sequence_add(sequence, exec, out[s]);
    }
    pq_sequence_end(sequence, exec);
    return QF_OK;
}
