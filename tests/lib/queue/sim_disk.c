#include <assert.h>

#include "base/pure/vec.h"
#include "tests/lib/queue/sim_disk.h"

enum { SECTOR = 512 };

struct change {
    bool truncate;
    uint64_t offset; /* or the new size */
    size_t len;
    char *data;
};

struct inode {
    struct qf_strbuf now, durable;
    QF_VEC(struct change) pending;
};

struct name {
    char text[QL_NAME_SIZE];
    int inode;               /* -1: removed */
    char from[QL_NAME_SIZE]; /* of a change: the name that goes at the same moment; "": none */
};

struct sim_disk {
    struct ql_disk disk;
    QF_VEC(struct inode) inodes;
    QF_VEC(struct name) names;          /* as they are seen */
    QF_VEC(struct name) durable;        /* as of the last sync of the folder */
    QF_VEC(struct name) folder_changes; /* since then */
    uint64_t capacity, used, writes, stop_after;
    bool fail_sync;
};

static struct sim_disk *self(struct ql_disk *disk)
{
    return (struct sim_disk *)disk;
}

static void resize(struct qf_strbuf *buf, uint64_t size)
{
    if (size > buf->len) {
        size_t grow = (size_t)size - buf->len;

        memset(qf_strbuf_reserve(buf, grow), 0, grow);
        buf->len += grow;
    }
    buf->len = (size_t)size;
}

static void apply(struct qf_strbuf *buf, const struct change *change)
{
    if (change->truncate) {
        resize(buf, change->offset);
        return;
    }
    if (buf->len < change->offset + change->len)
        resize(buf, change->offset + change->len);
    memcpy(buf->data + change->offset, change->data, change->len);
}

static void clear_pending(struct inode *inode)
{
    for (size_t i = 0; i < inode->pending.count; i++)
        free(inode->pending.items[i].data);
    inode->pending.count = 0;
}

static void drop_inode(struct inode *inode)
{
    clear_pending(inode);
    QF_VEC_DONE(&inode->pending);
    qf_strbuf_done(&inode->now);
    qf_strbuf_done(&inode->durable);
    *inode = (struct inode){ 0 };
}

/* Count a write or sync; false once the node has died. */
static bool alive(struct sim_disk *disk)
{
    if (disk->writes >= disk->stop_after)
        return false;
    disk->writes++;
    return true;
}

static qf_rc dead(struct qf_err *err)
{
    return qf_err_set(err, QF_EIO, "the simulated node is dead");
}

static struct name *find(struct sim_disk *disk, const char *text)
{
    for (size_t i = 0; i < disk->names.count; i++)
        if (strcmp(disk->names.items[i].text, text) == 0)
            return &disk->names.items[i];
    return NULL;
}

/* Let name @text mean @inode, or nothing, in the list @names. */
#define SET_NAME(names, name)                                                                      \
    do {                                                                                           \
        size_t at_ = 0;                                                                            \
        while (at_ < (names)->count && strcmp((names)->items[at_].text, (name).text) != 0)         \
            at_++;                                                                                 \
        if (at_ < (names)->count && (name).inode < 0)                                              \
            (names)->items[at_] = (names)->items[--(names)->count];                                \
        else if (at_ < (names)->count)                                                             \
            (names)->items[at_] = (name);                                                          \
        else if ((name).inode >= 0)                                                                \
            QF_VEC_PUSH((names), (name));                                                          \
    } while (0)

/* Make a change, or a change of the past, in the list @names. */
#define APPLY_CHANGE(names, change)                                                                \
    do {                                                                                           \
        struct name gone_ = { .inode = -1 };                                                       \
        memcpy(gone_.text, (change).from, sizeof(gone_.text));                                     \
        SET_NAME(names, change);                                                                   \
        if (gone_.text[0])                                                                         \
            SET_NAME(names, gone_);                                                                \
    } while (0)

static void change_folder(struct sim_disk *disk, const char *text, int inode, const char *from)
{
    struct name name = { .inode = inode };

    snprintf(name.text, sizeof(name.text), "%s", text);
    snprintf(name.from, sizeof(name.from), "%s", from);
    APPLY_CHANGE(&disk->names, name);
    QF_VEC_PUSH(&disk->folder_changes, name);
}

