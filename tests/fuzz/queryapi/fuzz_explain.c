/* fuzz_explain.c - events of any labels, names and values are lines of JSON that say the same. */
#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "queryapi/encode/explain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS 8

/* The data of the one event in @buf. */
static json_t *read_event(const struct qf_strbuf *buf, const char *type)
{
    const char *text = qf_strbuf_cstr(buf);
    json_t *event, *found;

    assert(strncmp(text, "data: ", 6) == 0);
    assert(buf->len > 8 && strcmp(text + buf->len - 2, "\n\n") == 0);
    assert(memchr(text, '\n', buf->len) == text + buf->len - 2);
    /* A whole double of 1e19 is longer than any integer jansson has. */
    event = json_loadb(text + 6, buf->len - 8, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    assert(event);
    assert(strcmp(json_string_value(json_object_get(event, "type")), type) == 0);
    found = json_incref(json_object_get(event, "data"));
    json_decref(event);
    return found;
}

static void check_value(const json_t *value, double want)
{
    double got;

    if (isfinite(want)) {
        got = json_number_value(value);
        assert(json_is_number(value) && got == want);
        return;
    }
    assert(json_is_string(value));
    assert(qf_parse_double(qf_str_from(json_string_value(value)), &got));
    assert(isnan(want) ? isnan(got) : got == want);
}

static void check_rows(const double values[STEPS], uint64_t present)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    json_t *event;
    const json_t *row;

    qa_sse_batch_open(&buf, -5, 1, STEPS);
    qa_sse_batch_row(&buf, 3, values, present, NULL, STEPS, true);
    qa_sse_list_close(&buf);
    event = read_event(&buf, "batch");
    row = json_array_get(json_object_get(event, "rows"), 0);
    assert(json_array_size(row) == STEPS + 1);
    for (size_t i = 0; i < STEPS; i++) {
        if (present >> i & 1)
            check_value(json_array_get(row, i + 1), values[i]);
        else
            assert(json_is_null(json_array_get(row, i + 1)));
    }
    json_decref(event);
    qf_strbuf_done(&buf);
}

static void check_text(const char *text)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_label label = { QF_STR("l"), qf_str_from(text) };
    struct qa_work_view view = { .state = "ready", .worker = text, .reason = text };
    json_t *event;
    const char *got;

    qa_sse_series_open(&buf, 0);
    qa_sse_series_item(&buf, (struct qf_labels){ &label, 1 }, true);
    qa_sse_list_close(&buf);
    event = read_event(&buf, "series");
    got =
        json_string_value(json_object_get(json_array_get(json_object_get(event, "list"), 0), "l"));
    assert(got && (!qf_utf8_valid(qf_str_from(text)) || strcmp(got, text) == 0));
    json_decref(event);
    qf_strbuf_reset(&buf);
    qa_sse_works_open(&buf, 0);
    qa_sse_works_item(&buf, &view, true);
    qa_sse_list_close(&buf);
    event = read_event(&buf, "works");
    got = json_string_value(
        json_object_get(json_array_get(json_object_get(event, "changed"), 0), "worker"));
    assert(got && (!qf_utf8_valid(qf_str_from(text)) || strcmp(got, text) == 0));
    json_decref(event);
    qf_strbuf_done(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double values[STEPS] = { 0 };
    size_t numbers = size < sizeof(values) ? size : sizeof(values);
    char *text = malloc(size + 1);

    assert(text);
    memcpy(values, data, numbers);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check_rows(values, size ? data[size - 1] : 0);
    check_text(text);
    free(text);
    return 0;
}
