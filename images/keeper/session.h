/* The session's course from START to DONE. */
#ifndef SESSION_H
#define SESSION_H

#include "../common/text.h"
#include "start.h"

enum { SILENCE = 40000 };    /* an agent that says nothing for so long is gone */

enum phase {
    WAITING,    /* for START */
    FENCING,    /* for the keepers of earlier attempts to end */
    STARTING,   /* for execve */
    RUNNING,    /* the command, or what is left of it, or its output */
    ENDED,      /* EXIT waits for DONE */
    UNSTARTED,  /* FAILED waits to be acknowledged */
    FENCED,     /* by a later attempt: nothing of this one may be left */
};
enum ended_by {
    BY_ITSELF,
    BY_LEASE,           /* nothing was heard of the agent for so long */
    BY_END,             /* the agent's */
    BY_SIGNAL,          /* to the keeper itself */
    BY_FENCE,
};
/* Only session.c changes it. */
struct session {
    enum phase phase;
    struct start start;
    u64 controls;            /* how many are done */
    i64 settled_at;          /* when the command and its output were over; 0 before that */
    enum ended_by ended_by;
    int error;               /* why there is no command */
    struct text problem;
};
extern const struct session *const session;

void session_begin(void);
bool session_has_started(void);
bool session_is_ending(void);
bool session_control(const struct frame *frame, i64 now);
void session_serve(void);
i64 session_step(i64 now);
void session_abandon(i64 now);
void session_end_by_signal(i64 now);
void session_fence(i64 now);
_Noreturn void session_over(void);

#endif
