/* pem.h - certificates and keys from files. */
#ifndef BASE_NET_PEM_H
#define BASE_NET_PEM_H

#include "base/pure/err.h"

/* The text of a PEM file; free() it. QF_EIO: unreadable. QF_EINVAL: not PEM, or over 1 MiB. */
QF_MUST_CHECK qf_rc qf_pem_read(const char *path, char **ret_text, struct qf_err *err);

#endif
