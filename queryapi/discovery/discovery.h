/* discovery.h - where workers are: a fixed list, a file, names in DNS, Kubernetes or ECS.
 *
 * A thread of its own looks around, because name servers and API servers take their time, and hands
 * the whole list over. What fails to answer keeps its last list, so that a name server that is down
 * takes no worker away. Files, DNS and ECS are looked at every interval; Kubernetes is watched, and listed
 * again when the watch tells of a change, ends, or is not allowed. */
#ifndef QUERYAPI_DISCOVERY_DISCOVERY_H
#define QUERYAPI_DISCOVERY_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/duration.h"
#include "base/pure/err.h"

struct qa_discovery;

enum qa_discovery_kind {
    QA_DISCOVERY_STATIC,
    QA_DISCOVERY_DNS,
    QA_DISCOVERY_KUBERNETES,
    QA_DISCOVERY_ECS,
    QA_DISCOVERY_FILE,
};
bool qa_discovery_parse_kind(const char *text, enum qa_discovery_kind *ret_kind);

#define QA_ENDPOINTS_MAX 1024

struct qa_discovery_options {
    enum qa_discovery_kind kind;
    /* STATIC: "host:port", each one worker. DNS: "name:port", each address of the name one worker.
     */
    const char *const *workers;
    size_t worker_count;
    int64_t interval_ms; /* of all but STATIC; 0: 2 s */
    /* FILE: its lines are "host:port", each one worker; '#' begins a comment. */
    const char *workers_file;
    /* KUBERNETES: the headless service whose EndpointSlices list the workers, and the name of its
     * control port. Server, token and namespace are those of the pod unless given. */
    const char *kubernetes_service, *kubernetes_port;
    const char *kubernetes_namespace; /* NULL: the pod's own */
    const char *kubernetes_server;    /* NULL: https://$KUBERNETES_SERVICE_HOST:..._PORT */
    const char *kubernetes_secrets;   /* NULL: /var/run/secrets/kubernetes.io/serviceaccount */
    /* ECS: cluster and service, and the control port of its tasks. Region and credentials come
     * from where those of S3 do. */
    const char *ecs_cluster, *ecs_service, *ecs_port;
    const char *ecs_endpoint; /* NULL: Amazon's for the region */
    /* Called on discovery's thread with all endpoints there are. */
    void (*found)(void *ctx, const char *const *addresses, size_t count);
    void *ctx;
};

/* Start looking. NULL and @err filled: QF_EINVAL. */
struct qa_discovery *qa_discovery_new(const struct qa_discovery_options *options,
                                      struct qf_err *err);
/* Stop; `found` is not called any more. Accepts NULL, returns NULL. */
struct qa_discovery *qa_discovery_free(struct qa_discovery *discovery);

/* kubernetes.c: the addresses in an EndpointSliceList, as JSON; for tests too. An endpoint that
 * serves counts, also while it terminates: closing its stream would cancel the work it is
 * finishing. Appends to @ret_addresses (free() each) and returns how many. QF_EPROTO: not such a
 * list. */
QF_MUST_CHECK qf_rc qa_kubernetes_parse(struct qf_str json, const char *port_name,
                                        char **ret_addresses, size_t max, size_t *ret_count,
                                        struct qf_err *err);

#endif
