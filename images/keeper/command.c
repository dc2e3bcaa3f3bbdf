/*
 * Owns: the process and the verdict on its start: execve's own pipe is closed by a successful one, and carries errno
 * otherwise.
 */
#include "keeper.h"

static struct command own;
const struct command *const command = &own;
static int verdict_fd = -1, verdict_ticket = -1;

struct pipes {
    int in[2], out[2], err[2], verdict[2];
};

static void close_pipe(int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

static bool make_pipes(struct pipes *pipes, bool has_stdin)
{
    int *made[] = {pipes->out, pipes->err, pipes->verdict, pipes->in};
    int count = has_stdin ? 4 : 3;
    for (int number = 0; number < count; number++)
        if (pipe2(made[number], O_CLOEXEC) < 0) {
            while (number--)
                close_pipe(made[number]);
            return false;
        }
    return true;
}

/* In the child. /dev/null is its stdin already. */
static _Noreturn void become_command(const struct start *start, const struct pipes *pipes)
{
    setsid();
    /* A keeper that is killed takes it along, where no bridge is left to do so. */
    prctl(PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L);
    if (start->has_stdin)
        dup2(pipes->in[0], STDIN_FILENO);
    dup2(pipes->out[1], STDOUT_FILENO);
    dup2(pipes->err[1], STDERR_FILENO);
    signals_default();
    execve(start->argv[0], start->argv, start->environment);
    int error = errno;
    while (write(pipes->verdict[1], &error, sizeof error) < 0 && errno == EINTR)
        ;
    _exit(127);
}

static void never_block(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void keep_own_ends(const struct pipes *pipes, bool has_stdin)
{
    if (has_stdin) {
        close(pipes->in[0]);
        never_block(pipes->in[1]);
    }
    close(pipes->out[1]);
    close(pipes->err[1]);
    close(pipes->verdict[1]);
    never_block(pipes->out[0]);
    never_block(pipes->err[0]);
    never_block(pipes->verdict[0]);
    streams_open(has_stdin ? pipes->in[1] : -1, pipes->out[0], pipes->err[0]);
    verdict_fd = pipes->verdict[0];
}

/* NULL, or what could not be done; errno says why. */
const char *command_start(const struct start *start)
{
    struct pipes pipes;
    if (!make_pipes(&pipes, start->has_stdin))
        return "cannot make its pipes";
    own.pid = fork();
    if (own.pid == 0)
        become_command(start, &pipes);
    int error = errno;
    keep_own_ends(&pipes, start->has_stdin);
    /* The exec's folder is the command's. A keeper in it would keep it from being unmounted. */
    int left = chdir("/");
    (void)left;
    own.has_children = own.pid > 0;
    errno = error;
    return own.pid > 0 ? NULL : "cannot fork";
}

void command_watch(bool is_starting)
{
    verdict_ticket = watch(is_starting ? verdict_fd : -1, POLLIN);
}

/* News about the start, once. NOT_STARTED: errno is execve's. */
enum verdict command_verdict(void)
{
    int error = 0;
    if (!seen(verdict_ticket))
        return UNDECIDED;
    ssize_t got = read(verdict_fd, &error, sizeof error);
    if (got < 0)
        return UNDECIDED;
    close(verdict_fd);
    verdict_fd = -1;
    errno = error;
    return got == sizeof error ? NOT_STARTED : STARTED_WELL;
}

/* Every orphan of the command becomes the keeper's child, so without children there are no descendants. */
void command_reap(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != own.pid || own.has_ended)
            continue;
        own.has_ended = true;
        own.status = status;
    }
    own.has_children = !(pid < 0 && errno == ECHILD);
}

/* It can't be ended, being another user's by now. Its result is not known, and must not look like success. */
void command_give_up(void)
{
    own.has_ended = true;
    own.status = SIGKILL;
}
