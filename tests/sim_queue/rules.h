/* rules.h - the rules that can be taken out of a simulation, by name. */
#ifndef TESTS_SIM_QUEUE_RULES_H
#define TESTS_SIM_QUEUE_RULES_H

#include <stdio.h>

#include "tests/sim_queue/sim.h"

/* Switch rule @name off; false if there is none. */
bool sim_rule_off(const char *name, struct sim_options *options);
void sim_rules_print(FILE *out);

#endif
