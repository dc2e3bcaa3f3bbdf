/*
 * The connection to the switchboard: the frames that come over it.
 *
 * A frame that breaks a rule ends it. Output beyond its window breaks one, so everything that comes can be taken
 * at once and the connection is always read.
 */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    int fd;
    int ticket;
    bool is_welcome;
    bool is_mute;            /* it has no reader; what was sent before may still be there to hear */
    size_t length;
} board = {.fd = -1};
static u8 incoming[FRAME_BUFFER] __attribute__((aligned(PAGE)));

void connection_begin(int fd)
{
    board.fd = fd;
    board.ticket = -1;
    board.is_welcome = board.is_mute = false;
    board.length = 0;
    telling_begin();
    outputs_new_connection();
    input_new_connection();
}

void connection_end(void)
{
    if (board.fd >= 0)
        close(board.fd);
    board.fd = -1;
}

bool connection_exists(void)
{
    return board.fd >= 0;
}

void connection_watch(void)
{
    board.ticket = watch(board.fd, telling_is_held_up() && !board.is_mute ? POLLIN | POLLOUT : POLLIN);
}

static bool do_keep(const u8 *payload, size_t length)
{
    memcpy(session.keep, payload, length);
    session.keep_length = length;
    return length > 0;
}

static bool do_output(int stream, const u8 *payload, size_t length)
{
    if (!output_may_take(stream, length))
        return false;
    output_take(stream, payload, length);
    return true;
}

/* WELCOME comes first, and once; before all of HANDOVER was sent, nothing else does but DIRECT. */
static bool do_first_frame(u8 type, const u8 *payload, size_t length)
{
    if (board.is_welcome)
        return type == DIRECT && session_direct(payload, length);
    board.is_welcome = true;
    return type == WELCOME && session_welcome(get32(payload));
}

/* False: it breaks a rule. Sizes are right already. */
static bool do_frame(u8 type, const u8 *payload, size_t length)
{
    if (type == WELCOME || type == DIRECT || !telling_has_handed_over())
        return do_first_frame(type, payload, length);
    switch (type) {
    case KEEP:
        return do_keep(payload, length);
    case OUT:
        return do_output(STDOUT_FILENO, payload, length);
    case ERR:
        return do_output(STDERR_FILENO, payload, length);
    case SAY:
        return output_may_take(STDERR_FILENO, length) && output_say(payload, length);
    case ROOM:
        return input_room(get64(payload));
    case TAKEN:
        return input_taken(get64(payload));
    case FINISH:
        _exit(*payload);
    default:
        follow_begin();
        return true;
    }
}

static const struct {
    u32 least, most;
} sizes[] = {
    [WELCOME] = {8, PAYLOAD_LIMIT},
    [DIRECT] = {0, PAYLOAD_LIMIT},
    [KEEP] = {1, KEEP_LIMIT},
    [OUT] = {0, PAYLOAD_LIMIT},
    [ERR] = {0, PAYLOAD_LIMIT},
    [SAY] = {1, PAYLOAD_LIMIT},
    [ROOM] = {8, 8},
    [TAKEN] = {8, 8},
    [FINISH] = {1, 1},
    [FOLLOW] = {0, 0},
};

/* A header is judged as soon as it is there. */
static bool is_allowed(u8 type, u32 length)
{
    return type >= WELCOME && type <= FOLLOW && length >= sizes[type].least && length <= sizes[type].most;
}

/* Does what has come whole, and keeps the rest. */
static bool do_frames(void)
{
    size_t at = 0;
    while (board.length - at >= HEADER) {
        u32 length = get32(incoming + at);
        u8 type = incoming[at + 4];
        if (!is_allowed(type, length))
            return false;
        if (board.length - at - HEADER < length)
            break;
        if (!do_frame(type, incoming + at + HEADER, length))
            return false;
        at += HEADER + length;
    }
    size_t touched = board.length;
    board.length -= at;
    memmove(incoming, incoming + at, board.length);
    if (!board.length && touched > PAGE)
        madvise(incoming + PAGE, sizeof incoming - PAGE, MADV_DONTNEED);
    return true;
}

/* False: the connection has ended, or has to. */
bool connection_serve(void)
{
    if (!(seen(board.ticket) & ~POLLOUT))
        return true;
    ssize_t got = recv(board.fd, incoming + board.length, sizeof incoming - board.length, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    board.length += (size_t)got;
    return got > 0 && do_frames();
}

/* At the end of each pass: all that has changed in it is known. */
void connection_tell(void)
{
    if (board.fd >= 0 && !board.is_mute)
        board.is_mute = !telling_write(board.fd);
}
