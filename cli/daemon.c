/* daemon.c - the beginning of a daemon: flags, log, signals. */
#include "cli/daemon.h"

#include <stdio.h>
#include <string.h>

#include "base/sys/log.h"
#include "base/sys/memory.h"
#include "base/sys/signals.h"

bool cli_bad(const char *what)
{
    fprintf(stderr, "error: %s\n", what);
    return false;
}

bool cli_set_up_log(const struct cli_log *log, const char *name)
{
    enum qf_log_level level;
    bool json = strcmp(log->format, "json") == 0;

    if (!qf_log_parse_level(log->level, &level))
        return cli_bad("--log-level: expected debug, info, warn or error");
    if (!json && strcmp(log->format, "logfmt") != 0)
        return cli_bad("--log-format: expected logfmt or json");
    qf_log_setup(level, json ? QF_LOG_JSON : QF_LOG_LOGFMT, name);
    return true;
}

bool cli_no_arguments(int positional, char **argv)
{
    if (positional)
        fprintf(stderr, "error: unexpected argument %s; try --help\n", argv[1]);
    return !positional;
}

static int start(const struct cli_daemon *daemon, int positional, char **argv)
{
    int signal_fd;

    if (!cli_no_arguments(positional, argv) || !daemon->check() ||
        !cli_set_up_log(daemon->log, daemon->name))
        return 2;
    qf_memory_setup();
    signal_fd = qf_signals_setup();
    if (signal_fd < 0) {
        (void)cli_bad("cannot set up signals");
        return 1;
    }
    return daemon->run(signal_fd);
}

int cli_daemon_main(const struct cli_daemon *daemon, int argc, char **argv)
{
    int positional, code;
    enum cli_parsed parsed = cli_flags_parse(daemon->spec, argc, argv, &positional);

    if (parsed == CLI_PARSED_HELP)
        return 0;
    code = parsed == CLI_PARSED_OK ? start(daemon, positional, argv) : 2;
    cli_flags_done(daemon->spec);
    return code;
}
