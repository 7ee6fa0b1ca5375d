/* signals.h - SIGTERM, SIGINT and SIGHUP as something a poll loop can see. */
#ifndef BASE_SYS_SIGNALS_H
#define BASE_SYS_SIGNALS_H

/* Call once in main() before any thread starts: blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD, ignores
 * SIGPIPE. Returns a file descriptor that becomes readable when one of them arrives, -1 on failure.
 */
int qf_signals_setup(void);
/* The next signal number that arrived at @fd, 0 if there is none now. Never blocks. */
int qf_signals_next(int fd);
/* In a child between fork and exec: give the child an ordinary signal mask again. */
void qf_signals_restore(void);

#endif
