/* column_file_sink.c - a GIO stream that hashes, buffers and writes. */
#include "segments/parquet/column_file_sink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_BYTES ((size_t)1 << 20)

struct colfile_sink_class {
    GOutputStreamClass base;
};
/* The names GObject's macros make their own from. */
typedef struct colfile_sink colfile_sink;
typedef struct colfile_sink_class colfile_sinkClass;

static GType colfile_sink_get_type(void);
static void as_seekable(GSeekableIface *iface);
G_DEFINE_TYPE_WITH_CODE(colfile_sink, colfile_sink, G_TYPE_OUTPUT_STREAM,
                        G_IMPLEMENT_INTERFACE(G_TYPE_SEEKABLE, as_seekable))

struct colfile_sink *colfile_sink_new(int fd)
{
    struct colfile_sink *sink = g_object_new(colfile_sink_get_type(), NULL);

    sink->fd = fd;
    return sink;
}

static void colfile_sink_init(struct colfile_sink *sink)
{
    sink->chunk = XXH3_createState();
    sink->whole = XXH3_createState();
    XXH3_128bits_reset(sink->whole);
    colfile_sink_begin_chunk(sink);
}

static void finalize(GObject *object)
{
    struct colfile_sink *sink = (struct colfile_sink *)object;

    XXH3_freeState(sink->chunk);
    XXH3_freeState(sink->whole);
    qf_strbuf_done(&sink->buffer);
    qf_strbuf_done(&sink->tail);
    /* Not by the variable that GObject's macro makes: another thread has set it. */
    G_OBJECT_CLASS(g_type_class_peek(G_TYPE_OUTPUT_STREAM))->finalize(object);
}

/* What Arrow writes. */
static gssize stream_write(GOutputStream *stream, const void *data, gsize size,
                           GCancellable *cancellable, GError **error)
{
    struct colfile_sink *sink = (struct colfile_sink *)stream;

    (void)cancellable;
    if (sink->discarding)
        return (gssize)size;
    if (sink->holding) {
        qf_strbuf_add(&sink->tail, data, size);
        return (gssize)size;
    }
    if (colfile_sink_append(sink, data, size))
        return (gssize)size;
    g_set_error_literal(error, G_IO_ERROR, g_io_error_from_errno(sink->error),
                        strerror(sink->error));
    return -1;
}

/* Where Arrow believes to be: it does not know of the seal. */
static goffset stream_tell(GSeekable *seekable)
{
    const struct colfile_sink *sink = (const struct colfile_sink *)seekable;

    return (goffset)(sink->written + sink->tail.len);
}

static gboolean no(GSeekable *seekable)
{
    (void)seekable;
    return FALSE;
}

/* Arrow asks where it is and never seeks. */
static void as_seekable(GSeekableIface *iface)
{
    iface->tell = stream_tell;
    iface->can_seek = no;
    iface->can_truncate = no;
}

static void colfile_sink_class_init(struct colfile_sink_class *class)
{
    G_OBJECT_CLASS(class)->finalize = finalize;
    class->base.write_fn = stream_write;
}

void colfile_sink_begin_chunk(struct colfile_sink *sink)
{
    XXH3_64bits_reset(sink->chunk);
}

void colfile_sink_hold(struct colfile_sink *sink)
{
    sink->holding = true;
}

static bool put(struct colfile_sink *sink, const char *at, size_t size)
{
    while (size > 0) {
        ssize_t done = write(sink->fd, at, size);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            sink->error = done < 0 ? errno : EIO;
            return false;
        }
        at += done;
        size -= (size_t)done;
    }
    return true;
}

bool colfile_sink_flush(struct colfile_sink *sink)
{
    if (sink->fd < 0)
        return true;
    if (!put(sink, sink->buffer.data, sink->buffer.len))
        return false;
    qf_strbuf_reset(&sink->buffer);
    return true;
}

bool colfile_sink_append(struct colfile_sink *sink, const void *data, size_t size)
{
    XXH3_64bits_update(sink->chunk, data, size);
    XXH3_128bits_update(sink->whole, data, size);
    sink->written += size;
    if (sink->fd >= 0 && sink->buffer.len + size > FLUSH_BYTES && !colfile_sink_flush(sink))
        return false;
    if (sink->fd >= 0 && size > FLUSH_BYTES)
        return put(sink, data, size);
    qf_strbuf_add(&sink->buffer, data, size);
    return true;
}
