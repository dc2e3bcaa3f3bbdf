/*
 * The way to a switchboard: the first place where one listens, or where one can be started.
 *
 * A socket that refuses connections has lost its switchboard: the agent that holds the lock puts another in its place.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

/* Another agent holds the lock of a place, or keeps its queue full, for longer than it takes to start a switchboard. */
enum { PLACE_PATIENCE = WELCOME_PATIENCE / 3 };

static struct place place;
static struct text log_path;

/* Of the switchboard that was last connected to, or started. Empty: there was none. */
const char *last_log(void)
{
    return log_path.bytes;
}

static void note_errno(const char *name)
{
    static struct text path, what;
    text_begin(&path, place.path);
    text_add(&path, name);
    text_begin(&what, ": ");
    text_add(&what, strerror(errno));
    problem_note(1, path.bytes, what.bytes);
}

static void note_refusal(void)
{
    if (errno == EPERM)
        problem_note(2, place.path, " has a socket of another user or container");
    else
        note_errno("/socket");
}

/* NOWHERE and errno: ENOENT or ECONNREFUSED where there is no listener. */
static enum reached connect_here(int *fd)
{
    *fd = socket_connect(place.fd);
    if (*fd >= 0)
        return REACHED;
    return errno == EAGAIN || errno == EINTR ? LATER : NOWHERE;
}

static bool has_no_listener(void)
{
    return errno == ENOENT || errno == ECONNREFUSED;
}

/* Under the lock. */
static enum reached start_here(int *fd)
{
    enum reached reached = connect_here(fd);
    if (reached != NOWHERE || !has_no_listener())
        return reached;
    int listener = socket_listen(place.fd, BACKLOG);
    if (listener < 0) {
        note_errno("/socket");
        return NOWHERE;
    }
    if (board_start(&place, listener)) {
        /* While we listen, too: one that has ended by now must count as one that was tried. */
        reached = connect_here(fd);
        int error = errno;
        close(listener);
        errno = error;
        return reached;
    }
    note_errno("");
    close(listener);
    unlinkat(place.fd, "socket", 0);
    return NOWHERE;
}

/* An agent that doesn't get the lock comes again: the one that has it is about to listen. */
static enum reached start_locked(int *fd)
{
    int lock = openat(place.fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) {
        note_errno("/lock");
        return NOWHERE;
    }
    enum reached reached = LATER;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
        reached = start_here(fd);
        if (reached == NOWHERE && has_no_listener())
            reached = LATER;
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
        note_errno("/lock");
        reached = NOWHERE;
    }
    close(lock);
    return reached;
}

static enum reached try_here(int *fd)
{
    enum reached reached = connect_here(fd);
    if (reached == NOWHERE && has_no_listener())
        reached = start_locked(fd);
    else if (reached == NOWHERE)
        note_refusal();
    return reached;
}

/* To the switchboard of a place. If none listens there, none is started. */
bool connect_if_there(int number, int *fd)
{
    if (!place_open(number, false, &place))
        return false;
    enum reached reached = connect_here(fd);
    if (reached == LATER || (reached == NOWHERE && !has_no_listener()))
        note_refusal();
    close(place.fd);
    return reached == REACHED;
}

static void note_log(void)
{
    text_begin(&log_path, place.path);
    text_add(&log_path, "/log");
}

/* One of this agent's own, over a socket without a name, which no other process can reach. */
enum reached connect_privately(int *fd)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        problem_note(4, "it has no socket: ", strerror(errno));
        return NOWHERE;
    }
    bool is_started = board_start(NULL, pair[1]);
    if (!is_started)
        problem_note(4, "it has no process: ", strerror(errno));
    close(pair[1]);
    *fd = pair[0];
    if (!is_started)
        close(*fd);
    return is_started ? REACHED : NOWHERE;
}

/* While a place is busy, one that follows is used if a switchboard listens there already. */
enum reached connect_somewhere(int *fd, i64 now)
{
    static i64 busy_since[PLACES];
    enum reached all = NOWHERE;
    bool starts = true;
    for (int number = 0; number < PLACES; number++) {
        if (!place_open(number, starts, &place))
            continue;
        enum reached reached = starts ? try_here(fd) : connect_here(fd);
        close(place.fd);
        if (reached == REACHED || (reached == LATER && all == NOWHERE))
            note_log();
        if (reached == REACHED) {
            memset(busy_since, 0, sizeof busy_since);
            return REACHED;
        }
        if (reached == NOWHERE) {
            busy_since[number] = 0;
            continue;
        }
        all = LATER;
        if (!busy_since[number])
            busy_since[number] = now;
        starts = starts && now - busy_since[number] >= PLACE_PATIENCE;
    }
    return all;
}
