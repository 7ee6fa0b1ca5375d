/* test_kubernetes.c - workers from EndpointSlices. */
#include <stdlib.h>

#include "queryapi/discovery/discovery.h"
#include "tests/lib/test.h"

static size_t parse(const char *json, char **found, qf_rc want)
{
    size_t count;

    CHECK_EQ(qa_kubernetes_parse(qf_str_from(json), "control", found, 8, &count, NULL), want);
    return count;
}

/* A pod that terminates but still serves keeps its stream: its work is being drained. */
TEST(serving_endpoints_count_also_while_they_terminate)
{
    char *found[8];
    size_t count = parse(
        "{\"items\":[{\"addressType\":\"IPv4\",\"ports\":[{\"name\":\"http\",\"port\":8081},"
        "{\"name\":\"control\",\"port\":8082}],\"endpoints\":["
        "{\"addresses\":[\"10.0.0.1\"],\"conditions\":{\"ready\":true,\"serving\":true}},"
        "{\"addresses\":[\"10.0.0.2\"],\"conditions\":{\"ready\":false,\"serving\":true,"
        "\"terminating\":true}},"
        "{\"addresses\":[\"10.0.0.3\"],\"conditions\":{\"ready\":false,\"serving\":false}},"
        "{\"addresses\":[\"10.0.0.4\"],\"conditions\":{}}]},"
        "{\"addressType\":\"IPv6\",\"ports\":[{\"name\":\"control\",\"port\":8082}],"
        "\"endpoints\":[{\"addresses\":[\"fd00::1\"]}]},"
        "{\"ports\":[{\"name\":\"other\",\"port\":1}],\"endpoints\":[{\"addresses\":[\"x\"]}]}]}",
        found, QF_OK);

    CHECK_EQ(count, 4);
    CHECK_STR(found[0], "10.0.0.1:8082");
    CHECK_STR(found[1], "10.0.0.2:8082");
    CHECK_STR(found[2], "10.0.0.4:8082");
    CHECK_STR(found[3], "[fd00::1]:8082");
    for (size_t i = 0; i < count; i++)
        free(found[i]);
}

TEST(other_answers_are_errors_and_take_no_worker_away)
{
    char *found[8];

    (void)parse("", found, QF_EPROTO);
    (void)parse("{\"kind\":\"Status\"}", found, QF_EPROTO);
    CHECK_EQ(parse("{\"items\":[]}", found, QF_OK), 0);
    CHECK_EQ(parse("{\"items\":[1,{\"ports\":3}]}", found, QF_OK), 0);
}

/* gRPC would take some of these for more than a host. */
TEST(what_is_no_address_is_no_worker)
{
    char *found[8];

    CHECK_EQ(
        parse("{\"items\":[{\"addressType\":\"FQDN\",\"ports\":[{\"name\":\"control\",\"port\":1}],"
              "\"endpoints\":[{\"addresses\":[\"unix:/tmp/x\",\"dns:///a\",\"a/b\",\"\"]}]},"
              "{\"addressType\":\"IPv4\",\"ports\":[{\"name\":\"control\",\"port\":1}],"
              "\"endpoints\":[{\"addresses\":[\"worker\",\"10.0.0.1:2\"]}]}]}",
              found, QF_OK),
        0);
}
