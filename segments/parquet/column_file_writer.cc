/* column_file_writer.cc - Parquet out: arrays to column chunks, sealed. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <arrow/io/interfaces.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/column_writer.h>
#include <parquet/file_writer.h>
#include <parquet/schema.h>
#include <xxhash.h>

#include "segments/parquet/column_file.h"

namespace
{

constexpr size_t kFlushBytes = size_t{ 1 } << 20;

/* Where Arrow's bytes go: a file or memory, hashed on the way. From begin_tail() on they are kept
 * back, so that the seal can be put in front of the footer. */
class Sink : public arrow::io::OutputStream
{
  public:
    explicit Sink(int fd) : fd_(fd), chunk_(XXH3_createState()), whole_(XXH3_createState())
    {
        XXH3_128bits_reset(whole_);
        begin_chunk();
    }
    ~Sink() override
    {
        XXH3_freeState(chunk_);
        XXH3_freeState(whole_);
    }
    arrow::Status Write(const void *data, int64_t size) override
    {
        position_ += size;
        if (in_tail_) {
            tail_.append(static_cast<const char *>(data), static_cast<size_t>(size));
            return arrow::Status::OK();
        }
        return append(data, static_cast<size_t>(size));
    }
    arrow::Status append(const void *data, size_t size)
    {
        XXH3_64bits_update(chunk_, data, size);
        XXH3_128bits_update(whole_, data, size);
        written_ += size;
        if (fd_ >= 0 && buffer_.size() + size > kFlushBytes)
            ARROW_RETURN_NOT_OK(flush());
        if (fd_ >= 0 && size > kFlushBytes)
            return put(data, size);
        buffer_.append(static_cast<const char *>(data), size);
        return arrow::Status::OK();
    }
    arrow::Status flush()
    {
        if (fd_ < 0)
            return arrow::Status::OK();
        ARROW_RETURN_NOT_OK(put(buffer_.data(), buffer_.size()));
        buffer_.clear();
        return arrow::Status::OK();
    }
    arrow::Status put(const void *data, size_t size)
    {
        const char *at = static_cast<const char *>(data);

        while (size > 0) {
            ssize_t done = write(fd_, at, size);

            if (done < 0 && errno == EINTR)
                continue;
            if (done <= 0) {
                error_ = done < 0 ? errno : EIO;
                return arrow::Status::IOError(std::strerror(error_));
            }
            at += done;
            size -= static_cast<size_t>(done);
        }
        return arrow::Status::OK();
    }
    arrow::Status Close() override
    {
        return arrow::Status::OK();
    }
    arrow::Result<int64_t> Tell() const override
    {
        return position_;
    }
    bool closed() const override
    {
        return false;
    }

    void begin_chunk()
    {
        XXH3_64bits_reset(chunk_);
    }
    uint64_t chunk_hash() const
    {
        return XXH3_64bits_digest(chunk_);
    }
    void begin_tail()
    {
        in_tail_ = true;
    }
    const std::string &tail() const
    {
        return tail_;
    }
    const std::string &memory() const
    {
        return buffer_;
    }
    uint64_t written() const
    {
        return written_;
    }
    XXH128_hash_t whole_hash() const
    {
        return XXH3_128bits_digest(whole_);
    }
    int error() const
    {
        return error_;
    }

  private:
    int fd_;
    int error_ = 0;
    XXH3_state_t *chunk_, *whole_;
    int64_t position_ = 0;
    uint64_t written_ = 0;
    bool in_tail_ = false;
    std::string buffer_, tail_;
};

using parquet::Encoding;
using parquet::LogicalType;
using parquet::Repetition;
using parquet::Type;
using parquet::schema::GroupNode;
using parquet::schema::NodePtr;
using parquet::schema::NodeVector;
using parquet::schema::PrimitiveNode;

NodePtr leaf(const colfile_column &column, const char *name, Repetition::type repetition)
{
    switch (column.type) {
    case COLFILE_I32:
        return PrimitiveNode::Make(name, repetition, Type::INT32);
    case COLFILE_I64:
        return PrimitiveNode::Make(name, repetition, Type::INT64);
    case COLFILE_F64:
        return PrimitiveNode::Make(name, repetition, Type::DOUBLE);
    case COLFILE_TEXT:
        return PrimitiveNode::Make(name, repetition, LogicalType::String(), Type::BYTE_ARRAY);
    case COLFILE_BYTES:
        return PrimitiveNode::Make(name, repetition, Type::BYTE_ARRAY);
    }
    throw parquet::ParquetException("no such type");
}

