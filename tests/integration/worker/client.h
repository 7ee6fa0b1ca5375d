/* client.h - the API's end of a control stream, for tests: one thread, blocking calls.
 *
 * Heartbeats are sent and answered while client_receive() waits, as an API would. */
#ifndef TESTS_INTEGRATION_WORKER_CLIENT_H
#define TESTS_INTEGRATION_WORKER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec/control.h"

struct client;

struct client_options {
    const char *target;          /* "127.0.0.1:port" */
    const char *ca, *cert, *key; /* PEM text; NULL: no TLS */
    const char *method;          /* NULL: the control stream */
    uint32_t protocol_version;   /* of Hello; 0: ours */
    bool no_hello, no_heartbeat;
};

/* Opens the stream; whether the worker answers shows with the first receive. */
struct client *client_new(const struct client_options *options);
struct client *client_free(struct client *client); /* Cancels. Accepts NULL, returns NULL. */

/* False if the stream is over. Strings are borrowed for the call. */
bool client_send(struct client *client, const struct pb_api_message *message);
bool client_send_bytes(struct client *client, struct qf_str bytes);
/* No more messages from this side. */
void client_half_close(struct client *client);

/* The next message that is no heartbeat, within @timeout_ms. False: none, or the stream is over.
 * Strings live as long as the client. */
bool client_receive(struct client *client, struct pb_worker_message *ret_message,
                    int64_t timeout_ms);
/* The same, skipping messages of other kinds. */
bool client_receive_kind(struct client *client, enum pb_worker_kind kind,
                         struct pb_worker_message *ret_message, int64_t timeout_ms);
/* Raw bytes of the next message, for other services. */
bool client_receive_bytes(struct client *client, struct qf_str *ret_bytes, int64_t timeout_ms);
/* Wait for the end of the stream: the gRPC status, or -1. @ret_details may be NULL. */
int client_wait_end(struct client *client, int64_t timeout_ms, const char **ret_details);

/* Echoes of our heartbeats, and heartbeats of the worker, seen so far. */
unsigned client_echoes(const struct client *client);
unsigned client_beats(const struct client *client);

#endif
