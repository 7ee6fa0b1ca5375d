/* column_file_seal.c - build the seal and verify it. */
#include "segments/parquet/column_file_seal.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

#define MAGIC "PFCK"
#define PARQUET_MAGIC "PAR1"
#define HASHED_FIXED 16                /* magic, count and offset: what lies behind the hashes */
#define SEAL_FIXED (HASHED_FIXED + 8)  /* and the last hash */
#define FOOTER_END 8                   /* length and magic */
#define FOOTER_MAX ((uint64_t)1 << 30) /* Arrow counts in int32_t */

static void put_u32(struct qf_strbuf *out, uint32_t value)
{
    value = htole32(value);
    qf_strbuf_add(out, &value, sizeof(value));
}

static void put_u64(struct qf_strbuf *out, uint64_t value)
{
    value = htole64(value);
    qf_strbuf_add(out, &value, sizeof(value));
}

static uint32_t get_u32(const char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

static uint64_t get_u64(const char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

static uint64_t hash_of(struct qf_str seal, struct qf_str footer)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t hash;

    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, seal.data, seal.len);
    XXH3_64bits_update(state, footer.data, footer.len);
    hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

void colfile_seal_add_hash(struct qf_strbuf *out, uint64_t hash)
{
    put_u64(out, hash);
}

void colfile_seal_close(struct qf_strbuf *out, uint32_t hash_count, uint64_t offset,
                        struct qf_str footer)
{
    qf_strbuf_add(out, MAGIC, 4);
    put_u32(out, hash_count);
    put_u64(out, offset);
    put_u64(out, hash_of(qf_strbuf_view(out), footer));
}

static qf_rc corrupt(const char *what, struct qf_err *err)
{
    return qf_err_set(err, QF_ECORRUPT, "%s", what);
}

qf_rc colfile_seal_open(struct qf_str tail, uint64_t file_size, struct colfile_seal *ret_seal,
                        uint64_t *ret_need, struct qf_err *err)
{
    const char *end = tail.data + tail.len, *fixed;
    struct colfile_seal seal = { 0 };
    uint64_t footer;

    *ret_need = 0;
    if (file_size < 4 + SEAL_FIXED + FOOTER_END || tail.len < FOOTER_END ||
        memcmp(end - 4, PARQUET_MAGIC, 4) != 0)
        return corrupt("no Parquet footer", err);
    footer = get_u32(end - FOOTER_END);
    if (footer > FOOTER_MAX || footer + FOOTER_END + SEAL_FIXED + 4 > file_size)
        return corrupt("the footer's length is wrong", err);
    if (footer + FOOTER_END + SEAL_FIXED > tail.len) {
        *ret_need = footer + FOOTER_END + SEAL_FIXED;
        return QF_OK;
    }
    seal.footer = (struct qf_str){ end - FOOTER_END - footer, footer };
    fixed = seal.footer.data - SEAL_FIXED;
    if (memcmp(fixed, MAGIC, 4) != 0)
        return corrupt("no seal in front of the footer", err);
    seal.hash_count = get_u32(fixed + 4);
    seal.size = (uint64_t)seal.hash_count * 8 + SEAL_FIXED + footer + FOOTER_END;
    if (seal.size + 4 > file_size || get_u64(fixed + 8) != file_size - seal.size)
        return corrupt("the seal is out of place", err);
    seal.offset = file_size - seal.size;
    if (seal.size > tail.len) {
        *ret_need = seal.size;
        return QF_OK;
    }
    seal.hashes = end - seal.size;
    if (hash_of((struct qf_str){ seal.hashes, (size_t)(fixed + HASHED_FIXED - seal.hashes) },
                (struct qf_str){ seal.footer.data, footer + FOOTER_END }) !=
        get_u64(fixed + HASHED_FIXED))
        return corrupt("the footer's checksum is wrong", err);
    *ret_seal = seal;
    return QF_OK;
}

uint64_t colfile_seal_hash(const struct colfile_seal *seal, size_t index)
{
    return get_u64(seal->hashes + 8 * index);
}
