/* column_file_reader.cc - Parquet in: sealed column chunks to arrays. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/column_reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>
#include <xxhash.h>

#include "segments/parquet/column_file.h"

namespace
{

constexpr size_t kTailGuess = size_t{ 64 } << 10; /* holds most footers: one read, not two */
constexpr size_t kSealFixed = 24;                 /* the seal without the hashes */
constexpr size_t kFooterEnd = 8;                  /* length and magic */
constexpr uint64_t kFooterMax = uint64_t{ 1 } << 30;

struct Chunk {
    uint64_t start, size;
    uint64_t hash;
    int64_t values;
    parquet::Compression::type codec;
};

uint32_t get_u32(const char *at)
{
    uint32_t value;

    std::memcpy(&value, at, sizeof(value));
    return value;
}

uint64_t get_u64(const char *at)
{
    uint64_t value;

    std::memcpy(&value, at, sizeof(value));
    return value;
}

} /* namespace */

struct colfile {
    std::string name;
    int fd = -1;
    struct qf_str bytes = { nullptr, 0 }; /* if it is in memory */
    uint64_t size = 0;
    bool tail_only = false;
    size_t tail_bytes = 0;
    size_t column_count = 0;
    std::shared_ptr<parquet::FileMetaData> meta;
    std::vector<Chunk> chunks; /* row group by row group */

    const Chunk &chunk(size_t row_group, size_t column) const
    {
        return chunks[row_group * column_count + column];
    }
};

namespace
{

qf_rc corrupt(const colfile *file, const char *what, struct qf_err *err)
{
    return qf_err_set(err, QF_ECORRUPT, "%s: corrupt: %s", file->name.c_str(), what);
}

/* All @size bytes at @offset, or an error. */
qf_rc read_at(const colfile *file, uint64_t offset, uint64_t size, char *out, struct qf_err *err)
{
    if (file->bytes.data) {
        std::memcpy(out, file->bytes.data + offset, size);
        return QF_OK;
    }
    while (size > 0) {
        ssize_t done = pread(file->fd, out, size, static_cast<off_t>(offset));

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return qf_err_set(err, QF_EIO, "%s: cannot read: %s", file->name.c_str(),
                              std::strerror(errno));
        if (done == 0)
            return corrupt(file, "the file was cut short", err);
        out += done;
        offset += static_cast<uint64_t>(done);
        size -= static_cast<uint64_t>(done);
    }
    return QF_OK;
}

/* Fill the chunk table from the parsed footer; chunks must cover [4, offset) without gaps. */
qf_rc index_chunks(colfile *file, const char *hashes, uint32_t hash_count, uint64_t offset,
                   struct qf_err *err)
{
    uint64_t at = 4;
    size_t groups = static_cast<size_t>(file->meta->num_row_groups());

    file->column_count = static_cast<size_t>(file->meta->num_columns());
    if (file->column_count == 0 || groups != hash_count / file->column_count ||
        hash_count % file->column_count != 0)
        return corrupt(file, "the seal does not fit the footer", err);
    file->chunks.reserve(hash_count);
    for (size_t g = 0; g < groups; g++) {
        auto group = file->meta->RowGroup(static_cast<int>(g));

        if (group->num_rows() <= 0)
            return corrupt(file, "an empty row group", err);
        for (size_t c = 0; c < file->column_count; c++) {
            auto column = group->ColumnChunk(static_cast<int>(c));
            int64_t start = column->data_page_offset();

            if (column->has_dictionary_page())
                start = std::min(start, column->dictionary_page_offset());
            if (start < 0 || static_cast<uint64_t>(start) != at ||
                column->total_compressed_size() < 0 || column->num_values() < 0 ||
                column->num_values() > INT32_MAX)
                return corrupt(file, "column chunks are out of place", err);
            file->chunks.push_back({ at, static_cast<uint64_t>(column->total_compressed_size()),
                                     get_u64(hashes + 8 * file->chunks.size()),
                                     column->num_values(), column->compression() });
            at += static_cast<uint64_t>(column->total_compressed_size());
        }
    }
    if (at != offset)
        return corrupt(file, "column chunks do not fill the file", err);
    return QF_OK;
}

/* Verify and parse; @tail is the last @size bytes. *ret_need: how many last bytes are wanted, if
 * these are too few. */
qf_rc parse_tail(colfile *file, const char *tail, size_t size, uint64_t *ret_need,
                 struct qf_err *err)
{
    const char *end = tail + size;
    uint64_t footer, sealed;
    uint32_t hash_count, length;
    XXH64_hash_t hash;
    const char *seal;

