/* segment_meta.c - the schema of segments and what their metadata say. */
#include "base/pure/number.h"
#include "segments/parquet/contents.h"
#include "segments/parquet/summary.h"
#include "segments/parquet/seg_int.h"

/* Chosen by measurement: docs/decisions/0004-segment-format.md. */
static const struct colfile_column columns_v1[SG_COL__COUNT_V1] = {
    [SG_COL_METRIC] = { "metric", COLFILE_TEXT, COLFILE_FLAT, COLFILE_DICTIONARY, COLFILE_RAW,
                        true },
    [SG_COL_LABEL_NAMES] = { "labels", COLFILE_TEXT, COLFILE_MAP_KEY, COLFILE_DICTIONARY,
                             COLFILE_LZ4, false },
    [SG_COL_LABEL_VALUES] = { "labels", COLFILE_TEXT, COLFILE_MAP_VALUE, COLFILE_DICTIONARY,
                              COLFILE_LZ4, false },
    [SG_COL_SAMPLES] = { "samples", COLFILE_I32, COLFILE_FLAT, COLFILE_DELTA, COLFILE_RAW, false },
    [SG_COL_MIN_TS] = { "min_ts", COLFILE_I64, COLFILE_FLAT, COLFILE_DELTA, COLFILE_RAW, true },
    [SG_COL_MAX_TS] = { "max_ts", COLFILE_I64, COLFILE_FLAT, COLFILE_DELTA, COLFILE_RAW, true },
    [SG_COL_TS] = { "ts", COLFILE_I64, COLFILE_LIST, COLFILE_DELTA, COLFILE_ZSTD, false },
    [SG_COL_VALUE] = { "value", COLFILE_F64, COLFILE_LIST, COLFILE_SPLIT, COLFILE_ZSTD, false },
};
/* Those of version 2 that differ or are new: docs/decisions/0037-decimals-in-segments.md. */
static const struct colfile_column ts_v2 = {
    "ts", COLFILE_I64, COLFILE_LIST, COLFILE_DELTA, COLFILE_LZ4, false, 80
};
static const struct colfile_column value_v2 = {
    "value", COLFILE_F64, COLFILE_LIST, COLFILE_SPLIT, COLFILE_ZSTD, false, 90
};
static const struct colfile_column scale_v2 = {
    "scale", COLFILE_I32, COLFILE_FLAT, COLFILE_DELTA, COLFILE_RAW, false, 0
};
static const struct colfile_column last_v2 = {
    "last", COLFILE_I64, COLFILE_FLAT, COLFILE_DELTA, COLFILE_RAW, false, 0
};
static const struct colfile_column digits_v2 = {
    "digits", COLFILE_I64, COLFILE_LIST, COLFILE_DELTA, COLFILE_RAW, false, 0
};
/* Their statistics tell row groups without any, which are most, even in a file that has some. */
static const struct colfile_column start_column = {
    "start_ts", COLFILE_I64, COLFILE_LIST, COLFILE_DELTA, COLFILE_ZSTD, true, 0
};
static const struct colfile_column histogram_column = {
    "histogram", COLFILE_BYTES, COLFILE_LIST, COLFILE_PLAIN, COLFILE_ZSTD, true, 0
};

static size_t add_decimals(struct sg_schema *schema)
{
    schema->decimals = true;
    schema->columns[SG_COL_TS] = ts_v2;
    schema->columns[SG_COL_VALUE] = value_v2;
    schema->columns[SG_COL_SCALE] = scale_v2;
    schema->columns[SG_COL_LAST] = last_v2;
    schema->columns[SG_COL_DIGITS] = digits_v2;
    return SG_COL__COUNT;
}

void sg_schema_init(struct sg_schema *schema, uint32_t version, bool start_ts, bool histograms)
{
    size_t count = SG_COL__COUNT_V1;

    *schema = (struct sg_schema){ 0 };
    memcpy(schema->columns, columns_v1, sizeof(columns_v1));
    if (version >= 2)
        count = add_decimals(schema);
    if (start_ts) {
        schema->start_column = count;
        schema->columns[count++] = start_column;
    }
    if (histograms) {
        schema->histogram_column = count;
        schema->columns[count++] = histogram_column;
    }
    schema->file = (struct colfile_schema){
        .columns = schema->columns,
        .column_count = count,
        .page_bytes = 1u << 20, /* a whole chunk: zstd gains both ways */
        .page_checksums = true,
        .pages_v2 = version >= 2,
    };
}

