/* fuzz_queue_log.c - any bytes in place of log files: opening refuses them or gives a log that
 * works.
 *
 * The first byte chooses: the rest is the file itself; or edits (position, new byte) to a good log;
 * or the body of a frame that is otherwise whole, which a checksum alone would not stop. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/log/log.h"
#include "tests/lib/queue/sim_disk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct ql_options options = { .generation = 1, .salt = 7, .file_bytes = 512 };

static struct ql_log *open_log(struct sim_disk *disk)
{
    struct ql_log *log;
    struct qf_err err = { 0 };

    return ql_log_open(sim_disk_of(disk), &options, 1, &log, NULL, &err) == QF_OK ? log : NULL;
}

static void fill(struct sim_disk *disk)
{
    struct ql_log *log = open_log(disk);
    qf_rc rc = QF_OK;

    for (uint64_t i = 1; rc == QF_OK && i <= 12; i++) {
        struct ql_entry entry = { i, 1, QL_COMMAND, QF_STR_INIT("sixty bytes or so of record") };

        rc = ql_log_append(log, &entry, 1, false, NULL);
        if (rc == QF_OK && i % 3 == 0)
            rc = ql_log_sync(log, NULL);
    }
    assert(rc == QF_OK);
    (void)ql_log_free(log);
}

static void edit(struct sim_disk *disk, const uint8_t *data, size_t size)
{
    fill(disk);
    for (size_t i = 0; i + 4 <= size; i += 4) {
        char name[QL_NAME_SIZE];
        unsigned char *byte;

        ql_log_file_name(name, 1, 1 + data[i] % 3);
        byte = sim_disk_byte(disk, name, data[i + 1] | (uint64_t)(data[i + 2] & 3) << 8);
        if (byte)
            *byte = data[i + 3];
    }
}

static void seal(struct sim_disk *disk, const uint8_t *data, size_t size)
{
    unsigned char header[QL_FILE_HEADER], frame[QL_FRAME_HEADER] = { 0 };
    struct qf_strbuf file = QF_STRBUF_INIT;
    struct ql_chain chain;
    char name[QL_NAME_SIZE];

    ql_file_header_put(header, &(struct ql_file_header){ 1, 1, 1, { 0, 0 } }, options.salt);
    ql_put(frame, 0x4d524651, 4);
    ql_put(frame + 4, size ? data[0] : 0, 4);
    ql_put(frame + 8, 1, 8);
    ql_put(frame + 24, size, 8);
    ql_put(frame + 32, ql_check(frame, 32, options.salt), 8);
    chain = ql_chain_next((struct ql_chain){ 0, 0 }, frame, 40, data, size);
    ql_put(frame + 40, chain.low, 8);
    ql_put(frame + 48, chain.high, 8);
    qf_strbuf_add(&file, header, sizeof(header));
    qf_strbuf_add(&file, frame, sizeof(frame));
    qf_strbuf_add(&file, data, size);
    ql_log_file_name(name, 1, 1);
    sim_disk_put(disk, name, file.data, file.len);
    qf_strbuf_done(&file);
}

/* What opened must work: every entry can be read, one more appended, and all of it is there again.
 */
static void use(struct sim_disk *disk, struct ql_log *log)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    uint64_t last = ql_log_last(log);
    struct ql_entry entry;
    qf_rc rc = QF_OK;

    for (uint64_t i = ql_log_first(log); rc == QF_OK && i <= last; i++)
        rc = ql_log_read(log, i, &buf, &entry, NULL);
    assert(rc == QF_OK);
    entry = (struct ql_entry){ last + 1, 9, QL_NOOP, { NULL, 0 } };
    rc = ql_log_append(log, &entry, 1, true, NULL);
    if (rc == QF_OK)
        rc = ql_log_sync(log, NULL);
    assert(rc == QF_OK);
    (void)ql_log_free(log);
    log = open_log(disk);
    assert(log);
    assert(ql_log_last(log) == last + 1);
    (void)ql_log_free(log);
    qf_strbuf_done(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_disk *disk = sim_disk_new("fuzz");
    struct ql_log *log;
    char name[QL_NAME_SIZE];

    if (!size) {
        (void)sim_disk_free(disk);
        return 0;
    }
    if (data[0] % 3 == 0) {
        ql_log_file_name(name, 1, 1);
        sim_disk_put(disk, name, data + 1, size - 1);
    } else if (data[0] % 3 == 1) {
        edit(disk, data + 1, size - 1);
    } else {
        seal(disk, data + 1, size - 1);
    }
    log = open_log(disk);
    if (log)
        use(disk, log);
    (void)sim_disk_free(disk);
    return 0;
}
