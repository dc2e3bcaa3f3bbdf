/*
 * What the command's processes use: CPU time and memory, out of /proc.
 *
 * Owns: the numbers of USAGE. Nothing is known where /proc shows nothing. Reading it must not hold up the
 * keeper: beyond a limit, a process is counted by its RSS, which the kernel has at hand.
 */
#include "keeper.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The kernel shows times in 1/100 s on both architectures. */
enum { TICK = 10000, SHARES_LIMIT = 64, SHARES_MILLISECONDS = 50 };
/* A share of so much takes the kernel some 50 ms. */
#define LARGE ((u64)4 << 30)

static u64 highest;

static u64 microseconds(const struct timeval *time)
{
    return (u64)time->tv_sec * 1000000 + (u64)time->tv_usec;
}

/* Of children that are reaped, and of theirs. */
static u64 reaped_cpu(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return 0;
    return microseconds(&usage.ru_utime) + microseconds(&usage.ru_stime);
}

/* Pss: a page that several have mapped counts once in all. What can't be read changes nothing. */
static void read_share(pid_t pid, u64 *bytes)
{
    char rollup[1024];
    struct text path = process_path(pid, "/smaps_rollup");
    if (read_file(path.bytes, rollup, sizeof rollup) <= 0)
        return;
    const char *share = strstr(rollup, "\nPss:");
    if (share)
        *bytes = strtoull(share + sizeof "\nPss:" - 1, NULL, 10) * 1024;
}

/* RSS: it counts such a page each time. */
static u64 resident(pid_t pid)
{
    char statm[128];
    struct text path = process_path(pid, "/statm");
    if (read_file(path.bytes, statm, sizeof statm) <= 0)
        return 0;
    const char *second = strchr(statm, ' ');
    return second ? strtoull(second, NULL, 10) * (u64)getpagesize() : 0;
}

/*
 * The kernel reads each page's entry for a share, under a lock of the process. One that waits for a device or a file
 * system may hold that lock until it has what it waits for.
 */
static u64 memory_of(const struct process *process, int *shares, i64 until)
{
    u64 bytes = resident(process->pid);
    if (!process->is_stuck && bytes <= LARGE && *shares < SHARES_LIMIT && clock_now() < until) {
        (*shares)++;
        read_share(process->pid, &bytes);
    }
    return bytes;
}

/* All zero: nothing is known. CPU time never gets less, although a process that nobody reaps takes its own along. */
struct usage usage_now(void)
{
    struct table table;
    struct usage usage = {0};
    int shares = 0;
    if (!processes_read(&table))
        return usage;
    i64 until = clock_now() + SHARES_MILLISECONDS;
    usage.cpu = reaped_cpu();
    mark_descendants(&table);
    for (size_t number = 0; number < table.count; number++) {
        const struct process *process = &table.rows[number];
        if (!process->is_member)
            continue;
        usage.cpu += process->ticks * TICK;
        if (process->is_dead)
            continue;
        usage.count++;
        usage.memory += memory_of(process, &shares, until);
    }
    processes_forget();
    if (highest < usage.cpu)
        highest = usage.cpu;
    usage.cpu = highest;
    return usage;
}
