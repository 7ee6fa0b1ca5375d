/* file.c - workers that somebody wrote down: a line each, in a file that may change. */
#include <sys/stat.h>

#include "base/net/address.h"
#include "base/pure/alloc.h"
#include "base/sys/small_file.h"
#include "queryapi/discovery/discovery_int.h"

/* More than so many of the longest names have room in. */
#define FILE_BYTES_MAX ((size_t)QA_ENDPOINTS_MAX * 280)

static qf_rc add_line(struct qf_str line, const char *name, unsigned number, struct endpoints *list,
                      struct qf_err *err)
{
    const char *comment = memchr(line.data, '#', line.len);
    QF_CLEANUP(qf_freep) char *address = NULL, *host = NULL;
    uint16_t port;

    line = qf_str_trim(comment ? qf_str_sub(line, 0, (size_t)(comment - line.data)) : line);
    if (!line.len)
        return QF_OK;
    address = qf_xmemdup0(line.data, line.len);
    if (qf_address_split(address, &host, &port, NULL) != QF_OK || !host[0] || !port)
        return qf_err_set(err, QF_EINVAL, "%s: line %u is not HOST:PORT", name, number);
    qa_endpoints_add(list, "%s", address);
    return QF_OK;
}

qf_rc qa_file_look(const char *name, struct endpoints *list, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct stat seen;
    struct qf_str rest;
    qf_rc rc = qf_small_file_read(name, "workers", FILE_BYTES_MAX, &text, &seen, err);

    rest = qf_strbuf_view(&text);
    for (unsigned number = 1; rc == QF_OK && rest.len; number++) {
        const char *end = memchr(rest.data, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.data) : rest.len;

        rc = add_line(qf_str_sub(rest, 0, len), name, number, list, err);
        rest = qf_str_sub(rest, len + 1, rest.len);
    }
    return rc;
}
