/* trade.c - the outputs of a job for its inputs, on our own nodes. */
#include "segments/compact/trade.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "segments/parquet/segment_reader.h"
#include "segments/store/ring.h"

/* How often outputs are put again because owners changed. */
#define ROUNDS 5

struct placed {
    bool is_input;
    uint64_t epoch; /* in which its owners were counted */
    int64_t ms;     /* monotonic, before it was put */
};

struct trading {
    const struct sg_trade *trade;
    uint32_t partition;
    struct placed *placed;        /* by output, as are: */
    struct rg_blob *blobs;        /* what the entry adds */
    QF_VEC(struct qf_str) leaves; /* names that it takes away */
};

/* --- inputs --- */

static bool is_output(const struct sg_trade *trade, struct qf_str name)
{
    for (size_t i = 0; i < trade->output_count; i++)
        if (qf_str_is(name, trade->outputs[i].name))
            return true;
    return false;
}

static bool is_input(const struct sg_trade *trade, const char *name)
{
    for (size_t i = 0; i < trade->input_count; i++)
        if (qf_str_is(trade->inputs[i], name))
            return true;
    return false;
}

/* In which partition all of them are named now. */
static qf_rc find_inputs(struct trading *t, struct qf_err *err)
{
    const struct sg_trade *trade = t->trade;
    qf_rc rc = sg_ring_refresh(trade->store, trade->call, err);

    for (size_t i = 0; i < trade->input_count && !rc; i++) {
        uint32_t partition;

        if (!sg_ring_partition(trade->store, trade->inputs[i], &partition))
            rc = qf_err_set(err, QF_ENOTFOUND, "%.*s is not listed any more",
                            QF_STR_ARG(trade->inputs[i]));
        else if (i && partition != t->partition)
            rc = qf_err_set(err, QF_EINVAL, "%.*s is in another partition than %.*s",
                            QF_STR_ARG(trade->inputs[i]), QF_STR_ARG(trade->inputs[0]));
        else
            t->partition = partition;
    }
    return rc;
}

static void choose(struct trading *t)
{
    const struct sg_trade *trade = t->trade;

    t->placed = qf_xcalloc(trade->output_count + 1, sizeof(*t->placed));
    t->blobs = qf_xcalloc(trade->output_count + 1, sizeof(*t->blobs));
    for (size_t i = 0; i < trade->output_count; i++) {
        t->blobs[i].name = qf_str_from(trade->outputs[i].name);
        t->placed[i].is_input = is_input(trade, trade->outputs[i].name);
    }
    for (size_t i = 0; i < trade->input_count; i++)
        if (!is_output(trade, trade->inputs[i]))
            QF_VEC_PUSH(&t->leaves, trade->inputs[i]);
}

/* --- outputs --- */

/* Its inputs go with the entry: it must be one that can be read. */
static qf_rc read_back(const struct sg_trade_output *output, struct qf_err *err)
{
    struct sg_reader *reader = sg_reader_open(output->path, err);
    qf_rc rc = reader ? sg_reader_verify(reader, err) : err->rc;

    (void)sg_reader_free(reader);
    return rc;
}

