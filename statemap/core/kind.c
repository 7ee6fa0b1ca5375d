/* kind.c - what a map is. */
#include "statemap/core/kind.h"

#include "base/pure/macros.h"

static const struct kind {
    const char *name;
    bool keyed, ranged, timed, valued;
} kinds[] = {
#define SM_KIND(code, name, keyed, ranged, timed, valued) { name, keyed, ranged, timed, valued },
#include "statemap/core/kinds.def"
#undef SM_KIND
};

static const char *const types[] = { "any", "string", "integer", "double", "boolean", "json" };

const char *sm_kind_name(enum sm_kind kind)
{
    return kinds[kind].name;
}

bool sm_kind_parse(struct qf_str name, enum sm_kind *ret_kind)
{
    for (size_t i = 0; i < QF_COUNT_OF(kinds); i++)
        if (qf_str_is(name, kinds[i].name)) {
            *ret_kind = (enum sm_kind)i;
            return true;
        }
    return false;
}

bool sm_kind_keyed(enum sm_kind kind)
{
    return kinds[kind].keyed;
}

bool sm_kind_ranged(enum sm_kind kind)
{
    return kinds[kind].ranged;
}

bool sm_kind_timed(enum sm_kind kind)
{
    return kinds[kind].timed;
}

bool sm_kind_valued(enum sm_kind kind)
{
    return kinds[kind].valued;
}

const char *sm_type_name(enum sm_type type)
{
    return types[type];
}

bool sm_type_parse(struct qf_str name, enum sm_type *ret_type)
{
    for (size_t i = 0; i < QF_COUNT_OF(types); i++)
        if (qf_str_is(name, types[i])) {
            *ret_type = (enum sm_type)i;
            return true;
        }
    return false;
}

bool sm_name_fold(struct qf_str name, char out[SM_NAME_MAX + 1])
{
    if (name.len == 0 || name.len > SM_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (!(c >= 'a' && c <= 'z') && c != '_' && !(c >= '0' && c <= '9' && i > 0))
            return false;
        out[i] = c;
    }
    out[name.len] = '\0';
    return true;
}
