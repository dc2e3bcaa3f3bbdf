/* Owns: what one pass of the loop waits for. */
#include "common.h"

#include <time.h>

/* The keeper's: the connection, the listener, three pipes and execve's; the callers; the fence. */
enum { WATCHED_LIMIT = 96 };

static struct pollfd watched[WATCHED_LIMIT];
static nfds_t count;

void watch_clear(void)
{
    count = 0;
}

/* Returns a ticket for seen(). Without events, errors and the end of the peer are reported all the same. */
int watch(int fd, short events)
{
    if (fd < 0 || count == WATCHED_LIMIT)
        return -1;
    watched[count] = (struct pollfd){.fd = fd, .events = events};
    return (int)count++;
}

short seen(int ticket)
{
    return ticket < 0 ? 0 : watched[ticket].revents;
}

void watch_wait(i64 now, i64 until, const sigset_t *mask)
{
    i64 left = until > now ? until - now : 0;
    struct timespec limit = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    /* A signal must not hide what is ready. */
    if (ppoll(watched, count, until == NEVER ? NULL : &limit, mask) < 0 && poll(watched, count, 0) < 0)
        for (nfds_t number = 0; number < count; number++)
            watched[number].revents = 0;
}

/* For one descriptor, where there is no loop. False: it is too late. */
bool wait_for(int fd, short events, i64 until)
{
    struct pollfd one = {.fd = fd, .events = events};
    i64 left = until - clock_now();
    return left > 0 && poll(&one, 1, (int)left) > 0;
}

i64 clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (i64)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

i64 sooner(i64 one, i64 other)
{
    return one < other ? one : other;
}
