/* date.c - parts of a date in UTC; the argument is in seconds since the epoch, its fraction cut.
 *
 * Days of the week count from 0, a Sunday; days of the month and of the year, and months, from 1.
 */
#include <math.h>

#include "base/pure/duration.h"
#include "promql/func/kernels.h"

static struct qf_civil civil(double seconds)
{
    /* What does not fit becomes -2^63 when Go converts it on amd64; its calendar takes that for the
     * second after the last one there is. */
    if (!(seconds > -0x1p63 && seconds < 0x1p63))
        return qf_civil_from_seconds(INT64_MAX);
    return qf_civil_from_seconds((int64_t)seconds);
}

double pq_fn_minute(double seconds)
{
    return civil(seconds).minute;
}

double pq_fn_hour(double seconds)
{
    return civil(seconds).hour;
}

double pq_fn_day_of_week(double seconds)
{
    return civil(seconds).weekday;
}

double pq_fn_day_of_month(double seconds)
{
    return civil(seconds).day;
}

double pq_fn_day_of_year(double seconds)
{
    return civil(seconds).yearday;
}

double pq_fn_days_in_month(double seconds)
{
    struct qf_civil date = civil(seconds);

    return qf_civil_days_in_month(date.year, date.month);
}

double pq_fn_month(double seconds)
{
    return civil(seconds).month;
}

double pq_fn_year(double seconds)
{
    return (double)civil(seconds).year;
}
