/* label.c - label_replace, label_join, natural order. */
#include "promql/func/label.h"

#include <string.h>

#include "base/pure/utf8.h"
#include "base/regex/regex.h"
#include "promql/func/kernels.h"
#include "promql/parse/pattern.h"

#define GROUPS_MAX 100 /* more capture groups than anybody can refer to; further ones are empty */

bool pq_label_name_valid(struct qf_str name)
{
    return name.len > 0 && qf_utf8_valid(name);
}

static qf_rc no_memory(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "query memory limit exceeded");
}

static qf_rc prepare_replace(struct pq_label_call *call, struct qf_arena *arena, struct qf_err *err)
{
    struct qf_str destination = call->strings[0], regex = call->strings[3];
    char reason[200];
    qf_rc rc;

    rc = pq_pattern_compile(arena, regex, &call->regex, reason, sizeof(reason));
    if (rc == QF_ELIMIT)
        return no_memory(err);
    if (rc != QF_OK)
        return qf_err_set(err, QF_EEXEC, "invalid regular expression in label_replace(): %.*s",
                          QF_STR_ARG(regex));
    if (!pq_label_name_valid(destination))
        return qf_err_set(err, QF_EEXEC, "invalid destination label name in label_replace(): %.*s",
                          QF_STR_ARG(destination));
    return QF_OK;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The group named by @name: its number, or -1. */
static long group_number(const struct qf_regex *regex, struct qf_str name)
{
    long number = 0;

    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] < '0' || name.data[i] > '9')
            return qf_regex_group_named(regex, name.data, name.len);
        number = number * 10 + (name.data[i] - '0');
        if (number > 100000000)
            return -1;
    }
    /* A number with leading zeros is a name to Go. */
    if (name.len > 1 && name.data[0] == '0')
        return qf_regex_group_named(regex, name.data, name.len);
    return number;
}

/* What follows a '$': the name, and how many bytes it takes; 0 if it is none. */
static size_t reference(struct qf_str rest, struct qf_str *ret_name)
{
    bool braces = rest.len > 0 && rest.data[0] == '{';
    size_t start = braces ? 1 : 0, end = start;

    while (end < rest.len && is_word(rest.data[end]))
        end++;
    if (end == start)
        return 0;
    *ret_name = qf_str_sub(rest, start, end);
    if (!braces)
        return end;
    return end < rest.len && rest.data[end] == '}' ? end + 1 : 0;
}

/* What a value is built of: counted first, then, once there is room for it, written. */
struct text {
    char *data; /* NULL: count */
    size_t len;
};

static void text_add(struct text *text, struct qf_str part)
{
    if (text->data && part.len)
        memcpy(text->data + text->len, part.data, part.len);
    text->len += part.len;
}

/* Room for the text that was counted, paid for before it is written. False: budget spent. */
static bool text_begin(struct text *text, struct qf_arena *arena)
{
    text->data = qf_arena_alloc(arena, text->len + 1);
    if (!text->data)
        return false;
    text->data[text->len] = '\0';
    text->len = 0;
    return true;
}

/* A match of @regex: what references in a replacement stand for. */
struct match {
    const struct qf_regex *regex;
    struct qf_str text;
    const long (*groups)[2];
    size_t group_count;
};

static struct qf_str group_text(const struct match *match, struct qf_str name)
{
    long number = group_number(match->regex, name);

    if (number < 0 || (size_t)number >= match->group_count || match->groups[number][0] < 0)
        return QF_STR("");
    return qf_str_sub(match->text, (size_t)match->groups[number][0],
                      (size_t)match->groups[number][1]);
}

/* Expand @replacement as Go's Regexp.Expand does: $1, ${1}, $name, ${name}, $$; a name runs as far
 * as letters, digits and underscores go, an unknown one is empty. */
static void expand(struct text *out, struct qf_str replacement, const struct match *match)
{
    size_t i = 0;

    while (i < replacement.len) {
        struct qf_str rest = qf_str_sub(replacement, i + 1, replacement.len);
        struct qf_str name;
        size_t taken;

        if (replacement.data[i] != '$') {
            text_add(out, qf_str_sub(replacement, i, i + 1));
            i++;
        } else if (rest.len && rest.data[0] == '$') {
            text_add(out, QF_STR("$"));
            i += 2;
        } else if ((taken = reference(rest, &name)) == 0) {
            text_add(out, QF_STR("$"));
            i++;
        } else {
            text_add(out, group_text(match, name));
            i += 1 + taken;
        }
    }
}

