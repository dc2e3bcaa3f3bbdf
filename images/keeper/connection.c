/*
 * Owns: which frames an agent may send, and what was reported on this connection.
 *
 * A frame that breaks a rule ends the connection. stdin beyond its window breaks one, so everything that comes can be
 * dealt with at once and the connection is always read. Nothing is queued for a slow agent: what changes while it
 * doesn't read is reported once, with its last value.
 */
#include "keeper.h"

enum { TAKEN_STEP = STDIN_KEPT / 4 };    /* as seldom as this: every frame has a long way to go */

static const struct frame_rule rules[] = {
    [ATTACH] = {16, 16, .is_known = true},
    [CONTROL] = {1, PAYLOAD_LIMIT, .is_known = true, .is_numbered = true},
    [STDIN] = {1, PAYLOAD_LIMIT, .is_known = true, .is_numbered = true},
    [STDIN_END] = {0, 0, .is_known = true, .is_numbered = true},
    [ACK] = {16, 16, .is_known = true},
    [DONE] = {0, 0, .is_known = true},
    [BEAT] = {0, 0, .is_known = true, .is_numbered = true},
    [FENCE] = {CLAIM + 1, CLAIM + JOB_LIMIT - 1, .is_known = true, .is_numbered = true},
    [USAGE] = {0, 0, .is_known = true, .is_numbered = true},
};
const struct frame_rules agent_rules = {rules, sizeof rules / sizeof *rules};

static u8 incoming[FRAME_LIMIT], outgoing[FRAME_LIMIT];
static struct link agent = {
    .fd = -1,
    .incoming = incoming,
    .incoming_size = sizeof incoming,
    .outgoing = outgoing,
    .outgoing_size = sizeof outgoing,
};
static u32 epoch;            /* the highest so far */
static i64 heard_at;         /* the last frame, or the end of the last connection */
static i64 pass;             /* the time of this one */

static struct {
    bool attached, started, exited, failed, fenced, beat, usage;    /* still to be sent */
    u64 beat_number, usage_number;
    u64 controls, taken;     /* as sent last */
    bool closed;
} news;

static void drop(i64 now)
{
    link_end(&agent);
    heard_at = now;
}

/* The lease counts from here until there is a connection. */
void connection_begin(i64 now)
{
    heard_at = now;
}

static bool acknowledge(const struct frame *frame)
{
    u64 received[OUTPUTS] = {[STDOUT] = get64(frame->payload), [STDERR] = get64(frame->payload + 8)};
    return output_acknowledge(received);
}

/* The connection whose first frame this ATTACH is becomes the agent's, or is closed. */
void connection_adopt(int fd, const struct frame *attach, i64 now)
{
    if (attach->epoch <= epoch || !acknowledge(attach)) {
        close(fd);
        return;
    }
    drop(now);
    link_begin(&agent, fd);
    epoch = attach->epoch;
    news.attached = news.started = news.exited = news.failed = news.fenced = true;
    news.beat = news.usage = news.closed = false;
    output_rewind();
}

bool connection_exists(void)
{
    return agent.fd >= 0;
}

i64 connection_heard_at(void)
{
    return heard_at;
}

void connection_watch(void)
{
    link_watch(&agent);
}

/* Of several that come while none can be answered, the last one is. */
static bool note(bool *is_due, u64 *number, const struct frame *frame)
{
    *number = frame->number;
    return *is_due = true;
}

static bool do_done(void)
{
    bool failure_is_sent = session->phase == UNSTARTED && !news.failed && !link_is_held_up(&agent);
    if (session->phase == ENDED || failure_is_sent)
        session_over();
    return false;
}

/* False: it breaks a rule. */
static bool do_frame(const struct frame *frame)
{
    switch (frame->type) {
    case CONTROL:
        return session_control(frame, pass);
    case STDIN:
        return stdin_accept(frame->number, frame->payload, frame->length);
    case STDIN_END:
        return stdin_end(frame->number);
    case ACK:
        return acknowledge(frame);
    case DONE:
        return do_done();
    case BEAT:
        return note(&news.beat, &news.beat_number, frame);
    case USAGE:
        return note(&news.usage, &news.usage_number, frame);
    default:
        return false;
    }
}

