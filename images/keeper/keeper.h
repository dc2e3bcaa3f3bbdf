/* The interfaces of the keeper's modules: each uses those of the ones above it. */
#ifndef KEEPER_H
#define KEEPER_H

#include "../common/common.h"

/* The numbers of the frames between an agent and a keeper. The contract is docs/keeper.md: its words are used here. */
enum {
    PAYLOAD_LIMIT = 32768,
    FRAME_LIMIT = HEADER + PAYLOAD_LIMIT,
    JOB_LIMIT = 512,             /* longer than any namespace, name and uid */
    CLAIM = 16,                  /* attempt and launcher, before the job in FENCE */
    OUT_LIMIT = PAYLOAD_LIMIT - HEADER,  /* a frame of it is what runtimes carry at once */
    STDIN_KEPT = 1 << 20,
};

enum frame_type {
    ATTACH = 1, CONTROL, STDIN, STDIN_END, ACK, DONE, BEAT, FENCE, USAGE,
    ATTACHED = 33, STARTED, TAKEN, CONTROLLED, OUT, ERR, EXIT, BEAT_BACK, FAILED, USAGE_BACK, FENCED_OUT,
};

/* START: what is to be started, and how it is to be held. */
struct start {
    u32 lease, grace;
    bool has_stdin;
    u64 attempt, launcher;   /* each may be 0: not given */
    char job[JOB_LIMIT];
    char **argv, **environment;
};
bool start_collect(const u8 *bytes, size_t length);
int start_parse(struct start *start);
void start_forget(void);

/* The folder of a session, with the socket in it; and those of other sessions. */
bool nonce_is_valid(const char *nonce);
int place_make(const char *nonce);
void place_serve(int listener);
void place_remove(void);
bool place_exists(void);
int place_connect(const char *nonce);
void place_visit_others(i64 until, bool (*meet)(int connection));

/* /proc as a table of processes, and what else it tells about one. */
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
    bool is_short;           /* it lacks some that there were no descriptors or no memory for */
};
bool processes_read(struct table *table);
void processes_forget(void);
struct process *process_find(const struct table *table, pid_t pid);
bool process_handles(pid_t pid, int signal);
bool is_waiting_shell(const struct process *process, int signal);
u64 container_start(void);
bool container_read(void);
bool is_in_container(pid_t pid);

/* Signals to the command's processes. `group` is the command's process group; 0 where there is none. */
void mark_descendants(struct table *table);
void hide_process(pid_t pid);
void signal_group(pid_t group, int signal);
int signal_descendants(pid_t group, int signal, bool anew);

/* What the command's processes use. */
struct usage {
    u64 cpu;                 /* in microseconds */
    u64 memory;              /* in bytes */
    u32 count;               /* of the processes that live */
};
struct usage usage_now(void);

/* stdin, stdout and stderr between the command's pipes and the connection. */
enum { STDOUT, STDERR, OUTPUTS };

void streams_open(int in, int out, int err);
void streams_watch(void);
void streams_serve(void);
bool stdin_accept(u64 offset, const u8 *bytes, size_t length);
bool stdin_end(u64 length);
u64 stdin_taken(void);
bool stdin_is_closed(void);
bool output_acknowledge(const u64 received[OUTPUTS]);
void output_rewind(void);
size_t output_next(int *stream, u64 *offset, u8 *to);
u64 output_length(int stream);
bool output_was_held(void);
bool streams_settle(i64 now, i64 *wake);

/* The command's process: its start, and its end and that of every orphan. */
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

/* The fence: before a command starts, what earlier launchers of its job have left in this container ends. */
void fence_stamp(void);
void fence_claim(const struct start *start);
bool fence_hits(const struct frame *fence);
void fence_hear(const struct frame *fence);
bool fence_forbids(void);
void fence_begin(i64 now);
void fence_watch(void);
void fence_serve(void);
i64 fence_deadline(i64 now);

/* The session's course from START to DONE. */
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

/* The agent's connection: the frames that come over it, and the keeper's, composed out of its state. */
extern const struct frame_rules agent_rules;

void connection_begin(i64 now);
void connection_adopt(int fd, const struct frame *attach, i64 now);
bool connection_exists(void);
i64 connection_heard_at(void);
void connection_watch(void);
void connection_serve(i64 now);
void connection_tell(void);

/* Connections that have not said yet what they are: the agent's next one, or another keeper's fence. */
void callers_begin(int own_connection, int listener);
void callers_watch(void);
void callers_serve(i64 now);
i64 callers_deadline(void);

/* What is alive in this container: sessions, found by their tags, and abandoned shells of execs. */
u64 tag_for(const char *nonce);
void tag_self(u64 tag);
bool sessions_report(void);
void strays_end(void);

/* Bytes between the exec's stdin and stdout and the keeper's connection. */
int bridge_carry(int connection, pid_t keeper);
void leave_streams(void);

/* The keeper's loop. */
_Noreturn void keep(int own_connection, int listener);

#endif
