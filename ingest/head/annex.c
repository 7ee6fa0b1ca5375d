/* annex.c - exemplars and metadata of a range: collected, and made into files. */
#include "ingest/head/annex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "ingest/core/extras.h"
#include "ingest/head/head_int.h"
#include "segments/annex/annex.h"

#define DAY_US UINT64_C(86400000000)

/* --- collecting --- */

uint64_t in_annex_add(struct in_memory *memory, uint64_t generation, struct qf_str extras)
{
    struct in_extra extra;
    uint64_t dropped = 0;

    while (in_extra_next(&extras, &extra)) {
        struct sg_annex *annex = in_memory_annex(memory);

        if (extra.kind == IN_EXTRA_EXEMPLAR)
            dropped += !sg_annex_add_exemplar(annex, &(struct sg_exemplar){ .series = extra.series,
                                                                            .labels = extra.labels,
                                                                            .ts = extra.ts,
                                                                            .value = extra.value });
        else
            dropped += !sg_annex_add_metadata(annex,
                                              &(struct sg_metadata){ .name = extra.metadata.name,
                                                                     .type = extra.metadata.type,
                                                                     .help = extra.metadata.help,
                                                                     .unit = extra.metadata.unit,
                                                                     .generation = generation },
                                              true);
    }
    return dropped;
}

/* --- what was told --- */

void in_told_init(struct in_told *told)
{
    *told = (struct in_told){ .lock = qf_lock_new(), .arena = qf_arena_new(SIZE_MAX) };
}

void in_told_done(struct in_told *told)
{
    qf_map_done(&told->hashes);
    (void)qf_arena_free(told->arena);
    (void)qf_lock_free(told->lock);
}

static void forget(struct in_told *told, uint64_t epoch)
{
    qf_map_clear(&told->hashes);
    qf_arena_reset(told->arena);
    told->epoch = epoch;
}

/* --- making files --- */

struct saying {
    struct qf_str name;
    uint64_t hash;
};

struct annex_build {
    const struct in_build *build;
    struct in_told *told;
    struct qf_strbuf key;
    QF_VEC(struct saying) sayings; /* that are new; names are the collection's */
};

static struct qf_str key_of(struct annex_build *b, struct qf_str name)
{
    qf_strbuf_reset(&b->key);
    qf_strbuf_str(&b->key, b->build->tenant);
    qf_strbuf_putc(&b->key, 0);
    qf_strbuf_str(&b->key, name);
    return qf_strbuf_view(&b->key);
}

static uint64_t hash_of(const struct sg_metadata *metadata)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_printf(&text, "%d %zu %llu ", (int)metadata->type, metadata->help.len,
                     (unsigned long long)(metadata->generation / DAY_US));
    qf_strbuf_str(&text, metadata->help);
    qf_strbuf_str(&text, metadata->unit);
    return qf_hash_bytes(qf_strbuf_view(&text));
}

static bool is_new(void *ctx, const struct sg_metadata *metadata)
{
    struct annex_build *b = ctx;
    struct saying saying = { metadata->name, hash_of(metadata) };
    const uint64_t *before = qf_map_get(&b->told->hashes, key_of(b, metadata->name));

    if (before && *before == saying.hash)
        return false;
    QF_VEC_PUSH(&b->sayings, saying);
    return true;
}

static qf_rc write_file(void *ctx, const char *name, struct qf_str bytes, struct qf_err *err)
{
    const struct annex_build *b = ctx;
    struct in_files *files = b->build->files;
    char *path = in_head_new_path(b->build->head, ".annex");
    FILE *file = fopen(path, "we");
    bool ok = file && fwrite(bytes.data, 1, bytes.len, file) == bytes.len;
    int why;

    ok = file && fclose(file) == 0 && ok;
    why = errno;
    /* Removed with the others also if it is not whole. */
    QF_VEC_PUSH(&files->annexes,
                (struct in_head_file){ .path = path, .name = qf_xstrdup(name), .size = bytes.len });
    files->bytes += bytes.len;
    return ok ? QF_OK
              : qf_err_set(err, why == ENOSPC || why == EDQUOT ? QF_ENOSPC : QF_EIO, "%s: %s", path,
                           strerror(why));
}

static void remember(struct annex_build *b)
{
    struct in_told *told = b->told;

    for (size_t i = 0; i < b->sayings.count; i++) {
        struct qf_str key = key_of(b, b->sayings.items[i].name);
        uint64_t *known = qf_map_get(&told->hashes, key);

        if (!known && told->hashes.count >= IN_TOLD_MAX)
            forget(told, told->epoch);
        if (!known)
            known = qf_map_put(&told->hashes, qf_arena_str(told->arena, key), 0, NULL);
        *known = b->sayings.items[i].hash;
    }
}

qf_rc in_build_annexes(const struct in_build *build, struct qf_err *err)
{
    struct in_head *head = (struct in_head *)build->head;
    struct annex_build b = { .build = build, .told = &head->told };
    const struct sg_annex_files files = {
        .tenant = build->tenant, .wants = is_new, .file = write_file, .ctx = &b
    };
    uint64_t epoch = atomic_load(&head->told_epoch);
    qf_rc rc;

    if (!in_memory_has_annex(build->memory))
        return QF_OK;
    qf_lock_take(head->told.lock);
    if (head->told.epoch != epoch)
        forget(&head->told, epoch);
    rc = sg_annex_write(in_memory_annex((struct in_memory *)build->memory), &files, err);
    if (rc == QF_OK)
        remember(&b);
    qf_lock_drop(head->told.lock);
    QF_VEC_DONE(&b.sayings);
    qf_strbuf_done(&b.key);
    return rc;
}
