/* fuzz_credentials.c - keys from any bytes: answers of containers' endpoints and of STS, files of profiles.
 *
 * The first byte chooses the decoder. Keys that are taken are whole, end some time, and stay within a
 * header. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/duration.h"
#include "segments/store/credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_key(const char *key)
{
    if (!key || key[0] == '\0')
        abort();
    for (; *key; key++)
        if (*key <= ' ' || *key > '~')
            abort();
}

static void check(qf_rc rc, struct credentials *keys)
{
    if (rc != QF_OK) {
        if (keys->access_key || keys->secret_key || keys->token)
            abort(); /* written only on success */
        return;
    }
    check_key(keys->access_key);
    check_key(keys->secret_key);
    check_key(keys->token);
    if (!keys->renewable || keys->expires_ms == QF_TIME_NEVER)
        abort();
    credentials_done(keys);
}

static void read_container(struct qf_str text)
{
    struct credentials keys = { 0 };
    qf_rc rc = credentials_read_container(text, &keys, NULL);

    check(rc, &keys);
}

static void read_sts(struct qf_str text)
{
    struct credentials keys = { 0 };
    qf_rc rc = credentials_read_sts(text, &keys, NULL);

    check(rc, &keys);
}

/* The same file gives the same value, which is in it. */
static void read_ini(struct qf_str text)
{
    for (int in_config = 0; in_config < 2; in_config++) {
        char *value = credentials_ini_get(text, "default", in_config, "aws_access_key_id");
        size_t len = value ? strlen(value) : 0;

        if (value && len && (!text.len || !memmem(text.data, text.len, value, len)))
            abort();
        free(value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const read[])(struct qf_str) = { read_container, read_sts, read_ini };
    struct qf_str text = { (const char *)data + 1, size - 1 };

    if (size > 0)
        read[data[0] % QF_COUNT_OF(read)](text);
    return 0;
}
