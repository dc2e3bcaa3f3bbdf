/* /proc as a table of processes, and what else it tells about one. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "../common/types.h"

struct process {
    pid_t pid, parent, group;
    u64 start;               /* with the pid, it is one process for good */
    u64 ticks;               /* of CPU time, with that of the children that it has reaped */
    bool is_dead;            /* and not reaped */
    bool is_stuck;           /* waits for something that no signal interrupts */
    bool is_member, is_known, is_signalled;
    bool is_spared, was_spared;     /* as a shell that waits */
    bool has_child, has_new_child;
    bool minds;              /* had the signal, and has a handler for it */
    bool is_late;            /* was started after all had it */
    bool is_helper;          /* of one that minds: started by its handler, as far as is known */
};
struct table {
    struct process *rows;
    size_t count;
    bool is_whole;           /* it has all that were there */
};
bool processes_read(struct table *table);
void processes_forget(void);
struct process *process_find(const struct table *table, pid_t pid);
ssize_t process_file(pid_t pid, const char *file, char *to, size_t size);
bool process_handles(pid_t pid, int signal);
bool is_waiting_shell(const struct process *process, int signal);
u64 container_start(void);
bool container_read(void);
bool is_in_container(pid_t pid);

#endif
