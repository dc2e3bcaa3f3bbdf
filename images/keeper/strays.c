/*
 * Abandoned shells: the connection of their exec ended before its first line, and the runtime keeps their stdin open
 * (containerd 2.4 does, if it is killed meanwhile).
 *
 * Owns: which shells these are. No agent knows of them, so each keeper kills them once, when its command runs.
 */
#include "keeper.h"

#include <string.h>
#include <time.h>

/* Longer than the sum of all time limits of an agent for a shell. In clock ticks, as in /proc. */
#ifndef STRAY_AGE
#define STRAY_AGE 12000
#endif

enum { TICK_NS = 10000000, TICKS_PER_SECOND = 100 };

/* BOOTSTRAP of entrance.py, as /proc shows it. */
static const char first_words[] = "/bin/sh\0-c\0IFS= read -r mpirt && eval \"$mpirt\"";
static bool has_looked;

static u64 ticks_now(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (u64)now.tv_sec * TICKS_PER_SECOND + (u64)now.tv_nsec / TICK_NS;
}

bool are_first_words(const char *words, size_t length)
{
    return length == sizeof first_words && memcmp(words, first_words, length) == 0;
}

bool has_first_words(pid_t pid)
{
    char words[sizeof first_words + 2];
    struct text path = process_path(pid, "/cmdline");
    ssize_t length = read_file(path.bytes, words, sizeof words);
    return length > 0 && are_first_words(words, (size_t)length);
}

/* The wrapper is the same shell, but it has children as long as its command runs. */
static bool has_child(const struct table *table, pid_t pid)
{
    for (size_t number = 0; number < table->count; number++)
        if (table->rows[number].parent == pid)
            return true;
    return false;
}

/* An exec's process has its parent outside of the container. */
bool is_stray(const struct table *table, const struct process *process)
{
    return process->parent == 0 && ticks_now() >= process->start + STRAY_AGE && has_first_words(process->pid)
        && !has_child(table, process->pid);
}

void strays_end(void)
{
    struct table table;
    if (has_looked || !session_has_started())
        return;
    has_looked = true;
    if (!processes_read(&table))
        return;
    for (size_t number = 0; number < table.count; number++)
        if (is_stray(&table, &table.rows[number]))
            kill(table.rows[number].pid, SIGKILL);
    processes_forget();
}
