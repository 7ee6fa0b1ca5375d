/* discovery_int.h - the ways to look around. */
#ifndef QUERYAPI_DISCOVERY_DISCOVERY_INT_H
#define QUERYAPI_DISCOVERY_DISCOVERY_INT_H

#include <stdatomic.h>

#include "base/pure/strbuf.h"
#include "queryapi/discovery/discovery.h"

/* A list under construction. */
struct endpoints {
    char *items[QA_ENDPOINTS_MAX];
    size_t count;
    bool full; /* there are more than have room */
};

void qa_endpoints_add(struct endpoints *list, const char *fmt, ...) QF_PRINTF(2, 3);
void qa_endpoints_clear(struct endpoints *list);

/* Whether @text is the address of a host, in the form that its source promises, and nothing that a
 * library might take for more: a scheme, a path, a port. */
enum qa_host_form { QA_HOST_IPV4, QA_HOST_IPV6, QA_HOST_NAME };
bool qa_is_host(const char *text, enum qa_host_form form);

/* file.c: every line of the file @name. QF_EIO: it cannot be read. QF_EINVAL: a line is no address, and is named. */
QF_MUST_CHECK qf_rc qa_file_look(const char *name, struct endpoints *list, struct qf_err *err);

/* dns.c: every address of "name:port". */
QF_MUST_CHECK qf_rc qa_dns_look(const char *name_and_port, struct endpoints *list,
                                struct qf_err *err);
/* ecs.c: what the answer to ListTasks says: @ret_question (free() it) asks DescribeTasks for them, NULL if
 * there are none, and @ret_more is where the next page begins, "" if there is none. QF_EPROTO: not such
 * an answer. QF_ELIMIT: too long. */
#define QA_ECS_TOKEN_MAX 2048
QF_MUST_CHECK qf_rc qa_ecs_read_list(struct qf_str answer, const char *cluster, char **ret_question,
                                     char ret_more[QA_ECS_TOKEN_MAX], struct qf_err *err);
/* The answer to DescribeTasks: tasks that run and have an address. QF_EPROTO. */
QF_MUST_CHECK qf_rc qa_ecs_read_tasks(struct qf_str answer, const char *port,
                                      struct endpoints *list, struct qf_err *err);
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
/* The events of a watch, each a line of JSON, as they come in. */
struct qa_watch {
    struct qf_strbuf line; /* the one that has begun; with a limit */
    enum qa_watch_end end;
};
/* More bytes of the watch, cut anywhere. False: it is over, and watch->end says how. */
bool qa_watch_read(struct qa_watch *watch, const char *data, size_t len);
/* Wait until something changed since @version, for half a minute at most, or until @stop. */
enum qa_watch_end qa_kubernetes_wait(const struct qa_discovery_options *options,
                                     const atomic_bool *stop, const char *version);

#endif
