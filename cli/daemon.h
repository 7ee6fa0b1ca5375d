/* daemon.h - what the commands that run until a signal ends them share: their beginning. */
#ifndef CLI_DAEMON_H
#define CLI_DAEMON_H

#include <stdbool.h>

#include "cli/flags.h"

/* Print "error: " and @what as one line; false, so that checks can return it. */
bool cli_bad(const char *what);

/* Where --log-level and --log-format go, and their rows for a table of flags. */
struct cli_log {
    const char *level, *format;
};
#define CLI_LOG_FLAGS(log)                                                                         \
    { "log-level", CLI_FLAG_STR, &(log).level, "LEVEL", "info", "debug, info, warn or error" },    \
    {                                                                                              \
        "log-format", CLI_FLAG_STR, &(log).format, "FORMAT", "logfmt", "logfmt or json"            \
    }

/* Set up the log of command @name; false after cli_bad(). */
bool cli_set_up_log(const struct cli_log *log, const char *name);

/* False, with the first of them named, if there are arguments that are no flags. */
bool cli_no_arguments(int positional, char **argv);

struct cli_daemon {
    const char *name; /* of the command; also in every line of its log */
    const struct cli_spec *spec;
    const struct cli_log *log;
    bool (*check)(void);       /* the rest of the flags; false after cli_bad() */
    int (*run)(int signal_fd); /* until a signal; the exit code */
};

/* Read flags, set up log and signals, run. The exit code: 2 if the command line is wrong. */
int cli_daemon_main(const struct cli_daemon *daemon, int argc, char **argv);

#endif
