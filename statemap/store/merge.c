/* merge.c - parts from staging/ into shards/, in their order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys/clock.h"
#include "statemap/store/part.h"
#include "statemap/store/rules.h"
#include "statemap/store/store_int.h"

struct merge {
    struct sm_store *store;
    struct sm_names full; /* maps that cannot take more: their parts wait */
    struct qf_err *err;   /* the first one */
    qf_rc rc;
};

/* A part's file, as an environment of its own. */
static qf_rc unpack(struct sm_store *store, const struct sm_part *part,
                    const struct sm_section *section, const struct sm_definition *definition,
                    const char *folder, struct sm_env **ret_env, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *file = sm_path(folder, SM_DATA_FILE, NULL);
    struct sm_env_options options = sm_env_options_of(store, definition, folder);
    qf_rc rc = sm_folder_empty(folder, err);

    options.alone = true;
    /* It was written with the size that the map had then. */
    if (options.map_bytes && options.map_bytes < 2 * section->size)
        options.map_bytes = 2 * section->size;
    if (rc == QF_OK)
        rc = sm_part_unpack(part, section, file, err);
    sm_step_done(store, "unpacked");
    return rc == QF_OK ? sm_env_open(&options, ret_env, err) : rc;
}

/* The first part of a map becomes the map. */
static qf_rc move_first(struct sm_store *store, struct sm_env *part, const char *folder,
                        const char *shard, uint64_t position, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *shards = sm_path(store->root, "shards", NULL);
    qf_rc rc = sm_number_first(part, position, err);

    if (rc == QF_OK)
        rc = sm_env_sync(part, err);
    (void)sm_env_close(part);
    sm_step_done(store, "numbered the first part");
    if (rc == QF_OK)
        rc = sm_folder_sync(folder, err);
    if (rc == QF_OK)
        rc = sm_move(folder, shard, shards, err);
    sm_step_done(store, "moved");
    return rc;
}

static qf_rc merge_into(struct sm_store *store, struct sm_env *part, const char *folder,
                        const struct sm_definition *definition, uint64_t position,
                        struct qf_err *err)
{
    int64_t now_ms = qf_clock_wall_ms();
    struct sm_shard *shard;
    bool matter;
    qf_rc rc = sm_shard_take(store, definition, 0, &shard, err);

    if (rc == QF_OK) {
        rc = sm_rules_matter(store, definition->name, now_ms, &matter, err);
        /* Requests that are sent again are enriched as they were. */
        if (rc == QF_OK)
            rc = sm_merge(shard->env, part, position, matter ? now_ms : 0, err);
        sm_shard_give_back(store, shard);
    }
    (void)sm_env_close(part);
    sm_step_done(store, "merged");
    return rc == QF_OK ? sm_folder_remove(folder, err) : rc;
}

/* Whether the shard has it already: then a crash came between its commit and the end of the part. */
static qf_rc is_merged(struct sm_store *store, const struct sm_definition *definition,
                       uint64_t position, bool *ret_merged, struct qf_err *err)
{
    struct sm_shard *shard;
    struct sm_txn *txn;
    qf_rc rc = sm_shard_take(store, definition, 0, &shard, err);

    if (rc != QF_OK)
        return rc;
    rc = sm_read_begin(shard->env, &txn, err);
    if (rc == QF_OK) {
        *ret_merged = sm_about(txn).version >= position;
        (void)sm_end(txn);
    }
    sm_shard_give_back(store, shard);
    return rc;
}

static qf_rc merge_section(struct sm_store *store, const struct sm_part *part,
                           const struct sm_section *section, uint64_t position, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "merging", section->name);
    QF_CLEANUP(qf_freep) char *shard = sm_path(store->root, "shards", section->name);
    struct sm_definition definition;
    bool merged = false, first = !sm_exists(shard);
    struct sm_env *env;
    qf_rc rc = sm_store_definition(store, qf_str_from(section->name), &definition, err);

    if (rc == QF_ENOTFOUND) { /* the map went meanwhile */
        if (err)
            *err = (struct qf_err){ 0 };
        return QF_OK;
    }
    if (rc == QF_OK &&
        (definition.created > position || definition.layout.kind != section->layout.kind ||
         definition.layout.direct != section->layout.direct))
        return QF_OK; /* it went, and another one has its name */
    if (rc == QF_OK && !first)
        rc = is_merged(store, &definition, position, &merged, err);
    if (rc != QF_OK || merged)
        return rc;
    rc = unpack(store, part, section, &definition, folder, &env, err);
    if (rc != QF_OK)
        return rc;
    return first ? move_first(store, env, folder, shard, position, err)
                 : merge_into(store, env, folder, &definition, position, err);
}

static bool is_full(const struct merge *merge, const char *name)
{
    for (size_t i = 0; i < merge->full.names.count; i++)
        if (strcmp(merge->full.names.items[i], name) == 0)
            return true;
    return false;
}

/* *ret_done: nothing of it waits. */
static qf_rc merge_sections(struct merge *merge, const struct sm_part *part, uint64_t position,
                            bool *ret_done)
{
    *ret_done = true;
    for (size_t i = 0; i < part->count; i++) {
        const struct sm_section *section = &part->sections[i];
        struct qf_err err = { 0 };
        qf_rc rc;

        if (is_full(merge, section->name)) {
            *ret_done = false;
            continue;
        }
        rc = merge_section(merge->store, part, section, position, &err);
        if (rc != QF_OK && merge->rc == QF_OK) {
            merge->rc = rc;
            (void)qf_err_set(merge->err, rc, "%s", err.msg);
        }
        if (rc == QF_ENOSPC) {
            QF_VEC_PUSH(&merge->full.names, qf_xstrdup(section->name));
            *ret_done = false;
        } else if (rc != QF_OK) {
            return rc;
        }
    }
    return QF_OK;
}

/* *ret_done: it is merged, and gone. */
static qf_rc merge_part(struct merge *merge, const char *folder, const char *name, bool *ret_done)
{
    QF_CLEANUP(qf_freep) char *path = sm_path(folder, name, NULL);
    uint64_t position = strtoull(name, NULL, 16);
    struct sm_part part;
    qf_rc rc = sm_part_open(path, &part, merge->err);

    *ret_done = false;
    if (rc != QF_OK) {
        merge->rc = rc;
        return rc;
    }
    rc = merge_sections(merge, &part, position, ret_done);
    sm_part_close(&part);
    *ret_done &= rc == QF_OK;
    if (!*ret_done)
        return rc;
    sm_step_done(merge->store, "merged a part");
    if (unlink(path) < 0)
        rc = merge->rc = qf_err_set(merge->err, QF_EIO, "%s cannot be removed", path);
    sm_step_done(merge->store, "removed a part");
    return rc;
}

qf_rc sm_store_merge(struct sm_store *store, uint64_t *ret_left, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "staging", NULL);
    struct merge merge = { .store = store, .err = err };
    struct sm_names staged = { 0 };
    size_t done_count = 0;
    qf_rc rc;

    *ret_left = 0;
    if (store->lock_file < 0)
        return qf_err_set(err, QF_EINVAL, "the maps are open for reading alone");
    rc = sm_folder_list(folder, &staged, err);
    if (rc != QF_OK)
        return rc;
    for (size_t i = 0; i < staged.names.count && rc == QF_OK; i++) {
        bool done;

        rc = merge_part(&merge, folder, staged.names.items[i], &done);
        done_count += done;
    }
    *ret_left = staged.names.count - done_count;
    sm_names_done(&staged);
    sm_names_done(&merge.full);
    return merge.rc;
}
