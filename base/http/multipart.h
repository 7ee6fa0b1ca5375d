/* multipart.h - forms in the coding of file uploads (multipart/form-data), as some clients send them. */
#ifndef BASE_HTTP_MULTIPART_H
#define BASE_HTTP_MULTIPART_H

#include "base/http/request.h"
#include "base/pure/err.h"

/* Append the fields of @body to @params; files are left out. @content_type is the whole header, with
 * its boundary. A form that does not end with its boundary counts for nothing. QF_ELIMIT: too many
 * fields, or the budget is spent. */
QF_MUST_CHECK qf_rc qh_params_add_multipart(struct qf_arena *arena, struct qh_params *params,
                                            struct qf_str content_type, struct qf_str body,
                                            struct qf_err *err);

#endif
