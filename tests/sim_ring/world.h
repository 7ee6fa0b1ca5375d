/* world.h - a cluster that keeps its own segments, one event at a time, all of it by a seed.
 *
 * What decides is the code that ships (ring/core, ring/handoff): rings, drivers, manifests, keepers' rules, tallies,
 * repair, hand-off. Around it: `meta` and two partitions, which are one log each and answer as of now (that is what
 * consensus gives); coordinators whose rings lag behind `meta`, one of which leads and may be deposed without knowing it;
 * keepers with disks; messages that are lost, late and doubled; crashes, isolation, full and wiped disks; an operator.
 *
 * A wipe is done only where it costs no majority: for each blob, those that lost it with their disks stay a minority of each set
 * of owners. Within that, whatever is named must survive. */
#ifndef TESTS_SIM_RING_WORLD_H
#define TESTS_SIM_RING_WORLD_H

#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "ring/core/clock.h"
#include "ring/core/drive.h"
#include "ring/core/keep.h"
#include "ring/core/manifest.h"
#include "ring/core/repair.h"
#include "ring/core/ring.h"
#include "ring/core/tally.h"
#include "ring/handoff/handoff.h"

enum {
    SLOTS = 4,
    KEEPERS = 7,
    COORDINATORS = 3,
    PARTITIONS = 2,
    BLOBS = 512,
    DOCUMENTS = 6,
    OPS = 4, /* of a coordinator at a time */
    WORDS = BLOBS / 64,
    BLOB_GRACE_MS = 4000,
    CLEAN_GRACE_MS = 800,
    LATE_MS = 900, /* a late message; proposals older than BLOB_GRACE_MS / 4 are not appended */
    META = 100,    /* endpoints: keepers from 0, coordinators from COORDINATOR on */
    PARTITION = 110,
    COORDINATOR = 50,
};

/* Rules of the simulation itself that can be taken out. */
enum sim_unsafe {
    SIM_UNSAFE_NO_RECHECK = 1 << 0,   /* a sealer names blobs however long ago it put them */
    SIM_UNSAFE_LIST_FOLDERS = 1 << 1, /* what exists is what lies in folders */
    SIM_UNSAFE_BACKPRESSURE = 1 << 2, /* hand-off at its cap refuses puts */
};

struct rules {
    uint64_t ring, drive, manifest, keep, sim;
};

/* What goes wrong how often. What several rare things must meet for is seldom seen in the first world; the others have more of
 * just these. The first one is as it was when its seeds were found: it draws nothing that the others draw. */
struct faults {
    const char *name;
    int deaf_draws; /* a step: a keeper, or a partition, does not hear of epochs for a while */
    double deaf, deaf_keeper;
    int64_t deaf_ms;
    bool
        deaf_to_leader; /* such a keeper hears nothing of what the leader's driver asks, and others all the same */
    bool untold;  /* what is needed for a disk that takes what it should not is brought about */
    double stale; /* a step: a coordinator's ring stands still, as long */
    double
        late; /* a message, up to LATE_MS; a quarter of that: up to later_ms, which nothing bounds */
    double late_clean; /* an order to clean, up to later_ms */
    double late_held;  /* what a node holds, on its way to `meta` */
    int64_t later_ms;
    int64_t wipes;      /* of ten troubles of keepers */
    double in_move;     /* who is troubled takes part in a move */
    int64_t operate_ms; /* the operator's longest pause */
    double seals;       /* of what coordinators begin; the others are documents */
    bool leader_idles;  /* who leads begins nothing */
};
extern const struct faults faults[];
extern const size_t fault_count;

struct blob_set {
    uint64_t words[WORDS];
};

enum message_kind {
    TO_PUT,
    PUT_DONE,
    TO_TELL,
    TOLD,
    TO_STREAM,
    STREAMED,
    TO_VERIFY,
    VERIFIED,
    TO_CLEAN,
    CLEANED,
    TO_COMPARE,
    COMPARED,
    TO_NOTE,
    NOTED,
    TO_META,
    TO_WRITE,
    WRITTEN,
    TO_READ,
    READ,
    /* a process's own alarms: never lost */
    TICK,
    STREAM_STEP,
    GARBAGE,
    CHAOS,
    OPERATE
};

enum put_purpose { FOR_OP, FOR_HANDOFF, FOR_REPAIR };

struct message {
    enum message_kind kind;
    int64_t at;
    uint64_t order; /* of equal times */
    uint32_t life;  /* alarms: of the process that set it */
    int from, to;
    uint32_t slot, partition, op;
    uint64_t generation; /* of the op */
    int blob, document;
    enum put_purpose purpose;
    enum rg_answer answer;
    enum rg_noted noted;
    uint64_t epoch, incarnation, listed, send;
    bool ok;
    rg_nodes sources;
    int64_t sent_ms;
    uint64_t epochs[SLOTS];
    struct blob_set set;
    struct rg_entry entry;
    struct rg_note note; /* kind and epoch, since, slots; blobs by number */
    struct rg_document value;
};

/* A segment, or what compaction made of two. */
struct blob {
    char name[8];
    uint32_t slot, partition;
    bool used, named, removed;
    bool dead;     /* will never be named: an input went */
    int inputs[2]; /* -1: none */
    int64_t named_ms, removed_ms;
};

struct stream {
    bool active;
    uint32_t slot;
    uint64_t epoch;
    rg_nodes sources; /* by keeper */
    int coordinator;
};

