/* Frames as bytes. Owns: the layout of a header. */
#include "keeper.h"

#include <string.h>

/* How long what follows may be, and whether the number has to be 0. */
static const struct {
    u16 least, most;
    bool is_unnumbered;
} rules[] = {
    [ATTACH] = {16, 16, true},
    [CONTROL] = {1, PAYLOAD_LIMIT, false},
    [STDIN] = {1, PAYLOAD_LIMIT, false},
    [STDIN_END] = {0, 0, false},
    [ACK] = {16, 16, true},
    [DONE] = {0, 0, true},
    [BEAT] = {0, 0, false},
    [FENCE] = {CLAIM + 1, CLAIM + JOB_LIMIT - 1, false},
    [USAGE] = {0, 0, false},
};

static bool is_allowed(const struct frame *frame)
{
    return frame->type >= ATTACH && frame->type <= USAGE
        && frame->length >= rules[frame->type].least && frame->length <= rules[frame->type].most
        && !(rules[frame->type].is_unnumbered && frame->number);
}

/* A header is judged as soon as it is there, before what follows has come. */
enum parsed frame_parse(const u8 *bytes, size_t size, struct frame *frame)
{
    if (size < HEADER)
        return PARTIAL;
    frame->type = bytes[0];
    frame->length = get16(bytes + 2);
    frame->epoch = get32(bytes + 4);
    frame->number = get64(bytes + 8);
    frame->payload = bytes + HEADER;
    if (bytes[1] || !is_allowed(frame))
        return BROKEN;
    return size < HEADER + (size_t)frame->length ? PARTIAL : WHOLE;
}

/* The payload may stand in its place already. Returns the frame's size. */
size_t frame_write(u8 *to, enum frame_type type, u32 epoch, u64 number, const void *payload, size_t length)
{
    to[0] = (u8)type;
    to[1] = 0;
    put16(to + 2, (u16)length);
    put32(to + 4, epoch);
    put64(to + 8, number);
    if (length && payload != to + HEADER)
        memcpy(to + HEADER, payload, length);
    return HEADER + length;
}
