/* lying_artifacts.c - takes the place of what writes artifacts, in a worker that lies.
 *
 * Linked with --wrap: the worker announces and serves what comes out of here, with the right size and
 * checksum. PROMFABRIC_LIE says what: a number is a bomb of bombs.h, "edits" changes some bytes and seals
 * them again, another change with each artifact; without it the artifact is as it should be. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/prng.h"
#include "segments/parquet/artifact.h"
#include "tests/fuzz/segments/sealed.h"
#include "tests/integration/hostile/bombs.h"

#define EDITS_MAX 4

qf_rc __real_sg_artifact_write_memory(const struct pq_leaf_result *result, struct qf_strbuf *buf,
                                      struct sg_artifact_info *ret_info, struct qf_err *err);
qf_rc __wrap_sg_artifact_write_memory(const struct pq_leaf_result *result, struct qf_strbuf *buf,
                                      struct sg_artifact_info *ret_info, struct qf_err *err);

static void edit(struct qf_strbuf *buf)
{
    static atomic_uint number;
    struct qf_prng prng = { atomic_fetch_add(&number, 1) };
    struct qf_strbuf out = QF_STRBUF_INIT;
    struct sealed sealed = { 0 };
    uint8_t edits[3 * EDITS_MAX];
    size_t count = 1 + qf_prng_below(&prng, EDITS_MAX);

    sealed_learn(&sealed, qf_strbuf_view(buf));
    for (size_t i = 0; i < 3 * count; i++)
        edits[i] = (uint8_t)qf_prng_below(&prng, 256);
    sealed_edit(&sealed, edits, 3 * count, &out);
    qf_strbuf_done(&sealed.file);
    QF_VEC_DONE(&sealed.chunks);
    qf_strbuf_done(buf);
    *buf = out;
}

/* Made once, as it takes seconds; by the only slot that the test gives this worker. */
static struct qf_str bomb_bytes(enum bomb bomb)
{
    static struct qf_strbuf made;

    if (!made.len)
        bomb_artifact(bomb, &made);
    return qf_strbuf_view(&made);
}

qf_rc __wrap_sg_artifact_write_memory(const struct pq_leaf_result *result, struct qf_strbuf *buf,
                                      struct sg_artifact_info *ret_info, struct qf_err *err)
{
    const char *lie = getenv("PROMFABRIC_LIE");
    qf_rc rc = __real_sg_artifact_write_memory(result, buf, ret_info, err);

    if (rc != QF_OK || !lie)
        return rc;
    if (strcmp(lie, "edits") == 0) {
        edit(buf);
    } else {
        qf_strbuf_reset(buf);
        qf_strbuf_str(buf, bomb_bytes((enum bomb)(lie[0] - '0')));
    }
    ret_info->size_bytes = buf->len;
    sg_artifact_checksum(qf_strbuf_view(buf), ret_info->checksum);
    return QF_OK;
}