struct keeper {
    char name[8];
    bool alive, full, isolated;
    uint32_t life;
    uint64_t incarnation;
    struct rg_keep keep; /* on its disk */
    bool holds[BLOBS];
    bool lost[BLOBS]; /* held, until a disk was lost */
    int64_t put_ms[BLOBS];
    struct rg_document documents[DOCUMENTS];
    struct stream streams[SLOTS];
    int64_t asked_ms; /* when it asked what is named */
};

enum op_kind { OP_NONE, OP_SEAL, OP_WRITE, OP_READ };
enum op_stage { PUTTING, LINGERING, NAMING };

struct op {
    enum op_kind kind;
    enum op_stage stage;
    uint64_t generation;
    int blob, document;
    struct rg_tally tally;
    int64_t put_ms, until_ms;
    struct rg_document seen;  /* READ: joined so far; WRITE: the value */
    struct rg_clock expected; /* READ: acknowledged before it began */
    bool tainted;             /* a disk was lost since it began */
    bool repair;              /* READ: write back what comes of it */
};

struct coordinator {
    bool alive, isolated, leads;
    uint32_t life;
    struct rg_ring *ring;
    uint64_t follows; /* entries of meta that its ring has */
    struct rg_driver driver;
    struct rg_handoff *handoff;
    struct rg_repair *repair;
    struct op ops[OPS];
    uint64_t generation, counter;
    /* The hand-off's disk. */
    bool stored[BLOBS], refs[KEEPERS][BLOBS];
    int64_t ref_ms[KEEPERS][BLOBS];
    int sending[KEEPERS];   /* blob, or -1 */
    uint64_t send[KEEPERS]; /* its number */
    int64_t sending_ms[KEEPERS];
};

struct figures {
    uint64_t events, sealed, removed, replaced, moves, changes, rolled_back, cleaned, wipes,
        crashes, isolations, fills, handed, delivered, marks, repaired, garbage, old_epochs, writes,
        reads, failovers, messages, lost, doubled;
};

struct world {
    struct qf_prng prng;
    struct rules rules;
    const struct faults *faults;
    bool trace, quiet;
    int64_t deaf_ms[PARTITION + PARTITIONS]; /* until then an endpoint does not hear of epochs */
    int64_t now;
    uint64_t order;
    QF_VEC(struct message *) heap;
    struct rg_ring *ring; /* meta, as of now */
    QF_VEC(struct rg_entry) log;
    struct rg_manifest *manifests[PARTITIONS];
    uint64_t indexes[PARTITIONS];
    int64_t held_ms[SLOTS]; /* since when somebody is known to hold the slot; INT64_MAX: nobody */
    struct keeper keepers[KEEPERS];
    struct coordinator coordinators[COORDINATORS];
    int leader;
    struct blob blobs[BLOBS];
    int blob_count;
    uint32_t document_slot[DOCUMENTS];
    struct rg_clock acknowledged[DOCUMENTS];
    uint64_t incarnations;
    struct figures figures;
    char failure[300];
};

/* world.c */
bool chance(struct world *w, double probability);
int64_t between(struct world *w, int64_t from, int64_t to); /* inclusive */
void say(const struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void send(struct world *w, const struct message *message); /* may be lost, late, doubled */
void alarm_at(struct world *w, int to, enum message_kind kind, int64_t in_ms, uint32_t slot);
bool reaches(const struct world *w, int from, int to); /* both alive, none isolated */
struct message *next_message(struct world *w);
int keeper_of(const struct rg_ring *ring, uint8_t number); /* -1: none */
uint8_t number_of(const struct rg_ring *ring, int keeper);
rg_nodes keepers_of(const struct rg_ring *ring, rg_nodes numbers);
static inline bool in_set(const struct blob_set *set, int blob)
{
    return set->words[blob / 64] >> (blob % 64) & 1;
}
static inline void set_add(struct blob_set *set, int blob)
{
    set->words[blob / 64] |= UINT64_C(1) << (blob % 64);
}
struct blob_set named_in(const struct world *w, int slot); /* -1: all slots */
uint64_t least_epoch(const struct world *w);
void world_start(struct world *w, uint64_t seed, const struct faults *of, struct rules rules,
                 bool trace);
void world_done(struct world *w);

/* keeper.c */
void keeper_hear(struct world *w, int k, const struct message *m);
void keeper_start(struct world *w, int k);

/* log.c: meta and the partitions */
void meta_hear(struct world *w, const struct message *m);
void meta_append(struct world *w, const struct rg_entry *entry);
void partition_hear(struct world *w, const struct message *m);

/* coordinator.c, documents.c, lead.c, hand.c */
void coordinator_hear(struct world *w, int c, const struct message *m);
void coordinator_start(struct world *w, int c);
void follow(struct world *w, struct coordinator *c, uint64_t up_to);
void op_start(struct world *w, int c, struct op *op, enum op_kind kind, int subject);
void op_put(struct world *w, int c, struct op *op); /* send it to all owners */
void documents_hear(struct world *w, int c, const struct message *m);
void documents_enough(struct world *w, int c, struct op *op);
void drive(struct world *w, int c, const struct rg_drive_event *event);
void drive_hear(struct world *w, int c, const struct message *m);
qf_rc hand(struct world *w, int c, const struct rg_handoff_event *event);
void hand_restart(struct world *w, int c);
void hand_tick(struct world *w, int c);
void hand_hear(struct world *w, int c, const struct message *m);
void repair_tick(struct world *w, int c);

/* chaos.c */
void chaos_step(struct world *w);
void operate(struct world *w);
void calm(struct world *w); /* no faults from now on; what is down comes up */

/* check.c */
void check_cleanup(struct world *w, const struct rg_entry *entry);
void check(struct world *w);
void check_end(struct world *w);

#endif