    *ret_need = 0;
    if (file->size < 4 + kSealFixed + kFooterEnd || size < kFooterEnd ||
        std::memcmp(end - 4, "PAR1", 4) != 0)
        return corrupt(file, "no Parquet footer", err);
    footer = get_u32(end - 8);
    if (footer > kFooterMax || footer + kFooterEnd + kSealFixed + 4 > file->size)
        return corrupt(file, "the footer's length is wrong", err);
    if (footer + kFooterEnd + kSealFixed > size) {
        *ret_need = footer + kFooterEnd + kSealFixed;
        return QF_OK;
    }
    seal = end - kFooterEnd - footer - kSealFixed;
    if (std::memcmp(seal, "PFCK", 4) != 0)
        return corrupt(file, "no seal in front of the footer", err);
    hash_count = get_u32(seal + 4);
    sealed = uint64_t{ hash_count } * 8 + kSealFixed + footer + kFooterEnd;
    if (sealed + 4 > file->size || get_u64(seal + 8) != file->size - sealed)
        return corrupt(file, "the seal is out of place", err);
    if (sealed > size) {
        *ret_need = sealed;
        return QF_OK;
    }
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, end - sealed, uint64_t{ hash_count } * 8 + 16);
    XXH3_64bits_update(state, end - kFooterEnd - footer, footer + kFooterEnd);
    hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    if (hash != get_u64(seal + 16))
        return corrupt(file, "the footer's checksum is wrong", err);
    length = static_cast<uint32_t>(footer);
    file->meta = parquet::FileMetaData::Make(end - kFooterEnd - footer, &length);
    file->tail_bytes = sealed;
    return index_chunks(file, end - sealed, hash_count, file->size - sealed, err);
}

/* Read as much of the end as it takes. */
qf_rc open_tail(colfile *file, struct qf_err *err)
{
    uint64_t want = std::min<uint64_t>(file->size, kTailGuess);
    char magic[4];
    qf_rc rc;

    for (int round = 0; round < 3; round++) {
        std::string tail(want, '\0');

        rc = read_at(file, file->size - want, want, &tail[0], err);
        if (rc == QF_OK)
            rc = parse_tail(file, tail.data(), tail.size(), &want, err);
        if (rc != QF_OK)
            return rc;
        if (want == 0) {
            rc = read_at(file, 0, 4, magic, err);
            if (rc == QF_OK && std::memcmp(magic, "PAR1", 4) != 0)
                rc = corrupt(file, "no Parquet magic at the start", err);
            return rc;
        }
    }
    return corrupt(file, "the footer's length is wrong", err);
}

/* Run @fn, turning Arrow's exceptions into errors: all of them mean that the bytes are wrong. */
template <typename Fn> qf_rc guarded(const colfile *file, struct qf_err *err, Fn fn)
{
    try {
        return fn();
    } catch (const std::bad_alloc &) {
        return qf_err_set(err, QF_ENOMEM, "%s: out of memory", file->name.c_str());
    } catch (const std::exception &e) {
        return corrupt(file, e.what(), err);
    }
}

/* The bytes of a chunk, verified. */
qf_rc load_chunk(const colfile *file, const Chunk &chunk, std::shared_ptr<arrow::Buffer> *ret,
                 struct qf_err *err)
{
    const char *data;

