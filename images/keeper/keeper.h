/*
 * What the keeper's files have in common. The contract is docs/keeper.md: its words are used here.
 *
 * No file uses stdio or malloc: all memory is static, and a page of it that nothing touched costs nothing.
 * Every time is in milliseconds of CLOCK_MONOTONIC and is handed in, so that one pass of the loop has one time.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "../common/common.h"

enum {
    HEADER = 16,
    PAYLOAD_LIMIT = 32768,
    FRAME_LIMIT = HEADER + PAYLOAD_LIMIT,
    JOB_LIMIT = 512,             /* longer than any namespace, name and uid */
    CLAIM = 16,                  /* attempt and launcher, before the job in FENCE */
    START_LIMIT = 2 << 20,
    OUT_LIMIT = PAYLOAD_LIMIT - HEADER,  /* a frame of it is what runtimes carry at once */
    OUTPUT_KEPT = 2 << 20,       /* of each stream */
    STDIN_KEPT = 1 << 20,
    TAKEN_TOLD = STDIN_KEPT / 4, /* as seldom as this: every word has a long way to go */
    SILENCE = 40000,             /* an agent that says nothing for so long is gone */
};

enum frame_type {
    ATTACH = 1, CONTROL, STDIN, STDIN_END, ACK, DONE, BEAT, FENCE, USAGE,
    ATTACHED = 33, STARTED, TAKEN, CONTROLLED, OUT, ERR, EXIT, BEAT_BACK, FAILED, USAGE_BACK, FENCED_OUT,
};

/* frames.c: layout, no state. */
struct frame {
    u8 type;
    u16 length;
    u32 epoch;
    u64 number;
    const u8 *payload;
};
enum parsed { PARTIAL, WHOLE, BROKEN };
enum parsed frame_parse(const u8 *bytes, size_t size, struct frame *frame);
size_t frame_write(u8 *to, enum frame_type type, u32 epoch, u64 number, const void *payload, size_t length);

/* ring.c: the bytes begin...end of a stream, counted from its start. */
struct ring {
    u8 *bytes;
    u64 size;
    u64 begin, end;
};
u64 ring_room(const struct ring *ring);
ssize_t ring_fill(struct ring *ring, int fd, u64 most);
ssize_t ring_drain(struct ring *ring, int fd);
void ring_put(struct ring *ring, const u8 *bytes, size_t length);
void ring_copy(const struct ring *ring, u64 from, u8 *to, size_t length);

/* text.c: what stdio would have done. */
struct text {
    char bytes[512];
    size_t length;
};
void text_add(struct text *text, const char *more);
void text_add_number(struct text *text, u64 number);
bool text_fits(const struct text *text);
ssize_t read_file(const char *path, char *to, size_t size);

/* place.c: the session's folder and its socket. */
bool nonce_is_valid(const char *nonce);
int place_make(const char *nonce);
void place_serve(int listener);
void place_remove(void);
bool place_exists(void);
const char *place_name(void);
int place_connect(const char *root, const char *name);
void place_remove_at(const char *root, const char *name);

/* main.c */
void leave_streams(void);

/* bridge.c */
int bridge_carry(int connection, pid_t keeper);
bool write_all(int fd, const char *bytes, size_t length);

/* keeper.c: the session, and the loop over it. */
enum phase {
    WAITING,    /* for START */
    FENCING,    /* for the keepers of earlier attempts to end */
    STARTING,   /* for execve */
    RUNNING,    /* the command, or what is left of it, or its output */
    ENDED,      /* EXIT waits for DONE */
    UNSTARTED,  /* FAILED waits to be acknowledged */
    FENCED,     /* by a later attempt: nothing of this one may be left */
};
struct session {
    enum phase phase;
    u32 lease, grace;
    bool has_stdin;
    u64 made;               /* when, in nanoseconds of CLOCK_MONOTONIC: no two are the same */
    u64 attempt, launcher;  /* each may be 0: not given */
    char job[JOB_LIMIT];
    pid_t pid;              /* the command */
    bool command_ended;
    i64 ended_at;
    int status;             /* as waitpid tells it */
    bool output_was_held;
    enum ended_by {
        BY_ITSELF,
        BY_LEASE,           /* nobody was connected for so long */
        BY_END,             /* the agent's */
        BY_SIGNAL,          /* to the keeper itself */
        BY_FENCE,
    } ended_by;
    int error;              /* why there is no command */
    struct text problem;
};
extern struct session session;
bool session_has_started(void);
_Noreturn void keep(int own_connection, int listener);
void session_begin(i64 now);
void session_fence(i64 now);
_Noreturn void session_over(void);
void session_fail(int error, const char *problem, const char *what);

