/* signals.c - signals through a file descriptor. */
#include "base/sys/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

int qf_signals_setup(void)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigset_t set;

    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int qf_signals_next(int fd)
{
    struct signalfd_siginfo info;

    if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    return (int)info.ssi_signo;
}

void qf_signals_restore(void)
{
    struct sigaction standard = { .sa_handler = SIG_DFL };
    sigset_t none;

    (void)sigaction(SIGPIPE, &standard, NULL);
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
}
