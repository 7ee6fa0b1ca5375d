/* part.c - a part: the rows of one load in one file. */
#include "statemap/store/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "base/pure/alloc.h"
#include "statemap/core/bytes.h"
#include "statemap/store/env.h"

#define MAGIC QF_STR("PFSTATE1")
enum { BUFFER = 1 << 17, HEAD_MAX = 1 << 18, PACK_LEVEL = 1 };

static qf_rc failed(const char *path, struct qf_err *err)
{
    return qf_err_set(err, errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC : QF_EIO, "%s: %s", path,
                      strerror(errno));
}

static qf_rc damaged(const char *path, const char *what, struct qf_err *err)
{
    return qf_err_set(err, QF_ECORRUPT, "the part %s is damaged: %s", path, what);
}

static qf_rc write_all(int file, const char *path, const void *data, size_t len, struct qf_err *err)
{
    const char *at = data;

    while (len) {
        ssize_t done = write(file, at, len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return failed(path, err);
        at += done;
        len -= (size_t)done;
    }
    return QF_OK;
}

/* Up to @len bytes; fewer only at the file's end. */
static qf_rc read_at(int file, const char *path, uint64_t offset, void *data, size_t len,
                     size_t *ret_len, struct qf_err *err)
{
    size_t have = 0;

    while (have < len) {
        ssize_t got = pread(file, (char *)data + have, len - have, (off_t)(offset + have));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(path, err);
        if (got == 0)
            break;
        have += (size_t)got;
    }
    *ret_len = have;
    return QF_OK;
}

static void number(struct qf_strbuf *out, uint64_t value, int bytes)
{
    unsigned char be[8];

    sm_write_be(be, value, bytes);
    qf_strbuf_add(out, be, (size_t)bytes);
}

static void print_head(struct qf_strbuf *head, const struct sm_section *sections, size_t count)
{
    qf_strbuf_str(head, MAGIC);
    number(head, count, 4);
    for (size_t i = 0; i < count; i++) {
        const struct sm_section *section = &sections[i];

        number(head, strlen(section->name), 1);
        qf_strbuf_puts(head, section->name);
        number(head, section->layout.kind, 1);
        number(head, section->layout.direct, 1);
        number(head, section->size, 8);
        number(head, section->packed, 8);
        number(head, section->sum, 8);
    }
    number(head, XXH3_64bits(head->data, head->len), 8);
}

/* What packing and unpacking go through. */
struct pipe {
    ZSTD_CCtx *packer;
    ZSTD_DCtx *unpacker;
    XXH3_state_t *sum;
    char *in, *out;
};

static void pipe_init(struct pipe *pipe)
{
    *pipe = (struct pipe){ ZSTD_createCCtx(), ZSTD_createDCtx(), XXH3_createState(),
                           qf_xmalloc(BUFFER), qf_xmalloc(BUFFER) };
    (void)ZSTD_CCtx_setParameter(pipe->packer, ZSTD_c_compressionLevel, PACK_LEVEL);
    (void)XXH3_64bits_reset(pipe->sum);
}

static void pipe_done(struct pipe *pipe)
{
    (void)ZSTD_freeCCtx(pipe->packer);
    (void)ZSTD_freeDCtx(pipe->unpacker);
    (void)XXH3_freeState(pipe->sum);
    free(pipe->in);
    free(pipe->out);
}

static qf_rc pack_piece(struct pipe *pipe, int into, const char *path, size_t len, bool last,
                        struct sm_section *section, struct qf_err *err)
{
    ZSTD_inBuffer in = { pipe->in, len, 0 };

    for (;;) {
        ZSTD_outBuffer out = { pipe->out, BUFFER, 0 };
        size_t left =
            ZSTD_compressStream2(pipe->packer, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        qf_rc rc;

        if (ZSTD_isError(left))
            return qf_err_set(err, QF_EINTERNAL, "%s: %s", path, ZSTD_getErrorName(left));
        (void)XXH3_64bits_update(pipe->sum, pipe->out, out.pos);
        section->packed += out.pos;
        rc = write_all(into, path, pipe->out, out.pos, err);
        if (rc != QF_OK)
            return rc;
        if (last ? left == 0 : in.pos == in.size)
            return QF_OK;
    }
}

static qf_rc pack(int into, const char *path, const char *from_path, struct sm_section *section,
                  struct qf_err *err)
{
    int from = open(from_path, O_RDONLY | O_CLOEXEC);
    struct pipe pipe;
    size_t len = BUFFER;
    qf_rc rc = QF_OK;

    if (from < 0)
        return failed(from_path, err);
    pipe_init(&pipe);
    section->size = section->packed = 0;
    while (rc == QF_OK && len == BUFFER) {
        rc = read_at(from, from_path, section->size, pipe.in, BUFFER, &len, err);
        if (rc == QF_OK) {
            section->size += len;
            rc = pack_piece(&pipe, into, path, len, len < BUFFER, section, err);
        }
    }
    section->sum = XXH3_64bits_digest(pipe.sum);
    pipe_done(&pipe);
    (void)close(from);
    return rc;
}

static qf_rc write_sections(int file, const char *path, const char *folder,
                            struct sm_section *sections, size_t count, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf head = QF_STRBUF_INIT, from = QF_STRBUF_INIT;
    qf_rc rc;

    print_head(&head, sections, count); /* its length stays */
    rc = write_all(file, path, head.data, head.len, err);
    for (size_t i = 0; rc == QF_OK && i < count; i++) {
        qf_strbuf_reset(&from);
        qf_strbuf_printf(&from, "%s/%s/%s", folder, sections[i].name, SM_DATA_FILE);
        rc = pack(file, path, qf_strbuf_cstr(&from), &sections[i], err);
    }
    if (rc != QF_OK)
        return rc;
    qf_strbuf_reset(&head);
    print_head(&head, sections, count);
    if (lseek(file, 0, SEEK_SET) < 0)
        return failed(path, err);
    rc = write_all(file, path, head.data, head.len, err);
    return rc == QF_OK && fsync(file) < 0 ? failed(path, err) : rc;
}

qf_rc sm_part_write(const char *path, const char *folder, struct sm_section *sections, size_t count,
                    struct qf_err *err)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    qf_rc rc;

    if (file < 0)
        return failed(path, err);
    rc = write_sections(file, path, folder, sections, count, err);
    (void)close(file);
    if (rc != QF_OK)
        (void)unlink(path);
    return rc;
}

static uint64_t take(struct qf_str *from, int bytes, bool *bad)
{
    uint64_t value = 0;

    *bad |= from->len < (size_t)bytes;
    if (!*bad) {
        value = sm_read_be(from->data, bytes);
        *from = qf_str_sub(*from, (size_t)bytes, from->len);
    }
    return value;
}

static void take_section(struct qf_str *head, struct sm_section *section, bool *bad)
{
    size_t len = take(head, 1, bad);
    uint64_t kind;

    *bad |= len > head->len || !sm_name_fold(qf_str_sub(*head, 0, len), section->name) ||
            memcmp(section->name, head->data, len) != 0;
    if (*bad)
        return;
    *head = qf_str_sub(*head, len, head->len);
    kind = take(head, 1, bad);
    *bad |= kind >= SM_KIND__COUNT;
    section->layout = (struct sm_layout){ (enum sm_kind)kind, take(head, 1, bad) == 1 };
    section->size = take(head, 8, bad);
    section->packed = take(head, 8, bad);
    section->sum = take(head, 8, bad);
}

/* The sections that @head begins with. */
static bool read_head(struct qf_str head, struct sm_part *part)
{
    struct qf_str rest = head;
    uint64_t offset, count;
    size_t len;
    bool bad = !qf_str_starts(head, MAGIC);

    rest = qf_str_sub(rest, MAGIC.len, rest.len);
    count = take(&rest, 4, &bad);
    if (bad || count == 0 || count > SM_SECTIONS_MAX)
        return false;
    part->count = count;
    part->sections = qf_xcalloc(count, sizeof(*part->sections));
    for (size_t i = 0; i < count && !bad; i++)
        take_section(&rest, &part->sections[i], &bad);
    len = head.len - rest.len;
    if (bad || take(&rest, 8, &bad) != XXH3_64bits(head.data, len) || bad)
        return false;
    offset = len + 8;
    for (size_t i = 0; i < count; i++) {
        part->sections[i].offset = offset;
        offset += part->sections[i].packed;
    }
    return true;
}

qf_rc sm_part_open(const char *path, struct sm_part *ret_part, struct qf_err *err)
{
    struct sm_part part = { .file = open(path, O_RDONLY | O_CLOEXEC) };
    QF_CLEANUP(qf_freep) char *head = NULL;
    size_t len;
    qf_rc rc;

    if (part.file < 0)
        return failed(path, err);
    part.path = qf_xstrdup(path);
    head = qf_xmalloc(HEAD_MAX);
    rc = read_at(part.file, path, 0, head, HEAD_MAX, &len, err);
    if (rc == QF_OK && !read_head((struct qf_str){ head, len }, &part))
        rc = damaged(path, "its head is not what was written", err);
    if (rc != QF_OK) {
        sm_part_close(&part);
        return rc;
    }
    *ret_part = part;
    return QF_OK;
}

void sm_part_close(struct sm_part *part)
{
    if (part->file >= 0)
        (void)close(part->file);
    free(part->sections);
    free(part->path);
    *part = (struct sm_part){ .file = -1 };
}

/* Unpack what is in pipe->in, into a file or (-1) nowhere. */
static qf_rc unpack_piece(const struct sm_part *part, struct pipe *pipe, size_t len, int into,
                          const char *path, uint64_t *left, struct qf_err *err)
{
    ZSTD_inBuffer in = { pipe->in, len, 0 };
    bool full = true;
    qf_rc rc;

    while (in.pos < in.size || full) {
        ZSTD_outBuffer out = { pipe->out, BUFFER, 0 };
        size_t hint = ZSTD_decompressStream(pipe->unpacker, &out, &in);

        if (ZSTD_isError(hint) || out.pos > *left)
            return damaged(part->path, "a section is not what was packed", err);
        *left -= out.pos;
        full = out.pos == BUFFER;
        rc = into < 0 ? QF_OK : write_all(into, path, pipe->out, out.pos, err);
        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}

static qf_rc unpack(const struct sm_part *part, const struct sm_section *section, int into,
                    const char *path, struct qf_err *err)
{
    uint64_t done = 0, left = section->size;
    struct pipe pipe;
    qf_rc rc = QF_OK;

    pipe_init(&pipe);
    while (rc == QF_OK && done < section->packed) {
        size_t want = QF_MIN((uint64_t)BUFFER, section->packed - done), len;

        rc = read_at(part->file, part->path, section->offset + done, pipe.in, want, &len, err);
        if (rc == QF_OK && len < want)
            rc = damaged(part->path, "it is shorter than it was", err);
        if (rc == QF_OK) {
            (void)XXH3_64bits_update(pipe.sum, pipe.in, len);
            rc = unpack_piece(part, &pipe, len, into, path, &left, err);
        }
        done += len;
    }
    if (rc == QF_OK && (left || XXH3_64bits_digest(pipe.sum) != section->sum))
        rc = damaged(part->path, "the sum of a section is another one", err);
    pipe_done(&pipe);
    return rc;
}

qf_rc sm_part_verify(const struct sm_part *part, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < part->count && rc == QF_OK; i++)
        rc = unpack(part, &part->sections[i], -1, NULL, err);
    return rc;
}

qf_rc sm_part_unpack(const struct sm_part *part, const struct sm_section *section, const char *path,
                     struct qf_err *err)
{
    int into = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    qf_rc rc;

    if (into < 0)
        return failed(path, err);
    rc = unpack(part, section, into, path, err);
    if (rc == QF_OK && fsync(into) < 0)
        rc = failed(path, err);
    (void)close(into);
    return rc;
}