static bool is_used(const struct sim_disk *disk, int inode)
{
    for (size_t i = 0; i < disk->names.count; i++)
        if (disk->names.items[i].inode == inode)
            return true;
    for (size_t i = 0; i < disk->durable.count; i++)
        if (disk->durable.items[i].inode == inode)
            return true;
    for (size_t i = 0; i < disk->folder_changes.count; i++)
        if (disk->folder_changes.items[i].inode == inode)
            return true;
    return false;
}

/* Free inodes that no name leads to, seen or durable or pending. */
static void collect(struct sim_disk *disk)
{
    for (size_t i = 0; i < disk->inodes.count; i++)
        if (!is_used(disk, (int)i))
            drop_inode(&disk->inodes.items[i]);
}

static int free_inode(struct sim_disk *disk)
{
    for (size_t i = 0; i < disk->inodes.count; i++)
        if (!is_used(disk, (int)i))
            return (int)i;
    QF_VEC_PUSH(&disk->inodes, (struct inode){ 0 });
    return (int)disk->inodes.count - 1;
}

static qf_rc sim_open(struct ql_disk *base, const char *text, bool create, int *ret_file,
                      struct qf_err *err)
{
    struct sim_disk *disk = self(base);
    struct name *name = find(disk, text);

    if (name) {
        *ret_file = name->inode;
        return QF_OK;
    }
    if (!create)
        return qf_err_set(err, QF_ENOTFOUND, "no file %s", text);
    if (!alive(disk))
        return dead(err);
    *ret_file = free_inode(disk);
    drop_inode(&disk->inodes.items[*ret_file]);
    change_folder(disk, text, *ret_file, "");
    return QF_OK;
}

static void sim_close(struct ql_disk *base, int file)
{
    (void)base;
    (void)file;
}

static qf_rc sim_size(struct ql_disk *base, int file, uint64_t *ret_size, struct qf_err *err)
{
    (void)err;
    *ret_size = self(base)->inodes.items[file].now.len;
    return QF_OK;
}

static qf_rc sim_read(struct ql_disk *base, int file, uint64_t offset, void *data, size_t len,
                      struct qf_err *err)
{
    const struct qf_strbuf *now = &self(base)->inodes.items[file].now;

    if (offset > now->len || len > now->len - offset)
        return qf_err_set(err, QF_EIO, "read beyond the end");
    if (len)
        memcpy(data, now->data + offset, len);
    return QF_OK;
}

static uint64_t used_bytes(const struct sim_disk *disk)
{
    uint64_t used = 0;

    for (size_t i = 0; i < disk->names.count; i++)
        used += disk->inodes.items[disk->names.items[i].inode].now.len;
    return used;
}

static qf_rc sim_write(struct ql_disk *base, int file, uint64_t offset, const void *data,
                       size_t len, struct qf_err *err)
{
    struct sim_disk *disk = self(base);
    struct inode *inode = &disk->inodes.items[file];
    struct change change = { .offset = offset, .len = len };

    if (!alive(disk))
        return dead(err);
    if (disk->capacity && offset + len > inode->now.len &&
        used_bytes(disk) + offset + len - inode->now.len > disk->capacity)
        return qf_err_set(err, QF_ENOSPC, "the simulated disk is full");
    change.data = qf_xmemdup0(data, len);
    apply(&inode->now, &change);
    QF_VEC_PUSH(&inode->pending, change);
    return QF_OK;
}

static qf_rc sim_truncate(struct ql_disk *base, int file, uint64_t size, struct qf_err *err)
{
    struct inode *inode = &self(base)->inodes.items[file];
    struct change change = { .truncate = true, .offset = size };

    if (!alive(self(base)))
        return dead(err);
    apply(&inode->now, &change);
    QF_VEC_PUSH(&inode->pending, change);
    return QF_OK;
}

