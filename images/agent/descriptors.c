/*
 * The agent's stdin, stdout and stderr, opened anew where they are shared.
 *
 * They belong to others too (mpirun's output is ours), so they can't be made non-blocking. But a pipe or a
 * terminal can be opened a second time through /proc, and that one is ours alone; a socket is asked not to wait in
 * each call. For whatever is left there is a thread.
 */
#include "agent.h"

#include <pthread.h>
#include <sys/eventfd.h>

enum { STACK = 16 << 10, LOOK_AGAIN = 20 };

enum way way_to_use(int given, int flags, int *fd)
{
    struct stat status;
    *fd = given;
    if (fstat(given, &status) < 0)
        return ASIDE;
    if (S_ISSOCK(status.st_mode))
        return BY_MESSAGE;
    if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode))
        return ASIDE;
    char path[] = "/proc/self/fd/0";
    path[sizeof path - 2] = (char)('0' + given);
    int own = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0)
        return ASIDE;
    *fd = own;
    return OWN;
}

static void call(struct aside *aside)
{
    aside->result = aside->writes ? write(aside->fd, aside->piece.iov_base, aside->piece.iov_len)
                                  : read(aside->fd, aside->piece.iov_base, aside->piece.iov_len);
    aside->error = errno;
}

/*
 * Reads and writes that may take long whatever poll says are made by a thread: a file whose server is away, a pipe
 * that can't be opened anew and that others fill. One call at a time. The thread ends with the process, whatever it
 * waits for. The eventfds order what both sides see of the call. If another process has made the descriptor
 * non-blocking, the thread waits until it can be used.
 */
static void see_through(struct aside *aside)
{
    for (;;) {
        call(aside);
        if (aside->result >= 0 || !is_passing(aside->error))
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

/* Where there is no thread: a call that need not wait, or none for now, so that the agent hears what else comes. */
static void call_here(struct aside *aside)
{
    struct pollfd ready = {.fd = aside->fd, .events = aside->writes ? POLLOUT : POLLIN};
    /* A pipe that can be written takes so much at once. */
    if (aside->piece.iov_len > PAGE)
        aside->piece.iov_len = PAGE;
    aside->result = -1;
    aside->error = EAGAIN;
    if (poll(&ready, 1, LOOK_AGAIN) > 0)
        call(aside);
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
        call_here(aside);
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
