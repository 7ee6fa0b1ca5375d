/* credentials.h - gRPC credentials from PEM files, for both ends of a stream. */
#ifndef PROTO_RPC_CREDENTIALS_H
#define PROTO_RPC_CREDENTIALS_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "base/pure/err.h"

/* PEM files; all NULL: no TLS. */
struct rpc_tls {
    const char *ca_file;              /* who signed the peer's certificate */
    const char *cert_file, *key_file; /* what is shown to the peer; both or neither */
};

/* For the end that dials. With a CA the peer must show a certificate it signed. NULL and @err
 * filled: QF_EIO, QF_EINVAL. */
grpc_channel_credentials *rpc_channel_credentials(const struct rpc_tls *tls, struct qf_err *err);
/* For the end that listens: certificate and key are needed; with a CA those who dial must show a
 * certificate too. NULL and @err filled: QF_EIO, QF_EINVAL. */
grpc_server_credentials *rpc_server_credentials(const struct rpc_tls *tls, struct qf_err *err);

/* The peer of @call showed a certificate with @name as its common name or among its alternative
 * names. */
bool rpc_peer_has_name(grpc_call *call, const char *name);

#endif
