/* definition_text.h - what is said of a map as a JSON object: in files, requests and the log. */
#ifndef STATEMAP_STORE_DEFINITION_TEXT_H
#define STATEMAP_STORE_DEFINITION_TEXT_H

#include "base/pure/strbuf.h"
#include "statemap/core/definition.h"

/* Longer ones are refused. */
enum { SM_DEFINITION_BYTES_MAX = 1 << 16 };

/* What is not set is left out. */
void sm_definition_print(struct qf_strbuf *buf, const struct sm_definition *definition);
/* QF_EINVAL: it says something else, or something wrong. */
QF_MUST_CHECK qf_rc sm_definition_read(struct qf_str text, struct sm_definition *ret_definition,
                                       struct qf_err *err);
/* The same; it is called @name if it does not say its name. */
QF_MUST_CHECK qf_rc sm_definition_read_as(struct qf_str text, const char *name,
                                          struct sm_definition *ret_definition, struct qf_err *err);

#endif