std::string path_of(const colfile_column &column)
{
    switch (column.shape) {
    case COLFILE_LIST:
        return std::string(column.name) + ".list.element";
    case COLFILE_MAP_KEY:
        return std::string(column.name) + ".key_value.key";
    case COLFILE_MAP_VALUE:
        return std::string(column.name) + ".key_value.value";
    case COLFILE_FLAT:
    case COLFILE_OPTIONAL:
        break;
    }
    return column.name;
}

std::shared_ptr<GroupNode> build_schema(const colfile_schema &schema)
{
    NodeVector fields;

    for (size_t i = 0; i < schema.column_count; i++) {
        const colfile_column &column = schema.columns[i];

        switch (column.shape) {
        case COLFILE_FLAT:
            fields.push_back(leaf(column, column.name, Repetition::REQUIRED));
            break;
        case COLFILE_OPTIONAL:
            fields.push_back(leaf(column, column.name, Repetition::OPTIONAL));
            break;
        case COLFILE_LIST: {
            NodePtr list = GroupNode::Make("list", Repetition::REPEATED,
                                           { leaf(column, "element", Repetition::REQUIRED) });
            fields.push_back(
                GroupNode::Make(column.name, Repetition::REQUIRED, { list }, LogicalType::List()));
            break;
        }
        case COLFILE_MAP_KEY: {
            NodePtr pair =
                GroupNode::Make("key_value", Repetition::REPEATED,
                                { leaf(column, "key", Repetition::REQUIRED),
                                  leaf(schema.columns[i + 1], "value", Repetition::REQUIRED) });
            fields.push_back(
                GroupNode::Make(column.name, Repetition::REQUIRED, { pair }, LogicalType::Map()));
            break;
        }
        case COLFILE_MAP_VALUE:
            break;
        }
    }
    return std::static_pointer_cast<GroupNode>(
        GroupNode::Make("schema", Repetition::REQUIRED, fields));
}

std::shared_ptr<parquet::WriterProperties> build_properties(const colfile_schema &schema)
{
    parquet::WriterProperties::Builder builder;

    builder.version(parquet::ParquetVersion::PARQUET_2_6);
    builder.created_by("promfabric");
    builder.disable_dictionary();
    builder.disable_statistics();
    /* It would lie behind the chunks, where nothing but the seal may be. */
    builder.disable_write_page_index();
    builder.set_size_statistics_level(parquet::SizeStatisticsLevel::None);
    builder.data_pagesize(static_cast<int64_t>(schema.page_bytes));
    /* Pages are cut by size alone; one dictionary per chunk, however many label values it has. */
    builder.max_rows_per_page(INT64_MAX);
    builder.dictionary_pagesize_limit(int64_t{ 64 } << 20);
    if (schema.page_checksums)
        builder.enable_page_checksum();
    for (size_t i = 0; i < schema.column_count; i++) {
        const colfile_column &column = schema.columns[i];
        std::string path = path_of(column);

        if (column.encoding == COLFILE_DICTIONARY)
            builder.enable_dictionary(path);
        else
            builder.encoding(path, column.encoding == COLFILE_DELTA ? Encoding::DELTA_BINARY_PACKED
                                   : column.encoding == COLFILE_SPLIT ? Encoding::BYTE_STREAM_SPLIT
                                                                      : Encoding::PLAIN);
        if (column.codec == COLFILE_LZ4) {
            builder.compression(path, parquet::Compression::LZ4);
        } else if (column.codec == COLFILE_ZSTD) {
            builder.compression(path, parquet::Compression::ZSTD);
            builder.compression_level(path, 1);
        }
        if (column.statistics)
            builder.enable_statistics(path);
    }
    return builder.build();
}

void put_u32(std::string &out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out.push_back(static_cast<char>(value >> (8 * i)));
}

void put_u64(std::string &out, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        out.push_back(static_cast<char>(value >> (8 * i)));
}

} /* namespace */

