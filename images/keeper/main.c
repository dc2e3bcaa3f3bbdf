/*
 * The keeper's command line: probe, sessions, bridge and attach.
 *
 * Owns: the first line on stdout, and which process does what. The file has neither an interpreter nor libraries,
 * for it runs in images that may have none.
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OK = 0, NOT_MADE = 1, NOT_KNOWN = 1, MISUSED = 2, BUSY_PAUSE = 20, BUSY_PATIENCE = 30000 };

/* The exec's standard streams are open, nothing else is: no descriptor of the runtime's gets to the command. */
static void tidy_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd < 3);
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0)
        return;
#endif
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int number = 3; number < 65536 && (rlim_t)number < limit.rlim_cur; number++)
        close(number);
}

static bool greet(const char *nonce, const char *what)
{
    struct text line = {0};
    text_add(&line, "\001mpirt-");
    text_add(&line, nonce);
    text_add(&line, what);
    text_add_number(&line, container_start());
    text_add(&line, "\n");
    return write_all(STDOUT_FILENO, line.bytes, line.length);
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

/* From here on this process is the keeper: nobody's terminal, nobody's pipes. Closes `begun` once it listens. */
static _Noreturn void become_keeper(int connection, int listener, int begun)
{
    place_serve(listener);
    close(begun);
    setsid();
    leave_streams();
    keep(connection, listener);
}

/* Until the other end is closed. */
static void wait_for_end(int fd)
{
    char nothing;
    while (read(fd, &nothing, 1) < 0 && errno == EINTR)
        ;
    close(fd);
}

static int bridge(const char *nonce)
{
    int ends[2], begun[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0 || pipe2(begun, O_CLOEXEC) < 0)
        return NOT_MADE;
    /* Made before the first line is written: who has read it can attach. */
    int listener = place_make(nonce);
    fence_stamp();
    /* A signal to a keeper that has just been made waits until it can deal with it. */
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t keeper = fork();
    if (keeper == 0) {
        close(ends[0]);
        close(begun[0]);
        become_keeper(ends[1], listener, begun[1]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (keeper < 0) {
        place_remove();
        return NOT_MADE;
    }
    close(listener);
    /* The keeper listens before the first line is written, too: who attaches asks who listens, and we may end. */
    close(begun[1]);
    wait_for_end(begun[0]);
    if (!greet(nonce, " KEEPER 1 "))
        return NOT_MADE;
    return bridge_carry(ends[0], keeper);
}

/* -1 and EAGAIN: a keeper may be there, and have no time for us now. */
static int connect_somewhere(const char *name)
{
    bool is_busy = false;
    const char *root;
    for (int number = 0; (root = place_root(number)); number++) {
        int fd = place_connect(root, name);
        if (fd >= 0)
            return fd;
        is_busy |= errno == EAGAIN;
    }
    errno = is_busy ? EAGAIN : ENOENT;
    return -1;
}

static int attach(const char *nonce)
{
    struct text name = {0};
    int connection;
    i64 until = clock_now() + BUSY_PATIENCE;
    text_add(&name, "mpirt-");
    text_add(&name, nonce);
    while ((connection = connect_somewhere(name.bytes)) < 0 && errno == EAGAIN) {
        if (clock_now() >= until)
            return NOT_MADE;
        poll(NULL, 0, BUSY_PAUSE);
    }
    if (connection < 0)
        return greet(nonce, " GONE ") ? OK : NOT_MADE;
    if (!greet(nonce, " KEEPER 1 "))
        return NOT_MADE;
    return bridge_carry(connection, -1);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "probe") == 0)
        return OK;
    if (argc == 2 && strcmp(argv[1], "sessions") == 0) {
        tidy_descriptors();
        return sessions_tell() ? OK : NOT_KNOWN;
    }
    if (argc != 3 || !nonce_is_valid(argv[2]))
        return MISUSED;
    tidy_descriptors();
    tag_self(tag_for(argv[2]));
    if (strcmp(argv[1], "bridge") == 0)
        return bridge(argv[2]);
    if (strcmp(argv[1], "attach") == 0)
        return attach(argv[2]);
    return MISUSED;
}
