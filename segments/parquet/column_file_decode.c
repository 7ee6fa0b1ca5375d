/* column_file_decode.c - column chunks to arrays. */
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "segments/parquet/column_file_int.h"

#define BATCH 1024      /* texts and levels are decoded in batches that stay in the cache */
#define BUFFER_ALIGN 64 /* as Arrow's own buffers */

/* A chunk being read. */
struct chunk_reader {
    struct colfile_bytes bytes;
    struct shim_reader *shim;
};

static void chunk_reader_done(struct chunk_reader *reader)
{
    shim_reader_free(reader->shim);
    colfile_bytes_done(&reader->bytes);
}

qf_rc colfile_over(const struct colfile *file, struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "%s: decoding a column takes more memory than it may",
                      file->name);
}

void colfile_bytes_done(struct colfile_bytes *bytes)
{
    free(bytes->buffer);
    *bytes = (struct colfile_bytes){ 0 };
}

/* The bytes of a chunk, not verified yet. */
static qf_rc load(struct colfile_bytes *bytes, const struct colfile *file,
                  const struct colfile_chunk *chunk, struct qf_err *err)
{
    size_t room = (chunk->size / BUFFER_ALIGN + 1) * BUFFER_ALIGN + COLFILE_PADDING;

    if (file->tail_only)
        return qf_err_set(err, QF_EINVAL, "%s: only the footer is here", file->name);
    bytes->size = chunk->size;
    if (file->bytes.data) {
        bytes->data = file->bytes.data + chunk->start;
        return QF_OK;
    }
    if (chunk->size > bytes->left)
        return colfile_over(file, err);
    bytes->left -= chunk->size;
    bytes->buffer = aligned_alloc(BUFFER_ALIGN, room);
    if (!bytes->buffer)
        return qf_err_set(err, QF_ENOMEM, "%s: out of memory", file->name);
    memset(bytes->buffer + chunk->size, 0, room - chunk->size);
    bytes->data = bytes->buffer;
    return colfile_read_at(file, chunk->start, chunk->size, bytes->buffer, err);
}

qf_rc colfile_bytes_read(struct colfile_bytes *bytes, const struct colfile_group *group,
                         size_t column, struct qf_err *err)
{
    const struct colfile_chunk *chunk = colfile_chunk(group->file, group->index, column);
    qf_rc rc;

    bytes->left = group->memory_max;
    rc = load(bytes, group->file, chunk, err);
    if (rc == QF_OK && XXH3_64bits(bytes->data, chunk->size) != chunk->hash)
        rc = colfile_corrupt(group->file, "the checksum of a column chunk is wrong", err);
    return rc;
}

/* Begin to read a verified chunk. */
static qf_rc open_shim(const struct colfile_bytes *bytes, const struct colfile_group *group,
                       size_t column, struct shim_reader **ret_shim, struct qf_err *err)
{
    const struct colfile *file = group->file;
    qf_rc rc =
        shim_reader_new(file->meta, (int)column, &colfile_chunk(file, group->index, column)->facts,
                        bytes->data, bytes->left, ret_shim, err);

    return rc ? colfile_blame(file, rc, err) : QF_OK;
}

/* Verify a chunk before Arrow sees a byte of it, and begin to read it. */
static qf_rc chunk_reader_init(struct chunk_reader *reader, const struct colfile_group *group,
                               size_t column, struct qf_err *err)
{
    qf_rc rc = colfile_bytes_read(&reader->bytes, group, column, err);

    return rc ? rc : open_shim(&reader->bytes, group, column, &reader->shim, err);
}

/* -- Numbers ---------------------------------------------------------------------------------- */

/* Where every level stands for a value none is asked for; else those of a batch say which do. */
static qf_rc decode(struct shim_reader *reader, enum shim_type type, char *out, size_t count,
                    bool levels, bool *ret_exact, struct qf_err *err)
{
    size_t width = type == SHIM_I32 ? sizeof(int32_t) : sizeof(int64_t), done = 0;
    int16_t definition[BATCH];
    bool more = true;
    qf_rc rc;

    while ((rc = shim_reader_more(reader, &more, err)) == QF_OK && more) {
        size_t room = levels ? QF_MIN(count - done, (size_t)BATCH) : count - done;
        struct shim_batch batch = { .room = (int64_t)(levels ? QF_MAX(room, (size_t)1) : room),
                                    .definition = levels ? definition : NULL,
                                    .values = out + done * width };
        int64_t spare;

        if (room == 0)
            batch.values = &spare; /* there may be levels of empty rows yet */
        if (room == 0 && !levels)
            break;
        rc = shim_reader_read(reader, type, &batch, err);
        if (rc || (batch.count <= 0 && batch.levels <= 0) || (room == 0 && batch.count > 0))
            break;
        done += (size_t)batch.count;
    }
    *ret_exact = done == count && !more;
    return rc;
}

