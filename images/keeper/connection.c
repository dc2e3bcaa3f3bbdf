/*
 * The agent's connection: the frames that come over it.
 *
 * A frame that breaks a rule ends the connection. stdin beyond its window breaks one, so everything that comes can
 * be dealt with at once and the connection is always read.
 */
#include "keeper.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static struct {
    int fd;
    int ticket;
    u32 epoch;               /* the highest so far */
    i64 heard_at;            /* the last frame, or the end of the last connection */
    bool is_mute;            /* nobody reads it; what was sent before may still be there to hear */
    size_t length;
} agent = {.fd = -1};
/* Apart from the rest, so that it takes no room in the file. */
static u8 incoming[FRAME_LIMIT];

static void drop(i64 now)
{
    close(agent.fd);
    agent.fd = -1;
    agent.heard_at = now;
}

static void get_received(const struct frame *frame, u64 received[OUTPUTS])
{
    received[STDOUT] = get64(frame->payload);
    received[STDERR] = get64(frame->payload + 8);
}

/* The connection whose first frame this ATTACH is becomes the agent's, or is closed. */
void connection_adopt(int fd, const struct frame *attach, i64 now)
{
    u64 received[OUTPUTS];
    get_received(attach, received);
    if (attach->epoch <= agent.epoch || !output_acknowledge(received)) {
        close(fd);
        return;
    }
    if (agent.fd >= 0)
        drop(now);
    agent.fd = fd;
    agent.ticket = -1;
    agent.epoch = attach->epoch;
    agent.heard_at = now;
    agent.length = 0;
    agent.is_mute = false;
    telling_begin(agent.epoch);
}

/* Nobody has been heard before that. */
void connection_begin(i64 now)
{
    agent.heard_at = now;
}

bool connection_exists(void)
{
    return agent.fd >= 0;
}

i64 connection_heard_at(void)
{
    return agent.heard_at;
}

void connection_watch(void)
{
    agent.ticket = watch(agent.fd, telling_is_held_up() && !agent.is_mute ? POLLIN | POLLOUT : POLLIN);
}

/* False: it breaks a rule. */
static bool do_frame(const struct frame *frame, i64 now)
{
    u64 received[OUTPUTS];
    if (frame->epoch != agent.epoch)
        return false;
    switch (frame->type) {
    case CONTROL:
        return control_do(frame, now);
    case STDIN:
        return stdin_accept(frame->number, frame->payload, frame->length);
    case STDIN_END:
        return stdin_end(frame->number);
    case ACK:
        get_received(frame, received);
        return output_acknowledge(received);
    case DONE:
        if (session.phase == ENDED || failure_is_told())
            session_over();
        return false;
    case BEAT:
        telling_beat(frame->number);
        return true;
    case USAGE:
        telling_usage(frame->number);
        return true;
    default:
        return false;
    }
}

/* Does what has come whole, and keeps the rest. */
static bool do_frames(i64 now)
{
    size_t at = 0;
    struct frame frame;
    enum parsed parsed;
    while ((parsed = frame_parse(incoming + at, agent.length - at, &frame)) == WHOLE) {
        if (!do_frame(&frame, now))
            return false;
        agent.heard_at = now;
        at += HEADER + (size_t)frame.length;
    }
    agent.length -= at;
    memmove(incoming, incoming + at, agent.length);
    return parsed == PARTIAL;
}

/* False: the connection has ended, or has to. */
static bool hear(i64 now)
{
    ssize_t got = read(agent.fd, incoming + agent.length, sizeof incoming - agent.length);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    agent.length += (size_t)got;
    return got > 0 && do_frames(now);
}

void connection_serve(i64 now)
{
    if (agent.fd >= 0 && seen(agent.ticket) & ~POLLOUT && !hear(now))
        drop(now);
}

/* At the end of each pass: all that has changed in it is known. */
void connection_tell(void)
{
    if (agent.fd >= 0 && !agent.is_mute)
        agent.is_mute = !telling_write(agent.fd);
}
