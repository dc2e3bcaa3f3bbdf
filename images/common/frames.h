/*
 * Frames, and a connection over which they come and go. Their layout is that of docs/keeper.md, for the switchboard
 * as well; mpirt/rsh/protocol/framing.py has it in Python.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include "types.h"

enum { HEADER = 16 };

u16 get16(const u8 *at);
u32 get32(const u8 *at);
u64 get64(const u8 *at);
void put32(u8 *at, u32 value);
void put64(u8 *at, u64 value);

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
