/* text_int.h - what the parts of a line of text share: text.c takes it apart, text_labels.c reads labels, text_extras.c what
 * is neither series nor sample. */
#ifndef SEGMENTS_IMPORT_TEXT_INT_H
#define SEGMENTS_IMPORT_TEXT_INT_H

#include "segments/import/text.h"

static inline bool text_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline struct qf_str text_skip(struct qf_str s)
{
    while (s.len && text_blank(s.data[0]))
        s = qf_str_sub(s, 1, s.len);
    return s;
}

/* The text up to the next blank, taken off @rest with the blanks behind it. */
static inline struct qf_str text_word(struct qf_str *rest)
{
    size_t len = 0;
    struct qf_str found;

    while (len < rest->len && !text_blank(rest->data[len]))
        len++;
    found = qf_str_sub(*rest, 0, len);
    *rest = text_skip(qf_str_sub(*rest, len, rest->len));
    return found;
}

/* NULL, or what is wrong. */
const char *text_value(struct qf_str text, double *ret_value);
const char *text_timestamp(struct text_state *state, struct qf_str series, struct qf_str text,
                           int64_t *ret_ts);

/* A quoted string at the start of @rest, unescaped into @arena; false if malformed. */
bool text_quoted(struct qf_arena *arena, bool go, struct qf_str *rest, struct qf_str *ret_text);
/* {a="b"} at the start of @rest, which begins with the brace; taken off it. */
const char *text_label_set(struct qf_arena *arena, bool go, struct qf_str *rest,
                           struct qf_labels *ret_labels);

/* What a comment says whose first word is @keyword; TEXT_SAYS_NOTHING if it is just a comment. */
const char *text_metadata_parse(struct qf_str keyword, struct qf_str rest,
                                struct text_metadata *ret_metadata);
/* The exemplar of a sample, if what follows its time begins with one. */
const char *text_exemplar_find(const struct text_state *state, struct qf_str rest,
                               struct text_sample *sample);

#endif
