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
#define ARN_BYTES_MAX 2048
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

/* --- what the answers say --- */

static json_t *load(struct qf_str answer, const char *action, struct qf_err *err)
{
    json_t *root = json_loadb(answer.data ? answer.data : "", answer.len, 0, NULL);

    if (!json_is_object(root)) {
        json_decref(root);
        (void)qf_err_set(err, QF_EPROTO, "ECS %s: the answer is not a JSON object", action);
        return NULL;
    }
    return root;
}

/* What came is sent back in the next question, so it has a bound. */
static bool are_arns(const json_t *arns)
{
    const json_t *arn;
    size_t i;

    if (arns && (!json_is_array(arns) || json_array_size(arns) > PAGE_TASKS))
        return false;
    json_array_foreach(arns, i, arn)
    {
        if (!json_is_string(arn) || json_string_length(arn) > ARN_BYTES_MAX)
            return false;
    }
    return true;
}

qf_rc qa_ecs_read_list(struct qf_str answer, const char *cluster, char **ret_question,
                       char ret_more[QA_ECS_TOKEN_MAX], struct qf_err *err)
{
    json_t *root = load(answer, "ListTasks", err), *arns = json_object_get(root, "taskArns");
    const char *more = json_string_value(json_object_get(root, "nextToken"));
    json_t *question = NULL;
    qf_rc rc = QF_OK;

    if (!root)
        return QF_EPROTO;
    if (!are_arns(arns))
        rc = qf_err_set(err, QF_EPROTO, "ECS ListTasks: the answer is not a list of tasks");
    else if (more && strlen(more) >= QA_ECS_TOKEN_MAX)
        rc = qf_err_set(err, QF_ELIMIT, "ECS ListTasks: the name of the next page is too long");
    if (rc == QF_OK) {
        *ret_question = NULL;
        if (json_array_size(arns))
            question = json_pack("{s:s,s:O}", "cluster", cluster, "tasks", arns);
        if (question)
            *ret_question = json_dumps(question, 0);
        (void)snprintf(ret_more, QA_ECS_TOKEN_MAX, "%s", more ? more : "");
    }
    json_decref(question);
    json_decref(root);
    return rc;
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

qf_rc qa_ecs_read_tasks(struct qf_str answer, const char *port, struct endpoints *list,
                        struct qf_err *err)
{
    json_t *root = load(answer, "DescribeTasks", err);
    const json_t *task;
    size_t i;

    if (!root)
        return QF_EPROTO;
    json_array_foreach(json_object_get(root, "tasks"), i, task)
    {
        const char *status = json_string_value(json_object_get(task, "lastStatus"));
        const char *address = task_address(task);

        if (address && status && strcmp(status, "RUNNING") == 0 &&
            qa_is_host(address, QA_HOST_IPV4))
            qa_endpoints_add(list, "%s:%s", address, port);
    }
    json_decref(root);
    return QF_OK;
}

/* --- asking --- */

/* POST the JSON @question to @action. */
static qf_rc call(struct ecs *ecs, const char *action, const char *question,
                  struct http_response *response, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf token = QF_STRBUF_INIT;
    char target[200];
    struct sg_store_bytes bytes = { .data = question, .fd = -1, .size = strlen(question) };
    struct http_request request = { .method = "POST",
                                    .url = ecs->endpoint,
                                    .sign = ecs->sign,
                                    .access_key = ecs->keys.access_key,
                                    .secret_key = ecs->keys.secret_key,
                                    .body = &bytes,
                                    .body_len = bytes.size,
                                    .body_max = ANSWER_BYTES_MAX };
    qf_rc rc;

    (void)snprintf(target, sizeof(target), TARGET "%s", action);
    request.headers[request.header_count++] = "Content-Type: application/x-amz-json-1.1";
    request.headers[request.header_count++] = target;
    if (ecs->keys.token[0]) {
        qf_strbuf_printf(&token, "X-Amz-Security-Token: %s", ecs->keys.token);
        request.headers[request.header_count++] = qf_strbuf_cstr(&token);
    }
    rc = http_perform(ecs->http, &request, &ecs->limit, response, err);
    if (rc == QF_OK && response->status != 200)
        rc = qf_err_set(
            err, response->status == 400 || response->status == 403 ? QF_EDENIED : QF_EUNAVAILABLE,
            "%s %s: HTTP status %ld: %.200s", ecs->endpoint, action, response->status,
            qf_strbuf_cstr(&response->body));
    return rc;
}

static qf_rc describe(struct ecs *ecs, const char *question, struct endpoints *list,
                      struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    qf_rc rc = call(ecs, "DescribeTasks", question, &response, err);

    return rc ? rc
              : qa_ecs_read_tasks(qf_strbuf_view(&response.body), ecs->options->ecs_port, list,
                                  err);
}

/* One page: @more says which, and then where the next one begins. */
static qf_rc list_page(struct ecs *ecs, char more[QA_ECS_TOKEN_MAX], struct endpoints *list,
                       struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    QF_CLEANUP(qf_freep) char *question = NULL;
    QF_CLEANUP(qf_freep) char *tasks = NULL;
    json_t *body =
        json_pack("{s:s,s:s,s:s,s:i}", "cluster", ecs->options->ecs_cluster, "serviceName",
                  ecs->options->ecs_service, "desiredStatus", "RUNNING", "maxResults", PAGE_TASKS);
    qf_rc rc;

    if (more[0])
        (void)json_object_set_new(body, "nextToken", json_string(more));
    question = json_dumps(body, 0);
    json_decref(body);
    if (!question)
        return qf_err_set(err, QF_EINVAL, "ECS: the cluster or service is not UTF-8");
    rc = call(ecs, "ListTasks", question, &response, err);
    if (rc == QF_OK)
        rc = qa_ecs_read_list(qf_strbuf_view(&response.body), ecs->options->ecs_cluster, &tasks,
                              more, err);
    return rc || !tasks ? rc : describe(ecs, tasks, list, err);
}

static qf_rc list_all(struct ecs *ecs, struct endpoints *list, struct qf_err *err)
{
    char more[QA_ECS_TOKEN_MAX] = "";

    for (int page = 0; page < PAGES_MAX; page++) {
        qf_rc rc = list_page(ecs, more, list, err);

        if (rc != QF_OK || !more[0])
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
