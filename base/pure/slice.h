/* slice.h - a borrowed run of bytes. It does not own and need not end in NUL. */
#ifndef BASE_PURE_SLICE_H
#define BASE_PURE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct qf_str {
    const char *data;
    size_t len;
};

#define QF_STR(literal) ((struct qf_str){ (literal), sizeof(literal) - 1 })
#define QF_STR_INIT(literal)                                                                       \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
/* For printf's "%.*s". */
#define QF_STR_ARG(s) (int)(s).len, (s).data

static inline struct qf_str qf_str_from(const char *cstr)
{
    return (struct qf_str){ cstr, strlen(cstr) };
}

static inline bool qf_str_eq(struct qf_str a, struct qf_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool qf_str_is(struct qf_str a, const char *cstr)
{
    return qf_str_eq(a, qf_str_from(cstr));
}

/* Bytewise order, a prefix first. */
static inline int qf_str_cmp(struct qf_str a, struct qf_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.data, b.data, len) : 0;

    if (order)
        return order < 0 ? -1 : 1;
    return (a.len > b.len) - (a.len < b.len);
}

static inline bool qf_str_starts(struct qf_str s, struct qf_str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.data, prefix.data, prefix.len) == 0);
}

static inline bool qf_str_ends(struct qf_str s, struct qf_str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.data + s.len - suffix.len, suffix.data, suffix.len) == 0);
}

/* The part from @start up to @end, both cut to the length. */
static inline struct qf_str qf_str_sub(struct qf_str s, size_t start, size_t end)
{
    if (end > s.len)
        end = s.len;
    if (start > end)
        start = end;
    return (struct qf_str){ s.data ? s.data + start : NULL, end - start };
}

/* Without the blanks, tabs, CR and LF at both ends. */
static inline struct qf_str qf_str_trim(struct qf_str s)
{
    while (s.len && strchr(" \t\r\n", s.data[0]) && s.data[0])
        s.data++, s.len--;
    while (s.len && strchr(" \t\r\n", s.data[s.len - 1]) && s.data[s.len - 1])
        s.len--;
    return s;
}

/* The next word of @line, which it leaves; empty at the end. */
static inline struct qf_str qf_str_word(struct qf_str *line)
{
    struct qf_str rest = qf_str_trim(*line), word;
    size_t end = 0;

    while (end < rest.len && rest.data[end] != ' ' && rest.data[end] != '\t')
        end++;
    word = qf_str_sub(rest, 0, end);
    *line = qf_str_sub(rest, end, rest.len);
    return word;
}

#endif
