/* state_rules.c - promfabric state rules: what samples that come into a cluster are told of its maps. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/state_web.h"
#include "statemap/store/rule_text.h"

static json_t *ask(const struct cli_web *web, const char *method, const char *name,
                   struct qf_str body)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, "/api/v1/state/rules");
    if (name)
        qf_strbuf_printf(&path, "/%s", name); /* letters, digits and underscores */
    return cli_web_ask(
        web, &(struct cli_web_request){ .method = method,
                                        .path = qf_strbuf_cstr(&path),
                                        .body = body,
                                        .content_type = body.len ? "application/json" : NULL });
}

static int list(const struct cli_web *web)
{
    json_t *answer = ask(web, "GET", NULL, QF_STR(""));
    const json_t *rules = json_object_get(json_object_get(answer, "data"), "rules"), *rule;
    size_t i;

    json_array_foreach(rules, i, rule)
    {
        char *text = json_dumps(rule, JSON_COMPACT | JSON_ENCODE_ANY);

        printf("%s\n", text ? text : "");
        free(text);
    }
    json_decref(answer);
    return answer ? 0 : 1;
}

/* The rule itself, or the file that has it; "-": the input. */
static bool read_text(const char *from, struct qf_strbuf *text)
{
    char buffer[4096];
    ssize_t len;
    int fd;

    if (*from == '{') {
        qf_strbuf_puts(text, from);
        return true;
    }
    fd = strcmp(from, "-") == 0 ? STDIN_FILENO : open(from, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && text->len <= SM_RULE_BYTES_MAX &&
           (len = read(fd, buffer, sizeof(buffer))) > 0)
        qf_strbuf_add(text, buffer, (size_t)len);
    if (fd > STDIN_FILENO)
        (void)close(fd);
    return fd >= 0;
}

static int put(const struct cli_web *web, const char *from)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    struct sm_rule rule;
    json_t *answer;

    if (!read_text(from, &text)) {
        fprintf(stderr, "error: %s cannot be read\n", from);
        return 1;
    }
    if (sm_rule_read(qf_strbuf_view(&text), "", &rule, &err) != QF_OK)
        return state_failed(&err);
    answer = ask(web, "PUT", rule.name, qf_strbuf_view(&text));
    if (answer)
        printf("rule %s: from map %s\n", rule.name, rule.map);
    json_decref(answer);
    return answer ? 0 : 1;
}

static int rm(const struct cli_web *web, const char *name)
{
    char folded[SM_NAME_MAX + 1];
    json_t *answer;

    if (!sm_name_fold(qf_str_from(name), folded)) {
        fprintf(stderr, "error: %s is no name of a rule: letters, digits, underscores\n", name);
        return 2;
    }
    answer = ask(web, "DELETE", folded, QF_STR(""));
    json_decref(answer);
    return answer ? 0 : 1;
}

int state_web_rules(const struct cli_web *web, char **names, int count)
{
    if (strcmp(names[0], "list") == 0 && count == 1)
        return list(web);
    if (strcmp(names[0], "put") == 0 && count == 2)
        return put(web, names[1]);
    if (strcmp(names[0], "rm") == 0 && count == 2)
        return rm(web, names[1]);
    fprintf(stderr, "error: say rules list, rules put RULE or rules rm NAME\n");
    return 2;
}
