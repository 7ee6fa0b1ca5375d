/* changes.c - a log of what writers touched, in the bucket itself. */
#include "segments/catalog/changes.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "segments/catalog/catalog_int.h"

/* A note of more folders than fit here is split by its writer. */
#define NOTE_BYTES_MAX ((size_t)1 << 20)
#define NOTE_FOLDERS_MAX 4096

static void print_time(struct qf_strbuf *buf, int64_t wall_ms)
{
    qf_strbuf_printf(buf, SG_CHANGES_PREFIX "%013lld", (long long)wall_ms);
}

/* --- writing --- */

#define FREE_STRINGS(vec)                                                                          \
    do {                                                                                           \
        for (size_t i_ = 0; i_ < (vec)->count; i_++)                                               \
            free((vec)->items[i_]);                                                                \
        QF_VEC_DONE(vec);                                                                          \
    } while (0)

void sg_changes_note_done(struct sg_changes_note *note)
{
    FREE_STRINGS(&note->folders);
}

void sg_changes_note_add(struct sg_changes_note *note, struct qf_str name)
{
    struct qf_str folder = sg_catalog_folder_of(name);

    /* Writers go folder by folder: looking at the last one finds nearly every repetition. */
    if (!folder.len ||
        (note->folders.count && qf_str_is(folder, note->folders.items[note->folders.count - 1])))
        return;
    QF_VEC_PUSH(&note->folders, qf_xmemdup0(folder.data, folder.len));
}

static qf_rc put_note(struct sg_store *store, struct qf_str content,
                      const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    uint64_t id = (uint64_t)qf_clock_mono_ns();

    (void)!getrandom(&id, sizeof(id), GRND_NONBLOCK);
    print_time(&name, qf_clock_wall_ms());
    qf_strbuf_printf(&name, "-%016llx", (unsigned long long)id);
    return sg_store_put(store, qf_strbuf_view(&name), content.data, content.len, call, err);
}

qf_rc sg_changes_note_put(struct sg_changes_note *note, struct sg_store *store,
                          const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf content = QF_STRBUF_INIT;
    qf_rc rc = QF_OK;

    for (size_t i = 0; !sg_store_has_tokens(store) && !rc && i < note->folders.count; i++) {
        qf_strbuf_puts(&content, note->folders.items[i]);
        qf_strbuf_putc(&content, '\n');
        if (i + 1 == note->folders.count || (i + 1) % NOTE_FOLDERS_MAX == 0) {
            rc = put_note(store, qf_strbuf_view(&content), call, err);
            qf_strbuf_reset(&content);
        }
    }
    sg_changes_note_done(note);
    return rc;
}

struct names {
    QF_VEC(char *) items;
    struct qf_str before; /* names from here on are left out; empty: none */
};

static void names_done(struct names *names)
{
    FREE_STRINGS(&names->items);
}

static bool on_name(void *ctx, const struct sg_store_object *object)
{
    struct names *names = ctx;

    if (names->before.len && qf_str_cmp(object->name, names->before) >= 0)
        return false;
    QF_VEC_PUSH(&names->items, qf_xmemdup0(object->name.data, object->name.len));
    return true;
}

qf_rc sg_changes_expire(struct sg_store *store, bool dry_run, const struct sg_store_call *call,
                        size_t *ret_removed, struct qf_err *err)
{
    QF_CLEANUP(names_done) struct names names = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf before = QF_STRBUF_INIT;
    qf_rc rc;

    *ret_removed = 0;
    if (sg_store_has_tokens(store))
        return QF_OK;
    print_time(&before, qf_clock_wall_ms() - SG_CHANGES_EXPIRE_MS);
    names.before = qf_strbuf_view(&before);
    rc = sg_store_list(store, QF_STR(SG_CHANGES_PREFIX), QF_STR(""), call, on_name, &names, err);
    for (size_t i = 0; !rc && i < names.items.count; i++) {
        if (!dry_run)
            rc = sg_store_delete(store, qf_str_from(names.items.items[i]), call, err);
        *ret_removed += !rc;
    }
    return rc;
}

