/* pem.c - certificates and keys from files. */
#include "base/net/pem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/pure/strbuf.h"

qf_rc qf_pem_read(const char *path, char **ret_text, struct qf_err *err)
{
    struct qf_strbuf buf = { .limit = 1 << 20 };
    FILE *file = fopen(path, "re");
    char chunk[4096];
    size_t len;

    if (!file)
        return qf_err_set(err, QF_EIO, "cannot open %s: %s", path, strerror(errno));
    while ((len = fread(chunk, 1, sizeof(chunk), file)) > 0)
        qf_strbuf_add(&buf, chunk, len);
    (void)fclose(file);
    if (buf.overflowed || !strstr(qf_strbuf_cstr(&buf), "-----BEGIN ")) {
        qf_strbuf_done(&buf);
        return qf_err_set(err, QF_EINVAL, "%s is not a PEM file", path);
    }
    *ret_text = qf_strbuf_take(&buf);
    return QF_OK;
}