/* start.c: START's bytes, and what they say. */
struct start {
    char **argv;
    char **environment;
};
bool start_collect(const u8 *bytes, size_t length);
int start_parse(struct start *start);
void start_forget(void);

/* command.c: its process and its pipes. */
void command_start(const struct start *start);
void command_watch(void);
void command_serve(void);
void command_reap(i64 now);
void command_give_up(i64 now);
bool command_has_children(void);

/* streams.c: stdin, stdout and stderr between the pipes and the connection. */
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
/* Once the command has ended: true when its output is over. */
bool streams_settle(i64 now, i64 *wake);

/* connection.c: the agent's frames. */
void connection_adopt(int fd, const struct frame *attach, i64 now);
void connection_begin(i64 now);
bool connection_exists(void);
i64 connection_heard_at(void);
void connection_watch(void);
void connection_serve(i64 now);
void connection_tell(void);

/* telling.c: the keeper's frames, out of its state. */
void telling_begin(u32 epoch);
void telling_beat(u64 number);
void telling_usage(u64 number);
bool telling_write(int fd);
bool telling_is_held_up(void);
bool failure_is_told(void);

/* control.c: CONTROL, once and in order. */
bool control_do(const struct frame *frame, i64 now);
u64 controls_done(void);
void control_give_pending(void);

/* callers.c: connections that have not said yet what they are. */
void callers_begin(int own_connection, int listener);
void callers_watch(void);
void callers_serve(i64 now);
i64 callers_deadline(void);

/* fence.c: the end of what earlier launchers have left. */
void fence_stamp(void);
bool fence_hits(const struct frame *fence);
void fence_hear(const struct frame *fence);
bool fence_forbids(void);
void fence_begin(i64 now);
void fence_watch(void);
void fence_serve(void);
bool fence_is_over(i64 now);
i64 fence_deadline(void);

/* processes.c: /proc as a table. */
struct process {
    pid_t pid, parent, group;
    u64 start;               /* with the pid, it is one process for good */
    u64 ticks;               /* of CPU time, with that of the children that it has reaped */
    bool is_dead;            /* and not reaped */
    bool is_stuck;           /* waits for something that no signal interrupts */
    bool is_member, is_known, is_told;
    bool is_spared, was_spared;     /* as a shell that waits */
    bool has_child, has_new_child;
    bool minds;              /* had the signal, and has a handler for it */
    bool is_late;            /* was started after all had it */
    bool is_helper;          /* of one that minds: started by its handler, as far as can be told */
};
struct table {
    struct process *rows;
    size_t count;
    bool is_whole;           /* it has all that were there */
};
struct text process_path(pid_t pid, const char *file);
bool processes_read(struct table *table);
void processes_forget(void);
bool processes_are_visible(void);
u64 container_start(void);
struct process *process_find(const struct table *table, pid_t pid);
bool process_handles(pid_t pid, int signal);
bool is_waiting_shell(const struct process *process, int signal);

/* tree.c: signals to the command's processes. */
void mark_descendants(struct table *table);
void signal_group(int signal);
int signal_descendants(int signal, bool anew);

/* usage.c: what the command's processes use. */
struct usage {
    u64 cpu;                 /* in microseconds */
    u64 memory;              /* in bytes */
    u32 count;               /* of the processes that live */
};
struct usage usage_now(void);

/* shares.c: memory in which each shared page counts once. */
struct rusage;
u64 cpu_of(const struct rusage *usage);
u64 shares_cost(void);
pid_t shares_helper(void);
void shares_read(const pid_t *pids, size_t count, u64 *memory);

/* strays.c: shells of execs, and which of them are abandoned. */
bool are_first_words(const char *words, size_t length);
bool has_first_words(pid_t pid);
bool is_stray(const struct table *table, const struct process *process);
void strays_end(void);

/* tag.c: what the processes of a session have in common. */
u64 tag_for(const char *nonce);
void tag_self(u64 tag);
bool tag_of(pid_t pid, u64 *tag);

/* mounts.c: whose the processes in /proc are. */
bool mounts_read(void);
bool is_in_container(pid_t pid);

/* sessions.c: what is alive in this container. */
bool sessions_tell(void);

/* ending.c: END, whoever wants it. */
void ending_begin(enum ended_by by, int signal, i64 grace, i64 now);
void ending_demand(enum ended_by by, int signal, i64 grace, i64 now);
bool ending_is_on(void);
bool ending_is_complete(void);
void ending_step(i64 now);
i64 ending_deadline(void);

#endif
