/* Signals to the command's processes. `group` is the command's process group; 0 where there is none. */
#ifndef TREE_H
#define TREE_H

#include "processes.h"

void mark_descendants(struct table *table);
void hide_process(pid_t pid);
void signal_group(pid_t group, int signal);
int signal_descendants(pid_t group, int signal, bool anew);

#endif
