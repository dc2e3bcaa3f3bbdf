/*
 * The signals that are meant for the command, and the end of the process that started the agent.
 *
 * Signals are blocked except while the agent waits (watch.c). Until the command was handed over to a switchboard,
 * a signal ends the agent: nothing has been started. One that was ignored when the agent was started stays so.
 */
#include "agent.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { LOOK_AGAIN = 4000 };

static const int meant_for_it[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
/* A reader that is gone is an error to tell; a read in the background is none. */
static const int not_for_us[] = {SIGPIPE, SIGTTIN};
enum { MEANT = sizeof meant_for_it / sizeof *meant_for_it, UNWANTED = sizeof not_for_us / sizeof *not_for_us };

static sigset_t mask_at_start;
static u8 numbers[SIGNALS_LIMIT];
static u32 count, told;

static struct {
    bool is_on, has_ended;
    pid_t parent;
    int fd;
    int ticket;
    i64 hup_at;
} followed = {.fd = -1, .hup_at = NEVER};

/* There may be more than a handover holds; the last one counts most. */
static void take_note(int number)
{
    if (!session.is_handed_over)
        _exit(128 + number);
    if (count == SIGNALS_LIMIT)
        count--;
    numbers[count++] = (u8)number;
    if (told >= count)
        told = count - 1;
}

void signals_begin(void)
{
    followed.parent = getppid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_at_start);
    struct sigaction action = {.sa_handler = take_note}, before;
    sigfillset(&action.sa_mask);
    for (int number = 0; number < MEANT; number++)
        if (sigaction(meant_for_it[number], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(meant_for_it[number], &action, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (int number = 0; number < UNWANTED; number++)
        sigaction(not_for_us[number], &ignore, NULL);
}

/* While the agent waits. */
const sigset_t *signals_mask(void)
{
    return &mask_at_start;
}

/* All that have come so far. */
u32 signals_hand_over(const u8 **all)
{
    *all = numbers;
    return told = count;
}

bool signal_next(u8 *number)
{
    if (told == count)
        return false;
    *number = numbers[told++];
    return true;
}

/* Taken before the look at the parent, the descriptor can't be another process's. */
void follow_begin(void)
{
    if (followed.is_on || followed.has_ended)
        return;
    followed.is_on = true;
    if (followed.parent > 0)
        followed.fd = (int)syscall(SYS_pidfd_open, followed.parent, 0);
}

static bool is_orphaned(void)
{
    return getppid() != followed.parent;
}

void follow_watch(i64 now, i64 *until)
{
    followed.ticket = -1;
    *until = sooner(*until, followed.hup_at);
    if (!followed.is_on)
        return;
    if (is_orphaned())
        *until = now;
    else if (followed.fd >= 0)
        followed.ticket = watch(followed.fd, POLLIN);
    else
        *until = sooner(*until, now + LOOK_AGAIN);
}

/* Once: the parent doesn't end twice. */
static void note_end(i64 hup_at)
{
    if (followed.fd >= 0)
        close(followed.fd);
    followed.fd = -1;
    followed.parent = getppid();
    followed.is_on = false;
    followed.has_ended = true;
    followed.hup_at = hup_at;
}

/* mpirun ends when its daemons have closed their connections, while they still clean up. */
void follow_serve(i64 now, i64 grace)
{
    if (followed.is_on && (seen(followed.ticket) || is_orphaned()))
        note_end(now + grace);
    if (now < followed.hup_at)
        return;
    followed.hup_at = NEVER;
    take_note(SIGHUP);
}
