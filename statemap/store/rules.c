/* rules.c - the rules of a tenant: sets that replace each other, in a file. */
#include "statemap/store/rules.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys/small_file.h"
#include "statemap/store/rule_text.h"
#include "statemap/store/store_int.h"

#define FILE_NAME "rules.json"
#define FILE_BYTES_MAX ((size_t)SM_RULE_BYTES_MAX * SM_RULES_MAX * (SM_RULE_SETS_MAX + 1))

/* --- sets --- */

static struct sm_rule_set *new_set(size_t count)
{
    struct sm_rule_set *set = qf_xcalloc(1, sizeof(*set) + count * sizeof(set->rules[0]));

    atomic_store(&set->users, 1);
    set->count = count;
    return set;
}

void sm_rules_give_back(struct sm_rule_set *set)
{
    if (set && atomic_fetch_sub(&set->users, 1) == 1)
        free(set);
}

const struct sm_rule *sm_rules_find(const struct sm_rule_set *set, const char *name)
{
    for (size_t i = 0; set && i < set->count; i++)
        if (strcmp(set->rules[i].name, name) == 0)
            return &set->rules[i];
    return NULL;
}

const struct sm_rule *sm_rules_about(const struct sm_rule_set *set, const char *map)
{
    for (size_t i = 0; set && i < set->count; i++)
        if (strcmp(set->rules[i].map, map) == 0)
            return &set->rules[i];
    return NULL;
}

/* --- the file --- */

static void print_set(struct qf_strbuf *text, const struct sm_rule_set *set)
{
    qf_strbuf_printf(text, "{\"from\":%llu,\"replaced\":%lld,\"rules\":[",
                     (unsigned long long)set->from, (long long)set->replaced_ms);
    for (size_t i = 0; i < set->count; i++) {
        qf_strbuf_puts(text, i ? ",\n" : "\n");
        sm_rule_print(text, &set->rules[i]);
    }
    qf_strbuf_puts(text, "]}\n");
}

static bool read_rules(const json_t *list, struct sm_rule_set *set, struct qf_err *err)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        char *text = json_dumps(item, JSON_COMPACT);
        qf_rc rc = sm_rule_read(qf_str_from(text ? text : ""), "", &set->rules[i], err);

        free(text);
        if (rc != QF_OK)
            return false;
    }
    return true;
}

static bool read_sets(struct sm_store *store, const json_t *sets, struct qf_err *err)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(sets))
        return false;
    json_array_foreach(sets, i, item)
    {
        const json_t *rules = json_object_get(item, "rules");
        struct sm_rule_set *set;

        if (!json_is_array(rules) || json_array_size(rules) > SM_RULES_MAX)
            return false;
        set = new_set(json_array_size(rules));
        QF_VEC_PUSH(&store->rules, set);
        set->from = (uint64_t)json_integer_value(json_object_get(item, "from"));
        set->replaced_ms = json_integer_value(json_object_get(item, "replaced"));
        if (!read_rules(rules, set, err))
            return false;
    }
    return true;
}

void sm_rules_forget(struct sm_store *store)
{
    for (size_t i = 0; i < store->rules.count; i++)
        sm_rules_give_back(store->rules.items[i]);
    QF_VEC_DONE(&store->rules);
    store->rules_read = false;
}

/* With the lock. */
static qf_rc read_file(struct sm_store *store, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *path = sm_path(store->root, FILE_NAME, NULL);
    struct qf_err why = { 0 };
    struct stat seen;
    json_t *json;
    qf_rc rc = QF_OK;

    if (store->rules_read)
        return QF_OK;
    if (sm_exists(path)) {
        rc = qf_small_file_read(path, "rules", FILE_BYTES_MAX, &text, &seen, err);
        if (rc != QF_OK)
            return rc;
        json = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
        if (!read_sets(store, json, &why))
            rc = qf_err_set(err, QF_ECORRUPT, "%s is damaged: %s", path, why.msg);
        json_decref(json);
    }
    if (rc != QF_OK)
        sm_rules_forget(store);
    store->rules_read = rc == QF_OK;
    return rc;
}

static qf_rc write_file(struct sm_store *store, const struct sm_rule_set *last, size_t first,
                        struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_putc(&text, '[');
    for (size_t i = first; i < store->rules.count; i++) {
        print_set(&text, store->rules.items[i]);
        qf_strbuf_putc(&text, ',');
    }
    print_set(&text, last);
    qf_strbuf_puts(&text, "]\n");
    return sm_file_replace(store->root, FILE_NAME, qf_strbuf_view(&text), err);
}

/* --- reading --- */

/* With the lock; NULL: none yet. */
static struct sm_rule_set *newest(const struct sm_store *store)
{
    return store->rules.count ? store->rules.items[store->rules.count - 1] : NULL;
}

static struct sm_rule_set *at(const struct sm_store *store, uint64_t position)
{
    for (size_t i = store->rules.count; i > 0; i--)
        if (store->rules.items[i - 1]->from <= position)
            return store->rules.items[i - 1];
    return NULL;
}

