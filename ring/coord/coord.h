/* coord.h - the ring, and the settings of tenants, as the application of the queue `meta` (queue/node/application.h).
 *
 * Records about the ring are applied to a ring on every node, which posts it on its board (board.h). What shall become
 * one is asked for with a wish; the leader of `meta` decides (ring/state/state.h). Whoever is asked a question confirms
 * itself first: the answer knows everything that was acknowledged before.
 *
 * The first record is written only when every node of the cluster says that it knows such records. From then on the
 * snapshots of `meta` are of a version that older releases refuse: one of them would forget the ring. */
#ifndef RING_COORD_COORD_H
#define RING_COORD_COORD_H

#include "queue/node/application.h"
#include "ring/coord/board.h"
#include "ring/coord/tenants.h"
#include "ring/state/state.h"

#define RG_DEAD_MS (INT64_C(10) * 60 * 1000) /* unless options say otherwise */

struct rg_coord_options {
    int64_t dead_ms; /* a node that has not answered for so long is shown as dead; 0: RG_DEAD_MS */
    /* Does every member of the queue that @ask is about know records of the ring? If not, one that does not is named. NULL: yes. */
    bool (*all_know)(void *ctx, const struct qn_ask *ask, char ret_name[QC_NAME_SIZE]);
    /* The same for records of tenants. */
    bool (*all_know_tenants)(void *ctx, const struct qn_ask *ask, char ret_name[QC_NAME_SIZE]);
    /* The process must end. */
    void (*fatal)(void *ctx, const char *why);
    /* This node leads `meta` in @term; 0: not any more. On the node's thread; may be NULL. */
    void (*lead)(void *ctx, uint64_t term);
    void *ctx;
};

struct rg_coord;

struct rg_coord *rg_coord_new(const struct rg_coord_options *options);
/* After the node has ended. Accepts NULL, returns NULL. */
struct rg_coord *rg_coord_free(struct rg_coord *coord);
struct rg_board *rg_coord_board(struct rg_coord *coord);
struct rg_tenants *rg_coord_tenants(struct rg_coord *coord);
/* For the queue `meta`. */
struct qn_application rg_coord_application(struct rg_coord *coord);

/* An ask for what @wish says, with the operator's rights. Its answer's text is an object. */
struct qn_ask *rg_coord_wish(const struct rg_wish *wish);

enum rg_question {
    RG_ASK_NODES = 'N',   /* all, and the ring */
    RG_ASK_NODE = 'n',    /* the one of that name */
    RG_ASK_CHANGES = 'M', /* all */
    RG_ASK_CHANGE = 'm',  /* the one of that id */
    RG_ASK_APPLIED = 'A', /* how far the ring is: a number */
    RG_ASK_TENANTS = 'T', /* a page of them, behind the one of that name */
    RG_ASK_TENANT = 't',  /* the one of that name */
    RG_ASK_VERSION = 'V', /* how far tenants are: a number */
};
/* The same for what @entry says of a tenant; its time is the leader's. */
struct qn_ask *rg_coord_tenant_wish(const struct rg_tenant_entry *entry);
/* The same for a question about @name. */
struct qn_ask *rg_coord_question(enum rg_question question, struct qf_str name);

#endif
