/* folder.h - folders and small files of a store: paths, and what a crash must not undo. */
#ifndef STATEMAP_STORE_FOLDER_H
#define STATEMAP_STORE_FOLDER_H

#include <stdbool.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "base/pure/vec.h"

/* "a/b/c" of up to three parts, the last ones NULL; free() it. */
char *sm_path(const char *a, const char *b, const char *c);

QF_MUST_CHECK qf_rc sm_folder_make(const char *path, struct qf_err *err); /* or it is there */
QF_MUST_CHECK qf_rc sm_folder_sync(const char *path, struct qf_err *err);
/* With all that is in it; nothing there is fine. */
qf_rc sm_folder_remove(const char *path, struct qf_err *err);
QF_MUST_CHECK qf_rc sm_folder_empty(const char *path, struct qf_err *err);

struct sm_names {
    QF_VEC(char *) names;
};
/* What is in @path, by name, without what begins with '.'; nothing if it is not there. */
QF_MUST_CHECK qf_rc sm_folder_list(const char *path, struct sm_names *ret_names,
                                   struct qf_err *err);
void sm_names_done(struct sm_names *names);

bool sm_exists(const char *path);
/* Rename, and sync the folder it comes into. */
QF_MUST_CHECK qf_rc sm_move(const char *from, const char *to, const char *folder,
                            struct qf_err *err);
/* The file is there whole, or as it was. */
QF_MUST_CHECK qf_rc sm_file_replace(const char *folder, const char *name, struct qf_str text,
                                    struct qf_err *err);

#endif