    if (file->tail_only)
        return qf_err_set(err, QF_EINVAL, "%s: only the footer is here", file->name.c_str());
    if (file->bytes.data) {
        data = file->bytes.data + chunk.start;
        *ret = arrow::Buffer::Wrap(data, chunk.size);
    } else {
        auto buffer = arrow::AllocateBuffer(static_cast<int64_t>(chunk.size));
        qf_rc rc;

        if (!buffer.ok())
            return qf_err_set(err, QF_ENOMEM, "%s: out of memory", file->name.c_str());
        data = reinterpret_cast<const char *>((*buffer)->data());
        rc = read_at(file, chunk.start, chunk.size,
                     reinterpret_cast<char *>((*buffer)->mutable_data()), err);
        if (rc != QF_OK)
            return rc;
        *ret = std::move(buffer).ValueOrDie();
    }
    if (XXH3_64bits(data, chunk.size) != chunk.hash)
        return corrupt(file, "the checksum of a column chunk is wrong", err);
    return QF_OK;
}

std::unique_ptr<parquet::PageReader> open_pages(const colfile *file, size_t column,
                                                const Chunk &chunk,
                                                const std::shared_ptr<arrow::Buffer> &buffer)
{
    return parquet::PageReader::Open(std::make_shared<arrow::io::BufferReader>(buffer),
                                     chunk.values, chunk.codec,
                                     parquet::default_reader_properties(),
                                     *file->meta->schema()->Column(static_cast<int>(column)));
}

template <typename Reader, typename Value>
qf_rc decode(const colfile *file, parquet::ColumnReader *reader, Value *out, size_t count,
             struct qf_err *err)
{
    Reader *typed = static_cast<Reader *>(reader);
    size_t done = 0;

    while (done < count && typed->HasNext()) {
        int64_t got = 0;

        /* Levels are not asked for: no list is empty, so every level stands for a value. */
        typed->ReadBatch(static_cast<int64_t>(count - done), nullptr, nullptr, out + done, &got);
        if (got <= 0)
            break;
        done += static_cast<size_t>(got);
    }
    if (done != count || typed->HasNext())
        return corrupt(file, "a column has the wrong number of values", err);
    return QF_OK;
}

} /* namespace */

static struct colfile *opened(std::unique_ptr<colfile> file, struct qf_err *err)
{
    qf_rc rc = guarded(file.get(), err, [&] { return open_tail(file.get(), err); });

    if (rc != QF_OK)
        return colfile_free(file.release());
    return file.release();
}

struct colfile *colfile_open_path(const char *path, struct qf_err *err)
{
    auto file = std::make_unique<colfile>();
    struct stat status;

    file->name = path;
    file->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0) {
        qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "%s: cannot open: %s", path,
                   std::strerror(errno));
        return nullptr;
    }
    if (fstat(file->fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        qf_err_set(err, QF_EIO, "%s: not a regular file", path);
        return colfile_free(file.release());
    }
    file->size = static_cast<uint64_t>(status.st_size);
    return opened(std::move(file), err);
}

struct colfile *colfile_open_memory(struct qf_str bytes, const char *name, struct qf_err *err)
{
    auto file = std::make_unique<colfile>();

    file->name = name;
    file->bytes = bytes;
    if (!file->bytes.data)
        file->bytes.data = "";
    file->size = bytes.len;
    return opened(std::move(file), err);
}

struct colfile *colfile_open_tail(struct qf_str tail, uint64_t file_size, const char *name,
                                  uint64_t *ret_need, struct qf_err *err)
{
    auto file = std::make_unique<colfile>();
    qf_rc rc;

    *ret_need = 0;
    file->name = name;
    file->size = file_size;
    file->tail_only = true;
    rc = guarded(file.get(), err, [&] {
        return parse_tail(file.get(), tail.data ? tail.data : "", tail.len, ret_need, err);
    });
    if (rc != QF_OK || *ret_need)
        return colfile_free(file.release());
    return file.release();
}

struct colfile *colfile_free(struct colfile *file)
{
    if (file && file->fd >= 0)
        close(file->fd);
    delete file;
    return nullptr;
}

