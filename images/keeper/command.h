/* The command's process: its start, and its end and that of every orphan. */
#ifndef COMMAND_H
#define COMMAND_H

#include "start.h"

enum verdict { UNDECIDED, STARTED_WELL, NOT_STARTED };

/* Only command.c changes it. */
struct command {
    pid_t pid;
    bool has_ended;
    bool has_children;       /* or orphans of its own, which become the keeper's */
    int status;              /* as waitpid has it */
};
extern const struct command *const command;

const char *command_start(const struct start *start);
void command_watch(bool is_starting);
enum verdict command_verdict(void);
void command_reap(void);
void command_give_up(void);

#endif
