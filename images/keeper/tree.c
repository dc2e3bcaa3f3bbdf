/*
 * Owns: which processes get a signal. They are found in /proc; where that shows nothing, it goes to the group.
 *
 * `command; more` in a shell has to go on with `more` when the command has handled the
 * signal, so a shell that waits for a process which gets it too is spared. What a handler starts, to save something
 * for one, is left to whose handler it is, as long as that one lives.
 *
 * A process that was just forked has its parent's handler until it executes its own program. A signal that comes
 * before that is lost. So one that was started after all had the signal, and has a handler no more, is given it again.
 */
#include "keeper.h"

static struct table last;
static pid_t hidden;

/* A child of the keeper that does not belong to the command. */
void hide_process(pid_t pid)
{
    hidden = pid;
}

/* A child may have a lower pid than its parent, so this goes on until nothing changes. */
static void spread(struct table *table, bool (*gets_mark)(const struct table *table, struct process *process))
{
    for (bool changes = true; changes;) {
        changes = false;
        for (size_t number = 0; number < table->count; number++)
            changes |= gets_mark(table, &table->rows[number]);
    }
}

static bool becomes_member(const struct table *table, struct process *process)
{
    if (process->is_member || process->pid == hidden)
        return false;
    const struct process *parent = process_find(table, process->parent);
    return process->is_member = process->parent == getpid() || (parent && parent->is_member);
}

void mark_descendants(struct table *table)
{
    spread(table, becomes_member);
}

static void mark_known(struct table *table, bool anew)
{
    for (size_t number = 0; number < table->count; number++) {
        struct process *process = &table->rows[number];
        const struct process *earlier = process_find(&last, process->pid);
        process->is_known = earlier && earlier->is_member && earlier->start == process->start;
        process->is_signalled = process->is_known && earlier->is_signalled;
        process->was_spared = process->is_known && earlier->is_spared;
        process->minds = process->is_known && earlier->minds;
        process->is_late = process->is_known ? earlier->is_late : !anew;
    }
}

static bool becomes_helper(const struct table *table, struct process *process)
{
    if (!process->is_member || !process->is_late || process->is_helper)
        return false;
    const struct process *parent = process_find(table, process->parent);
    return process->is_helper = parent && (parent->minds || parent->is_helper);
}

static void mark_parents(struct table *table)
{
    for (size_t number = 0; number < table->count; number++) {
        const struct process *process = &table->rows[number];
        struct process *parent = process_find(table, process->parent);
        if (!process->is_member || process->is_dead || !parent)
            continue;
        parent->has_child = true;
        parent->has_new_child |= !process->is_known;
    }
}

static bool has_lost_it(const struct process *process, int signal)
{
    return process->is_signalled && process->is_late && process->minds && !process_handles(process->pid, signal);
}

/* A shell that was spared goes on being so, unless it goes on with something new. */
static bool is_to_be_spared(const struct process *process, int signal)
{
    return process->was_spared ? !process->has_new_child : is_waiting_shell(process, signal);
}

void signal_group(pid_t group, int signal)
{
    struct table table;
    if (!processes_read(&table)) {
        kill(-group, signal);
        return;
    }
    for (size_t number = 0; number < table.count; number++)
        table.rows[number].is_member = table.rows[number].group == group;
    mark_parents(&table);
    for (size_t number = 0; number < table.count; number++) {
        const struct process *process = &table.rows[number];
        if (process->is_member && !process->is_dead && !is_waiting_shell(process, signal))
            kill(process->pid, signal);
    }
    processes_forget();
}

static int signal_blindly(pid_t group, int signal)
{
    if (group <= 0 || kill(-group, signal) < 0)
        return 0;
    kill(-group, SIGCONT);
    return 1;
}

/*
 * Gives it to every descendant that has not had it yet; `anew` forgets which have. KILL is for all and as often as it
 * takes. Returns how many could be given a signal.
 */
int signal_descendants(pid_t group, int signal, bool anew)
{
    struct table table;
    int reached = 0;
    if (anew)
        last.count = 0;
    if (!processes_read(&table))
        return anew || signal == SIGKILL ? signal_blindly(group, signal) : 1;
    mark_descendants(&table);
    mark_known(&table, anew);
    spread(&table, becomes_helper);
    mark_parents(&table);
    for (size_t number = 0; number < table.count; number++) {
        struct process *process = &table.rows[number];
        if (!process->is_member || process->is_dead)
            continue;
        if (has_lost_it(process, signal))
            process->is_signalled = false;
        process->is_spared = !process->is_signalled && !process->is_helper && is_to_be_spared(process, signal);
        bool is_due = signal == SIGKILL || !(process->is_signalled || process->is_helper || process->is_spared);
        if (is_due) {
            process->is_signalled = true;
            process->minds = process_handles(process->pid, signal);
        }
        if (kill(process->pid, is_due ? signal : 0) == 0)
            reached++;
        if (!process->is_known && signal != SIGKILL)
            kill(process->pid, SIGCONT);
    }
    last = table;
    if (reached || !table.is_short)
        return reached;
    /* What was not seen may still be there. */
    if (signal == SIGKILL)
        signal_blindly(group, signal);
    return 1;
}