static qf_rc sim_sync(struct ql_disk *base, int file, struct qf_err *err)
{
    struct sim_disk *disk = self(base);
    struct inode *inode = &disk->inodes.items[file];
    bool fails = disk->fail_sync && inode->pending.count;

    if (!alive(disk))
        return dead(err);
    for (size_t i = 0; !fails && i < inode->pending.count; i++)
        apply(&inode->durable, &inode->pending.items[i]);
    clear_pending(inode);
    if (!fails)
        return QF_OK;
    disk->fail_sync = false;
    return qf_err_set(err, QF_EIO, "the simulated sync failed");
}

static qf_rc sim_rename(struct ql_disk *base, const char *from, const char *to, struct qf_err *err)
{
    struct sim_disk *disk = self(base);
    struct name *name = find(disk, from);

    if (!name)
        return qf_err_set(err, QF_ENOTFOUND, "no file %s", from);
    if (!alive(disk))
        return dead(err);
    change_folder(disk, to, name->inode, from);
    return QF_OK;
}

static qf_rc sim_remove(struct ql_disk *base, const char *text, struct qf_err *err)
{
    if (!find(self(base), text))
        return qf_err_set(err, QF_ENOTFOUND, "no file %s", text);
    if (!alive(self(base)))
        return dead(err);
    change_folder(self(base), text, -1, "");
    return QF_OK;
}

static void keep_folder_changes(struct sim_disk *disk, size_t count)
{
    for (size_t i = 0; i < count; i++)
        APPLY_CHANGE(&disk->durable, disk->folder_changes.items[i]);
    disk->folder_changes.count = 0;
}

static qf_rc sim_sync_folder(struct ql_disk *base, struct qf_err *err)
{
    if (!alive(self(base)))
        return dead(err);
    keep_folder_changes(self(base), self(base)->folder_changes.count);
    return QF_OK;
}

static qf_rc sim_list(struct ql_disk *base, struct qf_strbuf *names, struct qf_err *err)
{
    struct sim_disk *disk = self(base);

    (void)err;
    for (size_t i = 0; i < disk->names.count; i++)
        qf_strbuf_add(names, disk->names.items[i].text, strlen(disk->names.items[i].text) + 1);
    return QF_OK;
}

static qf_rc sim_space(struct ql_disk *base, uint64_t *ret_bytes, struct qf_err *err)
{
    uint64_t used = self(base)->capacity ? used_bytes(self(base)) : 0;

    (void)err;
    *ret_bytes = !self(base)->capacity         ? UINT64_C(1) << 50
                 : used < self(base)->capacity ? self(base)->capacity - used
                                               : 0;
    return QF_OK;
}

static const struct ql_disk_ops sim_ops = {
    .open = sim_open,
    .close = sim_close,
    .size = sim_size,
    .read = sim_read,
    .write = sim_write,
    .truncate = sim_truncate,
    .sync = sim_sync,
    .rename = sim_rename,
    .remove = sim_remove,
    .sync_folder = sim_sync_folder,
    .list = sim_list,
    .space = sim_space,
};

struct sim_disk *sim_disk_new(const char *label)
{
    struct sim_disk *disk = qf_xcalloc(1, sizeof(*disk));

    disk->disk = (struct ql_disk){ &sim_ops, label };
    disk->stop_after = UINT64_MAX;
    return disk;
}

struct sim_disk *sim_disk_free(struct sim_disk *disk)
{
    if (disk) {
        for (size_t i = 0; i < disk->inodes.count; i++)
            drop_inode(&disk->inodes.items[i]);
        QF_VEC_DONE(&disk->inodes);
        QF_VEC_DONE(&disk->names);
        QF_VEC_DONE(&disk->durable);
        QF_VEC_DONE(&disk->folder_changes);
        free(disk);
    }
    return NULL;
}

struct ql_disk *sim_disk_of(struct sim_disk *disk)
{
    return &disk->disk;
}

/* Keep some sectors of a write, or a prefix of them. */
static void tear(struct qf_strbuf *durable, const struct change *change, struct qf_prng *prng)
{
    bool prefix = qf_prng_chance(prng, 0.5);
    size_t keep = (size_t)qf_prng_below(prng, change->len + 1);

    for (size_t at = 0; at < change->len; at += SECTOR) {
        struct change part = { .offset = change->offset + at,
                               .len = QF_MIN((size_t)SECTOR, change->len - at),
                               .data = change->data + at };

        if (prefix && at + part.len > keep)
            part.len = keep > at ? keep - at : 0;
        if (part.len && (prefix || qf_prng_chance(prng, 0.5)))
            apply(durable, &part);
    }
}

