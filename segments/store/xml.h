/* xml.h - the little XML that S3 and STS answer: elements and text, nothing to fetch or expand.
 *
 * Bounded and strict: document types are refused, nesting ends at XML_DEPTH_MAX, tags must match,
 * entities are the five of XML and numbers, there is no NUL byte. Attributes, comments and declarations are skipped. */
#ifndef SEGMENTS_STORE_XML_H
#define SEGMENTS_STORE_XML_H

#include "base/pure/err.h"
#include "base/pure/slice.h"

#define XML_DEPTH_MAX 16

/* An element that just ended. Borrowed. */
struct xml_element {
    struct qf_str name;   /* without its namespace prefix */
    struct qf_str parent; /* empty for the root */
    struct qf_str text;   /* decoded; empty if it had elements inside */
    int depth;            /* the root has 0 */
};

/* Return an error to stop; it is what xml_parse() then returns. */
typedef qf_rc xml_fn(void *ctx, const struct xml_element *element, struct qf_err *err);

/* Call @fn for every element of @document as it ends, inner ones first. QF_EPROTO: not the XML
 * described above; some elements may have been reported by then. */
QF_MUST_CHECK qf_rc xml_parse(struct qf_str document, xml_fn *fn, void *ctx, struct qf_err *err);

#endif
