/* column_file_seal.c - build the seal. */
#include "segments/parquet/column_file_seal.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

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
    qf_strbuf_add(out, "PFCK", 4);
    put_u32(out, hash_count);
    put_u64(out, offset);
    put_u64(out, hash_of(qf_strbuf_view(out), footer));
}
