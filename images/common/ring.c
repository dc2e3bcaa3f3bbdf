/* Owns: where in the buffer each byte of a window lies. */
#include "common.h"

u64 ring_length(const struct ring *ring)
{
    return ring->end - ring->begin;
}

u64 ring_room(const struct ring *ring)
{
    return ring->size - ring_length(ring);
}

static struct iovec piece(const struct ring *ring, u64 from, u64 length)
{
    u64 at = from & (ring->size - 1);
    return (struct iovec){ring->bytes + at, length < ring->size - at ? length : ring->size - at};
}

struct iovec ring_bytes(const struct ring *ring)
{
    return piece(ring, ring->begin, ring_length(ring));
}

struct iovec ring_space(const struct ring *ring)
{
    return piece(ring, ring->end, ring_room(ring));
}

void ring_put(struct ring *ring, const u8 *bytes, size_t length)
{
    while (length) {
        struct iovec space = ring_space(ring);
        size_t part = length < space.iov_len ? length : space.iov_len;
        memcpy(space.iov_base, bytes, part);
        ring->end += part;
        bytes += part;
        length -= part;
    }
}

void ring_copy(const struct ring *ring, u64 from, u8 *to, size_t length)
{
    while (length) {
        struct iovec part = piece(ring, from, length);
        memcpy(to, part.iov_base, part.iov_len);
        from += part.iov_len;
        to += part.iov_len;
        length -= part.iov_len;
    }
}

/*
 * An empty ring begins anew, in the page that it has touched already, and gives back those beyond the first.
 * Returns by how much its offsets have become smaller.
 */
u64 ring_rest(struct ring *ring)
{
    u64 shift = ring->begin;
    u64 touched = ring->end < ring->size ? ring->end : ring->size;
    if (touched > PAGE)
        memory_give_back(ring->bytes + PAGE, touched - PAGE);
    ring->begin = ring->end = 0;
    return shift;
}