qf_rc sg_schema_of(const struct colfile *file, uint32_t version, struct sg_schema *ret_schema,
                   struct qf_err *err)
{
    size_t extra = colfile_columns(file) - (version >= 2 ? SG_COL__COUNT : SG_COL__COUNT_V1);

    if (extra == 1) {
        sg_schema_init(ret_schema, version, true, false);
        if (colfile_check_schema(file, &ret_schema->file, NULL) == QF_OK)
            return QF_OK;
    }
    sg_schema_init(ret_schema, version, extra == 2, extra == 1 || extra == 2);
    return colfile_check_schema(file, &ret_schema->file, err);
}

bool sg_shard_count_valid(uint64_t shard_count)
{
    return shard_count >= 1 && shard_count <= SG_SHARDS_MAX &&
           (shard_count & (shard_count - 1)) == 0;
}

uint32_t sg_shard_of(struct qf_labels labels, uint32_t shard_count)
{
    return (uint32_t)(qf_labels_shard_hash(labels) & (shard_count - 1));
}

static bool meta_u64(const struct colfile *file, const char *key, uint64_t *ret_value)
{
    struct qf_str text = colfile_meta(file, key);

    return text.data && qf_parse_u64(text, ret_value);
}

static bool meta_i64(const struct colfile *file, const char *key, int64_t *ret_value)
{
    struct qf_str text = colfile_meta(file, key);

    return text.data && qf_parse_i64(text, ret_value);
}

qf_rc sg_meta_read(const struct colfile *file, struct sg_meta *ret_meta, struct qf_err *err)
{
    struct sg_meta meta = { 0 };
    uint64_t version, shard, shards;

    if (!meta_u64(file, SG_KEY_VERSION, &version))
        return qf_err_set(err, QF_ECORRUPT, "%s: not a segment", colfile_name(file));
    if (version < SG_SCHEMA_VERSION_MIN || version > SG_SCHEMA_VERSION)
        return qf_err_set(err, QF_EUNSUPPORTED,
                          "%s: schema version %llu; this build reads %d to %d", colfile_name(file),
                          (unsigned long long)version, SG_SCHEMA_VERSION_MIN, SG_SCHEMA_VERSION);
    meta.schema_version = (uint32_t)version;
    meta.name.tenant = colfile_meta(file, SG_KEY_TENANT);
    meta.summary = colfile_meta(file, SG_SUMMARY_KEY);
    meta.contents = colfile_meta(file, SG_CONTENTS_KEY);
    meta.replaces = colfile_meta(file, SG_KEY_REPLACES);
    meta.beside = colfile_meta(file, SG_KEY_BESIDE);
    if (!meta.name.tenant.data || !qf_tenant_valid(meta.name.tenant) ||
        !meta_u64(file, SG_KEY_SHARD, &shard) || !meta_u64(file, SG_KEY_SHARDS, &shards) ||
        !sg_shard_count_valid(shards) || shard >= shards ||
        !meta_i64(file, SG_KEY_MIN_TS, &meta.name.min_ts) ||
        !meta_i64(file, SG_KEY_MAX_TS, &meta.name.max_ts) ||
        !sg_times_fit(meta.name.min_ts, meta.name.max_ts) ||
        !meta_u64(file, SG_KEY_SERIES, &meta.series_count) ||
        !meta_u64(file, SG_KEY_SAMPLES, &meta.sample_count) ||
        !meta_u64(file, SG_KEY_GENERATION, &meta.name.generation) ||
        !meta_u64(file, SG_KEY_ID, &meta.name.id))
        return qf_err_set(err, QF_ECORRUPT, "%s: corrupt: malformed metadata", colfile_name(file));
    meta.name.shard = (uint32_t)shard;
    meta.name.shard_count = (uint32_t)shards;
    *ret_meta = meta;
    return QF_OK;
}

static void colfile_freep(struct colfile **file)
{
    (void)colfile_free(*file);
}

