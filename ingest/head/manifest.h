/* manifest.h - files of closed ranges that outlive the process: a restart need not make them again, nor
 * hold their samples in memory meanwhile.
 *
 * When the files of a range are there, a file NUMBER.range beside them says whose they are:
 *
 *     promfabric range 2 BOOT                 the boot of the machine: they were not synced
 *     GENERATION FROM TO TENANT
 *     FILE SIZE SHARD NAME                    for each; its name in the store, of a segment or an annex
 *     end HASH                                XXH3 of all before
 *
 * What it says is true as long as the log says so, too: a range's records never change once they were
 * applied. Whatever is not whole, or of another boot, is removed. */
#ifndef INGEST_HEAD_MANIFEST_H
#define INGEST_HEAD_MANIFEST_H

#include "ingest/head/head_int.h"

void in_kept_done(struct in_kept *kept);

/* Say whose @files are. What fails only costs the next start some work. */
void in_manifest_save(const struct in_head *head, struct qf_str tenant, uint64_t generation,
                      uint64_t from, uint64_t to, struct in_files *files);
/* What is in the head's folder; everything else in it is removed. */
qf_rc in_manifest_load(struct in_head *head, struct qf_err *err);

#endif
