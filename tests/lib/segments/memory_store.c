/* memory_store.c - objects in a sorted array behind the interface of a store. */
#include "tests/lib/segments/memory_store.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/thread.h"
#include "segments/store/store_int.h"

#define PAGE_KEYS 1000

struct object {
    char *name;
    char *content;
    size_t size;
    unsigned version;
    int64_t mtime_ms;
};

struct memory_store {
    struct sg_store base;
    struct qf_lock *lock;
    QF_VEC(struct object) objects;
    bool sorted;
    unsigned versions;
    qf_rc fail, fail_put, fail_removal;
    unsigned puts_left; /* until they fail with fail_put */
    unsigned slow_us;
    int64_t now_ms;
    bool plain; /* no conditional puts */
    void (*hook)(void *ctx, struct qf_str name);
    void *hook_ctx;
    unsigned reads_left; /* until after_reads() is called; 0: never */
    void (*after_reads)(void *ctx);
    void *reads_ctx;
    struct memory_counts counts;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct object *)a)->name, ((const struct object *)b)->name);
}

static void sort(struct memory_store *memory)
{
    if (!memory->sorted && memory->objects.count)
        qsort(memory->objects.items, memory->objects.count, sizeof(struct object), by_name);
    memory->sorted = true;
}

/* The first object whose name is not less than @name. */
static size_t lower_bound(const struct memory_store *memory, struct qf_str name)
{
    size_t low = 0, high = memory->objects.count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (qf_str_cmp(qf_str_from(memory->objects.items[middle].name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static qf_rc list(struct sg_store *base, struct qf_str prefix, struct qf_str start_after,
                  const struct sg_store_limit *limit, sg_store_list_fn *fn, void *ctx,
                  struct qf_err *err)
{
    struct memory_store *memory = (struct memory_store *)base;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf last = QF_STRBUF_INIT;

    bool inclusive = qf_str_cmp(start_after, prefix) < 0;
    unsigned on_page = 0;

    (void)limit;
    if (memory->slow_us)
        (void)usleep(memory->slow_us);
    qf_strbuf_str(&last, inclusive ? prefix : start_after);
    qf_lock_take(memory->lock);
    memory->counts.lists++;
    for (;;) {
        struct sg_store_object object;
        QF_CLEANUP(qf_freep) char *name = NULL;
        char etag[16];
        size_t at;
        bool more;

        if (memory->fail) {
            qf_lock_drop(memory->lock);
            return qf_err_set(err, memory->fail, "the memory store was told to fail");
        }
        sort(memory);
        at = lower_bound(memory, qf_strbuf_view(&last));
        if (!inclusive && at < memory->objects.count &&
            qf_str_eq(qf_str_from(memory->objects.items[at].name), qf_strbuf_view(&last)))
            at++;
        inclusive = false;
        if (at == memory->objects.count ||
            !qf_str_starts(qf_str_from(memory->objects.items[at].name), prefix))
            break;
        name = qf_xstrdup(memory->objects.items[at].name);
        (void)snprintf(etag, sizeof(etag), "v%u", memory->objects.items[at].version);
        object = (struct sg_store_object){ .name = qf_str_from(name),
                                           .size = memory->objects.items[at].size,
                                           .mtime_ms = memory->objects.items[at].mtime_ms,
                                           .etag = qf_str_from(etag) };
        memory->counts.objects_listed++;
        qf_lock_drop(memory->lock);
        if (memory->hook)
            memory->hook(memory->hook_ctx, object.name);
        if (memory->slow_us && ++on_page == PAGE_KEYS) {
            (void)usleep(memory->slow_us);
            on_page = 0;
        }
        more = fn(ctx, &object);
        qf_lock_take(memory->lock);
        qf_strbuf_reset(&last);
        qf_strbuf_str(&last, object.name);
        if (!more)
            break;
    }
    qf_lock_drop(memory->lock);
    return QF_OK;
}

static qf_rc folders(struct sg_store *base, struct qf_str prefix,
                     const struct sg_store_limit *limit, sg_store_folder_fn *fn, void *ctx,
                     struct qf_err *err)
{
    struct memory_store *memory = (struct memory_store *)base;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf last = QF_STRBUF_INIT;

    (void)limit;
    qf_lock_take(memory->lock);
    memory->counts.folders++;
    sort(memory);
    for (size_t i = 0; i < memory->objects.count && !memory->fail; i++) {
        struct qf_str name = qf_str_from(memory->objects.items[i].name);
        const char *slash;
        struct sg_store_folder folder;

        if (!qf_str_starts(name, prefix))
            continue;
        slash = memchr(name.data + prefix.len, '/', name.len - prefix.len);
        if (!slash)
            continue;
        folder = (struct sg_store_folder){ .name = qf_str_sub(name, 0,
                                                              (size_t)(slash - name.data) + 1) };
        if (last.len && qf_str_eq(folder.name, qf_strbuf_view(&last)))
            continue;
        qf_strbuf_reset(&last);
        qf_strbuf_str(&last, folder.name);
        if (!fn(ctx, &folder))
            break;
    }
    qf_lock_drop(memory->lock);
    return memory->fail ? qf_err_set(err, memory->fail, "the memory store was told to fail")
                        : QF_OK;
}

static qf_rc read_tail(struct sg_store *base, struct qf_str name, void *buf, size_t len,
                       const struct sg_store_limit *limit, size_t *ret_len, uint64_t *ret_size,
                       struct qf_err *err)
{
    struct memory_store *memory = (struct memory_store *)base;
    qf_rc rc = QF_ENOTFOUND;
    size_t at;

    (void)limit;
    qf_lock_take(memory->lock);
    memory->counts.tails++;
    sort(memory);
    at = lower_bound(memory, name);
    if (at < memory->objects.count &&
        qf_str_eq(qf_str_from(memory->objects.items[at].name), name)) {
        const struct object *object = &memory->objects.items[at];

        len = len < object->size ? len : object->size;
        if (len)
            memcpy(buf, object->content + object->size - len, len);
        *ret_len = len;
        *ret_size = object->size;
        rc = QF_OK;
    }
    qf_lock_drop(memory->lock);
    return rc ? qf_err_set(err, rc, "%.*s is gone", QF_STR_ARG(name)) : QF_OK;
}

/* The object @name, or NULL; with the lock taken. */
static const struct object *find(struct memory_store *memory, struct qf_str name)
{
    size_t at;

    sort(memory);
    at = lower_bound(memory, name);
    return at < memory->objects.count &&
                   qf_str_eq(qf_str_from(memory->objects.items[at].name), name)
               ? &memory->objects.items[at]
               : NULL;
}

static qf_rc stat_object(struct sg_store *base, struct qf_str name,
                         const struct sg_store_limit *limit, struct sg_store_info *ret_info,
                         struct qf_err *err)
{
    struct memory_store *memory = (struct memory_store *)base;
    const struct object *object;

    (void)limit;
    qf_lock_take(memory->lock);
    object = find(memory, name);
    if (object)
        *ret_info = (struct sg_store_info){ .size = object->size, .mtime_ms = object->mtime_ms };
    qf_lock_drop(memory->lock);
    return object ? QF_OK : qf_err_set(err, QF_ENOTFOUND, "%.*s is gone", QF_STR_ARG(name));
}

static qf_rc read_whole(struct sg_store *base, struct qf_str name, const struct sg_store_sink *sink,
                        const struct sg_store_limit *limit, uint64_t *ret_size, struct qf_err *err)
{
    struct memory_store *memory = (struct memory_store *)base;
    const struct object *object;

    (void)limit;
    qf_lock_take(memory->lock);
    object = find(memory, name);
    if (object && object->size <= sink->capacity) {
        memcpy(sink->buf, object->content, object->size);
        *ret_size = object->size;
    }
    qf_lock_drop(memory->lock);
    if (memory->reads_left && --memory->reads_left == 0)
        memory->after_reads(memory->reads_ctx);
    return object ? QF_OK : qf_err_set(err, QF_ENOTFOUND, "%.*s is gone", QF_STR_ARG(name));
}

static qf_rc put_object(struct sg_store *base, struct qf_str name,
                        const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                        struct qf_err *err)
{
    struct memory_store *memory = (struct memory_store *)base;
    QF_CLEANUP(qf_freep) char *copy = qf_xmemdup0(name.data, name.len);
    QF_CLEANUP(qf_freep) char *read = NULL;

    (void)limit;
    if (memory->fail_put && memory->puts_left-- == 0) {
        memory->puts_left = 0;
        return qf_err_set(err, memory->fail_put, "the memory store was told to fail");
    }
    if (!bytes->data) {
        read = qf_xmalloc((size_t)bytes->size);
        if (pread(bytes->fd, read, (size_t)bytes->size, 0) != (ssize_t)bytes->size)
            return qf_err_set(err, QF_EIO, "cannot read %.*s", QF_STR_ARG(name));
    }
    memory_store_put(memory, copy,
                     (struct qf_str){ read ? read : bytes->data, (size_t)bytes->size });
    return QF_OK;
}

static qf_rc put_new(struct sg_store *base, struct qf_str name, const struct sg_store_bytes *bytes,
                     const struct sg_store_limit *limit, struct qf_err *err)
{
    struct memory_store *memory = (struct memory_store *)base;
    bool there;

    qf_lock_take(memory->lock);
    there = find(memory, name) != NULL;
    qf_lock_drop(memory->lock);
    if (memory->plain)
        return qf_err_set(err, QF_EUNSUPPORTED, "the memory store has no conditions");
    if (there)
        return qf_err_set(err, QF_EEXIST, "%.*s is there", QF_STR_ARG(name));
    return put_object(base, name, bytes, limit, err);
}

static qf_rc tell_time(struct sg_store *base, const struct sg_store_limit *limit, int64_t *ret_ms,
                       struct qf_err *err)
{
    (void)limit;
    (void)err;
    *ret_ms = ((struct memory_store *)base)->now_ms;
    return QF_OK;
}

static qf_rc remove_object(struct sg_store *base, struct qf_str name,
                           const struct sg_store_limit *limit, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *copy = qf_xmemdup0(name.data, name.len);

    struct memory_store *memory = (struct memory_store *)base;

    (void)limit;
    if (memory->fail_removal)
        return qf_err_set(err, memory->fail_removal, "the memory store was told to fail");
    qf_lock_take(memory->lock);
    sort(memory); /* of what was put since, too */
    qf_lock_drop(memory->lock);
    (void)memory_store_remove(memory, copy);
    return QF_OK;
}

static void close_store(struct sg_store *base)
{
    struct memory_store *memory = (struct memory_store *)base;

    for (size_t i = 0; i < memory->objects.count; i++) {
        free(memory->objects.items[i].name);
        free(memory->objects.items[i].content);
    }
    QF_VEC_DONE(&memory->objects);
    (void)qf_lock_free(memory->lock);
    free(memory);
}

static const struct sg_store_ops ops = {
    .list = list,
    .folders = folders,
    .stat = stat_object,
    .read_tail = read_tail,
    .read_whole = read_whole,
    .put = put_object,
    .put_new = put_new,
    .clock = tell_time,
    .remove = remove_object,
    .close = close_store,
};

struct memory_store *memory_store_new(void)
{
    struct memory_store *memory = qf_xcalloc(1, sizeof(*memory));

    memory->base.ops = &ops;
    memory->lock = qf_lock_new();
    memory->now_ms = 1;
    return memory;
}

void memory_store_clock(struct memory_store *memory, int64_t now_ms)
{
    memory->now_ms = now_ms;
}

void memory_store_plain(struct memory_store *memory)
{
    memory->plain = true;
}

struct sg_store *memory_store_base(struct memory_store *memory)
{
    return &memory->base;
}

void memory_store_put(struct memory_store *memory, const char *name, struct qf_str content)
{
    struct object object = { .name = qf_xstrdup(name),
                             .content = qf_xmemdup0(content.data ? content.data : "", content.len),
                             .size = content.len };

    (void)memory_store_remove(memory, name);
    qf_lock_take(memory->lock);
    object.version = ++memory->versions;
    object.mtime_ms = memory->now_ms;
    memory->sorted = memory->sorted && memory->objects.count &&
                     strcmp(memory->objects.items[memory->objects.count - 1].name, name) < 0;
    QF_VEC_PUSH(&memory->objects, object);
    qf_lock_drop(memory->lock);
}

bool memory_store_remove(struct memory_store *memory, const char *name)
{
    bool found = false;

    qf_lock_take(memory->lock);
    /* Unsorted only while a test fills the store with new names. */
    if (memory->sorted) {
        size_t at = lower_bound(memory, qf_str_from(name));

        found = at < memory->objects.count && strcmp(memory->objects.items[at].name, name) == 0;
        if (found) {
            free(memory->objects.items[at].name);
            free(memory->objects.items[at].content);
            memmove(&memory->objects.items[at], &memory->objects.items[at + 1],
                    (--memory->objects.count - at) * sizeof(struct object));
        }
    }
    qf_lock_drop(memory->lock);
    return found;
}

void memory_store_fail(struct memory_store *memory, qf_rc rc)
{
    qf_lock_take(memory->lock);
    memory->fail = rc;
    qf_lock_drop(memory->lock);
}

void memory_store_fail_puts(struct memory_store *memory, unsigned puts, qf_rc rc)
{
    memory->puts_left = puts;
    memory->fail_put = rc;
}

void memory_store_fail_removals(struct memory_store *memory, qf_rc rc)
{
    memory->fail_removal = rc;
}

void memory_store_hook(struct memory_store *memory, void (*fn)(void *ctx, struct qf_str name),
                       void *ctx)
{
    memory->hook = fn;
    memory->hook_ctx = ctx;
}

void memory_store_after_reads(struct memory_store *memory, unsigned reads, void (*fn)(void *ctx),
                              void *ctx)
{
    memory->reads_left = reads;
    memory->after_reads = fn;
    memory->reads_ctx = ctx;
}

void memory_store_slow(struct memory_store *memory, unsigned us)
{
    memory->slow_us = us;
}

struct memory_counts memory_store_counts(const struct memory_store *memory)
{
    return memory->counts;
}
