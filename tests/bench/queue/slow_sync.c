/* slow_sync.c - LD_PRELOAD: every fdatasync takes as long as on a real disk.
 *
 * SLOW_SYNC_US microseconds are slept before each fdatasync and fsync; on a tmpfs that is all they cost.
 * SLOW_SYNC_ONLY: of files alone that have this in their path.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool is_slow(int fd)
{
    const char *only = getenv("SLOW_SYNC_ONLY");
    char link[64], path[4096];
    ssize_t len;

    if (!only)
        return true;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof(path) - 1);
    path[len < 0 ? 0 : len] = 0;
    return strstr(path, only) != NULL;
}

static void wait_for_disk(int fd)
{
    const char *text = getenv("SLOW_SYNC_US");
    long us = text ? strtol(text, NULL, 10) : 0;
    struct timespec time = { us / 1000000, us % 1000000 * 1000 };

    if (is_slow(fd))
        (void)nanosleep(&time, NULL);
}

int fdatasync(int fd)
{
    int (*real)(int) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    wait_for_disk(fd);
    return real(fd);
}

int fsync(int fd)
{
    int (*real)(int) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    wait_for_disk(fd);
    return real(fd);
}
