/* script_load.c - load blocks: series lines and the start timestamps before them. */
#include <stdlib.h>

#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "tests/promqltest/script_int.h"

#define SLOTS_MAX 1000000 /* of one line */

/* The start timestamps of the next sample line. */
struct starts {
    struct qf_labels labels;
    int64_t *offsets;
    bool *known;
    size_t count, capacity;
};

static qf_rc starts_push(struct qf_arena *arena, struct starts *starts, bool known, int64_t offset,
                         struct qf_err *err)
{
    if (starts->count == SLOTS_MAX)
        return qf_err_set(err, QF_EINVAL, "too many start timestamps");
    if (starts->count == starts->capacity) {
        size_t capacity = starts->capacity ? starts->capacity * 2 : 64;

        starts->offsets = qf_arena_grow(arena, starts->offsets, starts->capacity, capacity,
                                        sizeof(*starts->offsets));
        starts->known =
            qf_arena_grow(arena, starts->known, starts->capacity, capacity, sizeof(*starts->known));
        if (!starts->offsets || !starts->known)
            return qf_err_set(err, QF_ELIMIT, "the script is too large");
        starts->capacity = capacity;
    }
    starts->offsets[starts->count] = offset;
    starts->known[starts->count++] = known;
    return QF_OK;
}

/* A signed duration at the start of @rest, up to another sign, an 'x' or the end. */
static qf_rc take_offset(struct qf_str *rest, int64_t *ret_ms, struct qf_err *err)
{
    bool negative = rest->len && rest->data[0] == '-';
    size_t start = negative || (rest->len && rest->data[0] == '+') ? 1 : 0, end = start;
    qf_rc rc;

    while (end < rest->len && rest->data[end] != '+' && rest->data[end] != '-' &&
           rest->data[end] != 'x')
        end++;
    rc = read_duration(qf_str_sub(*rest, start, end), ret_ms, err);
    if (rc != QF_OK)
        return rc;
    if (negative)
        *ret_ms = -*ret_ms;
    *rest = qf_str_sub(*rest, end, rest->len);
    return QF_OK;
}

/* "x12" at the end of an item; 0 if there is none. */
static qf_rc take_times(struct qf_str rest, uint64_t *ret_times, struct qf_err *err)
{
    *ret_times = 0;
    if (rest.len == 0)
        return QF_OK;
    if (rest.data[0] != 'x' || !qf_parse_u64(qf_str_sub(rest, 1, rest.len), ret_times) ||
        *ret_times > SLOTS_MAX)
        return qf_err_set(err, QF_EINVAL, "bad start timestamp item near \"%.*s\"",
                          QF_STR_ARG(rest));
    return QF_OK;
}

/* `_`, `_xN`, `D`, `DxN`, `D+DxN`, `D-DxN`. */
static qf_rc read_start_item(struct qf_arena *arena, struct qf_str item, struct starts *starts,
                             struct qf_err *err)
{
    bool known = item.data[0] != '_';
    int64_t offset = 0, step = 0;
    uint64_t times;
    qf_rc rc = QF_OK;

    if (known) {
        rc = take_offset(&item, &offset, err);
        if (rc == QF_OK && item.len && item.data[0] != 'x')
            rc = take_offset(&item, &step, err);
    } else {
        item = qf_str_sub(item, 1, item.len);
    }
    if (rc == QF_OK)
        rc = take_times(item, &times, err);
    if (rc != QF_OK)
        return rc;
    /* `_xN` is N slots, a value with xN is N more. */
    if (known || item.len == 0)
        times++;
    for (uint64_t i = 0; i < times && rc == QF_OK; i++)
        rc = starts_push(arena, starts, known, offset + (int64_t)i * step, err);
    return rc;
}

static qf_rc read_starts(struct qf_arena *arena, struct qf_str series, struct qf_str items,
                         struct starts *ret, struct qf_err *err)
{
    struct pq_sequence_value *values;
    size_t count;
    qf_rc rc;

    *ret = (struct starts){ 0 };
    rc = pq_parse_series(arena, series, &ret->labels, &values, &count, err);
    while (rc == QF_OK && items.len)
        rc = read_start_item(arena, next_word(&items), ret, err);
    return rc;
}

static qf_rc attach_starts(struct script_series *series, struct starts *starts, struct qf_err *err)
{
    if (!qf_labels_eq(series->labels, starts->labels) || series->count != starts->count)
        return qf_err_set(err, QF_EINVAL, "start timestamps do not fit the line after them");
    series->start_offsets = starts->offsets;
    series->start_known = starts->known;
    starts->count = 0;
    return QF_OK;
}

/* Put @series into the block; a later line for the same series replaces an earlier one. */
static void put_series(struct script_load *load, const struct script_series *series)
{
    for (size_t i = 0; i < load->series_count; i++) {
        if (qf_labels_eq(load->series[i].labels, series->labels)) {
            load->series[i] = *series;
            return;
        }
    }
    load->series[load->series_count++] = *series;
}

static qf_rc read_header(struct qf_str line, struct script_load *ret, struct qf_err *err)
{
    struct qf_str word = next_word(&line);

    *ret = (struct script_load){ .with_nhcb = qf_str_is(word, "load_with_nhcb") };
    if (!ret->with_nhcb && !qf_str_is(word, "load"))
        return qf_err_set(err, QF_EINVAL, "unknown command \"%.*s\"", QF_STR_ARG(word));
    return read_duration(line, &ret->gap_ms, err);
}

qf_rc read_load(struct qf_arena *arena, const struct lines *lines, size_t *at,
                struct script_load *ret, struct qf_err *err)
{
    struct starts starts = { 0 };
    size_t end;
    qf_rc rc = read_header(lines->items[(*at)++], ret, err);

    if (rc != QF_OK)
        return rc;
    for (end = *at; end < lines->count && lines->items[end].len;)
        end++;
    ret->series = QF_ARENA_ARRAY(arena, struct script_series, end - *at + 1);
    if (!ret->series)
        return qf_err_set(err, QF_ELIMIT, "the script is too large");
    for (; *at < end; (*at)++) {
        struct qf_str line = lines->items[*at], rest = line;
        struct qf_str word = next_word(&rest);
        struct script_series series = { .line = *at + 1 };

        if (qf_str_ends(word, QF_STR("@st"))) {
            rc = read_starts(arena, qf_str_sub(word, 0, word.len - 3), rest, &starts, err);
        } else {
            rc = pq_parse_series(arena, line, &series.labels, &series.values, &series.count, err);
            if (rc == QF_OK && starts.count)
                rc = attach_starts(&series, &starts, err);
            if (rc == QF_OK)
                put_series(ret, &series);
        }
        if (rc != QF_OK)
            return qf_err_prefix(err, rc, "line %zu", *at + 1);
    }
    return QF_OK;
}
