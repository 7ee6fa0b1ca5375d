/* sealed.c - edits under a seal that is right. */
#include "tests/fuzz/segments/sealed.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "segments/parquet/column_file_seal.h"

/* Chunks lie side by side, each with a checksum: where one ends is where its checksum is right. Small
 * files only: it tries every end. */
static void find_chunks(struct sealed *sealed, const struct colfile_seal *seal)
{
    size_t start = 4;

    for (uint32_t i = 0; i < seal->hash_count; i++) {
        size_t end = start + 1;

        while (end <= seal->offset &&
               XXH3_64bits(sealed->file.data + start, end - start) != colfile_seal_hash(seal, i))
            end++;
        if (end > seal->offset)
            abort();
        QF_VEC_PUSH(&sealed->chunks, end);
        start = end;
    }
}

void sealed_learn(struct sealed *sealed, struct qf_str file)
{
    struct colfile_seal seal;
    uint64_t need = 0;

    qf_strbuf_str(&sealed->file, file);
    if (colfile_seal_open(qf_strbuf_view(&sealed->file), file.len, &seal, &need, NULL) != QF_OK ||
        need)
        abort();
    sealed->offset = seal.offset;
    sealed->footer = (size_t)(seal.footer.data - sealed->file.data);
    find_chunks(sealed, &seal);
}

void sealed_edit(const struct sealed *sealed, const uint8_t *data, size_t size,
                 struct qf_strbuf *out)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf seal = QF_STRBUF_INIT, bytes = QF_STRBUF_INIT;
    size_t start = 4;

    qf_strbuf_str(&bytes, qf_strbuf_view(&sealed->file));
    for (size_t i = 0; i + 2 < size; i += 3) {
        size_t back = (size_t)(data[i] << 8 | data[i + 1]) % (bytes.len - 12);
        size_t place = bytes.len - 9 - back;

        if (place < sealed->offset || place >= sealed->footer)
            bytes.data[place] ^= (char)data[i + 2];
    }
    qf_strbuf_add(out, bytes.data, sealed->offset);
    for (size_t i = 0; i < sealed->chunks.count; i++) {
        size_t end = sealed->chunks.items[i];

        colfile_seal_add_hash(&seal, XXH3_64bits(bytes.data + start, end - start));
        start = end;
    }
    colfile_seal_close(&seal, (uint32_t)sealed->chunks.count, sealed->offset,
                       (struct qf_str){ bytes.data + sealed->footer, bytes.len - sealed->footer });
    qf_strbuf_str(out, qf_strbuf_view(&seal));
    qf_strbuf_add(out, bytes.data + sealed->footer, bytes.len - sealed->footer);
}
