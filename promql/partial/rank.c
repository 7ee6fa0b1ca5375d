/* rank.c - the labels of a group's first series, as a label. */
#include "promql/partial/rank.h"

#include <string.h>

/* Less than any character of names and values, so that the bytes of ranks compare as labels do and the
 * mark is the first of its labels. */
#define SEPARATOR '\x01'
static const struct qf_str mark = QF_STR_INIT("\x01");

bool pq_rank_mark(struct qf_arena *arena, struct qf_labels group, struct qf_labels first,
                  struct qf_labels *ret_labels)
{
    struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, group.count + 1);
    size_t len = 0;
    char *text, *at;

    for (size_t i = 0; i < first.count; i++)
        len += first.items[i].name.len + first.items[i].value.len + 2;
    text = at = qf_arena_alloc(arena, len + 1);
    if (!items || !text)
        return false;
    for (size_t i = 0; i < first.count; i++) {
        const struct qf_label *label = &first.items[i];

        memcpy(at, label->name.data, label->name.len);
        at += label->name.len;
        *at++ = SEPARATOR;
        memcpy(at, label->value.data, label->value.len);
        at += label->value.len;
        *at++ = SEPARATOR;
    }
    *at = '\0';
    items[0] = (struct qf_label){ mark, { text, len } };
    if (group.count)
        memcpy(items + 1, group.items, group.count * sizeof(*items));
    *ret_labels = (struct qf_labels){ .items = items, .count = group.count + 1 };
    return true;
}

bool pq_rank_split(struct qf_labels labels, struct qf_labels *ret_group, struct qf_str *ret_rank)
{
    if (labels.count == 0 || !qf_str_eq(labels.items[0].name, mark))
        return false;
    *ret_rank = labels.items[0].value;
    *ret_group = (struct qf_labels){ .items = labels.items + 1, .count = labels.count - 1 };
    return true;
}
