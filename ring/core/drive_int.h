/* drive_int.h - the inside of the driver. */
#ifndef RING_CORE_DRIVE_INT_H
#define RING_CORE_DRIVE_INT_H

#include "ring/core/drive.h"

/* drive.c */
struct rg_drive_effect *rg_drive_emit(struct rg_driver *driver, enum rg_drive_effect_kind kind);
struct rg_entry *rg_drive_propose(struct rg_driver *driver, enum rg_entry_kind kind,
                                  int64_t now_ms);

/* jobs.c */
void rg_jobs_hear(struct rg_driver *driver, const struct rg_ring *ring,
                  const struct rg_drive_event *event);
void rg_jobs_plan(struct rg_driver *driver, const struct rg_ring *ring, int64_t now_ms);

#endif
