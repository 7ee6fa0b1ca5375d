/* column_file_numbers.c - number columns of which any part can be decoded.
 *
 * Decoders read some bytes behind the encoded ones: buffers have them, and in a file in memory the
 * seal follows the last chunk (DELTA_PADDING is less than its size).
 *
 * Pages are found and decompressed here, and read in place: differences (delta.h), plain numbers and
 * split ones. What this file does not know, or finds odd, is decoded whole by Arrow, which also has
 * the words for what is wrong with it. */
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "segments/parquet/column_file_int.h"
#include "segments/parquet/delta.h"
#include "segments/parquet/page_header.h"
#include "segments/parquet/wide.h"

struct page {
    size_t first, count; /* of its values in the column */
    int32_t encoding;
    const char *data; /* its values: in the chunk's buffer, or in @owned */
    size_t size;
    char *owned;
    struct delta delta;
};

struct colfile_numbers {
    char *buffer; /* the chunk, if a page lies in it */
    size_t count, width;
    uint64_t memory;
    QF_VEC(struct page) pages;
};

static void page_done(struct page *page)
{
    delta_close(&page->delta);
    free(page->owned);
}

struct colfile_numbers *colfile_numbers_free(struct colfile_numbers *numbers)
{
    if (!numbers)
        return NULL;
    for (size_t i = 0; i < numbers->pages.count; i++)
        page_done(&numbers->pages.items[i]);
    QF_VEC_DONE(&numbers->pages);
    free(numbers->buffer);
    free(numbers);
    return NULL;
}

static void numbers_freep(struct colfile_numbers **numbers)
{
    (void)colfile_numbers_free(*numbers);
}

size_t colfile_numbers_memory(const struct colfile_numbers *numbers)
{
    return numbers->memory;
}

/* -- Pages ------------------------------------------------------------------------------------ */

/* A column on its way in. */
struct loading {
    const struct colfile_group *group;
    struct colfile_bytes bytes;
    const struct shim_leaf *leaf;
    int codec;
    struct colfile_numbers *numbers;
    qf_rc rc; /* QF_OK and false: it is for Arrow to read */
    struct qf_err *err;
};

static void loading_done(struct loading *loading)
{
    colfile_bytes_done(&loading->bytes);
}

static bool decompress(int codec, const char *in, size_t in_size, char *out, size_t out_size)
{
    if (codec == SHIM_ZSTD)
        return ZSTD_decompress(out, out_size, in, in_size) == out_size;
    return codec == SHIM_LZ4 && in_size <= INT32_MAX && out_size <= INT32_MAX &&
           LZ4_decompress_safe(in, out, (int)in_size, (int)out_size) == (int)out_size;
}

/* Make @page point at its bytes, decompressed. */
static bool unfold(struct loading *l, struct page *page, bool compressed, size_t size)
{
    if (!compressed || l->codec == SHIM_RAW)
        return page->size == size;
    if (size > l->bytes.left) {
        l->rc = colfile_over(l->group->file, l->err);
        return false;
    }
    l->bytes.left -= size;
    page->owned = qf_xmalloc(size + COLFILE_PADDING);
    memset(page->owned + size, 0, COLFILE_PADDING);
    if (!decompress(l->codec, page->data, page->size, page->owned, size))
        return false;
    page->data = page->owned;
    page->size = size;
    l->numbers->memory += size;
    return true;
}

/* Levels of the first version: a length and as many bytes. */
static bool skip_levels(struct page *page)
{
    uint32_t size;

    if (page->size < sizeof(size))
        return false;
    memcpy(&size, page->data, sizeof(size));
    if (size > page->size - sizeof(size))
        return false;
    page->data += sizeof(size) + size;
    page->size -= sizeof(size) + size;
    return true;
}

/* Find the values of a page, whose bytes are all there is behind its header. */
static bool find_values(struct loading *l, const struct page_header *header, struct page *page)
{
    if (header->type == PAGE_DATA_V2) {
        if (header->level_bytes > header->size || header->level_bytes > header->uncompressed_size)
            return false;
        page->data += header->level_bytes;
        page->size -= header->level_bytes;
        return unfold(l, page, header->compressed, header->uncompressed_size - header->level_bytes);
    }
    return header->type == PAGE_DATA && unfold(l, page, true, header->uncompressed_size) &&
           (!l->leaf->repetition_max || skip_levels(page)) &&
           (!l->leaf->definition_max || skip_levels(page));
}

static bool open_values(struct loading *l, const struct page_header *header, struct page *page)
{
    size_t width = l->numbers->width, left = l->numbers->count - page->first;

    page->encoding = header->encoding;
    if (header->encoding == PAGE_DELTA) {
        if (page->size == 0 || !delta_open(&page->delta, page->data, page->size, left))
            return false;
        page->count = page->delta.count;
        l->numbers->memory += page->delta.block_count * sizeof(*page->delta.blocks);
    } else if ((header->encoding == PAGE_PLAIN || header->encoding == PAGE_SPLIT) &&
               page->size % width == 0) {
        page->count = page->size / width;
    } else {
        return false;
    }
    return page->count <= left &&
           page->count == header->values - (header->type == PAGE_DATA_V2 ? header->nulls : 0);
}

