/*
 * Starting a switchboard: a process without a parent, that has nothing of the agent but a socket.
 *
 * One with a place runs for all agents of this container, longer than the one that came first, and its socket
 * listens. A private one has a connection to its agent, and the agent's stderr.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    /* Who connects from now on is told that this process listens, and no longer the agent, which may end. */
    if (place)
        listen(SOCKET, BACKLOG);
    umask(0077);
    if (chdir("/") < 0)
        _exit(FAILED);
    launch_switchboard(place ? place->path : "off");
}

/* False and errno: there can be no process. One without a place is private; at a place, agents wait until it runs. */
bool board_start(const struct place *place, int socket)
{
    pid_t child = fork();
    if (child == 0) {
        setsid();
        pid_t board = fork();
        if (board == 0)
            become_board(place, socket);
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