static qf_rc place_file(struct trading *t, size_t i, struct qf_err *err)
{
    const struct sg_trade *trade = t->trade;
    int fd = open(trade->outputs[i].path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    qf_rc rc;

    t->placed[i].ms = qf_clock_mono_ms();
    if (fd < 0 || fstat(fd, &status) != 0) {
        rc = qf_err_set(err, QF_EIO, "%s: %s", trade->outputs[i].path, strerror(errno));
    } else {
        t->blobs[i].bytes = (uint64_t)status.st_size;
        rc = sg_ring_place(trade->store, t->blobs[i].name, fd, t->blobs[i].bytes, trade->call,
                           &t->blobs[i].slot, &t->placed[i].epoch, err);
    }
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

/* @all: owners changed; else what was not put yet, or too long ago. */
static qf_rc place(struct trading *t, bool all, struct qf_err *err)
{
    const struct sg_trade *trade = t->trade;
    qf_rc rc = all ? sg_ring_follow(trade->store, 0, trade->call, err) : QF_OK;

    for (size_t i = 0; i < trade->output_count && !rc; i++) {
        struct placed *placed = &t->placed[i];

        if (placed->is_input)
            rc = sg_ring_place_of(trade->store, t->blobs[i].name, trade->call, &t->blobs[i].slot,
                                  &placed->epoch, err);
        else if (all || !placed->ms || sg_ring_placed_too_early(placed->ms))
            rc = place_file(t, i, err);
    }
    return rc;
}

/* --- the entry --- */

static qf_rc commit(const struct trading *t, struct qf_err *err)
{
    const struct sg_trade *trade = t->trade;
    struct sg_ring_change change = { .partition = &t->partition,
                                     .added = t->blobs,
                                     .added_count = trade->output_count,
                                     .epoch = UINT64_MAX,
                                     .removed = t->leaves.items,
                                     .removed_count = t->leaves.count };

    for (size_t i = 0; i < trade->output_count; i++)
        change.epoch = QF_MIN(change.epoch, t->placed[i].epoch);
    return sg_ring_change(trade->store, &change, trade->call, err);
}

/* It counted for nothing. QF_OK: it had counted before, by an answer that was lost or by somebody else. QF_EGONE: owners
 * changed. */
static qf_rc find_out(struct trading *t, struct qf_err *err)
{
    const struct sg_trade *trade = t->trade;
    struct qf_err said = *err;
    bool traded = true, there = true;
    qf_rc rc;

    *err = (struct qf_err){ 0 };
    rc = sg_ring_refresh(trade->store, trade->call, err);

    for (size_t i = 0; i < trade->output_count; i++)
        traded = traded && sg_ring_lists(trade->store, t->blobs[i].name);
    for (size_t i = 0; i < t->leaves.count; i++) {
        bool lists = sg_ring_lists(trade->store, t->leaves.items[i]);

        traded = traded && !lists;
        there = there && lists;
    }
    for (size_t i = 0; i < trade->output_count; i++)
        there = there && (!t->placed[i].is_input || sg_ring_lists(trade->store, t->blobs[i].name));
    if (rc || traded)
        return rc;
    if (!there)
        return qf_err_set(err, QF_ENOTFOUND, "an input of %.*s is not listed any more",
                          QF_STR_ARG(t->blobs[0].name));
    *err = said;
    return QF_EGONE;
}

static qf_rc run(struct trading *t, struct qf_err *err)
{
    struct qf_err why = { 0 };
    qf_rc rc = find_inputs(t, err);

    for (size_t i = 0; i < t->trade->output_count && !rc; i++)
        rc = read_back(&t->trade->outputs[i], err);
    if (rc)
        return rc;
    choose(t);
    rc = t->leaves.count ? QF_EGONE : QF_OK; /* else all of it is as it should be */
    for (int round = 0; round < ROUNDS && rc == QF_EGONE; round++) {
        why = (struct qf_err){ 0 };
        rc = place(t, round > 0, &why);
        if (rc == QF_OK)
            rc = commit(t, &why);
        if (rc == QF_EGONE)
            rc = find_out(t, &why);
    }
    if (rc == QF_EGONE)
        return qf_err_set(err, QF_EUNAVAILABLE, "owners of segments went on changing: %s", why.msg);
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

qf_rc sg_trade(const struct sg_trade *trade, struct sg_traded *ret_traded, struct qf_err *err)
{
    struct trading t = { .trade = trade };
    struct qf_err own = { 0 };
    qf_rc rc = run(&t, err ? err : &own);

    for (size_t i = 0; i < trade->output_count && !rc && t.placed; i++) {
        ret_traded->put += !t.placed[i].is_input;
        ret_traded->present += t.placed[i].is_input;
        ret_traded->bytes += t.placed[i].is_input ? 0 : t.blobs[i].bytes;
    }
    free(t.placed);
    free(t.blobs);
    QF_VEC_DONE(&t.leaves);
    return rc;
}
