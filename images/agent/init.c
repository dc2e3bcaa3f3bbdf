/*
 * mpirt-init COMMAND [ARG]...: the first process of a launcher's container. It runs the launcher's command, passes
 * signals on to it, and ends with its code.
 *
 * It starts a switchboard beside the command: that takes as long as mpirun does until it calls the first agent, which
 * then finds one. If none can be started, the agent says why.
 *
 * It outlives the command, because mpirun may end with 0 when it loses a worker, before anybody else can know of
 * that. So after a 0 it waits until the switchboard knows how the commands in the workers have ended, and has noted
 * in the launcher's account that this 0 is all there is to tell. Without a switchboard, or with one that does not
 * answer in time, the account does not say so, and the controller waits for word of the workers itself.
 */
#include "agent.h"

/* How long the controller waits for such a word; tests have less time. */
#ifndef SETTLING_PATIENCE
#define SETTLING_PATIENCE 30000
#endif

#define NAME "mpirt-init"

enum { USAGE = 240, NOT_RUN = 126, NOT_FOUND = 127 };

static sigset_t mask_at_start;
static pid_t command;

static _Noreturn void give_up(const char *word, int error, int code)
{
    say_at_once(NAME, "can't start ", word, ": ", strerror(error));
    _exit(code);
}

static _Noreturn void become(char **words)
{
    sigprocmask(SIG_SETMASK, &mask_at_start, NULL);
    execvp(*words, words);
    give_up(*words, errno, errno == ENOENT ? NOT_FOUND : NOT_RUN);
}

static void start(char **words)
{
    command = fork();
    if (command == 0)
        become(words);
    if (command < 0)
        give_up(*words, errno, NOT_RUN);
}

static void bring_switchboard(void)
{
    int fd, null;
    if (launch_wants_private_switchboard() || fork() != 0)
        return;
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
    launch_find_switchboard();
    connect_somewhere(&fd, clock_now());
    _exit(0);
}

/* Whatever else has lost its parent, too. False: the command runs. */
static bool has_ended(int *code)
{
    int status;
    pid_t ended;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
        if (ended == command) {
            *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            return true;
        }
    return false;
}

/* What a terminal sends goes to all processes in the foreground by itself. */
static void pass_on(int number, const siginfo_t *told)
{
    if (number > 0 && number != SIGCHLD && told->si_code != SI_KERNEL)
        kill(command, number);
}

static int see_through(void)
{
    int code;
    sigset_t all;
    sigfillset(&all);
    while (!has_ended(&code)) {
        siginfo_t told;
        pass_on(sigwaitinfo(&all, &told), &told);
    }
    return code;
}

/* Its answer says nothing but that everything is noted. */
static void ask(int fd)
{
    u8 request[HEADER];
    size_t length = frame_head(request, SETTLED_REQUEST, 0, 0, 0);
    if (answer_welcome(fd) && ask_with(fd, request, length))
        answer_frame(fd, SETTLED, NULL, 0, &length, "");
}

static void end_now(int number)
{
    (void)number;
    _exit(0);
}

/* The container is being ended: the command has ended well before. */
static void heed_signals(void)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = end_now};
    sigset_t heeded;
    sigemptyset(&heeded);
    for (size_t each = 0; each < sizeof ends / sizeof *ends; each++) {
        sigaction(ends[each], &action, NULL);
        sigaddset(&heeded, ends[each]);
    }
    sigprocmask(SIG_UNBLOCK, &heeded, NULL);
}

static void settle(void)
{
    asking_begin(clock_now() + SETTLING_PATIENCE);
    heed_signals();
    for (int number = 0; number < PLACES; number++) {
        int fd;
        if (!connect_if_there(number, &fd))
            continue;
        ask(fd);
        close(fd);
    }
}

_Noreturn void init_run(char **words)
{
    if (!*words) {
        say_at_once(NAME, "needs a command: " NAME " COMMAND [ARG]...");
        _exit(USAGE);
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_at_start);
    signal(SIGCHLD, SIG_DFL);
    /* Where containers of a pod share their processes, the first one is another. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    limit_threads();
    bring_switchboard();
    start(words);
    int code = see_through();
    if (code == 0)
        settle();
    _exit(code);
}
