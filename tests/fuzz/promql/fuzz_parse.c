/* fuzz_parse.c - any bytes become a tree or an error with a place; what a tree prints as, on one
 * line or indented, parses and prints as the same again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "promql/parse.h"
#include "promql/testing/selectors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct pq_parse_options options = {
    .experimental_functions = true,
    .extended_range_selectors = true,
    .fill_modifiers = true,
    .depth_max = 100,
};

/* Two things do not survive printing, as in Prometheus: a range below a millisecond, which prints
 * as 0s, and a time so far away that milliseconds no longer fit a double. */
static bool excused(struct qf_str printed, const struct qf_err *err)
{
    const char *at = memmem(printed.data, printed.len, " @ ", 3);

    return strcmp(err->msg, "duration must be greater than 0") == 0 ||
           (at && strcspn(at + 3, ".") > 12);
}

static void check_again(struct qf_arena *arena, struct qf_str printed, struct qf_str want)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct pq_expr *node = NULL;
    struct qf_err err = { 0 };
    qf_rc rc = pq_parse(arena, printed, &options, &node, &err);

    if (rc == QF_OK)
        pq_print(&again, node);
    if (!excused(printed, &err))
        assert(rc == QF_OK && qf_str_eq(qf_strbuf_view(&again), want));
    qf_strbuf_done(&again);
}

static void check_tree(struct qf_arena *arena, const struct pq_expr *node)
{
    struct qf_strbuf line = QF_STRBUF_INIT, pretty = QF_STRBUF_INIT, json = QF_STRBUF_INIT;
    size_t selectors;

    pq_print(&line, node);
    pq_pretty(&pretty, node, 10);
    pq_ast_json(&json, node);
    (void)pq_selectors(arena, node, &selectors);
    check_again(arena, qf_strbuf_view(&line), qf_strbuf_view(&line));
    check_again(arena, qf_strbuf_view(&pretty), qf_strbuf_view(&line));
    qf_strbuf_done(&line);
    qf_strbuf_done(&pretty);
    qf_strbuf_done(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_arena *arena = qf_arena_new((size_t)64 << 20);
    struct qf_str text = { (const char *)data, size };
    struct qf_strbuf message = QF_STRBUF_INIT;
    struct pq_expr *node = NULL;
    struct qf_err err = { 0 };
    qf_rc rc = pq_parse(arena, text, &options, &node, &err);

    if (rc == QF_OK) {
        check_tree(arena, node);
    } else {
        assert(rc == err.rc && err.msg[0]);
        assert(rc != QF_EPARSE || (err.pos_start <= err.pos_end && err.pos_end <= size));
        pq_parse_error_print(&message, text, &err);
    }
    (void)pq_parse(arena, text, NULL, &node, NULL);
    qf_strbuf_done(&message);
    (void)qf_arena_free(arena);
    return 0;
}
