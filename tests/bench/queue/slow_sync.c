/* slow_sync.c - LD_PRELOAD: every fdatasync takes as long as on a real disk.
 *
 * SLOW_SYNC_US microseconds are slept before each fdatasync and fsync; on a tmpfs that is all they cost.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void)
{
    const char *text = getenv("SLOW_SYNC_US");
    long us = text ? strtol(text, NULL, 10) : 0;
    struct timespec time = { us / 1000000, us % 1000000 * 1000 };

    (void)nanosleep(&time, NULL);
}

int fdatasync(int fd)
{
    int (*real)(int) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    wait_for_disk();
    return real(fd);
}

int fsync(int fd)
{
    int (*real)(int) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    wait_for_disk();
    return real(fd);
}
