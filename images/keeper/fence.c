/*
 * The fence: before a command starts, what earlier launchers of its job have left in this container ends.
 *
 * Every other session is told of the job, the attempt and the launcher. One that is fenced ends, and with it the
 * connection; any other closes the connection at once. Either way its end is what is waited for, without standing in
 * the loop's way: two keepers that fence each other must both be able to answer.
 *
 * Of two launchers without attempts, the later is the one whose session was made later in this container. This is
 * known without a clock of another machine: START is sent only after the first line was read, so its launcher still
 * ran when the session was made.
 */
#include "keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SESSIONS = 64, PATIENCE = 10000, HEARD = 8 };

static struct {
    int fd, ticket;
} others[SESSIONS];
static size_t count;
static i64 until;
/* The last that others said before we had a job. */
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
    session.made = (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

/* Whether a session of our job, by its claim, is a later launcher's than ours. */
static bool is_later(u64 made, const u8 *claim, size_t length)
{
    u64 attempt = get64(claim), launcher = get64(claim + 8);
    if (!*session.job || length != CLAIM + strlen(session.job)
        || memcmp(claim + CLAIM, session.job, length - CLAIM) != 0)
        return false;
    if (!launcher && !session.launcher)
        return attempt > session.attempt;
    return launcher != session.launcher && made > session.made;
}

static bool is_session(const char *name)
{
    return strncmp(name, "mpirt-", 6) == 0 && nonce_is_valid(name + 6) && strcmp(name, place_name()) != 0;
}

static bool is_ours(int folder, const char *name)
{
    struct stat status;
    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode)
        && status.st_uid == geteuid();
}

static void tell(const char *root, const char *name)
{
    u8 frame[HEADER + CLAIM + JOB_LIMIT], *claim = frame + HEADER;
    size_t job_length = strlen(session.job);
    put64(claim, session.attempt);
    put64(claim + 8, session.launcher);
    memcpy(claim + CLAIM, session.job, job_length);
    size_t length = frame_write(frame, FENCE, 0, session.made, claim, CLAIM + job_length);
    int fd = place_connect(root, name);
    if (fd < 0) {
        if (errno == ECONNREFUSED)
            place_remove_at(root, name);
        return;
    }
    if (send(fd, frame, length, MSG_NOSIGNAL) == (ssize_t)length)
        others[count++].fd = fd;
    else
        close(fd);
}

static void tell_all_in(const char *root)
{
    static char entries[8192] __attribute__((aligned(8)));
    int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    long size;
    /* Others may have put any number of folders there. */
    while (clock_now() < until && (size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long at = 0; at < size && count < SESSIONS;) {
            const struct dirent *entry = (const struct dirent *)(entries + at);
            at += entry->d_reclen;
            if (is_session(entry->d_name) && is_ours(folder, entry->d_name))
                tell(root, entry->d_name);
        }
    close(folder);
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
    session.phase = FENCING;
    until = now + PATIENCE;
    const char *root;
    for (int number = 0; *session.job && (root = place_root(number)); number++)
        tell_all_in(root);
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
        if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
            continue;
        close(others[number].fd);
        others[number] = others[--count];
    }
}

bool fence_is_over(i64 now)
{
    if (count && now < until)
        return false;
    while (count)
        close(others[--count].fd);
    return true;
}

i64 fence_deadline(void)
{
    return until;
}
