/*
 * Owns: the bytes on their way, of which it understands nothing. The exec's streams belong to others too, so they stay
 * blocking: they are read when there is something; stdout, a pipe, is opened a second time to be written. Where it
 * can't be, it is written when there is room: as much as a pipe holds when it is empty, else a page.
 */
#include "keeper.h"

#include <sys/ioctl.h>

enum {
    CARRIED = 65536,
    ATOMIC = 4096,           /* PIPE_BUF: a pipe that polls writable takes so much at once */
    LAST_WRITES = 30000,
    ATTEMPTS = 100,
    BETWEEN_ATTEMPTS = 20,
};

struct lane {
    int from, to;
    size_t begin, end;
    bool is_blocking;        /* to */
    bool is_over;            /* nothing more comes */
    u8 bytes[CARRIED];
};

static bool is_empty(const struct lane *lane)
{
    return lane->begin == lane->end;
}

static void load(struct lane *lane)
{
    ssize_t got = read(lane->from, lane->bytes, sizeof lane->bytes);
    if (got > 0) {
        lane->begin = 0;
        lane->end = (size_t)got;
    } else if (got == 0 || !is_passing(errno)) {
        lane->is_over = true;
    }
}

/* How much fd takes at once, now that it polls writable. */
static size_t room_in(int fd)
{
    int waiting, holds = fcntl(fd, F_GETPIPE_SZ);
    if (holds > ATOMIC && ioctl(fd, FIONREAD, &waiting) == 0 && waiting == 0)
        return (size_t)holds;
    return ATOMIC;
}

/* False: there is no reader any more. */
static bool unload(struct lane *lane)
{
    size_t length = lane->end - lane->begin;
    size_t room = lane->is_blocking ? room_in(lane->to) : length;
    ssize_t put = write(lane->to, lane->bytes + lane->begin, length < room ? length : room);
    if (put > 0)
        lane->begin += (size_t)put;
    return put >= 0 || is_passing(errno);
}

/* False: the exec's side is gone. A keeper that takes nothing any more may still have sent its last words. */
static bool carry_once(struct lane *inward, struct lane *outward, i64 now, i64 until)
{
    bool loads_in = is_empty(inward) && !inward->is_over;
    bool loads_out = is_empty(outward) && !outward->is_over;
    watch_clear();
    int from_exec = watch(loads_in ? inward->from : -1, POLLIN);
    int to_keeper = watch(is_empty(inward) ? -1 : inward->to, POLLOUT);
    int from_keeper = watch(loads_out ? outward->from : -1, POLLIN);
    int to_exec = watch(outward->to, is_empty(outward) ? 0 : POLLOUT);
    watch_wait(now, until, NULL);
    if (seen(from_exec))
        load(inward);
    if (seen(to_keeper) && !unload(inward))
        inward->end = inward->begin;
    if (seen(from_keeper))
        load(outward);
    return seen(to_exec) & POLLOUT ? unload(outward) : !seen(to_exec);
}

/* What a keeper leaves that was killed: its children are ours then, and no other process would end them. */
static void end_what_is_left(void)
{
    for (int attempt = 0; attempt < ATTEMPTS && signal_descendants(0, SIGKILL, attempt == 0) > 0; attempt++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        poll(NULL, 0, BETWEEN_ATTEMPTS);
    }
}

/* The exec's own streams end for this process. */
void leave_streams(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        null = open("/", O_RDONLY | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close(null);
}

/*
 * A keeper without a parent would stay as a zombie in a container whose first process reaps no children. So the
 * bridge lives as long as the keeper, if it has nothing more to carry, too; it lets go of the exec's streams.
 */
static void reap(pid_t keeper)
{
    int status = 0;
    if (keeper < 0)
        return;
    leave_streams();
    while (waitpid(keeper, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        end_what_is_left();
    /* What it had not reaped itself, which is ours since. */
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* That one is ours alone, and need not keep us waiting. */
static int stdout_anew(void)
{
    struct stat status;
    if (fstat(STDOUT_FILENO, &status) < 0 || !S_ISFIFO(status.st_mode))
        return STDOUT_FILENO;
    int anew = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return anew < 0 ? STDOUT_FILENO : anew;
}

int bridge_carry(int connection, pid_t keeper)
{
    static struct lane inward, outward;
    inward.from = STDIN_FILENO;
    inward.to = connection;
    outward.from = connection;
    outward.to = stdout_anew();
    outward.is_blocking = outward.to == STDOUT_FILENO;
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
    /* Ignored, it would keep the keeper's end from us. */
    signal(SIGCHLD, SIG_DFL);

    i64 until = NEVER;
    while (!(inward.is_over && is_empty(&inward)) && !(outward.is_over && is_empty(&outward))) {
        i64 now = clock_now();
        if (until == NEVER && (inward.is_over || outward.is_over))
            until = now + LAST_WRITES;
        if (now >= until || !carry_once(&inward, &outward, now, until))
            break;
    }
    /* What the keeper sent is written; what it would have read it has, by the end of the connection at the latest. */
    close(connection);
    if (outward.to != STDOUT_FILENO)
        close(outward.to);
    reap(keeper);
    return 0;
}
