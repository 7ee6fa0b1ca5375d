/* fuzz_ingest_record.c - any bytes as a record of the log: refused, or walked over to the end, with as
 * many series and samples as it says. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/core/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct in_record *record, struct qf_arena *arena)
{
    struct in_record_cursor cursor = in_record_series_of(record);
    struct in_record_series series;
    struct in_sample sample;
    uint32_t count = 0;

    for (; in_record_next_series(&cursor, arena, &series); count++)
        while (in_record_next_sample(&cursor, arena, &sample))
            assert(!sample.histogram ||
                   sample.histogram->positive_span_count <= record->series.len);
    assert(qf_arena_failed(arena) || (count == record->series_count && !cursor.rest.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_arena *arena = qf_arena_new((size_t)1 << 24);
    struct in_sealed_file file;
    struct in_record record;
    uint32_t files = 0;

    if (in_record_decode((struct qf_str){ (const char *)data, size }, &record, NULL) == QF_OK) {
        if (record.kind == IN_SAMPLES)
            walk(&record, arena);
        while (record.kind == IN_SEALED && files < record.file_count &&
               in_record_next_file(&record.files, &file))
            files++;
        assert(files == record.file_count);
    }
    (void)qf_arena_free(arena);
    return 0;
}
