/* table.h - small hash table of objects that carry their own link, by a 64-bit key. */
#ifndef QUERYWORKER_WORK_TABLE_H
#define QUERYWORKER_WORK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define QW_TABLE_BUCKETS 4096 /* power of two */

struct qw_node { /* first member of what is kept */
    uint64_t key;
    struct qw_node *next;
};

struct qw_table { /* zeroed: empty */
    struct qw_node *buckets[QW_TABLE_BUCKETS];
    size_t count;
};

static inline struct qw_node **qw_table_bucket(struct qw_table *table, uint64_t key)
{
    return &table->buckets[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

static inline void *qw_table_find(struct qw_table *table, uint64_t key)
{
    struct qw_node *node = *qw_table_bucket(table, key);

    while (node && node->key != key)
        node = node->next;
    return node;
}

/* @node->key is set and not in the table yet. */
static inline void qw_table_add(struct qw_table *table, struct qw_node *node)
{
    struct qw_node **bucket = qw_table_bucket(table, node->key);

    node->next = *bucket;
    *bucket = node;
    table->count++;
}

static inline void qw_table_remove(struct qw_table *table, struct qw_node *node)
{
    struct qw_node **link = qw_table_bucket(table, node->key);

    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    table->count--;
}

#endif
