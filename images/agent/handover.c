/*
 * HANDOVER, and what mpirt-discover asks for: words and variables, and what else a switchboard gets with them.
 *
 * Owns: its layout, and how much of it is sent. All of it is composed at once, in memory that is mapped for it: a page
 * of it that isn't touched costs nothing.
 */
#include "agent.h"

#include <sys/mman.h>

enum { HAS_STDIN = 1, STDIN_HAS_ENDED = 2 };

static u8 *whole;            /* NULL: nothing is to be sent */
static size_t length, sent;

u8 *request_begin(void)
{
    length = HEADER;
    return whole = launch_memory(REQUEST_SIZE);
}

static bool has_room(size_t size)
{
    return length <= REQUEST_SIZE && size <= REQUEST_SIZE - length;
}

/* What makes it longer than it may be isn't added: request_end() reports that. */
static void add(const void *bytes, size_t size)
{
    if (has_room(size))
        memcpy(whole + length, bytes, size);
    length = has_room(size) ? length + size : REQUEST_SIZE + 1;
}

static void add32(u32 value)
{
    u8 bytes[4];
    put32(bytes, value);
    add(bytes, sizeof bytes);
}

static void add64(u64 value)
{
    u8 bytes[8];
    put64(bytes, value);
    add(bytes, sizeof bytes);
}

void request_add_counts(size_t words, size_t variables)
{
    add32((u32)words);
    add32((u32)variables);
}

void request_add_string(const char *string)
{
    add(string, strlen(string) + 1);
}

/* The size of the frame; 0: it is longer than it may be. */
size_t request_end(enum frame_type type)
{
    if (length > REQUEST_SIZE)
        return 0;
    frame_head(whole, (u8)type, (u32)(length - HEADER), 0, 0);
    return length;
}

static void add_stdin(void)
{
    size_t kept = input_hand_over();
    add32((u32)kept);
    if (has_room(kept))
        input_copy(whole + length, kept);
    length = has_room(kept) ? length + kept : REQUEST_SIZE + 1;
}

static void add_state(void)
{
    u8 flags = (u8)((input->is_there ? HAS_STDIN : 0) | (input->has_ended ? STDIN_HAS_ENDED : 0));
    add(&flags, 1);
    add32(session.generation);
    add64(output_come(STDOUT_FILENO));
    add64(output_come(STDERR_FILENO));
    add64(input_offset());
    const u8 *signals;
    u32 count = signals_hand_over(&signals);
    add32(count);
    add(signals, count);
    add32((u32)session.keep_length);
    add(session.keep, session.keep_length);
    add_stdin();
}

static void handover_end(void)
{
    if (whole)
        munmap(whole, REQUEST_SIZE);
    whole = NULL;
}

/* False: it is longer than it may be. */
bool handover_begin(void)
{
    static char folder[PATH_MAX];
    handover_end();
    /* A folder that was removed has no path. */
    if (!getcwd(folder, sizeof folder) || *folder != '/')
        *folder = 0;
    request_begin();
    add_state();
    request_add_counts(session.word_count, session.variable_count);
    request_add_string(session.called);
    request_add_string(folder);
    for (size_t number = 0; number < session.word_count; number++)
        request_add_string(session.words[number]);
    for (size_t number = 0; number < session.variable_count; number++)
        request_add_string(session.environment[number]);
    sent = 0;
    return request_end(HANDOVER) != 0;
}

/* Its next bytes; 0 once all are sent. */
size_t handover_next(u8 *to, size_t size)
{
    size_t part = whole ? length - sent : 0;
    if (part > size)
        part = size;
    memcpy(to, whole + sent, part);
    sent += part;
    if (whole && sent == length)
        handover_end();
    return part;
}

bool handover_is_over(void)
{
    return !whole;
}
