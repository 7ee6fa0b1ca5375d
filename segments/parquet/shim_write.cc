/* shim_write.cc - column chunks from arrays. */
#include <cstddef>

#include <arrow/util/key_value_metadata.h>
#include <arrow-glib/output-stream.hpp>
#include <parquet/column_writer.h>
#include <parquet/file_writer.h>
#include <parquet-glib/arrow-file-writer.hpp>

#include "segments/parquet/shim.h"
#include "segments/parquet/shim_guard.h"
#include "segments/parquet/shim_schema.h"

static_assert(sizeof(shim_bytes) == sizeof(parquet::ByteArray) &&
              offsetof(shim_bytes, data) == offsetof(parquet::ByteArray, ptr));

struct shim_writer {
    std::shared_ptr<arrow::KeyValueMetadata> meta = std::make_shared<arrow::KeyValueMetadata>();
    std::unique_ptr<parquet::ParquetFileWriter> file;
    parquet::RowGroupWriter *group = nullptr;
};

qf_rc shim_writer_new(GArrowOutputStream *sink, GParquetWriterProperties *properties,
                      const struct colfile_schema *schema, char *const *paths,
                      struct shim_writer **ret_writer, struct qf_err *err)
{
    return shim_guard(QF_EIO, err, [&] {
        auto writer = std::make_unique<shim_writer>();

        writer->file = parquet::ParquetFileWriter::Open(
            garrow_output_stream_get_raw(sink), shim_schema(*schema),
            shim_properties(*gparquet_writer_properties_get_raw(properties), *schema, paths));
        *ret_writer = writer.release();
    });
}

void shim_writer_free(struct shim_writer *writer)
{
    (void)shim_guard(QF_EIO, nullptr, [&] { delete writer; });
}

qf_rc shim_group_begin(struct shim_writer *writer, struct qf_err *err)
{
    return shim_guard(QF_EIO, err, [&] { writer->group = writer->file->AppendRowGroup(); });
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
        parquet::ColumnWriter *column = writer->group->NextColumn();

        (type == SHIM_I32   ? write<parquet::Int32Type>
         : type == SHIM_I64 ? write<parquet::Int64Type>
         : type == SHIM_F64 ? write<parquet::DoubleType>
                            : write<parquet::ByteArrayType>)(column, values);
        column->Close();
    });
}

void shim_writer_meta(struct shim_writer *writer, struct qf_str key, struct qf_str value)
{
    writer->meta->Append(std::string(key.data, key.len), std::string(value.data, value.len));
}

qf_rc shim_writer_close(struct shim_writer *writer, struct qf_err *err)
{
    return shim_guard(QF_EIO, err, [&] {
        writer->file->AddKeyValueMetadata(writer->meta);
        writer->file->Close();
    });
}
