/* spool_int.h - what the files of the spool share. */
#ifndef RING_SPOOL_SPOOL_INT_H
#define RING_SPOOL_SPOOL_INT_H

#include <stdatomic.h>

#include "ring/core/place.h"
#include "ring/spool/spool.h"

enum {
    SP_KEY = 33,                    /* hex digits of a name, and NUL */
    SP_NODE = 3 * RG_NAME_MAX + 1,  /* a node's name as one of a folder */
    SP_PATH = 8 + SP_NODE + SP_KEY, /* below DIR */
    SP_REFERENCE_MAX = 1024         /* bytes of a reference */
};

struct sp_spool {
    struct sp_options options;
    int root, lock_fd;
    atomic_uint_fast64_t writes; /* begun; names of files in tmp */
};

/* names.c: paths below DIR. */
void sp_key(struct qf_str name, char ret_key[SP_KEY]);
void sp_payload_path(struct qf_str name, char ret_path[SP_PATH]);
void sp_refs_path(const char *node, char ret_path[SP_PATH]);
void sp_reference_path(const char *node, struct qf_str name, char ret_path[SP_PATH]);
/* Back from the name of a folder. False: it is none of ours. */
bool sp_node_name(const char *folder, char ret_node[RG_NAME_MAX + 1]);

/* names.c: a reference as bytes. */
void sp_reference_encode(struct qf_strbuf *buf, const struct sp_part *part, int64_t time_ms);
/* ret_part->name borrows from @bytes. False: they are not one. */
bool sp_reference_decode(struct qf_str bytes, struct sp_part *ret_part, int64_t *ret_time_ms);
/* Read one. QF_ENOTFOUND, QF_ECORRUPT, QF_EIO. */
qf_rc sp_reference_read(const struct sp_spool *spool, const char *path, struct qf_strbuf *bytes,
                        struct sp_part *ret_part, int64_t *ret_time_ms, struct qf_err *err);

#endif