/* The next page, @at bytes into the chunk; moves it behind. */
static bool add_page(struct loading *l, size_t *at)
{
    struct colfile_numbers *n = l->numbers;
    const struct page *before = n->pages.count ? &n->pages.items[n->pages.count - 1] : NULL;
    struct page page = { .first = before ? before->first + before->count : 0 };
    struct page_header header;
    size_t size;

    if (!page_header_read(l->bytes.data + *at, l->bytes.size - *at, &header, &size) ||
        header.size > l->bytes.size - *at - size)
        return false;
    page.data = l->bytes.data + *at + size;
    page.size = header.size;
    *at += size + header.size;
    if (!find_values(l, &header, &page)) {
        page_done(&page);
        return false;
    }
    /* A page of empty lists alone. */
    if (header.type == PAGE_DATA_V2 && header.values == header.nulls) {
        page_done(&page);
        return true;
    }
    if (!open_values(l, &header, &page)) {
        page_done(&page);
        return false;
    }
    QF_VEC_PUSH(&n->pages, page);
    return true;
}

static bool read_pages(struct loading *l)
{
    const struct colfile_numbers *n = l->numbers;
    const struct page *last;
    size_t at = 0;

    while (at < l->bytes.size)
        if (!add_page(l, &at))
            return false;
    last = n->pages.count ? &n->pages.items[n->pages.count - 1] : NULL;
    return (last ? last->first + last->count : 0) == n->count;
}

/* Whatever Arrow makes of it, as one page of plain numbers. */
static qf_rc decode_whole(struct loading *l)
{
    struct colfile_numbers *n = l->numbers;
    uint64_t size = (uint64_t)n->count * n->width;
    struct page page = { .count = n->count, .encoding = PAGE_PLAIN, .size = size };
    qf_rc rc;

    for (size_t i = 0; i < n->pages.count; i++)
        page_done(&n->pages.items[i]);
    n->pages.count = 0;
    n->memory = size;
    if (size > l->bytes.left)
        return colfile_over(l->group->file, l->err);
    page.owned = qf_xmalloc(size + COLFILE_PADDING);
    page.data = page.owned;
    rc = colfile_bytes_decode(&l->bytes, l->group, (size_t)(l->leaf - l->group->file->leaves),
                              page.owned, n->count, l->err);
    if (rc)
        page_done(&page);
    else
        QF_VEC_PUSH(&n->pages, page);
    return rc;
}

/* Keep the chunk if a page lies in it. */
static void keep_buffer(struct loading *l)
{
    struct colfile_numbers *n = l->numbers;
    bool used = false;

    for (size_t i = 0; i < n->pages.count; i++)
        used |= !n->pages.items[i].owned;
    if (!used || !l->bytes.buffer)
        return;
    n->buffer = QF_TAKE(l->bytes.buffer);
    n->memory += l->bytes.size;
}

/* May the chunk hold @count numbers, by its footer? */
static qf_rc check_column(const struct colfile_group *group, size_t column, size_t count,
                          struct qf_err *err)
{
    const struct colfile *file = group->file;
    const struct shim_leaf *leaf = &file->leaves[column];
    size_t values = colfile_values(file, group->index, column);

    if (leaf->type != SHIM_I32 && leaf->type != SHIM_I64 && leaf->type != SHIM_F64)
        return colfile_corrupt(file, "not a column of numbers", err);
    if (count > values || (count < values && !leaf->definition_max))
        return colfile_corrupt(file, "a column has the wrong number of values", err);
    return QF_OK;
}

struct colfile_numbers *colfile_load_numbers(const struct colfile_group *group, size_t column,
                                             size_t count, struct qf_err *err)
{
    const struct colfile *file = group->file;
    QF_CLEANUP(numbers_freep) struct colfile_numbers *numbers = qf_xcalloc(1, sizeof(*numbers));
    QF_CLEANUP(loading_done)
    struct loading l = { .group = group,
                         .leaf = &file->leaves[column],
                         .codec = colfile_chunk(file, group->index, column)->facts.codec,
                         .numbers = numbers,
                         .err = err };

    numbers->count = count;
    numbers->width = l.leaf->type == SHIM_I32 ? sizeof(int32_t) : sizeof(int64_t);
    l.rc = check_column(group, column, count, err);
    if (l.rc == QF_OK)
        l.rc = colfile_bytes_read(&l.bytes, group, column, err);
    if (l.rc == QF_OK && !read_pages(&l) && l.rc == QF_OK)
        l.rc = decode_whole(&l);
    if (l.rc)
        return NULL;
    keep_buffer(&l);
    return QF_TAKE(numbers);
}

/* -- Values ----------------------------------------------------------------------------------- */

/* Bytes of values in streams, the first bytes of all values first. */
static void split_each(const unsigned char *in, size_t stride, size_t count, size_t width,
                       char *out)
{
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < width; b++)
            out[i * width + b] = (char)in[b * stride + i];
}

