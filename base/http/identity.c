/* identity.c - credentials of a TLS server that change while it runs. */
#include "base/http/identity.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"

struct qh_identity {
    atomic_uint owners;
    uint64_t generation; /* of the files */
    gnutls_certificate_credentials_t credentials;
};

static gnutls_datum_t datum(char *text)
{
    return (gnutls_datum_t){ (unsigned char *)text, (unsigned)strlen(text) };
}

/* The texts were tried when they were read, so that this fails for want of memory alone. */
static struct qh_identity *identity_new(const struct qf_tls_texts *texts)
{
    struct qh_identity *identity = qf_xcalloc(1, sizeof(*identity));
    gnutls_datum_t cert = datum(texts->cert), key = datum(texts->key), ca;
    int rc;

    atomic_init(&identity->owners, 1);
    identity->generation = texts->generation;
    if (gnutls_certificate_allocate_credentials(&identity->credentials) != GNUTLS_E_SUCCESS) {
        free(identity);
        return NULL;
    }
    rc = gnutls_certificate_set_x509_key_mem(identity->credentials, &cert, &key,
                                             GNUTLS_X509_FMT_PEM);
    if (rc >= 0 && texts->ca) {
        ca = datum(texts->ca);
        rc = gnutls_certificate_set_x509_trust_mem(identity->credentials, &ca, GNUTLS_X509_FMT_PEM);
    }
    return rc >= 0 ? identity : qh_identity_drop(identity);
}

struct qh_identity *qh_identity_renew(struct qh_identity *now, struct qf_tls_files *files)
{
    const struct qf_tls_texts *texts;
    struct qh_identity *fresh;

    if (now && qf_tls_files_generation(files) == now->generation)
        return now;
    texts = qf_tls_files_take(files);
    fresh = identity_new(texts);
    qf_tls_texts_drop(texts);
    if (!fresh)
        return now;
    (void)qh_identity_drop(now);
    return fresh;
}

struct qh_identity *qh_identity_ref(struct qh_identity *identity)
{
    (void)atomic_fetch_add(&identity->owners, 1);
    return identity;
}

struct qh_identity *qh_identity_drop(struct qh_identity *identity)
{
    if (identity && atomic_fetch_sub(&identity->owners, 1) == 1) {
        gnutls_certificate_free_credentials(identity->credentials);
        free(identity);
    }
    return NULL;
}

void qh_identity_apply(struct qh_identity *identity, gnutls_session_t session)
{
    (void)gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, identity->credentials);
}
