/* A window of a stream in a buffer whose size is a power of two. */
#include "keeper.h"

#include <string.h>

u64 ring_room(const struct ring *ring)
{
    return ring->size - (ring->end - ring->begin);
}

/* Where these bytes lie: one piece, or two around the buffer's end. */
static int pieces(const struct ring *ring, u64 from, u64 length, struct iovec piece[2])
{
    u64 at = from & (ring->size - 1);
    u64 first = length < ring->size - at ? length : ring->size - at;
    piece[0] = (struct iovec){ring->bytes + at, first};
    piece[1] = (struct iovec){ring->bytes, length - first};
    return length > first ? 2 : 1;
}

/* As read: 0 is the end, or that there was no room. */
ssize_t ring_fill(struct ring *ring, int fd, u64 most)
{
    struct iovec piece[2];
    u64 room = ring_room(ring);
    int count = pieces(ring, ring->end, most < room ? most : room, piece);
    ssize_t got = readv(fd, piece, count);
    if (got > 0)
        ring->end += (u64)got;
    return got;
}

/* As write; what was written is dropped. */
ssize_t ring_drain(struct ring *ring, int fd)
{
    struct iovec piece[2];
    int count = pieces(ring, ring->begin, ring->end - ring->begin, piece);
    ssize_t put = writev(fd, piece, count);
    if (put > 0)
        ring->begin += (u64)put;
    return put;
}

void ring_put(struct ring *ring, const u8 *bytes, size_t length)
{
    struct iovec piece[2];
    pieces(ring, ring->end, length, piece);
    memcpy(piece[0].iov_base, bytes, piece[0].iov_len);
    memcpy(piece[1].iov_base, bytes + piece[0].iov_len, piece[1].iov_len);
    ring->end += length;
}

void ring_copy(const struct ring *ring, u64 from, u8 *to, size_t length)
{
    struct iovec piece[2];
    pieces(ring, from, length, piece);
    memcpy(to, piece[0].iov_base, piece[0].iov_len);
    memcpy(to + piece[0].iov_len, piece[1].iov_base, piece[1].iov_len);
}
