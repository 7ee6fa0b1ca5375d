/* names.c - the words for every enum of the coordination, from the tables that declare them. */
#include "workcoord/api.h"
#include "workcoord/lane.h"
#include "workcoord/lane_worker.h"
#include "workcoord/life.h"
#include "workcoord/types.h"
#include "workcoord/worker.h"

#define NAME_ENTRY(code, name) name,

#define NAME_FUNCTION(function, enum_type, table)                                                  \
    const char *function(enum enum_type value)                                                     \
    {                                                                                              \
        static const char *const names[] = { table(NAME_ENTRY) };                                  \
                                                                                                   \
        return (size_t)value < QF_COUNT_OF(names) ? names[value] : "?";                            \
    }

NAME_FUNCTION(wc_reject_name, wc_reject, WC_REJECTS)
NAME_FUNCTION(wc_fetch_error_name, wc_fetch_error, WC_FETCH_ERRORS)
NAME_FUNCTION(wc_item_state_name, wc_item_state, WC_ITEM_STATES)
NAME_FUNCTION(wc_hedge_state_name, wc_hedge_state, WC_HEDGE_STATES)
NAME_FUNCTION(wc_peer_state_name, wc_peer_state, WC_PEER_STATES)
NAME_FUNCTION(wc_run_state_name, wc_run_state, WC_RUN_STATES)
NAME_FUNCTION(wc_api_event_name, wc_api_event_type, WC_API_EVENTS)
NAME_FUNCTION(wc_api_effect_name, wc_api_effect_type, WC_API_EFFECTS)
NAME_FUNCTION(wc_worker_event_name, wc_worker_event_type, WC_WORKER_EVENTS)
NAME_FUNCTION(wc_worker_effect_name, wc_worker_effect_type, WC_WORKER_EFFECTS)
NAME_FUNCTION(wc_query_state_name, wc_query_state, WC_QUERY_STATES)
NAME_FUNCTION(wc_life_event_name, wc_life_event_type, WC_LIFE_EVENTS)
NAME_FUNCTION(wc_life_effect_name, wc_life_effect_type, WC_LIFE_EFFECTS)
NAME_FUNCTION(wc_life_cause_name, wc_life_cause, WC_LIFE_CAUSES)
NAME_FUNCTION(wc_lane_event_name, wc_lane_event_type, WC_LANE_EVENTS)
NAME_FUNCTION(wc_lane_effect_name, wc_lane_effect_type, WC_LANE_EFFECTS)
NAME_FUNCTION(wc_lane_worker_event_name, wc_lane_worker_event_type, WC_LANE_WORKER_EVENTS)
NAME_FUNCTION(wc_lane_worker_effect_name, wc_lane_worker_effect_type, WC_LANE_WORKER_EFFECTS)
