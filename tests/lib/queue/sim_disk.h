/* sim_disk.h - a disk in memory that keeps exactly what queue/log/disk.h promises, and no more.
 *
 * At a power loss each write that was not synced is lost, kept or torn, in any combination and
 * hence in any order; of the folder's changes since its last sync a prefix is kept. A killed
 * process loses nothing that it wrote. */
#ifndef TESTS_LIB_QUEUE_SIM_DISK_H
#define TESTS_LIB_QUEUE_SIM_DISK_H

#include "base/pure/prng.h"
#include "queue/log/disk.h"

struct sim_disk;

struct sim_disk *sim_disk_new(const char *label);
struct sim_disk *sim_disk_free(struct sim_disk *disk); /* Returns NULL. */
struct ql_disk *sim_disk_of(struct sim_disk *disk);

/* Lose what was not synced, as @prng says. */
void sim_disk_power_loss(struct sim_disk *disk, struct qf_prng *prng);
/* Remove every file, at once and for good. */
void sim_disk_wipe(struct sim_disk *disk);

/* From now on: bytes in all files; 0: no limit. */
void sim_disk_set_capacity(struct sim_disk *disk, uint64_t bytes);
/* From now on there is room for @bytes more. */
void sim_disk_fill(struct sim_disk *disk, uint64_t bytes);
/* The next sync fails, and what it should have made durable never will be, though it can be read:
 * how Linux behaves. */
void sim_disk_fail_next_sync(struct sim_disk *disk);
/* Let all calls fail with QF_EIO after @count more writes and syncs (of files and folder): the node
 * dies there. UINT64_MAX: never. */
void sim_disk_stop_after(struct sim_disk *disk, uint64_t count);
bool sim_disk_stopped(const struct sim_disk *disk);
uint64_t sim_disk_writes(const struct sim_disk *disk); /* writes and syncs so far */

/* A byte of file @name, as it is on the disk and in memory; NULL if there is none. */
unsigned char *sim_disk_byte(struct sim_disk *disk, const char *name, uint64_t offset);
/* Change it in both. */
void sim_disk_flip(struct sim_disk *disk, const char *name, uint64_t offset, unsigned char mask);
uint64_t sim_disk_size(struct sim_disk *disk, const char *name); /* UINT64_MAX: no such file */
/* Give file @name this content, durably. */
void sim_disk_put(struct sim_disk *disk, const char *name, const void *data, size_t len);

#endif
