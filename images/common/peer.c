/*
 * Who is at the other end of a unix socket.
 *
 * The containers of a pod may share folders, network and even processes, and mostly run as the same user. What each
 * of them has for itself is its mount namespace. /proc/PID/ns/mnt can't be read of every process; /proc/PID/mountinfo
 * can. Each of its lines begins with a mount's number, which is unique in the whole system: processes of one
 * container have the same first line.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Its end. */
static char *add_number(char *to, u64 number)
{
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *to++ = digits[--count];
    return to;
}

/* 0 and errno: not known. */
static u64 first_mount(pid_t pid)
{
    char path[64] = "/proc/", line[24] = {0};
    strcpy(add_number(path + strlen(path), (u64)pid), "/mountinfo");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    errno = EPERM;
    if (read(fd, line, sizeof line - 1) < 0)
        *line = 0;
    int error = errno;
    close(fd);
    errno = error;
    return strtoull(line, NULL, 10);
}

/* Not where /proc is missing or belongs to another pid namespace: its numbers are those of other processes. */
bool peers_can_be_told(void)
{
    char own[24], expected[24];
    ssize_t length = readlink("/proc/self", own, sizeof own);
    return length > 0 && add_number(expected, (u64)getpid()) - expected == length
        && memcmp(own, expected, (size_t)length) == 0 && first_mount(getpid()) != 0;
}

static bool has_ended(int process)
{
    struct pollfd ended = {.fd = process, .events = POLLIN};
    return poll(&ended, 1, 0) != 0;
}

/* What is said of a process that ends, or has ended, wherever it is looked for. */
static bool is_of_the_dead(int error)
{
    return error == ENOENT || error == ESRCH || error == EINVAL;
}

static bool refuse(int error)
{
    errno = is_of_the_dead(error) ? ECONNREFUSED : error;
    return false;
}

static bool is_of_container(pid_t pid)
{
    if (!peers_can_be_told())
        return refuse(EPERM);
    u64 mount = first_mount(pid);
    return mount ? mount == first_mount(getpid()) || refuse(EPERM) : refuse(errno);
}

/*
 * Whether it is a process of this user and this container. If not, errno is EPERM; or ECONNREFUSED if it has ended,
 * as a switchboard that was killed may have before its socket is closed. The pid of one in another pid namespace is
 * 0. It may be another process's by now, which is noticed since Linux 6.5.
 */
bool peer_is_ours(int fd)
{
    struct ucred peer;
    int process = -1;
    socklen_t size = sizeof peer, process_size = sizeof process;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid() || peer.pid <= 0)
        return refuse(EPERM);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &process_size) < 0 && errno != ENOPROTOOPT)
        return refuse(errno);
    bool is_ours = is_of_container(peer.pid);
    int error = errno;
    if (process >= 0) {
        if (has_ended(process)) {
            is_ours = false;
            error = ESRCH;
        }
        close(process);
    }
    return is_ours || refuse(error);
}
