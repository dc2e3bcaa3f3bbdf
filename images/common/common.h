/*
 * What the agent and the keeper have in common.
 *
 * No program here uses stdio or malloc: memory is static, and a page of it that was never touched costs nothing.
 * Every time is in milliseconds of CLOCK_MONOTONIC.
 */
#ifndef COMMON_H
#define COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

#define NEVER INT64_MAX

/* What a process does to itself: its descriptors, signals and memory. */

/* The smallest page of any kernel that this runs on: buffers are aligned to it. */
enum { PAGE = 4096 };

void open_what_is_closed(void);
void close_descriptors(int first);
void limit_threads(void);
void signals_default(void);
void memory_give_back(void *from, size_t length);
bool is_passing(int error);
bool is_shortage(int error);
int close_failed(int fd);

/* Short texts, and files read and written whole: what stdio would do in ten times the size. */
struct text {
    size_t length;
    char bytes[PATH_MAX + 256];
};
#define text_begin(text, ...) text_set(text, (const char *const[]){__VA_ARGS__, NULL})
void text_set(struct text *text, const char *const *parts);
void text_add(struct text *text, const char *more);
void text_add_number(struct text *text, u64 number);
void text_add_octal(struct text *text, u64 number);
bool text_fits(const struct text *text);
ssize_t read_file(const char *path, char *to, size_t size);
ssize_t process_file(pid_t pid, const char *file, char *to, size_t size);
bool write_all(int fd, const char *bytes, size_t length);
#define say_at_once(name, ...) say_line((const char *const[]){name, ": ", __VA_ARGS__, "\n", NULL})
void say_line(const char *const *parts);

/* The clock, and the one place where a program waits. */
void watch_clear(void);
int watch(int fd, short events);
short seen(int ticket);
void watch_wait(i64 now, i64 until, const sigset_t *mask);
bool wait_for(int fd, short events, i64 until);
i64 clock_now(void);
i64 sooner(i64 one, i64 other);

/* A window of a stream, in a buffer whose size is a power of two. */

/* The bytes begin...end of the stream, counted from its start. */
struct ring {
    u8 *bytes;
    u64 size;
    u64 begin, end;
};
u64 ring_length(const struct ring *ring);
u64 ring_room(const struct ring *ring);
void ring_put(struct ring *ring, const u8 *bytes, size_t length);
void ring_copy(const struct ring *ring, u64 from, u8 *to, size_t length);
/* The first bytes that wait, or the first room, in one piece. */
struct iovec ring_bytes(const struct ring *ring);
struct iovec ring_space(const struct ring *ring);
u64 ring_rest(struct ring *ring);

/* Unix sockets in a folder: where folders may be, connecting, listening, and who is at the other end. */
enum { PLACES = 3 };

const char *place_root(int number);
int open_folder(const char *path);
int socket_connect(int folder);
int socket_listen(int folder, int backlog);
void socket_remove(int folder);
bool peer_is_ours(int fd);
bool processes_are_visible(void);
bool peers_are_visible(void);

/*
 * Frames, and a connection over which they come and go. Their layout is that of docs/keeper.md, for the switchboard
 * as well; mpirt/rsh/protocol/framing.py has it in Python.
 */
enum { HEADER = 16 };

u64 get_bytes(const u8 *at, int size);
void put_bytes(u8 *at, int size, u64 value);
#define get16(at) ((u16)get_bytes(at, 2))
#define get32(at) ((u32)get_bytes(at, 4))
#define get64(at) get_bytes(at, 8)
#define put32(at, value) put_bytes(at, 4, value)
#define put64(at, value) put_bytes(at, 8, value)

struct frame {
    u8 type;
    u32 length;
    u32 epoch;
    u64 number;
    const u8 *payload;
};
/* How long a payload may be, and whether the number may be other than 0. A type without a rule is invalid. */
struct frame_rule {
    u32 least, most;
    bool is_known, is_numbered;
};
struct frame_rules {
    const struct frame_rule *of;
    size_t count;
};
enum parsed { FRAME_PARTIAL, FRAME_WHOLE, FRAME_BROKEN };
enum parsed frame_parse(const u8 *bytes, size_t size, const struct frame_rules *rules, struct frame *frame);
size_t frame_missing(const u8 *bytes, size_t size);
size_t frame_head(u8 *to, u8 type, u32 length, u32 epoch, u64 number);

struct link {
    int fd;                  /* -1: there is no connection */
    int ticket;
    bool is_frugal;          /* gives memory back whenever nothing is under way */
    bool is_mute;            /* the peer no longer reads; what it sent before can still be read */
    size_t received;
    size_t sent, composed;
    size_t most_composed;    /* since its memory was given back */
    u8 *incoming, *outgoing;
    size_t incoming_size, outgoing_size;
};
void link_begin(struct link *link, int fd);
void link_end(struct link *link);
bool link_is_held_up(const struct link *link);
void link_watch(struct link *link);
bool link_receive(struct link *link, const struct frame_rules *rules, bool (*take)(const struct frame *frame));
void link_send(struct link *link, size_t (*compose)(u8 *to, size_t room), void (*note_sent)(void));

#endif
