/* discovery.c - when to look around, and what to do with what was found. */
#include "queryapi/discovery/discovery.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/log.h"
#include "queryapi/discovery/discovery_int.h"

struct qa_discovery {
    struct qa_discovery_options options;
    qf_time_ms next;
    atomic_bool looking;
    bool failed; /* of the task: the last look failed, and was logged */
};

bool qa_discovery_parse_kind(const char *text, enum qa_discovery_kind *ret_kind)
{
    static const char *const names[] = { "static", "dns", "kubernetes" };

    for (size_t i = 0; i < QF_COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_kind = (enum qa_discovery_kind)i;
            return true;
        }
    }
    return false;
}

void qa_endpoints_add(struct endpoints *list, const char *fmt, ...)
{
    char address[300];
    va_list args;

    if (list->count == QA_ENDPOINTS_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(address, sizeof(address), fmt, args);
    va_end(args);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], address) == 0)
            return;
    list->items[list->count++] = qf_xstrdup(address);
}

struct qa_discovery *qa_discovery_new(const struct qa_discovery_options *options,
                                      struct qf_err *err)
{
    struct qa_discovery *discovery;

    if (options->kind == QA_DISCOVERY_KUBERNETES && !options->kubernetes_service) {
        (void)qf_err_set(err, QF_EINVAL, "Kubernetes discovery needs the name of a service");
        return NULL;
    }
    for (size_t i = 0; i < options->worker_count; i++) {
        if (strchr(options->workers[i], ':'))
            continue;
        (void)qf_err_set(err, QF_EINVAL, "worker %s is not HOST:PORT", options->workers[i]);
        return NULL;
    }
    discovery = qf_xcalloc(1, sizeof(*discovery));
    discovery->options = *options;
    if (!discovery->options.interval_ms)
        discovery->options.interval_ms = 2000;
    return discovery;
}

struct qa_discovery *qa_discovery_free(struct qa_discovery *discovery)
{
    free(discovery);
    return NULL;
}

static qf_rc look_everywhere(struct qa_discovery *discovery, struct endpoints *list,
                             struct qf_err *err)
{
    const struct qa_discovery_options *options = &discovery->options;
    qf_rc rc = QF_OK;

    if (options->kind == QA_DISCOVERY_KUBERNETES)
        return qa_kubernetes_look(options, list, err);
    for (size_t i = 0; i < options->worker_count && rc == QF_OK; i++) {
        if (options->kind == QA_DISCOVERY_DNS)
            rc = qa_dns_look(options->workers[i], list, err);
        else
            qa_endpoints_add(list, "%s", options->workers[i]);
    }
    return rc;
}

static void look(void *arg)
{
    struct qa_discovery *discovery = arg;
    struct endpoints *list = qf_xcalloc(1, sizeof(*list));
    struct qf_err err = { 0 };

    if (look_everywhere(discovery, list, &err) == QF_OK) {
        discovery->failed = false;
        discovery->options.found(discovery->options.ctx, (const char *const *)list->items,
                                 list->count);
    } else if (!discovery->failed) {
        discovery->failed = true;
        QF_LOG_WARN("discovery failed, the workers known so far stay",
                    QF_KV_STR("reason", err.msg));
    }
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list);
    atomic_store(&discovery->looking, false);
}

void qa_discovery_tick(struct qa_discovery *discovery, qf_time_ms now)
{
    if (now < discovery->next || atomic_exchange(&discovery->looking, true))
        return;
    discovery->next = discovery->options.kind == QA_DISCOVERY_STATIC
                          ? QF_TIME_NEVER
                          : now + discovery->options.interval_ms;
    if (!qf_pool_submit(discovery->options.pool, look, discovery)) {
        discovery->next = now;
        atomic_store(&discovery->looking, false);
    }
}
