/* state_web.h - the words of `promfabric state` towards a cluster: its ingest nodes have the maps. */
#ifndef CLI_STATE_WEB_H
#define CLI_STATE_WEB_H

#include "cli/state.h"
#include "cli/web.h"

/* Like those of state.h, of maps at @web's URL. */
int state_web_define(const struct cli_web *web, const struct sm_definition *definition);
int state_web_drop(const struct cli_web *web, const char *name);
int state_web_maps(const struct cli_web *web);
int state_web_stats(const struct cli_web *web, char **names, int count);
int state_web_get(const struct cli_web *web, const struct state_cli *cli, char **names, int count);
int state_web_rows(const struct cli_web *web, const struct state_cli *cli, const char *name);
/* state_rules.c: list, put RULE (as JSON, or the file that has it) or rm NAME. */
int state_web_rules(const struct cli_web *web, char **names, int count);
/* state_web_load.c: files in pieces that fit into a request, each of which counts whole or not at all. */
int state_web_load(const struct cli_web *web, const struct state_cli *cli, char **names, int count);

#endif
