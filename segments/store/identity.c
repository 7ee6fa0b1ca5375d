/* identity.c - the name that a store carries. */
#include "segments/store/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "segments/store/store_int.h"

static bool is_id(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!memchr("0123456789abcdef", data[i], 16))
            return false;
    return len == SG_STORE_ID_LEN;
}

static qf_rc read_id(struct sg_store *store, const struct sg_store_call *call, char *ret_id,
                     struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *data = NULL;
    size_t len = 0;
    qf_rc rc =
        sg_store_read_all(store, QF_STR(SG_STORE_ID_NAME), SG_STORE_ID_LEN, call, &data, &len, err);

    if (rc == QF_ELIMIT || (rc == QF_OK && !is_id(data, len)))
        return qf_err_set(err, QF_ECORRUPT, SG_STORE_ID_NAME " is not the name of a store");
    if (rc == QF_OK)
        (void)snprintf(ret_id, SG_STORE_ID_LEN + 1, "%.*s", SG_STORE_ID_LEN, data);
    return rc;
}

static void make_id(char *id)
{
    uint64_t parts[2] = { (uint64_t)qf_clock_wall_ms(), (uint64_t)qf_clock_mono_ns() };

    (void)!getrandom(parts, sizeof(parts), GRND_NONBLOCK);
    (void)snprintf(id, SG_STORE_ID_LEN + 1, "%016" PRIx64 "%016" PRIx64, parts[0], parts[1]);
}

qf_rc sg_store_identity(struct sg_store *store, bool create, const struct sg_store_call *call,
                        char ret_id[SG_STORE_ID_LEN + 1], bool *ret_created, struct qf_err *err)
{
    char id[SG_STORE_ID_LEN + 1];
    struct qf_err missing = { 0 };
    qf_rc rc = sg_store_own_identity(store, call, ret_id, SG_STORE_ID_LEN + 1, err);

    *ret_created = false;
    if (rc != QF_EUNSUPPORTED)
        return rc;
    rc = read_id(store, call, ret_id, create ? &missing : err);
    if (rc != QF_ENOTFOUND || !create) {
        if (rc != QF_OK && create)
            (void)qf_err_set(err, rc, "%s", missing.msg);
        return rc;
    }
    make_id(id);
    rc = sg_store_put_new(store, QF_STR(SG_STORE_ID_NAME), id, SG_STORE_ID_LEN, call, &missing);
    if (rc != QF_OK && rc != QF_EEXIST)
        return qf_err_set(err, rc, "%s", missing.msg);
    *ret_created = rc == QF_OK;
    /* What is there counts: somebody may have been faster, and not every server knows "only if new". */
    return read_id(store, call, ret_id, err);
}