qf_rc sg_meta_from_tail(struct qf_arena *arena, const char *file, struct qf_str tail,
                        uint64_t file_size, struct sg_meta *ret_meta, uint64_t *ret_need,
                        struct qf_err *err)
{
    struct qf_err own = { 0 };
    struct sg_meta meta;
    qf_rc rc;

    if (!err)
        err = &own;
    QF_CLEANUP(colfile_freep)
    struct colfile *opened = colfile_open_tail(tail, file_size, file, ret_need, err);
    if (!opened)
        return *ret_need ? QF_OK : err->rc;
    rc = sg_meta_read(opened, &meta, err);
    if (rc != QF_OK)
        return rc;
    meta.name.tenant = qf_arena_str(arena, meta.name.tenant);
    meta.summary = qf_arena_str(arena, meta.summary);
    meta.contents = qf_arena_str(arena, meta.contents);
    meta.replaces = qf_arena_str(arena, meta.replaces);
    meta.beside = qf_arena_str(arena, meta.beside);
    if (qf_arena_failed(arena))
        return qf_err_set(err, QF_ELIMIT, "%s: too little memory for its metadata", file);
    *ret_meta = meta;
    return QF_OK;
}

bool sg_names_next(struct qf_str *names, struct qf_str *ret_name)
{
    const char *end = names->len ? memchr(names->data, '\n', names->len) : NULL;
    size_t len = end ? (size_t)(end - names->data) : names->len;

    *ret_name = qf_str_sub(*names, 0, len);
    *names = qf_str_sub(*names, end ? len + 1 : len, names->len);
    return ret_name->len > 0;
}

void sg_content_init(struct sg_content *content)
{
    XXH3_state_t **const states[] = { &content->labels, &content->ts, &content->values,
                                      &content->extras };

    *content = (struct sg_content){ 0 };
    for (size_t i = 0; i < QF_COUNT_OF(states); i++) {
        *states[i] = XXH3_createState();
        XXH3_64bits_reset(*states[i]);
    }
}

void sg_content_done(struct sg_content *content)
{
    XXH3_freeState(content->labels);
    XXH3_freeState(content->ts);
    XXH3_freeState(content->values);
    XXH3_freeState(content->extras);
    *content = (struct sg_content){ 0 };
}

static void add_extra(struct sg_content *content, uint64_t sample, uint64_t kind,
                      struct qf_str bytes)
{
    uint64_t head[] = { sample, kind, bytes.len };

    XXH3_64bits_update(content->extras, head, sizeof(head));
    XXH3_64bits_update(content->extras, bytes.data, bytes.len);
    content->any_extra = true;
}

void sg_content_add(struct sg_content *content, bool new_series, struct qf_str labels,
                    const struct sg_samples *samples)
{
    size_t count = samples->count;

    if (new_series) {
        /* Where its samples begin tells whose they are. */
        uint64_t head[] = { labels.len, content->samples };

        XXH3_64bits_update(content->labels, head, sizeof(head));
        XXH3_64bits_update(content->labels, labels.data, labels.len);
    }
    XXH3_64bits_update(content->ts, samples->ts, count * sizeof(*samples->ts));
    XXH3_64bits_update(content->values, samples->values, count * sizeof(*samples->values));
    /* Sample by sample, so that the id does not depend on how the samples were cut into rows. */
    for (size_t i = 0; i < count && (samples->start_ts || samples->histograms); i++) {
        const int64_t *start = samples->start_ts ? &samples->start_ts[i] : NULL;

        if (start && *start)
            add_extra(content, content->samples + i, 0,
                      (struct qf_str){ (const char *)start, sizeof(*start) });
        if (samples->histograms && samples->histograms[i].len)
            add_extra(content, content->samples + i, 1, samples->histograms[i]);
    }
    content->samples += count;
}

uint64_t sg_content_id(const struct sg_content *content)
{
    uint64_t parts[] = { XXH3_64bits_digest(content->labels), XXH3_64bits_digest(content->ts),
                         XXH3_64bits_digest(content->values), XXH3_64bits_digest(content->extras) };

    /* A segment of floats alone keeps the id it had before histograms and start timestamps
     * existed. */
    return XXH3_64bits(parts, (content->any_extra ? 4 : 3) * sizeof(parts[0]));
}
