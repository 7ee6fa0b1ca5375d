/* define.c - what is said of maps, by clients. */
#include <inttypes.h>

#include "ingest/state/state_int.h"
#include "statemap/store/definition_text.h"

#define WAIT_MS 10000

qf_rc in_state_decide(struct in_state *state, const struct sm_entry *entry, struct qf_err *err)
{
    struct sm_verdict verdict;
    uint64_t position;
    bool unknown;
    qf_rc rc = in_state_offer(state, entry, 1, &position, &unknown, err);

    if (rc == QF_OK)
        rc = in_state_wait(state, position, WAIT_MS, &verdict, err);
    if (rc != QF_OK)
        return rc;
    return verdict.err.rc == QF_OK ? QF_OK : qf_err_set(err, verdict.err.rc, "%s", verdict.err.msg);
}

qf_rc in_state_define(struct in_state *state, struct qf_str tenant,
                      const struct sm_definition *definition, uint64_t expected, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct sm_definition said = *definition;

    said.version = said.created = 0; /* the log's */
    sm_definition_print(&text, &said);
    return in_state_decide(state,
                           &(struct sm_entry){ .kind = SM_ENTRY_DEFINE,
                                               .tenant = tenant,
                                               .expected = expected,
                                               .bytes = qf_strbuf_view(&text) },
                           err);
}

qf_rc in_state_drop(struct in_state *state, struct qf_str tenant, struct qf_str name,
                    uint64_t expected, struct qf_err *err)
{
    struct sm_store *store;
    struct sm_definition definition;
    qf_rc rc = in_state_store(state, tenant, &store, err);

    /* What is not there need not be written down. */
    if (rc == QF_OK)
        rc = sm_store_definition(store, name, &definition, err);
    if (rc != QF_OK)
        return rc;
    return in_state_decide(
        state,
        &(struct sm_entry){
            .kind = SM_ENTRY_DROP, .tenant = tenant, .expected = expected, .bytes = name },
        err);
}

qf_rc in_state_store(struct in_state *state, struct qf_str tenant, struct sm_store **ret_store,
                     struct qf_err *err)
{
    struct sm_owner *owner;
    qf_rc rc = in_state_owner(state, &owner, err);

    return rc == QF_OK ? sm_owner_store(owner, tenant, ret_store, err) : rc;
}

/* --- told --- */

static qf_rc print_map(struct sm_store *store, const struct sm_definition *definition,
                       struct qf_strbuf *json, struct qf_err *err)
{
    struct sm_about about = { 0 };
    struct sm_reading reading;
    qf_rc rc = sm_reading_begin(store, qf_str_from(definition->name), &reading, err);

    if (rc == QF_OK) {
        about = sm_about(reading.txn);
        sm_reading_end(store, &reading);
    } else if (rc == QF_ENOTFOUND && err) { /* it has no rows yet */
        *err = (struct qf_err){ 0 };
    } else {
        return rc;
    }
    sm_definition_print(json, definition);
    json->len--; /* some members more */
    qf_strbuf_printf(json, ",\"rows\":%" PRIu64 ",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
                     about.version, about.rows, about.bytes_used);
    return QF_OK;
}

static qf_rc print_all(struct in_state *state, struct sm_store *store, struct qf_strbuf *json,
                       struct qf_err *err)
{
    sm_definitions all = { 0 };
    qf_rc rc = store ? sm_store_definitions(store, &all, err) : QF_OK;

    qf_strbuf_printf(json, "{\"position\":%" PRIu64 ",\"as_of\":%" PRId64 ",\"maps\":[",
                     in_state_figures(state).applied, in_state_as_of(state));
    for (size_t i = 0; i < all.count && rc == QF_OK; i++) {
        if (i)
            qf_strbuf_putc(json, ',');
        rc = print_map(store, &all.items[i], json, err);
    }
    qf_strbuf_puts(json, "]}");
    QF_VEC_DONE(&all);
    return rc;
}

qf_rc in_state_maps(struct in_state *state, struct qf_str tenant, struct qf_str name,
                    struct qf_strbuf *json, struct qf_err *err)
{
    struct sm_definition definition;
    struct sm_store *store = NULL;
    qf_rc rc = in_state_store(state, tenant, &store, err);

    if (!name.len && (rc == QF_OK || rc == QF_ENOTFOUND))
        return print_all(state, store, json, err);
    if (rc == QF_OK)
        rc = sm_store_definition(store, name, &definition, err);
    return rc == QF_OK ? print_map(store, &definition, json, err) : rc;
}
