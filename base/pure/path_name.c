/* path_name.c - names that are paths below a folder. */
#include "base/pure/path_name.h"

#include "base/pure/utf8.h"

static bool part_valid(struct qf_str part, const struct qf_path_name_rule *rule)
{
    return part.len > 0 && part.len <= rule->part_bytes_max && part.data[0] != '.';
}

bool qf_path_name_valid(struct qf_str name, const struct qf_path_name_rule *rule)
{
    size_t start = 0;

    if (!name.len || name.len > rule->bytes_max || !qf_utf8_valid(name))
        return false;
    for (size_t i = 0; i <= name.len; i++) {
        if (i == name.len || name.data[i] == '/') {
            if (!part_valid(qf_str_sub(name, start, i), rule))
                return false;
            start = i + 1;
        } else if ((unsigned char)name.data[i] < 0x20 || name.data[i] == 0x7f ||
                   name.data[i] == '\\' || name.data[i] == rule->but) {
            return false;
        }
    }
    return true;
}