#ifdef __SSE2__
/* Eight streams, 16 values at a time: bytes of neighbouring streams side by side, then pairs, then
 * fours. */
static size_t split_sse2(const unsigned char *in, size_t stride, size_t count, char *out)
{
    size_t i;

    for (i = 0; i + 16 <= count; i += 16) {
        __m128i a[8], b[8];

        for (size_t k = 0; k < 8; k++)
            a[k] = _mm_loadu_si128((const __m128i *)(const void *)(in + k * stride + i));
        for (size_t k = 0; k < 4; k++) { /* values 0 to 7 and 8 to 15, streams 2k and 2k + 1 */
            b[k] = _mm_unpacklo_epi8(a[2 * k], a[2 * k + 1]);
            b[k + 4] = _mm_unpackhi_epi8(a[2 * k], a[2 * k + 1]);
        }
        for (size_t h = 0; h < 2; h++) {
            __m128i c[4] = { _mm_unpacklo_epi16(b[4 * h], b[4 * h + 1]),
                             _mm_unpackhi_epi16(b[4 * h], b[4 * h + 1]),
                             _mm_unpacklo_epi16(b[4 * h + 2], b[4 * h + 3]),
                             _mm_unpackhi_epi16(b[4 * h + 2], b[4 * h + 3]) };
            __m128i *to = (__m128i *)(void *)(out + (i + 8 * h) * 8);

            _mm_storeu_si128(to, _mm_unpacklo_epi32(c[0], c[2]));
            _mm_storeu_si128(to + 1, _mm_unpackhi_epi32(c[0], c[2]));
            _mm_storeu_si128(to + 2, _mm_unpacklo_epi32(c[1], c[3]));
            _mm_storeu_si128(to + 3, _mm_unpackhi_epi32(c[1], c[3]));
        }
    }
    return i;
}
#endif

static void read_split(const struct page *page, size_t start, size_t count, size_t width, char *out)
{
    const unsigned char *in = (const unsigned char *)page->data + start;
    size_t done = 0;

#ifdef __SSE2__
    if (width == sizeof(double))
        done = split_sse2(in, page->count, count, out);
#endif
    split_each(in + done, page->count, count - done, width, out + done * width);
}

static void read_delta(const struct page *page, size_t start, size_t count, size_t width, char *out)
{
    QF_CLEANUP(qf_freep) char *all = NULL;
    void *to = out;

    if (start != 0 || count != page->count)
        to = all = qf_xmalloc(page->count * width);
    if (width == sizeof(int32_t))
        delta_read_i32(&page->delta, to);
    else
        delta_read(&page->delta, to);
    if (all)
        memcpy(out, all + start * width, count * width);
}

void colfile_numbers_read(const struct colfile_numbers *numbers, size_t start, size_t count,
                          void *out)
{
    size_t width = numbers->width;

    for (size_t i = 0; i < numbers->pages.count && count > 0; i++) {
        const struct page *page = &numbers->pages.items[i];
        size_t from = start - page->first, here;

        if (start >= page->first + page->count)
            continue;
        here = QF_MIN(count, page->count - from);
        if (page->encoding == PAGE_DELTA)
            read_delta(page, from, here, width, out);
        else if (page->encoding == PAGE_SPLIT)
            read_split(page, from, here, width, out);
        else
            memcpy(out, page->data + from * width, here * width);
        out = (char *)out + here * width;
        start += here;
        count -= here;
    }
}

void colfile_numbers_read_back(const struct colfile_numbers *numbers, size_t start, size_t count,
                               int64_t last, int64_t *out)
{
    uint64_t shift;

    for (size_t i = 0; i < numbers->pages.count; i++) {
        const struct page *page = &numbers->pages.items[i];

        if (page->encoding != PAGE_DELTA || start < page->first ||
            start + count > page->first + page->count)
            continue;
        delta_read_back(&page->delta, start - page->first, count, last, out);
        return;
    }
    /* Over several pages, or not as differences. */
    colfile_numbers_read(numbers, start, count, out);
    shift = (uint64_t)last - (uint64_t)out[count - 1];
    for (size_t i = 0; i < count && shift; i++)
        out[i] = (int64_t)((uint64_t)out[i] + shift);
}

qf_rc colfile_read_numbers(const struct colfile_group *group, size_t column, void *out,
                           size_t count, struct qf_err *err)
{
    QF_CLEANUP(numbers_freep)
    struct colfile_numbers *numbers = colfile_load_numbers(group, column, count, err);

    if (!numbers)
        return err->rc;
    colfile_numbers_read(numbers, 0, count, out);
    return QF_OK;
}

qf_rc colfile_decode_numbers(const struct colfile_group *group, size_t column, void *out,
                             size_t count, struct qf_err *err)
{
    QF_CLEANUP(colfile_bytes_done) struct colfile_bytes bytes = { 0 };
    qf_rc rc = check_column(group, column, count, err);

    if (rc == QF_OK)
        rc = colfile_bytes_read(&bytes, group, column, err);
    return rc ? rc : colfile_bytes_decode(&bytes, group, column, out, count, err);
}
