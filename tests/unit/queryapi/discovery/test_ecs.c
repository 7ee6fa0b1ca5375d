/* test_ecs.c - workers from what the ECS API answers. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "queryapi/discovery/discovery_int.h"
#include "tests/lib/test.h"

#define TASK(status, address)                                                                      \
    "{\"lastStatus\":\"" status "\",\"attachments\":[{\"details\":[{\"name\":\"subnetId\","        \
    "\"value\":\"s\"},{\"name\":\"privateIPv4Address\",\"value\":" address "}]}]}"

/* Addresses of a DescribeTasks answer, each followed by a space. */
static const char *tasks(const char *json, qf_rc want)
{
    static char text[1000];
    struct endpoints *list = qf_xcalloc(1, sizeof(*list));

    text[0] = '\0';
    CHECK_EQ(qa_ecs_read_tasks(qf_str_from(json), "8082", list, NULL), want);
    for (size_t i = 0; i < list->count; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", list->items[i]);
    qa_endpoints_clear(list);
    free(list);
    return text;
}

TEST(running_tasks_with_an_address_are_workers)
{
    CHECK_STR(tasks("{\"tasks\":[" TASK("RUNNING", "\"10.0.0.1\"") "," TASK(
                        "STOPPING", "\"10.0.0.2\"") "," TASK("RUNNING", "null") ",{},3]}",
                    QF_OK),
              "10.0.0.1:8082 ");
    CHECK_STR(tasks("{}", QF_OK), "");
}

/* gRPC would take some of these for more than a host. */
TEST(what_is_no_address_is_no_worker)
{
    CHECK_STR(
        tasks(
            "{\"tasks\":[" TASK("RUNNING", "\"unix:/tmp/x\"") "," TASK(
                "RUNNING",
                "\"10.0.0.1:80\"") "," TASK("RUNNING",
                                            "\"\"") "," TASK("RUNNING",
                                                             "\"10.0.0.1/..\"") "," TASK("RUNNING",
                                                                                         "[]") "]}",
            QF_OK),
        "");
    CHECK(qa_is_host("fd00::1", QA_HOST_IPV6) && !qa_is_host("fd00::1", QA_HOST_IPV4));
    CHECK(qa_is_host("worker-0.workers", QA_HOST_NAME) && !qa_is_host("-x", QA_HOST_NAME));
    CHECK(!qa_is_host("", QA_HOST_NAME) && !qa_is_host("dns:///x", QA_HOST_NAME));
}

TEST(other_answers_are_errors)
{
    (void)tasks("", QF_EPROTO);
    (void)tasks("[]", QF_EPROTO);
    (void)tasks("<html>", QF_EPROTO);
}

static qf_rc list(const char *json, char **ret_question, char more[QA_ECS_TOKEN_MAX])
{
    struct qf_err err = { 0 };
    qf_rc rc;

    *ret_question = NULL;
    rc = qa_ecs_read_list(qf_str_from(json), "c1", ret_question, more, &err);
    CHECK_EQ(err.rc, rc);
    return rc;
}

TEST(a_list_of_tasks_is_a_question_about_them)
{
    QF_CLEANUP(qf_freep) char *question = NULL;
    char more[QA_ECS_TOKEN_MAX] = "old";

    CHECK_EQ(list("{\"taskArns\":[\"arn:a\",\"arn:b\"],\"nextToken\":\"n\"}", &question, more),
             QF_OK);
    CHECK_STR(question, "{\"cluster\": \"c1\", \"tasks\": [\"arn:a\", \"arn:b\"]}");
    CHECK_STR(more, "n");
    free(question);
    CHECK_EQ(list("{\"taskArns\":[]}", &question, more), QF_OK);
    CHECK(question == NULL);
    CHECK_STR(more, "");
}

/* What is sent back, or asked for again, has a bound; a name that is cut short is another page's. */
TEST(a_list_that_is_too_long_is_an_error)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf json = QF_STRBUF_INIT;
    char more[QA_ECS_TOKEN_MAX], *question;

    qf_strbuf_puts(&json, "{\"taskArns\":[\"a\"");
    for (int i = 0; i < 100; i++)
        qf_strbuf_puts(&json, ",\"a\"");
    qf_strbuf_puts(&json, "]}");
    CHECK_EQ(list(qf_strbuf_cstr(&json), &question, more), QF_EPROTO);
    CHECK_EQ(list("{\"taskArns\":[1]}", &question, more), QF_EPROTO);
    CHECK_EQ(list("{\"taskArns\":\"a\"}", &question, more), QF_EPROTO);
    qf_strbuf_reset(&json);
    qf_strbuf_puts(&json, "{\"nextToken\":\"");
    for (int i = 0; i < QA_ECS_TOKEN_MAX; i++)
        qf_strbuf_putc(&json, 'n');
    qf_strbuf_puts(&json, "\"}");
    CHECK_EQ(list(qf_strbuf_cstr(&json), &question, more), QF_ELIMIT);
}
