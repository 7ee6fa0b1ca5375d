/* digest.h - MD5 and SHA-256 of bytes as they pass by. */
#ifndef SEGMENTS_STORE_DIGEST_H
#define SEGMENTS_STORE_DIGEST_H

#include <stddef.h>

#include "base/pure/strbuf.h"

enum digest_kind { DIGEST_MD5, DIGEST_SHA256 };
#define DIGEST_BYTES_MAX 32

struct digest;

struct digest *digest_new(enum digest_kind kind);
struct digest *digest_free(struct digest *digest); /* Accepts NULL, returns NULL. */
void digest_freep(struct digest **digest);
void digest_add(struct digest *digest, const void *data, size_t len);
/* The result, and back to the start. Returns its length. */
size_t digest_finish(struct digest *digest, unsigned char out[DIGEST_BYTES_MAX]);

#endif
