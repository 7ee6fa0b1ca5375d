/* rules.c - what HTTP demands of a request. */
#include "base/http/rules.h"

#include <string.h>
#include <strings.h>

static bool refuse(struct qh_refusal *ret, int status, const char *text)
{
    *ret = (struct qh_refusal){ status, text };
    return false;
}

static bool named(const struct qh_param *header, const char *name)
{
    return header->name.len == strlen(name) &&
           strncasecmp(header->name.data, name, header->name.len) == 0;
}

/* RFC 9110, 5.6.2. */
static bool is_token(struct qf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool letter = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');

        if (!letter && !(c && strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return text.len > 0;
}

static bool is_host(struct qf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] <= ' ' || strchr("\"<>\\^`{|}/?#", text.data[i]))
            return false;
    return true;
}

bool qh_request_keeps_rules(const struct qh_request *request, bool host_needed,
                            struct qh_refusal *ret_refusal)
{
    const struct qh_param *length = NULL, *host = NULL;

    for (size_t i = 0; i < request->headers.count; i++) {
        const struct qh_param *at = &request->headers.items[i];

        if (!is_token(at->name))
            return refuse(ret_refusal, 400, "400 Bad Request: invalid header name");
        if (named(at, "Expect") &&
            (at->value.len != 12 || strncasecmp(at->value.data, "100-continue", 12) != 0))
            return refuse(ret_refusal, 417, "");
        if (named(at, "Content-Length")) {
            if (length && !qf_str_eq(qf_str_trim(length->value), qf_str_trim(at->value)))
                return refuse(ret_refusal, 400, "400 Bad Request");
            length = at;
        }
        if (named(at, "Host")) {
            if (host)
                return refuse(ret_refusal, 400, "400 Bad Request");
            if (!is_host(qf_str_trim(at->value)))
                return refuse(ret_refusal, 400, "400 Bad Request: malformed Host header");
            host = at;
        }
    }
    if (host_needed && !host)
        return refuse(ret_refusal, 400, "400 Bad Request: missing required Host header");
    return true;
}

const char *qh_target_path(const char *target)
{
    const char *host, *path;

    if (strncasecmp(target, "http://", 7) == 0)
        host = target + 7;
    else if (strncasecmp(target, "https://", 8) == 0)
        host = target + 8;
    else
        return target;
    path = strchr(host, '/');
    return path ? path : "/";
}

static bool is_clean(struct qf_str path)
{
    for (size_t i = 0; i < path.len; i++) {
        struct qf_str rest = qf_str_sub(path, i, path.len);

        if (qf_str_starts(rest, QF_STR("//")) || qf_str_starts(rest, QF_STR("/./")) ||
            qf_str_starts(rest, QF_STR("/../")) || qf_str_is(rest, "/.") || qf_str_is(rest, "/.."))
            return false;
    }
    return true;
}

/* Append the segment to what is there, or take the last one away. */
static size_t put_segment(char *out, size_t len, struct qf_str segment)
{
    if (segment.len == 0 || qf_str_is(segment, "."))
        return len;
    if (qf_str_is(segment, "..")) {
        while (len > 0 && out[--len] != '/')
            ;
        return len;
    }
    out[len++] = '/';
    memcpy(out + len, segment.data, segment.len);
    return len + segment.len;
}

struct qf_str qh_path_clean(struct qf_arena *arena, struct qf_str path)
{
    char *out;
    size_t len = 0;
    bool slash;

    if (path.len == 0 || path.data[0] != '/' || is_clean(path))
        return path;
    out = qf_arena_alloc(arena, path.len + 1);
    if (!out)
        return (struct qf_str){ NULL, 0 };
    slash = path.data[path.len - 1] == '/';
    for (size_t i = 0; i < path.len;) {
        const char *end = memchr(path.data + i, '/', path.len - i);
        size_t stop = end ? (size_t)(end - path.data) : path.len;

        len = put_segment(out, len, qf_str_sub(path, i, stop));
        i = stop + 1;
    }
    if (len == 0 || slash)
        out[len++] = '/';
    return (struct qf_str){ out, len };
}
