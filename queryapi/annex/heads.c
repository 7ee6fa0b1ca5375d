/* heads.c - what ingest nodes say of exemplars and metadata, from JSON. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/pure/number.h"
#include "queryapi/annex/annex_int.h"

static struct qf_str text_of(const json_t *value)
{
    return (struct qf_str){ json_string_value(value), json_string_length(value) };
}

/* {"a":"b"}; copies. False: it is none, or the arena is spent. */
static bool read_labels(json_t *object, struct qf_arena *arena, struct qf_labels *ret_labels)
{
    struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, json_object_size(object) + 1);
    size_t count = 0;
    const char *key;
    json_t *value;

    if (!json_is_object(object) || !items)
        return false;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return false;
        items[count++] = (struct qf_label){ qf_str_from(key), text_of(value) };
    }
    return qf_labels_copy(arena, qf_labels_normalize(items, count), ret_labels);
}

static bool read_exemplar(const struct qa_annex_ask *ask, json_t *object,
                          struct sg_found_exemplar *exemplar)
{
    json_t *ts = json_object_get(object, "timestamp");
    struct qf_str value = text_of(json_object_get(object, "value"));

    if (!json_is_number(ts) || !value.data || !qf_parse_double(value, &exemplar->value) ||
        fabs(json_number_value(ts)) > 1e15)
        return false;
    exemplar->ts = (int64_t)llround(json_number_value(ts) * 1000);
    return read_labels(json_object_get(object, "labels"), ask->arena, &exemplar->labels);
}

static bool read_exemplars(struct qa_annex_answer *answer, json_t *data)
{
    struct qa_annex_ask *ask = answer->ask;
    size_t i, j;
    json_t *group, *object;

    json_array_foreach(data, i, group)
    {
        struct sg_found_exemplar exemplar = { 0 };

        if (!read_labels(json_object_get(group, "seriesLabels"), ask->arena, &exemplar.series))
            return false;
        json_array_foreach(json_object_get(group, "exemplars"), j, object)
        {
            if (!read_exemplar(ask, object, &exemplar) ||
                !sg_found_add(&answer->found, ask->arena, &exemplar))
                return false;
        }
    }
    return json_is_array(data);
}

/* A node that does not say which range told it is asked for what is newest. */
static bool read_metadata(struct qa_annex_answer *answer, json_t *data)
{
    const char *name;
    json_t *list;

    json_object_foreach(data, name, list)
    {
        json_t *object = json_array_get(list, 0), *generation;
        struct sg_metadata metadata = { .name = qf_str_from(name),
                                        .help = text_of(json_object_get(object, "help")),
                                        .unit = text_of(json_object_get(object, "unit")),
                                        .generation = UINT64_MAX };

        if (!metadata.help.data || !metadata.unit.data ||
            !qf_metric_type_parse(text_of(json_object_get(object, "type")), &metadata.type))
            return false;
        generation = json_object_get(object, "generation");
        if (json_is_integer(generation) && json_integer_value(generation) >= 0)
            metadata.generation = (uint64_t)json_integer_value(generation);
        if (!sg_annex_add_metadata(answer->metadata, &metadata, false))
            return false;
    }
    return json_is_object(data);
}

qf_rc qa_annex_read_heads(struct qa_annex_answer *answer, struct qf_err *err)
{
    struct qa_annex_ask *ask = answer->ask;
    json_t *root, *data;
    bool ok;

    if (!ask->heads.len)
        return QF_OK;
    root = json_loadb(ask->heads.data, ask->heads.len, JSON_ALLOW_NUL, NULL);
    data = json_object_get(root, "data");
    ok = ask->kind == SG_ANNEX_EXEMPLARS ? read_exemplars(answer, data)
                                         : read_metadata(answer, data);
    json_decref(root);
    if (!ok && qf_arena_failed(ask->arena))
        return qa_annex_spent(ask, err);
    return ok ? QF_OK : qf_err_set(err, QF_EPROTO, "an ingest node's answer is not understood");
}
