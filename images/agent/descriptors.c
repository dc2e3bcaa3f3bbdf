/*
 * The agent's stdin, stdout and stderr, opened anew where they are shared.
 *
 * They belong to others too (mpirun's output is ours), so they can't be made non-blocking. But a pipe or a
 * terminal can be opened a second time through /proc, and that one is ours alone; a socket is asked not to wait in
 * each call. For whatever is left there is a thread (aside.c).
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What we open next would take the numbers of those that are closed. */
void open_what_is_closed(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0)
            return;
}

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
