/* alloc.c - heap allocation that cannot fail. */
#include "base/pure/alloc.h"

#include <stdlib.h>
#include <string.h>

void *qf_xmalloc(size_t size)
{
    void *ptr = malloc(size ? size : 1);

    if (!ptr)
        abort();
    return ptr;
}

void *qf_xcalloc(size_t count, size_t size)
{
    void *ptr = calloc(count ? count : 1, size ? size : 1);

    if (!ptr)
        abort();
    return ptr;
}

void *qf_xrealloc(void *ptr, size_t size)
{
    void *grown = realloc(ptr, size ? size : 1);

    if (!grown)
        abort();
    return grown;
}

char *qf_xstrdup(const char *cstr)
{
    return qf_xmemdup0(cstr, strlen(cstr));
}

char *qf_xmemdup0(const void *data, size_t len)
{
    char *copy = qf_xmalloc(len + 1);

    if (len)
        memcpy(copy, data, len);
    copy[len] = '\0';
    return copy;
}

void qf_freep(void *pointer_to_pointer)
{
    void *ptr;

    memcpy(&ptr, pointer_to_pointer, sizeof(ptr));
    free(ptr);
}
