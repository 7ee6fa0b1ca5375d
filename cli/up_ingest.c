/* up_ingest.c - taking ingest nodes into a cluster. */
#include "cli/up_ingest.h"

#include "cli/web.h"

#define POST_MS 1000L

/* Whether it is so now. */
static bool change(const struct up_node *first, const char *what, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT, path = QF_STRBUF_INIT;
    struct cli_web web = { 0 };
    long status;

    qf_strbuf_printf(&url, "http://%s", first->http);
    qf_strbuf_puts(&path, "/v1/members");
    cli_web_param(&path, "change", what);
    cli_web_param(&path, "name", name);
    web.url = qf_strbuf_cstr(&url);
    status = cli_web_post(&web,
                          &(struct cli_web_request){ .method = "POST",
                                                     .path = qf_strbuf_cstr(&path),
                                                     .content_type = "application/json" },
                          POST_MS);
    return status == 200 || status == 409; /* it is one already */
}

bool up_ingest_join(const struct up_node *first, const struct up_node *node)
{
    return change(first, "add", node->name) && change(first, "promote", node->name);
}
