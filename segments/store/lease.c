/* lease.c - leases as objects of a store. */
#include "segments/store/lease.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/pure/alloc.h"
#include "base/pure/hex.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "segments/store/lease_log.h"
#include "segments/store/ring.h"

#define MAGIC "promfabric-lease 1"
#define CONTENT_MAX 4096
#define DROP_TIMEOUT_MS 5000

struct sg_lease {
    struct sg_store *store;
    char *folder; /* "_leases/NAME/" */
    char *object;
    char *content;
    uint64_t id;
    int64_t ttl_ms;
    int64_t renewed_mono_ms; /* just before the request that renewed it */
    uint64_t number;         /* of one that was taken; 0: it was added */
};

/* --- what is in the object --- */

struct content {
    uint64_t id;
    int64_t ttl_ms;
    struct qf_str text;
};

static struct qf_str next_line(struct qf_str *rest)
{
    const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->data) : rest->len;
    struct qf_str line = qf_str_sub(*rest, 0, len);

    *rest = qf_str_sub(*rest, end ? len + 1 : len, rest->len);
    return line;
}

/* False if it is no lease. The text borrows from @bytes. */
static bool parse(struct qf_str bytes, struct content *ret)
{
    struct qf_str magic = next_line(&bytes), id = next_line(&bytes), ttl = next_line(&bytes);
    uint64_t id_value, ttl_value;

    if (!qf_str_is(magic, MAGIC) || !qf_hex_u64(id, &id_value) || !qf_parse_u64(ttl, &ttl_value) ||
        ttl_value == 0 || ttl_value > (uint64_t)SG_LEASE_TTL_MAX_MS)
        return false;
    *ret = (struct content){ id_value, (int64_t)ttl_value, next_line(&bytes) };
    return true;
}

/* *ret_data is the caller's. QF_ENOTFOUND: it is gone; QF_EINVAL: there is something that is no lease.
 */
static qf_rc read_content(struct sg_store *store, const char *object,
                          const struct sg_store_call *call, char **ret_data, struct content *ret,
                          struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *data = NULL;
    struct qf_err why = { 0 };
    size_t len = 0;
    qf_rc rc = sg_store_read_all(store, qf_str_from(object), CONTENT_MAX, call, &data, &len, &why);

    if (rc == QF_ELIMIT || (rc == QF_OK && !parse((struct qf_str){ data, len }, ret)))
        return qf_err_set(err, QF_EINVAL, "%s is not a lease", object);
    if (rc)
        return qf_err_set(err, rc, "%s", why.msg);
    *ret_data = data;
    data = NULL;
    return QF_OK;
}

/* Stores tell times to the second, some file systems to two. A stamp from the future is of a clock
 * that was set back: as good as none. */
static bool is_expired(int64_t age_ms, int64_t ttl_ms)
{
    return age_ms >= ttl_ms + SG_LEASE_GRAIN_MS || age_ms <= -ttl_ms - SG_LEASE_GRAIN_MS;
}

/* --- holding --- */

static void lease_free(struct sg_lease *lease)
{
    free(lease->folder);
    free(lease->object);
    free(lease->content);
    free(lease);
}

static bool text_valid(const char *text)
{
    if (strlen(text) > SG_LEASE_TEXT_MAX)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text < 0x20)
            return false;
    return true;
}

static qf_rc lease_new(struct sg_store *store, const struct sg_lease_options *options,
                       struct sg_lease **ret_lease, struct qf_err *err)
{
    struct qf_strbuf folder = QF_STRBUF_INIT, content = QF_STRBUF_INIT;
    struct sg_lease *lease;

    qf_strbuf_printf(&folder, SG_LEASE_PREFIX "%s/", options->name);
    if (!sg_store_name_valid(qf_str_sub(qf_strbuf_view(&folder), 0, folder.len - 1)) ||
        !text_valid(options->text) || options->ttl_ms <= 0 ||
        options->ttl_ms > SG_LEASE_TTL_MAX_MS) {
        qf_strbuf_done(&folder);
        return qf_err_set(err, QF_EINVAL,
                          "a lease cannot be called \"%s\", say \"%s\" or last %" PRId64 " ms",
                          options->name, options->text, options->ttl_ms);
    }
    lease = qf_xcalloc(1, sizeof(*lease));
    lease->store = store;
    lease->id = (uint64_t)qf_clock_mono_ns();
    (void)!getrandom(&lease->id, sizeof(lease->id), GRND_NONBLOCK);
    lease->ttl_ms = options->ttl_ms;
    lease->folder = qf_strbuf_take(&folder);
    qf_strbuf_printf(&content, MAGIC "\n%016" PRIx64 "\n%" PRId64 "\n%s\n", lease->id,
                     lease->ttl_ms, options->text);
    lease->content = qf_strbuf_take(&content);
    *ret_lease = lease;
    return QF_OK;
}

