/*
 * Owns: the lease and the keeper's own signals. Each pass waits once for all there is, deals with what came and then
 * reports what has changed; nothing else in the keeper waits.
 */
#include "keeper.h"

enum { LAST_LISTEN = 1000 };

static volatile sig_atomic_t is_to_end;
static sigset_t while_waiting;
static i64 doubted_at;

/* When the agent, connected or not, counts as gone: not before the command's end and the lease. */
static i64 abandoned_at(void)
{
    i64 since = session->settled_at, heard = connection_heard_at();
    i64 lease = session->start.lease;
    if (connection_exists() && lease < SILENCE)
        lease = SILENCE;
    return (since > heard ? since : heard) + lease;
}

/*
 * Whether that is so now; if not, `wake` is when to look again. A keeper that did not run for a while, because its
 * container was frozen, sees the time that has passed before what the agent has to say: so it listens once more.
 */
static bool is_abandoned(i64 now, i64 *wake)
{
    i64 at = abandoned_at();
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

/* What time and children have changed. Returns when to look again. */
static i64 advance(i64 now)
{
    i64 wake = session_step(now);
    if (session_is_ending() || !is_abandoned(now, &wake))
        return wake;
    session_abandon(now);
    return now;
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
    session_begin();
    callers_begin(own_connection, listener);
    i64 now = clock_now();
    connection_begin(now);
    for (i64 wake = now;;) {
        watch_clear();
        callers_watch();
        connection_watch();
        command_watch(session->phase == STARTING);
        streams_watch();
        fence_watch();
        watch_wait(now, sooner(wake, callers_deadline()), &while_waiting);
        now = clock_now();
        if (is_to_end) {
            is_to_end = 0;
            session_end_by_signal(now);
        }
        command_reap();
        session_serve();
        streams_serve();
        fence_serve();
        connection_serve(now);
        callers_serve(now);
        wake = advance(now);
        connection_tell();
        /* Behind STARTED, which must not wait for it. */
        if (session_has_started())
            strays_end();
    }
}
