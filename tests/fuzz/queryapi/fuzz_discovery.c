/* fuzz_discovery.c - workers out of any bytes: what ECS and Kubernetes answer.
 *
 * The first byte chooses the decoder. Whatever is found is an address and a port, once each; a question
 * made out of an answer is JSON; a watch ends the same way however its bytes are cut. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/net/address.h"
#include "base/pure/alloc.h"
#include "queryapi/discovery/discovery_int.h"

#define LINE_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_address(const char *address, uint16_t want_port)
{
    struct qf_err err = { 0 };
    char *host;
    uint16_t port;

    if (qf_address_split(address, &host, &port, &err) != QF_OK)
        abort();
    if (want_port && port != want_port)
        abort();
    if (!host[0] || strpbrk(host, "/%@ \t\r\n"))
        abort();
    free(host);
}

static void read_tasks(struct qf_str text)
{
    struct endpoints *list = qf_xcalloc(1, sizeof(*list));

    if (qa_ecs_read_tasks(text, "8082", list, NULL) != QF_OK && list->count)
        abort();
    for (size_t i = 0; i < list->count; i++)
        check_address(list->items[i], 8082);
    qa_endpoints_clear(list);
    free(list);
}

static void read_list(struct qf_str text)
{
    char *question = NULL, more[QA_ECS_TOKEN_MAX] = "";
    json_t *json;

    if (qa_ecs_read_list(text, "c", &question, more, NULL) != QF_OK && question)
        abort();
    if (!question)
        return;
    json = json_loads(question, 0, NULL);
    if (!json || json_array_size(json_object_get(json, "tasks")) == 0)
        abort();
    json_decref(json);
    free(question);
}

static void read_slices(struct qf_str text)
{
    char *found[16];
    size_t count = 0;

    if (qa_kubernetes_parse(text, "control", found, 16, &count, NULL) != QF_OK && count)
        abort();
    for (size_t i = 0; i < count; i++) {
        check_address(found[i], 0);
        free(found[i]);
    }
}

static enum qa_watch_end watch(struct qf_str text, size_t piece)
{
    struct qa_watch watch = { .line = { .limit = LINE_BYTES_MAX }, .end = QA_WATCH_ENDED };
    bool goes_on = true;

    for (size_t at = 0; at < text.len && goes_on; at += piece) {
        struct qf_str part = qf_str_sub(text, at, at + piece);

        goes_on = qa_watch_read(&watch, part.data, part.len);
    }
    qf_strbuf_done(&watch.line);
    return watch.end;
}

static void read_watch(struct qf_str text)
{
    enum qa_watch_end whole = watch(text, text.len + 1);

    if (watch(text, 1) != whole || watch(text, 7) != whole)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const read[])(struct qf_str) = { read_tasks, read_list, read_slices, read_watch };
    struct qf_str text = { (const char *)data + 1, size - 1 };

    if (size > 0)
        read[data[0] % QF_COUNT_OF(read)](text);
    return 0;
}