const char *colfile_name(const struct colfile *file)
{
    return file->name.c_str();
}

size_t colfile_memory(const struct colfile *file)
{
    /* Thrift's structures take about four times their serialised form. */
    return sizeof(*file) + file->chunks.size() * sizeof(Chunk) + 4 * file->tail_bytes;
}

static bool same_column(const parquet::ColumnDescriptor *got, const struct colfile_column *want)
{
    static const parquet::Type::type types[] = {
        parquet::Type::INT32,      parquet::Type::INT64,      parquet::Type::DOUBLE,
        parquet::Type::BYTE_ARRAY, parquet::Type::BYTE_ARRAY,
    };
    static const int definition[] = { 0, 1, 1, 1, 1 }, repetition[] = { 0, 0, 1, 1, 1 };
    auto path = got->path()->ToDotVector();

    return got->physical_type() == types[want->type] &&
           got->max_definition_level() == definition[want->shape] &&
           got->max_repetition_level() == repetition[want->shape] && path[0] == want->name;
}

qf_rc colfile_check_schema(const struct colfile *file, const struct colfile_schema *schema,
                           struct qf_err *err)
{
    if (file->column_count != schema->column_count)
        return qf_err_set(err, QF_EUNSUPPORTED, "%s: has %zu columns where %zu are known",
                          file->name.c_str(), file->column_count, schema->column_count);
    for (size_t i = 0; i < schema->column_count; i++)
        if (!same_column(file->meta->schema()->Column(static_cast<int>(i)), &schema->columns[i]))
            return qf_err_set(err, QF_EUNSUPPORTED, "%s: column %zu is not %s as it is known",
                              file->name.c_str(), i, schema->columns[i].name);
    return QF_OK;
}

struct qf_str colfile_meta(const struct colfile *file, const char *key)
{
    auto pairs = file->meta->key_value_metadata();

    for (int64_t i = 0; pairs && i < pairs->size(); i++)
        if (pairs->key(i) == key)
            return { pairs->value(i).data(), pairs->value(i).size() };
    return { nullptr, 0 };
}

size_t colfile_columns(const struct colfile *file)
{
    return file->column_count;
}

size_t colfile_row_groups(const struct colfile *file)
{
    return file->chunks.size() / file->column_count;
}

size_t colfile_rows(const struct colfile *file, size_t row_group)
{
    return static_cast<size_t>(file->meta->RowGroup(static_cast<int>(row_group))->num_rows());
}

size_t colfile_values(const struct colfile *file, size_t row_group, size_t column)
{
    return static_cast<size_t>(file->chunk(row_group, column).values);
}

size_t colfile_chunk_bytes(const struct colfile *file, size_t row_group, size_t column)
{
    return file->chunk(row_group, column).size;
}

static std::shared_ptr<parquet::Statistics> statistics(const struct colfile *file, size_t row_group,
                                                       size_t column)
{
    auto chunk =
        file->meta->RowGroup(static_cast<int>(row_group))->ColumnChunk(static_cast<int>(column));
    auto found = chunk->is_stats_set() ? chunk->statistics() : nullptr;

    return found && found->HasMinMax() ? found : nullptr;
}

