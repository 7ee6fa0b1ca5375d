/* params.c - decoding of request parameters. */
#include "base/http/params.h"

#include <jansson.h>

#include "base/pure/number.h"

struct qf_str qh_url_decode(struct qf_arena *arena, struct qf_str s, bool plus)
{
    char *out = qf_arena_alloc(arena, s.len + 1);
    size_t len = 0;

    if (!out)
        return (struct qf_str){ NULL, 0 };
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];

        if (c == '%' && i + 2 < s.len && qf_hex_digit(s.data[i + 1]) >= 0 &&
            qf_hex_digit(s.data[i + 2]) >= 0) {
            c = (char)(qf_hex_digit(s.data[i + 1]) * 16 + qf_hex_digit(s.data[i + 2]));
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        out[len++] = c;
    }
    out[len] = '\0';
    return (struct qf_str){ out, len };
}

qf_rc qh_params_add(struct qf_arena *arena, struct qh_params *params, struct qf_str name,
                    struct qf_str value, struct qf_err *err)
{
    if (params->count == QH_PARAMS_MAX)
        return qf_err_set(err, QF_ELIMIT, "more than %d parameters", QH_PARAMS_MAX);
    if (params->count == params->capacity) {
        size_t want = params->capacity ? params->capacity * 2 : 8;
        void *grown =
            qf_arena_grow(arena, params->items, params->capacity, want, sizeof(params->items[0]));

        if (!grown)
            return qf_err_set(err, QF_ELIMIT, "the parameters are too long");
        params->items = grown;
        params->capacity = want;
    }
    params->items[params->count++] = (struct qh_param){ name, value };
    return QF_OK;
}

/* Every '%' has two digits behind it, and nobody took ';' for '&'. */
static bool well_formed(struct qf_str pair)
{
    for (size_t i = 0; i < pair.len; i++) {
        if (pair.data[i] == ';')
            return false;
        if (pair.data[i] == '%' && (i + 2 >= pair.len || qf_hex_digit(pair.data[i + 1]) < 0 ||
                                    qf_hex_digit(pair.data[i + 2]) < 0))
            return false;
    }
    return true;
}

qf_rc qh_params_add_form(struct qf_arena *arena, struct qh_params *params, struct qf_str form,
                         struct qf_err *err)
{
    while (form.len) {
        const char *amp = memchr(form.data, '&', form.len);
        size_t len = amp ? (size_t)(amp - form.data) : form.len;
        struct qf_str pair = qf_str_sub(form, 0, len), name, value;
        const char *equals = pair.len ? memchr(pair.data, '=', pair.len) : NULL;
        size_t name_len = equals ? (size_t)(equals - pair.data) : pair.len;
        qf_rc rc;

        form = qf_str_sub(form, len + 1, form.len);
        if (pair.len == 0 || !well_formed(pair))
            continue;
        name = qh_url_decode(arena, qf_str_sub(pair, 0, name_len), true);
        value = qh_url_decode(arena, qf_str_sub(pair, name_len + 1, pair.len), true);
        if (!name.data || !value.data)
            return qf_err_set(err, QF_ELIMIT, "the parameters are too long");
        rc = qh_params_add(arena, params, name, value, err);
        if (rc)
            return rc;
    }
    return QF_OK;
}

/* A JSON value as the text a form would have; data NULL if it has none. */
static struct qf_str json_text(struct qf_arena *arena, const json_t *value)
{
    char digits[QF_DOUBLE_TEXT_MAX];

    if (json_is_string(value))
        return qf_arena_str(arena,
                            (struct qf_str){ json_string_value(value), json_string_length(value) });
    if (json_is_integer(value))
        return qf_str_from(qf_arena_printf(arena, "%lld", (long long)json_integer_value(value)));
    if (json_is_real(value)) {
        size_t len = qf_double_f(json_real_value(value), digits);

        return qf_arena_str(arena, (struct qf_str){ digits, len });
    }
    if (json_is_boolean(value))
        return json_is_true(value) ? QF_STR("true") : QF_STR("false");
    return (struct qf_str){ NULL, 0 };
}

qf_rc qh_params_add_json(struct qf_arena *arena, struct qh_params *params, struct qf_str json,
                         struct qf_err *err)
{
    json_error_t problem;
    json_t *root =
        json_loadb(json.data ? json.data : "", json.len, JSON_REJECT_DUPLICATES, &problem);
    const char *key;
    json_t *value;
    qf_rc rc = QF_OK;

    if (!root)
        return qf_err_set(err, QF_EINVAL, "the body is not JSON: %s", problem.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return qf_err_set(err, QF_EINVAL, "the body is not a JSON object");
    }
    json_object_foreach(root, key, value)
    {
        struct qf_str name = qf_arena_str(arena, qf_str_from(key));
        struct qf_str text = json_text(arena, value);

        if (json_is_null(value))
            continue;
        if (!text.data)
            rc = qf_err_set(err, QF_EINVAL, "member \"%s\" is neither text nor number", key);
        else
            rc = qh_params_add(arena, params, name, text, err);
        if (rc)
            break;
    }
    json_decref(root);
    return rc;
}

struct qf_str qh_params_get(const struct qh_params *params, const char *name)
{
    for (size_t i = 0; i < params->count; i++)
        if (qf_str_is(params->items[i].name, name))
            return params->items[i].value;
    return QF_STR("");
}
