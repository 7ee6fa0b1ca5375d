/* alloc.h - heap allocation that cannot fail: exhaustion ends the process, as GLib beside us does.
 */
#ifndef BASE_PURE_ALLOC_H
#define BASE_PURE_ALLOC_H

#include <stddef.h>

void *qf_xmalloc(size_t size);
void *qf_xcalloc(size_t count, size_t size);
void *qf_xrealloc(void *ptr, size_t size);
char *qf_xstrdup(const char *cstr);
char *qf_xmemdup0(const void *data, size_t len); /* A copy with a NUL behind it. */

/* For QF_CLEANUP(qf_freep) on any heap pointer. */
void qf_freep(void *pointer_to_pointer);

#endif
