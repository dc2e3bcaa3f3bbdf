/*
 * One command: looking for a switchboard, talking to it, and what becomes of the command where there is none.
 *
 * Owns: the loop, and how often which failure is forgiven.
 */
#include "agent.h"

enum {
    EARLY_ENDS = 3,          /* in a row, before WELCOME */
    ENDS = 5, ENDS_PERIOD = 60000,
    RETRY = 10,              /* while others start a switchboard, or it has no time */
    AFTER_EARLY_END = 50,    /* a switchboard that is ending may still listen */
};

struct session session;

static struct {
    enum { CONNECTING, GREETING, TALKING, LEAVING } phase;
    i64 until;               /* CONNECTING, GREETING: no longer; LEAVING: what waits to be written is dropped */
    i64 retry_at;
    int fd;                  /* GREETING: its connection, */
    i64 begun, busy_before;  /* since when, and how busy the switchboard had been by then */
    int early_ends;
    i64 ends[ENDS];
    int end_count;
    bool is_private;         /* the switchboard is this agent's own */
    int code;
} state;

/* Whether there may be a command. */
static bool has_progressed(void)
{
    return session.keep_length || output_come(STDOUT_FILENO) || output_come(STDERR_FILENO) || input->has_come;
}

static void say(const char *one, const char *two, const char *three)
{
    static struct text line;
    text_begin(&line, "mpirt-rsh: ", one, two, three, "\n");
    output_say_own(&line);
}

static void look_for_one(i64 now, i64 pause)
{
    state.phase = CONNECTING;
    state.until = now + WELCOME_PATIENCE;
    state.retry_at = now + pause;
}

static void use_private_switchboard(i64 now)
{
    connection_end();
    state.is_private = true;
    state.end_count = 0;
    look_for_one(now, 0);
}

/* A switchboard of its own goes on where the shared ones have failed, with the last one's record. */
static void give_up(const char *reason)
{
    const char *what = has_progressed() ? "the switchboard is lost: " : "no switchboard: ";
    if (!state.is_private) {
        say(what, reason, "; this command gets one of its own");
        use_private_switchboard(clock_now());
        return;
    }
    say(what, reason, "");
    connection_end();
    state.code = has_progressed() ? LOST : FAILED;
    state.phase = LEAVING;
    state.until = clock_now() + DRAIN_PATIENCE;
}

/* A private one has no log: it writes to this agent's stderr. */
static void give_up_with_log(const char *reason)
{
    static struct text both;
    const char *log = state.is_private ? "" : last_log();
    text_begin(&both, reason, *log ? "; see " : "", log);
    give_up(both.bytes);
}

static void connect_now(i64 now)
{
    int fd = -1;
    switch (state.is_private ? connect_privately(&fd) : connect_somewhere(&fd, now)) {
    case REACHED:
        connection_begin(fd);
        state.phase = GREETING;
        state.fd = fd;
        state.begun = now;
        state.busy_before = board_busy(fd);
        state.until = now + WELCOME_PATIENCE;
        break;
    case LATER:
        state.retry_at = now + RETRY;
        break;
    case NOWHERE:
        give_up(problem_text());
    }
}

/* False: nothing more is to be done with this connection. */
bool session_welcome(u32 protocol)
{
    state.early_ends = 0;
    state.phase = TALKING;
    if (protocol != PROTOCOL)
        give_up("the one that runs here is of another version of mpirt");
    else if (!connection_hand_over())
        give_up("the words and variables of this command are longer than 8 MiB");
    else
        return true;
    return false;
}

/* False: too late for that, or this connection is over. */
bool session_direct(const u8 *reason, size_t length)
{
    if (has_progressed() || state.is_private)
        return false;
    static struct text text;
    if (length > sizeof text.bytes - 1)
        length = sizeof text.bytes - 1;
    memcpy(text.bytes, reason, length);
    text.bytes[length] = 0;
    if (is_set_to("MPIRT_LOG", "debug"))
        say("this command gets a switchboard of its own: ", text.bytes, "");
    use_private_switchboard(clock_now());
    return false;
}

/* Whether this is one end too many in so short a time. */
static bool ends_too_often(i64 now)
{
    i64 *oldest = &state.ends[state.end_count % ENDS];
    *oldest = now;
    state.end_count++;
    return state.end_count >= ENDS && now - state.ends[state.end_count % ENDS] <= ENDS_PERIOD;
}

static void lose_connection(i64 now)
{
    connection_end();
    if (state.phase == GREETING) {
        if (state.is_private)
            give_up("it ended before it said a word");
        else if (++state.early_ends == EARLY_ENDS)
            give_up_with_log("it ended three times before it said a word");
        else
            look_for_one(now, AFTER_EARLY_END << (2 * state.early_ends));
        return;
    }
    if (ends_too_often(now))
        give_up_with_log("it ended five times within a minute");
    else
        look_for_one(now, 0);
}

/*
 * Whether the switchboard had its time and said nothing. It would not help to start another one on a busy machine:
 * a thousand agents would start a thousand.
 */
static bool is_stuck(i64 now)
{
    i64 patience = WELCOME_PATIENCE + board_busy(state.fd) - state.busy_before;
    state.until = state.begun + sooner(patience, WELCOME_LIMIT);
    return now >= state.until;
}

static void go_on(i64 now)
{
    if (state.phase == LEAVING && (outputs_are_drained() || now >= state.until))
        _exit(state.code);
    if (state.phase == CONNECTING && now >= state.retry_at)
        connect_now(now);
    if (state.phase == CONNECTING && now >= state.until)
        give_up_with_log("it can't be reached");
    else if (state.phase == GREETING && now >= state.until && is_stuck(now))
        give_up_with_log("it does not answer");
}

static i64 watch_all(i64 now)
{
    i64 until = NEVER;
    watch_clear();
    outputs_watch();
    if (state.phase != LEAVING)
        input_watch(now, &until);
    follow_watch(now, &until);
    connection_watch();
    if (state.phase != TALKING)
        until = sooner(until, state.until);
    if (state.phase == CONNECTING)
        until = sooner(until, state.retry_at);
    return until;
}

_Noreturn void agent_run(void)
{
    signals_begin();
    open_what_is_closed();
    i64 now = clock_now();
    input_begin();
    state.is_private = launch_wants_private_switchboard();
    look_for_one(now, 0);
    for (;;) {
        i64 until = watch_all(now);
        watch_wait(now, until, signals_mask());
        now = clock_now();
        follow_serve(now, has_progressed() ? DAEMON_GRACE : 0);
        if (!connection_serve() && connection_exists())
            lose_connection(now);
        outputs_serve();
        if (state.phase != LEAVING)
            input_serve();
        go_on(now);
        connection_tell();
    }
}