bool colfile_range_i64(const struct colfile *file, size_t row_group, size_t column,
                       int64_t *ret_min, int64_t *ret_max)
{
    try {
        auto found = statistics(file, row_group, column);
        auto typed = dynamic_cast<parquet::Int64Statistics *>(found.get());

        if (!typed)
            return false;
        *ret_min = typed->min();
        *ret_max = typed->max();
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

bool colfile_range_text(const struct colfile *file, size_t row_group, size_t column,
                        struct qf_strbuf *min, struct qf_strbuf *max)
{
    try {
        auto chunk = file->meta->RowGroup(static_cast<int>(row_group))
                         ->ColumnChunk(static_cast<int>(column));
        auto encoded = chunk->encoded_statistics();

        if (!encoded || !encoded->has_min || !encoded->has_max)
            return false;
        qf_strbuf_add(min, encoded->min().data(), encoded->min().size());
        qf_strbuf_add(max, encoded->max().data(), encoded->max().size());
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

qf_rc colfile_read_numbers(const struct colfile *file, size_t row_group, size_t column, void *out,
                           size_t count, struct qf_err *err)
{
    const Chunk &chunk = file->chunk(row_group, column);

    if (static_cast<size_t>(chunk.values) != count)
        return corrupt(file, "a column has the wrong number of values", err);
    return guarded(file, err, [&]() -> qf_rc {
        std::shared_ptr<arrow::Buffer> buffer;
        qf_rc rc = load_chunk(file, chunk, &buffer, err);

        if (rc != QF_OK)
            return rc;
        const parquet::ColumnDescriptor *descr =
            file->meta->schema()->Column(static_cast<int>(column));
        auto reader = parquet::ColumnReader::Make(descr, open_pages(file, column, chunk, buffer));

        switch (descr->physical_type()) {
        case parquet::Type::INT32:
            return decode<parquet::Int32Reader>(file, reader.get(), static_cast<int32_t *>(out),
                                                count, err);
        case parquet::Type::INT64:
            return decode<parquet::Int64Reader>(file, reader.get(), static_cast<int64_t *>(out),
                                                count, err);
        case parquet::Type::DOUBLE:
            return decode<parquet::DoubleReader>(file, reader.get(), static_cast<double *>(out),
                                                 count, err);
        default:
            return corrupt(file, "not a column of numbers", err);
        }
    });
}

namespace
{

/* What colfile_texts points into. */
struct Texts {
    struct colfile_texts view = {};
    std::vector<qf_str> distinct;
    std::vector<uint32_t> index, starts;
    std::string copies;
};

/* Row starts from levels: a repetition level of 0 begins a row, a definition level of 0 is a row
 * without a value. */
void add_levels(Texts *texts, const int16_t *definition, const int16_t *repetition, int64_t count,
                bool repeated, uint32_t *values)
{
    for (int64_t i = 0; i < count; i++) {
        if (!repeated || repetition[i] == 0)
            texts->starts.push_back(*values);
        *values += definition[i] != 0;
    }
}

/* Pages that are not dictionary-encoded: keep copies. Offsets first, since the copies may move. */
void read_plain(parquet::ByteArrayReader *reader, Texts *texts, bool leveled, bool repeated)
{
    constexpr int64_t kBatch = 1024;
    std::vector<int16_t> definition(kBatch), repetition(kBatch);
    std::vector<parquet::ByteArray> values(kBatch);
    std::vector<size_t> lengths;
    uint32_t seen = 0;

    while (reader->HasNext()) {
        int64_t got = 0;
        int64_t levels =
            reader->ReadBatch(kBatch, leveled ? definition.data() : nullptr,
                              repeated ? repetition.data() : nullptr, values.data(), &got);

        if (levels <= 0 && got <= 0)
            throw parquet::ParquetException("a page has too few values");
        if (leveled)
            add_levels(texts, definition.data(), repetition.data(), levels, repeated, &seen);
        for (int64_t i = 0; i < got; i++) {
            texts->copies.append(reinterpret_cast<const char *>(values[i].ptr), values[i].len);
            lengths.push_back(values[i].len);
        }
    }
    const char *at = texts->copies.data();
    for (size_t i = 0; i < lengths.size(); i++) {
        texts->distinct.push_back({ at, lengths[i] });
        texts->index.push_back(static_cast<uint32_t>(i));
        at += lengths[i];
    }
}

/* Dictionary-encoded pages all the way: the dictionary once, then indexes. */
void read_dictionary(parquet::ByteArrayReader *reader, Texts *texts, bool leveled, bool repeated)
{
    constexpr int64_t kBatch = 1024;
    std::vector<int16_t> definition(kBatch), repetition(kBatch);
    std::vector<int32_t> indices(kBatch);
    uint32_t seen = 0;

    while (reader->HasNext()) {
        const parquet::ByteArray *dictionary = nullptr;
        int32_t dictionary_size = 0;
        int64_t got = 0;
        int64_t levels = reader->ReadBatchWithDictionary(
            kBatch, leveled ? definition.data() : nullptr, repeated ? repetition.data() : nullptr,
            indices.data(), &got, &dictionary, &dictionary_size);

        if (levels <= 0 && got <= 0)
            throw parquet::ParquetException("a page has too few values");
        if (leveled)
            add_levels(texts, definition.data(), repetition.data(), levels, repeated, &seen);
        if (texts->distinct.empty() && dictionary_size > 0) {
            size_t total = 0;

            for (int32_t i = 0; i < dictionary_size; i++)
                total += dictionary[i].len;
            texts->copies.reserve(total);
            for (int32_t i = 0; i < dictionary_size; i++) {
                const char *at = texts->copies.data() + texts->copies.size();

                texts->copies.append(reinterpret_cast<const char *>(dictionary[i].ptr),
                                     dictionary[i].len);
                texts->distinct.push_back({ at, dictionary[i].len });
            }
        }
        for (int64_t i = 0; i < got; i++) {
            if (indices[i] < 0 || static_cast<size_t>(indices[i]) >= texts->distinct.size())
                throw parquet::ParquetException("a dictionary index is out of range");
            texts->index.push_back(static_cast<uint32_t>(indices[i]));
        }
    }
}

} /* namespace */

struct colfile_texts *colfile_read_texts(const struct colfile *file, size_t row_group,
                                         size_t column, struct qf_err *err)
{
    const Chunk &chunk = file->chunk(row_group, column);
    auto texts = std::make_unique<Texts>();
    size_t rows = colfile_rows(file, row_group);
    qf_rc rc = guarded(file, err, [&]() -> qf_rc {
        std::shared_ptr<arrow::Buffer> buffer;
        qf_rc loaded = load_chunk(file, chunk, &buffer, err);

        if (loaded != QF_OK)
            return loaded;
        const parquet::ColumnDescriptor *descr =
            file->meta->schema()->Column(static_cast<int>(column));
        if (descr->physical_type() != parquet::Type::BYTE_ARRAY)
            return corrupt(file, "not a column of text", err);
        bool leveled = descr->max_definition_level() > 0;
        bool repeated = descr->max_repetition_level() > 0;
        auto encodings = file->meta->RowGroup(static_cast<int>(row_group))
                             ->ColumnChunk(static_cast<int>(column))
                             ->encoding_stats();
        bool dictionary = !encodings.empty();
        for (const auto &stats : encodings)
            if (stats.page_type != parquet::PageType::DICTIONARY_PAGE &&
                stats.encoding != parquet::Encoding::RLE_DICTIONARY &&
                stats.encoding != parquet::Encoding::PLAIN_DICTIONARY)
                dictionary = false;
        auto reader = parquet::ColumnReader::Make(descr, open_pages(file, column, chunk, buffer));
        auto typed = static_cast<parquet::ByteArrayReader *>(reader.get());

        if (dictionary)
            read_dictionary(typed, texts.get(), leveled, repeated);
        else
            read_plain(typed, texts.get(), leveled, repeated);
        if (leveled ? texts->starts.size() != rows : texts->index.size() != rows)
            return corrupt(file, "a column has the wrong number of rows", err);
        texts->starts.push_back(static_cast<uint32_t>(texts->index.size()));
        texts->view = { texts->distinct.data(),
                        texts->distinct.size(),
                        texts->index.data(),
                        texts->index.size(),
                        leveled ? texts->starts.data() : nullptr,
                        rows };
        return QF_OK;
    });

    if (rc != QF_OK)
        return nullptr;
    return &texts.release()->view;
}

struct colfile_texts *colfile_texts_free(struct colfile_texts *texts)
{
    /* The view is the first member. */
    delete reinterpret_cast<Texts *>(texts);
    return nullptr;
}
