/* shim_read.cc - column chunks to arrays. */
#include <algorithm>

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/memory_pool.h>
#include <parquet/column_page.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/metadata.h>
#include <parquet-glib/metadata.hpp>

#include "segments/parquet/shim.h"
#include "segments/parquet/shim_guard.h"

/* Arrow's memory up to a limit: sizes of pages and dictionaries are what the file says. */
class capped_pool : public arrow::MemoryPool
{
  public:
    explicit capped_pool(uint64_t limit)
        : limit_(static_cast<int64_t>(std::min<uint64_t>(limit, INT64_MAX)))
    {
    }

    arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t **out) override
    {
        ARROW_RETURN_NOT_OK(take(size));
        return settle(size, below_->Allocate(size, alignment, out));
    }
    arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                             uint8_t **ptr) override
    {
        int64_t more = new_size - old_size;

        ARROW_RETURN_NOT_OK(take(more));
        return settle(more, below_->Reallocate(old_size, new_size, alignment, ptr));
    }
    void Free(uint8_t *buffer, int64_t size, int64_t alignment) override
    {
        below_->Free(buffer, size, alignment);
        used_ -= size;
    }
    int64_t bytes_allocated() const override
    {
        return used_;
    }
    int64_t total_bytes_allocated() const override
    {
        return below_->total_bytes_allocated();
    }
    int64_t num_allocations() const override
    {
        return below_->num_allocations();
    }
    std::string backend_name() const override
    {
        return below_->backend_name();
    }
    bool refused() const
    {
        return refused_;
    }

  private:
    arrow::Status take(int64_t more)
    {
        if (more > 0 && more > limit_ - used_) {
            refused_ = true;
            return arrow::Status::OutOfMemory("the limit of a reader");
        }
        used_ += more;
        return arrow::Status::OK();
    }
    arrow::Status settle(int64_t more, arrow::Status status)
    {
        if (!status.ok())
            used_ -= more;
        return status;
    }

    arrow::MemoryPool *below_ = arrow::default_memory_pool();
    int64_t limit_, used_ = 0;
    bool refused_ = false;
};

static bool encoding_known(parquet::Encoding::type encoding)
{
    using parquet::Encoding;

    return encoding == Encoding::PLAIN || encoding == Encoding::RLE_DICTIONARY ||
           encoding == Encoding::PLAIN_DICTIONARY || encoding == Encoding::DELTA_BINARY_PACKED ||
           encoding == Encoding::BYTE_STREAM_SPLIT;
}

/* Pages as they come, if their encoding is one of those we write. */
class known_pages : public parquet::PageReader
{
  public:
    explicit known_pages(std::unique_ptr<parquet::PageReader> pages) : pages_(std::move(pages))
    {
    }

    std::shared_ptr<parquet::Page> NextPage() override
    {
        auto page = pages_->NextPage();

        if (page && !known(*page))
            throw parquet::ParquetException("a page has an unknown encoding");
        return page;
    }
    void set_max_page_header_size(uint32_t size) override
    {
        pages_->set_max_page_header_size(size);
    }

  private:
    static bool known(const parquet::Page &page)
    {
        if (page.type() == parquet::PageType::DICTIONARY_PAGE)
            return encoding_known(static_cast<const parquet::DictionaryPage &>(page).encoding());
        return encoding_known(static_cast<const parquet::DataPage &>(page).encoding());
    }

    std::unique_ptr<parquet::PageReader> pages_;
};

struct shim_reader {
    explicit shim_reader(uint64_t memory_max) : pool(memory_max)
    {
    }

    capped_pool pool; /* outlives the column, which gives back to it */
    std::shared_ptr<parquet::ColumnReader> column;
};

/* What is thrown because the pool refused is a matter of limits, whatever its words are. */
template <typename Fn> static qf_rc guard(shim_reader *reader, struct qf_err *err, Fn fn)
{
    struct qf_err own = {};
    qf_rc rc = shim_guard(QF_ECORRUPT, &own, fn);

    if (rc && reader->pool.refused())
        return qf_err_set(err, QF_ELIMIT, "decoding a page takes more memory than it may");
    return rc ? qf_err_set(err, rc, "%s", own.msg) : QF_OK;
}

qf_rc shim_reader_new(GParquetFileMetadata *meta, int column, const struct shim_chunk *chunk,
                      const char *bytes, uint64_t memory_max, struct shim_reader **ret_reader,
                      struct qf_err *err)
{
    auto *reader = new shim_reader(memory_max);
    qf_rc rc = guard(reader, err, [&] {
        auto leaf = gparquet_file_metadata_get_raw(meta)->schema()->Column(column);
        auto buffer = arrow::Buffer::Wrap(bytes, static_cast<size_t>(chunk->size));
        parquet::ReaderProperties properties(&reader->pool);
        auto pages = parquet::PageReader::Open(
            std::make_shared<arrow::io::BufferReader>(buffer), chunk->values,
            static_cast<arrow::Compression::type>(chunk->codec), properties, *leaf);

        reader->column = parquet::ColumnReader::Make(
            leaf, std::make_unique<known_pages>(std::move(pages)), &reader->pool);
    });

    if (rc)
        delete reader;
    else
        *ret_reader = reader;
    return rc;
}

void shim_reader_free(struct shim_reader *reader)
{
    delete reader;
}

qf_rc shim_reader_more(struct shim_reader *reader, bool *ret_more, struct qf_err *err)
{
    return guard(reader, err, [&] { *ret_more = reader->column->HasNext(); });
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
    return guard(reader, err, [&] {
        (type == SHIM_I32   ? read<parquet::Int32Type>
         : type == SHIM_I64 ? read<parquet::Int64Type>
         : type == SHIM_F64 ? read<parquet::DoubleType>
                            : read<parquet::ByteArrayType>)(reader->column.get(), batch);
    });
}

qf_rc shim_reader_read_indexes(struct shim_reader *reader, struct shim_batch *batch,
                               struct qf_err *err)
{
    return guard(reader, err, [&] {
        batch->levels = static_cast<parquet::ByteArrayReader *>(reader->column.get())
                            ->ReadBatchWithDictionary(
                                batch->room, batch->definition, batch->repetition,
                                static_cast<int32_t *>(batch->values), &batch->count,
                                reinterpret_cast<const parquet::ByteArray **>(&batch->distinct),
                                &batch->distinct_count);
    });
}
