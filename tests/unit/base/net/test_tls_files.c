/* test_tls_files.c - TLS files that are renewed. */
#include "base/net/tls_files.h"

#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "tests/lib/test.h"

/* A folder of this test alone, with the names of its files. */
struct folder {
    char dir[40], cert[60], key[60], ca[60];
};

static void write_file(const char *path, const void *text, size_t len)
{
    char fresh[80];
    FILE *file;

    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    file = fopen(fresh, "w");
    CHECK(file && fwrite(text, 1, len, file) == len);
    (void)fclose(file);
    CHECK_EQ(rename(fresh, path), 0);
}

/* A key and a certificate that it signed itself, for the files that have a name. */
static void write_pair(const char *cert_path, const char *key_path, const char *ca_path)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t cert;
    gnutls_datum_t text;
    unsigned char serial = 1;

    CHECK_EQ(gnutls_x509_privkey_init(&key), 0);
    CHECK_EQ(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                          GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
             0);
    CHECK_EQ(gnutls_x509_crt_init(&cert), 0);
    CHECK_EQ(gnutls_x509_crt_set_version(cert, 3), 0);
    CHECK_EQ(gnutls_x509_crt_set_serial(cert, &serial, 1), 0);
    CHECK_EQ(gnutls_x509_crt_set_activation_time(cert, time(NULL) - 60), 0);
    CHECK_EQ(gnutls_x509_crt_set_expiration_time(cert, time(NULL) + 3600), 0);
    CHECK_EQ(gnutls_x509_crt_set_dn(cert, "CN=test", NULL), 0);
    CHECK_EQ(gnutls_x509_crt_set_key(cert, key), 0);
    CHECK_EQ(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0), 0);
    CHECK_EQ(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &text), 0);
    if (cert_path)
        write_file(cert_path, text.data, text.size);
    if (ca_path)
        write_file(ca_path, text.data, text.size);
    gnutls_free(text.data);
    CHECK_EQ(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), 0);
    if (key_path)
        write_file(key_path, text.data, text.size);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
}

static struct folder folder_new(void)
{
    struct folder folder = { .dir = "/tmp/pf-tls-XXXXXX" };

    CHECK(mkdtemp(folder.dir));
    (void)snprintf(folder.cert, sizeof(folder.cert), "%s/cert", folder.dir);
    (void)snprintf(folder.key, sizeof(folder.key), "%s/key", folder.dir);
    (void)snprintf(folder.ca, sizeof(folder.ca), "%s/ca", folder.dir);
    write_pair(folder.cert, folder.key, folder.ca);
    return folder;
}

static void folder_remove(const struct folder *folder)
{
    (void)unlink(folder->cert);
    (void)unlink(folder->key);
    (void)unlink(folder->ca);
    CHECK_EQ(rmdir(folder->dir), 0);
}

static struct qf_tls_files *files_new(const struct folder *folder, struct qf_err *err)
{
    struct qf_tls_paths paths = { folder->ca, folder->cert, folder->key };

    return qf_tls_files_new(&paths, err);
}

/* Look when the second in which nobody looks is over; the generation that is used then. */
static uint64_t look_later(struct qf_tls_files *files)
{
    (void)usleep(1050 * 1000);
    qf_tls_files_look(files);
    return qf_tls_files_generation(files);
}

TEST(a_renewed_pair_is_taken_when_both_halves_are_there)
{
    struct folder folder = folder_new();
    struct qf_err err = { 0 };
    struct qf_tls_files *files = files_new(&folder, &err);
    const struct qf_tls_texts *before, *after;

    CHECK_STR(err.msg, "");
    before = qf_tls_files_take(files);
    CHECK_EQ(before->generation, 1);
    write_pair(folder.cert, NULL, NULL);
    qf_tls_files_look(files); /* within the second: not looked at */
    CHECK_EQ(look_later(files), 1);
    write_pair(folder.cert, folder.key, NULL);
    CHECK_EQ(look_later(files), 2);
    after = qf_tls_files_take(files);
    CHECK(strcmp(after->cert, before->cert) != 0);
    CHECK(strcmp(after->key, before->key) != 0);
    CHECK_STR(after->ca, before->ca);
    (void)qf_tls_files_free(files);
    CHECK(strstr(before->key, "PRIVATE KEY")); /* who took it has it as long as it wants */
    qf_tls_texts_drop(before);
    qf_tls_texts_drop(after);
    folder_remove(&folder);
}

TEST(files_without_certificates_change_nothing)
{
    struct folder folder = folder_new();
    struct qf_tls_files *files = files_new(&folder, NULL);

    write_file(folder.ca, "-----BEGIN NOTHING-----\n", 24);
    CHECK_EQ(look_later(files), 1);
    write_pair(NULL, NULL, folder.ca);
    CHECK_EQ(look_later(files), 2);
    (void)qf_tls_files_free(files);
    folder_remove(&folder);
}

TEST(what_cannot_be_used_is_an_error_at_the_start)
{
    struct folder folder = folder_new();
    struct qf_tls_paths half = { .cert_file = folder.cert };
    struct qf_err err = { 0 };

    CHECK(!qf_tls_files_new(&half, &err));
    CHECK_STR(err.msg, "TLS needs both a certificate and a key file");
    err = (struct qf_err){ 0 };
    write_pair(NULL, folder.key, NULL);
    CHECK(!files_new(&folder, &err));
    CHECK_EQ(err.rc, QF_EINVAL);
    CHECK(strstr(err.msg, folder.key));
    err = (struct qf_err){ 0 };
    CHECK_EQ(unlink(folder.key), 0);
    CHECK(!files_new(&folder, &err));
    CHECK_EQ(err.rc, QF_EIO);
    folder_remove(&folder);
}
