/* table.h - which queues there are: what the records of the queue `meta` amount to.
 *
 * Each record of `meta` is a JSON object with one of these members:
 *
 *     "create"  a queue: its name, owner, options, and the members it begins with
 *     "delete"  the name of a queue that is gone
 *     "partitions"  how many queues metrics-0, metrics-1, ... there are: said once, for ever
 *     "table"   a list of all queues: takes the place of everything before, so that what was before
 *               can be trimmed
 *
 * Records of another kind are skipped: later versions may write them. Equal records in equal order
 * give equal tables. The number of a queue is the offset of the record that created it: a queue
 * that is deleted and created again is another one. */
#ifndef QUEUE_NODE_TABLE_H
#define QUEUE_NODE_TABLE_H

#include "base/pure/tenant.h"
#include "base/pure/vec.h"
#include "queue/core/core.h"

enum {
    QN_QUEUES_MAX = 256,
    QN_TENANT_QUEUES_MAX = 32,
    QN_NAME_SIZE = 41, /* with the NUL */
    QN_PARTITIONS_MAX = 128
};
#define QN_META "meta"
#define QN_STATE "state-maps" /* what is said of state maps, and their parts */

struct qn_queue_options {
    bool delete_on_consume;
    enum qc_level level;        /* of offers that name none */
    int64_t retention_ms;       /* 0: for ever */
    uint64_t retention_bytes;   /* 0: no bound */
    int64_t consumer_expiry_ms; /* 0: the default, 7 days */
};

struct qn_row {
    uint64_t id;
    char name[QN_NAME_SIZE];
    char tenant[QF_TENANT_MAX + 1];
    struct qn_queue_options options;
    struct qc_members members; /* at its creation */
};

struct qn_table {
    QF_VEC(struct qn_row) rows; /* in the order of creation */
    uint32_t partitions;        /* a power of two; 0: not said yet */
};

/* 1 to 40 of a-z, 0-9, '-', '_' and '.', the first a letter or digit. */
bool qn_name_valid(struct qf_str name);
/* `meta`, `metrics-*` and `state-maps`: operators' only. */
bool qn_name_is_system(const char *name);
/* "metrics-7": 7. False: it is not the name of a partition. */
bool qn_name_partition(const char *name, uint32_t *ret_partition);
void qn_partition_name(uint32_t partition, char ret_name[QN_NAME_SIZE]);
bool qn_queue_options_equal(const struct qn_queue_options *a, const struct qn_queue_options *b);

const struct qn_row *qn_table_find(const struct qn_table *table, const char *name);
uint32_t qn_table_owned(const struct qn_table *table, const char *tenant);
/* Apply the record at @index. True if the table changed. */
bool qn_table_apply(struct qn_table *table, uint64_t index, struct qf_str record);
void qn_table_clear(struct qn_table *table);

/* Records. */
void qn_record_create(struct qf_strbuf *buf, const struct qn_row *row); /* its id does not count */
void qn_record_partitions(struct qf_strbuf *buf, uint32_t partitions);
void qn_record_delete(struct qf_strbuf *buf, const char *name);
void qn_record_table(struct qf_strbuf *buf, const struct qn_table *table);

/* "one", "quorum", "all". */
const char *qn_level_text(enum qc_level level);
bool qn_level_parse(struct qf_str text, enum qc_level *ret_level);
/* Append the members of a JSON object that say @options, without braces. */
void qn_queue_options_json(struct qf_strbuf *buf, const struct qn_queue_options *options);

#endif
