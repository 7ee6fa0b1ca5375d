/* date.h - parts of a date in UTC; the argument is in seconds since the epoch, its fraction cut. */
#ifndef PROMQL_FUNC_DATE_H
#define PROMQL_FUNC_DATE_H

double pq_fn_minute(double seconds);
double pq_fn_hour(double seconds);
double pq_fn_day_of_week(double seconds);  /* 0 is Sunday */
double pq_fn_day_of_month(double seconds); /* from 1 */
double pq_fn_day_of_year(double seconds);  /* from 1 */
double pq_fn_days_in_month(double seconds);
double pq_fn_month(double seconds); /* from 1 */
double pq_fn_year(double seconds);

#endif
