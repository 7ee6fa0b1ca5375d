/* tls_files.h - certificate, key and authorities from PEM files, read again when the files change.
 *
 * Certificates are renewed under running processes. One object stands for the three files of one end
 * of a connection; connections that begin later take what the files have then, and those that stand
 * are not touched. What was read is given out as a whole: a certificate never meets the key of
 * another one. Files that cannot be used (half renewed, unreadable, no PEM) change nothing: what was
 * read before stays, a line in the log says so, and the files are looked at again a second later.
 *
 * Any thread may call anything. */
#ifndef BASE_NET_TLS_FILES_H
#define BASE_NET_TLS_FILES_H

#include <stdint.h>

#include "base/pure/err.h"

/* Where; NULL: there is none. Certificate and key: both or neither. */
struct qf_tls_paths {
    const char *ca_file;              /* who signs the peer's certificate */
    const char *cert_file, *key_file; /* what is shown to the peer */
};

/* The texts of the files at one moment; NULL where there is no file. */
struct qf_tls_texts {
    char *ca, *cert, *key;
    uint64_t generation; /* 1, then one more with each change */
};

struct qf_tls_files;

/* Read the files for the first time. NULL and @err filled: QF_EIO (unreadable), QF_EINVAL (not PEM,
 * not a pair, no certificate in it). */
struct qf_tls_files *qf_tls_files_new(const struct qf_tls_paths *paths, struct qf_err *err);
/* Texts that were taken live on. Accepts NULL, returns NULL. */
struct qf_tls_files *qf_tls_files_free(struct qf_tls_files *files);

/* Look whether the files changed, at most once a second, and read them if they did. It waits for the
 * disk; the functions below do not. */
void qf_tls_files_look(struct qf_tls_files *files);
/* What was read last; drop it when done. */
const struct qf_tls_texts *qf_tls_files_take(struct qf_tls_files *files);
void qf_tls_texts_drop(const struct qf_tls_texts *texts);
/* The generation of what was read last. */
uint64_t qf_tls_files_generation(struct qf_tls_files *files);

#endif
