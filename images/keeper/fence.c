/*
 * The fence: before a command starts, earlier attempts of its job in this container end.
 *
 * Every other session is told of the job and the attempt. One that is fenced ends, and with it the connection; any
 * other closes the connection at once. Either way its end is what is waited for, without standing in the loop's way:
 * two keepers that fence each other must both be able to answer.
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
#include <unistd.h>

enum { SESSIONS = 64, PATIENCE = 10000 };

static struct {
    int fd, ticket;
} others[SESSIONS];
static size_t count;
static i64 until;
/* What others said before we had a job. */
static struct {
    char job[JOB_LIMIT];
    u64 attempt;
} heard;

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
    u8 frame[HEADER + JOB_LIMIT];
    size_t length = frame_write(frame, FENCE, 0, session.attempt, session.job, strlen(session.job));
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
    bool is_same = strlen(heard.job) == fence->length && memcmp(heard.job, fence->payload, fence->length) == 0;
    if (fence->length >= sizeof heard.job || (is_same && fence->number <= heard.attempt))
        return;
    memcpy(heard.job, fence->payload, fence->length);
    heard.job[fence->length] = 0;
    heard.attempt = fence->number;
}

/* A later attempt of our job has begun. */
bool fence_forbids(void)
{
    return *session.job && strcmp(heard.job, session.job) == 0 && session.attempt < heard.attempt;
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
