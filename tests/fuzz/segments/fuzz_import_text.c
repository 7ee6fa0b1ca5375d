/* fuzz_import_text.c - any text is lines that are read or refused, never a crash; labels that are
 * read are sorted, unique and printable back. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "segments/import/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text_state state = { .format = size ? (enum import_format)(data[0] % 4) : IMPORT_AUTO };
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_str rest = { (const char *)data, size };

    rest = qf_str_sub(rest, 1, rest.len);
    while (rest.len) {
        const char *newline = memchr(rest.data, '\n', rest.len);
        size_t len = newline ? (size_t)(newline - rest.data) : rest.len;
        struct text_sample sample;
        struct qf_labels labels;
        const char *what;

        if (text_parse_line(&state, qf_str_sub(rest, 0, len), &sample, &what) == TEXT_SAMPLE &&
            !text_labels(&state, &sample, arena, &labels)) {
            assert(labels.count > 0);
            for (size_t i = 0; i < labels.count; i++) {
                assert(labels.items[i].name.len > 0);
                assert(labels.items[i].value.len > 0);
                assert(!i || qf_str_cmp(labels.items[i - 1].name, labels.items[i].name) < 0);
            }
        }
        rest = qf_str_sub(rest, len + 1, rest.len);
    }
    (void)qf_arena_free(arena);
    return 0;
}
