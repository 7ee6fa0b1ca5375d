/* regex.h - regular expressions as Prometheus matches labels: RE2 syntax, linear time.
 *
 * A pattern is anchored at both ends and `.` matches newline. Safe to share between threads. */
#ifndef BASE_REGEX_REGEX_H
#define BASE_REGEX_REGEX_H

#ifndef __cplusplus
#include <stdbool.h>
#endif
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct qf_regex;

/* NULL if @pattern is not valid or too large; the reason is written to @msg. */
struct qf_regex *qf_regex_new(const char *pattern, size_t len, char *msg, size_t msg_size);
/* Like qf_regex_new but matches anywhere in the text. */
struct qf_regex *qf_regex_new_unanchored(const char *pattern, size_t len, char *msg,
                                         size_t msg_size);
struct qf_regex *qf_regex_free(struct qf_regex *re); /* Accepts NULL, returns NULL. */

/* The most bytes it may ever take, with the states that matching adds to its cache: what to charge
 * to whoever gave the pattern. */
size_t qf_regex_size(const struct qf_regex *re);

bool qf_regex_match(const struct qf_regex *re, const char *text, size_t len);

/* Groups of a match, [0] the whole: start and end offsets, -1 for a group that took no part.
 * Returns the number of groups written (at most @max), 0 if there is no match. */
size_t qf_regex_groups(const struct qf_regex *re, const char *text, size_t len, long (*groups)[2],
                       size_t max);
size_t qf_regex_group_count(const struct qf_regex *re); /* Without group 0. */
/* The number of the group named @name, or -1. */
int qf_regex_group_named(const struct qf_regex *re, const char *name, size_t len);

#ifdef __cplusplus
}
#endif

#endif
