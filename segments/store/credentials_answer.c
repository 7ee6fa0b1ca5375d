/* credentials_answer.c - what those who give keys out answer: JSON of containers' endpoints, XML of STS. */
#include <jansson.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "segments/store/credentials.h"
#include "segments/store/xml.h"

/* It becomes part of a header: a line feed in it would begin another one. */
static bool is_key(const char *text)
{
    while (*text > ' ' && *text < 0x7f)
        text++;
    return *text == '\0';
}

static qf_rc take_expiry(struct qf_str text, struct credentials *keys, const char *who,
                         struct qf_err *err)
{
    keys->renewable = true;
    if (!keys->access_key || !keys->secret_key || !keys->token)
        return qf_err_set(err, QF_EAUTH, "credentials from %s: the answer has no keys", who);
    if (!is_key(keys->access_key) || !is_key(keys->secret_key) || !is_key(keys->token))
        return qf_err_set(err, QF_EAUTH, "credentials from %s: not the characters of keys", who);
    if (!qf_time_parse_rfc3339(text, &keys->expires_ms))
        return qf_err_set(err, QF_EAUTH, "credentials from %s: no time of expiry", who);
    return QF_OK;
}

static char *json_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && text[0] ? qf_xstrdup(text) : NULL;
}

qf_rc credentials_read_container(struct qf_str body, struct credentials *ret_keys,
                                 struct qf_err *err)
{
    json_t *root = json_loadb(body.data ? body.data : "", body.len, 0, NULL);
    struct credentials keys = { .access_key = json_text(root, "AccessKeyId"),
                                .secret_key = json_text(root, "SecretAccessKey"),
                                .token = json_text(root, "Token") };
    QF_CLEANUP(qf_freep) char *expiration = json_text(root, "Expiration");
    qf_rc rc = take_expiry(qf_str_from(expiration ? expiration : ""), &keys,
                           "the container endpoint", err);

    json_decref(root);
    if (rc)
        credentials_done(&keys);
    else
        *ret_keys = keys;
    return rc;
}

struct sts_answer {
    struct credentials keys;
    char *expiration;
};

static void keep(char **to, struct qf_str text)
{
    free(*to);
    *to = qf_xmemdup0(text.data ? text.data : "", text.len);
}

static qf_rc on_sts_element(void *ctx, const struct xml_element *element, struct qf_err *err)
{
    struct sts_answer *answer = ctx;

    (void)err;
    if (!qf_str_is(element->parent, "Credentials") || !element->text.len)
        return QF_OK;
    if (qf_str_is(element->name, "AccessKeyId"))
        keep(&answer->keys.access_key, element->text);
    else if (qf_str_is(element->name, "SecretAccessKey"))
        keep(&answer->keys.secret_key, element->text);
    else if (qf_str_is(element->name, "SessionToken"))
        keep(&answer->keys.token, element->text);
    else if (qf_str_is(element->name, "Expiration"))
        keep(&answer->expiration, element->text);
    return QF_OK;
}

qf_rc credentials_read_sts(struct qf_str body, struct credentials *ret_keys, struct qf_err *err)
{
    struct sts_answer answer = { 0 };
    qf_rc rc = QF_OK;

    if (xml_parse(body, on_sts_element, &answer, NULL))
        rc = qf_err_set(err, QF_EAUTH, "credentials from STS: the answer is not XML");
    if (!rc)
        rc = take_expiry(qf_str_from(answer.expiration ? answer.expiration : ""), &answer.keys,
                         "STS", err);
    free(answer.expiration);
    if (rc)
        credentials_done(&answer.keys);
    else
        *ret_keys = answer.keys;
    return rc;
}