static void name_object(struct sg_lease *lease)
{
    struct qf_strbuf name = QF_STRBUF_INIT;

    qf_strbuf_puts(&name, lease->folder);
    if (lease->number)
        qf_strbuf_printf(&name, "%020" PRIu64, lease->number);
    else
        qf_strbuf_printf(&name, "%016" PRIx64, lease->id);
    free(lease->object);
    lease->object = qf_strbuf_take(&name);
}

static qf_rc put(struct sg_lease *lease, bool only_new, const struct sg_store_call *call,
                 struct qf_err *err)
{
    struct qf_str name = qf_str_from(lease->object), content = qf_str_from(lease->content);
    int64_t before = qf_clock_mono_ms();
    struct qf_err why = { 0 };
    qf_rc rc = only_new
                   ? sg_store_put_new(lease->store, name, content.data, content.len, call, &why)
                   : QF_EUNSUPPORTED;

    if (rc == QF_EUNSUPPORTED)
        rc = sg_store_put(lease->store, name, content.data, content.len, call, &why);
    if (rc == QF_OK)
        lease->renewed_mono_ms = before;
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

qf_rc sg_lease_add(struct sg_store *store, const struct sg_lease_options *options,
                   const struct sg_store_call *call, struct sg_lease **ret_lease,
                   struct qf_err *err)
{
    struct sg_lease *lease;
    qf_rc rc = lease_new(store, options, &lease, err);

