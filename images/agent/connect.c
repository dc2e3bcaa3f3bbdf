/*
 * The way to a switchboard: the first place where one listens, or where one can be started.
 *
 * A socket that refuses connections has lost its switchboard: the agent that holds the lock puts another in its place.
 */
#include "agent.h"

#include <sys/file.h>
#include <sys/mman.h>

/* Another agent holds the lock of a place, or keeps its queue full, for longer than it takes to start a switchboard. */
enum { PLACE_PATIENCE = WELCOME_PATIENCE / 3 };

enum { NS_PER_MS = 1000000 };

static struct place place;
static struct text log_path;

/* Of the switchboard that was last connected to, or started. Empty: there was none. */
const char *last_log(void)
{
    return log_path.bytes;
}

static void note_errno(const char *name)
{
    problem_note(1, place.path.bytes, name, ": ", strerror(errno));
}

static void note_refusal(void)
{
    if (errno == EPERM)
        problem_note(2, place.path.bytes, " has a socket of another user or container");
    else
        note_errno("/socket");
}

/*
 * Starting a switchboard: a process without a parent, that has nothing of the agent but a socket.
 *
 * One with a place runs for all agents of this container, longer than the one that came first, and its socket
 * listens. A private one has a connection to its agent, and the agent's stderr.
 */
enum {
    SOCKET = 3, FIRST_OTHER,
    /* A pipe in its place is not waited for. */
    LOG_FLAGS = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
};

/* A number beyond those four. */
static int above(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OTHER);
}

static void set_descriptors(const struct place *place, int socket)
{
    socket = above(socket);
    int null = above(open("/dev/null", O_RDWR | O_CLOEXEC));
    int log = place ? above(openat(place->fd, "log", LOG_FLAGS, 0600)) : above(STDERR_FILENO);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    /* A full file system may have room for a socket and none for a log. */
    dup2(log >= 0 ? log : null, STDERR_FILENO);
    dup2(socket, SOCKET);
    close_descriptors(FIRST_OTHER);
}

static _Noreturn void become_board(const struct place *place, int socket)
{
    /* Not as the first agent was started. */
    signals_default();
    set_descriptors(place, socket);
    /* To a process that connects from now on, this one is the listener, and no longer the agent, which may end. */
    if (place)
        listen(SOCKET, BACKLOG);
    umask(0077);
    if (chdir("/") < 0)
        _exit(FAILED);
    launch_switchboard(place ? place->path.bytes : "off");
}

/* The last one that was started, as its parent tells; not known where there is no memory for that. */
static pid_t *started(void)
{
    static pid_t *shared = NULL;
    if (!shared)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}

/* False and errno: there can be no process. One without a place is private; at a place, agents wait until it runs. */
static bool board_start(const struct place *place, int socket)
{
    pid_t *told = started();
    pid_t child = fork();
    if (child == 0) {
        setsid();
        pid_t board = fork();
        if (board == 0)
            become_board(place, socket);
        if (told)
            *told = board;
        _exit(board < 0 ? errno & 255 : 0);
    }
    if (child < 0)
        return false;
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
    return status == 0;
}

/* NOWHERE and errno: ENOENT or ECONNREFUSED where there is no listener. */
static enum reached connect_here(int *fd)
{
    *fd = socket_connect(place.fd);
    if (*fd >= 0)
        return REACHED;
    return is_passing(errno) ? LATER : NOWHERE;
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
        close_failed(listener);
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
    text_begin(&log_path, place.path.bytes, "/log");
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

/* For how long the switchboard of a connection has run, or waited for a processor; 0 if that can't be known. */
i64 board_busy(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    char times[128], *at = times;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return 0;
    /* Of a private one the agent has made both ends. */
    pid_t board = peer.pid != getpid() ? peer.pid : started() ? *started() : 0;
    if (board <= 0 || process_file(board, "/schedstat", times, sizeof times) <= 0)
        return 0;
    u64 ran = strtoull(at, &at, 10), waited = strtoull(at, &at, 10);
    return (i64)((ran + waited) / NS_PER_MS);
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
