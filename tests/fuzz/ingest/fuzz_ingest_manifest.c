/* fuzz_ingest_manifest.c - any text as what a node left about the files of a closed range: taken as it is,
 * or removed, and never anything outside of its folder. An odd first byte stands for the right first and
 * last line around it. */
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/map.h"
#include "ingest/head/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/promfabric-fuzz-XXXXXX";
static char inside[sizeof(folder) + 8], manifest[sizeof(inside) + 16], outside[sizeof(folder) + 16];

static void write_file(const char *path, struct qf_str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t done = write(fd, text.data, text.len);

    assert(fd >= 0 && done == (ssize_t)text.len);
    (void)close(fd);
}

static void clean(void)
{
    (void)unlink(outside);
    (void)rmdir(inside);
    (void)rmdir(folder);
}

static void make_folder(void)
{
    if (inside[0])
        return;
    if (!mkdtemp(folder))
        abort();
    (void)snprintf(inside, sizeof(inside), "%s/head", folder);
    (void)snprintf(manifest, sizeof(manifest), "%s/1.range", inside);
    (void)snprintf(outside, sizeof(outside), "%s/outside", folder);
    if (mkdir(inside, 0700) != 0)
        abort();
    write_file(outside, QF_STR("x"));
    (void)atexit(clean);
}

/* As a node of this boot of the machine would have begun and ended it. */
static void wrap(struct qf_strbuf *text, struct qf_str middle)
{
    char boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file) {
        if (fscanf(file, "%63s", boot) != 1)
            boot[0] = 0;
        (void)fclose(file);
    }
    qf_strbuf_printf(text, "promfabric range 2 %s\n", boot);
    qf_strbuf_str(text, middle);
    qf_strbuf_printf(text, "end %016" PRIx64 "\n", qf_hash_bytes(qf_strbuf_view(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct in_head head = { .options = { .shards = 4 }, .dir = inside };
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_str middle;
    qf_rc rc;

    if (!size)
        return 0;
    make_folder();
    middle = (struct qf_str){ (const char *)data + 1, size - 1 };
    if (data[0] & 1)
        wrap(&text, middle);
    else
        qf_strbuf_str(&text, middle);
    write_file(manifest, qf_strbuf_view(&text));
    rc = in_manifest_load(&head, NULL);
    assert(rc == QF_OK);
    for (size_t i = 0; i < head.kept.count; i++)
        in_kept_done(&head.kept.items[i]);
    QF_VEC_DONE(&head.kept);
    (void)unlink(manifest);
    assert(access(outside, F_OK) == 0);
    qf_strbuf_done(&text);
    return 0;
}
