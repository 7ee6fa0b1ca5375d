/* keys.c - a table of API keys. */
#include "base/http/keys.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"

struct key {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    struct qh_key_owner owner;
};

struct qh_keys {
    QF_VEC(struct key) keys;
    bool secrets;
};

struct qh_keys *qh_keys_free(struct qh_keys *keys)
{
    if (keys)
        QF_VEC_DONE(&keys->keys);
    free(keys);
    return NULL;
}

static void digest_of(struct qf_str key, unsigned char *ret_digest)
{
    (void)SHA256((const unsigned char *)(key.len ? key.data : ""), key.len, ret_digest);
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_digest(struct qf_str hex, unsigned char *ret_digest)
{
    if (hex.len != SHA256_DIGEST_LENGTH * 2)
        return false;
    for (size_t i = 0; i < hex.len; i += 2) {
        int high = nibble(hex.data[i]), low = nibble(hex.data[i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret_digest[i / 2] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool copy_word(struct qf_str word, char *ret, size_t size)
{
    if (word.len >= size)
        return false;
    memcpy(ret, word.data, word.len);
    ret[word.len] = '\0';
    return true;
}

/* Whose key it is; control characters would break log lines. */
static bool name_valid(struct qf_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.data[i] <= ' ' || name.data[i] == 0x7f)
            return false;
    return true;
}

/* What is wrong with the line; NULL: nothing. Comments and blank lines are fine. */
static const char *add_line(struct qh_keys *keys, struct qf_str line, size_t number)
{
    const char *comment = line.len ? memchr(line.data, '#', line.len) : NULL;
    struct qf_str key, tenant, name, prefix = QF_STR("sha256:");
    struct key found = { 0 };

    if (comment)
        line = qf_str_sub(line, 0, (size_t)(comment - line.data));
    key = qf_str_word(&line);
    tenant = qf_str_word(&line);
    name = qf_str_word(&line);
    if (key.len == 0)
        return NULL;
    if ((!qf_str_is(tenant, "*") && !qf_tenant_valid(tenant)) || qf_str_trim(line).len > 0 ||
        !copy_word(tenant, found.owner.tenant, sizeof(found.owner.tenant)))
        return "not \"KEY TENANT [NAME]\"";
    if (!name_valid(name) || !copy_word(name, found.owner.name, sizeof(found.owner.name)))
        return "the name of a key has at most 63 printable characters";
    if (name.len == 0)
        (void)snprintf(found.owner.name, sizeof(found.owner.name), "key-%zu", number);
    if (!qf_str_starts(key, prefix)) {
        digest_of(key, found.digest);
        keys->secrets = true;
    } else if (!read_digest(qf_str_sub(key, prefix.len, key.len), found.digest)) {
        return "sha256: needs 64 digits from 0 to f behind it";
    }
    if (keys->keys.count == QH_KEYS_MAX)
        return "too many keys";
    QF_VEC_PUSH(&keys->keys, found);
    return NULL;
}

static int by_digest(const void *a, const void *b)
{
    return memcmp(((const struct key *)a)->digest, ((const struct key *)b)->digest,
                  SHA256_DIGEST_LENGTH);
}

/* Two owners of one key: which of them is meant? */
static bool has_twins(struct qh_keys *keys)
{
    if (keys->keys.count == 0)
        return false;
    qsort(keys->keys.items, keys->keys.count, sizeof(struct key), by_digest);
    for (size_t i = 1; i < keys->keys.count; i++)
        if (by_digest(&keys->keys.items[i - 1], &keys->keys.items[i]) == 0)
            return true;
    return false;
}

struct qh_keys *qh_keys_parse(struct qf_str text, const char *name, struct qf_err *err)
{
    struct qh_keys *keys = qf_xcalloc(1, sizeof(*keys));
    size_t number = 0;

    while (text.len) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        const char *wrong = add_line(keys, qf_str_sub(text, 0, len), ++number);

        if (wrong) {
            (void)qf_err_set(err, QF_EINVAL, "%s:%zu: %s", name, number, wrong);
            return qh_keys_free(keys);
        }
        text = qf_str_sub(text, end ? len + 1 : len, text.len);
    }
    if (has_twins(keys)) {
        (void)qf_err_set(err, QF_EINVAL, "%s: the same key twice", name);
        return qh_keys_free(keys);
    }
    return keys;
}

const struct qh_key_owner *qh_keys_find(const struct qh_keys *keys, struct qf_str key)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    const struct qh_key_owner *found = NULL;

    digest_of(key, digest);
    for (size_t i = 0; i < keys->keys.count; i++) {
        unsigned char difference = 0;

        for (size_t b = 0; b < sizeof(digest); b++)
            difference |= (unsigned char)(digest[b] ^ keys->keys.items[i].digest[b]);
        if (difference == 0)
            found = &keys->keys.items[i].owner;
    }
    return found;
}

size_t qh_keys_count(const struct qh_keys *keys)
{
    return keys->keys.count;
}

bool qh_keys_have_secrets(const struct qh_keys *keys)
{
    return keys->secrets;
}
