/*
 * Starting a switchboard: a process that is nobody's child, and has nothing of the agent but the listening socket.
 *
 * It runs for all agents of this container, and longer than the one that happened to come first.
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
    LISTENER = 3, FIRST_OTHER,
    /* A pipe that somebody has put there is not waited for. */
    LOG_FLAGS = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
};

/* A number that none of the four is to have. */
static int above(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OTHER);
}

static void set_descriptors(int folder, int listener)
{
    listener = above(listener);
    int null = above(open("/dev/null", O_RDWR | O_CLOEXEC));
    int log = above(openat(folder, "log", LOG_FLAGS, 0600));
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    /* A full file system may have room for a socket and none for a log. */
    dup2(log >= 0 ? log : null, STDERR_FILENO);
    dup2(listener, LISTENER);
    close_descriptors(FIRST_OTHER);
}

static _Noreturn void become_board(const struct place *place, int listener)
{
    /* Not as the first agent was started. */
    signals_default();
    set_descriptors(place->fd, listener);
    /* Who connects from now on is told that this process listens, and no longer the agent, which may end. */
    listen(LISTENER, BACKLOG);
    umask(0077);
    if (chdir("/") < 0)
        _exit(FAILED);
    launch_switchboard(place->path);
}

/* False and errno: there can be no process. Until the switchboard runs, who connects waits at its socket. */
bool board_start(const struct place *place, int listener)
{
    pid_t child = fork();
    if (child == 0) {
        setsid();
        pid_t board = fork();
        if (board == 0)
            become_board(place, listener);
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
