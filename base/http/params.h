/* params.h - request parameters: decoding of URLs, forms and JSON bodies. */
#ifndef BASE_HTTP_PARAMS_H
#define BASE_HTTP_PARAMS_H

#include "base/http/request.h"
#include "base/pure/err.h"

#define QH_PARAMS_MAX 1024

/* Decode %XX, and '+' as a blank if @plus. Bad escapes stay as written, as browsers do. The copy is
 * in @arena; data NULL if its budget is spent. */
struct qf_str qh_url_decode(struct qf_arena *arena, struct qf_str s, bool plus);

/* Append one parameter. QF_ELIMIT: more than QH_PARAMS_MAX, or the budget is spent. */
QF_MUST_CHECK qf_rc qh_params_add(struct qf_arena *arena, struct qh_params *params,
                                  struct qf_str name, struct qf_str value, struct qf_err *err);
/* Append those of an application/x-www-form-urlencoded text or of a URL. As in Prometheus, those with
 * a bad escape or a bare semicolon do not count. */
QF_MUST_CHECK qf_rc qh_params_add_form(struct qf_arena *arena, struct qh_params *params,
                                       struct qf_str form, struct qf_err *err);
/* Append the members of a JSON object: strings, numbers and booleans as text. QF_EINVAL: not one.
 */
QF_MUST_CHECK qf_rc qh_params_add_json(struct qf_arena *arena, struct qh_params *params,
                                       struct qf_str json, struct qf_err *err);

/* The first value of @name, empty if there is none. */
struct qf_str qh_params_get(const struct qh_params *params, const char *name);

#endif
