/* spool.h - where artifacts are, each under an unguessable name: small ones in memory, up to a
 * bound, the others in a folder.
 *
 * The folder itself is the table that the HTTP threads look things up in: a file called by its
 * token is an artifact that may be fetched, and nothing else in the folder has a name of that form.
 * A file appears whole (rename) and goes at once (unlink); who has it open reads it to the end.
 * Nothing is synced: artifacts do not outlive the process, and the next one empties the folder. */
#ifndef QUERYWORKER_ARTIFACT_SPOOL_H
#define QUERYWORKER_ARTIFACT_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"
#include "queryworker/artifact/shelf.h"

#define QW_TOKEN_LEN 64 /* 32 random bytes as lower-case hex */

struct qw_token {
    char text[QW_TOKEN_LEN + 1];
};

struct qw_spool;

/* The largest artifact that is kept in memory. */
#define QW_MEMORY_ARTIFACT_MAX (1u << 20)

/* Make the folder if it is missing and remove what an earlier process left in it. Artifacts in
 * memory take at most @memory_bytes_max; 0: all are files. QF_EIO. */
struct qw_spool *qw_spool_open(const char *dir, uint64_t memory_bytes_max, struct qf_err *err);
struct qw_spool *qw_spool_free(struct qw_spool *spool); /* Leaves files alone. NULL is fine. */

struct qw_token qw_spool_token(void);
/* Exactly the form of a token? */
bool qw_token_valid(struct qf_str text);

/* Where to write the artifact of @token before it is published; free() it. Any thread. */
char *qw_spool_temp_path(const struct qw_spool *spool, const struct qw_token *token);
/* Make what was written there available. QF_EIO, QF_ENOSPC. Any thread. */
QF_MUST_CHECK qf_rc qw_spool_publish(const struct qw_spool *spool, const struct qw_token *token,
                                     struct qf_err *err);
/* May artifacts be in memory at all? */
bool qw_spool_uses_memory(const struct qw_spool *spool);
/* Or publish @bytes without a file: they are taken, and @bytes is empty after. False if there are
 * too many or too little room. Any thread. */
bool qw_spool_keep(struct qw_spool *spool, const struct qw_token *token, struct qf_strbuf *bytes);
/* A published artifact in memory, to be given back with qw_shelf_drop(); NULL if there is none: it
 * may be a file. Any thread. */
struct qw_shelf_item *qw_spool_find(struct qw_spool *spool, struct qf_str token);
/* More is in memory than should be: let go of acknowledged artifacts. */
bool qw_spool_crowded(struct qw_spool *spool);
/* Open a published file for reading; -1 if there is none. Any thread. */
int qw_spool_open_artifact(const struct qw_spool *spool, struct qf_str token);
/* Remove it, published or not; no matter if it is gone already. Any thread. */
void qw_spool_remove(struct qw_spool *spool, const struct qw_token *token);

/* Free bytes of the disk below; UINT64_MAX if unknown, so that nothing is evicted for it. */
uint64_t qw_spool_disk_free(const struct qw_spool *spool);

#endif
