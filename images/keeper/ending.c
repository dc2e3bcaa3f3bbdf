/*
 * END: the signal, the grace, KILL, until nothing of the command is left.
 *
 * /proc is read again and again meanwhile, at first often: most commands end at once.
 */
#include "keeper.h"

#include <errno.h>

enum { FIRST_PAUSE = 5, LONGEST_PAUSE = 200, FRUITLESS_LOOKS = 10 };

static struct {
    bool is_on;
    bool is_anew;
    int signal;
    i64 kill_at, look_at, pause;
    int fruitless;           /* looks after KILL that found nobody who can be killed */
} ending;

/* The signal is given to all once more; the grace gets shorter or stays. What was left at the end is left. */
void ending_demand(enum ended_by by, int signal, i64 grace, i64 now)
{
    if (session.phase == ENDED || session.phase == UNSTARTED)
        return;
    if (session.phase == WAITING || session.phase == FENCING) {
        session_fail(ECANCELED, "was ended before it was started", "");
        return;
    }
    if (!ending.is_on && !session.command_ended)
        session.ended_by = by;
    i64 kill_at = now + grace;
    ending.kill_at = ending.is_on ? sooner(ending.kill_at, kill_at) : kill_at;
    ending.is_on = ending.is_anew = true;
    ending.signal = signal;
    ending.look_at = now;
    ending.pause = FIRST_PAUSE;
    ending_step(now);
}

/* The same, unless it is under way. */
void ending_begin(enum ended_by by, int signal, i64 grace, i64 now)
{
    if (!ending.is_on)
        ending_demand(by, signal, grace, now);
}

bool ending_is_on(void)
{
    return ending.is_on;
}

/* Without children there are no descendants. What can't be killed, another user's, isn't waited for. */
bool ending_is_complete(void)
{
    return ending.is_on && (!command_has_children() || ending.fruitless >= FRUITLESS_LOOKS);
}

void ending_step(i64 now)
{
    if (!ending.is_on || ending_is_complete())
        return;
    bool kills = now >= ending.kill_at;
    if (kills && ending.signal != SIGKILL) {
        ending.signal = SIGKILL;
        ending.pause = FIRST_PAUSE;
        ending.look_at = now;
    }
    if (now < ending.look_at)
        return;
    int reached = signal_descendants(ending.signal, ending.is_anew);
    ending.is_anew = false;
    ending.fruitless = reached || !kills ? 0 : ending.fruitless + 1;
    ending.look_at = now + ending.pause;
    ending.pause = ending.pause * 2 < LONGEST_PAUSE ? ending.pause * 2 : LONGEST_PAUSE;
}

i64 ending_deadline(void)
{
    if (!ending.is_on || ending_is_complete())
        return NEVER;
    return ending.signal == SIGKILL ? ending.look_at : sooner(ending.look_at, ending.kill_at);
}
