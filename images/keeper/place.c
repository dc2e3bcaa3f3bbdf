/*
 * The folder of a session and the socket in it.
 *
 * A socket gets its name `socket` when it listens already. So a `socket` that refuses connections has lost its
 * keeper, and whoever finds it may remove it.
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>           /* rename, and nothing else of it */
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SHORTEST_NONCE = 8, LONGEST_NONCE = 32, BACKLOG = 16 };

#define PREFIX "mpirt-"

static const char *own_root;
static struct text own_name;

bool nonce_is_valid(const char *nonce)
{
    size_t length = 0;
    for (; nonce[length]; length++) {
        char one = nonce[length];
        if (!((one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z')))
            return false;
    }
    return length >= SHORTEST_NONCE && length <= LONGEST_NONCE;
}

static struct text path_of(const char *root, const char *name, const char *file)
{
    struct text path = {0};
    text_add(&path, root);
    text_add(&path, "/");
    text_add(&path, name);
    text_add(&path, file);
    return path;
}

/* False: the path is longer than a socket's may be. */
static bool set_address(struct sockaddr_un *address, const struct text *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (path->length >= sizeof address->sun_path)
        return false;
    memcpy(address->sun_path, path->bytes, path->length + 1);
    return true;
}

static int listen_in(const char *root, const char *name)
{
    struct text first = path_of(root, name, "/new");
    struct text last = path_of(root, name, "/socket");
    struct sockaddr_un address;
    if (!set_address(&address, &last) || !set_address(&address, &first))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0
        && rename(first.bytes, last.bytes) == 0)
        return fd;
    close(fd);
    return -1;
}

static int make_in(const char *root)
{
    struct text folder = path_of(root, own_name.bytes, "");
    if (!text_fits(&folder) || mkdir(folder.bytes, 0700) < 0)
        return -1;
    int fd = listen_in(root, own_name.bytes);
    if (fd < 0)
        place_remove_at(root, own_name.bytes);
    else
        own_root = root;
    return fd;
}

/* The listening socket; -1 where there is no place for it, or where every peer would be refused. */
int place_make(const char *nonce)
{
    int fd = -1;
    const char *root;
    text_add(&own_name, PREFIX);
    text_add(&own_name, nonce);
    if (!peers_can_be_told())
        return -1;
    mode_t given = umask(0077);
    for (int number = 0; fd < 0 && (root = place_root(number)); number++)
        fd = make_in(root);
    umask(given);
    return fd;
}

/* Who connects from now on is told that this process listens, and no longer the one that has made the socket. */
void place_serve(int listener)
{
    listen(listener, BACKLOG);
}

bool place_exists(void)
{
    return own_root != NULL;
}

const char *place_name(void)
{
    return own_name.bytes;
}

/* By the folder's descriptor: others may put a link in its place meanwhile. */
void place_remove_at(const char *root, const char *name)
{
    struct text path = path_of(root, name, "");
    int folder = open(path.bytes, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    unlinkat(folder, "new", 0);
    unlinkat(folder, "socket", 0);
    close(folder);
    rmdir(path.bytes);
}

void place_remove(void)
{
    if (own_root)
        place_remove_at(own_root, own_name.bytes);
    own_root = NULL;
}

/*
 * A connection that doesn't block; -1 and errno: ECONNREFUSED where nobody listens to a socket that is there, EPERM
 * where another user or container does.
 */
int place_connect(const char *root, const char *name)
{
    struct sockaddr_un address;
    struct stat status;
    struct text path = path_of(root, name, "/socket");
    if (!set_address(&address, &path) || lstat(path.bytes, &status) < 0 || !S_ISSOCK(status.st_mode)) {
        errno = ENOENT;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && peer_is_ours(fd))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}