qf_rc colfile_bytes_decode(const struct colfile_bytes *bytes, const struct colfile_group *group,
                           size_t column, void *out, size_t count, struct qf_err *err)
{
    const struct colfile *file = group->file;
    struct shim_reader *shim = NULL;
    bool exact = false;
    qf_rc rc = open_shim(bytes, group, column, &shim, err);

    if (rc)
        return rc;
    rc = decode(shim, (enum shim_type)file->leaves[column].type, out, count,
                colfile_values(file, group->index, column) != count, &exact, err);
    shim_reader_free(shim);
    if (rc)
        return colfile_blame(file, rc, err);
    return exact ? QF_OK : colfile_corrupt(file, "a column has the wrong number of values", err);
}

/* -- Texts ------------------------------------------------------------------------------------ */

/* The bytes that colfile_texts points into. */
struct texts {
    struct colfile_texts view;
    QF_VEC(struct qf_str) distinct; /* lengths first: the copies move while they grow */
    QF_VEC(uint32_t) index;
    QF_VEC(uint32_t) starts;
    struct qf_strbuf copies;
    uint64_t left; /* of what all these may take */
};

struct text_batch {
    int16_t definition[BATCH], repetition[BATCH];
    struct shim_bytes values[BATCH];
    int32_t indexes[BATCH];
};

static void texts_freep(struct texts **texts)
{
    (void)colfile_texts_free((struct colfile_texts *)*texts);
}

/* Runs and dictionaries make much of few bytes: what comes out is counted, not what goes in. */
static bool charge(struct texts *texts, uint64_t count, uint64_t each)
{
    if (count > texts->left / each)
        return false;
    texts->left -= count * each;
    return true;
}

/* Row starts from levels: a repetition level of 0 begins a row, a definition level below the
 * highest is a row without a value. */
static void add_levels(struct texts *texts, const struct shim_batch *batch,
                       const struct shim_leaf *leaf, uint32_t *values)
{
    QF_VEC_RESERVE(&texts->starts, texts->starts.count + (size_t)batch->levels + 1);
    for (int64_t i = 0; i < batch->levels; i++) {
        if (!leaf->repetition_max || batch->repetition[i] == 0)
            texts->starts.items[texts->starts.count++] = *values;
        *values += batch->definition[i] == leaf->definition_max;
    }
}

static bool add_distinct(struct texts *texts, const struct shim_bytes *bytes, size_t count)
{
    if (!charge(texts, count, sizeof(struct qf_str)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!charge(texts, bytes[i].len, 1))
            return false;
    QF_VEC_RESERVE(&texts->distinct, texts->distinct.count + count);
    for (size_t i = 0; i < count; i++) {
        texts->distinct.items[texts->distinct.count++] = (struct qf_str){ NULL, bytes[i].len };
        qf_strbuf_add(&texts->copies, bytes[i].data, bytes[i].len);
    }
    return true;
}

static qf_rc too_much(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "decoding a column takes more memory than it may");
}

/* Pages that are not dictionary-encoded: each value counts as different. */
static qf_rc add_values(struct texts *texts, const struct shim_batch *batch, struct qf_err *err)
{
    size_t count = (size_t)batch->count, first = texts->distinct.count;

    if (!add_distinct(texts, batch->values, count))
        return too_much(err);
    QF_VEC_RESERVE(&texts->index, texts->index.count + count);
    for (size_t i = 0; i < count; i++)
        texts->index.items[texts->index.count++] = (uint32_t)(first + i);
    return QF_OK;
}

/* Dictionary-encoded pages all the way: the dictionary once, then indexes. */
static qf_rc add_indexes(struct texts *texts, const struct shim_batch *batch, struct qf_err *err)
{
    const int32_t *indexes = batch->values;
    size_t count = (size_t)batch->count;

    if (texts->distinct.count == 0 && batch->distinct_count > 0 &&
        !add_distinct(texts, batch->distinct, (size_t)batch->distinct_count))
        return too_much(err);
    QF_VEC_RESERVE(&texts->index, texts->index.count + count);
    for (size_t i = 0; i < count; i++) {
        if (indexes[i] < 0 || (size_t)indexes[i] >= texts->distinct.count)
            return qf_err_set(err, QF_ECORRUPT, "a dictionary index is out of range");
        texts->index.items[texts->index.count++] = (uint32_t)indexes[i];
    }
    return QF_OK;
}

