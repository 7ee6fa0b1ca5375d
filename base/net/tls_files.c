/* tls_files.c - certificate, key and authorities from PEM files. */
#include "base/net/tls_files.h"

#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/net/pem.h"
#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"

#define LOOK_EVERY_MS 1000

enum { CA, CERT, KEY, FILES };

/* A text's owners are counted in front of it. */
struct shared {
    struct qf_tls_texts texts;
    atomic_uint owners;
};

struct qf_tls_files {
    char *paths[FILES];
    struct stat seen[FILES]; /* of who looks: as they were when last read, usable or not */
    struct qf_lock *lock;    /* guards the rest; nobody reads a file with it */
    struct shared *now;
    qf_time_ms look_at;
    bool looking;
};

void qf_tls_texts_drop(const struct qf_tls_texts *texts)
{
    struct shared *shared = (struct shared *)(uintptr_t)texts;

    if (!shared || atomic_fetch_sub(&shared->owners, 1) > 1)
        return;
    free(shared->texts.ca);
    free(shared->texts.cert);
    if (shared->texts.key)
        explicit_bzero(shared->texts.key, strlen(shared->texts.key));
    free(shared->texts.key);
    free(shared);
}

/* Whether TLS can be spoken with them: a library for it is asked. */
static qf_rc check_texts(const struct qf_tls_files *files, const struct qf_tls_texts *texts,
                         struct qf_err *err)
{
    gnutls_certificate_credentials_t credentials;
    qf_rc rc = QF_OK;
    int got;

    if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS)
        return qf_err_set(err, QF_EINTERNAL, "no memory for certificates");
    if (texts->cert) {
        gnutls_datum_t cert = { (unsigned char *)texts->cert, (unsigned)strlen(texts->cert) };
        gnutls_datum_t key = { (unsigned char *)texts->key, (unsigned)strlen(texts->key) };

        got = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
        if (got < 0)
            rc = qf_err_set(err, QF_EINVAL, "%s and %s: %s", files->paths[CERT], files->paths[KEY],
                            gnutls_strerror(got));
    }
    if (rc == QF_OK && texts->ca) {
        gnutls_datum_t ca = { (unsigned char *)texts->ca, (unsigned)strlen(texts->ca) };

        got = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
        if (got <= 0)
            rc = qf_err_set(err, QF_EINVAL, "%s: %s", files->paths[CA],
                            got < 0 ? gnutls_strerror(got) : "no certificate in it");
    }
    gnutls_certificate_free_credentials(credentials);
    return rc;
}

/* Read all of them; NULL and @err filled if they cannot be used. */
static struct shared *read_texts(const struct qf_tls_files *files, struct qf_err *err)
{
    struct shared *shared = qf_xcalloc(1, sizeof(*shared));
    char **texts[FILES] = { &shared->texts.ca, &shared->texts.cert, &shared->texts.key };
    qf_rc rc = QF_OK;

    atomic_init(&shared->owners, 1);
    for (int i = 0; i < FILES && rc == QF_OK; i++)
        if (files->paths[i])
            rc = qf_pem_read(files->paths[i], texts[i], err);
    if (rc == QF_OK)
        rc = check_texts(files, &shared->texts, err);
    if (rc == QF_OK)
        return shared;
    qf_tls_texts_drop(&shared->texts);
    return NULL;
}

/* What the files are now; what is not there is all zeros. */
static void stat_files(const struct qf_tls_files *files, struct stat *ret_stats)
{
    memset(ret_stats, 0, FILES * sizeof(*ret_stats));
    for (int i = 0; i < FILES; i++)
        if (files->paths[i] && stat(files->paths[i], &ret_stats[i]) != 0)
            ret_stats[i] = (struct stat){ 0 };
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The name that a log line gives them. */
static const char *name_of(const struct qf_tls_files *files)
{
    return files->paths[CERT] ? files->paths[CERT] : files->paths[CA];
}

struct qf_tls_files *qf_tls_files_new(const struct qf_tls_paths *paths, struct qf_err *err)
{
    const char *names[FILES] = { paths->ca_file, paths->cert_file, paths->key_file };
    struct qf_tls_files *files;

    if (!paths->cert_file != !paths->key_file) {
        (void)qf_err_set(err, QF_EINVAL, "TLS needs both a certificate and a key file");
        return NULL;
    }
    files = qf_xcalloc(1, sizeof(*files));
    files->lock = qf_lock_new();
    for (int i = 0; i < FILES; i++)
        files->paths[i] = names[i] ? qf_xstrdup(names[i]) : NULL;
    stat_files(files, files->seen);
    files->look_at = qf_clock_mono_ms() + LOOK_EVERY_MS;
    files->now = read_texts(files, err);
    if (!files->now)
        return qf_tls_files_free(files);
    files->now->texts.generation = 1;
    return files;
}

struct qf_tls_files *qf_tls_files_free(struct qf_tls_files *files)
{
    if (!files)
        return NULL;
    if (files->now)
        qf_tls_texts_drop(&files->now->texts);
    for (int i = 0; i < FILES; i++)
        free(files->paths[i]);
    (void)qf_lock_free(files->lock);
    free(files);
    return NULL;
}

/* Whether it is time to look; then nobody else does until the next second has come. */
static bool look_is_due(struct qf_tls_files *files)
{
    qf_time_ms now = qf_clock_mono_ms();
    bool due;

    qf_lock_take(files->lock);
    due = !files->looking && now >= files->look_at;
    if (due) {
        files->look_at = now + LOOK_EVERY_MS;
        files->looking = true;
    }
    qf_lock_drop(files->lock);
    return due;
}

/* Who looks was the only one since, so nobody else gave out a generation. */
static void replace(struct qf_tls_files *files, struct shared *next)
{
    struct shared *old;

    qf_lock_take(files->lock);
    old = files->now;
    if (next) {
        next->texts.generation = old->texts.generation + 1;
        files->now = next;
    }
    files->looking = false;
    qf_lock_drop(files->lock);
    if (next)
        qf_tls_texts_drop(&old->texts);
}

/* The files were described before they are read: one that changes in between is read once more. */
static struct shared *read_again(struct qf_tls_files *files, const struct stat *stats)
{
    struct qf_err err = { 0 };
    struct shared *next = read_texts(files, &err);

    memcpy(files->seen, stats, sizeof(files->seen));
    if (next)
        QF_LOG_INFO("TLS files read again", QF_KV_STR("file", name_of(files)));
    else
        QF_LOG_WARN("TLS files cannot be used, those read before stay",
                    QF_KV_STR("error", err.msg));
    return next;
}

void qf_tls_files_look(struct qf_tls_files *files)
{
    struct stat stats[FILES];
    bool same = true;

    if (!look_is_due(files))
        return;
    stat_files(files, stats);
    for (int i = 0; i < FILES; i++)
        same &= same_file(&stats[i], &files->seen[i]);
    replace(files, same ? NULL : read_again(files, stats));
}

const struct qf_tls_texts *qf_tls_files_take(struct qf_tls_files *files)
{
    struct shared *now;

    qf_lock_take(files->lock);
    now = files->now;
    (void)atomic_fetch_add(&now->owners, 1);
    qf_lock_drop(files->lock);
    return &now->texts;
}

uint64_t qf_tls_files_generation(struct qf_tls_files *files)
{
    uint64_t generation;

    qf_lock_take(files->lock);
    generation = files->now->texts.generation;
    qf_lock_drop(files->lock);
    return generation;
}
