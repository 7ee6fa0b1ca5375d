/* shim_read.cc - column chunks to arrays. */
#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <parquet/column_reader.h>
#include <parquet/metadata.h>
#include <parquet-glib/metadata.hpp>

#include "segments/parquet/shim.h"
#include "segments/parquet/shim_guard.h"

struct shim_reader {
    std::shared_ptr<parquet::ColumnReader> column;
};

qf_rc shim_reader_new(GParquetFileMetadata *meta, int column, const struct shim_chunk *chunk,
                      const char *bytes, struct shim_reader **ret_reader, struct qf_err *err)
{
    return shim_guard(QF_ECORRUPT, err, [&] {
        auto leaf = gparquet_file_metadata_get_raw(meta)->schema()->Column(column);
        auto buffer = arrow::Buffer::Wrap(bytes, static_cast<size_t>(chunk->size));
        auto pages = parquet::PageReader::Open(std::make_shared<arrow::io::BufferReader>(buffer),
                                               chunk->values,
                                               static_cast<arrow::Compression::type>(chunk->codec),
                                               parquet::default_reader_properties(), *leaf);

        *ret_reader = new shim_reader{ parquet::ColumnReader::Make(leaf, std::move(pages)) };
    });
}

void shim_reader_free(struct shim_reader *reader)
{
    delete reader;
}

qf_rc shim_reader_more(struct shim_reader *reader, bool *ret_more, struct qf_err *err)
{
    return shim_guard(QF_ECORRUPT, err, [&] { *ret_more = reader->column->HasNext(); });
}

template <typename Type> static void read(parquet::ColumnReader *column, struct shim_batch *batch)
{
    batch->levels = static_cast<parquet::TypedColumnReader<Type> *>(column)->ReadBatch(
        batch->room, batch->definition, batch->repetition,
        static_cast<typename Type::c_type *>(batch->values), &batch->count);
}

qf_rc shim_reader_read(struct shim_reader *reader, enum shim_type type, struct shim_batch *batch,
                       struct qf_err *err)
{
    return shim_guard(QF_ECORRUPT, err, [&] {
        (type == SHIM_I32   ? read<parquet::Int32Type>
         : type == SHIM_I64 ? read<parquet::Int64Type>
         : type == SHIM_F64 ? read<parquet::DoubleType>
                            : read<parquet::ByteArrayType>)(reader->column.get(), batch);
    });
}

qf_rc shim_reader_read_indexes(struct shim_reader *reader, struct shim_batch *batch,
                               struct qf_err *err)
{
    return shim_guard(QF_ECORRUPT, err, [&] {
        batch->levels = static_cast<parquet::ByteArrayReader *>(reader->column.get())
                            ->ReadBatchWithDictionary(
                                batch->room, batch->definition, batch->repetition,
                                static_cast<int32_t *>(batch->values), &batch->count,
                                reinterpret_cast<const parquet::ByteArray **>(&batch->distinct),
                                &batch->distinct_count);
    });
}