struct colfile_writer {
    std::string path;
    int fd = -1;
    bool finished = false;
    std::vector<colfile_column> columns;
    std::shared_ptr<Sink> sink;
    std::shared_ptr<arrow::KeyValueMetadata> meta;
    std::unique_ptr<parquet::ParquetFileWriter> writer;
    parquet::RowGroupWriter *group = nullptr;
    size_t next_column = 0;
    std::string hashes;
    uint32_t hash_count = 0;
    std::vector<int16_t> definition, repetition;
    std::vector<parquet::ByteArray> texts;
};

namespace
{

qf_rc failure(const colfile_writer *writer, const char *what, struct qf_err *err)
{
    int error = writer->sink ? writer->sink->error() : 0;
    qf_rc rc = error == ENOSPC || error == EDQUOT ? QF_ENOSPC : QF_EIO;

    return qf_err_set(err, rc, "%s: cannot write: %s",
                      writer->path.empty() ? "memory" : writer->path.c_str(), what);
}

/* Lists and maps: 1 (present) per value, 0 for an empty row; a row's first value repeats nothing.
 */
void build_levels(colfile_writer *writer, const colfile_data &data, bool repeated)
{
    writer->definition.clear();
    writer->repetition.clear();
    for (size_t row = 0; row < data.rows; row++) {
        uint32_t length = data.lengths[row];

        writer->definition.insert(writer->definition.end(), length ? length : 1, length ? 1 : 0);
        if (repeated) {
            writer->repetition.push_back(0);
            if (length > 1)
                writer->repetition.insert(writer->repetition.end(), length - 1, 1);
        }
    }
}

template <typename Typed, typename Value>
void write_values(colfile_writer *writer, parquet::ColumnWriter *out, const colfile_data &data,
                  const Value *values, enum colfile_shape shape)
{
    Typed *typed = static_cast<Typed *>(out);

    if (shape == COLFILE_FLAT) {
        typed->WriteBatch(static_cast<int64_t>(data.count), nullptr, nullptr, values);
        return;
    }
    build_levels(writer, data, shape != COLFILE_OPTIONAL);
    typed->WriteBatch(static_cast<int64_t>(writer->definition.size()), writer->definition.data(),
                      shape == COLFILE_OPTIONAL ? nullptr : writer->repetition.data(), values);
}

void write_column(colfile_writer *writer, parquet::ColumnWriter *out, const colfile_data &data,
                  const colfile_column &column)
{
    switch (column.type) {
    case COLFILE_I32:
        write_values<parquet::Int32Writer>(writer, out, data,
                                           static_cast<const int32_t *>(data.values), column.shape);
        return;
    case COLFILE_I64:
        write_values<parquet::Int64Writer>(writer, out, data,
                                           static_cast<const int64_t *>(data.values), column.shape);
        return;
    case COLFILE_F64:
        write_values<parquet::DoubleWriter>(writer, out, data,
                                            static_cast<const double *>(data.values), column.shape);
        return;
    case COLFILE_TEXT:
    case COLFILE_BYTES: {
        const qf_str *strings = static_cast<const qf_str *>(data.values);

        writer->texts.clear();
        for (size_t i = 0; i < data.count; i++)
            writer->texts.emplace_back(static_cast<uint32_t>(strings[i].len),
                                       reinterpret_cast<const uint8_t *>(strings[i].data));
        write_values<parquet::ByteArrayWriter>(writer, out, data, writer->texts.data(),
                                               column.shape);
        return;
    }
    }
}

/* The seal of column_file.h, whose own hash covers @tail as well. */
std::string build_seal(const colfile_writer *writer, uint64_t offset, const std::string &tail)
{
    std::string seal = writer->hashes;
    XXH3_state_t *state = XXH3_createState();

    seal += "PFCK";
    put_u32(seal, writer->hash_count);
    put_u64(seal, offset);
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, seal.data(), seal.size());
    XXH3_64bits_update(state, tail.data(), tail.size());
    put_u64(seal, XXH3_64bits_digest(state));
    XXH3_freeState(state);
    return seal;
}

