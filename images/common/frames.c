/*
 * Owns: the layout of a header, and the bytes of a connection that are not a whole frame yet.
 *
 * Integers are little endian whatever the processor is. Nothing is queued: what goes out is composed when it can be
 * sent, so a slow peer costs no memory and gets what is true then.
 */
#include "common.h"

u64 get_bytes(const u8 *at, int size)
{
    u64 value = 0;
    while (size--)
        value = value << 8 | at[size];
    return value;
}

void put_bytes(u8 *at, int size, u64 value)
{
    for (; size--; value >>= 8)
        *at++ = (u8)value;
}

static bool is_allowed(const struct frame *frame, const struct frame_rules *rules)
{
    if (frame->type >= rules->count || !rules->of[frame->type].is_known)
        return false;
    const struct frame_rule *rule = &rules->of[frame->type];
    return frame->length >= rule->least && frame->length <= rule->most && (rule->is_numbered || !frame->number);
}

/* A header is judged as soon as it is there, before its payload has come. */
enum parsed frame_parse(const u8 *bytes, size_t size, const struct frame_rules *rules, struct frame *frame)
{
    if (size < HEADER)
        return FRAME_PARTIAL;
    *frame = (struct frame){
        bytes[0], (u32)get_bytes(bytes + 1, 3), get32(bytes + 4), get64(bytes + 8), bytes + HEADER,
    };
    if (!is_allowed(frame, rules))
        return FRAME_BROKEN;
    return size < HEADER + (size_t)frame->length ? FRAME_PARTIAL : FRAME_WHOLE;
}

/* How many bytes the first frame lacks, as far as is known. */
size_t frame_missing(const u8 *bytes, size_t size)
{
    return size < HEADER ? HEADER - size : HEADER + (size_t)get_bytes(bytes + 1, 3) - size;
}

/* The payload follows it. Returns the size of the whole frame. */
size_t frame_head(u8 *to, u8 type, u32 length, u32 epoch, u64 number)
{
    to[0] = type;
    put_bytes(to + 1, 3, length);
    put32(to + 4, epoch);
    put64(to + 8, number);
    return HEADER + (size_t)length;
}

void link_begin(struct link *link, int fd)
{
    link->fd = fd;
    link->ticket = -1;
    link->is_mute = false;
    link->received = link->sent = link->composed = 0;
}

void link_end(struct link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}

/* Something that was composed can't be sent yet. */
bool link_is_held_up(const struct link *link)
{
    return link->sent < link->composed;
}

void link_watch(struct link *link)
{
    link->ticket = watch(link->fd, link_is_held_up(link) && !link->is_mute ? POLLIN | POLLOUT : POLLIN);
}

/* Takes the frames that are whole, and keeps the rest. */
static bool take_frames(struct link *link, const struct frame_rules *rules, bool (*take)(const struct frame *frame))
{
    size_t at = 0, touched = link->received;
    struct frame frame;
    enum parsed parsed;
    while ((parsed = frame_parse(link->incoming + at, link->received - at, rules, &frame)) == FRAME_WHOLE) {
        if (!take(&frame))
            return false;
        at += HEADER + (size_t)frame.length;
    }
    link->received -= at;
    memmove(link->incoming, link->incoming + at, link->received);
    if (link->is_frugal && !link->received && touched > PAGE)
        memory_give_back(link->incoming + PAGE, touched - PAGE);
    return parsed == FRAME_PARTIAL;
}

/* False: the connection has ended, or a frame breaks a rule. Only call it where there is a connection. */
bool link_receive(struct link *link, const struct frame_rules *rules, bool (*take)(const struct frame *frame))
{
    if (!(seen(link->ticket) & ~POLLOUT))
        return true;
    u8 *to = link->incoming + link->received;
    ssize_t got = recv(link->fd, to, link->incoming_size - link->received, MSG_DONTWAIT);
    if (got < 0)
        return is_passing(errno);
    link->received += (size_t)got;
    return got > 0 && take_frames(link, rules, take);
}

/* False: there is nothing to send. */
static bool has_more(struct link *link, size_t (*compose)(u8 *to, size_t room))
{
    if (link_is_held_up(link))
        return true;
    link->sent = 0;
    link->composed = compose(link->outgoing, link->outgoing_size);
    if (link->composed > link->most_composed)
        link->most_composed = link->composed;
    return link->composed;
}

/* Sends until the socket is full or there is nothing more; `note_sent` is called when all that was composed is sent. */
void link_send(struct link *link, size_t (*compose)(u8 *to, size_t room), void (*note_sent)(void))
{
    while (link->fd >= 0 && !link->is_mute && has_more(link, compose)) {
        size_t left = link->composed - link->sent;
        ssize_t put = send(link->fd, link->outgoing + link->sent, left, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR) {
            link->is_mute = errno != EAGAIN;
            return;
        }
        link->sent += put > 0 ? (size_t)put : 0;
        if (!link_is_held_up(link) && note_sent)
            note_sent();
    }
    if (link->is_frugal && !link_is_held_up(link) && link->most_composed > PAGE) {
        memory_give_back(link->outgoing + PAGE, link->most_composed - PAGE);
        link->most_composed = 0;
    }
}
