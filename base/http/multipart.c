/* multipart.c - fields between boundaries (RFC 7578, RFC 2046). */
#include "base/http/multipart.h"

#include <string.h>
#include <strings.h>

#include "base/http/params.h"

/* Longer ones are not allowed by RFC 2046. */
#define BOUNDARY_MAX 70

static bool find(struct qf_str text, struct qf_str what, size_t *ret_at)
{
    const char *at = text.len ? memmem(text.data, text.len, what.data, what.len) : NULL;

    if (at)
        *ret_at = (size_t)(at - text.data);
    return at != NULL;
}

/* The value of parameter @name in a header such as `form-data; name="a"`; data NULL: it has none.
 * Escapes inside of quotes are left as they are. */
static struct qf_str parameter(struct qf_str header, const char *name)
{
    size_t len = strlen(name);

    while (header.len) {
        const char *semicolon = memchr(header.data, ';', header.len);
        struct qf_str rest, value;

        if (!semicolon)
            break;
        header = qf_str_sub(header, (size_t)(semicolon - header.data) + 1, header.len);
        rest = qf_str_trim(header);
        if (rest.len <= len || strncasecmp(rest.data, name, len) != 0 || rest.data[len] != '=')
            continue;
        value = qf_str_sub(rest, len + 1, rest.len);
        if (value.len && value.data[0] == '"') {
            const char *quote = memchr(value.data + 1, '"', value.len - 1);

            return quote ? qf_str_sub(value, 1, (size_t)(quote - value.data))
                         : (struct qf_str){ NULL, 0 };
        }
        semicolon = value.len ? memchr(value.data, ';', value.len) : NULL;
        return qf_str_trim(
            qf_str_sub(value, 0, semicolon ? (size_t)(semicolon - value.data) : value.len));
    }
    return (struct qf_str){ NULL, 0 };
}

/* The Content-Disposition among the headers of a part. */
static struct qf_str disposition(struct qf_str headers)
{
    static const char name[] = "content-disposition:";

    while (headers.len) {
        size_t end = headers.len;
        struct qf_str line;

        (void)find(headers, QF_STR("\r\n"), &end);
        line = qf_str_sub(headers, 0, end);
        if (line.len >= sizeof(name) - 1 && strncasecmp(line.data, name, sizeof(name) - 1) == 0)
            return qf_str_sub(line, sizeof(name) - 1, line.len);
        headers = qf_str_sub(headers, end + 2, headers.len);
    }
    return (struct qf_str){ NULL, 0 };
}

static qf_rc add_part(struct qf_arena *arena, struct qh_params *params, struct qf_str headers,
                      struct qf_str content, struct qf_err *err)
{
    struct qf_str about = disposition(headers), name = parameter(about, "name");

    if (!name.data || parameter(about, "filename").data)
        return QF_OK;
    name = qf_arena_str(arena, name);
    content = qf_arena_str(arena, content);
    if (!name.data || !content.data)
        return qf_err_set(err, QF_ELIMIT, "the parameters are too long");
    return qh_params_add(arena, params, name, content, err);
}

qf_rc qh_params_add_multipart(struct qf_arena *arena, struct qh_params *params,
                              struct qf_str content_type, struct qf_str body, struct qf_err *err)
{
    struct qf_str boundary = parameter(content_type, "boundary"), mark;
    char text[BOUNDARY_MAX + 5] = "\r\n--";
    size_t at, end, before = params->count;

    if (boundary.len == 0 || boundary.len > BOUNDARY_MAX)
        return QF_OK;
    memcpy(text + 4, boundary.data, boundary.len);
    mark = (struct qf_str){ text, boundary.len + 4 };
    /* The first boundary has no line before it. */
    if (!find(body, qf_str_sub(mark, 2, mark.len), &at))
        return QF_OK;
    body = qf_str_sub(body, at + mark.len - 2, body.len);
    while (qf_str_starts(body, QF_STR("\r\n")) && find(body, QF_STR("\r\n\r\n"), &at)) {
        struct qf_str headers = qf_str_sub(body, 2, at);
        qf_rc rc;

        body = qf_str_sub(body, at + 4, body.len);
        if (!find(body, mark, &end))
            break;
        rc = add_part(arena, params, headers, qf_str_sub(body, 0, end), err);
        if (rc != QF_OK)
            return rc;
        body = qf_str_sub(body, end + mark.len, body.len);
    }
    if (!qf_str_starts(body, QF_STR("--")))
        params->count = before;
    return QF_OK;
}