    if (rc)
        return rc;
    name_object(lease);
    rc = put(lease, false, call, err);
    if (rc)
        lease_free(lease);
    else
        *ret_lease = lease;
    return rc;
}

/* --- taking --- */

/* The leases of one name: the highest number, and the others, which are of the past. */
struct numbers {
    size_t folder_len;
    uint64_t highest;
    int64_t mtime_ms;
    QF_VEC(uint64_t) all;
};

static bool on_number(void *ctx, const struct sg_store_object *object)
{
    struct numbers *numbers = ctx;
    struct qf_str digits = qf_str_sub(object->name, numbers->folder_len, object->name.len);
    uint64_t number;

    if (digits.len != 20 || !qf_parse_u64(digits, &number) || number == 0)
        return true;
    QF_VEC_PUSH(&numbers->all, number);
    numbers->highest = number; /* names ascend, and so do numbers of twenty digits */
    numbers->mtime_ms = object->mtime_ms;
    return numbers->all.count < 1000;
}

static void numbers_done(struct numbers *numbers)
{
    QF_VEC_DONE(&numbers->all);
}

static qf_rc list_numbers(struct sg_lease *lease, const struct sg_store_call *call,
                          struct numbers *ret, struct qf_err *err)
{
    ret->folder_len = strlen(lease->folder);
    return sg_store_list(lease->store, qf_str_from(lease->folder), QF_STR(""), call, on_number, ret,
                         err);
}

/* QF_EBUSY if the lease of the highest number lives. */
static qf_rc check_holder(struct sg_lease *lease, const struct numbers *numbers,
                          const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *data = NULL;
    struct content content = { .ttl_ms = SG_LEASE_TTL_MAX_MS };
    struct qf_err why = { 0 };
    int64_t now, age;
    qf_rc rc;

    lease->number = numbers->highest;
    name_object(lease);
    rc = read_content(lease->store, lease->object, call, &data, &content, &why);
    if (rc == QF_ENOTFOUND)
        return QF_OK; /* given back just now */
    if (rc && rc != QF_EINVAL)
        return qf_err_set(err, rc, "%s", why.msg);
    rc = sg_store_clock(lease->store, call, &now, err);
    if (rc)
        return rc;
    age = now - numbers->mtime_ms;
    if (is_expired(age, content.ttl_ms))
        return QF_OK;
    return qf_err_set(err, QF_EBUSY, "%s: held by %.*s, renewed %" PRId64 " s ago", lease->object,
                      content.text.len ? (int)content.text.len : 7,
                      content.text.len ? content.text.data : "unknown", age / 1000);
}

/* Is what is there under our name ours? QF_EBUSY if it is not. */
static qf_rc check_ours(struct sg_lease *lease, const struct sg_store_call *call,
                        struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *data = NULL;
    struct content content;
    struct qf_err why = { 0 };
    qf_rc rc = read_content(lease->store, lease->object, call, &data, &content, &why);

    if (rc == QF_ENOTFOUND || rc == QF_EINVAL || (rc == QF_OK && content.id != lease->id))
        return qf_err_set(err, QF_EBUSY, "%s: somebody else took it at the same time",
                          lease->object);
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

static void remove_old(struct sg_lease *lease, const struct numbers *numbers,
                       const struct sg_store_call *call)
{
    for (size_t i = 0; i < numbers->all.count; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

        qf_strbuf_printf(&name, "%s%020" PRIu64, lease->folder, numbers->all.items[i]);
        (void)!sg_store_delete(lease->store, qf_strbuf_view(&name), call, NULL);
    }
}

static qf_rc try_take(struct sg_lease *lease, const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(numbers_done) struct numbers numbers = { 0 };
    struct qf_err why = { 0 };
    int64_t before = qf_clock_mono_ms();
    qf_rc rc = list_numbers(lease, call, &numbers, err);

    if (rc == QF_OK && numbers.highest)
        rc = check_holder(lease, &numbers, call, err);
    if (rc)
        return rc;
    lease->number = numbers.highest + 1;
    name_object(lease);
    rc = put(lease, true, call, &why);
    if (rc != QF_OK && rc != QF_EEXIST)
        return qf_err_set(err, rc, "%s", why.msg);
    if (rc == QF_EEXIST)
        lease->renewed_mono_ms = before;
    /* Where puts have no condition the last one counts; and a lost answer may have been ours. */
    rc = check_ours(lease, call, err);
    if (rc == QF_OK)
        remove_old(lease, &numbers, call);
    return rc;
}

qf_rc sg_lease_take(struct sg_store *store, const struct sg_lease_options *options,
                    const struct sg_store_call *call, struct sg_lease **ret_lease,
                    struct qf_err *err)
{
    struct sg_lease *lease;
    qf_rc rc = lease_new(store, options, &lease, err);

    if (rc)
        return rc;
    if (sg_store_is_ring(store)) {
        lease->renewed_mono_ms = qf_clock_mono_ms();
        rc = lease_log_take(store, lease->folder, lease->ttl_ms, call, &lease->object, err);
    } else {
        rc = try_take(lease, call, err);
    }
    if (rc)
        lease_free(lease);
    else
        *ret_lease = lease;
    return rc;
}

/* --- keeping --- */

int64_t sg_lease_left_ms(const struct sg_lease *lease)
{
    int64_t left = lease->renewed_mono_ms + lease->ttl_ms - qf_clock_mono_ms();

    return left > 0 ? left : 0;
}

bool sg_lease_due(const struct sg_lease *lease)
{
    return sg_lease_left_ms(lease) <= lease->ttl_ms - lease->ttl_ms / 3;
}

qf_rc sg_lease_renew(struct sg_lease *lease, const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(numbers_done) struct numbers numbers = { 0 };
    struct sg_store_call bounded = call ? *call : (struct sg_store_call){ 0 };
    struct qf_err why = { 0 };
    int64_t left = sg_lease_left_ms(lease);
    qf_rc rc;

    if (left == 0)
        return qf_err_set(err, QF_ETIMEOUT, "%s: was not renewed in time", lease->object);
    if (bounded.timeout_ms <= 0 || bounded.timeout_ms > left)
        bounded.timeout_ms = left;
    if (sg_store_is_ring(lease->store)) {
        int64_t before = qf_clock_mono_ms();

        rc = lease_log_renew(lease->store, lease->folder, lease->ttl_ms, &bounded, &lease->object,
                             err);
        lease->renewed_mono_ms = rc ? lease->renewed_mono_ms : before;
        return rc;
    }
    rc = check_ours(lease, &bounded, &why);
    if (rc == QF_OK && lease->number)
        rc = list_numbers(lease, &bounded, &numbers, &why);
    if (rc == QF_EBUSY || (rc == QF_OK && numbers.highest > lease->number))
        return qf_err_set(err, QF_ENOTFOUND, "%s: it was broken, or somebody took it over",
                          lease->object);
    if (rc == QF_OK)
        rc = put(lease, false, &bounded, &why);
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

struct sg_lease *sg_lease_drop(struct sg_lease *lease)
{
    struct sg_store_call call = { .timeout_ms = DROP_TIMEOUT_MS };

    if (!lease)
        return NULL;
    /* One that is over may be another's by now. */
    if (sg_store_is_ring(lease->store))
        lease_log_drop(lease->store, lease->folder, lease->object, &call);
    else if (sg_lease_left_ms(lease) > 0 && check_ours(lease, &call, NULL) == QF_OK)
        (void)!sg_store_delete(lease->store, qf_str_from(lease->object), &call, NULL);
    lease_free(lease);
    return NULL;
}

struct sg_lease *sg_lease_leave(struct sg_lease *lease)
{
    if (lease)
        lease_free(lease);
    return NULL;
}

/* --- those of others --- */

struct found {
    char *object;
    int64_t mtime_ms;
};

struct listing {
    QF_VEC(struct found) items;
};

#define LEASES_MAX 100000

static void listing_done(struct listing *listing)
{
    for (size_t i = 0; i < listing->items.count; i++)
        free(listing->items.items[i].object);
    QF_VEC_DONE(&listing->items);
}

static bool on_object(void *ctx, const struct sg_store_object *object)
{
    struct listing *listing = ctx;

    QF_VEC_PUSH(&listing->items, (struct found){ qf_xmemdup0(object->name.data, object->name.len),
                                                 object->mtime_ms });
    return listing->items.count < LEASES_MAX;
}

/* Fill @ret; false if there is nothing to tell. */
static bool describe(const struct found *found, int64_t now, qf_rc rc,
                     const struct content *content, struct sg_lease_info *ret)
{
    struct qf_str object = qf_str_from(found->object);
    const char *slash = memrchr(object.data, '/', object.len);
    size_t start = sizeof(SG_LEASE_PREFIX) - 1, end = (size_t)(slash - object.data);

    *ret =
        (struct sg_lease_info){ .object = object,
                                .name = end > start ? qf_str_sub(object, start, end) : QF_STR(""),
                                .text = rc ? QF_STR("") : content->text,
                                .ttl_ms = rc ? SG_LEASE_TTL_MAX_MS : content->ttl_ms,
                                .age_ms = now - found->mtime_ms };
    ret->expired = is_expired(ret->age_ms, ret->ttl_ms);
    return rc == QF_OK || (rc == QF_EINVAL && ret->expired);
}

qf_rc sg_lease_list(struct sg_store *store, const char *name, const struct sg_store_call *call,
                    sg_lease_list_fn *fn, void *ctx, struct qf_err *err)
{
    QF_CLEANUP(listing_done) struct listing listing = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf prefix = QF_STRBUF_INIT;
    bool more = true;
    int64_t now = 0;
    qf_rc rc;

    if (sg_store_is_ring(store)) /* there are none that others look at */
        return QF_OK;
    qf_strbuf_printf(&prefix, SG_LEASE_PREFIX "%s%s", name, *name ? "/" : "");
    rc = sg_store_list(store, qf_strbuf_view(&prefix), QF_STR(""), call, on_object, &listing, err);
    /* The clock after the listing: an age is rather too great by that than a lease too young. */
    if (rc == QF_OK && listing.items.count)
        rc = sg_store_clock(store, call, &now, err);
    for (size_t i = 0; rc == QF_OK && more && i < listing.items.count; i++) {
        QF_CLEANUP(qf_freep) char *data = NULL;
        struct content content;
        struct sg_lease_info info;
        struct qf_err why = { 0 };

        rc = read_content(store, listing.items.items[i].object, call, &data, &content, &why);
        if (rc == QF_OK || rc == QF_EINVAL) {
            if (describe(&listing.items.items[i], now, rc, &content, &info))
                more = fn(ctx, &info);
            rc = QF_OK;
        } else if (rc == QF_ENOTFOUND) {
            rc = QF_OK; /* given back meanwhile */
        } else {
            (void)qf_err_set(err, rc, "%s", why.msg);
        }
    }
    return rc;
}

qf_rc sg_lease_break(struct sg_store *store, struct qf_str object, const struct sg_store_call *call,
                     struct qf_err *err)
{
    if (!qf_str_starts(object, QF_STR(SG_LEASE_PREFIX)))
        return qf_err_set(err, QF_EINVAL, "%.*s is not a lease", QF_STR_ARG(object));
    return sg_store_delete(store, object, call, err);
}

struct sweep {
    struct sg_store *store;
    const struct sg_store_call *call;
    bool dry_run;
    size_t removed;
    struct qf_err why;
};

static bool sweep_one(void *ctx, const struct sg_lease_info *info)
{
    struct sweep *sweep = ctx;

    if (!is_expired(info->age_ms, SG_LEASE_TTL_MAX_MS))
        return true;
    if (!sweep->dry_run &&
        sg_lease_break(sweep->store, info->object, sweep->call, &sweep->why) != QF_OK)
        return false;
    sweep->removed++;
    return true;
}

qf_rc sg_lease_expire(struct sg_store *store, bool dry_run, const struct sg_store_call *call,
                      size_t *ret_removed, struct qf_err *err)
{
    struct sweep sweep = { .store = store, .call = call, .dry_run = dry_run };
    qf_rc rc = sg_lease_list(store, "", call, sweep_one, &sweep, err);

    *ret_removed = sweep.removed;
    if (rc == QF_OK && sweep.why.rc)
        rc = qf_err_set(err, sweep.why.rc, "%s", sweep.why.msg);
    return rc;
}
