/* maps.c - the answer of POST /v1/state/info, from JSON. */
#include "queryapi/fresh/maps.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"

#define NAME_BYTES_MAX 128
#define METRIC_BYTES_MAX 200
#define URL_BYTES_MAX 1024
/* Ages beyond this are as good as this. */
#define AGE_MS_MAX (INT64_C(1) << 50)
#define INTERVAL_MS_MAX 3600000

struct qa_maps *qa_maps_none(int64_t now_ms)
{
    struct qa_maps *maps = qf_xcalloc(1, sizeof(*maps));

    atomic_init(&maps->refs, 1);
    maps->arena = qf_arena_new(4 * QA_MAPS_BYTES_MAX);
    maps->heard_ms = now_ms;
    return maps;
}

struct qa_maps *qa_maps_ref(struct qa_maps *maps)
{
    if (maps)
        atomic_fetch_add_explicit(&maps->refs, 1, memory_order_relaxed);
    return maps;
}

struct qa_maps *qa_maps_drop(struct qa_maps *maps)
{
    if (!maps || atomic_fetch_sub_explicit(&maps->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    (void)qf_arena_free(maps->arena);
    free(maps);
    return NULL;
}

int64_t qa_maps_age(const struct qa_maps *maps, const struct qa_map *map, int64_t now_ms)
{
    return maps->age_ms + map->behind_ms + QF_MAX(now_ms - maps->heard_ms, INT64_C(0));
}

/* --- reading; false: not as it should be --- */

static bool read_text(struct qf_arena *arena, const json_t *value, size_t max, struct qf_str *ret)
{
    struct qf_str text = { json_string_value(value), json_string_length(value) };

    if (!json_is_string(value) || !text.len || text.len > max || memchr(text.data, 0, text.len))
        return false;
    *ret = qf_arena_str(arena, text);
    return ret->data != NULL;
}

static bool read_number(const json_t *object, const char *key, uint64_t *ret)
{
    const json_t *value = json_object_get(object, key);

    *ret = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool read_ms(const json_t *object, const char *key, int64_t max, int64_t *ret)
{
    uint64_t value;
    bool is_one = read_number(object, key, &value);

    *ret = (int64_t)QF_MIN(value, (uint64_t)max);
    return is_one;
}

static bool read_map(struct qf_arena *arena, const json_t *from, struct qa_map *to)
{
    to->short_keys = json_is_true(json_object_get(from, "short_keys"));
    return read_text(arena, json_object_get(from, "name"), NAME_BYTES_MAX, &to->name) &&
           read_text(arena, json_object_get(from, "kind"), NAME_BYTES_MAX, &to->kind) &&
           read_text(arena, json_object_get(from, "metric"), METRIC_BYTES_MAX, &to->metric) &&
           read_ms(from, "interval_ms", INTERVAL_MS_MAX, &to->interval_ms) && to->interval_ms &&
           read_ms(from, "behind_ms", AGE_MS_MAX, &to->behind_ms) &&
           read_number(from, "created", &to->created) &&
           read_number(from, "version", &to->version) && read_number(from, "bytes", &to->bytes) &&
           (!to->version || to->bytes);
}

static bool read_maps(struct qa_maps *maps, const json_t *array)
{
    struct qa_map *items;

    maps->count = json_array_size(array);
    if (!json_is_array(array) || maps->count > QA_MAPS_MAX)
        return false;
    maps->items = items =
        QF_ARENA_ARRAY(maps->arena, struct qa_map, QF_MAX(maps->count, (size_t)1));
    for (size_t i = 0; items && i < maps->count; i++)
        if (!read_map(maps->arena, json_array_get(array, i), &items[i]) ||
            (i && qf_str_cmp(items[i - 1].name, items[i].name) >= 0))
            return false;
    return items != NULL;
}

static bool is_url(struct qf_str text)
{
    return qf_str_starts(text, QF_STR("http://")) || qf_str_starts(text, QF_STR("https://"));
}

static bool read_nodes(struct qa_maps *maps, const json_t *array)
{
    size_t count = QF_MIN(json_array_size(array), (size_t)QA_MAPS_NODES_MAX);
    struct qf_str *nodes = QF_ARENA_ARRAY(maps->arena, struct qf_str, QF_MAX(count, (size_t)1));

    if (!json_is_array(array) || !nodes || (maps->count && !count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!read_text(maps->arena, json_array_get(array, i), URL_BYTES_MAX, &nodes[i]) ||
            !is_url(nodes[i]))
            return false;
    maps->nodes = nodes;
    maps->node_count = count;
    return true;
}

struct qa_maps *qa_maps_parse(struct qf_str json, int64_t now_ms, struct qf_err *err)
{
    struct qa_maps *maps = qa_maps_none(now_ms);
    json_t *root = json_loadb(json.data ? json.data : "", json.len, 0, NULL);
    bool usable = json_is_object(root) && read_ms(root, "age_ms", AGE_MS_MAX, &maps->age_ms) &&
                  read_maps(maps, json_object_get(root, "maps")) &&
                  read_nodes(maps, json_object_get(root, "nodes"));

    json_decref(root);
    if (usable)
        return maps;
    if (qf_arena_failed(maps->arena))
        (void)qf_err_set(err, QF_ELIMIT, "an ingest node tells of too many state maps");
    else
        (void)qf_err_set(err, QF_EPROTO, "what an ingest node tells of state maps is not usable");
    return qa_maps_drop(maps);
}
