/* shim_schema.h - a colfile_schema in the terms of Parquet's C++ library (C++ only). */
#ifndef SEGMENTS_PARQUET_SHIM_SCHEMA_H
#define SEGMENTS_PARQUET_SHIM_SCHEMA_H

#include <memory>

#include <parquet/properties.h>
#include <parquet/schema.h>

#include "segments/parquet/column_file.h"

std::shared_ptr<parquet::schema::GroupNode> shim_schema(const colfile_schema &schema);
/* @base, and what Arrow GLib has no functions for. */
std::shared_ptr<parquet::WriterProperties> shim_properties(const parquet::WriterProperties &base,
                                                           const colfile_schema &schema,
                                                           char *const *paths);

#endif
