/* shim_write.cc - column chunks from arrays. */
#include <cstddef>
#include <vector>

#include <arrow/util/key_value_metadata.h>
#include <arrow-glib/output-stream.hpp>
#include <parquet/column_writer.h>
#include <parquet/file_writer.h>
#include <parquet/metadata.h>
#include <parquet-glib/arrow-file-writer.hpp>

#include "segments/parquet/shim.h"
#include "segments/parquet/shim_guard.h"
#include "segments/parquet/shim_schema.h"

static_assert(sizeof(shim_bytes) == sizeof(parquet::ByteArray) &&
              offsetof(shim_bytes, data) == offsetof(parquet::ByteArray, ptr));

/* Pages compressed only where that leaves enough less of them. Arrow keeps a page of version 2 as it
 * was if its compressed form is no smaller, so a gain that is not worth it is made to look like none.
 */
class choosy_pages : public parquet::PageWriter
{
  public:
    choosy_pages(std::unique_ptr<parquet::PageWriter> below, unsigned percent)
        : below_(std::move(below)), percent_(percent)
    {
    }

    void Close(bool has_dictionary, bool fallback) override
    {
        below_->Close(has_dictionary, fallback);
    }
    int64_t WriteDataPage(const parquet::DataPage &page) override
    {
        return below_->WriteDataPage(page);
    }
    int64_t WriteDictionaryPage(const parquet::DictionaryPage &page) override
    {
        return below_->WriteDictionaryPage(page);
    }
    int64_t total_compressed_bytes_written() const override
    {
        return below_->total_compressed_bytes_written();
    }
    bool has_compressor() override
    {
        return below_->has_compressor();
    }
    void Compress(const arrow::Buffer &in, arrow::ResizableBuffer *out) override
    {
        below_->Compress(in, out);
        if (out->size() * 100 >= in.size() * static_cast<int64_t>(percent_))
            PARQUET_THROW_NOT_OK(out->Resize(in.size(), false));
    }

  private:
    std::unique_ptr<parquet::PageWriter> below_;
    unsigned percent_;
};

/* What parquet::ParquetFileWriter does, which has no place for pages that choose. */
struct shim_writer {
    std::shared_ptr<arrow::KeyValueMetadata> meta = std::make_shared<arrow::KeyValueMetadata>();
    std::shared_ptr<arrow::io::OutputStream> sink;
    std::shared_ptr<parquet::WriterProperties> properties;
    std::vector<unsigned> compress_below; /* per column */
    parquet::SchemaDescriptor schema;
    std::unique_ptr<parquet::FileMetaDataBuilder> file;
    parquet::RowGroupMetaDataBuilder *group = nullptr;
    int16_t group_count = 0;
    int column = 0;
    int64_t group_bytes = 0;
};

qf_rc shim_writer_new(GArrowOutputStream *sink, GParquetWriterProperties *properties,
                      const struct colfile_schema *schema, char *const *paths,
                      struct shim_writer **ret_writer, struct qf_err *err)
{
    return shim_guard(QF_EIO, err, [&] {
        auto writer = std::make_unique<shim_writer>();

        writer->sink = garrow_output_stream_get_raw(sink);
        writer->properties =
            shim_properties(*gparquet_writer_properties_get_raw(properties), *schema, paths);
        for (size_t i = 0; i < schema->column_count; i++)
            writer->compress_below.push_back(schema->columns[i].compress_below);
        writer->schema.Init(shim_schema(*schema));
        writer->file = parquet::FileMetaDataBuilder::Make(&writer->schema, writer->properties);
        PARQUET_THROW_NOT_OK(writer->sink->Write("PAR1", 4));
        *ret_writer = writer.release();
    });
}

void shim_writer_free(struct shim_writer *writer)
{
    (void)shim_guard(QF_EIO, nullptr, [&] { delete writer; });
}

static void end_group(struct shim_writer *writer)
{
    if (writer->group)
        writer->group->Finish(writer->group_bytes, writer->group_count++);
    writer->group = nullptr;
}

qf_rc shim_group_begin(struct shim_writer *writer, struct qf_err *err)
{
    return shim_guard(QF_EIO, err, [&] {
        end_group(writer);
        writer->group = writer->file->AppendRowGroup();
        writer->group_bytes = writer->column = 0;
    });
}

static std::shared_ptr<parquet::ColumnWriter> next_column(struct shim_writer *writer)
{
    parquet::ColumnChunkMetaDataBuilder *chunk = writer->group->NextColumnChunk();
    const auto &path = chunk->descr()->path();
    auto options = writer->properties->codec_options(path);
    unsigned below = writer->compress_below[static_cast<size_t>(writer->column)];
    auto pages = parquet::PageWriter::Open(
        writer->sink, writer->properties->compression(path), chunk, writer->group_count,
        static_cast<int16_t>(writer->column), arrow::default_memory_pool(), false, nullptr, nullptr,
        writer->properties->page_checksum_enabled(), nullptr, nullptr,
        options ? *options : parquet::CodecOptions{});

    writer->column++;
    if (below)
        pages = std::make_unique<choosy_pages>(std::move(pages), below);
    return parquet::ColumnWriter::Make(chunk, std::move(pages), writer->properties.get());
}

template <typename Type>
static void write(parquet::ColumnWriter *column, const struct shim_values *in)
{
    static_cast<parquet::TypedColumnWriter<Type> *>(column)->WriteBatch(
        in->count, in->definition, in->repetition,
        static_cast<const typename Type::c_type *>(in->values));
}

qf_rc shim_column_write(struct shim_writer *writer, enum shim_type type,
                        const struct shim_values *values, struct qf_err *err)
{
    return shim_guard(QF_EIO, err, [&] {
        auto column = next_column(writer);

        (type == SHIM_I32   ? write<parquet::Int32Type>
         : type == SHIM_I64 ? write<parquet::Int64Type>
         : type == SHIM_F64 ? write<parquet::DoubleType>
                            : write<parquet::ByteArrayType>)(column.get(), values);
        writer->group_bytes += column->Close();
        writer->group->set_num_rows(column->rows_written());
    });
}

void shim_writer_meta(struct shim_writer *writer, struct qf_str key, struct qf_str value)
{
    writer->meta->Append(std::string(key.data, key.len), std::string(value.data, value.len));
}

qf_rc shim_writer_close(struct shim_writer *writer, struct qf_err *err)
{
    return shim_guard(QF_EIO, err, [&] {
        end_group(writer);
        parquet::WriteFileMetaData(*writer->file->Finish(writer->meta), writer->sink.get());
    });
}
