/* url.c - which addresses the API will fetch from. */
#include "queryapi/fetch/url.h"

#include <string.h>

/* Printable ASCII without what would give the rest of a URL another meaning. */
static bool plain(struct qf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (c <= ' ' || c >= 0x7f || strchr("@?#\\\"<>", c))
            return false;
    }
    return true;
}

bool qa_artifact_base_valid(struct qf_str base, bool tls)
{
    const struct qf_str https = QF_STR("https://"), http = QF_STR("http://");
    struct qf_str host;

    if (qf_str_starts(base, https))
        host = qf_str_sub(base, https.len, base.len);
    else if (!tls && qf_str_starts(base, http))
        host = qf_str_sub(base, http.len, base.len);
    else
        return false;
    return host.len > 0 && host.data[0] != '/' && host.data[0] != ':' && plain(host);
}

/* "/../" and the like, which some servers and clients resolve. */
static bool climbs(struct qf_str path)
{
    for (size_t i = 0; i + 1 < path.len; i++)
        if (path.data[i] == '.' && path.data[i + 1] == '.')
            return true;
    return memmem(path.data, path.len, "%2e", 3) || memmem(path.data, path.len, "%2E", 3);
}

bool qa_artifact_url_below(struct qf_str url, struct qf_str base)
{
    struct qf_str path;

    if (base.len == 0 || !qf_str_starts(url, base))
        return false;
    path = qf_str_sub(url, base.len, url.len);
    if (base.data[base.len - 1] != '/' && (path.len == 0 || path.data[0] != '/'))
        return false;
    return path.len > 0 && plain(path) && !climbs(path);
}
