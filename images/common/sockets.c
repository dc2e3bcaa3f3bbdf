/*
 * Owns: what counts as a place of this container, and who counts as a process of it.
 *
 * A socket gets its name `socket` when it listens already. So one that refuses connections has lost its listener,
 * and another may be put in its place. It is reached by its folder's descriptor: the path may lead elsewhere by then,
 * and be longer than an address.
 *
 * The containers of a pod may share folders, network and even processes, and mostly run as the same user. What each
 * of them has for itself is its mount namespace. /proc/PID/ns/mnt can't be read of every process; /proc/PID/mountinfo
 * can. Each of its lines begins with a mount's number, which is unique in the whole system: processes of one
 * container have the same first line.
 */
#include "common.h"

#include <stdio.h>           /* renameat, and nothing else of it */
#include <sys/un.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static const char *candidate(int number)
{
    if (number == 0)
        return "/dev/shm";
    if (number == 1) {
        const char *root = getenv("TMPDIR");
        return root && *root == '/' && strcmp(root, "/tmp") != 0 ? root : NULL;
    }
    return "/tmp";
}

/* On the file system of "/": no other container has it. /dev/shm is shared by all of the pod, and a volume may be. */
static bool is_private(const char *root)
{
    struct stat own, other;
    return stat("/", &own) == 0 && stat(root, &other) == 0 && own.st_dev == other.st_dev;
}

/* Where folders for sockets may be, in the order in which they are tried. NULL: there are no more. */
const char *place_root(int number)
{
    for (int shared = 0; shared < 2; shared++)
        for (int each = 0; each < PLACES; each++) {
            const char *root = candidate(each);
            if (root && is_private(root) == !shared && number-- == 0)
                return root;
        }
    return NULL;
}

int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* 0 and errno: not known. */
static u64 first_mount(pid_t pid)
{
    char line[24];
    errno = EPERM;
    return process_file(pid, "/mountinfo", line, sizeof line) < 0 ? 0 : strtoull(line, NULL, 10);
}

/* Not where /proc is missing or belongs to another pid namespace: its numbers are those of other processes. */
bool processes_are_visible(void)
{
    char own[24] = {0};
    return readlink("/proc/self", own, sizeof own - 1) > 0 && strtoull(own, NULL, 10) == (u64)getpid();
}

bool peers_are_visible(void)
{
    return processes_are_visible() && first_mount(getpid()) != 0;
}

static bool has_ended(int process)
{
    struct pollfd ended = {.fd = process, .events = POLLIN};
    return poll(&ended, 1, 0) != 0;
}

/* Three of these are what system calls say of a process that ends, or has ended. */
static bool refuse(int error)
{
    errno = error == ENOENT || error == ESRCH || error == EINVAL ? ECONNREFUSED : error;
    return false;
}

static bool is_of_container(pid_t pid)
{
    u64 own = processes_are_visible() ? first_mount(getpid()) : 0;
    if (!own)
        return refuse(is_shortage(errno) ? errno : EPERM);
    u64 mount = first_mount(pid);
    return mount ? mount == own || refuse(EPERM) : refuse(errno);
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

/* A socket that doesn't block, and the address of that name in the folder. */
static int new_socket(int folder, const char *name, struct sockaddr_un *address)
{
    struct text path;
    text_begin(&path, "/proc/self/fd/");
    text_add_number(&path, (u64)folder);
    text_add(&path, name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path.bytes, path.length + 1);
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/*
 * A connection; -1 and errno: ENOENT where there is no socket, ECONNREFUSED where nothing listens to it, EPERM where
 * another user or container does, EAGAIN where its queue is full.
 */
int socket_connect(int folder)
{
    struct sockaddr_un address;
    struct stat status;
    if (fstatat(folder, "socket", &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (!S_ISSOCK(status.st_mode)) {
        errno = ENOENT;
        return -1;
    }
    int fd = new_socket(folder, "/socket", &address);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && peer_is_ours(fd)))
        return fd;
    return close_failed(fd);
}

int socket_listen(int folder, int backlog)
{
    struct sockaddr_un address;
    unlinkat(folder, "new", 0);
    int fd = new_socket(folder, "/new", &address);
    if (fd < 0 || (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, backlog) == 0
                   && renameat(folder, "new", folder, "socket") == 0))
        return fd;
    close_failed(fd);
    int error = errno;
    unlinkat(folder, "new", 0);
    errno = error;
    return -1;
}

void socket_remove(int folder)
{
    unlinkat(folder, "new", 0);
    unlinkat(folder, "socket", 0);
}
