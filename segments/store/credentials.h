/* credentials.h - whose name S3 requests are signed in, and where that comes from.
 *
 * The sources and their order are described in store.h. Keys that expire are fetched again five
 * minutes before they do; if that fails, the old ones serve until they really end. */
#ifndef SEGMENTS_STORE_CREDENTIALS_H
#define SEGMENTS_STORE_CREDENTIALS_H

#include "segments/store/http.h"
#include "segments/store/store_int.h"

/* A copy of a set of keys; each string is never NULL. */
struct credentials {
    char *access_key, *secret_key;
    char *token;        /* "" if there is none */
    int64_t expires_ms; /* Unix time; QF_TIME_NEVER */
    bool renewable;     /* a source that may have newer ones */
};
void credentials_done(struct credentials *credentials); /* Wipes and frees; may be zeroed. */

struct credentials_source;

struct credentials_options {
    const char *access_key, *secret_key, *session_token; /* given outright, or NULL */
    const char *profile;                                 /* NULL: AWS_PROFILE, "default" */
    const char *region;                                  /* for STS */
    struct http_client *http;                            /* borrowed */
};

/* Reads the environment at once and files when they are needed. */
struct credentials_source *credentials_source_new(const struct credentials_options *options);
struct credentials_source *credentials_source_free(struct credentials_source *source);

/* QF_EAUTH: none of the sources has any, or the one that should failed; the message says which. */
QF_MUST_CHECK qf_rc credentials_get(struct credentials_source *source,
                                    const struct sg_store_limit *limit,
                                    struct credentials *ret_keys, struct qf_err *err);
/* The server refused @used. Forgets them if they are renewable and still the current ones; true if
 * asking again may give others. */
bool credentials_refused(struct credentials_source *source, const struct credentials *used);

/* What the endpoint of a container (JSON) and STS (XML) answer. QF_EAUTH: no keys, keys without a time of
 * expiry, or with characters that would not stay within a header. */
QF_MUST_CHECK qf_rc credentials_read_container(struct qf_str body, struct credentials *ret_keys,
                                               struct qf_err *err);
QF_MUST_CHECK qf_rc credentials_read_sts(struct qf_str body, struct credentials *ret_keys,
                                         struct qf_err *err);

/* The value of @key in the profile's section of an INI file as the AWS tools write it, copied;
 * NULL if it is not there. @in_config: sections are called "profile NAME". */
char *credentials_ini_get(struct qf_str text, const char *profile, bool in_config, const char *key);
/* The same in ~/.aws/config or what AWS_CONFIG_FILE names: for the region. */
char *credentials_config_get(const char *profile, const char *key);

#endif
