/* constant.c - scalars of the query itself: pi(), start(), end(), step(), range(). */
#include <math.h>

#include "promql/func/kernels.h"
#include "promql/plan.h"

double pq_fn_constant_pi(const struct pq_query_params *params)
{
    (void)params;
    return M_PI;
}

double pq_fn_constant_start(const struct pq_query_params *params)
{
    return (double)params->start_ms / 1000;
}

double pq_fn_constant_end(const struct pq_query_params *params)
{
    return (double)params->end_ms / 1000;
}

double pq_fn_constant_step(const struct pq_query_params *params)
{
    return (double)params->step_ms / 1000;
}

double pq_fn_constant_range(const struct pq_query_params *params)
{
    return (double)(params->end_ms - params->start_ms) / 1000;
}
