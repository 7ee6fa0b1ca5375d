/* coding.h - content codings: which one a client wants, and bytes in it.
 *
 * gzip for clients of any age, zstd for those that say so: it takes less time and fewer bytes. */
#ifndef BASE_HTTP_CODING_H
#define BASE_HTTP_CODING_H

#include <stdbool.h>

#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

enum qh_coding { QH_CODING_IDENTITY, QH_CODING_GZIP, QH_CODING_ZSTD, QH_CODING__COUNT };

/* As in Content-Encoding; NULL for identity. */
const char *qh_coding_name(enum qh_coding coding);

/* The coding that @accept, the value of an Accept-Encoding header, wants most (RFC 9110, 12.5.3): that
 * with the largest q, of equal ones zstd, then gzip, then none. What is not named is not accepted,
 * unless by "*", but for identity, which comes last. A malformed item counts as not there. */
enum qh_coding qh_coding_choose(struct qf_str accept);

/* Whether @accept names @coding, or else "*", with a q above 0. Any name will do ("br"): for what is there
 * in that coding already. */
bool qh_coding_accepted(struct qf_str accept, const char *coding);

struct qh_encoder;

/* NULL for identity, or if there is no memory for it. */
struct qh_encoder *qh_encoder_new(enum qh_coding coding);
struct qh_encoder *qh_encoder_free(struct qh_encoder *encoder); /* Accepts NULL, returns NULL. */

enum qh_encode {
    QH_ENCODE_MORE,  /* some of it may stay inside */
    QH_ENCODE_FLUSH, /* the reader can decode all that was given so far */
    QH_ENCODE_END,   /* and there will be no more */
};
/* Append @bytes, encoded, to @out. */
void qh_encoder_add(struct qh_encoder *encoder, struct qf_str bytes, enum qh_encode how,
                    struct qf_strbuf *out);

#endif
