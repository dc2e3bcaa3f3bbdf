/*
 * Owns: the phase, the controls, and END: the signal, the grace, KILL, until nothing of the command is left.
 *
 * While it ends, /proc is read again and again, at first often: most commands end at once.
 */
#include "keeper.h"

enum { SIGNALS = 64, FIRST_PAUSE = 5, LONGEST_PAUSE = 200, FRUITLESS_LOOKS = 10 };

static struct session own;
const struct session *const session = &own;

static bool start_came;
static u64 pending;          /* signals, given to the command as soon as it runs */

static struct {
    bool is_on;
    bool is_anew;
    int signal;
    i64 kill_at, look_at, pause;
    int fruitless;           /* looks after KILL that found no process that can be killed */
} ending;

/* Without children there are no descendants. What can't be killed, another user's, isn't waited for. */
static bool ending_is_complete(void)
{
    return ending.is_on && (!command->has_children || ending.fruitless >= FRUITLESS_LOOKS);
}

static void ending_step(i64 now)
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
    int reached = signal_descendants(command->pid, ending.signal, ending.is_anew);
    ending.is_anew = false;
    ending.fruitless = reached || !kills ? 0 : ending.fruitless + 1;
    ending.look_at = now + ending.pause;
    ending.pause = ending.pause * 2 < LONGEST_PAUSE ? ending.pause * 2 : LONGEST_PAUSE;
}

static i64 ending_deadline(void)
{
    if (!ending.is_on || ending_is_complete())
        return NEVER;
    return ending.signal == SIGKILL ? ending.look_at : sooner(ending.look_at, ending.kill_at);
}

/* Until START says how long the lease is. */
void session_begin(void)
{
    own.start.lease = SILENCE;
}

bool session_has_started(void)
{
    return own.phase == RUNNING || own.phase == ENDED;
}

_Noreturn void session_over(void)
{
    place_remove();
    _exit(0);
}

static void fail(int error, const char *problem, const char *what)
{
    own.phase = UNSTARTED;
    own.error = error;
    text_begin(&own.problem, problem, what);
}

/* What is left of the command at its own end is left alone, unless an END comes before EXIT. */
static bool is_left(void)
{
    return own.phase == STARTING
        || (own.phase == RUNNING && (!command->has_ended || (ending.is_on && !ending_is_complete())));
}

/* The lease makes no difference any more. */
bool session_is_ending(void)
{
    return own.phase == FENCED || (is_left() && ending.is_on);
}

/* The signal is given to all once more; the grace gets shorter or stays. */
static void demand_end(enum ended_by by, int signal, i64 grace, i64 now)
{
    if (own.phase == ENDED || own.phase == UNSTARTED)
        return;
    if (own.phase == WAITING || own.phase == FENCING) {
        fail(ECANCELED, "was ended before it was started", "");
        return;
    }
    if (!ending.is_on && !command->has_ended)
        own.ended_by = by;
    ending.kill_at = ending.is_on ? sooner(ending.kill_at, now + grace) : now + grace;
    ending.is_on = ending.is_anew = true;
    ending.signal = signal;
    ending.look_at = now;
    ending.pause = FIRST_PAUSE;
    ending_step(now);
}

static void begin(i64 now)
{
    int error = start_parse(&own.start);
    if (error) {
        own.start.lease = SILENCE;
        fail(error, "malformed START", "");
        return;
    }
    fence_claim(&own.start);
    if (fence_forbids()) {
        fail(ECANCELED, "a later launcher of its job has begun", "");
        return;
    }
    own.phase = FENCING;
    fence_begin(now);
}

static bool collect(const struct frame *frame)
{
    return !start_came && own.phase == WAITING && start_collect(frame->payload + 1, frame->length - 1);
}

static bool start(const struct frame *frame, i64 now)
{
    if (!collect(frame))
        return false;
    start_came = true;
    begin(now);
    return true;
}

static bool is_signal(u8 number)
{
    return number >= 1 && number <= SIGNALS;
}

static bool give(const struct frame *frame)
{
    if (frame->length != 2 || !is_signal(frame->payload[1]))
        return false;
    if (own.phase == RUNNING && !command->has_ended)
        signal_group(command->pid, frame->payload[1]);
    else
        pending |= 1ULL << (frame->payload[1] - 1);
    return true;
}

static bool end(const struct frame *frame, i64 now)
{
    if (frame->length != 6 || !is_signal(frame->payload[1]))
        return false;
    if (frame->number || !ending.is_on)
        demand_end(BY_END, frame->payload[1], get32(frame->payload + 2), now);
    return true;
}

/* CONTROL: each is done once and in order, over any number of connections. False: it breaks a rule, and isn't done. */
bool session_control(const struct frame *frame, i64 now)
{
    bool is_done = false;
    if (!frame->number)
        return frame->payload[0] == 'E' && end(frame, now);
    if (frame->number <= own.controls)
        return true;
    if (frame->number > own.controls + 1)
        return false;
    switch (frame->payload[0]) {
    case 's':
        is_done = collect(frame);
        break;
    case 'S':
        is_done = start(frame, now);
        break;
    case 'K':
        is_done = give(frame);
        break;
    case 'E':
        is_done = end(frame, now);
        break;
    }
    own.controls += is_done;
    return is_done;
}

/* Whether execve succeeded. */
void session_serve(void)
{
    enum verdict verdict = command_verdict();
    if (verdict == UNDECIDED)
        return;
    if (verdict == NOT_STARTED) {
        fail(errno, "cannot execute ", own.start.argv[0]);
    } else {
        own.phase = RUNNING;
        for (int number = 1; number <= SIGNALS && !command->has_ended; number++)
            if (pending >> (number - 1) & 1)
                signal_group(command->pid, number);
    }
    start_forget();
}

static i64 step_running(i64 now)
{
    i64 wake = NEVER;
    ending_step(now);
    if (own.phase == RUNNING && !command->has_ended && ending_is_complete())
        command_give_up();
    if (is_left())
        return ending_deadline();
    if (!own.settled_at)
        own.settled_at = now;
    if (streams_settle(now, &wake)) {
        own.phase = ENDED;
        own.settled_at = now;
    }
    return wake;
}

static void start_command(void)
{
    const char *problem = command_start(&own.start);
    if (problem)
        fail(errno, problem, "");
    else
        own.phase = STARTING;
}

/* What time and children have changed. Returns when to look again. */
i64 session_step(i64 now)
{
    i64 fenced_until;
    switch (own.phase) {
    case FENCING:
        fenced_until = fence_deadline(now);
        if (!fenced_until)
            start_command();
        return fenced_until;
    case STARTING:
    case RUNNING:
        return step_running(now);
    case FENCED:
        ending_step(now);
        if (ending_is_complete())
            session_over();
        return ending_deadline();
    default:
        return NEVER;
    }
}

/* The lease is over. */
void session_abandon(i64 now)
{
    if (!is_left())
        session_over();
    demand_end(BY_LEASE, SIGTERM, own.start.grace, now);
}

void session_end_by_signal(i64 now)
{
    if (own.phase == WAITING || own.phase == FENCING || own.phase == UNSTARTED)
        session_over();
    if (!ending.is_on)
        demand_end(BY_SIGNAL, SIGTERM, own.start.grace, now);
}

/* A later attempt wants to start. */
void session_fence(i64 now)
{
    own.phase = FENCED;
    demand_end(BY_FENCE, SIGKILL, 0, now);
}
