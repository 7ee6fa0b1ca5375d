/* ecs.c - workers that are tasks of an ECS service (awsvpc network mode: each has an address).
 *
 * ListTasks gives the running tasks, DescribeTasks their addresses. Requests are signed with the
 * same credentials, from the same places, as those to S3. A task that stops leaves the list; what
 * it has accepted it may still finish. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queryapi/discovery/discovery_int.h"
#include "segments/store/credentials.h"

#define TARGET "X-Amz-Target: AmazonEC2ContainerServiceV20141113."
#define PAGE_TASKS 100 /* what DescribeTasks takes at most */
#define PAGES_MAX 16
#define ANSWER_BYTES_MAX ((size_t)8 << 20)
#define CALL_MS 10000

/* One round of questions to the ECS API. */
struct ecs {
    const struct qa_discovery_options *options;
    struct http_client *http;
    struct credentials keys;
    struct sg_store_limit limit;
    char endpoint[300], sign[100];
};

/* POST @body to @action; the answer as JSON, NULL on failure. */
static json_t *call(struct ecs *ecs, const char *action, json_t *body, struct qf_err *err)
{
    char *text = json_dumps(body, 0);
    char target[200], token[4096];
    struct sg_store_bytes bytes = { .data = text, .fd = -1, .size = strlen(text) };
    struct http_request request = { .method = "POST",
                                    .url = ecs->endpoint,
                                    .sign = ecs->sign,
                                    .access_key = ecs->keys.access_key,
                                    .secret_key = ecs->keys.secret_key,
                                    .body = &bytes,
                                    .body_len = bytes.size,
                                    .body_max = ANSWER_BYTES_MAX };
    struct http_response response = { 0 };
    json_t *answer = NULL;

    (void)snprintf(target, sizeof(target), TARGET "%s", action);
    request.headers[request.header_count++] = "Content-Type: application/x-amz-json-1.1";
    request.headers[request.header_count++] = target;
    if (ecs->keys.token[0]) {
        (void)snprintf(token, sizeof(token), "X-Amz-Security-Token: %s", ecs->keys.token);
        request.headers[request.header_count++] = token;
    }
    if (http_perform(ecs->http, &request, &ecs->limit, &response, err) == QF_OK) {
        if (response.status != 200)
            (void)qf_err_set(err,
                             response.status == 400 || response.status == 403 ? QF_EDENIED
                                                                              : QF_EUNAVAILABLE,
                             "%s %s: HTTP status %ld: %.200s", ecs->endpoint, action,
                             response.status, qf_strbuf_cstr(&response.body));
        else
            answer = json_loadb(qf_strbuf_cstr(&response.body), response.body.len, 0, NULL);
        if (!answer)
            (void)qf_err_set(err, QF_EPROTO, "%s %s: the answer is not JSON", ecs->endpoint,
                             action);
    }
    http_response_done(&response);
    free(text);
    json_decref(body);
    return answer;
}

/* The private address of a task, NULL if it has none yet. */
static const char *task_address(const json_t *task)
{
    const json_t *attachment, *detail;
    size_t i, k;

    json_array_foreach(json_object_get(task, "attachments"), i, attachment)
    {
        json_array_foreach(json_object_get(attachment, "details"), k, detail)
        {
            const char *name = json_string_value(json_object_get(detail, "name"));

            if (name && strcmp(name, "privateIPv4Address") == 0)
                return json_string_value(json_object_get(detail, "value"));
        }
    }
    return NULL;
}

static qf_rc describe(struct ecs *ecs, const json_t *arns, struct endpoints *list,
                      struct qf_err *err)
{
    json_t *answer;
    const json_t *task;
    size_t i;

    if (json_array_size(arns) == 0)
        return QF_OK;
    answer = call(ecs, "DescribeTasks",
                  json_pack("{s:s,s:O}", "cluster", ecs->options->ecs_cluster, "tasks", arns), err);
    if (!answer)
        return err->rc;
    json_array_foreach(json_object_get(answer, "tasks"), i, task)
    {
        const char *status = json_string_value(json_object_get(task, "lastStatus"));
        const char *address = task_address(task);

        if (address && status && strcmp(status, "RUNNING") == 0)
            qa_endpoints_add(list, "%s:%s", address, ecs->options->ecs_port);
    }
    json_decref(answer);
    return QF_OK;
}

static qf_rc list_all(struct ecs *ecs, struct endpoints *list, struct qf_err *err)
{
    char next[2048] = "";

    for (int page = 0; page < PAGES_MAX; page++) {
        json_t *body = json_pack("{s:s,s:s,s:s,s:i}", "cluster", ecs->options->ecs_cluster,
                                 "serviceName", ecs->options->ecs_service, "desiredStatus",
                                 "RUNNING", "maxResults", PAGE_TASKS);
        json_t *answer;
        const char *more;
        qf_rc rc;

        if (next[0])
            (void)json_object_set_new(body, "nextToken", json_string(next));
        answer = call(ecs, "ListTasks", body, err);
        if (!answer)
            return err->rc;
        rc = describe(ecs, json_object_get(answer, "taskArns"), list, err);
        more = json_string_value(json_object_get(answer, "nextToken"));
        (void)snprintf(next, sizeof(next), "%s", more ? more : "");
        json_decref(answer);
        if (rc != QF_OK || !next[0])
            return rc;
    }
    return qf_err_set(err, QF_ELIMIT, "the service has more than %d tasks", PAGES_MAX * PAGE_TASKS);
}

static const char *region_of_environment(void)
{
    const char *region = getenv("AWS_REGION");

    if (!region)
        region = getenv("AWS_DEFAULT_REGION");
    return region ? region : "us-east-1";
}

qf_rc qa_ecs_look(const struct qa_discovery_options *options, const atomic_bool *stop,
                  struct endpoints *list, struct qf_err *err)
{
    const char *region = region_of_environment();
    struct ecs ecs = { .options = options,
                       .http = http_client_new(&(struct http_options){ .connect_timeout_ms = 3000,
                                                                       .stall_timeout_ms = 5000 }),
                       .limit = { stop, qf_clock_mono_ms() + CALL_MS } };
    struct credentials_options from = { .region = region, .http = ecs.http };
    struct credentials_source *source = credentials_source_new(&from);
    qf_rc rc;

    if (options->ecs_endpoint)
        (void)snprintf(ecs.endpoint, sizeof(ecs.endpoint), "%s/", options->ecs_endpoint);
    else
        (void)snprintf(ecs.endpoint, sizeof(ecs.endpoint), "https://ecs.%s.amazonaws.com/", region);
    (void)snprintf(ecs.sign, sizeof(ecs.sign), "aws:amz:%s:ecs", region);
    rc = credentials_get(source, &ecs.limit, &ecs.keys, err);
    if (rc == QF_OK)
        rc = list_all(&ecs, list, err);
    credentials_done(&ecs.keys);
    (void)credentials_source_free(source);
    (void)http_client_free(ecs.http);
    return rc;
}
