/* writer.c - a load: an LMDB environment per map in writer/, then one part in staging/. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statemap/store/part.h"
#include "statemap/store/store_int.h"

enum { ROWS_PER_COMMIT = 50000 };

struct target {
    struct sm_definition definition;
    struct sm_env *env;
    struct sm_txn *txn;
    uint64_t uncommitted;
};

struct sm_writer {
    struct sm_store *store;
    char *folder;
    char *received;
    QF_VEC(struct target) targets;
};

qf_rc sm_writer_begin(struct sm_store *store, struct sm_writer **ret_writer, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    struct sm_writer *writer;
    qf_rc rc;

    if (store->lock_file < 0)
        return qf_err_set(err, QF_EINVAL, "the maps are open for reading alone");
    writer = qf_xcalloc(1, sizeof(*writer));
    writer->store = store;
    qf_lock_take(store->lock);
    qf_strbuf_u64(&name, ++store->writers);
    qf_lock_drop(store->lock);
    writer->folder = sm_path(store->root, "writer", qf_strbuf_cstr(&name));
    qf_strbuf_puts(&name, ".part");
    writer->received = sm_path(store->root, "receive", qf_strbuf_cstr(&name));
    rc = sm_folder_make(writer->folder, err);
    if (rc != QF_OK)
        writer = sm_writer_abort(writer);
    *ret_writer = writer;
    return rc;
}

struct sm_writer *sm_writer_abort(struct sm_writer *writer)
{
    if (!writer)
        return NULL;
    for (size_t i = 0; i < writer->targets.count; i++) {
        (void)sm_end(writer->targets.items[i].txn);
        (void)sm_env_close(writer->targets.items[i].env);
    }
    QF_VEC_DONE(&writer->targets);
    (void)sm_folder_remove(writer->folder, NULL);
    (void)unlink(writer->received);
    free(writer->folder);
    free(writer->received);
    free(writer);
    return NULL;
}

static qf_rc add_target(struct sm_writer *writer, const struct sm_definition *definition,
                        struct target **ret_target, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(writer->folder, definition->name, NULL);
    struct sm_env_options options = sm_env_options_of(writer->store, definition, folder);
    struct target target = { .definition = *definition };
    qf_rc rc;

    if (writer->targets.count >= SM_SECTIONS_MAX)
        return qf_err_set(err, QF_ELIMIT, "a load has rows of at most %d maps", SM_SECTIONS_MAX);
    options.create = options.alone = true;
    rc = sm_folder_make(folder, err);
    if (rc == QF_OK)
        rc = sm_env_open(&options, &target.env, err);
    if (rc != QF_OK)
        return rc;
    QF_VEC_PUSH(&writer->targets, target);
    *ret_target = &writer->targets.items[writer->targets.count - 1];
    return QF_OK;
}

static struct target *find_target(struct sm_writer *writer, const char *name)
{
    /* As a rule rows of a map stand together, and those of the last one come on. */
    for (size_t i = writer->targets.count; i-- > 0;)
        if (strcmp(writer->targets.items[i].definition.name, name) == 0)
            return &writer->targets.items[i];
    return NULL;
}

qf_rc sm_writer_put(struct sm_writer *writer, const struct sm_definition *definition,
                    const struct sm_row *row, struct qf_err *err)
{
    struct target *target = find_target(writer, definition->name);
    qf_rc rc = sm_row_check(&definition->layout, row, err);

    if (rc == QF_OK && !target)
        rc = add_target(writer, definition, &target, err);
    if (rc == QF_OK && !target->txn)
        rc = sm_write_begin(target->env, &target->txn, err);
    if (rc == QF_OK)
        rc = sm_put(target->txn, row, err);
    if (rc == QF_OK && ++target->uncommitted >= ROWS_PER_COMMIT) {
        target->uncommitted = 0;
        rc = sm_commit(QF_TAKE(target->txn), err);
    }
    return rc;
}

static qf_rc close_targets(struct sm_writer *writer, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < writer->targets.count && rc == QF_OK; i++) {
        struct target *target = &writer->targets.items[i];

        if (target->txn)
            rc = sm_commit(QF_TAKE(target->txn), err);
        target->env = sm_env_close(target->env);
    }
    return rc;
}

static qf_rc receive(struct sm_writer *writer, struct qf_err *err)
{
    struct sm_section *sections = qf_xcalloc(writer->targets.count, sizeof(*sections));
    struct sm_part part;
    qf_rc rc;

    for (size_t i = 0; i < writer->targets.count; i++) {
        const struct sm_definition *definition = &writer->targets.items[i].definition;

        memcpy(sections[i].name, definition->name, sizeof(sections[i].name));
        sections[i].layout = definition->layout;
    }
    rc = sm_part_write(writer->received, writer->folder, sections, writer->targets.count, err);
    free(sections);
    if (rc != QF_OK)
        return rc;
    rc = sm_part_open(writer->received, &part, err);
    if (rc == QF_OK) {
        rc = sm_part_verify(&part, err);
        sm_part_close(&part);
    }
    return rc;
}

qf_rc sm_store_stage(struct sm_store *store, const char *path, uint64_t position,
                     struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "staging", NULL);
    QF_CLEANUP(qf_freep) char *staged = NULL;
    qf_rc rc;

    qf_strbuf_printf(&name, "%016llx.part", (unsigned long long)position);
    staged = sm_path(folder, qf_strbuf_cstr(&name), NULL);
    rc = sm_move(path, staged, folder, err);
    sm_step_done(store, "staged");
    return rc;
}

static qf_rc stage(struct sm_writer *writer, uint64_t *ret_position, struct qf_err *err)
{
    qf_rc rc = sm_position_next(writer->store, ret_position, err);

    if (rc != QF_OK)
        return rc;
    sm_step_done(writer->store, "numbered");
    return sm_store_stage(writer->store, writer->received, *ret_position, err);
}

/* Into receive/. */
static qf_rc end_rows(struct sm_writer *writer, struct qf_err *err)
{
    qf_rc rc = close_targets(writer, err);

    sm_step_done(writer->store, "written");
    if (rc == QF_OK && writer->targets.count)
        rc = receive(writer, err);
    sm_step_done(writer->store, "received");
    return rc;
}

qf_rc sm_writer_finish(struct sm_writer *writer, uint64_t *ret_position, struct qf_err *err)
{
    qf_rc rc = end_rows(writer, err);

    *ret_position = 0;
    if (rc == QF_OK && writer->targets.count)
        rc = stage(writer, ret_position, err);
    (void)sm_writer_abort(writer);
    return rc;
}

qf_rc sm_writer_pack(struct sm_writer *writer, const char *path, bool *ret_any, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(writer->store->root, "receive", NULL);
    qf_rc rc = end_rows(writer, err);

    *ret_any = writer->targets.count > 0;
    if (rc == QF_OK && *ret_any)
        rc = sm_move(writer->received, path, folder, err);
    (void)sm_writer_abort(writer);
    return rc;
}
