/* test_spec_protobuf.c - the bytes written by hand are those of proto/leaf_spec.proto. */
#include <string.h>

#include "leaf_spec.pb-c.h"
#include "tests/unit/promql/leaf/spec_plan.h"

/* A protobuf library reads every leaf and writes it again, byte for byte. */
TEST(a_protobuf_library_agrees_with_the_bytes)
{
    for (size_t i = 0; i < QF_COUNT_OF(spec_queries); i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
        Promfabric__Leaf__V2__LeafSpec *spec;
        struct pq_leaf *leaf = spec_plan(arena, spec_queries[i])->leaves[0];
        uint8_t *packed;
        bool same;

        pq_leaf_encode(leaf, &bytes);
        spec = promfabric__leaf__v2__leaf_spec__unpack(NULL, bytes.len, (uint8_t *)bytes.data);
        CHECK_MSG(spec != NULL, "%s", spec_queries[i]);
        CHECK_EQ(spec->n_stages, leaf->stage_count);
        CHECK_EQ(spec->min_ts, leaf->select.min_ts);
        CHECK_EQ(spec->stages[0]->grid->count, leaf->stages[0].grid.count);
        packed = qf_arena_alloc(arena, bytes.len + 100);
        same = promfabric__leaf__v2__leaf_spec__get_packed_size(spec) == bytes.len &&
               promfabric__leaf__v2__leaf_spec__pack(spec, packed) == bytes.len &&
               memcmp(packed, bytes.data, bytes.len) == 0;
        promfabric__leaf__v2__leaf_spec__free_unpacked(spec, NULL);
        CHECK_MSG(same, "%s", spec_queries[i]);
    }
}
