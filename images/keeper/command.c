/* The command's process: how it is started, and how its end and that of every orphan is learned. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* execve's own pipe: it is closed by a successful one, and carries errno otherwise. */
static int verdict = -1;
static int verdict_ticket = -1;
static const char *program;
static bool childless = true;

struct pipes {
    int in[2], out[2], err[2], verdict[2];
};

static void close_pipe(int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

static bool make_pipes(struct pipes *pipes)
{
    int *made[] = {pipes->out, pipes->err, pipes->verdict, pipes->in};
    int count = session.has_stdin ? 4 : 3;
    for (int number = 0; number < count; number++)
        if (pipe2(made[number], O_CLOEXEC) < 0) {
            while (number--)
                close_pipe(made[number]);
            return false;
        }
    return true;
}

static void restore_signals(void)
{
    /* The kernel's own form of a default action. musl's signal() leaves out the numbers that it keeps for itself. */
    static const unsigned long by_default[4];
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        syscall(SYS_rt_sigaction, number, by_default, NULL, sizeof(unsigned long));
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child. /dev/null is its stdin already. */
static _Noreturn void become_command(const struct start *start, const struct pipes *pipes)
{
    setsid();
    /* A keeper that is killed takes it along, where no bridge is left to do so. */
    prctl(PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L);
    if (session.has_stdin)
        dup2(pipes->in[0], STDIN_FILENO);
    dup2(pipes->out[1], STDOUT_FILENO);
    dup2(pipes->err[1], STDERR_FILENO);
    restore_signals();
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

static void keep_own_ends(const struct pipes *pipes)
{
    if (session.has_stdin) {
        close(pipes->in[0]);
        never_block(pipes->in[1]);
    }
    close(pipes->out[1]);
    close(pipes->err[1]);
    close(pipes->verdict[1]);
    never_block(pipes->out[0]);
    never_block(pipes->err[0]);
    never_block(pipes->verdict[0]);
    streams_open(session.has_stdin ? pipes->in[1] : -1, pipes->out[0], pipes->err[0]);
    verdict = pipes->verdict[0];
}

/* The exec's folder is the command's. The keeper stands in nobody's way to unmount it. */
static void leave_folder(void)
{
    if (chdir("/") < 0)
        return;
}

void command_start(const struct start *start)
{
    struct pipes pipes;
    if (!make_pipes(&pipes)) {
        session_fail(errno, "cannot make its pipes", "");
        return;
    }
    session.pid = fork();
    if (session.pid == 0)
        become_command(start, &pipes);
    int error = errno;
    leave_folder();
    keep_own_ends(&pipes);
    program = start->argv[0];
    childless = false;
    if (session.pid < 0)
        session_fail(error, "cannot fork", "");
    else
        session.phase = STARTING;
}

void command_watch(void)
{
    verdict_ticket = watch(session.phase == STARTING ? verdict : -1, POLLIN);
}

void command_serve(void)
{
    int error = 0;
    if (!seen(verdict_ticket))
        return;
    ssize_t got = read(verdict, &error, sizeof error);
    if (got < 0)
        return;
    close(verdict);
    verdict = -1;
    if (got == sizeof error) {
        session_fail(error, "cannot execute ", program);
    } else {
        session.phase = RUNNING;
        control_give_pending();
    }
    start_forget();
}

/* Every orphan of the command becomes the keeper's child, so without children there are no descendants. */
void command_reap(i64 now)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != session.pid || session.command_ended)
            continue;
        session.command_ended = true;
        session.ended_at = now;
        session.status = status;
    }
    childless = pid < 0 && errno == ECHILD;
}

/* It can't be ended, being another user's by now. What it came to is not known, and must not look like success. */
void command_give_up(i64 now)
{
    session.command_ended = true;
    session.ended_at = now;
    session.status = SIGKILL;
}

bool command_has_children(void)
{
    return !childless;
}
