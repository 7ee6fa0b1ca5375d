/* identity.h - what a TLS server shows its clients and whom it believes, for one connection each. */
#ifndef BASE_HTTP_IDENTITY_H
#define BASE_HTTP_IDENTITY_H

#include <gnutls/gnutls.h>

#include "base/net/tls_files.h"

/* Certificate, key and authorities of one generation of files. Connections share it. */
struct qh_identity;

/* The one for the files as read last; @now, the one in use, if they did not change since then,
 * or there is no memory for another. Takes the caller's reference to @now, which may be NULL, and gives one back:
 * NULL only where @now is. */
struct qh_identity *qh_identity_renew(struct qh_identity *now, struct qf_tls_files *files);
struct qh_identity *qh_identity_ref(struct qh_identity *identity);
/* Accepts NULL, returns NULL. */
struct qh_identity *qh_identity_drop(struct qh_identity *identity);

/* Let @session, whose handshake has not begun, show @identity. It must outlive the session. */
void qh_identity_apply(struct qh_identity *identity, gnutls_session_t session);

#endif
