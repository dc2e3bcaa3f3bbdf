/*
 * The memory of processes in which each shared page counts once (Pss), read by a helper process.
 *
 * The kernel computes it under a lock of the process in question, which somebody may hold for as long as a device or
 * a file system does not answer. Who reads meanwhile is stuck until it is killed, so it must not be the keeper.
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The helper has this long. Its descriptors are below the limit. */
enum { MILLISECONDS = 50, DESCRIPTORS = 256 };
#define UNKNOWN UINT64_MAX

static pid_t helper;
static u64 cost;

/* The kernel counts helpers among the keeper's children. */
u64 shares_cost(void)
{
    return cost;
}

pid_t shares_helper(void)
{
    return helper;
}

u64 cpu_of(const struct rusage *usage)
{
    return (u64)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000
        + (u64)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static u64 share_of(pid_t pid)
{
    char rollup[1024];
    struct text path = process_path(pid, "/smaps_rollup");
    if (read_file(path.bytes, rollup, sizeof rollup) <= 0)
        return UNKNOWN;
    const char *share = strstr(rollup, "\nPss:");
    return share ? strtoull(share + sizeof "\nPss:" - 1, NULL, 10) * 1024 : UNKNOWN;
}

/* It must not keep the command's pipes and the agent's connection open, however long it is stuck. */
static _Noreturn void help(const pid_t *pids, size_t count, int to)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (fd != to)
            close(fd);
    for (size_t number = 0; number < count; number++) {
        u64 share = share_of(pids[number]);
        if (write(to, &share, sizeof share) != sizeof share)
            break;
    }
    _exit(0);
}

/* No signal tells of its end, and waiting for any child does not find it: nobody else sees it. */
static bool reap(int options)
{
    struct rusage usage;
    pid_t reaped;
    if (!helper)
        return true;
    while ((reaped = wait4(helper, NULL, options | __WCLONE, &usage)) < 0 && errno == EINTR)
        ;
    if (!reaped)
        return false;
    if (reaped == helper)
        cost += cpu_of(&usage);
    helper = 0;
    return true;
}

/* True: it has said all that it had to say. */
static bool collect(int from, u64 *memory)
{
    i64 until = clock_now() + MILLISECONDS;
    for (;;) {
        i64 left = until - clock_now();
        struct pollfd ready = {.fd = from, .events = POLLIN};
        if (left <= 0 || poll(&ready, 1, (int)left) <= 0)
            return false;
        u64 share;
        ssize_t got = read(from, &share, sizeof share);
        if (got != sizeof share)
            return true;
        if (share != UNKNOWN)
            *memory = share;
        memory++;
    }
}

/* Replaces what can be read in time. */
void shares_read(const pid_t *pids, size_t count, u64 *memory)
{
    int ends[2];
    if (!count || !reap(WNOHANG) || pipe2(ends, O_CLOEXEC) < 0)
        return;
    long made = syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
    if (made == 0)
        help(pids, count, ends[1]);
    close(ends[1]);
    if (made > 0) {
        helper = (pid_t)made;
        bool has_ended = collect(ends[0], memory);
        if (!has_ended)
            kill(helper, SIGKILL);
        reap(has_ended ? 0 : WNOHANG);
    }
    close(ends[0]);
}
