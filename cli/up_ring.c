/* up_ring.c - making a ring of the workers. */
#include "cli/up_ring.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/web.h"

#define POST_MS 1000L

/* Whether it is so now: done, or it was done before. */
static bool post(const struct up_node *first, struct qf_strbuf *path)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT;
    struct cli_web web = { 0 };
    long status;

    qf_strbuf_printf(&url, "http://%s", first->http);
    web.url = qf_strbuf_cstr(&url);
    status = cli_web_post(&web,
                          &(struct cli_web_request){ .method = "POST",
                                                     .path = qf_strbuf_cstr(path),
                                                     .content_type = "application/json" },
                          POST_MS);
    return status == 200 || status == 409;
}

static bool add(const struct up_node *first, const struct up_keeper *keeper)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT, url = QF_STRBUF_INIT;

    qf_strbuf_printf(&url, "http://%s", keeper->http);
    qf_strbuf_puts(&path, "/v1/admin/storage-nodes");
    cli_web_param(&path, "name", keeper->name);
    cli_web_param(&path, "url", qf_strbuf_cstr(&url));
    return post(first, &path);
}

bool up_ring_found(const struct up_node *first, const struct up_keeper *keepers, size_t count,
                   uint64_t copies)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    char number[24];

    for (size_t i = 0; i < count; i++)
        if (!add(first, &keepers[i]))
            return false;
    (void)snprintf(number, sizeof(number), "%" PRIu64, copies);
    qf_strbuf_puts(&path, "/v1/admin/ring");
    cli_web_param(&path, "copies", number);
    return post(first, &path);
}

static void name_file(struct qf_strbuf *path, const char *folder)
{
    qf_strbuf_printf(path, "%s/ports", folder);
}

void up_ring_read_ports(const char *folder, int *ports, size_t count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    FILE *file;
    bool more;

    name_file(&path, folder);
    file = fopen(qf_strbuf_cstr(&path), "re");
    more = file != NULL;
    for (size_t i = 0; i < count; i++) {
        ports[i] = 0;
        more = more && fscanf(file, "%d", &ports[i]) == 1 && ports[i] > 0 && ports[i] < 65536;
        if (!more)
            ports[i] = 0;
    }
    if (file)
        (void)fclose(file);
}

bool up_ring_write_ports(const char *folder, const int *ports, size_t count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    FILE *file;
    bool ok = true;

    name_file(&path, folder);
    file = fopen(qf_strbuf_cstr(&path), "we");
    if (!file)
        return false;
    for (size_t i = 0; i < count; i++)
        ok &= fprintf(file, "%d\n", ports[i]) > 0;
    return fclose(file) == 0 && ok;
}
