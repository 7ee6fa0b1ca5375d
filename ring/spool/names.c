/* names.c - where things are in the folder, and references as bytes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/crc32c.h"
#include "base/pure/hex.h"
#include "base/pure/sha256.h"
#include "ring/core/bytes.h"
#include "ring/core/manifest.h"
#include "ring/spool/spool_int.h"

#define VERSION 1
#define HEX "0123456789abcdef"

void sp_key(struct qf_str name, char ret_key[SP_KEY])
{
    uint8_t digest[QF_SHA256_BYTES];

    qf_sha256(name, digest);
    qf_hex_encode(digest, (SP_KEY - 1) / 2, ret_key);
}

static bool is_plain(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || (c == '.' && !first);
}

/* Names of nodes may have any bytes: what could mean something else in a path becomes %XX. */
void sp_refs_path(const char *node, char ret_path[SP_PATH])
{
    size_t len = (size_t)snprintf(ret_path, SP_PATH, "refs/"), begin = len;

    for (; *node && len + 4 < sizeof("refs/") + SP_NODE; node++) {
        if (is_plain(*node, len == begin))
            ret_path[len++] = *node;
        else
            len += (size_t)snprintf(ret_path + len, SP_PATH - len, "%%%02x", (unsigned char)*node);
    }
    ret_path[len] = '\0';
}

void sp_reference_path(const char *node, struct qf_str name, char ret_path[SP_PATH])
{
    char key[SP_KEY];
    size_t len;

    sp_key(name, key);
    sp_refs_path(node, ret_path);
    len = strlen(ret_path);
    (void)snprintf(ret_path + len, SP_PATH - len, "/%s", key);
}

void sp_payload_path(struct qf_str name, char ret_path[SP_PATH])
{
    char key[SP_KEY];

    sp_key(name, key);
    (void)snprintf(ret_path, SP_PATH, "store/%s", key);
}

bool sp_node_name(const char *folder, char ret_node[RG_NAME_MAX + 1])
{
    size_t len = 0;
    char again[SP_PATH];

    for (; *folder && len < RG_NAME_MAX; folder++) {
        const char *high, *low;

        if (*folder != '%') {
            ret_node[len++] = *folder;
            continue;
        }
        high = folder[1] ? strchr(HEX, folder[1]) : NULL;
        low = high && folder[2] ? strchr(HEX, folder[2]) : NULL;
        if (!low)
            return false;
        ret_node[len++] = (char)((high - HEX) * 16 + (low - HEX));
        folder += 2;
    }
    ret_node[len] = '\0';
    sp_refs_path(ret_node, again);
    return *folder == '\0' && len > 0;
}

/* --- references --- */

void sp_reference_encode(struct qf_strbuf *buf, const struct sp_part *part, int64_t time_ms)
{
    size_t begin = buf->len;
    uint32_t crc;

    qf_strbuf_putc(buf, VERSION);
    rg_put_text(buf, part->name);
    rg_put(buf, part->slot);
    rg_put(buf, part->bytes);
    rg_put(buf, (uint64_t)time_ms);
    qf_strbuf_add(buf, part->sum.bytes, RG_SUM_BYTES);
    crc = qf_crc32c((struct qf_str){ buf->data + begin, buf->len - begin });
    for (unsigned i = 0; i < 4; i++)
        qf_strbuf_putc(buf, (char)(crc >> (8 * i)));
}

bool sp_reference_decode(struct qf_str bytes, struct sp_part *ret_part, int64_t *ret_time_ms)
{
    struct rg_cursor cursor;
    uint32_t crc = 0;

    if (bytes.len < 1 + RG_SUM_BYTES + 4 || bytes.data[0] != VERSION)
        return false;
    for (unsigned i = 0; i < 4; i++)
        crc |= (uint32_t)(unsigned char)bytes.data[bytes.len - 4 + i] << (8 * i);
    if (qf_crc32c(qf_str_sub(bytes, 0, bytes.len - 4)) != crc)
        return false;
    cursor = (struct rg_cursor){ .rest = qf_str_sub(bytes, 1, bytes.len - 4) };
    ret_part->name = rg_get_text(&cursor, RG_BLOB_NAME_MAX);
    ret_part->slot = (uint32_t)rg_get(&cursor, RG_SLOTS - 1);
    ret_part->bytes = rg_get(&cursor, RG_KEEP_BLOB_BYTES_MAX);
    *ret_time_ms = (int64_t)rg_get(&cursor, INT64_MAX);
    if (cursor.bad || cursor.rest.len != RG_SUM_BYTES)
        return false;
    memcpy(ret_part->sum.bytes, cursor.rest.data, RG_SUM_BYTES);
    return rg_blob_name_valid(ret_part->name);
}

qf_rc sp_reference_read(const struct sp_spool *spool, const char *path, struct qf_strbuf *bytes,
                        struct sp_part *ret_part, int64_t *ret_time_ms, struct qf_err *err)
{
    char buf[SP_REFERENCE_MAX + 1];
    int fd = openat(spool->root, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got;

    if (fd < 0)
        return qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "%s: %s", path,
                          strerror(errno));
    do
        got = pread(fd, buf, sizeof(buf), 0);
    while (got < 0 && errno == EINTR);
    (void)close(fd);
    if (got < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", path, strerror(errno));
    qf_strbuf_reset(bytes);
    qf_strbuf_add(bytes, buf, (size_t)got);
    if ((size_t)got > SP_REFERENCE_MAX ||
        !sp_reference_decode(qf_strbuf_view(bytes), ret_part, ret_time_ms))
        return qf_err_set(err, QF_ECORRUPT, "%s: not a reference", path);
    return QF_OK;
}
