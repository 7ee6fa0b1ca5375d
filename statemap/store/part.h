/* part.h - a part: the rows of one load in one file, made to be carried about.
 *
 *     "PFSTATE1"  sections (4)  { name length (1)  name  kind (1)  direct (1)  size (8)  packed (8)  XXH3 of what is packed (8) } ...
 *     XXH3 of all that (8)      the LMDB file of each section, packed with zstd
 *
 * Numbers are big-endian. A part is looked through before it is taken, and again while it is unpacked. */
#ifndef STATEMAP_STORE_PART_H
#define STATEMAP_STORE_PART_H

#include <stdint.h>

#include "base/pure/err.h"
#include "statemap/core/row.h"

enum { SM_SECTIONS_MAX = 1000 };

struct sm_section {
    char name[SM_NAME_MAX + 1]; /* of the map */
    struct sm_layout layout;
    uint64_t size, packed, sum;
    uint64_t offset; /* in the file */
};

struct sm_part {
    int file;
    char *path;
    struct sm_section *sections;
    size_t count;
};

/* A new file at @path with these sections, whose LMDB files are `folder`/NAME/data.mdb; synced. Fills in what only it knows. On
 * failure there is no file. QF_EIO, QF_ENOSPC. */
QF_MUST_CHECK qf_rc sm_part_write(const char *path, const char *folder, struct sm_section *sections,
                                  size_t count, struct qf_err *err);

/* QF_ECORRUPT names the file. */
QF_MUST_CHECK qf_rc sm_part_open(const char *path, struct sm_part *ret_part, struct qf_err *err);
void sm_part_close(struct sm_part *part);
/* Read all sections and compare sums. */
QF_MUST_CHECK qf_rc sm_part_verify(const struct sm_part *part, struct qf_err *err);
/* A section's LMDB file, as the new file @path. */
QF_MUST_CHECK qf_rc sm_part_unpack(const struct sm_part *part, const struct sm_section *section,
                                   const char *path, struct qf_err *err);

#endif
