/* answers.h - read an answer without a connection: the consumer's end of a stream, for tests. */
#ifndef TESTS_LIB_HTTP_ANSWERS_H
#define TESTS_LIB_HTTP_ANSWERS_H

#include <unistd.h>

#include "base/http/stream.h"
#include "base/pure/strbuf.h"
#include "tests/lib/test.h"

static inline void answers_ignore(void *connection)
{
    (void)connection;
}

/* A stream of @bytes_max whose connection falls asleep and wakes without doing anything. */
static inline struct qh_stream *answers_stream(size_t bytes_max)
{
    struct qh_stream *stream = qh_stream_new(bytes_max);

    qh_stream_attach(stream, &(struct qh_stream_hooks){
                                 .suspend = answers_ignore, .resume = answers_ignore, .fd = -1 });
    return stream;
}

/* Append what waits to @buf. QH_STREAM_END, QH_STREAM_CUT, or 0: there may be more later. */
static inline ssize_t answers_take(struct qh_stream *stream, struct qf_strbuf *buf)
{
    char piece[4096];
    ssize_t len;

    while ((len = qh_stream_take(stream, piece, sizeof(piece))) > 0)
        qf_strbuf_add(buf, piece, (size_t)len);
    return len;
}

/* Wait for the end of an answer that others make: "STATUS TYPE\nName: value\n...\n\nBODY". An answer
 * that was cut ends with "[cut]". */
static inline void answers_read(struct qh_stream *stream, struct qf_strbuf *buf)
{
    struct qh_stream_head head;
    ssize_t last = 0;
    int naps = 0;

    while (!qh_stream_head(stream, &head)) {
        CHECK_MSG(naps++ < 10000, "no answer begins");
        (void)usleep(1000);
    }
    qf_strbuf_printf(buf, "%d %s\n", head.status, head.content_type ? head.content_type : "-");
    for (size_t i = 0; i < head.header_count; i++)
        qf_strbuf_printf(buf, "%s: %s\n", head.names[i], head.values[i]);
    qf_strbuf_putc(buf, '\n');
    while ((last = answers_take(stream, buf)) == 0) {
        CHECK_MSG(naps++ < 10000, "no answer ends: %s", qf_strbuf_cstr(buf));
        (void)usleep(1000);
    }
    if (last == QH_STREAM_CUT)
        qf_strbuf_puts(buf, "[cut]");
}

#endif
