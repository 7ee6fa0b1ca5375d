/* fuzz_control.c - any bytes decode to a message or an error, and a message survives a round trip.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/codec/control.h"
#include "proto/codec/health.h"
#include "proto/codec/remote_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip_api(struct qf_arena *arena, const struct pb_api_message *first)
{
    struct qf_strbuf once = QF_STRBUF_INIT, twice = QF_STRBUF_INIT;
    struct pb_api_message again;

    pb_api_encode(&once, first);
    assert(pb_api_decode(arena, qf_strbuf_view(&once), &again, NULL) == QF_OK);
    pb_api_encode(&twice, &again);
    assert(qf_str_eq(qf_strbuf_view(&once), qf_strbuf_view(&twice)));
    qf_strbuf_done(&once);
    qf_strbuf_done(&twice);
}

static void round_trip_worker(struct qf_arena *arena, const struct pb_worker_message *first)
{
    struct qf_strbuf once = QF_STRBUF_INIT, twice = QF_STRBUF_INIT;
    struct pb_worker_message again;

    pb_worker_encode(&once, first);
    assert(pb_worker_decode(arena, qf_strbuf_view(&once), &again, NULL) == QF_OK);
    pb_worker_encode(&twice, &again);
    assert(qf_str_eq(qf_strbuf_view(&once), qf_strbuf_view(&twice)));
    qf_strbuf_done(&once);
    qf_strbuf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str bytes = { (const char *)data, size };
    struct qf_arena *arena = qf_arena_new(PB_DECODE_BYTES_MAX * 2);
    struct pb_api_message api;
    struct pb_worker_message worker;
    struct pb_read_request read;
    struct qf_str service;

    if (pb_api_decode(arena, bytes, &api, NULL) == QF_OK && api.kind != PB_API_UNKNOWN)
        round_trip_api(arena, &api);
    if (pb_worker_decode(arena, bytes, &worker, NULL) == QF_OK && worker.kind != PB_WORKER_UNKNOWN)
        round_trip_worker(arena, &worker);
    (void)!pb_health_request_decode(arena, bytes, &service, NULL);
    (void)!pb_read_decode(arena, bytes, &read, NULL);
    (void)qf_arena_free(arena);
    return 0;
}
