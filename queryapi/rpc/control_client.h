/* control_client.h - the API's end of the control streams: one gRPC call per worker session.
 *
 * All functions are called on the coordinator's thread, which alone touches calls. A thread of its
 * own waits on gRPC's completion queue and forwards each tag through `post`; the coordinator hands
 * it back with qa_rpc_complete(), from where the callbacks are called. No call blocks. A message that
 * gRPC could send at once wakes nobody: the coordinator sees its completion where it sent it.
 *
 * A session's outgoing queue is bounded: a worker that does not read is a lost worker. Bursts
 * beyond the bound are fine as long as it reads. */
#ifndef QUERYAPI_RPC_CONTROL_CLIENT_H
#define QUERYAPI_RPC_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/duration.h"
#include "base/pure/err.h"
#include "proto/codec/control.h"

struct qa_rpc;

struct qa_rpc_options {
    const char *api_id;
    /* Give @tag to the coordinator, which calls qa_rpc_complete(tag, ok). Called on the completion
     * thread; may wait. */
    void (*post)(void *ctx, void *tag, bool ok);
    /* The same on the coordinator's thread; false if there is no room for it now. Never waits. */
    bool (*try_post)(void *ctx, void *tag, bool ok);
    /* On the coordinator's thread: */
    void (*message)(void *ctx, uint64_t session, const struct pb_worker_message *message);
    /* The session is over; called exactly once per dial. @broke: the stream broke, and neither we nor
     * the worker ended it. */
    void (*closed)(void *ctx, uint64_t session, const char *why, bool broke);
    void *ctx;
    /* Zero means the default. */
    size_t queue_messages_max;   /* 65536 */
    size_t queue_bytes_max;      /* 64 MiB */
    int64_t dial_timeout_ms;     /* 5 s to the first message */
    struct qf_tls_files *tls;    /* mutual TLS with what it has at the dial; NULL: none; borrowed */
    const char *tls_server_name; /* in workers' certificates instead of their address; or NULL */
};

struct qa_rpc *qa_rpc_new(const struct qa_rpc_options *options, struct qf_err *err);
/* Cancel every call. Their `closed` callbacks come as their tags complete. */
void qa_rpc_cancel_all(struct qa_rpc *rpc);
/* Calls that are not yet over. */
size_t qa_rpc_count(const struct qa_rpc *rpc);
/* Only once qa_rpc_count() is 0. Accepts NULL, returns NULL. */
struct qa_rpc *qa_rpc_free(struct qa_rpc *rpc);

/* Open a stream to @address ("host:port") as @session, and say hello. */
void qa_rpc_dial(struct qa_rpc *rpc, uint64_t session, const char *address);
/* Queue a message; too much of it ends the session. Unknown sessions are ignored. An ArtifactAck waits
 * for the next message to that worker, or for qa_rpc_tick(). */
void qa_rpc_send(struct qa_rpc *rpc, uint64_t session, const struct pb_api_message *message);
/* End the session; `closed` follows. */
void qa_rpc_hangup(struct qa_rpc *rpc, uint64_t session, const char *why);

void qa_rpc_complete(struct qa_rpc *rpc, void *tag, bool ok);
/* End dials that take too long, and send what waits. */
void qa_rpc_tick(struct qa_rpc *rpc, qf_time_ms now);

#endif
