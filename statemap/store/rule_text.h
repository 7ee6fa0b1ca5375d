/* rule_text.h - a rule as a JSON object: in files, requests and the log.
 *
 *     {"name":"owner","map":"team","from":["service"],"prefix":"owner_"}
 *
 * `name`; `map`; `from`, a label or a list of them; one of `to`, `prefix` (standard: "") and `members` (an object: member to
 * label); `separator` (standard: ";"); `missing`, "refuse" (standard) or "leave"; `overwrite`; `order`; `version`, which is the
 * log's. */
#ifndef STATEMAP_STORE_RULE_TEXT_H
#define STATEMAP_STORE_RULE_TEXT_H

#include "base/pure/strbuf.h"
#include "statemap/core/rule.h"

/* Longer ones are refused. */
enum { SM_RULE_BYTES_MAX = 1 << 15 };

/* What is as it is by itself is left out. */
void sm_rule_print(struct qf_strbuf *buf, const struct sm_rule *rule);
/* QF_EINVAL: it says something else, or something wrong. It is called @name, which may be "", if it does not say its name. */
QF_MUST_CHECK qf_rc sm_rule_read(struct qf_str text, const char *name, struct sm_rule *ret_rule,
                                 struct qf_err *err);

#endif
