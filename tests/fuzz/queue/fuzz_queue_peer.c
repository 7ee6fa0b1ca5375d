/* fuzz_queue_peer.c - any bytes as a frame between nodes, as a message of consensus in one, and as a
 * bundle: each is refused, or comes out of its encoder as it went in.
 *
 * The first byte chooses which. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/codec/peer.h"
#include "queue/peer/bundle.h"
#include "queue/peer/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_message(struct qf_str bytes)
{
    struct qp_entries scratch = { 0 };
    struct qc_message message;
    struct qf_strbuf again = QF_STRBUF_INIT;

    if (qp_message_decode(bytes, &scratch, &message, NULL) == QF_OK) {
        assert(!qc_message_check(&message));
        qp_message_encode(&again, &message);
        assert(qf_str_eq(qf_strbuf_view(&again), bytes));
        assert(again.len == qp_message_bytes(&message));
    }
    qf_strbuf_done(&again);
    qp_entries_done(&scratch);
}

/* A frame may be written in more than one way; decoded again it is the same one. */
static void try_frame(struct qf_str bytes)
{
    struct qf_arena *arena = qf_arena_new(PB_PEER_DECODE_BYTES_MAX);
    struct pb_peer_frame frame, second;
    struct qf_strbuf once = QF_STRBUF_INIT, twice = QF_STRBUF_INIT;
    qf_rc rc;

    if (pb_peer_decode(arena, bytes, &frame, NULL) == QF_OK) {
        pb_peer_encode(&once, &frame);
        rc = pb_peer_decode(arena, qf_strbuf_view(&once), &second, NULL);
        assert(rc == QF_OK);
        pb_peer_encode(&twice, &second);
        assert(qf_str_eq(qf_strbuf_view(&once), qf_strbuf_view(&twice)));
        if (frame.kind == PB_PEER_MESSAGE)
            try_message(frame.u.message.body);
    }
    qf_strbuf_done(&once);
    qf_strbuf_done(&twice);
    (void)qf_arena_free(arena);
}

static void try_bundle(struct qf_str bytes)
{
    struct qp_bundle bundle;
    char path[64];
    int fd = memfd_create("bundle", MFD_CLOEXEC);

    assert(fd >= 0);
    assert(write(fd, bytes.data, bytes.len) == (ssize_t)bytes.len);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (qp_bundle_open(path, &bundle, NULL) == QF_OK)
        qp_bundle_close(&bundle);
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str bytes = { (const char *)data + 1, size - 1 };

    if (size == 0)
        return 0;
    switch (data[0] % 3) {
    case 0:
        try_frame(bytes);
        break;
    case 1:
        try_message(bytes);
        break;
    case 2:
        try_bundle(bytes);
        break;
    }
    return 0;
}