static qf_rc set_label(struct qf_arena *arena, struct qf_labels labels, struct qf_str name,
                       const struct text *value, struct qf_labels *ret_labels, struct qf_err *err)
{
    struct qf_str written = { value->data, value->len };

    if (!qf_labels_set(arena, labels, name, written, ret_labels))
        return no_memory(err);
    return QF_OK;
}

static qf_rc apply_replace(const struct pq_label_call *call, struct qf_arena *arena,
                           struct qf_labels labels, struct qf_labels *ret_labels, bool *ret_given,
                           struct qf_err *err)
{
    struct qf_str destination = call->strings[0], replacement = call->strings[1];
    struct qf_str source = qf_labels_get(labels, call->strings[2]);
    long groups[GROUPS_MAX][2];
    struct text value = { NULL, 0 };
    struct match match;
    qf_rc rc;

    if (!source.data)
        source = QF_STR("");
    match = (struct match){ call->regex, source, (const long(*)[2])groups, 0 };
    match.group_count = qf_regex_groups(call->regex, source.data, source.len, groups, GROUPS_MAX);
    if (match.group_count == 0) {
        *ret_labels = labels;
        *ret_given = false;
        return QF_OK;
    }
    expand(&value, replacement, &match);
    if (!text_begin(&value, arena))
        return no_memory(err);
    expand(&value, replacement, &match);
    rc = set_label(arena, labels, destination, &value, ret_labels, err);
    *ret_given = rc == QF_OK && ret_labels->items != labels.items;
    return rc;
}

const struct pq_label_function pq_label_replace = { prepare_replace, apply_replace };

static qf_rc prepare_join(struct pq_label_call *call, struct qf_arena *arena, struct qf_err *err)
{
    (void)arena;
    for (size_t i = 2; i < call->count; i++)
        if (!pq_label_name_valid(call->strings[i]))
            return qf_err_set(err, QF_EEXEC, "invalid source label name in label_join(): %.*s",
                              QF_STR_ARG(call->strings[i]));
    if (!pq_label_name_valid(call->strings[0]))
        return qf_err_set(err, QF_EEXEC, "invalid destination label name in label_join(): %.*s",
                          QF_STR_ARG(call->strings[0]));
    return QF_OK;
}

/* The values of the sources, strings[2] and on, with the separator, strings[1], between them. */
static void join(struct text *out, const struct pq_label_call *call, struct qf_labels labels)
{
    for (size_t i = 2; i < call->count; i++) {
        if (i > 2)
            text_add(out, call->strings[1]);
        text_add(out, qf_labels_get(labels, call->strings[i]));
    }
}

static qf_rc apply_join(const struct pq_label_call *call, struct qf_arena *arena,
                        struct qf_labels labels, struct qf_labels *ret_labels, bool *ret_given,
                        struct qf_err *err)
{
    struct text value = { NULL, 0 };

    join(&value, call, labels);
    if (!text_begin(&value, arena))
        return no_memory(err);
    join(&value, call, labels);
    *ret_given = true;
    return set_label(arena, labels, call->strings[0], &value, ret_labels, err);
}

const struct pq_label_function pq_label_join = { prepare_join, apply_join };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The run of digits, or of others, at the beginning. */
static struct qf_str chunk(struct qf_str s)
{
    size_t len = 1;

    while (len < s.len && is_digit(s.data[len]) == is_digit(s.data[0]))
        len++;
    return qf_str_sub(s, 0, len);
}

/* Digits by the number they write, of any length. */
static int digits_cmp(struct qf_str a, struct qf_str b)
{
    while (a.len > 1 && a.data[0] == '0')
        a = qf_str_sub(a, 1, a.len);
    while (b.len > 1 && b.data[0] == '0')
        b = qf_str_sub(b, 1, b.len);
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return qf_str_cmp(a, b);
}

int pq_label_natural_cmp(struct qf_str a, struct qf_str b)
{
    while (a.len && b.len) {
        struct qf_str left = chunk(a), right = chunk(b);
        int order = is_digit(left.data[0]) && is_digit(right.data[0]) ? digits_cmp(left, right)
                                                                      : qf_str_cmp(left, right);

        if (order)
            return order;
        a = qf_str_sub(a, left.len, a.len);
        b = qf_str_sub(b, right.len, b.len);
    }
    return (a.len > 0) - (b.len > 0);
}
