/*
 * Owns: the connections to other sessions, and which of two launchers is the later one.
 *
 * Every other session gets the job, the attempt and the launcher. One that is fenced ends, and with it the connection;
 * any other closes the connection at once. Either way this session waits for that end, without blocking the loop: two
 * keepers that fence each other must both be able to answer.
 *
 * Of two launchers without attempts, the later is the one whose session was made later in this container. This is
 * known without a clock of another machine: START is sent only after the first line was read, so its launcher still
 * ran when the session was made.
 */
#include "keeper.h"

#include <time.h>

enum { SESSIONS = 64, PATIENCE = 10000, HEARD = 8 };

static struct {
    int fd, ticket;
} others[SESSIONS];
static size_t count;
static i64 until;
static u64 made;             /* when this session was, in nanoseconds of CLOCK_MONOTONIC: no two are the same */
static const struct start *own;     /* NULL: START has not come yet */
/* The last claims of others before that. */
static struct heard {
    u64 made;
    size_t length;
    u8 claim[CLAIM + JOB_LIMIT];
} heard[HEARD];
static size_t heard_count;

/* The socket has its name by now: a session that is made later finds it. */
void fence_stamp(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    made = (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

void fence_claim(const struct start *start)
{
    own = start;
}

/* Whether a session of our job, by its claim, is a later launcher's than ours. */
static bool is_later(u64 others_made, const u8 *claim, size_t length)
{
    u64 attempt = get64(claim), launcher = get64(claim + 8);
    if (!own || !*own->job || length != CLAIM + strlen(own->job)
        || memcmp(claim + CLAIM, own->job, length - CLAIM) != 0)
        return false;
    if (!launcher && !own->launcher)
        return attempt > own->attempt;
    return launcher != own->launcher && others_made > made;
}

static bool send_claim(int fd)
{
    u8 frame[HEADER + CLAIM + JOB_LIMIT], *claim = frame + HEADER;
    size_t job_length = strlen(own->job);
    put64(claim, own->attempt);
    put64(claim + 8, own->launcher);
    memcpy(claim + CLAIM, own->job, job_length);
    size_t length = frame_head(frame, FENCE, (u32)(CLAIM + job_length), 0, made);
    if (send(fd, frame, length, MSG_NOSIGNAL) == (ssize_t)length)
        others[count++].fd = fd;
    else
        close(fd);
    return count < SESSIONS;
}

/* Of a job that may be ours: START has not come yet. */
void fence_hear(const struct frame *fence)
{
    struct heard *next = &heard[heard_count++ % HEARD];
    next->made = fence->number;
    next->length = fence->length;
    memcpy(next->claim, fence->payload, fence->length);
}

/* A later launcher of our job has begun. */
bool fence_forbids(void)
{
    for (size_t number = 0; number < HEARD && number < heard_count; number++)
        if (is_later(heard[number].made, heard[number].claim, heard[number].length))
            return true;
    return false;
}

bool fence_hits(const struct frame *fence)
{
    return is_later(fence->number, fence->payload, fence->length);
}

void fence_begin(i64 now)
{
    until = now + PATIENCE;
    if (*own->job)
        place_visit_others(until, send_claim);
}

void fence_watch(void)
{
    for (size_t number = 0; number < count; number++)
        others[number].ticket = watch(others[number].fd, POLLIN);
}

void fence_serve(void)
{
    u8 nothing[64];
    for (size_t number = count; number-- > 0;) {
        if (!seen(others[number].ticket))
            continue;
        ssize_t got = read(others[number].fd, nothing, sizeof nothing);
        if (got > 0 || (got < 0 && is_passing(errno)))
            continue;
        close(others[number].fd);
        others[number] = others[--count];
    }
}

/* When it is over whatever the others do; 0: it is. */
i64 fence_deadline(i64 now)
{
    if (count && now < until)
        return until;
    while (count)
        close(others[--count].fd);
    return 0;
}
