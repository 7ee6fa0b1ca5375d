/* input.h - lines of a file that may be compressed. */
#ifndef SEGMENTS_IMPORT_INPUT_H
#define SEGMENTS_IMPORT_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

struct input;

/* Open @path, or standard input for "-". gzip (several members too) and zstd (several frames too)
 * are recognised by their first bytes. NULL and @err filled: QF_ENOTFOUND, QF_EIO. */
struct input *input_open(const char *path, struct qf_err *err);
struct input *input_close(struct input *input); /* Accepts NULL, returns NULL. */

/* The next line without its newline, borrowed until the next call; *ret_more false at the end. A
 * line longer than @line_max comes cut, with *ret_cut true; its rest is passed over. QF_EIO;
 * QF_ECORRUPT for broken or unfinished compression. */
QF_MUST_CHECK qf_rc input_line(struct input *input, size_t line_max, struct qf_str *ret_line,
                               bool *ret_cut, bool *ret_more, struct qf_err *err);

uint64_t input_bytes_done(const struct input *input);  /* as stored, compressed or not */
uint64_t input_bytes_total(const struct input *input); /* 0 if it is not a regular file */

#endif
