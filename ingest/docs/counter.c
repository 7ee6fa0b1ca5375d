/* counter.c - numbers that are never given twice. */
#include "ingest/docs/counter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/pure/alloc.h"
#include "base/pure/hex.h"
#include "base/pure/number.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "segments/store/store.h"

#define NAME QF_STR("clock")
#define FILE_BYTES_MAX 64

struct in_counter {
    struct sg_store *store;
    uint64_t incarnation;
    struct qf_lock
        *lock; /* of what follows, also while it is synced: others wait for that anyway */
    uint64_t last, limit;
};

static qf_rc save(struct in_counter *counter, uint64_t limit, struct qf_err *err)
{
    char text[FILE_BYTES_MAX];
    int len =
        snprintf(text, sizeof(text), "%016" PRIx64 " %" PRIu64 "\n", counter->incarnation, limit);

    return sg_store_put(counter->store, NAME, text, (size_t)len, NULL, err);
}

static qf_rc begin(struct in_counter *counter, struct qf_err *err)
{
    while (!counter->incarnation)
        if (getrandom(&counter->incarnation, sizeof(counter->incarnation), 0) !=
            (ssize_t)sizeof(counter->incarnation))
            return qf_err_set(err, QF_EIO, "no random numbers");
    QF_LOG_DEBUG("this node begins to number writes of documents");
    return save(counter, 0, err);
}

static qf_rc go_on(struct in_counter *counter, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *data = NULL;
    struct qf_str line, word;
    size_t len = 0;
    qf_rc rc = sg_store_read_all(counter->store, NAME, FILE_BYTES_MAX, NULL, &data, &len, err);

    if (rc == QF_ENOTFOUND) {
        *err = (struct qf_err){ 0 };
        return begin(counter, err);
    }
    if (rc)
        return rc;
    line = qf_str_trim((struct qf_str){ data, len });
    word = qf_str_word(&line);
    if (!qf_hex_u64(word, &counter->incarnation) || !counter->incarnation ||
        !qf_parse_u64(qf_str_trim(line), &counter->limit))
        return qf_err_set(err, QF_ECORRUPT,
                          "%s/clock is damaged: remove it, and this node numbers its writes under "
                          "another name",
                          sg_store_url(counter->store));
    counter->last = counter->limit;
    return QF_OK;
}

qf_rc in_counter_open(const char *dir, struct in_counter **ret_counter, struct qf_err *err)
{
    struct in_counter *counter = qf_xcalloc(1, sizeof(*counter));
    qf_rc rc;

    counter->lock = qf_lock_new();
    rc = sg_store_open(&(struct sg_store_options){ .url = dir, .create = true }, &counter->store,
                       err);
    if (rc == QF_OK)
        rc = go_on(counter, err);
    if (rc == QF_OK)
        *ret_counter = counter;
    else
        (void)in_counter_free(counter);
    return rc;
}

struct in_counter *in_counter_free(struct in_counter *counter)
{
    if (counter) {
        (void)sg_store_free(counter->store);
        (void)qf_lock_free(counter->lock);
        free(counter);
    }
    return NULL;
}

uint64_t in_counter_incarnation(const struct in_counter *counter)
{
    return counter->incarnation;
}

uint64_t in_counter_last(struct in_counter *counter)
{
    uint64_t last;

    qf_lock_take(counter->lock);
    last = counter->last;
    qf_lock_drop(counter->lock);
    return last;
}

qf_rc in_counter_next(struct in_counter *counter, uint64_t *ret_number, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    qf_lock_take(counter->lock);
    if (counter->last == counter->limit) {
        rc = save(counter, counter->limit + IN_COUNTER_BLOCK, err);
        if (rc == QF_OK)
            counter->limit += IN_COUNTER_BLOCK;
    }
    if (rc == QF_OK)
        *ret_number = ++counter->last;
    qf_lock_drop(counter->lock);
    return rc;
}
