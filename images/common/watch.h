/* The clock, and the one place where a program waits. */
#ifndef WATCH_H
#define WATCH_H

#include "types.h"

#include <signal.h>

void watch_clear(void);
int watch(int fd, short events);
short seen(int ticket);
void watch_wait(i64 now, i64 until, const sigset_t *mask);
i64 clock_now(void);
i64 sooner(i64 one, i64 other);

#endif
