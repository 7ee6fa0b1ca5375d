/* keys.h - a table of API keys: who has them, and what they open.
 *
 * One key per line, '#' starts a comment:
 *
 *     KEY TENANT [NAME]        KEY            what clients send
 *                              sha256:HEX     or its SHA-256, so that the file holds no secret
 *                              TENANT         what it opens; "*": every tenant, and what operators see
 *                              NAME           whose key it is, for logs; "key-LINE" if absent
 *
 * In memory there are only digests. A look-up compares all of them in a time that tells nothing about
 * where they differ. Immutable once made: any thread may look up. */
#ifndef BASE_HTTP_KEYS_H
#define BASE_HTTP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/tenant.h"

struct qh_keys;

/* More than any file of ours has; a larger table is refused. */
#define QH_KEYS_MAX 65536
#define QH_KEY_NAME_MAX 63

/* What a key opens. */
struct qh_key_owner {
    char tenant[QF_TENANT_MAX + 1]; /* "*": every one */
    char name[QH_KEY_NAME_MAX + 1];
};

/* Read a table. NULL and @err filled (QF_EINVAL, with the line's number behind @name) for a line that
 * is none of the above, the same key twice, or too many. */
struct qh_keys *qh_keys_parse(struct qf_str text, const char *name, struct qf_err *err);
struct qh_keys *qh_keys_free(struct qh_keys *keys); /* Accepts NULL, returns NULL. */

/* The owner of @key, borrowed; NULL: nobody has it. */
const struct qh_key_owner *qh_keys_find(const struct qh_keys *keys, struct qf_str key);

size_t qh_keys_count(const struct qh_keys *keys);
/* A line has the key itself, not its digest: the file is a secret. */
bool qh_keys_have_secrets(const struct qh_keys *keys);

#endif
