/*
 * The keeper's command line: probe, sessions, bridge and attach.
 *
 * Owns: the first line on stdout, and which process does what. The file has neither an interpreter nor libraries,
 * for it runs in images that may have none.
 */
#include "keeper.h"

enum { OK = 0, NOT_MADE = 1, NOT_KNOWN = 1, MISUSED = 2, BUSY_PAUSE = 20, BUSY_PATIENCE = 30000 };

/* The exec's standard streams are open, nothing else is: no descriptor of the runtime's gets to the command. */
static void tidy_descriptors(void)
{
    open_what_is_closed();
    close_descriptors(3);
}

static bool greet(const char *nonce, const char *what)
{
    struct text line;
    text_begin(&line, "\001mpirt-", nonce, what);
    text_add_number(&line, container_start());
    text_add(&line, "\n");
    return write_all(STDOUT_FILENO, line.bytes, line.length);
}

/* From here on this process is the keeper, with neither terminal nor pipes. Closes `begun` once it listens. */
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
    /* Made before the first line is written: its reader can attach. */
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
    /* The keeper listens before the first line is written, too: the bridge, which has made the socket, may end. */
    close(begun[1]);
    wait_for_end(begun[0]);
    if (!greet(nonce, " KEEPER 1 "))
        return NOT_MADE;
    return bridge_carry(ends[0], keeper);
}

static int attach(const char *nonce)
{
    int connection;
    i64 until = clock_now() + BUSY_PATIENCE;
    while ((connection = place_connect(nonce)) < 0 && errno == EAGAIN) {
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
        return sessions_report() ? OK : NOT_KNOWN;
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
