/* A window of a stream, in a buffer whose size is a power of two. */
#ifndef RING_H
#define RING_H

#include "types.h"

#include <sys/uio.h>

/* The bytes begin...end of the stream, counted from its start. */
struct ring {
    u8 *bytes;
    u64 size;
    u64 begin, end;
};
u64 ring_length(const struct ring *ring);
u64 ring_room(const struct ring *ring);
void ring_put(struct ring *ring, const u8 *bytes, size_t length);
void ring_copy(const struct ring *ring, u64 from, u8 *to, size_t length);
/* The first bytes that wait, or the first room, in one piece. */
struct iovec ring_bytes(const struct ring *ring);
struct iovec ring_space(const struct ring *ring);
u64 ring_rest(struct ring *ring);

#endif