/* --- reading --- */

void sg_changes_seen_done(struct sg_changes_seen *seen)
{
    FREE_STRINGS(&seen->names);
}

void sg_changes_folders_done(struct sg_changes_folders *folders)
{
    FREE_STRINGS(&folders->items);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool was_seen(const struct sg_changes_seen *seen, const char *name)
{
    return seen->names.count && bsearch(&name, seen->names.items, seen->names.count,
                                        sizeof(seen->names.items[0]), by_text);
}

/* A folder of the catalogue, and no more than that: notes come from outside. */
static bool folder_valid(struct qf_str line)
{
    return qf_str_starts(line, QF_STR("tenant=")) && line.data[line.len - 1] == '/' &&
           sg_store_name_valid(qf_str_sub(line, 0, line.len - 1)) &&
           sg_catalog_folder_of(line).len == line.len;
}

/* *ret_again: the note could not be read now; try again with the next refresh. */
static qf_rc read_note(struct sg_store *store, const char *name, const struct sg_store_call *call,
                       struct sg_changes_folders *folders, bool *ret_again, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *text = NULL;
    struct qf_err why = { 0 };
    size_t len;
    qf_rc rc = sg_store_read_all(store, qf_str_from(name), NOTE_BYTES_MAX, call, &text, &len, &why);

    /* The note expired meanwhile, or no writer of ours wrote it: a listing will show what changed. */
    *ret_again = rc == QF_ECORRUPT || rc == QF_EDENIED;
    if (rc == QF_ENOTFOUND || rc == QF_ELIMIT || *ret_again)
        return QF_OK;
    if (rc)
        return qf_err_set(err, rc, "%s", why.msg);
    for (size_t start = 0; start < len;) {
        const char *end = memchr(text + start, '\n', len - start);
        struct qf_str line = { text + start, end ? (size_t)(end - text) - start : len - start };

        if (folder_valid(line))
            QF_VEC_PUSH(&folders->items, qf_xmemdup0(line.data, line.len));
        start += line.len + 1;
    }
    return QF_OK;
}

static void sort_unique(struct sg_changes_folders *folders)
{
    size_t kept = 0;

    if (!folders->items.count)
        return;
    qsort(folders->items.items, folders->items.count, sizeof(folders->items.items[0]), by_text);
    for (size_t i = 0; i < folders->items.count; i++) {
        if (kept && strcmp(folders->items.items[kept - 1], folders->items.items[i]) == 0)
            free(folders->items.items[i]);
        else
            folders->items.items[kept++] = folders->items.items[i];
    }
    folders->items.count = kept;
}

qf_rc sg_changes_read(const struct sg_changes_seen *seen, struct sg_store *store,
                      const struct sg_store_call *call, struct sg_changes_folders *folders,
                      struct sg_changes_seen *ret_now, struct qf_err *err)
{
    QF_CLEANUP(names_done) struct names names = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf after = QF_STRBUF_INIT;
    qf_rc rc;

    print_time(&after, qf_clock_wall_ms() - SG_CHANGES_WINDOW_MS);
    rc = sg_store_list(store, QF_STR(SG_CHANGES_PREFIX), qf_strbuf_view(&after), call, on_name,
                       &names, err);
    for (size_t i = 0; folders && !rc && i < names.items.count; i++) {
        bool again = false;

        if (!was_seen(seen, names.items.items[i]))
            rc = read_note(store, names.items.items[i], call, folders, &again, err);
        if (again) { /* not seen, then */
            free(names.items.items[i]);
            names.items.count--;
            memmove(names.items.items + i, names.items.items + i + 1,
                    (names.items.count - i) * sizeof(names.items.items[0]));
            i--;
        }
    }
    if (rc)
        return rc;
    if (folders)
        sort_unique(folders);
    ret_now->names.items = names.items.items;
    ret_now->names.count = names.items.count;
    ret_now->names.capacity = names.items.capacity;
    names.items.items = NULL;
    names.items.count = names.items.capacity = 0;
    return QF_OK;
}
