/* credentials.c - gRPC credentials from PEM files. */
#include "proto/rpc/credentials.h"

#include <string.h>

grpc_channel_credentials *rpc_channel_credentials(struct qf_tls_files *files, struct qf_err *err)
{
    const struct qf_tls_texts *texts;
    grpc_ssl_pem_key_cert_pair pair;
    grpc_channel_credentials *credentials;

    if (!files)
        return grpc_insecure_credentials_create();
    texts = qf_tls_files_take(files);
    pair = (grpc_ssl_pem_key_cert_pair){ .private_key = texts->key, .cert_chain = texts->cert };
    credentials = grpc_ssl_credentials_create(texts->ca, texts->key ? &pair : NULL, NULL, NULL);
    qf_tls_texts_drop(texts);
    if (!credentials)
        (void)qf_err_set(err, QF_EINVAL, "TLS files that gRPC cannot use");
    return credentials;
}

/* gRPC asks at the start and before every handshake. */
static grpc_ssl_certificate_config_reload_status
latest_config(void *arg, grpc_ssl_server_certificate_config **ret_config)
{
    struct rpc_identity *identity = arg;
    const struct qf_tls_texts *texts;
    grpc_ssl_pem_key_cert_pair pair;

    qf_tls_files_look(identity->files);
    if (qf_tls_files_generation(identity->files) == identity->generation)
        return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    texts = qf_tls_files_take(identity->files);
    pair = (grpc_ssl_pem_key_cert_pair){ .private_key = texts->key, .cert_chain = texts->cert };
    *ret_config = grpc_ssl_server_certificate_config_create(texts->ca, &pair, 1);
    identity->generation = texts->generation;
    qf_tls_texts_drop(texts);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

/* With authorities a client needs a certificate of theirs. */
static bool asks_for_certificates(struct qf_tls_files *files)
{
    const struct qf_tls_texts *texts = qf_tls_files_take(files);
    bool asks = texts->ca != NULL;

    qf_tls_texts_drop(texts);
    return asks;
}

grpc_server_credentials *rpc_server_credentials(struct rpc_identity *identity, struct qf_err *err)
{
    grpc_server_credentials *credentials;

    if (!identity->files)
        return grpc_insecure_server_credentials_create();
    credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            asks_for_certificates(identity->files)
                ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            latest_config, identity));
    if (!credentials)
        (void)qf_err_set(err, QF_EINVAL, "TLS files that gRPC cannot use");
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
