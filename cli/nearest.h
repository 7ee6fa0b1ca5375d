/* nearest.h - which of several words somebody may have meant. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include <stddef.h>

#include "base/pure/slice.h"

/* The one of @count words, given by word_at(ctx, i), that @typed is nearest to: a few letters missing,
 * too many, wrong or exchanged, or the beginning of it. NULL: none is near. */
const char *cli_nearest(struct qf_str typed, const char *(*word_at)(const void *ctx, size_t i),
                        const void *ctx, size_t count);

#endif
