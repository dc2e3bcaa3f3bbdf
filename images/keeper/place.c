/* Owns: the names of folders. A folder whose socket refuses connections has lost its keeper, and may be removed. */
#include "keeper.h"

#include <ctype.h>
#include <dirent.h>

enum { SHORTEST_NONCE = 8, LONGEST_NONCE = 32, BACKLOG = 4096 };

#define PREFIX "mpirt-"

static const char *own_root, *own_nonce;

bool nonce_is_valid(const char *nonce)
{
    size_t length = 0;
    while (isalnum((unsigned char)nonce[length]))
        length++;
    return !nonce[length] && length >= SHORTEST_NONCE && length <= LONGEST_NONCE;
}

static struct text path_of(const char *root, const char *nonce)
{
    struct text path;
    text_begin(&path, root, "/" PREFIX, nonce);
    return path;
}

/* By the folder's descriptor: others may put a link in its place meanwhile. */
static void remove_folder(const char *root, const char *nonce)
{
    struct text path = path_of(root, nonce);
    int folder = open_folder(path.bytes);
    if (folder < 0)
        return;
    socket_remove(folder);
    close(folder);
    rmdir(path.bytes);
}

static int make_in(const char *root, const char *nonce)
{
    struct text path = path_of(root, nonce);
    if (!text_fits(&path) || mkdir(path.bytes, 0700) < 0)
        return -1;
    int folder = open_folder(path.bytes);
    int fd = folder < 0 ? -1 : socket_listen(folder, BACKLOG);
    close(folder);
    if (fd < 0)
        remove_folder(root, nonce);
    else
        own_root = root;
    return fd;
}

/* The listening socket; -1 where there is no place for it, or where every peer would be refused. */
int place_make(const char *nonce)
{
    int fd = -1;
    const char *root;
    own_nonce = nonce;
    if (!peers_are_visible())
        return -1;
    mode_t given = umask(0077);
    for (int number = 0; fd < 0 && (root = place_root(number)); number++)
        fd = make_in(root, nonce);
    umask(given);
    return fd;
}

/* From now on the peer of a connection is this process, no longer the one that has made the socket. */
void place_serve(int listener)
{
    listen(listener, BACKLOG);
}

bool place_exists(void)
{
    return own_root != NULL;
}

void place_remove(void)
{
    if (own_root)
        remove_folder(own_root, own_nonce);
    own_root = NULL;
}

/* As socket_connect; EACCES and EPERM where it is another user's. */
static int connect_in(const char *root, const char *nonce)
{
    struct text path = path_of(root, nonce);
    struct stat status;
    int folder = open_folder(path.bytes);
    if (folder < 0)
        return -1;
    errno = EPERM;
    int fd = fstat(folder, &status) == 0 && status.st_uid == geteuid() ? socket_connect(folder) : -1;
    close_failed(folder);
    return fd;
}

/* -1 and EAGAIN: its keeper may be there, and be too busy now, or what it takes to reach it is short. */
int place_connect(const char *nonce)
{
    bool is_busy = false;
    const char *root;
    for (int number = 0; (root = place_root(number)); number++) {
        int fd = connect_in(root, nonce);
        if (fd >= 0)
            return fd;
        is_busy |= errno == EAGAIN || is_shortage(errno);
    }
    errno = is_busy ? EAGAIN : ENOENT;
    return -1;
}

/* False: `meet` wants no more. */
static bool visit(const char *root, const char *name, bool (*meet)(int connection))
{
    const char *nonce = name + strlen(PREFIX);
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || !nonce_is_valid(nonce) || strcmp(nonce, own_nonce) == 0)
        return true;
    int fd = connect_in(root, nonce);
    if (fd < 0 && errno == ECONNREFUSED)
        remove_folder(root, nonce);
    return fd < 0 || meet(fd);
}

/* Whether to go on. */
static bool visit_all_in(const char *root, i64 until, bool (*meet)(int connection))
{
    static char entries[8192] __attribute__((aligned(8)));
    int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool goes_on = true;
    long size;
    if (folder < 0)
        return true;
    while (goes_on && clock_now() < until && (size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long at = 0; at < size && goes_on;) {
            const struct dirent *entry = (const struct dirent *)(entries + at);
            at += entry->d_reclen;
            goes_on = visit(root, entry->d_name, meet);
        }
    close(folder);
    return goes_on;
}

/* `meet` gets a connection to each other session of this user and container. There may be any number of folders. */
void place_visit_others(i64 until, bool (*meet)(int connection))
{
    const char *root;
    bool goes_on = true;
    for (int number = 0; goes_on && (root = place_root(number)); number++)
        goes_on = visit_all_in(root, until, meet);
}
