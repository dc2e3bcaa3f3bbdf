/*
 * Owns: how CPU time and memory are counted. Nothing is known where /proc shows nothing.
 *
 * The memory of processes in which each shared page counts once (Pss) is read by a helper process: the kernel computes
 * it under a lock of the process in question, which may be held for as long as a device or a file system does not
 * answer. A reader is then stuck until it is killed, so it must not be the keeper.
 */
#include "keeper.h"

#include <sys/resource.h>

/* The helper has this long. */
#ifndef HELPER_PATIENCE
#define HELPER_PATIENCE 50
#endif

enum {
    TICK = 10000,            /* microseconds: /proc has times in 1/100 s on all architectures */
    SHARES = 64,
    DESCRIPTORS = 256,       /* its own are below this limit */
};
/* The helper reads each page's entry for a share: some 50 ms for so much. */
#define LARGE ((u64)4 << 30)
#define UNKNOWN UINT64_MAX

static pid_t helper;
static u64 helper_cost;      /* the kernel counts it among the children of the keeper */
static u64 highest;          /* CPU time that was reported */

static u64 cpu_of(const struct rusage *usage)
{
    return (u64)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000
        + (u64)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static u64 share_of(pid_t pid)
{
    char rollup[1024];
    if (process_file(pid, "/smaps_rollup", rollup, sizeof rollup) <= 0)
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

/* No signal reports its end, and waiting for any child does not find it. */
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
        helper_cost += cpu_of(&usage);
    helper = 0;
    hide_process(0);
    return true;
}

/* True: it has ended by itself. */
static bool collect(int from, u64 *memory)
{
    i64 until = clock_now() + HELPER_PATIENCE;
    for (;;) {
        if (!wait_for(from, POLLIN, until))
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
static void read_shares(const pid_t *pids, size_t count, u64 *memory)
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
        hide_process(helper);
        bool has_ended = collect(ends[0], memory);
        if (!has_ended)
            kill(helper, SIGKILL);
        reap(has_ended ? 0 : WNOHANG);
    }
    close(ends[0]);
}

/* Of children that are reaped, and of theirs. */
static u64 reaped_cpu(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return 0;
    u64 cpu = cpu_of(&usage);
    return cpu > helper_cost ? cpu - helper_cost : 0;
}

/* RSS: a page that several have mapped counts for each of them. */
static u64 resident(pid_t pid)
{
    char statm[128];
    if (process_file(pid, "/statm", statm, sizeof statm) <= 0)
        return 0;
    const char *second = strchr(statm, ' ');
    return second ? strtoull(second, NULL, 10) * (u64)getpagesize() : 0;
}

/* All zero: nothing is known. */
struct usage usage_now(void)
{
    struct table table;
    struct usage usage = {0};
    pid_t pids[SHARES];
    u64 memory[SHARES];
    size_t shares = 0;
    if (!processes_read(&table))
        return usage;
    u64 cpu = reaped_cpu();
    mark_descendants(&table);
    for (size_t number = 0; number < table.count; number++) {
        const struct process *process = &table.rows[number];
        if (!process->is_member)
            continue;
        cpu += process->ticks * TICK;
        if (process->is_dead)
            continue;
        u64 bytes = resident(process->pid);
        usage.count++;
        if (shares < SHARES && bytes <= LARGE && !process->is_stuck) {
            pids[shares] = process->pid;
            memory[shares++] = bytes;
        } else {
            usage.memory += bytes;
        }
    }
    processes_forget();
    read_shares(pids, shares, memory);
    for (size_t number = 0; number < shares; number++)
        usage.memory += memory[number];
    /* It never gets less, although that of a process which no parent reaps is lost with it. */
    if (highest < cpu)
        highest = cpu;
    usage.cpu = highest;
    return usage;
}
