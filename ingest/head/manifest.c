/* manifest.c - files of closed ranges that outlive the process. */
#include "ingest/head/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/small_file.h"

#define MANIFEST_SUFFIX ".range"
#define ANNEX_SUFFIX ".annex"
#define MANIFEST_BYTES_MAX ((size_t)64 << 20)
#define TENANT_SCAN "%128s"

void in_kept_done(struct in_kept *kept)
{
    (void)in_files_drop(kept->files);
    free(kept->tenant);
}

/* Which boot of the machine this is; "" if it does not say. */
static void read_boot(char out[64])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    out[0] = 0;
    if (file && fscanf(file, "%63s", out) != 1)
        out[0] = 0;
    if (file)
        (void)fclose(file);
}

/* --- saving --- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool write_file(const char *path, struct qf_str text)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf part = QF_STRBUF_INIT;
    FILE *file;
    bool ok;

    qf_strbuf_printf(&part, "%s.part", path);
    file = fopen(qf_strbuf_cstr(&part), "we");
    if (!file)
        return false;
    ok = fwrite(text.data, 1, text.len, file) == text.len;
    ok = fclose(file) == 0 && ok && rename(qf_strbuf_cstr(&part), path) == 0;
    if (!ok)
        (void)unlink(qf_strbuf_cstr(&part));
    return ok;
}

static void put_file(struct qf_strbuf *text, const struct in_head_file *file)
{
    qf_strbuf_printf(text, "%s %" PRIu64 " %u %s\n", base_of(file->path), file->size, file->shard,
                     file->name);
}

void in_manifest_save(const struct in_head *head, struct qf_str tenant, uint64_t generation,
                      uint64_t from, uint64_t to, struct in_files *files)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    char boot[64], *path;

    read_boot(boot);
    if (!boot[0])
        return;
    qf_strbuf_printf(&text, "promfabric range 2 %s\n%" PRIu64 " %" PRIu64 " %" PRIu64 " %.*s\n",
                     boot, generation, from, to, QF_STR_ARG(tenant));
    for (size_t i = 0; i < files->items.count; i++)
        put_file(&text, &files->items.items[i]);
    for (size_t i = 0; i < files->annexes.count; i++)
        put_file(&text, &files->annexes.items[i]);
    qf_strbuf_printf(&text, "end %016" PRIx64 "\n", qf_hash_bytes(qf_strbuf_view(&text)));
    path = in_head_new_path(head, MANIFEST_SUFFIX);
    if (write_file(path, qf_strbuf_view(&text)))
        files->manifest = QF_TAKE(path);
    free(path);
}

/* --- loading --- */

static bool next_line(char **rest, char **ret_line)
{
    char *end = strchr(*rest, '\n');

    if (!end)
        return false;
    *ret_line = *rest;
    *end = 0;
    *rest = end + 1;
    return true;
}

/* The text up to its last line, if that says the right hash. */
static bool check_hash(char *text, size_t len)
{
    uint64_t hash;
    char *end = len > 21 ? text + len - 21 : NULL; /* "end ", 16 digits, a newline */

    if (!end || sscanf(end, "end %16" SCNx64, &hash) != 1 ||
        hash != qf_hash_bytes((struct qf_str){ text, (size_t)(end - text) }))
        return false;
    *end = 0;
    return true;
}

static bool read_one_file(const struct in_head *head, char *line, struct in_files *files)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct in_head_file file = { 0 };
    struct stat status;
    char base[64];
    int at = 0;

    if (sscanf(line, "%63s %" SCNu64 " %u %n", base, &file.size, &file.shard, &at) != 3 || !at ||
        !line[at] || strchr(base, '/'))
        return false;
    qf_strbuf_printf(&path, "%s/%s", head->dir, base);
    file.path = qf_strbuf_take(&path);
    file.name = qf_xstrdup(line + at);
    if (qf_str_ends(qf_str_from(file.name), QF_STR(ANNEX_SUFFIX)))
        QF_VEC_PUSH(&files->annexes, file);
    else
        QF_VEC_PUSH(&files->items, file);
    files->bytes += file.size;
    return file.shard < head->options.shards && stat(file.path, &status) == 0 &&
           (uint64_t)status.st_size == file.size;
}

static bool parse(const struct in_head *head, char *text, size_t len, struct in_kept *kept)
{
    char boot[64], said[64], tenant[129], *line;

    read_boot(boot);
    if (!check_hash(text, len) || !next_line(&text, &line) ||
        sscanf(line, "promfabric range 2 %63s", said) != 1 || strcmp(said, boot) != 0 ||
        !next_line(&text, &line) ||
        sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " " TENANT_SCAN, &kept->generation,
               &kept->from, &kept->to, tenant) != 4)
        return false;
    kept->tenant = qf_xstrdup(tenant);
    while (next_line(&text, &line))
        if (!read_one_file(head, line, kept->files))
            return false;
    return *text == 0;
}

static void load_one(struct in_head *head, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct in_kept kept = { .files = in_files_new() };
    struct stat seen;

    qf_strbuf_printf(&path, "%s/%s", head->dir, name);
    kept.files->manifest = qf_strbuf_take(&path);
    if (qf_small_file_read(kept.files->manifest, "files of a range", MANIFEST_BYTES_MAX, &text,
                           &seen, NULL) == QF_OK &&
        text.len && parse(head, text.data, text.len, &kept))
        QF_VEC_PUSH(&head->kept, kept);
    else
        in_kept_done(&kept); /* removes what it names */
}

static bool has(const struct in_head_file *files, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(base_of(files[i].path), name) == 0)
            return true;
    return false;
}

static bool is_kept(const struct in_head *head, const char *name)
{
    for (size_t i = 0; i < head->kept.count; i++) {
        const struct in_files *files = head->kept.items[i].files;

        if (has(files->items.items, files->items.count, name) ||
            has(files->annexes.items, files->annexes.count, name))
            return true;
    }
    return false;
}

/* Numbers of paths go on behind those that are there. */
static void note_number(struct in_head *head, const char *name)
{
    uint64_t number = strtoull(name, NULL, 16);

    if (number != UINT64_MAX && number >= atomic_load(&head->serial))
        atomic_store(&head->serial, number + 1);
}

static void visit(struct in_head *head, const char *name, bool manifests)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct qf_str text = qf_str_from(name);

    if (manifests) {
        note_number(head, name);
        if (qf_str_ends(text, QF_STR(MANIFEST_SUFFIX)))
            load_one(head, name);
    } else if (qf_str_ends(text, QF_STR(".part")) || ((qf_str_ends(text, QF_STR(".parquet")) ||
                                                       qf_str_ends(text, QF_STR(ANNEX_SUFFIX))) &&
                                                      !is_kept(head, name))) {
        qf_strbuf_printf(&path, "%s/%s", head->dir, name);
        (void)unlink(qf_strbuf_cstr(&path));
    }
}

qf_rc in_manifest_load(struct in_head *head, struct qf_err *err)
{
    for (int pass = 0; pass < 2; pass++) {
        DIR *dir = opendir(head->dir);
        struct dirent *entry;

        if (!dir)
            return qf_err_set(err, QF_EIO, "%s: %s", head->dir, strerror(errno));
        while ((entry = readdir(dir)))
            visit(head, entry->d_name, pass == 0);
        (void)closedir(dir);
    }
    return QF_OK;
}
