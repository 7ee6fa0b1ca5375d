/* look.c - how answers look. */
#include "cli/look.h"

#include <langinfo.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/pure/number.h"

#define COLUMNS_STANDARD 80
#define SERIES_IN_TERMINAL 200

static int columns_of(bool terminal)
{
    const char *wish = getenv("COLUMNS");
    struct winsize size = { 0 };
    int64_t columns = COLUMNS_STANDARD;

    if (wish && qf_parse_i64(qf_str_from(wish), &columns) && columns > 0)
        ;
    else if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    else
        columns = COLUMNS_STANDARD;
    columns = QF_MIN(columns, (int64_t)CLI_COLUMNS_MAX);
    return (int)QF_MAX(columns, (int64_t)CLI_COLUMNS_MIN);
}

struct cli_look cli_look_of_stdout(void)
{
    bool terminal = isatty(STDOUT_FILENO);

    return (struct cli_look){ .columns = columns_of(terminal),
                              .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
                              .series_max = terminal ? SERIES_IN_TERMINAL : SIZE_MAX };
}

const char *cli_number(double value, char out[CLI_NUMBER_MAX])
{
    static const char *const units[] = { "", "k", "M", "G", "T", "P" };
    double size = fabs(value), scaled = value;
    size_t power = 0;

    if (!isfinite(value)) {
        (void)snprintf(out, CLI_NUMBER_MAX, "%s",
                       isnan(value) ? "NaN"
                       : value > 0  ? "+Inf"
                                    : "-Inf");
        return out;
    }
    /* What rounds up to five digits gets a unit, what rounds up to 1,000 the next one. */
    if (size >= 9999.5 && size < 999.95e15)
        for (; power == 0 || fabs(scaled) >= 999.95; power++)
            scaled /= 1000;
    (void)snprintf(out, CLI_NUMBER_MAX, "%.4g%s", scaled, units[power]);
    return out;
}
