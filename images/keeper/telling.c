/*
 * The keeper's frames, composed one at a time out of its state.
 *
 * Nothing is queued, so a slow agent costs no memory: what changes while it doesn't read is told once, as it is then.
 */
#include "keeper.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct {
    u32 epoch;
    u8 frame[FRAME_LIMIT];
    size_t length, written;
    bool attached, started, exited, failed, fenced, beat, usage;    /* still to be told */
    u64 beat_number, usage_number;
    u64 controls, taken;                                    /* as told last */
    bool closed;
} tell;

void telling_begin(u32 epoch)
{
    tell.epoch = epoch;
    tell.length = tell.written = 0;
    tell.attached = tell.started = tell.exited = tell.failed = tell.fenced = true;
    tell.beat = tell.usage = tell.closed = false;
    output_rewind();
}

/* Of beats that came while none could be answered, the last one is. */
void telling_beat(u64 number)
{
    tell.beat = true;
    tell.beat_number = number;
}

/* The same of what is asked for. It is read only when it can be told. */
void telling_usage(u64 number)
{
    tell.usage = true;
    tell.usage_number = number;
}

static size_t written(enum frame_type type, u64 number, const void *payload, size_t length)
{
    return frame_write(tell.frame, type, tell.epoch, number, payload, length);
}

static size_t attached(void)
{
    u8 payload[9] = {session_has_started()};
    tell.attached = false;
    tell.controls = controls_done();
    tell.taken = stdin_taken();
    put64(payload + 1, tell.taken);
    return written(ATTACHED, tell.controls, payload, sizeof payload);
}

static size_t started(void)
{
    u8 can_attach = place_exists();
    tell.started = false;
    return written(STARTED, (u64)session.pid, &can_attach, 1);
}

static size_t beat(void)
{
    tell.beat = false;
    return written(BEAT_BACK, tell.beat_number, NULL, 0);
}

static size_t controlled(void)
{
    tell.controls = controls_done();
    return written(CONTROLLED, tell.controls, NULL, 0);
}

static size_t taken(void)
{
    u8 closed = stdin_is_closed();
    tell.taken = stdin_taken();
    tell.closed = closed;
    return written(TAKEN, tell.taken, &closed, 1);
}

static size_t used(void)
{
    struct usage usage = usage_now();
    u8 payload[20];
    tell.usage = false;
    put64(payload, usage.cpu);
    put64(payload + 8, usage.memory);
    put32(payload + 16, usage.count);
    return written(USAGE_BACK, tell.usage_number, payload, sizeof payload);
}

static size_t failed(void)
{
    tell.failed = false;
    return written(FAILED, (u64)session.error, session.problem.bytes, session.problem.length);
}

static size_t exited(void)
{
    bool killed = WIFSIGNALED(session.status);
    u8 payload[20] = {
        killed,
        (u8)(killed ? WTERMSIG(session.status) : WEXITSTATUS(session.status)),
        session.output_was_held,
        (u8)session.ended_by,
    };
    tell.exited = false;
    put64(payload + 4, output_length(STDOUT));
    put64(payload + 12, output_length(STDERR));
    return written(EXIT, 0, payload, sizeof payload);
}

static size_t fenced(void)
{
    tell.fenced = false;
    return written(FENCED_OUT, 0, NULL, 0);
}

static size_t output(void)
{
    int stream;
    u64 offset;
    size_t length = output_next(&stream, &offset, tell.frame + HEADER);
    return length ? written(stream == STDOUT ? OUT : ERR, offset, tell.frame + HEADER, length) : 0;
}

/* What is most urgent; 0 when there is nothing to say. */
static size_t composed(void)
{
    if (tell.attached)
        return attached();
    if (tell.started && session_has_started())
        return started();
    if (tell.beat)
        return beat();
    if (tell.controls != controls_done())
        return controlled();
    if (stdin_taken() - tell.taken >= TAKEN_TOLD || tell.closed != stdin_is_closed())
        return taken();
    if (tell.failed && session.phase == UNSTARTED)
        return failed();
    if (session.phase == FENCED)
        return tell.fenced ? fenced() : 0;
    if (tell.usage)
        return used();
    size_t length = output();
    if (!length && tell.exited && session.phase == ENDED)
        return exited();
    return length;
}

/* Writes until the socket is full or nothing is left to say. False: the connection is broken. */
bool telling_write(int fd)
{
    for (;;) {
        if (tell.written == tell.length) {
            tell.written = 0;
            tell.length = composed();
        }
        if (!tell.length)
            return true;
        ssize_t put = send(fd, tell.frame + tell.written, tell.length - tell.written, MSG_NOSIGNAL);
        if (put < 0)
            return errno == EAGAIN || errno == EINTR;
        tell.written += (size_t)put;
    }
}

bool telling_is_held_up(void)
{
    return tell.written < tell.length;
}

bool failure_is_told(void)
{
    return session.phase == UNSTARTED && !tell.failed && !telling_is_held_up();
}
