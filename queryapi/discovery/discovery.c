/* discovery.c - when to look around, and what to do with what was found. */
#include "queryapi/discovery/discovery.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "queryapi/discovery/discovery_int.h"

/* Changes come in bunches: those of so long are one. */
#define SETTLE_MS 100
/* A watch lasts half a minute when nothing changes. */
#define WATCH_BRIEF_MS 1000

struct qa_discovery {
    struct qa_discovery_options options;
    struct qf_thread *thread;
    struct qf_lock *lock; /* to sleep on */
    bool brief;           /* the last watch ended at once without a change */
    bool full;            /* the last look found too many, which was logged */
    atomic_bool stop;
};

bool qa_discovery_parse_kind(const char *text, enum qa_discovery_kind *ret_kind)
{
    static const char *const names[] = { "static", "dns", "kubernetes", "ecs", "file" };

    for (size_t i = 0; i < QF_COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_kind = (enum qa_discovery_kind)i;
            return true;
        }
    }
    return false;
}

bool qa_is_host(const char *text, enum qa_host_form form)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    size_t len = strlen(text);

    if (form ==
        QA_HOST_NAME) /* RFC 1035: 253 bytes; what is no letter, digit, dot or dash ends it */
        return len > 0 && len <= 253 && text[0] != '-' &&
               strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
                   len;
    return inet_pton(form == QA_HOST_IPV6 ? AF_INET6 : AF_INET, text, bytes) == 1;
}

void qa_endpoints_add(struct endpoints *list, const char *fmt, ...)
{
    char address[300];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(address, sizeof(address), fmt, args);
    va_end(args);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], address) == 0)
            return;
    list->full = list->count == QA_ENDPOINTS_MAX;
    if (!list->full)
        list->items[list->count++] = qf_xstrdup(address);
}

void qa_endpoints_clear(struct endpoints *list)
{
    while (list->count)
        free(list->items[--list->count]);
}

static qf_rc look_everywhere(struct qa_discovery *discovery, struct endpoints *list,
                             char version[VERSION_MAX], struct qf_err *err)
{
    const struct qa_discovery_options *options = &discovery->options;
    qf_rc rc = QF_OK;

    if (options->kind == QA_DISCOVERY_KUBERNETES)
        return qa_kubernetes_look(options, &discovery->stop, list, version, err);
    if (options->kind == QA_DISCOVERY_ECS)
        return qa_ecs_look(options, &discovery->stop, list, err);
    if (options->kind == QA_DISCOVERY_FILE)
        return qa_file_look(options->workers_file, list, err);
    for (size_t i = 0; i < options->worker_count && rc == QF_OK; i++) {
        if (options->kind == QA_DISCOVERY_DNS)
            rc = qa_dns_look(options->workers[i], list, err);
        else
            qa_endpoints_add(list, "%s", options->workers[i]);
    }
    return rc;
}

/* Look once and hand over what was found; false if that failed. */
static bool look(struct qa_discovery *discovery, char version[VERSION_MAX], bool *failed)
{
    struct endpoints *list = qf_xcalloc(1, sizeof(*list));
    struct qf_err err = { 0 };
    bool ok = look_everywhere(discovery, list, version, &err) == QF_OK;

    if (ok && !atomic_load(&discovery->stop))
        discovery->options.found(discovery->options.ctx, (const char *const *)list->items,
                                 list->count);
    else if (!ok && !*failed && !atomic_load(&discovery->stop))
        QF_LOG_WARN("discovery failed, the workers known so far stay",
                    QF_KV_STR("reason", err.msg));
    if (list->full && !discovery->full)
        QF_LOG_WARN("discovery found more workers than the API keeps, the others get no work",
                    QF_KV_U64("kept", QA_ENDPOINTS_MAX));
    discovery->full = list->full;
    *failed = !ok;
    qa_endpoints_clear(list);
    free(list);
    return ok;
}

static void nap(struct qa_discovery *discovery, int64_t ms)
{
    qf_lock_take(discovery->lock);
    if (!atomic_load(&discovery->stop))
        (void)qf_lock_wait(discovery->lock, ms);
    qf_lock_drop(discovery->lock);
}

/* How long to wait before looking again. A watch that ended is followed by a list at once, unless
 * it ended at once itself: a server that does nothing else is not to be asked without a pause. */
static int64_t pause_after_watch(struct qa_discovery *discovery, const char *version)
{
    const struct qa_discovery_options *options = &discovery->options;
    qf_time_ms start = qf_clock_mono_ms();
    enum qa_watch_end end = qa_kubernetes_wait(options, &discovery->stop, version);
    bool brief = end == QA_WATCH_ENDED && qf_clock_mono_ms() - start < WATCH_BRIEF_MS;
    bool again = brief && discovery->brief;

    discovery->brief = brief;
    return end == QA_WATCH_REFUSED || again ? options->interval_ms : SETTLE_MS;
}

static void run(void *arg)
{
    struct qa_discovery *discovery = arg;
    const struct qa_discovery_options *options = &discovery->options;
    bool failed = false; /* the last look, which was logged */

    while (!atomic_load(&discovery->stop)) {
        char version[VERSION_MAX] = "";
        bool ok = look(discovery, version, &failed);

        if (options->kind == QA_DISCOVERY_STATIC)
            return;
        nap(discovery, ok && options->kind == QA_DISCOVERY_KUBERNETES
                           ? pause_after_watch(discovery, version)
                           : options->interval_ms);
    }
}

struct qa_discovery *qa_discovery_new(const struct qa_discovery_options *options,
                                      struct qf_err *err)
{
    struct qa_discovery *discovery;

    if (options->kind == QA_DISCOVERY_KUBERNETES && !options->kubernetes_service) {
        (void)qf_err_set(err, QF_EINVAL, "Kubernetes discovery needs the name of a service");
        return NULL;
    }
    if (options->kind == QA_DISCOVERY_ECS && (!options->ecs_cluster || !options->ecs_service)) {
        (void)qf_err_set(err, QF_EINVAL, "ECS discovery needs a cluster and a service");
        return NULL;
    }
    if (options->kind == QA_DISCOVERY_FILE && !options->workers_file) {
        (void)qf_err_set(err, QF_EINVAL, "discovery by a file needs its name");
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
    discovery->lock = qf_lock_new();
    discovery->thread = qf_thread_start("discovery", run, discovery);
    if (!discovery->thread) {
        (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start a thread");
        return qa_discovery_free(discovery);
    }
    return discovery;
}

struct qa_discovery *qa_discovery_free(struct qa_discovery *discovery)
{
    if (!discovery)
        return NULL;
    atomic_store(&discovery->stop, true);
    qf_lock_take(discovery->lock);
    qf_lock_wake_all(discovery->lock);
    qf_lock_drop(discovery->lock);
    (void)qf_thread_join(discovery->thread);
    (void)qf_lock_free(discovery->lock);
    free(discovery);
    return NULL;
}
