#include <string.h>

#include "base/pure/macros.h"
#include "queue/core/core.h"
#include "tests/sim_queue/rules.h"

static const struct {
    const char *name;
    uint64_t core, log, sim;
} rules[] = {
    { "first-entry", QC_UNSAFE_NO_NOOP, 0, 0 },
    { "sole-voter-term", QC_UNSAFE_SAME_TERM, 0, 0 },
    { "vote-before-messages", QC_UNSAFE_VOTE_LATE, 0, 0 },
    { "stored-is-synced", 0, 0, SIM_UNSAFE_EARLY_PERSISTED },
    { "completion-stands", QC_UNSAFE_ANY_COMPLETION, 0, 0 },
    { "change-first-of-batch", QC_UNSAFE_CHANGE_ANYWHERE, 0, 0 },
    { "change-after-own-commit", QC_UNSAFE_EARLY_CHANGE, 0, 0 },
    { "caught-up-before-vote", QC_UNSAFE_NEW_VOTER, 0, 0 },
    { "fetch-before-install", QC_UNSAFE_INSTALL_FIRST, 0, 0 },
    { "last-voter-leads", QC_UNSAFE_LAST_VOTER, 0, 0 },
    { "sole-follower-restarts", QC_UNSAFE_SOLE_TIMEOUT, 0, 0 },
    { "apply-what-is-stored", QC_UNSAFE_APPLY_EARLY, 0, 0 },
    { "round-not-sent", QC_UNSAFE_JOIN_SENT_ROUND, 0, 0 },
    { "answer-of-this-term", QC_UNSAFE_ANY_ANSWER, 0, 0 },
    { "change-settles-the-one-before", QC_UNSAFE_CHANGE_PILE, 0, 0 },
    { "guests-vote", QC_UNSAFE_NO_GUEST_VOTE, 0, 0 },
    { "trial-hears-term", QC_UNSAFE_TRIAL_TERM, 0, 0 },
    { "demoted-hears-last", QC_UNSAFE_DEMOTED_FIRST, 0, 0 },
    { "incarnation", 0, 0, SIM_UNSAFE_SAME_INCARNATION },
    { "snapshot-with-records", 0, 0, SIM_UNSAFE_BARE_SNAPSHOT },
    { "hidden-until-replaced", 0, 0, SIM_UNSAFE_SHOW_REPLACED },
    { "chained", 0, 0, SIM_UNSAFE_UNCHAINED },
    { "round-of-one-term", 0, 0, SIM_UNSAFE_ROUND_OUTLIVES_TERM },
    { "damage-below-mark-stops", 0, QL_UNSAFE_CUT_ANYWHERE, 0 },
    { "failed-sync-ends", 0, QL_UNSAFE_SYNC_AGAIN, 0 },
    { "folder-synced", 0, QL_UNSAFE_NO_FILE_SYNC, 0 },
    { "recovered-is-rewritten", 0, QL_UNSAFE_NO_REWRITE, 0 },
};

bool sim_rule_off(const char *name, struct sim_options *options)
{
    for (size_t i = 0; i < QF_COUNT_OF(rules); i++) {
        if (strcmp(rules[i].name, name) != 0)
            continue;
        options->core_unsafe |= rules[i].core;
        options->log_unsafe |= rules[i].log;
        options->sim_unsafe |= rules[i].sim;
        return true;
    }
    return false;
}

void sim_rules_print(FILE *out)
{
    for (size_t i = 0; i < QF_COUNT_OF(rules); i++)
        fprintf(out, " %s", rules[i].name);
    fprintf(out, "\n");
}
