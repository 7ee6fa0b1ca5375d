/* error.c - parse errors as users see them. */
#include "promql/parse.h"

void pq_parse_error_print(struct qf_strbuf *buf, struct qf_str text, const struct qf_err *err)
{
    size_t line = 1, line_start = 0;

    if (text.len == 0) {
        qf_strbuf_puts(buf, "unknown position");
    } else if (err->pos_start > text.len) {
        qf_strbuf_puts(buf, "invalid position");
    } else {
        for (size_t i = 0; i < err->pos_start; i++)
            if (text.data[i] == '\n') {
                line++;
                line_start = i + 1;
            }
        qf_strbuf_printf(buf, "%zu:%zu", line, err->pos_start - line_start + 1);
    }
    qf_strbuf_puts(buf, ": parse error: ");
    qf_strbuf_puts(buf, err->msg);
}
