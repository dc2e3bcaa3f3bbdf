/*
 * Reads and writes that may take long whatever poll says, made by a thread: a file whose server is away, a pipe
 * that can't be opened anew and that others fill.
 *
 * One call at a time. The thread ends with the process, whatever it waits for. The eventfds order what both sides
 * see of the call.
 */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STACK = 16 << 10 };

/* If another process has made the descriptor non-blocking, the thread waits until it can be used. */
static void see_through(struct aside *aside)
{
    for (;;) {
        aside->result = aside->writes ? write(aside->fd, aside->piece.iov_base, aside->piece.iov_len)
                                      : read(aside->fd, aside->piece.iov_base, aside->piece.iov_len);
        aside->error = errno;
        if (aside->result >= 0 || (aside->error != EAGAIN && aside->error != EINTR))
            return;
        struct pollfd ready = {.fd = aside->fd, .events = aside->writes ? POLLOUT : POLLIN};
        poll(&ready, 1, -1);
    }
}

static void *serve(void *argument)
{
    struct aside *aside = argument;
    eventfd_t count;
    while (eventfd_read(aside->go, &count) == 0) {
        see_through(aside);
        eventfd_write(aside->ended, 1);
    }
    return NULL;
}

/* The thread has all signals blocked, as the agent has outside of its wait. */
static bool make(struct aside *aside)
{
    aside->go = eventfd(0, EFD_CLOEXEC);
    aside->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (aside->go >= 0 && aside->ended >= 0 && pthread_create(&thread, &attributes, serve, aside) == 0)
        return aside->exists = true;
    if (aside->go >= 0)
        close(aside->go);
    if (aside->ended >= 0)
        close(aside->ended);
    return false;
}

/* `ended` is readable at the call's end. Where no thread can be had, the call is made here. */
void aside_begin(struct aside *aside, int fd, bool writes, struct iovec piece)
{
    bool has_thread = aside->exists || make(aside);
    aside->fd = fd;
    aside->writes = writes;
    aside->piece = piece;
    aside->is_busy = true;
    aside->is_done = !has_thread;
    if (has_thread)
        eventfd_write(aside->go, 1);
    else
        see_through(aside);
}

/* Whether the call has ended; its result may then be used, and another one begin. */
bool aside_is_over(struct aside *aside)
{
    eventfd_t count;
    if (!aside->is_busy || (!aside->is_done && eventfd_read(aside->ended, &count) < 0))
        return false;
    aside->is_busy = false;
    return true;
}