qf_rc sm_rules_take(struct sm_store *store, uint64_t position, struct sm_rule_set **ret_set,
                    struct qf_err *err)
{
    struct sm_rule_set *set = NULL;
    qf_rc rc;

    qf_lock_take(store->lock);
    rc = read_file(store, err);
    if (rc == QF_OK) {
        set = position ? at(store, position) : newest(store);
        if (set)
            atomic_fetch_add(&set->users, 1);
        else if (store->rules.count)
            rc = qf_err_set(err, QF_EGONE, "the rules of that time are not known any more");
    }
    qf_lock_drop(store->lock);
    if (rc == QF_OK)
        *ret_set = set;
    return rc;
}

/* In force, or not for long any more. */
static bool is_recent(const struct sm_store *store, const struct sm_rule_set *set, int64_t now_ms)
{
    return set == newest(store) || set->replaced_ms > now_ms - SM_RULES_KEEP_MS;
}

qf_rc sm_rules_matter(struct sm_store *store, const char *map, int64_t now_ms, bool *ret_matter,
                      struct qf_err *err)
{
    qf_rc rc;

    *ret_matter = false;
    qf_lock_take(store->lock);
    rc = read_file(store, err);
    for (size_t i = 0; rc == QF_OK && i < store->rules.count && !*ret_matter; i++) {
        const struct sm_rule_set *set = store->rules.items[i];

        *ret_matter = is_recent(store, set, now_ms) &&
                      (map ? sm_rules_about(set, map) != NULL : set->count > 0);
    }
    qf_lock_drop(store->lock);
    return rc;
}

/* --- changing --- */

static int by_order(const void *a, const void *b)
{
    return sm_rule_cmp(a, b);
}

/* Before the first rules there were none: that is known for a while, as everything that was. */
static void begin_sets(struct sm_store *store, int64_t now_ms)
{
    struct sm_rule_set *none;

    qf_lock_take(store->lock);
    if (!store->rules.count) {
        none = new_set(0);
        none->replaced_ms = now_ms;
        QF_VEC_PUSH(&store->rules, none);
    }
    qf_lock_drop(store->lock);
}

/* @set is the last one from now on. */
static qf_rc replace(struct sm_store *store, struct sm_rule_set *set, uint64_t position,
                     int64_t now_ms, struct qf_err *err)
{
    size_t first = 0;
    qf_rc rc;

    begin_sets(store, now_ms);
    set->from = position;
    qsort(set->rules, set->count, sizeof(set->rules[0]), by_order);
    qf_lock_take(store->lock);
    if (newest(store))
        newest(store)->replaced_ms = QF_MAX(now_ms, INT64_C(1));
    while (first < store->rules.count &&
           (store->rules.count - first >= SM_RULE_SETS_MAX ||
            store->rules.items[first]->replaced_ms < now_ms - SM_RULES_KEEP_MS))
        first++;
    rc = write_file(store, set, first, err);
    if (rc != QF_OK) { /* as it was, when somebody looks */
        sm_rules_forget(store);
        sm_rules_give_back(set);
    } else {
        for (size_t i = 0; i < first; i++)
            sm_rules_give_back(store->rules.items[i]);
        store->rules.count -= first;
        if (store->rules.count)
            memmove(store->rules.items, store->rules.items + first,
                    store->rules.count * sizeof(struct sm_rule_set *));
        QF_VEC_PUSH(&store->rules, set);
    }
    qf_lock_drop(store->lock);
    return rc;
}

/* The rules of @former but @name, and @rule, which may be NULL. */
static struct sm_rule_set *change(const struct sm_rule_set *former, const char *name,
                                  const struct sm_rule *rule)
{
    struct sm_rule_set *set = new_set((former ? former->count : 0) + (rule != NULL));
    size_t count = 0;

    for (size_t i = 0; former && i < former->count; i++)
        if (strcmp(former->rules[i].name, name) != 0)
            set->rules[count++] = former->rules[i];
    if (rule)
        set->rules[count++] = *rule;
    set->count = count;
    return set;
}

qf_rc sm_rules_put(struct sm_store *store, const struct sm_rule *rule, uint64_t position,
                   int64_t now_ms, struct qf_err *err)
{
    struct sm_rule_set *former;
    qf_rc rc = sm_rules_take(store, 0, &former, err);

    if (rc != QF_OK)
        return rc;
    rc = replace(store, change(former, rule->name, rule), position, now_ms, err);
    sm_rules_give_back(former);
    return rc;
}

qf_rc sm_rules_remove(struct sm_store *store, const char *name, uint64_t position, int64_t now_ms,
                      struct qf_err *err)
{
    struct sm_rule_set *former;
    qf_rc rc = sm_rules_take(store, 0, &former, err);

    if (rc != QF_OK)
        return rc;
    if (sm_rules_find(former, name))
        rc = replace(store, change(former, name, NULL), position, now_ms, err);
    sm_rules_give_back(former);
    return rc;
}
