/*
 * What the command's processes use: CPU time and memory, out of /proc.
 *
 * Owns: the numbers of USAGE, and for which processes the memory that is shared is told apart. Nothing is known where
 * /proc shows nothing.
 */
#include "keeper.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The kernel shows times in 1/100 s on both architectures. */
enum { TICK = 10000, SHARES = 64 };
/* It reads each page's entry for a share: some 50 ms for so much. */
#define LARGE ((u64)4 << 30)

static u64 highest;

/* Of children that are reaped, and of theirs. */
static u64 reaped_cpu(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return 0;
    u64 cpu = cpu_of(&usage);
    return cpu > shares_cost() ? cpu - shares_cost() : 0;
}

/* RSS: a page that several have mapped counts for each of them. */
static u64 resident(pid_t pid)
{
    char statm[128];
    struct text path = process_path(pid, "/statm");
    if (read_file(path.bytes, statm, sizeof statm) <= 0)
        return 0;
    const char *second = strchr(statm, ' ');
    return second ? strtoull(second, NULL, 10) * (u64)getpagesize() : 0;
}

/* CPU time never gets less, although a process that nobody reaps takes its own along. */
static u64 no_less(u64 cpu)
{
    if (highest < cpu)
        highest = cpu;
    return highest;
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
        if (!process->is_member || process->pid == shares_helper())
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
    shares_read(pids, shares, memory);
    for (size_t number = 0; number < shares; number++)
        usage.memory += memory[number];
    usage.cpu = no_less(cpu);
    return usage;
}