qf_rc close_file(colfile_writer *writer, bool sync, struct qf_err *err)
{
    int fd = writer->fd;

    if (sync && fsync(fd) != 0)
        return failure(writer, std::strerror(errno), err);
    writer->fd = -1;
    if (close(fd) != 0)
        return failure(writer, std::strerror(errno), err);
    return QF_OK;
}

} /* namespace */

struct colfile_writer *colfile_writer_new(const struct colfile_schema *schema, const char *path,
                                          struct qf_err *err)
{
    auto writer = std::make_unique<colfile_writer>();

    if (path) {
        writer->path = path;
        writer->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd < 0) {
            qf_err_set(err,
                       errno == EEXIST   ? QF_EEXIST
                       : errno == ENOSPC ? QF_ENOSPC
                                         : QF_EIO,
                       "%s: cannot create: %s", path, std::strerror(errno));
            return nullptr;
        }
    }
    try {
        writer->columns.assign(schema->columns, schema->columns + schema->column_count);
        writer->sink = std::make_shared<Sink>(writer->fd);
        writer->writer = parquet::ParquetFileWriter::Open(writer->sink, build_schema(*schema),
                                                          build_properties(*schema));
        writer->meta = std::make_shared<arrow::KeyValueMetadata>();
    } catch (const std::exception &e) {
        failure(writer.get(), e.what(), err);
        colfile_writer_free(writer.release());
        return nullptr;
    }
    return writer.release();
}

struct colfile_writer *colfile_writer_free(struct colfile_writer *writer)
{
    if (!writer)
        return nullptr;
    if (!writer->finished) {
        try {
            writer->writer.reset();
        } catch (const std::exception &) {
            /* The destructor closes the file; nobody wants it any more. */
        }
        if (writer->fd >= 0)
            close(writer->fd);
        if (!writer->path.empty())
            unlink(writer->path.c_str());
    }
    delete writer;
    return nullptr;
}

qf_rc colfile_write(struct colfile_writer *writer, const struct colfile_data *data,
                    struct qf_err *err)
{
    try {
        if (writer->next_column == 0)
            writer->group = writer->writer->AppendRowGroup();
        parquet::ColumnWriter *out = writer->group->NextColumn();

        writer->sink->begin_chunk();
        write_column(writer, out, *data, writer->columns[writer->next_column]);
        out->Close();
        put_u64(writer->hashes, writer->sink->chunk_hash());
        writer->hash_count++;
        if (++writer->next_column == writer->columns.size()) {
            writer->group->Close();
            writer->next_column = 0;
        }
    } catch (const std::exception &e) {
        return failure(writer, e.what(), err);
    }
    return QF_OK;
}

void colfile_set_meta(struct colfile_writer *writer, struct qf_str key, struct qf_str value)
{
    writer->meta->Append(std::string(key.data ? key.data : "", key.len),
                         std::string(value.data ? value.data : "", value.len));
}

qf_rc colfile_finish(struct colfile_writer *writer, bool sync, struct qf_strbuf *buf,
                     struct colfile_written *ret_written, struct qf_err *err)
{
    try {
        uint64_t offset = writer->sink->written();
        XXH128_canonical_t canonical;
        arrow::Status status;

        writer->sink->begin_tail();
        writer->writer->AddKeyValueMetadata(writer->meta);
        writer->writer->Close();
        std::string seal = build_seal(writer, offset, writer->sink->tail());

        status = writer->sink->append(seal.data(), seal.size());
        if (status.ok())
            status = writer->sink->append(writer->sink->tail().data(), writer->sink->tail().size());
        if (status.ok())
            status = writer->sink->flush();
        if (!status.ok())
            return failure(writer, status.message().c_str(), err);
        ret_written->size = writer->sink->written();
        XXH128_canonicalFromHash(&canonical, writer->sink->whole_hash());
        std::memcpy(ret_written->hash, canonical.digest, sizeof(ret_written->hash));
    } catch (const std::exception &e) {
        return failure(writer, e.what(), err);
    }
    if (writer->fd >= 0) {
        qf_rc rc = close_file(writer, sync, err);

        if (rc)
            return rc;
    } else {
        qf_strbuf_add(buf, writer->sink->memory().data(), writer->sink->memory().size());
    }
    writer->finished = true;
    return QF_OK;
}
