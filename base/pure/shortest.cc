/* shortest.cc - std::to_chars behind a C interface. */
#include "base/pure/shortest.h"

#include <charconv>

static size_t print(double v, char *out, size_t size, std::chars_format format)
{
    std::to_chars_result done = std::to_chars(out, out + size - 1, v, format);

    *done.ptr = '\0';
    return static_cast<size_t>(done.ptr - out);
}

size_t qf_shortest_fixed(double v, char *out, size_t size)
{
    return print(v, out, size, std::chars_format::fixed);
}

size_t qf_shortest_scientific(double v, char *out, size_t size)
{
    return print(v, out, size, std::chars_format::scientific);
}
