/* shim_meta.cc - what Arrow GLib does not tell of a file's metadata. */
#include <algorithm>

#include <arrow/util/key_value_metadata.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>
#include <parquet-glib/metadata.hpp>

#include "segments/parquet/shim.h"
#include "segments/parquet/shim_guard.h"

static_assert(int{ SHIM_I32 } == parquet::Type::INT32 && int{ SHIM_I64 } == parquet::Type::INT64 &&
              int{ SHIM_F64 } == parquet::Type::DOUBLE &&
              int{ SHIM_BYTES } == parquet::Type::BYTE_ARRAY);

static_assert(int{ SHIM_RAW } == arrow::Compression::UNCOMPRESSED &&
              int{ SHIM_ZSTD } == arrow::Compression::ZSTD &&
              int{ SHIM_LZ4 } == arrow::Compression::LZ4);

qf_rc shim_meta_parse(struct qf_str footer, GParquetFileMetadata **ret_meta, struct qf_err *err)
{
    return shim_guard(QF_ECORRUPT, err, [&] {
        uint32_t length = static_cast<uint32_t>(footer.len);
        parquet::ReaderProperties properties;

        /* The series table of an artifact is one string, and may be most of the file. No string is
         * longer than the footer, which is here already. */
        properties.set_thrift_string_size_limit(INT32_MAX);
        std::shared_ptr<parquet::FileMetaData> meta =
            parquet::FileMetaData::Make(footer.data, &length, properties);

        *ret_meta = gparquet_file_metadata_new_raw(&meta);
    });
}

struct qf_str shim_meta_value(GParquetFileMetadata *meta, const char *key)
{
    auto pairs = gparquet_file_metadata_get_raw(meta)->key_value_metadata();
    int i = pairs ? pairs->FindKey(key) : -1;

    return i < 0 ? qf_str{ nullptr, 0 } : qf_str{ pairs->value(i).data(), pairs->value(i).size() };
}

void shim_meta_leaf(GParquetFileMetadata *meta, int column, struct shim_leaf *ret_leaf)
{
    const parquet::SchemaDescriptor *schema = gparquet_file_metadata_get_raw(meta)->schema();
    const parquet::ColumnDescriptor *leaf = schema->Column(column);

    ret_leaf->name = schema->GetColumnRoot(column)->name().c_str();
    ret_leaf->type = leaf->physical_type();
    ret_leaf->definition_max = leaf->max_definition_level();
    ret_leaf->repetition_max = leaf->max_repetition_level();
}

static bool holds_indexes(const parquet::PageEncodingStats &page)
{
    return page.page_type == parquet::PageType::DICTIONARY_PAGE ||
           page.encoding == parquet::Encoding::RLE_DICTIONARY ||
           page.encoding == parquet::Encoding::PLAIN_DICTIONARY;
}

qf_rc shim_meta_chunk(GParquetFileMetadata *meta, int row_group, int column,
                      struct shim_chunk *ret_chunk, struct qf_err *err)
{
    return shim_guard(QF_ECORRUPT, err, [&] {
        auto group = gparquet_file_metadata_get_raw(meta)->RowGroup(row_group);
        auto chunk = group->ColumnChunk(column);
        const auto &pages = chunk->encoding_stats();

        ret_chunk->rows = group->num_rows();
        ret_chunk->data_start = chunk->data_page_offset();
        ret_chunk->dictionary_start =
            chunk->has_dictionary_page() ? chunk->dictionary_page_offset() : INT64_MAX;
        ret_chunk->size = chunk->total_compressed_size();
        ret_chunk->values = chunk->num_values();
        ret_chunk->codec = static_cast<int>(chunk->compression());
        ret_chunk->only_indexes =
            !pages.empty() && std::all_of(pages.begin(), pages.end(), holds_indexes);
    });
}

qf_rc shim_meta_range(GParquetFileMetadata *meta, int row_group, int column, struct qf_strbuf *min,
                      struct qf_strbuf *max, bool *ret_found, struct qf_err *err)
{
    return shim_guard(QF_ECORRUPT, err, [&] {
        auto group = gparquet_file_metadata_get_raw(meta)->RowGroup(row_group);
        auto chunk = group->ColumnChunk(column);
        auto found = chunk->encoded_statistics();

        *ret_found = found && found->has_min && found->has_max;
        if (*ret_found) {
            qf_strbuf_add(min, found->min().data(), found->min().size());
            qf_strbuf_add(max, found->max().data(), found->max().size());
        }
    });
}
