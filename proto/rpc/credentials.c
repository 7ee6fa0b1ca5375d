/* credentials.c - gRPC credentials from PEM files. */
#include "proto/rpc/credentials.h"

#include <string.h>

#include "base/net/pem.h"
#include "base/pure/alloc.h"

/* The texts of the files, where there are any. */
struct texts {
    char *ca, *cert, *key;
};

static void texts_done(struct texts *texts)
{
    qf_freep(&texts->ca);
    qf_freep(&texts->cert);
    qf_freep(&texts->key);
}

static qf_rc texts_read(const struct rpc_tls *tls, struct texts *texts, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    if (!tls->cert_file != !tls->key_file)
        return qf_err_set(err, QF_EINVAL, "TLS needs both a certificate and a key file");
    if (tls->cert_file)
        rc = qf_pem_read(tls->cert_file, &texts->cert, err);
    if (rc == QF_OK && tls->key_file)
        rc = qf_pem_read(tls->key_file, &texts->key, err);
    if (rc == QF_OK && tls->ca_file)
        rc = qf_pem_read(tls->ca_file, &texts->ca, err);
    return rc;
}

grpc_channel_credentials *rpc_channel_credentials(const struct rpc_tls *tls, struct qf_err *err)
{
    QF_CLEANUP(texts_done) struct texts texts = { 0 };
    grpc_ssl_pem_key_cert_pair pair;
    grpc_channel_credentials *credentials;

    if (!tls->ca_file)
        return grpc_insecure_credentials_create();
    if (texts_read(tls, &texts, err))
        return NULL;
    pair = (grpc_ssl_pem_key_cert_pair){ .private_key = texts.key, .cert_chain = texts.cert };
    credentials = grpc_ssl_credentials_create(texts.ca, texts.key ? &pair : NULL, NULL, NULL);
    if (!credentials)
        (void)qf_err_set(err, QF_EINVAL, "%s: not usable as TLS files", tls->ca_file);
    return credentials;
}

grpc_server_credentials *rpc_server_credentials(const struct rpc_tls *tls, struct qf_err *err)
{
    QF_CLEANUP(texts_done) struct texts texts = { 0 };
    grpc_ssl_pem_key_cert_pair pair;
    grpc_server_credentials *credentials;

    if (!tls->cert_file && !tls->key_file && !tls->ca_file)
        return grpc_insecure_server_credentials_create();
    if (!tls->cert_file) {
        (void)qf_err_set(err, QF_EINVAL, "TLS needs both a certificate and a key file");
        return NULL;
    }
    if (texts_read(tls, &texts, err))
        return NULL;
    pair = (grpc_ssl_pem_key_cert_pair){ .private_key = texts.key, .cert_chain = texts.cert };
    credentials = grpc_ssl_server_credentials_create_ex(
        texts.ca, &pair, 1,
        texts.ca ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                 : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
        NULL);
    if (!credentials)
        (void)qf_err_set(err, QF_EINVAL, "bad TLS files");
    return credentials;
}

static bool has_property(const grpc_auth_context *context, const char *property, const char *name)
{
    grpc_auth_property_iterator iterator =
        grpc_auth_context_find_properties_by_name(context, property);
    const grpc_auth_property *found;

    while ((found = grpc_auth_property_iterator_next(&iterator)) != NULL)
        if (found->value_length == strlen(name) &&
            memcmp(found->value, name, found->value_length) == 0)
            return true;
    return false;
}

bool rpc_peer_has_name(grpc_call *call, const char *name)
{
    grpc_auth_context *context = grpc_call_auth_context(call);
    bool found = context && grpc_auth_context_peer_is_authenticated(context) &&
                 (has_property(context, GRPC_X509_CN_PROPERTY_NAME, name) ||
                  has_property(context, GRPC_X509_SAN_PROPERTY_NAME, name));

    grpc_auth_context_release(context);
    return found;
}
