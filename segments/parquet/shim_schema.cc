/* shim_schema.cc - the schema and the encodings of a file to write. */
#include "segments/parquet/shim.h"
#include "segments/parquet/shim_schema.h"

using parquet::Encoding;
using parquet::LogicalType;
using parquet::Repetition;
using parquet::schema::GroupNode;
using parquet::schema::NodePtr;
using parquet::schema::NodeVector;
using parquet::schema::PrimitiveNode;

static NodePtr leaf(const colfile_column &column, const char *name, Repetition::type repetition)
{
    return PrimitiveNode::Make(name, repetition,
                               column.type == COLFILE_TEXT ? LogicalType::String() : nullptr,
                               static_cast<parquet::Type::type>(shim_type_of(column.type)));
}

/* A list or a map: a group around the repeated group @name of @leaves. */
static NodePtr nested(const colfile_column &column, const char *name, const NodeVector &leaves,
                      const std::shared_ptr<const LogicalType> &type)
{
    return GroupNode::Make(column.name, Repetition::REQUIRED,
                           { GroupNode::Make(name, Repetition::REPEATED, leaves) }, type);
}

static NodePtr field(const colfile_column *column)
{
    switch (column->shape) {
    case COLFILE_LIST:
        return nested(*column, "list", { leaf(*column, "element", Repetition::REQUIRED) },
                      LogicalType::List());
    case COLFILE_MAP_KEY:
        return nested(*column, "key_value",
                      { leaf(column[0], "key", Repetition::REQUIRED),
                        leaf(column[1], "value", Repetition::REQUIRED) },
                      LogicalType::Map());
    case COLFILE_OPTIONAL:
        return leaf(*column, column->name, Repetition::OPTIONAL);
    default:
        return leaf(*column, column->name, Repetition::REQUIRED);
    }
}

std::shared_ptr<GroupNode> shim_schema(const colfile_schema &schema)
{
    NodeVector fields;

    for (size_t i = 0; i < schema.column_count; i++)
        if (schema.columns[i].shape != COLFILE_MAP_VALUE)
            fields.push_back(field(&schema.columns[i]));
    return std::static_pointer_cast<GroupNode>(
        GroupNode::Make("schema", Repetition::REQUIRED, fields));
}

std::shared_ptr<parquet::WriterProperties> shim_properties(const parquet::WriterProperties &base,
                                                           const colfile_schema &schema,
                                                           char *const *paths)
{
    static const Encoding::type encodings[] = { Encoding::PLAIN, Encoding::PLAIN,
                                                Encoding::DELTA_BINARY_PACKED,
                                                Encoding::BYTE_STREAM_SPLIT };
    parquet::WriterProperties::Builder builder(base);

    builder.version(parquet::ParquetVersion::PARQUET_2_6)->created_by("promfabric");
    /* A page index would lie behind the chunks, where nothing but the seal may be. */
    builder.disable_statistics()->disable_write_page_index();
    builder.set_size_statistics_level(parquet::SizeStatisticsLevel::None);
    builder.max_rows_per_page(INT64_MAX); /* Pages are cut by size alone. */
    if (schema.pages_v2)
        builder.data_page_version(parquet::ParquetDataPageVersion::V2);
    if (schema.page_checksums)
        builder.enable_page_checksum();
    for (size_t i = 0; i < schema.column_count; i++) {
        builder.encoding(paths[i], encodings[schema.columns[i].encoding]);
        if (schema.columns[i].codec == COLFILE_ZSTD)
            builder.compression_level(paths[i], 1);
        if (schema.columns[i].statistics)
            builder.enable_statistics(paths[i]);
    }
    return builder.build();
}
