/* worker_queue.c - whose turn it is: round robin over sessions, then over the session's queries.
 *
 * A big query cannot hold up a small one, and an API with many queries cannot hold up another API.
 */
#include "worker_int.h"

static uint32_t find_turn(const struct wc_worker *wc, uint32_t session, struct wc_query_id query)
{
    uint32_t slot = wc_index_first(&wc->turn_index, WC_KEY(query.v, session));

    while (slot != WC_NONE && wc->turns[slot].session != session)
        slot = wc_index_next(&wc->turn_index, slot);
    return slot;
}

static uint32_t new_turn(struct wc_worker *wc, uint32_t session, struct wc_query_id query)
{
    uint32_t slot = wc_pool_take(&wc->turn_pool);

    wc->turns[slot] = (struct wc_turn){ .query = query, .session = session };
    wc_list_init(&wc->turns[slot].runs);
    wc_index_put(&wc->turn_index, WC_KEY(query.v, session), slot);
    if (!wc->sessions[session].turns.count)
        wc_list_push(&wc->turn_sessions, wc->session_turn_links, session);
    wc_list_push(&wc->sessions[session].turns, wc->turn_links, slot);
    return slot;
}

void wc_queue_add(struct wc_worker *wc, uint32_t run)
{
    uint32_t session = wc->runs[run].session;
    uint32_t turn = find_turn(wc, session, wc->runs[run].query);

    if (turn == WC_NONE)
        turn = new_turn(wc, session, wc->runs[run].query);
    wc->runs[run].turn = turn;
    wc_list_push(&wc->turns[turn].runs, wc->run_place_links, run);
}

void wc_queue_remove(struct wc_worker *wc, uint32_t run)
{
    uint32_t slot = wc->runs[run].turn;
    struct wc_turn *turn = &wc->turns[slot];

    wc_list_remove(&turn->runs, wc->run_place_links, run);
    if (turn->runs.count)
        return;
    wc_list_remove(&wc->sessions[turn->session].turns, wc->turn_links, slot);
    if (!wc->sessions[turn->session].turns.count)
        wc_list_remove(&wc->turn_sessions, wc->session_turn_links, turn->session);
    wc_index_remove(&wc->turn_index, slot);
    wc_pool_give(&wc->turn_pool, slot);
}

uint32_t wc_queue_next(const struct wc_worker *wc)
{
    uint32_t session = wc->turn_sessions.head;

    if (session == WC_NONE)
        return WC_NONE;
    return wc->turns[wc->sessions[session].turns.head].runs.head;
}

void wc_queue_rotate(struct wc_worker *wc)
{
    uint32_t session = wc->turn_sessions.head;
    struct wc_list *turns = &wc->sessions[session].turns;
    uint32_t turn = turns->head;

    wc_list_remove(turns, wc->turn_links, turn);
    wc_list_push(turns, wc->turn_links, turn);
    wc_list_remove(&wc->turn_sessions, wc->session_turn_links, session);
    wc_list_push(&wc->turn_sessions, wc->session_turn_links, session);
}
