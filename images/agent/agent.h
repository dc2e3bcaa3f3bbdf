/*
 * What the agent's files have in common. The contract is docs/switchboard.md: its words are used here.
 *
 * Memory that is needed until an execve only is mapped for it.
 */
#ifndef AGENT_H
#define AGENT_H

#include "../common/common.h"

/* How long a switchboard may take to say WELCOME; tests have less time. */
#ifndef WELCOME_PATIENCE
#define WELCOME_PATIENCE 30000
#endif

/* The same, with the time in which it runs, or waits for a processor, as everything on a busy machine does. */
#ifndef WELCOME_LIMIT
#define WELCOME_LIMIT 300000
#endif

/* How long mpirun's daemons may take to notice its end and to clean up, before they get a HUP; tests have others. */
#ifndef DAEMON_GRACE
#define DAEMON_GRACE 5000
#endif

enum {
    PROTOCOL = 1,
    PAYLOAD_LIMIT = 64 << 10,
    /* A frame, in whole pages. */
    FRAME_BUFFER = PAYLOAD_LIMIT + PAGE,
    KEEP_LIMIT = 8 << 10,
    REQUEST_SIZE = HEADER + (8 << 20),     /* of HANDOVER and DISCOVER_REQUEST, at most */
    WINDOW = 256 << 10,          /* of each output */
    /* An output's ring holds a window, newlines of our own, and lines that earlier switchboards said. */
    OUTPUT_KEPT = 1 << 20,
    STDIN_KEPT = 1 << 20,        /* what a keeper has room for */
    WRITTEN_STEP = 64 << 10,
    SIGNALS_LIMIT = 64,
    DRAIN_PATIENCE = 3000,       /* with a reader that stands still, when we have to end */
    FAILED = 255,                /* as ssh says that it failed itself; ExitCode.INTERNAL */
    LOST = 250,                  /* ExitCode.CONNECTION_LOST */
};

enum frame_type {
    WELCOME = 1, DIRECT, KEEP, OUT, ERR, SAY, ROOM, TAKEN, FINISH, FOLLOW, DISCOVERED = 12, SETTLED,
    HANDOVER = 65, STDIN, STDIN_BROKEN, SIGNAL, WRITTEN, BROKEN, DISCOVER_REQUEST = 72, SETTLED_REQUEST,
};

/*
 * descriptors.c: our own, and how to use what belongs to others, too; a thread that makes the calls which may take
 * long whatever poll says.
 */
struct aside {
    bool exists, is_busy, is_done;
    int fd;
    bool writes;
    int go, ended;           /* eventfds */
    struct iovec piece;
    ssize_t result;
    int error;
};
void aside_begin(struct aside *aside, int fd, bool writes, struct iovec piece);
bool aside_is_over(struct aside *aside);
enum way { UNKNOWN, OWN, BY_MESSAGE, ASIDE };
enum way way_to_use(int given, int flags, int *fd);

/* output.c: stdout and stderr. Streams are numbered as their descriptors. */
void output_take(int stream, const u8 *bytes, size_t length);
bool output_say(const u8 *line, size_t length);
bool output_may_take(int stream, size_t length);
void output_say_own(const struct text *line);
void outputs_new_connection(void);
void outputs_watch(void);
void outputs_serve(void);
bool output_is_drained(int stream);
bool outputs_are_drained(void);
u64 output_come(int stream);
u64 output_written(int stream);
u64 says_written(void);
u32 output_error(int stream);

/* input.c: stdin. Only it changes this. */
struct input {
    bool is_there;           /* neither closed nor /dev/null */
    bool has_come;           /* any byte of it, or its end */
    bool has_ended;
    u32 error;
};
extern const struct input *const input;
void input_begin(void);
void input_new_connection(void);
void input_watch(i64 now, i64 *until);
void input_serve(void);
bool input_room(u64 offset);
bool input_taken(u64 offset);
u64 input_offset(void);
size_t input_hand_over(void);
void input_copy(u8 *to, size_t length);
size_t input_next(u8 *to, size_t size);
bool input_tells_end(void);

/* signals.c: those for the command, and the end of the process that started the agent. */
void signals_begin(void);
const sigset_t *signals_mask(void);
u32 signals_hand_over(const u8 **all);
bool signal_next(u8 *number);
void follow_begin(void);
void follow_watch(i64 now, i64 *until);
void follow_serve(i64 now, i64 grace);

/* connection.c: the frames that come and go. */
void connection_begin(int fd);
void connection_end(void);
bool connection_hand_over(void);
bool connection_exists(void);
void connection_watch(void);
bool connection_serve(void);
void connection_tell(void);

/* handover.c: HANDOVER, and other requests with words and variables. */
u8 *request_begin(void);
void request_add_counts(size_t words, size_t variables);
void request_add_string(const char *string);
size_t request_end(enum frame_type type);
bool handover_begin(void);
size_t handover_next(u8 *to, size_t size);
bool handover_is_over(void);

/* asking.c: one question to a switchboard. */
void asking_begin(i64 limit);
const char *refusal(void);
bool refuse(const char *reason);
bool ask_with(int fd, u8 *bytes, size_t length);
bool answer_frame(int fd, enum frame_type type, u8 *payload, size_t room, size_t *length, const char *otherwise);
bool answer_welcome(int fd);

/* agent.c: the command and the loop over it. */
struct session {
    char **words, **environment;
    size_t word_count, variable_count;
    const char *called;
    bool is_handed_over;     /* to any switchboard: from here on signals are the command's */
    u32 generation;
    size_t keep_length;
    u8 keep[KEEP_LIMIT];
};
extern struct session session;
_Noreturn void agent_run(void);
bool session_welcome(u32 protocol);
bool session_direct(const u8 *reason, size_t length);

/* As many as the kernel allows: agents come by the thousand. */
enum { BACKLOG = 65535 };

/* place.c: the folder. connect.c: its socket, and another switchboard. */
enum reached { REACHED, LATER, NOWHERE };
struct place {
    int fd;
    struct text path;
};
bool place_open(int number, bool makes, struct place *place);
#define problem_note(weight, ...) problem_set(weight, (const char *const[]){__VA_ARGS__, NULL})
void problem_set(int weight, const char *const *parts);
const char *problem_text(void);
enum reached connect_somewhere(int *fd, i64 now);
bool problem_is_worth_telling(void);
enum reached connect_privately(int *fd);
i64 board_busy(int fd);
bool connect_if_there(int number, int *fd);
const char *last_log(void);

/* launch.c: which programs run, and what they see of ours. */
bool launch_wants_private_switchboard(void);
void launch_find_switchboard(void);
bool is_set_to(const char *variable, const char *value);
bool begins_with_one_of(const char *variable, const char *const *starts);
_Noreturn void launch_program(char *variable);
_Noreturn void launch_switchboard(const char *folder);
void *launch_memory(size_t size);
#define launch_joined(...) launch_join((const char *const[]){__VA_ARGS__, NULL})
char *launch_join(const char *const *parts);

/* discover.c: mpirt-discover. */
_Noreturn void discover_run(void);

/* init.c: the first process of a launcher's container. */
_Noreturn void init_run(char **words);

#endif