static bool take(const struct frame *frame)
{
    if (frame->epoch != epoch || !do_frame(frame))
        return false;
    heard_at = pass;
    return true;
}

void connection_serve(i64 now)
{
    pass = now;
    if (agent.fd >= 0 && !link_receive(&agent, &agent_rules, take))
        drop(now);
}

/* The payload is in its place already. */
static size_t head(u8 *to, enum frame_type type, u64 number, size_t length)
{
    return frame_head(to, (u8)type, (u32)length, epoch, number);
}

static size_t write_attached(u8 *to)
{
    news.attached = false;
    news.controls = session->controls;
    news.taken = stdin_taken();
    to[HEADER] = session_has_started();
    put64(to + HEADER + 1, news.taken);
    return head(to, ATTACHED, news.controls, 9);
}

static size_t write_started(u8 *to)
{
    news.started = false;
    to[HEADER] = place_exists();
    return head(to, STARTED, (u64)command->pid, 1);
}

static size_t write_taken(u8 *to)
{
    news.taken = stdin_taken();
    to[HEADER] = news.closed = stdin_is_closed();
    return head(to, TAKEN, news.taken, 1);
}

static size_t write_usage(u8 *to)
{
    struct usage usage = usage_now();
    news.usage = false;
    put64(to + HEADER, usage.cpu);
    put64(to + HEADER + 8, usage.memory);
    put32(to + HEADER + 16, usage.count);
    return head(to, USAGE_BACK, news.usage_number, 20);
}

static size_t write_failed(u8 *to)
{
    news.failed = false;
    memcpy(to + HEADER, session->problem.bytes, session->problem.length);
    return head(to, FAILED, (u64)session->error, session->problem.length);
}

static size_t write_exit(u8 *to)
{
    int status = command->status;
    bool is_killed = WIFSIGNALED(status);
    news.exited = false;
    to[HEADER] = is_killed;
    to[HEADER + 1] = (u8)(is_killed ? WTERMSIG(status) : WEXITSTATUS(status));
    to[HEADER + 2] = output_was_held();
    to[HEADER + 3] = (u8)session->ended_by;
    put64(to + HEADER + 4, output_length(STDOUT));
    put64(to + HEADER + 12, output_length(STDERR));
    return head(to, EXIT, 0, 20);
}

static size_t write_output(u8 *to)
{
    int stream;
    u64 offset;
    size_t length = output_next(&stream, &offset, to + HEADER);
    return length ? head(to, stream == STDOUT ? OUT : ERR, offset, length) : 0;
}

/* Behind what is more urgent: all that is sent once the command is over, or its output. */
static size_t write_rest(u8 *to)
{
    if (news.failed && session->phase == UNSTARTED)
        return write_failed(to);
    if (session->phase == FENCED) {
        bool is_due = news.fenced;
        news.fenced = false;
        return is_due ? head(to, FENCED_OUT, 0, 0) : 0;
    }
    if (news.usage)
        return write_usage(to);
    size_t length = write_output(to);
    return !length && news.exited && session->phase == ENDED ? write_exit(to) : length;
}

/* What is most urgent; 0 when there is nothing to say. */
static size_t compose(u8 *to, size_t room)
{
    (void)room;
    if (news.attached)
        return write_attached(to);
    if (news.started && session_has_started())
        return write_started(to);
    if (news.beat) {
        news.beat = false;
        return head(to, BEAT_BACK, news.beat_number, 0);
    }
    if (news.controls != session->controls) {
        news.controls = session->controls;
        return head(to, CONTROLLED, news.controls, 0);
    }
    if (stdin_taken() - news.taken >= TAKEN_STEP || news.closed != stdin_is_closed())
        return write_taken(to);
    return write_rest(to);
}

/* At the end of each pass: all that has changed in it is known. */
void connection_tell(void)
{
    link_send(&agent, compose, NULL);
}
