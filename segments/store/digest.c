/* digest.c - message digests of OpenSSL's libcrypto.
 *
 * Its low-level functions: they need no allocation, cannot fail, and their headers, unlike
 * <openssl/evp.h>, do not trip over the names that banned.h poisons. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "segments/store/digest.h"

#include <openssl/md5.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include "base/pure/alloc.h"

struct digest {
    enum digest_kind kind;
    union {
        MD5_CTX md5;
        SHA256_CTX sha256;
    };
};

static void start(struct digest *digest)
{
    if (digest->kind == DIGEST_MD5)
        (void)MD5_Init(&digest->md5);
    else
        (void)SHA256_Init(&digest->sha256);
}

struct digest *digest_new(enum digest_kind kind)
{
    struct digest *digest = qf_xcalloc(1, sizeof(*digest));

    digest->kind = kind;
    start(digest);
    return digest;
}

struct digest *digest_free(struct digest *digest)
{
    free(digest);
    return NULL;
}

void digest_freep(struct digest **digest)
{
    *digest = digest_free(*digest);
}

void digest_add(struct digest *digest, const void *data, size_t len)
{
    if (digest->kind == DIGEST_MD5)
        (void)MD5_Update(&digest->md5, data, len);
    else
        (void)SHA256_Update(&digest->sha256, data, len);
}

size_t digest_finish(struct digest *digest, unsigned char out[DIGEST_BYTES_MAX])
{
    size_t len = digest->kind == DIGEST_MD5 ? MD5_DIGEST_LENGTH : SHA256_DIGEST_LENGTH;

    if (digest->kind == DIGEST_MD5)
        (void)MD5_Final(out, &digest->md5);
    else
        (void)SHA256_Final(out, &digest->sha256);
    start(digest);
    return len;
}
