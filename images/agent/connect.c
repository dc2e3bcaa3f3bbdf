/*
 * The way to a switchboard: the first place where one listens, or where one can be started.
 *
 * A socket gets its name when it listens already. So one that refuses connections has lost its switchboard, and
 * who holds the lock may put another in its place.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>           /* renameat, and nothing else of it */
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
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

/* By the folder's descriptor: a path may be longer than a socket's address. */
static void set_address(struct sockaddr_un *address, const char *name)
{
    static struct text path;
    text_begin(&path, "/proc/self/fd/");
    text_add_number(&path, (u64)place.fd);
    text_add(&path, name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path.bytes, path.length + 1);
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

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* NOWHERE and errno: ENOENT or ECONNREFUSED where no switchboard listens. */
static enum reached connect_here(int *fd)
{
    struct sockaddr_un address;
    set_address(&address, "/socket");
    *fd = new_socket();
    if (*fd < 0)
        return NOWHERE;
    if (connect(*fd, (struct sockaddr *)&address, sizeof address) == 0 && peer_is_ours(*fd))
        return REACHED;
    int error = errno;
    close(*fd);
    errno = error;
    /* Its backlog is full. */
    return error == EAGAIN || error == EINTR ? LATER : NOWHERE;
}

static bool is_vacant(void)
{
    return errno == ENOENT || errno == ECONNREFUSED;
}

static int listen_here(void)
{
    struct sockaddr_un address;
    set_address(&address, "/new");
    unlinkat(place.fd, "new", 0);
    int fd = new_socket();
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0
        && renameat(place.fd, "new", place.fd, "socket") == 0)
        return fd;
    int error = errno;
    close(fd);
    unlinkat(place.fd, "new", 0);
    errno = error;
    return -1;
}

/* Under the lock. */
static enum reached start_here(int *fd)
{
    enum reached reached = connect_here(fd);
    if (reached != NOWHERE || !is_vacant())
        return reached;
    int listener = listen_here();
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
        if (reached == NOWHERE && is_vacant())
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
    if (reached == NOWHERE && is_vacant())
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