static void lose_content(struct inode *inode, struct qf_prng *prng)
{
    uint64_t mood = qf_prng_below(prng, 4); /* all lost, all kept, each as it comes */

    for (size_t i = 0; i < inode->pending.count; i++) {
        const struct change *change = &inode->pending.items[i];
        uint64_t fate = mood < 2 ? mood : qf_prng_below(prng, 3);

        if (fate == 1)
            apply(&inode->durable, change);
        else if (fate == 2 && !change->truncate)
            tear(&inode->durable, change, prng);
    }
    clear_pending(inode);
    qf_strbuf_reset(&inode->now);
    qf_strbuf_str(&inode->now, qf_strbuf_view(&inode->durable));
}

void sim_disk_power_loss(struct sim_disk *disk, struct qf_prng *prng)
{
    keep_folder_changes(disk, (size_t)qf_prng_below(prng, disk->folder_changes.count + 1));
    disk->names.count = 0;
    for (size_t i = 0; i < disk->durable.count; i++)
        QF_VEC_PUSH(&disk->names, disk->durable.items[i]);
    collect(disk);
    for (size_t i = 0; i < disk->inodes.count; i++)
        lose_content(&disk->inodes.items[i], prng);
}

void sim_disk_wipe(struct sim_disk *disk)
{
    disk->names.count = disk->durable.count = disk->folder_changes.count = 0;
    disk->fail_sync = false;
    collect(disk);
}

void sim_disk_set_capacity(struct sim_disk *disk, uint64_t bytes)
{
    disk->capacity = bytes;
}

void sim_disk_fill(struct sim_disk *disk, uint64_t bytes)
{
    disk->capacity = used_bytes(disk) + bytes + 1; /* 0 would be no limit */
}

void sim_disk_fail_next_sync(struct sim_disk *disk)
{
    disk->fail_sync = true;
}

void sim_disk_stop_after(struct sim_disk *disk, uint64_t count)
{
    disk->stop_after = count == UINT64_MAX ? count : disk->writes + count;
}

bool sim_disk_stopped(const struct sim_disk *disk)
{
    return disk->writes >= disk->stop_after;
}

uint64_t sim_disk_writes(const struct sim_disk *disk)
{
    return disk->writes;
}

unsigned char *sim_disk_byte(struct sim_disk *disk, const char *text, uint64_t offset)
{
    struct name *name = find(disk, text);

    if (!name || offset >= disk->inodes.items[name->inode].now.len)
        return NULL;
    return (unsigned char *)disk->inodes.items[name->inode].now.data + offset;
}

void sim_disk_flip(struct sim_disk *disk, const char *text, uint64_t offset, unsigned char mask)
{
    struct name *name = find(disk, text);
    struct inode *inode;

    assert(name);
    inode = &disk->inodes.items[name->inode];
    if (offset < inode->now.len)
        inode->now.data[offset] = (char)(inode->now.data[offset] ^ mask);
    if (offset < inode->durable.len)
        inode->durable.data[offset] = (char)(inode->durable.data[offset] ^ mask);
}

uint64_t sim_disk_size(struct sim_disk *disk, const char *text)
{
    struct name *name = find(disk, text);

    return name ? disk->inodes.items[name->inode].now.len : UINT64_MAX;
}

void sim_disk_put(struct sim_disk *disk, const char *text, const void *data, size_t len)
{
    int file;
    qf_rc rc = sim_open(&disk->disk, text, true, &file, NULL);

    assert(rc == QF_OK);
    resize(&disk->inodes.items[file].now, 0);
    clear_pending(&disk->inodes.items[file]);
    qf_strbuf_add(&disk->inodes.items[file].now, data, len);
    resize(&disk->inodes.items[file].durable, 0);
    qf_strbuf_add(&disk->inodes.items[file].durable, data, len);
    keep_folder_changes(disk, disk->folder_changes.count);
}
