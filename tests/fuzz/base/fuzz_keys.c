/* fuzz_keys.c - key files from any bytes: what was accepted opens one tenant each. */
#include <stdint.h>
#include <stdlib.h>

#include "base/http/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str text = { (const char *)data, size };
    struct qh_keys *keys = qh_keys_parse(text, "keys", NULL);
    const struct qh_key_owner *owner;

    if (!keys)
        return 0;
    /* Whatever part of the text is a key, it has an owner with a tenant and a name. */
    owner = qh_keys_find(keys, qf_str_sub(text, 0, size / 2));
    if (owner && (owner->tenant[0] == '\0' || owner->name[0] == '\0'))
        abort();
    (void)qh_keys_free(keys);
    return 0;
}
