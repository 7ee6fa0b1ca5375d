/* credentials.h - gRPC credentials from PEM files, for both ends of a stream. */
#ifndef PROTO_RPC_CREDENTIALS_H
#define PROTO_RPC_CREDENTIALS_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "base/net/tls_files.h"
#include "base/pure/err.h"

/* For the end that dials; NULL: no TLS. The peer must show a certificate that one of the authorities
 * signed. They are those of the files as read last: with a new generation, make new ones. NULL and
 * @err filled: QF_EINVAL. */
grpc_channel_credentials *rpc_channel_credentials(struct qf_tls_files *files, struct qf_err *err);

/* What a server shows, and what it has shown last. Lives as long as the server. */
struct rpc_identity {
    struct qf_tls_files *files; /* borrowed; NULL: no TLS */
    uint64_t generation;        /* gRPC's, under its lock */
};

/* For the end that listens: with authorities among the files, those who dial must show a certificate
 * too. Every handshake looks whether the files changed. NULL and @err filled: QF_EINVAL. */
grpc_server_credentials *rpc_server_credentials(struct rpc_identity *identity, struct qf_err *err);

/* The peer of @call showed a certificate with @name as its common name or among its alternative
 * names. */
bool rpc_peer_has_name(grpc_call *call, const char *name);

#endif
