/*
 * The keeper's loop, and the session's course from START to DONE.
 *
 * Owns: the phases, the lease, the keeper's own signals. Each pass waits once for all there is, deals with what came
 * and then says what has changed; nothing else in the keeper waits.
 */
#include "keeper.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct session session = {.phase = WAITING, .lease = SILENCE};

static struct start start;
static volatile sig_atomic_t is_to_end;
static sigset_t while_waiting;
static i64 settled_at;
static i64 doubted_at;

enum { LAST_LISTEN = 1000 };

_Noreturn void session_over(void)
{
    place_remove();
    _exit(0);
}

void session_fail(int error, const char *problem, const char *what)
{
    session.phase = UNSTARTED;
    session.error = error;
    text_add(&session.problem, problem);
    text_add(&session.problem, what);
}

bool session_has_started(void)
{
    return session.phase == RUNNING || session.phase == ENDED;
}

/* START is here. */
void session_begin(i64 now)
{
    int error = start_parse(&start);
    if (error) {
        session.lease = SILENCE;
        session_fail(error, "malformed START", "");
    } else if (fence_forbids()) {
        session_fail(ECANCELED, "a later launcher of its job has begun", "");
    } else {
        fence_begin(now);
    }
}

/* A later attempt wants to start. */
void session_fence(i64 now)
{
    session.phase = FENCED;
    ending_demand(BY_FENCE, SIGKILL, 0, now);
}

/* When whoever is connected, or nobody, counts as gone: not before `since` and the lease. */
static i64 abandoned_at(i64 since)
{
    i64 heard = connection_heard_at();
    i64 lease = session.lease;
    if (connection_exists() && lease < SILENCE)
        lease = SILENCE;
    return (since > heard ? since : heard) + lease;
}

/*
 * Whether that is so now; if not, `wake` is when to look again. A keeper that did not run for a while, because its
 * container was frozen, sees the time that has passed before what the agent has to say: so it listens once more.
 */
static bool is_abandoned(i64 since, i64 now, i64 *wake)
{
    i64 at = abandoned_at(since);
    if (now < at)
        doubted_at = 0;
    else if (!connection_exists())
        return true;
    else if (!doubted_at)
        doubted_at = now;
    if (doubted_at)
        at = doubted_at + LAST_LISTEN;
    *wake = sooner(*wake, at);
    return doubted_at && now >= at;
}

/* Runs, or is about to, or its output isn't over. Returns when to look again. */
static i64 go_on(i64 now)
{
    i64 wake = NEVER;
    ending_step(now);
    if (session.phase == RUNNING && !session.command_ended && ending_is_complete())
        command_give_up(now);
    bool is_left = !session.command_ended || (ending_is_on() && !ending_is_complete());
    if (session.phase == STARTING || is_left) {
        if (!ending_is_on() && is_abandoned(0, now, &wake))
            ending_begin(BY_LEASE, SIGTERM, session.grace, now);
        return sooner(wake, ending_deadline());
    }
    if (!settled_at)
        settled_at = now;
    if (streams_settle(now, &wake)) {
        session.phase = ENDED;
        settled_at = now;
    }
    if (is_abandoned(settled_at, now, &wake))
        session_over();
    return wake;
}

/* What time and children have changed. Returns when to look again. */
static i64 advance(i64 now)
{
    i64 wake = NEVER;
    switch (session.phase) {
    case FENCING:
        if (fence_is_over(now)) {
            command_start(&start);
            return now;
        }
        /* fall through */
    case WAITING:
    case UNSTARTED:
    case ENDED:
        if (is_abandoned(settled_at, now, &wake))
            session_over();
        return session.phase == FENCING ? sooner(wake, fence_deadline()) : wake;
    case FENCED:
        ending_step(now);
        if (ending_is_complete())
            session_over();
        return ending_deadline();
    default:
        return go_on(now);
    }
}

static void end_as_asked(i64 now)
{
    is_to_end = 0;
    if (session.phase == WAITING || session.phase == FENCING || session.phase == UNSTARTED)
        session_over();
    if (session.phase == STARTING || session.phase == RUNNING)
        ending_begin(BY_SIGNAL, SIGTERM, session.grace, now);
}

static void on_child(int number)
{
    (void)number;
}

static void on_end(int number)
{
    (void)number;
    is_to_end = 1;
}

static sighandler_t handler_of(int number)
{
    switch (number) {
    case SIGCHLD:
        return on_child;
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
        return on_end;
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
        return SIG_DFL;
    default:
        return SIG_IGN;
    }
}

/*
 * Signals come while the keeper waits and at no other time. What means nothing to it does nothing to it. None is
 * ignored for a moment only: that would lose one that waits since before. Those that musl keeps for itself are
 * ignored in the kernel's own form.
 */
static void set_signals(void)
{
    static const unsigned long ignored[4] = {(unsigned long)SIG_IGN};
    sigset_t all;
    for (int number = 1; number < NSIG; number++)
        if (signal(number, handler_of(number)) == SIG_ERR)
            syscall(SYS_rt_sigaction, number, ignored, NULL, sizeof(unsigned long));
    sigemptyset(&while_waiting);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

_Noreturn void keep(int own_connection, int listener)
{
    set_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
    callers_begin(own_connection, listener);
    i64 now = clock_now();
    connection_begin(now);
    for (i64 wake = now;;) {
        watch_clear();
        callers_watch();
        connection_watch();
        command_watch();
        streams_watch();
        fence_watch();
        watch_wait(now, sooner(wake, callers_deadline()), &while_waiting);
        now = clock_now();
        if (is_to_end)
            end_as_asked(now);
        command_reap(now);
        command_serve();
        streams_serve();
        fence_serve();
        connection_serve(now);
        callers_serve(now);
        wake = advance(now);
        connection_tell();
        /* Behind STARTED, which must not wait for it. */
        strays_end();
    }
}
