/* status.c - the answer of POST /v1/heads/status, from JSON. */
#include "queryapi/fresh/status.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "segments/parquet/segment_name.h"

#define ID_BYTES_MAX 128
#define NAME_BYTES_MAX 4096
#define URL_BYTES_MAX 1024

static struct qa_status *status_new(void)
{
    struct qa_status *status = qf_xcalloc(1, sizeof(*status));

    atomic_init(&status->refs, 1);
    status->arena = qf_arena_new(4 * QA_STATUS_BYTES_MAX);
    return status;
}

struct qa_status *qa_status_none(void)
{
    return status_new();
}

struct qa_status *qa_status_ref(struct qa_status *status)
{
    atomic_fetch_add_explicit(&status->refs, 1, memory_order_relaxed);
    return status;
}

struct qa_status *qa_status_drop(struct qa_status *status)
{
    if (!status || atomic_fetch_sub_explicit(&status->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    (void)qf_arena_free(status->arena);
    free(status);
    return NULL;
}

bool qa_range_overlaps(const struct qa_fresh_range *range, int64_t min_ts, int64_t max_ts)
{
    return range->min_ts <= max_ts && range->max_ts >= min_ts;
}

/* What is being read, with the first thing that is wrong with it. */
struct reader {
    struct qf_arena *arena;
    struct qf_err *err;
    qf_rc rc;
};

static void bad(struct reader *reader, const char *what)
{
    if (reader->rc == QF_OK)
        reader->rc = qf_err_set(reader->err, QF_EPROTO,
                                "an ingest node's status has no usable \"%s\"", what);
}

static struct qf_str text(struct reader *reader, const json_t *value, const char *what, size_t max)
{
    struct qf_str copy = { json_string_value(value), json_string_length(value) };

    if (!json_is_string(value) || copy.len > max || memchr(copy.data, '\0', copy.len)) {
        bad(reader, what);
        return QF_STR("");
    }
    copy = (struct qf_str){ qf_arena_cstr(reader->arena, copy), copy.len };
    if (!copy.data && reader->rc == QF_OK)
        reader->rc = qf_err_set(reader->err, QF_ELIMIT, "an ingest node's status is too large");
    return copy.data ? copy : QF_STR("");
}

static int64_t whole(struct reader *reader, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value))
        bad(reader, key);
    return json_integer_value(value);
}

static uint64_t count(struct reader *reader, const json_t *object, const char *key)
{
    int64_t value = whole(reader, object, key);

    if (value < 0)
        bad(reader, key);
    return value < 0 ? 0 : (uint64_t)value;
}

/* The elements of the array @key, at most @max; its length in *@ret_count, and room for as many of
 * @size bytes. */
static void *list(struct reader *reader, const json_t *object, const char *key, size_t size,
                  size_t *ret_count)
{
    const json_t *array = json_object_get(object, key);
    void *items;

    *ret_count = 0;
    if (!json_is_array(array)) {
        bad(reader, key);
        return NULL;
    }
    items = qf_arena_alloc(reader->arena, QF_MAX(json_array_size(array), (size_t)1) * size);
    if (!items && reader->rc == QF_OK)
        reader->rc = qf_err_set(reader->err, QF_ELIMIT, "an ingest node's status is too large");
    *ret_count = items ? json_array_size(array) : 0;
    return items;
}

static void read_files(struct reader *reader, const json_t *from, struct qa_fresh_partition *to)
{
    const json_t *array = json_object_get(from, "files");
    struct sg_catalog_file *files = list(reader, from, "files", sizeof(*files), &to->file_count);
    size_t kept = 0;

    for (size_t i = 0; i < to->file_count; i++) {
        const json_t *file = json_array_get(array, i);
        struct sg_segment_name name;

        files[kept] = (struct sg_catalog_file){
            .name = text(reader, json_object_get(file, "name"), "name", NAME_BYTES_MAX),
            .etag = text(reader, json_object_get(file, "etag"), "etag", NAME_BYTES_MAX),
            .size = count(reader, file, "size"),
        };
        if (!qf_str_starts(files[kept].name, QF_STR("tenant=")))
            continue; /* not samples: exemplars, metadata */
        if (reader->rc == QF_OK && !sg_segment_name_parse(files[kept].name, &name))
            bad(reader, "name");
        kept++;
    }
    to->file_count = kept;
    to->files = files;
}

