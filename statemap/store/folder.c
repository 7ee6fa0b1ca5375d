/* folder.c - folders and small files of a store. */
#include "statemap/store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static qf_rc failed(const char *path, struct qf_err *err)
{
    return qf_err_set(err, errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC : QF_EIO, "%s: %s", path,
                      strerror(errno));
}

char *sm_path(const char *a, const char *b, const char *c)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, a);
    if (b)
        qf_strbuf_printf(&path, "/%s", b);
    if (c)
        qf_strbuf_printf(&path, "/%s", c);
    return qf_strbuf_take(&path);
}

bool sm_exists(const char *path)
{
    struct stat seen;

    return stat(path, &seen) == 0;
}

qf_rc sm_folder_make(const char *path, struct qf_err *err)
{
    return mkdir(path, 0750) < 0 && errno != EEXIST ? failed(path, err) : QF_OK;
}

qf_rc sm_folder_sync(const char *path, struct qf_err *err)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    qf_rc rc = QF_OK;

    if (folder < 0)
        return failed(path, err);
    if (fsync(folder) < 0)
        rc = failed(path, err);
    (void)close(folder);
    return rc;
}

static int remove_one(const char *path, const struct stat *seen, int type, struct FTW *where)
{
    (void)seen;
    (void)type;
    (void)where;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

qf_rc sm_folder_remove(const char *path, struct qf_err *err)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0 && errno != ENOENT)
        return failed(path, err);
    return QF_OK;
}

qf_rc sm_folder_empty(const char *path, struct qf_err *err)
{
    qf_rc rc = sm_folder_remove(path, err);

    return rc == QF_OK ? sm_folder_make(path, err) : rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

qf_rc sm_folder_list(const char *path, struct sm_names *ret_names, struct qf_err *err)
{
    struct sm_names names = { 0 };
    struct dirent *entry;
    DIR *folder = opendir(path);

    if (!folder && errno != ENOENT)
        return failed(path, err);
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            QF_VEC_PUSH(&names.names, qf_xstrdup(entry->d_name));
    if (folder)
        (void)closedir(folder);
    if (names.names.count)
        qsort(names.names.items, names.names.count, sizeof(char *), by_name);
    *ret_names = names;
    return QF_OK;
}

void sm_names_done(struct sm_names *names)
{
    for (size_t i = 0; i < names->names.count; i++)
        free(names->names.items[i]);
    QF_VEC_DONE(&names->names);
}

qf_rc sm_move(const char *from, const char *to, const char *folder, struct qf_err *err)
{
    if (rename(from, to) < 0)
        return failed(to, err);
    return sm_folder_sync(folder, err);
}

static qf_rc write_file(const char *path, struct qf_str text, struct qf_err *err)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    qf_rc rc = QF_OK;

    if (file < 0)
        return failed(path, err);
    errno = ENOSPC; /* what a short write means */
    if (write(file, text.data, text.len) != (ssize_t)text.len || fsync(file) < 0)
        rc = failed(path, err);
    (void)close(file);
    return rc;
}

qf_rc sm_file_replace(const char *folder, const char *name, struct qf_str text, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf temporary = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *path = sm_path(folder, name, NULL);
    qf_rc rc;

    qf_strbuf_printf(&temporary, "%s/.%s", folder, name);
    rc = write_file(qf_strbuf_cstr(&temporary), text, err);
    return rc == QF_OK ? sm_move(qf_strbuf_cstr(&temporary), path, folder, err) : rc;
}
