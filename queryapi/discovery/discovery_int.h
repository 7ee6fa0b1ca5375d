/* discovery_int.h - the ways to look around. */
#ifndef QUERYAPI_DISCOVERY_DISCOVERY_INT_H
#define QUERYAPI_DISCOVERY_DISCOVERY_INT_H

#include <stdatomic.h>

#include "queryapi/discovery/discovery.h"

/* A list under construction. */
struct endpoints {
    char *items[QA_ENDPOINTS_MAX];
    size_t count;
    bool full; /* there are more than have room */
};

void qa_endpoints_add(struct endpoints *list, const char *fmt, ...) QF_PRINTF(2, 3);
void qa_endpoints_clear(struct endpoints *list);

/* dns.c: every address of "name:port". */
QF_MUST_CHECK qf_rc qa_dns_look(const char *name_and_port, struct endpoints *list,
                                struct qf_err *err);
/* ecs.c: ask the ECS API. */
QF_MUST_CHECK qf_rc qa_ecs_look(const struct qa_discovery_options *options, const atomic_bool *stop,
                                struct endpoints *list, struct qf_err *err);

#define VERSION_MAX 64
/* kubernetes.c: ask the API server. @ret_version is the state that the list shows. */
QF_MUST_CHECK qf_rc qa_kubernetes_look(const struct qa_discovery_options *options,
                                       const atomic_bool *stop, struct endpoints *list,
                                       char ret_version[VERSION_MAX], struct qf_err *err);
/* How a watch ended. */
enum qa_watch_end {
    QA_WATCH_CHANGED, /* something changed */
    QA_WATCH_ENDED,   /* its time was over, its version too old, or the connection broke */
    QA_WATCH_REFUSED, /* the server does not answer or does not let us watch */
};
/* Wait until something changed since @version, for half a minute at most, or until @stop. */
enum qa_watch_end qa_kubernetes_wait(const struct qa_discovery_options *options,
                                     const atomic_bool *stop, const char *version);

#endif
