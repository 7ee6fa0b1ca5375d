/* blocking.c - what tests/checks/nonblocking must reject; never compiled. */
#include <unistd.h>

void wait_a_moment(void);

void wait_a_moment(void)
{
    (void)usleep(1000);
}
