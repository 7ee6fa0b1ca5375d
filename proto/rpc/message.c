/* message.c - messages as bytes in one piece. */
#include "proto/rpc/message.h"

#include <grpc/byte_buffer_reader.h>
#include <stdint.h>

bool rpc_message_view(grpc_byte_buffer *message, grpc_slice *ret_slice, struct qf_str *ret_bytes)
{
    grpc_byte_buffer_reader reader;

    if (!grpc_byte_buffer_reader_init(&reader, message))
        return false;
    *ret_slice = grpc_byte_buffer_reader_readall(&reader);
    grpc_byte_buffer_reader_destroy(&reader);
    *ret_bytes = (struct qf_str){ (const char *)GRPC_SLICE_START_PTR(*ret_slice),
                                  GRPC_SLICE_LENGTH(*ret_slice) };
    return true;
}

grpc_arg rpc_int_arg(const char *key, int value)
{
    grpc_arg arg = { .type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key };

    arg.value.integer = value;
    return arg;
}