static qf_rc read_texts(struct shim_reader *reader, const struct shim_leaf *leaf, bool dictionary,
                        struct texts *texts, struct qf_err *err)
{
    struct text_batch space;
    uint32_t values = 0;
    bool more;
    qf_rc rc;

    while ((rc = shim_reader_more(reader, &more, err)) == QF_OK && more) {
        struct shim_batch batch = {
            .room = BATCH,
            .definition = leaf->definition_max ? space.definition : NULL,
            .repetition = leaf->repetition_max ? space.repetition : NULL,
            .values = dictionary ? (void *)space.indexes : space.values,
        };

        rc = dictionary ? shim_reader_read_indexes(reader, &batch, err)
                        : shim_reader_read(reader, SHIM_BYTES, &batch, err);
        if (rc == QF_OK && batch.levels <= 0 && batch.count <= 0)
            rc = qf_err_set(err, QF_ECORRUPT, "a page has too few values");
        if (rc == QF_OK && !charge(texts, (uint64_t)(batch.levels + batch.count), sizeof(uint32_t)))
            rc = too_much(err);
        if (rc)
            return rc;
        if (leaf->definition_max)
            add_levels(texts, &batch, leaf, &values);
        rc = dictionary ? add_indexes(texts, &batch, err) : add_values(texts, &batch, err);
        if (rc)
            return rc;
    }
    /* A decoder may give fewer values than the levels announce; row starts count the latter. */
    if (rc == QF_OK && leaf->definition_max && values != texts->index.count)
        rc = qf_err_set(err, QF_ECORRUPT, "a page has too few values");
    return rc;
}

/* Point the view at the values read so far. */
static qf_rc settle(struct texts *texts, const struct colfile *file, const struct shim_leaf *leaf,
                    size_t rows, struct qf_err *err)
{
    const char *at = texts->copies.data;

    if ((leaf->definition_max ? texts->starts.count : texts->index.count) != rows)
        return colfile_corrupt(file, "a column has the wrong number of rows", err);
    for (size_t i = 0; i < texts->distinct.count; i++) {
        texts->distinct.items[i].data = at ? at : "";
        at += texts->distinct.items[i].len;
    }
    QF_VEC_PUSH(&texts->starts, (uint32_t)texts->index.count);
    texts->view = (struct colfile_texts){
        .distinct = texts->distinct.items,
        .distinct_count = texts->distinct.count,
        .index = texts->index.items,
        .count = texts->index.count,
        .starts = leaf->definition_max ? texts->starts.items : NULL,
        .rows = rows,
    };
    return QF_OK;
}

struct colfile_texts *colfile_read_texts(const struct colfile_group *group, size_t column,
                                         struct qf_err *err)
{
    const struct colfile *file = group->file;
    const struct shim_leaf *leaf = &file->leaves[column];
    const struct shim_chunk *chunk = &colfile_chunk(file, group->index, column)->facts;
    QF_CLEANUP(chunk_reader_done) struct chunk_reader reader = { 0 };
    QF_CLEANUP(texts_freep) struct texts *texts = qf_xcalloc(1, sizeof(*texts));
    qf_rc rc;

    if (leaf->type != SHIM_BYTES) {
        (void)colfile_corrupt(file, "not a column of text", err);
        return NULL;
    }
    rc = chunk_reader_init(&reader, group, column, err);
    if (rc)
        return NULL;
    texts->left = reader.bytes.left;
    rc = read_texts(reader.shim, leaf, chunk->only_indexes, texts, err);
    if (rc) {
        (void)colfile_blame(file, rc, err);
        return NULL;
    }
    if (settle(texts, file, leaf, colfile_rows(file, group->index), err))
        return NULL;
    return &QF_TAKE(texts)->view;
}

struct colfile_texts *colfile_texts_free(struct colfile_texts *view)
{
    struct texts *texts = (struct texts *)view; /* its first member */

    if (!texts)
        return NULL;
    QF_VEC_DONE(&texts->distinct);
    QF_VEC_DONE(&texts->index);
    QF_VEC_DONE(&texts->starts);
    qf_strbuf_done(&texts->copies);
    free(texts);
    return NULL;
}
