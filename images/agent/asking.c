/*
 * Asking a switchboard one thing and waiting for the answer, as mpirt-discover and mpirt-init do.
 *
 * Owns: how long that may take, and the reason why there is no answer.
 */
#include "agent.h"

enum { WELCOME_SIZE = 8 };

static i64 until;
static const char *why = "";

/* Until when an answer is waited for. */
void asking_begin(i64 limit)
{
    until = limit;
}

/* Empty: nothing was asked. */
const char *refusal(void)
{
    return why;
}

bool refuse(const char *reason)
{
    why = reason;
    return false;
}

/* Moves on by what was sent or has come. False: the connection is over. */
static bool advance(u8 **bytes, size_t *left, ssize_t done, bool is_end)
{
    if (is_end || (done < 0 && !is_passing(errno)))
        return refuse("the switchboard has closed the connection");
    *bytes += done > 0 ? done : 0;
    *left -= done > 0 ? (size_t)done : 0;
    return true;
}

static bool is_too_late(int fd, short events)
{
    return !wait_for(fd, events, until) && !refuse("the switchboard does not answer in time");
}

bool ask_with(int fd, u8 *bytes, size_t length)
{
    while (length)
        if (is_too_late(fd, POLLOUT)
            || !advance(&bytes, &length, send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT), false))
            return false;
    return true;
}

static bool receive(int fd, u8 *bytes, size_t length)
{
    while (length) {
        if (is_too_late(fd, POLLIN))
            return false;
        ssize_t got = recv(fd, bytes, length, MSG_DONTWAIT);
        if (!advance(&bytes, &length, got, got == 0))
            return false;
    }
    return true;
}

/* False: no frame of this type comes, whose payload has room. */
bool answer_frame(int fd, enum frame_type type, u8 *payload, size_t room, size_t *length, const char *otherwise)
{
    u8 head[HEADER];
    if (!receive(fd, head, sizeof head))
        return false;
    *length = get32(head) >> 8;
    if (head[0] != type || *length > room)
        return refuse(otherwise);
    return receive(fd, payload, *length);
}

/* Comes first. */
bool answer_welcome(int fd)
{
    static const char other[] = "the switchboard is of another version of mpirt";
    u8 welcome[WELCOME_SIZE];
    size_t length;
    return answer_frame(fd, WELCOME, welcome, sizeof welcome, &length, other)
        && ((length == sizeof welcome && get32(welcome) == PROTOCOL) || refuse(other));
}
