/*
 * stdin: what was read of it, until the switchboard says that it is not needed any more.
 *
 * Owns: the ring. Nothing is read that the switchboard has not asked for: what others who share this stdin are to
 * read stays there.
 */
#include "agent.h"

#include <sys/sysmacros.h>
#include <termios.h>

enum { MOST_AT_ONCE = 64 << 10, LOOK_AGAIN = 500 };

static u8 kept[STDIN_KEPT] __attribute__((aligned(PAGE)));

static struct input own;
const struct input *const input = &own;

static struct {
    enum way way;
    int fd;
    int ticket;
    struct aside aside;
    bool is_terminal;
    bool end_is_told;
    u64 room;                /* read up to here */
    u64 base;                /* the offset in stdin of the ring's offset 0 */
    u64 told;                /* in the ring: what was sent, or handed over */
    struct ring ring;
} in = {.ring = {.bytes = kept, .size = STDIN_KEPT}};

void input_begin(void)
{
    struct stat status;
    bool is_null = fstat(STDIN_FILENO, &status) < 0
        || (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3));
    own.is_there = !is_null;
}

/* The next switchboard says anew how far stdin may be read. */
void input_new_connection(void)
{
    in.room = 0;
}

static bool is_in_the_background(void)
{
    if (!in.is_terminal)
        return false;
    pid_t group = tcgetpgrp(in.fd);
    /* Only the terminal of our own session stops a reader in the background. */
    return group >= 0 && group != getpgrp();
}

static bool is_wanted(void)
{
    return !own.has_ended && !own.error && in.room > in.base + in.ring.end && ring_room(&in.ring);
}

static void look(void)
{
    in.way = way_to_use(STDIN_FILENO, O_RDONLY, &in.fd);
    in.is_terminal = isatty(in.fd);
}

/* In the background it looks now and then whether it still is. */
void input_watch(i64 now, i64 *until)
{
    in.ticket = -1;
    if (in.aside.is_busy && !in.aside.is_done) {
        in.ticket = watch(in.aside.ended, POLLIN);
        return;
    }
    if (!is_wanted())
        return;
    if (in.way == UNKNOWN)
        look();
    if (is_in_the_background())
        *until = sooner(*until, now + LOOK_AGAIN);
    else if (in.way == ASIDE)
        *until = now;
    else
        in.ticket = watch(in.fd, POLLIN);
}

static void account(ssize_t got, int error)
{
    if (got > 0) {
        in.ring.end += (u64)got;
        own.has_come = true;
    } else if (got == 0) {
        own.has_come = own.has_ended = true;
    } else if (!is_passing(error) && !is_in_the_background()) {
        own.error = (u32)error;
    }
}

static struct iovec space(void)
{
    struct iovec space = ring_space(&in.ring);
    u64 most = in.room - in.base - in.ring.end;
    if (most > MOST_AT_ONCE)
        most = MOST_AT_ONCE;
    if (space.iov_len > most)
        space.iov_len = most;
    return space;
}

void input_serve(void)
{
    if (in.aside.is_busy) {
        if (!aside_is_over(&in.aside))
            return;
        account(in.aside.result, in.aside.error);
    }
    if (!is_wanted() || in.way == UNKNOWN || is_in_the_background())
        return;
    if (in.way == ASIDE) {
        aside_begin(&in.aside, in.fd, false, space());
    } else if (seen(in.ticket)) {
        struct iovec to = space();
        ssize_t got = in.way == OWN ? read(in.fd, to.iov_base, to.iov_len)
                                    : recv(in.fd, to.iov_base, to.iov_len, MSG_DONTWAIT);
        account(got, errno);
    }
}

/* False: it is less than an earlier one, which may have been read already. */
bool input_room(u64 offset)
{
    bool is_more = offset >= in.room;
    in.room = offset;
    return is_more;
}

/* False: it has not been told yet. */
bool input_taken(u64 offset)
{
    if (offset > in.base + in.told)
        return false;
    if (offset > in.base + in.ring.begin)
        in.ring.begin = offset - in.base;
    if (!ring_length(&in.ring) && in.ring.end && !in.aside.is_busy) {
        in.base += ring_rest(&in.ring);
        in.told = 0;
    }
    return true;
}

u64 input_offset(void)
{
    return in.base + in.ring.begin;
}

/* HANDOVER tells everything that is there, and that it ended. */
size_t input_hand_over(void)
{
    in.told = in.ring.end;
    in.end_is_told = own.has_ended;
    return ring_length(&in.ring);
}

void input_copy(u8 *to, size_t length)
{
    ring_copy(&in.ring, in.ring.begin, to, length);
}

/*
 * What was not told yet, as much as there is room for; 0 where there is none. A read that was under way when the last
 * switchboard ended may have brought more than this one has asked for.
 */
size_t input_next(u8 *to, size_t size)
{
    u64 told = in.base + in.told, length = in.ring.end - in.told;
    u64 asked = in.room > told ? in.room - told : 0;
    if (length > asked)
        length = asked;
    if (length > size)
        length = size;
    ring_copy(&in.ring, in.told, to, length);
    in.told += length;
    return length;
}

/* Once, after the last byte. */
bool input_tells_end(void)
{
    bool tells = own.has_ended && !in.end_is_told && in.told == in.ring.end;
    in.end_is_told = in.end_is_told || tells;
    return tells;
}
