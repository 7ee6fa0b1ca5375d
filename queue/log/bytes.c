#define XXH_INLINE_ALL
#include <xxhash.h>

#include "queue/log/bytes.h"

uint64_t ql_check(const void *data, size_t len, uint64_t salt)
{
    return XXH3_64bits_withSeed(data, len, salt);
}

struct ql_chain ql_chain_next(struct ql_chain before, const void *a, size_t a_len, const void *b,
                              size_t b_len)
{
    unsigned char link[16];
    XXH3_state_t state;
    XXH128_hash_t hash;

    ql_put(link, before.low, 8);
    ql_put(link + 8, before.high, 8);
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    (void)XXH3_128bits_update(&state, link, sizeof(link));
    (void)XXH3_128bits_update(&state, a, a_len);
    if (b_len)
        (void)XXH3_128bits_update(&state, b, b_len);
    hash = XXH3_128bits_digest(&state);
    return (struct ql_chain){ hash.low64, hash.high64 };
}
