/* notes.c - warnings and infos, each said once, at the last place that said it. */
#include <stdarg.h>
#include <stdio.h>

#include "promql/value.h"

static struct pq_note *find(const struct pq_notes *notes, enum pq_note_level level,
                            struct qf_str text)
{
    for (size_t i = 0; i < notes->count; i++)
        if (notes->items[i].level == level && qf_str_eq(notes->items[i].text, text))
            return &notes->items[i];
    return NULL;
}

static void add(struct pq_notes *notes, enum pq_note_level level, struct pq_pos pos,
                struct qf_str text)
{
    struct pq_note *known = find(notes, level, text);
    struct qf_str copy;

    if (known) {
        known->pos = pos;
        return;
    }
    if (notes->count == PQ_NOTES_MAX) {
        notes->omitted++;
        return;
    }
    if (notes->count == notes->capacity) {
        size_t capacity = notes->capacity ? notes->capacity * 2 : 4;
        void *grown = qf_arena_grow(notes->arena, notes->items, notes->capacity, capacity,
                                    sizeof(*notes->items));

        if (!grown) {
            notes->omitted++;
            return;
        }
        notes->items = grown;
        notes->capacity = capacity;
    }
    copy = qf_arena_str(notes->arena, text);
    if (!copy.data) {
        notes->omitted++;
        return;
    }
    notes->items[notes->count++] = (struct pq_note){ level, copy, pos };
}

void pq_note_add(struct pq_notes *notes, enum pq_note_level level, struct pq_pos pos,
                 const char *fmt, ...)
{
    char text[512];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len < 0)
        return;
    add(notes, level, pos, (struct qf_str){ text, QF_MIN((size_t)len, sizeof(text) - 1) });
}

void pq_notes_merge(struct pq_notes *into, const struct pq_notes *from)
{
    for (size_t i = 0; i < from->count; i++)
        add(into, from->items[i].level, from->items[i].pos, from->items[i].text);
    into->omitted += from->omitted;
}

void pq_note_print(struct qf_strbuf *buf, const struct pq_note *note, struct qf_str query)
{
    size_t line = 1, column = 1;

    for (size_t i = 0; i < note->pos.start && i < query.len; i++) {
        column++;
        if (query.data[i] == '\n')
            line++, column = 1;
    }
    qf_strbuf_puts(buf, note->level == PQ_NOTE_WARNING ? "PromQL warning: " : "PromQL info: ");
    qf_strbuf_str(buf, note->text);
    qf_strbuf_printf(buf, " (%zu:%zu)", line, column);
}
