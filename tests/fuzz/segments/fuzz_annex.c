/* fuzz_annex.c - any bytes as a file of exemplars or metadata, and as its name.
 *
 * The first byte chooses: a name; bytes as they are; or bytes with the magic, length and checksum that they should have, so
 * that the entries are reached. What is accepted is written again, and nothing of it is lost. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/map.h"
#include "segments/annex/annex.h"

enum { HEADER = 40, TRAILER = 8, AT_LENGTH = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_name(struct qf_str text)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf again = QF_STRBUF_INIT;
    struct sg_annex_name name;

    if (!sg_annex_name_parse(text, &name))
        return;
    sg_annex_name_print(&again, &name);
    if (!qf_str_eq(text, qf_strbuf_view(&again)))
        abort();
}

/* What is written can be read, under its name. */
static qf_rc count(void *ctx, const char *name, struct qf_str bytes, struct qf_err *err)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_annex_contents contents;
    struct sg_annex_name parts;

    (void)err;
    if (!sg_annex_name_parse(qf_str_from(name), &parts) ||
        sg_annex_decode(bytes, &parts, arena, &contents, NULL) != QF_OK)
        abort();
    *(size_t *)ctx += contents.count;
    (void)qf_arena_free(arena);
    return QF_OK;
}

static void write_again(const struct sg_annex_contents *contents)
{
    struct sg_annex *annex = sg_annex_new(SIZE_MAX);
    size_t total = 0;
    struct sg_annex_files files = { .tenant = QF_STR("t"), .file = count, .ctx = &total };

    if (sg_annex_add_contents(annex, contents) &&
        (sg_annex_write(annex, &files, NULL) != QF_OK || total != contents->count))
        abort();
    annex = sg_annex_free(annex);
}

static void read_file(struct qf_str bytes)
{
    struct qf_arena *arena = qf_arena_new((size_t)64 << 20);
    struct sg_annex_contents contents;

    if (sg_annex_decode(bytes, NULL, arena, &contents, NULL) == QF_OK) {
        if (!contents.count || (!contents.exemplars && !contents.metadata))
            abort();
        write_again(&contents);
    }
    (void)qf_arena_free(arena);
}

static void mend(char *bytes, size_t size)
{
    uint64_t length = size - HEADER - TRAILER, hash;

    memcpy(bytes, "PFANNEX\1", 8);
    memcpy(bytes + AT_LENGTH, &length, sizeof(length));
    hash = qf_hash_bytes((struct qf_str){ bytes, size - TRAILER });
    memcpy(bytes + size - TRAILER, &hash, sizeof(hash));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str text;
    char *copy;

    if (!size)
        return 0;
    text = (struct qf_str){ (const char *)data + 1, size - 1 };
    if (data[0] == 0) {
        read_name(text);
    } else if (data[0] == 1 || text.len < HEADER + TRAILER) {
        read_file(text);
    } else {
        copy = malloc(text.len);
        if (!copy)
            abort();
        memcpy(copy, text.data, text.len);
        mend(copy, text.len);
        read_file((struct qf_str){ copy, text.len });
        free(copy);
    }
    return 0;
}