static void read_ranges(struct reader *reader, const json_t *from, struct qa_fresh_partition *to)
{
    const json_t *array = json_object_get(from, "ranges");
    struct qa_fresh_range *ranges = list(reader, from, "ranges", sizeof(*ranges), &to->range_count);

    for (size_t i = 0; i < to->range_count; i++) {
        const json_t *range = json_array_get(array, i);

        ranges[i] = (struct qa_fresh_range){ .generation = count(reader, range, "generation"),
                                             .min_ts = whole(reader, range, "min_ts"),
                                             .max_ts = whole(reader, range, "max_ts"),
                                             .samples = count(reader, range, "samples") };
        if (ranges[i].samples && !sg_times_fit(ranges[i].min_ts, ranges[i].max_ts))
            bad(reader, "min_ts");
    }
    to->ranges = ranges;
}

static void read_replicas(struct reader *reader, const json_t *from, struct qa_fresh_partition *to)
{
    const json_t *array = json_object_get(from, "replicas");
    struct qf_str *replicas = list(reader, from, "replicas", sizeof(*replicas), &to->replica_count);

    if (to->replica_count > QA_REPLICAS_MAX)
        bad(reader, "replicas");
    for (size_t i = 0; i < to->replica_count && reader->rc == QF_OK; i++) {
        replicas[i] = text(reader, json_array_get(array, i), "replicas", URL_BYTES_MAX);
        if (!qf_str_starts(replicas[i], QF_STR("http://")) &&
            !qf_str_starts(replicas[i], QF_STR("https://")))
            bad(reader, "replicas");
    }
    if (to->range_count && !to->replica_count)
        bad(reader, "replicas");
    to->replicas = replicas;
}

static void read_partition(struct reader *reader, const json_t *from, struct qa_fresh_partition *to)
{
    const json_t *floor = json_object_get(from, "floor");

    to->queue = text(reader, json_object_get(from, "queue"), "queue", ID_BYTES_MAX);
    to->applied = count(reader, from, "applied");
    to->sealed_index = count(reader, from, "sealed_index");
    to->list = json_is_true(json_object_get(from, "list"));
    to->floor = json_is_integer(floor) ? json_integer_value(floor) : INT64_MIN;
    to->shards = (uint32_t)QF_MIN(count(reader, from, "shards"), (uint64_t)UINT32_MAX);
    if (to->shards == 0 || to->shards > SG_SHARDS_MAX || (to->shards & (to->shards - 1)))
        bad(reader, "shards");
    if (!to->queue.len)
        bad(reader, "queue");
    read_files(reader, from, to);
    read_ranges(reader, from, to);
    read_replicas(reader, from, to);
}

/* Every partition once: one that is missing would be samples that are missing. */
static void read_partitions(struct reader *reader, const json_t *root, struct qa_status *status)
{
    const json_t *array = json_object_get(root, "partitions");
    struct qa_fresh_partition *partitions;
    size_t parts = json_array_size(array);

    if (!json_is_array(array) || parts == 0 || parts > QA_PARTITIONS_MAX || (parts & (parts - 1))) {
        bad(reader, "partitions");
        return;
    }
    partitions = QF_ARENA_ARRAY(reader->arena, struct qa_fresh_partition, parts);
    if (!partitions) {
        reader->rc = qf_err_set(reader->err, QF_ELIMIT, "an ingest node's status is too large");
        return;
    }
    for (size_t i = 0; i < parts && reader->rc == QF_OK; i++) {
        const json_t *from = json_array_get(array, i);
        uint64_t number = count(reader, from, "partition");

        if (number >= parts || partitions[number].queue.len) {
            bad(reader, "partition");
            break;
        }
        partitions[number].number = (uint32_t)number;
        read_partition(reader, from, &partitions[number]);
        status->list |= partitions[number].list;
    }
    status->partitions = partitions;
    status->count = parts;
}

struct qa_status *qa_status_parse(struct qf_str json, struct qf_err *err)
{
    struct qa_status *status = status_new();
    struct reader reader = { .arena = status->arena, .err = err };
    json_error_t problem;
    json_t *root = json_loadb(json.data ? json.data : "", json.len, 0, &problem);

    if (!root) {
        reader.rc =
            qf_err_set(err, QF_EPROTO, "an ingest node's status is not JSON: %s", problem.text);
    } else {
        status->cluster = text(&reader, json_object_get(root, "cluster"), "cluster", ID_BYTES_MAX);
        status->epoch = (uint64_t)json_integer_value(json_object_get(root, "epoch"));
        status->query_timeout_ms = json_integer_value(json_object_get(root, "query_timeout_ms"));
        read_partitions(&reader, root, status);
    }
    json_decref(root);
    return reader.rc == QF_OK ? status : qa_status_drop(status);
}
