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
#include <unistd.h>

struct session session = {.phase = WAITING, .lease = SILENCE};

static struct start start;
static volatile sig_atomic_t is_to_end;
static sigset_t while_waiting;
static i64 settled_at;

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
    if (error)
        session_fail(error, "malformed START", "");
    else
        fence_begin(now);
}

/* A later attempt wants to start. */
void session_fence(i64 now)
{
    session.phase = FENCED;
    ending_demand(SIGKILL, 0, now);
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

/* Runs, or is about to, or its output isn't over. Returns when to look again. */
static i64 go_on(i64 now)
{
    i64 wake = NEVER;
    bool is_left = !session.command_ended || (ending_is_on() && !ending_is_complete());
    ending_step(now);
    if (session.phase == STARTING || is_left) {
        if (ending_is_on())
            return ending_deadline();
        if (now >= abandoned_at(0))
            ending_begin(SIGTERM, session.grace, now);
        return sooner(abandoned_at(0), ending_deadline());
    }
    if (!settled_at)
        settled_at = now;
    if (streams_settle(now, &wake)) {
        session.phase = ENDED;
        settled_at = now;
    }
    if (now >= abandoned_at(settled_at))
        session_over();
    return sooner(abandoned_at(settled_at), wake);
}

/* What time and children have changed. Returns when to look again. */
static i64 advance(i64 now)
{
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
        if (failure_is_told() || now >= abandoned_at(settled_at))
            session_over();
        return sooner(abandoned_at(settled_at), session.phase == FENCING ? fence_deadline() : NEVER);
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
    if (session.phase == WAITING || session.phase == FENCING)
        session_over();
    if (session.phase == STARTING || session.phase == RUNNING)
        ending_begin(SIGTERM, session.grace, now);
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

/* Signals come while the keeper waits and at no other time. What means nothing to it does nothing to it. */
static void set_signals(void)
{
    sigset_t all;
    const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
    for (size_t number = 0; number < sizeof faults / sizeof *faults; number++)
        signal(faults[number], SIG_DFL);
    signal(SIGCHLD, on_child);
    signal(SIGTERM, on_end);
    signal(SIGINT, on_end);
    signal(SIGHUP, on_end);
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
        connection_tell(now);
        if (failure_is_told())
            wake = now;
    }
}
