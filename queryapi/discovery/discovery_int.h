/* discovery_int.h - the ways to look around. */
#ifndef QUERYAPI_DISCOVERY_DISCOVERY_INT_H
#define QUERYAPI_DISCOVERY_DISCOVERY_INT_H

#include "queryapi/discovery/discovery.h"

/* A list under construction. */
struct endpoints {
    char *items[QA_ENDPOINTS_MAX];
    size_t count;
};

void qa_endpoints_add(struct endpoints *list, const char *fmt, ...) QF_PRINTF(2, 3);

/* dns.c: every address of "name:port". */
QF_MUST_CHECK qf_rc qa_dns_look(const char *name_and_port, struct endpoints *list,
                                struct qf_err *err);
/* kubernetes.c: ask the API server. */
QF_MUST_CHECK qf_rc qa_kubernetes_look(const struct qa_discovery_options *options,
                                       struct endpoints *list, struct qf_err *err);

#endif
