/* message.h - what gRPC hands over as a message, as bytes in one piece. */
#ifndef PROTO_RPC_MESSAGE_H
#define PROTO_RPC_MESSAGE_H

#include <grpc/grpc.h>
#include <stdbool.h>

#include "base/pure/slice.h"

/* View @message, which stays the caller's, until grpc_slice_unref(*@ret_slice). False if it cannot
 * be read. */
bool rpc_message_view(grpc_byte_buffer *message, grpc_slice *ret_slice, struct qf_str *ret_bytes);

/* An integer among the arguments of a channel or server. */
grpc_arg rpc_int_arg(const char *key, int value);

#endif
