/* path_name.h - names that are paths below a folder and lead nowhere else: of objects in a store, of blobs on the ring. */
#ifndef BASE_PURE_PATH_NAME_H
#define BASE_PURE_PATH_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/slice.h"

struct qf_path_name_rule {
    size_t bytes_max, part_bytes_max;
    char but; /* a character of ASCII that may not be in it; 0: none beyond the rule */
};

/* 1 to bytes_max bytes of UTF-8 without control characters or '\\'; parts separated by single '/', none at the ends; no part
 * longer than part_bytes_max or beginning with '.'. */
bool qf_path_name_valid(struct qf_str name, const struct qf_path_name_rule *rule);

#endif
